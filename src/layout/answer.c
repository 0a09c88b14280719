// SPDX-License-Identifier: Apache-2.0
// The questions. Each tries the digits, then the points; answers about one layout are kept.
#include "layout/points.h"

static LayoutAnswer simple(LayoutVerdict verdict, LayoutLevel level, const char *reason) {
  return (LayoutAnswer){.verdict = verdict, .level = level, .reason = reason};
}

static LayoutAnswer yes(LayoutLevel level) {
  return simple(LAYOUT_YES, level, NULL);
}

static LayoutAnswer symbolic(void) {
  return simple(LAYOUT_UNDECIDED, LAYOUT_POINTS, "the extents are symbolic");
}

// ---- Inside ------------------------------------------------------------------------------------

bool layout_prove_inside(Context *context, const Layout *layout, SourcePos pos) {
  const LayoutExpr *claims[2 * MAX_RANK];
  int count = layout->physical_rank;
  for (int i = 0; i < count; i++) {
    const LayoutExpr *e = layout->map->outputs[i];
    claims[2 * i] = layout_expr(context, LAYOUT_LE, layout_const(context, 0), e, NULL);
    claims[2 * i + 1] = layout_expr(context, LAYOUT_LT, e, layout->physical[i], NULL);
  }
  LayoutAnswer answer =
      points_hold(context, layout->extents, layout->rank, claims, 2 * count);
  if (answer.verdict == LAYOUT_YES) return true;
  return diag_error(context, pos, "this map leaves its physical shape: %s",
                    layout_answer_text(context, &answer));
}

// ---- Equality ----------------------------------------------------------------------------------

LayoutAnswer layout_maps_equal(Context *context, const Layout *a, const IndexMap *b) {
  const LayoutExpr *claims[MAX_RANK];
  if (a->rank != b->input_count || a->physical_rank != b->output_count)
    return simple(LAYOUT_NO, LAYOUT_DIGITS, "the ranks differ");
  int count = 0;
  for (int i = 0; i < a->physical_rank; i++)
    if (a->map->outputs[i] != b->outputs[i])
      claims[count++] = layout_expr(context, LAYOUT_EQ, a->map->outputs[i], b->outputs[i], NULL);
  if (!count) return yes(LAYOUT_DIGITS);
  if (!a->is_static) return symbolic();
  return points_hold(context, a->extents, a->rank, claims, count);
}

static const char *form_difference(const Layout *a, const Layout *b) {
  if (a->rank != b->rank || a->physical_rank != b->physical_rank) return "the ranks differ";
  for (int i = 0; i < a->rank; i++)
    if (a->shape[i] != b->shape[i]) return "the logical shapes differ";
  for (int i = 0; i < a->physical_rank; i++)
    if (a->physical[i] != b->physical[i]) return "the physical shapes differ";
  for (int i = 0; i < a->physical_rank; i++)
    if (a->map->resources[i] != b->map->resources[i]) return "the resources differ";
  if (a->map->separator_count != b->map->separator_count) return "the axis separators differ";
  for (int i = 0; i < a->map->separator_count; i++)
    if (a->map->separators[i] != b->map->separators[i]) return "the axis separators differ";
  return NULL;
}

LayoutAnswer layout_equal(Context *context, const Layout *a, const Layout *b) {
  if (a == b) return yes(LAYOUT_DIGITS);
  const char *difference = form_difference(a, b);
  if (difference) return simple(LAYOUT_NO, LAYOUT_DIGITS, difference);
  return layout_maps_equal(context, a, b->map);
}

// ---- Questions about one layout ----------------------------------------------------------------

static LayoutAnswer identity(Context *context, const Layout *layout) {
  if (layout->rank != layout->physical_rank)
    return simple(LAYOUT_NO, LAYOUT_DIGITS, "the ranks differ");
  for (int i = 0; i < layout->rank; i++)
    if (layout->shape[i] != layout->physical[i])
      return simple(LAYOUT_NO, LAYOUT_DIGITS, "the physical shape is not the logical one");
  return layout_maps_equal(context, layout, index_map_identity(context, layout->rank));
}

static LayoutAnswer injective(Context *context, const Layout *layout) {
  PointImage image;
  if (!layout->is_static) return symbolic();
  if (!points_image(context, layout, &image))
    return points_over_limit(context, layout->extents, layout->rank);
  if (image.first < 0) return yes(LAYOUT_POINTS);
  LayoutAnswer no = simple(LAYOUT_NO, LAYOUT_POINTS, NULL);
  no.witness = points_index(context, layout->extents, layout->rank, image.first);
  no.witness2 = points_index(context, layout->extents, layout->rank, image.second);
  no.witness_rank = layout->rank;
  return no;
}

static LayoutAnswer onto(Context *context, const Layout *layout) {
  PointImage image;
  int64_t places;
  if (!layout_physical_size(layout, &places)) return symbolic();
  if (!points_image(context, layout, &image))
    return points_over_limit(context, layout->extents, layout->rank);
  if (image.missing == places) return yes(LAYOUT_POINTS);
  LayoutAnswer no = simple(LAYOUT_NO, LAYOUT_POINTS, NULL);
  no.witness = points_index(context, layout->physical_extents, layout->physical_rank,
                            image.missing);
  no.witness_rank = layout->physical_rank;
  return no;
}

