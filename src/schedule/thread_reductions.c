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
// Reductions in which loops of the data stand inside of them stay as they are, and so do those with
// several results. The name of TVM's pass: LowerCrossThreadReduction.
#include "schedule/internal.h"

typedef struct BoundReduction {
  Schedule *schedule;
  Path path;
  const Block *block;
  int outer, inner; // depths of the outermost loop of the reduction, and of its innermost threads
  ReductionUpdate update;
  Expr *neutral;
  ExprArray outside; // conjuncts of the predicate without variables of these loops
  ExprArray threads; // variables of the loops over threads
  Buffer *partial, *total;
} BoundReduction;

static bool uses(const Block *block, IterKind kind, const Stmt *loop) {
  for (int i = 0; i < block->var_count; i++)
    if (block->vars[i].kind == kind && expr_uses(block->vars[i].binding, loop->as.loop.var))
      return true;
  return false;
}

static bool is_over_threads(const Stmt *s) {
  bool is_block;
  return s->kind == STMT_FOR && loop_thread_axis(s, &is_block) >= 0 && !is_block;
}

// Finds the loops of the reduction. False where none is over threads.
static bool find_loops(BoundReduction *r) {
  const Path *path = &r->path;
  r->outer = r->inner = -1;
  for (int i = path_scope(path, path->count - 1) + 1; i < path->count - 1; i++) {
    const Stmt *s = path->items[i];
    if (s->kind != STMT_FOR || !uses(r->block, ITER_REDUCTION, s)) continue;
    if (r->outer < 0) r->outer = i;
    if (!is_over_threads(s)) continue;
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
    if (s->kind != STMT_FOR || uses(r->block, ITER_SPATIAL, s)) return false;
    bool serial = s->as.loop.kind == LOOP_SERIAL || s->as.loop.kind == LOOP_UNROLLED;
    if (!uses(r->block, ITER_REDUCTION, s) || (!serial && !is_over_threads(s))) return false;
  }
  return true;
}

