// SPDX-License-Identifier: Apache-2.0
// Builds that verify check answers: a right answer passes, a wrong one is found. In other builds
// there is nothing to test here.
#include "layout_support.h"

#include "config.h"
#include "layout/core/core.h"

static const Layout *layout(const char *text, int64_t rows, int64_t columns) {
  int64_t shape[2] = {rows, columns};
  const Layout *made = layout_parse_static(context, text, shape, columns ? 2 : 1);
  if (!made) fail_msg("%s is no layout", text);
  return made;
}

// Runs a check in a context of its own, which a failure leaves unusable.
static void expect(bool good, void (*check)(void *)) {
  Context *outer = context;
  context = context_new();
  bool passed = context_protect(context, check, &good);
  if (passed != good) fail_msg("%s", passed ? "not found" : context->failure_message);
  context_free(context);
  context = outer;
}

static void expect_both(void (*check)(void *)) {
  expect(true, check);
  expect(false, check);
}

// Checks an answer to a question.
static void verify(LayoutQuestion question, Verdict verdict) {
  layout_verify(context, &question, &(LayoutAnswer){.verdict = verdict});
}

static void inverse(void *good) {
  const Layout *a = layout("i; r=2 -> i//2, 2*r + i%2 in [3, 4]", 5, 0);
  LayoutInverse found;
  assert_int_equal(layout_inverse(context, a, &found).verdict, VERDICT_YES);
  assert_non_null(found.padding);
  if (!*(bool *)good) found.padding = NULL;
  verify((LayoutQuestion){LAYOUT_ASK_INVERSE, a, .inverse = found}, VERDICT_YES);
}

static void symbolic_inverse(void *good) {
  const LayoutExpr *shape = layout_symbol(context, str_intern(context, "N"));
  LayoutSource source = layout_source("i -> i//4, i%4", 1);
  source.symbols = true;
  const Layout *a = layout_parse(context, &source, &shape, 1, (LayoutFacts){0});
  LayoutInverse found;
  assert_int_equal(layout_inverse(context, a, &found).verdict, VERDICT_YES);
  assert_non_null(found.padding);
  if (!*(bool *)good) found.padding = NULL;
  verify((LayoutQuestion){LAYOUT_ASK_INVERSE, a, .inverse = found}, VERDICT_YES);
}

static void quotient(void *good) {
  const Layout *a = layout("i -> 4 - i, i%2", 5, 0), *b = layout("i -> 2*i", 5, 0);
  LayoutInverse found;
  assert_int_equal(layout_divide(context, a, b, &found).verdict, VERDICT_YES);
  if (!*(bool *)good) a = layout("i -> i, i%2", 5, 0);
  verify((LayoutQuestion){LAYOUT_ASK_DIVIDE, a, b, .inverse = found}, VERDICT_YES);
}

static void left_quotient(void *good) {
  const Layout *a = layout("i -> i, i%2 in [9, 2]", 5, 0);
  const Layout *b = layout("i -> i, i%2 in [9, 2]", 7, 0);
  LayoutInverse found;
  assert_int_equal(layout_divide_left(context, a, b, &found).verdict, VERDICT_YES);
  assert_non_null(found.padding);
  if (!*(bool *)good) found.padding = NULL;
  verify((LayoutQuestion){LAYOUT_ASK_DIVIDE_LEFT, a, b, .inverse = found}, VERDICT_YES);
}

static void conflicts(void *good) {
  const Layout *a = layout(*(bool *)good ? "i, j -> j, i" : "i, j -> i, j", 8, 8);
  int64_t extents[] = {8, 8};
  LayoutAccess access = {layout("i, j -> j, i", 8, 8)->map, extents, 0, 0};
  LayoutBanks banks = {32, 4, 8};
  verify((LayoutQuestion){LAYOUT_ASK_CONFLICTS, a, .accesses = &access, .access_count = 1,
                          .banks = banks},
         VERDICT_YES);
}

static void lines(void *good) {
  LayoutQuestion lines = {LAYOUT_ASK_LINES, layout("i -> 40*i", 6, 0), .size = {32, 64, 4}};
  layout_lines(context, lines.a, NULL, NULL, lines.size, 4, &lines.runs);
  lines.runs.total += !*(bool *)good;
  verify(lines, VERDICT_YES);
}

static void test_answers(void **state) {
  (void)state;
  static void (*const checks[])(void *) = {
      inverse, symbolic_inverse, quotient, left_quotient, conflicts, lines,
  };
  for (int i = 0; i < COUNT_OF(checks) && PLEAT_VERIFY_EACH; i++) expect_both(checks[i]);
  if (!PLEAT_VERIFY_EACH) skip();
}

int main(void) {
  context = context_new();
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_answers)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  context_free(context);
  return failed;
}
