// SPDX-License-Identifier: Apache-2.0
// Finds the stages whose output consists of pieces, such as concatenations, and decides where a
// piece can be written in place: the kernel that computes it stores it directly in the memory of
// the whole, and nothing is copied.
//
//   o[n, h, w, c] = if c < 58: a[n, h, w, c] else b[n, h, w, c - 58],  all of them NHWC
//     => a has the strides of o and begins at its element 0; b likewise, at element 58
//
// Both addresses are read as sums of weighted digits of the piece's axes. The piece fits where each
// physical axis of its own layout has one stride in the memory of the whole.
#include "plan/internal.h"

// ---- Which pieces there are

// Functions outside of the graph take and give compact tensors only.
static bool is_of_call(const StageTensor *tensor) {
  bool found = tensor->producer && stage_is_opaque(tensor->producer);
  for (int i = 0; i < tensor->users.count; i++) found |= stage_is_opaque(tensor->users.items[i]);
  return found;
}

// Can a kernel write the tensor in the memory of another tensor?
static bool may_be_placed(const StagePiece *piece) {
  const StageTensor *tensor = piece->tensor;
  return tensor && piece->relation && piece->relation->whole && !tensor->data &&
         !(tensor->producer && tensor->producer->te->program) && !is_of_call(tensor);
}

// Is the tensor in memory of the caller when it is in this candidate?
static bool is_given(const Planner *p, const StageTensor *tensor, int number) {
  return (tensor->input >= 0 || tensor->is_output) && number == p->given[tensor->index];
}

bool planner_is_placed(const Planner *p, const Stage *stage, const StagePiece *piece,
                       const StageChoice *choice) {
  if (!piece->placeable) return false;
  int read = choice->reads[stage_read_of(stage, piece->tensor)];
  return read >= 0 && !is_given(p, piece->tensor, read);
}

// A tensor that several pieces are copies of is placed in the largest whole, once.
static void choose_homes(Planner *p) {
  Context *context = p->context;
  int count = p->stages->tensors.count;
  StagePiece **homes = arena_array(&context->arena, StagePiece *, count);
  double *sizes = arena_array(&context->arena, double, count);
  for (int i = 0; i < p->stages->stages.count; i++) {
    StagePieces *pieces = p->pieces[i];
    double size = stage_tensor_elements(((const Stage *)p->stages->stages.items[i])->output);
    for (int k = 0; pieces && k < pieces->count; k++) {
      StagePiece *piece = &pieces->items[k];
      if (!may_be_placed(piece) || sizes[piece->tensor->index] >= size) continue;
      sizes[piece->tensor->index] = size;
      homes[piece->tensor->index] = piece;
    }
  }
  for (int i = 0; i < count; i++)
    if (homes[i]) homes[i]->placeable = true;
}

// ---- Pieces that are not placed

// The relation of a tensor of the piece's shape to the output of the stage.
static ReadRelation *relation_of_copy(Context *context, const Stage *stage,
                                      const StagePiece *piece) {
  ReadRelation *r = arena_new(&context->arena, ReadRelation);
  const LayoutExpr *own[TE_MAX_RANK], *moved[TE_MAX_RANK];
  r->rank = r->read_rank = stage->te->axis_count;
  for (int a = 0; a < r->rank; a++) {
    r->box[a] = r->read_shape[a] = piece->box[a];
    expr_as_int(stage->te->axes[a].extent, &r->write_shape[a]);
    own[a] = layout_axis(context, a);
    moved[a] = layout_expr(context, LAYOUT_ADD, own[a], layout_const(context, piece->low[a]), NULL);
  }
  r->read = index_map_new(context, r->rank, NULL, r->rank, own, NULL, NULL, 0);
  r->write = index_map_new(context, r->rank, NULL, r->rank, moved, NULL, NULL, 0);
  r->whole = true;
  return r;
}

