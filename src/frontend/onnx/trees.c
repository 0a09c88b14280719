// SPDX-License-Identifier: Apache-2.0
// Imports operators of the domain ai.onnx.ml: selecting and binarising features, and ensembles of
// decision trees. All trees descend one level at a time, for all rows at once: a node is a number,
// and tables that are indexed by it hold its feature, its threshold and its two successors. Leaves
// are numbered after the nodes, and each leaf is its own successor.
#include "frontend/onnx/compose.h"

#include "graph/graph.h"

#include <float.h>
#include <math.h>

enum { MOST_LEVELS = 256, MOST_MEMBERS = 1 << 20 };

typedef enum Mode { MODE_LEQ, MODE_LT, MODE_GTE, MODE_GT, MODE_EQ, MODE_NEQ, MODE_MEMBER } Mode;

// The tables, with one entry for each node and leaf.
typedef struct Tables {
  Value *yes, *no, *features, *splits, *members;
  Value *of_mode[MODE_MEMBER + 1]; // nonzero for nodes of the mode; NULL: no node has it
  Value *tracks;                   // nonzero for nodes whose condition holds for NaN; NULL: none
  int modes;                       // number of modes that occur
} Tables;

typedef struct Trees {
  Import *import;
  Value *x; // [rows, features]
  int64_t rows, nodes, leaves, count, targets;
  ConstData *modes, *splits, *weights;
  int64_t *yes, *no, *features; // of nodes and leaves
  int levels;
  Tables tables;
} Trees;

// ---- Tables -----------------------------------------------------------------------------------

static bool tensor_attribute(Trees *t, const char *name, ConstData **data) {
  const OnnxAttribute *attribute = import_attribute(t->import, name);
  *data = NULL;
  if (!attribute || !attribute->t) return true;
  *data = onnx_tensor_data(t->import->importer->file, attribute->t, t->import->pos);
  return *data != NULL;
}

// Reads a list of one integer for each node, in [0, end).
static bool node_list(Trees *t, const char *name, int64_t end, IntArray *list) {
  *list = import_ints(t->import, name);
  if (list->count != t->nodes)
    return import_refuse(t->import, "attribute '%s' has %d values for %lld nodes", name,
                         list->count, (long long)t->nodes);
  for (int i = 0; i < list->count; i++)
    if (list->items[i] < 0 || list->items[i] >= end)
      return import_refuse(t->import, "attribute '%s' has %lld, expected less than %lld", name,
                           (long long)list->items[i], (long long)end);
  return true;
}

// The successors of nodes when the condition holds, or does not: nodes, or leaves (numbered after
// the nodes).
static bool branches(Trees *t, const char *ids, const char *leafs, int64_t **to) {
  IntArray where, is_leaf;
  if (!node_list(t, ids, MAX_OF(t->nodes, t->leaves), &where) || !node_list(t, leafs, 2, &is_leaf))
    return false;
  *to = arena_array(&t->import->context->arena, int64_t, (int)(t->nodes + t->leaves));
  for (int i = 0; i < t->nodes; i++) {
    if (where.items[i] >= (is_leaf.items[i] ? t->leaves : t->nodes))
      return import_refuse(t->import, "attribute '%s' refers to %lld, which does not exist", ids,
                           (long long)where.items[i]);
    (*to)[i] = where.items[i] + (is_leaf.items[i] ? t->nodes : 0);
  }
  for (int64_t i = t->nodes; i < t->nodes + t->leaves; i++) (*to)[i] = i;
  return true;
}

static bool count_levels(Trees *t, const IntArray *roots) {
  Arena *arena = &t->import->context->arena;
  bool *here = arena_array(arena, bool, (int)t->nodes), *below;
  for (int i = 0; i < roots->count; i++) here[roots->items[i]] = true;
  for (bool any = true; any; here = below) {
    if (t->levels++ == MOST_LEVELS)
      return import_refuse(t->import, "its trees are deeper than %d, or have a cycle", MOST_LEVELS);
    below = arena_array(arena, bool, (int)t->nodes);
    any = false;
    for (int64_t i = 0; i < t->nodes; i++)
      if (here[i] && t->yes[i] < t->nodes) any = below[t->yes[i]] = true;
    for (int64_t i = 0; i < t->nodes; i++)
      if (here[i] && t->no[i] < t->nodes) any = below[t->no[i]] = true;
  }
  return true;
}

