// SPDX-License-Identifier: Apache-2.0
// Replaces operations that hardware does not have by operations that it has, for all targets. The
// rewriting goes bottom-up, one node at a time. A node keeps its type, and its replacement is
// legalized in turn:
//     a + b : float16   ->   cast<float16>(cast<float32>(a) + cast<float32>(b))
//     a // b : int32    ->   truncdiv and a correction
//     exp(x) : float32  ->   a polynomial (expand_math.c)
//     exp(x) : float64  ->   a call of the C library for each lane
#include "target/legalize.h"

#include <math.h>

static const DType f32 = {TYPE_FLOAT, 32, 1}, f64 = {TYPE_FLOAT, 64, 1};

// ---- Building ----------------------------------------------------------------------------------

Expr *legal_const(Legalizer *l, const Expr *like, double value) {
  Expr *scalar = expr_const(l->context, dtype_lanes(like->type, 1), value);
  return expr_broadcast(l->context, scalar, like->type.lanes);
}

Expr *legal_int(Legalizer *l, const Expr *like, int64_t value) {
  Expr *scalar = expr_int(l->context, dtype_lanes(like->type, 1), value);
  return expr_broadcast(l->context, scalar, like->type.lanes);
}

Expr *legal_cast(Legalizer *l, DType scalar, Expr *a) {
  return expr_cast(l->context, dtype_lanes(scalar, a->type.lanes), a);
}

Expr *legal_reinterpret(Legalizer *l, DType scalar, Expr *a) {
  DType type = dtype_lanes(scalar, a->type.lanes);
  return expr_raw(l->context, EXPR_REINTERPRET, type, NULL, &a, 1);
}

Expr *legal_fma(Legalizer *l, Expr *a, Expr *b, Expr *c) {
  return expr_raw(l->context, EXPR_FMA, a->type, NULL, (Expr *[]){a, b, c}, 3);
}

Expr *legal_polynomial(Legalizer *l, Expr *x, const double *coefficients, int count) {
  Expr *y = legal_const(l, x, coefficients[count - 1]);
  for (int i = count - 2; i >= 0; i--) y = legal_fma(l, y, x, legal_const(l, x, coefficients[i]));
  return y;
}

Expr *legal_hold(Legalizer *l, Expr *value) {
  if (!value->count || value->op == EXPR_BROADCAST) return value;
  Held held = {expr_var(l->context, "t", value->type), value};
  array_push(&l->context->arena, &l->held, held);
  return held.var;
}

// `body` inside LETs of the values that were held since `mark`; the first one is outermost.
static Expr *release(Legalizer *l, int mark, Expr *body) {
  while (l->held.count > mark) {
    Held held = l->held.items[--l->held.count];
    body = expr_let(l->context, held.var, held.value, body);
  }
  return body;
}

static Expr *unary(Legalizer *l, ExprOp op, Expr *a) {
  return expr_unary(l->context, op, a);
}

// ---- Small floats ------------------------------------------------------------------------------

static bool converts_natively(const Legalizer *l, DType type) {
  return type.code == TYPE_FLOAT && type.bits == 16 && l->features->half_conversion;
}

static bool is_single(DType type) {
  return type.code == TYPE_FLOAT && type.bits == 32;
}

// Rounding twice gives a wrong result where the first step makes a tie. Rounding to odd cuts a
// number and sets the last place if any digit was lost, so the number stays on its side of every
// tie of a narrower format (Boldo and Melquiond 2008).
static Expr *single_to_odd(Legalizer *l, Expr *x) {
  x = legal_hold(l, x);
  Expr *near = legal_hold(l, legal_cast(l, f32, x)),
       *back = legal_hold(l, legal_cast(l, f64, near));
  Expr *bits = legal_hold(l, legal_reinterpret(l, DTYPE(TYPE_UINT, 32), near)),
       *one = legal_int(l, bits, 1);
  Expr *away = legal_make(l, EXPR_GT, unary(l, EXPR_ABS, back), unary(l, EXPR_ABS, x));
  bits = legal_hold(l, legal_select(l, away, legal_make(l, EXPR_SUB, bits, one), bits));
  Expr *odd = legal_make(l, EXPR_BIT_OR, bits, one);
  return legal_reinterpret(l, f32, legal_select(l, legal_make(l, EXPR_NE, back, x), odd, bits));
}

// The integer rounded to odd to `digits` binary digits, or as it is if it has no more than these.
static Expr *integer_to_odd(Legalizer *l, Expr *x, int digits) {
  x = legal_hold(l, x);
  int dropped = x->type.bits - digits;
  Expr *limit = legal_int(l, x, INT64_C(1) << digits), *places = legal_int(l, x, dropped);
  Expr *low = legal_int(l, x, (INT64_C(1) << dropped) - 1);
  Expr *odd = legal_make(l, EXPR_ADD, legal_make(l, EXPR_BIT_AND, x, low), low);
  odd = legal_make(l, EXPR_SHIFT_RIGHT, legal_make(l, EXPR_BIT_OR, x, odd), places);
  odd = legal_make(l, EXPR_SHIFT_LEFT, odd, places);
  Expr *fits = legal_make(l, EXPR_LT, x, limit);
  Expr *least = legal_int(l, x, -(INT64_C(1) << digits));
  if (x->type.code == TYPE_INT)
    fits = legal_make(l, EXPR_AND, fits, legal_make(l, EXPR_GT, x, least));
  return legal_select(l, fits, x, odd);
}

