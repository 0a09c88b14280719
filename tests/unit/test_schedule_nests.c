// SPDX-License-Identifier: Apache-2.0
// Steps on loops and blocks of forms that they must not mistake for the usual ones: several points
// that write one element, sums that begin late, conditions around blocks, loops whose bounds are
// other loops. test_schedule_programs.c tries random ones.
#include "lower/lower.h"
#include "schedule_check.h"

#define BLOCK "S = sch.get_block('s')\nl = sch.get_loops(S)\n"

// Points that are not of one reduction write one element: its init runs again for each.
static void test_sums_that_share_elements(void **state) {
  (void)state;
  static const char *const program =
      HEAD "def f(A: T.Buffer((8,), 'float32'), D: T.Buffer((2,), 'float32')):\n"
           "    for i, k in T.grid(4, 3):\n"
           "        with T.block('s'):\n"
           "            vi, vk = T.axis.remap('SR', [i, k])\n"
           "            with T.init():\n"
           "                D[vi % 2] = T.float32(0)\n"
           "            D[vi % 2] = D[vi % 2] + A[vi + vk]\n";
  refused(program, BLOCK "sch.decompose_reduction(S, l[0])", "may write the same element");
  refused(program, BLOCK "sch.blockize(l[0])", "may write the same element");
  made(program, BLOCK "sch.decompose_reduction(S, l[1])");
  made(program, BLOCK "sch.blockize(l[1])");
}

// The init does not run, so that there is none to move.
static void test_sums_that_begin_late(void **state) {
  (void)state;
  static const char *const program =
      HEAD "def f(A: T.Buffer((8,), 'float32'), D: T.Buffer((4,), 'float32')):\n"
           "    for i, k in T.grid(4, 3):\n"
           "        with T.block('s'):\n"
           "            vi = T.axis.spatial(4, i)\n"
           "            vk = T.axis.reduce(4, k + 1)\n"
           "            with T.init():\n"
           "                D[vi] = T.float32(0)\n"
           "            D[vi] = D[vi] + A[vi + vk]\n";
  refused(program, BLOCK "sch.decompose_reduction(S, l[1])", "begin at the start of its domain");
  made(program, BLOCK "sch.loop_partition(l[0], [1, None])");
}

// The condition on a loop that no variable uses leaves out the init too.
static void test_conditions_on_free_loops(void **state) {
  (void)state;
  made(HEAD "def f(A: T.Buffer((8,), 'float32'), D: T.Buffer((4,), 'float32')):\n"
            "    for i, u, k in T.grid(4, 1, 3):\n"
            "        with T.block('s'):\n"
            "            vi, vk = T.axis.remap('SR', [i, k])\n"
            "            T.where(1 <= u)\n"
            "            with T.init():\n"
            "                D[vi] = T.float32(0)\n"
            "            D[vi] = D[vi] + A[vi + vk]\n",
       BLOCK "sch.decompose_reduction(S, l[0])");
}

// A producer, and a consumer for some of its elements.
#define SOME(CONSUMER)                                                                             \
  HEAD "def f(A: T.Buffer((6,), 'float32'), D: T.Buffer((6,), 'float32')):\n"                      \
       "    B = T.alloc_buffer((6,))\n"                                                            \
       "    for i in range(6):\n"                                                                  \
       "        with T.block('s'):\n"                                                              \
       "            vi = T.axis.spatial(6, i)\n"                                                   \
       "            B[vi] = A[vi] + T.float32(1)\n"                                                \
       "    for i in range(6):\n" CONSUMER

#define CONDITION                                                                                  \
  "        if i < 4:\n"                                                                            \
  "            with T.block('d'):\n"                                                               \
  "                vi = T.axis.spatial(6, i)\n"                                                    \
  "                D[vi] = B[vi]\n"

