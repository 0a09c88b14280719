// SPDX-License-Identifier: Apache-2.0
// Samples a tensor at coordinates that are computed at run time and need not be integers. For each
// axis, stages compute the indices and weights of each sample's neighbours; a sample is the
// weighted sum over the neighbours of all axes.
#include "graph/ops/ops.h"

enum { MOST_SPACE = 3 };

typedef struct Sampler {
  OpCall *call;
  int space; // number of sampled axes
  int taps;  // neighbours on an axis: 1 nearest, 2 linear, 4 cubic
  const char *padding;
  bool align;
  DType type; // of coordinates
  Expr *extents[MOST_SPACE];
} Sampler;

// The neighbours on one axis: indices[sample…, tap] and weights[sample…, tap].
typedef struct Neighbours {
  Buffer *indices, *weights;
} Neighbours;

static Expr *number(const Sampler *s, double value) {
  return expr_const(s->call->context, s->type, value);
}

static Expr *binary(const Sampler *s, ExprOp op, Expr *a, Expr *b) {
  return expr_binary(s->call->context, op, a, b);
}

static Expr *clamped(const Sampler *s, Expr *x, Expr *low, Expr *high) {
  return binary(s, EXPR_MIN, binary(s, EXPR_MAX, x, low), high);
}

static Expr *extent_as_number(const Sampler *s, int axis) {
  return expr_cast(s->call->context, s->type, s->extents[axis]);
}

// ---- Coordinates ------------------------------------------------------------------------------

// Maps [-1, 1] to element coordinates, with the ends at the centres of the outermost elements
// (align) or at their edges.
static Expr *denormalised(const Sampler *s, int axis, Expr *x) {
  Expr *extent = extent_as_number(s, axis), *one = number(s, 1), *half = number(s, 0.5);
  Expr *moved = binary(s, EXPR_ADD, x, one);
  if (s->align)
    return binary(s, EXPR_MUL, binary(s, EXPR_MUL, moved, half), binary(s, EXPR_SUB, extent, one));
  Expr *whole = binary(s, EXPR_SUB, binary(s, EXPR_MUL, moved, extent), one);
  return binary(s, EXPR_MUL, whole, half);
}

// Reflects a coordinate between the first and the last element (align), or between their edges.
static Expr *reflected(const Sampler *s, int axis, Expr *x) {
  Expr *low = number(s, s->align ? 0 : -0.5);
  Expr *range = extent_as_number(s, axis);
  if (s->align) range = binary(s, EXPR_SUB, range, number(s, 1));
  range = binary(s, EXPR_MAX, range, number(s, 1e-6));
  Expr *from = binary(s, EXPR_SUB, x, low), *period = binary(s, EXPR_MUL, range, number(s, 2));
  Expr *turns = expr_unary(s->call->context, EXPR_FLOOR, binary(s, EXPR_DIV, from, period));
  Expr *rest = binary(s, EXPR_SUB, from, binary(s, EXPR_MUL, turns, period));
  return binary(s, EXPR_ADD, low, binary(s, EXPR_MIN, rest, binary(s, EXPR_SUB, period, rest)));
}

// Moves a coordinate inside of the tensor. For paddings that apply to each neighbour, it only
// limits the coordinate to a range that is wide enough for all neighbours to be outside.
static Expr *brought_in(const Sampler *s, int axis, Expr *x) {
  Context *context = s->call->context;
  Expr *extent = extent_as_number(s, axis), *last = binary(s, EXPR_SUB, extent, number(s, 1));
  Expr *edge = number(s, s->align ? 0 : -0.5);
  Expr *high = binary(s, EXPR_SUB, last, edge);
  Expr *outside = binary(s, EXPR_OR, binary(s, EXPR_LT, x, edge), binary(s, EXPR_LT, high, x));
  Expr *far = binary(s, EXPR_ADD, extent, number(s, 3));
  bool by_tap = !strcmp(s->padding, "zeros") || (!strcmp(s->padding, "border") && s->taps == 4);
  if (by_tap) return clamped(s, x, number(s, -4), far);
  Expr *in =
      !strcmp(s->padding, "border") ? clamped(s, x, number(s, 0), last) : reflected(s, axis, x);
  return clamped(s, expr_select(context, outside, in, x), number(s, -4), far);
}

// ---- Neighbours -------------------------------------------------------------------------------

static Expr *index_of_tap(const Sampler *s, Expr *place, Expr *tap) {
  Context *context = s->call->context;
  Expr *below = expr_cast(context, DTYPE_INT32, expr_unary(context, EXPR_FLOOR, place));
  Expr *from = expr_index(context, s->taps > 1 ? 1 - s->taps / 2 : 0);
  return expr_add(context, below, expr_add(context, expr_cast(context, DTYPE_INT32, tap), from));
}

