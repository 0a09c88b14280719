// SPDX-License-Identifier: Apache-2.0
// Steps on programs whose indices read memory, which may change or which only a predicate keeps in
// bounds, and on parts of blocks with memory and views of their own.
#include "schedule_check.h"

// Rows are chosen by numbers that the nest of the reader stores.
static const char *const chosen_rows =
    HEAD "def f(A: T.Buffer((8, 5), 'float32'), I: T.Buffer((6,), 'int32'),\n"
         "      G: T.Buffer((6, 5), 'float32')):\n"
         "    S = T.alloc_buffer((6,), 'int32')\n"
         "    B = T.alloc_buffer((8, 5))\n"
         "    for u in range(1):\n"
         "        for i, j in T.grid(8, 5):\n"
         "            with T.block('B'):\n"
         "                vi, vj = T.axis.remap('SS', [i, j])\n"
         "                B[vi, vj] = A[vi, vj]\n"
         "        for i in range(6):\n"
         "            for k in range(1):\n"
         "                with T.block('S'):\n"
         "                    vi = T.axis.spatial(6, i)\n"
         "                    S[vi] = I[vi] + 1\n"
         "                for j in range(5):\n"
         "                    with T.block('G'):\n"
         "                        vi, vj = T.axis.remap('SS', [i, j])\n"
         "                        G[vi, vj] = B[T.max(T.min(S[vi], 7), 0), vj]\n";

static void test_indices_that_change(void **state) {
  (void)state;
  made(chosen_rows, "i = sch.get_loops('G')\nsch.read_at(i[1], 'G', 0, 'local')\n");
  made(chosen_rows, "sch.cache_read('G', 0, 'local')\n");
  made(chosen_rows, "i = sch.get_loops('S')\nsch.compute_at('B', i[1])\n");
  made(chosen_rows, "i = sch.get_loops('S')\nsch.compute_at('B', i[2])\n");
  made(chosen_rows, "sch.reindex('G', ('read', 1))\n");
  made_with(chosen_rows, "sch.reindex('G', ('read', 0))\n",
            "in T.grid(6, 1):\n            with T.block(\"S\"):");
  made(chosen_rows, "sch.reindex_cache_read('G', 0, 'local', lambda i, j: [j, i])\n");
  refused(HEAD "def f(A: T.Buffer((8, 5), 'float32'), I: T.Buffer((6,), 'int32'),\n"
               "      G: T.Buffer((6, 5), 'float32')):\n"
               "    S = T.alloc_buffer((6,), 'int32')\n"
               "    for i in T.parallel(6):\n"
               "        with T.block('S'):\n"
               "            vi = T.axis.spatial(6, i)\n"
               "            S[vi] = I[vi] + 1\n"
               "        for j in range(5):\n"
               "            with T.block('G'):\n"
               "                vi, vj = T.axis.remap('SS', [i, j])\n"
               "                G[vi, vj] = A[T.max(T.min(S[vi], 7), 0), vj]\n",
          "sch.reindex('G', ('read', 0))\n",
          "block 'S' in the same nest writes what chooses the element of 'A'");
}

// Rows that are chosen by a parameter, and their sums with mirrored columns.
static const char *const rows =
    HEAD "def f(A: T.Buffer((8, 5), 'float32'), I: T.Buffer((6,), 'int32'),\n"
         "      D: T.Buffer((6, 5), 'float32')):\n"
         "    B = T.alloc_buffer((8, 5))\n"
         "    G = T.alloc_buffer((6, 5))\n"
         "    for i, j in T.grid(8, 5):\n"
         "        with T.block('B'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            B[vi, vj] = A[vi, vj] + T.float32(1)\n"
         "    for i, j in T.grid(6, 5):\n"
         "        with T.block('G'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            G[vi, vj] = B[T.max(T.min(I[vi], 7), 0), vj]\n"
         "    for i, j in T.grid(6, 5):\n"
         "        with T.block('D'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            D[vi, vj] = G[vi, vj] + G[vi, 4 - vj]\n";

static void test_indices_under_predicates(void **state) {
  (void)state;
  const char *split = "i, j = sch.get_loops('G')\no, l = sch.split(i, [None, 4])\n";
  const char *const then[] = {
      "sch.read_at(l, 'G', 0, 'local')\n",
      "sch.compute_at('B', l)\n",
      "sch.compute_at('B', o)\n",
      "sch.cache_read('G', 0, 'local')\n",
  };
  for (int i = 0; i < COUNT_OF(then); i++) {
    Context *context = context_new();
    made(rows, arena_printf(&context->arena, "%s%s", split, then[i]));
    context_free(context);
  }
  refused(rows,
          "sch.transform_block_layout('G', lambda i, j: [i // 4, i % 4, j])\n"
          "sch.reindex('G', ('read', 0))\n",
          "axis 0 of 'B' is not proved to stay in its extent");
  // The bound of a loop reads memory: the iterations beyond the end must not reach it.
  made(rows, "i, j = sch.get_loops('G')\nsch.compute_at('B', i)\nsch.split(i, [None, 4])\n");
  made(rows, "l = sch.get_loops('D')\nb, = sch.cache_index('D', 'global', 1)\n"
             "o, i = sch.split(l[1], [None, 2])\nsch.compute_at('G', i)\n");
  made(rows, "l = sch.get_loops('D')\nb, = sch.cache_index('D', 'global', 1)\n"
             "sch.compute_at('G', l[1])\nsch.split(l[1], [None, 2])\n");
}

