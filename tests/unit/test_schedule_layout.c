// SPDX-License-Identifier: Apache-2.0
// Tests transform_layout and the steps related to it: accesses and aliases, physical iteration,
// padding and its content, predicates, and separators. Padding with any content has NaN here.
#include "schedule_check.h"

static const char copy[] =
    HEAD "def f(A: T.Buffer((30, 7), 'float32'), B: T.Buffer((30, 7), 'float32')):\n"
         "    for i, j in T.grid(30, 7):\n"
         "        with T.block('B'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            B[vi, vj] = A[vi, vj] * T.float32(2)\n";

// 1x1 convolution with channels that no block divides, bias and activation.
static const char pointwise[] =
    HEAD "def f(X: T.Buffer((1, 13, 5, 6), 'float32'), W: T.Buffer((11, 13), 'float32'),\n"
         "      b: T.Buffer((11,), 'float32'), Y: T.Buffer((1, 11, 5, 6), 'float32')):\n"
         "    C = T.alloc_buffer((1, 11, 5, 6))\n"
         "    for n, o, h, w, c in T.grid(1, 11, 5, 6, 13):\n"
         "        with T.block('conv'):\n"
         "            vn, vo, vh, vw, vc = T.axis.remap('SSSSR', [n, o, h, w, c])\n"
         "            with T.init():\n"
         "                C[vn, vo, vh, vw] = T.float32(0)\n"
         "            C[vn, vo, vh, vw] = C[vn, vo, vh, vw] + X[vn, vc, vh, vw] * W[vo, vc]\n"
         "    for n, o, h, w in T.grid(1, 11, 5, 6):\n"
         "        with T.block('relu'):\n"
         "            vn, vo, vh, vw = T.axis.remap('SSSS', [n, o, h, w])\n"
         "            Y[vn, vo, vh, vw] = T.max(C[vn, vo, vh, vw] + b[vo], T.float32(0))\n";

static const char unit_batch[] =
    HEAD "def f(A: T.Buffer((1, 6, 5, 7, 3), 'float32'), C: T.Buffer((1, 6, 5, 7), 'float32')):\n"
         "    for n, c, h, w, k in T.grid(1, 6, 5, 7, 3):\n"
         "        with T.block('C'):\n"
         "            vn, vc, vh, vw, vk = T.axis.remap('SSSSR', [n, c, h, w, k])\n"
         "            with T.init():\n"
         "                C[vn, vc, vh, vw] = T.float32(0)\n"
         "            C[vn, vc, vh, vw] = C[0, vc, vh, vw] + A[0, vc, vh, vw, vk]\n";

static void test_every_access_is_mapped(void **state) {
  (void)state;
  made(copy, "sch.transform_layout('B', ('read', 0), lambda i, j: [j, i])\n");
  made(copy, "sch.transform_layout('B', 'A', lambda i, j: [i // 4, j, i % 4])\n");
  made(copy, "sch.transform_layout('B', ('write', 0), lambda i, j: [j, i])\n");
  made(copy, "sch.transform_layout('B', ('write', 0), lambda i, j: [i // 5, j, i % 5])\n");
  made(copy, "sch.transform_layout('B', ('write', 0), lambda *x: [x[1], x[0]])\n"
             "sch.transform_layout('B', ('write', 0), lambda j, i: [i, j])\n");
  made(pointwise, "sch.transform_layout('conv', ('read', 0), 'NCHW4c')\n"
                  "sch.transform_layout('relu', ('write', 0), lambda n, c, h, w: [n, h, w, c])\n"
                  "sch.transform_layout('conv', ('write', 0), lambda n, c, h, w: [n, h, w, c])\n");
}

// The layout itself is not printed: the physical program is complete without it.
static void test_printed_is_equal(void **state) {
  (void)state;
  Context *context = context_new();
  Schedule *schedule = check_made(
      context, copy,
      "sch.transform_layout('B', ('write', 0), lambda i, j: [i // 4, j, i % 4], pad_value=-1)\n");
  PrimFunc *func = schedule_func(schedule);
  Text text = text_new(&context->arena);
  script_print_prim_func(context, func, &text, NULL);
  SourceFile *file = source_file_new(context, "again.py", text.data, text.size);
  Module *again = script_parse(context, file);
  assert_non_null(again);
  PrimFunc *read = again->funcs.items[0].prim;
  IrDifference difference;
  assert_true(prim_func_equal(context, func, read, &difference));
  assert_non_null(func->buffers[1]->layout);
  assert_null(read->buffers[1]->layout);
  context_free(context);
}

static void test_flat_and_swizzled(void **state) {
  (void)state;
  made(copy, "sch.transform_layout('B', ('write', 0), lambda i, j: [i * 7 + j])\n");
  made(copy, "sch.transform_layout('B', ('write', 0), lambda i, j: [(i * 7 + j) // 16, (i * 7 + j) "
             "% 16])\n");
  made(copy, "sch.transform_layout('B', ('read', 0), lambda i, j: [i, j ^ (i % 4)])\n");
  made(copy, "sch.transform_layout('B', ('write', 0), lambda i, j: [29 - i, j])\n");
}

