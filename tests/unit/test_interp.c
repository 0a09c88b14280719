// SPDX-License-Identifier: Apache-2.0
// Tests the interpreter: results, errors of programs, and the comparison of two programs.
#include "interp/interp.h"
#include "script/script.h"
#include "context_support.h"

#include <math.h>
#include <stdlib.h>

static Expr *i32(int64_t value) {
  return expr_int(context, DTYPE_INT32, value);
}

static PrimFunc *func_of(Buffer *const *buffers, int count, Stmt *body) {
  Expr **params = arena_array(&context->arena, Expr *, count);
  for (int i = 0; i < count; i++) params[i] = buffers[i]->data;
  return prim_func_new(context, "f", params, buffers, count, body);
}

static InterpTensor tensor(DType type, int rank, const int64_t *shape, void *data) {
  return (InterpTensor){type, rank, shape, NULL, data};
}

static void expect_error(const char *part) {
  assert_true(context->diags.count > 0);
  const char *message = array_last(&context->diags).message;
  if (!strstr(message, part)) fail_msg("expected '%s' in '%s'", part, message);
}

// The expression's lanes, computed with `x` (may be NULL) bound to a scalar.
static bool evaluate(Expr *e, Expr *x, const void *value, void *result) {
  static const int64_t one[] = {1};
  Buffer *out = buffer_static(context, "out", e->type, one, 1, NULL);
  Stmt *store = stmt_store(context, out, (Expr *[]){i32(0)}, 1, e);
  Expr *params[] = {out->data, x};
  Buffer *buffers[] = {out, NULL};
  PrimFunc *func = prim_func_new(context, "f", params, buffers, x ? 2 : 1, store);
  InterpTensor args[] = {tensor(e->type, 1, one, result), {.data = NULL}};
  if (x) args[1] = tensor(x->type, 0, NULL, (void *)value);
  return interp_run(context, NULL, func, args, x ? 2 : 1, NULL);
}

static int64_t evaluate_int(Expr *e) {
  char result[8 * 64] = {0};
  assert_true(evaluate(e, NULL, NULL, result));
  return number_load_int(dtype_lanes(e->type, 1), result);
}

static double evaluate_float(Expr *e) {
  char result[8 * 64] = {0};
  assert_true(evaluate(e, NULL, NULL, result));
  return number_load(dtype_lanes(e->type, 1), result);
}

// A node that no builder has folded.
static Expr *raw(ExprOp op, DType type, Expr *a, Expr *b, Expr *c) {
  Expr *args[] = {a, b, c};
  return expr_raw(context, op, type, NULL, args, c ? 3 : b ? 2 : a ? 1 : 0);
}

static Expr *raw_int(ExprOp op, DType type, int64_t a, int64_t b) {
  return raw(op, type, expr_int(context, type, a), expr_int(context, type, b), NULL);
}

// ---- Functions --------------------------------------------------------------------------------

enum { M = 5, K = 7, N = 3 };

// C[i, j] += A[i, k] * B[k, j] in a block whose bindings skip no point; loops over (i, k, j).
static PrimFunc *matmul(Expr *predicate_limit) {
  Buffer *a = buffer_static(context, "A", DTYPE_FLOAT32, (int64_t[]){M, K}, 2, NULL);
  Buffer *b = buffer_static(context, "B", DTYPE_FLOAT32, (int64_t[]){K, N}, 2, NULL);
  Buffer *c = buffer_static(context, "C", DTYPE_FLOAT32, (int64_t[]){M, N}, 2, NULL);
  Expr *loops[3], *vars[3];
  const int64_t extents[] = {M, K, N};
  Block block = {.name = "update", .var_count = 3};
  block.vars = arena_array(&context->arena, BlockVar, 3);
  for (int i = 0; i < 3; i++) {
    loops[i] = expr_var(context, "l", DTYPE_INT32);
    vars[i] = expr_var(context, "v", DTYPE_INT32);
    block.vars[i] = (BlockVar){vars[i], i32(0), i32(extents[i]),
                               i == 1 ? ITER_REDUCTION : ITER_SPATIAL, loops[i]};
  }
  block.predicate =
      predicate_limit ? expr_lt(context, loops[0], predicate_limit) : expr_bool(context, true);
  Expr *at[] = {vars[0], vars[2]};
  Expr *product = expr_mul(context, expr_load(context, a, (Expr *[]){vars[0], vars[1]}, 2),
                           expr_load(context, b, (Expr *[]){vars[1], vars[2]}, 2));
  block.init = stmt_store(context, c, at, 2, expr_float(context, DTYPE_FLOAT32, 0));
  block.body =
      stmt_store(context, c, at, 2, expr_add(context, expr_load(context, c, at, 2), product));
  Stmt *s = stmt_block(context, block_copy(context, &block));
  const LoopKind kinds[] = {LOOP_PARALLEL, LOOP_UNROLLED, LOOP_VECTORIZED};
  for (int i = 2; i >= 0; i--)
    s = stmt_for(context, loops[i], i32(0), i32(extents[i]), kinds[i], s);
  return func_of((Buffer *[]){a, b, c}, 3, s);
}

