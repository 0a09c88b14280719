// SPDX-License-Identifier: Apache-2.0
// The exact reductions of PBQP (Scholz and Eckstein, LCTES 2002). Each takes one node out:
//
//   one value left   its row of every edge is added to the neighbour
//   R0  x            the least cost is added to the constant
//   RI  x ─ a        the least over x, for each value of a, is added to a
//   RII a ─ x ─ b    the least over x, for each pair of values, becomes an edge a ─ b
//
// RII makes tables as large as the product of the neighbours' value counts, so RII stops when the
// work runs out; the other reductions are linear in the size of the tables they read.
#include "solve/state.h"

void solve_state_enqueue(SolveState *state, int node) {
  SolveNode *n = &state->nodes[node];
  if (n->gone || n->queued || (n->degree > 2 && n->count > 1)) return;
  n->queued = true;
  SolveQueue *queue = n->degree <= 1 || n->count <= 1 ? &state->low : &state->middle;
  array_push(state->solver->arena, &queue->items, node);
}

static int queue_pop(SolveState *state) {
  SolveQueue *queue = state->low.first < state->low.items.count ? &state->low : &state->middle;
  if (queue->first == queue->items.count) return -1;
  int node = queue->items.items[queue->first++];
  if (queue->first == queue->items.count) queue->first = queue->items.count = 0;
  state->nodes[node].queued = false;
  return node;
}

// Removes a node and its edges, and records how to choose the node's value later.
static void eliminate(SolveState *state, int node) {
  Arena *arena = state->solver->arena;
  SolveNode *n = &state->nodes[node];
  int count = solve_state_edges(state, node);
  SolveEdge *edges = arena_array(arena, SolveEdge, count);
  for (int i = 0; i < count; i++) {
    SolveEdge *e = &state->edges.items[n->edges.items[i]];
    edges[i] = *e;
    e->table = NULL;
    int other = e->a == node ? e->b : e->a;
    state->nodes[other].degree--;
    solve_state_enqueue(state, other);
  }
  n->gone = true;
  state->left--;
  array_push(arena, &state->eliminated, ((SolveElimination){node, count, edges}));
}

static int best_value(SolveState *state, const SolveElimination *record, const int *choice) {
  const SolveNode *n = &state->nodes[record->node];
  int64_t best = INT64_MAX;
  int found = n->value[0];
  for (int i = 0; i < n->count; i++) {
    int64_t cost = n->cost[n->value[i]];
    for (int k = 0; k < record->edge_count; k++) {
      SolveEdgeView v = solve_edge_view(&record->edges[k], record->node);
      cost = cost_add(cost, view_cost(&v, n->value[i], choice[v.other]));
    }
    if (cost >= best) continue;
    best = cost;
    found = n->value[i];
  }
  return found;
}

void solve_state_restore(SolveState *state, int *choice) {
  for (int i = state->eliminated.count; i-- > 0;) {
    const SolveElimination *record = &state->eliminated.items[i];
    choice[record->node] = best_value(state, record, choice);
  }
}

// ---- One node ----------------------------------------------------------------------------------

// Adds the least cost over `node` (including its own costs on request) to the edge's other end.
static void fold_into_neighbour(SolveState *state, int node, const SolveEdge *edge,
                                bool own_costs) {
  int other = edge->a == node ? edge->b : edge->a;
  SolveNode *n = &state->nodes[other];
  int64_t *message = state->solver->temporary[2];
  solve_edge_message(state, edge, other, own_costs ? state->nodes[node].cost : NULL, message);
  int count = 0;
  for (int i = 0; i < n->count; i++) {
    int value = n->value[i];
    n->cost[value] = cost_add(n->cost[value], message[value]);
    if (!cost_infinite(n->cost[value])) n->value[count++] = value;
  }
  if (count == n->count) return;
  n->count = count;
  if (!count) state->infeasible = true;
  solve_state_enqueue(state, other);
}

static void reduce_single(SolveState *state, int node) {
  SolveNode *n = &state->nodes[node];
  state->constant += n->cost[n->value[0]];
  int count = solve_state_edges(state, node);
  for (int i = 0; i < count; i++)
    fold_into_neighbour(state, node, &state->edges.items[n->edges.items[i]], false);
  eliminate(state, node);
}

