// SPDX-License-Identifier: Apache-2.0
// Lets allocations whose values are never needed at the same time share memory (TVM's
// StorageRewrite), on buffers of any rank:
//
//   A = allocate(200)                   A = allocate(200)
//   for i: A[i] = …                     for i: A[i] = …
//   for i: C[i] = A[i]              →   for i: C[i] = A[i]
//   B = allocate(7, 20)                 B = decl_buffer((7, 20), data=A.data)
//   for i, j: B[i, j] = …               for i, j: B[i, j] = …
//
// An allocation is alive from the first statement that accesses it to the last one. A loop inside
// of the allocation counts as one statement, because values may stay from one iteration to the
// next; a loop around it does not, because each iteration has new memory. The last statement of one
// allocation may be the first one of another, as in C[i] = A[i] above, where it is proved to store
// over elements that are not read any more (overwrite.c). The allocation with the most elements
// stays, and moves out of all loops whose iterations run in order and do not change its size.
// Element type and scope must be the same, and iterations that may run at the same time share
// nothing: memory that threads of a block share stays as it is where it is allocated inside of a
// loop over them. An allocation that nothing accesses goes.
#include "lower/races.h"

#include <stdlib.h>

typedef struct Shelf Shelf;

typedef struct Lifetime { // of an allocation
  Stmt *allocate;
  int begin, end; // numbers of statements; begin > end: it is never accessed
  int loops;      // how many loops are around it
  int loop;       // number of the innermost one, or -1
  int parallel;   // number of the innermost loop around it whose iterations may run together
  Stmt **path;    // the statements around it and itself, from the outside in,
  int *numbers;   // and their numbers
  int depth;
  int64_t size; // in elements; 0: not constant
  bool excluded;
  Shelf *shelf;
} Lifetime;

struct Shelf { // allocations that share memory
  Array(Lifetime *) items;
  Lifetime *largest;
  int depth; // of the innermost statement around all of them, on each of their paths
};

typedef struct OpenLoop {
  int number;
  PtrArray accessed; // Lifetime* of the allocations around it
} OpenLoop;

typedef struct Reuse {
  Context *context;
  Map lifetimes; // data variable → Lifetime*
  Array(Stmt *) path;
  Array(int) numbers, parallel;
  Array(OpenLoop) loops;
  Stmt *current;
  int number; // of the next statement
  PtrArray all; // the statements by their numbers,
  Array(int) last; // and the number of the last statement in each
  Map moved;  // number + 1 → PtrArray* of Shelf*: allocations that move around the statement
  Map data;   // data variable → the one of the allocation that stays
} Reuse;

// ---- Lifetimes

static void note_access(Reuse *reuse, const Expr *data) {
  Lifetime *life = map_find(&reuse->lifetimes, data);
  if (!life) return;
  int now = reuse->number - 1;
  if (reuse->loops.count > life->loops) {
    OpenLoop *loop = &reuse->loops.items[life->loops];
    life->begin = MIN_OF(life->begin, loop->number);
    array_push(&reuse->context->arena, &loop->accessed, life);
  } else {
    life->begin = MIN_OF(life->begin, now);
    life->end = MAX_OF(life->end, now);
  }
}

// Whether the statement may keep a pointer, or names memory without accessing it.
static bool keeps_pointer(const Stmt *s) {
  return s->kind == STMT_ATTR || (s->kind == STMT_LET && s->as.let.var->type.code == TYPE_HANDLE) ||
         (s->kind == STMT_STORE && s->as.store.value->type.code == TYPE_HANDLE);
}

static void note_pointer(Reuse *reuse, const Expr *data) {
  Lifetime *life = map_find(&reuse->lifetimes, data);
  if (life && keeps_pointer(reuse->current)) life->excluded = true;
  note_access(reuse, data);
}

static bool access_in_expr(Visitor *visitor, Expr *e) {
  if (e->op == EXPR_LOAD) note_access(visitor->env, e->as.buffer->data);
  if (e->op == EXPR_VAR && e->as.var->scope) note_pointer(visitor->env, e);
  if (e->op == EXPR_ADDRESS_OF) note_pointer(visitor->env, e->args[0]->as.buffer->data);
  return true;
}

static int64_t constant_size(const Stmt *allocate) {
  int64_t size = 1, extent;
  for (int i = 0; i < allocate->as.allocate.rank; i++)
    if (!expr_as_int(allocate->as.allocate.extents[i], &extent) || extent < 1 ||
        !mul_fits(size, extent, &size))
      return 0;
  return size;
}

