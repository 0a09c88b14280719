// SPDX-License-Identifier: Apache-2.0
// Imports the ONNX operators that differ from the operators of src/graph: inputs that became
// attributes (or the reverse) between opsets, other defaults, and operators composed of several.
// The end of the file has the table of rows.
#include "frontend/onnx/compose.h"

#include "graph/graph.h"

// ---- Products ---------------------------------------------------------------------------------

static void import_gemm(Import *import) {
  Node *node = import_begin(import, "gemm", import->inputs, import->input_count);
  Context *context = import->context;
  if (import_has(import, "alpha"))
    node_set_float(context, node, "alpha", import_float(import, "alpha", 1));
  if (import_has(import, "beta"))
    node_set_float(context, node, "beta", import_float(import, "beta", 1));
  if (import_int(import, "transA", 0)) node_set_int(context, node, "transpose_a", 1);
  if (import_int(import, "transB", 0)) node_set_int(context, node, "transpose_b", 1);
  import_result(import, 0, import_add(import, node));
}

// ---- Elementwise ------------------------------------------------------------------------------

// The result has the base's type. A float exponent of an integer base makes the computation one of
// floats.
static void import_pow(Import *import) {
  Value *base = import_input(import, 0), *exponent = import_input(import, 1);
  DType type = base->type;
  if (dtype_is_float(type) || !dtype_is_float(exponent->type))
    exponent = import_cast(import, exponent, type);
  else
    base = import_cast(import, base, exponent->type);
  import_result(
      import, 0,
      import_cast(import, exponent ? import_op(import, "power", base, exponent) : NULL, type));
}

static bool scalar_bound(Import *import, int i, double *bound, bool *present) {
  Value *value = import_input(import, i);
  *present = value != NULL;
  if (!value || !value->data || value->rank > 1 || const_count(value->data) != 1) return !value;
  *bound = const_number(value->data, 0);
  return dtype_equal(value->type, import_input(import, 0)->type);
}

// Bounds that are known numbers become attributes; others stay inputs.
static void import_clip(Import *import) {
  static const char *const keys[] = {"min", "max"};
  Context *context = import->context;
  double bounds[2] = {0};
  bool present[2];
  bool exact = dtype_is_float(import_input(import, 0)->type);
  for (int i = 0; i < 2; i++) exact &= scalar_bound(import, i + 1, &bounds[i], &present[i]);
  Node *node = import_begin(import, "clip", import->inputs, exact ? 1 : import->input_count);
  for (int i = 0; i < 2; i++) {
    if (exact && present[i]) node_set_float(context, node, keys[i], bounds[i]);
    if (import_has(import, keys[i]))
      node_set_float(context, node, keys[i], import_float(import, keys[i], 0));
  }
  import_result(import, 0, import_add(import, node));
}

// Casts to floats of up to eight bits saturate: a value that is too large becomes the largest
// number, unless the node says otherwise.
static Value *saturated(Import *import, Value *value, DType type) {
  const FloatFormat *format =
      dtype_is_float(type) && type.bits <= 8 ? dtype_small_float(type) : NULL;
  if (!format || !import_int(import, "saturate", 1) || !dtype_is_float(value->type)) return value;
  double most = float_decode(*format, float_beyond(*format) - 1);
  Node *node = import_begin(import, "clip", &value, 1);
  node_set_float(import->context, node, "min", -most);
  node_set_float(import->context, node, "max", most);
  return import_add(import, node);
}

static void cast_to(Import *import, DType type) {
  Value *value = import_input(import, 0);
  if (!dtype_equal(value->type, type)) value = saturated(import, value, type);
  import_result(import, 0, import_cast(import, value, type));
}

static void import_cast_node(Import *import) {
  DType type;
  int32_t code = (int32_t)import_int(import, "to", 0);
  if (onnx_dtype(code, &type))
    cast_to(import, type);
  else
    import_refuse(import, "to type %s (%d) is not supported: %s", onnx_type_name(code), code,
                  onnx_type_advice(code));
}

static void import_cast_like(Import *import) {
  cast_to(import, import_input(import, 1)->type);
}

static void import_bit_cast(Import *import) {
  DType type;
  int32_t code = (int32_t)import_int(import, "to", 0);
  if (!onnx_dtype(code, &type)) {
    import_refuse(import, "to type %s (%d) is not supported: %s", onnx_type_name(code), code,
                  onnx_type_advice(code));
    return;
  }
  Node *node = import_begin(import, "bitcast", import->inputs, 1);
  node_set_string(import->context, node, "dtype", dtype_name(import->context, type));
  import_result(import, 0, import_add(import, node));
}

