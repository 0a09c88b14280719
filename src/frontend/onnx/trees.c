// SPDX-License-Identifier: Apache-2.0
// Computes ensembles of decision trees. All trees descend one level at a time, for all rows at
// once: a branch is a number, and tables that are indexed by it hold its feature, its threshold and
// its two successors. Leaves are numbered after the branches, and each leaf is its own successor.
#include "frontend/onnx/trees.h"

#include "graph/graph.h"

#include <float.h>
#include <math.h>

enum { MOST_LEVELS = 256, MOST_MEMBERS = 1 << 20 };

// The tables, with one entry for each branch and leaf.
typedef struct Tables {
  Value *yes, *no, *features, *splits, *members;
  Value *of_mode[TREES_MEMBER + 1]; // nonzero for branches of the mode; NULL: no branch has it
  Value *tracks; // nonzero for branches whose condition holds for NaN; NULL: none
  int modes;     // number of modes that occur
} Tables;

// ---- Contents ---------------------------------------------------------------------------------

bool trees_begin(Trees *t, Import *import) {
  Value *x = import_input(import, 0);
  t->import = import;
  if (dtype_is_int(x->type)) x = import_cast(import, x, DTYPE_FLOAT32);
  if (!x || x->rank != 2 || !dtype_is_float(x->type) || x->type.bits < 32)
    return import_refuse(import, "takes float32, float64 or integers [rows, features]");
  t->x = x;
  t->rows = import_dim(x, 0);
  return true;
}

bool trees_allocate(Trees *t) {
  Arena *arena = &t->import->context->arena;
  int64_t weights;
  if (t->leaves < 1 || t->branches + t->leaves >= INT32_MAX / 8)
    return import_refuse(t->import, "has no leaves, or too many");
  if (t->targets < 1 || t->targets > TREES_MOST_WEIGHTS ||
      !mul_fits(t->leaves, t->targets, &weights) || weights > TREES_MOST_WEIGHTS)
    return import_refuse(t->import,
                         "has %lld targets for %lld leaves, expected at least 1, and %d "
                         "weights in all at most",
                         (long long)t->targets, (long long)t->leaves, TREES_MOST_WEIGHTS);
  t->roots = arena_array(arena, int64_t, t->count);
  t->modes = arena_array(arena, int64_t, t->branches);
  t->splits = arena_array(arena, double, t->branches);
  t->yes = arena_array(arena, int64_t, t->branches);
  t->no = arena_array(arena, int64_t, t->branches);
  t->features = arena_array(arena, int64_t, t->branches);
  t->weights = arena_array(arena, double, weights);
  for (int64_t i = 0; i < weights; i++) t->weights[i] = NAN;
  return true;
}

bool trees_weigh(Trees *t, int64_t leaf, int64_t target, double weight) {
  if (target < 0 || target >= t->targets)
    return import_refuse(t->import, "a leaf has a weight for %lld, expected less than %lld",
                         (long long)target, (long long)t->targets);
  double *to = &t->weights[leaf * t->targets + target];
  if (!isnan(*to) || isnan(weight))
    return import_refuse(t->import, "a leaf has two weights for %lld, or one that is NaN",
                         (long long)target);
  *to = weight;
  return true;
}

static bool count_levels(const Trees *t, int *levels) {
  Arena *arena = &t->import->context->arena;
  bool *here = arena_array(arena, bool, t->branches + 1), *below, any = false;
  for (int64_t i = 0; i < t->count; i++)
    if (t->roots[i] < t->branches) any = here[t->roots[i]] = true;
  for (*levels = 0; any; here = below) {
    if ((*levels)++ == MOST_LEVELS)
      return import_refuse(t->import, "its trees are deeper than %d, or have a cycle", MOST_LEVELS);
    below = arena_array(arena, bool, t->branches);
    any = false;
    for (int64_t i = 0; i < t->branches; i++)
      if (here[i] && t->yes[i] < t->branches) any = below[t->yes[i]] = true;
    for (int64_t i = 0; i < t->branches; i++)
      if (here[i] && t->no[i] < t->branches) any = below[t->no[i]] = true;
  }
  return true;
}

