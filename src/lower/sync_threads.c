// SPDX-License-Identifier: Apache-2.0
// Puts barriers where threads of a block may otherwise access one element of shared memory in
// another order than the program states, and one of them writes it. The name of TVM's pass:
// ThreadSync.
//
//   for x in threadIdx.x(16):            for x in threadIdx.x(16):
//     S[x] = A[x]                          S[x] = A[x]
//     B[x] = S[15 - x]                →    T.tvm_storage_sync("shared")
//                                          B[x] = S[15 - x]
//
// There is no barrier between two statements whose accesses by two different threads are proved to
// be apart (race_proof.c). A statement is summed up by the accesses that it makes before its first
// barrier, those after its last one, and whether there is a way through it without one. A barrier
// stands in front of the statement, in the outermost sequence that has both; one that iterations of
// a loop need stands in front of the first statement of the body that needs it.
//
// A loop whose extent, and a condition that differs between threads, takes no barrier: what is
// inside may not need one.
#include "ir/intrinsic.h"
#include "lower/races.h"

typedef Array(LoopAccess) AccessList;

typedef struct Summary {
  AccessList first, last; // before the first barrier, and after the last one
  bool passes;            // on some way there is no barrier
} Summary;

typedef struct Syncing {
  Context *context;
  Analyzer *analyzer;
  const char *scope;
  PtrArray threads;     // Stmt *: the first loop over each kind of threads
  Map vars;             // variables to what stands for them: threads of one kind are one variable
  Map varying;          // variables of lets whose values threads may read from memory
  ExprArray conditions; // around, equal for all threads
  Map written, used;    // data variables that the function writes, and accesses, to a buffer
  bool failed;
} Syncing;

static Stmt *place(Syncing *f, Stmt *s, Summary *out);

// ---- Accesses

static Expr *resolved(const Syncing *f, Expr *e) {
  return substitute_expr(f->context, e, &f->vars);
}

static void substitute_access(Context *context, LoopAccess *a, const Map *vars) {
  LoopAccess old = *a;
  a->indices = old.indices ? arena_array(&context->arena, Expr *, old.buffer->rank + 1) : NULL;
  a->ranges = arena_array(&context->arena, VarRange, old.range_count + 1);
  a->conditions = arena_array(&context->arena, Expr *, old.condition_count + 1);
  for (int d = 0; a->indices && d < old.buffer->rank; d++)
    a->indices[d] = substitute_expr(context, old.indices[d], vars);
  for (int i = 0; i < old.range_count; i++) {
    a->ranges[i] = old.ranges[i];
    if (!old.ranges[i].extent) continue;
    a->ranges[i].min = substitute_expr(context, old.ranges[i].min, vars);
    a->ranges[i].extent = substitute_expr(context, old.ranges[i].extent, vars);
  }
  for (int i = 0; i < old.condition_count; i++)
    a->conditions[i] = substitute_expr(context, old.conditions[i], vars);
  if (a->value) a->value = substitute_expr(context, old.value, vars);
}

static void add_ranges(Context *context, LoopAccess *a, const VarRange *ranges, int count) {
  VarRange *all = arena_array(&context->arena, VarRange, a->range_count + count + 1);
  for (int i = 0; i < count; i++) all[i] = ranges[i];
  for (int i = 0; i < a->range_count; i++) all[count + i] = a->ranges[i];
  a->ranges = all;
  a->range_count += count;
}

static void add_condition(Context *context, LoopAccess *a, Expr *condition) {
  Expr **all = arena_array(&context->arena, Expr *, a->condition_count + 1);
  for (int i = 0; i < a->condition_count; i++) all[i] = a->conditions[i];
  all[a->condition_count++] = condition;
  a->conditions = all;
}

static void add_all(Context *context, AccessList *to, const AccessList *from) {
  for (int i = 0; i < from->count; i++) array_push(&context->arena, to, from->items[i]);
}

static bool has_scope(const Syncing *f, const Buffer *buffer) {
  return buffer->scope && !strcmp(buffer->scope, f->scope);
}