static int loop_count(Schedule *schedule, const char *block) {
  LoopRefs loops = {0};
  assert_true(schedule_get_loops(schedule, str_intern(schedule_context(schedule), block), &loops));
  return loops.count;
}

static void test_the_writer_iterates_physically(void **state) {
  (void)state;
  Context *context = context_new();
  Schedule *schedule = check_made(context, copy,
                                  "sch.transform_layout('B', ('write', 0), lambda i, j: [i // 4, "
                                  "j, i % 4], rewrite_loops=True)\n");
  Block *block = schedule_block(schedule, str_intern(context, "B"));
  assert_int_equal(loop_count(schedule, "B"), 3);
  assert_int_equal(block->var_count, 3);
  for (int d = 0; d < 3; d++)
    assert_ptr_equal(block->body->as.store.indices[d], block->vars[d].var);
  assert_false(expr_is_true(block->predicate)); // 30 = 7·4 + 2
  const Buffer *b = schedule_func(schedule)->buffers[1];
  assert_true(expr_is_int(b->shape[0], 8) && expr_is_int(b->shape[1], 7) &&
              expr_is_int(b->shape[2], 4));
  // A reduction keeps its own loops, inside.
  schedule =
      check_made(context, pointwise,
                 "sch.transform_layout('conv', ('write', 0), 'NCHW4c', rewrite_loops=True)\n");
  assert_int_equal(loop_count(schedule, "conv"), 6);
  block = schedule_block(schedule, str_intern(context, "conv"));
  assert_int_equal(block->vars[5].kind, ITER_REDUCTION);
  // So does one whose update names a variable of extent 1 by its value.
  schedule = check_made(context, unit_batch,
                        "sch.transform_layout('C', ('write', 0), 'NCHW4c', rewrite_loops=True)\n");
  assert_int_equal(loop_count(schedule, "C"), 6);
  // A block that was scheduled before keeps its loops, and only its accesses change.
  schedule = check_made(context, copy,
                        "i, j = sch.get_loops('B')\nsch.split(j, factors=[None, 4])\n"
                        "sch.transform_layout('B', ('write', 0), lambda i, j: [i // 4, j, i % 4], "
                        "rewrite_loops=True)\n");
  assert_int_equal(schedule_block(schedule, str_intern(context, "B"))->var_count, 2);
  context_free(context);
}

#define SUM_OF(TYPE, START, VALUE)                                                                 \
  HEAD "def f(A: T.Buffer((3, 13), '" TYPE "'), B: T.Buffer((13, 5), '" TYPE                       \
       "'), C: T.Buffer((3, 5), '" TYPE "')):\n"                                                   \
       "    for i, j, k in T.grid(3, 5, 13):\n"                                                    \
       "        with T.block('C'):\n"                                                              \
       "            vi, vj, vk = T.axis.remap('SSR', [i, j, k])\n"                                 \
       "            with T.init():\n"                                                              \
       "                C[vi, vj] = " START "\n"                                                   \
       "            C[vi, vj] = " VALUE "\n"
#define PAD_AND_DROP(A_PADDING, B_PADDING, LOOPS)                                                  \
  "sch.transform_layout('C', 'A', lambda i, k: [k // 4, i, k % 4]" A_PADDING ")\n"                 \
  "sch.transform_layout('C', 'B', lambda k, j: [k // 4, j, k % 4]" B_PADDING ")\n"                 \
  "sch.transform_block_layout('C', lambda i, j, k: [i, k // 4, j, k % 4])\n" LOOPS                 \
  "sch.drop_padding_predicate('C')\n"

// A reduction computes in padding whose content changes no result.
static void test_neutral_padding_is_reduced(void **state) {
  (void)state;
  static const char product[] =
      SUM_OF("float32", "T.float32(0)", "C[vi, vj] + A[vi, vk] * B[vk, vj]");
  static const char most[] =
      SUM_OF("int32", "T.min_value('int32')", "T.max(C[vi, vj], A[vi, vk] - B[vk, vj])");
  static const char integers[] = SUM_OF("int32", "7", "C[vi, vj] + A[vi, vk] * B[vk, vj]");
  made(product, PAD_AND_DROP(", pad_value=0", ", pad_value=0", ""));
  made(product, PAD_AND_DROP(", pad_value=0", ", pad_value=0",
                             "i, o, j, k = sch.get_loops('C')\nsch.decompose_reduction('C', o)\n"));
  made(product, PAD_AND_DROP(", pad_value=0", ", pad_value=3", ""));
  made(integers, PAD_AND_DROP(", pad_value=0", "", ""));
  refused(product, PAD_AND_DROP(", pad_value=0", "", ""), "terms that change no result");
  refused(product, PAD_AND_DROP(", pad_value=2", ", pad_value=1", ""),
          "terms that change no result");
  refused(most, PAD_AND_DROP(", pad_value=0", ", pad_value=0", ""), "terms that change no result");
  made(most, PAD_AND_DROP(", pad_value=-2147483648", ", pad_value=0", ""));
}