static bool take_numbers(Trees *t) {
  Import *import = t->import;
  if (!tensor_attribute(t, "nodes_modes", &t->modes) ||
      !tensor_attribute(t, "nodes_splits", &t->splits) ||
      !tensor_attribute(t, "leaf_weights", &t->weights))
    return false;
  if (!t->modes || !t->splits || !t->weights)
    return import_refuse(import, "its nodes_modes, nodes_splits or leaf_weights are missing");
  t->nodes = const_count(t->modes);
  t->leaves = const_count(t->weights);
  if (!dtype_is_int(t->modes->type) || t->nodes < 1 || t->leaves < 1 ||
      t->nodes + t->leaves >= INT32_MAX / 8 || const_count(t->splits) != t->nodes ||
      !dtype_equal(t->splits->type, t->x->type) || !dtype_equal(t->weights->type, t->x->type))
    return import_refuse(import,
                         "its nodes, splits and leaves do not fit its input and each other");
  for (int64_t i = 0; i < t->nodes; i++)
    if (const_int(t->modes, i) < MODE_LEQ || const_int(t->modes, i) > MODE_MEMBER)
      return import_refuse(import, "node %lld has mode %lld, which does not exist", (long long)i,
                           (long long)const_int(t->modes, i));
  return true;
}

static bool take_trees(Trees *t, IntArray *roots) {
  Import *import = t->import;
  IntArray features;
  *roots = import_ints(import, "tree_roots");
  t->count = roots->count;
  for (int i = 0; i < roots->count; i++)
    if (roots->items[i] < 0 || roots->items[i] >= t->nodes)
      return import_refuse(import, "tree %d begins at node %lld, which does not exist", i,
                           (long long)roots->items[i]);
  if (!t->count) return import_refuse(import, "has no tree");
  if (!node_list(t, "nodes_featureids", import_dim(t->x, 1), &features) ||
      !branches(t, "nodes_truenodeids", "nodes_trueleafs", &t->yes) ||
      !branches(t, "nodes_falsenodeids", "nodes_falseleafs", &t->no))
    return false;
  t->features = arena_array(&import->context->arena, int64_t, (int)(t->nodes + t->leaves));
  for (int i = 0; i < t->nodes; i++) t->features[i] = features.items[i];
  return count_levels(t, roots);
}

// ---- Descending the trees ---------------------------------------------------------------------

static Value *read_at(Trees *t, Value *table, Value *at) {
  return compose_binary(t->import, "take", table, at);
}

static Value *numbers(Trees *t, const int64_t *values) {
  int64_t count = t->nodes + t->leaves;
  return import_const(t->import, DTYPE_INT64, &count, 1, values);
}

static Value *either(Trees *t, Value *a, Value *b) {
  return a ? compose_binary(t->import, "logical_or", a, b) : b;
}

// A table that is 1 for nodes of a mode, or for nodes that the attribute's list marks, and 0 for
// others.
static Value *marks(Trees *t, const IntArray *list, int mode) {
  int64_t *marked = arena_array(&t->import->context->arena, int64_t, (int)(t->nodes + t->leaves));
  for (int64_t i = 0; i < t->nodes; i++)
    marked[i] = list ? list->items[i] != 0 : const_int(t->modes, i) == mode;
  return numbers(t, marked);
}

static Value *is_marked(Trees *t, Value *table, Value *at) {
  return compose_number(t->import, "not_equal", read_at(t, table, at), 0);
}

static bool has_mode(const Trees *t, int mode) {
  bool has = false;
  for (int64_t i = 0; i < t->nodes; i++) has |= const_int(t->modes, i) == mode;
  return has;
}

// The members of the nodes' sets. The attribute lists them consecutively, with a NaN after each
// set; the table has as many columns as the largest set, and fills shorter rows with NaN, which is
// equal to no value.
static Value *member_table(Trees *t) {
  Import *import = t->import;
  ConstData *given;
  int64_t widest = 1, width = 0, at = 0, count;
  if (!tensor_attribute(t, "membership_values", &given)) return NULL;
  for (int64_t i = 0; given && i < const_count(given); i++, widest = MAX_OF(widest, width))
    width = isnan(const_number(given, i)) ? 0 : width + 1;
  int64_t shape[] = {t->nodes + t->leaves, widest};
  if (!given || !dtype_equal(given->type, t->x->type) || !mul_fits(shape[0], widest, &count) ||
      count > MOST_MEMBERS) {
    import_refuse(import, "its membership_values are missing, of another type, or more than %d",
                  MOST_MEMBERS);
    return NULL;
  }
  double *members = arena_array(&import->context->arena, double, (int)count);
  for (int64_t i = 0; i < count; i++) members[i] = NAN;
  for (int64_t i = 0; i < t->nodes; i++) {
    if (const_int(t->modes, i) != MODE_MEMBER) continue;
    for (int64_t k = 0; at < const_count(given); k++) {
      double member = const_number(given, at++);
      if (isnan(member)) break;
      members[i * widest + k] = member;
    }
  }
  return compose_constant(import, t->x->type, shape, 2, members);
}

