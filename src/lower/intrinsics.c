// SPDX-License-Identifier: Apache-2.0
// Writes intrinsics that are functions of their operands as operations that all targets have
// (ir/intrinsic_value.c). The name of TVM's pass: LowerIntrin.
//
//   B[i] = T.isfinite(A[i])   →   B[i] = not (T.isnan(A[i]) or T.isinf(A[i]))
//   A.access_ptr("r", offset=i)   →   T.address_of(A[i])      (access_pointers.c)
#include "ir/intrinsic.h"
#include "lower/pass.h"

typedef struct Intrinsics {
  CallScope scope;
  SourcePos pos;
  bool compiles;
} Intrinsics;

static Expr *with_value(Rewriter *rewriter, Expr *e) {
  Intrinsics *intrinsics = rewriter->env;
  if (!lower_is_access_pointer(e)) {
    Expr *value = intrinsic_value(rewriter->context, e);
    return value ? value : e;
  }
  Expr *address = lower_access_pointer(rewriter->context, &intrinsics->scope, e);
  if (!address && intrinsics->compiles)
    diag_error_as(rewriter->context, DIAG_UNSUPPORTED, intrinsics->pos,
                  "T.tvm_access_ptr is at no known element of a buffer of its type\n"
                  "call access_ptr of a buffer that has no strides, or write T.address_of(A[i])");
  return address ? address : e;
}

static Stmt *note_place(Rewriter *rewriter, Stmt *s) {
  Intrinsics *intrinsics = rewriter->env;
  if (s->pos.file) intrinsics->pos = s->pos;
  return NULL;
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
  Intrinsics intrinsics = {call_scope(state->context, func), func->pos, state->compiles};
  return lower_rewrite(state, func,
                       &(Rewriter){.env = &intrinsics,
                                   .expr = with_value,
                                   .enter_stmt = note_place,
                                   .buffer = lower_keep_buffer});
}
