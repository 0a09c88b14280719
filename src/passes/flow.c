// SPDX-License-Identifier: Apache-2.0
// Lets layouts flow through the blocks of a tensor program. A block that computes o[i] from t[R(i)]
// relates a layout of o to one of t, in both directions; the tensors between blocks pass layouts
// on. Axes that a relation leaves open (those of a reduction, or of a broadcast) keep their order
// among the others:
//   sum[n, c] = Σ x[n, c, h, w]:  n, c -> n, c//4, c%4   =>   n, c, h, w -> n, c//4, h, w, c%4
// A program in other layouts is made by schedule steps, each of which is checked.
#include "passes/flow.h"

#include "plan/relations.h"
#include "schedule/schedule.h"

// ---- The tensors of a program -------------------------------------------------------------------

typedef struct FlowTensor {
  Buffer *buffer; // of the stages
  const Layout *layout;
  int64_t shape[TE_MAX_RANK];
} FlowTensor;

typedef struct ProgramFlow {
  Context *context;
  Te *te;
  int input_count;
  FlowTensor *tensors; // the inputs, then the outputs of the stages
  int count;
  Map by_buffer; // Buffer* -> FlowTensor*
} ProgramFlow;

static bool add_tensor(ProgramFlow *f, Buffer *buffer) {
  FlowTensor *tensor = &f->tensors[f->count++];
  tensor->buffer = buffer;
  map_put(&f->by_buffer, buffer, tensor);
  return buffer->rank <= TE_MAX_RANK && buffer_static_shape(buffer, tensor->shape);
}

static bool add_tensors(ProgramFlow *f) {
  Te *te = f->te;
  bool known = true;
  f->tensors = arena_array(&f->context->arena, FlowTensor, te->inputs.count + te->stages.count);
  for (int i = 0; i < te->inputs.count; i++) known &= add_tensor(f, te->inputs.items[i]);
  for (int i = 0; i < te->stages.count; i++) known &= add_tensor(f, te->stages.items[i]->output);
  return known;
}

static bool define_stages(ProgramFlow *f, const PrimFunc *func, const char **why) {
  for (int i = 0; i < f->input_count; i++) {
    const Buffer *like = func->buffers[i];
    te_input(f->te, like->name, like->type, like->shape, like->rank);
  }
  return program_read_stages(f->te, func, f->te->inputs.items, f->input_count, why);
}

static bool read_stages(ProgramFlow *f, const PrimFunc *func, const char **why) {
  if (!define_stages(f, func, why)) return false;
  if (add_tensors(f)) return true;
  *why = "its shapes are not constant";
  return false;
}

static FlowTensor *output_of(const ProgramFlow *f, const TeStage *stage) {
  return map_find(&f->by_buffer, stage->output);
}

typedef struct StageReads {
  const ProgramFlow *flow;
  const TeStage *stage;
  PtrArray tensors; // FlowTensor*
} StageReads;

static bool see_read(Visitor *visitor, Expr *e) {
  StageReads *reads = visitor->env;
  if (e->op != EXPR_LOAD || e->as.buffer == reads->stage->output) return true;
  FlowTensor *tensor = map_find(&reads->flow->by_buffer, e->as.buffer);
  for (int i = 0; i < reads->tensors.count; i++)
    if (reads->tensors.items[i] == tensor) return true;
  array_push(&reads->flow->context->arena, &reads->tensors, tensor);
  return true;
}

static PtrArray reads_of(const ProgramFlow *f, const TeStage *stage) {
  StageReads reads = {f, stage, {0}};
  Visitor visitor = {.env = &reads, .enter_expr = see_read};
  visit_expr(&visitor, stage->value);
  return reads.tensors;
}

// ---- From one tensor to another -----------------------------------------------------------------

// The outputs of a map, while axes that it lacks are added.
typedef struct MapOutputs {
  const LayoutExpr *items[2 * TE_MAX_RANK];
  bool added[2 * TE_MAX_RANK];
  int count;
} MapOutputs;

static bool uses_axis(const LayoutExpr *e, int axis) {
  if (e->op == LAYOUT_AXIS) return e->value == axis;
  for (int i = 0; i < layout_op_arguments(e->op); i++)
    if (uses_axis(e->args[i], axis)) return true;
  return false;
}

