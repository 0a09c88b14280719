// SPDX-License-Identifier: Apache-2.0
// Finds where the least or greatest of two floats needs no test for NaN.
#include "ir/ir.h"

#include <math.h>

// Whether `condition` is an ordered comparison with `e`: where it holds, `e` is not NaN.
static bool shows_number(const Expr *condition, const Expr *e) {
  bool ordered = op_table[condition->op].class == OP_COMPARE && condition->op != EXPR_NE;
  return ordered && (condition->args[0] == e || condition->args[1] == e);
}

bool expr_may_be_nan(const Expr *e) {
  if (e->op == EXPR_BROADCAST) e = e->args[0];
  if (e->op == EXPR_FLOAT) return isnan(e->as.f);
  if (e->op == EXPR_CAST) return dtype_is_float(e->args[0]->type);
  if (e->op != EXPR_SELECT && e->op != EXPR_IF_THEN_ELSE) return true;
  return expr_may_be_nan(e->args[2]) ||
         (!shows_number(e->args[0], e->args[1]) && expr_may_be_nan(e->args[1]));
}

Expr *expr_only_numbers(ExprOp op, const Expr *e) {
  if (e->op != EXPR_SELECT || e->args[0]->op != (op == EXPR_MAX ? EXPR_GT : EXPR_LT)) return NULL;
  Expr *x = e->args[1], *limit = e->args[2];
  const Expr *scalar = limit->op == EXPR_BROADCAST ? limit->args[0] : limit;
  bool passes = e->args[0]->args[0] == x && e->args[0]->args[1] == limit;
  return passes && scalar->op == EXPR_FLOAT && isinf(scalar->as.f) &&
                 (scalar->as.f < 0) == (op == EXPR_MAX)
             ? x
             : NULL;
}
