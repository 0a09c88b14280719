// SPDX-License-Identifier: Apache-2.0
// Gives a buffer one more axis, before its others, for passes that need several copies of its
// memory: one for each virtual thread, or one for each half of a double buffer.
//
//   B: (4, 8), B[i, j]   →   B_1: (2, 4, 8), B_1[k, i, j]
#include "lower/pass.h"

typedef struct AddedAxis {
  const Buffer *from;
  Buffer *to;
  Expr *first; // index along the new axis
} AddedAxis;

// Row-major memory with an axis in front holds copies of the memory one after the other.
Buffer *lower_with_first_axis(Context *context, const Buffer *buffer, Expr *extent) {
  Arena *arena = &context->arena;
  Buffer *next = buffer_copy(context, buffer);
  next->rank = buffer->rank + 1;
  next->shape = arena_array(arena, Expr *, next->rank);
  next->shape[0] = extent;
  for (int i = 0; i < buffer->rank; i++) next->shape[i + 1] = buffer->shape[i];
  next->separators = arena_array(arena, int, buffer->separator_count + 1);
  for (int i = 0; i < buffer->separator_count; i++) next->separators[i] = buffer->separators[i] + 1;
  next->layout = NULL;
  next->logical = NULL;
  return next;
}

static Expr **with_first(Context *context, Expr *first, Expr *const *indices, int rank) {
  Expr **next = arena_array(&context->arena, Expr *, rank + 1);
  next[0] = first;
  for (int i = 0; i < rank; i++) next[i + 1] = indices[i];
  return next;
}

static Expr *index_load(Rewriter *rewriter, Expr *e) {
  const AddedAxis *axis = rewriter->env;
  if (e->op != EXPR_LOAD || e->as.buffer != axis->from) return e;
  Expr **indices = with_first(rewriter->context, axis->first, e->args, e->count);
  return expr_load_like(rewriter->context, e, axis->to, indices, e->count + 1);
}

static Stmt *index_stmt(Rewriter *rewriter, Stmt *s) {
  const AddedAxis *axis = rewriter->env;
  bool stores = s->kind == STMT_STORE && s->as.store.buffer == axis->from;
  if (!stores && !(s->kind == STMT_DECL_BUFFER && s->as.declare.buffer == axis->from)) return s;
  Stmt *next = stmt_copy(rewriter->context, s);
  if (stores) {
    next->as.store.buffer = axis->to;
    next->as.store.rank++;
    next->as.store.indices =
        with_first(rewriter->context, axis->first, s->as.store.indices, s->as.store.rank);
  } else {
    next->as.declare.buffer = axis->to;
  }
  return next;
}

Stmt *lower_index_first(Context *context, Stmt *s, const Buffer *from, Buffer *to, Expr *first) {
  AddedAxis axis = {from, to, first};
  Rewriter rewriter = {.context = context,
                       .env = &axis,
                       .expr = index_load,
                       .stmt = index_stmt,
                       .buffer = lower_keep_buffer};
  return rewrite_stmt(&rewriter, s);
}

// ---- Memory with one description

typedef struct AllocationUse {
  const Stmt *allocate;
  int declarations;
  bool has_address;
} AllocationUse;

static bool use_in_expr(Visitor *visitor, Expr *e) {
  AllocationUse *use = visitor->env;
  const Expr *data = use->allocate->as.allocate.var;
  if (e == data) use->has_address = true;
  if (e->op == EXPR_ADDRESS_OF && e->args[0]->as.buffer->data == data) use->has_address = true;
  return true;
}

static bool use_in_stmt(Visitor *visitor, Stmt *s) {
  AllocationUse *use = visitor->env;
  if (s->kind == STMT_DECL_BUFFER)
    use->declarations += s->as.declare.buffer->data == use->allocate->as.allocate.var;
  if (s->kind != STMT_ATTR) return true;
  visit_stmt(visitor, lower_body(s)); // an attribute names memory and does not access it
  return false;
}

Buffer *lower_sole_buffer(const Stmt *allocate) {
  Stmt *below = allocate->as.allocate.body;
  if (below->kind != STMT_DECL_BUFFER) return NULL;
  Buffer *buffer = below->as.declare.buffer;
  bool whole = buffer->data == allocate->as.allocate.var && !buffer->strides &&
               expr_is_int(buffer->offset, 0) && buffer->rank == allocate->as.allocate.rank &&
               dtype_equal(buffer->type, allocate->as.allocate.type);
  for (int i = 0; whole && i < buffer->rank; i++)
    whole = buffer->shape[i] == allocate->as.allocate.extents[i];
  AllocationUse use = {.allocate = allocate};
  visit_stmt(&(Visitor){.env = &use, .enter_expr = use_in_expr, .enter_stmt = use_in_stmt}, below);
  return whole && use.declarations == 1 && !use.has_address ? buffer : NULL;
}

Stmt *lower_allocate_with(Context *context, const Stmt *allocate, Buffer *buffer, Stmt *body) {
  Stmt *next = lower_with_body(context, allocate, body);
  next->as.allocate.rank = buffer->rank;
  next->as.allocate.extents = buffer->shape;
  return next;
}
