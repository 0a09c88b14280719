// SPDX-License-Identifier: Apache-2.0
// Improves a plan that is known, region by region (large neighbourhood search): a node and those
// around it are chosen anew by the search, while all other nodes keep their values. When no region
// of a size gives a cheaper plan, the regions become larger. See Shaw, "Using constraint
// programming and local search methods to solve vehicle routing problems", 1998.
#include "solve/state.h"

enum { FIRST_REGION = 6, LAST_REGION = 384 };

typedef struct Improving {
  SolveState *state;
  int *choice;
  int *pick, count; // the region, nearest to its first node first
  bool *inside;     // of the region, by node
  bool *covered;    // lay in a region of this size that has no cheaper plan
} Improving;

static void add_to_region(Improving *g, int node) {
  if (g->inside[node]) return;
  g->inside[node] = true;
  g->pick[g->count++] = node;
}

static void find_region(Improving *g, int seed, int most) {
  SolveState *state = g->state;
  for (int i = 0; i < g->count; i++) g->inside[g->pick[i]] = false;
  g->count = 0;
  add_to_region(g, seed);
  for (int i = 0; i < g->count && g->count < most; i++) {
    int degree = solve_state_edges(state, g->pick[i]);
    for (int k = 0; k < degree && g->count < most; k++) {
      const SolveEdge *e = &state->edges.items[state->nodes[g->pick[i]].edges.items[k]];
      add_to_region(g, e->a == g->pick[i] ? e->b : e->a);
    }
  }
}

// Adds the costs of the edges to nodes outside the region, which keep their values.
static void add_outside(const Improving *g, SolveNode *copy, int node) {
  SolveState *state = g->state;
  int degree = solve_state_edges(state, node);
  for (int k = 0; k < degree; k++) {
    SolveEdgeView v = solve_edge_view(&state->edges.items[state->nodes[node].edges.items[k]], node);
    if (g->inside[v.other]) continue;
    for (int i = 0; i < copy->count; i++) {
      int64_t *cost = &copy->cost[copy->value[i]];
      *cost = cost_add(*cost, view_cost(&v, copy->value[i], g->choice[v.other]));
    }
  }
}

static SolveState *region_state(const Improving *g) {
  SolveState *copy = solve_state_copy(g->state, g->pick, g->count, 1);
  for (int i = 0; i < g->count; i++) {
    SolveNode *n = &copy->nodes[i];
    bool *keep = arena_array(g->state->solver->arena, bool, n->count + 1);
    add_outside(g, n, g->pick[i]);
    for (int k = 0; k < n->count; k++) keep[k] = !cost_infinite(n->cost[n->value[k]]);
    solve_state_keep_values(copy, i, keep);
  }
  return copy;
}

// Chooses the region's values anew; true when that made the plan cheaper.
static bool improve_region(Improving *g, int64_t work) {
  SolveRun *solver = g->state->solver;
  ArenaMark mark = arena_mark(solver->arena);
  int64_t all_work = solver->work_limit;
  solver->work_limit = MIN_OF(all_work, solver->work + work);
  SolveState *region = region_state(g);
  int *trial = arena_array(solver->arena, int, g->count);
  for (int i = 0; i < g->count; i++) trial[i] = g->choice[g->pick[i]];
  int64_t before = solve_state_cost(region, trial), cost = before;
  solve_state_search(region, before, trial, &cost, 1);
  for (int i = 0; i < g->count && cost < before; i++) g->choice[g->pick[i]] = trial[i];
  solver->work_limit = all_work;
  arena_reset(solver->arena, mark);
  return cost < before;
}

static bool improve_regions_of(Improving *g, int size) {
  const SolveRun *solver = g->state->solver;
  bool improved = false;
  memset(g->covered, 0, sizeof(bool) * (size_t)g->state->node_count);
  for (int i = 0; i < g->state->node_count && !solve_out_of_work(solver); i++) {
    if (g->covered[i]) continue;
    find_region(g, i, size);
    improved |= improve_region(g, solver->work_limit / 128);
    // The half nearest to the first node has been seen with enough around it.
    for (int k = 0; k < (g->count + 1) / 2; k++) g->covered[g->pick[k]] = true;
  }
  return improved;
}

void solve_state_improve(SolveState *state, int *choice) {
  Arena *arena = state->solver->arena;
  ArenaMark mark = arena_mark(arena);
  Improving g = {.state = state, .choice = choice};
  g.pick = arena_array(arena, int, state->node_count + 1);
  g.inside = arena_array(arena, bool, state->node_count + 1);
  g.covered = arena_array(arena, bool, state->node_count + 1);
  for (int size = FIRST_REGION; size <= LAST_REGION && !solve_out_of_work(state->solver); size *= 2)
    while (improve_regions_of(&g, size) && !solve_out_of_work(state->solver)) continue;
  arena_reset(arena, mark);
}
