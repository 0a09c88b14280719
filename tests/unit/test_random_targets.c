// SPDX-License-Identifier: Apache-2.0
// Random tensor programs lowered through the whole table of passes, then run as code of every
// target at every level of the processor, against the interpreter.
//   PLEAT_RANDOM=FIRST:COUNT     other programs than the fixed ones
//   PLEAT_TARGET, PLEAT_LEVEL    one target, one level
#include "random_program.h"
#include "target_check.h"

static void set_sizes(Context *context, const PrimFunc *lowered, const RandomProgram *program,
                      InterpCompare *compare) {
  LowerKernel *kernel = lower_kernel_new(context, (PrimFunc *)lowered, NULL);
  InterpSize *sizes = arena_array(&context->arena, InterpSize, kernel->arg_count);
  for (int i = 0; i < kernel->arg_count; i++)
    if (kernel->args[i].kind == LOWER_ARG_SYMBOL)
      sizes[compare->size_count++] = (InterpSize){kernel->args[i].var, program->extents[0]};
  compare->sizes = sizes;
}

static void add_program(Context *context, TargetCases *cases, uint64_t seed) {
  RandomProgram program = random_program(&context->arena, seed);
  const char *what =
      arena_printf(&context->arena, "seed %llu\n%s", (unsigned long long)seed, program.text);
  if (getenv("PLEAT_SHOW")) fprintf(stderr, "%s\n", what);
  Module *module =
      script_parse(context, source_file_new(context, "r.py", program.text, strlen(program.text)));
  PrimFunc *func = module ? module->funcs.items[0].prim : NULL;
  PrimFunc *lowered = func ? lower_prim_func(context, func, NULL) : NULL;
  if (!lowered) {
    diag_print_all(context, stderr);
    fail_msg("%s", what);
  }
  TargetCase one = {func, lowered, {.seed = seed, .fill = INTERP_FILL_EIGHTHS}, what, true};
  one.compare.rtol = one.compare.atol = program.rtol;
  set_sizes(context, lowered, &program, &one.compare);
  array_push(&context->arena, cases, one);
}

// Programs first, first + step, … within `count`.
static int check_programs(uint64_t first, uint64_t count, int step, const TargetPlaces *places,
                          int place_count) {
  Context *context = context_new();
  TargetCases cases = {0};
  int failures = 0;
  for (uint64_t k = 0; k < count; k += (uint64_t)step) add_program(context, &cases, first + k);
  for (int i = 0; i < place_count; i++) failures += target_check(context, &cases, places[i]);
  context_free(context);
  return failures;
}

// Compilers are slow, so each program runs at one level of each target; programs that are chosen by
// PLEAT_RANDOM run at every level.
static void test_random_programs(void **state) {
  (void)state;
  enum { PROGRAMS = 240, BATCH = 50 };
  unsigned long long first = 1, count = 0;
  const char *asked = getenv("PLEAT_RANDOM");
  if (asked) sscanf(asked, "%llu:%llu", &first, &count);
  TargetPlaces everywhere = {getenv("PLEAT_TARGET"), ~0u};
  const char *level = getenv("PLEAT_LEVEL");
  for (int i = 0; level && i < COUNT_OF(target_levels); i++)
    if (strcmp(level, target_levels[i]) == 0) everywhere.levels = 1u << i;
  int failures = 0;
  for (int i = 0; !asked && i < 4; i++) {
    TargetPlaces places[] = {{"llvm", 1u << i}, {"c", 1u << (i + 1) % 4}};
    failures += check_programs(first + (uint64_t)i, PROGRAMS, 4, places, 2);
  }
  for (uint64_t k = 0; k < count; k += BATCH) {
    fprintf(stderr, "programs %llu:%llu\n", first + k, MIN_OF(count - k, (uint64_t)BATCH));
    failures += check_programs(first + k, MIN_OF(count - k, BATCH), 1, &everywhere, 1);
  }
  assert_int_equal(failures, 0);
}

int main(void) {
  setenv("CFLAGS", "-O0", 0); // for the C target: this tests its code, not the compiler
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_programs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
