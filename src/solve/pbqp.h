// SPDX-License-Identifier: Apache-2.0
// An exact solver that chooses one value for each variable so that the sum of unary and pairwise
// integer costs is least (weighted constraint satisfaction, also known as partitioned Boolean
// quadratic programming, PBQP). The solver does not depend on layouts.
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

// The problem lives as long as the context, or until pbqp_free gives its memory back.
PbqpProblem *pbqp_new(Context *context);
void pbqp_free(PbqpProblem *problem);

// Adds a variable with `choice_count` values and their costs, which are copied. Returns its number;
// numbers start at 0.
int pbqp_variable(PbqpProblem *problem, int choice_count, const int64_t *costs);
// Adds a variable with the values and costs of an earlier one.
int pbqp_variable_like(PbqpProblem *problem, int variable);
// Adds the edge costs matrix[i * choices(b) + j] for the values i of `a` and j of `b`; they are
// copied. Several edges between one pair add up; a and b may be the same variable. Equal lines of
// the matrix are stored once.
void pbqp_edge(PbqpProblem *problem, int a, int b, const int64_t *matrix);
// Many edges can have one table. pbqp_table adds a matrix with a row for each value of one variable
// and a column for each of another; pbqp_edge_of adds an edge between two variables with as many
// values.
typedef struct PbqpTable PbqpTable;
const PbqpTable *pbqp_table(PbqpProblem *problem, int rows, int columns, const int64_t *matrix);
// The same with a row for each class of the one variable's values and a column for each class of
// the other's. NULL: each value is a class.
const PbqpTable *pbqp_table_classes(PbqpProblem *problem, int rows, const int *class_a,
                                    int classes_a, int columns, const int *class_b, int classes_b,
                                    const int64_t *matrix);
void pbqp_edge_of(PbqpProblem *problem, int a, int b, const PbqpTable *table);
// Adds an edge whose values are sorted into classes: table[class_a[i] * classes_b + class_b[j]].
void pbqp_edge_classes(PbqpProblem *problem, int a, int b, const int *class_a, int classes_a,
                       const int *class_b, int classes_b, const int64_t *table);
// Adds an edge that costs 0 where compatible[class_a[i] * classes_b + class_b[j]] is true, and is
// infinite elsewhere.
void pbqp_compatible(PbqpProblem *problem, int a, int b, const int *class_a, int classes_a,
                     const int *class_b, int classes_b, const uint8_t *compatible);

// Sets the largest number of entries of a table that the solver builds (4 Mi unless set); with 0,
// the search alone solves the problem.
void pbqp_limit_tables(PbqpProblem *problem, int64_t entries);

typedef struct PbqpSolution {
  int *choices;  // per variable, in the context's arena; NULL: none was found
  int64_t cost;  // of the choices; PBQP_INFINITY when there are none
  int64_t bound; // no assignment costs less: proven
  bool optimal;  // cost == bound (both infinite: proven to have no solution)
  // How the solution was found: the number of variables left after the reductions, the branches of
  // the search, and the work in visited table entries.
  int core_variables, branches;
  int64_t work;
} PbqpSolution;
// `seconds` limits the work. The work is counted in table entries at the speed of a usual machine
// rather than measured by a clock, so that one problem with one limit always has one solution.
// Reductions that are linear in the size of the problem run even when `seconds` is 0.
PbqpSolution pbqp_solve(PbqpProblem *problem, double seconds);
// Makes a known assignment cheaper, where that is found with as much work; proves no bound. A
// choice of -1 becomes the one that is cheapest beside those of the other variables; no two
// variables of that kind may share an edge. No choices are returned for a forbidden assignment.
PbqpSolution pbqp_improve(PbqpProblem *problem, const int *choices, double seconds);
// The cost of an assignment under the costs that were added to the problem.
int64_t pbqp_cost(const PbqpProblem *problem, const int *choices);

#endif
