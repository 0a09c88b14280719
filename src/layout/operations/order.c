// SPDX-License-Identifier: Apache-2.0
// Finds the memory order, which is the loop nest that visits the elements by ascending offset, and
// with it whether a layout is a blocking, a permutation, or a reshape of another.
#include "layout/operations/memory_order.h"
#include "layout/operations/operations.h"
#include "layout/answers/answers.h"
#include "layout/points/points.h"
#include "layout/symbolic/symbolic.h"

// ---- Loops over digits -------------------------------------------------------------------------

static bool order_offset(Context *context, const Layout *memory, const LayoutExpr *offset,
                         MemoryOrder *order) {
  static const int64_t zeros[MAX_RANK];
  return !layout_is_empty(memory) &&
         memory_order_new(context, offset, memory->extents, memory->rank, zeros, memory->extents,
                          order) &&
         !order->parity_count;
}

static bool order_all(Context *context, const Layout *memory, MemoryOrder *order) {
  return order_offset(context, memory, layout_offset_expr(context, memory), order);
}

// Whether the digits distinguish all indices of every axis.
static bool order_is_complete(const MemoryOrder *order, const Layout *memory) {
  bool found[MAX_RANK] = {false};
  for (int i = 0; i < order->count; i++)
    if (order->digits[i].digit.cut == 1) found[order->digits[i].digit.base] = true;
  for (int i = 0; i < memory->rank; i++)
    if (!found[i] && memory->extents[i] > 1) return false;
  return true;
}

static const LayoutExpr *and_also(Context *context, const LayoutExpr *a, const LayoutExpr *b) {
  return a ? layout_binary(context, LAYOUT_BOTH, a, b) : b;
}

// `sum` plus the counters of the axis that count up, or minus those that count down.
static const LayoutExpr *add_counters(Context *context, const MemoryOrder *order, int axis,
                                      bool down, const LayoutExpr *sum) {
  for (int i = 0; i < order->count; i++) {
    const MemoryDigit *g = &order->digits[i];
    if (g->digit.base != axis || g->down != down) continue;
    const LayoutExpr *part = layout_by(context, LAYOUT_MUL, layout_axis(context, i), g->digit.cut);
    sum = layout_binary(context, down ? LAYOUT_SUB : LAYOUT_ADD, sum, part);
  }
  return sum;
}

// The index along `axis` as a sum of the counters of its digits, Σ cut · (d - d at the low end of
// the range), and the condition that it is within the shape.
static const LayoutExpr *axis_index(Context *context, const MemoryOrder *order, int axis,
                                    int64_t extent, const LayoutExpr **guard) {
  int64_t constant = 0, low = 0, high = 0;
  for (int i = 0; i < order->count; i++) {
    const MemoryDigit *g = &order->digits[i];
    if (g->digit.base != axis) continue;
    constant += g->digit.cut * ((g->down ? g->high : g->low) - g->first);
    low += g->digit.cut * (g->low - g->first);
    high += g->digit.cut * (g->high - g->first);
  }
  const LayoutExpr *sum = add_counters(context, order, axis, false, layout_const(context, 0));
  sum = layout_by(context, LAYOUT_ADD, sum, constant);
  sum = add_counters(context, order, axis, true, sum);
  if (low < 0)
    *guard =
        and_also(context, *guard, layout_binary(context, LAYOUT_LE, layout_const(context, 0), sum));
  if (high >= extent)
    *guard = and_also(context, *guard,
                      layout_binary(context, LAYOUT_LT, sum, layout_const(context, extent)));
  return sum;
}

static const Str *loop_names(Context *context, int count) {
  Str *names = arena_array(&context->lasting, Str, count);
  for (int i = 0; i < count; i++) names[i] = str_format(context, "l%d", i);
  return names;
}

