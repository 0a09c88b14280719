// SPDX-License-Identifier: Apache-2.0
// Implements blockize, which makes the loops around a block, from one loop on, the body of a new
// block:
//   for io, jo, ii, ji: B[io*4 + ii, jo*8 + ji] = …        blockize(ii)   =>
//   for io, jo:
//     B_o (vi_o, vj_o):  for ii, ji: B (vi_i, vj_i): B[vi_o*4 + vi_i, vj_o*8 + vj_i] = …
// Each variable of the block is divided: its binding is outer * n + inner, where the loops inside
// give the values 0 to n - 1 of `inner`, and the loops outside give `outer`.
#include "schedule/internal.h"

typedef struct DividedVar {
  const BlockVar *var;
  bool has_inner, has_outer;
  Expr *count;         // n
  Expr *inner, *outer; // in terms of the loops
  Expr *outer_extent;
  Expr *outer_var, *inner_var;
  Expr *value; // the old variable, in terms of the new ones
} DividedVar;

typedef struct Blockize {
  Schedule *schedule;
  Path path;
  int depth; // of the loop
  const Block *block;
  bool keep_units;
  Analyzer *analyzer; // has the facts of all loops of the path
  Map unit_loops;     // loops inside with one iteration to its value
  VarRange *inner, *outer;
  int inner_count, outer_count;
  DividedVar *vars;
  ExprArray conditions; // over the old variables, without those of their domains
} Blockize;

static SourcePos pos_of(const Blockize *b) {
  return path_end(&b->path)->pos;
}

static bool uses_some(const Expr *e, const VarRange *loops, int count) {
  for (int i = 0; i < count; i++)
    if (expr_uses(e, loops[i].var)) return true;
  return false;
}

// ---- Dividing the variables ------------------------------------------------------------------

// base / count, for a base that the loops outside make a multiple of it; NULL when that is not
// proved.
static Expr *quotient(Blockize *b, Expr *base, Expr *count) {
  Context *context = b->schedule->context;
  int64_t n, *coefficients = arena_array(&context->arena, int64_t, b->outer_count + 1);
  Expr **loops = arena_array(&context->arena, Expr *, b->outer_count + 1);
  for (int i = 0; i < b->outer_count; i++) loops[i] = b->outer[i].var;
  Expr *rest, *sum = expr_floor_div(context, base, count);
  bool linear = b->keep_units && expr_as_int(count, &n) && n > 0 &&
                linear_form(context, base, loops, b->outer_count, coefficients, &rest);
  for (int i = 0; i < b->outer_count && linear; i++) linear = coefficients[i] % n == 0;
  if (linear) { // keeps loops of one iteration, which simplification would replace by their value
    sum = analyzer_simplify(b->analyzer, expr_floor_div(context, rest, count));
    for (int i = 0; i < b->outer_count; i++)
      if (coefficients[i])
        sum = expr_add(
            context,
            expr_mul(context, loops[i], expr_int(context, loops[i]->type, coefficients[i] / n)),
            sum);
  } else {
    sum = analyzer_simplify(b->analyzer, sum);
  }
  return analyzer_prove_equal(b->analyzer, expr_mul(context, sum, count), base) ? sum : NULL;
}

static Expr *suffixed(Context *context, const Expr *var, const char *suffix) {
  return expr_var(context, arena_printf(&context->arena, "%s%s", var->as.var->name, suffix),
                  var->type);
}

