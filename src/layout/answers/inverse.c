// SPDX-License-Identifier: Apache-2.0
// Finds inverses, and what follows from them: sections, quotients, and the element at an offset.
#include "layout/answers/decide.h"

// The numbers of pieces of a piecewise inverse that are tried before isl is asked, and after.
enum { FEW_PIECES = 8, MOST_PIECES = 1 << 10 };

// ---- Inverses ----------------------------------------------------------------------------------

// The inverse of a layout without elements: every physical index is padding.
static LayoutInverse empty_inverse(Context *context, const Layout *layout) {
  const LayoutExpr *zeros[MAX_RANK];
  for (int i = 0; i < layout->rank; i++) zeros[i] = layout_const(context, 0);
  int64_t positions;
  bool any = layout_physical_size(layout, &positions) && positions;
  return (LayoutInverse){
      index_map_new(context, layout->physical_rank, NULL, layout->rank, zeros, NULL, NULL, 0),
      any ? layout_const(context, 1) : NULL};
}

LayoutAnswer layout_decide_inverse(Context *context, const Layout *layout) {
  LayoutInverse *out = &layout->cache->inverse;
  LayoutLevel level = LAYOUT_DIGITS;
  if (layout_is_empty(layout)) {
    *out = empty_inverse(context, layout);
    return layout_yes(LAYOUT_DIGITS);
  }
  if (layout->is_static ? layout_digits_inverse(context, layout, LAYOUT_DIGITS, out, &level)
                        : layout_symbolic_inverse(context, layout, out))
    return layout_yes(level);
  const LayoutComponents *components = layout_components(context, layout);
  if (components) return layout_components_inverse(context, layout, components, out);
  if (!layout->is_static)
    return layout_answer_of(
        VERDICT_UNDECIDED, LAYOUT_DIGITS,
        "no closed form of the inverse was found for all values of the symbols");
  if (layout_digits_inverse(context, layout, LAYOUT_POINTS, out, &level)) return layout_yes(level);
  if (layout_points_inverse(context, layout, FEW_PIECES, out)) return layout_yes(LAYOUT_POINTS);
  return layout_answer_of(VERDICT_UNDECIDED, LAYOUT_DIGITS,
                          "no closed form of the inverse was found");
}

bool layout_section(Context *context, const Layout *layout, const LayoutExpr **section) {
  LayoutAnswer inverse = layout_cached_answer(context, layout, CACHED_INVERSE);
  bool proved = layout->is_static;
  if (inverse.verdict == VERDICT_YES && !layout->cache->inverse.padding) {
    const IndexMap *map = layout->cache->inverse.map;
    for (int i = 0; i < layout->rank; i++) section[i] = map->outputs[i];
    return true;
  }
  bool found = layout->is_static ? layout_digits_section(context, layout, section)
                                 : layout_symbolic_section(context, layout, section, &proved);
  if (found && proved) return true;
  const LayoutComponents *components = layout_components(context, layout);
  return components ? layout_components_section(context, components, section) : found;
}

LayoutAnswer layout_inverse(Context *context, const Layout *layout, LayoutInverse *out) {
  LayoutAnswer answer = layout_cached_answer(context, layout, CACHED_INVERSE);
  *out = layout->cache->inverse;
  if (answer.verdict == VERDICT_YES) return answer;
  LayoutAnswer injective = layout_is_injective(context, layout);
  if (injective.verdict == VERDICT_NO) return injective;
  // A build that verifies has checked that answer with an inverse, which it may have found.
  answer = layout_cached_answer(context, layout, CACHED_INVERSE);
  *out = layout->cache->inverse;
  if (answer.verdict == VERDICT_YES || layout->map->replica_count ||
      layout_components(context, layout) || layout->cache->inverse_sought)
    return answer;
  layout->cache->inverse_sought = true;
  if (layout_isl_inverse(context, layout, &layout->cache->inverse))
    answer = layout_yes(LAYOUT_ISL);
  else if (layout->is_static &&
           layout_points_inverse(context, layout, MOST_PIECES, &layout->cache->inverse))
    answer = layout_yes(LAYOUT_POINTS);
  if (answer.verdict != VERDICT_YES) return answer;
  *out = layout->cache->inverse;
  layout->cache->answers[CACHED_INVERSE] = answer;
  layout_cache_answered(context, layout, CACHED_INVERSE);
  return answer;
}

// ---- Quotients ---------------------------------------------------------------------------------

