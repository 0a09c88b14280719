// SPDX-License-Identifier: Apache-2.0
// Defines operators of TVM that are compositions of others, and losses.
#include "graph/ops/ops.h"

static bool finish(OpCall *call, Buffer *result) {
  if (result) op_output(call, result);
  return result != NULL;
}

static Attrs with_shape(const OpCall *call, Expr *const *shape, int rank) {
  return attrs_with(&call->context->arena, (Attrs){0}, str_intern(call->context, "shape"),
                    expr_tuple(call->context, shape, rank));
}

static Buffer *reshaped(OpCall *call, Buffer *x, const char *part, Expr *const *shape, int rank) {
  return x ? op_apply(call, "reshape", part, &x, 1, with_shape(call, shape, rank)) : NULL;
}

static Buffer *binary(OpCall *call, const char *op, const char *part, Buffer *x, Buffer *y) {
  return x && y ? op_apply(call, op, part, (Buffer *[]){x, y}, 2, (Attrs){0}) : NULL;
}

// ---- Statistics and orders

static bool define_std(OpCall *call) {
  Buffer *variance = op_apply(call, "variance", "variance", call->inputs, 1, call->node->attrs);
  return finish(call, variance ? op_apply(call, "sqrt", NULL, &variance, 1, (Attrs){0}) : NULL);
}

// All elements of an axis in order, or their indices.
static bool define_order(OpCall *call, const char *results) {
  Buffer *x = call->inputs[0];
  int64_t extent, axis = node_int(call->node, "axis", -1);
  int at;
  if (!op_axis(call, axis, x->rank, &at)) return false;
  if (!expr_as_int(x->shape[at], &extent))
    return op_error(call, "the extent of axis %d must be known", at);
  Attrs attrs = attrs_without(&call->context->arena, call->node->attrs, "descending");
  attrs = op_with_text(call, attrs, "ret_type", results);
  attrs = op_with_int(call, op_with_int(call, attrs, "axis", at), "k", extent);
  attrs = op_with_int(call, attrs, "largest", node_int(call->node, "descending", 0));
  return finish(call, op_apply(call, "topk", NULL, &x, 1, attrs));
}

static bool define_sort(OpCall *call) {
  return define_order(call, "values");
}
static bool define_argsort(OpCall *call) {
  return define_order(call, "indices");
}

// The element in the middle of an axis of x in order, the lower one of two, or its index.
static Buffer *middle_of(OpCall *call, Buffer *x, int axis, int64_t extent, bool index,
                         Expr *const *shape, int rank) {
  static const char *const names[][3] = {{"sort", "ordered", "middle"}, {"argsort", "order", "at"}};
  const char *const *name = names[index];
  int64_t at = axis, begin = (extent - 1) / 2, end = begin + 1;
  Attrs order = op_with_int(call, (Attrs){0}, "axis", at);
  if (index) order = op_with_text(call, order, "dtype", "int64");
  Buffer *y = op_apply(call, name[0], name[1], &x, 1, order);
  Attrs slice = op_with_ints(call, (Attrs){0}, "axes", &at, 1);
  slice = op_with_ints(call, slice, "begin", &begin, 1);
  slice = op_with_ints(call, slice, "end", &end, 1);
  y = y ? op_apply(call, "strided_slice", name[2], &y, 1, slice) : NULL;
  return reshaped(call, y, index ? "index" : NULL, shape, rank);
}

