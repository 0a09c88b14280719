// SPDX-License-Identifier: Apache-2.0
// Steps on blocks inside of blocks, blocks with views, predicates that read buffers, sizes of 64
// bits, and reductions whose init sets too few elements: a step keeps the results and gives a
// well-formed program that can be read again, or is refused.
#include "schedule_check.h"

#define PARAMS HEAD "def f(A: T.Buffer((16, 8), 'float32'), C: T.Buffer((16, 8), 'float32')):\n"

static const char wide[] = HEAD "def f(A: T.Buffer((T.int64(13), T.int64(7)), 'float32'),\n"
                                "      C: T.Buffer((T.int64(13), T.int64(7)), 'float32')):\n"
                                "    for i, j in T.grid(T.int64(13), T.int64(7)):\n"
                                "        with T.block('C'):\n"
                                "            vi, vj = T.axis.remap('SS', [i, j])\n"
                                "            C[vi, vj] = A[vi, vj] * T.float32(2)\n";

// A block whose reads go through a view of one element.
static const char view_read[] = PARAMS "    B = T.alloc_buffer((16, 8))\n"
                                       "    for i, j in T.grid(16, 8):\n"
                                       "        with T.block('B'):\n"
                                       "            vi, vj = T.axis.remap('SS', [i, j])\n"
                                       "            B[vi, vj] = A[vi, vj] + T.float32(1)\n"
                                       "    for i, j in T.grid(16, 8):\n"
                                       "        with T.block('C'):\n"
                                       "            vi, vj = T.axis.remap('SS', [i, j])\n"
                                       "            T.reads(B[vi, vj], A[vi, vj])\n"
                                       "            T.writes(C[vi, vj])\n"
                                       "            S = T.match_buffer(B[vi, vj], ())\n"
                                       "            C[vi, vj] = S[()] * T.float32(2) + A[vi, vj]\n";

// Producer and consumer inside of one block.
static const char both_inside[] =
    PARAMS "    for i in T.grid(16):\n"
           "        with T.block('outer'):\n"
           "            vo = T.axis.spatial(16, i)\n"
           "            T.reads(A[vo, 0:8])\n"
           "            T.writes(C[vo, 0:8])\n"
           "            B = T.alloc_buffer((16, 8))\n"
           "            for j in T.grid(8):\n"
           "                with T.block('B'):\n"
           "                    vi = T.axis.spatial(16, vo)\n"
           "                    vj = T.axis.spatial(8, j)\n"
           "                    B[vi, vj] = A[vi, vj] + T.float32(1)\n"
           "            for j in T.grid(8):\n"
           "                with T.block('C'):\n"
           "                    vi = T.axis.spatial(16, vo)\n"
           "                    vj = T.axis.spatial(8, j)\n"
           "                    C[vi, vj] = B[vi, vj] * T.float32(2)\n";

// Only the consumer is inside of another block.
static const char consumer_inside[] =
    PARAMS "    B = T.alloc_buffer((16, 8))\n"
           "    for i, j in T.grid(16, 8):\n"
           "        with T.block('B'):\n"
           "            vi, vj = T.axis.remap('SS', [i, j])\n"
           "            B[vi, vj] = A[vi, vj] + T.float32(1)\n"
           "    for i in T.grid(4):\n"
           "        with T.block('outer'):\n"
           "            vo = T.axis.spatial(4, i)\n"
           "            T.reads(B[vo * 4:vo * 4 + 4, 0:8])\n"
           "            T.writes(C[vo * 4:vo * 4 + 4, 0:8])\n"
           "            for k, j in T.grid(4, 8):\n"
           "                with T.block('C'):\n"
           "                    vi = T.axis.spatial(16, vo * 4 + k)\n"
           "                    vj = T.axis.spatial(8, j)\n"
           "                    C[vi, vj] = B[vi, vj] * T.float32(2)\n";

