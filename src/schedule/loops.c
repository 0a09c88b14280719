// SPDX-License-Identifier: Apache-2.0
// Implements the steps that change loops: split, fuse, reorder and add_unit_loop.
//   split     for i in 30: …i…         =>  for i_0, i_1 in (8, 4): …i_0*4 + i_1… where < 30
//   fuse      for i in 5: for j in 7:  =>  for i_j in 35: …i_j // 7…, …i_j % 7…
//   reorder   the loops of a chain in another order, when all dependences keep their direction
#include "schedule/internal.h"

// ---- Loops of one iteration in bindings --------------------------------------------------------

static Stmt *bind_without_units(void *env, Stmt *s) {
  Schedule *schedule = env;
  Context *context = schedule->context;
  Path path;
  VarRange *loops;
  path_to_stmt(schedule, s, &path);
  int count = path_ranges(schedule, &path, path.count - 1, &loops);
  Map units = map_new(&context->arena);
  for (int i = 0; i < count; i++)
    if (expr_is_int(loops[i].extent, 1)) map_put(&units, loops[i].var, loops[i].min);
  Block *copy = block_copy(context, s->as.block);
  copy->vars =
      arena_copy(&context->arena, copy->vars, sizeof *copy->vars * (size_t)copy->var_count);
  for (int i = 0; i < copy->var_count; i++)
    copy->vars[i].binding = substitute_expr(context, copy->vars[i].binding, &units);
  return stmt_with_block(context, s, copy);
}

void loop_drop_unit_iters(Schedule *schedule, LoopRef loop, const StepValue *keep) {
  Path path;
  if (value_is_true(keep) || !path_to_loop(schedule, loop, &path)) return;
  Stmt *s = stmt_map_blocks(schedule->context, path_end(&path), bind_without_units, schedule);
  schedule_set_body(schedule, path_replace(schedule->context, &path, path.count - 1, s));
}

// ---- Split -----------------------------------------------------------------------------------

// The bindings of a block as the analyzer writes them; loops of one iteration stay in them.
static Stmt *simplify_bindings(void *env, Stmt *s) {
  Schedule *schedule = env;
  Context *context = schedule->context;
  Path path;
  VarRange *loops;
  path_to_stmt(schedule, s, &path);
  int count = path_ranges(schedule, &path, path.count - 1, &loops);
  Analyzer *analyzer = analyzer_new(context);
  for (int i = 0; i < count; i++)
    analyzer_bind_kept(analyzer, loops[i].var, loops[i].min, loops[i].extent);
  Block *copy = block_copy(context, s->as.block);
  copy->vars =
      arena_copy(&context->arena, copy->vars, sizeof *copy->vars * (size_t)copy->var_count);
  for (int i = 0; i < copy->var_count; i++)
    copy->vars[i].binding = analyzer_simplify(analyzer, copy->vars[i].binding);
  return stmt_with_block(context, s, copy);
}

static void loop_simplify_bindings(Schedule *schedule, LoopRef loop) {
  Path path;
  if (!path_to_loop(schedule, loop, &path)) return;
  Stmt *s = stmt_map_blocks(schedule->context, path_end(&path), simplify_bindings, schedule);
  schedule_set_body(schedule, path_replace(schedule->context, &path, path.count - 1, s));
}

typedef struct Split {
  Schedule *schedule;
  Stmt *loop;
  int count;
  Expr **extents;
  Expr *value;    // the old loop's variable in terms of the new ones
  Expr *in_range; // NULL: always true
} Split;

// How many parts of `size` iterations the extent has: without rounding where it is proved to be a
// multiple of the size.
static Expr *parts_of(Context *context, Analyzer *analyzer, Expr *extent, int64_t number) {
  Expr *size = expr_int(context, extent->type, number);
  Expr *parts = analyzer_simplify(analyzer, expr_floor_div(context, extent, size));
  if (analyzer_prove_equal(analyzer, expr_mul(context, parts, size), extent)) return parts;
  Expr *up = expr_add(context, extent, expr_int(context, extent->type, number - 1));
  return expr_floor_div(context, up, size);
}

