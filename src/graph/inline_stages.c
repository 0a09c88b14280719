// SPDX-License-Identifier: Apache-2.0
// Inlines stages into the stages that read them.
//   views          t[i, j] = x[j, i];  y[i, j] = max(t[i, j], 0)    =>   y[i, j] = max(x[j, i], 0)
//   padding        t[i] = i < 7 ? x[i] : 0;  y[i] += t[i + k]       =>
//                                                          y[i] += i + k < 7 ? x[i + k] : 0
//   intermediates  t[i] = erf(x[i]);   y[i] = x[i] * (t[i] + 1)    =>  y[i] = x[i]*(erf(x[i]) + 1)
#include "graph/stages.h"

#include "ir/op_count.h"

// ---- One stage in another ----------------------------------------------------------------------

typedef struct Inlining {
  Context *context;
  const Stage *stage;
} Inlining;

static Expr *inline_load(Rewriter *rewriter, Expr *e) {
  const Inlining *inlining = rewriter->env;
  const TeStage *te = inlining->stage->te;
  if (e->op != EXPR_LOAD || e->as.buffer != te->output) return e;
  return te_expr_at(inlining->context, te, te->value, e->args);
}

static Expr *expr_with(StageGraph *s, const Stage *stage, const Stage *user, Expr *e) {
  Inlining inlining = {s->context, stage};
  Rewriter rewriter = {.context = s->context, .env = &inlining, .expr = inline_load};
  return stage_simplify(s->context, user->te, rewrite_expr(&rewriter, e));
}

static Expr *value_with(StageGraph *s, const Stage *stage, const Stage *user) {
  return expr_with(s, stage, user, user->te->value);
}

static void add_reads(StageGraph *s, Stage *stage, const PtrArray *reads) {
  for (int i = 0; i < reads->count; i++) {
    const StageTensor *tensor = reads->items[i];
    bool known = !expr_reads(stage->te->value, tensor->buffer);
    for (int k = 0; k < stage->reads.count && !known; k++) known = stage->reads.items[k] == tensor;
    if (!known) array_push(&s->context->arena, &stage->reads, reads->items[i]);
  }
}

Stage *stage_with_producer(StageGraph *s, const Stage *stage, const Stage *producer) {
  Stage *with = arena_copy(&s->context->arena, stage, sizeof *stage);
  with->te = te_with_value(s->context, stage->te, value_with(s, producer, stage));
  with->reads = (PtrArray){0};
  add_reads(s, with, &stage->reads);
  add_reads(s, with, &producer->reads);
  return with;
}

// Inlines the stage into an ordered stage's initial value and targets.
static void put_into_order(StageGraph *s, const Stage *stage, Stage *user) {
  TeStage *te = arena_copy(&s->context->arena, user->te, sizeof *te);
  te->indices = arena_array(&s->context->arena, Expr *, te->axis_count);
  te->init = expr_with(s, stage, user, te->init);
  for (int i = 0; i < te->axis_count; i++) {
    Expr *index = user->te->indices[i];
    te->indices[i] = index == te->axes[i].var ? index : expr_with(s, stage, user, index);
  }
  user->te = te;
}

enum { MOST_NODES = 200, MOST_VIEW_NODES = 600, MOST_WIDENING = 4 };

// ---- Views -------------------------------------------------------------------------------------

static bool searches(Visitor *visitor, Expr *e) {
  *(bool *)visitor->env |= e->op == EXPR_FLOOR_DIV || e->op == EXPR_FLOOR_MOD || e->op == EXPR_LOAD;
  return true;
}

// True when the expression divides or loads.
static bool expr_searches(Expr *e) {
  bool found = false;
  Visitor visitor = {.env = &found, .enter_expr = searches};
  visit_expr(&visitor, e);
  return found;
}

static bool simplified_searches(StageGraph *s, const Stage *view) {
  const Expr *load = stage_simplify(s->context, view->te, view->te->value);
  for (int i = 0; i < load->count; i++)
    if (expr_searches(load->args[i])) return true;
  return false;
}

// True when reading through the view costs divisions, or loads of indices. Views with the same axes
// and indices are looked at once.
static bool view_searches(StageGraph *s, const Stage *view) {
  const Expr *load = view->te->value;
  WordKey *key = &s->view_key;
  key->count = 0;
  word_key_add(key, map_key(view->te->axes));
  for (int i = 0; i < load->count; i++) word_key_add(key, map_key(load->args[i]));
  void **known = map_place(&s->searching_views, key);
  if (!*known) *known = (void *)(uintptr_t)(1 + simplified_searches(s, view));
  return (uintptr_t)*known == 2;
}

static bool enter_load(Visitor *visitor, Expr *e) {
  bool *found = visitor->env;
  for (int i = 0; e->op == EXPR_LOAD && i < e->count; i++) *found |= expr_searches(e->args[i]);
  return true;
}

bool stage_indices_search(Expr *value) {
  bool found = false;
  Visitor visitor = {.env = &found, .enter_expr = enter_load};
  visit_expr(&visitor, value);
  return found;
}

