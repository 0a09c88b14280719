// SPDX-License-Identifier: Apache-2.0
// Implements verifications of the public header, on top of report/verify.h.
#include "report/verify.h"

#include "api/load.h"
#include "api/messages.h"
#include "api/request.h"
#include "api/result.h"
#include "driver/kernel_arguments.h"

typedef struct VerifyCall {
  RequestCall call;
  const PleatVerifyOptions *given;
  PleatVerifyOptions options;
  VerifyTask *task;
  Arena results; // memory of the result
  PleatVerification *result;
  bool done;
} VerifyCall;

// ---- Options ------------------------------------------------------------------------------------

static bool check_tolerances(VerifyCall *call) {
  const PleatVerifyOptions *o = &call->options;
  Context *context = call->call.context;
  if (!(o->rtol >= 0)) return field_error(context, "rtol", "is %g, expected 0 or more", o->rtol);
  if (!(o->atol >= 0)) return field_error(context, "atol", "is %g, expected 0 or more", o->atol);
  if (o->max_ulp < 0)
    return field_error(context, "max_ulp", "is %lld, expected 0 or more", (long long)o->max_ulp);
  return !o->exact || (!o->rtol && !o->atol && !o->max_ulp) ||
         field_error(context, "exact", "is set, and a tolerance is given, too");
}

static Tolerance tolerance_read(const PleatVerifyOptions *o) {
  bool is_default = !o->exact && !o->rtol && !o->atol && !o->max_ulp;
  return is_default ? TOLERANCE_DEFAULT : (Tolerance){o->rtol, o->atol, o->max_ulp};
}

static bool read_options(VerifyCall *call) {
  PleatVerifyOptions *o = &call->options;
  Context *context = call->call.context;
  if (call->given && !struct_read(context, "PleatVerifyOptions", call->given, o, sizeof *o))
    return false;
  return check_tolerances(call) &&
         named_tensors_check(context, "inputs", "the input", o->inputs, o->input_count) &&
         named_tensors_check(context, "expected", "the expected output", o->expected,
                             o->expected_count);
}

// Lets the shapes of the given inputs be sizes of free dimensions.
static void set_arrays(VerifyCall *call) {
  const PleatVerifyOptions *o = &call->options;
  OnnxArray *arrays = arena_array(&call->call.context->arena, OnnxArray, o->input_count);
  for (size_t i = 0; i < o->input_count; i++)
    arrays[i] = (OnnxArray){.name = o->inputs[i].name,
                            .shape = o->inputs[i].tensor->shape,
                            .rank = o->inputs[i].tensor->rank};
  call->call.arrays = arrays;
  call->call.array_count = (int)o->input_count;
}

// ---- Inputs -------------------------------------------------------------------------------------

static const PleatTensor *find_tensor(const PleatNamedTensor *tensors, size_t count,
                                      const char *name) {
  for (size_t i = 0; i < count; i++)
    if (!strcmp(tensors[i].name, name)) return tensors[i].tensor;
  return NULL;
}

static const PleatTensor *find_given(const VerifyCall *call, const char *name) {
  return find_tensor(call->options.inputs, call->options.input_count, name);
}

// A compact copy of a tensor for a value, after a check of its shape and type.
static Tensor *copy_tensor(VerifyCall *call, const char *what, const Value *value,
                           const Layout *layout, const PleatTensor *given) {
  Context *context = call->call.context;
  Tensor *copy = value_tensor(context, value, layout);
  if (!copy) return NULL;
  const ArgumentSpec spec = {value->name, copy->type, copy->rank, copy->shape, .any_strides = true};
  char message[256];
  if (argument_check_description(&spec, (const Tensor *)given, message, sizeof message)) {
    tensor_copy(copy, (const Tensor *)given);
    return copy;
  }
  diag_error_as(context, DIAG_ARGUMENT, (SourcePos){0}, "%s '%s': %s", what, value->name, message);
  return NULL;
}

