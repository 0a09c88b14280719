// SPDX-License-Identifier: Apache-2.0
// Imports the ONNX operators that rearrange elements or compute them from positions, and Unique.
#include "frontend/onnx/compose.h"

#include "graph/graph.h"

static void import_reverse_sequence(Import *import) {
  Node *node = import_begin(import, "reverse_sequence", import->inputs, 2);
  node_set_int(import->context, node, "batch_axis", import_int(import, "batch_axis", 1));
  node_set_int(import->context, node, "seq_axis", import_int(import, "time_axis", 0));
  import_result(import, 0, import_add(import, node));
}

// A matrix of the input's shape with 1 on one diagonal.
static void import_eye_like(Import *import) {
  Value *x = import_input(import, 0);
  int32_t code = (int32_t)import_int(import, "dtype", 0);
  int64_t shape[2], k = import_int(import, "k", 0), count;
  DType type = x->type;
  if (x->rank != 2) {
    import_refuse(import, "takes a tensor of rank 2, got %d", x->rank);
    return;
  }
  if (code && !onnx_dtype(code, &type)) {
    import_refuse(import, "to type %s (%d) is not supported: %s", onnx_type_name(code), code,
                  onnx_type_advice(code));
    return;
  }
  compose_shape(x, shape);
  if (!mul_fits(shape[0], shape[1], &count) || count > 1 << 26) {
    import_refuse(import, "of more than 2^26 elements is not supported");
    return;
  }
  double *numbers = arena_array(&import->context->arena, double, count);
  for (int64_t i = 0; i < shape[0]; i++)
    if (i + k >= 0 && i + k < shape[1]) numbers[i * shape[1] + i + k] = 1;
  import_result(import, 0, compose_constant(import, type, shape, 2, numbers));
}

// ---- Unique elements of known data ------------------------------------------------------------

typedef struct Slices { // of known data along an axis, or its single elements
  const ConstData *data;
  int64_t count, before, after, axis_extent; // a slice is `before` runs of `after` elements
} Slices;

static int compare_slices(const Slices *s, int64_t a, int64_t b) {
  for (int64_t i = 0; i < s->before; i++)
    for (int64_t k = 0; k < s->after; k++) {
      int64_t base = i * s->axis_extent * s->after + k;
      double x = const_number(s->data, base + a * s->after);
      double y = const_number(s->data, base + b * s->after);
      if (x != y) return x < y ? -1 : 1;
    }
  return 0;
}

typedef struct Uniques {
  // For each: first slice; for each slice its unique; number of times.
  int64_t count, *first, *of, *times;
} Uniques;

// The unique slices in order of appearance, or sorted by value (by insertion).
static Uniques uniques_of(Context *context, const Slices *s, bool sorted) {
  Arena *arena = &context->arena;
  Uniques u = {0, arena_array(arena, int64_t, s->count), arena_array(arena, int64_t, s->count),
               arena_array(arena, int64_t, s->count)};
  for (int64_t i = 0; i < s->count; i++) {
    int64_t at = 0;
    int order = 1;
    for (; at < u.count; at++) {
      order = compare_slices(s, i, u.first[at]);
      if (order == 0 || (sorted && order < 0)) break;
    }
    bool known = at < u.count && order == 0;
    for (int64_t k = u.count++; !known && k > at; k--) {
      u.first[k] = u.first[k - 1];
      u.times[k] = u.times[k - 1];
    }
    if (known) u.count--;
    for (int64_t k = 0; !known && k < i; k++) u.of[k] += u.of[k] >= at;
    if (!known) u.first[at] = i, u.times[at] = 0;
    u.times[at]++;
    u.of[i] = at;
  }
  return u;
}

static Value *integers(Import *import, const int64_t *values, int64_t count) {
  return import_const(import, DTYPE_INT64, &count, 1, values);
}

static void import_unique(Import *import) {
  enum { MOST_SLICES = 4096 };
  Value *x = import_input(import, 0);
  ConstData *data = import_counted(import, 0);
  bool flat = !import_has(import, "axis");
  int64_t axis = import_int(import, "axis", 0);
  if (!data || (!flat && !import_axis(import, &axis, x->rank))) return;
  Slices s = {.data = data, .count = const_count(data), .before = 1, .after = 1};
  for (int i = 0; i < x->rank && !flat; i++) {
    if (i < axis) s.before *= data->shape[i];
    if (i > axis) s.after *= data->shape[i];
  }
  if (!flat) s.count = data->shape[axis];
  s.axis_extent = s.count;
  if (s.count > MOST_SLICES) {
    import_refuse(import, "of more than %d elements is not supported", MOST_SLICES);
    return;
  }
  Uniques u = uniques_of(import->context, &s, import_int(import, "sorted", 1) != 0);
  Value *from = flat ? import_reshape(import, value_constant(import->context, data), &s.count, 1)
                     : value_constant(import->context, data);
  Value *inputs[] = {from, integers(import, u.first, u.count)};
  Node *node = import_begin(import, "take", inputs, 2);
  node_set_int(import->context, node, "axis", flat ? 0 : axis);
  import_result(import, 0, import_add(import, node));
  import_result(import, 1, integers(import, u.first, u.count));
  import_result(import, 2, integers(import, u.of, s.count));
  import_result(import, 3, integers(import, u.times, u.count));
}

const OnnxRow onnx_arrange_rows[] = {
    {"EyeLike", 1, 1, "dtype:int k:int", import_eye_like},
    {"ReverseSequence", 2, 2, "batch_axis:int time_axis:int", import_reverse_sequence},
    {"Unique", 1, 1, "axis:int sorted:int", import_unique},
    {0},
};
