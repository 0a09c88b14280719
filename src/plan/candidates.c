// SPDX-License-Identifier: Apache-2.0
// Finds the layouts that each tensor may have (its candidates). A reduction proposes as innermost
// the axis that the auto-scheduler would vectorise if layouts were free; stages that move or
// combine elements pass the proposals of their reads on to their outputs.
#include "plan/internal.h"

static int lanes_of(const Planner *p, const Buffer *buffer) {
  return machine_lanes(p->machine, buffer->type);
}

static Nest *read_nest(const Planner *p, const Stage *stage) {
  Nest *nest = arena_new(&p->context->arena, Nest);
  Stmt *s = te_stage_stmt(p->context, stage->te);
  while (s->kind == STMT_FOR) s = s->as.loop.body;
  return nest_of_block(p->context, s->as.block, nest) ? nest : NULL;
}

const Nest *planner_nest(const Planner *p, const Stage *stage) {
  if (stage_is_ordered(stage)) return NULL;
  Nest *nest = map_find(p->nests, stage);
  if (!nest) nest = read_nest(p, stage);
  if (nest) map_put(p->nests, stage, nest);
  return nest;
}

// ---- Layouts

static const LayoutExpr *axis_part(Context *context, int axis, LayoutOp op, int64_t by) {
  return layout_expr(context, op, layout_axis(context, axis), layout_const(context, by), NULL);
}

// Axes have the same names in all layouts, so that equal maps are the same map.
static const IndexMap *map_of_outputs(Context *context, int rank, int count,
                                      const LayoutExpr *const *outputs) {
  static const char *const usual[TE_MAX_RANK + 1] = {[3] = "NCW", [4] = "NCHW", [5] = "NCDHW"};
  Str names[TE_MAX_RANK];
  for (int d = 0; d < rank; d++)
    names[d] =
        usual[rank] ? str_format(context, "%c", usual[rank][d]) : str_format(context, "i%d", d);
  return index_map_new(context, rank, names, count, outputs, NULL, NULL, 0);
}

static const Layout *layout_of_outputs(const Planner *p, const Buffer *buffer, int count,
                                       const LayoutExpr *const *outputs) {
  int64_t shape[TE_MAX_RANK];
  if (!buffer_static_shape(buffer, shape)) return NULL;
  const IndexMap *map = map_of_outputs(p->context, buffer->rank, count, outputs);
  const Layout *layout = layout_static(p->context, map, shape, buffer->pos);
  return layout ? layout_with_padding(p->context, layout, (LayoutPadding){LAYOUT_PADDING_ANY, 0})
                : NULL;
}

// The layout [.., axis // block, .., axis % block], or (block 0) the axis moved to the end.
static const Layout *with_inner_axis(const Planner *p, const Buffer *buffer, int axis,
                                     int64_t block) {
  const LayoutExpr *outputs[TE_MAX_RANK + 1];
  int count = 0;
  for (int d = 0; d < buffer->rank; d++) {
    if (d != axis)
      outputs[count++] = layout_axis(p->context, d);
    else if (block)
      outputs[count++] = axis_part(p->context, d, LAYOUT_DIV, block);
  }
  outputs[count++] =
      block ? axis_part(p->context, axis, LAYOUT_MOD, block) : layout_axis(p->context, axis);
  return layout_of_outputs(p, buffer, count, outputs);
}

// The width of a panel, in vectors: as many as a tile of several rows has, or twice as many.
static int64_t panel_vectors(const Planner *p) {
  return MAX_OF(p->machine->vector_registers / cost_model_of(p->machine)->registers_a_panel_vector,
                1);
}

// The layout [batches.., axis // width, reduced.., axis % width]: one panel is contiguous.
static const Layout *in_panels(const Planner *p, const Nest *nest, const NestRead *read, int axis,
                               int64_t width) {
  const LayoutExpr *outputs[TE_MAX_RANK + 1];
  int count = 0;
  bool reduced[TE_MAX_RANK] = {false};
  for (int d = 0; d < read->buffer->rank; d++)
    for (int a = nest->spatial_count; a < nest->axis_count; a++)
      reduced[d] |= nest_moves(read, d, a);
  for (int pass = 0; pass < 2; pass++) {
    for (int d = 0; d < read->buffer->rank; d++)
      if (d != axis && reduced[d] == (pass == 1)) outputs[count++] = layout_axis(p->context, d);
    if (pass == 0) outputs[count++] = axis_part(p->context, axis, LAYOUT_DIV, width);
  }
  outputs[count++] = axis_part(p->context, axis, LAYOUT_MOD, width);
  return layout_of_outputs(p, read->buffer, count, outputs);
}

// ---- Candidates

bool candidate_like(const Candidate *a, const Candidate *b) {
  if (a->axis != b->axis || a->block != b->block || a->panels != b->panels) return false;
  return a->axis != CANDIDATE_OTHER || index_map_same(a->layout->map, b->layout->map);
}

