// SPDX-License-Identifier: Apache-2.0
// Random programs that leave loops, iterations and the function early: the passes keep what the
// interpreter computes, and so does the code of every target.
#include "target_check.h"

#include "ir/intrinsic.h"
#include "random_support.h"

enum { BASELINE = 1 << 2, PROGRAMS = 24, MOST_DEPTH = 4 };

typedef struct Writer {
  Text text;
  int depth, loops; // of indentation; loops around the next statement
  int vars[MOST_DEPTH + 1];
  int var_count, statements;
} Writer;

static void line(Writer *w, const char *format, ...) {
  va_list args;
  text_printf(&w->text, "%*s", 4 * (w->depth + 1), "");
  va_start(args, format);
  text_vprintf(&w->text, format, args);
  va_end(args);
  text_puts(&w->text, "\n");
}

// An index below 8.
static const char *index_text(Writer *w) {
  if (!w->loops) return arena_printf(w->text.arena, "%d", random_below(8));
  return arena_printf(w->text.arena, "(i%d * %d + %d) %% 8", w->vars[random_below(w->loops)],
                      1 + random_below(3), random_below(8));
}

static void statements(Writer *w);

static void inside(Writer *w) {
  w->depth++;
  statements(w);
  w->depth--;
}

static void loop(Writer *w) {
  static const char *const kinds[] = {"range", "range", "T.unroll", "T.serial"};
  int var = w->var_count++;
  if (random_below(5) == 0) {
    line(w, "C[%d] = 0", w->loops);
    line(w, "while C[%d] < %d:", w->loops, 2 + random_below(5));
    w->depth++;
    line(w, "C[%d] = C[%d] + 1", w->loops, w->loops);
    line(w, "i%d: T.int32 = C[%d]", var, w->loops);
    w->depth--;
  } else {
    line(w, "for i%d in %s(%d):", var, kinds[random_below(COUNT_OF(kinds))], 1 + random_below(6));
  }
  w->vars[w->loops++] = var;
  inside(w);
  w->loops--;
}

static void branch(Writer *w) {
  line(w, "if B[%s] %% %d == %d:", index_text(w), 2 + random_below(3), random_below(2));
  inside(w);
  if (random_below(3)) return;
  line(w, "else:");
  inside(w);
}

static void jump(Writer *w) {
  int kind = random_below(w->loops ? 5 : 1);
  if (kind == 0)
    line(w, "return %d", random_below(9));
  else
    line(w, kind < 3 ? "break" : "continue");
}

static void store(Writer *w) {
  line(w, "B[%s] = (B[%s] * 5 + A[%s] + %d) %% 101", index_text(w), index_text(w), index_text(w),
       random_below(50));
}

static void statements(Writer *w) {
  int count = 1 + random_below(3);
  for (int i = 0; i < count; i++) {
    int kind = random_below(8);
    bool deep = w->depth >= MOST_DEPTH + 2 || w->statements++ > 25;
    if (kind < 2 && !deep && w->loops < MOST_DEPTH)
      loop(w);
    else if (kind < 5 && !deep)
      branch(w);
    else if (kind == 5 && w->depth > 0 && i == count - 1)
      jump(w);
    else
      store(w);
  }
}

static const char *random_text(Context *context) {
  Writer w = {.text = text_new(&context->arena)};
  text_puts(&w.text, "from pleat.script import tir as T\n@T.prim_func\n"
                     "def f(A: T.Buffer((8,), 'int32'), B: T.Buffer((8,), 'int32'),\n"
                     "      C: T.Buffer((5,), 'int32')) -> T.int32:\n");
  for (int i = 0; i < 3; i++) loop(&w);
  line(&w, "return 0");
  return text_string(&w.text);
}

static void add_program(Context *context, TargetCases *cases) {
  const char *text = random_text(context);
  Module *module = script_parse(context, source_file_new(context, "f.py", text, strlen(text)));
  PrimFunc *func = module ? module->funcs.items[0].prim : NULL;
  LowerOptions options = {.verify_each = true, .seed = seed, .guards = true};
  PrimFunc *lowered = func ? lower_prim_func(context, func, &options) : NULL;
  if (!lowered) {
    diag_print_all(context, stderr);
    fail_msg("%s", text);
  }
  assert_false(stmt_find_jump(lowered->body, JUMP_ANY));
  TargetCase one = {func, lowered, {.seed = seed, .fill = INTERP_FILL_EIGHTHS}, text};
  array_push(&context->arena, cases, one);
}

static void test_random_jumps(void **state) {
  (void)state;
  const char *asked = getenv("PLEAT_RANDOM");
  int count = asked ? atoi(asked) : PROGRAMS;
  seed = 17;
  for (int first = 0; first < count; first += PROGRAMS) {
    Context *context = context_new();
    TargetCases cases = {0};
    for (int i = 0; i < PROGRAMS && first + i < count; i++) add_program(context, &cases);
    assert_int_equal(target_check(context, &cases, (TargetPlaces){NULL, BASELINE}), 0);
    context_free(context);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_jumps)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
