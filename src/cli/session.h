// SPDX-License-Identifier: Apache-2.0
// A model, or a kernel, that is compiled and run in this process, and what its runs took: `run` and
// `bench`.
#ifndef PLEAT_CLI_SESSION_H
#define PLEAT_CLI_SESSION_H

#include "cli/model.h"

typedef struct Session {
  Cli *cli;
  const ModelOptions *model;
  int64_t start_ns;  // when work on the file began
  bool keep_kernels; // as lowered, after code was made of them
  HostMachine machine;
  // A model:
  const GraphFunc *graph;
  const PlanConstraints *constraints;
  Program *program;
  Executable *executable;
  // Or a kernel (cli/kernel.h):
  struct Kernel *kernel;
  KernelCode *kernel_code;
  InterpTensor *kernel_args;
  // Either:
  ThreadPool *pool;
  Tensor **inputs, **outputs; // as the parameters and outputs; a kernel's inputs are all parameters
  const char **output_names;
  int input_count, output_count;
  TargetReport target;
  LowerReport lower_report;           // of a kernel
  double code_seconds, first_seconds; // both from the start; the second to the first result
  Spread latency;                     // seconds of a run
  int runs;
  int64_t *step_ns;        // of a run that took the median time, by step; NULL without a profile
  double profiled_seconds; // that run
} Session;

// The contents of inputs: those of `--input`, else random numbers or zeros as `fill` says; NULL:
// they must be given.
typedef struct InputContents {
  StringList given;
  const char *fill;
  int64_t seed;
} InputContents;

// In the context's arena; what it holds is given back with the context.
Session *session_new(Cli *cli, const ModelOptions *model);
// Compiles `graph` and makes its tensors. False with diagnostics.
bool session_begin(Session *session, const GraphFunc *graph, const InputContents *contents);
bool session_ready(Session *session); // code is made: threads are
// Runs once, and if `repeat` is more than 1 so often again, which then are the latency.
bool session_measure(Session *session, int64_t repeat, bool profile);
// profile.c: the kernels of a measured model, or the one, with their times, as a table; into an
// object as a list "kernels" (empty without a profile), "run_ms" and "around_ms".
void profile_show(const Session *session);
void profile_add_json(const Session *session, bool profile, struct json_t *object);

int session_threads(const Session *session);
double session_operations(const Session *session); // of a run
int64_t session_bytes(const Session *session);     // of inputs, outputs and weights
// GFLOP/s of all the threads' multiply-adds together; measured, in about 50 ms.
double session_peak(const Session *session);
// Arithmetic on floating-point numbers in one stage; divisions and functions count as 1.
double stage_operations(const Stage *stage);
double part_operations(const StagePart *part);

#endif