// Divides a binding that is linear in the loops inside, which cover exactly 0 to n - 1.
static bool divide_mixed(Blockize *b, DividedVar *d) {
  Context *context = b->schedule->context;
  const BlockVar *v = d->var;
  Expr **loops = arena_array(&context->arena, Expr *, b->inner_count + 1), *base, *min, *extent;
  int64_t *coefficients = arena_array(&context->arena, int64_t, b->inner_count + 1);
  bool exact;
  for (int i = 0; i < b->inner_count; i++) loops[i] = b->inner[i].var;
  if (!linear_form(context, v->binding, loops, b->inner_count, coefficients, &base)) return false;
  d->inner = analyzer_simplify(b->analyzer, expr_sub(context, v->binding, base));
  index_region(b->analyzer, &d->inner, 1, b->inner, b->inner_count, &min, &extent, &exact);
  if (!min || !exact || !expr_is_int(analyzer_simplify(b->analyzer, min), 0)) return false;
  d->count = analyzer_simplify(b->analyzer, extent);
  d->outer = quotient(b, base, d->count);
  if (!d->outer || !expr_is_int(v->min, 0)) return false;
  Expr *one = expr_int(context, d->count->type, 1);
  Expr *up = expr_sub(context, expr_add(context, v->extent, d->count), one);
  d->outer_extent = analyzer_simplify(b->analyzer, expr_floor_div(context, up, d->count));
  return true;
}

static bool divide_variable(Blockize *b, DividedVar *d) {
  Context *context = b->schedule->context;
  const BlockVar *v = d->var;
  DType type = v->var->type;
  Expr *binding = substitute_expr(context, v->binding, &b->unit_loops);
  d->has_inner = uses_some(binding, b->inner, b->inner_count);
  d->has_outer = uses_some(binding, b->outer, b->outer_count);
  if (!d->has_inner) {
    d->outer_var = d->value = v->var;
    d->outer = binding;
    d->outer_extent = v->extent;
    return true;
  }
  d->outer_var = suffixed(context, v->var, "_o");
  d->inner_var = suffixed(context, v->var, "_i");
  if (d->has_outer) {
    if (!divide_mixed(b, d)) return false;
  } else {
    d->inner = v->binding;
    d->outer = expr_int(context, type, 0);
    d->outer_extent = expr_int(context, type, 1);
    d->count = v->extent;
  }
  d->value = d->inner_var;
  if (!expr_is_int(d->outer_extent, 1))
    d->value = expr_add(context, expr_mul(context, d->outer_var, d->count), d->inner_var);
  d->value = expr_cast(context, type, d->value);
  return true;
}

static bool divide_variables(Blockize *b) {
  Context *context = b->schedule->context;
  b->vars = arena_array(&context->arena, DividedVar, b->block->var_count);
  for (int i = 0; i < b->block->var_count; i++) {
    b->vars[i] = (DividedVar){.var = &b->block->vars[i]};
    if (!divide_variable(b, &b->vars[i]))
      return schedule_refuse(
          b->schedule, pos_of(b),
          "the binding of variable '%s' of block '%s' is not proved to be a part of "
          "the loops outside times the extent of a part of the loops inside",
          b->block->vars[i].var->as.var->name, b->block->name);
  }
  return true;
}

// ---- Conditions ------------------------------------------------------------------------------

static bool uses_inner_var(const Blockize *b, const Expr *condition) {
  for (int i = 0; i < b->block->var_count; i++)
    if (b->vars[i].has_inner && expr_uses(condition, b->vars[i].var->var)) return true;
  return false;
}

// The conditions on variables that no loop inside changes, over the loops outside.
static Expr *outer_predicate(const Blockize *b) {
  Context *context = b->schedule->context;
  Expr *all = expr_bool(context, true);
  for (int i = 0; i < b->block->var_count; i++) {
    const DividedVar *d = &b->vars[i];
    Expr *min = d->has_inner ? expr_index(context, 0) : d->var->min;
    Expr *end = expr_add(context, min, d->outer_extent);
    all = condition_and(context, all, analyzer_unproved_within(b->analyzer, d->outer, min, end));
  }
  Map bindings = bindings_of(context, b->block);
  for (int i = 0; i < b->conditions.count; i++)
    if (!uses_inner_var(b, b->conditions.items[i]))
      all =
          condition_and(context, all, substitute_expr(context, b->conditions.items[i], &bindings));
  return all;
}