static void run_matmul(PrimFunc *func, const float *a, const float *b, float *c) {
  InterpTensor args[] = {tensor(DTYPE_FLOAT32, 2, (int64_t[]){M, K}, (void *)a),
                         tensor(DTYPE_FLOAT32, 2, (int64_t[]){K, N}, (void *)b),
                         tensor(DTYPE_FLOAT32, 2, (int64_t[]){M, N}, c)};
  assert_true(interp_run(context, NULL, func, args, 3, NULL));
}

static void test_blocks_initialise_and_obey_predicates(void **state) {
  (void)state;
  float a[M * K], b[K * N], c[M * N];
  interp_fill(DTYPE_FLOAT32, a, M * K, 1, INTERP_FILL_EIGHTHS);
  interp_fill(DTYPE_FLOAT32, b, K * N, 2, INTERP_FILL_EIGHTHS);
  for (int limit = M; limit >= 3; limit -= 2) {
    for (int i = 0; i < M * N; i++) c[i] = NAN;
    run_matmul(matmul(limit < M ? i32(limit) : NULL), a, b, c);
    for (int i = 0; i < M; i++)
      for (int j = 0; j < N; j++) {
        float sum = 0;
        for (int k = 0; k < K; k++) sum += a[i * K + k] * b[k * N + j];
        if (i < limit)
          assert_true(c[i * N + j] == sum);
        else
          assert_true(isnan(c[i * N + j]));
      }
  }
}

static void test_symbolic_sizes_come_from_arguments(void **state) {
  (void)state;
  Expr *n = expr_var(context, "n", DTYPE_INT32), *i = expr_var(context, "i", DTYPE_INT32);
  Expr *twice = expr_mul(context, n, i32(2));
  Buffer *b = buffer_new(context, "B", DTYPE_INT32, &twice, 1, NULL);
  Buffer *a = buffer_new(context, "A", DTYPE_INT32, &n, 1, NULL);
  Stmt *store =
      stmt_store(context, b, (Expr *[]){expr_add(context, i, n)}, 1, expr_load(context, a, &i, 1));
  PrimFunc *func =
      func_of((Buffer *[]){b, a}, 2, stmt_for(context, i, i32(0), n, LOOP_SERIAL, store));
  int32_t from[3] = {5, 6, 7}, to[6] = {0};
  InterpTensor args[] = {tensor(DTYPE_INT32, 1, (int64_t[]){6}, to),
                         tensor(DTYPE_INT32, 1, (int64_t[]){3}, from)};
  assert_true(interp_run(context, NULL, func, args, 2, NULL));
  assert_int_equal(to[3], 5);
  assert_int_equal(to[5], 7);
  args[0].shape = (int64_t[]){5};
  assert_false(interp_run(context, NULL, func, args, 2, NULL));
  expect_error("axis 0 of B has extent 6, not 5");
  args[0].type = DTYPE_FLOAT32;
  assert_false(interp_run(context, NULL, func, args, 2, NULL));
  expect_error("B holds int32, not float32");
  assert_false(interp_run(context, NULL, func, args, 1, NULL));
}

static void test_calls_pass_storage_and_scalars(void **state) {
  (void)state;
  const int64_t shape[] = {4};
  Module *module = module_new(context, "m");
  Buffer *x = buffer_static(context, "X", DTYPE_INT32, (int64_t[]){2}, 1, NULL);
  Expr *k = expr_var(context, "k", DTYPE_INT32), *zero = i32(0);
  Stmt *body = stmt_store(context, x, &zero, 1, expr_add(context, k, i32(1)));
  PrimFunc *callee =
      prim_func_new(context, "callee", (Expr *[]){x->data, k}, (Buffer *[]){x, NULL}, 2, body);
  module_add_prim(module, callee);
  Buffer *a = buffer_static(context, "A", DTYPE_INT32, shape, 1, NULL);
  Expr *i = expr_var(context, "i", DTYPE_INT32), *element = expr_load(context, a, &i, 1);
  Expr *address = raw(EXPR_ADDRESS_OF, DTYPE_HANDLE, element, NULL, NULL);
  Expr *call = expr_call(context, DTYPE_INT32, "callee", (Expr *[]){address, i}, 2);
  Stmt *loop = stmt_for(context, i, zero, i32(3), LOOP_SERIAL, stmt_evaluate(context, call));
  PrimFunc *func = func_of(&a, 1, loop);
  int32_t data[4] = {9, 9, 9, 9};
  InterpTensor arg = tensor(DTYPE_INT32, 1, shape, data);
  assert_true(interp_run(context, module, func, &arg, 1, NULL));
  for (int j = 0; j < 4; j++) assert_int_equal(data[j], j < 3 ? j + 1 : 9);
  assert_false(interp_run(context, NULL, func, &arg, 1, NULL));
  expect_error("knows no function 'callee'");
}

static InterpValue add_ten(void *env, const InterpValue *args, int count) {
  assert_int_equal(count, 1);
  return (InterpValue){.f = args[0].f + *(double *)env};
}

