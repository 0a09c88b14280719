// SPDX-License-Identifier: Apache-2.0
// The model's steps. For a reduction: inline what surrounds it, lay the tensors out, cut the output
// in register tiles, compute the reduction of a tile in registers, store it through the epilogue.
// For elementwise kernels: vectorise along memory.
#include "autosched/internal.h"

// ---- Blocks: inline all that is not the anchor or the last

bool model_reduces(const Model *m, BlockRef block) {
  return block_is_reduction(schedule_block(m->sch, block));
}

bool model_blocks(Model *m, BlockRefs *blocks) {
  BlockRef root;
  TRY(schedule_get_block(m->sch, "root", &root));
  return schedule_get_child_blocks(m->sch, root, NULL, blocks);
}

static bool is_ordered(const Model *m, BlockRef ref) {
  const Block *block = schedule_block(m->sch, ref);
  for (int i = 0; i < block->var_count; i++)
    if (block->vars[i].kind == ITER_OPAQUE) return true;
  return false;
}

static bool find_blocks(Model *m, BlockRefs *blocks) {
  TRY(model_blocks(m, blocks));
  if (blocks->count == 2 && is_ordered(m, blocks->items[1])) {
    m->tail = blocks->items[0];
    m->updates = blocks->items[1];
    return true;
  }
  for (int i = 0; i < blocks->count; i++) {
    if (!model_reduces(m, blocks->items[i])) continue;
    m->anchor = blocks->items[i];
    m->reductions++;
  }
  m->tail = array_last(blocks);
  return true;
}

// Of several reductions: an elementwise block goes into its only reader, when that is one too.
static bool inline_chains(Model *m, const BlockRefs *blocks) {
  for (int i = 0; i + 1 < blocks->count; i++) {
    BlockRefs consumers = {0};
    if (model_reduces(m, blocks->items[i])) continue;
    TRY(schedule_get_consumers(m->sch, blocks->items[i], &consumers));
    if (consumers.count == 1 && !model_reduces(m, consumers.items[0]))
      TRY(schedule_compute_inline(m->sch, blocks->items[i]));
  }
  return true;
}

static bool inline_others(Model *m, const BlockRefs *blocks) {
  for (int i = 0; i + 1 < blocks->count && !m->updates; i++)
    if (blocks->items[i] != m->anchor) TRY(schedule_compute_inline(m->sch, blocks->items[i]));
  return true;
}

// ---- Layouts

static int param_of(const Model *m, const Buffer *buffer) {
  const PrimFunc *func = schedule_func(m->sch);
  for (int i = 0; i < func->param_count; i++)
    if (func->buffers[i] && func->buffers[i]->data == buffer->data) return i;
  return -1;
}

// The slot by which `block` accesses parameter `param`; index -1 when it does not.
static BufferSlot slot_of(const Model *m, BlockRef ref, int param) {
  const Block *block = schedule_block(m->sch, ref);
  for (int w = 0; w < 2; w++) {
    const Region *regions = w ? block->writes : block->reads;
    int count = w ? block->write_count : block->read_count;
    for (int i = 0; i < count; i++)
      if (param_of(m, regions[i].buffer) == param) return (BufferSlot){w, i};
  }
  return (BufferSlot){false, -1};
}

static bool lay_out(Model *m, int param, const Layout *layout) {
  static const LayoutPadding any = {LAYOUT_PADDING_ANY, 0};
  BlockRefs blocks = {0};
  m->choice->layouts[param] = layout;
  if (!layout) return true;
  TRY(model_blocks(m, &blocks));
  for (int i = blocks.count - 1; i >= 0; i--) {
    BufferSlot slot = slot_of(m, blocks.items[i], param);
    if (slot.index < 0) continue;
    const LayoutPadding *padding =
        layout->padding.kind == LAYOUT_PADDING_UNKNOWN ? &any : &layout->padding;
    return schedule_transform_layout(m->sch, blocks.items[i], slot, layout->map, padding);
  }
  return true;
}

static const LayoutExpr *digit(Context *context, int d, int64_t cut, int64_t radix) {
  const LayoutExpr *e = layout_axis(context, d);
  if (cut > 1) e = layout_expr(context, LAYOUT_DIV, e, layout_const(context, cut), NULL);
  if (radix > 1) e = layout_expr(context, LAYOUT_MOD, e, layout_const(context, radix), NULL);
  return e;
}

