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

typedef struct OpenModel OpenModel; // open.c

// Only `own` and `open` change once a model is made, under the lock.
struct PleatModel {
  _Atomic int references; // the caller's, and one for each session
  CompiledProgram *program;
  PleatArgument *inputs, *outputs; // in the program's context
  RunThreads threads;              // for sessions that leave them open
  pthread_mutex_t lock;
  PleatSession *own; // for pleat_model_run; NULL: not made yet
  OpenModel *open;   // NULL: all sizes are known. Otherwise the program has only arguments
};

// A model of the program, to which it adds a reference. NULL when memory is exhausted.
PleatModel *model_of(CompiledProgram *program, const RunThreads *threads);
void model_release(PleatModel *model);
// Reads options, and replaces in *threads what they ask for. `given` may be NULL. False with a
// diagnostic.
bool session_options(Context *context, const PleatSessionOptions *given,
                     PleatSessionOptions *options, RunThreads *threads);
// A session of the model, without a reference to it. NULL with diagnostics of `context`.
PleatSession *session_of(Context *context, PleatModel *model, const RunThreads *threads);
void session_end(PleatSession *session); // NULL is allowed

// A session while a call uses it: the program, its memory and its threads.
typedef struct SessionUse {
  Executable *executable; // its diagnostics go to the context of the call
  const CompiledProgram *program;
  ThreadPool *pool;
} SessionUse;
const PleatModel *session_model(const PleatSession *session);
// Prepares the session for the inputs, and calls body(env, use) inside context_protect of
// `context`. Returns a status, PLEAT_OK if `body` returns true. A session that runs in another
// thread is refused.
int session_use(PleatSession *session, const PleatTensor *inputs, int input_count, Context *context,
                bool (*body)(void *env, const SessionUse *use), void *env,
                PleatMessages **messages);
// Waits for runs of the model and makes its own session, if it has none yet. Returns a status;
// whatever it is, the model is to be unlocked.
int model_lock(PleatModel *model, PleatMessages **messages);
void model_unlock(PleatModel *model);

// ---- Free sizes: open.c -------------------------------------------------------------------------

typedef struct OnnxImport OnnxImport;
// A model of the request whose sizes stayed open. NULL with diagnostics.
PleatModel *open_model_new(Context *context, const PleatRequest *request, const OnnxImport *import,
                           const RunThreads *threads);
void open_model_free(OpenModel *open); // NULL is allowed
// The sizes that an input of the model holds; NULL: it is no shape and no size, or has strides.
const int64_t *model_sizes_in(const PleatModel *open, int input, const PleatTensor *given);
// Do the inputs, as many as the model has, have the shapes of the variant's, and hold the sizes for
// which it was compiled?
bool model_is_for(const PleatModel *open, const PleatModel *variant, const PleatTensor *inputs);
int open_model_most(const OpenModel *open); // variants to keep
// The variant for the shapes of the inputs, which is compiled if it is not kept. Returns a status;
// *variant is then a reference of the caller's. The inputs fit the arguments of the model.
int open_model_variant(PleatModel *model, const PleatTensor *inputs, PleatModel **variant,
                       PleatMessages **messages);
// model.c. Compiles a model for the sizes that the shapes of these inputs give.
int model_compile_for(const PleatRequest *request, const PleatModel *open,
                      const PleatTensor *inputs, PleatModel **variant, PleatMessages **messages);

#endif
