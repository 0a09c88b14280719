// SPDX-License-Identifier: Apache-2.0
// Tests the solver of src/solve on small and random problems against enumeration.
#include "solve/pbqp.h"
#include "random_support.h"

#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static uint64_t seed = 11;

// ---- Random problems, kept as plain matrices ----------------------------------------------------

typedef struct Pair {
  int a, b;
  int64_t *matrix;
} Pair;

typedef struct Given {
  int count, pair_count;
  int choices[200000];
  int64_t *costs[200000];
  Pair *pairs;
  int pair_capacity;
} Given;

static Given given;
static bool only_search; // no bucket elimination

static void given_clear(void) {
  for (int i = 0; i < given.count; i++) free(given.costs[i]);
  for (int i = 0; i < given.pair_count; i++) free(given.pairs[i].matrix);
  given.count = given.pair_count = 0;
}

static int64_t random_cost(int most, int infinite_percent) {
  if (random_below(100) < infinite_percent) return PBQP_INFINITY;
  return random_below(most) - most / 8;
}

static void add_variable(int choices, int most, int infinite_percent) {
  int64_t *costs = malloc(sizeof(int64_t) * (size_t)choices);
  for (int i = 0; i < choices; i++) costs[i] = random_cost(most, infinite_percent);
  given.choices[given.count] = choices;
  given.costs[given.count++] = costs;
}

static int64_t *new_pair(int a, int b) {
  if (given.pair_count == given.pair_capacity) {
    given.pair_capacity = given.pair_capacity * 2 + 64;
    given.pairs = realloc(given.pairs, sizeof(Pair) * (size_t)given.pair_capacity);
  }
  size_t entries = (size_t)given.choices[a] * (size_t)given.choices[b];
  int64_t *matrix = malloc(sizeof(int64_t) * entries);
  given.pairs[given.pair_count++] = (Pair){a, b, matrix};
  return matrix;
}

// In small problems several values may have equal lines, so that they have one class.
static void add_pair(int a, int b, int most, int infinite_percent) {
  int64_t *matrix = new_pair(a, b);
  int columns = given.choices[b], alike = given.count < 8 ? 1 + random_below(3) : 1;
  for (int i = 0; i < given.choices[a] * columns; i++)
    matrix[i] = i / columns % alike ? matrix[i - columns] : random_cost(most, infinite_percent);
}

// Costs like those of layouts: 0 for equal classes, otherwise a price, sometimes forbidden.
static void add_layout_pair(int a, int b, int most, int infinite_percent) {
  int64_t *matrix = new_pair(a, b);
  int price = 1 + random_below(most);
  for (int i = 0; i < given.choices[a]; i++)
    for (int k = 0; k < given.choices[b]; k++) {
      bool agree = i % 4 == k % 4;
      bool never = !agree && random_below(100) < infinite_percent;
      matrix[i * given.choices[b] + k] = agree ? 0 : never ? PBQP_INFINITY : price;
    }
}

static int64_t add(int64_t a, int64_t b) {
  return a >= PBQP_INFINITY || b >= PBQP_INFINITY ? PBQP_INFINITY : a + b;
}

static int64_t given_cost(const int *choices) {
  int64_t cost = 0;
  for (int i = 0; i < given.count; i++) cost = add(cost, given.costs[i][choices[i]]);
  for (int i = 0; i < given.pair_count; i++) {
    const Pair *p = &given.pairs[i];
    cost = add(cost, p->matrix[choices[p->a] * given.choices[p->b] + choices[p->b]]);
  }
  return cost;
}

static int64_t brute_force(void) {
  int choices[16] = {0};
  int64_t best = PBQP_INFINITY;
  for (;;) {
    int64_t cost = given_cost(choices);
    if (cost < best) best = cost;
    int i = 0;
    while (i < given.count && ++choices[i] == given.choices[i]) choices[i++] = 0;
    if (i == given.count) return best;
  }
}