// Only the producer is.
static const char producer_inside[] =
    PARAMS "    B = T.alloc_buffer((16, 8))\n"
           "    for i in T.grid(4):\n"
           "        with T.block('outer'):\n"
           "            vo = T.axis.spatial(4, i)\n"
           "            T.reads(A[vo * 4:vo * 4 + 4, 0:8])\n"
           "            T.writes(B[vo * 4:vo * 4 + 4, 0:8])\n"
           "            for k, j in T.grid(4, 8):\n"
           "                with T.block('B'):\n"
           "                    vi = T.axis.spatial(16, vo * 4 + k)\n"
           "                    vj = T.axis.spatial(8, j)\n"
           "                    B[vi, vj] = A[vi, vj] + T.float32(1)\n"
           "    for i, j in T.grid(16, 8):\n"
           "        with T.block('C'):\n"
           "            vi, vj = T.axis.remap('SS', [i, j])\n"
           "            C[vi, vj] = B[vi, vj] * T.float32(2)\n";

#define WHERE(VALUE)                                                                               \
  PARAMS "    B = T.alloc_buffer((16, 8))\n"                                                       \
         "    for i, j in T.grid(16, 8):\n"                                                        \
         "        with T.block('B'):\n"                                                            \
         "            vi, vj = T.axis.remap('SS', [i, j])\n"                                       \
         "            B[vi, vj] = A[vi, vj] - T.float32(1)\n"                                      \
         "    for i, j in T.grid(16, 8):\n"                                                        \
         "        with T.block('C'):\n"                                                            \
         "            vi, vj = T.axis.remap('SS', [i, j])\n"                                       \
         "            T.where(B[i, j] > T.float32(0))\n"                                           \
         "            C[vi, vj] = " VALUE "[vi, vj] * T.float32(2)\n"
static const char where_reads[] = WHERE("B"), where_alone[] = WHERE("A");

#define SUM(INIT)                                                                                  \
  PARAMS "    for i, k in T.grid(16, 8):\n"                                                        \
         "        with T.block('C'):\n"                                                            \
         "            vi, vk = T.axis.remap('SR', [i, k])\n"                                       \
         "            with T.init():\n"                                                            \
         "                " INIT " = T.float32(0)\n"                                               \
         "            C[vi, vk] = C[vi, vk] + A[vi, vk]\n"
static const char by_reduction[] = SUM("C[vi, vk]"), first_only[] = SUM("C[vi, 0]");

#define OUTER(INSIDE)                                                                              \
  PARAMS "    for i, j in T.grid(16, 8):\n"                                                        \
         "        with T.block('outer'):\n"                                                        \
         "            vi, vj = T.axis.remap('SS', [i, j])\n"                                       \
         "            T.reads(A[vi, vj])\n"                                                        \
         "            T.writes(C[vi, vj])\n" INSIDE
static const char inner_predicate[] = OUTER("            for k in T.grid(1):\n"
                                            "                with T.block('C'):\n"
                                            "                    T.where(vj < 5)\n"
                                            "                    C[vi, vj] = A[vi, vj]\n");
static const char inner_if[] = OUTER("            if vj < 5:\n"
                                     "                C[vi, vj] = A[vi, vj]\n");
static const char inner_whole[] = OUTER("            for k in T.grid(3):\n"
                                        "                with T.block('C'):\n"
                                        "                    vk = T.axis.spatial(3, k)\n"
                                        "                    C[vi, vj] = A[vi, vj]\n");

// An outer block of rows, which inner blocks write in parts: N elements at INDEX, if WHERE holds.
#define ROWS(INSIDE)                                                                               \
  HEAD "def f(A: T.Buffer((3, 8)), B: T.Buffer((3, 8)), C: T.Buffer((3,))):\n"                     \
       "    for i in range(3):\n"                                                                  \
       "        with T.block('O'):\n"                                                              \
       "            vi = T.axis.spatial(3, i)\n"                                                   \
       "            T.reads(A[vi, 0:8])\n"                                                         \
       "            T.writes(B[vi, 0:8])\n" INSIDE "    for i in range(3):\n"                      \
       "        with T.block('R'):\n"                                                              \
       "            vi = T.axis.spatial(3, i)\n"                                                   \
       "            C[vi] = B[vi, 2]\n"
#define PART(NAME, N, WHERE, INDEX)                                                                \
  "            for j in range(" N "):\n"                                                           \
  "                with T.block('" NAME "'):\n"                                                    \
  "                    vj = T.axis.spatial(" N ", j)\n" WHERE "                    B[vi, " INDEX   \
  "] = A[vi, " INDEX "] + T.float32(1)\n"
