// SPDX-License-Identifier: Apache-2.0
// Steps as TVM's own tests make them: proved here too, and refused where the proof needs more.
#include "schedule_check.h"

// ---- Reductions over threads -------------------------------------------------------------------

static const char row_sums[] =
    HEAD "def f(A: T.Buffer((5, 13), 'float32'), B: T.Buffer((5,), 'float32')):\n"
         "    for i, k in T.grid(5, 13):\n"
         "        with T.block('B'):\n"
         "            vi, vk = T.axis.remap('SR', [i, k])\n"
         "            with T.init():\n"
         "                B[vi] = T.float32(0)\n"
         "            B[vi] = B[vi] + A[vi, vk]\n";

static void test_reductions_over_threads(void **state) {
  (void)state;
  const char *loops = "i, k = sch.get_loops('B')\n";
  Context *context = context_new();
#define STEPS(TEXT) arena_printf(&context->arena, "%s%s", loops, TEXT)
  made(row_sums, STEPS("sch.bind(k, 'threadIdx.x')"));
  made(row_sums, STEPS("sch.bind(i, 'blockIdx.x')\nsch.bind(k, 'threadIdx.y')"));
  made(row_sums, STEPS("a, b = sch.split(k, factors=[None, 4])\nsch.bind(b, 'threadIdx.x')"));
  refused(row_sums, STEPS("sch.bind(k, 'blockIdx.x')"), "not proved to be independent");
  refused(row_sums, STEPS("sch.decompose_reduction('B', k)\nsch.bind(k, 'threadIdx.x')"),
          "not proved to be independent");
#undef STEPS
  context_free(context);
  // Data say which element is updated, so that a device could not find that threads share it.
  refused(HEAD "def f(P: T.Buffer((5,), 'int32'), A: T.Buffer((5, 13), 'float32'),\n"
               "      B: T.Buffer((5,), 'float32')):\n"
               "    for i, k in T.grid(5, 13):\n"
               "        with T.block('B'):\n"
               "            vi, vk = T.axis.remap('SR', [i, k])\n"
               "            with T.init():\n"
               "                B[P[vi]] = T.float32(0)\n"
               "            B[P[vi]] = B[P[vi]] + A[vi, vk]\n",
          "i, k = sch.get_loops('B')\nsch.bind(k, 'threadIdx.x')", "not proved to be independent");
}

// ---- A copy of a reduction's result ------------------------------------------------------------

#define COPIED(VALUE)                                                                              \
  HEAD "def f(A: T.Buffer((7, 5), 'float32'), D: T.Buffer((1, 5, 7), 'float32')):\n"               \
       "    S = T.alloc_buffer((7, 5))\n"                                                          \
       "    for i, j in T.grid(7, 5):\n"                                                           \
       "        with T.block('S'):\n"                                                              \
       "            vi, vj = T.axis.remap('SS', [i, j])\n"                                         \
       "            with T.init():\n"                                                              \
       "                S[vi, vj] = T.float32(0)\n"                                                \
       "            S[vi, vj] = S[vi, vj] + A[vi, vj]\n"                                           \
       "    for j, i in T.grid(5, 7):\n"                                                           \
       "        with T.block('D'):\n"                                                              \
       "            vj, vi = T.axis.remap('SS', [j, i])\n"                                         \
       "            D[0, vj, vi] = " VALUE "\n"

static void test_copies_of_reductions(void **state) {
  (void)state;
  Context *context = context_new();
  Schedule *schedule = check_made(context, COPIED("S[vi, vj]"), "sch.reverse_compute_inline('D')");
  const char *after = check_text(context, schedule_func(schedule));
  assert_non_null(strstr(after, "D[0, vj, vi] = D[0, vj, vi] + A[vi, vj]"));
  assert_null(strstr(after, "alloc_buffer"));
  context_free(context);
  refused(COPIED("S[vi, vj] * T.float32(2)"), "sch.reverse_compute_inline('D')",
          "move it there with reverse_compute_at instead");
}

// ---- rfactor -----------------------------------------------------------------------------------

#define SHARED(BEFORE, CONDITION)                                                                  \
  HEAD "def f(A: T.Buffer((5, 3, 12), 'float32'), C: T.Buffer((5, 3), 'float32'),\n"               \
       "      D: T.Buffer((5, 3), 'float32')):\n"                                                  \
       "    X = T.alloc_buffer((5, 3, 12))\n" BEFORE "    for i in range(5):\n"                    \
       "        for j in range(3):\n"                                                              \
       "            for k in range(12):\n"                                                         \
       "                with T.block('C'):\n"                                                      \
       "                    vi, vj, vk = T.axis.remap('SSR', [i, j, k])\n" CONDITION               \
       "                    with T.init():\n"                                                      \
       "                        C[vi, vj] = T.float32(0)\n"                                        \
       "                    C[vi, vj] = C[vi, vj] + X[vi, vj, vk]\n"                               \
       "            with T.block('D'):\n"                                                          \
       "                vi, vj = T.axis.remap('SS', [i, j])\n"                                     \
       "                D[vi, vj] = C[vi, vj] * T.float32(2)\n"
