// SPDX-License-Identifier: Apache-2.0
// Numbers of a layout: sizes, offsets, flattened groups, strides, vector widths.
#include "layout/points/points.h"
#include "layout/proofs/verify.h"

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

// Physical axes [begin, end) of group g.
static void group_range(const IndexMap *map, int g, int *begin, int *end) {
  *begin = g ? map->separators[g - 1] : 0;
  *end = g < map->separator_count ? map->separators[g] : map->output_count;
}

static const LayoutExpr *times(Context *context, const LayoutExpr *a, const LayoutExpr *b) {
  return layout_binary(context, LAYOUT_MUL, a, b);
}

// Σ output_i · Π extents after i, over the axes [begin, end); *size their product.
static const LayoutExpr *flat_index(Context *context, const Layout *layout, int begin, int end,
                                    const LayoutExpr **size) {
  const LayoutExpr *sum = NULL;
  *size = layout_const(context, 1);
  for (int i = end - 1; i >= begin; i--) {
    const LayoutExpr *part = times(context, layout->map->outputs[i], *size);
    sum = sum ? layout_binary(context, LAYOUT_ADD, part, sum) : part;
    *size = times(context, layout->physical[i], *size);
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

// The largest divisor of `value` (0: of everything) up to `limit`, which must be found by small
// ones: pairs with a factor up to 2^16 are tried.
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

// ---- Strides and vectors -----------------------------------------------------------------------

static const int64_t *domain_offsets(Context *context, const Layout *layout, int64_t *size) {
  PointDomain domain;
  if (!layout->is_static || !layout_points_domain(layout->extents, layout->rank, &domain))
    return NULL;
  *size = domain.size;
  int64_t *offsets = arena_array(&context->scratch, int64_t, domain.size + LANES);
  const LayoutExpr *e = layout_offset_expr(context, layout);
  return layout_points_values(context, layout->extents, layout->rank, e, offsets) ? offsets : NULL;
}

// The step of the text itself at the origin, for an axis of one element.
static bool step_at_origin(const LayoutExpr *offset, int axis, int64_t *out) {
  int64_t index[MAX_RANK] = {0}, a, b;
  if (!layout_expr_value(offset, index, NULL, 0, &a)) return false;
  index[axis] = 1;
  return layout_expr_value(offset, index, NULL, 0, &b) && !__builtin_sub_overflow(b, a, out);
}

// Steps of `axis` between neighbours, `inner` being the row-major step of the domain.
static bool constant_step(const int64_t *offsets, int64_t size, int64_t extent, int64_t inner,
                          int64_t *out) {
  bool first = true;
  for (int64_t i = 0; i < size; i++) {
    if (i / inner % extent == extent - 1) continue;
    int64_t step = offsets[i + inner] - offsets[i];
    if (!first && step != *out) return false;
    *out = step;
    first = false;
  }
  return true;
}

static void strides_by_points(Context *context, const Layout *layout, int64_t *strides,
                              bool *has_stride) {
  ArenaMark mark = arena_mark(&context->scratch);
  int64_t size, inner[MAX_RANK], total;
  const int64_t *offsets = domain_offsets(context, layout, &size);
  layout_box_strides(layout->extents, layout->rank, inner, &total);
  for (int i = 0; i < layout->rank; i++) {
    if (layout->extents[i] < 2 || size == 0)
      has_stride[i] = step_at_origin(layout_offset_expr(context, layout), i, &strides[i]);
    else
      has_stride[i] =
          offsets && constant_step(offsets, size, layout->extents[i], inner[i], &strides[i]);
  }
  arena_reset(&context->scratch, mark);
}

// Axis by axis from the forms; the points decide what is left, where there are few enough.
static void strides_by_forms(Context *context, const Layout *layout, int64_t *strides,
                             bool *has_stride) {
  const LayoutExpr *offset = layout_offset_expr(context, layout);
  bool decided = true;
  PointDomain domain;
  for (int i = 0; i < layout->rank; i++) {
    if (layout->extents[i] < 2) {
      has_stride[i] = step_at_origin(offset, i, &strides[i]);
      continue;
    }
    Verdict proof = layout_forms_stride(context, layout, offset, i, &strides[i]);
    has_stride[i] = proof == VERDICT_YES;
    decided = decided && proof != VERDICT_UNDECIDED;
  }
  if (!decided && layout_points_domain(layout->extents, layout->rank, &domain))
    strides_by_points(context, layout, strides, has_stride);
}

static void find_strides(Context *context, const Layout *layout, int64_t *strides,
                         bool *has_stride) {
  memset(strides, 0, sizeof *strides * (size_t)layout->rank);
  memset(has_stride, 0, sizeof *has_stride * (size_t)layout->rank);
  if (!layout->is_static) return;
  if (!layout_is_plain(layout)) return layout_memory_strides(context, layout, strides, has_stride);
  int64_t size;
  bool any = layout_logical_size(layout, &size) && size > 0;
  bool decided = any && layout_digits_strides(context, layout, strides, has_stride);
  if (!decided && any) strides_by_forms(context, layout, strides, has_stride);
  if (!any) strides_by_points(context, layout, strides, has_stride);
  for (int i = 0; i < layout->rank && decided; i++)
    if (layout->extents[i] == 1)
      has_stride[i] = step_at_origin(layout_offset_expr(context, layout), i, &strides[i]);
}

// gcd of the places where runs of consecutive elements begin: of the index along the axis, and of
// the offset there. 0: one run from offset 0.
static int64_t run_gcd(const int64_t *offsets, int64_t size, int64_t extent, int64_t inner) {
  int64_t gcd = 0;
  for (int64_t i = 0; i < size && gcd != 1; i++) {
    int64_t x = i / inner % extent;
    if (x && offsets[i] == offsets[i - inner] + 1) continue;
    gcd = gcd_of(gcd_of(gcd, x), offsets[i]);
  }
  return gcd;
}

static int64_t vector_by_points(Context *context, const Layout *layout, int axis) {
  ArenaMark mark = arena_mark(&context->scratch);
  int64_t size, inner[MAX_RANK], total, width = 1;
  const int64_t *offsets = domain_offsets(context, layout, &size);
  layout_box_strides(layout->extents, layout->rank, inner, &total);
  if (offsets && size)
    width = layout_largest_divisor(run_gcd(offsets, size, layout->extents[axis], inner[axis]),
                                   layout->extents[axis]);
  arena_reset(&context->scratch, mark);
  return width;
}

void layout_strides(Context *context, const Layout *layout, int64_t *strides, bool *has_stride) {
  const LayoutExpr *found[MAX_RANK] = {0};
  bool any = false;
  find_strides(context, layout, strides, has_stride);
  for (int i = 0; i < layout->rank; i++)
    if (layout->is_static && has_stride[i] && layout->extents[i] > 1) {
      found[i] = layout_const(context, strides[i]);
      any = true;
    }
  if (any)
    LAYOUT_VERIFY(context, "strides", layout, NULL,
                  layout_strides_certificate(context, layout, found));
}

static int64_t vector_width(Context *context, const Layout *layout, int axis) {
  int64_t size, *widths = layout->cache->vector_widths;
  if (!layout->is_static) return layout_symbolic_vector_width(context, layout, axis);
  if (!layout_logical_size(layout, &size) || size == 0 || layout->extents[axis] < 2) return 1;
  if (!layout_is_plain(layout)) return layout_memory_vector_width(context, layout, axis);
  if (!widths)
    widths = layout->cache->vector_widths = arena_array(&context->lasting, int64_t, layout->rank);
  const LayoutExpr *offset = layout_offset_expr(context, layout);
  if (widths[axis] || layout_digits_vector_width(context, layout, axis, &widths[axis]) ||
      layout_forms_vector_width(context, layout, offset, axis, &widths[axis]))
    return widths[axis];
  return widths[axis] = MAX_OF(widths[axis], vector_by_points(context, layout, axis));
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

typedef struct VectorRun {
  int axis;
  int64_t width;
} VectorRun;

static bool is_vector(Context *context, const Layout *layout, const Layout *none,
                      const LayoutInstance *at, const void *answer) {
  const VectorRun *v = answer;
  (void)none, (void)at;
  return layout_vector_certificate(context, layout, v->axis, v->width);
}

int64_t layout_vector_width(Context *context, const Layout *layout, int axis) {
  VectorRun found = {axis, vector_width(context, layout, axis)};
  if (found.width > 1)
    layout_verify_result(context, "vector width", layout, NULL, is_vector, &found);
  return found.width;
}
