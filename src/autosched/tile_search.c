// SPDX-License-Identifier: Apache-2.0
// Chooses a register tile. The cycles of one innermost iteration are the maximum of the cycles that
// multiply-adds, loads, decoding and latency need; every tile size that fits the registers is
// tried, and partial tiles are counted. The structure (few vectors times many rows, one broadcast
// per row) is that of the classic outer product kernels (Goto and van de Geijn, "Anatomy of
// high-performance matrix multiplication").
#include "autosched/autosched.h"

#include <math.h>

typedef struct TileSearch {
  Context *context;
  const HostMachine *machine;
  const CostModel *costs;
  const Nest *nest;
  const NestLayouts *layouts;
  NestStep steps[NEST_MAX_READS];  // along the vector axis
  int64_t strides[NEST_MAX_READS]; // small strides along the vector axis; 0: none
  double taps[NEST_MAX_READS];     // of windows along the vector axis, which read the same lines
  double lines[NEST_MAX_READS];    // of the cache, which a vector of a contiguous read touches
  int64_t panel;                   // consecutive vectors in a read that is stored in panels; 0: any
  int64_t written;                 // consecutive vectors in a block of the output, of which a tile
                                   // writes a whole part, or several whole blocks
  int64_t turned_block;            // rows in a block of the output, when the tile is transposed;
                                   // 0: all rows are contiguous
  int64_t group;                   // values along the vector axis that share what is read; 0: any
  bool depends[NEST_MAX_READS][2]; // whether the read moves with each row axis
  int64_t row_group[2];            // rows along each axis for which a read stays; 0: any
  bool broadcasts;                 // some read has one value for all lanes, but not for all rows
  bool windows;                    // run along the vectors of the current tile
  bool tests_rows[2];              // borders along the row axis are tested
  // Facts of the nest, which all tiles ask for.
  bool moves[NEST_MAX_READS][NEST_MAX_AXES];     // whether the read moves with each axis
  double repeats[NEST_MAX_READS][NEST_MAX_AXES]; // see nest_repeats
  bool collides[NEST_MAX_READS][NEST_MAX_AXES];  // whether neighbours along it share cache sets
  bool vectors_collide[NEST_MAX_READS];          // whether the vectors of a row share cache sets
  int64_t blocks[NEST_MAX_READS][NEST_MAX_AXES]; // its block of the read's layout; 1: none
  double bytes[NEST_MAX_READS];                  // of each read's tensor
  bool streams[NEST_MAX_READS];                  // constants that come from main memory
  double operations, latency;                    // of a product: vector operations, and of a chain
  double hiding_chains;                          // chains that hide the latency of one another
  double uops_a_cycle;
  double reductions;
  int innermost;              // axis of the reduction
  double far[NEST_MAX_READS]; // the share of the reduction's steps that move the read far
  double far_reads;           // sum over all reads, for the current tile
  double lost_lines; // for each vector of a row, where windows find none in the first cache
  double share;      // of the cycles of whole vectors that the current tile's take
  Tile best;
  double best_cost;
  // The tiles that cost least after it, in the order of their costs.
  Tile *runners_up;
  double runner_up_costs[STRATEGY_RUNNERS_UP];
  int runner_up_count, most_runners_up;
  double dropped_cost; // tiles that cost as much as this are neither best nor runners-up
} TileSearch;

static double loads_of(const TileSearch *s, int read, const Tile *tile, double vectors,
                       const double rows[2]) {
  double loads = 1;
  for (int i = 0; i < 2; i++)
    if (tile->row_axis[i] >= 0 && s->depends[read][i]) loads *= rows[i];
  if (s->steps[read] == NEST_CONTIGUOUS) return loads * vectors * s->lines[read];
  if (s->steps[read] == NEST_REPEATED) return loads * vectors * (1 + s->costs->shuffle_loads);
  if (s->steps[read] == NEST_STRIDED && s->strides[read]) // each load is shuffled
    return loads * vectors * (double)s->strides[read] * s->costs->shuffle_loads;
  if (s->steps[read] == NEST_STRIDED) return loads * vectors * tile->lanes * s->costs->lane_loads;
  return loads;
}

static double extent_of(const Nest *nest, int axis) {
  return axis < 0 ? 1 : (double)nest->axes[axis].extent;
}

// Does some read have one value for all lanes of a tile, and another value for each of its rows?
static bool broadcasts_rows(const TileSearch *s) {
  for (int i = 0; i < s->nest->read_count; i++)
    if (s->steps[i] == NEST_SAME && (s->depends[i][0] || s->depends[i][1])) return true;
  return false;
}

static double iteration_cycles(const TileSearch *s, const Tile *tile, double vectors,
                               const double rows[2]) {
  const CostModel *c = s->costs;
  double products = vectors * rows[0] * rows[1], loads = 0, folded = 0;
  for (int i = 0; i < s->nest->read_count; i++) {
    double count = loads_of(s, i, tile, vectors, rows);
    loads += count;
    if (vectors == 1 && s->steps[i] == NEST_SAME && s->machine->vector_bytes >= WIDE_VECTOR_BYTES)
      folded += count; // a multiply-add broadcasts its operand itself
  }
  double work = products * s->operations;
  double cycles = work / s->machine->fma_units;
  cycles = MAX_OF(cycles, loads / c->loads_a_cycle);
  cycles = MAX_OF(cycles, (work + loads - folded) / s->uops_a_cycle);
  if (vectors == 1 && s->broadcasts) cycles *= c->broadcast_factor;
  if (s->tests_rows[0] && rows[0] > 1 && s->broadcasts) cycles *= c->condition_factor;
  if (s->tests_rows[1] && rows[1] > 1) cycles *= c->condition_factor;
  double chains = MAX_OF(products, s->hiding_chains);
  cycles = MAX_OF(cycles, s->latency) + c->chain_cycles / (chains * chains);
  double far = s->far_reads + s->lost_lines * rows[0] * rows[1];
  return cycles * s->share + c->far_cycles * far;
}

