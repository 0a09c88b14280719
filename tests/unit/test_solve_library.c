// SPDX-License-Identifier: Apache-2.0
// The functions of include/pleat/solve.h, linked as other programs do: from libpleat_solve alone.
#include <pleat/solve.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define never PLEAT_PBQP_INFINITY

static PleatPbqpResult solved(PleatPbqp *p) {
  PleatPbqpResult result = {.size = sizeof result};
  assert_int_equal(pleat_pbqp_solve(p, 1, &result), 0);
  assert_true(result.proved);
  assert_true(result.cost == result.bound);
  return result;
}

static int variable(PleatPbqp *p, int count, const int64_t *costs) {
  int number = pleat_pbqp_variable(p, count, costs);
  assert_int_equal(number, pleat_pbqp_variable_count(p) - 1);
  return number;
}

static void refused(PleatPbqp *p, int status, const char *part) {
  assert_int_equal(status, -1);
  assert_non_null(strstr(pleat_pbqp_error(p), part));
}

static void test_no_variables(void **state) {
  (void)state;
  PleatPbqp *p = pleat_pbqp_new();
  PleatPbqpResult r = solved(p);
  int64_t cost = -1;
  assert_non_null(r.choices);
  assert_true(r.cost == 0);
  assert_int_equal(pleat_pbqp_cost(p, r.choices, &cost), 0);
  assert_true(cost == 0);
  assert_string_equal(pleat_pbqp_error(p), "");
  pleat_pbqp_free(p);
  pleat_pbqp_free(NULL);
}

static void test_single_choices_and_components(void **state) {
  (void)state;
  PleatPbqp *p = pleat_pbqp_new();
  int a = variable(p, 1, (int64_t[]){7});
  int b = variable(p, 1, (int64_t[]){-3});
  int c = variable(p, 3, (int64_t[]){5, -5, never}); // a component of its own
  assert_int_equal(pleat_pbqp_edge(p, a, b, (int64_t[]){2}), 0);
  PleatPbqpResult r = solved(p);
  assert_true(r.cost == 7 - 3 + 2 - 5);
  assert_int_equal(r.choices[c], 1);
  assert_int_equal(r.core_variables, 0);
  pleat_pbqp_free(p);
}

static void test_edges_add_up_and_problems_grow(void **state) {
  (void)state;
  PleatPbqp *p = pleat_pbqp_new();
  int a = variable(p, 2, (int64_t[]){0, 0}), b = variable(p, 2, (int64_t[]){0, 1});
  assert_true(solved(p).cost == 0);
  assert_int_equal(pleat_pbqp_edge(p, a, b, (int64_t[]){3, 0, 3, 4}), 0);
  assert_int_equal(pleat_pbqp_edge(p, b, a, (int64_t[]){0, 0, 0, -4}), 0);
  PleatPbqpResult r = solved(p); // the edge from b has the choices of b as rows
  assert_true(r.cost == 1);
  assert_int_equal(r.choices[b], 1);
  int64_t cost;
  assert_int_equal(pleat_pbqp_cost(p, (int[]){0, 0}, &cost), 0);
  assert_true(cost == 3);
  pleat_pbqp_free(p);
}

static void test_without_solution(void **state) {
  (void)state;
  PleatPbqp *p = pleat_pbqp_new();
  int a = variable(p, 2, (int64_t[]){0, never}), b = variable(p, 2, (int64_t[]){0, 0});
  assert_int_equal(pleat_pbqp_edge(p, a, b, (int64_t[]){never, never, 0, 0}), 0);
  PleatPbqpResult r = solved(p);
  assert_null(r.choices);
  assert_true(r.cost == never && r.bound == never);
  int64_t cost;
  assert_int_equal(pleat_pbqp_cost(p, (int[]){1, 0}, &cost), 0);
  assert_true(cost == never);
  pleat_pbqp_free(p);
}

