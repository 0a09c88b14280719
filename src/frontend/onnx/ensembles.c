// SPDX-License-Identifier: Apache-2.0
// Imports the operators of the domain ai.onnx.ml for ensembles of decision trees: TreeEnsemble, and
// the older TreeEnsembleRegressor and TreeEnsembleClassifier.
#include "frontend/onnx/classes.h"
#include "frontend/onnx/trees.h"

#include "graph/graph.h"

#include <math.h>

static bool tensor_attribute(Import *import, const char *name, ConstData **data) {
  const OnnxAttribute *attribute = import_attribute(import, name);
  *data = NULL;
  if (!attribute || !attribute->t) return true;
  *data = onnx_tensor_data(import->importer->file, attribute->t, import->pos);
  return *data != NULL;
}

// Reads a list of `count` integers in [0, end).
static bool node_list(Import *import, const char *name, int64_t count, int64_t end,
                      IntArray *list) {
  *list = import_ints(import, name);
  if (list->count != count)
    return import_refuse(import, "attribute '%s' has %d values for %lld nodes", name, list->count,
                         (long long)count);
  for (int i = 0; i < list->count; i++)
    if (list->items[i] < 0 || list->items[i] >= end)
      return import_refuse(import, "attribute '%s' has %lld, expected less than %lld", name,
                           (long long)list->items[i], (long long)end);
  return true;
}

// ---- TreeEnsemble -----------------------------------------------------------------------------

// The successors of branches when the condition holds, or does not.
static bool take_successors(Trees *t, const char *ids, const char *leafs, int64_t *to) {
  IntArray where, is_leaf;
  if (!node_list(t->import, ids, t->branches, MAX_OF(t->branches, t->leaves), &where) ||
      !node_list(t->import, leafs, t->branches, 2, &is_leaf))
    return false;
  for (int i = 0; i < t->branches; i++) {
    if (where.items[i] >= (is_leaf.items[i] ? t->leaves : t->branches))
      return import_refuse(t->import, "attribute '%s' refers to %lld, which does not exist", ids,
                           (long long)where.items[i]);
    to[i] = where.items[i] + (is_leaf.items[i] ? t->branches : 0);
  }
  return true;
}

static bool take_numbers(Trees *t) {
  Import *import = t->import;
  ConstData *modes, *splits, *weights, *members;
  if (!tensor_attribute(import, "nodes_modes", &modes) ||
      !tensor_attribute(import, "nodes_splits", &splits) ||
      !tensor_attribute(import, "leaf_weights", &weights) ||
      !tensor_attribute(import, "membership_values", &members))
    return false;
  if (!modes || !splits || !weights)
    return import_refuse(import, "its nodes_modes, nodes_splits or leaf_weights are missing");
  t->members = members;
  t->branches = const_count(modes);
  t->leaves = const_count(weights);
  IntArray ids = import_ints(import, "leaf_targetids");
  if (!dtype_is_int(modes->type) || t->branches < 1 || ids.count != t->leaves ||
      const_count(splits) != t->branches || !dtype_equal(splits->type, t->x->type) ||
      !dtype_equal(weights->type, t->x->type))
    return import_refuse(import,
                         "its nodes, splits and leaves do not fit its input and each other");
  if (!trees_allocate(t)) return false;
  for (int64_t i = 0; i < t->branches; i++) {
    t->modes[i] = const_int(modes, i);
    t->splits[i] = const_number(splits, i);
    if (t->modes[i] < TREES_LEQ || t->modes[i] > TREES_MEMBER)
      return import_refuse(import, "node %lld has mode %lld, which does not exist", (long long)i,
                           (long long)t->modes[i]);
  }
  for (int64_t i = 0; i < t->leaves; i++)
    if (!trees_weigh(t, i, ids.items[i], const_number(weights, i))) return false;
  return true;
}

