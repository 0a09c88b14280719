// SPDX-License-Identifier: Apache-2.0
// Makes slices, each the layout of a box of the tensor in the same memory. The layout always
// exists; the offset and strides exist when the offset is affine on the box and the box is on one
// lane, device, and so on. Also makes reshapes, each the layout of the same tensor with another
// logical shape.
#include "layout/answers/answers.h"
#include "layout/symbolic/symbolic.h"

// The map from indices of the box to those of the tensor; NULL where it is not proved to stay in
// the shape.
static const IndexMap *box_map(Context *context, const Layout *layout, const LayoutExpr *const *low,
                               const LayoutExpr *const *extent, const int64_t *step) {
  const LayoutExpr *axes[MAX_RANK];
  for (int i = 0; i < layout->rank; i++) {
    const LayoutExpr *by = layout_const(context, step ? step[i] : 1);
    axes[i] = layout_times(context, layout_axis(context, i), by);
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

// The layout whose outputs are the memory offset and the indices on all other resources.
static const Layout *view_of(Context *context, const Layout *slice) {
  const LayoutExpr *outputs[MAX_RANK], *physical[MAX_RANK];
  const Layout *memory = layout_on_resource(context, slice, NULL);
  int count = 0;
  physical[count] = layout_product_expr(context, memory->physical, memory->physical_rank);
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
  const LayoutExpr **strides = arena_array(&context->lasting, const LayoutExpr *, view->rank);
  const LayoutExpr *zero = layout_const(context, 0);
  sum = layout_at_zero(context, e, 0, view->rank);
  sum = out->offset = layout_symbolic_difference(context, view->facts, sum, zero);
  for (int i = 0; i < view->rank; i++) {
    bool moves = !is_const(view->shape[i]) || view->shape[i]->value > 1;
    strides[i] = zero;
    const LayoutExpr *next = layout_with_axis(context, e, i, layout_const(context, 1));
    next = layout_at_zero(context, next, 0, view->rank);
    if (moves) strides[i] = layout_symbolic_difference(context, view->facts, next, out->offset);
    sum = layout_add_product(context, sum, layout_axis(context, i), strides[i]);
  }
  out->strides = strides;
  return sum;
}

static LayoutAnswer view_answer(Context *context, LayoutSlice *out) {
  const LayoutExpr *want[MAX_RANK];
  const char *several = "elements are stored in memory more than once";
  if (layout_on_resource(context, out->layout, NULL)->map->replica_count) return layout_no(several);
  const Layout *view = view_of(context, out->layout);
  if (!view) return layout_undecided("no bounds of the offsets are proved");
  want[0] = affine(context, view, out);
  for (int i = 1; i < view->physical_rank; i++)
    want[i] = layout_at_zero(context, view->map->outputs[i], 0, view->rank);
  LayoutAnswer answer = layout_outputs_equal(context, view, want);
  if (answer.verdict == VERDICT_YES) return answer;
  out->strides = NULL;
  if (answer.verdict == VERDICT_NO)
    answer.reason = "no strides: they would give this element of the slice another offset";
  return answer;
}

// ---- The question ------------------------------------------------------------------------------

static bool has_zero(const int64_t *step, int rank) {
  for (int i = 0; i < rank && step; i++)
    if (step[i] == 0) return true;
  return false;
}

LayoutAnswer layout_slice(Context *context, const Layout *layout, const LayoutExpr *const *low,
                          const LayoutExpr *const *extent, const int64_t *step, LayoutSlice *out) {
  *out = (LayoutSlice){0};
  if (has_zero(step, layout->rank)) return layout_no("a step of the slice is 0");
  LayoutAnswer no = layout_no("an extent of the slice is negative");
  if (layout_negative_extent(context, layout->facts, extent, layout->rank, &no.instance,
                             &no.instance_count) >= 0)
    return no;
  const IndexMap *box = box_map(context, layout, low, extent, step);
  bool is_static = layout->is_static;
  for (int i = 0; i < layout->rank; i++)
    is_static = is_static && is_const(extent[i]) && (!low || is_const(low[i]));
  if (!box && is_static) return layout_no("the slice leaves the logical shape");
  if (!box) return layout_undecided("not proved that the slice stays in the shape");
  out->layout = box_layout(context, layout, box, extent);
  if (!out->layout)
    return layout_undecided("not proved that the slice stays in the physical shape");
  int64_t size;
  if (layout_logical_size(out->layout, &size) && size == 0) {
    out->offset = layout_const(context, 0);
    const LayoutExpr **strides = arena_array(&context->lasting, const LayoutExpr *, layout->rank);
    for (int i = 0; i < layout->rank; i++) strides[i] = out->offset;
    out->strides = strides;
    return layout_yes(LAYOUT_DIGITS);
  }
  LAYOUT_RETURN(context, view_answer(context, out), LAYOUT_ASK_SLICE, layout, .low = low,
                .extent = extent, .step = step, .slice = *out);
}

static const Layout *with_outputs(Context *context, const Layout *layout,
                                  const LayoutExpr *const *shape, int rank,
                                  const LayoutExpr *const *outputs) {
  const IndexMap *map = layout->map;
  map = index_map_replicated(context, rank, map->replica_count, NULL, map->replicas,
                             map->output_count, outputs, map->resources, map->separators,
                             map->separator_count);
  return layout_try(context, map, shape, layout->physical, layout->facts);
}

// The layout with its axes replaced by `axes`, expressions of the axes of `box`, which begins with
// the new shape. The simplified map is taken only where it is proved to stay in the physical shape.
static const Layout *reshaped(Context *context, const Layout *layout, const LayoutExpr *const *box,
                              int rank, const LayoutExpr *const *axes) {
  const LayoutExpr *outputs[MAX_RANK], *simple[MAX_RANK];
  int count = layout->physical_rank;
  for (int i = 0; i < count; i++)
    outputs[i] =
        layout_expr_substitute(context, layout->map->outputs[i], axes, layout_box_rank(layout));
  layout_symbolic_simplify(context, layout->facts, box, rank + layout->map->replica_count, outputs,
                           count, simple);
  const Layout *made = with_outputs(context, layout, box, rank, simple);
  return made ? made : with_outputs(context, layout, box, rank, outputs);
}

const Layout *layout_reshape(Context *context, const Layout *layout, const LayoutExpr *const *shape,
                             int rank) {
  const LayoutExpr *ordinal = layout_const(context, 0), *axes[MAX_RANK], *simple[MAX_RANK];
  const LayoutExpr *size = layout_const(context, 1), *own = size, *box[MAX_RANK];
  int copies = layout->map->replica_count;
  if (rank + copies > MAX_RANK) return NULL;
  for (int i = rank - 1; i >= 0; i--) {
    const LayoutExpr *part = layout_times(context, layout_axis(context, i), size);
    ordinal = layout_binary(context, LAYOUT_ADD, part, ordinal);
    size = layout_times(context, shape[i], size);
    box[i] = shape[i];
  }
  for (int i = layout->rank - 1; i >= 0; i--) {
    axes[i] = i ? layout_binary(context, LAYOUT_MOD, ordinal, layout->shape[i]) : ordinal;
    ordinal = layout_binary(context, LAYOUT_DIV, ordinal, layout->shape[i]);
    own = layout_times(context, layout->shape[i], own);
  }
  for (int i = 0; i < copies; i++) {
    axes[layout->rank + i] = layout_axis(context, rank + i);
    box[rank + i] = layout->shape[layout->rank + i];
  }
  if (!layout_symbolic_same_extent(context, layout->facts, own, size)) return NULL;
  layout_symbolic_simplify(context, layout->facts, box, rank + copies, axes, layout->rank + copies,
                           simple);
  const Layout *made = reshaped(context, layout, box, rank, simple);
  return made ? made : reshaped(context, layout, box, rank, axes);
}

const Layout *layout_simplified(Context *context, const Layout *layout) {
  const LayoutExpr *outputs[MAX_RANK];
  if (layout_box_rank(layout) > MAX_RANK) return layout;
  layout_symbolic_simplify(context, layout->facts, layout->shape, layout_box_rank(layout),
                           layout->map->outputs, layout->physical_rank, outputs);
  const IndexMap *map = index_map_with_outputs(context, layout->map, outputs);
  const Layout *made =
      map == layout->map ? layout
                         : layout_try(context, map, layout->shape, layout->physical, layout->facts);
  return made ? layout_with_padding(context, made, layout->padding) : layout;
}
