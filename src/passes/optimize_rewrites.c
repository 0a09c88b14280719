// SPDX-License-Identifier: Apache-2.0
// Cancels and merges rewrites that follow one another:
//   layout_transform of layout_transform  => one by the composed map, or none when that is the
//                                            identity on the tensor
//   pad of pad, crop of crop              => one
//   crop of pad                           => one pad or crop, or none
//   pad of crop                           => none, when the pad's value is the cropped one, or
//                                            either is T.undef()
//   layout_transform of crop              => the transform, when its padding has that value too
//   layout_transform that only pads       => pad
// Needs constant shapes. The layout algebra proves that a composed map is the identity; shapes that
// happen to be equal prove nothing.
#include "passes/rewrites.h"

typedef struct Pair {
  Context *context;
  GraphFunc *graph;
  const Node *first, *second; // second reads first
  Value *source;
  int rank; // of the source, and its shape:
  int64_t shape[TE_MAX_RANK];
} Pair;

// A new operator on the source, to replace the second one.
static Node *operator_new(const Pair *p, const char *op) {
  Value *inputs[] = {p->source};
  Node *node = node_new(p->context, NODE_OP, op, p->second->name, inputs, 1, 1);
  node->pos = p->second->pos;
  node->block = p->second->block;
  return node;
}

static void copy_attr(const Pair *p, Node *node, const Node *from, const char *key) {
  Expr *value = attrs_get(&from->attrs, key);
  if (value)
    node->attrs = attrs_with(&p->context->arena, node->attrs, str_intern(p->context, key), value);
}

static bool is_undefined(const Node *node, const char *key) {
  const Expr *value = attrs_get(&node->attrs, key);
  return value && expr_is_undefined(value);
}

// An undefined value may be any number.
static bool same_number(const Pair *p, const char *key_of_first, const char *key_of_second) {
  return is_undefined(p->first, key_of_first) || is_undefined(p->second, key_of_second) ||
         node_float(p->first, key_of_first, 0) == node_float(p->second, key_of_second, 0);
}

// Gives the node the number that both of the pair have.
static void copy_number(const Pair *p, Node *node, const char *key) {
  copy_attr(p, node, is_undefined(p->second, key) ? p->first : p->second, key);
}

static bool states_cropped(const Node *node) {
  return attrs_get(&node->attrs, "cropped_value") != NULL;
}

static bool read_list(const Node *node, const char *key, int count, int64_t *out) {
  return node_ints(node, key, out, 2 * TE_MAX_RANK) == count;
}

// ---- Pads and crops

static bool has_shape(const Value *value, const int64_t *shape, int rank) {
  int64_t own[TE_MAX_RANK];
  if (value->rank != rank || !value_static_shape(value, own)) return false;
  return memcmp(own, shape, sizeof *own * (size_t)rank) == 0;
}

static bool merge_pads(const Pair *p, Node **made) {
  int64_t a[2 * TE_MAX_RANK], b[2 * TE_MAX_RANK];
  int count = 2 * p->rank;
  if (!same_number(p, "pad_value", "pad_value") || !read_list(p->first, "pad_width", count, a) ||
      !read_list(p->second, "pad_width", count, b))
    return false;
  for (int i = 0; i < count; i++) a[i] += b[i];
  *made = operator_new(p, "pad");
  node_set_ints(p->context, *made, "pad_width", a, count);
  copy_number(p, *made, "pad_value");
  return true;
}

static bool merge_crops(const Pair *p, Node **made) {
  int64_t a[2 * TE_MAX_RANK], b[2 * TE_MAX_RANK], sizes[2 * TE_MAX_RANK];
  if (!read_list(p->first, "start_indices", p->rank, a) ||
      !read_list(p->second, "start_indices", p->rank, b) ||
      !read_list(p->second, "slice_sizes", p->rank, sizes))
    return false;
  for (int i = 0; i < p->rank; i++) a[i] += b[i];
  *made = operator_new(p, "crop");
  node_set_ints(p->context, *made, "start_indices", a, p->rank);
  node_set_ints(p->context, *made, "slice_sizes", sizes, p->rank);
  if (states_cropped(p->first) && states_cropped(p->second) &&
      same_number(p, "cropped_value", "cropped_value"))
    copy_number(p, *made, "cropped_value");
  return true;
}