static void test_refusals(void **state) {
  (void)state;
  PleatPbqp *p = pleat_pbqp_new();
  PleatPbqpResult r = {.size = sizeof r};
  int64_t cost;
  refused(p, pleat_pbqp_variable(p, 0, (int64_t[]){0}), "1 to 16384 choices, not 0");
  refused(p, pleat_pbqp_variable(p, PLEAT_PBQP_MAX_CHOICES + 1, &cost), "not 16385");
  refused(p, pleat_pbqp_variable(p, 1, NULL), "NULL");
  refused(p, pleat_pbqp_variable(p, 1, (int64_t[]){PLEAT_PBQP_MAX_COST}), "exceed 2^56");
  refused(p, pleat_pbqp_variable(p, 1, (int64_t[]){-PLEAT_PBQP_MAX_COST}), "exceed 2^56");
  refused(p, pleat_pbqp_variable(p, 1, (int64_t[]){INT64_MIN}), "exceed 2^56");
  refused(p, pleat_pbqp_variable(p, 1, (int64_t[]){INT64_MAX - 1}), "exceed 2^56");
  assert_int_equal(pleat_pbqp_variable_count(p), 0);
  int64_t half[2] = {PLEAT_PBQP_MAX_COST / 2, -PLEAT_PBQP_MAX_COST / 2};
  int a = variable(p, 2, half);
  refused(p, pleat_pbqp_variable(p, 2, half), "exceed 2^56"); // only the sum is too large
  refused(p, pleat_pbqp_edge(p, a, a, half), "needs two variables");
  refused(p, pleat_pbqp_edge(p, a, 1, half), "there is no variable 1");
  refused(p, pleat_pbqp_edge(p, -1, a, half), "there is no variable -1");
  int b = variable(p, 1, (int64_t[]){0});
  refused(p, pleat_pbqp_edge(p, a, b, NULL), "NULL");
  refused(p, pleat_pbqp_edge(p, a, b, half), "exceed 2^56");
  refused(p, pleat_pbqp_cost(p, (int[]){2, 0}, &cost), "choice 2 does not exist");
  refused(p, pleat_pbqp_limit_tables(p, -1), "negative");
  refused(p, pleat_pbqp_solve(p, -1, &r), "negative");
  r = solved(p); // the problem is as it was before the refusals
  assert_true(r.cost == -PLEAT_PBQP_MAX_COST / 2);
  pleat_pbqp_free(p);
}

// A cycle with chords, so that the reductions leave a core.
static PleatPbqp *hard_problem(int variables, int choices) {
  PleatPbqp *p = pleat_pbqp_new();
  uint64_t random = 5;
  int64_t costs[64];
  for (int i = 0; i < variables; i++) {
    for (int k = 0; k < choices; k++)
      costs[k] = (int64_t)((random = random * 25214903917u + 11) >> 44) % 50;
    variable(p, choices, costs);
  }
  for (int i = 0; i < variables; i++)
    for (int step = 1; step <= 3; step++) {
      for (int k = 0; k < choices * choices; k++)
        costs[k] = (int64_t)((random = random * 25214903917u + 11) >> 44) % 50;
      assert_int_equal(pleat_pbqp_edge(p, i, (i + step) % variables, costs), 0);
    }
  return p;
}

static void test_limits(void **state) {
  (void)state;
  PleatPbqp *p = hard_problem(20, 5);
  PleatPbqpResult exact = solved(p), limited = {.size = sizeof limited}, again = limited;
  assert_true(exact.core_variables > 0);
  assert_int_equal(pleat_pbqp_limit_tables(p, 0), 0);
  assert_int_equal(pleat_pbqp_solve(p, 1e-6, &limited), 0);
  assert_true(limited.bound <= exact.cost && exact.cost <= limited.cost);
  assert_int_equal(pleat_pbqp_solve(p, 1e-6, &again), 0);
  assert_true(again.cost == limited.cost && again.work == limited.work);
  // A caller with an older header gets the fields that it knows.
  struct {
    PleatPbqpResult result;
    char after;
  } older = {{.size = offsetof(PleatPbqpResult, cost), .cost = -77}, 'x'};
  assert_int_equal(pleat_pbqp_solve(p, 1, &older.result), 0);
  assert_non_null(older.result.choices);
  assert_true(older.result.cost == -77);
  pleat_pbqp_free(p);
}

static void test_the_example(void **state) {
  (void)state;
  char line[128] = "";
  FILE *pipe = popen(EXAMPLE, "r");
  assert_non_null(pipe);
  while (fgets(line, sizeof line, pipe)) continue;
  assert_int_equal(pclose(pipe), 0);
  assert_string_equal(line, "cost 4, proved least\n");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_no_variables),
      cmocka_unit_test(test_single_choices_and_components),
      cmocka_unit_test(test_edges_add_up_and_problems_grow),
      cmocka_unit_test(test_without_solution),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_limits),
      cmocka_unit_test(test_the_example),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
