// SPDX-License-Identifier: Apache-2.0
// Steps that add stages to a block or take stages from it: fuse_reduction_epilogue, cache_inplace,
// cache_index, and rfactor of several results.
#include "schedule_check.h"

// A reduction by `UPDATE` of the rows of A, and a block `last` on its result.
#define ROWS(START, UPDATE, LAST)                                                                  \
  HEAD "def f(A: T.Buffer((13, 7), 'float32'), C: T.Buffer((13,), 'float32'),\n"                   \
       "      D: T.Buffer((13,), 'float32')):\n"                                                   \
       "    S = T.alloc_buffer((13,))\n"                                                           \
       "    for i, k in T.grid(13, 7):\n"                                                          \
       "        with T.block('S'):\n"                                                              \
       "            vi, vk = T.axis.remap('SR', [i, k])\n"                                         \
       "            with T.init():\n"                                                              \
       "                S[vi] = T.float32(" START ")\n"                                            \
       "            S[vi] = " UPDATE "\n"                                                          \
       "    for i in range(13):\n"                                                                 \
       "        with T.block('last'):\n"                                                           \
       "            vi = T.axis.spatial(13, i)\n"                                                  \
       "            D[" LAST "\n"

#define SUM "S[vi] + A[vi, vk]"
#define FUSE "sch.fuse_reduction_epilogue('S', 'last')"

static void test_epilogues(void **state) {
  (void)state;
  made_with(ROWS("0", SUM, "vi] = S[vi] + C[vi]"), FUSE, "D[vi] = C[vi]\n");
  made_with(ROWS("3", SUM, "vi] = C[vi] + S[vi]"), FUSE, "D[vi] = C[vi] + T.float32(3.0)\n");
  made(ROWS("0", SUM, "vi] = S[vi] - C[vi] + T.float32(2)"), FUSE);
  made(ROWS("0", "S[vi] - A[vi, vk]", "vi] = C[vi] + S[vi]"), FUSE);
  made(ROWS("0", SUM, "vi] = S[vi]"), FUSE);
  made(ROWS("1", "S[vi] * A[vi, vk]", "vi] = S[vi] * C[vi]"), FUSE);
  made(ROWS("-9", "T.max(S[vi], A[vi, vk])", "vi] = T.max(T.float32(0), S[vi])"), FUSE);
  made(ROWS("9", "T.min(S[vi], A[vi, vk])", "vi] = T.min(S[vi], C[vi])"), FUSE);
  made(ROWS("0", SUM, "vi] = S[12 - vi] + C[vi]"), FUSE);
  made(ROWS("0", SUM, "vi] = S[vi] + C[vi]"),
       "i, k = sch.get_loops('S')\nx, y = sch.split(i, factors=[None, 4])\n" FUSE
       "\nsch.parallel(x)");
}

static void test_epilogue_refusals(void **state) {
  (void)state;
  const char *start = "is not proved to be a start for the same reduction";
  refused(ROWS("0", SUM, "vi] = T.max(S[vi] + C[vi], T.float32(0))"), FUSE, start);
  refused(ROWS("0", SUM, "vi] = S[vi] * T.float32(2) + C[vi]"), FUSE, start);
  refused(ROWS("0", SUM, "vi] = C[vi] - S[vi]"), FUSE, start);
  refused(ROWS("0", SUM, "vi] = (S[vi] + C[vi]) * (S[vi] + C[vi])"), FUSE, start);
  refused(ROWS("1", "S[vi] * A[vi, vk]", "vi] = S[vi] + C[vi]"), FUSE, start);
  refused(ROWS("0", SUM, "vi] = C[vi]"), FUSE, "does not read one element of 'S'");
  refused(ROWS("0", SUM, "0] = S[vi] + C[vi]"), FUSE, "to write different elements");
  refused(ROWS("0", SUM,
               "vi] = S[vi] + C[vi]\n"
               "    for i in range(13):\n"
               "        with T.block('C'):\n"
               "            vi = T.axis.spatial(13, i)\n"
               "            C[vi] = S[vi]"),
          FUSE, "block 'C' reads 'S' too");
  refused(ROWS("0", SUM, "vi] = S[vi] + C[vi]"), "sch.fuse_reduction_epilogue('last', 'S')",
          "block 'S' is a reduction");
  refused(ROWS("0", "T.if_then_else(A[vi, vk] > T.float32(0), S[vi] + A[vi, vk], S[vi])",
               "vi] = S[vi] + C[vi]"),
          FUSE, "not a reduction of one term");
}

