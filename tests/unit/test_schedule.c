// SPDX-License-Identifier: Apache-2.0
// Tests schedule steps one by one, on small programs: a step that is made must keep the results and
// replay from its trace; a step that is refused must say why.
#include "schedule_check.h"

static const char copy[] =
    HEAD "def f(A: T.Buffer((30, 7), 'float32'), B: T.Buffer((30, 7), 'float32')):\n"
         "    for i, j in T.grid(30, 7):\n"
         "        with T.block('B'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            B[vi, vj] = A[vi, vj] * T.float32(2)\n";

static const char matmul[] =
    HEAD "def f(A: T.Buffer((13, 11), 'float32'), B: T.Buffer((11, 6), 'float32'),\n"
         "      C: T.Buffer((13, 6), 'float32')):\n"
         "    for i, j, k in T.grid(13, 6, 11):\n"
         "        with T.block('C'):\n"
         "            vi, vj, vk = T.axis.remap('SSR', [i, j, k])\n"
         "            with T.init():\n"
         "                C[vi, vj] = T.float32(0)\n"
         "            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]\n";

static const char scan[] = HEAD "def f(A: T.Buffer((9, 5), 'float32')):\n"
                                "    for i, j in T.grid(8, 5):\n"
                                "        with T.block('A'):\n"
                                "            vi, vj = T.axis.remap('SS', [i, j])\n"
                                "            A[vi + 1, vj] = A[vi, 4 - vj] + T.float32(1)\n";

// Three stages in a row and a side branch.
static const char chain[] =
    HEAD "def f(A: T.Buffer((12, 10), 'float32'), R: T.Buffer((12, 10), 'float32'),\n"
         "      D: T.Buffer((12, 10), 'float32')):\n"
         "    B = T.alloc_buffer((12, 10))\n"
         "    C = T.alloc_buffer((12, 10))\n"
         "    for i, j in T.grid(12, 10):\n"
         "        with T.block('B'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            B[vi, vj] = A[vi, vj] * T.float32(2)\n"
         "    for i, j in T.grid(12, 10):\n"
         "        with T.block('C'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            C[vi, vj] = B[vi, vj] + R[vi, vj]\n"
         "    for i, j in T.grid(12, 10):\n"
         "        with T.block('D'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            D[vi, vj] = T.max(C[vi, vj], T.float32(0))\n";

// A padded convolution in one dimension with a bias and an activation.
static const char conv[] = HEAD
    "def f(X: T.Buffer((5, 17), 'float32'), W: T.Buffer((6, 5, 3), 'float32'),\n"
    "      b: T.Buffer((6,), 'float32'), Y: T.Buffer((6, 17), 'float32')):\n"
    "    P = T.alloc_buffer((5, 19))\n"
    "    C = T.alloc_buffer((6, 17))\n"
    "    for c, x in T.grid(5, 19):\n"
    "        with T.block('pad'):\n"
    "            vc, vx = T.axis.remap('SS', [c, x])\n"
    "            P[vc, vx] = T.if_then_else(1 <= vx and vx < 18, X[vc, vx - 1], T.float32(0))\n"
    "    for o, x, c, k in T.grid(6, 17, 5, 3):\n"
    "        with T.block('conv'):\n"
    "            vo, vx, vc, vk = T.axis.remap('SSRR', [o, x, c, k])\n"
    "            with T.init():\n"
    "                C[vo, vx] = T.float32(0)\n"
    "            C[vo, vx] = C[vo, vx] + P[vc, vx + vk] * W[vo, vc, vk]\n"
    "    for o, x in T.grid(6, 17):\n"
    "        with T.block('relu'):\n"
    "            vo, vx = T.axis.remap('SS', [o, x])\n"
    "            Y[vo, vx] = T.max(C[vo, vx] + b[vo], T.float32(0))\n";

// ---- Loops -----------------------------------------------------------------------------------

static void test_split(void **state) {
  (void)state;
  made(copy, "i, j = sch.get_loops('B')\n"
             "x, y = sch.split(i, factors=[None, 5])\n"
             "p, q, r = sch.split(j, factors=[2, None, 2])\n"
             "sch.split(x, factors=[6])\n");
  made(matmul, "i, j, k = sch.get_loops('C')\n"
               "sch.split(i, factors=[None, 4])\n"
               "sch.split(k, factors=[3, -1])\n"
               "sch.split(j, factors=[7, 1])\n");
  refused(copy, "i, j = sch.get_loops('B')\nsch.split(i, factors=[3, 7])\n",
          "21 iterations of the 30");
  refused(copy, "i, j = sch.get_loops('B')\nsch.split(i, factors=[None, None])\n", "only one");
  refused(copy, "i, j = sch.get_loops('B')\nsch.split(i, factors=[None, 0])\n", "factor 1");
  refused(copy, "i, j = sch.get_loops('B')\nsch.parallel(i)\nsch.split(i, factors=[None, 4])\n",
          "do this step before");
}

static void test_fuse(void **state) {
  (void)state;
  made(copy, "i, j = sch.get_loops('B')\nf = sch.fuse(i, j)\n"
             "a, b = sch.split(f, factors=[None, 16])\nsch.parallel(a)\nsch.vectorize(b)\n");
  made(matmul,
       "i, j, k = sch.get_loops('C')\nf = sch.fuse(j, k)\nsch.split(f, factors=[4, None])\n");
  refused(matmul, "i, j, k = sch.get_loops('C')\nsch.fuse(i, k)\n", "is not directly around");
  refused(matmul, "i, j, k = sch.get_loops('C')\nsch.fuse(j, i)\n", "is not directly around");
}

static void test_reorder(void **state) {
  (void)state;
  made(matmul, "i, j, k = sch.get_loops('C')\nsch.reorder(k, j, i)\n");
  made(matmul,
       "i, j, k = sch.get_loops('C')\n"
       "k0, k1 = sch.split(k, factors=[None, 4])\ni0, i1 = sch.split(i, factors=[None, 3])\n"
       "sch.reorder(i0, k1, j, k0, i1)\n");
  made(copy, "i, j = sch.get_loops('B')\nf = sch.fuse(i, j)\n"
             "a, b = sch.split(f, factors=[None, 4])\nsch.reorder(b, a)\n");
  refused(scan, "i, j = sch.get_loops('A')\nsch.reorder(j, i)\n", "may access the same element");
  // One loop is part of the output and part of the reduction: its factors cannot be reordered.
  refused(matmul,
          "i, j, k = sch.get_loops('C')\nf = sch.fuse(j, k)\n"
          "a, b = sch.split(f, factors=[None, 5])\nsch.reorder(b, a)\n",
          "may access the same element");
  refused(matmul, "i, j, k = sch.get_loops('C')\nsch.reorder(k, k)\n", "given twice");
  refused(chain, "i, j = sch.get_loops('B')\nx, y = sch.get_loops('C')\nsch.reorder(j, x)\n",
          "not nested");
}

