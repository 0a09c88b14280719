// SPDX-License-Identifier: Apache-2.0
// States of the solver: nodes, edges, dropping of values, copies. An eliminated edge stays in the
// lists of its ends until each list is next walked. A state's growing arrays are in the solver's
// arena, so the arena must not be reset to a mark older than a state that is still used.
#include "solve/state.h"

bool solve_out_of_work(const SolveRun *solver) {
  return solver->work > solver->work_limit;
}

SolveState *solve_state_new(SolveRun *solver, int node_count) {
  SolveState *state = arena_new(solver->arena, SolveState);
  state->solver = solver;
  state->node_count = state->left = node_count;
  state->nodes = arena_array(solver->arena, SolveNode, node_count + 1);
  state->copied = arena_array(solver->arena, int, node_count + 1);
  state->step = 1;
  state->eliminations = state->sums = map_new(solver->arena);
  return state;
}

void solve_state_add_node(SolveState *state, int node, int choices, const int64_t *cost) {
  Arena *arena = state->solver->arena;
  SolveNode *n = &state->nodes[node];
  n->choices = n->count = choices;
  n->value = arena_array(arena, int, choices + 1);
  for (int i = 0; i < choices; i++) n->value[i] = i;
  n->cost = arena_copy(arena, cost, sizeof(int64_t) * (size_t)choices);
}

int solve_state_edges(SolveState *state, int node) {
  SolveNode *n = &state->nodes[node];
  int count = 0;
  for (int i = 0; i < n->edges.count; i++)
    if (state->edges.items[n->edges.items[i]].table) n->edges.items[count++] = n->edges.items[i];
  n->edges.count = count;
  return count;
}

SolveEdgeView solve_edge_view(const SolveEdge *e, int from) {
  const SolveTable *t = e->table;
  if (from == e->a)
    return (SolveEdgeView){
        t,          e->b,       t->rows,    t->columns, t->row_class, t->column_class,
        e->shift_a, e->shift_b, t->columns, 1};
  return (SolveEdgeView){
      t,          e->a,       t->columns, t->rows,   t->column_class, t->row_class,
      e->shift_b, e->shift_a, 1,          t->columns};
}

SolveClasses solve_classes_left(Arena *arena, const SolveNode *n, const int *class_of,
                                int class_count) {
  SolveClasses classes = {0, arena_array(arena, int, class_count),
                          arena_array(arena, int, n->choices)};
  ArenaMark mark = arena_mark(arena);
  int *position = arena_array(arena, int, class_count);
  for (int i = 0; i < n->count; i++) {
    int class = class_of[n->value[i]];
    if (!position[class]) {
      classes.used[classes.count++] = class;
      position[class] = classes.count;
    }
    classes.of_value[n->value[i]] = position[class] - 1;
  }
  arena_reset(arena, mark);
  return classes;
}

void solve_key_add_values(WordKey *key, const SolveNode *node) {
  bool all = node->count == node->choices;
  word_key_add(key, (uint64_t)node->choices << 32 | (uint64_t)node->count);
  for (int i = 0; !all && i < node->count; i++) word_key_add(key, (uint64_t)node->value[i]);
}

void solve_key_add_edge(WordKey *key, const SolveEdgeView *view) {
  key->whole &= !view->mine_shift && !view->other_shift;
  word_key_add(key, map_key(view->table));
  word_key_add(key, view->mine_class == view->table->row_class);
}

// ---- Edges -------------------------------------------------------------------------------------

static int find_edge(SolveState *state, int a, int b) {
  if (state->nodes[a].degree > state->nodes[b].degree) {
    int swap = a;
    a = b;
    b = swap;
  }
  int count = solve_state_edges(state, a);
  for (int i = 0; i < count; i++) {
    int edge = state->nodes[a].edges.items[i];
    if (state->edges.items[edge].a == b || state->edges.items[edge].b == b) return edge;
  }
  return -1;
}

// A table with one class for each value that is left; `cost` is indexed by [value left of a][value
// left of b].
static const SolveTable *solve_table_over_values(SolveState *state, int a, int b,
                                                 const int64_t *cost) {
  Arena *arena = state->solver->arena;
  const SolveNode *na = &state->nodes[a], *nb = &state->nodes[b];
  SolveTable *t = arena_new(arena, SolveTable);
  int *row_class = arena_array(arena, int, na->choices);
  int *column_class = arena_array(arena, int, nb->choices);
  for (int i = 0; i < na->count; i++) row_class[na->value[i]] = i;
  for (int i = 0; i < nb->count; i++) column_class[nb->value[i]] = i;
  *t = (SolveTable){na->count, nb->count, row_class, column_class, cost, false};
  for (int i = 0; i < na->count * nb->count; i++) t->has_infinity |= cost_infinite(cost[i]);
  return t;
}