static void test_externs_are_called_by_name(void **state) {
  (void)state;
  double ten = 10;
  InterpExtern externs[] = {{"add_ten", add_ten, &ten}};
  InterpOptions options = {.externs = externs, .extern_count = 1};
  Expr *half = expr_float(context, DTYPE_FLOAT32, 0.5), *zero = i32(0);
  Buffer *out = buffer_static(context, "out", DTYPE_FLOAT32, (int64_t[]){1}, 1, NULL);
  Stmt *store =
      stmt_store(context, out, &zero, 1, expr_call(context, DTYPE_FLOAT32, "add_ten", &half, 1));
  float result;
  InterpTensor arg = tensor(DTYPE_FLOAT32, 1, (int64_t[]){1}, &result);
  assert_true(interp_run(context, NULL, func_of(&out, 1, store), &arg, 1, &options));
  assert_true(result == 10.5f);
}

// ---- Memory -----------------------------------------------------------------------------------

static Stmt *copy_loop(Buffer *to, Buffer *from, int64_t count) {
  Expr *i = expr_var(context, "i", DTYPE_INT32);
  Stmt *store = stmt_store(context, to, &i, 1, expr_load(context, from, &i, 1));
  return stmt_for(context, i, i32(0), i32(count), LOOP_SERIAL, store);
}

static void test_fresh_storage_is_poisoned(void **state) {
  (void)state;
  const int64_t shape[] = {3};
  Buffer *out = buffer_static(context, "out", DTYPE_FLOAT32, shape, 1, NULL);
  Buffer *local = buffer_static(context, "local", DTYPE_FLOAT32, shape, 1, NULL);
  Stmt *body = stmt_allocate(context, local, copy_loop(out, local, 3));
  PrimFunc *func = func_of(&out, 1, body);
  float data[3] = {1, 2, 3};
  InterpTensor arg = tensor(DTYPE_FLOAT32, 1, shape, data);
  InterpOptions options = {.poison = true};
  assert_true(interp_run(context, NULL, func, &arg, 1, &options));
  for (int i = 0; i < 3; i++) assert_true(isnan(data[i]));
  options.report_reads = true;
  assert_false(interp_run(context, NULL, func, &arg, 1, &options));
  expect_error("local[0] is read before it is written");
}

static void test_aliases_share_strided_storage(void **state) {
  (void)state;
  const int64_t flat_shape[] = {12};
  Buffer *flat = buffer_static(context, "F", DTYPE_INT32, flat_shape, 1, NULL);
  Buffer *view = buffer_static(context, "V", DTYPE_INT32, (int64_t[]){2, 3}, 2, NULL);
  view->data = flat->data;
  view->strides = (Expr *[]){i32(1), i32(4)};
  view->offset = i32(2);
  Expr *i = expr_var(context, "i", DTYPE_INT32), *j = expr_var(context, "j", DTYPE_INT32);
  Expr *value = expr_add(context, expr_mul(context, i, i32(10)), j);
  Stmt *s = stmt_store(context, view, (Expr *[]){i, j}, 2, value);
  s = stmt_for(context, j, i32(0), i32(3), LOOP_SERIAL, s);
  s = stmt_for(context, i, i32(0), i32(2), LOOP_SERIAL, s);
  int32_t data[12] = {0};
  InterpTensor arg = tensor(DTYPE_INT32, 1, flat_shape, data);
  assert_true(interp_run(context, NULL, func_of(&flat, 1, s), &arg, 1, NULL));
  for (int x = 0; x < 2; x++)
    for (int y = 0; y < 3; y++) assert_int_equal(data[2 + x + 4 * y], 10 * x + y);
}

static void test_a_matched_view_sees_its_region(void **state) {
  (void)state;
  Buffer *a = buffer_static(context, "A", DTYPE_INT32, (int64_t[]){4, 6}, 2, NULL);
  Expr *s0 = expr_var(context, "s0", DTYPE_INT32), *s1 = expr_var(context, "s1", DTYPE_INT32);
  for (int with_offset = 0; with_offset < 2; with_offset++) {
    Buffer *view = buffer_static(context, "V", DTYPE_INT32, (int64_t[]){2, 3}, 2, NULL);
    view->strides = (Expr *[]){s0, s1};
    if (with_offset) view->offset = expr_var(context, "o", DTYPE_INT32);
    MatchBuffer match = {view, {a, (Expr *[]){i32(1), i32(2)}, (Expr *[]){i32(2), i32(3)}}};
    Block block = {
        .name = "b", .predicate = expr_bool(context, true), .match_count = 1, .matches = &match};
    block.body = stmt_store(context, view, (Expr *[]){i32(1), i32(2)}, 2, i32(77));
    int32_t data[24] = {0};
    InterpTensor arg = tensor(DTYPE_INT32, 2, (int64_t[]){4, 6}, data);
    PrimFunc *func = func_of(&a, 1, stmt_block(context, block_copy(context, &block)));
    assert_true(interp_run(context, NULL, func, &arg, 1, NULL));
    for (int i = 0; i < 24; i++) assert_int_equal(data[i], i == 2 * 6 + 4 ? 77 : 0);
  }
}

