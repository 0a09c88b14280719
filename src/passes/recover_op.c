// SPDX-License-Identifier: Apache-2.0
// Finds the operator that computes what an operator computes on tensors in other layouts:
//   softmax(x, axis=1) on n, h, w, c   =>   softmax(x, axis=3)
// Attributes are guessed from the layouts, by the form of their values: numbers of axes, lists with
// an entry for each axis, and the names of layouts. A guess counts only when it is proved: its
// stages are those of the program in the layouts (flow.c), or those of the operator itself between
// views that are these layouts.
#include "passes/flow.h"

// ---- Guesses -----------------------------------------------------------------------------------

typedef struct Guess {
  const NodeFlow *flow;
  Value **inputs;
  int rank;
  int64_t order[TE_MAX_RANK]; // axis k of the first tensor is axis order[k] of the original
  bool permutes;
} Guess;

static const Layout *layout_of_param(const NodeFlow *flow, int param) {
  return flow->layouts.params[param];
}

static Guess guess_new(const NodeFlow *flow, Value **inputs) {
  const Value *first = flow->node->inputs[0];
  const Layout *layout = layout_of_param(flow, 0);
  Guess g = {flow, inputs, first->rank};
  for (int i = 0; i < g.rank; i++) g.order[i] = i;
  g.permutes = !layout || map_is_permutation(layout->map, g.order);
  return g;
}

static int64_t axis_in_guess(const Guess *g, int64_t axis) {
  if (axis < 0) axis += g->rank;
  for (int k = 0; k < g->rank; k++)
    if (g->order[k] == axis) return k;
  return axis;
}

static void set_axes(const Guess *g, Node *node, const char *key, const int64_t *values, int count,
                     bool is_list) {
  int64_t mapped[2 * TE_MAX_RANK];
  for (int i = 0; i < count; i++) mapped[i] = axis_in_guess(g, values[i]);
  if (is_list)
    node_set_ints(g->flow->run->context, node, key, mapped, count);
  else
    node_set_int(g->flow->run->context, node, key, mapped[0]);
}

// Puts the entries of a list, or the pairs of one, into the order of the axes.
static void set_entries(const Guess *g, Node *node, const char *key, const int64_t *values,
                        int count) {
  int64_t mapped[2 * TE_MAX_RANK];
  int each = count / g->rank;
  for (int k = 0; k < g->rank; k++)
    for (int i = 0; i < each; i++) mapped[k * each + i] = values[g->order[k] * each + i];
  node_set_ints(g->flow->run->context, node, key, mapped, count);
}

static void guess_attribute(const Guess *g, Node *node, const Attr *attr) {
  if (!g->permutes) return;
  int64_t values[2 * TE_MAX_RANK];
  bool is_int = attr->value->op == EXPR_INT;
  int count = is_int ? 1 : node_ints(node, attr->key, values, COUNT_OF(values));
  if (is_int) values[0] = attr->value->as.i;
  if (count < 1 || count > COUNT_OF(values)) return;
  if (strncmp(attr->key, "ax", 2) == 0)
    set_axes(g, node, attr->key, values, count, !is_int);
  else if (!is_int && (count == g->rank || count == 2 * g->rank))
    set_entries(g, node, attr->key, values, count);
}

// The name of the layout of a tensor in the attribute `key`, whose axes were `usual`.
static void guess_letters(const Guess *g, Node *node, int param, const char *key,
                          const char *usual) {
  Context *context = g->flow->run->context;
  const Layout *layout = layout_of_param(g->flow, param);
  const char *present = node_string(node, key, usual);
  const char *name = layout && *present ? index_map_name(context, layout->map, present) : NULL;
  if (name) node_set_string(context, node, key, name);
}

static void guess_all_letters(const Guess *g, Node *node) {
  const OpRow *row = op_find(node->op);
  const OpLetters *letters = row->letters;
  if (!letters) return;
  int space = MAX_OF(row->space, 1) - 1;
  const char *data = letters->data[space], *weights = letters->weights[space];
  const char *result = node_string(node, "out_layout", node_string(node, letters->data_key, data));
  guess_letters(g, node, 0, letters->data_key, data);
  if (weights) guess_letters(g, node, 1, "kernel_layout", weights);
  guess_letters(g, node, g->flow->input_count, "out_layout", result);
}

static Node *candidate_new(const Guess *g, bool mapped) {
  const NodeFlow *flow = g->flow;
  const Node *like = flow->node;
  Context *context = flow->run->context;
  Value **inputs = arena_array(&context->arena, Value *, like->input_count);
  for (int i = 0, param = 0; i < like->input_count; i++)
    inputs[i] = like->inputs[i] ? g->inputs[param++] : NULL;
  Node *node = node_new(context, NODE_OP, like->op, like->name, inputs, like->input_count,
                        like->output_count);
  node->attrs = like->attrs;
  node->user_op = like->user_op;
  for (int i = 0; mapped && i < like->attrs.count; i++)
    guess_attribute(g, node, &like->attrs.items[i]);
  if (mapped) guess_all_letters(g, node);
  return node;
}