static const Layout *layout_on(Context *context, const Buffer *buffer, int count,
                               const LayoutExpr *const *outputs) {
  int64_t shape[NEST_MAX_RANK];
  if (!buffer_static_shape(buffer, shape)) return NULL;
  const IndexMap *map = index_map_new(context, buffer->rank, NULL, count, outputs, NULL, NULL, 0);
  const Layout *layout = layout_static(context, map, shape, buffer->pos);
  return layout ? layout_with_padding(context, layout, (LayoutPadding){LAYOUT_PADDING_CONSTANT, 0})
                : NULL;
}

// A constant operand of the anchor, in the order in which the loops read it: panel, then the
// reduction from outside to inside, then the values of one panel side by side.
static const Layout *packed_layout(Model *m, const NestRead *read, int axis, int64_t width) {
  const Nest *nest = &m->nest;
  const Tile *tile = &m->choice->tile;
  const LayoutExpr *outputs[2 * NEST_MAX_RANK];
  int count = 0, panel = nest_dimension_of(nest, read, axis);
  bool used[NEST_MAX_RANK] = {false};
  int64_t block = 0;
  int blocked = -1;
  outputs[count++] = digit(m->context, panel, width, 0);
  used[panel] = true;
  for (int a = nest->spatial_count; a < nest->axis_count; a++) {
    int d = nest_dimension_of(nest, read, a);
    if (d < 0) continue;
    used[d] = true;
    bool inside = tile_innermost_axis(m->context, nest, &m->layouts) == a;
    if (blocked < 0 && inside && a == nest->spatial_count && nest->axis_count > a + 1) {
      blocked = d;
      block = tile_reduction_block(nest, a, tile);
      if (block < nest->axes[a].extent) outputs[count++] = digit(m->context, d, block, 0);
    } else {
      outputs[count++] = digit(m->context, d, 0, 0);
    }
  }
  for (int d = 0; d < read->buffer->rank; d++)
    if (!used[d]) outputs[count++] = digit(m->context, d, 0, 0);
  if (blocked >= 0)
    outputs[count++] =
        digit(m->context, blocked, 0, block < nest->axes[nest->spatial_count].extent ? block : 0);
  outputs[count++] = digit(m->context, panel, 0, width);
  return layout_on(m->context, read->buffer, count, outputs);
}

// A constant of the epilogue that moves with the vector axis: padded to whole vectors.
static const Layout *padded_vector(Model *m, const Buffer *buffer, int lanes) {
  int last = buffer->rank - 1;
  const LayoutExpr *outputs[NEST_MAX_RANK + 1];
  for (int d = 0; d < last; d++) outputs[d] = digit(m->context, d, 0, 0);
  outputs[last] = digit(m->context, last, lanes, 0);
  outputs[last + 1] = digit(m->context, last, 0, lanes);
  return layout_on(m->context, buffer, buffer->rank + 1, outputs);
}

static bool read_packs(const Model *m, int read) {
  int param = param_of(m, m->nest.reads[read].buffer);
  return param >= 0 && m->params[param].constant;
}

static void find_layouts(Model *m) {
  for (int i = 0; i < m->nest.read_count; i++) {
    int param = param_of(m, m->nest.reads[i].buffer);
    m->layouts.reads[i] = param >= 0 ? m->params[param].layout : NULL;
    m->layouts.packed[i] = read_packs(m, i);
  }
  m->layouts.output = m->params[m->func->param_count - 1].layout;
}

static bool lay_out_constant(Model *m, int param) {
  const Buffer *buffer = schedule_func(m->sch)->buffers[param];
  for (int i = 0; i < m->nest.read_count; i++) {
    const NestRead *read = &m->nest.reads[i];
    if (read->buffer->data != buffer->data) continue;
    int64_t width;
    int axis = tile_panel_axis(&m->nest, read, &m->choice->tile, &width);
    return axis < 0 || lay_out(m, param, packed_layout(m, read, axis, width));
  }
  const Tile *tile = &m->choice->tile;
  int64_t last;
  bool vector = buffer->rank > 0 && expr_as_int(buffer->shape[buffer->rank - 1], &last) &&
                last == m->nest.axes[tile->vector_axis].extent && last % tile->lanes;
  return !vector || lay_out(m, param, padded_vector(m, buffer, tile->lanes));
}