// ---- Descending the trees ---------------------------------------------------------------------

static Value *either(Trees *t, Value *a, Value *b) {
  return a ? compose_binary(t->import, "logical_or", a, b) : b;
}

// A table of these numbers of branches; leaves get 0, or their own number.
static Value *numbers(Trees *t, const int64_t *of_branches, bool own) {
  int64_t count = t->branches + t->leaves;
  int64_t *values = arena_array(&t->import->context->arena, int64_t, count);
  for (int64_t i = 0; i < count; i++) values[i] = i < t->branches ? of_branches[i] : own ? i : 0;
  return import_const(t->import, DTYPE_INT64, &count, 1, values);
}

// A table that is 1 for branches of a mode and 0 for others; NULL where no branch has it.
static Value *mode_table(Trees *t, int mode) {
  int64_t *marked = arena_array(&t->import->context->arena, int64_t, t->branches);
  bool any = false;
  for (int64_t i = 0; i < t->branches; i++) any |= marked[i] = t->modes[i] == mode;
  return any ? numbers(t, marked, false) : NULL;
}

static Value *is_marked(Trees *t, Value *table, Value *at) {
  return compose_number(t->import, "not_equal", compose_binary(t->import, "take", table, at), 0);
}

// The members of the branches' sets. The attribute lists them consecutively, with a NaN after each
// set; the table has as many columns as the largest set, and fills shorter rows with NaN, which is
// equal to no value.
static Value *member_table(Trees *t) {
  Import *import = t->import;
  const ConstData *given = t->members;
  int64_t widest = 1, width = 0, at = 0, count;
  for (int64_t i = 0; given && i < const_count(given); i++, widest = MAX_OF(widest, width))
    width = isnan(const_number(given, i)) ? 0 : width + 1;
  int64_t shape[] = {t->branches + t->leaves, widest};
  if (!given || !dtype_equal(given->type, t->x->type) || !mul_fits(shape[0], widest, &count) ||
      count > MOST_MEMBERS) {
    import_refuse(import, "its membership_values are missing, of another type, or more than %d",
                  MOST_MEMBERS);
    return NULL;
  }
  double *members = arena_array(&import->context->arena, double, count);
  for (int64_t i = 0; i < count; i++) members[i] = NAN;
  for (int64_t i = 0; i < t->branches; i++) {
    if (t->modes[i] != TREES_MEMBER) continue;
    for (int64_t k = 0; at < const_count(given); k++) {
      double member = const_number(given, at++);
      if (isnan(member)) break;
      members[i * widest + k] = member;
    }
  }
  return compose_constant(import, t->x->type, shape, 2, members);
}

static bool make_tables(Trees *t, Tables *tables) {
  int64_t count = t->branches + t->leaves;
  double *splits = arena_array(&t->import->context->arena, double, count);
  for (int64_t i = 0; i < t->branches; i++) splits[i] = t->splits[i];
  *tables = (Tables){.splits = compose_constant(t->import, t->x->type, &count, 1, splits),
                     .yes = numbers(t, t->yes, true),
                     .no = numbers(t, t->no, true),
                     .features = numbers(t, t->features, false)};
  if (t->tracks) tables->tracks = numbers(t, t->tracks, false);
  for (int mode = TREES_LEQ; mode <= TREES_MEMBER; mode++)
    if ((tables->of_mode[mode] = mode_table(t, mode))) tables->modes++;
  if (tables->of_mode[TREES_MEMBER]) tables->members = member_table(t);
  return tables->members || !tables->of_mode[TREES_MEMBER];
}

// The rows of a table at these numbers.
static Value *rows_at(Import *import, Value *table, Value *at) {
  if (!table || !at) return NULL;
  Node *node = import_begin(import, "take", (Value *[]){table, at}, 2);
  node_set_int(import->context, node, "axis", 0);
  return import_add(import, node);
}