// The inputs and the output of the epilogue must not change between the reduction and it.
static void test_epilogue_order(void **state) {
  (void)state;
#define BETWEEN(STORE)                                                                             \
  HEAD "def f(A: T.Buffer((13, 7), 'float32'), C: T.Buffer((13,), 'float32'),\n"                   \
       "      D: T.Buffer((13,), 'float32')):\n"                                                   \
       "    S = T.alloc_buffer((13,))\n"                                                           \
       "    for i, k in T.grid(13, 7):\n"                                                          \
       "        with T.block('S'):\n"                                                              \
       "            vi, vk = T.axis.remap('SR', [i, k])\n"                                         \
       "            with T.init():\n"                                                              \
       "                S[vi] = T.float32(0)\n"                                                    \
       "            S[vi] = S[vi] + A[vi, vk]\n"                                                   \
       "    for i in range(13):\n"                                                                 \
       "        with T.block('between'):\n"                                                        \
       "            vi = T.axis.spatial(13, i)\n"                                                  \
       "            " STORE "\n"                                                                   \
       "    for i in range(13):\n"                                                                 \
       "        with T.block('last'):\n"                                                           \
       "            vi = T.axis.spatial(13, i)\n"                                                  \
       "            D[vi] = S[vi] + C[vi]\n"
  refused(BETWEEN("C[vi] = T.float32(1)"), FUSE, "block 'between' writes 'C'");
  refused(BETWEEN("A[vi, 0] = D[vi]"), FUSE, "block 'between' reads 'D' before");
  refused(BETWEEN("D[vi] = T.float32(1)"), FUSE, "block 'between' writes 'D' too");
}

static const char in_place[] =
    HEAD "def f(A: T.Buffer((13, 7), 'float32'), C: T.Buffer((13,), 'float32')):\n"
         "    for i, k in T.grid(13, 7):\n"
         "        with T.block('C'):\n"
         "            vi, vk = T.axis.remap('SR', [i, k])\n"
         "            T.where(k < 5)\n"
         "            C[vi] = C[vi] + A[vi, vk]\n";

static void test_cache_inplace(void **state) {
  (void)state;
  made(in_place, "a, b = sch.cache_inplace('C', 'C', 'local')\n");
  made(in_place, "a, b = sch.cache_inplace('C', 0, 'local')\nsch.cache_read(a, 0, 'local')\n");
  made(HEAD "def f(C: T.Buffer((9,), 'float32')):\n"
            "    for i in range(2):\n"
            "        with T.block('C'):\n"
            "            v = T.axis.spatial(2, i)\n"
            "            for k in range(4):\n"
            "                C[v * 4 + k] = C[v * 4 + k + 1] * T.float32(2)\n",
       "sch.cache_inplace('C', 0, 'local')");
  refused(in_place, "sch.cache_inplace('C', 'A', 'local')", "does not write 'A'; use cache_read");
  refused(in_place,
          "i, k = sch.get_loops('C')\nsch.parallel(i)\nsch.cache_inplace('C', 0, 'local')",
          "iterations of loop 'i' would share the copy of 'C'");
  refused(HEAD "def f(C: T.Buffer((9,), 'float32')):\n"
               "    for i in range(9):\n"
               "        with T.block('C'):\n"
               "            v = T.axis.spatial(9, i)\n"
               "            T.where(C[i] > T.float32(0))\n"
               "            C[v] = C[v] * T.float32(2)\n",
          "sch.cache_inplace('C', 0, 'local')", "the T.where of block 'C' reads 'C'");
}

static const char resize[] =
    HEAD "def f(A: T.Buffer((5, 8), 'float32'), B: T.Buffer((11, 7), 'float32')):\n"
         "    for i, j in T.grid(11, 7):\n"
         "        with T.block('B'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            B[vi, vj] = A[vi // 4 + vj // 4, vj // 2] * T.float32(2)"
         " + A[vi // 4, vj // 2 + 1]\n";