static void import_mean(Import *import) {
  Node *node = import_begin(import, "add_n", import->inputs, import->input_count);
  Value *sum = import_add(import, node);
  Value *count = sum ? import_scalar(import, sum, import->input_count) : NULL;
  import_result(import, 0, import_op(import, "divide", sum, count));
}

static void import_identity(Import *import) {
  import_result(import, 0, import_input(import, 0));
}

// A dropout at inference, or with the ratio 0, is the identity, and its mask is all true.
static void import_dropout(Import *import) {
  Value *x = import_input(import, 0);
  if (import_input(import, 2)) {
    ConstData *training = import_constant(import, 2);
    if (!training) return;
    ConstData *ratio = import_known(import, 1);
    bool drops = !ratio || const_count(ratio) != 1 || const_number(ratio, 0) != 0;
    if (const_count(training) && const_int(training, 0) && drops) {
      import_refuse(import,
                    "training_mode is on, and what it drops is random: export the model for "
                    "inference, or make its ratio 0");
      return;
    }
  }
  if (!import_wants_output(import, 1)) {
    import_result(import, 0, x);
    return;
  }
  Node *node = import_begin(import, "nn.dropout", &x, 1);
  node->output_count = 2;
  node->outputs = arena_array(&import->context->arena, Value *, 2);
  import_result(import, 0, import_add(import, node));
  import_result(import, 1, node->outputs[1]);
}

// ---- Normalisation ----------------------------------------------------------------------------

static Value *moving(Import *import, int input, Value *now) {
  double momentum = import_float(import, "momentum", 0.9F);
  Value *old = compose_number(import, "multiply", import->inputs[input], momentum);
  return compose_binary(import, "add", old, compose_number(import, "multiply", now, 1 - momentum));
}

// Normalises by the mean and variance of each channel over the batch and the image, and gives the
// new moving averages.
static void batch_norm_training(Import *import) {
  Value *x = import->inputs[0];
  int64_t axes[TE_MAX_RANK], shape[TE_MAX_RANK];
  if (x->rank < 2) {
    import_refuse(import, "takes an input of rank 2 or more, got %d", x->rank);
    return;
  }
  for (int i = 0, n = 0; i < x->rank; i++) {
    shape[i] = i == 1 ? import_dim(x, 1) : 1;
    if (i != 1) axes[n++] = i;
  }
  Value *wide = compose_cast(import, x, import->inputs[3]->type);
  Value *mean = compose_reduce(import, "mean", wide, axes, x->rank - 1, false);
  Value *off =
      compose_binary(import, "subtract", wide, compose_reshape(import, mean, shape, x->rank));
  Value *square = compose_binary(import, "multiply", off, off);
  Value *variance = compose_reduce(import, "mean", square, axes, x->rank - 1, false);
  Value *inputs[] = {x, import->inputs[1], import->inputs[2], mean, variance};
  if (!mean || !variance) return;
  Node *node = import_begin(import, "nn.batch_norm", inputs, 5);
  node_set_int(import->context, node, "training", 0);
  node_set_float(import->context, node, "epsilon", import_float(import, "epsilon", 1e-5));
  import_result(import, 0, import_add(import, node));
  import_result(import, 1, moving(import, 3, mean));
  import_result(import, 2, moving(import, 4, variance));
}

static void import_batch_norm(Import *import) {
  if (import_int(import, "training_mode", 0) && import_opset(import) >= 14) {
    batch_norm_training(import);
    return;
  }
  for (int i = 1; i < import->node->output.count; i++)
    if (import_wants_output(import, i)) {
      import_refuse(import, "its results for training are not supported before opset 14: convert "
                            "the model to it, or export it for inference");
      return;
    }
  if (!import_int(import, "spatial", 1)) {
    import_refuse(import, "attribute 'spatial' 0 is not supported, only one mean per channel");
  } else {
    Node *node = import_begin(import, "nn.batch_norm", import->inputs, 5);
    node_set_int(import->context, node, "training", 0);
    node_set_float(import->context, node, "epsilon", import_float(import, "epsilon", 1e-5));
    import_result(import, 0, import_add(import, node));
  }
}

