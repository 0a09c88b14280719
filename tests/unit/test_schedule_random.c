// SPDX-License-Identifier: Apache-2.0
// Random sequences of steps on small programs: steps that are made must keep the results, give a
// well-formed program, and replay from the trace. Every kind of step must be made in some sequence.
// SEED=N runs one sequence, with STEPS=N of that many steps on one of 20 programs, KEEP=1 where
// transform_layout keeps loops, BIND=1 where loops are bound to threads, and FILL=1 where padding
// is written in ways that are named; SHOW=1 prints it.
#include "random_schedule.h"
#include "schedule_programs.h"

// Memory with several names, and reductions of several results.
static const char *const newer_programs[] = {
    HEAD "def f(A: T.Buffer((12, 6), 'float32'), C: T.Buffer((12, 6), 'float32')):\n"
         "    B = T.alloc_buffer((12, 6))\n"
         "    F = T.decl_buffer((72,), data=B.data)\n"
         "    for i in range(4):\n"
         "        with T.block('rows'):\n"
         "            vi = T.axis.spatial(4, i)\n"
         "            S = T.match_buffer(B[vi * 3:vi * 3 + 3, 0:6], (3, 6), offset_factor=1)\n"
         "            for k, j in T.grid(3, 6):\n"
         "                with T.block('B'):\n"
         "                    vk, vj = T.axis.remap('SS', [k, j])\n"
         "                    S[vk, vj] = A[vi * 3 + vk, vj] * T.float32(2)\n"
         "    for k in range(72):\n"
         "        with T.block('F'):\n"
         "            vk = T.axis.remap('S', [k])\n"
         "            F[vk] = F[vk] + T.float32(1)\n"
         "    for i, j in T.grid(12, 6):\n"
         "        with T.block('C'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            C[vi, vj] = B[vi, 5 - vj] + F[vi * 6 + vj]\n",
    HEAD "def f(X: T.Buffer((5, 12), 'int32'), A: T.Buffer((5, 12), 'int32'),\n"
         "      I: T.Buffer((5,), 'int32'), V: T.Buffer((5,), 'int32')):\n"
         "    for i, k in T.grid(5, 12):\n"
         "        with T.block('largest'):\n"
         "            vi, vk = T.axis.remap('SR', [i, k])\n"
         "            with T.init():\n"
         "                I[vi] = -1\n"
         "                V[vi] = T.min_value('int32')\n"
         "            a = T.Select(V[vi] >= A[vi, vk] // 4, I[vi], X[vi, vk])\n"
         "            b = T.Select(V[vi] >= A[vi, vk] // 4, V[vi], A[vi, vk] // 4)\n"
         "            I[vi] = a\n"
         "            V[vi] = b\n",
    HEAD "def f(A: T.Buffer((5, 12), 'float32'), S: T.Buffer((5,), 'float32'),\n"
         "      M: T.Buffer((5,), 'float32'), D: T.Buffer((5,), 'float32')):\n"
         "    for i, k in T.grid(5, 12):\n"
         "        with T.block('both'):\n"
         "            vi, vk = T.axis.remap('SR', [i, k])\n"
         "            with T.init():\n"
         "                S[vi] = T.float32(5)\n"
         "                M[vi] = T.float32(0)\n"
         "            S[vi] = S[vi] - A[vi, vk]\n"
         "            M[vi] = T.max(M[vi], A[vi, vk])\n"
         "    for i in range(5):\n"
         "        with T.block('D'):\n"
         "            vi = T.axis.remap('S', [i])\n"
         "            D[vi] = S[vi] * M[vi]\n",
};

// Makes random steps on the program. `steps` 0: a random number.
static void walk_program(const char *program, uint64_t seed, int steps, Walk walk) {
  Context *context = context_new();
  walk.random.state = seed * 977 + 5;
  PrimFunc *before = check_parse(context, program);
  walk.schedule = schedule_new(context, before);
  if (!steps) steps = 3 + pick(&walk.random, 10);
  walk_steps(&walk, steps);
  char what[32];
  snprintf(what, sizeof what, "seed %llu", (unsigned long long)seed);
  walk_check(&walk, before, NULL, what);
  context_free(context);
}

