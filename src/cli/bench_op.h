// SPDX-License-Identifier: Apache-2.0
// Makes a graph of one operator from a line such as `conv2d 1x64x56x56 64x64x3x3 stride=1 pad=1`,
// for `pleat bench --op`.
#ifndef PLEAT_CLI_BENCH_OP_H
#define PLEAT_CLI_BENCH_OP_H

#include "cli/cli.h"
#include "graph/graph.h"

// The graph, or NULL with a diagnostic.
GraphFunc *bench_op_parse(Cli *cli, const char *text);

#endif
