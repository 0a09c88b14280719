// SPDX-License-Identifier: Apache-2.0
// Defines the operators that select elements: by position (slices, splits, repetitions, triangles),
// and by indices that are known only at run time. A negative index counts from the end. An index
// outside of its axis selects the nearest element, so that no memory outside of the tensor is read.
#include "graph/ops/ops.h"
#include "interp/interp.h"

static bool static_extent(OpCall *call, const Buffer *x, int axis, int64_t *extent) {
  return expr_as_int(x->shape[axis], extent) ||
         op_error(call, "the extent of axis %d must be known", axis);
}

// An axis without elements has none to choose, so the result must be empty too.
static bool can_choose(OpCall *call, const Expr *extent, Expr *const *shape, int rank) {
  bool some = true;
  for (int i = 0; i < rank; i++) some &= !expr_is_int(shape[i], 0);
  return !some || !expr_is_int(extent, 0) ||
         op_error(call, "chooses from an axis without elements");
}

// ---- By position

typedef struct Range {
  Expr *begin, *count;
  int64_t step;
} Range;

// The begin and end of a Python slice: negative ones count from the end, and both are clamped to
// the axis.
static Range range_of(Context *context, int64_t begin, int64_t end, int64_t step, int64_t extent) {
  int64_t low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
  if (begin < 0) begin += extent;
  if (end < 0) end += extent;
  begin = MIN_OF(MAX_OF(begin, low), high);
  end = MIN_OF(MAX_OF(end, low), high);
  int64_t count = step > 0 ? ceil_div(end - begin, step) : ceil_div(begin - end, -step);
  return (Range){expr_index(context, begin), expr_index(context, MAX_OF(count, 0)), step};
}

// Knows that the sizes which are extents of the tensor are not negative.
static Analyzer *analyzer_of_extents(Context *context, const Buffer *x) {
  Analyzer *analyzer = analyzer_new(context);
  for (int i = 0; i < x->rank; i++) {
    DType type = x->shape[i]->type;
    if (x->shape[i]->op == EXPR_VAR)
      analyzer_bind(analyzer, x->shape[i], expr_int(context, type, 0),
                    expr_int(context, type, INT32_MAX));
  }
  return analyzer;
}

// The smaller or the larger one, without a choice where the order is known.
static Expr *chosen(Context *context, Analyzer *analyzer, ExprOp op, Expr *a, Expr *b) {
  Expr *smaller = op == EXPR_MIN ? a : b, *larger = op == EXPR_MIN ? b : a;
  if (analyzer_prove(analyzer, expr_binary(context, EXPR_LE, a, b))) return smaller;
  if (analyzer_prove(analyzer, expr_binary(context, EXPR_LE, b, a))) return larger;
  return expr_binary(context, op, a, b);
}

// A begin or end, where it or the extent follows from free sizes.
static Expr *free_bound(Context *context, Analyzer *analyzer, Expr *at, Expr *extent) {
  Expr *zero = expr_int(context, DTYPE_INT64, 0);
  Expr *from_end = expr_add(context, at, extent);
  Expr *is_negative = expr_binary(context, EXPR_LT, at, zero);
  if (analyzer_prove(analyzer, is_negative))
    at = from_end;
  else if (!analyzer_prove(analyzer, expr_binary(context, EXPR_LE, zero, at)))
    at = expr_select(context, is_negative, from_end, at);
  at = chosen(context, analyzer, EXPR_MIN, at, extent);
  return chosen(context, analyzer, EXPR_MAX, at, zero);
}

// The same as range_of for bounds and extents that are expressions, and a positive step.
static Range free_range(OpCall *call, Expr *begin, Expr *end, int64_t step, Expr *extent) {
  Context *context = call->context;
  Analyzer *analyzer = analyzer_of_extents(context, call->inputs[0]);
  Expr *zero = expr_int(context, DTYPE_INT64, 0);
  extent = expr_cast(context, DTYPE_INT64, extent);
  begin = free_bound(context, analyzer, expr_cast(context, DTYPE_INT64, begin), extent);
  end = free_bound(context, analyzer, expr_cast(context, DTYPE_INT64, end), extent);
  Expr *length = chosen(context, analyzer, EXPR_MAX, expr_sub(context, end, begin), zero);
  Expr *up = expr_add(context, length, expr_int(context, DTYPE_INT64, step - 1));
  Expr *count = expr_floor_div(context, up, expr_int(context, DTYPE_INT64, step));
  return (Range){analyzer_simplify(analyzer, begin), analyzer_simplify(analyzer, count), step};
}

