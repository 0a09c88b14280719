// SPDX-License-Identifier: Apache-2.0
// Tests the command line's options, their messages, help, numbers and tables.
#include "cli/cli.h"

#include <stdlib.h>

#include <setjmp.h>
#include <cmocka.h>

typedef struct Options {
  bool profile;
  int64_t repeat;
  double tolerance;
  const char *fill;
  StringList inputs;
} Options;

static const Option rows[] = {
    {"profile", 'p', OPTION_FLAG, NULL, "measure each kernel", offsetof(Options, profile)},
    {"repeat", 0, OPTION_INT, "N", "run so often", offsetof(Options, repeat)},
    {"rtol", 0, OPTION_NUMBER, "X", "relative difference", offsetof(Options, tolerance)},
    {"fill", 0, OPTION_TEXT, "random|zero", "what inputs hold", offsetof(Options, fill)},
    {"input", 'i', OPTION_LIST, "NAME=FILE", "an input", offsetof(Options, inputs)},
};

static const Command command = {
    .name = "try",
    .arguments = "FILE",
    .summary = "tries options",
    .example = "  $ pleat try a.onnx\n",
    .takes = TAKES_OUTPUT | TAKES_JSON,
    .options = rows,
    .option_count = COUNT_OF(rows),
    .options_size = sizeof(Options),
    .least_inputs = 1,
    .most_inputs = 2,
};

typedef struct Parsed {
  Cli cli;
  Options options;
  bool ok, help;
} Parsed;

// The words of `line`, parsed.
static Parsed parse(const char *line) {
  Parsed parsed = {.cli = {.context = context_new(), .command = &command}};
  Arena *arena = &parsed.cli.context->arena;
  StringList words = {0};
  char *copy = arena_printf(arena, "%s", line);
  for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
    array_push(arena, &words, (const char *)word);
  parsed.ok = options_parse(&parsed.cli, words.items, words.count, &parsed.options, &parsed.help);
  return parsed;
}

static void expect_error(const char *line, const char *message) {
  Parsed parsed = parse(line);
  assert_false(parsed.ok);
  assert_string_equal(parsed.cli.context->diags.items[0].message, message);
  context_free(parsed.cli.context);
}

static void test_options_of_every_kind(void **state) {
  Parsed parsed = parse("a.onnx -p --repeat 7 --rtol=1e-3 --fill zero -i x=1 --input=y=2 b --json "
                        "-o out.so");
  assert_true(parsed.ok && !parsed.help && parsed.options.profile && parsed.cli.json);
  assert_int_equal(parsed.options.repeat, 7);
  assert_true(parsed.options.tolerance == 1e-3);
  assert_string_equal(parsed.options.fill, "zero");
  assert_int_equal(parsed.options.inputs.count, 2);
  assert_string_equal(parsed.options.inputs.items[1], "y=2");
  assert_string_equal(parsed.cli.output, "out.so");
  assert_int_equal(parsed.cli.inputs.count, 2);
  assert_string_equal(parsed.cli.inputs.items[1], "b");
  context_free(parsed.cli.context);
}

static void test_dashes_that_are_no_options(void **state) {
  Parsed parsed = parse("- -- --repeat");
  assert_true(parsed.ok);
  assert_string_equal(parsed.cli.inputs.items[0], "-");
  assert_string_equal(parsed.cli.inputs.items[1], "--repeat");
  context_free(parsed.cli.context);
}

static void test_wrong_options_are_explained(void **state) {
  expect_error("a --reapet 3", "unknown option '--reapet'; did you mean '--repeat'?");
  expect_error("a --outptu x", "unknown option '--outptu'; did you mean '--output'?");
  expect_error("a --threads 2", "unknown option '--threads'");
  expect_error("a -x", "unknown option '-x'");
  expect_error("a --repeat many", "--repeat takes a whole number, not 'many'");
  expect_error("a --repeat -3", "--repeat takes a whole number, not '-3'");
  expect_error("a --repeat 99999999999999999999",
               "--repeat takes a whole number, not '99999999999999999999'");
  expect_error("a --rtol x", "--rtol takes a number, not 'x'");
  expect_error("a --fill ran", "--fill is one of random|zero, not 'ran'");
  expect_error("a --profile=yes", "--profile takes no value");
  expect_error("a --repeat", "--repeat needs a value: N");
  expect_error("", "expected FILE");
  expect_error("a b c", "unexpected argument 'c'");
}