static bool is_excluded(const Stmt *allocate) {
  const Stmt *below = allocate->as.allocate.body;
  return allocate->as.allocate.annotations.count || below->kind != STMT_DECL_BUFFER ||
         below->as.declare.buffer->data != allocate->as.allocate.var;
}

// Threads that run at once, and share the memory, are not all done with it when one of them is.
static bool is_shared_by_threads(const Reuse *reuse, const Stmt *allocate) {
  const char *scope = allocate->as.allocate.var->as.var->scope;
  for (int i = 0; i < reuse->path.count; i++) {
    const Stmt *s = reuse->path.items[i];
    if (s->kind == STMT_FOR && s->as.loop.kind == LOOP_THREAD &&
        scope_is_shared_by(scope, s->as.loop.thread))
      return true;
  }
  return false;
}

static int innermost_loop(const Reuse *reuse) {
  return reuse->loops.count ? reuse->loops.items[reuse->loops.count - 1].number : -1;
}

static void begin_lifetime(Reuse *reuse, Stmt *s) {
  Arena *arena = &reuse->context->arena;
  Lifetime *life = arena_new(arena, Lifetime);
  int depth = reuse->path.count, parallel = reuse->parallel.count;
  *life = (Lifetime){.allocate = s,
                     .begin = INT32_MAX,
                     .end = -1,
                     .loops = reuse->loops.count,
                     .loop = innermost_loop(reuse),
                     .parallel = parallel ? reuse->parallel.items[parallel - 1] : -1,
                     .depth = depth,
                     .size = constant_size(s),
                     .excluded = is_excluded(s) || is_shared_by_threads(reuse, s)};
  life->path = arena_copy(arena, reuse->path.items, sizeof(Stmt *) * (size_t)depth);
  life->numbers = arena_copy(arena, reuse->numbers.items, sizeof(int) * (size_t)depth);
  Lifetime *known = map_find(&reuse->lifetimes, s->as.allocate.var);
  if (known) known->excluded = life->excluded = true;
  if (!known) map_put(&reuse->lifetimes, s->as.allocate.var, life);
}

static bool is_concurrent(const Stmt *s) {
  return s->kind == STMT_FOR && !loop_is_ordered(s);
}

static bool enter_stmt(Visitor *visitor, Stmt *s) {
  Reuse *reuse = visitor->env;
  Arena *arena = &reuse->context->arena;
  int number = reuse->number++;
  reuse->current = s;
  array_push(arena, &reuse->all, s);
  array_push(arena, &reuse->last, number);
  array_push(arena, &reuse->path, s);
  array_push(arena, &reuse->numbers, number);
  if (s->kind == STMT_FOR || s->kind == STMT_WHILE)
    array_push(arena, &reuse->loops, ((OpenLoop){.number = number}));
  if (is_concurrent(s)) array_push(arena, &reuse->parallel, number);
  if (s->kind == STMT_STORE) note_access(reuse, s->as.store.buffer->data);
  if (s->kind == STMT_ALLOCATE) begin_lifetime(reuse, s);
  return true;
}

static void leave_stmt(Visitor *visitor, Stmt *s) {
  Reuse *reuse = visitor->env;
  reuse->path.count--;
  reuse->last.items[reuse->numbers.items[--reuse->numbers.count]] = reuse->number - 1;
  reuse->parallel.count -= is_concurrent(s);
  if (s->kind != STMT_FOR && s->kind != STMT_WHILE) return;
  const OpenLoop *loop = &reuse->loops.items[--reuse->loops.count];
  for (int i = 0; i < loop->accessed.count; i++) {
    Lifetime *life = loop->accessed.items[i];
    life->end = MAX_OF(life->end, reuse->number - 1);
  }
}

// ---- Which share memory

static bool same_extents(const Stmt *a, const Stmt *b) {
  bool same = a->as.allocate.rank == b->as.allocate.rank;
  for (int i = 0; same && i < a->as.allocate.rank; i++)
    same = a->as.allocate.extents[i] == b->as.allocate.extents[i];
  return same;
}

// Whether the last statement that accesses `a` is the first one that accesses `b`, and stores over
// elements that it does not read any more.
static bool ends_in_place(const Reuse *reuse, const Lifetime *a, const Lifetime *b) {
  const Stmt *x = a->allocate, *y = b->allocate;
  return a->loop == b->loop && a->begin <= b->begin && a->end <= reuse->last.items[b->begin] &&
         lower_may_overwrite(reuse->context, reuse->all.items[b->begin], x->as.allocate.var,
                             y->as.allocate.var);
}