static void test_cache_index(void **state) {
  (void)state;
  made_with(resize, "sch.cache_index('B', 'global')",
            "A[index_var_0[vi, vj], index_var_2[vj]] * T.float32(2.0)");
  made_with(resize, "sch.cache_index('B', 'local', cse_thresh=2)", "index_var_0[vj] + 1");
  made_with(resize, "sch.cache_index('B', 'local', 3)", "A[vi // 4 + vj // 4, vj // 2]");
  made_with(resize,
            "i, j = sch.get_loops('B')\nsch.split(i, factors=[None, 4])\n"
            "a, b = sch.cache_index('B', 'local', cse_thresh=2)\nsch.compute_inline(a)\n",
            "vj // 2");
  // A division that may fail stays under its condition.
  made_with(HEAD "def f(A: T.Buffer((9,), 'int32'), B: T.Buffer((9, 4), 'int32')):\n"
                 "    for i, j in T.grid(9, 4):\n"
                 "        with T.block('B'):\n"
                 "            vi, vj = T.axis.remap('SS', [i, j])\n"
                 "            B[vi, vj] = T.if_then_else(vj > 0, A[vi // vj], vi - 4)\n",
            "sch.cache_index('B', 'local')", "A[vi // vj]");
  // The trace's other forms give an index another text, of which other parts may be stored.
  made(resize,
       "sch.transform_layout('B', ('read', 0), lambda i, j: [j % 2, i // 3, j // 2, i % 3])\n"
       "sch.cache_index('B', 'global', 1)");
  made(resize, "sch.split_axis('B', 'A', 0, [None, 1])\nsch.reorder_axes('B', 'A', [2, 1, 0])\n"
               "sch.cache_index('B', 'global', 1)");
  refused(resize, "sch.cache_index('B', 'globl')", "did you mean 'global'");
  refused(resize, "sch.cache_index('B', 'local', -1)", "cse_thresh is not negative");
}

// An argmax of rows, which keeps its operand where `INDEX` or `VALUE` holds.
#define ARGMAX(INDEX, VALUE)                                                                       \
  HEAD "def f(A: T.Buffer((5, 12), 'int32'), I: T.Buffer((5,), 'int32'),\n"                        \
       "      V: T.Buffer((5,), 'int32')):\n"                                                      \
       "    for i, k in T.grid(5, 12):\n"                                                          \
       "        with T.block('V'):\n"                                                              \
       "            vi, vk = T.axis.remap('SR', [i, k])\n"                                         \
       "            with T.init():\n"                                                              \
       "                I[vi] = -1\n"                                                              \
       "                V[vi] = -100\n"                                                            \
       "            at: T.int32 = T.Select(" INDEX ", I[vi], vk)\n"                                \
       "            value: T.int32 = T.Select(" VALUE ", V[vi], A[vi, vk])\n"                      \
       "            I[vi] = at\n"                                                                  \
       "            V[vi] = value\n"

#define FIRST "V[vi] >= A[vi, vk]"
#define LEAST "V[vi] > A[vi, vk] or (V[vi] == A[vi, vk] and I[vi] < vk)"
#define SPLIT "i, k = sch.get_loops('V')\nx, y = sch.split(k, factors=[None, 4])\n"

static void test_argmax_factors(void **state) {
  (void)state;
  made(ARGMAX(FIRST, FIRST), SPLIT "sch.rfactor(x, 1)\nsch.rfactor(y, 0)");
  made_with(ARGMAX(LEAST, "V[vi] > A[vi, vk]"), SPLIT "b = sch.rfactor(y, 0)\nsch.parallel(y)",
            "at_rf: T.int32 = T.Select(V_rf[vk_1, vi] > A[vi, vk_0 * 4 + vk_1]");
  made(ARGMAX(LEAST, LEAST), SPLIT "sch.rfactor(x, 1)");
  made(ARGMAX("V[vi] < A[vi, vk] or (V[vi] == A[vi, vk] and I[vi] >= vk)", "V[vi] <= A[vi, vk]"),
       SPLIT "sch.rfactor(y, 1)");
  made(ARGMAX(FIRST, FIRST), "i, k = sch.get_loops('V')\nx, y = sch.split(k, factors=[None, 5])\n"
                             "sch.rfactor(x, 1)");
  refused(ARGMAX(FIRST, FIRST), SPLIT "sch.rfactor(y, 1)", "keeps the first of equal elements");
  const char *message = "is not a reduction with an init";
  refused(ARGMAX("V[vi] > A[vi, vk]", FIRST), SPLIT "sch.rfactor(x, 1)", message); // the last
  refused(ARGMAX(FIRST, "V[vi] <= A[vi, vk]"), SPLIT "sch.rfactor(x, 1)", message);
  refused(ARGMAX("I[vi] >= A[vi, vk]", FIRST), SPLIT "sch.rfactor(x, 1)", message);
}

