// SPDX-License-Identifier: Apache-2.0
// Drops values that no best plan needs, by looking at a node and its edges only: a value without a
// compatible value at some neighbour (arc consistency), and a value that another value of the node
// replaces without loss, whatever the neighbours choose (Goldstein 1994):
//
//   drop v when some w has  cost(w) − cost(v) + Σ_edges max_y (edge(w, y) − edge(v, y)) ≤ 0
#include "solve/state.h"

enum { DOMINANCE_MAX_DEGREE = 256 };

// ---- Arc consistency ---------------------------------------------------------------------------

// Drops values of the edge's other end that no value of `node` allows; true when some were dropped.
static bool filter_other(SolveState *state, int node, const SolveEdge *edge) {
  int other = edge->a == node ? edge->b : edge->a;
  SolveNode *n = &state->nodes[other];
  int64_t *message = state->solver->temporary[2];
  solve_edge_message(state, edge, other, NULL, message);
  int count = 0;
  for (int i = 0; i < n->count; i++)
    if (!cost_infinite(message[n->value[i]])) n->value[count++] = n->value[i];
  if (count == n->count) return false;
  n->count = count;
  if (!count) state->infeasible = true;
  solve_state_enqueue(state, other);
  return true;
}

bool solve_state_filter(SolveState *state) {
  Arena *arena = state->solver->arena;
  SolveQueue *queue = &state->unfiltered;
  queue->first = queue->items.count = 0;
  if (!state->waiting.words) state->waiting = bit_set_new(arena, state->node_count);
  for (int i = 0; i < state->node_count; i++) {
    if (state->nodes[i].gone) continue;
    array_push(arena, &queue->items, i);
    bit_set_add(&state->waiting, i);
  }
  while (queue->first < queue->items.count && !state->infeasible) {
    int node = queue->items.items[queue->first++], count = solve_state_edges(state, node);
    bit_set_remove(&state->waiting, node);
    for (int k = 0; k < count; k++) {
      const SolveEdge *e = &state->edges.items[state->nodes[node].edges.items[k]];
      int other = e->a == node ? e->b : e->a;
      if (!e->table->has_infinity || !filter_other(state, node, e)) continue;
      if (bit_set_has(&state->waiting, other)) continue;
      bit_set_add(&state->waiting, other);
      array_push(arena, &queue->items, other);
    }
  }
  return !state->infeasible;
}

// ---- Dominance ---------------------------------------------------------------------------------

typedef struct
    CostLines { // of one edge: a line for each class of the node, over the far classes left
  SolveEdgeView view;
  int *used, count;
  int64_t *work; // of the solver
} CostLines;

static CostLines lines_of(SolveState *state, const SolveEdge *edge, int node) {
  Arena *arena = state->solver->arena;
  CostLines lines = {.view = solve_edge_view(edge, node), .work = &state->solver->work};
  const SolveNode *far = &state->nodes[lines.view.other];
  lines.used = arena_array(arena, int, lines.view.other_count);
  bool *seen = arena_array(arena, bool, lines.view.other_count);
  for (int i = 0; i < far->count; i++) {
    int class = lines.view.other_class[far->value[i]];
    if (!seen[class]) lines.used[lines.count++] = class;
    seen[class] = true;
  }
  return lines;
}

// max_y (edge(w, y) − edge(v, y)) over the y that allow v; infinite when one of them forbids w.
static int64_t worst_change(const CostLines *lines, int w, int v) {
  const SolveEdgeView *view = &lines->view;
  int64_t shift = view->mine_shift ? view->mine_shift[w] - view->mine_shift[v] : 0;
  int class_w = view->mine_class[w], class_v = view->mine_class[v];
  if (class_w == class_v) return shift;
  const int64_t *cost = view->table->cost;
  int64_t worst = -PBQP_INFINITY;
  for (int i = 0; i < lines->count; i++, ++*lines->work) {
    int64_t place = (int64_t)lines->used[i] * view->other_step;
    int64_t of_v = cost[(int64_t)class_v * view->mine_step + place];
    int64_t of_w = cost[(int64_t)class_w * view->mine_step + place];
    if (cost_infinite(of_v)) continue;
    if (cost_infinite(of_w)) return PBQP_INFINITY;
    worst = MAX_OF(worst, of_w - of_v);
  }
  return worst + shift;
}

static bool dominates(const SolveNode *n, const CostLines *lines, int line_count, int w, int v) {
  int64_t change = n->cost[w] - n->cost[v];
  for (int i = 0; i < line_count; i++) {
    int64_t worst = worst_change(&lines[i], w, v);
    if (cost_infinite(worst)) return false;
    if (worst < -PBQP_INFINITY / 2) return true; // no neighbour's value allows v
    change += worst;
  }
  return change <= 0;
}

static bool dominated(const SolveNode *n, const CostLines *lines, int line_count, int v) {
  for (int i = 0; i < n->count; i++, ++*lines->work)
    if (n->value[i] != v && dominates(n, lines, line_count, n->value[i], v)) return true;
  return false;
}

static bool dominate_node(SolveState *state, int node) {
  SolveNode *n = &state->nodes[node];
  int degree = solve_state_edges(state, node), before = n->count;
  if (degree > DOMINANCE_MAX_DEGREE) return false;
  Arena *arena = state->solver->arena;
  ArenaMark mark = arena_mark(arena);
  CostLines *lines = arena_array(arena, CostLines, degree + 1);
  for (int i = 0; i < degree; i++)
    lines[i] = lines_of(state, &state->edges.items[n->edges.items[i]], node);
  for (int i = n->count; i-- > 0 && !solve_out_of_work(state->solver);) {
    if (!dominated(n, lines, degree, n->value[i])) continue;
    for (int k = i; k + 1 < n->count; k++) n->value[k] = n->value[k + 1];
    n->count--;
  }
  arena_reset(arena, mark);
  solve_state_enqueue(state, node);
  return n->count < before;
}

bool solve_state_dominate(SolveState *state) {
  bool changed = false;
  for (int i = 0; i < state->node_count && !solve_out_of_work(state->solver); i++)
    if (!state->nodes[i].gone && dominate_node(state, i)) changed = true;
  return changed;
}
