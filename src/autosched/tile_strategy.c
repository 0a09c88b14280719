// SPDX-License-Identifier: Apache-2.0
// The schedule of a reduction in register tiles. The steps apply the tensors' layouts, cut the
// output into tiles, compute the reduction of a tile in registers, and store the tile through the
// elementwise block that follows (the epilogue). Where the output is contiguous along the rows of a
// tile, the vectors of the tail run along the rows, and the tile is transposed when they load it.
//
// A tail with mathematical functions reads a copy of the tile in memory, in a loop. Unrolled, each
// vector would have the instructions of the functions, and the sums that wait in registers would
// leave none for their constants: SiLU takes 10 cycles for each vector in place of 15 [Zen 3].
#include "autosched/internal.h"

#include "ir/op_count.h"

// The expression of two axes that run as one loop: outer * extent of inner + inner.
static const LayoutExpr *fused_axes(AutoSched *s, int outer, int inner) {
  Context *context = s->context;
  const NestAxis *axis = &s->nest.axes[s->choice->tile.row_axis[1]];
  const LayoutExpr *scaled = layout_expr(context, LAYOUT_MUL, layout_axis(context, outer),
                                         layout_const(context, axis->extent), NULL);
  return layout_expr(context, LAYOUT_ADD, scaled, layout_axis(context, inner), NULL);
}

// The axis of the rows that run inside of the vectors; -1: the vectors run inside of all rows.
static int inside_axis(const Tile *tile) {
  if (tile->order == TILE_VECTORS_INSIDE) return -1;
  return tile->row_axis[tile->order == TILE_INNER_INSIDE];
}

// Gives the accumulators a layout with the vector axis innermost, after all other axes, and that of
// rows inside of the vectors before it. Two row axes that run as one loop become one axis, so that
// a tile of them is a box. Those of a reduction in parts have a first axis for the part.
static bool lay_out_accumulators(AutoSched *s) {
  const Nest *nest = &s->nest;
  const Tile *tile = &s->choice->tile;
  const LayoutExpr *outputs[TE_MAX_RANK + 2];
  int parts = s->parts > 0, rank = nest->output->rank + parts, count = 0, last = -1, inside = -1;
  if (parts) outputs[count++] = autosched_digit(s->context, 0, 0, 0);
  for (int d = parts; d < rank; d++) {
    int axis = nest->output_axis[d - parts];
    if (axis == tile->vector_axis)
      last = d;
    else if (axis >= 0 && axis == inside_axis(tile))
      inside = d;
    else if (tile->flat && axis == tile->row_axis[0])
      outputs[count++] = fused_axes(s, d, d + 1);
    else if (!tile->flat || axis != tile->row_axis[1])
      outputs[count++] = autosched_digit(s->context, d, 0, 0);
  }
  if (inside >= 0) outputs[count++] = autosched_digit(s->context, inside, 0, 0);
  if (tile->padded) outputs[count++] = autosched_digit(s->context, last, tile->lanes, 0);
  outputs[count++] = autosched_digit(s->context, last, 0, tile->padded ? tile->lanes : 0);
  const IndexMap *map = index_map_new(s->context, rank, NULL, count, outputs, NULL, NULL, 0);
  static const LayoutPadding any = {LAYOUT_PADDING_ANY, 0};
  if (s->staged)
    TRY(schedule_transform_layout(s->sch, s->staged, (BufferSlot){true, 0}, map, &any));
  return schedule_transform_layout(s->sch, s->anchor, (BufferSlot){true, 0}, map, &any);
}

// The loops of the tail, one for each physical axis of the output, by the logical axis of each.
typedef struct TailLoops {
  LoopRef of_axis[NEST_MAX_AXES]; // whole loop, or the blocks of the vector axis
  LoopRef lanes;                  // within a block of the vector axis; NULL when not blocked
  LoopRef rows;                   // within a block of the rows of a tile that is transposed
  LoopRef others[NEST_MAX_AXES];  // of one iteration, without an axis of the nest
  int other_count;
} TailLoops;

