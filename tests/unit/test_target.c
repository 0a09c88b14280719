// SPDX-License-Identifier: Apache-2.0
// Runs every target at every processor level of this machine, and compares with the interpreter.
#include "target_check.h"
#include "context_support.h"

#include <math.h>

static Expr *i32(int64_t value) {
  return expr_int(context, DTYPE_INT32, value);
}

static Expr *raw(ExprOp op, DType type, Expr *a, Expr *b, Expr *c) {
  Expr *args[] = {a, b, c};
  return expr_raw(context, op, type, NULL, args, c ? 3 : b ? 2 : 1);
}

// ---- Kernels -----------------------------------------------------------------------------------

// A function whose body is lowered already: one serial region.
static PrimFunc *func_of(const char *name, Buffer *const *buffers, int count, Stmt *body) {
  Expr **params = arena_array(&context->arena, Expr *, count);
  for (int i = 0; i < count; i++) params[i] = buffers[i]->data;
  return prim_func_new(context, name, params, buffers, count,
                       stmt_attr(context, LOWER_REGIONS_ATTR, NULL, i32(1), body));
}

// ---- Operations --------------------------------------------------------------------------------

enum { COUNT = 35 };

static Expr *vector_load(Buffer *buffer, Expr *base, int lanes) {
  Expr *index =
      lanes == 1 ? base : raw(EXPR_RAMP, dtype_lanes(DTYPE_INT32, lanes), base, i32(1), NULL);
  return expr_load(context, buffer, &index, 1);
}

static Stmt *vector_store(Buffer *buffer, Expr *base, Expr *value) {
  int lanes = value->type.lanes;
  Expr *index =
      lanes == 1 ? base : raw(EXPR_RAMP, dtype_lanes(DTYPE_INT32, lanes), base, i32(1), NULL);
  return stmt_store(context, buffer, &index, 1, value);
}

static Expr *where_low_bits_are_zero(Expr *x, int64_t bits, double value, Expr *other) {
  Expr *low = expr_binary(context, EXPR_BIT_AND, x, expr_const(context, x->type, (double)bits));
  Expr *zero = expr_binary(context, EXPR_EQ, low, expr_const(context, x->type, 0));
  return expr_select(context, zero, expr_const(context, x->type, value), other);
}

// Divisors are not 0. For signed types some are -1, and some dividends are the least number.
static void make_divisible(Expr **args) {
  DType type = args[0]->type;
  if (type.code == TYPE_UINT) {
    args[1] = where_low_bits_are_zero(args[1], (1 << 4) - 1, 3, args[1]);
    return;
  }
  args[0] = where_low_bits_are_zero(args[0], 1, -ldexp(1, type.bits - 1), args[0]);
  args[1] = where_low_bits_are_zero(args[1], 3, -1, args[1]);
}

// out[row * COUNT + i] = op(a[i], b[i], …), `lanes` at a time and the rest one by one.
static Stmt *op_stmt(ExprOp op, Buffer *out, Buffer *const *in, int row, int lanes) {
  const OpInfo *info = &op_table[op];
  DType type = in[0]->type;
  Stmt *parts[2];
  for (int part = 0; part < 2; part++) {
    int step = part ? 1 : lanes, whole = COUNT / lanes;
    Expr *i = expr_var(context, "i", DTYPE_INT32);
    Expr *base = part ? expr_add(context, i, i32(whole * lanes)) : expr_mul(context, i, i32(step));
    Expr *args[3] = {NULL};
    for (int k = 0; k < info->arity; k++) args[k] = vector_load(in[k], base, step);
    bool divides = op == EXPR_FLOOR_DIV || op == EXPR_FLOOR_MOD || op == EXPR_TRUNC_DIV ||
                   op == EXPR_TRUNC_MOD;
    DType lane_type = dtype_lanes(type, step);
    if (divides && dtype_is_int(type)) make_divisible(args);
    if (op == EXPR_SHIFT_LEFT || op == EXPR_SHIFT_RIGHT)
      args[1] = expr_binary(context, EXPR_BIT_AND, args[1], expr_const(context, lane_type, 3));
    if (op == EXPR_POW && dtype_is_float(type)) args[0] = expr_unary(context, EXPR_ABS, args[0]);
    Expr *value = raw(op, dtype_lanes(out->type, step), args[0], args[1], args[2]);
    Expr *to = expr_add(context, base, i32(row * COUNT));
    parts[part] = stmt_for(context, i, i32(0), i32(part ? COUNT % lanes : whole), LOOP_SERIAL,
                           vector_store(out, to, value));
  }
  return stmt_seq(context, parts, 2);
}

