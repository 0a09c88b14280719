// SPDX-License-Identifier: Apache-2.0
// Tests optional parameters of schedule steps, and the step loop_partition.
#include "schedule_chain.h"

static const char *const pairs =
    HEAD "def f(A: T.Buffer((5, 7)), D: T.Buffer((5, 7)), E: T.Buffer((5, 7))):\n"
         "    B = T.alloc_buffer((5, 7))\n"
         "    C = T.alloc_buffer((5, 7))\n"
         "    for i, j in T.grid(5, 7):\n"
         "        with T.block('B'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            B[vi, vj] = A[vi, vj] * T.float32(2)\n"
         "    for i, j in T.grid(5, 7):\n"
         "        with T.block('C'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            C[vi, vj] = B[vi, 6 - vj] - T.float32(1)\n"
         "    for i, j in T.grid(5, 7):\n"
         "        with T.block('D'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            D[vi, vj] = C[vi, vj] + A[4 - vi, vj]\n"
         "    for i, j in T.grid(5, 7):\n"
         "        with T.block('E'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            E[vi, vj] = B[vi, vj] - C[vi, vj]\n";

static const char *const rows =
    HEAD "def f(A: T.Buffer((9, 5), 'float32'), R: T.Buffer((9,), 'float32')):\n"
         "    for i, k in T.grid(9, 5):\n"
         "        with T.block('R'):\n"
         "            vi, vk = T.axis.remap('SR', [i, k])\n"
         "            with T.init():\n"
         "                R[vi] = T.float32(1)\n"
         "            R[vi] = R[vi] + A[vi, vk]\n";

#define LOOPS "i, j = sch.get_loops('B')\n"

static void test_unit_iters(void **state) {
  (void)state;
  gives(chain, LOOPS "a, b, c = sch.split(i, [13, 1, 1])",
        "vi = T.axis.spatial(13, i_0 + i_1 + i_2)", "");
  gives(chain, LOOPS "a, b, c = sch.split(i, [13, 1, 1], preserve_unit_iters=False)",
        "in T.grid(13, 1, 1, 7):", "remap(\"SS\", [i_0, j])");
  gives(chain,
        LOOPS "u = sch.add_unit_loop(i)\na, b = sch.split(u, [1, 1])\n"
              "f = sch.fuse(b, i, j, preserve_unit_iters=False)",
        "in T.grid(1, 91):", "vi = T.axis.spatial(13, u_1_i_j_fused // 7)");
  gives(chain,
        LOOPS "a, b = sch.split(i, [1, 13], preserve_unit_iters=False, disable_predication=True)",
        "remap(\"SS\", [i_1, j])", "");
  refused(chain, LOOPS "sch.split(i, [None, 4], disable_predication=True)",
          "needs a predicate, because the factors make more iterations");
}

static void test_partitions(void **state) {
  (void)state;
  gives(chain, LOOPS "a, b, c = sch.loop_partition(i, factors=[2, None, 4])",
        "T.reads(A[2:9, 0:7])", "for i2 in T.serial(9, 13):");
  gives(chain,
        LOOPS "a, b = sch.loop_partition(i, [6])\nx, y = sch.get_loops('B_i1')\n"
              "sch.vectorize(y)\np, q = sch.get_loops('B_i0')\n"
              "sch.loop_partition(q, [None, T.int64(1)])",
        "with T.block(\"B_i0_j1_partition\"):", "T.vectorized(7)");
  gives(chain,
        "i, j = sch.get_loops('D')\nf = sch.fuse(i, j)\na, b = sch.split(f, [None, 4])\n"
        "c, d = sch.loop_partition(a, [22], preserve_unit_iters=False)",
        "vj = T.axis.spatial((6, 7), (j_i_fused_1 + 88) // 13)", "");
  gives(rows, "i, k = sch.get_loops('R')\nsch.loop_partition(i, [1, 1])",
        "with T.block(\"R_i0_partition\"):", "for i2 in T.serial(2, 9):");
  gives(rows,
        "i, k = sch.get_loops('R')\nsch.decompose_reduction('R', i)\nsch.loop_partition(k, [1, 3])",
        "with T.block(\"R_k_common\"):", "for k2 in T.serial(4, 5):");
  refused(rows, "i, k = sch.get_loops('R')\nsch.loop_partition(k, [1])",
          "whose init would run in each part");
}