// The stage that computes the piece alone.
static Stage *copy_of(Context *context, const Stage *stage, const StagePiece *piece) {
  const TeStage *te = stage->te;
  Map vars = map_new(&context->scratch);
  Expr *shape[TE_MAX_RANK];
  Te *own = te_new(context);
  for (int a = 0; a < te->axis_count; a++)
    shape[a] = expr_int(context, te->output->shape[a]->type, piece->box[a]);
  TeAxes axes = te_axes(own, shape, te->axis_count);
  Analyzer *analyzer = analyzer_new(context);
  for (int a = 0; a < te->axis_count; a++) {
    DType type = te->axes[a].var->type;
    Expr *at = expr_cast(context, type, axes.at[a]);
    map_put(&vars, te->axes[a].var, expr_add(context, at, expr_int(context, type, piece->low[a])));
    analyzer_bind(analyzer, axes.at[a], expr_int(context, type, 0), shape[a]);
  }
  Expr *value = substitute_expr(context, piece->value, &vars);
  value = analyzer_simplify_deep(analyzer, value);
  te_compute(own, te->name, te->output->type, shape, &axes, value);
  Stage *copy = arena_copy(&context->arena, stage, sizeof *stage);
  copy->te = own->stages.items[0];
  copy->output = arena_new(&context->arena, StageTensor);
  *copy->output = (StageTensor){
      .buffer = copy->te->output, .producer = copy, .input = -1, .letters = stage->output->letters};
  copy->reads = (PtrArray){0};
  for (int i = 0; i < stage->reads.count; i++) {
    StageTensor *tensor = stage->reads.items[i];
    if (expr_reads(value, tensor->buffer)) array_push(&context->arena, &copy->reads, tensor);
  }
  return copy;
}

// The values of the pieces, which a copy of an equal stage's pieces does not have.
static void set_values(Context *context, const Stage *stage, StagePieces *pieces) {
  StagePieces found = {0};
  if (!stage_pieces(context, stage, &found) || found.count != pieces->count)
    bug(context, "'%s' does not have the pieces of an equal stage", stage->te->name);
  for (int i = 0; i < found.count; i++) pieces->items[i].value = found.items[i].value;
}

static void add_copies(Planner *p, const Stage *stage, StagePieces *pieces) {
  for (int i = 0; i < pieces->count; i++) {
    StagePiece *piece = &pieces->items[i];
    const StageTensor *tensor = piece->placeable ? piece->tensor : NULL;
    if (tensor && tensor->input < 0 && !tensor->is_output) continue;
    if (!piece->value) set_values(p->context, stage, pieces);
    ArenaMark mark = arena_mark(&p->context->scratch);
    piece->copy = copy_of(p->context, stage, piece);
    piece->copy_relation = relation_of_copy(p->context, stage, piece);
    arena_reset(&p->context->scratch, mark);
  }
}

static bool any_is_placeable(const StagePieces *pieces) {
  for (int i = 0; pieces && i < pieces->count; i++)
    if (pieces->items[i].placeable) return true;
  return false;
}

static StagePieces *pieces_copy(Arena *arena, const StagePieces *pieces) {
  StagePieces *copy = arena_copy(arena, pieces, sizeof *pieces);
  copy->capacity = pieces->count;
  copy->items = arena_copy(arena, pieces->items, sizeof *copy->items * (size_t)pieces->count);
  return copy;
}

// The pieces of a stage whose loops are those of an earlier one.
static StagePieces *pieces_like(Arena *arena, const Stage *stage, const Stage *first,
                                const StagePieces *pieces) {
  StagePieces *copy = pieces_copy(arena, pieces);
  for (int i = 0; i < copy->count; i++) {
    StagePiece *piece = &copy->items[i];
    piece->value = NULL;
    if (piece->tensor) piece->tensor = stage->reads.items[stage_read_of(first, piece->tensor)];
  }
  return copy;
}

