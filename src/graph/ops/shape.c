// SPDX-License-Identifier: Apache-2.0
// Defines the operators that only move elements: each output element is one input element (or a
// padding value).
#include "graph/ops/ops.h"

// ---- Reshapes: the same elements in row-major order

typedef struct SliceRange { // axes [from, to) of one shape
  int from, to;
} SliceRange;

static bool static_product(Expr *const *shape, SliceRange span, int64_t *product) {
  *product = 1;
  for (int i = span.from; i < span.to; i++)
    if (shape[i]->op != EXPR_INT || !mul_fits(*product, shape[i]->as.i, product)) return false;
  return true;
}

static Expr *fuse_axes(Context *context, Expr *const *at, Expr *const *shape, SliceRange span) {
  Expr *flat = expr_index(context, 0);
  for (int i = span.from; i < span.to; i++)
    flat = expr_add(context, expr_mul(context, flat, shape[i]), at[i]);
  return flat;
}

static void split_index(Context *context, Expr *flat, Expr *const *shape, SliceRange span,
                        Expr **out) {
  for (int i = span.to - 1; i >= span.from; i--) {
    out[i] = i == span.from ? flat : expr_floor_mod(context, flat, shape[i]);
    flat = expr_floor_div(context, flat, shape[i]);
  }
}

// Splits both shapes into the smallest spans of equal products, so that each input index depends on
// as few output axes as possible.
static void map_reshape(Context *context, Expr *const *to, int to_rank, Expr *const *at,
                        Expr *const *from, int from_rank, Expr **indices) {
  SliceRange out = {0, 0}, in = {0, 0};
  while (in.to < from_rank || out.to < to_rank) {
    int64_t a = 1, b = 1;
    if (in.to < from_rank) in.to++;
    if (out.to < to_rank) out.to++;
    bool same = in.to > in.from && out.to > out.from && from[in.from] == to[out.from];
    while (!same) {
      bool known = static_product(from, in, &a) && static_product(to, out, &b);
      if (known && a == b) break;
      bool grow_in = known && a < b ? in.to < from_rank : out.to == to_rank;
      if (in.to == from_rank && out.to == to_rank) break;
      if (grow_in && in.to < from_rank)
        in.to++;
      else if (out.to < to_rank)
        out.to++;
      else
        in.to++;
    }
    split_index(context, fuse_axes(context, at, to, out), from, in, indices);
    in.from = in.to;
    out.from = out.to;
  }
}

static bool reshape_to(OpCall *call, Expr *const *shape, int rank) {
  Buffer *x = call->inputs[0];
  Expr *indices[TE_MAX_RANK];
  int64_t a, b;
  if (static_product(x->shape, (SliceRange){0, x->rank}, &a) &&
      static_product(shape, (SliceRange){0, rank}, &b) && a != b)
    return op_error(call, "%lld elements do not fit the shape %s of %lld", (long long)a,
                    extents_text(call->context, shape, rank), (long long)b);
  TeAxes axes = te_axes(call->te, shape, rank);
  map_reshape(call->context, shape, rank, axes.at, x->shape, x->rank, indices);
  op_output(call, te_compute(call->te, call->node->name, x->type, shape, &axes,
                             te_at(call->te, x, indices)));
  return true;
}

static Expr *elements_of(Context *context, Expr *const *shape, int rank) {
  Expr *count = expr_index(context, 1);
  for (int i = 0; i < rank; i++) count = expr_mul(context, count, shape[i]);
  return count;
}

// Reads a list of extents, of which those with sizes that are not known yet are expressions: their
// entries in `wanted` are 1. Returns its length; -1 when it is no such list.
static int read_extents(const OpCall *call, const char *key, int64_t *wanted, Expr **shape) {
  Expr *value = attrs_get(&call->node->attrs, key);
  if (!value || value->op != EXPR_TUPLE || value->count > TE_MAX_RANK)
    return node_ints(call->node, key, wanted, TE_MAX_RANK);
  for (int i = 0; i < value->count; i++) {
    Expr *extent = shape[i] = value->args[i];
    if (expr_as_int(extent, &wanted[i])) continue;
    if (!dtype_is_int(extent->type)) return -1;
    wanted[i] = 1;
  }
  return value->count;
}