static void test_constants_are_read_in_place(void **state) {
  (void)state;
  const int64_t shape[] = {3};
  static const uint8_t table[] = {4, 200, 6};
  ConstData data = {"table", DTYPE_UINT8, 1, (int64_t *)shape, table, 3};
  Buffer *out = buffer_static(context, "out", DTYPE_UINT8, shape, 1, NULL);
  Buffer *from = buffer_static(context, "T", DTYPE_UINT8, shape, 1, NULL);
  Stmt s = {.kind = STMT_ALLOCATE_CONST};
  s.as.allocate_const.var = from->data;
  s.as.allocate_const.data = &data;
  s.as.allocate_const.body = copy_loop(out, from, 3);
  uint8_t result[3];
  InterpTensor arg = tensor(DTYPE_UINT8, 1, shape, result);
  assert_true(interp_run(context, NULL, func_of(&out, 1, stmt_copy(context, &s)), &arg, 1, NULL));
  assert_memory_equal(result, table, 3);
  s.as.allocate_const.body = copy_loop(from, out, 3);
  PrimFunc *writes = func_of(&out, 1, stmt_copy(context, &s));
  assert_false(interp_run(context, NULL, writes, &arg, 1, NULL));
  expect_error("T is constant and cannot be stored to");
}

// ---- Statements -------------------------------------------------------------------------------

static void test_while_let_if_and_assert(void **state) {
  (void)state;
  const int64_t shape[] = {2};
  Expr *zero = i32(0), *one = i32(1), *x = expr_var(context, "x", DTYPE_INT32);
  Buffer *out = buffer_static(context, "out", DTYPE_INT32, shape, 1, NULL);
  Expr *counter = expr_load(context, out, &zero, 1);
  Stmt *step =
      stmt_let(context, x, expr_add(context, counter, one), stmt_store(context, out, &zero, 1, x));
  Stmt loop = {.kind = STMT_WHILE};
  loop.as.repeat.condition = expr_lt(context, counter, i32(5));
  loop.as.repeat.body = step;
  Stmt *branch =
      stmt_if(context, expr_binary(context, EXPR_EQ, counter, i32(5)),
              stmt_store(context, out, &one, 1, i32(8)), stmt_store(context, out, &one, 1, i32(9)));
  Stmt check = {.kind = STMT_ASSERT};
  check.as.check.condition = expr_lt(context, counter, i32(5));
  check.as.check.message = expr_string(context, "five is too many");
  Stmt *items[] = {stmt_copy(context, &loop), branch};
  int32_t data[2] = {0};
  InterpTensor arg = tensor(DTYPE_INT32, 1, shape, data);
  PrimFunc *func = func_of(&out, 1, stmt_seq(context, items, 2));
  assert_true(interp_run(context, NULL, func, &arg, 1, NULL));
  assert_int_equal(data[0], 5);
  assert_int_equal(data[1], 8);
  func = func_of(&out, 1, stmt_copy(context, &check));
  assert_false(interp_run(context, NULL, func, &arg, 1, NULL));
  expect_error("assertion failed: five is too many");
}

static void test_an_endless_loop_meets_its_limit(void **state) {
  (void)state;
  Stmt loop = {.kind = STMT_WHILE};
  loop.as.repeat.condition = expr_bool(context, true);
  loop.as.repeat.body = stmt_nothing(context);
  PrimFunc *func = func_of(NULL, 0, stmt_copy(context, &loop));
  InterpOptions options = {.max_steps = 1000};
  assert_false(interp_run(context, NULL, func, NULL, 0, &options));
  expect_error("the limit of 1000 loop iterations is reached");
}

// ---- Errors -----------------------------------------------------------------------------------

static void test_accesses_outside_are_located(void **state) {
  (void)state;
  const char *source = "first\nsecond\n";
  SourceFile *file = source_file_new(context, "k.py", source, strlen(source));
  Buffer *a = buffer_static(context, "A", DTYPE_INT32, (int64_t[]){2, 3}, 2, NULL);
  const int64_t places[][2] = {{2, 0}, {0, 3}, {-1, 0}, {0, -1}};
  int32_t data[6] = {0};
  InterpTensor arg = tensor(DTYPE_INT32, 2, (int64_t[]){2, 3}, data);
  for (int i = 0; i < COUNT_OF(places); i++) {
    Expr *at[] = {i32(places[i][0]), i32(places[i][1])};
    Stmt *store = stmt_store(context, a, at, 2, i32(1));
    store->pos = (SourcePos){file, 6, 12};
    assert_false(interp_run(context, NULL, func_of(&a, 1, store), &arg, 1, NULL));
    char expected[64];
    snprintf(expected, sizeof expected, "A[%d, %d] is outside of A[2, 3]", (int)places[i][0],
             (int)places[i][1]);
    expect_error(expected);
    assert_int_equal(array_last(&context->diags).pos.begin, 6);
  }
}

static void test_views_stay_inside_their_storage(void **state) {
  (void)state;
  Buffer *a = buffer_static(context, "A", DTYPE_INT32, (int64_t[]){3}, 1, NULL);
  Buffer *view = buffer_static(context, "V", DTYPE_INT32, (int64_t[]){3}, 1, NULL);
  view->data = a->data;
  view->strides = (Expr *[]){i32(2)};
  int32_t data[3];
  InterpTensor arg = tensor(DTYPE_INT32, 1, (int64_t[]){3}, data);
  Stmt *store = stmt_store(context, view, (Expr *[]){i32(2)}, 1, i32(1));
  assert_false(interp_run(context, NULL, func_of(&a, 1, store), &arg, 1, NULL));
  expect_error("V[2] is byte 16 of A, which has 12");
}

