// SPDX-License-Identifier: Apache-2.0
// Writes intrinsics that are functions of their operands as operations that all targets have
// (ir/intrinsic_value.c). The name of TVM's pass: LowerIntrin.
//
//   B[i] = T.isfinite(A[i])   →   B[i] = not (T.isnan(A[i]) or T.isinf(A[i]))
#include "ir/intrinsic.h"
#include "lower/pass.h"

static Expr *with_value(Rewriter *rewriter, Expr *e) {
  Expr *value = intrinsic_value(rewriter->context, e);
  return value ? value : e;
}

static bool find_assumption(Visitor *visitor, Stmt *s) {
  bool *found = visitor->env;
  *found |= stmt_is_assumption(s);
  return !*found;
}

// Leaves out assumptions with the loops around them, of which nothing would be left.
PrimFunc *lower_intrinsics(LowerState *state, PrimFunc *func) {
  bool assumes = false;
  visit_stmt(&(Visitor){.env = &assumes, .enter_stmt = find_assumption}, func->body);
  if (assumes) func = lower_remove_assumptions(state, func);
  if (!func) return NULL;
  return lower_rewrite(state, func, &(Rewriter){.expr = with_value, .buffer = lower_keep_buffer});
}