// Sets of[value] to the class of a value whose line of the matrix equals an earlier one's, or to a
// class of its own. Returns the number of classes.
static int line_classes(const int64_t *matrix, int count, int step, int across, int across_step,
                        int *of, int *first) {
  int classes = 0;
  for (int i = 0; i < count; i++) {
    of[i] = classes;
    for (int c = 0; c < classes && of[i] == classes; c++) {
      bool same = true;
      for (int k = 0; k < across; k++)
        same &= matrix[i * step + k * across_step] == matrix[first[c] * step + k * across_step];
      if (same) of[i] = c;
    }
    if (of[i] == classes) first[classes++] = i;
  }
  return classes;
}

// Some edges go in by classes of equal values.
static void give_edge(PbqpProblem *p, const Pair *pair) {
  int a = given.choices[pair->a], b = given.choices[pair->b];
  int class_a[64], class_b[64], first_a[64], first_b[64];
  uint8_t allowed[4096];
  int64_t cost[4096];
  if (a > 64 || b > 64 || pair->a % 2) {
    pbqp_edge(p, pair->a, pair->b, pair->matrix);
    return;
  }
  bool plain = true;
  int rows = line_classes(pair->matrix, a, b, b, 1, class_a, first_a);
  int columns = line_classes(pair->matrix, b, 1, a, b, class_b, first_b);
  for (int i = 0; i < rows * columns; i++) {
    cost[i] = pair->matrix[first_a[i / columns] * b + first_b[i % columns]];
    plain &= cost[i] == 0 || cost[i] == PBQP_INFINITY;
    allowed[i] = cost[i] == 0;
  }
  if (plain)
    pbqp_compatible(p, pair->a, pair->b, class_a, rows, class_b, columns, allowed);
  else
    pbqp_edge_classes(p, pair->a, pair->b, class_a, rows, class_b, columns, cost);
}

static PbqpProblem *give(Context *context) {
  PbqpProblem *p = pbqp_new(context);
  for (int i = 0; i < given.count; i++)
    assert_int_equal(pbqp_variable(p, given.choices[i], given.costs[i]), i);
  for (int i = 0; i < given.pair_count; i++) give_edge(p, &given.pairs[i]);
  return p;
}

// Solves what is given and checks what any solution must keep.
static PbqpSolution solve_given(double seconds) {
  static int kept[200000];
  Context *context = context_new();
  PbqpProblem *p = give(context);
  if (only_search) pbqp_limit_tables(p, 0);
  PbqpSolution s = pbqp_solve(p, seconds);
  assert_true(s.bound <= s.cost);
  assert_true(s.optimal == (s.bound == s.cost));
  if (s.choices) {
    assert_true(s.cost < PBQP_INFINITY);
    assert_true(s.cost == given_cost(s.choices));
    memcpy(kept, s.choices, sizeof(int) * (size_t)given.count);
    s.choices = kept;
  } else {
    assert_true(s.cost == PBQP_INFINITY);
  }
  context_free(context);
  return s;
}

// ---- Shapes ------------------------------------------------------------------------------------

typedef void Shape(int count, int most, int infinite);

static void shape_tree(int count, int most, int infinite) {
  for (int i = 1; i < count; i++) add_pair(random_below(i), i, most, infinite);
}

static void shape_cycle(int count, int most, int infinite) {
  for (int i = 0; i < count; i++) add_pair(i, (i + 1) % count, most, infinite);
}

static void shape_dense(int count, int most, int infinite) {
  for (int i = 0; i < count; i++)
    for (int k = 0; k < i; k++)
      if (random_below(10) < 8) add_pair(k, i, most, infinite);
}

static void shape_any(int count, int most, int infinite) {
  int pairs = random_below(2 * count + 1);
  for (int i = 0; i < pairs; i++)
    add_pair(random_below(count), random_below(count), most, infinite);
}

static void shape_layouts(int count, int most, int infinite) {
  for (int i = 1; i < count; i++) {
    add_layout_pair(i - 1, i, most, infinite);
    if (i > 2) add_layout_pair(random_below(i - 2), i, most, infinite);
    if (i > 3) add_layout_pair(random_below(i - 3), i, most, infinite);
  }
}

static Shape *const shapes[] = {shape_tree, shape_cycle, shape_dense, shape_any, shape_layouts};