static void test_several_sums(void **state) {
  (void)state;
#define SUMS(FIRST_STORE, SECOND_STORE)                                                            \
  HEAD "def f(A: T.Buffer((5, 12), 'float32'), S: T.Buffer((5,), 'float32'),\n"                    \
       "      M: T.Buffer((5,), 'float32')):\n"                                                    \
       "    for i, k in T.grid(5, 12):\n"                                                          \
       "        with T.block('V'):\n"                                                              \
       "            vi, vk = T.axis.remap('SR', [i, k])\n"                                         \
       "            with T.init():\n"                                                              \
       "                M[vi] = T.float32(-5)\n"                                                   \
       "                S[vi] = T.float32(1)\n"                                                    \
       "            " FIRST_STORE "\n"                                                             \
       "            " SECOND_STORE "\n"
  made(SUMS("S[vi] = S[vi] - A[vi, vk]", "M[vi] = T.max(M[vi], A[vi, vk])"),
       SPLIT "b = sch.rfactor(y, 1)\nsch.parallel(i)");
  refused(SUMS("S[vi] = S[vi] + A[vi, vk]", "M[vi] = T.max(M[vi], S[vi])"),
          SPLIT "sch.rfactor(y, 1)", "is not a reduction with an init");
  refused(SUMS("S[vi] = S[vi] + A[vi, vk]", "M[vi + 0 * vk] = M[vi] * A[vi, vk] + S[vi]"),
          SPLIT "sch.rfactor(y, 1)", "is not a reduction with an init");
}

// A nest that writes a part of a buffer: the copy has that part alone.
static void test_parts_written(void **state) {
  (void)state;
#define PARTS(STORE)                                                                               \
  HEAD "def f(A: T.Buffer((13, 5), 'float32'), B: T.Buffer((14, 5), 'float32')):\n"                \
       "    for i in range(3):\n"                                                                  \
       "        with T.block('O'):\n"                                                              \
       "            vo = T.axis.spatial(3, i)\n"                                                   \
       "            for j, k in T.grid(4, 5):\n"                                                   \
       "                with T.block('B'):\n"                                                      \
       "                    vj, vk = T.axis.remap('SS', [j, k])\n"                                 \
       "                    " STORE "\n"
#define ROW "B[vo * 4 + vj + 1, vk] = A[vo * 4 + vj, vk]"
  const char *step = "sch.cache_write('B', 0, 'local')";
  made_with(PARTS(ROW), step, "B[vo * 4 + 1 + v0, v1] = B_local[v0, v1]");
  made(PARTS(ROW), "j, k = sch.get_loops('B')\nx, y = sch.split(j, factors=[None, 2])\n"
                   "sch.reorder(y, k, x)\nb = sch.cache_write('B', 0, 'local')");
  const char *message = "is not proved to write all of 'B'";
  refused(PARTS(ROW), "sch.cache_write('B', 0, 'local', consumer_blocks=['B'])", "does not read");
  refused(PARTS("T.where(j < 3)\n                    " ROW), step, message);
  refused(PARTS("B[vo * 4 + vj, vk % 2 * 2] = A[vo, vj]"), step, message);
  made(PARTS("B[vo * 4 + vj, vk // 2] = A[vo, vj]"), step);
  refused(PARTS("B[vo * 4, vk] = B[vo * 4, vk] + A[vj, vk]"), step, message);
}

