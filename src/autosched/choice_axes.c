// SPDX-License-Identifier: Apache-2.0
// The schedule of a block whose value is chosen by the residues of axes, such as the transforms of
// bilinear algorithms (graph/window_products.c):
//
//   for y, x, c: o[y, x, c] = select(y % 2 == 0, a(y // 2, x, c), b(y // 2, x, c))    =>
//   for y_0, x: for c in T.vectorized(16): for y_1 in T.unroll(2): …
//
// The axes that choose run innermost and are unrolled. Each copy then computes one of the values,
// and the copies share their operands, which are vectors in registers (lower/hoist_values.c).
#include "autosched/internal.h"

enum { MOST_AXES = 4, MOST_PERIOD = 8, MOST_COPIES = 64 };

typedef struct ChoiceAxis {
  LoopRef loop;
  int64_t period; // the value depends on the index modulo this
} ChoiceAxis;

typedef struct ChoiceSearch {
  const AutoSched *s;
  const Block *block;
  int count;
  ChoiceAxis axes[MOST_AXES];
  bool failed;
} ChoiceSearch;

static LoopRef loop_of(const Block *block, const Expr *var) {
  for (int i = 0; i < block->var_count; i++)
    if (block->vars[i].var == var && block->vars[i].binding->op == EXPR_VAR)
      return block->vars[i].binding;
  return NULL;
}

static void note_axis(ChoiceSearch *search, LoopRef loop, int64_t period) {
  for (int i = 0; i < search->count; i++)
    if (search->axes[i].loop == loop) {
      search->failed |= search->axes[i].period != period;
      return;
    }
  search->failed |= search->count == MOST_AXES;
  if (!search->failed) search->axes[search->count++] = (ChoiceAxis){loop, period};
}

static bool note_choice(Visitor *visitor, Expr *e) {
  ChoiceSearch *search = visitor->env;
  if (e->op != EXPR_SELECT || e->args[0]->op != EXPR_EQ) return true;
  const Expr *index = e->args[0]->args[0];
  int64_t period = 0, row;
  bool residue = index->op == EXPR_FLOOR_MOD && expr_as_int(index->args[1], &period);
  LoopRef loop = loop_of(search->block, residue ? index->args[0] : index);
  if (!loop || !expr_as_int(e->args[0]->args[1], &row)) return true;
  if (!residue) period = autosched_loop_extent(search->s, loop);
  if (period > 1 && period <= MOST_PERIOD) note_axis(search, loop, period);
  return true;
}

static ChoiceSearch find_axes(const AutoSched *s, BlockRef ref) {
  const Block *block = schedule_block(s->sch, ref);
  ChoiceSearch search = {s, block, 0, {{0}}, block->body->kind != STMT_STORE};
  Visitor visitor = {.env = &search, .enter_expr = note_choice};
  if (!search.failed) visit_expr(&visitor, block->body->as.store.value);
  int64_t copies = 1;
  for (int i = 0; i < search.count; i++) copies *= search.axes[i].period;
  search.failed |= !search.count || copies > MOST_COPIES;
  return search;
}

// Does a condition that guards memory use the loop? The loop is then cut where the condition
// changes, which fusion with another loop would prevent.
typedef struct LoopGuardSearch {
  const Expr *var;
  bool found;
} LoopGuardSearch;

static bool note_guard(Visitor *visitor, Expr *e) {
  LoopGuardSearch *search = visitor->env;
  if (e->op == EXPR_IF_THEN_ELSE) search->found |= expr_uses(e->args[0], search->var);
  return !search->found;
}

static bool is_guarded(const Block *block, LoopRef loop) {
  LoopGuardSearch search = {0};
  for (int i = 0; i < block->var_count; i++)
    if (block->vars[i].binding == loop) search.var = block->vars[i].var;
  Visitor visitor = {.env = &search, .enter_expr = note_guard};
  if (search.var) visit_expr(&visitor, block->body->as.store.value);
  return search.found;
}

