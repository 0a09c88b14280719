// SPDX-License-Identifier: Apache-2.0
// Defines the reductions over axes that attributes name, and argmax.
#include "graph/ops/ops.h"

static bool reduced_axes(OpCall *call, bool *reduced) {
  Buffer *x = call->inputs[0];
  int64_t axes[TE_MAX_RANK];
  int count = node_ints(call->node, "axis", axes, TE_MAX_RANK);
  if (count < 0) return op_error(call, "'axis' must be a list of at most %d integers", TE_MAX_RANK);
  bool all = count == 0 && !node_int(call->node, "noop_with_empty_axes", 0);
  for (int i = 0; i < x->rank; i++) reduced[i] = all;
  for (int i = 0; i < count; i++) {
    int axis;
    if (!op_axis(call, axes[i], x->rank, &axis)) return false;
    reduced[axis] = true;
  }
  return true;
}

// Reduces body(x) over the node's axes; *elements is the number of elements that are combined.
static Buffer *reduce(OpCall *call, const char *name, ExprOp combine, Expr *init,
                      Expr *(*body)(Context *context, Expr *x), Expr **elements) {
  Context *context = call->context;
  Buffer *x = call->inputs[0];
  bool reduced[TE_MAX_RANK], keep = node_int(call->node, "keepdims", 0) != 0;
  if (!reduced_axes(call, reduced)) return NULL;
  Expr *shape[TE_MAX_RANK], *indices[TE_MAX_RANK];
  int rank = 0, at = 0;
  for (int i = 0; i < x->rank; i++)
    if (!reduced[i] || keep) shape[rank++] = reduced[i] ? expr_index(context, 1) : x->shape[i];
  TeAxes axes = te_axes(call->te, shape, rank);
  TeReduction reduction = {.combine = combine, .init = init};
  *elements = expr_index(context, 1);
  for (int i = 0; i < x->rank; i++) {
    indices[i] = reduced[i]
                     ? op_reduce_axis(call, &reduction, str_format(context, "r%d", i), x->shape[i])
                     : axes.at[at];
    if (reduced[i]) *elements = expr_mul(context, *elements, x->shape[i]);
    at += !reduced[i] || keep;
  }
  Expr *value = te_at(call->te, x, indices);
  if (body) value = body(context, value);
  return te_reduce(call->te, name, x->type, shape, &axes, &reduction, value);
}

static Buffer *finish(OpCall *call, Buffer *sum, ExprOp op, Expr *operand) {
  TeAxes axes = te_axes(call->te, sum->shape, sum->rank);
  Expr *value = te_at(call->te, sum, axes.at);
  value = operand ? expr_binary(call->context, op, value, operand)
                  : expr_unary(call->context, op, value);
  return te_compute(call->te, call->node->name, sum->type, sum->shape, &axes, value);
}

static bool define_simple(OpCall *call, ExprOp combine, Expr *init,
                          Expr *(*body)(Context *context, Expr *x)) {
  Expr *elements;
  Buffer *result = reduce(call, call->node->name, combine, init, body, &elements);
  if (result) op_output(call, result);
  return result != NULL;
}

static Expr *zero_of(OpCall *call) {
  return expr_const(call->context, call->inputs[0]->type, 0);
}
static Expr *square(Context *context, Expr *x) {
  return expr_mul(context, x, x);
}
static Expr *magnitude(Context *context, Expr *x) {
  return x->type.code == TYPE_UINT ? x : expr_unary(context, EXPR_ABS, x);
}

static bool define_sum(OpCall *call) {
  return define_simple(call, EXPR_ADD, zero_of(call), NULL);
}
static bool define_sum_square(OpCall *call) {
  return define_simple(call, EXPR_ADD, zero_of(call), square);
}
static bool define_norm1(OpCall *call) {
  return define_simple(call, EXPR_ADD, zero_of(call), magnitude);
}
static bool define_prod(OpCall *call) {
  return define_simple(call, EXPR_MUL, expr_const(call->context, call->inputs[0]->type, 1), NULL);
}
static bool define_max(OpCall *call) {
  return define_simple(call, EXPR_MAX, op_lowest(call->context, call->inputs[0]->type), NULL);
}
static bool define_min(OpCall *call) {
  return define_simple(call, EXPR_MIN, op_highest(call->context, call->inputs[0]->type), NULL);
}

