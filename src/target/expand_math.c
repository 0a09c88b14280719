// SPDX-License-Identifier: Apache-2.0
// Computes functions of a float32 as polynomials, for any number of lanes, without branches and
// without calls. The argument is reduced to a short interval, in which a polynomial with the least
// greatest error (Remez) approximates the function. tests/unit/test_math.c holds the largest
// errors, which are measured over all arguments. The reductions are those of Cody and Waite.
//     exp x   = 2^n · e^r                  r = x - n·ln 2, |r| <= ln 2 / 2
//     log x   = n·ln 2 + log(1 + f)        x = 2^n · (1 + f), 1 + f in [√½, √2)
//     tanh x  = (e^2x - 1) / (e^2x + 1)
//     erf x   = 1 - e^Q(x)                 a polynomial in x² below 0.92
//     sinh x, cosh x by e^(x/2), asinh x, acosh x, atanh x by log(1 + u)
#include "target/legalize.h"

#include <math.h>

static const DType i32 = {TYPE_INT, 32, 1}, u32 = {TYPE_UINT, 32, 1};
static const DType f32 = {TYPE_FLOAT, 32, 1};

Expr *legal_negate(Legalizer *l, Expr *x) {
  return legal_make(l, EXPR_MUL, x, legal_const(l, x, -1));
}

static Expr *absolute(Legalizer *l, Expr *x) {
  return expr_unary(l->context, EXPR_ABS, x);
}

Expr *legal_with_sign_of(Legalizer *l, Expr *magnitude, Expr *x) {
  Expr *bits = legal_reinterpret(l, u32, x);
  Expr *sign = legal_make(l, EXPR_BIT_AND, bits, legal_int(l, bits, 0x80000000));
  Expr *both = legal_make(l, EXPR_BIT_OR, legal_reinterpret(l, u32, magnitude), sign);
  return legal_reinterpret(l, f32, both);
}

// ---- Exponentials ------------------------------------------------------------------------------

// (e^r - 1 - r) / r², and (2^f - 1) / f.
static const double exp_tail[] = {0.4999999403953552, 0.1666652113199234, 0.04166838899254799,
                                  0.008368710055947304, 0.0013814608100801706};
static const double exp2_tail[] = {0.6931471824645996,    0.24022647738456726,
                                   0.055503323674201965,  0.00961843691766262,
                                   0.0013398875016719103, 0.0001535335904918611};

// `y` times 2^n, n in [-150, 128]: in two steps, so that neither leaves the range of exponents
// before the product does.
static Expr *scale(Legalizer *l, Expr *y, Expr *n) {
  Expr *half = legal_hold(l, legal_make(l, EXPR_SHIFT_RIGHT, n, legal_int(l, n, 1)));
  Expr *parts[] = {half, legal_make(l, EXPR_SUB, n, half)};
  for (int i = 0; i < 2; i++) {
    Expr *bits = legal_make(l, EXPR_ADD, parts[i], legal_int(l, n, 127));
    bits = legal_make(l, EXPR_SHIFT_LEFT, bits, legal_int(l, n, 23));
    y = legal_make(l, EXPR_MUL, y, legal_reinterpret(l, f32, bits));
  }
  return y;
}

// The bits of 1.5 · 2^23: a sum with it holds the integer in its last bits.
enum { MAGIC_BITS = 0x4b400000 };

typedef struct Reduced {
  Expr *whole, *integer; // n as a float and as an integer
} Reduced;

static Reduced nearest_integer(Legalizer *l, Expr *x, double factor) {
  Expr *magic = legal_const(l, x, 0x1.8p23);
  Expr *sum = legal_hold(l, legal_fma(l, x, legal_const(l, x, factor), magic));
  Expr *bits = legal_reinterpret(l, i32, sum);
  return (Reduced){legal_hold(l, legal_make(l, EXPR_SUB, sum, magic)),
                   legal_hold(l, legal_make(l, EXPR_SUB, bits, legal_int(l, bits, MAGIC_BITS)))};
}