static bool split_factors(Split *split, Analyzer *analyzer, const StepValue *factors) {
  Schedule *schedule = split->schedule;
  Context *context = schedule->context;
  int open = -1;
  int64_t product = 1;
  const char *name = loop_name(split->loop);
  split->count = factors->as.list.count;
  if (!split->count)
    return schedule_refuse(schedule, split->loop->pos, "loop '%s': no factors were given", name);
  split->extents = arena_array(&context->arena, Expr *, split->count);
  for (int i = 0; i < split->count; i++) {
    const StepValue *f = &factors->as.list.items[i];
    bool none = f->kind == VALUE_NONE || (f->kind == VALUE_INT && f->as.i == -1);
    if (none && open >= 0)
      return schedule_refuse(schedule, split->loop->pos, "loop '%s': only one factor may be None",
                             name);
    if (none) {
      open = i;
      continue;
    }
    if (f->kind != VALUE_INT || f->as.i < 1 || !mul_fits(product, f->as.i, &product))
      return schedule_refuse(
          schedule, split->loop->pos,
          "loop '%s': factor %d is not a positive integer, or the factors are too large", name, i);
    split->extents[i] = expr_int(context, split->loop->as.loop.var->type, f->as.i);
  }
  if (open < 0) return true;
  split->extents[open] = parts_of(context, analyzer, split->loop->as.loop.extent, product);
  return true;
}

// Checks that the factors cover the extent, and sets the condition that excludes the points beyond
// it.
static bool split_covers(Split *split, Analyzer *analyzer) {
  Context *context = split->schedule->context;
  Expr *extent = split->loop->as.loop.extent, *product = expr_int(context, extent->type, 1);
  for (int i = 0; i < split->count; i++) product = expr_mul(context, product, split->extents[i]);
  if (analyzer_prove_equal(analyzer, product, extent)) return true;
  int64_t have, want;
  bool fixed = expr_as_int(product, &have) && expr_as_int(extent, &want);
  bool rounded_up = false; // the open factor was rounded up, so it covers the extent
  for (int i = 0; i < split->count; i++) rounded_up |= !fixed && split->extents[i]->op != EXPR_INT;
  split->in_range = expr_lt(context, split->value, extent);
  if (rounded_up || (fixed && have >= want)) return true;
  if (!fixed && analyzer_prove(analyzer, expr_binary(context, EXPR_GE, product, extent)))
    return true;
  const char *name = loop_name(split->loop);
  if (!fixed)
    return schedule_refuse(
        split->schedule, split->loop->pos,
        "loop '%s' has a symbolic extent, which the factors are not proved to reach; "
        "leave one factor None",
        name);
  return schedule_refuse(
      split->schedule, split->loop->pos,
      "the factors make %lld iterations of the %lld of loop '%s'; leave one None, or "
      "choose larger ones",
      (long long)have, (long long)want, name);
}

typedef struct Exclusion {
  Context *context;
  Expr *condition;
} Exclusion;

static Stmt *block_also_where(void *env, Stmt *s) {
  Exclusion *only = env;
  Block *copy = block_copy(only->context, s->as.block);
  copy->predicate = condition_and(only->context, copy->predicate, only->condition);
  return stmt_with_block(only->context, s, copy);
}

static bool find_memory(Visitor *visitor, Stmt *s) {
  bool *found = visitor->env;
  const Block *block = s->kind == STMT_BLOCK ? s->as.block : NULL;
  for (int i = 0; block && i < block->var_count; i++)
    *found |= expr_reads_memory(block->vars[i].binding);
  return !block;
}

static bool find_load(Visitor *visitor, Expr *e) {
  bool *found = visitor->env;
  *found |= expr_reads_memory(e);
  return false;
}

// True when loops, conditions or bindings below `s` read memory, which comes before the predicates
// of blocks.
static bool reads_memory_first(Stmt *s) {
  bool found = false;
  visit_stmt(&(Visitor){.env = &found, .enter_stmt = find_memory, .enter_expr = find_load}, s);
  return found;
}

Stmt *stmt_only_where(Context *context, Stmt *body, Expr *condition) {
  if (stmt_has_loose_stores(body) || reads_memory_first(body))
    return stmt_if(context, condition, body, NULL);
  return stmt_map_blocks(context, body, block_also_where, &(Exclusion){context, condition});
}

// The body with the loop's variable replaced, and with points beyond the extent excluded.
static Stmt *split_body(Split *split) {
  Context *context = split->schedule->context;
  Map vars = map_new(&context->arena);
  Expr *value = expr_add(context, split->loop->as.loop.min, split->value);
  map_put(&vars, split->loop->as.loop.var, value);
  Stmt *body = substitute_stmt(context, split->loop->as.loop.body, &vars, NULL);
  return split->in_range ? stmt_only_where(context, body, split->in_range) : body;
}

