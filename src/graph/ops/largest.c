// SPDX-License-Identifier: Apache-2.0
// Defines the operators that find the k largest or smallest elements along an axis, earlier
// elements before equal later ones.
//
// Each element has a unique integer key, which orders elements by value and equal ones by position.
// For a short axis, the rank of an element is the number of greater keys. For a long axis, the k
// greatest keys are in the k groups whose maxima are greatest: these groups are found first, and
// then the k greatest keys among their elements.
#include "graph/ops/ops.h"

typedef struct Top {
  OpCall *call;
  Buffer *x;
  int axis, parts; // number of stages so far, for their names
  bool largest;
  int64_t extent, k;
} Top;

// The keys along the axis, computed from x or stored in a tensor. There are `count` keys.
typedef struct Keys {
  Buffer *tensor; // NULL: computed from x
  int64_t count;
} Keys;

enum { LANES = 16 }; // tensors of keys have a multiple of this length

static Expr *number(const Top *top, int64_t value) {
  return expr_int(top->call->context, DTYPE_INT64, value);
}

static Str part_name(Top *top, const char *what) {
  return str_format(top->call->context, "%s_%s%d", top->call->node->name, what, ++top->parts);
}

static TeAxes axes_of_length(const Top *top, int64_t length, Expr **shape) {
  memcpy(shape, top->x->shape, sizeof *shape * (size_t)top->x->rank);
  shape[top->axis] = expr_index(top->call->context, length);
  return te_axes(top->call->te, shape, top->x->rank);
}

static Expr *element_at(const Top *top, Buffer *tensor, const TeAxes *axes, Expr *place) {
  Expr *at[TE_MAX_RANK];
  memcpy(at, axes->at, sizeof at);
  at[top->axis] = place;
  return te_at(top->call->te, tensor, at);
}

// ---- Keys

static bool has_keys(DType type) {
  bool narrow = dtype_is_float(type) ? type.bits <= 32 : type.bits < 64;
  return narrow && (dtype_is_float(type) || type.code == TYPE_INT || type.code == TYPE_UINT);
}

// The bits of a float as an integer of the same order, where both zeros are equal.
static Expr *ordered_bits(Context *context, Expr *value) {
  value = expr_cast(context, DTYPE_FLOAT32, value);
  Expr *none = expr_const(context, DTYPE_FLOAT32, 0);
  value = expr_select(context, expr_binary(context, EXPR_EQ, value, none), none, value);
  Expr *bits = expr_raw(context, EXPR_REINTERPRET, DTYPE_INT32, NULL, &value, 1);
  Expr *zero = expr_int(context, DTYPE_INT32, 0), *rest = expr_int(context, DTYPE_INT32, INT32_MAX);
  Expr *mirrored = expr_binary(context, EXPR_BIT_XOR, bits, rest);
  return expr_select(context, expr_lt(context, bits, zero), mirrored, bits);
}

// The value in the upper half; in the lower half the element's distance from the end of the axis.
static Expr *key_of_element(const Top *top, const TeAxes *axes, Expr *place) {
  Context *context = top->call->context;
  Expr *value = element_at(top, top->x, axes, place);
  if (dtype_is_float(value->type)) value = ordered_bits(context, value);
  value = expr_cast(context, DTYPE_INT64, value);
  if (!top->largest) value = expr_sub(context, number(top, -1), value);
  Expr *high = expr_mul(context, value, number(top, INT64_C(1) << 32));
  Expr *before = expr_cast(context, DTYPE_INT64, place);
  return expr_add(context, high, expr_sub(context, number(top, top->extent), before));
}

static Expr *key_at(const Top *top, const Keys *keys, const TeAxes *axes, Expr *place) {
  return keys->tensor ? element_at(top, keys->tensor, axes, place)
                      : key_of_element(top, axes, place);
}

