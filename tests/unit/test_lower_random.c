// SPDX-License-Identifier: Apache-2.0
// Random tensor programs, lowered with the interpreter comparing the function before and after
// every pass. PLEAT_RANDOM=FIRST:COUNT runs others than the fixed seeds.
#include "interp/interp.h"
#include "lower/lower.h"
#include "random_program.h"
#include "script/script.h"

#include <stdlib.h>

#include <setjmp.h>
#include <cmocka.h>

static void check_seed(uint64_t seed) {
  Context *context = context_new();
  RandomProgram program = random_program(&context->arena, seed);
  SourceFile *file = source_file_new(context, "r.py", program.text, strlen(program.text));
  Module *module = script_parse(context, file);
  PrimFunc *func = module ? module->funcs.items[0].prim : NULL;
  LowerOptions options = {.verify_each = true, .seed = seed};
  PrimFunc *lowered = func ? lower_prim_func(context, func, &options) : NULL;
  if (!lowered || context->error_count) {
    diag_print_all(context, stderr);
    fail_msg("seed %llu:\n%s", (unsigned long long)seed, program.text);
  }
  assert_true(lowered_kernel(context, lowered)->task_count >= 1);
  context_free(context);
}

static void test_random_programs(void **state) {
  (void)state;
  unsigned long long first = 1, count = 200;
  const char *asked = getenv("PLEAT_RANDOM");
  if (asked) sscanf(asked, "%llu:%llu", &first, &count);
  for (uint64_t seed = first; seed < first + count; seed++) check_seed(seed);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_programs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