int candidates_add(const Planner *p, const StageTensor *tensor, Candidate candidate) {
  Candidates *c = &p->candidates[tensor->index];
  if (c->frozen) return -1;
  if (c->count < p->most_layouts) {
    c->items[c->count] = candidate;
    return c->count++;
  }
  for (int i = 0; i < c->count; i++)
    if (candidate_like(&c->items[i], &candidate)) return -1;
  c->left_out++;
  return -1;
}

// A layout that the user named, under the names that the planner gives axes.
Candidate planner_candidate_of(const Planner *p, const Buffer *buffer, const Layout *layout) {
  const IndexMap *map = layout->map;
  const LayoutExpr *last = map->output_count ? map->outputs[map->output_count - 1] : NULL;
  if (last && last->op == LAYOUT_MOD) last = last->args[0];
  if (last && last->op == LAYOUT_AXIS && buffer->rank <= TE_MAX_RANK) {
    int axis = (int)last->value;
    int64_t block = nest_block(layout, axis);
    if (map->outputs[map->output_count - 1] == last) block = 0;
    const Layout *usual = with_inner_axis(p, buffer, axis, block);
    if (usual && layout_equal(p->context, usual, layout).verdict == VERDICT_YES)
      return (Candidate){usual, axis, block, .requested = true};
  }
  map = map_of_outputs(p->context, buffer->rank, map->output_count, map->outputs);
  layout = layout_new(p->context, map, layout->shape, layout->physical, layout->facts,
                      (LayoutPadding){LAYOUT_PADDING_ANY, 0}, buffer->pos);
  return (Candidate){layout, CANDIDATE_OTHER, 0, .requested = true};
}

static void propose(Planner *p, const StageTensor *tensor, int axis, int64_t block,
                    bool requested) {
  Candidates *c = &p->candidates[tensor->index];
  int64_t extent;
  if (c->frozen || axis < 0 || (tensor->buffer->rank < 3 && !requested)) return;
  if (!expr_as_int(tensor->buffer->shape[axis], &extent) || extent < 2) return;
  if (!block && axis == tensor->buffer->rank - 1) return;
  Candidate candidate = {.axis = axis, .block = block, .requested = requested};
  for (int i = 1; i < c->count; i++)
    if (candidate_like(&c->items[i], &candidate)) return;
  candidate.layout = with_inner_axis(p, tensor->buffer, axis, block);
  if (candidate.layout) candidates_add(p, tensor, candidate);
}

static bool reads_constant(const Stage *stage) {
  for (int i = 0; i < stage->reads.count; i++)
    if (((const StageTensor *)stage->reads.items[i])->data) return true;
  return false;
}

// The dimension of a read along which `axis` moves and which panels of `width` can hold, or -1 when
// the read has none. Its index is the axis, or the axis plus an offset that is a multiple of the
// width, as for the columns of one attention head. The width is reduced until the offsets are
// multiples of it.
static int panel_dimension(const Nest *nest, const NestRead *read, int axis, int64_t *width) {
  int whole = nest_dimension_of(nest, read, axis), found = -1;
  if (whole >= 0) return whole;
  for (int d = 0; d < read->buffer->rank; d++) {
    if (!read->linear[d]) return -1;
    if (!nest_moves(read, d, axis)) continue;
    if (found >= 0 || read->coefficient[d][axis] != 1) return -1;
    found = d;
  }
  for (int a = 0; a < nest->axis_count && found >= 0; a++)
    if (a != axis) *width = gcd_of(*width, read->coefficient[found][a]);
  if (found >= 0) *width = gcd_of(*width, read->base[found]);
  if (found >= 0 && read->group_size[found]) *width = gcd_of(*width, read->group_step[found]);
  return *width % 8 ? -1 : found;
}

// Where elementwise stages after a reduction are read in a layout, the reduction may write that
// layout.
static void pass_back(Planner *p, const StageTensor *tensor, const Candidate *candidate) {
  const Stage *stage = tensor->producer;
  if (!stage || stage->member_count || stage_is_reduction(stage)) return;
  for (int i = 0; i < stage->reads.count; i++) {
    const StageTensor *from = stage->reads.items[i];
    if (!from->producer || from->users.count != 1 || !stage_reads_in_place(stage, from)) continue;
    candidates_add(p, from, *candidate);
    pass_back(p, from, candidate);
  }
}

// Proposes panels for a tensor that is computed at run time and is the matrix of a product, which
// is read again for every tile of rows. A constant operand is packed without a proposal.
static void propose_panels(Planner *p, const Stage *stage) {
  double smallest = (double)cost_model_of(p->machine)->small_operand_bytes;
  const Nest *nest = reads_constant(stage) ? NULL : planner_nest(p, stage);
  if (!nest) return;
  for (int i = 0; i < nest->read_count; i++) {
    const NestRead *read = &nest->reads[i];
    const StageTensor *tensor = stage_tensor_of(p->stages, read->buffer);
    int64_t width = (int64_t)lanes_of(p, read->buffer) * panel_vectors(p);
    int last = nest->output->rank ? nest->output_axis[nest->output->rank - 1] : -1;
    int d = last < 0 ? -1 : panel_dimension(nest, read, last, &width);
    if (!tensor || tensor->data || d < 0 || planner_tensor_bytes(tensor, NULL) < smallest) continue;
    bool matrix = false; // the output's other axes do not change the index of this read
    for (int a = 0; a < nest->spatial_count; a++)
      matrix |= a != last && nest->axes[a].extent > 1 && !nest_depends(read, a);
    const Layout *layout = matrix ? in_panels(p, nest, read, d, width) : NULL;
    if (!layout) continue;
    Candidate candidate = {layout, d, width, .panels = true};
    candidates_add(p, tensor, candidate);
    pass_back(p, tensor, &candidate);
  }
}

