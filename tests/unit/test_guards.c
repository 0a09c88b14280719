// SPDX-License-Identifier: Apache-2.0
// Programs with indices that are data, compiled with guards: a run is refused exactly when the
// interpreter finds an access out of bounds, and otherwise has the interpreter's results.
#include "driver/driver.h"
#include "script/script.h"

#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

#define HEAD "from pleat.script import tir as T\n@T.prim_func\n"
#define PARAMS HEAD "def f(idx: T.Buffer((6,), 'int32'), C: T.Buffer((6, 5), 'int32')):\n"

enum { INDICES = 6, RESULTS = 30, TRIALS = 60 };

// The parameters of each program are idx and C. `guards` is the number of its guards.
static const struct {
  const char *text;
  int guards;
} programs[] = {
    // Hoisted out of the loop over j.
    {PARAMS "    for i, j in T.grid(6, 5):\n"
            "        with T.block('b'):\n"
            "            vi, vj = T.axis.remap('SS', [i, j])\n"
            "            C[vi, vj] = idx[idx[vi]] + vj\n",
     1},
    // A store, in vectors.
    {PARAMS "    for i in range(6):\n"
            "        for j in T.vectorized(5):\n"
            "            C[idx[i], j] = i + j\n",
     1},
    // In parallel.
    {PARAMS "    for i in T.parallel(6):\n"
            "        for j in range(5):\n"
            "            C[i, j] = idx[T.max(idx[i] + j - 4, 0)]\n",
     1},
    // Only under a condition, which is not a bound.
    {PARAMS "    for i, j in T.grid(6, 5):\n"
            "        if idx[i] > j:\n"
            "            C[i, j] = idx[idx[i] - j]\n",
     1},
    {PARAMS "    for i, j in T.grid(6, 5):\n"
            "        C[i, j] = T.if_then_else(idx[j] > 2 and idx[idx[i]] > 1, 7, 2)\n",
     1},
    // The condition is the bound.
    {PARAMS "    for i, j in T.grid(6, 5):\n"
            "        if 0 <= idx[i] and idx[i] < 6:\n"
            "            C[i, j] = idx[idx[i]]\n",
     0},
    // The element that the condition reads is changed before it is used as an index.
    {PARAMS "    for i in range(5):\n"
            "        if 0 <= idx[i] and idx[i] < 6:\n"
            "            idx[i] = idx[i] + i\n"
            "            C[i, 0] = idx[idx[i]]\n",
     1},
    // The index is computed in the same loop, before and after it is used.
    {PARAMS "    k = T.alloc_buffer((6,), 'int32')\n"
            "    for i in range(6):\n"
            "        k[i] = idx[i]\n"
            "    for i, j in T.grid(6, 5):\n"
            "        C[i, j] = idx[k[i]]\n",
     1},
    {PARAMS "    for i, j in T.grid(6, 5):\n"
            "        C[i, j] = idx[idx[j]]\n"
            "        idx[j] = (idx[j] + 1) % 6\n",
     1},
    // Two axes, and a let.
    {PARAMS "    for i in range(6):\n"
            "        k = idx[i]\n"
            "        C[k, k - 1] = k\n",
     2},
    // A loop of a length that is data, and one that may have no iteration.
    {PARAMS "    for i in range(6):\n"
            "        for j in range(idx[i]):\n"
            "            C[i, j] = j\n",
     1},
    {PARAMS "    for i in range(6):\n"
            "        for j in range(idx[0]):\n"
            "            C[j % 6, 0] = idx[idx[i]]\n",
     1},
    // A vector of indices.
    {PARAMS "    for i in range(6):\n"
            "        C[i, 0:4] = idx[idx[0:4]]\n",
     2},
    // A vector of consecutive elements.
    {PARAMS "    for i in range(6):\n"
            "        C[i, 0:4] = idx[idx[i]:idx[i] + 4]\n",
     2},
};

typedef struct Trial {
  int32_t indices[INDICES], results[RESULTS];
  InterpTensor args[2];
} Trial;

static void set_up(Trial *trial, uint64_t seed) {
  static const int64_t shapes[] = {INDICES, INDICES, RESULTS / INDICES};
  uint64_t state = seed * 6364136223846793005u + 1442695040888963407u;
  *trial = (Trial){.args = {{.type = DTYPE_INT32, .rank = 1, .shape = shapes},
                            {.type = DTYPE_INT32, .rank = 2, .shape = shapes + 1}}};
  for (int i = 0; i < INDICES; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    int index = (int)((state >> 33) % 6);
    trial->indices[i] = seed % 3 ? index : index * 2 - 3; // each third may be out of bounds
  }
  trial->args[0].data = trial->indices;
  trial->args[1].data = trial->results;
}

static KernelCode *compiled(Context *context, PrimFunc *func, const char *target, int guards) {
  CompileOptions options = {.machine = machine_probe(), .lower = {.guards = true}};
  options.target = target_find(target);
  assert_non_null(options.target);
  PrimFunc *lowered = lower_prim_func(context, func, &options.lower);
  if (!lowered) diag_print_all(context, stderr);
  assert_non_null(lowered);
  assert_int_equal(lowered->guards ? lowered->guards->count : 0, guards);
  return kernel_code_of_lowered(context, &lowered, 1, &options, NULL);
}

static void check_program(int number, const char *target) {
  Context *context = context_new();
  const char *text = programs[number].text;
  Module *module = script_parse(context, source_file_new(context, "f.py", text, strlen(text)));
  if (!module || context->error_count) diag_print_all(context, stderr);
  assert_non_null(module);
  PrimFunc *func = module->funcs.items[0].prim;
  KernelCode *code = compiled(context, func, target, programs[number].guards);
  assert_non_null(code);
  int refused = 0;
  for (uint64_t seed = 0; seed < TRIALS; seed++) {
    Trial expected, actual;
    set_up(&expected, seed);
    set_up(&actual, seed);
    bool inside = interp_run(context, module, func, expected.args, 2, NULL);
    bool ran = kernel_code_run(code, 0, NULL, actual.args);
    if (inside != ran) {
      diag_print_all(context, stderr);
      fail_msg("program %d, %s, seed %d: the interpreter says %d, the code %d", number, target,
               (int)seed, inside, ran);
    }
    if (inside) assert_memory_equal(expected.results, actual.results, sizeof actual.results);
    if (!ran)
      assert_non_null(strstr(context->diags.items[context->diags.count - 1].message,
                             "is out of bounds: index"));
    refused += !ran;
    context->diags.count = context->error_count = 0;
  }
  if (programs[number].guards && (refused < 1 || refused == TRIALS))
    fail_msg("program %d: %d refused", number, refused);
  kernel_code_free(code);
  context_free(context);
}

static void test_guards_in_c(void **state) {
  (void)state;
  for (int i = 0; i < COUNT_OF(programs); i++) check_program(i, "c");
}

static void test_guards_in_llvm(void **state) {
  (void)state;
  if (!target_find("llvm")->load_begin) skip();
  for (int i = 0; i < COUNT_OF(programs); i++) check_program(i, "llvm");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_guards_in_c),
      cmocka_unit_test(test_guards_in_llvm),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
