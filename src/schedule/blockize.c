// SPDX-License-Identifier: Apache-2.0
// Implements blockize, which makes the loops around a block, from one loop on, the body of a new
// block:
//   for io, jo, ii, ji: B[io*4 + ii, jo*8 + ji] = …        blockize(ii)   =>
//   for io, jo:
//     B_o (vi_o, vj_o):  for ii, ji: B (vi_i, vj_i): B[vi_o*4 + vi_i, vj_o*8 + vj_i] = …
// Each variable of the block is divided: its binding is outer * n + inner, where the loops inside
// give the values 0 to n - 1 of `inner`, and the loops outside give `outer`. Several blocks, in
// nests that follow one another, get one block around them.
#include "schedule/internal.h"

typedef struct DividedVar {
  const BlockVar *var;
  bool has_inner, has_outer;
  Expr *count;         // n
  Expr *inner, *outer; // in terms of the loops
  Expr *outer_min, *outer_extent;
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
    Expr *quotients = NULL;
    for (int i = 0; i < b->outer_count; i++) {
      if (!coefficients[i]) continue;
      Expr *term =
          expr_mul(context, loops[i], expr_int(context, loops[i]->type, coefficients[i] / n));
      quotients = quotients ? expr_add(context, quotients, term) : term;
    }
    sum = analyzer_simplify(b->analyzer, expr_floor_div(context, rest, count));
    if (quotients) sum = expr_add(context, quotients, sum);
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
  d->outer_min = quotient(b, v->min, d->count);
  if (!d->outer || !d->outer_min) return false;
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
  d->has_inner = expr_uses_ranges(binding, b->inner, b->inner_count);
  d->has_outer = expr_uses_ranges(binding, b->outer, b->outer_count);
  if (!d->has_inner) {
    d->outer_var = d->value = v->var;
    d->outer = binding;
    d->outer_min = v->min;
    d->outer_extent = v->extent;
    return true;
  }
  d->outer_var = suffixed(context, v->var, "_o");
  d->inner_var = suffixed(context, v->var, "_i");
  if (d->has_outer) {
    if (!divide_mixed(b, d)) return false;
  } else {
    d->inner = v->binding;
    d->outer = d->outer_min = expr_int(context, type, 0);
    d->outer_extent = expr_int(context, type, 1);
    d->count = v->extent;
  }
  d->value = d->inner_var;
  if (!expr_is_int(d->outer_extent, 1) || !expr_is_int(d->outer_min, 0))
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
    Expr *end = expr_add(context, d->outer_min, d->outer_extent);
    all = condition_and(context, all,
                        analyzer_unproved_within(b->analyzer, d->outer, d->outer_min, end));
  }
  Map bindings = bindings_of(context, b->block);
  for (int i = 0; i < b->conditions.count; i++)
    if (!uses_inner_var(b, b->conditions.items[i]))
      all =
          condition_and(context, all, substitute_expr(context, b->conditions.items[i], &bindings));
  return substitute_expr(context, all, &b->unit_loops);
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
    analyzer_bind(analyzer, d->outer_var, d->outer_min, d->outer_extent);
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
    analyzer_bind(analyzer, d->outer_var, d->outer_min, d->outer_extent);
    if (!d->has_inner && d->value != v.var) map_put(&values, v.var, d->value);
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

static BlockVar outer_variable(Context *context, const DividedVar *d) {
  DType type = d->outer_var->type;
  BlockVar v = *d->var;
  v.var = d->outer_var;
  v.min = expr_cast(context, type, d->outer_min);
  v.extent = expr_cast(context, type, d->outer_extent);
  v.binding = expr_cast(context, type, d->outer);
  return v;
}

static Stmt *block_with_clipped_regions(Context *context, Block *block) {
  block = block_with_regions(context, block);
  Analyzer *analyzer = analyzer_new(context);
  block_bind_domain(analyzer, block);
  clip_regions(analyzer, context, block->reads, block->read_count);
  clip_regions(analyzer, context, block->writes, block->write_count);
  return stmt_block(context, block);
}

static Stmt *outer_block(const Blockize *b, Str name) {
  Context *context = b->schedule->context;
  Block *block = arena_new(&context->arena, Block);
  Map none = map_new(&context->arena);
  bool reduces = b->block->init && block_is_reduction(b->block);
  block->name = name;
  block->var_count = b->block->var_count;
  block->vars = arena_array(&context->arena, BlockVar, block->var_count);
  for (int i = 0; i < block->var_count; i++) block->vars[i] = outer_variable(context, &b->vars[i]);
  block->predicate = outer_predicate(b);
  block->init = reduces ? outer_init(b) : NULL;
  Stmt *s =
      inner_block(b, &none, false, b->block->name, b->block->body, reduces ? NULL : b->block->init);
  block->body = path_with_end(context, &b->path, b->depth, s);
  return block_with_clipped_regions(context, block);
}

// ---- The step --------------------------------------------------------------------------------

static bool uses_loop(const Block *block, const Expr *loop) {
  for (int i = 0; i < block->var_count; i++)
    if (expr_uses(block->vars[i].binding, loop)) return true;
  return expr_uses(block->predicate, loop);
}

