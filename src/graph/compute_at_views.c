// SPDX-License-Identifier: Apache-2.0
// Computes elementwise stages at the points of the view that is their only reader, where windows
// read the view, and the views before the stages then divide no index:
//   t[i] = x[i // 28, i % 28];  y[i] = max(t[i], 0);  r[h, w] = y[h * 28 + w]
//     =>  r[h, w] = max(x[h, w], 0)
// Both tensors have the same elements, and each layout of one is a layout of the other, but windows
// that read `r` have rows and columns, as those that read `x` have. Sums are computed there too:
//   y[i] = Σ over k of x[i, k] * w[k];  r[h, w] = y[h * 28 + w]
//     =>  r[h, w] = Σ over k of x[h * 28 + w, k] * w[k]
#include "graph/stages.h"

enum { MOST_NODES = 200, MOST_PRODUCERS = 16 };

static bool is_elementwise(const Stage *stage) {
  const TeStage *te = stage->te;
  return !stage_is_reduction(stage) && !stage->member_count && !stage_is_opaque(stage) &&
         !te->program && !te->transform && !stage->asked;
}

static bool is_only_read(const StageTensor *tensor) {
  return tensor->users.count == 1 && !tensor->is_output && !tensor->kept;
}

// The first producer of what the stage reads that is a view, or that is elementwise and has no
// other reader; NULL: none is.
static Stage *next_producer(const Stage *stage, bool view) {
  for (int i = 0; i < stage->reads.count; i++) {
    const StageTensor *tensor = stage->reads.items[i];
    Stage *producer = tensor->producer;
    if (!producer || !is_elementwise(producer) || stage_is_view(producer) != view) continue;
    if (view || is_only_read(tensor)) return producer;
  }
  return NULL;
}

typedef struct InlinedStages {
  Stage *items[MOST_PRODUCERS];
  int count;
} InlinedStages;

// The stage with these producers inlined, and with those of what it reads then; NULL when they are
// too many, or its expression grows too large.
static const Stage *with_producers(StageGraph *s, const Stage *stage, bool views,
                                   InlinedStages *inlined) {
  Stage *producer;
  inlined->count = 0;
  while ((producer = next_producer(stage, views))) {
    if (inlined->count == MOST_PRODUCERS) return NULL;
    inlined->items[inlined->count++] = producer;
    stage = stage_with_producer(s, stage, producer);
    if (expr_tree_size(stage->te->value, NULL, 0, MOST_NODES) >= MOST_NODES) return NULL;
  }
  return stage;
}

static bool divides_behind_views(StageGraph *s, const Stage *stage, bool otherwise) {
  InlinedStages views;
  const Stage *through = with_producers(s, stage, true, &views);
  return through ? stage_indices_search(through->te->value) : otherwise;
}

static bool reads_views(const Stage *stage, const InlinedStages *inlined) {
  bool any = next_producer(stage, true) != NULL;
  for (int i = 0; i < inlined->count; i++) any |= next_producer(inlined->items[i], true) != NULL;
  return any;
}

// ---- Windows

static bool is_long(const BlockVar *axis) {
  return !expr_is_int(axis->extent, 1);
}

static bool uses_long_axis(const TeStage *te, const Expr *e, int first, int count) {
  for (int i = first; i < first + count; i++)
    if (is_long(&te->axes[i]) && expr_uses(e, te->axes[i].var)) return true;
  return false;
}

typedef struct WindowSearch {
  const Buffer *buffer;
  const TeStage *reader;
  bool found, divides;
} WindowSearch;

// In a window, an index moves with an axis of the output and with one of the reduction.
static bool find_window(Visitor *visitor, Expr *e) {
  WindowSearch *search = visitor->env;
  const TeStage *te = search->reader;
  if (e->op != EXPR_LOAD || e->as.buffer != search->buffer) return true;
  search->divides |= stage_indices_search(e);
  for (int d = 0; d < e->count; d++)
    search->found |= uses_long_axis(te, e->args[d], 0, te->axis_count) &&
                     uses_long_axis(te, e->args[d], te->axis_count, te->reduce_count);
  return true;
}