// Operations whose results have the same type.
typedef struct OpGroup {
  ExprOp ops[8];
  int count;
} OpGroup;

static DType result_type(ExprOp op, DType type) {
  return op_table[op].result == OP_BOOL ? DTYPE_BOOL : type;
}

// Computes one row of the result with each operation, because a device compiles a function of
// several operations faster than several functions.
static PrimFunc *op_func(const OpGroup *group, DType type, int lanes) {
  const int64_t shape[] = {COUNT}, rows[] = {group->count * COUNT};
  Buffer *out = buffer_static(context, "out", result_type(group->ops[0], type), rows, 1, NULL);
  Buffer *in[3], *buffers[] = {out, NULL, NULL, NULL};
  for (int i = 0; i < 3; i++)
    buffers[i + 1] = in[i] = buffer_static(context, "in", type, shape, 1, NULL);
  Stmt *parts[COUNT_OF(group->ops)];
  Text name = text_new(&context->arena);
  for (int i = 0; i < group->count; i++) {
    parts[i] = op_stmt(group->ops[i], out, in, i, lanes);
    text_printf(&name, "%s_", op_table[group->ops[i]].name);
  }
  text_printf(&name, "%s_%d", dtype_name(context, type), lanes);
  return func_of(text_string(&name), buffers, 4, stmt_seq(context, parts, group->count));
}

static bool is_scalar_op(const OpInfo *info) {
  return info->class == OP_ARITH || info->class == OP_COMPARE || info->class == OP_BIT ||
         info->class == OP_MATH || info->class == OP_LOGIC;
}

// Compilers are slow, so each function runs at two levels of LLVM and at one of the C target.
enum { TURNS = 4, BASELINE = 2 };

typedef struct Turns {
  TargetCases llvm[TURNS], c[TURNS];
  int next;
} Turns;

static void add_func(Turns *turns, PrimFunc *func, double rtol) {
  TargetCase one = {func, func, {.seed = 11, .rtol = rtol, .atol = rtol * 1e-3}, func->name};
  int turn = turns->next++ % TURNS;
  array_push(&context->arena, &turns->llvm[turn], one);
  array_push(&context->arena, &turns->llvm[(turn + 2) % TURNS], one);
  array_push(&context->arena, &turns->c[(turn + 1) % TURNS], one);
}

static void check_all(const Turns *turns) {
  int failures = 0;
  for (int i = 0; i < TURNS; i++) {
    failures += target_check(context, &turns->llvm[i], (TargetPlaces){"llvm", 1u << i});
    failures += target_check(context, &turns->c[i], (TargetPlaces){"c", 1u << i});
    failures += target_check(context, &turns->c[i], (TargetPlaces){"opencl", 1u << BASELINE});
  }
  assert_int_equal(failures, 0);
}

static bool takes(ExprOp op, DType type) {
  const OpInfo *info = &op_table[op];
  if (!is_scalar_op(info) || (info->class == OP_LOGIC) != dtype_is_bool(type)) return false;
  if (info->flags & (dtype_is_float(type) ? OP_INTS : OP_FLOATS)) return false;
  if ((op == EXPR_DOT_BYTES || op == EXPR_DOT_WORDS) && type.bits != 32) return false;
  // A power of wide integers compiles long and tests no more.
  return op != EXPR_POW || dtype_is_float(type) || type.bits <= 16;
}

// Every operation that takes the type.
static void add_type(Turns *turns, DType type, double rtol) {
  OpGroup groups[2] = {0}; // those whose results are bool, and the others
  for (int op = EXPR_ADD; op < EXPR_OP_COUNT; op++) {
    if (!takes((ExprOp)op, type)) continue;
    OpGroup *group = &groups[!dtype_is_bool(result_type((ExprOp)op, type))];
    group->ops[group->count++] = (ExprOp)op;
    if (group->count < COUNT_OF(group->ops)) continue;
    add_func(turns, op_func(group, type, 16), rtol); // and one by one at the end
    group->count = 0;
  }
  for (int i = 0; i < 2; i++)
    if (groups[i].count) add_func(turns, op_func(&groups[i], type, 16), rtol);
}

static void test_operations_on_floats(void **state) {
  (void)state;
  Turns turns = {.next = 0};
  add_type(&turns, DTYPE_FLOAT32, 1e-6);
  add_type(&turns, DTYPE_FLOAT64, 1e-14);
  add_type(&turns, DTYPE_FLOAT16, 1e-3);
  add_type(&turns, DTYPE_BFLOAT16, 8e-3);
  add_type(&turns, DTYPE(TYPE_FLOAT8_E4M3, 8), 0.13);
  add_type(&turns, DTYPE(TYPE_FLOAT8_E5M2, 8), 0.26);
  check_all(&turns);
}

