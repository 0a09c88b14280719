// SPDX-License-Identifier: Apache-2.0
// The problems of the solver of partitioned Boolean quadratic problems (PBQP), and its top level:
//
//   problem ── reductions ──► core ── dominance, elimination, bound, branches ──► its choices
//      ▲                                                                             │
//      └──────────── choices of eliminated variables, latest first ◄─────────────────┘
//
// Most problems of layout planning are solved by the reductions alone. The costs of the core are
// scaled up before bounds are computed, so that rounding in the messages does not prevent a proof
// of optimality.
#include "solve/state.h"

#include <stdlib.h>

static const double WORK_PER_SECOND = 4e8;

typedef struct Variable {
  int choices;
  const int64_t *cost;
  int64_t magnitude; // the largest finite one of the costs
} Variable;

struct PbqpTable {
  SolveTable table;
  int64_t magnitude; // likewise
};

typedef struct Factor {
  int a, b;
  const SolveTable *table;
} Factor;

struct PbqpProblem {
  Context *context;
  Arena arena;
  Array(Variable) variables;
  Array(Factor) factors;
  int most_choices;
  int64_t most_entries;
  int64_t magnitude; // sum of the largest finite magnitudes
};

// ---- Problems ----------------------------------------------------------------------------------

static void release(void *problem) {
  arena_free(&((PbqpProblem *)problem)->arena);
}

PbqpProblem *pbqp_new(Context *context) {
  PbqpProblem *p = arena_new(&context->arena, PbqpProblem);
  p->context = context;
  p->most_entries = 4 << 20;
  arena_init(&p->arena, context);
  context_at_free(context, release, p);
  return p;
}

void pbqp_free(PbqpProblem *p) {
  release(p);
  p->variables.items = NULL;
  p->factors.items = NULL;
  p->variables.count = p->factors.count = p->variables.capacity = p->factors.capacity = 0;
}

void pbqp_limit_tables(PbqpProblem *p, int64_t entries) {
  p->most_entries = entries;
}

static int64_t largest_magnitude(const int64_t *costs, int count) {
  int64_t largest = 0;
  for (int i = 0; i < count; i++) {
    if (cost_infinite(costs[i])) continue;
    int64_t size = costs[i] < 0 ? -(costs[i] + 1) : costs[i];
    if (size > largest) largest = size;
  }
  return largest;
}

static void add_magnitude(PbqpProblem *p, int64_t largest) {
  p->magnitude += largest + 1;
  if (largest >> 56 || p->magnitude >> 56) bug(p->context, "costs of a plan exceed 2^56");
}

static int add_variable(PbqpProblem *p, Variable variable) {
  add_magnitude(p, variable.magnitude);
  if (variable.choices > p->most_choices) p->most_choices = variable.choices;
  array_push(&p->arena, &p->variables, variable);
  return p->variables.count - 1;
}

int pbqp_variable(PbqpProblem *p, int choices, const int64_t *costs) {
  int64_t *copy = arena_copy(&p->arena, costs, sizeof(int64_t) * (size_t)choices);
  for (int i = 0; i < choices; i++)
    if (cost_infinite(copy[i])) copy[i] = PBQP_INFINITY;
  return add_variable(p, (Variable){choices, copy, largest_magnitude(copy, choices)});
}

int pbqp_variable_like(PbqpProblem *p, int variable) {
  return add_variable(p, p->variables.items[variable]);
}

void pbqp_edge_of(PbqpProblem *p, int a, int b, const PbqpTable *table) {
  add_magnitude(p, table->magnitude);
  array_push(&p->arena, &p->factors, ((Factor){a, b, &table->table}));
  int classes = MAX_OF(table->table.rows, table->table.columns);
  if (classes > p->most_choices) p->most_choices = classes;
}

// The table of values that are sorted into classes.
static const PbqpTable *table_of_classes(PbqpProblem *p, int rows, const int *class_a,
                                         int classes_a, int columns, const int *class_b,
                                         int classes_b, const int64_t *table) {
  size_t entries = (size_t)classes_a * (size_t)classes_b;
  PbqpTable *t = arena_new(&p->arena, PbqpTable);
  int64_t *cost = arena_copy(&p->arena, table, sizeof(int64_t) * entries);
  for (size_t i = 0; i < entries; i++) {
    if (!cost_infinite(cost[i])) continue;
    cost[i] = PBQP_INFINITY;
    t->table.has_infinity = true;
  }
  t->table.rows = classes_a;
  t->table.columns = classes_b;
  t->table.row_class = arena_copy(&p->arena, class_a, sizeof(int) * (size_t)rows);
  t->table.column_class = arena_copy(&p->arena, class_b, sizeof(int) * (size_t)columns);
  t->table.cost = cost;
  t->magnitude = largest_magnitude(cost, (int)entries);
  return t;
}

