// SPDX-License-Identifier: Apache-2.0
// Answers the questions about one layout: identity, injective, onto, bijective. Each is asked of
// the digits first, then of the components, of isl and of the points. Answers are kept in the
// layout's cache.
#include "layout/answers/decide.h"
#include "layout/proofs/goal.h"

static LayoutAnswer identity(Context *context, const Layout *layout) {
  if (layout->rank != layout->physical_rank)
    return layout_answer_of(VERDICT_NO, LAYOUT_DIGITS, "the ranks differ");
  bool same = layout_same_extents(context, layout, layout->shape, layout->physical, layout->rank);
  if (!same && !layout->is_static) return layout_ask_instances(context, layout, layout_is_identity);
  if (!same)
    return layout_answer_of(VERDICT_NO, LAYOUT_DIGITS, "the physical shape is not the logical one");
  return layout_maps_equal(context, layout, index_map_identity(context, layout->rank));
}

static LayoutAnswer injective_by_points(Context *context, const Layout *layout) {
  PointImage image;
  if (!layout_points_image(context, layout, &image))
    return layout_points_over_limit(context, layout->extents, layout->rank);
  if (image.first < 0) return layout_yes(LAYOUT_POINTS);
  return layout_points_no(context, layout->extents, layout->rank, image.first, image.second, NULL);
}

// Whether a proof is found, and accepted by the checker, that the section of the layout is one.
static bool section_is_shown(Context *context, const Layout *layout) {
  const LayoutExpr *section[MAX_RANK];
  if (layout->rank > MAX_RANK || !layout_section(context, layout, section)) return false;
  ArenaMark mark = arena_mark(&context->scratch);
  Goal *goal = arena_new(&context->scratch, Goal);
  *goal = (Goal){.kind = GOAL_ONTO, .yes = true, .section = true, .facts = layout->facts};
  goal->except = layout_const(context, 0);
  for (int i = 0; i < layout->rank; i++)
    goal_add(&goal->axes,
             (GoalName){layout_numbered_name(context, 'i', i), layout->shape[i], section[i], NULL});
  for (int i = 0; i < layout->physical_rank; i++)
    goal_add(&goal->positions, (GoalName){layout_numbered_name(context, 'p', i),
                                          layout->physical[i], layout->map->outputs[i], NULL});
  bool shown = goal_prepare(goal) && goal_certificate(context, goal, 0);
  arena_reset(&context->scratch, mark);
  return shown;
}

static LayoutAnswer instances_or_isl(Context *context, const Layout *layout,
                                     LayoutDecider *question) {
  LayoutAnswer answer = layout_ask_instances(context, layout, question);
  if (answer.verdict != VERDICT_UNDECIDED) return answer;
  if (question == layout_is_onto && section_is_shown(context, layout))
    return layout_yes(LAYOUT_DIGITS);
  IslAnswer said = question == layout_is_onto ? layout_isl_onto(context, layout)
                                              : layout_isl_injective(context, layout);
  return layout_from_isl(context, layout, said, question);
}

static LayoutAnswer injective(Context *context, const Layout *layout) {
  int64_t a[MAX_RANK], b[MAX_RANK];
  if (layout_is_empty(layout)) return layout_yes(LAYOUT_DIGITS);
  LayoutAnswer inverse = layout_cached_answer(context, layout, CACHED_INVERSE);
  if (inverse.verdict == VERDICT_YES) return inverse;
  if (layout->is_static && layout_digits_collision(context, layout, a, b))
    return layout_no_at(context, a, b, layout->rank);
  const LayoutComponents *components = layout_components(context, layout);
  if (components)
    return layout_components_all(context, layout, components, layout_is_injective, false);
  if (!layout->is_static) return instances_or_isl(context, layout, layout_is_injective);
  if (!layout_has_few_points(layout) &&
      layout_isl_injective(context, layout).verdict == VERDICT_YES)
    return layout_yes(LAYOUT_ISL);
  return injective_by_points(context, layout);
}