// A split that does not divide: only its predicate separates two blocks of rows.
static void test_cut_numbers(void **state) {
  (void)state;
  made(copy, "i, j = sch.get_loops('B')\ni0, i1 = sch.split(i, factors=[None, 5])\n"
             "f = sch.fuse(i1, j)\nt, r = sch.split(f, factors=[None, 6])\nsch.parallel(i0)\n");
  made(copy,
       "i, j = sch.get_loops('B')\ni0, i1 = sch.split(i, factors=[None, 5])\n"
       "f = sch.fuse(i1, j)\nt, r = sch.split(f, factors=[None, 6])\nsch.reorder(r, i0, t)\n");
  // The rows of B that the last tile would read past its end belong to the next iteration of i0.
  made(chain, "i, j = sch.get_loops('C')\ni0, i1 = sch.split(i, factors=[None, 2])\n"
              "sch.compute_at('B', i0)\nf = sch.fuse(i1, j)\n"
              "t, r = sch.split(f, factors=[None, 6])\nsch.parallel(i0)\n");
  refused(scan,
          "i, j = sch.get_loops('A')\ni0, i1 = sch.split(i, factors=[None, 4])\n"
          "f = sch.fuse(i1, j)\nt, r = sch.split(f, factors=[None, 6])\nsch.parallel(i0)\n",
          "may access the same element");
}

static void test_unit_loops_and_kinds(void **state) {
  (void)state;
  made(copy, "b = sch.get_block('B')\nu = sch.add_unit_loop(b)\ni, j, k = sch.get_loops(b)\n"
             "sch.parallel(i)\nsch.unroll(j)\nv = sch.add_unit_loop(i)\nsch.reorder(v, i)\n");
  made(copy, "i, j = sch.get_loops('B')\nsch.bind(i, 'blockIdx.x')\nsch.bind(j, 'threadIdx.x')\n");
  refused(matmul, "i, j, k = sch.get_loops('C')\nsch.parallel(k)\n", "may access the same element");
  refused(matmul, "i, j, k = sch.get_loops('C')\nsch.vectorize(k)\n", "rfactor");
  made(matmul, "b = sch.get_block('C')\ni, j, k = sch.get_loops(b)\n"
               "sch.decompose_reduction(b, k)\nsch.vectorize(k)\n");
  refused(scan, "i, j = sch.get_loops('A')\nsch.parallel(i)\n", "may access the same element");
  refused(copy, "i, j = sch.get_loops('B')\nsch.bind(i, 'threadIdx.w')\n", "not a thread axis");
}

static void test_annotations(void **state) {
  (void)state;
  Context *context = context_new();
  Schedule *schedule =
      check_made(context, copy,
                 "b = sch.get_block('B')\ni, j = sch.get_loops(b)\n"
                 "sch.annotate(b, 'note', ['a', 1, True])\nsch.annotate(i, 'pace', 2.5)\n"
                 "sch.annotate(j, 'gone', 1)\nsch.unannotate(j, ann_key='gone')\n"
                 "sch.loop_partition(j)\n");
  Block *block = schedule_block(schedule, str_intern(context, "B"));
  assert_int_equal(attrs_get(&block->annotations, "note")->count, 3);
  LoopRefs loops = {0};
  schedule_get_loops(schedule, block->name, &loops);
  assert_non_null(attrs_get(&schedule_loop(schedule, loops.items[0])->as.loop.annotations, "pace"));
  const Attrs *attrs = &schedule_loop(schedule, loops.items[1])->as.loop.annotations;
  assert_null(attrs_get(attrs, "gone"));
  assert_non_null(attrs_get(attrs, "pleat.partition"));
  context_free(context);
  refused(copy, "sch.unannotate('B', 'x')\n", "no annotation");
}

static void test_queries(void **state) {
  (void)state;
  Context *context = context_new();
  Schedule *schedule = schedule_new(context, check_parse(context, chain));
  BlockRef block;
  BlockRefs refs = {0};
  assert_true(schedule_get_block(schedule, "C", &block));
  assert_true(schedule_get_producers(schedule, block, &refs));
  assert_int_equal(refs.count, 1);
  assert_string_equal(refs.items[0], "B");
  assert_true(schedule_get_consumers(schedule, block, &refs));
  assert_string_equal(refs.items[1], "D");
  refs.count = 0;
  assert_true(schedule_get_child_blocks(schedule, str_intern(context, "root"), NULL, &refs));
  assert_int_equal(refs.count, 3);
  schedule_quiet(schedule, true);
  assert_false(schedule_get_block(schedule, "roots", NULL));
  assert_non_null(strstr(schedule_refusal(schedule), "no block 'roots'; did you mean 'root'"));
  assert_int_equal(context->error_count, 0);
  context_free(context);
}

// ---- Inlining --------------------------------------------------------------------------------

static void test_compute_inline(void **state) {
  (void)state;
  made(chain, "sch.compute_inline('B')\nsch.compute_inline('C')\n");
  made(chain, "i, j = sch.get_loops('C')\nsch.fuse(i, j)\nsch.compute_inline('C')\n"
              "sch.compute_inline('B')\n");
  made(conv, "sch.compute_inline('pad')\n");
  refused(chain, "sch.compute_inline('D')\n", "not an allocation");
  refused(conv, "sch.compute_inline('conv')\n", "is a reduction");
  refused(HEAD "def f(A: T.Buffer((6,), 'float32'), C: T.Buffer((6,), 'float32')):\n"
               "    B = T.alloc_buffer((6,))\n"
               "    for i in range(6):\n"
               "        with T.block('B'):\n"
               "            vi = T.axis.spatial(6, i)\n"
               "            B[vi] = A[vi] + T.float32(1)\n"
               "    for i in range(6):\n"
               "        with T.block('A'):\n"
               "            vi = T.axis.spatial(6, i)\n"
               "            A[vi] = T.float32(0)\n"
               "    for i in range(6):\n"
               "        with T.block('C'):\n"
               "            vi = T.axis.spatial(6, i)\n"
               "            C[vi] = B[vi]\n",
          "sch.compute_inline('B')\n", "block 'A' writes 'A'");
}

