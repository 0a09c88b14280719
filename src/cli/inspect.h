// SPDX-License-Identifier: Apache-2.0
// The parts of `pleat inspect` for models whose sizes are free, and for tensor programs.
#ifndef PLEAT_CLI_INSPECT_H
#define PLEAT_CLI_INSPECT_H

#include "cli/model.h"

// Prints the inputs and outputs of a model whose sizes were left open, and the names by which the
// sizes can be given. Returns a STATUS.
struct OnnxImport;
int inspect_open(Cli *cli, const struct OnnxImport *import);
// Prints the buffers that share memory, of the tensor programs in a script. Returns a STATUS.
int inspect_aliases(Cli *cli, const char *path, const ModelOptions *options);

#endif