// Each part has a view of its own of a buffer that both share.
static void test_partition_of_views(void **state) {
  (void)state;
  gives(HEAD "def f(A: T.Buffer((9, 7), 'float32'), E: T.Buffer((9, 7), 'float32')):\n"
             "    B = T.alloc_buffer((9, 7))\n"
             "    for i, j in T.grid(9, 7):\n"
             "        with T.block('B'):\n"
             "            vi, vj = T.axis.remap('SS', [i, j])\n"
             "            B[vi, vj] = A[vi, vj] - T.float32(1)\n"
             "    for i, j in T.grid(9, 7):\n"
             "        with T.block('E'):\n"
             "            vi, vj = T.axis.remap('SS', [i, j])\n"
             "            T.reads(B[vi, vj])\n"
             "            T.writes(E[vi, vj])\n"
             "            S = T.match_buffer(B[vi, vj], ())\n"
             "            E[vi, vj] = S[()] * T.float32(3)\n",
        "i, j = sch.get_loops('E')\nsch.loop_partition(j, [None, 4])", "T.reads(B[i, 3:7])",
        "S = T.match_buffer(B[vi, vj], ()");
}

static const char open_sizes[] = HEAD "def f(a: T.handle, b: T.handle, n: T.int32, m: T.int32):\n"
                                      "    A = T.match_buffer(a, (n, m), 'float32')\n"
                                      "    B = T.match_buffer(b, (n, m), 'float32')\n"
                                      "    for i, j in T.grid(n, m):\n"
                                      "        with T.block('B'):\n"
                                      "            vi, vj = T.axis.remap('SS', [i, j])\n"
                                      "            B[vi, vj] = A[vi, vj] * T.float32(2)\n";

static void test_refused_partitions(void **state) {
  (void)state;
  refused(chain, LOOPS "sch.loop_partition(i, [6, 7])", "no iteration for the last part");
  refused(chain, LOOPS "sch.loop_partition(i, [9223372036854775807, 7])", "no iteration");
  refused(chain, LOOPS "sch.loop_partition(i, [None, None])", "only one factor may be None");
  refused(chain, LOOPS "sch.loop_partition(i, [0, None])", "a positive integer or None");
  refused(chain, LOOPS "sch.parallel(i)\nsch.loop_partition(i, [1])", "do this step before");
  refused(open_sizes, LOOPS "l = sch.fuse(i, j)\nsch.loop_partition(l, [3, None, 2])",
          "cut the loop before");
}

// Conditions that hold in all iterations of a part are left out.
static void test_conditions_of_parts(void **state) {
  (void)state;
  gives(chain, LOOPS "x, y = sch.split(i, [None, 4])\nsch.loop_partition(x, [None, 1])",
        "vi = T.axis.spatial(12, i_00 * 4 + i_1)\n                    vj = T.axis.spatial(7, j)\n"
        "                    T.reads",
        "T.where(i_01 * 4 + i_1 < 13)");
}

// Moves E and then D after C in its outer loop, D at the place that `index` says.
static void gives_order(const char *index, char first, char second) {
  Context *context = context_new();
  gives(pairs,
        arena_printf(&context->arena,
                     "i, j = sch.get_loops('C')\nsch.reverse_compute_at('E', i)\n"
                     "sch.reverse_compute_at('D', i%s)\n",
                     index),
        arena_printf(&context->arena, "T.block(\"%c\")", first),
        arena_printf(&context->arena, "T.block(\"%c\")", second));
  context_free(context);
}

