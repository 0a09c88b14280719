// SPDX-License-Identifier: Apache-2.0
// Structural equality: which differences count, which do not, and where the first one is reported.
#include "script/script.h"

#include <stdlib.h>

#include <setjmp.h>
#include <cmocka.h>

static Module *parse(Context *context, const char *body) {
  Text text = text_new(&context->arena);
  text_printf(&text, "%s", body);
  Module *module = script_parse(
      context, source_file_new(context, "case.py", text_string(&text), strlen(text_string(&text))));
  if (!module) diag_print_all(context, stderr);
  assert_non_null(module);
  return module;
}

#define PROGRAM(parameters, body) "@T.prim_func\ndef f(" parameters "):\n" body
#define TARGET(text) PROGRAM("n: T.int32", "    T.func_attr({\"target\": T.target(" text ")})\n")
#define AB "A: T.Buffer((5, 7), \"float32\"), B: T.Buffer((5, 7), \"float32\")"

typedef struct Pair {
  const char *a, *b;
  const char *difference; // NULL: equal
  int line;               // of both
} Pair;

static const Pair pairs[] = {
    // Names are not compared.
    {PROGRAM(AB, "    for i, j in T.grid(5, 7):\n        B[i, j] = A[i, j]\n"),
     PROGRAM("X: T.Buffer((5, 7), \"float32\"), Y: T.Buffer((5, 7), \"float32\")",
             "    for j, i in T.grid(5, 7):\n        Y[j, i] = X[j, i]\n"),
     NULL, 0},
    // But each variable must correspond to one variable.
    {PROGRAM(AB, "    for i, j in T.grid(5, 7):\n        B[i, j] = A[i, j]\n"),
     PROGRAM(AB, "    for i, j in T.grid(5, 7):\n        A[i, j] = B[i, j]\n"),
     "buffer of the store: 'B' and 'A'", 4},
    {PROGRAM(AB, "    for i, j in T.grid(5, 5):\n        B[i, j] = A[i, j]\n"),
     PROGRAM(AB, "    for i, j in T.grid(5, 5):\n        B[i, j] = A[j, i]\n"),
     "value of the store: i and j", 4},
    {PROGRAM(AB, "    for i in range(5):\n        B[i, 0] = A[i, 0]\n"),
     PROGRAM(AB, "    for i in range(4):\n        B[i, 0] = A[i, 0]\n"),
     "extent of the loop: 5 and 4", 3},
    {PROGRAM(AB, "    for i in range(5):\n        B[i, 0] = A[i, 0]\n"),
     PROGRAM(AB, "    for i in T.parallel(5):\n        B[i, 0] = A[i, 0]\n"), "kind of loop 'i'",
     3},
    {PROGRAM(AB, "    B[0, 0] = A[0, 0]\n    B[0, 1] = A[0, 0] + 1\n"),
     PROGRAM(AB, "    B[0, 0] = A[0, 0]\n    B[0, 1] = A[0, 0] * 1\n"),
     "value of the store: an expression with '+' and an expression with '*'", 4},
    {PROGRAM(AB, "    B[0, 0] = A[0, 0]\n"),
     PROGRAM(AB, "    B[0, 0] = A[0, 0]\n    B[0, 1] = A[0, 0]\n"),
     "only the second has one more statement", 3},
    // Dictionaries are equal in any order, and targets where they mean the same.
    {PROGRAM("n: T.int32", "    T.func_attr({\"d\": {\"x\": 1, \"y\": 2}})\n"),
     PROGRAM("n: T.int32", "    T.func_attr({\"d\": {\"y\": 2, \"x\": 1}})\n"), NULL, 0},
    {PROGRAM("n: T.int32", "    T.func_attr({\"d\": {\"x\": 1, \"y\": 2}})\n"),
     PROGRAM("n: T.int32", "    T.func_attr({\"d\": {\"y\": 1, \"x\": 2}})\n"),
     "attribute 'd': an expression with '[]' and an expression with '[]'", 2},
    {TARGET("\"llvm -num-cores=4\", host=\"c\""),
     TARGET("{\"keys\": [\"cpu\"], \"num-cores\": 4, \"kind\": \"llvm\", "
            "\"host\": {\"kind\": \"c\", \"tag\": \"\"}}"),
     NULL, 0},
    {TARGET("\"cuda\""),
     TARGET("{\"kind\": \"cuda\", \"arch\": \"sm_50\", \"thread_warp_size\": 32, "
            "\"keys\": [\"cuda\", \"gpu\"], \"max_num_threads\": 1024, \"tag\": \"\"}"),
     NULL, 0},
    {TARGET("\"opencl -device=adreno\""),
     TARGET("{\"kind\": \"opencl\", \"keys\": [\"adreno\", \"opencl\", \"gpu\"], "
            "\"device\": \"adreno\"}"),
     NULL, 0},
    {TARGET("\"cuda\""), TARGET("{\"kind\": \"cuda\", \"arch\": \"sm_80\"}"),
     "attribute 'target': a call of target and a call of target", 2},
    {TARGET("\"llvm\", \"c\""), TARGET("\"llvm\""),
     "attribute 'target': a call of target and a call of target", 2},
    // Notes about memory that say what holds of all memory are not compared.
    {PROGRAM(AB, "    X = T.allocate([4], \"int8\", annotations={\"buffer_allocated_addr\": [], "
                 "\"buffer_data_alignment\": 64})\n    B[0, 0] = A[0, 0]\n"),
     PROGRAM(AB, "    X = T.allocate([4], \"int8\")\n    B[0, 0] = A[0, 0]\n"), NULL, 0},
    {PROGRAM(AB, "    X = T.allocate([4], \"int8\", annotations={\"buffer_data_alignment\": 128})\n"
                 "    B[0, 0] = A[0, 0]\n"),
     PROGRAM(AB, "    X = T.allocate([4], \"int8\")\n    B[0, 0] = A[0, 0]\n"),
     "attribute 'buffer_data_alignment': only the first has it", 3},
    // Statements without effect and the name of the dialect are not compared.
    {PROGRAM("n: T.int32", "    pass\n"), PROGRAM("n: T.int32", "    T.evaluate(0)\n"), NULL, 0},
    {PROGRAM(AB, "    B[0, 0] = A[0, 0]\n    T.evaluate(0)\n"),
     PROGRAM(AB, "    B[0, 0] = A[0, 0]\n"), NULL, 0},
    {PROGRAM(AB, "    for i in range(3):\n        T.evaluate(0)\n    B[0, 0] = A[0, 0]\n"),
     PROGRAM(AB, "    for i in range(3):\n        B[0, 0] = A[0, 0]\n"),
     "only the second has one more statement", 4},
    {PROGRAM("n: T.int32", "    T.evaluate(n)\n"), PROGRAM("n: T.int32", "    pass\n"),
     "only the first has one more statement", 0},
    {PROGRAM("n: T.int32", "    T.func_attr({\"s_tir\": True})\n"),
     PROGRAM("n: T.int32", "    pass\n"), NULL, 0},
    {PROGRAM("A: T.Buffer((5, 7), \"float32\")", "    pass\n"),
     PROGRAM("A: T.Buffer((5, 8), \"float32\")", "    pass\n"), "extent of a buffer: 7 and 8", 2},
    {PROGRAM("A: T.Buffer((5, 7), \"float32\")", "    pass\n"),
     PROGRAM("A: T.Buffer((5, 7), \"float16\")", "    pass\n"),
     "element type of buffer 'A': float32 and float16", 2},
    {PROGRAM("A: T.Buffer((5,), \"int8\", scope=\"local\")", "    pass\n"),
     PROGRAM("A: T.Buffer((5,), \"int8\")", "    pass\n"), "scope of buffer 'A': local and global",
     2},
    {PROGRAM("A: T.Buffer((5, 7), \"int8\", axis_separators=[1])", "    pass\n"),
     PROGRAM("A: T.Buffer((5, 7), \"int8\")", "    pass\n"), "axis separators of buffer 'A'", 2},
    {PROGRAM("A: T.Buffer((5, 7), \"int8\")", "    pass\n"),
     PROGRAM("A: T.Buffer((5, 7), \"int8\"), B: T.Buffer((5, 7), \"int8\")", "    pass\n"),
     "parameters: 1 and 2", 2},
    // Symbolic sizes are matched, and must stay the same.
    {PROGRAM("a: T.handle", "    n = T.int64()\n    A = T.match_buffer(a, (n, n), \"int8\")\n"),
     PROGRAM("a: T.handle", "    m = T.int64()\n    A = T.match_buffer(a, (m, m), \"int8\")\n"),
     NULL, 0},
    {PROGRAM("a: T.handle", "    n = T.int64()\n    A = T.match_buffer(a, (n, n), \"int8\")\n"),
     PROGRAM("a: T.handle",
             "    n = T.int64()\n    m = T.int64()\n    A = T.match_buffer(a, (n, m), \"int8\")\n"),
     "extent of a buffer: n and m", 0},
    // The order of attributes and the widths of their numbers are not compared.
    {PROGRAM("n: T.int32", "    T.func_attr({\"a\": 1, \"b\": [\"x\", 2.5]})\n"),
     PROGRAM("n: T.int32",
             "    T.func_attr({\"b\": [\"x\", T.float32(2.5)], \"a\": T.int64(1)})\n"),
     NULL, 0},
    {PROGRAM("n: T.int32", "    T.func_attr({\"a\": 1})\n"),
     PROGRAM("n: T.int32", "    T.func_attr({\"a\": 2})\n"), "attribute 'a': 1 and 2", 2},
    {PROGRAM("n: T.int32", "    T.func_attr({\"a\": 1})\n"), PROGRAM("n: T.int32", "    pass\n"),
     "attribute 'a': only the first has it", 2},
    // Constants differ by type and by bits.
    {PROGRAM(AB, "    B[0, 0] = T.float32(\"nan\")\n"),
     PROGRAM(AB, "    B[0, 0] = T.float32(\"nan\")\n"), NULL, 0},
    {PROGRAM(AB, "    B[0, 0] = T.float32(0.0)\n"), PROGRAM(AB, "    B[0, 0] = T.float32(-0.0)\n"),
     "value of the store: 0 and -0", 3},
    {PROGRAM(AB, "    B[0, 0] = A[T.int64(0), 0]\n"), PROGRAM(AB, "    B[0, 0] = A[0, 0]\n"),
     "value of the store: types int64 and int32", 3},
    {PROGRAM("n: T.int32", "    assert n > 1, \"a\"\n"),
     PROGRAM("n: T.int32", "    assert n > 1, \"b\"\n"), "message: \"a\" and \"b\"", 3},
    {PROGRAM("n: T.int32", "    x: T.int32 = n + 1\n    T.evaluate(x)\n"),
     PROGRAM("n: T.int32", "    x: T.int32 = n + 1\n    T.evaluate(n)\n"), "value: x and n", 4},
    {PROGRAM("n: T.int32", "    T.evaluate(T.Let(x + 1, where={x: n}))\n"),
     PROGRAM("n: T.int32", "    T.evaluate(T.Let(y + 1, where={y: n}))\n"), NULL, 0},
    {PROGRAM("n: T.int32", "    K = T.allocate_const([1, 2], \"int8\", [2])\n"),
     PROGRAM("n: T.int32", "    K = T.allocate_const([1, 3], \"int8\", [2])\n"),
     "contents of constant 'K'", 3},
};

