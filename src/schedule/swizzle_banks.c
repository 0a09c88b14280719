// SPDX-License-Identifier: Apache-2.0
// Implements swizzle_banks, which gives a buffer of shared memory the layout in which the threads
// of a warp wait least for one another. The layout algebra finds the best linear map of offsets
// over bits for the accesses of all threads, and the buffer gets it as transform_layout gives it
// any map.
//   for i, j in threads: S[i, j] = …; … = S[j, i]      by  i, j -> i, j ^ i   =>
//   for i, j in threads: S[i, j ^ i] = …; … = S[j, i ^ j]
#include "arith/shared_access.h"
#include "schedule/internal.h"

enum { MOST_AXES = 64 };

// ---- Accesses ---------------------------------------------------------------------------------

static bool same_lanes(const LayoutAccess *a, const LayoutAccess *b) {
  bool same = index_map_same(a->lanes, b->lanes) && a->vector == b->vector;
  for (int i = 0; same && i < a->lanes->input_count; i++) same = a->extents[i] == b->extents[i];
  return same;
}

// The different ones among the accesses, with the number of each as its weight.
static int different_accesses(Context *context, const SharedAccesses *all, LayoutAccess **out) {
  int count = 0;
  *out = arena_array(&context->arena, LayoutAccess, all->count);
  for (int i = 0; i < all->count; i++) {
    int at = 0;
    while (at < count && !same_lanes(&(*out)[at], &all->items[i].lanes)) at++;
    if (at < count)
      (*out)[at].weight++;
    else
      (*out)[count++] = all->items[i].lanes;
  }
  return count;
}

static bool find_accesses(Schedule *schedule, const Stmt *at, const Buffer *buffer,
                          SharedAccesses *out) {
  if (strncmp(buffer->scope, "shared", 6) != 0)
    return schedule_refuse(schedule, at->pos,
                           "'%s' is in scope '%s'; memory with banks is in scope 'shared'",
                           buffer->name, buffer->scope);
  shared_accesses(schedule->context, schedule->func, buffer, out);
  if (!out->count)
    return schedule_refuse(schedule, at->pos,
                           "no loop over threads accesses '%s'; bind the loops before",
                           buffer->name);
  for (int i = 0; i < out->count; i++)
    if (out->items[i].why)
      return schedule_refuse(schedule, out->items[i].pos,
                             "the lanes of an access of '%s' are not known: %s", buffer->name,
                             out->items[i].why);
  return true;
}

// ---- The map ----------------------------------------------------------------------------------

// The axis that has all of the bits `low` to `low` + `count` - 1 of the row-major offset, and the
// place of its lowest bit; -1 where there is none.
static int axis_of_bits(const Layout *layout, int low, int count, int *first) {
  int64_t begin = 1;
  for (int i = layout->rank - 1; i >= 0; i--) {
    int64_t extent = layout->shape[i]->value;
    *first = log2_of(begin);
    if (i == 0) return low >= *first ? 0 : -1;
    if (log2_of(extent) < 0) return -1;
    if (low >= *first && low + count <= *first + log2_of(extent)) return i;
    begin *= extent;
  }
  return -1;
}

// i, j -> i, j ^ i: Swizzle<b,m,s> as a map that keeps the shape of the buffer, where the bits that
// it changes are of one axis, and those that it reads of another one. NULL where they are not.
static const IndexMap *axis_swizzle(Context *context, const Buffer *buffer, const Layout *layout,
                                    const LayoutSwizzle *swizzle) {
  const LayoutExpr *outputs[MOST_AXES];
  int to_first, from_first, size = swizzle->b;
  if (!swizzle->is_named || swizzle->s <= 0 || layout->rank > MOST_AXES) return NULL;
  int to = axis_of_bits(layout, swizzle->m, size, &to_first);
  int from = axis_of_bits(layout, swizzle->m + swizzle->s, size, &from_first);
  if (to < 0 || from < 0 || to == from) return NULL;
  for (int i = 0; i < layout->rank; i++) outputs[i] = layout_axis(context, i);
  const LayoutExpr *bits = layout_expr(
      context, LAYOUT_DIV, outputs[from],
      layout_const(context, (int64_t)1 << (swizzle->m + swizzle->s - from_first)), NULL);
  bits = layout_expr(context, LAYOUT_MOD, bits, layout_const(context, (int64_t)1 << size), NULL);
  bits = layout_expr(context, LAYOUT_MUL, bits,
                     layout_const(context, (int64_t)1 << (swizzle->m - to_first)), NULL);
  int64_t extents[MOST_AXES];
  for (int i = 0; i < layout->rank; i++) extents[i] = layout->shape[i]->value;
  outputs[to] = layout_expr(context, LAYOUT_XOR, outputs[to],
                            layout_expr_simplify(context, bits, extents, layout->rank), NULL);
  return index_map_new(context, layout->rank, NULL, layout->rank, outputs, NULL, buffer->separators,
                       buffer->separator_count);
}

bool step_swizzle_banks(Schedule *schedule, StepCall *call) {
  Context *context = schedule->context;
  Path path;
  Buffer *buffer;
  SharedAccesses all = {0};
  LayoutAccess *accesses;
  LayoutSwizzle best = {0};
  StepValue none = {VALUE_NONE};
  if (!schedule_find_buffer(schedule, call, &path, &buffer)) return false;
  const Stmt *at = path_end(&path);
  if (!find_accesses(schedule, at, buffer, &all)) return false;
  const Layout *layout = all.items[0].layout;
  int count = different_accesses(context, &all, &accesses);
  LayoutAnswer answer =
      layout_best_swizzle(context, layout, shared_banks(buffer), accesses, count, &best);
  if (!best.map)
    return schedule_refuse(schedule, at->pos,
                           "no swizzle of '%s' was found: %s\nwhere it is a tile of a larger "
                           "buffer, schedule what PlanAndUpdateBufferAllocationLocation and then "
                           "CompactBufferAllocation make of the program",
                           buffer->name,
                           answer.reason ? answer.reason : "its accesses are too many");
  if (best.is_named && !best.b) return true; // the accesses wait least as it is
  const IndexMap *map = axis_swizzle(context, buffer, layout, &best);
  if (!map && buffer->separator_count)
    return schedule_refuse(schedule, at->pos,
                           "the best swizzle of '%s' makes one axis of all, and it has axis "
                           "separators",
                           buffer->name);
  return schedule_relayout(schedule, call, at, buffer, map ? map : best.layout->map, &none);
}