// The index that replaces index `i`, which is `i` itself when it is inside.
static Expr *inside_index(const Sampler *s, int axis, Expr *i) {
  Context *context = s->call->context;
  Expr *extent = expr_cast(context, DTYPE_INT32, s->extents[axis]), *one = expr_index(context, 1);
  Expr *last = expr_sub(context, extent, one), *zero = expr_index(context, 0);
  if (!strcmp(s->padding, "reflection")) {
    Expr *half = s->align ? last : extent, *end = s->align ? zero : one;
    Expr *period = expr_max(context, expr_mul(context, half, expr_index(context, 2)), one);
    Expr *phase = expr_floor_mod(context, i, period);
    i = expr_min(context, phase, expr_sub(context, expr_sub(context, period, end), phase));
  }
  return expr_max(context, expr_min(context, i, last), zero);
}

// The weight at a distance: Keys' cubic convolution with a = -3/4, or linear interpolation.
static Expr *weight_at(const Sampler *s, Expr *distance) {
  Context *context = s->call->context;
  Expr *x = expr_unary(context, EXPR_ABS, distance), *one = number(s, 1);
  if (s->taps == 2) return binary(s, EXPR_MAX, binary(s, EXPR_SUB, one, x), number(s, 0));
  Expr *near = binary(s, EXPR_SUB, binary(s, EXPR_MUL, x, number(s, 1.25)), number(s, 2.25));
  near = binary(s, EXPR_ADD, binary(s, EXPR_MUL, binary(s, EXPR_MUL, near, x), x), one);
  Expr *far = binary(s, EXPR_SUB, number(s, 3.75), binary(s, EXPR_MUL, x, number(s, 0.75)));
  far = binary(s, EXPR_SUB, binary(s, EXPR_MUL, far, x), number(s, 6));
  far = binary(s, EXPR_ADD, binary(s, EXPR_MUL, far, x), number(s, 3));
  far = expr_select(context, binary(s, EXPR_LT, x, number(s, 2)), far, number(s, 0));
  return expr_select(context, binary(s, EXPR_LE, x, one), near, far);
}

static Expr *weight_of_tap(const Sampler *s, int axis, Expr *place, Expr *index) {
  Context *context = s->call->context;
  Expr *distance = binary(s, EXPR_SUB, expr_cast(context, s->type, index), place);
  Expr *weight = s->taps == 1 ? number(s, 1) : weight_at(s, distance);
  if (strcmp(s->padding, "zeros") != 0) return weight;
  Expr *inside =
      expr_and(context, binary(s, EXPR_LE, expr_index(context, 0), index),
               expr_lt(context, index, expr_cast(context, DTYPE_INT32, s->extents[axis])));
  return expr_select(context, inside, weight, number(s, 0));
}

// Computes a sample's coordinate along `axis`, in elements, for the sample at axes[0 … rank).
typedef Expr *(*PlaceOf)(const Sampler *s, int axis, Expr *const *axes);

static Neighbours neighbours_along(const Sampler *s, int axis, Expr *const *shape, int rank,
                                   PlaceOf place_of) {
  OpCall *call = s->call;
  Context *context = call->context;
  Expr *whole[TE_MAX_RANK];
  Buffer *results[2];
  memcpy(whole, shape, sizeof *whole * (size_t)rank);
  whole[rank] = expr_index(context, s->taps);
  for (int pass = 0; pass < 2; pass++) {
    TeAxes axes = te_axes(call->te, whole, rank + 1);
    Expr *place = place_of(s, axis, axes.at);
    if (s->taps == 1) place = expr_unary(context, EXPR_ROUND, place);
    place = brought_in(s, axis, place);
    Expr *index = index_of_tap(s, place, axes.at[rank]);
    DType type = pass ? call->inputs[0]->type : DTYPE_INT32;
    Expr *value = pass ? weight_of_tap(s, axis, place, index) : inside_index(s, axis, index);
    Str name = str_format(context, "%s_%s%d", call->node->name, pass ? "weights" : "indices", axis);
    results[pass] = te_compute(call->te, name, type, whole, &axes, expr_cast(context, type, value));
  }
  return (Neighbours){results[0], results[1]};
}

// The product of the weights for a sample (`axes`) and taps; sets at[0 … space) to the indices of
// x.
static Expr *tap_at(const Sampler *s, const Neighbours *along, Expr *const *axes, int rank,
                    Expr *const *taps, Expr **at) {
  Expr *weight = NULL, *place[TE_MAX_RANK];
  memcpy(place, axes, sizeof *place * (size_t)rank);
  for (int d = 0; d < s->space; d++) {
    place[rank] = taps[d];
    Expr *factor = te_at(s->call->te, along[d].weights, place);
    at[d] = te_at(s->call->te, along[d].indices, place);
    weight = weight ? binary(s, EXPR_MUL, weight, factor) : factor;
  }
  return weight;
}