static int first_use(const MapOutputs *out, int axis) {
  for (int i = 0; i < out->count; i++)
    if (uses_axis(out->items[i], axis)) return i;
  return -1;
}

// The place of an axis that no output uses: before the first later axis, or else after the first
// use of the nearest earlier axis, but not after the last output, so that the innermost stays.
static int place_of(const MapOutputs *out, int axis, int rank) {
  for (int i = 0; i < out->count; i++)
    for (int later = axis + 1; later < rank; later++)
      if (uses_axis(out->items[i], later) && first_use(out, later) == i) return i;
  for (int earlier = axis - 1; earlier >= 0; earlier--) {
    int at = first_use(out, earlier);
    if (at >= 0 && (at + 1 < out->count || out->added[at])) return at + 1;
  }
  return out->count;
}

static void add_axis(Context *context, MapOutputs *out, int axis, int rank) {
  int at = place_of(out, axis, rank);
  for (int i = out->count++; i > at; i--) {
    out->items[i] = out->items[i - 1];
    out->added[i] = out->added[i - 1];
  }
  out->items[at] = layout_axis(context, axis);
  out->added[at] = true;
}

static const LayoutExpr *digit_expr(Context *context, const LayoutWeightedDigit *digit,
                                    int64_t extent) {
  const LayoutExpr *e = layout_axis(context, digit->axis);
  if (digit->cut > 1)
    e = layout_expr(context, LAYOUT_DIV, e, layout_const(context, digit->cut), NULL);
  if (digit->cut * digit->extent >= extent) return e;
  return layout_expr(context, LAYOUT_MOD, e, layout_const(context, digit->extent), NULL);
}

// The digits of a sum, counted from 0 on and without gaps: a window's stride makes gaps, and a
// slice or a part of a concatenation begins elsewhere.
static const LayoutExpr *without_gaps(Context *context, const LayoutDigitSum *sum,
                                      const FlowTensor *to) {
  const LayoutExpr *e = layout_const(context, 0);
  int64_t weight = 1;
  for (int i = sum->count - 1; i >= 0; i--) {
    const LayoutWeightedDigit *digit = &sum->digits[i];
    const LayoutExpr *part = digit_expr(context, digit, to->shape[digit->axis]);
    part = layout_expr(context, LAYOUT_MUL, part, layout_const(context, weight), NULL);
    e = i == sum->count - 1 ? part : layout_expr(context, LAYOUT_ADD, part, e, NULL);
    weight *= digit->extent;
  }
  return e;
}

// The output `e` of a layout's map by the index, from 0 on. Where the index has whole axes, the
// output keeps its form, and so its padding.
static const LayoutExpr *output_by_index(Context *context, const LayoutExpr *e, int layout_rank,
                                         const LayoutExpr *const *index, const FlowTensor *to) {
  bool whole = true;
  for (int i = 0; i < layout_rank; i++)
    if (uses_axis(e, i)) whole &= index[i]->op == LAYOUT_AXIS || index[i]->op == LAYOUT_CONST;
  e = layout_expr_substitute(context, e, index, layout_rank);
  if (whole) return e;
  LayoutDigitSum sum;
  if (!layout_expr_digits(context, e, to->shape, to->buffer->rank, &sum)) return e;
  return without_gaps(context, &sum, to);
}

// Puts axes that no output uses in the places of the outputs that became constant, when there is
// one of both, or there are as many and all these axes have one element. Otherwise leaves these
// outputs out.
static void close_places(Context *context, MapOutputs *out, const FlowTensor *to) {
  int constant = 0, unused = 0, kept = 0, axis = -1, rank = to->buffer->rank;
  bool single = true;
  for (int i = 0; i < out->count; i++) constant += out->items[i]->op == LAYOUT_CONST;
  for (int i = 0; i < rank; i++) {
    if (first_use(out, i) >= 0) continue;
    unused++;
    single &= to->shape[i] == 1;
  }
  bool closes = constant == unused && (single || unused == 1);
  for (int i = 0; i < out->count; i++) {
    const LayoutExpr *e = out->items[i];
    if (e->op == LAYOUT_CONST && !closes) continue;
    if (e->op == LAYOUT_CONST) {
      for (axis++; first_use(out, axis) >= 0; axis++) continue;
      e = layout_axis(context, axis);
    }
    out->items[kept++] = e;
  }
  out->count = kept;
}

