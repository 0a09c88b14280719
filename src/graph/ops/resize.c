// SPDX-License-Identifier: Apache-2.0
// Defines the resizing of images: sums over 1, 2 or 4 neighbours on each axis of the image, which
// are moved inside where they are outside.
#include "graph/ops/ops.h"

enum { MOST_SPACE = 3 };

typedef struct ImageResize {
  OpCall *call;
  const char *coordinates, *rounding;
  int taps;   // on each axis
  DType type; // of coordinates
} ImageResize;

static Expr *real(const ImageResize *r, double value) {
  return expr_const(r->call->context, r->type, value);
}

// The coordinate in the image of index `at` of an axis that is resized from `from` to `to`.
static Expr *coordinate(const ImageResize *r, Expr *at, double from, double to) {
  Context *context = r->call->context;
  bool align = !strcmp(r->coordinates, "align_corners");
  bool half = !strcmp(r->coordinates, "half_pixel"),
       torch = !strcmp(r->coordinates, "pytorch_half_pixel"),
       centre = !strcmp(r->coordinates, "tf_half_pixel_for_nn");
  if (!align && !half && !torch && !centre && strcmp(r->coordinates, "asymmetric") != 0)
    return op_error(r->call, "'coordinate_transformation_mode' is '%s', which is not supported",
                    r->coordinates),
           NULL;
  if ((align || torch) && to <= 1) return real(r, 0);
  Expr *x = expr_cast(context, r->type, at);
  if (half || torch || centre) x = expr_add(context, x, real(r, 0.5));
  x = expr_mul(context, x, real(r, align ? (from - 1) / (to - 1) : from / to));
  return half || torch ? expr_sub(context, x, real(r, 0.5)) : x;
}

static Expr *rounded(const ImageResize *r, ExprOp op, Expr *x, double shift) {
  return expr_unary(r->call->context, op, expr_add(r->call->context, x, real(r, shift)));
}

// The nearest index. A small shift keeps numbers that are whole but for rounding errors.
static Expr *nearest(const ImageResize *r, Expr *x) {
  const char *rounding = r->rounding;
  if (!*rounding) rounding = strcmp(r->coordinates, "align_corners") ? "floor" : "round";
  if (!strcmp(rounding, "round")) return expr_unary(r->call->context, EXPR_ROUND, x);
  if (!strcmp(rounding, "round_prefer_floor")) return rounded(r, EXPR_CEIL, x, -0.5);
  if (!strcmp(rounding, "round_prefer_ceil")) return rounded(r, EXPR_FLOOR, x, 0.5);
  if (!strcmp(rounding, "floor")) return rounded(r, EXPR_FLOOR, x, 1e-5);
  if (!strcmp(rounding, "ceil")) return rounded(r, EXPR_CEIL, x, -1e-5);
  return op_error(r->call, "'rounding_method' is '%s', which is not supported", rounding), NULL;
}

// a + b * |x| + c * x² + d * |x|³
static Expr *cubic(const ImageResize *r, Expr *x, const double *factors) {
  Context *context = r->call->context;
  Expr *sum = real(r, factors[3]);
  for (int i = 2; i >= 0; i--)
    sum = expr_add(context, expr_mul(context, sum, x), real(r, factors[i]));
  return sum;
}

// The weight of a neighbour at this distance from the coordinate.
static Expr *weight_at(const ImageResize *r, Expr *distance) {
  Context *context = r->call->context;
  double a = node_float(r->call->node, "cubic_alpha", -0.75);
  const double near[] = {1, 0, -(a + 3), a + 2}, far[] = {-4 * a, 8 * a, -5 * a, a};
  Expr *x = expr_unary(context, EXPR_ABS, distance);
  if (r->taps == 2) return expr_sub(context, real(r, 1), x);
  return expr_select(context, expr_lt(context, x, real(r, 1)), cubic(r, x, near), cubic(r, x, far));
}

// The index of a neighbour, and the factor that its weight makes of `weight` (NULL: 1).
static Expr *neighbour(const ImageResize *r, Expr *x, Expr *tap, Expr *extent, Expr **weight) {
  Context *context = r->call->context;
  Expr *index;
  if (r->taps == 1) {
    index = nearest(r, x);
  } else {
    Expr *first = expr_sub(context, expr_unary(context, EXPR_FLOOR, x), real(r, r->taps / 2 - 1));
    index = expr_add(context, first, expr_cast(context, r->type, tap));
    Expr *factor = weight_at(r, expr_sub(context, x, index));
    *weight = *weight ? expr_mul(context, *weight, factor) : factor;
  }
  if (!index) return NULL;
  index = expr_cast(context, extent->type, index);
  index = expr_max(context, index, expr_int(context, index->type, 0));
  return expr_min(context, index, expr_sub(context, extent, expr_int(context, extent->type, 1)));
}

