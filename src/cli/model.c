// SPDX-License-Identifier: Apache-2.0
// Loads and compiles models, and makes their tensors, for the subcommands.
#include "cli/model.h"

#include "cli/saved.h"

#include "base/fields.h"
#include "config.h"
#include "driver/operators.h"
#include "driver/tuning.h"
#include "graph/graph.h"
#include "script/script.h"

#include "frontend/onnx/onnx.h"

#include <dlfcn.h>

// ---- Options ----------------------------------------------------------------------------------

static bool gives(const char *given, const char *name) {
  size_t n = strlen(name);
  return strncmp(given, name, n) == 0 && given[n] == '=';
}

const StringList *model_sizes(Cli *cli, const ModelOptions *options) {
  StringList *sizes = arena_new(&cli->context->arena, StringList);
  for (int i = 0; i < options->input_shapes.count; i++)
    array_push(&cli->context->arena, sizes, options->input_shapes.items[i]);
  for (int i = 0; i < options->dims.count; i++)
    array_push(&cli->context->arena, sizes, options->dims.items[i]);
  return sizes;
}

// The name of one of several modules in a path such as kernels.py:Module; NULL where it has none.
static const char *module_in(const char *path) {
  const char *colon = strrchr(path, ':');
  bool has_name = colon && colon - path > 3 && !strncmp(colon - 3, ".py", 3);
  return has_name ? colon + 1 : NULL;
}

bool model_is_script(const char *path) {
  return strcmp(path, "-") == 0 || text_ends_with(path, ".py") || module_in(path);
}

SourceFile *script_read(Cli *cli, const char *path) {
  Context *context = cli->context;
  const char *module = module_in(path);
  if (module) path = str_intern_n(context, path, (size_t)(module - path - 1));
  size_t size;
  char *text = file_read(context, &context->arena, path, &size);
  const char *name = strcmp(path, "-") == 0 ? "<stdin>" : path;
  if (text && memchr(text, 0, size)) {
    diag_error(context, source_file_pos(context, name),
               "is not text, expected TVMScript\n"
               "check, inspect, plan, run, verify, compile and bench take models, as files");
    return NULL;
  }
  SourceFile *file = text ? source_file_new(context, name, text, size) : NULL;
  if (file && module) file->module = str_intern(context, module);
  return file;
}

Module *script_load(Cli *cli, const char *path) {
  SourceFile *file = script_read(cli, path);
  return file ? script_parse(cli->context, file) : NULL;
}

// ---- Arrays of --input -------------------------------------------------------------------------

typedef struct GivenArray {
  Str name; // of the input
  Tensor *tensor;
  const char *path;
} GivenArray;
typedef Array(GivenArray) GivenArrays;

static bool has_layout(const ModelOptions *options, const char *name) {
  for (int i = 0; i < options->input_layouts.count; i++)
    if (gives(options->input_layouts.items[i], name)) return true;
  return false;
}

// Reads the arrays of `--input`, and leaves out those of inputs with an `--input-layout`, whose
// shapes are those of the layouts. False with diagnostics when a file cannot be read.
static bool read_arrays(Cli *cli, const ModelOptions *options, GivenArrays *arrays) {
  Arena *arena = &cli->context->arena;
  if (!cli->arrays) cli->arrays = arena_new(arena, Map);
  *cli->arrays = map_new(arena);
  for (int i = 0; i < options->inputs.count; i++) {
    const char *given = options->inputs.items[i], *equals = strchr(given, '=');
    if (!equals) continue; // model_check_inputs reports it
    Str name = str_intern_n(cli->context, given, (size_t)(equals - given));
    Tensor *tensor = tensor_keep(cli->context, npy_read(cli->context, equals + 1));
    if (!tensor) return false;
    map_put(cli->arrays, given, tensor);
    if (!has_layout(options, name))
      array_push(arena, arrays, ((GivenArray){name, tensor, equals + 1}));
  }
  return true;
}

// ---- TVMScript ----------------------------------------------------------------------------------

static bool read_sizes(Cli *cli, const StringList *texts, bool is_size, GivenSizes *given) {
  for (int i = 0; i < texts->count; i++)
    if (!given_sizes_read(cli->context, texts->items[i], is_size, &given[i])) return false;
  return true;
}

