// SPDX-License-Identifier: Apache-2.0
// Predicts the cycles of moving elements from one order in memory to another, as kernels do it that
// run along the memory they write. Where neighbours in the order that is written are apart in the
// one that is read, each element is loaded by itself, from the level of memory that still holds its
// line since the last element of this line was read. Lines at strides of large powers of two share
// few sets of a cache, so that fewer of them stay in it.
#include "autosched/autosched.h"
#include "base/base.h"
#include "plan/internal.h"

enum { L2_WAYS = 16 }; // of all processors known

double planner_move_cost(const Planner *p, double read, double written) {
  double moved = read + written;
  return planner_read_cost(p, read, 0, moved) + planner_write_cost(p, written, moved);
}

// How many elements a vector has; 1 on a machine without vectors that hold one.
static int64_t vector_lanes(const Planner *p, int64_t element) {
  return MAX_OF(p->machine->vector_bytes / element, 1);
}

// The distance of neighbours along the digit's axis, from `cut` on, in elements of a dense walk; 0:
// the walk has no such digit.
static int64_t stride_in(const LayoutWalk *walk, int axis, int64_t cut) {
  int64_t pitch = 1;
  for (int i = walk->count - 1; i >= 0; i--) {
    const WalkDigit *g = &walk->digits[i];
    if (g->axis == axis && g->cut <= cut && cut < g->cut * g->extent) return pitch * (cut / g->cut);
    pitch *= g->extent;
  }
  return 0;
}

typedef struct LinesRead {
  double count;   // that are read before the first of them is read again
  int64_t stride; // the largest that divides the distances between them, in bytes
} LinesRead;

static LinesRead lines_read(const Planner *p, const LayoutWalk *from, const LayoutWalk *to,
                            int64_t element) {
  LinesRead lines = {1, 0};
  for (int i = to->count - 1; i >= 0; i--) {
    const WalkDigit *g = &to->digits[i];
    int64_t stride = stride_in(from, g->axis, g->cut) * element;
    if (g->extent == 1) continue;
    if (stride < p->machine->line_bytes) break;
    lines.count *= (double)g->extent;
    lines.stride = gcd_of(lines.stride, stride);
  }
  return lines;
}

// Do the lines stay in a cache of so many bytes and ways?
static bool lines_stay(const Planner *p, const LinesRead *lines, int64_t bytes, int64_t ways) {
  int64_t line = p->machine->line_bytes, sets = MAX_OF(bytes / ways / line, 1);
  int64_t step = lines->stride % line ? 1 : MAX_OF(lines->stride / line, 1);
  return lines->count <= (double)(sets / gcd_of(sets, step) * ways);
}

static double cycles_apart(const Planner *p, const LinesRead *lines) {
  const CostModel *costs = cost_model_of(p->machine);
  const HostMachine *m = p->machine;
  if (lines_stay(p, lines, m->l1_bytes, MAX_OF(m->l1_ways, 1))) return costs->apart_cycles[0];
  if (lines_stay(p, lines, m->l2_bytes, L2_WAYS)) return costs->apart_cycles[1];
  bool collide = lines->stride && lines->stride % (m->l2_bytes / L2_WAYS) == 0;
  return costs->apart_cycles[collide ? 3 : 2];
}

// The elements along an axis, with padding.
static double axis_elements(const LayoutWalk *walk, int axis) {
  double elements = 1;
  for (int i = 0; i < walk->count; i++)
    if (walk->digits[i].axis == axis) elements *= (double)walk->digits[i].extent;
  return elements;
}

