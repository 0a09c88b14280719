// SPDX-License-Identifier: Apache-2.0
// The interface between the files of pleat-manual, a program of the build that writes the manual
// pages and the completions of the command from the tables of its subcommands and options.
#ifndef PLEAT_CLI_MANUAL_H
#define PLEAT_CLI_MANUAL_H

#include "cli/cli.h"

// The values that an option or an argument can have, as far as a shell can complete them.
typedef enum ManualValue {
  VALUE_NONE,       // the option is a flag
  VALUE_FREE,       // a text that cannot be completed
  VALUE_WORDS,      // one of some words
  VALUE_FILE,       // the name of a file
  VALUE_FOLDER,     // the name of a folder
  VALUE_NAMED_FILE, // NAME=FILE
} ManualValue;
ManualValue manual_value_kind(const Option *option);
// The words of a VALUE_WORDS, separated by spaces. `text` has room for `size` bytes.
void manual_value_words(const Option *option, char *text, size_t size);
bool manual_takes_files(const Command *command); // Are the subcommand's arguments files?

// `date` is that of the page, as in 2026-01-31. `other_help`, unless it is NULL, is the help of an
// installed program with the name of the page.
void manual_page(const Command *command, const char *date, const char *other_help, FILE *out);
void manual_main_page(const char *date, FILE *out); // pleat(1)
void manual_bash(FILE *out);
void manual_zsh(FILE *out);

#endif
