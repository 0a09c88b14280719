// SPDX-License-Identifier: Apache-2.0
// Imports operators of ONNX Runtime's domain com.microsoft that its optimizer fuses from several of
// the standard: products with an activation, sums with a normalisation, and embeddings. They are
// composed of the operators of the standard again.
#include "frontend/onnx/compose.h"

#include "graph/graph.h"

#include <math.h>

// ---- Activations ------------------------------------------------------------------------------

// Applies the activation of FusedConv or FusedGemm. The numbers are those of its attributes in
// their order; NaN stands for a default.
static Value *activated(Import *import, const double *numbers, Value *x) {
  static const struct {
    const char *name, *op, *keys[2];
  } rows[] = {
      {"Clip", "clip", {"min", "max"}},
      {"HardSigmoid", "nn.hard_sigmoid", {"alpha", "beta"}},
      {"LeakyRelu", "nn.leakyrelu", {"alpha"}},
      {"Relu", "nn.relu", {NULL}},
      {"Sigmoid", "sigmoid", {NULL}},
      {"Tanh", "tanh", {NULL}},
  };
  const char *name = import_text(import, "activation", "");
  if (!*name || !x) return x;
  for (int i = 0; i < COUNT_OF(rows); i++) {
    if (strcmp(rows[i].name, name) != 0) continue;
    Node *node = import_begin(import, rows[i].op, &x, 1);
    for (int k = 0; k < COUNT_OF(rows[i].keys) && rows[i].keys[k]; k++)
      if (!isnan(numbers[k])) node_set_float(import->context, node, rows[i].keys[k], numbers[k]);
    return import_add(import, node);
  }
  import_refuse(import, "its activation '%s' is not supported", name);
  return NULL;
}

static Value *gelu(Import *import, Value *x, const char *approximate) {
  if (!x) return NULL;
  Node *node = import_begin(import, "nn.gelu", &x, 1);
  node_set_string(import->context, node, "approximate", approximate);
  return import_add(import, node);
}

// Gelu, BiasGelu and FastGelu add a bias, which may be absent.
static void import_bias_gelu(Import *import) {
  bool fast = strcmp(import->node->op_type, "FastGelu") == 0;
  Value *x = import->inputs[0], *bias = import_input(import, 1);
  if (bias) x = compose_binary(import, "add", x, bias);
  import_result(import, 0, gelu(import, x, fast ? "tanh" : "none"));
}

// x * sigmoid(alpha * x)
static void import_quick_gelu(Import *import) {
  Value *x = import->inputs[0];
  Value *part = compose_number(import, "multiply", x, import_float(import, "alpha", 1.702f));
  import_result(import, 0,
                compose_binary(import, "multiply", x, compose_unary(import, "sigmoid", part)));
}

// ---- Products ---------------------------------------------------------------------------------

// Input 3 is added before the activation.
static void import_fused_conv(Import *import) {
  const OnnxAttribute *given = import_attribute(import, "activation_params");
  double numbers[] = {NAN, NAN};
  Value *sum = import_input(import, 3);
  for (int i = 0; given && i < MIN_OF(given->floats.count, 2); i++)
    numbers[i] = (double)given->floats.items[i];
  Value *inputs[] = {import->inputs[0], import->inputs[1], import_input(import, 2)};
  Value *y = import_through(import, "Conv", inputs, inputs[2] ? 3 : 2);
  if (sum) y = compose_binary(import, "add", y, sum);
  import_result(import, 0, activated(import, numbers, y));
}

static void import_fused_gemm(Import *import) {
  double numbers[] = {import_float(import, "activation_alpha", NAN),
                      import_float(import, "activation_beta", NAN)};
  Value *y = import_through(import, "Gemm", import->inputs, import->input_count);
  import_result(import, 0, activated(import, numbers, y));
}

// An operand with its last two axes transposed; before that, a first axis may be the rows of all
// products.
static Value *turned(Import *import, Value *x, const char *rows_first, const char *swapped) {
  int64_t axes[TE_MAX_RANK];
  int rank = x->rank;
  bool moves = rank > 2 && import_int(import, rows_first, 0),
       swaps = import_int(import, swapped, 0);
  if (rank < 2 || (!moves && !swaps)) return x;
  for (int i = 0; i < rank; i++) axes[i] = !moves || i == rank - 1 ? i : i == rank - 2 ? 0 : i + 1;
  int64_t row = axes[rank - 2];
  if (swaps) {
    axes[rank - 2] = axes[rank - 1];
    axes[rank - 1] = row;
  }
  return compose_permute(import, x, axes);
}

static void import_fused_matmul(Import *import) {
  double alpha = import_float(import, "alpha", 1);
  Value *a = turned(import, import->inputs[0], "transBatchA", "transA");
  Value *b = turned(import, import->inputs[1], "transBatchB", "transB");
  Value *y = compose_binary(import, "matmul", a, b);
  import_result(import, 0, alpha == 1 ? y : compose_number(import, "multiply", y, alpha));
}

// ---- Normalisations ---------------------------------------------------------------------------

static Value *normalised(Import *import, Value *x, Value *scale, Value *shift, bool rms) {
  Value *inputs[] = {x, scale, shift};
  if (!x || !scale) return NULL;
  Node *node = import_begin(import, rms ? "nn.rms_norm" : "nn.layer_norm", inputs, shift ? 3 : 2);
  node_set_int(import->context, node, "axis", -1);
  node_set_float(import->context, node, "epsilon", import_float(import, "epsilon", 1e-12));
  return import_add(import, node);
}

static bool refuses_statistics(Import *import, int first, int last) {
  for (int i = first; i <= last; i++)
    if (import_result_is_needed(import, i))
      return !import_refuse(import, "its result %d, a statistic, is not supported", i);
  return false;
}