static void test_reverse_compute_inline(void **state) {
  (void)state;
  made(chain, "sch.reverse_compute_inline('D')\nsch.reverse_compute_inline('C')\n");
  made(chain, "i, j = sch.get_loops('B')\nsch.split(j, factors=[None, 4])\n"
              "sch.reverse_compute_inline('C')\nsch.reverse_compute_inline('D')\n");
  // Transposed, and cropped.
  made(HEAD "def f(A: T.Buffer((6, 9), 'float32'), C: T.Buffer((5, 6), 'float32')):\n"
            "    B = T.alloc_buffer((6, 9))\n"
            "    for i, j in T.grid(6, 9):\n"
            "        with T.block('B'):\n"
            "            vi, vj = T.axis.remap('SS', [i, j])\n"
            "            B[vi, vj] = A[vi, vj] + T.float32(1)\n"
            "    for j, i in T.grid(5, 6):\n"
            "        with T.block('C'):\n"
            "            vj, vi = T.axis.remap('SS', [j, i])\n"
            "            C[vj, vi] = B[vi, vj] * T.float32(3)\n",
       "sch.reverse_compute_inline('C')\n");
  refused(conv, "sch.reverse_compute_inline('relu')\n", "reverse_compute_at instead");
  refused(conv, "sch.reverse_compute_inline('conv')\n", "is a reduction");
}

static const char widened[] =
    HEAD "def f(A: T.Buffer((5,), 'float32'), C: T.Buffer((8,), 'float32')):\n"
         "    B = T.alloc_buffer((5,))\n"
         "    for i in range(5):\n"
         "        with T.block('B'):\n"
         "            vi = T.axis.spatial(5, i)\n"
         "            B[vi] = A[vi] + T.float32(1)\n"
         "    for i in range(8):\n"
         "        with T.block('C'):\n"
         "            vi = T.axis.spatial(8, i)\n"
         "            C[vi] = T.if_then_else(vi < 5, B[vi], T.float32(0))\n";

// A consumer with more points than its producer would lose some.
static void test_consumers_that_pad(void **state) {
  (void)state;
  refused(widened, "sch.reverse_compute_inline('C')\n", "under a condition");
  refused(widened, "i, = sch.get_loops('B')\nsch.reverse_compute_at('C', i)\n",
          "under a condition");
  made(widened, "sch.compute_inline('B')\n");
  made(widened, "i, = sch.get_loops('C')\na, b = sch.split(i, factors=[None, 3])\n"
                "sch.compute_at('B', a)\n");
}

// ---- Moving ----------------------------------------------------------------------------------

static void test_compute_at(void **state) {
  (void)state;
  made(chain, "i, j = sch.get_loops('D')\nsch.compute_at('C', i)\n"
              "sch.compute_at('B', i, preserve_unit_loops=True)\n");
  made(chain, "i, j = sch.get_loops('D')\na, b = sch.split(i, factors=[None, 5])\n"
              "c, d = sch.split(j, factors=[None, 3])\nsch.reorder(a, c, b, d)\n"
              "sch.compute_at('C', c)\nsch.compute_at('B', a)\n");
  // Overlapping windows: the padded input by tiles of the convolution.
  made(conv, "o, x, c, k = sch.get_loops('conv')\nx0, x1 = sch.split(x, factors=[None, 4])\n"
             "sch.reorder(x0, o)\nsch.compute_at('pad', x0)\nsch.parallel(x0)\n");
  made(conv, "o, x = sch.get_loops('relu')\nx0, x1 = sch.split(x, factors=[None, 7])\n"
             "sch.compute_at('conv', x0)\nsch.compute_at('pad', x0)\n");
  refused(chain, "i, j = sch.get_loops('C')\nsch.compute_at('D', i)\n", "it is an output block");
  refused(chain, "i, j = sch.get_loops('B')\nsch.compute_at('C', i)\n",
          "writes 'B', which it reads");
  refused(chain, "i, j = sch.get_loops('D')\nsch.compute_at('B', i)\n",
          "requires all the consumers below that loop, and 'C' is not");
  refused(chain, "i, j = sch.get_loops('C')\nsch.compute_at('C', i)\n",
          "already an ancestor of block 'C'");
}

// One block writes two buffers, of which C reads different elements.
static void test_compute_several_results_at(void **state) {
  (void)state;
  Context *context = context_new();
  static const char program[] =
      HEAD "def f(A: T.Buffer((13,), 'float32'), C: T.Buffer((12,), 'float32')):\n"
           "    S = T.alloc_buffer((13,))\n"
           "    P = T.alloc_buffer((%s,))\n"
           "    for i in range(13):\n"
           "        with T.block('both'):\n"
           "            vi = T.axis.spatial(13, i)\n"
           "            S[vi] = A[vi] + T.float32(1)\n"
           "            P[%s] = A[vi] * T.float32(3)\n"
           "    for i in range(12):\n"
           "        with T.block('C'):\n"
           "            vi = T.axis.spatial(12, i)\n"
           "            C[vi] = S[vi] - P[vi + 1]\n";
  static const char steps[] = "i, = sch.get_loops('C')\no, n = sch.split(i, factors=[None, 5])\n"
                              "sch.compute_at('both', o)\n";
  made(arena_printf(&context->arena, program, "13", "vi"), steps);
  refused(arena_printf(&context->arena, program, "13", "12 - vi"), steps,
          "several buffers that differ in shape, memory or index");
  refused(arena_printf(&context->arena, program, "14", "vi"), steps,
          "several buffers that differ in shape, memory or index");
  context_free(context);
}

// B is a parameter: it is computed at a loop only where all its elements are.
static void test_compute_parameter_at(void **state) {
  (void)state;
  Context *context = context_new();
  static const char program[] =
      HEAD "def f(A: T.Buffer((13,), 'float32'), B: T.Buffer((13,), 'float32'),\n"
           "      C: T.Buffer((13,), 'float32')):\n"
           "    for i in range(13):\n"
           "        with T.block('B'):\n"
           "            vi = T.axis.spatial(13, i)\n"
           "            B[vi] = A[vi] + T.float32(1)\n"
           "    for i in range(%d):\n"
           "        with T.block('C'):\n"
           "            vi = T.axis.spatial(%d, i)\n"
           "            C[vi] = B[vi] * T.float32(2)\n";
  const char *whole = arena_printf(&context->arena, program, 13, 13);
  const char *part = arena_printf(&context->arena, program, 12, 12);
  static const char steps[] = "i, = sch.get_loops('C')\na, b = sch.split(i, factors=[None, 4])\n"
                              "sch.compute_at('B', a)\n";
  made(whole, steps);
  made(whole, "i, = sch.get_loops('C')\nsch.compute_at('B', i)\n");
  refused(part, steps, "a parameter of the function, and there its loops");
  refused(part, "i, = sch.get_loops('C')\nsch.compute_at('B', i)\n", "run over its domain");
  context_free(context);
}

