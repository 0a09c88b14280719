// SPDX-License-Identifier: Apache-2.0
// Moves loops over virtual threads inward, to the statements that differ between threads, and gives
// the memory in which they differ an axis for them (TVM's InjectVirtualThread):
//
//   for t in T.thread_binding(2, thread="vthread"):      B = allocate(2, 8)
//     B = allocate(8)                                     for k in range(8):
//     for k in range(8):                              →     B[0, k] = A[k]
//       B[k] = A[t * 8 + k]                                 B[1, k] = A[8 + k]
//     for k in range(8): C[t * 8 + k] = B[k] + B[7 - k]   for k in range(8):
//                                                           C[k] = B[0, k] + B[0, 7 - k]
//                                                           C[8 + k] = B[1, k] + B[1, 7 - k]
//
// Each thread has memory of its own for what the loop allocates. Memory in which all threads have
// the same values, and statements that only write to such memory, exist once. A statement without
// loops is written out for up to MOST_COPIES threads; else it gets a loop over the threads around
// it.
//
// This changes the order of the threads' statements. It is done only where two threads are proved
// to access different elements of the memory that the loop writes and does not allocate; otherwise,
// and around calls, while and memory with several descriptions, the threads run one after the other
// in a serial loop.
#include "ir/intrinsic.h"
#include "lower/races.h"

enum { MOST_COPIES = 15, MOST_VIRTUAL_THREADS = 1024 };

typedef struct VirtualThreads {
  Context *context;
  Stmt *loop;
  int64_t count;
  Map differing;  // variables and data variables that differ between threads
  Map inside;     // data variables of allocations inside → Buffer*
  int conditions; // statements around whose execution differs between threads
  bool changed;   // `differing` grew
  const char *obstacle;
} VirtualThreads;

static void obstruct(VirtualThreads *threads, const char *why) {
  if (!threads->obstacle) threads->obstacle = why;
}

// ---- What differs between threads

static bool find_differing(Visitor *visitor, Expr *e) {
  void **env = visitor->env;
  const VirtualThreads *threads = env[0];
  bool *found = env[1];
  const void *key = e->op == EXPR_LOAD ? (const void *)e->as.buffer->data : e;
  *found |= (e->op == EXPR_LOAD || e->op == EXPR_VAR) && map_contains(&threads->differing, key);
  return !*found;
}

static bool differs_at(const VirtualThreads *threads, Stmt *s) {
  bool found = false;
  if (s->kind == STMT_ATTR) return false; // it names memory, and its value is constant
  visit_stmt_exprs(
      &(Visitor){.env = (void *[]){(void *)threads, &found}, .enter_expr = find_differing}, s);
  return found;
}

static void mark(VirtualThreads *threads, const Expr *var) {
  if (map_contains(&threads->differing, var)) return;
  map_put(&threads->differing, var, var);
  threads->changed = true;
}

static bool decides(const VirtualThreads *threads, Stmt *s) {
  return (s->kind == STMT_FOR || s->kind == STMT_IF || s->kind == STMT_ALLOCATE) &&
         differs_at(threads, s);
}

static bool mark_stmt(Visitor *visitor, Stmt *s) {
  VirtualThreads *threads = visitor->env;
  threads->conditions += decides(threads, s);
  if (s->kind == STMT_FOR && differs_at(threads, s)) mark(threads, s->as.loop.var);
  if (s->kind == STMT_LET && differs_at(threads, s)) mark(threads, s->as.let.var);
  if (s->kind == STMT_STORE && map_contains(&threads->inside, s->as.store.buffer->data) &&
      (threads->conditions || differs_at(threads, s)))
    mark(threads, s->as.store.buffer->data);
  return true;
}

static void leave_stmt(Visitor *visitor, Stmt *s) {
  VirtualThreads *threads = visitor->env;
  threads->conditions -= decides(threads, s);
}

