// SPDX-License-Identifier: Apache-2.0
// Which layouts a tensor may have. A reduction proposes the axis that the model would make its
// vector axis if layouts were free; what only moves or combines elements hands proposals on.
#include "plan/internal.h"

static int lanes_of(const Planner *p, const Buffer *buffer) {
  return p->machine->vector_bytes / MAX_OF(dtype_bytes(buffer->type), 1);
}

static const LayoutExpr *axis_part(Context *context, int axis, LayoutOp op, int64_t by) {
  return layout_expr(context, op, layout_axis(context, axis), layout_const(context, by), NULL);
}

static const Layout *layout_of_outputs(const Planner *p, const Buffer *buffer, int count,
                                       const LayoutExpr *const *outputs) {
  static const char *const usual[TE_MAX_RANK + 1] = {[3] = "NCW", [4] = "NCHW", [5] = "NCDHW"};
  Context *context = p->context;
  int64_t shape[TE_MAX_RANK];
  Str names[TE_MAX_RANK];
  if (!buffer_static_shape(buffer, shape)) return NULL;
  for (int d = 0; d < buffer->rank; d++)
    names[d] = usual[buffer->rank] ? str_format(context, "%c", usual[buffer->rank][d])
                                   : str_format(context, "i%d", d);
  const IndexMap *map = index_map_new(context, buffer->rank, names, count, outputs, NULL, NULL, 0);
  const Layout *layout = layout_static(context, map, shape, buffer->pos);
  return layout ? layout_with_padding(context, layout, (LayoutPadding){LAYOUT_PADDING_ANY, 0})
                : NULL;
}

// [.., axis // lanes, .., axis % lanes], or the axis moved to the end.
static const Layout *with_inner_axis(const Planner *p, const Buffer *buffer, int axis,
                                     bool blocked) {
  const LayoutExpr *outputs[TE_MAX_RANK + 1];
  int count = 0, lanes = lanes_of(p, buffer);
  for (int d = 0; d < buffer->rank; d++) {
    if (d != axis)
      outputs[count++] = layout_axis(p->context, d);
    else if (blocked)
      outputs[count++] = axis_part(p->context, d, LAYOUT_DIV, lanes);
  }
  outputs[count++] =
      blocked ? axis_part(p->context, axis, LAYOUT_MOD, lanes) : layout_axis(p->context, axis);
  return layout_of_outputs(p, buffer, count, outputs);
}

enum { PANEL_VECTORS = 4 };

// [batches.., axis // width, reduced.., axis % width]: what one panel reads lies in one piece.
static const Layout *in_panels(const Planner *p, const Nest *nest, const NestRead *read, int axis) {
  const LayoutExpr *outputs[TE_MAX_RANK + 1];
  int count = 0, width = lanes_of(p, read->buffer) * PANEL_VECTORS;
  bool reduced[TE_MAX_RANK] = {false};
  for (int a = nest->spatial_count; a < nest->axis_count; a++) {
    int d = nest_dimension_of(nest, read, a);
    if (d >= 0) reduced[d] = true;
  }
  for (int pass = 0; pass < 2; pass++) {
    for (int d = 0; d < read->buffer->rank; d++)
      if (d != axis && reduced[d] == (pass == 1)) outputs[count++] = layout_axis(p->context, d);
    if (pass == 0) outputs[count++] = axis_part(p->context, axis, LAYOUT_DIV, width);
  }
  outputs[count++] = axis_part(p->context, axis, LAYOUT_MOD, width);
  return layout_of_outputs(p, read->buffer, count, outputs);
}

static void add_candidate(Candidates *c, const Layout *layout, int axis, bool blocked,
                          bool panels) {
  if (!layout || c->count == PLAN_MAX_LAYOUTS) return;
  c->items[c->count] = layout;
  c->axis[c->count] = axis;
  c->panels[c->count] = panels;
  c->blocked[c->count++] = blocked;
}

static void propose(Planner *p, const StageTensor *tensor, int axis, bool blocked) {
  Candidates *c = &p->candidates[tensor->index];
  int64_t extent;
  if (c->count == PLAN_MAX_LAYOUTS || axis < 0 || tensor->buffer->rank < 3) return;
  if (!expr_as_int(tensor->buffer->shape[axis], &extent) || extent < 2) return;
  if (!blocked && axis == tensor->buffer->rank - 1) return;
  for (int i = 1; i < c->count; i++)
    if (c->axis[i] == axis && c->blocked[i] == blocked) return;
  add_candidate(c, with_inner_axis(p, tensor->buffer, axis, blocked), axis, blocked, false);
}

