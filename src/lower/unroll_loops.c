// SPDX-License-Identifier: Apache-2.0
// Writes loops of constant extent out.
//
//   for m in T.unroll(2): acc[m] = acc[m] + x[m]   →   acc[0] = acc[0] + x[0]
//                                                      acc[1] = acc[1] + x[1]
//
// Variables and buffers that are bound inside the loop are renewed in each copy. An unrolled loop
// that would become more than MOST_STATEMENTS, or whose extent is not constant, becomes a serial
// loop with a hint and is reported.
//
// Serial loops are unrolled too, by the rules of TVM's UnrollLoop
// (src/tirx/transform/unroll_loop.cc), where they hold only unrolled loops: when the result has at
// most auto_max_step statements, below at most auto_max_depth unrolled loops, or when the loop has
// at most auto_max_extent iterations. With unroll_local_access a loop is also unrolled when its
// variable is in an index of a local buffer. With explicit_unroll=False the loops are only marked
// as unrolled. An attribute "pragma_auto_unroll_max_step" or "pragma_unroll_explicit", of a
// statement or a loop, replaces the argument in the statement or loop.
#include "lower/pass.h"

enum { MOST_STATEMENTS = 16384, USUAL_DEPTH = 8 };

typedef struct UnrollLimits {
  int64_t max_step, max_depth, max_extent;
  bool writes_out; // otherwise loops are marked
} UnrollLimits;

// The statements, unrolled loops and other loops of the statement that was visited last.
typedef struct UnrollCount {
  int64_t steps, unrolled, others;
} UnrollCount;

typedef struct Unrolling {
  LowerState *state;
  UnrollLimits limits;
  UnrollCount count;
  Map local; // variables in indices of local buffers
  bool keeps_marks;
} Unrolling;

static Stmt *as_serial(LowerState *state, Stmt *s, const char *why) {
  Context *context = state->context;
  Stmt *next = stmt_copy(context, s);
  next->as.loop.kind = LOOP_SERIAL;
  next->as.loop.annotations =
      attrs_with(&context->arena, s->as.loop.annotations, str_intern(context, "pleat.unroll"),
                 expr_int(context, DTYPE_INT32, 4));
  if (why)
    lower_note(state, LOWER_COUNT_KINDS, "loop %s is not unrolled: %s",
               s->as.loop.var->as.var->name, why);
  return next;
}

static bool is_too_long(Stmt *loop, int64_t extent) {
  return extent > MOST_STATEMENTS ||
         lower_size(loop->as.loop.body, MOST_STATEMENTS) * extent > MOST_STATEMENTS;
}

