// SPDX-License-Identifier: Apache-2.0
// Replaces N-d accesses by accesses of flat memory with one axis for each group of axes between
// separators. Strides and offsets are multiplied out.
//
//   A: T.Buffer((4, 3, 8), strides=(32, 8, 1), offset=2)     A_1 = decl_buffer((122,), data=A.data)
//   A[i, j, k]                                           →   A_1[i * 32 + j * 8 + k + 2]
//
// The flat buffer has the same data variable, so that aliases stay aliases. Parameters keep
// their N-d description, and their flat buffers are declared at the top of the body. Index
// arithmetic is int64 where the memory has 2³¹ elements or more, or an unknown number of them, and
// at least int32: a product of narrower indices and strides might wrap.
// Buffers that an earlier run of the pass made are flat and stay as they are.
#include "lower/pass.h"

typedef struct Flat {
  Buffer *buffer;
  Expr **strides; // in elements of the group, one for each axis
  Expr *offset;
  bool wide; // indices are int64
} Flat;

typedef struct Flattening {
  Context *context;
  Map flats; // Buffer* → Flat*
  Rewriter rewriter;
  bool drop_logical; // LowerOptions
} Flattening;

static bool was_flat(const Buffer *b) {
  return b->logical != NULL;
}

static int group_begin(const Buffer *b, int group) {
  return group == 0 ? 0 : b->separators[group - 1];
}

static int group_end(const Buffer *b, int group) {
  return group == b->separator_count ? b->rank : b->separators[group];
}

// `e` in int64; every operation of it down to its variables and loads is int64 as well, except
// those of types that are narrower than int32, whose results may have wrapped.
static Expr *widened(Context *context, Expr *e) {
  if (!dtype_is_int(e->type)) return e;
  if (e->count == 2 && e->type.bits >= 32 && op_table[e->op].class == OP_ARITH)
    return expr_binary(context, e->op, widened(context, e->args[0]), widened(context, e->args[1]));
  return expr_cast(context, dtype_lanes(DTYPE_INT64, e->type.lanes), e);
}

static Expr *at_least_int32(Context *context, Expr *e) {
  if (!dtype_is_int(e->type) || e->type.bits >= 32) return e;
  return expr_cast(context, dtype_lanes(DTYPE_INT32, e->type.lanes), e);
}

// The strides of contiguous, row-major memory within each group.
static void compact_strides(Context *context, const Buffer *b, Expr **strides, bool wide) {
  for (int g = 0; g <= b->separator_count; g++) {
    Expr *stride = expr_int(context, wide ? DTYPE_INT64 : DTYPE_INT32, 1);
    for (int i = group_end(b, g) - 1; i >= group_begin(b, g); i--) {
      strides[i] = stride;
      stride = expr_mul(context, stride, wide ? widened(context, b->shape[i]) : b->shape[i]);
    }
  }
}

// The size of a group including the offset: one more than the largest index of an access.
static Expr *group_size(Context *context, const Buffer *b, const Flat *flat, int group) {
  int begin = group_begin(b, group), end = group_end(b, group);
  Expr *size = expr_int(context, DTYPE_INT32, 1);
  if (!b->strides && begin < end) {
    size = expr_mul(context, flat->strides[begin], b->shape[begin]);
  } else {
    for (int i = begin; i < end; i++) {
      int64_t stride;
      if (expr_as_int(flat->strides[i], &stride) && stride < 0) continue; // the first is the last
      Expr *last = expr_sub(context, b->shape[i], expr_int(context, b->shape[i]->type, 1));
      size = expr_add(context, size, expr_mul(context, last, flat->strides[i]));
    }
  }
  return group == b->separator_count && b->offset ? expr_add(context, size, b->offset) : size;
}

// Whether there are 2³¹ elements or more, or an unknown number of them.
static bool needs_wide(const Buffer *b) {
  int64_t size = 1, offset = 0, extent, stride;
  if (b->offset && !expr_as_int(b->offset, &offset)) return true;
  for (int i = 0; i < b->rank; i++) {
    if (!expr_as_int(b->shape[i], &extent)) return true;
    if (b->strides && !expr_as_int(b->strides[i], &stride)) return true;
    if (!mul_fits(b->strides ? MAX_OF(stride, 1) : 1, MAX_OF(extent, 1), &extent)) return true;
    if (!mul_fits(size, extent, &size)) return true;
  }
  return size > INT32_MAX - MAX_OF(offset, 0) - 1;
}

