// SPDX-License-Identifier: Apache-2.0
// Chooses the order of the loops outside a register tile: all rows for one panel of the vector
// axis, all panels for one row, or all panels for a block of rows. The order decides how often each
// operand is read again from which cache.
#include "autosched/internal.h"

// Bytes of reads that move with the vector axis alone (by_panel), or with the rows alone (by_row).
typedef struct Footprint {
  double by_panel, by_row, panels, row_tiles;
  double batch; // number of iterations of the batch axes, each with its own elements
  bool streams; // do the panels come from main memory?
} Footprint;

// Cycles of memory: of the second cache, which mostly pass while tiles are computed, and of what is
// beyond it.
typedef struct Waits {
  double near, far;
} Waits;

// Can a single row axis be cut in blocks of whole tiles?
static bool rows_cut(const AutoSched *s, int axis) {
  const Tile *tile = &s->choice->tile;
  return axis == tile->row_axis[1] && !tile->flat && !tile->turned && tile->row_axis[0] < 0 &&
         s->nest.axes[axis].extent % tile->rows[1] == 0 &&
         s->nest.axes[axis].extent >= cost_model_of(s->machine)->many_tiles * tile->rows[1];
}

static PanelPlace outer_axes(const AutoSched *s) {
  const Tile *tile = &s->choice->tile;
  PanelPlace place = {0};
  for (int a = 0; a < s->nest.spatial_count; a++)
    if (a != tile->vector_axis && a != tile->row_axis[0] && a != tile->row_axis[1])
      place.axes[place.count++] = a;
  if (tile->flat) place.axes[place.count++] = tile->row_axis[0];
  if (tile->row_axis[1] >= 0 && rows_cut(s, tile->row_axis[1]))
    place.axes[place.count++] = tile->row_axis[1];
  return place;
}

// Do all reads move along the axis, so that each of its iterations has rows and panels of its own?
static bool is_batch(const AutoSched *s, int axis) {
  const Nest *nest = &s->nest;
  const Tile *tile = &s->choice->tile;
  if (axis == tile->row_axis[0] || axis == tile->row_axis[1]) return false;
  for (int i = 0; i < nest->read_count; i++)
    if (!nest_depends(&nest->reads[i], axis)) return false;
  return axis != tile->vector_axis && nest->read_count > 1;
}

static bool moves_with_rows(const AutoSched *s, const NestRead *read) {
  for (int a = 0; a < s->nest.spatial_count; a++)
    if (a != s->choice->tile.vector_axis && s->nest.axes[a].extent > 1 && nest_depends(read, a) &&
        !is_batch(s, a))
      return true;
  return false;
}

int autosched_streamed(const AutoSched *s) {
  enum { FEWEST_ROWS = 4 };
  const Nest *nest = &s->nest;
  const Tile *tile = &s->choice->tile;
  for (int i = 0; i < nest->read_count; i++) {
    const NestRead *read = &nest->reads[i];
    bool moves = false; // within a panel
    for (int r = 0; r < 2; r++)
      moves |= tile->row_axis[r] >= 0 && nest_depends(read, tile->row_axis[r]);
    if (!s->layouts.packed[i] || !nest_depends(read, tile->vector_axis) || moves) continue;
    double rows = 1;
    for (int a = 0; a < nest->spatial_count; a++)
      if (!nest_depends(read, a)) rows *= (double)nest->axes[a].extent;
    if (rows >= FEWEST_ROWS && constant_streams(s->machine, nest_buffer_bytes(read->buffer)))
      return i;
  }
  return -1;
}

static double row_tiles(const AutoSched *s, const PanelPlace *place) {
  const Tile *tile = &s->choice->tile;
  double tiles = 1;
  for (int r = 0; r < 2; r++)
    if (tile->row_axis[r] >= 0)
      tiles *= (double)s->nest.axes[tile->row_axis[r]].extent / (double)tile->rows[r];
  for (int i = 0; i < place->count; i++) {
    int axis = place->axes[i];
    if (axis != tile->row_axis[0] && axis != tile->row_axis[1] && !is_batch(s, axis))
      tiles *= (double)s->nest.axes[axis].extent;
  }
  return tiles;
}

