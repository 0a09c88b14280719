// SPDX-License-Identifier: Apache-2.0
// Gives tensors with known lifetimes offsets in one arena. Two methods run, and the smaller arena
// is taken. The problem is dynamic storage allocation, which is NP-hard (Garey and Johnson, SR2).
//
// Placing in an order: each item gets the lowest gap between the items placed before it that are
// alive at the same time. The size of the arena depends on the order. A few orders are tried; in
// each, the items that ended at the top are moved to the front and the placing is repeated
// ("squeaky wheel" optimisation, Joslin and Clements 1999).
//
// Placing in time, within a given size: when an item begins, it gets the smallest gap between the
// items that are alive, at the end of the gap whose neighbour lives longer (the ends of the arena
// live for ever). So items that live long stay together, and the free memory stays in one piece. A
// chain of any length fits the largest sum of live items: every other item is at the bottom, and
// the others are at the top.
//
//   step    0 1 2 3           offset
//   a (64)  ■ ■               0 ..64      a and c never live together: they share
//   b (32)    ■ ■             64..96
//   c (64)      ■ ■           0 ..64      arena: 96 = the largest sum of live items
#include "lower/lower.h"

#include <stdlib.h>

enum { SLOW_ORDERS_UP_TO = 2000, ROUNDS = 12 }; // with more items: one order, one round
enum { SIZES_IN_TIME = 8 };                     // tried between the bound and the best so far

typedef struct ArenaPlace {
  const ArenaItem *item;
  int64_t size;
  int64_t pressure; // the largest live sum while the item is alive
  int64_t offset;
  int index, tops; // how often its end was the size of the arena
} ArenaPlace;

typedef int PlacementOrder(const void *a, const void *b);

static int sign(int64_t a, int64_t b) {
  return (a > b) - (a < b);
}

static int by_size(const void *a, const void *b) {
  const ArenaPlace *p = a, *q = b;
  int c = sign(q->tops, p->tops);
  if (!c) c = sign(q->size, p->size);
  if (!c) c = sign(p->item->first, q->item->first);
  return c ? c : sign(p->index, q->index);
}

static int by_pressure(const void *a, const void *b) {
  const ArenaPlace *p = a, *q = b;
  int c = sign(q->tops, p->tops);
  if (!c) c = sign(q->pressure, p->pressure);
  return c ? c : by_size(a, b);
}

static int by_start(const void *a, const void *b) {
  const ArenaPlace *p = a, *q = b;
  int c = sign(q->tops, p->tops);
  if (!c) c = sign(p->item->first, q->item->first);
  return c ? c : by_size(a, b);
}

static int by_duration(const void *a, const void *b) {
  const ArenaPlace *p = a, *q = b;
  int c = sign(q->tops, p->tops);
  if (!c) c = sign(q->item->last - q->item->first, p->item->last - p->item->first);
  return c ? c : by_size(a, b);
}

static int64_t round_up(int64_t value, int64_t alignment) {
  return alignment > 1 ? ceil_div(value, alignment) * alignment : value;
}

// Sums up the live bytes at each step; false when a sum does not fit int64.
static bool live_sums(const ArenaItem *items, int count, int64_t *sums, int steps) {
  memset(sums, 0, sizeof *sums * (size_t)steps);
  for (int i = 0; i < count; i++)
    for (int t = items[i].first; t <= items[i].last; t++)
      if (!add_fits(sums[t], items[i].bytes, &sums[t])) return false;
  return true;
}

static bool alive_together(const ArenaPlace *a, const ArenaPlace *b) {
  return a->item->first <= b->item->last && b->item->first <= a->item->last;
}

// Gives `place` the lowest offset that `placed`, which are sorted by offset, leave free.
static bool lowest_gap(ArenaPlace *place, ArenaPlace *const *placed, int count) {
  int64_t at = 0, end;
  for (int i = 0; i < count; i++) {
    const ArenaPlace *other = placed[i];
    if (other->size == 0 || !alive_together(place, other)) continue;
    if (!add_fits(at, place->size, &end)) return false;
    if (end <= other->offset) break;
    at = MAX_OF(at, round_up(other->offset + other->size, place->item->alignment));
  }
  place->offset = at;
  return add_fits(at, place->size + 4096, &end);
}

static void insert_sorted(ArenaPlace **placed, int count, ArenaPlace *place) {
  int at = count;
  while (at > 0 && placed[at - 1]->offset > place->offset) at--;
  memmove(placed + at + 1, placed + at, sizeof *placed * (size_t)(count - at));
  placed[at] = place;
}

static int64_t place_all(ArenaPlace *places, ArenaPlace **placed, int count,
                         PlacementOrder *order) {
  int64_t size = 0;
  qsort(places, (size_t)count, sizeof *places, order);
  for (int i = 0; i < count; i++) {
    if (!lowest_gap(&places[i], placed, i)) return -1;
    insert_sorted(placed, i, &places[i]);
    size = MAX_OF(size, places[i].offset + places[i].size);
  }
  return size;
}

static int last_step(const ArenaItem *items, int count) {
  int last = 0;
  for (int i = 0; i < count; i++) last = MAX_OF(last, items[i].last);
  return last;
}