static StagePieces *pieces_of(const Planner *p, const Stage *stage, StagePieces *found) {
  Arena *arena = &p->context->arena;
  const Stage *first = p->kinds[stage->index];
  const StagePieces *known = p->pieces[first->index];
  if (first != stage) return known ? pieces_like(arena, stage, first, known) : NULL;
  return stage_pieces(p->context, stage, found) ? pieces_copy(arena, found) : NULL;
}

void planner_find_pieces(Planner *p) {
  Context *context = p->context;
  int count = p->stages->stages.count;
  StagePieces found = {0};
  p->pieces = arena_array(&context->arena, StagePieces *, count);
  for (int i = 0; i < count; i++) p->pieces[i] = pieces_of(p, p->stages->stages.items[i], &found);
  choose_homes(p);
  for (int i = 0; i < count; i++)
    if (p->pieces[i] && (p->pieces[i]->count > 1 || any_is_placeable(p->pieces[i])))
      add_copies(p, p->stages->stages.items[i], p->pieces[i]);
    else
      p->pieces[i] = NULL;
}

// ---- Addresses

// A sum of digits, each of one physical axis of a layout.
typedef struct Address {
  int64_t start;
  int count;
  LayoutWeightedDigit digits[WALK_MAX_DIGITS];
  int axis[WALK_MAX_DIGITS]; // of the layout
} Address;

// The layout's outputs at these indices, and its physical extents; returns their number, or -1 when
// the layout is not an array in plain memory.
static int outputs_at(Context *context, const Layout *layout, const IndexMap *at,
                      const int64_t *shape, const LayoutExpr **outputs, int64_t *extents) {
  int rank = at->output_count;
  if (!layout) {
    memcpy(outputs, at->outputs, sizeof *outputs * (size_t)rank);
    memcpy(extents, shape, sizeof *extents * (size_t)rank);
    return rank;
  }
  const IndexMap *map = layout->map;
  if (!layout_is_array(layout) || map->output_count > PLAN_MAX_PHYSICAL) return -1;
  for (int i = 0; i < map->output_count; i++)
    outputs[i] = layout_expr_substitute(context, map->outputs[i], at->outputs, rank);
  memcpy(extents, layout->physical_extents, sizeof *extents * (size_t)map->output_count);
  return map->output_count;
}

void planner_dense_strides(const int64_t *extents, int count, int64_t *strides) {
  int64_t stride = 1;
  for (int i = count - 1; i >= 0; i--) {
    strides[i] = stride;
    stride *= MAX_OF(extents[i], 1);
  }
}

static bool address_of(Context *context, const ReadRelation *r, const LayoutExpr *const *outputs,
                       int count, const int64_t *strides, Address *out) {
  *out = (Address){0};
  for (int i = 0; i < count; i++) {
    LayoutDigitSum sum;
    if (!layout_expr_digits(context, outputs[i], r->box, r->rank, &sum)) return false;
    out->start += sum.start * strides[i];
    for (int k = 0; k < sum.count; k++) {
      if (out->count == WALK_MAX_DIGITS) return false;
      out->axis[out->count] = i;
      out->digits[out->count] = sum.digits[k];
      out->digits[out->count++].weight *= strides[i];
    }
  }
  return true;
}

// Makes one digit of two that follow one another both on their axis and in memory.
static void merge_digits(Address *a) {
  for (int i = 0; i < a->count; i++)
    for (int k = 0; k < a->count; k++) {
      LayoutWeightedDigit *low = &a->digits[i], *high = &a->digits[k];
      if (i == k || low->axis != high->axis || high->cut != low->cut * low->extent ||
          high->weight != low->weight * low->extent)
        continue;
      low->extent *= high->extent;
      *high = a->digits[--a->count];
      i = k = -1;
      break;
    }
}

