// SPDX-License-Identifier: Apache-2.0
// Defines the operators that write their elements in an order: scattering, running sums, and the
// indices of nonzero elements. An index outside of its axis changes no element; a negative index
// counts from the end.
#include "graph/ops/ops.h"

static Expr *update_axis(OpCall *call, TeUpdates *updates, const char *name, Expr *extent) {
  Expr *axis = te_reduce_axis(call->te, name, extent);
  updates->axes[updates->count] = axis;
  updates->extents[updates->count++] = extent;
  return axis;
}

static bool is_empty(const TeUpdates *updates) {
  for (int i = 0; i < updates->count; i++)
    if (expr_is_int(updates->extents[i], 0)) return true;
  return false;
}

// ---- Scattering

typedef struct Scatter {
  OpCall *call;
  TeAxes axes;
  TeUpdates updates;
  Expr *targets[TE_MAX_RANK];
  Expr *inside; // true when the targets are inside
} Scatter;

static Scatter scatter_begin(OpCall *call) {
  Buffer *x = call->inputs[0];
  Scatter s = {.call = call, .axes = te_axes(call->te, x->shape, x->rank)};
  memcpy(s.targets, s.axes.at, sizeof s.targets);
  s.inside = expr_bool(call->context, true);
  return s;
}

static void aim(Scatter *s, int axis, Expr *index) {
  Context *context = s->call->context;
  Expr *extent = s->call->inputs[0]->shape[axis], *size = expr_cast(context, index->type, extent);
  s->targets[axis] = op_position(context, index, extent);
  s->inside = expr_and(context, s->inside, expr_lt(context, index, size));
  if (index->type.code == TYPE_INT) {
    Expr *least = expr_sub(context, expr_const(context, index->type, 0), size);
    s->inside = expr_and(context, s->inside, expr_binary(context, EXPR_LE, least, index));
  }
}

static bool combined(const OpCall *call, Expr *old, Expr *update, Expr **value) {
  static const struct {
    const char *name;
    ExprOp op;
  } ways[] = {{"add", EXPR_ADD}, {"mul", EXPR_MUL}, {"min", EXPR_MIN}, {"max", EXPR_MAX}};
  const char *usual = node_int(call->node, "accumulate", 0) ? "add" : "none";
  const char *way = node_string(call->node, "reduction", usual);
  *value = update;
  if (!strcmp(way, "none") || !strcmp(way, "update")) return true;
  for (int i = 0; i < COUNT_OF(ways); i++)
    if (!strcmp(ways[i].name, way))
      return *value = expr_binary(call->context, ways[i].op, old, update), true;
  return op_error(call, "'reduction' is '%s', expected add, max, min, mul, none or update", way);
}

static bool scatter_end(Scatter *s, Expr *update) {
  OpCall *call = s->call;
  Buffer *x = call->inputs[0];
  Expr *start = te_at(call->te, x, s->axes.at), *value;
  Str name = call->node->name;
  if (is_empty(&s->updates)) {
    op_output(call, te_compute(call->te, name, x->type, x->shape, &s->axes, start));
    return true;
  }
  TeStage *stage = te_ordered(call->te, name, x->type, x->shape, &s->axes, &s->updates, start);
  Expr *old = te_at(call->te, stage->output, s->targets);
  if (!combined(call, old, update, &value)) return false;
  te_set_update(call->te, stage, s->targets, expr_select(call->context, s->inside, value, old));
  op_output(call, stage->output);
  return true;
}

static bool takes_updates(OpCall *call, Buffer *updates) {
  return dtype_equal(updates->type, call->inputs[0]->type) ||
         op_error(call, "its updates have the type %s, its data %s",
                  dtype_name(call->context, updates->type),
                  dtype_name(call->context, call->inputs[0]->type));
}

