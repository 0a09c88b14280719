// SPDX-License-Identifier: Apache-2.0
// Writes unrolled loops of constant extent out.
//
//   for m in T.unroll(2): acc[m] = acc[m] + x[m]   →   acc[0] = acc[0] + x[0]
//                                                      acc[1] = acc[1] + x[1]
//
// Variables and buffers that are bound inside the loop are renewed in each copy. A loop that would
// become more than MOST_STATEMENTS, or whose extent is not constant, becomes a serial loop with a
// hint and is reported.
#include "lower/pass.h"

enum { MOST_STATEMENTS = 16384 };

static Stmt *as_serial(LowerState *state, Stmt *s, const char *why) {
  Context *context = state->context;
  Stmt *next = stmt_copy(context, s);
  next->as.loop.kind = LOOP_SERIAL;
  next->as.loop.annotations =
      attrs_with(&context->arena, s->as.loop.annotations, str_intern(context, "pleat.unroll"),
                 expr_int(context, DTYPE_INT32, 4));
  lower_note(state, LOWER_COUNT_KINDS, "loop %s is not unrolled: %s", s->as.loop.var->as.var->name,
             why);
  return next;
}

// The loops inside are unrolled before, so one copy has the size of the body.
static Stmt *unroll(Rewriter *rewriter, Stmt *s) {
  LowerState *state = rewriter->env;
  Context *context = rewriter->context;
  int64_t min, extent;
  if (s->kind != STMT_FOR || s->as.loop.kind != LOOP_UNROLLED) return s;
  if (!expr_as_int(s->as.loop.extent, &extent))
    return as_serial(state, s, "its extent is not constant");
  if (extent > MOST_STATEMENTS ||
      lower_size(s->as.loop.body, MOST_STATEMENTS) * extent > MOST_STATEMENTS)
    return as_serial(state, s, "it would take too many statements");
  bool constant = expr_as_int(s->as.loop.min, &min);
  Array(Stmt *) items = {0};
  for (int64_t i = 0; i < extent; i++) {
    Expr *step = expr_int(context, s->as.loop.var->type, constant ? min + i : i);
    Expr *value = constant ? step : expr_add(context, s->as.loop.min, step);
    Stmt *body = i ? stmt_renew(context, s->as.loop.body) : s->as.loop.body;
    array_push(&context->arena, &items, lower_substitute(context, body, s->as.loop.var, value));
  }
  state->report->counts[LOWER_UNROLLED]++;
  return stmt_seq(context, items.items, items.count);
}

PrimFunc *lower_unroll_loops(LowerState *state, PrimFunc *func) {
  Rewriter rewriter = {.env = state, .stmt = unroll};
  return lower_rewrite(state, func, &rewriter);
}
