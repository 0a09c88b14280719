// SPDX-License-Identifier: Apache-2.0
// The summary that every compiling subcommand prints of a model: its operators, the plan, the code,
// and the kernels on slow paths.
#ifndef PLEAT_CLI_SUMMARY_H
#define PLEAT_CLI_SUMMARY_H

#include "cli/model.h"

// A reason why kernels are slow, and the kernels to which it applies.
typedef struct SlowPath {
  const char *why;
  PtrArray kernels; // const char *
} SlowPath;
typedef struct SlowPaths {
  Arena *arena;
  Array(SlowPath) items;
} SlowPaths;

void slow_paths_add(SlowPaths *paths, const char *why, const char *kernel);
void slow_paths_add_reports(SlowPaths *paths, const char *kernel, const LowerReport *lower,
                            const TargetReport *target); // either may be NULL
SlowPaths slow_paths_of(const Program *program);
void slow_paths_print(const SlowPaths *paths);

// Prints the lines "NAME operators", "plan" and "code"; the last contains `where`, which names the
// written file.
void summary_print_model(Cli *cli, const char *path, const Program *program, double seconds,
                         const char *where);
// A text such as "6.1 MiB". When packing wastes memory, the text also gives the ratio to the
// largest sum of bytes needed at one step.
const char *summary_arena(Arena *arena, const Program *program);

#endif
