// SPDX-License-Identifier: Apache-2.0
// Random small graphs: convolutions, pools, products, elementwise operators with residuals, views,
// concatenations, normalisations, odd channel counts.
#ifndef PLEAT_TESTS_RANDOM_GRAPH_H
#define PLEAT_TESTS_RANDOM_GRAPH_H

#include "graph/graph.h"

#include <math.h>

enum { MOST_VALUES = 32, MOST_ELEMENTS = 6000 };

typedef struct Growth {
  Context *context;
  GraphFunc *graph;
  uint64_t state;
  Value *values[MOST_VALUES];
  int count;
} Growth;

static inline int below(Growth *g, int n) {
  g->state = g->state * 6364136223846793005u + 1442695040888963407u;
  return (int)((g->state >> 33) % (uint64_t)n);
}

static inline int64_t extent(const Value *value, int axis) {
  return value->shape[axis]->as.i;
}

static inline Value *constant(Growth *g, const int64_t *shape, int rank, double low, double high) {
  Arena *arena = &g->context->arena;
  int64_t count = 1;
  for (int i = 0; i < rank; i++) count *= shape[i];
  float *data = arena_alloc(arena, (size_t)count * sizeof *data);
  for (int64_t i = 0; i < count; i++) data[i] = (float)(low + (high - low) * below(g, 1024) / 1023);
  ConstData *contents = arena_new(arena, ConstData);
  *contents = (ConstData){.name = str_format(g->context, "c%d", below(g, 1 << 30)),
                          .type = DTYPE_FLOAT32,
                          .rank = rank,
                          .shape = arena_copy(arena, shape, sizeof *shape * (size_t)rank),
                          .data = data,
                          .bytes = (size_t)count * sizeof *data};
  return value_constant(g->context, contents);
}

static inline Node *call(Growth *g, const char *op, Value *const *inputs, int count) {
  Str name = str_format(g->context, "n%d", g->graph->nodes.count);
  return node_new(g->context, NODE_OP, op, name, inputs, count, 1);
}

// Adds the node if its definition accepts it and its result is not too large.
static inline void take(Growth *g, Node *node) {
  Context *context = g->context;
  int64_t shape[TE_MAX_RANK], count = 1;
  bool fits = op_infer(context, node) && node->outputs[0]->rank <= 5 &&
              value_static_shape(node->outputs[0], shape);
  context->diags.count = context->error_count = 0;
  for (int i = 0; fits && i < node->outputs[0]->rank; i++) count *= shape[i];
  if (!fits || count > MOST_ELEMENTS || count == 0 || g->count == MOST_VALUES) return;
  node->outputs[0]->producer = node;
  array_push(&context->arena, &g->graph->nodes, node);
  g->values[g->count++] = node->outputs[0];
}

static inline void grow_conv(Growth *g, Value *x) {
  static const int filters[] = {1, 3, 5, 8, 13, 16, 17, 20, 32};
  if (x->rank != 4) return;
  int64_t channels = extent(x, 1), groups = 1, out = filters[below(g, COUNT_OF(filters))];
  if (below(g, 4) == 0) groups = out = channels;
  if (channels % 2 == 0 && below(g, 6) == 0) groups = 2, out = 2 * (1 + below(g, 9));
  int64_t r = 1 + below(g, 3), s = below(g, 2) ? r : 1 + below(g, 3);
  double scale = 1.7 / sqrt((double)(channels / groups * r * s));
  Value *inputs[] = {x, constant(g, (int64_t[]){out, channels / groups, r, s}, 4, -scale, scale),
                     constant(g, &out, 1, -0.5, 0.5)};
  Node *node = call(g, "nn.conv2d", inputs, 2 + below(g, 2));
  int64_t strides[] = {1 + below(g, 2), 1 + below(g, 2)};
  int64_t pads[] = {below(g, (int)r), below(g, (int)s), below(g, (int)r), below(g, (int)s)};
  node_set_ints(g->context, node, "strides", strides, 2);
  node_set_ints(g->context, node, "padding", pads, 4);
  if (below(g, 8) == 0) node_set_ints(g->context, node, "dilation", (int64_t[]){2, 1}, 2);
  node_set_int(g->context, node, "groups", groups);
  take(g, node);
}

static inline void grow_unary(Growth *g, Value *x) {
  static const char *const ops[] = {"nn.relu",      "nn.relu", "sigmoid",       "tanh",
                                    "nn.leakyrelu", "abs",     "nn.hard_swish", "identity"};
  take(g, call(g, ops[below(g, COUNT_OF(ops))], &x, 1));
}

// Combines the tensor with an earlier one that broadcasts, or a constant of one number a channel.
static inline void grow_binary(Growth *g, Value *x) {
  static const char *const ops[] = {"add", "add", "multiply", "subtract", "maximum"};
  Value *other = g->values[below(g, g->count)];
  int64_t shape[] = {x->rank > 1 ? extent(x, 1) : 1, 1, 1};
  if (below(g, 3) == 0)
    other = x->rank == 4 ? constant(g, shape, 3, -1, 1) : constant(g, shape, 0, -1, 1);
  Value *inputs[] = {x, other};
  if (below(g, 3) == 0) inputs[0] = other, inputs[1] = x;
  take(g, call(g, ops[below(g, COUNT_OF(ops))], inputs, 2));
}

