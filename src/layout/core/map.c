// SPDX-License-Identifier: Apache-2.0
// Makes consed index maps, composes them, and applies them to an index.
#include "layout/core/core.h"

static uint64_t map_hash(const IndexMap *map) {
  uint64_t h = hash_mix((uint64_t)map->input_count, (uint64_t)map->output_count);
  int names = map->input_count + map->replica_count;
  for (int i = 0; i < names; i++) h = hash_mix(h, map_key(map->inputs[i]));
  for (int i = 0; i < map->replica_count; i++) h = hash_mix(h, (uint64_t)map->replicas[i]);
  for (int i = 0; i < map->output_count; i++) {
    h = hash_mix(h, map->outputs[i]->id);
    if (map->resources[i]) h = hash_mix(h, map_key(map->resources[i]));
  }
  for (int i = 0; i < map->separator_count; i++) h = hash_mix(h, (uint64_t)map->separators[i]);
  return h;
}

bool index_map_same(const IndexMap *a, const IndexMap *b) {
  if (a == b) return true;
  if (a->input_count != b->input_count || a->output_count != b->output_count ||
      a->separator_count != b->separator_count || a->replica_count != b->replica_count)
    return false;
  for (int i = 0; i < a->replica_count; i++)
    if (a->replicas[i] != b->replicas[i]) return false;
  for (int i = 0; i < a->output_count; i++)
    if (a->outputs[i] != b->outputs[i] || a->resources[i] != b->resources[i]) return false;
  for (int i = 0; i < a->separator_count; i++)
    if (a->separators[i] != b->separators[i]) return false;
  return true;
}

static bool consed_same(const IndexMap *a, const IndexMap *b) {
  return index_map_same(a, b) &&
         !memcmp(a->inputs, b->inputs,
                 (size_t)(a->input_count + a->replica_count) * sizeof *a->inputs);
}

// A list of the maps that have one hash.
typedef struct MapNode {
  IndexMap map;
  struct MapNode *next;
} MapNode;

static const IndexMap *cons(Context *context, const IndexMap *map) {
  LayoutTable *table = layout_table(context);
  uint64_t hash = map_hash(map);
  MapNode *first = map_get(&table->maps, hash);
  for (MapNode *node = first; node; node = node->next)
    if (consed_same(&node->map, map)) return &node->map;
  MapNode *made = arena_new(&context->lasting, MapNode);
  *made = (MapNode){*map, first};
  made->map.id = ++table->next_id;
  map_set(&table->maps, hash, made);
  return &made->map;
}

Str layout_numbered_name(Context *context, char letter, int number) {
  if (number > 99) return str_format(context, "%c%d", letter, number);
  char name[3] = {letter, (char)('0' + number % 10)};
  if (number > 9) name[1] = (char)('0' + number / 10), name[2] = (char)('0' + number % 10);
  return str_intern_n(context, name, number > 9 ? 3 : 2);
}

static const Str *default_names(Context *context, int inputs, int replicas) {
  Str *names = arena_array(&context->lasting, Str, inputs + replicas);
  for (int i = 0; i < inputs; i++) names[i] = layout_numbered_name(context, 'i', i);
  for (int i = 0; i < replicas; i++) names[inputs + i] = layout_numbered_name(context, 'r', i);
  return names;
}

static void check_separators(Context *context, const int *separators, int count, int outputs) {
  for (int i = 0; i < count; i++)
    if (separators[i] < (i ? separators[i - 1] : 0) || separators[i] > outputs)
      bug(context, "axis separator %d is %d of %d outputs", i, separators[i], outputs);
}

static void check_replicas(Context *context, const int64_t *replicas, int count) {
  for (int i = 0; i < count; i++)
    if (replicas[i] < 1) bug(context, "replica axis %d has %lld", i, (long long)replicas[i]);
}