static void test_operations_on_integers(void **state) {
  (void)state;
  Turns turns = {.next = 0};
  const int bits[] = {4, 8, 16, 32, 64};
  for (int i = 0; i < COUNT_OF(bits); i++) {
    add_type(&turns, DTYPE(TYPE_INT, (uint8_t)bits[i]), 0);
    add_type(&turns, DTYPE(TYPE_UINT, (uint8_t)bits[i]), 0);
  }
  add_type(&turns, DTYPE_BOOL, 0);
  check_all(&turns);
}

// Sums of products of bytes and of words, alone and added to a value, in vectors of all widths at
// each level.
static void test_products_of_bytes(void **state) {
  (void)state;
  TargetCases cases = {0};
  for (int lanes = 1; lanes <= 16; lanes *= 2)
    for (int form = 0; form < 4; form++) {
      bool added = form & 1, words = form & 2;
      const int64_t shape[] = {COUNT};
      Buffer *in[3], *out = buffer_static(context, "out", DTYPE_INT32, shape, 1, NULL);
      for (int i = 0; i < 3; i++) in[i] = buffer_static(context, "in", DTYPE_INT32, shape, 1, NULL);
      Expr *i = expr_var(context, "i", DTYPE_INT32), *base = expr_mul(context, i, i32(lanes));
      DType type = dtype_lanes(DTYPE_INT32, lanes);
      Expr *any = expr_const(context, type, 0x1e3779b1); // its multiples have all bytes
      Expr *a = expr_mul(context, vector_load(in[0], base, lanes), any);
      Expr *b = expr_mul(context, vector_load(in[1], base, lanes), any);
      Expr *value = raw(words ? EXPR_DOT_WORDS : EXPR_DOT_BYTES, type, a, b, NULL);
      if (added) value = raw(EXPR_ADD, type, vector_load(in[2], base, lanes), value, NULL);
      Stmt *loop = stmt_for(context, i, i32(0), i32(COUNT / lanes), LOOP_SERIAL,
                            vector_store(out, base, value));
      Buffer *buffers[] = {out, in[0], in[1], in[2]};
      char name[32];
      snprintf(name, sizeof name, "dot_%d_%d", lanes, form);
      PrimFunc *func = func_of(name, buffers, 4, loop);
      array_push(&context->arena, &cases, ((TargetCase){func, func, {.seed = 13}, func->name}));
    }
  CompileOptions options = {.machine = machine_probe(), .target = target_for_running()};
  if (options.target && options.machine.dot_bytes)
    assert_int_equal(target_check_level(context, cases.items, cases.count, &options, NULL), 0);
  assert_int_equal(target_check(context, &cases, (TargetPlaces){NULL, ~0u}), 0);
}

// Functions of one text share their code, whatever they are called; others do not.
static void test_functions_of_one_text(void **state) {
  (void)state;
  static const struct {
    const char *name;
    ExprOp op;
  } rows[] = {{"k1", EXPR_ADD},  {"k", EXPR_SUB},    {"k12", EXPR_ADD},
              {"exp", EXPR_EXP}, {"k1_2", EXPR_EXP}, {"ex", EXPR_SUB}};
  enum { ROWS = COUNT_OF(rows) };
  TargetCases cases = {0};
  LowerKernel *kernels[ROWS];
  for (int i = 0; i < ROWS; i++) {
    PrimFunc *func = op_func(&(OpGroup){{rows[i].op}, 1}, DTYPE_FLOAT32, 16);
    func->name = str_intern(context, rows[i].name);
    TargetCase one = {func, func, {.seed = 11, .rtol = 1e-6, .atol = 1e-9}, func->name};
    array_push(&context->arena, &cases, one);
    kernels[i] = lower_kernel_new(context, func, NULL);
  }
  assert_int_equal(target_check(context, &cases, (TargetPlaces){"llvm", ~0u}), 0);
  TargetUnit unit = {"shared", kernels, ROWS};
  if (strcmp(target_for_running()->name, "llvm") != 0) skip();
  CompiledCode *code = target_load(context, target_for_running(), &unit, NULL);
  assert_non_null(code);
  for (int i = 0; i < ROWS; i++)
    for (int k = 0; k < ROWS; k++)
      assert_true((code_region(code, rows[i].name).handle ==
                   code_region(code, rows[k].name).handle) == (rows[i].op == rows[k].op));
  code_free(code);
}