static Expr *clamp(Legalizer *l, Expr *x, double low, double high) {
  x = legal_make(l, EXPR_MIN, x, legal_const(l, x, high));
  return legal_hold(l, legal_make(l, EXPR_MAX, x, legal_const(l, x, low)));
}

// The least argument with a normal result, and the greatest with a finite one.
#define EXP_LEAST -0x1.5d589ep+6
#define EXP_MOST 0x1.62e42ep+6

// The last bits of a sum with a magic number as an exponent; the others leave by the shift.
static Expr *exponent_bits(Legalizer *l, Expr *sum) {
  Expr *bits = legal_reinterpret(l, u32, sum);
  return legal_make(l, EXPR_SHIFT_LEFT, bits, legal_int(l, bits, 23));
}

// sign·x = n·ln 2 + sign·rest, where n is in the last bits of the sum.
typedef struct Exponent {
  Expr *sum, *rest;
} Exponent;

static Exponent reduce_by_ln2(Legalizer *l, Expr *x, int sign) {
  Expr *magic = legal_const(l, x, 0x1.8p23);
  Expr *sum = legal_hold(l, legal_fma(l, x, legal_const(l, x, sign * M_LOG2E), magic));
  Expr *whole = legal_hold(l, legal_make(l, EXPR_SUB, sum, magic));
  Expr *r = legal_fma(l, whole, legal_const(l, x, sign * -0x1.63p-1), x); // ln 2 in two parts
  r = legal_hold(l, legal_fma(l, whole, legal_const(l, x, sign * 0x1.bd0106p-13), r));
  return (Exponent){sum, r};
}

// e^(sign·r) - 1 for |r| <= ln 2 / 2.
static Expr *exp_minus_one(Legalizer *l, Expr *r, int sign) {
  double coefficients[COUNT_OF(exp_tail)];
  for (int i = 0; i < COUNT_OF(exp_tail); i++) coefficients[i] = (i % 2 ? sign : 1) * exp_tail[i];
  Expr *tail = legal_polynomial(l, r, coefficients, COUNT_OF(exp_tail));
  return legal_fma(l, legal_make(l, EXPR_MUL, r, r), tail, sign < 0 ? legal_negate(l, r) : r);
}

// e^(sign·x), for a power between those of EXP_LEAST and EXP_MOST; any number for others, also for
// NaN. Since the result is normal, n is added to the exponent of the power of the rest.
static Expr *exp_between(Legalizer *l, Expr *x, int sign) {
  x = legal_hold(l, x);
  Exponent n = reduce_by_ln2(l, x, sign);
  Expr *y = legal_make(l, EXPR_ADD, exp_minus_one(l, n.rest, sign), legal_const(l, x, 1));
  Expr *bits = legal_make(l, EXPR_ADD, legal_reinterpret(l, u32, y), exponent_bits(l, n.sum));
  return legal_reinterpret(l, f32, bits);
}

// As exp_between for powers from EXP_LEAST on; infinity above EXP_MOST, and NaN of NaN.
static Expr *exp_from_least(Legalizer *l, Expr *x, int sign) {
  x = legal_hold(l, x);
  Expr *beyond = legal_make(l, EXPR_MAX, x, legal_const(l, x, INFINITY));
  ExprOp within = sign < 0 ? EXPR_GE : EXPR_LE;
  return legal_select(l, legal_make(l, within, x, legal_const(l, x, sign * EXP_MOST)),
                      exp_between(l, x, sign), beyond);
}

// The result is zero below 2^-126: operations on denormal numbers are many times slower.
static Expr *exp_of(Legalizer *l, Expr *x) {
  x = legal_hold(l, x);
  return legal_select(l, legal_make(l, EXPR_LT, x, legal_const(l, x, EXP_LEAST)),
                      legal_const(l, x, 0), exp_from_least(l, x, 1));
}

static Expr *expand_exp(Legalizer *l, Expr *e) {
  return exp_of(l, e->args[0]);
}

