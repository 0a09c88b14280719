// SPDX-License-Identifier: Apache-2.0
// Finds the layouts that each tensor may have (its candidates). A reduction proposes as innermost
// the axis that the auto-scheduler would vectorise if layouts were free. Every stage passes the
// candidates of its reads on to its output, and those of its output back to its reads, through its
// relations (relations.h), until there is nothing new.
#include "plan/internal.h"

static int lanes_of(const Planner *p, const Buffer *buffer) {
  return machine_lanes(p->machine, buffer->type);
}

static Nest *read_nest(const Planner *p, const Stage *stage) {
  Nest *nest = arena_new(&p->context->arena, Nest);
  return nest_of_block(p->context, te_stage_block(p->context, stage->te), nest) ? nest : NULL;
}

const Nest *planner_nest(const Planner *p, const Stage *stage) {
  if (stage_is_ordered(stage)) return NULL;
  if (!map_contains(p->nests, stage)) map_put(p->nests, stage, read_nest(p, stage));
  return map_find(p->nests, stage);
}

// ---- Layouts

static const LayoutExpr *axis_part(Context *context, int axis, LayoutOp op, int64_t by) {
  return layout_expr(context, op, layout_axis(context, axis), layout_const(context, by), NULL);
}

// Is memory the row-major array of the digits of the walk, with nothing between?
static bool is_dense(const Layout *layout, const LayoutWalk *walk) {
  int64_t size, digits = 1;
  if (!layout) return true;
  for (int i = 0; i < walk->count; i++)
    if (!mul_fits(digits, walk->digits[i].extent, &digits)) return false;
  return layout_physical_size(layout, &size) && size == digits;
}

static Candidate *candidate_make(const Planner *p, const Buffer *buffer, const Layout *layout) {
  Candidate *candidate = arena_new(&p->context->arena, Candidate);
  int64_t shape[TE_MAX_RANK];
  LayoutWalk walk;
  candidate->layout = layout;
  if (!buffer_static_shape(buffer, shape) ||
      !layout_walk(p->context, layout, shape, buffer->rank, &walk))
    return candidate;
  candidate->walk = walk_keep(p->context, &walk);
  candidate->dense = is_dense(layout, &walk);
  return candidate;
}

static Candidate candidate_new(const Planner *p, const Buffer *buffer, const Layout *layout) {
  PlanShape *shape = planner_shape(p, buffer);
  if (!shape) return (Candidate){.layout = layout};
  uint64_t key = map_key(layout) + 1;
  Candidate *known = map_get(&shape->own, key);
  if (!known) map_set(&shape->own, key, known = candidate_make(p, buffer, layout));
  return *known;
}

Candidate planner_row_major(const Planner *p, const Buffer *buffer) {
  return candidate_new(p, buffer, NULL);
}

static const Layout *make_inner_axis(const Planner *p, const Buffer *buffer, int axis,
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
  return planner_layout_of_outputs(p, buffer, count, outputs);
}

const Layout *planner_inner_axis(const Planner *p, const Buffer *buffer, int axis, int64_t block) {
  PlanShape *shape = planner_shape(p, buffer);
  if (!shape) return make_inner_axis(p, buffer, axis, block);
  uint64_t key = (uint64_t)block * TE_MAX_RANK + (uint64_t)axis;
  const Layout *known = map_get(&shape->inner, key);
  if (!known)
    map_set(&shape->inner, key, (void *)(known = make_inner_axis(p, buffer, axis, block)));
  return known;
}

// The width of a panel, in vectors: as many as a tile of several rows has, or twice as many.
static int64_t panel_vectors(const Planner *p) {
  return MAX_OF(p->machine->vector_registers / cost_model_of(p->machine)->registers_a_panel_vector,
                1);
}