// A float32 that rounds to the same small float, of any format, as the value itself.
static Expr *single_of(Legalizer *l, Expr *value) {
  DType type = value->type;
  if (dtype_small_float(type) || type.bits < 32) return legal_cast(l, f32, value);
  if (dtype_is_float(type)) return single_to_odd(l, value);
  if (type.bits == 32) return legal_cast(l, f32, integer_to_odd(l, value, 24));
  return single_to_odd(l, legal_cast(l, f64, integer_to_odd(l, value, 53)));
}

// x86 has instructions for casts to int32 and int64, which give the least integer for NaN and for
// numbers out of range. Casts to other types are made of these, so that they have one definition
// (number_of_float); compilers choose any result for them.
static Expr *truncated_to(Legalizer *l, Expr *x, DType to) {
  DType whole = to.bits > 32 ? DTYPE_INT64 : DTYPE_INT32;
  if (to.bits < 32) return legal_cast(l, to, legal_cast(l, whole, x));
  x = legal_hold(l, x);
  Expr *half = legal_const(l, x, ldexp(1, whole.bits - 1)), *low = legal_cast(l, whole, x);
  Expr *high = legal_cast(l, whole, legal_make(l, EXPR_SUB, x, half));
  Expr *top = legal_int(l, low, whole.bits == 32 ? INT32_MIN : INT64_MIN);
  high = legal_make(l, EXPR_BIT_XOR, high, top);
  return legal_cast(l, to, legal_select(l, legal_make(l, EXPR_GE, x, half), high, low));
}

static bool is_truncation(DType from, DType to) {
  return dtype_is_float(from) && dtype_is_int(to) && (to.bits < 32 || to.code == TYPE_UINT);
}

static Expr *legalize_cast(Legalizer *l, Expr *e) {
  Expr *value = e->args[0];
  DType from = value->type, to = e->type;
  if (dtype_small_float(from)) {
    if (dtype_equal(from, to)) return value;
    if (!is_single(to)) return legal_cast(l, dtype_lanes(to, 1), legal_cast(l, f32, value));
    return converts_natively(l, from) ? e : expand_widen(l, value);
  }
  if (is_truncation(from, to)) return truncated_to(l, value, dtype_lanes(to, 1));
  if (!dtype_small_float(to)) return e;
  if (!is_single(from)) return legal_cast(l, dtype_lanes(to, 1), single_of(l, value));
  return converts_natively(l, to) ? e : expand_narrow(l, dtype_lanes(to, 1), value);
}

// The operation on float32, rounded back. float32 has at least two bits more than twice the bits of
// the small format, so the two roundings of + - * / and sqrt give the result of one (Figueroa
// 1995).
static Expr *in_single(Legalizer *l, Expr *e) {
  Expr *args[3];
  for (int i = 0; i < e->count; i++) args[i] = legal_cast(l, f32, e->args[i]);
  DType type = dtype_is_float(e->type) ? dtype_lanes(f32, e->type.lanes) : e->type;
  Expr *wide = expr_raw(l->context, (ExprOp)e->op, type, NULL, args, e->count);
  return dtype_is_float(e->type) ? legal_cast(l, dtype_lanes(e->type, 1), wide) : wide;
}

// ---- Integers ----------------------------------------------------------------------------------

static bool is_power_of_two(const Expr *e, int *log) {
  const Expr *scalar = e->op == EXPR_BROADCAST ? e->args[0] : e;
  int64_t value = 0;
  if (!expr_as_int(scalar, &value) || value <= 0 || (value & (value - 1))) return false;
  for (*log = 0; INT64_C(1) << *log < value; ++*log)
    ;
  return true;
}

// Division instructions trap on the least number divided by -1, so a divisor that may be -1 is
// replaced by 1 where it is.
static Expr *divisor_but_minus_one(Legalizer *l, Expr *b) {
  Expr *is_minus_one = legal_make(l, EXPR_EQ, b, legal_int(l, b, -1));
  return legal_select(l, is_minus_one, legal_int(l, b, 1), b);
}

static bool divides_safely(Legalizer *l, const Expr *e) {
  const Expr *b = e->args[1], *scalar = b->op == EXPR_BROADCAST ? b->args[0] : b;
  int64_t value;
  if (e->type.code != TYPE_INT) return true;
  if (expr_as_int(scalar, &value)) return value != -1;
  return scalar->op == EXPR_SELECT && scalar == divisor_but_minus_one(l, scalar->args[2]);
}

