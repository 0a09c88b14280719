// SPDX-License-Identifier: Apache-2.0
// Implements models of the public header: compiling, saving and loading them. A model has a
// compiled program and nothing of the compiler, whose memory is freed when the model is made.
#include <stdatomic.h>
#include <stdlib.h>

#include "api/load.h"
#include "api/messages.h"
#include "api/model.h"
#include "api/request.h"
#include "pleat/pleat.h"

// ---- Compiling --------------------------------------------------------------------------------

typedef struct CompileCall {
  RequestCall call;
  CompiledProgram *program;
  bool ready;        // the program is complete
  PleatModel *model; // the result
  bool done;
} CompileCall;

static bool set_known(const CompileCall *call) {
  for (int i = 0; i < call->call.graph->param_count; i++)
    if (call->call.known[i] && !compiled_program_set_known(call->program, i, call->call.known[i]))
      return diag_error_as(call->call.context, DIAG_MEMORY, (SourcePos){0}, "not enough memory");
  return true;
}

static PleatModel *new_model(Context *context, CompiledProgram *program,
                             const RunThreads *threads) {
  PleatModel *model = model_of(program, threads);
  if (!model) diag_error_as(context, DIAG_MEMORY, (SourcePos){0}, "not enough memory for a model");
  return model;
}

// Compiles the graph of the request and keeps the result in the cache. Without success, which
// call->ready says, there are diagnostics.
static void compile_program(CompileCall *call) {
  RequestCall *request = &call->call;
  Program *program = program_build(request->context, request->graph, &request->options);
  if (!program) return;
  request_progress(request, "code", 0, 1);
  call->program = program_compile(program, NULL);
  if (!call->program || !set_known(call)) return;
  request_keep(request, call->program);
  call->ready = true;
}

// Compiles the tensor program of the request.
static void compile_kernel(CompileCall *call) {
  RequestCall *request = &call->call;
  InterpSize *sizes;
  if (!request_sizes(request, &sizes)) return;
  request_progress(request, "code", 0, 1);
  request->options.lower.guards = !request->request.unchecked;
  if (!kernels_prove_bounds(request->context, &request->kernels, &request->options.lower)) return;
  call->program = kernel_compile(request->context, &request->kernels.items[0], sizes,
                                 (int)request->request.shape_count, &request->options);
  call->ready = call->program != NULL;
}

static void compile(void *arg) {
  CompileCall *call = arg;
  RequestCall *request = &call->call;
  request->options.run_only = request->wants_program = true;
  if (!request_load(request)) return;
  RunThreads threads = {request->options.machine.threads, request->request.parallel_for,
                        request->request.pool_env};
  if (request->open) {
    call->model = open_model_new(request->context, request->given, request->open, &threads);
  } else if (request->found) {
    call->program = request->found;
    call->ready = true;
  } else if (request->graph) {
    compile_program(call);
  } else {
    compile_kernel(call);
  }
  if (call->ready) call->model = new_model(request->context, call->program, &threads);
  call->done = call->model != NULL;
}

// Ends a call that makes a model, and gives the model to the caller. Returns the status.
static int end_call(int status, CompiledProgram *program, PleatModel *model, PleatModel **result) {
  compiled_program_release(program); // the model has a reference of its own
  if (status == PLEAT_OK)
    *result = model;
  else
    model_release(model);
  return status;
}

static int run_compile(CompileCall *call, PleatModel **result, PleatMessages **messages) {
  int status = request_run(&call->call, compile, &call->done, messages);
  return end_call(status, call->program, call->model, result);
}

int pleat_model_compile(const PleatRequest *request, PleatModel **result,
                        PleatMessages **messages) {
  if (!result) return messages_refuse("model", "is NULL, expected where to store it", messages);
  *result = NULL;
  CompileCall call = {.call = {.given = request, .may_be_open = true}};
  return run_compile(&call, result, messages);
}

