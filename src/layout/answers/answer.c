// SPDX-License-Identifier: Apache-2.0
// The questions. Each tries the digits, then the points; answers about one layout are kept.
#include "layout/answers/answers.h"
#include "layout/digits/digits.h"
#include "layout/isl/isl.h"
#include "layout/points/points.h"
#include "layout/proofs/goal.h"
#include "layout/symbolic/symbolic.h"

const char *layout_level_name(LayoutLevel level) {
  static const char *const names[] = {
      [LAYOUT_DIGITS] = "digits", [LAYOUT_ISL] = "isl", [LAYOUT_POINTS] = "points"};
  return names[level];
}

static LayoutAnswer yes(LayoutLevel level) {
  return layout_answer_of(VERDICT_YES, level, NULL);
}

static LayoutAnswer no_at(Context *context, const int64_t *index, const int64_t *other, int rank) {
  size_t size = sizeof *index * (size_t)rank;
  LayoutAnswer no = layout_answer_of(VERDICT_NO, LAYOUT_DIGITS, NULL);
  no.witness = arena_copy(&context->lasting, index, size);
  no.witness2 = other ? arena_copy(&context->lasting, other, size) : NULL;
  no.witness_rank = rank;
  return no;
}

static LayoutAnswer symbolic(void) {
  return layout_answer_of(VERDICT_UNDECIDED, LAYOUT_DIGITS,
                          "not proved for all values of the symbols, nor false for those tried");
}

static LayoutAnswer not_by_isl(Context *context, const IslAnswer *said) {
  LayoutAnswer answer = symbolic();
  answer.reason = str_format(context, "%s; %s", answer.reason, said->why);
  return answer;
}

static LayoutAnswer uncounted(const Layout *layout) {
  return layout_answer_of(VERDICT_UNDECIDED, LAYOUT_DIGITS,
                          layout->is_static ? "the places do not fit 64 bits"
                                            : "places are counted for static extents only");
}

// ---- isl ---------------------------------------------------------------------------------------

// So many points are looked at before isl is asked.
enum { FEW_POINTS = 1 << 12, FEW_PIECES = 8, MOST_PIECES = 1 << 10 };

static bool has_few_points(const Layout *layout) {
  int64_t size;
  return layout_logical_size(layout, &size) && size <= FEW_POINTS;
}

typedef LayoutAnswer (*DecideLayout)(Context *context, const Layout *layout);

// What isl says; its "no" is asked again at the values that it found, which gives the witness.
static LayoutAnswer from_isl(Context *context, const Layout *layout, IslAnswer said,
                             DecideLayout question) {
  LayoutInstance instance;
  if (said.verdict == VERDICT_YES) return yes(LAYOUT_ISL);
  if (said.verdict != VERDICT_NO) return not_by_isl(context, &said);
  if (layout->is_static || !layout_instance_at(context, layout, said.values, said.count, &instance))
    return symbolic();
  LayoutAnswer answer = question(context, instance.layout);
  answer.instance = instance.values;
  answer.instance_count = instance.count;
  return answer.verdict == VERDICT_NO ? answer : symbolic();
}

// "no" when the question is answered so on some instance.
static LayoutAnswer ask_instances(Context *context, const Layout *layout, DecideLayout question) {
  for (int i = 0; i < MAX_INSTANCES; i++) {
    LayoutInstance instance;
    if (!layout_instance(context, layout, i, &instance)) continue;
    LayoutAnswer answer = question(context, instance.layout);
    answer.instance = instance.values;
    answer.instance_count = instance.count;
    if (answer.verdict == VERDICT_NO) return answer;
  }
  return symbolic();
}

// ---- Inside ------------------------------------------------------------------------------------

static const char *numbers_text(Context *context, const int64_t *values, int count) {
  Text text = text_new(&context->scratch);
  for (int i = 0; i < count; i++) text_printf(&text, "%s%lld", i ? ", " : "", (long long)values[i]);
  return text_string(&text);
}