// The stride along an axis in bytes; the stride within a block when the axis is blocked.
static int64_t step_along(Context *context, const Nest *nest, const NestLayouts *layouts, int i,
                          int axis) {
  const NestRead *read = &nest->reads[i];
  int64_t strides[TE_MAX_RANK], step = 0;
  nest_strides(context, read->buffer, layouts->reads[i], strides);
  for (int d = 0; d < read->buffer->rank; d++)
    if (read->linear[d]) step += read->coefficient[d][axis] * strides[d];
  return step * dtype_bytes(read->buffer->type);
}

// The share of the steps along a reduction axis that read what no tile has read before. The windows
// of neighbours overlap, and what they share is found in the first cache where that holds it for
// all windows in a row.
static double new_share(const TileSearch *s, int i, int axis) {
  const NestRead *read = &s->nest->reads[i];
  int moved_by = 0, d = nest_window(s->nest, read, axis, &moved_by);
  int64_t size = 0, taps = s->nest->axes[axis].extent;
  if (d < 0 || !expr_as_int(read->buffer->shape[d], &size) || size <= 0) return 1;
  double row = s->bytes[i] * (double)taps / (double)size;
  for (int a = 0; a < s->nest->spatial_count; a++)
    if (s->moves[i][a] && nest_dimension_of(s->nest, read, a) >= 0)
      row /= MAX_OF(extent_of(s->nest, a) / machine_lanes(s->machine, read->buffer->type), 1);
  if (row > (double)s->machine->l1_bytes) return 1;
  int64_t stride = read->coefficient[d][moved_by], step = read->coefficient[d][axis];
  return MIN_OF(fabs((double)stride / (double)(taps * step)), 1);
}

// The bytes of a read that the loops run over again and again: those of one group, where a spatial
// axis selects the group.
static double bytes_of_group(const TileSearch *s, int i) {
  double bytes = s->bytes[i];
  for (int a = 0; a < s->nest->spatial_count; a++)
    if (s->moves[i][a] && s->repeats[i][a] > 1) bytes /= extent_of(s->nest, a) / s->repeats[i][a];
  return bytes;
}

// The cost of jumps between the blocks of a read that the reduction runs through, in far reads for
// each step, unless there are so few that the prefetcher follows each from tile to tile. Where the
// second cache does not hold the read, they wait for the third one; a read that takes a large share
// of the second cache beside the other operands loses a part of it.
static double block_jumps(const TileSearch *s, int i) {
  const CostModel *c = s->costs;
  double extent = extent_of(s->nest, s->innermost), block = (double)s->blocks[i][s->innermost];
  double share = bytes_of_group(s, i) / (double)s->machine->l2_bytes, lost = 1;
  if (block <= 1 || extent / block <= c->followed_streams) return 0;
  if (share <= c->panel_l2_share) lost = MAX_OF(share - c->jumps_l2_share, 0);
  return lost * c->jump_cycles / c->far_cycles / block;
}

static bool moves_far(const TileSearch *s, int i, int axis) {
  return s->nest->axes[axis].extent > 1 &&
         step_along(s->context, s->nest, s->layouts, i, axis) > s->costs->near_bytes;
}

// The share of the reduction's steps that move the read far, where the innermost axis is one of a
// window. The steps of a window are read together, so that the order of its loops makes no
// difference. 0: no axis of a window moves far, or the innermost one belongs to no window.
static double far_share_of_window(const TileSearch *s, int i) {
  const Nest *nest = s->nest;
  double share = 0;
  int moved_by;
  if (nest_window(nest, &nest->reads[i], s->innermost, &moved_by) < 0) return 0;
  for (int a = nest->spatial_count; a < nest->axis_count; a++) {
    if (nest_window(nest, &nest->reads[i], a, &moved_by) < 0 || !moves_far(s, i, a)) continue;
    double new = new_share(s, i, a);
    share = share ? MIN_OF(share, new) : new;
  }
  return share;
}

// The share of the reduction's steps that move the read far.
static double far_share(const TileSearch *s, int i) {
  int first = s->nest->spatial_count, innermost = s->innermost;
  double share = far_share_of_window(s, i);
  if (share) return share;
  if (moves_far(s, i, innermost)) return new_share(s, i, innermost);
  if (innermost == first || !moves_far(s, i, first)) return 0;
  return new_share(s, i, first) / MAX_OF(extent_of(s->nest, innermost), 1);
}

static void find_far_reads(TileSearch *s) {
  for (int i = 0; i < s->nest->read_count; i++)
    if (s->bytes[i] > (double)s->machine->l1_bytes) s->far[i] = block_jumps(s, i) + far_share(s, i);
}

static double count_far_reads(const TileSearch *s, const Tile *tile) {
  double count = 0;
  for (int i = 0; i < s->nest->read_count; i++) {
    bool packed =
        s->layouts->packed[i] &&
        (s->steps[i] != NEST_SAME || (!tile->flat && (s->depends[i][0] || s->depends[i][1])));
    if (!packed) count += s->far[i] / s->taps[i];
  }
  return count;
}

// The taps of the windows of a read that move with the axis, and in *others those of all others.
static double taps_along(const TileSearch *s, const NestRead *read, int axis, double *others) {
  double taps = 1;
  *others = 1;
  for (int a = s->nest->spatial_count; a < s->nest->axis_count; a++) {
    int moved_by = -1;
    if (nest_window(s->nest, read, a, &moved_by) < 0) continue;
    *(moved_by == axis ? &taps : others) *= extent_of(s->nest, a);
  }
  return taps;
}

// The cache lines that each row of a tile reads again from beyond the first cache in a step of the
// reduction, where windows along the rows do not find them there. Elements along the rows that are
// a multiple of a power of two apart share few cache sets, which the rows of one window outnumber.
static double lines_lost(const TileSearch *s, const NestRead *read, int i, int axis) {
  const HostMachine *machine = s->machine;
  double line = (double)machine->line_bytes, others, taps = taps_along(s, read, axis, &others);
  int64_t step = axis < 0 ? 0 : step_along(s->context, s->nest, s->layouts, i, axis);
  if (s->layouts->packed[i] || s->steps[i] != NEST_CONTIGUOUS || fabs((double)step) < line)
    return 0;
  double sets = (double)s->costs->set_bytes / line;
  int64_t shared = gcd_of(step, s->costs->set_bytes);
  if (shared > machine->line_bytes) sets = (double)(s->costs->set_bytes / shared);
  double needed = others * extent_of(s->nest, axis);
  return taps > 1 && others > 1 && needed > sets * machine->l1_ways ? 1 / taps : 0;
}

