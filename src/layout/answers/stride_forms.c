// SPDX-License-Identifier: Apache-2.0
// Finds strides and vector widths of any map, from the forms. Each is an equation between the
// offset and the offset one step (or several, within a vector) further on, decided on the box of
// the indices for which that exists. So XORs, shifts and derived bases are exact at any extent, and
// symbols are supported.
#include "layout/answers/answers.h"
#include "layout/digits/digits.h"
#include "layout/symbolic/symbolic.h"

static const LayoutExpr *add(Context *context, const LayoutExpr *a, const LayoutExpr *b) {
  return layout_binary(context, LAYOUT_ADD, a, b);
}

// ---- Strides -----------------------------------------------------------------------------------

Verdict layout_forms_stride(Context *context, const Layout *layout, const LayoutExpr *offset,
                            int axis, int64_t *stride) {
  int64_t index[MAX_RANK] = {0}, witness[MAX_RANK], extents[MAX_RANK], first, second;
  memcpy(extents, layout->extents, sizeof *extents * (size_t)layout->rank);
  if (!layout_expr_value(offset, index, NULL, 0, &first)) return VERDICT_UNDECIDED;
  index[axis] = 1;
  if (--extents[axis] < 1 || !layout_expr_value(offset, index, NULL, 0, &second) ||
      !sub_fits(second, first, stride))
    return VERDICT_UNDECIDED;
  const LayoutExpr *next = add(context, layout_axis(context, axis), layout_const(context, 1));
  const LayoutExpr *moved = layout_with_axis(context, offset, axis, next);
  const LayoutExpr *stepped = add(context, offset, layout_const(context, *stride));
  return layout_digits_maps_equal(context, extents, layout->rank, &moved, &stepped, 1, witness);
}

// ---- Vectors -----------------------------------------------------------------------------------

typedef struct StrideRun {
  Context *context;
  const Layout *layout;
  const LayoutExpr *e; // the offset
  int axis;
  int64_t gcd; // every width divides it: of the indices where runs end, and the offsets there
  int64_t index[MAX_RANK];
} StrideRun;

// Whether e(start + v) = e(start) + v, and w divides e(start), for `count` groups along the axis
// with `length` elements each. v is an axis after all others.
static Verdict groups_hold(StrideRun *r, int64_t w, const LayoutExpr *start, int64_t count,
                           int64_t length) {
  Context *context = r->context;
  int64_t extents[MAX_RANK];
  int rank = r->layout->rank;
  memcpy(extents, r->layout->extents, sizeof *extents * (size_t)rank);
  extents[r->axis] = count;
  extents[rank] = length;
  const LayoutExpr *within = layout_axis(context, rank);
  const LayoutExpr *first = layout_with_axis(context, r->e, r->axis, start);
  const LayoutExpr *left[2], *right[2] = {add(context, first, within), layout_const(context, 0)};
  left[0] = layout_with_axis(context, r->e, r->axis, add(context, start, within));
  left[1] = layout_by(context, LAYOUT_MOD, first, w);
  return layout_digits_maps_equal(context, extents, rank + 1, left, right, 2, r->index);
}

// Whether w is a width. With VERDICT_NO, r->index is an element that refutes it.
static Verdict width_holds(StrideRun *r, int64_t w) {
  Context *context = r->context;
  int64_t extent = r->layout->extents[r->axis], groups = extent / w, rest = extent % w;
  const LayoutExpr *group = layout_by(context, LAYOUT_MUL, layout_axis(context, r->axis), w);
  Verdict whole = groups ? groups_hold(r, w, group, groups, w) : VERDICT_YES;
  if (whole == VERDICT_NO) {
    r->index[r->axis] = r->index[r->axis] * w + r->index[r->layout->rank];
    return VERDICT_NO;
  }
  Verdict last = rest ? groups_hold(r, w, layout_const(context, groups * w), 1, rest) : VERDICT_YES;
  if (last == VERDICT_NO) r->index[r->axis] = groups * w + r->index[r->layout->rank];
  return last == VERDICT_YES ? whole : last;
}

static bool offset_at(StrideRun *r, int64_t x, int64_t *out) {
  r->index[r->axis] = x;
  return layout_expr_value(r->e, r->index, NULL, 0, out);
}

// Whether e(x) - x is e(from) - from, modulo w (0: exactly).
static bool continues(StrideRun *r, int64_t from, int64_t x, int64_t w) {
  int64_t a, b;
  if (!offset_at(r, from, &a) || !offset_at(r, x, &b)) return false;
  int64_t difference = (b - x) - (a - from);
  return w ? difference % w == 0 : difference == 0;
}

// Removes a width that is refuted at x from the gcd, by the offset at 0, or by an index where a run
// ends, found by bisection between an index that continues the run and one that does not.
static void learn(StrideRun *r, int64_t w, int64_t x) {
  int64_t low = x - x % w, high = x, modulus = 0, value = 0;
  if (continues(r, low, high, 0)) { // the offset at which the group begins is not aligned
    offset_at(r, 0, &value);
    r->gcd = gcd_of(r->gcd, value);
    if (value % w) return;
    modulus = w;
    high = low;
    low = 0;
  }
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    if (continues(r, low, middle, modulus))
      low = middle;
    else
      high = middle;
  }
  offset_at(r, high, &value);
  r->gcd = gcd_of(gcd_of(r->gcd, high), value);
}

