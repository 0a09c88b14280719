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
#include "lower/pass.h"

enum { MOST_COPIES = 15, MOST_VIRTUAL_THREADS = 32, MOST_COMPARISONS = 1 << 14 };

typedef struct ThreadAccess {
  Expr *data;
  const Buffer *buffer;
  Expr **indices;
  bool writes;
} ThreadAccess;

typedef struct VirtualThreads {
  Context *context;
  Stmt *loop;
  int64_t count;
  Map differing;  // variables and data variables that differ between threads
  Map inside;     // data variables of allocations inside → Buffer*
  int conditions; // statements around whose execution differs between threads
  bool changed;   // `differing` grew
  const char *obstacle;
  Array(VarRange) ranges;       // of all loops inside, each variable once
  Map values;                   // of lets inside
  Array(ThreadAccess) accesses; // to memory from outside
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
  if (lower_is_barrier(e)) return false;
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

// ---- Two threads access different elements

static Expr *valued(VirtualThreads *threads, Expr *e) {
  return substitute_expr(threads->context, e, &threads->values);
}

static void note_access(VirtualThreads *threads, const Buffer *buffer, Expr **indices, int rank,
                        bool writes) {
  Arena *arena = &threads->context->arena;
  if (map_contains(&threads->inside, buffer->data)) return;
  Expr **copies = arena_array(arena, Expr *, rank);
  for (int i = 0; i < rank; i++) copies[i] = valued(threads, indices[i]);
  ThreadAccess access = {
      .data = buffer->data, .buffer = buffer, .indices = copies, .writes = writes};
  array_push(arena, &threads->accesses, access);
}

static bool access_in_expr(Visitor *visitor, Expr *e) {
  if (e->op == EXPR_LOAD) note_access(visitor->env, e->as.buffer, e->args, e->count, false);
  return true;
}

static bool access_in_stmt(Visitor *visitor, Stmt *s) {
  VirtualThreads *threads = visitor->env;
  Arena *arena = &threads->context->arena;
  if (s->kind == STMT_LET)
    map_put(&threads->values, s->as.let.var, valued(threads, s->as.let.value));
  if (s->kind == STMT_STORE)
    note_access(threads, s->as.store.buffer, s->as.store.indices, s->as.store.rank, true);
  if (s->kind == STMT_FOR) {
    for (int i = 0; i < threads->ranges.count; i++)
      if (threads->ranges.items[i].var == s->as.loop.var)
        obstruct(threads, "two loops have one variable; run rename_repeated first");
    VarRange range = {s->as.loop.var, valued(threads, s->as.loop.min),
                      valued(threads, s->as.loop.extent)};
    array_push(arena, &threads->ranges, range);
  }
  return true;
}

// Two threads and what is known of their loops.
typedef struct ThreadPair {
  VirtualThreads *threads;
  Analyzer *analyzer;
  ExprArray vars; // of the loops inside, for both threads
  Map values[2];  // the thread variable, and for the second thread its own loop variables
} ThreadPair;

static void add_thread(ThreadPair *pair, int which, int64_t thread) {
  VirtualThreads *threads = pair->threads;
  Context *context = threads->context;
  Expr *own = threads->loop->as.loop.var;
  Map *values = &pair->values[which];
  *values = map_new(&context->arena);
  map_put(values, own, expr_int(context, own->type, thread));
  for (int i = 0; i < threads->ranges.count; i++) {
    const VarRange *range = &threads->ranges.items[i];
    Expr *var = which ? expr_var(context, range->var->as.var->name, range->var->type) : range->var;
    if (which) map_put(values, range->var, var);
    array_push(&context->arena, &pair->vars, var);
    analyzer_bind_kept(pair->analyzer, var, substitute_expr(context, range->min, values),
                       substitute_expr(context, range->extent, values));
  }
}

static bool has_multiple(int64_t low, int64_t high, int64_t divisor) {
  return floor_div(high, divisor) * divisor >= low;
}

// Leaves out the terms that `divisor` divides, and asks whether the rest may be a multiple of it.
static bool is_no_multiple(ThreadPair *pair, Expr *e, const int64_t *factors, int64_t divisor) {
  Context *context = pair->threads->context;
  int64_t low, high;
  Expr *rest = e;
  for (int i = 0; i < pair->vars.count; i++) {
    if (factors[i] % divisor) continue;
    Expr *factor = expr_int(context, e->type, factors[i]);
    Expr *var = expr_cast(context, e->type, pair->vars.items[i]);
    rest = expr_sub(context, rest, expr_mul(context, var, factor));
  }
  rest = analyzer_simplify(pair->analyzer, rest);
  return analyzer_const_bounds(pair->analyzer, rest, &low, &high) &&
         !has_multiple(low, high, divisor);
}

static bool is_never_zero(ThreadPair *pair, Expr *e) {
  Arena *arena = &pair->threads->context->arena;
  int64_t low, high, *factors = arena_array(arena, int64_t, pair->vars.count + 1);
  Expr *base;
  if (!dtype_equal(e->type, DTYPE_INT32) && !dtype_equal(e->type, DTYPE_INT64)) return false;
  e = analyzer_simplify(pair->analyzer, e);
  if (analyzer_const_bounds(pair->analyzer, e, &low, &high) && (low > 0 || high < 0)) return true;
  if (!linear_form(pair->threads->context, e, pair->vars.items, pair->vars.count, factors, &base))
    return false;
  for (int i = 0; i < pair->vars.count; i++)
    if (factors[i] && factors[i] != INT64_MIN &&
        is_no_multiple(pair, e, factors, factors[i] < 0 ? -factors[i] : factors[i]))
      return true;
  return false;
}

static bool are_apart(ThreadPair *pair, const ThreadAccess *a, const ThreadAccess *b) {
  Context *context = pair->threads->context;
  if (a->buffer != b->buffer) return false;
  for (int i = 0; i < a->buffer->rank; i++) {
    Expr *x = substitute_expr(context, a->indices[i], &pair->values[0]);
    Expr *y = substitute_expr(context, b->indices[i], &pair->values[1]);
    if (!expr_reads_memory(x) && !expr_reads_memory(y) &&
        is_never_zero(pair, expr_sub(context, x, y)))
      return true;
  }
  return false;
}

static bool threads_are_apart(VirtualThreads *threads, int64_t one, int64_t other) {
  ThreadPair pair = {.threads = threads, .analyzer = analyzer_new(threads->context)};
  add_thread(&pair, 0, one);
  add_thread(&pair, 1, other);
  for (int i = 0; i < threads->accesses.count; i++) {
    const ThreadAccess *a = &threads->accesses.items[i];
    for (int k = 0; k < threads->accesses.count; k++) {
      const ThreadAccess *b = &threads->accesses.items[k];
      bool matters = a->data == b->data && (a->writes || b->writes);
      if (matters && !are_apart(&pair, a, b)) return false;
    }
  }
  return true;
}

// Strides may let two indices meet in one element.
static bool is_plain(const Buffer *buffer) {
  return !buffer->strides;
}

static void find_conflicts(VirtualThreads *threads) {
  Visitor visitor = {.env = threads, .enter_expr = access_in_expr, .enter_stmt = access_in_stmt};
  visit_stmt(&visitor, threads->loop->as.loop.body);
  int64_t accesses = threads->accesses.count, count = threads->count;
  if (accesses * accesses * count * count > MOST_COMPARISONS)
    obstruct(threads, "there are too many accesses to compare");
  for (int i = 0; i < accesses; i++)
    if (threads->accesses.items[i].writes && !is_plain(threads->accesses.items[i].buffer))
      obstruct(threads, "they write to a buffer with strides");
  for (int64_t one = 0; one < count; one++)
    for (int64_t other = one + 1; other < count && !threads->obstacle; other++)
      if (!threads_are_apart(threads, one, other))
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
  bool is_virtual = s->kind == STMT_FOR && s->as.loop.kind == LOOP_THREAD &&
                    strncmp(s->as.loop.thread, "vthread", strlen("vthread")) == 0;
  if (!is_virtual) return s;
  VirtualThreads threads = {.context = context,
                            .loop = s,
                            .differing = map_new(arena),
                            .inside = map_new(arena),
                            .values = map_new(arena)};
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