// Do windows of a reduction read the view, perhaps through other views, and divide none of its
// indices? They do where the views are a shuffle, which may be computed in constants instead.
static bool is_read_by_windows(StageGraph *s, const Stage *view) {
  const Stage *last = view, *user;
  while (is_only_read(last->output) && stage_is_view(user = last->output->users.items[0]))
    last = user;
  bool found = false;
  for (int i = 0; i < last->output->users.count && !found; i++) {
    user = last->output->users.items[i];
    if (!stage_is_reduction(user) || stage_is_ordered(user)) continue;
    for (const Stage *by = last; by != view;) {
      user = stage_with_producer(s, user, by);
      by = ((const StageTensor *)by->reads.items[0])->producer;
    }
    WindowSearch search = {view->output->buffer, user->te, false, false};
    visit_expr(&(Visitor){.env = &search, .enter_expr = find_window}, user->te->value);
    found = search.found && !search.divides;
  }
  return found;
}

// Does the view cut an axis of its tensor into several of its own?
static bool cuts_axis(const TeStage *view) {
  const Expr *load = view->value;
  for (int d = 0; d < load->count; d++) {
    int used = 0;
    for (int a = 0; a < view->axis_count; a++)
      used += is_long(&view->axes[a]) && expr_uses(load->args[d], view->axes[a].var);
    if (used > 1) return true;
  }
  return false;
}

// ---- Sums

typedef struct LoadsAt {
  const Buffer *buffer;
  Expr *const *indices;
  Buffer *other; // in which loads are at the axes
  Expr *const *axes;
  int axis_count;
  bool only; // every load of the buffer is at these indices
} LoadsAt;

static bool is_load_at(const LoadsAt *loads, const Expr *e) {
  return !memcmp(e->args, loads->indices, sizeof(Expr *) * (size_t)e->count);
}

static bool check_load(Visitor *visitor, Expr *e) {
  LoadsAt *loads = visitor->env;
  if (e->op == EXPR_LOAD && e->as.buffer == loads->buffer) loads->only &= is_load_at(loads, e);
  return true;
}

static Expr *replace_load(Rewriter *rewriter, Expr *e) {
  const LoadsAt *loads = rewriter->env;
  if (e->op != EXPR_LOAD || e->as.buffer != loads->buffer) return e;
  return expr_load(rewriter->context, loads->other, loads->axes, loads->axis_count);
}

static Expr *with_loads(Context *context, Expr *value, LoadsAt *loads) {
  Rewriter rewriter = {.context = context, .env = loads, .expr = replace_load};
  return rewrite_expr(&rewriter, value);
}

// The sum at the points of the view.
static TeStage *sum_at(Context *context, const TeStage *sum, const TeStage *view) {
  Te *own = te_new(context);
  TeAxes axes = te_axes(own, view->output->shape, view->axis_count);
  TeStage *next = te_stage_like(own, sum, view->output->shape, &axes);
  Expr *at[TE_MAX_RANK];
  for (int d = 0; d < sum->axis_count; d++)
    at[d] = expr_cast(context, sum->axes[d].var->type,
                      te_expr_at(context, view, view->value->args[d], axes.at));
  LoadsAt own_loads = {
      .buffer = sum->output, .other = next->output, .axes = axes.at, .axis_count = axes.rank};
  Expr *value = te_expr_at(context, sum, sum->value, at);
  next->value = stage_simplify(context, next, with_loads(context, value, &own_loads));
  return next;
}

static bool is_sum(const Stage *stage) {
  const TeStage *te = stage->te;
  return stage_is_reduction(stage) && !te->ordered && !te->program && !te->call && !te->transform &&
         !stage->asked;
}