void pbqp_edge_classes(PbqpProblem *p, int a, int b, const int *class_a, int classes_a,
                       const int *class_b, int classes_b, const int64_t *table) {
  int rows = p->variables.items[a].choices, columns = p->variables.items[b].choices;
  pbqp_edge_of(p, a, b,
               table_of_classes(p, rows, class_a, classes_a, columns, class_b, classes_b, table));
}

void pbqp_compatible(PbqpProblem *p, int a, int b, const int *class_a, int classes_a,
                     const int *class_b, int classes_b, const uint8_t *compatible) {
  ArenaMark mark = arena_mark(&p->context->scratch);
  int entries = classes_a * classes_b;
  int64_t *table = arena_array(&p->context->scratch, int64_t, entries);
  for (int i = 0; i < entries; i++) table[i] = compatible[i] ? 0 : PBQP_INFINITY;
  pbqp_edge_classes(p, a, b, class_a, classes_a, class_b, classes_b, table);
  arena_reset(&p->context->scratch, mark);
}

// Lines of a matrix: line i has the entries matrix[i * step + at[k]].
typedef struct Lines {
  const int64_t *matrix;
  int count, entries;
  int64_t step;
  const int64_t *at;
} Lines;

static bool same_lines(const Lines *lines, int a, int b) {
  const int64_t *x = lines->matrix + a * lines->step, *y = lines->matrix + b * lines->step;
  for (int k = 0; k < lines->entries; k++)
    if (x[lines->at[k]] != y[lines->at[k]]) return false;
  return true;
}

// In the order of memory, whichever of both is innermost.
static uint64_t *line_hashes(Arena *arena, const Lines *lines) {
  uint64_t *hashes = arena_take(arena, sizeof(uint64_t) * (size_t)lines->count);
  bool by_line = lines->step > 1;
  int outer = by_line ? lines->count : lines->entries;
  int inner = by_line ? lines->entries : lines->count;
  for (int i = 0; i < lines->count; i++) hashes[i] = 1;
  for (int a = 0; a < outer; a++)
    for (int b = 0; b < inner; b++) {
      int i = by_line ? a : b, k = by_line ? b : a;
      uint64_t entry = (uint64_t)lines->matrix[i * lines->step + lines->at[k]];
      hashes[i] = (hashes[i] ^ hashes[i] >> 32) * 0x9e3779b97f4a7c15u + entry;
    }
  return hashes;
}

// Gives equal lines equal class numbers: classes[i] for line i; first[c] is a line of class c.
static int line_classes(Arena *arena, const Lines *lines, int *classes, int *first) {
  const uint64_t *hashes = line_hashes(arena, lines);
  size_t slots = 16;
  while (slots < 2 * (size_t)lines->count) slots *= 2;
  int *class_at = arena_array(arena, int, slots); // plus 1; 0: none
  int count = 0;
  for (int i = 0; i < lines->count; i++) {
    size_t slot = (hashes[i] ^ hashes[i] >> 32) & (slots - 1);
    for (; class_at[slot]; slot = (slot + 1) & (slots - 1)) {
      int other = first[class_at[slot] - 1];
      if (hashes[other] == hashes[i] && same_lines(lines, i, other)) break;
    }
    if (!class_at[slot]) {
      first[count++] = i;
      class_at[slot] = count;
    }
    classes[i] = class_at[slot] - 1;
  }
  return count;
}

// Replaces the classes by those of a coarser division: classes[i] of old class i.
static const int *coarser(Arena *arena, const int *of, int count, const int *classes) {
  if (!of) return classes;
  int *result = arena_array(arena, int, count);
  for (int i = 0; i < count; i++) result[i] = classes[of[i]];
  return result;
}