static LayoutAnswer divide(Context *context, const Layout *a, const Layout *b, LayoutInverse *out) {
  LayoutInverse inverse;
  LayoutAnswer answer = layout_inverse(context, b, &inverse);
  *out = (LayoutInverse){0};
  if (a->rank != b->rank) return layout_answer_of(VERDICT_NO, LAYOUT_DIGITS, "the ranks differ");
  if (answer.verdict != VERDICT_YES) return answer;
  if (b->physical_rank + a->map->replica_count > MAX_RANK)
    return layout_answer_of(VERDICT_UNDECIDED, LAYOUT_DIGITS, "the division has too many axes");
  *out = (LayoutInverse){index_map_compose(context, a->map, inverse.map), inverse.padding};
  return answer;
}

LayoutAnswer layout_divide(Context *context, const Layout *a, const Layout *b, LayoutInverse *out) {
  LAYOUT_RETURN(context, divide(context, a, b, out), LAYOUT_ASK_DIVIDE, a, b, .inverse = *out);
}

void layout_divide_simplify(Context *context, const Layout *a, const Layout *b,
                            LayoutInverse *quotient) {
  const LayoutExpr *outputs[MAX_RANK], *box[MAX_RANK];
  const IndexMap *map = quotient->map;
  memcpy(box, b->physical, sizeof *box * (size_t)b->physical_rank);
  for (int i = 0; i < map->replica_count; i++)
    box[b->physical_rank + i] = layout_const(context, map->replicas[i]);
  layout_symbolic_simplify(context, b->facts, box, b->physical_rank + map->replica_count,
                           map->outputs, map->output_count, outputs);
  quotient->map = index_map_with_outputs(context, map, outputs);
  LayoutAnswer yes = layout_answer_of(VERDICT_YES, LAYOUT_DIGITS, NULL);
  LAYOUT_ANSWERED(context, &yes, LAYOUT_ASK_DIVIDE, a, b, .inverse = *quotient);
}

// ---- Offsets -----------------------------------------------------------------------------------

static LayoutAnswer search_offset(Context *context, const Layout *layout, int64_t offset,
                                  int64_t *index) {
  const LayoutExpr *differs =
      layout_by(context, LAYOUT_NE, layout_offset_expr(context, layout), offset);
  LayoutAnswer none = layout_points_hold(context, layout->extents, layout->rank, &differs, 1);
  if (none.verdict == VERDICT_YES) return layout_answer_of(VERDICT_NO, LAYOUT_POINTS, "padding");
  memcpy(index, none.witness, sizeof *index * (size_t)layout->rank);
  return layout_yes(LAYOUT_POINTS);
}

static LayoutAnswer at_offset(Context *context, const Layout *layout, int64_t offset,
                              int64_t *index) {
  int64_t positions, position[MAX_RANK], copy[MAX_RANK];
  if (layout->map->replica_count) {
    LayoutAnswer answer = at_offset(context, layout_of_copies(context, layout), offset, copy);
    if (answer.verdict == VERDICT_YES) memcpy(index, copy, sizeof *index * (size_t)layout->rank);
    return answer;
  }
  if (!layout_physical_size(layout, &positions)) return layout_uncounted(layout);
  if (offset < 0 || offset >= positions)
    return layout_answer_of(VERDICT_NO, LAYOUT_DIGITS, "the offset is outside the layout");
  layout_index_at(layout->physical_extents, layout->physical_rank, offset, position);
  if (layout_cached_answer(context, layout, CACHED_INVERSE).verdict != VERDICT_YES) {
    LayoutInverse inverse;
    PointDomain domain;
    const LayoutComponents *components = layout_components(context, layout);
    if (components) return layout_components_index_at(context, components, position, index);
    if (layout_points_domain(layout->extents, layout->rank, &domain))
      return search_offset(context, layout, offset, index);
    if (layout_inverse(context, layout, &inverse).verdict != VERDICT_YES)
      return layout_points_over_limit(context, layout->extents, layout->rank);
  }
  if (layout_is_padding_at(layout, position))
    return layout_answer_of(VERDICT_NO, LAYOUT_DIGITS, "padding");
  if (!index_map_apply(layout->cache->inverse.map, position, index))
    bug(context, "the inverse of %s has no value", index_map_text(context, layout->map));
  return layout_yes(LAYOUT_DIGITS);
}

LayoutAnswer layout_at_offset(Context *context, const Layout *layout, int64_t offset,
                              int64_t *index) {
  int64_t positions;
  LayoutAnswer answer = at_offset(context, layout, offset, index);
  if (layout_physical_size(layout, &positions) && offset >= 0 && offset < positions)
    LAYOUT_ANSWERED(context, &answer, LAYOUT_ASK_AT_OFFSET, layout, .index = index,
                    .value = layout_const(context, offset));
  return answer;
}
