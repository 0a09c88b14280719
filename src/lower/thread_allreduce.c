// SPDX-License-Identifier: Apache-2.0
// Writes out reductions over the threads of a block: a tree over shared memory, halved from step to
// step, with a barrier after each. The name of TVM's pass: LowerThreadAllreduce.
//
//   with T.attr(T.comm_reducer(lambda a, b: a + b, [0]),     S = decl_buffer((5,), scope="shared")
//               "reduce_scope", 0):                          S[x] = A[x]; sync
//       T.tvm_thread_allreduce(1, A[x], True, R[0], x)    →  if x < 1: S[x] = S[x] + S[x + 4]
//                                                            sync; if x < 2: … S[x + 2]; sync
//                                                            if x < 1: … S[x + 1]; sync
//                                                            R[0] = S[0]; sync
//
// The threads that do not take part in the reduction have a row of the shared memory each. All
// threads get the result. TVM has shorter code for GPUs whose warps can exchange values.
#include "ir/intrinsic.h"
#include "lower/pass.h"

enum { MOST_BLOCK = 65536, MOST_VALUES = 16 }; // threads of a block, values of a reduction

typedef struct ThreadReduction {
  Context *context;
  PtrArray threads;    // Stmt *: the loops over threads around, from the outside in
  const Expr *reducer; // the combiner of the attribute around; NULL outside of one
  Map owners;          // data variable → Buffer * that was declared over it
} ThreadReduction;

// The parts of one call.
typedef struct Allreduce {
  Context *context;
  const Stmt *stmt;
  int count; // of values that are reduced together
  Expr **values, **identities, **places;
  Expr *condition; // false: the thread adds nothing
  Buffer **shared;
  Expr *row, *column; // of this thread in shared memory
  int64_t rows, columns;
} Allreduce;

static bool refuse(const Allreduce *a, const char *why) {
  return diag_error(a->context, a->stmt->pos, "this reduction over threads %s", why);
}

// ---- Threads

static bool is_reduced(const Expr *call, int first, const Expr *var) {
  for (int i = first; i < call->count; i++)
    if (call->args[i] == var) return true;
  return false;
}

enum { DIMENSIONS = 4 };

// The number of `thread` within a block: x, y and z are 0, 1 and 2, and virtual threads 3; -1 for
// others, such as blocks.
static int dimension_of(const char *thread) {
  if (strncmp(thread, "vthread", 7) == 0) return 3;
  bool is_thread = strncmp(thread, "threadIdx.", 10) == 0;
  return is_thread && thread[10] >= 'x' && thread[10] <= 'z' && !thread[11] ? thread[10] - 'x' : -1;
}

// Adds a loop over threads to the row or the column, which count x fastest.
static void add_thread(Expr **number, int64_t *count, Context *context, Expr *var, int64_t extent) {
  Expr *index = expr_cast(context, DTYPE_INT32, var);
  *number =
      expr_add(context, *number, expr_mul(context, index, expr_int(context, DTYPE_INT32, *count)));
  *count *= extent;
}

static bool find_threads(const ThreadReduction *r, Allreduce *a, const Expr *call, int first) {
  int found = 0, wanted = 0;
  a->row = a->column = expr_int(a->context, DTYPE_INT32, 0);
  a->rows = a->columns = 1;
  for (int dimension = 0; dimension < DIMENSIONS; dimension++)
    for (int i = 0; i < r->threads.count; i++) {
      const Stmt *loop = r->threads.items[i];
      int64_t extent;
      if (dimension_of(loop->as.loop.thread) != dimension) continue;
      if (!expr_as_int(loop->as.loop.extent, &extent) || !expr_is_int(loop->as.loop.min, 0))
        return refuse(a, "needs a constant number of threads");
      bool reduced = is_reduced(call, first, loop->as.loop.var);
      found += reduced;
      add_thread(reduced ? &a->column : &a->row, reduced ? &a->columns : &a->rows, a->context,
                 loop->as.loop.var, extent);
    }
  for (int i = first; i < call->count; i++) wanted += !expr_is_int(call->args[i], 0);
  return (found == wanted && a->rows * a->columns <= MOST_BLOCK) ||
         refuse(a, "is over threads that no loop around it has");
}