static inline void grow_residual(Growth *g, Value *x) {
  for (int i = g->count - 1; i >= 0; i--) {
    Value *other = g->values[i];
    bool same = other != x && other->rank == x->rank;
    for (int d = 0; same && d < x->rank; d++) same = extent(other, d) == extent(x, d);
    if (!same) continue;
    take(g, call(g, "add", (Value *[]){x, other}, 2));
    return;
  }
}

static inline void grow_pool(Growth *g, Value *x) {
  if (x->rank != 4) return;
  if (below(g, 5) == 0) {
    take(g, call(g, below(g, 2) ? "nn.global_avg_pool2d" : "nn.global_max_pool2d", &x, 1));
    return;
  }
  Node *node = call(g, below(g, 2) ? "nn.max_pool2d" : "nn.avg_pool2d", &x, 1);
  int64_t size[] = {1 + below(g, 3), 2 + below(g, 2)}, strides[] = {1 + below(g, 2), 2};
  node_set_ints(g->context, node, "pool_size", size, 2);
  node_set_ints(g->context, node, "strides", strides, 2);
  node_set_ints(g->context, node, "padding", (int64_t[]){0, below(g, 2), 0, 1}, 4);
  take(g, node);
}

static inline void grow_norm(Growth *g, Value *x) {
  if (x->rank < 2) return;
  int64_t channels = extent(x, 1);
  Value *inputs[] = {x, constant(g, &channels, 1, 0.5, 1.5), constant(g, &channels, 1, -0.5, 0.5),
                     constant(g, &channels, 1, -0.5, 0.5), constant(g, &channels, 1, 0.5, 1.5)};
  Node *node = call(g, "nn.batch_norm", inputs, 5);
  node_set_int(g->context, node, "training", 0);
  take(g, node);
}

static inline void grow_transpose(Growth *g, Value *x) {
  int64_t axes[TE_MAX_RANK];
  for (int i = 0; i < x->rank; i++) axes[i] = i;
  for (int i = x->rank - 1; i > 0; i--) {
    int k = below(g, i + 1);
    int64_t t = axes[i];
    axes[i] = axes[k], axes[k] = t;
  }
  Node *node = call(g, "permute_dims", &x, 1);
  node_set_ints(g->context, node, "axes", axes, x->rank);
  if (x->rank > 1) take(g, node);
}

// Two neighbouring axes become one, or one becomes two.
static inline void grow_reshape(Growth *g, Value *x) {
  int64_t shape[TE_MAX_RANK];
  int rank = 0, at = x->rank > 1 ? below(g, x->rank - 1) : 0, by = 2 + below(g, 3);
  bool merges = x->rank > 1 && (x->rank > 3 || below(g, 2));
  for (int i = 0; i < x->rank; i++) {
    int64_t e = extent(x, i);
    if (merges && i == at + 1)
      shape[rank - 1] *= e;
    else if (!merges && i == at && e % by == 0)
      shape[rank++] = e / by, shape[rank++] = by;
    else
      shape[rank++] = e;
  }
  Node *node = call(g, "reshape", &x, 1);
  node_set_ints(g->context, node, "shape", shape, rank);
  take(g, node);
}

static inline void grow_concat(Growth *g, Value *x) {
  Value *inputs[3] = {x};
  int axis = x->rank > 1 ? below(g, 2) : 0, count = 1;
  for (int i = g->count - 1; i >= 0 && count < 3; i--) {
    Value *other = g->values[i];
    bool fits = other->rank == x->rank;
    for (int d = 0; fits && d < x->rank; d++) fits = d == axis || extent(other, d) == extent(x, d);
    if (fits && (other != x || below(g, 2))) inputs[count++] = other;
  }
  Node *node = call(g, "concat", inputs, count);
  node_set_int(g->context, node, "axis", axis);
  if (x->rank && count > 1) take(g, node);
}

static inline void grow_pad(Growth *g, Value *x) {
  int64_t widths[2 * TE_MAX_RANK];
  for (int i = 0; i < 2 * x->rank; i++) widths[i] = below(g, 3) ? 0 : 1 + below(g, 2);
  Node *node = call(g, "nn.pad", &x, 1);
  node_set_ints(g->context, node, "pad_width", widths, 2 * x->rank);
  node_set_float(g->context, node, "pad_value", below(g, 2) ? 0 : 0.5);
  if (x->rank) take(g, node);
}