// Processors divide vectors of floats only. The quotient of two numbers of 32 bits is exact in
// float64 up to its last bit, which is too small to reach the next integer.
static Expr *divide_as_floats(Legalizer *l, Expr *e) {
  Expr *a = legal_cast(l, DTYPE_FLOAT64, e->args[0]), *b = legal_cast(l, DTYPE_FLOAT64, e->args[1]);
  return legal_cast(l, DTYPE_INT32, legal_make(l, EXPR_DIV, a, b));
}

static bool divides_by_constant(const Expr *e) {
  const Expr *b = e->args[1]->op == EXPR_BROADCAST ? e->args[1]->args[0] : e->args[1];
  return b->op == EXPR_INT;
}

static Expr *legalize_trunc_div(Legalizer *l, Expr *e) {
  bool vectors = e->type.lanes > 1 && l->features->float_division && !divides_by_constant(e);
  if (divides_safely(l, e))
    return vectors && e->type.code == TYPE_INT && e->type.bits == 32 ? divide_as_floats(l, e) : e;
  Expr *a = legal_hold(l, e->args[0]), *b = legal_hold(l, e->args[1]);
  Expr *quotient = legal_make(l, EXPR_TRUNC_DIV, a, divisor_but_minus_one(l, b));
  Expr *negated = legal_make(l, EXPR_SUB, legal_int(l, a, 0), a);
  return legal_select(l, legal_make(l, EXPR_EQ, b, legal_int(l, b, -1)), negated, quotient);
}

// Whether the remainder of the truncated quotient is not 0 and its sign is not that of the divisor.
static Expr *remainder_is_off(Legalizer *l, Expr *rest, Expr *divisor) {
  Expr *zero = legal_int(l, rest, 0);
  Expr *differ = legal_make(l, EXPR_LT, legal_make(l, EXPR_BIT_XOR, rest, divisor), zero);
  return legal_make(l, EXPR_AND, legal_make(l, EXPR_NE, rest, zero), differ);
}

static Expr *floor_div_int(Legalizer *l, Expr *e) {
  Expr *a = e->args[0], *b = e->args[1];
  int log;
  if (is_power_of_two(b, &log)) return legal_make(l, EXPR_SHIFT_RIGHT, a, legal_int(l, a, log));
  if (a->type.code == TYPE_UINT) return legal_make(l, EXPR_TRUNC_DIV, a, b);
  a = legal_hold(l, a), b = legal_hold(l, b);
  Expr *quotient = legal_hold(l, legal_make(l, EXPR_TRUNC_DIV, a, b));
  Expr *rest = legal_hold(l, legal_make(l, EXPR_SUB, a, legal_make(l, EXPR_MUL, quotient, b)));
  Expr *less = legal_make(l, EXPR_SUB, quotient, legal_int(l, a, 1));
  return legal_select(l, remainder_is_off(l, rest, b), less, quotient);
}

static Expr *floor_mod_int(Legalizer *l, Expr *e) {
  Expr *a = e->args[0], *b = e->args[1];
  int log;
  if (is_power_of_two(b, &log))
    return legal_make(l, EXPR_BIT_AND, a, legal_int(l, a, (INT64_C(1) << log) - 1));
  if (a->type.code == TYPE_UINT) return legal_make(l, EXPR_TRUNC_MOD, a, b);
  a = legal_hold(l, a), b = legal_hold(l, b);
  Expr *rest = legal_hold(l, legal_make(l, EXPR_TRUNC_MOD, a, b));
  return legal_select(l, remainder_is_off(l, rest, b), legal_make(l, EXPR_ADD, rest, b), rest);
}

static Expr *legalize_abs(Legalizer *l, Expr *e) {
  Expr *a = e->args[0], *zero;
  if (dtype_is_float(e->type)) return e;
  if (e->type.code == TYPE_UINT) return a;
  a = legal_hold(l, a);
  zero = legal_int(l, a, 0);
  return legal_select(l, legal_make(l, EXPR_LT, a, zero), legal_make(l, EXPR_SUB, zero, a), a);
}

// Computes the power by squaring, one bit of the exponent at a time. A negative exponent gives 1,
// -1 or 0.
static Expr *pow_int(Legalizer *l, Expr *e) {
  Expr *base = legal_hold(l, e->args[0]), *exponent = legal_hold(l, e->args[1]);
  Expr *one = legal_int(l, base, 1), *zero = legal_int(l, base, 0), *result = one, *square = base;
  int bits = e->type.code == TYPE_INT ? e->type.bits - 1 : e->type.bits;
  Expr *odd = legal_make(l, EXPR_NE, legal_make(l, EXPR_BIT_AND, exponent, one), zero);
  for (int i = 0; i < bits; i++) {
    Expr *bit = legal_make(l, EXPR_BIT_AND,
                           legal_make(l, EXPR_SHIFT_RIGHT, exponent, legal_int(l, base, i)), one);
    Expr *product = legal_make(l, EXPR_MUL, result, square);
    result = legal_hold(l, legal_select(l, legal_make(l, EXPR_NE, bit, zero), product, result));
    square = legal_hold(l, legal_make(l, EXPR_MUL, square, square));
  }
  if (e->type.code == TYPE_UINT) return result;
  Expr *minus = legal_int(l, base, -1);
  Expr *of_minus = legal_select(l, odd, minus, one);
  Expr *inverse = legal_select(l, legal_make(l, EXPR_EQ, base, minus), of_minus, zero);
  inverse = legal_select(l, legal_make(l, EXPR_EQ, base, one), one, inverse);
  return legal_select(l, legal_make(l, EXPR_LT, exponent, zero), inverse, result);
}