static void test_index(void **state) {
  (void)state;
  gives_order("", 'E', 'D');
  gives_order(", index=-1", 'E', 'D');
  gives_order(", index=-2", 'D', 'E');
  gives_order(", index=1", 'D', 'E');
  gives_order(", index=2", 'E', 'D');
  refused(pairs, "i, j = sch.get_loops('C')\nsch.reverse_compute_at('E', i, index=0)",
          "which leave 1 to 1");
  const char *sums = HEAD "def f(A: T.Buffer((5, 7)), C: T.Buffer((5, 7))):\n"
                          "    B = T.alloc_buffer((5, 7))\n"
                          "    D = T.alloc_buffer((5, 7))\n"
                          "    for i, j in T.grid(5, 7):\n"
                          "        with T.block('B'):\n"
                          "            vi, vj = T.axis.remap('SS', [i, j])\n"
                          "            B[vi, vj] = A[vi, vj] * T.float32(2)\n"
                          "    for i, j in T.grid(5, 7):\n"
                          "        with T.block('D'):\n"
                          "            vi, vj = T.axis.remap('SS', [i, j])\n"
                          "            D[vi, vj] = A[vi, 6 - vj] - T.float32(1)\n"
                          "    for i, j in T.grid(5, 7):\n"
                          "        with T.block('C'):\n"
                          "            vi, vj = T.axis.remap('SS', [i, j])\n"
                          "            C[vi, vj] = B[vi, 6 - vj] - D[vi, vj]\n";
  const char *head = "i, j = sch.get_loops('C')\nsch.compute_at('D', i)\n";
  Context *context = context_new();
  const char *last = arena_printf(&context->arena, "%ssch.compute_at('B', i)", head);
  const char *first = arena_printf(&context->arena, "%ssch.compute_at('B', i, index=-2)", head);
  const char *beyond = arena_printf(&context->arena, "%ssch.compute_at('B', i, index=2)", head);
  gives(sums, last, "T.block(\"D\")", "T.block(\"B\")");
  gives(sums, first, "T.block(\"B\")", "T.block(\"D\")");
  refused(sums, beyond, "which leave 0 to 1");
  context_free(context);
}

// B is read in the nest that writes it and in two others, one of which runs backwards.
static const char *const readers =
    HEAD "def f(A: T.Buffer((13, 7)), C: T.Buffer((13, 7)), D: T.Buffer((13, 5)),\n"
         "      E: T.Buffer((13, 7))):\n"
         "    B = T.alloc_buffer((13, 7))\n"
         "    for i in range(13):\n"
         "        for j in range(7):\n"
         "            with T.block('B'):\n"
         "                vi, vj = T.axis.remap('SS', [i, j])\n"
         "                B[vi, vj] = A[vi, vj] * T.float32(2)\n"
         "        for j in range(7):\n"
         "            with T.block('C'):\n"
         "                vi, vj = T.axis.remap('SS', [i, j])\n"
         "                C[vi, vj] = B[vi, 6 - vj] + T.float32(1)\n"
         "    for i, j in T.grid(13, 5):\n"
         "        with T.block('D'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            D[vi, vj] = B[12 - vi, vj + 1]\n"
         "    for i, j in T.grid(13, 7):\n"
         "        with T.block('E'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            E[vi, vj] = B[vi, vj] - C[vi, vj]\n";

