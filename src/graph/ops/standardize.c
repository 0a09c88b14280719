// SPDX-License-Identifier: Apache-2.0
// Defines the normalisations by statistics of the tensor itself, over some of its axes:
//   y = (x - mean) / sqrt(mean((x - mean)^2) + epsilon) * scale + bias
// Narrow floats are widened to float32 for the statistics.
#include "graph/ops/ops.h"

typedef struct Statistics {
  OpCall *call;
  Buffer *x;
  DType type; // the type of the computation
  bool reduced[TE_MAX_RANK];
  Expr *shape[TE_MAX_RANK]; // 1 for the reduced axes
  Expr *elements;           // number of reduced elements, in `type`
} Statistics;

static Statistics statistics_begin(OpCall *call, const bool *reduced) {
  Context *context = call->context;
  Statistics s = {.call = call, .x = call->inputs[0], .type = call->inputs[0]->type};
  Expr *elements = expr_index(context, 1);
  if (dtype_is_float(s.type) && s.type.bits < 32) s.type = DTYPE_FLOAT32;
  for (int i = 0; i < s.x->rank; i++) {
    s.reduced[i] = reduced[i];
    s.shape[i] = reduced[i] ? expr_index(context, 1) : s.x->shape[i];
    if (reduced[i]) elements = expr_mul(context, elements, s.x->shape[i]);
  }
  s.elements = expr_cast(context, s.type, elements);
  return s;
}

static Expr *element(const Statistics *s, Expr *const *at) {
  return expr_cast(s->call->context, s->type, te_at(s->call->te, s->x, at));
}

// The element of a statistic for an index of x.
static Expr *statistic_at(const Statistics *s, Buffer *statistic, Expr *const *at) {
  Expr *indices[TE_MAX_RANK];
  for (int i = 0; i < s->x->rank; i++)
    indices[i] = s->reduced[i] ? expr_index(s->call->context, 0) : at[i];
  return te_at(s->call->te, statistic, indices);
}

static Expr *centred(const Statistics *s, Buffer *mean, Expr *const *at) {
  Expr *value = element(s, at);
  return mean ? expr_sub(s->call->context, value, statistic_at(s, mean, at)) : value;
}

static Str part_name(const Statistics *s, const char *part) {
  return str_format(s->call->context, "%s_%s", s->call->node->name, part);
}

// Σ (x - mean)^power
static Buffer *sum_of(const Statistics *s, Buffer *mean, int power, const char *part) {
  OpCall *call = s->call;
  Context *context = call->context;
  TeAxes axes = te_axes(call->te, s->shape, s->x->rank);
  TeReduction sum = {.combine = EXPR_ADD, .init = expr_const(context, s->type, 0)};
  Expr *at[TE_MAX_RANK];
  for (int i = 0; i < s->x->rank; i++)
    at[i] = s->reduced[i]
                ? op_reduce_axis(call, &sum, str_format(context, "r%d", i), s->x->shape[i])
                : axes.at[i];
  Expr *value = centred(s, mean, at);
  if (power == 2) value = expr_mul(context, value, value);
  return te_reduce(call->te, part_name(s, part), s->type, s->shape, &axes, &sum, value);
}

// The mean: a sum divided by the number of elements, in the statistics' shape.
static Buffer *mean_of(const Statistics *s, Buffer *sum, const char *part) {
  TeAxes axes = te_axes(s->call->te, s->shape, s->x->rank);
  Expr *value =
      expr_binary(s->call->context, EXPR_DIV, te_at(s->call->te, sum, axes.at), s->elements);
  return te_compute(s->call->te, part_name(s, part), s->type, s->shape, &axes, value);
}

// 1 / sqrt(mean square + epsilon)
static Buffer *inverse_deviation(const Statistics *s, Buffer *squares) {
  Context *context = s->call->context;
  TeAxes axes = te_axes(s->call->te, s->shape, s->x->rank);
  Expr *epsilon = expr_const(context, s->type, node_float(s->call->node, "epsilon", 1e-5));
  Expr *square = expr_binary(context, EXPR_DIV, te_at(s->call->te, squares, axes.at), s->elements);
  Expr *root = expr_unary(context, EXPR_SQRT, expr_add(context, square, epsilon));
  return te_compute(s->call->te, part_name(s, "inverse"), s->type, s->shape, &axes,
                    expr_binary(context, EXPR_DIV, expr_const(context, s->type, 1), root));
}

