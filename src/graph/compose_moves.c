// SPDX-License-Identifier: Apache-2.0
// Composes stages that only move elements, so that rewrites cancel and merge:
//   t[a, b] = x[4*a + b];  y[i] = t[i // 4, i % 4]             =>  y[i] = x[i]
//   p[i] = i < 13 ? x[i] : 0;  y[i] = p[i] for i < 13          =>  y[i] = x[i]
//   c[i] = x[i + 1];  y[i] = 1 <= i ? c[i - 1] : v             =>  y[i] = x[i], where the user
//                                    states that v is the value of all elements that c leaves out
// Each simplification is a proof over the extents of the stage, by the analyzer or by the layout
// algebra; names and shapes decide nothing. Stages whose results nothing reads are pruned.
#include "graph/stages.h"

// The value of a stage that only moves elements: one load, or a constant where `inside` is false,
// which depends on the index alone.
typedef struct ElementMove {
  Expr *load;           // of the only tensor that is read
  Expr *inside, *other; // NULL: every element is the load
} ElementMove;

static bool read_move(const Stage *stage, ElementMove *move) {
  if (stage_is_reduction(stage) || stage->member_count) return false;
  Expr *value = stage->te->value;
  bool chooses = value->op == EXPR_IF_THEN_ELSE || value->op == EXPR_SELECT;
  *move = (ElementMove){.load = chooses ? value->args[1] : value};
  if (chooses) move->inside = value->args[0];
  if (chooses) move->other = value->args[2];
  bool constant = !chooses || move->other->op == EXPR_FLOAT || move->other->op == EXPR_INT;
  bool by_index = !chooses || !expr_reads_memory(move->inside);
  return move->load->op == EXPR_LOAD && constant && by_index && stage->reads.count == 1;
}

// ---- Proofs over the axes of a stage

typedef struct Domain {
  Context *context;
  const TeStage *te;
  Analyzer *analyzer;
  Expr **vars;
  const LayoutExpr **extents;
} Domain;

static Domain domain_of(Context *context, const TeStage *te) {
  Domain d = {context, te, analyzer_new(context)};
  d.vars = arena_array(&context->arena, Expr *, te->axis_count);
  d.extents = arena_array(&context->arena, const LayoutExpr *, te->axis_count);
  for (int i = 0; i < te->axis_count; i++) {
    analyzer_bind_kept(d.analyzer, te->axes[i].var, te->axes[i].min, te->axes[i].extent);
    d.vars[i] = te->axes[i].var;
    d.extents[i] = layout_from_expr(context, te->axes[i].extent, NULL, 0, true);
    if (!d.extents[i]) d.extents = NULL;
    if (!d.extents) break;
  }
  return d;
}

// The map from the axes to `exprs` as a layout on the extents; NULL where it is none.
static const Layout *layout_of(const Domain *d, Expr *const *exprs, int count) {
  if (!d->extents) return NULL;
  const IndexMap *map =
      index_map_from_exprs(d->context, d->vars, d->te->axis_count, exprs, count, true);
  if (!map) return NULL;
  return layout_try(d->context, map, d->extents, NULL, (LayoutFacts){0});
}

// Is the condition true at every index?
static bool always(const Domain *d, Expr *condition) {
  if (expr_is_true(condition) || analyzer_prove(d->analyzer, condition)) return true;
  Expr *number =
      expr_select(d->context, condition, expr_index(d->context, 1), expr_index(d->context, 0));
  const Layout *layout = layout_of(d, &number, 1);
  if (!layout) return false;
  const LayoutExpr *one = layout_const(d->context, 1);
  const IndexMap *map = layout->map;
  const IndexMap *ones = index_map_with_outputs(d->context, map, &one);
  return layout_maps_equal(d->context, layout, ones).verdict == VERDICT_YES;
}

static bool is_identity(const Domain *d, Expr *const *indices, int count) {
  if (count != d->te->axis_count) return false;
  const Layout *layout = layout_of(d, indices, count);
  return layout && layout_is_identity(d->context, layout).verdict == VERDICT_YES;
}

// ---- Reads of a part

typedef struct LoadOfTensor {
  const Buffer *buffer;
  Expr *load; // of it
  bool several;
} LoadOfTensor;