static Expr *expand_exp2(Legalizer *l, Expr *e) {
  Expr *x = clamp(l, e->args[0], -150, 128);
  Reduced n = nearest_integer(l, x, 1);
  Expr *f = legal_hold(l, legal_make(l, EXPR_SUB, x, n.whole));
  Expr *tail = legal_polynomial(l, f, exp2_tail, COUNT_OF(exp2_tail));
  return scale(l, legal_fma(l, f, tail, legal_const(l, x, 1)), n.integer);
}

// 1 / (1 + e^-x), which is 0 where e^-x is infinite.
static Expr *expand_sigmoid(Legalizer *l, Expr *e) {
  Expr *x = e->args[0], *one = legal_const(l, x, 1);
  x = legal_make(l, EXPR_MIN, x, legal_const(l, x, -EXP_LEAST));
  return legal_make(l, EXPR_DIV, one, legal_make(l, EXPR_ADD, exp_from_least(l, x, -1), one));
}

// x / (1 + e^-x), which ends at -1e-36 instead of -0, where e^-x would not be normal; also of
// -infinity, where the product of x and its sigmoid is NaN.
static Expr *expand_silu(Legalizer *l, Expr *x) {
  Expr *one = legal_const(l, x, 1);
  Expr *from = legal_hold(l, legal_make(l, EXPR_MAX, x, legal_const(l, x, EXP_LEAST)));
  Expr *to = legal_make(l, EXPR_MIN, from, legal_const(l, x, -EXP_LEAST));
  return legal_make(l, EXPR_DIV, from, legal_make(l, EXPR_ADD, exp_between(l, to, -1), one));
}

// ---- Logarithms --------------------------------------------------------------------------------

// (log(1 + f) - f + f²/2) / f³
static const double log_tail[] = {0.3333333134651184,   -0.250008225440979,  0.20001226663589478,
                                  -0.16623355448246002, 0.1420176774263382,  -0.13160210847854614,
                                  0.12761515378952026,  -0.07634343951940536};

typedef struct Logarithm {
  Expr *exponent; // n as a float
  Expr *f, *rest; // log(1 + f) = f + rest
} Logarithm;

static Logarithm log_parts(Legalizer *l, Expr *x) {
  Expr *tiny = legal_hold(l, legal_make(l, EXPR_LT, x, legal_const(l, x, 0x1p-126)));
  Expr *lifted = legal_select(l, tiny, legal_make(l, EXPR_MUL, x, legal_const(l, x, 0x1p23)), x);
  Expr *bits = legal_hold(l, legal_reinterpret(l, i32, lifted));
  Expr *n = legal_make(l, EXPR_SUB, bits, legal_int(l, bits, 0x3f3504f3)); // from √½
  n = legal_hold(l, legal_make(l, EXPR_SHIFT_RIGHT, n, legal_int(l, n, 23)));
  Expr *mantissa =
      legal_make(l, EXPR_SUB, bits, legal_make(l, EXPR_SHIFT_LEFT, n, legal_int(l, n, 23)));
  Expr *m = legal_reinterpret(l, f32, mantissa);
  Expr *f = legal_hold(l, legal_make(l, EXPR_SUB, m, legal_const(l, m, 1)));
  Expr *square = legal_hold(l, legal_make(l, EXPR_MUL, f, f));
  Expr *tail = legal_polynomial(l, f, log_tail, COUNT_OF(log_tail));
  Expr *rest = legal_make(l, EXPR_MUL, legal_make(l, EXPR_MUL, f, square), tail);
  rest = legal_hold(l, legal_fma(l, square, legal_const(l, f, -0.5), rest));
  n = legal_make(l, EXPR_SUB, n, legal_select(l, tiny, legal_int(l, n, 23), legal_int(l, n, 0)));
  return (Logarithm){legal_hold(l, legal_cast(l, f32, n)), f, rest};
}