static Footprint footprint_of(const AutoSched *s, const PanelPlace *place) {
  const Nest *nest = &s->nest;
  const Tile *tile = &s->choice->tile;
  Footprint f = {.row_tiles = row_tiles(s, place), .batch = 1};
  f.streams = autosched_streamed(s) >= 0;
  f.panels = (double)ceil_div(nest->axes[tile->vector_axis].extent, tile->vectors * tile->lanes);
  for (int i = 0; i < place->count; i++)
    if (is_batch(s, place->axes[i])) f.batch *= (double)nest->axes[place->axes[i]].extent;
  for (int i = 0; i < nest->read_count; i++) {
    bool rows = moves_with_rows(s, &nest->reads[i]);
    bool vector = nest_depends(&nest->reads[i], tile->vector_axis);
    double bytes = nest_read_bytes(s->context, s->machine, nest, &s->layouts, i);
    bytes /= f.batch * (double)MAX_OF(s->parts, 1);
    if (vector != rows) *(vector ? &f.by_panel : &f.by_row) += bytes;
  }
  return f;
}

// How often the loops inside the panels run, in one iteration of the batch.
static double iterations_outside(const AutoSched *s, const PanelPlace *place) {
  double outside = 1;
  for (int i = 0; i < place->at; i++)
    if (!is_batch(s, place->axes[i])) outside *= (double)s->nest.axes[place->axes[i]].extent;
  if (place->at < place->count)
    outside *= (double)s->nest.axes[place->axes[place->at]].extent / (double)place->inside;
  return outside;
}

// Is the output in main memory?
static bool output_is_far(const AutoSched *s) {
  double most = cost_model_of(s->machine)->far_caches * (double)s->machine->l2_bytes;
  return nest_buffer_bytes(s->nest.output) > most;
}

// A panel writes a short piece of each row of a row-major output. Where the output is in main
// memory, and the rows of a panel do not stay in the second cache until the next panel, each line
// costs a page walk and a cache miss that no prefetch hides.
static double pieces_cost(const AutoSched *s, const Footprint *f, double outside) {
  const CostModel *costs = cost_model_of(s->machine);
  const Nest *nest = &s->nest;
  double bytes = nest_buffer_bytes(nest->output), held = bytes / f->batch / outside;
  bool last = nest->output_axis[nest->output->rank - 1] == s->choice->tile.vector_axis;
  if (s->layouts.output || !last || f->panels <= 1) return 0;
  if (!output_is_far(s)) return 0;
  if (held <= (double)s->machine->l2_bytes * costs->panel_rows_share) return 0;
  return bytes / f->batch / (double)s->machine->line_bytes * costs->line_cycles;
}

// The cycles that wait for the second cache and the levels beyond it. Operands that move with the
// vector axis are read once for each iteration outside the panels, the others once for each panel,
// unless a cache holds them in between. Between two uses of a panel, the rows of one iteration pass
// through the cache; between two uses of all panels, the rows of two iterations, because those of
// the iteration before are still there.
static Waits place_cost(const AutoSched *s, const PanelPlace *place, const Footprint *f) {
  const CostModel *costs = cost_model_of(s->machine);
  double l1 = (double)s->machine->l1_bytes * costs->panel_l1_share;
  double l2 = (double)s->machine->l2_bytes * costs->panel_l2_share;
  double outside = iterations_outside(s, place), panel = f->by_panel / f->panels;
  double rows = f->by_row / outside;
  // Beside the rows of a part there are the sums and the next panel.
  if (s->parts > 1) l2 = (double)s->machine->l2_bytes * costs->panel_rows_share - panel;
  double far = f->by_panel * (f->by_panel + 2 * rows > l2 ? outside : 1);
  far += f->by_row * (rows + panel > l2 ? f->panels : 1);
  double near = f->by_panel * (panel > l1 ? f->row_tiles : outside);
  near += f->by_row * (rows > l1 ? f->panels : 1);
  Waits waits = {.near = memory_cycles(s->machine, near, MEMORY_L2, MEMORY_FEED),
                 .far = memory_cycles(s->machine, far, MEMORY_L3, MEMORY_FEED) +
                        pieces_cost(s, f, outside)};
  // A panel from main memory is prefetched while all the tiles of the panel before are computed.
  if (outside > 1 && f->streams)
    waits.far += memory_cycles(s->machine, f->by_panel, MEMORY_MAIN, MEMORY_READ);
  return waits;
}

