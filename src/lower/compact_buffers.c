// SPDX-License-Identifier: Apache-2.0
// Shrinks an allocation inside of loops to the box that is accessed there, and shifts the indices.
//
//   for io in range(5):                           for io in range(5):
//     B = allocate(50, 8)                     →     B = allocate(10, 8)
//     for ii, j: B[io * 10 + ii, j] = ...           for ii, j: B[ii, j] = ...
//
// The box is the union of the regions that the statements access (arith/region.c). An axis keeps
// its extent where the box has no smaller constant extent. Memory that several buffers share, that
// has strides, or whose address is taken stays as it is. Then the axes that the allocation's
// annotation "buffer_dim_align" names are aligned (aligned_axes.c).
#include "lower/pass.h"

typedef struct Compaction {
  Context *context;
  Analyzer *analyzer;
  Map moved; // Buffer* → Shift*
  Map users; // data variable → how many buffers it has, and how often it is a value
} Compaction;

typedef struct Shift {
  Buffer *buffer;
  Expr **min; // subtracted from the indices
} Shift;

// ---- Memory that has one description only

static void count_user(Compaction *compaction, Expr *data) {
  intptr_t uses = (intptr_t)map_find(&compaction->users, data);
  map_put(&compaction->users, data, uses + 1);
}

static bool count_in_expr(Visitor *visitor, Expr *e) {
  if (e->op == EXPR_VAR && e->as.var->scope) count_user(visitor->env, e);
  if (e->op == EXPR_ADDRESS_OF) {
    count_user(visitor->env, e->args[0]->as.buffer->data);
    count_user(visitor->env, e->args[0]->as.buffer->data);
  }
  return true;
}

static bool count_in_stmt(Visitor *visitor, Stmt *s) {
  if (s->kind == STMT_DECL_BUFFER) count_user(visitor->env, s->as.declare.buffer->data);
  return true;
}

// The buffer declared directly below, when no other one accesses the memory; otherwise NULL.
static Buffer *sole_buffer(const Compaction *compaction, const Stmt *allocate) {
  const Stmt *below = allocate->as.allocate.body;
  if (below->kind != STMT_DECL_BUFFER) return NULL;
  Buffer *buffer = below->as.declare.buffer;
  bool sole = (intptr_t)map_find(&compaction->users, buffer->data) == 1;
  bool plain = !buffer->strides && expr_is_int(buffer->offset, 0);
  return sole && plain && buffer->data == allocate->as.allocate.var ? buffer : NULL;
}

// ---- The box

static bool accessed_box(Compaction *compaction, Stmt *body, const Buffer *buffer, Region *box) {
  RegionArray reads = {0}, writes = {0};
  bool found = false;
  stmt_regions(compaction->analyzer, body, &reads, &writes);
  for (int k = 0; k < 2; k++) {
    const RegionArray *regions = k ? &reads : &writes;
    for (int i = 0; i < regions->count; i++) {
      if (regions->items[i].buffer != buffer) continue;
      *box =
          found ? region_union(compaction->analyzer, box, &regions->items[i]) : regions->items[i];
      found = true;
    }
  }
  return found;
}

static bool shrink_axis(Compaction *compaction, const Buffer *buffer, const Region *box, int axis,
                        Expr **extent, Expr **min) {
  int64_t low, high, whole;
  *extent = buffer->shape[axis];
  *min = expr_int(compaction->context, box->min[axis]->type, 0);
  if (!analyzer_const_bounds(compaction->analyzer, box->extent[axis], &low, &high)) return false;
  if (high < 1 || (expr_as_int(*extent, &whole) && high >= whole)) return false;
  *extent = expr_int(compaction->context, (*extent)->type, high);
  *min = box->min[axis];
  return true;
}

// Gives the buffer the strides that the allocation's annotation asks for. False where it keeps its
// own.
static bool align_axes(Context *context, const Stmt *allocate, Buffer *buffer) {
  const Expr *items = attrs_get(&allocate->as.allocate.annotations, "buffer_dim_align");
  if (items && !buffer->separator_count)
    buffer->strides = lower_aligned_strides(context, buffer, items);
  return buffer->strides != NULL;
}

static Shift *find_shift(Compaction *compaction, const Stmt *allocate) {
  Buffer *buffer = sole_buffer(compaction, allocate);
  Region box;
  if (!buffer || !accessed_box(compaction, allocate->as.allocate.body, buffer, &box)) return NULL;
  Arena *arena = &compaction->context->arena;
  Shift *shift = arena_new(arena, Shift);
  *shift =
      (Shift){buffer_copy(compaction->context, buffer), arena_array(arena, Expr *, buffer->rank)};
  shift->buffer->shape = arena_array(arena, Expr *, buffer->rank);
  bool changed = false;
  for (int i = 0; i < buffer->rank; i++)
    changed |= shrink_axis(compaction, buffer, &box, i, &shift->buffer->shape[i], &shift->min[i]);
  changed |= align_axes(compaction->context, allocate, shift->buffer);
  if (changed) map_put(&compaction->moved, buffer, shift);
  return changed ? shift : NULL;
}

