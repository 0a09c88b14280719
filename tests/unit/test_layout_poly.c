// SPDX-License-Identifier: Apache-2.0
// Polynomials: random sums, products and quotients are compared with their values at random points,
// and results that do not fit 64 bits are refused.
#include "layout/core/poly.h"
#include "layout_support.h"

enum { VARIABLES = 3, POINTS = 8 };

static Arena *arena;

static int64_t value_at(Poly p, const int64_t *point) {
  int64_t sum = 0;
  for (int i = 0; i < poly_count(p); i++) {
    PolyTerm t = poly_term(p, i);
    int64_t product = t.coefficient;
    for (int d = 0; d < POLY_DEGREE && t.v[d]; d++) product *= point[t.v[d] - 1];
    sum += product;
  }
  return sum;
}

static void random_point(int64_t *point) {
  for (int i = 0; i < VARIABLES; i++) point[i] = random_below(21) - 7;
}

static Poly random_poly(void) {
  Poly sum = poly_const(random_below(9) - 4);
  for (int terms = random_below(4); terms > 0; terms--) {
    Poly product = poly_const(random_below(13) - 6);
    for (int degree = random_below(3); degree >= 0; degree--)
      product =
          poly_product(arena, product, poly_variable(arena, random_below(VARIABLES)), POLY_DEGREE);
    sum = poly_linear(arena, sum, 1, product, 1);
  }
  return sum;
}

// Terms descend strictly and have no coefficient 0, and a constant has the shared empty list.
static void check_form(Poly p) {
  assert_true(poly_fits(p));
  assert_int_equal(p.terms == &poly_no_terms, p.terms->count == 0);
  for (int i = 0; i < p.terms->count; i++) {
    assert_true(p.terms->items[i].coefficient != 0);
    assert_true(p.terms->items[i].v[0] != 0);
    if (i) assert_true(monomial_compare(&p.terms->items[i - 1], &p.terms->items[i]) > 0);
  }
}

static void check_signs(Poly p) {
  int64_t point[VARIABLES];
  for (int i = 0; i < POINTS; i++) {
    random_point(point);
    for (int j = 0; j < VARIABLES; j++) point[j] = point[j] < 0 ? -point[j] : point[j];
    int64_t value = value_at(p, point);
    assert_true(!poly_nonnegative(p) || value >= 0);
    assert_true(!poly_nonpositive(p) || value <= 0);
    assert_true(!poly_positive(p) || value > 0);
  }
}

static void check_pair(Poly x, Poly y) {
  int64_t a = random_below(7) - 3, b = random_below(7) - 3, point[VARIABLES];
  Poly sum = poly_linear(arena, x, a, y, b), product = poly_product(arena, x, y, POLY_DEGREE);
  Poly moved = poly_plus(x, a), q, r;
  poly_divide(arena, x, y, &q, &r);
  assert_int_equal(poly_fits(q), !poly_is_zero(y));
  const Poly results[] = {x, sum, product, moved, q, r};
  for (int i = 0; i < (poly_fits(q) ? 6 : 4); i++) check_form(results[i]);
  assert_true(poly_same(product, poly_product(arena, y, x, POLY_DEGREE)));
  for (int i = 0; i < POINTS; i++) {
    random_point(point);
    int64_t u = value_at(x, point), v = value_at(y, point);
    assert_int_equal(value_at(sum, point), a * u + b * v);
    assert_int_equal(value_at(product, point), u * v);
    assert_int_equal(value_at(moved, point), u + a);
    if (poly_fits(q)) assert_int_equal(value_at(q, point) * v + value_at(r, point), u);
  }
  check_signs(sum);
}

static void test_random(void **state) {
  (void)state;
  for (int i = 0; i < 20000; i++) {
    ArenaMark mark = arena_mark(arena);
    Poly x = random_poly(), y = random_poly();
    check_pair(x, y);
    if (!poly_is_zero(y)) { // a product is divided without a rest, by a number too
      Poly q, r, product = poly_product(arena, x, y, POLY_DEGREE);
      poly_divide(arena, product, poly_const(3), &q, &r);
      assert_int_equal(poly_fits(poly_exact(arena, product, 3)), poly_is_zero(r));
      assert_true(poly_same(poly_exact(arena, poly_linear(arena, x, 3, y, 0), 3), x));
    }
    arena_reset(arena, mark);
  }
}

static void test_too_large(void **state) {
  (void)state;
  int64_t most = INT64_MAX;
  Poly x = poly_variable(arena, 0), large = poly_linear(arena, x, most, poly_const(most), 1);
  assert_true(poly_fits(large));
  assert_false(poly_fits(poly_plus(large, 1)));
  assert_false(poly_fits(poly_linear(arena, large, 1, x, 1)));
  assert_false(poly_fits(poly_linear(arena, large, 2, x, 0)));
  assert_false(poly_fits(poly_product(arena, large, poly_const(2), POLY_DEGREE)));
  assert_false(poly_fits(poly_product(arena, large, large, POLY_DEGREE)));
  assert_false(poly_fits(poly_product(arena, x, x, 1)));
  assert_false(poly_fits(poly_linear(arena, POLY_NONE, 1, x, 1)));
  assert_false(poly_fits(poly_plus(POLY_NONE, 1)));
  assert_false(poly_same(POLY_NONE, POLY_NONE));
  assert_false(poly_nonnegative(POLY_NONE));
  assert_false(poly_nonpositive(POLY_NONE));
}

int main(void) {
  context = context_new();
  arena = &context->scratch;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random),
      cmocka_unit_test(test_too_large),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  context_free(context);
  return failed;
}