static void tap_axes(const Sampler *s, TeReduction *sum, Expr **taps) {
  for (int d = 0; d < s->space; d++)
    taps[d] = op_reduce_axis(s->call, sum, str_format(s->call->context, "t%d", d),
                             expr_index(s->call->context, s->taps));
}

// Coordinates have at least the precision of float32.
static DType coordinate_type(DType type) {
  return dtype_is_float(type) && type.bits == 64 ? DTYPE_FLOAT64 : DTYPE_FLOAT32;
}

// ---- GridSample: x[n, c, …] at grid[n, o…, coordinates], the innermost axis first --------------

static Expr *place_in_grid(const Sampler *s, int axis, Expr *const *axes) {
  Buffer *grid = s->call->inputs[1];
  Expr *at[TE_MAX_RANK];
  memcpy(at, axes, sizeof *at * (size_t)(grid->rank - 1));
  at[grid->rank - 1] = expr_index(s->call->context, s->space - 1 - axis);
  Expr *x = expr_cast(s->call->context, s->type, te_at(s->call->te, grid, at));
  return denormalised(s, axis, x);
}

static bool read_sampler(OpCall *call, Sampler *s) {
  const char *mode = node_string(call->node, "mode", "linear");
  *s = (Sampler){.call = call, .space = call->inputs[0]->rank - 2};
  s->padding = node_string(call->node, "padding_mode", "zeros");
  s->align = node_int(call->node, "align_corners", 0) != 0;
  s->taps = !strcmp(mode, "nearest")  ? 1
            : !strcmp(mode, "linear") ? 2
            : !strcmp(mode, "cubic")  ? 4
                                      : 0;
  if (!s->taps) return op_error(call, "mode '%s' is not one of nearest, linear, cubic", mode);
  if (strcmp(s->padding, "zeros") && strcmp(s->padding, "border") &&
      strcmp(s->padding, "reflection"))
    return op_error(call, "padding_mode '%s' is not one of zeros, border, reflection", s->padding);
  return true;
}

static bool check_grid(OpCall *call, Sampler *s) {
  Buffer *x = call->inputs[0], *grid = call->inputs[1];
  if (s->space < 1 || s->space > MOST_SPACE || grid->rank != x->rank)
    return op_error(call, "takes tensors of one rank, 3 to 5, got %d and %d", x->rank, grid->rank);
  if (!expr_is_int(grid->shape[grid->rank - 1], s->space) || grid->shape[0] != x->shape[0])
    return op_error(call, "its grid must be [n, …, %d], n as in its input", s->space);
  if (!dtype_is_float(grid->type))
    return op_error(call, "its grid is of type %s", dtype_name(call->context, grid->type));
  for (int d = 0; d < s->space; d++) {
    if (expr_is_int(x->shape[d + 2], 0)) return op_error(call, "axis %d has no elements", d + 2);
    s->extents[d] = x->shape[d + 2];
  }
  s->type = coordinate_type(grid->type);
  return true;
}

static bool define_grid_sample_of_tvm(OpCall *call);

static bool define_grid_sample(OpCall *call) {
  Context *context = call->context;
  Buffer *x = call->inputs[0], *grid = call->inputs[1];
  Sampler s;
  Neighbours along[MOST_SPACE];
  if (!attrs_get(&call->node->attrs, "mode")) return define_grid_sample_of_tvm(call);
  if (!read_sampler(call, &s) || !check_grid(call, &s)) return false;
  for (int d = 0; d < s.space; d++)
    along[d] = neighbours_along(&s, d, grid->shape, grid->rank - 1, place_in_grid);
  Expr *shape[TE_MAX_RANK] = {x->shape[0], x->shape[1]}, *taps[MOST_SPACE];
  memcpy(shape + 2, grid->shape + 1, sizeof *shape * (size_t)s.space);
  TeAxes axes = te_axes(call->te, shape, x->rank);
  TeReduction sum = {.combine = EXPR_ADD, .init = expr_const(context, x->type, 0)};
  tap_axes(&s, &sum, taps);
  Expr *place[TE_MAX_RANK] = {axes.at[0]}, *at[TE_MAX_RANK] = {axes.at[0], axes.at[1]};
  memcpy(place + 1, axes.at + 2, sizeof *place * (size_t)s.space);
  Expr *weight = tap_at(&s, along, place, s.space + 1, taps, at + 2);
  op_output(call, te_reduce(call->te, call->node->name, x->type, shape, &axes, &sum,
                            expr_mul(context, weight, te_at(call->te, x, at))));
  return true;
}