// The layout [batches.., axis // width, reduced.., axis % width]: one panel is contiguous. The
// dimension that the reduction walks innermost is the last of those that it moves.
static const Layout *in_panels(const Planner *p, const Nest *nest, const NestRead *read, int axis,
                               int64_t width) {
  const LayoutExpr *outputs[TE_MAX_RANK + 1];
  int count = 0;
  int innermost = nest_dimension_of(nest, read, nest->spatial_count);
  bool reduced[TE_MAX_RANK] = {false};
  for (int d = 0; d < read->buffer->rank; d++)
    for (int a = nest->spatial_count; a < nest->axis_count; a++)
      reduced[d] |= nest_moves(read, d, a);
  for (int pass = 0; pass < 2; pass++) {
    for (int d = 0; d < read->buffer->rank; d++)
      if (d != axis && d != innermost && reduced[d] == (pass == 1))
        outputs[count++] = layout_axis(p->context, d);
    if (pass == 0) outputs[count++] = axis_part(p->context, axis, LAYOUT_DIV, width);
  }
  if (innermost >= 0) outputs[count++] = layout_axis(p->context, innermost);
  outputs[count++] = axis_part(p->context, axis, LAYOUT_MOD, width);
  return planner_layout_of_outputs(p, read->buffer, count, outputs);
}

// ---- Candidates

bool planner_same_layout(const Layout *a, const Layout *b) {
  return a == b || (a && b && index_map_same(a->map, b->map));
}

int planner_candidate_number(const Planner *p, const StageTensor *tensor, const Layout *layout) {
  const Candidates *c = &p->candidates[tensor->index];
  for (int i = 0; i < c->count; i++)
    if (planner_same_layout(c->items[i].layout, layout)) return i;
  return -1;
}

// Are two candidates of one tensor the same memory? The spelling of a layout that the user named
// counts, because it gives the tensor's physical shape.
static bool same_candidate(const Candidate *known, const Candidate *candidate) {
  if (planner_same_layout(known->layout, candidate->layout)) return true;
  return !candidate->requested && known->dense && candidate->dense &&
         walk_equal(known->walk, candidate->walk);
}

// A tensor with several readers has a state for each set of copies that they may read.
static int most_layouts(const Planner *p, const StageTensor *tensor) {
  enum { FEW_READERS = 3, MOST_SHARED = 16 };
  bool few = p->is_small || planner_most_readers(tensor) <= FEW_READERS;
  return few ? p->most_layouts : MIN_OF(MOST_SHARED, p->most_layouts);
}

static int number_of(const Candidates *c, const Candidate *candidate) {
  for (int i = 0; i < c->count; i++)
    if (same_candidate(&c->items[i], candidate)) return i;
  return -1;
}

// Notes what is true of the same memory where it was found in another way.
static void merge_candidate(Candidates *c, Candidate *known, const Candidate *found) {
  known->requested |= found->requested;
  known->copied &= found->copied;
  c->opened += known->panels && !found->panels;
  known->panels &= found->panels;
}

int candidates_add(const Planner *p, const StageTensor *tensor, Candidate candidate) {
  Candidates *c = &p->candidates[tensor->index];
  int known = number_of(c, &candidate);
  if (known >= 0) merge_candidate(c, &c->items[known], &candidate);
  if (known >= 0 || c->frozen) return known;
  if (c->count == most_layouts(p, tensor)) {
    c->left_out++;
    return -1;
  }
  candidate.bytes = planner_tensor_bytes(tensor, candidate.layout);
  array_push((Arena *)&p->growing, c, candidate);
  return c->count - 1;
}

enum { FEW_LAYOUTS = 5 };

// Counts a candidate that is not looked at because the tensor has others.
static void note_left_out(const Planner *p, const StageTensor *tensor, Candidate candidate) {
  Candidates *c = &p->candidates[tensor->index];
  c->left_out += number_of(c, &candidate) < 0 && !c->frozen && !p->is_small;
}

// The layout that a walk describes, where the layout is equal to it; else the layout itself, under
// the names that the planner gives axes.
Candidate planner_candidate_of(const Planner *p, const Buffer *buffer, const Layout *layout) {
  Candidate own = candidate_new(p, buffer, layout), usual;
  if (own.walk && planner_candidate_of_walk(p, buffer, own.walk, &usual)) {
    const Layout *same =
        usual.layout ? usual.layout : layout_row_major(p->context, layout->rank, layout->extents);
    if (layout_equal(p->context, same, layout).verdict == VERDICT_YES) return usual;
  }
  layout = layout_with_names(p->context, layout, NULL);
  own.layout = layout_with_padding(p->context, layout, (LayoutPadding){LAYOUT_PADDING_ANY, 0});
  return own; // a walk does not depend on names
}

// ---- Proposals of reductions

// A candidate that a reduction proposes for a tensor.
typedef struct Proposal {
  int read; // the tensor: an entry of the stage's reads; -1: its output
  Candidate candidate;
  bool only; // it is taken only where the tensor has few layouts so far
} Proposal;

