// SPDX-License-Identifier: Apache-2.0
// Layouts that fall apart: axes and places that have nothing to do with each other are layouts of
// their own, side by side. What is asked of the whole is asked of each part, and the answers are
// put together:
//
//   a, b, c -> min(c, 7), b%3, a + 3, b//3     =>   a -> a + 3    b -> b%3, b//3    c -> min(c, 7)
//
// injective, onto: all are. Inverse: side by side; a place is padding where one of them says so.
// The image is the product of the images.
#include "layout/answers/components.h"

// ---- Falling apart -----------------------------------------------------------------------------

// Union-find over the axes, then the places.
typedef struct Groups {
  int parent[2 * MAX_RANK], count;
} Groups;

static int root_of(Groups *g, int i) {
  while (g->parent[i] != i) i = g->parent[i] = g->parent[g->parent[i]];
  return i;
}

static void join_axes(Groups *g, int place, const LayoutExpr *e) {
  uint64_t axes = layout_axes_read(e);
  for (; axes; axes &= axes - 1) g->parent[root_of(g, __builtin_ctzll(axes))] = root_of(g, place);
}

static Groups groups_of(const Layout *layout) {
  Groups g = {.count = layout->rank + layout->physical_rank};
  for (int i = 0; i < g.count; i++) g.parent[i] = i;
  for (int i = 0; i < layout->physical_rank; i++)
    join_axes(&g, layout->rank + i, layout->map->outputs[i]);
  return g;
}

// Its axes and places in order, as a layout of their own.
static bool make_part(Context *context, const Layout *layout, Groups *g, int root,
                      LayoutPart *part) {
  const LayoutExpr *axes[MAX_RANK] = {0}, *shape[MAX_RANK], *physical[MAX_RANK], *outputs[MAX_RANK];
  Str names[MAX_RANK];
  int rank = 0, count = 0;
  for (int i = 0; i < layout->rank; i++) {
    if (root_of(g, i) != root) continue;
    axes[i] = layout_axis(context, rank);
    shape[rank] = layout->shape[i];
    names[rank] = layout->map->inputs[i];
    part->axes[rank++] = i;
  }
  for (int i = 0; i < layout->physical_rank; i++) {
    if (root_of(g, layout->rank + i) != root) continue;
    outputs[count] = layout_expr_substitute(context, layout->map->outputs[i], axes, layout->rank);
    physical[count] = layout->physical[i];
    part->places[count++] = i;
  }
  const IndexMap *map = index_map_new(context, rank, names, count, outputs, NULL, NULL, 0);
  part->layout = layout_try(context, map, shape, physical, layout->facts);
  return part->layout != NULL;
}

const LayoutParts *layout_parts(Context *context, const Layout *layout) {
  static const LayoutParts whole = {0};
  LayoutCache *cache = layout->cache;
  if (cache->parts) return cache->parts->count ? cache->parts : NULL;
  cache->parts = &whole;
  if (layout->map->replica_count) return NULL;
  Groups g = groups_of(layout);
  int count = 0;
  for (int i = 0; i < g.count; i++) count += root_of(&g, i) == i;
  if (count < 2) return NULL;
  LayoutParts *parts = arena_new(&context->lasting, LayoutParts);
  LayoutPart *items = arena_array(&context->lasting, LayoutPart, count);
  for (int i = 0; i < g.count; i++)
    if (root_of(&g, i) == i && !make_part(context, layout, &g, i, &items[parts->count++]))
      return NULL;
  parts->items = items;
  return cache->parts = parts;
}

// ---- Yes or no ---------------------------------------------------------------------------------

static const int64_t *widened(Context *context, const int64_t *index, const int *at, int count,
                              int rank) {
  int64_t *wide = arena_array(&context->lasting, int64_t, rank);
  for (int i = 0; i < count && index; i++) wide[at[i]] = index[i];
  return index ? wide : NULL;
}

static bool has_points(const Layout *layout, bool places) {
  int count = places ? layout->physical_rank : layout->rank;
  const int64_t *extents = places ? layout->physical_extents : layout->extents;
  for (int i = 0; i < count; i++)
    if (!extents[i]) return false;
  return true;
}

// A "no" of a part is one of the whole, where the other parts have an index (a place) to go with
// it: their first.
static bool widen_no(Context *context, const Layout *layout, const LayoutPart *part, bool places,
                     LayoutAnswer *no) {
  const Layout *at = layout;
  Instance instance;
  if (!layout->is_static) {
    if (!layout_instance_around(context, layout, no->instance, no->instance_count, &instance))
      return false;
    no->instance = instance.values;
    no->instance_count = instance.count;
    at = instance.layout;
  }
  if (!has_points(at, places)) return false;
  const int *map = places ? part->places : part->axes;
  int count = no->witness_rank, rank = places ? layout->physical_rank : layout->rank;
  no->witness2 = widened(context, no->witness2, map, count, rank);
  no->witness = widened(context, no->witness, map, count, rank);
  if (no->witness) no->witness_rank = rank;
  return true;
}

