// SPDX-License-Identifier: Apache-2.0
// Branch and bound over the state that the reductions leave. Each round reduces the state by exact
// steps. When no step applies any more, one node is fixed to its most promising value in a copy,
// and that value is dropped from the state itself. When the work runs out, the bound of every part
// that is still open counts, so the result is a plan and a proven distance from the optimum.
#include "solve/state.h"

enum { MAX_DEPTH = 400, ROOT_SWEEPS = 2000, BRANCH_SWEEPS = 12 };

typedef struct SolveSearch {
  SolveState *state;
  int *choice, *trial; // of the state's nodes
  int64_t limit;       // a plan must cost less; equals *cost once a plan was found
  int64_t *cost;
  int64_t open; // least bound of the parts left open
  int depth;
} SolveSearch;

static bool above(const SolveSearch *s, int64_t bound) {
  return bound > s->limit - s->state->step || cost_infinite(bound);
}

// Takes over `trial`, which holds a choice for each node left in the state, if it costs less.
static void accept(SolveSearch *s, int64_t cost) {
  if (cost >= s->limit || cost_infinite(cost)) return;
  solve_state_restore(s->state, s->trial);
  memcpy(s->choice, s->trial, sizeof(int) * (size_t)s->state->node_count);
  *s->cost = s->limit = cost;
}

// ---- Connected components ----------------------------------------------------------------------

// Numbers the connected components of the graph; part[node] is the number. Returns their count.
static int find_parts(SolveState *state, int *part) {
  int count = 0, *stack = arena_array(state->solver->arena, int, state->node_count);
  for (int i = 0; i < state->node_count; i++) part[i] = -1;
  for (int i = 0; i < state->node_count; i++) {
    if (state->nodes[i].gone || part[i] >= 0) continue;
    int depth = 0;
    stack[depth++] = i;
    part[i] = count;
    while (depth) {
      int node = stack[--depth], degree = solve_state_edges(state, node);
      for (int k = 0; k < degree; k++) {
        const SolveEdge *e = &state->edges.items[state->nodes[node].edges.items[k]];
        int other = e->a == node ? e->b : e->a;
        if (part[other] >= 0) continue;
        part[other] = count;
        stack[depth++] = other;
      }
    }
    count++;
  }
  return count;
}

// Solves a component, whose nodes are pick[0..count), alone; adds its results to *bound and *cost.
static void search_part(SolveSearch *s, const int *pick, int count, int64_t *bound, int64_t *cost) {
  SolveState *state = s->state;
  Arena *arena = state->solver->arena;
  ArenaMark mark = arena_mark(arena);
  SolveState *copy = solve_state_copy(state, pick, count, 1);
  int *choice = arena_array(arena, int, count);
  int64_t part_cost = PBQP_INFINITY;
  *bound =
      cost_add(*bound, solve_state_search(copy, PBQP_INFINITY, choice, &part_cost, s->depth + 1));
  *cost = cost_add(*cost, part_cost);
  for (int i = 0; i < count; i++) s->trial[pick[i]] = choice[i];
  arena_reset(arena, mark);
}

// Puts the nodes of one component after those of another. Returns where each begins, and where the
// last one ends.
static int *sort_by_part(const SolveState *state, const int *part, int count, int *pick) {
  int *first = arena_array(state->solver->arena, int, count + 2);
  for (int i = 0; i < state->node_count; i++)
    if (part[i] >= 0) first[part[i] + 2]++;
  for (int i = 2; i < count + 2; i++) first[i] += first[i - 1];
  for (int i = 0; i < state->node_count; i++)
    if (part[i] >= 0) pick[first[part[i] + 1]++] = i;
  return first;
}

static bool search_parts(SolveSearch *s) {
  Arena *arena = s->state->solver->arena;
  ArenaMark mark = arena_mark(arena);
  int *part = arena_array(arena, int, s->state->node_count);
  int count = find_parts(s->state, part);
  if (count < 2) arena_reset(arena, mark);
  if (count < 2) return false;
  int64_t bound = s->state->constant, cost = s->state->constant;
  int *pick = arena_array(arena, int, s->state->left),
      *first = sort_by_part(s->state, part, count, pick);
  for (int i = 0; i < count; i++)
    search_part(s, pick + first[i], first[i + 1] - first[i], &bound, &cost);
  accept(s, cost);
  s->open = MIN_OF(s->open, bound);
  return true;
}

// ---- Branching ---------------------------------------------------------------------------------

