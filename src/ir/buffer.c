// SPDX-License-Identifier: Apache-2.0
// Constructs buffers, the compile-time descriptions of memory over a data variable, and answers
// questions about them.
#include "ir/ir.h"

bool buffer_is_local(const Buffer *buffer) {
  return strcmp(buffer->scope, "local") == 0;
}

Buffer *buffer_in(void *memory, Context *context, const char *name, DType type, Expr *const *shape,
                  int rank, const char *scope) {
  Buffer *buffer = memory;
  *buffer = (Buffer){
      .name = str_intern(context, name),
      .type = type,
      .data = expr_data_var(context, name, dtype_lanes(type, 1), scope),
      .rank = rank,
      .shape = arena_copy(&context->arena, shape, sizeof *shape * (size_t)rank),
      .offset = expr_int(context, DTYPE_INT32, 0),
      .scope = str_intern(context, scope ? scope : "global"),
      .id = context_next_id(context),
  };
  return buffer;
}

Buffer *buffer_new(Context *context, const char *name, DType type, Expr *const *shape, int rank,
                   const char *scope) {
  void *memory = arena_take(&context->arena, sizeof(Buffer));
  return buffer_in(memory, context, name, type, shape, rank, scope);
}

Buffer *buffer_static(Context *context, const char *name, DType type, const int64_t *shape,
                      int rank, const char *scope) {
  Expr **extents = arena_array(&context->arena, Expr *, rank);
  for (int i = 0; i < rank; i++) extents[i] = expr_index(context, shape[i]);
  return buffer_new(context, name, type, extents, rank, scope);
}

Buffer *buffer_copy(Context *context, const Buffer *buffer) {
  Buffer *copy = arena_copy(&context->arena, buffer, sizeof *buffer);
  copy->id = context_next_id(context);
  return copy;
}

bool buffers_alias(const Buffer *a, const Buffer *b) {
  return a->data == b->data;
}

bool buffer_static_shape(const Buffer *buffer, int64_t *shape) {
  for (int i = 0; i < buffer->rank; i++)
    if (!expr_as_int(buffer->shape[i], &shape[i])) return false;
  return true;
}

DType buffer_open_offset_type(const Buffer *buffer) {
  return buffer->rank ? buffer->shape[0]->type : DTYPE_INT32;
}

bool buffer_same_shape(const Buffer *a, const Buffer *b) {
  for (int i = 0; i < a->rank; i++)
    if (i >= b->rank || a->shape[i] != b->shape[i]) return false;
  return a->rank == b->rank;
}

int buffer_element_bytes(const Buffer *buffer) {
  return dtype_bytes(buffer->type) * buffer->type.lanes;
}

void buffer_stride_exprs(Context *context, const Buffer *buffer, Expr **strides) {
  Expr *stride = expr_index(context, 1);
  for (int i = buffer->rank - 1; i >= 0; i--) {
    strides[i] = buffer->strides ? buffer->strides[i] : stride;
    stride = expr_mul(context, stride, buffer->shape[i]);
  }
}

Expr *buffer_element_offset(Context *context, const Buffer *buffer, Expr *const *indices) {
  Expr **strides = arena_array(&context->arena, Expr *, buffer->rank), *offset = buffer->offset;
  buffer_stride_exprs(context, buffer, strides);
  for (int i = 0; i < buffer->rank; i++)
    offset = expr_add(context, offset, expr_mul(context, indices[i], strides[i]));
  return offset;
}

Region region_whole(Context *context, Buffer *buffer) {
  Region region = {buffer, arena_array(&context->arena, Expr *, buffer->rank),
                   arena_array(&context->arena, Expr *, buffer->rank)};
  for (int i = 0; i < buffer->rank; i++) {
    region.min[i] = expr_int(context, buffer->shape[i]->type, 0);
    region.extent[i] = buffer->shape[i];
  }
  return region;
}

Expr **match_source_indices(Context *context, const MatchBuffer *match, Expr *const *indices) {
  Expr **min = match->source.min;
  int rank = match->source.buffer->rank, extra = rank - match->buffer->rank;
  Expr **result = arena_array(&context->arena, Expr *, rank);
  for (int i = 0; i < rank; i++)
    result[i] = i < extra ? min[i] : expr_add(context, min[i], indices[i - extra]);
  return result;
}
