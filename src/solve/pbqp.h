// SPDX-License-Identifier: Apache-2.0
// An exact solver for choosing one value per variable so that the sum of unary and pairwise integer
// costs is least (weighted constraint satisfaction, PBQP). It knows nothing of layouts.
//
//     minimise  Σ cost_i(x_i) + Σ cost_ij(x_i, x_j)
//
// Costs are int64 or PBQP_INFINITY (the combination is forbidden); the finite magnitudes of all
// variables and edges together stay below 2^56.
#ifndef PLEAT_SOLVE_PBQP_H
#define PLEAT_SOLVE_PBQP_H

#include "base/base.h"

#define PBQP_INFINITY (INT64_MAX / 4)

typedef struct PbqpProblem PbqpProblem;

// Lives as long as the context, or until pbqp_free gives its memory back.
PbqpProblem *pbqp_new(Context *context);
void pbqp_free(PbqpProblem *problem);

// A new variable with `choice_count` values and their costs (copied); its number, from 0.
int pbqp_variable(PbqpProblem *problem, int choice_count, const int64_t *costs);
// Adds matrix[i * choices(b) + j] for the values i of `a` and j of `b` (copied). Several edges
// between one pair add up; a and b may be the same variable. Equal lines are stored once.
void pbqp_edge(PbqpProblem *problem, int a, int b, const int64_t *matrix);
// The same with values sorted into classes: table[class_a[i] * classes_b + class_b[j]].
void pbqp_edge_classes(PbqpProblem *problem, int a, int b, const int *class_a, int classes_a,
                       const int *class_b, int classes_b, const int64_t *table);
// 0 where compatible[class_a[i] * classes_b + class_b[j]], otherwise infinite.
void pbqp_compatible(PbqpProblem *problem, int a, int b, const int *class_a, int classes_a,
                     const int *class_b, int classes_b, const uint8_t *compatible);

// Tables of up to this many entries are made (4 Mi to begin with); 0 leaves everything to the
// search.
void pbqp_limit_tables(PbqpProblem *problem, int64_t entries);

typedef struct PbqpSolution {
  int *choices;  // per variable, in the context's arena; NULL: none was found
  int64_t cost;  // of the choices; PBQP_INFINITY without
  int64_t bound; // no assignment costs less: proven
  bool optimal;  // cost == bound (both infinite: proven to have no solution)
  // How it was found: variables left after the reductions, branches of the search, work done in
  // visits of table entries.
  int core_variables, branches;
  int64_t work;
} PbqpSolution;
// `seconds` limits the work, counted in table entries at a usual machine's speed rather than by a
// clock, so that the same problem and limit always give the same solution. Reductions that are
// linear in the size of the problem run even at 0.
PbqpSolution pbqp_solve(PbqpProblem *problem, double seconds);
// The cost of an assignment by the costs as they were given.
int64_t pbqp_cost(const PbqpProblem *problem, const int *choices);

#endif