bool model_lay_out_params(Model *m) {
  for (int i = m->func->param_count - 1; i >= 0; i--) {
    if (!m->func->buffers[i]) continue;
    TRY(m->params[i].constant && m->choice->tiled ? lay_out_constant(m, i)
                                                  : lay_out(m, i, m->params[i].layout));
  }
  return true;
}

// ---- The reduction in tiles

// Two axes that run as one loop: outer * extent of inner + inner.
static const LayoutExpr *fused_axes(Model *m, int outer, int inner) {
  Context *context = m->context;
  const NestAxis *axis = &m->nest.axes[m->choice->tile.row_axis[1]];
  const LayoutExpr *scaled = layout_expr(context, LAYOUT_MUL, layout_axis(context, outer),
                                         layout_const(context, axis->extent), NULL);
  return layout_expr(context, LAYOUT_ADD, scaled, layout_axis(context, inner), NULL);
}

// The accumulators, vector axis innermost: all other axes, then the vector axis. Rows that run as
// one loop are one axis, so that a tile of them is a box.
static bool lay_out_accumulators(Model *m) {
  const Nest *nest = &m->nest;
  const Tile *tile = &m->choice->tile;
  const LayoutExpr *outputs[NEST_MAX_RANK + 1];
  int rank = nest->output->rank, count = 0, last = -1;
  for (int d = 0; d < rank; d++) {
    int axis = nest->output_axis[d];
    if (axis == tile->vector_axis)
      last = d;
    else if (tile->flat && axis == tile->row_axis[0])
      outputs[count++] = fused_axes(m, d, d + 1);
    else if (!tile->flat || axis != tile->row_axis[1])
      outputs[count++] = digit(m->context, d, 0, 0);
  }
  if (tile->padded) outputs[count++] = digit(m->context, last, tile->lanes, 0);
  outputs[count++] = digit(m->context, last, 0, tile->padded ? tile->lanes : 0);
  const IndexMap *map = index_map_new(m->context, rank, NULL, count, outputs, NULL, NULL, 0);
  static const LayoutPadding any = {LAYOUT_PADDING_ANY, 0};
  return schedule_transform_layout(m->sch, m->anchor, (BufferSlot){true, 0}, map, &any);
}

typedef struct TileLoops {
  LoopRef outer[NEST_MAX_AXES];
  int outer_count;
  LoopRef vector;
} TileLoops;

// The loops of the tail, one for each physical axis of the output in order, told apart by the
// logical axis that each walks.
typedef struct TailLoops {
  LoopRef of_axis[NEST_MAX_AXES]; // whole loop, or the blocks of the vector axis
  LoopRef lanes;                  // within a block of the vector axis; NULL when not blocked
} TailLoops;

// -1: an output of extent 1, or (*other) no digit of one axis.
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

static const char *const no_digits = "the layout of the output is not made of its axes";

static bool find_tail_loops(Model *m, TailLoops *tail) {
  LoopRefs loops = {0};
  const Layout *layout = m->layouts.output;
  int rank = layout ? layout->physical_rank : m->nest.output->rank;
  *tail = (TailLoops){0};
  TRY(schedule_get_loops(m->sch, m->tail, &loops));
  m->refusal = no_digits;
  if (loops.count != rank) return false;
  for (int i = 0; i < rank; i++) {
    bool inner, other;
    int axis = logical_axis_of(layout, &m->nest, i, &inner, &other);
    if (other || (inner && axis != m->choice->tile.vector_axis)) return false;
    if (axis < 0) continue;
    LoopRef *loop = inner ? &tail->lanes : &tail->of_axis[axis];
    if (*loop) return false;
    *loop = loops.items[i];
  }
  for (int d = 0; d < m->nest.output->rank; d++)
    if (m->nest.output_axis[d] >= 0 && !tail->of_axis[m->nest.output_axis[d]]) return false;
  m->refusal = NULL;
  return true;
}