static void add_access(Syncing *f, LoopAccess access, AccessList *out) {
  Context *context = f->context;
  if (!has_scope(f, access.buffer)) return;
  substitute_access(context, &access, &f->vars);
  for (int i = 0; i < f->varying.count; i++) {
    VarRange range = {.var = (Expr *)(uintptr_t)f->varying.entries[i].key};
    add_ranges(context, &access, &range, 1);
  }
  for (int i = 0; i < f->conditions.count; i++)
    add_condition(context, &access, f->conditions.items[i]);
  array_push(&context->arena, out, access);
}

// The accesses of a statement to the memory of the scope. One that calls a function, or gives it a
// pointer, may access all of it.
static AccessList accesses_of(Syncing *f, Stmt *s) {
  AccessList out = {0};
  LoopAccesses all = lower_accesses_of(f->context, s);
  for (int i = 0; i < all.items.count; i++) add_access(f, all.items.items[i], &out);
  for (int i = 0; all.opaque && i < f->used.count; i++) {
    Buffer *buffer = f->used.entries[i].value;
    add_access(f, (LoopAccess){.buffer = buffer, .writes = true, .by = s, .pos = s->pos}, &out);
  }
  return out;
}

// ---- Conflicts

static bool are_apart(Syncing *f, const LoopAccess *a, const LoopAccess *b, int thread) {
  Context *context = f->context;
  LoopAccesses both = {.written = f->written};
  VarRange *inner = arena_array(&context->arena, VarRange, f->threads.count + 1);
  int count = 0;
  for (int i = thread + 1; i < f->threads.count; i++)
    inner[count++] = loop_range(f->threads.items[i]);
  array_push(&context->arena, &both.items, *a);
  array_push(&context->arena, &both.items, *b);
  for (int i = 0; i < 2; i++) add_ranges(context, &both.items.items[i], inner, count);
  RaceQuestion question = {
      context, f->analyzer, f->threads.items[thread], NULL, 0, &both,
  };
  return lower_prove_apart(&question, &both.items.items[0], &both.items.items[1]);
}

// May two different threads access one element by them?
static bool conflict(Syncing *f, const LoopAccess *a, const LoopAccess *b) {
  if (!(a->writes || b->writes) || a->buffer->data != b->buffer->data) return false;
  for (int i = 0; i < f->threads.count; i++)
    if (!are_apart(f, a, b, i)) return true;
  return false;
}

static bool any_conflict(Syncing *f, const AccessList *a, const AccessList *b) {
  for (int i = 0; i < a->count; i++)
    for (int j = 0; j < b->count; j++)
      if (conflict(f, &a->items[i], &b->items[j])) return true;
  return false;
}

// ---- What differs between threads

static bool see_varying(Visitor *visitor, Expr *e) {
  const void **env = visitor->env;
  const Syncing *f = env[0];
  bool *found = (bool *)env[1];
  for (int i = 0; i < f->threads.count; i++)
    *found |= e == ((const Stmt *)f->threads.items[i])->as.loop.var;
  *found |= e->op == EXPR_LOAD || expr_is_call(e) || map_contains(&f->varying, e);
  return !*found;
}

static bool is_uniform(const Syncing *f, Expr *e) {
  bool found = false;
  visit_expr(&(Visitor){.env = (const void *[]){f, &found}, .enter_expr = see_varying},
             resolved(f, e));
  return !found;
}

static bool is_thread_loop(const Stmt *s) {
  return loop_thread_axis(s, NULL) >= 0;
}

// ---- Statements

// A statement that takes no barrier inside. Its own statements may not need one.
static Stmt *place_none(Syncing *f, Stmt *s, Summary *out) {
  bool is_single = s->kind == STMT_STORE || s->kind == STMT_EVALUATE || stmt_wait(s);
  *out = (Summary){accesses_of(f, s), {0}, true};
  for (int i = 0; i < out->first.count && !is_single && !f->failed; i++)
    for (int j = 0; j < i && !f->failed; j++) {
      const LoopAccess *a = &out->first.items[j], *b = &out->first.items[i];
      if (a->by == b->by || !conflict(f, a, b)) continue;
      f->failed = true;
      diag_error(f->context, b->pos.file ? b->pos : s->pos,
                 "threads may have to wait here before they access %s, but a condition or a loop "
                 "around differs between them\n"
                 "split it, so that all threads come to one place between the accesses",
                 b->buffer->name);
    }
  out->last = out->first;
  return s;
}