static int line_of(SourcePos pos) {
  return diag_place(&(Diag){.pos = pos}).line;
}

static void check_pair(const Pair *pair) {
  Context *context = context_new();
  Module *a = parse(context, pair->a), *b = parse(context, pair->b);
  IrDifference difference;
  bool equal = module_equal(context, a, b, &difference);
  if (equal != !pair->difference) print_message("%s\n%s\n", pair->a, pair->b);
  assert_int_equal(equal, !pair->difference);
  assert_int_equal(module_equal(context, b, a, NULL), equal);
  if (equal) assert_true(module_hash(context, a) == module_hash(context, b));
  if (!equal) {
    assert_string_equal(difference.what, pair->difference);
    if (pair->line) assert_int_equal(line_of(difference.a), pair->line);
    if (pair->line) assert_int_equal(line_of(difference.b), pair->line);
  }
  context_free(context);
}

static void test_pairs(void **state) {
  (void)state;
  for (int i = 0; i < COUNT_OF(pairs); i++) check_pair(&pairs[i]);
}

static const char blocks[] =
    "@T.prim_func\n"
    "def f(A: T.Buffer((5, 7), \"float32\"), B: T.Buffer((5,), \"float32\")):\n"
    "    C = T.alloc_buffer((5,), \"float32\")\n"
    "    for i, j in T.grid(5, 7):\n"
    "        with T.block(\"sum\"):\n"
    "            vi, vj = T.axis.remap(\"SR\", [i, j])\n"
    "            T.where(i < 4)\n"
    "            T.reads(A[vi, vj])\n"
    "            T.writes(C[vi], B[0:5])\n"
    "            T.block_attr({\"k\": 1})\n"
    "            with T.init():\n"
    "                C[vi] = T.float32(0)\n"
    "            C[vi] = C[vi] + A[vi, vj]\n";