static Expr *key_or_least(const Top *top, const Keys *keys, const TeAxes *axes, Expr *place,
                          int64_t most) {
  Context *context = top->call->context;
  Expr *key = key_at(top, keys, axes, place);
  if (most < keys->count) return key;
  Expr *inside = expr_lt(context, place, expr_int(context, place->type, keys->count));
  return expr_if_then_else(context, inside, key, number(top, INT64_MIN));
}

// True when element i comes before element j.
static Expr *comes_before(const Top *top, const TeAxes *axes, Expr *i, Expr *j) {
  Context *context = top->call->context;
  Expr *a = element_at(top, top->x, axes, i), *b = element_at(top, top->x, axes, j);
  Expr *ahead = top->largest ? expr_lt(context, b, a) : expr_lt(context, a, b);
  Expr *equal = expr_binary(context, EXPR_EQ, a, b);
  return expr_binary(context, EXPR_OR, ahead, expr_and(context, equal, expr_lt(context, i, j)));
}

// The same, by comparing keys when there is a tensor of them.
static Expr *is_ahead(const Top *top, const Keys *keys, const TeAxes *axes, Expr *i, Expr *j) {
  if (!keys->tensor) return comes_before(top, axes, i, j);
  return expr_lt(top->call->context, element_at(top, keys->tensor, axes, j),
                 element_at(top, keys->tensor, axes, i));
}

// ---- Indices of the greatest

// Finds the k greatest by rank: each element whose rank is less than k stores its index at that
// rank.
static Buffer *places_by_rank(Top *top, Keys keys) {
  OpCall *call = top->call;
  Context *context = call->context;
  Expr *shape[TE_MAX_RANK], *at[TE_MAX_RANK];
  bool has = has_keys(top->x->type);
  int64_t padded = has ? ceil_div(keys.count, LANES) * LANES : keys.count;
  TeAxes axes = axes_of_length(top, padded, shape);
  if (has && (!keys.tensor || padded > keys.count)) {
    Expr *key = key_or_least(top, &keys, &axes, axes.at[top->axis], padded - 1);
    keys.tensor = te_compute(call->te, part_name(top, "keys"), DTYPE_INT64, shape, &axes, key);
  }
  axes = axes_of_length(top, padded, shape);
  TeReduction sum = {.combine = EXPR_ADD, .init = expr_int(context, DTYPE_INT32, 0)};
  Expr *other = op_reduce_axis(call, &sum, "j", expr_index(context, keys.count));
  Expr *ahead = is_ahead(top, &keys, &axes, other, axes.at[top->axis]);
  Expr *one = expr_select(context, ahead, expr_int(context, DTYPE_INT32, 1), sum.init);
  Buffer *rank = te_reduce(call->te, part_name(top, "rank"), DTYPE_INT32, shape, &axes, &sum, one);
  TeAxes to = axes_of_length(top, top->k, shape);
  Expr *i = te_reduce_axis(call->te, "k", expr_index(context, keys.count));
  TeUpdates updates = {1, {i}, {expr_index(context, keys.count)}};
  TeStage *stage =
      te_ordered(call->te, part_name(top, "places"), DTYPE_INT32, shape, &to, &updates, sum.init);
  Expr *place = element_at(top, rank, &to, i), *k = expr_int(context, DTYPE_INT32, top->k);
  memcpy(at, to.at, sizeof at);
  at[top->axis] = op_position(context, place, shape[top->axis]);
  te_set_update(call->te, stage, at,
                expr_select(context, expr_lt(context, place, k), expr_cast(context, DTYPE_INT32, i),
                            te_at(call->te, stage->output, at)));
  return stage->output;
}

// The number of elements in a group, chosen so that about as many candidates remain as there are
// groups.
static int64_t group_size(const Top *top, int64_t count) {
  enum { FEW = 128, LARGEST = 64 };
  int64_t size = 1;
  if (!has_keys(top->x->type) || count < FEW || count < 4 * top->k) return 1;
  while (size < LARGEST && (size + 1) * (size + 1) * top->k <= count) size++;
  return size;
}