bool refuse_decorated(Schedule *schedule, const Stmt *loop) {
  return schedule_refuse(schedule, loop->pos, "loop '%s' is already %s; do this step before",
                         loop_name(loop),
                         loop->as.loop.kind == LOOP_SERIAL ? "annotated"
                                                           : "parallel, vectorized, unrolled "
                                                             "or bound");
}

bool step_split(Schedule *schedule, StepCall *call) {
  Path path;
  if (!schedule_find_loop(schedule, call->args[0].as.loop, &path)) return false;
  Context *context = schedule->context;
  Split split = {schedule, path_end(&path)};
  if (!loop_is_plain(split.loop)) return refuse_decorated(schedule, split.loop);
  Analyzer *analyzer = path_analyzer(schedule, &path, path.count - 1);
  if (!split_factors(&split, analyzer, &call->args[1])) return false;
  Expr *old = split.loop->as.loop.var, **vars = arena_array(&context->arena, Expr *, split.count);
  for (int i = 0; i < split.count; i++) {
    vars[i] = expr_var(context, str_format(context, "%s_%d", old->as.var->name, i), old->type);
    split.value =
        i == 0 ? vars[i]
               : expr_add(context, expr_mul(context, split.value, split.extents[i]), vars[i]);
  }
  if (!split_covers(&split, analyzer)) return false;
  if (split.in_range && call->args[3].kind == VALUE_BOOL && call->args[3].as.i)
    return schedule_refuse(schedule, split.loop->pos,
                           "loop '%s' needs a predicate, because the factors make more iterations "
                           "than it has; leave out disable_predication, or choose factors whose "
                           "product is its extent",
                           loop_name(split.loop));
  Stmt *s = split_body(&split);
  for (int i = split.count - 1; i >= 0; i--)
    s = loop_like(context, split.loop, vars[i], expr_index(context, 0), split.extents[i], s);
  schedule_set_body(schedule, path_replace(context, &path, path.count - 1, s));
  loop_drop_unit_iters(schedule, vars[0], &call->args[2]);
  loop_simplify_bindings(schedule, vars[0]);
  for (int i = 0; i < split.count; i++) step_result(schedule, call, value_loop(vars[i]));
  return true;
}

// ---- Fuse ------------------------------------------------------------------------------------

static bool check_neighbours(Schedule *schedule, const StepValue *loops, Path *path) {
  int count = loops->as.list.count;
  if (!schedule_find_loop(schedule, loops->as.list.items[count - 1].as.loop, path)) return false;
  int top = path->count - count;
  for (int i = 0; i < count; i++) {
    Stmt *loop = top < 0 ? NULL : path->items[top + i];
    LoopRef want = loops->as.list.items[i].as.loop;
    if (!loop || loop->kind != STMT_FOR || loop->as.loop.var != want)
      return schedule_refuse(schedule, path_end(path)->pos,
                             "loop '%s' is not directly around the next; reorder them first, "
                             "outermost first",
                             want->as.var->name);
    if (!loop_is_plain(loop)) return refuse_decorated(schedule, loop);
    for (int k = 0; k < i; k++)
      if (loop_bounds_use(loop, path->items[top + k]->as.loop.var))
        return schedule_refuse(schedule, loop->pos, "the extent of loop '%s' depends on loop '%s'",
                               loop_name(loop), loop_name(path->items[top + k]));
  }
  return true;
}

typedef struct FusedLoops {
  Context *context;
  Expr *fused, *rest; // the variable, and its part from the current loop outwards
  Expr *inside;       // the iterations of the loops inside of it
} FusedLoops;

// The index of the current loop, of which `extent` is NULL for the outermost. Digits of constant
// sizes are fused % (extent * inside) // inside, as in TVM. Those of symbolic sizes are a chain of
// divisions, from which addresses are simplified.
static Expr *fused_digit(const FusedLoops *parts, Expr *extent) {
  Context *context = parts->context;
  int64_t size;
  bool constant = expr_as_int(parts->inside, &size) && (!extent || expr_as_int(extent, &size));
  if (!constant) return extent ? expr_floor_mod(context, parts->rest, extent) : parts->rest;
  Expr *digit = parts->fused;
  if (extent) digit = expr_floor_mod(context, digit, expr_mul(context, extent, parts->inside));
  return expr_floor_div(context, digit, parts->inside);
}

