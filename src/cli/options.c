// SPDX-License-Identifier: Apache-2.0
// Reads the options of subcommands: `--name value`, `--name=value`, `-n value`; `--` ends the
// options. The rows of the subcommand are searched first, then those that many subcommands share.
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>

static const struct {
  unsigned bit;
  Option option;
} shared[] = {
    {TAKES_OUTPUT,
     {"output", 'o', OPTION_TEXT, "FILE", "where to write; - is standard output",
      offsetof(Cli, output)}},
    {TAKES_THREADS,
     {"threads", 0, OPTION_INT, "N", "threads to run with; 0: one for each core",
      offsetof(Cli, threads)}},
    {TAKES_CPU,
     {"cpu", 0, OPTION_TEXT, "avx512vnni|avx512|avx2|sse2|baseline|scalar",
      "the level of processor; run, bench and verify: at most that of this machine",
      offsetof(Cli, cpu)}},
    {TAKES_CACHE,
     {"no-cache", 0, OPTION_FLAG, NULL, "neither use nor keep compiled code in the user's cache",
      offsetof(Cli, no_cache)}},
    {TAKES_JSON,
     {"json", 0, OPTION_FLAG, NULL,
      "print one JSON object; its \"messages\" are the errors and warnings", offsetof(Cli, json)}},
};

static const Option help_option = {"help", 'h', OPTION_FLAG, NULL, "this text", 0};

typedef struct OptionReader {
  Cli *cli;
  void *options;
  bool *help;
  const char *const *arguments;
  int count, next;
  bool ok;
  const char *bare; // an option that appeared without its optional value
} OptionReader;

// An option of the command: its row and the struct to which its offset refers.
typedef struct Target {
  const Option *option;
  void *base;
} Target;

static bool misuse(OptionReader *reader, const char *format, ...) PRINTF_LIKE(2, 3);
static bool misuse(OptionReader *reader, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const char *message = arena_vprintf(&reader->cli->context->arena, format, args);
  va_end(args);
  reader->ok = false;
  return diag_error_as(reader->cli->context, DIAG_OPTION, (SourcePos){0}, "%s", message);
}

static bool is_named(const Option *option, const char *word, size_t length) {
  if (word[1] != '-') return length == 2 && option->letter && option->letter == word[1];
  return strlen(option->name) == length - 2 && strncmp(option->name, word + 2, length - 2) == 0;
}

// Finds the i-th option of the command; false past the last.
static bool target_at(const OptionReader *reader, int i, Target *target) {
  const Command *command = reader->cli->command;
  if (i < command->option_count) {
    *target = (Target){&command->options[i], reader->options};
    return true;
  }
  for (int k = 0, at = command->option_count; k < COUNT_OF(shared); k++)
    if ((command->takes & shared[k].bit) && at++ == i) {
      *target = (Target){&shared[k].option, reader->cli};
      return true;
    }
  *target = (Target){&help_option, reader->help};
  int taken = __builtin_popcount(command->takes);
  return i == command->option_count + taken;
}

static const char *nearest_option(const OptionReader *reader, const char *word) {
  const char *names[128];
  int count = 0;
  Target target;
  while (count < COUNT_OF(names) && target_at(reader, count, &target))
    names[count++] = target.option->name;
  return nearest_name(word + strspn(word, "-"), names, count);
}

static bool find_option(OptionReader *reader, const char *word, size_t length, Target *target) {
  for (int i = 0; target_at(reader, i, target); i++)
    if (is_named(target->option, word, length)) return true;
  const char *nearest = nearest_option(reader, word);
  misuse(reader, "unknown option '%.*s'%s%s%s", (int)length, word,
         nearest ? "; did you mean '--" : "", nearest ? nearest : "", nearest ? "'?" : "");
  return false;
}

static bool is_choice(const char *choices, const char *text) {
  if (!strchr(choices, '|')) return true;
  size_t length = strlen(text);
  for (const char *p = choices; p; p = strchr(p, '|') ? strchr(p, '|') + 1 : NULL)
    if (strcspn(p, "|") == length && strncmp(p, text, length) == 0) return true;
  return false;
}

static bool store_int(OptionReader *reader, const Option *option, const char *text,
                      int64_t *place) {
  char *end;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  if (errno || *end || end == text || value < 0)
    return misuse(reader, "--%s takes a whole number, not '%s'", option->name, text);
  *place = value;
  return true;
}

static bool store_number(OptionReader *reader, const Option *option, const char *text,
                         double *place) {
  char *end;
  double value = strtod(text, &end);
  if (*end || end == text || !(value >= 0))
    return misuse(reader, "--%s takes a number, not '%s'", option->name, text);
  *place = value;
  return true;
}

