// SPDX-License-Identifier: Apache-2.0
// Steps that run two stages in one nest and keep only a window of the first: merge and
// rolling_buffer.
#include "schedule_check.h"

// ---- merge -------------------------------------------------------------------------------------

static const char *const sums =
    HEAD "def f(A: T.Buffer((9, 5), 'float32'), B: T.Buffer((9, 5), 'float32'),\n"
         "      C: T.Buffer((9, 5), 'float32'), S: T.Buffer((1,), 'float32'),\n"
         "      R: T.Buffer((1,), 'float32'), E: T.Buffer((9, 5), 'float32')):\n"
         "    for i, j in T.grid(9, 5):\n"
         "        with T.block('B'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            B[vi, vj] = A[vi, vj] + T.float32(1)\n"
         "    for i, j in T.grid(9, 5):\n"
         "        with T.block('C'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            C[vi, vj] = B[vi, vj] * A[vi, 4 - vj]\n"
         "    for i, j in T.grid(9, 5):\n"
         "        with T.block('S'):\n"
         "            vi, vj = T.axis.remap('RR', [i, j])\n"
         "            with T.init():\n"
         "                S[0] = T.float32(0)\n"
         "            S[0] = S[0] + A[vi, vj]\n"
         "    for i, j in T.grid(9, 5):\n"
         "        with T.block('R'):\n"
         "            vi, vj = T.axis.remap('RR', [i, j])\n"
         "            with T.init():\n"
         "                R[0] = T.float32(1)\n"
         "            R[0] = T.max(R[0], A[vi, vj])\n"
         "    for i, j in T.grid(9, 5):\n"
         "        with T.block('E'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            E[vi, vj] = R[0] + C[vi, 4 - vj]\n"
         "    for i in range(8):\n"
         "        with T.block('F'):\n"
         "            vi = T.axis.spatial(8, i)\n"
         "            E[vi, 0] = T.float32(1)\n";

#define LOOPS(A, B)                                                                                \
  "ai, aj = sch.get_loops('" A "')\n"                                                              \
  "bi, bj = sch.get_loops('" B "')\n"

static void test_merge(void **state) {
  (void)state;
  made_with(sums, LOOPS("B", "C") "l = sch.merge(ai, bi)\nsch.parallel(l)",
            "for i_m in T.parallel(9):");
  made_with(sums, LOOPS("B", "C") "l = sch.merge(aj, bj)\nsch.unroll(l)", "for i_m in range(9):");
  made(sums, LOOPS("S", "R") "sch.merge(aj, bj)");
  made(sums, LOOPS("C", "S") "c, d = sch.get_loops('R')\nsch.merge(ai, bi, c)");
  refused(sums, LOOPS("R", "E") "sch.merge(ai, bi)", "in the same iterations of 'i'");
  refused(sums, LOOPS("B", "S") "sch.merge(ai, bi)", "nests that follow one another");
  refused(sums, LOOPS("B", "C") "sch.merge(bi, ai)", "nests that follow one another");
  refused(sums, LOOPS("B", "C") "sch.merge(ai, bj)", "nests that follow one another");
  refused(sums, LOOPS("B", "C") "sch.merge(ai)", "two loops or more");
  refused(sums, LOOPS("B", "C") "sch.parallel(ai)\nsch.merge(ai, bi)", "does not run in order");
  refused(sums, "a, b = sch.get_loops('E')\nc, = sch.get_loops('F')\nsch.merge(a, c)",
          "the same iterations");
  refused(sums,
          LOOPS("B", "C") "sch.transform_block_layout('B', lambda i, j: [j, i])\n"
                          "x, y = sch.get_loops('B')\nsch.merge(x, bi)",
          "the same iterations");
}