// A view that uses its axes several times can multiply the size of its reader's expression.
static bool grows_too_large(const Stage *view, const Stage *user, const Expr *value) {
  int apart = expr_tree_size(user->te->value, NULL, 0, INT32_MAX) +
              2 * expr_tree_size(view->te->value, NULL, 0, INT32_MAX);
  int most = MAX_OF(apart, MOST_VIEW_NODES);
  return expr_tree_size(value, NULL, 0, most) >= most;
}

// The axis among some of a stage's that the value divides, and the largest divisor that divides its
// extent.
typedef struct AxisCut {
  const TeStage *te;
  int first, count; // the axes to look at
  int axis;         // -1: no axis
  int64_t by;
} AxisCut;

static bool find_cut(Visitor *visitor, Expr *e) {
  AxisCut *cut = visitor->env;
  if (e->op != EXPR_FLOOR_DIV && e->op != EXPR_FLOOR_MOD) return true;
  int64_t by, extent;
  for (int i = cut->first; i < cut->first + cut->count; i++) {
    const BlockVar *v = &cut->te->axes[i];
    bool divides = v->var == e->args[0] && expr_as_int(e->args[1], &by) && by > cut->by &&
                   expr_as_int(v->extent, &extent) && expr_is_int(v->min, 0) && extent % by == 0;
    if (!divides || extent == by || (cut->axis >= 0 && cut->axis != i)) continue;
    cut->axis = i;
    cut->by = by;
  }
  return true;
}

// Splits the axis: Σ over k of x[k // 64, k % 64] * w[k]  =>  Σ over h, d of x[h, d] * w[h*64 + d].
static TeStage *with_axis_cut(Context *context, const TeStage *te, const AxisCut *cut) {
  int count = te->axis_count + te->reduce_count;
  const BlockVar *v = &te->axes[cut->axis];
  int64_t extent;
  expr_as_int(v->extent, &extent);
  const char *name = v->var->as.var->name;
  BlockVar inner = *v, outer = *v;
  inner.var = expr_var(context, str_format(context, "%s_in", name), v->var->type);
  outer.var = expr_var(context, str_format(context, "%s_out", name), v->var->type);
  inner.extent = expr_int(context, v->var->type, cut->by);
  outer.extent = expr_int(context, v->var->type, extent / cut->by);
  TeStage *next = arena_copy(&context->arena, te, sizeof *te);
  next->axes = arena_array(&context->arena, BlockVar, count + 1);
  for (int i = 0, n = 0; i < count; i++) {
    next->axes[n++] = i == cut->axis ? outer : te->axes[i];
    if (i == cut->axis) next->axes[n++] = inner;
  }
  next->reduce_count++;
  Map vars = map_new(&context->scratch);
  Expr *whole = expr_add(context, expr_mul(context, outer.var, inner.extent), inner.var);
  map_put(&vars, v->var, whole);
  next->value = stage_simplify(context, next, substitute_expr(context, te->value, &vars));
  return next;
}

// The stage with its reduction axes split until no index divides; NULL when one still does.
static TeStage *with_axes_cut(Context *context, TeStage *te) {
  enum { MOST_AXES = TE_MAX_RANK };
  while (stage_indices_search(te->value)) {
    AxisCut cut = {te, te->axis_count, te->reduce_count, .axis = -1, .by = 1};
    Visitor visitor = {.env = &cut, .enter_expr = find_cut};
    visit_expr(&visitor, te->value);
    if (cut.axis < 0 || te->axis_count + te->reduce_count == MOST_AXES) return NULL;
    te = with_axis_cut(context, te, &cut);
  }
  return te;
}

// The reader with the view inlined. NULL when its expression would grow too large, or a reduction
// would still divide or load indices.
static TeStage *reading_through(StageGraph *s, const Stage *view, const Stage *user) {
  if (user->te->program || stage_is_opaque(user)) return NULL;
  Expr *value = value_with(s, view, user);
  if (grows_too_large(view, user, value)) return NULL;
  TeStage *te = te_with_value(s->context, user->te, value);
  if (!stage_is_reduction(user) || !view_searches(s, view)) return te;
  return stage_is_ordered(user) ? NULL : with_axes_cut(s->context, te);
}

// ---- Padding -----------------------------------------------------------------------------------

// The value of a stage that pads a tensor: one load inside of a box, and a literal outside of it.
static bool is_padding(const Stage *stage) {
  const Expr *e = stage->te->value;
  return !stage_is_reduction(stage) && !stage->member_count && e->op == EXPR_IF_THEN_ELSE &&
         stage->reads.count == 1 && e->args[1]->op == EXPR_LOAD &&
         !expr_reads(e->args[0], e->args[1]->as.buffer) &&
         (e->args[2]->op == EXPR_FLOAT || e->args[2]->op == EXPR_INT);
}

static bool uses_axis_of(const TeStage *te, const Expr *e, int first, int count) {
  for (int i = first; i < first + count; i++)
    if (expr_uses(e, te->axes[i].var)) return true;
  return false;
}

typedef struct WindowReads {
  const Stage *padding;
  const TeStage *reader;
  bool only; // every load of the padded tensor is in a window
} WindowReads;

