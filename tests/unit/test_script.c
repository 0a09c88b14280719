// SPDX-License-Identifier: Apache-2.0
// TVMScript: every case of tests/cases/script parses and prints as stored, and the printed text
// parses back to an equal module. Wrong scripts give the stored messages, and damaged text never
// crashes the parser.
#include "lower/lower.h"
#include "lower/pass.h"
#include "script/script.h"

#include <dirent.h>
#include <stdlib.h>

#include <setjmp.h>
#include <cmocka.h>

static const char *cases_folder(void) {
  static char path[1024];
  snprintf(path, sizeof path, "%.*scases/script",
           (int)(strlen(__FILE__) - strlen("unit/test_script.c")), __FILE__);
  return path;
}

static Module *parse_text(Context *context, const char *name, const char *text) {
  return script_parse(context, source_file_new(context, name, text, strlen(text)));
}

static const char *print_module(Context *context, const Module *module, bool newer) {
  Text text = text_new(&context->arena);
  ScriptOptions options = {.newer = newer};
  script_print_module(context, module, &text, &options);
  return text_string(&text);
}

static const char *messages(Context *context) {
  Text text = text_new(&context->arena);
  for (int i = 0; i < context->diags.count; i++) diag_print(&context->diags.items[i], &text);
  return text_string(&text);
}

// ---- Stored cases

