// SPDX-License-Identifier: Apache-2.0
// The frame of the `pleat` command. A subcommand is one file with its options, its help and its
// `run`, and one row in main.c:
//
//   typedef struct RunOptions { const char *fill; int64_t repeat; StringList inputs; } RunOptions;
//   static const Option options[] = {
//       {"fill", 0, OPTION_TEXT, "random|zero", "fill inputs", offsetof(RunOptions, fill)},
//   };
//   const Command command_run = {.name = "run", ..., .options = options, .run = run};
#ifndef PLEAT_CLI_H
#define PLEAT_CLI_H

#include "base/base.h"

enum { STATUS_DONE = 0, STATUS_BAD = 1, STATUS_MISUSE = 2, STATUS_FAULT = 3 };

typedef Array(const char *) StringList;

// What an option stores at `offset` of the subcommand's option struct, which starts zeroed.
typedef enum OptionKind {
  OPTION_FLAG,   // bool: true when given
  OPTION_INT,    // int64_t, not negative
  OPTION_NUMBER, // double, not negative
  OPTION_TEXT,   // const char *, as typed
  OPTION_LIST,   // StringList: may be given several times
} OptionKind;

typedef struct Option {
  const char *name; // without the dashes
  char letter;      // 0: none
  OptionKind kind;
  const char *value; // what stands in the help for its value; "a|b" lets only these through
  const char *help;
  size_t offset;
} Option;

// Options that many subcommands take; their values lie in Cli.
enum { TAKES_JSON = 1, TAKES_OUTPUT = 2, TAKES_THREADS = 4, TAKES_CPU = 8 };

typedef struct Cli Cli;
typedef struct Command {
  const char *name;
  const char *arguments; // as in the usage line: "MODEL"
  const char *summary;   // one line
  const char *example;   // one worked example: the line typed, and what it prints
  unsigned takes;
  const Option *options;
  int option_count;
  size_t options_size; // of the struct that `run` gets
  int least_inputs, most_inputs;
  int (*run)(Cli *cli, void *options); // a STATUS; errors in the context make it STATUS_BAD
} Command;

struct Cli {
  Context *context;
  const Command *command;
  StringList inputs; // the arguments that are not options
  bool json;
  const char *output; // NULL: not given; "-": standard output
  int64_t threads;    // 0: not given
  const char *cpu;    // NULL: what the machine has
  bool color;         // standard output is a terminal that shows colour
};

// Reads the arguments that follow the subcommand's name into `cli` and into `options`. False with
// one diagnostic for each mistake; *help is set when help was asked for.
bool options_parse(Cli *cli, const char *const *arguments, int count, void *options, bool *help);
void command_help(const Command *command, FILE *out);

void version_print(FILE *out); // the version, and which optional parts are in

#endif