// The digit of the whole that contains the digit; -1: none.
static int containing_digit(const Address *whole, const LayoutWeightedDigit *g) {
  for (int i = 0; i < whole->count; i++) {
    const LayoutWeightedDigit *w = &whole->digits[i];
    if (w->axis == g->axis && g->cut % w->cut == 0 && g->cut * g->extent <= w->cut * w->extent)
      return i;
  }
  return -1;
}

// Gives each physical axis of the part its stride in the whole. False when an axis has several, or
// the digits of the part do not make up those of the whole.
static bool strides_in_whole(const Address *part, const Address *whole, int64_t *strides) {
  int64_t filled[WALK_MAX_DIGITS];
  for (int i = 0; i < whole->count; i++) filled[i] = 1;
  for (int i = 0; i < part->count; i++) {
    const LayoutWeightedDigit *g = &part->digits[i];
    int in = containing_digit(whole, g);
    if (in < 0) return false;
    int64_t weight = whole->digits[in].weight * (g->cut / whole->digits[in].cut);
    int64_t *stride = &strides[part->axis[i]];
    if (weight % g->weight || (*stride && *stride != weight / g->weight)) return false;
    *stride = weight / g->weight;
    filled[in] *= g->extent;
  }
  for (int i = 0; i < whole->count; i++)
    if (filled[i] != whole->digits[i].extent) return false;
  return true;
}

// Is the innermost axis that has several elements contiguous?
static bool runs_along_memory(const int64_t *extents, const int64_t *strides, int count) {
  for (int i = count - 1; i >= 0; i--)
    if (extents[i] > 1) return strides[i] == 1;
  return true;
}

static bool is_dense(const int64_t *extents, const int64_t *strides, int count) {
  int64_t dense[PLAN_MAX_PHYSICAL];
  planner_dense_strides(extents, count, dense);
  for (int i = 0; i < count; i++)
    if (extents[i] > 1 && strides[i] != dense[i]) return false;
  return true;
}

// The elements of a row of the kernel that writes the piece: all where they have no gaps, otherwise
// those of the innermost axis, because axes with strides do not run as one loop.
static int64_t row_of(const int64_t *extents, int count, bool dense) {
  int64_t row = 1;
  for (int i = count - 1; i >= 0 && (dense || row == 1); i--) row *= MAX_OF(extents[i], 1);
  return row;
}

// Are there no physical indices but those of elements?
static bool has_no_padding(const ReadRelation *r, const int64_t *extents, int count) {
  double elements = 1, size = 1;
  for (int i = 0; i < r->read_rank; i++) elements *= (double)r->read_shape[i];
  for (int i = 0; i < count; i++) size *= (double)extents[i];
  return elements == size;
}

static bool place(Context *context, const ReadRelation *r, const Layout *part_layout,
                  const Layout *whole_layout, const int64_t *whole_strides, PlanPlacement *out) {
  const LayoutExpr *outputs[PLAN_MAX_PHYSICAL];
  int64_t extents[PLAN_MAX_PHYSICAL], units[PLAN_MAX_PHYSICAL], strides[PLAN_MAX_PHYSICAL];
  Address part, whole;
  int count = outputs_at(context, whole_layout, r->write, r->write_shape, outputs, extents);
  if (count < 0) return false;
  planner_dense_strides(extents, count, strides);
  if (!address_of(context, r, outputs, count, whole_strides ? whole_strides : strides, &whole))
    return false;
  merge_digits(&whole);
  count = outputs_at(context, part_layout, r->read, r->read_shape, outputs, extents);
  for (int i = 0; i < PLAN_MAX_PHYSICAL; i++) units[i] = 1;
  *out = (PlanPlacement){.offset = whole.start};
  if (count < 0 || !has_no_padding(r, extents, count) ||
      !address_of(context, r, outputs, count, units, &part) || part.start ||
      !strides_in_whole(&part, &whole, out->strides))
    return false;
  out->dense = is_dense(extents, out->strides, count);
  out->row = row_of(extents, count, out->dense);
  return runs_along_memory(extents, out->strides, count);
}