// ---- The C library -----------------------------------------------------------------------------

static const char *const library_names[EXPR_OP_COUNT] = {
    [EXPR_EXP] = "exp",          [EXPR_EXP2] = "exp2",
    [EXPR_LOG] = "log",          [EXPR_LOG2] = "log2",
    [EXPR_LOG10] = "log10",      [EXPR_LOG1P] = "log1p",
    [EXPR_POW] = "pow",          [EXPR_TANH] = "tanh",
    [EXPR_ERF] = "erf",          [EXPR_SIN] = "sin",
    [EXPR_COS] = "cos",          [EXPR_TAN] = "tan",
    [EXPR_ASIN] = "asin",        [EXPR_ACOS] = "acos",
    [EXPR_ATAN] = "atan",        [EXPR_SINH] = "sinh",
    [EXPR_COSH] = "cosh",        [EXPR_ASINH] = "asinh",
    [EXPR_ACOSH] = "acosh",      [EXPR_ATANH] = "atanh",
    [EXPR_TRUNC_MOD] = "fmod",   [EXPR_FMOD] = "fmod",
    [EXPR_ATAN2] = "atan2",      [EXPR_HYPOT] = "hypot",
    [EXPR_ROUND_AWAY] = "round", [EXPR_NEXTAFTER] = "nextafter",
};

static Expr *lanes_of(Legalizer *l, Expr *vector, int first, int count) {
  Expr **numbers = arena_array(&l->context->arena, Expr *, count);
  for (int i = 0; i < count; i++) numbers[i] = expr_int(l->context, DTYPE_INT32, first + i);
  Expr *args[] = {expr_tuple(l->context, &vector, 1), expr_tuple(l->context, numbers, count)};
  return expr_raw(l->context, EXPR_SHUFFLE, dtype_lanes(vector->type, count), NULL, args, 2);
}

static Expr *lane_of(Legalizer *l, Expr *vector, int lane) {
  if (vector->type.lanes == 1) return vector;
  return vector->op == EXPR_BROADCAST ? vector->args[0] : lanes_of(l, vector, lane, 1);
}

static Expr *from_lanes(Legalizer *l, Expr **lanes, int count) {
  Expr **numbers = arena_array(&l->context->arena, Expr *, count);
  for (int i = 0; i < count; i++) numbers[i] = expr_int(l->context, DTYPE_INT32, i);
  Expr *args[] = {expr_tuple(l->context, lanes, count), expr_tuple(l->context, numbers, count)};
  return expr_raw(l->context, EXPR_SHUFFLE, dtype_lanes(lanes[0]->type, count), NULL, args, 2);
}

static Expr *library_lanes(Legalizer *l, Expr *e) {
  int lanes = e->type.lanes;
  DType scalar = dtype_lanes(e->type, 1);
  Str name = str_format(l->context, "%s%s", library_names[e->op], scalar.bits == 32 ? "f" : "");
  Expr **calls = arena_array(&l->context->arena, Expr *, lanes), *vectors[2];
  for (int i = 0; i < e->count; i++) vectors[i] = legal_hold(l, e->args[i]);
  for (int lane = 0; lane < lanes; lane++) {
    Expr *args[2];
    for (int i = 0; i < e->count; i++) args[i] = lane_of(l, vectors[i], lane);
    calls[lane] = expr_raw(l->context, EXPR_CALL_PURE, scalar, name, args, e->count);
  }
  return lanes == 1 ? calls[0] : from_lanes(l, calls, lanes);
}

static Expr *call_library(Legalizer *l, Expr *e) {
  if (e->type.lanes > 1) l->report->counts[TARGET_CALLS]++;
  return library_lanes(l, e);
}

Expr *legal_or_library(Legalizer *l, Expr *e, Expr *fits, Expr *fast) {
  if (e->type.lanes > 1) {
    Expr *zero = expr_broadcast(l->context, expr_int(l->context, DTYPE_INT32, 0), e->type.lanes);
    Expr *misfits = legal_select(l, fits, zero, legal_int(l, zero, 1));
    Expr *most = expr_raw(l->context, EXPR_VECTOR_MAX, DTYPE_INT32, NULL, &misfits, 1);
    fits = legal_make(l, EXPR_EQ, most, legal_int(l, most, 0));
  }
  return expr_if_then_else(l->context, fits, fast, library_lanes(l, e));
}