static bool define_norm2(OpCall *call) {
  Expr *elements;
  Str name = str_format(call->context, "%s_sum", call->node->name);
  Buffer *sum = reduce(call, name, EXPR_ADD, zero_of(call), square, &elements);
  if (sum) op_output(call, finish(call, sum, EXPR_SQRT, NULL));
  return sum != NULL;
}

static bool define_mean(OpCall *call) {
  Expr *elements;
  Str name = str_format(call->context, "%s_sum", call->node->name);
  Buffer *sum = reduce(call, name, EXPR_ADD, zero_of(call), NULL, &elements);
  if (!sum) return false;
  ExprOp division = dtype_is_float(sum->type) ? EXPR_DIV : EXPR_TRUNC_DIV;
  op_output(call, finish(call, sum, division, expr_cast(call->context, sum->type, elements)));
  return true;
}

// The mean of the squares of the differences from the mean.
static bool define_variance(OpCall *call) {
  Context *context = call->context;
  Buffer *x = call->inputs[0];
  bool reduced[TE_MAX_RANK], keep = node_int(call->node, "keepdims", 0) != 0;
  if (!dtype_is_float(x->type)) return op_error(call, "takes a tensor of floats");
  if (!reduced_axes(call, reduced)) return false;
  Buffer *mean = NULL;
  for (int pass = 0; pass < 2; pass++) { // the mean with axes of extent 1, then the variance
    Expr *shape[TE_MAX_RANK], *at[TE_MAX_RANK], *row[TE_MAX_RANK];
    Expr *elements = expr_index(context, 1);
    int rank = 0, from = 0;
    for (int i = 0; i < x->rank; i++)
      if (!reduced[i] || keep || !pass)
        shape[rank++] = reduced[i] ? expr_index(context, 1) : x->shape[i];
    TeAxes axes = te_axes(call->te, shape, rank);
    TeReduction sum = {.combine = EXPR_ADD, .init = zero_of(call)};
    for (int i = 0; i < x->rank; i++) {
      row[i] = reduced[i] ? expr_index(context, 0) : axes.at[from];
      at[i] = reduced[i] ? op_reduce_axis(call, &sum, str_format(context, "r%d", i), x->shape[i])
                         : axes.at[from];
      if (reduced[i]) elements = expr_mul(context, elements, x->shape[i]);
      from += !reduced[i] || keep || !pass;
    }
    Expr *value = te_at(call->te, x, at);
    if (pass) value = square(context, expr_sub(context, value, te_at(call->te, mean, row)));
    Str name = str_format(context, "%s_%s", call->node->name, pass ? "squares" : "sum");
    Buffer *total = te_reduce(call->te, name, x->type, shape, &axes, &sum, value);
    TeAxes to = te_axes(call->te, shape, rank);
    value = expr_binary(context, EXPR_DIV, te_at(call->te, total, to.at),
                        expr_cast(context, x->type, elements));
    name = pass ? call->node->name : str_format(context, "%s_mean", call->node->name);
    mean = te_compute(call->te, name, x->type, shape, &to, value);
  }
  op_output(call, mean);
  return true;
}

// ---- Argmax and argmin

