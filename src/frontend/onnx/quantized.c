// SPDX-License-Identifier: Apache-2.0
// Imports ONNX operators on quantised numbers. Products are computed exactly, in int32, from
// integers minus their zero points; the operator that quantises then scales and rounds.
#include "frontend/onnx/compose.h"

#include "graph/graph.h"

static bool set_type(Import *import, Node *node, const char *key, int32_t code) {
  DType type;
  if (!onnx_dtype(code, &type))
    return import_refuse(import, "attribute '%s': type %s (%d) is not supported", key,
                         onnx_type_name(code), code);
  const char *own = strcmp(key, "precision") == 0 ? key : "dtype";
  node_set_string(import->context, node, own, dtype_name(import->context, type));
  return true;
}

static bool set_type_attribute(Import *import, Node *node, const char *key) {
  int32_t code = (int32_t)import_int(import, key, 0);
  return code == 0 || set_type(import, node, key, code);
}

static Node *begin_on_grid(Import *import, const char *op) {
  Node *node = import_begin(import, op, import->inputs, import->input_count);
  node_set_int(import->context, node, "axis", import_int(import, "axis", 1));
  if (import_int(import, "block_size", 0))
    node_set_int(import->context, node, "block_size", import_int(import, "block_size", 0));
  return node;
}

// The result type is that of the zero point, or the attribute's, or uint8.
static void import_quantize(Import *import) {
  Node *node = begin_on_grid(import, "quantize");
  Value *zero = import_input(import, 2);
  if (zero)
    node_set_string(import->context, node, "dtype", dtype_name(import->context, zero->type));
  else
    node_set_string(import->context, node, "dtype", "uint8");
  if (!zero && !set_type_attribute(import, node, "output_dtype")) return;
  if (!set_type_attribute(import, node, "precision")) return;
  if (!import_int(import, "saturate", 1)) node_set_int(import->context, node, "saturate", 0);
  import_result(import, 0, import_add(import, node));
}

static void import_dequantize(Import *import) {
  Node *node = begin_on_grid(import, "dequantize");
  if (set_type_attribute(import, node, "output_dtype"))
    import_result(import, 0, import_add(import, node));
}

// ---- Products of integers ---------------------------------------------------------------------

// Reshapes one number for each index of `axis` so that it broadcasts to a tensor of rank `rank`. A
// single number, or a tensor of full rank, stays as it is.
static Value *along(Import *import, Value *value, int axis, int rank) {
  int64_t shape[TE_MAX_RANK];
  if (!value || value->rank != 1) return value;
  for (int i = 0; i < rank; i++) shape[i] = 1;
  if (import_dim(value, 0) == 1) return import_reshape(import, value, shape, 0);
  shape[axis] = import_dim(value, 0);
  return import_reshape(import, value, shape, rank);
}

static Value *less_zero(Import *import, Value *x, Value *zero, int axis) {
  Value *wide = import_cast(import, x, DTYPE_INT32);
  if (!zero || !wide) return wide;
  zero = along(import, import_cast(import, zero, DTYPE_INT32), axis, x->rank);
  return zero ? import_op(import, "subtract", wide, zero) : NULL;
}

// Left operands have one number for each row, right operands one for each column.
static Value *product(Import *import, Value *a, Value *zero_a, Value *b, Value *zero_b) {
  a = less_zero(import, a, zero_a, MAX_OF(a->rank - 2, 0));
  b = less_zero(import, b, zero_b, b->rank - 1);
  return a && b ? import_op(import, "matmul", a, b) : NULL;
}

static bool convolved(Import *import, Value **inputs, Value *zero_x, Value *zero_w) {
  inputs[0] = less_zero(import, inputs[0], zero_x, 0);
  inputs[1] = less_zero(import, inputs[1], zero_w, 0);
  return inputs[0] && inputs[1];
}

static void import_matmul_integer(Import *import) {
  import_result(import, 0,
                product(import, import->inputs[0], import_input(import, 2), import->inputs[1],
                        import_input(import, 3)));
}

// Padding is 0 after the zero point is subtracted.
static void import_conv_integer(Import *import) {
  Value *inputs[] = {import->inputs[0], import->inputs[1]};
  if (convolved(import, inputs, import_input(import, 2), import_input(import, 3)))
    import_instead(import, "Conv", inputs, 2);
}

// sum * (a * b) / y + zero
static Value *requantized(Import *import, Value *sum, Value *a, Value *b, Value *y, Value *zero) {
  a = import_cast(import, a, DTYPE_FLOAT32);
  b = import_cast(import, b, DTYPE_FLOAT32);
  Value *scale = a && b ? import_op(import, "multiply", a, b) : NULL;
  sum = sum && scale ? import_cast(import, sum, DTYPE_FLOAT32) : NULL;
  Value *inputs[] = {sum ? import_op(import, "multiply", sum, scale) : NULL,
                     import_cast(import, y, DTYPE_FLOAT32), zero};
  if (!inputs[0]) return NULL;
  Node *node = import_begin(import, "quantize", inputs, 3);
  node_set_string(import->context, node, "dtype", dtype_name(import->context, zero->type));
  return import_add(import, node);
}

