// SPDX-License-Identifier: Apache-2.0
// Shrinks an allocation inside of loops or blocks to the box that is accessed there, and shifts the
// indices.
//
//   for io in range(5):                           for io in range(5):
//     B = allocate(50, 8)                     →     B = allocate(10, 8)
//     for ii, j: B[io * 10 + ii, j] = ...           for ii, j: B[ii, j] = ...
//
// The box is the union of the regions that the statements access (arith/region.c). An axis keeps
// its extent where the box has no smaller constant extent. Memory that several buffers share, that
// has strides, or whose address is taken stays as it is. The box of memory that threads share, by
// its scope, covers all iterations of the loops over these threads. Then the axes that the
// annotation "buffer_dim_align" of an allocation outside of blocks names are aligned
// (aligned_axes.c). With is_strict=False an axis that is accessed beyond its end becomes as long as
// these accesses need.
#include "ir/view.h"
#include "lower/pass.h"

typedef struct Compaction {
  Context *context;
  Analyzer *analyzer;
  Map moved;            // Buffer* → Shift*
  Map users;            // data variable → how many buffers it has, and how often it is a value
  PtrArray threads;     // const Stmt *: the loops over threads around
  ExprArray block_vars; // of the blocks around
  bool is_strict;
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

// Elements that are sizes of another buffer keep their place, since sizes are not rewritten.
static bool count_in_size(Visitor *visitor, Expr *e) {
  if (e->op != EXPR_LOAD) return true;
  count_user(visitor->env, e->as.buffer->data);
  count_user(visitor->env, e->as.buffer->data);
  return true;
}

static void count_in_declaration(Compaction *compaction, const Buffer *buffer) {
  count_user(compaction, buffer->data);
  lower_visit_sizes(&(Visitor){.env = compaction, .enter_expr = count_in_size}, buffer);
}

// A block's allocation declares its buffer. A view with strides of its own depends on the shape of
// its source.
static void count_in_block(Compaction *compaction, const Block *block) {
  for (int i = 0; i < block->alloc_count; i++) count_in_declaration(compaction, block->allocs[i]);
  for (int i = 0; i < block->match_count; i++)
    if (block->matches[i].buffer->strides)
      count_user(compaction, block->matches[i].source.buffer->data);
}

static bool count_in_stmt(Visitor *visitor, Stmt *s) {
  if (s->kind == STMT_DECL_BUFFER) count_in_declaration(visitor->env, s->as.declare.buffer);
  if (s->kind == STMT_BLOCK) count_in_block(visitor->env, s->as.block);
  return true;
}

static bool is_sole(const Compaction *compaction, const Buffer *buffer) {
  bool sole = (intptr_t)map_find(&compaction->users, buffer->data) == 1;
  return sole && !buffer->strides && expr_is_int(buffer->offset, 0);
}

// The buffer declared directly below, when no other one accesses the memory; otherwise NULL.
static Buffer *sole_buffer(const Compaction *compaction, const Stmt *allocate) {
  const Stmt *below = allocate->as.allocate.body;
  if (below->kind != STMT_DECL_BUFFER) return NULL;
  Buffer *buffer = below->as.declare.buffer;
  return is_sole(compaction, buffer) && buffer->data == allocate->as.allocate.var ? buffer : NULL;
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

// A variable of a block hides which threads its values belong to.
static bool uses_block_var(const Compaction *compaction, Expr *e) {
  for (int i = 0; i < compaction->block_vars.count; i++)
    if (expr_uses(e, compaction->block_vars.items[i])) return true;
  return false;
}

// The box over all threads that share the buffer.
static void relax_box(Compaction *compaction, const Buffer *buffer, Region *box) {
  Context *context = compaction->context;
  Array(VarRange) shared = {0};
  for (int i = 0; i < compaction->threads.count; i++) {
    const Stmt *loop = compaction->threads.items[i];
    if (scope_is_shared_by(buffer->scope, loop->as.loop.thread))
      array_push(&context->arena, &shared, loop_range(loop));
  }
  for (int i = 0; shared.count && i < buffer->rank; i++) {
    Expr *min = NULL, *count, *one = expr_int(context, box->extent[i]->type, 1);
    if (!uses_block_var(compaction, box->min[i]))
      index_region(compaction->analyzer, &box->min[i], 1, shared.items, shared.count, &min, &count,
                   NULL);
    box->min[i] = min ? min : expr_int(context, buffer->shape[i]->type, 0);
    Expr *sum = min ? expr_add(context, count, expr_sub(context, box->extent[i], one)) : NULL;
    box->extent[i] = min ? analyzer_simplify(compaction->analyzer, sum) : buffer->shape[i];
  }
}

static bool shrink_axis(Compaction *compaction, const Buffer *buffer, const Region *box, int axis,
                        Expr **extent, Expr **min) {
  int64_t low, high, whole;
  *extent = buffer->shape[axis];
  *min = expr_int(compaction->context, box->min[axis]->type, 0);
  if (!analyzer_const_bounds(compaction->analyzer, box->extent[axis], &low, &high)) return false;
  bool is_known = expr_as_int(*extent, &whole);
  if (high < 1 || (is_known && high == whole)) return false;
  if (is_known && high > whole && compaction->is_strict) return false;
  *extent = expr_int(compaction->context, (*extent)->type, high);
  *min = box->min[axis];
  return true;
}

// Gives the buffer the strides that the allocation's annotation asks for. False where it keeps its
// own, as those of blocks do until the blocks are lowered.
static bool align_axes(Context *context, const Attrs *annotations, Buffer *buffer) {
  const Expr *items = annotations ? attrs_get(annotations, "buffer_dim_align") : NULL;
  if (items && !buffer->separator_count)
    buffer->strides = lower_aligned_strides(context, buffer, items);
  return buffer->strides != NULL;
}

// Finds the smaller form of a buffer that is allocated around `body`; `annotations` may be NULL.
static void find_shift(Compaction *compaction, Buffer *buffer, Stmt *body,
                       const Attrs *annotations) {
  Region box;
  if (!accessed_box(compaction, body, buffer, &box)) return;
  relax_box(compaction, buffer, &box);
  Arena *arena = &compaction->context->arena;
  Shift *shift = arena_new(arena, Shift);
  *shift =
      (Shift){buffer_copy(compaction->context, buffer), arena_array(arena, Expr *, buffer->rank)};
  shift->buffer->shape = arena_array(arena, Expr *, buffer->rank);
  bool changed = false;
  for (int i = 0; i < buffer->rank; i++)
    changed |= shrink_axis(compaction, buffer, &box, i, &shift->buffer->shape[i], &shift->min[i]);
  changed |= align_axes(compaction->context, annotations, shift->buffer);
  if (changed) map_put(&compaction->moved, buffer, shift);
}

static void find_block_shifts(Compaction *compaction, const Block *block) {
  Stmt *both[] = {block->init, block->body};
  Stmt *body = block->init ? stmt_seq(compaction->context, both, 2) : block->body;
  for (int i = 0; i < block->alloc_count; i++)
    if (is_sole(compaction, block->allocs[i])) find_shift(compaction, block->allocs[i], body, NULL);
}

// ---- Finding boxes with the facts of the loops around

static void enter_block(Compaction *compaction, const Block *block) {
  for (int i = 0; i < block->var_count; i++) {
    const BlockVar *v = &block->vars[i];
    analyzer_bind(compaction->analyzer, v->var, v->min, v->extent);
    array_push(&compaction->context->arena, &compaction->block_vars, v->var);
  }
  find_block_shifts(compaction, block);
}

static void find_in_allocation(Compaction *compaction, const Stmt *s) {
  Buffer *buffer = sole_buffer(compaction, s);
  if (buffer) find_shift(compaction, buffer, s->as.allocate.body, &s->as.allocate.annotations);
}

static bool enter_with_facts(Visitor *visitor, Stmt *s) {
  Compaction *compaction = visitor->env;
  int mark = analyzer_mark(compaction->analyzer), threads = compaction->threads.count;
  int block_vars = compaction->block_vars.count;
  if (s->kind == STMT_FOR) {
    analyzer_bind(compaction->analyzer, s->as.loop.var, s->as.loop.min, s->as.loop.extent);
    if (s->as.loop.thread) array_push(&compaction->context->arena, &compaction->threads, s);
  } else if (s->kind == STMT_LET) {
    analyzer_bind_value(compaction->analyzer, s->as.let.var, s->as.let.value);
  } else if (s->kind == STMT_BLOCK) {
    enter_block(compaction, s->as.block);
    if (s->as.block->init) visit_stmt(visitor, s->as.block->init);
  } else {
    if (s->kind == STMT_ALLOCATE) find_in_allocation(compaction, s);
    return true;
  }
  visit_stmt(visitor, s->kind == STMT_BLOCK ? s->as.block->body : lower_body(s));
  analyzer_reset(compaction->analyzer, mark);
  compaction->threads.count = threads;
  compaction->block_vars.count = block_vars;
  return false;
}

// ---- Rewriting

static Expr **shifted(const Compaction *compaction, const Shift *shift, Expr *const *indices) {
  Context *context = compaction->context;
  Expr **result = arena_array(&context->arena, Expr *, shift->buffer->rank);
  for (int i = 0; i < shift->buffer->rank; i++) {
    Expr *index = expr_sub(context, indices[i], shift->min[i]);
    result[i] = index == indices[i] ? index : analyzer_simplify(compaction->analyzer, index);
  }
  return result;
}

static Expr *shift_load(Rewriter *rewriter, Expr *e) {
  const Compaction *compaction = rewriter->env;
  const Shift *shift = e->op == EXPR_LOAD ? map_find(&compaction->moved, e->as.buffer) : NULL;
  if (!shift) return e;
  Expr **indices = shifted(compaction, shift, e->args);
  int64_t index;
  for (int i = 0; i < e->count; i++) // an attribute names a buffer by its first element
    if (expr_as_int(indices[i], &index) && index < 0)
      indices[i] = expr_int(rewriter->context, indices[i]->type, 0);
  return expr_load(rewriter->context, shift->buffer, indices, e->count);
}

static bool is_compacted(const Compaction *compaction, const Buffer *buffer) {
  for (int i = 0; i < compaction->moved.count; i++)
    if (((const Shift *)compaction->moved.entries[i].value)->buffer == buffer) return true;
  return false;
}

// The region in the smaller buffer. One that is wider than the buffer now is, because the block
// states more than it accesses, becomes the whole axis.
static Region shifted_region(Context *context, const void *env, const Region *region) {
  const Compaction *compaction = env;
  const Shift *shift = map_find(&compaction->moved, region->buffer);
  if (!shift) return *region;
  Region result = {shift->buffer, shifted(compaction, shift, region->min),
                   arena_copy(&context->arena, region->extent,
                              sizeof *region->extent * (size_t)region->buffer->rank)};
  for (int i = 0; i < region->buffer->rank; i++) {
    int64_t whole, stated;
    bool is_known =
        expr_as_int(shift->buffer->shape[i], &whole) && expr_as_int(region->extent[i], &stated);
    if (shift->buffer->shape[i] == region->buffer->shape[i] || (is_known && stated < whole))
      continue;
    result.min[i] = expr_int(context, region->min[i]->type, 0);
    result.extent[i] = expr_cast(context, result.min[i]->type, shift->buffer->shape[i]);
  }
  return result;
}

static Stmt *shift_block(const Compaction *compaction, Stmt *s) {
  Context *context = compaction->context;
  Stmt *next = stmt_change_regions(context, s, shifted_region, compaction);
  Block *block = next->as.block;
  block->allocs =
      arena_copy(&context->arena, block->allocs, sizeof(Buffer *) * (size_t)block->alloc_count);
  for (int i = 0; i < block->alloc_count; i++) {
    const Shift *shift = map_find(&compaction->moved, block->allocs[i]);
    if (shift) block->allocs[i] = shift->buffer;
  }
  return next;
}

static Stmt *shift_stmt(Rewriter *rewriter, Stmt *s) {
  const Compaction *compaction = rewriter->env;
  if (s->kind == STMT_BLOCK) return shift_block(compaction, s);
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
    next->as.allocate.annotations =
        attrs_without(&rewriter->context->arena, next->as.allocate.annotations, "buffer_dim_align");
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
    next->as.store.indices = shifted(compaction, shift, s->as.store.indices);
  }
  return next;
}

PrimFunc *lower_compact_buffers(LowerState *state, PrimFunc *func) {
  Context *context = state->context;
  bool is_strict = true;
  if (!lower_take_flag(state, "is_strict", &is_strict)) return NULL;
  Compaction compaction = {.context = context,
                           .analyzer = analyzer_new(context),
                           .is_strict = is_strict,
                           .moved = map_new(&context->arena),
                           .users = map_new(&context->arena)};
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
