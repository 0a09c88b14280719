// SPDX-License-Identifier: Apache-2.0
// Declarations shared by the files of the solver. A *state* is a partly solved problem: some values
// are dropped, some variables eliminated (and restored from a stack later), some edges replaced.
// Tables never change, so states copied for a branch share them. A value has one number in all
// states.
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
  const SolveTable *table; // NULL: the edge is eliminated
  int64_t *shift_a, *shift_b;
} SolveEdge;

// An edge seen from one of its ends.
typedef struct SolveEdgeView {
  const SolveTable *table;
  int other, mine_count, other_count;  // the other variable; the numbers of classes
  const int *mine_class, *other_class; // per value
  const int64_t *mine_shift, *other_shift;
  int mine_step, other_step; // distances in the table between classes
} SolveEdgeView;

typedef struct SolveNode {
  int choices;   // number of values at first
  int count;     // number of values left
  int *value;    // the values left, ascending
  int64_t *cost; // indexed by value
  Array(int) edges;
  int degree; // number of edges not eliminated
  bool gone, queued;
} SolveNode;

typedef struct SolveElimination {
  int node, edge_count;
  SolveEdge *edges; // as they were before the elimination
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
  int64_t most_entries;  // limit on a table of bucket elimination
  int64_t *temporary[4]; // scratch space, one entry per value or class of a variable
  WordKey key;           // of the table that is looked for
} SolveRun;

typedef struct SolveState {
  SolveRun *solver;
  int node_count, left; // left: number of nodes not eliminated
  SolveNode *nodes;
  Array(SolveEdge) edges;
  Array(SolveElimination) eliminated;
  SolveQueue low, middle; // nodes to look at: degree ≤ 1 or one value; degree 2
  SolveQueue unfiltered;  // nodes whose neighbours solve_state_filter has to look at
  BitSet waiting;         // the nodes in `unfiltered`
  int64_t constant;
  Map eliminations; // by WordKey: the table that replaces an equal node and its two edges
  Map sums;         // by WordKey: the table that replaces two equal edges between one pair
  int64_t step;     // divides the cost of every complete assignment
  int *copied;      // by node, used by solve_state_copy, and 0 otherwise: its number from 1
  bool infeasible;
} SolveState;

// ---- Costs with infinity -----------------------------------------------------------------------

static inline bool cost_infinite(int64_t cost) {
  return cost >= PBQP_INFINITY / 2;
}
// Finite costs stay so far below infinity that a sum with it is infinite.
static inline int64_t cost_add(int64_t a, int64_t b) {
  int64_t sum = a + b;
  return cost_infinite(sum) ? PBQP_INFINITY : sum;
}

// ---- States ------------------------------------------------------------------------------------

bool solve_out_of_work(const SolveRun *solver);

SolveState *solve_state_new(SolveRun *solver, int node_count);
// Copies the nodes pick[0..count) of `from` and the edges among them, with costs times `scale`;
// node i of the copy is pick[i].
SolveState *solve_state_copy(SolveState *from, const int *pick, int count, int64_t scale);
void solve_state_add_node(SolveState *state, int node, int choices, const int64_t *cost);
void solve_state_add_edge(SolveState *state, int a, int b, const SolveTable *table);
// Removes eliminated edges from the list of `node`; returns the number of edges left.
int solve_state_edges(SolveState *state, int node);
SolveEdgeView solve_edge_view(const SolveEdge *edge, int from);
static inline int64_t view_cost(const SolveEdgeView *v, int mine, int other) {
  int64_t c =
      v->table->cost[v->mine_class[mine] * v->mine_step + v->other_class[other] * v->other_step];
  if (v->mine_shift) c += v->mine_shift[mine];
  if (v->other_shift) c += v->other_shift[other];
  return cost_infinite(c) ? PBQP_INFINITY : c;
}
// The classes that the values left of a node have in one of its edges, numbered by first use.
typedef struct SolveClasses {
  int count, *used; // used[position] is the class
  int *of_value;    // position by value
} SolveClasses;
SolveClasses solve_classes_left(Arena *arena, const SolveNode *n, const int *class_of,
                                int class_count);
// Sets out[value of `to`] to the least sum of the edge's cost and from_cost over the other end's
// values.
void solve_edge_message(SolveState *state, const SolveEdge *edge, int to, const int64_t *from_cost,
                        int64_t *out);

// Adds the words that describe the values left of a node, and the costs between the values of an
// edge's ends as seen from one end. The edge must have no shifts.
void solve_key_add_values(WordKey *key, const SolveNode *node);
void solve_key_add_edge(WordKey *key, const SolveEdgeView *view);

// Drops each value whose keep[position] is false.
void solve_state_keep_values(SolveState *state, int node, const bool *keep);
void solve_state_drop_value(SolveState *state, int node, int value);
void solve_state_fix(SolveState *state, int node, int value);
void solve_state_enqueue(SolveState *state, int node);

// Applies reductions of degree 0, 1 and 2 and of single values until none applies. False when the
// state is infeasible.
bool solve_state_reduce(SolveState *state);
// Chooses values for the eliminated nodes, latest first, from the choices of the others.
void solve_state_restore(SolveState *state, int *choice);
int64_t solve_state_cost(SolveState *state, const int *choice); // of the nodes that are left

// ---- Steps on what the reductions leave --------------------------------------------------------

// Drops values that no neighbour allows. False when the state is infeasible.
bool solve_state_filter(SolveState *state);
// Drops values that another value of the node can always replace (Goldstein). True when some were
// dropped.
bool solve_state_dominate(SolveState *state);
// Solves the state exactly by bucket elimination; false when the tables would be too large.
bool solve_state_by_elimination(SolveState *state, int *choice, int64_t *cost);
// Moves costs into `constant` by sweeps of sequential tree-reweighted message passing, so that
// `constant` becomes a lower bound of the whole state. Then drops the values that cannot come below
// `limit`, and returns how many were dropped.
int solve_state_bound(SolveState *state, int64_t limit, int sweeps, int64_t work);
// Finds a plan by fixing nodes one by one and reducing in between; true when *cost and choice[]
// hold a plan.
bool solve_state_guess(SolveState *state, int *choice, int64_t *cost);

// Improves choice[], a plan of finite cost that has a value for each node. No node may be
// eliminated.
void solve_state_improve(SolveState *state, int *choice);

// Branch and bound: looks for a choice for every node with a total cost below `limit`. When one is
// found, *cost is below `limit`. Returns a proven lower bound of the state's cost, or `limit` when
// no choice costs less.
int64_t solve_state_search(SolveState *state, int64_t limit, int *choice, int64_t *cost, int depth);

#endif