int64_t model_loop_extent(const Model *m, LoopRef loop) {
  int64_t extent = 0;
  expr_as_int(schedule_loop(m->sch, loop)->as.loop.extent, &extent);
  return extent;
}

bool model_split(Model *m, LoopRef loop, int64_t size, LoopRef *outer, LoopRef *inner) {
  LoopRef parts[2];
  TRY(schedule_split(m->sch, loop, (int64_t[]){0, size}, 2, parts));
  *outer = parts[0];
  *inner = parts[1];
  return true;
}

// Where the output lies in blocks of several vectors, vectors[0] are blocks and vectors[1] those in
// one; otherwise all of them are vectors[1].
static bool split_vector_axis(Model *m, TailLoops *tail, LoopRef *panels, LoopRef vectors[2]) {
  const Tile *tile = &m->choice->tile;
  LoopRef loop = tail->of_axis[tile->vector_axis];
  vectors[0] = NULL;
  if (tail->lanes) {
    int64_t block = model_loop_extent(m, tail->lanes) / tile->lanes;
    if (block <= 1) return model_split(m, loop, tile->vectors, panels, &vectors[1]);
    TRY(model_split(m, tail->lanes, tile->lanes, &vectors[1], &tail->lanes));
    return model_split(m, loop, tile->vectors / block, panels, &vectors[0]);
  }
  LoopRef parts[3];
  TRY(schedule_split(m->sch, loop, (int64_t[]){0, tile->vectors, tile->lanes}, 3, parts));
  *panels = parts[0];
  vectors[1] = parts[1];
  tail->lanes = parts[2];
  return true;
}

// Cuts the axis in which the panels stand; *outside is the loop around them, or NULL.
static bool cut_for_panels(Model *m, TailLoops *tail, const PanelPlace *place, LoopRef *outside) {
  *outside = NULL;
  if (place->at == place->count) return true;
  int axis = place->axes[place->at];
  if (!tail->of_axis[axis] || place->inside == m->nest.axes[axis].extent) return true;
  return model_split(m, tail->of_axis[axis], place->inside, outside, &tail->of_axis[axis]);
}

static bool fuse_flat_rows(Model *m, TailLoops *tail) {
  const Tile *tile = &m->choice->tile;
  if (!tile->flat) return true;
  LoopRef fused, pair[2] = {tail->of_axis[tile->row_axis[0]], tail->of_axis[tile->row_axis[1]]};
  TRY(schedule_fuse(m->sch, pair, 2, &fused));
  tail->of_axis[tile->row_axis[1]] = fused;
  tail->of_axis[tile->row_axis[0]] = NULL;
  return true;
}

// The tail writes along `axis` what the anchor has one value of: a gate over an image. That value
// is computed before the loop.
static bool spreads(const Model *m, LoopRef loop, int axis) {
  return m->nest.axes[axis].extent == 1 && model_loop_extent(m, loop) > 1;
}

// Where some axis spreads, the panels are what runs in parallel.
static PanelPlace place_in_tail(const Model *m, const TailLoops *tail) {
  PanelPlace place = model_place_panels(m);
  for (int i = 0; i < place.count; i++) {
    LoopRef loop = tail->of_axis[place.axes[i]];
    if (!loop || !spreads(m, loop, place.axes[i])) continue;
    place.at = 0;
    place.inside = m->nest.axes[place.axes[0]].extent;
  }
  return place;
}

