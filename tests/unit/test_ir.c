// SPDX-License-Identifier: Apache-2.0
// Tests expressions, their types and folding, rewriting, and branches of a context.
#include "arith/arith.h"
#include "ir/graph.h"

#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

static void test_equal_expressions_are_one_node(void **state) {
  (void)state;
  Context *context = context_new();
  Expr *x = expr_var(context, "x", DTYPE_INT32), *y = expr_var(context, "x", DTYPE_INT32);
  assert_ptr_not_equal(x, y);
  Expr *three = expr_int(context, DTYPE_INT32, 3);
  assert_ptr_equal(expr_add(context, x, three), expr_add(context, three, x));
  assert_ptr_not_equal(expr_add(context, x, three), expr_add(context, y, three));
  Buffer *a = buffer_static(context, "A", DTYPE_FLOAT32, (int64_t[]){3, 5}, 2, NULL);
  assert_ptr_equal(expr_load(context, a, (Expr *[]){x, y}, 2),
                   expr_load(context, a, (Expr *[]){x, y}, 2));
  context_free(context);
}

// Older expressions are found inside a scope; those that are made in it are gone after it.
static void test_scopes_share_older_expressions(void **state) {
  (void)state;
  Context *context = context_new();
  Expr *x = expr_var(context, "x", DTYPE_INT32), *three = expr_int(context, DTYPE_INT32, 3);
  Expr *sum = expr_add(context, x, three);
  size_t before = context->arena.used_bytes;
  for (int round = 0; round < 3; round++) {
    context_scope_begin(context);
    assert_ptr_equal(expr_add(context, x, expr_int(context, DTYPE_INT32, 3)), sum);
    Expr *inner = expr_mul(context, sum, expr_int(context, DTYPE_INT32, 5));
    context_scope_begin(context);
    assert_ptr_equal(expr_mul(context, sum, expr_int(context, DTYPE_INT32, 5)), inner);
    assert_ptr_equal(expr_add(context, x, three), sum);
    for (int i = 0; i < 10000; i++) expr_mul(context, inner, expr_int(context, DTYPE_INT32, i));
    context_scope_discard(context);
    assert_ptr_equal(expr_mul(context, sum, expr_int(context, DTYPE_INT32, 5)), inner);
    context_scope_discard(context);
  }
  assert_int_equal(context->arena.used_bytes, before);
  assert_ptr_equal(expr_add(context, x, three), sum);
  context_free(context);
}

static void test_constants_fold_as_python_does(void **state) {
  (void)state;
  Context *context = context_new();
  int64_t value;
  for (int64_t a = -9; a <= 9; a++)
    for (int64_t b = -4; b <= 4; b++) {
      Expr *x = expr_int(context, DTYPE_INT32, a), *y = expr_int(context, DTYPE_INT32, b);
      assert_true(expr_as_int(expr_add(context, x, y), &value) && value == a + b);
      assert_true(expr_as_int(expr_min(context, x, y), &value) && value == MIN_OF(a, b));
      assert_true(expr_as_int(expr_lt(context, x, y), &value) && value == (a < b));
      Expr *quotient = expr_floor_div(context, x, y);
      assert_int_equal(expr_as_int(quotient, &value), b != 0);
      if (b) assert_int_equal(value, floor_div(a, b));
    }
  assert_true(expr_as_int(expr_int(context, DTYPE_INT8, 200), &value) && value == -56);
  assert_true(expr_as_int(expr_int(context, DTYPE_UINT8, -1), &value) && value == 255);
  Expr *large = expr_int(context, DTYPE(TYPE_UINT, 64), -100); // 2**64 - 100
  assert_ptr_equal(expr_unary(context, EXPR_ABS, large), large);
  Expr *as_float = expr_cast(context, DTYPE_FLOAT32, large);
  assert_int_equal(as_float->op, EXPR_CAST);
  assert_ptr_equal(analyzer_simplify(analyzer_new(context), as_float), as_float);
  context_free(context);
}

static void test_identities_and_vectors(void **state) {
  (void)state;
  Context *context = context_new();
  Expr *x = expr_var(context, "x", DTYPE_INT32), *four = expr_int(context, DTYPE_INT32, 4);
  Expr *zero = expr_int(context, DTYPE_INT32, 0), *one = expr_int(context, DTYPE_INT32, 1);
  assert_ptr_equal(expr_add(context, x, zero), x);
  assert_ptr_equal(expr_mul(context, one, x), x);
  assert_ptr_equal(expr_floor_mod(context, x, one), zero);
  assert_ptr_equal(expr_sub(context, x, x), zero);
  assert_ptr_equal(expr_add(context, expr_add(context, x, four), four),
                   expr_add(context, x, expr_int(context, DTYPE_INT32, 8)));
  Expr *ramp = expr_ramp(context, x, one, 16);
  Expr *moved = expr_add(context, expr_mul(context, ramp, four), one);
  assert_int_equal(moved->op, EXPR_RAMP);
  assert_ptr_equal(moved->args[0], expr_add(context, expr_mul(context, x, four), one));
  assert_ptr_equal(moved->args[1], four);
  assert_int_equal(expr_lt(context, ramp, four)->type.lanes, 16);
  // A float product with zero stays: the other side may be NaN.
  Expr *f = expr_var(context, "f", DTYPE_FLOAT32), *f0 = expr_float(context, DTYPE_FLOAT32, 0);
  assert_int_equal(expr_mul(context, f, f0)->op, EXPR_MUL);
  assert_int_equal(expr_add(context, f, f0)->op, EXPR_ADD);
  context_free(context);
}

