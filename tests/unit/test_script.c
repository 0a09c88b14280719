// SPDX-License-Identifier: Apache-2.0
// TVMScript: every case of tests/cases/script reads, prints as stored, and what is printed reads
// back to an equal module; wrong ones give the stored messages; damaged text never does worse.
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
      ok &= verify_prim_func(context, module->funcs.items[i].prim, STAGE_TENSOR);
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_stored_cases),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