// In a window, the index along each padded axis moves with an axis of the output and with one of
// the reduction.
static bool check_window(Visitor *visitor, Expr *e) {
  WindowReads *reads = visitor->env;
  const TeStage *te = reads->padding->te, *reader = reads->reader;
  if (e->op != EXPR_LOAD || e->as.buffer != te->output) return true;
  for (int d = 0; d < e->count; d++) {
    bool window = uses_axis_of(reader, e->args[d], 0, reader->axis_count) &&
                  uses_axis_of(reader, e->args[d], reader->axis_count, reader->reduce_count);
    bool padded = expr_uses(te->value->args[0], te->axes[d].var);
    reads->only &= !expr_searches(e->args[d]) && (window || !padded);
  }
  return true;
}

static bool reads_by_windows(const Stage *reader, const Stage *padding) {
  WindowReads reads = {padding, reader->te, true};
  Visitor visitor = {.env = &reads, .enter_expr = check_window};
  if (!stage_is_reduction(reader) || stage_is_ordered(reader)) return false;
  visit_expr(&visitor, reader->te->value);
  return reads.only;
}

// The conjuncts of `wanted` that do not follow from `known`, and those of `known`.
static Expr *both_hold(Context *context, Analyzer *analyzer, Expr *wanted, Expr *known) {
  ExprArray conjuncts = {0}, kept = {0};
  expr_conjuncts(context, wanted, &conjuncts);
  expr_conjuncts(context, known, &kept);
  int mark = analyzer_mark(analyzer);
  analyzer_assume(analyzer, known);
  for (int i = 0; i < conjuncts.count; i++)
    if (!analyzer_prove(analyzer, conjuncts.items[i]))
      expr_conjuncts(context, conjuncts.items[i], &kept);
  analyzer_reset(analyzer, mark);
  return expr_conjunction(context, &kept);
}

//   inside ? (within ? x[i] : v) : v   =>   inside and within ? x[i] : v
static Expr *merge_padding(Rewriter *rewriter, Expr *e) {
  Analyzer *analyzer = rewriter->env; // of the reader's axes
  if (e->op != EXPR_IF_THEN_ELSE || e->args[1]->op != EXPR_IF_THEN_ELSE) return e;
  const Expr *inner = e->args[1];
  if (inner->args[2] != e->args[2]) return e;
  Expr *inside = both_hold(rewriter->context, analyzer, e->args[0], inner->args[0]);
  return expr_if_then_else(rewriter->context, inside, inner->args[1], e->args[2]);
}

// A sum of loads or of loads inside of a box, such as the one of an average pool.
static bool only_adds(const Expr *e) {
  switch (e->op) {
  case EXPR_LOAD:
  case EXPR_FLOAT:
  case EXPR_INT: return true;
  case EXPR_ADD: return only_adds(e->args[0]) && only_adds(e->args[1]);
  case EXPR_IF_THEN_ELSE: return only_adds(e->args[1]) && only_adds(e->args[2]);
  default: return false;
  }
}

// Sums of products skip padding of value 0, and would have to compute any other. Sums, minima and
// maxima of elements take the value in their place.
static bool skips(const Stage *reader, const Stage *padding) {
  const Expr *outside = padding->te->value->args[2], *value = reader->te->value;
  bool zero = outside->op == EXPR_FLOAT ? outside->as.f == 0 : outside->as.i == 0;
  return zero || value->op == EXPR_MAX || value->op == EXPR_MIN || only_adds(value);
}

// The reader with the padding in its windows.
static TeStage *padded_inside(StageGraph *s, const Stage *padding, const Stage *reader) {
  if (!reads_by_windows(reader, padding) || !skips(reader, padding)) return NULL;
  Analyzer *analyzer = stage_analyzer(s->context, reader->te);
  Rewriter rewriter = {.context = s->context, .env = analyzer, .expr = merge_padding};
  Expr *value = rewrite_expr(&rewriter, value_with(s, padding, reader));
  return te_with_value(s->context, reader->te, value);
}

// ---- Readers -----------------------------------------------------------------------------------

// All readers with the stage inlined; NULL when one of them cannot inline it.
static TeStage **readers_with(StageGraph *s, const Stage *stage, InlineInReader *inlined) {
  const PtrArray *users = &stage->output->users;
  TeStage **readers = arena_array(&s->context->arena, TeStage *, users->count);
  for (int i = 0; i < users->count; i++)
    if (!(readers[i] = inlined(s, stage, users->items[i]))) return NULL;
  return readers;
}

// Does a reader of the stage's output also read the tensor itself?
static bool is_read_beside(const Stage *stage, const StageTensor *tensor) {
  const PtrArray *users = &stage->output->users;
  for (int i = 0; i < users->count; i++) {
    const Stage *user = users->items[i];
    for (int k = 0; k < user->reads.count; k++)
      if (user->reads.items[k] == tensor) return true;
  }
  return false;
}

static bool note_load(Visitor *visitor, Expr *e) {
  *(bool *)visitor->env |= e->op == EXPR_LOAD;
  return true;
}

// Does the view divide its axis, so that one index of a reader becomes several?
static bool divides_axis(const Stage *view, int axis) {
  const Expr *load = view->te->value;
  for (int d = 0; d < load->count; d++)
    if (expr_searches(load->args[d]) && expr_uses(load->args[d], view->te->axes[axis].var))
      return true;
  return false;
}

typedef struct IndexLoads {
  const Stage *view;
  bool found; // an index that the view divides is loaded
} IndexLoads;

