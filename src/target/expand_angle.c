// SPDX-License-Identifier: Apache-2.0
// Computes sine, cosine and tangent of a float32, and their inverses, as polynomials for any number
// of lanes. The polynomials are those of Cephes (Moshier); the reduction is that of Cody and Waite.
//     sin x    x = n·π/2 + r, |r| <= π/4, in double; the C library computes it beyond 2^20
//     atan x   = π/2 - atan 1/x  above tan 3π/8,  π/4 + atan (x-1)/(x+1)  above tan π/8
//     asin x   = π/2 - 2 asin √((1-x)/2)  above ½
#include "target/legalize.h"

#include <math.h>

static const DType i32 = {TYPE_INT, 32, 1}, i64 = {TYPE_INT, 64, 1};
static const DType f32 = {TYPE_FLOAT, 32, 1}, f64 = {TYPE_FLOAT, 64, 1};

// (sin √z - √z) / z^1.5, (cos √z - 1 + z/2) / z², (atan √z - √z) / z^1.5, (asin √z - √z) / z^1.5
static const double sin_tail[] = {-1.6666654611e-1, 8.3321608736e-3, -1.9515295891e-4};
static const double cos_tail[] = {4.166664568298827e-2, -1.388731625493765e-3,
                                  2.443315711809948e-5};
static const double atan_tail[] = {-3.33329491539e-1, 1.99777106478e-1, -1.38776856032e-1,
                                   8.05374449538e-2};
static const double asin_tail[] = {1.6666752422e-1, 7.4953002686e-2, 4.5470025998e-2,
                                   2.4181311049e-2, 4.2163199048e-2};

// x + x³ · tail(x²)
static Expr *odd_polynomial(Legalizer *l, Expr *x, const double *tail, int count) {
  Expr *square = legal_hold(l, legal_make(l, EXPR_MUL, x, x));
  return legal_fma(l, legal_make(l, EXPR_MUL, square, x), legal_polynomial(l, square, tail, count),
                   x);
}

// ---- sin, cos, tan -----------------------------------------------------------------------------

typedef struct Angle {
  Expr *fits;      // whether n is small enough for the digits of π that are stored
  Expr *quadrant;  // n
  Expr *sin, *cos; // the sine and the cosine of r
} Angle;

static Angle angle_of(Legalizer *l, Expr *x) {
  Expr *fits =
      legal_make(l, EXPR_LT, expr_unary(l->context, EXPR_ABS, x), legal_const(l, x, 0x1p20));
  Expr *wide = legal_hold(l, legal_cast(l, f64, x)), *magic = legal_const(l, wide, 0x1.8p52);
  Expr *sum = legal_hold(l, legal_fma(l, wide, legal_const(l, wide, M_2_PI), magic));
  Expr *n = legal_hold(l, legal_make(l, EXPR_SUB, sum, magic));
  Expr *r = legal_fma(l, n, legal_const(l, wide, -0x1.921fb544p+0), wide);
  r = legal_fma(l, n, legal_const(l, wide, -0x1.0b4611a626331p-34), r);
  r = legal_hold(l, legal_cast(l, f32, r));
  Expr *square = legal_hold(l, legal_make(l, EXPR_MUL, r, r));
  Expr *cos = legal_polynomial(l, square, cos_tail, COUNT_OF(cos_tail));
  cos = legal_fma(l, legal_make(l, EXPR_MUL, square, square), cos,
                  legal_fma(l, square, legal_const(l, r, -0.5), legal_const(l, r, 1)));
  return (Angle){fits, legal_hold(l, legal_cast(l, i32, legal_reinterpret(l, i64, sum))),
                 legal_hold(l, odd_polynomial(l, r, sin_tail, COUNT_OF(sin_tail))),
                 legal_hold(l, cos)};
}

static Expr *has_bit(Legalizer *l, Expr *number, int bit) {
  return legal_make(l, EXPR_NE, legal_make(l, EXPR_BIT_AND, number, legal_int(l, number, bit)),
                    legal_int(l, number, 0));
}

// The sine of the angle plus `quarters` right angles.
static Expr *sine_after(Legalizer *l, Expr *e, int quarters) {
  Angle angle = angle_of(l, legal_hold(l, e->args[0]));
  Expr *n = angle.quadrant;
  if (quarters) n = legal_hold(l, legal_make(l, EXPR_ADD, n, legal_int(l, n, quarters)));
  Expr *y = legal_hold(l, legal_select(l, has_bit(l, n, 1), angle.cos, angle.sin));
  return legal_or_library(l, e, angle.fits,
                          legal_select(l, has_bit(l, n, 2), legal_negate(l, y), y));
}