// The loops inside are unrolled before, so one copy has the size of the body.
static Stmt *write_out(LowerState *state, Stmt *s, int64_t extent) {
  Context *context = state->context;
  int64_t min;
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

// ---- Marking

static Stmt *mark(Unrolling *u, Stmt *s) {
  if (!u->keeps_marks) return as_serial(u->state, s, NULL);
  if (s->as.loop.kind == LOOP_UNROLLED) return s;
  Stmt *next = stmt_copy(u->state->context, s);
  next->as.loop.kind = LOOP_UNROLLED;
  return next;
}

// Is the serial loop to be unrolled?
static bool is_within(const Unrolling *u, const Stmt *s, int64_t extent) {
  const UnrollCount *count = &u->count;
  const UnrollLimits *limits = &u->limits;
  int64_t steps;
  if (s->as.loop.kind != LOOP_SERIAL || extent < 0) return false;
  if (map_contains(&u->local, s->as.loop.var)) return true;
  if (count->others || count->unrolled > limits->max_depth) return false;
  if (extent <= limits->max_extent) return true;
  return mul_fits(extent, count->steps, &steps) && steps <= limits->max_step;
}

static Stmt *unroll(Unrolling *u, Stmt *s) {
  int64_t extent = -1;
  bool constant = expr_as_int(s->as.loop.extent, &extent), given = s->as.loop.kind == LOOP_UNROLLED;
  if (constant) extent = MAX_OF(extent, 0);
  bool unrolls = given || (constant && is_within(u, s, extent));
  bool too_long = unrolls && constant && is_too_long(s, extent);
  bool is_single = extent == 1 && u->limits.max_extent == 1 && s->as.loop.kind == LOOP_SERIAL;
  if (!unrolls || (too_long && !given)) {
    u->count.others++;
    return is_single ? write_out(u->state, s, extent) : s;
  }
  u->count.unrolled++;
  if (!constant) return as_serial(u->state, s, "its extent is not constant");
  if (too_long) return as_serial(u->state, s, "it would take too many statements");
  u->count.steps *= extent;
  return u->limits.writes_out || is_single ? write_out(u->state, s, extent) : mark(u, s);
}

// ---- Statements

// Follows an attribute for this pass; false when it is not one.
static bool take_pragma(UnrollLimits *limits, const char *key, const Expr *value) {
  int64_t number;
  bool is_step = strcmp(key, "pragma_auto_unroll_max_step") == 0;
  if (!is_step && strcmp(key, "pragma_unroll_explicit") != 0) return false;
  if (!expr_as_int(value, &number)) return false;
  if (is_step) limits->max_step = number;
  if (!is_step) limits->writes_out = number != 0;
  return true;
}

static Stmt *unroll_loop(Rewriter *rewriter, Stmt *s) {
  Unrolling *u = rewriter->env;
  UnrollLimits outer = u->limits;
  const Attrs *pragmas = &s->as.loop.annotations;
  for (int i = 0; i < pragmas->count; i++)
    take_pragma(&u->limits, pragmas->items[i].key, pragmas->items[i].value);
  Stmt *next = unroll(u, rewrite_stmt_children(rewriter, s));
  u->limits = outer;
  return next;
}

// The steps of all items, and the most loops that one of them has.
static Stmt *unroll_sequence(Rewriter *rewriter, Stmt *s) {
  Unrolling *u = rewriter->env;
  Context *context = rewriter->context;
  UnrollCount all = {0};
  Stmt **items = arena_array(&context->arena, Stmt *, s->as.seq.count);
  bool changed = false;
  for (int i = 0; i < s->as.seq.count; i++) {
    u->count = (UnrollCount){0};
    items[i] = rewrite_stmt(rewriter, s->as.seq.items[i]);
    changed |= items[i] != s->as.seq.items[i];
    all.steps += u->count.steps;
    all.unrolled = MAX_OF(all.unrolled, u->count.unrolled);
    all.others = MAX_OF(all.others, u->count.others);
  }
  u->count = all;
  return changed ? stmt_seq(context, items, s->as.seq.count) : s;
}

// An attribute for this pass is left out once it was followed.
static Stmt *unroll_attribute(Rewriter *rewriter, Stmt *s) {
  Unrolling *u = rewriter->env;
  UnrollLimits outer = u->limits;
  if (!take_pragma(&u->limits, s->as.attr.key, s->as.attr.value)) return NULL;
  Stmt *body = rewrite_stmt(rewriter, s->as.attr.body);
  u->limits = outer;
  return body;
}

static Stmt *enter(Rewriter *rewriter, Stmt *s) {
  Unrolling *u = rewriter->env;
  switch (s->kind) {
  case STMT_FOR: return unroll_loop(rewriter, s);
  case STMT_SEQ: return unroll_sequence(rewriter, s);
  case STMT_ATTR: return unroll_attribute(rewriter, s);
  case STMT_STORE:
  case STMT_EVALUATE: u->count.steps++; return NULL;
  default: return NULL;
  }
}

// ---- Indices of local buffers

static bool note_variable(Visitor *visitor, Expr *e) {
  Unrolling *u = visitor->env;
  if (e->op == EXPR_VAR) map_put(&u->local, e, e);
  return true;
}

static void note_indices(Unrolling *u, const Buffer *buffer, Expr *const *indices, int count) {
  if (strcmp(buffer->scope, "local") != 0) return;
  for (int i = 0; i < count; i++)
    visit_expr(&(Visitor){.env = u, .enter_expr = note_variable}, indices[i]);
}

static bool local_load(Visitor *visitor, Expr *e) {
  if (e->op == EXPR_LOAD) note_indices(visitor->env, e->as.buffer, e->args, e->count);
  return true;
}

static bool local_store(Visitor *visitor, Stmt *s) {
  if (s->kind == STMT_STORE)
    note_indices(visitor->env, s->as.store.buffer, s->as.store.indices, s->as.store.rank);
  return true;
}

PrimFunc *lower_unroll_loops(LowerState *state, PrimFunc *func) {
  Unrolling u = {.state = state,
                 .limits = {.max_depth = USUAL_DEPTH, .writes_out = true},
                 .local = map_new(&state->context->arena)};
  bool local = false;
  if (!lower_take_number(state, "auto_max_step", &u.limits.max_step) ||
      !lower_take_number(state, "auto_max_depth", &u.limits.max_depth) ||
      !lower_take_number(state, "auto_max_extent", &u.limits.max_extent) ||
      !lower_take_flag(state, "explicit_unroll", &u.limits.writes_out) ||
      !lower_take_flag(state, "unroll_local_access", &local))
    return NULL;
  u.keeps_marks = !u.limits.writes_out;
  Visitor visitor = {.env = &u, .enter_expr = local_load, .enter_stmt = local_store};
  if (local) visit_stmt(&visitor, func->body);
  return lower_rewrite(state, func, &(Rewriter){.env = &u, .enter_stmt = enter});
}