static void make(Shape *shape, int count, int most_choices, int most, int infinite) {
  given_clear();
  for (int i = 0; i < count; i++) add_variable(1 + random_below(most_choices), most, infinite / 2);
  shape(count, most, infinite);
}

// ---- Tests -------------------------------------------------------------------------------------

static void test_against_brute_force(void **state) {
  (void)state;
  static const int infinite[] = {0, 5, 30, 60};
  static const int most[] = {2, 9, 1000};
  int without = 0;
  for (int round = 0; round < 8000; round++) {
    only_search = round % 2;
    make(shapes[round % 5], 1 + random_below(7), 5, most[round % 3], infinite[round / 3 % 4]);
    int64_t best = brute_force();
    PbqpSolution s = solve_given(1);
    assert_true(s.optimal);
    assert_true(s.cost == best);
    without += !s.choices;
  }
  only_search = false;
  assert_true(without > 100);
}

// Compares two methods that share little code: bucket elimination, and the search without it.
static void test_search_against_elimination(void **state) {
  (void)state;
  int branched = 0;
  for (int round = 0; round < 400; round++) {
    make(shapes[2 + round % 3], 10 + random_below(6), 6, 100, round % 5 * 5);
    PbqpSolution s = solve_given(1);
    only_search = true;
    PbqpSolution t = solve_given(10);
    only_search = false;
    assert_true(s.optimal && t.optimal);
    assert_true(s.cost == t.cost);
    branched += t.branches > 0;
  }
  assert_true(branched > 50);
}

// ---- Improving a known assignment

// Chooses values of finite cost at random; false when no try finds them.
static bool random_assignment(int *choices) {
  for (int try = 0; try < 200; try++) {
    for (int i = 0; i < given.count; i++) choices[i] = random_below(given.choices[i]);
    if (given_cost(choices) < PBQP_INFINITY) return true;
  }
  return false;
}

// Leaves variables out that share no edge with one another.
static void leave_some_out(int *choices) {
  for (int i = 0; i < given.count; i++) {
    bool out = random_below(2);
    for (int k = 0; k < given.pair_count; k++) {
      const Pair *p = &given.pairs[k];
      out &= !(p->a == i && (p->b == i || choices[p->b] < 0));
      out &= !(p->b == i && choices[p->a] < 0);
    }
    if (out) choices[i] = -1;
  }
}

// Improves the choices and checks what every improvement must keep. Returns its cost.
static int64_t improve_given(const int *choices, double seconds) {
  Context *context = context_new();
  PbqpSolution s = pbqp_improve(give(context), choices, seconds);
  int64_t cost = s.cost;
  assert_true(cost == given_cost(s.choices));
  context_free(context);
  return cost;
}

// Regions are larger than these problems, so what is found is the optimum.
static void test_improving_small_problems(void **state) {
  (void)state;
  int improved = 0;
  for (int round = 0; round < 3000; round++) {
    int start[16], partly[16];
    make(shapes[round % 5], 1 + random_below(7), 5, 100, round % 3 * 8);
    if (!random_assignment(start)) continue;
    memcpy(partly, start, sizeof partly);
    leave_some_out(partly);
    int64_t best = brute_force(), before = given_cost(start);
    assert_true(improve_given(start, 1) == best);
    assert_true(improve_given(partly, 1) == best);
    improved += best < before;
  }
  assert_true(improved > 500);
}

// With little or no work the assignment may stay as it is, but never becomes dearer.
static void test_improving_large_problems(void **state) {
  (void)state;
  static const double seconds[] = {0, 1e-4, 1e-2, 1};
  static int start[400];
  for (int round = 0; round < 12; round++) {
    make(shape_layouts, 200 + random_below(200), 6, 100, 0);
    if (!random_assignment(start)) continue;
    int64_t before = given_cost(start), optimum = solve_given(10).bound, after = before;
    for (int i = 0; i < COUNT_OF(seconds); i++) {
      after = improve_given(start, seconds[i]);
      assert_true(after <= before && after >= optimum);
    }
    assert_true(after - optimum < (before - optimum) / 50);
  }
}