// The block whose results would keep no init where a loop of its reduction has no iterations, since
// the loop over the data that becomes one with it has none then either; NULL: there is none.
static const Block *loses_init(Schedule *schedule, const Path *path, int top) {
  Context *context = schedule->context;
  StmtArray blocks = {0};
  Analyzer *analyzer = path_analyzer(schedule, path, top);
  blocks_below(&context->arena, path->items[top], &blocks);
  for (int b = 0; b < blocks.count; b++) {
    const Block *block = blocks.items[b]->as.block;
    bool moves = false, empty = false;
    for (int i = top; i < path->count; i++) {
      const Stmt *s = path->items[i];
      Expr *none = expr_int(context, s->as.loop.extent->type, 0);
      moves |= block_uses_loop(block, ITER_SPATIAL, s) && loop_const_extent(s) != 1;
      empty |= block_uses_loop(block, ITER_REDUCTION, s) &&
               !analyzer_prove(analyzer, expr_lt(context, none, s->as.loop.extent));
    }
    if (block->init && moves && empty) return block;
  }
  return NULL;
}

static DType widest_index(const Path *path, int top) {
  DType type = path->items[top]->as.loop.var->type;
  for (int i = top + 1; i < path->count; i++)
    if (path->items[i]->as.loop.var->type.bits > type.bits)
      type = path->items[i]->as.loop.var->type;
  return type;
}

bool step_fuse(Schedule *schedule, StepCall *call) {
  Context *context = schedule->context;
  StepValue *loops = &call->args[0];
  int count = loops->as.list.count;
  if (!count) return schedule_refuse(schedule, schedule->func->pos, "no loops were given");
  Path path;
  if (!check_neighbours(schedule, loops, &path)) return false;
  int top = path.count - count;
  const Block *lost = loses_init(schedule, &path, top);
  if (lost)
    return schedule_refuse(schedule, path_end(&path)->pos,
                           "a loop of the reduction of block '%s' may have no iterations, and its "
                           "init would then not run\ndecompose_reduction first, or assert that the "
                           "size is positive",
                           lost->name);
  Text name = text_new(&context->arena);
  for (int i = 0; i < count; i++) text_printf(&name, "%s_", loop_name(path.items[top + i]));
  text_puts(&name, "fused");
  DType type = widest_index(&path, top);
  Expr *fused = expr_var(context, text_string(&name), type);
  Expr *one = expr_int(context, type, 1), *iterations = one;
  FusedLoops parts = {context, fused, fused, one};
  Map vars = map_new(&context->arena);
  int first = 0; // the outermost loop with several iterations
  while (first < count - 1 && loop_const_extent(path.items[top + first]) == 1) first++;
  for (int i = count - 1; i >= 0; i--) {
    Stmt *loop = path.items[top + i];
    // Without iterations there is no index to divide, and a divisor must not be 0.
    Expr *extent = loop_const_extent(loop) == 0 ? one : loop->as.loop.extent;
    Expr *digit =
        i < first ? expr_int(context, type, 0) : fused_digit(&parts, i == first ? NULL : extent);
    digit = expr_add(context, digit, loop->as.loop.min);
    map_put(&vars, loop->as.loop.var, expr_cast(context, loop->as.loop.var->type, digit));
    parts.rest = expr_floor_div(context, parts.rest, extent);
    parts.inside = expr_mul(context, parts.inside, extent);
    iterations = expr_mul(context, iterations, loop->as.loop.extent);
  }
  Stmt *body = substitute_stmt(context, path_end(&path)->as.loop.body, &vars, NULL);
  Stmt *s = loop_like(context, path.items[top], fused, expr_index(context, 0), iterations, body);
  schedule_set_body(schedule, path_replace(context, &path, top, s));
  loop_drop_unit_iters(schedule, fused, &call->args[1]);
  step_result(schedule, call, value_loop(fused));
  return true;
}

// ---- Reorder ---------------------------------------------------------------------------------

typedef struct LoopOrder {
  int top, bottom; // depths of the outermost and innermost loop that move
  Stmt **loops;    // by depth, from top
} LoopOrder;