static void find_all_differing(VirtualThreads *threads) {
  mark(threads, threads->loop->as.loop.var);
  while (threads->changed) {
    threads->changed = false;
    threads->conditions = 0;
    Visitor visitor = {.env = threads, .enter_stmt = mark_stmt, .leave_stmt = leave_stmt};
    visit_stmt(&visitor, threads->loop->as.loop.body);
  }
}

// ---- What is in the way

static bool obstacle_in_expr(Visitor *visitor, Expr *e) {
  VirtualThreads *threads = visitor->env;
  if (expr_is_barrier(e)) return false;
  if (op_table[e->op].flags & OP_EFFECT) obstruct(threads, "they call functions");
  if (e->op == EXPR_ADDRESS_OF || (e->op == EXPR_VAR && e->as.var->scope))
    obstruct(threads, "the address of memory is taken");
  if (e->op == EXPR_LET || e->op == EXPR_LAMBDA)
    obstruct(threads, "an expression defines variables");
  return true;
}

static bool obstacle_in_stmt(Visitor *visitor, Stmt *s) {
  VirtualThreads *threads = visitor->env;
  if (s->kind == STMT_WHILE) obstruct(threads, "they hold a while");
  if (s->kind == STMT_ALLOCATE) {
    Buffer *buffer = lower_sole_buffer(s);
    if (!buffer) obstruct(threads, "memory that they allocate has several descriptions");
    map_put(&threads->inside, s->as.allocate.var, buffer);
  }
  if (s->kind != STMT_ATTR) return true;
  visit_stmt(visitor, lower_body(s)); // an attribute names memory and does not access it
  return false;
}

// Two threads must access different elements of what they write.
static void find_conflicts(VirtualThreads *threads) {
  LoopAccesses accesses = lower_accesses_of(threads->context, threads->loop->as.loop.body);
  RaceQuestion question = {.context = threads->context,
                           .analyzer = analyzer_new(threads->context),
                           .loop = threads->loop,
                           .accesses = &accesses};
  RaceDoubt doubt;
  if (!lower_prove_no_races(&question, &doubt))
    obstruct(threads, "it is not proved that they access different elements");
}

// ---- Rewriting

static bool find_loop(Visitor *visitor, Stmt *s) {
  *(bool *)visitor->env |= s->kind == STMT_FOR;
  return true;
}

// The statement once for each thread.
static Stmt *for_each_thread(VirtualThreads *threads, Stmt *s) {
  Context *context = threads->context;
  Expr *var = threads->loop->as.loop.var;
  bool has_loop = false;
  visit_stmt(&(Visitor){.env = &has_loop, .enter_stmt = find_loop}, s);
  if (has_loop || threads->count > MOST_COPIES) {
    Expr *own = expr_var(context, var->as.var->name, var->type);
    Expr *zero = expr_int(context, var->type, 0);
    Stmt *body = lower_substitute(context, stmt_renew(context, s), var, own);
    return stmt_for(context, own, zero, expr_int(context, var->type, threads->count), LOOP_SERIAL,
                    body);
  }
  Stmt *items[MOST_COPIES];
  for (int64_t i = 0; i < threads->count; i++)
    items[i] =
        lower_substitute(context, stmt_renew(context, s), var, expr_int(context, var->type, i));
  return stmt_seq(context, items, (int)threads->count);
}

static Stmt *spread(VirtualThreads *threads, Stmt *s);

static Stmt *spread_seq(VirtualThreads *threads, Stmt *s) {
  Context *context = threads->context;
  Stmt **items = arena_array(&context->arena, Stmt *, s->as.seq.count);
  for (int i = 0; i < s->as.seq.count; i++) items[i] = spread(threads, s->as.seq.items[i]);
  return stmt_seq(context, items, s->as.seq.count);
}

static Stmt *spread_branches(VirtualThreads *threads, Stmt *s) {
  Stmt *next = stmt_copy(threads->context, s);
  next->as.branch.then_body = spread(threads, s->as.branch.then_body);
  if (s->as.branch.else_body) next->as.branch.else_body = spread(threads, s->as.branch.else_body);
  return next;
}