// A block that leaves a loop reads what the last iteration wrote.
static void test_inputs_of_an_iteration(void **state) {
  (void)state;
#define NEST(SHAPE, INDEX)                                                                         \
  HEAD "def f(A: T.Buffer((8,), 'float32'), D: T.Buffer((8,), 'float32')):\n"                      \
       "    S = T.alloc_buffer((" SHAPE ",))\n"                                                    \
       "    C = T.alloc_buffer((8,))\n"                                                            \
       "    for i in range(8):\n"                                                                  \
       "        with T.block('S'):\n"                                                              \
       "            vi = T.axis.spatial(8, i)\n"                                                   \
       "            S[" INDEX "] = A[vi]\n"                                                        \
       "        with T.block('C'):\n"                                                              \
       "            vi = T.axis.spatial(8, i)\n"                                                   \
       "            C[vi] = S[" INDEX "] * T.float32(2)\n"                                         \
       "    for i in range(8):\n"                                                                  \
       "        with T.block('D'):\n"                                                              \
       "            vi = T.axis.spatial(8, i)\n"                                                   \
       "            D[vi] = C[vi] + T.float32(1)\n"
  const char *move = "i, = sch.get_loops('D')\nsch.compute_at('C', i)";
  const char *why = "a later iteration of loop 'i' is not proved to keep what it reads of 'S'";
  refused(NEST("1", "0"), move, why);
  refused(NEST("4", "vi % 4"), move, why);
  made(NEST("8", "vi"), move);
  made(NEST("8", "7 - vi"), move);
#undef NEST
  // Iterations that overlap compute the same elements again.
  made(HEAD "def f(A: T.Buffer((9,), 'float32'), D: T.Buffer((8,), 'float32')):\n"
            "    S = T.alloc_buffer((9,))\n"
            "    C = T.alloc_buffer((8,))\n"
            "    for i in range(9):\n"
            "        with T.block('S'):\n"
            "            vi = T.axis.spatial(9, i)\n"
            "            S[vi] = A[vi] + T.float32(3)\n"
            "    for i in range(8):\n"
            "        with T.block('C'):\n"
            "            vi = T.axis.spatial(8, i)\n"
            "            C[vi] = S[vi] * S[vi + 1]\n"
            "    for i in range(8):\n"
            "        with T.block('D'):\n"
            "            vi = T.axis.spatial(8, i)\n"
            "            D[vi] = C[vi] + T.float32(1)\n",
       "i, = sch.get_loops('C')\nsch.compute_at('S', i)\n"
       "i, = sch.get_loops('D')\nsch.compute_at('C', i)");
}

// Tiles that a block with blocks inside computes, and windows over them.
static const char *const tiles =
    HEAD "def f(A: T.Buffer((15, 8), 'float32'), C: T.Buffer((13, 7), 'float32')):\n"
         "    B = T.alloc_buffer((15, 8))\n"
         "    for i, j in T.grid(5, 2):\n"
         "        with T.block('tile'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            S = T.alloc_buffer((3, 4))\n"
         "            for k, l in T.grid(3, 4):\n"
         "                with T.block('S'):\n"
         "                    vk, vl = T.axis.remap('SS', [k, l])\n"
         "                    S[vk, vl] = A[vi * 3 + vk, vj * 4 + vl] * T.float32(2)\n"
         "            for k, l in T.grid(3, 4):\n"
         "                with T.block('B'):\n"
         "                    vk, vl = T.axis.remap('SS', [k, l])\n"
         "                    B[vi * 3 + vk, vj * 4 + vl] = S[vk, 3 - vl] + T.float32(1)\n"
         "    for i, j in T.grid(13, 7):\n"
         "        with T.block('C'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            C[vi, vj] = B[vi, vj] - B[vi + 2, vj + 1]\n";
#define LOOPS_OF_C "i, j = sch.get_loops('C')\n"

static void test_tiles_move(void **state) {
  (void)state;
  const char *windows[] = {"", "sch.split(i, [None, 3])\n", "sch.split(i, [None, 5])\n"};
  for (int w = 0; w < COUNT_OF(windows); w++)
    for (int at = 0; at < 2 + (w > 0); at++) {
      Context *context = context_new();
      made(tiles,
           arena_printf(&context->arena,
                        LOOPS_OF_C "%sl = sch.get_loops('C')\nsch.compute_at('tile', l[%d])\n",
                        windows[w], at));
      context_free(context);
    }
  // Rows 3i to 3i + 4 are of two tiles, and columns 4j to 4j + 4 of two of 4 columns.
  made_with(tiles,
            LOOPS_OF_C "a, b = sch.split(i, [None, 3])\nsch.reorder(a, j, b)\n"
                       "sch.compute_at('tile', a)\n",
            "vi = T.axis.spatial(5, i_0 + i)");
  const char *sum = HEAD "def f(A: T.Buffer((6, 7), 'float32'), D: T.Buffer((6,), 'float32')):\n"
                         "    C = T.alloc_buffer((6,))\n"
                         "    for i, k in T.grid(6, 7):\n"
                         "        with T.block('C'):\n"
                         "            vi, vk = T.axis.remap('SR', [i, k])\n"
                         "            with T.init():\n"
                         "                C[vi] = T.float32(0)\n"
                         "            C[vi] = C[vi] + A[vi, vk]\n"
                         "    for i in range(6):\n"
                         "        with T.block('D'):\n"
                         "            vi = T.axis.spatial(6, i)\n"
                         "            D[vi] = C[vi] + T.float32(1)\n";
  refused(sum,
          "i, k = sch.get_loops('C')\no = sch.blockize(k)\nd, = sch.get_loops('D')\n"
          "sch.compute_at(o, d)\n",
          "its executions are parts of a reduction");
  refused(tiles,
          "n, m = sch.get_loops('tile')\nsch.loop_partition(m, [1, None])\n"
          "j = sch.get_loops('C')\nsch.compute_at('tile_j_common', j[0])\n",
          "it uses variable 'i' of a loop around it");
}