#define CONDITION(TEXT) "                    T.where(" TEXT ")\n"
#define BRANCHES(FIRST, SECOND)                                                                    \
  "            for j in range(8):\n"                                                               \
  "                if j < 4:\n"                                                                    \
  "                    B[vi, " FIRST "] = A[vi, j]\n"                                              \
  "                else:\n"                                                                        \
  "                    B[vi, " SECOND "] = A[vi, j] + T.float32(1)\n"
static const char *const rows_written[] = {
    ROWS(PART("I", "8", "", "7 - vj")),
    ROWS(PART("I", "8", "", "vj * 3 % 8")),
    ROWS(PART("I", "8", "", "T.bitwise_xor(vj, 5)")),
    ROWS(PART("I", "4", "", "vj + 4") PART("J", "4", "", "vj")),
    ROWS(PART("I", "5", "", "vj") PART("J", "3", "", "5 + vj") PART("K", "2", "", "vj")),
    ROWS(PART("I", "9", CONDITION("j < 8"), "vj")),
    ROWS(PART("I", "5", CONDITION("j >= 1"), "vj - 1") PART("J", "5", "", "vj + 3")),
    ROWS(BRANCHES("j", "j")),
    ROWS(BRANCHES("j", "11 - j")),
    ROWS(PART("I", "4", "", "vj * 2") PART("J", "4", "", "vj * 2 + 1")),
    ROWS(PART("I", "4", "", "7 - vj * 2") PART("J", "8", CONDITION("j % 2 == 0"), "vj")),
    ROWS(PART("I", "8", CONDITION("j % 2 != 0"), "vj") PART("J", "2", "", "vj * 4")
             PART("K", "2", "", "vj * 4 + 2")),
    ROWS(PART("I", "8", CONDITION("j < vi + 2"), "vj")
             PART("J", "8", CONDITION("j >= vi + 2"), "vj")),
    ROWS(PART("I", "8", CONDITION("j < 4"), "vj") PART("J", "8", CONDITION("j >= 4"), "vj")),
};
static const char *const rows_left[] = {
    ROWS(PART("I", "7", "", "vj")),
    ROWS(PART("I", "4", "", "vj * 2 % 8")),
    ROWS(PART("I", "4", "", "vj") PART("J", "3", "", "vj + 5")),
    ROWS(PART("I", "3", "", "vj") PART("J", "3", "", "vj + 5")),
    ROWS(PART("I", "8", CONDITION("j < 7"), "vj")),
    ROWS(PART("I", "8", CONDITION("A[vi, j] > T.float32(0)"), "vj")),
    ROWS(PART("I", "4", CONDITION("j != 2"), "vj") PART("J", "4", "", "vj + 4")),
    ROWS(PART("I", "8", CONDITION("j < 4"), "vj") PART("J", "8", CONDITION("j >= 5"), "vj")),
    ROWS(BRANCHES("j", "7 - j")),
    ROWS(PART("I", "4", "", "vj * 2") PART("J", "3", "", "vj * 2 + 1")),
    ROWS(PART("I", "4", "", "vj * 2") PART("J", "8", CONDITION("j % 2 == 0"), "vj")),
    ROWS(PART("I", "2", "", "vj * 4") PART("J", "4", "", "vj * 2 + 1")),
    ROWS(PART("I", "8", CONDITION("j < vi + 2"), "vj")
             PART("J", "8", CONDITION("j > vi + 2"), "vj")),
};

// A nest of two blocks, of which each writes a part of B; the sizes may be free.
#define TWO(SIZE, N, WHERE, INDEX, M, ELSE, OTHER)                                                 \
  HEAD "def f(c: T.handle, a: T.handle, b: T.handle):\n"                                           \
       "    n = T.int32()\n"                                                                       \
       "    C = T.match_buffer(c, (n,), 'float32')\n"                                              \
       "    A = T.match_buffer(a, (3, " SIZE "))\n"                                                \
       "    B = T.match_buffer(b, (3, " SIZE "))\n"                                                \
       "    for i in range(3):\n"                                                                  \
       "        for j in range(" N "):\n"                                                          \
       "            with T.block('E'):\n"                                                          \
       "                vi = T.axis.spatial(3, i)\n"                                               \
       "                vj = T.axis.spatial(" N ", j)\n" WHERE "                B[vi, " INDEX      \
       "] = A[vi, " INDEX "] + T.float32(1)\n"                                                     \
       "        for j in range(" M "):\n"                                                          \
       "            with T.block('O'):\n"                                                          \
       "                vi = T.axis.spatial(3, i)\n"                                               \
       "                vj = T.axis.spatial(" M ", j)\n" ELSE "                B[vi, " OTHER       \
       "] = A[vi, " OTHER "] * T.float32(2)\n"
