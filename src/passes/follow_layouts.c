// SPDX-License-Identifier: Apache-2.0
// Lets layouts flow through whole regions of a graph. Each node behind a rewrite can stay, or
// follow: take its operand as it is before the rewrite, and give its results in the layouts that
// follow.
//   y = M(y1); z = relu(add(y, r)); w = conv(M⁻¹(z))    =>    w = conv(relu(add(y1, M⁻¹(r))))
// Which nodes follow is one problem for the solver: the bytes that all rewrites write are least.
#include "passes/flow.h"

#include "plan/relations.h"
#include "solve/pbqp.h"

// The padding of results holds zeros.
static const LayoutPadding zeros = {LAYOUT_PADDING_CONSTANT, 0};

enum { SIZE_OF_UNKNOWN = 64, MOST_SECONDS = 10 };
// A byte costs more than all nodes that could follow without any effect, and these do.
enum { COST_OF_BYTE = 1 << 12 };

// A node that can follow. Value 1 of its variable says that it does.
typedef struct Follower {
  NodeFlow flow;
  int variable;
} Follower;

typedef struct LayoutFollowing {
  PassRun *run;
  Context *context;
  const Map *frozen;
  PbqpProblem *problem;
  Map by_node; // Node* -> Follower*
  Array(Follower *) followers;
} LayoutFollowing;

// ---- The nodes that can follow ------------------------------------------------------------------

static bool same_layout(Context *context, const Layout *a, const Layout *b) {
  return a && b && layout_maps_equal(context, a, b->map).verdict == VERDICT_YES;
}

// The layout in which the value is there without a rewrite if its producer follows; NULL: none.
static const Layout *form_of(const LayoutFollowing *f, const Value *value) {
  const Follower *made = value->producer ? map_find(&f->by_node, value->producer) : NULL;
  if (made) return made->flow.layouts.params[made->flow.input_count + value->output];
  return value->producer ? rewrite_inverse(f->context, value->producer) : NULL;
}

static int64_t bytes_of(const Value *value) {
  int64_t bytes = value->data ? 0 : dtype_bytes(value->type), extent;
  for (int d = 0; d < value->rank; d++) {
    if (!expr_as_int(value->shape[d], &extent)) extent = SIZE_OF_UNKNOWN;
    bytes = bytes > (int64_t)1 << 40 ? bytes : bytes * MIN_OF(extent, (int64_t)1 << 20);
  }
  return MIN_OF(bytes, (int64_t)1 << 40);
}

// Does the layout keep the order of the elements in memory? It then is no more than a reshape.
static bool keeps_memory(Context *context, const Value *value, const Layout *layout) {
  LayoutWalk walk, row_major;
  return layout->is_static && layout_walk(context, layout, layout->extents, layout->rank, &walk) &&
         layout_walk(context, NULL, layout->extents, value->rank, &row_major) &&
         walk_equal(&walk, &row_major);
}

static int64_t cost_of(Context *context, const Value *value, const Layout *layout) {
  return keeps_memory(context, value, layout) ? 0 : bytes_of(value) * COST_OF_BYTE;
}

// The largest operand that has a form and was not tried; -1: none.
static int next_operand(const LayoutFollowing *f, const NodeFlow *flow, const bool *tried) {
  int best = -1;
  for (int i = 0; i < flow->input_count; i++) {
    const Value *value = node_flow_input(flow, i);
    if (tried[i] || !form_of(f, value)) continue;
    if (best < 0 || bytes_of(value) > bytes_of(node_flow_input(flow, best))) best = i;
  }
  return best;
}

static bool find_layouts(const LayoutFollowing *f, NodeFlow *flow) {
  Arena *arena = &f->context->arena;
  bool *tried = arena_array(arena, bool, flow->input_count);
  for (int i; (i = next_operand(f, flow, tried)) >= 0;) {
    const Layout **given = arena_array(arena, const Layout *, flow->func->param_count);
    tried[i] = true;
    given[i] = form_of(f, node_flow_input(flow, i));
    if (node_flow_find(flow, given, zeros) && !flow->layouts.why) return true;
    if (f->context->error_count) return false;
  }
  return false;
}

static bool has_form(const LayoutFollowing *f, const Node *node) {
  for (int i = 0; i < node->input_count; i++)
    if (node->inputs[i] && form_of(f, node->inputs[i])) return true;
  return false;
}

static void find_follower(LayoutFollowing *f, Node *node) {
  Rewrite rewrite;
  NodeFlow flow;
  if (map_contains(f->frozen, node) || !has_form(f, node) ||
      node_rewrite(f->context, node, &rewrite))
    return;
  if (!node_flow_begin(f->run, node, &flow) || !find_layouts(f, &flow)) return;
  Follower *follower = arena_new(&f->context->arena, Follower);
  follower->flow = flow;
  follower->variable = pbqp_variable(f->problem, 2, (const int64_t[]){0, -1});
  map_put(&f->by_node, node, follower);
  array_push(&f->context->arena, &f->followers, follower);
}

// --- What the rewrites of a value cost -----------------------------------------------------------

// A layout in which readers take a value; NULL: as it is in the graph. Value 1 of the variable says
// that the value is there in this layout.
typedef struct Want {
  const Layout *layout;
  int there;
} Want;

