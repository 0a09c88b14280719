// SPDX-License-Identifier: Apache-2.0
// Reads what a request names: an ONNX model, or a graph or tensor program of TVMScript, with the
// options for compiling it.
#include "api/load.h"

#include <stdlib.h>

#include "api/messages.h"
#include "base/caller.h"
#include "base/contents.h"
#include "config.h"
#include "driver/tuning.h"
#include "graph/graph.h"
#include "script/script.h"

#if PLEAT_HAVE_ONNX
#include "frontend/onnx/onnx.h"
#endif

// ---- Call-backs ---------------------------------------------------------------------------------

void request_progress(RequestCall *call, const char *what, int done, int all) {
  const PleatRequest *request = &call->request;
  messages_log(request, call->context, &call->logged);
  if (request->progress && request->progress(request->hook_env, what, done, all))
    context_cancel(call->context);
  context_poll(call->context);
}

static void report_progress(void *env, const char *what, int done, int all) {
  request_progress(env, what, done, all);
}

static bool caller_cancels(void *env) {
  const PleatRequest *request = &((const RequestCall *)env)->request;
  return request->cancel(request->hook_env) != 0;
}

void request_begin_call_backs(RequestCall *call) {
  if (!call->request.cancel) return;
  call->context->cancels = caller_cancels;
  call->context->cancels_env = call;
}

// ---- Models -------------------------------------------------------------------------------------

static bool find_machine(RequestCall *call, HostMachine *machine) {
  const PleatRequest *request = &call->request;
  bool (*const use)(HostMachine *, const char *) = call->runs_nothing ? machine_use : machine_limit;
  *machine = machine_probe();
  if (request->cpu && !use(machine, request->cpu))
    return diag_error_as(call->context, DIAG_OPTION, (SourcePos){0},
                         "cpu '%s': this machine has no more than %s", request->cpu,
                         machine_probe().level_name);
  return threads_read(call->context, request->threads, &machine->threads);
}

static bool has_layout(const PleatRequest *r, const char *name) {
  size_t n = strlen(name);
  for (size_t i = 0; i < r->input_layout_count; i++)
    if (strncmp(r->input_layouts[i], name, n) == 0 && r->input_layouts[i][n] == '=') return true;
  return false;
}

// Leaves out the arrays of inputs with a layout, whose shapes are those of the layouts.
static void keep_logical_arrays(RequestCall *call) {
  OnnxArray *kept = arena_array(&call->context->arena, OnnxArray, call->array_count);
  int count = 0;
  for (int i = 0; i < call->array_count; i++)
    if (!has_layout(&call->request, call->arrays[i].name)) kept[count++] = call->arrays[i];
  call->arrays = kept;
  call->array_count = count;
}