static void test_other_errors(void **state) {
  (void)state;
  int64_t result;
  Expr *x = expr_var(context, "x", DTYPE_INT32);
  assert_false(evaluate(raw_int(EXPR_FLOOR_DIV, DTYPE_INT32, 3, 0), NULL, NULL, &result));
  expect_error("division by zero");
  assert_false(evaluate(raw_int(EXPR_TRUNC_MOD, DTYPE(TYPE_UINT, 64), 3, 0), NULL, NULL, &result));
  assert_false(evaluate(expr_add(context, x, i32(1)), NULL, NULL, &result));
  expect_error("'x' has no value here");
  Buffer *huge = buffer_static(context, "huge", DTYPE_FLOAT32,
                               (int64_t[]){INT64_C(1) << 40, INT64_C(1) << 40}, 2, NULL);
  Stmt *body = stmt_allocate(context, huge, stmt_nothing(context));
  assert_false(interp_run(context, NULL, func_of(NULL, 0, body), NULL, 0, NULL));
  expect_error("huge");
  assert_int_equal(context->failure, FAILURE_NONE);
}

// ---- Types ------------------------------------------------------------------------------------

static const DType int_types[] = {
    {TYPE_INT, 4, 1},   {TYPE_INT, 8, 1},   {TYPE_INT, 16, 1}, {TYPE_INT, 32, 1},
    {TYPE_INT, 64, 1},  {TYPE_UINT, 4, 1},  {TYPE_UINT, 8, 1}, {TYPE_UINT, 16, 1},
    {TYPE_UINT, 32, 1}, {TYPE_UINT, 64, 1},
};
static const DType float_types[] = {
    {TYPE_FLOAT, 16, 1},  {TYPE_FLOAT, 32, 1},      {TYPE_FLOAT, 64, 1},
    {TYPE_BFLOAT, 16, 1}, {TYPE_FLOAT8_E4M3, 8, 1}, {TYPE_FLOAT8_E5M2, 8, 1},
};

static __int128 wrap_wide(DType type, __int128 value) {
  __int128 modulus = (__int128)1 << type.bits, rest = ((value % modulus) + modulus) % modulus;
  return type.code == TYPE_INT && rest >= modulus / 2 ? rest - modulus : rest;
}

static __int128 wide_op(ExprOp op, __int128 a, __int128 b) {
  __int128 quotient = op == EXPR_ADD || op == EXPR_SUB || op == EXPR_MUL ? 0 : a / b;
  bool below = quotient * b != a && (a < 0) != (b < 0);
  switch ((int)op) {
  case EXPR_ADD: return a + b;
  case EXPR_SUB: return a - b;
  case EXPR_MUL: return (__int128)((unsigned __int128)a * (unsigned __int128)b);
  case EXPR_TRUNC_DIV: return quotient;
  case EXPR_TRUNC_MOD: return a - quotient * b;
  case EXPR_FLOOR_DIV: return quotient - below;
  default: return a - (quotient - below) * b;
  }
}

// Compares with 128-bit arithmetic at the ends of every integer type.
static void test_integers_wrap_in_their_type(void **state) {
  (void)state;
  const ExprOp ops[] = {EXPR_ADD,       EXPR_SUB,       EXPR_MUL,      EXPR_TRUNC_DIV,
                        EXPR_TRUNC_MOD, EXPR_FLOOR_DIV, EXPR_FLOOR_MOD};
  for (int t = 0; t < COUNT_OF(int_types); t++) {
    DType type = int_types[t];
    __int128 high = ((__int128)1 << (type.bits - (type.code == TYPE_INT))) - 1;
    const __int128 values[] = {high, wrap_wide(type, high + 1), 0, 1, 3, wrap_wide(type, -1)};
    for (int o = 0; o < COUNT_OF(ops); o++)
      for (int i = 0; i < COUNT_OF(values); i++)
        for (int j = 0; j < COUNT_OF(values); j++) {
          if (o > 2 && !values[j]) continue;
          __int128 expected = wrap_wide(type, wide_op(ops[o], values[i], values[j]));
          int64_t actual =
              evaluate_int(raw_int(ops[o], type, (int64_t)values[i], (int64_t)values[j]));
          if (actual != (int64_t)expected)
            fail_msg("%s of %s on %lld, %lld: %lld, not %lld", op_table[ops[o]].name,
                     dtype_name(context, type), (long long)values[i], (long long)values[j],
                     (long long)actual, (long long)expected);
        }
  }
}