// The block for the check of its loops: a variable that none of them changes, such as one of a loop
// around the scope, has only its value in its domain.
static const Block *within_scope(const Blockize *b, const VarRange *loops, int count) {
  Context *context = b->schedule->context;
  Block *copy = block_copy(context, b->block);
  copy->vars =
      arena_copy(&context->arena, copy->vars, sizeof *copy->vars * (size_t)copy->var_count);
  for (int i = 0; i < copy->var_count; i++) {
    BlockVar *v = &copy->vars[i];
    if (expr_uses_ranges(v->binding, loops, count)) continue;
    v->min = v->binding;
    v->extent = expr_int(context, v->extent->type, 1);
  }
  return copy;
}

// Finds the loops inside and outside of items[depth] of the path to the block. Loops outside that
// the block does not use repeat it, which is refused unless `repeats`.
static bool read_loops(Blockize *b, bool repeats) {
  Schedule *schedule = b->schedule;
  Context *context = schedule->context;
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
  VarRange *used = arena_array(&context->arena, VarRange, count + 1);
  int used_count = 0;
  for (int i = 0; i < count; i++)
    if (!repeats || i >= b->outer_count || uses_loop(b->block, ranges[i].var))
      used[used_count++] = ranges[i];
  const Block *check = within_scope(b, used, used_count);
  const char *why = bindings_check(b->analyzer, check, used, used_count);
  return !why || schedule_refuse(schedule, pos_of(b),
                                 "the loops of block '%s' are not proved to run over its domain: "
                                 "%s",
                                 b->block->name, why);
}

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
  return read_loops(b, false);
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

// True when points within the new block that are not of the same reduction write different
// elements: the init of one would else run again after updates by another.
static bool reduces_apart(const Blockize *b) {
  const Block *block = b->block;
  bool *varying = arena_array(&b->schedule->context->arena, bool, block->var_count + 1);
  for (int i = 0; i < block->var_count; i++) varying[i] = b->vars[i].has_inner;
  return !block->init || block_writes_apart(b->schedule, block, varying) ||
         schedule_refuse(b->schedule, pos_of(b),
                         "different points of block '%s' may write the same element, which is set "
                         "anew by its init",
                         block->name);
}

static bool blockize_loop(Schedule *schedule, LoopRef loop, bool keep_units, BlockRef *out) {
  Context *context = schedule->context;
  Blockize b;
  if (!blockize_begin(schedule, loop, keep_units, &b) || !check_loops(&b) || !check_init(&b) ||
      !divide_variables(&b) || !reduces_apart(&b))
    return false;
  *out = schedule_unique_name(schedule, arena_printf(&context->arena, "%s_o", b.block->name));
  schedule_set_body(schedule, path_replace(context, &b.path, b.depth, outer_block(&b, *out)));
  return true;
}

// ---- Several blocks --------------------------------------------------------------------------

typedef struct BlockizedList {
  Schedule *schedule;
  Blockize *parts; // in the order of the program
  int count;
  int depth;            // of the nests in the paths
  Array(BlockVar) vars; // of the block around them
} BlockizedList;

static int nest_number(const BlockizedList *l, int part) {
  return l->parts[part].path.child[l->depth - 1];
}

// Finds the blocks, whose nests must follow one another in a sequence.
static bool find_nests(BlockizedList *l, const StepValue *list) {
  Schedule *schedule = l->schedule;
  for (int i = 0; i < l->count; i++) {
    const StepValue *item = &list->as.list.items[i];
    Path path;
    if (item->kind != VALUE_BLOCK)
      return schedule_refuse(schedule, schedule->func->pos, "a list has blocks or their names");
    if (!schedule_find_block(schedule, item->as.block, &path)) return false;
    int at = i;
    for (; at > 0 && path_precedes(&path, &l->parts[at - 1].path); at--)
      l->parts[at] = l->parts[at - 1];
    l->parts[at].path = path;
  }
  const Path *first = &l->parts[0].path;
  l->depth = first->count - 1;
  for (int i = 1; i < l->count; i++) {
    const Path *other = &l->parts[i].path;
    int same = 0;
    while (same < first->count && same < other->count && first->items[same] == other->items[same])
      same++;
    l->depth = i > 1 && same != l->depth ? 0 : same;
  }
  bool follow = l->count == 1 || (l->depth > 0 && first->items[l->depth - 1]->kind == STMT_SEQ);
  for (int i = 1; i < l->count && follow; i++) follow = nest_number(l, i) == nest_number(l, 0) + i;
  return follow || schedule_refuse(schedule, path_end(first)->pos,
                                   "the nests of the blocks do not follow one another in one "
                                   "sequence");
}

