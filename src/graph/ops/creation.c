// SPDX-License-Identifier: Apache-2.0
// Defines the operators that make tensors of one number, and sequences of numbers.
#include "graph/ops/ops.h"

#include <math.h>

// ---- Filled tensors

// The type of the attribute 'dtype'; `otherwise` when it is absent.
static bool stated_type(OpCall *call, DType otherwise, DType *type) {
  const char *name = node_string(call->node, "dtype", "");
  *type = otherwise;
  return !*name || dtype_parse(name, strlen(name), type) ||
         op_error(call, "unknown type '%s'", name);
}

static bool fill(OpCall *call, DType type, Expr *const *shape, int rank, Expr *value) {
  TeAxes axes = te_axes(call->te, shape, rank);
  op_output(call, te_compute(call->te, call->node->name, type, shape, &axes, value));
  return true;
}

static bool stated_shape(OpCall *call, Expr **shape, int *rank) {
  Expr *value = attrs_get(&call->node->attrs, "shape");
  if (!value || value->op != EXPR_TUPLE || value->count > TE_MAX_RANK)
    return op_error(call, "'shape' must be a list of at most %d extents", TE_MAX_RANK);
  *rank = value->count;
  for (int i = 0; i < *rank; i++) {
    int64_t extent;
    shape[i] = value->args[i];
    if (!dtype_is_int(shape[i]->type) || (expr_as_int(shape[i], &extent) && extent < 0))
      return op_error(call, "axis %d of 'shape' is no extent", i);
    if (expr_as_int(shape[i], &extent)) shape[i] = expr_index(call->context, extent);
  }
  return true;
}

static bool fill_shape(OpCall *call, double number) {
  Expr *shape[TE_MAX_RANK];
  DType type;
  int rank;
  return stated_shape(call, shape, &rank) && stated_type(call, DTYPE_FLOAT32, &type) &&
         fill(call, type, shape, rank, expr_const(call->context, type, number));
}

static bool fill_like(OpCall *call, double number) {
  const Buffer *x = call->inputs[0];
  DType type;
  return stated_type(call, x->type, &type) &&
         fill(call, type, x->shape, x->rank, expr_const(call->context, type, number));
}

static bool define_zeros(OpCall *call) {
  return fill_shape(call, 0);
}
static bool define_ones(OpCall *call) {
  return fill_shape(call, 1);
}
static bool define_zeros_like(OpCall *call) {
  return fill_like(call, 0);
}
static bool define_ones_like(OpCall *call) {
  return fill_like(call, 1);
}

// The extents of a shape as a list of int64.
static bool define_shape_to_tensor(OpCall *call) {
  Context *context = call->context;
  Expr *extents[TE_MAX_RANK];
  int rank;
  if (!stated_shape(call, extents, &rank)) return false;
  Expr *shape[] = {expr_index(context, rank)}, *value = expr_int(context, DTYPE_INT64, 0);
  TeAxes axes = te_axes(call->te, shape, 1);
  for (int i = rank - 1; i >= 0; i--) {
    Expr *here = expr_binary(context, EXPR_EQ, axes.at[0], expr_int(context, axes.at[0]->type, i));
    Expr *extent = expr_cast(context, DTYPE_INT64, extents[i]);
    value = i == rank - 1 ? extent : expr_select(context, here, extent, value);
  }
  op_output(call, te_compute(call->te, call->node->name, DTYPE_INT64, shape, &axes, value));
  return true;
}

// The number in a tensor of one element.
static Expr *number_in(OpCall *call, Buffer *tensor) {
  Expr *zeros[TE_MAX_RANK];
  for (int i = 0; i < tensor->rank; i++) {
    zeros[i] = expr_index(call->context, 0);
    if (!expr_is_int(tensor->shape[i], 1))
      return op_error(call, "'%s' must have one element", tensor->name), NULL;
  }
  return te_at(call->te, tensor, zeros);
}

// The number of the attribute 'fill_value', which may follow from sizes.
static Expr *stated_number(OpCall *call) {
  Expr *value = attrs_get(&call->node->attrs, "fill_value");
  bool is_number =
      value && value->op != EXPR_TUPLE && value->type.lanes == 1 &&
      (dtype_is_int(value->type) || dtype_is_float(value->type) || dtype_is_bool(value->type));
  if (!is_number) op_error(call, "takes a tensor of one element, or a number as 'fill_value'");
  return is_number ? value : NULL;
}

static bool define_full(OpCall *call) {
  Expr *shape[TE_MAX_RANK];
  Expr *value = call->input_count ? number_in(call, call->inputs[0]) : stated_number(call);
  DType type;
  int rank;
  return value && stated_shape(call, shape, &rank) && stated_type(call, value->type, &type) &&
         fill(call, type, shape, rank, expr_cast(call->context, type, value));
}

static bool define_full_like(OpCall *call) {
  const Buffer *x = call->inputs[0];
  Expr *value = number_in(call, call->inputs[1]);
  DType type;
  return value && stated_type(call, x->type, &type) &&
         fill(call, type, x->shape, x->rank, expr_cast(call->context, type, value));
}

// ---- Sequences: start, start + step, … up to `end`