// ---- Proofs ------------------------------------------------------------------------------------

// The stages of two definitions, of which those of `b` become those of `a`.
typedef struct StageMatch {
  Context *context;
  Map buffers; // of b, to those of a
} StageMatch;

static bool match_axes(const TeStage *a, const TeStage *b, Map *vars) {
  if (a->axis_count != b->axis_count || a->reduce_count != b->reduce_count) return false;
  for (int i = 0; i < a->axis_count + a->reduce_count; i++) {
    if (a->axes[i].extent != b->axes[i].extent) return false;
    map_put(vars, b->axes[i].var, a->axes[i].var);
  }
  return true;
}

static Expr *simplest(Context *context, const TeStage *te, Expr *e) {
  Analyzer *analyzer = analyzer_new(context);
  for (int i = 0; i < te->axis_count + te->reduce_count; i++)
    analyzer_bind(analyzer, te->axes[i].var, te->axes[i].min, te->axes[i].extent);
  return e ? analyzer_simplify_deep(analyzer, e) : NULL;
}

static Expr *renamed(const StageMatch *m, Expr *e, const Map *vars) {
  if (!e) return NULL;
  return substitute_stmt(m->context, stmt_evaluate(m->context, e), vars, &m->buffers)->as.evaluate;
}

static bool match_stage(StageMatch *m, const TeStage *a, const TeStage *b) {
  Map vars = map_new(&m->context->arena);
  if (a->ordered || b->ordered || a->output->rank != b->output->rank ||
      !dtype_equal(a->output->type, b->output->type) || !match_axes(a, b, &vars))
    return false;
  map_put(&m->buffers, b->output, a->output);
  return simplest(m->context, a, a->value) ==
             simplest(m->context, a, renamed(m, b->value, &vars)) &&
         simplest(m->context, a, a->init) == simplest(m->context, a, renamed(m, b->init, &vars));
}

static bool outputs_match(const StageMatch *m, const Te *a, const Te *b) {
  bool same = a->outputs.count == b->outputs.count;
  for (int i = 0; same && i < a->outputs.count; i++)
    same = map_find(&m->buffers, b->outputs.items[i]) == a->outputs.items[i];
  return same;
}

// Are the stages of the candidate those of the program in the layouts?
static bool is_program(const NodeFlow *flow, const Te *te, Buffer *const *tensors) {
  Context *context = flow->run->context;
  Te *other = te_new(context);
  StageMatch m = {context, map_new(&context->arena)};
  if (!program_read_stages(other, flow->program, tensors, flow->input_count, NULL)) return false;
  bool same = te->stages.count == other->stages.count;
  for (int i = 0; same && i < te->stages.count; i++)
    same = match_stage(&m, te->stages.items[i], other->stages.items[i]);
  return same && outputs_match(&m, te, other);
}

// ---- Views around the operator -----------------------------------------------------------------

static bool is_view_of(const TeStage *stage, const Buffer *buffer) {
  return !stage->init && !stage->ordered && stage->value->op == EXPR_LOAD &&
         stage->value->as.buffer == buffer;
}

static const IndexMap *map_of_load(Context *context, const TeStage *view) {
  Expr *vars[TE_MAX_RANK];
  for (int i = 0; i < view->axis_count; i++) vars[i] = view->axes[i].var;
  return index_map_from_exprs(context, vars, view->axis_count, view->value->args,
                              view->value->count, false);
}

static bool shapes_equal(const Buffer *a, const Buffer *b) {
  bool same = a->rank == b->rank;
  for (int i = 0; same && i < a->rank; i++) same = a->shape[i] == b->shape[i];
  return same;
}

// Does the view read element i of the original where the layout stores it?
static bool reads_layout(Context *context, const TeStage *view, const Layout *layout,
                         const Buffer *original) {
  const IndexMap *map = map_of_load(context, view);
  return map && layout && shapes_equal(view->output, original) &&
         layout_maps_equal(context, layout, map).verdict == VERDICT_YES;
}

// Does the view store the original by the layout?
static bool writes_layout(Context *context, const TeStage *view, const Layout *layout,
                          const Buffer *original) {
  const IndexMap *map = map_of_load(context, view);
  if (!map || !layout || layout_pads(context, layout)) return false;
  const IndexMap *both = index_map_compose(context, map, layout->map);
  const Layout *whole = layout_on_shape(context, both, original->shape, original->rank);
  return whole && layout_is_identity(context, whole).verdict == VERDICT_YES;
}