// Loops in groups that run in this order. Those that are not guarded may run as one; the others are
// cut where conditions change.
typedef enum LoopGroup { FREE, GUARDED, VECTOR, UNROLLED, LOOP_GROUPS } LoopGroup;
typedef struct GroupedLoops {
  LoopRef items[LOOP_GROUPS][NEST_MAX_AXES + MOST_AXES + 1];
  int count[LOOP_GROUPS];
} GroupedLoops;

static void add_loop(GroupedLoops *order, LoopGroup group, LoopRef loop) {
  order->items[group][order->count[group]++] = loop;
}

static const ChoiceAxis *choice_of(const ChoiceSearch *search, LoopRef loop) {
  for (int i = 0; i < search->count; i++)
    if (search->axes[i].loop == loop) return &search->axes[i];
  return NULL;
}

// Splits the axis by its period.
static bool add_choice(AutoSched *s, const ChoiceAxis *axis, GroupedLoops *order) {
  int64_t extent = autosched_loop_extent(s, axis->loop);
  LoopRef outer, inner = axis->loop;
  if (extent > axis->period) {
    TRY(autosched_split(s, axis->loop, axis->period, &outer, &inner));
    add_loop(order, extent % axis->period ? GUARDED : FREE, outer);
  }
  add_loop(order, UNROLLED, inner);
  return true;
}

// Splits the axes that choose, and the last loop by the width of vectors. A rest of lanes is cut
// off around the loops over tiles.
static bool split_loops(AutoSched *s, const ChoiceSearch *search, const LoopRefs *loops,
                        GroupedLoops *order) {
  LoopRef vectors, last = array_last(loops);
  int lanes = autosched_lanes(s, s->tail);
  int64_t extent = autosched_loop_extent(s, last);
  if (extent > lanes) TRY(autosched_split(s, last, lanes, &vectors, &last));
  if (extent > lanes && extent % lanes) add_loop(order, GUARDED, vectors);
  for (int i = 0; i + 1 < loops->count; i++) {
    const ChoiceAxis *axis = choice_of(search, loops->items[i]);
    if (axis)
      TRY(add_choice(s, axis, order));
    else
      add_loop(order, is_guarded(search->block, loops->items[i]) ? GUARDED : FREE, loops->items[i]);
  }
  if (extent > lanes && extent % lanes == 0) add_loop(order, FREE, vectors);
  add_loop(order, VECTOR, last);
  return true;
}

static bool put_in_order(AutoSched *s, const GroupedLoops *order) {
  LoopRef all[LOOP_GROUPS * COUNT_OF(order->items[0])];
  int count = 0;
  for (int g = 0; g < LOOP_GROUPS; g++)
    for (int i = 0; i < order->count[g]; i++) all[count++] = order->items[g][i];
  TRY(schedule_reorder(s->sch, all, count));
  for (int i = 0; i < order->count[UNROLLED]; i++)
    TRY(schedule_unroll(s->sch, order->items[UNROLLED][i]));
  TRY(schedule_vectorize(s->sch, order->items[VECTOR][0]));
  int free = order->count[FREE], outer = free + order->count[GUARDED];
  return !outer || autosched_run_parallel(s, all, outer, free, NULL);
}

bool autosched_choice_axes(AutoSched *s) {
  LoopRefs loops = {0};
  GroupedLoops order = {.count = {0}};
  TRY(autosched_lay_out_params(s));
  schedule_drop_padding_predicate(s->sch, s->tail); // when this is refused, the predicate stays
  TRY(schedule_get_loops(s->sch, s->tail, &loops));
  ChoiceSearch search = find_axes(s, s->tail);
  int lanes = autosched_lanes(s, s->tail);
  if (search.failed || loops.count < 2 || loops.count > NEST_MAX_AXES ||
      choice_of(&search, array_last(&loops)) || lanes < 2 ||
      autosched_loop_extent(s, array_last(&loops)) < lanes)
    return false;
  return split_loops(s, &search, &loops, &order) && put_in_order(s, &order);
}