// ---- Parts of the call

static Expr *without_cast(Expr *e) {
  return e->op == EXPR_CAST ? e->args[0] : e;
}

// The element that a result is stored to: the first one of a pointer, as TVM wrote it before 2022.
static Expr *place_in(const ThreadReduction *r, Expr *e) {
  Buffer *buffer = e->op == EXPR_VAR ? map_find(&r->owners, e) : NULL;
  if (!buffer || !expr_is_int(buffer->offset, 0)) return e;
  Expr **indices = arena_array(&r->context->arena, Expr *, buffer->rank + 1);
  for (int i = 0; i < buffer->rank; i++) indices[i] = expr_int(r->context, DTYPE_INT32, 0);
  return expr_load(r->context, buffer, indices, buffer->rank);
}

static bool read_call(const ThreadReduction *r, Allreduce *a, const Expr *call) {
  int64_t count;
  if (!r->reducer || !r->reducer->count) return refuse(a, "has no T.comm_reducer around it");
  const Expr *identities = r->reducer->args[1];
  if (!expr_as_int(call->args[0], &count) || count < 1 || count > MOST_VALUES ||
      count != identities->count || call->count < 2 + 2 * count)
    return refuse(a, "has another number of values than its T.comm_reducer");
  a->count = (int)count;
  a->values = (Expr **)call->args + 1;
  a->condition = call->args[1 + count];
  a->identities = (Expr **)identities->args;
  a->places = arena_array(&a->context->arena, Expr *, a->count);
  for (int i = 0; i < a->count; i++) {
    a->places[i] = place_in(r, without_cast(call->args[2 + count + i]));
    if (a->places[i]->op != EXPR_LOAD) return refuse(a, "has a result that is no element");
  }
  return find_threads(r, a, call, 2 + 2 * a->count);
}

// ---- Code

// The index in shared memory of a column of this thread's row.
static Expr *place_of(const Allreduce *a, Expr *column) {
  Expr *columns = expr_int(a->context, DTYPE_INT32, a->columns);
  return expr_add(a->context, expr_mul(a->context, a->row, columns), column);
}

static Expr *shared_value(const Allreduce *a, int i, Expr *column) {
  Expr *index = place_of(a, column);
  return expr_load(a->context, a->shared[i], &index, 1);
}

static Stmt *shared_store(const Allreduce *a, int i, Expr *value) {
  Expr *index = place_of(a, a->column);
  return stmt_store(a->context, a->shared[i], &index, 1, value);
}

// Value i of the combiner for two sets of values.
static Expr *combined(const Allreduce *a, const Expr *reducer, int i, Expr *other) {
  const Expr *lambda = reducer->args[0];
  Expr *result = lambda->args[lambda->count - 1];
  if (result->op == EXPR_TUPLE) result = result->args[i];
  Map vars = map_new(&a->context->arena);
  for (int k = 0; k < a->count; k++) {
    map_put(&vars, lambda->args[k], shared_value(a, k, a->column));
    map_put(&vars, lambda->args[a->count + k], shared_value(a, k, other));
  }
  return substitute_expr(a->context, result, &vars);
}

// One level of the tree: the first `active` columns take the values `step` columns after theirs.
// All values are computed before the first one is stored.
static Stmt *tree_level(const Allreduce *a, const Expr *reducer, int64_t active, int64_t step) {
  Context *context = a->context;
  Expr *other = expr_add(context, a->column, expr_int(context, DTYPE_INT32, step));
  Stmt *stores[MOST_VALUES];
  Expr *vars[MOST_VALUES];
  for (int i = 0; i < a->count; i++) {
    vars[i] = expr_var(context, "v", a->shared[i]->type);
    stores[i] = shared_store(a, i, a->count == 1 ? combined(a, reducer, 0, other) : vars[i]);
  }
  Stmt *body = stmt_seq(context, stores, a->count);
  for (int i = a->count - 1; i >= 0 && a->count > 1; i--)
    body = stmt_let(context, vars[i], combined(a, reducer, i, other), body);
  Expr *takes_part = expr_lt(context, a->column, expr_int(context, DTYPE_INT32, active));
  return stmt_if(context, takes_part, body, NULL);
}