// Are the blocks that the panels cut long enough? Rows of a tile that run as one loop are cut anew
// in each block of their outer axis.
static bool place_fits(const AutoSched *s, const PanelPlace *place) {
  const CostModel *costs = cost_model_of(s->machine);
  const Tile *tile = &s->choice->tile;
  int axis = place->at < place->count ? place->axes[place->at] : -1;
  if (axis >= 0 && axis == tile->row_axis[1])
    return place->inside == s->nest.axes[axis].extent ||
           (place->inside % tile->rows[1] == 0 &&
            place->inside >= costs->fewest_block_tiles * tile->rows[1]);
  if (place->count && place->axes[place->count - 1] == tile->row_axis[1]) return axis >= 0;
  if (!tile->flat || place->at + 1 < place->count) return true;
  if (place->at == place->count) return false;
  return place->inside == s->nest.axes[tile->row_axis[0]].extent ||
         place->inside * s->nest.axes[tile->row_axis[1]].extent >=
             costs->fewest_flat_tiles * tile->rows[1];
}

static PanelPlace best_place(const AutoSched *s, Waits *waits) {
  PanelPlace place = outer_axes(s), best = place;
  Footprint footprint = footprint_of(s, &place);
  double best_cost = -1;
  int first = 0; // the axes of the batch come first
  for (int i = 0; i < place.count; i++)
    if (is_batch(s, place.axes[i]) && s->nest.axes[place.axes[i]].extent > 1) first = i + 1;
  for (place.at = place.count; place.at >= first; place.at--) {
    int64_t extent = place.at < place.count ? s->nest.axes[place.axes[place.at]].extent : 1;
    bool rows = place.at < place.count && place.axes[place.at] == s->choice->tile.row_axis[1];
    for (int64_t i = 1; i <= extent; i++) {
      place.inside = rows ? extent + 1 - i : i; // tries the whole axis first
      if (extent % place.inside || !place_fits(s, &place)) continue;
      Waits found = place_cost(s, &place, &footprint);
      double cost = found.near + found.far;
      if (best_cost >= 0 && cost >= best_cost * cost_model_of(s->machine)->tie_panels) continue;
      best = place;
      best_cost = cost;
      *waits = found;
    }
  }
  return best;
}

PanelPlace autosched_place_panels(const AutoSched *s) {
  Waits waits;
  return best_place(s, &waits);
}

// ---- Parts of a reduction

// Has the reduction one axis, and a row-major result that is vectorised along its last dimension?
static bool can_cut(const AutoSched *s) {
  const Nest *nest = &s->nest;
  const Tile *tile = &s->choice->tile;
  int rank = nest->output->rank, moving = 0;
  for (int a = 0; a < nest->spatial_count; a++) moving += nest->axes[a].extent > 1;
  return nest->axis_count == nest->spatial_count + 1 && !s->bands && !s->layouts.output &&
         !s->output_layout && !tile->flat && !tile->turned && tile->row_axis[0] < 0 &&
         tile->row_axis[1] >= 0 && moving == 2 && s->planned && !s->planned->in_order && rank &&
         nest->output_axis[rank - 1] == tile->vector_axis;
}