// Row i of S is written in iteration i, from the last row on in T; the readers' windows of rows end
// at that row.
static const char *const windows =
    HEAD "def f(A: T.Buffer((7, 5), 'float32'), S: T.Buffer((9, 5), 'float32'),\n"
         "      T: T.Buffer((9, 5), 'float32'), C: T.Buffer((7, 5), 'float32'),\n"
         "      D: T.Buffer((7, 5), 'float32')):\n"
         "    for i, j in T.grid(7, 5):\n"
         "        with T.block('S'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            S[vi + 2, vj] = A[vi, vj]\n"
         "    for i, j in T.grid(7, 5):\n"
         "        with T.block('C'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            C[vi, vj] = S[vi, 4 - vj] + S[vi + 2, vj]\n"
         "    for i, j in T.grid(7, 5):\n"
         "        with T.block('T'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            T[6 - vi, vj] = A[vi, vj] + S[vi + 2, vj]\n"
         "    for i, j in T.grid(7, 5):\n"
         "        with T.block('D'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            D[vi, vj] = T[6 - vi, vj] + T[8 - vi, vj] + S[vi + 1, vj]\n"
         "            S[vi, vj] = T.float32(3)\n";

static void test_merge_behind_windows(void **state) {
  (void)state;
  made(windows, LOOPS("S", "C") "sch.merge(ai, bi)");
  refused(windows, LOOPS("S", "C") "sch.merge(aj, bj)", "in the same iterations of 'j'");
  made(windows, LOOPS("C", "T") "sch.merge(aj, bj)");
  made(windows, LOOPS("T", "D") "sch.merge(aj, bj)");
  made(windows, LOOPS("S", "C") "ci, cj = sch.get_loops('T')\nsch.merge(ai, bi, ci)");
  made(windows, LOOPS("S", "C") "l = sch.merge(ai, bi)\nti, tj = sch.get_loops('T')\n"
                                "l = sch.merge(l, ti)\ndi, dj = sch.get_loops('D')\n"
                                "sch.merge(l, di)");
  refused(windows, LOOPS("S", "C") "l = sch.merge(ai, bi)\nsch.parallel(l)", "independent");
  refused(windows,
          LOOPS("S", "C") "sch.bind(ai, 'threadIdx.x')\nsch.bind(bi, 'threadIdx.x')\n"
                          "sch.merge(ai, bi)",
          "in the same iterations of 'i'");
}

// ---- rolling_buffer ----------------------------------------------------------------------------

// Two stages of which the second reads three rows and two columns of the first.
static const char *const cascade =
    HEAD "def f(A: T.Buffer((2, 15, 8), 'float32'), C: T.Buffer((2, 11, 7), 'float32')):\n"
         "    B = T.alloc_buffer((2, 13, 8))\n"
         "    for c, h, w, k in T.grid(2, 13, 8, 3):\n"
         "        with T.block('B'):\n"
         "            vc, vh, vw, vk = T.axis.remap('SSSR', [c, h, w, k])\n"
         "            with T.init():\n"
         "                B[vc, vh, vw] = T.float32(0)\n"
         "            B[vc, vh, vw] = B[vc, vh, vw] + A[vc, vh + vk, vw]\n"
         "    for c, h, w, k, l in T.grid(2, 11, 7, 3, 2):\n"
         "        with T.block('C'):\n"
         "            vc, vh, vw, vk, vl = T.axis.remap('SSSRR', [c, h, w, k, l])\n"
         "            with T.init():\n"
         "                C[vc, vh, vw] = T.float32(1)\n"
         "            C[vc, vh, vw] = C[vc, vh, vw] + B[vc, vh + vk, vw + vl] * T.float32(2)\n";

#define TILE_ROWS(SIZE)                                                                            \
  "c, h, w, k, l = sch.get_loops('C')\nho, hi = sch.split(h, factors=[None, " #SIZE "])\n"
#define TILE_BOTH(ROWS, COLUMNS)                                                                   \
  TILE_ROWS(ROWS)                                                                                  \
  "wo, wi = sch.split(w, factors=[None, " #COLUMNS "])\nsch.reorder(ho, wo, hi, wi)\n"
#define ROLL(LOOP) "sch.compute_at('B', " LOOP ")\nsch.rolling_buffer('B', 0)\n"

