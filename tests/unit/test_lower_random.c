// SPDX-License-Identifier: Apache-2.0
// Random tensor programs, lowered with the interpreter comparing the function before and after
// every pass, printed and read back. PLEAT_RANDOM=FIRST:COUNT runs others than the fixed seeds.
#include "interp/interp.h"
#include "lower/lower.h"
#include "random_program.h"
#include "script/script.h"

#include <stdlib.h>

#include <setjmp.h>
#include <cmocka.h>

static const char *print(Context *context, const Module *module) {
  Text text = text_new(&context->arena);
  script_print_module(context, module, &text, NULL);
  return text_string(&text);
}

// What is printed of a function parses back to an equal one.
static void check_round_trip(Context *context, PrimFunc *func) {
  Module *module = module_new(context, "");
  module_add_prim(module, func);
  const char *text = print(context, module);
  Module *again = script_parse(context, source_file_new(context, "b.py", text, strlen(text)));
  if (!again) diag_print_all(context, stderr);
  if (!again) fail_msg("does not parse back:\n%s", text);
  IrDifference difference;
  if (!module_equal(context, module, again, &difference))
    fail_msg("reads back as another program: %s\n%s", difference.what, text);
  assert_string_equal(print(context, again), text);
}

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
  assert_true(lower_kernel_new(context, lowered)->region_count >= 1);
  check_round_trip(context, func);
  check_round_trip(context, lowered);
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