// ---- Floats ------------------------------------------------------------------------------------

static Expr *legalize_math(Legalizer *l, Expr *e) {
  Expr *expanded = is_single(dtype_lanes(e->type, 1)) ? expand_math(l, e) : NULL;
  return expanded ? expanded : call_library(l, e);
}

static Expr *legalize_sigmoid(Legalizer *l, Expr *e) {
  Expr *x = e->args[0], *one = legal_const(l, x, 1);
  if (is_single(dtype_lanes(e->type, 1))) return expand_math(l, e);
  Expr *power = unary(l, EXPR_EXP, legal_make(l, EXPR_MUL, x, legal_const(l, x, -1)));
  return legal_make(l, EXPR_DIV, one, legal_make(l, EXPR_ADD, power, one));
}

static Expr *legalize_rsqrt(Legalizer *l, Expr *e) {
  return legal_make(l, EXPR_DIV, legal_const(l, e, 1), unary(l, EXPR_SQRT, e->args[0]));
}

static Expr *legalize_exp10(Legalizer *l, Expr *e) {
  return legal_make(l, EXPR_POW, legal_const(l, e, 10), e->args[0]);
}

static Expr *legalize_copysign(Legalizer *l, Expr *e) {
  Expr *a = legal_hold(l, unary(l, EXPR_ABS, e->args[0]));
  Expr *bits = legal_reinterpret(l, DTYPE(TYPE_INT, e->type.bits), e->args[1]);
  Expr *negated = legal_make(l, EXPR_MUL, a, legal_const(l, a, -1));
  return legal_select(l, legal_make(l, EXPR_LT, bits, legal_int(l, bits, 0)), negated, a);
}

// (x >> shift) & mask, where every byte of the mask is `byte`.
static Expr *shifted_bits(Legalizer *l, Expr *x, int shift, int64_t byte) {
  Expr *moved = legal_make(l, EXPR_SHIFT_RIGHT, x, legal_int(l, x, shift));
  return legal_make(l, EXPR_BIT_AND, moved, legal_int(l, x, byte * INT64_C(0x0101010101010101)));
}

// Adds neighbouring bits, pairs and groups of four, then the bytes in the top byte of a product.
static Expr *legalize_popcount(Legalizer *l, Expr *e) {
  int bits = MAX_OF(e->type.bits, 8);
  Expr *x = legal_hold(l, legal_cast(l, DTYPE(TYPE_UINT, bits), e->args[0]));
  if (e->type.bits < 8)
    x = legal_make(l, EXPR_BIT_AND, x, legal_int(l, x, (1 << e->type.bits) - 1));
  x = legal_hold(l, legal_make(l, EXPR_SUB, x, shifted_bits(l, x, 1, 0x55)));
  x = legal_hold(l,
                 legal_make(l, EXPR_ADD, shifted_bits(l, x, 0, 0x33), shifted_bits(l, x, 2, 0x33)));
  x = legal_make(l, EXPR_ADD, x, legal_make(l, EXPR_SHIFT_RIGHT, x, legal_int(l, x, 4)));
  x = shifted_bits(l, x, 0, 0x0f);
  x = legal_make(l, EXPR_MUL, x, legal_int(l, x, INT64_C(0x0101010101010101)));
  x = legal_make(l, EXPR_SHIFT_RIGHT, x, legal_int(l, x, bits - 8));
  return legal_cast(l, dtype_lanes(e->type, 1), x);
}

// (x << left) >> right, with the sign kept.
static Expr *shifted_back(Legalizer *l, Expr *x, int left, int right) {
  if (left) x = legal_make(l, EXPR_SHIFT_LEFT, x, legal_int(l, x, left));
  return legal_make(l, EXPR_SHIFT_RIGHT, x, legal_int(l, x, right));
}

// Does the target compute products of bytes or words in such vectors?
static bool has_dot(const Legalizer *l, const Expr *e) {
  int bytes = e->type.lanes * 4;
  return bytes >= 16 && bytes <= l->features->dot_vector_bytes && (bytes & (bytes - 1)) == 0;
}

// Products of bytes and the sum of four of them fit 32 bits.
static Expr *legalize_dot_bytes(Legalizer *l, Expr *e) {
  if (has_dot(l, e)) return e;
  Expr *a = legal_hold(l, legal_cast(l, DTYPE_INT32, e->args[0])), *sum = NULL;
  Expr *b = legal_hold(l, legal_cast(l, DTYPE_INT32, e->args[1]));
  for (int shift = 0; shift < 32; shift += 8) {
    Expr *first = legal_make(l, EXPR_SHIFT_RIGHT, a, legal_int(l, a, shift));
    first = legal_make(l, EXPR_BIT_AND, first, legal_int(l, a, 255));
    Expr *product = legal_make(l, EXPR_MUL, first, shifted_back(l, b, 24 - shift, 24));
    sum = sum ? legal_make(l, EXPR_ADD, sum, product) : product;
  }
  return legal_cast(l, dtype_lanes(e->type, 1), sum);
}

