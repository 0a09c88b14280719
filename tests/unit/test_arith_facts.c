// SPDX-License-Identifier: Apache-2.0
// Simplification and proofs under symbolic ranges and assumptions: a statement that is proved must
// hold at every allowed point, and the statements that schedules need must be proved.
#include "arith_support.h"

#ifndef FUZZ_ROUNDS
#define FUZZ_ROUNDS 2500
#endif

#define I(n) expr_index(c, (n))
#define ADD(a, b) expr_add(c, a, b)
#define SUB(a, b) expr_sub(c, a, b)
#define TIMES(a, b) expr_mul(c, a, b)
#define OVER(a, b) expr_floor_div(c, a, b)
#define REST(a, b) expr_floor_mod(c, a, b)
#define LESS(a, b) expr_lt(c, a, b)
#define LE(a, b) expr_binary(c, EXPR_LE, a, b)

// n and m are symbols, i runs below n, j below m, k below 4.
enum { SYMBOL_N, SYMBOL_M, LOOP_I, LOOP_J, LOOP_K };

static World symbolic_world(Analyzer **analyzer) {
  World w = world_new();
  Context *c = w.context;
  Expr *n = world_var(&w, "n", 1, 7), *m = world_var(&w, "m", 1, 5);
  Expr *i = world_var(&w, "i", 0, 7), *j = world_var(&w, "j", 0, 5), *k = world_var(&w, "k", 0, 4);
  *analyzer = analyzer_new(c);
  analyzer_bind(*analyzer, n, I(1), I(7));
  analyzer_bind(*analyzer, m, I(1), I(5));
  analyzer_bind(*analyzer, i, I(0), n);
  analyzer_bind(*analyzer, j, I(0), m);
  analyzer_bind(*analyzer, k, I(0), I(4));
  return w;
}

static bool allowed(const World *w) {
  return w->value[LOOP_I] < w->value[SYMBOL_N] && w->value[LOOP_J] < w->value[SYMBOL_M];
}

// Random expressions with products and quotients by symbols.
static Expr *symbolic_expr(World *w, uint64_t *seed, int depth) {
  Context *c = w->context;
  Expr *n = w->vars[SYMBOL_N], *m = w->vars[SYMBOL_M];
  Expr *symbols[] = {n, m, TIMES(n, m), TIMES(m, I(4)), ADD(n, I(1)), TIMES(n, I(3))};
  Expr *symbol = symbols[pick(seed, COUNT_OF(symbols))];
  if (depth <= 0) return w->vars[pick(seed, 5)];
  Expr *a = symbolic_expr(w, seed, depth - 1);
  switch (pick(seed, 12)) {
  case 0:
  case 1:
  case 2: return ADD(a, symbolic_expr(w, seed, depth - 1));
  case 3:
  case 4: return TIMES(a, symbol);
  case 5: return OVER(a, symbol);
  case 6: return REST(a, symbol);
  case 7: return TIMES(a, I(1 + pick(seed, 5)));
  case 8: return OVER(a, I(2 + pick(seed, 4)));
  case 9: return REST(a, I(2 + pick(seed, 4)));
  case 10: return expr_min(c, a, symbolic_expr(w, seed, depth - 1));
  default: return expr_sub(c, a, symbolic_expr(w, seed, depth - 1));
  }
}

static Expr *symbolic_condition(World *w, uint64_t *seed, int depth) {
  static const ExprOp ops[] = {EXPR_LT, EXPR_LE, EXPR_EQ, EXPR_NE, EXPR_GE, EXPR_LT, EXPR_GT};
  return expr_binary(w->context, ops[pick(seed, COUNT_OF(ops))], symbolic_expr(w, seed, depth),
                     symbolic_expr(w, seed, depth));
}

// Fails unless `same` has e's value wherever `given` holds; `proved` says that e != 0 there.
static void check_everywhere(World *w, Expr *e, Expr *same, Expr *given, bool proved) {
  world_first(w);
  do {
    w->undefined = false;
    if (!allowed(w) || (given && !eval(w, given)) || w->undefined) continue;
    int64_t value = eval(w, e);
    if (w->undefined) continue;
    int64_t other = eval(w, same);
    if (value != other || (proved && !value))
      fail_msg("%s is %lld, %s is %lld%s at n=%lld m=%lld i=%lld j=%lld k=%lld given %s",
               spelled(w, e), (long long)value, spelled(w, same), (long long)other,
               proved ? ", proved" : "", (long long)w->value[0], (long long)w->value[1],
               (long long)w->value[2], (long long)w->value[3], (long long)w->value[4],
               given ? spelled(w, given) : "nothing");
  } while (world_next(w));
}

