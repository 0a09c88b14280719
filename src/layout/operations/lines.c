// SPDX-License-Identifier: Apache-2.0
// Finds the lines, pages and offsets that a box of indices touches: by visiting the digits of the
// offset in memory order (span.c), or else by listing the offsets.
#include "layout/operations/memory_order.h"
#include "layout/points/points.h"

#include <stdlib.h>

// A box of the logical axes (NULL: all of them) with the whole replica axes.
typedef struct LineBox {
  int64_t low[MAX_RANK], extent[MAX_RANK];
} LineBox;

static LineBox box_of(const Layout *copies, int rank, const int64_t *low, const int64_t *extent) {
  LineBox box = {0};
  memcpy(box.extent, copies->extents, sizeof *box.extent * (size_t)copies->rank);
  if (low) memcpy(box.low, low, sizeof *low * (size_t)rank);
  if (extent) memcpy(box.extent, extent, sizeof *extent * (size_t)rank);
  return box;
}

// ---- By points ---------------------------------------------------------------------------------

// The offset over a box, as an expression of the index within it.
static const LayoutExpr *boxed(Context *context, const LayoutExpr *e, const int64_t *low,
                               int rank) {
  const LayoutExpr *axes[MAX_RANK];
  for (int i = 0; i < rank; i++)
    axes[i] = layout_by(context, LAYOUT_ADD, layout_axis(context, i), low[i]);
  return layout_expr_substitute(context, e, axes, rank);
}

static void add_lines(LineSpan *sum, int64_t first, int64_t last, LayoutRun *runs, int room,
                      int *count) {
  if (!sum->count || first > sum->last + 1) {
    sum->runs++;
    if (*count < room) runs[(*count)++] = (LayoutRun){first, last - first + 1};
  } else if (sum->runs == *count) {
    runs[*count - 1].count = MAX_OF(sum->last, last) + 1 - runs[*count - 1].first;
  }
  if (!sum->count) *sum = (LineSpan){first, first - 1, 0, 1};
  if (last > sum->last) {
    sum->count += last - MAX_OF(first - 1, sum->last);
    sum->last = last;
  }
}

static bool lines_by_points(Context *context, const LayoutExpr *offset, const LineBox *box,
                            int rank, LineUnits lines, LineSpan *span, LayoutRun *runs, int *room) {
  ArenaMark mark = arena_mark(&context->scratch);
  int64_t size = 0, at, last;
  int64_t *offsets = layout_points_table(context, box->extent, rank,
                                         boxed(context, offset, box->low, rank), &size);
  bool good = offsets != NULL;
  int count = 0;
  *span = (LineSpan){0};
  if (good) qsort(offsets, (size_t)size, sizeof *offsets, layout_compare_numbers);
  for (int64_t i = 0; i < size && good; i++) {
    good = mul_fits(offsets[i], lines.element, &at) && add_fits(at, lines.base, &at) &&
           add_fits(at, lines.element - 1, &last);
    if (good) add_lines(span, at / lines.line, last / lines.line, runs, *room, &count);
  }
  *room = count;
  arena_reset(&context->scratch, mark);
  return good;
}

// ---- Questions ---------------------------------------------------------------------------------

static const char *box_problem(const Layout *layout, const LineBox *box) {
  const int64_t *low = box->low, *extent = box->extent;
  for (int i = 0; i < layout->rank; i++)
    if (low[i] < 0 || extent[i] < 0 || extent[i] > layout->extents[i] ||
        low[i] > layout->extents[i] - extent[i])
      return "the box leaves the logical shape";
  return NULL;
}

