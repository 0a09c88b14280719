// SPDX-License-Identifier: Apache-2.0
// Index maps: consing, identity, composition, application to a point.
#include "layout/internal.h"

static uint64_t map_hash(const IndexMap *map) {
  uint64_t h = hash_mix((uint64_t)map->input_count, (uint64_t)map->output_count);
  for (int i = 0; i < map->input_count; i++) h = hash_mix(h, map_key(map->inputs[i]));
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
      a->separator_count != b->separator_count)
    return false;
  for (int i = 0; i < a->output_count; i++)
    if (a->outputs[i] != b->outputs[i] || a->resources[i] != b->resources[i]) return false;
  for (int i = 0; i < a->separator_count; i++)
    if (a->separators[i] != b->separators[i]) return false;
  return true;
}

static bool consed_same(const IndexMap *a, const IndexMap *b) {
  return index_map_same(a, b) &&
         !memcmp(a->inputs, b->inputs, (size_t)a->input_count * sizeof *a->inputs);
}

// Maps of one hash.
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
  MapNode *made = arena_new(&context->arena, MapNode);
  *made = (MapNode){*map, first};
  made->map.id = ++table->next_id;
  map_set(&table->maps, hash, made);
  return &made->map;
}

static const Str *default_names(Context *context, int count) {
  Str *names = arena_array(&context->arena, Str, count);
  for (int i = 0; i < count; i++) names[i] = str_format(context, "i%d", i);
  return names;
}

static void check_separators(Context *context, const int *separators, int count, int outputs) {
  for (int i = 0; i < count; i++)
    if (separators[i] < (i ? separators[i - 1] : 0) || separators[i] > outputs)
      bug(context, "axis separator %d is %d of %d outputs", i, separators[i], outputs);
}

const IndexMap *index_map_new(Context *context, int input_count, const Str *inputs,
                              int output_count, const LayoutExpr *const *outputs,
                              const Str *resources, const int *separators, int separator_count) {
  Arena *arena = &context->arena;
  if (input_count > MAX_RANK || output_count > MAX_RANK)
    bug(context, "an index map of %d to %d axes", input_count, output_count);
  check_separators(context, separators, separator_count, output_count);
  Str *own_resources = arena_array(arena, Str, output_count);
  for (int i = 0; resources && i < output_count; i++) own_resources[i] = resources[i];
  IndexMap map = {
      .input_count = input_count,
      .output_count = output_count,
      .separator_count = separator_count,
      .inputs = inputs ? arena_copy(arena, inputs, sizeof *inputs * (size_t)input_count)
                       : default_names(context, input_count),
      .outputs = arena_copy(arena, outputs, sizeof *outputs * (size_t)output_count),
      .resources = own_resources,
      .separators = arena_copy(arena, separators, sizeof *separators * (size_t)separator_count),
  };
  return cons(context, &map);
}

const IndexMap *index_map_identity(Context *context, int rank) {
  const LayoutExpr **axes = arena_array(&context->arena, const LayoutExpr *, rank);
  for (int i = 0; i < rank; i++) axes[i] = layout_axis(context, i);
  return index_map_new(context, rank, NULL, rank, axes, NULL, NULL, 0);
}

const IndexMap *index_map_compose(Context *context, const IndexMap *outer, const IndexMap *inner) {
  if (outer->input_count != inner->output_count)
    bug(context, "composing a map of %d inputs after one of %d outputs", outer->input_count,
        inner->output_count);
  const LayoutExpr **outputs =
      arena_array(&context->arena, const LayoutExpr *, outer->output_count);
  for (int i = 0; i < outer->output_count; i++)
    outputs[i] =
        layout_expr_substitute(context, outer->outputs[i], inner->outputs, inner->output_count);
  return index_map_new(context, inner->input_count, inner->inputs, outer->output_count, outputs,
                       outer->resources, outer->separators, outer->separator_count);
}

bool index_map_apply(const IndexMap *map, const int64_t *index, int64_t *out) {
  for (int i = 0; i < map->output_count; i++)
    if (!layout_expr_value(map->outputs[i], index, NULL, 0, &out[i])) return false;
  return true;
}

bool layout_map_is_small(const IndexMap *map) {
  for (int i = 0; i < map->output_count; i++)
    if (layout_expr_size(map->outputs[i]) > MAX_TREE) return false;
  return true;
}