static void test_cached_reads(void **state) {
  (void)state;
  gives(readers, "sch.cache_read('E', 0, 'local')", "D[vi, vj] = B_local[12 - vi, vj + 1]",
        "E[vi, vj] = B_local[vi, vj]");
  gives(readers, "sch.cache_read('D', 'B', 'local', consumer_blocks=['E', 'D'])",
        "for ax0, ax1 in T.grid(13, 7):", "E[vi, vj] = B_local[vi, vj] - C[vi, vj]");
  gives(readers, "sch.cache_read('E', 0, 'local', consumer_blocks=['D'])",
        "for ax0, ax1 in T.grid(13, 5):", "E[vi, vj] = B[vi, vj] - C[vi, vj]");
  gives(readers, "b = sch.get_block('E')\nsch.cache_read('E', 1, 'local', consumer_blocks=[b])",
        "T.writes(C_local[", "E[vi, vj] = B[vi, vj] - C_local[vi, vj]");
  // In the nest that writes it, a copy is made in each iteration of the common loop.
  gives(readers, "sch.cache_read('C', 'B', 'local')",
        "for ax0, ax1 in T.grid(1, 7):", "C[vi, vj] = B_local[vi, 6 - vj]");
  // The iterations make the whole copy together, which a block after the nest reads.
  gives(readers, "sch.cache_read('E', 'B', 'local', consumer_blocks=['C', 'E'])",
        "for ax0, ax1 in T.grid(1, 7):", "E[vi, vj] = B_local[vi, vj]");
  refused(readers, "i, j = sch.get_loops('C')\nsch.parallel(i)\nsch.cache_read('C', 'B', 'local')",
          "loop iterations there do not run in order");
  refused(readers, "sch.cache_read('E', 'B', 'local', consumer_blocks=['B'])", "does not read 'B'");
  refused(readers, "sch.cache_read('E', 'B', 'local', consumer_blocks=['X'])", "no block 'X'");
  refused(readers, "sch.cache_read('E', 'B', 'local', consumer_blocks=[3])",
          "blocks or their names");
}

static void test_cached_writes(void **state) {
  (void)state;
  gives(readers, "sch.cache_write('B', 0, 'local', consumer_blocks=['E'])",
        "C[vi, vj] = B[vi, 6 - vj]", "E[vi, vj] = B_local[vi, vj] - C[vi, vj]");
  gives(readers, "sch.cache_write('B', 0, 'local', consumer_blocks=['E', 'C'])",
        "D[vi, vj] = B[12 - vi, vj + 1]", "E[vi, vj] = B_local[vi, vj]");
  gives(readers, "sch.cache_write('B', 0, 'local', consumer_blocks=['C', 'D', 'E'])",
        "E[vi, vj] = B_local[vi, vj]", "B[v0, v1] = B_local[v0, v1]");
  refused(HEAD "def f(A: T.Buffer((5,)), B: T.Buffer((5,))):\n"
               "    for i in range(5):\n"
               "        with T.block('B'):\n"
               "            vi = T.axis.spatial(5, i)\n"
               "            B[vi] = A[vi]\n"
               "    for i in range(5):\n"
               "        with T.block('A'):\n"
               "            vi = T.axis.spatial(5, i)\n"
               "            A[vi] = T.float32(2)\n",
          "sch.cache_write('A', 0, 'local', consumer_blocks=['B'])",
          "block 'B' reads 'A' before block 'A' writes it");
}

// D reads two rows of what B writes.
static const char *const windows =
    HEAD "def f(A: T.Buffer((13, 7), 'float32'), D: T.Buffer((12, 7), 'float32')):\n"
         "    B = T.alloc_buffer((13, 7))\n"
         "    for i, j in T.grid(13, 7):\n"
         "        with T.block('B'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            B[vi, vj] = A[vi, vj] * T.float32(2)\n"
         "    for i, j in T.grid(12, 7):\n"
         "        with T.block('D'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            D[vi, vj] = B[vi, vj] + B[vi + 1, vj]\n";

