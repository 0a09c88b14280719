// SPDX-License-Identifier: Apache-2.0
// Asks every question about any layout: each must get an answer, which on small layouts must be
// right.
#include "layout_input.h"

#include "../tests/unit/layout_oracle.h"

#include <stdlib.h>

enum { MOST_POINTS = 2048, MOST_POSITIONS = 1 << 16, BETWEEN = 1 << 14 };

// The right answers, by enumeration of the copies.
typedef struct Truth {
  int64_t elements, copies, positions, padding;
  int64_t *owner; // for each position its element + 1; 0: padding
  bool injective;
} Truth;

static void unravel(int64_t ordinal, const int64_t *extents, int rank, int64_t *index) {
  for (int i = rank - 1; i >= 0; i--) {
    index[i] = ordinal % extents[i];
    ordinal /= extents[i];
  }
}

static int64_t position_of(const Layout *layout, int64_t element, int64_t copy) {
  int64_t index[64], replica[64], position[64], offset = 0;
  unravel(element, layout->extents, layout->rank, index);
  unravel(copy, layout->map->replicas, layout->map->replica_count, replica);
  if (!index_map_apply_copy(layout->map, index, replica, position)) return -1;
  for (int i = 0; i < layout->physical_rank; i++) {
    if (position[i] < 0 || position[i] >= layout->physical_extents[i]) return -1;
    offset = offset * layout->physical_extents[i] + position[i];
  }
  return offset;
}

static void enumerate(const LayoutInput *input, const Layout *layout, Truth *t) {
  t->owner = arena_array(&input->context->arena, int64_t, t->positions);
  t->padding = t->positions;
  t->injective = true;
  for (int64_t i = 0; i < t->elements; i++)
    for (int64_t r = 0; r < t->copies; r++) {
      int64_t at = position_of(layout, i, r);
      layout_input_require(input, at >= 0, "an index leaves the physical shape");
      t->padding -= !t->owner[at];
      t->injective &= !t->owner[at] || t->owner[at] == i + 1;
      t->owner[at] = i + 1;
    }
}

static void require(const LayoutInput *input, LayoutAnswer answer, bool truth, const char *what) {
  Verdict right = truth ? VERDICT_YES : VERDICT_NO;
  if (answer.verdict == right) return;
  layout_input_require(
      input, false,
      str_format(input->context, "%s: %s", what, layout_answer_text(input->context, &answer)));
}

static void check_inverse(const LayoutInput *input, const Layout *layout, const Truth *t) {
  LayoutInverse inverse;
  if (layout_inverse(input->context, layout, &inverse).verdict != VERDICT_YES) return;
  for (int64_t p = 0; p < MIN_OF(t->positions, (int64_t)BETWEEN); p++) {
    int64_t position[64], index[64], padding = 0, element = 0;
    unravel(p, layout->physical_extents, layout->physical_rank, position);
    if (inverse.padding) layout_expr_value(inverse.padding, position, NULL, 0, &padding);
    layout_input_require(input, (padding != 0) == (t->owner[p] == 0), "the padding predicate");
    if (padding) continue;
    layout_input_require(input, index_map_apply(inverse.map, position, index), "the inverse");
    for (int i = 0; i < layout->rank; i++) element = element * layout->extents[i] + index[i];
    layout_input_require(input, t->owner[p] == element + 1, "the inverse's element");
  }
}

static void check_truth(const LayoutInput *input, const Layout *layout, Truth *t) {
  Context *context = input->context;
  int64_t padding, index[64];
  enumerate(input, layout, t);
  require(input, layout_is_injective(context, layout), t->injective, "injective");
  require(input, layout_is_onto(context, layout), !t->padding, "onto");
  LayoutAnswer answer = layout_padding_count(context, layout, &padding);
  require(input, answer, true, "padding");
  layout_input_require(input, padding == t->padding, "the padding count");
  for (int64_t p = 0; p < t->positions; p += 1 + t->positions / 64)
    require(input, layout_at_offset(context, layout, p, index), t->owner[p] != 0, "logical");
  check_inverse(input, layout, t);
}

static void ask_numbers(Context *context, const Layout *layout) {
  int64_t strides[64];
  bool has[64];
  layout_strides(context, layout, strides, has);
  for (int i = 0; i < layout->rank; i++) layout_vector_width(context, layout, i);
  layout_group_extents(context, layout);
  layout_group_indices(context, layout);
  layout_offset_expr(context, layout);
}