static bool may_share(const Reuse *reuse, const Lifetime *a, const Lifetime *b) {
  const Stmt *x = a->allocate, *y = b->allocate;
  return a->parallel == b->parallel && dtype_equal(x->as.allocate.type, y->as.allocate.type) &&
         x->as.allocate.var->as.var->scope == y->as.allocate.var->as.var->scope &&
         ((a->size && b->size) || same_extents(x, y)) &&
         (a->end < b->begin || b->end < a->begin || ends_in_place(reuse, a, b) ||
          ends_in_place(reuse, b, a));
}

static bool fits_on(const Reuse *reuse, const Shelf *shelf, const Lifetime *life) {
  for (int i = 0; i < shelf->items.count; i++)
    if (!may_share(reuse, shelf->items.items[i], life)) return false;
  return true;
}

static int common_depth(const Lifetime *a, const Lifetime *b, int depth) {
  int common = 0;
  while (common < depth && common < b->depth && a->numbers[common] == b->numbers[common]) common++;
  return common;
}

static const Expr *bound_var(const Stmt *s) {
  return s->kind == STMT_FOR ? s->as.loop.var : s->kind == STMT_LET ? s->as.let.var : NULL;
}

// The sizes of the allocation may be computed around the statement at this depth of its path.
static bool may_move(const Lifetime *life, int depth) {
  for (int k = depth - 1; k < life->depth; k++) {
    const Expr *var = bound_var(life->path[k]);
    for (int i = 0; var && i < life->allocate->as.allocate.rank; i++)
      if (expr_uses(life->allocate->as.allocate.extents[i], var)) return false;
  }
  return true;
}

static int64_t growth(const Shelf *shelf, const Lifetime *life) {
  return llabs(shelf->largest->size - life->size);
}

static void put_on_shelf(const Reuse *reuse, PtrArray *shelves, Lifetime *life) {
  Context *context = reuse->context;
  Shelf *best = NULL;
  for (int i = 0; i < shelves->count; i++) {
    Shelf *shelf = shelves->items[i];
    int depth = common_depth(shelf->items.items[0], life, shelf->depth);
    const Lifetime *largest = life->size > shelf->largest->size ? life : shelf->largest;
    if (fits_on(reuse, shelf, life) && may_move(largest, depth) &&
        (!best || growth(shelf, life) < growth(best, life)))
      best = shelf;
  }
  if (!best) {
    best = arena_new(&context->arena, Shelf);
    *best = (Shelf){.largest = life, .depth = life->depth};
    array_push(&context->arena, shelves, best);
  } else {
    best->depth = common_depth(best->items.items[0], life, best->depth);
    if (life->size > best->largest->size) best->largest = life;
  }
  array_push(&context->arena, &best->items, life);
  life->shelf = best;
}

static int by_begin(const void *a, const void *b) {
  const Lifetime *x = *(Lifetime *const *)a, *y = *(Lifetime *const *)b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return x->numbers[x->depth - 1] - y->numbers[y->depth - 1];
}

static int moves_to(const Shelf *shelf) {
  return shelf->largest->numbers[shelf->depth - 1];
}

static bool stays(const Lifetime *life) {
  return life->shelf->largest == life && moves_to(life->shelf) == life->numbers[life->depth - 1];
}

// Only such a size is computed outside of a loop: memory that others read may change in the loop,
// and a division may fail that would never run.
static bool has_plain_size(const Stmt *allocate) {
  bool plain = true;
  for (int i = 0; i < allocate->as.allocate.rank; i++) {
    const Expr *extent = allocate->as.allocate.extents[i];
    plain &= extent->op == EXPR_INT || extent->op == EXPR_VAR;
  }
  return plain;
}

// The depth of the outermost loop that the largest allocation of the shelf may leave.
static int depth_outside(const Shelf *shelf) {
  const Lifetime *life = shelf->largest;
  int depth = shelf->depth;
  for (int k = shelf->depth; has_plain_size(life->allocate) && k >= 1; k--) {
    const Stmt *s = life->path[k - 1];
    if (is_concurrent(s) || !may_move(life, k)) break;
    if (s->kind == STMT_FOR || s->kind == STMT_WHILE) depth = k;
  }
  return depth;
}