// 0 copies the input's extent (unless allow_zero); -1 is the extent that the other axes leave.
static bool define_reshape(OpCall *call) {
  Context *context = call->context;
  Buffer *x = call->inputs[0];
  int64_t wanted[TE_MAX_RANK];
  Expr *shape[TE_MAX_RANK];
  int rank = read_extents(call, "shape", wanted, shape), open = -1;
  const Expr *list = attrs_get(&call->node->attrs, "shape");
  bool zero = node_int(call->node, "allow_zero", 0) != 0;
  if (rank < 0) return op_error(call, "'shape' must be a list of at most %d integers", TE_MAX_RANK);
  for (int i = 0; i < rank; i++) {
    int64_t known;
    bool is_list = list && list->op == EXPR_TUPLE;
    if (!is_list || expr_as_int(list->args[i], &known)) shape[i] = expr_index(context, wanted[i]);
    if (wanted[i] == -1 && open >= 0) return op_error(call, "'shape' has more than one -1");
    if (wanted[i] == -1) open = i;
    if (wanted[i] < -1) return op_error(call, "'shape' has the extent %lld", (long long)wanted[i]);
    if (wanted[i] == 0 && !zero) {
      if (i >= x->rank)
        return op_error(call, "'shape' copies axis %d of a tensor of rank %d", i, x->rank);
      shape[i] = x->shape[i];
    }
  }
  if (open >= 0) {
    shape[open] = expr_index(context, 1);
    Expr *all = elements_of(context, x->shape, x->rank),
         *others = elements_of(context, shape, rank);
    int64_t a, b;
    bool known = expr_as_int(all, &a) && expr_as_int(others, &b);
    if (known && (b == 0 || a % b))
      return op_error(call, "%lld elements do not divide by %lld", (long long)a, (long long)b);
    shape[open] = all == others ? shape[open] : expr_floor_div(context, all, others);
  }
  return reshape_to(call, shape, rank);
}

// To two axes, of which the second begins with 'axis'; without it, to one.
static bool define_flatten(OpCall *call) {
  Buffer *x = call->inputs[0];
  if (!attrs_get(&call->node->attrs, "axis"))
    return reshape_to(call, (Expr *[]){elements_of(call->context, x->shape, x->rank)}, 1);
  int64_t axis = node_int(call->node, "axis", 1);
  if (axis < 0) axis += x->rank;
  if (axis < 0 || axis > x->rank)
    return op_error(call, "axis %lld is not within a tensor of rank %d", (long long)axis, x->rank);
  Expr *shape[] = {elements_of(call->context, x->shape, (int)axis),
                   elements_of(call->context, x->shape + axis, x->rank - (int)axis)};
  return reshape_to(call, shape, 2);
}

static bool marked_axes(OpCall *call, int rank, bool *marked, int *count) {
  int64_t axes[TE_MAX_RANK];
  memset(marked, 0, sizeof *marked * TE_MAX_RANK);
  *count = node_ints(call->node, "axis", axes, TE_MAX_RANK);
  if (*count < 0)
    return op_error(call, "'axis' must be a list of at most %d integers", TE_MAX_RANK);
  for (int i = 0; i < *count; i++) {
    int axis;
    if (!op_axis(call, axes[i], rank, &axis)) return false;
    if (marked[axis]) return op_error(call, "'axis' names axis %d twice", axis);
    marked[axis] = true;
  }
  return true;
}

// Other axes than those of extent 1 stay as they are in TVM's operator, and are refused in ONNX's.
static bool define_squeeze(OpCall *call) {
  Buffer *x = call->inputs[0];
  Expr *shape[TE_MAX_RANK];
  bool marked[TE_MAX_RANK];
  int count, rank = 0;
  if (!marked_axes(call, x->rank, marked, &count)) return false;
  for (int i = 0; i < x->rank; i++) {
    bool one = expr_is_int(x->shape[i], 1);
    if (marked[i] && !one && call->node->user_op)
      return op_error(call, "axis %d of %s does not have the extent 1", i,
                      extents_text(call->context, x->shape, x->rank));
    if (!one || (count && !marked[i])) shape[rank++] = x->shape[i];
  }
  return reshape_to(call, shape, rank);
}

static bool define_expand_dims(OpCall *call) {
  Buffer *x = call->inputs[0];
  int64_t axes[TE_MAX_RANK];
  Expr *shape[TE_MAX_RANK];
  bool marked[TE_MAX_RANK];
  int count = node_ints(call->node, "axis", axes, TE_MAX_RANK), from = 0;
  if (count < 0 || x->rank + count > TE_MAX_RANK) return op_error(call, "the rank is too large");
  if (!marked_axes(call, x->rank + count, marked, &count)) return false;
  for (int i = 0; i < x->rank + count; i++)
    shape[i] = marked[i] ? expr_index(call->context, 1) : x->shape[from++];
  return reshape_to(call, shape, x->rank + count);
}

// ---- Transpose, concat, pad

