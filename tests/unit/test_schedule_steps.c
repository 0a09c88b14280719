// SPDX-License-Identifier: Apache-2.0
// Steps that change what blocks and buffers state, and steps that choose at random.
#include "schedule_check.h"

#define HEAD "from pleat.script import tir as T\n@T.prim_func\n"

static const char *const chain =
    HEAD "def f(A: T.Buffer((13, 7), 'float32'), D: T.Buffer((7, 13), 'float32')):\n"
         "    B = T.alloc_buffer((13, 7))\n"
         "    for i, j in T.grid(13, 7):\n"
         "        with T.block('B'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            B[vi, vj] = A[vi, vj] * T.float32(2)\n"
         "    for j, i in T.grid(7, 13):\n"
         "        with T.block('D'):\n"
         "            vj, vi = T.axis.remap('SS', [j, i])\n"
         "            D[vj, vi] = B[vi, vj] + T.float32(1)\n";

// Like made, and the program has the text afterwards.
static void gives(const char *program, const char *steps, const char *text) {
  Context *context = context_new();
  Schedule *schedule = check_made(context, program, steps);
  const char *after = check_text(context, schedule_func(schedule));
  if (!strstr(after, text)) fprintf(stderr, "wanted: %s\n%s\n", text, after);
  assert_non_null(strstr(after, text));
  context_free(context);
}

static void test_block_variables(void **state) {
  (void)state;
  gives(chain, "sch.reorder_block_iter_var('D', new_order=[1, 0])",
        "vi, vj = T.axis.remap(\"SS\", [i, j])");
  made(chain, "sch.reorder_block_iter_var('D', [0, 1])");
  const char *message = "each of the numbers 0 to 1 of the variables of block 'D' once";
  refused(chain, "sch.reorder_block_iter_var('D', [0, 0])", message);
  refused(chain, "sch.reorder_block_iter_var('D', [0])", message);
  refused(chain, "sch.reorder_block_iter_var('D', [2, 0])", message);
}

static void test_alignment(void **state) {
  (void)state;
  gives(chain, "sch.storage_align('B', 0, axis=0, factor=32, offset=1)",
        "{\"buffer_dim_align\": [[0, 0, 32, 1]]}");
  gives(chain,
        "sch.storage_align('B', 0, 0, 32, 1)\nsch.storage_align('B', 0, -1, 4, 0)\n"
        "sch.storage_align('B', 0, 0, 8, 5)",
        "{\"buffer_dim_align\": [[0, 0, 8, 5], [0, 1, 4, 0]]}");
  refused(chain, "sch.storage_align('D', 0, 0, 32, 1)", "'D' is a parameter");
  refused(chain, "sch.storage_align('B', 0, 2, 32, 1)", "there is no axis 2");
  refused(chain, "sch.storage_align('B', 0, 0, 0, 1)", "the factor 0 is not positive");
  refused(chain, "sch.storage_align('B', 1, 0, 4, 1)", "there is no number 1");
}

static void test_types(void **state) {
  (void)state;
  gives(chain, "sch.unsafe_set_dtype('B', 0, 'float64')",
        "B = T.alloc_buffer((13, 7), \"float64\")");
  made(chain, "sch.unsafe_set_dtype('B', 0, 'float32')");
  refused(chain, "sch.unsafe_set_dtype('B', 0, 'float')", "'float' is not a type");
  refused(chain, "sch.unsafe_set_dtype('D', 0, 'float16')", "'D' is a parameter");
}

static void test_stated_regions(void **state) {
  (void)state;
  gives(chain,
        "sch.annotate_buffer_access('D', 0, 'read', lambda vj, vi: [vi - 1, vi + 2, vj, vj + 1])",
        "T.reads(B[vi - 1:vi - 1 + 3, vj])");
  refused(chain, "sch.annotate_buffer_access('D', 0, 'read', lambda vj, vi: [vi, vi, vj, vj + 1])",
          "not proved to cover what block 'D' reads of 'B'");
  refused(chain, "sch.annotate_buffer_access('D', 0, 'write', lambda vj, vi: [vj, vi])",
          "begin and end of each of its 2 axes");
  refused(chain, "sch.annotate_buffer_access('D', 0, 'r', lambda a, b: [a, a, b, b])",
          "\"read\" or \"write\"");
}

static const char *trace_of(Context *context, const char *steps, uint64_t seed) {
  Schedule *schedule = schedule_new(context, check_parse(context, chain));
  schedule_seed(schedule, seed);
  assert_true(check_replay(schedule, steps));
  return schedule_trace(schedule);
}