static void test_moves_below_parallel_loops(void **state) {
  (void)state;
  const char *head = "i, j = sch.get_loops('D')\nsch.%s(i)\nsch.compute_at('B', j)\n";
  Context *context = context_new();
  made(windows, arena_printf(&context->arena, head, "parallel"));
  made(windows, arena_printf(&context->arena, head, "unroll"));
  refused(windows, arena_printf(&context->arena, head, "vectorize"),
          "the iterations of loop 'i', which is vectorized, would not be proved to be independent");
  made(chain, "j, i = sch.get_loops('D')\nsch.vectorize(j)\nsch.compute_at('B', i)");
  refused(chain, "j, i = sch.get_loops('D')\nsch.vectorize(i)\nsch.compute_at('B', i)",
          "that loop is vectorized");
  context_free(context);
}

static void test_last_tiles(void **state) {
  (void)state;
  gives(chain, LOOPS "a, b = sch.split(i, [None, 4])\nsch.blockize(b)",
        "T.reads(A[vi_o * 4:vi_o * 4 + T.min(13 - vi_o * 4, 4), 0:7])", "T.where(");
  gives(chain, LOOPS "a, b = sch.split(j, [None, 7])\nsch.blockize(b)", "T.reads(A[vi, 0:7])", "");
}

// Checks the numbers of the first access of the block; a stride of -1 is not constant.
static void costs(const char *steps, const char *block, int64_t stride, int lines, int width) {
  Context *context = context_new();
  Schedule *schedule = check_made(context, chain, steps);
  AccessCostArray all = schedule_access_costs(schedule);
  int i = 0;
  while (i < all.count && strcmp(all.items[i].block, block) != 0) i++;
  assert_true(i < all.count);
  const AccessCost *cost = &all.items[i];
  if (cost->lines != lines || cost->width != width ||
      (cost->has_stride ? cost->stride : -1) != stride)
    fprintf(stderr, "%s: %lld %d %d\n", cost->element, (long long)cost->stride, cost->lines,
            cost->width);
  assert_int_equal(cost->has_stride ? cost->stride : -1, stride);
  assert_int_equal(cost->lines, lines);
  assert_int_equal(cost->width, width);
  bool jumps = cost->jump[0] != NULL;
  assert_int_equal(jumps, stride != 1);
  if (jumps) assert_string_equal(cost->jump_place[0], "0");
  context_free(context);
}

static void test_access_costs(void **state) {
  (void)state;
  costs("", "B", 1, 1, 4); // B[vi, vj] in j of 7: elements 0 to 6
  costs("", "D", 1, 1, 8); // D[vj, vi] in i of 13
  costs("j, i = sch.get_loops('D')\nsch.reorder(i, j)", "D", 13, 5, 1);
  costs("j, i = sch.get_loops('D')\nsch.vectorize(j)", "D", 13, 5, 1);
  costs(LOOPS "sch.fuse(i, j)", "B", 1, 6, 16); // 91 elements
  costs(LOOPS "sch.reorder(j, i)", "B", 7, 6, 1);
  costs("sch.transform_layout('B', 'B', lambda i, j: [j, i // 4, i % 4], rewrite_loops=True)\n"
        "a, b, c = sch.get_loops('B')\nsch.fuse(b, c)",
        "B", 1, 1, 16);
  costs("j, i = sch.get_loops('D')\na, b = sch.split(i, [None, 4])\nsch.parallel(a)", "D", 1, 1, 4);
  // In i of 13, elements of [i // 4, j, i % 4] are contiguous in groups of four.
  costs("sch.transform_layout('D', 'B', lambda i, j: [i // 4, j, i % 4])", "D", 1, 1, 8);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_unit_iters),
      cmocka_unit_test(test_partitions),
      cmocka_unit_test(test_partition_of_views),
      cmocka_unit_test(test_refused_partitions),
      cmocka_unit_test(test_conditions_of_parts),
      cmocka_unit_test(test_index),
      cmocka_unit_test(test_cached_reads),
      cmocka_unit_test(test_cached_writes),
      cmocka_unit_test(test_last_tiles),
      cmocka_unit_test(test_access_costs),
      cmocka_unit_test(test_moves_below_parallel_loops),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