// The axis of the nest that a physical dimension of the output follows; -1 when the dimension has
// extent 1, or with *other set when it is not a component of one axis.
static int logical_axis_of(const Layout *layout, const Nest *nest, int physical, bool *inner,
                           bool *other) {
  *inner = *other = false;
  if (!layout) return nest->output_axis[physical];
  const LayoutExpr *e = layout->map->outputs[physical];
  *inner = e->op == LAYOUT_MOD;
  if (e->op == LAYOUT_MOD || e->op == LAYOUT_DIV) e = e->args[0];
  *other = e->op != LAYOUT_AXIS;
  return *other ? -1 : nest->output_axis[e->value];
}

static const char *const no_digits =
    "the layout of the output is not made of its axes in whole vectors";

// The loops of the tail, one for each physical dimension of the reduction's result in the layout
// that the tail follows. The tail may index its output in another way (transposed, reshaped,
// without axes of one element), but walks memory as the result is laid out.
typedef struct AlignedLoops {
  LoopRef of_dimension[2 * TE_MAX_RANK]; // NULL: a dimension of one element
  LoopRef others[NEST_MAX_AXES];         // loops of one iteration that have no dimension
  int other_count;
} AlignedLoops;

typedef struct Aligning {
  AutoSched *s;
  LoopRefs loops;
  int next; // the loop to take
  const int64_t *extents;
  int rank;
  AlignedLoops *out;
} Aligning;

// Finds the fewest loops from the next one on, and the fewest dimensions from `d` on, that have
// equally many elements. Sets *factors to the extents of the dimensions. False when there are none.
static bool match_loops(const Aligning *a, int d, int64_t *factors, int *loops, int *dimensions) {
  int64_t run = autosched_loop_extent(a->s, a->loops.items[a->next]), size = a->extents[d];
  *loops = *dimensions = 1;
  factors[0] = size;
  while (run != size) {
    if (run > size) {
      if (d + *dimensions == a->rank) return false;
      factors[*dimensions] = a->extents[d + *dimensions];
      size *= factors[(*dimensions)++];
    } else {
      if (a->next + *loops == a->loops.count) return false;
      run *= autosched_loop_extent(a->s, a->loops.items[a->next + (*loops)++]);
    }
  }
  return true;
}

// Makes loops over the dimensions from `d` on of the next loops, which run over them together.
// Returns the number of dimensions, or 0 when there are no such loops.
static int match_dimensions(Aligning *a, int d) {
  int64_t factors[2 * TE_MAX_RANK];
  LoopRef loop = a->loops.items[a->next];
  int loops, dimensions;
  Schedule *sch = a->s->sch;
  if (!match_loops(a, d, factors, &loops, &dimensions) ||
      (loops > 1 && !schedule_fuse(sch, a->loops.items + a->next, loops, &loop)))
    return 0;
  a->next += loops;
  factors[0] = 0; // what the others leave
  a->out->of_dimension[d] = loop;
  bool split =
      dimensions == 1 || schedule_split(sch, loop, factors, dimensions, a->out->of_dimension + d);
  return split ? dimensions : 0;
}

static bool align_loops(Aligning *a) {
  for (int d = 0; d < a->rank;) {
    int64_t extent =
        a->next < a->loops.count ? autosched_loop_extent(a->s, a->loops.items[a->next]) : 1;
    if (extent == a->extents[d] && a->next < a->loops.count) {
      a->out->of_dimension[d++] = a->loops.items[a->next++];
    } else if (a->extents[d] == 1) {
      d++;
    } else if (extent == 1 && a->next < a->loops.count) {
      a->out->others[a->out->other_count++] = a->loops.items[a->next++];
    } else {
      int count = a->next < a->loops.count ? match_dimensions(a, d) : 0;
      if (!count) return false;
      d += count;
    }
  }
  for (; a->next < a->loops.count; a->next++) {
    if (autosched_loop_extent(a->s, a->loops.items[a->next]) != 1) return false;
    a->out->others[a->out->other_count++] = a->loops.items[a->next];
  }
  return true;
}

static bool result_extents(const AutoSched *s, int64_t *extents, int *rank) {
  const Layout *layout = s->layouts.output;
  *rank = layout ? layout->physical_rank : s->nest.output->rank;
  if (*rank > 2 * TE_MAX_RANK) return false;
  if (!layout && !buffer_static_shape(s->nest.output, extents)) return false;
  if (layout) memcpy(extents, layout->physical_extents, sizeof *extents * (size_t)*rank);
  if (s->bands) autosched_band_extents(s, layout, extents, *rank);
  return true;
}