static void test_random_symbolic(void **state) {
  (void)state;
  uint64_t seed = 31337;
  Analyzer *a;
  World w = symbolic_world(&a);
  for (int n = 0; n < FUZZ_ROUNDS; n++) {
    bool condition = pick(&seed, 3) == 0;
    Expr *e = condition ? symbolic_condition(&w, &seed, 2) : symbolic_expr(&w, &seed, 3);
    bool proved = condition && analyzer_prove(a, e);
    check_everywhere(&w, e, pick(&seed, 4) ? analyzer_simplify(a, e) : analyzer_simplify_deep(a, e),
                     NULL, proved);
  }
  context_free(w.context);
}

static void test_random_assumptions(void **state) {
  (void)state;
  uint64_t seed = 271828;
  Analyzer *a;
  World w = symbolic_world(&a);
  for (int n = 0; n < FUZZ_ROUNDS; n++) {
    Expr *given =
        pick(&seed, 2) ? symbolic_condition(&w, &seed, 1) : random_condition(&w, &seed, 2);
    Expr *e = pick(&seed, 2) ? symbolic_condition(&w, &seed, 2) : random_condition(&w, &seed, 2);
    Expr *before = analyzer_simplify(a, e);
    int mark = analyzer_mark(a);
    analyzer_assume(a, given);
    bool proved = analyzer_prove(a, e);
    Expr *s = analyzer_simplify(a, e);
    analyzer_reset(a, mark);
    check_everywhere(&w, e, s, given, proved);
    assert_ptr_equal(analyzer_simplify(a, e), before);
  }
  context_free(w.context);
}

// Every value of the box of i and k, in terms of n, m and j.
static void test_random_symbolic_boxes(void **state) {
  (void)state;
  uint64_t seed = 1618;
  World w = world_new();
  Context *c = w.context;
  Expr *n = world_var(&w, "n", 1, 6), *m = world_var(&w, "m", 1, 4), *i = world_var(&w, "i", 0, 6),
       *j = world_var(&w, "j", 0, 4), *k = world_var(&w, "k", 0, 4);
  Analyzer *a = analyzer_new(c);
  analyzer_bind(a, n, I(1), I(6));
  analyzer_bind(a, m, I(1), I(4));
  analyzer_bind(a, j, I(0), m);
  VarRange inner[] = {{i, I(0), n}, {k, I(0), I(4)}};
  int found = 0;
  for (int round = 0; round < FUZZ_ROUNDS; round++) {
    Expr *e = symbolic_expr(&w, &seed, 3), *min, *extent;
    index_region(a, &e, 1, inner, 2, &min, &extent, NULL);
    if (!min) continue;
    found++;
    assert_false(expr_uses(min, i) || expr_uses(extent, i) || expr_uses(min, k) ||
                 expr_uses(extent, k));
    world_first(&w);
    do {
      w.undefined = false;
      if (!allowed(&w)) continue;
      int64_t v = eval(&w, e);
      if (w.undefined) continue;
      int64_t low = eval(&w, min), count = eval(&w, extent);
      if (v < low || v >= low + count)
        fail_msg("%s is %lld outside [%s, +%s)", spelled(&w, e), (long long)v, spelled(&w, min),
                 spelled(&w, extent));
    } while (world_next(&w));
  }
  assert_true(found > FUZZ_ROUNDS / 3);
  context_free(c);
}

static void expect_proof(World *w, Analyzer *a, Expr *condition, bool wanted) {
  if (analyzer_prove(a, condition) != wanted)
    fail_msg("%s is %sproved", spelled(w, condition), wanted ? "not " : "");
}

