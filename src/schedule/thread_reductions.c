// SPDX-License-Identifier: Apache-2.0
// Makes reductions over threads of reductions whose loops are bound to threads of a block:
//
//   for k0 in range(4):                    for k1 in threadIdx.x(32):
//     for k1 in threadIdx.x(32):             partial[0] = 0
//       block:                         →     for k0 in range(4):
//         init: B[i] = 0                       partial[0] = partial[0] + A[i, k0 * 32 + k1]
//         B[i] = B[i] + A[i, …]              tvm_thread_allreduce(partial[0], total[0], k1)
//                                            if k1 == 0: B[i] = total[0]
//
// Other statements, such as those of a producer, may stand inside of the innermost of these loops.
// Several results are reduced together. An argmax that keeps the first of equal elements also
// reduces the number of the iteration that an element is from, since threads are combined in
// another order. Reductions in which loops of the data stand inside of them stay as they are, and
// so do those over a number of threads that is not constant. The name of TVM's pass:
// LowerCrossThreadReduction.
#include "schedule/reduced_results.h"

enum { MOST_VALUES = MOST_RESULTS + 1 };

typedef struct BoundReduction {
  Schedule *schedule;
  Path path;
  const Block *block;
  int outer, inner; // depths of the outermost loop of the reduction, and of its innermost threads
  ReducedResults all;
  ExprArray outside; // conjuncts of the predicate without variables of these loops
  ExprArray threads; // variables of the loops over threads
  Expr *position;    // the number of the iteration, the last value; NULL: it is not needed
  int count;         // of the values that are reduced together
  Buffer *partial[MOST_VALUES], *total[MOST_VALUES];
} BoundReduction;

static bool is_over_threads(const Stmt *s) {
  bool is_block;
  return s->kind == STMT_FOR && loop_thread_axis(s, &is_block) >= 0 && !is_block;
}

// Finds the loops of the reduction. False where none is over threads, or perhaps over no threads,
// which would not store the init.
static bool find_loops(BoundReduction *r) {
  const Path *path = &r->path;
  r->outer = r->inner = -1;
  for (int i = path_scope(path, path->count - 1) + 1; i < path->count - 1; i++) {
    const Stmt *s = path->items[i];
    if (s->kind != STMT_FOR || !block_uses_loop(r->block, ITER_REDUCTION, s)) continue;
    if (r->outer < 0) r->outer = i;
    if (!is_over_threads(s)) continue;
    int64_t extent;
    if (!expr_as_int(s->as.loop.extent, &extent) || extent < 1) return false;
    r->inner = i;
    array_push(&r->schedule->context->arena, &r->threads, s->as.loop.var);
  }
  return r->inner >= 0;
}

// True when the loops over threads can be outermost: only loops of the reduction are around and
// inside of them, and down to the innermost of them nothing else.
static bool loops_fit(const BoundReduction *r) {
  for (int i = r->outer; i < r->path.count - 1; i++) {
    const Stmt *s = r->path.items[i];
    if (s->kind == STMT_SEQ && i > r->inner) continue;
    if (s->kind != STMT_FOR || block_uses_loop(r->block, ITER_SPATIAL, s)) return false;
    bool serial = s->as.loop.kind == LOOP_SERIAL || s->as.loop.kind == LOOP_UNROLLED;
    if (!block_uses_loop(r->block, ITER_REDUCTION, s) || (!serial && !is_over_threads(s)))
      return false;
  }
  return true;
}

// True when no other block within the loops uses the results.
static bool is_alone(const BoundReduction *r) {
  StmtArray blocks = {0};
  blocks_all(&r->schedule->context->arena, r->path.items[r->outer], &blocks);
  for (int i = 0; i < blocks.count; i++)
    for (int k = 0; k < r->all.count; k++) {
      const Block *other = blocks.items[i]->as.block;
      const Buffer *result = r->all.results[k].target;
      if (other != r->block &&
          (block_touches(other, result, true) || block_touches(other, result, false)))
        return false;
    }
  return true;
}

// Divides the predicate. False where a condition depends on loops of the reduction and others, so
// that it may leave elements without any iteration.
static bool divide_predicate(BoundReduction *r) {
  Context *context = r->schedule->context;
  ExprArray all = {0};
  if (expr_is_true(r->block->predicate)) return true;
  expr_conjuncts(context, r->block->predicate, &all);
  for (int i = 0; i < all.count; i++) {
    bool reduces = false, others = expr_reads_memory(all.items[i]);
    for (int k = 0; k < r->path.count - 1; k++) {
      const Stmt *s = r->path.items[k];
      if (s->kind != STMT_FOR || !expr_uses(all.items[i], s->as.loop.var)) continue;
      if (k >= r->outer)
        reduces = true;
      else
        others = true;
    }
    if (reduces && others) return false;
    if (!reduces) array_push(&context->arena, &r->outside, all.items[i]);
  }
  return true;
}

