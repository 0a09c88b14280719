// SPDX-License-Identifier: Apache-2.0
// Defines the elementwise operators: the rows of elementwise.def, and those whose operands are not
// simply broadcast.
#include "graph/ops/ops.h"

#include <math.h>

#define B(OP, a, b) expr_binary(c, EXPR_##OP, (a), (b))
#define U(OP, a) expr_unary(c, EXPR_##OP, (a))
#define K(v) expr_const(c, x->type, (v))
#define ATTR(key, otherwise) node_float(node, (key), (otherwise))
#define FLAG(key) expr_bool(c, node_int(node, (key), 1) != 0)
#define IS_TEXT(key, text) (strcmp(node_string(node, (key), ""), (text)) == 0)
#define IS_FLOAT(e) dtype_is_float((e)->type)
#define IS_UNSIGNED(e) ((e)->type.code == TYPE_UINT)
#define IS_SHIFT(y) B(AND, B(GE, (y), K(0)), B(LT, (y), K(x->type.bits)))
#define SHIFT_OF(y) CHOOSE(IS_SHIFT(y), (y), K(0))
#define NOT_ZERO(e) CHOOSE(B(EQ, e, K(0)), K(1), e)
#define WHOLE(OP) (IS_FLOAT(x) ? B(OP, x, y) : CHOOSE(B(EQ, y, K(0)), K(0), B(OP, x, NOT_ZERO(y))))
#define CHOOSE(condition, a, b) expr_select(c, (condition), (a), (b))

#define ELEMENTWISE(id, name, onnx, operands, result, attrs, expression)                           \
  static Expr *id##_body(Context *c, const Node *node, Expr *x, Expr *y, Expr *z) {                \
    (void)c, (void)node, (void)x, (void)y, (void)z;                                                \
    return expression;                                                                             \
  }
#include "graph/ops/elementwise.def"
#undef ELEMENTWISE

// R.match_cast states the extents of its result. Two constants are compared by inference.
static void take_stated_extents(const Node *node, Expr **shape, int rank) {
  const Value *stated = node->outputs[0];
  if (!node->user_op || strcmp(node->user_op, "match_cast") != 0 || !stated || stated->rank != rank)
    return;
  for (int d = 0; d < rank; d++)
    if (shape[d]->op != EXPR_INT || stated->shape[d]->op != EXPR_INT) shape[d] = stated->shape[d];
}

static bool define_elementwise(OpCall *call) {
  Expr *shape[TE_MAX_RANK];
  int rank;
  if (!op_broadcast_shape(call, call->inputs, call->input_count, shape, &rank)) return false;
  take_stated_extents(call->node, shape, rank);
  TeAxes axes = te_axes(call->te, shape, rank);
  Expr *at[3] = {NULL};
  for (int i = 0; i < call->input_count; i++) at[i] = op_broadcast_at(call, call->inputs[i], &axes);
  DType type = call->row->result;
  if (type.code == TYPE_VOID) type = (type.bits ? at[1] : at[0])->type;
  Expr *value = call->row->body(call->context, call->node, at[0], at[1], at[2]);
  op_output(call, te_compute(call->te, call->node->name, type, shape, &axes, value));
  return true;
}

// Max, Min and Sum of any number of tensors; more than MOST_TERMS are combined in several stages.
static bool define_variadic(OpCall *call, ExprOp op) {
  enum { MOST_TERMS = 64 };
  DType type = call->inputs[0]->type;
  Expr *shape[TE_MAX_RANK];
  int rank;
  if (!op_broadcast_shape(call, call->inputs, call->input_count, shape, &rank)) return false;
  TeAxes axes = te_axes(call->te, shape, rank);
  Expr *value = op_broadcast_at(call, call->inputs[0], &axes);
  for (int i = 1; i < call->input_count; i++) {
    if (i % MOST_TERMS == 0) {
      Buffer *some = te_compute(call->te, call->node->name, type, shape, &axes, value);
      axes = te_axes(call->te, shape, rank);
      value = te_at(call->te, some, axes.at);
    }
    value = expr_binary(call->context, op, value, op_broadcast_at(call, call->inputs[i], &axes));
  }
  op_output(call, te_compute(call->te, call->node->name, type, shape, &axes, value));
  return true;
}

static bool define_maximum(OpCall *call) {
  return define_variadic(call, EXPR_MAX);
}
static bool define_minimum(OpCall *call) {
  return define_variadic(call, EXPR_MIN);
}
static bool define_sum_of(OpCall *call) {
  return define_variadic(call, EXPR_ADD);
}

// A bound of Clip, from an attribute or a scalar tensor; NULL when there is none.
static Expr *clip_bound(OpCall *call, int input, const char *key) {
  DType type = call->inputs[0]->type;
  Buffer *tensor = input < call->input_count ? call->inputs[input] : NULL;
  Expr *zeros[TE_MAX_RANK];
  for (int i = 0; i < TE_MAX_RANK; i++) zeros[i] = expr_index(call->context, 0);
  if (tensor) return te_at(call->te, tensor, zeros);
  double value = node_float(call->node, key, NAN);
  return isnan(value) ? NULL : expr_const(call->context, type, value);
}

static bool is_scalar(const Buffer *buffer) {
  return !buffer->rank || (buffer->rank == 1 && expr_is_int(buffer->shape[0], 1));
}

