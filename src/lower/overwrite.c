// SPDX-License-Identifier: Apache-2.0
// Whether a statement may store the elements of one buffer over those of another one that it reads,
// because each element is read for the last time before something is stored over it:
//
//   for i: C[i] = B[i] * 2          B and C may share memory
//   for i: C[i] = B[7 - i]          not these: iteration 7 reads what iteration 0 stored
//
// Two iterations of a loop must access different elements, unless both read the old buffer or both
// access the new one; the races of parallel loops are excluded by the same proof. Within an
// iteration, the statements that access the old buffer must come first.
#include "lower/races.h"

enum { MOST_PAIRS = 1 << 12 };

typedef struct Overwrite {
  Context *context;
  const Expr *from, *to; // data variables
  Array(VarRange) outer; // the loops around, from the outside in
} Overwrite;

typedef struct Overlap {
  const Overwrite *overwrite;
  bool from, stores, pointer;
} Overlap;

static bool use_in_expr(Visitor *visitor, Expr *e) {
  Overlap *uses = visitor->env;
  const Overwrite *o = uses->overwrite;
  const Expr *data = e->op == EXPR_LOAD         ? e->as.buffer->data
                     : e->op == EXPR_ADDRESS_OF ? e->args[0]->as.buffer->data
                                                : e;
  uses->from |= e->op == EXPR_LOAD && data == o->from;
  uses->pointer |= e->op != EXPR_LOAD && (data == o->from || data == o->to);
  return true;
}

static bool use_in_stmt(Visitor *visitor, Stmt *s) {
  Overlap *uses = visitor->env;
  if (s->kind != STMT_STORE) return true;
  uses->from |= s->as.store.buffer->data == uses->overwrite->from;
  uses->stores |= s->as.store.buffer->data == uses->overwrite->to;
  return true;
}

static Overlap uses_in(const Overwrite *o, Stmt *s) {
  Overlap uses = {.overwrite = o};
  if (s)
    visit_stmt(&(Visitor){.env = &uses, .enter_expr = use_in_expr, .enter_stmt = use_in_stmt}, s);
  return uses;
}

static bool same_shape(const Buffer *a, const Buffer *b) {
  bool same = a->rank == b->rank && !a->strides && !b->strides && !a->broadcasts && !b->broadcasts;
  for (int d = 0; same && d < a->rank; d++) same = a->shape[d] == b->shape[d];
  return same && a->offset == b->offset;
}

// Proves it of one access of each buffer, as if both were accesses of the old one.
static bool are_apart(const RaceQuestion *question, const LoopAccess *from, LoopAccess to) {
  if (!same_shape(from->buffer, to.buffer)) return false;
  if (from->by == to.by && lower_sums_lanes(question->loop, to.by)) return false;
  to.buffer = from->buffer;
  return lower_prove_apart(question, from, &to);
}

static bool iterations_apart(const Overwrite *o, Stmt *loop) {
  LoopAccesses accesses = lower_accesses_of(o->context, loop->as.loop.body);
  RaceQuestion question = {.context = o->context,
                           .analyzer = analyzer_new(o->context),
                           .loop = loop,
                           .outer = o->outer.items,
                           .outer_count = o->outer.count,
                           .accesses = &accesses};
  const LoopAccess *items = accesses.items.items;
  Buffer *to = map_find(&accesses.written, o->to);
  if (to) map_put(&accesses.written, o->from, to);
  int pairs = 0;
  for (int i = 0; i < accesses.items.count; i++)
    for (int j = 0; items[i].buffer->data == o->from && j < accesses.items.count; j++)
      if (items[j].buffer->data == o->to && items[j].writes &&
          (++pairs > MOST_PAIRS || !are_apart(&question, &items[i], items[j])))
        return false;
  return true;
}

static bool reads_first(Overwrite *o, Stmt *s);

static bool loop_reads_first(Overwrite *o, Stmt *loop) {
  if (!iterations_apart(o, loop)) return false;
  array_push(&o->context->arena, &o->outer, loop_range(loop));
  bool holds = reads_first(o, loop->as.loop.body);
  o->outer.count--;
  return holds;
}

static bool sequence_reads_first(Overwrite *o, const Stmt *s) {
  bool stored = false;
  for (int i = 0; i < s->as.seq.count; i++) {
    Stmt *item = s->as.seq.items[i];
    Overlap uses = uses_in(o, item);
    if ((stored && uses.from) || !reads_first(o, item)) return false;
    stored |= uses.stores;
  }
  return true;
}

// A statement with a body reads what it needs itself before its body runs.
static bool reads_first(Overwrite *o, Stmt *s) {
  Overlap uses = uses_in(o, s);
  if (!uses.from || !uses.stores || s->kind == STMT_STORE) return true;
  if (s->kind == STMT_FOR) return loop_reads_first(o, s);
  if (s->kind == STMT_SEQ) return sequence_reads_first(o, s);
  if (s->kind == STMT_IF)
    return reads_first(o, s->as.branch.then_body) &&
           (!s->as.branch.else_body || reads_first(o, s->as.branch.else_body));
  Stmt *body = s->kind == STMT_WHILE || s->kind == STMT_BLOCK ? NULL : lower_body(s);
  return body && reads_first(o, body);
}

bool lower_may_overwrite(Context *context, Stmt *s, const Expr *from, const Expr *to) {
  Overwrite o = {.context = context, .from = from, .to = to};
  return !uses_in(&o, s).pointer && reads_first(&o, s);
}
