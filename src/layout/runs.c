// SPDX-License-Identifier: Apache-2.0
// Strides and vector widths of any map from the forms: each is an equation between the offset and
// itself a step (or a place in the vector) further on, decided on the box of the indices that have
// one. So XORs, offsets and derived bases are exact at any extent, and symbols are carried.
#include "layout/form.h"

static const LayoutExpr *add(Context *context, const LayoutExpr *a, const LayoutExpr *b) {
  return layout_expr(context, LAYOUT_ADD, a, b, NULL);
}

static const LayoutExpr *number(Context *context, int64_t value) {
  return layout_const(context, value);
}

// e with axis `axis` replaced.
static const LayoutExpr *with_axis(Context *context, const LayoutExpr *e, int axis,
                                   const LayoutExpr *value) {
  const LayoutExpr *axes[MAX_RANK + 1] = {0};
  axes[axis] = value;
  return layout_expr_substitute(context, e, axes, axis + 1);
}

// ---- Strides -----------------------------------------------------------------------------------

Proof layout_forms_stride(Context *context, const Layout *layout, const LayoutExpr *offset,
                          int axis, int64_t *stride) {
  int64_t index[MAX_RANK] = {0}, witness[MAX_RANK], extents[MAX_RANK], first, second;
  memcpy(extents, layout->extents, sizeof *extents * (size_t)layout->rank);
  if (!layout_expr_value(offset, index, NULL, 0, &first)) return NOT_PROVED;
  index[axis] = 1;
  if (--extents[axis] < 1 || !layout_expr_value(offset, index, NULL, 0, &second) ||
      __builtin_sub_overflow(second, first, stride))
    return NOT_PROVED;
  const LayoutExpr *next = add(context, layout_axis(context, axis), number(context, 1));
  const LayoutExpr *moved = with_axis(context, offset, axis, next);
  const LayoutExpr *stepped = add(context, offset, number(context, *stride));
  return layout_digits_maps_equal(context, extents, layout->rank, &moved, &stepped, 1, witness);
}

// ---- Vectors -----------------------------------------------------------------------------------

// e(w·q + v) = e(w·q) + v for v < w, and w divides e(w·q). q is the axis, v the one after all.
static Proof width_holds(Context *context, const Layout *layout, const LayoutExpr *e, int axis,
                         int64_t w) {
  int64_t witness[MAX_RANK], extents[MAX_RANK];
  int rank = layout->rank;
  memcpy(extents, layout->extents, sizeof *extents * (size_t)rank);
  extents[axis] /= w;
  extents[rank] = w;
  const LayoutExpr *group =
      layout_expr(context, LAYOUT_MUL, layout_axis(context, axis), number(context, w), NULL);
  const LayoutExpr *within = layout_axis(context, rank);
  const LayoutExpr *start = with_axis(context, e, axis, group);
  const LayoutExpr *inside = with_axis(context, e, axis, add(context, group, within));
  const LayoutExpr *left[2] = {inside}, *right[2] = {add(context, start, within)};
  left[1] = layout_expr(context, LAYOUT_MOD, start, number(context, w), NULL);
  right[1] = number(context, 0);
  return layout_digits_maps_equal(context, extents, rank + 1, left, right, 2, witness);
}

// The gcd of the extent and of what the width must divide at a few indices; 1 where the elements
// do not even begin as a vector.
static int64_t width_hint(const Layout *layout, const LayoutExpr *e, int axis) {
  int64_t index[MAX_RANK] = {0}, first, value, gcd = layout->extents[axis];
  if (!layout_expr_value(e, index, NULL, 0, &first)) return 1;
  gcd = gcd_of(gcd, first);
  for (int i = 0; i < layout->rank; i++) {
    if (layout->extents[i] < 2) continue;
    index[i] = 1;
    bool known = layout_expr_value(e, index, NULL, 0, &value);
    index[i] = 0;
    if (!known || (i == axis && value != first + 1)) return 1;
    if (i != axis) gcd = gcd_of(gcd, value);
  }
  return gcd;
}

// Widths that hold are closed under least common multiples: runs that break only at multiples of
// both break at multiples of that. So the widest is the product of the widest prime powers.
bool layout_forms_vector_width(Context *context, const Layout *layout, const LayoutExpr *offset,
                               int axis, int64_t *width) {
  enum { MAX_PRIME = 1 << 12 };
  int64_t rest = width_hint(layout, offset, axis);
  *width = 1;
  if (layout->rank == MAX_RANK) return false;
  for (int64_t p = 2; rest > 1 && p < MAX_PRIME; p++) {
    Proof proof = PROVED;
    for (int64_t power = p; rest % p == 0; rest /= p, power *= p) {
      if (proof == PROVED) proof = width_holds(context, layout, offset, axis, power);
      if (proof == PROVED) *width *= p;
    }
    if (proof == NOT_PROVED) return false;
  }
  return rest == 1;
}

// ---- Symbolic extents --------------------------------------------------------------------------

// A layout of one physical axis with the given offset; NULL where it is not carried.
static const Layout *flat(Context *context, const Layout *layout, const LayoutExpr *const *shape,
                          int rank, const LayoutExpr *offset) {
  const LayoutExpr *size = number(context, 1);
  for (int i = 0; i < layout->physical_rank; i++)
    size = layout_expr(context, LAYOUT_MUL, size, layout->physical[i], NULL);
  const IndexMap *map = index_map_new(context, rank, NULL, 1, &offset, NULL, NULL, 0);
  return layout_try(context, map, shape, &size, layout->facts);
}

LayoutAnswer layout_stride(Context *context, const Layout *layout, int axis,
                           const LayoutExpr **stride) {
  const LayoutExpr *shape[MAX_RANK], *origin[MAX_RANK];
  const Layout *memory = layout_on_resource(context, layout, NULL);
  LayoutAnswer answer = {.verdict = LAYOUT_UNDECIDED, .reason = "no bounds of the steps are known"};
  *stride = NULL;
  if (!layout_is_plain(layout)) {
    answer.reason = "the layout is not of memory alone";
    return answer;
  }
  const LayoutExpr *e = layout_offset_expr(context, memory), *one = number(context, 1), *first;
  memcpy(shape, layout->shape, sizeof *shape * (size_t)layout->rank);
  shape[axis] = layout_expr(context, LAYOUT_SUB, shape[axis], one, NULL);
  if (is_const(shape[axis]) && shape[axis]->value < 1) {
    *stride = number(context, 0);
    return (LayoutAnswer){.verdict = LAYOUT_YES};
  }
  for (int i = 0; i < layout->rank; i++) origin[i] = number(context, 0);
  first = layout_expr_substitute(context, e, origin, layout->rank);
  origin[axis] = one;
  const LayoutExpr *second = layout_expr_substitute(context, e, origin, layout->rank);
  const LayoutExpr *step = layout_difference(context, layout->facts, second, first);
  const LayoutExpr *next =
      with_axis(context, e, axis, add(context, layout_axis(context, axis), one));
  const Layout *moved = flat(context, layout, shape, layout->rank, next);
  if (!moved) return answer;
  const LayoutExpr *want = add(context, e, step);
  answer = layout_maps_equal(context, moved, index_map_with_outputs(context, moved->map, &want));
  if (answer.verdict == LAYOUT_YES) *stride = step;
  if (answer.verdict == LAYOUT_NO) answer.reason = "the step from there on is another than from 0";
  return answer;
}