// "[3] would lie at [4]": the proof, and the shapes.
static bool leaves_shape(Context *context, const Layout *layout, const int64_t *index,
                         SourcePos pos) {
  int64_t position[MAX_RANK];
  int rank = layout_box_rank(layout), to = layout->physical_rank;
  const char *at = numbers_text(context, index, rank);
  if (!index_map_apply_copy(layout->map, index, index + layout->rank, position))
    return diag_error(context, pos, "this map has no place for [%s]", at);
  return diag_error(context, pos, "this map leaves its physical shape [%s]: [%s] would lie at [%s]",
                    numbers_text(context, layout->physical_extents, to), at,
                    numbers_text(context, position, to));
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

// ---- Equality ----------------------------------------------------------------------------------

static bool has_symbol(const LayoutExpr *e) {
  bool found = e->op == LAYOUT_SYMBOL;
  for (int i = 0; i < 3 && e->args[i]; i++) found = found || has_symbol(e->args[i]);
  return found;
}

// Symbols of b alone, of which a's facts say nothing, get no values: what differs may not.
static LayoutAnswer maps_equal_at(Context *context, const LayoutInstance *at, const IndexMap *b) {
  const LayoutExpr *outputs[MAX_RANK];
  for (int i = 0; i < b->output_count; i++) {
    outputs[i] = layout_instantiate(context, b->outputs[i], at->values, at->count);
    if (has_symbol(outputs[i])) return symbolic();
  }
  LayoutAnswer answer =
      layout_maps_equal(context, at->layout, index_map_with_outputs(context, b, outputs));
  answer.instance = at->values;
  answer.instance_count = at->count;
  return answer.verdict == VERDICT_NO ? answer : symbolic();
}

static LayoutAnswer maps_equal_symbolic(Context *context, const Layout *a, const IndexMap *b) {
  LayoutInstance instance;
  if (layout_symbolic_maps_equal(context, a, b->outputs)) return yes(LAYOUT_DIGITS);
  for (int i = 0; i < MAX_INSTANCES; i++) {
    if (!layout_instance(context, a, i, &instance)) continue;
    LayoutAnswer answer = maps_equal_at(context, &instance, b);
    if (answer.verdict == VERDICT_NO) return answer;
  }
  IslAnswer said = layout_isl_maps_equal(context, a, b->outputs);
  if (said.verdict == VERDICT_YES) return yes(LAYOUT_ISL);
  if (said.verdict != VERDICT_NO) return not_by_isl(context, &said);
  if (!layout_instance_at(context, a, said.values, said.count, &instance)) return symbolic();
  return maps_equal_at(context, &instance, b);
}

static LayoutAnswer maps_equal(Context *context, const Layout *a, const IndexMap *b) {
  const LayoutExpr *conditions[MAX_RANK];
  if (a->rank != b->input_count || a->physical_rank != b->output_count)
    return layout_answer_of(VERDICT_NO, LAYOUT_DIGITS, "the ranks differ");
  if (!layout_map_is_small(b))
    return layout_answer_of(VERDICT_UNDECIDED, LAYOUT_DIGITS, "the map is too large");
  if (a->map->replica_count || b->replica_count) return layout_copies_equal(context, a, b);
  int count = 0;
  for (int i = 0; i < a->physical_rank; i++)
    if (a->map->outputs[i] != b->outputs[i])
      conditions[count++] = layout_binary(context, LAYOUT_EQ, a->map->outputs[i], b->outputs[i]);
  if (!count) return yes(LAYOUT_DIGITS);
  if (!a->is_static) return maps_equal_symbolic(context, a, b);
  if (layout_is_empty(a)) return yes(LAYOUT_DIGITS);
  for (int i = 0; i < b->output_count; i++)
    if (has_symbol(b->outputs[i]))
      return layout_answer_of(VERDICT_UNDECIDED, LAYOUT_DIGITS,
                              "nothing is known of the map's symbols");
  int64_t witness[MAX_RANK];
  Verdict proof = layout_digits_maps_equal(context, a->extents, a->rank, a->map->outputs,
                                           b->outputs, a->physical_rank, witness);
  if (proof == VERDICT_YES) return yes(LAYOUT_DIGITS);
  if (proof == VERDICT_NO) return no_at(context, witness, NULL, a->rank);
  if (layout_points_needed(a->extents, a->rank, conditions, count) > FEW_POINTS &&
      layout_isl_maps_equal(context, a, b->outputs).verdict == VERDICT_YES)
    return yes(LAYOUT_ISL);
  return layout_points_hold(context, a->extents, a->rank, conditions, count);
}

LayoutAnswer layout_maps_equal(Context *context, const Layout *a, const IndexMap *b) {
  LayoutAnswer answer = maps_equal(context, a, b);
  if (!a->map->replica_count && !b->replica_count)
    LAYOUT_ANSWERED(context, &answer, LAYOUT_ASK_SAME_MAP, a, .map = b);
  return answer;
}

static bool same_extents(Context *context, const Layout *layout, const LayoutExpr *const *a,
                         const LayoutExpr *const *b, int count) {
  for (int i = 0; i < count; i++)
    if (a[i] != b[i] &&
        (layout->is_static || !layout_symbolic_same_extent(context, layout->facts, a[i], b[i])))
      return false;
  return true;
}

static const char *map_difference(const IndexMap *a, const IndexMap *b) {
  for (int i = 0; i < a->output_count; i++)
    if (a->resources[i] != b->resources[i]) return "the resources differ";
  if (a->separator_count != b->separator_count) return "the axis separators differ";
  for (int i = 0; i < a->separator_count; i++)
    if (a->separators[i] != b->separators[i]) return "the axis separators differ";
  return NULL;
}

// Extents that are not proved to be the same: "no" where they differ at some values.
static LayoutAnswer extents_differ(Context *context, const Layout *a, const Layout *b,
                                   const char *reason) {
  if (a->is_static && b->is_static) return layout_answer_of(VERDICT_NO, LAYOUT_DIGITS, reason);
  for (int i = 0; i < MAX_INSTANCES; i++) {
    LayoutInstance x, y;
    if (!layout_instance(context, a, i, &x) ||
        !layout_instance_at(context, b, x.values, x.count, &y))
      continue;
    bool same =
        memcmp(x.layout->extents, y.layout->extents, sizeof(int64_t) * (size_t)a->rank) == 0 &&
        memcmp(x.layout->physical_extents, y.layout->physical_extents,
               sizeof(int64_t) * (size_t)a->physical_rank) == 0;
    if (same) continue;
    LayoutAnswer no = layout_answer_of(VERDICT_NO, LAYOUT_DIGITS, reason);
    no.instance = x.values;
    no.instance_count = x.count;
    return no;
  }
  return layout_answer_of(VERDICT_UNDECIDED, LAYOUT_DIGITS, reason);
}

static LayoutAnswer equal(Context *context, const Layout *a, const Layout *b) {
  if (a == b) return yes(LAYOUT_DIGITS);
  if (a->rank != b->rank || a->physical_rank != b->physical_rank)
    return layout_answer_of(VERDICT_NO, LAYOUT_DIGITS, "the ranks differ");
  const char *difference = map_difference(a->map, b->map);
  if (difference) return layout_answer_of(VERDICT_NO, LAYOUT_DIGITS, difference);
  if (!same_extents(context, a, a->shape, b->shape, a->rank))
    return extents_differ(context, a, b, "the logical shapes differ");
  if (!same_extents(context, a, a->physical, b->physical, a->physical_rank))
    return extents_differ(context, a, b, "the physical shapes differ");
  return maps_equal(context, a, b->map);
}

LayoutAnswer layout_equal(Context *context, const Layout *a, const Layout *b) {
  LayoutAnswer answer = equal(context, a, b);
  LAYOUT_ANSWERED(context, &answer, LAYOUT_ASK_EQUAL, a, b);
  return answer;
}

// ---- Questions about one layout ----------------------------------------------------------------

static LayoutAnswer identity(Context *context, const Layout *layout) {
  if (layout->rank != layout->physical_rank)
    return layout_answer_of(VERDICT_NO, LAYOUT_DIGITS, "the ranks differ");
  bool same = same_extents(context, layout, layout->shape, layout->physical, layout->rank);
  if (!same && !layout->is_static) return ask_instances(context, layout, layout_is_identity);
  if (!same)
    return layout_answer_of(VERDICT_NO, LAYOUT_DIGITS, "the physical shape is not the logical one");
  return layout_maps_equal(context, layout, index_map_identity(context, layout->rank));
}

static LayoutAnswer injective_by_points(Context *context, const Layout *layout) {
  PointImage image;
  if (!layout_points_image(context, layout, &image))
    return layout_points_over_limit(context, layout->extents, layout->rank);
  if (image.first < 0) return yes(LAYOUT_POINTS);
  LayoutAnswer no = layout_answer_of(VERDICT_NO, LAYOUT_POINTS, NULL);
  no.witness = layout_points_index(context, layout->extents, layout->rank, image.first);
  no.witness2 = layout_points_index(context, layout->extents, layout->rank, image.second);
  no.witness_rank = layout->rank;
  return no;
}

static LayoutAnswer ask(Context *context, const Layout *layout, CachedQuestion question);

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
                                     DecideLayout question) {
  LayoutAnswer answer = ask_instances(context, layout, question);
  if (answer.verdict != VERDICT_UNDECIDED) return answer;
  if (question == layout_is_onto && section_is_shown(context, layout)) return yes(LAYOUT_DIGITS);
  IslAnswer said = question == layout_is_onto ? layout_isl_onto(context, layout)
                                              : layout_isl_injective(context, layout);
  return from_isl(context, layout, said, question);
}

