// SPDX-License-Identifier: Apache-2.0
// The values of intrinsics that are functions of their operands, as operations that the interpreter
// and all targets have.
//
//   T.clz(x)                                 x has 8 bits: 8 - T.popcount(x | x >> 1 | x >> 2 | …)
//   T.ldexp(x, n)                            x * 2**n, rounded once
//   T.get_active_lane_mask("boolx4", i, n)   T.Ramp(0, 1, 4) < n - i
//   T.call_llvm_pure_intrin("float32", "llvm.sqrt.f32", x)   T.sqrt(x)
#include "ir/intrinsic.h"

#include <math.h>

enum { MAX_HELD = 16 };

typedef struct ValueLets {
  Context *context;
  Expr *vars[MAX_HELD], *values[MAX_HELD]; // in LETs around the result
  int count;
} ValueLets;

static Expr *held(ValueLets *v, Expr *value) {
  if (!value->count || value->op == EXPR_BROADCAST) return value;
  v->vars[v->count] = expr_var(v->context, "t", value->type);
  v->values[v->count] = value;
  return v->vars[v->count++];
}

static Expr *number(const ValueLets *v, const Expr *like, double value) {
  return expr_const(v->context, like->type, value);
}

static Expr *operation(const ValueLets *v, ExprOp op, Expr *a, Expr *b) {
  return expr_binary(v->context, op, a, b);
}

// ---- Bits

// The number of zero bits before the first one that is 1; all bits of the type for 0.
static Expr *leading_zeros(ValueLets *v, DType result, Expr *x) {
  int bits = x->type.bits;
  if (!dtype_is_int(x->type) || (bits & (bits - 1)) || bits < 8) return NULL;
  x = held(v, expr_cast(v->context, dtype_lanes(DTYPE(TYPE_UINT, bits), x->type.lanes), x));
  for (int shift = 1; shift < bits; shift *= 2) {
    Expr *moved = operation(v, EXPR_SHIFT_RIGHT, x, number(v, x, shift));
    x = held(v, operation(v, EXPR_BIT_OR, x, moved));
  }
  Expr *ones = expr_cast(v->context, result, expr_unary(v->context, EXPR_POPCOUNT, x));
  return operation(v, EXPR_SUB, number(v, ones, bits), ones);
}

static Expr *value_of_clz(ValueLets *v, Expr *e) {
  return leading_zeros(v, e->type, e->args[0]);
}

// ---- Floats

static Expr *value_of_isfinite(ValueLets *v, Expr *e) {
  if (!dtype_is_float(e->args[0]->type)) return expr_const(v->context, e->type, 1);
  Expr *x = held(v, e->args[0]);
  Expr *none = operation(v, EXPR_OR, expr_unary(v->context, EXPR_ISNAN, x),
                         expr_unary(v->context, EXPR_ISINF, x));
  return expr_unary(v->context, EXPR_NOT, none);
}

// One step towards x * 2**n, which leaves no double rounding: down, it keeps 53 bits above the
// least exponent. (musl, scalbn)
static void scale_once(ValueLets *v, Expr **x, Expr **n) {
  Context *context = v->context;
  Expr *up = operation(v, EXPR_GT, *n, number(v, *n, 1023));
  Expr *down = operation(v, EXPR_LT, *n, number(v, *n, -1022));
  Expr *factor =
      expr_select(context, up, number(v, *x, ldexp(1, 1023)),
                  expr_select(context, down, number(v, *x, ldexp(1, -969)), number(v, *x, 1)));
  Expr *done = expr_select(context, up, number(v, *n, 1023),
                           expr_select(context, down, number(v, *n, -969), number(v, *n, 0)));
  *x = held(v, operation(v, EXPR_MUL, *x, factor));
  *n = held(v, operation(v, EXPR_SUB, *n, done));
}

static Expr *clamped(const ValueLets *v, Expr *n, double least, double most) {
  return operation(v, EXPR_MAX, operation(v, EXPR_MIN, n, number(v, n, most)), number(v, n, least));
}

