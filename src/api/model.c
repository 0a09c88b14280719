// SPDX-License-Identifier: Apache-2.0
// Implements models of the public header: compiling, saving and loading them. A model has a
// compiled program and nothing of the compiler, whose memory is freed when the model is made.
#include <stdatomic.h>
#include <stdlib.h>

#include "api/messages.h"
#include "api/model.h"
#include "api/request.h"
#include "config.h"
#include "driver/driver.h"
#include "pleat/pleat.h"

#if PLEAT_HAVE_ONNX
#include "frontend/onnx/onnx.h"
#endif

// ---- Compiling --------------------------------------------------------------------------------

typedef struct CompileCall {
  const PleatRequest *given;
  PleatRequest request; // with the fields that this version of the library knows
  Context *context;
  int logged; // number of diagnostics that the caller's log has
  const GraphFunc *graph;
  const void **known;       // by input: the bytes that its contents must equal; NULL: any contents
  CompiledProgram *program; // the result
  PleatModel *model;
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
  Arena *arena = &call->context->arena;
  OnnxBinding *known = arena_array(arena, OnnxBinding, call->request.known_count);
  GraphFunc *graph = import(call, known);
  if (!graph) return false;
  call->graph = graph;
  call->known = arena_array(arena, const void *, graph->param_count);
  for (int i = 0; i < graph->param_count; i++)
    call->known[i] = known_bytes(call, known, graph->params[i]);
  return true;
}
#else
static bool load_graph(CompileCall *call) {
  return diag_error(call->context, (SourcePos){0}, "this build cannot read ONNX");
}
#endif

static bool check_argument(Context *context, const PlanConstraint *constraint, const Value *value) {
  int64_t shape[TENSOR_MAX_RANK];
  ElementType element;
  if (value->rank > TENSOR_MAX_RANK || !value_static_shape(value, shape) ||
      !element_type_parse(dtype_name(context, value->type), &element))
    return diag_error(context, value->pos, "'%s' has no static shape", value->name);
  if (constraint->layout && constraint->layout->physical_rank > TENSOR_MAX_RANK)
    return diag_error(context, constraint->pos, "'%s' would have %d axes in memory; at most %d",
                      value->name, constraint->layout->physical_rank, TENSOR_MAX_RANK);
  return true;
}

static bool check_arguments(const CompileCall *call, const PlanConstraints *constraints) {
  const GraphFunc *graph = call->graph;
  for (int i = 0; i < graph->param_count; i++)
    if (!check_argument(call->context, &constraints->inputs[i], graph->params[i])) return false;
  for (int i = 0; i < graph->output_count; i++)
    if (!check_argument(call->context, &constraints->outputs[i], graph->outputs[i])) return false;
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
  const GraphFunc *graph = call->graph;
  if (!constraint_texts_read(call->context, graph, &texts, options)) return false;
  for (int i = 0; i < graph->param_count; i++)
    if (call->known[i] && options->constraints->inputs[i].layout)
      return diag_error_as(call->context, DIAG_OPTION, options->constraints->inputs[i].pos,
                           "the values of '%s' are known, so no layout can be asked for it",
                           graph->params[i]->name);
  return true;
}

static bool set_known(const CompileCall *call) {
  for (int i = 0; i < call->graph->param_count; i++)
    if (call->known[i] && !compiled_program_set_known(call->program, i, call->known[i]))
      return diag_error_as(call->context, DIAG_MEMORY, (SourcePos){0}, "not enough memory");
  return true;
}

static PleatModel *new_model(Context *context, CompiledProgram *program,
                             const RunThreads *threads) {
  PleatModel *model = model_of(program, threads);
  if (!model) diag_error_as(context, DIAG_MEMORY, (SourcePos){0}, "not enough memory for a model");
  return model;
}

static void compile(void *arg) {
  CompileCall *call = arg;
  CompileOptions options = {.run_only = true, .progress = report_progress, .progress_env = call};
  if (!request_read(call->context, call->given, &call->request)) return;
  begin_call_backs(call);
  report_progress(call, "reading", 0, 1);
  options.quick = call->request.quick != 0;
  if (!call->request.no_cache) options.cache = cache_open(call->context);
  if (!find_machine(call, &options.machine) || !load_graph(call) || !read_layouts(call, &options) ||
      !check_arguments(call, options.constraints))
    return;
  RunThreads threads = {options.machine.threads, call->request.parallel_for,
                        call->request.pool_env};
  Program *program = program_build(call->context, call->graph, &options);
  if (!program) return;
  report_progress(call, "code", 0, 1);
  call->program = program_compile(program, NULL);
  if (call->program && set_known(call))
    call->model = new_model(call->context, call->program, &threads);
}

// Ends a call that makes a model: frees its context, and gives the caller the model or messages.
static int end_call(Context *context, bool finished, CompiledProgram *program, PleatModel *model,
                    PleatModel **result, PleatMessages **messages) {
  int status = messages_take(context, finished && model, messages);
  compiled_program_release(program); // the model has a reference of its own
  context_free(context);
  if (status == PLEAT_OK)
    *result = model;
  else
    model_release(model);
  return status;
}