// The cycles for moving vectors along rows that are contiguous on both sides. Vectors that end in
// padding are masked.
static double cycles_by_rows(const Planner *p, const LayoutWalk *from, const LayoutWalk *to,
                             double elements, int64_t element) {
  const WalkDigit *row = walk_row(to);
  const CostModel *costs = cost_model_of(p->machine);
  int64_t extent = row->extent;
  for (int i = from->count - 1; i >= 0; i--)
    if (from->digits[i].axis == row->axis && from->digits[i].cut <= row->cut)
      extent = MIN_OF(extent, from->digits[i].extent);
  double steps = nest_vector_steps(extent, vector_lanes(p, element));
  bool masked = axis_elements(to, row->axis) > axis_elements(from, row->axis);
  return elements / (double)extent * steps *
         (1 / costs->row_moves_a_cycle + (masked ? costs->masked_cycles : 0));
}

// Tiles between rows of `along` elements that are written and rows of `across` that are read. The
// loads or stores of rows that follow one another are merged.
typedef struct CopyTiles {
  int64_t along, across, lanes;
  bool merged_loads, merged_stores;
} CopyTiles;

// The cycles for moving elements in tiles that are transposed in registers
// (autosched/transpose_strategy.c); PLAN_NEVER where there are no such tiles. Each vector that is
// loaded takes a shuffle for each power of two in the rows of a tile.
static double tiles_cost(const Planner *p, const CopyTiles *t, double elements) {
  const CostModel *costs = cost_model_of(p->machine);
  int64_t width = MIN_OF(t->along, t->lanes), height = MIN_OF(t->across, t->lanes),
          shorter = MIN_OF(width, height);
  if (shorter < TRANSPOSE_LEAST_ROWS) return PLAN_NEVER;
  double shuffles = 0,
         tiles = (double)ceil_div(t->along, width) * (double)ceil_div(t->across, height) *
                 elements / ((double)t->along * (double)t->across),
         loads = t->merged_loads ? (double)ceil_div(width * height, t->lanes)
                                 : (double)width * nest_vector_steps(height, t->lanes),
         stores = t->merged_stores ? (double)ceil_div(width * height, t->lanes)
                                   : (double)height * nest_vector_steps(width, t->lanes);
  for (int64_t size = 1; size < shorter; size *= 2) shuffles += (double)shorter;
  return tiles *
         (MAX_OF(shuffles * costs->copy_shuffle_cycles, (loads + stores) / costs->loads_a_cycle) +
          costs->copy_start_cycles);
}

// How many elements along the rows of `from` a tile has: `to` has a loop along them, which is cut
// in pieces that are contiguous in `from`. 0: there is none.
static int64_t tile_rows(const WalkDigit *across, const LayoutWalk *to, int64_t lanes) {
  for (int i = 0; i + 1 < to->count; i++) {
    const WalkDigit *g = &to->digits[i];
    if (g->axis != across->axis || g->cut != across->cut) continue;
    int64_t rows = MIN_OF(g->extent, across->extent);
    if (rows == g->extent) return MIN_OF(rows, lanes);
    while (rows % lanes && lanes >= TRANSPOSE_LEAST_PIECE) lanes /= 2;
    return lanes >= TRANSPOSE_LEAST_PIECE ? lanes : 0;
  }
  return 0;
}

// Do the rows along a digit of `walk` follow one another along a digit of the other tensor's rows?
static bool rows_follow(const LayoutWalk *walk, const WalkDigit *row, const WalkDigit *other) {
  const WalkDigit *before = row == walk->digits ? NULL : row - 1;
  return before && before->axis == other->axis && before->cut == other->cut;
}

// The cycles for moving tiles of vectors along the rows of both walks. Tiles at the end of an axis
// that rows of `from` have with padding are partial ones.
static double cycles_in_tiles(const Planner *p, const LayoutWalk *from, const LayoutWalk *to,
                              double elements, int64_t element) {
  const WalkDigit *across = walk_row(from), *along = walk_row(to);
  int64_t lanes = MIN_OF(vector_lanes(p, element), TRANSPOSE_MOST_ROWS);
  if (!across || !tile_rows(across, to, lanes)) return PLAN_NEVER;
  double padded = axis_elements(from, across->axis) / axis_elements(to, across->axis);
  CopyTiles tiles = {along->extent, across->extent, lanes};
  bool interleaved =
      along->extent == TRANSPOSE_INTERLEAVED && tile_rows(across, to, lanes) % lanes == 0;
  tiles.merged_stores =
      rows_follow(to, along, across) && (interleaved || lanes % along->extent == 0);
  tiles.merged_loads = rows_follow(from, across, along) && along->extent % lanes == 0 &&
                       across->extent == TRANSPOSE_INTERLEAVED;
  return tiles_cost(p, &tiles, elements * MAX_OF(padded, 1));
}

