// SPDX-License-Identifier: Apache-2.0
// Passes that rewrite allocations and expressions, on random programs of loops: the interpreter
// compares the function before and after each pass, and a second run on a simplified program
// changes nothing. PLEAT_RANDOM=FIRST:COUNT runs others than the fixed seeds.
#include "lower/lower.h"
#include "random_loops.h"
#include "script/script.h"

#include <stdlib.h>

#include <setjmp.h>
#include <cmocka.h>

static PrimFunc *parse(Context *context, const char *text) {
  Module *module = script_parse(context, source_file_new(context, "r.py", text, strlen(text)));
  return module ? module->funcs.items[0].prim : NULL;
}

static PrimFunc *run(Context *context, PrimFunc *func, const char *pass, uint64_t seed,
                     LowerReport *report) {
  LowerOptions options = {.verify_each = true, .seed = seed, .report = report};
  return lower_run_passes(context, func, &pass, 1, &options);
}

typedef struct PassCount {
  const char *pass;
  int changed, noted; // functions that came out different, and reports of parts that stayed
} PassCount;

static void check_pass(PassCount *count, uint64_t seed) {
  Context *context = context_new();
  const char *text = random_loops(&context->arena, seed);
  PrimFunc *func = parse(context, text), *next = NULL, *again = NULL;
  LowerReport report = {0};
  // A pass that folds something may find more to do, unless the program is simplified before.
  bool simple = seed % 2;
  if (func && simple) func = run(context, func, "simplify_loops", seed, NULL);
  if (func) next = run(context, func, count->pass, seed, &report);
  if (next) again = run(context, next, count->pass, seed, NULL);
  if (!again || context->error_count) {
    diag_print_all(context, stderr);
    fprintf(stderr, "%s\n", text);
    fail_msg("%s, seed %llu", count->pass, (unsigned long long)seed);
  }
  IrDifference difference;
  if (simple && !prim_func_equal(context, next, again, &difference)) {
    fprintf(stderr, "%s\n", text);
    fail_msg("%s changes its own result: %s; seed %llu", count->pass, difference.what,
             (unsigned long long)seed);
  }
  count->changed += next != func;
  count->noted += report.notes.count;
  context_free(context);
}

static void check_each_seed(PassCount *count) {
  unsigned long long first = 1, seeds = 200;
  const char *asked = getenv("PLEAT_RANDOM");
  if (asked) sscanf(asked, "%llu:%llu", &first, &seeds);
  for (uint64_t seed = first; seed < first + seeds; seed++) check_pass(count, seed);
  print_message("%s: %d of %llu changed, %d notes\n", count->pass, count->changed, seeds,
                count->noted);
  assert_true(asked || count->changed > 20);
}

static void test_share_subexpressions(void **state) {
  (void)state;
  check_each_seed(&(PassCount){"share_subexpressions"});
}

static void test_hoist_expressions(void **state) {
  (void)state;
  check_each_seed(&(PassCount){"hoist_expressions"});
}

static void test_virtual_threads(void **state) {
  (void)state;
  check_each_seed(&(PassCount){"inject_virtual_threads"});
}

static void test_double_buffers(void **state) {
  (void)state;
  check_each_seed(&(PassCount){"inject_double_buffers"});
}

static void test_reuse_allocations(void **state) {
  (void)state;
  check_each_seed(&(PassCount){"reuse_allocations"});
}

// All of them in a random order, and then the rest of lowering.
static void check_together(uint64_t seed) {
  static const char *const passes[] = {
      "share_subexpressions",  "inject_virtual_threads", "reuse_allocations",
      "inject_double_buffers", "unroll_loops",           "simplify_loops",
      "partition_loops",       "compact_buffers",        "flatten_buffers",
      "hoist_expressions",     "guard_selects",          "hoist_branches"};
  Context *context = context_new();
  const char *text = random_loops(&context->arena, seed), *names[6 + LOWER_MAX_PASSES];
  uint64_t bits = seed * 0x9e3779b97f4a7c15u | 1;
  int count = 0;
  for (int i = 0; i < 6; i++) {
    bits = bits * 6364136223846793005u + 1442695040888963407u;
    names[count++] = passes[(bits >> 33) % COUNT_OF(passes)];
  }
  for (int i = 0; lower_passes[i].name; i++) names[count++] = lower_passes[i].name;
  LowerOptions options = {.verify_each = true, .seed = seed, .guards = seed % 2};
  PrimFunc *func = parse(context, text);
  func = func ? lower_run_passes(context, func, names, count, &options) : NULL;
  if (!func || context->error_count) {
    diag_print_all(context, stderr);
    for (int i = 0; i < 6; i++) fprintf(stderr, "%s ", names[i]);
    fprintf(stderr, "\n%s\n", text);
    fail_msg("seed %llu", (unsigned long long)seed);
  }
  context_free(context);
}

static void test_together(void **state) {
  (void)state;
  unsigned long long first = 1, seeds = 100;
  const char *asked = getenv("PLEAT_RANDOM");
  if (asked) sscanf(asked, "%llu:%llu", &first, &seeds);
  for (uint64_t seed = first; seed < first + seeds; seed++) check_together(seed);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_share_subexpressions), cmocka_unit_test(test_hoist_expressions),
      cmocka_unit_test(test_virtual_threads),      cmocka_unit_test(test_double_buffers),
      cmocka_unit_test(test_reuse_allocations),    cmocka_unit_test(test_together)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
