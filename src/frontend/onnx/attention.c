// SPDX-License-Identifier: Apache-2.0
// Imports attention and rotary embedding, which are composed of products, masks and softmax. Query
// heads that share a key head form an axis of their own, so that keys are not repeated. Narrow
// floats are computed in float32.
#include "frontend/onnx/compose.h"

#include "graph/graph.h"

#include <math.h>

typedef struct Attention {
  Import *import;
  bool flat; // inputs of rank 3: [batch, sequence, heads * size]
  int64_t batch, heads, kv_heads, queries, keys, past, size, value_size;
  DType type, wide;
  Value *query, *key, *value; // [batch, heads, sequence, size]
  Value *masked;              // where a query may not see a key; NULL: nowhere
  Value *bias;                // added to the scores; NULL: none
} Attention;

// True when several query heads share a key head; the shape is then [batch, kv heads, group, …].
static bool is_grouped(const Attention *a) {
  return a->heads != a->kv_heads;
}

static int rank_of(const Attention *a) {
  return is_grouped(a) ? 5 : 4;
}

static Value *by_heads(Attention *a, Value *x, int64_t heads) {
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
  a->query = by_heads(a, in[0], a->heads);
  a->key = with_past(a, 4, by_heads(a, in[1], a->kv_heads));
  a->value = with_past(a, 5, by_heads(a, in[2], a->kv_heads));
  if (!a->query || !a->key || !a->value) return false;
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

// Adds the masks by positions: causal, windows, and keys that are padding.
static bool mask_positions(Attention *a) {
  Import *import = a->import;
  Value *lengths = import_input(import, 6), *seen;
  int64_t before = import_int(import, "left_window_size", -1);
  int64_t after = import_int(import, "right_window_size", -1);
  if (before < -1 || after < -1) return import_refuse(import, "a window has a size below -1");
  if (import_int(import, "is_causal", 0)) after = 0;
  if (before < 0 && after < 0 && !lengths) return true;
  Node *node = import_begin(import, "nn.attention_mask", &lengths, lengths ? 1 : 0);
  node_set_int(import->context, node, "queries", a->queries);
  node_set_int(import->context, node, "keys", a->keys);
  node_set_int(import->context, node, "rank", rank_of(a));
  if (a->past) node_set_int(import->context, node, "offset", a->past);
  if (before >= 0) node_set_int(import->context, node, "before", before);
  if (after >= 0) node_set_int(import->context, node, "after", after);
  seen = import_add(import, node);
  a->masked = compose_unary(import, "logical_not", seen);
  return a->masked != NULL;
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

static bool take_mask(Attention *a) {
  Import *import = a->import;
  Value *mask = import_input(import, 3);
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
  double scale = import_float(import, "scale", 1 / sqrt((double)a->size));
  Value *query = grouped(a, compose_cast(import, a->query, a->wide), a->heads / a->kv_heads);
  Value *key = grouped(a, compose_cast(import, a->key, a->wide), 1);
  key = compose_permute(import, key, swapped[is_grouped(a)]);
  return compose_number(import, "multiply", compose_binary(import, "matmul", query, key), scale);
}

static Value *soft_capped(Attention *a, Value *scores) {
  double cap = import_float(a->import, "softcap", 0);
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
  Value *result = a->masked ? masked_softmax(import, scores) : softmax(import, scores);
  return compose_cast(import, result, a->wide);
}

static void import_attention(Import *import) {
  Attention a = {.import = import};
  int64_t mode = import_int(import, "qk_matmul_output_mode", 0);
  if (!take_inputs(&a) || !mask_positions(&a) || !take_mask(&a)) return;
  if (mode < 0 || mode > 3) {
    import_refuse(import, "attribute 'qk_matmul_output_mode' is %lld, expected 0 to 3",
                  (long long)mode);
    return;
  }
  Value *steps[4] = {products(&a)};
  steps[1] = soft_capped(&a, steps[0]);
  steps[2] = with_masks(&a, steps[1]);
  steps[3] = probabilities(&a, steps[2]);
  Value *value = grouped(&a, compose_cast(import, a.value, a.wide), 1);
  Value *result = ungrouped(&a, compose_binary(import, "matmul", steps[3], value));
  result = compose_cast(import, result, a.type);
  if (a.flat) {
    int64_t shape[] = {a.batch, a.queries, a.heads * a.value_size};
    result = compose_permute(import, result, (const int64_t[]){0, 2, 1, 3});
    result = compose_reshape(import, result, shape, 3);
  }
  import_result(import, 0, result);
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

// ---- Rotary embedding -------------------------------------------------------------------------

typedef struct Rotary {
  Import *import;
  bool flat, interleaved;
  int64_t batch, sequence, heads, size, half;
} Rotary;

static bool rotary_sizes(Rotary *r) {
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

// A table of angles for each batch and position, shaped so that all heads read it: [b, 1, s, half],
// or for inputs of rank 3 [b, s, 1, half].
static Value *angles(Rotary *r, int input) {
  Import *import = r->import;
  Value *table = import->inputs[input], *positions = import_input(import, 3);
  int64_t by_head[] = {r->batch, 1, r->sequence, r->half};
  int64_t by_place[] = {r->batch, r->sequence, 1, r->half};
  if (positions) table = compose_binary(import, "take", table, positions);
  if (!table) return NULL;
  if (table->rank != 3 || import_dim(table, 2) != r->half) {
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

static void import_rotary_embedding(Import *import) {
  Rotary r = {.import = import};
  Value *x = import->inputs[0];
  if (!rotary_sizes(&r)) return;
  int64_t by_place[] = {r.batch, r.sequence, r.heads, r.size};
  if (r.flat) x = import_reshape(import, x, by_place, 4);
  Value *cosine = angles(&r, 1), *sine = cosine ? angles(&r, 2) : NULL;
  if (!sine) return;
  Value *a = half_of(&r, x, 0), *b = half_of(&r, x, 1);
  Value *parts[] = {
      joined(&r, turned(&r, a, cosine, "subtract", b, sine), turned(&r, a, sine, "add", b, cosine)),
      NULL};
  bool rest = 2 * r.half < r.size;
  if (rest) parts[1] = compose_slice(import, x, 3, 2 * r.half, r.size, 1);
  Value *result = rest ? compose_concat(import, parts, 2, 3) : parts[0];
  int64_t flat[] = {r.batch, r.sequence, r.heads * r.size};
  import_result(import, 0, r.flat ? compose_reshape(import, result, flat, 3) : result);
}

const OnnxRow onnx_attention_rows[] = {
    {"Attention", 3, 7,
     "is_causal:int kv_num_heads:int left_window_size:int q_num_heads:int "
     "qk_matmul_output_mode:int right_window_size:int scale:float softcap:float "
     "softmax_precision:int",
     import_attention},
    {"FlexAttention", 3, 3, "prob_mod:graph scale:float score_mod:graph softmax_precision:int",
     import_flex_attention, .domain = "ai.onnx.preview"},
    {"RotaryEmbedding", 3, 4, "interleaved:int num_heads:int rotary_embedding_dim:int",
     import_rotary_embedding},
    {0},
};