// A sequence of integers whose bounds follow from free sizes. An end that is a size alone is not
// negative.
static bool define_free_arange(OpCall *call, Expr *start, Expr *end, int64_t step) {
  Context *context = call->context;
  DType type;
  if (step == 0 || !stated_type(call, DTYPE_INT64, &type)) return false;
  Expr *from = expr_cast(context, DTYPE_INT64, step > 0 ? start : end);
  Expr *to = expr_cast(context, DTYPE_INT64, step > 0 ? end : start);
  Expr *zero = expr_int(context, DTYPE_INT64, 0), *count = expr_sub(context, to, from);
  if (count->op != EXPR_VAR) count = expr_max(context, count, zero);
  int64_t size = step > 0 ? step : -step;
  count = expr_add(context, count, expr_int(context, DTYPE_INT64, size - 1));
  Expr *shape[] = {expr_floor_div(context, count, expr_int(context, DTYPE_INT64, size))};
  TeAxes axes = te_axes(call->te, shape, 1);
  Expr *at = expr_cast(context, type, axes.at[0]);
  Expr *value = expr_add(context, expr_cast(context, type, start),
                         expr_mul(context, at, expr_const(context, type, (double)step)));
  op_output(call, te_compute(call->te, call->node->name, type, shape, &axes, value));
  return true;
}

// Are the bounds integers of which one follows from a free size, and the step a known integer?
static bool has_free_bounds(const OpCall *call, Expr **start, Expr **end, int64_t *step) {
  Expr *first = attrs_get(&call->node->attrs, "start"),
       *last = attrs_get(&call->node->attrs, "end");
  Expr *by = attrs_get(&call->node->attrs, "step");
  *end = last ? last : first;
  *start = last && first ? first : expr_int(call->context, DTYPE_INT64, 0);
  *step = 1;
  bool is_known = (*end) && (*start)->op == EXPR_INT && (*end)->op == EXPR_INT;
  return *end && !is_known && dtype_is_int((*start)->type) && dtype_is_int((*end)->type) &&
         (!by || expr_as_int(by, step)) && *step > INT32_MIN && *step <= INT32_MAX;
}

// Is the attribute absent or a number whose value is known?
static bool is_known_number(const OpCall *call, const char *key) {
  const Expr *value = attrs_get(&call->node->attrs, key);
  return !value || value->op == EXPR_INT || value->op == EXPR_FLOAT;
}

static bool define_arange(OpCall *call) {
  Context *context = call->context;
  Expr *from, *to;
  int64_t by;
  if (has_free_bounds(call, &from, &to, &by) && by) return define_free_arange(call, from, to, by);
  bool has_end = attrs_get(&call->node->attrs, "end") != NULL;
  double start = has_end ? node_float(call->node, "start", 0) : 0;
  double end = node_float(call->node, has_end ? "end" : "start", NAN);
  double step = node_float(call->node, "step", 1);
  DType type;
  if (!stated_type(call, DTYPE_INT64, &type)) return false;
  double count = ceil((end - start) / step);
  bool known = is_known_number(call, "start") && is_known_number(call, "step");
  if (!known || !(count <= INT32_MAX) || step == 0)
    return op_error(call, "takes numbers from 'start' to 'end' in steps of 'step'");
  Expr *shape[] = {expr_index(context, count > 0 ? (int64_t)count : 0)};
  TeAxes axes = te_axes(call->te, shape, 1);
  Expr *at = expr_cast(context, type, axes.at[0]);
  Expr *value = expr_add(context, expr_const(context, type, start),
                         expr_mul(context, at, expr_const(context, type, step)));
  op_output(call, te_compute(call->te, call->node->name, type, shape, &axes, value));
  return true;
}

// alpha - beta * cos(2 pi i / (n - 1)), where n is one more for a periodic window.
static bool define_hamming_window(OpCall *call) {
  Context *context = call->context;
  int64_t size = node_int(call->node, "window_size", -1);
  double alpha = node_float(call->node, "alpha", 0.54), beta = node_float(call->node, "beta", 0.46);
  int64_t last = size - !node_int(call->node, "periodic", 1);
  DType type;
  if (size < 0 || size > INT32_MAX) return op_error(call, "'window_size' must be known");
  if (!stated_type(call, DTYPE_FLOAT32, &type)) return false;
  Expr *shape[] = {expr_index(context, size)};
  TeAxes axes = te_axes(call->te, shape, 1);
  Expr *step = expr_const(context, DTYPE_FLOAT64, 2 * acos(-1) / (double)MAX_OF(last, 1));
  Expr *angle = expr_mul(context, expr_cast(context, DTYPE_FLOAT64, axes.at[0]), step);
  Expr *value = expr_sub(context, expr_const(context, DTYPE_FLOAT64, alpha),
                         expr_mul(context, expr_const(context, DTYPE_FLOAT64, beta),
                                  expr_unary(context, EXPR_COS, angle)));
  if (size == 1) value = expr_const(context, DTYPE_FLOAT64, 1);
  op_output(call, te_compute(call->te, call->node->name, type, shape, &axes,
                             expr_cast(context, type, value)));
  return true;
}

const OpRow creation_ops[] = {
    {"zeros", NULL, 0, 0, define_zeros, "shape dtype", .positional = "shape dtype"},
    {"ones", NULL, 0, 0, define_ones, "shape dtype", .positional = "shape dtype"},
    {"full", NULL, 0, 1, define_full, "shape fill_value dtype", .positional = "shape dtype"},
    {"zeros_like", NULL, 1, 1, define_zeros_like, "dtype", .positional = "dtype"},
    {"ones_like", NULL, 1, 1, define_ones_like, "dtype", .positional = "dtype"},
    {"full_like", NULL, 2, 2, define_full_like, "dtype", .positional = "dtype",
     .mixed_types = true},
    {"shape_to_tensor", NULL, 0, 0, define_shape_to_tensor, "shape", .positional = "shape"},
    {"arange", NULL, 0, 0, define_arange, "start end step dtype",
     .positional = "start end step dtype"},
    {"hamming_window", NULL, 0, 0, define_hamming_window, "window_size periodic alpha beta dtype",
     .positional = "window_size periodic alpha beta dtype"},
};
const int creation_op_count = COUNT_OF(creation_ops);
