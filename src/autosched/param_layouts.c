// SPDX-License-Identifier: Apache-2.0
// Applies the layouts of a kernel's parameters as schedule steps: the layouts that the planner
// gave, and for constants of a tiled kernel the order in which its loops read them
// (`packed_layout`). The weights of a convolution therefore get a layout such as OIHW16o here,
// where 16 is the width of the register tile's panel.
#include "autosched/internal.h"

int autosched_param_of(const AutoSched *s, const Buffer *buffer) {
  const PrimFunc *func = schedule_func(s->sch);
  for (int i = 0; i < func->param_count; i++)
    if (func->buffers[i] && func->buffers[i]->data == buffer->data) return i;
  return -1;
}

bool autosched_is_link(const AutoSched *s, const Buffer *buffer) {
  return s->bands && map_contains(&s->bands->layouts, buffer->data);
}

const Layout *autosched_layout_of(const AutoSched *s, const Buffer *buffer) {
  int param = autosched_param_of(s, buffer);
  if (param >= 0) return s->params[param].layout;
  return s->bands ? map_find(&s->bands->layouts, buffer->data) : NULL;
}

// The buffer slot through which `block` accesses parameter `param`; its index is -1 when the block
// does not.
static BufferSlot slot_of(const AutoSched *s, BlockRef ref, int param) {
  const Block *block = schedule_block(s->sch, ref);
  for (int w = 0; w < 2; w++) {
    const Region *regions = w ? block->writes : block->reads;
    int count = w ? block->write_count : block->read_count;
    for (int i = 0; i < count; i++)
      if (autosched_param_of(s, regions[i].buffer) == param) return (BufferSlot){w, i};
  }
  return (BufferSlot){false, -1};
}

static bool transform(AutoSched *s, BlockRef block, BufferSlot slot, const Layout *layout) {
  static const LayoutPadding any = {LAYOUT_PADDING_ANY, 0};
  const LayoutPadding *padding =
      layout->padding.kind == LAYOUT_PADDING_UNKNOWN ? &any : &layout->padding;
  return schedule_transform_layout(s->sch, block, slot, layout->map, padding);
}

static bool lay_out(AutoSched *s, int param, const Layout *layout) {
  BlockRefs blocks = {0};
  s->choice->layouts[param] = layout;
  if (!layout) return true;
  TRY(autosched_blocks(s, &blocks));
  for (int i = blocks.count - 1; i >= 0; i--) {
    BufferSlot slot = slot_of(s, blocks.items[i], param);
    if (slot.index >= 0) return transform(s, blocks.items[i], slot, layout);
  }
  return true;
}

bool autosched_lay_out_output(AutoSched *s) {
  bool lays_out = s->output_layout && autosched_param_of(s, s->output) < 0;
  return !lays_out || transform(s, s->tail, (BufferSlot){true, 0}, s->output_layout);
}

const LayoutExpr *autosched_digit(Context *context, int d, int64_t cut, int64_t radix) {
  const LayoutExpr *e = layout_axis(context, d);
  if (cut > 1) e = layout_expr(context, LAYOUT_DIV, e, layout_const(context, cut), NULL);
  if (radix > 1) e = layout_expr(context, LAYOUT_MOD, e, layout_const(context, radix), NULL);
  return e;
}

static const Layout *layout_on(Context *context, const Buffer *buffer, int count,
                               const LayoutExpr *const *outputs) {
  int64_t shape[TE_MAX_RANK];
  if (!buffer_static_shape(buffer, shape)) return NULL;
  const IndexMap *map = index_map_new(context, buffer->rank, NULL, count, outputs, NULL, NULL, 0);
  const Layout *layout = layout_static(context, map, shape, buffer->pos);
  return layout ? layout_with_padding(context, layout, (LayoutPadding){LAYOUT_PADDING_CONSTANT, 0})
                : NULL;
}