static void follow(Context *context, Summary *all, const Summary *next) {
  if (all->passes) add_all(context, &all->first, &next->first);
  if (!next->passes) all->last = (AccessList){0};
  add_all(context, &all->last, &next->last);
  all->passes &= next->passes;
}

static Stmt *place_seq(Syncing *f, Stmt *s, Summary *out) {
  PtrArray items = {0};
  *out = (Summary){.passes = true};
  for (int i = 0; i < s->as.seq.count; i++) {
    Summary next;
    Stmt *item = place(f, s->as.seq.items[i], &next);
    if (any_conflict(f, &out->last, &next.first)) {
      array_push(&f->context->arena, &items, stmt_barrier(f->context, f->scope));
      follow(f->context, out, &(Summary){0});
    }
    array_push(&f->context->arena, &items, item);
    follow(f->context, out, &next);
  }
  return stmt_seq(f->context, (Stmt **)items.items, items.count);
}

static Stmt *place_if(Syncing *f, Stmt *s, Summary *out) {
  Context *context = f->context;
  if (!is_uniform(f, s->as.branch.condition)) return place_none(f, s, out);
  Summary other = {.passes = true};
  Expr *condition = resolved(f, s->as.branch.condition);
  Stmt *otherwise = s->as.branch.else_body;
  int mark = analyzer_mark(f->analyzer);
  analyzer_assume(f->analyzer, condition);
  array_push(&context->arena, &f->conditions, condition);
  Stmt *then = place(f, s->as.branch.then_body, out);
  analyzer_reset(f->analyzer, mark);
  array_last(&f->conditions) = expr_unary(context, EXPR_NOT, condition);
  if (otherwise) otherwise = place(f, otherwise, &other);
  f->conditions.count--;
  add_all(context, &out->first, &other.first);
  add_all(context, &out->last, &other.last);
  out->passes |= other.passes;
  return stmt_if(context, s->as.branch.condition, then, otherwise);
}

// ---- Loops

// The accesses in iterations before the current one. Where each iteration has a barrier, only those
// of the last one are of interest.
static AccessList earlier(Syncing *f, const VarRange *loop, const Summary *body) {
  Context *context = f->context;
  AccessList out = {0};
  Expr *var = loop->var, *one = expr_int(context, var->type, 1);
  Expr *before =
      body->passes ? expr_var(context, "earlier", var->type) : expr_sub(context, var, one);
  Map vars = map_new(&context->arena);
  map_put(&vars, var, before);
  for (int i = 0; i < body->last.count; i++) {
    LoopAccess access = body->last.items[i];
    substitute_access(context, &access, &vars);
    VarRange range = {before, loop->min, expr_sub(context, var, loop->min)};
    if (body->passes) add_ranges(context, &access, &range, 1);
    add_condition(context, &access, expr_lt(context, loop->min, var));
    array_push(&context->arena, &out, access);
  }
  return out;
}

// The accesses of a loop, with its variable as one of theirs, or with one value of it.
static AccessList of_loop(Syncing *f, const AccessList *body, const VarRange *loop, Expr *value) {
  AccessList out = {0};
  Map vars = map_new(&f->context->arena);
  if (value) map_put(&vars, loop->var, value);
  for (int i = 0; i < body->count; i++) {
    LoopAccess access = body->items[i];
    if (value) substitute_access(f->context, &access, &vars);
    if (!value) add_ranges(f->context, &access, loop, 1);
    array_push(&f->context->arena, &out, access);
  }
  return out;
}

