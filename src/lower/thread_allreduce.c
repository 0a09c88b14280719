// SPDX-License-Identifier: Apache-2.0
// Writes out reductions over the threads of a block. The name of TVM's pass: LowerThreadAllreduce.
// In general it makes a tree over shared memory, halved from step to step, with barriers between.
//
//   with T.attr(T.comm_reducer(lambda a, b: a + b, [0]),     S = decl_buffer((5,), scope="shared")
//               "reduce_scope", 0):                          S[x] = A[x]; sync
//       T.tvm_thread_allreduce(1, A[x], True, R[0], x)    →  if x < 1: S[x] = S[x] + S[x + 4]
//                                                            sync; if x < 2: … S[x + 2]; sync
//                                                            if x < 1: … S[x + 1]; sync
//                                                            R[0] = S[0]; sync
//
// The threads that do not take part in the reduction have a row of the shared memory each. All
// threads get the result. Where the target of the function has warps, threads that follow one
// another in warps exchange values instead, and only the results of warps go through shared memory:
//
//   V = decl_buffer((1,), scope="local"); V[0] = A[x]                   for 64 threads x
//   V[0] = V[0] + T.tvm_warp_shuffle_down(m, V[0], 16, 32, 32)          and 8, 4, 2, 1
//   if x % 32 == 0: S[x // 32] = V[0]
//   sync; V[0] = S[x] if x < 2 else 0
//   V[0] = V[0] + T.tvm_warp_shuffle_down(m, V[0], 1, 32, 32); if x == 0: S[0] = V[0]
//   sync; R[0] = S[0]; sync
#include "ir/intrinsic.h"
#include "ir/target.h"
#include "lower/pass.h"

enum { MOST_BLOCK = 65536, MOST_VALUES = 16 }; // threads of a block, values of a reduction
enum { WARP = 32 };                            // threads that exchange values