// TVM's form, whose grid has its coordinates in axis 1, and the attributes method and layout.
static bool define_grid_sample_of_tvm(OpCall *call) {
  static const char *const methods[][2] = {
      {"bilinear", "linear"}, {"nearest", "nearest"}, {"bicubic", "cubic"}};
  const char *method = node_string(call->node, "method", "bilinear"), *mode = NULL;
  const char *layout = node_string(call->node, "layout", "");
  int64_t order[TE_MAX_RANK] = {0};
  int rank = call->inputs[1]->rank;
  for (int i = 0; i < COUNT_OF(methods); i++)
    if (!strcmp(methods[i][0], method)) mode = methods[i][1];
  if (!mode) return op_error(call, "'method' is '%s', which is not supported", method);
  if (*layout && strcmp(layout, "NCHW") != 0 && strcmp(layout, "NCDHW") != 0)
    return op_error(call, "'layout' is '%s', expected NCHW or NCDHW", layout);
  for (int i = 1; i < rank; i++) order[i] = i == rank - 1 ? 1 : i + 1;
  Buffer *inputs[] = {call->inputs[0],
                      op_apply(call, "permute_dims", "grid", &call->inputs[1], 1,
                               op_with_ints(call, (Attrs){0}, "axes", order, rank))};
  Attrs attrs = op_with_text(call, (Attrs){0}, "mode", mode);
  attrs =
      op_with_text(call, attrs, "padding_mode", node_string(call->node, "padding_mode", "zeros"));
  attrs = op_with_int(call, attrs, "align_corners", node_int(call->node, "align_corners", 0));
  Buffer *y = inputs[1] ? op_apply(call, "image.grid_sample", NULL, inputs, 2, attrs) : NULL;
  if (y) op_output(call, y);
  return y != NULL;
}

// ---- AffineGrid: theta[n, space, space + 1] to a grid over [-1, 1] ------------------------------

static Expr *grid_coordinate(OpCall *call, DType type, Expr *at, int64_t extent, bool align) {
  Context *context = call->context;
  if (align && extent == 1) return expr_const(context, type, 0);
  double step = 2.0 / (double)(align ? extent - 1 : extent);
  Expr *from = expr_const(context, type, align ? -1 : -1 + step / 2);
  return expr_add(context,
                  expr_mul(context, expr_cast(context, type, at), expr_const(context, type, step)),
                  from);
}

static bool define_affine_grid(OpCall *call) {
  Context *context = call->context;
  Buffer *theta = call->inputs[0];
  int64_t size[MOST_SPACE];
  bool align = node_int(call->node, "align_corners", 1) != 0;
  bool last = node_int(call->node, "coordinates_last", 0) != 0;
  int space = node_ints(call->node, "size", size, MOST_SPACE);
  if (space < 2) return op_error(call, "'size' needs two or three integers");
  if (theta->rank != 3 || !expr_is_int(theta->shape[1], space) ||
      !expr_is_int(theta->shape[2], space + 1))
    return op_error(call, "takes transforms [n, %d, %d]", space, space + 1);
  Expr *shape[TE_MAX_RANK] = {theta->shape[0]};
  for (int d = 0; d < space; d++) {
    if (size[d] < 1) return op_error(call, "'size' has the extent %lld", (long long)size[d]);
    shape[d + 2 - last] = expr_index(context, size[d]);
  }
  shape[last ? space + 1 : 1] = expr_index(context, space);
  TeAxes axes = te_axes(call->te, shape, space + 2);
  Expr *row = axes.at[last ? space + 1 : 1], *sum = NULL;
  for (int k = space; k >= 0; k--) {
    Expr *factor = te_at(call->te, theta, (Expr *[]){axes.at[0], row, expr_index(context, k)});
    int d = space - 1 - k;
    if (k < space)
      factor = expr_mul(context, factor,
                        grid_coordinate(call, theta->type, axes.at[d + 2 - last], size[d], align));
    sum = sum ? expr_add(context, sum, factor) : factor;
  }
  op_output(call, te_compute(call->te, call->node->name, theta->type, shape, &axes, sum));
  return true;
}

// ---- RoiAlign: means (or maxima) of samples in each bin of regions of x[n, c, h, w] ------------

// The coordinate along one axis of sample `i` of bin `b` in a region, in elements.
static Expr *place_in_region(const Sampler *s, int axis, Expr *const *axes) {
  OpCall *call = s->call;
  Context *context = call->context;
  bool half = s->align;
  int64_t bins = node_int(call->node, axis ? "output_width" : "output_height", 1);
  double samples = (double)node_int(call->node, "sampling_ratio", 1);
  Expr *ends[2];
  for (int i = 0; i < 2; i++) {
    Expr *column = expr_index(context, 2 * i + 1 - axis);
    Expr *end = te_at(call->te, call->inputs[1], (Expr *[]){axes[0], column});
    ends[i] = binary(s, EXPR_MUL, expr_cast(context, s->type, end),
                     number(s, node_float(call->node, "spatial_scale", 1)));
    if (half) ends[i] = binary(s, EXPR_SUB, ends[i], number(s, 0.5));
  }
  Expr *length = binary(s, EXPR_SUB, ends[1], ends[0]);
  bool short_ones = half || node_int(s->call->node, "aligned", 0);
  if (!short_ones) length = binary(s, EXPR_MAX, length, number(s, 1));
  Expr *bin = binary(s, EXPR_DIV, length, number(s, (double)bins));
  Expr *sample = binary(s, EXPR_ADD, expr_cast(context, s->type, axes[2]), number(s, 0.5));
  sample = binary(s, EXPR_DIV, binary(s, EXPR_MUL, sample, bin), number(s, samples));
  Expr *start = binary(s, EXPR_MUL, expr_cast(context, s->type, axes[1]), bin);
  return binary(s, EXPR_ADD, binary(s, EXPR_ADD, ends[0], start), sample);
}