typedef struct TileCut { // an axis cut into tiles: `count` whole ones and a last one of `rest`
  double size, count, rest;
} TileCut;

static TileCut cut_of(double extent, double size) {
  size = MIN_OF(size, extent);
  double count = (double)(int64_t)(extent / size);
  return (TileCut){size, count, extent - count * size};
}

// The dimension of the output that the axis is the index of; -1: none.
static int output_dimension(const Nest *nest, int axis) {
  for (int d = 0; d < nest->output->rank; d++)
    if (nest->output_axis[d] == axis) return d;
  return -1;
}

// How many elements apart neighbours along dimension `d` of a tensor are; 0: it is not constant.
// Without `whole`, an extent was not known, and the distance is a multiple of this.
static int64_t stride_of(const TileSearch *s, const Buffer *buffer, const Layout *layout, int d,
                         bool *whole) {
  int64_t strides[TE_MAX_RANK], stride = 1, extent;
  bool has[TE_MAX_RANK];
  *whole = true;
  if (layout) {
    layout_strides(s->context, layout, strides, has);
    return has[d] ? strides[d] : 0;
  }
  for (int e = d + 1; e < buffer->rank; e++) {
    bool known = expr_as_int(buffer->shape[e], &extent);
    stride *= known ? extent : 1;
    *whole &= known;
  }
  return stride;
}

// That of the output; 0: it is not known.
static int64_t output_stride(const TileSearch *s, int d) {
  bool whole;
  int64_t stride = stride_of(s, s->nest->output, s->layouts->output, d, &whole);
  return whole ? stride : 0;
}

// The cycles that each vector of a tile which is transposed waits for lines of the output. A tile
// writes a piece of as many lines as it has values along the vector axis, and the next tile the
// next pieces of the same lines; the first cache does not hold them when they share few sets.
static double line_waits(const TileSearch *s, const Tile *tile) {
  int d = output_dimension(s->nest, tile->vector_axis);
  int64_t pitch = MAX_OF(output_stride(s, d), 1) * dtype_bytes(s->nest->output->type);
  int64_t sets = s->costs->set_bytes / s->machine->line_bytes;
  if (pitch > s->machine->line_bytes)
    sets = s->costs->set_bytes / gcd_of(pitch, s->costs->set_bytes);
  if ((int64_t)tile->vectors * tile->lanes <= sets * s->machine->l1_ways) return 0;
  double bytes = (double)tile->lanes * dtype_bytes(s->nest->output->type);
  return s->costs->line_cycles * bytes / (double)s->machine->line_bytes;
}

// The cycles to clear and store a vector of the tile. Transposing takes a shuffle of each vector
// for each power of two in the rows, and more stores where a tile has fewer rows than lanes. Half
// of tile_store_cycles is for clearing, once.
static double store_cycles(const TileSearch *s, const Tile *tile) {
  double stores = 1, shuffles = 0, waits = tile->turned ? line_waits(s, tile) : 0;
  for (int64_t rows = 1; tile->turned && rows < tile->rows[1]; rows *= 2) shuffles++;
  if (tile->turned) stores = (double)tile->lanes / (double)tile->rows[1];
  return s->costs->tile_store_cycles * (1 + stores) / 2 + s->costs->tile_shuffle_cycles * shuffles +
         waits;
}

// The cycles of all tiles, whole and partial; a part of them, when it alone is more than a tile
// that is dropped costs.
static double total_cycles(const TileSearch *s, const Tile *tile, const TileCut *v,
                           const TileCut rows[2], double others) {
  double total = 0, store = store_cycles(s, tile) * s->share;
  for (int mask = 0; mask < 8 && total < s->dropped_cost; mask++) {
    const TileCut *cuts[3] = {v, &rows[0], &rows[1]};
    double size[3], count = others;
    for (int i = 0; i < 3; i++) {
      bool partial = mask >> i & 1;
      size[i] = partial ? cuts[i]->rest : cuts[i]->size;
      count *= partial ? cuts[i]->rest > 0 : cuts[i]->count;
    }
    if (count == 0) continue;
    double each = iteration_cycles(s, tile, size[0], &size[1]) * s->reductions;
    total += count * (each + store * size[0] * size[1] * size[2] + s->costs->tile_start_cycles);
  }
  return total;
}

// Does the read move within the tile? An axis with one row in the tile does not move it.
static bool moves_in_tile(const TileSearch *s, int read, const Tile *tile) {
  return (tile->rows[0] > 1 && s->depends[read][0]) || (tile->rows[1] > 1 && s->depends[read][1]);
}

static bool is_vector(NestStep step) {
  return step == NEST_CONTIGUOUS || step == NEST_REPEATED;
}

// The registers that a read keeps while rows of the tile run that do not move it: its vectors, or
// the values for all lanes, which LLVM loads once, of the inner rows.
static int kept_vectors(const TileSearch *s, int read, const Tile *tile) {
  bool outer = tile->rows[0] > 1 && s->depends[read][0];
  bool inner = tile->rows[1] > 1 && s->depends[read][1];
  if (s->steps[read] == NEST_SAME)
    return inner && !outer && tile->rows[0] > 1 ? (int)tile->rows[1] : 0;
  if (!is_vector(s->steps[read]) && !s->strides[read]) return 0;
  int numbers = s->strides[read] > 0; // of a shuffle, which are a vector
  if (!inner) return outer && tile->rows[1] == 1 ? 0 : tile->vectors + numbers;
  return outer || tile->rows[0] == 1 ? 0 : (int)(tile->vectors * tile->rows[1]) + numbers;
}