static bool find_index_load(Visitor *visitor, Expr *e) {
  IndexLoads *loads = visitor->env;
  bool found = false;
  Visitor inner = {.env = &found, .enter_expr = note_load};
  if (e->op != EXPR_LOAD || e->as.buffer != loads->view->te->output) return true;
  for (int i = 0; i < e->count && !found; i++) {
    visit_expr(&inner, e->args[i]);
    found &= divides_axis(loads->view, i);
  }
  loads->found |= found;
  return true;
}

// Does a reader take elements of the view at indices that it loads and that the view divides? It
// has no relation to the layouts of the tensor that the view reads.
static bool is_read_by_data(const Stage *view) {
  IndexLoads loads = {view};
  Visitor visitor = {.env = &loads, .enter_expr = find_index_load};
  for (int i = 0; i < view->output->users.count && stage_is_view(view); i++)
    visit_expr(&visitor, ((const Stage *)view->output->users.items[i])->te->value);
  return loads.found;
}

// Does the stage compute something that takes time at each run, and that another plan may store? A
// copy of what is only reordered is one of the layout rewrites that each plan may have, but each
// stage reads a tensor in one layout.
static bool is_work(Context *context, const Stage *stage) {
  const StageTensor *tensor = stage->reads.items[0];
  return !tensor->data && (!stage_is_reordering(context, stage) || is_read_beside(stage, tensor) ||
                           is_read_by_data(stage));
}

// Does a reader get more axes? Its loops then differ from those with which it reads a copy.
static bool cuts_axes(const Stage *stage, TeStage *const *readers) {
  const PtrArray *users = &stage->output->users;
  for (int i = 0; i < users->count; i++) {
    const TeStage *te = ((const Stage *)users->items[i])->te;
    if (te->reduce_count != readers[i]->reduce_count) return true;
  }
  return false;
}

static void inline_in_readers(StageGraph *s, Stage *stage, InlineInReader *inlined) {
  if (stage->output->is_output || stage->output->kept) return;
  TeStage **readers = readers_with(s, stage, inlined);
  if (!readers) return;
  const StageTensor *tensor = stage->reads.items[0];
  bool decided = is_work(s->context, stage) || (!tensor->data && cuts_axes(stage, readers));
  if (decided && s->avoided & DECISION_INLINE) return;
  s->fusions_decided += decided;
  stage->output->decided |= decided;
  PtrArray users = stage->output->users;
  users.items = arena_copy(&s->context->arena, users.items, sizeof(void *) * (size_t)users.count);
  for (int k = 0; k < users.count; k++) {
    Stage *user = users.items[k];
    stage_note_forms(s, stage, user, (StageInlining){inlined, decided, false, NULL});
    user->formed = user->te = readers[k];
    if (stage_is_ordered(user)) put_into_order(s, stage, user);
    stage_graph_reread(s, user);
  }
  stage_graph_detach(s, stage);
}

// ---- Views that divide an axis of their reader's output

//   t[c] = x[c % 2 * 58 + c // 2];  y[c] = Σ over k of t[c, k] * w[c, k];
//   z[o] = Σ over c of y[c] * v[o, c]
//     =>  u[d] = w[d % 58 * 2 + d // 58];  y[d] = Σ over k of x[d, k] * u[d, k];
//         z[o] = Σ over a, b of y[b * 58 + a] * v[o, 2 * a + b]
// The axis of the output is turned by the inverse of the view's map, in elementwise readers of the
// output too, until reductions split their own axes. The shuffled tensor is then never stored, and
// the shuffle is composed into constants.

enum { MOST_TURNED = 16 };

// A stage with the definition that it is to have, and the constants that are made for it.
typedef struct TurnedStage {
  Stage *stage;
  TeStage *stages[MOST_TURNED]; // the stage itself last
  int count;
} TurnedStage;

typedef struct Turning {
  StageGraph *graph;
  TurnedStage items[MOST_TURNED];
  int count;
} Turning;

// Loads of `from` become loads of `to`, where index i of the axis is at i % by * (extent / by) +
// i // by.
typedef struct TurnedLoads {
  Buffer *from, *to;
  int axis;
  int64_t by, extent;
} TurnedLoads;

static Expr *turned_index(Context *context, Expr *e, int64_t by, int64_t extent) {
  Expr *divisor = expr_int(context, e->type, by), *count = expr_int(context, e->type, extent / by);
  return expr_add(context, expr_mul(context, expr_floor_mod(context, e, divisor), count),
                  expr_floor_div(context, e, divisor));
}

static Expr *turned_load(Rewriter *rewriter, Expr *e) {
  const TurnedLoads *turned = rewriter->env;
  Expr *indices[TE_MAX_RANK];
  if (e->op != EXPR_LOAD || e->as.buffer != turned->from) return e;
  memcpy(indices, e->args, sizeof *indices * (size_t)e->count);
  indices[turned->axis] =
      turned_index(rewriter->context, indices[turned->axis], turned->by, turned->extent);
  return expr_load(rewriter->context, turned->to, indices, e->count);
}

static Expr *with_turned_loads(Context *context, Expr *value, const TurnedLoads *turned) {
  Rewriter rewriter = {.context = context, .env = (void *)turned, .expr = turned_load};
  return rewrite_expr(&rewriter, value);
}

