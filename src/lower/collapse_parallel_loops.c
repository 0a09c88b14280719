// SPDX-License-Identifier: Apache-2.0
// Makes one loop of parallel loops that stand directly inside one another, so that threads share
// the iterations of all of them:
//
//   for i in T.parallel(3):                        for i_j in T.parallel(3 * 22):
//     for j in T.parallel(22): body         →        body, i = i_j // 22, j = i_j % 22
//
// A loop that is to be partitioned becomes a loop of one iteration in the body:
//
//   for j in T.parallel(22, partition): body   →   for j_0 in T.parallel(22):
//                                                    for j in range(j_0, j_0 + 1): body
//
// That one is cut by partition_loops like a serial loop, so that the iterations at borders get code
// of their own. Loops inside other loops stay as they are, since they will run in one thread.
#include "lower/pass.h"

enum { MOST_LOOPS = 8 };

typedef struct ParallelNest {
  Stmt *loops[MOST_LOOPS]; // the outermost first
  int count;
} ParallelNest;

static bool is_parallel(const Stmt *s) {
  return s->kind == STMT_FOR && s->as.loop.kind == LOOP_PARALLEL;
}

// Can the loop run as a part of the one around it, whose iterations are `outer`?
static bool fuses(const Stmt *loop, int64_t outer, int64_t *all) {
  int64_t extent;
  return is_parallel(loop) && expr_as_int(loop->as.loop.extent, &extent) && extent > 0 &&
         mul_fits(outer, extent, all) && *all <= INT32_MAX;
}

static ParallelNest nest_of(Stmt *loop) {
  ParallelNest nest = {.loops = {loop}, .count = 1};
  int64_t all = 1;
  bool known = expr_as_int(loop->as.loop.extent, &all);
  while (known && nest.count < MOST_LOOPS) {
    Stmt *inner = nest.loops[nest.count - 1]->as.loop.body;
    if (!fuses(inner, all, &all)) break;
    nest.loops[nest.count++] = inner;
  }
  return nest;
}

// The body of the loop with its variable at `at`.
static Stmt *body_at(Context *context, const Stmt *loop, Expr *at, Stmt *body) {
  Expr *var = loop->as.loop.var;
  at = expr_add(context, loop->as.loop.min, expr_cast(context, var->type, at));
  if (!loop_is_partitioned(loop)) return lower_substitute(context, body, var, at);
  Stmt *once = lower_with_body(context, loop, body);
  once->as.loop.kind = LOOP_SERIAL;
  once->as.loop.min = at;
  once->as.loop.extent = expr_int(context, var->type, 1);
  return once;
}

static Stmt *collapsed(Context *context, const ParallelNest *nest) {
  const Stmt *first = nest->loops[0], *last = nest->loops[nest->count - 1];
  Expr *var = expr_var(context, first->as.loop.var->as.var->name, first->as.loop.var->type);
  Stmt *next = stmt_copy(context, first);
  Expr *count = expr_int(context, var->type, 1);
  Stmt *body = last->as.loop.body;
  for (int i = nest->count - 1; i >= 0; i--) {
    const Stmt *loop = nest->loops[i];
    Expr *extent = expr_cast(context, var->type, loop->as.loop.extent);
    Expr *at = expr_floor_div(context, var, count);
    if (i) at = expr_floor_mod(context, at, extent);
    body = body_at(context, loop, at, body);
    count = expr_mul(context, count, extent);
  }
  next->as.loop.var = var;
  next->as.loop.min = expr_int(context, var->type, 0);
  next->as.loop.extent = count;
  next->as.loop.body = body;
  next->as.loop.annotations =
      attrs_without(&context->arena, next->as.loop.annotations, "pleat.partition");
  return next;
}

static Stmt *enter_loop(Rewriter *rewriter, Stmt *s) {
  if (s->kind != STMT_FOR) return NULL;
  if (!is_parallel(s)) return s;
  ParallelNest nest = nest_of(s);
  return nest.count > 1 || loop_is_partitioned(s) ? collapsed(rewriter->context, &nest) : s;
}

PrimFunc *lower_collapse_parallel_loops(LowerState *state, PrimFunc *func) {
  return lower_rewrite(state, func, &(Rewriter){.enter_stmt = enter_loop});
}
