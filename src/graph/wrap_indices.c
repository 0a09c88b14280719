// SPDX-License-Identifier: Apache-2.0
// Reads a rotated tensor by one load whose index wraps, so that it is a view like any other:
//   y[i, c] = i < 53 ? x[i + 3, c] : x[i - 53, c]   =>   y[i, c] = x[(i + 3) % 56, c]
// Both branches are proved to be the index of the result. Indices that the innermost axis moves do
// not wrap, because vectors along that axis would be gathered. This runs before views are inlined,
// since a view of the whole behind the two branches would hide that their indices differ by a
// constant.
#include "graph/stages.h"

typedef struct Wrapping {
  Context *context;
  const TeStage *te;
  Analyzer *analyzer; // of its axes; NULL: not made yet, since few stages have such branches
  Expr *innermost;    // the last axis of several elements; NULL: there is none
} Wrapping;

static bool is_within(const Wrapping *w, Expr *condition, bool holds, Expr *index, Expr *end) {
  int mark = analyzer_mark(w->analyzer);
  analyzer_assume(w->analyzer, holds ? condition : expr_unary(w->context, EXPR_NOT, condition));
  bool within = analyzer_prove_within(w->analyzer, index, expr_int(w->context, end->type, 0), end);
  analyzer_reset(w->analyzer, mark);
  return within;
}

// The index that equals `a` where the condition holds, and `b` elsewhere; NULL when none is found.
static Expr *wrapped_index(Wrapping *w, Expr *condition, Expr *a, Expr *b) {
  int64_t apart;
  if (a == b) return a;
  if (!w->analyzer) w->analyzer = stage_analyzer(w->context, w->te);
  Expr *difference = analyzer_simplify_deep(w->analyzer, expr_sub(w->context, a, b));
  if (expr_is_int(difference, 0)) return a;
  if (!expr_as_int(difference, &apart) || (w->innermost && expr_uses(a, w->innermost))) return NULL;
  Expr *end = expr_int(w->context, a->type, apart < 0 ? -apart : apart);
  if (!is_within(w, condition, true, a, end) || !is_within(w, condition, false, b, end))
    return NULL;
  return expr_floor_mod(w->context, apart > 0 ? a : b, end);
}

static Expr *wrap_loads(Rewriter *rewriter, Expr *e) {
  Wrapping *w = rewriter->env;
  if (e->op != EXPR_IF_THEN_ELSE) return e;
  const Expr *a = e->args[1], *b = e->args[2];
  if (a->op != EXPR_LOAD || b->op != EXPR_LOAD || a->as.buffer != b->as.buffer) return e;
  Expr **indices = arena_array(&w->context->arena, Expr *, a->count);
  for (int i = 0; i < a->count; i++)
    if (!(indices[i] = wrapped_index(w, e->args[0], a->args[i], b->args[i]))) return e;
  return expr_load(w->context, a->as.buffer, indices, a->count);
}

static Expr *innermost_axis(const TeStage *te) {
  for (int i = te->axis_count - 1; i >= 0; i--)
    if (!expr_is_int(te->axes[i].extent, 1)) return te->axes[i].var;
  return NULL;
}

static Expr *read_through_view(Rewriter *rewriter, Expr *e) {
  const StageGraph *s = rewriter->env;
  const StageTensor *tensor = e->op == EXPR_LOAD ? stage_tensor_of(s, e->as.buffer) : NULL;
  if (!tensor || tensor->kept || !tensor->producer || !stage_is_view(tensor->producer)) return e;
  const TeStage *te = tensor->producer->te;
  return te_expr_at(s->context, te, te->value, e->args);
}

// The load that the value is when the views that it reads are inlined one after the other; NULL
// when it stays conditional, or repeats elements.
static Expr *wrapped(StageGraph *s, const TeStage *te) {
  Wrapping w = {.context = s->context, .te = te, .innermost = innermost_axis(te)};
  Rewriter wrap = {.context = s->context, .env = &w, .expr = wrap_loads};
  Rewriter inside = {.context = s->context, .env = s, .expr = read_through_view};
  for (Expr *value = te->value, *next; value; value = next) {
    Expr *load = rewrite_expr(&wrap, value);
    if (load->op == EXPR_LOAD && buffer_same_shape(load->as.buffer, te->output)) return load;
    next = rewrite_expr(&inside, value);
    if (next == value) break;
  }
  return NULL;
}

static bool chooses_load(const Stage *stage) {
  const Expr *value = stage->te->value;
  return !stage_is_reduction(stage) && value->op == EXPR_IF_THEN_ELSE &&
         value->args[1]->op == EXPR_LOAD && value->args[2]->op == EXPR_LOAD;
}

void stage_graph_wrap_indices(StageGraph *s) {
  for (int i = 0; i < s->stages.count; i++) {
    Stage *stage = s->stages.items[i];
    Expr *load = chooses_load(stage) ? wrapped(s, stage->te) : NULL;
    if (!load) continue;
    stage->te = te_with_value(s->context, stage->te, load);
    stage_graph_reread(s, stage);
  }
}