static double elements_of(const LayoutWalk *walk) {
  double elements = 1;
  for (int i = 0; i < walk->count; i++) elements *= (double)walk->digits[i].extent;
  return elements;
}

// Does a digit of `from` begin within a vector of the row? The elements of the vector are then not
// equally far apart, so that the index of each is divided.
static bool cuts_vectors(const LayoutWalk *from, const WalkDigit *row, int64_t lanes) {
  int64_t vector = row->cut * MIN_OF(lanes, row->extent), end = row->cut * row->extent;
  for (int i = 0; i < from->count; i++) {
    const WalkDigit *g = &from->digits[i];
    bool begins = g->axis == row->axis && g->cut > row->cut && g->cut < end;
    if (begins && g->cut % vector) return true;
  }
  return false;
}

// Sets *out to the walk `to` with its row cut where digits of `from` begin, along which the kernel
// then has loops (autosched/transpose_strategy.c). False where the parts would not be whole.
static bool cut_row(const LayoutWalk *from, const LayoutWalk *to, LayoutWalk *out) {
  const WalkDigit *row = walk_row(to);
  int64_t end = row->cut * row->extent;
  *out = (LayoutWalk){0};
  out->count = (int)(row - to->digits);
  memcpy(out->digits, to->digits, sizeof *to->digits * (size_t)out->count);
  for (int64_t cut, top = end; top > row->cut; top = cut) {
    cut = row->cut;
    for (int i = 0; i < from->count; i++) {
      const WalkDigit *g = &from->digits[i];
      if (g->axis == row->axis && g->cut < top) cut = MAX_OF(cut, g->cut);
    }
    if (out->count == WALK_MAX_DIGITS || top % cut) return false;
    out->digits[out->count++] = (WalkDigit){row->axis, cut, top / cut};
  }
  return true;
}

// The same for tiles whose rows are those of `to`, or parts of them.
static double cycles_in_parts(const Planner *p, const LayoutWalk *from, const LayoutWalk *to,
                              double elements, int64_t element) {
  LayoutWalk cut;
  double cycles = cycles_in_tiles(p, from, to, elements, element);
  if (cycles < PLAN_NEVER || !cut_row(from, to, &cut)) return cycles;
  return cycles_in_tiles(p, from, &cut, elements, element);
}

double planner_apart_cost(const Planner *p, const LayoutWalk *from, const LayoutWalk *to,
                          double elements, int64_t element, bool tiles) {
  const CostModel *costs = cost_model_of(p->machine);
  if (!from || !to) return elements * costs->divided_cycles;
  elements = MIN_OF(elements, elements_of(to));
  const WalkDigit *row = walk_row(to);
  if (!row) return 0;
  if (stride_in(from, row->axis, row->cut) == 1)
    return cycles_by_rows(p, from, to, elements, element);
  double rows = elements / (double)row->extent * costs->index_cycles;
  double in_tiles = tiles ? cycles_in_parts(p, from, to, elements, element) : PLAN_NEVER;
  if (cuts_vectors(from, row, vector_lanes(p, element)))
    return in_tiles < PLAN_NEVER ? in_tiles : elements * costs->divided_cycles + rows;
  LinesRead lines = lines_read(p, from, to, element);
  double each = cycles_apart(p, &lines);
  if (!tiles) return elements * MAX_OF(each, costs->lane_loads / costs->loads_a_cycle) + rows;
  return MIN_OF(elements * each + rows, in_tiles);
}