static void reduce_0(SolveState *state, int node) {
  const SolveNode *n = &state->nodes[node];
  int64_t best = PBQP_INFINITY;
  for (int i = 0; i < n->count; i++) best = MIN_OF(best, n->cost[n->value[i]]);
  state->constant += best;
  eliminate(state, node);
}

static void reduce_1(SolveState *state, int node) {
  solve_state_edges(state, node);
  fold_into_neighbour(state, node, &state->edges.items[state->nodes[node].edges.items[0]], true);
  eliminate(state, node);
}

typedef struct Side { // an edge of RII's node: classes of the neighbour's values and of its own
  SolveEdgeView view;
  SolveClasses far, near;
} Side;

static Side side_of(SolveState *state, int node, const SolveEdge *edge) {
  Arena *arena = state->solver->arena;
  SolveEdgeView v = solve_edge_view(edge, node);
  return (Side){
      v, solve_classes_left(arena, &state->nodes[v.other], v.other_class, v.other_count),
      solve_classes_left(arena, &state->nodes[node], v.mine_class, v.mine_count)};
}

// Adds the shift of the far end to that node's own costs, because the new edge's table lacks it.
static void absorb_shift(SolveState *state, const SolveEdge *edge, int node) {
  SolveEdgeView view = solve_edge_view(edge, node);
  SolveNode *far = &state->nodes[view.other];
  if (!view.other_shift) return;
  for (int i = 0; i < far->count; i++) far->cost[far->value[i]] += view.other_shift[far->value[i]];
}

// Adds the words on which the table depends that replaces the node.
static void add_elimination(WordKey *key, const SolveState *state, const SolveNode *n,
                            const SolveEdgeView *a, const SolveEdgeView *b) {
  solve_key_add_values(key, n);
  for (int i = 0; i < n->count; i++) word_key_add(key, (uint64_t)n->cost[n->value[i]]);
  solve_key_add_edge(key, a);
  solve_key_add_edge(key, b);
  solve_key_add_values(key, &state->nodes[a->other]);
  solve_key_add_values(key, &state->nodes[b->other]);
}

// The table that replaces a node: the least cost over its values, for each pair of classes of the
// neighbours' values. Values of one class in the edge to `inner` are alike for that neighbour, so
// for each class of `outer` they are first reduced to the one that costs least.
typedef struct NodeReduction {
  const SolveNode *node;
  const Side *inner, *outer;
  int64_t *own;      // by the position of a value: its cost and its shifts
  int64_t *least;    // by the node's class in the edge to `inner`, for one class of `outer`
  int64_t *rows;     // [class of inner][the node's class in that edge]
  SolveTable *table; // of the edge that replaces the node
  int64_t *cost;     // the table's entries
  int inner_step, outer_step;
} NodeReduction;

static void fill_rows(NodeReduction *r) {
  const Side *side = r->inner;
  int64_t *entry = r->rows;
  for (int i = 0; i < side->far.count; i++)
    for (int c = 0; c < side->near.count; c++)
      *entry++ = side->view.table->cost[(int64_t)side->near.used[c] * side->view.mine_step +
                                        (int64_t)side->far.used[i] * side->view.other_step];
}

static void fill_own_costs(NodeReduction *r) {
  const int64_t *x = r->inner->view.mine_shift, *y = r->outer->view.mine_shift;
  for (int i = 0; i < r->node->count; i++) {
    int value = r->node->value[i];
    r->own[i] = r->node->cost[value] + (x ? x[value] : 0) + (y ? y[value] : 0);
  }
}

static void reduce_values(NodeReduction *r, int outer) {
  const SolveEdgeView *v = &r->outer->view;
  const int64_t *line = v->table->cost + (int64_t)r->outer->far.used[outer] * v->other_step;
  for (int c = 0; c < r->inner->near.count; c++) r->least[c] = PBQP_INFINITY;
  for (int i = 0; i < r->node->count; i++) {
    int value = r->node->value[i];
    int64_t cost = r->own[i] + line[(int64_t)v->mine_class[value] * v->mine_step];
    int64_t *least = &r->least[r->inner->near.of_value[value]];
    *least = MIN_OF(*least, cost);
  }
}