// Each replacement in `blocks` changes the program.
static void test_every_part_of_a_block_counts(void **state) {
  (void)state;
  static const char *const changes[][2] = {
      {"\"SR\"", "\"SS\""},
      {"i < 4", "i < 3"},
      {"T.reads(A[vi, vj])", "T.reads(A[vi, 0])"},
      {"B[0:5]", "B[0:4]"},
      {"T.writes(C[vi], B[0:5])", "T.writes(C[vi])"},
      {"\"k\": 1", "\"k\": 2"},
      {"T.float32(0)", "T.float32(1)"},
      {"            with T.init():\n                C[vi] = T.float32(0)\n", ""},
      {"\"sum\"", "\"sun\""},
      {"C[vi] + A[vi, vj]", "C[vi] - A[vi, vj]"},
      {"alloc_buffer((5,), \"float32\")", "alloc_buffer((5,), \"float32\", scope=\"local\")"},
  };
  for (int i = 0; i < COUNT_OF(changes); i++) {
    Context *context = context_new();
    const char *at = strstr(blocks, changes[i][0]);
    assert_non_null(at);
    char *changed = arena_printf(&context->arena, "%.*s%s%s", (int)(at - blocks), blocks,
                                 changes[i][1], at + strlen(changes[i][0]));
    Module *a = parse(context, blocks), *b = parse(context, changed);
    IrDifference difference;
    if (module_equal(context, a, b, &difference)) print_message("%s\n", changed);
    assert_false(module_equal(context, a, b, &difference));
    assert_non_null(difference.what);
    assert_true(module_equal(context, a, parse(context, blocks), NULL));
    context_free(context);
  }
}