LayoutAnswer layout_parts_all(Context *context, const Layout *layout, const LayoutParts *parts,
                              LayoutAskOne *question, bool places) {
  LayoutAnswer all = layout_said(LAYOUT_YES, LAYOUT_DIGITS, NULL);
  for (int i = 0; i < parts->count; i++) {
    LayoutAnswer answer = question(context, parts->items[i].layout);
    if (answer.verdict == LAYOUT_NO && widen_no(context, layout, &parts->items[i], places, &answer))
      return answer;
    if (answer.verdict == LAYOUT_NO)
      answer = layout_said(LAYOUT_UNDECIDED, answer.level, "false of a part of the layout alone");
    answer.level = MAX_OF(answer.level, all.level);
    if (all.verdict == LAYOUT_YES) all = answer;
  }
  return all;
}

// ---- Inverse -----------------------------------------------------------------------------------

LayoutAnswer layout_parts_inverse(Context *context, const Layout *layout, const LayoutParts *parts,
                                  LayoutInverse *out) {
  const LayoutExpr *outputs[MAX_RANK], *padding = NULL;
  Str names[MAX_RANK];
  LayoutAnswer all = layout_said(LAYOUT_YES, LAYOUT_DIGITS, NULL);
  for (int i = 0; i < parts->count; i++) {
    const LayoutPart *part = &parts->items[i];
    const LayoutExpr *places[MAX_RANK];
    LayoutInverse one;
    LayoutAnswer answer = layout_inverse(context, part->layout, &one);
    all.level = MAX_OF(all.level, answer.level);
    if (answer.verdict != LAYOUT_YES)
      return layout_said(LAYOUT_UNDECIDED, all.level, answer.reason);
    int count = part->layout->physical_rank;
    for (int j = 0; j < count; j++) places[j] = layout_axis(context, part->places[j]);
    for (int j = 0; j < part->layout->rank; j++)
      outputs[part->axes[j]] = layout_expr_substitute(context, one.map->outputs[j], places, count);
    if (!one.padding) continue;
    const LayoutExpr *here = layout_expr_substitute(context, one.padding, places, count);
    padding = padding ? layout_binary(context, LAYOUT_EITHER, padding, here) : here;
  }
  for (int i = 0; i < layout->physical_rank; i++) names[i] = layout_numbered_name(context, 'p', i);
  *out = (LayoutInverse){
      index_map_new(context, layout->physical_rank, names, layout->rank, outputs, NULL, NULL, 0),
      padding};
  return all;
}

bool layout_parts_section(Context *context, const LayoutParts *parts, const LayoutExpr **section) {
  for (int i = 0; i < parts->count; i++) {
    const LayoutPart *part = &parts->items[i];
    const LayoutExpr *places[MAX_RANK], *one[MAX_RANK];
    if (!layout_section(context, part->layout, one)) return false;
    for (int j = 0; j < part->layout->physical_rank; j++)
      places[j] = layout_axis(context, part->places[j]);
    for (int j = 0; j < part->layout->rank; j++)
      section[part->axes[j]] =
          layout_expr_substitute(context, one[j], places, part->layout->physical_rank);
  }
  return true;
}

// ---- Numbers -----------------------------------------------------------------------------------

LayoutAnswer layout_parts_image(Context *context, const LayoutParts *parts, int64_t *out) {
  LayoutAnswer all = layout_said(LAYOUT_YES, LAYOUT_DIGITS, NULL);
  *out = 1;
  for (int i = 0; i < parts->count; i++) {
    int64_t places, padding;
    LayoutAnswer answer = layout_padding_count(context, parts->items[i].layout, &padding);
    if (answer.verdict != LAYOUT_YES) return answer;
    layout_physical_size(parts->items[i].layout, &places);
    all.level = MAX_OF(all.level, answer.level);
    *out *= places - padding;
  }
  return all;
}

LayoutAnswer layout_parts_index_at(Context *context, const LayoutParts *parts, const int64_t *place,
                                   int64_t *index) {
  LayoutAnswer all = layout_said(LAYOUT_YES, LAYOUT_DIGITS, NULL);
  for (int i = 0; i < parts->count; i++) {
    const LayoutPart *part = &parts->items[i];
    int64_t here[MAX_RANK], found[MAX_RANK];
    int count = part->layout->physical_rank;
    for (int j = 0; j < count; j++) here[j] = place[part->places[j]];
    int64_t offset = layout_ordinal_of(part->layout->physical_extents, count, here);
    LayoutAnswer answer = layout_at_offset(context, part->layout, offset, found);
    if (answer.verdict != LAYOUT_YES) return answer;
    all.level = MAX_OF(all.level, answer.level);
    for (int j = 0; j < part->layout->rank; j++) index[part->axes[j]] = found[j];
  }
  return all;
}