static Tensor *copy_input(VerifyCall *call, int number, const PleatTensor *given) {
  const VerifyTask *v = call->task;
  return copy_tensor(call, "input", v->graph->params[number], v->constraints->inputs[number].layout,
                     given);
}

static Tensor *known_input(VerifyCall *call, int number) {
  Tensor *tensor = value_tensor(call->call.context, call->task->graph->params[number], NULL);
  if (tensor) memcpy(tensor->data, call->call.known[number], (size_t)tensor_bytes(tensor));
  return tensor;
}

static bool set_input(VerifyCall *call, int number) {
  VerifyTask *v = call->task;
  const Value *value = v->graph->params[number];
  const PleatTensor *given = find_given(call, value->name);
  const void *known = call->call.known[number];
  if (!given && !known) return verify_fill_input(v, number, call->options.seed + number);
  Tensor *tensor = given ? copy_input(call, number, given) : known_input(call, number);
  if (!tensor) return false;
  if (known && memcmp(known, tensor->data, (size_t)tensor_bytes(tensor)) != 0)
    return diag_error_as(call->call.context, DIAG_ARGUMENT, (SourcePos){0},
                         "input '%s' holds other values than those that are known", value->name);
  return verify_give_input(v, number, tensor);
}

// Does each tensor of a field have one of these names? False with a diagnostic.
static bool check_names(VerifyCall *call, const char *field, const char *what,
                        const PleatNamedTensor *tensors, size_t tensor_count,
                        const char *const *names, int count) {
  for (size_t k = 0; k < tensor_count; k++) {
    const char *name = tensors[k].name, *nearest;
    bool found = false;
    for (int i = 0; i < count; i++) found |= !strcmp(names[i], name);
    if (found) continue;
    nearest = suggestion_or_names(&call->call.context->arena, name, names, count);
    return field_error(call->call.context, field, "there is no %s '%s'%s", what, name, nearest);
  }
  return true;
}

static const char **value_names(const VerifyCall *call, Value *const *values, int count) {
  const char **names = arena_array(&call->call.context->arena, const char *, count);
  for (int i = 0; i < count; i++) names[i] = values[i]->name;
  return names;
}

static bool check_model_names(VerifyCall *call) {
  const GraphFunc *graph = call->call.graph;
  const PleatVerifyOptions *o = &call->options;
  int inputs = graph->param_count, outputs = graph->output_count;
  return check_names(call, "inputs", "input", o->inputs, o->input_count,
                     value_names(call, graph->params, inputs), inputs) &&
         check_names(call, "expected", "output", o->expected, o->expected_count,
                     value_names(call, graph->outputs, outputs), outputs);
}

// ---- Expected outputs ---------------------------------------------------------------------------

// The contents of an output that the caller expects, row-major.
static ConstData *expected_data(VerifyCall *call, int number, const PleatTensor *given) {
  const VerifyTask *v = call->task;
  Context *context = call->call.context;
  const Value *value = v->graph->outputs[number];
  const Layout *layout = v->constraints->outputs[number].layout;
  Tensor *tensor = copy_tensor(call, "the expected output", value, layout, given);
  if (tensor) tensor = value_unpack(context, value, layout, tensor);
  if (!tensor) return NULL;
  ConstData *data = arena_new(&context->arena, ConstData);
  *data = (ConstData){.name = value->name,
                      .type = value->type,
                      .rank = tensor->rank,
                      .shape = tensor->shape,
                      .data = tensor->data,
                      .bytes = (size_t)tensor_bytes(tensor)};
  return data;
}

static bool set_expected(VerifyCall *call) {
  VerifyTask *v = call->task;
  const PleatVerifyOptions *o = &call->options;
  if (!o->expected_count) return true;
  ConstData **expected = arena_array(&v->context->arena, ConstData *, v->graph->output_count);
  for (int i = 0; i < v->graph->output_count; i++) {
    const PleatTensor *given =
        find_tensor(o->expected, o->expected_count, v->graph->outputs[i]->name);
    if (given && !(expected[i] = expected_data(call, i, given))) return false;
  }
  v->expected = expected;
  v->expected_from = "the expected outputs";
  return true;
}