static void import_qlinear_matmul(Import *import) {
  Value **in = import->inputs;
  int rows = MAX_OF(in[0]->rank - 2, 0);
  Value *sum = product(import, in[0], in[2], in[3], in[5]);
  Value *a = along(import, in[1], rows, in[0]->rank);
  Value *b = along(import, in[4], in[3]->rank - 1, in[3]->rank);
  import_result(import, 0, requantized(import, sum, a, b, in[6], in[7]));
}

static void import_qlinear_conv(Import *import) {
  Value **in = import->inputs, *inputs[] = {in[0], in[3], import_input(import, 8)};
  if (!convolved(import, inputs, in[2], in[5])) return;
  Value *sum = import_through(import, "Conv", inputs, inputs[2] ? 3 : 2);
  Value *scale = along(import, in[4], 0, in[3]->rank - 1);
  import_result(import, 0,
                requantized(import, sum, along(import, in[1], 0, 1), scale, in[6], in[7]));
}

// ---- Products of com.microsoft ----------------------------------------------------------------

// sum * scale_a * scale_b + bias
static Value *scaled(Import *import, Value *sum, Value *a, Value *b, Value *bias) {
  sum = compose_cast(import, sum, DTYPE_FLOAT32);
  sum = compose_binary(import, "multiply", sum, compose_binary(import, "multiply", a, b));
  return bias ? compose_binary(import, "add", sum, bias) : sum;
}

static void import_matmul_integer_to_float(Import *import) {
  Value **in = import->inputs;
  Value *sum = product(import, in[0], import_input(import, 4), in[1], import_input(import, 5));
  import_result(import, 0, scaled(import, sum, in[2], in[3], import_input(import, 6)));
}

// The right operand is [n, k] with trans_b, and its scale has one number for each n.
static void import_qgemm(Import *import) {
  Value **in = import->inputs, *operands[2], *bias = import_input(import, 6), *sum;
  static const char *const keys[] = {"transA", "transB"};
  for (int i = 0; i < 2; i++) {
    operands[i] = in[3 * i];
    if (operands[i]->rank != 2) {
      import_refuse(import, "takes matrices");
      return;
    }
    if (import_int(import, keys[i], 0))
      operands[i] = compose_permute(import, operands[i], (const int64_t[]){1, 0});
  }
  sum = operands[0] && operands[1] ? product(import, operands[0], in[2], operands[1], in[5]) : NULL;
  if (bias) sum = compose_binary(import, "add", sum, bias);
  Value *a = along(import, in[1], 0, 1), *b = along(import, in[4], 1, 2);
  if (import_has(import, "alpha"))
    a = compose_number(import, "multiply", a, import_float(import, "alpha", 1));
  if (!sum || !a || !b) return;
  if (!import_input(import, 7))
    import_result(import, 0, scaled(import, sum, a, b, NULL));
  else if (!import_input(import, 8))
    import_refuse(import, "has a scale of its result without a zero point");
  else
    import_result(import, 0, requantized(import, sum, a, b, in[7], in[8]));
}

// ---- Dynamic quantisation ---------------------------------------------------------------------

static Value *reduced(Import *import, const char *op, Value *x) {
  return import_add(import, import_begin(import, op, &x, 1));
}

// The scale divides the range from the minimum to the maximum, 0 included, into 255 steps; for
// zeros only it is 1.
typedef struct Quantized {
  Value *value, *scale, *point;
} Quantized;

static Quantized quantized_by_range(Import *import, Value *x) {
  Value *low = reduced(import, "min", x), *high = reduced(import, "max", x);
  if (!low || !high) return (Quantized){0};
  Value *zero = import_scalar(import, x, 0), *one = import_scalar(import, x, 1);
  Value *steps = import_scalar(import, x, 255);
  low = import_op(import, "minimum", low, zero);
  high = import_op(import, "maximum", high, zero);
  Value *range = low && high ? import_op(import, "subtract", high, low) : NULL;
  Value *scale = import_op(import, "divide", range, steps);
  Value *none = scale ? import_op(import, "equal", scale, zero) : NULL;
  Value *choice[] = {none, one, scale};
  scale = none ? import_add(import, import_begin(import, "where", choice, 3)) : NULL;
  Value *offset = scale ? import_op(import, "divide", low, scale) : NULL;
  offset = offset ? import_op(import, "subtract", zero, offset) : NULL;
  Value *bounded[] = {offset, zero, steps};
  offset = offset ? import_add(import, import_begin(import, "clip", bounded, 3)) : NULL;
  Value *point = import_cast(import, import_op(import, "round", offset, NULL), DTYPE_UINT8);
  Value *inputs[] = {x, scale, point};
  Node *node = point ? import_begin(import, "quantize", inputs, 3) : NULL;
  if (node) node_set_string(import->context, node, "dtype", "uint8");
  return (Quantized){node ? import_add(import, node) : NULL, scale, point};
}