Expr *expand_sin(Legalizer *l, Expr *e) {
  return sine_after(l, e, 0);
}

Expr *expand_cos(Legalizer *l, Expr *e) {
  return sine_after(l, e, 1);
}

Expr *expand_tan(Legalizer *l, Expr *e) {
  Angle angle = angle_of(l, legal_hold(l, e->args[0]));
  Expr *odd = legal_hold(l, has_bit(l, angle.quadrant, 1));
  Expr *above = legal_select(l, odd, legal_negate(l, angle.cos), angle.sin);
  Expr *below = legal_select(l, odd, angle.sin, angle.cos);
  return legal_or_library(l, e, angle.fits, legal_make(l, EXPR_DIV, above, below));
}

// ---- Their inverses ----------------------------------------------------------------------------

Expr *expand_atan(Legalizer *l, Expr *e) {
  Expr *x = legal_hold(l, e->args[0]), *a = legal_hold(l, expr_unary(l->context, EXPR_ABS, x));
  Expr *one = legal_const(l, x, 1), *zero = legal_const(l, x, 0);
  Expr *steep = legal_hold(l, legal_make(l, EXPR_GT, a, legal_const(l, x, 2.414213562373095)));
  Expr *middle = legal_hold(l, legal_make(l, EXPR_GT, a, legal_const(l, x, 0.4142135623730950)));
  Expr *above = legal_select(l, middle, legal_make(l, EXPR_SUB, a, one), a);
  Expr *below = legal_select(l, middle, legal_make(l, EXPR_ADD, a, one), one);
  above = legal_select(l, steep, legal_const(l, x, -1), above);
  below = legal_select(l, steep, a, below);
  Expr *start = legal_select(l, middle, legal_const(l, x, M_PI_4), zero);
  start = legal_select(l, steep, legal_const(l, x, M_PI_2), start);
  Expr *t = legal_hold(l, legal_make(l, EXPR_DIV, above, below));
  Expr *y = legal_make(l, EXPR_ADD, odd_polynomial(l, t, atan_tail, COUNT_OF(atan_tail)), start);
  return legal_with_sign_of(l, y, x);
}

typedef struct Arc {
  Expr *outside; // whether |x| is above ½, where the arcsine of √((1 - |x|) / 2) is computed
  Expr *asin;    // the arcsine of |x| or of that root
} Arc;

static Arc arc_of(Legalizer *l, Expr *x) {
  Expr *a = legal_hold(l, expr_unary(l->context, EXPR_ABS, x)), *half = legal_const(l, x, 0.5);
  Expr *outside = legal_hold(l, legal_make(l, EXPR_GT, a, half));
  Expr *rest = legal_make(l, EXPR_MUL, legal_make(l, EXPR_SUB, legal_const(l, x, 1), a), half);
  Expr *t = legal_select(l, outside, expr_unary(l->context, EXPR_SQRT, rest), a);
  return (Arc){outside,
               legal_hold(l, odd_polynomial(l, legal_hold(l, t), asin_tail, COUNT_OF(asin_tail)))};
}

Expr *expand_asin(Legalizer *l, Expr *e) {
  Expr *x = legal_hold(l, e->args[0]);
  Arc arc = arc_of(l, x);
  Expr *mirrored = legal_fma(l, arc.asin, legal_const(l, x, -2), legal_const(l, x, M_PI_2));
  return legal_with_sign_of(l, legal_select(l, arc.outside, mirrored, arc.asin), x);
}

Expr *expand_acos(Legalizer *l, Expr *e) {
  Expr *x = legal_hold(l, e->args[0]);
  Arc arc = arc_of(l, x);
  Expr *negative = legal_hold(l, legal_make(l, EXPR_LT, x, legal_const(l, x, 0)));
  Expr *twice = legal_hold(l, legal_make(l, EXPR_ADD, arc.asin, arc.asin));
  Expr *pi = legal_const(l, x, M_PI);
  Expr *outside = legal_select(l, negative, legal_make(l, EXPR_SUB, pi, twice), twice);
  Expr *inside =
      legal_make(l, EXPR_SUB, legal_const(l, x, M_PI_2), legal_with_sign_of(l, arc.asin, x));
  return legal_select(l, arc.outside, outside, inside);
}
