// SPDX-License-Identifier: Apache-2.0
// Leaves out an accumulation that padding makes neutral:
//
//   B[i] = B[i] + T.if_then_else(c, X[j], 0) * W[k]   →   if c: B[i] = B[i] + X[j] * W[k]
//   B[i] = T.max(B[i], T.if_then_else(c, X[j], -inf)) →   if c: B[i] = T.max(B[i], X[j])
//
// Later passes can turn the condition into loop bounds. A product with padding counts as zero also
// where the other factor is infinite or NaN. Conditions that read memory or that differ between
// lanes stay where they are.
#include "lower/pass.h"

#include <math.h>

// Whether accumulating `e` by `op` changes nothing.
static bool is_neutral(ExprOp op, const Expr *e) {
  if (e->op == EXPR_BROADCAST) e = e->args[0];
  if (op == EXPR_ADD) return (e->op == EXPR_FLOAT && e->as.f == 0) || expr_is_int(e, 0);
  double sign = op == EXPR_MAX ? -1 : 1;
  if (e->op == EXPR_FLOAT) return isinf(e->as.f) && e->as.f * sign > 0;
  if (e->op != EXPR_INT || e->type.code != TYPE_INT || e->type.bits > 64) return false;
  int64_t most = INT64_MAX >> (64 - e->type.bits);
  return e->as.i == (op == EXPR_MAX ? -most - 1 : most);
}

// `e` without the choices that may make it neutral; their conditions are pushed onto `conditions`.
static Expr *without_choices(Context *context, ExprOp op, Expr *e, ExprArray *conditions) {
  bool choice = (e->op == EXPR_IF_THEN_ELSE || e->op == EXPR_SELECT) && e->args[0]->type.lanes == 1;
  if (choice && is_neutral(op, e->args[2]) && !expr_reads_memory(e->args[0])) {
    expr_conjuncts(context, e->args[0], conditions);
    return without_choices(context, op, e->args[1], conditions);
  }
  if (op != EXPR_ADD || (e->op != EXPR_MUL && e->op != EXPR_CAST)) return e;
  Expr *args[2] = {0};
  for (int i = 0; i < e->count; i++) args[i] = without_choices(context, op, e->args[i], conditions);
  return expr_with_args(context, e, args);
}

static Stmt *guard_store(Rewriter *rewriter, Stmt *s) {
  if (s->kind != STMT_STORE) return s;
  Expr *value = s->as.store.value;
  if (value->op != EXPR_ADD && value->op != EXPR_MAX && value->op != EXPR_MIN) return s;
  int self = expr_loads_stored(value->args[0], s) ? 0 : 1;
  if (!expr_loads_stored(value->args[self], s)) return s;
  ExprArray conditions = {0};
  Expr *args[2] = {value->args[0], value->args[1]};
  args[1 - self] = without_choices(rewriter->context, value->op, args[1 - self], &conditions);
  if (!conditions.count) return s;
  Stmt *next = stmt_copy(rewriter->context, s);
  next->as.store.value = expr_with_args(rewriter->context, value, args);
  return stmt_if(rewriter->context, expr_conjunction(rewriter->context, &conditions), next, NULL);
}

PrimFunc *lower_guard_products(LowerState *state, PrimFunc *func) {
  Rewriter rewriter = {.stmt = guard_store};
  return lower_rewrite(state, func, &rewriter);
}