// The registers that a read keeps where rows run inside of the vectors: its values for those rows,
// or all its vectors while the other rows run that do not move it.
static int kept_inside(const TileSearch *s, int read, const Tile *tile) {
  int r = tile->order == TILE_INNER_INSIDE, other = !r;
  bool by_rows = tile->rows[r] > 1 && s->depends[read][r];
  bool by_other = tile->rows[other] > 1 && s->depends[read][other];
  bool again = tile->rows[other] > 1 && !by_other; // for each of the other rows
  int values = by_rows ? (int)tile->rows[r] : 1, numbers = s->strides[read] > 0;
  if (s->steps[read] == NEST_SAME) return by_rows && (tile->vectors > 1 || again) ? values : 0;
  return (again ? values * tile->vectors : 0) + numbers;
}

static int registers_needed(const TileSearch *s, const Tile *tile) {
  int64_t accumulators = tile->vectors * tile->rows[0] * tile->rows[1];
  bool rows_inside = tile->order != TILE_VECTORS_INSIDE;
  int kept = 0;
  for (int i = 0; i < s->nest->read_count; i++)
    kept += rows_inside ? kept_inside(s, i, tile) : kept_vectors(s, i, tile);
  int products = s->nest->work.pairs > 0; // before they are added
  return (int)(accumulators + MAX_OF(kept, 1) + 1 + products);
}

// Sets the first order in which the tile fits the registers; false when there is none. Rows may run
// inside of vectors that windows run along, since loads that cross lines then are made once.
static bool fits_registers(const TileSearch *s, Tile *tile) {
  bool inside = s->windows && !tile->turned && !tile->flat;
  tile->order = TILE_VECTORS_INSIDE;
  bool fits = registers_needed(s, tile) <= s->machine->vector_registers;
  for (int r = 0; r < 2 && inside && !fits; r++) {
    if (tile->rows[r] == 1) continue;
    tile->order = r ? TILE_INNER_INSIDE : TILE_OUTER_INSIDE;
    fits = registers_needed(s, tile) <= s->machine->vector_registers;
  }
  return fits;
}

// How often a panel of read `i`, which moves with the vector axis, is read. It is read once if it
// stays in the first cache while the loops run over the tiles of rows that do not move it.
static double panel_visits(const TileSearch *s, const Tile *tile, int i, double panels) {
  const Nest *nest = s->nest;
  double panel = s->bytes[i] / panels, visits = 1;
  for (int a = 0; a < nest->spatial_count; a++) {
    double repeats = s->repeats[i][a], rows = 1;
    if (a == tile->vector_axis) continue;
    for (int r = 0; r < 2; r++)
      if (a == tile->row_axis[r]) rows = (double)tile->rows[r];
    if (repeats > 1 || a != tile->row_axis[1]) panel /= MAX_OF(extent_of(nest, a) / repeats, 1);
    if (repeats > 1) visits *= MAX_OF(1.0, repeats / rows);
  }
  return panel > (double)s->machine->l1_bytes * s->costs->panel_l1_share ? visits : 1;
}

// How often a cache line of a read is in the windows of a panel: the windows of neighbours overlap.
static double lines_shared(const TileSearch *s, const Tile *tile, int i) {
  double line = (double)s->machine->line_bytes;
  double width =
      (double)(tile->vectors * tile->lanes * dtype_bytes(s->nest->reads[i].buffer->type));
  return s->lines[i] > 1 ? 1 + line / MAX_OF(width, line) : 1;
}

// The bytes that come from beyond the first cache. A panel of an operand that moves with the vector
// axis is read again for each tile of rows unless it stays in the cache; an operand that moves with
// the rows is read once for each panel. Constants that the second cache does not hold come from
// main memory each time, because no cache holds those of a whole model.
static void find_traffic(const TileSearch *s, Tile *tile) {
  const Nest *nest = s->nest;
  double panels = extent_of(nest, tile->vector_axis) / (tile->vectors * tile->lanes);
  panels = MAX_OF(1.0, panels);
  tile->bytes = tile->again = 0;
  for (int i = 0; i < nest->read_count; i++) {
    double size = s->bytes[i];
    bool by_vector = s->steps[i] != NEST_SAME;
    bool by_rows = s->depends[i][0] || s->depends[i][1];
    double again = 1;
    if (by_vector) again = panel_visits(s, tile, i, panels) * lines_shared(s, tile, i);
    if (by_rows && !by_vector)
      again = size > (double)s->machine->l1_bytes * s->costs->panel_l1_share ? panels : 1;
    tile->bytes += size * again * (s->streams[i] ? s->costs->streamed_bytes : 1);
    // Only panels that stay while the rows of a tile run are prefetched (autosched/panels.c).
    if (s->streams[i] && by_vector && moves_in_tile(s, i, tile)) tile->again += size;
    if (s->layouts->packed[i] && !by_vector && size > (double)s->machine->l2_bytes)
      tile->again += size * (again - 1);
  }
}

double tile_cost(const HostMachine *machine, const Tile *tile) {
  return overlapped_cycles(machine, tile->cycles,
                           memory_cycles(machine, tile->bytes, MEMORY_L2, MEMORY_FEED)) +
         memory_cycles(machine, tile->again, MEMORY_MAIN, MEMORY_READ);
}

// Do neighbours along an axis map to the same sets of the first cache?
static bool shares_sets(const TileSearch *s, int i, int axis) {
  const NestRead *read = &s->nest->reads[i];
  for (int d = 0; d < read->buffer->rank; d++) {
    if (!read->coefficient[d][axis]) continue;
    bool whole;
    int64_t stride = stride_of(s, read->buffer, s->layouts->reads[i], d, &whole);
    int64_t step = stride * read->coefficient[d][axis] * dtype_bytes(read->buffer->type);
    if (stride && step % s->costs->set_bytes == 0) return true;
  }
  return false;
}

// Do consecutive vectors of `lanes` elements along an axis, which are blocks of the read's layout,
// map to the same sets of the first cache?
static bool vectors_share_sets(const TileSearch *s, int i, int axis, int lanes) {
  const NestRead *read = &s->nest->reads[i];
  const Layout *layout = s->layouts->reads[i];
  int d = nest_dimension_of(s->nest, read, axis);
  int64_t zero[TE_MAX_RANK] = {0}, next[TE_MAX_RANK] = {0}, from, to;
  if (d < 0 || !layout || s->layouts->packed[i]) return false;
  next[d] = lanes;
  return layout_offset(layout, zero, &from) && layout_offset(layout, next, &to) &&
         (to - from) * dtype_bytes(read->buffer->type) % s->costs->set_bytes == 0;
}