static bool reads_constant(const Stage *stage) {
  for (int i = 0; i < stage->reads.count; i++)
    if (((const StageTensor *)stage->reads.items[i])->data) return true;
  return false;
}

// A tensor computed at run time that is the matrix of a product, read again for every tile of rows.
// Where the other operand is a constant, that one is packed instead.
static void propose_panels(Planner *p, const Stage *stage) {
  enum { SMALLEST = 1 << 16 }; // bytes; below, all of it stays in the first cache
  Nest nest;
  Stmt *s = te_stage_stmt(p->context, stage->te);
  while (s->kind == STMT_FOR) s = s->as.loop.body;
  if (reads_constant(stage) || !nest_of_block(p->context, s->as.block, &nest)) return;
  for (int i = 0; i < nest.read_count; i++) {
    const NestRead *read = &nest.reads[i];
    const StageTensor *tensor = stage_tensor_of(p->stages, read->buffer);
    int last = nest.output_axis[nest.output->rank - 1];
    int d = last < 0 ? -1 : nest_dimension_of(&nest, read, last);
    if (!tensor || tensor->data || d < 0 || tensor_bytes_as(tensor, NULL) < SMALLEST) continue;
    bool matrix = false; // other axes of the output do not move it
    for (int a = 0; a < nest.spatial_count; a++)
      matrix |= a != last && nest.axes[a].extent > 1 && !nest_depends(read, a);
    Candidates *c = &p->candidates[tensor->index];
    if (matrix) add_candidate(c, in_panels(p, &nest, read, d), d, true, true);
  }
}

// The dimension of the output along which the model would vectorise.
static int preferred_dimension(Planner *p, const Stage *stage) {
  Nest nest;
  Tile tile;
  Stmt *s = te_stage_stmt(p->context, stage->te);
  while (s->kind == STMT_FOR) s = s->as.loop.body;
  if (!nest_of_block(p->context, s->as.block, &nest)) return -1;
  int best = -1;
  double best_cost = 0;
  for (int d = 0; d < nest.output->rank; d++) {
    int axis = nest.output_axis[d];
    const Layout *output = axis < 0 ? NULL : with_inner_axis(p, nest.output, d, true);
    if (!output) continue;
    NestLayouts layouts = {.output = output};
    for (int i = 0; i < nest.read_count; i++) {
      int along = nest_dimension_of(&nest, &nest.reads[i], axis);
      if (along >= 0) layouts.reads[i] = with_inner_axis(p, nest.reads[i].buffer, along, true);
    }
    if (!tile_choose(p->context, p->machine, &nest, &layouts, &tile)) continue;
    double cost = tile_cost(p->machine, &tile);
    if (tile.vector_axis == axis && (best < 0 || cost < best_cost * 0.99)) {
      best = d;
      best_cost = cost;
    }
  }
  return best;
}

static void hand_on(Planner *p, const Stage *stage) {
  for (int i = 0; i < stage->reads.count; i++) {
    const StageTensor *from = stage->reads.items[i];
    const Candidates *c = &p->candidates[from->index];
    if (from->buffer->rank != stage->output->buffer->rank) continue;
    for (int j = 1; j < c->count; j++)
      if (!c->panels[j]) propose(p, stage->output, c->axis[j], c->blocked[j]);
  }
}

void planner_find_candidates(Planner *p) {
  int count = p->stages->tensors.count;
  p->candidates = arena_array(&p->context->arena, Candidates, count);
  for (int i = 0; i < count; i++) {
    p->candidates[i].count = 1;
    p->candidates[i].axis[0] = -1;
  }
  for (int i = 0; i < p->stages->stages.count; i++) {
    const Stage *stage = p->stages->stages.items[i];
    if (!stage_is_reduction(stage)) {
      hand_on(p, stage);
      continue;
    }
    int preferred = stage->output->buffer->rank < 3 ? -1 : preferred_dimension(p, stage);
    propose(p, stage->output, preferred, true);
    propose(p, stage->output, preferred, false);
    propose_panels(p, stage);
  }
}