static bool define_clip(OpCall *call) {
  Context *context = call->context;
  Buffer *x = call->inputs[0];
  for (int i = 1; i < call->input_count; i++)
    if (call->inputs[i] && !is_scalar(call->inputs[i]))
      return op_error(call, "the bound '%s' must be a scalar, or a list of one element",
                      call->inputs[i]->name);
  TeAxes axes = te_axes(call->te, x->shape, x->rank);
  Expr *value = te_at(call->te, x, axes.at);
  Expr *low = clip_bound(call, 1, "min"), *high = clip_bound(call, 2, "max");
  if (low) value = expr_max(context, value, low);
  if (high) value = expr_min(context, value, high);
  op_output(call, te_compute(call->te, call->node->name, x->type, x->shape, &axes, value));
  return true;
}

// x < 0 ? x * slope : x, with a slope for each index of an axis, or slopes that broadcast.
static bool define_prelu(OpCall *call) {
  Context *context = call->context;
  Buffer *x = call->inputs[0], *slope = call->inputs[1];
  bool along = slope->rank == 1 && x->rank > 1 && !expr_is_int(slope->shape[0], 1);
  Expr *shape[TE_MAX_RANK], *factor;
  int axis = 0, rank = x->rank;
  memcpy(shape, x->shape, sizeof *shape * (size_t)rank);
  if (along && !op_axis(call, node_int(call->node, "axis", 1), x->rank, &axis)) return false;
  if (along && !op_same_extent(slope->shape[0], x->shape[axis]))
    return op_error(call, "'%s' must have one number for each index of axis %d", slope->name, axis);
  if (!along && !op_broadcast_shape(call, call->inputs, 2, shape, &rank)) return false;
  TeAxes axes = te_axes(call->te, shape, rank);
  factor = along ? te_at(call->te, slope, &axes.at[axis]) : op_broadcast_at(call, slope, &axes);
  Expr *value = op_broadcast_at(call, x, &axes);
  Expr *negative = expr_lt(context, value, expr_const(context, x->type, 0));
  value = expr_select(context, negative, expr_mul(context, value, factor), value);
  op_output(call, te_compute(call->te, call->node->name, x->type, shape, &axes, value));
  return true;
}

static bool define_cast(OpCall *call) {
  Buffer *x = call->inputs[0];
  const char *name = node_string(call->node, "dtype", "");
  DType type;
  if (!dtype_parse(name, strlen(name), &type)) return op_error(call, "unknown type '%s'", name);
  TeAxes axes = te_axes(call->te, x->shape, x->rank);
  Expr *value = te_at(call->te, x, axes.at);
  if (dtype_is_bool(type))
    value = expr_binary(call->context, EXPR_NE, value, expr_const(call->context, x->type, 0));
  op_output(call, te_compute(call->te, call->node->name, type, x->shape, &axes, value));
  return true;
}

static Expr *same_bits(Context *context, Expr *value, DType type) {
  if (dtype_is_bool(value->type)) value = expr_cast(context, DTYPE_UINT8, value);
  if (dtype_is_bool(type))
    return expr_binary(context, EXPR_NE, value, expr_const(context, value->type, 0));
  return dtype_equal(value->type, type)
             ? value
             : expr_raw(context, EXPR_REINTERPRET, type, NULL, &value, 1);
}

// Reinterprets the bits as another type; as bool, all values but 0 become true.
static bool define_bitcast(OpCall *call) {
  Buffer *x = call->inputs[0];
  const char *name = node_string(call->node, "dtype", "");
  DType type;
  if (!dtype_parse(name, strlen(name), &type)) return op_error(call, "unknown type '%s'", name);
  if (type.bits != x->type.bits)
    return op_error(call, "from %s to %s changes the number of bits",
                    dtype_name(call->context, x->type), dtype_name(call->context, type));
  TeAxes axes = te_axes(call->te, x->shape, x->rank);
  op_output(call, te_compute(call->te, call->node->name, type, x->shape, &axes,
                             same_bits(call->context, te_at(call->te, x, axes.at), type)));
  return true;
}

// At inference a dropout is the identity, and its mask is all true.
static bool define_dropout(OpCall *call) {
  Buffer *x = call->inputs[0];
  TeAxes axes = te_axes(call->te, x->shape, x->rank), mask = te_axes(call->te, x->shape, x->rank);
  op_output(call, te_compute(call->te, call->node->name, x->type, x->shape, &axes,
                             te_at(call->te, x, axes.at)));
  if (call->node->output_count > 1)
    op_output(call, te_compute(call->te, "mask", DTYPE_BOOL, x->shape, &mask,
                               expr_bool(call->context, true)));
  return true;
}

#define SAME_TYPE DTYPE_VOID
#define SECOND_TYPE DTYPE_STRING // void with a width means the type of the second operand

const OpRow elementwise_ops[] = {
#define ELEMENTWISE(id, name, onnx, operands, result, attrs, expression)                           \
  {name,  onnx,      operands, operands,           define_elementwise,                             \
   attrs, id##_body, result,   .positional = attrs},
#include "graph/ops/elementwise.def"
#undef ELEMENTWISE
    {"maximum", "Max", 1, -1, define_maximum, NULL},
    {"minimum", "Min", 1, -1, define_minimum, NULL},
    {"add_n", "Sum", 1, -1, define_sum_of, NULL},
    {"clip", "Clip", 1, 3, define_clip, "min max", .positional = "min max"},
    {"astype", "Cast", 1, 1, define_cast, "dtype", .positional = "dtype"},
    {"wrap_param", NULL, 1, 1, define_cast, "dtype", .positional = "dtype"},
    {"nn.prelu", "PRelu", 2, 2, define_prelu, "axis", .positional = "axis"},
    {"bitcast", NULL, 1, 1, define_bitcast, "dtype"},
    {"nn.dropout", "Dropout", 1, 3, define_dropout, "rate", .mixed_types = true, .results = 2,
     .positional = "rate"},
};
const int elementwise_op_count = COUNT_OF(elementwise_ops);
