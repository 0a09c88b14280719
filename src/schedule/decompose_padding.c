// SPDX-License-Identifier: Apache-2.0
// Implements decompose_padding, which divides a block that pads a tensor into one that fills with
// the constant, before a loop, and one that copies the elements inside.
//   for i in 140: B[i] = A[i - 6] if 6 <= i < 134 else 0
//   =>  for i in 140: B[i] = 0;   for i in 128: B[i + 6] = A[i]
#include "schedule/internal.h"

typedef struct PadDivision {
  Schedule *schedule;
  Path path; // to the block
  int depth; // of the loop
  const Block *block;
  Expr *condition, *inside, *constant;
  int alone; // depth from which on there are only loops around the block
} PadDivision;

static SourcePos pos_of(const PadDivision *d) {
  return path_end(&d->path)->pos;
}

// ---- Legality --------------------------------------------------------------------------------

static bool take_parts(PadDivision *d) {
  const Stmt *store = d->block->body;
  const Expr *value = store->kind == STMT_STORE ? store->as.store.value : NULL;
  bool guarded = value && (value->op == EXPR_IF_THEN_ELSE || value->op == EXPR_SELECT);
  if (!guarded || d->block->init || block_is_reduction(d->block) || d->block->alloc_count ||
      d->block->match_count || expr_reads_memory(value->args[2]))
    return schedule_refuse(d->schedule, pos_of(d),
                           "block '%s' is not one store of an element under a condition, and of a "
                           "constant otherwise",
                           d->block->name);
  d->condition = value->args[0];
  d->inside = value->args[1];
  d->constant = value->args[2];
  return true;
}

// True when the element that is stored tells all variables of the block, so that each time when it
// is stored, the condition is the same.
static bool element_tells_variables(const Block *block) {
  const Stmt *store = block->body;
  for (int i = 0; i < block->var_count; i++) {
    bool found = expr_is_int(block->vars[i].extent, 1);
    for (int d = 0; d < store->as.store.rank && !found; d++)
      found = store->as.store.indices[d] == block->vars[i].var;
    if (!found) return false;
  }
  return true;
}

// True when this block only writes the buffer below the loop, and an element that was filled before
// the loop may be read there: an iteration reads what it stored itself, and stores what any other
// one stores.
static bool reads_may_follow(PadDivision *d, const Buffer *buffer, const Block **reader) {
  StmtArray blocks = {0};
  blocks_innermost(&d->schedule->context->arena, d->path.items[d->depth], &blocks);
  *reader = NULL;
  for (int i = 0; i < blocks.count; i++) {
    const Block *other = blocks.items[i]->as.block;
    bool writes = other != d->block && block_touches(other, buffer, true);
    if (writes || block_touches(other, buffer, false)) *reader = other;
    if (writes) return false;
  }
  return !*reader || (element_tells_variables(d->block) && !expr_reads_memory(d->condition) &&
                      !buffer_is_parameter(d->schedule, buffer) &&
                      loop_reads_own_writes(d->schedule, &d->path, d->depth, buffer));
}

// True when each element is written once below the loop, by this block only.
static bool writes_alone(PadDivision *d) {
  const Buffer *buffer = d->block->body->as.store.buffer;
  const Block *other;
  Path loops = d->path;
  if (!reads_may_follow(d, buffer, &other))
    return schedule_refuse(d->schedule, pos_of(d), "block '%s' below that loop uses '%s' too",
                           other->name, buffer->name);
  if (other) return true;
  while (loops.items[loops.count - 1]->kind != STMT_FOR) loops.count--;
  return path_writes_tell_iterations(d->schedule, &loops, d->depth, buffer) ||
         schedule_refuse(
             d->schedule, pos_of(d),
             "iterations of block '%s' are not proved to write different elements of '%s'",
             d->block->name, buffer->name);
}

// Refuses a condition that always holds.
static bool pads_some(PadDivision *d) {
  Analyzer *analyzer = analyzer_new(d->schedule->context);
  block_bind_domain(analyzer, d->block);
  return !analyzer_prove(analyzer, d->condition) ||
         schedule_refuse(d->schedule, pos_of(d),
                         "block '%s' pads nothing: its condition always holds", d->block->name);
}