// The sum of the tables of both edges, oriented as in `e`.
static const SolveTable *table_sum(SolveState *state, const SolveEdge *e, const SolveEdge *other) {
  const SolveNode *na = &state->nodes[e->a], *nb = &state->nodes[e->b];
  SolveEdgeView v = solve_edge_view(e, e->a), w = solve_edge_view(other, e->a);
  int64_t *cost = arena_array(state->solver->arena, int64_t, (size_t)na->count * (size_t)nb->count);
  for (int i = 0; i < na->count; i++)
    for (int k = 0; k < nb->count; k++)
      cost[i * nb->count + k] = cost_add(view_cost(&v, na->value[i], nb->value[k]),
                                         view_cost(&w, na->value[i], nb->value[k]));
  return solve_table_over_values(state, e->a, e->b, cost);
}

// The same, made once for all edges that are equal.
static const SolveTable *sum_once(SolveState *state, const SolveEdge *e, const SolveEdge *other) {
  const SolveNode *na = &state->nodes[e->a], *nb = &state->nodes[e->b];
  SolveEdgeView v = solve_edge_view(e, e->a), w = solve_edge_view(other, e->a);
  WordKey *key = &state->solver->key;
  state->solver->work += na->count * nb->count;
  key->count = 0;
  key->whole = true;
  solve_key_add_edge(key, &v);
  solve_key_add_edge(key, &w);
  solve_key_add_values(key, na);
  solve_key_add_values(key, nb);
  if (!key->whole) return table_sum(state, e, other);
  void **known = map_place(&state->sums, key);
  if (!*known) *known = (void *)table_sum(state, e, other);
  return *known;
}

void solve_state_add_edge(SolveState *state, int a, int b, const SolveTable *table) {
  Arena *arena = state->solver->arena;
  SolveEdge added = {a, b, table, NULL, NULL};
  int found = find_edge(state, a, b);
  if (found >= 0) {
    SolveEdge *e = &state->edges.items[found];
    e->table = sum_once(state, e, &added);
    e->shift_a = e->shift_b = NULL;
    return;
  }
  array_push(arena, &state->nodes[a].edges, state->edges.count);
  array_push(arena, &state->nodes[b].edges, state->edges.count);
  array_push(arena, &state->edges, added);
  state->nodes[a].degree++;
  state->nodes[b].degree++;
}

// The least from_cost + shift over the values of each class of the far end.
static void least_by_class(const SolveEdgeView *v, const SolveNode *far, const int64_t *from_cost,
                           int64_t *least) {
  for (int c = 0; c < v->other_count; c++) least[c] = PBQP_INFINITY;
  for (int i = 0; i < far->count; i++) {
    int value = far->value[i];
    int64_t cost = from_cost ? from_cost[value] : 0;
    if (v->other_shift) cost += v->other_shift[value];
    int64_t *place = &least[v->other_class[value]];
    if (cost < *place) *place = cost;
  }
}

void solve_edge_message(SolveState *state, const SolveEdge *edge, int to, const int64_t *from_cost,
                        int64_t *out) {
  SolveEdgeView v = solve_edge_view(edge, to);
  const SolveNode *near = &state->nodes[to], *far = &state->nodes[v.other];
  int64_t *least = state->solver->temporary[0], *result = state->solver->temporary[1];
  least_by_class(&v, far, from_cost, least);
  for (int c = 0; c < v.mine_count; c++) {
    const int64_t *line = v.table->cost + (int64_t)c * v.mine_step;
    int64_t best = PBQP_INFINITY;
    for (int k = 0; k < v.other_count; k++) {
      int64_t cost = line[(int64_t)k * v.other_step] + least[k];
      if (cost < best) best = cost;
    }
    result[c] = cost_infinite(best) ? PBQP_INFINITY : best;
  }
  for (int i = 0; i < near->count; i++) {
    int value = near->value[i];
    int64_t shift = v.mine_shift ? v.mine_shift[value] : 0;
    out[value] = cost_add(result[v.mine_class[value]], shift);
  }
  state->solver->work += v.mine_count * v.other_count + near->count + far->count;
}

// ---- Values ------------------------------------------------------------------------------------

