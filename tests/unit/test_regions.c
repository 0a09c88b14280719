// SPDX-License-Identifier: Apache-2.0
// Tests which parallel regions are cut into chunks, into how many, and that the chunks are all
// iterations.
#include "arith/arith.h"
#include "lower/lower.h"
#include "runtime/compiled.h"
#include "script/script.h"

#include <stdatomic.h>
#include <stdlib.h>

#include <setjmp.h>
#include <cmocka.h>

enum { REGION_CYCLES = 1000 };

// The first region of a function, over the variables of its symbolic sizes.
typedef struct Cut {
  Context *context;
  LowerKernel *kernel;
} Cut;

static Cut cut_for(const char *text, int64_t region_cycles) {
  Cut cut = {.context = context_new()};
  HostMachine machine = machine_probe();
  assert_true(machine_use(&machine, "avx2"));
  machine.region_cycles = region_cycles;
  SourceFile *file = source_file_new(cut.context, "kernel.py", text, strlen(text));
  Module *module = script_parse(cut.context, file);
  PrimFunc *func = module ? lower_prim_func(cut.context, module->funcs.items[0].prim, NULL) : NULL;
  if (!func) diag_print_all(cut.context, stderr);
  assert_non_null(func);
  cut.kernel = lower_kernel_new(cut.context, func, &machine);
  return cut;
}

static Cut cut_of(const char *text) {
  return cut_for(text, REGION_CYCLES);
}

static int64_t value_of(const Cut *cut, const Expr *e, int64_t size) {
  Expr *vars[8];
  int64_t values[8], value;
  int count = 0;
  for (int i = 0; i < cut->kernel->arg_count; i++)
    if (cut->kernel->args[i].kind != LOWER_ARG_TENSOR) {
      vars[count] = cut->kernel->args[i].var;
      values[count++] = size;
    }
  assert_true(expr_value(e, vars, values, count, &value));
  return value;
}

static int64_t chunks_with(const Cut *cut, int64_t size) {
  int64_t chunks = value_of(cut, cut->kernel->regions[0].chunks, size);
  int64_t extent = value_of(cut, cut->kernel->regions[0].extent, size);
  assert_in_range(chunks, 1, extent > 1 ? extent : 1);
  return chunks;
}

static int64_t chunks_of(const char *text) {
  Cut cut = cut_of(text);
  int64_t chunks = chunks_with(&cut, 0);
  context_free(cut.context);
  return chunks;
}

#define COPY(ROWS, COLUMNS)                                                                        \
  "@T.prim_func\n"                                                                                 \
  "def f(A: T.Buffer((" ROWS ", " COLUMNS "), \"float32\"),\n"                                     \
  "      B: T.Buffer((" ROWS ", " COLUMNS "), \"float32\")):\n"                                    \
  "    for i in T.parallel(" ROWS "):\n"                                                           \
  "        for j in T.vectorized(" COLUMNS "):\n"                                                  \
  "            with T.block(\"b\"):\n"                                                             \
  "                vi, vj = T.axis.remap(\"SS\", [i, j])\n"                                        \
  "                B[vi, vj] = A[vi, vj] * T.float32(2)\n"

// ---- How many ----------------------------------------------------------------------------------

static void test_little_work_stays_in_one_thread(void **state) {
  assert_int_equal(chunks_of(COPY("7", "13")), 1);
  assert_int_equal(chunks_of(COPY("1", "64")), 1);
  assert_int_equal(chunks_of(COPY("97", "16")), 1);
}

// 512 * 64 elements: 4,096 vectors in and out, 262,144 bytes at 24 a cycle.
static void test_chunks_follow_from_the_work(void **state) {
  assert_int_equal(chunks_of(COPY("512", "64")), 10);
  int64_t twice = chunks_of(COPY("1024", "64"));
  assert_int_equal(twice, 21);
}

static void test_each_iteration_may_be_a_chunk(void **state) {
  assert_int_equal(chunks_of(COPY("3", "32768")), 3);
  Cut cut = cut_for(COPY("7", "13"), 0);
  assert_int_equal(chunks_with(&cut, 0), 7);
  context_free(cut.context);
}

static void test_a_function_has_more_work_than_a_product(void **state) {
  static const char text[] = "@T.prim_func\n"
                             "def f(A: T.Buffer((59, 16), \"float32\"),\n"
                             "      B: T.Buffer((59, 16), \"float32\")):\n"
                             "    for i in T.parallel(59):\n"
                             "        for j in T.vectorized(16):\n"
                             "            with T.block(\"b\"):\n"
                             "                vi, vj = T.axis.remap(\"SS\", [i, j])\n"
                             "                B[vi, vj] = %s\n";
  char product[1024], function[1024];
  snprintf(product, sizeof product, text, "A[vi, vj] * A[vi, vj]");
  snprintf(function, sizeof function, text, "T.exp(T.exp(T.exp(T.exp(T.exp(A[vi, vj])))))");
  assert_int_equal(chunks_of(product), 1);
  assert_true(chunks_of(function) > 1);
}

