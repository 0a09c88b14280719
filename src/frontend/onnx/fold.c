// SPDX-License-Identifier: Apache-2.0
// Integers that exporters compute from shapes (Shape, Gather, Concat … into Reshape) are known at
// import; they are computed here, on small constant integer tensors of rank 0 and 1.
#include "frontend/onnx/import.h"

enum { MOST_VALUES = 1024, MOST_FILLED_BYTES = 1 << 30 };

typedef struct Ints {
  DType type;
  int rank; // 0 or 1
  int64_t count;
  int64_t values[MOST_VALUES];
} Ints;

static bool read_input(const Import *import, int i, Ints *out) {
  const Value *value = import_input(import, i);
  const ConstData *data = value ? value->data : NULL;
  if (!data || data->rank > 1 || (!dtype_is_int(data->type) && !dtype_is_bool(data->type)))
    return false;
  *out = (Ints){.type = data->type, .rank = data->rank, .count = const_count(data)};
  if (out->count > MOST_VALUES) return false;
  for (int64_t k = 0; k < out->count; k++) out->values[k] = const_int(data, k);
  return true;
}

static bool set_result(Import *import, const Ints *ints) {
  Arena *arena = &import->context->arena;
  size_t width = (size_t)dtype_bytes(ints->type);
  uint8_t *data = arena_alloc(arena, (size_t)ints->count * width + 1);
  for (int64_t i = 0; i < ints->count; i++)
    memcpy(data + (size_t)i * width, &ints->values[i], width); // little-endian
  import_result(import, 0, import_const(import, ints->type, &ints->count, ints->rank, data));
  return true;
}

static int64_t bounded(int64_t at, int64_t count) {
  if (at < 0) at += count;
  return at < 0 ? 0 : at > count ? count : at;
}

static bool fold_shape(Import *import) {
  const Value *x = import_input(import, 0);
  int64_t start = bounded(import_int(import, "start", 0), x->rank);
  int64_t end = bounded(import_int(import, "end", x->rank), x->rank);
  Ints shape = {.type = DTYPE_INT64, .rank = 1};
  for (int64_t i = start; i < end; i++) shape.values[shape.count++] = import_dim(x, (int)i);
  return set_result(import, &shape);
}

static bool fold_size(Import *import) {
  const Value *x = import_input(import, 0);
  Ints size = {.type = DTYPE_INT64, .count = 1, .values = {1}};
  for (int i = 0; i < x->rank; i++) size.values[0] *= import_dim(x, i);
  return set_result(import, &size);
}

static bool fold_gather(Import *import) {
  Ints table, at;
  if (!read_input(import, 0, &table) || !read_input(import, 1, &at) || table.rank != 1)
    return false;
  Ints result = {.type = table.type, .rank = at.rank, .count = at.count};
  for (int64_t i = 0; i < at.count; i++) {
    int64_t k = at.values[i] < 0 ? at.values[i] + table.count : at.values[i];
    if (k < 0 || k >= table.count)
      return !import_refuse(import, "index %lld is not within %lld values", (long long)at.values[i],
                            (long long)table.count);
    result.values[i] = table.values[k];
  }
  return set_result(import, &result);
}

static bool fold_concat(Import *import) {
  Ints result = {.rank = 1}, part;
  for (int i = 0; i < import->input_count; i++) {
    if (!read_input(import, i, &part) || part.rank != 1 || result.count + part.count > MOST_VALUES)
      return false;
    result.type = part.type;
    memcpy(&result.values[result.count], part.values, sizeof(int64_t) * (size_t)part.count);
    result.count += part.count;
  }
  return set_result(import, &result);
}

static bool slice_part(const Import *import, int i, int64_t otherwise, int64_t *value) {
  Ints ints;
  *value = otherwise;
  if (!import_input(import, i)) return true;
  if (!read_input(import, i, &ints) || ints.count != 1) return false;
  *value = ints.values[0];
  return true;
}