// out[i… with indices[i…] on the axis] = updates[i…]; the other elements are those of x.
static bool define_scatter_elements(OpCall *call) {
  Buffer *x = call->inputs[0], *by = call->inputs[1], *updates = call->inputs[2];
  int axis;
  if (!op_check_indices(call, 1) || !takes_updates(call, updates) ||
      !op_axis(call, node_int(call->node, "axis", 0), x->rank, &axis))
    return false;
  if (by->rank != x->rank || updates->rank != x->rank)
    return op_error(call, "its data, indices and updates must have one rank");
  Scatter s = scatter_begin(call);
  Expr *at[TE_MAX_RANK];
  for (int i = 0; i < x->rank; i++) {
    int64_t wide, narrow;
    if (!op_same_extent(by->shape[i], updates->shape[i]))
      return op_error(call, "its indices and updates differ on axis %d", i);
    if (i != axis && expr_as_int(by->shape[i], &wide) && expr_as_int(x->shape[i], &narrow) &&
        wide > narrow)
      return op_error(call, "its indices have %lld elements on axis %d, its data %lld",
                      (long long)wide, i, (long long)narrow);
    bool whole = i != axis && op_same_extent(by->shape[i], x->shape[i]);
    at[i] = whole
                ? s.axes.at[i]
                : update_axis(call, &s.updates, str_format(call->context, "u%d", i), by->shape[i]);
    if (i != axis) s.targets[i] = at[i];
  }
  aim(&s, axis, te_at(call->te, by, at));
  return scatter_end(&s, te_at(call->te, updates, at));
}

// out[indices[u…, 0], indices[u…, 1], …, after…] = updates[u…, after…]
static bool define_scatter_nd(OpCall *call) {
  Context *context = call->context;
  Buffer *x = call->inputs[0], *by = call->inputs[1], *updates = call->inputs[2];
  int64_t depth = 0;
  int lead = by->rank - 1;
  if (!op_check_indices(call, 1) || !takes_updates(call, updates)) return false;
  if (lead < 0 || !expr_as_int(by->shape[lead], &depth) || depth > x->rank)
    return op_error(call, "its indices have no last axis of at most %d numbers", x->rank);
  if (updates->rank != lead + x->rank - depth)
    return op_error(call, "its updates have rank %d, expected %d", updates->rank,
                    lead + x->rank - (int)depth);
  Scatter s = scatter_begin(call);
  Expr *at[TE_MAX_RANK], *from[TE_MAX_RANK];
  for (int i = 0; i < updates->rank; i++) {
    Expr *extent = i < lead ? by->shape[i] : x->shape[i - lead + depth];
    if (!op_same_extent(updates->shape[i], extent))
      return op_error(call, "its updates do not fit its data and indices on axis %d", i);
    from[i] = i < lead ? update_axis(call, &s.updates, str_format(context, "u%d", i), extent)
                       : s.axes.at[i - lead + depth];
    if (i < lead) at[i] = from[i];
  }
  if (!lead) update_axis(call, &s.updates, "u", expr_index(context, 1));
  for (int i = 0; i < depth; i++) {
    at[lead] = expr_index(context, i);
    aim(&s, i, te_at(call->te, by, at));
  }
  return scatter_end(&s, te_at(call->te, updates, from));
}