// The median along an axis with its index; without an axis, that of all elements without an index.
static bool define_median(OpCall *call) {
  Context *context = call->context;
  Buffer *x = call->inputs[0];
  const Expr *stated = attrs_get(&call->node->attrs, "axis");
  bool all = !stated || stated->op == EXPR_NONE || (stated->op == EXPR_TUPLE && !stated->count);
  bool keeps = node_int(call->node, "keepdims", 0);
  int64_t listed = -1, extent;
  int axis, rank = 0;
  Expr *number = expr_index(context, 1), *shape[TE_MAX_RANK];
  if (!all && node_ints(call->node, "axis", &listed, 1) != 1)
    return op_error(call, "takes one axis or none");
  if (!op_axis(call, listed, MAX_OF(x->rank, 1), &axis)) return false;
  for (int i = 0; i < x->rank; i++) {
    bool stays = !all && i != axis;
    number = expr_mul(context, number, x->shape[i]);
    if (stays || keeps) shape[rank++] = stays ? x->shape[i] : expr_index(context, 1);
  }
  if (all) x = reshaped(call, x, "all", &number, 1);
  if (all) axis = 0;
  if (!x || !expr_as_int(x->shape[axis], &extent) || extent < 1)
    return x && op_error(call, "the extent of axis %d must be known, and at least 1", axis);
  Buffer *value = middle_of(call, x, axis, extent, false, shape, rank);
  return finish(call, value) &&
         (all || finish(call, middle_of(call, x, axis, extent, true, shape, rank)));
}

// The number of boundaries below each element, or of those that are not above it with 'right'.
static bool define_bucketize(OpCall *call) {
  Context *context = call->context;
  Buffer *x = call->inputs[0], *bounds = call->inputs[1];
  DType type = node_int(call->node, "out_int32", 0) ? DTYPE_INT32 : DTYPE_INT64;
  if (bounds->rank != 1) return op_error(call, "takes boundaries of one axis");
  TeAxes axes = te_axes(call->te, x->shape, x->rank);
  TeReduction sum = {.combine = EXPR_ADD, .init = expr_int(context, type, 0)};
  Expr *k = op_reduce_axis(call, &sum, "k", bounds->shape[0]);
  Expr *below = expr_binary(context, node_int(call->node, "right", 0) ? EXPR_LE : EXPR_LT,
                            te_at(call->te, bounds, &k), te_at(call->te, x, axes.at));
  Expr *one = expr_select(context, below, expr_int(context, type, 1), sum.init);
  return finish(call, te_reduce(call->te, call->node->name, type, x->shape, &axes, &sum, one));
}

// ---- Normalization by groups of channels

typedef struct ChannelGroups {
  Expr *shape[TE_MAX_RANK], *channels[TE_MAX_RANK]; // of the data and of the parameters
  int64_t reduced[TE_MAX_RANK];
  int rank, reduced_count;
} ChannelGroups;

// Splits the axis of channels into groups and channels of a group.
static bool split_groups(OpCall *call, ChannelGroups *g) {
  Context *context = call->context;
  Buffer *x = call->inputs[0];
  int64_t listed[TE_MAX_RANK], count = node_int(call->node, "num_groups", 0), extent;
  int channel, axis, given = node_ints(call->node, "axes", listed, TE_MAX_RANK);
  if (!op_axis(call, node_int(call->node, "channel_axis", 1), x->rank, &channel)) return false;
  if (!expr_as_int(x->shape[channel], &extent) || count < 1 || extent % count || given < 0 ||
      x->rank == TE_MAX_RANK)
    return op_error(call, "'num_groups' must divide the channels, which are axis %d", channel);
  g->rank = x->rank + 1;
  g->reduced[g->reduced_count++] = channel + 1;
  for (int i = 0; i < g->rank; i++) {
    bool group = i == channel, member = i == channel + 1;
    g->shape[i] = group    ? expr_index(context, count)
                  : member ? expr_index(context, extent / count)
                           : x->shape[i > channel ? i - 1 : i];
    g->channels[i] = group || member ? g->shape[i] : expr_index(context, 1);
  }
  for (int i = 0; i < given; i++) {
    if (!op_axis(call, listed[i], x->rank, &axis)) return false;
    if (axis != channel) g->reduced[g->reduced_count++] = axis > channel ? axis + 1 : axis;
  }
  return true;
}

static Buffer *constant(OpCall *call, const char *part, DType type, double value) {
  TeAxes axes = te_axes(call->te, NULL, 0);
  return te_compute(call->te, str_format(call->context, "%s_%s", call->node->name, part), type,
                    NULL, &axes, expr_const(call->context, type, value));
}