static void test_unsigned_order_and_shifts(void **state) {
  (void)state;
  DType u64 = DTYPE(TYPE_UINT, 64), i64 = DTYPE_INT64;
  assert_int_equal(evaluate_int(raw_int(EXPR_MAX, u64, -1, 1)), -1);
  assert_int_equal(evaluate_int(raw_int(EXPR_MAX, i64, -1, 1)), 1);
  Expr *most = expr_int(context, u64, -1), *one = expr_int(context, u64, 1);
  Expr *less = raw(EXPR_LT, DTYPE_BOOL, most, one, NULL);
  assert_int_equal(evaluate_int(less), 0);
  assert_int_equal(evaluate_int(raw_int(EXPR_SHIFT_RIGHT, u64, -1, 60)), 15);
  assert_int_equal(evaluate_int(raw_int(EXPR_SHIFT_RIGHT, i64, -16, 3)), -2);
  assert_int_equal(evaluate_int(raw_int(EXPR_SHIFT_LEFT, DTYPE_INT8, 5, 6)), 64);
  assert_int_equal(
      evaluate_int(raw(EXPR_BIT_NOT, DTYPE_UINT8, expr_int(context, DTYPE_UINT8, 5), NULL, NULL)),
      250);
}

static void test_floats_round_to_their_type(void **state) {
  (void)state;
  for (int t = 0; t < COUNT_OF(float_types); t++) {
    DType type = float_types[t];
    Expr *one = expr_float(context, type, 1), *three = expr_float(context, type, 3);
    double third = evaluate_float(raw(EXPR_DIV, type, one, three, NULL));
    assert_true(third == number_round(type, 1.0 / 3));
    double sum = evaluate_float(raw(EXPR_ADD, type, expr_float(context, type, third), three, NULL));
    assert_true(sum == number_round(type, third + 3));
  }
  DType half = DTYPE_FLOAT16;
  Expr *big = expr_float(context, half, 60000), *tiny = expr_float(context, half, 0x1p-24);
  assert_true(isinf(evaluate_float(raw(EXPR_ADD, half, big, big, NULL))));
  assert_true(evaluate_float(raw(EXPR_MUL, half, tiny, expr_float(context, half, 0.5), NULL)) == 0);
  assert_true(evaluate_float(raw(EXPR_SUB, half, expr_float(context, half, 2048),
                                 expr_float(context, half, 1.5), NULL)) == 2046);
}

static void test_casts(void **state) {
  (void)state;
  const struct {
    double from;
    DType through;
    double expected;
  } cases[] = {
      {-2.75, DTYPE_INT32, -2},
      {300, DTYPE_UINT8, 44},
      {200.5, DTYPE_INT8, -56},
      {-129.5, DTYPE_INT8, 127},
      {-1.5, DTYPE_UINT8, 255},
      {70000, DTYPE(TYPE_INT, 16), 4464},
      {-0x1p31 - 0.5, DTYPE_INT32, INT32_MIN},
      {0x1p31, DTYPE_INT32, INT32_MIN},
      {NAN, DTYPE_INT32, INT32_MIN},
      {NAN, DTYPE_INT8, 0},
      {0x1p31 + 5, DTYPE_INT8, 0},
      {0x1p31 + 5.5, DTYPE(TYPE_UINT, 32), 0x1p31 + 5},
      {-1.5, DTYPE(TYPE_UINT, 32), 0x1p32 - 1},
      {0x1p32, DTYPE(TYPE_UINT, 32), 0},
      {0x1p63, DTYPE_INT64, -0x1p63},
      {-0x1p63, DTYPE_INT64, -0x1p63},
      {0x1p63 + 0x1p20, DTYPE(TYPE_UINT, 64), 0x1p63 + 0x1p20},
      {INFINITY, DTYPE(TYPE_UINT, 64), 0},
      {-INFINITY, DTYPE(TYPE_UINT, 64), 0x1p63},
      {2.5, DTYPE_BOOL, 1},
      {0, DTYPE_BOOL, 0},
      {0.1, DTYPE_FLOAT32, (float)0.1},
      {65520, DTYPE_FLOAT16, INFINITY},
      {1.01, DTYPE_BFLOAT16, 1.0078125},
  };
  for (int i = 0; i < COUNT_OF(cases); i++) {
    DType type = cases[i].through;
    Expr *e = raw(EXPR_CAST, type, expr_float(context, DTYPE_FLOAT64, cases[i].from), NULL, NULL);
    e = raw(EXPR_CAST, DTYPE_FLOAT64, e, NULL, NULL);
    assert_true(evaluate_float(e) == cases[i].expected);
  }
  Expr *one = expr_float(context, DTYPE_FLOAT32, 1);
  Expr *bits = raw(EXPR_REINTERPRET, DTYPE_INT32, one, NULL, NULL);
  assert_int_equal(evaluate_int(bits), 0x3f800000);
  // 2^63 + 2^39 in one rounding to float32, not by way of double.
  int64_t large = INT64_C(0x4000004000000001);
  Expr *single = raw(EXPR_CAST, DTYPE_FLOAT32, expr_int(context, DTYPE_INT64, large), NULL, NULL);
  assert_true(evaluate_float(single) == (double)(float)large);
}