// Proposes, for a tensor that is row-major so far, the layout whose innermost axis is the one that
// the reduction's inner loop follows, such as the channels of an image.
static void propose_reads(Planner *p, const Stage *stage) {
  const Nest *nest = planner_nest(p, stage);
  if (!nest || nest->axis_count == nest->spatial_count) return;
  for (int i = 0; i < nest->read_count; i++) {
    const StageTensor *tensor = stage_tensor_of(p->stages, nest->reads[i].buffer);
    if (tensor && !tensor->data && p->candidates[tensor->index].count == 1)
      propose(p, tensor, nest_dimension_of(nest, &nest->reads[i], nest->spatial_count), 0, false);
  }
}

// The dimension of the output along which the auto-scheduler would vectorise when the operands that
// are computed at run time have the layouts best for it, or are row-major.
static int preferred_dimension(Planner *p, const Stage *stage, bool row_major) {
  const Nest *nest = planner_nest(p, stage);
  Tile tile;
  if (!nest) return -1;
  int best = -1;
  double best_cost = 0;
  for (int d = 0; d < nest->output->rank; d++) {
    int axis = nest->output_axis[d], lanes = lanes_of(p, nest->output);
    const Layout *output = axis < 0 ? NULL : with_inner_axis(p, nest->output, d, lanes);
    if (!output) continue;
    NestLayouts layouts = {.output = output};
    for (int i = 0; i < nest->read_count; i++) {
      const Buffer *buffer = nest->reads[i].buffer;
      int along = nest_dimension_of(nest, &nest->reads[i], axis);
      const StageTensor *tensor = stage_tensor_of(p->stages, buffer);
      bool stays = row_major && tensor && !tensor->data;
      if (along >= 0 && !stays)
        layouts.reads[i] = with_inner_axis(p, buffer, along, lanes_of(p, buffer));
    }
    if (!tile_choose(p->context, p->machine, nest, &layouts, &tile)) continue;
    double cost = tile_cost(p->machine, &tile);
    if (tile.vector_axis == axis &&
        (best < 0 || cost < best_cost * cost_model_of(p->machine)->tie_axis)) {
      best = d;
      best_cost = cost;
    }
  }
  return best;
}

// Passes a layout that has no usual form on to a tensor of the same shape.
static void pass_on_other(Planner *p, const Stage *stage, const StageTensor *from,
                          const Candidate *candidate) {
  Candidates *c = &p->candidates[stage->output->index];
  if (!stage_reads_in_place(stage, from)) return;
  for (int i = 1; i < c->count; i++)
    if (candidate_like(&c->items[i], candidate)) return;
  candidates_add(p, stage->output, *candidate);
}

// Passes the candidates of a stage's reads on to its output. The output of a reduction receives
// them too, because the layout that is best for the reduction alone need not be best together with
// its neighbours' layouts. With `only_requested`, only the layouts that the user named are passed
// on.
static void pass_on(Planner *p, const Stage *stage, bool only_requested) {
  for (int i = 0; i < stage->reads.count; i++) {
    const StageTensor *from = stage->reads.items[i];
    const Candidates *c = &p->candidates[from->index];
    if (from->buffer->rank != stage->output->buffer->rank) continue;
    for (int j = 1; j < c->count; j++) {
      if (c->items[j].panels || (only_requested && !c->items[j].requested)) continue;
      if (c->items[j].axis == CANDIDATE_OTHER)
        pass_on_other(p, stage, from, &c->items[j]);
      else
        propose(p, stage->output, c->items[j].axis, c->items[j].block, c->items[j].requested);
    }
  }
}

void planner_find_candidates(Planner *p, bool proposals) {
  for (int i = 0; i < p->stages->stages.count; i++) {
    const Stage *stage = p->stages->stages.items[i];
    bool reduction = stage_is_reduction(stage);
    if (stage->member_count) continue; // groups are written row-major
    if (!reduction || !proposals) {
      pass_on(p, stage, !proposals);
      continue;
    }
    propose_reads(p, stage);
    int rank = stage->output->buffer->rank;
    for (int row_major = 0; row_major < 2 && rank > 2; row_major++) {
      // For images by constants, the operand need not have the layout that suits the output best.
      if (row_major && (rank == 3 || !reads_constant(stage))) break;
      int preferred = preferred_dimension(p, stage, row_major);
      propose(p, stage->output, preferred, lanes_of(p, stage->output->buffer), false);
      propose(p, stage->output, preferred, 0, false);
    }
    propose_panels(p, stage);
    pass_on(p, stage, false);
  }
}
