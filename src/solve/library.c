// SPDX-License-Identifier: Apache-2.0
// The functions of include/pleat/solve.h for users of the solver library. They check the caller's
// arguments and run the solver inside context_protect, so that exhausted memory and internal faults
// become errors of the call. This file belongs to libpleat_solve alone; the compiler uses
// solve/pbqp.h.
#include "pleat/solve.h"

#include <stdlib.h>

#include "solve/pbqp.h"

enum { ERROR_SIZE = 256 };

struct PleatPbqp {
  Context *context;
  PbqpProblem *problem;
  Array(int) choice_counts; // by variable
  int64_t magnitude;        // the sum that PLEAT_PBQP_MAX_COST limits
  bool broken;              // memory ran out in an earlier call
  PbqpSolution solution;    // of the latest call
  int *choices;             // a copy of solution.choices
  char error[ERROR_SIZE];
};

// ---- Errors and calls --------------------------------------------------------------------------

PRINTF_LIKE(2, 3) static int refuse(PleatPbqp *p, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(p->error, sizeof p->error, format, args);
  va_end(args);
  return -1;
}

// One call of an inner function, with its arguments.
typedef struct LibraryCall {
  PleatPbqp *p;
  int a, b, count;
  const int64_t *costs; // forbidden combinations are PBQP_INFINITY
  const int *choices;
  double seconds;
  int64_t cost;
} LibraryCall;

// Runs body(call); 0, or -1 when the call failed, after which the problem may only be freed.
static int run_protected(void (*body)(void *), LibraryCall *call) {
  PleatPbqp *p = call->p;
  if (p->broken) return refuse(p, "an earlier call failed, the problem can only be freed");
  if (context_protect(p->context, body, call)) return 0;
  p->broken = true;
  return refuse(p, "%s", p->context->failure_message);
}

// ---- Problems ----------------------------------------------------------------------------------

static void create(void *arg) {
  PleatPbqp *p = ((LibraryCall *)arg)->p;
  p->problem = pbqp_new(p->context);
}

PleatPbqp *pleat_pbqp_new(void) {
  PleatPbqp *p = calloc(1, sizeof *p);
  if (!p) return NULL;
  p->context = context_new();
  LibraryCall call = {.p = p};
  if (p->context && run_protected(create, &call) == 0) return p;
  pleat_pbqp_free(p);
  return NULL;
}

void pleat_pbqp_free(PleatPbqp *p) {
  if (!p) return;
  context_free(p->context);
  free(p->choices);
  free(p);
}

const char *pleat_pbqp_error(const PleatPbqp *p) {
  return p->error;
}

int pleat_pbqp_variable_count(const PleatPbqp *p) {
  return p->choice_counts.count;
}

// Adds the largest magnitude of the finite costs to *sum; false when *sum exceeds the limit.
static bool add_magnitude(int64_t *sum, const int64_t *costs, int64_t count) {
  int64_t largest = 0;
  for (int64_t i = 0; i < count; i++) {
    if (costs[i] == PLEAT_PBQP_INFINITY) continue;
    if (costs[i] <= -PLEAT_PBQP_MAX_COST || costs[i] >= PLEAT_PBQP_MAX_COST) return false;
    int64_t size = costs[i] < 0 ? -costs[i] : costs[i];
    if (size > largest) largest = size;
  }
  *sum += largest + 1;
  return *sum < PLEAT_PBQP_MAX_COST;
}

static const int64_t *inner_costs(Arena *scratch, const int64_t *costs, int64_t count) {
  int64_t *inner = arena_array(scratch, int64_t, count);
  for (int64_t i = 0; i < count; i++)
    inner[i] = costs[i] == PLEAT_PBQP_INFINITY ? PBQP_INFINITY : costs[i];
  return inner;
}

static void add_variable(void *arg) {
  LibraryCall *call = arg;
  Arena *scratch = &call->p->context->scratch;
  ArenaMark mark = arena_mark(scratch);
  pbqp_variable(call->p->problem, call->count, inner_costs(scratch, call->costs, call->count));
  arena_reset(scratch, mark);
  array_push(&call->p->context->arena, &call->p->choice_counts, call->count);
}