// The number of the element in row-major order, without 'axis'.
static bool define_place_in_all(OpCall *call) {
  static const int64_t ones[TE_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  bool keep = node_int(call->node, "keepdims", 0) != 0;
  int64_t last = node_int(call->node, "select_last_index", 0);
  int rank = call->inputs[0]->rank;
  Buffer *flat = op_apply(call, "flatten", "flat", call->inputs, 1, (Attrs){0});
  Attrs attrs =
      op_with_int(call, op_with_int(call, (Attrs){0}, "axis", 0), "select_last_index", last);
  Buffer *place =
      flat ? op_apply(call, call->row->name, keep ? "place" : NULL, &flat, 1, attrs) : NULL;
  if (place && keep)
    place = op_apply(call, "reshape", NULL, &place, 1,
                     op_with_ints(call, (Attrs){0}, "shape", ones, rank));
  if (place) op_output(call, place);
  return place != NULL;
}

// The index of the maximum (or minimum) along an axis; of several equal ones the first, or the last
// on request.
static bool define_place_of(OpCall *call, ExprOp combine, Expr *init) {
  Context *context = call->context;
  Buffer *x = call->inputs[0];
  int axis, rank = 0;
  const Expr *stated = attrs_get(&call->node->attrs, "axis");
  if (!stated || stated->op == EXPR_NONE) return define_place_in_all(call);
  bool keep = node_int(call->node, "keepdims", 0) != 0;
  bool last = node_int(call->node, "select_last_index", 0) != 0;
  if (!op_axis(call, node_int(call->node, "axis", 0), x->rank, &axis)) return false;
  if (expr_is_int(x->shape[axis], 0)) return op_error(call, "axis %d has no elements", axis);
  Expr *shape[TE_MAX_RANK], *at[TE_MAX_RANK];
  for (int i = 0; i < x->rank; i++)
    if (i != axis || keep) shape[rank++] = i == axis ? expr_index(context, 1) : x->shape[i];
  Buffer *best = NULL;
  for (int pass = 0; pass < 2; pass++) { // the value, then its index
    TeAxes axes = te_axes(call->te, shape, rank);
    TeReduction r = {.combine = pass == 0 ? combine : last ? EXPR_MAX : EXPR_MIN, .init = init};
    if (pass) r.init = last ? op_lowest(context, DTYPE_INT64) : op_highest(context, DTYPE_INT64);
    for (int i = 0; i < x->rank; i++)
      at[i] = i == axis ? op_reduce_axis(call, &r, "k", x->shape[axis])
                        : axes.at[i > axis && !keep ? i - 1 : i];
    Expr *value = te_at(call->te, x, at);
    if (pass) {
      Expr *hit = expr_binary(context, EXPR_EQ, value, te_at(call->te, best, axes.at));
      if (dtype_is_float(x->type)) // NaN is the maximum and the minimum
        hit = expr_binary(context, EXPR_OR, hit, expr_binary(context, EXPR_NE, value, value));
      value = expr_select(context, hit, expr_cast(context, DTYPE_INT64, at[axis]), r.init);
    }
    Str name = pass ? call->node->name : str_format(context, "%s_best", call->node->name);
    best = te_reduce(call->te, name, pass ? DTYPE_INT64 : x->type, shape, &axes, &r, value);
  }
  op_output(call, best);
  return true;
}

static bool define_argmax(OpCall *call) {
  return define_place_of(call, EXPR_MAX, op_lowest(call->context, call->inputs[0]->type));
}
static bool define_argmin(OpCall *call) {
  return define_place_of(call, EXPR_MIN, op_highest(call->context, call->inputs[0]->type));
}

static const char reduce_attrs[] = "axis keepdims noop_with_empty_axes";

const OpRow reduction_ops[] = {
    {"sum", "ReduceSum", 1, 1, define_sum, reduce_attrs, .positional = "axis keepdims"},
    {"mean", "ReduceMean", 1, 1, define_mean, reduce_attrs, .positional = "axis keepdims"},
    {"max", "ReduceMax", 1, 1, define_max, reduce_attrs, .positional = "axis keepdims"},
    {"min", "ReduceMin", 1, 1, define_min, reduce_attrs, .positional = "axis keepdims"},
    {"prod", "ReduceProd", 1, 1, define_prod, reduce_attrs, .positional = "axis keepdims"},
    {"variance", NULL, 1, 1, define_variance, reduce_attrs, .positional = "axis keepdims"},
    {"sum_square", "ReduceSumSquare", 1, 1, define_sum_square, reduce_attrs},
    {"norm1", "ReduceL1", 1, 1, define_norm1, reduce_attrs},
    {"norm2", "ReduceL2", 1, 1, define_norm2, reduce_attrs},
    {"argmax", "ArgMax", 1, 1, define_argmax, "axis keepdims select_last_index",
     .positional = "axis keepdims"},
    {"argmin", "ArgMin", 1, 1, define_argmin, "axis keepdims select_last_index",
     .positional = "axis keepdims"},
};
const int reduction_op_count = COUNT_OF(reduction_ops);