// ---- Verifying ----------------------------------------------------------------------------------

static void report_progress(void *env, int done, int all) {
  request_progress(env, "verifying", done, all);
}

static VerifyTask *new_task(VerifyCall *call) {
  VerifyTask *v = verify_task_new(call->call.context);
  v->results = &call->results;
  v->tolerance = tolerance_read(&call->options);
  v->definitions = call->options.definitions != 0;
  v->whole = true;
  v->progress = report_progress;
  v->env = &call->call;
  return v;
}

static ThreadPool *make_pool(const RequestCall *call) {
  const PleatRequest *r = &call->request;
  int threads = call->options.machine.threads;
  return r->parallel_for ? thread_pool_foreign(r->parallel_for, r->pool_env, threads)
                         : thread_pool_new(threads);
}

// The name of the node, and then what differs there.
static const char *difference_text(const VerifyTask *v) {
  const char *node = verify_position(v).node, *text = verify_difference(v, v->data.differs);
  return node ? arena_printf(v->results, "node '%s': %s", node, text) : text;
}

static bool run_model(VerifyCall *call) {
  RequestCall *request = &call->call;
  VerifyTask *v = call->task;
  v->graph = request->graph;
  v->constraints = request->options.constraints;
  if (!check_model_names(call) || !verify_set_outputs(v) || !set_expected(call)) return false;
  for (int i = 0; i < v->graph->param_count; i++)
    if (!set_input(call, i)) return false;
  v->program = program_build(request->context, v->graph, &request->options);
  if (!v->program) return false;
  v->pool = make_pool(request);
  if (!verify_model(v) && !v->data.differs) return false;
  v->data.text = v->data.differs ? difference_text(v)
                                 : arena_printf(v->results, "agrees %s", verify_agreement(v, 0));
  return true;
}

// ---- Tensor programs ----------------------------------------------------------------------------

static Tensor *given_array(void *env, const char *name) {
  VerifyCall *call = env;
  const Tensor *given = (const Tensor *)find_given(call, name);
  if (!given) return NULL;
  Tensor *copy =
      tensor_keep(call->call.context, tensor_new(given->type, given->shape, given->rank));
  if (copy)
    tensor_copy(copy, given);
  else
    diag_error_as(call->call.context, DIAG_MEMORY, (SourcePos){0}, "not enough memory for '%s'",
                  name);
  return copy;
}

// A scalar parameter is a tensor of rank 0.
static const char *given_number(void *env, const char *name) {
  VerifyCall *call = env;
  Context *context = call->call.context;
  const Tensor *given = (const Tensor *)find_given(call, name);
  if (!given) return NULL;
  if (!given->rank)
    return arena_printf(&context->arena, "%.17g", element_get(given->type, tensor_data(given)));
  diag_error_as(context, DIAG_ARGUMENT, (SourcePos){0},
                "'%s' is a scalar parameter: expected a tensor of rank 0, not %d", name,
                given->rank);
  return NULL;
}

static bool check_kernel_names(VerifyCall *call) {
  const Kernels *kernels = &call->call.kernels;
  Array(const char *) names = {0};
  for (int i = 0; i < kernels->count; i++)
    for (int k = 0; k < kernels->items[i].func->param_count; k++)
      array_push(&call->call.context->arena, &names, kernel_param_name(&kernels->items[i], k));
  return check_names(call, "inputs", "input", call->options.inputs, call->options.input_count,
                     names.items, names.count);
}

static void free_code(void *code) {
  kernel_code_free(code);
}

static KernelCode *make_code(VerifyCall *call) {
  RequestCall *request = &call->call;
  const Kernels *kernels = &request->kernels;
  PrimFunc **funcs = arena_array(&request->context->arena, PrimFunc *, kernels->count);
  for (int i = 0; i < kernels->count; i++) funcs[i] = kernels->items[i].scheduled;
  KernelCode *code =
      kernel_code_new(request->context, funcs, kernels->count, &request->options, NULL);
  if (code) context_at_free(request->context, free_code, code);
  return code;
}