// Up to opset 12 the axis and all later ones are flattened into one, and the default axis is 1.
static void import_softmax(Import *import) {
  bool old = import_opset(import) < 13;
  int64_t axis = import_int(import, "axis", old ? 1 : -1);
  bool log = strcmp(import->node->op_type, "LogSoftmax") == 0;
  if (!import_axis(import, &axis, import_input(import, 0)->rank)) return;
  Node *node = import_begin(import, log ? "nn.log_softmax" : "nn.softmax", import->inputs, 1);
  node_set_int(import->context, node, "axis", axis);
  if (old && axis < import_input(import, 0)->rank - 1)
    node_set_int(import->context, node, "all_behind", 1);
  import_result(import, 0, import_add(import, node));
}

// ---- Reductions -------------------------------------------------------------------------------

static Value *reduce(Import *import, const char *op, Value *x, IntArray axes, bool keep) {
  if (!x) return NULL;
  Node *node = import_begin(import, op, &x, 1);
  if (axes.count) import_set_ints(import, node, "axis", axes);
  if (keep) node_set_int(import->context, node, "keepdims", 1);
  return import_add(import, node);
}

// log(sum(exp(x))) = m + log(sum(exp(x - m))) with m the maximum.
static Value *reduce_log_sum_exp(Import *import, Value *x, IntArray axes, bool keep) {
  Value *most = reduce(import, "max", x, axes, true);
  Value *shifted = most ? import_op(import, "subtract", x, most) : NULL;
  Value *sum = reduce(import, "sum", import_op(import, "exp", shifted, NULL), axes, keep);
  Value *base = keep ? most : reduce(import, "max", x, axes, false);
  return base ? import_op(import, "add", import_op(import, "log", sum, NULL), base) : NULL;
}

static void import_reduce(Import *import) {
  const char *type = import->node->op_type;
  Value *x = import_input(import, 0), *result;
  bool keep = import_int(import, "keepdims", 1) != 0, present;
  IntArray axes;
  if (!import_list(import, 1, "axes", &axes, &present)) return;
  if (!axes.count && import_int(import, "noop_with_empty_axes", 0)) {
    import_result(import, 0, x);
    return;
  }
  if (strcmp(type, "ReduceLogSumExp") == 0)
    result = reduce_log_sum_exp(import, x, axes, keep);
  else if (strcmp(type, "ReduceLogSum") == 0)
    result = import_op(import, "log", reduce(import, "sum", x, axes, keep), NULL);
  else
    result = reduce(import, op_find_onnx(type)->name, x, axes, keep);
  import_result(import, 0, result);
}

// ---- Shapes -----------------------------------------------------------------------------------

// Reshapes a constant into a constant; the operator only finds the shape.
static void finish_reshape(Import *import, Node *node) {
  Value *x = node->inputs[0];
  int64_t shape[TE_MAX_RANK];
  if (!x->data) {
    import_result(import, 0, import_add(import, node));
  } else if (op_infer(import->context, node) && value_static_shape(node->outputs[0], shape)) {
    int rank = node->outputs[0]->rank;
    import_result(import, 0, import_const(import, x->type, shape, rank, x->data->data));
  }
}

static void import_reshape_node(Import *import) {
  IntArray shape;
  bool present;
  if (!import_list(import, 1, "shape", &shape, &present)) return;
  if (!present) {
    import_refuse(import, "its shape is missing");
    return;
  }
  Node *node = import_begin(import, "reshape", import->inputs, 1);
  import_set_ints(import, node, "shape", shape);
  if (import_int(import, "allowzero", 0)) node_set_int(import->context, node, "allow_zero", 1);
  finish_reshape(import, node);
}

// Remainders have the sign of the dividend with 'fmod', and otherwise that of the divisor.
static void import_mod(Import *import) {
  const char *op = import_int(import, "fmod", 0) ? "mod" : "floor_mod";
  import_result(import, 0, import_op(import, op, import_input(import, 0), import_input(import, 1)));
}

// The slopes broadcast from the last axis on.
static void import_prelu(Import *import) {
  Node *node = import_begin(import, "nn.prelu", import->inputs, 2);
  node_set_int(import->context, node, "axis", -1);
  import_result(import, 0, import_add(import, node));
}

static void import_flatten(Import *import) {
  Node *node = import_begin(import, "flatten", import->inputs, 1);
  node_set_int(import->context, node, "axis", import_int(import, "axis", 1));
  finish_reshape(import, node);
}

