// SPDX-License-Identifier: Apache-2.0
// Finds inverses from all points, for static maps that the forms cannot invert. The elements in the
// order of their offsets form runs `first + step·((offset - start)//gap)`, which comparisons
// distinguish:
//
//   b -> max(b*5, 3), b < 4, at 3, 5, 10, 15  =>  select(p < 10, (p - 3)//2, (p - 10)//5 + 2)
#include "layout/points/points.h"

enum { MAX_PIECES_SIZE = 1 << 14 }; // the largest expression that a certificate takes

typedef struct IndexRun {
  int64_t start, gap, first, step, count; // offsets start + i·gap, elements first + i·step
} IndexRun;

typedef struct RunTable {
  Context *context;
  const IndexRun *runs;
  int count;
  int64_t positions;
  const LayoutExpr *position; // the offset, over the physical axes
} RunTable;

// ---- Runs --------------------------------------------------------------------------------------

// The elements by ascending offset. NULL where two share one.
static const PointOffset *sorted_positions(Context *context, const int64_t *offsets, int64_t count,
                                           int64_t positions) {
  if (positions > 16 * count) {
    const PointOffset *sorted = layout_points_sorted(context, offsets, count);
    for (int64_t i = 1; i < count; i++)
      if (sorted[i].offset == sorted[i - 1].offset) return NULL;
    return sorted;
  }
  PointOffset *out = arena_array(&context->scratch, PointOffset, count);
  int32_t *owners = arena_array(&context->scratch, int32_t, positions);
  int64_t at = 0;
  for (int64_t i = 0; i < count; i++) {
    if (owners[offsets[i]]) return NULL;
    owners[offsets[i]] = (int32_t)i + 1;
  }
  for (int64_t p = 0; p < positions; p++)
    if (owners[p]) out[at++] = (PointOffset){p, owners[p] - 1};
  return out;
}

static bool continues(const IndexRun *run, const PointOffset *p) {
  return p->offset == run->start + run->count * run->gap &&
         p->ordinal == run->first + run->count * run->step;
}

// Finds the runs and gives their number; -1 where there are more than `most`.
static int find_runs(const PointOffset *positions, int64_t count, IndexRun *runs, int most) {
  int found = 0;
  for (int64_t i = 0; i < count;) {
    if (found == most) return -1;
    IndexRun *run = &runs[found++];
    *run = (IndexRun){positions[i].offset, 1, positions[i].ordinal, 1, 1};
    if (i + 1 < count) {
      run->gap = positions[i + 1].offset - positions[i].offset;
      run->step = positions[i + 1].ordinal - positions[i].ordinal;
    }
    for (i++; i < count && continues(run, &positions[i]); i++) run->count++;
    if (run->count == 1) run->gap = run->step = 1;
  }
  return found;
}

// ---- Expressions -------------------------------------------------------------------------------

// The number i of the offset start + i·gap.
static const LayoutExpr *number_in_run(const RunTable *t, const IndexRun *run) {
  const LayoutExpr *e = layout_by(t->context, LAYOUT_SUB, t->position, run->start);
  return layout_by(t->context, LAYOUT_DIV, e, run->gap);
}

static const LayoutExpr *ordinal_in(const RunTable *t, int at) {
  const IndexRun *run = &t->runs[at];
  if (run->count == 1) return layout_const(t->context, run->first);
  const LayoutExpr *e = layout_by(t->context, LAYOUT_MUL, number_in_run(t, run), run->step);
  return layout_by(t->context, LAYOUT_ADD, e, run->first);
}

static const LayoutExpr *either(Context *context, const LayoutExpr *a, const LayoutExpr *b) {
  return a ? layout_binary(context, LAYOUT_EITHER, a, b) : b;
}