// In each iteration of t, B reads what X stores there; C reads B of this iteration and of one
// beside it.
static void test_compute_at_again(void **state) {
  (void)state;
  Context *context = context_new();
  static const char program[] =
      HEAD "def f(A: T.Buffer((7, 13), 'float32'), C: T.Buffer((7, 13), 'float32')):\n"
           "    X = T.alloc_buffer((7, 13))\n"
           "    B = T.alloc_buffer((7, 13))\n"
           "    for t in range(7):\n"
           "        for i in range(13):\n"
           "            with T.block('X'):\n"
           "                vt, vi = T.axis.remap('SS', [t, i])\n"
           "                X[%s, vi] = A[vt, vi] + T.float32(1)\n"
           "        for i in range(13):\n"
           "            with T.block('B'):\n"
           "                vt, vi = T.axis.remap('SS', [t, i])\n"
           "                B[vt, vi] = X[%s, vi] * T.float32(2)\n"
           "        for i in range(13):\n"
           "            with T.block('C'):\n"
           "                vt, vi = T.axis.remap('SS', [t, i])\n"
           "                C[vt, vi] = B[vt, vi] + T.if_then_else(%s, B[%s, vi], T.float32(0))\n";
  static const char steps[] = "t, i = sch.get_loops('C')\nsch.compute_at('B', i)\n";
  static const char why[] = "stores in other iterations of a loop around both";
  made(arena_printf(&context->arena, program, "vt", "vt", "vt > 0", "vt - 1"), steps);
  refused(arena_printf(&context->arena, program, "0", "0", "vt > 0", "vt - 1"), steps, why);
  refused(arena_printf(&context->arena, program, "vt", "vt", "0 == 1", "vt + 1"), steps, why);
  context_free(context);
}

// In each iteration of t, s1 reads row t of S and s2 writes row t + 1, or row t.
static void test_compute_at_in_a_recurrence(void **state) {
  (void)state;
  Context *context = context_new();
  static const char program[] =
      HEAD "def f(X: T.Buffer((7, 13), 'float32'), S: T.Buffer((8, 13), 'float32')):\n"
           "    B = T.alloc_buffer((7, 13))\n"
           "    for t in range(7):\n"
           "        for i in range(13):\n"
           "            with T.block('s1'):\n"
           "                vt, vi = T.axis.remap('SS', [t, i])\n"
           "                B[vt, vi] = S[vt, %s] * T.float32(2)\n"
           "        for i in range(13):\n"
           "            with T.block('s2'):\n"
           "                vt, vi = T.axis.remap('SS', [t, i])\n"
           "                S[vt%s, vi] = B[vt, vi] + X[vt, vi]\n";
  static const char steps[] = "t, i = sch.get_loops('s2')\na, b = sch.split(i, factors=[None, 4])\n"
                              "sch.compute_at('s1', a)\n";
  made(arena_printf(&context->arena, program, "vi", " + 1"), steps);
  made(arena_printf(&context->arena, program, "12 - vi", " + 1"), steps);
  refused(arena_printf(&context->arena, program, "12 - vi", ""), steps, "which it reads");
  context_free(context);
}

static void test_reverse_compute_at(void **state) {
  (void)state;
  made(chain, "i, j = sch.get_loops('B')\nsch.reverse_compute_at('C', i)\n"
              "sch.reverse_compute_at('D', i)\n");
  made(conv, "o, x, c, k = sch.get_loops('conv')\nx0, x1 = sch.split(x, factors=[None, 4])\n"
             "sch.reorder(x0, o, c, k, x1)\nsch.reverse_compute_at('relu', o)\n"
             "sch.decompose_reduction('conv', c)\nsch.parallel(x0)\nsch.unroll(x1)\n");
  made(conv, "o, x, c, k = sch.get_loops('conv')\nf = sch.fuse(o, x)\n"
             "a, b = sch.split(f, factors=[None, 17])\nsch.reverse_compute_at('relu', a)\n");
  refused(conv,
          "o, x, c, k = sch.get_loops('conv')\nsch.reorder(c, o)\n"
          "sch.reverse_compute_at('relu', o)\n",
          "not proved to be complete");
  // An iteration adds to the sums what its channel gives; others may not read them below the loop.
  made(conv, "c, x = sch.get_loops('pad')\nsch.reverse_compute_at('conv', c)\n");
  refused(conv, "c, x = sch.get_loops('pad')\nsch.parallel(c)\nsch.reverse_compute_at('conv', c)\n",
          "would not be proved to be independent");
  refused(conv, "c, x = sch.get_loops('pad')\nsch.reverse_compute_at('relu', c)\n",
          "is neither before");
}

