// SPDX-License-Identifier: Apache-2.0
// Computes the indices of sliding windows, also for convolutions, and defines the operators that
// pool over them.
#include "graph/ops/ops.h"

// ---- Windows

// The attribute's name in the user's model.
static const char *attr_name(const OpCall *call, const char *key) {
  static const char *const names[][2] = {{"pool_size", "kernel_shape"}, {"padding", "pads"}};
  for (int i = 0; call->node->user_op && i < COUNT_OF(names); i++)
    if (!strcmp(key, names[i][0])) return names[i][1];
  return key;
}

bool op_window_attr(OpCall *call, const char *key, int64_t otherwise, int64_t least, int64_t *out,
                    int count) {
  int n = node_ints(call->node, key, out, count);
  bool repeats = !call->node->user_op && (n == 1 || (2 * n == count && !strcmp(key, "padding")));
  for (int i = 0; n == 0 && i < count; i++) out[i] = otherwise;
  for (int i = n; repeats && i < count; i++) out[i] = out[i - n];
  if (n != 0 && n != count && !repeats)
    return op_error(call, "'%s' needs %d integers", attr_name(call, key), count);
  for (int i = 0; i < count; i++)
    if (out[i] < least || out[i] > INT32_MAX)
      return op_error(call, "'%s' has the value %lld", attr_name(call, key), (long long)out[i]);
  return true;
}

static int64_t reach(const WindowAxis *w) {
  return (w->kernel - 1) * w->dilation + 1;
}

// SAME padding, where output = ceil(input / stride). An odd element is added at the end (upper) or
// the start.
static bool pad_same(OpCall *call, WindowAxis *w, bool upper) {
  int64_t extent;
  if (!expr_as_int(w->input, &extent))
    return op_error(call, "auto_pad SAME needs constant extents");
  int64_t out = ceil_div(extent, w->stride);
  int64_t total = MAX_OF((out - 1) * w->stride + reach(w) - extent, (int64_t)0);
  w->begin = upper ? total / 2 : total - total / 2;
  w->end = total - w->begin;
  return true;
}

static bool set_padding(OpCall *call, WindowAxis *windows, int count) {
  const char *automatic = node_string(call->node, "auto_pad", "NOTSET");
  int64_t pads[2 * TE_MAX_RANK];
  if (!op_window_attr(call, "padding", 0, 0, pads, 2 * count)) return false;
  bool upper = !strcmp(automatic, "SAME_UPPER"), lower = !strcmp(automatic, "SAME_LOWER");
  bool none = !strcmp(automatic, "VALID");
  if (!upper && !lower && !none && strcmp(automatic, "NOTSET"))
    return op_error(call, "auto_pad '%s' is not one of NOTSET, VALID, SAME_UPPER, SAME_LOWER",
                    automatic);
  for (int i = 0; i < count; i++) {
    windows[i].begin = none ? 0 : pads[i];
    windows[i].end = none ? 0 : pads[i + count];
    if ((upper || lower) && !pad_same(call, &windows[i], upper)) return false;
  }
  return true;
}

static bool set_output(OpCall *call, WindowAxis *w, bool ceiling) {
  Context *context = call->context;
  int64_t extent, span;
  if (!expr_as_int(w->input, &extent)) {
    Expr *free_steps =
        expr_add(context, w->input, expr_index(context, w->begin + w->end - reach(w)));
    w->output =
        expr_add(context, expr_floor_div(context, free_steps, expr_index(context, w->stride)),
                 expr_index(context, 1));
    return !ceiling || op_error(call, "ceil_mode needs constant extents");
  }
  if (!add_fits(extent, w->begin + w->end - reach(w), &span)) span = -1;
  if (span < 0)
    return op_error(call, "a window of %lld does not fit %lld elements padded by %lld and %lld",
                    (long long)reach(w), (long long)extent, (long long)w->begin, (long long)w->end);
  int64_t steps = ceiling ? ceil_div(span, w->stride) : span / w->stride;
  // It must start inside of the input.
  if (ceiling && steps * w->stride >= extent + w->begin) steps--;
  w->output = expr_index(context, steps + 1);
  return true;
}