#define X_BEFORE                                                                                   \
  "    for i, j, k in T.grid(5, 3, 12):\n"                                                         \
  "        with T.block('X'):\n"                                                                   \
  "            vi, vj, vk = T.axis.remap('SSS', [i, j, k])\n"                                      \
  "            X[vi, vj, vk] = A[vi, vj, vk] + T.float32(1)\n"
#define FACTOR                                                                                     \
  "i, j, k = sch.get_loops('C')\na, b = sch.split(k, factors=[None, 4])\n"                         \
  "r = sch.rfactor(%s, 1)\n"

static void test_factors_in_shared_loops(void **state) {
  (void)state;
  Context *context = context_new();
  const char *outer = arena_printf(&context->arena, FACTOR, "a");
  const char *inner = arena_printf(&context->arena, FACTOR, "b");
  made(SHARED(X_BEFORE, ""), outer);
  made(SHARED(X_BEFORE, ""), inner);
  made(SHARED(X_BEFORE, ""),
       arena_printf(&context->arena, "%sw, x, y, z = sch.get_loops(r)\nsch.parallel(w)\n", inner));
  // The loops compute an input of the reduction, so that partial results come before its own.
  made(SHARED(X_BEFORE, ""), "i, j, k = sch.get_loops('C')\nsch.compute_at('X', j)\n"
                             "a, b = sch.split(k, factors=[None, 4])\nsch.rfactor(b, 1)\n");
  made(SHARED(X_BEFORE, ""),
       "i, j, k = sch.get_loops('C')\na, b = sch.split(k, factors=[None, 5])\n"
       "sch.rfactor(b, 1)\n");
  made(SHARED(X_BEFORE, ""), "i, j, k = sch.get_loops('C')\nsch.compute_at('X', j)\n"
                             "a, b = sch.split(k, factors=[None, 5])\nsch.rfactor(a, 0)\n");
  refused(SHARED(X_BEFORE, ""),
          "i, j, k = sch.get_loops('C')\nsch.parallel(i)\nsch.rfactor(k, 1)\n",
          "not proved that its partial results can be computed before these loops");
  context_free(context);
}

// The block's domain is larger than its result, and a condition keeps it inside.
static void test_factors_of_cut_domains(void **state) {
  (void)state;
  static const char cut[] =
      HEAD "def f(A: T.Buffer((12, 6), 'float32'), C: T.Buffer((10,), 'float32')):\n"
           "    for i, k in T.grid(12, 6):\n"
           "        with T.block('C'):\n"
           "            T.where(i < 10)\n"
           "            vi, vk = T.axis.remap('SR', [i, k])\n"
           "            with T.init():\n"
           "                C[vi] = T.float32(0)\n"
           "            C[vi] = C[vi] + A[vi, vk]\n";
  refused(cut, "i, k = sch.get_loops('C')\nsch.rfactor(k, 0)\n",
          "the binding of vi does not reach its whole range");
  made(cut, "sch.cache_read('C', 0, 'local')");
  refused(cut, "sch.cache_write('C', 0, 'local')", "not proved to write all of 'C'");
}

static void test_factors_of_one_iteration(void **state) {
  (void)state;
  made(row_sums, "i, k = sch.get_loops('B')\na, b = sch.split(k, factors=[None, 1], "
                 "preserve_unit_iters=False)\nsch.rfactor(b, 0)\n");
}

// ---- cache_write -------------------------------------------------------------------------------

// Tiles of A, which a block of blocks writes and reads; the tile is `ROWS` rows.
#define TILES(ROWS)                                                                                \
  HEAD "def f(B: T.Buffer((12, 10), 'float32'), C: T.Buffer((12, 10), 'float32')):\n"              \
       "    A = T.alloc_buffer((12, 10))\n"                                                        \
       "    for i0, j0 in T.grid(3, 2):\n"                                                         \
       "        with T.block('scope'):\n"                                                          \
       "            i, j = T.axis.remap('SS', [i0, j0])\n"                                         \
       "            for x, y in T.grid(" ROWS ", 5):\n"                                            \
       "                with T.block('A'):\n"                                                      \
       "                    vi = T.axis.spatial(12, i * 4 + x)\n"                                  \
       "                    vj = T.axis.spatial(10, j * 5 + y)\n"                                  \
       "                    A[vi, vj] = T.cast(vi * 10 + vj, 'float32')\n"                         \
       "            for x, y in T.grid(" ROWS ", 5):\n"                                            \
       "                with T.block('B'):\n"                                                      \
       "                    vi = T.axis.spatial(12, i * 4 + x)\n"                                  \
       "                    vj = T.axis.spatial(10, j * 5 + y)\n"                                  \
       "                    B[vi, vj] = A[vi, vj] + T.float32(1)\n"                                \
       "    for i, j in T.grid(12, 10):\n"                                                         \
       "        with T.block('C'):\n"                                                              \
       "            vi, vj = T.axis.remap('SS', [i, j])\n"                                         \
       "            C[vi, vj] = T.if_then_else(vi % 4 < 3, A[vi, vj], T.float32(0))\n"