static LayoutAnswer onto_by_points(Context *context, const Layout *layout, int64_t positions) {
  PointImage image;
  if (!layout_points_image(context, layout, &image))
    return layout_points_over_limit(context, layout->extents, layout->rank);
  if (image.missing == positions) return layout_yes(LAYOUT_POINTS);
  LayoutAnswer no = layout_answer_of(VERDICT_NO, LAYOUT_POINTS, NULL);
  no.witness =
      layout_points_index(context, layout->physical_extents, layout->physical_rank, image.missing);
  no.witness_rank = layout->physical_rank;
  return no;
}

bool layout_is_padding_at(const Layout *layout, const int64_t *position) {
  int64_t value;
  const LayoutExpr *claim = layout->cache->inverse.padding;
  return claim && layout_expr_value(claim, position, NULL, 0, &value) && value;
}

// Finds a corner of the physical box that is padding.
static bool corner_padding(const Layout *layout, int64_t *position) {
  const int64_t *extents = layout->physical_extents;
  int rank = layout->physical_rank;
  for (int i = 0; i < rank; i++) position[i] = extents[i] - 1;
  if (layout_is_padding_at(layout, position)) return true;
  for (int at = 0; at < rank; at++)
    for (int64_t other = 0; other < 2; other++) {
      for (int i = 0; i < rank; i++) position[i] = (i == at) != other ? extents[i] - 1 : 0;
      if (layout_is_padding_at(layout, position)) return true;
    }
  return false;
}

static bool has_symbolic_section(Context *context, const Layout *layout) {
  const LayoutExpr *section[MAX_RANK];
  bool proved = false;
  return layout_symbolic_section(context, layout, section, &proved) && proved;
}

static LayoutAnswer symbolic_onto(Context *context, const Layout *layout) {
  LayoutAnswer inverse = layout_cached_answer(context, layout, CACHED_INVERSE);
  if (inverse.verdict == VERDICT_YES && !layout->cache->inverse.padding) return inverse;
  if (has_symbolic_section(context, layout)) return layout_yes(LAYOUT_DIGITS);
  const LayoutComponents *components = layout_components(context, layout);
  if (components) return layout_components_all(context, layout, components, layout_is_onto, true);
  return instances_or_isl(context, layout, layout_is_onto);
}

static LayoutAnswer onto(Context *context, const Layout *layout) {
  int64_t positions, elements, position[MAX_RANK] = {0};
  if (!layout->is_static) return symbolic_onto(context, layout);
  if (!layout_physical_size(layout, &positions) || !layout_logical_size(layout, &elements))
    return layout_uncounted(layout);
  if (elements == 0 && positions)
    return layout_no_at(context, position, NULL, layout->physical_rank);
  if (elements == 0) return layout_yes(LAYOUT_DIGITS);
  bool one_to_one = layout_cached_answer(context, layout, CACHED_INVERSE).verdict == VERDICT_YES;
  if (one_to_one && elements == positions) return layout_yes(LAYOUT_DIGITS);
  if (one_to_one && corner_padding(layout, position))
    return layout_no_at(context, position, NULL, layout->physical_rank);
  if (!one_to_one && elements > positions && layout_digits_section(context, layout, NULL))
    return layout_yes(LAYOUT_DIGITS);
  const LayoutComponents *components = layout_components(context, layout);
  if (components) return layout_components_all(context, layout, components, layout_is_onto, true);
  if (!layout_has_few_points(layout) && layout_isl_onto(context, layout).verdict == VERDICT_YES)
    return layout_yes(LAYOUT_ISL);
  LayoutAnswer answer = onto_by_points(context, layout, positions);
  if (answer.verdict == VERDICT_UNDECIDED && elements < positions)
    return layout_answer_of(VERDICT_NO, LAYOUT_DIGITS,
                            str_format(context, "%lld elements cannot fill %lld physical indices",
                                       (long long)elements, (long long)positions));
  return answer;
}

static LayoutDecider *const question_rows[CACHED_COUNT] = {
    [CACHED_IDENTITY] = identity,
    [CACHED_INJECTIVE] = injective,
    [CACHED_ONTO] = onto,
    [CACHED_PADDING] = layout_decide_padding,
    [CACHED_INVERSE] = layout_decide_inverse,
};