bool op_windows(OpCall *call, Buffer *x, WindowAxis *windows, int count) {
  int64_t strides[TE_MAX_RANK], dilation[TE_MAX_RANK];
  if (!op_window_attr(call, "strides", 1, 1, strides, count)) return false;
  if (!op_window_attr(call, "dilation", 1, 1, dilation, count)) return false;
  for (int i = 0; i < count; i++) {
    if (windows[i].kernel < 1) return op_error(call, "a window has the extent 0");
    windows[i].input = x->shape[i + 2];
    windows[i].stride = strides[i];
    windows[i].dilation = dilation[i];
  }
  bool ceiling = node_int(call->node, "ceil_mode", 0) != 0;
  if (!set_padding(call, windows, count)) return false;
  for (int i = 0; i < count; i++)
    if (!set_output(call, &windows[i], ceiling)) return false;
  return true;
}

static Expr *window_index(Context *context, const WindowAxis *w, Expr *at, Expr *tap) {
  Expr *start = expr_mul(context, at, expr_index(context, w->stride));
  Expr *step = expr_mul(context, tap, expr_index(context, w->dilation));
  return expr_sub(context, expr_add(context, start, step), expr_index(context, w->begin));
}

// True when the window may extend beyond the end, also when an extent is unknown.
static bool passes_end(const WindowAxis *w) {
  int64_t input, output;
  if (!expr_as_int(w->input, &input) || !expr_as_int(w->output, &output)) return w->end > 0;
  return (output - 1) * w->stride + reach(w) - w->begin > input;
}

// The input indices of the windows at `at` and their taps; returns the condition that they are
// within the tensor.
static Expr *op_window_indices(OpCall *call, const WindowAxis *windows, int count, Expr *const *at,
                               Expr *const *taps, Expr **indices) {
  Context *context = call->context;
  Expr *inside = expr_bool(context, true);
  for (int i = 0; i < count; i++) {
    Expr *index = indices[i] = window_index(context, &windows[i], at[i], taps[i]);
    if (windows[i].begin > 0)
      inside = expr_and(context, inside,
                        expr_binary(context, EXPR_LE, expr_int(context, index->type, 0), index));
    if (passes_end(&windows[i]))
      inside = expr_and(context, inside, expr_lt(context, index, windows[i].input));
  }
  return inside;
}

Expr *op_window_at(OpCall *call, Buffer *x, Expr *n, Expr *c, const WindowAxis *windows, int count,
                   Expr *const *at, Expr *const *taps, Expr *outside) {
  Expr *indices[TE_MAX_RANK] = {n, c};
  Expr *inside = op_window_indices(call, windows, count, at, taps, indices + 2);
  return expr_if_then_else(call->context, inside, te_at(call->te, x, indices), outside);
}

// ---- Pooling

typedef struct Pool {
  WindowAxis windows[TE_MAX_RANK];
  int count; // number of spatial axes
  Expr *shape[TE_MAX_RANK];
} Pool;

static bool pool_setup(OpCall *call, Pool *pool) {
  Buffer *x = call->inputs[0];
  int64_t kernel[TE_MAX_RANK];
  pool->count = x->rank - 2;
  if (pool->count < 1 || pool->count > 3 || (call->row->space && pool->count != call->row->space))
    return op_error(call, "takes a tensor of rank %d%s, got %d",
                    call->row->space ? call->row->space + 2 : 3, call->row->space ? "" : " to 5",
                    x->rank);
  if (!attrs_get(&call->node->attrs, "pool_size")) return op_error(call, "'pool_size' is missing");
  if (!op_window_attr(call, "pool_size", 1, 1, kernel, pool->count)) return false;
  for (int i = 0; i < pool->count; i++) pool->windows[i].kernel = kernel[i];
  if (!op_windows(call, x, pool->windows, pool->count)) return false;
  pool->shape[0] = x->shape[0];
  pool->shape[1] = x->shape[1];
  for (int i = 0; i < pool->count; i++) pool->shape[i + 2] = pool->windows[i].output;
  return true;
}

typedef Expr *(*OfElement)(OpCall *call, Expr *x);

static Buffer *pool_reduce(OpCall *call, Pool *pool, const char *name, ExprOp combine, Expr *init,
                           OfElement of) {
  Buffer *x = call->inputs[0];
  TeAxes axes = te_axes(call->te, pool->shape, x->rank);
  TeReduction reduction = {.combine = combine, .init = init};
  Expr *indices[TE_MAX_RANK] = {axes.at[0], axes.at[1]}, *taps[TE_MAX_RANK];
  for (int i = 0; i < pool->count; i++)
    taps[i] = op_reduce_axis(call, &reduction, str_format(call->context, "r%d", i),
                             expr_index(call->context, pool->windows[i].kernel));
  Expr *inside =
      op_window_indices(call, pool->windows, pool->count, &axes.at[2], taps, indices + 2);
  Expr *element = te_at(call->te, x, indices);
  Expr *value = expr_if_then_else(call->context, inside, of ? of(call, element) : element, init);
  return te_reduce(call->te, name, x->type, pool->shape, &axes, &reduction, value);
}

