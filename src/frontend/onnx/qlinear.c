// SPDX-License-Identifier: Apache-2.0
// Imports operators of ONNX Runtime's domain com.microsoft that compute with quantised numbers and
// give quantised ones. Each is the operator of the standard whose name follows "QLinear", between
// numbers that are dequantised before it and quantised after it.
#include "frontend/onnx/compose.h"

#include "graph/graph.h"

// A scale or a zero point, which may be a list of one number.
static Value *single(Import *import, Value *value) {
  bool listed = value && value->rank == 1 && import_dim(value, 0) == 1;
  return listed ? import_reshape(import, value, NULL, 0) : value;
}

static Value *dequantized(Import *import, Value *const *group) {
  Value *inputs[] = {group[0], single(import, group[1]), single(import, group[2])};
  return import_add(import, import_begin(import, "dequantize", inputs, inputs[2] ? 3 : 2));
}

// Without a zero point it is 0, and the type is that of the quantised inputs.
static Value *quantized(Import *import, Value *x, Value *const *grid, DType type) {
  Value *inputs[] = {x, single(import, grid[0]), single(import, grid[1])};
  if (!x) return NULL;
  Node *node = import_begin(import, "quantize", inputs, inputs[2] ? 3 : 2);
  if (inputs[2]) type = inputs[2]->type;
  node_set_string(import->context, node, "dtype", dtype_name(import->context, type));
  return import_add(import, node);
}

// With channels_last, the operator of the standard is between two transpositions.
static Value *between_transpositions(Import *import, const char *op, Value *x) {
  int64_t first[TE_MAX_RANK] = {0}, last[TE_MAX_RANK] = {0};
  for (int i = 1; x && i < x->rank; i++) {
    first[i] = i == 1 ? x->rank - 1 : i - 1;
    last[i] = i == x->rank - 1 ? 1 : i + 1;
  }
  x = compose_permute(import, x, first);
  return compose_permute(import, import_through(import, op, &x, 1), last);
}

// True when a softmax of the attribute's opset is the same as one of the model's opset.
static bool same_softmax(Import *import) {
  const Value *x = import_input(import, 0);
  bool flat = import_int(import, "opset", 13) < 13;
  int64_t axis = import_int(import, "axis", flat ? 1 : -1);
  bool last = import_has(import, "axis") && (axis == -1 || axis == x->rank - 1);
  return last || flat == (import_opset(import) < 13) ||
         import_refuse(import, "attribute 'opset' is %lld in a model of opset %lld",
                       (long long)import_int(import, "opset", 13), (long long)import_opset(import));
}

// Inputs are some operands that are not quantised (`plain`), then groups of a tensor, its scale and
// its zero point, then the result's scale and zero point. `result` and `groups` are the positions.
static void import_groups(Import *import, int plain, int result, int groups, int count) {
  const char *op = import->node->op_type + strlen("QLinear");
  Value **operands = arena_array(&import->context->arena, Value *, plain + count), *y;
  DType type = DTYPE_UINT8;
  Value *grid[] = {import_input(import, result), import_input(import, result + 1)};
  for (int i = 0; i < plain; i++) operands[i] = import_input(import, i);
  for (int i = 0; i < count; i++) {
    Value *group[3];
    for (int k = 0; k < 3; k++) group[k] = import_input(import, groups + 3 * i + k);
    if (!group[0] || !group[1] || !grid[0]) {
      import_refuse(import, "a tensor or a scale is absent");
      return;
    }
    type = group[0]->type;
    if (!(operands[plain + i] = dequantized(import, group))) return;
  }
  y = import_int(import, "channels_last", 0) ? between_transpositions(import, op, operands[0])
                                             : import_through(import, op, operands, plain + count);
  import_result(import, 0, quantized(import, y, grid, type));
}

static void import_qlinear_unary(Import *import) {
  import_groups(import, 0, 3, 0, 1);
}

static void import_qlinear_softmax(Import *import) {
  if (same_softmax(import)) import_groups(import, 0, 3, 0, 1);
}

static void import_qlinear_binary(Import *import) {
  import_groups(import, 0, 6, 0, 2);
}

static void import_qlinear_where(Import *import) {
  import_groups(import, 1, 7, 1, 2);
}

static void import_qlinear_concat(Import *import) {
  int count = (import->input_count - 1) / 3; // the last zero point may be absent
  import_groups(import, 0, 0, 2, count);
}

#define DOMAIN .domain = "com.microsoft"

const OnnxRow onnx_qlinear_rows[] = {
    {"QLinearAdd", 1, 8, NULL, import_qlinear_binary, DOMAIN},
    {"QLinearAveragePool", 1, 5,
     "auto_pad:string ceil_mode:int channels_last:int count_include_pad:int kernel_shape:ints "
     "pads:ints strides:ints",
     import_qlinear_unary, DOMAIN},
    {"QLinearConcat", 4, -1, "axis:int", import_qlinear_concat, DOMAIN},
    {"QLinearGlobalAveragePool", 1, 5, "channels_last:int", import_qlinear_unary, DOMAIN},
    {"QLinearLeakyRelu", 1, 5, "alpha:float", import_qlinear_unary, DOMAIN},
    {"QLinearMul", 1, 8, NULL, import_qlinear_binary, DOMAIN},
    {"QLinearReduceMean", 1, 5, "axes:ints keepdims:int", import_qlinear_unary, DOMAIN},
    {"QLinearSigmoid", 1, 5, NULL, import_qlinear_unary, DOMAIN},
    {"QLinearSoftmax", 1, 5, "axis:int opset:int", import_qlinear_softmax, DOMAIN},
    {"QLinearWhere", 1, 9, NULL, import_qlinear_where, DOMAIN},
    {0},
};