static void test_mixed_integer_types_meet(void **state) {
  (void)state;
  Context *context = context_new();
  Expr *x = expr_var(context, "x", DTYPE_INT32), *n = expr_var(context, "n", DTYPE_INT64);
  assert_true(dtype_equal(expr_add(context, x, n)->type, DTYPE_INT64));
  Expr *c = expr_int(context, DTYPE_INT64, 5);
  assert_true(dtype_equal(expr_mul(context, x, c)->type, DTYPE_INT32));
  context_free(context);
}

static Stmt *copy_loop(Context *context, Buffer *a, Expr **loop_var) {
  Expr *i = *loop_var = expr_var(context, "i", DTYPE_INT32);
  Expr *load = expr_load(context, a, &i, 1);
  Stmt *store = stmt_store(context, a, &i, 1, expr_add(context, load, load));
  return stmt_for(context, i, expr_index(context, 0), expr_index(context, 7), LOOP_SERIAL, store);
}

static void test_rewriting_shares_what_stays(void **state) {
  (void)state;
  Context *context = context_new();
  Buffer *a = buffer_static(context, "A", DTYPE_FLOAT32, (int64_t[]){7}, 1, NULL);
  Buffer *b = buffer_static(context, "B", DTYPE_FLOAT32, (int64_t[]){7}, 1, NULL);
  Expr *i;
  Stmt *loop = copy_loop(context, a, &i);
  Map none = map_new(&context->arena), swap = map_new(&context->arena);
  map_put(&swap, a, b);
  assert_ptr_equal(substitute_stmt(context, loop, &none, NULL), loop);
  Stmt *other = substitute_stmt(context, loop, NULL, &swap);
  assert_ptr_not_equal(other, loop);
  assert_ptr_equal(other->as.loop.body->as.store.buffer, b);
  assert_ptr_equal(other->as.loop.body->as.store.value->args[0]->as.buffer, b);
  Stmt *fresh = stmt_renew(context, loop);
  assert_ptr_not_equal(fresh->as.loop.var, i);
  assert_ptr_equal(fresh->as.loop.body->as.store.indices[0], fresh->as.loop.var);
  assert_ptr_equal(fresh->as.loop.body->as.store.buffer, a);
  context_free(context);
}

// Variables outnumber the bits for them, so that two sums with a bit in common use others.
static void test_uses_are_those_of_each_variable(void **state) {
  (void)state;
  enum { COUNT = 150 };
  Context *context = context_new();
  Expr *vars[COUNT], *sums[COUNT];
  Buffer *a = buffer_static(context, "A", DTYPE_INT32, (int64_t[]){7}, 1, NULL);
  for (int i = 0; i < COUNT; i++) vars[i] = expr_var(context, "i", DTYPE_INT32);
  for (int i = 0; i < COUNT; i++) {
    sums[i] = expr_mul(context, vars[i], expr_add(context, vars[(i + 1) % COUNT], vars[i]));
    if (i % 2) sums[i] = expr_load(context, a, &sums[i], 1);
  }
  for (int v = 0; v < COUNT; v++) {
    Map to = map_new(&context->arena);
    map_put(&to, vars[v], expr_int(context, DTYPE_INT32, 3));
    for (int i = 0; i < COUNT; i++) {
      bool uses = v == i || v == (i + 1) % COUNT;
      assert_int_equal(expr_uses(sums[i], vars[v]), uses);
      Expr *other = substitute_expr(context, sums[i], &to);
      assert_int_equal(other != sums[i], uses);
      assert_false(expr_uses(other, vars[v]));
    }
  }
  context_free(context);
}

// The shape of the buffer that is loaded from uses the variable, and no index does.
static void test_variables_of_shapes_are_replaced(void **state) {
  (void)state;
  Context *context = context_new();
  Expr *n = expr_var(context, "n", DTYPE_INT32), *zero = expr_index(context, 0);
  Buffer *a = buffer_new(context, "A", DTYPE_FLOAT32, &n, 1, NULL);
  Map to = map_new(&context->arena);
  map_put(&to, n, expr_int(context, DTYPE_INT32, 5));
  Expr *load =
      expr_add(context, expr_load(context, a, &zero, 1), expr_float(context, DTYPE_FLOAT32, 1));
  Expr *other = substitute_expr(context, load, &to);
  assert_true(expr_is_int(other->args[0]->as.buffer->shape[0], 5));
  context_free(context);
}

static void test_type_names_round_trip(void **state) {
  (void)state;
  Context *context = context_new();
  static const char *const names[] = {"bool",    "int8",     "uint16x4",      "float32x16",
                                      "float64", "bfloat16", "float8_e4m3fn", "int4",
                                      "handle",  "float16"};
  for (int i = 0; i < COUNT_OF(names); i++) {
    DType t;
    assert_true(dtype_parse(names[i], strlen(names[i]), &t));
    assert_string_equal(dtype_name(context, t), names[i]);
  }
  DType t;
  static const char *const wrong[] = {"int", "float33", "floatx4", "int8x", "int8x99999", "banana"};
  for (int i = 0; i < COUNT_OF(wrong); i++)
    assert_false(dtype_parse(wrong[i], strlen(wrong[i]), &t));
  context_free(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_equal_expressions_are_one_node),
      cmocka_unit_test(test_scopes_share_older_expressions),
      cmocka_unit_test(test_constants_fold_as_python_does),
      cmocka_unit_test(test_identities_and_vectors),
      cmocka_unit_test(test_mixed_integer_types_meet),
      cmocka_unit_test(test_rewriting_shares_what_stays),
      cmocka_unit_test(test_uses_are_those_of_each_variable),
      cmocka_unit_test(test_variables_of_shapes_are_replaced),
      cmocka_unit_test(test_type_names_round_trip),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