// Adds a line about the kernel, whose tensors begin with number `first`, to the text.
static void describe_kernel(const VerifyTask *v, const Kernel *kernel, int first, Text *text) {
  const PleatVerifiedTensor *differs = NULL;
  for (int i = v->tensors.count - 1; i >= first; i--)
    if (!v->tensors.items[i]->agrees) differs = v->tensors.items[i];
  text_puts(text, text->size ? "\n" : "");
  if (differs)
    text_puts(text, verify_difference(v, differs));
  else
    text_printf(text, "'%s' agrees %s", kernel->func->name,
                verify_kernel_agreement(v, kernel, first));
}

static bool run_kernel(VerifyCall *call, KernelCode *code, int number, Text *text) {
  VerifyTask *v = call->task;
  const Kernel *kernel = &call->call.kernels.items[number];
  const KernelContents contents = {.fill = "random",
                                   .seed = call->options.seed,
                                   .fill_all = true,
                                   .sizes = call->call.request.shapes,
                                   .size_count = (int)call->call.request.shape_count,
                                   .array = given_array,
                                   .number = given_number,
                                   .env = call};
  KernelArguments arguments;
  int first = v->tensors.count;
  request_progress(&call->call, "verifying", number, call->call.kernels.count);
  if (!kernel_arguments(v->context, kernel, &contents, &arguments)) return false;
  verify_kernel(v, call->call.module, kernel, code, number, arguments.args);
  if (v->context->error_count) return false;
  describe_kernel(v, kernel, first, text);
  return true;
}

static bool run_kernels(VerifyCall *call) {
  RequestCall *request = &call->call;
  const PleatRequest *r = &request->request;
  if (call->options.expected_count)
    return field_error(request->context, "expected", "is for models and graphs only");
  if (call->options.definitions)
    return field_error(request->context, "definitions",
                       "is set, and tensor programs are compared with the interpreter");
  request->options.lower.guards = !r->unchecked;
  if (!kernels_check_sizes(request->context, &request->kernels, r->shapes, (int)r->shape_count) ||
      !check_kernel_names(call) ||
      !kernels_prove_bounds(request->context, &request->kernels, &request->options.lower))
    return false;
  KernelCode *code = make_code(call);
  if (!code) return false;
  call->task->pool = make_pool(request);
  Text text = text_new(&call->results);
  for (int i = 0; i < request->kernels.count; i++)
    if (!run_kernel(call, code, i, &text)) return false;
  call->task->data.text = text_string(&text);
  return true;
}

// ---- The call -----------------------------------------------------------------------------------

static void verify(void *arg) {
  VerifyCall *call = arg;
  RequestCall *request = &call->call;
  arena_init(&call->results, request->context);
  if (!read_options(call)) return;
  set_arrays(call);
  request->all_kernels = true;
  if (!request_load(request)) return;
  call->task = new_task(call);
  if (!(request->graph ? run_model : run_kernels)(call)) return;
  verify_finish(call->task);
  verify_task_release(call->task);
  const PleatVerification *data = &call->task->data;
  call->result = result_new(&call->results, data, sizeof *data);
  call->done = true;
}

int pleat_verify(const PleatRequest *request, const PleatVerifyOptions *options,
                 PleatVerification **verification, PleatMessages **messages) {
  if (!verification)
    return messages_refuse("verification", "is NULL, expected where to store it", messages);
  VerifyCall call = {.call = {.given = request}, .given = options};
  int status = request_run(&call.call, verify, &call.done, messages);
  arena_free(&call.results);
  if (status != PLEAT_OK) result_free(call.result);
  *verification = status == PLEAT_OK ? call.result : NULL;
  return status;
}

void pleat_verification_free(PleatVerification *verification) {
  result_free(verification);
}