static void test_copies_of_tiles(void **state) {
  (void)state;
  made(TILES("4"), "sch.cache_write('A', 0, 'local')");
  made(TILES("4"), "sch.cache_write('A', 0, 'local')\nsch.cache_write('B', 0, 'global')");
  made(TILES("4"), "sch.cache_write('scope', 0, 'global')");
  made(TILES("4"), "sch.cache_write('A', 0, 'local')\nsch.cache_write('scope', 0, 'global')");
  refused(TILES("3"), "sch.cache_write('scope', 0, 'global')", "not proved to write all of 'A'");
  made(TILES("3"), "sch.cache_write('A', 0, 'local')");
}

#define CUT(OUTER, INNER)                                                                          \
  HEAD "def f(A: T.Buffer((12, 24), 'float32'), C: T.Buffer((10, 20), 'float32')):\n"              \
       "    for i, j in T.grid(12, 24):\n"                                                         \
       "        with T.block('compute'):\n" OUTER                                                  \
       "            vi, vj = T.axis.remap('SS', [i, j])\n"                                         \
       "            with T.block('inner'):\n" INNER                                                \
       "                C[vi, vj] = A[vi, vj] * T.float32(2)\n"

static void test_copies_of_what_is_inside(void **state) {
  (void)state;
  const char *write = "sch.cache_write('compute', 0, 'local')";
  made(CUT("", "                T.where(vi < 10 and vj < 20)\n"), write);
  made(CUT("            T.where(i < 10)\n", "                T.where(vj < 20)\n"), write);
  made(CUT("            T.where(i < 10 and j < 20)\n", ""), write);
  refused(CUT("", "                T.where(vi < 9 and vj < 20)\n"), write,
          "not proved to write all");
  refused(CUT("            T.where(i < 10 and j < 19)\n", ""), write, "not proved to write all");
}

// ---- Copies beside the writer ------------------------------------------------------------------

// One nest writes A and reads READ of it; another reads A afterwards.
#define BESIDE(ROW, READ, AFTER)                                                                   \
  HEAD "def f(X: T.Buffer((6, 5), 'float32'), B: T.Buffer((6, 5), 'float32'),\n"                   \
       "      C: T.Buffer((6, 5), 'float32')):\n"                                                  \
       "    A = T.alloc_buffer((6, 5))\n"                                                          \
       "    for i in range(6):\n"                                                                  \
       "        for j in range(5):\n"                                                              \
       "            with T.block('A'):\n"                                                          \
       "                vi, vj = T.axis.remap('SS', [i, j])\n"                                     \
       "                A[" ROW ", vj] = X[vi, vj] + T.float32(1)\n"                               \
       "        for j in range(5):\n"                                                              \
       "            with T.block('B'):\n"                                                          \
       "                vi, vj = T.axis.remap('SS', [i, j])\n"                                     \
       "                B[vi, vj] = A[" READ "] * T.float32(2)\n" AFTER                            \
       "    for i, j in T.grid(6, 5):\n"                                                           \
       "        with T.block('C'):\n"                                                              \
       "            vi, vj = T.axis.remap('SS', [i, j])\n"                                         \
       "            C[vi, vj] = A[vi, vj]\n"
#define CHANGE                                                                                     \
  "        for j in range(5):\n"                                                                   \
  "            with T.block('D'):\n"                                                               \
  "                vi, vj = T.axis.remap('SS', [i, j])\n"                                          \
  "                A[vi, vj] = T.float32(3)\n"

static void test_copies_beside_the_writer(void **state) {
  (void)state;
  const char *both = "sch.cache_read('B', 0, 'local', consumer_blocks=['B', 'C'])";
  const char *late = "is not proved to find all that it reads of 'A' in the copy";
  made(BESIDE("vi", "vi, vj", ""), both);
  made(BESIDE("vi", "vi, 4 - vj", ""), both);
  made(BESIDE("5 - vi", "5 - vi, vj", ""), both);
  made(BESIDE("vi", "vi, vj", ""), "sch.cache_read('C', 0, 'local', consumer_blocks=['C', 'B'])");
  refused(BESIDE("vi", "vi, vj // 2", ""), both, late);
  refused(BESIDE("vi", "vi, vj", CHANGE), both, late);
  refused(BESIDE("vi // 2", "vi // 2, vj", ""), both, late);
  refused(BESIDE("vi", "0, vj", ""), both, late);
}

