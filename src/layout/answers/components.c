// SPDX-License-Identifier: Apache-2.0
// Finds the components of a layout: logical and physical axes that have no connection with the
// others are a layout of their own. A question about the whole is asked of each component, and the
// answers are combined:
//
//   a, b, c -> min(c, 7), b%3, a + 3, b//3     =>   a -> a + 3    b -> b%3, b//3    c -> min(c, 7)
//
// A layout is injective, or onto, when all components are. The inverse has the outputs of all
// inverses, and a physical index is padding where it is padding in one component. The image is the
// product of the images.
#include "layout/answers/answers.h"

// ---- Components --------------------------------------------------------------------------------

// Union-find over the logical axes, then the physical axes.
typedef struct AxisGroups {
  int parent[2 * MAX_RANK], count;
} AxisGroups;

static int root_of(AxisGroups *g, int i) {
  while (g->parent[i] != i) i = g->parent[i] = g->parent[g->parent[i]];
  return i;
}

static void connect_axes(AxisGroups *g, int position, const LayoutExpr *e) {
  uint64_t axes = layout_axes_read(e);
  for (; axes; axes &= axes - 1)
    g->parent[root_of(g, __builtin_ctzll(axes))] = root_of(g, position);
}

static AxisGroups groups_of(const Layout *layout) {
  AxisGroups g = {.count = layout->rank + layout->physical_rank};
  for (int i = 0; i < g.count; i++) g.parent[i] = i;
  for (int i = 0; i < layout->physical_rank; i++)
    connect_axes(&g, layout->rank + i, layout->map->outputs[i]);
  return g;
}

// The axes of one component, in order, as a layout of their own.
static bool make_part(Context *context, const Layout *layout, AxisGroups *g, int root,
                      LayoutComponent *component) {
  const LayoutExpr *axes[MAX_RANK] = {0}, *shape[MAX_RANK], *physical[MAX_RANK], *outputs[MAX_RANK];
  Str names[MAX_RANK];
  int rank = 0, count = 0;
  for (int i = 0; i < layout->rank; i++) {
    if (root_of(g, i) != root) continue;
    axes[i] = layout_axis(context, rank);
    shape[rank] = layout->shape[i];
    names[rank] = layout->map->inputs[i];
    component->axes[rank++] = i;
  }
  for (int i = 0; i < layout->physical_rank; i++) {
    if (root_of(g, layout->rank + i) != root) continue;
    outputs[count] = layout_expr_substitute(context, layout->map->outputs[i], axes, layout->rank);
    physical[count] = layout->physical[i];
    component->positions[count++] = i;
  }
  const IndexMap *map = index_map_new(context, rank, names, count, outputs, NULL, NULL, 0);
  component->layout = layout_try(context, map, shape, physical, layout->facts);
  return component->layout != NULL;
}

const LayoutComponents *layout_components(Context *context, const Layout *layout) {
  static const LayoutComponents whole = {0};
  LayoutCache *cache = layout->cache;
  if (cache->components) return cache->components->count ? cache->components : NULL;
  cache->components = &whole;
  if (layout->map->replica_count) return NULL;
  AxisGroups g = groups_of(layout);
  int count = 0;
  for (int i = 0; i < g.count; i++) count += root_of(&g, i) == i;
  if (count < 2) return NULL;
  LayoutComponents *components = arena_new(&context->lasting, LayoutComponents);
  LayoutComponent *items = arena_array(&context->lasting, LayoutComponent, count);
  for (int i = 0; i < g.count; i++)
    if (root_of(&g, i) == i && !make_part(context, layout, &g, i, &items[components->count++]))
      return NULL;
  components->items = items;
  return cache->components = components;
}

// ---- Verdicts ----------------------------------------------------------------------------------

static const int64_t *widened(Context *context, const int64_t *index, const int *at, int count,
                              int rank) {
  int64_t *wide = arena_array(&context->lasting, int64_t, rank);
  for (int i = 0; i < count && index; i++) wide[at[i]] = index[i];
  return index ? wide : NULL;
}

static bool has_points(const Layout *layout, bool positions) {
  int count = positions ? layout->physical_rank : layout->rank;
  const int64_t *extents = positions ? layout->physical_extents : layout->extents;
  for (int i = 0; i < count; i++)
    if (!extents[i]) return false;
  return true;
}

// Turns the verdict of no for a component into one for the whole. Its witness is completed by the
// first index of the other components, where these have one.
static bool widen_no(Context *context, const Layout *layout, const LayoutComponent *component,
                     bool positions, LayoutAnswer *no) {
  const Layout *at = layout;
  LayoutInstance instance;
  if (!layout->is_static) {
    if (!layout_instance_around(context, layout, no->instance, no->instance_count, &instance))
      return false;
    no->instance = instance.values;
    no->instance_count = instance.count;
    at = instance.layout;
  }
  if (!has_points(at, positions)) return false;
  const int *map = positions ? component->positions : component->axes;
  int count = no->witness_rank, rank = positions ? layout->physical_rank : layout->rank;
  no->witness2 = widened(context, no->witness2, map, count, rank);
  no->witness = widened(context, no->witness, map, count, rank);
  if (no->witness) no->witness_rank = rank;
  return true;
}

