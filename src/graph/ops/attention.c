// SPDX-License-Identifier: Apache-2.0
// Defines the attention mask: which keys a query may see by its position. The rest of attention is
// composed of products and a softmax (frontend/onnx/attention.c).
#include "graph/ops/ops.h"

static Expr *as_position(Context *context, Expr *axis) {
  return expr_cast(context, DTYPE_INT64, axis);
}

// True when the key is at most `before` positions before the query and at most `after` positions
// after it; -1 means no limit.
static Expr *within_window(const OpCall *call, Expr *position, Expr *key) {
  Context *context = call->context;
  int64_t before = node_int(call->node, "before", -1), after = node_int(call->node, "after", -1);
  Expr *seen = expr_bool(context, true);
  if (before >= 0)
    seen = expr_binary(context, EXPR_LE,
                       expr_sub(context, position, expr_int(context, DTYPE_INT64, before)), key);
  if (after >= 0) {
    Expr *last = expr_add(context, position, expr_int(context, DTYPE_INT64, after));
    seen = expr_and(context, seen, expr_binary(context, EXPR_LE, key, last));
  }
  return seen;
}

// The mask out[q, k], where query q has the position q + offset. With an input, the number of valid
// keys of each batch, the mask is out[b, 1…, q, k]: the queries are the last positions of the valid
// keys, and the other keys are masked.
static bool define_attention_mask(OpCall *call) {
  Context *context = call->context;
  Buffer *lengths = call->input_count ? call->inputs[0] : NULL;
  int64_t queries = node_int(call->node, "queries", -1), keys = node_int(call->node, "keys", -1);
  int64_t rank = lengths ? node_int(call->node, "rank", 4) : 2;
  Expr *shape[TE_MAX_RANK];
  if (queries < 0 || keys < 0) return op_error(call, "takes the numbers of 'queries' and 'keys'");
  if (rank < 2 + (lengths != NULL) || rank > TE_MAX_RANK)
    return op_error(call, "'rank' is %lld", (long long)rank);
  if (lengths && (lengths->rank != 1 || !op_check_indices(call, 0)))
    return op_error(call, "takes one number of keys for each batch");
  for (int i = 0; i < rank; i++) shape[i] = expr_index(context, 1);
  if (lengths) shape[0] = lengths->shape[0];
  shape[rank - 2] = expr_index(context, queries);
  shape[rank - 1] = expr_index(context, keys);
  TeAxes axes = te_axes(call->te, shape, (int)rank);
  Expr *key = as_position(context, axes.at[rank - 1]);
  Expr *offset = expr_int(context, DTYPE_INT64, node_int(call->node, "offset", 0));
  Expr *counts = expr_bool(context, true);
  if (lengths) {
    Expr *length = as_position(context, te_at(call->te, lengths, axes.at));
    offset = expr_sub(context, length, expr_int(context, DTYPE_INT64, queries));
    counts = expr_lt(context, key, length);
  }
  Expr *position = expr_add(context, as_position(context, axes.at[rank - 2]), offset);
  Expr *value = expr_and(context, counts, within_window(call, position, key));
  op_output(call, te_compute(call->te, call->node->name, DTYPE_BOOL, shape, &axes, value));
  return true;
}

const OpRow attention_ops[] = {
    {"nn.attention_mask", NULL, 0, 1, define_attention_mask,
     "queries keys offset before after rank", .mixed_types = true},
};
const int attention_op_count = COUNT_OF(attention_ops);