// The proposals of all stages whose loops are equal.
typedef struct Proposals {
  Planner *planner;
  const Stage *stage; // the first of these stages
  Array(Proposal) items;
  bool only; // of the proposals that are added next
} Proposals;

static void add_proposal(Proposals *to, const StageTensor *tensor, Candidate candidate) {
  int read = stage_read_of(to->stage, tensor);
  array_push(&to->planner->context->arena, &to->items, ((Proposal){read, candidate, to->only}));
}

static const StageTensor *proposed_tensor(const Stage *stage, const Proposal *proposal) {
  return proposal->read < 0 ? stage->output : stage->reads.items[proposal->read];
}

static void take_proposals(Planner *p, const Stage *stage, const Proposals *from) {
  const StageTensor *last = NULL; // with candidates from proposals that are taken only together
  for (int i = 0; i < from->items.count; i++) {
    const Proposal *proposal = &from->items.items[i];
    const StageTensor *tensor = proposed_tensor(stage, proposal);
    bool few = p->candidates[tensor->index].count < FEW_LAYOUTS;
    if (proposal->only && !few && tensor != last) {
      note_left_out(p, tensor, proposal->candidate);
      continue;
    }
    candidates_add(p, tensor, proposal->candidate);
    last = proposal->only ? tensor : NULL;
  }
}

// The candidate that has the axis in blocks, or (block 0) innermost. False where it is none.
static bool block_candidate(const Planner *p, const StageTensor *tensor, int axis, int64_t block,
                            Candidate *out) {
  const Layout *layout = planner_inner_axis(p, tensor->buffer, axis, block);
  Candidate own = candidate_new(p, tensor->buffer, layout);
  return own.dense && planner_candidate_of_walk(p, tensor->buffer, own.walk, out);
}

static void propose_block(Proposals *to, const StageTensor *tensor, int axis, int64_t block) {
  Candidate candidate;
  if (block_candidate(to->planner, tensor, axis, block, &candidate))
    add_proposal(to, tensor, candidate);
}

// Where blocks have padding: half as large ones, or the smallest that hold the whole axis; else 0.
static int64_t smaller_block(int64_t extent, int64_t block) {
  enum { LEAST_BLOCK = 4 };
  int64_t smaller = block / 2;
  while (smaller / 2 >= MAX_OF(extent, LEAST_BLOCK)) smaller /= 2;
  return smaller >= LEAST_BLOCK && extent % block ? smaller : 0;
}

// Proposes the axis in blocks (0: moved to the end), and where these have padding, in smaller ones.
static void propose(Proposals *to, const StageTensor *tensor, int axis, int64_t block) {
  int64_t extent;
  if (axis < 0) return;
  if (!expr_as_int(tensor->buffer->shape[axis], &extent) || extent < 2) return;
  propose_block(to, tensor, axis, block);
  int64_t smaller = smaller_block(extent, block);
  if (smaller) propose_block(to, tensor, axis, smaller);
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

static void add_panels(Proposals *to, const Nest *nest, const NestRead *read, int d,
                       int64_t width) {
  Planner *p = to->planner;
  const Layout *layout = in_panels(p, nest, read, d, width);
  if (!layout) return;
  Candidate own = candidate_new(p, read->buffer, layout), candidate;
  if (!own.dense || !planner_candidate_of_walk(p, read->buffer, own.walk, &candidate))
    candidate = own;
  candidate.panels = true;
  add_proposal(to, stage_tensor_of(p->stages, read->buffer), candidate);
}

// Proposes panels for a tensor that is computed at run time and is the matrix of a product, which
// is read again for every tile of rows. A constant operand is packed without a proposal.
static void propose_panels(Proposals *to, const Stage *stage) {
  Planner *p = to->planner;
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
    if (matrix) add_panels(to, nest, read, d, width);
  }
}

// Proposes, for tensors that have few layouts so far, the layout whose innermost axis is the one
// that the reduction's inner loop follows, such as the channels of an image.
static void propose_reads(Proposals *to, const Stage *stage) {
  Planner *p = to->planner;
  const Nest *nest = planner_nest(p, stage);
  if (!nest || nest->axis_count == nest->spatial_count) return;
  to->only = true;
  for (int i = 0; i < nest->read_count; i++) {
    const StageTensor *tensor = stage_tensor_of(p->stages, nest->reads[i].buffer);
    int d = nest_dimension_of(nest, &nest->reads[i], nest->spatial_count);
    if (!tensor || tensor->data) continue;
    propose(to, tensor, d, 0);
    propose(to, tensor, d, lanes_of(p, tensor->buffer));
  }
  to->only = false;
}

