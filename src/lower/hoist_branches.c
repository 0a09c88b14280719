// SPDX-License-Identifier: Apache-2.0
// Moves an if, with its else, out of the loops on whose variables its condition does not depend:
//
//   for i in range(5):                       for i in range(5):
//     for j in range(7):                       if i < 2:
//       if i < 2: first                 →        for j in range(7): first
//       else: second                           else:
//                                                for j in range(7): second
//
// The bounds of loops do not change, which hoist_conditions changes. Conditions that it does not
// move stay here too. A condition on threads leaves a loop only with support_block_scope_hoisting
// and without variant="basic", since threads then run different loops.
#include "lower/pass.h"

typedef struct BranchHoisting {
  Context *context;
  ExprArray threads; // variables of loops over threads whose conditions stay
} BranchHoisting;

static bool find_thread_loop(Visitor *visitor, Stmt *s) {
  BranchHoisting *hoisting = visitor->env;
  if (s->kind == STMT_FOR && s->as.loop.thread)
    array_push(&hoisting->context->arena, &hoisting->threads, s->as.loop.var);
  return true;
}

static bool leaves(const BranchHoisting *hoisting, const Stmt *loop, Expr *condition) {
  if (loop->as.loop.thread || expr_uses(condition, loop->as.loop.var)) return false;
  for (int i = 0; i < hoisting->threads.count; i++)
    if (expr_uses(condition, hoisting->threads.items[i])) return false;
  return lower_may_move(condition);
}

static Stmt *hoist(Rewriter *rewriter, Stmt *s) {
  Context *context = rewriter->context;
  Stmt *branch = s->kind == STMT_FOR ? s->as.loop.body : NULL;
  bool is_movable =
      branch && branch->kind == STMT_IF && leaves(rewriter->env, s, branch->as.branch.condition);
  if (!is_movable) return s;
  Stmt *then_loop = lower_with_body(context, s, branch->as.branch.then_body);
  Stmt *else_body = branch->as.branch.else_body, *else_loop = NULL;
  if (else_body) else_loop = stmt_renew(context, lower_with_body(context, s, else_body));
  return stmt_if(context, branch->as.branch.condition, hoist(rewriter, then_loop),
                 else_loop ? hoist(rewriter, else_loop) : NULL);
}

PrimFunc *lower_hoist_branches(LowerState *state, PrimFunc *func) {
  BranchHoisting hoisting = {.context = state->context};
  bool moves_threads = false, basic;
  if (!lower_take_flag(state, "support_block_scope_hoisting", &moves_threads) ||
      !lower_take_word(state, "variant", "basic", &basic))
    return NULL;
  if (!moves_threads || basic)
    visit_stmt(&(Visitor){.env = &hoisting, .enter_stmt = find_thread_loop}, func->body);
  return lower_rewrite(state, func,
                       &(Rewriter){.env = &hoisting, .stmt = hoist, .buffer = lower_keep_buffer});
}