// The ranges of a slice, axis by axis.
typedef struct Slice {
  Range ranges[TE_MAX_RANK];
  bool sliced[TE_MAX_RANK]; // false: the whole axis
} Slice;

static bool slice_axis(OpCall *call, Slice *slice, int axis, Expr *begin, Expr *end, int64_t step) {
  int64_t extent, first, last;
  Expr *whole = call->inputs[0]->shape[axis];
  if (step == 0 || step == INT64_MIN) return op_error(call, "axis %d has the step 0", axis);
  slice->sliced[axis] = true;
  if (expr_as_int(begin, &first) && expr_as_int(end, &last) && expr_as_int(whole, &extent))
    slice->ranges[axis] = range_of(call->context, first, last, step, extent);
  else if (step > 0)
    slice->ranges[axis] = free_range(call, begin, end, step, whole);
  else
    return op_error(call, "axis %d has a negative step and a begin, end or extent without a value",
                    axis);
  return true;
}

// The integers of a list, which may follow from sizes; returns their number, or -1.
static int listed(const Node *node, const char *key, Expr **out) {
  Expr *list = attrs_get(&node->attrs, key);
  bool is_list = list && list->op == EXPR_TUPLE;
  int count = is_list ? list->count : list != NULL;
  if (count > TE_MAX_RANK) return -1;
  for (int i = 0; i < count; i++) {
    out[i] = is_list ? list->args[i] : list;
    if (!dtype_is_int(out[i]->type) || out[i]->type.lanes != 1) return -1;
  }
  return count;
}

static bool slice_ranges(OpCall *call, Slice *slice) {
  int64_t axes[TE_MAX_RANK], steps[TE_MAX_RANK];
  Expr *begin[TE_MAX_RANK], *end[TE_MAX_RANK];
  int count = node_ints(call->node, "axes", axes, TE_MAX_RANK), axis;
  int step_count = node_ints(call->node, "strides", steps, TE_MAX_RANK);
  if (count < 0 || listed(call->node, "begin", begin) != count ||
      listed(call->node, "end", end) != count || (step_count && step_count != count))
    return op_error(call, "'axes', 'begin', 'end' and 'strides' must be lists of one length");
  for (int i = 0; i < count; i++) {
    if (!op_axis(call, axes[i], call->inputs[0]->rank, &axis)) return false;
    if (slice->sliced[axis]) return op_error(call, "'axes' names axis %d twice", axis);
    if (!slice_axis(call, slice, axis, begin[i], end[i], step_count ? steps[i] : 1)) return false;
  }
  return true;
}

static bool define_slice(OpCall *call, const Slice *slice) {
  Context *context = call->context;
  Buffer *x = call->inputs[0];
  const Range *ranges = slice->ranges;
  const bool *sliced = slice->sliced;
  Expr *shape[TE_MAX_RANK], *indices[TE_MAX_RANK];
  for (int i = 0; i < x->rank; i++) shape[i] = sliced[i] ? ranges[i].count : x->shape[i];
  TeAxes axes = te_axes(call->te, shape, x->rank);
  for (int i = 0; i < x->rank; i++) {
    indices[i] = axes.at[i];
    if (!sliced[i] || expr_is_int(ranges[i].count, 0)) continue;
    Expr *steps = expr_mul(context, axes.at[i], expr_index(context, ranges[i].step));
    indices[i] = expr_add(context, steps, ranges[i].begin);
  }
  op_output(call, te_compute(call->te, call->node->name, x->type, shape, &axes,
                             te_at(call->te, x, indices)));
  return true;
}

static bool define_strided_slice(OpCall *call) {
  Slice slice = {.sliced = {false}};
  return slice_ranges(call, &slice) && define_slice(call, &slice);
}

// The element of axis `axis` in a tensor that has one for each axis.
static Expr *axis_element(OpCall *call, int input, int axis) {
  Expr *at = expr_index(call->context, axis);
  return te_at(call->te, call->inputs[input], &at);
}