// ---- Max pooling, and the indices of the maxima

static DType place_type(const Buffer *x) {
  int64_t space = 1, extent;
  for (int i = 2; i < x->rank; i++)
    if (!expr_as_int(x->shape[i], &extent) || !mul_fits(space, extent, &space)) space = INT64_MAX;
  return space > INT32_MAX ? DTYPE_INT64 : DTYPE_INT32;
}

// The first index, counted in row-major order within [n, c], of a window's maximum. It is the
// window's first index where the maximum is NaN.
static Buffer *first_places(OpCall *call, Pool *pool, Buffer *largest) {
  Context *context = call->context;
  Buffer *x = call->inputs[0];
  DType type = place_type(x);
  TeAxes axes = te_axes(call->te, pool->shape, x->rank);
  TeReduction reduction = {.combine = EXPR_MIN, .init = op_highest(context, type)};
  Expr *indices[TE_MAX_RANK] = {axes.at[0], axes.at[1]}, *taps[TE_MAX_RANK];
  for (int i = 0; i < pool->count; i++)
    taps[i] = op_reduce_axis(call, &reduction, str_format(context, "r%d", i),
                             expr_index(context, pool->windows[i].kernel));
  Expr *inside =
      op_window_indices(call, pool->windows, pool->count, &axes.at[2], taps, indices + 2);
  Expr *place = expr_int(context, type, 0), *best = te_at(call->te, largest, axes.at);
  for (int i = 2; i < x->rank; i++)
    place = expr_add(context, expr_mul(context, place, expr_cast(context, type, x->shape[i])),
                     expr_cast(context, type, indices[i]));
  Expr *hit = expr_binary(context, EXPR_EQ, te_at(call->te, x, indices), best);
  if (dtype_is_float(x->type))
    hit = expr_binary(context, EXPR_OR, hit, expr_binary(context, EXPR_NE, best, best));
  Expr *value = expr_if_then_else(context, inside, expr_select(context, hit, place, reduction.init),
                                  reduction.init);
  return te_reduce(call->te, str_format(context, "%s_first", call->node->name), type, pool->shape,
                   &axes, &reduction, value);
}

// The index counted in column-major order instead.
static Expr *by_columns(Context *context, const Buffer *x, Expr *place) {
  Expr *result = expr_const(context, place->type, 0);
  for (int i = x->rank - 1; i >= 2; i--) {
    Expr *extent = expr_cast(context, place->type, x->shape[i]), *weight = place;
    weight = i == 2 ? place : expr_floor_mod(context, place, extent);
    for (int k = 2; k < i; k++)
      weight = expr_mul(context, weight, expr_cast(context, place->type, x->shape[k]));
    result = expr_add(context, result, weight);
    place = expr_floor_div(context, place, extent);
  }
  return result;
}

static Buffer *places(OpCall *call, Pool *pool, Buffer *largest) {
  Context *context = call->context;
  Buffer *x = call->inputs[0], *first = first_places(call, pool, largest);
  TeAxes axes = te_axes(call->te, pool->shape, x->rank);
  Expr *at = expr_cast(context, DTYPE_INT64, te_at(call->te, first, axes.at));
  if (node_int(call->node, "storage_order", 0)) at = by_columns(context, x, at);
  Expr *channel = expr_add(context, expr_mul(context, axes.at[0], x->shape[1]), axes.at[1]);
  for (int i = 2; i < x->rank; i++) channel = expr_mul(context, channel, x->shape[i]);
  return te_compute(call->te, str_format(context, "%s_places", call->node->name), DTYPE_INT64,
                    pool->shape, &axes,
                    expr_add(context, expr_cast(context, DTYPE_INT64, channel), at));
}