static void note_shelf(Reuse *reuse, Shelf *shelf) {
  Arena *arena = &reuse->context->arena;
  shelf->depth = depth_outside(shelf);
  for (int i = 0; shelf->items.count > 1 && i < shelf->items.count; i++)
    map_put(&reuse->data, shelf->items.items[i]->allocate->as.allocate.var,
            shelf->largest->allocate->as.allocate.var);
  if (stays(shelf->largest)) return;
  uint64_t key = (uint64_t)moves_to(shelf) + 1;
  PtrArray *list = map_get(&reuse->moved, key);
  if (!list) map_set(&reuse->moved, key, list = arena_new(arena, PtrArray));
  array_push(arena, list, shelf);
}

static void find_shelves(Reuse *reuse) {
  Arena *arena = &reuse->context->arena;
  Array(Lifetime *) lives = {0};
  PtrArray shelves = {0};
  for (int i = 0; i < reuse->lifetimes.count; i++) {
    Lifetime *life = reuse->lifetimes.entries[i].value;
    if (!life->excluded && life->begin <= life->end) array_push(arena, &lives, life);
  }
  if (lives.count) qsort(lives.items, (size_t)lives.count, sizeof(Lifetime *), by_begin);
  for (int i = 0; i < lives.count; i++) put_on_shelf(reuse, &shelves, lives.items[i]);
  for (int i = 0; i < shelves.count; i++) note_shelf(reuse, shelves.items[i]);
}

// ---- Rewriting

static Expr *shared_data(Rewriter *rewriter, Expr *e) {
  Expr *data = e->op == EXPR_VAR ? map_find(&((Reuse *)rewriter->env)->data, e) : NULL;
  return data ? data : e;
}

// The body of an allocation that goes. The declaration below stays, unless it moves along.
static Stmt *without_allocation(Rewriter *rewriter, Stmt *s, const Lifetime *life) {
  Stmt *below = lower_body(s);
  if (life->shelf->largest != life) return rewrite_stmt(rewriter, below);
  ((Reuse *)rewriter->env)->number++;
  return rewrite_stmt(rewriter, lower_body(below));
}

static Stmt *allocated_around(Context *context, const PtrArray *shelves, Stmt *s) {
  for (int i = 0; shelves && i < shelves->count; i++) {
    const Shelf *shelf = shelves->items[i];
    const Stmt *allocate = shelf->largest->allocate;
    s = lower_with_body(context, allocate, lower_with_body(context, lower_body(allocate), s));
  }
  return s;
}

// Whether the statement allocates or declares memory that nothing accesses.
static bool is_unused(const Reuse *reuse, const Stmt *s) {
  const Expr *data = s->kind == STMT_ALLOCATE      ? s->as.allocate.var
                     : s->kind == STMT_DECL_BUFFER ? s->as.declare.buffer->data
                                                   : NULL;
  const Lifetime *life = data ? map_find(&reuse->lifetimes, data) : NULL;
  return life && !life->excluded && life->begin > life->end;
}

static Stmt *enter_rewritten(Rewriter *rewriter, Stmt *s) {
  Reuse *reuse = rewriter->env;
  const PtrArray *shelves = map_get(&reuse->moved, (uint64_t)++reuse->number);
  if (is_unused(reuse, s)) return rewrite_stmt(rewriter, lower_body(s));
  const Lifetime *life =
      s->kind == STMT_ALLOCATE ? map_find(&reuse->lifetimes, s->as.allocate.var) : NULL;
  bool goes = life && life->shelf && !stays(life);
  if (!shelves && !goes) return NULL;
  Stmt *next = goes ? without_allocation(rewriter, s, life) : rewrite_stmt_children(rewriter, s);
  return allocated_around(rewriter->context, shelves, next);
}

static Stmt *reuse_in(LowerState *state, const PrimFunc *func, Stmt *s) {
  Context *context = state->context;
  Arena *arena = &context->arena;
  Reuse reuse = {.context = context,
                 .lifetimes = map_new(arena),
                 .moved = map_new(arena),
                 .data = map_new(arena)};
  Visitor visitor = {.env = &reuse,
                     .enter_expr = access_in_expr,
                     .enter_stmt = enter_stmt,
                     .leave_stmt = leave_stmt};
  visit_stmt(&visitor, s);
  Lifetime *of_guards = func->guards ? map_find(&reuse.lifetimes, func->guards->data) : NULL;
  if (of_guards) of_guards->excluded = true;
  find_shelves(&reuse);
  reuse.number = 0;
  Rewriter rewriter = {
      .context = context, .env = &reuse, .expr = shared_data, .enter_stmt = enter_rewritten};
  return rewrite_stmt(&rewriter, s);
}

PrimFunc *lower_reuse_allocations(LowerState *state, PrimFunc *func) {
  return lower_in_regions(state, func, reuse_in);
}