// The values of a logarithm at 0 and infinity, and NaN below 0.
static Expr *log_specials(Legalizer *l, Expr *x, Expr *y) {
  Expr *infinity = legal_const(l, x, INFINITY), *zero = legal_const(l, x, 0);
  Expr *end = legal_select(l, legal_make(l, EXPR_EQ, x, zero), legal_const(l, x, -INFINITY),
                           legal_const(l, x, NAN));
  y = legal_select(l, legal_make(l, EXPR_EQ, x, infinity), x, y);
  return legal_select(l, legal_make(l, EXPR_GT, x, zero), y, end);
}

static Expr *log_of(Legalizer *l, Expr *x) {
  Logarithm log = log_parts(l, x);
  Expr *low = legal_fma(l, log.exponent, legal_const(l, x, -0x1.bd0106p-13), log.rest);
  Expr *y = legal_make(l, EXPR_ADD, log.f, low);
  return log_specials(l, x, legal_fma(l, log.exponent, legal_const(l, x, 0x1.63p-1), y));
}

static Expr *expand_log(Legalizer *l, Expr *e) {
  return log_of(l, legal_hold(l, e->args[0]));
}

// log(1 + f) times `factor` plus n times `step`. The part of `factor` beyond 1/8 is exact in few
// bits.
static Expr *log_to_base(Legalizer *l, Expr *x, double factor, double step) {
  Logarithm log = log_parts(l, x);
  double high = round(factor * 64) / 64, low = factor - high;
  Expr *y = legal_make(l, EXPR_MUL, log.f, legal_const(l, x, low));
  y = legal_fma(l, log.rest, legal_const(l, x, factor), y);
  double step_high = round(step * 4096) / 4096;
  if (step != step_high) y = legal_fma(l, log.exponent, legal_const(l, x, step - step_high), y);
  y = legal_fma(l, log.f, legal_const(l, x, high), y);
  return log_specials(l, x, legal_fma(l, log.exponent, legal_const(l, x, step_high), y));
}

static Expr *expand_log2(Legalizer *l, Expr *e) {
  return log_to_base(l, legal_hold(l, e->args[0]), M_LOG2E, 1);
}

static Expr *expand_log10(Legalizer *l, Expr *e) {
  return log_to_base(l, legal_hold(l, e->args[0]), M_LOG10E, 0.30102999566398119521);
}

// log(u), where u is 1 + x rounded; the factor x / (u - 1) corrects the error of the rounding.
static Expr *log1p_of(Legalizer *l, Expr *x) {
  Expr *one = legal_const(l, x, 1);
  x = legal_hold(l, x);
  Expr *u = legal_hold(l, legal_make(l, EXPR_ADD, x, one));
  Expr *difference = legal_hold(l, legal_make(l, EXPR_SUB, u, one));
  Expr *log = log_of(l, u);
  Expr *y = legal_make(l, EXPR_MUL, log, legal_make(l, EXPR_DIV, x, difference));
  y = legal_select(l, legal_make(l, EXPR_EQ, difference, legal_const(l, x, 0)), x, y);
  return legal_select(l, legal_make(l, EXPR_EQ, u, legal_const(l, x, INFINITY)), u, y);
}

static Expr *expand_log1p(Legalizer *l, Expr *e) {
  return log1p_of(l, e->args[0]);
}

// ---- tanh and erf ------------------------------------------------------------------------------

// erf √z / √z - 1, and log(1 - erf x).
static const double erf_small[] = {
    0.12837916709551256,  -0.37612634897232056,   0.11283695697784424,  -0.026859398931264877,
    0.005201031919568777, -0.0008142702863551676, 8.370094292331487e-05};
static const double erf_large[] = {
    0.00017518753884360194, -1.1295173168182373,   -0.6333420276641846,    -0.10828547924757004,
    0.025122912600636482,   -0.004172387067228556, 0.00043473593541420996, -2.1118699805811048e-05};