void layout_cache_answered(Context *context, const Layout *layout, CachedQuestion question) {
  const LayoutAnswer *answer = &layout->cache->answers[question];
  switch (question) {
  case CACHED_IDENTITY: LAYOUT_ANSWERED(context, answer, LAYOUT_ASK_IDENTITY, layout); break;
  case CACHED_INJECTIVE: LAYOUT_ANSWERED(context, answer, LAYOUT_ASK_INJECTIVE, layout); break;
  case CACHED_ONTO: LAYOUT_ANSWERED(context, answer, LAYOUT_ASK_ONTO, layout); break;
  case CACHED_PADDING:
    LAYOUT_ANSWERED(context, answer, LAYOUT_ASK_PADDING, layout,
                    .value = layout_const(context, layout->cache->padding_count));
    break;
  case CACHED_INVERSE:
    LAYOUT_ANSWERED(context, answer, LAYOUT_ASK_INVERSE, layout, .inverse = layout->cache->inverse);
    break;
  case CACHED_COUNT: break;
  }
}

LayoutAnswer layout_cached_answer(Context *context, const Layout *layout, CachedQuestion question) {
  LayoutCache *cache = layout->cache;
  if (!cache->known[question]) {
    cache->answers[question] = layout->map->replica_count
                                   ? layout_copies_answer(context, layout, question)
                                   : question_rows[question](context, layout);
    cache->known[question] = true;
    layout_cache_answered(context, layout, question);
  }
  return cache->answers[question];
}

LayoutAnswer layout_is_identity(Context *context, const Layout *layout) {
  return layout_cached_answer(context, layout, CACHED_IDENTITY);
}

LayoutAnswer layout_is_injective(Context *context, const Layout *layout) {
  return layout_cached_answer(context, layout, CACHED_INJECTIVE);
}

LayoutAnswer layout_is_onto(Context *context, const Layout *layout) {
  return layout_cached_answer(context, layout, CACHED_ONTO);
}

static LayoutAnswer bijective(Context *context, const Layout *layout) {
  LayoutAnswer answer = layout_is_injective(context, layout);
  if (answer.verdict == VERDICT_UNDECIDED) {
    LayoutAnswer full = layout_is_onto(context, layout);
    return full.verdict == VERDICT_NO ? full : answer;
  }
  if (answer.verdict == VERDICT_YES) answer = layout_is_onto(context, layout);
  if (answer.verdict == VERDICT_YES && layout_of_copies(context, layout)->rank > layout->rank)
    return layout_answer_of(VERDICT_NO, answer.level, "elements are stored more than once");
  return answer;
}

LayoutAnswer layout_is_bijective(Context *context, const Layout *layout) {
  LAYOUT_RETURN(context, bijective(context, layout), LAYOUT_ASK_BIJECTIVE, layout);
}

// ---- By name -----------------------------------------------------------------------------------

LayoutAnswer layout_ask(Context *context, LayoutQuestion *q) {
  static LayoutDecider *const rows[LAYOUT_ASK_COUNT] = {
      [LAYOUT_ASK_IDENTITY] = layout_is_identity,
      [LAYOUT_ASK_INJECTIVE] = layout_is_injective,
      [LAYOUT_ASK_ONTO] = layout_is_onto,
      [LAYOUT_ASK_BIJECTIVE] = layout_is_bijective,
  };
  if (q->ask == LAYOUT_ASK_EQUAL) return layout_equal(context, q->a, q->b);
  if (q->ask == LAYOUT_ASK_SAME_MAP) return layout_maps_equal(context, q->a, q->map);
  if (q->ask == LAYOUT_ASK_INVERSE) return layout_inverse(context, q->a, &q->inverse);
  if (q->ask == LAYOUT_ASK_PADDING) return layout_padding_expr(context, q->a, &q->value);
  return rows[q->ask](context, q->a);
}

const char *layout_storage_flaw(Context *context, const Layout *layout) {
  const IndexMap *map = layout->map;
  for (int i = 0; i < map->output_count; i++)
    if (map->resources && map->resources[i])
      return str_format(context, "axis @%s is not memory", map->resources[i]);
  if (map->replica_count) return "tensors are stored once: no replica axes";
  if (map->separator_count) return "tensors between operators are flat: no axis separators";
  LayoutAnswer answer = layout_is_injective(context, layout);
  if (answer.verdict == VERDICT_YES) return NULL;
  const char *why = layout_answer_text(context, &answer), *colon = strstr(why, ": ");
  return str_format(context, "index map is not injective: %s", colon ? colon + 2 : why);
}