// A consumer that reads by digits of its variables gets the variables that have the written ones.
static void test_consumers_of_digits(void **state) {
  (void)state;
#define DIGITS(SHAPE, AXES, BLOCK, EXTENT, INDEX)                                                  \
  HEAD "def f(A: T.Buffer(" SHAPE ", 'float32'), D: T.Buffer((" EXTENT ",), 'float32')):\n"        \
       "    B = T.alloc_buffer(" SHAPE ")\n"                                                       \
       "    for i, j in T.grid" AXES ":\n"                                                         \
       "        with T.block('B'):\n"                                                              \
       "            vi, vj = T.axis.remap('SS', [i, j])\n"                                         \
       "            B[" BLOCK "] = A[" BLOCK "] + T.float32(1)\n"                                  \
       "    for i in range(" EXTENT "):\n"                                                         \
       "        with T.block('D'):\n"                                                              \
       "            v = T.axis.spatial(" EXTENT ", i)\n"                                           \
       "            D[v] = B[" INDEX "] * T.float32(2)\n"
#define MOVED(LOOP) "i, j = sch.get_loops('B')\nsch.reverse_compute_at('D', " LOOP ")"
  made(DIGITS("(5, 6)", "(5, 6)", "vi, vj", "30", "v // 6, v % 6"), MOVED("i"));
  made(DIGITS("(5, 6)", "(5, 6)", "vi, vj", "30", "v // 6, v % 6"), MOVED("j"));
  made(DIGITS("(5, 6)", "(5, 6)", "vi, vj", "27", "v // 6, v % 6"), MOVED("i"));
  made(DIGITS("(5, 6)", "(5, 6)", "vi, vj", "27", "v // 6, v % 6"), MOVED("j"));
  made(DIGITS("(5, 6)", "(5, 6)", "vi, vj", "6", "0, v % 6"),
       "i, j = sch.get_loops('B')\nsch.reorder(j, i)\nsch.reverse_compute_at('D', j)");
  made(DIGITS("(5, 6)", "(5, 6)", "vi, vj", "30", "v // 6, v % 6"),
       "i, j = sch.get_loops('B')\nx, y = sch.split(j, factors=[None, 2])\n"
       "sch.reverse_compute_at('D', x)");
  const char *message = "by a digit of a variable of which other digits may differ";
  refused(DIGITS("(6, 5)", "(6, 5)", "vi, vj", "30", "v % 6, v // 6"), MOVED("i"), message);
  refused(DIGITS("(5, 6)", "(5, 6)", "vi, vj", "60", "v % 30 // 6, v % 6"), MOVED("i"), message);
  made(DIGITS("(5, 6)", "(5, 6)", "vi, vj", "30", "v // 6, (v + 1) % 6"), MOVED("j"));
  refused(DIGITS("(5, 6)", "(5, 6)", "vi, vj", "30", "v // 6, (v + 1) // 2 % 6"), MOVED("j"),
          "which it does not read by one of its variables\nmove the producers of ");
}

// ---- Caches ----------------------------------------------------------------------------------

static void test_caches(void **state) {
  (void)state;
  made(matmul, "sch.cache_write('C', 0, 'local')\n");
  made(matmul, "i, j, k = sch.get_loops('C')\nc = sch.cache_write('C', 0, 'local')\n"
               "sch.reverse_compute_at(c, i)\nsch.decompose_reduction('C', k)\nsch.parallel(i)\n");
  made(matmul, "a = sch.cache_read('C', 0, 'local')\nb = sch.cache_read('C', 1, 'global')\n"
               "i, j, k = sch.get_loops('C')\nsch.compute_at(a, i)\nsch.compute_at(b, j)\n");
  made(conv, "sch.cache_read('conv', 0, 'local')\nsch.set_scope('conv', 0, 'local')\n");
  refused(matmul, "sch.set_scope('C', 0, 'local')\n", "use cache_write");
  refused(matmul, "sch.cache_read('C', 2, 'local')\n", "no number 2");
#define ROWS(extents, elements)                                                                    \
  HEAD "def f(A: T.Buffer((3, 5), 'float32'), B: T.Buffer((" #elements ",), 'float32')):\n"        \
       "    for i, k in T.grid(" extents "):\n"                                                    \
       "        with T.block('B'):\n"                                                              \
       "            vi, vk = T.axis.remap('SR', [i, k])\n"                                         \
       "            with T.init():\n"                                                              \
       "                B[vi] = T.float32(0)\n"                                                    \
       "            B[vi] = B[vi] + A[vi, vk]\n"
  made(ROWS("3, 0", 3), "sch.cache_write('B', 0, 'local')\n");
  made(ROWS("0, 5", 0), "sch.cache_write('B', 0, 'local')\n");
  made(ROWS("3, 0", 3), "sch.reindex('B', ('read', 0))\n");
  made(ROWS("3, 0", 3), "sch.reindex_cache_read('B', 0, 'local', lambda i, k: [k, i])\n");
  made(ROWS("3, 0", 3),
       "sch.transform_block_layout('B', lambda i, k: [i // 2, k // 4, i % 2, k % 4])\n");
  made(ROWS("0, 5", 0), "sch.transform_block_layout('B', lambda i, k: [k, i])\n");
  made(ROWS("3, 0", 3),
       "i, k = sch.get_loops('B')\n"
       "f = sch.sample_perfect_tile(k, n=3)\n"
       "sch.split(k, f)\n"
       "g = sch.sample_partitioned_tile(i, n=2, partition_pos=1, innerpart_factor=3)\n"
       "sch.split(i, g)\n");
  refused(ROWS("3, 0", 3), "sch.transform_block_layout('B', lambda i, k: [i + k])\n", "mixes");
  refused(ROWS("0, 5", 0), "sch.transform_block_layout('B', lambda i, k: [i, i + k])\n", "mixes");
  refused(ROWS("0, 5", 3), "sch.cache_write('B', 0, 'local')\n",
          "writes nothing of 'B', since loop 'i' has no iterations");
#undef ROWS
  refused(matmul, "sch.cache_write('C', 0, 'locl')\n", "did you mean 'local'");
}

// ---- Reductions ------------------------------------------------------------------------------

static void test_decompose_reduction(void **state) {
  (void)state;
  made(matmul, "i, j, k = sch.get_loops('C')\nsch.decompose_reduction('C', i)\n");
  made(matmul, "i, j, k = sch.get_loops('C')\nk0, k1 = sch.split(k, factors=[None, 4])\n"
               "i0, i1 = sch.split(i, factors=[None, 5])\nsch.reorder(i0, k0, j, k1, i1)\n"
               "b = sch.decompose_reduction('C', k0)\nx, y, z = sch.get_loops(b)\n"
               "sch.vectorize(y)\n");
  refused(matmul,
          "i, j, k = sch.get_loops('C')\nsch.reorder(k, i)\n"
          "sch.decompose_reduction('C', i)\n",
          "belongs to the reduction");
  refused(copy, "i, j = sch.get_loops('B')\nsch.decompose_reduction('B', i)\n", "has no init");
}

// A condition leaves out all repetitions of the block but the first, outside of the init.
static void test_decomposed_repetitions(void **state) {
  (void)state;
  const char *const text =
      HEAD "def f(A: T.Buffer((5, 12), 'int32'), C: T.Buffer((5,), 'int32'), n: T.int32):\n"
           "    for i, r, u, k in T.grid(5, 2, 1, 12):\n"
           "        with T.block('C'):\n"
           "            vi, vk = T.axis.remap('SR', [i, k])\n"
           "            T.where(r * 2 + u < %s)\n"
           "            with T.init():\n"
           "                C[vi] = 7\n"
           "            C[vi] = C[vi] + A[vi, vk]\n";
  const char *const steps = "i, r, u, k = sch.get_loops('C')\nsch.decompose_reduction('C', u)\n";
  Context *context = context_new();
  made(str_format(context, text, "1"), steps);
  refused(str_format(context, text, "n"), steps, "chooses among its repetitions");
  context_free(context);
}