// A sample up to one element outside takes the nearest element; one further outside is 0.
static Neighbours region_neighbours(Sampler *s, int axis, Expr *const *shape) {
  OpCall *call = s->call;
  Context *context = call->context;
  Expr *whole[] = {shape[0], shape[1], shape[2], expr_index(context, 2)};
  Buffer *results[2];
  for (int pass = 0; pass < 2; pass++) {
    TeAxes axes = te_axes(call->te, whole, 4);
    Expr *place = place_in_region(s, axis, axes.at), *extent = extent_as_number(s, axis);
    Expr *last = binary(s, EXPR_SUB, extent, number(s, 1));
    Expr *counts = expr_and(context, binary(s, EXPR_LE, number(s, -1), place),
                            binary(s, EXPR_LE, place, extent));
    place = clamped(s, place, number(s, 0), last);
    Expr *index = index_of_tap(s, place, axes.at[3]);
    Expr *weight = weight_at(s, binary(s, EXPR_SUB, expr_cast(context, s->type, index), place));
    DType type = pass ? call->inputs[0]->type : DTYPE_INT32;
    Expr *value =
        pass ? expr_select(context, counts, weight, number(s, 0)) : inside_index(s, axis, index);
    Str name = str_format(context, "%s_%s%d", call->node->name, pass ? "weights" : "indices", axis);
    results[pass] = te_compute(call->te, name, type, whole, &axes, expr_cast(context, type, value));
  }
  return (Neighbours){results[0], results[1]};
}

static bool check_regions(OpCall *call, int64_t *sizes, int64_t *samples) {
  Buffer *x = call->inputs[0], *rois = call->inputs[1], *batch = call->inputs[2];
  const char *mode = node_string(call->node, "mode", "avg");
  sizes[0] = node_int(call->node, "output_height", 1);
  sizes[1] = node_int(call->node, "output_width", 1);
  *samples = node_int(call->node, "sampling_ratio", 0);
  if (x->rank != 4 || rois->rank != 2 || !expr_is_int(rois->shape[1], 4) || batch->rank != 1 ||
      batch->shape[0] != rois->shape[0])
    return op_error(call, "takes an image of rank 4, regions [r, 4] and the images of these [r]");
  if (!dtype_is_float(x->type) || !dtype_equal(x->type, rois->type))
    return op_error(call, "takes image and regions of one floating point type");
  if (strcmp(mode, "avg") != 0 && strcmp(mode, "max") != 0)
    return op_error(call, "mode '%s' is not one of avg, max", mode);
  if (sizes[0] < 1 || sizes[1] < 1 || sizes[0] > INT32_MAX || sizes[1] > INT32_MAX)
    return op_error(call, "the result would have %lldx%lld elements, which are not supported",
                    (long long)sizes[0], (long long)sizes[1]);
  if (*samples < 1 || *samples > INT32_MAX)
    return op_error(call,
                    "sampling_ratio %lld is not supported: a number of samples that follows "
                    "each region's size is not known when the model is compiled",
                    (long long)*samples);
  if (expr_is_int(x->shape[2], 0) || expr_is_int(x->shape[3], 0))
    return op_error(call, "the image has no elements");
  return op_check_indices(call, 2);
}

