// SPDX-License-Identifier: Apache-2.0
// What every compile says of a model: its operators, the plan, the code, and whatever runs on a
// slow path.
#ifndef PLEAT_CLI_SUMMARY_H
#define PLEAT_CLI_SUMMARY_H

#include "cli/model.h"

// One reason, and the kernels it is true of.
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

// The lines "NAME  operators", "plan", "code", the last with `where` in it: what was written.
void summary_print_model(Cli *cli, const char *path, const Program *program, double seconds,
                         const char *where);
// "6.1 MiB", and where packing costs anything, how many times the largest sum of what is alive at
// one step that is.
const char *summary_arena(Arena *arena, const Program *program);

#endif