// A slice whose bounds are known at run time only, of the shape that is stated in advance:
// out[i] = x[begin + i * stride]. A negative begin counts from the end, and what would be read
// outside of the axis is the nearest element.
static bool define_moving_slice(OpCall *call, const int64_t *extents) {
  Context *context = call->context;
  Buffer *x = call->inputs[0];
  Expr *shape[TE_MAX_RANK], *indices[TE_MAX_RANK];
  for (int i = 0; i < x->rank; i++) shape[i] = expr_index(context, extents[i]);
  for (int i = 0; i < x->rank; i++)
    if (!can_choose(call, x->shape[i], shape, x->rank)) return false;
  TeAxes axes = te_axes(call->te, shape, x->rank);
  for (int i = 0; i < x->rank; i++) {
    Expr *begin = op_position(context, axis_element(call, 1, i), x->shape[i]);
    Expr *step = expr_cast(context, x->shape[i]->type, axis_element(call, 3, i));
    Expr *last = expr_sub(context, x->shape[i], expr_index(context, 1));
    Expr *at = expr_add(context, begin, expr_mul(context, axes.at[i], step));
    indices[i] = expr_max(context, expr_min(context, at, last), expr_index(context, 0));
  }
  op_output(call, te_compute(call->te, call->node->name, x->type, shape, &axes,
                             te_at(call->te, x, indices)));
  return true;
}

// Does input `input` hold an integer for each axis of the tensor?
static bool has_axes(OpCall *call, int input) {
  const Buffer *b = call->inputs[input];
  return op_check_indices(call, input) &&
         ((b->rank == 1 && expr_is_int(b->shape[0], call->inputs[0]->rank)) ||
          op_error(call, "its begins, ends and strides are lists with one element for each axis"));
}

// Begins, ends and steps are tensors. The shape of the result depends on their elements: these are
// known, or R.match_cast states the shape.
static bool define_dynamic_strided_slice(OpCall *call) {
  int rank = call->inputs[0]->rank;
  int64_t given[3][TE_MAX_RANK], extents[TE_MAX_RANK];
  Slice slice = {.sliced = {false}};
  bool is_known = true, is_stated = node_ints(call->node, "shape", extents, TE_MAX_RANK) == rank;
  for (int i = 0; i < 3; i++) {
    if (!has_axes(call, i + 1)) return false;
    is_known &= op_known_ints(call, i + 1, given[i], TE_MAX_RANK) == rank;
  }
  if (!is_known && is_stated) return define_moving_slice(call, extents);
  if (!is_known)
    return op_error(call, "its begins, ends and strides are known only at run time: state the "
                          "shape of the result with R.match_cast(…, R.Tensor((…), …)), and give "
                          "the sizes that are variables there");
  for (int i = 0; i < rank; i++) {
    Expr *begin = expr_int(call->context, DTYPE_INT64, given[0][i]);
    Expr *end = expr_int(call->context, DTYPE_INT64, given[1][i]);
    if (!slice_axis(call, &slice, i, begin, end, given[2][i])) return false;
  }
  return define_slice(call, &slice);
}

// `indices_or_sections` as TVM has it: the number of parts, or the indices at which the parts
// after the first begin. Sets the sizes of the parts; false where the attribute is absent.
static bool split_sections(const OpCall *call, int64_t extent, int64_t *sizes, int *parts) {
  Expr *value = attrs_get(&call->node->attrs, "indices_or_sections");
  if (!value) return false;
  int count = node_ints(call->node, "indices_or_sections", sizes, OP_MOST_PARTS - 1);
  if (count == 1 && value->op == EXPR_INT) {
    *parts = (int)MIN_OF(MAX_OF(sizes[0], (int64_t)1), OP_MOST_PARTS);
    int64_t each = ceil_div(extent, *parts); // the last parts may be smaller
    for (int i = 0; i < *parts; i++) sizes[i] = MAX_OF(MIN_OF(each, extent - i * each), 0);
    return true;
  }
  int64_t begin = 0;
  for (int i = 0; i <= count; i++) {
    int64_t end = i < count ? sizes[i] : extent;
    sizes[i] = MIN_OF(end, extent) - begin;
    begin += sizes[i];
  }
  *parts = count + 1;
  return count >= 0;
}