static void test_padding_predicates_drop(void **state) {
  (void)state;
  made(pointwise, "sch.transform_layout('conv', ('write', 0), 'NCHW4c', rewrite_loops=True)\n"
                  "sch.transform_layout('conv', ('read', 1), lambda o, c: [o // 4, c, o % 4])\n"
                  "sch.drop_padding_predicate('conv')\n");
  made(pointwise,
       "sch.transform_layout('conv', ('write', 0), 'NCHW4c', rewrite_loops=True)\n"
       "sch.transform_layout('conv', ('read', 1), lambda o, c: [o // 4, c, o % 4])\n"
       "sch.transform_layout('relu', ('write', 0), 'NCHW4c', rewrite_loops=True)\n"
       "sch.transform_layout('relu', 'b', lambda c: [c // 4, c % 4])\n"
       "sch.drop_padding_predicate('conv')\nsch.drop_padding_predicate('relu')\n"
       "n, o, h, w, p, c = sch.get_loops('conv')\nw0, w1 = sch.split(w, factors=[None, 4])\n"
       "sch.reorder(n, o, h, w0, c, w1, p)\nsch.reverse_compute_at('relu', w0)\n"
       "sch.vectorize(p)\nsch.unroll(w1)\nsch.decompose_reduction('conv', c)\n"
       "sch.set_scope('conv', 0, 'local')\nsch.parallel(o)\n");
  // A block that keeps its predicate has it on the new loops too.
  made(pointwise,
       "sch.transform_layout('conv', ('write', 0), 'NCHW4c', rewrite_loops=True)\n"
       "sch.transform_layout('relu', ('write', 0), 'NCHW4c', rewrite_loops=True)\n"
       "n, o, h, w, p, c = sch.get_loops('conv')\nsch.split(o, factors=[2, None])\n"
       "n, o, h, w, p = sch.get_loops('relu')\nw0, w1 = sch.split(w, factors=[None, 4])\n"
       "sch.reorder(w0, h)\nsch.compute_at('conv', w0)\n");
  refused(pointwise,
          "sch.transform_layout('conv', ('write', 0), 'NCHW4c', rewrite_loops=True)\n"
          "sch.drop_padding_predicate('conv')\n",
          "axis 0 of 'W' is not proved to stay");
  refused(copy, "sch.drop_padding_predicate('B')\n", "has no predicate");
  refused(copy,
          "i, j = sch.get_loops('B')\nsch.split(i, factors=[None, 4])\n"
          "sch.drop_padding_predicate('B')\n",
          "only out of padding");
  refused(copy,
          "sch.transform_layout('B', ('write', 0), lambda i, j: [i // 4, j, i % 4], "
          "pad_value=1.5)\nsch.drop_padding_predicate('B')\n",
          "has no predicate");
}

static void test_padding_content(void **state) {
  (void)state;
  Context *context = context_new();
  // The consumer reads padding with zeros, so its own predicate is removed.
  made(pointwise, "sch.transform_layout('conv', ('write', 0), 'NCHW4c', pad_value=0.0)\n");
  Schedule *schedule = check_made(
      context, copy,
      "sch.transform_layout('B', ('write', 0), lambda i, j: [i // 4, j, i % 4], pad_value=-1)\n");
  const Layout *layout = schedule_func(schedule)->buffers[1]->layout;
  assert_int_equal(layout->padding.kind, LAYOUT_PADDING_CONSTANT);
  // The run must store that value in the padding.
  float a[210], b[8 * 7 * 4];
  for (int i = 0; i < 210; i++) a[i] = (float)i;
  for (int i = 0; i < COUNT_OF(b); i++) b[i] = NAN;
  InterpTensor args[2] = {{DTYPE_FLOAT32, 2, (int64_t[]){30, 7}, NULL, a},
                          {DTYPE_FLOAT32, 3, (int64_t[]){8, 7, 4}, NULL, b}};
  assert_true(interp_run(context, NULL, schedule_func(schedule), args, 2, NULL));
  int padding = 0;
  for (int i = 0; i < COUNT_OF(b); i++) padding += b[i] == -1.0f;
  assert_int_equal(padding, 2 * 7);
  made(copy, "sch.transform_layout('B', ('write', 0), lambda i, j: [i // 4, j, i % 4])\n"
             "sch.pad_value('B', ('write', 0), 3.0)\n");
  made(copy,
       "sch.transform_layout('B', ('read', 0), lambda i, j: [i // 4, j, i % 4], pad_value=0)\n");
  // A block that does not iterate over padding gets another one beside it.
  made(copy, "i, j = sch.get_loops('B')\nsch.fuse(i, j)\n"
             "sch.transform_layout('B', ('write', 0), lambda i, j: [i // 4, j, i % 4], "
             "pad_value=0)\n");
  // The block runs over more points than the buffer has: points beyond it are not padding.
  refused(copy,
          "sch.transform_block_layout('B', lambda i, j: [i // 16, j, i % 16])\n"
          "sch.transform_layout('B', ('write', 0), lambda i, j: [i // 3, j, i % 3])\n"
          "sch.drop_padding_predicate('B')\n",
          "only out of padding");
  made(copy, "sch.transform_block_layout('B', lambda i, j: [i // 16, j, i % 16])\n"
             "sch.transform_layout('B', ('write', 0), lambda i, j: [i // 4, j, i % 4], "
             "pad_value=2)\n");
  context_free(context);
}