static Expr **flat_sizes(Flattening *flattening, Expr *const *sizes, int count) {
  Expr **result = arena_array(&flattening->context->arena, Expr *, count + 1);
  for (int i = 0; i < count; i++) result[i] = rewrite_expr(&flattening->rewriter, sizes[i]);
  return result;
}

// The buffer with the loads in its sizes, strides and offset as loads of flat memory.
static Buffer *with_flat_sizes(Flattening *flattening, Buffer *b) {
  Buffer *result = buffer_copy(flattening->context, b);
  result->shape = flat_sizes(flattening, b->shape, b->rank);
  if (b->strides) result->strides = flat_sizes(flattening, b->strides, b->rank);
  if (b->offset) result->offset = rewrite_expr(&flattening->rewriter, b->offset);
  return result;
}

static Flat *make_flat(Flattening *flattening, Buffer *own) {
  Context *context = flattening->context;
  const Buffer *b = with_flat_sizes(flattening, own);
  Flat *flat = arena_new(&context->arena, Flat);
  flat->wide = needs_wide(b);
  flat->strides = arena_array(&context->arena, Expr *, b->rank + 1);
  compact_strides(context, b, flat->strides, flat->wide);
  for (int i = 0; b->strides && i < b->rank; i++)
    flat->strides[i] = flat->wide ? widened(context, b->strides[i]) : b->strides[i];
  flat->offset = b->offset;
  Buffer *buffer = flat->buffer = buffer_copy(context, b);
  buffer->rank = b->separator_count + 1;
  buffer->shape = arena_array(&context->arena, Expr *, buffer->rank);
  for (int g = 0; g < buffer->rank; g++) buffer->shape[g] = group_size(context, b, flat, g);
  buffer->strides = NULL;
  buffer->offset = expr_int(context, DTYPE_INT32, 0);
  buffer->separators = arena_array(&context->arena, int, b->separator_count + 1);
  for (int g = 0; g < b->separator_count; g++) buffer->separators[g] = g + 1;
  buffer->layout = NULL;
  buffer->logical = own;
  map_put(&flattening->flats, own, flat);
  return flat;
}

static const Flat *flat_of(Flattening *flattening, Buffer *b) {
  Flat *flat = map_find(&flattening->flats, b);
  return flat ? flat : make_flat(flattening, b);
}

// The flat indices of an access, one per group.
static Expr **flat_indices(Flattening *flattening, Buffer *b, Expr *const *indices) {
  Context *context = flattening->context;
  const Flat *flat = flat_of(flattening, b);
  Expr **result = arena_array(&context->arena, Expr *, flat->buffer->rank);
  for (int g = 0; g < flat->buffer->rank; g++) {
    Expr *sum =
        g == b->separator_count && flat->offset ? flat->offset : expr_int(context, DTYPE_INT32, 0);
    for (int i = group_end(b, g) - 1; i >= group_begin(b, g); i--) {
      Expr *index = flat->wide ? widened(context, indices[i]) : at_least_int32(context, indices[i]);
      sum = expr_add(context, expr_mul(context, index, flat->strides[i]), sum);
    }
    result[g] = sum;
  }
  return result;
}

// A load that is flat already comes here when the expression around it folds to the load.
static Expr *flatten_load(Rewriter *rewriter, Expr *e) {
  Flattening *flattening = rewriter->env;
  if (e->op != EXPR_LOAD || was_flat(e->as.buffer)) return e;
  Buffer *buffer = e->as.buffer;
  Expr **indices = flat_indices(flattening, buffer, e->args);
  const Flat *flat = flat_of(flattening, buffer);
  Expr *load = expr_load(rewriter->context, flat->buffer, indices, flat->buffer->rank);
  if (!flattening->drop_logical)
    expr_set_origin(rewriter->context, load, expr_origin(e) ? expr_origin(e) : e);
  return load;
}

static Stmt *flatten_store(Flattening *flattening, Stmt *s) {
  Context *context = flattening->context;
  Stmt *next = stmt_copy(context, s);
  const Flat *flat = flat_of(flattening, s->as.store.buffer);
  next->as.store.buffer = flat->buffer;
  next->as.store.rank = flat->buffer->rank;
  next->as.store.indices = flat_indices(flattening, s->as.store.buffer, s->as.store.indices);
  if (!s->as.store.origin && !flattening->drop_logical)
    next->as.store.origin =
        expr_load(context, s->as.store.buffer, s->as.store.indices, s->as.store.rank);
  return next;
}