// The cycles of the tiles and of memory where the reduction is computed in so many parts. Each part
// reads and writes all sums, which are cleared first and read once more at the end. What comes from
// the second cache overlaps with multiply-adds [products of 64 x 768 x 2304 to 50257, Zen 3: 0.93
// to 0.97 of the peak with panels in L2].
static double parts_cost(const AutoSched *s, int64_t parts) {
  AutoSched part = *s;
  part.parts = parts;
  Waits waits = {0};
  best_place(&part, &waits);
  double tiles = overlapped_cycles(s->machine, s->choice->tile.cycles, (double)parts * waits.near);
  double cycles = tiles + (double)parts * waits.far;
  if (parts == 1) return cycles;
  double bytes = nest_buffer_bytes(s->nest.output);
  MemoryLevel level = MAX_OF(memory_level(s->machine, bytes), MEMORY_L2);
  if (output_is_far(s)) level = MEMORY_MAIN;
  return cycles + (double)parts * memory_cycles(s->machine, bytes, level, MEMORY_READ) +
         (double)(parts + 2) * memory_cycles(s->machine, bytes, level, MEMORY_WRITE);
}

// Is a tensor that is not in panels read once, in pieces of its rows that are far from one another?
static bool streams_far_rows(const AutoSched *s) {
  const Nest *nest = &s->nest;
  const CostModel *costs = cost_model_of(s->machine);
  int reduction = nest->spatial_count;
  for (int i = 0; i < nest->read_count; i++) {
    const NestRead *read = &nest->reads[i];
    int64_t strides[TE_MAX_RANK], step = 0;
    if (!nest_depends(read, s->choice->tile.vector_axis)) continue;
    if (s->layouts.reads[i] || s->layouts.packed[i] || !nest_depends(read, reduction)) return false;
    nest_strides(s->context, read->buffer, NULL, strides);
    for (int d = 0; d < read->buffer->rank; d++)
      step += read->coefficient[d][reduction] * strides[d];
    if (nest_buffer_bytes(read->buffer) <= (double)s->machine->l2_bytes ||
        step * dtype_bytes(read->buffer->type) <= costs->near_bytes)
      return false;
  }
  return true;
}

// The parts of a product of one row with a tensor whose rows are far apart. Each part adds a few
// rows from one end to the other, so that the prefetcher follows them; the sums stay in the first
// cache. 1: the product is another one.
static int64_t parts_of_row(const AutoSched *s) {
  enum { LEAST_ROWS = 6, MOST_ROWS = 16, SHARE_OF_L1 = 2 };
  const Nest *nest = &s->nest;
  const Tile *tile = &s->choice->tile;
  int rank = nest->output->rank;
  int64_t length = nest->axes[nest->spatial_count].extent;
  for (int a = 0; a < nest->spatial_count; a++)
    if (a != tile->vector_axis && nest->axes[a].extent > 1) return 1;
  bool fits = nest->axis_count == nest->spatial_count + 1 && !s->bands && !s->layouts.output &&
              !s->output_layout && tile->lanes > 1 && !tile->turned && s->planned &&
              !s->planned->in_order && rank && nest->output_axis[rank - 1] == tile->vector_axis &&
              nest_buffer_bytes(nest->output) * SHARE_OF_L1 <= (double)s->machine->l1_bytes;
  if (!fits || !streams_far_rows(s)) return 1;
  for (int64_t rows = LEAST_ROWS; rows <= MOST_ROWS; rows++)
    if (length % rows == 0 && length > rows) return length / rows;
  return 1;
}

// Parts have whole steps of the loops inside, and enough of them to hide the ends of the part.
int64_t autosched_reduction_parts(const AutoSched *s) {
  enum { MOST_PARTS = 32, LEAST_LENGTH = 256, STEP = 16 };
  if (!can_cut(s)) return parts_of_row(s);
  int64_t best = 1, length = s->nest.axes[s->nest.spatial_count].extent;
  double saved = s->choice->tile.cycles * cost_model_of(s->machine)->least_saved_by_parts;
  double least = parts_cost(s, 1) - saved;
  for (int64_t parts = 2; parts <= MOST_PARTS && length / parts >= LEAST_LENGTH; parts++) {
    if (length % (parts * STEP)) continue;
    double cost = parts_cost(s, parts);
    if (cost >= least) continue;
    least = cost;
    best = parts;
  }
  return best;
}