// x with x[first[u…], second[u…], …, after…] = updates[u…, after…], or += with 'accumulate', where
// the tensors of indices broadcast, and the updates broadcast to what they select.
static bool define_index_put(OpCall *call) {
  Context *context = call->context;
  int count = call->input_count - 2, lead, rank;
  Buffer *x = call->inputs[0], *updates = call->inputs[count + 1], chosen = {0};
  Expr *shape[TE_MAX_RANK], *common[TE_MAX_RANK];
  if (!takes_updates(call, updates)) return false;
  if (count > x->rank) return op_error(call, "%d indices for %d axes", count, x->rank);
  if (!op_broadcast_shape(call, call->inputs + 1, count, shape, &lead)) return false;
  chosen.rank = lead + x->rank - count;
  chosen.shape = shape;
  if (chosen.rank > TE_MAX_RANK) return op_error(call, "it would select rank %d", chosen.rank);
  for (int i = lead; i < chosen.rank; i++) shape[i] = x->shape[i - lead + count];
  if (!op_broadcast_shape(call, (Buffer *[]){&chosen, updates}, 2, common, &rank)) return false;
  if (rank != chosen.rank || updates->rank > rank)
    return op_error(call, "its updates have rank %d, expected %d", updates->rank, chosen.rank);
  for (int i = 0; i < rank; i++)
    if (!op_same_extent(common[i], shape[i]))
      return op_error(call, "its updates do not fit what the indices select on axis %d", i);
  Scatter s = scatter_begin(call);
  TeAxes from = {.rank = rank}, at;
  for (int i = 0; i < rank; i++)
    from.at[i] = i < lead ? update_axis(call, &s.updates, str_format(context, "u%d", i), shape[i])
                          : s.axes.at[i - lead + count];
  if (!lead) update_axis(call, &s.updates, "u", expr_index(context, 1));
  at = from;
  at.rank = lead;
  for (int i = 0; i < count; i++) {
    if (!op_check_indices(call, i + 1)) return false;
    aim(&s, i, op_broadcast_at(call, call->inputs[i + 1], &at));
  }
  return scatter_end(&s, op_broadcast_at(call, updates, &from));
}

// out[b, …, begin[b] + u, …] = updates[b, …, u, …]; a circular cache continues at its start.
static bool define_cache_update(OpCall *call) {
  Context *context = call->context;
  Buffer *x = call->inputs[0], *updates = call->inputs[1];
  Buffer *begin = call->input_count > 2 ? call->inputs[2] : NULL;
  int axis;
  if (!takes_updates(call, updates) || (begin && !op_check_indices(call, 2)) ||
      !op_axis(call, node_int(call->node, "axis", -2), x->rank, &axis))
    return false;
  if (axis == 0) return op_error(call, "axis 0 is the batch axis and cannot be updated");
  if (updates->rank != x->rank || (begin && (begin->rank != 1 || begin->shape[0] != x->shape[0])))
    return op_error(call, "takes updates of rank %d and one begin for each batch", x->rank);
  Scatter s = scatter_begin(call);
  Expr *from[TE_MAX_RANK];
  for (int i = 0; i < x->rank; i++) {
    if (i != axis && !op_same_extent(updates->shape[i], x->shape[i]))
      return op_error(call, "its updates differ from its data on axis %d", i);
    from[i] = i == axis ? update_axis(call, &s.updates, "u", updates->shape[i]) : s.axes.at[i];
  }
  Expr *place = expr_cast(context, DTYPE_INT64, from[axis]);
  if (begin) {
    Expr *first = expr_cast(context, DTYPE_INT64, te_at(call->te, begin, s.axes.at));
    place = expr_add(context, place, first);
  }
  if (node_int(call->node, "circular", 0))
    place = expr_floor_mod(context, place, expr_cast(context, DTYPE_INT64, x->shape[axis]));
  aim(&s, axis, place);
  return scatter_end(&s, te_at(call->te, updates, from));
}

// ---- Running sums and products

// Without 'axis', along all elements in row-major order.
static bool define_running_in_all(OpCall *call) {
  Buffer *flat = op_apply(call, "flatten", "flat", call->inputs, 1, (Attrs){0});
  Buffer *sums = flat ? op_apply(call, call->row->name, NULL, &flat, 1,
                                 op_with_int(call, call->node->attrs, "axis", 0))
                      : NULL;
  if (sums) op_output(call, sums);
  return sums != NULL;
}