// The value over the turned axis. It is simplified over the two digits of the axis first, in which
// the view's index is linear.
static Expr *turned_value(Context *context, const AxisCut *cut, const TeStage *next, Map *vars,
                          const TurnedLoads *loads) {
  Expr *axis = next->axes[cut->axis].var, *zero = expr_int(context, axis->type, 0);
  Expr *by = expr_int(context, axis->type, loads->by);
  Expr *count = expr_int(context, axis->type, loads->extent / loads->by);
  Expr *high = expr_var(context, "high", axis->type), *low = expr_var(context, "low", axis->type);
  Analyzer *analyzer = stage_analyzer(context, next);
  Map digits = map_new(&context->scratch);
  analyzer_bind(analyzer, high, zero, count);
  analyzer_bind(analyzer, low, zero, by);
  map_put(vars, cut->te->axes[cut->axis].var, expr_add(context, expr_mul(context, high, by), low));
  Expr *value = with_turned_loads(context, substitute_expr(context, cut->te->value, vars), loads);
  value = analyzer_simplify_deep(analyzer, value);
  map_put(&digits, high, expr_floor_mod(context, axis, count));
  map_put(&digits, low, expr_floor_div(context, axis, count));
  return stage_simplify(context, next, substitute_expr(context, value, &digits));
}

// The stage with an axis of its output turned, and how its readers load it then.
static TeStage *with_output_turned(Context *context, const AxisCut *cut, TurnedLoads *loads) {
  const TeStage *te = cut->te;
  Map vars = map_new(&context->scratch);
  int64_t extent;
  expr_as_int(te->axes[cut->axis].extent, &extent);
  Te *own = te_new(context);
  TeAxes axes = te_axes(own, te->output->shape, te->axis_count);
  for (int i = 0; i < te->axis_count; i++) map_put(&vars, te->axes[i].var, axes.at[i]);
  TeStage *next = te_stage_like(own, te, te->output->shape, &axes);
  *loads = (TurnedLoads){te->output, next->output, cut->axis, cut->by, extent};
  next->value = turned_value(context, cut, next, &vars, loads);
  return next;
}

// ---- Constants that are read in the order of a turned axis

typedef struct TurnedConstants {
  StageGraph *graph;
  const TeStage *te;
  TurnedStage *item;
} TurnedConstants;

// The axis of the stage's output that alone moves the index and has the extent; NULL: none is so.
static Expr *only_axis(const TeStage *te, const Expr *index, const Expr *extent) {
  int64_t a, b;
  Expr *only = NULL;
  for (int i = 0; i < te->axis_count + te->reduce_count; i++) {
    if (!expr_uses(index, te->axes[i].var)) continue;
    if (only || i >= te->axis_count || !expr_as_int(te->axes[i].extent, &a) ||
        !expr_as_int(extent, &b) || a != b)
      return NULL;
    only = te->axes[i].var;
  }
  return only;
}

// A load of a constant whose indices divide becomes a load, in order, of a stage that turns it.
static Expr *turned_constant(Rewriter *rewriter, Expr *e) {
  const TurnedConstants *c = rewriter->env;
  Context *context = rewriter->context;
  const StageTensor *tensor = e->op == EXPR_LOAD ? stage_tensor_of(c->graph, e->as.buffer) : NULL;
  Expr *from[TE_MAX_RANK], *at[TE_MAX_RANK];
  bool any = false;
  if (!tensor || !tensor->data || c->item->count + 1 == MOST_TURNED) return e;
  Te *own = te_new(context);
  TeAxes axes = te_axes(own, tensor->buffer->shape, e->count);
  for (int i = 0; i < e->count; i++) {
    bool turned = expr_searches(e->args[i]);
    Expr *axis = turned ? only_axis(c->te, e->args[i], tensor->buffer->shape[i]) : NULL;
    if (turned && !axis) return e;
    Map vars = map_new(&context->scratch);
    if (turned) map_put(&vars, axis, axes.at[i]);
    from[i] = turned ? substitute_expr(context, e->args[i], &vars) : axes.at[i];
    at[i] = turned ? axis : e->args[i];
    any |= turned;
  }
  if (!any) return e;
  Buffer *buffer = te_compute(own, tensor->buffer->name, tensor->buffer->type,
                              tensor->buffer->shape, &axes, te_at(own, tensor->buffer, from));
  c->item->stages[c->item->count++] = own->stages.items[0];
  return expr_load(context, buffer, at, e->count);
}

static bool add_turned(Turning *t, Stage *stage, TeStage *te) {
  for (int i = 0; i < t->count; i++)
    if (t->items[i].stage == stage) return false;
  if (t->count == MOST_TURNED) return false;
  TurnedStage *item = &t->items[t->count++];
  *item = (TurnedStage){.stage = stage};
  TurnedConstants constants = {t->graph, te, item};
  Rewriter rewriter = {.context = t->graph->context, .env = &constants, .expr = turned_constant};
  te->value = rewrite_expr(&rewriter, te->value);
  item->stages[item->count++] = te;
  return !stage_indices_search(te->value);
}

// ---- Readers of a turned output

static bool turn_readers(Turning *t, const Stage *stage, const TurnedLoads *loads);