// outer loops … | spread, rows, vectors, lanes. Panels of the vector axis stand before the tiles of
// rows.
static bool tile_tail(Model *m, TileLoops *out) {
  const Tile *tile = &m->choice->tile;
  TailLoops tail;
  LoopRef order[2 * NEST_MAX_AXES], rows_in[2] = {NULL}, rows_out[2] = {NULL}, panels, vectors[2];
  LoopRef outside, spread[NEST_MAX_AXES];
  int n = 0, spread_count = 0;
  TRY(find_tail_loops(m, &tail));
  PanelPlace place = place_in_tail(m, &tail);
  TRY(cut_for_panels(m, &tail, &place, &outside));
  TRY(fuse_flat_rows(m, &tail));
  TRY(split_vector_axis(m, &tail, &panels, vectors));
  for (int r = 0; r < 2; r++)
    if (tile->row_axis[r] >= 0 && tail.of_axis[tile->row_axis[r]])
      TRY(model_split(m, tail.of_axis[tile->row_axis[r]], tile->rows[r], &rows_out[r],
                      &rows_in[r]));
  for (int i = 0; i <= place.count; i++) {
    LoopRef loop = i < place.count ? tail.of_axis[place.axes[i]] : NULL;
    if (i == place.at && outside) order[n++] = outside;
    if (i == place.at) order[n++] = panels;
    if (!loop || place.axes[i] == tile->row_axis[0] || place.axes[i] == tile->row_axis[1]) continue;
    *(spreads(m, loop, place.axes[i]) ? &spread[spread_count++] : &order[n++]) = loop;
  }
  for (int r = 0; r < 2; r++)
    if (rows_out[r]) order[n++] = rows_out[r];
  out->outer_count = n;
  memcpy(out->outer, order, sizeof *order * (size_t)n);
  for (int i = 0; i < spread_count; i++) order[n++] = spread[i];
  for (int r = 0; r < 2; r++)
    if (rows_in[r]) order[n++] = rows_in[r];
  for (int i = 0; i < 2; i++)
    if (vectors[i]) order[n++] = vectors[i];
  order[n++] = out->vector = tail.lanes;
  TRY(schedule_reorder(m->sch, order, n));
  for (int r = 0; r < 2; r++)
    if (rows_in[r]) TRY(schedule_unroll(m->sch, rows_in[r]));
  for (int i = 0; i < 2; i++)
    if (vectors[i]) TRY(schedule_unroll(m->sch, vectors[i]));
  return tile->lanes == 1 || schedule_vectorize(m->sch, tail.lanes);
}

// The anchor's loops below the tile: its accumulators' axes, the vector axis in two, then its
// reductions.
static bool anchor_loops(Model *m, int outer, LoopRef *spatial, int *spatial_count, LoopRef *reduce,
                         int *reduce_count) {
  LoopRefs loops = {0};
  TRY(schedule_get_loops(m->sch, m->anchor, &loops));
  *spatial_count = *reduce_count = 0;
  int reductions = m->nest.axis_count - m->nest.spatial_count;
  for (int i = outer; i < loops.count; i++) {
    if (i >= loops.count - reductions)
      reduce[(*reduce_count)++] = loops.items[i];
    else
      spatial[(*spatial_count)++] = loops.items[i];
  }
  if (m->choice->tile.padded) return true;
  int last = (*spatial_count)++ - 1;
  return model_split(m, spatial[last], m->choice->tile.lanes, &spatial[last], &spatial[last + 1]);
}

enum { MOST_UNROLLED = 320 };

static int64_t tile_products(const Model *m) {
  const Tile *tile = &m->choice->tile;
  return tile->vectors * tile->rows[0] * tile->rows[1];
}

// An operand that is not packed lies in blocks of the axis, whose values are read one by one.
static bool read_in_blocks(const Model *m, int axis, int64_t block) {
  for (int i = 0; i < m->nest.read_count; i++) {
    const Layout *layout = m->layouts.packed[i] ? NULL : m->layouts.reads[i];
    int d = layout ? nest_dimension_of(&m->nest, &m->nest.reads[i], axis) : -1;
    if (d >= 0 && nest_block(layout, d) == block) return true;
  }
  return false;
}

// LLVM loads the vectors of all iterations that are written out before it multiplies; where they do
// not fit beside the accumulators, those go to memory. So many products hide the end of a loop.
static bool overfills_registers(const Model *m, int64_t iterations) {
  enum { HIDE_LOOP = 20 };
  int64_t products = tile_products(m), vectors = m->choice->tile.vectors;
  return products >= HIDE_LOOP &&
         products + iterations * vectors + 1 > m->machine->vector_registers;
}

// Iterations of the innermost loop that are written out. Not where one of them would run only once:
// its products would be the same each time, and kept in memory from before the loop.
static bool unroll_innermost(Model *m, LoopRef loop, int64_t most) {
  int64_t extent = model_loop_extent(m, loop);
  if (overfills_registers(m, most)) most = 1;
  int64_t step = extent % most && extent < 2 * most ? 1 : most;
  return schedule_annotate(m->sch, NULL, loop, "pleat.unroll", expr_index(m->context, step));
}