static int64_t largest(const int64_t *sums, int first, int last) {
  int64_t most = 0;
  for (int t = first; t <= last; t++) most = MAX_OF(most, sums[t]);
  return most;
}

typedef struct ArenaPlanner {
  ArenaItem *items;
  int count;
  ArenaPlace *places, **placed;
  int64_t bound, best;
} ArenaPlanner;

static void keep_offsets(ArenaPlanner *planner, int64_t size) {
  planner->best = size;
  for (int i = 0; i < planner->count; i++)
    planner->items[planner->places[i].index].offset = planner->places[i].offset;
}

static void try_order(ArenaPlanner *planner, PlacementOrder *order) {
  ArenaPlace *places = planner->places;
  int64_t size = place_all(places, planner->placed, planner->count, order);
  if (size < 0) return;
  if (planner->best < 0 || size < planner->best) keep_offsets(planner, size);
  for (int i = 0; i < planner->count; i++)
    if (places[i].offset + places[i].size == size) places[i].tops++;
}

static void try_orders(ArenaPlanner *planner) {
  PlacementOrder *const orders[] = {by_size, by_pressure, by_duration, by_start};
  bool small = planner->count <= SLOW_ORDERS_UP_TO;
  for (int k = 0; k < (small ? COUNT_OF(orders) : 1); k++) {
    for (int i = 0; i < planner->count; i++) planner->places[i].tops = 0;
    for (int round = 0; round < (small ? ROUNDS : 1) && planner->best != planner->bound; round++)
      try_order(planner, orders[k]);
  }
}

// ---- In time

// Free memory between two neighbours, or between one and an end of the arena (NULL).
typedef struct Gap {
  int64_t begin, end;
  const ArenaPlace *below, *above;
  int at; // the index of `above` in the live items
} Gap;

static int without_dead(ArenaPlace **live, int count, int now) {
  int kept = 0;
  for (int i = 0; i < count; i++)
    if (live[i]->item->last >= now) live[kept++] = live[i];
  return kept;
}

static bool smallest_gap(ArenaPlace *const *live, int count, const ArenaPlace *place, int64_t size,
                         Gap *best) {
  bool found = false;
  int64_t begin = 0;
  for (int i = 0; i <= count; i++) {
    const ArenaPlace *below = i ? live[i - 1] : NULL, *above = i < count ? live[i] : NULL;
    if (below) begin = round_up(below->offset + below->size, place->item->alignment);
    int64_t end = above ? above->offset : size;
    if (end - begin < place->size || (found && end - begin >= best->end - best->begin)) continue;
    *best = (Gap){begin, end, below, above, i};
    found = true;
  }
  return found;
}

static int64_t offset_in(const Gap *gap, const ArenaPlace *place) {
  int64_t alignment = place->item->alignment, top = gap->end - place->size;
  bool upwards = gap->below && (!gap->above || gap->above->item->last > gap->below->item->last);
  return upwards ? top - (alignment > 1 ? top % alignment : 0) : gap->begin;
}

// Whether all items fit `size`. `places` are sorted by the steps at which they begin.
static bool place_in_time(ArenaPlace *places, ArenaPlace **live, int count, int64_t size) {
  int alive = 0;
  for (int i = 0; i < count; i++) {
    ArenaPlace *place = &places[i];
    Gap gap = {0};
    if (i && place->item->first != places[i - 1].item->first)
      alive = without_dead(live, alive, place->item->first);
    place->offset = 0;
    if (!place->size) continue;
    if (!smallest_gap(live, alive, place, size, &gap)) return false;
    place->offset = offset_in(&gap, place);
    memmove(live + gap.at + 1, live + gap.at, sizeof *live * (size_t)(alive - gap.at));
    live[gap.at] = place;
    alive++;
  }
  return true;
}

static void try_time(ArenaPlanner *planner) {
  ArenaPlace *places = planner->places;
  int64_t least = planner->bound;
  for (int i = 0; i < planner->count; i++) places[i].tops = 0;
  qsort(places, (size_t)planner->count, sizeof *places, by_start);
  for (int k = 0; k < SIZES_IN_TIME && least < planner->best; k++) {
    int64_t size = k ? least + (planner->best - least) / 2 : least;
    if (place_in_time(places, planner->placed, planner->count, size))
      keep_offsets(planner, size);
    else
      least = size + 1;
  }
}

int64_t arena_plan(Context *context, ArenaItem *items, int count, int64_t *bound) {
  ArenaMark mark = arena_mark(&context->scratch);
  int steps = last_step(items, count) + 1;
  int64_t *sums = arena_array(&context->scratch, int64_t, steps);
  ArenaPlace *places = arena_array(&context->scratch, ArenaPlace, count);
  ArenaPlace **placed = arena_array(&context->scratch, ArenaPlace *, count + 1);
  int64_t size = -1;
  if (live_sums(items, count, sums, steps)) {
    for (int i = 0; i < count; i++)
      places[i] = (ArenaPlace){
          &items[i], items[i].bytes, largest(sums, items[i].first, items[i].last), 0, i, 0};
    int64_t most = largest(sums, 0, steps - 1);
    if (bound) *bound = most;
    ArenaPlanner planner = {items, count, places, placed, most, -1};
    try_orders(&planner);
    try_time(&planner);
    size = planner.best;
  }
  arena_reset(&context->scratch, mark);
  return size;
}
