// SPDX-License-Identifier: Apache-2.0
// Bilinear algorithms: every one that is chosen is the correlation in exact arithmetic and in
// doubles; wrong matrices and points are refused; points with less growth round less.
#include "base/base.h"
#include "graph/bilinear.h"

#include <math.h>
#include <setjmp.h>

#include <cmocka.h>

// Deterministic numbers in -1 … 1.
static double next_number(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (double)(int32_t)(*state >> 32) * 0x1p-31;
}

static void correlate(const BilinearAlgorithm *a, const double *g, const double *d, double *y) {
  for (int i = 0; i < a->outputs; i++) y[i] = 0;
  for (int j = 0; j < a->products; j++) {
    double u = 0, v = 0;
    for (int k = 0; k < a->taps; k++) u += fraction_value(a->tap[j][k]) * g[k];
    for (int t = 0; t < a->products; t++) v += fraction_value(a->data[j][t]) * d[t];
    for (int i = 0; i < a->outputs; i++) y[i] += fraction_value(a->output[i][j]) * u * v;
  }
}

static void test_all_sizes_are_the_correlation(void **unused) {
  uint64_t state = 7;
  for (int taps = 2; taps <= 7; taps++)
    for (int outputs = 2; outputs + taps - 1 <= BILINEAR_MOST; outputs++) {
      BilinearAlgorithm a;
      double g[BILINEAR_MOST], d[BILINEAR_MOST], y[BILINEAR_MOST];
      assert_true(bilinear_best(outputs, taps, &a));
      assert_true(bilinear_proves(&a));
      assert_int_equal(a.products, outputs + taps - 1);
      for (int i = 0; i < BILINEAR_MOST; i++) g[i] = next_number(&state);
      for (int i = 0; i < BILINEAR_MOST; i++) d[i] = next_number(&state);
      correlate(&a, g, d, y);
      for (int i = 0; i < outputs; i++) {
        double direct = 0;
        for (int k = 0; k < taps; k++) direct += g[k] * d[i + k];
        assert_true(fabs(direct - y[i]) < 1e-11);
      }
    }
}

// The matrices of F(2, 3) from the points 0, 1, -1, as Winograd gives them up to signs.
static void test_two_outputs_of_three_taps(void **unused) {
  const Fraction points[] = {{0, 1}, {1, 1}, {-1, 1}};
  BilinearAlgorithm a;
  assert_true(bilinear_from_points(2, 3, points, &a));
  const double data[4][4] = {{-1, 0, 1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, -1, 0, 1}};
  const double tap[4][3] = {{-1, 0, 0}, {.5, .5, .5}, {.5, -.5, .5}, {0, 0, 1}};
  const double output[2][4] = {{1, 1, 1, 0}, {0, 1, -1, 1}};
  for (int j = 0; j < 4; j++) {
    for (int t = 0; t < 4; t++) assert_true(fraction_value(a.data[j][t]) == data[j][t]);
    for (int k = 0; k < 3; k++) assert_true(fraction_value(a.tap[j][k]) == tap[j][k]);
    for (int i = 0; i < 2; i++) assert_true(fraction_value(a.output[i][j]) == output[i][j]);
  }
}

static void test_wrong_matrices_are_refused(void **unused) {
  BilinearAlgorithm a;
  assert_true(bilinear_best(4, 3, &a));
  for (int j = 0; j < a.products; j++) {
    BilinearAlgorithm wrong = a;
    wrong.data[j][2].over += wrong.data[j][2].under;
    assert_false(bilinear_proves(&wrong));
    wrong = a;
    wrong.tap[j][2].over += 1;
    assert_false(bilinear_proves(&wrong));
  }
}

static void test_wrong_points_are_refused(void **unused) {
  BilinearAlgorithm a;
  const Fraction twice[] = {{0, 1}, {1, 1}, {2, 2}}, wide[] = {{0, 1}, {2147483647, 1}, {-5, 1}};
  assert_false(bilinear_from_points(2, 3, twice, &a));
  assert_false(bilinear_from_points(2, 3, wide, &a));
  assert_false(bilinear_best(7, 3, &a));
  assert_false(bilinear_best(1, 2, &a));
  assert_false(bilinear_best(0, 5, &a));
}

static void test_chosen_points_round_less(void **unused) {
  const Fraction usual[] = {{0, 1}, {1, 1}, {-1, 1}, {2, 1}, {-2, 1}};
  BilinearAlgorithm best, other;
  assert_true(bilinear_best(4, 3, &best));
  assert_true(bilinear_from_points(4, 3, usual, &other));
  assert_true(bilinear_growth(&best) < bilinear_growth(&other));
  assert_true(bilinear_bound(&best) < bilinear_bound(&other));
  assert_true(bilinear_bound(&best) >= 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_all_sizes_are_the_correlation),
      cmocka_unit_test(test_two_outputs_of_three_taps),
      cmocka_unit_test(test_wrong_matrices_are_refused),
      cmocka_unit_test(test_wrong_points_are_refused),
      cmocka_unit_test(test_chosen_points_round_less),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