typedef struct Peeling {
  const NodeFlow *flow;
  Te *te, *original;
  Buffer *const *tensors; // of the candidate's inputs
  StageMatch match;
  int next; // of the original's stages
} Peeling;

// Is the stage the view of an input in its layout? It then stands for the original's input.
static bool peel_input(Peeling *p, const TeStage *stage) {
  for (int i = 0; i < p->flow->input_count; i++) {
    Buffer *original = p->original->inputs.items[i];
    if (!is_view_of(stage, p->tensors[i]) ||
        !reads_layout(p->match.context, stage, layout_of_param(p->flow, i), original))
      continue;
    map_put(&p->match.buffers, stage->output, original);
    return true;
  }
  return false;
}

static bool peel_output(const Peeling *p, const TeStage *stage) {
  const Buffer *result = p->original->outputs.items[0];
  const Layout *layout = layout_of_param(p->flow, p->flow->input_count);
  bool is_last = stage == array_last(&p->te->stages) && p->te->outputs.items[0] == stage->output;
  return is_last && stage->value->op == EXPR_LOAD && !stage->init &&
         map_find(&p->match.buffers, stage->value->as.buffer) == result &&
         writes_layout(p->match.context, stage, layout, result);
}

// Is the candidate the original between views that are the layouts?
static bool is_original_in_views(const NodeFlow *flow, Te *te, Buffer *const *tensors) {
  Context *context = flow->run->context;
  Te *original = te_new(context);
  Buffer **inputs = arena_array(&context->arena, Buffer *, flow->input_count);
  for (int i = 0, param = 0; i < flow->node->input_count; i++) {
    const Value *x = flow->node->inputs[i];
    if (x) inputs[param++] = te_input(original, x->name, x->type, x->shape, x->rank);
  }
  if (flow->input_count != flow->node->input_count || te->outputs.count != 1 ||
      !op_define(context, original, flow->node, inputs))
    return false;
  Peeling p = {flow, te, original, tensors, {context, map_new(&context->arena)}, 0};
  for (int i = 0; i < flow->input_count; i++)
    if (!layout_of_param(flow, i)) map_put(&p.match.buffers, tensors[i], inputs[i]);
  bool views_result = false;
  for (int i = 0; i < te->stages.count; i++) {
    const TeStage *stage = te->stages.items[i];
    if (views_result) return false;
    if (peel_input(&p, stage)) continue;
    if (p.next < original->stages.count &&
        match_stage(&p.match, original->stages.items[p.next], stage)) {
      p.next++;
      continue;
    }
    if (!(views_result = peel_output(&p, stage))) return false;
  }
  bool same_layout = views_result || (!layout_of_param(flow, flow->input_count) &&
                                      outputs_match(&p.match, original, te));
  return p.next == original->stages.count && same_layout;
}

// ---- Trying ------------------------------------------------------------------------------------

static bool is_proved(const NodeFlow *flow, Node *node) {
  Context *context = flow->run->context;
  int diags = context->diags.count, errors = context->error_count;
  Te *te = te_new(context);
  Buffer **tensors = arena_array(&context->arena, Buffer *, node->input_count);
  for (int i = 0; i < node->input_count; i++) {
    const Value *x = node->inputs[i];
    if (x) tensors[i] = te_input(te, x->name, x->type, x->shape, x->rank);
  }
  bool ok = flow->input_count == node->input_count && op_define(context, te, node, tensors) &&
            (is_program(flow, te, tensors) || is_original_in_views(flow, te, tensors));
  diag_forget(context, diags, errors);
  return ok;
}

// The operator with an axis that its attributes leave out, which then is not the usual one.
static Node *with_axis(const Guess *g) {
  const OpRow *row = op_find(g->flow->node->op);
  bool has_axis =
      row->attrs && strstr(row->attrs, "axis") && !attrs_get(&g->flow->node->attrs, "axis");
  for (int axis = 0; has_axis && axis < g->rank; axis++) {
    Node *node = candidate_new(g, true);
    node_set_int(g->flow->run->context, node, "axis", axis);
    if (is_proved(g->flow, node)) return node;
  }
  return NULL;
}

Node *node_flow_operator(const NodeFlow *flow, Value **inputs) {
  const Node *node = flow->node;
  if (node->kind != NODE_OP || !node->input_count || !node->inputs[0]) return NULL;
  Guess g = guess_new(flow, inputs);
  if (flow->with_attrs) {
    Node *given = candidate_new(&g, false);
    given->attrs = flow->attrs;
    if (is_proved(flow, given)) return given;
  }
  for (int mapped = 1; mapped >= 0; mapped--) {
    Node *candidate = candidate_new(&g, mapped);
    if (is_proved(flow, candidate)) return candidate;
  }
  return g.permutes ? with_axis(&g) : NULL;
}