int pleat_pbqp_variable(PleatPbqp *p, int count, const int64_t *costs) {
  LibraryCall call = {.p = p, .count = count, .costs = costs};
  int64_t magnitude = p->magnitude;
  if (count < 1 || count > PLEAT_PBQP_MAX_CHOICES)
    return refuse(p, "a variable has 1 to %d choices, not %d", PLEAT_PBQP_MAX_CHOICES, count);
  if (!costs) return refuse(p, "the costs of a variable are NULL");
  if (!add_magnitude(&magnitude, costs, count))
    return refuse(p, "the costs of the problem exceed 2^56 in all");
  if (run_protected(add_variable, &call)) return -1;
  p->magnitude = magnitude;
  return p->choice_counts.count - 1;
}

static void add_edge(void *arg) {
  LibraryCall *call = arg;
  const int *counts = call->p->choice_counts.items;
  Arena *scratch = &call->p->context->scratch;
  ArenaMark mark = arena_mark(scratch);
  int64_t entries = (int64_t)counts[call->a] * counts[call->b];
  pbqp_edge(call->p->problem, call->a, call->b, inner_costs(scratch, call->costs, entries));
  arena_reset(scratch, mark);
}

int pleat_pbqp_edge(PleatPbqp *p, int a, int b, const int64_t *costs) {
  LibraryCall call = {.p = p, .a = a, .b = b, .costs = costs};
  int64_t magnitude = p->magnitude;
  for (int end = 0; end < 2; end++) {
    int variable = end ? b : a;
    if (variable < 0 || variable >= p->choice_counts.count)
      return refuse(p, "there is no variable %d; the problem has %d", variable,
                    p->choice_counts.count);
  }
  if (a == b)
    return refuse(p, "an edge needs two variables, both are %d; add the diagonal to its costs", a);
  if (!costs) return refuse(p, "the costs of an edge are NULL");
  const int *counts = p->choice_counts.items;
  if (!add_magnitude(&magnitude, costs, (int64_t)counts[a] * counts[b]))
    return refuse(p, "the costs of the problem exceed 2^56 in all");
  if (run_protected(add_edge, &call)) return -1;
  p->magnitude = magnitude;
  return 0;
}

int pleat_pbqp_limit_tables(PleatPbqp *p, int64_t entries) {
  if (entries < 0) return refuse(p, "the limit of table entries is negative");
  pbqp_limit_tables(p->problem, entries);
  return 0;
}

// ---- Solutions ---------------------------------------------------------------------------------

static void find_cost(void *arg) {
  LibraryCall *call = arg;
  call->cost = pbqp_cost(call->p->problem, call->choices);
}

static int64_t outer_cost(int64_t cost) {
  return cost >= PBQP_INFINITY ? PLEAT_PBQP_INFINITY : cost;
}

int pleat_pbqp_cost(PleatPbqp *p, const int *choices, int64_t *cost) {
  LibraryCall call = {.p = p, .choices = choices};
  for (int i = 0; i < p->choice_counts.count; i++)
    if (choices[i] < 0 || choices[i] >= p->choice_counts.items[i])
      return refuse(p, "variable %d has %d choices, so that choice %d does not exist", i,
                    p->choice_counts.items[i], choices[i]);
  if (run_protected(find_cost, &call)) return -1;
  *cost = outer_cost(call.cost);
  return 0;
}

// Copies the choices out of the solver's own arena, which is discarded after each call because it
// would otherwise grow until the problem is freed.
static void solve(void *arg) {
  LibraryCall *call = arg;
  PleatPbqp *p = call->p;
  ArenaMark mark = arena_mark(&p->context->arena);
  p->solution = pbqp_solve(p->problem, call->seconds);
  size_t size = sizeof(int) * (size_t)MAX_OF(p->choice_counts.count, 1);
  if (p->solution.choices) memcpy(p->choices, p->solution.choices, size);
  arena_reset(&p->context->arena, mark);
}

int pleat_pbqp_solve(PleatPbqp *p, double seconds, PleatPbqpResult *result) {
  LibraryCall call = {.p = p, .seconds = seconds};
  if (!(seconds >= 0)) return refuse(p, "the limit of seconds is negative or not a number");
  int *choices = realloc(p->choices, sizeof(int) * (size_t)MAX_OF(p->choice_counts.count, 1));
  if (!choices) return refuse(p, "out of memory");
  p->choices = choices;
  if (run_protected(solve, &call)) return -1;
  const PbqpSolution *s = &p->solution;
  PleatPbqpResult full = {.size = result->size,
                          .choices = s->choices ? p->choices : NULL,
                          .cost = outer_cost(s->cost),
                          .bound = outer_cost(s->bound),
                          .proved = s->optimal,
                          .core_variables = s->core_variables,
                          .branches = s->branches,
                          .work = s->work};
  memcpy(result, &full, MIN_OF(result->size, sizeof full));
  return 0;
}