static bool store(OptionReader *reader, Target target, const char *text) {
  const Option *option = target.option;
  void *place = (char *)target.base + option->offset;
  if (option->kind != OPTION_FLAG && !is_choice(option->value, text))
    return misuse(reader, "--%s is one of %s, not '%s'", option->name, option->value, text);
  switch (option->kind) {
  case OPTION_FLAG: return *(bool *)place = true;
  case OPTION_INT: return store_int(reader, option, text, place);
  case OPTION_NUMBER: return store_number(reader, option, text, place);
  case OPTION_TEXT: return *(const char **)place = text, true;
  case OPTION_LIST:
  case OPTION_OPTIONAL:
    array_push(&reader->cli->context->arena, (StringList *)place, text);
    return true;
  }
  return false;
}

static bool read_option(OptionReader *reader, const char *word) {
  const char *equals = word[1] == '-' ? strchr(word, '=') : NULL;
  size_t length = equals ? (size_t)(equals - word) : strlen(word);
  Target target;
  if (!find_option(reader, word, length, &target)) return false;
  if (target.option->kind == OPTION_FLAG) {
    if (equals) return misuse(reader, "--%s takes no value", target.option->name);
    return store(reader, target, NULL);
  }
  if (equals) return store(reader, target, equals + 1);
  if (target.option->kind == OPTION_OPTIONAL) {
    reader->bare = target.option->name;
    return store(reader, target, "");
  }
  if (reader->next == reader->count)
    return misuse(reader, "--%s needs a value: %s", target.option->name, target.option->value);
  return store(reader, target, reader->arguments[reader->next++]);
}

static void read_all(OptionReader *reader) {
  bool only_inputs = false;
  while (reader->next < reader->count) {
    const char *word = reader->arguments[reader->next++];
    if (!only_inputs && strcmp(word, "--") == 0)
      only_inputs = true;
    else if (!only_inputs && word[0] == '-' && word[1] && word[1] != '>') // a layout: -> 0
      read_option(reader, word);
    else
      array_push(&reader->cli->context->arena, &reader->cli->inputs, word);
  }
}

bool options_parse(Cli *cli, const char *const *arguments, int count, void *options, bool *help) {
  OptionReader reader = {cli, options, help, arguments, count, .ok = true};
  read_all(&reader);
  const Command *command = cli->command;
  if (*help) return true;
  if (cli->inputs.count < command->least_inputs) misuse(&reader, "expected %s", command->arguments);
  if (cli->inputs.count > command->most_inputs)
    misuse(&reader, "unexpected argument '%s'%s%s%s", cli->inputs.items[command->most_inputs],
           reader.bare ? "; a value follows '=': --" : "", reader.bare ? reader.bare : "",
           reader.bare ? "=…" : "");
  if (!reader.ok)
    diag_note(cli->context, (SourcePos){0}, "'pleat %s -h' shows its options", command->name);
  return reader.ok;
}

const Option *command_option(const Command *command, int i) {
  Cli cli = {.command = command};
  OptionReader reader = {.cli = &cli};
  Target target;
  return target_at(&reader, i, &target) ? target.option : NULL;
}

enum { SPELLING_COLUMNS = 30 };

static void print_option(const Option *option, FILE *out) {
  char spelling[96], letter[8] = "    ";
  if (option->letter) snprintf(letter, sizeof letter, "-%c, ", option->letter);
  bool optional = option->kind == OPTION_OPTIONAL;
  snprintf(spelling, sizeof spelling, "%s--%s%s%s%s", letter, option->name,
           optional        ? "[="
           : option->value ? " "
                           : "",
           option->value ? option->value : "", optional ? "]" : "");
  if (strlen(spelling) > SPELLING_COLUMNS)
    fprintf(out, "  %s\n  %*s %s\n", spelling, SPELLING_COLUMNS, "", option->help);
  else
    fprintf(out, "  %-*s %s\n", SPELLING_COLUMNS, spelling, option->help);
}

void command_help(const Command *command, FILE *out) {
  const Option *option;
  fprintf(out, "usage: pleat %s%s%s [OPTIONS]\n\n%s\n\n", command->name,
          *command->arguments ? " " : "", command->arguments, command->summary);
  for (int i = 0; (option = command_option(command, i)); i++) print_option(option, out);
  fprintf(out, "\nexample:\n%s", command->example);
}

// ---- Options that do not fit --------------------------------------------------------------------

bool cli_refuse(Cli *cli, const GivenOption *options, int count, const char *why) {
  bool fits = true;
  for (int i = 0; i < count; i++)
    if (options[i].given)
      fits =
          diag_error_as(cli->context, DIAG_OPTION, (SourcePos){0}, "%s: %s", options[i].name, why);
  return fits;
}

bool cli_only_one(Cli *cli, const GivenOption *options, int count) {
  const char *first = NULL;
  for (int i = 0; i < count; i++) {
    if (!options[i].given) continue;
    if (first)
      return diag_error_as(cli->context, DIAG_OPTION, (SourcePos){0},
                           "%s and %s exclude each other: give one of them", first,
                           options[i].name);
    first = options[i].name;
  }
  return true;
}