static void import_squeeze(Import *import) {
  bool squeeze = strcmp(import->node->op_type, "Squeeze") == 0, present;
  IntArray axes;
  if (!import_list(import, 1, "axes", &axes, &present)) return;
  if (!present && !squeeze) {
    import_refuse(import, "attribute 'axes' is missing");
    return;
  }
  if (present && !axes.count) {
    import_result(import, 0, import_input(import, 0));
    return;
  }
  Node *node = import_begin(import, squeeze ? "squeeze" : "expand_dims", import->inputs, 1);
  if (present) import_set_ints(import, node, "axis", axes);
  finish_reshape(import, node);
}

static void import_transpose(Import *import) {
  Node *node = import_begin(import, "permute_dims", import->inputs, 1);
  if (import_ints(import, "perm").count)
    import_set_ints(import, node, "axes", import_ints(import, "perm"));
  import_result(import, 0, import_add(import, node));
}

static void import_concat_node(Import *import) {
  if (!import_has(import, "axis")) {
    import_refuse(import, "attribute 'axis' is missing");
    return;
  }
  Node *node = import_begin(import, "concat", import->inputs, import->input_count);
  node_set_int(import->context, node, "axis", import_int(import, "axis", 0));
  import_result(import, 0, import_add(import, node));
}

// Pads are given for the axes of input 3 (all axes without it); extends them to all axes.
static bool spread_pads(Import *import, IntArray *pads, int rank) {
  IntArray axes, all = {0};
  if (!import_input(import, 3))
    return pads->count == 2 * rank ||
           import_refuse(import, "has %d pads for a tensor of rank %d", pads->count, rank);
  if (!import_constant_ints(import, 3, &axes)) return false;
  if (pads->count != 2 * axes.count)
    return import_refuse(import, "has %d pads for %d axes", pads->count, axes.count);
  for (int i = 0; i < 2 * rank; i++) array_push(&import->context->arena, &all, 0);
  for (int i = 0; i < axes.count; i++) {
    if (!import_axis(import, &axes.items[i], rank)) return false;
    all.items[axes.items[i]] = pads->items[i];
    all.items[axes.items[i] + rank] = pads->items[i + axes.count];
  }
  *pads = all;
  return true;
}

// ONNX lists the pads before all axes and then those after them; `nn.pad` takes them axis by axis.
static IntArray pads_by_axis(Import *import, const IntArray *pads, int rank) {
  IntArray widths = {0};
  for (int i = 0; i < 2 * rank; i++)
    array_push(&import->context->arena, &widths, pads->items[i / 2 + (i % 2) * rank]);
  return widths;
}

static void import_pad(Import *import) {
  Value *x = import_input(import, 0), *filler = import_input(import, 2);
  IntArray pads;
  bool present;
  if (!import_list(import, 1, "pads", &pads, &present)) return;
  if (!spread_pads(import, &pads, x->rank)) return;
  Value *inputs[] = {x, filler};
  bool known = filler && filler->data && const_count(filler->data) == 1;
  Node *node = import_begin(import, "nn.pad", inputs, filler && !known ? 2 : 1);
  import_set_ints(import, node, "pad_width", pads_by_axis(import, &pads, x->rank));
  node_set_string(import->context, node, "pad_mode", import_text(import, "mode", "constant"));
  double value = known ? const_number(filler->data, 0) : import_float(import, "value", 0);
  if (value != 0) node_set_float(import->context, node, "pad_value", value);
  import_result(import, 0, import_add(import, node));
}

// ---- Constants --------------------------------------------------------------------------------

