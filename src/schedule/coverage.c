// SPDX-License-Identifier: Apache-2.0
// Finds out whether a block writes all elements that it states to write: of its regions in one
// execution, and of its buffer over its whole domain. The image of a store over the loops around it
// is a box or the whole region, and the boxes of all stores together must cover the region. The
// predicate of an inner block may exclude only what is outside of the region or of the buffer.
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

// A search for stores that together write all elements of a region in each execution of a block.
typedef struct Filling {
  Context *context;
  Analyzer *analyzer;
  const Region *region;
  Array(VarRange) loops;
  ExprArray conditions; // conjuncts of predicates of inner blocks, in terms of the loops
  Array(Region) boxes;  // all of their elements are written
  Map values;           // variables of inner blocks and lets, in terms of the loops
} Filling;

// True when the point is outside of the region along an axis, by what the analyzer knows.
static bool is_beside(const Filling *filling, Expr *const *point) {
  Context *context = filling->context;
  const Region *region = filling->region;
  for (int d = 0; d < region->buffer->rank; d++) {
    Expr *min = expr_cast(context, point[d]->type, region->min[d]);
    Expr *end = expr_add(context, min, expr_cast(context, min->type, region->extent[d]));
    if (analyzer_prove(filling->analyzer, expr_lt(context, point[d], min)) ||
        analyzer_prove(filling->analyzer, expr_binary(context, EXPR_GE, point[d], end)))
      return true;
  }
  return false;
}

// True when each condition holds wherever the point is in the region.
static bool conditions_hold(const Filling *filling, Expr *const *point) {
  bool hold = true;
  for (int i = 0; hold && i < filling->conditions.count; i++) {
    Expr *condition = filling->conditions.items[i];
    int mark = analyzer_mark(filling->analyzer);
    for (int k = 0; k < filling->loops.count; k++) {
      const VarRange *loop = &filling->loops.items[k];
      analyzer_bind(filling->analyzer, loop->var, loop->min, loop->extent);
    }
    analyzer_assume(filling->analyzer, expr_unary(filling->context, EXPR_NOT, condition));
    hold = !expr_reads_memory(condition) && is_beside(filling, point);
    analyzer_reset(filling->analyzer, mark);
  }
  return hold;
}

// True when the loops take the point to each element of the region, as a layout without padding.
static bool is_onto(const Filling *filling, Expr *const *point) {
  Context *context = filling->context;
  int count = filling->loops.count, rank = filling->region->buffer->rank;
  Expr **vars = arena_array(&context->arena, Expr *, count + 1);
  Expr **indices = arena_array(&context->arena, Expr *, rank + 1);
  int64_t extent, *extents = arena_array(&context->arena, int64_t, count + 1);
  for (int i = 0; i < count; i++) {
    const VarRange *loop = &filling->loops.items[i];
    if (!expr_is_int(loop->min, 0) || !expr_as_int(loop->extent, &extents[i])) return false;
    vars[i] = loop->var;
  }
  for (int d = 0; d < rank; d++) {
    Expr *min = expr_cast(context, point[d]->type, filling->region->min[d]);
    indices[d] = analyzer_simplify(filling->analyzer, expr_sub(context, point[d], min));
  }
  const IndexMap *map = index_map_from_exprs(context, vars, count, indices, rank, false);
  int diags = context->diags.count, errors = context->error_count;
  const Layout *layout = map ? layout_static(context, map, extents, (SourcePos){0}) : NULL;
  diag_forget(context, diags, errors); // a map that is no layout is not proved to be onto
  LayoutInverse inverse;
  bool onto = layout && layout_inverse(context, layout, &inverse).verdict == VERDICT_YES &&
              !inverse.padding;
  for (int d = 0; onto && d < rank; d++)
    onto =
        expr_as_int(filling->region->extent[d], &extent) && extent == layout->physical_extents[d];
  return onto;
}