// The last result is the sum that is normalised.
static void import_skip_norm(Import *import) {
  bool rms = strcmp(import->node->op_type, "SkipSimplifiedLayerNormalization") == 0;
  Value *bias = import_input(import, rms ? 3 : 4), *shift = rms ? NULL : import_input(import, 3);
  Value *sum = compose_binary(import, "add", import->inputs[0], import->inputs[1]);
  if (bias) sum = compose_binary(import, "add", sum, bias);
  if (refuses_statistics(import, 1, 2)) return;
  import_result(import, 0, normalised(import, sum, import->inputs[2], shift, rms));
  import_result(import, 3, sum);
}

static void import_simplified_norm(Import *import) {
  if (!refuses_statistics(import, 1, 1))
    import_instead(import, "RMSNormalization", import->inputs, import->input_count);
}

// ---- Embeddings -------------------------------------------------------------------------------

static Value *rows_of(Import *import, Value *table, Value *numbers) {
  Node *node = import_begin(import, "take", (Value *[]){table, numbers}, 2);
  node_set_int(import->context, node, "axis", 0);
  return import_add(import, node);
}

// The number of tokens of each text, which is 0 without a mask.
static Value *token_counts(Import *import, const Value *ids, Value *mask) {
  int64_t last = 1, texts = import_dim(ids, 0);
  return mask ? compose_reduce(import, "sum", compose_cast(import, mask, DTYPE_INT32), &last, 1,
                               false)
              : import_filled(import, DTYPE_INT32, NULL, &texts, 1);
}

typedef enum EmbedInput {
  EMBED_IDS,
  EMBED_SEGMENTS,
  EMBED_WORD_TABLE,
  EMBED_PLACE_TABLE,
  EMBED_SEGMENT_TABLE,
  EMBED_SCALE,
  EMBED_SHIFT,
  EMBED_MASK,
  EMBED_PLACES
} EmbedInput;

static bool check_embed(Import *import) {
  static const EmbedInput needed[] = {EMBED_WORD_TABLE, EMBED_PLACE_TABLE, EMBED_SCALE,
                                      EMBED_SHIFT};
  const Value *ids = import->inputs[EMBED_IDS], *table = import_input(import, EMBED_PLACE_TABLE);
  for (int i = 0; i < COUNT_OF(needed); i++)
    if (!import_input(import, needed[i]))
      return import_refuse(import, "its input %d is absent", needed[i]);
  if (!import_input(import, EMBED_SEGMENTS) != !import_input(import, EMBED_SEGMENT_TABLE))
    return import_refuse(import, "segments and their table must be given together");
  if (ids->rank != 2 || table->rank != 2)
    return import_refuse(import, "takes numbers of rank 2 and tables of rank 2");
  return import_input(import, EMBED_PLACES) || import_dim(ids, 1) <= import_dim(table, 0) ||
         import_refuse(import, "has %lld tokens, but a table of %lld positions",
                       (long long)import_dim(ids, 1), (long long)import_dim(table, 0));
}

// The sum of the embeddings of words, positions and segments, normalised.
static void import_embed_norm(Import *import) {
  Value **in = import->inputs, *places = import_input(import, EMBED_PLACES), *sum;
  if (!check_embed(import)) return;
  Value *place =
      places ? rows_of(import, in[EMBED_PLACE_TABLE], places)
             : compose_slice(import, in[EMBED_PLACE_TABLE], 0, 0, import_dim(in[EMBED_IDS], 1), 1);
  sum = compose_binary(import, "add", rows_of(import, in[EMBED_WORD_TABLE], in[EMBED_IDS]), place);
  if (in[EMBED_SEGMENTS])
    sum = compose_binary(import, "add", sum,
                         rows_of(import, in[EMBED_SEGMENT_TABLE], in[EMBED_SEGMENTS]));
  import_result(import, 0, normalised(import, sum, in[EMBED_SCALE], in[EMBED_SHIFT], false));
  import_result(import, 1, token_counts(import, in[EMBED_IDS], import_input(import, EMBED_MASK)));
  import_result(import, 2, sum);
}

#define DOMAIN .domain = "com.microsoft"

const OnnxRow onnx_fused_rows[] = {
    {"BiasGelu", 2, 2, NULL, import_bias_gelu, DOMAIN},
    {"EmbedLayerNormalization", 1, 9, "epsilon:float mask_index_type:int", import_embed_norm,
     DOMAIN},
    {"FastGelu", 1, 2, NULL, import_bias_gelu, DOMAIN},
    {"FusedConv", 2, 4,
     "activation:string activation_params:floats auto_pad:string dilations:ints group:int "
     "kernel_shape:ints pads:ints strides:ints",
     import_fused_conv, DOMAIN},
    {"FusedGemm", 2, 3,
     "activation:string activation_alpha:float activation_beta:float activation_gamma:float "
     "alpha:float beta:float transA:int transB:int",
     import_fused_gemm, DOMAIN},
    {"FusedMatMul", 2, 2, "alpha:float transA:int transB:int transBatchA:int transBatchB:int",
     import_fused_matmul, DOMAIN},
    {"Gelu", 1, 1, NULL, import_bias_gelu, DOMAIN},
    {"QuickGelu", 1, 1, "alpha:float", import_quick_gelu, DOMAIN},
    {"SimplifiedLayerNormalization", 2, 2, "axis:int epsilon:float stash_type:int",
     import_simplified_norm},
    {"SkipLayerNormalization", 3, 5, "epsilon:float", import_skip_norm, DOMAIN},
    {"SkipSimplifiedLayerNormalization", 3, 4, "epsilon:float", import_skip_norm, DOMAIN},
    {0},
};
