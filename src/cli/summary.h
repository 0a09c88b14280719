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
  PtrArray notes; // const char *: which accesses and loops these are, and why
} SlowPaths;

void slow_paths_add(SlowPaths *paths, const char *why, const char *kernel);
void slow_paths_add_reports(SlowPaths *paths, const char *kernel, const LowerReport *lower,
                            const TargetReport *target); // either may be NULL
void slow_paths_add_notes(SlowPaths *paths, const char *kernel, const LowerReport *lower);
void slow_paths_print(const SlowPaths *paths);

// Everything that `run` and `bench` print of a compiled model, which the cache keeps beside it.
typedef struct ModelSummary {
  const char *operators; // "53 Conv · 16 Add"
  const char *plan;      // the line after "plan"
  const char *runs_on;   // the level of the processor, or the device
  int kernel_count;
  int64_t original_weight_bytes, arena_bytes, live_bytes;
  SlowPaths slow;
} ModelSummary;
ModelSummary *model_summary_of(const Program *program);
// The summary as text, and back. NULL when the text is no summary.
const char *model_summary_pack(Arena *arena, const ModelSummary *summary);
ModelSummary *model_summary_unpack(Arena *arena, const char *text, size_t size);

// Prints the lines "NAME operators", "plan" and "code"; the last contains `how`, such as "in FILE".
void summary_print_model(Cli *cli, const char *path, const ModelSummary *summary, double seconds,
                         const char *how);
// A text such as "6.1 MiB". When packing wastes memory, the text also gives the ratio to the
// largest sum of bytes needed at one step.
const char *summary_arena(Arena *arena, const ModelSummary *summary);
// Prints all of that for a program that was written to cli->output.
void summary_print_program(Cli *cli, const Program *program, double seconds);

#endif