// The second result, when it is requested, has the indices counted over the whole tensor.
static bool define_max_pool(OpCall *call) {
  Pool pool;
  if (!pool_setup(call, &pool)) return false;
  Expr *lowest = op_lowest(call->context, call->inputs[0]->type);
  // NaN is ignored, as in the standard's reference and in ONNX Runtime.
  Buffer *largest =
      pool_reduce(call, &pool, call->node->name, EXPR_MAX, lowest, op_number_or_lowest);
  op_output(call, largest);
  if (call->node->output_count > 1) op_output(call, places(call, &pool, largest));
  return true;
}

// ---- Means and norms

static Expr *ceil_quotient(Context *context, Expr *a, int64_t b) {
  return expr_floor_div(context, expr_add(context, a, expr_index(context, b - 1)),
                        expr_index(context, b));
}

// The number of taps of the window at `at` that are inside of the tensor, or also in its padding.
static Expr *taps_counted(Context *context, const WindowAxis *w, Expr *at, bool with_padding) {
  Expr *start = window_index(context, w, at, expr_index(context, 0));
  int64_t before = with_padding ? w->begin : 0, behind = with_padding ? w->end : 0;
  Expr *from = expr_sub(context, expr_index(context, -before), start);
  Expr *to = expr_sub(context, expr_add(context, w->input, expr_index(context, behind)), start);
  Expr *first =
      expr_max(context, ceil_quotient(context, from, w->dilation), expr_index(context, 0));
  Expr *last =
      expr_min(context, ceil_quotient(context, to, w->dilation), expr_index(context, w->kernel));
  return expr_sub(context, last, first);
}

static bool define_avg_pool(OpCall *call) {
  Context *context = call->context;
  Buffer *x = call->inputs[0];
  Pool pool;
  if (!pool_setup(call, &pool)) return false;
  bool with_padding = node_int(call->node, "count_include_pad", 0) != 0;
  Buffer *sum = pool_reduce(call, &pool, str_format(context, "%s_sum", call->node->name), EXPR_ADD,
                            expr_const(context, x->type, 0), NULL);
  TeAxes axes = te_axes(call->te, pool.shape, x->rank);
  Expr *count = NULL;
  int64_t window = 1;
  bool whole = true; // true when every window has all its taps
  for (int i = 0; i < pool.count; i++) {
    const WindowAxis *w = &pool.windows[i];
    Expr *taps = taps_counted(context, w, axes.at[i + 2], with_padding);
    count = count ? expr_mul(context, count, taps) : taps;
    window *= w->kernel;
    whole &= !passes_end(w) && w->begin == 0;
  }
  if (whole) count = expr_index(context, window);
  Expr *value = expr_binary(context, dtype_is_float(x->type) ? EXPR_DIV : EXPR_TRUNC_DIV,
                            te_at(call->te, sum, axes.at), expr_cast(context, x->type, count));
  op_output(call, te_compute(call->te, call->node->name, x->type, pool.shape, &axes, value));
  return true;
}

// |x|^p, and the p-th root of a sum.
static Expr *power_of(OpCall *call, Expr *x) {
  Context *context = call->context;
  int64_t p = node_int(call->node, "p", 2);
  if (p == 2) return expr_mul(context, x, x);
  Expr *size = expr_unary(context, EXPR_ABS, x);
  return p == 1 ? size
                : expr_binary(context, EXPR_POW, size, expr_const(context, x->type, (double)p));
}

static Buffer *root_of(OpCall *call, Buffer *sum) {
  Context *context = call->context;
  int64_t p = node_int(call->node, "p", 2);
  TeAxes axes = te_axes(call->te, sum->shape, sum->rank);
  Expr *x = te_at(call->te, sum, axes.at),
       *exponent = expr_const(context, x->type, 1.0 / (double)p);
  Expr *value = p == 1   ? x
                : p == 2 ? expr_unary(context, EXPR_SQRT, x)
                         : expr_binary(context, EXPR_POW, x, exponent);
  return te_compute(call->te, call->node->name, sum->type, sum->shape, &axes, value);
}

static bool check_norm(OpCall *call) {
  int64_t p = node_int(call->node, "p", 2);
  return p >= 1 || op_error(call, "'p' is %lld, expected 1 or more", (long long)p);
}

static bool define_lp_pool(OpCall *call) {
  Pool pool;
  if (!check_norm(call) || !pool_setup(call, &pool)) return false;
  Str name = str_format(call->context, "%s_sum", call->node->name);
  Expr *zero = expr_const(call->context, call->inputs[0]->type, 0);
  op_output(call, root_of(call, pool_reduce(call, &pool, name, EXPR_ADD, zero, power_of)));
  return true;
}

