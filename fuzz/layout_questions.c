// SPDX-License-Identifier: Apache-2.0
// Every question about any layout: an answer, and on small ones the right answer.
#include "layout_input.h"

#include <stdlib.h>

enum { MOST_POINTS = 2048, MOST_PLACES = 1 << 16, BETWEEN = 1 << 14 };

// What is true, by enumeration of the copies.
typedef struct Truth {
  int64_t elements, copies, places, padding;
  int64_t *owner; // of each place the element + 1; 0: padding
  bool injective;
} Truth;

static void unravel(int64_t ordinal, const int64_t *extents, int rank, int64_t *index) {
  for (int i = rank - 1; i >= 0; i--) {
    index[i] = ordinal % extents[i];
    ordinal /= extents[i];
  }
}

static int64_t place_of(const Layout *layout, int64_t element, int64_t copy) {
  int64_t index[64], replica[64], place[64], offset = 0;
  unravel(element, layout->extents, layout->rank, index);
  unravel(copy, layout->map->replicas, layout->map->replica_count, replica);
  if (!index_map_apply_copy(layout->map, index, replica, place)) return -1;
  for (int i = 0; i < layout->physical_rank; i++) {
    if (place[i] < 0 || place[i] >= layout->physical_extents[i]) return -1;
    offset = offset * layout->physical_extents[i] + place[i];
  }
  return offset;
}

static void enumerate(const LayoutInput *input, const Layout *layout, Truth *t) {
  t->owner = arena_array(&input->context->arena, int64_t, t->places);
  t->padding = t->places;
  t->injective = true;
  for (int64_t i = 0; i < t->elements; i++)
    for (int64_t r = 0; r < t->copies; r++) {
      int64_t at = place_of(layout, i, r);
      layout_input_require(input, at >= 0, "an index leaves the physical shape");
      t->padding -= !t->owner[at];
      t->injective &= !t->owner[at] || t->owner[at] == i + 1;
      t->owner[at] = i + 1;
    }
}

static void require(const LayoutInput *input, LayoutAnswer answer, bool truth, const char *what) {
  LayoutVerdict right = truth ? LAYOUT_YES : LAYOUT_NO;
  if (answer.verdict == right) return;
  layout_input_require(
      input, false,
      str_format(input->context, "%s: %s", what, layout_answer_text(input->context, &answer)));
}

static void check_inverse(const LayoutInput *input, const Layout *layout, const Truth *t) {
  LayoutInverse inverse;
  if (layout_inverse(input->context, layout, &inverse).verdict != LAYOUT_YES) return;
  for (int64_t p = 0; p < MIN_OF(t->places, (int64_t)BETWEEN); p++) {
    int64_t place[64], index[64], padding = 0, element = 0;
    unravel(p, layout->physical_extents, layout->physical_rank, place);
    if (inverse.padding) layout_expr_value(inverse.padding, place, NULL, 0, &padding);
    layout_input_require(input, (padding != 0) == (t->owner[p] == 0), "the padding predicate");
    if (padding) continue;
    layout_input_require(input, index_map_apply(inverse.map, place, index), "the inverse");
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
  for (int64_t p = 0; p < t->places; p += 1 + t->places / 64)
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
  layout_copy_plan(context, layout, layout_flattened(context, layout), NULL, 0, 16, &plan);
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
  layout_equal(context, layout, layout_flattened(context, layout));
  ask_numbers(context, layout);
  ask_forms(context, layout);
  ask_algebra(context, layout);
  ask_memory(context, layout);
}

static void check(LayoutInput *input) {
  Truth t = {.copies = 1};
  LayoutSource source = {.text = input->text, .size = input->size, .symbols = true};
  if (input->rank < 0) return;
  const Layout *layout =
      layout_parse(input->context, &source, input->shape, input->rank, (LayoutFacts){0});
  if (!layout) return;
  if (!layout->is_static) return ask(input->context, layout);
  if (!layout_logical_size(layout, &t.elements) || !layout_physical_size(layout, &t.places)) return;
  for (int i = 0; i < layout->map->replica_count; i++) t.copies *= layout->map->replicas[i];
  int64_t points = t.elements * t.copies;
  bool slow = points > BETWEEN && points <= 1 << 22; // enumerated, and asked of smaller ones
  if (!slow) ask(input->context, layout);
  if (points <= MOST_POINTS && t.places <= MOST_PLACES) check_truth(input, layout, &t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  return layout_input_run(data, size, check);
}
