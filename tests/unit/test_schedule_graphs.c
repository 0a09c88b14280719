// SPDX-License-Identifier: Apache-2.0
// Random sequences of 30 steps on the programs of operators (softmax, normalisations, convolutions,
// gathers, scatters, sorting, …) and on the fused kernels of random graphs, checked as in
// test_schedule_random.c.
//   PLEAT_RANDOM=FIRST:COUNT   other sequences than the fixed ones
//   SEED=N                     one sequence: an odd one is on a kernel; SHOW=1 prints it
#include "driver/driver.h"
#include "operator_cases.h"
#include "random_graph.h"
#include "random_schedule.h"

enum { STEPS = 30, MOST_OPERATIONS = 40000 };
#ifdef __SANITIZE_ADDRESS__
enum { SEQUENCES = 75 };
#else
enum { SEQUENCES = 600 };
#endif

static void walk_func(Context *context, PrimFunc *before, const InterpRange *ranges, uint64_t seed,
                      const char *what) {
  if (prim_func_operations(before) > MOST_OPERATIONS) return;
  Walk walk = {.random = {seed * 977 + 5}, .schedule = schedule_new(context, before)};
  walk_steps(&walk, STEPS);
  walk_check(&walk, before, ranges, what);
}

static void walk_operator(uint64_t seed) {
  const OperatorCase *one = &operator_cases[seed % COUNT_OF(operator_cases)];
  Definition d = {.context = context_new()};
  if (define(&d, one, "float32"))
    walk_func(d.context, d.func, d.ranges, seed,
              arena_printf(&d.context->arena, "seed %llu, %s", (unsigned long long)seed, d.text));
  context_free(d.context);
}

static void walk_graph(uint64_t seed) {
  Context *context = context_new();
  CompileOptions options = {.machine = machine_probe()};
  Program *program = program_build(context, random_graph(context, seed), &options);
  for (int i = 0; program && i < program->plan->kernels.count; i++) {
    const PlanKernel *kernel = program->plan->kernels.items[i];
    if (kernel->same_as < 0 && !kernel->call)
      walk_func(
          context, plan_kernel_func(program->plan, i), NULL, seed + (uint64_t)i,
          arena_printf(&context->arena, "graph %llu, kernel %d", (unsigned long long)seed, i));
  }
  context_free(context);
}

static void walk_seed(uint64_t seed) {
  if (seed % 2)
    walk_graph(seed / 2);
  else
    walk_operator(seed / 2);
}

// Sequences with faults that the first ones do not have.
static const uint64_t more_seeds[] = {1889,   4583,     12641,    12862,   100733,
                                      104590, 41003258, 41012553, 41016537};

static void test_kernels_of_graphs(void **state) {
  (void)state;
  unsigned long long first = 0, count = SEQUENCES;
  const char *seed = getenv("SEED"), *asked = getenv("PLEAT_RANDOM");
  if (asked) sscanf(asked, "%llu:%llu", &first, &count);
  if (seed) first = strtoull(seed, NULL, 10), count = 1;
  for (uint64_t i = 0; i < count; i++) walk_seed(first + i);
  for (int i = 0; !asked && !seed && i < COUNT_OF(more_seeds); i++) walk_seed(more_seeds[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_kernels_of_graphs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