static void test_reindexed_copies_beside_the_writer(void **state) {
  (void)state;
  const char *read = "sch.reindex_cache_read('B', 0, 'local', lambda i, j: (j, i))";
  const char *write = "sch.reindex_cache_write('A', 0, 'local', lambda i, j: (j, i))";
  made(BESIDE("vi", "vi, vj", ""), read);
  made(BESIDE("vi", "vi, 4 - vj", ""), read);
  made(BESIDE("vi", "vi // 2, vj", ""), read);
  made(BESIDE("vi", "vi, vj", ""), write);
  made(BESIDE("vi", "vi // 2, vj", ""), write);
  made(row_sums, "sch.reindex_cache_write('B', 0, 'local', lambda i, k: (i,))");
  made(BESIDE("vi", "vi, vj", CHANGE), write);
  refused(BESIDE("vi // 2", "vi, vj", ""), write, "in the same nest reads 'A'");
  refused(BESIDE("vi", "vi, vj", ""),
          "j, i = sch.get_loops('B')\nsch.parallel(j)\n"
          "sch.reindex_cache_read('B', 0, 'local', lambda i, j: (j, i))",
          "in the same nest writes 'A'");
}

// ---- Padding that a block of its own writes ----------------------------------------------------

// B has 14 elements, WRITES of which stand in the first block.
#define PADDED(WRITES)                                                                             \
  HEAD "def f(A: T.Buffer((14,), 'int32'), C: T.Buffer((14,), 'int32'),\n"                         \
       "      D: T.Buffer((14,), 'int32')):\n"                                                     \
       "    B = T.alloc_buffer((14,), 'int32')\n"                                                  \
       "    for i in range(14):\n"                                                                 \
       "        with T.block('B'):\n"                                                              \
       "            vi = T.axis.spatial(14, i)\n" WRITES "    for i in range(14):\n"               \
       "        with T.block('D'):\n"                                                              \
       "            vi = T.axis.spatial(14, i)\n"                                                  \
       "            D[vi] = B[vi] + 1\n"
#define TWO "            B[vi] = A[vi]\n            C[vi] = A[vi] * 2\n"
#define ONE "            B[vi] = A[vi]\n"

static void test_padding_in_a_nest_of_its_own(void **state) {
  (void)state;
  const char *pad =
      "sch.transform_layout('B', ('write', 0), lambda i: [i // 4, i % 4], pad_value=7)\n";
  Context *context = context_new();
#define STEPS(BEFORE, AFTER) arena_printf(&context->arena, "%s%s%s", BEFORE, pad, AFTER)
  made_with(PADDED(TWO), pad, "with T.block(\"buffer_B_padding\"):");
  made_with(PADDED(TWO), pad, "T.where(14 <= axis0 * 4 + axis1)");
  // The block iterates over tiles, and no more over the axis.
  made(PADDED(ONE), STEPS("i, = sch.get_loops('B')\nx, y = sch.split(i, factors=[None, 7])\n", ""));
  // In the reader's loop, the padding is written before.
  made_with(PADDED(ONE), STEPS("i, = sch.get_loops('D')\nsch.compute_at('B', i)\n", ""),
            "        with T.block(\"buffer_B_padding\"):");
  refused(PADDED(TWO), STEPS("", "sch.cache_write('B', 0, 'local')"), "also written by block");
#undef STEPS
  context_free(context);
}

static void test_padding_of_several_values(void **state) {
  (void)state;
  const char *map = "sch.transform_layout('B', ('write', 0), lambda i: [i // 4, i % 4], "
                    "pad_value=lambda i, j: [i + j])\n";
  made_with(PADDED(ONE), map,
            "T.if_then_else(vi_0 * 4 + vi_1 < 14, A[vi_0 * 4 + vi_1], vi_0 + vi_1)");
  made_with(PADDED(TWO), map, "B[v_axis0, v_axis1] = v_axis0 + v_axis1");
  refused(PADDED(ONE),
          "sch.transform_layout('B', ('write', 0), lambda i: [i // 4, i % 4], "
          "pad_value=lambda i: [i])",
          "pad_value maps the 2 physical indices of 'B' to one number");
}

// ---- Views, calls that get a pointer, and indices from floats ----------------------------------

#define VIEWED(VIEW)                                                                               \
  HEAD "def f(A: T.Buffer((7, 5), 'float32'), C: T.Buffer((7, 5), 'float32')):\n"                  \
       "    B = T.alloc_buffer((7, 5))\n"                                                          \
       "    for i, j in T.grid(7, 5):\n"                                                           \
       "        with T.block('B'):\n"                                                              \
       "            vi, vj = T.axis.remap('SS', [i, j])\n"                                         \
       "            T.reads(A[vi, vj])\n"                                                          \
       "            T.writes(B[vi, vj])\n"                                                         \
       "            B0 = T.match_buffer(B[vi, vj], (), 'float32', offset_factor=1)\n"              \
       "            B0[()] = A[vi, vj]\n"                                                          \
       "    for i, j in T.grid(7, 5):\n"                                                           \
       "        with T.block('C'):\n"                                                              \
       "            vi, vj = T.axis.remap('SS', [i, j])\n"                                         \
       "            T.reads(B[vi, vj])\n"                                                          \
       "            T.writes(C[vi, vj])\n" VIEW