// The first sum that the stage alone reads, and reads where the view does; NULL: none is.
static const Stage *next_sum(const Stage *stage, const TeStage *view) {
  for (int i = 0; i < stage->reads.count; i++) {
    const StageTensor *tensor = stage->reads.items[i];
    const Stage *sum = tensor->producer;
    if (!sum || !is_sum(sum) || !is_only_read(tensor)) continue;
    if (tensor->buffer->rank != view->value->count) continue;
    LoadsAt loads = {.buffer = tensor->buffer, .indices = view->value->args, .only = true};
    visit_expr(&(Visitor){.env = &loads, .enter_expr = check_load}, stage->te->value);
    if (loads.only) return sum;
  }
  return NULL;
}

// Computes the sums at the points of the view that the stage, which has its axes, reads there.
static void compute_sums_at(StageGraph *s, Stage *stage, const TeStage *view) {
  const Stage *sum;
  Expr *axes[TE_MAX_RANK];
  for (int a = 0; a < view->axis_count; a++) axes[a] = view->axes[a].var;
  while ((sum = next_sum(stage, view))) {
    TeStage *at = sum_at(s->context, sum->te, view);
    LoadsAt loads = {sum->te->output, view->value->args, at->output, axes, view->axis_count, true};
    Expr *value = with_loads(s->context, stage->te->value, &loads);
    stage->te = te_with_value(s->context, stage->te, value);
    stage_graph_replace(s, sum, &at, 1);
  }
}

// ---- Stages

// Is a stage inlined with another that is computed at each run and that is read beside it?
static bool reads_several(const Stage *stage) {
  int count = 0;
  for (int i = 0; i < stage->reads.count; i++)
    count += !((const StageTensor *)stage->reads.items[i])->data;
  return count > 1;
}

static void replace(StageGraph *s, Stage *view, const Stage *with, const InlinedStages *inlined) {
  view->te = with->te;
  if (inlined->count) view->node = inlined->items[0]->node;
  for (int i = 0; i < inlined->count; i++) {
    Stage *producer = inlined->items[i];
    bool decided = i > 0 && reads_several(producer);
    view->parts = stage_parts_together(s, producer, view->parts);
    s->fusions_decided += decided;
    producer->output->decided |= decided;
    stage_graph_detach(s, producer);
  }
  stage_graph_reread(s, view);
}

// Do the views before the elementwise stage divide indices?
static bool divides_before(StageGraph *s, const Stage *source) {
  InlinedStages same;
  const Stage *before = with_producers(s, source, false, &same);
  return before && reads_views(source, &same) && divides_behind_views(s, before, false);
}

// Computes what the view reads at its points. False when the stages stay as they are.
static bool compute_at(StageGraph *s, Stage *view) {
  InlinedStages inlined;
  const StageTensor *tensor = view->reads.items[0];
  const Stage *source = tensor->producer;
  if (!source || !is_only_read(tensor) || view->asked || stage_is_view(source)) return false;
  bool elementwise = is_elementwise(source);
  if ((!elementwise && !is_sum(source)) || !cuts_axis(view->te)) return false;
  if (!is_read_by_windows(s, view) || !stage_is_reordering(s->context, view)) return false;
  const Stage *with = with_producers(s, view, false, &inlined);
  if (!with || divides_behind_views(s, with, true)) return false;
  bool less = elementwise && divides_before(s, source);
  if (!less && s->avoided & DECISION_TURN) return false;
  const TeStage *points = view->te;
  replace(s, view, with, &inlined);
  if (less) return true;
  compute_sums_at(s, view, points);
  s->decided |= DECISION_TURN;
  s->fusions_decided++;
  return true;
}

void stage_graph_compute_at_views(StageGraph *s) {
  bool any = false;
  for (int i = 0; i < s->stages.count; i++) {
    ArenaMark mark = arena_mark(&s->context->scratch);
    if (stage_is_view(s->stages.items[i])) any |= compute_at(s, s->stages.items[i]);
    arena_reset(&s->context->scratch, mark);
  }
  if (any) stage_graph_prune(s);
}