// Turns the axis of the stage's output that its value divides. False when the value still divides.
static bool turn_output(Turning *t, Stage *stage, TeStage *te) {
  AxisCut cut = {te, 0, te->axis_count, .axis = -1, .by = 1};
  Visitor visitor = {.env = &cut, .enter_expr = find_cut};
  TurnedLoads loads;
  visit_expr(&visitor, te->value);
  if (cut.axis < 0 || stage->output->is_output || stage->output->kept) return false;
  te = with_output_turned(t->graph->context, &cut, &loads);
  return add_turned(t, stage, te) && turn_readers(t, stage, &loads);
}

static bool turn_reader(Turning *t, Stage *user, const TurnedLoads *loads) {
  Context *context = t->graph->context;
  if (user->te->program || stage_is_ordered(user)) return false;
  Expr *value = with_turned_loads(context, user->te->value, loads);
  TeStage *te = te_with_value(context, user->te, stage_simplify(context, user->te, value));
  if (!stage_is_reduction(user)) return turn_output(t, user, te);
  te = with_axes_cut(context, te);
  return te && add_turned(t, user, te);
}

static bool turn_readers(Turning *t, const Stage *stage, const TurnedLoads *loads) {
  for (int i = 0; i < stage->output->users.count; i++)
    if (!turn_reader(t, stage->output->users.items[i], loads)) return false;
  return true;
}

// Inlines the view in a reader, whose output is turned where the view divides its axis.
static bool read_turned(Turning *t, const Stage *view, Stage *user) {
  Context *context = t->graph->context;
  if (!stage_is_reduction(user) || stage_is_ordered(user)) return false;
  Expr *value = value_with(t->graph, view, user);
  if (grows_too_large(view, user, value)) return false;
  TeStage *te = te_with_value(context, user->te, value), *cut = with_axes_cut(context, te);
  return cut ? add_turned(t, user, cut) : turn_output(t, user, te);
}

// The axes of what is turned keep their letters.
static void replace_turned(StageGraph *graph, const TurnedStage *item) {
  const StageTensor *output = item->stage->output;
  stage_graph_replace(graph, item->stage, item->stages, item->count);
  for (int i = 0; i < item->count; i++) {
    const TeStage *te = item->stages[i];
    bool constant = i + 1 < item->count;
    const StageTensor *from = constant ? stage_tensor_of(graph, te->value->as.buffer) : output;
    stage_tensor_of(graph, te->output)->letters = from->letters;
  }
}

static bool is_view_of_constant(const Stage *view) {
  return ((const StageTensor *)view->reads.items[0])->data != NULL;
}

static void inline_by_turning(StageGraph *graph, Stage *view) {
  if (graph->avoided & DECISION_TURN) return;
  if (view->output->is_output || view->output->kept || is_view_of_constant(view)) return;
  if (!view->output->users.count) return; // it has been inlined
  Turning *t = arena_new(&graph->context->scratch, Turning);
  t->graph = graph;
  PtrArray users = view->output->users;
  for (int i = 0; i < users.count; i++)
    if (!read_turned(t, view, users.items[i])) return;
  for (int i = 0; i < t->count; i++) replace_turned(graph, &t->items[i]);
  graph->fusions_decided++;
  view->output->decided = true;
  graph->decided |= DECISION_TURN;
  stage_graph_detach(graph, view);
}

// Inlines the stages of one kind in this way. Are there any?
static bool inline_all(StageGraph *s, bool is_one(const Stage *), InlineInReader *inlined) {
  bool any = false;
  for (int i = 0; i < s->stages.count; i++) {
    if (!is_one(s->stages.items[i])) continue;
    inline_in_readers(s, s->stages.items[i], inlined);
    any = true;
  }
  return any;
}

void stage_graph_inline_copies(StageGraph *s) {
  if (inline_all(s, stage_is_copy, reading_through)) stage_graph_prune(s);
}

void stage_graph_inline_views(StageGraph *s) {
  if (!inline_all(s, stage_is_view, reading_through)) return;
  for (int i = 0; i < s->stages.count; i++)
    if (stage_is_view(s->stages.items[i])) inline_by_turning(s, s->stages.items[i]);
  stage_graph_prune(s);
}

static bool is_packed(const Stage *stage) {
  return stage->output->packed;
}

void stage_graph_inline_packed(StageGraph *s) {
  if (!inline_all(s, is_packed, reading_through)) return;
  stage_graph_prune(s);
  for (int i = 0; i < s->tensors.count; i++) s->tensors.items[i]->packed = false;
}

void stage_graph_inline_padding(StageGraph *s) {
  if (inline_all(s, is_padding, padded_inside)) stage_graph_prune(s);
}

// ---- Constants of one element ------------------------------------------------------------------

static Expr *literal_of(Context *context, const ConstData *data) {
  DType type = data->type;
  int64_t count = 1;
  for (int i = 0; i < data->rank; i++) count *= data->shape[i];
  if (count != 1 || type.lanes != 1) return NULL;
  if (dtype_equal(type, DTYPE_FLOAT32)) {
    float value;
    memcpy(&value, data->data, sizeof value);
    return expr_float(context, type, value);
  }
  if (dtype_equal(type, DTYPE_FLOAT64)) {
    double value;
    memcpy(&value, data->data, sizeof value);
    return expr_float(context, type, value);
  }
  return NULL;
}