static void test_views_of_other_types(void **state) {
  (void)state;
  const char *view = "            B1 = T.match_buffer(B[vi, vj], (), 'float32', offset_factor=1)\n"
                     "            C[vi, vj] = B1[()] * T.float32(2)\n";
  const char *call = "            C[vi, vj] = T.call_extern('float32', 'first', B.data)\n";
  Context *context = context_new();
  made_with(arena_printf(&context->arena, VIEWED("%s"), view),
            "sch.unsafe_set_dtype('B', 0, 'float64')",
            "B1 = T.match_buffer(B[vi, vj], (), \"float64\"");
  refused(arena_printf(&context->arena, VIEWED("%s"), call),
          "sch.unsafe_set_dtype('B', 0, 'float64')", "its data pointer is passed on");
  context_free(context);
}

#define PASSED(READS)                                                                              \
  HEAD "def f(A: T.Buffer((8,), 'int32'), B: T.Buffer((8,), 'int32')):\n"                          \
       "    for i in range(8):\n"                                                                  \
       "        with T.block('B'):\n"                                                              \
       "            vi = T.axis.spatial(8, i)\n"                                                   \
       "            B[vi] = A[vi] + 1\n"                                                           \
       "    for i in range(1):\n"                                                                  \
       "        with T.block('call'):\n"                                                           \
       "            T.reads(" READS ")\n"                                                          \
       "            T.writes(" READS ")\n"                                                         \
       "            T.call_extern('void', 'change', A.data)\n"

static const char *text_after(Context *context, const char *program, const char *steps) {
  Schedule *schedule = schedule_new(context, check_parse(context, program));
  bool made = check_replay(schedule, steps);
  if (!made) diag_print_all(context, stderr);
  assert_true(made);
  assert_true(verify_prim_func(context, schedule_func(schedule), IR_LEVEL_TENSOR));
  return check_text(context, schedule_func(schedule));
}

static void test_copies_of_what_calls_get(void **state) {
  (void)state;
  Context *context = context_new();
  const char *after =
      text_after(context, PASSED("A[0:8]"), "sch.cache_inplace('call', 0, 'local')");
  assert_non_null(strstr(after, "T.call_extern(\"void\", \"change\", A_local.data)"));
  after = text_after(context, PASSED("A[0:8]"), "sch.cache_read('B', 0, 'local')");
  assert_non_null(strstr(after, "B[vi] = A_local[vi] + 1"));
  assert_non_null(strstr(after, "A.data"));
  context_free(context);
  refused(PASSED("A[0:8]"), "sch.cache_write('call', 0, 'local')", "not proved to write all");
  refused(PASSED(""), "sch.cache_read('B', 0, 'local')", "its data pointer is passed on");
}

static void test_results_beside_their_readers(void **state) {
  (void)state;
  // The copy is made in each iteration, before another block reads what the first one wrote.
  made(BESIDE("vi", "vi, 4 - vj", ""), "sch.cache_write('A', 0, 'local')");
  made(BESIDE("vi", "vi // 2, vj", ""), "sch.cache_write('A', 0, 'local')");
  made(BESIDE("vi", "vi, vj", CHANGE), "sch.cache_write('A', 0, 'local')");
}

#define RESIZED(SCALE)                                                                             \
  HEAD "def f(x: T.Buffer((32,), 'float32'), y: T.Buffer((16,), 'float32')):\n"                    \
       "    for i in range(16):\n"                                                                 \
       "        with T.block('y'):\n"                                                              \
       "            v = T.axis.spatial(16, i)\n"                                                   \
       "            T.reads(x[0:32])\n"                                                            \
       "            T.writes(y[v])\n"                                                              \
       "            y[v] = x[T.max(T.min(T.Cast('int32', T.floor((T.Cast('float32', v)\n"          \
       "                   + T.float32(0.5)) * T.float32(" SCALE                                   \
       ") - T.float32(0.25))), 31), 0)]\n"

static void test_regions_of_indices_from_floats(void **state) {
  (void)state;
  const char *tight = "sch.annotate_buffer_access('y', 0, 'read', lambda v: [v * 2, v * 2 + 1])";
  const char *wide = "sch.annotate_buffer_access('y', 0, 'read', lambda v: [v * 2 - 1, v * 2 + 2])";
  made_with(RESIZED("2.0"), tight, "T.reads(x[v * 2])");
  made(RESIZED("2.0"), wide);
  refused(RESIZED("2.1"), tight, "not proved to cover");
  // The value is a whole number but for rounding.
  refused(RESIZED("0.5"),
          "sch.annotate_buffer_access('y', 0, 'read', lambda v: [v // 2, v // 2 + 1])",
          "not proved to cover");
}