static void import_constant_node(Import *import) {
  Arena *arena = &import->context->arena;
  const OnnxAttribute *a =
      import->node->attribute.count == 1 ? &import->node->attribute.items[0] : NULL;
  Value *value = NULL;
  if (!a) {
    import_refuse(import, "has %d attributes, expected its value", import->node->attribute.count);
  } else if (a->t) {
    ConstData *data = onnx_tensor_data(import->importer->file, a->t, import->pos);
    if (data) value = value_constant(import->context, data);
  } else if (a->sparse_tensor) {
    ConstData *data = onnx_sparse_data(import->importer->file, a->sparse_tensor, import->pos);
    if (data) value = value_constant(import->context, data);
  } else if (a->type == onnx_AttributeProto_AttributeType_FLOAT) {
    value = import_const(import, DTYPE_FLOAT32, NULL, 0, &a->f);
  } else if (a->type == onnx_AttributeProto_AttributeType_INT) {
    value = import_const(import, DTYPE_INT64, NULL, 0, &a->i);
  } else if (a->type == onnx_AttributeProto_AttributeType_FLOATS) {
    int64_t count = a->floats.count;
    value = import_const(import, DTYPE_FLOAT32, &count, 1,
                         a->floats.items ? (void *)a->floats.items : arena_alloc(arena, 1));
  } else if (a->type == onnx_AttributeProto_AttributeType_INTS) {
    int64_t count = a->ints.count;
    value = import_const(import, DTYPE_INT64, &count, 1,
                         a->ints.items ? (void *)a->ints.items : arena_alloc(arena, 1));
  } else {
    import_refuse(import, "attribute '%s' is not supported: only dense tensors and numbers are",
                  a->name);
  }
  import_result(import, 0, value);
}

// Refuses an operator that fold.c could not evaluate.
static void import_only_folded(Import *import) {
  import_refuse(import, "only supported on shapes and other integers that are known at import");
}

// ---- The table --------------------------------------------------------------------------------

#define REDUCE_ATTRIBUTES "axes:ints keepdims:int noop_with_empty_axes:int"
#define RECURRENT_ATTRIBUTES                                                                       \
  "activation_alpha:floats activation_beta:floats activations:strings clip:float "                 \
  "direction:string hidden_size:int layout:int "

static const OnnxRow rows[] = {
    {"ArgMax", 1, 1, "axis:int keepdims:int select_last_index:int", import_arg},
    {"ArgMin", 1, 1, "axis:int keepdims:int select_last_index:int", import_arg},
    {"BatchNormalization", 5, 5, "epsilon:float momentum:float spatial:int training_mode:int",
     import_batch_norm},
    {"BitCast", 1, 1, "to:int", import_bit_cast},
    {"Cast", 1, 1, "to:int saturate:int round_mode:string", import_cast_node},
    {"CastLike", 2, 2, "saturate:int round_mode:string", import_cast_like},
    {"Clip", 1, 3, "min:float max:float", import_clip},
    {"Concat", 1, -1, "axis:int", import_concat_node},
    {"Constant", 0, 0,
     "value:tensor sparse_value:sparse value_float:float value_floats:floats value_int:int "
     "value_ints:ints "
     "value_string:string value_strings:strings",
     import_constant_node},
    {"ConstantOfShape", 1, 1, "value:tensor", import_only_folded},
    {"CumProd", 2, 2, "exclusive:int reverse:int", import_cumsum},
    {"CumSum", 2, 2, "exclusive:int reverse:int", import_cumsum},
    {"DepthToSpace", 1, 1, "blocksize:int mode:string", import_depth_to_space},
    {"Dropout", 1, 3, "ratio:float seed:int", import_dropout},
    {"Expand", 2, 2, NULL, import_expand},
    {"Flatten", 1, 1, "axis:int", import_flatten},
    {"Gemm", 2, 3, "alpha:float beta:float transA:int transB:int", import_gemm},
    {"GroupNormalization", 3, 3, "epsilon:float num_groups:int stash_type:int", import_group_norm},
    {"Hardmax", 1, 1, "axis:int", import_hardmax},
    {"GRU", 3, 6, RECURRENT_ATTRIBUTES "linear_before_reset:int output_sequence:int",
     import_recurrent},
    {"Identity", 1, 1, NULL, import_identity, .lists = true},
    {"If", 1, 1, "then_branch:graph else_branch:graph", import_if, .lists = true},
    {"LSTM", 3, 8, RECURRENT_ATTRIBUTES "input_forget:int output_sequence:int", import_recurrent},
    {"LayerNormalization", 2, 3, "axis:int epsilon:float stash_type:int", import_layer_norm},
    {"LogSoftmax", 1, 1, "axis:int", import_softmax},
    {"Loop", 0, -1, "body:graph", import_loop, .lists = true},
    {"LpNormalization", 1, 1, "axis:int p:int", import_lp_norm},
    {"Mean", 1, -1, NULL, import_mean},
    {"MeanVarianceNormalization", 1, 1, "axes:ints", import_mean_variance_norm},
    {"OneHot", 3, 3, "axis:int", import_one_hot},
    {"Mod", 2, 2, "fmod:int", import_mod},
    {"Pad", 1, 4, "mode:string pads:ints value:float", import_pad},
    {"Pow", 2, 2, NULL, import_pow},
    {"PRelu", 2, 2, NULL, import_prelu},
    {"RMSNormalization", 2, 2, "axis:int epsilon:float stash_type:int", import_layer_norm},
    {"RNN", 3, 6, RECURRENT_ATTRIBUTES "output_sequence:int", import_recurrent},
    {"Range", 3, 3, NULL, import_only_folded},
    {"ReduceL1", 1, 2, REDUCE_ATTRIBUTES, import_reduce},
    {"ReduceL2", 1, 2, REDUCE_ATTRIBUTES, import_reduce},
    {"ReduceLogSum", 1, 2, REDUCE_ATTRIBUTES, import_reduce},
    {"ReduceLogSumExp", 1, 2, REDUCE_ATTRIBUTES, import_reduce},
    {"ReduceMax", 1, 2, REDUCE_ATTRIBUTES, import_reduce},
    {"ReduceMean", 1, 2, REDUCE_ATTRIBUTES, import_reduce},
    {"ReduceMin", 1, 2, REDUCE_ATTRIBUTES, import_reduce},
    {"ReduceProd", 1, 2, REDUCE_ATTRIBUTES, import_reduce},
    {"ReduceSum", 1, 2, REDUCE_ATTRIBUTES, import_reduce},
    {"ReduceSumSquare", 1, 2, REDUCE_ATTRIBUTES, import_reduce},
    {"Reshape", 1, 2, "allowzero:int shape:ints", import_reshape_node},
    {"Scan", 0, -1,
     "body:graph num_scan_inputs:int directions:ints scan_input_axes:ints "
     "scan_input_directions:ints scan_output_axes:ints scan_output_directions:ints",
     import_scan},
    {"Shape", 1, 1, "start:int end:int", import_only_folded},
    {"Size", 1, 1, NULL, import_only_folded},
    {"Slice", 1, 5, "axes:ints ends:ints starts:ints", import_slice},
    {"Softmax", 1, 1, "axis:int", import_softmax},
    {"SpaceToDepth", 1, 1, "blocksize:int mode:string", import_space_to_depth},
    {"Split", 1, 2, "axis:int num_outputs:int split:ints", import_split},
    {"Squeeze", 1, 2, "axes:ints", import_squeeze},
    {"Tile", 2, 2, NULL, import_tile},
    {"Transpose", 1, 1, "perm:ints", import_transpose},
    {"Trilu", 1, 2, "upper:int", import_trilu},
    {"Unsqueeze", 1, 2, "axes:ints", import_squeeze},
    {0},
};