// Do the rows and vectors that a tile reads map to the same sets of the first cache, and outnumber
// its ways?
static bool rows_collide(const TileSearch *s, const Tile *tile) {
  for (int i = 0; i < s->nest->read_count; i++) {
    int64_t rows = s->vectors_collide[i] ? tile->vectors : 1;
    for (int r = 0; r < 2; r++)
      if (tile->row_axis[r] >= 0 && tile->rows[r] > 1 && s->collides[i][tile->row_axis[r]])
        rows *= tile->rows[r];
    if (rows > s->machine->l1_ways - 1) return true;
  }
  return false;
}

// Do the rows of a tile start within the blocks of an operand's layout? Each row then needs an
// address of its own.
static bool rows_cut_blocks(const TileSearch *s, const Tile *tile) {
  for (int i = 0; i < s->nest->read_count; i++)
    for (int r = 0; r < 2; r++) {
      if (tile->row_axis[r] < 0) continue;
      int64_t block = s->blocks[i][tile->row_axis[r]], rows = tile->rows[r];
      if (block > 1 && block % rows && rows % block) return true;
    }
  return false;
}

// The factor by which a tile with a large remainder of rows is slower: only whole tiles can be cut
// into blocks between panels (autosched/panels.c).
static double lost_to_rest(const CostModel *costs, const Tile *tile, const TileCut *rows) {
  bool alone = !tile->flat && tile->rows[0] == 1;
  return alone && rows->rest > 0 && rows->count >= costs->many_tiles ? costs->rest_factor : 1;
}

// Sets the tile's cycles and bytes, and returns its inner rows.
static TileCut predict(const TileSearch *s, Tile *tile) {
  const Nest *nest = s->nest;
  TileCut v =
      cut_of((double)ceil_div(nest->axes[tile->vector_axis].extent, tile->lanes), tile->vectors);
  double inner = extent_of(nest, tile->row_axis[1]), outer = extent_of(nest, tile->row_axis[0]);
  if (tile->flat) {
    inner *= outer;
    outer = 1;
  }
  TileCut rows[2] = {cut_of(outer, (double)tile->rows[0]), cut_of(inner, (double)tile->rows[1])};
  double others = 1;
  for (int a = 0; a < nest->spatial_count; a++)
    if (a != tile->vector_axis && a != tile->row_axis[0] && a != tile->row_axis[1])
      others *= (double)nest->axes[a].extent;
  tile->cycles = total_cycles(s, tile, &v, rows, others);
  if (tile->cycles < s->dropped_cost) find_traffic(s, tile);
  return rows[1];
}

static void add_runner_up(TileSearch *s, const Tile *tile, double cost) {
  int at = s->runner_up_count;
  while (at > 0 && s->runner_up_costs[at - 1] > cost) at--;
  if (at == s->most_runners_up) return;
  if (s->runner_up_count < s->most_runners_up) s->runner_up_count++;
  for (int i = s->runner_up_count - 1; i > at; i--) {
    s->runners_up[i] = s->runners_up[i - 1];
    s->runner_up_costs[i] = s->runner_up_costs[i - 1];
  }
  s->runners_up[at] = *tile;
  s->runner_up_costs[at] = cost;
  if (s->runner_up_count == s->most_runners_up)
    s->dropped_cost = s->runner_up_costs[s->runner_up_count - 1];
}

static void try_tile(TileSearch *s, Tile tile) {
  if (!fits_registers(s, &tile)) return;
  if (rows_collide(s, &tile) || rows_cut_blocks(s, &tile)) return;
  TileCut rows = predict(s, &tile);
  if (tile.cycles >= s->dropped_cost) return;
  double cost = tile_cost(s->machine, &tile) * lost_to_rest(s->costs, &tile, &rows);
  if (s->best_cost >= 0 && cost >= s->best_cost * s->costs->tie_tile) {
    add_runner_up(s, &tile, cost);
    return;
  }
  if (s->best_cost >= 0) add_runner_up(s, &s->best, s->best_cost);
  s->best = tile;
  s->best_cost = cost;
  if (!s->most_runners_up) s->dropped_cost = cost * s->costs->tie_tile;
}

// Are both dimensions whole and consecutive in the layout, `outer` first?
static bool are_consecutive(const Layout *layout, int outer, int inner) {
  if (!layout) return inner == outer + 1;
  const LayoutExpr *const *outputs = layout->map->outputs;
  for (int i = 0; i + 1 < layout->map->output_count; i++)
    if (outputs[i]->op == LAYOUT_AXIS && outputs[i]->value == outer)
      return outputs[i + 1]->op == LAYOUT_AXIS && outputs[i + 1]->value == inner;
  return false;
}

// Does every access that moves with the two row axes use them as two whole, consecutive dimensions,
// so that the two loops may run as one?
static bool rows_fuse(const TileSearch *s, int outer, int inner) {
  const Nest *nest = s->nest;
  if (outer < 0 || inner < 0 || nest->conditional) return false;
  for (int i = 0; i < nest->read_count; i++) {
    const NestRead *read = &nest->reads[i];
    if (!nest_depends(read, outer) && !nest_depends(read, inner)) continue;
    int a = nest_dimension_of(nest, read, outer), b = nest_dimension_of(nest, read, inner);
    if (a < 0 || b != a + 1 || !expr_is_int(read->buffer->shape[b], nest->axes[inner].extent) ||
        !expr_is_int(read->buffer->shape[a], nest->axes[outer].extent))
      return false;
  }
  for (int d = 0; d + 1 < nest->output->rank; d++)
    if (nest->output_axis[d] == outer)
      return nest->output_axis[d + 1] == inner && are_consecutive(s->layouts->output, d, d + 1);
  return false;
}