void solve_state_keep_values(SolveState *state, int node, const bool *keep) {
  SolveNode *n = &state->nodes[node];
  int count = 0;
  for (int i = 0; i < n->count; i++)
    if (keep[i]) n->value[count++] = n->value[i];
  if (count == n->count) return;
  n->count = count;
  if (!count) state->infeasible = true;
  if (count == 1) solve_state_enqueue(state, node);
}

void solve_state_drop_value(SolveState *state, int node, int value) {
  SolveNode *n = &state->nodes[node];
  int count = 0;
  for (int i = 0; i < n->count; i++)
    if (n->value[i] != value) n->value[count++] = n->value[i];
  n->count = count;
  if (!count) state->infeasible = true;
  solve_state_enqueue(state, node);
}

void solve_state_fix(SolveState *state, int node, int value) {
  state->nodes[node].value[0] = value;
  state->nodes[node].count = 1;
  solve_state_enqueue(state, node);
}

int64_t solve_state_cost(SolveState *state, const int *choice) {
  int64_t cost = state->constant;
  for (int i = 0; i < state->node_count; i++)
    if (!state->nodes[i].gone) cost = cost_add(cost, state->nodes[i].cost[choice[i]]);
  for (int i = 0; i < state->edges.count; i++) {
    const SolveEdge *e = &state->edges.items[i];
    if (!e->table) continue;
    SolveEdgeView v = solve_edge_view(e, e->a);
    cost = cost_add(cost, view_cost(&v, choice[e->a], choice[e->b]));
  }
  return cost;
}

// ---- Copies ------------------------------------------------------------------------------------

static int64_t *scaled(Arena *arena, const int64_t *cost, int64_t count, int64_t scale) {
  if (!cost) return NULL;
  int64_t *copy = arena_array(arena, int64_t, count + 1);
  for (int64_t i = 0; i < count; i++)
    copy[i] = cost_infinite(cost[i]) ? PBQP_INFINITY : cost[i] * scale;
  return copy;
}

// `known` has the scaled tables by the tables.
static const SolveTable *table_scaled(Map *known, const SolveTable *table, int64_t scale) {
  SolveTable *t = scale == 1 ? (SolveTable *)table : map_find(known, table);
  if (t) return t;
  t = arena_copy(known->arena, table, sizeof *table);
  t->cost = scaled(known->arena, table->cost, (int64_t)t->rows * t->columns, scale);
  map_put(known, table, t);
  return t;
}

static void copy_node(SolveState *to, int node, const SolveNode *n, int64_t scale) {
  Arena *arena = to->solver->arena;
  SolveNode *copy = &to->nodes[node];
  *copy = (SolveNode){.choices = n->choices, .count = n->count};
  copy->value = arena_copy(arena, n->value, sizeof(int) * (size_t)n->choices);
  copy->cost = scaled(arena, n->cost, n->choices, scale);
}

static void copy_edge(SolveState *to, const SolveEdge *e, int a, int b, int64_t scale, Map *known) {
  Arena *arena = to->solver->arena;
  SolveEdge copy = {a, b, table_scaled(known, e->table, scale), NULL, NULL};
  copy.shift_a = scaled(arena, e->shift_a, to->nodes[a].choices, scale);
  copy.shift_b = scaled(arena, e->shift_b, to->nodes[b].choices, scale);
  array_push(arena, &to->nodes[a].edges, to->edges.count);
  array_push(arena, &to->nodes[b].edges, to->edges.count);
  array_push(arena, &to->edges, copy);
  to->nodes[a].degree++;
  to->nodes[b].degree++;
}

SolveState *solve_state_copy(SolveState *from, const int *pick, int count, int64_t scale) {
  SolveRun *solver = from->solver;
  SolveState *to = solve_state_new(solver, count);
  Map known = map_new(solver->arena);
  for (int i = 0; i < count; i++) {
    from->copied[pick[i]] = i + 1;
    copy_node(to, i, &from->nodes[pick[i]], scale);
    solver->work += from->nodes[pick[i]].choices;
  }
  for (int i = 0; i < count; i++) {
    int degree = solve_state_edges(from, pick[i]);
    for (int k = 0; k < degree; k++) {
      const SolveEdge *e = &from->edges.items[from->nodes[pick[i]].edges.items[k]];
      int b = from->copied[e->b] - 1;
      if (e->a == pick[i] && b >= 0) copy_edge(to, e, i, b, scale, &known);
    }
  }
  for (int i = 0; i < count; i++) from->copied[pick[i]] = 0;
  to->step = from->step * scale;
  for (int i = 0; i < count; i++) solve_state_enqueue(to, i);
  return to;
}