// Does the tail have a loop for each axis of more than one element?
static bool has_all_axes(const AutoSched *s, const TailLoops *tail) {
  for (int d = 0; d < s->nest.output->rank; d++) {
    int axis = s->nest.output_axis[d];
    if (axis >= 0 && !tail->of_axis[axis] && s->nest.axes[axis].extent > 1) return false;
  }
  return true;
}

static bool find_tail_loops(AutoSched *s, TailLoops *tail) {
  const Tile *tile = &s->choice->tile;
  int64_t extents[2 * TE_MAX_RANK];
  AlignedLoops aligned = {0};
  Aligning aligning = {.s = s, .extents = extents, .out = &aligned};
  *tail = (TailLoops){0};
  TRY(autosched_loops(s, s->tail, &aligning.loops));
  s->refusal = no_digits;
  if (aligning.loops.count > NEST_MAX_AXES || !result_extents(s, extents, &aligning.rank) ||
      !align_loops(&aligning))
    return false;
  for (int i = 0; i < aligning.rank; i++) {
    bool inner, other;
    int axis = logical_axis_of(s->layouts.output, &s->nest, i, &inner, &other);
    bool rows = tile->turned && axis == tile->row_axis[1];
    if (other || (inner && !rows && axis != tile->vector_axis)) return false;
    if (axis < 0 || !aligned.of_dimension[i]) continue;
    LoopRef *loop = !inner ? &tail->of_axis[axis] : rows ? &tail->rows : &tail->lanes;
    if (*loop) return false;
    *loop = aligned.of_dimension[i];
  }
  if (tail->lanes && autosched_loop_extent(s, tail->lanes) % tile->lanes) return false;
  LoopRef *blocks = &tail->of_axis[tile->vector_axis];
  if (tail->lanes && !*blocks) // the axis is a single block
    TRY(autosched_split(s, tail->lanes, autosched_loop_extent(s, tail->lanes), blocks,
                        &tail->lanes));
  if (!has_all_axes(s, tail)) return false;
  tail->other_count = aligned.other_count;
  memcpy(tail->others, aligned.others, sizeof aligned.others);
  s->refusal = NULL;
  return true;
}

// The loops of the vector axis, from outside to inside, but for the lanes of a vector. NULL: none.
typedef struct VectorLoops {
  LoopRef panels;
  LoopRef parts;  // of a block of the output, where a tile writes only a part of one
  LoopRef blocks; // of the output, where a tile writes several that have several vectors each
  LoopRef vectors;
} VectorLoops;

// Splits a loop over the lanes of a block of the output, and that over the blocks.
static bool split_blocks(AutoSched *s, TailLoops *tail, VectorLoops *out) {
  const Tile *tile = &s->choice->tile;
  LoopRef loop = tail->of_axis[tile->vector_axis];
  int64_t block = autosched_loop_extent(s, tail->lanes) / tile->lanes;
  if (block <= 1) return autosched_split(s, loop, tile->vectors, &out->panels, &out->vectors);
  TRY(autosched_split(s, tail->lanes, tile->lanes, &out->vectors, &tail->lanes));
  if (block <= tile->vectors)
    return autosched_split(s, loop, tile->vectors / block, &out->panels, &out->blocks);
  out->panels = loop;
  return autosched_split(s, out->vectors, tile->vectors, &out->parts, &out->vectors);
}

static bool split_vector_axis(AutoSched *s, TailLoops *tail, VectorLoops *out) {
  const Tile *tile = &s->choice->tile;
  *out = (VectorLoops){0};
  if (tail->lanes) return split_blocks(s, tail, out);
  LoopRef parts[3], loop = tail->of_axis[tile->vector_axis];
  TRY(schedule_split(s->sch, loop, (int64_t[]){0, tile->vectors, tile->lanes}, 3, parts));
  out->panels = parts[0];
  out->vectors = parts[1];
  tail->lanes = parts[2];
  return true;
}