static LayoutAnswer injective(Context *context, const Layout *layout) {
  int64_t a[MAX_RANK], b[MAX_RANK];
  if (layout_is_empty(layout)) return yes(LAYOUT_DIGITS);
  LayoutAnswer inverse = ask(context, layout, CACHED_INVERSE);
  if (inverse.verdict == VERDICT_YES) return inverse;
  if (layout->is_static && layout_digits_collision(context, layout, a, b))
    return no_at(context, a, b, layout->rank);
  const LayoutComponents *components = layout_components(context, layout);
  if (components)
    return layout_components_all(context, layout, components, layout_is_injective, false);
  if (!layout->is_static) return instances_or_isl(context, layout, layout_is_injective);
  if (!has_few_points(layout) && layout_isl_injective(context, layout).verdict == VERDICT_YES)
    return yes(LAYOUT_ISL);
  return injective_by_points(context, layout);
}

static LayoutAnswer onto_by_points(Context *context, const Layout *layout, int64_t positions) {
  PointImage image;
  if (!layout_points_image(context, layout, &image))
    return layout_points_over_limit(context, layout->extents, layout->rank);
  if (image.missing == positions) return yes(LAYOUT_POINTS);
  LayoutAnswer no = layout_answer_of(VERDICT_NO, LAYOUT_POINTS, NULL);
  no.witness =
      layout_points_index(context, layout->physical_extents, layout->physical_rank, image.missing);
  no.witness_rank = layout->physical_rank;
  return no;
}