// The cycles of the stage when it writes dimension `d` of its output in blocks of this size and the
// operands that are computed at run time have the layouts best for that, or are row-major.
// Negative when its tiles are not vectorised along this dimension.
static double cycles_in_blocks(const Planner *p, const Stage *stage, const Nest *nest, int d,
                               int64_t block, bool row_major) {
  int axis = nest->output_axis[d];
  NestLayouts layouts = {0};
  if (axis >= 0) layouts.output = planner_inner_axis(p, nest->output, d, block);
  if (!layouts.output) return -1;
  for (int i = 0; i < nest->read_count; i++) {
    const Buffer *buffer = nest->reads[i].buffer;
    int along = nest_dimension_of(nest, &nest->reads[i], axis);
    const StageTensor *tensor = stage_tensor_of(p->stages, buffer);
    bool stays = row_major && tensor && !tensor->data;
    if (along >= 0 && !stays)
      layouts.reads[i] = planner_inner_axis(p, buffer, along, lanes_of(p, buffer));
  }
  const Strategies *strategies = strategies_of(p->context, p->machine, nest, &layouts);
  const Tile *tile = strategies_tile(strategies);
  return tile && tile->vector_axis == axis ? tile_cost(p->machine, tile) : -1;
}

// The same in blocks of vectors; where tiles do not fit these, in smaller ones.
static double cycles_along(const Planner *p, const Stage *stage, const Nest *nest, int d,
                           bool row_major) {
  int64_t extent, block = lanes_of(p, nest->output);
  double cycles = cycles_in_blocks(p, stage, nest, d, block, row_major);
  if (cycles >= 0 || !expr_as_int(nest->output->shape[d], &extent) || extent < 2) return cycles;
  int64_t smaller = smaller_block(extent, block);
  return smaller ? cycles_in_blocks(p, stage, nest, d, smaller, row_major) : cycles;
}

// The dimension of the output along which the auto-scheduler would vectorise; -1: none.
static int preferred_dimension(const Planner *p, const Stage *stage, bool row_major) {
  const Nest *nest = planner_nest(p, stage);
  int best = -1;
  double best_cycles = 0;
  for (int d = 0; nest && d < nest->output->rank; d++) {
    double cycles = cycles_along(p, stage, nest, d, row_major);
    if (cycles < 0 || (best >= 0 && cycles >= best_cycles * cost_model_of(p->machine)->tie_axis))
      continue;
    best = d;
    best_cycles = cycles;
  }
  return best;
}

// Proposes every dimension along which the tiles of a reduction can be vectorised, for its output
// and for the operands that are computed at run time and move along it: neighbours may prefer them.
static void propose_others(Proposals *to, const Stage *stage) {
  Planner *p = to->planner;
  const Nest *nest = planner_nest(p, stage);
  for (int d = 0; nest && d < nest->output->rank; d++) {
    if (cycles_along(p, stage, nest, d, false) < 0) continue;
    propose(to, stage->output, d, lanes_of(p, nest->output));
    propose(to, stage->output, d, 0);
    for (int i = 0; i < nest->read_count; i++) {
      const StageTensor *tensor = stage_tensor_of(p->stages, nest->reads[i].buffer);
      int along = nest_dimension_of(nest, &nest->reads[i], nest->output_axis[d]);
      if (!tensor || tensor->data || along < 0) continue;
      propose(to, tensor, along, lanes_of(p, tensor->buffer));
      propose(to, tensor, along, 0);
    }
  }
}

// ---- Relations

// Can the tiles of a reduction write the layout? At most one axis is cut, and its inner part is
// innermost and has whole vectors, of a quarter of the registers' width at least.
static bool suits_tiles(const Planner *p, const Buffer *buffer, const Candidate *candidate) {
  const LayoutWalk *walk = candidate->walk;
  int cuts = 0, last = walk ? walk->count - 1 : -1, least = MAX_OF(lanes_of(p, buffer) / 4, 1);
  for (int i = 0; i <= last; i++)
    for (int k = 0; k < i; k++)
      if (walk->digits[i].axis == walk->digits[k].axis)
        cuts += i == last && walk->digits[i].cut == 1 ? 1 : 2;
  return !cuts || (cuts == 1 && walk->digits[last].extent % least == 0);
}

