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

PrimFunc *lower_intrinsics(LowerState *state, PrimFunc *func) {
  return lower_rewrite(state, func, &(Rewriter){.expr = with_value, .buffer = lower_keep_buffer});
}
