// SPDX-License-Identifier: Apache-2.0
// Defines short functions that each add one operator of src/graph, for ONNX operators that are
// composed of several.
#include "frontend/onnx/compose.h"

#include "graph/graph.h"
#include "interp/interp.h"

Value *compose_unary(Import *import, const char *op, Value *a) {
  return a ? import_op(import, op, a, NULL) : NULL;
}

Value *compose_binary(Import *import, const char *op, Value *a, Value *b) {
  return a && b ? import_op(import, op, a, b) : NULL;
}

Value *compose_number(Import *import, const char *op, Value *a, double b) {
  return a ? import_op(import, op, a, import_scalar(import, a, b)) : NULL;
}

Value *compose_choose(Import *import, Value *condition, Value *a, Value *b) {
  Value *inputs[] = {condition, a, b};
  return condition && a && b ? import_add(import, import_begin(import, "where", inputs, 3)) : NULL;
}

Value *compose_permute(Import *import, Value *a, const int64_t *axes) {
  if (!a) return NULL;
  Node *node = import_begin(import, "permute_dims", &a, 1);
  node_set_ints(import->context, node, "axes", axes, a->rank);
  return import_add(import, node);
}

Value *compose_reduce(Import *import, const char *op, Value *a, const int64_t *axes, int count,
                      bool keep) {
  if (!a) return NULL;
  Node *node = import_begin(import, op, &a, 1);
  if (count) node_set_ints(import->context, node, "axis", axes, count);
  if (keep) node_set_int(import->context, node, "keepdims", 1);
  return import_add(import, node);
}

Value *compose_slice(Import *import, Value *a, int axis, int64_t begin, int64_t end, int64_t step) {
  int64_t along = axis;
  if (!a || (begin == 0 && end == import_dim(a, axis) && step == 1)) return a;
  Node *node = import_begin(import, "strided_slice", &a, 1);
  node_set_ints(import->context, node, "axes", &along, 1);
  node_set_ints(import->context, node, "begin", &begin, 1);
  node_set_ints(import->context, node, "end", &end, 1);
  node_set_ints(import->context, node, "strides", &step, 1);
  return import_add(import, node);
}

Value *compose_concat(Import *import, Value *const *values, int count, int axis) {
  for (int i = 0; i < count; i++)
    if (!values[i]) return NULL;
  Node *node = import_begin(import, "concat", values, count);
  node_set_int(import->context, node, "axis", axis);
  return import_add(import, node);
}

Value *compose_pad(Import *import, Value *a, int axis, int64_t before, int64_t behind,
                   double filler) {
  int64_t widths[2 * TE_MAX_RANK] = {0};
  if (!a || (!before && !behind)) return a;
  widths[2 * axis] = before;
  widths[2 * axis + 1] = behind;
  Node *node = import_begin(import, "nn.pad", &a, 1);
  node_set_ints(import->context, node, "pad_width", widths, 2 * a->rank);
  node_set_float(import->context, node, "pad_value", filler);
  return import_add(import, node);
}

Value *compose_positions(Import *import, int64_t count) {
  if (count > INT32_MAX) {
    import_refuse(import, "counts %lld positions, at most %d are supported", (long long)count,
                  INT32_MAX);
    return NULL;
  }
  Node *node = import_begin(import, "arange", NULL, 0);
  node_set_int(import->context, node, "end", count);
  return import_add(import, node);
}

Value *compose_cast(Import *import, Value *a, DType type) {
  return a ? import_cast(import, a, type) : NULL;
}

Value *compose_reshape(Import *import, Value *a, const int64_t *shape, int rank) {
  return a ? import_reshape(import, a, shape, rank) : NULL;
}

Value *compose_constant(Import *import, DType type, const int64_t *shape, int rank,
                        const double *numbers) {
  int64_t count = 1, bytes = dtype_bytes(type);
  for (int i = 0; i < rank; i++) count *= shape[i];
  char *data = arena_alloc(&import->context->arena, (size_t)(count * bytes) + 1);
  for (int64_t i = 0; i < count; i++) number_store(type, data + i * bytes, numbers[i]);
  return import_const(import, type, shape, rank, data);
}

void compose_shape(const Value *value, int64_t *shape) {
  for (int i = 0; i < value->rank; i++) shape[i] = import_dim(value, i);
}
