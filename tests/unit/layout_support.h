// SPDX-License-Identifier: Apache-2.0
// Random small layouts for the tests of the layout algebra: splits, fusions, reorderings, offsets,
// reversals and XORs of the axes; some are spoiled so that they overlap or are not injective.
#ifndef PLEAT_LAYOUT_SUPPORT_H
#define PLEAT_LAYOUT_SUPPORT_H

#include "layout_texts.h"
#include "random_support.h"

#include <stdlib.h>

enum { MAX_AXES = 12, MAX_POSITIONS = 1 << 16 };

static uint64_t seed = 2024;

// ---- Random maps -------------------------------------------------------------------------------

// A physical axis under construction and its extent.
typedef struct Part {
  const LayoutExpr *e;
  int64_t extent;
} Part;

typedef struct Parts {
  Part items[MAX_AXES];
  int count;
} Parts;

static void split(Parts *p, int at, int64_t factor) {
  if (p->count == MAX_AXES) return;
  Part *part = &p->items[at];
  p->items[p->count++] = (Part){binary(LAYOUT_MOD, part->e, number(factor)), factor};
  *part = (Part){binary(LAYOUT_DIV, part->e, number(factor)), ceil_div(part->extent, factor)};
}

static void fuse(Parts *p, int at, int other) {
  if (at == other || p->items[at].extent * p->items[other].extent > 4000) return;
  const LayoutExpr *e = binary(LAYOUT_MUL, p->items[at].e, number(p->items[other].extent));
  p->items[at].e = binary(LAYOUT_ADD, e, p->items[other].e);
  p->items[at].extent *= p->items[other].extent;
  p->items[other] = p->items[--p->count];
}

static void exchange(Parts *p, int at, int other) {
  Part t = p->items[at];
  p->items[at] = p->items[other];
  p->items[other] = t;
}

static void swizzle(Parts *p, int at, int other) {
  int64_t reach = 1, m = 2 << random_below(3);
  const LayoutExpr *mask = binary(LAYOUT_MOD, p->items[other].e, number(m));
  if (at == other) return;
  while (reach < p->items[at].extent || reach < m) reach *= 2;
  p->items[at] = (Part){binary(LAYOUT_XOR, p->items[at].e, mask), reach};
}

static void step(Parts *p) {
  static const int64_t factors[] = {2, 2, 3, 4, 4, 5, 8, 16};
  int at = random_below(p->count), other = random_below(p->count);
  int64_t k = random_below(6);
  Part *part = &p->items[at];
  switch (random_below(10)) {
  case 0:
  case 1:
  case 2: split(p, at, factors[random_below(COUNT_OF(factors))]); break;
  case 3:
  case 4: fuse(p, at, other); break;
  case 5:
  case 6: exchange(p, at, other); break;
  case 7: *part = (Part){binary(LAYOUT_ADD, part->e, number(k)), part->extent + k}; break;
  case 8:
    *part = (Part){binary(LAYOUT_SUB, number(part->extent - 1 + k), part->e), part->extent + k};
    break;
  default: swizzle(p, at, other); break;
  }
}

// Sometimes makes the layout overlap or not injective.
static void spoil(Parts *p) {
  int at = random_below(p->count), other = random_below(p->count);
  Part *part = &p->items[at];
  switch (random_below(8)) {
  case 0: part->e = binary(LAYOUT_MOD, part->e, number(2 + random_below(5))); break;
  case 1: part->e = binary(LAYOUT_DIV, part->e, number(2 + random_below(3))); break;
  case 2: part->e = binary(LAYOUT_ADD, part->e, p->items[other].e); break;
  case 3: part->e = binary(LAYOUT_MIN, part->e, number(random_below(6))); break;
  case 4: part->e = binary(LAYOUT_AND, part->e, p->items[other].e); break;
  case 5: p->count -= p->count > 1; break;
  default: break;
  }
}

__attribute__((unused)) static const Layout *random_layout(int64_t *shape, int *rank) {
  static const int64_t sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16};
  Parts p = {.count = *rank = 1 + random_below(3)};
  for (int i = 0; i < *rank; i++) {
    shape[i] = sizes[random_below(COUNT_OF(sizes))];
    p.items[i] = (Part){layout_axis(context, i), shape[i]};
  }
  for (int steps = random_below(7); steps > 0; steps--) step(&p);
  if (random_below(3) == 0) spoil(&p);
  const LayoutExpr *outputs[MAX_AXES];
  for (int i = 0; i < p.count; i++) outputs[i] = p.items[i].e;
  const IndexMap *map = index_map_new(context, *rank, NULL, p.count, outputs, NULL, NULL, 0);
  return layout_static(context, map, shape, (SourcePos){0});
}

#endif
