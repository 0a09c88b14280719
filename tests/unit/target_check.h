// SPDX-License-Identifier: Apache-2.0
// Runs functions by every target at every level of the processor, and compares with the
// interpreter.
#ifndef PLEAT_TESTS_TARGET_CHECK_H
#define PLEAT_TESTS_TARGET_CHECK_H

#include "driver/driver.h"
#include "script/script.h"

#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

typedef struct TargetCase {
  PrimFunc *func, *lowered;
  InterpCompare compare; // tolerances, sizes, seed, fill
  const char *what;      // printed when the case fails
  bool may_be_refused;   // by a device, with a message
} TargetCase;
typedef Array(TargetCase) TargetCases;

static const char *const target_levels[] = {"avx512", "avx2", "baseline", "scalar"};

typedef struct TargetRun {
  KernelCode *code;
  int number;
  ThreadPool *pool;
} TargetRun;

static inline bool run_compiled(void *env, const InterpTensor *args, int count) {
  const TargetRun *run = env;
  (void)count;
  return kernel_code_run(run->code, run->number, run->pool, args);
}

// Runs one case of compiled code; false where its results differ, which is printed.
static inline bool target_check_case(Context *context, const TargetCase *one,
                                     const CompileOptions *options, TargetRun *run) {
  InterpCompare compare = one->compare;
  InterpDifference difference;
  compare.env = run;
  compare.run_b = run_compiled;
  if (interp_compare(context, one->func, one->func, &compare, &difference)) return true;
  diag_print_all(context, stderr);
  context->diags.count = context->error_count = 0;
  fprintf(stderr, "%s at %s: %s\n%s\n", options->target->name, options->machine.level_name,
          interp_difference_text(&context->arena, one->func, &difference), one->what);
  return false;
}

// Whether a device refuses a program, with a message. A compiler that refuses the code is a fault.
static inline bool target_refuses(const Context *context, const CompileOptions *options) {
  for (int i = 0; i < context->diags.count; i++)
    if (strstr(context->diags.items[i].message, "compiler refuses")) return false;
  return context->error_count && target_is_device(options->target);
}

// The number of cases that fail on one target and level; each failure is printed. Where a device
// refuses one of them, the others are compiled one by one.
static inline int target_check_level(Context *context, const TargetCase *cases, int count,
                                     const CompileOptions *options, ThreadPool *pool) {
  PrimFunc **lowered = arena_array(&context->arena, PrimFunc *, count);
  for (int i = 0; i < count; i++) lowered[i] = cases[i].lowered;
  KernelCode *code = kernel_code_of_lowered(context, lowered, count, options, NULL);
  int failures = 0;
  if (!code) {
    bool is_refused = cases[0].may_be_refused && (count > 1 || target_refuses(context, options));
    if (count == 1 || !is_refused) diag_print_all(context, stderr);
    context->diags.count = context->error_count = 0;
    assert_true(is_refused);
    for (int i = 0; count > 1 && i < count; i++)
      failures += target_check_level(context, cases + i, 1, options, pool);
    return failures;
  }
  for (int i = 0; i < count; i++)
    failures += !target_check_case(context, &cases[i], options, &(TargetRun){code, i, pool});
  kernel_code_free(code);
  return failures;
}

// The targets and levels to run on: bit i of `levels` is target_levels[i]; target NULL: all
// targets.
typedef struct TargetPlaces {
  const char *target;
  unsigned levels;
} TargetPlaces;

static inline int target_check(Context *context, const TargetCases *cases, TargetPlaces places) {
  int failures = 0;
  ThreadPool *pool = thread_pool_new(2);
  for (const TargetRow *row = target_table; row->name; row++) {
    bool absent = !strcmp(row->name, "llvm") && row != target_for_running();
    if (row->is_present && !row->is_present()) {
      fprintf(stderr, "target %s is left out: this machine has no device for it\n", row->name);
      continue;
    }
    if (!row->load_begin || absent || (places.target && strcmp(places.target, row->name) != 0))
      continue;
    for (int i = 0; i < COUNT_OF(target_levels); i++) {
      CompileOptions options = {.machine = machine_probe(), .target = row};
      if (!(places.levels >> i & 1)) continue;
      if (!machine_limit(&options.machine, target_levels[i])) continue;
      failures += target_check_level(context, cases->items, cases->count, &options, pool);
    }
  }
  thread_pool_free(pool);
  return failures;
}

#endif