static bool define_permute_dims(OpCall *call) {
  Buffer *x = call->inputs[0];
  int64_t perm[TE_MAX_RANK];
  Expr *shape[TE_MAX_RANK], *indices[TE_MAX_RANK];
  bool seen[TE_MAX_RANK] = {false};
  int count = node_ints(call->node, "axes", perm, TE_MAX_RANK);
  for (int i = 0; count == 0 && i < x->rank; i++) perm[i] = x->rank - 1 - i;
  if (count != 0 && count != x->rank)
    return op_error(call, "'axes' has %d entries for a tensor of rank %d", count, x->rank);
  for (int i = 0; i < x->rank; i++) {
    int axis;
    if (!op_axis(call, perm[i], x->rank, &axis)) return false;
    if (seen[axis]) return op_error(call, "'axes' names axis %d twice", axis);
    seen[axis] = true;
    perm[i] = axis;
    shape[i] = x->shape[axis];
  }
  TeAxes axes = te_axes(call->te, shape, x->rank);
  for (int i = 0; i < x->rank; i++) indices[perm[i]] = axes.at[i];
  op_output(call, te_compute(call->te, call->node->name, x->type, shape, &axes,
                             te_at(call->te, x, indices)));
  return true;
}

static bool check_pieces(OpCall *call, int axis) {
  Buffer *first = call->inputs[0];
  for (int i = 0; i < call->input_count; i++) {
    Buffer *x = call->inputs[i];
    if (!x) return op_error(call, "input %d is missing", i);
    if (x->rank != first->rank)
      return op_error(call, "input %d has rank %d, the first has %d", i, x->rank, first->rank);
    for (int d = 0; d < x->rank; d++)
      if (d != axis && x->shape[d] != first->shape[d])
        return op_error(call, "'%s' differs from '%s' on axis %d; only axis %d may", x->name,
                        first->name, d, axis);
  }
  return true;
}

static Buffer *concat_pieces(OpCall *call, Buffer *const *pieces, int count, int axis) {
  Context *context = call->context;
  Expr *shape[TE_MAX_RANK], *indices[TE_MAX_RANK], *value = NULL;
  Expr **ends = arena_array(&context->arena, Expr *, count), *end = expr_index(context, 0);
  for (int i = 0; i < pieces[0]->rank; i++) shape[i] = pieces[0]->shape[i];
  for (int i = 0; i < count; i++) ends[i] = end = expr_add(context, end, pieces[i]->shape[axis]);
  shape[axis] = end;
  TeAxes axes = te_axes(call->te, shape, pieces[0]->rank);
  for (int i = count - 1; i >= 0; i--) {
    memcpy(indices, axes.at, sizeof indices);
    if (i) indices[axis] = expr_sub(context, axes.at[axis], ends[i - 1]);
    Expr *element = te_at(call->te, pieces[i], indices);
    value =
        value ? expr_if_then_else(context, expr_lt(context, axes.at[axis], ends[i]), element, value)
              : element;
  }
  return te_compute(call->te, call->node->name, pieces[0]->type, shape, &axes, value);
}

// Each piece is a loop. More than MOST_PIECES pieces are concatenated in several steps, in which
// steps of equal shapes share a kernel.
static bool define_concat(OpCall *call) {
  enum { MOST_PIECES = 64 };
  int axis, count = call->input_count;
  if (!op_axis(call, node_int(call->node, "axis", 0), call->inputs[0]->rank, &axis)) return false;
  if (!check_pieces(call, axis)) return false;
  Buffer **pieces = arena_copy(&call->context->arena, call->inputs, sizeof *pieces * (size_t)count);
  while (count > MOST_PIECES) {
    int groups = 0;
    for (int i = 0; i < count; i += MOST_PIECES)
      pieces[groups++] = concat_pieces(call, pieces + i, MIN_OF(MOST_PIECES, count - i), axis);
    count = groups;
  }
  op_output(call, concat_pieces(call, pieces, count, axis));
  return true;
}

// The index that an index outside of [0, extent) is replaced by, in the modes other than constant.
static Expr *outside_index(Context *context, const char *mode, Expr *index, Expr *extent) {
  Expr *zero = expr_int(context, index->type, 0), *one = expr_int(context, index->type, 1);
  Expr *last = expr_sub(context, extent, one);
  if (!strcmp(mode, "edge")) return expr_min(context, expr_max(context, index, zero), last);
  if (!strcmp(mode, "wrap")) return expr_floor_mod(context, index, extent);
  Expr *period = expr_max(context, expr_mul(context, last, expr_int(context, index->type, 2)), one);
  Expr *phase = expr_floor_mod(context, index, period); // reflect
  return expr_min(context, phase, expr_sub(context, period, phase));
}