// A later layout keeps the content, also in the padding that it adds.
static void test_padding_content_in_a_later_layout(void **state) {
  (void)state;
#define TWICE(MAP)                                                                                 \
  "sch.transform_layout('B', ('write', 0), lambda i, j: [i // 4, j, i % 4], pad_value=-1)\n"       \
  "sch.transform_layout('B', ('write', 0), " MAP ", rewrite_loops=True)\n"
  made_with(copy, TWICE("lambda i, j, k: [j, i, k]"), "for j, i_0, i_1 in T.grid(7, 8, 4)");
  made_with(copy, TWICE("lambda i, j, k: [j // 4, i, k, j % 4]"),
            "T.if_then_else(vi_0 * 4 + vi_1 < 30 and vj_0 * 4 + vj_1 < 7, ");
  Context *context = context_new();
  Schedule *schedule = check_made(context, copy, TWICE("lambda i, j, k: [j, i, k]"));
  assert_int_equal(schedule_func(schedule)->buffers[1]->layout->padding.kind,
                   LAYOUT_PADDING_CONSTANT);
  assert_null(strstr(check_text(context, schedule_func(schedule)), "buffer_B_padding"));
#undef TWICE
  context_free(context);
}

// A copy between the writer and memory keeps the content of the padding.
static void test_padding_content_through_a_cache(void **state) {
  (void)state;
  Context *context = context_new();
  Schedule *schedule = check_made(
      context, copy,
      "sch.transform_layout('B', ('write', 0), lambda i, j: [i // 4, j, i % 4], pad_value=-1)\n"
      "sch.cache_write('B', 0, 'local')\n");
  BlockRefs blocks = {0};
  schedule_get_child_blocks(schedule, str_intern(context, "root"), NULL, &blocks);
  assert_int_equal(blocks.count, 2);
  for (int i = 0; i < 2; i++)
    assert_true(expr_is_true(schedule_block(schedule, blocks.items[i])->predicate));
  context_free(context);
}

static void test_maps_that_are_refused(void **state) {
  (void)state;
  refused(copy, "sch.transform_layout('B', ('write', 0), lambda i, j: [i % 8, j])\n",
          "B[0, 0] and B[8, 0] would both be stored at [0, 0]");
  refused(copy, "sch.transform_layout('B', ('write', 0), lambda i, j: [i + j])\n",
          "not injective on the shape of 'B'");
  refused(copy, "sch.transform_layout('B', ('write', 1), lambda i, j: [j, i])\n",
          "1 written buffers");
  refused(copy, "sch.transform_layout('B', 'C', lambda i, j: [j, i])\n",
          "neither reads nor writes 'C'");
  refused(copy, "sch.transform_layout('B', 'B', lambda i: [i])\n", "takes 1 axes");
}

static const char viewed[] =
    HEAD "def f(A: T.Buffer((6, 4), 'float32'), B: T.Buffer((6, 4), 'float32')):\n"
         "    A_flat = T.decl_buffer((24,), 'float32', data=A.data)\n"
         "    for i, j in T.grid(6, 4):\n"
         "        with T.block('B'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            B[vi, vj] = A[vi, vj] + A_flat[vi * 4 + vj]\n";

static const char twin[] =
    HEAD "def f(A: T.Buffer((6, 4), 'float32'), B: T.Buffer((6, 4), 'float32')):\n"
         "    A2 = T.decl_buffer((6, 4), 'float32', data=A.data)\n"
         "    for i, j in T.grid(6, 4):\n"
         "        with T.block('B'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            B[vi, vj] = A[vi, vj] + A2[5 - vi, vj]\n";

#define RESHAPED(SHAPE, REST, INDEX)                                                               \
  HEAD "def f(A: T.Buffer((6, 4), 'float32'), B: T.Buffer((6, 4), 'float32')):\n"                  \
       "    F = T.decl_buffer(" SHAPE ", data=A.data" REST ")\n"                                   \
       "    for i, j in T.grid(6, 4):\n"                                                           \
       "        with T.block('B'):\n"                                                              \
       "            vi, vj = T.axis.remap('SS', [i, j])\n"                                         \
       "            B[vi, vj] = A[vi, vj] + T.Cast('float32', F[" INDEX "])\n"

static const char stacked[] =
    HEAD "def f(A: T.Buffer((6, 4), 'float32'), B: T.Buffer((6, 4), 'float32')):\n"
         "    C = T.alloc_buffer((6, 4), 'float32')\n"
         "    for i in range(3):\n"
         "        with T.block('rows'):\n"
         "            vi = T.axis.spatial(3, i)\n"
         "            S = T.match_buffer(C[vi * 2:vi * 2 + 2, 0:4], (2, 4), offset_factor=1)\n"
         "            for k in range(2):\n"
         "                with T.block('row'):\n"
         "                    vk = T.axis.spatial(2, k)\n"
         "                    R = T.match_buffer(S[vk, 0:4], (4,), offset_factor=1)\n"
         "                    for j in range(4):\n"
         "                        with T.block('C'):\n"
         "                            vj = T.axis.spatial(4, j)\n"
         "                            R[vj] = A[vi * 2 + vk, vj]\n"
         "    for i, j in T.grid(6, 4):\n"
         "        with T.block('B'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            B[vi, vj] = C[vi, 3 - vj] * T.float32(2)\n";