static Buffer *as_type(OpCall *call, Buffer *x, const char *part, DType type) {
  if (!x || dtype_equal(x->type, type)) return x;
  return op_apply(call, "astype", part, &x, 1,
                  op_with_text(call, (Attrs){0}, "dtype", dtype_name(call->context, type)));
}

static bool define_group_norm(OpCall *call) {
  ChannelGroups g = {.rank = 0};
  Buffer *x = call->inputs[0];
  DType type = dtype_is_float(x->type) && x->type.bits < 32 ? DTYPE_FLOAT32 : x->type;
  if (!split_groups(call, &g)) return false;
  Buffer *wide = as_type(call, reshaped(call, x, "groups", g.shape, g.rank), "wide", type);
  Attrs attrs = op_with_ints(call, (Attrs){0}, "axis", g.reduced, g.reduced_count);
  attrs = op_with_int(call, attrs, "keepdims", 1);
  Buffer *mean = wide ? op_apply(call, "mean", "mean", &wide, 1, attrs) : NULL;
  Buffer *square = mean ? op_apply(call, "variance", "variance", &wide, 1, attrs) : NULL;
  Buffer *epsilon = constant(call, "epsilon", type, node_float(call->node, "epsilon", 1e-5));
  Buffer *sum = binary(call, "add", "sum", square, epsilon);
  Buffer *inverse = sum ? op_apply(call, "rsqrt", "inverse", &sum, 1, (Attrs){0}) : NULL;
  Buffer *y =
      binary(call, "multiply", "normal", binary(call, "subtract", "centred", wide, mean), inverse);
  for (int i = 1; y && i < 3; i++) {
    if (!node_int(call->node, i == 1 ? "scale" : "center", 1)) continue;
    const char *part = i == 1 ? "scale" : "bias";
    Buffer *parameter = reshaped(call, call->inputs[i], part, g.channels, g.rank);
    y = binary(call, i == 1 ? "multiply" : "add", i == 1 ? "scaled" : "shifted", y,
               as_type(call, parameter, i == 1 ? "wide_scale" : "wide_bias", type));
  }
  return finish(call, reshaped(call, as_type(call, y, "narrow", x->type), NULL, x->shape, x->rank));
}

// ---- Shapes

static bool define_batch_flatten(OpCall *call) {
  return finish(call, op_apply(call, "flatten", NULL, call->inputs, 1,
                               op_with_int(call, (Attrs){0}, "axis", 1)));
}

static bool define_outer(OpCall *call) {
  Buffer *x = call->inputs[0], *y = call->inputs[1];
  Expr *one = expr_index(call->context, 1);
  if (x->rank != 1 || y->rank != 1) return op_error(call, "takes tensors of one axis");
  Buffer *column = reshaped(call, x, "column", (Expr *[]){x->shape[0], one}, 2);
  return finish(call, binary(call, "multiply", NULL, column, y));
}

// Tensors of one shape, along a new axis.
static bool define_stack(OpCall *call) {
  Context *context = call->context;
  Buffer **pieces = arena_array(&context->arena, Buffer *, call->input_count);
  int axis;
  if (!op_axis(call, node_int(call->node, "axis", 0), call->inputs[0]->rank + 1, &axis))
    return false;
  for (int i = 0; i < call->input_count; i++)
    if (!(pieces[i] = op_apply(call, "expand_dims", str_format(context, "%d", i), &call->inputs[i],
                               1, op_with_int(call, (Attrs){0}, "axis", axis))))
      return false;
  return finish(call, op_apply(call, "concat", NULL, pieces, call->input_count,
                               op_with_int(call, (Attrs){0}, "axis", axis)));
}