// The maximum of each group. Group g has the elements g, g + groups, …, so neighbours are in
// neighbouring groups.
static Keys greatest_of_groups(Top *top, Keys keys, int64_t groups) {
  OpCall *call = top->call;
  Context *context = call->context;
  Expr *shape[TE_MAX_RANK];
  TeAxes axes = axes_of_length(top, groups, shape);
  TeReduction most = {.combine = EXPR_MAX, .init = number(top, INT64_MIN)};
  int64_t size = ceil_div(keys.count, groups);
  Expr *j = op_reduce_axis(call, &most, "j", expr_index(context, size));
  Expr *place = expr_add(context, expr_mul(context, j, shape[top->axis]), axes.at[top->axis]);
  Expr *key = key_or_least(top, &keys, &axes, place, size * groups - 1);
  Str name = part_name(top, "groups");
  return (Keys){te_reduce(call->te, name, DTYPE_INT64, shape, &axes, &most, key), groups};
}

// The index of candidate c among all keys: element c // k of group chosen[c % k].
static Expr *place_of_candidate(const Top *top, Buffer *chosen, int64_t groups, const TeAxes *axes,
                                Expr *c) {
  Context *context = top->call->context;
  Expr *k = expr_int(context, c->type, top->k);
  Expr *group = op_position(context, element_at(top, chosen, axes, expr_floor_mod(context, c, k)),
                            expr_index(context, groups));
  Expr *row = expr_cast(context, DTYPE_INT32, expr_floor_div(context, c, k));
  return expr_add(context, expr_mul(context, row, expr_int(context, DTYPE_INT32, groups)), group);
}

static Keys keys_of_groups(Top *top, Keys keys, Buffer *chosen, int64_t groups) {
  OpCall *call = top->call;
  Context *context = call->context;
  Expr *shape[TE_MAX_RANK];
  int64_t size = ceil_div(keys.count, groups), count = size * top->k;
  TeAxes axes = axes_of_length(top, count, shape);
  Expr *place = place_of_candidate(top, chosen, groups, &axes, axes.at[top->axis]);
  Expr *last = expr_int(context, place->type, keys.count - 1);
  Expr *inside = expr_binary(context, EXPR_LE, place, last);
  Expr *key = key_at(top, &keys, &axes, expr_min(context, place, last));
  key = expr_select(context, inside, key, number(top, INT64_MIN));
  Str name = part_name(top, "candidates");
  return (Keys){te_compute(call->te, name, DTYPE_INT64, shape, &axes, key), count};
}

// The indices of the k greatest keys, in order.
static Buffer *places_of_greatest(Top *top, Keys keys) {
  OpCall *call = top->call;
  Expr *shape[TE_MAX_RANK];
  int64_t size = group_size(top, keys.count);
  if (size < 2) return places_by_rank(top, keys);
  int64_t groups = ceil_div(ceil_div(keys.count, size), LANES) * LANES;
  Buffer *chosen = places_of_greatest(top, greatest_of_groups(top, keys, groups));
  Buffer *among = places_of_greatest(top, keys_of_groups(top, keys, chosen, groups));
  TeAxes axes = axes_of_length(top, top->k, shape);
  Expr *candidate = te_at(call->te, among, axes.at);
  candidate = op_position(call->context, candidate,
                          expr_index(call->context, ceil_div(keys.count, groups) * top->k));
  Expr *place = place_of_candidate(top, chosen, groups, &axes, candidate);
  return te_compute(call->te, part_name(top, "places"), DTYPE_INT32, shape, &axes, place);
}

