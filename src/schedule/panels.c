// SPDX-License-Identifier: Apache-2.0
// The order of the loops outside a register tile: whether all rows are walked for one panel of the
// vector axis, all panels for one row, or all panels for a block of rows. What is decided is how
// often each cache has to give what again.
#include "schedule/model_internal.h"

static double buffer_bytes(const Buffer *buffer) {
  double bytes = dtype_bytes(buffer->type);
  int64_t extent;
  for (int d = 0; d < buffer->rank; d++)
    if (expr_as_int(buffer->shape[d], &extent)) bytes *= (double)extent;
  return bytes;
}

typedef struct Footprint { // bytes of reads that move with the vector axis alone, or not with it
  double by_panel, by_row, panels, row_tiles;
} Footprint;

static PanelPlace outer_axes(const Model *m) {
  const Tile *tile = &m->choice->tile;
  PanelPlace place = {0};
  for (int a = 0; a < m->nest.spatial_count; a++)
    if (a != tile->vector_axis && a != tile->row_axis[0] && a != tile->row_axis[1])
      place.axes[place.count++] = a;
  if (tile->flat) place.axes[place.count++] = tile->row_axis[0];
  return place;
}

static Footprint footprint_of(const Model *m, const PanelPlace *place) {
  const Nest *nest = &m->nest;
  const Tile *tile = &m->choice->tile;
  Footprint f = {.row_tiles = 1};
  f.panels = (double)ceil_div(nest->axes[tile->vector_axis].extent, tile->vectors * tile->lanes);
  for (int r = 0; r < 2; r++)
    if (tile->row_axis[r] >= 0)
      f.row_tiles *= (double)nest->axes[tile->row_axis[r]].extent / (double)tile->rows[r];
  for (int i = 0; i < place->count; i++)
    if (place->axes[i] != tile->row_axis[0])
      f.row_tiles *= (double)nest->axes[place->axes[i]].extent;
  for (int i = 0; i < nest->read_count; i++) {
    bool rows = false;
    for (int a = 0; a < nest->spatial_count; a++)
      rows |=
          a != tile->vector_axis && nest->axes[a].extent > 1 && nest_depends(&nest->reads[i], a);
    bool vector = nest_depends(&nest->reads[i], tile->vector_axis);
    if (vector != rows) *(vector ? &f.by_panel : &f.by_row) += buffer_bytes(nest->reads[i].buffer);
  }
  return f;
}

// Cycles that wait for the second cache and what lies behind it. What moves with the vector axis is
// read once for each iteration outside the panels, the rest once for each panel, where the caches
// do not hold it in between. A panel passes by the rows of one iteration; two iterations' rows, one
// of them on its way out, by all panels.
static double place_cost(const Model *m, const PanelPlace *place, const Footprint *f) {
  double l1 = (double)m->machine->l1_bytes / 2, l2 = (double)m->machine->l2_bytes * 3 / 4;
  double outside = 1, panel = f->by_panel / f->panels;
  for (int i = 0; i < place->at; i++) outside *= (double)m->nest.axes[place->axes[i]].extent;
  if (place->at < place->count)
    outside *= (double)m->nest.axes[place->axes[place->at]].extent / (double)place->inside;
  double rows = f->by_row / outside;
  double far = f->by_panel * (f->by_panel + 2 * rows > l2 ? outside : 1);
  far += f->by_row * (rows + panel > l2 ? f->panels : 1);
  double near = f->by_panel * (panel > l1 ? f->row_tiles : outside);
  near += f->by_row * (rows > l1 ? f->panels : 1);
  return far / (m->machine->vector_bytes * 0.3) + near / (m->machine->vector_bytes * 0.6);
}

// Rows of a tile that run as one loop are cut anew in each block of their outer axis.
static bool place_fits(const Model *m, const PanelPlace *place) {
  enum { FEWEST_TILES = 16 };
  const Tile *tile = &m->choice->tile;
  if (!tile->flat || place->at + 1 < place->count) return true;
  if (place->at == place->count) return false;
  return place->inside == m->nest.axes[tile->row_axis[0]].extent ||
         place->inside * m->nest.axes[tile->row_axis[1]].extent >= FEWEST_TILES * tile->rows[1];
}

PanelPlace model_place_panels(const Model *m) {
  PanelPlace place = outer_axes(m), best = place;
  Footprint footprint = footprint_of(m, &place);
  double best_cost = -1;
  for (place.at = place.count; place.at >= 0; place.at--) {
    int64_t extent = place.at < place.count ? m->nest.axes[place.axes[place.at]].extent : 1;
    for (place.inside = 1; place.inside <= extent; place.inside++) {
      if (extent % place.inside || !place_fits(m, &place)) continue;
      double cost = place_cost(m, &place, &footprint);
      if (best_cost >= 0 && cost >= best_cost * 0.98) continue;
      best = place;
      best_cost = cost;
    }
  }
  return best;
}