// The sizes of the parts: the stated ones, or equal ones of which the last may be smaller.
static bool split_sizes(OpCall *call, int axis, int64_t *sizes, int *parts) {
  int64_t extent, sum = 0;
  if (!static_extent(call, call->inputs[0], axis, &extent)) return false;
  bool given = split_sections(call, extent, sizes, parts);
  if (!given) *parts = node_ints(call->node, "sizes", sizes, OP_MOST_PARTS);
  if (*parts < 0) return op_error(call, "'sizes' has more than %d parts", OP_MOST_PARTS);
  if (*parts == 0) {
    *parts = (int)MIN_OF(node_int(call->node, "parts", 0), OP_MOST_PARTS);
    if (*parts < 1) return op_error(call, "takes 'sizes', or the number of 'parts'");
    int64_t each = ceil_div(extent, *parts);
    for (int i = 0; i < *parts; i++) sizes[i] = MAX_OF(MIN_OF(each, extent - i * each), 0);
  }
  for (int i = 0; i < *parts; i++) {
    if (sizes[i] < 0 || !add_fits(sum, sizes[i], &sum))
      return op_error(call, "part %d has the extent %lld", i, (long long)sizes[i]);
  }
  return sum == extent || op_error(call, "the parts have %lld of the %lld elements of axis %d",
                                   (long long)sum, (long long)extent, axis);
}

static bool define_split(OpCall *call) {
  Context *context = call->context;
  Buffer *x = call->inputs[0];
  int64_t sizes[OP_MOST_PARTS], begin = 0;
  int axis, parts;
  if (!op_axis(call, node_int(call->node, "axis", 0), x->rank, &axis) ||
      !split_sizes(call, axis, sizes, &parts))
    return false;
  for (int i = 0; i < parts; begin += sizes[i++]) {
    Expr *shape[TE_MAX_RANK], *indices[TE_MAX_RANK];
    memcpy(shape, x->shape, sizeof *shape * (size_t)x->rank);
    shape[axis] = expr_index(context, sizes[i]);
    TeAxes axes = te_axes(call->te, shape, x->rank);
    memcpy(indices, axes.at, sizeof indices);
    if (sizes[i]) indices[axis] = expr_add(context, axes.at[axis], expr_index(context, begin));
    Str name = parts == 1 ? call->node->name : str_format(context, "%s_%d", call->node->name, i);
    op_output(call, te_compute(call->te, name, x->type, shape, &axes, te_at(call->te, x, indices)));
  }
  return true;
}

// Broadcasts the input to its common shape with 'shape'.
static bool define_broadcast_to(OpCall *call) {
  Context *context = call->context;
  Buffer *x = call->inputs[0], wanted = {0};
  int64_t extents[TE_MAX_RANK];
  Expr *to[TE_MAX_RANK], *shape[TE_MAX_RANK];
  int rank;
  wanted.rank = node_ints(call->node, "shape", extents, TE_MAX_RANK);
  wanted.shape = to;
  if (wanted.rank < 0)
    return op_error(call, "'shape' must be a list of at most %d integers", TE_MAX_RANK);
  for (int i = 0; i < wanted.rank; i++) {
    if (extents[i] < 0) return op_error(call, "'shape' has the extent %lld", (long long)extents[i]);
    to[i] = expr_index(context, extents[i]);
  }
  if (!op_broadcast_shape(call, (Buffer *[]){x, &wanted}, 2, shape, &rank)) return false;
  TeAxes axes = te_axes(call->te, shape, rank);
  op_output(call, te_compute(call->te, call->node->name, x->type, shape, &axes,
                             op_broadcast_at(call, x, &axes)));
  return true;
}

