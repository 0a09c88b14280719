// SPDX-License-Identifier: Apache-2.0
// Defines the attention mask: which keys a query may see by its position, and attention as TVM has
// it. The attention of ONNX is composed of products and a softmax (frontend/onnx/attention.c).
#include "graph/ops/ops.h"

#include <math.h>

static Expr *as_position(Context *context, Expr *axis) {
  return expr_cast(context, DTYPE_INT64, axis);
}

// True when the key is at most `before` positions before the query and at most `after` positions
// after it; -1 means no limit.
static Expr *within_window(const OpCall *call, Expr *position, Expr *key) {
  Context *context = call->context;
  int64_t before = node_int(call->node, "before", -1), after = node_int(call->node, "after", -1);
  Expr *seen = expr_bool(context, true);
  if (before >= 0)
    seen = expr_binary(context, EXPR_LE,
                       expr_sub(context, position, expr_int(context, DTYPE_INT64, before)), key);
  if (after >= 0) {
    Expr *last = expr_add(context, position, expr_int(context, DTYPE_INT64, after));
    seen = expr_and(context, seen, expr_binary(context, EXPR_LE, key, last));
  }
  return seen;
}

// The mask out[q, k], where query q has the position q + offset. With an input, the number of valid
// keys of each batch, the mask is out[b, 1…, q, k]: the other keys are masked, and the queries are
// the last positions of the valid keys unless an offset is stated.
static bool define_attention_mask(OpCall *call) {
  Context *context = call->context;
  Buffer *lengths = call->input_count ? call->inputs[0] : NULL;
  int64_t queries = node_int(call->node, "queries", -1), keys = node_int(call->node, "keys", -1);
  int64_t rank = lengths ? node_int(call->node, "rank", 4) : 2;
  Expr *shape[TE_MAX_RANK];
  if (queries < 0 || keys < 0) return op_error(call, "takes the numbers of 'queries' and 'keys'");
  if (rank < 2 + (lengths != NULL) || rank > TE_MAX_RANK)
    return op_error(call, "'rank' is %lld", (long long)rank);
  if (lengths && (lengths->rank != 1 || !op_check_indices(call, 0)))
    return op_error(call, "takes one number of keys for each batch");
  for (int i = 0; i < rank; i++) shape[i] = expr_index(context, 1);
  if (lengths) shape[0] = lengths->shape[0];
  shape[rank - 2] = expr_index(context, queries);
  shape[rank - 1] = expr_index(context, keys);
  TeAxes axes = te_axes(call->te, shape, (int)rank);
  Expr *key = as_position(context, axes.at[rank - 1]);
  Expr *offset = expr_int(context, DTYPE_INT64, node_int(call->node, "offset", 0));
  Expr *counts = expr_bool(context, true);
  if (lengths) {
    Expr *length = as_position(context, te_at(call->te, lengths, axes.at));
    if (!attrs_get(&call->node->attrs, "offset"))
      offset = expr_sub(context, length, expr_int(context, DTYPE_INT64, queries));
    counts = expr_lt(context, key, length);
  }
  Expr *position = expr_add(context, as_position(context, axes.at[rank - 2]), offset);
  Expr *value = expr_and(context, counts, within_window(call, position, key));
  op_output(call, te_compute(call->te, call->node->name, DTYPE_BOOL, shape, &axes, value));
  return true;
}

// ---- attention: softmax(q kᵀ * scale + bias) v, on tensors of batch, position, head, element

typedef struct HeadProducts {
  OpCall *call;
  Buffer *query, *key, *value, *bias;
  Expr *scores[4], *rows[4]; // shapes: batch, head, query, key, and 1 in place of the key
} HeadProducts;

static bool read_attention(OpCall *call, HeadProducts *a) {
  Context *context = call->context;
  Buffer **inputs = call->inputs;
  *a = (HeadProducts){call, inputs[0], inputs[1], inputs[2], NULL, {NULL}, {NULL}};
  if (call->input_count > 3) a->bias = inputs[3];
  for (int i = 0; i < 3; i++)
    if (inputs[i]->rank != 4) return op_error(call, "takes tensors of rank 4");
  if (!dtype_is_float(a->query->type)) return op_error(call, "takes tensors of floats");
  Expr **q = a->query->shape, **k = a->key->shape, **v = a->value->shape;
  bool fits = op_same_extent(q[0], k[0]) && op_same_extent(q[2], k[2]) &&
              op_same_extent(q[3], k[3]) && op_same_extent(k[0], v[0]) &&
              op_same_extent(k[1], v[1]) && op_same_extent(k[2], v[2]);
  if (!fits) return op_error(call, "its queries, keys and values do not fit one another");
  Expr *scores[] = {q[0], q[2], q[1], k[1]};
  memcpy(a->scores, scores, sizeof scores);
  memcpy(a->rows, scores, sizeof scores);
  a->rows[3] = expr_index(context, 1);
  if (!a->bias) return true;
  Buffer like = {.rank = 4, .shape = a->scores};
  Expr *shape[TE_MAX_RANK];
  int rank;
  if (!op_broadcast_shape(call, (Buffer *[]){&like, a->bias}, 2, shape, &rank)) return false;
  fits = rank == 4;
  for (int i = 0; fits && i < 4; i++) fits = op_same_extent(shape[i], scores[i]);
  return fits ||
         op_error(call, "'%s' does not broadcast to batch, head, query and key", a->bias->name);
}

// The scale of the products: 1 / sqrt(elements) without the attribute.
static bool read_scale(const HeadProducts *a, Expr **scale) {
  int64_t elements;
  DType type = a->query->type;
  if (attrs_get(&a->call->node->attrs, "scale")) return op_number(a->call, "scale", type, scale);
  if (!expr_as_int(a->query->shape[3], &elements) || elements < 1)
    return op_error(a->call, "needs a 'scale' for this number of elements");
  *scale = expr_const(a->call->context, type, 1 / sqrt((double)elements));
  return true;
}