static Expr *legalize_dot_words(Legalizer *l, Expr *e) {
  if (has_dot(l, e)) return e;
  Expr *a = legal_hold(l, legal_cast(l, DTYPE_INT32, e->args[0])), *products[2];
  Expr *b = legal_hold(l, legal_cast(l, DTYPE_INT32, e->args[1]));
  for (int i = 0; i < 2; i++)
    products[i] = legal_make(l, EXPR_MUL, shifted_back(l, a, 16 - 16 * i, 16),
                             shifted_back(l, b, 16 - 16 * i, 16));
  return legal_cast(l, dtype_lanes(e->type, 1), legal_make(l, EXPR_ADD, products[0], products[1]));
}

static Expr *legalize_likely(Legalizer *l, Expr *e) {
  (void)l;
  return e->args[0];
}

static Expr *legalize_isnan(Legalizer *l, Expr *e) {
  Expr *x = legal_hold(l, e->args[0]), *args[] = {x, x}; // expr_raw does not fold x != x
  return expr_raw(l->context, EXPR_NE, e->type, NULL, args, 2);
}

static Expr *legalize_isinf(Legalizer *l, Expr *e) {
  Expr *a = unary(l, EXPR_ABS, e->args[0]);
  return legal_make(l, EXPR_EQ, a, legal_const(l, a, INFINITY));
}

// ---- Extremes

// The extreme of two values as hardware computes it, which keeps a NaN of the first operand only.
static Expr *checked(Legalizer *l, Expr *value) {
  Expr *held = expr_var(l->context, "t", value->type);
  map_put(&l->checked, held, held);
  array_push(&l->context->arena, &l->held, ((Held){held, value}));
  return held;
}

static Expr *legalize_extreme(Legalizer *l, Expr *e) {
  Expr *a = e->args[0], *b = e->args[1], *numbers = expr_only_numbers((ExprOp)e->op, b);
  if (!dtype_is_float(e->type) || map_contains(&l->checked, b)) return e;
  if (numbers) return legal_make(l, (ExprOp)e->op, a, checked(l, numbers));
  if (!expr_may_be_nan(b)) return e;
  if (!expr_may_be_nan(a)) return legal_make(l, (ExprOp)e->op, b, a);
  Expr *held = checked(l, b);
  Expr *is_nan = expr_raw(l->context, EXPR_NE, dtype_lanes(DTYPE_BOOL, b->type.lanes), NULL,
                          (Expr *[]){held, held}, 2);
  return legal_select(l, is_nan, held, legal_make(l, (ExprOp)e->op, a, held));
}

// Combines the two halves of the vector as long as there are halves, and then the odd number of
// lanes that is left one after the other.
static Expr *legalize_vector_extreme(Legalizer *l, Expr *e) {
  if (!dtype_is_float(e->type)) return e;
  ExprOp op = e->op == EXPR_VECTOR_MIN ? EXPR_MIN : EXPR_MAX;
  Expr *value = legal_hold(l, e->args[0]);
  while (value->type.lanes % 2 == 0) {
    int half = value->type.lanes / 2;
    Expr *low = lanes_of(l, value, 0, half), *high = lanes_of(l, value, half, half);
    value = legal_hold(l, legal_make(l, op, low, high));
  }
  if (value->type.lanes == 1) return value;
  Expr *result = lanes_of(l, value, 0, 1);
  for (int i = 1; i < value->type.lanes; i++)
    result = legal_hold(l, legal_make(l, op, result, lanes_of(l, value, i, 1)));
  return result;
}

static bool constant_of(const Expr *e, double *value) {
  if (e->op == EXPR_BROADCAST) e = e->args[0];
  if (e->op != EXPR_FLOAT) return false;
  *value = e->as.f;
  return true;
}

static Expr *pow_float(Legalizer *l, Expr *e) {
  Expr *x = legal_hold(l, e->args[0]);
  double power = 0;
  if (!constant_of(e->args[1], &power)) return call_library(l, e);
  if (power == 1) return x;
  if (power == 2) return legal_make(l, EXPR_MUL, x, x);
  if (power == 3) return legal_make(l, EXPR_MUL, legal_make(l, EXPR_MUL, x, x), x);
  if (power == 0.5) return unary(l, EXPR_SQRT, x);
  if (power == -1) return legal_make(l, EXPR_DIV, legal_const(l, x, 1), x);
  return call_library(l, e);
}

static Expr *legalize_pow(Legalizer *l, Expr *e) {
  return dtype_is_float(e->type) ? pow_float(l, e) : pow_int(l, e);
}