typedef struct ThreadReduction {
  Context *context;
  PtrArray threads;    // Stmt *: the loops over threads around, from the outside in
  const Expr *reducer; // the combiner of the attribute around; NULL outside of one
  Map owners;          // data variable → Buffer * that was declared over it
  bool has_warps, has_masks;
  int launched; // bits: the axes of all loops over threads of a block
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
  bool in_warps; // the columns are threads that follow one another in warps
  Buffer **own;  // local: the values of this thread
  Expr *mask;
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

enum { VIRTUAL = 3, DIMENSIONS };

// The number of `thread` within a block: x, y and z are 0, 1 and 2, and virtual threads 3; -1 for
// others, such as blocks.
static int dimension_of(const char *thread) {
  if (strncmp(thread, "vthread", 7) == 0) return VIRTUAL;
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

static bool fits_warps(const Allreduce *a) {
  bool in_one = a->columns > 1 && a->columns < WARP && log2_of(a->columns) >= 0;
  bool in_several = a->columns % WARP == 0 && a->columns <= WARP * WARP;
  for (int i = 0; i < a->count; i++) {
    DType type = a->places[i]->as.buffer->type;
    if (type.lanes != 1 || (type.bits != 32 && type.bits != 64)) return false;
  }
  return in_one || in_several;
}

static bool find_threads(const ThreadReduction *r, Allreduce *a, const Expr *call, int first) {
  int found = 0, wanted = 0, around = 0;
  bool is_first = true; // the reduced threads come before all others
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
      if (reduced && a->rows > 1) is_first = false;
      if (dimension == VIRTUAL) is_first = false;
      around |= 1 << dimension;
      add_thread(reduced ? &a->column : &a->row, reduced ? &a->columns : &a->rows, a->context,
                 loop->as.loop.var, extent);
    }
  for (int i = first; i < call->count; i++) wanted += !expr_is_int(call->args[i], 0);
  a->in_warps = r->has_warps && is_first && around == r->launched && fits_warps(a);
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
static Expr *combined_of(const Allreduce *a, const Expr *reducer, int i, Expr **own, Expr **other) {
  const Expr *lambda = reducer->args[0];
  Expr *result = lambda->args[lambda->count - 1];
  if (result->op == EXPR_TUPLE) result = result->args[i];
  Map vars = map_new(&a->context->arena);
  for (int k = 0; k < a->count; k++) {
    map_put(&vars, lambda->args[k], own[k]);
    map_put(&vars, lambda->args[a->count + k], other[k]);
  }
  return substitute_expr(a->context, result, &vars);
}

static Expr *combined(const Allreduce *a, const Expr *reducer, int i, Expr *column) {
  Expr *own[MOST_VALUES], *other[MOST_VALUES];
  for (int k = 0; k < a->count; k++) {
    own[k] = shared_value(a, k, a->column);
    other[k] = shared_value(a, k, column);
  }
  return combined_of(a, reducer, i, own, other);
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

// ---- Exchanges within warps

static Expr *number_of(const Allreduce *a, int64_t n) {
  return expr_int(a->context, DTYPE_INT32, n);
}

static Expr *own_value(const Allreduce *a, int i) {
  Expr *zero = number_of(a, 0);
  return expr_load(a->context, a->own[i], &zero, 1);
}

static Stmt *own_store(const Allreduce *a, int i, Expr *value) {
  Expr *zero = number_of(a, 0);
  return stmt_store(a->context, a->own[i], &zero, 1, value);
}

// The value of another thread in the group of `width` lanes.
static Expr *exchanged(const Allreduce *a, const char *name, int i, int64_t lane, int64_t width) {
  Context *context = a->context;
  Expr *args[] = {a->mask, own_value(a, i), number_of(a, lane), number_of(a, width),
                  number_of(a, WARP)};
  return expr_raw(context, EXPR_INTRINSIC, a->own[i]->type, str_intern(context, name), args, 5);
}

// One level in a group: each lane takes the values of the lane `step` after it. All are received,
// and combined, before the first one is stored.
static Stmt *warp_level(const Allreduce *a, const Expr *reducer, int64_t step, int64_t width) {
  Context *context = a->context;
  Expr *own[MOST_VALUES], *other[MOST_VALUES], *vars[MOST_VALUES];
  Stmt *stores[MOST_VALUES];
  for (int i = 0; i < a->count; i++) {
    own[i] = own_value(a, i);
    other[i] = expr_var(context, "t", own[i]->type);
    vars[i] = expr_var(context, "v", own[i]->type);
  }
  for (int i = 0; i < a->count; i++)
    stores[i] = own_store(a, i, a->count == 1 ? combined_of(a, reducer, 0, own, other) : vars[i]);
  Stmt *body = stmt_seq(context, stores, a->count);
  for (int i = a->count - 1; i >= 0 && a->count > 1; i--)
    body = stmt_let(context, vars[i], combined_of(a, reducer, i, own, other), body);
  for (int i = a->count - 1; i >= 0; i--)
    body = stmt_let(context, other[i], exchanged(a, "tvm_warp_shuffle_down", i, step, width), body);
  return body;
}

static void push(const Allreduce *a, PtrArray *out, Stmt *s) {
  array_push(&a->context->arena, out, s);
}

static void push_warp_levels(const Allreduce *a, PtrArray *out, const Expr *reducer, int64_t lanes,
                             int64_t width) {
  for (int64_t step = lanes / 2; step >= 1; step /= 2)
    push(a, out, warp_level(a, reducer, step, width));
}

// Stores the values of the threads for which `column` is a multiple of `every` to shared memory, at
// their number among these; then all wait.
static void push_shared(const Allreduce *a, PtrArray *out, int64_t every) {
  Context *context = a->context;
  Stmt *stores[MOST_VALUES];
  Expr *index = expr_add(context, expr_mul(context, a->row, number_of(a, a->columns / WARP)),
                         expr_floor_div(context, a->column, number_of(a, WARP)));
  for (int i = 0; i < a->count; i++)
    stores[i] = stmt_store(context, a->shared[i], &index, 1, own_value(a, i));
  Expr *lane =
      every == a->columns ? a->column : expr_floor_mod(context, a->column, number_of(a, every));
  Expr *is_first = expr_binary(context, EXPR_EQ, lane, number_of(a, 0));
  push(a, out, stmt_if(context, is_first, stmt_seq(context, stores, a->count), NULL));
  push(a, out, stmt_barrier(context, "shared"));
}

// The value of a warp of this row in shared memory.
static Expr *warp_value(const Allreduce *a, int i, Expr *warp) {
  Context *context = a->context;
  Expr *index = expr_add(context, expr_mul(context, a->row, number_of(a, a->columns / WARP)), warp);
  return expr_load(context, a->shared[i], &index, 1);
}

static Stmt *result_store(const Allreduce *a, int i, Expr *value) {
  const Expr *place = a->places[i];
  return stmt_store(a->context, place->as.buffer, (Expr **)place->args, place->count, value);
}

// Combines the values of the warps of a row, which its first warp reads from shared memory.
static void push_warps(const Allreduce *a, PtrArray *out, const Expr *reducer) {
  Context *context = a->context;
  int64_t warps = a->columns / WARP, lanes = 1;
  while (lanes < warps) lanes *= 2;
  push_shared(a, out, WARP);
  for (int i = 0; i < a->count; i++) {
    Expr *has = expr_lt(context, a->column, number_of(a, warps));
    Expr *value = warp_value(a, i, a->column);
    push(a, out, own_store(a, i, expr_if_then_else(context, has, value, a->identities[i])));
  }
  push(a, out, stmt_barrier(context, "shared"));
  push_warp_levels(a, out, reducer, lanes, WARP);
  push_shared(a, out, a->columns);
  for (int i = 0; i < a->count; i++)
    push(a, out, result_store(a, i, warp_value(a, i, number_of(a, 0))));
  push(a, out, stmt_barrier(context, "shared"));
}

static Buffer **buffers_of(const Allreduce *a, int64_t count, const char *name, const char *scope) {
  Buffer **buffers = arena_array(&a->context->arena, Buffer *, a->count);
  Expr *size = number_of(a, count);
  for (int i = 0; i < a->count; i++)
    buffers[i] = buffer_new(a->context, name, a->places[i]->as.buffer->type, &size, 1, scope);
  return buffers;
}

static Stmt *make_exchanges(Allreduce *a, const ThreadReduction *r) {
  Context *context = a->context;
  PtrArray body = {0};
  int64_t width = MIN_OF(a->columns, WARP);
  bool one_warp = a->columns == width;
  Expr *mask = r->has_masks ? expr_var(context, "mask", DTYPE(TYPE_UINT, 32)) : NULL;
  a->own = buffers_of(a, 1, "reduced", "local");
  a->mask = mask ? mask : number_of(a, 0);
  if (!one_warp) a->shared = buffers_of(a, a->rows * a->columns / WARP, "of_warps", "shared");
  for (int i = 0; i < a->count; i++) {
    Expr *value = expr_if_then_else(context, a->condition, a->values[i], a->identities[i]);
    push(a, &body, own_store(a, i, value));
  }
  push_warp_levels(a, &body, r->reducer, width, width);
  for (int i = 0; i < a->count && one_warp; i++)
    push(a, &body, result_store(a, i, exchanged(a, "tvm_warp_shuffle", i, 0, width)));
  if (!one_warp) push_warps(a, &body, r->reducer);
  Stmt *all = stmt_seq(context, (Stmt **)body.items, body.count);
  Expr *active = expr_raw(context, EXPR_INTRINSIC, DTYPE(TYPE_UINT, 32),
                          str_intern(context, "tvm_warp_activemask"), NULL, 0);
  if (mask) all = stmt_let(context, mask, active, all);
  for (int i = a->count - 1; i >= 0; i--) {
    all = stmt_allocate(context, a->own[i], all);
    if (!one_warp) all = stmt_allocate(context, a->shared[i], all);
  }
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
  if (!read_call(r, &a, s->as.evaluate)) return s;
  return a.in_warps ? make_exchanges(&a, r) : make_tree(&a, r->reducer);
}

static bool add_axis(Visitor *visitor, Stmt *s) {
  int axis =
      s->kind == STMT_FOR && s->as.loop.kind == LOOP_THREAD ? dimension_of(s->as.loop.thread) : -1;
  if (axis >= 0) *(int *)visitor->env |= 1 << axis;
  return true;
}

static const Expr *entry_of(const Expr *dictionary, const char *key) {
  for (int i = 0; i + 1 < dictionary->count; i += 2)
    if (!strcmp(dictionary->args[i]->as.s, key)) return dictionary->args[i + 1];
  return NULL;
}

// Finds in the target of the function whether warps of its device exchange values.
static void find_warps(ThreadReduction *r, const PrimFunc *func) {
  const Expr *target = attrs_get(&func->attrs, "target");
  if (!target || !expr_is_target(target)) return;
  const Expr *config = target_normal_form(r->context, target);
  const Expr *kind = entry_of(config, "kind"), *size = entry_of(config, "thread_warp_size"),
             *groups = entry_of(config, "supports_subgroups");
  if (!kind || kind->op != EXPR_STRING) return;
  r->has_masks = !strcmp(kind->as.s, "cuda") || !strcmp(kind->as.s, "rocm");
  int64_t flag;
  bool has_groups = groups && expr_as_int(groups, &flag) && flag;
  r->has_warps = has_groups || ((r->has_masks || !strcmp(kind->as.s, "metal")) && size &&
                                expr_is_int(size, WARP));
  visit_stmt(&(Visitor){.env = &r->launched, .enter_stmt = add_axis}, func->body);
}

PrimFunc *lower_thread_allreduce(LowerState *state, PrimFunc *func) {
  ThreadReduction reduction = {.context = state->context,
                               .owners = map_new(&state->context->arena)};
  find_warps(&reduction, func);
  Rewriter rewriter = {.env = &reduction, .enter_stmt = write_out, .buffer = lower_keep_buffer};
  return lower_rewrite(state, func, &rewriter);
}
