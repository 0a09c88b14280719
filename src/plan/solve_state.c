// SPDX-License-Identifier: Apache-2.0
// States of the solver: nodes, edges, dropping of values, copies. An edge that is gone keeps its
// place in the lists of its ends until they are next walked. Growing arrays belong to the arena as
// it stands, so nobody resets it below a state that is still used.
#include "plan/solve_state.h"

bool solver_out_of_work(const Solver *solver) {
  return solver->work > solver->work_limit;
}

State *state_new(Solver *solver, int node_count) {
  State *state = arena_new(solver->arena, State);
  state->solver = solver;
  state->node_count = state->left = node_count;
  state->nodes = arena_array(solver->arena, Node, node_count + 1);
  state->step = 1;
  return state;
}

void state_add_node(State *state, int node, int choices, const int64_t *cost) {
  Arena *arena = state->solver->arena;
  Node *n = &state->nodes[node];
  n->choices = n->count = choices;
  n->value = arena_array(arena, int, choices + 1);
  for (int i = 0; i < choices; i++) n->value[i] = i;
  n->cost = arena_copy(arena, cost, sizeof(int64_t) * (size_t)choices);
}

int state_edges(State *state, int node) {
  Node *n = &state->nodes[node];
  int count = 0;
  for (int i = 0; i < n->edges.count; i++)
    if (state->edges.items[n->edges.items[i]].table) n->edges.items[count++] = n->edges.items[i];
  n->edges.count = count;
  return count;
}

EdgeView edge_view(const Edge *e, int from) {
  const Table *t = e->table;
  if (from == e->a)
    return (EdgeView){t,          e->b,       t->rows,    t->columns, t->row_class, t->column_class,
                      e->shift_a, e->shift_b, t->columns, 1};
  return (EdgeView){t,          e->a,       t->columns, t->rows,   t->column_class, t->row_class,
                    e->shift_b, e->shift_a, 1,          t->columns};
}

// ---- Edges -------------------------------------------------------------------------------------

static int find_edge(State *state, int a, int b) {
  if (state->nodes[a].degree > state->nodes[b].degree) {
    int swap = a;
    a = b;
    b = swap;
  }
  int count = state_edges(state, a);
  for (int i = 0; i < count; i++) {
    int edge = state->nodes[a].edges.items[i];
    if (state->edges.items[edge].a == b || state->edges.items[edge].b == b) return edge;
  }
  return -1;
}

const Table *table_over_values(State *state, int a, int b, const int64_t *cost) {
  Arena *arena = state->solver->arena;
  const Node *na = &state->nodes[a], *nb = &state->nodes[b];
  Table *t = arena_new(arena, Table);
  int *row_class = arena_array(arena, int, na->choices);
  int *column_class = arena_array(arena, int, nb->choices);
  for (int i = 0; i < na->count; i++) row_class[na->value[i]] = i;
  for (int i = 0; i < nb->count; i++) column_class[nb->value[i]] = i;
  *t = (Table){na->count, nb->count, row_class, column_class, cost, false};
  for (int i = 0; i < na->count * nb->count; i++) t->has_infinity |= cost_infinite(cost[i]);
  return t;
}

// The sum of both, seen from e->a.
static const Table *table_sum(State *state, const Edge *e, const Edge *other) {
  const Node *na = &state->nodes[e->a], *nb = &state->nodes[e->b];
  EdgeView v = edge_view(e, e->a), w = edge_view(other, e->a);
  int64_t *cost = arena_array(state->solver->arena, int64_t, (size_t)na->count * (size_t)nb->count);
  for (int i = 0; i < na->count; i++)
    for (int k = 0; k < nb->count; k++)
      cost[i * nb->count + k] = cost_add(view_cost(&v, na->value[i], nb->value[k]),
                                         view_cost(&w, na->value[i], nb->value[k]));
  state->solver->work += na->count * nb->count;
  return table_over_values(state, e->a, e->b, cost);
}

void state_add_edge(State *state, int a, int b, const Table *table) {
  Arena *arena = state->solver->arena;
  Edge added = {a, b, table, NULL, NULL};
  int found = find_edge(state, a, b);
  if (found >= 0) {
    Edge *e = &state->edges.items[found];
    e->table = table_sum(state, e, &added);
    e->shift_a = e->shift_b = NULL;
    return;
  }
  array_push(arena, &state->nodes[a].edges, state->edges.count);
  array_push(arena, &state->nodes[b].edges, state->edges.count);
  array_push(arena, &state->edges, added);
  state->nodes[a].degree++;
  state->nodes[b].degree++;
}

// Least from_cost + shift over the values of each class of the far end.
static void least_by_class(const EdgeView *v, const Node *far, const int64_t *from_cost,
                           int64_t *least) {
  for (int c = 0; c < v->other_count; c++) least[c] = PROBLEM_INFINITY;
  for (int i = 0; i < far->count; i++) {
    int value = far->value[i];
    int64_t cost = from_cost ? from_cost[value] : 0;
    if (v->other_shift) cost += v->other_shift[value];
    int64_t *place = &least[v->other_class[value]];
    if (cost < *place) *place = cost;
  }
}