// The map of a layout whose index is known in terms of the axes of `to`. Outputs that become
// constant leave their places to axes without an output; others stand in the order of the axes.
// Clears
// *complete when there is one of these with more than one element. NULL: it has too many outputs.
static const IndexMap *map_of_indices(Context *context, const Layout *layout,
                                      const LayoutExpr *const *index, const FlowTensor *to,
                                      bool *complete) {
  MapOutputs out = {.count = layout->map->output_count};
  int rank = to->buffer->rank;
  if (layout->map->separator_count || out.count > TE_MAX_RANK) return NULL;
  for (int i = 0; i < out.count; i++)
    out.items[i] = output_by_index(context, layout->map->outputs[i], layout->rank, index, to);
  for (int axis = 0; axis < rank; axis++)
    *complete &= to->shape[axis] == 1 || first_use(&out, axis) >= 0;
  close_places(context, &out, to);
  for (int axis = 0; axis < rank; axis++)
    if (first_use(&out, axis) < 0) add_axis(context, &out, axis, rank);
  if (out.count > TE_MAX_RANK) return NULL;
  return index_map_new(context, rank, NULL, out.count, out.items, NULL, NULL, 0);
}

// The map that a bijective relation gives by composition, for layouts without a walk.
static const IndexMap *map_by_composition(Context *context, const ReadRelation *relation,
                                          bool forward, const Layout *layout) {
  LayoutInverse inverse;
  if (!relation->bijective) return NULL;
  if (forward) return index_map_compose(context, layout->map, relation->read);
  const Layout *read = layout_static(context, relation->read, relation->box, (SourcePos){0});
  if (!read || layout_inverse(context, read, &inverse).verdict != VERDICT_YES) return NULL;
  return index_map_compose(context, layout->map, inverse.map);
}

static const Layout *transferred(const ProgramFlow *f, const ReadRelation *relation, bool forward,
                                 const FlowTensor *from, const FlowTensor *to, bool *complete) {
  Context *context = f->context;
  const LayoutExpr *index[TE_MAX_RANK];
  const IndexMap *map = NULL;
  *complete = true;
  if (relation->same)
    map = from->layout->map;
  else if (relation_indices(context, relation, forward, from->layout, index))
    map = map_of_indices(context, from->layout, index, to, complete);
  if (!map) map = map_by_composition(context, relation, forward, from->layout);
  const Layout *layout = layout_on_shape(context, map, to->buffer->shape, to->buffer->rank);
  if (!layout || layout->physical_rank > TE_MAX_RANK) return NULL;
  return layout_is_injective(context, layout).verdict == VERDICT_YES ? layout : NULL;
}

// Gives `to` a layout when the stage relates it to `from`. With `complete`, only one that the
// relation determines for all axes.
static bool pass_on(const ProgramFlow *f, const TeStage *stage, const FlowTensor *read,
                    bool forward, bool complete) {
  FlowTensor *written = output_of(f, stage);
  const FlowTensor *from = forward ? read : written;
  FlowTensor *to = forward ? written : (FlowTensor *)read;
  bool is_complete;
  if (!from->layout || to->layout) return false;
  ReadRelation *relation = relation_of(f->context, &(Stage){.te = (TeStage *)stage},
                                       &(StageTensor){.buffer = read->buffer});
  const Layout *layout =
      relation ? transferred(f, relation, forward, from, to, &is_complete) : NULL;
  if (!layout || (complete && !is_complete)) return false;
  to->layout = layout;
  return true;
}

// Takes one step: against the order of the stages where that is possible.
static bool flow_once(const ProgramFlow *f, bool complete) {
  for (int forward = 0; forward < 2; forward++)
    for (int i = 0; i < f->te->stages.count; i++) {
      int k = forward ? i : f->te->stages.count - 1 - i;
      const TeStage *stage = f->te->stages.items[k];
      PtrArray reads = reads_of(f, stage);
      for (int r = 0; r < reads.count; r++)
        if (pass_on(f, stage, reads.items[r], forward, complete)) return true;
    }
  return false;
}