// TVM's form: the number of the image is column 0 of the regions, and data may be NHWC.
static bool define_roi_align_of_tvm(OpCall *call) {
  static const int64_t to_nchw[] = {0, 3, 1, 2}, to_nhwc[] = {0, 2, 3, 1}, one[] = {1};
  int64_t size[2], begin[2] = {0, 1}, end[2] = {1, 5};
  Buffer *x = call->inputs[0], *inputs[3] = {x};
  bool nhwc = !strcmp(node_string(call->node, "layout", "NCHW"), "NHWC");
  const char *mode = node_string(call->node, "mode", "avg");
  int sizes = node_ints(call->node, "pooled_size", size, 2);
  if (sizes < 1) return op_error(call, "'pooled_size' needs 2 integers");
  if (strcmp(mode, "avg") != 0) return op_error(call, "mode '%s' is not supported, only avg", mode);
  Attrs attrs = op_with_int(call, (Attrs){0}, "output_height", size[0]);
  attrs = op_with_int(call, attrs, "output_width", size[sizes - 1]);
  attrs = op_with_int(call, attrs, "sampling_ratio", node_int(call->node, "sample_ratio", -1));
  attrs = op_with_int(call, attrs, "half_pixel", 0);
  attrs = op_with_int(call, attrs, "aligned", node_int(call->node, "aligned", 0));
  Expr *scale = attrs_get(&call->node->attrs, "spatial_scale");
  if (scale)
    attrs =
        attrs_with(&call->context->arena, attrs, str_intern(call->context, "spatial_scale"), scale);
  if (nhwc && x->rank == 4)
    inputs[0] = op_apply(call, "permute_dims", "moved", &x, 1,
                         op_with_ints(call, (Attrs){0}, "axes", to_nchw, 4));
  for (int i = 0; i < 2; i++) { // the images, then the regions
    Attrs slice = op_with_ints(call, (Attrs){0}, "axes", one, 1);
    slice = op_with_ints(call, slice, "begin", &begin[i], 1);
    slice = op_with_ints(call, slice, "end", &end[i], 1);
    inputs[2 - i] =
        op_apply(call, "strided_slice", i ? "regions" : "column", &call->inputs[1], 1, slice);
  }
  if (!inputs[0] || !inputs[1] || !inputs[2]) return false;
  inputs[2] = op_apply(call, "squeeze", "image", &inputs[2], 1,
                       op_with_ints(call, (Attrs){0}, "axis", one, 1));
  if (inputs[2])
    inputs[2] = op_apply(call, "astype", "images", &inputs[2], 1,
                         op_with_text(call, (Attrs){0}, "dtype", "int32"));
  Buffer *y =
      inputs[2] ? op_apply(call, "vision.roi_align", nhwc ? "nchw" : NULL, inputs, 3, attrs) : NULL;
  if (y && nhwc)
    y = op_apply(call, "permute_dims", NULL, &y, 1,
                 op_with_ints(call, (Attrs){0}, "axes", to_nhwc, 4));
  if (y) op_output(call, y);
  return y != NULL;
}

static bool define_roi_align(OpCall *call) {
  if (call->input_count == 2) return define_roi_align_of_tvm(call);
  Context *context = call->context;
  Buffer *x = call->inputs[0], *rois = call->inputs[1];
  int64_t sizes[2], samples;
  if (!check_regions(call, sizes, &samples)) return false;
  bool most = !strcmp(node_string(call->node, "mode", "avg"), "max");
  Sampler s = {.call = call, .space = 2, .taps = 2, .padding = "border"};
  s.type = coordinate_type(x->type);
  s.align = node_int(call->node, "half_pixel", 1) != 0;
  Neighbours along[2];
  Expr *shape[] = {rois->shape[0], x->shape[1], expr_index(context, sizes[0]),
                   expr_index(context, sizes[1])};
  Expr *all = expr_index(context, samples), *taps[2], *at[4], *weight = NULL;
  TeAxes axes = te_axes(call->te, shape, 4);
  Expr *zero = expr_const(context, x->type, 0);
  TeReduction r = {.combine = most ? EXPR_MAX : EXPR_ADD,
                   .init = most ? op_lowest(context, x->type) : zero};
  for (int d = 0; d < 2; d++) {
    s.extents[d] = x->shape[d + 2];
    along[d] = region_neighbours(&s, d, (Expr *[]){rois->shape[0], shape[d + 2], all});
  }
  for (int d = 0; d < 2; d++) {
    Expr *sample = op_reduce_axis(call, &r, str_format(context, "s%d", d), all);
    taps[d] = op_reduce_axis(call, &r, str_format(context, "t%d", d), expr_index(context, 2));
    Expr *place[] = {axes.at[0], axes.at[d + 2], sample, taps[d]};
    Expr *factor = te_at(call->te, along[d].weights, place);
    weight = weight ? expr_mul(context, weight, factor) : factor;
    at[d + 2] = te_at(call->te, along[d].indices, place);
  }
  at[0] = op_position(context, te_at(call->te, call->inputs[2], axes.at), x->shape[0]);
  at[1] = axes.at[1];
  Str name = most ? call->node->name : str_format(context, "%s_sum", call->node->name);
  Buffer *result = te_reduce(call->te, name, x->type, shape, &axes, &r,
                             expr_mul(context, weight, te_at(call->te, x, at)));
  if (!most) {
    axes = te_axes(call->te, shape, 4);
    Expr *share = expr_const(context, x->type, 1.0 / ((double)samples * (double)samples));
    result = te_compute(call->te, call->node->name, x->type, shape, &axes,
                        expr_mul(context, te_at(call->te, result, axes.at), share));
  }
  op_output(call, result);
  return true;
}

// ---- DeformConv: a convolution whose taps are moved by offset[n, (group, tap, axis), …] ---------