// Reduction order: blocks of the first axis, the other axes, within the block. The innermost but
// one loop (kernel columns) is unrolled, so that conditions on it become constants.
static bool order_reduction(Model *m, LoopRef *reduce, int *count, LoopRef *first) {
  const Nest *nest = &m->nest;
  int n = *count;
  *first = reduce[0];
  if (tile_innermost_axis(m->context, nest, &m->layouts) > nest->spatial_count) {
    LoopRef last = reduce[n - 1];
    if (n > 1 && model_loop_extent(m, last) * tile_products(m) <= MOST_UNROLLED / 4)
      return schedule_unroll(m->sch, last);
    return unroll_innermost(m, last, 2);
  }
  int64_t block = tile_reduction_block(nest, nest->spatial_count, &m->choice->tile);
  if (n == 1 && !read_in_blocks(m, nest->spatial_count, block))
    return unroll_innermost(m, reduce[0], 2);
  LoopRef outer, inner;
  TRY(model_split(m, reduce[0], block, &outer, &inner));
  reduce[0] = outer;
  reduce[n] = inner;
  *count = n + 1;
  *first = outer;
  return n > 1 || unroll_innermost(m, inner, 2);
}

static bool unroll_taps(Model *m, LoopRef *reduce, int count) {
  if (count < 3) return true;
  int64_t taps = model_loop_extent(m, reduce[count - 2]);
  int64_t products = tile_products(m) * taps;
  TRY(unroll_innermost(m, reduce[count - 1], products > 100 ? 1 : 2));
  return products > MOST_UNROLLED || schedule_unroll(m->sch, reduce[count - 2]);
}

static bool finish_block(Model *m, BlockRef block, int skip, int keep) {
  LoopRefs loops = {0};
  TRY(schedule_get_loops(m->sch, block, &loops));
  for (int i = skip; i < loops.count; i++) {
    if (i == loops.count - 1 && m->choice->tile.lanes > 1)
      TRY(schedule_vectorize(m->sch, loops.items[i]));
    else if (i >= loops.count - keep)
      TRY(schedule_unroll(m->sch, loops.items[i]));
  }
  return true;
}

static bool schedule_reduction(Model *m, const TileLoops *loops) {
  LoopRef spatial[NEST_MAX_AXES], reduce[NEST_MAX_AXES + 1], order[2 * NEST_MAX_AXES], first;
  int spatial_count, reduce_count, n = 0;
  BlockRef init;
  TRY(schedule_compute_at(m->sch, m->anchor, loops->outer[loops->outer_count - 1], true));
  TRY(anchor_loops(m, loops->outer_count, spatial, &spatial_count, reduce, &reduce_count));
  if (reduce_count == 0) return true;
  TRY(order_reduction(m, reduce, &reduce_count, &first));
  for (int i = 0; i < reduce_count; i++) order[n++] = reduce[i];
  for (int i = 0; i < spatial_count; i++) order[n++] = spatial[i];
  TRY(schedule_reorder(m->sch, order, n));
  TRY(schedule_decompose_reduction(m->sch, m->anchor, first, &init));
  if (m->nest.conditional) TRY(schedule_predicate_reduction(m->sch, m->anchor));
  TRY(unroll_taps(m, reduce, reduce_count));
  TRY(finish_block(m, init, loops->outer_count, spatial_count));
  return finish_block(m, m->anchor, loops->outer_count + reduce_count, spatial_count);
}

// Outer loops run in parallel as far as they are whole; the last two keep their tails apart.
static bool parallelise(Model *m, TileLoops *loops) {
  int count = loops->outer_count, fused = MAX_OF(1, count - 1);
  for (int i = fused; i < count; i++) TRY(schedule_loop_partition(m->sch, loops->outer[i]));
  LoopRef all = loops->outer[0];
  if (fused > 1) TRY(schedule_fuse(m->sch, loops->outer, fused, &all));
  return schedule_parallel(m->sch, all);
}

// Where it cannot be proved harmless the conditions stay.
static void drop_predicates(Model *m) {
  schedule_drop_padding_predicate(m->sch, m->tail);
  schedule_drop_padding_predicate(m->sch, m->anchor);
}