static void test_every_mistake_is_reported(void **state) {
  Parsed parsed = parse("--repeat x --fil --rtol y");
  assert_int_equal(parsed.cli.context->error_count, 4);
  context_free(parsed.cli.context);
  parsed = parse("--help --nonsense");
  assert_true(parsed.ok && parsed.help);
  context_free(parsed.cli.context);
}

static char *help_text(Context *context) {
  size_t size;
  char *data;
  FILE *stream = open_memstream(&data, &size);
  command_help(&command, stream);
  fclose(stream);
  char *text = arena_copy(&context->arena, data, size + 1);
  free(data);
  return text;
}

static void test_help_names_every_option(void **state) {
  Context *context = context_new();
  const char *text = help_text(context);
  assert_non_null(strstr(text, "usage: pleat try FILE [OPTIONS]\n"));
  assert_non_null(strstr(text, "  -p, --profile"));
  assert_non_null(strstr(text, "      --fill random|zero"));
  assert_non_null(strstr(text, "  -o, --output FILE"));
  assert_non_null(strstr(text, "  -h, --help"));
  assert_null(strstr(text, "--threads"));
  assert_non_null(strstr(text, "example:\n  $ pleat try a.onnx\n"));
  context_free(context);
}

static void test_numbers_people_read(void **state) {
  Context *context = context_new();
  Arena *arena = &context->arena;
  assert_string_equal(show_bytes(arena, 0), "0 B");
  assert_string_equal(show_bytes(arena, 1023), "1023 B");
  assert_string_equal(show_bytes(arena, 602112), "588 KiB");
  assert_string_equal(show_bytes(arena, 102236160), "97.5 MiB");
  assert_string_equal(show_count(arena, 999), "999");
  assert_string_equal(show_count(arena, 25557032), "25.6 M");
  assert_string_equal(show_seconds(arena, 0.02911), "29.1 ms");
  assert_string_equal(show_seconds(arena, 1.5), "1.50 s");
  assert_string_equal(show_seconds(arena, 31e-6), "31.0 us");
  context_free(context);
}

static void test_tables_line_up(void **state) {
  Context *context = context_new();
  Table table = table_new(&context->arena, "lrl");
  static const char *const cells[] = {"größe", "1", "x", "a", "588", "long"};
  for (int i = 0; i < COUNT_OF(cells); i++) table_cell(&table, "%s", cells[i]);
  char *data;
  size_t size;
  FILE *stream = open_memstream(&data, &size);
  table_print(&table, stream);
  fclose(stream);
  assert_string_equal(data, "größe    1  x\n"
                            "a      588  long\n");
  free(data);
  context_free(context);
}

static void test_machine_is_what_options_leave(void **state) {
  const Command command = {.name = "run"};
  Cli cli = {.context = context_new(), .command = &command, .cpu = "sse2", .threads = 3};
  HostMachine machine;
  assert_true(cli_machine(&cli, &machine));
  assert_int_equal(machine.level, CPU_BASELINE);
  assert_int_equal(machine.threads, 3);
  assert_int_equal(machine.cores, machine_probe().cores);
  cli.threads = 5000;
  assert_false(cli_machine(&cli, &machine));
  assert_string_equal(cli.context->diags.items[0].message, "--threads 5000: at most 1024");
  context_free(cli.context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_options_of_every_kind),
      cmocka_unit_test(test_dashes_that_are_no_options),
      cmocka_unit_test(test_wrong_options_are_explained),
      cmocka_unit_test(test_every_mistake_is_reported),
      cmocka_unit_test(test_help_names_every_option),
      cmocka_unit_test(test_numbers_people_read),
      cmocka_unit_test(test_tables_line_up),
      cmocka_unit_test(test_machine_is_what_options_leave),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