// Adds the elements that a store writes over all iterations of the loops.
static void add_store(Filling *filling, const Stmt *s) {
  Context *context = filling->context;
  int rank = s->as.store.rank;
  if (s->as.store.buffer != filling->region->buffer) return;
  Region found = {s->as.store.buffer, arena_array(&context->arena, Expr *, rank),
                  arena_array(&context->arena, Expr *, rank)};
  Expr **indices = arena_array(&context->arena, Expr *, rank);
  bool exact;
  for (int d = 0; d < rank; d++)
    indices[d] = substitute_expr(context, s->as.store.indices[d], &filling->values);
  if (!conditions_hold(filling, indices)) return;
  index_region(filling->analyzer, indices, rank, filling->loops.items, filling->loops.count,
               found.min, found.extent, &exact);
  for (int d = 0; d < rank; d++) exact = exact && found.min[d];
  if (exact)
    array_push(&context->arena, &filling->boxes, found);
  else if (is_onto(filling, indices))
    array_push(&context->arena, &filling->boxes, *filling->region);
}

static Expr *end_of(Context *context, const Region *region, int d) {
  Expr *min = region->min[d];
  return expr_add(context, min, expr_cast(context, min->type, region->extent[d]));
}

static bool at_most(Filling *filling, Expr *a, Expr *b) {
  Context *context = filling->context;
  return analyzer_prove(filling->analyzer,
                        expr_binary(context, EXPR_LE, a, expr_cast(context, a->type, b)));
}

// Takes the elements of a box that has those of the rest along all axes but `d`, and its first or
// last ones along `d`, from the rest. False where it has no other form.
static bool cut_along(Filling *filling, const Region *box, Region *rest, int d) {
  Context *context = filling->context;
  Region across = *box;
  across.min = arena_copy(&context->arena, box->min, sizeof *box->min * (size_t)box->buffer->rank);
  across.extent =
      arena_copy(&context->arena, box->extent, sizeof *box->min * (size_t)box->buffer->rank);
  across.min[d] = rest->min[d];
  across.extent[d] = rest->extent[d];
  if (!region_covers(filling->analyzer, &across, rest)) return false;
  Expr *from = rest->min[d], *to = end_of(context, rest, d);
  Expr *min = expr_cast(context, from->type, box->min[d]);
  Expr *end = expr_cast(context, from->type, end_of(context, box, d));
  Expr *one = expr_int(context, from->type, 1);
  bool first = at_most(filling, min, from) && at_most(filling, expr_add(context, from, one), end);
  bool last =
      !first && at_most(filling, to, end) && at_most(filling, expr_add(context, min, one), to);
  if (!first && !last) return false;
  if (first) rest->min[d] = end;
  rest->extent[d] =
      analyzer_simplify(filling->analyzer, expr_sub(context, last ? min : to, rest->min[d]));
  return true;
}

// True when the boxes from `from` on together have all elements of the region.
static bool boxes_cover(Filling *filling, int from) {
  Context *context = filling->context;
  int rank = filling->region->buffer->rank;
  Region rest = *filling->region;
  rest.min = arena_copy(&context->arena, rest.min, sizeof *rest.min * (size_t)rank);
  rest.extent = arena_copy(&context->arena, rest.extent, sizeof *rest.min * (size_t)rank);
  for (bool cut = true; cut;) {
    cut = false;
    for (int i = from; i < filling->boxes.count; i++) {
      const Region *box = &filling->boxes.items[i];
      if (region_covers(filling->analyzer, box, &rest)) return true;
      for (int d = 0; d < rank && !cut; d++) cut = cut_along(filling, box, &rest, d);
    }
  }
  return false;
}

static void fill(Filling *filling, Stmt *s);

static void fill_by_loop(Filling *filling, Stmt *s) {
  Context *context = filling->context;
  Expr *some = expr_lt(context, expr_int(context, s->as.loop.extent->type, 0), s->as.loop.extent);
  if (!analyzer_prove(filling->analyzer, some)) return;
  array_push(&context->arena, &filling->loops, loop_range(s));
  fill(filling, s->as.loop.body);
  filling->loops.count--;
}

static bool same_store(const Stmt *a, const Stmt *b) {
  if (a->kind != STMT_STORE || b->kind != STMT_STORE || a->as.store.buffer != b->as.store.buffer)
    return false;
  for (int d = 0; d < a->as.store.rank; d++)
    if (a->as.store.indices[d] != b->as.store.indices[d]) return false;
  return true;
}