// Panels are only passed back, to the stage that computes the tensor for one reader.
static bool may_pass(const Candidate *candidate, const StageTensor *to, bool forward,
                     bool only_requested) {
  if (only_requested && !candidate->requested) return false;
  return !candidate->panels || (!forward && to->producer && planner_is_read_once(to));
}

// Passes the candidates from `first` on through the relation to read `read`. In a small graph, a
// tensor may have copies in layouts that the tiles of its producer cannot write. False when there
// was nothing new.
static bool pass(Planner *p, const Stage *stage, int read, bool forward, int first,
                 bool only_requested) {
  const StageTensor *tensor = stage->reads.items[read], *from = forward ? tensor : stage->output,
                    *to = forward ? stage->output : tensor;
  const Candidates *c = &p->candidates[from->index];
  Candidates before = p->candidates[to->index];
  for (int i = first; i < c->count; i++) {
    Candidate found, candidate = c->items[i];
    if (!may_pass(&candidate, to, forward, only_requested) ||
        !planner_related(p, stage, read, forward, &candidate, &found))
      continue;
    bool tiled = to->producer && stage_is_reduction(to->producer) && !found.requested;
    found.copied = tiled && !suits_tiles(p, to->buffer, &found);
    if (p->is_small || !found.copied) candidates_add(p, to, found);
  }
  const Candidates *after = &p->candidates[to->index];
  return after->count > before.count || after->opened > before.opened;
}

// How many candidates have been passed through a read of a stage.
typedef struct PassedRead {
  int count, opened; // of the candidates that are passed on
} PassedRead;
// The same for each read, in both directions.
typedef struct Passed {
  PassedRead *reads[2];
} Passed;

static bool pass_all(Planner *p, const Stage *stage, bool forward, Passed *passed,
                     bool only_requested) {
  bool found = false;
  for (int i = 0; i < stage->reads.count; i++) {
    const StageTensor *tensor = stage->reads.items[i];
    if (tensor->data) continue;
    const StageTensor *from = forward ? tensor : stage->output;
    PassedRead *done = &passed->reads[forward][i];
    const Candidates *c = &p->candidates[from->index];
    PassedRead all = {c->count, c->opened};
    int first = done->opened == c->opened ? done->count : 0;
    found |= pass(p, stage, i, forward, first, only_requested);
    *done = all;
  }
  return found;
}

static void close_candidates(Planner *p, Passed *passed, bool only_requested) {
  int count = p->stages->stages.count;
  for (bool more = true; more;) {
    more = false;
    for (int i = count - 1; i >= 0; i--)
      more |= pass_all(p, p->stages->stages.items[i], false, &passed[i], only_requested);
    for (int i = 0; i < count; i++)
      more |= pass_all(p, p->stages->stages.items[i], true, &passed[i], only_requested);
  }
}

// Proposes panels for the operands that are computed at run time and move with an axis, such as the
// filters of a convolution.
static void propose_panels_along(Proposals *to, const Nest *nest, int axis) {
  Planner *p = to->planner;
  for (int i = 1; i < nest->read_count; i++) {
    const NestRead *read = &nest->reads[i];
    const StageTensor *tensor = stage_tensor_of(p->stages, read->buffer);
    int d = nest_dimension_of(nest, read, axis);
    if (tensor && !tensor->data && d >= 0 && read->buffer->rank > 2)
      add_panels(to, nest, read, d, lanes_of(p, read->buffer));
  }
}

// Proposes the axis along which only another operand than the first moves, such as the filters of a
// convolution: neighbours may prefer it where this stage does not.
static void propose_second_operand(Proposals *to, const Stage *stage) {
  Planner *p = to->planner;
  const Nest *nest = planner_nest(p, stage);
  if (!nest || nest->read_count < 2 || nest->output->rank < 3) return;
  for (int d = 0; d < nest->output->rank; d++) {
    int axis = nest->output_axis[d];
    if (axis < 0 || nest_depends(&nest->reads[0], axis)) continue;
    propose(to, stage->output, d, lanes_of(p, nest->output));
    propose(to, stage->output, d, 0);
    propose_panels_along(to, nest, axis);
  }
}