// Whether the buffer declared below has the shape and type of the allocation.
static bool fills_allocation(const Stmt *s) {
  const Stmt *below = s->as.allocate.body;
  if (below->kind != STMT_DECL_BUFFER) return false;
  const Buffer *flat = below->as.declare.buffer, *logical = flat->logical;
  if (!logical) logical = flat;
  bool same = flat->data == s->as.allocate.var && logical->rank == s->as.allocate.rank &&
              dtype_equal(flat->type, s->as.allocate.type);
  for (int i = 0; same && i < logical->rank; i++)
    same = logical->shape[i] == s->as.allocate.extents[i];
  return same;
}

// Whether the allocation has the shape of the flat buffer below, from an earlier run.
static bool is_flat_allocation(const Stmt *s) {
  const Stmt *below = s->as.allocate.body;
  const Buffer *flat = below->kind == STMT_DECL_BUFFER ? below->as.declare.buffer : NULL;
  bool same = flat && was_flat(flat) && flat->rank == s->as.allocate.rank;
  for (int i = 0; same && i < flat->rank; i++) same = flat->shape[i] == s->as.allocate.extents[i];
  return same;
}

// The allocation gets the shape of the flat buffer that fills it; otherwise one axis with the
// product of its extents.
static Stmt *flatten_allocate(Flattening *flattening, Stmt *s) {
  Context *context = flattening->context;
  Stmt *below = s->as.allocate.body;
  bool has_axes = attrs_get(&s->as.allocate.annotations, "buffer_dim_align") != NULL;
  if (is_flat_allocation(s) && !has_axes) return s;
  Stmt *next = stmt_copy(context, s);
  next->as.allocate.annotations = // without what is about axes that are gone
      attrs_without(&context->arena, s->as.allocate.annotations, "buffer_dim_align");
  if (is_flat_allocation(s)) return next;
  if (fills_allocation(s)) {
    next->as.allocate.rank = below->as.declare.buffer->rank;
    next->as.allocate.extents = below->as.declare.buffer->shape;
    return next;
  }
  Expr *count = expr_index(context, 1);
  for (int i = 0; i < s->as.allocate.rank; i++)
    count = expr_mul(context, count, s->as.allocate.extents[i]);
  next->as.allocate.rank = 1;
  next->as.allocate.extents = arena_copy(&context->arena, &count, sizeof(Expr *));
  return next;
}

static Stmt *flatten_stmt(Rewriter *rewriter, Stmt *s) {
  Flattening *flattening = rewriter->env;
  const Buffer *buffer = s->kind == STMT_STORE         ? s->as.store.buffer
                         : s->kind == STMT_DECL_BUFFER ? s->as.declare.buffer
                                                       : NULL;
  if (buffer && was_flat(buffer)) return s;
  if (s->kind == STMT_STORE) return flatten_store(flattening, s);
  if (s->kind == STMT_ALLOCATE) return flatten_allocate(flattening, s);
  if (s->kind != STMT_DECL_BUFFER) return s;
  Stmt *next = stmt_copy(rewriter->context, s);
  next->as.declare.buffer = flat_of(flattening, s->as.declare.buffer)->buffer;
  return next;
}

PrimFunc *lower_flatten_buffers(LowerState *state, PrimFunc *func) {
  Context *context = state->context;
  if (!lower_check_tiles(context, func)) return NULL;
  Flattening flattening = {.context = context,
                           .flats = map_new(&context->arena),
                           .drop_logical = state->options->drop_logical};
  flattening.rewriter = (Rewriter){.context = context,
                                   .env = &flattening,
                                   .expr = flatten_load,
                                   .stmt = flatten_stmt,
                                   .buffer = lower_keep_buffer};
  Stmt *body = rewrite_stmt(&flattening.rewriter, func->body);
  if (body == func->body) return func;
  for (int i = func->param_count - 1; i >= 0; i--) {
    const Flat *flat = func->buffers[i] ? map_find(&flattening.flats, func->buffers[i]) : NULL;
    if (flat) body = stmt_declare(context, flat->buffer, body);
  }
  return prim_func_with_body(context, func, body);
}
