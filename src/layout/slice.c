// SPDX-License-Identifier: Apache-2.0
// Slices: the layout of a box of the tensor in the same memory. Its map always exists; offset and
// strides exist when the offset is affine on the box and nothing changes lane or device there.
#include "layout/poly.h"

// The box as a map from its indices to the tensor's; NULL where it is not proved to stay inside.
static const IndexMap *box_map(Context *context, const Layout *layout, const LayoutExpr *const *low,
                               const LayoutExpr *const *extent, const int64_t *step) {
  const LayoutExpr *axes[MAX_RANK];
  for (int i = 0; i < layout->rank; i++) {
    const LayoutExpr *by = layout_const(context, step ? step[i] : 1);
    axes[i] = layout_binary(context, LAYOUT_MUL, layout_axis(context, i), by);
    if (low) axes[i] = layout_binary(context, LAYOUT_ADD, axes[i], low[i]);
  }
  const IndexMap *map =
      index_map_new(context, layout->rank, layout->map->inputs, layout->rank, axes, NULL, NULL, 0);
  return layout_try(context, map, extent, layout->shape, layout->facts) ? map : NULL;
}

static const Layout *box_layout(Context *context, const Layout *layout, const IndexMap *box,
                                const LayoutExpr *const *extent) {
  const LayoutExpr *outputs[MAX_RANK];
  int64_t extents[MAX_RANK];
  bool is_static = layout->is_static;
  for (int i = 0; i < layout->rank && is_static; i++) {
    is_static = is_const(extent[i]);
    extents[i] = is_static ? extent[i]->value : 0;
  }
  for (int i = 0; i < layout->map->replica_count; i++)
    extents[layout->rank + i] = layout->map->replicas[i];
  for (int i = 0; i < layout->physical_rank; i++) {
    outputs[i] =
        layout_expr_substitute(context, layout->map->outputs[i], box->outputs, layout->rank);
    if (is_static)
      outputs[i] = layout_expr_simplify(context, outputs[i], extents, layout_box_rank(layout));
  }
  const Layout *made = layout_try(context, index_map_with_outputs(context, layout->map, outputs),
                                  extent, layout->physical, layout->facts);
  return made ? layout_with_padding(context, made, layout->padding) : NULL;
}

// ---- Offset and strides ------------------------------------------------------------------------

// e at the origin, one step along `axis` (-1: none).
static const LayoutExpr *value_near_origin(Context *context, const LayoutExpr *e, int rank,
                                           int axis) {
  const LayoutExpr *axes[MAX_RANK];
  for (int i = 0; i < rank; i++) axes[i] = layout_const(context, i == axis);
  return layout_expr_substitute(context, e, axes, rank);
}

// a - b of expressions of symbols, as a polynomial where it is one.
const LayoutExpr *layout_difference(Context *context, LayoutFacts facts, const LayoutExpr *a,
                                    const LayoutExpr *b) {
  const LayoutExpr *e = layout_binary(context, LAYOUT_SUB, a, b);
  ArenaMark mark = arena_mark(&context->scratch);
  Polys polys = layout_polys_new(context, facts);
  const Poly *p = layout_poly_of(&polys, e);
  const LayoutExpr *simple = p ? layout_poly_expr(&polys, p) : NULL;
  arena_reset(&context->scratch, mark);
  return simple ? simple : e;
}

// The memory offset, then the places on all other resources: what a view must know.
static const Layout *view_of(Context *context, const Layout *slice) {
  const LayoutExpr *outputs[MAX_RANK], *physical[MAX_RANK];
  const Layout *memory = layout_on_resource(context, slice, NULL);
  const LayoutExpr *size = layout_const(context, 1);
  for (int i = 0; i < memory->physical_rank; i++)
    size = layout_binary(context, LAYOUT_MUL, size, memory->physical[i]);
  int count = 0;
  physical[count] = size;
  outputs[count++] = layout_offset_expr(context, memory);
  for (int i = 0; i < slice->physical_rank && count < MAX_RANK; i++) {
    if (!slice->map->resources[i]) continue;
    physical[count] = slice->physical[i];
    outputs[count++] = slice->map->outputs[i];
  }
  const IndexMap *map =
      index_map_new(context, slice->rank, slice->map->inputs, count, outputs, NULL, NULL, 0);
  return layout_try(context, map, slice->shape, physical, slice->facts);
}

// The only affine function that the offset can be on the box.
static const LayoutExpr *affine(Context *context, const Layout *view, LayoutSlice *out) {
  const LayoutExpr *e = view->map->outputs[0], *sum;
  const LayoutExpr **strides = arena_array(&context->arena, const LayoutExpr *, view->rank);
  const LayoutExpr *zero = layout_const(context, 0);
  sum = value_near_origin(context, e, view->rank, -1);
  sum = out->offset = layout_difference(context, view->facts, sum, zero);
  for (int i = 0; i < view->rank; i++) {
    bool moves = !is_const(view->shape[i]) || view->shape[i]->value > 1;
    strides[i] = zero;
    if (moves)
      strides[i] = layout_difference(context, view->facts,
                                     value_near_origin(context, e, view->rank, i), out->offset);
    const LayoutExpr *part =
        layout_binary(context, LAYOUT_MUL, layout_axis(context, i), strides[i]);
    sum = layout_binary(context, LAYOUT_ADD, sum, part);
  }
  out->strides = strides;
  return sum;
}