// The other conditions, over the outer block's variables and the loops inside. `to` has the
// variables of loops; variables of the reduction are at their start when `start` is true.
static Expr *inner_predicate(const Blockize *b, const Map *to, bool start) {
  Context *context = b->schedule->context;
  Expr *all = expr_bool(context, true);
  Map values = map_new(&context->arena);
  Analyzer *analyzer = path_analyzer(b->schedule, &b->path, b->path.count - 1);
  for (int i = 0; i < b->block->var_count; i++) {
    const DividedVar *d = &b->vars[i];
    const BlockVar *v = d->var;
    bool at_start = start && v->kind == ITER_REDUCTION;
    analyzer_bind(analyzer, d->outer_var, d->has_inner ? expr_index(context, 0) : v->min,
                  d->outer_extent);
    Map inner = map_new(&context->arena);
    if (d->inner_var) map_put(&inner, d->inner_var, d->inner);
    Expr *value = at_start ? v->min : substitute_expr(context, d->value, &inner);
    map_put(&values, v->var, value);
    if (at_start || !d->has_inner) continue;
    Expr *end = expr_add(context, v->min, v->extent);
    all = condition_and(context, all, analyzer_unproved_within(analyzer, value, v->min, end));
  }
  for (int i = 0; i < b->conditions.count; i++)
    if (uses_inner_var(b, b->conditions.items[i]))
      all = condition_and(context, all, substitute_expr(context, b->conditions.items[i], &values));
  return substitute_expr(context, all, to);
}

// ---- The blocks ------------------------------------------------------------------------------

// The block with its contents in terms of the new variables: those inside only, or, for an init,
// without the reduction's.
static Stmt *inner_block(const Blockize *b, const Map *loops, bool is_init, Str name, Stmt *body,
                         Stmt *init) {
  Context *context = b->schedule->context;
  Block *copy = is_init ? arena_new(&context->arena, Block) : block_copy(context, b->block);
  Map values = map_new(&context->arena);
  Analyzer *analyzer = analyzer_new(context);
  copy->name = name;
  copy->vars = arena_array(&context->arena, BlockVar, b->block->var_count);
  copy->var_count = 0;
  for (int i = 0; i < b->block->var_count; i++) {
    const DividedVar *d = &b->vars[i];
    BlockVar v = *d->var;
    analyzer_bind(analyzer, d->outer_var, d->has_inner ? expr_index(context, 0) : v.min,
                  d->outer_extent);
    if (!d->has_inner || (is_init && v.kind == ITER_REDUCTION)) continue;
    v.var = is_init ? suffixed(context, d->var->var, "_init") : d->inner_var;
    v.min = d->has_outer ? expr_int(context, v.var->type, 0) : v.min;
    v.extent = expr_cast(context, v.var->type, d->count);
    v.binding = expr_cast(context, v.var->type, substitute_expr(context, d->inner, loops));
    analyzer_bind_kept(analyzer, v.var, v.min, v.extent);
    Map inner = map_new(&context->arena);
    map_put(&inner, d->inner_var, v.var);
    map_put(&values, d->var->var, substitute_expr(context, d->value, &inner));
    copy->vars[copy->var_count++] = v;
  }
  copy->predicate = inner_predicate(b, loops, is_init);
  copy->init = init;
  copy->body = body;
  block_substitute(context, copy, &values);
  copy->init = stmt_simplify_indices(context, analyzer, copy->init);
  copy->body = stmt_simplify_indices(context, analyzer, copy->body);
  copy = block_with_regions(context, copy);
  return is_init ? stmt_block(context, copy) : stmt_with_block(context, path_end(&b->path), copy);
}

static bool feeds_spatial(const Blockize *b, const Expr *loop_var) {
  for (int i = 0; i < b->block->var_count; i++)
    if (b->vars[i].has_inner && b->vars[i].var->kind != ITER_REDUCTION &&
        expr_uses(b->vars[i].inner, loop_var))
      return true;
  return false;
}

