// SPDX-License-Identifier: Apache-2.0
// Imports rotary embedding: pairs of numbers of each head are rotated by angles that tables give
// for each position.
#include "frontend/onnx/attention.h"

#include "graph/graph.h"

// ---- RotaryEmbedding of the standard ----------------------------------------------------------

static bool standard_sizes(Rotary *r) {
  Import *import = r->import;
  Value *x = import->inputs[0];
  if (x->rank != 3 && x->rank != 4)
    return import_refuse(import, "takes an input of rank 3 or 4, got %d", x->rank);
  r->flat = x->rank == 3;
  r->heads = r->flat ? import_int(import, "num_heads", 0) : import_dim(x, 1);
  r->batch = import_dim(x, 0);
  r->sequence = import_dim(x, r->flat ? 1 : 2);
  if (r->heads < 1 || (r->flat && import_dim(x, 2) % r->heads))
    return import_refuse(import, "its input does not divide by %lld heads", (long long)r->heads);
  r->size = r->flat ? import_dim(x, 2) / r->heads : import_dim(x, 3);
  int64_t rotated = import_int(import, "rotary_embedding_dim", 0);
  if (rotated == 0) rotated = r->size;
  r->half = rotated / 2;
  r->interleaved = import_int(import, "interleaved", 0) != 0;
  return (rotated > 0 && rotated <= r->size && rotated % 2 == 0) ||
         import_refuse(import, "rotates %lld of %lld numbers", (long long)rotated,
                       (long long)r->size);
}

Value *rotary_angles(Rotary *r, Value *table, Value *positions) {
  Import *import = r->import;
  if (positions) table = compose_binary(import, "take", table, positions);
  if (!table) return NULL;
  int64_t batch = import_dim(table, 0);
  int64_t by_head[] = {batch, 1, r->sequence, r->half};
  int64_t by_place[] = {batch, r->sequence, 1, r->half};
  if (table->rank != 3 || (batch != 1 && batch != r->batch) ||
      import_dim(table, 1) != r->sequence || import_dim(table, 2) != r->half) {
    import_refuse(import, "its tables must have %lld angles for each position", (long long)r->half);
    return NULL;
  }
  return import_reshape(import, table, r->flat ? by_place : by_head, 4);
}

// One of the two halves that are rotated: every second element when interleaved, otherwise
// consecutive elements.
static Value *half_of(Rotary *r, Value *x, int which) {
  return r->interleaved ? compose_slice(r->import, x, 3, which, 2 * r->half, 2)
                        : compose_slice(r->import, x, 3, which * r->half, (which + 1) * r->half, 1);
}

static Value *turned(Rotary *r, Value *a, Value *cosine, const char *op, Value *b, Value *sine) {
  return compose_binary(r->import, op, compose_binary(r->import, "multiply", a, cosine),
                        compose_binary(r->import, "multiply", b, sine));
}

static Value *joined(Rotary *r, Value *a, Value *b) {
  Value *parts[] = {a, b};
  if (!a || !b || !r->interleaved) return compose_concat(r->import, parts, 2, 3);
  int64_t shape[5], both[4];
  compose_shape(a, shape);
  compose_shape(a, both);
  shape[4] = 1;
  both[3] *= 2;
  for (int i = 0; i < 2; i++) parts[i] = import_reshape(r->import, parts[i], shape, 5);
  return compose_reshape(r->import, compose_concat(r->import, parts, 2, 4), both, 4);
}

Value *rotary_result(Rotary *r, Value *x, Value *cosine, Value *sine) {
  Import *import = r->import;
  if (!x || !cosine || !sine) return NULL;
  Value *a = half_of(r, x, 0), *b = half_of(r, x, 1);
  Value *parts[] = {
      joined(r, turned(r, a, cosine, "subtract", b, sine), turned(r, a, sine, "add", b, cosine)),
      NULL};
  if (2 * r->half == r->size) return parts[0];
  parts[1] = compose_slice(import, x, 3, 2 * r->half, r->size, 1);
  return compose_concat(import, parts, 2, 3);
}