// As in NumPy, the shorter one of the list of repeats and the shape begins with ones.
static bool define_tile(OpCall *call) {
  Context *context = call->context;
  Buffer *x = call->inputs[0];
  int64_t given[TE_MAX_RANK];
  Expr *shape[TE_MAX_RANK], *indices[TE_MAX_RANK];
  int count = node_ints(call->node, "repeats", given, TE_MAX_RANK), rank = MAX_OF(count, x->rank);
  if (count < 0 || (call->node->user_op && count != x->rank))
    return op_error(call, "'repeats' needs %d integers", x->rank);
  for (int i = 0; i < rank; i++) {
    int64_t repeats = i < rank - count ? 1 : given[i - (rank - count)];
    int axis = i - (rank - x->rank);
    if (repeats < 0) return op_error(call, "axis %d is repeated %lld times", i, (long long)repeats);
    Expr *extent = axis < 0 ? expr_index(context, 1) : x->shape[axis];
    shape[i] = expr_mul(context, extent, expr_index(context, repeats));
  }
  TeAxes axes = te_axes(call->te, shape, rank);
  for (int i = 0; i < x->rank; i++) {
    Expr *at = axes.at[i + rank - x->rank];
    bool once = shape[i + rank - x->rank] == x->shape[i];
    indices[i] =
        once || expr_is_int(x->shape[i], 0) ? at : expr_floor_mod(context, at, x->shape[i]);
  }
  op_output(call, te_compute(call->te, call->node->name, x->type, shape, &axes,
                             te_at(call->te, x, indices)));
  return true;
}

// Repeats each element along the axis, or along the flattened tensor without one.
static bool define_repeat(OpCall *call) {
  Context *context = call->context;
  Buffer *x = call->inputs[0];
  int64_t repeats = node_int(call->node, "repeats", -1);
  bool flat = !attrs_get(&call->node->attrs, "axis");
  int axis = 0, rank = flat ? 1 : x->rank;
  if (repeats < 0) return op_error(call, "'repeats' is missing or negative");
  if (!flat && !op_axis(call, node_int(call->node, "axis", 0), x->rank, &axis)) return false;
  Expr *shape[TE_MAX_RANK], *indices[TE_MAX_RANK], *all = expr_index(context, 1);
  for (int i = 0; i < x->rank; i++) all = expr_mul(context, all, x->shape[i]);
  for (int i = 0; i < rank; i++) shape[i] = flat ? all : x->shape[i];
  shape[axis] = expr_mul(context, shape[axis], expr_index(context, repeats));
  TeAxes axes = te_axes(call->te, shape, rank);
  Expr *place = axes.at[axis];
  if (repeats > 1) place = expr_floor_div(context, place, expr_index(context, repeats));
  for (int i = x->rank - 1; i >= 0; i--) {
    bool splits = flat && i && !expr_is_int(x->shape[i], 0);
    indices[i] = splits              ? expr_floor_mod(context, place, x->shape[i])
                 : flat || i == axis ? place
                                     : axes.at[i];
    if (splits) place = expr_floor_div(context, place, x->shape[i]);
  }
  op_output(call, te_compute(call->te, call->node->name, x->type, shape, &axes,
                             te_at(call->te, x, indices)));
  return true;
}

// Reverses the elements along the axes.
static bool define_flip(OpCall *call) {
  Context *context = call->context;
  Buffer *x = call->inputs[0];
  int64_t given[TE_MAX_RANK];
  int count = node_ints(call->node, "axis", given, TE_MAX_RANK), axis;
  if (count < 1) return op_error(call, "'axis' is missing");
  TeAxes axes = te_axes(call->te, x->shape, x->rank);
  Expr *indices[TE_MAX_RANK];
  memcpy(indices, axes.at, sizeof indices);
  for (int i = 0; i < count; i++) {
    if (!op_axis(call, given[i], x->rank, &axis)) return false;
    if (indices[axis] != axes.at[axis]) return op_error(call, "'axis' names axis %d twice", axis);
    Expr *last = expr_sub(context, x->shape[axis], expr_index(context, 1));
    indices[axis] = expr_sub(context, last, axes.at[axis]);
  }
  op_output(call, te_compute(call->te, call->node->name, x->type, x->shape, &axes,
                             te_at(call->te, x, indices)));
  return true;
}

// Keeps the elements on one side of the k-th diagonal of the last two axes; the others are zero.
static bool define_triangle(OpCall *call, bool upper) {
  Context *context = call->context;
  Buffer *x = call->inputs[0];
  if (x->rank < 2) return op_error(call, "takes a tensor of rank 2 or more, got %d", x->rank);
  TeAxes axes = te_axes(call->te, x->shape, x->rank);
  Expr *row = axes.at[x->rank - 2], *column = axes.at[x->rank - 1];
  Expr *diagonal = expr_add(context, row, expr_index(context, node_int(call->node, "k", 0)));
  Expr *kept = upper ? expr_binary(context, EXPR_LE, diagonal, column)
                     : expr_binary(context, EXPR_LE, column, diagonal);
  Expr *value =
      expr_select(context, kept, te_at(call->te, x, axes.at), expr_const(context, x->type, 0));
  op_output(call, te_compute(call->te, call->node->name, x->type, x->shape, &axes, value));
  return true;
}