static bool make_tables(Trees *t) {
  Tables *tables = &t->tables;
  IntArray tracks = import_ints(t->import, "nodes_missing_value_tracks_true");
  int64_t count = t->nodes + t->leaves;
  double *splits = arena_array(&t->import->context->arena, double, (int)count);
  for (int64_t i = 0; i < t->nodes; i++) splits[i] = const_number(t->splits, i);
  tables->splits = compose_constant(t->import, t->x->type, &count, 1, splits);
  tables->yes = numbers(t, t->yes);
  tables->no = numbers(t, t->no);
  tables->features = numbers(t, t->features);
  if (tracks.count) tables->tracks = marks(t, &tracks, 0);
  for (int mode = MODE_LEQ; mode <= MODE_MEMBER; mode++) {
    if (!has_mode(t, mode)) continue;
    tables->of_mode[mode] = marks(t, NULL, mode);
    tables->modes++;
  }
  if (tables->of_mode[MODE_MEMBER]) tables->members = member_table(t);
  return tables->members || !tables->of_mode[MODE_MEMBER];
}

static Value *is_member(Trees *t, Value *at, Value *value) {
  int64_t shape[] = {t->rows, t->count, 1}, last = 2;
  Node *node = import_begin(t->import, "take", (Value *[]){t->tables.members, at}, 2);
  node_set_int(t->import->context, node, "axis", 0);
  Value *members = at ? import_add(t->import, node) : NULL;
  Value *equal =
      compose_binary(t->import, "equal", members, compose_reshape(t->import, value, shape, 3));
  Value *any = compose_reduce(t->import, "max", compose_cast(t->import, equal, DTYPE_INT32), &last,
                              1, false);
  return compose_number(t->import, "not_equal", any, 0);
}

// The condition of each row's present node in each tree. At leaves the result does not matter.
static Value *holds(Trees *t, Value *at, Value *value) {
  static const char *const ops[] = {"less_equal", "less",  "greater_equal",
                                    "greater",    "equal", "not_equal"};
  Import *import = t->import;
  const Tables *tables = &t->tables;
  Value *split = read_at(t, tables->splits, at), *all = NULL;
  for (int mode = MODE_LEQ; mode <= MODE_MEMBER; mode++) {
    if (!tables->of_mode[mode]) continue;
    Value *one = mode == MODE_MEMBER ? is_member(t, at, value)
                                     : compose_binary(import, ops[mode], value, split);
    if (tables->modes > 1)
      one = compose_binary(import, "logical_and", is_marked(t, tables->of_mode[mode], at), one);
    all = either(t, all, one);
  }
  if (!tables->tracks) return all;
  Value *missing = compose_binary(import, "logical_and", is_marked(t, tables->tracks, at),
                                  compose_binary(import, "not_equal", value, value));
  return either(t, all, missing);
}

// The leaf of each row in each tree, numbered after the nodes: [rows, trees].
static Value *leaves_of(Trees *t, const IntArray *roots) {
  Import *import = t->import;
  int64_t shape[] = {t->rows, t->count};
  if (!make_tables(t)) return NULL;
  Value *root = import_const(import, DTYPE_INT64, &t->count, 1, roots->items);
  Node *node = import_begin(import, "broadcast_to", &root, 1);
  node_set_ints(import->context, node, "shape", shape, 2);
  Value *at = import_add(import, node);
  for (int level = 0; at && level < t->levels; level++) {
    Value *inputs[] = {t->x, read_at(t, t->tables.features, at)};
    node = import_begin(import, "gather_elements", inputs, 2);
    node_set_int(import->context, node, "axis", 1);
    Value *condition = holds(t, at, inputs[1] ? import_add(import, node) : NULL);
    at = compose_choose(import, condition, read_at(t, t->tables.yes, at),
                        read_at(t, t->tables.no, at));
  }
  return at;
}

// ---- Combining the leaves ---------------------------------------------------------------------