typedef struct ValueWants {
  LayoutFollowing *f;
  Value *value;
  Array(Want) wants;
} ValueWants;

static void add_costs(const LayoutFollowing *f, int variable, int64_t none, int64_t there) {
  pbqp_edge(f->problem, variable, variable, (const int64_t[]){none, 0, 0, there});
}

static int want_of(ValueWants *v, const Layout *layout) {
  for (int i = 0; i < v->wants.count; i++) {
    const Layout *other = v->wants.items[i].layout;
    if ((!other && !layout) || same_layout(v->f->context, other, layout))
      return v->wants.items[i].there;
  }
  int there = pbqp_variable(v->f->problem, 2, (const int64_t[]){0, 0});
  array_push(&v->f->context->arena, &v->wants, ((Want){layout, there}));
  return there;
}

static void want_always(ValueWants *v, const Layout *layout) {
  add_costs(v->f, want_of(v, layout), PBQP_INFINITY, 0);
}

// The value must be there in the layout where the reader follows (1), or where it stays (0).
static void want_if(ValueWants *v, const Layout *layout, const Follower *reader, int follows) {
  int64_t costs[4] = {0};
  costs[follows] = PBQP_INFINITY; // it is not there
  pbqp_edge(v->f->problem, want_of(v, layout), reader->variable, costs);
}

static void see_reader(ValueWants *v, const Node *node) {
  Context *context = v->f->context;
  const Follower *follower = map_find(&v->f->by_node, node);
  Rewrite rewrite;
  for (int i = 0, param = 0; i < node->input_count; param += node->inputs[i++] != NULL) {
    if (node->inputs[i] != v->value) continue;
    const Layout *layout = follower ? follower->flow.layouts.params[param] : NULL;
    if (!follower && node_rewrite(context, node, &rewrite)) layout = rewrite.layout;
    if (layout && layout_changes_nothing(context, layout)) layout = NULL;
    if (!follower || !layout) {
      want_always(v, layout);
      continue;
    }
    want_if(v, NULL, follower, 0);
    want_if(v, layout, follower, 1);
  }
}

// A rewrite makes the value in the layout, unless its producer gives it so.
static void price(const ValueWants *v, const Want *want) {
  const LayoutFollowing *f = v->f;
  const Value *value = v->value;
  const Layout *form = form_of(f, value);
  const Follower *made = value->producer ? map_find(&f->by_node, value->producer) : NULL;
  bool given = want->layout && same_layout(f->context, want->layout, form);
  const Layout *rewritten = want->layout ? want->layout : form;
  int64_t cost = rewritten ? cost_of(f->context, value, rewritten) : 0, costs[4] = {0};
  if (!cost || (given && !made)) return;
  if ((want->layout && !given) || !made) return add_costs(f, want->there, 0, cost);
  costs[2 + !given] = cost; // it is there, and the producer stays or follows
  pbqp_edge(f->problem, want->there, made->variable, costs);
}

static void add_value(LayoutFollowing *f, Value *value, const PtrArray *readers) {
  const GraphFunc *graph = f->run->graph;
  ValueWants v = {.f = f, .value = value};
  if (value->data) return;
  for (int i = 0; readers && i < readers->count; i++) see_reader(&v, readers->items[i]);
  for (int i = 0; i < graph->output_count; i++)
    if (graph->outputs[i] == value) want_always(&v, NULL);
  for (int i = 0; i < v.wants.count; i++) price(&v, &v.wants.items[i]);
}

static void add_values(LayoutFollowing *f) {
  const GraphFunc *graph = f->run->graph;
  Map users = graph_users(&f->context->arena, graph);
  for (int i = 0; i < graph->param_count; i++)
    add_value(f, graph->params[i], map_find(&users, graph->params[i]));
  for (int i = 0; i < graph->nodes.count; i++) {
    const Node *node = graph->nodes.items[i];
    for (int k = 0; k < node->output_count; k++)
      if (node->outputs[k]) add_value(f, node->outputs[k], map_find(&users, node->outputs[k]));
  }
}

// ---- The pass ----------------------------------------------------------------------------------

static int number_of(const GraphFunc *graph, const Node *node) {
  int at = 0;
  while (graph->nodes.items[at] != node) at++;
  return at;
}

bool graph_follow_layouts(PassRun *run, const Map *frozen) {
  LayoutFollowing f = {.run = run,
                       .context = run->context,
                       .frozen = frozen,
                       .problem = pbqp_new(run->context),
                       .by_node = map_new(&run->context->arena)};
  const GraphFunc *graph = run->graph;
  for (int i = 0; i < graph->nodes.count && !run->context->error_count; i++)
    find_follower(&f, graph->nodes.items[i]);
  if (run->context->error_count) return false;
  add_values(&f);
  PbqpSolution solution = pbqp_solve(f.problem, MOST_SECONDS);
  for (int i = 0; solution.choices && i < f.followers.count; i++) {
    Follower *follower = f.followers.items[i];
    if (!solution.choices[follower->variable]) continue;
    if (node_flow_make(&follower->flow, number_of(graph, follower->flow.node)) < 0) return false;
  }
  return true;
}