static void propose_all(Proposals *to, const Stage *stage) {
  Planner *p = to->planner;
  propose_reads(to, stage);
  int rank = stage->output->buffer->rank;
  for (int row_major = 0; row_major < 2 && rank > 2; row_major++) {
    // For images by constants, the operand need not have the layout that suits the output best.
    if (row_major && (rank == 3 || !reads_constant(stage))) break;
    int preferred = preferred_dimension(p, stage, row_major);
    propose(to, stage->output, preferred, lanes_of(p, stage->output->buffer));
    propose(to, stage->output, preferred, 0);
  }
  propose_second_operand(to, stage);
  propose_panels(to, stage);
}

// Proposes each dimension in blocks and innermost, for the output of an elementwise stage for which
// little has been proposed: its rows may be short, or be read in strides.
static void propose_rows(Proposals *to, const Stage *stage) {
  const Buffer *output = stage->output->buffer;
  to->only = true;
  for (int d = output->rank - 1; d >= 0; d--) {
    propose(to, stage->output, d, lanes_of(to->planner, output));
    if (d + 1 < output->rank) propose(to, stage->output, d, 0);
  }
  to->only = false;
}

typedef void Propose(Proposals *to, const Stage *stage);

static bool is_elementwise(const Stage *stage) {
  return !stage_is_reduction(stage) && !stage->member_count && !stage->te->program &&
         !stage->te->transform;
}

// Takes the proposals of a stage, which are found once for all stages whose loops are equal:
// found[i] are those of the stage with index i.
static void take_all(Planner *p, const Stage *stage, Propose *find, Proposals **found) {
  Proposals **known = &found[p->kinds[stage->index]->index];
  if (!*known) {
    *known = arena_new(&p->context->arena, Proposals);
    (*known)->planner = p;
    (*known)->stage = stage;
    find(*known, stage);
  }
  take_proposals(p, stage, *known);
}

static bool is_group(const Stage *stage) {
  return stage && stage->member_count;
}

// Does a group, which runs row by row, read or write the tensor?
static bool has_rows(const StageTensor *tensor) {
  bool has = is_group(tensor->producer);
  for (int i = 0; i < tensor->users.count; i++) has |= is_group(tensor->users.items[i]);
  return has;
}

// Is the graph so small that layouts are looked at which rarely gain anything?
static bool has_few_stages(const Planner *p) {
  enum { FEW_STAGES = 10 };
  return p->stages->stages.count <= FEW_STAGES;
}

// The block that holds a whole axis longer than a vector and pads it to whole vectors; 0: the axis
// needs no padding, or is so long that a part of a vector is a small part of it.
static int64_t padded_axis(int64_t extent, int64_t lanes) {
  enum { MOST_VECTORS = 4 };
  bool is_short = extent > lanes && extent < MOST_VECTORS * lanes;
  return is_short && extent % lanes ? (extent / lanes + 1) * lanes : 0;
}

// Adds each axis innermost and in blocks: a tensor may be best in a layout that no stage proposes,
// because its neighbours run faster in it.
static void add_plain_layouts(Planner *p, const StageTensor *tensor) {
  const Buffer *buffer = tensor->buffer;
  int64_t lanes = lanes_of(p, buffer), extent;
  bool padded = has_few_stages(p) || has_rows(tensor);
  Candidate candidate;
  for (int d = buffer->rank - 1; d >= 0 && !tensor->data; d--) {
    if (!expr_as_int(buffer->shape[d], &extent) || extent < 2) continue;
    int64_t blocks[] = {0, lanes, lanes / 2, smaller_block(extent, lanes),
                        padded ? padded_axis(extent, lanes) : 0};
    for (int i = d + 1 == buffer->rank; i < COUNT_OF(blocks); i++)
      if ((!i || blocks[i] > 1) && block_candidate(p, tensor, d, blocks[i], &candidate))
        candidates_add(p, tensor, candidate);
  }
}

// The candidate with the walk in which the axis is outermost. False where it is none.
static bool outer_candidate(const Planner *p, const StageTensor *tensor, int axis,
                            const LayoutWalk *walk, Candidate *out) {
  LayoutWalk outer = {0};
  for (int inner = 0; inner < 2; inner++)
    for (int i = 0; i < walk->count; i++)
      if ((walk->digits[i].axis != axis) == inner) outer.digits[outer.count++] = walk->digits[i];
  return planner_candidate_of_walk(p, tensor->buffer, &outer, out);
}

