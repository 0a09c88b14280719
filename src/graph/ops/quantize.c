// SPDX-License-Identifier: Apache-2.0
// Defines quantisation, q = round(x / scale) + zero point, saturated to the range of a narrow type,
// and its inverse. There is one scale and zero point for the tensor, for each index of an axis, or
// for each block of an axis. Values are computed in float32; halves round to even.
#include "graph/ops/ops.h"

typedef struct Grid {
  OpCall *call;
  Buffer *scale, *zero; // zero NULL: the zero point is 0
  int axis;
  int64_t block; // elements of the axis with one scale; 0: no blocks
} Grid;

static bool is_single(const Buffer *b) {
  return b->rank == 0 || (b->rank == 1 && expr_is_int(b->shape[0], 1));
}

static bool in_blocks(const Grid *grid) {
  const Buffer *x = grid->call->inputs[0], *scale = grid->scale;
  int64_t extent, blocks;
  if (scale->rank != x->rank) return false;
  for (int i = 0; i < x->rank; i++)
    if (i != grid->axis && !op_same_extent(x->shape[i], scale->shape[i])) return false;
  return expr_as_int(x->shape[grid->axis], &extent) &&
         expr_as_int(scale->shape[grid->axis], &blocks) && blocks == ceil_div(extent, grid->block);
}

static bool same_shape(const Buffer *a, const Buffer *b) {
  for (int i = 0; i < a->rank; i++)
    if (i >= b->rank || !op_same_extent(a->shape[i], b->shape[i])) return false;
  return a->rank == b->rank;
}

static bool grid_of(OpCall *call, Grid *grid) {
  Buffer *x = call->inputs[0];
  *grid = (Grid){.call = call, .scale = call->inputs[1]};
  grid->zero = call->input_count > 2 ? call->inputs[2] : NULL;
  grid->block = node_int(call->node, "block_size", 0);
  if (!dtype_is_float(grid->scale->type)) return op_error(call, "its scale must be floating point");
  if (grid->zero && !is_single(grid->zero) && !same_shape(grid->scale, grid->zero))
    return op_error(call, "its scale and its zero point have different shapes");
  if (grid->block < 0) return op_error(call, "'block_size' is %lld", (long long)grid->block);
  if (is_single(grid->scale)) return true;
  if (!op_axis(call, node_int(call->node, "axis", -1), x->rank, &grid->axis)) return false;
  if (grid->block)
    return in_blocks(grid) || op_error(call,
                                       "its scale must have one number for each block of "
                                       "%lld on axis %d",
                                       (long long)grid->block, grid->axis);
  return (grid->scale->rank == 1 && op_same_extent(grid->scale->shape[0], x->shape[grid->axis])) ||
         op_error(call, "its scale must be one number, or one for each index of axis %d",
                  grid->axis);
}

// The scale or zero point of an element of the tensor.
static Expr *parameter_at(const Grid *grid, Buffer *parameter, const TeAxes *axes) {
  Context *context = grid->call->context;
  Expr *first = expr_index(context, 0), *along = axes->at[grid->axis], *at[TE_MAX_RANK];
  if (is_single(parameter)) return te_at(grid->call->te, parameter, &first);
  if (!grid->block) return te_at(grid->call->te, parameter, &along);
  memcpy(at, axes->at, sizeof at);
  at[grid->axis] = expr_floor_div(context, along, expr_int(context, along->type, grid->block));
  return te_at(grid->call->te, parameter, at);
}

static bool type_of(const OpCall *call, const char *otherwise, DType *type) {
  const char *name = node_string(call->node, "dtype", otherwise);
  name = node_string(call->node, "out_dtype", name); // as TVM names it
  return dtype_parse(name, strlen(name), type) || op_error(call, "unknown type '%s'", name);
}

// Clamps to the largest finite number of a small float type, in both directions.
static Expr *saturated(Context *context, Expr *value, DType type) {
  double most = float_decode(*dtype_small_float(type), float_beyond(*dtype_small_float(type)) - 1);
  value = expr_max(context, value, expr_const(context, value->type, -most));
  return expr_min(context, value, expr_const(context, value->type, most));
}

static Expr *clamped(Context *context, Expr *value, DType type) {
  bool negative = type.code == TYPE_INT;
  double most = (double)((INT64_C(1) << (type.bits - negative)) - 1);
  double least = negative ? -most - 1 : 0;
  value = expr_max(context, value, expr_const(context, value->type, least));
  return expr_min(context, value, expr_const(context, value->type, most));
}

// Clamps once more as integers, because processors narrow integers with saturation.
static Expr *within(Context *context, Expr *value, DType type) {
  value = clamped(context, value, type);
  return clamped(context, expr_cast(context, DTYPE_INT32, value), type);
}

// x / scale, rounded to `precision` when the node states it.
static bool quotient(const Grid *grid, Expr *x, Expr *scale, Expr **value) {
  Context *context = grid->call->context;
  DType precision = DTYPE_FLOAT32;
  const char *name = node_string(grid->call->node, "precision", "float32");
  if (!dtype_parse(name, strlen(name), &precision) || !dtype_is_float(precision))
    return op_error(grid->call, "unknown type '%s'", name);
  x = expr_cast(context, precision, x);
  *value = expr_binary(context, EXPR_DIV, x, expr_cast(context, precision, scale));
  *value = expr_cast(context, DTYPE_FLOAT32, *value);
  return true;
}