// Makes a crop where nothing of what the pad adds is left, and else a pad whose widths are negative
// where it crops. No operator is needed when the source itself is left.
static bool crop_of_pad(const Pair *p, Node **made) {
  int64_t widths[2 * TE_MAX_RANK], start[2 * TE_MAX_RANK], sizes[2 * TE_MAX_RANK];
  bool pads = false;
  if (!read_list(p->first, "pad_width", 2 * p->rank, widths) ||
      !read_list(p->second, "start_indices", p->rank, start) ||
      !read_list(p->second, "slice_sizes", p->rank, sizes))
    return false;
  for (int i = 0; i < p->rank; i++) {
    if (widths[2 * i] < 0 || widths[2 * i + 1] < 0) return false;
    start[i] -= widths[2 * i];
    if (start[i] >= p->shape[i] || start[i] + sizes[i] <= 0) return false; // padding alone is left
    widths[2 * i] = -start[i];
    widths[2 * i + 1] = start[i] + sizes[i] - p->shape[i];
    pads |= widths[2 * i] > 0 || widths[2 * i + 1] > 0;
  }
  *made = NULL;
  if (!pads && has_shape(p->second->outputs[0], p->shape, p->rank)) return true;
  *made = operator_new(p, pads ? "pad" : "crop");
  if (pads) {
    node_set_ints(p->context, *made, "pad_width", widths, 2 * p->rank);
    copy_attr(p, *made, p->first, "pad_value");
    return true;
  }
  node_set_ints(p->context, *made, "start_indices", start, p->rank);
  node_set_ints(p->context, *made, "slice_sizes", sizes, p->rank);
  return true;
}

static bool pad_of_crop(const Pair *p, Node **made) {
  int64_t widths[2 * TE_MAX_RANK], start[2 * TE_MAX_RANK];
  if (!states_cropped(p->first) || !same_number(p, "cropped_value", "pad_value") ||
      !has_shape(p->second->outputs[0], p->shape, p->rank) ||
      !read_list(p->first, "start_indices", p->rank, start) ||
      !read_list(p->second, "pad_width", 2 * p->rank, widths))
    return false;
  for (int i = 0; i < p->rank; i++)
    if (widths[2 * i] != start[i]) return false;
  *made = NULL;
  return true;
}

// ---- Transforms

static bool is_transform(const Node *node) {
  return node->kind == NODE_OP && strcmp(node->op, "layout_transform") == 0;
}

static bool result_has_shape(const Pair *p, const Layout *layout) {
  const Value *result = p->second->outputs[0];
  Expr *shape[TE_MAX_RANK];
  bool same = layout->physical_rank == result->rank &&
              layout_physical_shape(p->context, layout, p->source->shape, p->source->rank, shape);
  for (int i = 0; same && i < result->rank; i++) same = shape[i] == result->shape[i];
  return same;
}

// Pads behind the elements of each axis, which stay in their order.
static Node *pad_new(const Pair *p, const Rewrite *rewrite) {
  const Layout *layout = rewrite->layout, *simple = layout_simplified(p->context, layout);
  int64_t axes[TE_MAX_RANK], widths[2 * TE_MAX_RANK] = {0};
  if (!rewrite->pads || !layout->is_static || !map_is_permutation(simple->map, axes)) return NULL;
  for (int i = 0; i < layout->rank; i++) {
    if (axes[i] != i) return NULL;
    widths[2 * i + 1] = layout->physical_extents[i] - layout->extents[i];
  }
  Node *node = operator_new(p, "pad");
  node_set_ints(p->context, node, "pad_width", widths, 2 * layout->rank);
  node_set_float(p->context, node, "pad_value", rewrite->pad_value);
  return node;
}

static Node *transform_new(const Pair *p, const Rewrite *rewrite) {
  Node *node = rewrite_node_new(p->context, p->source, rewrite);
  node->pos = p->second->pos;
  node->block = p->second->block;
  if (is_transform(node)) {
    copy_attr(p, node, p->first, "input_axis_separators");
    copy_attr(p, node, p->second, "axis_separators");
  }
  return node;
}

// Is the layout a permutation of the axes?
static bool permutes(Context *context, const Layout *layout) {
  int64_t axes[TE_MAX_RANK];
  return map_is_permutation(layout_simplified(context, layout)->map, axes);
}