// Numbers the iterations in their order in the loops. False where the number is not proved to fit.
static bool number_iterations(BoundReduction *r) {
  Context *context = r->schedule->context;
  int64_t count = 1;
  Expr *number = expr_int(context, DTYPE_INT32, 0);
  for (int i = r->outer; i < r->path.count - 1; i++) {
    const Stmt *s = r->path.items[i];
    int64_t extent;
    if (s->kind != STMT_FOR) continue;
    if (!expr_as_int(s->as.loop.extent, &extent) || !mul_fits(count, extent, &count) ||
        count > INT32_MAX)
      return false;
    Expr *step = expr_cast(context, DTYPE_INT32, expr_sub(context, s->as.loop.var, s->as.loop.min));
    number = expr_mul(context, number, expr_int(context, DTYPE_INT32, extent));
    number = expr_add(context, number, step);
  }
  r->position = number;
  return true;
}

static bool read_reduction(BoundReduction *r) {
  Context *context = r->schedule->context;
  const Block *block = r->block;
  if (!block->init || block->alloc_count || block->match_count || !find_loops(r) || !loops_fit(r) ||
      !reduced_results_read(context, block, &r->all) || !is_alone(r) || !divide_predicate(r))
    return false;
  bool ordered = r->all.chooses && r->all.choice.among == EXPR_SELECT;
  if (ordered && !number_iterations(r)) return false;
  r->count = r->all.count + ordered;
  return true;
}

// ---- The new statements ----------------------------------------------------------------------

static Expr *only_element(Context *context, Buffer *buffer) {
  Expr *first = expr_index(context, 0);
  return expr_load(context, buffer, &first, 1);
}

static Stmt *store_only(Context *context, Buffer *buffer, Expr *value) {
  Expr *first = expr_index(context, 0);
  return stmt_store(context, buffer, &first, 1, value);
}

static DType value_type(const BoundReduction *r, int i) {
  return i < r->all.count ? r->all.results[i].target->type : DTYPE_INT32;
}

static Buffer *new_buffer(const BoundReduction *r, int i, const char *suffix) {
  Context *context = r->schedule->context;
  const char *name = i < r->all.count ? r->all.results[i].target->name : "position";
  Expr *one = expr_index(context, 1);
  return buffer_new(context, arena_printf(&context->arena, "%s_%s", name, suffix), value_type(r, i),
                    &one, 1, "local");
}

// Where a thread begins: a neutral element, or for an argmax the first value.
static Expr *start_of(const BoundReduction *r, int i, const Map *bindings) {
  Context *context = r->schedule->context;
  if (i == r->all.count) return expr_int(context, DTYPE_INT32, -1);
  const ReducedBuffer *result = &r->all.results[i];
  if (!r->all.chooses) return reduction_neutral(context, result->op, result->target->type);
  return substitute_expr(context, result->init->as.store.value, bindings);
}

// Value i of those in which a thread has two, `a` before `b` in the order of iterations where
// `is_next`. A difference is a sum of the terms, which is subtracted in the end.
static Expr *combined(const BoundReduction *r, int i, Expr *const *a, Expr *const *b,
                      bool is_next) {
  Context *context = r->schedule->context;
  if (!r->all.chooses && r->all.results[i].op == EXPR_SUB) return expr_add(context, a[i], b[i]);
  if (!r->position || (is_next && i < r->all.count)) return reduced_value(&r->all, i, a, b);
  Choice choice = r->all.choice;
  if (!is_next) choice.carried = r->all.count, choice.among = EXPR_LT;
  return expr_select(context, choice_keeps_first(context, &choice, a, b), a[i], b[i]);
}

// The statement in those loops of the reduction, from depth `inner` outwards, that are over
// threads, or in the others.
static Stmt *in_loops(const BoundReduction *r, int inner, bool over_threads, Stmt *s) {
  for (int i = inner; i >= r->outer; i--) {
    if (is_over_threads(r->path.items[i]) != over_threads) continue;
    Stmt *loop = stmt_copy(r->schedule->context, r->path.items[i]);
    loop->as.loop.body = s;
    s = loop;
  }
  return s;
}