static bool define_triu(OpCall *call) {
  return define_triangle(call, true);
}
static bool define_tril(OpCall *call) {
  return define_triangle(call, false);
}

// ---- By indices

Expr *op_position(Context *context, Expr *index, Expr *extent) {
  Expr *size = expr_cast(context, index->type, extent), *zero = expr_const(context, index->type, 0);
  Expr *last = expr_sub(context, size, expr_const(context, index->type, 1));
  if (index->type.code == TYPE_INT)
    index =
        expr_select(context, expr_lt(context, index, zero), expr_add(context, index, size), index);
  return expr_cast(context, extent->type, expr_max(context, expr_min(context, index, last), zero));
}

bool op_check_indices(OpCall *call, int input) {
  DType type = call->inputs[input]->type;
  return dtype_is_int(type) || op_error(call, "its indices are of type %s, expected integers",
                                        dtype_name(call->context, type));
}

// Checks constant indices; others are moved to the nearest element when they are read.
static bool known_indices_fit(OpCall *call, int input, const Expr *extent, int axis) {
  const Value *by = call->node->inputs[input];
  const ConstData *data = by ? by->data : NULL;
  int64_t count;
  if (!data || !data->data || !expr_as_int(extent, &count)) return true;
  for (size_t i = 0; i < data->bytes / (size_t)dtype_bytes(data->type); i++) {
    const char *at = (const char *)data->data + i * (size_t)dtype_bytes(data->type);
    int64_t index = number_load_int(data->type, at);
    if (index < -count || index >= count)
      return op_error(call, "its index %lld is outside of axis %d, which has %lld elements",
                      (long long)index, axis, (long long)count);
  }
  return true;
}

// out[before…, at…, after…] = x[before…, indices[at…], after…]
static bool define_take(OpCall *call) {
  const char *mode = node_string(call->node, "mode", "fast");
  bool wraps = strcmp(mode, "wrap") == 0, clips = strcmp(mode, "clip") == 0;
  if (strcmp(mode, "fast") != 0 && !wraps && !clips)
    return op_error(call, "'mode' is \"%s\", expected fast, wrap or clip", mode);
  Buffer *x = call->inputs[0], *by = call->inputs[1];
  Expr *shape[TE_MAX_RANK], *indices[TE_MAX_RANK];
  int axis, rank = x->rank + by->rank - 1;
  if (!op_check_indices(call, 1) || !op_axis(call, node_int(call->node, "axis", 0), x->rank, &axis))
    return false;
  if (rank > TE_MAX_RANK) return op_error(call, "its result would have rank %d", rank);
  for (int i = 0; i < rank; i++)
    shape[i] = i < axis              ? x->shape[i]
               : i < axis + by->rank ? by->shape[i - axis]
                                     : x->shape[i - by->rank + 1];
  if (!can_choose(call, x->shape[axis], shape, rank)) return false;
  if (!wraps && !clips && !known_indices_fit(call, 1, x->shape[axis], axis)) return false;
  TeAxes axes = te_axes(call->te, shape, rank);
  for (int i = 0; i < x->rank; i++)
    if (i != axis) indices[i] = axes.at[i < axis ? i : i + by->rank - 1];
  Expr *index = te_at(call->te, by, axes.at + axis);
  if (clips) index = expr_max(call->context, index, expr_const(call->context, index->type, 0));
  if (wraps)
    index =
        expr_floor_mod(call->context, index, expr_cast(call->context, index->type, x->shape[axis]));
  indices[axis] = op_position(call->context, index, x->shape[axis]);
  op_output(call, te_compute(call->te, call->node->name, x->type, shape, &axes,
                             te_at(call->te, x, indices)));
  return true;
}