static void test_rolling_buffer(void **state) {
  (void)state;
  made_with(cascade, TILE_ROWS(4) ROLL("ho"), "B = T.alloc_buffer((2, 6, 8)");
  made_with(cascade, TILE_ROWS(4) ROLL("ho"), "(h_0 < 1 or 2 <= h)");
  made_with(cascade, TILE_ROWS(1) ROLL("ho"), "B = T.alloc_buffer((2, 3, 8)");
  made_with(cascade, TILE_ROWS(3) ROLL("ho"), "vh = T.axis.opaque(13, h_0 * 3 + h)");
  made_with(cascade, TILE_BOTH(4, 3) ROLL("wo"), "B = T.alloc_buffer((2, 6, 8)");
  made_with(cascade, TILE_BOTH(4, 3) ROLL("wo"), "(h_0 < 1 or 2 <= h) and (w_0 < 1 or 1 <= w)");
  made_with(cascade, TILE_BOTH(11, 3) ROLL("wo"), "B = T.alloc_buffer((2, 13, 4)");
  made(cascade, TILE_BOTH(2, 5) "sch.reorder(wo, ho)\n" ROLL("ho"));
  made(cascade, TILE_ROWS(4) "sch.reorder(ho, c)\n" ROLL("c"));
  made(cascade, TILE_ROWS(2) ROLL("ho") "l = sch.get_loops('B')\nsch.vectorize(l[3])\n");
  made(cascade, TILE_ROWS(2) ROLL("ho") "l = sch.get_loops('B')\n"
                                        "sch.decompose_reduction('B', l[4])\n");
}

// Windows of all small sizes and strides, in tiles that need not divide the extents.
static void test_rolled_windows(void **state) {
  (void)state;
  Context *context = context_new();
  for (int at = 0; at < 108; at++) {
    int stride = 1 + at % 3, window = 1 + at / 3 % 4, rows = 1 + at / 12 % 3, columns = 1 + at / 36;
    const char *text = arena_printf(
        &context->arena,
        HEAD "def f(A: T.Buffer((%d, %d), 'float32'), C: T.Buffer((7, 5), 'float32')):\n"
             "    B = T.alloc_buffer((%d, %d))\n"
             "    for h, w in T.grid(%d, %d):\n"
             "        with T.block('B'):\n"
             "            vh, vw = T.axis.remap('SS', [h, w])\n"
             "            B[vh, vw] = A[vh, vw] + T.float32(1)\n"
             "    for h, w, k, l in T.grid(7, 5, %d, %d):\n"
             "        with T.block('C'):\n"
             "            vh, vw, vk, vl = T.axis.remap('SSRR', [h, w, k, l])\n"
             "            with T.init():\n"
             "                C[vh, vw] = T.float32(0)\n"
             "            C[vh, vw] = C[vh, vw] + B[vh * %d + vk, vw * %d + vl]\n",
        6 * stride + window, 4 * stride + 5 - window, 6 * stride + window, 4 * stride + 5 - window,
        6 * stride + window, 4 * stride + 5 - window, window, 5 - window, stride, stride);
    const char *steps =
        arena_printf(&context->arena,
                     "h, w, k, l = sch.get_loops('C')\nho, hi = sch.split(h, factors=[None, %d])\n"
                     "wo, wi = sch.split(w, factors=[None, %d])\nsch.reorder(%s, hi, wi)\n"
                     "sch.compute_at('B', %s)\nsch.rolling_buffer('B', 0)",
                     rows, columns, at % 2 ? "ho, wo" : "wo, ho", at % 2 ? "wo" : "ho");
    if (window > stride || 5 - window > stride)
      made(text, steps);
    else
      refused(text, steps, "no axis is read in windows");
  }
  context_free(context);
}