// With a small limit of work, the bound must still hold.
static void test_bounds_hold_at_any_limit(void **state) {
  (void)state;
  static const double seconds[] = {0, 1e-6, 1e-5, 1e-4};
  int open = 0;
  for (int round = 0; round < 1500; round++) {
    make(shapes[2 + round % 3], 5 + random_below(3), 5, 100, round % 4 * 8);
    int64_t best = brute_force();
    for (int i = 0; i < COUNT_OF(seconds); i++) {
      only_search = round % 2;
      PbqpSolution s = solve_given(seconds[i]);
      assert_true(s.bound <= best && best <= s.cost);
      open += !s.optimal;
    }
  }
  only_search = false;
  assert_true(open > 50);
}

static void test_small_cases(void **state) {
  (void)state;
  Context *context = context_new();
  PbqpProblem *p = pbqp_new(context);
  PbqpSolution s = pbqp_solve(p, 1);
  assert_true(s.optimal && s.choices && s.cost == 0);
  const int64_t costs[] = {4, 3, PBQP_INFINITY};
  int a = pbqp_variable(p, 3, costs), b = pbqp_variable(p, 3, costs);
  const int64_t same[] = {-1, 0, 0, 0, 5, 0, 0, 0, 0};
  pbqp_edge(p, a, a, same);
  s = pbqp_solve(p, 1);
  assert_true(s.optimal && s.cost == 6);
  assert_int_equal(s.choices[a], 0);
  assert_int_equal(s.choices[b], 1);
  pbqp_edge(p, a, b, same);
  pbqp_edge(p, b, a, same);
  s = pbqp_solve(p, 1);
  assert_true(s.optimal && s.cost == 5);
  assert_int_equal(s.choices[b], 0);
  const uint8_t never[] = {0};
  const int one_class[] = {0, 0, 0};
  pbqp_compatible(p, a, b, one_class, 1, one_class, 1, never);
  s = pbqp_solve(p, 1);
  assert_true(s.optimal && !s.choices && s.cost == PBQP_INFINITY);
  const int forbidden[] = {0, 0};
  s = pbqp_improve(p, forbidden, 1);
  assert_true(!s.optimal && !s.choices && s.cost == PBQP_INFINITY);
  pbqp_free(p);
  context_free(context);
}

// A chain of variables with the same costs, whose edges share a table or have their own ones.
static PbqpSolution solve_chain(Context *context, bool shared) {
  const int64_t costs[] = {3, 0, 7}, matrix[] = {0, 5, PBQP_INFINITY, 5, 2, 1, 4, PBQP_INFINITY, 0};
  PbqpProblem *p = pbqp_new(context);
  const PbqpTable *table = pbqp_table(p, 3, 3, matrix);
  for (int i = 0; i < 7; i++) {
    bool like = shared && i;
    assert_int_equal(like ? pbqp_variable_like(p, 0) : pbqp_variable(p, 3, costs), i);
    if (i && shared) pbqp_edge_of(p, i - 1, i, table);
    if (i && !shared) pbqp_edge(p, i - 1, i, matrix);
  }
  return pbqp_solve(p, 1);
}

static void test_shared_parts(void **state) {
  (void)state;
  Context *context = context_new();
  PbqpSolution own = solve_chain(context, false), shared = solve_chain(context, true);
  assert_true(own.optimal && shared.optimal && own.cost == shared.cost);
  assert_memory_equal(own.choices, shared.choices, 7 * sizeof(int));
  context_free(context);
}

// ---- An independent solver ----------------------------------------------------------------------