static void push_all(const Allreduce *a, PtrArray *out, Stmt *(*make)(const Allreduce *a, int i)) {
  for (int i = 0; i < a->count; i++) array_push(&a->context->arena, out, make(a, i));
  array_push(&a->context->arena, out, stmt_barrier(a->context, "shared"));
}

static Stmt *store_value(const Allreduce *a, int i) {
  Expr *value = expr_if_then_else(a->context, a->condition, a->values[i], a->identities[i]);
  return shared_store(a, i, value);
}

static Stmt *store_result(const Allreduce *a, int i) {
  const Expr *place = a->places[i];
  Expr *value = shared_value(a, i, expr_int(a->context, DTYPE_INT32, 0));
  return stmt_store(a->context, place->as.buffer, (Expr **)place->args, place->count, value);
}

static int64_t power_below(int64_t n) {
  int64_t power = 1;
  while (power * 2 < n) power *= 2;
  return power;
}

static Stmt *make_tree(Allreduce *a, const Expr *reducer) {
  Context *context = a->context;
  PtrArray body = {0};
  Expr *size = expr_int(context, DTYPE_INT32, a->rows * a->columns);
  a->shared = arena_array(&context->arena, Buffer *, a->count);
  for (int i = 0; i < a->count; i++)
    a->shared[i] =
        buffer_new(context, "reduced", a->places[i]->as.buffer->type, &size, 1, "shared");
  push_all(a, &body, store_value);
  for (int64_t left = a->columns; left > 1; left = power_below(left)) {
    int64_t step = power_below(left);
    array_push(&context->arena, &body, tree_level(a, reducer, left - step, step));
    array_push(&context->arena, &body, stmt_barrier(context, "shared"));
  }
  push_all(a, &body, store_result);
  Stmt *all = stmt_seq(context, (Stmt **)body.items, body.count);
  for (int i = a->count - 1; i >= 0; i--) all = stmt_allocate(context, a->shared[i], all);
  return all;
}

// ---- The pass

static Stmt *within_thread(Rewriter *rewriter, Stmt *s) {
  ThreadReduction *r = rewriter->env;
  array_push(&r->context->arena, &r->threads, s);
  Stmt *next = rewrite_stmt_children(rewriter, s);
  r->threads.count--;
  return next;
}

static bool is_reducer(const Stmt *s) {
  return s->kind == STMT_ATTR && strcmp(s->as.attr.key, "reduce_scope") == 0 && s->as.attr.node &&
         s->as.attr.node->op == EXPR_OBJECT;
}

static Stmt *within_reducer(Rewriter *rewriter, Stmt *s) {
  ThreadReduction *r = rewriter->env;
  const Expr *outer = r->reducer;
  r->reducer = s->as.attr.node;
  Stmt *next = rewrite_stmt_children(rewriter, s);
  r->reducer = outer;
  return next == s ? s : next->as.attr.body;
}

static Stmt *write_out(Rewriter *rewriter, Stmt *s) {
  ThreadReduction *r = rewriter->env;
  bool is_call = s->kind == STMT_EVALUATE && s->as.evaluate->op == EXPR_INTRINSIC &&
                 strcmp(s->as.evaluate->as.s, "tvm_thread_allreduce") == 0;
  if (s->kind == STMT_FOR && s->as.loop.kind == LOOP_THREAD) return within_thread(rewriter, s);
  if (is_reducer(s)) return within_reducer(rewriter, s);
  if (s->kind == STMT_DECL_BUFFER)
    map_put(&r->owners, s->as.declare.buffer->data, s->as.declare.buffer);
  if (!is_call) return NULL;
  Allreduce a = {.context = r->context, .stmt = s};
  return read_call(r, &a, s->as.evaluate) ? make_tree(&a, r->reducer) : s;
}

PrimFunc *lower_thread_allreduce(LowerState *state, PrimFunc *func) {
  ThreadReduction reduction = {.context = state->context,
                               .owners = map_new(&state->context->arena)};
  Rewriter rewriter = {.env = &reduction, .enter_stmt = write_out, .buffer = lower_keep_buffer};
  return lower_rewrite(state, func, &rewriter);
}