const PbqpTable *pbqp_table_classes(PbqpProblem *p, int rows, const int *class_a, int classes_a,
                                    int columns, const int *class_b, int classes_b,
                                    const int64_t *matrix) {
  Arena *scratch = &p->context->scratch;
  ArenaMark mark = arena_mark(scratch);
  int *row_class = arena_array(scratch, int, classes_a);
  int *row = arena_array(scratch, int, classes_a);
  int *column_class = arena_array(scratch, int, classes_b);
  int *column = arena_array(scratch, int, classes_b);
  int64_t *at = arena_array(scratch, int64_t, MAX_OF(classes_a, classes_b));
  for (int j = 0; j < classes_b; j++) at[j] = j;
  Lines lines = {matrix, classes_a, classes_b, classes_b, at};
  int row_count = line_classes(scratch, &lines, row_class, row);
  for (int i = 0; i < row_count; i++) at[i] = (int64_t)row[i] * classes_b;
  lines = (Lines){matrix, classes_b, row_count, 1, at}; // equal rows tell no columns apart
  int column_count = line_classes(scratch, &lines, column_class, column);
  int64_t *table = arena_array(scratch, int64_t, (size_t)row_count * (size_t)column_count);
  for (int i = 0; i < row_count; i++)
    for (int j = 0; j < column_count; j++)
      table[i * column_count + j] = matrix[(int64_t)row[i] * classes_b + column[j]];
  const PbqpTable *made =
      table_of_classes(p, rows, coarser(scratch, class_a, rows, row_class), row_count, columns,
                       coarser(scratch, class_b, columns, column_class), column_count, table);
  arena_reset(scratch, mark);
  return made;
}

const PbqpTable *pbqp_table(PbqpProblem *p, int rows, int columns, const int64_t *matrix) {
  return pbqp_table_classes(p, rows, NULL, rows, columns, NULL, columns, matrix);
}

void pbqp_edge(PbqpProblem *p, int a, int b, const int64_t *matrix) {
  const Variable *variables = p->variables.items;
  pbqp_edge_of(p, a, b, pbqp_table(p, variables[a].choices, variables[b].choices, matrix));
}

static int64_t factor_cost(const Factor *f, int a, int b) {
  const SolveTable *t = f->table;
  return t->cost[t->row_class[a] * t->columns + t->column_class[b]];
}

int64_t pbqp_cost(const PbqpProblem *p, const int *choices) {
  int64_t cost = 0;
  for (int i = 0; i < p->variables.count; i++)
    cost = cost_add(cost, p->variables.items[i].cost[choices[i]]);
  for (int i = 0; i < p->factors.count; i++) {
    const Factor *f = &p->factors.items[i];
    cost = cost_add(cost, factor_cost(f, choices[f->a], choices[f->b]));
  }
  return cost;
}

// ---- Solving -----------------------------------------------------------------------------------

static void add_diagonal(SolveState *state, const Factor *f) {
  SolveNode *n = &state->nodes[f->a];
  for (int i = 0; i < n->choices; i++) n->cost[i] = cost_add(n->cost[i], factor_cost(f, i, i));
}

static void drop_infinite(SolveState *state, int node, bool *keep) {
  SolveNode *n = &state->nodes[node];
  for (int i = 0; i < n->count; i++) keep[i] = !cost_infinite(n->cost[n->value[i]]);
  solve_state_keep_values(state, node, keep);
}

static SolveState *first_state(PbqpProblem *p, SolveRun *solver) {
  SolveState *state = solve_state_new(solver, p->variables.count);
  for (int i = 0; i < p->variables.count; i++)
    solve_state_add_node(state, i, p->variables.items[i].choices, p->variables.items[i].cost);
  array_reserve(solver->arena, (void **)&state->edges.items, &state->edges.capacity,
                p->factors.count, sizeof *state->edges.items);
  for (int i = 0; i < p->factors.count; i++) {
    const Factor *f = &p->factors.items[i];
    if (f->a == f->b)
      add_diagonal(state, f);
    else
      solve_state_add_edge(state, f->a, f->b, f->table);
  }
  bool *keep = arena_array(solver->arena, bool, p->most_choices + 1);
  for (int i = 0; i < p->variables.count; i++) {
    drop_infinite(state, i, keep);
    solve_state_enqueue(state, i);
  }
  return state;
}

// Searches the core that the reductions left and stores its nodes' choices in `choice`. Returns the
// bound.
static int64_t solve_core(PbqpProblem *p, SolveState *state, int *choice, PbqpSolution *solution) {
  SolveRun *solver = state->solver;
  int count = 0, *pick = arena_array(solver->arena, int, state->left);
  for (int i = 0; i < state->node_count; i++)
    if (!state->nodes[i].gone) pick[count++] = i;
  int64_t scale = 1;
  while (scale < 4096 && p->magnitude < (INT64_C(1) << 50) / scale) scale *= 2;
  SolveState *core = solve_state_copy(state, pick, count, scale);
  int *core_choice = arena_array(solver->arena, int, count);
  int64_t cost = PBQP_INFINITY;
  int64_t bound = solve_state_search(core, PBQP_INFINITY, core_choice, &cost, 0);
  solution->core_variables = count;
  if (!cost_infinite(cost)) {
    for (int i = 0; i < count; i++) choice[pick[i]] = core_choice[i];
    solution->cost = 0;
  }
  return cost_infinite(bound) ? PBQP_INFINITY : ceil_div(bound, scale) + state->constant;
}