// y[i] = y[i-1] + x[i]; exclusive y[i] = y[i-1] + x[i-1]; with `reverse` from the end.
static bool define_running(OpCall *call, ExprOp combine, double neutral) {
  Context *context = call->context;
  Buffer *x = call->inputs[0];
  bool exclusive = node_int(call->node, "exclusive", 0), back = node_int(call->node, "reverse", 0);
  int axis;
  const char *stated = node_string(call->node, "dtype", dtype_name(context, x->type));
  const Expr *along = attrs_get(&call->node->attrs, "axis");
  DType type;
  if (!dtype_parse(stated, strlen(stated), &type))
    return op_error(call, "unknown type '%s'", stated);
  if (!along || along->op == EXPR_NONE) return define_running_in_all(call);
  if (!op_axis(call, node_int(call->node, "axis", 0), x->rank, &axis)) return false;
  TeAxes axes = te_axes(call->te, x->shape, x->rank);
  TeUpdates updates = {0};
  Expr *k = update_axis(call, &updates, "k", x->shape[axis]),
       *init = expr_const(context, type, neutral);
  if (is_empty(&updates)) {
    op_output(call, te_compute(call->te, call->node->name, type, x->shape, &axes, init));
    return true;
  }
  TeStage *stage = te_ordered(call->te, call->node->name, type, x->shape, &axes, &updates, init);
  Expr *one = expr_int(context, k->type, 1), *zero = expr_int(context, k->type, 0);
  Expr *last = expr_sub(context, expr_cast(context, k->type, x->shape[axis]), one);
  Expr *before = expr_max(context, expr_sub(context, k, one), zero), *at[2][TE_MAX_RANK];
  for (int i = 0; i < 2; i++) memcpy(at[i], axes.at, sizeof at[i]);
  at[0][axis] = back ? expr_sub(context, last, k) : k;
  at[1][axis] = back ? expr_sub(context, last, before) : before;
  Expr *term = expr_cast(context, type, te_at(call->te, x, at[exclusive])),
       *so_far = te_at(call->te, stage->output, at[1]);
  Expr *value = expr_binary(context, combine, so_far, term);
  value =
      expr_select(context, expr_binary(context, EXPR_EQ, k, zero), exclusive ? init : term, value);
  te_set_update(call->te, stage, at[0], value);
  op_output(call, stage->output);
  return true;
}

static bool define_cumsum(OpCall *call) {
  return define_running(call, EXPR_ADD, 0);
}
static bool define_cumprod(OpCall *call) {
  return define_running(call, EXPR_MUL, 1);
}

// ---- Indices of nonzero elements

// The indices of the element with this row-major number.
static void indices_of(Context *context, const Buffer *x, Expr *number, Expr **at) {
  for (int i = x->rank - 1; i >= 0; i--) {
    at[i] = i ? expr_floor_mod(context, number, x->shape[i]) : number;
    number = expr_floor_div(context, number, x->shape[i]);
  }
}

static Expr *is_something(OpCall *call, Expr *number) {
  Buffer *x = call->inputs[0];
  Expr *at[TE_MAX_RANK];
  indices_of(call->context, x, number, at);
  return expr_binary(call->context, EXPR_NE, te_at(call->te, x, at),
                     expr_const(call->context, x->type, 0));
}

// For each element, the number of nonzero elements up to it.
static Buffer *running_count(OpCall *call, Expr *elements) {
  Context *context = call->context;
  Expr *zero = expr_int(context, DTYPE_INT32, 0), *one = expr_int(context, DTYPE_INT32, 1);
  TeAxes axes = te_axes(call->te, &elements, 1);
  TeUpdates updates = {0};
  Expr *i = update_axis(call, &updates, "k", elements);
  TeStage *stage = te_ordered(call->te, str_format(context, "%s_count", call->node->name),
                              DTYPE_INT32, &elements, &axes, &updates, zero);
  Expr *start = expr_int(context, i->type, 0);
  Expr *before = expr_max(context, expr_sub(context, i, expr_int(context, i->type, 1)), start);
  Expr *so_far = expr_select(context, expr_binary(context, EXPR_EQ, i, start), zero,
                             te_at(call->te, stage->output, &before));
  te_set_update(call->te, stage, &i,
                expr_add(context, so_far, expr_select(context, is_something(call, i), one, zero)));
  return stage->output;
}