static bool note_load(Visitor *visitor, Expr *e) {
  LoadOfTensor *only = visitor->env;
  if (e->op != EXPR_LOAD || e->as.buffer != only->buffer) return true;
  only->several |= only->load && only->load != e;
  only->load = e;
  return true;
}

bool stage_reads_part(Context *context, const Stage *stage, const StageTensor *tensor) {
  const TeStage *te = stage->te;
  double elements = stage_tensor_elements(tensor), computed = stage_tensor_elements(stage->output);
  if (stage_is_reduction(stage) || stage_is_opaque(stage) || te->program || stage->member_count ||
      computed < 0 || computed >= elements)
    return false;
  LoadOfTensor only = {.buffer = tensor->buffer};
  visit_expr(&(Visitor){.env = &only, .enter_expr = note_load}, te->value);
  if (!only.load || only.several) return false;
  Domain d = domain_of(context, te);
  const Layout *layout = layout_of(&d, only.load->args, only.load->count);
  return layout && layout_is_injective(context, layout).verdict == VERDICT_YES;
}

// ---- Composition -----------------------------------------------------------------------------

// The user states which value all elements outside of the box have that the inner stage takes. The
// outer stage writes this value exactly outside of the box, and reads within the tensor everywhere.
static bool restores(const Domain *d, const ElementMove *outer, const ElementMove *inner,
                     const TeStage *box, Expr *const *indices) {
  if (!box->outside || inner->inside || box->outside != outer->other) return false;
  const Buffer *source = inner->load->as.buffer;
  Context *context = d->context;
  int mark = analyzer_mark(d->analyzer);
  Expr *zero = expr_index(context, 0), *inside = expr_bool(context, true);
  for (int i = 0; i < source->rank; i++) {
    Expr *start = expr_sub(context, inner->load->args[i], box->axes[i].var);
    start = analyzer_simplify(d->analyzer, start);
    if (box->axis_count != source->rank || start->op != EXPR_INT) return false;
    Expr *low = expr_binary(context, EXPR_LE, zero, indices[i]);
    if (!always(d, expr_and(context, low, expr_lt(context, indices[i], source->shape[i]))))
      return false;
    Expr *after = expr_add(context, start, box->axes[i].extent);
    inside = expr_and(context, inside, expr_binary(context, EXPR_LE, start, indices[i]));
    inside = expr_and(context, inside, expr_lt(context, indices[i], after));
  }
  analyzer_assume(d->analyzer, inside);
  bool proved = analyzer_prove(d->analyzer, outer->inside);
  analyzer_reset(d->analyzer, mark);
  return proved;
}

// The condition and the constant of both moves one after the other. False when they are no move.
static bool merge_conditions(const Domain *d, const ElementMove *outer, const ElementMove *inner,
                             ElementMove *both) {
  if (both->inside && always(d, both->inside)) both->inside = both->other = NULL;
  if (!outer->inside) return true;
  int mark = analyzer_mark(d->analyzer);
  analyzer_assume(d->analyzer, outer->inside);
  bool covered = !both->inside || analyzer_prove(d->analyzer, both->inside);
  analyzer_reset(d->analyzer, mark);
  if (!covered && inner->other != outer->other) return false;
  both->inside = covered ? outer->inside : expr_and(d->context, outer->inside, both->inside);
  both->other = outer->other;
  return true;
}

// The indices under the condition of the move, in their simplest form: the axes where the map is
// the identity.
static Expr *simplest_load(const Domain *d, const ElementMove *move, Expr **indices, int count) {
  Buffer *source = move->load->as.buffer;
  if (!move->inside && is_identity(d, indices, count))
    return expr_load(d->context, source, d->vars, count);
  int mark = analyzer_mark(d->analyzer);
  if (move->inside) analyzer_assume(d->analyzer, move->inside);
  for (int i = 0; i < count; i++) indices[i] = analyzer_simplify_deep(d->analyzer, indices[i]);
  analyzer_reset(d->analyzer, mark);
  return expr_load(d->context, source, indices, count);
}