// Is dimension `d` of the read moved by one spatial axis alone, which is outside of the tiles? Such
// as the batch of a product.
static bool is_outside_tiles(const AutoSched *s, const NestRead *read, int d) {
  const Nest *nest = &s->nest;
  const Tile *tile = &s->choice->tile;
  for (int a = 0; a < nest->spatial_count; a++)
    if (nest_dimension_of(nest, read, a) == d)
      return a != tile->vector_axis && a != tile->row_axis[0] && a != tile->row_axis[1];
  return false;
}

// How many values of dimension `d` of the read the rows of a tile move over; 0: they do not.
static int64_t rows_along(const AutoSched *s, const NestRead *read, int d) {
  const Tile *tile = &s->choice->tile;
  for (int r = 0; r < 2 && !tile->flat; r++)
    if (tile->row_axis[r] >= 0 && nest_dimension_of(&s->nest, read, tile->row_axis[r]) == d)
      return tile->rows[r];
  return 0;
}

// The layout of a constant operand of the anchor in the order in which the loops read it: the axes
// outside of the tiles, the panel, the tiles of rows that move it, then the reduction from outside
// to inside, then the rows and the values of one panel.
static const Layout *packed_layout(AutoSched *s, const NestRead *read, int axis, int64_t width) {
  const Nest *nest = &s->nest;
  const Tile *tile = &s->choice->tile;
  const LayoutExpr *outputs[2 * TE_MAX_RANK + 2];
  int count = 0, panel = nest_dimension_of(nest, read, axis);
  bool used[TE_MAX_RANK] = {false};
  int64_t block = 0;
  int blocked = -1;
  for (int d = 0; d < read->buffer->rank; d++) {
    used[d] = d != panel && is_outside_tiles(s, read, d);
    if (used[d]) outputs[count++] = autosched_digit(s->context, d, 0, 0);
  }
  outputs[count++] = autosched_digit(s->context, panel, width, 0);
  used[panel] = true;
  for (int d = 0; d < read->buffer->rank; d++)
    if (!used[d] && rows_along(s, read, d))
      outputs[count++] = autosched_digit(s->context, d, rows_along(s, read, d), 0);
  for (int a = nest->spatial_count; a < nest->axis_count; a++) {
    int d = nest_dimension_of(nest, read, a);
    if (d < 0) continue;
    used[d] = true;
    bool inside = tile_innermost_axis(s->context, s->machine, nest, &s->layouts) == a;
    if (blocked < 0 && inside && a == nest->spatial_count && nest->axis_count > a + 1) {
      blocked = d;
      block = tile_reduction_block(s->machine, nest, a, tile);
      if (block < nest->axes[a].extent) outputs[count++] = autosched_digit(s->context, d, block, 0);
    } else {
      outputs[count++] = autosched_digit(s->context, d, 0, 0);
    }
  }
  for (int d = 0; d < read->buffer->rank; d++)
    if (!used[d]) outputs[count++] = autosched_digit(s->context, d, 0, rows_along(s, read, d));
  if (blocked >= 0)
    outputs[count++] = autosched_digit(s->context, blocked, 0,
                                       block < nest->axes[nest->spatial_count].extent ? block : 0);
  outputs[count++] = autosched_digit(s->context, panel, 0, width);
  return layout_on(s->context, read->buffer, count, outputs);
}

// The loads of a constant in a block that loads sums of the anchor, or a copy of them.
typedef struct EpilogueRead {
  const Buffer *sums, *constant;
  int axis;      // of the sums, along which vectors run
  Expr *along;   // the index of the sums there; NULL: none is found yet
  int dimension; // of the constant, whose index it is; -1: none
  bool differs;  // several loads have it in several dimensions
} EpilogueRead;

static bool find_sums(Visitor *visitor, Expr *e) {
  EpilogueRead *read = visitor->env;
  if (e->op == EXPR_LOAD && e->as.buffer->data == read->sums->data)
    read->along = e->args[read->axis];
  return true;
}