static void walk_once(uint64_t seed, int steps, bool keeps_loops, bool binds) {
  const char *program = steps ? program_of(seed) : programs[seed % COUNT_OF(programs)];
  walk_program(program, seed, steps, (Walk){.keeps_loops = keeps_loops, .binds = binds});
}

static void walk_newer(uint64_t seed) {
  walk_program(newer_programs[seed % COUNT_OF(newer_programs)], seed, 30,
               (Walk){.keeps_loops = seed & 8, .binds = seed & 16});
}

static void walk_fills(uint64_t seed) {
  walk_program(program_of(seed), seed, 30, (Walk){.fills = true, .binds = seed & 16});
}

// Sequences with faults that the first ones do not have.
static const uint64_t more_seeds[] = {7812, 23536, 37243, 37338, 47143, 65449, 115838, 141420};
static const uint64_t long_seeds[] = {1030,  1948,  3530,  3980,  4496,  7110,   8121,    11313,
                                      14990, 20665, 21246, 33511, 35376, 39309,  44090,   64704,
                                      65738, 83585, 89767, 97768, 89273, 122015, 1050198, 9005205};

static void test_random_schedules(void **state) {
  (void)state;
  const char *given = getenv("SEED"), *runs = getenv("RUNS"), *steps = getenv("STEPS");
  if (given && getenv("NEWER")) {
    walk_newer(strtoull(given, NULL, 10));
    return;
  }
  if (given && getenv("FILL")) {
    walk_fills(strtoull(given, NULL, 10));
    return;
  }
  if (given) {
    walk_once(strtoull(given, NULL, 10), steps ? atoi(steps) : 0, getenv("KEEP") != NULL,
              getenv("BIND") != NULL);
    return;
  }
  int count = runs ? atoi(runs) : 600;
  for (int seed = 0; seed < count; seed++) walk_once((uint64_t)seed, 0, false, false);
  for (int i = 0; !runs && i < COUNT_OF(more_seeds); i++) walk_once(more_seeds[i], 0, false, false);
  for (int i = 0; i < COUNT_OF(tries); i++) {
    if (!through[i]) fprintf(stderr, "no %s was made\n", tries[i].name);
    if (runs) fprintf(stderr, "%s %d\n", tries[i].name, through[i]);
    assert_true(through[i] > 0);
  }
}

// 30 steps on each of 20 programs.
static void test_long_schedules(void **state) {
  (void)state;
  if (getenv("SEED") || getenv("RUNS")) return;
  for (uint64_t seed = 0; seed < 100; seed++) walk_once(seed, 30, false, false);
  for (int i = 0; i < COUNT_OF(long_seeds); i++) walk_once(long_seeds[i], 30, false, false);
}

static void test_layouts_without_loops(void **state) {
  (void)state;
  if (getenv("SEED") || getenv("RUNS")) return;
  for (uint64_t seed = 0; seed < 100; seed++) walk_once(seed, 30, true, false);
}

static void test_loops_over_threads(void **state) {
  (void)state;
  if (getenv("SEED") || getenv("RUNS")) return;
  for (uint64_t seed = 0; seed < 100; seed++) walk_once(seed, 30, false, true);
  walk_once(8003733, 30, false, true);
  walk_once(8004544, 30, false, true);
}

static void test_ways_to_write_padding(void **state) {
  (void)state;
  if (getenv("SEED") || getenv("RUNS")) return;
  for (uint64_t seed = 0; seed < 60; seed++) walk_fills(seed);
}

static void test_aliases_and_several_results(void **state) {
  (void)state;
  if (getenv("SEED") || getenv("RUNS")) return;
  for (uint64_t seed = 0; seed < 96; seed++) walk_newer(seed);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_schedules),
      cmocka_unit_test(test_long_schedules),
      cmocka_unit_test(test_layouts_without_loops),
      cmocka_unit_test(test_aliases_and_several_results),
      cmocka_unit_test(test_loops_over_threads),
      cmocka_unit_test(test_ways_to_write_padding),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