// A value in a register is not memory, and an element that is read again counts once.
static void test_memory_counts_up_to_its_size(void **state) {
  static const char text[] =
      "@T.prim_func\n"
      "def f(A: T.Buffer((%d,), \"float32\"), B: T.Buffer((8,), \"float32\")):\n"
      "    for i in T.parallel(8):\n"
      "        for k in range(64):\n"
      "            with T.block(\"b\"):\n"
      "                vi = T.axis.spatial(8, i)\n"
      "                vk = T.axis.reduce(64, k)\n"
      "                with T.init():\n"
      "                    B[vi] = T.float32(0)\n"
      "                B[vi] = B[vi] + A[vk * %d]\n";
  char same[1024];
  snprintf(same, sizeof same, text, 64, 1);
  assert_int_equal(chunks_of(same), 1);
}

// ---- Sizes that a call knows -------------------------------------------------------------------

static void test_symbolic_sizes_decide_at_run_time(void **state) {
  Cut cut = cut_of("@T.prim_func\n"
                   "def f(a: T.handle, b: T.handle):\n"
                   "    n = T.int64()\n"
                   "    A = T.match_buffer(a, (n, 64), \"float32\")\n"
                   "    B = T.match_buffer(b, (n, 64), \"float32\")\n"
                   "    for i in T.parallel(n):\n"
                   "        for j in T.vectorized(64):\n"
                   "            with T.block(\"b\"):\n"
                   "                vi, vj = T.axis.remap(\"SS\", [i, j])\n"
                   "                B[vi, vj] = A[vi, vj] * T.float32(2)\n");
  assert_int_equal(chunks_with(&cut, 0), 1);
  assert_int_equal(chunks_with(&cut, 1), 1);
  assert_int_equal(chunks_with(&cut, 31), 1);
  assert_int_equal(chunks_with(&cut, 512), 10);
  assert_int_equal(chunks_with(&cut, 1024), 21);
  assert_true(chunks_with(&cut, INT64_C(1) << 40) > 1);
  context_free(cut.context);
}

static void test_inner_symbolic_loops_count(void **state) {
  Cut cut = cut_of("@T.prim_func\n"
                   "def f(a: T.handle, b: T.handle):\n"
                   "    n = T.int32()\n"
                   "    A = T.match_buffer(a, (5, n), \"int32\")\n"
                   "    B = T.match_buffer(b, (5, n), \"int32\")\n"
                   "    for i in T.parallel(5):\n"
                   "        for j in range(n):\n"
                   "            with T.block(\"b\"):\n"
                   "                vi, vj = T.axis.remap(\"SS\", [i, j])\n"
                   "                B[vi, vj] = A[vi, vj] + 1\n");
  assert_int_equal(chunks_with(&cut, 0), 1);
  assert_int_equal(chunks_with(&cut, 17), 1);
  assert_int_equal(chunks_with(&cut, 100003), 5);
  context_free(cut.context);
}

static void test_triangles_are_counted_by_their_bound(void **state) {
  static const char text[] = "@T.prim_func\n"
                             "def f(A: T.Buffer((%d, %d), \"int32\")):\n"
                             "    for i in T.parallel(%d):\n"
                             "        for j in range(i + 1):\n"
                             "            A[i, j] = i - j\n";
  char script[1024];
  snprintf(script, sizeof script, text, 11, 11, 11);
  assert_int_equal(chunks_of(script), 1);
  snprintf(script, sizeof script, text, 211, 211, 211);
  assert_true(chunks_of(script) > 1);
}

static void test_loops_without_a_bound_run_in_threads(void **state) {
  assert_int_equal(chunks_of("@T.prim_func\n"
                             "def f(N: T.Buffer((6,), \"int32\"), A: T.Buffer((6,), \"int32\")):\n"
                             "    for i in T.parallel(6):\n"
                             "        A[i] = 0\n"
                             "        for j in range(N[i]):\n"
                             "            A[i] = A[i] + j\n"),
                   6);
}

// ---- Running -----------------------------------------------------------------------------------

enum { MOST_ITERATIONS = 200 };

static atomic_int times[MOST_ITERATIONS], pieces;

static void count_iterations(void *const *args, int64_t begin, int64_t end) {
  atomic_fetch_add(&pieces, 1);
  for (int64_t i = begin; i < end; i++) atomic_fetch_add(&times[i], 1);
}