// ---- Intrinsics whose description has simpler indices ------------------------------------------

#define DECODED(NAME, LOOP)                                                                        \
  "@T.prim_func\n"                                                                                 \
  "def decode_" NAME "(C: T.Buffer((1,), 'int32'), D: T.Buffer((8,), 'int32')):\n"                 \
  "    with T.block('root'):\n"                                                                    \
  "        T.reads(C[0])\n"                                                                        \
  "        T.writes(D[0:8])\n"                                                                     \
  "        for i in " LOOP ":\n"                                                                   \
  "            with T.block('decode'):\n"                                                          \
  "                vi = T.axis.spatial(8, i)\n"                                                    \
  "                D[vi] = C[vi // 8] >> vi % 8 * 4 & 15\n"

static void test_intrinsics_with_simpler_indices(void **state) {
  (void)state;
  static const char program[] =
      HEAD "def f(B: T.Buffer((5, 3), 'int32'), D: T.Buffer((5, 24), 'int32')):\n"
           "    for i, j, k in T.grid(5, 3, 8):\n"
           "        with T.block('D'):\n"
           "            vi = T.axis.spatial(5, i)\n"
           "            vj = T.axis.spatial(24, j * 8 + k)\n"
           "            D[vi, vj] = B[vi, vj // 8] >> vj % 8 * 4 & 15\n";
  Context *context = context_new();
  PrimFunc *func = check_parse(context, program);
  Schedule *schedule = schedule_new(context, func);
  schedule_use_module(
      schedule, check_module(context, "from pleat.script import tir as T\n" DECODED(
                                          "desc", "range(8)") DECODED("impl", "T.unroll(8)")));
  bool made = check_replay(schedule, "i, j, k = sch.get_loops('D')\nsch.tensorize(k, 'decode')");
  if (!made) diag_print_all(context, stderr);
  assert_true(made);
  check_same_meaning(context, func, schedule_func(schedule), true);
  context_free(context);
}

// ---- reverse_compute_at of parts ---------------------------------------------------------------

static const char partial_sums[] =
    HEAD "def f(A: T.Buffer((5, 12, 3), 'float32'), B: T.Buffer((5,), 'float32')):\n"
         "    R = T.alloc_buffer((12, 5))\n"
         "    for j, i, k in T.grid(5, 12, 3):\n"
         "        with T.block('R'):\n"
         "            vj, vi, vk = T.axis.remap('SSR', [j, i, k])\n"
         "            with T.init():\n"
         "                R[vi, vj] = T.float32(0)\n"
         "            R[vi, vj] = R[vi, vj] + A[vj, vi, vk]\n"
         "    for i, k in T.grid(5, 12):\n"
         "        with T.block('B'):\n"
         "            vi, vk = T.axis.remap('SR', [i, k])\n"
         "            with T.init():\n"
         "                B[vi] = T.float32(0)\n"
         "            B[vi] = B[vi] + R[vk, vi]\n";

static void test_moved_parts_of_reductions(void **state) {
  (void)state;
  const char *text = "sch.reverse_compute_at('B', x)\n";
  Context *context = context_new();
#define STEPS(BEFORE, AFTER)                                                                       \
  arena_printf(&context->arena, "j, i, k = sch.get_loops('R')\n%s%s%s", BEFORE, text, AFTER)
  const char *split = "x, y = sch.split(i, factors=[None, 4])\n";
  made_with(partial_sums, STEPS(split, ""), "vk = T.axis.reduce(12, i_0 * 4 + k)");
  made(partial_sums, STEPS("x, y = sch.split(i, factors=[None, 4])\nsch.bind(j, 'blockIdx.x')\n"
                           "sch.bind(x, 'threadIdx.x')\n",
                           ""));
  refused(partial_sums, STEPS("x, y = sch.split(i, factors=[None, 4])\nsch.parallel(x)\n", ""),
          "would not be proved to be independent");
  refused(partial_sums,
          STEPS("x, y = sch.split(i, factors=[None, 4])\nsch.bind(x, 'blockIdx.x')\n", ""),
          "its init is not proved to come first");
#undef STEPS
  context_free(context);
}

