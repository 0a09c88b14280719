// SPDX-License-Identifier: Apache-2.0
// Compares simplification and proofs with the values at all points of small ranges.
#include "arith_support.h"

#include "arith/rules.h"

static void expect(World *w, Analyzer *a, Expr *e, Expr *wanted) {
  Expr *got = analyzer_simplify(a, e);
  if (got != wanted)
    fail_msg("%s => %s, not %s", spelled(w, e), spelled(w, got), spelled(w, wanted));
}

#define I(n) expr_index(c, (n))
#define ADD(a, b) expr_add(c, a, b)
#define SUBTRACT(a, b) expr_sub(c, a, b)
#define TIMES(a, b) expr_mul(c, a, b)
#define OVER(a, b) expr_floor_div(c, a, b)
#define REST(a, b) expr_floor_mod(c, a, b)
#define CMP(op, a, b) expr_binary(c, EXPR_##op, a, b)

static void test_splits_and_fuses(void **state) {
  (void)state;
  World w = world_new();
  Context *c = w.context;
  Analyzer *a = analyzer_new(c);
  Expr *io = world_var(&w, "io", 0, 5), *ii = world_var(&w, "ii", 0, 16);
  Expr *p = world_var(&w, "p", 0, 11), *q = world_var(&w, "q", 0, 7), *r = world_var(&w, "r", 0, 7);
  world_bind(&w, a);
  Expr *x = expr_var(c, "x", DTYPE_INT32);
  Expr *fused = ADD(TIMES(io, I(16)), ii);
  expect(&w, a, OVER(fused, I(16)), io);
  expect(&w, a, REST(fused, I(16)), ii);
  Expr *three = ADD(TIMES(ADD(TIMES(p, I(7)), q), I(7)), r);
  expect(&w, a, REST(OVER(three, I(7)), I(7)), q);
  expect(&w, a, OVER(three, I(49)), p);
  expect(&w, a, REST(three, I(49)), ADD(TIMES(q, I(7)), r));
  expect(&w, a, ADD(TIMES(OVER(x, I(4)), I(4)), REST(x, I(4))), x);
  expect(&w, a, OVER(OVER(x, I(4)), I(4)), OVER(x, I(16)));
  expect(&w, a, REST(REST(x, I(8)), I(4)), REST(x, I(4)));
  expect(&w, a, OVER(REST(x, I(8)), I(4)), REST(OVER(x, I(4)), I(2)));
  expect(&w, a, OVER(fused, I(32)), OVER(io, I(2)));
  expect(&w, a, REST(fused, I(32)), ADD(TIMES(REST(io, I(2)), I(16)), ii));
  Expr *fused2 = ADD(TIMES(p, I(7)), q);
  expect(&w, a, ADD(TIMES(OVER(fused2, I(16)), I(16)), REST(fused2, I(16))), fused2);
  expect(&w, a, OVER(REST(fused2, I(16)), I(4)), REST(OVER(fused2, I(4)), I(4)));
  expect(&w, a, CMP(LT, fused, I(48)), CMP(LT, io, I(3)));
  expect(&w, a, CMP(LT, fused, I(80)), expr_bool(c, true));
  expect(&w, a, CMP(LT, fused, I(79)), CMP(LT, fused, I(79)));
  expect(&w, a, CMP(GE, fused, I(0)), expr_bool(c, true));
  context_free(c);
}

static void test_random_expressions_keep_their_value(void **state) {
  (void)state;
  static const int64_t extents[][3] = {{7, 4, 16}, {1, 5, 3}, {13, 2, 6}, {8, 8, 1}};
  uint64_t seed = 20240229;
  for (int round = 0; round < 4; round++) {
    World w = world_new();
    world_var(&w, "i", 0, extents[round][0]);
    world_var(&w, "j", round == 2 ? -3 : 0, extents[round][1]);
    world_var(&w, "k", 0, extents[round][2]);
    Analyzer *a = analyzer_new(w.context);
    world_bind(&w, a);
    for (int n = 0; n < 3000; n++) {
      bool condition = pick(&seed, 4) == 0;
      Expr *e = condition ? random_condition(&w, &seed, 3) : random_expr(&w, &seed, 4);
      Expr *s = n % 5 == 0 ? analyzer_simplify_deep(a, e) : analyzer_simplify(a, e);
      int64_t low = 0, high = 0, divisor, rest;
      bool bounded = !condition && analyzer_const_bounds(a, e, &low, &high);
      modular_form(a, e, &divisor, &rest);
      world_first(&w);
      do {
        w.undefined = false;
        int64_t before = eval(&w, e);
        if (w.undefined) continue;
        int64_t after = eval(&w, s);
        if (before != after)
          fail_msg("%s is %lld, %s is %lld at %lld %lld %lld", spelled(&w, e), (long long)before,
                   spelled(&w, s), (long long)after, (long long)w.value[0], (long long)w.value[1],
                   (long long)w.value[2]);
        if (bounded && (before < low || before > high))
          fail_msg("%s is %lld, not within [%lld, %lld]", spelled(&w, e), (long long)before,
                   (long long)low, (long long)high);
        if (!condition && (divisor ? floor_mod(before - rest, divisor) : before - rest))
          fail_msg("%s is %lld, not %lld mod %lld", spelled(&w, e), (long long)before,
                   (long long)rest, (long long)divisor);
      } while (world_next(&w));
    }
    context_free(w.context);
  }
}

