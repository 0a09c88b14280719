// SPDX-License-Identifier: Apache-2.0
// Writes goals about counts. The number of different values of an expression on a box is the number
// of offsets of a flat layout that have an element (`onto yes except`). If each value and the next
// one are counted, the count grows by the number of runs of values. The checker lists the points.
#include "layout/certificates/certificate.h"
#include "layout/points/points.h"

enum { MOST_POINTS = 1 << 18 }; // with more of them, finding the certificate takes seconds

typedef struct Count {
  Context *context;
  Certificate *certificate;
  int64_t extents[MAX_RANK];
  int rank;
  int64_t limit; // numbers are 0 .. limit - 1
} Count;

static const LayoutExpr *add_axis(Count *c, int64_t extent) {
  c->extents[c->rank] = extent;
  return layout_axis(c->context, c->rank++);
}

// `value` takes `count` different numbers.
static bool show_count(Count *c, const LayoutExpr *value, int64_t count) {
  const LayoutExpr *shape[MAX_RANK], *limit = layout_const(c->context, c->limit);
  PointDomain domain;
  if (!layout_points_domain(c->extents, c->rank, &domain) || domain.size > MOST_POINTS)
    return false;
  for (int i = 0; i < c->rank; i++) shape[i] = layout_const(c->context, c->extents[i]);
  const IndexMap *map = index_map_new(c->context, c->rank, NULL, 1, &value, NULL, NULL, 0);
  LayoutQuestion padding = {LAYOUT_ASK_PADDING,
                            layout_try(c->context, map, shape, &limit, (LayoutFacts){0}),
                            .value = layout_const(c->context, c->limit - count)};
  LayoutAnswer yes = layout_answer_of(VERDICT_YES, LAYOUT_POINTS, NULL);
  return padding.a && certificate_add(c->certificate, &padding, &yes);
}

// The memory offset of the element (each copy) at an index of the box, its axes being the first of
// the count. NULL: it has too many.
static const LayoutExpr *boxed_offset(Count *c, const Layout *memory, int rank, const int64_t *low,
                                      const int64_t *extent) {
  const LayoutExpr *axes[MAX_RANK];
  if (memory->rank + 2 > MAX_RANK) return NULL;
  for (int i = 0; i < memory->rank; i++) {
    bool given = i < rank;
    axes[i] = add_axis(c, given && extent ? extent[i] : memory->extents[i]);
    axes[i] = layout_by(c->context, LAYOUT_ADD, axes[i], given && low ? low[i] : 0);
  }
  return layout_expr_substitute(c->context, layout_offset_expr(c->context, memory), axes,
                                memory->rank);
}

// The line of an element, counted from the first line of all. Where an element may be on several
// lines, there is one more axis.
static const LayoutExpr *line_of(Count *c, const LayoutExpr *offset, LayoutLineSize size,
                                 int64_t first) {
  Context *context = c->context;
  int64_t line = size.line_bytes * 8, most = (size.element_bits + line - 2) / line + 1;
  const LayoutExpr *bit = layout_by(context, LAYOUT_MUL, offset, size.element_bits);
  bit = layout_by(context, LAYOUT_ADD, bit, (size.base_bytes - first * size.line_bytes) * 8);
  const LayoutExpr *at = layout_by(context, LAYOUT_DIV, bit, line);
  if (line % size.element_bits == 0 && size.base_bytes * 8 % size.element_bits == 0) return at;
  const LayoutExpr *end = layout_by(context, LAYOUT_ADD, bit, size.element_bits - 1);
  at = layout_binary(context, LAYOUT_ADD, at, add_axis(c, most));
  return layout_binary(context, LAYOUT_MIN, at, layout_by(context, LAYOUT_DIV, end, line));
}

bool lines_certificate(Certificate *certificate, const LayoutQuestion *q,
                       const LayoutAnswer *answer) {
  Context *context = certificate->context;
  const LayoutRuns *runs = &q->runs;
  if (!q->a->is_static || !runs->shown) return false;
  const Layout *memory = layout_memory_part(context, q->a);
  const LayoutRun *last = &runs->runs[runs->shown - 1];
  int64_t positions, first = runs->runs[0].first;
  Count c = {context, certificate, .limit = last->first + last->count - first};
  if (!layout_physical_size(memory, &positions)) return false;
  if (runs->shown < runs->run_count && !mul_fits(positions, q->size.element_bits, &positions))
    return false;
  if (runs->shown < runs->run_count)
    c.limit = (positions / 8 + q->size.base_bytes) / q->size.line_bytes + 1 - first;
  const LayoutExpr *offset = boxed_offset(&c, memory, q->a->rank, q->first, q->counts);
  if (!offset) return false;
  const LayoutExpr *line = line_of(&c, offset, q->size, first);
  if (!show_count(&c, line, runs->total)) return false;
  c.limit++;
  line = layout_binary(context, LAYOUT_ADD, line, add_axis(&c, 2));
  return show_count(&c, line, runs->total + runs->run_count);
}

// Counts the offsets that have an element, and then these, the next ones, and 0: as many more are
// counted as there are runs of padding.
bool padding_runs_certificate(Certificate *certificate, const LayoutQuestion *q,
                              const LayoutAnswer *answer) {
  Context *context = certificate->context;
  if (!q->a->is_static) return false;
  const Layout *memory = layout_memory_part(context, q->a);
  Count c = {context, certificate};
  if (!layout_physical_size(memory, &c.limit) || layout_is_empty(memory)) return false;
  const LayoutExpr *offset = boxed_offset(&c, memory, 0, NULL, NULL);
  if (!offset || !show_count(&c, offset, c.limit - q->runs.total)) return false;
  const LayoutExpr *which = add_axis(&c, 3), *end = layout_const(context, c.limit - 1);
  const LayoutExpr *next = layout_binary(context, LAYOUT_ADD, offset, which);
  next = layout_binary(context, LAYOUT_MIN, next, end);
  next = layout_expr(context, LAYOUT_SELECT, layout_by(context, LAYOUT_LT, which, 2), next,
                     layout_const(context, 0));
  return show_count(&c, next, c.limit - q->runs.total + q->runs.run_count);
}
