// SPDX-License-Identifier: Apache-2.0
// Decides the equality of maps and of layouts: by digits, symbolically, by isl, at last by points.
#include "layout/answers/decide.h"

// ---- Maps --------------------------------------------------------------------------------------

static bool has_symbol(const LayoutExpr *e) {
  int count = 0;
  return !layout_add_symbols(e, NULL, &count, 0);
}

// "No" where the maps differ at these values. Undecided where b has symbols that a has not: they
// have no values, so that the maps cannot be compared.
static LayoutAnswer maps_equal_at(Context *context, const LayoutInstance *at, const IndexMap *b) {
  const LayoutExpr *outputs[MAX_RANK];
  for (int i = 0; i < b->output_count; i++) {
    outputs[i] = layout_instantiate(context, b->outputs[i], at->values, at->count);
    if (has_symbol(outputs[i])) return layout_not_for_all();
  }
  LayoutAnswer answer =
      layout_maps_equal(context, at->layout, index_map_with_outputs(context, b, outputs));
  answer.instance = at->values;
  answer.instance_count = at->count;
  return answer.verdict == VERDICT_NO ? answer : layout_not_for_all();
}

static LayoutAnswer maps_equal_symbolic(Context *context, const Layout *a, const IndexMap *b) {
  LayoutInstance instance;
  if (layout_symbolic_maps_equal(context, a, b->outputs)) return layout_yes(LAYOUT_DIGITS);
  for (int i = 0; i < MAX_INSTANCES; i++) {
    if (!layout_instance(context, a, i, &instance)) continue;
    LayoutAnswer answer = maps_equal_at(context, &instance, b);
    if (answer.verdict == VERDICT_NO) return answer;
  }
  IslAnswer said = layout_isl_maps_equal(context, a, b->outputs);
  if (said.verdict == VERDICT_YES) return layout_yes(LAYOUT_ISL);
  if (said.verdict != VERDICT_NO) return layout_not_by_isl(context, &said);
  if (!layout_instance_at(context, a, said.values, said.count, &instance))
    return layout_not_for_all();
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
  if (!count) return layout_yes(LAYOUT_DIGITS);
  if (!a->is_static) return maps_equal_symbolic(context, a, b);
  if (layout_is_empty(a)) return layout_yes(LAYOUT_DIGITS);
  for (int i = 0; i < b->output_count; i++)
    if (has_symbol(b->outputs[i]))
      return layout_answer_of(VERDICT_UNDECIDED, LAYOUT_DIGITS,
                              "nothing is known of the map's symbols");
  int64_t witness[MAX_RANK];
  Verdict proof = layout_digits_maps_equal(context, a->extents, a->rank, a->map->outputs,
                                           b->outputs, a->physical_rank, witness);
  if (proof == VERDICT_YES) return layout_yes(LAYOUT_DIGITS);
  if (proof == VERDICT_NO) return layout_no_at(context, witness, NULL, a->rank);
  if (layout_points_needed(a->extents, a->rank, conditions, count) > FEW_POINTS &&
      layout_isl_maps_equal(context, a, b->outputs).verdict == VERDICT_YES)
    return layout_yes(LAYOUT_ISL);
  return layout_points_hold(context, a->extents, a->rank, conditions, count);
}

LayoutAnswer layout_maps_equal(Context *context, const Layout *a, const IndexMap *b) {
  LayoutAnswer answer = maps_equal(context, a, b);
  if (!a->map->replica_count && !b->replica_count)
    LAYOUT_ANSWERED(context, &answer, LAYOUT_ASK_SAME_MAP, a, .map = b);
  return answer;
}

LayoutAnswer layout_outputs_equal(Context *context, const Layout *layout,
                                  const LayoutExpr *const *outputs) {
  return layout_maps_equal(context, layout, index_map_with_outputs(context, layout->map, outputs));
}

// ---- Layouts -----------------------------------------------------------------------------------

bool layout_same_extents(Context *context, const Layout *layout, const LayoutExpr *const *a,
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

// The answer where extents are not proved to be the same: "no" where they differ at some values.
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
  if (a == b) return layout_yes(LAYOUT_DIGITS);
  if (a->rank != b->rank || a->physical_rank != b->physical_rank)
    return layout_answer_of(VERDICT_NO, LAYOUT_DIGITS, "the ranks differ");
  const char *difference = map_difference(a->map, b->map);
  if (difference) return layout_answer_of(VERDICT_NO, LAYOUT_DIGITS, difference);
  if (!layout_same_extents(context, a, a->shape, b->shape, a->rank))
    return extents_differ(context, a, b, "the logical shapes differ");
  if (!layout_same_extents(context, a, a->physical, b->physical, a->physical_rank))
    return extents_differ(context, a, b, "the physical shapes differ");
  return maps_equal(context, a, b->map);
}

LayoutAnswer layout_equal(Context *context, const Layout *a, const Layout *b) {
  LAYOUT_RETURN(context, equal(context, a, b), LAYOUT_ASK_EQUAL, a, b);
}