static inline void grow_rows(Growth *g, Value *x) {
  static const char *const ops[] = {"nn.layer_norm", "nn.rms_norm", "nn.instance_norm"};
  int which = below(g, COUNT_OF(ops));
  if (x->rank < (which == 2 ? 3 : 1)) return;
  int64_t count = extent(x, which == 2 ? 1 : x->rank - 1);
  Value *inputs[] = {x, constant(g, &count, 1, 0.5, 1.5), constant(g, &count, 1, -0.5, 0.5)};
  Node *node = call(g, ops[which], inputs, which == 1 ? 2 : 1 + 2 * below(g, 2));
  node_set_float(g->context, node, "epsilon",
                 0.5); // else rows of equal elements give rounding noise
  take(g, node);
}

static inline void grow_softmax(Growth *g, Value *x) {
  Node *node = call(g, "nn.softmax", &x, 1);
  node_set_int(g->context, node, "axis", x->rank ? below(g, x->rank) : 0);
  if (x->rank) take(g, node);
}

static inline void grow_matmul(Growth *g, Value *x) {
  static const int columns[] = {1, 7, 10, 16, 19, 33};
  if (x->rank < 2) return;
  int64_t k = extent(x, x->rank - 1), n = columns[below(g, COUNT_OF(columns))];
  double scale = 1.7 / sqrt((double)k);
  Value *inputs[] = {x, constant(g, (int64_t[]){k, n}, 2, -scale, scale)};
  take(g, call(g, "matmul", inputs, 2));
}

static inline void grow_reduction(Growth *g, Value *x) {
  static const char *const ops[] = {"mean", "sum", "max"};
  if (!x->rank) return;
  Node *node = call(g, ops[below(g, COUNT_OF(ops))], &x, 1);
  node_set_ints(g->context, node, "axis", (int64_t[]){below(g, x->rank)}, 1);
  node_set_int(g->context, node, "keepdims", below(g, 2));
  take(g, node);
}

// Running sums, or elements scattered to indices that are computed at run time.
static inline void grow_ordered(Growth *g, Value *x) {
  static const char *const ways[] = {"none", "add", "max"};
  if (!x->rank) return;
  int axis = below(g, x->rank), sums = below(g, 2);
  int64_t shape[TE_MAX_RANK];
  value_static_shape(x, shape);
  shape[0] = 1 + below(g, (int)shape[0]);
  double last = (double)extent(x, axis) - 0.25;
  Node *places = call(g, "astype", (Value *[]){constant(g, shape, x->rank, -last, last)}, 1);
  node_set_string(g->context, places, "dtype", "int64");
  if (!sums && !op_infer(g->context, places)) return;
  if (!sums) array_push(&g->context->arena, &g->graph->nodes, places);
  Value *inputs[] = {x, places->outputs[0], constant(g, shape, x->rank, -1, 1)};
  Node *node = call(g, sums ? "cumsum" : "scatter_elements", inputs, sums ? 1 : 3);
  node_set_int(g->context, node, "axis", axis);
  if (!sums) node_set_string(g->context, node, "reduction", ways[below(g, 3)]);
  take(g, node);
}

static void (*const growers[])(Growth *, Value *) = {
    grow_conv,     grow_conv,      grow_conv,    grow_conv,   grow_unary,  grow_unary,
    grow_norm,     grow_binary,    grow_binary,  grow_pool,   grow_matmul, grow_residual,
    grow_residual, grow_transpose, grow_reshape, grow_concat, grow_pad,    grow_softmax,
    grow_rows,     grow_reduction, grow_ordered,
};

static inline GraphFunc *random_graph(Context *context, uint64_t seed) {
  static const int channels[] = {1, 3, 5, 8, 13, 16, 17, 20};
  Growth g = {.context = context, .state = seed * 0x9e3779b97f4a7c15u + 7};
  g.graph = graph_func_new(context, "random");
  int64_t image[] = {1 + below(&g, 5) / 4, channels[below(&g, 8)], 4 + below(&g, 8),
                     3 + below(&g, 8)};
  g.graph->param_count = 1 + below(&g, 3) / 2;
  g.graph->params = arena_array(&context->arena, Value *, 2);
  for (int i = 0; i < g.graph->param_count; i++) {
    Expr *shape[4];
    for (int d = 0; d < 4; d++) shape[d] = expr_index(context, i && d == 1 ? 1 : image[d]);
    g.graph->params[i] = g.values[g.count++] =
        value_new(context, i ? "y" : "x", DTYPE_FLOAT32, shape, 4);
  }
  int wanted = 3 + below(&g, 8);
  for (int tries = 0; tries < 60 && g.graph->nodes.count < wanted; tries++) {
    Value *x = g.values[below(&g, 3) ? g.count - 1 : below(&g, g.count)];
    growers[below(&g, COUNT_OF(growers))](&g, x);
  }
  int made = g.graph->nodes.count;
  g.graph->outputs = arena_array(&context->arena, Value *, 2);
  g.graph->outputs[g.graph->output_count++] = g.values[g.count - 1];
  if (made > 2 && below(&g, 3) == 0) {
    Value *other = g.graph->nodes.items[below(&g, made - 1)]->outputs[0];
    if (dtype_equal(other->type, DTYPE_FLOAT32)) g.graph->outputs[g.graph->output_count++] = other;
  }
  return g.graph;
}

#endif
