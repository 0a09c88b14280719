// SPDX-License-Identifier: Apache-2.0
// Writes T.tvm_access_ptr, which counts elements from the beginning of a buffer's memory, as the
// address of an element of the buffer, which all targets have. A view has an offset of its own.
//
//   T.tvm_access_ptr(T.type_annotation("float32"), A.data, A.elem_offset + i * 8 + 3, 5, 1)
//     →  T.address_of(A[i, 3])                           A: T.Buffer((4, 8), "float32")
#include "lower/pass.h"

bool lower_is_access_pointer(const Expr *e) {
  return e->op == EXPR_INTRINSIC && e->count == 5 && !strcmp(e->as.s, "tvm_access_ptr");
}

// The number of elements between the first one of the buffer and the one that is meant.
static Expr *distance(Context *context, const Buffer *buffer, Expr *offset) {
  if (buffer->offset == offset) return expr_int(context, DTYPE_INT32, 0);
  DType type = buffer->offset->type.bits > offset->type.bits ? buffer->offset->type : offset->type;
  Expr *difference =
      expr_sub(context, expr_cast(context, type, offset), expr_cast(context, type, buffer->offset));
  return analyzer_simplify(analyzer_new(context), difference);
}

// The indices of the element at a distance in row-major memory; its number on the first axis is not
// bounded, so that an element outside of the buffer has an index outside of it.
static void row_major_indices(Context *context, const Buffer *buffer, Expr *at, Expr **indices) {
  for (int i = buffer->rank - 1; i > 0; i--) {
    Expr *extent = expr_cast(context, at->type, buffer->shape[i]);
    indices[i] = expr_floor_mod(context, at, extent);
    at = expr_floor_div(context, at, extent);
  }
  if (buffer->rank) indices[0] = at;
}

// NULL: the element is at no index that is known.
static Expr *element_at(Context *context, Buffer *buffer, Expr *offset) {
  if (buffer->layout) return NULL;
  Expr **indices = arena_array(&context->arena, Expr *, buffer->rank + 1);
  Expr *at = distance(context, buffer, offset);
  int64_t constant = -1;
  bool is_first = expr_as_int(at, &constant) && constant == 0;
  if (!is_first && (buffer->strides || buffer->separator_count || !buffer->rank)) return NULL;
  for (int i = 0; is_first && i < buffer->rank; i++)
    indices[i] = expr_int(context, buffer->shape[i]->type, 0);
  if (!is_first) row_major_indices(context, buffer, at, indices);
  return expr_load(context, buffer, indices, buffer->rank);
}

Expr *lower_access_pointer(Context *context, const CallScope *scope, Expr *e) {
  Buffer *buffer = lower_is_access_pointer(e) ? map_find(&scope->owners, e->args[1]) : NULL;
  if (!buffer || !dtype_equal(buffer->type, e->args[0]->type)) return NULL;
  Expr *element = element_at(context, buffer, e->args[2]);
  return element ? expr_raw(context, EXPR_ADDRESS_OF, DTYPE_HANDLE, NULL, &element, 1) : NULL;
}