#define ONLY(TEXT) "                T.where(" TEXT ")\n"
static const char *const two_written[] = {
    TWO("8", "4", "", "vj * 2", "4", "", "vj * 2 + 1"),
    TWO("8", "8", ONLY("j < 5"), "vj", "8", ONLY("j >= 5"), "vj"),
    TWO("7", "4", "", "vj * 2", "3", "", "vj * 2 + 1"),
    TWO("n * 2", "n", "", "vj * 2", "n", "", "vj * 2 + 1"),
    TWO("n * 2", "n", "", "n * 2 - 1 - vj * 2", "n", "", "vj * 2"),
    TWO("n * 2", "n * 2", ONLY("j % 2 == 0"), "vj", "n * 2", ONLY("j % 2 == 1"), "vj"),
    TWO("n", "n", ONLY("j < 5"), "vj", "n", ONLY("j >= 5"), "vj"),
    TWO("n", "n", ONLY("j % 2 == 0"), "vj", "n", ONLY("j % 2 == 1"), "vj"),
    TWO("n * 2", "n", "", "vj", "n", "", "vj + n"),
};
static const char *const two_left[] = {
    TWO("9", "5", "", "vj * 2", "3", "", "vj * 2 + 3"),
    TWO("n * 2", "n", "", "vj * 2", "n - 1", "", "vj * 2 + 3"),
    TWO("n", "n", ONLY("j < 5"), "vj", "n", ONLY("j >= 6"), "vj"),
    TWO("8", "8", ONLY("j < 5"), "vj", "8", ONLY("j >= 6"), "vj"),
    TWO("8", "8", ONLY("j < 5"), "vj", "8", ONLY("A[i, j] > T.float32(0)"), "vj"),
};

#define LOOPS(BLOCK) "b = sch.get_block('" BLOCK "')\nls = sch.get_loops(b)\n"
#define MAP "lambda i, j: [j, i])\n"

static const struct {
  const char *program, *steps;
} programs[] = {
    {wide, "sch.cache_read('C', 0, 'local')\n"},
    {wide, "sch.cache_write('C', 0, 'local')\n"},
    {view_read, "sch.transform_layout('C', 'A', " MAP},
    {view_read, "sch.transform_layout('C', 'C', " MAP},
    {view_read, "sch.transform_block_layout('C', " MAP},
    {view_read, "sch.cache_write('C', 0, 'local')\n"},
    {both_inside, "sch.compute_inline('B')\n"},
    {both_inside, "sch.reverse_compute_inline('C')\n"},
    {both_inside, "sch.cache_read('C', 0, 'local')\n"},
    {both_inside, "sch.transform_layout('B', ('write', 0), " MAP},
    {consumer_inside, "sch.compute_inline('B')\n"},
    {consumer_inside, "sch.reverse_compute_inline('C')\n"},
    {consumer_inside, "sch.cache_read('C', 0, 'local')\n"},
    {consumer_inside, LOOPS("outer") "sch.compute_at('B', ls[0])\n"},
    {producer_inside, "sch.compute_inline('B')\n"},
    {producer_inside, "sch.reverse_compute_inline('C')\n"},
    {producer_inside, LOOPS("outer") "sch.reverse_compute_at('C', ls[0])\n"},
    {where_reads, "sch.compute_inline('B')\n"},
    {where_reads, LOOPS("C") "sch.compute_at('B', ls[0])\n"},
    {where_alone, LOOPS("C") "sch.compute_at('B', ls[0])\n"},
    {where_alone, "sch.compute_inline('B')\n"},
    {where_alone, LOOPS("C") "sch.split(ls[1], factors=[None, 3])\n"},
    {inner_whole, "sch.cache_write('outer', 0, 'local')\n"},
};