static void count_span(void *env, const ChunkSpan *span) {
  atomic_fetch_add((atomic_int *)env, (int)(span->end - span->begin));
}

static void check_run(ThreadPool *pool, int64_t extent, int64_t chunks, bool spans) {
  union {
    CodeFunction function;
    void *data;
  } code = {count_iterations};
  CompiledCode in_memory = {0};
  atomic_int seen = 0;
  RegionRun run = {.code = {&in_memory, code.data},
                   .extent = extent,
                   .chunks = chunks,
                   .on_span = spans ? count_span : NULL,
                   .env = &seen};
  memset(times, 0, sizeof times);
  pieces = 0;
  region_run(&run, pool);
  for (int i = 0; i < MOST_ITERATIONS; i++) assert_int_equal(times[i], i < extent);
  assert_in_range(pieces, 1, chunks);
  assert_int_equal(seen, spans ? extent : 0);
}

static void test_chunks_are_all_iterations(void **state) {
  static const int64_t extents[] = {0, 1, 2, 7, 16, 97, 200};
  ThreadPool *pools[] = {NULL, thread_pool_new(1), thread_pool_new(2), thread_pool_new(3)};
  for (int p = 0; p < COUNT_OF(pools); p++)
    for (int i = 0; i < COUNT_OF(extents); i++)
      for (int64_t chunks = 1; chunks == 1 || chunks <= extents[i]; chunks += 1 + chunks / 2) {
        check_run(pools[p], extents[i], chunks, false);
        check_run(pools[p], extents[i], chunks, true);
      }
  for (int p = 0; p < COUNT_OF(pools); p++) thread_pool_free(pools[p]);
}

static void test_the_environment_sets_the_cost(void **state) {
  unsetenv("PLEAT_REGION_CYCLES");
  int64_t usual = machine_probe().region_cycles;
  assert_true(usual > 0);
  setenv("PLEAT_REGION_CYCLES", "123", 1);
  assert_int_equal(machine_probe().region_cycles, 123);
  setenv("PLEAT_REGION_CYCLES", "0", 1);
  assert_int_equal(machine_probe().region_cycles, 0);
  static const char *const wrong[] = {"", "many", "-3", "7k"};
  for (int i = 0; i < COUNT_OF(wrong); i++) {
    setenv("PLEAT_REGION_CYCLES", wrong[i], 1);
    assert_int_equal(machine_probe().region_cycles, usual);
  }
  unsetenv("PLEAT_REGION_CYCLES");
}

static void check_caches(const char *given, int64_t l1, int64_t ways, int64_t l2, int64_t l3) {
  setenv("PLEAT_CACHES", given, 1);
  HostMachine machine = machine_probe();
  assert_int_equal(machine.l1_bytes, l1);
  assert_int_equal(machine.l1_ways, ways);
  assert_int_equal(machine.l2_bytes, l2);
  assert_int_equal(machine.l3_bytes, l3);
}

static void test_the_environment_sets_the_caches(void **state) {
  unsetenv("PLEAT_CACHES");
  HostMachine own = machine_probe();
  check_caches("48K,2M,0", 48 << 10, 12, 2 << 20, 0);
  check_caches("32K,512K,32M", 32 << 10, 8, 512 << 10, 32 << 20);
  check_caches("1000,2000,1G", 1000, 1, 2000, 1 << 30);
  assert_false(machine_probe().mesh);
  static const char *const wrong[] = {
      "",          "32K",         "32K,512K",     "32K,512K,",
      "0,1M,1M",   "32K,0,1M",    "32K,512K,32m", "32K,512K,32M,",
      "-1,1M,32M", "32K, 1M,32M", "32K;1M;32M",   "99999999999G,1,1"};
  for (int i = 0; i < COUNT_OF(wrong); i++)
    check_caches(wrong[i], own.l1_bytes, own.l1_ways, own.l2_bytes, own.l3_bytes);
  unsetenv("PLEAT_CACHES");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_little_work_stays_in_one_thread),
      cmocka_unit_test(test_chunks_follow_from_the_work),
      cmocka_unit_test(test_each_iteration_may_be_a_chunk),
      cmocka_unit_test(test_a_function_has_more_work_than_a_product),
      cmocka_unit_test(test_memory_counts_up_to_its_size),
      cmocka_unit_test(test_symbolic_sizes_decide_at_run_time),
      cmocka_unit_test(test_inner_symbolic_loops_count),
      cmocka_unit_test(test_triangles_are_counted_by_their_bound),
      cmocka_unit_test(test_loops_without_a_bound_run_in_threads),
      cmocka_unit_test(test_chunks_are_all_iterations),
      cmocka_unit_test(test_the_environment_sets_the_cost),
      cmocka_unit_test(test_the_environment_sets_the_caches),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