static void digit_loops(Context *context, const Layout *layout, const MemoryOrder *order,
                        LayoutLoops *out) {
  LayoutLoop *loops = arena_array(&context->lasting, LayoutLoop, order->count);
  const LayoutExpr *index[MAX_RANK];
  for (int i = 0; i < order->count; i++) {
    const MemoryDigit *g = &order->digits[i];
    loops[i] = (LayoutLoop){layout_const(context, g->high - g->low + 1),
                            layout_const(context, g->digit.weight), g->digit.base,
                            g->down ? -g->digit.cut : g->digit.cut};
  }
  out->count = order->count;
  out->loops = loops;
  for (int i = 0; i < layout->rank; i++)
    index[i] = axis_index(context, order, i, layout->extents[i], &out->guard);
  out->index = index_map_new(context, order->count, loop_names(context, order->count), layout->rank,
                             index, NULL, NULL, 0);
}

// ---- Loops over physical axes ------------------------------------------------------------------

// Loops whose counters are the physical axes; the inverse gives the element.
static LayoutAnswer position_loops(Context *context, const Layout *layout, const Layout *memory,
                                   LayoutLoops *out) {
  LayoutInverse inverse;
  LayoutAnswer answer = layout_inverse(context, memory, &inverse);
  if (answer.verdict != VERDICT_YES) return answer;
  int count = memory->physical_rank;
  LayoutLoop *loops = arena_array(&context->lasting, LayoutLoop, count);
  const LayoutExpr *stride = layout_const(context, 1);
  for (int i = count - 1; i >= 0; i--) {
    Digit digit;
    bool known = layout_axis_digit(memory->map->outputs[i], &digit) && digit.base < layout->rank;
    loops[i] =
        (LayoutLoop){memory->physical[i], stride, known ? digit.base : -1, known ? digit.cut : 0};
    stride = layout_times(context, memory->physical[i], stride);
  }
  out->count = count;
  out->loops = loops;
  out->index = index_map_new(context, count, loop_names(context, count), layout->rank,
                             inverse.map->outputs, NULL, NULL, 0);
  if (inverse.padding) out->guard = layout_expr(context, LAYOUT_NOT, inverse.padding, NULL, NULL);
  return answer;
}

LayoutAnswer layout_loop_order(Context *context, const Layout *layout, LayoutLoops *out) {
  MemoryOrder order;
  const Layout *memory = layout_on_resource(context, layout_of_copies(context, layout), NULL);
  *out = (LayoutLoops){0};
  if (memory->is_static && order_all(context, memory, &order) &&
      order_is_complete(&order, memory)) {
    digit_loops(context, layout, &order, out);
    return layout_yes(LAYOUT_DIGITS);
  }
  return position_loops(context, layout, memory, out);
}

// ---- Blockings ---------------------------------------------------------------------------------

// The digits of a memory order as blocks that fill memory: no digit is shifted or inverted, and
// each extent is the quotient of two neighbouring weights. Only the top digit of an axis may be
// padded.
static const char *blocks_of_order(Context *context, const Layout *layout, const MemoryOrder *order,
                                   LayoutBlocking *out) {
  LayoutDigit *blocks = arena_array(&context->lasting, LayoutDigit, order->count);
  int64_t size, inner = 1;
  if (!layout_physical_size(layout, &size)) return "the physical size does not fit";
  if (order->start) return "the first element is not first in memory";
  for (int i = order->count - 1; i >= 0; i--) {
    const MemoryDigit *g = &order->digits[i];
    int64_t above = i ? order->digits[i - 1].digit.weight : size, extent = above / g->digit.weight;
    bool top = true;
    for (int j = 0; j < order->count; j++)
      top =
          top && !(order->digits[j].digit.base == g->digit.base && order->digits[j].rank > g->rank);
    if (g->down || order->shift[g->digit.base]) return "an axis is turned or shifted";
    if (g->digit.weight != inner || above % g->digit.weight || (!top && extent != g->high + 1))
      return "there are gaps within a block";
    blocks[i] = (LayoutDigit){g->digit.base, g->digit.cut, layout_const(context, extent)};
    inner = above;
  }
  if (!order->count && size != 1) return "there are gaps around the only element";
  *out = (LayoutBlocking){order->count, blocks};
  return NULL;
}

// A sum of digits has fewer floors of an axis than 64 bits have powers of two.
static const char too_uneven[] = "an axis is too uneven to be read off";
static const char no_digits[] = "the offset is not a sum of digits of the axes";