// Every operation of the table that computes a value from scalars is implemented for its types.
static void test_every_operation_has_a_meaning(void **state) {
  (void)state;
  for (int op = EXPR_ADD; op < EXPR_OP_COUNT; op++) {
    const OpInfo *info = &op_table[op];
    bool computes = info->class == OP_ARITH || info->class == OP_COMPARE || info->class == OP_BIT ||
                    info->class == OP_MATH || info->class == OP_LOGIC;
    if (!computes) continue;
    for (int floats = 0; floats < 2; floats++) {
      if (info->flags & (floats ? OP_INTS : OP_FLOATS)) continue;
      if (floats && info->class == OP_LOGIC) continue;
      DType type = floats ? DTYPE_FLOAT32 : info->class == OP_LOGIC ? DTYPE_BOOL : DTYPE_INT32;
      DType result = info->result == OP_BOOL ? DTYPE_BOOL : type;
      Expr *one = expr_const(context, type, 1);
      Expr *e =
          raw((ExprOp)op, result, one, info->arity > 1 ? one : NULL, info->arity > 2 ? one : NULL);
      char out[16];
      if (!evaluate(e, NULL, NULL, out)) fail_msg("%s: no meaning", info->name);
    }
  }
}

static void test_functions_of_floats(void **state) {
  (void)state;
  const struct {
    ExprOp op;
    double x, expected;
  } cases[] = {{EXPR_EXP, 1, M_E},       {EXPR_SIGMOID, 0, 0.5}, {EXPR_RSQRT, 4, 0.5},
               {EXPR_ROUND, 2.5, 2},     {EXPR_ROUND, -3.5, -4}, {EXPR_ERF, 0.5, 0.5204998778},
               {EXPR_LOG1P, 1e-9, 1e-9}, {EXPR_ABS, -3, 3},      {EXPR_FLOOR, -0.5, -1}};
  for (int i = 0; i < COUNT_OF(cases); i++) {
    Expr *x = expr_float(context, DTYPE_FLOAT32, cases[i].x);
    double y = evaluate_float(raw(cases[i].op, DTYPE_FLOAT32, x, NULL, NULL));
    assert_true(fabs(y - cases[i].expected) <= 1e-7 * fabs(cases[i].expected));
  }
  Expr *nan = expr_float(context, DTYPE_FLOAT32, NAN), *one = expr_float(context, DTYPE_FLOAT32, 1);
  assert_true(isnan(evaluate_float(raw(EXPR_MAX, DTYPE_FLOAT32, nan, one, NULL))));
  assert_true(isnan(evaluate_float(raw(EXPR_MIN, DTYPE_FLOAT32, one, nan, NULL))));
  assert_int_equal(evaluate_int(raw(EXPR_ISNAN, DTYPE_BOOL, nan, NULL, NULL)), 1);
  assert_int_equal(evaluate_int(raw_int(EXPR_POW, DTYPE_INT32, -3, 5)), -243);
}

// ---- Vectors ----------------------------------------------------------------------------------

static void test_vector_expressions(void **state) {
  (void)state;
  Expr *ramp = raw(EXPR_RAMP, dtype_lanes(DTYPE_INT32, 4), i32(3), i32(5), NULL);
  int32_t lanes[4];
  assert_true(evaluate(ramp, NULL, NULL, lanes));
  for (int i = 0; i < 4; i++) assert_int_equal(lanes[i], 3 + 5 * i);
  assert_int_equal(evaluate_int(raw(EXPR_VECTOR_SUM, DTYPE_INT32, ramp, NULL, NULL)), 42);
  assert_int_equal(evaluate_int(raw(EXPR_VECTOR_MAX, DTYPE_INT32, ramp, NULL, NULL)), 18);
  Expr *pair[] = {ramp, i32(-1)};
  Expr *order[] = {i32(4), i32(2), i32(2), i32(0)};
  Expr *shuffle = raw(EXPR_SHUFFLE, dtype_lanes(DTYPE_INT32, 4), expr_tuple(context, pair, 2),
                      expr_tuple(context, order, 4), NULL);
  assert_true(evaluate(shuffle, NULL, NULL, lanes));
  const int32_t expected[] = {-1, 13, 13, 3};
  assert_memory_equal(lanes, expected, sizeof lanes);
}

// out[0:8] = in[2*i] where i < 5, else -1: lanes 5 to 7 would read outside.
static void test_masked_lanes_do_not_read(void **state) {
  (void)state;
  Buffer *in = buffer_static(context, "in", DTYPE_INT32, (int64_t[]){9}, 1, NULL);
  Buffer *out = buffer_static(context, "out", DTYPE_INT32, (int64_t[]){8}, 1, NULL);
  DType lanes = dtype_lanes(DTYPE_INT32, 8);
  Expr *index = raw(EXPR_RAMP, lanes, i32(0), i32(1), NULL);
  Expr *twice = raw(EXPR_RAMP, lanes, i32(0), i32(2), NULL);
  Expr *inside = raw(EXPR_LT, dtype_lanes(DTYPE_BOOL, 8), index,
                     raw(EXPR_BROADCAST, lanes, i32(5), NULL, NULL), NULL);
  Expr *otherwise = raw(EXPR_BROADCAST, lanes, i32(-1), NULL, NULL);
  for (int masked = 1; masked >= 0; masked--) {
    Expr *value = raw(masked ? EXPR_IF_THEN_ELSE : EXPR_SELECT, lanes, inside,
                      expr_load(context, in, &twice, 1), otherwise);
    PrimFunc *func = func_of((Buffer *[]){in, out}, 2, stmt_store(context, out, &index, 1, value));
    int32_t from[9] = {0, 1, 2, 3, 4, 5, 6, 7, 8}, to[8];
    InterpTensor args[] = {tensor(DTYPE_INT32, 1, (int64_t[]){9}, from),
                           tensor(DTYPE_INT32, 1, (int64_t[]){8}, to)};
    assert_int_equal(interp_run(context, NULL, func, args, 2, NULL), masked);
    for (int i = 0; masked && i < 8; i++) assert_int_equal(to[i], i < 5 ? 2 * i : -1);
  }
  expect_error("in[10] is outside of in[9]");
}