static bool find_order(Schedule *schedule, const StepValue *loops, Path *path, LoopOrder *order) {
  int count = loops->as.list.count;
  *order = (LoopOrder){-1, -1, NULL};
  for (int i = 0; i < count; i++) { // the path to the innermost of the loops
    Path other;
    if (!schedule_find_loop(schedule, loops->as.list.items[i].as.loop, &other)) return false;
    if (other.count > order->bottom + 1) {
      order->bottom = other.count - 1;
      *path = other;
    }
  }
  for (int i = 0; i < count; i++) {
    LoopRef var = loops->as.list.items[i].as.loop;
    int depth = -1;
    for (int k = 0; k <= order->bottom; k++)
      if (path->items[k]->kind == STMT_FOR && path->items[k]->as.loop.var == var) depth = k;
    if (depth < 0)
      return schedule_refuse(schedule, path_end(path)->pos, "loops '%s' and '%s' are not nested",
                             var->as.var->name, loop_name(path_end(path)));
    for (int k = 0; k < i; k++)
      if (loops->as.list.items[k].as.loop == var)
        return schedule_refuse(schedule, path->items[depth]->pos, "loop '%s' is given twice",
                               var->as.var->name);
    if (order->top < 0 || depth < order->top) order->top = depth;
  }
  for (int k = order->top; k <= order->bottom; k++)
    if (path->items[k]->kind != STMT_FOR)
      return schedule_refuse(
          schedule, path->items[k]->pos, "between loops '%s' and '%s' there are other statements",
          loop_name(path->items[order->top]), loop_name(path->items[order->bottom]));
  return true;
}

static bool is_named(const StepValue *loops, const Stmt *loop) {
  for (int i = 0; i < loops->as.list.count; i++)
    if (loops->as.list.items[i].as.loop == loop->as.loop.var) return true;
  return false;
}

static void place_loops(Schedule *schedule, const StepValue *loops, const Path *path,
                        LoopOrder *order) {
  int next = 0, count = order->bottom - order->top + 1;
  order->loops = arena_array(&schedule->context->arena, Stmt *, count);
  for (int i = 0; i < count; i++) {
    order->loops[i] = path->items[order->top + i];
    if (!is_named(loops, order->loops[i])) continue;
    LoopRef var = loops->as.list.items[next++].as.loop;
    for (int k = order->top; k <= order->bottom; k++)
      if (path->items[k]->as.loop.var == var) order->loops[i] = path->items[k];
  }
}

static bool extents_allow(Schedule *schedule, const LoopOrder *order) {
  int count = order->bottom - order->top + 1;
  for (int i = 0; i < count; i++)
    for (int k = i; k < count; k++)
      if (loop_bounds_use(order->loops[i], order->loops[k]->as.loop.var))
        return schedule_refuse(
            schedule, order->loops[i]->pos,
            "the extent of loop '%s' depends on loop '%s', which would be inside it",
            loop_name(order->loops[i]), loop_name(order->loops[k]));
  return true;
}

bool step_reorder(Schedule *schedule, StepCall *call) {
  Context *context = schedule->context;
  const StepValue *loops = &call->args[0];
  if (!loops->as.list.count)
    return schedule_refuse(schedule, schedule->func->pos, "no loops were given");
  Path path;
  LoopOrder order;
  const char *why = NULL;
  if (!find_order(schedule, loops, &path, &order)) return false;
  place_loops(schedule, loops, &path, &order);
  if (!extents_allow(schedule, &order)) return false;
  if (!path_order_is_free(schedule, &path, order.top, order.bottom, order.loops, &why))
    return schedule_refuse(schedule, path.items[order.top]->pos,
                           "loops '%s' to '%s' are not proved to allow another order: %s",
                           loop_name(path.items[order.top]), loop_name(path.items[order.bottom]),
                           why);
  Stmt *s = path.items[order.bottom]->as.loop.body;
  for (int i = order.bottom - order.top; i >= 0; i--)
    s = stmt_with_child(context, order.loops[i], 0, s);
  schedule_set_body(schedule, path_replace(context, &path, order.top, s));
  return true;
}

// ---- Unit loops ------------------------------------------------------------------------------

bool step_add_unit_loop(Schedule *schedule, StepCall *call) {
  Context *context = schedule->context;
  Path path;
  const StepValue *target = &call->args[0];
  bool found = target->kind == VALUE_LOOP ? schedule_find_loop(schedule, target->as.loop, &path)
                                          : schedule_find_block(schedule, target->as.block, &path);
  if (!found) return false;
  if (path.count == 1)
    return schedule_refuse(schedule, schedule->func->pos, "the root block has no loops");
  Expr *var = expr_var(context, "u", DTYPE_INT32);
  Stmt *s = stmt_for(context, var, expr_index(context, 0), expr_index(context, 1), LOOP_SERIAL,
                     path_end(&path));
  s->pos = path_end(&path)->pos;
  schedule_set_body(schedule, path_replace(context, &path, path.count - 1, s));
  step_result(schedule, call, value_loop(var));
  return true;
}