static void ask_forms(Context *context, const Layout *layout) {
  LayoutSlice slice;
  LayoutLoops loops;
  LayoutBlocking blocking;
  const LayoutExpr *stride;
  int order[64];
  layout_slice(context, layout, NULL, layout->shape, NULL, &slice);
  layout_is_reshape(context, layout, layout);
  layout_loop_order(context, layout, &loops);
  layout_is_blocking(context, layout, &blocking);
  layout_is_permutation(context, layout, order);
  for (int i = 0; i < layout->rank; i++) layout_stride(context, layout, i, &stride);
}

static void ask_algebra(Context *context, const Layout *layout) {
  const Layout *out;
  LayoutInverse inverse;
  LayoutRefinement refinement;
  LayoutCopyPlan plan;
  for (int kind = 0; kind <= LAYOUT_PRODUCT_RAKED; kind++) {
    layout_product(context, layout, layout, (LayoutProduct)kind);
    layout_product_filled(context, layout, layout, (LayoutProduct)kind, &out);
  }
  layout_direct_sum(context, layout, layout);
  layout_complement(context, layout, layout_const(context, 4096), &out);
  layout_divide_left(context, layout, layout, &inverse);
  layout_refine(context, layout, layout, &refinement);
  const Layout *flat = layout_flattened(context, layout);
  if (flat) layout_copy_plan(context, layout, flat, NULL, 0, 16, &plan);
}

static void ask_memory(Context *context, const Layout *layout) {
  LayoutRuns runs;
  LayoutConflicts conflicts;
  layout_lines(context, layout, NULL, NULL, (LayoutLineSize){16, 64, 0}, 8, &runs);
  layout_padding_runs(context, layout, 8, &runs);
  if (!layout->is_static || !layout->rank) return;
  int axis = layout->rank - 1;
  int64_t lanes = MIN_OF(layout->extents[axis], (int64_t)32);
  LayoutAccess access = {.lanes = layout_run_lanes(context, layout->rank, NULL, axis, 1),
                         .extents = &lanes};
  layout_bank_conflicts(context, layout, &access, (LayoutBanks){32, 4, 32}, &conflicts);
}

// A box within the shape that depends on a number: halves, single rows, steps.
static void ask_box(Context *context, const Layout *layout, int64_t number) {
  const LayoutExpr *low[64], *extent[64];
  int64_t step[64], first[64], size[64];
  LayoutSlice slice;
  LayoutRuns runs;
  if (!layout->is_static || layout->rank > 64) return;
  for (int i = 0; i < layout->rank; i++, number /= 7) {
    int64_t all = layout->extents[i];
    first[i] = number % 7 < 3 ? 0 : all / 2;
    size[i] = number % 7 == 5 ? MIN_OF(all - first[i], (int64_t)1) : (all - first[i] + 1) / 2;
    step[i] = number % 7 == 6 ? 2 : 1;
    low[i] = layout_const(context, first[i]);
    extent[i] = layout_const(context, (size[i] + step[i] - 1) / step[i]);
  }
  layout_slice(context, layout, low, extent, step, &slice);
  layout_lines(context, layout, first, size, (LayoutLineSize){32, 32, 4}, 4, &runs);
}

static void ask_banks(Context *context, const Layout *layout) {
  LayoutConflicts conflicts;
  LayoutSwizzle swizzle;
  int64_t lanes[2] = {0}, points;
  LayoutAccess accesses[2];
  if (!layout->is_static || layout->rank < 2 || !layout_logical_size(layout, &points) || !points)
    return;
  for (int k = 0; k < 2; k++) {
    int axis = k ? 0 : layout->rank - 1;
    lanes[k] = MIN_OF(layout->extents[axis], (int64_t)16);
    accesses[k] = (LayoutAccess){.lanes = layout_run_lanes(context, layout->rank, NULL, axis, 1),
                                 .extents = &lanes[k],
                                 .vector = k};
    layout_bank_conflicts(context, layout, &accesses[k], (LayoutBanks){16, 4, 8}, &conflicts);
  }
  layout_best_swizzle(context, layout, (LayoutBanks){32, 4, 16}, accesses, 2, &swizzle);
}

static void ask_positions(Context *context, const Layout *layout) {
  int64_t positions, index[64];
  const LayoutExpr *all = layout_const(context, 1);
  if (!layout_physical_size(layout, &positions)) return;
  for (int64_t at = 0; at < positions; at += 1 + positions / 8)
    layout_at_offset(context, layout, at, index);
  for (int i = 0; i < layout->rank; i++)
    all = layout_expr(context, LAYOUT_MUL, all, layout->shape[i], NULL);
  const Layout *flat = layout_reshape(context, layout, &all, 1);
  if (flat) layout_is_reshape(context, flat, layout);
}

