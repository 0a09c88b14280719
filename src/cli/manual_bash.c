// SPDX-License-Identifier: Apache-2.0
// Writes the completion for bash: for each subcommand a function that completes the value of an
// option, and a list of its options; one function, which is the same for all, that finds the option
// to which the word at the cursor belongs.
#include "cli/manual.h"

enum { MOST_WORDS = 4096 };

static void put_value(FILE *out, const Option *option) {
  static const char *const actions[] = {
      [VALUE_FREE] = ":",
      [VALUE_FILE] = "_pleat_files",
      [VALUE_FOLDER] = "_pleat_folders",
      [VALUE_NAMED_FILE] = "_pleat_named_file",
  };
  char words[MOST_WORDS];
  ManualValue kind = manual_value_kind(option);
  if (kind == VALUE_NONE) return;
  if (option->letter) fprintf(out, "    -%c|", option->letter);
  fprintf(out, "%s--%s) ", option->letter ? "" : "    ", option->name);
  if (option->kind == OPTION_OPTIONAL) {
    fputs("[[ $equals ]] ;;\n", out); // the value can only follow an =
  } else if (kind == VALUE_WORDS) {
    manual_value_words(option, words, sizeof words);
    fprintf(out, "_pleat_words '%s' ;;\n", words);
  } else {
    fprintf(out, "%s ;;\n", actions[kind]);
  }
}

static void put_command(FILE *out, const Command *command) {
  const Option *option;
  fprintf(out, "\n_pleat_value_%s() {\n  case $1 in\n", command->name);
  for (int i = 0; (option = command_option(command, i)); i++) put_value(out, option);
  fprintf(out, "    *) return 1 ;;\n  esac\n}\n_pleat_options_%s='", command->name);
  for (int i = 0; (option = command_option(command, i)); i++)
    fprintf(out, "%s--%s", i ? " " : "", option->name);
  fprintf(out, "'\n_pleat_argument_%s=%s\n", command->name,
          manual_takes_files(command) ? "_pleat_files" : ":");
}

static const char helpers[] =
    "_pleat_words() { COMPREPLY=($(compgen -W \"$1\" -- \"$word\")); }\n"
    "_pleat_files() { compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$word\"); }\n"
    "_pleat_folders() { compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- \"$word\"); "
    "}\n"
    "# NAME=FILE: the name is free, and bash has split the word at the =.\n"
    "_pleat_named_file() { if [[ $named ]]; then _pleat_files; fi; }\n";

// Words are split at =, so `--input x=fo` is four words, and `--cpu=av` three.
static const char entry[] =
    "\n_pleat() {\n"
    "  local IFS=$' \\t\\n' word=${COMP_WORDS[COMP_CWORD]} at=$((COMP_CWORD - 1)) named= equals=\n"
    "  local command=${COMP_WORDS[1]}\n"
    "  COMPREPLY=()\n"
    "  if ((COMP_CWORD == 1)); then\n"
    "    _pleat_words \"$_pleat_subcommands --help --version\"\n"
    "    return\n"
    "  fi\n"
    "  declare -F \"_pleat_value_$command\" >/dev/null || return\n"
    "  if [[ $word == = ]]; then word=; at=$((at + 1)); fi\n"
    "  if [[ ${COMP_WORDS[at]} == = ]]; then\n"
    "    at=$((at - 1)) equals=1\n"
    "    if [[ ${COMP_WORDS[at]} != -* ]]; then\n"
    "      at=$((at - 1)) named=1\n"
    "      if [[ ${COMP_WORDS[at]} == = ]]; then at=$((at - 1)); fi\n"
    "    fi\n"
    "  fi\n"
    "  local options=_pleat_options_$command argument=_pleat_argument_$command\n"
    "  if \"_pleat_value_$command\" \"${COMP_WORDS[at]}\"; then return; fi\n"
    "  if [[ $word == -* ]]; then _pleat_words \"${!options}\"; else ${!argument}; fi\n"
    "}\n"
    "complete -F _pleat pleat\n";

void manual_bash(FILE *out) {
  fprintf(out, "# Completion of pleat %s for bash, made from its tables of options.\n\n%s",
          PLEAT_VERSION, helpers);
  for (int i = 0; i < COMMAND_COUNT; i++) put_command(out, command_table[i]);
  fputs("\n_pleat_subcommands='", out);
  for (int i = 0; i < COMMAND_COUNT; i++)
    fprintf(out, "%s%s", i ? " " : "", command_table[i]->name);
  fprintf(out, "'\n%s", entry);
}