// The row-major numbers of the `count` nonzero elements.
static Buffer *numbers_of_something(OpCall *call, Expr *elements, Expr *count) {
  Context *context = call->context;
  Buffer *running = running_count(call, elements);
  TeAxes axes = te_axes(call->te, &count, 1);
  TeUpdates updates = {0};
  Expr *i = update_axis(call, &updates, "k", elements), *one = expr_int(context, DTYPE_INT32, 1);
  TeStage *stage =
      te_ordered(call->te, str_format(context, "%s_numbers", call->node->name), DTYPE_INT32, &count,
                 &axes, &updates, expr_int(context, DTYPE_INT32, 0));
  Expr *place = expr_sub(context, te_at(call->te, running, &i), one);
  Expr *target = op_position(context, place, count);
  Expr *counts = expr_and(context, is_something(call, i),
                          expr_lt(context, place, expr_cast(context, DTYPE_INT32, count)));
  te_set_update(call->te, stage, &target,
                expr_select(context, counts, expr_cast(context, DTYPE_INT32, i),
                            te_at(call->te, stage->output, &target)));
  return stage->output;
}

// out[d, n] is the index on axis d of the n-th nonzero element in row-major order. There are
// 'count' of them.
static bool define_nonzero(OpCall *call) {
  Context *context = call->context;
  Buffer *x = call->inputs[0];
  int64_t count = node_int(call->node, "count", -1), elements = 1, extent;
  if (x->rank < 1) return op_error(call, "takes a tensor of rank 1 or more");
  for (int i = 0; i < x->rank; i++)
    if (!expr_as_int(x->shape[i], &extent) || !mul_fits(elements, extent, &elements) ||
        elements > INT32_MAX)
      return op_error(call, "takes fewer than 2^31 elements, and their number must be known");
  if (count < 0 || count > elements)
    return op_error(call, "'count' is %lld of %lld elements", (long long)count,
                    (long long)elements);
  Expr *shape[] = {expr_index(context, x->rank), expr_index(context, count)};
  Buffer *numbers =
      count ? numbers_of_something(call, expr_index(context, elements), shape[1]) : NULL;
  TeAxes axes = te_axes(call->te, shape, 2);
  Expr *at[TE_MAX_RANK], *value = expr_int(context, DTYPE_INT32, 0);
  if (numbers) indices_of(context, x, te_at(call->te, numbers, &axes.at[1]), at);
  for (int i = x->rank - 1; numbers && i >= 0; i--) {
    Expr *here = expr_binary(context, EXPR_EQ, axes.at[0], expr_int(context, axes.at[0]->type, i));
    value = i == x->rank - 1 ? at[i] : expr_select(context, here, at[i], value);
  }
  op_output(call, te_compute(call->te, call->node->name, DTYPE_INT64, shape, &axes, value));
  return true;
}

const OpRow ordered_ops[] = {
    {"scatter_elements", NULL, 3, 3, define_scatter_elements, "axis reduction",
     .positional = "axis reduction", .mixed_types = true},
    {"scatter_nd", NULL, 3, 3, define_scatter_nd, "reduction", .mixed_types = true,
     .positional = "reduction"},
    {"index_put", NULL, 3, -1, define_index_put, "accumulate", .positional = "accumulate",
     .mixed_types = true},
    {"cache_update", NULL, 2, 3, define_cache_update, "axis circular", .mixed_types = true},
    {"cumsum", "CumSum", 1, 1, define_cumsum, "axis dtype exclusive reverse",
     .positional = "axis dtype exclusive"},
    {"cumprod", "CumProd", 1, 1, define_cumprod, "axis dtype exclusive reverse",
     .positional = "axis dtype exclusive"},
    {"nonzero", NULL, 1, 1, define_nonzero, "count"},
};
const int ordered_op_count = COUNT_OF(ordered_ops);