// The layout in which a piece that is copied is walked as the whole is.
static bool layout_of_copy(const Planner *p, const StagePiece *piece, const Layout *whole,
                           const Layout **layout) {
  LayoutWalk walk;
  Candidate found;
  if (!relation_transfer(p->context, piece->copy_relation, false, whole, &walk) ||
      !planner_candidate_of_walk(p, piece->copy->output->buffer, &walk, &found))
    return false;
  *layout = found.layout;
  return true;
}

bool planner_place(const Planner *p, const Stage *stage, int number, const StageChoice *choice,
                   const int64_t *strides, PlanPlacement *out) {
  const StagePiece *piece = &p->pieces[stage->index]->items[number];
  const Layout *whole = p->candidates[stage->output->index].items[choice->output].layout, *layout;
  bool placed = planner_is_placed(p, stage, piece, choice);
  if (placed) {
    int read = choice->reads[stage_read_of(stage, piece->tensor)];
    layout = p->candidates[piece->tensor->index].items[read].layout;
  } else if (!piece->copy || !layout_of_copy(p, piece, whole, &layout)) {
    return false;
  }
  const ReadRelation *relation = placed ? piece->relation : piece->copy_relation;
  if (!place(p->context, relation, layout, whole, strides, out)) return false;
  out->tensor = placed ? (StageTensor *)piece->tensor : piece->copy->output;
  out->layout = layout;
  out->whole = stage->output;
  out->whole_layout = whole;
  return true;
}

// The cycles in which vectors are stored along the rows of a tensor.
static double store_cycles(const Planner *p, const Buffer *buffer, int64_t row) {
  int lanes = machine_lanes(p->machine, buffer->type);
  double rows = nest_buffer_bytes(buffer) / dtype_bytes(buffer->type) / (double)MAX_OF(row, 1);
  return rows * nest_vector_steps(row, lanes) / cost_model_of(p->machine)->row_moves_a_cycle;
}

double planner_copy_cost(const Planner *p, const StagePiece *piece, const PlanPlacement *at) {
  if (!piece->copy) return 0;
  double bytes = planner_tensor_bytes(piece->copy->output, NULL);
  double stores = store_cycles(p, piece->copy->output->buffer, at->row),
         longest = MAX_OF(stores, planner_operations_along(p, piece->copy, at->row));
  return cost_model_of(p->machine)->call_cycles +
         overlapped_cycles(p->machine, longest, planner_move_cost(p, bytes, bytes));
}

// Does the producer of a tensor store it in one loop where that has no gaps?
static bool is_written_flat(const StageTensor *tensor) {
  const Stage *producer = tensor->producer;
  return producer && !stage_is_reduction(producer) && !producer->member_count;
}

double planner_placed_cost(const Planner *p, const StagePiece *piece, const PlanPlacement *at) {
  const StageTensor *tensor = piece->tensor;
  int lanes = machine_lanes(p->machine, tensor->buffer->type);
  if (at->dense || !is_written_flat(tensor) || at->row >= lanes) return 0;
  return MAX_OF(store_cycles(p, tensor->buffer, at->row) - store_cycles(p, tensor->buffer, lanes),
                0);
}

void planner_add_pieces(WordKey *key, const Planner *p, const Stage *stage) {
  const StagePieces *pieces = p->pieces[stage->index];
  word_key_add(key, pieces != NULL);
  for (int i = 0; pieces && i < pieces->count; i++) {
    const StagePiece *piece = &pieces->items[i];
    const StageTensor *tensor = piece->placeable ? piece->tensor : NULL;
    bool given = tensor && (tensor->input >= 0 || tensor->is_output);
    word_key_add(key, (uint64_t)(tensor != NULL) << 2 | (uint64_t)(piece->copy != NULL) << 1 |
                          (tensor && is_written_flat(tensor)));
    word_key_add(key, given ? 1 + (uint64_t)p->given[tensor->index] : 0);
  }
}