static void test_rolling_buffer_refusals(void **state) {
  (void)state;
  refused(HEAD "def f(A: T.Buffer((9,), 'float32'), C: T.Buffer((5,), 'float32')):\n"
               "    B = T.alloc_buffer((9,))\n"
               "    for i in range(9):\n"
               "        with T.block('B'):\n"
               "            v = T.axis.spatial(9, i)\n"
               "            B[v] = A[v] + T.float32(1)\n"
               "    for i, k in T.grid(5, 4):\n"
               "        with T.block('C'):\n"
               "            vi, vk = T.axis.remap('SR', [i, k])\n"
               "            with T.init():\n"
               "                C[vi] = T.float32(0)\n"
               "            C[vi] = C[vi] + B[vi + vk]\n",
          "i, k = sch.get_loops('C')\nsch.reorder(k, i)\nsch.compute_at('B', k)\n"
          "sch.rolling_buffer('B', 0)",
          "block 'C' has an init and reduces in the rolled loop");
  refused(cascade, "sch.rolling_buffer('B', 0)", "have no loop in common");
  refused(cascade, "sch.rolling_buffer('C', 0)", "it is a parameter of the function");
  refused(cascade, "sch.rolling_buffer('B', 1)", "there is no number 1");
  refused(cascade, TILE_ROWS(4) ROLL("ho") "sch.rolling_buffer('B', 0)", "it is rolled already");
  refused(cascade, TILE_ROWS(11) ROLL("c"), "no axis is read in windows");
  refused(cascade,
          TILE_ROWS(4) "sch.compute_at('B', ho)\nsch.parallel(c)\n"
                       "sch.rolling_buffer('B', 0)",
          "the iterations of loop 'c' do not run one after the other");
  refused(cascade, TILE_ROWS(4) ROLL("ho") "sch.parallel(ho)", "may access the same element");
  refused(cascade, TILE_ROWS(4) ROLL("ho") "sch.compute_inline('B')", "");
  refused(cascade,
          "c, h, w, k = sch.get_loops('B')\nsch.split(k, factors=[None, 2])\n" TILE_ROWS(
              4) "sch.cache_write('C', 0, 'local')\nsch.transform_layout('B', ('write', 0), "
                 "lambda c, h, w: [h, c, w])\n" ROLL("ho"),
          "its layout was changed");
  // The second stage reads what other iterations wrote, and not what its own did.
  refused(HEAD "def f(A: T.Buffer((9,), 'float32'), C: T.Buffer((8,), 'float32')):\n"
               "    B = T.alloc_buffer((9,))\n"
               "    for i in range(8):\n"
               "        for j in range(2):\n"
               "            with T.block('B'):\n"
               "                v = T.axis.spatial(9, i + j)\n"
               "                B[v] = A[v] + T.float32(1)\n"
               "        with T.block('C'):\n"
               "            v = T.axis.spatial(8, i)\n"
               "            C[v] = B[v // 2]\n",
          "sch.rolling_buffer('B', 0)", "not proved to write what it reads");
  // The first stage reads what changes between the iterations.
  refused(HEAD "def f(A: T.Buffer((9,), 'float32'), C: T.Buffer((8,), 'float32')):\n"
               "    B = T.alloc_buffer((9,))\n"
               "    for i in range(8):\n"
               "        for j in range(2):\n"
               "            with T.block('B'):\n"
               "                v = T.axis.spatial(9, i + j)\n"
               "                B[v] = A[v] + T.float32(1)\n"
               "        for j in range(2):\n"
               "            with T.block('C'):\n"
               "                v, r = T.axis.remap('SR', [i, j])\n"
               "                with T.init():\n"
               "                    C[v] = T.float32(0)\n"
               "                C[v] = C[v] + B[v + r]\n"
               "        with T.block('A'):\n"
               "            v = T.axis.spatial(8, i)\n"
               "            A[v + 1] = A[v + 1] * T.float32(2)\n",
          "sch.rolling_buffer('B', 0)", "not proved to have the same elements in all iterations");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_merge),
      cmocka_unit_test(test_merge_behind_windows),
      cmocka_unit_test(test_rolling_buffer),
      cmocka_unit_test(test_rolled_windows),
      cmocka_unit_test(test_rolling_buffer_refusals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