static bool take_trees(Trees *t) {
  Import *import = t->import;
  IntArray roots = import_ints(import, "tree_roots"), features, tracks;
  t->count = roots.count;
  if (!t->count) return import_refuse(import, "has no tree");
  if (!take_numbers(t)) return false;
  for (int i = 0; i < roots.count; i++) {
    if (roots.items[i] < 0 || roots.items[i] >= t->branches)
      return import_refuse(import, "tree %d begins at node %lld, which does not exist", i,
                           (long long)roots.items[i]);
    t->roots[i] = roots.items[i];
  }
  tracks = import_ints(import, "nodes_missing_value_tracks_true");
  if (tracks.count &&
      !node_list(import, "nodes_missing_value_tracks_true", t->branches, 2, &tracks))
    return false;
  if (tracks.count) t->tracks = tracks.items;
  if (!node_list(import, "nodes_featureids", t->branches, import_dim(t->x, 1), &features))
    return false;
  for (int i = 0; i < t->branches; i++) t->features[i] = features.items[i];
  return take_successors(t, "nodes_truenodeids", "nodes_trueleafs", t->yes) &&
         take_successors(t, "nodes_falsenodeids", "nodes_falseleafs", t->no);
}

static void import_tree_ensemble(Import *import) {
  Trees t = {.targets = import_int(import, "n_targets", 1)};
  int64_t how = import_int(import, "aggregate_function", TREES_SUM);
  int64_t transform = import_int(import, "post_transform", 0);
  if (!trees_begin(&t, import)) return;
  if (transform)
    import_refuse(import,
                  "attribute 'post_transform' is %lld, only 0 is supported: put the operator "
                  "that it stands for behind it",
                  (long long)transform);
  else if (how < 0 || how >= TREES_AGGREGATES)
    import_refuse(import, "aggregates in way %lld", (long long)how);
  else if (take_trees(&t)) {
    t.aggregate = (TreesAggregate)how;
    import_result(import, 0, trees_aggregate(&t, trees_descend(&t)));
  }
}

// ---- The older form ---------------------------------------------------------------------------

// Branches and leaves are in one list, with the numbers of their trees and their numbers in these.
typedef struct OlderTrees {
  Trees trees;
  const char *prefix; // of the attributes of weights: "target" or "class"
  IntArray tree_ids, ids;
  const OnnxBytesList *modes;
  Map numbers;       // key of a node to its number in `trees`, plus 1
  int64_t *number;   // the same for each position in the list
  int *tree;         // for each position, the tree's place among the trees by first occurrence
  bool all_positive; // no weight is negative
  bool one_class;    // all weights have the target `first_class`
  int64_t first_class;
} OlderTrees;

static uint64_t node_key(int64_t tree, int64_t node) {
  return ((uint64_t)tree << 32 | (uint64_t)(uint32_t)node) + 1;
}

// A list of numbers that is a list of floats, or a tensor whose name ends with "_as_tensor".
typedef struct NumberList {
  const OnnxFloats *floats;
  const ConstData *tensor;
  int64_t count;
} NumberList;

static bool number_list(Import *import, const char *name, DType type, NumberList *list) {
  const char *other = arena_printf(&import->context->arena, "%s_as_tensor", name);
  const OnnxAttribute *floats = import_attribute(import, name);
  ConstData *tensor;
  if (!tensor_attribute(import, other, &tensor)) return false;
  *list = (NumberList){floats ? &floats->floats : NULL, tensor,
                       tensor   ? const_count(tensor)
                       : floats ? floats->floats.count
                                : 0};
  return !tensor || dtype_equal(tensor->type, type) ||
         import_refuse(import, "attribute '%s' has another element type than its input", other);
}

static double list_number(const NumberList *list, int64_t i) {
  return list->tensor ? const_number(list->tensor, i) : (double)list->floats->items[i];
}

// The mode of a node; -1 with a diagnostic; TREES_MEMBER: a leaf.
static int mode_named(Import *import, OnnxBytes name) {
  static const char *const names[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
                                      "BRANCH_EQ",  "BRANCH_NEQ", "LEAF"};
  for (int i = 0; i < COUNT_OF(names); i++)
    if (name.size == strlen(names[i]) && memcmp(name.data, names[i], name.size) == 0) return i;
  import_refuse(import, "a node has mode '%.*s', which does not exist", (int)name.size,
                (const char *)name.data);
  return -1;
}