static void test_aliases_move_together(void **state) {
  (void)state;
  made(viewed, "sch.transform_layout('B', 'A', lambda i, j: [j, i])\n");
  made(viewed, "sch.transform_layout('B', 'A', lambda i, j: [i // 4, j, i % 4])\n");
  made(twin, "sch.transform_layout('B', 'A', lambda i, j: [j, i])\n");
  made(twin, "sch.transform_layout('B', 'A2', lambda i, j: [i // 4, j, i % 4])\n");
  made(RESHAPED("(3, 4)", ", elem_offset=8", "vi % 3, 3 - vj"),
       "sch.transform_layout('B', 'A', lambda i, j: [j // 3, i, j % 3])\n");
  refused(RESHAPED("(3, 4), 'int32'", "", "vi % 3, vj"),
          "sch.transform_layout('B', 'A', lambda i, j: [j, i])\n", "'F' shares its memory");
  made(viewed, "sch.transform_layout('B', 'A_flat', lambda i: [i // 5, i % 5], pad_value=0)\n");
}

static const char whole_view[] =
    HEAD "def f(A: T.Buffer((3, 7), 'float32'), C: T.Buffer((3, 7), 'float32')):\n"
         "    with T.block('all'):\n"
         "        S = T.match_buffer(C[0:3, 0:7], (3, 7), offset_factor=1)\n"
         "        for i, j in T.grid(3, 7):\n"
         "            with T.block('B'):\n"
         "                vi, vj = T.axis.remap('SS', [i, j])\n"
         "                S[vi, vj] = A[vi, vj] * T.float32(2)\n";

static void test_views_move_with_their_source(void **state) {
  (void)state;
  made(stacked, "sch.transform_layout('B', 'C', lambda i, j: [j, i])\n");
  made(stacked, "sch.transform_layout('B', 'C', lambda i, j: [i // 4, j, i % 4], pad_value=0)\n");
  made(stacked, "sch.set_axis_separator('B', 'C', [1])\n");
  made(whole_view, "sch.transform_layout('B', 'S', lambda i, j: [j // 4, i, j % 4])\n");
  refused(stacked, "sch.transform_layout('C', 'R', lambda j: [j // 2, j % 2])\n",
          "it is a view of a part of 'C'\nname 'C' in this step");
}

static void test_separators(void **state) {
  (void)state;
  Context *context = context_new();
  Schedule *schedule = check_made(
      context, copy,
      "sch.transform_layout('B', ('write', 0), lambda i, j: [i // 5, AXIS_SEPARATOR, j, i % 5])\n"
      "sch.set_axis_separator('B', ('read', 0), [1])\n");
  for (int k = 0; k < 2; k++) {
    assert_int_equal(schedule_func(schedule)->buffers[k]->separator_count, 1);
    assert_int_equal(schedule_func(schedule)->buffers[k]->separators[0], 1);
  }
  refused(copy, "sch.set_axis_separator('B', ('read', 0), [2])\n", "between 1 and 1");
  context_free(context);
}

static void test_block_layout(void **state) {
  (void)state;
  made(copy, "sch.transform_block_layout('B', lambda i, j: [j, i // 5, i % 5])\n");
  made(copy, "sch.transform_block_layout('B', lambda i, j: [i * 7 + j])\n"
             "f, = sch.get_loops('B')\nsch.parallel(f)\n");
  made(pointwise, "sch.transform_block_layout('conv', lambda n, o, h, w, c: "
                  "[n, h * 6 + w, o // 4, c // 5, o % 4, c % 5])\n");
  refused(pointwise,
          "sch.transform_block_layout('conv', lambda n, o, h, w, c: "
          "[n, h, w, o * 13 + c])\n",
          "mixes spatial and reduction");
  refused(copy, "sch.transform_block_layout('B', lambda i, j: [i])\n", "no proved inverse");
#define VIEWED(STORE)                                                                              \
  HEAD "def f(A: T.Buffer((8, 6), 'float32'), B: T.Buffer((8, 7), 'float32')):\n"                  \
       "    for i, j in T.grid(8, 3):\n"                                                           \
       "        with T.block('B'):\n"                                                              \
       "            vi, vj = T.axis.remap('SS', [i, j])\n"                                         \
       "            S = T.match_buffer(A[vi, vj * 2:vj * 2 + 2], (2,), offset_factor=1)\n"         \
       "            for k in range(2):\n"                                                          \
       "                " STORE " = S[k] * T.float32(2)\n"
  made(VIEWED("B[vi, vj * 2 + k]"), "sch.transform_block_layout('B', lambda i, j: [j, i])");
  made(VIEWED("B[vi, vj * 2 + k]"), "sch.transform_block_layout('B', lambda i, j: [i * 3 + j])");
  refused(VIEWED("B[vi, vj + k]"), "sch.transform_block_layout('B', lambda i, j: [j, i])",
          "not proved to be independent");
}

