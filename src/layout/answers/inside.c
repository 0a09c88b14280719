// SPDX-License-Identifier: Apache-2.0
// Proves that a map stays in the physical shape of its layout, or says where it does not.
#include "layout/answers/answers.h"
#include "layout/digits/digits.h"
#include "layout/points/points.h"

static const char *numbers_text(Context *context, const int64_t *values, int count) {
  Text text = text_new(&context->scratch);
  for (int i = 0; i < count; i++) text_printf(&text, "%s%lld", i ? ", " : "", (long long)values[i]);
  return text_string(&text);
}

// Reports the physical shape, the index that leaves it, and the physical index it would have.
static bool leaves_shape(Context *context, const Layout *layout, const int64_t *index,
                         SourcePos pos) {
  int64_t position[MAX_RANK];
  int rank = layout_box_rank(layout), to = layout->physical_rank;
  const char *at = numbers_text(context, index, rank);
  if (!index_map_apply_copy(layout->map, index, index + layout->rank, position))
    return diag_error(context, pos, "this map gives no physical index to [%s]", at);
  return diag_error(
      context, pos, "this map leaves its physical shape [%s]: [%s] would be stored at [%s]",
      numbers_text(context, layout->physical_extents, to), at, numbers_text(context, position, to));
}

bool layout_prove_inside(Context *context, const Layout *layout, SourcePos pos) {
  if (layout_is_empty(layout) || layout_digits_inside(context, layout)) return true;
  const LayoutExpr *conditions[2 * MAX_RANK];
  int count = layout->physical_rank;
  for (int i = 0; i < count; i++) {
    const LayoutExpr *e = layout->map->outputs[i];
    conditions[2 * i] = layout_binary(context, LAYOUT_LE, layout_const(context, 0), e);
    conditions[2 * i + 1] = layout_binary(context, LAYOUT_LT, e, layout->physical[i]);
  }
  LayoutAnswer answer =
      layout_points_hold(context, layout->extents, layout_box_rank(layout), conditions, 2 * count);
  if (answer.verdict == VERDICT_YES) return true;
  if (answer.verdict == VERDICT_NO) return leaves_shape(context, layout, answer.witness, pos);
  return diag_error(context, pos, "this map leaves its physical shape: %s",
                    layout_answer_text(context, &answer));
}