// Cuts the axis before which the loop over panels is placed; *outside is the loop around that loop,
// or NULL.
static bool cut_for_panels(AutoSched *s, TailLoops *tail, const PanelPlace *place,
                           LoopRef *outside) {
  *outside = NULL;
  if (place->at == place->count) return true;
  int axis = place->axes[place->at];
  if (!tail->of_axis[axis] || place->inside == s->nest.axes[axis].extent) return true;
  return autosched_split(s, tail->of_axis[axis], place->inside, outside, &tail->of_axis[axis]);
}

// Loops of one iteration may stand between the two loops over the rows.
static bool fuse_flat_rows(AutoSched *s, TailLoops *tail) {
  const Tile *tile = &s->choice->tile;
  if (!tile->flat) return true;
  LoopRef fused, order[NEST_MAX_AXES + 2];
  int count = tail->other_count;
  memcpy(order, tail->others, sizeof *order * (size_t)count);
  for (int r = 0; r < 2; r++) order[count++] = tail->of_axis[tile->row_axis[r]];
  TRY(schedule_reorder(s->sch, order, count));
  TRY(schedule_fuse(s->sch, order + count - 2, 2, &fused));
  tail->of_axis[tile->row_axis[1]] = fused;
  tail->of_axis[tile->row_axis[0]] = NULL;
  return true;
}

// Does the tail write many elements along `axis` where the anchor has one value (a gate over an
// image)? That value is computed before the loop.
static bool spreads(const AutoSched *s, LoopRef loop, int axis) {
  return s->nest.axes[axis].extent == 1 && autosched_loop_extent(s, loop) > 1;
}

// The position of the panels among the tail's loops. When an axis spreads, the loop over panels is
// the outermost, so that it runs in parallel.
static PanelPlace place_in_tail(const AutoSched *s, const TailLoops *tail) {
  PanelPlace place = autosched_place_panels(s);
  for (int i = 0; i < place.count; i++) {
    LoopRef loop = tail->of_axis[place.axes[i]];
    if (!loop || !spreads(s, loop, place.axes[i])) continue;
    place.at = 0;
    place.inside = s->nest.axes[place.axes[0]].extent;
  }
  return place;
}

// Splits the rows into tiles. Where the output has blocks of the inner rows, rows_out[1] walks the
// blocks and rows_out[2] the tiles in one; otherwise rows_out[1] walks all of them.
static bool split_rows(AutoSched *s, const TailLoops *tail, LoopRef rows_out[3],
                       LoopRef rows_in[2]) {
  const Tile *tile = &s->choice->tile;
  for (int r = 0; r < 2; r++) {
    LoopRef loop = tile->row_axis[r] < 0 ? NULL : tail->of_axis[tile->row_axis[r]];
    if (r && tail->rows)
      rows_out[1] = loop;
    else if (loop)
      TRY(autosched_split(s, loop, tile->rows[r], &rows_out[r], &rows_in[r]));
  }
  return !tail->rows || autosched_split(s, tail->rows, tile->rows[1], &rows_out[2], &rows_in[1]);
}

// Puts the loops in order, unrolls those of the tile, from loop `first` on, and makes a vector of
// the last. Of a tile in memory, few iterations are unrolled.
static bool run_tile(AutoSched *s, const LoopRef *order, int first, int count) {
  enum { MOST_COPIES = 4 };
  int64_t copies = 1;
  TRY(schedule_reorder(s->sch, order, count));
  for (int i = count - 2; i >= first; i--) {
    copies *= autosched_loop_extent(s, order[i]);
    if (!s->staged || copies <= MOST_COPIES) TRY(schedule_unroll(s->sch, order[i]));
  }
  return s->choice->tile.lanes == 1 || schedule_vectorize(s->sch, order[count - 1]);
}

// Does each iteration of the loops outside the panels and over them have a panel of its own, in an
// operand from main memory?
static bool streams_panels(const AutoSched *s, const PanelPlace *place, const LoopRef outside) {
  int streamed = autosched_streamed(s);
  bool streams = streamed >= 0 && !outside;
  for (int i = 0; i < place->at && streams; i++)
    streams = s->nest.axes[place->axes[i]].extent == 1 ||
              nest_depends(&s->nest.reads[streamed], place->axes[i]);
  return streams;
}