#define REGROUPED(INDEX)                                                                           \
  HEAD "def f(A: T.Buffer((3, 5, 16), 'float32'), C: T.Buffer((6, 5, 8), 'float32')):\n"           \
       "    B = T.alloc_buffer((3, 5, 16))\n"                                                      \
       "    for i, j, k in T.grid(3, 5, 16):\n"                                                    \
       "        with T.block('B'):\n"                                                              \
       "            vi, vj, vk = T.axis.remap('SSS', [i, j, k])\n"                                 \
       "            B[vi, vj, vk] = A[vi, vj, vk] + T.float32(1)\n"                                \
       "    for i, j, k in T.grid(6, 5, 8):\n"                                                     \
       "        with T.block('C'):\n"                                                              \
       "            vi, vj, vk = T.axis.remap('SSS', [i, j, k])\n"                                 \
       "            C[vi, vj, vk] = B[" INDEX "]\n"

static void test_moves_below_regrouped_axes(void **state) {
  (void)state;
  const char *outer = "i, j, k = sch.get_loops('B')\nsch.reverse_compute_at('C', i)";
  const char *inner = "i, j, k = sch.get_loops('B')\nsch.reverse_compute_at('C', j)";
  made_with(REGROUPED("(vi * 8 + vk) // 16, vj, (vi * 8 + vk) % 16"), outer,
            "vi = T.axis.spatial(6, i * 2 + i_1)");
  made(REGROUPED("(vi * 8 + vk) // 16, vj, (vi * 8 + vk) % 16"), inner);
  // The rows of C that an iteration completes are no box.
  refused(REGROUPED("(vi + vk * 6) // 16, vj, (vi + vk * 6) % 16"), outer,
          "which it does not read by one of its variables");
  refused(REGROUPED("(vi * 8 + vk) // 16, vj, (vi * 8 + vk) % 16"),
          "i, j, k = sch.get_loops('B')\nx, y = sch.split(k, factors=[None, 5])\n"
          "sch.reverse_compute_at('C', x)",
          "block 'C' cannot move under loop");
}

// B of 17 rows of 6, and C of windows of it; T is the type of the loops' extents.
#define WINDOWS(T, EXTENTS, READ)                                                                  \
  HEAD "def f(A: T.Buffer((17, 6), 'float32'), C: T.Buffer((" EXTENTS "), 'float32')):\n"          \
       "    B = T.alloc_buffer((17, 6))\n"                                                         \
       "    for i, j in T.grid(" T "(17), " T "(6)):\n"                                            \
       "        with T.block('B'):\n"                                                              \
       "            vi, vj = T.axis.remap('SS', [i, j])\n"                                         \
       "            B[vi, vj] = A[vi, vj] + T.float32(1)\n"                                        \
       "    for i, j in T.grid(" EXTENTS "):\n"                                                    \
       "        with T.block('C'):\n"                                                              \
       "            vi, vj = T.axis.remap('SS', [i, j])\n"                                         \
       "            C[vi, vj] = " READ "\n"

static const char window_sums[] =
    HEAD "def f(A: T.Buffer((9, 8), 'float32'), C: T.Buffer((3, 7), 'float32')):\n"
         "    B = T.alloc_buffer((9, 8))\n"
         "    for i, j in T.grid(9, 8):\n"
         "        with T.block('B'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            B[vi, vj] = A[vi, vj] + T.float32(1)\n"
         "    for i, j, a, b in T.grid(3, 7, 3, 2):\n"
         "        with T.block('C'):\n"
         "            vi, vj, va, vb = T.axis.remap('SSRR', [i, j, a, b])\n"
         "            with T.init():\n"
         "                C[vi, vj] = T.float32(0)\n"
         "            C[vi, vj] = C[vi, vj] + B[vi * 2 + va + 1, vj + vb]\n";

// A consumer of several elements beside one another runs where the last of them is stored.
static void test_moved_windows(void **state) {
  (void)state;
  const char *outer = "i, j = sch.get_loops('B')\nsch.reverse_compute_at('C', i)";
  const char *tiles = "i, j = sch.get_loops('B')\nx, y = sch.split(i, factors=[None, 4])\n"
                      "u, v = sch.split(j, factors=[None, 3])\nsch.reorder(x, u, y, v)\n"
                      "sch.reverse_compute_at('C', u)";
  made_with(WINDOWS("T.int32", "15, 6", "B[vi, vj] * T.float32(2) + B[vi + 2, vj]"), outer,
            "vi = T.axis.spatial(15, i - 2)");
  made(WINDOWS("T.int64", "15, 5", "B[vi + 2, vj] - B[vi, vj + 1]"), tiles);
  made_with(WINDOWS("T.int32", "16, 6", "B[vi + 1, vj]"), outer, "T.where(1 <= i)");
  made(window_sums, "i, j = sch.get_loops('B')\nx, y = sch.split(i, factors=[None, 2])\n"
                    "sch.reverse_compute_at('C', x)");
  // Elements beyond the window are not needed, and none may be missing.
  made(WINDOWS("T.int32", "11, 6", "B[vi, vj] + B[vi + 3, vj]"), outer);
  refused(WINDOWS("T.int32", "17, 6", "B[vi, vj] + T.if_then_else(vi < 16, B[vi + 1, vj], 0.0)"),
          outer, "the loop is not proved to complete all elements that it reads");
  refused(WINDOWS("T.int32", "15, 6", "B[vi, vj] + B[16 - vi, vj]"), outer,
          "which it does not read by one of its variables\nmove the producers of ");
  // A part that is no multiple of the steps completes one value more, or one fewer, than others.
  made_with(window_sums, outer, "vi = T.axis.spatial(3, i // 2 - 1)");
  made(window_sums, "i, j = sch.get_loops('B')\nx, y = sch.split(i, factors=[None, 5])\n"
                    "sch.reverse_compute_at('C', x)");
}