static bool read_resize(OpCall *call, ImageResize *r, int64_t *sizes, int64_t *extents) {
  const char *method = node_string(call->node, "method", "linear");
  Buffer *x = call->inputs[0];
  int count = node_ints(call->node, "size", sizes, MOST_SPACE), space = x->rank - 2;
  *r = (ImageResize){.call = call,
                     .coordinates =
                         node_string(call->node, "coordinate_transformation_mode", "half_pixel"),
                     .type = dtype_equal(x->type, DTYPE_FLOAT64) ? DTYPE_FLOAT64 : DTYPE_FLOAT32,
                     .rounding = node_string(call->node, "rounding_method", "round")};
  r->taps = !strcmp(method, "nearest_neighbor") ? 1
            : !strcmp(method, "linear")         ? 2
            : !strcmp(method, "cubic")          ? 4
                                                : 0;
  if (!r->taps) return op_error(call, "'method' is '%s', which is not supported", method);
  if (node_int(call->node, "cubic_exclude", 0) || node_int(call->node, "antialias", 0))
    return op_error(call, "'cubic_exclude' and 'antialias' are not supported");
  if (space != call->row->space) return op_error(call, "takes an image of %d axes", space);
  for (int i = 1; count == 1 && i < space; i++) sizes[i] = sizes[0];
  if (count != 1 && count != space) return op_error(call, "'size' needs %d integers", space);
  for (int i = 0; i < space; i++)
    if (sizes[i] < 1 || !expr_as_int(x->shape[2 + i], &extents[i]) || extents[i] < 1)
      return op_error(call, "needs known extents of the image");
  return dtype_is_float(x->type) || r->taps == 1 || op_error(call, "takes an image of floats");
}

static bool define_resize(OpCall *call) {
  Context *context = call->context;
  Buffer *x = call->inputs[0];
  int64_t sizes[MOST_SPACE], extents[MOST_SPACE];
  ImageResize r;
  if (!read_resize(call, &r, sizes, extents)) return false;
  Expr *shape[TE_MAX_RANK] = {x->shape[0], x->shape[1]}, *at[TE_MAX_RANK], *weight = NULL;
  for (int i = 0; i + 2 < x->rank; i++) shape[2 + i] = expr_index(context, sizes[i]);
  TeAxes axes = te_axes(call->te, shape, x->rank);
  TeReduction sum = {.combine = EXPR_ADD, .init = expr_const(context, x->type, 0)};
  memcpy(at, axes.at, sizeof at);
  for (int i = 2; i < x->rank; i++) {
    Expr *place = coordinate(&r, axes.at[i], (double)extents[i - 2], (double)sizes[i - 2]);
    Expr *tap =
        op_reduce_axis(call, &sum, str_format(context, "t%d", i - 2), expr_index(context, r.taps));
    at[i] = place ? neighbour(&r, place, tap, x->shape[i], &weight) : NULL;
    if (!at[i]) return false;
  }
  Expr *value = te_at(call->te, x, at);
  if (weight) value = expr_mul(context, value, expr_cast(context, x->type, weight));
  op_output(call, te_reduce(call->te, call->node->name, x->type, shape, &axes, &sum, value));
  return true;
}

static bool resize_in_letters(OpCall *call) {
  return op_in_letters(call, define_resize);
}

static const OpLetters image_letters = {"layout", {"NCW", "NCHW", "NCDHW"}, {NULL}};
static const char resize_attrs[] =
    "size roi layout method coordinate_transformation_mode rounding_method cubic_alpha "
    "cubic_exclude extrapolation_value out_dtype antialias";

const OpRow resize_ops[] = {
    {"image.resize2d", NULL, 1, 1, resize_in_letters, resize_attrs, .space = 2,
     .letters = &image_letters, .positional = resize_attrs},
    {"image.resize3d", NULL, 1, 1, resize_in_letters, resize_attrs, .space = 3,
     .letters = &image_letters, .positional = resize_attrs},
};
const int resize_op_count = COUNT_OF(resize_ops);