static LayoutAnswer view_answer(Context *context, LayoutSlice *out) {
  const LayoutExpr *want[MAX_RANK];
  const char *several = "elements lie in several places of memory";
  if (layout_on_resource(context, out->layout, NULL)->map->replica_count)
    return layout_said(LAYOUT_NO, LAYOUT_DIGITS, several);
  const Layout *view = view_of(context, out->layout);
  if (!view)
    return layout_said(LAYOUT_UNDECIDED, LAYOUT_DIGITS, "no bounds of the offsets are proved");
  want[0] = affine(context, view, out);
  for (int i = 1; i < view->physical_rank; i++)
    want[i] = value_near_origin(context, view->map->outputs[i], view->rank, -1);
  LayoutAnswer answer =
      layout_maps_equal(context, view, index_map_with_outputs(context, view->map, want));
  if (answer.verdict == LAYOUT_YES) return answer;
  out->strides = NULL;
  if (answer.verdict == LAYOUT_NO)
    answer.reason = "no strides: this element of the slice does not lie where they would put it";
  return answer;
}

// ---- The question ------------------------------------------------------------------------------

static const char *box_problem(const Layout *layout, const LayoutExpr *const *extent,
                               const int64_t *step) {
  for (int i = 0; i < layout->rank; i++) {
    if (is_const(extent[i]) && extent[i]->value < 0) return "an extent of the slice is negative";
    if (step && step[i] == 0) return "a step of the slice is 0";
  }
  return NULL;
}

LayoutAnswer layout_slice(Context *context, const Layout *layout, const LayoutExpr *const *low,
                          const LayoutExpr *const *extent, const int64_t *step, LayoutSlice *out) {
  *out = (LayoutSlice){0};
  const char *problem = box_problem(layout, extent, step);
  if (problem) return layout_said(LAYOUT_NO, LAYOUT_DIGITS, problem);
  const IndexMap *box = box_map(context, layout, low, extent, step);
  bool is_static = layout->is_static;
  for (int i = 0; i < layout->rank; i++)
    is_static = is_static && is_const(extent[i]) && (!low || is_const(low[i]));
  if (!box && is_static)
    return layout_said(LAYOUT_NO, LAYOUT_DIGITS, "the slice leaves the logical shape");
  if (!box)
    return layout_said(LAYOUT_UNDECIDED, LAYOUT_DIGITS,
                       "not proved that the slice stays in the shape");
  out->layout = box_layout(context, layout, box, extent);
  if (!out->layout)
    return layout_said(LAYOUT_UNDECIDED, LAYOUT_DIGITS,
                       "not proved that the slice stays in the physical shape");
  int64_t size;
  if (layout_logical_size(out->layout, &size) && size == 0) {
    out->offset = layout_const(context, 0);
    const LayoutExpr **strides = arena_array(&context->arena, const LayoutExpr *, layout->rank);
    for (int i = 0; i < layout->rank; i++) strides[i] = out->offset;
    out->strides = strides;
    return layout_said(LAYOUT_YES, LAYOUT_DIGITS, NULL);
  }
  LayoutAnswer answer = view_answer(context, out);
  LAYOUT_VERIFY(context, "slice", layout, NULL,
                !out->layout->is_static ||
                    layout_slice_certificate(context, layout, low, step, out));
  return answer;
}

const Layout *layout_reshape(Context *context, const Layout *layout, const LayoutExpr *const *shape,
                             int rank) {
  const LayoutExpr *ordinal = layout_const(context, 0), *axes[MAX_RANK], *outputs[MAX_RANK];
  const LayoutExpr *size = layout_const(context, 1);
  if (rank > MAX_RANK || layout->map->replica_count) return NULL;
  for (int i = rank - 1; i >= 0; i--) {
    const LayoutExpr *part = layout_binary(context, LAYOUT_MUL, layout_axis(context, i), size);
    ordinal = layout_binary(context, LAYOUT_ADD, part, ordinal);
    size = layout_binary(context, LAYOUT_MUL, shape[i], size);
  }
  const LayoutExpr *own = layout_const(context, 1);
  for (int i = layout->rank - 1; i >= 0; i--) {
    axes[i] = layout_binary(context, LAYOUT_DIV, ordinal, own);
    if (i) axes[i] = layout_binary(context, LAYOUT_MOD, axes[i], layout->shape[i]);
    own = layout_binary(context, LAYOUT_MUL, layout->shape[i], own);
  }
  if (!layout_symbolic_same_extent(context, layout->facts, own, size)) return NULL;
  for (int i = 0; i < layout->physical_rank; i++)
    outputs[i] = layout_expr_substitute(context, layout->map->outputs[i], axes, layout->rank);
  const IndexMap *map = layout->map;
  map = index_map_new(context, rank, NULL, map->output_count, outputs, map->resources,
                      map->separators, map->separator_count);
  return layout_try(context, map, shape, layout->physical, layout->facts);
}