// [n, c * r * r, h, w] to [n, c, h * r, w * r]
static bool define_pixel_shuffle(OpCall *call) {
  static const int64_t order[] = {0, 1, 4, 2, 5, 3};
  Context *context = call->context;
  Buffer *x = call->inputs[0];
  int64_t factor = node_int(call->node, "upscale_factor", 1), channels;
  if (x->rank != 4 || factor < 1 || factor > INT16_MAX || !expr_as_int(x->shape[1], &channels) ||
      channels % (factor * factor))
    return op_error(call, "takes an image whose channels divide by the square of the factor");
  Expr *r = expr_index(context, factor), *c = expr_index(context, channels / factor / factor);
  Expr *from[] = {x->shape[0], c, r, r, x->shape[2], x->shape[3]};
  Expr *to[] = {x->shape[0], c, expr_mul(context, x->shape[2], r),
                expr_mul(context, x->shape[3], r)};
  Buffer *parts = reshaped(call, x, "parts", from, 6);
  Buffer *moved = parts ? op_apply(call, "permute_dims", "moved", &parts, 1,
                                   op_with_ints(call, (Attrs){0}, "axes", order, 6))
                        : NULL;
  return finish(call, reshaped(call, moved, NULL, to, 4));
}

// Sums over the axes on which the tensor was broadcast from the shape.
static bool collapse(OpCall *call, Expr *const *shape, int rank) {
  Buffer *x = call->inputs[0];
  int64_t axes[TE_MAX_RANK];
  int count = 0;
  if (rank > x->rank) return op_error(call, "takes a shape of at most %d axes", x->rank);
  for (int i = 0; i < x->rank; i++) {
    int at = i - (x->rank - rank);
    bool same = at >= 0 && op_same_extent(shape[at], x->shape[i]);
    if (at >= 0 && !same && !expr_is_int(shape[at], 1))
      return op_error(call, "axis %d was not broadcast from %s", i,
                      extents_text(call->context, shape, rank));
    if (!same) axes[count++] = i;
  }
  Buffer *sum = count ? op_apply(call, "sum", "sum", &x, 1,
                                 op_with_ints(call, (Attrs){0}, "axis", axes, count))
                      : x;
  return finish(call, reshaped(call, sum, NULL, shape, rank));
}

static bool define_collapse_sum_like(OpCall *call) {
  return collapse(call, call->inputs[1]->shape, call->inputs[1]->rank);
}

static bool define_collapse_sum_to(OpCall *call) {
  const Expr *shape = attrs_get(&call->node->attrs, "shape");
  if (!shape || shape->op != EXPR_TUPLE || shape->count > TE_MAX_RANK)
    return op_error(call, "'shape' must be a list of at most %d extents", TE_MAX_RANK);
  Expr *extents[TE_MAX_RANK];
  for (int i = 0; i < shape->count; i++) {
    int64_t extent;
    extents[i] = shape->args[i];
    if (expr_as_int(extents[i], &extent)) extents[i] = expr_index(call->context, extent);
  }
  return collapse(call, extents, shape->count);
}

// x with the elements start, start + step, … of an axis replaced by those of the second tensor.
static bool define_slice_scatter(OpCall *call) {
  Context *context = call->context;
  Buffer *x = call->inputs[0], *from = call->inputs[1];
  int64_t extent, start = node_int(call->node, "start", 0), step = node_int(call->node, "step", 1),
                  end, count;
  int axis;
  if (!op_axis(call, node_int(call->node, "axis", 0), x->rank, &axis)) return false;
  if (!expr_as_int(x->shape[axis], &extent) || step < 1)
    return op_error(call, "takes a step of 1 or more, on an axis of a known extent");
  end = MIN_OF(node_int(call->node, "end", extent), extent);
  if (start < 0) start = MAX_OF(start + extent, 0);
  if (end < 0) end = MAX_OF(end + extent, 0);
  count = start < end ? ceil_div(end - start, step) : 0;
  if (from->rank != x->rank || !expr_is_int(from->shape[axis], count))
    return op_error(call, "'%s' must have %lld elements on axis %d", from->name, (long long)count,
                    axis);
  TeAxes axes = te_axes(call->te, x->shape, x->rank);
  Expr *at[TE_MAX_RANK], *i = axes.at[axis], *value = te_at(call->te, x, axes.at);
  memcpy(at, axes.at, sizeof at);
  Expr *off = expr_sub(context, i, expr_int(context, i->type, start));
  Expr *each = expr_int(context, i->type, step), *zero = expr_int(context, i->type, 0);
  at[axis] = expr_floor_div(context, off, each);
  Expr *inside =
      expr_and(context, expr_binary(context, EXPR_LE, zero, off),
               expr_and(context, expr_lt(context, i, expr_int(context, i->type, end)),
                        expr_binary(context, EXPR_EQ, expr_floor_mod(context, off, each), zero)));
  if (count) value = expr_if_then_else(context, inside, te_at(call->te, from, at), value);
  return finish(call, te_compute(call->te, call->node->name, x->type, x->shape, &axes, value));
}