static bool is_leaf(const OlderTrees *o, int i) {
  return o->number[i] >= o->trees.branches;
}

// Numbers the branches and leaves, and counts the trees.
static bool number_nodes(OlderTrees *o) {
  Trees *t = &o->trees;
  Import *import = t->import;
  Arena *arena = &import->context->arena;
  int count = o->ids.count;
  int *modes = arena_array(arena, int, count);
  o->numbers = map_for(arena, count);
  o->number = arena_array(arena, int64_t, count);
  o->tree = arena_array(arena, int, count);
  Map trees = map_new(arena); // number of a tree to its place, plus 1
  for (int i = 0; i < count; i++) {
    if ((modes[i] = mode_named(import, o->modes->items[i])) < 0) return false;
    t->branches += modes[i] != TREES_MEMBER;
  }
  for (int i = 0, branches = 0; i < count; i++) {
    bool leaf = modes[i] == TREES_MEMBER;
    uint64_t tree = (uint64_t)o->tree_ids.items[i];
    uint64_t key = node_key(o->tree_ids.items[i], o->ids.items[i]);
    o->number[i] = leaf ? t->branches + t->leaves++ : branches++;
    if (map_has(&o->numbers, key))
      return import_refuse(import, "tree %lld has two nodes %lld", (long long)tree,
                           (long long)o->ids.items[i]);
    map_set(&o->numbers, key, (void *)(intptr_t)(o->number[i] + 1));
    if (!map_has(&trees, tree + 1)) map_set(&trees, tree + 1, (void *)(intptr_t)(++t->count));
    o->tree[i] = (int)(intptr_t)map_get(&trees, tree + 1) - 1;
  }
  if (!trees_allocate(t)) return false;
  for (int i = 0; i < count; i++)
    if (!is_leaf(o, i)) t->modes[o->number[i]] = modes[i];
  return true;
}

// The number of a tree's node; -1 with a diagnostic.
static int64_t number_of(OlderTrees *o, int64_t tree, int64_t node) {
  bool fits = tree >= 0 && tree < INT32_MAX && node >= 0 && node < INT32_MAX;
  intptr_t number = fits ? (intptr_t)map_get(&o->numbers, node_key(tree, node)) : 0;
  if (!number)
    import_refuse(o->trees.import, "refers to node %lld of tree %lld, which does not exist",
                  (long long)node, (long long)tree);
  return number - 1;
}

// Each tree begins at its first node, which must not be a successor.
static bool find_roots(OlderTrees *o) {
  Trees *t = &o->trees;
  bool *follows = arena_array(&t->import->context->arena, bool, t->branches + t->leaves);
  for (int64_t i = 0; i < t->branches; i++) follows[t->yes[i]] = follows[t->no[i]] = true;
  for (int i = 0, count = 0; i < o->ids.count; i++) {
    if (o->tree[i] < count) continue;
    t->roots[count++] = o->number[i];
    if (follows[o->number[i]])
      return import_refuse(t->import, "tree %lld begins with a node that another one leads to",
                           (long long)o->tree_ids.items[i]);
  }
  return true;
}

static bool take_branches(OlderTrees *o, const NumberList *splits, const IntArray *features,
                          const IntArray *yes, const IntArray *no) {
  Trees *t = &o->trees;
  int64_t width = import_dim(t->x, 1);
  for (int i = 0; i < o->ids.count; i++) {
    int64_t at = o->number[i], tree = o->tree_ids.items[i];
    if (is_leaf(o, i)) continue;
    t->splits[at] = list_number(splits, i);
    t->features[at] = features->items[i];
    t->yes[at] = number_of(o, tree, yes->items[i]);
    t->no[at] = number_of(o, tree, no->items[i]);
    if (t->yes[at] < 0 || t->no[at] < 0) return false;
    if (t->features[at] < 0 || t->features[at] >= width)
      return import_refuse(t->import, "reads feature %lld, and its input has %lld",
                           (long long)t->features[at], (long long)width);
  }
  return true;
}