static bool division_begin(Schedule *schedule, const StepCall *call, PadDivision *d) {
  *d = (PadDivision){.schedule = schedule};
  if (!schedule_find_block_in_loop(schedule, call->args[0].as.block, call->args[1].as.loop,
                                   &d->path, &d->depth))
    return false;
  d->block = path_end(&d->path)->as.block;
  for (int i = d->depth; i < d->path.count - 1; i++)
    if (d->path.items[i]->kind != STMT_FOR && d->path.items[i]->kind != STMT_SEQ)
      return schedule_refuse(schedule, d->path.items[i]->pos,
                             "between loop '%s' and block '%s' there is more than loops",
                             loop_name(d->path.items[d->depth]), d->block->name);
  d->alone = d->path.count - 1;
  while (d->alone > d->depth && d->path.items[d->alone - 1]->kind == STMT_FOR) d->alone--;
  return take_parts(d) && pads_some(d) && writes_alone(d);
}

// The block with the values of the loops of one iteration around the loop in its bindings.
static Block *with_unit_loops(const PadDivision *d, Block *block) {
  Context *context = d->schedule->context;
  Map values = map_new(&context->arena);
  for (int i = 0; i < d->depth; i++) {
    const Stmt *s = d->path.items[i];
    if (s->kind == STMT_FOR && expr_is_int(s->as.loop.extent, 1))
      map_put(&values, s->as.loop.var, s->as.loop.min);
  }
  for (int i = 0; i < block->var_count; i++)
    block->vars[i].binding = substitute_expr(context, block->vars[i].binding, &values);
  return block;
}

// ---- The block that fills --------------------------------------------------------------------

static Stmt *fill_nest(const PadDivision *d, Str name) {
  Context *context = d->schedule->context;
  Block *copy = block_copy(context, d->block);
  copy->vars = arena_copy(&context->arena, copy->vars, sizeof(BlockVar) * (size_t)copy->var_count);
  with_unit_loops(d, copy);
  copy->name = name;
  copy->annotations = (Attrs){0};
  copy->body = store_with_value(context, copy->body, d->constant);
  Stmt *s = stmt_with_block(context, path_end(&d->path), block_with_regions(context, copy));
  for (int i = d->path.count - 2; i >= d->depth; i--)
    if (d->path.items[i]->kind == STMT_FOR) s = stmt_with_child(context, d->path.items[i], 0, s);
  return stmt_renew(context, s);
}

// ---- The block that copies -------------------------------------------------------------------

// The part of a variable's domain in which the condition may hold.
static bool bounds_inside(Analyzer *analyzer, const BlockVar *v, int64_t *low, int64_t *high) {
  int64_t min, extent;
  return expr_as_int(v->min, &min) && expr_as_int(v->extent, &extent) &&
         analyzer_const_bounds(analyzer, v->var, low, high) && *low <= *high &&
         (*low > min || *high < min + extent - 1);
}

// The depth of the plain loop that is this variable and nothing else, below which there are only
// loops; -1: there is none.
static int own_loop(const PadDivision *d, const BlockVar *v) {
  for (int i = d->alone; i < d->path.count - 1; i++) {
    bool same = loop_is_variable(d->path.items[i], v);
    for (int k = 0; k < d->block->var_count && same; k++)
      same = &d->block->vars[k] == v || !expr_uses(d->block->vars[k].binding, v->binding);
    for (int k = i + 1; k < d->path.count - 1 && same; k++)
      same = !loop_bounds_use(d->path.items[k], v->binding);
    if (same) return i;
  }
  return -1;
}

typedef struct CopyBlock {
  Block *block;
  Path path;   // with changed loops
  Map values;  // old variables in terms of new ones
  Map shifted; // loops that begin later: their old values
  Expr *predicate;
} CopyBlock;

// Both conditions as one chain.
static Expr *condition_and_each(Context *context, Expr *a, Expr *b) {
  ExprArray all = {0};
  expr_conjuncts(context, b, &all);
  for (int i = 0; i < all.count; i++) a = condition_and(context, a, all.items[i]);
  return a;
}