// out[i…] = x[i… with indices[i…] on the axis]
static bool define_gather_elements(OpCall *call) {
  Buffer *x = call->inputs[0], *by = call->inputs[1];
  Expr *indices[TE_MAX_RANK];
  int axis;
  if (!op_check_indices(call, 1) || !op_axis(call, node_int(call->node, "axis", 0), x->rank, &axis))
    return false;
  if (by->rank != x->rank)
    return op_error(call, "its indices have rank %d, its data %d", by->rank, x->rank);
  for (int i = 0; i < x->rank; i++) {
    int64_t wide, narrow;
    if (i != axis && expr_as_int(by->shape[i], &wide) && expr_as_int(x->shape[i], &narrow) &&
        wide > narrow)
      return op_error(call, "its indices have %lld elements on axis %d, its data %lld",
                      (long long)wide, i, (long long)narrow);
  }
  if (!can_choose(call, x->shape[axis], by->shape, by->rank)) return false;
  TeAxes axes = te_axes(call->te, by->shape, x->rank);
  memcpy(indices, axes.at, sizeof indices);
  indices[axis] = op_position(call->context, te_at(call->te, by, axes.at), x->shape[axis]);
  op_output(call, te_compute(call->te, call->node->name, x->type, by->shape, &axes,
                             te_at(call->te, x, indices)));
  return true;
}

// out[b…, at…, after…] = x[b…, indices[b…, at…, 0], indices[b…, at…, 1], …, after…]
static bool define_gather_nd(OpCall *call) {
  Context *context = call->context;
  Buffer *x = call->inputs[0], *by = call->inputs[1];
  Expr *shape[TE_MAX_RANK], *indices[TE_MAX_RANK], *at[TE_MAX_RANK];
  int64_t depth = 0, batch = node_int(call->node, "batch_dims", 0);
  if (!op_check_indices(call, 1)) return false;
  if (by->rank < 1 || !static_extent(call, by, by->rank - 1, &depth)) return false;
  if (batch < 0 || batch >= by->rank || depth < 0 || batch + depth > x->rank)
    return op_error(call, "%lld indices after %lld batch axes, for a tensor of rank %d",
                    (long long)depth, (long long)batch, x->rank);
  int first = (int)(batch + depth), lead = by->rank - 1, rank = lead + x->rank - first;
  if (rank > TE_MAX_RANK) return op_error(call, "its result would have rank %d", rank);
  for (int i = 0; i < rank; i++) shape[i] = i < lead ? by->shape[i] : x->shape[i - lead + first];
  for (int i = (int)batch; i < first; i++)
    if (!can_choose(call, x->shape[i], shape, rank)) return false;
  TeAxes axes = te_axes(call->te, shape, rank);
  memcpy(at, axes.at, sizeof at);
  for (int i = 0; i < x->rank; i++) {
    if (i < batch || i >= first) {
      indices[i] = axes.at[i < batch ? i : i - first + lead];
      continue;
    }
    at[lead] = expr_index(context, i - batch);
    indices[i] = op_position(call->context, te_at(call->te, by, at), x->shape[i]);
  }
  op_output(call, te_compute(call->te, call->node->name, x->type, shape, &axes,
                             te_at(call->te, x, indices)));
  return true;
}

// out[at…, after…] = x[first[at…], second[at…], …, after…], where the tensors of indices broadcast.
static bool define_index_tensor(OpCall *call) {
  Buffer *x = call->inputs[0];
  int count = call->input_count - 1, lead, rank;
  Expr *shape[TE_MAX_RANK], *indices[TE_MAX_RANK];
  if (count > x->rank) return op_error(call, "%d indices for %d axes", count, x->rank);
  if (!op_broadcast_shape(call, call->inputs + 1, count, shape, &lead)) return false;
  rank = lead + x->rank - count;
  if (rank > TE_MAX_RANK) return op_error(call, "its result would have rank %d", rank);
  for (int i = lead; i < rank; i++) shape[i] = x->shape[i - lead + count];
  TeAxes axes = te_axes(call->te, shape, rank), at = axes;
  at.rank = lead;
  for (int i = 0; i < x->rank; i++) {
    if (i < count &&
        (!op_check_indices(call, i + 1) || !can_choose(call, x->shape[i], shape, rank) ||
         !known_indices_fit(call, i + 1, x->shape[i], i)))
      return false;
    indices[i] = i < count
                     ? op_position(call->context, op_broadcast_at(call, call->inputs[i + 1], &at),
                                   x->shape[i])
                     : axes.at[i - count + lead];
  }
  op_output(call, te_compute(call->te, call->node->name, x->type, shape, &axes,
                             te_at(call->te, x, indices)));
  return true;
}