// The problem as an integer program: x choices, y pairs of choices.
static void write_program(FILE *out) {
  fprintf(out, "Minimize\nobj: 0 zero");
  for (int i = 0; i < given.count; i++)
    for (int k = 0; k < given.choices[i]; k++)
      if (given.costs[i][k] < PBQP_INFINITY)
        fprintf(out, "\n%+lld x%d_%d", (long long)given.costs[i][k], i, k);
  for (int e = 0; e < given.pair_count; e++) {
    const Pair *p = &given.pairs[e];
    int b = given.choices[p->b];
    for (int i = 0; i < given.choices[p->a] * b; i++)
      if (p->matrix[i] < PBQP_INFINITY)
        fprintf(out, "\n%+lld y%d_%d_%d", (long long)p->matrix[i], e, i / b, i % b);
  }
  fprintf(out, "\nSubject To\nfixed: zero = 0\n");
  for (int i = 0; i < given.count; i++) {
    for (int k = 0; k < given.choices[i]; k++) fprintf(out, "+ x%d_%d ", i, k);
    fprintf(out, "= 1\n");
    for (int k = 0; k < given.choices[i]; k++)
      if (given.costs[i][k] >= PBQP_INFINITY) fprintf(out, "x%d_%d = 0\n", i, k);
  }
  for (int e = 0; e < given.pair_count; e++) {
    const Pair *p = &given.pairs[e];
    int a = given.choices[p->a], b = given.choices[p->b];
    for (int i = 0; i < a; i++) {
      for (int k = 0; k < b; k++) fprintf(out, "+ y%d_%d_%d ", e, i, k);
      fprintf(out, "- x%d_%d = 0\n", p->a, i);
    }
    for (int k = 0; k < b; k++) {
      for (int i = 0; i < a; i++) fprintf(out, "+ y%d_%d_%d ", e, i, k);
      fprintf(out, "- x%d_%d = 0\n", p->b, k);
    }
    for (int i = 0; i < a * b; i++)
      if (p->matrix[i] >= PBQP_INFINITY) fprintf(out, "y%d_%d_%d = 0\n", e, i / b, i % b);
  }
  fprintf(out, "Binary\n");
  for (int i = 0; i < given.count; i++)
    for (int k = 0; k < given.choices[i]; k++) fprintf(out, "x%d_%d\n", i, k);
  fprintf(out, "End\n");
}

// The optimum by CBC; infinite when it says there is none.
static int64_t optimum_by_cbc(const char *folder) {
  char path[96], command[256], line[256] = "";
  snprintf(path, sizeof path, "%s/problem.lp", folder);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  write_program(file);
  fclose(file);
  snprintf(command, sizeof command, "cbc %s/problem.lp solve solution %s/out >/dev/null 2>&1",
           folder, folder);
  assert_int_equal(system(command), 0);
  snprintf(path, sizeof path, "%s/out", folder);
  file = fopen(path, "r");
  assert_non_null(file);
  assert_non_null(fgets(line, sizeof line, file));
  fclose(file);
  const char *value = strstr(line, "objective value");
  if (strncmp(line, "Optimal", 7)) return PBQP_INFINITY;
  assert_non_null(value);
  return (int64_t)llround(strtod(value + 15, NULL));
}

static void test_against_an_integer_program(void **state) {
  (void)state;
  if (system("command -v cbc >/dev/null 2>&1")) {
    print_message("cbc is not here: not compared\n");
    skip();
  }
  char folder[] = "/tmp/pleat-solve-XXXXXX", command[64];
  assert_non_null(mkdtemp(folder));
  for (int round = 0; round < 12; round++) {
    make(round % 3 ? shape_layouts : shape_tree, 20 + 5 * round, 6, 100, round % 4 * 10);
    only_search = round % 2;
    PbqpSolution s = solve_given(20);
    assert_true(s.optimal);
    assert_true(s.cost == optimum_by_cbc(folder));
  }
  only_search = false;
  snprintf(command, sizeof command, "rm -rf %s", folder);
  assert_int_equal(system(command), 0);
}

static double seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static PbqpSolution timed(const char *name, double limit) {
  double start = seconds_now();
  PbqpSolution s = solve_given(limit);
  print_message("%-28s %6d variables  core %5d  branches %5d  gap %.4f %%  %.3f s\n", name,
                given.count, s.core_variables, s.branches,
                100.0 * (double)(s.cost - s.bound) / (double)MAX_OF(s.cost, 1),
                seconds_now() - start);
  return s;
}

static void shape_chain(int count) {
  for (int i = 1; i < count; i++) add_layout_pair(i - 1, i, 1000, 10);
}

static void fill(int count, int choices) {
  given_clear();
  for (int i = 0; i < count; i++) add_variable(choices, 1000, 0);
}