static bool find_constant(Visitor *visitor, Expr *e) {
  EpilogueRead *read = visitor->env;
  if (e->op != EXPR_LOAD || e->as.buffer->data != read->constant->data) return true;
  int dimension = -1;
  for (int d = 0; d < e->count; d++)
    if (e->args[d] == read->along) dimension = d;
  read->differs |= read->dimension >= 0 && read->dimension != dimension;
  read->dimension = dimension;
  return true;
}

// The dimension of a constant of the epilogue that moves with the vectors of the tile; -1: none
// does.
static int dimension_of_vectors(const AutoSched *s, const Buffer *constant) {
  const Tile *tile = &s->choice->tile;
  EpilogueRead read = {.constant = constant, .dimension = -1};
  Block *tail = schedule_block(s->sch, s->tail);
  read.sums = schedule_block(s->sch, s->staged ? s->staged : s->anchor)->writes[0].buffer;
  read.axis = -1;
  for (int d = 0; d < s->nest.output->rank; d++)
    if (s->nest.output_axis[d] == (tile->turned ? tile->row_axis[1] : tile->vector_axis))
      read.axis = d;
  if (read.axis < 0 || s->tail == s->anchor) return -1;
  visit_stmt(&(Visitor){.env = &read, .enter_expr = find_sums}, tail->body);
  if (read.along) visit_stmt(&(Visitor){.env = &read, .enter_expr = find_constant}, tail->body);
  return read.differs ? -1 : read.dimension;
}

// The layout of a constant of the epilogue in which dimension `d` moves with the vectors: it is the
// innermost, and padded to whole vectors.
static const Layout *vector_layout(AutoSched *s, const Buffer *buffer, int d, bool padded) {
  int lanes = s->choice->tile.lanes, count = 0;
  const LayoutExpr *outputs[TE_MAX_RANK + 1];
  for (int i = 0; i < buffer->rank; i++)
    if (i != d) outputs[count++] = autosched_digit(s->context, i, 0, 0);
  if (padded) outputs[count++] = autosched_digit(s->context, d, lanes, 0);
  outputs[count++] = autosched_digit(s->context, d, 0, padded ? lanes : 0);
  return layout_on(s->context, buffer, count, outputs);
}

static bool read_packs(const AutoSched *s, int read) {
  int param = autosched_param_of(s, s->nest.reads[read].buffer);
  return param >= 0 && s->params[param].constant;
}

void autosched_find_layouts(AutoSched *s) {
  for (int i = 0; i < s->nest.read_count; i++) {
    s->layouts.reads[i] = autosched_layout_of(s, s->nest.reads[i].buffer);
    s->layouts.packed[i] = read_packs(s, i);
  }
  s->layouts.output = s->planned ? s->planned->output : s->output_layout;
}

static bool lay_out_constant(AutoSched *s, int param) {
  const Buffer *buffer = schedule_func(s->sch)->buffers[param];
  for (int i = 0; i < s->nest.read_count; i++) {
    const NestRead *read = &s->nest.reads[i];
    if (read->buffer->data != buffer->data) continue;
    int64_t width;
    int axis = tile_panel_axis(&s->nest, read, &s->choice->tile, &width);
    return axis < 0 || lay_out(s, param, packed_layout(s, read, axis, width));
  }
  int d = dimension_of_vectors(s, buffer);
  int64_t extent;
  if (d < 0 || !expr_as_int(buffer->shape[d], &extent)) return true;
  bool padded = extent % s->choice->tile.lanes != 0;
  if (!padded && d == buffer->rank - 1) return true;
  return lay_out(s, param, vector_layout(s, buffer, d, padded));
}

bool autosched_lay_out_params(AutoSched *s) {
  for (int i = s->func->param_count - 1; i >= 0; i--) {
    if (!s->func->buffers[i] || (s->foreign && s->foreign[i])) continue;
    TRY(s->params[i].constant && s->choice->tiled ? lay_out_constant(s, i)
                                                  : lay_out(s, i, s->params[i].layout));
  }
  return true;
}