LayoutAnswer layout_components_all(Context *context, const Layout *layout,
                                   const LayoutComponents *components, LayoutDecider *question,
                                   bool positions) {
  LayoutAnswer all = layout_yes(LAYOUT_DIGITS);
  for (int i = 0; i < components->count; i++) {
    LayoutAnswer answer = question(context, components->items[i].layout);
    if (answer.verdict == VERDICT_NO &&
        widen_no(context, layout, &components->items[i], positions, &answer))
      return answer;
    if (answer.verdict == VERDICT_NO)
      answer =
          layout_answer_of(VERDICT_UNDECIDED, answer.level, "false of a part of the layout alone");
    answer.level = MAX_OF(answer.level, all.level);
    if (all.verdict == VERDICT_YES) all = answer;
  }
  return all;
}

// ---- Inverse -----------------------------------------------------------------------------------

// An expression of a component's physical axes, as one of those of the whole.
static const LayoutExpr *of_whole(Context *context, const LayoutComponent *component,
                                  const LayoutExpr *e) {
  const LayoutExpr *positions[MAX_RANK];
  int count = component->layout->physical_rank;
  for (int i = 0; i < count; i++) positions[i] = layout_axis(context, component->positions[i]);
  return layout_expr_substitute(context, e, positions, count);
}

LayoutAnswer layout_components_inverse(Context *context, const Layout *layout,
                                       const LayoutComponents *components, LayoutInverse *out) {
  const LayoutExpr *outputs[MAX_RANK], *padding = NULL;
  Str names[MAX_RANK];
  LayoutAnswer all = layout_yes(LAYOUT_DIGITS);
  for (int i = 0; i < components->count; i++) {
    const LayoutComponent *component = &components->items[i];
    LayoutInverse one;
    LayoutAnswer answer = layout_inverse(context, component->layout, &one);
    all.level = MAX_OF(all.level, answer.level);
    if (answer.verdict != VERDICT_YES)
      return layout_answer_of(VERDICT_UNDECIDED, all.level, answer.reason);
    for (int j = 0; j < component->layout->rank; j++)
      outputs[component->axes[j]] = of_whole(context, component, one.map->outputs[j]);
    if (!one.padding) continue;
    const LayoutExpr *here = of_whole(context, component, one.padding);
    padding = padding ? layout_binary(context, LAYOUT_EITHER, padding, here) : here;
  }
  for (int i = 0; i < layout->physical_rank; i++) names[i] = layout_numbered_name(context, 'p', i);
  *out = (LayoutInverse){
      index_map_new(context, layout->physical_rank, names, layout->rank, outputs, NULL, NULL, 0),
      padding};
  return all;
}

bool layout_components_section(Context *context, const LayoutComponents *components,
                               const LayoutExpr **section) {
  for (int i = 0; i < components->count; i++) {
    const LayoutComponent *component = &components->items[i];
    const LayoutExpr *one[MAX_RANK];
    if (!layout_section(context, component->layout, one)) return false;
    for (int j = 0; j < component->layout->rank; j++)
      section[component->axes[j]] = of_whole(context, component, one[j]);
  }
  return true;
}

// ---- Numbers -----------------------------------------------------------------------------------

LayoutAnswer layout_components_image(Context *context, const LayoutComponents *components,
                                     int64_t *out) {
  LayoutAnswer all = layout_yes(LAYOUT_DIGITS);
  *out = 1;
  for (int i = 0; i < components->count; i++) {
    int64_t positions, padding;
    LayoutAnswer answer = layout_padding_count(context, components->items[i].layout, &padding);
    if (answer.verdict != VERDICT_YES) return answer;
    layout_physical_size(components->items[i].layout, &positions);
    all.level = MAX_OF(all.level, answer.level);
    *out *= positions - padding;
  }
  return all;
}

LayoutAnswer layout_components_index_at(Context *context, const LayoutComponents *components,
                                        const int64_t *position, int64_t *index) {
  LayoutAnswer all = layout_yes(LAYOUT_DIGITS);
  for (int i = 0; i < components->count; i++) {
    const LayoutComponent *component = &components->items[i];
    int64_t here[MAX_RANK], found[MAX_RANK];
    int count = component->layout->physical_rank;
    for (int j = 0; j < count; j++) here[j] = position[component->positions[j]];
    int64_t offset = layout_ordinal_of(component->layout->physical_extents, count, here);
    LayoutAnswer answer = layout_at_offset(context, component->layout, offset, found);
    if (answer.verdict != VERDICT_YES) return answer;
    all.level = MAX_OF(all.level, answer.level);
    for (int j = 0; j < component->layout->rank; j++) index[component->axes[j]] = found[j];
  }
  return all;
}
