// SPDX-License-Identifier: Apache-2.0
// Imports attention, which is composed of products, masks and softmax. Query heads that share a key
// head form an axis of their own, so that keys are not repeated. Narrow floats are computed in
// float32.
#include "frontend/onnx/attention.h"

#include "graph/graph.h"

#include <math.h>

// True when several query heads share a key head; the shape is then [batch, kv heads, group, …].
static bool is_grouped(const Attention *a) {
  return a->heads != a->kv_heads;
}

static int rank_of(const Attention *a) {
  return is_grouped(a) ? 5 : 4;
}

Value *attention_by_heads(Attention *a, Value *x, int64_t heads) {
  if (!a->flat) return x;
  int64_t shape[] = {import_dim(x, 0), import_dim(x, 1), heads, import_dim(x, 2) / heads};
  Value *split = import_reshape(a->import, x, shape, 4);
  return compose_permute(a->import, split, (const int64_t[]){0, 2, 1, 3});
}

static bool check_heads(Attention *a) {
  Import *import = a->import;
  Value **in = import->inputs;
  int rank = in[0]->rank;
  a->flat = rank == 3;
  if ((rank != 3 && rank != 4) || in[1]->rank != rank || in[2]->rank != rank)
    return import_refuse(import, "takes queries, keys and values of rank 3 or of rank 4");
  a->heads = a->flat ? import_int(import, "q_num_heads", 0) : import_dim(in[0], 1);
  a->kv_heads = a->flat ? import_int(import, "kv_num_heads", 0) : import_dim(in[1], 1);
  if (a->heads < 1 || a->kv_heads < 1 || a->heads % a->kv_heads)
    return import_refuse(import, "%lld heads of queries, %lld of keys and values",
                         (long long)a->heads, (long long)a->kv_heads);
  for (int i = 0; i < 3 && a->flat; i++)
    if (import_dim(in[i], 2) % (i ? a->kv_heads : a->heads))
      return import_refuse(import, "its input %d does not divide by its heads", i);
  return true;
}

// The past followed by the new values, along the sequence.
static Value *with_past(Attention *a, int past, Value *now) {
  Value *values[] = {import_input(a->import, past), now};
  if (!values[0] || !now) return now;
  if (values[0]->rank != 4) {
    import_refuse(a->import, "its input %d must have rank 4", past);
    return NULL;
  }
  return compose_concat(a->import, values, 2, 2);
}

static bool take_inputs(Attention *a) {
  Import *import = a->import;
  Value **in = import->inputs;
  if (!check_heads(a)) return false;
  if (!import_input(import, 4) != !import_input(import, 5))
    return import_refuse(import, "past_key and past_value must be given together");
  if (import_input(import, 4) && import_input(import, 6))
    return import_refuse(import, "takes either a past or the lengths of keys, not both");
  a->past = import_input(import, 4) ? import_dim(in[4], 2) : 0;
  a->query = attention_by_heads(a, in[0], a->heads);
  a->key = with_past(a, 4, attention_by_heads(a, in[1], a->kv_heads));
  a->value = with_past(a, 5, attention_by_heads(a, in[2], a->kv_heads));
  return attention_sizes(a);
}

bool attention_sizes(Attention *a) {
  Import *import = a->import;
  if (!a->query || !a->key || !a->value) return false;
  a->scale = import_float(import, "scale", 1 / sqrt((double)import_dim(a->query, 3)));
  a->softcap = import_float(import, "softcap", 0);
  a->batch = import_dim(a->query, 0);
  a->queries = import_dim(a->query, 2);
  a->keys = import_dim(a->key, 2);
  a->size = import_dim(a->query, 3);
  a->value_size = import_dim(a->value, 3);
  a->type = a->query->type;
  a->wide = a->type.bits < 32 ? DTYPE_FLOAT32 : a->type;
  if (import_dim(a->key, 3) != a->size || import_dim(a->value, 2) != a->keys ||
      import_dim(a->value, 1) != a->kv_heads || import_dim(a->key, 1) != a->kv_heads)
    return import_refuse(import, "its queries, keys and values do not fit each other");
  return true;
}

