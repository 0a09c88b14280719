// SPDX-License-Identifier: Apache-2.0
// Computes the sizes of a layout, offsets, and the groups of physical axes between separators.
#include "layout/core/core.h"

bool layout_box_strides(const int64_t *extents, int rank, int64_t *strides, int64_t *size) {
  int64_t product = 1;
  bool empty = false, fits = true;
  for (int i = 0; i < rank; i++) empty |= extents[i] == 0;
  for (int i = rank - 1; i >= 0; i--) {
    if (strides) strides[i] = product;
    fits = fits && mul_fits(product, extents[i], &product);
  }
  *size = empty ? 0 : product;
  return fits || empty;
}

bool layout_physical_size(const Layout *layout, int64_t *out) {
  return layout->is_static &&
         layout_box_strides(layout->physical_extents, layout->physical_rank, NULL, out);
}

bool layout_logical_size(const Layout *layout, int64_t *out) {
  return layout->is_static && layout_box_strides(layout->extents, layout->rank, NULL, out);
}

// ---- Groups and offsets ------------------------------------------------------------------------

int layout_group_count(const Layout *layout) {
  return layout->map->separator_count + 1;
}

// The physical axes [begin, end) of group g.
static void group_range(const IndexMap *map, int g, int *begin, int *end) {
  *begin = g ? map->separators[g - 1] : 0;
  *end = g < map->separator_count ? map->separators[g] : map->output_count;
}

// The row-major index over the axes [begin, end), Σ output_i · Π extents after i. *size receives
// the product of their extents.
static const LayoutExpr *flat_index(Context *context, const Layout *layout, int begin, int end,
                                    const LayoutExpr **size) {
  const LayoutExpr *sum = NULL;
  *size = layout_const(context, 1);
  for (int i = end - 1; i >= begin; i--) {
    const LayoutExpr *part = layout_times(context, layout->map->outputs[i], *size);
    sum = sum ? layout_binary(context, LAYOUT_ADD, part, sum) : part;
    *size = layout_times(context, layout->physical[i], *size);
  }
  return sum ? sum : layout_const(context, 0);
}

const LayoutExpr *const *layout_group_extents(Context *context, const Layout *layout) {
  int count = layout_group_count(layout);
  const LayoutExpr **extents = arena_array(&context->lasting, const LayoutExpr *, count);
  for (int g = 0; g < count; g++) {
    int begin, end;
    group_range(layout->map, g, &begin, &end);
    flat_index(context, layout, begin, end, &extents[g]);
  }
  return extents;
}

const LayoutExpr *const *layout_group_indices(Context *context, const Layout *layout) {
  int count = layout_group_count(layout);
  const LayoutExpr **indices = arena_array(&context->lasting, const LayoutExpr *, count);
  for (int g = 0; g < count; g++) {
    int begin, end;
    const LayoutExpr *size;
    group_range(layout->map, g, &begin, &end);
    indices[g] = flat_index(context, layout, begin, end, &size);
  }
  return indices;
}

const LayoutExpr *layout_offset_expr(Context *context, const Layout *layout) {
  const LayoutExpr *size;
  LayoutCache *cache = layout->cache;
  if (!cache->offset) cache->offset = flat_index(context, layout, 0, layout->physical_rank, &size);
  return cache->offset;
}

bool layout_offset(const Layout *layout, const int64_t *index, int64_t *offset) {
  if (!layout->is_static) return false;
  for (int i = 0; i < layout->rank; i++)
    if (index[i] < 0 || index[i] >= layout->extents[i]) return false;
  *offset = 0;
  int64_t position[MAX_RANK];
  if (!index_map_apply(layout->map, index, position)) return false;
  for (int i = 0; i < layout->physical_rank; i++)
    *offset = *offset * layout->physical_extents[i] + position[i];
  return true;
}

int64_t layout_largest_divisor(int64_t value, int64_t limit) {
  if (value == 0) return limit;
  int64_t best = 1;
  for (int64_t v = 1; v <= MIN_OF(limit, (int64_t)1 << 16) && v <= value / v; v++) {
    if (value % v) continue;
    best = MAX_OF(best, v);
    if (value / v <= limit) best = MAX_OF(best, value / v);
  }
  return best;
}

void layout_index_at(const int64_t *extents, int rank, int64_t ordinal, int64_t *index) {
  for (int i = rank - 1; i >= 0; i--) {
    index[i] = ordinal % extents[i];
    ordinal /= extents[i];
  }
}

int64_t layout_ordinal_of(const int64_t *extents, int rank, const int64_t *index) {
  int64_t ordinal = 0;
  for (int i = 0; i < rank; i++) ordinal = ordinal * extents[i] + index[i];
  return ordinal;
}

bool layout_is_plain(const Layout *layout) {
  for (int i = 0; i < layout->physical_rank; i++)
    if (layout->map->resources[i]) return false;
  return layout->map->replica_count == 0;
}

int layout_compare_numbers(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}