static Value *is_member(Trees *t, const Tables *tables, Value *at, Value *value) {
  int64_t shape[] = {t->rows, t->count, 1}, last = 2;
  Value *members = rows_at(t->import, tables->members, at);
  Value *equal =
      compose_binary(t->import, "equal", members, compose_reshape(t->import, value, shape, 3));
  Value *any = compose_reduce(t->import, "max", compose_cast(t->import, equal, DTYPE_INT32), &last,
                              1, false);
  return compose_number(t->import, "not_equal", any, 0);
}

// The condition of each row's present branch in each tree. At leaves the result does not matter.
static Value *holds(Trees *t, const Tables *tables, Value *at, Value *value) {
  static const char *const ops[] = {"less_equal", "less",  "greater_equal",
                                    "greater",    "equal", "not_equal"};
  Import *import = t->import;
  Value *split = compose_binary(import, "take", tables->splits, at), *all = NULL;
  for (int mode = TREES_LEQ; mode <= TREES_MEMBER; mode++) {
    if (!tables->of_mode[mode]) continue;
    Value *one = mode == TREES_MEMBER ? is_member(t, tables, at, value)
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

static Value *next_level(Trees *t, const Tables *tables, Value *at) {
  Import *import = t->import;
  Value *inputs[] = {t->x, compose_binary(import, "take", tables->features, at)};
  if (!inputs[1]) return NULL;
  Node *node = import_begin(import, "gather_elements", inputs, 2);
  node_set_int(import->context, node, "axis", 1);
  Value *condition = holds(t, tables, at, import_add(import, node));
  return compose_choose(import, condition, compose_binary(import, "take", tables->yes, at),
                        compose_binary(import, "take", tables->no, at));
}

Value *trees_descend(Trees *t) {
  Import *import = t->import;
  int64_t shape[] = {t->rows, t->count};
  Tables tables;
  int levels;
  if (!count_levels(t, &levels) || !scope_expand(import, levels * 40 + 10) ||
      !make_tables(t, &tables))
    return NULL;
  Value *root = import_const(import, DTYPE_INT64, &t->count, 1, t->roots);
  Node *node = import_begin(import, "broadcast_to", &root, 1);
  node_set_ints(import->context, node, "shape", shape, 2);
  Value *at = import_add(import, node);
  for (int level = 0; at && level < levels; level++) at = next_level(t, &tables, at);
  return compose_number(import, "subtract", at, (double)t->branches);
}

// ---- Combining the leaves ---------------------------------------------------------------------

Value *trees_aggregate(Trees *t, Value *leaves) {
  static const char *const ops[] = {"sum", "sum", "min", "max"};
  Import *import = t->import;
  TreesAggregate how = t->aggregate;
  int64_t shape[] = {t->leaves, t->targets}, trees = 1;
  double most = t->x->type.bits == 64 ? DBL_MAX : FLT_MAX;
  double nothing = how == TREES_MIN ? most : how == TREES_MAX ? -most : 0;
  double *weights = arena_array(&import->context->arena, double, t->leaves * t->targets);
  for (int64_t i = 0; i < t->leaves * t->targets; i++)
    weights[i] = isnan(t->weights[i])   ? nothing
                 : how == TREES_AVERAGE ? t->weights[i] / (double)t->count
                                        : t->weights[i];
  Value *table = compose_constant(import, t->x->type, shape, 2, weights);
  return compose_reduce(import, ops[how], rows_at(import, table, leaves), &trees, 1, false);
}

Value *trees_scored(Trees *t, Value *leaves) {
  Import *import = t->import;
  int64_t shape[] = {t->leaves, t->targets}, trees = 1;
  double *has = arena_array(&import->context->arena, double, t->leaves * t->targets);
  for (int64_t i = 0; i < t->leaves * t->targets; i++) has[i] = !isnan(t->weights[i]);
  Value *table = compose_constant(import, DTYPE_INT32, shape, 2, has);
  Value *any = compose_reduce(import, "max", rows_at(import, table, leaves), &trees, 1, false);
  return compose_number(import, "not_equal", any, 0);
}
