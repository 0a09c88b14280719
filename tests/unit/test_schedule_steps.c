// SPDX-License-Identifier: Apache-2.0
// Steps that change what blocks and buffers state, and steps that choose at random.
#include "schedule_chain.h"

static void test_block_variables(void **state) {
  (void)state;
  made_with(chain, "sch.reorder_block_iter_var('D', new_order=[1, 0])",
            "vi, vj = T.axis.remap(\"SS\", [i, j])");
  made(chain, "sch.reorder_block_iter_var('D', [0, 1])");
  const char *message = "each of the numbers 0 to 1 of the variables of block 'D' once";
  refused(chain, "sch.reorder_block_iter_var('D', [0, 0])", message);
  refused(chain, "sch.reorder_block_iter_var('D', [0])", message);
  refused(chain, "sch.reorder_block_iter_var('D', [2, 0])", message);
}

static void test_alignment(void **state) {
  (void)state;
  made_with(chain, "sch.storage_align('B', 0, axis=0, factor=32, offset=1)",
            "{\"buffer_dim_align\": [[0, 0, 32, 1]]}");
  made_with(chain,
            "sch.storage_align('B', 0, 0, 32, 1)\nsch.storage_align('B', 0, -1, 4, 0)\n"
            "sch.storage_align('B', 0, 0, 8, 5)",
            "{\"buffer_dim_align\": [[0, 0, 8, 5], [0, 1, 4, 0]]}");
  refused(chain, "sch.storage_align('D', 0, 0, 32, 1)", "'D' is a parameter");
  refused(chain, "sch.storage_align('B', 0, 2, 32, 1)", "there is no axis 2");
  refused(chain, "sch.storage_align('B', 0, 0, 0, 1)", "the factor 0 is not positive");
  refused(chain, "sch.storage_align('B', 1, 0, 4, 1)", "there is no number 1");
}

static void test_dictionaries(void **state) {
  (void)state;
  made_with(chain,
            "i, j = sch.get_loops('B')\nsch.annotate(i, 'tile', {'sizes': [4, 2], 'by': 'row'})",
            "annotations={\"tile\": {\"sizes\": [4, 2], \"by\": \"row\"}}");
  made_with(chain, "sch.annotate('B', 'tile', {})", "{\"tile\": {}}");
}

static void test_types(void **state) {
  (void)state;
  made_with(chain, "sch.unsafe_set_dtype('B', 0, 'float64')",
            "B = T.alloc_buffer((13, 7), \"float64\")");
  made(chain, "sch.unsafe_set_dtype('B', 0, 'float32')");
  refused(chain, "sch.unsafe_set_dtype('B', 0, 'float')", "'float' is not a type");
  refused(chain, "sch.unsafe_set_dtype('D', 0, 'float16')", "'D' is a parameter");
}

static void test_stated_regions(void **state) {
  (void)state;
  made_with(
      chain,
      "sch.annotate_buffer_access('D', 0, 'read', lambda vj, vi: [vi - 1, vi + 2, vj, vj + 1])",
      "T.reads(B[vi - 1:vi - 1 + 3, vj])");
  refused(chain, "sch.annotate_buffer_access('D', 0, 'read', lambda vj, vi: [vi, vi, vj, vj + 1])",
          "not proved to cover what block 'D' reads of 'B'");
  refused(chain, "sch.annotate_buffer_access('D', 0, 'write', lambda vj, vi: [vj, vi])",
          "begin and end of each of its 2 axes");
  refused(chain, "sch.annotate_buffer_access('D', 0, 'r', lambda a, b: [a, a, b, b])",
          "\"read\" or \"write\"");
}