static void finish(PbqpProblem *p, SolveState *state, int *choice, PbqpSolution *solution) {
  if (cost_infinite(solution->cost)) return;
  solve_state_restore(state, choice);
  solution->choices =
      arena_copy(&p->context->arena, choice, sizeof(int) * (size_t)MAX_OF(p->variables.count, 1));
  solution->cost = pbqp_cost(p, choice);
}

static SolveRun run_of(PbqpProblem *p, double seconds) {
  SolveRun solver = {.context = p->context,
                     .arena = &p->arena,
                     .most_choices = p->most_choices,
                     .most_entries = p->most_entries};
  solver.work_limit = (int64_t)(MIN_OF(MAX_OF(seconds, 0.0), 1e9) * WORK_PER_SECOND);
  for (int i = 0; i < COUNT_OF(solver.temporary); i++)
    solver.temporary[i] = arena_array(&p->arena, int64_t, p->most_choices + 1);
  solver.key = word_key_new(&p->arena);
  return solver;
}

PbqpSolution pbqp_solve(PbqpProblem *p, double seconds) {
  ArenaMark mark = arena_mark(&p->arena);
  SolveRun solver = run_of(p, seconds);
  PbqpSolution solution = {.cost = PBQP_INFINITY, .bound = PBQP_INFINITY};
  SolveState *state = first_state(p, &solver);
  int *choice = arena_array(&p->arena, int, p->variables.count + 1);
  if (solve_state_reduce(state)) {
    if (state->left) {
      solution.bound = solve_core(p, state, choice, &solution);
    } else {
      solution.bound = state->constant;
      solution.cost = 0;
    }
    finish(p, state, choice, &solution);
  }
  solution.optimal = solution.cost == solution.bound;
  solution.branches = solver.branches;
  solution.work = solver.work;
  arena_reset(&p->arena, mark);
  return solution;
}

// ---- Improving a known assignment --------------------------------------------------------------

static void add_known(int64_t *sum, const Factor *f, bool first_is_known, int known, int count) {
  for (int i = 0; i < count; i++)
    sum[i] = cost_add(sum[i], first_is_known ? factor_cost(f, known, i) : factor_cost(f, i, known));
}

static int cheapest(const int64_t *sum, int count) {
  int best = 0;
  for (int i = 1; i < count; i++)
    if (sum[i] < sum[best]) best = i;
  return best;
}

// Replaces each -1 by the choice that is cheapest beside the others.
static void complete(PbqpProblem *p, int *choice) {
  int64_t **sum = arena_array(&p->arena, int64_t *, p->variables.count + 1);
  for (int i = 0; i < p->variables.count; i++) {
    const Variable *v = &p->variables.items[i];
    if (choice[i] < 0)
      sum[i] = arena_copy(&p->arena, v->cost, sizeof(int64_t) * (size_t)v->choices);
  }
  for (int i = 0; i < p->factors.count; i++) {
    const Factor *f = &p->factors.items[i];
    bool a = choice[f->a] >= 0, b = choice[f->b] >= 0;
    if (!a && !b) bug(p->context, "variables %d and %d have no choices", f->a, f->b);
    if (a != b)
      add_known(sum[a ? f->b : f->a], f, a, choice[a ? f->a : f->b],
                p->variables.items[a ? f->b : f->a].choices);
  }
  for (int i = 0; i < p->variables.count; i++)
    if (choice[i] < 0) choice[i] = cheapest(sum[i], p->variables.items[i].choices);
}

PbqpSolution pbqp_improve(PbqpProblem *p, const int *choices, double seconds) {
  ArenaMark mark = arena_mark(&p->arena);
  SolveRun solver = run_of(p, seconds);
  PbqpSolution solution = {.bound = -PBQP_INFINITY};
  solution.choices =
      arena_copy(&p->context->arena, choices, sizeof(int) * (size_t)MAX_OF(p->variables.count, 1));
  complete(p, solution.choices);
  bool forbidden = cost_infinite(pbqp_cost(p, solution.choices));
  if (!forbidden) solve_state_improve(first_state(p, &solver), solution.choices);
  solution.cost = forbidden ? PBQP_INFINITY : pbqp_cost(p, solution.choices);
  if (forbidden) solution.choices = NULL;
  solution.branches = solver.branches;
  solution.work = solver.work;
  arena_reset(&p->arena, mark);
  return solution;
}
