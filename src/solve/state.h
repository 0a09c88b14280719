// SPDX-License-Identifier: Apache-2.0
// Shared by the files of the solver. A *state* is a problem on its way to being solved: values are
// dropped, variables eliminated (and restored from a stack), edges replaced. Tables never change,
// so states copied for a branch share them. Values keep their numbers through all states.
#ifndef PLEAT_SOLVE_STATE_H
#define PLEAT_SOLVE_STATE_H

#include "solve/pbqp.h"

// Costs between classes of values of two variables.
typedef struct SolveTable {
  int rows, columns;
  const int *row_class, *column_class; // per value
  const int64_t *cost;                 // [rows * columns]
  bool has_infinity;
} SolveTable;

// cost(x_a, x_b) = table + shift_a[x_a] + shift_b[x_b]; shifts may be NULL (zero).
typedef struct SolveEdge {
  int a, b;
  const SolveTable *table; // NULL: gone
  int64_t *shift_a, *shift_b;
} SolveEdge;

// An edge seen from one of its ends.
typedef struct SolveEdgeView {
  const SolveTable *table;
  int other, mine_count, other_count;  // the other variable; numbers of classes
  const int *mine_class, *other_class; // per value
  const int64_t *mine_shift, *other_shift;
  int mine_step, other_step; // between classes in the table
} SolveEdgeView;

typedef struct SolveNode {
  int choices;   // values it had at first
  int count;     // values left
  int *value;    // those, ascending
  int64_t *cost; // per value number
  Array(int) edges;
  int degree; // edges that are not gone
  bool gone, queued;
} SolveNode;

typedef struct SolveElimination {
  int node, edge_count;
  SolveEdge *edges; // as they were
} SolveElimination;

typedef struct SolveQueue {
  Array(int) items;
  int first;
} SolveQueue;

typedef struct SolveRun {
  Context *context;
  Arena *arena;
  int64_t work, work_limit;
  int branches, most_choices;
  int64_t most_entries;  // of a table of bucket elimination
  int64_t *temporary[4]; // [most_choices] each, or of classes
} SolveRun;

typedef struct SolveState {
  SolveRun *solver;
  int node_count, left; // left: nodes that are not gone
  SolveNode *nodes;
  Array(SolveEdge) edges;
  Array(SolveElimination) eliminated;
  SolveQueue low, middle; // nodes to look at: degree ≤ 1 or one value; degree 2
  SolveQueue unfiltered;  // nodes whose neighbours solve_state_filter has to look at
  BitSet waiting;         // those that are in it
  int64_t constant;
  int64_t step; // all costs of complete assignments are multiples of it
  bool infeasible;
} SolveState;

// ---- Costs with infinity -----------------------------------------------------------------------

static inline bool cost_infinite(int64_t cost) {
  return cost >= PBQP_INFINITY / 2;
}
static inline int64_t cost_add(int64_t a, int64_t b) {
  return cost_infinite(a) || cost_infinite(b) ? PBQP_INFINITY : a + b;
}

// ---- States ------------------------------------------------------------------------------------

bool solve_out_of_work(const SolveRun *solver);

SolveState *solve_state_new(SolveRun *solver, int node_count);
// The nodes `pick` of `from` and the edges among them, costs times `scale`; node i is pick[i].
SolveState *solve_state_copy(SolveState *from, const int *pick, int count, int64_t scale);
void solve_state_add_node(SolveState *state, int node, int choices, const int64_t *cost);
void solve_state_add_edge(SolveState *state, int a, int b, const SolveTable *table);
// Edges of `node` that are not gone.
int solve_state_edges(SolveState *state, int node);
SolveEdgeView solve_edge_view(const SolveEdge *edge, int from);
static inline int64_t view_cost(const SolveEdgeView *v, int mine, int other) {
  int64_t c =
      v->table->cost[v->mine_class[mine] * v->mine_step + v->other_class[other] * v->other_step];
  if (v->mine_shift) c += v->mine_shift[mine];
  if (v->other_shift) c += v->other_shift[other];
  return cost_infinite(c) ? PBQP_INFINITY : c;
}
// out[value of `to`] = the least over values of the other end of the edge's cost + from_cost.
void solve_edge_message(SolveState *state, const SolveEdge *edge, int to, const int64_t *from_cost,
                        int64_t *out);
// A table with one class for each value that is left; `cost` is [left of a][left of b].
const SolveTable *solve_table_over_values(SolveState *state, int a, int b, const int64_t *cost);

// Keeps the values with keep[position].
void solve_state_keep_values(SolveState *state, int node, const bool *keep);
void solve_state_drop_value(SolveState *state, int node, int value);
void solve_state_fix(SolveState *state, int node, int value);
void solve_state_enqueue(SolveState *state, int node);

// Reductions of degree 0, 1 and 2 and of single values until none applies. False: infeasible.
bool solve_state_reduce(SolveState *state);
// Takes a node out, recording how to choose its value later; its edges are gone.
void solve_state_eliminate(SolveState *state, int node);
// Choices of eliminated nodes, latest first, from those of the others.
void solve_state_restore(SolveState *state, int *choice);
int64_t solve_state_cost(SolveState *state, const int *choice); // of the nodes that are left

// ---- Steps on what the reductions leave --------------------------------------------------------

// Drops values that no neighbour allows. False: infeasible.
bool solve_state_filter(SolveState *state);
// Drops values that another value of the node can always replace (Goldstein). True: some were.
bool solve_state_dominate(SolveState *state);
// Solves exactly by bucket elimination when its tables stay small: false when they do not.
bool solve_state_by_elimination(SolveState *state, int *choice, int64_t *cost);
// Sweeps of sequential tree-reweighted message passing that move costs into `constant`, which
// becomes a lower bound of the whole state; then drops values that cannot come below `limit`.
// Returns how many values were dropped.
int solve_state_bound(SolveState *state, int64_t limit, int sweeps, int64_t work);
// A plan by fixing nodes one by one, reducing in between; true and *cost, choice[] when one came
// out.
bool solve_state_guess(SolveState *state, int *choice, int64_t *cost);

// Branch and bound. Finds a choice for every node with a cost below `limit` if it can: then *cost
// is below it. Returns a proven lower bound of the state, or `limit` when there is no choice
// below it.
int64_t solve_state_search(SolveState *state, int64_t limit, int *choice, int64_t *cost, int depth);

#endif
