/* SPDX-License-Identifier: Apache-2.0
 *
 * The solver of Pleat's planner, as a library of its own: libpleat_solve. It depends on the C
 * library and libm alone.
 *
 * It solves partitioned Boolean quadratic problems (PBQP), also known as binary weighted constraint
 * satisfaction. A problem has variables; each variable has a number of choices with a cost each;
 * an edge between two variables has a cost for every pair of their choices. A solution takes one
 * choice for each variable such that the sum of all costs is least:
 *
 *   minimise  sum over variables i of cost_i[x_i]  +  sum over edges (i, j) of cost_ij[x_i][x_j]
 *
 * Register allocation, instruction selection and the choice of data layouts are such problems.
 *
 *   PleatPbqp *p = pleat_pbqp_new();
 *   int a = pleat_pbqp_variable(p, 2, (int64_t[]){4, 1});
 *   int b = pleat_pbqp_variable(p, 2, (int64_t[]){0, 3});
 *   pleat_pbqp_edge(p, a, b, (int64_t[]){0, 5, 5, 0});     // 5 where the choices differ
 *   PleatPbqpResult result = {.size = sizeof result};
 *   if (pleat_pbqp_solve(p, 1.0, &result) == 0 && result.choices)
 *     printf("%d %d\n", result.choices[a], result.choices[b]);
 *   pleat_pbqp_free(p);
 *
 * Method. Reductions eliminate variables that have a single choice or at most two edges (Scholz and
 * Eckstein, LCTES 2002); problems whose graph is a tree or series-parallel end there. Choices that
 * another choice dominates are dropped, a core of small width is solved by bucket elimination
 * (Dechter 1999), and the rest by branch and bound with lower bounds from message passing. The
 * result is exact when `proved` says so; otherwise `bound` says how far from the optimum it may be.
 *
 * Threads. One problem is used by one thread at a time; different problems are independent. The
 * library has no global state.
 *
 * Errors. A function that refuses its arguments returns -1 and leaves the problem as it was;
 * pleat_pbqp_error has the reason. When memory runs out, the function returns -1 as well, and the
 * problem may only be freed.
 */
#ifndef PLEAT_SOLVE_H
#define PLEAT_SOLVE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The cost of a choice, or of a pair of choices, that no solution may take. */
#define PLEAT_PBQP_INFINITY INT64_MAX

/* Limits. Finite costs may be negative. For each variable and each edge take the largest magnitude
 * among its finite costs, plus one: the sum of these must stay below PLEAT_PBQP_MAX_COST. */
#define PLEAT_PBQP_MAX_COST (INT64_C(1) << 56)
#define PLEAT_PBQP_MAX_CHOICES 16384

typedef struct PleatPbqp PleatPbqp;

/* A problem without variables, owned by the caller; NULL when memory is exhausted. */
PleatPbqp *pleat_pbqp_new(void);

/* Frees a problem and what its results point to. NULL is allowed. */
void pleat_pbqp_free(PleatPbqp *problem);

/* Adds a variable with `count` choices (1 to PLEAT_PBQP_MAX_CHOICES) and their costs, which are
 * copied. Returns its number, from 0 in the order of the calls, or -1. */
int pleat_pbqp_variable(PleatPbqp *problem, int count, const int64_t *costs);

/* Adds an edge between two different variables `a` and `b`. The cost of choice i of `a` together
 * with choice j of `b` is costs[i * choices(b) + j]; the costs are copied. Several edges between
 * the same two variables add up. Returns 0, or -1. */
int pleat_pbqp_edge(PleatPbqp *problem, int a, int b, const int64_t *costs);

/* The number of variables. */
int pleat_pbqp_variable_count(const PleatPbqp *problem);

/* The result of pleat_pbqp_solve. */
typedef struct PleatPbqpResult {
  size_t size; /* set by the caller to sizeof(PleatPbqpResult), as the caller's header has it */
  /* The choice of each variable, by number; borrowed until the problem is solved again or freed.
   * NULL when no solution was found: with `proved`, none has a finite cost. */
  const int *choices;
  int64_t cost;  /* of the choices; PLEAT_PBQP_INFINITY without */
  int64_t bound; /* proved: no solution costs less; PLEAT_PBQP_INFINITY when there is no solution */
  int proved;    /* not 0: the cost is the least, or it is proved that there is no solution */
  /* How the result was found: the variables that the reductions left, the branches of the search,
   * and the work, in visits of table entries. */
  int core_variables, branches;
  int64_t work;
} PleatPbqpResult;

/* Solves the problem and sets `result`. Returns 0, also when there is no solution, or -1.
 *
 * `seconds` (0 or more) limits the work. The limit is counted in visits of table entries, at
 * 4e8 a second, rather than by a clock, so that the same problem and limit give the same result on
 * every machine. The reductions that take linear time run even with 0. The problem is unchanged:
 * more variables and edges may be added, and it may be solved again. */
int pleat_pbqp_solve(PleatPbqp *problem, double seconds, PleatPbqpResult *result);

/* Sets *cost to the cost of the given choices, one for each variable; PLEAT_PBQP_INFINITY when one
 * of its costs is infinite. Returns 0, or -1 when a choice does not exist. */
int pleat_pbqp_cost(PleatPbqp *problem, const int *choices, int64_t *cost);

/* Limits the tables of bucket elimination to this many entries (4 Mi by default). 0 leaves the core
 * to branch and bound, which needs less memory. Returns 0, or -1 for a negative number. */
int pleat_pbqp_limit_tables(PleatPbqp *problem, int64_t entries);

/* The reason of the last call that returned -1, one line without a newline; "" when there was none.
 * Borrowed until the next call. */
const char *pleat_pbqp_error(const PleatPbqp *problem);

#ifdef __cplusplus
}
#endif
#endif