typedef Expr *(*ParameterAt)(OpCall *call, Buffer *parameter, const TeAxes *axes);

// (x - mean) * inverse, times the scale and plus the bias when they are given (inputs 1 and 2).
static void finish(const Statistics *s, Buffer *mean, Buffer *inverse, ParameterAt at) {
  OpCall *call = s->call;
  Context *context = call->context;
  TeAxes axes = te_axes(call->te, s->x->shape, s->x->rank);
  Expr *value = expr_mul(context, centred(s, mean, axes.at), statistic_at(s, inverse, axes.at));
  for (int i = 1; i < 3 && at; i++) {
    bool is_used = node_int(call->node, i == 1 ? "scale" : "center", 1) != 0;
    if (i >= call->input_count || !call->inputs[i] || !is_used) continue;
    Expr *parameter = expr_cast(context, s->type, at(call, call->inputs[i], &axes));
    value = expr_binary(context, i == 1 ? EXPR_MUL : EXPR_ADD, value, parameter);
  }
  op_output(call, te_compute(call->te, call->node->name, s->x->type, s->x->shape, &axes,
                             expr_cast(context, s->x->type, value)));
}

// ---- The operators

static Expr *listed_parameter(OpCall *call, Buffer *parameter, const TeAxes *axes) {
  int64_t listed[TE_MAX_RANK];
  Expr *at[TE_MAX_RANK];
  int count = node_ints(call->node, "axes", listed, TE_MAX_RANK);
  for (int i = 0; i < count; i++) at[i] = axes->at[listed[i] + (listed[i] < 0 ? axes->rank : 0)];
  return te_at(call->te, parameter, at);
}

static bool parameters_fit_list(OpCall *call, const int *axes, int count) {
  Buffer *x = call->inputs[0];
  for (int i = 1; i < call->input_count; i++) {
    Buffer *parameter = call->inputs[i];
    bool fits = !parameter || parameter->rank == count;
    for (int k = 0; parameter && fits && k < count; k++)
      fits = op_same_extent(parameter->shape[k], x->shape[axes[k]]);
    if (!fits)
      return op_error(call, "'%s' must have the extents of the 'axes' of '%s'", parameter->name,
                      x->name);
  }
  return true;
}

static bool parameters_broadcast(OpCall *call) {
  Buffer *x = call->inputs[0];
  for (int i = 1; i < call->input_count; i++) {
    Expr *shape[TE_MAX_RANK];
    int rank;
    if (!call->inputs[i]) continue;
    if (!op_broadcast_shape(call, (Buffer *[]){x, call->inputs[i]}, 2, shape, &rank)) return false;
    bool same = rank == x->rank;
    for (int d = 0; same && d < rank; d++) same = shape[d] == x->shape[d];
    if (!same)
      return op_error(call, "'%s' does not broadcast to '%s'", call->inputs[i]->name, x->name);
  }
  return true;
}

// Selects the axes of the attribute 'axes', or without it the attribute 'axis' and all later ones.
// The parameters broadcast to the last axes, and are read by `at`.
static bool normalised_axes(OpCall *call, bool *reduced, ParameterAt *at) {
  int64_t listed[TE_MAX_RANK];
  int axes[TE_MAX_RANK], first, rank = call->inputs[0]->rank;
  int count = node_ints(call->node, "axes", listed, TE_MAX_RANK);
  bool are_last = true;
  if (count < 0) return op_error(call, "'axes' must be a list of at most %d integers", TE_MAX_RANK);
  if (!count && !op_axis(call, node_int(call->node, "axis", -1), rank, &first)) return false;
  for (int i = 0; i < rank; i++) reduced[i] = !count && i >= first;
  for (int i = 0; i < count; i++) {
    if (!op_axis(call, listed[i], rank, &axes[i])) return false;
    if (reduced[axes[i]]) return op_error(call, "'axes' names axis %d twice", axes[i]);
    reduced[axes[i]] = true;
    are_last &= axes[i] == rank - count + i;
  }
  *at = are_last ? op_broadcast_at : listed_parameter;
  return are_last ? parameters_broadcast(call) : parameters_fit_list(call, axes, count);
}

