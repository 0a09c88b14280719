// SPDX-License-Identifier: Apache-2.0
// Random sequences of steps on small programs: steps that are made must keep the results, give a
// well-formed program, and replay from the trace. Every kind of step must be made in some sequence.
// SEED=N runs one sequence, with STEPS=N of that many steps on one of 20 programs, KEEP=1 where
// transform_layout keeps loops, and BIND=1 where loops are bound to threads; SHOW=1 prints it.
#include "random_kernels.h"
#include "random_schedule.h"

#define HEAD "from pleat.script import tir as T\n@T.prim_func\n"

static const char *const programs[] = {
    HEAD "def f(A: T.Buffer((13, 7), 'float32'), R: T.Buffer((13, 7), 'float32'),\n"
         "      D: T.Buffer((7, 13), 'float32')):\n"
         "    B = T.alloc_buffer((13, 7))\n"
         "    C = T.alloc_buffer((13, 7))\n"
         "    for i, j in T.grid(13, 7):\n"
         "        with T.block('B'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            B[vi, vj] = A[vi, vj] * T.float32(2)\n"
         "    for i, j in T.grid(13, 7):\n"
         "        with T.block('C'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            C[vi, vj] = B[vi, 6 - vj] + R[vi, vj]\n"
         "    for j, i in T.grid(7, 13):\n"
         "        with T.block('D'):\n"
         "            vj, vi = T.axis.remap('SS', [j, i])\n"
         "            D[vj, vi] = T.max(C[vi, vj], T.float32(0)) - B[vi, vj]\n",
    HEAD
    "def f(X: T.Buffer((3, 5, 6), 'float32'), W: T.Buffer((5, 3, 3, 2), 'float32'),\n"
    "      b: T.Buffer((5,), 'float32'), Y: T.Buffer((5, 5, 3), 'float32')):\n"
    "    P = T.alloc_buffer((3, 7, 6))\n"
    "    C = T.alloc_buffer((5, 5, 3))\n"
    "    for c, h, w in T.grid(3, 7, 6):\n"
    "        with T.block('P'):\n"
    "            vc, vh, vw = T.axis.remap('SSS', [c, h, w])\n"
    "            P[vc, vh, vw] = T.if_then_else(1 <= vh and vh < 6, X[vc, vh - 1, vw], "
    "T.float32(0))\n"
    "    for o, h, w, c, k, l in T.grid(5, 5, 3, 3, 3, 2):\n"
    "        with T.block('C'):\n"
    "            vo, vh, vw, vc, vk, vl = T.axis.remap('SSSRRR', [o, h, w, c, k, l])\n"
    "            with T.init():\n"
    "                C[vo, vh, vw] = b[vo]\n"
    "            C[vo, vh, vw] = C[vo, vh, vw] + P[vc, vh + vk, vw * 2 + vl] * W[vo, vc, vk, vl]\n"
    "    for o, h, w in T.grid(5, 5, 3):\n"
    "        with T.block('Y'):\n"
    "            vo, vh, vw = T.axis.remap('SSS', [o, h, w])\n"
    "            Y[vo, vh, vw] = T.max(C[vo, vh, vw], T.float32(0))\n",
    HEAD "def f(A: T.Buffer((9, 10), 'float32'), S: T.Buffer((9,), 'float32')):\n"
         "    M = T.alloc_buffer((9,))\n"
         "    E = T.alloc_buffer((9, 10))\n"
         "    for i, k in T.grid(9, 10):\n"
         "        with T.block('M'):\n"
         "            vi, vk = T.axis.remap('SR', [i, k])\n"
         "            with T.init():\n"
         "                M[vi] = T.float32(-100)\n"
         "            M[vi] = T.max(M[vi], A[vi, vk])\n"
         "    for i, k in T.grid(9, 10):\n"
         "        with T.block('E'):\n"
         "            vi, vk = T.axis.remap('SS', [i, k])\n"
         "            E[vi, vk] = A[vi, vk] - M[vi]\n"
         "    for i, k in T.grid(9, 10):\n"
         "        with T.block('S'):\n"
         "            vi, vk = T.axis.remap('SR', [i, k])\n"
         "            with T.init():\n"
         "                S[vi] = T.float32(0)\n"
         "            S[vi] = S[vi] + E[vi, vk]\n",
    // Blocks inside of blocks.
    HEAD "def f(A: T.Buffer((12, 8), 'float32'), C: T.Buffer((12, 8), 'float32')):\n"
         "    B = T.alloc_buffer((12, 8))\n"
         "    for i, j in T.grid(12, 8):\n"
         "        with T.block('B'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            B[vi, vj] = A[vi, vj] + T.float32(1)\n"
         "    for i in T.grid(4):\n"
         "        with T.block('O'):\n"
         "            vo = T.axis.spatial(4, i)\n"
         "            T.reads(B[vo * 3:vo * 3 + 3, 0:8])\n"
         "            T.writes(C[vo * 3:vo * 3 + 3, 0:8])\n"
         "            D = T.alloc_buffer((3, 8))\n"
         "            for k, j in T.grid(3, 8):\n"
         "                with T.block('D'):\n"
         "                    vk, vj = T.axis.remap('SS', [k, j])\n"
         "                    D[vk, vj] = B[vo * 3 + vk, vj] * T.float32(3)\n"
         "            for k, j in T.grid(3, 8):\n"
         "                with T.block('C'):\n"
         "                    vk, vj = T.axis.remap('SS', [k, j])\n"
         "                    C[vo * 3 + vk, vj] = D[vk, 7 - vj] - T.float32(2)\n",
    // Predicates that read a buffer, sizes of 64 bits, and a view.
    HEAD "def f(A: T.Buffer((T.int64(9), T.int64(7)), 'float32'),\n"
         "      C: T.Buffer((T.int64(9), T.int64(7)), 'float32'),\n"
         "      E: T.Buffer((T.int64(9), T.int64(7)), 'float32')):\n"
         "    B = T.alloc_buffer((T.int64(9), T.int64(7)))\n"
         "    for i, j in T.grid(T.int64(9), T.int64(7)):\n"
         "        with T.block('B'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            B[vi, vj] = A[vi, vj] - T.float32(1)\n"
         "    for i, j in T.grid(T.int64(9), T.int64(7)):\n"
         "        with T.block('C'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            T.where(B[i, j] > T.float32(0))\n"
         "            C[vi, vj] = A[vi, T.int64(6) - vj] * T.float32(2)\n"
         "    for i, j in T.grid(T.int64(9), T.int64(7)):\n"
         "        with T.block('E'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            T.reads(B[vi, vj], A[vi, vj])\n"
         "            T.writes(E[vi, vj])\n"
         "            S = T.match_buffer(B[vi, vj], ())\n"
         "            E[vi, vj] = S[()] + A[vi, vj]\n",
    // Reductions that are nested, under a condition, and into a buffer that is used again.
    HEAD "def f(A: T.Buffer((6, 5, 4), 'float32'), C: T.Buffer((6, 5), 'float32')):\n"
         "    S = T.alloc_buffer((6, 5))\n"
         "    for i, j, k in T.grid(6, 5, 4):\n"
         "        with T.block('S'):\n"
         "            vi, vj, vk = T.axis.remap('SSR', [i, j, k])\n"
         "            with T.init():\n"
         "                S[vi, vj] = T.float32(1)\n"
         "            S[vi, vj] = S[vi, vj] + T.if_then_else(vk > 0, A[vi, vj, vk - 1], "
         "T.float32(2))\n"
         "    for i, j in T.grid(6, 5):\n"
         "        with T.block('T'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            T.where(i * 5 + j < 27)\n"
         "            S[vi, vj] = S[vi, vj] * T.float32(2)\n"
         "    for i, j in T.grid(6, 5):\n"
         "        with T.block('C'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            C[vi, vj] = S[vi, vj] + A[vi, vj, 3]\n",
};

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

static const char *program_of(uint64_t seed) {
  uint64_t at = seed % (COUNT_OF(programs) + COUNT_OF(random_kernels));
  return at < COUNT_OF(programs) ? programs[at] : random_kernels[at - COUNT_OF(programs)];
}

// Makes random steps on the program. `steps` 0: a random number.
static void walk_program(const char *program, uint64_t seed, int steps, bool keeps_loops,
                         bool binds) {
  Context *context = context_new();
  Walk walk = {.random = {seed * 977 + 5}, .keeps_loops = keeps_loops, .binds = binds};
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
  walk_program(program, seed, steps, keeps_loops, binds);
}

static void walk_newer(uint64_t seed) {
  walk_program(newer_programs[seed % COUNT_OF(newer_programs)], seed, 30, seed & 8, seed & 16);
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
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
