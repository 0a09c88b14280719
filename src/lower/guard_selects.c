// SPDX-License-Identifier: Apache-2.0
// Computes only the chosen value of a choice whose values may fail (TVM's RewriteUnsafeSelect):
//
//   T.Select(i > 0, A[i - 1], x)   →   T.if_then_else(i > 0, A[i - 1], x)
//
// A value may fail where it reads memory, divides by what may be zero or calls a function, unless
// that stands behind a condition of its own. A choice for each lane of a vector stays.
#include "lower/pass.h"

typedef struct SelectGuarding {
  Map known; // expressions to FAILS or WORKS
} SelectGuarding;

enum { FAILS = 1, WORKS };

static bool may_fail(SelectGuarding *guarding, Expr *e);

// How many operands of the expression are always evaluated, from the first on.
static int evaluated(const Expr *e) {
  bool may_stop = e->op == EXPR_IF_THEN_ELSE || e->op == EXPR_AND || e->op == EXPR_OR;
  return may_stop ? 1 : e->count;
}

static bool fails_by_itself(SelectGuarding *guarding, Expr *e) {
  const Expr *from = e->op == EXPR_ADDRESS_OF && e->args[0]->op == EXPR_LOAD ? e->args[0] : e;
  if (from->op == EXPR_LOAD && from == e) return true; // the address of an element reads nothing
  if (expr_may_divide_by_zero(e) || expr_is_call(e)) return true;
  for (int i = 0; i < evaluated(from); i++)
    if (may_fail(guarding, from->args[i])) return true;
  return false;
}

static bool may_fail(SelectGuarding *guarding, Expr *e) {
  intptr_t known = (intptr_t)map_find(&guarding->known, e);
  if (!known) {
    known = fails_by_itself(guarding, e) ? FAILS : WORKS;
    map_put(&guarding->known, e, known);
  }
  return known == FAILS;
}

static Expr *guard(Rewriter *rewriter, Expr *e) {
  if (e->op != EXPR_SELECT || e->args[0]->type.lanes != 1) return e;
  if (!may_fail(rewriter->env, e->args[1]) && !may_fail(rewriter->env, e->args[2])) return e;
  return expr_if_then_else(rewriter->context, e->args[0], e->args[1], e->args[2]);
}

PrimFunc *lower_guard_selects(LowerState *state, PrimFunc *func) {
  SelectGuarding guarding = {map_new(&state->context->arena)};
  return lower_rewrite(state, func,
                       &(Rewriter){.env = &guarding, .expr = guard, .buffer = lower_keep_buffer});
}
