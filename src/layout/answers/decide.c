// SPDX-License-Identifier: Apache-2.0
// Holds what the files of answers/ share: how an answer is made, and the answers of isl and of the
// instances of a layout, which are asked last.
#include "layout/answers/decide.h"

const char *layout_level_name(LayoutLevel level) {
  static const char *const names[] = {
      [LAYOUT_DIGITS] = "digits", [LAYOUT_ISL] = "isl", [LAYOUT_POINTS] = "points"};
  return names[level];
}

LayoutAnswer layout_no_at(Context *context, const int64_t *index, const int64_t *other, int rank) {
  size_t size = sizeof *index * (size_t)rank;
  LayoutAnswer no = layout_answer_of(VERDICT_NO, LAYOUT_DIGITS, NULL);
  no.witness = arena_copy(&context->lasting, index, size);
  no.witness2 = other ? arena_copy(&context->lasting, other, size) : NULL;
  no.witness_rank = rank;
  return no;
}

LayoutAnswer layout_not_for_all(void) {
  return layout_answer_of(VERDICT_UNDECIDED, LAYOUT_DIGITS,
                          "not proved for all values of the symbols, nor false for those tried");
}

LayoutAnswer layout_not_by_isl(Context *context, const IslAnswer *said) {
  LayoutAnswer answer = layout_not_for_all();
  answer.reason = str_format(context, "%s; %s", answer.reason, said->why);
  return answer;
}

LayoutAnswer layout_uncounted(const Layout *layout) {
  return layout_answer_of(VERDICT_UNDECIDED, LAYOUT_DIGITS,
                          layout->is_static
                              ? "the number of physical indices does not fit 64 bits"
                              : "physical indices are counted for static extents only");
}

bool layout_has_few_points(const Layout *layout) {
  int64_t size;
  return layout_logical_size(layout, &size) && size <= FEW_POINTS;
}

LayoutAnswer layout_from_isl(Context *context, const Layout *layout, IslAnswer said,
                             LayoutDecider *question) {
  LayoutInstance instance;
  if (said.verdict == VERDICT_YES) return layout_yes(LAYOUT_ISL);
  if (said.verdict != VERDICT_NO) return layout_not_by_isl(context, &said);
  if (layout->is_static || !layout_instance_at(context, layout, said.values, said.count, &instance))
    return layout_not_for_all();
  LayoutAnswer answer = question(context, instance.layout);
  answer.instance = instance.values;
  answer.instance_count = instance.count;
  return answer.verdict == VERDICT_NO ? answer : layout_not_for_all();
}

LayoutAnswer layout_ask_instances(Context *context, const Layout *layout, LayoutDecider *question) {
  for (int i = 0; i < MAX_INSTANCES; i++) {
    LayoutInstance instance;
    if (!layout_instance(context, layout, i, &instance)) continue;
    LayoutAnswer answer = question(context, instance.layout);
    answer.instance = instance.values;
    answer.instance_count = instance.count;
    if (answer.verdict == VERDICT_NO) return answer;
  }
  return layout_not_for_all();
}
