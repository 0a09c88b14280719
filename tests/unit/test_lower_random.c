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

// A printed function parses back to an equal one.
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

static PrimFunc *parse(Context *context, const RandomProgram *program) {
  SourceFile *file = source_file_new(context, "r.py", program->text, strlen(program->text));
  Module *module = script_parse(context, file);
  return module ? module->funcs.items[0].prim : NULL;
}

// All passes twice over, as `pleat opt --pass lower,lower` runs them.
static void check_lowered_twice(uint64_t seed) {
  Context *context = context_new();
  RandomProgram program = random_program(&context->arena, seed);
  PrimFunc *func = parse(context, &program), *again = NULL;
  LowerOptions options = {.verify_each = true, .seed = seed, .guards = seed % 2};
  const char *names[2 * LOWER_MAX_PASSES];
  int count = 0;
  for (int k = 0; k < 2; k++)
    for (int i = 0; lower_passes[i].name; i++) names[count++] = lower_passes[i].name;
  again = func ? lower_run_passes(context, func, names, count, &options) : NULL;
  if (!again || context->error_count) {
    diag_print_all(context, stderr);
    fail_msg("seed %llu, lowered twice:\n%s", (unsigned long long)seed, program.text);
  }
  assert_true(lower_kernel_new(context, again, NULL)->region_count >= 1);
  context_free(context);
}

// Removes the diagnostics of a pass whose needs are not met, that has no such argument, or that
// finds no proof; other diagnostics stay.
static void forget_refusal(Context *context) {
  static const char *const refusals[] = {" cannot run on ",
                                         "run init_blocks (LowerInitBlock) first", " can only be ",
                                         " is True or False", "force_int32: "};
  int count = 0;
  for (int d = 0; d < context->diags.count; d++)
    for (size_t i = 0; i < COUNT_OF(refusals); i++)
      if (strstr(context->diags.items[d].message, refusals[i])) {
        count++;
        break;
      }
  if (count == context->diags.count) context->diags.count = context->error_count = 0;
}

// The pass that changes the calling convention comes last; nothing runs its result. A reader drops
// conditions that are constant, and so does the pass before it.
static void check_packed(Context *context, PrimFunc *func) {
  const char *last[] = {"make_packed", "simplify_loops", "make_packed"};
  if (!(lower_facts_of(func) & LOWER_FACT_NO_BLOCKS)) return;
  func = lower_run_passes(context, func, last + 1, 2, NULL);
  if (!func) diag_print_all(context, stderr);
  assert_non_null(func);
  check_round_trip(context, func);
  assert_ptr_equal(lower_run_passes(context, func, last, 1, NULL), func);
}

// The pass, half of the time with a value for one of its arguments.
static const char *random_call(Context *context, const LowerPass *pass, unsigned bits) {
  static const char *const values[] = {"0", "1", "16"};
  const char *word = pass->signature ? pass->signature : "";
  if (!*word || bits % 2) return pass->name;
  for (unsigned skip = bits / 2 % 8; skip; skip--) {
    const char *next = strchr(word, ' ');
    word = next ? next + 1 : pass->signature;
  }
  bool is_text = strncmp(word, "storage_scope", strlen("storage_scope")) == 0;
  return str_format(context, "%s(%.*s=%s)", pass->name, (int)strcspn(word, "?"), word,
                    is_text ? "\"shared\"" : values[bits / 16 % COUNT_OF(values)]);
}

static PrimFunc *run_call(Context *context, PrimFunc *func, const char *text,
                          const LowerOptions *options) {
  PassCalls calls = {0};
  assert_true(pass_calls_read(context, text, &calls));
  return lower_run_calls(context, func, calls.items, calls.count, options);
}

// Passes in any order either run and keep what their rows promise, or are refused.
static void check_any_order(uint64_t seed) {
  enum { LENGTH = 24 };
  Context *context = context_new();
  RandomProgram program = random_program(&context->arena, seed);
  PrimFunc *func = parse(context, &program), *next;
  LowerOptions options = {.verify_each = true, .seed = seed, .guards = seed % 2};
  const char *names[LENGTH];
  uint64_t passes = 0, bits = seed * 0x9e3779b97f4a7c15u | 1;
  while (lower_pass_at((int)passes) && !lower_pass_at((int)passes)->takes_packed) passes++;
  for (int i = 0; i < LENGTH && func && !context->error_count; i++) {
    bits = bits * 6364136223846793005u + 1442695040888963407u;
    // Few passes run on blocks, so that they are converted after a few.
    const LowerPass *pass = lower_pass_at(i == 6 ? 0 : (int)((bits >> 33) % passes));
    names[i] = random_call(context, pass, (unsigned)(bits >> 20) % 1024);
    next = run_call(context, func, names[i], &options);
    if (next) func = next;
    forget_refusal(context);
    if (!context->error_count) continue;
    diag_print_all(context, stderr);
    for (int k = 0; k <= i; k++) fprintf(stderr, "%s%s", k ? "," : "", names[k]);
    fail_msg("\nseed %llu, in another order:\n%s", (unsigned long long)seed, program.text);
  }
  assert_non_null(func);
  check_packed(context, func);
  context_free(context);
}

static void check_seed(uint64_t seed) {
  Context *context = context_new();
  RandomProgram program = random_program(&context->arena, seed);
  PrimFunc *func = parse(context, &program);
  LowerOptions options = {.verify_each = true, .seed = seed, .guards = seed % 2};
  PrimFunc *lowered = func ? lower_prim_func(context, func, &options) : NULL;
  if (!lowered || context->error_count) {
    diag_print_all(context, stderr);
    fail_msg("seed %llu:\n%s", (unsigned long long)seed, program.text);
  }
  assert_true(lower_kernel_new(context, lowered, NULL)->region_count >= 1);
  check_round_trip(context, func);
  check_round_trip(context, lowered);
  context_free(context);
}

static void each_seed(void (*check)(uint64_t seed)) {
  unsigned long long first = 1, count = 200;
  const char *asked = getenv("PLEAT_RANDOM");
  if (asked) sscanf(asked, "%llu:%llu", &first, &count);
  for (uint64_t seed = first; seed < first + count; seed++) check(seed);
}

static void test_random_programs(void **state) {
  (void)state;
  each_seed(check_seed);
}

static void test_lowering_twice(void **state) {
  (void)state;
  each_seed(check_lowered_twice);
}

static void test_passes_in_any_order(void **state) {
  (void)state;
  each_seed(check_any_order);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_programs),
                                     cmocka_unit_test(test_lowering_twice),
                                     cmocka_unit_test(test_passes_in_any_order)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