// Combines the weights of the trees' leaves for each target.
static Value *aggregated(Trees *t, Value *at) {
  static const char *const ops[] = {"sum", "sum", "min", "max"};
  Import *import = t->import;
  int64_t how = import_int(import, "aggregate_function", 1), trees = 1;
  int64_t shape[] = {t->rows, t->count, 1}, count = t->nodes + t->leaves;
  IntArray ids = import_ints(import, "leaf_targetids");
  if (ids.count != t->leaves || how < 0 || how > 3) {
    import_refuse(import, "has %d targets for %lld leaves, or aggregates in way %lld", ids.count,
                  (long long)t->leaves, (long long)how);
    return NULL;
  }
  double most = t->x->type.bits == 64 ? DBL_MAX : FLT_MAX;
  double nothing = how == 2 ? most : how == 3 ? -most : 0;
  double *weights = arena_array(&import->context->arena, double, (int)count);
  int64_t *targets = arena_array(&import->context->arena, int64_t, (int)count);
  int64_t *columns = arena_array(&import->context->arena, int64_t, (int)t->targets);
  for (int64_t i = 0; i < t->leaves; i++) {
    weights[t->nodes + i] = const_number(t->weights, i) / (how == 0 ? (double)t->count : 1);
    targets[t->nodes + i] = ids.items[i];
  }
  for (int64_t i = 0; i < t->targets; i++) columns[i] = i;
  Value *weight = read_at(t, compose_constant(import, t->x->type, &count, 1, weights), at);
  Value *target = compose_reshape(import, read_at(t, numbers(t, targets), at), shape, 3);
  Value *column = import_const(import, DTYPE_INT64, &t->targets, 1, columns);
  Value *mine = compose_binary(import, "equal", target, column);
  Value *parts = compose_choose(import, mine, compose_reshape(import, weight, shape, 3),
                                import_scalar(import, t->x, nothing));
  return compose_reduce(import, ops[how], parts, &trees, 1, false);
}

static void import_tree_ensemble(Import *import) {
  Trees t = {.import = import, .x = import->inputs[0]};
  IntArray roots;
  if (t.x->rank != 2 || !dtype_is_float(t.x->type) || t.x->type.bits < 32) {
    import_refuse(import, "takes float32 or float64 [rows, features]");
    return;
  }
  t.rows = import_dim(t.x, 0);
  t.targets = import_int(import, "n_targets", 1);
  if (t.targets < 1 || t.targets > MOST_MEMBERS) {
    import_refuse(import, "has %lld targets", (long long)t.targets);
    return;
  }
  if (import_int(import, "post_transform", 0)) {
    import_refuse(import,
                  "attribute 'post_transform' is %lld, only 0 is supported: put the operator "
                  "that it stands for behind it",
                  (long long)import_int(import, "post_transform", 0));
    return;
  }
  if (!take_numbers(&t) || !take_trees(&t, &roots)) return;
  IntArray tracks = import_ints(import, "nodes_missing_value_tracks_true");
  if (tracks.count && !node_list(&t, "nodes_missing_value_tracks_true", 2, &tracks)) return;
  if (!scope_expand(import, t.levels * 40)) return;
  import_result(import, 0, aggregated(&t, leaves_of(&t, &roots)));
}

// ---- Features ---------------------------------------------------------------------------------

// Selects the elements of the last axis whose indices the second input has.
static void import_array_feature_extractor(Import *import) {
  Value *x = import->inputs[0], *at = import->inputs[1];
  int64_t count = 1;
  for (int i = 0; i < at->rank; i++) count *= import_dim(at, i);
  if (x->rank < 1 || !dtype_is_int(at->type)) {
    import_refuse(import, "takes a tensor with axes, and integers");
    return;
  }
  if (x->rank == 1) x = import_reshape(import, x, (int64_t[]){1, import_dim(x, 0)}, 2);
  Value *inputs[] = {x, compose_reshape(import, at, &count, 1)};
  if (!inputs[0] || !inputs[1]) return;
  Node *node = import_begin(import, "take", inputs, 2);
  node_set_int(import->context, node, "axis", x->rank - 1);
  import_result(import, 0, import_add(import, node));
}

static void import_binarizer(Import *import) {
  Value *x = import->inputs[0];
  Value *above = compose_number(import, "greater", x, import_float(import, "threshold", 0));
  import_result(import, 0, compose_cast(import, above, x->type));
}

#define ML .domain = "ai.onnx.ml"

const OnnxRow onnx_tree_rows[] = {
    {"ArrayFeatureExtractor", 2, 2, NULL, import_array_feature_extractor, ML},
    {"Binarizer", 1, 1, "threshold:float", import_binarizer, ML},
    {"TreeEnsemble", 1, 1,
     "aggregate_function:int leaf_targetids:ints leaf_weights:tensor membership_values:tensor "
     "n_targets:int nodes_falseleafs:ints nodes_falsenodeids:ints nodes_featureids:ints "
     "nodes_hitrates:tensor nodes_missing_value_tracks_true:ints nodes_modes:tensor "
     "nodes_splits:tensor nodes_trueleafs:ints nodes_truenodeids:ints post_transform:int "
     "tree_roots:ints",
     import_tree_ensemble, ML},
    {0},
};