static bool check_free_sizes(Cli *cli, const GraphFunc *graph) {
  Str *names;
  int count = graph_free_sizes(cli->context, graph, &names);
  Text text = text_new(&cli->context->arena);
  for (int i = 0; i < count; i++) text_printf(&text, " --dim %s=1", names[i]);
  return !count || diag_error_as(cli->context, DIAG_OPTION, graph->pos,
                                 "'%s' has %d size%s without a value\ngive%s, or arrays that have "
                                 "%s",
                                 graph->name, count, count == 1 ? "" : "s", text_string(&text),
                                 count == 1 ? "it" : "them");
}

// The contents of an array that may be a size or a shape; NULL: it is none.
static const int64_t *size_contents(const Tensor *tensor) {
  const ElementType index = {ELEMENT_INT, 64, 1};
  bool fits = tensor->rank <= 1 && element_type_equal(tensor->type, index);
  return fits && tensor_is_compact(tensor) ? tensor_data(tensor) : NULL;
}

bool model_bind_sizes(Cli *cli, const ModelOptions *options, GraphFunc *graph, bool all) {
  int shapes = options->input_shapes.count, dims = options->dims.count;
  GivenArrays arrays = {0};
  if (!read_arrays(cli, options, &arrays)) return false;
  GivenSizes *given = arena_array(&cli->context->arena, GivenSizes, shapes + dims + arrays.count);
  if (!read_sizes(cli, &options->input_shapes, false, given) ||
      !read_sizes(cli, &options->dims, true, given + shapes))
    return false;
  for (int i = 0; i < arrays.count; i++) {
    const GivenArray *array = &arrays.items[i];
    given[shapes + dims + i] = (GivenSizes){.name = array->name,
                                            .rank = array->tensor->rank,
                                            .shape = array->tensor->shape,
                                            .source = array->path,
                                            .is_array = true,
                                            .contents = size_contents(array->tensor)};
  }
  return graph_bind_sizes(cli->context, graph, given, shapes + dims + arrays.count) &&
         (!all || check_free_sizes(cli, graph));
}