// (e^2a - 1) / (e^2a + 1) with the sign of x, where a = |x|. With 2a = n·ln 2 + r, the difference
// is 2^n·(e^r - 1) + (2^n - 1), which has no cancellation. tanh 10 rounds to 1.
static Expr *expand_tanh(Legalizer *l, Expr *e) {
  Expr *x = legal_hold(l, e->args[0]), *a = legal_hold(l, absolute(l, x));
  Expr *most = legal_const(l, x, 10), *one = legal_const(l, x, 1);
  a = legal_hold(l, legal_select(l, legal_make(l, EXPR_GT, a, most), most, a)); // NaN stays
  Expr *twice = legal_hold(l, legal_make(l, EXPR_ADD, a, a));
  Exponent n = reduce_by_ln2(l, twice, 1);
  Expr *bits = legal_reinterpret(l, u32, one);
  bits = legal_make(l, EXPR_ADD, bits, exponent_bits(l, n.sum));
  Expr *power = legal_hold(l, legal_reinterpret(l, f32, bits));
  Expr *above = legal_make(l, EXPR_SUB, power, one);
  Expr *difference = legal_hold(l, legal_fma(l, exp_minus_one(l, n.rest, 1), power, above));
  Expr *sum = legal_make(l, EXPR_ADD, difference, legal_const(l, x, 2));
  return legal_with_sign_of(l, legal_make(l, EXPR_DIV, difference, sum), x);
}

static Expr *expand_erf(Legalizer *l, Expr *e) {
  Expr *x = legal_hold(l, e->args[0]), *a = legal_hold(l, absolute(l, x));
  Expr *square = legal_hold(l, legal_make(l, EXPR_MUL, x, x));
  Expr *small = legal_polynomial(l, square, erf_small, COUNT_OF(erf_small));
  small = legal_fma(l, small, x, x);
  Expr *t = legal_hold(l, legal_make(l, EXPR_MIN, a, legal_const(l, x, 3.94)));
  Expr *rest = exp_between(l, legal_polynomial(l, t, erf_large, COUNT_OF(erf_large)), 1);
  Expr *large = legal_with_sign_of(l, legal_make(l, EXPR_SUB, legal_const(l, x, 1), rest), x);
  return legal_select(l, legal_make(l, EXPR_GE, a, legal_const(l, x, 0.921875)), large, small);
}

// ---- Two operations together

// log2(1 - erf a) / a to an absolute error of 5e-8 of erf and a relative one of 3.5e-4 of 1 - erf a
// below 3, by linear programming; and where a times it is -127.
static const double erf_rest[] = {
    -1.6279109716415405,    -0.9183763861656189,    -0.14870129525661469,  0.028797712177038193,
    -0.0014620530419051647, -0.0010330036748200655, 0.0002950707857962698, -2.610325100249611e-05};
static const double ERF_REST_END = 7.572838448142818;

// 1 + erf(scale·x), which is 2 - 2^Q(|x|), or 2^Q(|x|) for x < 0, where the sum would lose its last
// bits. The magic number has 127 in its last bits, so that they hold the exponent of 2^n, and 0
// where Q is -127: the result is 0 from there on.
static Expr *one_plus_erf(Legalizer *l, Expr *x, double scale) {
  double scaled[COUNT_OF(erf_rest)], power = scale;
  for (int i = 0; i < COUNT_OF(erf_rest); i++, power *= scale) scaled[i] = erf_rest[i] * power;
  x = legal_hold(l, x);
  Expr *a = legal_make(l, EXPR_MIN, absolute(l, x), legal_const(l, x, ERF_REST_END / scale));
  a = legal_hold(l, a);
  Expr *q = legal_hold(l, legal_polynomial(l, a, scaled, COUNT_OF(scaled)));
  Expr *magic = legal_const(l, x, 0x1.8p23 + 127), *one = legal_const(l, x, 1);
  Expr *sum = legal_hold(l, legal_fma(l, q, a, magic));
  Expr *f = legal_fma(l, q, a, legal_make(l, EXPR_SUB, magic, sum));
  f = legal_hold(l, f);
  Expr *tail = legal_polynomial(l, f, exp2_tail, COUNT_OF(exp2_tail));
  Expr *two_to_n = legal_reinterpret(l, f32, exponent_bits(l, sum));
  Expr *rest = legal_hold(l, legal_make(l, EXPR_MUL, legal_fma(l, f, tail, one), two_to_n));
  Expr *bits = legal_reinterpret(l, i32, x);
  Expr *is_negative = legal_make(l, EXPR_LT, bits, legal_int(l, bits, 0));
  return legal_select(l, is_negative, rest, legal_make(l, EXPR_SUB, legal_const(l, x, 2), rest));
}

