// SPDX-License-Identifier: Apache-2.0
// The interface between the parts of legalizing: short names for building expressions of one vector
// type.
#ifndef PLEAT_TARGET_LEGALIZE_H
#define PLEAT_TARGET_LEGALIZE_H

#include "target/target.h"

typedef struct Held { // a value used more than once, and the variable that stands for it
  Expr *var, *value;
} Held;

typedef struct Legalizer {
  Context *context;
  const TargetFeatures *features;
  TargetReport *report;
  Array(Held) held; // values of the node that is being expanded, which become LETs around it
  Map checked;      // variables whose NaNs are handled before a MIN or MAX takes them
} Legalizer;

// A variable for `value`, which is then computed once; a leaf is returned as it is.
Expr *legal_hold(Legalizer *l, Expr *value);

// Constants with the type of `like` and its lanes.
Expr *legal_const(Legalizer *l, const Expr *like, double value);
Expr *legal_int(Legalizer *l, const Expr *like, int64_t value);
Expr *legal_cast(Legalizer *l, DType scalar, Expr *a);        // to `scalar` with the lanes of a
Expr *legal_reinterpret(Legalizer *l, DType scalar, Expr *a); // likewise
Expr *legal_fma(Legalizer *l, Expr *a, Expr *b, Expr *c);
// ((c[n-1] * x + c[n-2]) * x + …) + c[0]
Expr *legal_polynomial(Legalizer *l, Expr *x, const double *coefficients, int count);

static inline Expr *legal_make(Legalizer *l, ExprOp op, Expr *a, Expr *b) {
  return expr_binary(l->context, op, a, b);
}
static inline Expr *legal_select(Legalizer *l, Expr *condition, Expr *a, Expr *b) {
  return expr_select(l->context, condition, a, b);
}

// `fast` where all lanes of `fits` are true; otherwise calls of the C library for `e`, lane by
// lane.
Expr *legal_or_library(Legalizer *l, Expr *e, Expr *fits, Expr *fast);

// expand_math.c: a function of a float32, or NULL when it has no expansion.
Expr *expand_math(Legalizer *l, Expr *e);
// 1 + erf x and x · sigmoid x of a float32, which take less together; NULL for other expressions.
// The first has an absolute error of 2e-7, and keeps the small values below 0.
Expr *expand_math_pair(Legalizer *l, Expr *e);
Expr *legal_negate(Legalizer *l, Expr *x);
Expr *legal_with_sign_of(Legalizer *l, Expr *magnitude,
                         Expr *x); // |magnitude| with the sign of x
// expand_angle.c: sine, cosine, tangent and their inverses.
Expr *expand_sin(Legalizer *l, Expr *e);
Expr *expand_cos(Legalizer *l, Expr *e);
Expr *expand_tan(Legalizer *l, Expr *e);
Expr *expand_asin(Legalizer *l, Expr *e);
Expr *expand_acos(Legalizer *l, Expr *e);
Expr *expand_atan(Legalizer *l, Expr *e);
// expand_float.c: a small floating type from and to float32, by integer arithmetic.
Expr *expand_widen(Legalizer *l, Expr *value);
Expr *expand_narrow(Legalizer *l, DType scalar, Expr *value);

#endif