static int64_t least_sum(const int64_t *x, const int64_t *y, int count) {
  int64_t best = PBQP_INFINITY;
  for (int i = 0; i < count; i++) best = MIN_OF(best, x[i] + y[i]);
  return cost_infinite(best) ? PBQP_INFINITY : best;
}

static void fill_table(NodeReduction *r) {
  int near = r->inner->near.count;
  fill_rows(r);
  fill_own_costs(r);
  for (int k = 0; k < r->outer->far.count; k++) {
    reduce_values(r, k);
    for (int i = 0; i < r->inner->far.count; i++) {
      int64_t least = least_sum(r->rows + (int64_t)i * near, r->least, near);
      r->cost[(int64_t)i * r->inner_step + (int64_t)k * r->outer_step] = least;
      r->table->has_infinity |= cost_infinite(least);
    }
  }
}

static int64_t reduction_work(const SolveNode *n, const Side *inner, const Side *outer) {
  return (int64_t)outer->far.count * (n->count + (int64_t)inner->far.count * inner->near.count);
}

static const SolveTable *table_without(SolveState *state, int node, const Side *a, const Side *b) {
  Arena *arena = state->solver->arena;
  const SolveNode *n = &state->nodes[node];
  SolveTable *table = arena_new(arena, SolveTable);
  int rows = a->far.count, columns = b->far.count;
  int64_t *cost = arena_take(arena, sizeof *cost * (size_t)rows * (size_t)columns);
  *table = (SolveTable){rows, columns, a->far.of_value, b->far.of_value, cost, false};
  ArenaMark mark = arena_mark(arena);
  NodeReduction r = {n, a, b, .table = table, .cost = cost, .inner_step = columns, .outer_step = 1};
  if (reduction_work(n, b, a) < reduction_work(n, a, b)) {
    r.inner = b, r.outer = a;
    r.inner_step = 1, r.outer_step = columns;
  }
  state->solver->work += reduction_work(n, r.inner, r.outer);
  r.own = arena_array(arena, int64_t, n->count);
  r.least = arena_array(arena, int64_t, r.inner->near.count);
  r.rows = arena_array(arena, int64_t,
                       (size_t)r.inner->far.count * (size_t)r.inner->near.count);
  fill_table(&r);
  arena_reset(arena, mark);
  return table;
}

// The same, made once for all nodes that are equal in themselves and their edges.
static const SolveTable *table_once(SolveState *state, int node, const SolveEdge *edge_a,
                                    const SolveEdge *edge_b) {
  SolveEdgeView view_a = solve_edge_view(edge_a, node), view_b = solve_edge_view(edge_b, node);
  WordKey *key = &state->solver->key;
  key->count = 0;
  key->whole = true;
  add_elimination(key, state, &state->nodes[node], &view_a, &view_b);
  void **known = key->whole ? map_place(&state->eliminations, key) : NULL;
  if (known && *known) return *known;
  Side a = side_of(state, node, edge_a), b = side_of(state, node, edge_b);
  const SolveTable *table = table_without(state, node, &a, &b);
  if (known) *known = (void *)table;
  return table;
}

static void reduce_2(SolveState *state, int node) {
  SolveNode *n = &state->nodes[node];
  solve_state_edges(state, node);
  SolveEdge a = state->edges.items[n->edges.items[0]], b = state->edges.items[n->edges.items[1]];
  const SolveTable *table = table_once(state, node, &a, &b);
  state->solver->work += (int64_t)table->rows * table->columns;
  absorb_shift(state, &a, node);
  absorb_shift(state, &b, node);
  eliminate(state, node);
  solve_state_add_edge(state, a.a == node ? a.b : a.a, b.a == node ? b.b : b.a, table);
}

bool solve_state_reduce(SolveState *state) {
  while (!state->infeasible) {
    int node = queue_pop(state);
    if (node < 0) break;
    SolveNode *n = &state->nodes[node];
    if (n->gone) continue;
    if (n->count == 0)
      state->infeasible = true;
    else if (n->count == 1)
      reduce_single(state, node);
    else if (n->degree == 0)
      reduce_0(state, node);
    else if (n->degree == 1)
      reduce_1(state, node);
    else if (n->degree == 2 && !solve_out_of_work(state->solver))
      reduce_2(state, node);
  }
  return !state->infeasible;
}
