// SPDX-License-Identifier: Apache-2.0
// Imports operators of com.microsoft over weights that are quantised in blocks of a few bits:
// products, and rows of a table. They are the operators of the standard on dequantised weights.
#include "frontend/onnx/compose.h"

#include "graph/graph.h"

// The numbers of packed bytes, of which the last axis holds 8 / bits each; `count` of the last axis
// are kept.
static Value *unpacked(Import *import, Value *bytes, int64_t bits, int64_t count) {
  if (!bytes) return NULL;
  if (bits != 8) {
    Node *node = import_begin(import, "unpack_bits", &bytes, 1);
    node_set_int(import->context, node, "bits", bits);
    bytes = import_add(import, node);
  }
  return bytes ? compose_slice(import, bytes, bytes->rank - 1, 0, count, 1) : NULL;
}

// (numbers - zero) * scale with one zero point and scale for each block along the axis.
static Value *dequantised(Import *import, Value *numbers, Value *scale, Value *zero, int64_t axis,
                          int64_t block, DType type) {
  Value *inputs[] = {numbers, scale, zero};
  if (!numbers || !scale || !zero) return NULL;
  Node *node = import_begin(import, "dequantize", inputs, 3);
  node_set_int(import->context, node, "axis", axis);
  node_set_int(import->context, node, "block_size", block);
  node_set_string(import->context, node, "dtype", dtype_name(import->context, type));
  return import_add(import, node);
}

// The zero point without an input: the middle of the range of unsigned numbers.
static Value *middle(Import *import, int64_t bits) {
  uint8_t number = (uint8_t)(1 << (bits - 1));
  return import_filled(import, DTYPE_UINT8, &number, NULL, 0);
}

static bool has_elements(const Value *value, int64_t count) {
  int64_t elements = 1;
  for (int i = 0; i < value->rank; i++) elements *= import_dim(value, i);
  return elements == count;
}

// ---- MatMulNBits ------------------------------------------------------------------------------

typedef struct Blocks {
  Import *import;
  int64_t rows, columns; // of the weights: features of the result and of the input
  int64_t bits, block;
  int64_t blocks; // of one row
} Blocks;

static bool blocks_of(Blocks *b, Import *import) {
  enum { MOST = 1 << 28 };
  *b = (Blocks){.import = import,
                .rows = import_int(import, "N", 0),
                .columns = import_int(import, "K", 0),
                .bits = import_int(import, "bits", 4),
                .block = import_int(import, "block_size", 0)};
  if (b->rows < 1 || b->columns < 1 || b->rows > MOST || b->columns > MOST || b->block < 8 ||
      b->block > MOST || b->block % 8)
    return import_refuse(import, "weights of %lld x %lld in blocks of %lld", (long long)b->rows,
                         (long long)b->columns, (long long)b->block);
  if (b->bits != 2 && b->bits != 4 && b->bits != 8)
    return import_refuse(import, "weights of %lld bits are not supported, only of 2, 4 and 8",
                         (long long)b->bits);
  b->blocks = ceil_div(b->columns, b->block);
  if (import_input(import, 4))
    return import_refuse(import, "its input 4, groups of columns, is not supported");
  if (import_int(import, "weight_prepacked", 0))
    return import_refuse(import, "its weights are packed for another processor");
  Value **in = import->inputs;
  return (dtype_equal(in[1]->type, DTYPE_UINT8) &&
          has_elements(in[1], b->rows * b->blocks * b->block * b->bits / 8) &&
          has_elements(in[2], b->rows * b->blocks)) ||
         import_refuse(import, "its weights and scales do not fit N, K and block_size");
}

// Zero points are packed as the weights are, or have the type of the scales.
static Value *zero_points(Blocks *b) {
  Import *import = b->import;
  Value *zero = import_input(import, 3);
  int64_t bytes = ceil_div(b->blocks * b->bits, 8), packed[] = {b->rows, bytes};
  int64_t shape[] = {b->rows, b->blocks};
  if (!zero) return middle(import, b->bits);
  if (dtype_equal(zero->type, DTYPE_UINT8) && has_elements(zero, b->rows * bytes))
    return unpacked(import, compose_reshape(import, zero, packed, 2), b->bits, b->blocks);
  if (dtype_is_float(zero->type) && has_elements(zero, b->rows * b->blocks))
    return compose_reshape(import, zero, shape, 2);
  import_refuse(import, "its zero points have neither the form of the weights nor of the scales");
  return NULL;
}