static Expr *load_literal(Rewriter *rewriter, Expr *e) {
  const StageGraph *s = rewriter->env;
  const StageTensor *tensor = e->op == EXPR_LOAD ? stage_tensor_of(s, e->as.buffer) : NULL;
  Expr *literal = tensor && tensor->data ? literal_of(rewriter->context, tensor->data) : NULL;
  return literal ? literal : e;
}

Expr *stage_with_literals(const StageGraph *s, Expr *value) {
  Rewriter rewriter = {.context = s->context, .env = (void *)s, .expr = load_literal};
  return rewrite_expr(&rewriter, value);
}

static bool has_literals(const StageGraph *s) {
  for (int i = 0; i < s->tensors.count; i++) {
    const ConstData *data = s->tensors.items[i]->data;
    if (data && literal_of(s->context, data)) return true;
  }
  return false;
}

void stage_graph_inline_scalars(StageGraph *s) {
  if (!has_literals(s)) return;
  for (int i = 0; i < s->stages.count; i++) {
    Stage *stage = s->stages.items[i];
    const TeStage *before = stage->te;
    stage_put_literals(s, stage);
    if (stage->te != before) stage_graph_reread(s, stage);
  }
  stage_graph_prune(s);
}

// ---- Intermediates -----------------------------------------------------------------------------

enum { MOST_READS = 12 };

static int reads_together(const Stage *a, const Stage *b) {
  int count = b->reads.count - 1;
  for (int i = 0; i < a->reads.count; i++) {
    bool shared = false;
    for (int k = 0; k < b->reads.count; k++) shared |= b->reads.items[k] == a->reads.items[i];
    count += !shared;
  }
  return count;
}

// The only reader, when it computes each element of the stage at most once: it reads them in place,
// or a part of them.
static Stage *reader_of_each(const StageGraph *s, const Stage *stage) {
  const StageTensor *output = stage->output;
  if (stage_is_reduction(stage) || output->is_output || output->kept || output->users.count != 1)
    return NULL;
  Stage *user = output->users.items[0];
  if (output->constant && !user->output->constant) return NULL;
  if (stage_is_reduction(user) || reads_together(stage, user) > MOST_READS) return NULL;
  bool each = stage_reads_in_place(user, output) ||
              (!stage->te->program && stage_reads_part(s->context, user, output));
  return each ? user : NULL;
}

// Is each element one of another tensor, which its index chooses, as in a concatenation?
static bool joins_tensors(const Expr *value) {
  if (value->op == EXPR_LOAD) return true;
  return value->op == EXPR_IF_THEN_ELSE && !expr_reads_memory(value->args[0]) &&
         joins_tensors(value->args[1]) && joins_tensors(value->args[2]);
}

// A concatenation can be free where its operands are written in place: the plan decides whether it
// is fused with its reader.
static bool joins_in_place(const Stage *stage) {
  return !stage_is_reduction(stage) && !stage_is_view(stage) && joins_tensors(stage->te->value);
}

static bool reads_in_place(const Stage *stage, const StageTensor *tensor) {
  for (int i = 0; i < stage->reads.count; i++)
    if (stage->reads.items[i] == tensor) return stage_reads_in_place(stage, tensor);
  return false;
}

// May a plan gain by longer rows if it stores what the stage computes? The readers that follow may
// be in one kernel with the first.
static bool longer_rows_may_pay(const StageGraph *s, const HostMachine *machine, const Stage *stage,
                                Stage *reader) {
  enum { MOST_READERS = 16 };
  Stage *readers[MOST_READERS];
  for (int count = 0; reader && count < MOST_READERS; reader = reader_of_each(s, reader)) {
    readers[count++] = reader;
    if (stage_storing_may_pay(s->context, machine, stage, readers, count)) return true;
  }
  return false;
}

typedef struct LoadsOfBoth {
  const StageGraph *graph;
  Map known; // the loads of the reader
  bool more; // there is another one
} LoadsOfBoth;

static bool note_known(Visitor *visitor, Expr *e) {
  LoadsOfBoth *loads = visitor->env;
  if (e->op == EXPR_LOAD) map_put(&loads->known, e, e);
  return true;
}

static bool note_more(Visitor *visitor, Expr *e) {
  LoadsOfBoth *loads = visitor->env;
  if (e->op != EXPR_LOAD) return true;
  const StageTensor *tensor = stage_tensor_of(loads->graph, e->as.buffer);
  loads->more |= !(tensor && (tensor->data || tensor->constant)) && !map_contains(&loads->known, e);
  return true;
}

// Does the reader with another stage inlined load more that is computed at each run?
static bool loads_more(StageGraph *s, const TeStage *reader, const TeStage *with) {
  ArenaMark mark = arena_mark(&s->context->scratch);
  LoadsOfBoth loads = {s, map_new(&s->context->scratch), false};
  Visitor before = {.env = &loads, .enter_expr = note_known},
          after = {.env = &loads, .enter_expr = note_more};
  visit_expr(&before, reader->value);
  visit_expr(&after, with->value);
  arena_reset(&s->context->scratch, mark);
  return loads.more;
}