static bool schedule_tiled(Model *m) {
  TileLoops loops;
  if (m->tail == m->anchor)
    TRY(schedule_cache_write(m->sch, m->anchor, 0, "local", &m->tail));
  else
    TRY(schedule_set_scope(m->sch, m->anchor, 0, "local"));
  TRY(model_lay_out_params(m));
  TRY(lay_out_accumulators(m));
  drop_predicates(m);
  TRY(tile_tail(m, &loops));
  TRY(schedule_reduction(m, &loops));
  return parallelise(m, &loops);
}

// ---- Kernels without a tile: vectors along memory where the last axis allows it

static bool vectorise_last(Model *m, BlockRef block) {
  LoopRefs loops = {0};
  TRY(schedule_get_loops(m->sch, block, &loops));
  if (loops.count == 0) return true;
  LoopRef last = array_last(&loops), outer = NULL, inner = last;
  int lanes = m->machine->vector_bytes / 4; // 1 where only scalars are wanted
  int64_t extent = model_loop_extent(m, last);
  if (lanes > 1 && extent > lanes) TRY(model_split(m, last, lanes, &outer, &inner));
  if (lanes > 1 && extent >= lanes) {
    TRY(schedule_vectorize(m->sch, inner));
    if (outer && extent % lanes) TRY(schedule_loop_partition(m->sch, outer));
  } else if (lanes > 1) {
    m->choice->slow = "the innermost axis is shorter than a vector";
  }
  int parallel = MIN_OF(loops.count - 1, 3);
  LoopRef all = loops.items[0];
  if (parallel < 1) return true;
  if (parallel > 1) TRY(schedule_fuse(m->sch, loops.items, parallel, &all));
  return schedule_parallel(m->sch, all);
}

// The loop that walks the elements of the output side by side, where the updates keep them apart.
static LoopRef loop_along_memory(const Model *m, const LoopRefs *loops) {
  const Block *block = schedule_block(m->sch, m->updates);
  const Stmt *store = block->body;
  if (store->kind != STMT_STORE || !store->as.store.rank) return NULL;
  const Expr *last = store->as.store.indices[store->as.store.rank - 1];
  for (int i = 0; i < block->var_count && i < loops->count; i++)
    if (block->vars[i].var == last && block->vars[i].kind == ITER_SPATIAL) return loops->items[i];
  return NULL;
}

// Each update for a piece of a row at once, in vectors.
static bool vectorise_updates(Model *m) {
  enum { VECTORS_AT_ONCE = 16 }; // what the next update reads stays in the first cache
  int lanes = m->machine->vector_bytes / 4, count = 0;
  LoopRefs loops = {0};
  LoopRef order[NEST_MAX_AXES + 3], vectors, inner;
  TRY(schedule_get_loops(m->sch, m->updates, &loops));
  LoopRef last = loop_along_memory(m, &loops);
  if (!last || lanes < 2 || loops.count > NEST_MAX_AXES) return false;
  int64_t extent = model_loop_extent(m, last), piece = (int64_t)lanes * VECTORS_AT_ONCE;
  if (extent < lanes) return false;
  for (int i = 0; i < loops.count; i++)
    if (loops.items[i] != last) order[count++] = loops.items[i];
  if (extent > piece && extent % piece == 0) {
    memmove(order + 1, order, sizeof *order * (size_t)count++);
    TRY(model_split(m, last, piece, &order[0], &last));
  }
  TRY(model_split(m, last, lanes, &vectors, &inner));
  order[count++] = vectors;
  order[count++] = inner;
  TRY(schedule_reorder(m->sch, order, count));
  TRY(schedule_vectorize(m->sch, inner));
  if (extent % lanes) TRY(schedule_loop_partition(m->sch, vectors));
  const Block *block = schedule_block(m->sch, m->updates);
  bool apart =
      order[0] != vectors && (count > loops.count + 1 || block->vars[0].binding == order[0]);
  if (apart) schedule_parallel(m->sch, order[0]);
  return true;
}