// Do windows along the axis cross the border of what is read? Vectors are then put together from
// what is within it.
static bool has_borders(const Nest *nest, int axis) {
  for (int i = 0; axis >= 0 && nest->conditional && i < nest->read_count; i++)
    if (nest_depends(&nest->reads[i], axis) && nest_dimension_of(nest, &nest->reads[i], axis) < 0)
      return true;
  return false;
}

// Sets the members of the search that depend on the tile's row axes.
static void set_rows(TileSearch *s, Tile *tile) {
  const Nest *nest = s->nest;
  for (int r = 0; r < 2; r++) {
    int axis = tile->row_axis[r];
    s->row_group[r] = 0;
    for (int i = 0; i < nest->read_count; i++) {
      s->depends[i][r] = axis >= 0 && s->moves[i][axis];
      if (!s->depends[i][r] || s->repeats[i][axis] == 1) continue;
      s->row_group[r] = gcd_of(s->row_group[r], (int64_t)s->repeats[i][axis]);
      s->depends[i][r] = false; // all rows are of one group
    }
  }
  s->broadcasts = broadcasts_rows(s);
  s->tests_rows[0] = s->windows ? has_borders(nest, tile->row_axis[0]) : nest->conditional;
  s->tests_rows[1] = s->windows && has_borders(nest, tile->row_axis[1]);
  tile->flat = !tile->turned && rows_fuse(s, tile->row_axis[0], tile->row_axis[1]);
  s->far_reads = count_far_reads(s, tile);
  s->lost_lines = 0;
  for (int i = 0; i < nest->read_count; i++)
    s->lost_lines += lines_lost(s, &nest->reads[i], i, tile->row_axis[1]);
}

// Does the tile have the rows of one store? They are a part of a block of the output.
static bool can_turn(const TileSearch *s, const Tile *tile) {
  enum { FEWEST = 4 };
  int64_t rows = tile->rows[1];
  return rows >= FEWEST && rows <= tile->lanes && log2_of(rows) >= 0 && s->turned_block % rows == 0;
}

#define SUM_ROUNDING 1.0001 // sums of cycles in another order differ by less

// The cycles that the multiply-adds of all tiles of a width need at least.
static double work_cycles(const TileSearch *s, const Tile *tile) {
  double vectors = (double)ceil_div(s->nest->axes[tile->vector_axis].extent, tile->lanes);
  double products = vectors * s->reductions;
  for (int a = 0; a < s->nest->spatial_count; a++)
    if (a != tile->vector_axis) products *= (double)s->nest->axes[a].extent;
  return products * s->operations * s->share / s->machine->fma_units;
}

static void try_rows(TileSearch *s, Tile tile) {
  const Nest *nest = s->nest;
  if (work_cycles(s, &tile) > s->dropped_cost * SUM_ROUNDING) return;
  set_rows(s, &tile);
  int64_t most_inner = (int64_t)extent_of(nest, tile.row_axis[1]);
  int64_t most_outer = (int64_t)extent_of(nest, tile.row_axis[0]);
  if (tile.flat) {
    most_inner *= most_outer;
    most_outer = 1;
  }
  int64_t most_vectors = ceil_div(nest->axes[tile.vector_axis].extent, tile.lanes);
  for (tile.vectors = 1; tile.vectors <= MIN_OF(most_vectors, s->costs->most_tile_vectors);
       tile.vectors++) {
    if (!tile.padded && most_vectors % tile.vectors && !s->windows) continue;
    if (s->panel && s->panel % tile.vectors) continue;
    if (tile.vectors % s->written && s->written % tile.vectors) continue;
    if (s->group % (tile.vectors * tile.lanes)) continue;
    for (tile.rows[1] = 1; tile.rows[1] <= MIN_OF(most_inner, s->costs->most_tile_rows);
         tile.rows[1]++) {
      if (tile.turned && !can_turn(s, &tile)) continue;
      if (s->row_group[1] % tile.rows[1]) continue;
      for (tile.rows[0] = 1; tile.rows[0] <= most_outer; tile.rows[0]++) {
        if (tile.rows[0] * tile.rows[1] > s->costs->most_tile_rows) break;
        if (tile.rows[0] > 1 && tile.rows[1] < most_inner && !s->nest->conditional) continue;
        if (s->row_group[0] % tile.rows[0]) continue;
        try_tile(s, tile);
      }
    }
  }
}

static bool vector_axis_fits(TileSearch *s, int axis, int lanes) {
  const Nest *nest = s->nest;
  if (nest->axes[axis].extent < 2) return false;
  s->windows = false;
  for (int i = 0; i < nest->read_count; i++) {
    bool packed = s->layouts->packed[i] && nest_dimension_of(nest, &nest->reads[i], axis) >= 0;
    s->steps[i] =
        packed ? NEST_CONTIGUOUS
               : nest_step(s->context, nest, &nest->reads[i], s->layouts->reads[i], axis, lanes);
    // Windows begin at any element, and a load that crosses the end of a line takes as long as two.
    double bytes = (double)lanes * dtype_bytes(nest->reads[i].buffer->type);
    double crossing = MIN_OF(bytes / (double)s->machine->line_bytes, 1);
    double others, taps = taps_along(s, &nest->reads[i], axis, &others);
    s->taps[i] = packed ? 1 : taps;
    s->lines[i] = 1 + crossing * (s->taps[i] - 1) / s->taps[i];
    s->windows |= s->taps[i] > 1;
    bool window = s->reductions <= s->costs->largest_window;
    s->strides[i] =
        packed || !window ? 0 : nest_stride(&nest->reads[i], s->layouts->reads[i], axis);
  }
  return true;
}

// Is the output contiguous along the vector axis, or blocked by whole vectors?
static bool output_contiguous(const TileSearch *s, int axis, int lanes) {
  int d = output_dimension(s->nest, axis);
  if (d < 0) return false;
  int64_t block = nest_block(s->layouts->output, d);
  return block > 1 ? block % lanes == 0 : output_stride(s, d) == 1;
}