static const struct {
  const char *program, *steps, *message;
} refusals[] = {
    {where_reads, "sch.reverse_compute_inline('C')\n", "its T.where reads its producer's buffer"},
    {where_alone, "sch.reverse_compute_inline('C')\n", "its T.where reads its producer's buffer"},
    {where_reads, LOOPS("B") "sch.reverse_compute_at('C', ls[0])\n", "its T.where reads 'B'"},
    {consumer_inside,
     "sch.transform_layout('B', ('write', 0), lambda i, j: [j, i])\n"
     "sch.cache_read('C', 0, 'local')\nsch.reverse_compute_inline('B_local')\n",
     "it uses 'B_local', which block 'B' is outside of"},
    {by_reduction, LOOPS("C") "sch.rfactor(ls[1], 0)\n", "its init does not start each sum"},
    {first_only, LOOPS("C") "sch.rfactor(ls[1], 0)\n", "its init does not start each sum"},
    {by_reduction, LOOPS("C") "sch.decompose_reduction('C', ls[1])\n", "does not start each sum"},
    {by_reduction, "sch.cache_write('C', 0, 'local')\n", "not proved to write all of 'C'"},
    {inner_predicate, "sch.cache_write('outer', 0, 'local')\n", "not proved to write all of 'C'"},
    {inner_if, "sch.cache_write('outer', 0, 'local')\n", "not proved to write all of 'C'"},
};

// All readers read the copy, or only the given one.
static void test_copies_of_rows(void **state) {
  (void)state;
  static const char *const steps[] = {
      "sch.cache_write('O', 0, 'local')\n",
      "sch.cache_write('O', 0, 'local', consumer_blocks=['R'])\n",
  };
  for (int k = 0; k < COUNT_OF(steps); k++) {
    for (int i = 0; i < COUNT_OF(rows_written); i++) made(rows_written[i], steps[k]);
    for (int i = 0; i < COUNT_OF(rows_left); i++)
      refused(rows_left[i], steps[k], "not proved to write all of 'B'");
  }
}

// Checks that the steps are made, and that the program computes the same for several sizes `n`.
static void made_for_sizes(const char *program, const char *steps) {
  Context *context = context_new();
  PrimFunc *before = check_parse(context, program);
  Schedule *schedule = schedule_new(context, before);
  if (!check_replay(schedule, steps)) fail_msg("%s\n%s", program, schedule_refusal(schedule));
  assert_true(verify_prim_func(context, schedule_func(schedule), IR_LEVEL_TENSOR));
  before = schedule_func(schedule_new(context, before));
  for (int n = 1; n < 20; n += 5) {
    InterpSize size = {before->buffers[0]->shape[0], n};
    InterpCompare compare = {.seed = 7,
                             .fill = INTERP_FILL_EIGHTHS,
                             .sizes = &size,
                             .size_count = 1,
                             .options = {.poison = true, .report_reads = true}};
    InterpDifference difference;
    if (interp_compare(context, before, schedule_func(schedule), &compare, &difference)) continue;
    diag_print_all(context, stderr);
    fail_msg("n = %d:\n%s", n, check_text(context, schedule_func(schedule)));
  }
  context_free(context);
}

static void test_copies_of_two_writers(void **state) {
  (void)state;
  for (int i = 0; i < COUNT_OF(two_written); i++)
    made_for_sizes(two_written[i], "sch.cache_write('E', 0, 'local')\n");
  for (int i = 0; i < COUNT_OF(two_left); i++)
    refused(two_left[i], "sch.cache_write('O', 0, 'local')\n", "not proved to write all of 'B'");
}

static void test_steps_that_are_made(void **state) {
  (void)state;
  for (int i = 0; i < COUNT_OF(programs); i++) {
    Context *context = context_new();
    Schedule *schedule = check_made(context, programs[i].program, programs[i].steps);
    check_parse(context, check_text(context, schedule_func(schedule)));
    context_free(context);
  }
}

static void test_steps_that_are_refused(void **state) {
  (void)state;
  for (int i = 0; i < COUNT_OF(refusals); i++)
    refused(refusals[i].program, refusals[i].steps, refusals[i].message);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_copies_of_rows),
      cmocka_unit_test(test_copies_of_two_writers),
      cmocka_unit_test(test_steps_that_are_made),
      cmocka_unit_test(test_steps_that_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
