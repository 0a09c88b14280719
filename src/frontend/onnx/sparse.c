// SPDX-License-Identifier: Apache-2.0
// Converts sparse tensors to dense ones. A sparse tensor has values and their positions in
// ascending order, as row-major numbers or as one row of indices for each value.
#include "frontend/onnx/onnx_proto.h"
#include "interp/interp.h"

enum { MOST_BYTES = 1 << 30 }; // limits the memory that a small file can ask for

typedef struct Sparse {
  Context *context;
  SourcePos pos;
  const char *name;
  const IntArray *dims;
  ConstData *values, *indices;
  int64_t count, bytes; // of the dense tensor
} Sparse;

static bool check_dims(Sparse *s) {
  s->count = 1;
  for (int i = 0; i < s->dims->count; i++) {
    int64_t dim = s->dims->items[i];
    if (dim < 0 || !mul_fits(s->count, dim, &s->count) ||
        !mul_fits(s->count, dtype_bytes(s->values->type), &s->bytes) || s->bytes > MOST_BYTES)
      return diag_error(
          s->context, s->pos,
          "sparse tensor '%s' has a negative dimension, or more than %d bytes when it "
          "is made dense",
          s->name, MOST_BYTES);
  }
  s->bytes = s->count * dtype_bytes(s->values->type);
  return true;
}

static bool check_indices(Sparse *s) {
  const ConstData *values = s->values, *indices = s->indices;
  bool linear = indices->rank == 1;
  bool fits = values->rank == 1 && dtype_equal(indices->type, DTYPE_INT64) &&
              (linear || (indices->rank == 2 && indices->shape[1] == s->dims->count)) &&
              indices->shape[0] == values->shape[0];
  return fits ||
         diag_error(
             s->context, s->pos,
             "sparse tensor '%s': its indices are not one int64 number, or one row of %d, for "
             "each of its values",
             s->name, s->dims->count);
}

// The row-major number of value `i`; -1 when it is outside of the tensor.
static int64_t place_of(const Sparse *s, int64_t i) {
  const char *data = s->indices->data;
  int64_t place = 0, index;
  if (s->indices->rank == 1) {
    memcpy(&place, data + i * 8, 8);
    return place >= 0 && place < s->count ? place : -1;
  }
  for (int d = 0; d < s->dims->count; d++) {
    memcpy(&index, data + (i * s->dims->count + d) * 8, 8);
    if (index < 0 || index >= s->dims->items[d]) return -1;
    place = place * s->dims->items[d] + index;
  }
  return place;
}

static ConstData *dense(Sparse *s) {
  size_t width = (size_t)dtype_bytes(s->values->type);
  char *data = arena_alloc(&s->context->arena, (size_t)s->bytes + 1);
  for (int64_t i = 0; i < s->values->shape[0]; i++) {
    int64_t place = place_of(s, i);
    if (place < 0) {
      diag_error(s->context, s->pos, "sparse tensor '%s': value %lld is outside of it", s->name,
                 (long long)i);
      return NULL;
    }
    memcpy(data + (size_t)place * width, (const char *)s->values->data + (size_t)i * width, width);
  }
  ConstData *result = arena_new(&s->context->arena, ConstData);
  *result = (ConstData){str_intern(s->context, s->name),
                        s->values->type,
                        s->dims->count,
                        s->dims->items,
                        data,
                        (size_t)s->bytes};
  return result;
}

ConstData *onnx_sparse_data(OnnxFile *file, const OnnxSparseTensor *tensor, SourcePos pos) {
  Sparse sparse = {.context = file->context, .pos = pos, .dims = &tensor->dims};
  sparse.name = tensor->values ? tensor->values->name : "";
  if (!tensor->values || !tensor->indices) {
    diag_error(file->context, pos, "sparse tensor '%s' has no values, or no indices", sparse.name);
    return NULL;
  }
  sparse.values = onnx_tensor_data(file, tensor->values, pos);
  sparse.indices = onnx_tensor_data(file, tensor->indices, pos);
  if (!sparse.values || !sparse.indices) return NULL;
  return check_indices(&sparse) && check_dims(&sparse) ? dense(&sparse) : NULL;
}