static void test_graphs(void **state) {
  (void)state;
  static const char before[] = "@R.function\ndef g(x: R.Tensor((\"n\", 3), \"float32\")):\n"
                               "    a = R.add(x, R.const([1.0, 2.0, 3.0], \"float32\"))\n"
                               "    b = R.sum(a, axis=[1], keepdims=True)\n    return b\n";
  static const char *const changes[][2] = {{"R.add", "R.sub"},          {"2.0", "2.5"},
                                           {"axis=[1]", "axis=[0]"},    {"True", "False"},
                                           {"return b", "return a"},    {"R.sum(a", "R.sum(x"},
                                           {"(\"n\", 3)", "(\"n\", 4)"}};
  Context *context = context_new();
  Module *a = parse(context, before);
  assert_true(module_equal(context, a, parse(context, before), NULL));
  for (int i = 0; i < COUNT_OF(changes); i++) {
    const char *at = strstr(before, changes[i][0]);
    char *changed = arena_printf(&context->arena, "%.*s%s%s", (int)(at - before), before,
                                 changes[i][1], at + strlen(changes[i][0]));
    IrDifference difference = {0};
    assert_false(module_equal(context, a, parse(context, changed), &difference));
    assert_non_null(difference.what);
  }
  context_free(context);
}

// A sum that doubles 60 times over shares its operands: comparing must not walk 2^60 nodes.
static void test_shared_operands_are_compared_once(void **state) {
  (void)state;
  Context *context = context_new();
  Expr *vars[2] = {expr_var(context, "x", DTYPE_INT32), expr_var(context, "y", DTYPE_INT32)};
  PrimFunc *funcs[2];
  for (int i = 0; i < 2; i++) {
    Expr *e = vars[i];
    for (int k = 0; k < 60; k++)
      e = expr_raw(context, EXPR_ADD, DTYPE_INT32, NULL, (Expr *[]){e, e}, 2);
    Buffer *none = NULL;
    funcs[i] = prim_func_new(context, "f", &vars[i], &none, 1, stmt_evaluate(context, e));
  }
  assert_true(prim_func_equal(context, funcs[0], funcs[1], NULL));
  context_free(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_pairs),
      cmocka_unit_test(test_every_part_of_a_block_counts),
      cmocka_unit_test(test_graphs),
      cmocka_unit_test(test_shared_operands_are_compared_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
