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

// Each model, and each variant of a model with free sizes, has such a part of a session.
typedef struct SessionPart {
  PleatModel *model; // of a variant this is a reference
  Executable *executable;
  int64_t last_use;
} SessionPart;

struct PleatSession {
  PleatModel *model;
  Context *context; // for diagnostics
  SessionPart *parts;
  int part_count, most_parts;
  int64_t clock;
  SessionPart *current; // for which the session is prepared; NULL: for none
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

static void end_part(const PleatSession *session, SessionPart *part) {
  executable_free(part->executable);
  if (part->model != session->model) model_release(part->model);
}

// Adds a part for a model, whose reference it takes over.
static bool add_part(PleatSession *session, PleatModel *model) {
  Executable *executable = executable_of(session->context, model->program);
  if (!executable) return false;
  session->current = &session->parts[session->part_count++];
  *session->current = (SessionPart){model, executable, ++session->clock};
  return true;
}

void session_end(PleatSession *session) {
  if (!session) return;
  for (int i = 0; i < session->part_count; i++) end_part(session, &session->parts[i]);
  free(session->parts);
  free(session->tensors);
  thread_pool_free(session->pool);
  context_free(session->context);
  free(session);
}

// The parts of a session; diagnostics go to the context of the call.
static bool make_parts(Context *context, PleatSession *session, const RunThreads *threads) {
  session->context = context_new();
  session->tensors = calloc((size_t)tensor_total(session) + 1, sizeof(Tensor *));
  session->most_parts = session->model->open ? open_model_most(session->model->open) : 1;
  session->parts = calloc((size_t)session->most_parts, sizeof *session->parts);
  if (!session->context || !session->tensors || !session->parts)
    return diag_error_as(context, DIAG_MEMORY, (SourcePos){0}, "not enough memory for a session");
  if (!session->model->open && !add_part(session, session->model))
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

bool session_options(Context *context, const PleatSessionOptions *given,
                     PleatSessionOptions *options, RunThreads *threads) {
  *options = (PleatSessionOptions){0};
  if (!given) return true;
  if (!struct_read(context, "PleatSessionOptions", given, options, sizeof *options)) return false;
  if (!threads_read(context, options->threads, &threads->count)) return false;
  if (options->parallel_for) threads->parallel_for = options->parallel_for;
  if (options->parallel_for) threads->pool_env = options->pool_env;
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
  PleatSessionOptions options;
  if (session_options(call->context, call->given, &options, &threads))
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

// ---- Preparing ----------------------------------------------------------------------------------

typedef struct PrepareCall {
  PleatSession *session;
  const PleatTensor *inputs;
  int input_count;
  PleatModel *variant; // for add_variant
  bool done;
} PrepareCall;

static bool check_input(Context *context, const ArgumentSpec *spec, const PleatTensor *input) {
  char message[256];
  return argument_check_description(spec, (const Tensor *)input, message, sizeof message) ||
         diag_error(context, (SourcePos){0}, "input '%s': %s", spec->name, message);
}

static void check_inputs(void *arg) {
  PrepareCall *call = arg;
  PleatSession *session = call->session;
  const CompiledProgram *p = session->model->program;
  diag_code_set(session->context, DIAG_ARGUMENT);
  call->done =
      check_tensors(session, "input", call->inputs, call->input_count, p->inputs, p->input_count);
  for (int i = 0; call->done && i < p->input_count; i++)
    call->done = check_input(session->context, &p->inputs[i], &call->inputs[i]);
}

static SessionPart *find_part(PleatSession *session, const PleatTensor *inputs) {
  for (int i = 0; i < session->part_count; i++)
    if (model_is_for(session->model, session->parts[i].model, inputs)) return &session->parts[i];
  return NULL;
}

// Makes room for a part by ending the one that was used least recently.
static void make_room(PleatSession *session) {
  SessionPart *oldest = session->parts;
  if (session->part_count < session->most_parts) return;
  for (int i = 1; i < session->part_count; i++)
    if (session->parts[i].last_use < oldest->last_use) oldest = &session->parts[i];
  end_part(session, oldest);
  *oldest = session->parts[--session->part_count];
}

static void add_variant(void *arg) {
  PrepareCall *call = arg;
  call->done = add_part(call->session, call->variant);
}

static int take_variant(PrepareCall *call, PleatMessages **messages) {
  PleatSession *session = call->session;
  make_room(session);
  int status = open_model_variant(session->model, call->inputs, &call->variant, messages);
  if (status != PLEAT_OK) return status;
  call->done = false;
  bool finished = context_protect(session->context, add_variant, call);
  if (finished && call->done) return PLEAT_OK;
  model_release(call->variant);
  if (messages) pleat_messages_free(*messages);
  return messages_take(session->context, false, messages);
}

// Prepares a session that the caller has marked as busy.
static int prepare(PleatSession *session, const PleatTensor *inputs, int input_count,
                   PleatMessages **messages) {
  PrepareCall call = {.session = session, .inputs = inputs, .input_count = input_count};
  bool finished = context_protect(session->context, check_inputs, &call);
  int status = messages_take(session->context, finished && call.done, messages);
  if (status != PLEAT_OK) return status;
  session->current = find_part(session, inputs);
  if (!session->current) return take_variant(&call, messages);
  session->current->last_use = ++session->clock;
  return PLEAT_OK;
}

static int refuse_busy(PleatMessages **messages) {
  return messages_refuse("session", "is running in another thread: make a session for each thread",
                         messages);
}

int pleat_session_prepare(PleatSession *session, const PleatTensor *inputs, int input_count,
                          PleatMessages **messages) {
  if (!session) return messages_refuse("session", "is NULL, expected a session", messages);
  if (atomic_flag_test_and_set(&session->busy)) return refuse_busy(messages);
  int status = prepare(session, inputs, input_count, messages);
  atomic_flag_clear(&session->busy);
  return status;
}

const PleatArgument *pleat_session_output(const PleatSession *session, int i) {
  if (!session) return NULL;
  return pleat_model_output(session->current ? session->current->model : session->model, i);
}

// ---- Running ----------------------------------------------------------------------------------

typedef struct RunCall {
  PleatSession *session;
  const PleatTensor *inputs;
  PleatTensor *outputs;
  int input_count, output_count;
  bool done;
} RunCall;

static bool report_left_out(Context *context) {
  return diag_error(context, (SourcePos){0},
                    "parallel_for did not run each iteration of a loop once: the outputs are not "
                    "complete");
}

static void run(void *arg) {
  RunCall *call = arg;
  PleatSession *session = call->session;
  const CompiledProgram *p = session->current->model->program;
  diag_code_set(session->context, DIAG_ARGUMENT);
  if (!check_tensors(session, "input", call->inputs, call->input_count, p->inputs,
                     p->input_count) ||
      !check_tensors(session, "output", call->outputs, call->output_count, p->outputs,
                     p->output_count))
    return;
  for (int i = 0; i < p->input_count; i++) session->tensors[i] = (Tensor *)&call->inputs[i];
  for (int i = 0; i < p->output_count; i++)
    session->tensors[p->input_count + i] = (Tensor *)&call->outputs[i];
  call->done = executable_run(session->current->executable, session->pool, session->tensors,
                              session->tensors + p->input_count);
  if (thread_pool_take_failure(session->pool)) call->done = report_left_out(session->context);
}

// The warnings of a variant that is compiled during a run are left out.
static int prepare_run(PleatSession *session, const PleatTensor *inputs, int input_count,
                       PleatMessages **messages) {
  PleatMessages *found = NULL;
  int status = prepare(session, inputs, input_count, &found);
  if (status != PLEAT_OK && messages)
    *messages = found;
  else
    pleat_messages_free(found);
  return status;
}

int pleat_session_run(PleatSession *session, const PleatTensor *inputs, int input_count,
                      PleatTensor *outputs, int output_count, PleatMessages **messages) {
  if (!session) return messages_refuse("session", "is NULL, expected a session", messages);
  if (atomic_flag_test_and_set(&session->busy)) return refuse_busy(messages);
  int status =
      session->model->open ? prepare_run(session, inputs, input_count, messages) : PLEAT_OK;
  RunCall call = {session, inputs, outputs, input_count, output_count, false};
  if (status == PLEAT_OK) {
    bool finished = context_protect(session->context, run, &call);
    status = messages_take(session->context, finished && call.done, messages);
  }
  atomic_flag_clear(&session->busy);
  return status;
}

// ---- Other uses ---------------------------------------------------------------------------------

const PleatModel *session_model(const PleatSession *session) {
  return session->model;
}

typedef struct UseCall {
  SessionUse use;
  bool (*body)(void *env, const SessionUse *use);
  void *env;
  bool done;
} UseCall;

static void use_body(void *arg) {
  UseCall *call = arg;
  call->done = call->body(call->env, &call->use);
}

static int use(PleatSession *session, UseCall *call, Context *context, PleatMessages **messages) {
  Executable *executable = session->current->executable;
  call->use = (SessionUse){executable, session->current->model->program, session->pool};
  executable_report_to(executable, context);
  bool finished = context_protect(context, use_body, call);
  executable_report_to(executable, session->context);
  if (thread_pool_take_failure(session->pool)) call->done = report_left_out(context);
  return messages_take(context, finished && call->done, messages);
}

int session_use(PleatSession *session, const PleatTensor *inputs, int input_count, Context *context,
                bool (*body)(void *env, const SessionUse *use), void *env,
                PleatMessages **messages) {
  if (atomic_flag_test_and_set(&session->busy)) return refuse_busy(messages);
  UseCall call = {.body = body, .env = env};
  int status = prepare_run(session, inputs, input_count, messages);
  if (status == PLEAT_OK) status = use(session, &call, context, messages);
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

int model_lock(PleatModel *model, PleatMessages **messages) {
  pthread_mutex_lock(&model->lock);
  return model->own ? PLEAT_OK : prepare_own(model, messages);
}

void model_unlock(PleatModel *model) {
  pthread_mutex_unlock(&model->lock);
}

int pleat_model_run(PleatModel *model, const PleatTensor *inputs, int input_count,
                    PleatTensor *outputs, int output_count, PleatMessages **messages) {
  if (!model) return messages_refuse("model", "is NULL, expected a compiled model", messages);
  int status = model_lock(model, messages);
  if (status == PLEAT_OK)
    status = pleat_session_run(model->own, inputs, input_count, outputs, output_count, messages);
  model_unlock(model);
  return status;
}