static bool take_tracks(OlderTrees *o) {
  static const char name[] = "nodes_missing_value_tracks_true";
  Trees *t = &o->trees;
  IntArray tracks = import_ints(t->import, name);
  bool any = false;
  if (!tracks.count) return true;
  if (!node_list(t->import, name, o->ids.count, 2, &tracks)) return false;
  int64_t *of_branches = arena_array(&t->import->context->arena, int64_t, t->branches);
  for (int i = 0; i < o->ids.count; i++)
    if (!is_leaf(o, i)) any |= of_branches[o->number[i]] = tracks.items[i];
  if (any) t->tracks = of_branches;
  return true;
}

static bool take_nodes(OlderTrees *o) {
  Import *import = o->trees.import;
  const OnnxAttribute *modes = import_attribute(import, "nodes_modes");
  IntArray features = import_ints(import, "nodes_featureids");
  IntArray yes = import_ints(import, "nodes_truenodeids");
  IntArray no = import_ints(import, "nodes_falsenodeids");
  NumberList splits;
  if (!number_list(import, "nodes_values", o->trees.x->type, &splits)) return false;
  o->modes = modes ? &modes->strings : NULL;
  int count = modes ? o->modes->count : 0;
  if (!count || yes.count != count || no.count != count || features.count != count ||
      splits.count != count)
    return import_refuse(import, "its lists of nodes are empty or differ in length");
  return node_list(import, "nodes_treeids", count, INT32_MAX, &o->tree_ids) &&
         node_list(import, "nodes_nodeids", count, INT32_MAX, &o->ids) && number_nodes(o) &&
         take_branches(o, &splits, &features, &yes, &no) && take_tracks(o) && find_roots(o);
}

static IntArray weight_ints(OlderTrees *o, const char *name) {
  Import *import = o->trees.import;
  return import_ints(import, arena_printf(&import->context->arena, "%s_%s", o->prefix, name));
}

// A weight of a branch counts nowhere.
static bool take_weights(OlderTrees *o) {
  Trees *t = &o->trees;
  const char *name = arena_printf(&t->import->context->arena, "%s_weights", o->prefix);
  IntArray trees = weight_ints(o, "treeids"), nodes = weight_ints(o, "nodeids");
  IntArray ids = weight_ints(o, "ids");
  NumberList weights;
  if (!number_list(t->import, name, t->x->type, &weights)) return false;
  if (!ids.count || trees.count != ids.count || nodes.count != ids.count ||
      weights.count != ids.count)
    return import_refuse(t->import, "its lists of weights are empty or differ in length");
  o->all_positive = o->one_class = true;
  o->first_class = ids.items[0];
  for (int i = 0; i < ids.count; i++) {
    int64_t at = number_of(o, trees.items[i], nodes.items[i]);
    double weight = list_number(&weights, i);
    o->all_positive &= weight >= 0;
    o->one_class &= ids.items[i] == ids.items[0];
    if (at < 0 || (at >= t->branches && !trees_weigh(t, at - t->branches, ids.items[i], weight)))
      return false;
  }
  return true;
}

// ---- Scores -----------------------------------------------------------------------------------

// Adds the base values, which are absent or one for each target.
static bool add_base(OlderTrees *o, Value **scores) {
  Trees *t = &o->trees;
  NumberList base;
  if (!number_list(t->import, "base_values", t->x->type, &base)) return false;
  if (!base.count) return true;
  if (base.count != t->targets)
    return import_refuse(t->import, "has %lld base values, expected %lld", (long long)base.count,
                         (long long)t->targets);
  double *numbers = arena_array(&t->import->context->arena, double, base.count);
  for (int64_t i = 0; i < base.count; i++) numbers[i] = list_number(&base, i);
  Value *added = compose_constant(t->import, t->x->type, &base.count, 1, numbers);
  *scores = compose_binary(t->import, "add", *scores, added);
  return true;
}

static bool older_begin(OlderTrees *o, Import *import) {
  return trees_begin(&o->trees, import) && take_nodes(o) && take_weights(o);
}