// Axes that the updates keep apart run in parallel; the updates of one stay in order.
static void schedule_updates(Model *m) {
  LoopRefs loops = {0};
  Schedule *before = schedule_copy(m->sch);
  if (vectorise_updates(m)) return;
  m->sch = m->choice->schedule = before;
  m->choice->slow = "its updates run one after the other";
  if (!schedule_get_loops(m->sch, m->updates, &loops) || loops.count < 2) return;
  if (schedule_block(m->sch, m->updates)->vars[0].kind == ITER_SPATIAL)
    schedule_parallel(m->sch, loops.items[0]);
}

static bool schedule_plain(Model *m) {
  TRY(model_lay_out_params(m));
  if (m->tail) {
    schedule_drop_padding_predicate(m->sch, m->tail); // stays where it must
  }
  if (m->anchor) {
    m->choice->slow = "no axis of the reduction can be a vector";
    return true;
  }
  TRY(vectorise_last(m, m->tail));
  if (m->updates) schedule_updates(m);
  return true;
}

// From the start, once more. Functions of several reductions keep all their blocks.
static bool begin(Model *m) {
  Context *context = m->context;
  KernelChoice *choice = m->choice;
  BlockRefs blocks = {0};
  *choice = (KernelChoice){.schedule = schedule_new(context, m->func)};
  choice->layouts = arena_array(&context->arena, const Layout *, m->func->param_count);
  m->sch = choice->schedule;
  m->anchor = m->tail = m->updates = NULL;
  m->reductions = 0;
  TRY(find_blocks(m, &blocks));
  return m->reductions > 1 ? inline_chains(m, &blocks) : inline_others(m, &blocks);
}

// Where one of the steps is refused, *refusal says why.
static bool try_quietly(Model *m, bool (*steps)(Model *m), const char **refusal) {
  schedule_quiet(m->sch, true);
  m->refusal = NULL;
  bool made = steps(m);
  if (!made) *refusal = m->refusal ? m->refusal : schedule_refusal(m->sch);
  schedule_quiet(m->sch, false);
  return made;
}

typedef enum Road { ROAD_TILE, ROAD_ROWS } Road;

// The roads that a function with reductions may take, the cheapest first; how many.
static int find_roads(Model *m, Road *roads) {
  roads[0] = ROAD_ROWS;
  if (m->reductions != 1) return m->reductions > 1;
  if (!nest_of_block(m->context, schedule_block(m->sch, m->anchor), &m->nest)) return 0;
  find_layouts(m);
  double rows = rows_cost(m->context, m->machine, &m->nest, &m->layouts);
  if (!tile_choose(m->context, m->machine, &m->nest, &m->layouts, &m->tile)) return rows >= 0;
  bool first = rows >= 0 && rows < tile_cost(m->machine, &m->tile);
  roads[first] = ROAD_TILE;
  roads[!first] = ROAD_ROWS;
  return 1 + (rows >= 0);
}

static bool take_road(Model *m, Road road, const char **refusal) {
  m->choice->tiled = road == ROAD_TILE;
  if (m->choice->tiled) m->choice->tile = m->tile;
  return try_quietly(m, road == ROAD_TILE ? schedule_tiled : model_rows, refusal);
}

// Is there no element to compute? Such code is as fast as any.
static bool is_empty(const PrimFunc *func) {
  const Buffer *last = func->param_count ? func->buffers[func->param_count - 1] : NULL;
  for (int i = 0; last && i < last->rank; i++)
    if (expr_is_int(last->shape[i], 0)) return true;
  return false;
}

bool kernel_schedule(Context *context, const HostMachine *machine, PrimFunc *func,
                     const KernelParam *params, KernelChoice *choice) {
  Model m = {
      .context = context, .machine = machine, .func = func, .params = params, .choice = choice};
  const char *refusal = NULL;
  Road roads[2];
  TRY(begin(&m));
  int count = find_roads(&m, roads);
  for (int i = 0; i < count; i++) {
    if (take_road(&m, roads[i], &refusal)) return true;
    TRY(begin(&m));
  }
  if (!try_quietly(&m, schedule_plain, &refusal)) { // too large to be proved independent
    TRY(begin(&m));
    TRY(model_lay_out_params(&m));
  }
  if (refusal) choice->slow = refusal;
  if (is_empty(func)) choice->slow = NULL;
  return true;
}