static void test_chain_of_100000(void **state) {
  (void)state;
  fill(100000, 10);
  shape_chain(given.count);
  PbqpSolution s = timed("chain", 2);
  assert_true(s.optimal && s.core_variables == 0);
}

// Blocks of a network: two convolutions and an addition with their input; sometimes the shortcut
// passes a convolution.
static void test_residual_of_30000(void **state) {
  (void)state;
  fill(30000, 9);
  int trunk = 0;
  for (int i = 1; i + 3 < given.count; i += 4) {
    add_layout_pair(trunk, i, 1000, 10);
    add_layout_pair(i, i + 1, 1000, 10);
    add_layout_pair(i + 1, i + 2, 1000, 10);
    add_layout_pair(trunk, i + 3, 1000, 10);
    add_layout_pair(i + 3, i + 2, 1000, 10);
    trunk = i + 2;
  }
  PbqpSolution s = timed("residual", 2);
  assert_true(s.optimal && s.core_variables == 0);
}

static void dense_blocks(int blocks, int layers, int choices) {
  fill(blocks * layers, choices);
  for (int b = 0; b < blocks; b++) {
    if (b) add_layout_pair(b * layers - 1, b * layers, 1000, 0);
    for (int i = 0; i < layers; i++)
      for (int k = 0; k < i; k++) add_layout_pair(b * layers + k, b * layers + i, 150, 0);
  }
}

static void test_dense_blocks(void **state) {
  (void)state;
  for (int round = 0; round < 3; round++) {
    dense_blocks(4, 24, 8);
    PbqpSolution s = timed("dense blocks", 5);
    assert_non_null(s.choices);
    assert_true((double)(s.cost - s.bound) <= 0.02 * (double)s.cost);
  }
}

static void test_random_skips(void **state) {
  (void)state;
  fill(1000, 8);
  for (int i = 1; i < given.count; i++) {
    add_layout_pair(i - 1, i, 1000, 0);
    if (i > 1 && random_below(2)) add_layout_pair(random_below(i - 1), i, 1000, 0);
  }
  PbqpSolution s = timed("random long skips", 1);
  assert_non_null(s.choices);
  assert_true((double)(s.cost - s.bound) <= 0.05 * (double)s.cost);
}

// Few of all pairs of values are compared until the dominated ones are found.
static void test_a_variable_with_many_values(void **state) {
  (void)state;
  given_clear();
  add_variable(4000, 1000, 0);
  for (int i = 0; i < 3; i++) add_variable(4, 1000, 0);
  for (int a = 0; a < 4; a++)
    for (int b = a + 1; b < 4; b++) add_layout_pair(a, b, 1000, a ? 0 : 100);
  only_search = true;
  PbqpSolution s = solve_given(0.02);
  only_search = false;
  assert_true(s.optimal);
}

static void test_same_input_same_plan(void **state) {
  (void)state;
  static int first[200];
  fill(200, 8);
  shape_layouts(given.count, 1000, 20);
  static const double limits[] = {0, 0.001, 0.01, 0.2};
  for (int i = 0; i < COUNT_OF(limits); i++) {
    PbqpSolution s = solve_given(limits[i]);
    assert_non_null(s.choices);
    memcpy(first, s.choices, sizeof first);
    PbqpSolution again = solve_given(limits[i]);
    assert_true(again.cost == s.cost && again.bound == s.bound && again.work == s.work);
    assert_memory_equal(first, again.choices, sizeof first);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_small_cases),
      cmocka_unit_test(test_shared_parts),
      cmocka_unit_test(test_against_brute_force),
      cmocka_unit_test(test_search_against_elimination),
      cmocka_unit_test(test_against_an_integer_program),
      cmocka_unit_test(test_bounds_hold_at_any_limit),
      cmocka_unit_test(test_improving_small_problems),
      cmocka_unit_test(test_improving_large_problems),
      cmocka_unit_test(test_chain_of_100000),
      cmocka_unit_test(test_residual_of_30000),
      cmocka_unit_test(test_dense_blocks),
      cmocka_unit_test(test_random_skips),
      cmocka_unit_test(test_a_variable_with_many_values),
      cmocka_unit_test(test_same_input_same_plan),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  given_clear();
  free(given.pairs);
  return failed;
}