static const char symbolic[] = HEAD "def f(a: T.handle, b: T.handle):\n"
                                    "    n = T.int32()\n"
                                    "    A = T.match_buffer(a, (n, 10), 'float32')\n"
                                    "    B = T.match_buffer(b, (n, 10), 'float32')\n"
                                    "    for i, j in T.grid(n, 10):\n"
                                    "        with T.block('B'):\n"
                                    "            vi, vj = T.axis.remap('SS', [i, j])\n"
                                    "            B[vi, vj] = A[vi, vj] + T.float32(1)\n";

#define FALLING(WRITTEN, READ)                                                                     \
  HEAD "def f(a: T.handle, c: T.handle):\n"                                                        \
       "    n = T.int32()\n"                                                                       \
       "    A = T.match_buffer(a, (n, 3), 'float32')\n"                                            \
       "    C = T.match_buffer(c, (n, 3), 'float32')\n"                                            \
       "    B = T.alloc_buffer((n, 3), 'float32')\n"                                               \
       "    for i, j in T.grid(n, 3):\n"                                                           \
       "        with T.block('B'):\n"                                                              \
       "            vi, vj = T.axis.remap('SS', [i, j])\n"                                         \
       "            B[" WRITTEN "] = A[vi, vj] + T.float32(1)\n"                                   \
       "    for i, j in T.grid(n, 3):\n"                                                           \
       "        with T.block('C'):\n"                                                              \
       "            vi, vj = T.axis.remap('SS', [i, j])\n"                                         \
       "            C[vi, vj] = B[" READ "] * T.float32(2)\n"

static void symbolic_made_in(const char *program, const char *steps, int64_t n) {
  Context *context = context_new();
  PrimFunc *before = check_parse(context, program);
  Schedule *schedule = schedule_new(context, before);
  bool made = check_replay(schedule, steps);
  if (!made) diag_print_all(context, stderr);
  assert_true(made);
  const PrimFunc *after = schedule_func(schedule);
  assert_true(verify_prim_func(context, after, IR_LEVEL_TENSOR));
  InterpSize size = {before->buffers[0]->shape[0], n};
  InterpCompare compare = {.sizes = &size, .size_count = 1, .seed = 3, .rtol = 1e-5, .atol = 1e-5};
  InterpDifference difference;
  bool same = interp_compare(context, before, after, &compare, &difference);
  if (!same) fprintf(stderr, "%s\n", check_text(context, after));
  assert_true(same);
  check_trace(context, before, schedule);
  context_free(context);
}

static void symbolic_made(const char *steps, int64_t n) {
  symbolic_made_in(symbolic, steps, n);
}

static void test_symbolic_sizes(void **state) {
  (void)state;
  static const char *const inlines[] = {"sch.compute_inline('B')",
                                        "sch.reverse_compute_inline('C')"};
  for (int i = 0; i < COUNT_OF(inlines); i++) {
    symbolic_made_in(FALLING("n - 1 - vi, vj", "vi, 2 - vj"), inlines[i], 7);
    symbolic_made_in(FALLING("vi, vj", "n - 1 - vi, vj"), inlines[i], 5);
    symbolic_made_in(FALLING("n - 1 - vi, 2 - vj", "n - 1 - vi, 2 - vj"), inlines[i], 1);
  }
  symbolic_made("i, j = sch.get_loops('B')\na, b = sch.split(i, factors=[None, 4])\n"
                "sch.reorder(b, j, a)\nsch.parallel(a)\nsch.vectorize(b)\n",
                7);
  symbolic_made("i, j = sch.get_loops('B')\nf = sch.fuse(i, j)\n"
                "sch.parallel(f)\n",
                13);
  symbolic_made("c = sch.cache_read('B', 0, 'local')\ni, j = sch.get_loops('B')\n"
                "a, b = sch.split(i, factors=[None, 3])\nsch.compute_at(c, a)\n",
                8);
  Context *context = context_new();
  Schedule *schedule = schedule_new(context, check_parse(context, symbolic));
  bool made = check_replay(
      schedule, "sch.transform_layout('B', ('write', 0), lambda i, j: [i // 4, j, i % 4])\n");
  if (!made) diag_print_all(context, stderr);
  assert_true(made);
  assert_int_equal(schedule_func(schedule)->buffers[1]->rank, 3);
  assert_true(expr_is_int(schedule_func(schedule)->buffers[1]->shape[2], 4));
  assert_true(verify_prim_func(context, schedule_func(schedule), IR_LEVEL_TENSOR));
  context_free(context);
}

// ---- Axis by axis ------------------------------------------------------------------------------

#define SQUARE(ROWS, COLUMNS)                                                                      \
  HEAD "def f(A: T.Buffer((" ROWS ", " COLUMNS "), 'float32'),\n"                                  \
       "      C: T.Buffer((" ROWS ", " COLUMNS "), 'float32')):\n"                                 \
       "    B = T.alloc_buffer((" ROWS ", " COLUMNS "))\n"                                         \
       "    for i, j in T.grid(" ROWS ", " COLUMNS "):\n"                                          \
       "        with T.block('B'):\n"                                                              \
       "            vi, vj = T.axis.remap('SS', [i, j])\n"                                         \
       "            B[vi, vj] = A[vi, vj] * T.float32(2)\n"                                        \
       "    for i, j in T.grid(" ROWS ", " COLUMNS "):\n"                                          \
       "        with T.block('C'):\n"                                                              \
       "            vi, vj = T.axis.remap('SS', [i, j])\n"                                         \
       "            C[vi, vj] = B[vi, vj] + A[vi, vj]\n"