// The loops inside that spatial variables use, anew, around a block of the init.
static Stmt *outer_init(const Blockize *b) {
  Context *context = b->schedule->context;
  Map fresh = map_new(&context->arena);
  for (int i = 0; i < b->inner_count; i++) {
    Expr *var = b->inner[i].var;
    bool spatial = feeds_spatial(b, var);
    map_put(&fresh, var,
            spatial ? expr_var(context, var->as.var->name, var->type) : b->inner[i].min);
  }
  Str name =
      schedule_unique_name(b->schedule, arena_printf(&context->arena, "%s_init", b->block->name));
  Stmt *init = stmt_renew(context, b->block->init);
  Stmt *s = inner_block(b, &fresh, true, name, init, NULL);
  for (int i = b->path.count - 2; i >= b->depth; i--) {
    Stmt *loop = b->path.items[i];
    if (!feeds_spatial(b, loop->as.loop.var)) continue;
    s = loop_like(context, loop, map_find(&fresh, loop->as.loop.var), loop->as.loop.min,
                  loop->as.loop.extent, s);
  }
  return s;
}

// Ends the regions where their buffers end: a last tile may be cut off there.
static void clip_regions(Analyzer *analyzer, Context *context, Region *regions, int count) {
  for (int i = 0; i < count; i++) {
    Region *r = &regions[i];
    r->extent = arena_copy(&context->arena, r->extent, sizeof *r->extent * (size_t)r->buffer->rank);
    for (int d = 0; d < r->buffer->rank; d++) {
      Expr *shape = expr_cast(context, r->min[d]->type, r->buffer->shape[d]);
      Expr *extent = expr_cast(context, shape->type, r->extent[d]);
      Expr *left = expr_sub(context, shape, r->min[d]);
      if (analyzer_prove(analyzer, expr_binary(context, EXPR_LE, extent, left)) ||
          !analyzer_prove(analyzer, expr_lt(context, r->min[d], shape)))
        continue;
      r->extent[d] = analyzer_simplify(analyzer, expr_binary(context, EXPR_MIN, extent, left));
    }
  }
}

static Stmt *outer_block(const Blockize *b, Str name) {
  Context *context = b->schedule->context;
  Block *block = arena_new(&context->arena, Block);
  Map none = map_new(&context->arena);
  bool reduces = b->block->init && block_is_reduction(b->block);
  block->name = name;
  block->var_count = b->block->var_count;
  block->vars = arena_array(&context->arena, BlockVar, block->var_count);
  for (int i = 0; i < block->var_count; i++) {
    const DividedVar *d = &b->vars[i];
    DType type = d->outer_var->type;
    block->vars[i] = *d->var;
    block->vars[i].var = d->outer_var;
    block->vars[i].min = d->has_inner ? expr_int(context, type, 0) : d->var->min;
    block->vars[i].extent = expr_cast(context, type, d->outer_extent);
    block->vars[i].binding = expr_cast(context, type, d->outer);
  }
  block->predicate = outer_predicate(b);
  block->init = reduces ? outer_init(b) : NULL;
  Stmt *s =
      inner_block(b, &none, false, b->block->name, b->block->body, reduces ? NULL : b->block->init);
  block->body = path_with_end(context, &b->path, b->depth, s);
  block = block_with_regions(context, block);
  Analyzer *analyzer = analyzer_new(context);
  block_bind_domain(analyzer, block);
  clip_regions(analyzer, context, block->reads, block->read_count);
  clip_regions(analyzer, context, block->writes, block->write_count);
  return stmt_block(context, block);
}

// ---- The step --------------------------------------------------------------------------------