static bool is_padding(const Layout *layout, const int64_t *position) {
  int64_t value;
  const LayoutExpr *claim = layout->cache->inverse.padding;
  return claim && layout_expr_value(claim, position, NULL, 0, &value) && value;
}

// A place that is padding by the predicate, at a corner of the physical box.
static bool corner_padding(const Layout *layout, int64_t *position) {
  const int64_t *extents = layout->physical_extents;
  int rank = layout->physical_rank;
  for (int i = 0; i < rank; i++) position[i] = extents[i] - 1;
  if (is_padding(layout, position)) return true;
  for (int at = 0; at < rank; at++)
    for (int64_t other = 0; other < 2; other++) {
      for (int i = 0; i < rank; i++) position[i] = (i == at) != other ? extents[i] - 1 : 0;
      if (is_padding(layout, position)) return true;
    }
  return false;
}

static bool has_symbolic_section(Context *context, const Layout *layout) {
  const LayoutExpr *section[MAX_RANK];
  bool proved = false;
  return layout_symbolic_section(context, layout, section, &proved) && proved;
}

static LayoutAnswer symbolic_onto(Context *context, const Layout *layout) {
  LayoutAnswer inverse = ask(context, layout, CACHED_INVERSE);
  if (inverse.verdict == VERDICT_YES && !layout->cache->inverse.padding) return inverse;
  if (has_symbolic_section(context, layout)) return yes(LAYOUT_DIGITS);
  const LayoutComponents *components = layout_components(context, layout);
  if (components) return layout_components_all(context, layout, components, layout_is_onto, true);
  return instances_or_isl(context, layout, layout_is_onto);
}