// A column through a view whose offset the block asks for.
static const char *const columns =
    HEAD "def f(G: T.Buffer((6, 5), 'float32'), C: T.Buffer((5, 6), 'float32')):\n"
         "    for j in range(5):\n"
         "        with T.block('C'):\n"
         "            vj = T.axis.spatial(5, j)\n"
         "            T.reads(G[0:6, vj])\n"
         "            T.writes(C[vj, 0:6])\n"
         "            R = T.match_buffer(G[0:6, vj:vj + 1], (6, 1), strides=[5, 1], "
         "offset_factor=1)\n"
         "            for i in range(6):\n"
         "                C[vj, i] = R[i, 0]\n";

static void test_copies_of_views(void **state) {
  (void)state;
  refused(rows,
          "l = sch.get_loops('D')\nb = sch.read_at(l[1], 'D', 0, 'local')\n"
          "sch.reindex_cache_read(b, 0, 'local', lambda i, j: [j, i])\n",
          "is not one of the variables of block");
  made(columns, "j, = sch.get_loops('C')\nsch.loop_partition(j, factors=[3, None, 1])\n");
  made(columns, "j, = sch.get_loops('C')\no, l = sch.split(j, [5, 1])\n"
                "sch.loop_partition(o, factors=[1, 2, None], preserve_unit_iters=False)\n");
}

// A window whose init is in a block with memory of its own, as blockize makes it.
static const char *const sums =
    HEAD "def f(A: T.Buffer((3, 7), 'float32'), C: T.Buffer((3, 5), 'float32')):\n"
         "    for i, j, k in T.grid(3, 5, 3):\n"
         "        with T.block('C'):\n"
         "            vi, vj, vk = T.axis.remap('SSR', [i, j, k])\n"
         "            with T.init():\n"
         "                C[vi, vj] = T.float32(2)\n"
         "            C[vi, vj] = C[vi, vj] + A[vi, vj + vk]\n";
#define BLOCKED "l = sch.get_loops('C')\no = sch.blockize(l[1])\nb = sch.get_child_blocks(o)\n"

static void test_inits_with_memory(void **state) {
  (void)state;
  made(sums, BLOCKED "sch.reindex(b[0], ('write', 0))\nsch.decompose_reduction(o, l[0])\n");
  const char *shared = HEAD "def f(A: T.Buffer((3, 7), 'float32'), C: T.Buffer((3,), 'float32')):\n"
                            "    for i, k in T.grid(3, 7):\n"
                            "        with T.block('C'):\n"
                            "            vi, vk = T.axis.remap('SR', [i, k])\n"
                            "            S = T.alloc_buffer((1,))\n"
                            "            with T.init():\n"
                            "                S[0] = T.float32(1)\n"
                            "                C[vi] = S[0]\n"
                            "            S[0] = A[vi, vk]\n"
                            "            C[vi] = C[vi] + S[0]\n";
  refused(shared, "i, k = sch.get_loops('C')\nsch.decompose_reduction('C', k)\n",
          "allocates 'S', which its init and its updates use");
}

// A sum below a condition, on the rows or on the terms.
#define CONDITIONAL(CONDITION)                                                                     \
  HEAD "def f(A: T.Buffer((5, 7), 'float32'), C: T.Buffer((5,), 'float32')):\n"                    \
       "    for o, i in T.grid(3, 2):\n"                                                           \
       "        for k in range(7):\n"                                                              \
       "            if " CONDITION ":\n"                                                           \
       "                with T.block('C'):\n"                                                      \
       "                    vi = T.axis.spatial(5, T.min(o * 2 + i, 4))\n"                         \
       "                    vk = T.axis.reduce(7, k)\n"                                            \
       "                    with T.init():\n"                                                      \
       "                        C[vi] = T.float32(0)\n"                                            \
       "                    C[vi] = C[vi] + A[vi, vk]\n"

static void test_inits_below_conditions(void **state) {
  (void)state;
  made_with(CONDITIONAL("o * 2 + i < 5"),
            "l = sch.get_loops('C')\nsch.decompose_reduction('C', l[0])\n",
            "T.where(o * 2 + i < 5)");
  refused(CONDITIONAL("k < 5"), "l = sch.get_loops('C')\nsch.decompose_reduction('C', l[2])\n",
          "would leave a statement that is neither a loop nor a condition");
  refused(HEAD "def f(A: T.Buffer((5, 7), 'float32'), C: T.Buffer((5,), 'float32')):\n"
               "    for r, i, k in T.grid(3, 5, 7):\n"
               "        with T.block('C'):\n"
               "            vi, vk = T.axis.remap('SR', [i, k])\n"
               "            with T.init():\n"
               "                C[vi] = T.float32(0)\n"
               "            C[vi] = C[vi] + A[vi, vk]\n",
          "l = sch.get_loops('C')\nsch.decompose_reduction('C', l[0])\n",
          "loop 'r' repeats block 'C'");
  // Windows that overlap: two iterations of i sum up to the same element.
  refused(HEAD "def f(A: T.Buffer((5, 7), 'float32'), C: T.Buffer((5,), 'float32')):\n"
               "    for o, i, k in T.grid(4, 2, 7):\n"
               "        with T.block('C'):\n"
               "            vi = T.axis.spatial(5, o + i)\n"
               "            vk = T.axis.reduce(7, k)\n"
               "            with T.init():\n"
               "                C[vi] = T.float32(0)\n"
               "            C[vi] = C[vi] + A[vi, vk]\n",
          "l = sch.get_loops('C')\nsch.decompose_reduction('C', l[0])\n",
          "are not proved to compute each element of block 'C' once");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_indices_that_change),
      cmocka_unit_test(test_indices_under_predicates),
      cmocka_unit_test(test_copies_of_views),
      cmocka_unit_test(test_inits_with_memory),
      cmocka_unit_test(test_inits_below_conditions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