// The number that is in all lanes of `e`, or 0.
static double number_of(const Expr *e) {
  if (e->op == EXPR_BROADCAST) e = e->args[0];
  return e->op == EXPR_FLOAT ? e->as.f : 0;
}

// 1 + erf x, where x may be a multiple of another expression (that of GELU is divided by √2).
static Expr *one_plus_erf_of(Legalizer *l, Expr *x) {
  double scale = x->op == EXPR_MUL   ? number_of(x->args[1])
                 : x->op == EXPR_DIV ? 1 / number_of(x->args[1])
                                     : 0;
  bool is_moderate = scale > 0x1p-4 && scale < 0x1p4;
  return is_moderate ? one_plus_erf(l, x->args[0], scale) : one_plus_erf(l, x, 1);
}

Expr *expand_math_pair(Legalizer *l, Expr *e) {
  if (!dtype_equal(dtype_lanes(e->type, 1), f32) || e->count != 2) return NULL;
  for (int i = 0; i < 2; i++) {
    Expr *a = e->args[i], *b = e->args[1 - i];
    if (e->op == EXPR_ADD && a->op == EXPR_ERF && number_of(b) == 1)
      return one_plus_erf_of(l, a->args[0]);
    if (e->op == EXPR_MUL && a->op == EXPR_SIGMOID && a->args[0] == b) return expand_silu(l, b);
  }
  return NULL;
}

// ---- Hyperbolic functions and their inverses ---------------------------------------------------

// (sinh √z / √z - 1) / z
static const double sinh_tail[] = {0.16666667163372040, 0.0083333337679505348,
                                   0.00019840151071548462, 2.7661785e-06};

typedef struct Halves { // e^|x| / 2 and e^-|x| / 2, which overflow only where their values do
  Expr *grows, *falls;
} Halves;

static Halves halves_of(Legalizer *l, Expr *magnitude) {
  Expr *half = legal_const(l, magnitude, 0.5);
  Expr *root = legal_hold(l, exp_of(l, legal_make(l, EXPR_MUL, magnitude, half)));
  Expr *grows = legal_make(l, EXPR_MUL, legal_make(l, EXPR_MUL, root, half), root);
  return (Halves){grows, legal_make(l, EXPR_DIV, half, legal_make(l, EXPR_MUL, root, root))};
}

static Expr *expand_sinh(Legalizer *l, Expr *e) {
  Expr *x = legal_hold(l, e->args[0]), *a = legal_hold(l, absolute(l, x));
  Expr *square = legal_hold(l, legal_make(l, EXPR_MUL, x, x));
  Expr *tail = legal_polynomial(l, square, sinh_tail, COUNT_OF(sinh_tail));
  Expr *small = legal_fma(l, legal_make(l, EXPR_MUL, square, tail), x, x);
  Halves halves = halves_of(l, a);
  Expr *large = legal_with_sign_of(l, legal_make(l, EXPR_SUB, halves.grows, halves.falls), x);
  return legal_select(l, legal_make(l, EXPR_LT, a, legal_const(l, x, 1)), small, large);
}

static Expr *expand_cosh(Legalizer *l, Expr *e) {
  Halves halves = halves_of(l, legal_hold(l, absolute(l, legal_hold(l, e->args[0]))));
  return legal_make(l, EXPR_ADD, halves.grows, halves.falls);
}