// The padding condition for the offsets from this run up to the next.
static const LayoutExpr *padding_in(const RunTable *t, int at) {
  Context *c = t->context;
  const IndexRun *run = &t->runs[at];
  int64_t last = run->start + (run->count - 1) * run->gap;
  int64_t end = at + 1 < t->count ? t->runs[at + 1].start : t->positions;
  const LayoutExpr *none = NULL;
  if (!at && run->start) none = layout_by(c, LAYOUT_LT, t->position, run->start);
  if (last + 1 < end)
    none = either(c, none, layout_binary(c, LAYOUT_LT, layout_const(c, last), t->position));
  if (run->count > 1 && run->gap > 1) {
    const LayoutExpr *e = layout_by(c, LAYOUT_SUB, t->position, run->start);
    e = layout_by(c, LAYOUT_NE, layout_by(c, LAYOUT_MOD, e, run->gap), 0);
    none = either(c, none, e);
  }
  return none ? none : layout_const(c, 0);
}

// The expression of the run that an offset belongs to, among the runs from `low` to `high`.
static const LayoutExpr *select_run(const RunTable *t, int low, int high,
                                    const LayoutExpr *(*of_run)(const RunTable *t, int at)) {
  if (high - low == 1) return of_run(t, low);
  int middle = low + (high - low) / 2;
  const LayoutExpr *below = select_run(t, low, middle, of_run);
  const LayoutExpr *above = select_run(t, middle, high, of_run);
  if (below == above) return below;
  const LayoutExpr *is_below = layout_by(t->context, LAYOUT_LT, t->position, t->runs[middle].start);
  return layout_expr(t->context, LAYOUT_SELECT, is_below, below, above);
}

static const LayoutExpr *position_number(Context *context, const Layout *layout) {
  const LayoutExpr *axes[MAX_RANK];
  for (int i = 0; i < layout->physical_rank; i++) axes[i] = layout_axis(context, i);
  return layout_number_expr(context, axes, layout->physical, layout->physical_rank);
}

static bool write_inverse(const RunTable *t, const Layout *layout, LayoutInverse *out) {
  const LayoutExpr *outputs[MAX_RANK];
  Str names[MAX_RANK];
  const LayoutExpr *ordinal = select_run(t, 0, t->count, ordinal_in);
  const LayoutExpr *padding = select_run(t, 0, t->count, padding_in);
  bool small = layout_expr_size(padding) <= MAX_PIECES_SIZE;
  int64_t stride = 1;
  for (int i = layout->rank - 1; i >= 0; i--) {
    outputs[i] = layout_by(t->context, LAYOUT_DIV, ordinal, stride);
    stride *= layout->extents[i];
    if (i) outputs[i] = layout_by(t->context, LAYOUT_MOD, outputs[i], layout->extents[i]);
    small = small && layout_expr_size(outputs[i]) <= MAX_PIECES_SIZE;
  }
  if (!small) return false;
  for (int i = 0; i < layout->physical_rank; i++)
    names[i] = layout_numbered_name(t->context, 'p', i);
  *out = (LayoutInverse){
      index_map_new(t->context, layout->physical_rank, names, layout->rank, outputs, NULL, NULL, 0),
      padding == layout_const(t->context, 0) ? NULL : padding};
  return true;
}

bool layout_points_inverse(Context *context, const Layout *layout, int most, LayoutInverse *out) {
  int64_t size = 0;
  RunTable t = {.context = context};
  const LayoutExpr *offset = layout_offset_expr(context, layout);
  if (!layout_physical_size(layout, &t.positions)) return false;
  ArenaMark mark = arena_mark(&context->scratch);
  const int64_t *offsets =
      layout_points_table(context, layout->extents, layout->rank, offset, &size);
  const PointOffset *positions =
      offsets && size ? sorted_positions(context, offsets, size, t.positions) : NULL;
  IndexRun *runs = arena_array(&context->scratch, IndexRun, most);
  if (positions) t.count = find_runs(positions, size, runs, most);
  t.runs = runs;
  t.position = position_number(context, layout);
  bool found = t.count > 0 && write_inverse(&t, layout, out);
  arena_reset(&context->scratch, mark);
  return found;
}