// ---- Masks ------------------------------------------------------------------------------------

static Value *either(Attention *a, Value *x, Value *y) {
  return !x ? y : compose_binary(a->import, "logical_or", x, y);
}

bool attention_hide(Attention *a, Node *node) {
  Context *context = a->import->context;
  node_set_int(context, node, "queries", a->queries);
  node_set_int(context, node, "keys", a->keys);
  node_set_int(context, node, "rank", rank_of(a));
  Value *hidden = compose_unary(a->import, "logical_not", import_add(a->import, node));
  a->masked = hidden ? either(a, a->masked, hidden) : NULL;
  return a->masked != NULL;
}

// Adds the masks by positions: causal, windows, and keys that are padding.
static bool mask_positions(Attention *a) {
  Import *import = a->import;
  Value *lengths = import_input(import, 6);
  int64_t before = import_int(import, "left_window_size", -1);
  int64_t after = import_int(import, "right_window_size", -1);
  if (before < -1 || after < -1) return import_refuse(import, "a window has a size below -1");
  if (import_int(import, "is_causal", 0)) after = 0;
  if (before < 0 && after < 0 && !lengths) return true;
  Node *node = import_begin(import, "nn.attention_mask", &lengths, lengths ? 1 : 0);
  if (a->past) node_set_int(import->context, node, "offset", a->past);
  if (before >= 0) node_set_int(import->context, node, "before", before);
  if (after >= 0) node_set_int(import->context, node, "after", after);
  return attention_hide(a, node);
}

// The mask as [batch, heads, queries, keys] (leading axes may be missing), split into groups of
// heads.
static Value *grouped_mask(Attention *a, Value *mask) {
  int64_t shape[TE_MAX_RANK];
  int rank = mask->rank, n = 0;
  if (!is_grouped(a) || rank < 3) return mask;
  if (rank == 4) shape[n++] = import_dim(mask, 0);
  bool one = import_dim(mask, rank - 3) == 1;
  shape[n++] = one ? 1 : a->kv_heads;
  shape[n++] = one ? 1 : a->heads / a->kv_heads;
  shape[n++] = import_dim(mask, rank - 2);
  shape[n++] = import_dim(mask, rank - 1);
  return import_reshape(a->import, mask, shape, n);
}

bool attention_take_mask(Attention *a, int input) {
  Import *import = a->import;
  Value *mask = import_input(import, input);
  if (!mask) return true;
  bool flags = dtype_is_bool(mask->type);
  if (mask->rank < 1 || mask->rank > 4 || (!flags && !dtype_is_float(mask->type)))
    return import_refuse(import, "its mask must have rank 1 to 4, of bool or floating point");
  int64_t missing = a->keys - import_dim(mask, mask->rank - 1);
  if (missing > 0 && (import_dim(mask, mask->rank - 1) > 1 || missing == a->keys - 1)) {
    mask = compose_pad(import, mask, mask->rank - 1, 0, missing, flags ? 0 : -INFINITY);
    if (!mask) return false;
  }
  mask = grouped_mask(a, mask);
  Value *hidden = NULL;
  if (flags) {
    hidden = compose_unary(import, "logical_not", mask);
  } else {
    a->bias = compose_cast(import, mask, a->wide);
    hidden = compose_number(import, "equal", a->bias, -INFINITY);
  }
  a->masked = hidden ? either(a, a->masked, hidden) : NULL;
  return a->masked != NULL;
}

// ---- Scores -----------------------------------------------------------------------------------

static Value *grouped(Attention *a, Value *x, int64_t group) {
  if (!x || !is_grouped(a)) return x;
  int64_t shape[] = {a->batch, a->kv_heads, group, import_dim(x, 2), import_dim(x, 3)};
  return import_reshape(a->import, x, shape, 5);
}

static Value *ungrouped(Attention *a, Value *x) {
  if (!x || !is_grouped(a)) return x;
  int64_t shape[] = {a->batch, a->heads, import_dim(x, 3), import_dim(x, 4)};
  return import_reshape(a->import, x, shape, 4);
}