typedef struct Deformed {
  WindowAxis windows[2];
  int64_t groups, offset_groups, in, per_group, out;
} Deformed;

static Expr *place_of_tap(const Sampler *s, int axis, Expr *const *axes) {
  OpCall *call = s->call; // axes: n, offset group, tap h, tap w, h, w
  Context *context = call->context;
  Buffer *weight = call->inputs[1];
  int64_t strides[2] = {1, 1}, dilation[2] = {1, 1}, pads[4] = {0};
  node_ints(call->node, "strides", strides, 2);
  node_ints(call->node, "dilation", dilation, 2);
  node_ints(call->node, "padding", pads, 4);
  Expr *channel = axes[1];
  for (int d = 0; d < 2; d++)
    channel = expr_add(context, expr_mul(context, channel, weight->shape[d + 2]), axes[2 + d]);
  channel = expr_add(context, expr_mul(context, channel, expr_index(context, 2)),
                     expr_index(context, axis));
  Expr *offset = te_at(call->te, call->inputs[2], (Expr *[]){axes[0], channel, axes[4], axes[5]});
  Expr *start = expr_mul(context, axes[4 + axis], expr_index(context, strides[axis]));
  Expr *step = expr_mul(context, axes[2 + axis], expr_index(context, dilation[axis]));
  Expr *index = expr_sub(context, expr_add(context, start, step), expr_index(context, pads[axis]));
  return binary(s, EXPR_ADD, expr_cast(context, s->type, index),
                expr_cast(context, s->type, offset));
}

static bool deformed_shapes(OpCall *call, Deformed *d) {
  Buffer *x = call->inputs[0], *weight = call->inputs[1], *offset = call->inputs[2];
  int64_t channels, moved;
  if (x->rank != 4 || weight->rank != 4 || offset->rank != 4)
    return op_error(call, "takes an image, weights and offsets of rank 4, got %d, %d and %d",
                    x->rank, weight->rank, offset->rank);
  d->groups = node_int(call->node, "groups", 1);
  d->offset_groups = node_int(call->node, "offset_groups", 1);
  if (!expr_as_int(x->shape[1], &d->in) || !expr_as_int(weight->shape[1], &d->per_group) ||
      !expr_as_int(weight->shape[0], &d->out) || !expr_as_int(offset->shape[1], &channels) ||
      !expr_as_int(weight->shape[2], &d->windows[0].kernel) ||
      !expr_as_int(weight->shape[3], &d->windows[1].kernel))
    return op_error(call, "channel counts and the kernel must be constants");
  if (d->groups < 1 || d->offset_groups < 1 || d->per_group * d->groups != d->in ||
      d->out % d->groups || d->in % d->offset_groups)
    return op_error(call,
                    "%lld input channels, weights for %lld in %lld groups with %lld outputs, "
                    "%lld groups of offsets",
                    (long long)d->in, (long long)d->per_group, (long long)d->groups,
                    (long long)d->out, (long long)d->offset_groups);
  if (!op_windows(call, x, d->windows, 2)) return false;
  moved = d->offset_groups * d->windows[0].kernel * d->windows[1].kernel;
  Buffer *mask = call->input_count > 4 ? call->inputs[4] : NULL;
  for (int i = 0; i < 2; i++) {
    const Buffer *moving = i ? mask : offset;
    if (!moving) continue;
    if (moving->rank != 4 || moving->shape[0] != x->shape[0] ||
        !expr_is_int(moving->shape[1], i ? moved : 2 * moved) ||
        moving->shape[2] != d->windows[0].output || moving->shape[3] != d->windows[1].output)
      return op_error(call, "its %s are not [n, %lld, output]", i ? "masks" : "offsets",
                      (long long)(i ? moved : 2 * moved));
  }
  if (expr_is_int(x->shape[2], 0) || expr_is_int(x->shape[3], 0))
    return op_error(call, "the image has no elements");
  return call->input_count < 4 || !call->inputs[3] || call->inputs[3]->rank == 1 ||
         op_error(call, "the bias must have rank 1");
}

