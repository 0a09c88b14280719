// SPDX-License-Identifier: Apache-2.0
// Writes stores of vectors that a condition of several lanes chooses as vectorised loops
// (ir/lanes.c), since only the chosen lanes may access memory:
//
//   B[0:4] = T.if_then_else(T.Ramp(i, 1, 4) < n, A[i:i + 4], 0)
//   →
//   for lane in T.vectorized(4):
//       B[lane] = T.if_then_else(i + lane < n, A[i + lane], 0)
#include "ir/lanes.h"
#include "lower/pass.h"

static bool see_choice(Visitor *visitor, Expr *e) {
  bool *found = visitor->env;
  bool reads = e->op == EXPR_IF_THEN_ELSE && e->args[0]->type.lanes > 1 &&
               (expr_reads_memory(e->args[1]) || expr_reads_memory(e->args[2]));
  *found |= reads;
  return !*found;
}

static bool chooses_lanes(Stmt *s) { // not the statements below it
  bool found = false;
  visit_stmt_exprs(&(Visitor){.env = &found, .enter_expr = see_choice}, s);
  return found;
}

static bool see_lanes(Visitor *visitor, Stmt *s) {
  Context *context = visitor->env;
  if (chooses_lanes(s))
    diag_error(context, s->pos,
               "T.if_then_else has a condition of several lanes and reads memory; run split_lanes "
               "first, which makes a loop of it");
  return true;
}

bool lower_lanes_are_split(Context *context, Stmt *body) {
  int errors = context->error_count;
  visit_stmt(&(Visitor){.env = context, .enter_stmt = see_lanes}, body);
  return context->error_count == errors;
}

static Stmt *split_store(Rewriter *rewriter, Stmt *s) {
  bool *ok = rewriter->env;
  if (!*ok || !chooses_lanes(s)) return s;
  Stmt *loop = s->kind == STMT_STORE ? stmt_lane_loop(rewriter->context, s, NULL) : NULL;
  if (!loop)
    *ok =
        diag_error_as(rewriter->context, DIAG_UNSUPPORTED, s->pos,
                      "T.if_then_else has a condition of several lanes and reads memory, which "
                      "runs only where each lane of a stored value is computed from the same lane "
                      "of its operands\n"
                      "write a vectorised loop");
  return loop ? loop : s;
}

PrimFunc *lower_split_lanes(LowerState *state, PrimFunc *func) {
  bool ok = true;
  Rewriter rewriter = {.env = &ok, .stmt = split_store, .buffer = lower_keep_buffer};
  PrimFunc *next = lower_rewrite(state, func, &rewriter);
  return ok ? next : NULL;
}