// Puts a barrier in front of the first statement of the body that needs one after earlier
// iterations. Returns the body itself where none is needed.
static Stmt *place_between(Syncing *f, Stmt *body, const VarRange *range, const Summary *summary) {
  Context *context = f->context;
  AccessList before = earlier(f, range, summary);
  if (!any_conflict(f, &before, &summary->first)) return body;
  Stmt **items = body->kind == STMT_SEQ ? body->as.seq.items : &body;
  int count = body->kind == STMT_SEQ ? body->as.seq.count : 1, at = 0;
  for (Summary next; at < count - 1; at++) {
    place(f, items[at], &next);
    if (any_conflict(f, &before, &next.first)) break;
  }
  Stmt **all = arena_array(&context->arena, Stmt *, count + 1);
  for (int i = 0; i < count; i++) all[i + (i >= at)] = items[i];
  all[at] = stmt_barrier(f->context, f->scope);
  return stmt_seq(context, all, count + 1);
}

static Stmt *place_loop(Syncing *f, Stmt *s, Summary *out) {
  Context *context = f->context;
  VarRange range = loop_range(s);
  bool serial = s->as.loop.kind == LOOP_SERIAL || s->as.loop.kind == LOOP_UNROLLED;
  if (!serial || !is_uniform(f, range.min) || !is_uniform(f, range.extent))
    return place_none(f, s, out);
  range.min = resolved(f, range.min);
  range.extent = resolved(f, range.extent);
  int mark = analyzer_mark(f->analyzer);
  analyzer_bind_kept(f->analyzer, range.var, range.min, range.extent);
  Summary body;
  Stmt *inside = place(f, s->as.loop.body, &body);
  Stmt *next = place_between(f, inside, &range, &body);
  if (next != inside) next = place(f, next, &body);
  analyzer_reset(f->analyzer, mark);
  Expr *one = expr_int(context, range.extent->type, 1);
  Expr *zero = expr_int(context, range.extent->type, 0);
  bool runs = analyzer_prove(f->analyzer, expr_lt(context, zero, range.extent));
  Expr *end = expr_sub(context, expr_add(context, range.min, range.extent), one);
  out->first = of_loop(f, &body.first, &range, body.passes ? NULL : range.min);
  out->last = of_loop(f, &body.last, &range, body.passes ? NULL : end);
  out->passes = body.passes || !runs;
  return lower_with_body(context, s, next);
}

// ---- Threads

// A loop over threads is those of all other loops over threads of its kind.
static Stmt *place_threads(Syncing *f, Stmt *s, Summary *out) {
  const Stmt *first = NULL;
  for (int i = 0; i < f->threads.count; i++)
    if (!strcmp(((const Stmt *)f->threads.items[i])->as.loop.thread, s->as.loop.thread))
      first = f->threads.items[i];
  VarRange own = loop_range(s), known = loop_range(first);
  if (own.min != known.min || own.extent != known.extent) {
    f->failed |= !diag_error(f->context, s->pos,
                             "this loop has another extent than that over the same threads, %s: "
                             "give both one extent, and a condition to what fewer threads do",
                             first->as.loop.var->as.var->name);
    return place_none(f, s, out);
  }
  if (s != first) map_put(&f->vars, s->as.loop.var, first->as.loop.var);
  return lower_with_body(f->context, s, place(f, s->as.loop.body, out));
}

static Stmt *place_let(Syncing *f, Stmt *s, Summary *out) {
  Expr *value = resolved(f, s->as.let.value), *var = s->as.let.var;
  AccessList read = accesses_of(f, stmt_evaluate(f->context, s->as.let.value));
  if (expr_reads_memory(value) || expr_is_call(value))
    map_put(&f->varying, var, var);
  else
    map_put(&f->vars, var, value);
  Stmt *body = place(f, s->as.let.body, out);
  add_all(f->context, &out->first, &read);
  if (out->passes) add_all(f->context, &out->last, &read);
  return lower_with_body(f->context, s, body);
}