// Checks the physical shape of B after the steps, and the trace in the other form.
static void axes(const char *program, const char *steps, const char *shape, TraceForm form,
                 const char *trace) {
  Context *context = context_new();
  Schedule *schedule = check_made(context, program, steps);
  const char *text = check_text(context, schedule_func(schedule));
  const char *wanted = str_format(context, "B = T.alloc_buffer((%s)", shape);
  if (!strstr(text, wanted)) fprintf(stderr, "%s\nwanted: %s\n", text, wanted);
  assert_non_null(strstr(text, wanted));
  const char *other = strchr(schedule_trace_as(schedule, form), '\n') + 1;
  if (strcmp(other, trace) != 0) fprintf(stderr, "%s\nwanted:\n%s", other, trace);
  assert_string_equal(other, trace);
  context_free(context);
}

static void test_steps_on_axes(void **state) {
  (void)state;
  static const char program[] = SQUARE("13", "7");
  axes(program, "sch.split_axis('B', 'B', 1, [None, 4], pad_value=3)", "13, 2, 4", TRACE_BY_MAP,
       "sch.transform_layout(b0, \"B\", lambda i0, i1: [i0, i1//4, i1%4], pad_value=3, "
       "rewrite_loops=True)\n");
  axes(program, "sch.split_axis('B', 'B', -2, [5, None])", "5, 3, 7", TRACE_BY_MAP,
       "sch.transform_layout(b0, \"B\", lambda i0, i1: [i0//3, i0%3, i1], rewrite_loops=True)\n");
  axes(program, "sch.fuse_axes('B', 'B', [0, 1])", "91,", TRACE_BY_MAP,
       "sch.transform_layout(b0, \"B\", lambda i0, i1: [i0*7 + i1], rewrite_loops=True)\n");
  axes(program, "sch.reorder_axes('B', ('write', 0), [-1, 0])", "7, 13", TRACE_BY_MAP,
       "sch.transform_layout(b0, (\"write\", 0), lambda i0, i1: [i1, i0], rewrite_loops=True)\n");
  axes(
      program, "sch.pad_axis('B', 'B', 0, 8)", "16, 7", TRACE_BY_MAP,
      "sch.transform_layout(b0, \"B\", lambda i0, i1: [i0//8*8 + i0%8, i1], rewrite_loops=True)\n");
  axes(program, "sch.swizzle_axes('B', 'B', 1, 0)", "13, 16", TRACE_BY_MAP,
       "sch.transform_layout(b0, \"B\", lambda i0, i1: [i0, i1 ^ i0], rewrite_loops=True)\n");
  axes(program, "sch.separate_axis('B', 'B', 1)", "13, 7", TRACE_BY_MAP,
       "sch.transform_layout(b0, \"B\", \"i0, i1 -> i0 | i1\", rewrite_loops=True)\n");
  axes(program,
       "sch.split_axis('B', 'B', 0, [None, 4])\nsch.separate_axis('B', 'B', 2)\n"
       "sch.reorder_axes('B', 'B', [1, 0, 2])\nsch.fuse_axes('B', 'B', [0, 1])\n",
       "16, 7", TRACE_BY_MAP,
       "sch.transform_layout(b0, \"B\", \"i0, i1 -> i0%4*4 + i0//4 | i1\", "
       "rewrite_loops=True)\n");
}

static void test_maps_axis_by_axis(void **state) {
  (void)state;
  static const char program[] = SQUARE("13", "7"), powers[] = SQUARE("16", "32");
  axes(program,
       "sch.transform_layout('B', ('write', 0), lambda i, j: [j // 4, i, j % 4], "
       "rewrite_loops=True)",
       "2, 13, 4", TRACE_BY_AXIS,
       "sch.split_axis(b0, \"B\", 1, [None, 4])\nsch.reorder_axes(b0, \"B\", [1, 0, 2])\n");
  axes(program,
       "sch.transform_layout('B', 'B', lambda i, j: [j % 16, i % 5 * 3 + i // 5, 0], pad_value=1)",
       "16, 15, 1", TRACE_BY_AXIS,
       "sch.split_axis(b0, \"B\", 0, [None, 5, 1])\nsch.pad_axis(b0, \"B\", 3, 16)\n"
       "sch.reorder_axes(b0, \"B\", [3, 1, 0, 2])\n"
       "sch.fuse_axes(b0, \"B\", [1, 2])\nsch.pad_value(b0, \"B\", 1)\n");
  axes(powers,
       "sch.transform_layout('B', 'B', lambda i, j: [i, AXIS_SEPARATOR, j // 4 ^ i % 8, j % 4], "
       "rewrite_loops=True)",
       "16, 8, 4", TRACE_BY_AXIS,
       "sch.split_axis(b0, \"B\", 1, [None, 4])\nsch.split_axis(b0, \"B\", 0, [None, 8])\n"
       "sch.swizzle_axes(b0, \"B\", 2, 1)\nsch.fuse_axes(b0, \"B\", [0, 1])\n"
       "sch.separate_axis(b0, \"B\", 1)\n");
  axes(powers,
       "sch.transform_layout('B', 'B', lambda i, j: [i * 32 + j ^ i % 2 * 8], rewrite_loops=True)",
       "512,", TRACE_BY_AXIS,
       "sch.split_axis(b0, \"B\", 1, [None, 8])\nsch.split_axis(b0, \"B\", 0, [None, 2])\n"
       "sch.swizzle_axes(b0, \"B\", 2, 1)\nsch.fuse_axes(b0, \"B\", [0, 1, 2, 3])\n");
  axes(program,
       "sch.transform_layout('B', 'B', lambda i, j: [(i + j) % 13, j], rewrite_loops=True)",
       "13, 7", TRACE_BY_AXIS,
       "# The next step is not written axis by axis: (i + j)%13 is not a sum of digits of the "
       "axes.\n"
       "sch.transform_layout(b0, \"B\", lambda i, j: [(i + j)%13, j], rewrite_loops=True)\n");
}