// The score where the mask lets the query see the key, and minus infinity elsewhere.
static bool masked(const HeadProducts *a, const TeAxes *axes, Expr **score) {
  Context *context = a->call->context;
  const char *mask = node_string(a->call->node, "causal_mask", NULL);
  if (!mask) return true;
  bool bottom = !strcmp(mask, "BottomRight");
  if (!bottom && strcmp(mask, "TopLeft"))
    return op_error(a->call, "'causal_mask' is '%s', expected TopLeft or BottomRight", mask);
  Expr *last = axes->at[2];
  if (bottom) last = expr_add(context, last, expr_sub(context, a->scores[3], a->scores[2]));
  *score = expr_select(context, expr_binary(context, EXPR_LE, axes->at[3], last), *score,
                       op_lowest(context, (*score)->type));
  return true;
}

static Buffer *attention_scores(const HeadProducts *a) {
  OpCall *call = a->call;
  Context *context = call->context;
  Expr *scale;
  DType type = a->query->type;
  if (!read_scale(a, &scale)) return NULL;
  TeAxes axes = te_axes(call->te, a->scores, 4);
  TeReduction sum = {.combine = EXPR_ADD, .init = expr_const(context, type, 0)};
  Expr *e = op_reduce_axis(call, &sum, "e", a->query->shape[3]);
  Expr *q[] = {axes.at[0], axes.at[2], axes.at[1], e},
       *k[] = {axes.at[0], axes.at[3], axes.at[1], e};
  Expr *product = expr_mul(context, te_at(call->te, a->query, q), te_at(call->te, a->key, k));
  Buffer *products = te_reduce(call->te, str_format(context, "%s_products", call->node->name), type,
                               a->scores, &axes, &sum, product);
  axes = te_axes(call->te, a->scores, 4);
  Expr *score = expr_mul(context, te_at(call->te, products, axes.at), scale);
  if (a->bias) score = expr_add(context, score, op_broadcast_at(call, a->bias, &axes));
  if (!masked(a, &axes, &score)) return NULL;
  return te_compute(call->te, str_format(context, "%s_scores", call->node->name), type, a->scores,
                    &axes, score);
}

static Expr *row_of(const HeadProducts *a, Buffer *rows, const TeAxes *axes) {
  Expr *at[] = {axes->at[0], axes->at[1], axes->at[2], expr_index(a->call->context, 0)};
  return te_at(a->call->te, rows, at);
}

static Buffer *over_keys(const HeadProducts *a, Buffer *x, ExprOp combine, const char *name) {
  OpCall *call = a->call;
  Context *context = call->context;
  TeAxes axes = te_axes(call->te, a->rows, 4);
  Expr *init = combine == EXPR_MAX ? op_lowest(context, x->type) : expr_const(context, x->type, 0);
  TeReduction reduction = {.combine = combine, .init = init};
  Expr *key = op_reduce_axis(call, &reduction, "k", a->scores[3]);
  Expr *at[] = {axes.at[0], axes.at[1], axes.at[2], key}, *value = te_at(call->te, x, at);
  if (combine == EXPR_MAX) value = op_number_or_lowest(call, value);
  return te_reduce(call->te, str_format(context, "%s_%s", call->node->name, name), x->type, a->rows,
                   &axes, &reduction, value);
}

static bool define_attention(OpCall *call) {
  Context *context = call->context;
  Te *te = call->te;
  HeadProducts a;
  Buffer *scores = read_attention(call, &a) ? attention_scores(&a) : NULL;
  if (!scores) return false;
  DType type = scores->type;
  Buffer *highest = over_keys(&a, scores, EXPR_MAX, "max");
  TeAxes axes = te_axes(te, a.scores, 4);
  Expr *shifted = expr_sub(context, te_at(te, scores, axes.at), row_of(&a, highest, &axes));
  Buffer *weights = te_compute(te, str_format(context, "%s_exp", call->node->name), type, a.scores,
                               &axes, expr_unary(context, EXPR_EXP, shifted));
  Buffer *sum = over_keys(&a, weights, EXPR_ADD, "sum");
  axes = te_axes(te, a.scores, 4);
  Expr *share = expr_binary(context, EXPR_DIV, te_at(te, weights, axes.at), row_of(&a, sum, &axes));
  Buffer *shares = te_compute(te, str_format(context, "%s_shares", call->node->name), type,
                              a.scores, &axes, share);
  Expr *shape[] = {a.scores[0], a.scores[2], a.scores[1], a.value->shape[3]};
  axes = te_axes(te, shape, 4);
  TeReduction total = {.combine = EXPR_ADD, .init = expr_const(context, type, 0)};
  Expr *k = op_reduce_axis(call, &total, "k", a.scores[3]);
  Expr *s[] = {axes.at[0], axes.at[2], axes.at[1], k},
       *v[] = {axes.at[0], k, axes.at[2], axes.at[3]};
  Expr *product = expr_mul(context, te_at(te, shares, s), te_at(te, a.value, v));
  op_output(call, te_reduce(te, call->node->name, type, shape, &axes, &total, product));
  return true;
}

const OpRow attention_ops[] = {
    {"nn.attention", NULL, 3, 4, define_attention, "scale causal_mask",
     .positional = "scale causal_mask"},
    {"nn.attention_bias", NULL, 4, 4, define_attention, "scale causal_mask",
     .positional = "scale causal_mask"},
    {"nn.attention_mask", NULL, 0, 1, define_attention_mask,
     "queries keys offset before after rank", .mixed_types = true},
};
const int attention_op_count = COUNT_OF(attention_ops);