// The offset along one axis as Σ a·⌊x/c⌋, from its values: every function that is 0 at 0 has
// exactly one such form, whose coefficient at c is the step at c less the coefficients of the
// divisors of c.
static const LayoutExpr *floors_along(Context *context, const Layout *at, int axis,
                                      const char **why) {
  enum { MAX_FLOORS = 64 };
  *why = "an axis is too long to be read off";
  int64_t box[MAX_RANK], extent = at->extents[axis], count = 0;
  const LayoutExpr *sum = layout_const(context, 0);
  for (int i = 0; i < at->rank; i++) box[i] = i == axis ? extent : 1;
  int64_t *values = layout_points_table(context, box, at->rank, at->map->outputs[0], NULL);
  if (!values) return NULL;
  for (int64_t x = extent - 1; x > 0; x--) values[x] -= values[x - 1];
  for (int64_t c = 1; c < extent; c++) {
    if (!values[c]) continue;
    if (++count > MAX_FLOORS) return *why = too_uneven, NULL;
    const LayoutExpr *floor = layout_by(context, LAYOUT_DIV, layout_axis(context, axis), c);
    sum = layout_add_product(context, sum, floor, layout_const(context, values[c]));
    for (int64_t multiple = 2 * c; multiple < extent; multiple += c) values[multiple] -= values[c];
  }
  return sum;
}

static const Layout *flat(Context *context, const Layout *memory, const LayoutExpr *offset) {
  return layout_flat(context, memory, memory->shape, offset);
}

// The sum that the physical axes of one component add to the offset.
static const LayoutExpr *part_offset(Context *context, const Layout *memory,
                                     const LayoutComponent *part) {
  const LayoutExpr *sum = layout_const(context, 0);
  for (int i = 0; i < part->layout->physical_rank; i++) {
    int at = part->positions[i];
    const LayoutExpr *stride =
        layout_product_expr(context, memory->physical + at + 1, memory->physical_rank - at - 1);
    sum = layout_add_product(context, sum, memory->map->outputs[at], stride);
  }
  return sum;
}

// Whether the offset, the only output of `at`, is the sum. Each component is checked alone, with
// the axes of the others at 0.
static LayoutAnswer is_sum_of_floors(Context *context, const Layout *memory, const Layout *at,
                                     const LayoutExpr *sum) {
  const LayoutComponents *parts = layout_components(context, memory);
  const LayoutExpr *offsets[2 * MAX_RANK], *sums[2 * MAX_RANK];
  int64_t zeros[MAX_RANK] = {0}, origin, own;
  if (!layout_expr_value(sum, zeros, NULL, 0, &origin)) parts = NULL;
  for (int i = 0; parts && i < parts->count; i++) {
    const LayoutExpr *axes[MAX_RANK];
    for (int j = 0; j < memory->rank; j++) axes[j] = layout_const(context, 0);
    for (int j = 0; j < parts->items[i].layout->rank; j++) axes[parts->items[i].axes[j]] = NULL;
    offsets[i] = part_offset(context, memory, &parts->items[i]);
    if (!layout_expr_value(offsets[i], zeros, NULL, 0, &own)) parts = NULL;
    sums[i] = layout_by(context, LAYOUT_ADD,
                        layout_expr_substitute(context, sum, axes, memory->rank), own - origin);
  }
  const IndexMap *map = NULL;
  if (parts && parts->count <= MAX_RANK)
    map = index_map_new(context, memory->rank, memory->map->inputs, parts->count, offsets, NULL,
                        NULL, 0);
  const Layout *split = map ? layout_try(context, map, memory->shape, NULL, memory->facts) : NULL;
  if (!split) return layout_outputs_equal(context, at, &sum);
  return layout_outputs_equal(context, split, sums);
}

// The only sum of floors of single axes that the offset can be; NULL with the reason in *why.
static const LayoutExpr *candidate_sum(Context *context, const Layout *memory, const Layout *at,
                                       const char **why) {
  int64_t zeros[MAX_RANK] = {0}, origin;
  *why = "no bounds of the offset are known";
  if (!at) return NULL;
  *why = "the map has no value at the origin";
  if (!layout_expr_value(at->map->outputs[0], zeros, NULL, 0, &origin)) return NULL;
  const LayoutExpr *sum = layout_const(context, origin);
  ArenaMark mark = arena_mark(&context->scratch);
  for (int i = 0; i < memory->rank && sum; i++) {
    const LayoutExpr *part = floors_along(context, at, i, why);
    sum = part ? layout_binary(context, LAYOUT_ADD, sum, part) : NULL;
  }
  arena_reset(&context->scratch, mark);
  return sum;
}