// True when no other block within the loops uses the result.
static bool is_alone(const BoundReduction *r, const Buffer *result) {
  StmtArray blocks = {0};
  blocks_all(&r->schedule->context->arena, r->path.items[r->outer], &blocks);
  for (int i = 0; i < blocks.count; i++) {
    const Block *other = blocks.items[i]->as.block;
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

static bool read_reduction(BoundReduction *r) {
  Context *context = r->schedule->context;
  const Block *block = r->block;
  const Stmt *init = block->init, *body = block->body;
  if (!init || init->kind != STMT_STORE || body->kind != STMT_STORE || block->alloc_count ||
      block->match_count || !find_loops(r) || !loops_fit(r) || !reduction_update(block, &r->update))
    return false;
  const Buffer *result = body->as.store.buffer;
  r->neutral = reduction_neutral(context, r->update.op, result->type);
  return !r->update.condition && r->neutral && init->as.store.buffer == result &&
         block_same_element(block, init->as.store.indices, body->as.store.indices, result->rank) &&
         is_alone(r, result) && divide_predicate(r);
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

static Buffer *new_buffer(const BoundReduction *r, const char *suffix) {
  Context *context = r->schedule->context;
  const Buffer *result = r->block->body->as.store.buffer;
  Expr *one = expr_index(context, 1);
  return buffer_new(context, arena_printf(&context->arena, "%s_%s", result->name, suffix),
                    result->type, &one, 1, "local");
}

// A difference is a sum of the terms, which is subtracted in the end.
static ExprOp combining(const BoundReduction *r) {
  return r->update.op == EXPR_SUB ? EXPR_ADD : r->update.op;
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

// Reduces the terms of one thread, in the loops inside of those over threads.
static Stmt *reduce_in_thread(const BoundReduction *r, const Map *bindings) {
  Context *context = r->schedule->context;
  Expr *term = substitute_expr(context, r->update.term, bindings);
  Expr *value = expr_binary(context, combining(r), only_element(context, r->partial), term);
  Stmt *s = store_only(context, r->partial, value);
  s = stmt_if(context, r->block->predicate, s, NULL);
  return in_loops(r, r->inner - 1, false, path_with_end(context, &r->path, r->inner + 1, s));
}

// with T.attr(T.comm_reducer(lambda x, y: x + y, [0]), "reduce_scope", 0):
//     T.tvm_thread_allreduce(1, partial[0], True, total[0], k1, …)
static Stmt *reduce_over_threads(const BoundReduction *r) {
  Context *context = r->schedule->context;
  DType type = r->partial->type;
  Expr *x = expr_var(context, "x", type), *y = expr_var(context, "y", type);
  Expr *lambda[] = {x, y, expr_binary(context, combining(r), x, y)};
  Expr *neutral = r->neutral;
  Expr *reducer[] = {expr_raw(context, EXPR_LAMBDA, DTYPE_VOID, NULL, lambda, 3),
                     expr_raw(context, EXPR_TUPLE, DTYPE_VOID, NULL, &neutral, 1)};
  int count = 4 + r->threads.count;
  Expr **args = arena_array(&context->arena, Expr *, count);
  args[0] = expr_int(context, DTYPE_INT32, 1);
  args[1] = only_element(context, r->partial);
  args[2] = expr_bool(context, true);
  args[3] = only_element(context, r->total);
  for (int i = 0; i < r->threads.count; i++) args[4 + i] = r->threads.items[i];
  Expr *call = expr_raw(context, EXPR_INTRINSIC, DTYPE_VOID,
                        str_intern(context, "tvm_thread_allreduce"), args, count);
  Expr *object =
      expr_raw(context, EXPR_OBJECT, DTYPE_HANDLE, str_intern(context, "comm_reducer"), reducer, 2);
  return stmt_attr(context, "reduce_scope", object, expr_int(context, DTYPE_INT32, 0),
                   stmt_evaluate(context, call));
}

// The first of the threads stores the result, combined with the first value.
static Stmt *store_result(const BoundReduction *r, const Map *bindings) {
  Context *context = r->schedule->context;
  const Stmt *store = r->block->body;
  Expr *total = only_element(context, r->total);
  Expr *first = substitute_expr(context, r->block->init->as.store.value, bindings);
  Expr *value = first == r->neutral && r->update.op != EXPR_SUB
                    ? total
                    : expr_binary(context, r->update.op, first, total);
  int rank = store->as.store.rank;
  Expr **indices = arena_array(&context->arena, Expr *, rank + 1);
  for (int d = 0; d < rank; d++)
    indices[d] = substitute_expr(context, store->as.store.indices[d], bindings);
  Expr *chosen = r->outside.count ? expr_conjunction(context, &r->outside) : NULL;
  for (int i = 0; i < r->threads.count; i++) {
    Expr *zero = expr_int(context, r->threads.items[i]->type, 0);
    chosen =
        condition_and(context, chosen, expr_binary(context, EXPR_EQ, r->threads.items[i], zero));
  }
  return stmt_if(context, chosen, stmt_store(context, store->as.store.buffer, indices, rank, value),
                 NULL);
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
  block->alloc_count = 2;
  block->allocs = arena_array(&context->arena, Buffer *, 2);
  block->allocs[0] = r->partial;
  block->allocs[1] = r->total;
  return stmt_block(context, block_with_regions(context, block));
}

static void replace(BoundReduction *r) {
  Context *context = r->schedule->context;
  Map bindings = bindings_of(context, r->block);
  r->partial = new_buffer(r, "partial");
  r->total = new_buffer(r, "total");
  Stmt *steps[] = {store_only(context, r->partial, r->neutral), reduce_in_thread(r, &bindings),
                   reduce_over_threads(r), store_result(r, &bindings)};
  Stmt *block = block_of(r, stmt_seq(context, steps, COUNT_OF(steps)));
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