void edge_message(State *state, const Edge *edge, int to, const int64_t *from_cost, int64_t *out) {
  EdgeView v = edge_view(edge, to);
  const Node *near = &state->nodes[to], *far = &state->nodes[v.other];
  int64_t *least = state->solver->temporary[0], *result = state->solver->temporary[1];
  least_by_class(&v, far, from_cost, least);
  for (int c = 0; c < v.mine_count; c++) {
    const int64_t *line = v.table->cost + (int64_t)c * v.mine_step;
    int64_t best = PROBLEM_INFINITY;
    for (int k = 0; k < v.other_count; k++) {
      int64_t cost = line[(int64_t)k * v.other_step] + least[k];
      if (cost < best) best = cost;
    }
    result[c] = cost_infinite(best) ? PROBLEM_INFINITY : best;
  }
  for (int i = 0; i < near->count; i++) {
    int value = near->value[i];
    int64_t shift = v.mine_shift ? v.mine_shift[value] : 0;
    out[value] = cost_add(result[v.mine_class[value]], shift);
  }
  state->solver->work += v.mine_count * v.other_count + near->count + far->count;
}

// ---- Values ------------------------------------------------------------------------------------

void state_keep_values(State *state, int node, const bool *keep) {
  Node *n = &state->nodes[node];
  int count = 0;
  for (int i = 0; i < n->count; i++)
    if (keep[i]) n->value[count++] = n->value[i];
  if (count == n->count) return;
  n->count = count;
  if (!count) state->infeasible = true;
  if (count == 1) state_enqueue(state, node);
}

void state_drop_value(State *state, int node, int value) {
  Node *n = &state->nodes[node];
  int count = 0;
  for (int i = 0; i < n->count; i++)
    if (n->value[i] != value) n->value[count++] = n->value[i];
  n->count = count;
  if (!count) state->infeasible = true;
  state_enqueue(state, node);
}

void state_fix(State *state, int node, int value) {
  state->nodes[node].value[0] = value;
  state->nodes[node].count = 1;
  state_enqueue(state, node);
}

int64_t state_cost(State *state, const int *choice) {
  int64_t cost = state->constant;
  for (int i = 0; i < state->node_count; i++)
    if (!state->nodes[i].gone) cost = cost_add(cost, state->nodes[i].cost[choice[i]]);
  for (int i = 0; i < state->edges.count; i++) {
    const Edge *e = &state->edges.items[i];
    if (!e->table) continue;
    EdgeView v = edge_view(e, e->a);
    cost = cost_add(cost, view_cost(&v, choice[e->a], choice[e->b]));
  }
  return cost;
}

// ---- Copies ------------------------------------------------------------------------------------

static int64_t *scaled(Arena *arena, const int64_t *cost, int64_t count, int64_t scale) {
  if (!cost) return NULL;
  int64_t *copy = arena_array(arena, int64_t, count + 1);
  for (int64_t i = 0; i < count; i++)
    copy[i] = cost_infinite(cost[i]) ? PROBLEM_INFINITY : cost[i] * scale;
  return copy;
}

static const Table *table_scaled(Arena *arena, const Table *table, int64_t scale) {
  if (scale == 1) return table;
  Table *t = arena_copy(arena, table, sizeof *table);
  t->cost = scaled(arena, table->cost, (int64_t)t->rows * t->columns, scale);
  return t;
}

static void copy_node(State *to, int node, const Node *n, int64_t scale) {
  Arena *arena = to->solver->arena;
  Node *copy = &to->nodes[node];
  *copy = (Node){.choices = n->choices, .count = n->count};
  copy->value = arena_copy(arena, n->value, sizeof(int) * (size_t)n->choices);
  copy->cost = scaled(arena, n->cost, n->choices, scale);
}

static void copy_edge(State *to, const Edge *e, int a, int b, int64_t scale) {
  Arena *arena = to->solver->arena;
  Edge copy = {a, b, table_scaled(arena, e->table, scale), NULL, NULL};
  copy.shift_a = scaled(arena, e->shift_a, to->nodes[a].choices, scale);
  copy.shift_b = scaled(arena, e->shift_b, to->nodes[b].choices, scale);
  array_push(arena, &to->nodes[a].edges, to->edges.count);
  array_push(arena, &to->nodes[b].edges, to->edges.count);
  array_push(arena, &to->edges, copy);
  to->nodes[a].degree++;
  to->nodes[b].degree++;
}

State *state_copy(State *from, const int *pick, int count, int64_t scale) {
  Solver *solver = from->solver;
  State *to = state_new(solver, count);
  int *number = arena_array(solver->arena, int, from->node_count);
  for (int i = 0; i < from->node_count; i++) number[i] = -1;
  for (int i = 0; i < count; i++) {
    number[pick[i]] = i;
    copy_node(to, i, &from->nodes[pick[i]], scale);
    solver->work += from->nodes[pick[i]].choices;
  }
  for (int i = 0; i < count; i++) {
    int degree = state_edges(from, pick[i]);
    for (int k = 0; k < degree; k++) {
      const Edge *e = &from->edges.items[from->nodes[pick[i]].edges.items[k]];
      if (e->a == pick[i] && number[e->b] >= 0) copy_edge(to, e, i, number[e->b], scale);
    }
  }
  to->step = from->step * scale;
  for (int i = 0; i < count; i++) state_enqueue(to, i);
  return to;
}