// A producer that stores backwards, and one of which a condition of the reader leaves out a part.
static void test_windows_of_readers(void **state) {
  (void)state;
  made_with(HEAD "def f(A: T.Buffer((11, 7), 'float32'), C: T.Buffer((7, 11), 'float32')):\n"
                 "    B = T.alloc_buffer((11, 7))\n"
                 "    for i, j in T.grid(11, 7):\n"
                 "        with T.block('B'):\n"
                 "            vi, vj = T.axis.remap('SS', [i, j])\n"
                 "            B[10 - vi, 6 - vj] = A[vi, vj] + T.float32(1)\n"
                 "    for i, j in T.grid(7, 11):\n"
                 "        with T.block('C'):\n"
                 "            vi, vj = T.axis.remap('SS', [i, j])\n"
                 "            C[vi, vj] = B[vj, vi] * T.float32(2)\n",
            "i, j = sch.get_loops('C')\nsch.compute_at('B', i)\n", "vj = T.axis.spatial(7, 6 - i)");
  made_with(HEAD "def f(A: T.Buffer((13,), 'float32'), D: T.Buffer((5,), 'float32'),\n"
                 "      C: T.Buffer((9,), 'float32')):\n"
                 "    B = T.alloc_buffer((13,))\n"
                 "    for i in range(13):\n"
                 "        with T.block('B'):\n"
                 "            vi = T.axis.spatial(13, i)\n"
                 "            B[vi] = A[vi] + T.float32(1)\n"
                 "    for u, i in T.grid(1, 9):\n"
                 "        with T.block('C'):\n"
                 "            vi = T.axis.spatial(9, i)\n"
                 "            C[vi] = T.if_then_else(5 <= vi, B[vi - 5], D[T.min(vi, 4)])\n",
            "u, i = sch.get_loops('C')\nsch.compute_at('B', u)\n",
            "for i in range(4):\n            with T.block(\"B\")");
}

// A tensor of two parts, each from a nest of its own, and a copy of both.
static void test_parts_stay_complete(void **state) {
  (void)state;
  const char *parts = HEAD "def f(A: T.Buffer((4,), 'float32'), B: T.Buffer((7,), 'float32'),\n"
                           "      D: T.Buffer((11,), 'float32')):\n"
                           "    C = T.alloc_buffer((11,))\n"
                           "    for i in range(4):\n"
                           "        with T.block('C0'):\n"
                           "            vi = T.axis.spatial(4, i)\n"
                           "            C[vi] = A[vi]\n"
                           "    for i in range(7):\n"
                           "        with T.block('C1'):\n"
                           "            vi = T.axis.spatial(7, i)\n"
                           "            C[vi + 4] = B[vi]\n"
                           "    for i in range(11):\n"
                           "        with T.block('D'):\n"
                           "            vi = T.axis.spatial(11, i)\n"
                           "            D[vi] = C[vi] + T.float32(1)\n";
  refused(parts, "i, = sch.get_loops('C1')\nsch.reverse_compute_at('D', i)\n",
          "it reads values that the loop does not write, and there its loops are not proved");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_tiles_move),         cmocka_unit_test(test_parts_stay_complete),
      cmocka_unit_test(test_windows_of_readers), cmocka_unit_test(test_epilogues),
      cmocka_unit_test(test_epilogue_refusals),  cmocka_unit_test(test_epilogue_order),
      cmocka_unit_test(test_cache_inplace),      cmocka_unit_test(test_cache_index),
      cmocka_unit_test(test_argmax_factors),     cmocka_unit_test(test_several_sums),
      cmocka_unit_test(test_parts_written),      cmocka_unit_test(test_inputs_of_an_iteration),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