// The body of a block does not show the elements that it accesses through a data pointer.
static void test_passed_pointers(void **state) {
  (void)state;
  Context *context = context_new();
  const char *program =
      HEAD "def f(t: T.Buffer((16,), 'int8'), x: T.Buffer((7,), 'float32'),\n"
           "      y: T.Buffer((7,), 'float32')):\n"
           "    e = T.alloc_buffer((7,))\n"
           "    for i in range(7):\n"
           "        with T.block('e'):\n"
           "            v = T.axis.spatial(7, i)\n"
           "            e[v] = T.exp(x[v])\n"
           "    for i in range(7):\n"
           "        with T.block('y'):\n"
           "            v = T.axis.spatial(7, i)\n"
           "            T.reads(t[0:16], e[v])\n"
           "            T.writes(y[v])\n"
           "            T.tvm_access_ptr(T.type_annotation('int8'), t.data, 0, 16, 1)\n"
           "            y[v] = e[v] * T.float32(2)\n";
  Schedule *schedule = schedule_new(context, check_parse(context, program));
  assert_true(check_replay(schedule, "sch.compute_inline('e')\n"));
  const char *after = check_text(context, schedule_func(schedule));
  assert_non_null(strstr(after, "T.reads(t[0:16], x[v])"));
  context_free(context);
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
  made_with(chain,
            "n = sch.sample_categorical([2, 4], [1, 1], decision=1)\n"
            "i, j = sch.get_loops('B')\n"
            "sch.split(i, factors=[None, n])\n",
            "in T.grid(4, 4, 7)");
  made(chain, "i, j = sch.get_loops('B')\n"
              "f = sch.sample_perfect_tile(i, n=3)\n"
              "sch.split(i, factors=f)\n"
              "a, b = sch.sample_perfect_tile(j, n=2, max_innermost_factor=2)\n"
              "sch.split(j, factors=[a, b])\n");
  made_with(chain,
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

// ---- Copies in the indices of a block ----------------------------------------------------------

static const char *const conv =
    HEAD "def f(X: T.Buffer((2, 11, 11, 3), 'float32'), W: T.Buffer((3, 3, 3, 5), 'float32'),\n"
         "      Y: T.Buffer((2, 5, 5, 5), 'float32')):\n"
         "    for n, h, w, o, y, x, c in T.grid(2, 5, 5, 5, 3, 3, 3):\n"
         "        with T.block('Y'):\n"
         "            vn, vh, vw, vo, vy, vx, vc = T.axis.remap('SSSSRRR', [n, h, w, o, y, x, c])\n"
         "            with T.init():\n"
         "                Y[vn, vh, vw, vo] = T.float32(0)\n"
         "            Y[vn, vh, vw, vo] = Y[vn, vh, vw, vo] + X[vn, vh * 2 + vy, vw * 2 + vx, vo "
         "// 5 * 3 + vc] * W[vy, vx, vc, vo]\n";

static void test_reindex(void **state) {
  (void)state;
  made_with(conv, "sch.reindex('Y', ('read', 0))", "X_reindex = T.alloc_buffer((2, 5, 5, 3, 3, 3)");
  made_with(conv, "sch.reindex('Y', 'W')", "W_reindex[vo, vy, vx, vc] = W[vy, vx, vc, vo]");
  made_with(conv, "sch.reindex('Y', ('write', 0))",
            "Y[vn, vh, vw, vo] = Y_reindex[vn, vh, vw, vo]");
  made(conv,
       "sch.reindex('Y', 'W')\nsch.reindex('Y', 'Y')\nb = sch.reindex('Y', 'X')\n"
       "sch.transform_block_layout(b, lambda n, h, w, y, x, c: [n, h, w * 3 + y, x * 3 + c])\n"
       "l = sch.get_loops('Y')\na, c = sch.split(l[1], factors=[None, 2])\n"
       "sch.reindex('Y', 'Y_reindex')");
  made(chain, "sch.reindex('D', 'B')\nsch.reindex('B', 'B')\nsch.reindex('D', 'D')");
}

static void test_reindexed_caches(void **state) {
  (void)state;
  made_with(chain, "sch.reindex_cache_read('D', 0, 'local', lambda j, i: [i // 4, j, i % 4])",
            "B_local[vi // 4, vj, vi % 4] = B[vi, vj]");
  made_with(chain, "sch.reindex_cache_write('B', 0, 'shared', lambda i, j: [j, i])",
            "B[vi, vj] = B_shared[vj, vi]");
  made(conv, "sch.reindex_cache_write('Y', 0, 'global', lambda n, h, w, o, y, x, c: "
             "[n * 5 + h, w * 5 + o])\n"
             "sch.reindex_cache_read('Y', 0, 'local', lambda n, h, w, o, y, x, c: "
             "[h, n, x * 3 + c, w, y])\n");
  refused(chain, "sch.reindex_cache_read('D', 0, 'local', lambda j, i: [i // 4, j])",
          "an index of its own");
  refused(chain, "sch.reindex_cache_read('D', 0, 'local', lambda j, i: [j])",
          "an index of its own");
  refused(chain, "sch.reindex_cache_read('D', 0, 'shred', lambda j, i: [i, j])", "did you mean");
}

static void test_reindexed_init(void **state) {
  (void)state;
  const char *biased = HEAD "def f(A: T.Buffer((9, 5), 'float32'), b: T.Buffer((9,), 'float32'),\n"
                            "      S: T.Buffer((9,), 'float32')):\n"
                            "    for i, k in T.grid(9, 5):\n"
                            "        with T.block('S'):\n"
                            "            vi, vk = T.axis.remap('SR', [i, k])\n"
                            "            with T.init():\n"
                            "                S[vi] = b[vi]\n"
                            "            S[vi] = S[vi] + A[vi, vk]\n";
  made(biased, "sch.reindex('S', 'b')\nsch.reindex('S', 'A')");
  refused(biased, "sch.reindex_cache_read('S', 0, 'local', lambda i, k: [k, i])",
          "the init of block 'S' uses variable 'vk' of its reduction");
}

static void test_reindex_refusals(void **state) {
  (void)state;
  const char *guarded = HEAD "def f(A: T.Buffer((9,), 'float32'), B: T.Buffer((10,), 'float32'),\n"
                             "      C: T.Buffer((9,), 'float32')):\n"
                             "    for i in range(10):\n"
                             "        with T.block('B'):\n"
                             "            vi = T.axis.spatial(10, i)\n"
                             "            B[vi] = T.if_then_else(vi > 0, A[vi - 1], T.float32(0))\n"
                             "    for i in range(9):\n"
                             "        with T.block('C'):\n"
                             "            vi = T.axis.spatial(9, i)\n"
                             "            C[vi] = A[vi] + A[8 - vi]\n"
                             "    for i in range(9):\n"
                             "        with T.block('D'):\n"
                             "            vi = T.axis.spatial(9, i)\n"
                             "            C[vi] = C[vi] + T.float32(1)\n"
                             "    for i in range(9):\n"
                             "        with T.block('E'):\n"
                             "            vi = T.axis.spatial(9, i)\n"
                             "            C[vi // 2] = B[vi]\n"
                             "    for i in range(9):\n"
                             "        with T.block('F'):\n"
                             "            vi = T.axis.spatial(9, i)\n"
                             "            T.where(A[i] > T.float32(0))\n"
                             "            C[vi] = B[vi]\n";
  refused(guarded, "sch.reindex('B', 'A')", "axis 0 of 'A' is not proved to stay in its extent");
  refused(guarded, "sch.reindex('C', 'A')", "does not access 'A' at one index only");
  refused(guarded, "sch.reindex('D', 'C')", "without reading what was there");
  refused(guarded, "sch.reindex('E', 'C')", "not proved to write different elements of 'C'");
  refused(guarded, "sch.reindex('F', 'C')", "not proved to write 'C' in all iterations");
  made(guarded, "sch.reindex('B', 'B')\nsch.reindex('E', 'B')\nsch.reindex('F', 'B')");
  refused(HEAD "def f(A: T.Buffer((9, 5), 'float32')):\n"
               "    for i, j in T.grid(8, 5):\n"
               "        with T.block('A'):\n"
               "            vi, vj = T.axis.remap('SS', [i, j])\n"
               "            A[vi + 1, vj] = A[vi, vj] + T.float32(1)\n",
          "sch.reindex('A', ('read', 0))", "at one index only");
}

// ---- Blocks around blocks --------------------------------------------------------------------

static const char *const matmul =
    HEAD "def f(A: T.Buffer((13, 12), 'float32'), B: T.Buffer((12, 8), 'float32'),\n"
         "      C: T.Buffer((13, 8), 'float32')):\n"
         "    for i, j, k in T.grid(13, 8, 12):\n"
         "        with T.block('C'):\n"
         "            vi, vj, vk = T.axis.remap('SSR', [i, j, k])\n"
         "            with T.init():\n"
         "                C[vi, vj] = T.float32(3)\n"
         "            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]\n";

#define TILES                                                                                      \
  "i, j, k = sch.get_loops('C')\n"                                                                 \
  "io, ii = sch.split(i, factors=[None, 4])\n"                                                     \
  "jo, ji = sch.split(j, factors=[None, 4])\n"                                                     \
  "ko, ki = sch.split(k, factors=[None, 3])\n"                                                     \
  "sch.reorder(io, jo, ko, ii, ji, ki)\n"

static void test_blockize(void **state) {
  (void)state;
  made_with(chain, "i, j = sch.get_loops('B')\nsch.blockize(j)", "with T.block(\"B_o\"):");
  made_with(chain, "i, j = sch.get_loops('B')\nb = sch.blockize(i)\nl = sch.add_unit_loop(b)",
            "T.reads(A[0:13, 0:7])");
  made_with(matmul, TILES "b = sch.blockize(ii)\nsch.decompose_reduction(b, ko)",
            "with T.block(\"C_o_init\"):");
  made_with(matmul, TILES "sch.blockize(ii)", "T.where(vi_o * 4 + i_1 < 13)");
  made(matmul, "i, j, k = sch.get_loops('C')\nsch.blockize(k)");
  made(matmul, "i, j, k = sch.get_loops('C')\nsch.blockize(j)");
  made(matmul, "i, j, k = sch.get_loops('C')\nsch.reorder(k, i, j)\nsch.blockize(i)");
  made(matmul, "i, j, k = sch.get_loops('C')\nsch.blockize(i)");
  made(matmul, TILES "b = sch.blockize(ki)\nl = sch.get_loops(b)\nsch.parallel(l[0])");
  made(matmul, TILES "b = sch.blockize(ii)\n"
                     "sch.transform_layout('C', 'A', lambda i, k: [k, i])");
  made_with(
      chain,
      "i, j = sch.get_loops('B')\nu = sch.add_unit_loop(i)\na, b = sch.split(i, factors=[1, 13])\n"
      "sch.blockize(b, preserve_unit_iters=False)",
      "vi_o = T.axis.spatial(1, 0)");
  made_with(chain,
            "i, j = sch.get_loops('B')\na, b = sch.split(i, factors=[1, 13])\nsch.blockize(b)",
            "vi_o = T.axis.spatial(1, i_0)");
}

// Two nests in one loop, of which the second ends where the first one's tiles do.
static const char *const pair =
    HEAD "def f(A: T.Buffer((12, 7), 'float32'), B: T.Buffer((12, 7), 'float32'),\n"
         "      C: T.Buffer((12,), 'float32')):\n"
         "    for m, io in T.grid(2, 3):\n"
         "        for ii, j in T.grid(4, 7):\n"
         "            with T.block('B'):\n"
         "                vi = T.axis.spatial(12, io * 4 + ii)\n"
         "                vj = T.axis.spatial(7, j)\n"
         "                B[vi, vj] = A[vi, vj] * T.float32(2)\n"
         "        for ii, k in T.grid(4, 7):\n"
         "            with T.block('C'):\n"
         "                vi = T.axis.spatial(12, io * 4 + ii)\n"
         "                vk = T.axis.reduce(7, k)\n"
         "                with T.init():\n"
         "                    C[vi] = T.float32(0)\n"
         "                C[vi] = C[vi] + B[vi, vk]\n"
         "        for j in range(7):\n"
         "            with T.block('A'):\n"
         "                vi, vj = T.axis.remap('SS', [io, j])\n"
         "                A[vi, vj] = B[vi, vj]\n";

static void test_blockize_lists(void **state) {
  (void)state;
  made_with(pair, "b = sch.blockize(['B', 'C'])", "with T.block(\"outer_B_C_\"):");
  made_with(pair,
            "c = sch.get_block('C')\nb = sch.blockize([c, 'A', 'B'], preserve_unit_iters=False)\n"
            "l = sch.get_loops(b)",
            "with T.block(\"outer_B_C_A_\"):");
  made(pair, "sch.blockize(['B'])");
  refused(pair, "sch.blockize(['C'])", "a loop around the blocks belongs to the reduction");
  made_with(pair, "sch.blockize(['B', 'C'])", "vi_o = T.axis.spatial(3, io)");
  made(pair, "a = sch.blockize(['B'])\nb = sch.blockize([a, 'C'])");
  refused(pair, "sch.blockize([])", "the list has no block");
  refused(pair, "sch.blockize(['B', 'A'])", "do not follow one another");
  refused(pair, "sch.blockize(['B', 'B'])", "do not follow one another");
  refused(pair, "sch.blockize(['B', 'D'])", "the function has no block 'D'");
  refused(pair,
          "m, io, ii, k = sch.get_loops('C')\nx, y = sch.split(ii, factors=[None, 2])\n"
          "sch.reorder(k, x)\nsch.blockize([1])",
          "a list has blocks");
}

static void test_blockize_refusals(void **state) {
  (void)state;
  refused(matmul, TILES "b = sch.blockize(ii)\nsch.blockize(jo)", "not a reduction of one term");
  refused(chain,
          "i, j = sch.get_loops('B')\na, b = sch.split(i, factors=[None, 4])\n"
          "sch.reorder(j, b, a)\nsch.blockize(a)",
          "the binding of variable 'vi' of block 'B'");
  refused(chain,
          "i, j = sch.get_loops('B')\nf = sch.fuse(i, j)\n"
          "a, b = sch.split(f, factors=[None, 5])\nsch.blockize(b)",
          "of block 'B' is not");
  refused(HEAD "def f(A: T.Buffer((9, 5), 'float32'), S: T.Buffer((10,), 'float32')):\n"
               "    for i, k in T.grid(9, 5):\n"
               "        with T.block('S'):\n"
               "            vi, vk = T.axis.remap('SR', [i, k])\n"
               "            with T.init():\n"
               "                S[vi] = T.float32(0)\n"
               "            S[vi] = S[vi] + A[vi, vk] * S[vi + 1]\n",
          "i, k = sch.get_loops('S')\nsch.blockize(i)", "not a reduction of one term");
}

// ---- Intrinsics ------------------------------------------------------------------------------

static const char *const product =
    HEAD "def f(A: T.Buffer((2, 12, 8), 'float32'), B: T.Buffer((8, 20), 'float32'),\n"
         "      C: T.Buffer((2, 12, 20), 'float32')):\n"
         "    for b, i, j, k in T.grid(2, 12, 20, 8):\n"
         "        with T.block('C'):\n"
         "            vb, vi, vj, vk = T.axis.remap('SSSR', [b, i, j, k])\n"
         "            with T.init():\n"
         "                C[vb, vi, vj] = T.float32(0)\n"
         "            C[vb, vi, vj] = C[vb, vi, vj] + A[vb, vi, vk] * B[vk, vj]\n";

#define INTRINSIC(NAME, UPDATE, IMPLEMENTATION)                                                    \
  "@T.prim_func\n"                                                                                 \
  "def " NAME "_desc(a: T.handle, b: T.handle, c: T.handle):\n"                                    \
  "    A = T.match_buffer(a, (3, 2), 'float32', offset_factor=1)\n"                                \
  "    B = T.match_buffer(b, (2, 5), 'float32', offset_factor=1)\n"                                \
  "    C = T.match_buffer(c, (3, 5), 'float32', offset_factor=1)\n"                                \
  "    with T.block('root'):\n"                                                                    \
  "        T.reads(C[0:3, 0:5], A[0:3, 0:2], B[0:2, 0:5])\n"                                       \
  "        T.writes(C[0:3, 0:5])\n"                                                                \
  "        for i, j, k in T.grid(3, 5, 2):\n"                                                      \
  "            with T.block('update'):\n"                                                          \
  "                vi, vj, vk = T.axis.remap('SSR', [i, j, k])\n"                                  \
  "                C[vi, vj] = " UPDATE "\n"                                                       \
  "@T.prim_func\n"                                                                                 \
  "def " NAME "_impl(a: T.handle, b: T.handle, c: T.handle):\n"                                    \
  "    sa = T.int32()\n"                                                                           \
  "    A = T.match_buffer(a, (3, 2), 'float32', strides=[sa, 1], offset_factor=1)\n"               \
  "    B = T.match_buffer(b, (2, 5), 'float32', offset_factor=1)\n"                                \
  "    C = T.match_buffer(c, (3, 5), 'float32', offset_factor=1)\n"                                \
  "    with T.block('root'):\n"                                                                    \
  "        T.reads(C[0:3, 0:5], A[0:3, 0:2], B[0:2, 0:5])\n"                                       \
  "        T.writes(C[0:3, 0:5])\n"                                                                \
  "        T.block_attr({'unit': 'mma'})\n" IMPLEMENTATION

#define ROWS                                                                                       \
  "        for k, i in T.grid(2, 3):\n"                                                            \
  "            for j in T.vectorized(5):\n"                                                        \
  "                C[i, j] = C[i, j] + A[i, k] * B[k, j]\n"

#define INNER                                                                                      \
  "b, i, j, k = sch.get_loops('C')\n"                                                              \
  "io, ii = sch.split(i, factors=[None, 3])\n"                                                     \
  "jo, ji = sch.split(j, factors=[None, 5])\n"                                                     \
  "ko, ki = sch.split(k, factors=[None, 2])\n"                                                     \
  "sch.reorder(io, jo, ko, ii, ji, ki)\n"

// Replays the steps on the first program; the others are functions of its module.
static Schedule *replay_with(Context *context, const char *functions, const char *steps,
                             bool *made) {
  PrimFunc *func = check_parse(context, product);
  Schedule *schedule = schedule_new(context, func);
  Module *module = check_module(
      context, arena_printf(&context->arena, "from pleat.script import tir as T\n%s", functions));
  assert_non_null(module);
  schedule_use_module(schedule, module);
  *made = check_replay(schedule, steps);
  if (*made) check_same_meaning(context, func, schedule_func(schedule), true);
  return schedule;
}

static void test_tensorize(void **state) {
  (void)state;
  static const char *const functions = INTRINSIC("mma", "C[vi, vj] + A[vi, vk] * B[vk, vj]", ROWS);
  static const char *const steps[] = {
      INNER "sch.tensorize(ii, 'mma')", INNER "b = sch.blockize(ii)\nsch.tensorize(b, 'mma')",
      INNER "b = sch.blockize(ii)\nsch.decompose_reduction(b, ko)\nsch.tensorize(b, 'mma')\n"
            "sch.parallel(io)"};
  for (int i = 0; i < COUNT_OF(steps); i++) {
    Context *context = context_new();
    bool made;
    Schedule *schedule = replay_with(context, functions, steps[i], &made);
    if (!made) diag_print_all(context, stderr);
    assert_true(made);
    const char *text = check_text(context, schedule_func(schedule));
    assert_non_null(strstr(text, "T.match_buffer(A[vb"));
    assert_non_null(strstr(text, "{\"unit\": \"mma\"}"));
    assert_non_null(strstr(text, "T.vectorized(5)"));
    assert_true(check_replay(schedule_copy(schedule), "sch.get_block('C_o')"));
    context_free(context);
  }
}

static void tensorize_refused(const char *functions, const char *steps, const char *message) {
  Context *context = context_new();
  bool made;
  replay_with(context, functions, steps, &made);
  assert_false(made);
  const char *text = context->diags.items[context->diags.count - 1].message;
  if (!strstr(text, message)) fprintf(stderr, "wanted: %s\n%s\n", message, text);
  assert_non_null(strstr(text, message));
  context_free(context);
}

static void test_tensorize_refusals(void **state) {
  (void)state;
#define GOOD "C[vi, vj] + A[vi, vk] * B[vk, vj]"
  tensorize_refused(INTRINSIC("mma", GOOD, ROWS), INNER "sch.tensorize(ii, 'mmb')",
                    "there is no tensor intrinsic 'mmb'");
  tensorize_refused(INTRINSIC("mma", "C[vi, vj] - A[vi, vk] * B[vk, vj]", ROWS),
                    INNER "sch.tensorize(ii, 'mma')", "does not compute what it describes");
  tensorize_refused(INTRINSIC("mma", GOOD, ROWS), INNER "sch.tensorize(ji, 'mma')",
                    "has another extent than");
  tensorize_refused(INTRINSIC("mma", GOOD, ROWS), "sch.tensorize('C', 'mma')",
                    "is not what intrinsic");
  tensorize_refused(INTRINSIC("mma", GOOD, ROWS),
                    "b, i, j, k = sch.get_loops('C')\n"
                    "io, ii = sch.split(i, factors=[None, 4])\n"
                    "jo, ji = sch.split(j, factors=[None, 5])\n"
                    "ko, ki = sch.split(k, factors=[None, 2])\n"
                    "sch.reorder(io, jo, ko, ii, ji, ki)\n"
                    "sch.tensorize(ii, 'mma')",
                    "has another extent");
  tensorize_refused(INTRINSIC("mma", GOOD, ROWS),
                    INNER "sch.cache_read('C', 1, 'shared')\nsch.tensorize(ii, 'mma')",
                    "is in shared memory and");
}

static void test_added_intrinsics(void **state) {
  (void)state;
  Context *context = context_new();
  Schedule *schedule = schedule_new(context, check_parse(context, product));
  Module *module = check_module(
      context, "from pleat.script import tir as T\n" INTRINSIC(
                   "mma", GOOD,
                   "        T.evaluate(T.call_extern('int32', 'mma', A.data, sa, B.data, "
                   "C.data))\n"));
  PrimFunc *desc = module->funcs.items[0].prim, *impl = module->funcs.items[1].prim;
  assert_true(schedule_add_intrinsic(schedule, "mma", desc, impl)); // a call cannot be compared
  assert_true(check_replay(schedule, INNER "sch.tensorize(ii, 'mma')"));
  assert_true(verify_prim_func(context, schedule_func(schedule), IR_LEVEL_TENSOR));
  assert_false(schedule_add_intrinsic(schedule, "bad", desc, schedule_func(schedule)));
  context_free(context);
}

// ---- Padding -----------------------------------------------------------------------------------

static const char *const padded =
    HEAD "def f(X: T.Buffer((3, 11, 5), 'float32'), Y: T.Buffer((3, 15, 7), 'float32'),\n"
         "      S: T.Buffer((3, 13, 5), 'float32')):\n"
         "    P = T.alloc_buffer((3, 15, 7))\n"
         "    for c, h, w in T.grid(3, 15, 7):\n"
         "        with T.block('P'):\n"
         "            vc, vh, vw = T.axis.remap('SSS', [c, h, w])\n"
         "            P[vc, vh, vw] = T.if_then_else(2 <= vh and vh < 13 and 1 <= vw and vw <= 5 "
         "and (vh + vw) % 7 != 3, X[vc, vh - 2, vw - 1], T.float32(2))\n"
         "    for c, h, w in T.grid(3, 15, 7):\n"
         "        with T.block('Y'):\n"
         "            vc, vh, vw = T.axis.remap('SSS', [c, h, w])\n"
         "            Y[vc, vh, vw] = T.if_then_else(vh < 11, X[vc, vh, vw % 5], vw)\n"
         "    for c, h, w, y, x in T.grid(3, 13, 5, 3, 3):\n"
         "        with T.block('S'):\n"
         "            vc, vh, vw, vy, vx = T.axis.remap('SSSRR', [c, h, w, y, x])\n"
         "            with T.init():\n"
         "                S[vc, vh, vw] = T.float32(0)\n"
         "            S[vc, vh, vw] = S[vc, vh, vw] + P[vc, vh + vy, vw + vx]\n";

static void test_decompose_padding(void **state) {
  (void)state;
  made_with(padded, "c, h, w = sch.get_loops('P')\nsch.decompose_padding('P', c)",
            "in T.grid(3, 11, 5)");
  made_with(padded, "c, h, w = sch.get_loops('P')\nsch.decompose_padding('P', w)",
            "for w in range(5):");
  made(padded, "c, h, w = sch.get_loops('P')\na, b = sch.split(h, factors=[None, 4])\n"
               "k = sch.decompose_padding('P', a)\nl = sch.get_loops(k)\nsch.parallel(l[0])");
  made(padded, "c, h, w = sch.get_loops('P')\nsch.fuse(h, w)\nsch.decompose_padding('P', c)");
  made(padded, "c, h, w, y, x = sch.get_loops('S')\nsch.compute_at('P', h)\n"
               "l = sch.get_loops('P')\nsch.decompose_padding('P', l[2])");
  refused(padded, "c, h, w = sch.get_loops('Y')\nsch.decompose_padding('S', c)",
          "is not around block 'S'");
  refused(padded, "c, h, w, y, x = sch.get_loops('S')\nsch.decompose_padding('S', c)",
          "not one store of an element under a condition");
  made(padded, "c, h, w, y, x = sch.get_loops('S')\nsch.compute_at('P', h)\n"
               "sch.decompose_padding('P', h)");
#define ROW_PAIRS(CONDITION, INDEX)                                                                \
  HEAD "def f(A: T.Buffer((9,), 'float32'), C: T.Buffer((9,), 'float32')):\n"                      \
       "    B = T.alloc_buffer((9,))\n"                                                            \
       "    for i in range(9):\n"                                                                  \
       "        with T.block('B'):\n"                                                              \
       "            vi = T.axis.spatial(9, i)\n"                                                   \
       "            B[vi] = T.if_then_else(" CONDITION ", A[vi], T.float32(0))\n"                  \
       "        with T.block('C'):\n"                                                              \
       "            vi = T.axis.spatial(9, i)\n"                                                   \
       "            C[vi] = B[" INDEX "]\n"
  const char *fill = "i, = sch.get_loops('B')\nsch.decompose_padding('B', i)";
  made(ROW_PAIRS("vi < 7", "vi"), fill);
  refused(ROW_PAIRS("vi < 7", "8 - vi"), fill, "block 'C' below that loop uses 'B' too");
  refused(ROW_PAIRS("A[vi] < T.float32(7)", "vi"), fill, "block 'C' below that loop uses 'B' too");
  refused(ROW_PAIRS("vi < 9", "vi"), fill, "pads nothing: its condition always holds");
  refused(HEAD "def f(A: T.Buffer((9,), 'float32'), B: T.Buffer((5,), 'float32')):\n"
               "    for i in range(9):\n"
               "        with T.block('B'):\n"
               "            vi = T.axis.spatial(9, i)\n"
               "            B[vi // 2] = T.if_then_else(vi % 2 == 0, A[vi], T.float32(0))\n",
          "i, = sch.get_loops('B')\nsch.decompose_padding('B', i)",
          "not proved to write different elements of 'B'");
}

static void test_loops_over_threads_get_other_kinds(void **state) {
  (void)state;
  made_with(matmul, "i, j, k = sch.get_loops('C')\nsch.bind(i, 'blockIdx.x')\nsch.unroll(i)",
            "for i in T.unroll(");
  made_with(matmul, "i, j, k = sch.get_loops('C')\nsch.bind(i, 'threadIdx.x')\nsch.parallel(i)",
            "for i in T.parallel(");
  refused(HEAD "def f(A: T.Buffer((7,), 'float32'), B: T.Buffer((7,), 'float32')):\n"
               "    for t in T.thread_binding(7, thread='threadIdx.x'):\n"
               "        with T.block('B'):\n"
               "            v = T.axis.spatial(7, t)\n"
               "            T.reads(A[v])\n"
               "            T.writes(B[v])\n"
               "            B[v] = A[v]\n"
               "            T.tvm_storage_sync('shared')\n",
          "t, = sch.get_loops('B')\nsch.unroll(t)", "bound to threads that wait for one another");
}

static void test_pad_einsum(void **state) {
  (void)state;
  made_with(matmul, "sch.pad_einsum('C', [4, 5, 5])", "C_pad = T.alloc_buffer((16, 10)");
  made_with(matmul, "sch.pad_einsum('C', [1, 1, 5])",
            "C[vi, vj] = C[vi, vj] + A_pad[vi, vk] * B_pad");
  made(matmul, "sch.pad_einsum('C', [1, 1, 1])");
  made(matmul, "sch.pad_einsum('C', [1, 3, 1])\ni, j, k = sch.get_loops('C')\n"
               "a, b = sch.split(j, factors=[None, 3])\nsch.decompose_reduction('C', k)");
  const char *biased = HEAD "def f(A: T.Buffer((9, 5), 'float32'), b: T.Buffer((9,), 'float32'),\n"
                            "      S: T.Buffer((9, 1), 'float32'), M: T.Buffer((9,), 'float32')):\n"
                            "    for k, i in T.grid(5, 9):\n"
                            "        with T.block('S'):\n"
                            "            vk, vi = T.axis.remap('RS', [k, i])\n"
                            "            with T.init():\n"
                            "                S[vi, 0] = b[vi]\n"
                            "            S[vi, 0] = S[vi, 0] - A[vi, vk] * T.float32(2)\n"
                            "    for i, k in T.grid(9, 5):\n"
                            "        with T.block('M'):\n"
                            "            vi, vk = T.axis.remap('SR', [i, k])\n"
                            "            with T.init():\n"
                            "                M[vi] = T.float32(0)\n"
                            "            M[vi] = M[vi] + (A[vi, vk] + T.float32(1))\n";
  made_with(biased, "sch.pad_einsum('S', [3, 4])", "b_pad = T.alloc_buffer((12,)");
  made(biased, "sch.pad_einsum('M', [2, 1])\nsch.pad_einsum('S', [1, 2])");
  refused(biased, "sch.pad_einsum('M', [1, 2])", "not proved to be 0 where 'vk' is padded");
  refused(biased, "sch.pad_einsum('S', [3])", "has 2 variables, and 1 numbers were given");
  refused(biased, "sch.pad_einsum('S', [3, 0])", "the number for variable 'vi' is not positive");
  refused(biased,
          "k, i = sch.get_loops('S')\nsch.split(i, factors=[None, 3])\n"
          "sch.pad_einsum('S', [3, 2])",
          "each loop is one of its variables");
  refused(HEAD "def f(A: T.Buffer((9, 5), 'int32'), b: T.Buffer((9,), 'int32'),\n"
               "      S: T.Buffer((9,), 'int32')):\n"
               "    for i, k in T.grid(9, 5):\n"
               "        with T.block('S'):\n"
               "            vi, vk = T.axis.remap('SR', [i, k])\n"
               "            with T.init():\n"
               "                S[vi] = 0\n"
               "            S[vi] = S[vi] + A[vi, vk] // b[vi]\n",
          "sch.pad_einsum('S', [2, 1])", "divides by what may be 0 in padding");
  refused(conv, "sch.pad_einsum('Y', [1, 1, 1, 1, 2, 1, 1])", "neither a variable nor a constant");
}

// ---- read_at and write_at -----------------------------------------------------------------------

#define SPLIT_MATMUL(ROWS, COLUMNS, SUM)                                                           \
  "i, j, k = sch.get_loops('C')\na, b = sch.split(i, factors=[None, " #ROWS "])\n"                 \
  "c, d = sch.split(j, factors=[None, " #COLUMNS "])\n"                                            \
  "e, f = sch.split(k, factors=[None, " #SUM "])\nsch.reorder(a, c, e, b, d, f)\n"
#define BIND "sch.bind(a, 'blockIdx.x')\nsch.bind(c, 'threadIdx.x')\n"

static void test_read_at(void **state) {
  (void)state;
  made_with(matmul, "i, j, k = sch.get_loops('C')\nsch.read_at(i, 'C', 0, 'local')",
            "A_local[v0 + ax0, ax1] = A[v0 + ax0, ax1]");
  made_with(matmul,
            SPLIT_MATMUL(4, 3, 2) "r = sch.read_at(e, 'C', 1, 'shared')\n"
                                  "sch.annotate(r, 'late', 1)",
            "T.block_attr({\"auto_copy\": True, \"late\": 1})");
  made(matmul, SPLIT_MATMUL(4, 3, 2) "sch.read_at(e, 'C', 0, 'local')\n"
                                     "sch.read_at(c, 'C', 1, 'local')\n"
                                     "sch.write_at(c, 'C', 0, 'local')");
  made(matmul, SPLIT_MATMUL(4, 3, 5) BIND "sch.read_at(e, 'C', 0, 'shared')");
  made_with(matmul, SPLIT_MATMUL(13, 7, 5) BIND "sch.read_at(e, 'C', 1, 'shared')",
            "B_shared[v0 * 5 + ax0, ax1] = B[v0 * 5 + ax0, ax1]");
  made(padded, "c, h, w, y, x = sch.get_loops('S')\nsch.compute_at('P', h)\n"
               "sch.read_at(h, 'P', 0, 'local')\nsch.read_at(w, 'S', 0, 'local')");
  refused(matmul, "i, j, k = sch.get_loops('C')\nsch.read_at(i, 'C', 2, 'local')",
          "there is no number 2");
  refused(matmul, "i, j, k = sch.get_loops('C')\nsch.read_at(i, 'C', 0, 'nowhere')",
          "'nowhere' is not a memory scope");
  refused(padded, "c, h, w = sch.get_loops('P')\nsch.read_at(c, 'S', 0, 'local')",
          "is not around block 'S'");
  refused(HEAD "def f(A: T.Buffer((9,), 'float32'), C: T.Buffer((9,), 'float32')):\n"
               "    for i in range(9):\n"
               "        with T.block('C'):\n"
               "            v = T.axis.spatial(9, i)\n"
               "            C[v] = A[v]\n"
               "        with T.block('A'):\n"
               "            v = T.axis.spatial(9, i)\n"
               "            A[v] = T.float32(0)\n",
          "i, = sch.get_loops('C')\nsch.read_at(i, 'C', 0, 'local')", "block 'A' writes it there");
}

static void test_write_at(void **state) {
  (void)state;
  made_with(matmul, "i, j, k = sch.get_loops('C')\nsch.write_at(j, 'C', 0, 'local')",
            "C[v0 + ax0, v1 + ax1] = C_local[v0 + ax0, v1 + ax1]");
  made(matmul, SPLIT_MATMUL(4, 3, 2) "sch.write_at(a, 'C', 0, 'shared')");
  made(matmul, SPLIT_MATMUL(13, 7, 5) BIND "sch.write_at(c, 'C', 0, 'shared')");
  made(padded, "c, h, w, y, x = sch.get_loops('S')\nsch.compute_at('P', h)\n"
               "sch.write_at(h, 'S', 0, 'local')");
  refused(padded,
          "c, h, w, y, x = sch.get_loops('S')\nsch.compute_at('P', h)\n"
          "sch.write_at(h, 'P', 0, 'local')",
          "several of its iterations may write the same element");
  refused(matmul, SPLIT_MATMUL(4, 3, 2) "sch.write_at(e, 'C', 0, 'local')",
          "choose a loop outside of them");
  refused(matmul,
          "i, j, k = sch.get_loops('C')\nsch.decompose_reduction('C', k)\n"
          "sch.write_at(k, 'C', 0, 'local')",
          "cannot be copied at loop 'k'");
  refused(HEAD "def f(A: T.Buffer((9,), 'float32'), C: T.Buffer((9,), 'float32')):\n"
               "    for i in range(3):\n"
               "        for j in range(2):\n"
               "            with T.block('C'):\n"
               "                v = T.axis.spatial(9, i * 3 + j)\n"
               "                C[v] = C[v] + A[v]\n",
          "i, j = sch.get_loops('C')\nsch.write_at(i, 'C', 0, 'local')",
          "not proved to read only what they wrote before");
  refused(HEAD "def f(A: T.Buffer((9,), 'float32'), C: T.Buffer((9,), 'float32')):\n"
               "    for i in range(9):\n"
               "        with T.block('C'):\n"
               "            v = T.axis.spatial(9, i)\n"
               "            T.where(A[i] > T.float32(0))\n"
               "            C[v] = A[v]\n",
          "i, = sch.get_loops('C')\nsch.write_at(i, 'C', 0, 'local')",
          "not proved to be a full box");
}

// Copies hold the elements that a predicate leaves in, and are made only where there are some.
static void test_write_at_predicates(void **state) {
  (void)state;
#define UNDER(loops, domain, binding, where)                                                       \
  HEAD "def f(A: T.Buffer((20,), 'float32'), C: T.Buffer((20,), 'float32')):\n"                    \
       "    for i, j in T.grid(" loops "):\n"                                                      \
       "        with T.block('C'):\n"                                                              \
       "            v = T.axis.spatial(" domain ", " binding ")\n"                                 \
       "            T.where(" where ")\n"                                                          \
       "            C[v] = A[v]\n"
  const char *steps = "i, j = sch.get_loops('C')\nsch.write_at(i, 'C', 0, 'local')";
  made_with(UNDER("7, 4", "20", "i * 4 + j", "i * 4 + j < 20"), steps, "if v0 * 4 + ax0 < 20");
  refused(UNDER("5, 4", "20", "i * 4 + j", "i * 4 + j < 5"), steps, "not proved to be a full box");
  // The index is i * 4 + j where the predicate holds: the last iteration has two of four elements.
  refused(UNDER("5, 4", "40", "(i * 4 + j) // 10 * 20 + i * 4 + j", "i * 4 + j < 10"), steps,
          "not proved to be a full box");
  made_with(UNDER("5, 4", "40", "i // 2 * 20 + i * 4 + j", "i < 2"), steps,
            "T.where(i < 2)");
  refused(UNDER("5, 4", "20", "i * 4 + j", "i * 4 + j < 20 or i == j"), steps,
          "cannot be copied at loop 'i'");
#undef UNDER
#define SUM(loops, binding, where)                                                                 \
  HEAD "def f(n: T.int32, A: T.Buffer((12, 30), 'float32'), C: T.Buffer((12,), 'float32')):\n"     \
       "    for i in range(12):\n"                                                                 \
       "        for j in range(" loops "):\n"                                                      \
       "            with T.block('C'):\n"                                                          \
       "                v = T.axis.spatial(12, i)\n"                                               \
       "                k = T.axis.reduce(8, " binding ")\n"                                       \
       "                T.where(" where ")\n"                                                      \
       "                with T.init():\n"                                                          \
       "                    C[v] = T.float32(0)\n"                                                 \
       "                C[v] = C[v] + A[v, k]\n"
  made(SUM("8", "j", "True"), steps);
  refused(SUM("4", "i + j", "i + j < 8"), steps, "run under conditions of their own");
  refused(SUM("8 - i", "i + j", "True"), steps, "not proved to read only what they wrote before");
#undef SUM
  const char *times = HEAD "def f(n: T.int32, A: T.Buffer((9,), 'float32'), "
                           "C: T.Buffer((9,), 'float32')):\n"
                           "    for i, j in T.grid(9, n):\n"
                           "        with T.block('C'):\n"
                           "            v = T.axis.spatial(9, i)\n"
                           "            C[v] = A[v]\n";
  made_with(times, steps, "T.where(0 < n)");
  refused(times, "sch.cache_write('C', 0, 'local')", "loop 'j' is not proved to have iterations");
}

// A sum that begins nowhere inside of another block needs what the buffer held before.
static void test_sums_without_begin(void **state) {
  (void)state;
  refused(HEAD "def f(A: T.Buffer((12, 8), 'float32'), C: T.Buffer((12,), 'float32')):\n"
               "    for i in range(12):\n"
               "        with T.block('rows'):\n"
               "            vi = T.axis.spatial(12, i)\n"
               "            for j in range(7):\n"
               "                with T.block('C'):\n"
               "                    k = T.axis.reduce(8, j + 1)\n"
               "                    with T.init():\n"
               "                        C[vi] = T.float32(0)\n"
               "                    C[vi] = C[vi] + A[vi, k]\n",
          "sch.cache_write('rows', 0, 'local')", "not proved to write all of 'C'");
}

// A sum that goes on from one iteration to the next is no memory of one iteration.
static void test_running_sums(void **state) {
  (void)state;
  const char *sums = HEAD "def f(A: T.Buffer((8, 4), 'float32'), D: T.Buffer((8, 5), 'float32')):\n"
                          "    C = T.alloc_buffer((1,))\n"
                          "    for i in range(8):\n"
                          "        for k in range(4):\n"
                          "            with T.block('C'):\n"
                          "                vk = T.axis.reduce(32, i * 4 + k)\n"
                          "                with T.init():\n"
                          "                    C[0] = T.float32(0)\n"
                          "                C[0] = C[0] + A[vk // 4, vk % 4]\n"
                          "        for j in range(5):\n"
                          "            with T.block('D'):\n"
                          "                vi, vj = T.axis.remap('SS', [i, j])\n"
                          "                D[vi, vj] = C[0]\n";
  refused(sums, "i, k = sch.get_loops('C')\nsch.parallel(i)", "may access the same element");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_block_variables),
      cmocka_unit_test(test_alignment),
      cmocka_unit_test(test_dictionaries),
      cmocka_unit_test(test_types),
      cmocka_unit_test(test_stated_regions),
      cmocka_unit_test(test_passed_pointers),
      cmocka_unit_test(test_choices),
      cmocka_unit_test(test_open_tiles),
      cmocka_unit_test(test_places),
      cmocka_unit_test(test_seeds),
      cmocka_unit_test(test_output_blocks),
      cmocka_unit_test(test_reindex),
      cmocka_unit_test(test_reindexed_caches),
      cmocka_unit_test(test_reindexed_init),
      cmocka_unit_test(test_reindex_refusals),
      cmocka_unit_test(test_blockize),
      cmocka_unit_test(test_blockize_lists),
      cmocka_unit_test(test_blockize_refusals),
      cmocka_unit_test(test_tensorize),
      cmocka_unit_test(test_tensorize_refusals),
      cmocka_unit_test(test_added_intrinsics),
      cmocka_unit_test(test_decompose_padding),
      cmocka_unit_test(test_loops_over_threads_get_other_kinds),
      cmocka_unit_test(test_pad_einsum),
      cmocka_unit_test(test_read_at),
      cmocka_unit_test(test_write_at),
      cmocka_unit_test(test_write_at_predicates),
      cmocka_unit_test(test_sums_without_begin),
      cmocka_unit_test(test_running_sums),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
