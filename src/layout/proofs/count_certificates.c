// SPDX-License-Identifier: Apache-2.0
// Certificates of counts: how many different numbers an expression takes on a box is how many
// places of a flat layout hold an element (`onto yes except`). So many as runs begin are more when
// each number and the next one are counted. The checker lists the points.
#include "layout/proofs/equations.h"
#include "layout/answers/answers.h"
#include "layout/points/points.h"

enum { MOST_POINTS = 1 << 18 }; // beyond, finding the certificate takes seconds

typedef struct Count {
  Context *context;
  int64_t extents[MAX_RANK];
  int rank;
  int64_t limit; // numbers are 0 .. limit - 1
} Count;

static const LayoutExpr *add_axis(Count *c, int64_t extent) {
  c->extents[c->rank] = extent;
  return layout_axis(c->context, c->rank++);
}

// That `value` takes `count` different numbers.
static const char *count_certificate(const Count *c, const LayoutExpr *value, int64_t count) {
  const LayoutExpr *shape[MAX_RANK], *limit = layout_const(c->context, c->limit);
  PointDomain domain;
  int64_t rest;
  if (!layout_points_domain(c->extents, c->rank, &domain) || domain.size > MOST_POINTS) return NULL;
  for (int i = 0; i < c->rank; i++) shape[i] = layout_const(c->context, c->extents[i]);
  const IndexMap *map = index_map_new(c->context, c->rank, NULL, 1, &value, NULL, NULL, 0);
  const Layout *numbers = layout_try(c->context, map, shape, &limit, (LayoutFacts){0});
  if (!numbers) return NULL;
  LayoutAnswer answer = layout_padding_count(c->context, numbers, &rest);
  if (answer.verdict != VERDICT_YES || c->limit - rest != count) return NULL;
  return layout_certificate(c->context, LAYOUT_ASK_PADDING, numbers, NULL, &answer);
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

static const Layout *memory_of(Context *context, const Layout *layout) {
  return layout_on_resource(context, layout_of_copies(context, layout), NULL);
}

// The lines of an element, less the first line of all; where it may lie on several, an axis more.
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

const char *layout_lines_certificate(Context *context, const Layout *layout, const int64_t *low,
                                     const int64_t *extent, LayoutLineSize size,
                                     const LayoutRuns *runs) {
  if (!layout->is_static || !runs->shown) return NULL;
  const Layout *memory = memory_of(context, layout);
  const LayoutRun *last = &runs->runs[runs->shown - 1];
  int64_t positions, first = runs->runs[0].first;
  Count c = {.context = context, .limit = last->first + last->count - first};
  if (!layout_physical_size(memory, &positions)) return NULL;
  if (runs->shown < runs->run_count && !mul_fits(positions, size.element_bits, &positions))
    return NULL;
  if (runs->shown < runs->run_count)
    c.limit = (positions / 8 + size.base_bytes) / size.line_bytes + 1 - first;
  const LayoutExpr *offset = boxed_offset(&c, memory, layout->rank, low, extent);
  if (!offset) return NULL;
  const LayoutExpr *line = line_of(&c, offset, size, first);
  const char *text = count_certificate(&c, line, runs->total);
  c.limit++;
  line = layout_binary(context, LAYOUT_ADD, line, add_axis(&c, 2));
  if (!text) return NULL;
  return certificate_pair(context, text,
                          count_certificate(&c, line, runs->total + runs->run_count));
}

// What is used, what follows it, and 0: of these are as many not used as runs of padding begin.
const char *layout_padding_runs_certificate(Context *context, const Layout *layout,
                                            const LayoutRuns *runs) {
  if (!layout->is_static) return NULL;
  const Layout *memory = memory_of(context, layout);
  Count c = {.context = context};
  if (!layout_physical_size(memory, &c.limit) || layout_is_empty(memory)) return NULL;
  const LayoutExpr *offset = boxed_offset(&c, memory, 0, NULL, NULL);
  if (!offset) return NULL;
  const char *text = count_certificate(&c, offset, c.limit - runs->total);
  const LayoutExpr *which = add_axis(&c, 3), *end = layout_const(context, c.limit - 1);
  const LayoutExpr *next = layout_binary(context, LAYOUT_ADD, offset, which);
  next = layout_binary(context, LAYOUT_MIN, next, end);
  next = layout_expr(context, LAYOUT_SELECT, layout_by(context, LAYOUT_LT, which, 2), next,
                     layout_const(context, 0));
  if (!text) return NULL;
  return certificate_pair(context, text,
                          count_certificate(&c, next, c.limit - runs->total + runs->run_count));
}