// ---- Global pooling

static Buffer *reduce_space(OpCall *call, const char *name, ExprOp combine, Expr *init,
                            OfElement of) {
  Buffer *x = call->inputs[0];
  Expr *shape[TE_MAX_RANK], *indices[TE_MAX_RANK];
  for (int i = 0; i < x->rank; i++) shape[i] = i < 2 ? x->shape[i] : expr_index(call->context, 1);
  TeAxes axes = te_axes(call->te, shape, x->rank);
  TeReduction reduction = {.combine = combine, .init = init};
  for (int i = 0; i < x->rank; i++)
    indices[i] = i < 2 ? axes.at[i]
                       : op_reduce_axis(call, &reduction, str_format(call->context, "r%d", i - 2),
                                        x->shape[i]);
  Expr *element = te_at(call->te, x, indices);
  return te_reduce(call->te, name, x->type, shape, &axes, &reduction,
                   of ? of(call, element) : element);
}

static bool define_global_avg_pool(OpCall *call) {
  Context *context = call->context;
  Buffer *x = call->inputs[0];
  if (x->rank < 2) return op_error(call, "takes a tensor of rank 2 or more, got %d", x->rank);
  Buffer *sum = reduce_space(call, str_format(context, "%s_sum", call->node->name), EXPR_ADD,
                             expr_const(context, x->type, 0), NULL);
  Expr *count = expr_index(context, 1);
  for (int i = 2; i < x->rank; i++) count = expr_mul(context, count, x->shape[i]);
  TeAxes axes = te_axes(call->te, sum->shape, sum->rank);
  Expr *value = expr_binary(context, EXPR_DIV, te_at(call->te, sum, axes.at),
                            expr_cast(context, x->type, count));
  op_output(call, te_compute(call->te, call->node->name, x->type, sum->shape, &axes, value));
  return true;
}

static bool define_global_max_pool(OpCall *call) {
  Buffer *x = call->inputs[0];
  if (x->rank < 2) return op_error(call, "takes a tensor of rank 2 or more, got %d", x->rank);
  op_output(call, reduce_space(call, call->node->name, EXPR_MAX, op_lowest(call->context, x->type),
                               NULL));
  return true;
}

static bool define_global_lp_pool(OpCall *call) {
  Buffer *x = call->inputs[0];
  if (x->rank < 2) return op_error(call, "takes a tensor of rank 2 or more, got %d", x->rank);
  if (!check_norm(call)) return false;
  Str name = str_format(call->context, "%s_sum", call->node->name);
  Expr *zero = expr_const(call->context, x->type, 0);
  op_output(call, root_of(call, reduce_space(call, name, EXPR_ADD, zero, power_of)));
  return true;
}

// ---- Adaptive pooling: window i of n covers the elements from floor(i * extent / n) to
// ceil((i + 1) * extent / n)

static bool adaptive_sizes(OpCall *call, const Buffer *x, int64_t *sizes) {
  int space = call->row->space, count = node_ints(call->node, "output_size", sizes, space);
  for (int i = 1; count == 1 && i < space; i++) sizes[i] = sizes[0];
  if (count < 0 || (count > 1 && count != space))
    return op_error(call, "'output_size' needs %d integers", space);
  for (int i = 0; i < space; i++) {
    int64_t extent;
    if (!expr_as_int(x->shape[2 + i], &extent))
      return op_error(call, "needs a constant extent of axis %d", 2 + i);
    if (!count) sizes[i] = extent;
    if (sizes[i] < 1 || sizes[i] > INT32_MAX || extent < 1)
      return op_error(call, "has %lld windows over %lld elements", (long long)sizes[i],
                      (long long)extent);
  }
  return true;
}

// The number of elements of the largest window, or of all where they are equal.
static int64_t largest_window(int64_t extent, int64_t count) {
  int64_t largest = 0;
  if (extent % count == 0) return extent / count;
  for (int64_t i = 0; i < MIN_OF(count, extent); i++) // the sizes repeat after `extent` windows
    largest = MAX_OF(largest, ceil_div((i + 1) * extent, count) - i * extent / count);
  return largest;
}

typedef struct AdaptiveWindow {
  Expr *begin, *end;
} AdaptiveWindow;

static AdaptiveWindow adaptive_window(Context *context, int64_t extent, int64_t count, Expr *at) {
  Expr *from = expr_mul(context, at, expr_index(context, extent)), *n = expr_index(context, count);
  Expr *to = expr_add(context, from, expr_index(context, extent));
  return (AdaptiveWindow){expr_floor_div(context, from, n), ceil_quotient(context, to, count)};
}

