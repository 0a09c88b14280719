// SPDX-License-Identifier: Apache-2.0
// The schedule of a block whose value is chosen by the residues of axes, such as the transforms of
// bilinear algorithms (graph/window_products.c):
//
//   for y, x, c: o[y, x, c] = select(y % 2 == 0, a(y // 2, x, c), b(y // 2, x, c))    =>
//   for y_0, x: for c in T.vectorized(16): for y_1 in T.unroll(2): …
//
// The axes that choose run innermost and are unrolled. An axis of which the higher digit chooses,
// as in x // 384 == 0, is split there, also where vectors run along the lower digit. Vectors run
// along several last axes where one alone is too short. Each copy then computes one of the values,
// and the copies share their operands, which are vectors in registers (lower/hoist_values.c).
#include "autosched/internal.h"

enum { MOST_AXES = 4, MOST_PERIOD = 8, MOST_COPIES = 64 };

typedef struct ChoiceAxis {
  LoopRef loop;
  int64_t low; // the value depends on (index // low) % period; above 1, that is the last digit
  int64_t period;
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

static void note_axis(ChoiceSearch *search, ChoiceAxis axis) {
  for (int i = 0; i < search->count; i++)
    if (search->axes[i].loop == axis.loop) {
      search->failed |= search->axes[i].period != axis.period || search->axes[i].low != axis.low;
      return;
    }
  search->failed |= search->count == MOST_AXES;
  if (!search->failed) search->axes[search->count++] = axis;
}

// Sets the digit of a loop by which the index chooses. False when it is none of those that repeat
// at most MOST_PERIOD times.
static bool find_digit(const ChoiceSearch *search, const Expr *index, ChoiceAxis *out) {
  int64_t number = 0, extent;
  bool residue = index->op == EXPR_FLOOR_MOD && expr_as_int(index->args[1], &number);
  bool high = index->op == EXPR_FLOOR_DIV && expr_as_int(index->args[1], &number);
  *out = (ChoiceAxis){loop_of(search->block, residue || high ? index->args[0] : index), 1, number};
  if (!out->loop) return false;
  extent = autosched_loop_extent(search->s, out->loop);
  if (high) out->low = number;
  if (!residue) out->period = extent / out->low;
  return out->period > 1 && out->period <= MOST_PERIOD && (!high || extent % number == 0);
}

static bool note_choice(Visitor *visitor, Expr *e) {
  ChoiceSearch *search = visitor->env;
  if (e->op != EXPR_SELECT || e->args[0]->op != EXPR_EQ) return true;
  ChoiceAxis axis;
  int64_t row;
  if (expr_as_int(e->args[0]->args[1], &row) && find_digit(search, e->args[0]->args[0], &axis))
    note_axis(search, axis);
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
// cut where conditions change. The vectors of a line follow one another in memory, so nothing runs
// inside of them that could run outside.
typedef enum LoopGroup { FREE, GUARDED, LINE, VECTOR, UNROLLED, LOOP_GROUPS } LoopGroup;
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

// Splits the axis by its period, or where its higher digit begins.
static bool add_choice(AutoSched *s, const ChoiceAxis *axis, GroupedLoops *order) {
  int64_t extent = autosched_loop_extent(s, axis->loop);
  LoopRef outer, inner = axis->loop;
  if (axis->low > 1) {
    TRY(autosched_split(s, axis->loop, axis->low, &outer, &inner));
    add_loop(order, UNROLLED, outer);
    add_loop(order, FREE, inner);
    return true;
  }
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
  LoopRef vectors, last = array_last(loops), high;
  const ChoiceAxis *digit = choice_of(search, last);
  int lanes = autosched_lanes(s, s->tail);
  if (digit) {
    TRY(autosched_split(s, last, digit->low, &high, &last));
    add_loop(order, UNROLLED, high);
  }
  int64_t extent = digit ? digit->low : autosched_loop_extent(s, last);
  if (extent > lanes) TRY(autosched_split(s, last, lanes, &vectors, &last));
  if (extent > lanes && extent % lanes) add_loop(order, GUARDED, vectors);
  for (int i = 0; i + 1 < loops->count; i++) {
    const ChoiceAxis *axis = choice_of(search, loops->items[i]);
    if (axis)
      TRY(add_choice(s, axis, order));
    else
      add_loop(order, is_guarded(search->block, loops->items[i]) ? GUARDED : FREE, loops->items[i]);
  }
  if (extent > lanes && extent % lanes == 0) add_loop(order, LINE, vectors);
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
  int free = order->count[FREE], outer = free + order->count[GUARDED] + order->count[LINE];
  return !outer || autosched_run_parallel(s, all, outer, free, NULL);
}

// Fuses the last loops when one alone is shorter than a vector, as in layouts like NCHW2c2h2w. They
// must not choose.
static bool fuse_last(AutoSched *s, const ChoiceSearch *search, LoopRefs *loops, int lanes) {
  int from = loops->count;
  int64_t extent = 1;
  while (from > 0 && extent < lanes && !choice_of(search, loops->items[from - 1]))
    extent *= autosched_loop_extent(s, loops->items[--from]);
  if (loops->count - from < 2) return true;
  TRY(schedule_fuse(s->sch, loops->items + from, loops->count - from, &loops->items[from]));
  loops->count = from + 1;
  return true;
}

bool autosched_choice_axes(AutoSched *s) {
  LoopRefs loops = {0};
  GroupedLoops order = {.count = {0}};
  TRY(autosched_lay_out_params(s));
  schedule_drop_padding_predicate(s->sch, s->tail); // when this is refused, the predicate stays
  TRY(schedule_get_loops(s->sch, s->tail, &loops));
  ChoiceSearch search = find_axes(s, s->tail);
  int lanes = autosched_lanes(s, s->tail);
  if (search.failed || loops.count < 2 || loops.count > NEST_MAX_AXES || lanes < 2) return false;
  TRY(fuse_last(s, &search, &loops, lanes));
  search = find_axes(s, s->tail);
  LoopRef last = array_last(&loops);
  const ChoiceAxis *digit = choice_of(&search, last);
  if (digit ? digit->low < lanes : autosched_loop_extent(s, last) < lanes) return false;
  return split_loops(s, &search, &loops, &order) && put_in_order(s, &order);
}
