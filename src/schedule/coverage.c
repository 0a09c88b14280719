// SPDX-License-Identifier: Apache-2.0
// Finds out whether a block writes all elements that it states to write: of its regions in one
// execution (by its parts, see written_parts.c), and of its buffer over its whole domain.
#include "schedule/internal.h"

static bool same_size(const Expr *a, const Expr *b) {
  return a == b || (b->op == EXPR_INT && expr_is_int(a, b->as.i));
}

bool index_is_axis(const Block *block, const Expr *index, const Expr *extent) {
  if (expr_is_int(index, 0) && expr_is_int(extent, 1)) return true;
  for (int i = 0; i < block->var_count; i++) {
    const BlockVar *v = &block->vars[i];
    if (v->var == index) return expr_is_int(v->min, 0) && same_size(v->extent, extent);
  }
  return false;
}

bool block_init_is_partial(const Block *block) {
  for (int i = 0; block->init && i < block->write_count; i++)
    for (int d = 0; d < block->writes[i].buffer->rank; d++)
      for (int k = 0; k < block->var_count; k++)
        if (block->vars[k].kind == ITER_REDUCTION &&
            (expr_uses(block->writes[i].min[d], block->vars[k].var) ||
             expr_uses(block->writes[i].extent[d], block->vars[k].var)))
          return true;
  return false;
}

// True when all elements of the region are outside of its buffer, by what the analyzer knows.
static bool is_outside(Context *context, Analyzer *analyzer, const Region *region,
                       const Map *values) {
  for (int d = 0; d < region->buffer->rank; d++) {
    Expr *min = substitute_expr(context, region->min[d], values);
    Expr *end = expr_add(context, min, substitute_expr(context, region->extent[d], values));
    Expr *shape = region->buffer->shape[d], *zero = expr_int(context, end->type, 0);
    if (analyzer_prove(analyzer, expr_binary(context, EXPR_GE, min, shape)) ||
        analyzer_prove(analyzer, expr_binary(context, EXPR_LE, end, zero)))
      return true;
  }
  return false;
}

// True when the region is an element of padding that may hold anything.
static bool is_padding(Schedule *schedule, Analyzer *analyzer, const Region *region,
                       const Map *values) {
  Context *context = schedule->context;
  const Buffer *buffer = region->buffer;
  if (!buffer->layout || buffer->layout->padding.kind != LAYOUT_PADDING_ANY) return false;
  for (int d = 0; d < buffer->rank; d++)
    if (!expr_is_int(region->extent[d], 1)) return false;
  Expr *padding = padding_condition(schedule, buffer, region->min);
  return padding && analyzer_prove(analyzer, substitute_expr(context, padding, values));
}

bool predicate_excludes_outside(Context *context, Schedule *schedule, Analyzer *analyzer,
                                Expr *predicate, const Region *region, const Map *values) {
  ExprArray conjuncts = {0};
  if (expr_is_true(predicate)) return true;
  expr_conjuncts(context, predicate, &conjuncts);
  for (int i = 0; i < conjuncts.count; i++) {
    Expr *condition = substitute_expr(context, conjuncts.items[i], values);
    int mark = analyzer_mark(analyzer);
    analyzer_assume(analyzer, expr_unary(context, EXPR_NOT, condition));
    bool outside = !expr_reads_memory(condition) &&
                   (is_outside(context, analyzer, region, values) ||
                    (schedule && is_padding(schedule, analyzer, region, values)));
    analyzer_reset(analyzer, mark);
    if (!outside) return false;
  }
  return true;
}

static bool is_point_store(const Stmt *s, const Region *region) {
  if (s->kind != STMT_STORE || s->as.store.buffer != region->buffer) return false;
  for (int d = 0; d < region->buffer->rank; d++)
    if (region->min[d] != s->as.store.indices[d] || !expr_is_int(region->extent[d], 1))
      return false;
  return true;
}

// True when each execution of the block writes all elements of the regions that it states.
static bool body_fills_regions(Context *context, const Block *block) {
  for (int i = 0; i < block->write_count; i++) {
    if (is_point_store(block->body, &block->writes[i])) continue;
    Analyzer *analyzer = analyzer_new(context);
    block_bind_domain(analyzer, block);
    if (!stmt_fills_region(context, analyzer, block->body, &block->writes[i])) return false;
  }
  return true;
}

