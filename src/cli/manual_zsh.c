// SPDX-License-Identifier: Apache-2.0
// Writes the completion for zsh: the specifications of `_arguments`, one for each option.
#include "cli/manual.h"

enum { MOST_WORDS = 4096 };

// A text within single quotes in which _arguments reads brackets and colons as its own signs.
static void put_quoted(FILE *out, const char *text) {
  for (; *text; text++) {
    if (*text == '\'') {
      fputs("'\\''", out);
      continue;
    }
    if (strchr("[]:\\", *text)) fputc('\\', out);
    fputc(*text, out);
  }
}

static void put_value(FILE *out, const Option *option) {
  static const char *const actions[] = {
      [VALUE_FREE] = " ",
      [VALUE_FILE] = "_files",
      [VALUE_FOLDER] = "_files -/",
      [VALUE_NAMED_FILE] = "_pleat_named_file",
  };
  char words[MOST_WORDS];
  ManualValue kind = manual_value_kind(option);
  if (kind == VALUE_NONE) return;
  fputs(option->kind == OPTION_OPTIONAL ? "::" : ":", out);
  put_quoted(out, kind == VALUE_WORDS ? option->name : option->value);
  fputc(':', out);
  if (kind == VALUE_WORDS) {
    manual_value_words(option, words, sizeof words);
    fprintf(out, "(%s)", words);
  } else {
    fputs(actions[kind], out);
  }
}

// '(-o --output)'{-o+,--output=}'[help]:FILE:_files'; a value follows --output or --output=.
static void put_option(FILE *out, const Option *option) {
  bool repeated = option->kind == OPTION_LIST || option->kind == OPTION_OPTIONAL;
  const char *joint = !option->value ? "" : option->kind == OPTION_OPTIONAL ? "=-" : "=";
  fputs("        ", out);
  if (option->letter && repeated)
    fprintf(out, "'*'{-%c%s,--%s%s}'", option->letter, *joint ? "+" : "", option->name, joint);
  else if (option->letter)
    fprintf(out, "'(-%c --%s)'{-%c%s,--%s%s}'", option->letter, option->name, option->letter,
            *joint ? "+" : "", option->name, joint);
  else
    fprintf(out, "'%s--%s%s", repeated ? "*" : "", option->name, joint);
  fputc('[', out);
  put_quoted(out, option->help);
  fputc(']', out);
  put_value(out, option);
  fputs("' \\\n", out);
}

static void put_command(FILE *out, const Command *command) {
  const Option *option;
  fprintf(out, "    %s)\n      _arguments \\\n", command->name);
  for (int i = 0; (option = command_option(command, i)); i++) put_option(out, option);
  fputs("        '*:", out);
  put_quoted(out, *command->arguments ? command->arguments : "no argument");
  fprintf(out, ":%s' ;;\n", manual_takes_files(command) ? "_files" : " ");
}

void manual_zsh(FILE *out) {
  fprintf(out,
          "#compdef pleat\n"
          "# Completion of pleat %s for zsh, made from its tables of options.\n\n"
          "_pleat_named_file() { if compset -P '*='; then _files; else "
          "_message 'NAME=FILE'; fi }\n\n"
          "_pleat_subcommands() {\n  local -a subcommands=(\n",
          PLEAT_VERSION);
  for (int i = 0; i < COMMAND_COUNT; i++) {
    fprintf(out, "    '%s:", command_table[i]->name);
    put_quoted(out, command_table[i]->summary);
    fputs("'\n", out);
  }
  fputs("  )\n  _describe subcommand subcommands\n}\n\n"
        "_pleat() {\n"
        "  local curcontext=$curcontext state line\n"
        "  _arguments -C '(- *)'{-h,--help}'[the subcommands]' \\\n"
        "    '(- *)--version[the version and the optional parts]' \\\n"
        "    '1: :_pleat_subcommands' '*::argument:->rest'\n"
        "  [[ $state == rest ]] || return\n"
        "  case $words[1] in\n",
        out);
  for (int i = 0; i < COMMAND_COUNT; i++) put_command(out, command_table[i]);
  fputs("  esac\n}\n\n_pleat \"$@\"\n", out);
}