static void test_symbolic_proofs(void **state) {
  (void)state;
  World w = world_new();
  Context *c = w.context;
  Analyzer *a = analyzer_new(c);
  Expr *n = expr_var(c, "n", DTYPE_INT32), *m = expr_var(c, "m", DTYPE_INT32);
  Expr *i = expr_var(c, "i", DTYPE_INT32), *j = expr_var(c, "j", DTYPE_INT32);
  Expr *io = expr_var(c, "io", DTYPE_INT32), *ii = expr_var(c, "ii", DTYPE_INT32);
  analyzer_assume(a, LE(I(1), n));
  analyzer_assume(a, LE(I(1), m));
  analyzer_bind(a, i, I(0), n);
  analyzer_bind(a, j, I(0), m);
  Expr *row = ADD(TIMES(i, m), j);
  expect_proof(&w, a, LESS(row, TIMES(n, m)), true);
  expect_proof(&w, a, LESS(row, expr_sub(c, TIMES(n, m), I(1))), false);
  expect_proof(&w, a, LE(I(0), row), true);
  assert_ptr_equal(analyzer_simplify(a, OVER(row, m)), i);
  assert_ptr_equal(analyzer_simplify(a, REST(row, m)), j);
  assert_ptr_not_equal(analyzer_simplify(a, OVER(row, n)), i);
  Expr *p = expr_var(c, "p", DTYPE_INT32), *q = expr_var(c, "q", DTYPE_INT32);
  Expr *cell = ADD(TIMES(ADD(TIMES(p, n), q), m), j), *area = TIMES(n, m);
  assert_ptr_equal(analyzer_simplify(a, OVER(cell, area)),
                   analyzer_simplify(a, ADD(p, OVER(q, n))));
  assert_ptr_equal(analyzer_simplify(a, REST(cell, area)),
                   analyzer_simplify(a, ADD(TIMES(REST(q, n), m), j)));
  assert_ptr_equal(analyzer_simplify(a, ADD(TIMES(OVER(q, n), n), REST(q, n))), q);
  assert_ptr_equal(analyzer_simplify(a, LESS(OVER(q, I(7)), I(3))),
                   analyzer_simplify(a, LESS(q, I(21))));
  assert_ptr_equal(analyzer_simplify(a, ADD(TIMES(OVER(row, I(16)), I(16)), REST(row, I(16)))),
                   analyzer_simplify(a, row));
  analyzer_bind(a, io, I(0), OVER(ADD(n, I(15)), I(16)));
  analyzer_bind(a, ii, I(0), I(16));
  expect_proof(&w, a, expr_binary(c, EXPR_NE, ADD(TIMES(i, I(32)), ii), SUB(TIMES(m, I(32)), I(1))),
               true);
  expect_proof(&w, a, expr_binary(c, EXPR_NE, ADD(TIMES(i, I(16)), ii), SUB(TIMES(m, I(16)), I(1))),
               false);
  Expr *tile = ADD(TIMES(io, I(16)), ii);
  expect_proof(&w, a, LESS(tile, n), false);
  expect_proof(&w, a, LESS(tile, ADD(n, I(15))), true);
  expect_proof(&w, a, LESS(TIMES(io, I(16)), n), true);
  expect_proof(&w, a, LE(expr_min(c, ADD(TIMES(io, I(16)), I(16)), n), n), true);
  int mark = analyzer_mark(a);
  analyzer_assume(a, LESS(tile, n));
  expect_proof(&w, a, LE(tile, expr_sub(c, n, I(1))), true);
  expect_proof(&w, a, LESS(io, n), true);
  analyzer_reset(a, mark);
  expect_proof(&w, a, LE(tile, expr_sub(c, n, I(1))), false);
  analyzer_assume(a, expr_binary(c, EXPR_EQ, REST(n, I(16)), I(0)));
  expect_proof(&w, a, expr_binary(c, EXPR_EQ, REST(ADD(n, I(5)), I(16)), I(5)), true);
  expect_proof(&w, a, expr_binary(c, EXPR_NE, ADD(n, I(1)), TIMES(m, I(2))), true);
  expect_proof(&w, a, expr_binary(c, EXPR_NE, ADD(n, I(2)), TIMES(m, I(2))), false);
  expect_proof(&w, a, LESS(tile, n), true);
  assert_ptr_equal(analyzer_simplify(a, TIMES(OVER(n, I(16)), I(16))), n);
  assert_ptr_equal(analyzer_simplify(a, REST(ADD(TIMES(n, m), I(35)), I(16))), I(3));
  context_free(c);
}