LayoutAnswer layout_by_floors(Context *context, const Layout *memory, const Layout **out) {
  const Layout *at = flat(context, memory, layout_offset_expr(context, memory));
  const char *why;
  *out = NULL;
  const LayoutExpr *sum = candidate_sum(context, memory, at, &why);
  if (!sum) return layout_undecided(why);
  LayoutAnswer answer = is_sum_of_floors(context, memory, at, sum);
  if (answer.verdict == VERDICT_NO) answer.reason = no_digits;
  if (answer.verdict == VERDICT_YES) *out = flat(context, memory, sum);
  return answer;
}

// Decides where the text is not a sum of digits, by the only sum that it can be.
static LayoutAnswer blocking_by_floors(Context *context, const Layout *memory,
                                       LayoutBlocking *out) {
  const Layout *at = flat(context, memory, layout_offset_expr(context, memory));
  const char *why;
  MemoryOrder order;
  const LayoutExpr *sum = candidate_sum(context, memory, at, &why);
  if (!sum && why == too_uneven) return layout_no(no_digits);
  if (!sum) return layout_undecided(why);
  if (!order_offset(context, memory, sum, &order)) return layout_no(no_digits);
  const char *reason = blocks_of_order(context, memory, &order, out);
  if (reason) return layout_no(reason);
  LayoutAnswer answer = is_sum_of_floors(context, memory, at, sum);
  if (answer.verdict == VERDICT_NO) answer.reason = no_digits;
  return answer;
}

static LayoutAnswer static_blocking(Context *context, const Layout *memory, LayoutBlocking *out) {
  static const char overlap[] = "the digits of the offset overlap, or are not in order";
  MemoryOrder order;
  if (layout_is_empty(memory)) return layout_no("there are no elements");
  LayoutAnswer injective = layout_is_injective(context, memory);
  if (injective.verdict != VERDICT_YES) return injective;
  if (!order_all(context, memory, &order)) {
    if (order.plain) return layout_no(overlap);
    return blocking_by_floors(context, memory, out);
  }
  const char *reason = blocks_of_order(context, memory, &order, out);
  return layout_answer_of(reason ? VERDICT_NO : VERDICT_YES, LAYOUT_DIGITS, reason);
}

// Reads a blocking in which each physical axis is a digit of one logical axis, and each cut of an
// axis is a multiple of the one before.
static const char *blocks_of_text(Context *context, const Layout *layout, LayoutBlocking *out) {
  LayoutDigit *blocks = arena_array(&context->lasting, LayoutDigit, layout->physical_rank);
  Digit digits[MAX_RANK];
  int count = 0;
  for (int i = 0; i < layout->physical_rank; i++) {
    Digit *digit = &digits[count];
    if (layout->physical[i] == layout_const(context, 1)) continue;
    if (!layout_axis_digit(layout->map->outputs[i], digit))
      return "an index is no digit of an axis";
    blocks[count++] = (LayoutDigit){digit->base, digit->cut, layout->physical[i]};
    if (!digit->open && layout->physical[i] != layout_const(context, digit->radix))
      return "there are gaps within a block";
  }
  for (int axis = 0; axis < layout->rank; axis++) {
    const LayoutExpr *extent = layout->shape[axis];
    int64_t cut = 1;
    for (int steps = 0; cut && steps <= count; steps++) {
      int at = 0;
      if (is_const(extent) && extent->value <= cut) break;
      while (at < count && (digits[at].base != axis || digits[at].cut != cut)) at++;
      if (at == count) return "a digit of an axis is missing";
      if (digits[at].open || !digit_end(&digits[at], &cut)) cut = 0;
      digits[at].base = -1;
    }
  }
  for (int i = 0; i < count; i++)
    if (digits[i].base >= 0) return "a digit of an axis occurs twice";
  *out = (LayoutBlocking){count, blocks};
  return NULL;
}