// Rotates the input of the node with tables of angles, and gives its result.
static void rotate_input(Rotary *r, Value *cosine, Value *sine, Value *positions) {
  Import *import = r->import;
  Value *x = import->inputs[0];
  int64_t by_place[] = {r->batch, r->sequence, r->heads, r->size};
  int64_t flat[] = {r->batch, r->sequence, r->heads * r->size};
  if (r->flat) x = import_reshape(import, x, by_place, 4);
  cosine = rotary_angles(r, cosine, positions);
  sine = cosine ? rotary_angles(r, sine, positions) : NULL;
  Value *result = rotary_result(r, x, cosine, sine);
  import_result(import, 0, r->flat ? compose_reshape(import, result, flat, 3) : result);
}

static void import_rotary_embedding(Import *import) {
  Rotary r = {.import = import};
  Value **in = import->inputs;
  if (standard_sizes(&r)) rotate_input(&r, in[1], in[2], import_input(import, 3));
}

// ---- RotaryEmbedding of com.microsoft ---------------------------------------------------------

Value *rotary_positions(Rotary *r, Value *first) {
  int64_t row[] = {1, r->sequence}, column[] = {first ? import_dim(first, 0) : 1, 1};
  Value *steps = compose_reshape(r->import, compose_positions(r->import, r->sequence), row, 2);
  if (!first) return steps;
  first = compose_reshape(r->import, compose_cast(r->import, first, DTYPE_INT64), column, 2);
  return compose_binary(r->import, "add", first, steps);
}

// The tables tell how many numbers of a head are rotated, and without a number of heads all are.
static bool fused_sizes(Rotary *r) {
  Import *import = r->import;
  Value *x = import->inputs[0], *table = import->inputs[2];
  int64_t heads = import_int(import, "num_heads", 0);
  if ((x->rank != 3 && x->rank != 4) || table->rank != 2)
    return import_refuse(import, "takes an input of rank 3 or 4, and tables of rank 2");
  r->flat = x->rank == 3;
  r->half = import_dim(table, 1);
  r->interleaved = import_int(import, "interleaved", 0) != 0;
  r->batch = import_dim(x, 0);
  r->sequence = import_dim(x, r->flat ? 1 : 2);
  int64_t width = import_dim(x, x->rank - 1);
  r->heads = !r->flat ? import_dim(x, 1) : heads > 0 ? heads : width / MAX_OF(2 * r->half, 1);
  if (r->heads < 1 || (r->flat && width % r->heads))
    return import_refuse(import, "its input does not divide by %lld heads", (long long)r->heads);
  r->size = r->flat ? width / r->heads : width;
  return (r->half > 0 && 2 * r->half <= r->size) ||
         import_refuse(import, "rotates %lld of %lld numbers", (long long)(2 * r->half),
                       (long long)r->size);
}

// A single position is that of the first element of each text.
static void import_fused_rotary(Import *import) {
  Rotary r = {.import = import};
  Value **in = import->inputs, *positions = in[1];
  if (!fused_sizes(&r)) return;
  if (import_float(import, "scale", 1) != 1) {
    import_refuse(import, "attribute 'scale' is not supported");
    return;
  }
  bool first = positions->rank == 1 && import_dim(positions, 0) == 1;
  if (first) positions = rotary_positions(&r, positions);
  if (positions) rotate_input(&r, in[2], in[3], positions);
}

const OnnxRow onnx_rotary_rows[] = {
    {"RotaryEmbedding", 3, 4, "interleaved:int num_heads:int rotary_embedding_dim:int",
     import_rotary_embedding},
    {"RotaryEmbedding", 4, 4,
     "interleaved:int is_packed_batching:int num_heads:int rotary_embedding_dim:int scale:float",
     import_fused_rotary, .domain = "com.microsoft"},
    {0},
};