static bool define_quantize(OpCall *call) {
  Context *context = call->context;
  Buffer *x = call->inputs[0];
  Grid grid;
  DType type;
  Expr *value = NULL;
  if (!type_of(call, "int8", &type) || !grid_of(call, &grid)) return false;
  bool narrow = dtype_is_int(type) && type.bits <= 16;
  if (!narrow && !(dtype_small_float(type) && type.bits < 16))
    return op_error(call, "to %s is not supported, only to types of up to 16 bits",
                    dtype_name(context, type));
  TeAxes axes = te_axes(call->te, x->shape, x->rank);
  if (!quotient(&grid, te_at(call->te, x, axes.at), parameter_at(&grid, grid.scale, &axes), &value))
    return false;
  if (narrow) value = expr_unary(context, EXPR_ROUND, value);
  if (grid.zero) {
    Expr *zero = parameter_at(&grid, grid.zero, &axes);
    value = expr_add(context, value, expr_cast(context, DTYPE_FLOAT32, zero));
  }
  if (narrow) value = within(context, value, type);
  if (!narrow && node_int(call->node, "saturate", 1)) value = saturated(context, value, type);
  op_output(call, te_compute(call->te, call->node->name, type, x->shape, &axes, value));
  return true;
}

// Unpacks unsigned numbers of 2 or 4 bits, of which a byte of the last axis holds several, the
// first in its lowest bits.
static bool define_unpack_bits(OpCall *call) {
  Context *context = call->context;
  Buffer *x = call->inputs[0];
  int64_t bits = node_int(call->node, "bits", 4), each = bits > 0 ? 8 / bits : 0;
  Expr *shape[TE_MAX_RANK], *at[TE_MAX_RANK];
  int last = x->rank - 1;
  if (x->rank < 1 || !dtype_equal(x->type, DTYPE_UINT8))
    return op_error(call, "takes a tensor of uint8");
  if (bits != 2 && bits != 4) return op_error(call, "'bits' is %lld", (long long)bits);
  memcpy(shape, x->shape, sizeof *shape * (size_t)x->rank);
  shape[last] = expr_mul(context, shape[last], expr_int(context, shape[last]->type, each));
  TeAxes axes = te_axes(call->te, shape, x->rank);
  memcpy(at, axes.at, sizeof at);
  Expr *number = expr_int(context, at[last]->type, each);
  Expr *place = expr_binary(context, EXPR_FLOOR_MOD, at[last], number);
  at[last] = expr_floor_div(context, at[last], number);
  Expr *shift = expr_cast(context, DTYPE_UINT8,
                          expr_mul(context, place, expr_int(context, place->type, bits)));
  Expr *value = expr_binary(context, EXPR_SHIFT_RIGHT, te_at(call->te, x, at), shift);
  value = expr_binary(context, EXPR_BIT_AND, value,
                      expr_int(context, DTYPE_UINT8, (INT64_C(1) << bits) - 1));
  op_output(call, te_compute(call->te, call->node->name, DTYPE_UINT8, shape, &axes, value));
  return true;
}

// (x - zero point) * scale: the difference of integers is exact.
static bool define_dequantize(OpCall *call) {
  Context *context = call->context;
  Buffer *x = call->inputs[0];
  Grid grid;
  DType type;
  if (!grid_of(call, &grid) || !type_of(call, dtype_name(context, grid.scale->type), &type))
    return false;
  bool exact_int = dtype_is_int(x->type) && (!grid.zero || dtype_is_int(grid.zero->type));
  if (grid.zero && dtype_is_int(grid.zero->type) && !exact_int)
    return op_error(call, "its zero point must have the type of its input");
  TeAxes axes = te_axes(call->te, x->shape, x->rank);
  DType exact = exact_int ? DTYPE_INT32 : DTYPE_FLOAT32;
  Expr *value = expr_cast(context, exact, te_at(call->te, x, axes.at));
  if (grid.zero)
    value =
        expr_sub(context, value, expr_cast(context, exact, parameter_at(&grid, grid.zero, &axes)));
  Expr *scale = expr_cast(context, DTYPE_FLOAT32, parameter_at(&grid, grid.scale, &axes));
  value = expr_mul(context, expr_cast(context, DTYPE_FLOAT32, value), scale);
  op_output(call, te_compute(call->te, call->node->name, type, x->shape, &axes, value));
  return true;
}

const OpRow quantize_ops[] = {
    {"quantize", NULL, 2, 3, define_quantize, "axis block_size dtype precision saturate out_dtype",
     .mixed_types = true, .positional = "axis out_dtype"},
    {"dequantize", NULL, 2, 3, define_dequantize, "axis block_size dtype out_dtype",
     .mixed_types = true, .positional = "axis out_dtype"},
    {"unpack_bits", NULL, 1, 1, define_unpack_bits, "bits"},
};
const int quantize_op_count = COUNT_OF(quantize_ops);
