// SPDX-License-Identifier: Apache-2.0
// Defines interpolation: weighted sums over a few elements of each axis, whose indices and weights
// are in tables.
#include "graph/ops/ops.h"

static bool check_table(OpCall *call, const Buffer *indices, const Buffer *weights) {
  if (!indices || !weights) return op_error(call, "an axis needs indices and weights");
  if (!dtype_is_int(indices->type))
    return op_error(call, "its indices are of type %s, expected integers",
                    dtype_name(call->context, indices->type));
  if (!dtype_equal(weights->type, call->inputs[0]->type))
    return op_error(call, "its weights are of type %s, its data of type %s",
                    dtype_name(call->context, weights->type),
                    dtype_name(call->context, call->inputs[0]->type));
  bool same = indices->rank == 2 && weights->rank == 2;
  for (int i = 0; same && i < 2; i++) same = indices->shape[i] == weights->shape[i];
  return same || op_error(call, "takes indices and weights of one shape [extent, taps]");
}

static bool resampled_axes(OpCall *call, int *axes, int *count) {
  int64_t given[TE_MAX_RANK];
  Buffer *x = call->inputs[0];
  bool seen[TE_MAX_RANK] = {false};
  *count = node_ints(call->node, "axes", given, TE_MAX_RANK);
  if (*count < 1 || call->input_count != 1 + 2 * *count)
    return op_error(call, "'axes' needs one axis for each two of the %d tables",
                    call->input_count - 1);
  for (int i = 0; i < *count; i++) {
    if (!op_axis(call, given[i], x->rank, &axes[i]) ||
        !check_table(call, call->inputs[1 + 2 * i], call->inputs[2 + 2 * i]))
      return false;
    if (seen[axes[i]]) return op_error(call, "'axes' names axis %d twice", axes[i]);
    seen[axes[i]] = true;
    if (expr_is_int(x->shape[axes[i]], 0))
      return op_error(call, "axis %d has no elements to choose from", axes[i]);
  }
  return true;
}

// out[…, o, …] = Σ weights[o, t] * x[…, indices[o, t], …], over the taps t of all the node's axes.
static bool define_resample(OpCall *call) {
  Context *context = call->context;
  Buffer *x = call->inputs[0];
  int axes[TE_MAX_RANK], count;
  if (!resampled_axes(call, axes, &count)) return false;
  Expr *shape[TE_MAX_RANK], *at[TE_MAX_RANK], *weight = NULL;
  memcpy(shape, x->shape, sizeof *shape * (size_t)x->rank);
  for (int i = 0; i < count; i++) shape[axes[i]] = call->inputs[1 + 2 * i]->shape[0];
  TeAxes out = te_axes(call->te, shape, x->rank);
  TeReduction sum = {.combine = EXPR_ADD, .init = expr_const(context, x->type, 0)};
  memcpy(at, out.at, sizeof at);
  for (int i = 0; i < count; i++) {
    Buffer *indices = call->inputs[1 + 2 * i], *weights = call->inputs[2 + 2 * i];
    Expr *tap = op_reduce_axis(call, &sum, str_format(context, "t%d", i), indices->shape[1]);
    Expr *place[] = {out.at[axes[i]], tap}, *factor = te_at(call->te, weights, place);
    at[axes[i]] = op_position(context, te_at(call->te, indices, place), x->shape[axes[i]]);
    weight = weight ? expr_mul(context, weight, factor) : factor;
  }
  Expr *value = expr_mul(context, weight, te_at(call->te, x, at));
  op_output(call, te_reduce(call->te, call->node->name, x->type, shape, &out, &sum, value));
  return true;
}

const OpRow resample_ops[] = {
    {"image.resample", NULL, 3, 2 * TE_MAX_RANK + 1, define_resample, "axes", .mixed_types = true},
};
const int resample_op_count = COUNT_OF(resample_ops);