// The block keeps its name, and also has the one that TVM gives it; both blocks have the
// annotations.
static void test_decomposed_blocks(void **state) {
  (void)state;
  Context *context = context_new();
  Schedule *schedule = check_made(context, matmul,
                                  "sch.annotate('C', 'marked', 1)\ni, j, k = sch.get_loops('C')\n"
                                  "sch.decompose_reduction('C', i)\nb = sch.get_block('C_update')\n"
                                  "sch.annotate(b, 'updates', 1)\n");
  Block *init = schedule_block(schedule, str_intern(context, "C_init"));
  Block *update = schedule_block(schedule, str_intern(context, "C"));
  assert_int_equal(attrs_int(&init->annotations, "marked", 0), 1);
  assert_int_equal(attrs_int(&update->annotations, "marked", 0), 1);
  assert_int_equal(attrs_int(&update->annotations, "updates", 0), 1);
  context_free(context);
  refused(matmul, "sch.get_block('C_update')\n", "no block 'C_update'");
  refused(HEAD "def f(A: T.Buffer((5, 4), 'float32'), b: T.Buffer((5,), 'float32'),\n"
               "      C: T.Buffer((5,), 'float32')):\n"
               "    for i, k in T.grid(5, 4):\n"
               "        with T.block('C'):\n"
               "            vi, vk = T.axis.remap('SR', [i, k])\n"
               "            with T.init():\n"
               "                C[vi] = b[vi]\n"
               "            C[vi] = C[vi] + A[vi, vk]\n",
          "i, k = sch.get_loops('C')\nn = sch.get_block('C')\nsch.read_at(i, n, 0, 'local')\n"
          "sch.decompose_reduction('C', i)\n",
          "writes 'b_local', which the init reads");
}

static void test_prefetch(void **state) {
  (void)state;
  made(matmul, "i, j, k = sch.get_loops('C')\nsch.prefetch('C', 0, i)\n"
               "sch.prefetch('C', 1, k, ahead=3, level=1)\nsch.parallel(i)\n");
  made(matmul, "i, j, k = sch.get_loops('C')\nk0, k1 = sch.split(k, factors=[None, 4])\n"
               "sch.transform_layout('C', ('read', 1), lambda k, j: [j // 8, k, j % 8])\n"
               "sch.prefetch('C', 1, k0, level=3)\nsch.unroll(k0)\n");
  made(conv, "sch.compute_inline('pad')\no, x, c, k = sch.get_loops('conv')\n"
             "sch.prefetch('conv', 0, x)\nsch.prefetch('conv', 1, o, ahead=2)\n");
  made(matmul, "i, j, k = sch.get_loops('C')\nparts, one = sch.split(i, factors=[None, 13])\n"
               "sch.prefetch('C', 0, parts)\n"); // of one iteration
  refused(matmul, "i, j, k = sch.get_loops('C')\nsch.prefetch('C', 0, j)\n",
          "reads the same elements of");
  refused(matmul, "i, j, k = sch.get_loops('C')\nsch.prefetch('C', 2, i)\n", "no number 2");
  refused(matmul, "i, j, k = sch.get_loops('C')\nsch.prefetch('C', 0, i, ahead=0)\n",
          "at least 1; saw 0");
  refused(matmul, "i, j, k = sch.get_loops('C')\nsch.prefetch('C', 0, i, level=4)\n",
          "1 to 3; saw 4");
  made(matmul, "i, j, k = sch.get_loops('C')\nsch.parallel(i)\nsch.prefetch('C', 0, i)\n");
  refused(matmul, "i, j, k = sch.get_loops('C')\nsch.vectorize(j)\nsch.prefetch('C', 1, j)\n",
          "do not run one after the other");
  refused(conv, "i, j = sch.get_loops('pad')\nsch.prefetch('conv', 0, i)\n", "not below loop");
}

// Parts of what a later iteration reads, in the iterations of a loop inside.
static void test_prefetch_in_parts(void **state) {
  (void)state;
#define ROWS "i, j, k = sch.get_loops('C')\n"
  made(matmul, ROWS "sch.prefetch('C', 0, i, spread=j)\n");
  made(matmul, ROWS "sch.parallel(i)\nsch.prefetch('C', 0, i, ahead=2, spread=k)\n");
  made(matmul,
       "sch.transform_layout('C', ('read', 1), lambda k, j: [j // 2, k, j % 2])\n" ROWS
       "j0, j1 = sch.split(j, factors=[None, 2])\nk0, k1 = sch.split(k, factors=[None, 4])\n"
       "sch.reorder(j0, i, k0, k1, j1)\nsch.prefetch('C', 1, j0, spread=k0)\n");
  refused(matmul, ROWS "sch.prefetch('C', 0, i, spread=i)\n", "is not below loop 'i'");
  refused(matmul, ROWS "sch.prefetch('C', 1, j, spread=i)\n", "is not below loop 'j'");
  refused(matmul, ROWS "sch.prefetch('C', 1, j, spread=k)\n", "is not one run of memory");
#undef ROWS
}

// Consumers that read by an affine function of their variables. The function does not give the
// variables of the last two.
static void test_reverse_inline_by_inverse(void **state) {
  (void)state;
#define READS(SHAPE, EXTENT, INDEX)                                                                \
  HEAD "def f(A: T.Buffer(" SHAPE ", 'float32'), C: T.Buffer((" EXTENT ",), 'float32')):\n"        \
       "    B = T.alloc_buffer(" SHAPE ")\n"                                                       \
       "    for i, j in T.grid" SHAPE ":\n"                                                        \
       "        with T.block('B'):\n"                                                              \
       "            vi, vj = T.axis.remap('SS', [i, j])\n"                                         \
       "            B[vi, vj] = A[vi, vj] * T.float32(2)\n"                                        \
       "    for i in range(" EXTENT "):\n"                                                         \
       "        with T.block('C'):\n"                                                              \
       "            vi = T.axis.spatial(" EXTENT ", i)\n"                                          \
       "            C[vi] = B[" INDEX "] + T.float32(1)\n"
  const char *step = "sch.reverse_compute_inline('C')\n";
  made(READS("(3, 5)", "15", "vi // 5, vi % 5"), step);
  made(READS("(5, 3)", "15", "vi % 5, vi // 5"), step);
  made(READS("(3, 5)", "13", "vi // 5, vi % 5"), step);     // the last two elements have no reader
  made(READS("(7, 5)", "11", "vi % 3 * 2, vi // 3"), step); // nor has every second row
  made(READS("(15, 2)", "15", "14 - vi, 1"), step);
  made(READS("(15, 2)", "13", "vi + 2, 1"), step);
  refused(READS("(3, 5)", "15", "vi // 6, vi % 5"), step, "are not proved to give its variables");
  refused(READS("(5, 5)", "10", "vi // 2, vi // 2"), step, "are not proved to give its variables");
}