#define HUGE_SQUARE 0x1p30 // from here on x² + 1 rounds to x², which may overflow

// log(1 + u), and beyond a limit log(2x), which is computed as log 2 + log(1 + (x - 1)).
static Expr *log1p_or_double(Legalizer *l, Expr *x, Expr *u) {
  Expr *huge = legal_hold(l, legal_make(l, EXPR_GE, x, legal_const(l, x, HUGE_SQUARE)));
  Expr *log = log1p_of(l, legal_select(l, huge, x, u)), *zero = legal_const(l, x, 0);
  return legal_make(l, EXPR_ADD, log, legal_select(l, huge, legal_const(l, x, M_LN2), zero));
}

static Expr *expand_asinh(Legalizer *l, Expr *e) {
  Expr *x = legal_hold(l, e->args[0]), *a = legal_hold(l, absolute(l, x)),
       *one = legal_const(l, x, 1);
  Expr *square = legal_hold(l, legal_make(l, EXPR_MUL, a, a));
  Expr *root = expr_unary(l->context, EXPR_SQRT, legal_make(l, EXPR_ADD, square, one));
  Expr *rest = legal_make(l, EXPR_DIV, square, legal_make(l, EXPR_ADD, root, one));
  return legal_with_sign_of(l, log1p_or_double(l, a, legal_make(l, EXPR_ADD, a, rest)), x);
}

static Expr *expand_acosh(Legalizer *l, Expr *e) {
  Expr *x = legal_hold(l, e->args[0]), *one = legal_const(l, x, 1);
  Expr *t = legal_hold(l, legal_make(l, EXPR_SUB, x, one));
  Expr *square = legal_make(l, EXPR_MUL, t, legal_make(l, EXPR_ADD, t, legal_const(l, x, 2)));
  Expr *root = expr_unary(l->context, EXPR_SQRT, square);
  Expr *y = log1p_or_double(l, x, legal_make(l, EXPR_ADD, t, root));
  return legal_select(l, legal_make(l, EXPR_LT, x, one), legal_const(l, x, NAN), y);
}

static Expr *expand_atanh(Legalizer *l, Expr *e) {
  Expr *x = legal_hold(l, e->args[0]), *a = legal_hold(l, absolute(l, x)),
       *one = legal_const(l, x, 1);
  Expr *u = legal_make(l, EXPR_DIV, legal_make(l, EXPR_ADD, a, a), legal_make(l, EXPR_SUB, one, a));
  Expr *y = legal_make(l, EXPR_MUL, log1p_of(l, u), legal_const(l, x, 0.5));
  y = legal_select(l, legal_make(l, EXPR_GT, a, one), legal_const(l, x, NAN), y);
  return legal_with_sign_of(l, y, x);
}

static Expr *(*const expansions[EXPR_OP_COUNT])(Legalizer *, Expr *) = {
    [EXPR_EXP] = expand_exp,     [EXPR_EXP2] = expand_exp2,       [EXPR_LOG] = expand_log,
    [EXPR_LOG2] = expand_log2,   [EXPR_LOG10] = expand_log10,     [EXPR_LOG1P] = expand_log1p,
    [EXPR_TANH] = expand_tanh,   [EXPR_SIGMOID] = expand_sigmoid, [EXPR_ERF] = expand_erf,
    [EXPR_SIN] = expand_sin,     [EXPR_COS] = expand_cos,         [EXPR_TAN] = expand_tan,
    [EXPR_ASIN] = expand_asin,   [EXPR_ACOS] = expand_acos,       [EXPR_ATAN] = expand_atan,
    [EXPR_SINH] = expand_sinh,   [EXPR_COSH] = expand_cosh,       [EXPR_ASINH] = expand_asinh,
    [EXPR_ACOSH] = expand_acosh, [EXPR_ATANH] = expand_atanh,
};

Expr *expand_math(Legalizer *l, Expr *e) {
  return expansions[e->op] ? expansions[e->op](l, e) : NULL;
}
