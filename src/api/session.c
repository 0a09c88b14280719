// SPDX-License-Identifier: Apache-2.0
// Implements sessions of the public header: the memory and threads with which a model runs, and the
// checks of the tensors of a run.
#include <stdatomic.h>
#include <stdlib.h>

#include "api/messages.h"
#include "api/model.h"
#include "api/request.h"

_Static_assert(sizeof(PleatTensor) == sizeof(Tensor) &&
                   offsetof(PleatTensor, shape) == offsetof(Tensor, shape) &&
                   offsetof(PleatTensor, type) == offsetof(Tensor, type) &&
                   offsetof(PleatTensor, byte_offset) == offsetof(Tensor, byte_offset),
               "the public tensor is the runtime's");

struct PleatSession {
  PleatModel *model;
  Context *context; // for diagnostics
  Executable *executable;
  ThreadPool *pool;
  Tensor **tensors; // of a run: inputs, then outputs
  atomic_flag busy;
};

// ---- Making -----------------------------------------------------------------------------------

static ThreadPool *make_pool(const RunThreads *threads) {
  int count = threads->count ? threads->count : machine_probe().cores;
  return threads->parallel_for
             ? thread_pool_foreign(threads->parallel_for, threads->pool_env, count)
             : thread_pool_new(count);
}

static int tensor_total(const PleatSession *session) {
  const CompiledProgram *p = session->model->program;
  return p->input_count + p->output_count;
}

void session_end(PleatSession *session) {
  if (!session) return;
  free(session->tensors);
  thread_pool_free(session->pool);
  executable_free(session->executable);
  context_free(session->context);
  free(session);
}

// The parts of a session; diagnostics go to the context of the call.
static bool make_parts(Context *context, PleatSession *session, const RunThreads *threads) {
  session->context = context_new();
  session->tensors = calloc((size_t)tensor_total(session) + 1, sizeof(Tensor *));
  if (!session->context || !session->tensors)
    return diag_error_as(context, DIAG_MEMORY, (SourcePos){0}, "not enough memory for a session");
  session->executable = executable_of(session->context, session->model->program);
  if (!session->executable)
    return diag_error_as(context, DIAG_MEMORY, (SourcePos){0},
                         "not enough memory for the intermediate tensors");
  session->pool = make_pool(threads);
  return session->pool || diag_error(context, (SourcePos){0}, "the threads could not be started");
}

PleatSession *session_of(Context *context, PleatModel *model, const RunThreads *threads) {
  PleatSession *session = calloc(1, sizeof *session);
  if (!session) {
    diag_error_as(context, DIAG_MEMORY, (SourcePos){0}, "not enough memory for a session");
    return NULL;
  }
  session->model = model;
  atomic_flag_clear(&session->busy);
  if (make_parts(context, session, threads)) return session;
  session_end(session);
  return NULL;
}

bool session_threads(Context *context, const PleatSessionOptions *given, RunThreads *threads) {
  enum { MOST_THREADS = 1024 };
  PleatSessionOptions options;
  if (!given) return true;
  if (!struct_read(context, "PleatSessionOptions", given, &options, sizeof options)) return false;
  if (options.threads < 0 || options.threads > MOST_THREADS)
    return field_error(context, "threads", "is %d, expected 0 to %d", options.threads,
                       MOST_THREADS);
  if (options.threads) threads->count = options.threads;
  if (options.parallel_for) threads->parallel_for = options.parallel_for;
  if (options.parallel_for) threads->pool_env = options.pool_env;
  return true;
}

typedef struct NewCall {
  Context *context;
  PleatModel *model;
  const PleatSessionOptions *given;
  PleatSession *session;
} NewCall;

static void make_session(void *arg) {
  NewCall *call = arg;
  RunThreads threads = call->model->threads;
  if (session_threads(call->context, call->given, &threads))
    call->session = session_of(call->context, call->model, &threads);
}

int pleat_session_new(PleatModel *model, const PleatSessionOptions *options, PleatSession **result,
                      PleatMessages **messages) {
  if (!result) return messages_refuse("session", "is NULL, expected where to store it", messages);
  *result = NULL;
  if (!model) return messages_refuse("model", "is NULL, expected a model", messages);
  NewCall call = {context_new(), model, options, NULL};
  if (!call.context) return messages_no_memory(messages);
  bool finished = context_protect(call.context, make_session, &call);
  int status = messages_take(call.context, finished && call.session, messages);
  context_free(call.context);
  if (!call.session) return status;
  atomic_fetch_add(&model->references, 1);
  *result = call.session;
  return status;
}