// Asks the questions about two layouts of one tensor.
static void ask_pair(Context *context, const Layout *a, const Layout *b) {
  LayoutInverse inverse;
  LayoutRefinement refinement;
  LayoutCopyPlan plan;
  const Layout *out, *tilers[64] = {b};
  LayoutAnswer answer = layout_equal(context, a, b);
  layout_certificate(context, &(LayoutQuestion){LAYOUT_ASK_EQUAL, a, b}, &answer);
  if (a->rank == b->rank) answer = layout_maps_equal(context, a, b->map);
  layout_divide(context, a, b, &inverse);
  layout_divide_left(context, a, b, &inverse);
  layout_refine(context, a, b, &refinement);
  layout_is_reshape(context, a, b);
  layout_copy_plan(context, a, b, NULL, 0, 8, &plan);
  layout_direct_sum(context, a, b);
  for (int kind = 0; kind <= LAYOUT_PRODUCT_RAKED; kind++)
    if (a->rank == b->rank || kind == LAYOUT_PRODUCT_LOGICAL) {
      layout_product(context, a, b, (LayoutProduct)kind);
      layout_product_filled(context, a, b, (LayoutProduct)kind, &out);
    }
  if (a->rank && a->rank <= 64) layout_tile(context, a, tilers, &out);
  if (a->rank == b->physical_rank) index_map_compose(context, a->map, b->map);
}

// The layout on the second line, or the row-major layout.
static const Layout *other_of(LayoutInput *input, const Layout *layout, const char *line) {
  LayoutSource source = {
      .text = line, .size = line ? (size_t)(input->text + input->size - line) : 0, .symbols = true};
  if (!line)
    return layout->is_static ? layout_row_major(input->context, layout->rank, layout->extents)
                             : layout;
  return layout_parse(input->context, &source, input->shape, input->rank, (LayoutFacts){0});
}

static void ask(Context *context, const Layout *layout) {
  int64_t padding;
  LayoutInverse inverse;
  LayoutAnswer answer = layout_is_identity(context, layout);
  layout_answer_text(context, &answer);
  answer = layout_is_bijective(context, layout);
  layout_answer_text(context, &answer);
  layout_is_onto(context, layout);
  layout_padding_count(context, layout, &padding);
  layout_inverse(context, layout, &inverse);
  layout_divide(context, layout, layout, &inverse);
  const Layout *flat = layout_flattened(context, layout);
  if (flat) layout_equal(context, layout, flat);
  ask_numbers(context, layout);
  ask_forms(context, layout);
  ask_algebra(context, layout);
  ask_memory(context, layout);
  ask_box(context, layout, layout->map->id);
  ask_banks(context, layout);
  ask_positions(context, layout);
}

static bool is_slow(const Layout *layout) { // larger ones would take too long to enumerate
  int64_t points;
  if (!layout->is_static) return false;
  if (!layout_logical_size(layout, &points)) return true;
  for (int i = 0; i < layout->map->replica_count; i++)
    if (!mul_fits(points, layout->map->replicas[i], &points)) return true;
  return points > BETWEEN && points <= 1 << 22;
}

// Compares the layouts that operations make of one or two layouts with their definitions.
static void check_made(const LayoutInput *input, const Layout *layout, const Layout *other) {
  const char *wrong = oracle_unary(input->context, layout);
  if (!wrong && other) wrong = oracle_binary(input->context, layout, other);
  layout_input_require(input, !wrong, wrong);
}

// Checks an input: the tensor's shape, a layout of it, and optionally a second layout on its own
// line.
static void check(LayoutInput *input) {
  Truth t = {.copies = 1};
  const char *line = input->size ? memchr(input->text, '\n', input->size) : NULL;
  LayoutSource source = {.text = input->text,
                         .size = line ? (size_t)(line++ - input->text) : input->size,
                         .symbols = true};
  if (input->rank < 0) return;
  const Layout *layout =
      layout_parse(input->context, &source, input->shape, input->rank, (LayoutFacts){0});
  const Layout *other = layout ? other_of(input, layout, line) : NULL;
  if (!layout) return;
  if (other && !is_slow(layout) && !is_slow(other)) ask_pair(input->context, layout, other);
  if (!is_slow(layout)) check_made(input, layout, other && !is_slow(other) ? other : NULL);
  if (!layout->is_static) return ask(input->context, layout);
  if (!layout_logical_size(layout, &t.elements) || !layout_physical_size(layout, &t.positions))
    return;
  for (int i = 0; i < layout->map->replica_count; i++) t.copies *= layout->map->replicas[i];
  int64_t points = t.elements * t.copies;
  if (!is_slow(layout)) ask(input->context, layout);
  if (points <= MOST_POINTS && t.positions <= MOST_POSITIONS) check_truth(input, layout, &t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  return layout_input_run(data, size, check);
}