static void test_padding_conditions(void **state) {
  (void)state;
  World w = world_new();
  Context *c = w.context;
  Analyzer *a = analyzer_new(c);
  Expr *oh = world_var(&w, "oh", 0, 8), *r = world_var(&w, "r", 0, 3);
  world_bind(&w, a);
  Expr *at = expr_sub(c, ADD(TIMES(oh, I(2)), r), I(1));
  Expr *inside = expr_and(c, LE(I(0), at), LESS(at, I(15)));
  expect_proof(&w, a, LE(I(0), at), false);
  expect_proof(&w, a, LE(I(-1), at), true);
  expect_proof(&w, a, LESS(at, I(16)), true);
  expect_proof(&w, a, LESS(at, I(15)), false);
  int mark = analyzer_mark(a);
  analyzer_assume(a, LE(I(1), oh));
  expect_proof(&w, a, LE(I(0), at), true);
  analyzer_assume(a, LESS(oh, I(7)));
  expect_proof(&w, a, inside, true);
  analyzer_reset(a, mark);
  analyzer_assume(a, inside);
  expect_proof(&w, a, LE(I(0), at), true);
  expect_proof(&w, a, LESS(I(0), ADD(TIMES(oh, I(2)), r)), true);
  expect_proof(&w, a, LESS(at, I(14)), false);
  expect_proof(&w, a, LESS(OVER(at, I(5)), I(3)), true); // a quotient of what is bounded
  expect_proof(&w, a, LESS(ADD(TIMES(r, I(3)), OVER(at, I(5))), I(9)), true);
  expect_proof(&w, a, LE(I(0), OVER(at, I(5))), true);
  analyzer_reset(a, mark);
  expect_proof(&w, a, LESS(OVER(at, I(5)), I(3)), false);
  Expr *some = expr_cast(c, DTYPE_BOOL, oh); // `if oh:`
  for (int i = 0; i < 2; i++) {
    analyzer_assume(a, i ? some : expr_binary(c, EXPR_NE, I(0), oh));
    expect_proof(&w, a, LESS(I(0), at), true);
    analyzer_assume(a, expr_binary(c, EXPR_NE, at, I(15)));
    expect_proof(&w, a, LESS(at, I(15)), true);
    analyzer_assume(a, expr_binary(c, EXPR_NE, at, I(7))); // not at an end
    expect_proof(&w, a, LESS(at, I(14)), false);
    analyzer_reset(a, mark);
  }
  analyzer_assume(a, expr_unary(c, EXPR_NOT, some));
  expect_proof(&w, a, LESS(at, I(2)), true);
  context_free(c);
}

// A quotient that was divided by terms is still bounded by the assumption on the whole.
static void test_quotients_are_integers(void **state) {
  (void)state;
  World w = world_new();
  Context *c = w.context;
  Analyzer *a = analyzer_new(c);
  Expr *o = world_var(&w, "o", 0, 6), *i = world_var(&w, "i", 0, 6);
  world_bind(&w, a);
  Expr *whole = ADD(TIMES(o, I(6)), i);
  analyzer_assume(a, LESS(whole, I(33)));
  expect_proof(&w, a, LESS(OVER(whole, I(3)), I(11)), true);
  expect_proof(&w, a, LESS(OVER(whole, I(3)), I(10)), false);
  expect_proof(&w, a, LESS(TIMES(OVER(whole, I(3)), I(2)), I(21)), true);
  expect_proof(&w, a, LESS(OVER(whole, I(2)), I(17)), true);
  expect_proof(&w, a, LESS(OVER(whole, I(2)), I(16)), false);
  analyzer_assume(a, LE(I(7), whole));
  expect_proof(&w, a, LE(I(2), OVER(whole, I(3))), true);
  expect_proof(&w, a, LE(I(3), OVER(whole, I(3))), false);
  context_free(c);
}

// A variable that an equality gives a value keeps its range.
static void test_equalities_keep_ranges(void **state) {
  (void)state;
  World w = world_new();
  Context *c = w.context;
  Analyzer *a = analyzer_new(c);
  Expr *o = world_var(&w, "o", 0, 3), *i = world_var(&w, "i", 0, 2);
  world_bind(&w, a);
  analyzer_assume(a, expr_binary(c, EXPR_EQ, ADD(TIMES(o, I(2)), i), I(0)));
  expect_proof(&w, a, LE(I(0), i), true);
  expect_proof(&w, a, LESS(i, I(2)), true);
  expect_proof(&w, a, LESS(o, I(1)), true);
  expect_proof(&w, a, LESS(o, I(0)), false);
  context_free(c);
}