static Stmt *spread_allocate(VirtualThreads *threads, Stmt *s) {
  Context *context = threads->context;
  Buffer *buffer = map_find(&threads->inside, s->as.allocate.var);
  if (!map_contains(&threads->differing, buffer->data))
    return lower_with_body(context, s, spread(threads, s->as.allocate.body));
  Expr *var = threads->loop->as.loop.var;
  Buffer *wide =
      lower_with_first_axis(context, buffer, expr_int(context, var->type, threads->count));
  Stmt *body = lower_index_first(context, s->as.allocate.body, buffer, wide, var);
  return lower_allocate_with(context, s, wide, spread(threads, body));
}

static bool writes_outside(const VirtualThreads *threads, const Stmt *s) {
  return s->kind == STMT_STORE && !map_contains(&threads->inside, s->as.store.buffer->data);
}

static bool is_once(const VirtualThreads *threads, Stmt *s) {
  if (s->kind == STMT_ASSERT) return false;
  return !differs_at(threads, s) && !writes_outside(threads, s) &&
         !(s->kind == STMT_STORE && map_contains(&threads->differing, s->as.store.buffer->data));
}

// `s` for all threads: a loop over them around each part that differs.
static Stmt *spread(VirtualThreads *threads, Stmt *s) {
  if (!is_once(threads, s)) return for_each_thread(threads, s);
  switch (s->kind) {
  case STMT_SEQ: return spread_seq(threads, s);
  case STMT_IF: return spread_branches(threads, s);
  case STMT_ALLOCATE: return spread_allocate(threads, s);
  case STMT_FOR:
    if (s->as.loop.kind == LOOP_VECTORIZED) return for_each_thread(threads, s);
    return lower_with_body(threads->context, s, spread(threads, lower_body(s)));
  case STMT_LET:
  case STMT_ALLOCATE_CONST:
  case STMT_DECL_BUFFER:
  case STMT_ATTR: return lower_with_body(threads->context, s, spread(threads, lower_body(s)));
  default: return s;
  }
}

static Stmt *one_after_the_other(LowerState *state, Stmt *s, const char *why) {
  Stmt *next = stmt_copy(state->context, s);
  next->as.loop.kind = LOOP_SERIAL;
  next->as.loop.thread = NULL;
  next->as.loop.is_launch = false;
  lower_note(state, LOWER_COUNT_KINDS, "virtual threads %s run one after the other: %s",
             s->as.loop.var->as.var->name, why);
  return next;
}

static Stmt *inject(Rewriter *rewriter, Stmt *s) {
  LowerState *state = rewriter->env;
  Context *context = rewriter->context;
  Arena *arena = &context->arena;
  if (!loop_is_virtual(s)) return s;
  VirtualThreads threads = {
      .context = context, .loop = s, .differing = map_new(arena), .inside = map_new(arena)};
  if (!expr_is_int(s->as.loop.min, 0) || !expr_as_int(s->as.loop.extent, &threads.count))
    return one_after_the_other(state, s, "their number is not constant");
  if (threads.count < 1 || threads.count > MOST_VIRTUAL_THREADS)
    return one_after_the_other(state, s, "they are too many, or none");
  Visitor visitor = {
      .env = &threads, .enter_expr = obstacle_in_expr, .enter_stmt = obstacle_in_stmt};
  visit_stmt(&visitor, s->as.loop.body);
  if (!threads.obstacle) find_conflicts(&threads);
  if (threads.obstacle) return one_after_the_other(state, s, threads.obstacle);
  find_all_differing(&threads);
  return spread(&threads, s->as.loop.body);
}

PrimFunc *lower_inject_virtual_threads(LowerState *state, PrimFunc *func) {
  Rewriter rewriter = {.env = state, .stmt = inject, .buffer = lower_keep_buffer};
  return lower_rewrite(state, func, &rewriter);
}
