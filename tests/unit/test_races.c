// SPDX-License-Identifier: Apache-2.0
// Random loops whose iterations write and read elements: a loop that is proved free of races has no
// two iterations that share an element, which all of them are followed to see; two iterations that
// are reported do share one.
#include "lower/lower.h"
#include "script/script.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "random_support.h"

enum { TRIALS = 1500 };

// An index as a function of the iteration p and of an inner loop i.
typedef struct Form {
  int kind, a, b, c, m;
} Form;

enum { LINEAR, QUOTIENT, REST, EXCLUSIVE, TWO_DIGITS, FORM_KINDS };

static int value_at(const Form *f, int p, int i) {
  int linear = f->a * p + f->b * i + f->c;
  switch (f->kind) {
  case QUOTIENT: return linear / f->m;
  case REST: return linear % f->m;
  case EXCLUSIVE: return linear ^ f->m;
  case TWO_DIGITS: return p % f->m * f->a + p / f->m * f->b + i * f->c;
  default: return linear;
  }
}

static Form random_form(void) {
  return (Form){random_below(FORM_KINDS), random_below(5), random_below(4), random_below(3),
                2 + random_below(6)};
}

static const char *form_text(Context *context, const Form *f) {
  const char *linear = arena_printf(&context->arena, "(%d * p + %d * i + %d)", f->a, f->b, f->c);
  static const char *const signs[] = {[QUOTIENT] = "//", [REST] = "%", [EXCLUSIVE] = "^"};
  if (f->kind == LINEAR) return linear;
  if (f->kind == TWO_DIGITS)
    return arena_printf(&context->arena, "p %% %d * %d + p // %d * %d + i * %d", f->m, f->a, f->m,
                        f->b, f->c);
  return arena_printf(&context->arena, "%s %s %d", linear, signs[f->kind], f->m);
}

// for p in T.parallel(iterations): for i in range(inner): if condition: C[write] = C[read] + p
typedef struct Loop {
  int iterations, inner;
  Form write[2], read[2];
  int read_kind;     // 0: reads nothing of C, 1: what it writes, 2: other elements
  int modulus, rest; // the condition p % modulus == rest; modulus 1: there is none
} Loop;

static Loop random_loop(void) {
  Loop loop = {2 + random_below(23),
               1 + random_below(5),
               {random_form(), random_form()},
               {random_form(), random_form()},
               random_below(3),
               1,
               0};
  if (random_below(4) == 0) loop.modulus = 2 + random_below(2), loop.rest = random_below(2);
  if (random_below(3) == 0) loop.write[1] = (Form){LINEAR, 0, 0, 1, 2};
  if (loop.read_kind == 1) memcpy(loop.read, loop.write, sizeof loop.read);
  return loop;
}

static const char *loop_text(Context *context, const Loop *loop) {
  const char *value = "p";
  if (loop->read_kind)
    value = arena_printf(&context->arena, "C[%s, %s] + p", form_text(context, &loop->read[0]),
                         form_text(context, &loop->read[1]));
  return arena_printf(&context->arena,
                      "from pleat.script import tir as T\n@T.prim_func\n"
                      "def f(C: T.Buffer((512, 512), 'int32')):\n    for p in T.parallel(%d):\n"
                      "        for i in range(%d):\n            if p %% %d == %d:\n                "
                      "C[%s, %s] = %s\n",
                      loop->iterations, loop->inner, loop->modulus, loop->rest,
                      form_text(context, &loop->write[0]), form_text(context, &loop->write[1]),
                      value);
}

static PrimFunc *parsed(Context *context, const char *text) {
  Module *module = script_parse(context, source_file_new(context, "loop.py", text, strlen(text)));
  return module ? module->funcs.items[0].prim : NULL;
}

static int element_of(const Form *axes, int p, int i) {
  return value_at(&axes[0], p, i) * 512 + value_at(&axes[1], p, i);
}

static bool share(const Loop *loop, const Form *a, const Form *b) {
  for (int p = 0; p < loop->iterations; p++)
    for (int q = 0; q < loop->iterations; q++) {
      if (p == q || p % loop->modulus != loop->rest || q % loop->modulus != loop->rest) continue;
      for (int k = 0; k < loop->inner * loop->inner; k++)
        if (element_of(a, p, k / loop->inner) == element_of(b, q, k % loop->inner)) return true;
    }
  return false;
}

static bool has_race(const Loop *loop) {
  return share(loop, loop->write, loop->write) ||
         (loop->read_kind && share(loop, loop->write, loop->read));
}

// Loops over threads are looked at for devices alone.
static void threads_race_on_devices(void **state) {
  (void)state;
  static const char text[] = "from pleat.script import tir as T\n@T.prim_func\n"
                             "def f(C: T.Buffer((4,), \"int32\")):\n"
                             "    for t in T.thread_binding(8, \"threadIdx.x\"):\n"
                             "        C[t // 2] = t\n";
  Context *context = context_new();
  PrimFunc *func = parsed(context, text);
  assert_non_null(func);
  assert_false(lower_find_races(context, func, NULL));
  assert_true(lower_find_thread_races(context, func, NULL));
  context_free(context);
}

static void random_loops_are_decided(void **state) {
  (void)state;
  int counts[3] = {0};
  seed = 41;
  for (int trial = 0; trial < TRIALS; trial++) {
    Context *context = context_new();
    Loop loop = random_loop();
    const char *program = loop_text(context, &loop);
    PrimFunc *func = parsed(context, program);
    LoopRacesList list = {0};
    assert_non_null(func);
    bool found = lower_find_races(context, func, &list);
    assert_int_equal(list.count, 1);
    Verdict verdict = list.items[0].verdict;
    assert_int_equal(found, verdict == VERDICT_NO);
    bool races = has_race(&loop);
    if (verdict != VERDICT_UNDECIDED && races != (verdict == VERDICT_NO))
      fail_msg("%s is %s", program, races ? "a race" : "free of races");
    counts[verdict]++;
    context_free(context);
  }
  assert_in_range(counts[VERDICT_YES], TRIALS / 4, TRIALS);
  assert_in_range(counts[VERDICT_NO], TRIALS / 4, TRIALS);
  assert_int_equal(counts[VERDICT_UNDECIDED], 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(threads_race_on_devices),
                                     cmocka_unit_test(random_loops_are_decided)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