// Both directions, where the producer writes and the consumer reads by falling or linear indices.
static void test_inline_of_falling_indices(void **state) {
  (void)state;
#define FALLING(WRITTEN, READ)                                                                     \
  HEAD "def f(A: T.Buffer((3, 5), 'float32'), C: T.Buffer((15,), 'float32')):\n"                   \
       "    B = T.alloc_buffer((15,))\n"                                                           \
       "    for i, j in T.grid(3, 5):\n"                                                           \
       "        with T.block('B'):\n"                                                              \
       "            vi, vj = T.axis.remap('SS', [i, j])\n"                                         \
       "            B[" WRITTEN "] = A[vi, vj] * T.float32(2)\n"                                   \
       "    for i in range(15):\n"                                                                 \
       "        with T.block('C'):\n"                                                              \
       "            vi = T.axis.spatial(15, i)\n"                                                  \
       "            C[vi] = B[" READ "] + T.float32(1)\n"
  static const char *const steps[] = {"sch.compute_inline('B')\n",
                                      "sch.reverse_compute_inline('C')\n"};
  for (int i = 0; i < COUNT_OF(steps); i++) {
    made(FALLING("vi * 5 + vj", "14 - vi"), steps[i]);
    made(FALLING("vi * 5 + 4 - vj", "vi"), steps[i]);
    made(FALLING("14 - vi * 5 - vj", "14 - vi"), steps[i]);
    made(FALLING("10 - vi * 5 + vj", "vi"), steps[i]);
  }
  refused(FALLING("vi * 4 - vj + 4", "vi"), steps[0], "its indices do not give its variables");
  refused(FALLING("vi * 5 + vj", "14 - vi // 2"), steps[1], "not proved to give its variables");
}

// An index over no values would be simplified to a constant.
static void test_blocks_without_points(void **state) {
  (void)state;
  const char *empty = HEAD "def f(A: T.Buffer((7,), 'float32'), C: T.Buffer((0,), 'float32')):\n"
                           "    for i in range(0):\n"
                           "        with T.block('C'):\n"
                           "            vi = T.axis.spatial(0, i)\n"
                           "            C[vi] = A[vi + 7]\n";
  made(empty, "sch.transform_block_layout('C', lambda i: [i // 4, i % 4])\n");
  made(empty, "sch.transform_block_layout('C', lambda i: [i % 4])\n");
  made(empty, "sch.transform_layout('C', 'C', lambda i: [i % 4, i // 9], rewrite_loops=True)\n");
  refused(HEAD "def f(A: T.Buffer((7, 0), 'float32'), C: T.Buffer((7,), 'float32')):\n"
               "    for i, k in T.grid(7, 0):\n"
               "        with T.block('C'):\n"
               "            vi, vk = T.axis.remap('SR', [i, k])\n"
               "            with T.init():\n"
               "                C[vi] = T.float32(3)\n"
               "            C[vi] = C[vi] + A[vi, vk]\n",
          "sch.transform_block_layout('C', lambda i, k: [i, k % 4])\n",
          "it runs for no values of these variables, and the map has no inverse");
  made(empty, "sch.reindex('C', ('write', 0))\n");
}

// A prefetch reads its address from a buffer that only one block reads.
static void test_reverse_inline_of_addresses(void **state) {
  (void)state;
  refused(HEAD "def f(A: T.Buffer((13, 7), 'float32'), C: T.Buffer((13, 7), 'float32')):\n"
               "    for i, j in T.grid(13, 7):\n"
               "        with T.block('C'):\n"
               "            vi, vj = T.axis.remap('SS', [i, j])\n"
               "            C[vi, vj] = A[vi, 6 - vj] * T.float32(2)\n",
          "sch.fuse_axes('C', ('read', 0), [0, 1])\nsch.cache_index('C', 'global')\n"
          "i, j = sch.get_loops('C')\nsch.prefetch('C', 0, j)\n"
          "sch.reverse_compute_inline('C')\n",
          "'index_var_0' is used outside of blocks too");
}

static void test_rfactor(void **state) {
  (void)state;
  made_with(matmul, "i, j, k = sch.get_loops('C')\nsch.rfactor(k, 0)\n",
            "C_rf[vk, vi, vj] = A[vi, vk] * B[vk, vj]\n    for");
  made(matmul, "i, j, k = sch.get_loops('C')\nk0, k1 = sch.split(k, factors=[None, 4])\n"
               "r = sch.rfactor(k0, 2)\nsch.parallel(i)\n");
  made(matmul, "i, j, k = sch.get_loops('C')\nsch.rfactor(k, -1)\n");
  made(matmul, "i, j, k = sch.get_loops('C')\nsch.rfactor(k, -3)\n");
  refused(matmul, "i, j, k = sch.get_loops('C')\nsch.rfactor(k, -4)\n", "axes 0 to 2");
  made(conv, "o, x, c, k = sch.get_loops('conv')\nr = sch.rfactor(c, 1)\n"
             "i, j, a, b = sch.get_loops(r)\nsch.reorder(a, i, j, b)\nsch.parallel(a)\n");
  refused(matmul, "i, j, k = sch.get_loops('C')\nsch.rfactor(i, 0)\n", "not one of the reduction");
  refused(matmul, "i, j, k = sch.get_loops('C')\nsch.rfactor(k, 3)\n", "axes 0 to 2");
}