static void test_each_rule(void **state) {
  (void)state;
  World w = world_new();
  Expr *slots[RULE_SLOTS];
  static const char *const names[] = {"x", "y", "z", "p", "q", "r"};
  for (int i = 0; i < RULE_SLOTS; i++) {
    bool integer = i < RULE_INTEGERS;
    slots[i] = expr_var(w.context, names[i], integer ? DTYPE_INT32 : DTYPE_BOOL);
    w.vars[i] = slots[i];
  }
  w.count = RULE_SLOTS;
  uint64_t seed = 7;
  for (int i = 0; i < rules_count(); i++) {
    RuleExprs rule;
    rule_exprs(w.context, i, slots, &rule);
    int tried = 0;
    for (int n = 0; n < 4000; n++) {
      for (int s = 0; s < RULE_SLOTS; s++)
        w.value[s] = s < RULE_INTEGERS ? (int64_t)pick(&seed, 21) - 10 : (int64_t)pick(&seed, 2);
      w.undefined = false;
      bool holds = eval(&w, rule.guard);
      int64_t left = eval(&w, rule.left);
      if (w.undefined || !holds) continue;
      tried++;
      if (left != eval(&w, rule.right)) fail_msg("rule %s", rule.text);
    }
    if (tried < 50) fail_msg("rule %s was hardly tried", rule.text);
  }
  context_free(w.context);
}

// The work must not double with each level of shared operands or conditions.
static void test_shared_operands(void **state) {
  (void)state;
  World w = world_new();
  Context *c = w.context;
  Analyzer *a = analyzer_new(c);
  Expr *e = world_var(&w, "x", 0, 1 << 20), *all = expr_bool(c, true);
  for (int i = 0; i < 18; i++) {
    Expr *condition = CMP(LT, REST(ADD(e, I(i)), I(7 + i)), I(3));
    e = expr_select(c, condition, OVER(ADD(e, I(3)), I(2)), TIMES(e, I(1)));
    all = expr_and(c, all, condition);
  }
  analyzer_simplify(a, e);
  analyzer_simplify_deep(a, all);
  Expr *sum = I(0);
  for (int i = 0; i < 30; i++) {
    Expr *v = expr_var(c, "v", DTYPE_INT32), *u = expr_var(c, "u", DTYPE_INT32);
    analyzer_assume(a, CMP(LT, ADD(v, sum), TIMES(u, I(2))));
    analyzer_assume(a, CMP(LE, u, ADD(v, sum)));
    sum = ADD(sum, ADD(v, u));
  }
  assert_false(analyzer_prove(a, CMP(LT, sum, I(1000))));
  context_free(c);
}

// The text of a result does not depend on which of the operands was made first.
static void test_order_of_operands(void **state) {
  (void)state;
  World w = world_new();
  Context *c = w.context;
  Expr *x = world_var(&w, "x", 0, 100), *y = world_var(&w, "y", 0, 100);
  Expr *shape[] = {I(100)};
  Expr *load = expr_load(c, buffer_new(c, "B", DTYPE_INT32, shape, 1, "global"), &x, 1);
  Expr *first[] = {OVER(load, I(3)), OVER(y, I(5))}, *second[] = {OVER(x, I(3)), OVER(load, I(5))};
  Analyzer *a = analyzer_new(c);
  const char *minimum = spelled(&w, analyzer_simplify(a, expr_min(c, first[0], first[1])));
  assert_string_equal(minimum, "min((y // 5), ((x) // 3))");
  minimum = spelled(&w, analyzer_simplify(a, expr_min(c, second[0], second[1])));
  assert_string_equal(minimum, "min((x // 3), ((x) // 5))");
  assert_string_equal(spelled(&w, analyzer_simplify(a, ADD(first[0], first[1]))),
                      "((y // 5) + ((x) // 3))");
  context_free(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_splits_and_fuses),
      cmocka_unit_test(test_each_rule),
      cmocka_unit_test(test_shared_operands),
      cmocka_unit_test(test_order_of_operands),
      cmocka_unit_test(test_random_expressions_keep_their_value),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