static void test_conditions_around_blocks(void **state) {
  (void)state;
  static const char *const leaves_out = "a condition around the block";
  refused(SOME(CONDITION), "sch.cache_write('d', 0, 'local')", "not proved to write all of 'D'");
  refused(SOME(CONDITION), BLOCK "sch.reverse_compute_at('d', l[0])", leaves_out);
  refused(SOME(CONDITION), "sch.reverse_compute_inline('d')", "do not run over its domain");
  refused(HEAD "def f(A: T.Buffer((6, 3), 'float32'), D: T.Buffer((6,), 'float32')):\n"
               "    B = T.alloc_buffer((6,))\n"
               "    for i, k in T.grid(6, 3):\n"
               "        with T.block('s'):\n"
               "            vi, vk = T.axis.remap('SR', [i, k])\n"
               "            with T.init():\n"
               "                B[vi] = T.float32(0)\n"
               "            B[vi] = B[vi] + A[vi, vk]\n"
               "    for i in range(6):\n" CONDITION,
          "sch.fuse_reduction_epilogue('s', 'd')", "do not run over its domain");
}

// Each iteration of the producer's loop would run the point, the first before its input is there.
static void test_consumers_of_one_element(void **state) {
  (void)state;
  refused(SOME("        with T.block('d'):\n"
               "            vi = T.axis.spatial(1, 0)\n"
               "            D[vi] = B[vi] + B[vi + 5]\n"),
          BLOCK "sch.reverse_compute_at('d', l[0])", "");
  refused(HEAD "def f(A: T.Buffer((4, 2), 'float32'), D: T.Buffer((1,), 'float32')):\n"
               "    B = T.alloc_buffer((4, 2))\n"
               "    for i, j in T.grid(4, 2):\n"
               "        with T.block('s'):\n"
               "            vi, vj = T.axis.remap('SS', [i, j])\n"
               "            B[vi, vj] = A[3 - vi, vj]\n"
               "    for i in range(1):\n"
               "        with T.block('d'):\n"
               "            vi = T.axis.spatial(1, i)\n"
               "            D[vi] = B[vi, vi + 1] + B[(vi + 1) % 4, 1 - vi]\n",
          BLOCK "sch.reverse_compute_at('d', l[0])", "before 'B' is complete");
}

// The last point that writes an element may not be the last at the consumer.
static void test_elements_written_several_times(void **state) {
  (void)state;
  refused(HEAD "def f(A: T.Buffer((6,), 'float32'), D: T.Buffer((3,), 'float32')):\n"
               "    B = T.alloc_buffer((3,))\n"
               "    for i in range(6):\n"
               "        with T.block('s'):\n"
               "            vi = T.axis.spatial(6, i)\n"
               "            B[vi % 3] = A[vi]\n"
               "    for i in range(3):\n"
               "        with T.block('d'):\n"
               "            vi = T.axis.spatial(3, i)\n"
               "            D[vi] = B[vi]\n",
          "l = sch.get_loops('d')\nsch.compute_at('s', l[0])", "may write the same element");
}

static void test_bounds_that_are_loops(void **state) {
  (void)state;
  static const char *const program =
      HEAD "def f(A: T.Buffer((8,), 'float32'), D: T.Buffer((4,), 'float32')):\n"
           "    for i in range(4):\n"
           "        for k in range(i + 1):\n"
           "            with T.block('s'):\n"
           "                vi = T.axis.spatial(4, i)\n"
           "                vk = T.axis.reduce(1, k)\n"
           "                T.where(k < 1)\n"
           "                with T.init():\n"
           "                    D[vi] = T.float32(0)\n"
           "                D[vi] = D[vi] + A[vi + vk]\n";
  refused(program, BLOCK "sch.rfactor(l[1], 0)", "the bounds of loop 'k' depend on loop 'i'");
  made(program, "sch.transform_layout('s', ('write', 0), lambda i: (i // 2, i % 2))");
}

#define PRODUCER                                                                                   \
  "    for i in range(6):\n"                                                                       \
  "        with T.block('s'):\n"                                                                   \
  "            vi = T.axis.spatial(6, i)\n"                                                        \
  "            B[vi] = A[vi] + T.float32(1)\n"

// A statement outside of blocks reads the result between the producer and the consumer.
static void test_statements_outside_of_blocks(void **state) {
  (void)state;
  static const char *const program =
      HEAD "def f(A: T.Buffer((6,), 'float32'), C: T.Buffer((6,), 'float32'),\n"
           "      D: T.Buffer((6,), 'float32')):\n"
           "    B = T.alloc_buffer((6,))\n" PRODUCER "    for i in range(6):\n"
           "        C[i] = B[5 - i]\n"
           "    for i in range(6):\n"
           "        with T.block('d'):\n"
           "            vi = T.axis.spatial(6, i)\n"
           "            D[vi] = B[vi] * T.float32(2)\n";
  refused(program, "l = sch.get_loops('d')\nsch.compute_at('s', l[0])",
          "'B' is used outside of blocks too");
  made(program, BLOCK "sch.reverse_compute_at('d', l[0])");
  made(program, "sch.compute_inline('s')");
}