// Narrower floats are exact in float64 until the last rounding.
static Expr *value_of_ldexp(ValueLets *v, Expr *e) {
  Context *context = v->context;
  Expr *x = e->args[0], *n = e->args[1];
  int lanes = e->type.lanes;
  if (!dtype_is_float(x->type) || !dtype_is_int(n->type) || !dtype_equal(e->type, x->type))
    return NULL;
  if (n->type.lanes != lanes && n->type.lanes != 1) return NULL;
  x = held(v, expr_cast(context, dtype_lanes(DTYPE(TYPE_FLOAT, 64), lanes), x));
  n = expr_broadcast(context, n, lanes / n->type.lanes);
  n = held(v, clamped(v, expr_cast(context, dtype_lanes(DTYPE_INT64, lanes), n), -2300, 2300));
  scale_once(v, &x, &n);
  scale_once(v, &x, &n);
  Expr *exponent = operation(v, EXPR_ADD, clamped(v, n, -1022, 1023), number(v, n, 1023));
  Expr *bits = operation(v, EXPR_SHIFT_LEFT, exponent, number(v, n, 52));
  Expr *factor = expr_raw(context, EXPR_REINTERPRET, x->type, NULL, &bits, 1);
  return expr_cast(context, e->type, operation(v, EXPR_MUL, x, factor));
}

// ---- Vectors

static Expr *value_of_lane_mask(ValueLets *v, Expr *e) {
  Context *context = v->context;
  Expr *first = e->args[0], *limit = e->args[1];
  bool is_mask = e->type.code == TYPE_BOOL || (e->type.code == TYPE_UINT && e->type.bits == 1);
  if (!is_mask || dtype_is_scalable(e->type) || first->type.lanes != 1 || limit->type.lanes != 1)
    return NULL;
  Expr *rest = operation(v, EXPR_SUB, limit, first);
  Expr *lanes = expr_ramp(context, number(v, rest, 0), number(v, rest, 1), e->type.lanes);
  return expr_cast(context, e->type, operation(v, EXPR_LT, lanes, rest));
}

static Expr *lanes_of(ValueLets *v, Expr *e, Expr *const *vectors, int count, int first) {
  Context *context = v->context;
  if (dtype_is_scalable(e->type)) return NULL;
  Expr **numbers = arena_array(&context->arena, Expr *, e->type.lanes);
  for (int i = 0; i < e->type.lanes; i++) numbers[i] = expr_int(context, DTYPE_INT32, first + i);
  Expr *args[] = {expr_tuple(context, vectors, count), expr_tuple(context, numbers, e->type.lanes)};
  return expr_raw(context, EXPR_SHUFFLE, e->type, NULL, args, 2);
}

static Expr *half_of(ValueLets *v, Expr *e, bool high) {
  Expr *x = e->args[0];
  if (!dtype_equal(dtype_lanes(e->type, x->type.lanes), x->type)) return NULL;
  return x->type.lanes == 2 * e->type.lanes ? lanes_of(v, e, &x, 1, high ? e->type.lanes : 0)
                                            : NULL;
}

static Expr *value_of_low(ValueLets *v, Expr *e) {
  return half_of(v, e, false);
}

static Expr *value_of_high(ValueLets *v, Expr *e) {
  return half_of(v, e, true);
}

static Expr *value_of_both(ValueLets *v, Expr *e) {
  Expr *const *x = e->args;
  bool fits = dtype_equal(x[0]->type, x[1]->type) && e->type.lanes == 2 * x[0]->type.lanes &&
              dtype_equal(dtype_lanes(e->type, x[0]->type.lanes), x[0]->type);
  return fits ? lanes_of(v, e, x, 2, 0) : NULL;
}

// ---- Intrinsics of LLVM

// The name up to the types of the operands: "sqrt" of "llvm.sqrt.f32".
static const struct {
  const char *name;
  ExprOp op;
} llvm_names[] = {
    {"sqrt", EXPR_SQRT},         {"exp", EXPR_EXP},          {"exp2", EXPR_EXP2},
    {"exp10", EXPR_EXP10},       {"log", EXPR_LOG},          {"log2", EXPR_LOG2},
    {"log10", EXPR_LOG10},       {"sin", EXPR_SIN},          {"cos", EXPR_COS},
    {"tan", EXPR_TAN},           {"asin", EXPR_ASIN},        {"acos", EXPR_ACOS},
    {"atan", EXPR_ATAN},         {"atan2", EXPR_ATAN2},      {"sinh", EXPR_SINH},
    {"cosh", EXPR_COSH},         {"tanh", EXPR_TANH},        {"pow", EXPR_POW},
    {"fabs", EXPR_ABS},          {"fma", EXPR_FMA},          {"fmuladd", EXPR_FMA},
    {"floor", EXPR_FLOOR},       {"ceil", EXPR_CEIL},        {"trunc", EXPR_TRUNC},
    {"rint", EXPR_ROUND},        {"nearbyint", EXPR_ROUND},  {"roundeven", EXPR_ROUND},
    {"copysign", EXPR_COPYSIGN}, {"round", EXPR_ROUND_AWAY},
};