// A coefficient may be cut above or below its quotient.
static void test_reduced_coefficients(void **state) {
  (void)state;
  World w = world_new();
  Context *c = w.context;
  Analyzer *a = analyzer_new(c);
  Expr *i = world_var(&w, "i", 0, 5), *j = world_var(&w, "j", 0, 2), *k = world_var(&w, "k", 0, 16);
  world_bind(&w, a);
  Expr *over = ADD(TIMES(i, I(2)), TIMES(j, I(-9))), *under = ADD(TIMES(j, I(17)), k);
  assert_ptr_equal(analyzer_simplify(a, OVER(over, I(2))),
                   analyzer_simplify(a, ADD(i, TIMES(j, I(-5)))));
  assert_ptr_equal(analyzer_simplify(a, REST(over, I(2))), j);
  expect_proof(&w, a, LESS(OVER(under, I(16)), I(3)), true);
  context_free(c);
}

// Holds the bounds of an expression against its values at all points; exact ones are met.
static void expect_bounds(World *w, Analyzer *a, Expr *e, bool exact) {
  int64_t low, high, least = INT64_MAX, most = INT64_MIN;
  assert_true(analyzer_const_bounds(a, e, &low, &high));
  world_first(w);
  do {
    int64_t v = eval(w, e);
    least = MIN_OF(least, v);
    most = MAX_OF(most, v);
  } while (world_next(w));
  if (least < low || most > high || (exact && (least != low || most != high)))
    fail_msg("%s is in [%lld, %lld], bounds [%lld, %lld]", spelled(w, e), (long long)least,
             (long long)most, (long long)low, (long long)high);
}

// The bounds of digits of independent variables are exact.
static void test_bounds_are_exact(void **state) {
  (void)state;
  uint64_t seed = 8128;
  static const int64_t extents[][3] = {{7, 4, 16}, {1, 5, 3}, {13, 2, 6}, {23, 8, 1}};
  for (int round = 0; round < 1200; round++) {
    World w = world_new();
    Context *c = w.context;
    Analyzer *a = analyzer_new(c);
    for (int i = 0; i < 3; i++)
      world_var(&w, str_format(c, "v%d", i), (int64_t)pick(&seed, 9) - 4, extents[round % 4][i]);
    world_bind(&w, a);
    Expr *e = I((int64_t)pick(&seed, 7));
    for (int i = 0; i < 3; i++) {
      int64_t cut = 1;
      for (int d = 0; d < 3; d++) { // digits of one variable along one chain of cuts
        Expr *digit = OVER(w.vars[i], I(cut));
        int64_t radix = 2 + pick(&seed, 3);
        if (pick(&seed, 3)) digit = REST(digit, I(radix));
        e = ADD(e, TIMES(digit, I((int64_t)pick(&seed, 19) - 9)));
        cut *= radix;
      }
    }
    expect_bounds(&w, a, e, true);
    context_free(c);
  }
}

// Quotients of one variable and different constants are looked at together.
static void test_bounds_of_shifted_quotients(void **state) {
  (void)state;
  uint64_t seed = 496;
  for (int round = 0; round < 600; round++) {
    World w = world_new();
    Context *c = w.context;
    Analyzer *a = analyzer_new(c);
    for (int i = 0; i < 2; i++)
      world_var(&w, str_format(c, "v%d", i), (int64_t)pick(&seed, 9) - 4, 1 + pick(&seed, 29));
    world_bind(&w, a);
    Expr *e = I((int64_t)pick(&seed, 7));
    for (int i = 0; i < 2; i++)
      for (int d = 0; d < 1 + i * 5; d++) // more than are looked at together, of the second one
        e = ADD(e,
                TIMES(OVER(ADD(w.vars[i], I((int64_t)pick(&seed, 33) - 9)), I(1 + pick(&seed, 9))),
                      I((int64_t)pick(&seed, 19) - 9)));
    expect_bounds(&w, a, e, false);
    context_free(c);
  }
  World w = world_new();
  Context *c = w.context;
  Analyzer *a = analyzer_new(c);
  Expr *i = world_var(&w, "i", 0, 28);
  world_bind(&w, a);
  Expr *window =
      ADD(TIMES(OVER(ADD(i, I(4)), I(8)), I(4)), TIMES(OVER(ADD(i, I(28)), I(32)), I(-16)));
  int64_t low, high;
  assert_true(analyzer_const_bounds(a, window, &low, &high) && low == -12 && high == 0);
  context_free(c);
}

