// SPDX-License-Identifier: Apache-2.0
// The list of subcommands, for the command itself and for its manual pages and completions.
#include "cli/cli.h"

extern const Command command_bench, command_cache, command_check, command_compile, command_inspect,
    command_fmt, command_layout, command_opt, command_plan, command_run, command_verify;

const Command *const command_table[COMMAND_COUNT] = {
    &command_check,  &command_inspect, &command_run,   &command_compile,
    &command_plan,   &command_opt,     &command_fmt,   &command_verify,
    &command_layout, &command_bench,   &command_cache,
};

const Command *command_find(const char *name) {
  for (int i = 0; i < COMMAND_COUNT; i++)
    if (strcmp(command_table[i]->name, name) == 0) return command_table[i];
  return NULL;
}
