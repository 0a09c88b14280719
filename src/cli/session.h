// SPDX-License-Identifier: Apache-2.0
// A model or a kernel that is compiled and run in this process, with its measured times, for `run`
// and `bench`.
#ifndef PLEAT_CLI_SESSION_H
#define PLEAT_CLI_SESSION_H

#include "cli/model.h"
#include "cli/summary.h"
#include "driver/kept_model.h"
#include "report/profile.h"

typedef struct Session {
  Cli *cli;
  const ModelOptions *model;
  int64_t start_ns;  // when the command began to read the file
  bool keep_kernels; // keep lowered kernels after their code is made
  HostMachine machine;
  // For a model:
  const GraphFunc *graph;
  const PlanConstraints *constraints;
  Program *program; // NULL: the model was saved, or the cache had it
  CompiledProgram *compiled;
  Executable *executable;
  ModelSummary *summary; // NULL: the model was saved
  OnnxOptions import;    // of the model
  KeptModel kept;
  // For a kernel (cli/kernel.h):
  struct Kernel *kernel;
  KernelCode *kernel_code;
  InterpTensor *kernel_args;
  // For both:
  ThreadPool *pool;
  Tensor **inputs, **outputs; // those of the model; a kernel's inputs are all its parameters
  const char **output_names;
  int input_count, output_count;
  TargetReport target;
  LowerReport lower_report;           // of the kernel
  double code_seconds, first_seconds; // until the code is ready; until the first result
  Spread latency;                     // seconds per run
  int runs;
  Measurement measurement; // with the times of steps, if these are wanted
} Session;

// The contents of inputs: those of `--input`; for other inputs random numbers or zeros, according
// to `fill`. When `fill` is NULL, the user must give all inputs.
typedef struct InputContents {
  StringList given;
  const char *fill;
  int64_t seed;
} InputContents;

const char *session_runs_on(const Session *session); // the processor's level, or the device
// A session in the context's arena; its resources are released with the context.
Session *session_new(Cli *cli, const ModelOptions *model);
// Compiles `graph` and makes its tensors. False with diagnostics.
bool session_begin(Session *session, const GraphFunc *graph, const InputContents *contents);
// Loads a saved model and makes its tensors. False with diagnostics.
bool session_begin_saved(Session *session, const char *path, const InputContents *contents);
// kept.c. Takes the compiled model of the file `path` from the cache, if it is there. Otherwise
// returns false, and session->import and session->kept are ready for compiling and keeping it; with
// diagnostics when an array cannot be read.
bool session_find(Session *session, const char *path, const InputContents *contents);
void session_keep(Session *session); // keeps what was compiled in the cache
// saved.c. Makes the tensors of a compiled program. False with diagnostics.
bool session_compiled_tensors(Session *session, const InputContents *contents);
bool session_ready(Session *session); // makes the threads, once the code is ready
// Runs once. When `repeat` is more than 1, runs `repeat` times again and takes the latency of
// those.
bool session_measure(Session *session, int64_t repeat, bool profile);
// The kernels of a model that was measured with its profile, or the one kernel, with their times.
Profile *session_profile(const Session *session);

int session_threads(const Session *session);
double session_operations(const Session *session); // of one run
int64_t session_bytes(const Session *session);     // of inputs, outputs and weights
// GFLOP/s of the multiply-adds of all threads together, measured in about 50 ms.
double session_peak(const Session *session);

#endif