// Lets the variable run over the elements inside only, from 0.
static void shrink_variable(const PadDivision *d, CopyBlock *c, int i, int64_t low, int64_t high) {
  Context *context = d->schedule->context;
  BlockVar *v = &c->block->vars[i];
  DType type = v->var->type;
  Expr *fresh = expr_var(context, v->var->as.var->name, type), *from = expr_int(context, type, low);
  Expr *extent = expr_int(context, type, high - low + 1);
  int at = own_loop(d, &d->block->vars[i]);
  map_put(&c->values, v->var, expr_add(context, fresh, from));
  if (at >= 0) {
    Stmt *loop = stmt_copy(context, d->path.items[at]);
    loop->as.loop.extent = expr_cast(context, loop->as.loop.var->type, extent);
    c->path.items[at] = loop;
    map_put(&c->shifted, loop->as.loop.var, expr_add(context, loop->as.loop.var, from));
  } else {
    Analyzer *analyzer = path_analyzer(d->schedule, &d->path, d->path.count - 1);
    Expr *end = expr_add(context, from, extent);
    Expr *within = analyzer_unproved_within(analyzer, v->binding, from, end);
    c->predicate = condition_and_each(context, c->predicate, within);
    v->binding = expr_sub(context, v->binding, from);
  }
  *v = (BlockVar){fresh, expr_int(context, type, 0), extent, v->kind, v->binding, v->pos};
}

// The conditions that the new domains do not imply, over the loops.
static Expr *rest_of_condition(const PadDivision *d, const CopyBlock *c) {
  Context *context = d->schedule->context;
  Analyzer *analyzer = analyzer_new(context);
  ExprArray all = {0};
  Expr *rest = expr_bool(context, true);
  block_bind_domain(analyzer, c->block);
  Map bindings = bindings_of(context, c->block);
  expr_conjuncts(context, d->condition, &all);
  for (int i = 0; i < all.count; i++) {
    Expr *condition = substitute_expr(context, all.items[i], &c->values);
    if (!analyzer_prove(analyzer, condition))
      rest = condition_and(context, rest, substitute_expr(context, condition, &bindings));
  }
  return rest;
}

static Stmt *copy_nest(const PadDivision *d) {
  Context *context = d->schedule->context;
  CopyBlock c = {.block = block_copy(context, d->block),
                 .path = d->path,
                 .values = map_new(&context->arena),
                 .shifted = map_new(&context->arena),
                 .predicate = expr_bool(context, true)};
  Analyzer *inside = analyzer_new(context), *domain = analyzer_new(context);
  c.path.items = arena_copy(&context->arena, d->path.items, sizeof(Stmt *) * (size_t)d->path.count);
  c.block->vars =
      arena_copy(&context->arena, c.block->vars, sizeof(BlockVar) * (size_t)c.block->var_count);
  block_bind_domain(inside, d->block);
  analyzer_assume(inside, d->condition);
  for (int i = 0; i < d->block->var_count; i++) {
    int64_t low, high;
    if (bounds_inside(inside, &d->block->vars[i], &low, &high))
      shrink_variable(d, &c, i, low, high);
  }
  with_unit_loops(d, c.block);
  c.predicate = condition_and_each(context, c.predicate, d->block->predicate);
  c.block->predicate = substitute_expr(context, c.predicate, &c.shifted);
  c.block->predicate = condition_and(context, c.block->predicate, rest_of_condition(d, &c));
  block_bind_domain(domain, c.block);
  c.block->body = store_with_value(context, c.block->body, d->inside);
  c.block->body = substitute_stmt(context, c.block->body, &c.values, NULL);
  c.block->body = stmt_simplify_indices(context, domain, c.block->body);
  Stmt *s = stmt_with_block(context, path_end(&d->path), block_with_regions(context, c.block));
  return path_with_end(context, &c.path, d->depth, s);
}

// ---- The step --------------------------------------------------------------------------------

bool step_decompose_padding(Schedule *schedule, StepCall *call) {
  Context *context = schedule->context;
  PadDivision d;
  if (!division_begin(schedule, call, &d)) return false;
  Str name =
      schedule_unique_name(schedule, arena_printf(&context->arena, "%s_pad_const", d.block->name));
  Stmt *pair[2] = {fill_nest(&d, name), copy_nest(&d)};
  path_replace_flat(schedule, &d.path, d.depth, stmt_seq(context, pair, 2));
  step_result(schedule, call, value_block(name));
  return true;
}