static Value *products(Attention *a) {
  Import *import = a->import;
  static const int64_t swapped[2][5] = {{0, 1, 3, 2}, {0, 1, 2, 4, 3}};
  Value *query = grouped(a, compose_cast(import, a->query, a->wide), a->heads / a->kv_heads);
  Value *key = grouped(a, compose_cast(import, a->key, a->wide), 1);
  key = compose_permute(import, key, swapped[is_grouped(a)]);
  return compose_number(import, "multiply", compose_binary(import, "matmul", query, key), a->scale);
}

static Value *soft_capped(Attention *a, Value *scores) {
  double cap = a->softcap;
  if (cap <= 0) return scores;
  Value *part = compose_number(a->import, "divide", scores, cap);
  return compose_number(a->import, "multiply", compose_unary(a->import, "tanh", part), cap);
}

static Value *with_masks(Attention *a, Value *scores) {
  if (a->bias) scores = compose_binary(a->import, "add", scores, a->bias);
  if (!a->masked || !scores) return scores;
  Value *lowest = import_scalar(a->import, scores, -INFINITY);
  return compose_choose(a->import, a->masked, lowest, scores);
}

static Value *softmax(Import *import, Value *x) {
  if (!x) return NULL;
  Node *node = import_begin(import, "nn.softmax", &x, 1);
  node_set_int(import->context, node, "axis", x->rank - 1);
  return import_add(import, node);
}

// The score of each head's sink in the form of the scores.
static Value *sink_of(Attention *a) {
  int64_t by_head[] = {a->heads, 1, 1}, by_group[] = {a->kv_heads, a->heads / a->kv_heads, 1, 1};
  Value *sink = compose_cast(a->import, a->sink, a->wide);
  return is_grouped(a) ? compose_reshape(a->import, sink, by_group, 4)
                       : compose_reshape(a->import, sink, by_head, 3);
}

// The softmax of the scores and of a sink, without the share of the sink.
static Value *softmax_with_sink(Attention *a, Value *x) {
  if (!x) return NULL;
  Import *import = a->import;
  int64_t last = x->rank - 1;
  Value *sink = compose_cast(import, sink_of(a), x->type);
  Value *most = compose_binary(import, "maximum", compose_reduce(import, "max", x, &last, 1, true),
                               sink);
  Value *power = compose_unary(import, "exp", compose_binary(import, "subtract", x, most));
  Value *sum = compose_reduce(import, "sum", power, &last, 1, true);
  sink = compose_unary(import, "exp", compose_binary(import, "subtract", sink, most));
  return compose_binary(import, "divide", power, compose_binary(import, "add", sum, sink));
}

// A softmax in which a row without any visible key is 0, where the softmax alone would be NaN.
static Value *masked_softmax(Import *import, Value *x) {
  if (!x) return NULL;
  int64_t last = x->rank - 1;
  Value *most = compose_reduce(import, "max", x, &last, 1, true);
  Value *blind = compose_number(import, "equal", most, -INFINITY);
  most = blind ? compose_choose(import, blind, import_scalar(import, most, 0), most) : NULL;
  Value *power = compose_unary(import, "exp", compose_binary(import, "subtract", x, most));
  Value *sum = compose_reduce(import, "sum", power, &last, 1, true);
  sum = sum && blind ? compose_choose(import, blind, import_scalar(import, sum, 1), sum) : NULL;
  return compose_binary(import, "divide", power, sum);
}

static Value *probabilities(Attention *a, Value *scores) {
  Import *import = a->import;
  int32_t code = (int32_t)import_int(import, "softmax_precision", 0);
  DType type = a->wide;
  if (code && (!onnx_dtype(code, &type) || !dtype_is_float(type))) {
    import_refuse(import, "softmax_precision %d is not a supported type", code);
    return NULL;
  }
  if (type.bits < 32) type = a->wide;
  scores = compose_cast(import, scores, type);
  Value *result = a->sink     ? softmax_with_sink(a, scores)
                  : a->masked ? masked_softmax(import, scores)
                              : softmax(import, scores);
  return compose_cast(import, result, a->wide);
}