// Finds the k greatest without keys, one after the other: each is the best element that comes after
// the previous one.
static Buffer *places_by_choice(Top *top) {
  OpCall *call = top->call;
  Context *context = call->context;
  Expr *shape[TE_MAX_RANK], *at[TE_MAX_RANK];
  TeAxes to = axes_of_length(top, top->k, shape);
  Expr *none = expr_int(context, DTYPE_INT32, -1), *zero = expr_int(context, DTYPE_INT32, 0);
  Expr *r = te_reduce_axis(call->te, "r", shape[top->axis]);
  Expr *i = te_reduce_axis(call->te, "k", top->x->shape[top->axis]);
  TeUpdates updates = {2, {r, i}, {shape[top->axis], top->x->shape[top->axis]}};
  TeStage *stage = te_ordered(call->te, str_format(context, "%s_places", call->node->name),
                              DTYPE_INT32, shape, &to, &updates, none);
  memcpy(at, to.at, sizeof at);
  at[top->axis] = expr_max(context, expr_sub(context, r, expr_int(context, r->type, 1)),
                           expr_int(context, r->type, 0));
  Expr *before = expr_max(context, te_at(call->te, stage->output, at), zero);
  at[top->axis] = r;
  Expr *best = te_at(call->te, stage->output, at), *known = expr_max(context, best, zero);
  Expr *free =
      expr_binary(context, EXPR_OR, expr_binary(context, EXPR_EQ, r, expr_int(context, r->type, 0)),
                  comes_before(top, &to, before, i));
  Expr *better =
      expr_binary(context, EXPR_OR, expr_lt(context, best, zero), comes_before(top, &to, i, known));
  te_set_update(call->te, stage, at,
                expr_select(context, expr_and(context, free, better),
                            expr_cast(context, DTYPE_INT32, i), best));
  return stage->output;
}

static bool define_topk(OpCall *call) {
  enum { CHOICE_PAYS = 50 }; // comparisons for ranks use vectors, choices do not
  Context *context = call->context;
  Top top = {.call = call, .x = call->inputs[0], .k = node_int(call->node, "k", 1)};
  const char *results = node_string(call->node, "ret_type", "both");
  if (strcmp(results, "both") && strcmp(results, "values") && strcmp(results, "indices"))
    return op_error(call, "'ret_type' is '%s', expected both, values or indices", results);
  const char *dtype = node_string(call->node, "dtype", "int32");
  DType type;
  if (!dtype_parse(dtype, strlen(dtype), &type) || !dtype_is_int(type))
    return op_error(call, "'dtype' is '%s', expected integers", dtype);
  top.largest = node_int(call->node, "largest", 1) != 0;
  if (!op_axis(call, node_int(call->node, "axis", -1), top.x->rank, &top.axis)) return false;
  if (!expr_as_int(top.x->shape[top.axis], &top.extent) || top.extent > INT32_MAX / 2)
    return op_error(call, "the extent of axis %d must be known", top.axis);
  if (top.k < 0 || top.k > top.extent)
    return op_error(call, "takes %lld of %lld elements", (long long)top.k, (long long)top.extent);
  bool chosen = !has_keys(top.x->type) && top.extent / CHOICE_PAYS > top.k;
  Buffer *places = !top.k   ? NULL
                   : chosen ? places_by_choice(&top)
                            : places_of_greatest(&top, (Keys){NULL, top.extent});
  for (int pass = 0; pass < 2; pass++) {
    Expr *shape[TE_MAX_RANK];
    if (!strcmp(results, pass ? "values" : "indices")) continue;
    TeAxes axes = axes_of_length(&top, top.k, shape);
    Expr *place = places ? te_at(call->te, places, axes.at) : expr_int(context, DTYPE_INT32, 0);
    if (pass == 0) place = op_position(context, place, top.x->shape[top.axis]);
    Expr *value = pass     ? expr_cast(context, type, place)
                  : places ? element_at(&top, top.x, &axes, place)
                           : expr_const(context, top.x->type, 0);
    Str name = pass ? str_format(context, "%s_indices", call->node->name) : call->node->name;
    op_output(call, te_compute(call->te, name, pass ? type : top.x->type, shape, &axes, value));
  }
  return true;
}

const OpRow largest_ops[] = {
    {"topk", NULL, 1, 1, define_topk, "axis k largest ret_type dtype", .results = 2,
     .positional = "k axis ret_type largest dtype"},
};
const int largest_op_count = COUNT_OF(largest_ops);