#if PLEAT_HAVE_ONNX
// A copy of the known contents, which runs compare with what they receive.
static ConstData *known_data(RequestCall *call, const PleatNamedTensor *known) {
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

static bool may_be_open(const RequestCall *call) {
  return call->may_be_open && call->request.free_sizes && !call->request.input_layout_count;
}

// The padding of an array in a layout hides where the tensor ends.
static const char *why_closed(const RequestCall *call) {
  if (!call->may_be_open || !call->request.free_sizes || may_be_open(call)) return NULL;
  return arena_printf(
      &call->context->arena,
      "the arrays of a run do not give the sizes: with %s, they have the shapes of the "
      "layouts",
      caller_option(call->context, CALLER_INPUT_LAYOUT));
}

static GraphFunc *import(RequestCall *call, OnnxBinding *known) {
  const PleatRequest *request = &call->request;
  keep_logical_arrays(call);
  OnnxOptions options = {.shapes = request->shapes,
                         .shape_count = (int)request->shape_count,
                         .values = known,
                         .value_count = (int)request->known_count,
                         .arrays = call->arrays,
                         .array_count = call->array_count,
                         .open_sizes = may_be_open(call),
                         .why_closed = why_closed(call),
                         .bytes = request->bytes,
                         .byte_count = request->byte_count,
                         .functions = call->functions};
  for (size_t i = 0; i < request->known_count; i++) {
    known[i] = (OnnxBinding){request->known[i].name, known_data(call, &request->known[i])};
    if (!known[i].data) return NULL;
  }
  const OnnxImport *result = onnx_import(call->context, request->path, &options);
  if (result->open_inputs.count) call->open = result;
  return result->graph;
}

static bool known_fits(const ConstData *data, const Value *v) {
  bool fits = dtype_equal(data->type, v->type) && data->rank == v->rank;
  int64_t extent;
  for (int i = 0; fits && i < v->rank; i++)
    fits = !expr_as_int(v->shape[i], &extent) || extent == data->shape[i];
  return fits;
}

// Finds the known contents of an input, or NULL. False with a diagnostic when they do not fit it.
static bool find_known(const RequestCall *call, const OnnxBinding *known, const Value *v,
                       const void **contents) {
  for (size_t i = 0; i < call->request.known_count; i++) {
    const ConstData *data = known[i].data;
    if (strcmp(known[i].name, v->name) != 0) continue;
    if (!known_fits(data, v))
      return field_error(call->context, "known", "the value of '%s' is not of the input's type, %s",
                         v->name, value_type_text(call->context, v));
    if ((int64_t)data->bytes == value_static_bytes(v)) *contents = data->data;
  }
  return true;
}

static bool load_graph(RequestCall *call) {
  Arena *arena = &call->context->arena;
  OnnxBinding *known = arena_array(arena, OnnxBinding, call->request.known_count);
  GraphFunc *graph = import(call, known);
  if (!graph) return call->open != NULL;
  call->graph = graph;
  call->known = arena_array(arena, const void *, graph->param_count);
  for (int i = 0; i < graph->param_count; i++)
    if (!find_known(call, known, graph->params[i], &call->known[i])) return false;
  return true;
}
#else
static bool load_graph(RequestCall *call) {
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

static bool check_arguments(const RequestCall *call, const PlanConstraints *constraints) {
  const GraphFunc *graph = call->graph;
  for (int i = 0; i < graph->param_count; i++)
    if (!check_argument(call->context, &constraints->inputs[i], graph->params[i])) return false;
  for (int i = 0; i < graph->output_count; i++)
    if (!check_argument(call->context, &constraints->outputs[i], graph->outputs[i])) return false;
  return true;
}

static bool read_layouts(RequestCall *call, CompileOptions *options) {
  const PleatRequest *r = &call->request;
  ConstraintTexts texts = {
      .desired = {"desired_layouts", r->desired_layouts, (int)r->desired_layout_count},
      .keep = {"keep_layouts", r->keep_layouts, (int)r->keep_layout_count},
      .inputs = {"input_layouts", r->input_layouts, (int)r->input_layout_count},
      .outputs = {"output_layouts", r->output_layouts, (int)r->output_layout_count},
      .asked = {"tensor", &call->asked, call->asked != NULL},
      .policy = r->policy,
      .accuracy = r->accuracy,
      .sizes = caller_shape(call->context, "name", "1x3x224x224")};
  const GraphFunc *graph = call->graph;
  if (!constraint_texts_read(call->context, graph, &texts, options)) return false;
  for (int i = 0; i < graph->param_count; i++)
    if (call->known[i] && options->constraints->inputs[i].layout)
      return diag_error_as(call->context, DIAG_OPTION, options->constraints->inputs[i].pos,
                           "the values of '%s' are known, so no layout can be asked for it",
                           graph->params[i]->name);
  return true;
}

// ---- TVMScript ----------------------------------------------------------------------------------

// Text with a decorator. Every ONNX model has a byte that text does not have: the key of the
// version of its operators.
static bool is_script_text(const char *bytes, size_t count) {
  bool has_decorator = false;
  for (size_t i = 0; i < count; i++) {
    unsigned char byte = (unsigned char)bytes[i];
    if (byte < ' ' && !memchr("\t\n\r\f", byte, 4)) return false;
    has_decorator |= byte == '@';
  }
  return has_decorator;
}

static bool is_script(const PleatRequest *request) {
  return request->func || text_ends_with(request->path, ".py") ||
         (request->bytes && is_script_text(request->bytes, request->byte_count));
}

static Contents *contents_of(void *env, const char *name) {
  const PleatRequest *request = env;
  for (size_t i = 0; i < request->content_count; i++) {
    Contents *contents = (Contents *)request->contents[i];
    if (!strcmp(contents->name, name)) return contents;
  }
  return NULL;
}

static Module *parse_script(RequestCall *call) {
  PleatRequest *request = &call->request;
  Context *context = call->context;
  size_t size = request->byte_count;
  const char *text = request->bytes ? arena_copy(&context->arena, request->bytes, size)
                                    : file_read(context, &context->arena, request->path, &size);
  if (!text) return NULL;
  const SourceFile *file = source_file_copy(context, request->path, text, size);
  return script_parse_captured(context, file,
                               &(ScriptCapture){.contents = contents_of, .contents_env = request});
}

static bool bind_sizes(RequestCall *call, GraphFunc *graph) {
  Context *context = call->context;
  const PleatRequest *r = &call->request;
  keep_logical_arrays(call);
  int count = (int)r->shape_count + call->array_count;
  GivenSizes *given = arena_array(&context->arena, GivenSizes, count);
  for (size_t i = 0; i < r->shape_count; i++)
    if (!given_sizes_read(context, r->shapes[i], false, &given[i])) return false;
  for (int i = 0; i < call->array_count; i++) {
    const OnnxArray *array = &call->arrays[i];
    given[(int)r->shape_count + i] =
        (GivenSizes){.name = array->name,
                     .rank = array->rank,
                     .shape = array->shape,
                     .source = str_format(context, "the array given for '%s'", array->name),
                     .is_array = true,
                     .contents = array->contents};
  }
  return graph_bind_sizes(context, graph, given, count);
}

static OnnxArguments open_arguments(Context *context, Value *const *values, int count) {
  OnnxArguments arguments = {0};
  for (int i = 0; i < count; i++) {
    const Value *v = values[i];
    int64_t *shape = arena_array(&context->arena, int64_t, v->rank);
    for (int d = 0; d < v->rank; d++)
      if (!expr_as_int(v->shape[d], &shape[d])) shape[d] = ONNX_OPEN;
    int sizes;
    OnnxArgument argument = {.name = v->name,
                             .type = v->type,
                             .has_type = true,
                             .rank = v->rank,
                             .shape = shape,
                             .is_sizes = graph_size_items(v->info, &sizes) != NULL};
    array_push(&context->arena, &arguments, argument);
  }
  return arguments;
}

// The arrays of each run will give the sizes.
static void leave_open(RequestCall *call, const GraphFunc *graph) {
  OnnxImport *open = arena_new(&call->context->arena, OnnxImport);
  open->open_inputs = open_arguments(call->context, graph->params, graph->param_count);
  open->open_outputs = open_arguments(call->context, graph->outputs, graph->output_count);
  call->open = open;
}

static bool take_graph(RequestCall *call, GraphFunc *graph) {
  Context *context = call->context;
  if (call->request.known_count)
    return field_error(context, "known", "is not for TVMScript: write the values there");
  graph->functions = call->functions;
  call->known = arena_array(&context->arena, const void *, graph->param_count);
  if (!bind_sizes(call, graph)) return false;
  Str *names;
  bool is_open = graph_free_sizes(context, graph, &names) > 0;
  if (is_open && !may_be_open(call))
    return field_error(context, "shapes",
                       "does not give a value for the size '%s' of '%s'; write it as in %s",
                       names[0], graph->name, caller_size(context, names[0], 128));
  if (!module_infer_graph(context, call->module, graph)) return false;
  if (is_open)
    leave_open(call, graph);
  else
    call->graph = graph;
  return true;
}

static bool take_kernels(RequestCall *call, const Module *module) {
  const PleatRequest *r = &call->request;
  if (r->input_layout_count + r->output_layout_count + r->desired_layout_count +
      r->keep_layout_count)
    return field_error(call->context, "func", "is a tensor program, which has its own layouts");
  if (!kernels_load(call->context, r->path, module, r->func, &call->options.machine,
                    &call->kernels))
    return false;
  return call->all_kernels || call->kernels.count == 1 ||
         field_error(call->context, "func", "is not set, and %s holds %d tensor programs", r->path,
                     call->kernels.count);
}

static bool read_size(RequestCall *call, const char *text, InterpSize *size) {
  Str name;
  if (!given_size_read(call->context, text, &name, &size->value)) return false;
  size->var = kernel_find_size(&call->kernels.items[0], name);
  return size->var || field_error(call->context, "shapes", "'%s' is not a free size of '%s'", name,
                                  call->kernels.items[0].func->name);
}

bool request_sizes(RequestCall *call, InterpSize **sizes) {
  const PleatRequest *request = &call->request;
  *sizes = arena_array(&call->context->arena, InterpSize, request->shape_count);
  bool ok = true;
  for (size_t i = 0; i < request->shape_count; i++)
    ok &= read_size(call, request->shapes[i], &(*sizes)[i]);
  return ok;
}

static bool load_script(RequestCall *call) {
  Module *module = parse_script(call);
  if (!module) return false;
  call->module = module;
  if (call->request.func && !*call->request.func) call->request.func = NULL;
  GraphFunc *graph;
  if (!module_choose(call->context, call->request.path, module, call->request.func, &graph))
    return false;
  return graph ? take_graph(call, graph) : take_kernels(call, module);
}

// ---- Operators ----------------------------------------------------------------------------------

// ---- Requests -----------------------------------------------------------------------------------

bool caller_read(Context *context, const char *language) {
  bool is_python = language && !strcmp(language, "python");
  context->caller = is_python ? CALLER_PYTHON : CALLER_C;
  return !language || is_python || !strcmp(language, "c") ||
         field_error(context, "language", "is '%s', expected c or python", language);
}

bool request_begin(RequestCall *call) {
  return request_read(call->context, call->given, &call->request) &&
         caller_read(call->context, call->request.language);
}

bool request_load(RequestCall *call) {
  Context *context = call->context;
  CompileOptions *options = &call->options;
  if (!request_begin(call)) return false;
  request_begin_call_backs(call);
  options->progress = report_progress;
  options->progress_env = call;
  options->quick = call->request.quick != 0;
  options->offload = call->request.offload;
  const char *tuning = call->request.tuning;
  if (tuning && !(options->tuning = tuning_read(context, tuning))) return false;
  request_progress(call, "reading", 0, 1);
  if (!call->request.no_cache) options->cache = cache_open(context);
  if (!find_machine(call, &options->machine) ||
      !compile_use_target(context, call->device ? call->device : call->request.target, options))
    return false;
  const PleatRequest *r = &call->request;
  if (!operators_read(context, r->operators, r->operator_count, &call->functions)) return false;
  bool script = is_script(&call->request);
  if (!script && request_find(call)) return true;
  if (!(script ? load_script : load_graph)(call)) return false;
  return !call->graph ||
         (read_layouts(call, options) && check_arguments(call, options->constraints));
}

int request_run(RequestCall *call, void (*body)(void *call), const bool *done,
                PleatMessages **messages) {
  call->context = context_new();
  if (!call->context) return messages_no_memory(messages);
  bool finished = context_protect(call->context, body, call);
  call->context->cancels = NULL;
  messages_log(&call->request, call->context, &call->logged);
  int status = messages_take(call->context, finished && *done, messages);
  context_free(call->context);
  return status;
}