int pleat_model_compile(const PleatRequest *request, PleatModel **result,
                        PleatMessages **messages) {
  if (!result) return messages_refuse("model", "is NULL, expected where to store it", messages);
  *result = NULL;
  CompileCall call = {.given = request, .context = context_new()};
  if (!call.context) return messages_no_memory(messages);
  bool finished = context_protect(call.context, compile, &call);
  call.context->cancels = NULL;
  messages_log(&call.request, call.context, &call.logged);
  return end_call(call.context, finished, call.program, call.model, result, messages);
}

// ---- Saving and loading -------------------------------------------------------------------------

typedef struct SaveCall {
  Context *context;
  const PleatModel *model;
  const char *path;
  bool done;
} SaveCall;

static void save(void *arg) {
  SaveCall *call = arg;
  call->done = saved_write(call->context, call->model->program, call->path);
}

int pleat_model_save(const PleatModel *model, const char *path, PleatMessages **messages) {
  if (!model) return messages_refuse("model", "is NULL, expected a model", messages);
  if (!path) return messages_refuse("path", "is NULL, expected the name of a file", messages);
  SaveCall call = {context_new(), model, path, false};
  if (!call.context) return messages_no_memory(messages);
  bool finished = context_protect(call.context, save, &call);
  int status = messages_take(call.context, finished && call.done, messages);
  context_free(call.context);
  return status;
}

typedef struct LoadCall {
  Context *context;
  const char *path;
  const void *bytes; // NULL: the file is read
  size_t byte_count;
  const PleatSessionOptions *options;
  CompiledProgram *program;
  PleatModel *model;
} LoadCall;

static void load(void *arg) {
  LoadCall *call = arg;
  RunThreads threads = {0};
  if (!session_threads(call->context, call->options, &threads)) return;
  call->program = call->bytes
                      ? saved_parse(call->context, call->path, call->bytes, call->byte_count)
                      : saved_read(call->context, call->path);
  if (call->program) call->model = new_model(call->context, call->program, &threads);
}

static int load_model(LoadCall *call, PleatModel **result, PleatMessages **messages) {
  if (!result) return messages_refuse("model", "is NULL, expected where to store it", messages);
  *result = NULL;
  if (!(call->context = context_new())) return messages_no_memory(messages);
  bool finished = context_protect(call->context, load, call);
  return end_call(call->context, finished, call->program, call->model, result, messages);
}

int pleat_model_load(const char *path, const PleatSessionOptions *options, PleatModel **result,
                     PleatMessages **messages) {
  if (!path) {
    if (result) *result = NULL;
    return messages_refuse("path", "is NULL, expected the name of a file", messages);
  }
  LoadCall call = {.path = path, .options = options};
  return load_model(&call, result, messages);
}

int pleat_model_load_bytes(const void *bytes, size_t byte_count, const PleatSessionOptions *options,
                           PleatModel **result, PleatMessages **messages) {
  if (!bytes) {
    if (result) *result = NULL;
    return messages_refuse("bytes", "is NULL, expected a saved model", messages);
  }
  LoadCall call = {.path = "model", .bytes = bytes, .byte_count = byte_count, .options = options};
  return load_model(&call, result, messages);
}

// ---- The lifetime of a model --------------------------------------------------------------------

static PleatArgument argument_of(const ArgumentSpec *spec) {
  return (PleatArgument){.name = spec->name,
                         .type = element_type_name(spec->type),
                         .element = {spec->type.code, spec->type.bits, spec->type.lanes},
                         .rank = spec->rank,
                         .shape = spec->shape};
}

PleatModel *model_of(CompiledProgram *program, const RunThreads *threads) {
  PleatModel *model = calloc(1, sizeof *model);
  if (!model) return NULL;
  *model = (PleatModel){.references = 1, .threads = *threads};
  model->inputs = calloc((size_t)program->input_count + 1, sizeof(PleatArgument));
  model->outputs = calloc((size_t)program->output_count + 1, sizeof(PleatArgument));
  if (!model->inputs || !model->outputs || pthread_mutex_init(&model->lock, NULL) != 0) {
    free(model->inputs);
    free(model->outputs);
    free(model);
    return NULL;
  }
  model->program = compiled_program_keep(program);
  for (int i = 0; i < program->input_count; i++)
    model->inputs[i] = argument_of(&program->inputs[i]);
  for (int i = 0; i < program->output_count; i++)
    model->outputs[i] = argument_of(&program->outputs[i]);
  return model;
}

void model_release(PleatModel *model) {
  if (!model || atomic_fetch_sub(&model->references, 1) > 1) return;
  session_end(model->own);
  compiled_program_release(model->program);
  pthread_mutex_destroy(&model->lock);
  free(model->inputs);
  free(model->outputs);
  free(model);
}

void pleat_model_free(PleatModel *model) {
  model_release(model);
}

// ---- Arguments ----------------------------------------------------------------------------------

int pleat_model_input_count(const PleatModel *model) {
  return model ? model->program->input_count : 0;
}

int pleat_model_output_count(const PleatModel *model) {
  return model ? model->program->output_count : 0;
}

const PleatArgument *pleat_model_input(const PleatModel *model, int i) {
  return i >= 0 && i < pleat_model_input_count(model) ? &model->inputs[i] : NULL;
}

const PleatArgument *pleat_model_output(const PleatModel *model, int i) {
  return i >= 0 && i < pleat_model_output_count(model) ? &model->outputs[i] : NULL;
}