// Elements of other iterations are read only where the loops that move the window run in order.
static void test_windows_need_order(void **state) {
  (void)state;
#define PROGRAM WINDOWS("T.int32", "15, 6", "B[vi, vj] + B[vi + 2, vj]")
#define AFTER(STEPS) "i, j = sch.get_loops('B')\n" STEPS "sch.reverse_compute_at('C', i)"
  const char *order = "the iterations of loop 'i' do not run in order";
  refused(PROGRAM, AFTER("sch.parallel(i)\n"), order);
  refused(PROGRAM, AFTER("sch.bind(i, 'threadIdx.x')\n"), order);
  refused(PROGRAM, AFTER("") "\nsch.parallel(i)", "not proved to be independent");
  refused(PROGRAM, AFTER("") "\nsch.bind(i, 'blockIdx.x')", "'B'");
  made(PROGRAM, "i, j = sch.get_loops('B')\nsch.reorder(j, i)\nsch.parallel(j)\n"
                "sch.reverse_compute_at('C', i)");
  made(WINDOWS("T.int32", "15, 6", "B[vi + 2, vj]"), AFTER("sch.parallel(i)\n"));
  refused(PROGRAM, "i, j = sch.get_loops('B')\nf = sch.fuse(i, j)\nsch.reverse_compute_at('C', f)",
          "loop 'i_j_fused' moves along axis 1 too");
#undef PROGRAM
#undef AFTER
}

// A block that states to read its own result still states it after steps, as in TVM.
static void test_stated_reads_of_results(void **state) {
  (void)state;
  made_with(HEAD "def f(A: T.Buffer((5, 7), 'float32'), C: T.Buffer((5,), 'float32')):\n"
                 "    for i, k in T.grid(5, 7):\n"
                 "        with T.block('C'):\n"
                 "            vi, vk = T.axis.remap('SR', [i, k])\n"
                 "            T.reads(C[vi], A[vi, vk])\n"
                 "            T.writes(C[vi])\n"
                 "            with T.init():\n"
                 "                C[vi] = T.float32(0)\n"
                 "            C[vi] = C[vi] + A[vi, vk]\n",
            "sch.reindex('C', ('write', 0))\n", "T.reads(C_reindex[vi], A[vi, vk])");
}

// Axes of one element stay variables where the map keeps them.
static void test_unit_axes_of_layouts(void **state) {
  (void)state;
  made_with(HEAD "def f(A: T.Buffer((1, 7), 'float32'), C: T.Buffer((1, 7), 'float32')):\n"
                 "    for i, j in T.grid(1, 7):\n"
                 "        with T.block('C'):\n"
                 "            vi, vj = T.axis.remap('SS', [i, j])\n"
                 "            C[vi, vj] = A[vi, vj] + T.float32(1)\n",
            "sch.transform_block_layout('C', lambda i, j: [j, i])\n",
            "C[vi, vj] = A[vi, vj] + T.float32(1.0)");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_reductions_over_threads),
      cmocka_unit_test(test_copies_of_reductions),
      cmocka_unit_test(test_factors_in_shared_loops),
      cmocka_unit_test(test_factors_of_cut_domains),
      cmocka_unit_test(test_factors_of_one_iteration),
      cmocka_unit_test(test_copies_of_tiles),
      cmocka_unit_test(test_copies_of_what_is_inside),
      cmocka_unit_test(test_copies_beside_the_writer),
      cmocka_unit_test(test_reindexed_copies_beside_the_writer),
      cmocka_unit_test(test_padding_in_a_nest_of_its_own),
      cmocka_unit_test(test_padding_of_several_values),
      cmocka_unit_test(test_views_of_other_types),
      cmocka_unit_test(test_copies_of_what_calls_get),
      cmocka_unit_test(test_results_beside_their_readers),
      cmocka_unit_test(test_regions_of_indices_from_floats),
      cmocka_unit_test(test_intrinsics_with_simpler_indices),
      cmocka_unit_test(test_moved_parts_of_reductions),
      cmocka_unit_test(test_moves_below_regrouped_axes),
      cmocka_unit_test(test_moved_windows),
      cmocka_unit_test(test_windows_need_order),
      cmocka_unit_test(test_stated_reads_of_results),
      cmocka_unit_test(test_unit_axes_of_layouts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