// Where both transforms pad, they must pad with the same value. Two views that do not cancel and
// are no transpose together, such as a transpose of a reshape, stay as they are.
static bool merge_transforms(const Pair *p, Node **made) {
  Context *context = p->context;
  Rewrite a, b;
  if (!node_rewrite(context, p->first, &a) || !node_rewrite(context, p->second, &b)) return false;
  const Layout *both =
      layout_on_shape(context, index_map_compose(context, b.layout->map, a.layout->map),
                      p->source->shape, p->source->rank);
  *made = NULL;
  if (!both || !result_has_shape(p, both)) return false;
  if (layout_changes_nothing(context, both)) return true;
  if (!is_transform(p->first) && !is_transform(p->second) && !permutes(context, both)) return false;
  if (a.pads && b.pads && a.pad_value != b.pad_value) return false;
  Rewrite merged = {both, a.pads || b.pads, a.pads ? a.pad_value : b.pad_value};
  *made = pad_new(p, &merged);
  if (!*made) *made = transform_new(p, &merged);
  return true;
}

// The elements that the crop leaves out are stored in the padding, whose value they have.
static bool transform_of_crop(const Pair *p, Node **made) {
  int64_t start[2 * TE_MAX_RANK];
  Rewrite rewrite;
  if (!states_cropped(p->first) || !same_number(p, "cropped_value", "pad_value") ||
      !read_list(p->first, "start_indices", p->rank, start) ||
      !node_rewrite(p->context, p->second, &rewrite))
    return false;
  for (int i = 0; i < p->rank; i++)
    if (start[i] != 0) return false;
  const Layout *whole =
      layout_on_shape(p->context, rewrite.layout->map, p->source->shape, p->source->rank);
  if (!whole || !result_has_shape(p, whole) ||
      layout_is_injective(p->context, whole).verdict != VERDICT_YES)
    return false;
  rewrite.layout = whole;
  rewrite.pads = layout_pads(p->context, whole);
  *made = transform_new(p, &rewrite);
  return true;
}

// ---- The pass

static const struct {
  const char *first, *second;                   // NULL: any rewrite
  bool (*merge)(const Pair *pair, Node **made); // *made NULL: the source itself
} rules[] = {
    {NULL, NULL, merge_transforms}, {"pad", "pad", merge_pads},
    {"crop", "crop", merge_crops},  {"pad", "crop", crop_of_pad},
    {"crop", "pad", pad_of_crop},   {"crop", "layout_transform", transform_of_crop},
};

static bool is_op(const Node *node, const char *name) {
  if (!name) return node != NULL;
  return node && node->kind == NODE_OP && strcmp(node->op, name) == 0 && node->input_count == 1 &&
         !attrs_get(&node->attrs, "pad_mode");
}

// Replaces the node at `at` when it and the producer of its input are a pair of a rule. True when
// the new node may be one of another pair.
static bool rewrite(Context *context, GraphFunc *graph, int at) {
  Node *node = graph->nodes.items[at], *made = NULL;
  const Node *first = node->input_count ? node->inputs[0]->producer : NULL;
  if (!first || !node_is_known(first) || !node_is_known(node)) return false;
  for (int i = 0; i < COUNT_OF(rules); i++) {
    if (!is_op(first, rules[i].first) || !is_op(node, rules[i].second)) continue;
    Pair pair = {context, graph, first, node, first->inputs[0], first->inputs[0]->rank};
    bool is_static = value_static_shape(pair.source, pair.shape);
    if ((rules[i].first && !is_static) || !rules[i].merge(&pair, &made)) continue;
    if (made && !op_infer(context, made)) return false;
    Value *value = made ? made->outputs[0] : pair.source;
    if (made) value->name = node->outputs[0]->name;
    if (made) graph->nodes.items[at] = made;
    graph_replace_value(graph, node->outputs[0], value);
    return made != NULL; // a node that nothing uses is not looked at again
  }
  return false;
}

bool graph_optimize_rewrites(PassRun *run) {
  Context *context = run->context;
  GraphFunc *graph = run->graph;
  for (int i = 0; i < graph->nodes.count; i++)
    while (rewrite(context, graph, i)) continue;
  graph_remove_unused(context, graph);
  return context->error_count == 0;
}