// ---- Losses

static Expr *negative(Context *context, Expr *value) {
  return expr_mul(context, value, expr_const(context, value->type, -1));
}

// -sum(predictions * labels), divided by the number of rows where there are rows.
static bool define_cross_entropy(OpCall *call) {
  Context *context = call->context;
  Buffer *x = call->inputs[0];
  Buffer *products = binary(call, "multiply", "products", x, call->inputs[1]);
  Buffer *sum = products ? op_apply(call, "sum", "sum", &products, 1, (Attrs){0}) : NULL;
  if (!sum) return false;
  TeAxes axes = te_axes(call->te, NULL, 0);
  Expr *rows =
      x->rank > 1 ? expr_cast(context, x->type, x->shape[0]) : expr_const(context, x->type, 1);
  Expr *value = negative(context, te_at(call->te, sum, NULL));
  return finish(call, te_compute(call->te, call->node->name, x->type, NULL, &axes,
                                 expr_binary(context, EXPR_DIV, value, rows)));
}

// The weight of each target, 0 where it is to be ignored; with `losses`, times -predictions.
static Buffer *target_values(OpCall *call, bool losses) {
  Context *context = call->context;
  Buffer *x = call->inputs[0], *targets = call->inputs[1];
  Buffer *weights = call->input_count > 2 ? call->inputs[2] : NULL;
  int at_class = x->rank > 1; // the axis of classes
  TeAxes axes = te_axes(call->te, targets->shape, targets->rank);
  Expr *target = te_at(call->te, targets, axes.at);
  Expr *ignored =
      expr_const(context, targets->type, (double)node_int(call->node, "ignore_index", -100));
  Expr *index = op_position(context, target, x->shape[at_class]), *at[TE_MAX_RANK];
  for (int i = 0; i < x->rank; i++)
    at[i] = i == at_class ? index : axes.at[i > at_class ? i - 1 : i];
  Expr *value = weights ? te_at(call->te, weights, &index) : expr_const(context, x->type, 1);
  if (losses) value = expr_mul(context, negative(context, te_at(call->te, x, at)), value);
  value = expr_select(context, expr_binary(context, EXPR_NE, target, ignored), value,
                      expr_const(context, x->type, 0));
  Str name = str_format(context, "%s_%s", call->node->name, losses ? "losses" : "weights");
  return te_compute(call->te, name, x->type, targets->shape, &axes, value);
}

static bool define_nll_loss(OpCall *call) {
  Buffer *x = call->inputs[0];
  const char *reduction = node_string(call->node, "reduction", "mean");
  bool mean = !strcmp(reduction, "mean"), none = !strcmp(reduction, "none");
  if (!mean && !none && strcmp(reduction, "sum") != 0)
    return op_error(call, "'reduction' is '%s', expected mean, sum or none", reduction);
  if (x->rank < 1 || call->inputs[1]->rank != x->rank - 1 || !op_check_indices(call, 1))
    return op_error(call, "takes predictions [n, classes, …] and targets [n, …]");
  Buffer *losses = target_values(call, true);
  if (none) return finish(call, losses);
  Buffer *sum = op_apply(call, "sum", mean ? "sum" : NULL, &losses, 1, (Attrs){0});
  Buffer *weights = mean ? target_values(call, false) : NULL;
  Buffer *all = weights ? op_apply(call, "sum", "all", &weights, 1, (Attrs){0}) : NULL;
  return finish(call, mean ? binary(call, "divide", NULL, sum, all) : sum);
}