// A declaration gives memory another name after the producer, at which it is not known yet, or
// before it.
static void test_names_of_memory(void **state) {
  (void)state;
  static const char *const late =
      HEAD "def f(A: T.Buffer((6,), 'float32'), D: T.Buffer((6,), 'float32')):\n"
           "    B = T.alloc_buffer((6,))\n" PRODUCER
           "    V = T.decl_buffer((6,), 'float32', data=D.data)\n"
           "    for i in range(6):\n"
           "        with T.block('d'):\n"
           "            vi = T.axis.spatial(6, i)\n"
           "            V[vi] = B[vi] * T.float32(2)\n";
  static const char *const early = HEAD
      "def f(A: T.Buffer((6,), 'float32'), D: T.Buffer((6,), 'float32')):\n"
      "    C = T.alloc_buffer((6,))\n"
      "    B = T.decl_buffer((6,), 'float32', data=C.data)\n" PRODUCER "    for i in range(6):\n"
      "        with T.block('d'):\n"
      "            vi = T.axis.spatial(6, i)\n"
      "            D[vi] = C[vi] * T.float32(2)\n";
  refused(late, BLOCK "sch.reverse_compute_at('d', l[0])", "it uses 'V', which");
  refused(late, "sch.reverse_compute_inline('d')", "it uses 'V', which");
  refused(early, BLOCK "sch.reverse_compute_at('d', l[0])", "'C' is written there as 'B'");
  made(early, "sch.transform_layout('s', ('write', 0), lambda i: (i // 4, i % 4), pad_value=2, "
              "fill='before')");
}

// No point that runs reads the buffer.
static void test_copies_of_no_element(void **state) {
  (void)state;
  made(HEAD "def f(A: T.Buffer((1,), 'float32'), D: T.Buffer((1,), 'float32')):\n"
            "    for i in range(1):\n"
            "        with T.block('d'):\n"
            "            vi = T.axis.spatial(1, i)\n"
            "            D[vi] = T.if_then_else(vi >= 2, A[vi - 2], T.float32(3))\n",
       "sch.cache_read('d', 0, 'local')");
}

// The elements of a view that states no strides are those of its region, not the next in memory.
static void test_views_without_strides(void **state) {
  (void)state;
  Context *context = context_new();
  PrimFunc *func = check_parse(
      context, HEAD "def f(A: T.Buffer((5, 7), 'float32'), D: T.Buffer((3, 2), 'float32')):\n"
                    "    with T.block('s'):\n"
                    "        S = T.match_buffer(A[1:4, 4:6], (3, 2), offset_factor=1)\n"
                    "        for i, j in T.grid(3, 2):\n"
                    "            D[i, j] = S[i, j] * T.float32(2)\n");
  PrimFunc *plain = check_parse(
      context, HEAD "def f(A: T.Buffer((5, 7), 'float32'), D: T.Buffer((3, 2), 'float32')):\n"
                    "    for i, j in T.grid(3, 2):\n"
                    "        D[i, j] = A[1 + i, 4 + j] * T.float32(2)\n");
  check_same_meaning(context, plain, func, true);
  check_same_meaning(context, func, lower_prim_func(context, func, NULL), true);
  context_free(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sums_that_share_elements),
      cmocka_unit_test(test_sums_that_begin_late),
      cmocka_unit_test(test_conditions_on_free_loops),
      cmocka_unit_test(test_conditions_around_blocks),
      cmocka_unit_test(test_consumers_of_one_element),
      cmocka_unit_test(test_elements_written_several_times),
      cmocka_unit_test(test_bounds_that_are_loops),
      cmocka_unit_test(test_statements_outside_of_blocks),
      cmocka_unit_test(test_names_of_memory),
      cmocka_unit_test(test_copies_of_no_element),
      cmocka_unit_test(test_views_without_strides),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