// Stores all values at once.
static Stmt *store_all(const BoundReduction *r, Buffer *const *to, Expr *const *values) {
  Context *context = r->schedule->context;
  Stmt *stores[MOST_VALUES];
  Expr *names[MOST_VALUES];
  if (r->count == 1) return store_only(context, to[0], values[0]);
  for (int i = 0; i < r->count; i++) {
    names[i] = expr_var(context, "value", value_type(r, i));
    stores[i] = store_only(context, to[i], names[i]);
  }
  Stmt *s = stmt_seq(context, stores, r->count);
  for (int i = r->count - 1; i >= 0; i--) s = stmt_let(context, names[i], values[i], s);
  return s;
}

// Reduces the terms of one thread, in the loops inside of those over threads.
static Stmt *reduce_in_thread(const BoundReduction *r, const Map *bindings) {
  Context *context = r->schedule->context;
  Expr *loads[MOST_VALUES], *terms[MOST_VALUES], *values[MOST_VALUES];
  for (int i = 0; i < r->count; i++) {
    loads[i] = only_element(context, r->partial[i]);
    terms[i] =
        i < r->all.count ? substitute_expr(context, r->all.results[i].term, bindings) : r->position;
  }
  for (int i = 0; i < r->count; i++) values[i] = combined(r, i, loads, terms, true);
  Stmt *s = stmt_if(context, r->block->predicate, store_all(r, r->partial, values), NULL);
  return in_loops(r, r->inner - 1, false, path_with_end(context, &r->path, r->inner + 1, s));
}

// T.comm_reducer(lambda x, y: x + y, [0])
static Expr *reducer_of(const BoundReduction *r, const Map *bindings) {
  Context *context = r->schedule->context;
  Expr *lambda[2 * MOST_VALUES + 1], *values[MOST_VALUES], *starts[MOST_VALUES];
  for (int i = 0; i < r->count; i++) {
    DType type = value_type(r, i);
    bool alone = r->count == 1;
    lambda[i] = expr_var(context, alone ? "x" : arena_printf(&context->arena, "x%d", i), type);
    lambda[r->count + i] =
        expr_var(context, alone ? "y" : arena_printf(&context->arena, "y%d", i), type);
    starts[i] = start_of(r, i, bindings);
  }
  for (int i = 0; i < r->count; i++) values[i] = combined(r, i, lambda, lambda + r->count, false);
  lambda[2 * r->count] =
      r->count == 1 ? values[0] : expr_raw(context, EXPR_TUPLE, DTYPE_VOID, NULL, values, r->count);
  Expr *parts[] = {expr_raw(context, EXPR_LAMBDA, DTYPE_VOID, NULL, lambda, 2 * r->count + 1),
                   expr_raw(context, EXPR_TUPLE, DTYPE_VOID, NULL, starts, r->count)};
  return expr_raw(context, EXPR_OBJECT, DTYPE_HANDLE, str_intern(context, "comm_reducer"), parts,
                  2);
}

// with T.attr(T.comm_reducer(lambda x, y: x + y, [0]), "reduce_scope", 0):
//     T.tvm_thread_allreduce(1, partial[0], True, total[0], k1, …)
static Stmt *reduce_over_threads(const BoundReduction *r, const Map *bindings) {
  Context *context = r->schedule->context;
  int count = 2 * r->count + 2 + r->threads.count;
  Expr **args = arena_array(&context->arena, Expr *, count);
  args[0] = expr_int(context, DTYPE_INT32, r->count);
  args[r->count + 1] = expr_bool(context, true);
  for (int i = 0; i < r->count; i++) {
    args[1 + i] = only_element(context, r->partial[i]);
    args[r->count + 2 + i] = only_element(context, r->total[i]);
  }
  for (int i = 0; i < r->threads.count; i++) args[2 * r->count + 2 + i] = r->threads.items[i];
  Expr *call = expr_raw(context, EXPR_INTRINSIC, DTYPE_VOID,
                        str_intern(context, "tvm_thread_allreduce"), args, count);
  return stmt_attr(context, "reduce_scope", reducer_of(r, bindings),
                   expr_int(context, DTYPE_INT32, 0), stmt_evaluate(context, call));
}