// ---- Finding boxes with the facts of the loops around

static bool enter_with_facts(Visitor *visitor, Stmt *s) {
  Compaction *compaction = visitor->env;
  int mark = analyzer_mark(compaction->analyzer);
  if (s->kind == STMT_FOR)
    analyzer_bind(compaction->analyzer, s->as.loop.var, s->as.loop.min, s->as.loop.extent);
  else if (s->kind == STMT_LET)
    analyzer_bind_value(compaction->analyzer, s->as.let.var, s->as.let.value);
  else {
    if (s->kind == STMT_ALLOCATE) find_shift(compaction, s);
    return true;
  }
  visit_stmt(visitor, lower_body(s));
  analyzer_reset(compaction->analyzer, mark);
  return false;
}

// ---- Rewriting

static Expr **shifted(Context *context, const Shift *shift, Expr *const *indices) {
  Expr **result = arena_array(&context->arena, Expr *, shift->buffer->rank);
  for (int i = 0; i < shift->buffer->rank; i++)
    result[i] = expr_sub(context, indices[i], shift->min[i]);
  return result;
}

static Expr *shift_load(Rewriter *rewriter, Expr *e) {
  const Compaction *compaction = rewriter->env;
  const Shift *shift = e->op == EXPR_LOAD ? map_find(&compaction->moved, e->as.buffer) : NULL;
  if (!shift) return e;
  return expr_load(rewriter->context, shift->buffer, shifted(rewriter->context, shift, e->args),
                   e->count);
}

static bool is_compacted(const Compaction *compaction, const Buffer *buffer) {
  for (int i = 0; i < compaction->moved.count; i++)
    if (((const Shift *)compaction->moved.entries[i].value)->buffer == buffer) return true;
  return false;
}

static Stmt *shift_stmt(Rewriter *rewriter, Stmt *s) {
  const Compaction *compaction = rewriter->env;
  const Buffer *buffer = s->kind == STMT_STORE         ? s->as.store.buffer
                         : s->kind == STMT_DECL_BUFFER ? s->as.declare.buffer
                                                       : NULL;
  const Shift *shift = buffer ? map_find(&compaction->moved, buffer) : NULL;
  if (s->kind == STMT_ALLOCATE && s->as.allocate.body->kind == STMT_DECL_BUFFER) {
    const Buffer *now = s->as.allocate.body->as.declare.buffer;
    if (now->data != s->as.allocate.var || !is_compacted(compaction, now)) return s;
    Stmt *next = stmt_copy(rewriter->context, s);
    next->as.allocate.type = now->type;
    next->as.allocate.rank = now->rank;
    next->as.allocate.extents = now->shape;
    next->as.allocate.annotations = attrs_without(
        &rewriter->context->arena, next->as.allocate.annotations, "buffer_dim_align");
    if (now->strides) { // the gaps between its rows are allocated too
      Expr *count = expr_mul(rewriter->context, now->shape[0], now->strides[0]);
      next->as.allocate.rank = 1;
      next->as.allocate.extents =
          arena_copy(&rewriter->context->arena, &count, sizeof next->as.allocate.extents);
    }
    return next;
  }
  if (!shift) return s;
  Stmt *next = stmt_copy(rewriter->context, s);
  if (s->kind == STMT_DECL_BUFFER) {
    next->as.declare.buffer = shift->buffer;
  } else {
    next->as.store.buffer = shift->buffer;
    next->as.store.indices = shifted(rewriter->context, shift, s->as.store.indices);
  }
  return next;
}

PrimFunc *lower_compact_buffers(LowerState *state, PrimFunc *func) {
  Context *context = state->context;
  Compaction compaction = {context, analyzer_new(context), map_new(&context->arena),
                           map_new(&context->arena)};
  Visitor counter = {.env = &compaction, .enter_expr = count_in_expr, .enter_stmt = count_in_stmt};
  visit_stmt(&counter, func->body);
  Visitor finder = {.env = &compaction, .enter_stmt = enter_with_facts};
  visit_stmt(&finder, func->body);
  if (!compaction.moved.count) return func;
  Rewriter rewriter = {.context = context,
                       .env = &compaction,
                       .expr = shift_load,
                       .stmt = shift_stmt,
                       .buffer = lower_keep_buffer};
  return prim_func_with_body(context, func, rewrite_stmt(&rewriter, func->body));
}