static Value *weights_of(Blocks *b) {
  Import *import = b->import;
  int64_t packed[] = {b->rows, b->blocks * b->block * b->bits / 8};
  int64_t shape[] = {b->rows, b->blocks};
  Value *bytes = compose_reshape(import, import->inputs[1], packed, 2);
  Value *scale = compose_reshape(import, import->inputs[2], shape, 2);
  Value *weights = dequantised(import, unpacked(import, bytes, b->bits, b->columns), scale,
                               zero_points(b), 1, b->block, DTYPE_FLOAT32);
  return compose_permute(import, weights, (const int64_t[]){1, 0});
}

static void import_matmul_bits(Import *import) {
  Blocks b;
  if (!blocks_of(&b, import)) return;
  Value *x = import->inputs[0], *bias = import_input(import, 5);
  Value *wide = compose_cast(import, x, DTYPE_FLOAT32);
  Value *y = compose_binary(import, "matmul", wide, weights_of(&b));
  if (bias) y = compose_binary(import, "add", y, compose_cast(import, bias, DTYPE_FLOAT32));
  import_result(import, 0, compose_cast(import, y, x->type));
}

// ---- GatherBlockQuantized ---------------------------------------------------------------------

static Value *gathered(Import *import, Value *data, int64_t axis) {
  Value *inputs[] = {data, import->inputs[1]};
  if (!data) return NULL;
  Node *node = import_begin(import, "take", inputs, 2);
  node_set_int(import->context, node, "axis", axis);
  return import_add(import, node);
}

// Numbers narrower than a byte are packed along the last axis of bytes.
static Value *table(Import *import, Value *data, int64_t bits) {
  bool bytes = dtype_equal(data->type, DTYPE_UINT8) && bits < 8;
  return bytes ? unpacked(import, data, bits, import_dim(data, data->rank - 1) * (8 / bits)) : data;
}

// The table's zero points, [.., blocks], with the numbers of a last byte that no block has removed.
static Value *table_zeros(Import *import, const Value *data, int64_t bits) {
  Value *zero = import_input(import, 3), *scale = import->inputs[2];
  uint8_t none = 0;
  if (!zero && dtype_equal(data->type, DTYPE_UINT8)) return middle(import, bits);
  if (!zero) return import_filled(import, data->type, &none, NULL, 0);
  Value *all = table(import, zero, bits);
  if (!all || all->rank != scale->rank) return all;
  int last = scale->rank - 1;
  bool more = last >= 0 && import_dim(all, last) > import_dim(scale, last);
  return more ? compose_slice(import, all, last, 0, import_dim(scale, last), 1) : all;
}

static void import_gather_blocks(Import *import) {
  Value *data = import->inputs[0], *scale = import->inputs[2];
  int64_t bits = import_int(import, "bits", 4), block = import_int(import, "block_size", 128);
  int64_t axis = import_int(import, "gather_axis", 0);
  int64_t along = import_int(import, "quantize_axis", 1);
  if (!import_axis(import, &axis, data->rank) || !import_axis(import, &along, data->rank)) return;
  if (axis == along || block < 1 || !dtype_is_int(data->type) ||
      (bits != 2 && bits != 4 && bits != 8)) {
    import_refuse(import, "takes whole numbers of 2, 4 or 8 bits in blocks of another axis than "
                          "that of its indices");
    return;
  }
  Value *numbers = table(import, data, bits), *zero = table_zeros(import, data, bits);
  if (!numbers || !zero) return;
  if (zero->rank) zero = gathered(import, zero, axis);
  int64_t moved = along + (along > axis ? import->inputs[1]->rank - 1 : 0);
  import_result(import, 0,
                dequantised(import, gathered(import, numbers, axis), gathered(import, scale, axis),
                            zero, moved, block, scale->type));
}

#define DOMAIN .domain = "com.microsoft"

const OnnxRow onnx_block_rows[] = {
    {"GatherBlockQuantized", 3, 4, "bits:int block_size:int gather_axis:int quantize_axis:int",
     import_gather_blocks, DOMAIN},
    {"MatMulNBits", 3, 6,
     "K:int N:int accuracy_level:int bits:int block_size:int weight_prepacked:int",
     import_matmul_bits, DOMAIN},
    {0},
};