Value *attention_result(Attention *a, Value *steps[4]) {
  Import *import = a->import;
  steps[0] = products(a);
  steps[1] = soft_capped(a, steps[0]);
  steps[2] = with_masks(a, steps[1]);
  steps[3] = probabilities(a, steps[2]);
  Value *value = grouped(a, compose_cast(import, a->value, a->wide), 1);
  Value *result = ungrouped(a, compose_binary(import, "matmul", steps[3], value));
  result = compose_cast(import, result, a->type);
  if (!a->flat) return result;
  int64_t shape[] = {a->batch, a->queries, a->heads * a->value_size};
  result = compose_permute(import, result, (const int64_t[]){0, 2, 1, 3});
  return compose_reshape(import, result, shape, 3);
}

static void import_attention(Import *import) {
  Attention a = {.import = import};
  Value *steps[4];
  int64_t mode = import_int(import, "qk_matmul_output_mode", 0);
  if (!take_inputs(&a) || !mask_positions(&a) || !attention_take_mask(&a, 3)) return;
  if (mode < 0 || mode > 3) {
    import_refuse(import, "attribute 'qk_matmul_output_mode' is %lld, expected 0 to 3",
                  (long long)mode);
    return;
  }
  import_result(import, 0, attention_result(&a, steps));
  import_result(import, 1, a.key);
  import_result(import, 2, a.value);
  if (import_wants_output(import, 3))
    import_result(import, 3, compose_cast(import, ungrouped(&a, steps[mode]), a.type));
}

// ---- Attention with bodies as attributes ------------------------------------------------------

// The scores or probabilities after a body of the node, which must keep their shape and type.
static Value *modified(Attention *a, const char *attribute, Value *x, DType type) {
  Import *import = a->import;
  if (!x || !import_has(import, attribute)) return x;
  Value *whole = ungrouped(a, compose_cast(import, x, type));
  Value *made = import_body_result(import, attribute, whole);
  if (!made) return NULL;
  if (!import_same_form(made, whole))
    return import_refuse(import, "'%s' changes the shape or type", attribute), NULL;
  int64_t by_group[] = {a->batch, a->kv_heads, a->heads / a->kv_heads, a->queries, a->keys};
  made = compose_cast(import, made, a->wide);
  return is_grouped(a) ? compose_reshape(import, made, by_group, 5) : made;
}

static void import_flex_attention(Import *import) {
  Attention a = {.import = import};
  int32_t code = (int32_t)import_int(import, "softmax_precision", 0);
  if (import->inputs[0]->rank != 4) {
    import_refuse(import, "takes queries, keys and values of rank 4");
    return;
  }
  if (!take_inputs(&a)) return;
  DType type = a.wide;
  if (code && (!onnx_dtype(code, &type) || !dtype_is_float(type))) {
    import_refuse(import, "softmax_precision %d is not a supported type", code);
    return;
  }
  if (type.bits > a.wide.bits) a.wide = type;
  Value *scores = modified(&a, "score_mod", products(&a), type);
  Value *shares = modified(&a, "prob_mod", softmax(import, scores), type);
  Value *value = grouped(&a, compose_cast(import, a.value, a.wide), 1);
  Value *result = ungrouped(&a, compose_binary(import, "matmul", shares, value));
  import_result(import, 0, compose_cast(import, result, a.type));
}

const OnnxRow onnx_attention_rows[] = {
    {"Attention", 3, 7,
     "is_causal:int kv_num_heads:int left_window_size:int q_num_heads:int "
     "qk_matmul_output_mode:int right_window_size:int scale:float softcap:float "
     "softmax_precision:int",
     import_attention},
    {"FlexAttention", 3, 3, "prob_mod:graph scale:float score_mod:graph softmax_precision:int",
     import_flex_attention, .domain = "ai.onnx.preview"},
    {0},
};
