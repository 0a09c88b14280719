// SPDX-License-Identifier: Apache-2.0
// Implements models of the public header. A model keeps the context in which it was compiled. A run
// takes the model's lock, because it binds its arguments to the compiled program and writes its
// diagnostics to the context.
#include <pthread.h>
#include <stdlib.h>

#include "api/messages.h"
#include "api/request.h"
#include "config.h"
#include "driver/driver.h"
#include "pleat/pleat.h"

#if PLEAT_HAVE_ONNX
#include "frontend/onnx/onnx.h"
#endif

_Static_assert(sizeof(PleatTensor) == sizeof(Tensor) &&
                   offsetof(PleatTensor, shape) == offsetof(Tensor, shape) &&
                   offsetof(PleatTensor, type) == offsetof(Tensor, type) &&
                   offsetof(PleatTensor, byte_offset) == offsetof(Tensor, byte_offset),
               "the public tensor is the runtime's");

struct PleatModel {
  Context *context;
  const GraphFunc *graph;
  Executable *executable;
  ThreadPool *pool;
  PleatArgument *arguments; // inputs, then outputs
  Tensor **tensors;         // room for the tensors of a run
  const void **known;       // per input: the bytes that its contents must equal; NULL: any contents
  pthread_mutex_t lock;
};

// ---- Compiling --------------------------------------------------------------------------------

typedef struct CompileCall {
  const PleatRequest *given;
  PleatRequest request; // with the fields that this version of the library knows
  PleatModel *model;
  Context *context;
  int logged; // number of diagnostics that the caller's log has
  bool done;
} CompileCall;

// ---- Call-backs

static void report_progress(void *env, const char *what, int done, int all) {
  CompileCall *call = env;
  const PleatRequest *request = &call->request;
  messages_log(request, call->context, &call->logged);
  if (request->progress && request->progress(request->hook_env, what, done, all))
    context_cancel(call->context);
  context_poll(call->context);
}

static bool caller_cancels(void *env) {
  const PleatRequest *request = &((const CompileCall *)env)->request;
  return request->cancel(request->hook_env) != 0;
}

static void begin_call_backs(CompileCall *call) {
  if (!call->request.cancel) return;
  call->context->cancels = caller_cancels;
  call->context->cancels_env = call;
}

static bool find_machine(CompileCall *call, HostMachine *machine) {
  enum { MOST_THREADS = 1024 };
  const PleatRequest *request = &call->request;
  *machine = machine_probe();
  if (request->cpu && !machine_limit(machine, request->cpu))
    return diag_error_as(call->context, DIAG_OPTION, (SourcePos){0},
                         "cpu '%s': this machine has no more than %s", request->cpu,
                         machine_probe().level_name);
  if (request->threads < 0 || request->threads > MOST_THREADS)
    return diag_error_as(call->context, DIAG_OPTION, (SourcePos){0}, "threads %d: at most %d",
                         request->threads, MOST_THREADS);
  if (request->threads) machine->threads = request->threads;
  return true;
}

#if PLEAT_HAVE_ONNX
// A copy of the known contents, which runs compare with what they receive.
static ConstData *known_data(CompileCall *call, const PleatNamedTensor *known) {
  Context *context = call->context;
  const Tensor *tensor = (const Tensor *)known->tensor;
  DType type;
  const char *name = tensor ? element_type_name(tensor->type) : "";
  if (!tensor || !tensor_is_compact(tensor) || tensor->rank > TENSOR_MAX_RANK ||
      !dtype_parse(name, strlen(name), &type)) {
    diag_error_as(context, DIAG_OPTION, (SourcePos){0},
                  "the known value of '%s' is not a compact tensor", known->name);
    return NULL;
  }
  ConstData *data = arena_new(&context->arena, ConstData);
  *data = (ConstData){.name = str_intern(context, known->name),
                      .type = type,
                      .rank = tensor->rank,
                      .bytes = (size_t)tensor_bytes(tensor)};
  data->shape = arena_copy(&context->arena, tensor->shape, sizeof(int64_t) * (size_t)data->rank);
  data->data = arena_copy(&context->arena, tensor_data(tensor), data->bytes);
  return data;
}

static GraphFunc *import(CompileCall *call, OnnxBinding *known) {
  const PleatRequest *request = &call->request;
  OnnxOptions options = {.shapes = request->shapes,
                         .shape_count = (int)request->shape_count,
                         .values = known,
                         .value_count = (int)request->known_count,
                         .bytes = request->bytes,
                         .byte_count = request->byte_count};
  for (size_t i = 0; i < request->known_count; i++) {
    known[i] = (OnnxBinding){request->known[i].name, known_data(call, &request->known[i])};
    if (!known[i].data) return NULL;
  }
  return onnx_import(call->context, request->path, &options)->graph;
}