// The sum over each window; sets the extents of x.
static Buffer *adaptive_sums(OpCall *call, Expr *const *shape, const int64_t *sizes,
                             int64_t *extents) {
  Context *context = call->context;
  Buffer *x = call->inputs[0];
  TeAxes axes = te_axes(call->te, shape, x->rank);
  TeReduction reduction = {.combine = EXPR_ADD, .init = expr_const(context, x->type, 0)};
  Expr *indices[TE_MAX_RANK] = {axes.at[0], axes.at[1]}, *inside = expr_bool(context, true);
  for (int i = 0; i < call->row->space; i++) {
    expr_as_int(x->shape[2 + i], &extents[i]);
    Expr *most = expr_index(context, largest_window(extents[i], sizes[i]));
    Expr *tap = op_reduce_axis(call, &reduction, str_format(context, "r%d", i), most);
    AdaptiveWindow window = adaptive_window(context, extents[i], sizes[i], axes.at[2 + i]);
    indices[2 + i] = expr_add(context, window.begin, tap);
    if (extents[i] % sizes[i])
      inside = expr_and(context, inside, expr_lt(context, indices[2 + i], window.end));
  }
  Expr *value = expr_if_then_else(context, inside, te_at(call->te, x, indices), reduction.init);
  return te_reduce(call->te, str_format(context, "%s_sum", call->node->name), x->type, shape, &axes,
                   &reduction, value);
}

static bool define_adaptive_avg_pool(OpCall *call) {
  Context *context = call->context;
  Buffer *x = call->inputs[0];
  int64_t sizes[TE_MAX_RANK], extents[TE_MAX_RANK];
  int space = call->row->space;
  if (x->rank != 2 + space)
    return op_error(call, "takes a tensor of rank %d, got %d", 2 + space, x->rank);
  if (!adaptive_sizes(call, x, sizes)) return false;
  Expr *shape[TE_MAX_RANK] = {x->shape[0], x->shape[1]};
  for (int i = 0; i < space; i++) shape[2 + i] = expr_index(context, sizes[i]);
  Buffer *sum = adaptive_sums(call, shape, sizes, extents);
  TeAxes axes = te_axes(call->te, shape, x->rank);
  Expr *count = expr_index(context, 1);
  for (int i = 0; i < space; i++) {
    AdaptiveWindow window = adaptive_window(context, extents[i], sizes[i], axes.at[2 + i]);
    Expr *taps = extents[i] % sizes[i] ? expr_sub(context, window.end, window.begin)
                                       : expr_index(context, extents[i] / sizes[i]);
    count = expr_mul(context, count, taps);
  }
  Expr *value = expr_binary(context, dtype_is_float(x->type) ? EXPR_DIV : EXPR_TRUNC_DIV,
                            te_at(call->te, sum, axes.at), expr_cast(context, x->type, count));
  op_output(call, te_compute(call->te, call->node->name, x->type, shape, &axes, value));
  return true;
}

static bool adaptive_avg_pool_in_letters(OpCall *call) {
  return op_in_letters(call, define_adaptive_avg_pool);
}

// ---- Local response normalisation over channels: x / (bias + alpha/size * Σ x²)^beta