// Is every read that moves along the vector axis stored in whole vectors, padding included?
static bool reads_padded(const TileSearch *s, int axis, int lanes) {
  for (int i = 0; i < s->nest->read_count; i++) {
    const NestRead *read = &s->nest->reads[i];
    if (s->steps[i] == NEST_SAME || s->layouts->packed[i]) continue;
    int d = nest_dimension_of(s->nest, read, axis);
    const Layout *layout = s->layouts->reads[i];
    if (d < 0 || !layout || nest_block(layout, d) % lanes) return false;
  }
  return true;
}

// The size of the output's blocks along the vector axis, in vectors.
static int64_t output_vectors(const TileSearch *s, int axis, int lanes) {
  int d = output_dimension(s->nest, axis);
  return d < 0 ? 1 : MAX_OF(nest_block(s->layouts->output, d) / lanes, 1);
}

static int64_t panel_vectors(const TileSearch *s, int axis, int lanes) {
  int64_t panel = 0;
  for (int i = 0; i < s->nest->read_count; i++) {
    int d = nest_dimension_of(s->nest, &s->nest->reads[i], axis);
    if (d < 0 || !s->layouts->reads[i] || s->layouts->packed[i]) continue;
    int64_t width = nest_block(s->layouts->reads[i], d);
    if (width > lanes && width % lanes == 0) panel = gcd_of(panel, width / lanes);
  }
  return panel;
}

static int64_t values_in_group(const TileSearch *s, int axis) {
  int64_t group = 0;
  for (int i = 0; i < s->nest->read_count; i++) {
    const NestRead *read = &s->nest->reads[i];
    for (int d = 0; d < read->buffer->rank && s->steps[i] == NEST_SAME; d++)
      if (read->group_size[d] && read->group_axis[d] == axis)
        group = gcd_of(group, read->group_size[d]);
  }
  return group;
}

// The factor by which vectors take longer at the ends of a row, where windows cross a border or
// lanes are left out.
static double border_loss(const TileSearch *s, const Tile *tile) {
  int64_t extent = s->nest->axes[tile->vector_axis].extent;
  double vectors = (double)ceil_div(extent, tile->lanes);
  int ends = has_borders(s->nest, tile->vector_axis) ? 2 : 0;
  if (!tile->padded && extent % tile->lanes) ends++;
  return 1 + (s->costs->border_factor - 1) * MIN_OF(ends / vectors, 1);
}

// Do the vectors of a read for all steps along the reduction's first axis share cache sets?
static bool steps_collide(const TileSearch *s) {
  int first = s->nest->spatial_count;
  for (int i = 0; i < s->nest->read_count && first < s->nest->axis_count; i++)
    if (s->collides[i][first] && s->steps[i] != NEST_SAME) return true;
  return false;
}

// Sets the members of the search that depend on the tile's vector axis; false when the axis cannot
// be a vector axis.
static bool set_vectors(TileSearch *s, Tile *tile) {
  int axis = tile->vector_axis, lanes = tile->lanes;
  if (output_dimension(s->nest, axis) < 0 || !vector_axis_fits(s, axis, lanes)) return false;
  tile->padded = reads_padded(s, axis, lanes);
  s->panel = panel_vectors(s, axis, lanes);
  s->written = output_vectors(s, axis, lanes);
  // Without padding, lanes would read past the end, or a part of a block would be padding alone.
  // Only the last vector of a row of windows has lanes that are left out.
  int64_t extent = s->nest->axes[axis].extent, block = lanes * s->written;
  tile->turned = !output_contiguous(s, axis, lanes);
  bool whole = tile->turned || s->written > 1 || extent < lanes || !s->windows;
  if (tile->padded ? ceil_div(extent, lanes) * lanes < block : whole && extent % block)
    return false;
  s->group = values_in_group(s, axis);
  for (int i = 0; i < s->nest->read_count; i++)
    s->vectors_collide[i] = vectors_share_sets(s, i, axis, lanes);
  s->share = vector_share(s->machine, lanes * dtype_bytes(s->nest->output->type));
  s->share *= border_loss(s, tile);
  tile->collides = steps_collide(s);
  return true;
}

// Sets the rows in a block of the output along an axis, for tiles that are transposed; false where
// the output is not contiguous along the axis.
static bool set_turned(TileSearch *s, int axis) {
  int d = output_dimension(s->nest, axis);
  if (d < 0) return false;
  s->turned_block = nest_block(s->layouts->output, d);
  if (s->turned_block == 1 && output_stride(s, d) == 1) s->turned_block = 0;
  return s->turned_block != 1;
}

static void try_vector_axis(TileSearch *s, int axis, int lanes) {
  const Nest *nest = s->nest;
  Tile tile = {.vector_axis = axis, .lanes = lanes, .rows = {1, 1}, .row_axis = {-1, -1}};
  if (!set_vectors(s, &tile)) return;
  if (!tile.turned) try_rows(s, tile);
  for (int inner = nest->spatial_count - 1; inner >= 0; inner--) {
    if (inner == axis || nest->axes[inner].extent == 1) continue;
    if (tile.turned && !set_turned(s, inner)) continue;
    tile.row_axis[1] = inner;
    tile.row_axis[0] = -1;
    try_rows(s, tile);
    for (int outer = 0; outer < inner; outer++) {
      if (outer == axis || nest->axes[outer].extent == 1) continue;
      tile.row_axis[0] = outer;
      try_rows(s, tile);
    }
  }
}

// Finds what tiles ask of read `i`. A packed operand's panels have neither sets nor blocks.
static void look_at_read(TileSearch *s, int i) {
  const NestRead *read = &s->nest->reads[i];
  bool packed = s->layouts->packed[i];
  s->bytes[i] = nest_read_bytes(s->context, s->machine, s->nest, s->layouts, i);
  s->streams[i] = packed && constant_streams(s->machine, s->bytes[i]);
  for (int a = 0; a < s->nest->axis_count; a++) {
    s->moves[i][a] = nest_depends(read, a);
    s->repeats[i][a] = nest_repeats(s->nest, read, a);
    s->collides[i][a] = !packed && shares_sets(s, i, a);
    s->blocks[i][a] = packed ? 1 : nest_block_along(s->nest, read, s->layouts->reads[i], a);
  }
}