// Order of the tail's loops: outer loops | spread axes, rows, vectors, lanes. The loop over panels
// of the vector axis stands before the tiles of rows.
static bool tile_tail(AutoSched *s, TileLoops *out) {
  const Tile *tile = &s->choice->tile;
  TailLoops tail;
  LoopRef order[3 * NEST_MAX_AXES], rows_in[2] = {NULL}, rows_out[3] = {NULL};
  VectorLoops vector;
  LoopRef outside, spread[NEST_MAX_AXES];
  int n = 0, spread_count = 0;
  TRY(find_tail_loops(s, &tail));
  PanelPlace place = place_in_tail(s, &tail);
  TRY(cut_for_panels(s, &tail, &place, &outside));
  out->streams = streams_panels(s, &place, outside);
  TRY(fuse_flat_rows(s, &tail));
  TRY(split_vector_axis(s, &tail, &vector));
  TRY(split_rows(s, &tail, rows_out, rows_in));
  for (int i = 0; i < tail.other_count; i++) order[n++] = tail.others[i];
  for (int i = 0; i <= place.count; i++) {
    LoopRef loop = i < place.count ? tail.of_axis[place.axes[i]] : NULL;
    if (i == place.at && outside) order[n++] = outside;
    if (i == place.at) order[n++] = vector.panels;
    if (i == place.at && vector.parts) order[n++] = vector.parts;
    if (i == place.at) out->panel = n - 1;
    if (!loop || place.axes[i] == tile->row_axis[0] || place.axes[i] == tile->row_axis[1]) continue;
    *(spreads(s, loop, place.axes[i]) ? &spread[spread_count++] : &order[n++]) = loop;
  }
  for (int r = 0; r < 3; r++)
    if (rows_out[r]) order[n++] = rows_out[r];
  out->outer_count = n;
  out->row_loops = rows_out[1] && rows_out[2] ? 2 : 1;
  memcpy(out->outer, order, sizeof *order * (size_t)n);
  for (int i = 0; i < spread_count; i++) order[n++] = spread[i];
  int first = n;
  bool inside[] = {tile->order == TILE_OUTER_INSIDE, tile->order == TILE_INNER_INSIDE};
  LoopRef inner[] = {inside[0] ? NULL : rows_in[0],
                     inside[1] || tile->turned ? NULL : rows_in[1],
                     vector.blocks,
                     vector.vectors,
                     inside[0] ? rows_in[0] : NULL,
                     inside[1] ? rows_in[1] : NULL,
                     tail.lanes,
                     tile->turned ? rows_in[1] : NULL};
  for (int i = 0; i < COUNT_OF(inner); i++)
    if (inner[i]) order[n++] = inner[i];
  return run_tile(s, order, first, n);
}

// Moves a loop to the place before the last one.
static void move_before_last(LoopRef *loops, int count, int from) {
  LoopRef loop = loops[from];
  for (int i = from; i + 2 < count; i++) loops[i] = loops[i + 1];
  loops[count - 2] = loop;
}

// Cuts the last of a block's loops over accumulators into vectors. Lanes that no element needs are
// computed with the others, whole vectors being fewer operations.
static bool cut_vectors(AutoSched *s, BlockRef block, LoopRef *loops, int *count) {
  int last = *count - 1, lanes = s->choice->tile.lanes;
  bool padded = s->choice->tile.padded;
  if (padded && autosched_loop_extent(s, loops[last]) >= lanes) return true;
  ++*count;
  TRY(autosched_split(s, loops[last], lanes, &loops[last], &loops[last + 1]));
  if (padded) schedule_drop_padding_predicate(s->sch, block); // or the predicate stays
  return true;
}

// The anchor's loops below the tile: the axes of its accumulators, with the vector axis in two and
// the rows inside of the vectors before the lanes, then those of its reduction.
static bool anchor_loops(AutoSched *s, int outer, LoopRef *spatial, int *spatial_count,
                         LoopRef *reduce, int *reduce_count) {
  LoopRefs loops = {0};
  TRY(autosched_loops(s, s->anchor, &loops));
  *spatial_count = *reduce_count = 0;
  int reductions = s->nest.axis_count - s->nest.spatial_count;
  for (int i = outer; i < loops.count; i++) {
    if (i >= loops.count - reductions)
      reduce[(*reduce_count)++] = loops.items[i];
    else
      spatial[(*spatial_count)++] = loops.items[i];
  }
  int last = *spatial_count - 1;
  TRY(cut_vectors(s, s->anchor, spatial, spatial_count));
  if (inside_axis(&s->choice->tile) >= 0)
    move_before_last(spatial, *spatial_count, last - 1 - s->choice->tile.padded);
  return true;
}