static void import_dynamic_quantize(Import *import) {
  Quantized x = quantized_by_range(import, import->inputs[0]);
  import_result(import, 0, x.value);
  import_result(import, 1, x.scale);
  import_result(import, 2, x.point);
}

// A product of floats with quantised weights, which quantises its left operand.
static void import_dynamic_matmul(Import *import) {
  Quantized a = quantized_by_range(import, import->inputs[0]);
  if (!a.value || !a.scale) return;
  Value *sum = product(import, a.value, a.point, import->inputs[1], import_input(import, 3));
  import_result(import, 0,
                scaled(import, sum, a.scale, import->inputs[2], import_input(import, 4)));
}

// ---- DynamicQuantizeLSTM ------------------------------------------------------------------------

// Weights [direction, from, to] with one scale for a direction, or one for each column, become the
// float weights [direction, to, from] of LSTM.
static Value *lstm_weights(Import *import, int input, int scale, int zero) {
  Value *weights = import_input(import, input), *scales = import_input(import, scale);
  Value *points = import_input(import, zero);
  int64_t shape[] = {0, 1, 1};
  static const int64_t axes[] = {0, 2, 1};
  if (!weights || !scales || weights->rank != 3 || scales->rank < 1 || scales->rank > 2 ||
      (points && points->rank != scales->rank)) {
    import_refuse(import, "needs weights of rank 3 in input %d and scales of rank 1 or 2 in %d",
                  input, scale);
    return NULL;
  }
  shape[0] = import_dim(scales, 0);
  if (scales->rank == 2) shape[2] = import_dim(scales, 1);
  Value *value = import_cast(import, weights, DTYPE_FLOAT32);
  if (points)
    value = import_op(import, "subtract", value,
                      import_reshape(import, import_cast(import, points, DTYPE_FLOAT32), shape, 3));
  scales = import_reshape(import, scales, shape, 3);
  value = value && scales ? import_op(import, "multiply", value, scales) : NULL;
  Node *node = value ? import_begin(import, "permute_dims", &value, 1) : NULL;
  if (node) node_set_ints(import->context, node, "axes", axes, 3);
  return node ? import_add(import, node) : NULL;
}

// An LSTM whose weights are quantized. ONNX Runtime quantizes the input and the state of each step
// as well, to compute with integers; here they stay floats, which is more exact.
static void import_dynamic_lstm(Import *import) {
  enum { LSTM_INPUTS = 8, WEIGHTS = 1, STATE_WEIGHTS = 2 };
  Value **inputs = arena_array(&import->context->arena, Value *, LSTM_INPUTS);
  for (int i = 0; i < LSTM_INPUTS; i++) inputs[i] = import_input(import, i);
  inputs[WEIGHTS] = lstm_weights(import, WEIGHTS, 8, 9);
  inputs[STATE_WEIGHTS] = lstm_weights(import, STATE_WEIGHTS, 10, 11);
  if (inputs[WEIGHTS] && inputs[STATE_WEIGHTS])
    import_instead(import, "LSTM", inputs, LSTM_INPUTS);
}

#define CONV_ATTRIBUTES                                                                            \
  "kernel_shape:ints strides:ints pads:ints dilations:ints auto_pad:string group:int"

const OnnxRow onnx_quantized_rows[] = {
    {"ConvInteger", 2, 4, CONV_ATTRIBUTES, import_conv_integer},
    {"DequantizeLinear", 2, 3, "axis:int block_size:int output_dtype:int", import_dequantize},
    {"DequantizeLinear", 2, 3, "axis:int block_size:int", import_dequantize,
     .domain = "com.microsoft"},
    {"DynamicQuantizeLinear", 1, 1, NULL, import_dynamic_quantize},
    {"DynamicQuantizeLSTM", 3, 12,
     "activation_alpha:floats activation_beta:floats activations:strings clip:float "
     "direction:string hidden_size:int input_forget:int",
     import_dynamic_lstm, .domain = "com.microsoft"},
    {"DynamicQuantizeMatMul", 3, 5, NULL, import_dynamic_matmul, .domain = "com.microsoft"},
    {"MatMulInteger", 2, 4, NULL, import_matmul_integer},
    {"MatMulIntegerToFloat", 4, 7, NULL, import_matmul_integer_to_float,
     .domain = "com.microsoft"},
    {"QGemm", 6, 9, "alpha:float transA:int transB:int", import_qgemm, .domain = "com.microsoft"},
    {"QLinearConv", 8, 9, CONV_ATTRIBUTES, import_qlinear_conv},
    {"QLinearMatMul", 8, 8, NULL, import_qlinear_matmul},
    {"QuantizeLinear", 2, 3, "axis:int block_size:int output_dtype:int precision:int saturate:int",
     import_quantize},
    {"QuantizeLinear", 2, 3, "axis:int block_size:int", import_quantize,
     .domain = "com.microsoft"},
    {0},
};