// The aggregated weights with the base values; sets `leaves` to those that the rows reach.
static Value *older_scores(OlderTrees *o, Value **leaves) {
  *leaves = trees_descend(&o->trees);
  Value *scores = trees_aggregate(&o->trees, *leaves);
  return add_base(o, &scores) ? scores : NULL;
}

static bool take_aggregate(Trees *t) {
  static const char *const names[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  const char *name = import_text(t->import, "aggregate_function", "SUM");
  for (int i = 0; i < TREES_AGGREGATES; i++) {
    t->aggregate = (TreesAggregate)i;
    if (strcmp(name, names[i]) == 0) return true;
  }
  return import_refuse(t->import, "aggregates with '%s', which does not exist", name);
}

// For MIN and MAX each tree must have a weight for each target: without one, the result would be
// the greatest or least number here, and 0 elsewhere.
static bool is_whole(const Trees *t) {
  for (int64_t i = 0; i < t->leaves * t->targets; i++)
    if (isnan(t->weights[i]) && t->aggregate >= TREES_MIN)
      return import_refuse(t->import, "takes the least or greatest weight, and a leaf has none");
  return true;
}

static void import_regressor(Import *import) {
  OlderTrees o = {.prefix = "target"};
  Value *leaves;
  o.trees.targets = import_int(import, "n_targets", 1);
  if (o.trees.targets == 1 && !class_transform_is(import, "NONE"))
    import_refuse(import,
                  "attribute 'post_transform' is '%s', which ONNX Runtime ignores where "
                  "there is one target: put the operator that it stands for behind it",
                  import_text(import, "post_transform", ""));
  else if (older_begin(&o, import) && take_aggregate(&o.trees) && is_whole(&o.trees))
    import_result(import, 0, class_transform(import, older_scores(&o, &leaves)));
}

// ---- Classes ----------------------------------------------------------------------------------

// True when some tree has a weight for the class at each of its leaves.
static bool always_scored(const Trees *t, const int64_t *tree_of, int64_t class, bool *lacks) {
  memset(lacks, 0, (size_t)t->count);
  for (int64_t i = 0; i < t->leaves; i++)
    if (isnan(t->weights[i * t->targets + class])) lacks[tree_of[i]] = true;
  for (int64_t i = 0; i < t->count; i++)
    if (!lacks[i]) return true;
  return false;
}

static bool all_scored(const OlderTrees *o) {
  const Trees *t = &o->trees;
  Arena *arena = &t->import->context->arena;
  int64_t *tree_of = arena_array(arena, int64_t, t->leaves);
  bool *lacks = arena_array(arena, bool, t->count);
  for (int i = 0; i < o->ids.count; i++)
    if (is_leaf(o, i)) tree_of[o->number[i] - t->branches] = o->tree[i];
  for (int64_t class = 0; class < t->targets; class ++)
    if (!always_scored(t, tree_of, class, lacks)) return false;
  return true;
}

// A class without a weight at the leaves that a row reaches, and without a base value, is not
// chosen, even when the scores of all others are negative.
static Value *label_of_many(OlderTrees *o, const ClassLabels *labels, Value *leaves,
                            Value *scores) {
  Import *import = o->trees.import;
  bool based = import_has(import, "base_values") || import_has(import, "base_values_as_tensor");
  if (scores && !based && !all_scored(o))
    scores = compose_choose(import, trees_scored(&o->trees, leaves), scores,
                            import_scalar(import, scores, -INFINITY));
  return class_of_greatest(import, labels, scores);
}

// Two labels, and weights of one class: the only score is that of the second label. It is
// a probability where no weight is negative, unless the transform makes it one.
static void results_of_two(OlderTrees *o, const ClassLabels *labels, Value *score) {
  Import *import = o->trees.import;
  bool logistic = class_transform_is(import, "LOGISTIC"), probability = o->all_positive;
  Value *label = class_above(import, labels, score, probability ? 0.5 : 0);
  Value *second = compose_cast(import, score, DTYPE_FLOAT32);
  Value *first = compose_unary(import, "negative", second);
  if (logistic) {
    second = compose_unary(import, "sigmoid", second);
    first = compose_unary(import, "sigmoid", first);
  } else if (probability) {
    first = compose_number(import, "add", first, 1);
  }
  class_results(import, labels, label, compose_concat(import, (Value *[]){first, second}, 2, 1));
}

// The weights are those of the second label's class: the first one's score is 0, and the transform
// sees both.
static void results_of_second(OlderTrees *o, const ClassLabels *labels, Value *scores) {
  Import *import = o->trees.import;
  Value *second = compose_slice(import, scores, 1, 1, 2, 1);
  Value *label = class_above(import, labels, second, o->all_positive ? 0.5 : 0);
  class_results(import, labels, label, class_transform(import, scores));
}

static bool two_are_known(const OlderTrees *o, int64_t bases) {
  Import *import = o->trees.import;
  if (!o->one_class)
    return import_refuse(import, "has two labels and weights of both classes, for which ONNX "
                                 "Runtime gives other labels: write weights of one class");
  if (bases > (o->first_class == 0))
    return import_refuse(import, "has %lld base values for two labels", (long long)bases);
  return o->first_class || class_transform_is(import, "NONE") ||
         class_transform_is(import, "LOGISTIC") ||
         import_refuse(import,
                       "attribute 'post_transform' is '%s', expected NONE or LOGISTIC where "
                       "there is one score",
                       import_text(import, "post_transform", ""));
}

static bool all_are_zero(IntArray ids) {
  for (int i = 0; i < ids.count; i++)
    if (ids.items[i]) return false;
  return true;
}

static void import_classifier(Import *import) {
  OlderTrees o = {.prefix = "class", .trees.aggregate = TREES_SUM};
  ClassLabels labels;
  NumberList base;
  Value *leaves;
  if (!class_labels(import, "classlabels_int64s", &labels)) return;
  o.trees.targets =
      labels.count == 2 && all_are_zero(import_ints(import, "class_ids")) ? 1 : labels.count;
  if (!older_begin(&o, import) || !number_list(import, "base_values", o.trees.x->type, &base))
    return;
  if (labels.count > 2) {
    Value *scores = older_scores(&o, &leaves);
    Value *label = label_of_many(&o, &labels, leaves, scores);
    class_results(import, &labels, label, class_transform(import, scores));
  } else if (two_are_known(&o, base.count)) {
    o.first_class ? results_of_second(&o, &labels, older_scores(&o, &leaves))
                  : results_of_two(&o, &labels, older_scores(&o, &leaves));
  }
}

#define ML .domain = "ai.onnx.ml"
#define OLDER_NODES                                                                                \
  "base_values:floats base_values_as_tensor:tensor nodes_falsenodeids:ints nodes_featureids:ints " \
  "nodes_hitrates:floats nodes_hitrates_as_tensor:tensor nodes_missing_value_tracks_true:ints "    \
  "nodes_modes:strings nodes_nodeids:ints nodes_treeids:ints nodes_truenodeids:ints "              \
  "nodes_values:floats nodes_values_as_tensor:tensor post_transform:string "

const OnnxRow onnx_ensemble_rows[] = {
    {"TreeEnsemble", 1, 1,
     "aggregate_function:int leaf_targetids:ints leaf_weights:tensor membership_values:tensor "
     "n_targets:int nodes_falseleafs:ints nodes_falsenodeids:ints nodes_featureids:ints "
     "nodes_hitrates:tensor nodes_missing_value_tracks_true:ints nodes_modes:tensor "
     "nodes_splits:tensor nodes_trueleafs:ints nodes_truenodeids:ints post_transform:int "
     "tree_roots:ints",
     import_tree_ensemble, ML},
    {"TreeEnsembleClassifier", 1, 1,
     OLDER_NODES "class_ids:ints class_nodeids:ints class_treeids:ints class_weights:floats "
                 "class_weights_as_tensor:tensor classlabels_int64s:ints "
                 "classlabels_strings:strings",
     import_classifier, ML},
    {"TreeEnsembleRegressor", 1, 1,
     OLDER_NODES "aggregate_function:string n_targets:int target_ids:ints target_nodeids:ints "
                 "target_treeids:ints target_weights:floats target_weights_as_tensor:tensor",
     import_regressor, ML},
    {0},
};
