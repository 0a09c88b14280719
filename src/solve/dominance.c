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

// An edge: a line of costs for each class of the node, over the far classes that are left.
typedef struct CostLines {
  SolveEdgeView view;
  int *used, count;
  int *best;     // by class of the node: the entry of `used` that costs least in its line, or -1
  int64_t *work; // of the solver
} CostLines;

static int64_t line_cost(const CostLines *lines, int class, int far) {
  const SolveEdgeView *v = &lines->view;
  return v->table
      ->cost[(int64_t)class * v->mine_step + (int64_t)lines->used[far] * v->other_step];
}

static int best_of_line(const CostLines *lines, int class) {
  int best = -1;
  int64_t least = PBQP_INFINITY;
  for (int i = 0; i < lines->count; i++) {
    int64_t cost = line_cost(lines, class, i);
    if (cost_infinite(cost) || cost >= least) continue;
    best = i;
    least = cost;
  }
  return best;
}

static CostLines lines_of(SolveState *state, const SolveEdge *edge, int node) {
  Arena *arena = state->solver->arena;
  SolveEdgeView v = solve_edge_view(edge, node);
  const SolveNode *near = &state->nodes[node], *far = &state->nodes[v.other];
  SolveClasses others = solve_classes_left(arena, far, v.other_class, v.other_count);
  SolveClasses own = solve_classes_left(arena, near, v.mine_class, v.mine_count);
  CostLines lines = {v, others.used, others.count, .work = &state->solver->work};
  lines.best = arena_array(arena, int, v.mine_count);
  for (int i = 0; i < own.count; i++) {
    lines.best[own.used[i]] = best_of_line(&lines, own.used[i]);
    *lines.work += lines.count;
  }
  return lines;
}

static int64_t shift_change(const CostLines *lines, int w, int v) {
  const int64_t *shift = lines->view.mine_shift;
  return shift ? shift[w] - shift[v] : 0;
}

// edge(w, y) − edge(v, y) for the y that is cheapest beside v: no more than worst_change.
static int64_t change_at_best(const CostLines *lines, int w, int v) {
  int class_w = lines->view.mine_class[w], class_v = lines->view.mine_class[v];
  int64_t shift = shift_change(lines, w, v);
  if (class_w == class_v) return shift;
  int best = lines->best[class_v];
  if (best < 0) return -PBQP_INFINITY;
  int64_t of_w = line_cost(lines, class_w, best);
  return cost_infinite(of_w) ? PBQP_INFINITY : of_w - line_cost(lines, class_v, best) + shift;
}

// max_y (edge(w, y) − edge(v, y)) over the y that allow v; infinite when one of them forbids w.
static int64_t worst_change(const CostLines *lines, int w, int v) {
  int class_w = lines->view.mine_class[w], class_v = lines->view.mine_class[v];
  int64_t shift = shift_change(lines, w, v);
  if (class_w == class_v) return shift;
  int64_t worst = -PBQP_INFINITY;
  for (int i = 0; i < lines->count; i++, ++*lines->work) {
    int64_t of_v = line_cost(lines, class_v, i), of_w = line_cost(lines, class_w, i);
    if (cost_infinite(of_v)) continue;
    if (cost_infinite(of_w)) return PBQP_INFINITY;
    worst = MAX_OF(worst, of_w - of_v);
  }
  return worst + shift;
}

// Most pairs of values are told apart by the one value of each neighbour that is best beside v.
static bool may_dominate(const SolveNode *n, const CostLines *lines, int line_count, int w, int v) {
  enum { WORK = 4 }; // the entries of the table are far from each other
  int64_t change = n->cost[w] - n->cost[v];
  for (int i = 0; i < line_count; i++) {
    *lines->work += WORK;
    int64_t least = change_at_best(&lines[i], w, v);
    if (cost_infinite(least)) return false;
    if (least < -PBQP_INFINITY / 2) return true;
    change += least;
  }
  return change <= 0;
}

static bool dominates(const SolveNode *n, const CostLines *lines, int line_count, int w, int v) {
  if (!may_dominate(n, lines, line_count, w, v)) return false;
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