// out[…, d, …] = values[1] where indices[…] is d, otherwise values[0]. TVM's form has two numbers,
// on and off, and negative indices are none of an axis; elsewhere they count from the end.
static bool define_one_hot(OpCall *call) {
  Context *context = call->context;
  Buffer *by = call->inputs[0], *values = call->inputs[1];
  bool two = values->rank == 0; // TVM's form, with one value in an attribute
  Expr *other = NULL;
  Expr *shape[TE_MAX_RANK], *at[TE_MAX_RANK];
  int64_t depth = node_int(call->node, "depth", -1);
  int axis, rank = by->rank + 1;
  if (rank > TE_MAX_RANK) return op_error(call, "its result would have rank %d", rank);
  if (!two && (values->rank != 1 || !expr_is_int(values->shape[0], 2)))
    return op_error(call, "takes two values, off and on");
  if (two && !op_number(call, "off_value", values->type, &other)) return false;
  if (depth < 0) return op_error(call, "'depth' is %lld", (long long)depth);
  if (!op_axis(call, node_int(call->node, "axis", -1), rank, &axis)) return false;
  for (int i = 0; i < rank; i++)
    shape[i] = i == axis ? expr_index(context, depth) : by->shape[i < axis ? i : i - 1];
  TeAxes axes = te_axes(call->te, shape, rank);
  for (int i = 0; i < by->rank; i++) at[i] = axes.at[i < axis ? i : i + 1];
  Expr *index = te_at(call->te, by, at), *here = expr_cast(context, index->type, axes.at[axis]);
  Expr *wrapped = expr_sub(context, here, expr_const(context, index->type, (double)depth));
  Expr *hit = expr_binary(context, EXPR_EQ, index, here);
  if (index->type.code != TYPE_UINT && !two)
    hit = expr_binary(context, EXPR_OR, hit, expr_binary(context, EXPR_EQ, index, wrapped));
  Expr *on = expr_index(context, 1), *off = expr_index(context, 0);
  Expr *with = te_at(call->te, values, &on);
  Expr *without = two ? other : te_at(call->te, values, &off);
  Expr *value = expr_select(context, hit, with, without);
  op_output(call, te_compute(call->te, call->node->name, values->type, shape, &axes, value));
  return true;
}

const OpRow select_ops[] = {
    {"strided_slice", "Slice", 1, 1, define_strided_slice, "axes begin end strides assume_inbound",
     .positional = "axes begin end strides assume_inbound"},
    {"dynamic_strided_slice", NULL, 4, 4, define_dynamic_strided_slice, "shape",
     .mixed_types = true},
    {"split", "Split", 1, 1, define_split, "axis sizes parts indices_or_sections",
     .positional = "indices_or_sections axis"},
    {"broadcast_to", "Expand", 1, 1, define_broadcast_to, "shape", .positional = "shape"},
    {"tile", "Tile", 1, 1, define_tile, "repeats", .positional = "repeats"},
    {"repeat", NULL, 1, 1, define_repeat, "repeats axis", .positional = "repeats axis"},
    {"flip", NULL, 1, 1, define_flip, "axis", .positional = "axis"},
    {"triu", NULL, 1, 1, define_triu, "k", .positional = "k"},
    {"tril", NULL, 1, 1, define_tril, "k", .positional = "k"},
    {"take", "Gather", 2, 2, define_take, "axis mode", .mixed_types = true,
     .positional = "axis mode"},
    {"gather_elements", "GatherElements", 2, 2, define_gather_elements, "axis",
     .mixed_types = true},
    {"gather_nd", "GatherND", 2, 2, define_gather_nd, "batch_dims", .mixed_types = true},
    {"index_tensor", NULL, 2, -1, define_index_tensor, .mixed_types = true},
    {"one_hot", "OneHot", 2, 2, define_one_hot, "depth axis off_value", .mixed_types = true,
     .positional = "off_value depth axis"},
};
const int select_op_count = COUNT_OF(select_ops);