// The result, combined with the first value, which an argmax has already.
static Expr *final_value(const BoundReduction *r, int i, const Map *bindings) {
  Context *context = r->schedule->context;
  const ReducedBuffer *result = &r->all.results[i];
  Expr *total = only_element(context, r->total[i]);
  Expr *first = substitute_expr(context, result->init->as.store.value, bindings);
  if (r->all.chooses || (first == start_of(r, i, bindings) && result->op != EXPR_SUB)) return total;
  return expr_binary(context, result->op, first, total);
}

// The first of the threads stores the results.
static Stmt *store_results(const BoundReduction *r, const Map *bindings) {
  Context *context = r->schedule->context;
  int rank = r->all.rank;
  Expr **indices = arena_array(&context->arena, Expr *, rank + 1);
  for (int d = 0; d < rank; d++) indices[d] = substitute_expr(context, r->all.indices[d], bindings);
  Stmt *stores[MOST_RESULTS];
  for (int i = 0; i < r->all.count; i++)
    stores[i] =
        stmt_store(context, r->all.results[i].target, indices, rank, final_value(r, i, bindings));
  Expr *chosen = r->outside.count ? expr_conjunction(context, &r->outside) : NULL;
  for (int i = 0; i < r->threads.count; i++) {
    Expr *zero = expr_int(context, r->threads.items[i]->type, 0);
    chosen =
        condition_and(context, chosen, expr_binary(context, EXPR_EQ, r->threads.items[i], zero));
  }
  return stmt_if(context, chosen, stmt_seq(context, stores, r->all.count), NULL);
}

// A block that does all this for one of the threads.
static Stmt *block_of(const BoundReduction *r, Stmt *body) {
  Context *context = r->schedule->context;
  Block *block = block_copy(context, r->block);
  block->vars = NULL;
  block->var_count = 0;
  block->predicate = expr_bool(context, true);
  block->init = NULL;
  block->body = body;
  block->alloc_count = 2 * r->count;
  block->allocs = arena_array(&context->arena, Buffer *, 2 * r->count);
  for (int i = 0; i < r->count; i++) {
    block->allocs[2 * i] = r->partial[i];
    block->allocs[2 * i + 1] = r->total[i];
  }
  return stmt_block(context, block_with_regions(context, block));
}

static void replace(BoundReduction *r) {
  Context *context = r->schedule->context;
  Map bindings = bindings_of(context, r->block);
  PtrArray steps = {0};
  for (int i = 0; i < r->count; i++) {
    r->partial[i] = new_buffer(r, i, "partial");
    r->total[i] = new_buffer(r, i, "total");
    Stmt *start = store_only(context, r->partial[i], start_of(r, i, &bindings));
    array_push(&context->arena, &steps, start);
  }
  array_push(&context->arena, &steps, reduce_in_thread(r, &bindings));
  array_push(&context->arena, &steps, reduce_over_threads(r, &bindings));
  array_push(&context->arena, &steps, store_results(r, &bindings));
  Stmt *block = block_of(r, stmt_seq(context, (Stmt **)steps.items, steps.count));
  Stmt *s = in_loops(r, r->inner, true, block);
  schedule_set_body(r->schedule, path_replace(context, &r->path, r->outer, s));
}

typedef struct ThreadInits {
  Arena *arena;
  PtrArray blocks;
  int thread_loops; // around the statement
} ThreadInits;

static bool collect_candidate(Visitor *visitor, Stmt *s) {
  ThreadInits *all = visitor->env;
  if (is_over_threads(s)) all->thread_loops++;
  if (s->kind == STMT_BLOCK && s->as.block->init && all->thread_loops)
    array_push(all->arena, &all->blocks, s->as.block);
  return true;
}

static void leave_loop(Visitor *visitor, Stmt *s) {
  if (is_over_threads(s)) ((ThreadInits *)visitor->env)->thread_loops--;
}

PrimFunc *schedule_reduce_over_threads(Context *context, PrimFunc *func) {
  Schedule *schedule = schedule_new(context, func);
  ThreadInits all = {.arena = &context->arena};
  Visitor visitor = {.env = &all, .enter_stmt = collect_candidate, .leave_stmt = leave_loop};
  bool changed = false;
  visit_stmt(&visitor, schedule_func(schedule)->body);
  for (int i = 0; i < all.blocks.count; i++) {
    BoundReduction r = {.schedule = schedule};
    const Block *block = all.blocks.items[i];
    if (!path_to_block(schedule, block->name, &r.path)) continue;
    r.block = path_end(&r.path)->as.block;
    if (!read_reduction(&r)) continue;
    replace(&r);
    changed = true;
  }
  return changed ? schedule_func(schedule) : func;
}
