// SPDX-License-Identifier: Apache-2.0
// Counts the physical indices that hold no element: as a number, and as an expression of the
// symbols.
#include "layout/answers/decide.h"

LayoutAnswer layout_decide_padding(Context *context, const Layout *layout) {
  PointImage image;
  int64_t positions, elements;
  if (!layout_physical_size(layout, &positions) || !layout_logical_size(layout, &elements))
    return layout_uncounted(layout);
  layout->cache->padding_count = positions - elements;
  if (elements == 0 || layout_cached_answer(context, layout, CACHED_INVERSE).verdict == VERDICT_YES)
    return layout_yes(LAYOUT_DIGITS);
  const LayoutComponents *components = layout_components(context, layout);
  if (components) {
    LayoutAnswer answer = layout_components_image(context, components, &elements);
    layout->cache->padding_count = positions - elements;
    return answer;
  }
  if (!layout_points_image(context, layout, &image))
    return layout_points_over_limit(context, layout->extents, layout->rank);
  layout->cache->padding_count = positions - image.count;
  return layout_yes(LAYOUT_POINTS);
}

LayoutAnswer layout_padding_count(Context *context, const Layout *layout, int64_t *out) {
  LayoutAnswer answer = layout_cached_answer(context, layout, CACHED_PADDING);
  if (answer.verdict == VERDICT_YES) *out = layout->cache->padding_count;
  return answer;
}

// The number of physical indices that hold an element; NULL: not known.
static const LayoutExpr *image_expr(Context *context, const Layout *layout) {
  int64_t padding, positions;
  LayoutInverse inverse;
  if (layout->is_static && layout_padding_count(context, layout, &padding).verdict == VERDICT_YES &&
      layout_physical_size(layout, &positions))
    return layout_const(context, positions - padding);
  if (layout_inverse(context, layout, &inverse).verdict == VERDICT_YES)
    return layout_product_expr(context, layout->shape, layout->rank);
  if (layout_is_onto(context, layout).verdict == VERDICT_YES)
    return layout_product_expr(context, layout->physical, layout->physical_rank);
  const LayoutComponents *components = layout_components(context, layout);
  if (!components) return layout_image_of_axis(context, layout);
  const LayoutExpr *images[2 * MAX_RANK];
  for (int i = 0; i < components->count; i++)
    if (!(images[i] = image_expr(context, components->items[i].layout))) return NULL;
  return layout_product_expr(context, images, components->count);
}

static LayoutAnswer padding_expr(Context *context, const Layout *layout, const LayoutExpr **out) {
  const Layout *copies = layout_of_copies(context, layout);
  if (layout->is_static) {
    int64_t count = 0;
    LayoutAnswer answer = layout_padding_count(context, layout, &count);
    *out = answer.verdict == VERDICT_YES ? layout_const(context, count) : NULL;
    return answer;
  }
  LayoutAnswer onto = layout_is_onto(context, layout);
  if (onto.verdict == VERDICT_YES) return *out = layout_const(context, 0), onto;
  const LayoutExpr *image = image_expr(context, copies);
  *out = NULL;
  if (!image)
    return layout_answer_of(
        VERDICT_UNDECIDED, LAYOUT_DIGITS,
        "elements share physical indices, and they are not counted for all values of the "
        "symbols");
  *out =
      layout_binary(context, LAYOUT_SUB,
                    layout_product_expr(context, layout->physical, layout->physical_rank), image);
  return layout_yes(LAYOUT_DIGITS);
}

LayoutAnswer layout_padding_expr(Context *context, const Layout *layout, const LayoutExpr **out) {
  LAYOUT_RETURN(context, padding_expr(context, layout, out), LAYOUT_ASK_PADDING, layout,
                .value = *out);
}