static const void *known_bytes(const CompileCall *call, const OnnxBinding *known, const Value *v) {
  for (size_t i = 0; i < call->request.known_count; i++)
    if (strcmp(known[i].name, v->name) == 0 &&
        (int64_t)known[i].data->bytes == value_static_bytes(v))
      return known[i].data->data;
  return NULL;
}

static bool load_graph(CompileCall *call) {
  PleatModel *model = call->model;
  Arena *arena = &call->context->arena;
  OnnxBinding *known = arena_array(arena, OnnxBinding, call->request.known_count);
  GraphFunc *graph = import(call, known);
  if (!graph) return false;
  model->graph = graph;
  model->known = arena_array(arena, const void *, graph->param_count);
  for (int i = 0; i < graph->param_count; i++)
    model->known[i] = known_bytes(call, known, graph->params[i]);
  return true;
}
#else
static bool load_graph(CompileCall *call) {
  return diag_error(call->context, (SourcePos){0}, "this build cannot read ONNX");
}
#endif

static bool describe(Context *context, const PlanConstraint *constraint, const Value *value,
                     PleatArgument *argument) {
  int64_t shape[TENSOR_MAX_RANK];
  const char *type = dtype_name(context, value->type);
  ElementType element;
  if (value->rank > TENSOR_MAX_RANK || !value_static_shape(value, shape) ||
      !element_type_parse(type, &element))
    return diag_error(context, value->pos, "'%s' has no static shape", value->name);
  if (constraint->layout && constraint->layout->physical_rank > TENSOR_MAX_RANK)
    return diag_error(context, constraint->pos, "'%s' would have %d axes in memory; at most %d",
                      value->name, constraint->layout->physical_rank, TENSOR_MAX_RANK);
  int rank = program_shape(value, constraint->layout, shape);
  *argument =
      (PleatArgument){.name = value->name,
                      .type = type,
                      .element = {element.code, element.bits, element.lanes},
                      .rank = rank,
                      .shape = arena_copy(&context->arena, shape, sizeof *shape * (size_t)rank)};
  return true;
}

static bool describe_arguments(PleatModel *model, const PlanConstraints *constraints) {
  const GraphFunc *graph = model->graph;
  int inputs = graph->param_count, outputs = graph->output_count;
  Arena *arena = &model->context->arena;
  model->arguments = arena_array(arena, PleatArgument, inputs + outputs);
  model->tensors = arena_array(arena, Tensor *, inputs + outputs);
  for (int i = 0; i < inputs; i++)
    if (!describe(model->context, &constraints->inputs[i], graph->params[i], &model->arguments[i]))
      return false;
  for (int i = 0; i < outputs; i++)
    if (!describe(model->context, &constraints->outputs[i], graph->outputs[i],
                  &model->arguments[inputs + i]))
      return false;
  return true;
}

static bool read_layouts(CompileCall *call, CompileOptions *options) {
  const PleatRequest *r = &call->request;
  ConstraintTexts texts = {
      .desired = {"desired_layouts", r->desired_layouts, (int)r->desired_layout_count},
      .keep = {"keep_layouts", r->keep_layouts, (int)r->keep_layout_count},
      .inputs = {"input_layouts", r->input_layouts, (int)r->input_layout_count},
      .outputs = {"output_layouts", r->output_layouts, (int)r->output_layout_count},
      .policy = r->policy,
      .sizes = "shapes, as in name=1x3x224x224"};
  if (!constraint_texts_read(call->context, call->model->graph, &texts, options)) return false;
  for (int i = 0; i < call->model->graph->param_count; i++)
    if (call->model->known[i] && options->constraints->inputs[i].layout)
      return diag_error_as(call->context, DIAG_OPTION, options->constraints->inputs[i].pos,
                           "the values of '%s' are known, so no layout can be asked for it",
                           call->model->graph->params[i]->name);
  return true;
}

static void compile(void *arg) {
  CompileCall *call = arg;
  PleatModel *model = call->model;
  CompileOptions options = {.run_only = true, .progress = report_progress, .progress_env = call};
  if (!request_read(call->context, call->given, &call->request)) return;
  begin_call_backs(call);
  report_progress(call, "reading", 0, 1);
  options.quick = call->request.quick != 0;
  if (!call->request.no_cache) options.cache = cache_open(call->context);
  if (!find_machine(call, &options.machine) || !load_graph(call) || !read_layouts(call, &options) ||
      !describe_arguments(model, options.constraints))
    return;
  Program *program = program_build(call->context, model->graph, &options);
  if (!program) return;
  report_progress(call, "code", 0, 1);
  model->executable = executable_new(program, NULL);
  if (!model->executable) return;
  const PleatRequest *request = &call->request;
  int threads = options.machine.threads;
  model->pool = request->parallel_for
                    ? thread_pool_foreign(request->parallel_for, request->pool_env, threads)
                    : thread_pool_new(threads);
  call->done =
      model->pool || diag_error(call->context, (SourcePos){0}, "the threads could not be started");
}