static bool predicate_is_harmless(Schedule *schedule, const Block *block, Analyzer *analyzer) {
  Context *context = schedule->context;
  Map bindings = bindings_of(context, block);
  for (int i = 0; i < block->write_count; i++)
    if (!predicate_excludes_outside(context, schedule, analyzer, block->predicate,
                                    &block->writes[i], &bindings))
      return false;
  return true;
}

// A predicate may exclude points outside of the block's domain and of the buffers, and padding, but
// no other point.
bool block_writes_whole_domain(Schedule *schedule, const Block *block, Analyzer *analyzer) {
  Context *context = schedule->context;
  if (block_init_is_partial(block) || !body_fills_regions(context, block)) return false;
  if (predicate_is_harmless(schedule, block, analyzer)) return true;
  if (block->write_count != 1) return false;
  const Region *write = &block->writes[0];
  for (int d = 0; d < write->buffer->rank; d++)
    if (!index_is_axis(block, write->min[d], write->buffer->shape[d])) return false;
  int mark = analyzer_mark(analyzer);
  for (int i = 0; i < block->var_count; i++) {
    const BlockVar *v = &block->vars[i];
    Expr *end = expr_add(context, v->min, v->extent);
    analyzer_assume(analyzer, expr_binary(context, EXPR_GE, v->binding, v->min));
    analyzer_assume(analyzer, expr_lt(context, v->binding, end));
  }
  Map bindings = bindings_of(context, block);
  Expr *padding = padding_condition(schedule, write->buffer, write->min);
  if (padding)
    analyzer_assume(analyzer,
                    expr_unary(context, EXPR_NOT, substitute_expr(context, padding, &bindings)));
  bool whole = analyzer_prove(analyzer, block->predicate);
  analyzer_reset(analyzer, mark);
  return whole;
}

// ---- Elements that are written again ---------------------------------------------------------

static bool is_index(const Region *region, const Expr *var) {
  for (int d = 0; d < region->buffer->rank; d++)
    if (region->min[d] == var) return true;
  return false;
}

// True when each write index is a variable of the block, each spatial variable is an index, and the
// loop repeats no part of a reduction: the indices and the inputs alone give the value of an
// element.
static bool is_computed_again(const Block *block, const Expr *loop) {
  for (int i = 0; i < block->var_count; i++) {
    const BlockVar *v = &block->vars[i];
    if (v->kind == ITER_OPAQUE) return false;
    if (v->kind == ITER_REDUCTION && expr_uses(v->binding, loop)) return false;
    for (int k = 0; v->kind == ITER_SPATIAL && k < block->write_count; k++)
      if (!expr_is_int(v->extent, 1) && !is_index(&block->writes[k], v->var)) return false;
  }
  for (int i = 0; i < block->write_count; i++)
    for (int d = 0; d < block->writes[i].buffer->rank; d++)
      if (!index_is_axis(block, block->writes[i].min[d], block->writes[i].buffer->shape[d]))
        return false;
  return true;
}

enum { MOST_STAGES = 8 };

static bool stays_below(Schedule *schedule, const Path *path, int depth, const Buffer *buffer,
                        int stages) {
  Stmt *loop = path->items[depth];
  if (buffer_writes_apart(schedule, path, depth, buffer)) return true;
  if (!stages || stmt_has_loose_stores(loop)) return false;
  StmtArray blocks = {0};
  blocks_innermost(&schedule->context->arena, loop, &blocks);
  for (int i = 0; i < blocks.count; i++) {
    const Block *block = blocks.items[i]->as.block;
    PtrArray inputs = {0};
    if (!block_touches(block, buffer, true)) continue;
    if (!is_computed_again(block, loop->as.loop.var) || block_touches(block, buffer, false))
      return false;
    block_inputs(schedule->context, block, &inputs);
    for (int k = 0; k < inputs.count; k++)
      if (!stays_below(schedule, path, depth, inputs.items[k], stages - 1)) return false;
  }
  return true;
}

bool buffer_stays_below(Schedule *schedule, const Path *path, int depth, const Buffer *buffer) {
  return stays_below(schedule, path, depth, buffer, MOST_STAGES);
}