// ---- The layouts of a program -------------------------------------------------------------------

static FlowTensor *tensor_of_param(const ProgramFlow *f, int param) {
  if (param < f->input_count) return &f->tensors[param];
  return map_find(&f->by_buffer, f->te->outputs.items[param - f->input_count]);
}

static bool is_single(const FlowTensor *tensor) {
  for (int i = 0; i < tensor->buffer->rank; i++)
    if (tensor->shape[i] != 1) return false;
  return true;
}

// Why a tensor beside one with a layout has none; NULL when there is no such tensor.
static const char *left_behind(const ProgramFlow *f) {
  for (int i = 0; i < f->te->stages.count; i++) {
    const TeStage *stage = f->te->stages.items[i];
    const FlowTensor *output = output_of(f, stage);
    PtrArray reads = reads_of(f, stage);
    for (int r = 0; r < reads.count; r++) {
      const FlowTensor *read = reads.items[r];
      const FlowTensor *late = !read->layout ? read : !output->layout ? output : NULL;
      if (late && (read->layout || output->layout) && !is_single(late))
        return str_format(f->context, "the layout of '%s' does not follow in block '%s'",
                          late->buffer->name, stage->name);
    }
  }
  return NULL;
}

// ---- Programs with symbolic sizes ---------------------------------------------------------------

typedef struct SampleSizes {
  Context *context;
  Map values;
} SampleSizes;

// Different primes, which no block divides. A layout that they suggest is proved on the shape with
// symbols when it is used.
static bool sample_size(Visitor *visitor, Expr *e) {
  static const int64_t primes[] = {1009, 1013, 1019, 1021, 1031, 1033};
  SampleSizes *sizes = visitor->env;
  if (e->op == EXPR_VAR && !map_contains(&sizes->values, e))
    map_put(&sizes->values, e,
            expr_int(sizes->context, e->type, primes[sizes->values.count % COUNT_OF(primes)]));
  return true;
}

static const PrimFunc *with_sample_sizes(Context *context, const PrimFunc *func) {
  SampleSizes sizes = {context, map_new(&context->arena)};
  Visitor visitor = {.env = &sizes, .enter_expr = sample_size};
  for (int i = 0; i < func->param_count; i++)
    for (int d = 0; d < func->buffers[i]->rank; d++)
      visit_expr(&visitor, func->buffers[i]->shape[d]);
  return sizes.values.count ? prim_func_specialize(context, func, &sizes.values) : func;
}

// ---- The layouts of a program -------------------------------------------------------------------

// The layout that was found, on the tensor of the program itself; NULL where it changes nothing.
static const Layout *on_tensor(Context *context, const FlowTensor *found, const Buffer *own) {
  if (!found->layout) return NULL;
  const Layout *layout = layout_on_shape(context, found->layout->map, own->shape, own->rank);
  return layout && !layout_changes_nothing(context, layout) ? layout : NULL;
}

// `own` has the stages of the program itself.
static void take_layouts(const ProgramFlow *f, const PrimFunc *func, const Te *own,
                         FlowLayouts *out) {
  Context *context = f->context;
  *out = (FlowLayouts){func->param_count, f->te->stages.count};
  out->params = arena_array(&context->arena, const Layout *, func->param_count);
  out->stages = arena_array(&context->arena, const Layout *, f->te->stages.count);
  out->why = left_behind(f);
  for (int i = 0; i < func->param_count; i++)
    out->params[i] = on_tensor(context, tensor_of_param(f, i), func->buffers[i]);
  for (int i = 0; i < f->te->stages.count; i++)
    out->stages[i] =
        on_tensor(context, output_of(f, f->te->stages.items[i]), own->stages.items[i]->output);
}

bool flow_find(Context *context, const PrimFunc *func, int input_count, const Layout *const *params,
               FlowLayouts *out, const char **why) {
  ProgramFlow f = {context, te_new(context), input_count, .by_buffer = map_new(&context->arena)};
  ProgramFlow own = f;
  own.te = te_new(context);
  if (!read_stages(&f, with_sample_sizes(context, func), why) || !define_stages(&own, func, why))
    return false;
  for (int i = 0; i < func->param_count; i++) {
    FlowTensor *tensor = tensor_of_param(&f, i);
    if (params[i])
      tensor->layout =
          layout_on_shape(context, params[i]->map, tensor->buffer->shape, tensor->buffer->rank);
  }
  while (flow_once(&f, true) || flow_once(&f, false)) continue;
  take_layouts(&f, func, own.te, out);
  return true;
}