int model_compile_for(const PleatRequest *request, const PleatModel *open,
                      const PleatTensor *inputs, PleatModel **variant, PleatMessages **messages) {
  int count = open->program->input_count;
  OnnxArray *arrays = calloc((size_t)count + 1, sizeof *arrays);
  if (!arrays) return messages_no_memory(messages);
  for (int i = 0; i < count; i++)
    arrays[i] = (OnnxArray){open->inputs[i].name, inputs[i].shape, inputs[i].rank, NULL,
                            model_sizes_in(open, i, &inputs[i])};
  CompileCall call = {.call = {.given = request, .arrays = arrays, .array_count = count}};
  int status = run_compile(&call, variant, messages);
  free(arrays);
  return status;
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
  if (model->open)
    return messages_refuse("model",
                           "has free sizes, and a saved model has none: compile it with all sizes "
                           "in `shapes`",
                           messages);
  SaveCall call = {context_new(), model, path, false};
  if (!call.context) return messages_no_memory(messages);
  bool finished = context_protect(call.context, save, &call);
  int status = messages_take(call.context, finished && call.done, messages);
  context_free(call.context);
  return status;
}

typedef struct LoadCall {
  RequestCall call; // with the call-backs of the options, and its context
  const char *path;
  const void *bytes; // NULL: the file is read
  size_t byte_count;
  const PleatSessionOptions *options;
  CompiledProgram *program;
  PleatModel *model;
  bool done;
} LoadCall;

static void load(void *arg) {
  LoadCall *call = arg;
  Context *context = call->call.context;
  PleatSessionOptions options;
  RunThreads threads = {0};
  if (!session_options(context, call->options, &options, &threads)) return;
  if (!caller_read(context, options.language)) return;
  if (!operators_read(context, options.operators, options.operator_count, &call->call.functions))
    return;
  call->call.request = (PleatRequest){.log = options.log,
                                      .progress = options.progress,
                                      .cancel = options.cancel,
                                      .hook_env = options.hook_env};
  request_begin_call_backs(&call->call);
  request_progress(&call->call, "reading", 0, 1);
  call->program = call->bytes ? saved_parse(context, call->path, call->bytes, call->byte_count)
                              : saved_read(context, call->path);
  if (!call->program || !operators_bind(context, call->program, call->call.functions)) return;
  request_progress(&call->call, "reading", 1, 1);
  call->model = new_model(context, call->program, &threads);
  call->done = call->model != NULL;
}

static int load_model(LoadCall *call, PleatModel **result, PleatMessages **messages) {
  if (!result) return messages_refuse("model", "is NULL, expected where to store it", messages);
  *result = NULL;
  int status = request_run(&call->call, load, &call->done, messages);
  return end_call(status, call->program, call->model, result);
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

static PleatArgument argument_of(const ArgumentSpec *spec, bool is_output) {
  return (PleatArgument){.name = spec->name,
                         .type = element_type_name(spec->type),
                         .element = {spec->type.code, spec->type.bits, spec->type.lanes},
                         .rank = spec->rank,
                         .shape = spec->shape,
                         .access = !is_output      ? PLEAT_READ
                                   : spec->is_read ? PLEAT_READ | PLEAT_WRITTEN
                                                   : PLEAT_WRITTEN};
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
    model->inputs[i] = argument_of(&program->inputs[i], false);
  for (int i = 0; i < program->output_count; i++)
    model->outputs[i] = argument_of(&program->outputs[i], true);
  return model;
}

void model_release(PleatModel *model) {
  if (!model || atomic_fetch_sub(&model->references, 1) > 1) return;
  session_end(model->own);
  open_model_free(model->open);
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

PleatTensor pleat_tensor(const PleatArgument *argument, void *data) {
  PleatTensor tensor = {.data = data, .device_type = 1};
  if (!argument) return tensor;
  tensor.rank = argument->rank;
  tensor.type = argument->element;
  tensor.shape = (int64_t *)argument->shape; // DLPack has no const; it is only read
  return tensor;
}

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