// Numbers near the ends of 64 bits must not wrap around.
static void test_large_numbers(void **state) {
  (void)state;
  World w = world_new();
  Context *c = w.context;
  Analyzer *a = analyzer_new(c);
  Expr *x = expr_var(c, "x", DTYPE_INT64), *y = expr_var(c, "y", DTYPE_INT64);
  Expr *big = expr_int(c, DTYPE_INT64, INT64_MAX / 2), *zero = expr_int(c, DTYPE_INT64, 0);
  analyzer_bind(a, x, zero, big);
  analyzer_bind(a, y, zero, big);
  int64_t low, high;
  Expr *sum = ADD(TIMES(x, expr_int(c, DTYPE_INT64, 3)), TIMES(y, expr_int(c, DTYPE_INT64, 3)));
  assert_false(analyzer_const_bounds(a, sum, &low, &high));
  assert_false(analyzer_prove(a, LESS(sum, expr_int(c, DTYPE_INT64, INT64_MAX))));
  assert_true(analyzer_prove(a, LE(zero, sum)));
  Expr *most = expr_int(c, DTYPE_INT64, INT64_MAX), *least = expr_int(c, DTYPE_INT64, INT64_MIN);
  Expr *odd[] = {TIMES(x, most),
                 TIMES(x, least),
                 ADD(TIMES(x, most), TIMES(y, most)),
                 OVER(ADD(x, most), expr_int(c, DTYPE_INT64, 2)),
                 REST(x, least),
                 OVER(x, least),
                 expr_min(c, ADD(x, least), y),
                 expr_sub(c, least, x)};
  for (int i = 0; i < COUNT_OF(odd); i++) {
    Expr *s = analyzer_simplify(a, odd[i]);
    analyzer_prove(a, LE(s, most));
    int64_t d, r;
    modular_form(a, s, &d, &r);
    analyzer_const_bounds(a, s, &low, &high);
    assert_true(dtype_equal(s->type, DTYPE_INT64));
  }
  Expr *u = expr_var(c, "u", DTYPE_INT32);
  Expr *huge = TIMES(TIMES(u, I(1 << 20)), I(1 << 20)); // 2**40 is no int32
  assert_true(dtype_equal(analyzer_simplify(a, huge)->type, DTYPE_INT32));
  context_free(c);
}

// 3 * i + j < 9 implies that the integer i is less than 3, also where j has a tighter bound.
static void test_multiples_in_assumptions(void **state) {
  (void)state;
  World w = world_new();
  Context *c = w.context;
  Analyzer *a = analyzer_new(c);
  Expr *i = world_var(&w, "i", 0, 5), *j = world_var(&w, "j", 0, 6), *k = world_var(&w, "k", 0, 2);
  world_bind(&w, a);
  analyzer_assume(a, LESS(ADD(TIMES(i, I(3)), ADD(j, k)), I(9)));
  analyzer_assume(a, LESS(ADD(j, k), I(2)));
  expect_proof(&w, a, LESS(i, I(3)), true);
  expect_proof(&w, a, LESS(i, I(2)), false);
  expect_proof(&w, a, LESS(ADD(i, j), I(3)), false);
  context_free(c);
}

// The cast of a number without a sign is not negative where its type holds all numbers.
static void test_casts_of_unsigned(void **state) {
  (void)state;
  World w = world_new();
  Context *c = w.context;
  Analyzer *a = analyzer_new(c);
  Expr *zero = expr_int(c, DTYPE_INT64, 0);
  for (int bits = 8; bits <= 64; bits *= 2) {
    Expr *u = expr_var(c, "u", DTYPE(TYPE_UINT, bits));
    Expr *wide = expr_cast(c, DTYPE_INT64, u);
    assert_int_equal(analyzer_prove(a, LE(zero, wide)), bits < 64);
    assert_int_equal(analyzer_simplify(a, expr_unary(c, EXPR_ABS, wide)) == wide, bits < 64);
  }
  context_free(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_symbolic_proofs),
      cmocka_unit_test(test_padding_conditions),
      cmocka_unit_test(test_quotients_are_integers),
      cmocka_unit_test(test_equalities_keep_ranges),
      cmocka_unit_test(test_reduced_coefficients),
      cmocka_unit_test(test_bounds_are_exact),
      cmocka_unit_test(test_bounds_of_shifted_quotients),
      cmocka_unit_test(test_large_numbers),
      cmocka_unit_test(test_random_symbolic),
      cmocka_unit_test(test_random_assumptions),
      cmocka_unit_test(test_random_symbolic_boxes),
      cmocka_unit_test(test_casts_of_unsigned),
      cmocka_unit_test(test_multiples_in_assumptions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