static bool define_layer_norm(OpCall *call) {
  bool reduced[TE_MAX_RANK];
  ParameterAt at;
  if (!normalised_axes(call, reduced, &at)) return false;
  Statistics s = statistics_begin(call, reduced);
  Buffer *mean = mean_of(&s, sum_of(&s, NULL, 1, "sum"), "mean");
  Buffer *inverse = inverse_deviation(&s, sum_of(&s, mean, 2, "squares"));
  finish(&s, mean, inverse, at);
  if (call->node->output_count > 1) op_output(call, mean);
  if (call->node->output_count > 2) op_output(call, inverse);
  return true;
}

static bool define_rms_norm(OpCall *call) {
  bool reduced[TE_MAX_RANK];
  ParameterAt at;
  if (!normalised_axes(call, reduced, &at)) return false;
  Statistics s = statistics_begin(call, reduced);
  finish(&s, NULL, inverse_deviation(&s, sum_of(&s, NULL, 2, "squares")), at);
  return true;
}

static Expr *channel_parameter(OpCall *call, Buffer *parameter, const TeAxes *axes) {
  return te_at(call->te, parameter, &axes->at[1]);
}

static bool parameters_per_channel(OpCall *call) {
  Buffer *x = call->inputs[0];
  if (x->rank < 3) return op_error(call, "takes a tensor of rank 3 or more, got %d", x->rank);
  for (int i = 1; i < call->input_count; i++)
    if (call->inputs[i] && (call->inputs[i]->rank != 1 || call->inputs[i]->shape[0] != x->shape[1]))
      return op_error(call, "'%s' must have one number per channel, which are axis 1 of '%s'",
                      call->inputs[i]->name, x->name);
  return true;
}

// The axes are those after the channels, which are axis 1.
static bool usual_axes(OpCall *call) {
  int64_t listed[TE_MAX_RANK];
  int rank = call->inputs[0]->rank, axis,
      count = node_ints(call->node, "axes", listed, TE_MAX_RANK);
  if (!op_axis(call, node_int(call->node, "channel_axis", 1), rank, &axis)) return false;
  bool usual = axis == 1 && (!count || count == rank - 2);
  for (int i = 0; usual && i < count; i++) {
    if (!op_axis(call, listed[i], rank, &axis)) return false;
    usual = axis == i + 2;
  }
  return usual || op_error(call, "normalises over all axes after the channels, which are axis 1");
}

static bool define_instance_norm(OpCall *call) {
  bool reduced[TE_MAX_RANK];
  if (!usual_axes(call) || !parameters_per_channel(call)) return false;
  for (int i = 0; i < TE_MAX_RANK; i++) reduced[i] = i >= 2;
  Statistics s = statistics_begin(call, reduced);
  Buffer *mean = mean_of(&s, sum_of(&s, NULL, 1, "sum"), "mean");
  finish(&s, mean, inverse_deviation(&s, sum_of(&s, mean, 2, "squares")), channel_parameter);
  return true;
}

const OpRow standardize_ops[] = {
    {"nn.layer_norm", "LayerNormalization", 1, 3, define_layer_norm,
     "axis epsilon axes center scale", .positional = "axes epsilon center scale"},
    {"nn.rms_norm", "RMSNormalization", 1, 2, define_rms_norm, "axis epsilon axes",
     .positional = "axes epsilon"},
    {"nn.instance_norm", "InstanceNormalization", 1, 3, define_instance_norm,
     "channel_axis axes epsilon center scale",
     .positional = "channel_axis axes epsilon center scale"},
};
const int standardize_op_count = COUNT_OF(standardize_ops);