// Finds the only block below the loop, and the loops inside and outside.
static bool blockize_begin(Schedule *schedule, LoopRef loop, bool keep_units, Blockize *b) {
  Context *context = schedule->context;
  Path to_loop;
  StmtArray blocks = {0};
  *b = (Blockize){.schedule = schedule, .keep_units = keep_units};
  if (!schedule_find_loop(schedule, loop, &to_loop)) return false;
  b->depth = to_loop.count - 1;
  blocks_below(&context->arena, path_end(&to_loop), &blocks);
  bool alone = blocks.count == 1 && path_to_stmt(schedule, blocks.items[0], &b->path);
  for (int i = b->depth; alone && i < b->path.count - 1; i++)
    alone = b->path.items[i]->kind == STMT_FOR;
  if (!alone)
    return schedule_refuse(schedule, path_end(&to_loop)->pos,
                           "loop '%s' must have exactly one block below it, and nothing else",
                           loop->as.var->name);
  b->block = path_end(&b->path)->as.block;
  b->analyzer = path_analyzer(schedule, &b->path, b->path.count - 1);
  VarRange *ranges;
  int count = path_ranges(schedule, &b->path, b->path.count - 1, &ranges);
  b->inner_count = b->path.count - 1 - b->depth;
  b->outer_count = count - b->inner_count;
  b->outer = ranges;
  b->inner = ranges + b->outer_count;
  b->unit_loops = map_new(&context->arena);
  for (int i = 0; i < b->inner_count; i++)
    if (expr_is_int(b->inner[i].extent, 1))
      map_put(&b->unit_loops, b->inner[i].var, b->inner[i].min);
  const char *why = bindings_check(b->analyzer, b->block, ranges, count);
  return !why || schedule_refuse(schedule, pos_of(b),
                                 "the loops of block '%s' are not proved to run over its domain: "
                                 "%s",
                                 b->block->name, why);
}

static bool check_loops(Blockize *b) {
  Schedule *schedule = b->schedule;
  ExprArray of_domain = {0};
  for (int i = 0; i < b->inner_count; i++) {
    const Stmt *loop = b->path.items[b->depth + i];
    for (int k = 0; k < b->outer_count; k++)
      if (loop_bounds_use(loop, b->outer[k].var))
        return schedule_refuse(schedule, loop->pos,
                               "the extent of loop '%s' depends on a loop outside",
                               loop_name(loop));
  }
  return predicate_divide(schedule, &b->path, &of_domain, &b->conditions) ||
         schedule_refuse(schedule, pos_of(b),
                         "the predicate of block '%s' is not one of its variables", b->block->name);
}

// True when the update reads the buffers that the init sets at no other elements, so that all of
// them may be set before.
static bool check_init(const Blockize *b) {
  const Block *block = b->block;
  ReductionUpdate update;
  if (!block->init || !block_is_reduction(block)) return true;
  if (block_init_is_partial(block)) return refuse_partial_init(b->schedule, pos_of(b), block);
  if (refuse_late_init(b->schedule, pos_of(b), block)) return false;
  return reduction_update(block, &update) ||
         schedule_refuse(b->schedule, pos_of(b), "block '%s' is not a reduction of one term",
                         block->name);
}

bool schedule_blockize(Schedule *schedule, LoopRef loop, bool keep_units, BlockRef *out) {
  Context *context = schedule->context;
  Blockize b;
  if (!blockize_begin(schedule, loop, keep_units, &b) || !check_loops(&b) || !check_init(&b) ||
      !divide_variables(&b))
    return false;
  *out = schedule_unique_name(schedule, arena_printf(&context->arena, "%s_o", b.block->name));
  schedule_set_body(schedule, path_replace(context, &b.path, b.depth, outer_block(&b, *out)));
  return true;
}

bool step_blockize(Schedule *schedule, StepCall *call) {
  BlockRef block;
  bool keep_units = value_is_true(&call->args[1]);
  if (!schedule_blockize(schedule, call->args[0].as.loop, keep_units, &block)) return false;
  step_result(schedule, call, value_block(block));
  return true;
}