static TileSearch search_of(Context *context, const HostMachine *machine, const Nest *nest,
                            const NestLayouts *layouts) {
  TileSearch search = {context, machine, cost_model_of(machine), nest, layouts};
  search.reductions = 1;
  search.best_cost = -1;
  search.dropped_cost = INFINITY;
  search.operations = nest_product_operations(machine, nest);
  search.latency = nest_chain_latency(search.costs, nest);
  search.hiding_chains = search.latency * machine->fma_units / search.operations;
  search.uops_a_cycle = uops_a_cycle(machine);
  for (int i = 0; i < nest->read_count; i++) look_at_read(&search, i);
  search.innermost = tile_innermost_axis(context, machine, nest, layouts);
  if (nest->axis_count > nest->spatial_count) find_far_reads(&search);
  for (int a = nest->spatial_count; a < nest->axis_count; a++)
    search.reductions *= (double)nest->axes[a].extent;
  return search;
}

bool tile_choose(Context *context, const HostMachine *machine, const Nest *nest,
                 const NestLayouts *layouts, Tile *tile, Tile *runners_up, int *count) {
  TileSearch search = search_of(context, machine, nest, layouts);
  search.runners_up = runners_up;
  search.most_runners_up = MIN_OF(*count, STRATEGY_RUNNERS_UP);
  int most = machine_lanes(machine, nest->output->type);
  for (int a = nest->spatial_count - 1; a >= 0; a--)
    for (int lanes = most; lanes >= MAX_OF(most / 4, MIN_OF(most, 2)); lanes /= 2)
      try_vector_axis(&search, a, lanes);
  *tile = search.best;
  *count = search.runner_up_count;
  return search.best_cost >= 0;
}

bool tile_predict(Context *context, const HostMachine *machine, const Nest *nest,
                  const NestLayouts *layouts, Tile *tile) {
  TileSearch search = search_of(context, machine, nest, layouts);
  if (tile->vector_axis >= nest->spatial_count || !set_vectors(&search, tile)) return false;
  int inner = tile->row_axis[1];
  if (tile->turned && (inner < 0 || !set_turned(&search, inner) || !can_turn(&search, tile)))
    return false;
  set_rows(&search, tile);
  predict(&search, tile);
  return true;
}

// Is the reduction a sum over a long second axis along which every operand has a smaller stride
// than along the first?
static bool sums_along_second(Context *context, const HostMachine *machine, const Nest *nest,
                              const NestLayouts *layouts) {
  int64_t shortest = cost_model_of(machine)->long_sum; // rules out windows
  int first = nest->spatial_count;
  if (nest->conditional || nest->axes[first + 1].extent < shortest) return false;
  for (int i = 0; i < nest->read_count; i++)
    if (layouts->packed[i] || step_along(context, nest, layouts, i, first + 1) >
                                  step_along(context, nest, layouts, i, first))
      return false;
  return true;
}

// Are all axes of the reduction digits of one axis, from the highest to the lowest? No read then
// uses them in two of its dimensions, or moves further along a later one.
static bool sums_along_digits(const Nest *nest) {
  int first = nest->spatial_count;
  if (nest->conditional) return false;
  for (int i = 0; i < nest->read_count; i++) {
    const NestRead *read = &nest->reads[i];
    int used = 0;
    for (int d = 0; d < read->buffer->rank; d++) {
      int64_t before = INT64_MAX;
      bool uses = false;
      for (int a = 0; a < nest->axis_count; a++) {
        int64_t step = read->linear[d] ? read->coefficient[d][a] : 0;
        if (!read->linear[d] && nest_moves(read, d, a)) return false;
        if (a < first || !step) continue;
        if (step < 0 || step >= before) return false;
        before = step;
        uses = true;
      }
      used += uses;
    }
    if (used > 1) return false;
  }
  return true;
}

int tile_innermost_axis(Context *context, const HostMachine *machine, const Nest *nest,
                        const NestLayouts *layouts) {
  int first = nest->spatial_count, found = first;
  if (nest->axis_count > first + 2 && sums_along_digits(nest)) return nest->axis_count - 1;
  if (nest->axis_count != first + 2) return first;
  if (sums_along_second(context, machine, nest, layouts)) return first + 1;
  for (int i = 0; i < nest->read_count; i++) {
    if (layouts->packed[i]) continue;
    const NestRead *read = &nest->reads[i];
    const Layout *layout = layouts->reads[i];
    NestStep along = nest_step(context, nest, read, layout, first, 2);
    NestStep along_last = nest_step(context, nest, read, layout, first + 1, 2);
    if (along == NEST_CONTIGUOUS || along_last != NEST_CONTIGUOUS) return first;
    found = first + 1;
  }
  return found;
}

// At the machine level "scalar", a vector holds one float32, so that no type has several lanes.
enum { SCALAR_BYTES = 4 };

int machine_lanes(const HostMachine *machine, DType type) {
  if (machine->vector_bytes <= SCALAR_BYTES) return 1;
  return MAX_OF(machine->vector_bytes / MAX_OF(dtype_bytes(type), 1), 1);
}

int tile_panel_axis(const Nest *nest, const NestRead *read, const Tile *tile, int64_t *width) {
  *width = (int64_t)tile->vectors * tile->lanes;
  if (nest_dimension_of(nest, read, tile->vector_axis) >= 0) return tile->vector_axis;
  for (int i = 1; i >= 0 && !tile->flat; i--) {
    int axis = tile->row_axis[i];
    *width = tile->rows[i];
    if (axis >= 0 && *width > 1 && nest_dimension_of(nest, read, axis) >= 0) return axis;
  }
  return -1;
}

int64_t tile_reduction_block(const HostMachine *machine, const Nest *nest, int axis,
                             const Tile *tile) {
  int64_t extent = nest->axes[axis].extent;
  bool whole = extent <= cost_model_of(machine)->largest_reduction_block && !tile->collides;
  if (whole || extent <= tile->lanes) return extent;
  for (int64_t block = tile->lanes; block >= 4; block /= 2)
    if (extent % block == 0) return block;
  return tile->lanes;
}
