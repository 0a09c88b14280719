// SPDX-License-Identifier: Apache-2.0
// Saved models for the subcommands: `compile` writes them, `run` and `bench` run them, `inspect`
// shows what they hold.
#ifndef PLEAT_CLI_SAVED_H
#define PLEAT_CLI_SAVED_H

#include "cli/model.h"

// Whether `path` names a saved model: by its ending, .pleat, or by the first bytes of the file.
bool saved_named(const char *path);
// Compiles `graph` and writes it to cli->output. False with diagnostics.
bool saved_compile(Cli *cli, const GraphFunc *graph, const ModelOptions *options);
// Prints the lines that stand for those of summary_print_model; `seconds` is the time until the
// code was ready.
void saved_show(Cli *cli, const char *path, const CompiledProgram *program, double seconds);
// `inspect` of a saved model. Returns a status.
int saved_inspect(Cli *cli, const char *path, const ModelOptions *options);

#endif