static int64_t tile_products(const AutoSched *s) {
  const Tile *tile = &s->choice->tile;
  return tile->vectors * tile->rows[0] * tile->rows[1];
}

// Does an operand that is not packed have blocks of the axis whose values are read one by one?
static bool read_in_blocks(const AutoSched *s, int axis, int64_t block) {
  for (int i = 0; i < s->nest.read_count; i++) {
    const Layout *layout = s->layouts.packed[i] ? NULL : s->layouts.reads[i];
    int d = layout ? nest_dimension_of(&s->nest, &s->nest.reads[i], axis) : -1;
    if (d >= 0 && nest_block(layout, d) == block) return true;
  }
  return false;
}

// Would unrolling so many iterations spill accumulators? LLVM loads the vectors of all unrolled
// iterations before it multiplies, and spills accumulators where those do not fit. A tile of many
// products hides the end of the loop without unrolling.
static bool overfills_registers(const AutoSched *s, int64_t iterations) {
  int enough = cost_model_of(s->machine)->loop_hiding_products;
  int64_t products = tile_products(s), vectors = s->choice->tile.vectors;
  return products >= enough && products + iterations * vectors + 1 > s->machine->vector_registers;
}

// Does each product of the tile take a value of its own for all lanes of its only vector? Where
// multiply-adds cannot read such values from memory, LLVM adds the products of one iteration to the
// registers of the values, which those of the next one then take as operands, and spills them.
static bool broadcasts_each(const AutoSched *s) {
  const Tile *tile = &s->choice->tile;
  if (tile->vectors > 1 || s->machine->vector_bytes >= WIDE_VECTOR_BYTES) return false;
  for (int i = 0; i < s->nest.read_count; i++) {
    const NestRead *read = &s->nest.reads[i];
    for (int r = 0; r < 2 && !nest_depends(read, tile->vector_axis); r++)
      if (tile->row_axis[r] >= 0 && tile->rows[r] > 1 && nest_depends(read, tile->row_axis[r]))
        return true;
  }
  return false;
}

// Unrolls the innermost loop by `most`, but not where the rest of the loop would run only once:
// LLVM would compute the products of that rest before the loop and keep them in memory.
static bool unroll_innermost(AutoSched *s, LoopRef loop, int64_t most) {
  int64_t extent = autosched_loop_extent(s, loop);
  if (overfills_registers(s, most) || broadcasts_each(s)) most = 1;
  int64_t step = extent % most && extent < 2 * most ? 1 : most;
  return schedule_annotate(s->sch, NULL, loop, "pleat.unroll", expr_index(s->context, step));
}

// The length of a step in which a part of a panel is prefetched; 0 when the reduction has none.
static int64_t step_length(const AutoSched *s, int64_t extent) {
  static const int64_t lengths[] = {16, 8, 32, 12, 24, 20, 10, 14, 28};
  if (autosched_streamed(s) < 0) return 0;
  for (int i = 0; i < COUNT_OF(lengths); i++)
    if (extent % lengths[i] == 0 && extent >= 2 * lengths[i]) return lengths[i];
  return 0;
}

// Orders the loops of the reduction: blocks of the first axis, the other axes, the elements of a
// block. The loop outside the innermost one (kernel columns) is unrolled, so that conditions on it
// become constants.
static bool order_reduction(AutoSched *s, LoopRef *reduce, int *count, LoopRef *first) {
  const Nest *nest = &s->nest;
  int n = *count;
  *first = reduce[0];
  if (tile_innermost_axis(s->context, s->machine, nest, &s->layouts) > nest->spatial_count) {
    LoopRef last = reduce[n - 1];
    if (n > 1 && autosched_loop_extent(s, last) * tile_products(s) <=
                     cost_model_of(s->machine)->most_unrolled_second)
      return schedule_unroll(s->sch, last);
    return unroll_innermost(s, last, 2);
  }
  int64_t block = tile_reduction_block(s->machine, nest, nest->spatial_count, &s->choice->tile);
  if (n == 1 && !read_in_blocks(s, nest->spatial_count, block)) {
    block = step_length(s, autosched_loop_extent(s, reduce[0]));
    if (!block) return unroll_innermost(s, reduce[0], 2);
  }
  LoopRef outer, inner;
  TRY(autosched_split(s, reduce[0], block, &outer, &inner));
  reduce[0] = outer;
  reduce[n] = inner;
  *count = n + 1;
  *first = outer;
  return n > 1 || unroll_innermost(s, inner, 2);
}