static LayoutAnswer onto(Context *context, const Layout *layout) {
  int64_t positions, elements, position[MAX_RANK] = {0};
  if (!layout->is_static) return symbolic_onto(context, layout);
  if (!layout_physical_size(layout, &positions) || !layout_logical_size(layout, &elements))
    return uncounted(layout);
  if (elements == 0 && positions) return no_at(context, position, NULL, layout->physical_rank);
  if (elements == 0) return yes(LAYOUT_DIGITS);
  bool one_to_one = ask(context, layout, CACHED_INVERSE).verdict == VERDICT_YES;
  if (one_to_one && elements == positions) return yes(LAYOUT_DIGITS);
  if (one_to_one && corner_padding(layout, position))
    return no_at(context, position, NULL, layout->physical_rank);
  if (!one_to_one && elements > positions && layout_digits_section(context, layout, NULL))
    return yes(LAYOUT_DIGITS);
  const LayoutComponents *components = layout_components(context, layout);
  if (components) return layout_components_all(context, layout, components, layout_is_onto, true);
  if (!has_few_points(layout) && layout_isl_onto(context, layout).verdict == VERDICT_YES)
    return yes(LAYOUT_ISL);
  LayoutAnswer answer = onto_by_points(context, layout, positions);
  if (answer.verdict == VERDICT_UNDECIDED && elements < positions)
    return layout_answer_of(VERDICT_NO, LAYOUT_DIGITS,
                            str_format(context, "%lld elements cannot fill %lld places",
                                       (long long)elements, (long long)positions));
  return answer;
}

static LayoutAnswer padding(Context *context, const Layout *layout) {
  PointImage image;
  int64_t positions, elements;
  if (!layout_physical_size(layout, &positions) || !layout_logical_size(layout, &elements))
    return uncounted(layout);
  layout->cache->padding_count = positions - elements;
  if (elements == 0 || ask(context, layout, CACHED_INVERSE).verdict == VERDICT_YES)
    return yes(LAYOUT_DIGITS);
  const LayoutComponents *components = layout_components(context, layout);
  if (components) {
    LayoutAnswer answer = layout_components_image(context, components, &elements);
    layout->cache->padding_count = positions - elements;
    return answer;
  }
  if (!layout_points_image(context, layout, &image))
    return layout_points_over_limit(context, layout->extents, layout->rank);
  layout->cache->padding_count = positions - image.count;
  return yes(LAYOUT_POINTS);
}

// Of a layout without elements: every place is padding.
static LayoutInverse empty_inverse(Context *context, const Layout *layout) {
  const LayoutExpr *zeros[MAX_RANK];
  for (int i = 0; i < layout->rank; i++) zeros[i] = layout_const(context, 0);
  int64_t positions;
  bool any = layout_physical_size(layout, &positions) && positions;
  return (LayoutInverse){
      index_map_new(context, layout->physical_rank, NULL, layout->rank, zeros, NULL, NULL, 0),
      any ? layout_const(context, 1) : NULL};
}

// Only "yes" or "undecided": why there is none is the injectivity's to say.
static LayoutAnswer inverse(Context *context, const Layout *layout) {
  LayoutInverse *out = &layout->cache->inverse;
  LayoutLevel level = LAYOUT_DIGITS;
  if (layout_is_empty(layout)) {
    *out = empty_inverse(context, layout);
    return yes(LAYOUT_DIGITS);
  }
  if (layout->is_static ? layout_digits_inverse(context, layout, LAYOUT_DIGITS, out, &level)
                        : layout_symbolic_inverse(context, layout, out))
    return yes(level);
  const LayoutComponents *components = layout_components(context, layout);
  if (components) return layout_components_inverse(context, layout, components, out);
  if (!layout->is_static)
    return layout_answer_of(
        VERDICT_UNDECIDED, LAYOUT_DIGITS,
        "no closed form of the inverse was found for all values of the symbols");
  if (layout_digits_inverse(context, layout, LAYOUT_POINTS, out, &level)) return yes(level);
  if (layout_points_inverse(context, layout, FEW_PIECES, out)) return yes(LAYOUT_POINTS);
  return layout_answer_of(VERDICT_UNDECIDED, LAYOUT_DIGITS,
                          "no closed form of the inverse was found");
}