static Stmt *place(Syncing *f, Stmt *s, Summary *out) {
  if (f->failed) return place_none(f, s, out);
  if (is_thread_loop(s)) return place_threads(f, s, out);
  switch (s->kind) {
  case STMT_SEQ: return place_seq(f, s, out);
  case STMT_IF: return place_if(f, s, out);
  case STMT_FOR: return place_loop(f, s, out);
  case STMT_LET: return place_let(f, s, out);
  case STMT_ALLOCATE:
  case STMT_ALLOCATE_CONST:
  case STMT_DECL_BUFFER:
  case STMT_ATTR: return lower_with_body(f->context, s, place(f, lower_body(s), out));
  case STMT_EVALUATE:
    if (expr_wait(s->as.evaluate) < WAIT_BLOCK) return place_none(f, s, out);
    *out = (Summary){0};
    return s;
  case STMT_STORE:
  case STMT_ASSERT:
  case STMT_WHILE:
  case STMT_BLOCK: return place_none(f, s, out);
  }
  return s;
}

// ---- The function

static bool see_load(Visitor *visitor, Expr *e) {
  Syncing *f = visitor->env;
  if (e->op == EXPR_LOAD) map_put(&f->used, e->as.buffer->data, e->as.buffer);
  return true;
}

static bool see_store(Visitor *visitor, Stmt *s) {
  Syncing *f = visitor->env;
  if (s->kind != STMT_STORE) return true;
  map_put(&f->used, s->as.store.buffer->data, s->as.store.buffer);
  map_put(&f->written, s->as.store.buffer->data, s->as.store.buffer);
  return true;
}

static bool find_virtual(Visitor *visitor, Stmt *s) {
  const Stmt **found = visitor->env;
  if (loop_is_virtual(s) && !*found) *found = s;
  return !*found;
}

static bool refuse_virtual(Context *context, PrimFunc *func) {
  const Stmt *found = NULL;
  visit_stmt(&(Visitor){.env = &found, .enter_stmt = find_virtual}, func->body);
  return !found || diag_error(context, found->pos.file ? found->pos : func->pos,
                              "sync_threads cannot run on %s, which has virtual threads; run "
                              "inject_virtual_threads (InjectVirtualThread) first",
                              func->name);
}

static bool collect_threads(Visitor *visitor, Stmt *s) {
  Syncing *f = visitor->env;
  bool known = !is_thread_loop(s);
  for (int i = 0; i < f->threads.count && !known; i++)
    known = !strcmp(((const Stmt *)f->threads.items[i])->as.loop.thread, s->as.loop.thread);
  if (!known) array_push(&f->context->arena, &f->threads, s);
  return true;
}

static Stmt *place_kernel(Rewriter *rewriter, Stmt *s) {
  Syncing *f = rewriter->env;
  if (!is_thread_loop(s)) return NULL;
  int mark = analyzer_mark(f->analyzer);
  f->threads = (PtrArray){0};
  f->vars = map_new(&f->context->arena);
  f->varying = map_new(&f->context->arena);
  visit_stmt(&(Visitor){.env = f, .enter_stmt = collect_threads}, s);
  for (int i = 0; i < f->threads.count; i++) {
    VarRange range = loop_range(f->threads.items[i]);
    analyzer_bind_kept(f->analyzer, range.var, range.min, range.extent);
  }
  Summary summary;
  Stmt *next = place(f, s, &summary);
  analyzer_reset(f->analyzer, mark);
  return next;
}

PrimFunc *lower_sync_threads(LowerState *state, PrimFunc *func) {
  Context *context = state->context;
  Syncing f = {.context = context,
               .analyzer = analyzer_new(context),
               .scope = "shared",
               .written = map_new(&context->arena),
               .used = map_new(&context->arena)};
  int dynamic = 0;
  if (!lower_take_choice(state, "storage_scope", "shared shared.dyn", &dynamic)) return NULL;
  if (dynamic) f.scope = "shared.dyn";
  if (!refuse_virtual(context, func)) return NULL;
  visit_stmt(&(Visitor){.env = &f, .enter_stmt = see_store, .enter_expr = see_load}, func->body);
  Rewriter rewriter = {.env = &f, .enter_stmt = place_kernel, .buffer = lower_keep_buffer};
  PrimFunc *next = lower_rewrite(state, func, &rewriter);
  return f.failed ? NULL : next;
}