void pleat_session_free(PleatSession *session) {
  if (!session) return;
  PleatModel *model = session->model;
  session_end(session);
  model_release(model);
}

// ---- Running ----------------------------------------------------------------------------------

typedef struct RunCall {
  PleatSession *session;
  const PleatTensor *inputs;
  PleatTensor *outputs;
  int input_count, output_count;
  bool done;
} RunCall;

static bool check_tensors(PleatSession *session, const char *what, const PleatTensor *tensors,
                          int given, const ArgumentSpec *specs, int expected) {
  Context *context = session->context;
  if (given != expected)
    return diag_error(context, (SourcePos){0}, "the model has %d %s%s, and %d %s given", expected,
                      what, expected == 1 ? "" : "s", given, given == 1 ? "is" : "are");
  if (given && !tensors)
    return diag_error(context, (SourcePos){0}, "the array of %ss is NULL", what);
  for (int i = 0; i < given; i++)
    if (!tensor_readable(context, what, specs[i].name, &tensors[i])) return false;
  return true;
}

static void run(void *arg) {
  RunCall *call = arg;
  PleatSession *session = call->session;
  const CompiledProgram *p = session->model->program;
  diag_code_set(session->context, DIAG_ARGUMENT);
  if (!check_tensors(session, "input", call->inputs, call->input_count, p->inputs,
                     p->input_count) ||
      !check_tensors(session, "output", call->outputs, call->output_count, p->outputs,
                     p->output_count))
    return;
  for (int i = 0; i < p->input_count; i++) session->tensors[i] = (Tensor *)&call->inputs[i];
  for (int i = 0; i < p->output_count; i++)
    session->tensors[p->input_count + i] = (Tensor *)&call->outputs[i];
  call->done = executable_run(session->executable, session->pool, session->tensors,
                              session->tensors + p->input_count);
  if (thread_pool_take_failure(session->pool))
    call->done = diag_error(session->context, (SourcePos){0},
                            "parallel_for did not run each iteration of a loop once: the outputs "
                            "are not complete");
}

int pleat_session_run(PleatSession *session, const PleatTensor *inputs, int input_count,
                      PleatTensor *outputs, int output_count, PleatMessages **messages) {
  if (!session) return messages_refuse("session", "is NULL, expected a session", messages);
  if (atomic_flag_test_and_set(&session->busy))
    return messages_refuse("session",
                           "is running in another thread: make a session for each thread with "
                           "pleat_session_new",
                           messages);
  RunCall call = {session, inputs, outputs, input_count, output_count, false};
  bool finished = context_protect(session->context, run, &call);
  int status = messages_take(session->context, finished && call.done, messages);
  atomic_flag_clear(&session->busy);
  return status;
}

// ---- The session of a model itself --------------------------------------------------------------

typedef struct OwnCall {
  Context *context;
  PleatModel *model;
} OwnCall;

static void make_own(void *arg) {
  OwnCall *call = arg;
  call->model->own = session_of(call->context, call->model, &call->model->threads);
}

static int prepare_own(PleatModel *model, PleatMessages **messages) {
  OwnCall call = {context_new(), model};
  if (!call.context) return messages_no_memory(messages);
  bool finished = context_protect(call.context, make_own, &call);
  int status = messages_take(call.context, finished && model->own, messages);
  context_free(call.context);
  return status;
}

int pleat_model_run(PleatModel *model, const PleatTensor *inputs, int input_count,
                    PleatTensor *outputs, int output_count, PleatMessages **messages) {
  if (!model) return messages_refuse("model", "is NULL, expected a compiled model", messages);
  pthread_mutex_lock(&model->lock);
  int status = model->own ? PLEAT_OK : prepare_own(model, messages);
  if (status == PLEAT_OK)
    status = pleat_session_run(model->own, inputs, input_count, outputs, output_count, messages);
  pthread_mutex_unlock(&model->lock);
  return status;
}