const IndexMap *index_map_replicated(Context *context, int input_count, int replica_count,
                                     const Str *inputs, const int64_t *replicas, int output_count,
                                     const LayoutExpr *const *outputs, const Str *resources,
                                     const int *separators, int separator_count) {
  Arena *arena = &context->lasting;
  int names = input_count + replica_count;
  if (names > MAX_RANK || output_count > MAX_RANK)
    bug(context, "an index map of %d to %d axes", names, output_count);
  check_replicas(context, replicas, replica_count);
  if (separator_count >= MAX_RANK) bug(context, "%d axis separators", separator_count);
  check_separators(context, separators, separator_count, output_count);
  Str *own_resources = arena_array(arena, Str, output_count);
  for (int i = 0; resources && i < output_count; i++) own_resources[i] = resources[i];
  IndexMap map = {
      .input_count = input_count,
      .output_count = output_count,
      .separator_count = separator_count,
      .replica_count = replica_count,
      .inputs = inputs ? arena_copy(arena, inputs, sizeof *inputs * (size_t)names)
                       : default_names(context, input_count, replica_count),
      .replicas = arena_copy(arena, replicas, sizeof *replicas * (size_t)replica_count),
      .outputs = arena_copy(arena, outputs, sizeof *outputs * (size_t)output_count),
      .resources = own_resources,
      .separators = arena_copy(arena, separators, sizeof *separators * (size_t)separator_count),
  };
  return cons(context, &map);
}

const IndexMap *index_map_new(Context *context, int input_count, const Str *inputs,
                              int output_count, const LayoutExpr *const *outputs,
                              const Str *resources, const int *separators, int separator_count) {
  return index_map_replicated(context, input_count, 0, inputs, NULL, output_count, outputs,
                              resources, separators, separator_count);
}

const IndexMap *index_map_with_outputs(Context *context, const IndexMap *map,
                                       const LayoutExpr *const *outputs) {
  return index_map_replicated(context, map->input_count, map->replica_count, map->inputs,
                              map->replicas, map->output_count, outputs, map->resources,
                              map->separators, map->separator_count);
}

const IndexMap *index_map_identity(Context *context, int rank) {
  const LayoutExpr **axes = arena_array(&context->lasting, const LayoutExpr *, rank);
  for (int i = 0; i < rank; i++) axes[i] = layout_axis(context, i);
  return index_map_new(context, rank, NULL, rank, axes, NULL, NULL, 0);
}

// A name for a replica axis of a composition: `name`, with a number after it where it is taken.
static Str free_name(Context *context, Str name, const Str *names, int count) {
  Str made = name;
  for (int i = 0, tries = 1; i < count; i++)
    if (names[i] == made) {
      made = str_format(context, "%s_%d", name, tries++);
      i = -1;
    }
  return made;
}

const IndexMap *index_map_compose(Context *context, const IndexMap *outer, const IndexMap *inner) {
  if (outer->input_count != inner->output_count)
    bug(context, "composing a map of %d inputs after one of %d outputs", outer->input_count,
        inner->output_count);
  int own = inner->input_count + inner->replica_count, outers = outer->replica_count;
  if (own + outers > MAX_RANK) bug(context, "a composition of %d axes", own + outers);
  const LayoutExpr *outputs[MAX_RANK], *axes[MAX_RANK];
  int64_t replicas[MAX_RANK];
  Str names[MAX_RANK];
  memcpy(axes, inner->outputs, sizeof *axes * (size_t)inner->output_count);
  memcpy(names, inner->inputs, sizeof *names * (size_t)own);
  memcpy(replicas, inner->replicas, sizeof *replicas * (size_t)inner->replica_count);
  for (int i = 0; i < outers; i++) {
    axes[outer->input_count + i] = layout_axis(context, own + i);
    names[own + i] = free_name(context, outer->inputs[outer->input_count + i], names, own + i);
    replicas[inner->replica_count + i] = outer->replicas[i];
  }
  for (int i = 0; i < outer->output_count; i++)
    outputs[i] =
        layout_expr_substitute(context, outer->outputs[i], axes, outer->input_count + outers);
  return index_map_replicated(context, inner->input_count, inner->replica_count + outers, names,
                              replicas, outer->output_count, outputs, outer->resources,
                              outer->separators, outer->separator_count);
}

bool index_map_apply_copy(const IndexMap *map, const int64_t *index, const int64_t *replica,
                          int64_t *out) {
  int64_t both[MAX_RANK] = {0};
  if (map->replica_count) {
    memcpy(both, index, sizeof *both * (size_t)map->input_count);
    if (replica)
      memcpy(both + map->input_count, replica, sizeof *both * (size_t)map->replica_count);
    index = both;
  }
  for (int i = 0; i < map->output_count; i++)
    if (!layout_expr_value(map->outputs[i], index, NULL, 0, &out[i])) return false;
  return true;
}

bool index_map_apply(const IndexMap *map, const int64_t *index, int64_t *out) {
  return index_map_apply_copy(map, index, NULL, out);
}

bool layout_map_is_small(const IndexMap *map) {
  for (int i = 0; i < map->output_count; i++)
    if (layout_expr_size(map->outputs[i]) > MAX_TREE) return false;
  return true;
}