#define HALVES(OUTSIDE)                                                                            \
  HEAD "def f(X: T.Buffer((5, 17), 'float16'), W: T.Buffer((6, 5, 3), 'float16'),\n"               \
       "      Y: T.Buffer((6, 17), 'float32')):\n"                                                 \
       "    for o, x, c, k in T.grid(6, 17, 5, 3):\n"                                              \
       "        with T.block('conv'):\n"                                                           \
       "            vo, vx, vc, vk = T.axis.remap('SSRR', [o, x, c, k])\n"                         \
       "            with T.init():\n"                                                              \
       "                Y[vo, vx] = T.float32(0)\n"                                                \
       "            Y[vo, vx] = Y[vo, vx] + T.Cast('float32', T.if_then_else(\n"                   \
       "                1 <= vx + vk and vx + vk < 18, X[vc, vx + vk - 1],\n"                      \
       "                T.float16(" OUTSIDE "))) * T.Cast('float32', W[vo, vc, vk])\n"

static void test_predicate_reduction(void **state) {
  (void)state;
  const char *steps = "o, x, c, k = sch.get_loops('conv')\nsch.decompose_reduction('conv', c)\n"
                      "sch.predicate_reduction('conv')\n";
  made(HALVES("0"), steps);
  refused(HALVES("2"), steps, "not proved to change nothing");
  made(conv, "sch.compute_inline('pad')\no, x, c, k = sch.get_loops('conv')\n"
             "sch.decompose_reduction('conv', c)\nsch.predicate_reduction('conv')\n");
  refused(conv, "sch.compute_inline('pad')\nsch.predicate_reduction('conv')\n",
          "decompose_reduction first");
  refused(matmul,
          "i, j, k = sch.get_loops('C')\nsch.decompose_reduction('C', k)\n"
          "sch.predicate_reduction('C')\n",
          "has no condition");
}

// ---- Scripts ---------------------------------------------------------------------------------

static void bad_script(const char *steps, const char *message) {
  Context *context = context_new();
  Schedule *schedule = schedule_new(context, check_parse(context, copy));
  assert_false(check_replay(schedule, steps));
  assert_true(context->error_count > 0);
  if (!strstr(context->diags.items[0].message, message)) {
    diag_print_all(context, stderr);
    fail();
  }
  context_free(context);
}

static void test_scripts_with_mistakes(void **state) {
  (void)state;
  bad_script("sch.splitt(1)\n", "did you mean 'split'");
  bad_script("sch.split(x, factors=[1])\n", "'x' is not defined");
  bad_script("b = sch.get_block('B')\nsch.split(b, factors=[1])\n", "'loop' is a loop");
  bad_script("i, j = sch.get_loops('B')\nsch.split(i)\n", "needs 'factors'");
  bad_script("i, j = sch.get_loops('B')\nsch.split(i, factor=[2])\n", "did you mean 'factors'");
  bad_script("i, j, k = sch.get_loops('B')\n", "2 results for 3 names");
  bad_script("i, j = sch.get_loops('B')\nsch.parallel(i, j)\n", "no more arguments");
  bad_script("for i in range(3):\n    pass\n", "holds steps");
}

typedef struct Lacking {
  Context *context;
  const char *kind; // of a loop, as it is printed
} Lacking;

// A program counts as wrong once it has a loop of the kind.
static bool lacks_kind(void *env, const PrimFunc *func) {
  const Lacking *lacking = env;
  return !strstr(check_text(lacking->context, func), lacking->kind);
}

static int found_step(const Schedule *schedule, PrimFunc *func, int from, const char *kind,
                      const char **text) {
  Lacking lacking = {schedule_context(schedule), kind};
  return schedule_find_step(schedule, func, from, lacks_kind, &lacking, text);
}

static void test_a_step_is_found(void **state) {
  Context *context = context_new();
  PrimFunc *func = check_parse(context, copy);
  Schedule *schedule = schedule_new(context, func);
  static const char steps[] = "b0 = sch.get_block(\"B\")\n"
                              "l0, l1 = sch.get_loops(b0)\n"
                              "l2, l3 = sch.split(l1, factors=[None, 4])\n"
                              "sch.vectorize(l3)\n"
                              "sch.parallel(l0)\n"
                              "sch.unroll(l2)\n";
  const char *text = NULL;
  assert_true(
      schedule_replay(schedule, source_file_new(context, "steps", steps, sizeof steps - 1)));
  int count = schedule_step_count(schedule);
  assert_int_equal(found_step(schedule, func, 0, "vectorized", &text), 4);
  assert_string_equal(text, "sch.vectorize(l3)");
  assert_int_equal(found_step(schedule, func, 4, "parallel", &text), 5);
  assert_string_equal(text, "sch.parallel(l0)");
  assert_int_equal(found_step(schedule, func, 2, "unroll", &text), count);
  assert_int_equal(found_step(schedule, func, 5, "parallel", &text), 0);
  assert_int_equal(found_step(schedule, func, 0, "thread", &text), 0);
  assert_int_equal(found_step(schedule, func, count, "unroll", &text), 0);
  assert_int_equal(context->error_count, 0);
  context_free(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_split),
      cmocka_unit_test(test_fuse),
      cmocka_unit_test(test_reorder),
      cmocka_unit_test(test_a_step_is_found),
      cmocka_unit_test(test_cut_numbers),
      cmocka_unit_test(test_unit_loops_and_kinds),
      cmocka_unit_test(test_annotations),
      cmocka_unit_test(test_queries),
      cmocka_unit_test(test_compute_inline),
      cmocka_unit_test(test_reverse_compute_inline),
      cmocka_unit_test(test_consumers_that_pad),
      cmocka_unit_test(test_compute_at),
      cmocka_unit_test(test_compute_several_results_at),
      cmocka_unit_test(test_compute_parameter_at),
      cmocka_unit_test(test_compute_at_in_a_recurrence),
      cmocka_unit_test(test_compute_at_again),
      cmocka_unit_test(test_reverse_compute_at),
      cmocka_unit_test(test_consumers_of_digits),
      cmocka_unit_test(test_caches),
      cmocka_unit_test(test_decompose_reduction),
      cmocka_unit_test(test_decomposed_repetitions),
      cmocka_unit_test(test_decomposed_blocks),
      cmocka_unit_test(test_prefetch),
      cmocka_unit_test(test_prefetch_in_parts),
      cmocka_unit_test(test_reverse_inline_by_inverse),
      cmocka_unit_test(test_inline_of_falling_indices),
      cmocka_unit_test(test_blocks_without_points),
      cmocka_unit_test(test_reverse_inline_of_addresses),
      cmocka_unit_test(test_rfactor),
      cmocka_unit_test(test_predicate_reduction),
      cmocka_unit_test(test_scripts_with_mistakes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