static int compare_names(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

// Names of the cases, sorted; NULL at the end.
static char **case_names(Context *context) {
  Array(char *) names = {0};
  DIR *folder = opendir(cases_folder());
  assert_non_null(folder);
  for (struct dirent *entry; (entry = readdir(folder));) {
    size_t n = strlen(entry->d_name);
    if (n > 3 && !strcmp(entry->d_name + n - 3, ".py"))
      array_push(&context->arena, &names, arena_printf(&context->arena, "%s", entry->d_name));
  }
  closedir(folder);
  qsort(names.items, (size_t)names.count, sizeof *names.items, compare_names);
  array_push(&context->arena, &names, NULL);
  return names.items;
}

static char *read_case(Context *context, const char *name, const char *suffix) {
  char *path = arena_printf(&context->arena, "%s/%s%s", cases_folder(), name, suffix);
  size_t size;
  FILE *file = fopen(path, "rb");
  if (!file) return "";
  fclose(file);
  return file_read(context, &context->arena, path, &size);
}

static void expect_stored(Context *context, const char *name, const char *suffix,
                          const char *seen) {
  if (getenv("BLESS") && *seen) {
    const char *path = arena_printf(&context->arena, "%s/%s%s", cases_folder(), name, suffix);
    assert_true(file_write(context, path, seen, strlen(seen)));
  }
  assert_string_equal(seen, read_case(context, name, suffix));
}

static void expect_round_trip(Context *context, const Module *module, const char *name,
                              bool newer) {
  const char *printed = print_module(context, module, newer);
  Module *again = parse_text(context, name, printed);
  if (!again) print_message("%s\n%s", printed, messages(context));
  assert_non_null(again);
  assert_string_equal(print_module(context, again, newer), printed);
  IrDifference difference;
  bool equal = module_equal(context, module, again, &difference);
  if (!equal) print_message("%s: %s\n", name, difference.what);
  assert_true(equal);
}

static void expect_well_formed(Context *context, const Module *module) {
  bool ok = true;
  for (int i = 0; i < module->funcs.count; i++)
    if (module->funcs.items[i].prim)
      ok &= verify_prim_func(context, module->funcs.items[i].prim, IR_LEVEL_TENSOR);
  if (!ok) print_message("%s", messages(context));
  assert_true(ok);
}

static void check_case(const char *name) {
  Context *context = context_new();
  Module *module = parse_text(context, name, read_case(context, name, ""));
  const char *printed = module ? print_module(context, module, false) : "";
  expect_stored(context, name, ".out", printed);
  expect_stored(context, name, ".err", messages(context));
  if (module) {
    expect_well_formed(context, module);
    expect_round_trip(context, module, name, false);
    expect_round_trip(context, module, name, true);
  }
  context_free(context);
}

static void test_stored_cases(void **state) {
  (void)state;
  Context *context = context_new();
  char **names = case_names(context);
  assert_non_null(names[0]);
  for (; *names; names++) check_case(*names);
  context_free(context);
}

// The result of every pass on the cases is printed and read again, too.
static void test_lowered_programs_read_back(void **state) {
  (void)state;
  Context *outer = context_new();
  for (char **names = case_names(outer); *names; names++)
    for (int last = 0; lower_passes[last].name; last++) {
      Context *context = context_new();
      Module *module = parse_text(context, *names, read_case(context, *names, ""));
      const char *passes[LOWER_MAX_PASSES];
      for (int i = 0; i <= last; i++) passes[i] = lower_passes[i].name;
      for (int i = 0; module && i < module->funcs.count; i++) {
        if (!module->funcs.items[i].prim) continue;
        PrimFunc *func =
            lower_run_passes(context, module->funcs.items[i].prim, passes, last + 1, NULL);
        if (func) module->funcs.items[i].prim = func;
      }
      if (module) expect_round_trip(context, module, *names, false);
      context_free(context);
    }
  context_free(outer);
}

// Names as models have them: with strange letters, reserved, empty, the same for different things.
static void test_any_names_print_as_python(void **state) {
  (void)state;
  Context *context = context_new();
  Buffer *in = buffer_static(context, "/conv1/Conv:0", DTYPE_FLOAT32, (int64_t[]){7}, 1, NULL);
  Buffer *out = buffer_static(context, "for", DTYPE_FLOAT32, (int64_t[]){7}, 1, NULL);
  Buffer *temporary = buffer_static(context, "T", DTYPE_FLOAT32, (int64_t[]){7}, 1, NULL);
  Expr *i = expr_var(context, "", DTYPE_INT32), *j = expr_var(context, "9", DTYPE_INT32);
  Expr *x = expr_var(context, "for", DTYPE_FLOAT32), *y = expr_var(context, "T", DTYPE_FLOAT32);
  Expr *zero = expr_index(context, 0), *seven = expr_index(context, 7);
  Stmt *store = stmt_store(context, out, &i, 1, expr_add(context, x, y));
  Stmt *body = stmt_let(context, x, expr_load(context, in, &i, 1),
                        stmt_let(context, y, expr_load(context, temporary, &j, 1), store));
  body = stmt_for(context, i, zero, seven, LOOP_SERIAL,
                  stmt_for(context, j, zero, seven, LOOP_SERIAL, body));
  Expr *params[] = {expr_var(context, "p", DTYPE_HANDLE), expr_var(context, "p", DTYPE_HANDLE)};
  Buffer *buffers[] = {in, out};
  PrimFunc *func = prim_func_new(context, "/conv1/Conv", params, buffers, 2,
                                 stmt_allocate(context, temporary, body));
  Text text = text_new(&context->arena);
  script_print_prim_func(context, func, &text, NULL);
  Module *again = parse_text(context, "names.py", text_string(&text));
  if (!again) print_message("%s%s", text_string(&text), messages(context));
  assert_non_null(again);
  IrDifference difference;
  bool equal = prim_func_equal(context, func, again->funcs.items[0].prim, &difference);
  if (!equal) print_message("%s%s\n", text_string(&text), difference.what);
  assert_true(equal);
  context_free(context);
}

// All numbers of a constant are printed, and none may be lost.
static void test_large_constants_are_whole(void **state) {
  (void)state;
  enum { COUNT = 1031 };
  Context *context = context_new();
  Text text = text_new(&context->arena);
  text_puts(&text, "from pleat.script import relax as R\n@R.function\n"
                   "def main(x: R.Tensor((1031,), 'float32')):\n    with R.dataflow():\n"
                   "        y: R.Tensor((1031,), 'float32') = R.add(x, R.const([");
  for (int i = 0; i < COUNT; i++) text_printf(&text, "%d.1, ", i);
  text_puts(&text, "], 'float32'))\n        R.output(y)\n    return y\n");
  Module *module = parse_text(context, "large.py", text_string(&text));
  if (!module) print_message("%s", messages(context));
  assert_non_null(module);
  expect_round_trip(context, module, "large.py", false);
  Module *again = parse_text(context, "again.py", print_module(context, module, false));
  ConstData *data = again->funcs.items[0].graph->nodes.items[0]->inputs[1]->data;
  assert_non_null(data->data);
  assert_float_equal(((const float *)data->data)[COUNT - 1], 1030.1F, 0);
  data->data = NULL; // lost contents are a difference
  IrDifference difference;
  assert_false(module_equal(context, module, again, &difference));
  assert_non_null(strstr(difference.what, "only one has them"));
  context_free(context);
}

// Parts of programs are printed for messages, with the names they have in the program.
static void test_parts_print_alone(void **state) {
  (void)state;
  Context *context = context_new();
  Buffer *a = buffer_static(context, "A", DTYPE_FLOAT32, (int64_t[]){5, 7}, 2, "local");
  Expr *i = expr_var(context, "i", DTYPE_INT32), *indices[] = {i, expr_index(context, 3)};
  Expr *load = expr_load(context, a, indices, 2);
  assert_string_equal(script_expr_text(context, expr_mul(context, load, load)),
                      "A[i, 3] * A[i, 3]");
  assert_string_equal(script_buffer_text(context, a),
                      "A: T.Buffer((5, 7), \"float32\", scope=\"local\")");
  Text text = text_new(&context->arena);
  script_print_stmt(context, stmt_store(context, a, indices, 2, load), &text, NULL);
  script_print_stmt(context, stmt_nothing(context), &text, NULL);
  assert_string_equal(text_string(&text), "A[i, 3] = A[i, 3]\npass\n");
  context_free(context);
}

// ---- Damaged text

typedef struct Random {
  uint64_t state;
} Random;

static uint32_t random_below(Random *random, uint32_t n) {
  random->state = random->state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(random->state >> 33) % n;
}

// The text with one to four pieces removed, repeated, exchanged for another's, or a word put in.
static char *damaged(Context *context, Random *random, const char *text) {
  static const char *const words[] = {"(",
                                      ")",
                                      "[",
                                      "]",
                                      "{",
                                      ":",
                                      ",",
                                      "\n",
                                      "    ",
                                      "\"",
                                      "\"\"\"",
                                      "\\",
                                      "T.",
                                      "-",
                                      "not ",
                                      "lambda x:",
                                      "0",
                                      "1e",
                                      "0x",
                                      "#",
                                      "\xff\xfe",
                                      "\t",
                                      "@T.prim_func\n",
                                      "99999999999999999999",
                                      "for i in range(",
                                      "T.block(\"x\")",
                                      "A",
                                      "float32",
                                      "*",
                                      "=",
                                      "None",
                                      "as x",
                                      "if",
                                      "else:"};
  Text out = text_new(&context->arena);
  size_t size = strlen(text);
  for (uint32_t edits = 1 + random_below(random, 4), at = 0; edits && at < size; edits--) {
    uint32_t keep = random_below(random, (uint32_t)(size - at) + 1);
    uint32_t length = random_below(random, 30);
    text_append(&out, text + at, keep);
    at += keep;
    length = MIN_OF(length, (uint32_t)(size - at));
    switch (random_below(random, 4)) {
    case 0: at += length; break;
    case 1: text_append(&out, text + at, length); break;
    case 2: text_puts(&out, words[random_below(random, COUNT_OF(words))]); break;
    case 3: text_append(&out, text + random_below(random, (uint32_t)size - length), length); break;
    }
    if (edits == 1 && random_below(random, 8)) text_append(&out, text + at, size - at);
  }
  return (char *)text_string(&out);
}

typedef struct Attempt {
  Context *context;
  const char *text;
} Attempt;

static void read_and_print(void *arg) {
  Attempt *attempt = arg;
  Context *context = attempt->context;
  Module *module = parse_text(context, "damaged.py", attempt->text);
  if (!module != !!context->error_count) bug(context, "errors and a module");
  messages(context);
  if (module) expect_round_trip(context, module, attempt->text, false);
}

static void test_damaged_text_is_refused_with_messages(void **state) {
  (void)state;
  Context *outer = context_new();
  Random random = {20240607};
  for (char **names = case_names(outer); *names; names++) {
    const char *text = read_case(outer, *names, "");
    for (int i = 0; i < 120; i++) {
      Context *context = context_new();
      Attempt attempt = {context, damaged(context, &random, text)};
      if (!context_protect(context, read_and_print, &attempt))
        print_message("%s\n%s\n", context->failure_message, attempt.text);
      assert_int_equal(context->failure, FAILURE_NONE);
      context_free(context);
    }
  }
  context_free(outer);
}

// Text that is repeated very often must meet a limit instead of overflowing the stack.
static void expect_refused(const char *before, const char *piece, const char *after, int times,
                           const char *message) {
  Context *context = context_new();
  Text text = text_new(&context->arena);
  text_puts(&text, "@T.prim_func\ndef f(A: T.Buffer((4,), \"int32\")):\n");
  text_puts(&text, before);
  for (int i = 0; i < times; i++) text_puts(&text, piece);
  text_puts(&text, after);
  assert_null(parse_text(context, "deep.py", text_string(&text)));
  if (!strstr(messages(context), message)) print_message("%.2000s\n", messages(context));
  assert_non_null(strstr(messages(context), message));
  context_free(context);
}

static void test_depth_is_limited(void **state) {
  (void)state;
  expect_refused("    A[0] = ", "(", "1", 100000, "nest");
  expect_refused("    A[0] = ", "-", "1", 100000, "nest");
  expect_refused("    A[0] = ", "A[", "0", 100000, "nest");
  expect_refused("    A[0] = A[0]", " + A[0]", "\n", 100000, "nest");
  expect_refused("    A[0] = A", ".b", "\n", 100000, "nest");
  expect_refused("    A[0] = ", "lambda x: ", "0\n", 100000, "nest");
  expect_refused("    A[0] = ", "1 if A[0] else ", "0\n", 100000, "nest");
  expect_refused("    x = 1\n", "    x = x + 1\n", "    A[0] = x\n", 100000, "nest");
  expect_refused("    if A[0] > 1:\n        pass\n", "    elif A[0] > 2:\n        pass\n", "",
                 100000, "expected");
  Context *context = context_new();
  Text text = text_new(&context->arena);
  text_puts(&text, "@T.prim_func\ndef f(A: T.Buffer((4,), \"int32\")):\n");
  for (int i = 1; i < 3000; i++) {
    text_pad(&text, ' ', 2 * i);
    text_puts(&text, "for i in range(3):\n");
  }
  assert_null(parse_text(context, "deep.py", text_string(&text)));
  assert_non_null(strstr(messages(context), "nest deeper"));
  context_free(context);
}

// Long text that is not nested deeply is accepted.
static void test_length_is_not_limited(void **state) {
  (void)state;
  Context *context = context_new();
  Text text = text_new(&context->arena);
  text_puts(&text, "@T.prim_func\ndef f(A: T.Buffer((4,), \"int32\")):\n");
  for (int i = 0; i < 50000; i++) text_printf(&text, "    A[%d] = A[%d] + %d\n", i % 4, i % 3, i);
  Module *module = parse_text(context, "long.py", text_string(&text));
  assert_non_null(module);
  expect_round_trip(context, module, "long.py", false);
  context_free(context);
}

// ---- Memory that runs out

static void test_exhausted_memory_returns(void **state) {
  (void)state;
  for (int64_t n = 1; n < 12; n++) {
    Context *context = context_new();
    Attempt attempt = {context, read_case(context, "blocks.py", "")};
    context->fail_after = n;
    bool ok = context_protect(context, read_and_print, &attempt);
    assert_true(ok || context->failure == FAILURE_MEMORY);
    context_free(context);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_stored_cases),
      cmocka_unit_test(test_lowered_programs_read_back),
      cmocka_unit_test(test_any_names_print_as_python),
      cmocka_unit_test(test_large_constants_are_whole),
      cmocka_unit_test(test_parts_print_alone),
      cmocka_unit_test(test_damaged_text_is_refused_with_messages),
      cmocka_unit_test(test_depth_is_limited),
      cmocka_unit_test(test_length_is_not_limited),
      cmocka_unit_test(test_exhausted_memory_returns),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