static LayoutAnswer blocking_of(Context *context, const Layout *layout) {
  LayoutBlocking blocks;
  return layout_is_blocking(context, layout, &blocks);
}

static LayoutAnswer permutation_of(Context *context, const Layout *layout) {
  int order[MAX_RANK];
  return layout_is_permutation(context, layout, order);
}

static LayoutAnswer no_instance(Context *context, const Layout *layout, LayoutDecider *question,
                                const char *reason) {
  LayoutAnswer answer = layout_ask_instances(context, layout, question);
  return answer.verdict == VERDICT_NO ? answer : layout_undecided(reason);
}

static LayoutAnswer symbolic_blocking(Context *context, const Layout *memory, LayoutBlocking *out) {
  const char *reason = blocks_of_text(context, memory, out);
  if (reason && !blocks_of_text(context, layout_simplified(context, memory), out)) reason = NULL;
  if (!reason) return layout_yes(LAYOUT_DIGITS);
  return no_instance(context, memory, blocking_of, reason);
}

static LayoutAnswer blocking(Context *context, const Layout *layout, LayoutBlocking *out) {
  *out = (LayoutBlocking){0};
  if (!layout_is_plain(layout))
    return layout_no("it uses other resources than memory, or stores elements more than once");
  if (layout->is_static) return static_blocking(context, layout, out);
  return symbolic_blocking(context, layout, out);
}

LayoutAnswer layout_is_blocking(Context *context, const Layout *layout, LayoutBlocking *out) {
  LAYOUT_RETURN(context, blocking(context, layout, out), LAYOUT_ASK_BLOCKING, layout,
                .blocking = *out);
}

static LayoutAnswer permutation(Context *context, const Layout *layout, int *order) {
  LayoutBlocking blocking;
  bool seen[MAX_RANK] = {false};
  int count = 0;
  LayoutAnswer answer = layout_is_blocking(context, layout, &blocking);
  if (answer.verdict == VERDICT_UNDECIDED && !layout->is_static)
    return no_instance(context, layout, permutation_of, answer.reason);
  if (answer.verdict != VERDICT_YES) return answer;
  for (int i = 0; i < blocking.count; i++) {
    const LayoutDigit *block = &blocking.blocks[i];
    if (seen[block->axis]) return layout_no("an axis is split into blocks");
    if (!layout_symbolic_same_extent(context, layout->facts, block->extent,
                                     layout->shape[block->axis])) {
      static const char padded[] = "an axis is padded";
      return layout->is_static ? layout_no(padded)
                               : no_instance(context, layout, permutation_of, padded);
    }
    seen[block->axis] = true;
  }
  for (int i = 0; i < layout->rank; i++)
    if (!seen[i]) order[count++] = i;
  for (int i = 0; i < blocking.count; i++) order[count++] = blocking.blocks[i].axis;
  return answer;
}

LayoutAnswer layout_is_permutation(Context *context, const Layout *layout, int *order) {
  LAYOUT_RETURN(context, permutation(context, layout, order), LAYOUT_ASK_PERMUTATION, layout,
                .order = order);
}

// ---- Reshapes ----------------------------------------------------------------------------------

static LayoutAnswer is_reshape(Context *context, const Layout *a, const Layout *b) {
  if (!layout_is_plain(a) || !layout_is_plain(b))
    return layout_undecided(
        "a layout uses other resources than memory, or stores elements more than once");
  const Layout *same = layout_reshape(context, b, a->shape, a->rank);
  bool fixed = a->is_static && b->is_static;
  if (!same)
    return layout_answer_of(fixed ? VERDICT_NO : VERDICT_UNDECIDED, LAYOUT_DIGITS,
                            "the numbers of elements differ");
  const Layout *at = flat(context, a, layout_offset_expr(context, a));
  if (!at) return layout_undecided("no bounds of the offset are known");
  const LayoutExpr *offset = layout_offset_expr(context, same);
  return layout_outputs_equal(context, at, &offset);
}

LayoutAnswer layout_is_reshape(Context *context, const Layout *a, const Layout *b) {
  LAYOUT_RETURN(context, is_reshape(context, a, b), LAYOUT_ASK_RESHAPE, a, b);
}