static Expr *legalize_floor_div(Legalizer *l, Expr *e) {
  if (!dtype_is_float(e->type)) return floor_div_int(l, e);
  return unary(l, EXPR_FLOOR, legal_make(l, EXPR_DIV, e->args[0], e->args[1]));
}

static Expr *legalize_floor_mod(Legalizer *l, Expr *e) {
  if (!dtype_is_float(e->type)) return floor_mod_int(l, e);
  Expr *b = legal_hold(l, e->args[1]), *zero = legal_const(l, b, 0);
  Expr *rest = legal_hold(l, legal_make(l, EXPR_TRUNC_MOD, e->args[0], b));
  Expr *differ =
      legal_make(l, EXPR_NE, legal_make(l, EXPR_LT, rest, zero), legal_make(l, EXPR_LT, b, zero));
  Expr *off = legal_make(l, EXPR_AND, legal_make(l, EXPR_NE, rest, zero), differ);
  return legal_select(l, off, legal_make(l, EXPR_ADD, rest, b), rest);
}

static Expr *legalize_trunc_mod(Legalizer *l, Expr *e) {
  if (dtype_is_float(e->type)) return call_library(l, e);
  if (divides_safely(l, e)) return e;
  Expr *b = legal_hold(l, e->args[1]); // a remainder by 1 is 0, and so is one by -1
  return legal_make(l, EXPR_TRUNC_MOD, e->args[0], divisor_but_minus_one(l, b));
}

// ---- Rounding without an instruction for it ----------------------------------------------------

// Every number of at least this size is whole.
static Expr *whole_limit(Legalizer *l, Expr *x) {
  return legal_const(l, x, x->type.bits == 32 ? 0x1p23 : 0x1p52);
}

static Expr *if_fractional(Legalizer *l, Expr *x, Expr *rounded) {
  Expr *small = legal_make(l, EXPR_LT, unary(l, EXPR_ABS, x), whole_limit(l, x));
  return legal_select(l, small, rounded, x);
}

static Expr *truncated(Legalizer *l, Expr *x) {
  DType scalar = dtype_lanes(x->type, 1);
  return legal_cast(l, scalar, legal_cast(l, DTYPE(TYPE_INT, scalar.bits), x));
}

static Expr *expand_trunc(Legalizer *l, Expr *e) {
  Expr *x = legal_hold(l, e->args[0]);
  return if_fractional(l, x, truncated(l, x));
}

static Expr *expand_floor(Legalizer *l, Expr *e) {
  Expr *x = legal_hold(l, e->args[0]), *t = legal_hold(l, truncated(l, x)),
       *one = legal_const(l, x, 1);
  Expr *lower = legal_select(l, legal_make(l, EXPR_GT, t, x), legal_make(l, EXPR_SUB, t, one), t);
  return if_fractional(l, x, lower);
}

static Expr *expand_ceil(Legalizer *l, Expr *e) {
  Expr *x = legal_hold(l, e->args[0]), *t = legal_hold(l, truncated(l, x)),
       *one = legal_const(l, x, 1);
  Expr *upper = legal_select(l, legal_make(l, EXPR_LT, t, x), legal_make(l, EXPR_ADD, t, one), t);
  return if_fractional(l, x, upper);
}

// Adding the limit and subtracting it again leaves the nearest whole number, with halves to even.
static Expr *expand_round(Legalizer *l, Expr *e) {
  Expr *x = legal_hold(l, e->args[0]), *limit = whole_limit(l, x), *zero = legal_const(l, x, 0);
  Expr *sum = legal_make(l, EXPR_ADD, unary(l, EXPR_ABS, x), limit);
  Expr *near = legal_hold(l, legal_make(l, EXPR_SUB, sum, limit));
  Expr *signed_near =
      legal_select(l, legal_make(l, EXPR_LT, x, zero), legal_make(l, EXPR_SUB, zero, near), near);
  return if_fractional(l, x, signed_near);
}

// ---- The driver --------------------------------------------------------------------------------

typedef Expr *(*LegalizeFn)(Legalizer *, Expr *);

// x / 2^n equals x * 2^-n to the last bit.
static Expr *legalize_div(Legalizer *l, Expr *e) {
  const Expr *divisor = e->args[1]->op == EXPR_BROADCAST ? e->args[1]->args[0] : e->args[1];
  if (divisor->op != EXPR_FLOAT || e->type.bits < 32) return e;
  int exponent;
  bool power = fabs(frexp(divisor->as.f, &exponent)) == 0.5;
  bool small = exponent > -100 && exponent < 100;
  return power && small ? legal_make(l, EXPR_MUL, e->args[0], legal_const(l, e, 1 / divisor->as.f))
                        : e;
}