static LayoutAnswer touched(Context *context, const Layout *layout, const LineBox *box,
                            LineUnits lines, int wanted, LineSpan *span, LayoutRuns *out) {
  LayoutRun *runs = arena_array(&context->lasting, LayoutRun, wanted);
  const LayoutExpr *offset = layout_offset_expr(context, layout);
  LayoutLevel level = LAYOUT_DIGITS;
  MemoryOrder order;
  *span = (LineSpan){0};
  *out = (LayoutRuns){.runs = runs, .shown = wanted};
  for (int i = 0; i < layout->rank; i++)
    if (box->extent[i] == 0) return out->shown = 0, layout_yes(level);
  if (!memory_order_new(context, offset, layout->extents, layout->rank, box->low, box->extent,
                        &order) ||
      !memory_order_lines(context, &order, lines, span, runs, &out->shown)) {
    level = LAYOUT_POINTS;
    out->shown = wanted;
    if (!lines_by_points(context, offset, box, layout->rank, lines, span, runs, &out->shown))
      return layout_points_over_limit(context, box->extent, layout->rank);
  }
  out->total = span->count;
  out->run_count = span->runs;
  return layout_yes(level);
}

static const char *lines_problem(const Layout *layout, LayoutLineSize size, int wanted) {
  if (!layout->is_static) return "the extents are symbolic";
  if (size.element_bits < 1 || size.line_bytes < 1 || size.line_bytes > INT64_MAX / 8)
    return "elements and lines have at least one bit";
  if (size.base_bytes < 0 || size.base_bytes > INT64_MAX / 16)
    return "the base address is negative";
  return wanted < 0 ? "a negative number of runs" : NULL;
}

static LayoutAnswer lines_of(Context *context, const Layout *layout, const int64_t *low,
                             const int64_t *extent, LayoutLineSize size, int wanted,
                             LayoutRuns *out) {
  *out = (LayoutRuns){0};
  const char *problem = lines_problem(layout, size, wanted);
  if (problem) return layout_undecided(problem);
  const Layout *memory = layout_memory_part(context, layout);
  LineBox box = box_of(memory, layout->rank, low, extent);
  problem = box_problem(memory, &box);
  if (problem) return layout_no(problem);
  LineUnits lines = {size.element_bits, size.line_bytes * 8, size.base_bytes * 8};
  LineSpan span;
  return touched(context, memory, &box, lines, wanted, &span, out);
}

LayoutAnswer layout_lines(Context *context, const Layout *layout, const int64_t *low,
                          const int64_t *extent, LayoutLineSize size, int wanted, LayoutRuns *out) {
  LAYOUT_RETURN(context, lines_of(context, layout, low, extent, size, wanted, out),
                LAYOUT_ASK_LINES, layout, .first = low, .counts = extent, .size = size,
                .runs = *out);
}

// The gaps between runs of offsets that are used.
static void gaps(const LayoutRuns *used, const LineSpan *span, int64_t positions, int wanted,
                 LayoutRun *runs, LayoutRuns *out) {
  int64_t next = 0;
  *out = (LayoutRuns){.total = positions - span->count, .runs = runs};
  if (!span->count) {
    out->run_count = positions > 0;
  } else {
    out->run_count = span->runs - 1 + (span->first > 0) + (span->last < positions - 1);
  }
  for (int i = 0; out->shown < MIN_OF((int64_t)wanted, out->run_count); i++) {
    int64_t end = i < used->shown ? used->runs[i].first : positions;
    if (end > next) runs[out->shown++] = (LayoutRun){next, end - next};
    if (i < used->shown) next = end + used->runs[i].count;
  }
}

static LayoutAnswer padding_runs(Context *context, const Layout *layout, int wanted,
                                 LayoutRuns *out) {
  *out = (LayoutRuns){0};
  if (!layout->is_static) return layout_undecided("the extents are symbolic");
  const Layout *memory = layout_memory_part(context, layout);
  LineBox box = box_of(memory, layout->rank, NULL, NULL);
  LayoutRuns used;
  LineSpan span;
  int64_t positions;
  LayoutAnswer result =
      touched(context, memory, &box, (LineUnits){1, 1, 0}, wanted + 1, &span, &used);
  if (result.verdict == VERDICT_YES && layout_physical_size(memory, &positions))
    gaps(&used, &span, positions, wanted, arena_array(&context->lasting, LayoutRun, wanted), out);
  return result;
}

LayoutAnswer layout_padding_runs(Context *context, const Layout *layout, int wanted,
                                 LayoutRuns *out) {
  LAYOUT_RETURN(context, padding_runs(context, layout, wanted, out), LAYOUT_ASK_PADDING_RUNS,
                layout, .runs = *out);
}