// The copies of a tile's code: tiles at the borders and those between differ in the conditions on
// each axis that is cut into tiles.
static int64_t tile_copies(const AutoSched *s) {
  const Tile *tile = &s->choice->tile;
  int64_t copies = 1;
  for (int i = 0; i < 2 && s->nest.conditional; i++)
    if (tile->row_axis[i] >= 0 && tile->rows[i] > 1)
      copies *= MIN_OF(3, ceil_div(s->nest.axes[tile->row_axis[i]].extent, tile->rows[i]));
  return copies;
}

// Unrolled taps of a window make conditions on the tile's rows constants.
static bool unroll_taps(AutoSched *s, LoopRef *reduce, int count) {
  const CostModel *costs = cost_model_of(s->machine);
  if (count < 3) return true;
  int64_t taps = autosched_loop_extent(s, reduce[count - 2]);
  int64_t products = tile_products(s) * taps;
  TRY(unroll_innermost(s, reduce[count - 1], products > costs->most_unrolled_taps ? 1 : 2));
  bool large =
      products > costs->most_unrolled || products * tile_copies(s) > costs->most_unrolled_copies;
  return large || schedule_unroll(s->sch, reduce[count - 2]);
}

static bool finish_block(AutoSched *s, BlockRef block, int skip, int keep) {
  LoopRefs loops = {0};
  TRY(autosched_loops(s, block, &loops));
  for (int i = skip; i < loops.count; i++) {
    if (i == loops.count - 1 && s->choice->tile.lanes > 1)
      TRY(schedule_vectorize(s->sch, loops.items[i]));
    else if (i >= loops.count - keep)
      TRY(schedule_unroll(s->sch, loops.items[i]));
  }
  return true;
}

// Copies the sums of a tile inside of the outer loops, all in straight-line code.
static bool stage_tile(AutoSched *s, const TileLoops *tile) {
  LoopRefs loops = {0};
  LoopRef inner[2 * NEST_MAX_AXES];
  int count = 0;
  TRY(schedule_compute_at(s->sch, s->staged, tile->outer[tile->outer_count - 1], true));
  TRY(autosched_loops(s, s->staged, &loops));
  for (int i = tile->outer_count; i < loops.count; i++) inner[count++] = loops.items[i];
  TRY(count && cut_vectors(s, s->staged, inner, &count));
  return finish_block(s, s->staged, tile->outer_count, count);
}

static bool schedule_reduction(AutoSched *s, TileLoops *loops) {
  LoopRef spatial[NEST_MAX_AXES], reduce[NEST_MAX_AXES + 1], order[2 * NEST_MAX_AXES], first;
  int spatial_count, reduce_count, n = 0;
  BlockRef init;
  if (s->staged) TRY(stage_tile(s, loops));
  TRY(schedule_compute_at(s->sch, s->anchor, loops->outer[loops->outer_count - 1], true));
  TRY(anchor_loops(s, loops->outer_count, spatial, &spatial_count, reduce, &reduce_count));
  if (reduce_count == 0) return true;
  TRY(order_reduction(s, reduce, &reduce_count, &first));
  for (int i = 0; i < reduce_count; i++) order[n++] = reduce[i];
  for (int i = 0; i < spatial_count; i++) order[n++] = spatial[i];
  TRY(schedule_reorder(s->sch, order, n));
  TRY(schedule_decompose_reduction(s->sch, s->anchor, first, &init));
  if (s->nest.conditional && schedule_skips_by_index(s->sch, s->anchor))
    TRY(schedule_predicate_reduction(s->sch, s->anchor));
  TRY(unroll_taps(s, reduce, reduce_count));
  for (int i = 0; i + 1 < reduce_count; i++)
    if (schedule_loop(s->sch, reduce[i])->as.loop.kind == LOOP_SERIAL) loops->steps = reduce[i];
  TRY(finish_block(s, init, loops->outer_count, spatial_count));
  return finish_block(s, s->anchor, loops->outer_count + reduce_count, spatial_count);
}