static void test_axes_of_unit_extent_and_views(void **state) {
  (void)state;
  static const char units[] = SQUARE("1", "7");
  axes(units, "sch.transform_layout('B', 'B', lambda i, j: [j % 4, j // 4], rewrite_loops=True)",
       "4, 2", TRACE_BY_AXIS,
       "sch.split_axis(b0, \"B\", 1, [None, 4])\nsch.reorder_axes(b0, \"B\", [0, 2, 1])\n"
       "sch.fuse_axes(b0, \"B\", [0, 1])\n");
  made(unit_batch, "sch.split_axis('C', ('read', 1), 4, [None, 2])\n"
                   "sch.reorder_axes('C', 'A', [4, 0, 1, 2, 3, 5])\n");
}

static void test_refused_steps_on_axes(void **state) {
  (void)state;
  static const char program[] = SQUARE("13", "7");
  made(program, "sch.transform_layout('B', 'B', lambda i, j: [j, i], "
                "assume_injective_transform=True)");
  refused(program,
          "sch.transform_layout('B', 'B', lambda i, j: [j], assume_injective_transform=True)",
          "index map is not injective");
  refused(program, "sch.split_axis('B', 'B', 2, [None, 4])", "there is no axis 2");
  refused(program, "sch.split_axis('B', 'B', 0, [None, None])", "at most one of them None");
  refused(program, "sch.split_axis('B', 'B', 0, [0, 2])", "positive integers");
  refused(program, "sch.split_axis('B', 'B', 0, [])", "the number of factors is 1 to 62");
  refused(program, "sch.split_axis('B', 'B', 0, [3, 4])", "index map is not injective");
  refused(program, "sch.split_axis('B', 'B', 0, [9223372036854775807, 4])", "is too large");
  refused(program, "sch.fuse_axes('B', 'B', [1, 0])", "must follow one another");
  refused(program, "sch.fuse_axes('B', 'B', [])", "no axis is given");
  refused(program, "sch.separate_axis('B', 'B', 1)\nsch.fuse_axes('B', 'B', [0, 1])",
          "an axis separator of 'B' is before axis 1");
  refused(program, "sch.reorder_axes('B', 'B', [0, 0])", "each of the 2 axes of 'B' once");
  refused(program, "sch.reorder_axes('B', 'B', [0, 'x'])", "the number of an axis is an integer");
  refused(program, "sch.pad_axis('B', 'B', 0, 0)", "the multiple 0 is not positive");
  refused(program, "sch.swizzle_axes('B', 'B', 1, -1)", "swizzled by another one");
  refused(program, "sch.swizzle_banks('B', 'B')", "'B' is in scope 'global'; memory with banks");
  refused(program, "sch.set_scope('B', 0, 'shared')\nsch.swizzle_banks('B', ('write', 0))",
          "no loop over threads accesses 'B'");
  refused(program, "sch.separate_axis('B', 'B', 0)", "no axis of 'B' is before axis 0");
  refused(program, "sch.separate_axis('B', 'B', 1)\nsch.separate_axis('B', 'B', -1)",
          "axis 1 of 'B' is separated already");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_steps_on_axes),
      cmocka_unit_test(test_maps_axis_by_axis),
      cmocka_unit_test(test_axes_of_unit_extent_and_views),
      cmocka_unit_test(test_refused_steps_on_axes),
      cmocka_unit_test(test_every_access_is_mapped),
      cmocka_unit_test(test_printed_is_equal),
      cmocka_unit_test(test_flat_and_swizzled),
      cmocka_unit_test(test_the_writer_iterates_physically),
      cmocka_unit_test(test_neutral_padding_is_reduced),
      cmocka_unit_test(test_padding_predicates_drop),
      cmocka_unit_test(test_padding_content),
      cmocka_unit_test(test_padding_content_in_a_later_layout),
      cmocka_unit_test(test_padding_content_through_a_cache),
      cmocka_unit_test(test_maps_that_are_refused),
      cmocka_unit_test(test_aliases_move_together),
      cmocka_unit_test(test_views_move_with_their_source),
      cmocka_unit_test(test_separators),
      cmocka_unit_test(test_block_layout),
      cmocka_unit_test(test_symbolic_sizes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