static int compile_request(const PleatRequest *request, PleatModel *model,
                           PleatMessages **messages) {
  CompileCall call = {.given = request, .model = model, .context = model->context};
  bool finished = context_protect(model->context, compile, &call);
  model->context->cancels = NULL;
  messages_log(&call.request, model->context, &call.logged);
  return messages_take(model->context, finished && call.done, messages);
}

int pleat_model_compile(const PleatRequest *request, PleatModel **result,
                        PleatMessages **messages) {
  if (!result) return messages_refuse("model", "is NULL, expected where to store it", messages);
  PleatModel *model = calloc(1, sizeof *model);
  *result = NULL;
  if (model) model->context = context_new();
  if (!model || !model->context || pthread_mutex_init(&model->lock, NULL) != 0) {
    if (model) context_free(model->context);
    free(model);
    return messages_no_memory(messages);
  }
  int status = compile_request(request, model, messages);
  if (status == PLEAT_OK)
    *result = model;
  else
    pleat_model_free(model);
  return status;
}

void pleat_model_free(PleatModel *model) {
  if (!model) return;
  thread_pool_free(model->pool);
  executable_free(model->executable);
  context_free(model->context);
  pthread_mutex_destroy(&model->lock);
  free(model);
}

// ---- Arguments --------------------------------------------------------------------------------

int pleat_model_input_count(const PleatModel *model) {
  return model ? model->graph->param_count : 0;
}

int pleat_model_output_count(const PleatModel *model) {
  return model ? model->graph->output_count : 0;
}

const PleatArgument *pleat_model_input(const PleatModel *model, int i) {
  return i >= 0 && i < pleat_model_input_count(model) ? &model->arguments[i] : NULL;
}

const PleatArgument *pleat_model_output(const PleatModel *model, int i) {
  bool there = i >= 0 && i < pleat_model_output_count(model);
  return there ? &model->arguments[model->graph->param_count + i] : NULL;
}

// ---- Running ----------------------------------------------------------------------------------

typedef struct RunCall {
  PleatModel *model;
  const PleatTensor *inputs;
  PleatTensor *outputs;
  int input_count, output_count;
  bool done;
} RunCall;

static bool check_tensors(const PleatModel *model, const char *what, const PleatTensor *tensors,
                          int given, const PleatArgument *arguments, int expected) {
  if (given != expected)
    return diag_error(model->context, (SourcePos){0}, "the model has %d %s%s, and %d %s given",
                      expected, what, expected == 1 ? "" : "s", given, given == 1 ? "is" : "are");
  if (given && !tensors)
    return diag_error(model->context, (SourcePos){0}, "the array of %ss is NULL", what);
  for (int i = 0; i < given; i++)
    if (!tensor_readable(model->context, what, arguments[i].name, &tensors[i])) return false;
  return true;
}

static bool check_known(PleatModel *model, int i, const Tensor *tensor) {
  const void *known = model->known[i];
  int64_t bytes = value_static_bytes(model->graph->params[i]);
  if (!known || !tensor->data || tensor_bytes(tensor) != bytes || !tensor_is_compact(tensor) ||
      memcmp(known, tensor_data(tensor), (size_t)bytes) == 0)
    return true; // executable_run reports a wrong size
  return diag_error(model->context, (SourcePos){0},
                    "input '%s' holds other values than those that the model was compiled for",
                    model->arguments[i].name);
}

static void run(void *arg) {
  RunCall *call = arg;
  PleatModel *model = call->model;
  diag_code_set(model->context, DIAG_ARGUMENT);
  Tensor **inputs = model->tensors, **outputs = inputs + model->graph->param_count;
  int input_count = model->graph->param_count, output_count = model->graph->output_count;
  if (!check_tensors(model, "input", call->inputs, call->input_count, model->arguments,
                     input_count) ||
      !check_tensors(model, "output", call->outputs, call->output_count,
                     model->arguments + input_count, output_count))
    return;
  for (int i = 0; i < call->input_count; i++) {
    inputs[i] = (Tensor *)&call->inputs[i];
    if (!check_known(model, i, inputs[i])) return;
  }
  for (int i = 0; i < call->output_count; i++) outputs[i] = (Tensor *)&call->outputs[i];
  call->done = executable_run(model->executable, model->pool, inputs, outputs);
  if (thread_pool_take_failure(model->pool))
    call->done = diag_error(model->context, (SourcePos){0},
                            "parallel_for did not run each iteration of a loop once: the outputs "
                            "are not complete");
}

int pleat_model_run(PleatModel *model, const PleatTensor *inputs, int input_count,
                    PleatTensor *outputs, int output_count, PleatMessages **messages) {
  if (!model) return messages_refuse("model", "is NULL, expected a compiled model", messages);
  RunCall call = {model, inputs, outputs, input_count, output_count, false};
  pthread_mutex_lock(&model->lock);
  bool finished = context_protect(model->context, run, &call);
  int status = messages_take(model->context, finished && call.done, messages);
  pthread_mutex_unlock(&model->lock);
  return status;
}
