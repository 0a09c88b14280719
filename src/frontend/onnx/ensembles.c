// SPDX-License-Identifier: Apache-2.0
// Imports the operator TreeEnsemble of the domain ai.onnx.ml.
#include "frontend/onnx/trees.h"

#include "graph/graph.h"

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

#define ML .domain = "ai.onnx.ml"

const OnnxRow onnx_ensemble_rows[] = {
    {"TreeEnsemble", 1, 1,
     "aggregate_function:int leaf_targetids:ints leaf_weights:tensor membership_values:tensor "
     "n_targets:int nodes_falseleafs:ints nodes_falsenodeids:ints nodes_featureids:ints "
     "nodes_hitrates:tensor nodes_missing_value_tracks_true:ints nodes_modes:tensor "
     "nodes_splits:tensor nodes_trueleafs:ints nodes_truenodeids:ints post_transform:int "
     "tree_roots:ints",
     import_tree_ensemble, ML},
    {0},
};
