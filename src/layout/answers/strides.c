// SPDX-License-Identifier: Apache-2.0
// Finds the strides, vector widths and lists of offsets of a layout.
#include "layout/answers/answers.h"
#include "layout/digits/digits.h"
#include "layout/points/points.h"

// ---- Strides and vectors -----------------------------------------------------------------------

static const int64_t *domain_offsets(Context *context, const Layout *layout, int64_t *size) {
  if (!layout->is_static) return NULL;
  const LayoutExpr *e = layout_offset_expr(context, layout);
  return layout_points_table(context, layout->extents, layout->rank, e, size);
}

// The step of the expression at the origin, for an axis of one element.
static bool step_at_origin(const LayoutExpr *offset, int axis, int64_t *out) {
  int64_t index[MAX_RANK] = {0}, a, b;
  if (!layout_expr_value(offset, index, NULL, 0, &a)) return false;
  index[axis] = 1;
  return layout_expr_value(offset, index, NULL, 0, &b) && sub_fits(b, a, out);
}

// The step between all neighbours along an axis, whose row-major step in the domain is `inner`.
// False where the steps differ.
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

// Finds the strides from the forms, axis by axis. Where the forms do not decide, all points are
// enumerated if they are few enough.
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

// The gcd of the indices along the axis where runs of consecutive elements begin, and of the
// offsets there. It is 0 for one run from offset 0.
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

// Finds the strides for the cache.
static void remember_strides(Context *context, const Layout *layout) {
  struct LayoutCache *cache = layout->cache;
  const LayoutExpr *found[MAX_RANK] = {0};
  LayoutAnswer yes = layout_answer_of(VERDICT_YES, LAYOUT_DIGITS, NULL);
  int64_t *strides = arena_array(&context->lasting, int64_t, layout->rank);
  bool *has_stride = arena_array(&context->lasting, bool, layout->rank);
  find_strides(context, layout, strides, has_stride);
  for (int i = 0; i < layout->rank; i++)
    if (!has_stride[i] && (!layout->is_static || layout->extents[i] < 2 ||
                           !step_at_origin(layout_offset_expr(context, layout), i, &strides[i])))
      strides[i] = 0;
  for (int i = 0; i < layout->rank; i++)
    if (layout->is_static && has_stride[i] && layout->extents[i] > 1)
      found[i] = layout_const(context, strides[i]);
  LAYOUT_ANSWERED(context, &yes, LAYOUT_ASK_STRIDES, layout, .strides = found);
  cache->has_stride = has_stride;
  cache->strides = strides;
}

void layout_strides(Context *context, const Layout *layout, int64_t *strides, bool *has_stride) {
  if (!layout->cache->strides) remember_strides(context, layout);
  memcpy(strides, layout->cache->strides, sizeof *strides * (size_t)layout->rank);
  memcpy(has_stride, layout->cache->has_stride, sizeof *has_stride * (size_t)layout->rank);
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

int64_t layout_vector_width(Context *context, const Layout *layout, int axis) {
  int64_t widths[MAX_RANK] = {0}, width = vector_width(context, layout, axis);
  LayoutAnswer yes = layout_answer_of(VERDICT_YES, LAYOUT_DIGITS, NULL);
  widths[axis] = width;
  if (width > 1) LAYOUT_ANSWERED(context, &yes, LAYOUT_ASK_VECTOR, layout, .widths = widths);
  return width;
}

bool layout_offsets(Context *context, const Layout *layout, int64_t *out) {
  const Layout *copies = layout_of_copies(context, layout);
  PointDomain domain = {.extents = copies->extents, .rank = copies->rank};
  return layout_logical_size(copies, &domain.size) &&
         layout_domain_values(context, &domain, layout_offset_expr(context, copies), out);
}