static const OnnxRow *const tables[] = {rows,
                                        onnx_quantized_rows,
                                        onnx_scatter_rows,
                                        onnx_attention_rows,
                                        onnx_loss_rows,
                                        onnx_window_rows,
                                        onnx_resize_rows,
                                        onnx_sample_rows,
                                        onnx_einsum_rows,
                                        onnx_sequence_rows,
                                        onnx_signal_rows,
                                        onnx_state_rows,
                                        onnx_arrange_rows,
                                        onnx_gram_rows,
                                        onnx_optimizer_rows,
                                        onnx_ensemble_rows,
                                        onnx_feature_rows,
                                        onnx_linear_rows,
                                        onnx_svm_rows,
                                        onnx_qlinear_rows,
                                        onnx_fused_rows,
                                        onnx_fused_attention_rows,
                                        onnx_rotary_rows,
                                        onnx_grouped_rows,
                                        onnx_block_rows,
                                        onnx_label_rows};

static bool is_of(const OnnxRow *row, const char *domain) {
  return strcmp(row->domain ? row->domain : "", domain) == 0;
}

const OnnxRow *onnx_row_find(const char *domain, const char *name) {
  for (int i = 0; i < COUNT_OF(tables); i++)
    for (const OnnxRow *row = tables[i]; row->name; row++)
      if (text_equal(row->name, name) && is_of(row, domain)) return row;
  return NULL;
}

bool onnx_domain_has_rows(const char *domain) {
  for (int i = 0; i < COUNT_OF(tables); i++)
    for (const OnnxRow *row = tables[i]; row->name; row++)
      if (is_of(row, domain)) return true;
  return false;
}