// ---- Matrices of ones and zeros

static bool ones_on_diagonal(OpCall *call, Expr *const *shape, DType type) {
  Context *context = call->context;
  const char *name = node_string(call->node, "dtype", dtype_name(context, type));
  if (!dtype_parse(name, strlen(name), &type)) return op_error(call, "unknown type '%s'", name);
  TeAxes axes = te_axes(call->te, shape, 2);
  Expr *shift = expr_int(context, axes.at[0]->type, node_int(call->node, "k", 0));
  Expr *here = expr_binary(context, EXPR_EQ, axes.at[1], expr_add(context, axes.at[0], shift));
  Expr *value =
      expr_select(context, here, expr_const(context, type, 1), expr_const(context, type, 0));
  return finish(call, te_compute(call->te, call->node->name, type, shape, &axes, value));
}

static bool define_eye(OpCall *call) {
  int64_t rows = node_int(call->node, "n", -1), columns = node_int(call->node, "m", rows);
  if (rows < 0 || columns < 0) return op_error(call, "'n' and 'm' must be known");
  Expr *shape[] = {expr_index(call->context, rows), expr_index(call->context, columns)};
  return ones_on_diagonal(call, shape, DTYPE_FLOAT32);
}

static bool define_eye_like(OpCall *call) {
  Buffer *x = call->inputs[0];
  if (x->rank != 2) return op_error(call, "takes a matrix");
  return ones_on_diagonal(call, x->shape, x->type);
}

const OpRow composed_ops[] = {
    {"std", NULL, 1, 1, define_std, "axis keepdims", .positional = "axis keepdims"},
    {"sort", NULL, 1, 1, define_sort, "axis descending", .positional = "axis descending"},
    {"argsort", NULL, 1, 1, define_argsort, "axis descending dtype",
     .positional = "axis descending dtype"},
    {"median", NULL, 1, 1, define_median, "axis keepdims", .results = 2, .one_without = "axis",
     .positional = "axis keepdims"},
    {"bucketize", NULL, 2, 2, define_bucketize, "out_int32 right", .positional = "out_int32 right"},
    {"nn.group_norm", NULL, 3, 3, define_group_norm,
     "num_groups channel_axis axes epsilon center scale", .mixed_types = true,
     .positional = "num_groups channel_axis axes epsilon center scale"},
    {"nn.batch_flatten", NULL, 1, 1, define_batch_flatten, NULL},
    {"outer", NULL, 2, 2, define_outer, NULL},
    {"stack", NULL, 1, -1, define_stack, "axis", .positional = "axis"},
    {"nn.pixel_shuffle", NULL, 1, 1, define_pixel_shuffle, "upscale_factor",
     .positional = "upscale_factor"},
    {"collapse_sum_like", NULL, 2, 2, define_collapse_sum_like, NULL},
    {"collapse_sum_to", NULL, 1, 1, define_collapse_sum_to, "shape", .positional = "shape"},
    {"slice_scatter", NULL, 2, 2, define_slice_scatter, "start end step axis",
     .positional = "start end step axis"},
    {"nn.cross_entropy_with_logits", NULL, 2, 2, define_cross_entropy, NULL},
    {"nn.nll_loss", NULL, 2, 3, define_nll_loss, "reduction ignore_index", .mixed_types = true,
     .positional = "reduction ignore_index"},
    {"eye", NULL, 0, 0, define_eye, "n m k dtype", .positional = "n m k dtype"},
    {"eye_like", NULL, 1, 1, define_eye_like, "k dtype", .positional = "k dtype"},
};
const int composed_op_count = COUNT_OF(composed_ops);