// Does the axis end the rows in which the read is contiguous or the same? It alone moves the read,
// or the read has a part of its extent, or another index than the axis itself.
static bool ends_rows(const Nest *nest, const NestRead *read, int axis) {
  int d = nest_dimension_of(nest, read, axis);
  if (!nest_depends(read, axis)) return false;
  if (d < 0 || !expr_is_int(read->buffer->shape[d], nest->axes[axis].extent)) return true;
  for (int a = 0; a < nest->axis_count; a++)
    if (a != axis && nest->axes[a].extent > 1 && nest_depends(read, a)) return false;
  return true;
}

// Is each read the same for all values of the axis, such as one of a broadcast or of a
// concatenation of parts of one element? With the axis innermost, rows repeat one element.
static bool repeats(const Nest *nest, int axis) {
  bool moves = false;
  for (int i = 0; i < nest->read_count; i++) moves |= nest_depends(&nest->reads[i], axis);
  return nest->read_count && !moves;
}

// Does another order of axes make rows longer that the axis ends?
static bool is_row_end(const Nest *nest, int axis) {
  if (axis < 0 || nest->axes[axis].extent < 2) return false;
  bool ends = repeats(nest, axis);
  for (int i = 0; i < nest->read_count; i++) ends |= ends_rows(nest, &nest->reads[i], axis);
  return ends;
}

// Are the axes in their own order but for the innermost, and none cut?
static bool has_inner_axis(const LayoutWalk *walk) {
  for (int i = 0; walk && i + 2 < walk->count; i++)
    if (walk->digits[i].axis >= walk->digits[i + 1].axis) return false;
  for (int i = 0; walk && i + 1 < walk->count; i++)
    if (walk->digits[i].axis == walk->digits[walk->count - 1].axis) return false;
  return walk;
}

// Adds the axes that end rows outermost, so that the others are one row. In a graph of few stages,
// another axis than the last but one may be innermost then, as in the layouts of the output so far.
static void add_outer_axes(Planner *p, const Stage *stage) {
  const Nest *nest = planner_nest(p, stage);
  const Candidates *c = &p->candidates[stage->output->index];
  int known = c->count, last = nest ? nest->output->rank - 1 : -1;
  Candidate candidate;
  for (int d = 0; d <= last; d++) {
    if (!is_row_end(nest, nest->output_axis[d])) continue;
    for (int i = 0; i < (d == last && has_few_stages(p) ? known : 1); i++)
      if (has_inner_axis(c->items[i].walk) &&
          outer_candidate(p, stage->output, d, c->items[i].walk, &candidate))
        candidates_add(p, stage->output, candidate);
  }
}

void planner_find_candidates(Planner *p, bool proposals) {
  Arena *arena = &p->context->arena;
  int count = p->stages->stages.count;
  Passed *passed = arena_array(arena, Passed, count);
  Proposals **first = arena_array(arena, Proposals *, count),
            **others = arena_array(arena, Proposals *, count);
  for (int i = 0; i < count; i++) {
    const Stage *stage = p->stages->stages.items[i];
    for (int k = 0; k < 2; k++)
      passed[i].reads[k] = arena_array(arena, PassedRead, stage->reads.count);
    if (proposals && stage_is_reduction(stage)) take_all(p, stage, propose_all, first);
    pass_all(p, stage, true, &passed[i], !proposals);
  }
  close_candidates(p, passed, !proposals);
  for (int i = 0; proposals && i < count; i++)
    if (stage_is_reduction(p->stages->stages.items[i]))
      take_all(p, p->stages->stages.items[i], propose_others, others);
  if (proposals) close_candidates(p, passed, false);
  for (int i = 0; proposals && i < count; i++)
    if (is_elementwise(p->stages->stages.items[i]))
      take_all(p, p->stages->stages.items[i], propose_rows, others);
  if (proposals) close_candidates(p, passed, false);
  for (int i = 0; proposals && p->is_small && i < count; i++)
    if (is_elementwise(p->stages->stages.items[i])) add_outer_axes(p, p->stages->stages.items[i]);
  for (int i = 0; proposals && p->is_small && i < p->stages->tensors.count; i++)
    add_plain_layouts(p, p->stages->tensors.items[i]);
  if (proposals && p->is_small) close_candidates(p, passed, false);
}
