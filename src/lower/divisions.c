// SPDX-License-Identifier: Apache-2.0
// Replaces floored division and modulo by operations that processors have, where the result is the
// same:
//
//   i // 7 → truncdiv(i, 7)   where 0 ≤ i is known        i // 8 → shift_right(i, 3)
//   i % 7  → truncmod(i, 7)                               i % 8  → bitwise_and(i, 7)
//
// A power of two needs no bounds, since an arithmetic shift is a floored division. Otherwise the
// bounds of the dividend and the divisor must be known (arith/bounds.c). The targets compute the
// floored divisions that are left.
#include "lower/pass.h"

typedef struct Divisions {
  LowerState *state;
  Analyzer *analyzer;
} Divisions;

static bool is_never_negative(Analyzer *analyzer, Expr *e) {
  int64_t low, high, stride;
  if (e->type.code == TYPE_UINT) return true;
  if (e->op == EXPR_BROADCAST) return is_never_negative(analyzer, e->args[0]);
  if (e->op == EXPR_RAMP)
    return expr_as_int(e->args[1], &stride) && stride >= 0 &&
           is_never_negative(analyzer, e->args[0]);
  return e->type.lanes == 1 && analyzer_const_bounds(analyzer, e, &low, &high) && low >= 0;
}

static bool is_positive(Analyzer *analyzer, Expr *e) {
  int64_t low, high;
  if (e->op == EXPR_BROADCAST) e = e->args[0];
  return e->type.lanes == 1 && analyzer_const_bounds(analyzer, e, &low, &high) && low > 0;
}

static Expr *divide(Rewriter *rewriter, Expr *e) {
  Divisions *env = rewriter->env;
  Context *context = rewriter->context;
  if ((e->op != EXPR_FLOOR_DIV && e->op != EXPR_FLOOR_MOD) || !dtype_is_int(e->type)) return e;
  Expr *a = e->args[0], *b = e->args[1];
  const Expr *scalar = b->op == EXPR_BROADCAST ? b->args[0] : b;
  bool div = e->op == EXPR_FLOOR_DIV;
  int64_t divisor;
  int log2 = expr_as_int(scalar, &divisor) ? log2_of(divisor) : -1;
  if (log2 >= 0)
    return expr_binary(context, div ? EXPR_SHIFT_RIGHT : EXPR_BIT_AND, a,
                       expr_int(context, e->type, div ? log2 : divisor - 1));
  if (!is_never_negative(env->analyzer, a) || !is_positive(env->analyzer, b)) return e;
  return expr_binary(context, div ? EXPR_TRUNC_DIV : EXPR_TRUNC_MOD, a, b);
}

static Stmt *keep_stmt(Rewriter *rewriter, Stmt *s) {
  (void)rewriter;
  return s;
}

// Rewrites the statement's own expressions under the facts that hold at the statement.
static Stmt *divide_in(Divisions *env, Stmt *s) {
  Context *context = env->state->context;
  ArenaMark mark = arena_mark(&context->scratch);
  Rewriter shallow = {.context = context,
                      .env = env,
                      .expr = divide,
                      .enter_stmt = keep_stmt,
                      .buffer = lower_keep_buffer,
                      .memo = map_new(&context->scratch)};
  Stmt *result = rewrite_stmt_children(&shallow, s);
  arena_reset(&context->scratch, mark);
  return result;
}

static Stmt *enter_stmt(Rewriter *rewriter, Stmt *s) {
  Divisions *env = rewriter->env;
  Stmt *next = divide_in(env, s);
  int mark = analyzer_mark(env->analyzer);
  if (s->kind == STMT_FOR)
    analyzer_bind(env->analyzer, s->as.loop.var, s->as.loop.min, s->as.loop.extent);
  if (s->kind == STMT_LET && dtype_is_int(s->as.let.var->type))
    analyzer_bind_value(env->analyzer, s->as.let.var, s->as.let.value);
  next = rewrite_stmt_children(rewriter, next);
  analyzer_reset(env->analyzer, mark);
  return next;
}

PrimFunc *lower_divisions(LowerState *state, PrimFunc *func) {
  Divisions env = {state, analyzer_new(state->context)};
  Rewriter rewriter = {.env = &env, .enter_stmt = enter_stmt, .buffer = lower_keep_buffer};
  return lower_rewrite(state, func, &rewriter);
}