// A list from start to end by steps forward.
static bool fold_slice(Import *import) {
  Ints x, result;
  int64_t start, end, axis, step;
  if (!read_input(import, 0, &x) || x.rank != 1 || import->input_count < 3) return false;
  if (!slice_part(import, 1, 0, &start) || !slice_part(import, 2, x.count, &end) ||
      !slice_part(import, 3, 0, &axis) || !slice_part(import, 4, 1, &step) || step < 1)
    return false;
  result = (Ints){.type = x.type, .rank = 1};
  end = bounded(end, x.count);
  for (int64_t i = bounded(start, x.count); i < end; i += MIN_OF(step, (int64_t)MOST_VALUES))
    result.values[result.count++] = x.values[i];
  return set_result(import, &result);
}

static bool fold_cast(Import *import) {
  Ints x;
  DType type;
  if (!read_input(import, 0, &x) || !onnx_dtype((int32_t)import_int(import, "to", 0), &type))
    return false;
  if (!dtype_is_int(type) || type.bits < 32) return false;
  x.type = type;
  return set_result(import, &x);
}

static bool combine(char op, int64_t a, int64_t b, int64_t *out) {
  switch (op) {
  case '+': return add_fits(a, b, out);
  case '-': return b != INT64_MIN && add_fits(a, -b, out);
  case '*': return mul_fits(a, b, out);
  default:
    if (b == 0 || (a == INT64_MIN && b == -1)) return false;
    *out = a / b;
    return true;
  }
}

static bool fold_arithmetic(Import *import) {
  static const char *const names[] = {"Add", "Sub", "Mul", "Div"};
  Ints a, b;
  if (!read_input(import, 0, &a) || !read_input(import, 1, &b)) return false;
  if (!dtype_equal(a.type, b.type) || !dtype_is_int(a.type) || a.type.bits < 32) return false;
  if (a.count != b.count && a.count != 1 && b.count != 1) return false;
  int op = 0;
  while (strcmp(names[op], import->node->op_type) != 0) op++;
  Ints result = {.type = a.type, .rank = MAX_OF(a.rank, b.rank)};
  result.count = a.count == 1 ? b.count : a.count;
  for (int64_t i = 0; i < result.count; i++)
    if (!combine("+-*/"[op], a.values[a.count == 1 ? 0 : i], b.values[b.count == 1 ? 0 : i],
                 &result.values[i]))
      return false;
  return set_result(import, &result);
}

static bool fold_constant_of_shape(Import *import) {
  IntArray shape;
  const OnnxAttribute *value = import_attribute(import, "value");
  ConstData *filler = NULL;
  if (!import_constant_ints(import, 0, &shape)) return true;
  if (value && value->t) filler = onnx_tensor_data(import->importer->file, value->t, import->pos);
  if (value && (!filler || const_count(filler) != 1)) return true;
  DType type = filler ? filler->type : DTYPE_FLOAT32;
  int64_t bytes = dtype_bytes(type);
  for (int i = 0; i < shape.count; i++)
    if (shape.items[i] < 0 || !mul_fits(bytes, shape.items[i], &bytes) || bytes > MOST_FILLED_BYTES)
      return !import_refuse(import,
                            "a constant of more than %d bytes, or a negative extent, is "
                            "not supported",
                            MOST_FILLED_BYTES);
  uint8_t *data = arena_alloc(&import->context->arena, (size_t)bytes + 1);
  for (int64_t at = 0; filler && at < bytes; at += dtype_bytes(type))
    memcpy(data + at, filler->data, (size_t)dtype_bytes(type));
  import_result(import, 0, import_const(import, type, shape.items, shape.count, data));
  return true;
}

static const struct {
  const char *name;
  bool (*fold)(Import *import);
} folds[] = {
    {"Add", fold_arithmetic}, {"Cast", fold_cast},
    {"Concat", fold_concat},  {"ConstantOfShape", fold_constant_of_shape},
    {"Div", fold_arithmetic}, {"Gather", fold_gather},
    {"Mul", fold_arithmetic}, {"Shape", fold_shape},
    {"Size", fold_size},      {"Slice", fold_slice},
    {"Sub", fold_arithmetic},
};

bool import_fold(Import *import) {
  for (int i = 0; i < COUNT_OF(folds); i++)
    if (strcmp(folds[i].name, import->node->op_type) == 0) return folds[i].fold(import);
  return false;
}