// The node with the largest product of degree and cost gap between its two best values; *value is
// its best value.
static int branch_node(SolveState *state, int *value) {
  int best = -1;
  int64_t best_gap = -1;
  for (int i = 0; i < state->node_count; i++) {
    const SolveNode *n = &state->nodes[i];
    if (n->gone) continue;
    int64_t first = INT64_MAX, second = INT64_MAX;
    int at = 0;
    for (int k = 0; k < n->count; k++) {
      int64_t cost = n->cost[n->value[k]];
      if (cost < first) {
        second = first;
        first = cost;
        at = n->value[k];
      } else if (cost < second) {
        second = cost;
      }
    }
    int64_t gap = (second - first + 1) * n->degree;
    if (gap <= best_gap) continue;
    best = i;
    best_gap = gap;
    *value = at;
  }
  return best;
}

static void branch(SolveSearch *s) {
  SolveState *state = s->state;
  Arena *arena = state->solver->arena;
  int value = 0, node = branch_node(state, &value);
  ArenaMark mark = arena_mark(arena);
  int count = 0, *pick = arena_array(arena, int, state->left), at = 0;
  for (int i = 0; i < state->node_count; i++) {
    if (state->nodes[i].gone) continue;
    if (i == node) at = count;
    pick[count++] = i;
  }
  SolveState *copy = solve_state_copy(state, pick, count, 1);
  copy->constant = state->constant;
  solve_state_fix(copy, at, value);
  int *choice = arena_array(arena, int, count);
  int64_t cost = PBQP_INFINITY;
  state->solver->branches++;
  int64_t bound = solve_state_search(copy, s->limit, choice, &cost, s->depth + 1);
  s->open = MIN_OF(s->open, bound);
  if (cost < s->limit) {
    for (int i = 0; i < count; i++) s->trial[pick[i]] = choice[i];
    accept(s, cost);
  }
  arena_reset(arena, mark);
  solve_state_drop_value(state, node, value);
}

// ---- One round ---------------------------------------------------------------------------------

static void guess(SolveSearch *s) {
  int64_t cost;
  if (solve_state_guess(s->state, s->trial, &cost)) accept(s, cost);
}

static bool shrink(SolveSearch *s) {
  SolveState *state = s->state;
  do {
    if (!solve_state_reduce(state) || !solve_state_filter(state) || !solve_state_reduce(state))
      return false;
  } while (state->left && solve_state_dominate(state));
  return !state->infeasible;
}

typedef enum Round { ROUND_DONE, ROUND_SMALLER, ROUND_STUCK } Round;

static Round bound_round(SolveSearch *s, bool first) {
  SolveState *state = s->state;
  SolveRun *solver = state->solver;
  bool root = s->depth == 0 && first;
  if (first && cost_infinite(s->limit)) guess(s);
  int64_t work = root ? solver->work_limit / 3 : solver->work_limit;
  int dropped = solve_state_bound(state, s->limit, root ? ROOT_SWEEPS : BRANCH_SWEEPS, work);
  if (above(s, state->constant) || state->infeasible) return ROUND_DONE;
  if (first || !solver->branches) {
    int64_t before = s->limit;
    guess(s);
    if (above(s, state->constant)) return ROUND_DONE;
    if (s->limit < before) dropped += solve_state_bound(state, s->limit, 1, work);
  }
  if (solve_out_of_work(solver) || s->depth >= MAX_DEPTH) {
    s->open = MIN_OF(s->open, state->constant);
    return ROUND_DONE;
  }
  return dropped ? ROUND_SMALLER : ROUND_STUCK;
}

static Round one_round(SolveSearch *s, bool first) {
  SolveState *state = s->state;
  if (!shrink(s)) return ROUND_DONE;
  int64_t cost;
  if (!state->left) {
    accept(s, state->constant);
    return ROUND_DONE;
  }
  if (solve_state_by_elimination(state, s->trial, &cost)) {
    accept(s, cost);
    return ROUND_DONE;
  }
  if (search_parts(s)) return ROUND_DONE;
  return bound_round(s, first);
}

int64_t solve_state_search(SolveState *state, int64_t limit, int *choice, int64_t *cost,
                           int depth) {
  Arena *arena = state->solver->arena;
  ArenaMark mark = arena_mark(arena);
  SolveSearch s = {.state = state,
                   .choice = choice,
                   .limit = limit,
                   .cost = cost,
                   .open = PBQP_INFINITY,
                   .depth = depth};
  s.trial = arena_array(arena, int, state->node_count);
  Round round = one_round(&s, true);
  while (round != ROUND_DONE) {
    if (round == ROUND_STUCK) branch(&s);
    round = one_round(&s, false);
  }
  arena_reset(arena, mark);
  return MIN_OF(s.open, s.limit);
}