// Negative pads remove elements before positive ones add some.
static bool padded_index(OpCall *call, const char *mode, Expr *extent, const int64_t *pads,
                         Expr *at, Expr **index, Expr **inside) {
  Context *context = call->context;
  Expr *zero = expr_int(context, at->type, 0);
  int64_t before = MIN_OF(pads[0], (int64_t)0), behind = MIN_OF(pads[1], (int64_t)0);
  if (!strcmp(mode, "constant")) {
    Expr *i = *index = expr_sub(context, at, expr_index(context, pads[0]));
    if (pads[0] > 0) *inside = expr_and(context, *inside, expr_binary(context, EXPR_LE, zero, i));
    if (pads[1] > 0) *inside = expr_and(context, *inside, expr_lt(context, i, extent));
    return true;
  }
  Expr *left = expr_add(context, extent, expr_index(context, before + behind));
  Expr *i = expr_sub(context, at, expr_index(context, pads[0] - before));
  if (left->op == EXPR_INT && left->as.i < 1 && (pads[0] > 0 || pads[1] > 0))
    return op_error(call, "mode '%s' has no elements to pad with", mode);
  if (pads[0] > 0 || pads[1] > 0) i = outside_index(context, mode, i, left);
  *index = expr_sub(context, i, expr_index(context, before));
  return true;
}

// `pad_width` has for each axis the number of elements before and after it.
static bool define_pad(OpCall *call) {
  Context *context = call->context;
  Buffer *x = call->inputs[0];
  int64_t pads[2 * TE_MAX_RANK];
  Expr *shape[TE_MAX_RANK], *indices[TE_MAX_RANK], *inside = expr_bool(context, true);
  const char *mode = node_string(call->node, "pad_mode", "constant");
  if (!strcmp(mode, "replicate")) mode = "edge"; // the names in TVM
  if (!strcmp(mode, "circular")) mode = "wrap";
  if (strcmp(mode, "constant") && strcmp(mode, "edge") && strcmp(mode, "wrap") &&
      strcmp(mode, "reflect"))
    return op_error(call, "mode '%s' is not one of constant, edge, reflect, wrap", mode);
  if (node_ints(call->node, "pad_width", pads, 2 * TE_MAX_RANK) != 2 * x->rank)
    return op_error(call, "'pad_width' needs %d integers", 2 * x->rank);
  for (int i = 0; i < x->rank; i++) {
    shape[i] = expr_add(context, x->shape[i], expr_index(context, pads[2 * i] + pads[2 * i + 1]));
    if (shape[i]->op == EXPR_INT && shape[i]->as.i < 0)
      return op_error(call, "axis %d would have the extent %lld", i, (long long)shape[i]->as.i);
  }
  TeAxes axes = te_axes(call->te, shape, x->rank);
  for (int i = 0; i < x->rank; i++)
    if (!padded_index(call, mode, x->shape[i], &pads[2 * i], axes.at[i], &indices[i], &inside))
      return false;
  Expr *filler;
  if (!op_number(call, "pad_value", x->type, &filler)) return false;
  if (call->input_count > 1 && call->inputs[1]) {
    Expr *zeros[TE_MAX_RANK];
    for (int i = 0; i < TE_MAX_RANK; i++) zeros[i] = expr_index(context, 0);
    filler = te_at(call->te, call->inputs[1], zeros);
  }
  Expr *value = expr_if_then_else(context, inside, te_at(call->te, x, indices), filler);
  op_output(call, te_compute(call->te, call->node->name, x->type, shape, &axes, value));
  return true;
}

const OpRow shape_ops[] = {
    {"reshape", "Reshape", 1, 1, define_reshape, "shape allow_zero", .positional = "shape"},
    {"flatten", "Flatten", 1, 1, define_flatten, "axis"},
    {"squeeze", "Squeeze", 1, 1, define_squeeze, "axis", .positional = "axis"},
    {"expand_dims", "Unsqueeze", 1, 1, define_expand_dims, "axis", .positional = "axis"},
    {"permute_dims", "Transpose", 1, 1, define_permute_dims, "axes", .positional = "axes"},
    {"concat", "Concat", 1, -1, define_concat, "axis", .positional = "axis"},
    {"nn.pad", "Pad", 1, 2, define_pad, "pad_width pad_mode pad_value",
     .positional = "pad_width pad_mode pad_value"},
    {"pad", NULL, 1, 2, define_pad, "pad_width pad_mode pad_value",
     .positional = "pad_width pad_value"},
};
const int shape_op_count = COUNT_OF(shape_ops);
