// SPDX-License-Identifier: Apache-2.0
// Imports ONNX operators that carry a state along a sequence and return it for the next call:
// linear attention, unrolled step by step, and causal convolutions. Narrow floats are computed in
// float32.
#include "frontend/onnx/compose.h"

#include "graph/graph.h"

#include <math.h>

// ---- Linear attention -------------------------------------------------------------------------

typedef struct Linear {
  Import *import;
  int64_t batch, steps, heads, kv_heads, key_size, value_size;
  DType wide;
  bool gated, delta;
  Value *query, *key, *value, *decay, *beta; // [batch, steps, kv heads, …]
} Linear;

// Reshapes to [batch, steps, heads, rows, columns] in float32 or wider.
static Value *by_steps(Linear *l, Value *x, int64_t heads, int64_t rows, int64_t columns) {
  int64_t shape[] = {l->batch, l->steps, heads, rows, columns};
  return compose_reshape(l->import, compose_cast(l->import, x, l->wide), shape, 5);
}

static bool linear_rule(Linear *l) {
  const char *rule = import_text(l->import, "update_rule", "gated_delta");
  l->gated = strcmp(rule, "gated") == 0 || strcmp(rule, "gated_delta") == 0;
  l->delta = strcmp(rule, "delta") == 0 || strcmp(rule, "gated_delta") == 0;
  if (!l->gated && !l->delta && strcmp(rule, "linear") != 0)
    return import_refuse(l->import,
                         "attribute 'update_rule' is '%s', expected delta, gated, gated_delta or "
                         "linear",
                         rule);
  if ((l->gated && !import_input(l->import, 4)) || (l->delta && !import_input(l->import, 5)))
    return import_refuse(l->import, "the rule '%s' needs %s", rule,
                         l->gated && !import_input(l->import, 4) ? "a decay" : "a beta");
  return true;
}

static bool linear_sizes(Linear *l) {
  Import *import = l->import;
  Value **in = import->inputs;
  for (int i = 0; i < import->input_count; i++)
    if (in[i] && in[i]->rank != (i == 3 ? 4 : 3))
      return import_refuse(import, "its input %d has rank %d", i, in[i]->rank);
  l->batch = import_dim(in[0], 0);
  l->steps = import_dim(in[0], 1);
  l->heads = import_int(import, "q_num_heads", 0);
  l->kv_heads = import_int(import, "kv_num_heads", 0);
  if (l->heads < 1 || l->kv_heads < 1 || l->heads % l->kv_heads ||
      import_dim(in[0], 2) % l->heads || import_dim(in[1], 2) % l->kv_heads ||
      import_dim(in[2], 2) % l->kv_heads)
    return import_refuse(import, "its inputs do not divide by %lld and %lld heads",
                         (long long)l->heads, (long long)l->kv_heads);
  l->key_size = import_dim(in[0], 2) / l->heads;
  l->value_size = import_dim(in[2], 2) / l->kv_heads;
  return import_dim(in[1], 2) / l->kv_heads == l->key_size ||
         import_refuse(import, "its queries and keys differ in size");
}

static bool linear_inputs(Linear *l) {
  Value **in = l->import->inputs;
  l->wide = in[0]->type.bits < 32 ? DTYPE_FLOAT32 : in[0]->type;
  l->query = by_steps(l, in[0], l->kv_heads, l->heads / l->kv_heads, l->key_size);
  l->key = by_steps(l, in[1], l->kv_heads, l->key_size, 1);
  l->value = by_steps(l, in[2], l->kv_heads, 1, l->value_size);
  if (l->gated) {
    bool one = import_dim(in[4], 2) == l->kv_heads && l->key_size != 1;
    l->decay = by_steps(l, in[4], l->kv_heads, one ? 1 : l->key_size, 1);
    l->decay = compose_unary(l->import, "exp", l->decay);
  }
  if (l->delta) l->beta = by_steps(l, in[5], import_dim(in[5], 2), 1, 1);
  return l->query && l->key && l->value && (!l->gated || l->decay) && (!l->delta || l->beta);
}

static Value *first_state(Linear *l) {
  Value *past = import_input(l->import, 3);
  int64_t shape[] = {l->batch, l->kv_heads, l->key_size, l->value_size};
  int64_t count = l->batch * l->kv_heads * l->key_size * l->value_size;
  if (past) return compose_cast(l->import, past, l->wide);
  return compose_constant(l->import, l->wide, shape, 4,
                          arena_array(&l->import->context->arena, double, count));
}