static bool define_lrn(OpCall *call) {
  Context *context = call->context;
  Buffer *x = call->inputs[0];
  int64_t size = node_int(call->node, "size", 0);
  if (x->rank < 2) return op_error(call, "takes a tensor of rank 2 or more, got %d", x->rank);
  if (size < 1 || size > INT32_MAX)
    return op_error(call, "'size' is %lld, expected 1 or more", (long long)size);
  TeAxes axes = te_axes(call->te, x->shape, x->rank);
  TeReduction sum = {.combine = EXPR_ADD, .init = expr_const(context, x->type, 0)};
  WindowAxis window = {.input = x->shape[1],
                       .output = x->shape[1],
                       .kernel = size,
                       .stride = 1,
                       .dilation = 1,
                       .begin = (size - 1) / 2,
                       .end = size / 2};
  Expr *tap = op_reduce_axis(call, &sum, "rc", expr_index(context, size)), *at[TE_MAX_RANK];
  memcpy(at, axes.at, sizeof at);
  Expr *inside = op_window_indices(call, &window, 1, &axes.at[1], &tap, &at[1]);
  Expr *element = te_at(call->te, x, at);
  Expr *square = expr_if_then_else(context, inside, expr_mul(context, element, element), sum.init);
  Buffer *squares = te_reduce(call->te, str_format(context, "%s_sum", call->node->name), x->type,
                              x->shape, &axes, &sum, square);
  axes = te_axes(call->te, x->shape, x->rank);
  double share = node_float(call->node, "alpha", 1e-4) / (double)size;
  Expr *scaled =
      expr_mul(context, te_at(call->te, squares, axes.at), expr_const(context, x->type, share));
  Expr *base =
      expr_add(context, scaled, expr_const(context, x->type, node_float(call->node, "bias", 1)));
  Expr *power = expr_binary(context, EXPR_POW, base,
                            expr_const(context, x->type, node_float(call->node, "beta", 0.75)));
  Expr *value = expr_binary(context, EXPR_DIV, te_at(call->te, x, axes.at), power);
  op_output(call, te_compute(call->te, call->node->name, x->type, x->shape, &axes, value));
  return true;
}

#define WINDOW_ATTRS "pool_size strides padding dilation auto_pad ceil_mode"
static const char max_attrs[] = WINDOW_ATTRS " storage_order count_include_pad layout out_layout";
static const char avg_attrs[] = WINDOW_ATTRS " count_include_pad layout out_layout";

static const OpLetters pool_letters = {"layout", {"NCW", "NCHW", "NCDHW"}, {NULL}};

static bool max_pool_in_letters(OpCall *call) {
  return op_in_letters(call, define_max_pool);
}

static bool avg_pool_in_letters(OpCall *call) {
  return op_in_letters(call, define_avg_pool);
}

#define POOL_POSITIONAL                                                                            \
  .positional = "pool_size strides padding dilation ceil_mode count_include_pad layout out_layout"

static const char adaptive_attrs[] = "output_size layout out_layout";

const OpRow pool_ops[] = {
    {"nn.max_pool1d", "MaxPool", 1, 1, max_pool_in_letters, max_attrs, .space = 1,
     .letters = &pool_letters, POOL_POSITIONAL},
    {"nn.max_pool2d", "MaxPool", 1, 1, max_pool_in_letters, max_attrs, .space = 2,
     .letters = &pool_letters, POOL_POSITIONAL},
    {"nn.max_pool3d", "MaxPool", 1, 1, max_pool_in_letters, max_attrs, .space = 3,
     .letters = &pool_letters, POOL_POSITIONAL},
    {"nn.avg_pool1d", "AveragePool", 1, 1, avg_pool_in_letters, avg_attrs, .space = 1,
     .letters = &pool_letters, POOL_POSITIONAL},
    {"nn.avg_pool2d", "AveragePool", 1, 1, avg_pool_in_letters, avg_attrs, .space = 2,
     .letters = &pool_letters, POOL_POSITIONAL},
    {"nn.avg_pool3d", "AveragePool", 1, 1, avg_pool_in_letters, avg_attrs, .space = 3,
     .letters = &pool_letters, POOL_POSITIONAL},
    {"nn.adaptive_avg_pool1d", NULL, 1, 1, adaptive_avg_pool_in_letters, adaptive_attrs, .space = 1,
     .letters = &pool_letters, .positional = adaptive_attrs},
    {"nn.adaptive_avg_pool2d", NULL, 1, 1, adaptive_avg_pool_in_letters, adaptive_attrs, .space = 2,
     .letters = &pool_letters, .positional = adaptive_attrs},
    {"nn.adaptive_avg_pool3d", NULL, 1, 1, adaptive_avg_pool_in_letters, adaptive_attrs, .space = 3,
     .letters = &pool_letters, .positional = adaptive_attrs},
    {"nn.lp_pool", "LpPool", 1, 1, define_lp_pool, WINDOW_ATTRS " p"},
    {"nn.global_avg_pool2d", "GlobalAveragePool", 1, 1, define_global_avg_pool, NULL},
    {"nn.global_max_pool2d", "GlobalMaxPool", 1, 1, define_global_max_pool, NULL},
    {"nn.lrn", "LRN", 1, 1, define_lrn, "size alpha beta bias"},
    {"nn.global_lp_pool", "GlobalLpPool", 1, 1, define_global_lp_pool, "p"},
};
const int pool_op_count = COUNT_OF(pool_ops);