// The number among the anchor's reads of the operand that comes from main memory; -1: none does.
static int streamed_slot(const AutoSched *s) {
  int streamed = autosched_streamed(s);
  const Block *block = schedule_block(s->sch, s->anchor);
  for (int i = 0; i < block->read_count && streamed >= 0; i++)
    if (block->reads[i].buffer->data == s->nest.reads[streamed].buffer->data) return i;
  return -1;
}

void autosched_prefetch_panels(AutoSched *s, const TileLoops *loops, LoopRef loop) {
  int slot = loops->steps ? streamed_slot(s) : -1;
  if (slot >= 0) schedule_prefetch(s->sch, s->anchor, slot, loop, 1, 2, loops->steps);
}

// Runs the outer loops but the last in parallel, where no loop over bands does.
static bool parallelise(AutoSched *s, TileLoops *loops) {
  int count = loops->outer_count, fused = MAX_OF(1, count - loops->row_loops);
  if (s->bands) return true;
  // Each iteration of the parallel loop has a panel of its own if that is to be prefetched.
  LoopRef all;
  bool streams = loops->streams && loops->steps && loops->panel < fused && streamed_slot(s) >= 0;
  if (streams) fused = loops->panel + 1;
  TRY(autosched_run_parallel(s, loops->outer, count, fused, &all));
  // The next panel arrives in the second cache while the tiles of one panel are computed.
  if (streams) autosched_prefetch_panels(s, loops, all);
  return true;
}

// A condition stays where dropping it cannot be proved harmless.
static void drop_predicates(AutoSched *s) {
  schedule_drop_padding_predicate(s->sch, s->tail);
  schedule_drop_padding_predicate(s->sch, s->anchor);
}

static bool count_functions(Visitor *visitor, Stmt *s) {
  double *functions = visitor->env;
  if (s->kind == STMT_STORE) *functions += expr_op_count(s->as.store.value).functions;
  return true;
}

// The number among the reads of the tail of the sums, if a tile of them is to be copied to memory;
// -1 otherwise.
static int staged_slot(const AutoSched *s) {
  const Block *tail = schedule_block(s->sch, s->tail);
  const Expr *sums = schedule_block(s->sch, s->anchor)->writes[0].buffer->data;
  double functions = 0;
  visit_stmt(&(Visitor){.env = &functions, .enter_stmt = count_functions}, tail->body);
  for (int i = 0; i < tail->read_count && functions && !s->choice->tile.turned; i++)
    if (tail->reads[i].buffer->data == sums) return i;
  return -1;
}

bool autosched_tiled_blocks(AutoSched *s) {
  if (s->tail == s->anchor) return schedule_cache_write(s->sch, s->anchor, 0, "local", &s->tail);
  TRY(schedule_set_scope(s->sch, s->anchor, 0, "local"));
  int slot = staged_slot(s);
  return slot < 0 || schedule_cache_read(s->sch, s->tail, slot, "global", &s->staged);
}

bool autosched_tiled_layouts(AutoSched *s) {
  TRY(autosched_lay_out_params(s));
  TRY(autosched_lay_out_output(s));
  TRY(lay_out_accumulators(s));
  drop_predicates(s);
  return true;
}

// The last loops are partitioned, so that partial tiles have code of their own. Blocks of rows are
// partitioned with the tiles in them.
bool autosched_tile_loops(AutoSched *s, TileLoops *out) {
  *out = (TileLoops){0};
  TRY(tile_tail(s, out));
  TRY(schedule_reduction(s, out));
  for (int i = MAX_OF(1, out->outer_count - out->row_loops); i < out->outer_count; i++)
    TRY(schedule_loop_partition(s->sch, out->outer[i]));
  return true;
}

bool autosched_tiled_loops(AutoSched *s) {
  TileLoops loops;
  return autosched_tile_loops(s, &loops) && parallelise(s, &loops);
}

bool autosched_tiled(AutoSched *s) {
  if (autosched_cut_reduction(s)) return true;
  return autosched_tiled_blocks(s) && autosched_tiled_layouts(s) && autosched_tiled_loops(s);
}