// A reader that loads nothing more with the stage inlined is never better without: it computes the
// same beside the same memory, and the stage's kernel is gone.
bool stage_storing_gains(StageGraph *s, const HostMachine *machine, const Stage *stage,
                         Stage *reader, const TeStage *with) {
  return loads_more(s, reader->te, with) || longer_rows_may_pay(s, machine, stage, reader);
}

// Does the reader compute each element from one of the stage's, constants, and elements that the
// stage reads at the same index, and not store more bytes? A plan that stores the stage's output
// writes it and reads it again, and whatever layout it has costs as much memory as the same layout
// of the reader's output. Unless rows are longer, such a plan is only better where the reader's
// operations take no time beside the memory that it moves, as where it rewrites the layout.
static bool gains_arithmetic(const StageGraph *s, const HostMachine *machine, const Stage *stage,
                             Stage *reader) {
  const StageTensor *tensor = stage->output;
  for (int i = 0; i < reader->reads.count; i++) {
    const StageTensor *other = reader->reads.items[i];
    bool both = reads_in_place(stage, other) && stage_reads_in_place(reader, other);
    if (other != tensor && !other->data && !other->constant && !both) return false;
  }
  return dtype_bytes(reader->output->buffer->type) <= dtype_bytes(tensor->buffer->type) &&
         !longer_rows_may_pay(s, machine, stage, reader);
}

// The reader with the intermediate inlined; NULL when its expression would grow too large.
static TeStage *computing_both(StageGraph *s, const Stage *stage, const Stage *reader) {
  Expr *value = value_with(s, stage, reader);
  bool large = expr_tree_size(value, NULL, 0, MOST_NODES) >= MOST_NODES;
  return large ? NULL : te_with_value(s->context, reader->te, value);
}

void stage_graph_inline_intermediates(StageGraph *s, const HostMachine *machine) {
  bool any = false;
  stage_graph_find_constants(s);
  for (int i = 0; i < s->stages.count; i++) {
    Stage *stage = s->stages.items[i], *user = reader_of_each(s, stage);
    if (!user || joins_in_place(stage)) continue;
    TeStage *te = computing_both(s, stage, user);
    if (!te) continue;
    bool decided = !stage->output->constant && stage_storing_gains(s, machine, stage, user, te);
    if (decided && s->avoided & DECISION_INLINE) continue;
    bool arithmetic = decided && gains_arithmetic(s, machine, stage, user);
    bool offered = decided && (!arithmetic || s->avoided & DECISION_ARITHMETIC);
    s->arithmetic |= arithmetic;
    s->fusions_decided += decided;
    stage->output->decided |= decided;
    stage_note_forms(s, stage, user, (StageInlining){computing_both, offered, true, machine});
    user->formed = user->te = te;
    user->parts = stage_parts_together(s, stage, user->parts);
    stage_graph_reread(s, user);
    stage_graph_detach(s, stage);
    any = true;
  }
  if (any) stage_graph_prune(s);
}

// ---- Bytes -------------------------------------------------------------------------------------

static bool widens_bytes(const Stage *stage) {
  const StageTensor *output = stage->output;
  OpCount count = expr_op_count(stage->te->value);
  bool bytes = false;
  if (stage_is_reduction(stage) || stage->member_count || output->is_output || output->kept ||
      count.functions || count.arithmetic > MOST_WIDENING)
    return false;
  for (int i = 0; i < stage->reads.count; i++) {
    const StageTensor *tensor = stage->reads.items[i];
    bool narrow = dtype_is_int(tensor->buffer->type) && tensor->buffer->type.bits == 8;
    if (tensor->data || tensor->constant) continue;
    if (!narrow || !stage_reads_in_place(stage, tensor)) return false;
    bytes = true;
  }
  return bytes;
}

void stage_graph_inline_widened(StageGraph *s) {
  for (int i = 0; i < s->stages.count; i++) {
    Stage *stage = s->stages.items[i];
    if (!widens_bytes(stage)) continue;
    PtrArray users = stage->output->users;
    users.items = arena_copy(&s->context->arena, users.items, sizeof(void *) * (size_t)users.count);
    for (int k = 0; k < users.count; k++) {
      Stage *user = users.items[k];
      if (stage_is_reduction(user) || user->member_count) continue;
      Expr *value = value_with(s, stage, user);
      if (expr_tree_size(value, NULL, 0, MOST_NODES) >= MOST_NODES) continue;
      user->te = te_with_value(s->context, user->te, value);
      stage_graph_reread(s, user);
    }
  }
  stage_graph_prune(s);
}

// ---- Groups ------------------------------------------------------------------------------------

Stage *stage_of_group_value(StageGraph *s, const Stage *group) {
  Stage *stage = arena_copy(&s->context->arena, group, sizeof *group);
  stage->member_count = 0;
  for (int i = group->member_count - 2; i >= 0; i--) {
    const Stage *member = group->members[i];
    if (stage_is_reduction(member)) continue;
    Expr *value = value_with(s, member, stage);
    if (expr_tree_size(value, NULL, 0, MOST_VIEW_NODES) < MOST_VIEW_NODES)
      stage->te = te_with_value(s->context, stage->te, value);
  }
  return stage;
}