// Either branch must write the whole region, and be the one that runs in all iterations; or both
// write the same element.
static void fill_by_branches(Filling *filling, Stmt *s) {
  Context *context = filling->context;
  Stmt *first = s->as.branch.then_body, *second = s->as.branch.else_body;
  if (!second) return;
  if (same_store(first, second)) {
    add_store(filling, first);
    return;
  }
  Expr *condition = substitute_expr(context, s->as.branch.condition, &filling->values);
  if (filling->loops.count &&
      (expr_reads_memory(condition) ||
       expr_uses_ranges(condition, filling->loops.items, filling->loops.count)))
    return;
  int mark = filling->boxes.count;
  fill(filling, first);
  bool whole = boxes_cover(filling, mark);
  filling->boxes.count = mark;
  fill(filling, second);
  whole = whole && boxes_cover(filling, mark);
  filling->boxes.count = mark;
  if (whole) array_push(&context->arena, &filling->boxes, *filling->region);
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

// True when the region is outside of its buffer wherever the predicate is false, or padding where a
// schedule is given.
static bool excludes_outside(Context *context, Schedule *schedule, Analyzer *analyzer,
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

static void fill_by_block(Filling *filling, const Block *block) {
  Context *context = filling->context;
  int mark = filling->conditions.count;
  if (!excludes_outside(context, NULL, filling->analyzer, block->predicate, filling->region,
                        &filling->values))
    expr_conjuncts(context, substitute_expr(context, block->predicate, &filling->values),
                   &filling->conditions);
  for (int i = 0; i < block->var_count; i++)
    map_put(&filling->values, block->vars[i].var,
            substitute_expr(context, block->vars[i].binding, &filling->values));
  fill(filling, block->body);
  filling->conditions.count = mark;
}

// Adds the boxes of the buffer that each execution of the statement writes, swept over the loops.
static void fill(Filling *filling, Stmt *s) {
  switch (s->kind) {
  case STMT_STORE: add_store(filling, s); break;
  case STMT_FOR: fill_by_loop(filling, s); break;
  case STMT_BLOCK: fill_by_block(filling, s->as.block); break;
  case STMT_IF: fill_by_branches(filling, s); break;
  case STMT_LET:
    map_put(&filling->values, s->as.let.var,
            substitute_expr(filling->context, s->as.let.value, &filling->values));
    fill(filling, s->as.let.body);
    break;
  case STMT_SEQ:
    for (int i = 0; i < s->as.seq.count; i++) fill(filling, s->as.seq.items[i]);
    break;
  case STMT_ALLOCATE:
  case STMT_ALLOCATE_CONST:
  case STMT_DECL_BUFFER:
  case STMT_ATTR: fill(filling, stmt_child(s, 0)); break;
  case STMT_WHILE:
  case STMT_ASSERT:
  case STMT_EVALUATE: break;
  }
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
    Filling filling = {.context = context,
                       .analyzer = analyzer_new(context),
                       .region = &block->writes[i],
                       .values = map_new(&context->arena)};
    block_bind_domain(filling.analyzer, block);
    fill(&filling, block->body);
    if (!boxes_cover(&filling, 0)) return false;
  }
  return true;
}

static bool predicate_excludes_outside(Schedule *schedule, const Block *block, Analyzer *analyzer) {
  Context *context = schedule->context;
  Map bindings = bindings_of(context, block);
  for (int i = 0; i < block->write_count; i++)
    if (!excludes_outside(context, schedule, analyzer, block->predicate, &block->writes[i],
                          &bindings))
      return false;
  return true;
}

// A predicate may exclude points outside of the block's domain and of the buffers, and padding, but
// no other point.
bool block_writes_whole_domain(Schedule *schedule, const Block *block, Analyzer *analyzer) {
  Context *context = schedule->context;
  if (block_init_is_partial(block) || !body_fills_regions(context, block)) return false;
  if (predicate_excludes_outside(schedule, block, analyzer)) return true;
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
