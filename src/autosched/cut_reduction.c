// SPDX-License-Identifier: Apache-2.0
// The schedule of a long reduction in register tiles whose rows do not stay in the second cache
// while the panels of the vector axis pass: the reduction is computed in parts, each for all tiles,
// whose rows do stay. The sums are in memory between the parts.
//
//   for i, j, k: sum[i, j] += x[i, k] * w[k, j]; y[i, j] = f(sum[i, j])
// =>
//   for k_0:
//     for panels of j, tiles of i:
//       for k_1, the tile: part[i, j] += x[i, k_0, k_1] * w[k_0, k_1, j]
//       for the tile: sum[i, j] += part[i, j]
//   for i, j: y[i, j] = f(sum[i, j])
#include "autosched/internal.h"

// Makes the block of the partial results the anchor, and the block of the sums the tail, with the
// loop over the parts outermost.
static bool split_reduction(AutoSched *s, int64_t parts) {
  LoopRefs whole = {0}, loops = {0};
  LoopRef pair[2], order[NEST_MAX_AXES];
  TRY(schedule_get_loops(s->sch, s->anchor, &whole));
  TRY(schedule_split(s->sch, array_last(&whole), (int64_t[]){parts, 0}, 2, pair));
  s->tail = s->anchor;
  TRY(schedule_rfactor(s->sch, pair[0], 0, &s->anchor));
  TRY(schedule_set_scope(s->sch, s->anchor, 0, "local"));
  TRY(schedule_get_loops(s->sch, s->tail, &loops));
  if (loops.count > NEST_MAX_AXES) return false;
  order[0] = array_last(&loops);
  for (int i = 0; i + 1 < loops.count; i++) order[i + 1] = loops.items[i];
  TRY(schedule_reorder(s->sch, order, loops.count));
  s->parts = parts;
  return true;
}

// Gives each thread panels of its own in all parts, so that no thread waits for another one.
static bool share_panels(AutoSched *s, LoopRef parts, LoopRef *panels) {
  int64_t threads = s->machine->threads;
  LoopRef pair[2];
  if (threads <= 1) return true;
  if (autosched_loop_extent(s, *panels) % threads) return false;
  TRY(schedule_split(s->sch, *panels, (int64_t[]){threads, 0}, 2, pair));
  *panels = pair[1];
  return schedule_reorder(s->sch, (LoopRef[]){pair[0], parts}, 2) &&
         schedule_parallel(s->sch, pair[0]);
}

static bool clear_sums(AutoSched *s, LoopRef parts) {
  LoopRefs loops = {0};
  BlockRef init;
  TRY(schedule_decompose_reduction(s->sch, s->tail, parts, &init));
  TRY(schedule_get_loops(s->sch, init, &loops));
  return s->choice->tile.lanes == 1 || schedule_vectorize(s->sch, array_last(&loops));
}

static bool compute_parts(AutoSched *s, int64_t parts) {
  BlockRef epilogue = s->tail == s->anchor ? NULL : s->tail;
  TileLoops tiles;
  LoopRefs loops = {0};
  TRY(split_reduction(s, parts));
  TRY(autosched_tiled_layouts(s) && autosched_tile_loops(s, &tiles));
  TRY(schedule_get_loops(s->sch, s->tail, &loops));
  LoopRef panels = tiles.outer[tiles.panel];
  TRY(share_panels(s, loops.items[0], &panels));
  autosched_prefetch_panels(s, &tiles, panels);
  TRY(clear_sums(s, loops.items[0]));
  return !epilogue || autosched_in_vectors(s, epilogue);
}

bool autosched_cut_reduction(AutoSched *s) {
  int64_t parts = autosched_reduction_parts(s);
  if (parts == 1) return false;
  AutoSched whole = *s;
  KernelChoice choice = *s->choice;
  choice.schedule = schedule_copy(s->sch);
  if (compute_parts(s, parts)) return true;
  *s = whole;
  *s->choice = choice;
  s->sch = choice.schedule;
  return false;
}