// ---- Programs in other layouts ------------------------------------------------------------------

typedef struct BlockList {
  Context *context;
  PtrArray blocks; // Block*
} BlockList;

static bool see_block(Visitor *visitor, Stmt *s) {
  BlockList *list = visitor->env;
  if (s->kind == STMT_BLOCK && !block_is_root(s->as.block))
    array_push(&list->context->arena, &list->blocks, s->as.block);
  return true;
}

PtrArray flow_blocks(Context *context, const PrimFunc *func) {
  BlockList list = {context, {0}};
  Visitor visitor = {.env = &list, .enter_stmt = see_block};
  visit_stmt(&visitor, func->body);
  return list.blocks;
}

static bool transform(Schedule *schedule, const Block *block, BufferSlot slot, const Layout *layout,
                      const LayoutPadding *padding) {
  const IndexMap *map = layout_short_map(schedule_context(schedule), layout);
  return schedule_transform_layout(schedule, block->name, slot, map, padding);
}

static bool transform_input(Schedule *schedule, int param, const Layout *layout) {
  const PrimFunc *func = schedule_func(schedule);
  PtrArray blocks = flow_blocks(schedule_context(schedule), func);
  for (int i = 0; i < blocks.count; i++) {
    const Block *block = blocks.items[i];
    for (int r = 0; r < block->read_count; r++)
      if (block->reads[r].buffer == func->buffers[param])
        return transform(schedule, block, (BufferSlot){false, r}, layout, NULL);
  }
  return true;
}

static bool is_result(const PrimFunc *func, int input_count, const Buffer *buffer) {
  for (int i = input_count; i < func->param_count; i++)
    if (func->buffers[i] == buffer) return true;
  return false;
}

static bool transform_stage(Schedule *schedule, int number, int input_count, const Layout *layout,
                            const LayoutPadding *padding) {
  PrimFunc *func = schedule_func(schedule);
  const Block *block = flow_blocks(schedule_context(schedule), func).items[number];
  bool keeps = is_result(func, input_count, block->writes[0].buffer);
  return transform(schedule, block, (BufferSlot){true, 0}, layout, keeps ? padding : NULL);
}

// The program whose parameters are plain tensors of their physical shapes.
static PrimFunc *plain(Context *context, const PrimFunc *func) {
  Map buffers = map_new(&context->arena), vars = map_new(&context->arena);
  PrimFunc *copy = prim_func_copy(context, func);
  copy->buffers =
      arena_copy(&context->arena, func->buffers, sizeof *func->buffers * (size_t)func->param_count);
  for (int i = 0; i < func->param_count; i++) {
    Buffer *buffer = buffer_copy(context, func->buffers[i]);
    buffer->layout = NULL;
    buffer->separator_count = 0;
    map_put(&buffers, func->buffers[i], buffer);
    copy->buffers[i] = buffer;
  }
  copy->body = substitute_stmt(context, func->body, &vars, &buffers);
  return copy;
}

PrimFunc *flow_apply(Context *context, const PrimFunc *func, int input_count,
                     const FlowLayouts *layouts, const LayoutPadding *padding, const char **why) {
  PrimFunc *start =
      prim_func_with_body(context, (PrimFunc *)func, blocks_find_regions(context, func->body));
  Schedule *schedule = schedule_new(context, start);
  schedule_quiet(schedule, true);
  bool ok = true;
  for (int i = 0; ok && i < layouts->stage_count; i++)
    if (layouts->stages[i])
      ok = transform_stage(schedule, i, input_count, layouts->stages[i], padding);
  for (int i = 0; ok && i < input_count; i++)
    if (layouts->params[i]) ok = transform_input(schedule, i, layouts->params[i]);
  *why = ok ? NULL : schedule_refusal(schedule);
  return ok ? plain(context, schedule_func(schedule)) : NULL;
}
