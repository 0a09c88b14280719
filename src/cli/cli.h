// SPDX-License-Identifier: Apache-2.0
// The framework of the `pleat` command. A subcommand is one file with its options, its help and its
// `run` function, and one row in main.c:
//
//   typedef struct RunOptions { const char *fill; int64_t repeat; StringList inputs; } RunOptions;
//   static const Option options[] = {
//       {"fill", 0, OPTION_TEXT, "random|zero", "fill inputs", offsetof(RunOptions, fill)},
//   };
//   const Command command_run = {.name = "run", ..., .options = options, .run = run};
#ifndef PLEAT_CLI_H
#define PLEAT_CLI_H

#include "cache/cache.h"
#include "report/table.h"
#include "runtime/runtime.h"

enum { STATUS_DONE = 0, STATUS_BAD = 1, STATUS_MISUSE = 2, STATUS_FAULT = 3 };

typedef Array(const char *) StringList;

// The kind of value that an option stores at `offset` of the subcommand's option struct. The struct
// starts as `defaults`.
typedef enum OptionKind {
  OPTION_FLAG,     // bool: true when given
  OPTION_INT,      // int64_t, not negative
  OPTION_NUMBER,   // double, not negative
  OPTION_TEXT,     // const char *, as typed
  OPTION_LIST,     // StringList: the option may appear several times
  OPTION_OPTIONAL, // StringList, likewise; the value may be absent, and follows an = sign
} OptionKind;

typedef struct Option {
  const char *name; // without the dashes
  char letter;      // 0: no letter
  OptionKind kind;
  const char *value; // the value's name in the help; "a|b" also restricts the value to a or b
  const char *help;
  size_t offset;
} Option;

// Options that many subcommands accept; Cli holds their values.
enum {
  TAKES_JSON = 1,
  TAKES_OUTPUT = 2,
  TAKES_THREADS = 4,
  TAKES_CPU = 8,
  TAKES_CACHE = 16,
};

typedef struct Cli Cli;
typedef struct Command {
  const char *name;
  const char *arguments; // for the usage line: "MODEL"
  const char *summary;   // one line
  const char *example;   // one worked example: the command line and its output
  unsigned takes;
  bool runs_nothing; // the subcommand only compiles, so --cpu may exceed this machine
  const Option *options;
  int option_count;
  size_t options_size;  // of the struct that `run` receives
  const void *defaults; // initial contents of the struct; NULL: zeros
  int least_inputs, most_inputs;
  int (*run)(Cli *cli, void *options); // returns a STATUS; errors in the context make it STATUS_BAD
} Command;

// The subcommands in the order of the help.
enum { COMMAND_COUNT = 11 };
extern const Command *const command_table[COMMAND_COUNT];
const Command *command_find(const char *name); // NULL: there is none

struct Cli {
  Context *context;
  const Command *command;
  StringList inputs; // the arguments other than options
  bool json;
  const char *output; // NULL: not set; "-": standard output
  int64_t threads;    // 0: not set
  const char *cpu;    // NULL: this machine's level
  bool no_cache;
  Cache *cache; // of cli_cache; NULL: not opened
  bool color;   // standard output is a terminal that supports colour
  struct json_t *result; // the object of --json; NULL: none
  Map *arrays;  // arrays of --input that a model's import read: text to Tensor; NULL: none
};

// Reads the arguments that follow the subcommand's name into `cli` and into `options`. False with
// one diagnostic for each mistake; *help is set when the user asks for help.
bool options_parse(Cli *cli, const char *const *arguments, int count, void *options, bool *help);

// An option, and whether the user gives it.
typedef struct GivenOption {
  const char *name; // with its dashes
  bool given;
} GivenOption;
// Refuses those options of a list that are given: "--dim: " and then `why`. False with a diagnostic
// for each, true when none is given.
bool cli_refuse(Cli *cli, const GivenOption *options, int count, const char *why);
// Refuses a second one of the options that are given, since they exclude one another.
bool cli_only_one(Cli *cli, const GivenOption *options, int count);
void command_help(const Command *command, FILE *out);
// Option i of the subcommand in the order of its help, those that it shares with others and --help
// included. NULL past the last.
const Option *command_option(const Command *command, int i);

// The machine to compile for and to run on, limited by `--cpu` and `--threads`. False with a
// diagnostic when this machine does not have what the options demand.
bool cli_machine(Cli *cli, HostMachine *machine);
// The user's cache, which is opened at the first call; NULL when it is off or cannot be used.
Cache *cli_cache(Cli *cli);

void version_print(FILE *out); // the version and the optional parts of this build

// ---- Presentation of results -------------------------------------------------------------------

typedef enum Colour {
  COLOUR_NONE, // the terminal's own colour
  COLOUR_BOLD,
  COLOUR_DIM,
  COLOUR_RED,
  COLOUR_GREEN,
  COLOUR_YELLOW,
  COLOUR_CYAN,
} Colour;
const char *cli_paint(const Cli *cli, Colour colour); // "" when colours are off

// A line on standard error that shows how far long work has progressed, if standard error is a
// terminal.
typedef struct Progress {
  const char *what;
  int64_t total, next_ns;
  bool shown;
} Progress;
Progress progress_begin(const char *what, int64_t total);
void progress_step(Progress *progress, int64_t done);
void progress_end(Progress *progress); // removes the line

// Takes the object of --json, which is printed when the subcommand has ended, and returns
// STATUS_DONE. The object is made with Jansson: json_pack("{s:b}", ...).
int json_print(Cli *cli, struct json_t *object);
// Prints this object, to which the list "messages" is added when there are diagnostics. Without an
// object, the list alone is printed. False when memory is exhausted.
bool json_end(Cli *cli);

#endif
