// SPDX-License-Identifier: Apache-2.0
// Finds a good plan for the nodes that the exact reductions leave (rule RN of PBQP): the node of
// highest degree is fixed to the value that is best together with its neighbours' best values, and
// the exact reductions run again. That value is mostly the right one when `solve_state_bound` has
// moved costs towards the nodes before. When a node is left without a value, another try starts
// with this node. The plan found is then improved one node at a time.
#include "solve/state.h"

#include <stdlib.h>

enum { TRIES = 12, IMPROVING_SWEEPS = 20 };

typedef struct Rank {
  int node, degree, failures;
} Rank;

static int by_rank(const void *a, const void *b) {
  const Rank *p = a, *q = b;
  if (p->failures != q->failures) return q->failures - p->failures;
  if (p->degree != q->degree) return q->degree - p->degree;
  return p->node - q->node;
}

// The value of least cost, which is its own cost plus, for each edge, the least sum of edge cost
// and neighbour's cost.
static int promising_value(SolveState *state, int node) {
  const SolveNode *n = &state->nodes[node];
  int64_t *sum = state->solver->temporary[3], *message = state->solver->temporary[2];
  int count = solve_state_edges(state, node), best = 0;
  for (int i = 0; i < n->count; i++) sum[i] = n->cost[n->value[i]];
  for (int k = 0; k < count; k++) {
    const SolveEdge *e = &state->edges.items[n->edges.items[k]];
    int other = e->a == node ? e->b : e->a;
    solve_edge_message(state, e, node, state->nodes[other].cost, message);
    for (int i = 0; i < n->count; i++) sum[i] = cost_add(sum[i], message[n->value[i]]);
  }
  for (int i = 1; i < n->count; i++)
    if (sum[i] < sum[best]) best = i;
  return n->value[best];
}

// -1 when the plan was completed, otherwise a node that was left without values.
static int fix_all(SolveState *state, const Rank *order) {
  for (int i = 0; solve_state_reduce(state); i++) {
    while (i < state->node_count && state->nodes[order[i].node].gone) i++;
    if (i == state->node_count) return -1;
    solve_state_fix(state, order[i].node, promising_value(state, order[i].node));
  }
  for (int i = 0; i < state->node_count; i++)
    if (!state->nodes[i].count) return i;
  return 0;
}

static int *all_nodes(SolveState *state, int *count) {
  int *pick = arena_array(state->solver->arena, int, state->left);
  *count = 0;
  for (int i = 0; i < state->node_count; i++)
    if (!state->nodes[i].gone) pick[(*count)++] = i;
  return pick;
}

// ---- Improving ---------------------------------------------------------------------------------

static bool improve_node(SolveState *state, int node, int *choice) {
  const SolveNode *n = &state->nodes[node];
  int64_t *sum = state->solver->temporary[3];
  int count = solve_state_edges(state, node), before = choice[node];
  for (int i = 0; i < n->count; i++) sum[i] = n->cost[n->value[i]];
  for (int k = 0; k < count; k++) {
    SolveEdgeView v = solve_edge_view(&state->edges.items[n->edges.items[k]], node);
    for (int i = 0; i < n->count; i++)
      sum[i] = cost_add(sum[i], view_cost(&v, n->value[i], choice[v.other]));
  }
  state->solver->work += (int64_t)count * n->count;
  int best = -1;
  int64_t least = INT64_MAX;
  for (int i = 0; i < n->count; i++)
    if (sum[i] < least || (sum[i] == least && n->value[i] == before)) {
      least = sum[i];
      best = n->value[i];
    }
  choice[node] = best;
  return best != before;
}

static void improve(SolveState *state, int *choice) {
  bool changed = true;
  for (int sweep = 0; sweep < IMPROVING_SWEEPS && changed; sweep++) {
    changed = false;
    for (int i = 0; i < state->node_count; i++)
      if (!state->nodes[i].gone && improve_node(state, i, choice)) changed = true;
  }
}

bool solve_state_guess(SolveState *state, int *choice, int64_t *cost) {
  Arena *arena = state->solver->arena;
  ArenaMark mark = arena_mark(arena);
  int count, *pick = all_nodes(state, &count), *copied = arena_array(arena, int, count + 1);
  Rank *order = arena_array(arena, Rank, count + 1);
  int *failures = arena_array(arena, int, count + 1);
  int failed = 0;
  for (int try = 0; try < TRIES && failed >= 0; try++) {
    ArenaMark before = arena_mark(arena);
    SolveState *copy = solve_state_copy(state, pick, count, 1);
    for (int i = 0; i < count; i++) order[i] = (Rank){i, copy->nodes[i].degree, failures[i]};
    qsort(order, (size_t)count, sizeof *order, by_rank);
    failed = fix_all(copy, order);
    if (failed < 0) solve_state_restore(copy, copied);
    if (failed >= 0) failures[failed]++;
    arena_reset(arena, before);
    if (failed >= 0 && try && solve_out_of_work(state->solver)) break;
  }
  for (int i = 0; i < count && failed < 0; i++) choice[pick[i]] = copied[i];
  arena_reset(arena, mark);
  if (failed >= 0) return false;
  improve(state, choice);
  *cost = solve_state_cost(state, choice);
  return true;
}