static const LegalizeFn rules[EXPR_OP_COUNT] = {
    [EXPR_CAST] = legalize_cast,
    [EXPR_FLOOR_DIV] = legalize_floor_div,
    [EXPR_FLOOR_MOD] = legalize_floor_mod,
    [EXPR_TRUNC_MOD] = legalize_trunc_mod,
    [EXPR_ABS] = legalize_abs,
    [EXPR_POW] = legalize_pow,
    [EXPR_RSQRT] = legalize_rsqrt,
    [EXPR_SIGMOID] = legalize_sigmoid,
    [EXPR_ISNAN] = legalize_isnan,
    [EXPR_ISINF] = legalize_isinf,
    [EXPR_EXP] = legalize_math,
    [EXPR_EXP2] = legalize_math,
    [EXPR_LOG] = legalize_math,
    [EXPR_LOG2] = legalize_math,
    [EXPR_LOG10] = legalize_math,
    [EXPR_LOG1P] = legalize_math,
    [EXPR_TANH] = legalize_math,
    [EXPR_ERF] = legalize_math,
    [EXPR_SIN] = legalize_math,
    [EXPR_COS] = legalize_math,
    [EXPR_TAN] = legalize_math,
    [EXPR_ASIN] = legalize_math,
    [EXPR_ACOS] = legalize_math,
    [EXPR_ATAN] = legalize_math,
    [EXPR_SINH] = legalize_math,
    [EXPR_COSH] = legalize_math,
    [EXPR_ASINH] = legalize_math,
    [EXPR_ACOSH] = legalize_math,
    [EXPR_ATANH] = legalize_math,
    [EXPR_NEXTAFTER] = legalize_math,
    [EXPR_FMOD] = legalize_math,
    [EXPR_ATAN2] = legalize_math,
    [EXPR_HYPOT] = legalize_math,
    [EXPR_ROUND_AWAY] = legalize_math,
    [EXPR_EXP10] = legalize_exp10,
    [EXPR_COPYSIGN] = legalize_copysign,
    [EXPR_POPCOUNT] = legalize_popcount,
    [EXPR_DOT_BYTES] = legalize_dot_bytes,
    [EXPR_DOT_WORDS] = legalize_dot_words,
    [EXPR_LIKELY] = legalize_likely,
    [EXPR_TRUNC_DIV] = legalize_trunc_div,
    [EXPR_DIV] = legalize_div,
    [EXPR_MIN] = legalize_extreme,
    [EXPR_MAX] = legalize_extreme,
    [EXPR_VECTOR_MIN] = legalize_vector_extreme,
    [EXPR_VECTOR_MAX] = legalize_vector_extreme,
};

static const LegalizeFn rounding_rules[EXPR_OP_COUNT] = {
    [EXPR_TRUNC] = expand_trunc,
    [EXPR_FLOOR] = expand_floor,
    [EXPR_CEIL] = expand_ceil,
    [EXPR_ROUND] = expand_round,
};

// Whether the operation computes with the values of its operands instead of passing them on.
static bool computes(const Expr *e) {
  switch (op_table[e->op].class) {
  case OP_ARITH:
  case OP_COMPARE:
  case OP_MATH: return true;
  case OP_VECTOR: return e->op >= EXPR_VECTOR_SUM && e->op <= EXPR_VECTOR_MAX;
  case OP_LEAF:
  case OP_LOGIC:
  case OP_BIT:
  case OP_CHOICE:
  case OP_MEMORY:
  case OP_OTHER: break;
  }
  return false;
}

static Expr *legalize_node(Rewriter *rewriter, Expr *e) {
  Legalizer *l = rewriter->env;
  Expr *result = e;
  int mark = l->held.count;
  bool narrow = computes(e) && dtype_small_float(e->args[0]->type);
  if (narrow && e->op != EXPR_FLOOR_DIV)
    result = in_single(l, e);
  else if (rules[e->op])
    result = rules[e->op](l, e);
  else if (rounding_rules[e->op] && !l->features->rounding)
    result = rounding_rules[e->op](l, e);
  return result == e ? e : rewrite_expr(rewriter, release(l, mark, result));
}

static Expr *legalize_pair(Rewriter *rewriter, Expr *e) {
  Legalizer *l = rewriter->env;
  int mark = l->held.count;
  Expr *result = expand_math_pair(l, e);
  return result ? release(l, mark, result) : e;
}

Stmt *target_legalize(Context *context, Stmt *s, const TargetFeatures *features,
                      TargetReport *report) {
  Legalizer legalizer = {context, features, report, .checked = map_new(&context->arena)};
  Rewriter pairs = {.context = context, .env = &legalizer, .expr = legalize_pair};
  Rewriter rewriter = {.context = context, .env = &legalizer, .expr = legalize_node};
  return rewrite_stmt(&rewriter, rewrite_stmt(&pairs, s));
}

Expr *target_legal_size(Context *context, Expr *e) {
  TargetFeatures features = target_features(NULL);
  TargetReport ignored = {0};
  Legalizer legalizer = {context, &features, &ignored, .checked = map_new(&context->arena)};
  Rewriter rewriter = {.context = context, .env = &legalizer, .expr = legalize_node};
  return rewrite_expr(&rewriter, e);
}
