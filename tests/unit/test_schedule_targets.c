// SPDX-License-Identifier: Apache-2.0
// Random sequences of 30 steps on 20 programs, then run as code of every target, against the
// interpreter on the program without steps. Programs that lowering or a target refuses are counted.
//   PLEAT_RANDOM=FIRST:COUNT     other sequences than the fixed ones
//   PLEAT_TARGET                 one target
//   STEPS=N                      sequences of another length
//   SHOW=1                       prints what is refused
#include "driver/driver.h"
#include "random_schedule.h"
#include "schedule_programs.h"

enum { STEPS = 30, BATCH = 20 };

static int step_count(void) {
  const char *asked = getenv("STEPS");
  return asked ? atoi(asked) : STEPS;
}

typedef struct TargetWalk {
  PrimFunc *before, *after, *lowered;
  const char *what;
} TargetWalk;

typedef struct TargetRun {
  CheckPack pack; // first, since check_pack and check_unpack read it
  KernelCode *code;
  int number;
  ThreadPool *pool;
} TargetRun;

typedef struct Counts {
  int run, refused, failed;
} Counts;

static bool run_compiled(void *env, const InterpTensor *args, int count) {
  const TargetRun *run = env;
  (void)count;
  return kernel_code_run(run->code, run->number, run->pool, args);
}

static void report_refusal(Context *context, const TargetRow *target, const char *what) {
  if (getenv("SHOW")) {
    fprintf(stderr, "%s refuses %s\n", target->name, what);
    diag_print_all(context, stderr);
  }
  context->error_count = context->diags.count = 0;
}

// The program of this sequence, lowered. False when lowering refuses it.
static bool walk_to(Context *context, const TargetRow *target, uint64_t seed, TargetWalk *out) {
  const LowerOptions options = {.device = target->is_present != NULL};
  Walk walk = {
      .random = {seed * 977 + 5}, .keeps_loops = seed & 32, .binds = options.device || (seed & 64)};
  out->before = check_parse(context, program_of(seed));
  walk.schedule = schedule_new(context, out->before);
  walk_steps(&walk, step_count());
  out->after = schedule_func(walk.schedule);
  out->what = arena_printf(&context->arena, "seed %llu\n%s", (unsigned long long)seed,
                           schedule_trace(walk.schedule));
  out->lowered = lower_prim_func(context, out->after, &options);
  if (!out->lowered) report_refusal(context, target, out->what);
  return out->lowered;
}

static bool gives_same(Context *context, const TargetWalk *walk, TargetRun *run) {
  run->pack.func = walk->after;
  InterpCompare compare = {.seed = 7,
                           .fill = INTERP_FILL_EIGHTHS,
                           .rtol = 1e-5,
                           .atol = 1e-5,
                           .env = run,
                           .pack = check_pack,
                           .unpack = check_unpack,
                           .run_b = run_compiled};
  InterpDifference difference;
  if (interp_compare(context, walk->before, walk->after, &compare, &difference)) return true;
  diag_print_all(context, stderr);
  if (!context->error_count)
    fprintf(stderr, "%s\n", interp_difference_text(&context->arena, walk->before, &difference));
  context->error_count = context->diags.count = 0;
  return false;
}

// Compiles the programs together, or one by one where the target refuses one of them.
static void run_batch(Context *context, const CompileOptions *options, const TargetWalk *walks,
                      int count, ThreadPool *pool, Counts *counts) {
  PrimFunc **lowered = arena_array(&context->arena, PrimFunc *, count);
  for (int i = 0; i < count; i++) lowered[i] = walks[i].lowered;
  KernelCode *code = kernel_code_of_lowered(context, lowered, count, options, NULL);
  if (!code) {
    report_refusal(context, options->target, count > 1 ? "a batch" : walks[0].what);
    counts->refused += count == 1;
    for (int i = 0; count > 1 && i < count; i++)
      run_batch(context, options, walks + i, 1, pool, counts);
    return;
  }
  for (int i = 0; i < count; i++) {
    TargetRun run = {.code = code, .number = i, .pool = pool};
    counts->run++;
    if (gives_same(context, &walks[i], &run)) continue;
    fprintf(stderr, "target %s, %s\n", options->target->name, walks[i].what);
    counts->failed++;
  }
  kernel_code_free(code);
}

static Counts walk_target(const TargetRow *target, uint64_t first, uint64_t count) {
  Counts counts = {0};
  ThreadPool *pool = thread_pool_new(2);
  for (uint64_t k = 0; k < count; k += BATCH) {
    Context *context = context_new();
    CompileOptions options = {.machine = machine_probe(), .target = target};
    TargetWalk walks[BATCH];
    int made = 0;
    for (uint64_t i = k; i < k + BATCH && i < count; i++) {
      bool lowered = walk_to(context, target, first + i, &walks[made]);
      made += lowered;
      counts.refused += !lowered;
    }
    if (made) run_batch(context, &options, walks, made, pool, &counts);
    context_free(context);
  }
  thread_pool_free(pool);
  return counts;
}

static void test_schedules_on_targets(void **state) {
  (void)state;
  unsigned long long first = 0, count = 10;
  const char *asked = getenv("PLEAT_RANDOM"), *name = getenv("PLEAT_TARGET");
  if (asked) sscanf(asked, "%llu:%llu", &first, &count);
  for (const TargetRow *row = target_table; row->name; row++) {
    bool absent = !strcmp(row->name, "llvm") && row != target_for_running();
    if (!row->load_begin || absent || (row->is_present && !row->is_present())) continue;
    if (name && strcmp(name, row->name) != 0) continue;
    Counts counts = walk_target(row, first, count);
    fprintf(stderr, "%s: %d run, %d refused, %d failed\n", row->name, counts.run, counts.refused,
            counts.failed);
    assert_int_equal(counts.failed, 0);
    assert_true(counts.run > 0);
  }
}

int main(void) {
  setenv("CFLAGS", "-O0", 0); // for the C target: this tests its code, not the compiler
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_schedules_on_targets)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
