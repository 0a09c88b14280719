// SPDX-License-Identifier: Apache-2.0
// The part of `pleat inspect` for models whose sizes are free.
#ifndef PLEAT_CLI_INSPECT_H
#define PLEAT_CLI_INSPECT_H

#include "cli/cli.h"

// Prints the inputs and outputs of a model whose sizes were left open, and the names by which the
// sizes can be given. Returns a STATUS.
struct OnnxImport;
int inspect_open(Cli *cli, const struct OnnxImport *import);

#endif