// pixels[n, h, w, tap h, tap w, group of offsets, c], times the mask. In this order the channels of
// one pixel are consecutive, and so are the elements that one output sums up.
static Buffer *moved_pixels(OpCall *call, const Deformed *d) {
  Context *context = call->context;
  Buffer *x = call->inputs[0], *weight = call->inputs[1];
  Buffer *mask = call->input_count > 4 ? call->inputs[4] : NULL;
  Sampler s = {.call = call, .space = 2, .taps = 2, .padding = "zeros", .align = true};
  s.type = coordinate_type(x->type);
  Expr *per_group = expr_index(context, d->in / d->offset_groups);
  Expr *places[] = {x->shape[0],          expr_index(context, d->offset_groups),
                    weight->shape[2],     weight->shape[3],
                    d->windows[0].output, d->windows[1].output};
  Expr *shape[] = {places[0], places[4], places[5], places[2], places[3], places[1], per_group};
  Expr *taps[2], *at[4];
  Neighbours along[2];
  for (int i = 0; i < 2; i++) {
    s.extents[i] = x->shape[i + 2];
    along[i] = neighbours_along(&s, i, places, 6, place_of_tap);
  }
  TeAxes axes = te_axes(call->te, shape, 7);
  TeReduction sum = {.combine = EXPR_ADD, .init = expr_const(context, x->type, 0)};
  tap_axes(&s, &sum, taps);
  for (int i = 0; i < 2; i++) {
    places[2 + i] = axes.at[3 + i];
    places[4 + i] = axes.at[1 + i];
  }
  at[0] = places[0] = axes.at[0];
  places[1] = axes.at[5];
  at[1] = axes.at[6];
  if (d->offset_groups > 1)
    at[1] = expr_add(context, expr_mul(context, axes.at[5], per_group), axes.at[6]);
  Expr *factor = tap_at(&s, along, places, 6, taps, at + 2);
  Expr *value = expr_mul(context, factor, te_at(call->te, x, at));
  if (mask) {
    Expr *channel = axes.at[5];
    for (int i = 0; i < 2; i++)
      channel = expr_add(context, expr_mul(context, channel, weight->shape[i + 2]), axes.at[3 + i]);
    Expr *share = te_at(call->te, mask, (Expr *[]){at[0], channel, axes.at[1], axes.at[2]});
    value = expr_mul(context, value, share);
  }
  return te_reduce(call->te, str_format(context, "%s_pixels", call->node->name), x->type, shape,
                   &axes, &sum, value);
}

static Buffer *with_bias(OpCall *call, Buffer *sum, Buffer *bias) {
  if (!bias) return sum;
  TeAxes axes = te_axes(call->te, sum->shape, sum->rank);
  Expr *value =
      expr_add(call->context, te_at(call->te, sum, axes.at), te_at(call->te, bias, &axes.at[1]));
  return te_compute(call->te, str_format(call->context, "%s_bias", call->node->name), sum->type,
                    sum->shape, &axes, value);
}

static bool define_deform_conv(OpCall *call) {
  Context *context = call->context;
  Deformed d;
  if (!deformed_shapes(call, &d)) return false;
  Buffer *x = call->inputs[0], *weight = call->inputs[1], *pixels = moved_pixels(call, &d);
  Expr *shape[] = {x->shape[0], weight->shape[0], d.windows[0].output, d.windows[1].output};
  TeAxes axes = te_axes(call->te, shape, 4);
  TeReduction sum = {.combine = EXPR_ADD, .init = expr_const(context, x->type, 0)};
  Expr *c = op_reduce_axis(call, &sum, "rc", weight->shape[1]);
  Expr *h = op_reduce_axis(call, &sum, "rh", weight->shape[2]);
  Expr *w = op_reduce_axis(call, &sum, "rw", weight->shape[3]), *channel = c;
  Expr *offset_group = expr_index(context, 0), *per_group = pixels->shape[6];
  if (d.groups > 1) {
    Expr *group = expr_floor_div(context, axes.at[1], expr_index(context, d.out / d.groups));
    channel = expr_add(context, expr_mul(context, group, weight->shape[1]), c);
  }
  if (d.offset_groups > 1) {
    offset_group = expr_floor_div(context, channel, per_group);
    channel = expr_floor_mod(context, channel, per_group);
  }
  Expr *at[] = {axes.at[0], axes.at[2], axes.at[3], h, w, offset_group, channel};
  Expr *tap = te_at(call->te, weight, (Expr *[]){axes.at[1], c, h, w});
  Buffer *result = te_reduce(call->te, call->node->name, x->type, shape, &axes, &sum,
                             expr_mul(context, te_at(call->te, pixels, at), tap));
  op_output(call, with_bias(call, result, call->input_count > 3 ? call->inputs[3] : NULL));
  return true;
}

const OpRow sample_ops[] = {
    {"image.grid_sample", NULL, 2, 2, define_grid_sample,
     "mode padding_mode align_corners method layout", .mixed_types = true,
     .positional = "method layout padding_mode align_corners"},
    {"image.affine_grid", NULL, 1, 1, define_affine_grid, "size align_corners coordinates_last",
     .positional = "size align_corners"},
    {"vision.roi_align", NULL, 2, 3, define_roi_align,
     "mode output_height output_width sampling_ratio spatial_scale half_pixel pooled_size "
     "sample_ratio aligned layout",
     .mixed_types = true,
     .positional = "pooled_size spatial_scale sample_ratio aligned layout mode"},
    {"nn.deform_conv2d", NULL, 3, 5, define_deform_conv,
     "strides padding dilation groups offset_groups", .space = 2},
};
const int sample_op_count = COUNT_OF(sample_ops);