// The widths are the divisors of a gcd, up to the extent. The largest one that is possible is
// tried; an index that refutes it makes the gcd smaller.
bool layout_forms_vector_width(Context *context, const Layout *layout, const LayoutExpr *offset,
                               int axis, int64_t *width) {
  StrideRun r = {.context = context, .layout = layout, .e = offset, .axis = axis};
  *width = 1;
  if (layout->rank == MAX_RANK) return false;
  for (;;) {
    int64_t w = layout_largest_divisor(r.gcd, layout->extents[axis]), before = r.gcd;
    if (w == 1) return true;
    Verdict proof = width_holds(&r, w);
    if (proof == VERDICT_YES) *width = w;
    if (proof != VERDICT_NO) return proof == VERDICT_YES;
    learn(&r, w, r.index[axis]);
    if (r.gcd == before) return false;
  }
}

// ---- Symbolic extents --------------------------------------------------------------------------

// Whether groups of w elements are vectors, including the elements of the last group that are past
// the end of the axis.
static bool symbolic_width_holds(Context *context, const Layout *layout, const LayoutExpr *e,
                                 int axis, int64_t w) {
  const LayoutExpr *shape[MAX_RANK], *by = layout_const(context, w);
  const LayoutExpr *size = layout_product_expr(context, layout->physical, layout->physical_rank);
  int rank = layout->rank;
  memcpy(shape, layout->shape, sizeof *shape * (size_t)rank);
  const LayoutExpr *past = add(context, shape[axis], layout_const(context, w - 1));
  shape[axis] = layout_binary(context, LAYOUT_DIV, past, by);
  shape[rank] = by;
  const LayoutExpr *within = layout_axis(context, rank);
  const LayoutExpr *group = layout_times(context, layout_axis(context, axis), by);
  const LayoutExpr *first = layout_with_axis(context, e, axis, group);
  const LayoutExpr *have[2], *want[2] = {add(context, first, within), layout_const(context, 0)};
  const LayoutExpr *physical[2] = {layout_times(context, by, size), by};
  have[0] = layout_with_axis(context, e, axis, add(context, group, within));
  have[1] = layout_binary(context, LAYOUT_MOD, first, by);
  const IndexMap *map = index_map_new(context, rank + 1, NULL, 2, have, NULL, NULL, 0);
  const Layout *at = layout_try(context, map, shape, physical, layout->facts);
  return at && layout_symbolic_maps_equal(context, at, want);
}

// The widest vector that is proved; the widths of instances bound it.
int64_t layout_symbolic_vector_width(Context *context, const Layout *layout, int axis) {
  int64_t gcd = 0;
  if (layout->rank == MAX_RANK || !layout_is_plain(layout)) return 1;
  for (int i = 0; i < MAX_INSTANCES && gcd != 1; i++) {
    LayoutInstance instance;
    if (!layout_instance(context, layout, i, &instance)) continue;
    gcd = gcd_of(gcd, layout_vector_width(context, instance.layout, axis));
  }
  const LayoutExpr *e = layout_offset_expr(context, layout);
  for (int64_t w = gcd; w > 1; w = layout_largest_divisor(gcd, w - 1))
    if (symbolic_width_holds(context, layout, e, axis, w)) return w;
  return 1;
}

LayoutAnswer layout_stride(Context *context, const Layout *layout, int axis,
                           const LayoutExpr **stride) {
  const LayoutExpr *shape[MAX_RANK];
  const Layout *memory = layout_on_resource(context, layout, NULL);
  LayoutAnswer answer = {.verdict = VERDICT_UNDECIDED,
                         .reason = "no bounds of the steps are known"};
  *stride = NULL;
  if (!layout_is_plain(layout)) {
    answer.reason = "the layout is not of memory alone";
    return answer;
  }
  const LayoutExpr *e = layout_offset_expr(context, memory), *one = layout_const(context, 1);
  memcpy(shape, layout->shape, sizeof *shape * (size_t)layout->rank);
  shape[axis] = layout_binary(context, LAYOUT_SUB, shape[axis], one);
  if (is_const(shape[axis]) && shape[axis]->value < 1) {
    *stride = layout_const(context, 0);
    return (LayoutAnswer){.verdict = VERDICT_YES};
  }
  const LayoutExpr *first = layout_at_zero(context, e, 0, layout->rank);
  const LayoutExpr *second =
      layout_at_zero(context, layout_with_axis(context, e, axis, one), 0, layout->rank);
  const LayoutExpr *step = layout_symbolic_difference(context, layout->facts, second, first);
  const LayoutExpr *next =
      layout_with_axis(context, e, axis, add(context, layout_axis(context, axis), one));
  const Layout *moved = layout_flat(context, layout, shape, next);
  if (!moved) return answer;
  const LayoutExpr *want = add(context, e, step);
  answer = layout_outputs_equal(context, moved, &want);
  if (answer.verdict == VERDICT_YES) *stride = step;
  const LayoutExpr *strides[MAX_RANK] = {0};
  strides[axis] = *stride;
  LAYOUT_ANSWERED(context, &answer, LAYOUT_ASK_STRIDES, layout, .strides = strides);
  if (answer.verdict == VERDICT_NO) answer.reason = "the step from there on is another than from 0";
  return answer;
}