static Value *at_step(Linear *l, Value *x, int64_t step) {
  return x ? import_element(l->import, x, 1, step) : NULL;
}

// The next state [batch, kv heads, key size, value size]: the part that is kept, plus the outer
// product of the key and the update.
static Value *next_state(Linear *l, Value *state, int64_t step) {
  Import *import = l->import;
  static const int64_t swapped[] = {0, 1, 3, 2};
  Value *key = at_step(l, l->key, step), *news = at_step(l, l->value, step);
  if (l->gated) state = compose_binary(import, "multiply", state, at_step(l, l->decay, step));
  if (l->delta) {
    Value *known = compose_binary(import, "matmul", compose_permute(import, key, swapped), state);
    news = compose_binary(import, "subtract", news, known);
    news = compose_binary(import, "multiply", news, at_step(l, l->beta, step));
  }
  return compose_binary(import, "add", state, compose_binary(import, "multiply", key, news));
}

static void import_linear_attention(Import *import) {
  Linear l = {.import = import};
  if (!linear_rule(&l) || !linear_sizes(&l) || !linear_inputs(&l)) return;
  double scale = import_float(import, "scale", 0);
  if (scale == 0) scale = 1 / sqrt((double)l.key_size);
  Value *state = first_state(&l),
        **results = arena_array(&import->context->arena, Value *, l.steps);
  for (int64_t i = 0; i < l.steps && state; i++) {
    state = next_state(&l, state, i);
    results[i] = compose_binary(import, "matmul", at_step(&l, l.query, i), state);
  }
  if (!state || !l.steps || !results[l.steps - 1]) return;
  int64_t shape[] = {l.batch, l.steps, l.heads * l.value_size};
  Value *result = import_stack(import, results, (int)l.steps, 1);
  result = compose_number(import, "multiply", compose_reshape(import, result, shape, 3), scale);
  import_result(import, 0, compose_cast(import, result, import->inputs[0]->type));
  Value *past = import_input(import, 3);
  DType type = past ? past->type : import->inputs[0]->type;
  if (import_wants_output(import, 1)) import_result(import, 1, compose_cast(import, state, type));
}

// ---- Causal convolution -----------------------------------------------------------------------

static Value *activated(Import *import, Value *x) {
  const char *name = import_text(import, "activation", "none");
  if (strcmp(name, "silu") == 0 || strcmp(name, "swish") == 0)
    return compose_unary(import, "nn.swish", x);
  if (strcmp(name, "none") == 0) return x;
  import_refuse(import, "attribute 'activation' is '%s', expected none, silu or swish", name);
  return NULL;
}

// Convolves each channel by itself, with the past before the input.
static void import_causal_conv(Import *import) {
  Value *x = import->inputs[0], *weight = import->inputs[1], *past = import_input(import, 3);
  if (x->rank != 3 || weight->rank != 3 || import_dim(weight, 0) != import_dim(x, 1) ||
      import_dim(weight, 1) != 1) {
    import_refuse(import, "takes [batch, channels, length] and weights [channels, 1, size]");
    return;
  }
  int64_t before = import_dim(weight, 2) - 1, length = import_dim(x, 2) + before;
  Value *parts[] = {past, x};
  if (past && (past->rank != 3 || import_dim(past, 2) != before)) {
    import_refuse(import, "its past must have one element less than the weights");
    return;
  }
  Value *all = past ? compose_concat(import, parts, 2, 2) : compose_pad(import, x, 2, before, 0, 0);
  Value *inputs[] = {all, weight, import_input(import, 2)};
  Node *node = all ? import_begin(import, "nn.conv1d", inputs, inputs[2] ? 3 : 2) : NULL;
  if (node) node_set_int(import->context, node, "groups", import_dim(x, 1));
  import_result(import, 0, activated(import, node ? import_add(import, node) : NULL));
  if (import_wants_output(import, 1))
    import_result(import, 1, compose_slice(import, all, 2, length - before, length, 1));
}

const OnnxRow onnx_state_rows[] = {
    {"CausalConvWithState", 2, 4, "activation:string", import_causal_conv},
    {"LinearAttention", 3, 6,
     "chunk_size:int kv_num_heads:int q_num_heads:int scale:float update_rule:string",
     import_linear_attention},
    {0},
};