// ---- Conversions -------------------------------------------------------------------------------

// Numbers of `from` that differ from the midpoint of two numbers of `to` by less than a float32 can
// represent; `unit` is a power of two.
static Expr *beside_ties(Expr *k, DType from, DType to, double unit) {
  int digits = dtype_small_float(to)->mantissa_bits + 1, lanes = k->type.lanes;
  DType type = dtype_lanes(from, lanes);
  Expr *tie =
      expr_binary(context, EXPR_BIT_AND, k, expr_const(context, k->type, (1 << digits) - 1));
  tie = expr_add(context, tie, expr_const(context, k->type, 1 << digits));
  tie = expr_mul(context, expr_cast(context, type, tie), expr_const(context, type, unit));
  Expr *side = where_low_bits_are_zero(k, 4, -1, expr_const(context, k->type, 1));
  side = expr_cast(context, type, side);
  if (dtype_is_float(from))
    side = expr_mul(context, side, expr_const(context, type, ldexp(unit, -30)));
  Expr *sum = expr_add(context, tie, side);
  if (from.code == TYPE_UINT) return sum;
  Expr *negated = expr_sub(context, expr_const(context, type, 0), sum);
  Expr *low = expr_binary(context, EXPR_BIT_AND, k, expr_const(context, k->type, 8));
  return expr_select(context, expr_binary(context, EXPR_EQ, low, expr_const(context, k->type, 0)),
                     negated, sum);
}

static PrimFunc *cast_func(DType from, DType to, double unit) {
  enum { LANES = 16 };
  const int64_t shape[] = {COUNT};
  Buffer *out = buffer_static(context, "out", to, shape, 1, NULL);
  Stmt *parts[2];
  for (int part = 0; part < 2; part++) {
    Expr *i = expr_var(context, "i", DTYPE_INT32);
    int step = part ? 1 : LANES, whole = COUNT / LANES;
    Expr *base = part ? expr_add(context, i, i32(whole * LANES)) : expr_mul(context, i, i32(step));
    DType lane_type = dtype_lanes(DTYPE_INT32, step);
    Expr *k = step == 1 ? base : raw(EXPR_RAMP, lane_type, base, i32(1), NULL);
    k = expr_mul(context, k, expr_const(context, lane_type, 7));
    Expr *value = expr_cast(context, dtype_lanes(to, step), beside_ties(k, from, to, unit));
    parts[part] = stmt_for(context, i, i32(0), i32(part ? COUNT % LANES : whole), LOOP_SERIAL,
                           vector_store(out, base, value));
  }
  const char *name =
      arena_printf(&context->arena, "%s_to_%s", dtype_name(context, from), dtype_name(context, to));
  return func_of(name, &out, 1, stmt_seq(context, parts, 2));
}

// Floats of all kinds: those between 2 and 2^64 in size, or with any bits.
static Expr *any_float(Expr *k, DType to, bool moderate) {
  int lanes = k->type.lanes;
  DType bits = dtype_lanes(DTYPE(TYPE_UINT, to.bits), lanes);
  bool wide = to.bits == 64;
  Expr *odd = expr_int(context, dtype_lanes(bits, 1),
                       wide ? (int64_t)UINT64_C(0x9e3779b97f4a7c15) : 0x9e3779b1);
  Expr *x = expr_mul(context, expr_cast(context, bits, k), expr_broadcast(context, odd, lanes));
  Expr *kept = expr_int(context, dtype_lanes(bits, 1),
                        wide ? (int64_t)UINT64_C(0x83ffffffffffffff) : 0x9fffffff);
  Expr *size = expr_int(context, dtype_lanes(bits, 1), wide ? INT64_C(1) << 62 : 1 << 30);
  if (moderate) {
    x = expr_binary(context, EXPR_BIT_AND, x, expr_broadcast(context, kept, lanes));
    x = expr_binary(context, EXPR_BIT_OR, x, expr_broadcast(context, size, lanes));
  }
  return raw(EXPR_REINTERPRET, dtype_lanes(to, lanes), x, NULL, NULL);
}

