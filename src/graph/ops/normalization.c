// SPDX-License-Identifier: Apache-2.0
// Defines batch normalisation and softmax. Computations on parameters alone are stages of their
// own, so that they can be computed once.
#include "graph/ops/ops.h"

static Expr *channel_at(OpCall *call, Buffer *tensor, Expr *channel) {
  return te_at(call->te, tensor, &channel);
}

// y = x * a[c] + b[c], a = scale / sqrt(variance + epsilon), b = bias - mean * a
// TVM's operator returns the mean and the variance too, which stay as they are at inference.
static bool batch_norm_moments(OpCall *call) {
  for (int i = 1; i < call->node->output_count && i < 3; i++) {
    Buffer *x = call->inputs[2 + i];
    TeAxes axes = te_axes(call->te, x->shape, x->rank);
    op_output(call, te_compute(call->te, str_format(call->context, "%s_%d", call->node->name, i),
                               x->type, x->shape, &axes, te_at(call->te, x, axes.at)));
  }
  return true;
}

// (1 - momentum) * old + momentum * now
static Buffer *moved(OpCall *call, int input, Buffer *now) {
  Context *context = call->context;
  Buffer *old = call->inputs[input];
  double momentum = node_float(call->node, "momentum", 0.1);
  TeAxes at = te_axes(call->te, old->shape, old->rank);
  Expr *kept = expr_mul(context, channel_at(call, old, at.at[0]),
                        expr_const(context, old->type, 1 - momentum));
  Expr *more = expr_mul(context, expr_cast(context, old->type, channel_at(call, now, at.at[0])),
                        expr_const(context, old->type, momentum));
  return te_compute(call->te, str_format(context, "%s_%d", call->node->name, input - 2), old->type,
                    old->shape, &at, expr_add(context, kept, more));
}

// In training, the mean and the variance are those of the batch, and the given ones move to them.
static bool define_batch_training(OpCall *call) {
  int64_t others[TE_MAX_RANK];
  Buffer *x = call->inputs[0];
  int axis, count = 0;
  if (!op_axis(call, node_int(call->node, "axis", 1), x->rank, &axis)) return false;
  for (int i = 0; i < x->rank; i++)
    if (i != axis) others[count++] = i;
  Attrs attrs = op_with_ints(call, (Attrs){0}, "axis", others, count);
  Buffer *inputs[5] = {x, call->inputs[1], call->inputs[2]};
  inputs[3] = op_apply(call, "mean", "mean", &x, 1, attrs);
  inputs[4] = op_apply(call, "variance", "variance", &x, 1, attrs);
  Buffer *y = inputs[3] && inputs[4] ? op_apply(call, "nn.batch_norm", NULL, inputs, 5,
                                                op_with_int(call, call->node->attrs, "training", 0))
                                     : NULL;
  if (!y) return false;
  op_output(call, y);
  for (int i = 3; i < 5 && i < call->node->output_count + 2; i++)
    op_output(call, moved(call, i, inputs[i]));
  return true;
}

static bool define_batch_norm(OpCall *call) {
  Context *context = call->context;
  Te *te = call->te;
  Buffer *x = call->inputs[0], *scale = call->inputs[1], *bias = call->inputs[2];
  Buffer *mean = call->inputs[3], *variance = call->inputs[4];
  int axis;
  if (node_int(call->node, "training", 1)) return define_batch_training(call);
  if (x->rank < 2) return op_error(call, "takes a tensor of rank 2 or more, got %d", x->rank);
  if (!op_axis(call, node_int(call->node, "axis", 1), x->rank, &axis)) return false;
  for (int i = 1; i < 5; i++)
    if (call->inputs[i]->rank != 1 || call->inputs[i]->shape[0] != x->shape[axis])
      return op_error(call, "'%s' must have one number per channel, which are axis %d of '%s'",
                      call->inputs[i]->name, axis, x->name);
  Expr **channels = &x->shape[axis];
  bool scales = node_int(call->node, "scale", 1) != 0,
       centers = node_int(call->node, "center", 1) != 0;
  Expr *epsilon = expr_const(context, variance->type, node_float(call->node, "epsilon", 1e-5));
  TeAxes at = te_axes(te, channels, 1);
  Expr *deviation = expr_unary(context, EXPR_SQRT,
                               expr_add(context, channel_at(call, variance, at.at[0]), epsilon));
  Expr *factor =
      scales ? channel_at(call, scale, at.at[0]) : expr_const(context, variance->type, 1);
  Buffer *a = te_compute(te, str_format(context, "%s_scale", call->node->name), variance->type,
                         channels, &at, expr_binary(context, EXPR_DIV, factor, deviation));
  TeAxes bt = te_axes(te, channels, 1);
  Expr *shift = expr_mul(context, channel_at(call, mean, bt.at[0]), channel_at(call, a, bt.at[0]));
  Expr *start = centers ? channel_at(call, bias, bt.at[0]) : expr_const(context, variance->type, 0);
  Buffer *b = te_compute(te, str_format(context, "%s_shift", call->node->name), variance->type,
                         channels, &bt, expr_sub(context, start, shift));
  TeAxes axes = te_axes(te, x->shape, x->rank);
  Expr *value = expr_mul(context, te_at(te, x, axes.at), channel_at(call, a, axes.at[axis]));
  value = expr_add(context, value, channel_at(call, b, axes.at[axis]));
  op_output(call, te_compute(te, call->node->name, x->type, x->shape, &axes, value));
  return batch_norm_moments(call);
}

// ---- Softmax

typedef struct SoftmaxRows {
  bool reduced[TE_MAX_RANK];
  Expr *shape[TE_MAX_RANK]; // 1 for the reduced axes
} SoftmaxRows;