// The value of the outer stage when it reads through the inner one; NULL when the two are not one
// move.
static Expr *composed(const Domain *d, const ElementMove *outer, const ElementMove *inner,
                      const TeStage *through) {
  Context *context = d->context;
  int count = inner->load->count;
  Expr **indices = arena_array(&context->arena, Expr *, count);
  for (int i = 0; i < count; i++)
    indices[i] = te_expr_at(context, through, inner->load->args[i], outer->load->args);
  ElementMove both = {.load = inner->load};
  if (inner->inside) {
    both.inside = te_expr_at(context, through, inner->inside, outer->load->args);
    both.other = inner->other;
  }
  if (!(outer->inside && restores(d, outer, inner, through, indices)) &&
      !merge_conditions(d, outer, inner, &both))
    return NULL;
  Expr *load = simplest_load(d, &both, indices, count);
  if (!both.inside) return load;
  return expr_if_then_else(context, analyzer_simplify_deep(d->analyzer, both.inside), load,
                           both.other);
}

// Would the tensor get a second reader when it is read through a stage that stays? The producer of
// the tensor could then not be fused with that stage.
static bool gets_second_reader(const Stage *through) {
  const StageTensor *tensor = through->reads.items[0];
  return through->output->is_output && tensor->producer && tensor->users.count == 1;
}

static bool is_read(const Stage *stage) {
  return stage->output->is_output || stage->output->users.count;
}

// Takes stages whose results nothing reads any more off the readers of what they read, up to the
// first that reads several tensors.
static void detach_unread(StageGraph *s, Stage *stage) {
  while (stage && !is_read(stage)) {
    stage_graph_detach(s, stage);
    const StageTensor *tensor = stage->reads.count == 1 ? stage->reads.items[0] : NULL;
    stage = tensor ? tensor->producer : NULL;
  }
}

// Can the moves cancel? The tensors before and behind both then have the same shape, unless one of
// the moves is a copy.
static bool may_cancel(const Stage *stage, const Stage *producer, const ElementMove *inner) {
  return stage_is_copy(producer) ||
         buffer_same_shape(inner->load->as.buffer, stage->output->buffer);
}

// Lets the stage read what its producer reads, when both are moves. Two plain loads are left to
// stage_graph_inline_views unless they cancel, or the producer is a copy, which is left of others
// that did: those around them may cancel too. With `cancel`, only what cancels is composed.
static bool compose_with_producer(StageGraph *s, Stage *stage, bool cancel) {
  enum { MOST_NODES = 600 };
  ElementMove outer, inner;
  if (!is_read(stage) || !read_move(stage, &outer)) return false;
  StageTensor *tensor = stage->reads.items[0];
  Stage *producer = tensor->producer;
  if (!producer || tensor->kept || !read_move(producer, &inner) || gets_second_reader(producer))
    return false;
  if (cancel && outer.inside) return false;
  bool must_cancel = cancel || (!outer.inside && !inner.inside);
  if (must_cancel && !may_cancel(stage, producer, &inner)) return false;
  Domain d = domain_of(s->context, stage->te);
  Expr *value = composed(&d, &outer, &inner, producer->te);
  if (!value || expr_tree_size(value, NULL, 0, MOST_NODES) >= MOST_NODES) return false;
  bool through_copy = stage_is_copy(producer);
  bool whole = value->op == EXPR_LOAD && buffer_same_shape(value->as.buffer, stage->output->buffer);
  bool cancels = through_copy || (whole && is_identity(&d, value->args, value->count));
  if (must_cancel && !cancels) return false;
  TeStage *te = te_with_value(s->context, stage->te, value);
  if (!through_copy) te->outside = NULL; // it was about the tensor between the two
  stage->te = te;
  s->fusions_decided += !cancels;
  tensor->decided |= !cancels;
  stage_graph_reread(s, stage);
  detach_unread(s, producer);
  return true;
}

// Moves that cancel come first: a pad that is composed with the reshapes around it has conditions
// and indices in which a crop or a reshape that undoes one of them is hard to recognise.
void stage_graph_compose_moves(StageGraph *s) {
  bool changed = false;
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < s->stages.count; i++)
      while (compose_with_producer(s, s->stages.items[i], pass == 0)) changed = true;
  if (changed) stage_graph_prune(s);
}