static PrimFunc *whole_func(DType from, DType to, bool moderate) {
  enum { LANES = 16 };
  const int64_t shape[] = {COUNT};
  Buffer *out = buffer_static(context, "out", to, shape, 1, NULL);
  Stmt *parts[2];
  for (int part = 0; part < 2; part++) {
    Expr *i = expr_var(context, "i", DTYPE_INT32);
    int step = part ? 1 : LANES, whole = COUNT / LANES;
    Expr *base = part ? expr_add(context, i, i32(whole * LANES)) : expr_mul(context, i, i32(step));
    Expr *k = part ? base : raw(EXPR_RAMP, dtype_lanes(DTYPE_INT32, step), base, i32(1), NULL);
    Expr *value = expr_cast(context, dtype_lanes(to, step), any_float(k, from, moderate));
    parts[part] = stmt_for(context, i, i32(0), i32(part ? COUNT % LANES : whole), LOOP_SERIAL,
                           vector_store(out, base, value));
  }
  const char *name = arena_printf(&context->arena, "%s_to_%s%s", dtype_name(context, from),
                                  dtype_name(context, to), moderate ? "" : "_any");
  return func_of(name, &out, 1, stmt_seq(context, parts, 2));
}

// Floats that are NaN or out of range give the same integers everywhere.
static void test_floats_become_integers(void **state) {
  (void)state;
  Turns turns = {.next = 0};
  const DType floats[] = {DTYPE_FLOAT32, DTYPE_FLOAT64};
  for (int i = 0; i < COUNT_OF(floats); i++)
    for (int bits = 8; bits <= 64; bits *= 2)
      for (int kind = 0; kind < 4; kind++) {
        DType to = DTYPE(kind & 1 ? TYPE_UINT : TYPE_INT, bits);
        add_func(&turns, whole_func(floats[i], to, kind & 2), 0);
      }
  check_all(&turns);
}

// All of them must round once.
static void test_conversions_round_once(void **state) {
  (void)state;
  Turns turns = {.next = 0};
  const DType smalls[] = {DTYPE_FLOAT16, DTYPE_BFLOAT16, DTYPE(TYPE_FLOAT8_E4M3, 8),
                          DTYPE(TYPE_FLOAT8_E5M2, 8)};
  for (int i = 0; i < COUNT_OF(smalls); i++) {
    int bias = float_bias(*dtype_small_float(smalls[i]));
    int digits = dtype_small_float(smalls[i])->mantissa_bits + 1;
    add_func(&turns, cast_func(DTYPE_FLOAT64, smalls[i], ldexp(1, -digits)), 0);
    add_func(&turns, cast_func(DTYPE_FLOAT64, smalls[i], ldexp(1, -digits - bias - 1)), 0);
    add_func(&turns, cast_func(DTYPE_FLOAT64, smalls[i], ldexp(1, bias - digits)), 0);
  }
  for (int i = 0; i < 2; i++) {
    TypeCode code = i ? TYPE_INT : TYPE_UINT;
    add_func(&turns, cast_func(DTYPE(code, 32), DTYPE_BFLOAT16, 0x1p21), 0);
    add_func(&turns, cast_func(DTYPE(code, 64), DTYPE_BFLOAT16, 0x1p21), 0);
    add_func(&turns, cast_func(DTYPE(code, 64), DTYPE_BFLOAT16, 0x1p53), 0);
  }
  check_all(&turns);
}

// ---- Assembly ----------------------------------------------------------------------------------

static void test_spills_are_counted_in_inner_loops(void **state) {
  (void)state;
  static const char outer[] = "f:\n\t.cfi_startproc\n\tvmovups %zmm1, 8(%rsp)\n"
                              ".LBB0_1:\n\tvmovups %zmm1, 64(%rsp)\n"
                              ".LBB0_2:\n\tvmovups 64(%rsp), %zmm1\n\tvaddps (%rdi), %zmm1, %zmm2\n"
                              "\tmovq 8(%rsp), %rax\n\tjne .LBB0_2\n"
                              "\tvmovups %ymm1, (%rsp)\n\tjne .LBB0_1\n\tjmp .LBB0_9\n.LBB0_9:\n";
  assert_int_equal(target_count_spills(outer), 1);
  assert_int_equal(target_count_spills(""), 0);
  assert_int_equal(target_count_spills("\tvmovups %zmm1, 8(%rsp)\n"), 0);
}

int main(void) {
  setenv("CFLAGS", "-O0", 0); // for the C target: this tests its code, not the compiler
  const struct CMUnitTest tests[] = {
      TEST(test_operations_on_floats),
      TEST(test_operations_on_integers),
      TEST(test_products_of_bytes),
      TEST(test_functions_of_one_text),
      TEST(test_conversions_round_once),
      TEST(test_floats_become_integers),
      TEST(test_spills_are_counted_in_inner_loops),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