static bool is_llvm(const char *called, const char *name) {
  size_t size = strlen(name);
  if (strncmp(called, "llvm.", 5) != 0 || strncmp(called + 5, name, size) != 0) return false;
  return !called[5 + size] || called[5 + size] == '.';
}

static bool all_of_type(const Expr *const *items, int count, DType type) {
  for (int i = 0; i < count; i++)
    if (!dtype_equal(items[i]->type, type)) return false;
  return true;
}

static Expr *llvm_bits(ValueLets *v, Expr *e, const char *called, Expr *const *x, int count) {
  if (count < 1 || !dtype_is_int(e->type) || !dtype_equal(x[0]->type, e->type)) return NULL;
  if (is_llvm(called, "ctpop") && count == 1) return expr_unary(v->context, EXPR_POPCOUNT, x[0]);
  if (is_llvm(called, "ctlz") && count == 2) return leading_zeros(v, e->type, x[0]);
  return NULL;
}

// Up to 2025 the number of operands stood behind the name.
static Expr *value_of_llvm(ValueLets *v, Expr *e) {
  if (e->args[0]->op != EXPR_STRING) return NULL;
  const char *called = e->args[0]->as.s;
  int64_t stated;
  int first = e->count > 2 && e->args[1]->type.code == TYPE_UINT && e->args[1]->type.bits == 32 &&
                      expr_as_int(e->args[1], &stated) && stated == e->count - 2
                  ? 2
                  : 1;
  Expr *const *x = e->args + first;
  int count = e->count - first;
  for (int i = 0; i < COUNT_OF(llvm_names); i++) {
    const OpInfo *info = &op_table[llvm_names[i].op];
    if (is_llvm(called, llvm_names[i].name))
      return count == info->arity && dtype_is_float(e->type) &&
                     all_of_type((const Expr *const *)x, count, e->type)
                 ? expr_raw(v->context, llvm_names[i].op, e->type, NULL, x, count)
                 : NULL;
  }
  return llvm_bits(v, e, called, x, count);
}

static Expr *value_of_operand(ValueLets *v, Expr *e) {
  (void)v;
  return e->args[0];
}

// An assumption is true, and what is not defined may be 0.
static Expr *value_of_assumption(ValueLets *v, Expr *e) {
  return expr_const(v->context, e->type, 1);
}

static Expr *value_of_undefined(ValueLets *v, Expr *e) {
  return dtype_is_scalable(e->type) || e->type.code == TYPE_HANDLE
             ? NULL
             : expr_const(v->context, e->type, 0);
}

static const struct {
  const char *name;
  Expr *(*value)(ValueLets *v, Expr *e); // NULL: for operands of other types
} meanings[] = {
    {"clz", value_of_clz},
    {"ldexp", value_of_ldexp},
    {"isfinite", value_of_isfinite},
    {"get_active_lane_mask", value_of_lane_mask},
    {"vectorlow", value_of_low},
    {"vectorhigh", value_of_high},
    {"vectorcombine", value_of_both},
    {"ignore_loop_partition", value_of_operand},
    {"assume", value_of_assumption},
    {"undef", value_of_undefined},
    {"call_llvm_pure_intrin", value_of_llvm},
    {"call_llvm_intrin", value_of_llvm},
};

Expr *intrinsic_value(Context *context, Expr *e) {
  ValueLets v = {.context = context};
  bool is_intrinsic = e->op == EXPR_INTRINSIC || e->op == EXPR_INTRINSIC_PURE;
  for (int i = 0; is_intrinsic && i < COUNT_OF(meanings); i++) {
    if (strcmp(e->as.s, meanings[i].name) != 0) continue;
    Expr *value = meanings[i].value(&v, e);
    while (value && v.count > 0) {
      v.count--;
      value = expr_let(context, v.vars[v.count], v.values[v.count], value);
    }
    return value;
  }
  return NULL;
}