static void test_buffers_of_vectors(void **state) {
  (void)state;
  DType four = dtype_lanes(DTYPE_FLOAT32, 4);
  Buffer *a = buffer_static(context, "A", four, (int64_t[]){3}, 1, NULL);
  Expr *one = i32(1), *two = i32(2);
  Stmt *store = stmt_store(context, a, &two, 1, expr_load(context, a, &one, 1));
  float data[12];
  for (int i = 0; i < 12; i++) data[i] = (float)i;
  InterpTensor arg = tensor(four, 1, (int64_t[]){3}, data);
  assert_true(interp_run(context, NULL, func_of(&a, 1, store), &arg, 1, NULL));
  for (int i = 8; i < 12; i++) assert_true(data[i] == (float)(i - 4));
}

// ---- Comparison -------------------------------------------------------------------------------

static void test_compare_finds_the_element(void **state) {
  (void)state;
  PrimFunc *a = matmul(NULL), *b = matmul(i32(4));
  InterpCompare compare = {.seed = 3, .fill = INTERP_FILL_EIGHTHS};
  InterpDifference difference;
  assert_true(interp_compare(context, a, matmul(NULL), &compare, &difference));
  assert_true(difference.max_abs == 0);
  assert_false(interp_compare(context, a, b, &compare, &difference));
  assert_int_equal(difference.param, 2);
  assert_in_range(difference.index, 4 * N, 5 * N - 1);
  assert_in_range(difference.mismatches, 1, N);
  assert_non_null(strstr(interp_difference_text(&context->arena, a, &difference), "(C) at [4, "));
}

// ---- Loops that are left early, and results of functions

static const char leaving[] =
    "@T.prim_func\n"
    "def first_above(A: T.Buffer((7,), \"int32\"), limit: T.int32) -> T.int32:\n"
    "    for i in range(7):\n"
    "        if A[i] > limit:\n"
    "            return i\n"
    "    return -1\n"
    "@T.prim_func\n"
    "def run(A: T.Buffer((7,), \"int32\"), B: T.Buffer((5,), \"int32\")):\n"
    "    B[0] = first_above(A.data, 4)\n"
    "    B[1] = first_above(A.data, 100)\n"
    "    for i in range(3):\n"
    "        for j in range(7):\n"
    "            if A[j] == 2:\n"
    "                continue\n"
    "            if A[j] > 5:\n"
    "                break\n"
    "            B[2] = B[2] + A[j]\n"
    "        B[3] = B[3] + 1\n"
    "    while A[0]:\n"
    "        B[4] = B[4] + 1\n"
    "        if B[4] == 9:\n"
    "            break\n";

static void test_loops_are_left(void **state) {
  (void)state;
  Context *context = context_new();
  SourceFile *file = source_file_new(context, "leave.py", leaving, strlen(leaving));
  Module *module = script_parse(context, file);
  assert_non_null(module);
  int32_t a[7] = {1, 2, 3, 4, 5, 6, 7}, b[5] = {0};
  int64_t n = 7, m = 5;
  InterpTensor args[] = {{DTYPE_INT32, 1, &n, NULL, a}, {DTYPE_INT32, 1, &m, NULL, b}};
  assert_true(interp_run(context, module, module_find(module, "run")->prim, args, 2, NULL));
  const int32_t expected[5] = {4, -1, 3 * (1 + 3 + 4 + 5), 3, 9};
  assert_memory_equal(b, expected, sizeof b);
  context_free(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_loops_are_left),
      TEST(test_blocks_initialise_and_obey_predicates),
      TEST(test_symbolic_sizes_come_from_arguments),
      TEST(test_calls_pass_storage_and_scalars),
      TEST(test_externs_are_called_by_name),
      TEST(test_fresh_storage_is_poisoned),
      TEST(test_aliases_share_strided_storage),
      TEST(test_a_matched_view_sees_its_region),
      TEST(test_constants_are_read_in_place),
      TEST(test_while_let_if_and_assert),
      TEST(test_an_endless_loop_meets_its_limit),
      TEST(test_accesses_outside_are_located),
      TEST(test_views_stay_inside_their_storage),
      TEST(test_other_errors),
      TEST(test_integers_wrap_in_their_type),
      TEST(test_unsigned_order_and_shifts),
      TEST(test_floats_round_to_their_type),
      TEST(test_casts),
      TEST(test_every_operation_has_a_meaning),
      TEST(test_functions_of_floats),
      TEST(test_vector_expressions),
      TEST(test_masked_lanes_do_not_read),
      TEST(test_buffers_of_vectors),
      TEST(test_compare_finds_the_element),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