static LayoutAnswer padding(Context *context, const Layout *layout) {
  PointImage image;
  int64_t places;
  if (!layout_physical_size(layout, &places)) return symbolic();
  if (!points_image(context, layout, &image))
    return points_over_limit(context, layout->extents, layout->rank);
  layout->cache->padding_count = places - image.count;
  return yes(LAYOUT_POINTS);
}

static LayoutAnswer inverse(Context *context, const Layout *layout) {
  LayoutAnswer answer = layout_is_injective(context, layout);
  if (answer.verdict != LAYOUT_YES) return answer;
  return simple(LAYOUT_UNDECIDED, LAYOUT_DIGITS, "no closed form of the inverse was found");
}

static LayoutAnswer (*const question_rows[QUESTION_COUNT])(Context *, const Layout *) = {
    [QUESTION_IDENTITY] = identity, [QUESTION_INJECTIVE] = injective, [QUESTION_ONTO] = onto,
    [QUESTION_PADDING] = padding,   [QUESTION_INVERSE] = inverse,
};

static LayoutAnswer ask(Context *context, const Layout *layout, Question question) {
  LayoutCache *cache = layout->cache;
  if (!cache->known[question]) {
    cache->answers[question] = question_rows[question](context, layout);
    cache->known[question] = true;
  }
  return cache->answers[question];
}

LayoutAnswer layout_is_identity(Context *context, const Layout *layout) {
  return ask(context, layout, QUESTION_IDENTITY);
}

LayoutAnswer layout_is_injective(Context *context, const Layout *layout) {
  return ask(context, layout, QUESTION_INJECTIVE);
}

LayoutAnswer layout_is_onto(Context *context, const Layout *layout) {
  return ask(context, layout, QUESTION_ONTO);
}

LayoutAnswer layout_is_bijective(Context *context, const Layout *layout) {
  LayoutAnswer answer = layout_is_injective(context, layout);
  return answer.verdict == LAYOUT_YES ? layout_is_onto(context, layout) : answer;
}

LayoutAnswer layout_padding_count(Context *context, const Layout *layout, int64_t *out) {
  LayoutAnswer answer = ask(context, layout, QUESTION_PADDING);
  if (answer.verdict == LAYOUT_YES) *out = layout->cache->padding_count;
  return answer;
}

LayoutAnswer layout_inverse(Context *context, const Layout *layout, LayoutInverse *out) {
  LayoutAnswer answer = ask(context, layout, QUESTION_INVERSE);
  *out = layout->cache->inverse;
  return answer;
}

LayoutAnswer layout_divide(Context *context, const Layout *a, const Layout *b,
                           LayoutInverse *out) {
  LayoutInverse inverse;
  LayoutAnswer answer = layout_inverse(context, b, &inverse);
  *out = (LayoutInverse){0};
  if (a->rank != b->rank) return simple(LAYOUT_NO, LAYOUT_DIGITS, "the ranks differ");
  if (answer.verdict == LAYOUT_YES)
    *out = (LayoutInverse){index_map_compose(context, a->map, inverse.map), inverse.padding};
  return answer;
}

static bool inverse_at(const Layout *layout, const LayoutInverse *inverse, const int64_t *place,
                       int64_t *index, bool *is_padding) {
  int64_t padding = 0;
  if (inverse->padding && !layout_expr_value(inverse->padding, place, NULL, 0, &padding))
    return false;
  *is_padding = padding != 0;
  (void)layout;
  return *is_padding || index_map_apply(inverse->map, place, index);
}

static LayoutAnswer search_offset(Context *context, const Layout *layout, int64_t offset,
                                  int64_t *index) {
  PointDomain domain;
  if (!points_domain(layout->extents, layout->rank, &domain))
    return points_over_limit(context, layout->extents, layout->rank);
  const LayoutExpr *differs =
      layout_expr(context, LAYOUT_NE, layout_offset_expr(context, layout),
                  layout_const(context, offset), NULL);
  LayoutAnswer none = points_hold(context, layout->extents, layout->rank, &differs, 1);
  if (none.verdict == LAYOUT_YES) return simple(LAYOUT_NO, LAYOUT_POINTS, "padding");
  memcpy(index, none.witness, sizeof *index * (size_t)layout->rank);
  return yes(LAYOUT_POINTS);
}

LayoutAnswer layout_at_offset(Context *context, const Layout *layout, int64_t offset,
                              int64_t *index) {
  int64_t places, place[MAX_RANK];
  LayoutInverse found;
  bool is_padding;
  if (!layout_physical_size(layout, &places)) return symbolic();
  if (offset < 0 || offset >= places)
    return simple(LAYOUT_NO, LAYOUT_DIGITS, "the offset is outside the layout");
  if (layout_inverse(context, layout, &found).verdict != LAYOUT_YES)
    return search_offset(context, layout, offset, index);
  for (int i = layout->physical_rank - 1; i >= 0; i--) {
    place[i] = offset % layout->physical_extents[i];
    offset /= layout->physical_extents[i];
  }
  if (!inverse_at(layout, &found, place, index, &is_padding))
    return simple(LAYOUT_UNDECIDED, LAYOUT_DIGITS, "the inverse has no value there");
  return is_padding ? simple(LAYOUT_NO, LAYOUT_DIGITS, "padding") : yes(LAYOUT_DIGITS);
}