bool layout_section(Context *context, const Layout *layout, const LayoutExpr **section) {
  LayoutAnswer inverse = ask(context, layout, CACHED_INVERSE);
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

static LayoutAnswer (*const question_rows[CACHED_COUNT])(Context *, const Layout *) = {
    [CACHED_IDENTITY] = identity, [CACHED_INJECTIVE] = injective, [CACHED_ONTO] = onto,
    [CACHED_PADDING] = padding,   [CACHED_INVERSE] = inverse,
};

static void answered(Context *context, const Layout *layout, CachedQuestion question) {
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

static LayoutAnswer ask(Context *context, const Layout *layout, CachedQuestion question) {
  LayoutCache *cache = layout->cache;
  if (!cache->known[question]) {
    cache->answers[question] = layout->map->replica_count
                                   ? layout_copies_answer(context, layout, question)
                                   : question_rows[question](context, layout);
    cache->known[question] = true;
    answered(context, layout, question);
  }
  return cache->answers[question];
}

LayoutAnswer layout_is_identity(Context *context, const Layout *layout) {
  return ask(context, layout, CACHED_IDENTITY);
}

LayoutAnswer layout_is_injective(Context *context, const Layout *layout) {
  return ask(context, layout, CACHED_INJECTIVE);
}

LayoutAnswer layout_is_onto(Context *context, const Layout *layout) {
  return ask(context, layout, CACHED_ONTO);
}

static LayoutAnswer bijective(Context *context, const Layout *layout) {
  LayoutAnswer answer = layout_is_injective(context, layout);
  if (answer.verdict == VERDICT_UNDECIDED) {
    LayoutAnswer full = layout_is_onto(context, layout);
    return full.verdict == VERDICT_NO ? full : answer;
  }
  if (answer.verdict == VERDICT_YES) answer = layout_is_onto(context, layout);
  if (answer.verdict == VERDICT_YES && layout_of_copies(context, layout)->rank > layout->rank)
    return layout_answer_of(VERDICT_NO, answer.level, "elements lie in several places");
  return answer;
}

LayoutAnswer layout_is_bijective(Context *context, const Layout *layout) {
  LayoutAnswer answer = bijective(context, layout);
  LAYOUT_ANSWERED(context, &answer, LAYOUT_ASK_BIJECTIVE, layout);
  return answer;
}

LayoutAnswer layout_padding_count(Context *context, const Layout *layout, int64_t *out) {
  LayoutAnswer answer = ask(context, layout, CACHED_PADDING);
  if (answer.verdict == VERDICT_YES) *out = layout->cache->padding_count;
  return answer;
}

static const LayoutExpr *product_of(Context *context, const LayoutExpr *const *extents, int count) {
  const LayoutExpr *size = layout_const(context, 1);
  for (int i = 0; i < count; i++) size = layout_binary(context, LAYOUT_MUL, size, extents[i]);
  return size;
}

// Places that hold an element; NULL: not known.
static const LayoutExpr *image_expr(Context *context, const Layout *layout) {
  int64_t padding, positions;
  LayoutInverse inverse;
  if (layout->is_static && layout_padding_count(context, layout, &padding).verdict == VERDICT_YES &&
      layout_physical_size(layout, &positions))
    return layout_const(context, positions - padding);
  if (layout_inverse(context, layout, &inverse).verdict == VERDICT_YES)
    return product_of(context, layout->shape, layout->rank);
  if (layout_is_onto(context, layout).verdict == VERDICT_YES)
    return product_of(context, layout->physical, layout->physical_rank);
  const LayoutComponents *components = layout_components(context, layout);
  if (!components) return layout_image_of_axis(context, layout);
  const LayoutExpr *images[2 * MAX_RANK];
  for (int i = 0; i < components->count; i++)
    if (!(images[i] = image_expr(context, components->items[i].layout))) return NULL;
  return product_of(context, images, components->count);
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
        "elements share places, and how many is not counted for all values of the "
        "symbols");
  *out = layout_binary(context, LAYOUT_SUB,
                       product_of(context, layout->physical, layout->physical_rank), image);
  return yes(LAYOUT_DIGITS);
}

LayoutAnswer layout_inverse(Context *context, const Layout *layout, LayoutInverse *out) {
  LayoutAnswer answer = ask(context, layout, CACHED_INVERSE);
  *out = layout->cache->inverse;
  if (answer.verdict == VERDICT_YES) return answer;
  LayoutAnswer injective = layout_is_injective(context, layout);
  if (injective.verdict == VERDICT_NO) return injective;
  if (layout->map->replica_count || layout_components(context, layout) ||
      layout->cache->inverse_sought)
    return answer;
  layout->cache->inverse_sought = true;
  if (layout_isl_inverse(context, layout, &layout->cache->inverse))
    answer = yes(LAYOUT_ISL);
  else if (layout->is_static &&
           layout_points_inverse(context, layout, MOST_PIECES, &layout->cache->inverse))
    answer = yes(LAYOUT_POINTS);
  if (answer.verdict != VERDICT_YES) return answer;
  *out = layout->cache->inverse;
  layout->cache->answers[CACHED_INVERSE] = answer;
  answered(context, layout, CACHED_INVERSE);
  return answer;
}

LayoutAnswer layout_padding_expr(Context *context, const Layout *layout, const LayoutExpr **out) {
  LayoutAnswer answer = padding_expr(context, layout, out);
  LAYOUT_ANSWERED(context, &answer, LAYOUT_ASK_PADDING, layout, .value = *out);
  return answer;
}

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
  LayoutAnswer answer = divide(context, a, b, out);
  LAYOUT_ANSWERED(context, &answer, LAYOUT_ASK_DIVIDE, a, b, .inverse = *out);
  return answer;
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

static LayoutAnswer search_offset(Context *context, const Layout *layout, int64_t offset,
                                  int64_t *index) {
  const LayoutExpr *differs =
      layout_by(context, LAYOUT_NE, layout_offset_expr(context, layout), offset);
  LayoutAnswer none = layout_points_hold(context, layout->extents, layout->rank, &differs, 1);
  if (none.verdict == VERDICT_YES) return layout_answer_of(VERDICT_NO, LAYOUT_POINTS, "padding");
  memcpy(index, none.witness, sizeof *index * (size_t)layout->rank);
  return yes(LAYOUT_POINTS);
}

static LayoutAnswer at_offset(Context *context, const Layout *layout, int64_t offset,
                              int64_t *index) {
  int64_t positions, position[MAX_RANK], copy[MAX_RANK];
  if (layout->map->replica_count) {
    LayoutAnswer answer = at_offset(context, layout_of_copies(context, layout), offset, copy);
    if (answer.verdict == VERDICT_YES) memcpy(index, copy, sizeof *index * (size_t)layout->rank);
    return answer;
  }
  if (!layout_physical_size(layout, &positions)) return uncounted(layout);
  if (offset < 0 || offset >= positions)
    return layout_answer_of(VERDICT_NO, LAYOUT_DIGITS, "the offset is outside the layout");
  layout_index_at(layout->physical_extents, layout->physical_rank, offset, position);
  if (ask(context, layout, CACHED_INVERSE).verdict != VERDICT_YES) {
    LayoutInverse inverse;
    PointDomain domain;
    const LayoutComponents *components = layout_components(context, layout);
    if (components) return layout_components_index_at(context, components, position, index);
    if (layout_points_domain(layout->extents, layout->rank, &domain))
      return search_offset(context, layout, offset, index);
    if (layout_inverse(context, layout, &inverse).verdict != VERDICT_YES)
      return layout_points_over_limit(context, layout->extents, layout->rank);
  }
  if (is_padding(layout, position)) return layout_answer_of(VERDICT_NO, LAYOUT_DIGITS, "padding");
  if (!index_map_apply(layout->cache->inverse.map, position, index))
    bug(context, "the inverse of %s has no value", index_map_text(context, layout->map));
  return yes(LAYOUT_DIGITS);
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