// The functions of a library that --operators names are added to the list.
static bool add_functions(Cli *cli, const char *path, PtrArray *list) {
  void *library =
      dlopen(strchr(path, '/') ? path : arena_printf(&cli->context->arena, "./%s", path),
             RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return diag_error_as(cli->context, DIAG_FILE, (SourcePos){0}, "--operators: %s", dlerror());
  PleatOperatorList find;
  *(void **)&find = dlsym(library, "pleat_operators");
  if (!find)
    return diag_error_as(cli->context, DIAG_FILE, (SourcePos){0},
                         "--operators: %s has no function pleat_operators; see PleatOperatorList "
                         "in pleat.h",
                         path);
  size_t count = 0;
  const PleatOperator *const *items = find(&count);
  if (!field_array_check(cli->context, path, items, count)) return false;
  for (size_t i = 0; i < count; i++) array_push(&cli->context->arena, list, (void *)items[i]);
  return true;
}

bool model_functions(Cli *cli, const ModelOptions *options, const OpaqueFunctions **functions) {
  PtrArray list = {0};
  for (int i = 0; i < options->operators.count; i++)
    if (!add_functions(cli, options->operators.items[i], &list)) return false;
  return operators_read(cli->context, (const PleatOperator *const *)list.items, (size_t)list.count,
                        functions);
}

#if PLEAT_HAVE_ONNX
// A constant over the memory of a tensor.
static ConstData *tensor_contents(Context *context, Str name, const Tensor *tensor) {
  const char *type = element_type_name(tensor->type);
  ConstData *data = arena_new(&context->arena, ConstData);
  *data = (ConstData){.name = name,
                      .rank = tensor->rank,
                      .shape = tensor->shape,
                      .data = tensor->data,
                      .bytes = (size_t)tensor_bytes(tensor)};
  return dtype_parse(type, strlen(type), &data->type) ? data : NULL;
}

GraphFunc *model_import(Cli *cli, const char *path, const OnnxOptions *import) {
  return onnx_import(cli->context, path, import)->graph;
}

bool model_import_options(Cli *cli, const ModelOptions *options, OnnxOptions *import) {
  Arena *arena = &cli->context->arena;
  GivenArrays given = {0};
  if (!read_arrays(cli, options, &given)) return false;
  OnnxArray *arrays = arena_array(arena, OnnxArray, given.count);
  OnnxBinding *values = arena_array(arena, OnnxBinding, given.count);
  const OpaqueFunctions *functions;
  if (!model_functions(cli, options, &functions)) return false;
  *import = (OnnxOptions){.shapes = options->input_shapes.items,
                          .shape_count = options->input_shapes.count,
                          .dims = options->dims.items,
                          .dim_count = options->dims.count,
                          .arrays = arrays,
                          .array_count = given.count,
                          .values = values,
                          .functions = functions};
  for (int i = 0; i < given.count; i++) {
    const GivenArray *array = &given.items[i];
    const Tensor *tensor = array->tensor;
    arrays[i] = (OnnxArray){array->name, tensor->shape, tensor->rank, array->path, NULL};
    ConstData *data = tensor_contents(cli->context, array->name, tensor);
    if (data) values[import->value_count++] = (OnnxBinding){array->name, data};
  }
  return true;
}
#else
GraphFunc *model_import(Cli *cli, const char *path, const OnnxOptions *import) {
  diag_error_as(cli->context, DIAG_UNSUPPORTED, (SourcePos){0}, "%s: this build cannot read ONNX",
                path);
  return NULL;
}

bool model_import_options(Cli *cli, const ModelOptions *options, OnnxOptions *import) {
  *import = (OnnxOptions){0};
  return true;
}
#endif

bool model_read(Cli *cli, const char *path, const ModelOptions *options, int64_t assumed_size,
                LoadedModel *model) {
  if (saved_named(path))
    return diag_error_as(cli->context, DIAG_FILE,
                         (SourcePos){.file = source_file_new(cli->context, path, NULL, 0)},
                         "is a saved model, which run, bench and inspect take; give the ONNX file "
                         "that it was made of");
#if PLEAT_HAVE_ONNX
  OnnxOptions onnx;
  model->graph = NULL;
  if (!model_import_options(cli, options, &onnx)) return false;
  onnx.open_sizes = assumed_size == MODEL_OPEN;
  onnx.assumed_size = onnx.open_sizes ? 0 : assumed_size;
  const OnnxImport *import = onnx_import(cli->context, path, &onnx);
  *model = (LoadedModel){.graph = import->graph,
                         .operators = import->operators,
                         .node_count = import->node_count,
                         .opset = import->opset,
                         .lacks_sizes = import->lacks_sizes,
                         .assumed = import->assumed,
                         .open = import->open_inputs.count ? import : NULL};
  if (model->open) return cli->context->error_count == 0;
  return import->graph && model_check_inputs(cli, &options->inputs, import->graph);
#else
  return diag_error_as(cli->context, DIAG_UNSUPPORTED, (SourcePos){0},
                       "%s: this build cannot read ONNX", path);
#endif
}

bool model_refuse_choices(Cli *cli, const ModelOptions *options, const char *why) {
  const GivenOption rows[] = {
      {"--desired-layout", options->desired.count},
      {"--keep-layout", options->keep.count},
      {"--input-layout", options->input_layouts.count},
      {"--output-layout", options->output_layouts.count},
      {"--policy", options->policy != NULL},
      {"--accuracy", options->accuracy != NULL},
      {"--offload", options->offload != NULL},
      {"--tuning", options->tuning != NULL},
      {"--runner-up", options->runner_up != 0},
  };
  return cli_refuse(cli, rows, COUNT_OF(rows), why);
}

// Refuses the options that are for graphs.
static bool refuse_layouts(Cli *cli, const char *path, const ModelOptions *options) {
  const GivenOption operators = {"--operators", options->operators.count};
  const char *why = arena_printf(&cli->context->arena,
                                 "%s holds tensor programs, which state their own layouts; the "
                                 "option is for models and graph functions",
                                 path);
  bool fits = model_refuse_choices(cli, options, why);
  return cli_refuse(cli, &operators, 1, why) && fits;
}

static bool open_script(Cli *cli, const char *path, const ModelOptions *options, ModelFile *file) {
  file->module = script_load(cli, path);
  if (!file->module ||
      !module_choose(cli->context, path, file->module, options->func, &file->graph))
    return false;
  if (!file->graph) return refuse_layouts(cli, path, options);
  return model_check_graph(cli, options) &&
         model_functions(cli, options, &file->graph->functions) &&
         model_bind_sizes(cli, options, file->graph, true) &&
         module_infer_graph(cli->context, file->module, file->graph) &&
         model_check_inputs(cli, &options->inputs, file->graph);
}

bool model_check_graph(Cli *cli, const ModelOptions *options) {
  const GivenOption unchecked = {"--unchecked", options->unchecked};
  return cli_refuse(cli, &unchecked, 1, "is for tensor programs; a graph has no such checks");
}

bool model_open(Cli *cli, const char *path, const ModelOptions *options, ModelFile *file) {
  LoadedModel model;
  *file = (ModelFile){0};
  if (model_is_script(path)) return open_script(cli, path, options, file);
  if (options->func)
    return diag_error_as(cli->context, DIAG_OPTION, (SourcePos){0},
                         "--func %s: %s is a model; the option is for TVMScript", options->func,
                         path);
  if (!model_check_graph(cli, options) || !model_read(cli, path, options, 0, &model)) return false;
  file->graph = model.graph;
  return true;
}

GraphFunc *model_load(Cli *cli, const char *path, const ModelOptions *options) {
  ModelFile file;
  if (!model_open(cli, path, options, &file)) return NULL;
  if (file.graph) return file.graph;
  if (options->func)
    diag_error_as(cli->context, DIAG_OPTION, (SourcePos){0},
                  "--func %s: this is a tensor program, and a graph function (@R.function) is "
                  "needed",
                  options->func);
  else
    diag_error(cli->context, (SourcePos){0},
               "%s holds no graph function (@R.function)\n"
               "tensor programs are for check, run, verify, compile, bench and opt",
               path);
  return NULL;
}

bool cli_check_pass(Cli *cli, const char *option, const char *name) {
  if (!name || strcmp(name, "all") == 0 || lower_pass_find(name)) return true;
  return diag_error_as(cli->context, DIAG_OPTION, (SourcePos){0},
                       "%s: there is no pass '%s'%s\n'pleat opt --list' prints the passes", option,
                       name, lower_pass_suggestion(cli->context, name));
}

typedef struct Shown {
  Progress progress;
} Shown;

static void show_progress(void *env, const char *what, int done, int all) {
  Shown *shown = env;
  shown->progress.what = what;
  shown->progress.total = all;
  progress_step(&shown->progress, done);
}

bool model_constraints(Cli *cli, const GraphFunc *graph, const ModelOptions *options,
                       CompileOptions *compile) {
  const StringList *desired = &options->desired, *keep = &options->keep;
  const StringList *inputs = &options->input_layouts, *outputs = &options->output_layouts;
  ConstraintTexts texts = {.desired = {"--desired-layout", desired->items, desired->count},
                           .keep = {"--keep-layout", keep->items, keep->count},
                           .inputs = {"--input-layout", inputs->items, inputs->count},
                           .outputs = {"--output-layout", outputs->items, outputs->count},
                           .asked = {"--why", &options->asked, options->asked != NULL},
                           .policy = options->policy,
                           .accuracy = options->accuracy,
                           .sizes = "--input-shape name=1x3x224x224"};
  return constraint_texts_read(cli->context, graph, &texts, compile);
}

bool model_target(Cli *cli, const ModelOptions *options, CompileOptions *compile) {
  return cli_machine(cli, &compile->machine) &&
         compile_use_target(cli->context, options->target, compile);
}

typedef Program *(*Build)(Context *context, const GraphFunc *graph, const CompileOptions *options);

static Program *build(Cli *cli, const GraphFunc *graph, const ModelOptions *options,
                      const CompileOptions *asked, Build make, bool run_only) {
  Shown shown = {progress_begin("compiling", 1)};
  CompileOptions compile = {.progress = show_progress,
                            .offload = options->offload,
                            .runner_up = (int)MIN_OF(MAX_OF(options->runner_up, 0), 1000),
                            .progress_env = &shown,
                            .run_only = run_only,
                            .cache = cli_cache(cli)};
  if (!cli_check_pass(cli, "--print-ir-after", options->print_after)) return NULL;
  if (!model_target(cli, options, &compile)) return NULL;
  if (asked) {
    compile.policy = asked->policy;
    compile.accuracy = asked->accuracy;
    compile.constraints = asked->constraints;
  } else if (!model_constraints(cli, graph, options, &compile)) {
    return NULL;
  }
  if (options->tuning && !(compile.tuning = tuning_read(cli->context, options->tuning)))
    return NULL;
  compile.lower.print_after = options->print_after;
  compile.lower.verify_each = options->verify_each;
  compile.only_kernel = options->only_kernel;
  Program *program = make(cli->context, graph, &compile);
  progress_end(&shown.progress);
  if (program && options->verify_each)
    diag_note(cli->context, (SourcePos){0},
              "--verify-each: no pass over the programs of %d kernels changed a result on random "
              "inputs",
              options->only_kernel ? 1 : program->steps.count);
  return program;
}

Program *model_build(Cli *cli, const GraphFunc *graph, const ModelOptions *options,
                     const CompileOptions *asked) {
  return build(cli, graph, options, asked, program_build, false);
}

Program *model_build_to_run(Cli *cli, const GraphFunc *graph, const ModelOptions *options,
                            const CompileOptions *asked) {
  return build(cli, graph, options, asked, program_build, true);
}

Program *model_plan(Cli *cli, const GraphFunc *graph, const ModelOptions *options) {
  bool lowers = options->print_after || options->verify_each;
  return build(cli, graph, options, NULL, lowers ? program_build : program_plan, false);
}

// ---- --input name=file.npy

Tensor *cli_given_array(Cli *cli, const StringList *given, const char *name, const char *type) {
  for (int i = 0; i < given->count; i++) {
    const char *text = given->items[i], *path = text + strlen(name) + 1;
    if (!gives(text, name)) continue;
    Tensor *tensor = cli->arrays ? map_find(cli->arrays, text) : NULL;
    if (!tensor) tensor = tensor_keep(cli->context, npy_read(cli->context, path));
    if (!tensor || !type || strcmp(element_type_name(tensor->type), type) == 0) return tensor;
    diag_error(cli->context, (SourcePos){0},
               "'%s', given for '%s', has element type %s, expected %s", path, name,
               element_type_name(tensor->type), type);
    return NULL;
  }
  return NULL;
}

static bool unknown_input(Cli *cli, const char *given, const char *what, const char *const *names,
                          int count) {
  const char *word = str_intern_n(cli->context, given, strcspn(given, "="));
  const char *nearest = suggestion_or_names(&cli->context->arena, word, names, count);
  if (!strchr(given, '='))
    return diag_error_as(cli->context, DIAG_OPTION, (SourcePos){0},
                         "--input %s: expected NAME=FILE.npy", given);
  return diag_error_as(cli->context, DIAG_OPTION, (SourcePos){0},
                       "--input %s: the %s has no input '%s'%s", given, what, word, nearest);
}

bool cli_check_given(Cli *cli, const StringList *given, const char *what, const char *const *names,
                     int count) {
  for (int i = 0; i < given->count; i++) {
    bool known = false;
    for (int j = 0; j < count; j++) known |= gives(given->items[i], names[j]);
    if (!known) unknown_input(cli, given->items[i], what, names, count);
  }
  return cli->context->error_count == 0;
}

bool model_check_inputs(Cli *cli, const StringList *given, const GraphFunc *graph) {
  const char **names = arena_array(&cli->context->arena, const char *, graph->param_count);
  for (int i = 0; i < graph->param_count; i++) names[i] = graph->params[i]->name;
  return cli_check_given(cli, given, "model", names, graph->param_count);
}