static void test_choices(void **state) {
  (void)state;
  made(chain, "n = sch.sample_categorical(candidates=[2, 4, 8], probs=[1, 0.5, 2])\n"
              "i, j = sch.get_loops('B')\n"
              "sch.split(i, factors=[None, n])\n"
              "sch.enter_postproc()\n"
              "sch.unroll(j)\n");
  gives(chain,
        "n = sch.sample_categorical([2, 4], [1, 1], decision=1)\n"
        "i, j = sch.get_loops('B')\n"
        "sch.split(i, factors=[None, n])\n",
        "in T.grid(4, 4, 7)");
  made(chain, "i, j = sch.get_loops('B')\n"
              "f = sch.sample_perfect_tile(i, n=3)\n"
              "sch.split(i, factors=f)\n"
              "a, b = sch.sample_perfect_tile(j, n=2, max_innermost_factor=2)\n"
              "sch.split(j, factors=[a, b])\n");
  gives(chain,
        "i, j = sch.get_loops('B')\n"
        "p, q, r = sch.sample_perfect_tile(i, n=3, decision=[4, 13, 5])\n"
        "a, b, c = sch.split(i, factors=[p, q, r])\n"
        "u, v = sch.sample_partitioned_tile(j, n=2, partition_pos=1, innerpart_factor=7)\n"
        "sch.split(j, factors=[u, v])\n",
        "in T.grid(1, 1, 13, 1, 7)");
  refused(chain, "sch.sample_categorical([2, 4], [1])", "each has a probability");
  refused(chain, "sch.sample_categorical([2, 4], [0, 0])", "each has a probability");
  refused(chain, "sch.sample_categorical([2, 4], [0, 1], decision=2)",
          "none of the numbers 0 to 1");
  refused(chain, "i, j = sch.get_loops('B')\nsch.sample_perfect_tile(i, n=0)", "1 to 16 factors");
  refused(chain, "i, j = sch.get_loops('B')\nsch.sample_perfect_tile(i, n=2, decision=[13])",
          "2 positive factors");
  refused(chain, "i, j = sch.get_loops('B')\nsch.sample_partitioned_tile(i, n=2, partition_pos=2)",
          "partition_pos is the number of a factor");
}

static void test_open_tiles(void **state) {
  (void)state;
  Context *context = context_new();
  const char *program = HEAD "def f(a: T.handle, b: T.handle):\n"
                             "    n = T.int32()\n"
                             "    A = T.match_buffer(a, (n,))\n"
                             "    B = T.match_buffer(b, (n,))\n"
                             "    for i in range(n):\n"
                             "        with T.block('B'):\n"
                             "            vi = T.axis.spatial(n, i)\n"
                             "            B[vi] = A[vi] + T.float32(1)\n";
  Schedule *schedule = schedule_new(context, check_parse(context, program));
  assert_true(check_replay(schedule, "i, = sch.get_loops('B')\n"
                                     "f = sch.sample_perfect_tile(i, n=2)\n"
                                     "sch.split(i, factors=f)\n"));
  assert_non_null(strstr(schedule_trace(schedule), "decision=[-1, 1]"));
  context_free(context);
}

static void test_places(void **state) {
  (void)state;
  made(chain, "l = sch.sample_compute_location('B', decision=1)\nsch.compute_at('B', l)");
  made(chain, "l = sch.sample_compute_location('B', decision=9)\nsch.compute_at('B', l)");
  made(chain, "l = sch.sample_compute_location('B', decision=-2)\nsch.compute_at('B', l)");
  made(chain, "l = sch.sample_compute_location('D', decision=0)\nsch.compute_at('D', l)");
  refused(chain,
          "l = sch.sample_compute_location('D', decision=-1)\nsch.split(l, factors=[None, 2])",
          "no loop was sampled");
}

static void test_seeds(void **state) {
  (void)state;
  const char *steps = "i, j = sch.get_loops('D')\n"
                      "n = sch.sample_categorical([1, 2, 3, 4, 5, 6], [1, 1, 1, 1, 1, 0])\n"
                      "f = sch.sample_perfect_tile(j, n=4)\n"
                      "l = sch.sample_compute_location('B')\n";
  Context *context = context_new();
  const char *first = trace_of(context, steps, 0);
  assert_string_equal(first, trace_of(context, steps, 0));
  bool differs = false;
  for (uint64_t seed = 1; seed < 40; seed++) {
    const char *other = trace_of(context, steps, seed);
    differs |= strcmp(first, other) != 0;
    assert_null(strstr(other, "decision=5"));
    assert_string_equal(other, trace_of(context, other, 99));
  }
  assert_true(differs);
  context_free(context);
}

static void test_output_blocks(void **state) {
  (void)state;
  Context *context = context_new();
  Schedule *schedule = check_made(context, chain, "b, = sch.get_output_blocks('root')");
  assert_string_equal(schedule_last_result(schedule, 0), "D");
  assert_null(schedule_last_result(schedule, 1));
  context_free(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_block_variables), cmocka_unit_test(test_alignment),
      cmocka_unit_test(test_types),           cmocka_unit_test(test_stated_regions),
      cmocka_unit_test(test_choices),         cmocka_unit_test(test_open_tiles),
      cmocka_unit_test(test_places),          cmocka_unit_test(test_seeds),
      cmocka_unit_test(test_output_blocks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
