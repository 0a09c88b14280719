// SPDX-License-Identifier: Apache-2.0
// Random sequences of steps on random programs, checked as in test_schedule_random.c.
//   PLEAT_RANDOM=FIRST:COUNT   other sequences than the fixed ones; STEPS=N: of N steps
//   SHOW=1                     prints each program and its steps
#include "random_nests.h"
#include "random_program.h"

#ifdef __SANITIZE_ADDRESS__
enum { SEQUENCES = 300 };
#else
enum { SEQUENCES = 3000 };
#endif

static void walk_text(Context *context, uint64_t seed, const char *text) {
  const char *steps = getenv("STEPS");
  PrimFunc *before = check_parse(context, text);
  InterpRange *ranges = arena_array(&context->arena, InterpRange, before->param_count);
  for (int i = 0; i < before->param_count; i++)
    if (!strcmp(before->params[i]->as.var->name, "n")) ranges[i] = (InterpRange){1, 4};
  Walk walk = {.random = {seed * 977 + 5}, .schedule = schedule_new(context, before)};
  walk_steps(&walk, steps ? atoi(steps) : 1 + (int)(seed % 5));
  walk_check(&walk, before, ranges,
             arena_printf(&context->arena, "seed %llu\n%s", (unsigned long long)seed, text));
  const PrimFunc *lowered = lower_prim_func(context, schedule_func(walk.schedule), NULL);
  if (!lowered) diag_print_all(context, stderr);
  assert_non_null(lowered);
  check_same_meaning_in(context, before, lowered, false, ranges);
}

static void walk_seed(uint64_t seed) {
  Context *context = context_new();
  walk_text(context, seed, random_nests(&context->arena, seed));
  context_free(context);
}

static void test_odd_nests(void **state) {
  (void)state;
  unsigned long long first = 0, count = SEQUENCES;
  const char *asked = getenv("PLEAT_RANDOM");
  if (asked) sscanf(asked, "%llu:%llu", &first, &count);
  for (uint64_t i = 0; i < count; i++) walk_seed(first + i);
}

// Programs of all element types and more ranks, of usual forms.
static void walk_program(uint64_t seed) {
  Context *context = context_new();
  RandomProgram program = random_program(&context->arena, seed);
  if (!program.rtol && !program.symbolic && strstr(program.text, "T.block(\"b"))
    walk_text(context, seed,
              arena_printf(&context->arena, "from pleat.script import tir as T\n%s", program.text));
  context_free(context);
}

static void test_programs(void **state) {
  (void)state;
  unsigned long long first = 0, count = SEQUENCES / 10;
  const char *asked = getenv("PLEAT_PROGRAMS");
  if (asked) sscanf(asked, "%llu:%llu", &first, &count);
  for (uint64_t i = 0; i < count; i++) walk_program(first + i);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_odd_nests),
                                     cmocka_unit_test(test_programs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