static bool divide_part(BlockizedList *l, Blockize *b, bool keep_units) {
  Path path = b->path;
  *b = (Blockize){
      .schedule = l->schedule, .path = path, .depth = l->depth, .keep_units = keep_units};
  for (int i = l->depth; i < path.count - 1; i++)
    if (path.items[i]->kind != STMT_FOR)
      return schedule_refuse(l->schedule, path.items[i]->pos,
                             "there is another statement in the loops of block '%s'",
                             path_end(&path)->as.block->name);
  if (!read_loops(b, true) || !check_loops(b) || !divide_variables(b)) return false;
  for (int i = 0; i < b->block->var_count; i++)
    if (b->block->init && b->block->vars[i].kind == ITER_REDUCTION && b->vars[i].has_outer)
      return schedule_refuse(l->schedule, pos_of(b),
                             "a loop around the blocks belongs to the reduction of block '%s'",
                             b->block->name);
  return true;
}

// The variable of the block around the blocks that has this value; NULL: there is none.
static Expr *known_variable(const BlockizedList *l, const BlockVar *v) {
  for (int i = 0; i < l->vars.count; i++) {
    const BlockVar *known = &l->vars.items[i];
    if (known->kind == v->kind && known->binding == v->binding && known->min == v->min &&
        known->extent == v->extent)
      return known->var;
  }
  return NULL;
}

// Adds the outer variables of a block that no block before it has.
static void share_variables(BlockizedList *l, Blockize *b, bool first) {
  Context *context = l->schedule->context;
  for (int i = 0; i < b->block->var_count; i++) {
    DividedVar *d = &b->vars[i];
    BlockVar v = outer_variable(context, d);
    Expr *known = first ? NULL : expr_is_int(v.extent, 1) ? v.min : known_variable(l, &v);
    if (!known) {
      array_push(&context->arena, &l->vars, v);
      continue;
    }
    Map shared = map_new(&context->arena);
    map_put(&shared, d->outer_var, known);
    d->value = substitute_expr(context, d->value, &shared);
    if (known->op == EXPR_VAR) d->outer_var = known;
  }
}

static Stmt *block_around(BlockizedList *l, Str name) {
  Context *context = l->schedule->context;
  Block *block = arena_new(&context->arena, Block);
  Stmt **nests = arena_array(&context->arena, Stmt *, l->count);
  Map none = map_new(&context->arena);
  for (int i = 0; i < l->count; i++) {
    const Blockize *b = &l->parts[i];
    Stmt *s = inner_block(b, &none, false, b->block->name, b->block->body, b->block->init);
    nests[i] = path_with_end(context, &b->path, b->depth, s);
  }
  block->name = name;
  block->vars = l->vars.items;
  block->var_count = l->vars.count;
  block->predicate = outer_predicate(&l->parts[0]);
  block->body = stmt_seq(context, nests, l->count);
  return block_with_clipped_regions(context, block);
}

// The blocks in one block, whose variables are the parts of theirs that the loops outside give.
static bool blockize_list(Schedule *schedule, const StepValue *list, bool keep_units,
                          BlockRef *out) {
  Context *context = schedule->context;
  BlockizedList l = {schedule, arena_array(&context->arena, Blockize, list->as.list.count + 1),
                     list->as.list.count};
  if (!l.count) return schedule_refuse(schedule, schedule->func->pos, "the list has no block");
  if (!find_nests(&l, list)) return false;
  const char *name = "outer_";
  for (int i = 0; i < l.count; i++) {
    Blockize *b = &l.parts[i];
    if (!divide_part(&l, b, keep_units)) return false;
    if (outer_predicate(b) != outer_predicate(&l.parts[0]))
      return schedule_refuse(schedule, pos_of(b),
                             "blocks '%s' and '%s' are left out for different iterations of the "
                             "loops outside",
                             l.parts[0].block->name, b->block->name);
    name = arena_printf(&context->arena, "%s%s_", name, b->block->name);
  }
  for (int i = 0; i < l.count; i++) share_variables(&l, &l.parts[i], i == 0);
  *out = schedule_unique_name(schedule, name);
  Stmt *around = block_around(&l, *out);
  const Path *path = &l.parts[0].path;
  if (l.count == 1) {
    schedule_set_body(schedule, path_replace(context, path, l.depth, around));
    return true;
  }
  const Stmt *seq = path->items[l.depth - 1];
  Stmt **items = arena_array(&context->arena, Stmt *, seq->as.seq.count);
  int count = 0, from = nest_number(&l, 0);
  for (int i = 0; i < seq->as.seq.count; i++)
    if (i <= from || i >= from + l.count)
      items[count++] = i == from ? around : seq->as.seq.items[i];
  Stmt *rest = stmt_seq(context, items, count);
  schedule_set_body(schedule, path_replace(context, path, l.depth - 1, rest));
  return true;
}

bool schedule_blockize_target(Schedule *schedule, const StepValue *target, bool keep_units,
                              BlockRef *out) {
  return target->kind == VALUE_LIST ? blockize_list(schedule, target, keep_units, out)
                                    : blockize_loop(schedule, target->as.loop, keep_units, out);
}

bool step_blockize(Schedule *schedule, StepCall *call) {
  BlockRef block;
  bool keep_units = value_is_true(&call->args[1]);
  if (!schedule_blockize_target(schedule, &call->args[0], keep_units, &block)) return false;
  step_result(schedule, call, value_block(block));
  return true;
}