static Buffer *reduce_rows(OpCall *call, Buffer *x, const SoftmaxRows *rows, const char *suffix,
                           ExprOp combine, Expr *init) {
  Context *context = call->context;
  TeAxes axes = te_axes(call->te, rows->shape, x->rank);
  TeReduction reduction = {.combine = combine, .init = init};
  Expr *indices[TE_MAX_RANK];
  for (int i = 0; i < x->rank; i++)
    indices[i] = rows->reduced[i]
                     ? op_reduce_axis(call, &reduction, str_format(context, "r%d", i), x->shape[i])
                     : axes.at[i];
  Str name = str_format(context, "%s_%s", call->node->name, suffix);
  Expr *value = te_at(call->te, x, indices);
  // NaN is ignored here; the sum keeps it.
  if (combine == EXPR_MAX) value = op_number_or_lowest(call, value);
  return te_reduce(call->te, name, x->type, rows->shape, &axes, &reduction, value);
}

static Expr *row_at(OpCall *call, Buffer *row, const SoftmaxRows *rows, const TeAxes *axes) {
  Expr *indices[TE_MAX_RANK];
  for (int i = 0; i < axes->rank; i++)
    indices[i] = rows->reduced[i] ? expr_index(call->context, 0) : axes->at[i];
  return te_at(call->te, row, indices);
}

static bool softmax_rows(OpCall *call, SoftmaxRows *rows) {
  Buffer *x = call->inputs[0];
  int axis;
  if (!op_axis(call, node_int(call->node, "axis", -1), x->rank, &axis)) return false;
  bool behind = node_int(call->node, "all_behind", 0) != 0; // reduces the axis and all later ones
  for (int i = 0; i < x->rank; i++) {
    rows->reduced[i] = behind ? i >= axis : i == axis;
    rows->shape[i] = rows->reduced[i] ? expr_index(call->context, 1) : x->shape[i];
  }
  return true;
}

static Expr *shifted(OpCall *call, Buffer *x, Buffer *highest, const SoftmaxRows *rows,
                     const TeAxes *axes) {
  return expr_sub(call->context, te_at(call->te, x, axes->at), row_at(call, highest, rows, axes));
}

// Divides once for each row and multiplies by the quotient. Narrow floats are divided, because
// their reciprocal would be too inexact.
static Buffer *over_sum(OpCall *call, Buffer *e, Buffer *sum, const SoftmaxRows *rows) {
  Context *context = call->context;
  bool narrow = e->type.bits < 32;
  if (!narrow) {
    TeAxes at = te_axes(call->te, rows->shape, e->rank);
    Expr *one = expr_const(context, e->type, 1);
    sum = te_compute(call->te, str_format(context, "%s_inverse", call->node->name), e->type,
                     rows->shape, &at,
                     expr_binary(context, EXPR_DIV, one, te_at(call->te, sum, at.at)));
  }
  TeAxes axes = te_axes(call->te, e->shape, e->rank);
  Expr *value = expr_binary(context, narrow ? EXPR_DIV : EXPR_MUL, te_at(call->te, e, axes.at),
                            row_at(call, sum, rows, &axes));
  return te_compute(call->te, call->node->name, e->type, e->shape, &axes, value);
}

static bool define_softmax(OpCall *call) {
  Context *context = call->context;
  Buffer *x = call->inputs[0];
  SoftmaxRows rows;
  if (!softmax_rows(call, &rows)) return false;
  Buffer *highest = reduce_rows(call, x, &rows, "max", EXPR_MAX, op_lowest(context, x->type));
  TeAxes at = te_axes(call->te, x->shape, x->rank);
  Expr *power = expr_unary(context, EXPR_EXP, shifted(call, x, highest, &rows, &at));
  Buffer *e = te_compute(call->te, str_format(context, "%s_exp", call->node->name), x->type,
                         x->shape, &at, power);
  Buffer *sum = reduce_rows(call, e, &rows, "sum", EXPR_ADD, expr_const(context, x->type, 0));
  op_output(call, over_sum(call, e, sum, &rows));
  return true;
}

static bool define_log_softmax(OpCall *call) {
  Context *context = call->context;
  Buffer *x = call->inputs[0];
  SoftmaxRows rows;
  if (!softmax_rows(call, &rows)) return false;
  Buffer *highest = reduce_rows(call, x, &rows, "max", EXPR_MAX, op_lowest(context, x->type));
  TeAxes at = te_axes(call->te, x->shape, x->rank), to = te_axes(call->te, x->shape, x->rank);
  Buffer *e =
      te_compute(call->te, str_format(context, "%s_exp", call->node->name), x->type, x->shape, &at,
                 expr_unary(context, EXPR_EXP, shifted(call, x, highest, &rows, &at)));
  Buffer *sum = reduce_rows(call, e, &rows, "sum", EXPR_ADD, expr_const(context, x->type, 0));
  Expr *value = expr_sub(context, shifted(call, x, highest, &rows, &to),
                         expr_unary(context, EXPR_LOG, row_at(call, sum, &rows, &to)));
  op_output(call, te_compute(call->te, call->node->name, x->type, x->shape, &to, value));
  return true;
}

const OpRow normalization_ops[] = {
    {"nn.batch_norm", "BatchNormalization", 5, 5, define_batch_norm,
     "epsilon axis center scale momentum training", .mixed_types = true, .results = 3,
     .positional = "axis epsilon center scale momentum training"},
    {"nn.softmax", "Softmax", 1, 1, define_softmax, "axis all_behind", .positional = "axis"},
    {"nn.log_softmax", "LogSoftmax", 1, 1, define_log_softmax, "axis all_behind",
     .positional = "axis"},
};
const int normalization_op_count = COUNT_OF(normalization_ops);
