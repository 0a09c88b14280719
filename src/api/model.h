// SPDX-License-Identifier: Apache-2.0
// Declares models and sessions as the files of the library see them.
#ifndef PLEAT_API_MODEL_H
#define PLEAT_API_MODEL_H

#include <pthread.h>

#include "pleat/pleat.h"
#include "runtime/compiled.h"

// The threads that a session runs on.
typedef struct RunThreads {
  int count;                     // 0: one for each core
  PleatParallelFor parallel_for; // NULL: threads of the session's own
  void *pool_env;
} RunThreads;

// Only `own` changes once a model is made, under the lock.
struct PleatModel {
  _Atomic int references; // the caller's, and one for each session
  CompiledProgram *program;
  PleatArgument *inputs, *outputs; // in the program's context
  RunThreads threads;              // for sessions that leave them open
  pthread_mutex_t lock;
  PleatSession *own; // for pleat_model_run; NULL: not made yet
};

// A model of the program, to which it adds a reference. NULL when memory is exhausted.
PleatModel *model_of(CompiledProgram *program, const RunThreads *threads);
void model_release(PleatModel *model);
// Replaces in *threads what the options ask for. `given` may be NULL. False with a diagnostic.
bool session_threads(Context *context, const PleatSessionOptions *given, RunThreads *threads);
// A session of the model, without a reference to it. NULL with diagnostics of `context`.
PleatSession *session_of(Context *context, PleatModel *model, const RunThreads *threads);
void session_end(PleatSession *session); // NULL is allowed

#endif
