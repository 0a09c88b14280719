// SPDX-License-Identifier: Apache-2.0
// Implements profiles of the public header, on top of report/profile.h.
#include "report/profile.h"

#include "api/messages.h"
#include "api/model.h"
#include "api/request.h"
#include "api/result.h"

typedef struct ProfileCall {
  Context *context;
  Arena results; // memory of the result
  PleatSession *session;
  const PleatProfileOptions *given;
  PleatProfileOptions options;
  const PleatTensor *inputs;
  int input_count;
  const SessionUse *use;
  Tensor **tensors; // inputs, then outputs
  Tensor **made;    // likewise: those that this call made; NULL where the caller gave one
  int tensor_count;
  PleatProfile *profile; // the result
  bool done;
} ProfileCall;

static bool read_options(ProfileCall *call) {
  enum { USUAL_RUNS = 10, MOST_RUNS = 1000 };
  PleatProfileOptions *options = &call->options;
  if (call->given &&
      !struct_read(call->context, "PleatProfileOptions", call->given, options, sizeof *options))
    return false;
  if (options->repeat < 0 || options->repeat > MOST_RUNS)
    return field_error(call->context, "repeat", "is %d, expected 0 to %d", options->repeat,
                       MOST_RUNS);
  if (!options->repeat) options->repeat = USUAL_RUNS;
  return true;
}

// ---- Tensors ------------------------------------------------------------------------------------

static void release_tensors(const ProfileCall *call) {
  for (int i = 0; call->made && i < call->tensor_count; i++) tensor_free(call->made[i]);
}

static bool keep(ProfileCall *call, int number, Tensor *tensor) {
  call->made[number] = call->tensors[number] = tensor;
  return tensor || diag_error_as(call->context, DIAG_MEMORY, (SourcePos){0},
                                 "not enough memory for the tensors of a run");
}

static bool make_inputs(ProfileCall *call, const PleatModel *model) {
  const CompiledProgram *p = model->program;
  if (model->open)
    return field_error(call->context, "inputs",
                       "are not given, and the model takes its free sizes from them");
  PleatTensor *inputs = arena_array(&call->context->arena, PleatTensor, p->input_count);
  for (int i = 0; i < p->input_count; i++) {
    uint64_t seed = (uint64_t)(call->options.seed + i);
    if (!keep(call, i, compiled_input_new(p, i, &seed))) return false;
    memcpy(&inputs[i], call->tensors[i], sizeof inputs[i]);
  }
  call->inputs = inputs;
  call->input_count = p->input_count;
  return true;
}

static void begin(void *arg) {
  ProfileCall *call = arg;
  const PleatModel *model = session_model(call->session);
  const CompiledProgram *p = model->program;
  Arena *arena = &call->context->arena;
  if (!read_options(call)) return;
  call->tensor_count = p->input_count + p->output_count;
  call->tensors = arena_array(arena, Tensor *, call->tensor_count);
  call->made = arena_array(arena, Tensor *, call->tensor_count);
  call->done = call->input_count || !p->input_count || make_inputs(call, model);
}

// Sets the tensors of a run: the inputs, and outputs of zeros.
static bool set_tensors(ProfileCall *call) {
  const CompiledProgram *p = call->use->program;
  for (int i = 0; i < p->input_count; i++) call->tensors[i] = (Tensor *)&call->inputs[i];
  for (int i = 0; i < p->output_count; i++) {
    const ArgumentSpec *spec = &p->outputs[i];
    Tensor *tensor = tensor_new(spec->type, spec->shape, spec->rank);
    if (!keep(call, p->input_count + i, tensor)) return false;
    memset(tensor->data, 0, (size_t)tensor_bytes(tensor));
  }
  return true;
}

// ---- Measuring ----------------------------------------------------------------------------------

static bool cancels(void *env) {
  const PleatProfileOptions *options = env;
  return options->cancel(options->hook_env) != 0;
}

static void show_progress(void *env, int done, int all) {
  const ProfileCall *call = env;
  const PleatProfileOptions *o = &call->options;
  if (o->progress && o->progress(o->hook_env, "measuring", done, all))
    context_cancel(call->context);
}

static bool run_once(void *env, int64_t *step_ns) {
  const ProfileCall *call = env;
  const SessionUse *use = call->use;
  Tensor **outputs = call->tensors + use->program->input_count;
  return step_ns ? executable_profile(use->executable, use->pool, call->tensors, outputs, step_ns)
                 : executable_run(use->executable, use->pool, call->tensors, outputs);
}

// A single run is measured after one that is not, too.
static bool measure(ProfileCall *call, Measurement *measurement) {
  const MeasuredRuns runs = {.count = call->options.repeat,
                             .steps = call->use->program->step_count,
                             .run = run_once,
                             .progress = show_progress,
                             .env = call};
  if (call->options.cancel) {
    call->context->cancels = cancels;
    call->context->cancels_env = &call->options;
  }
  bool done =
      (runs.count > 1 || run_once(call, NULL)) && measure_runs(call->context, &runs, measurement);
  call->context->cancels = NULL;
  return done;
}

static bool profile_session(void *env, const SessionUse *use) {
  ProfileCall *call = env;
  Context *context = call->context;
  Measurement measurement;
  HostMachine machine = machine_probe();
  machine_limit(&machine, use->program->cpu);
  machine.threads = thread_pool_size(use->pool);
  call->use = use;
  diag_code_set(context, DIAG_ARGUMENT);
  if (!set_tensors(call) || !measure(call, &measurement)) return false;
  arena_init(&call->results, context);
  Profile *profile = profile_new(&call->results, use->program->steps, use->program->step_count,
                                 &measurement, &machine);
  profile->data.text = profile_text(&call->results, profile);
  call->profile = result_new(&call->results, &profile->data, sizeof profile->data);
  return true;
}

// ---- The functions ------------------------------------------------------------------------------

int pleat_session_profile(PleatSession *session, const PleatTensor *inputs, int input_count,
                          const PleatProfileOptions *options, PleatProfile **profile,
                          PleatMessages **messages) {
  if (!profile) return messages_refuse("profile", "is NULL, expected where to store it", messages);
  *profile = NULL;
  if (!session) return messages_refuse("session", "is NULL, expected a session", messages);
  ProfileCall call = {.context = context_new(),
                      .session = session,
                      .given = options,
                      .inputs = inputs,
                      .input_count = input_count};
  if (!call.context) return messages_no_memory(messages);
  bool finished = context_protect(call.context, begin, &call);
  int status = messages_take(call.context, finished && call.done, messages);
  if (status == PLEAT_OK)
    status = session_use(session, call.inputs, call.input_count, call.context, profile_session,
                         &call, messages);
  release_tensors(&call);
  arena_free(&call.results);
  context_free(call.context);
  if (status == PLEAT_OK)
    *profile = call.profile;
  else
    result_free(call.profile);
  return status;
}

int pleat_model_profile(PleatModel *model, const PleatTensor *inputs, int input_count,
                        const PleatProfileOptions *options, PleatProfile **profile,
                        PleatMessages **messages) {
  if (profile) *profile = NULL;
  if (!model) return messages_refuse("model", "is NULL, expected a compiled model", messages);
  int status = model_lock(model, messages);
  if (status == PLEAT_OK)
    status = pleat_session_profile(model->own, inputs, input_count, options, profile, messages);
  model_unlock(model);
  return status;
}

void pleat_profile_free(PleatProfile *profile) {
  result_free(profile);
}
