// SPDX-License-Identifier: Apache-2.0
// `pleat verify`: runs compiled code together with the reference, and compares every value of the
// graph that reaches memory, kernel by kernel and at logical indices. Stops at the first value that
// differs.
#include "cli/kernel.h"
#include "cli/reduce.h"
#include "cli/test_data.h"
#include "driver/reference.h"

#include <jansson.h>

typedef struct VerifyOptions {
  ModelOptions model; // must be first, see MODEL_OPTIONS
  const char *test_data, *against, *reduce;
  int64_t seed;
  Tolerance tolerance;
} VerifyOptions;

static const Option options[] = {
    MODEL_OPTIONS,
    LOWER_OPTIONS,
    INPUT_OPTION,
    {"seed", 0, OPTION_INT, "N", "the seed of the random contents of other inputs",
     offsetof(VerifyOptions, seed)},
    {"test-data", 0, OPTION_TEXT, "DIR",
     "a folder of input_N.pb and output_N.pb, or of test_data_set_N",
     offsetof(VerifyOptions, test_data)},
    {"against", 0, OPTION_TEXT, "interpreter|definitions",
     "what to compare with: definitions are unscheduled code, faster on large models",
     offsetof(VerifyOptions, against)},
    {"reduce", 0, OPTION_TEXT, "DIR",
     "write the smallest part of the model that still differs there, with its inputs",
     offsetof(VerifyOptions, reduce)},
    {"rtol", 0, OPTION_NUMBER, "X", "relative difference allowed (1e-4); 0 is exact",
     offsetof(VerifyOptions, tolerance.rtol)},
    {"atol", 0, OPTION_NUMBER, "X", "absolute difference allowed (1e-5 of the largest element)",
     offsetof(VerifyOptions, tolerance.atol)},
    {"max-ulp", 0, OPTION_INT, "N",
     "or a difference of N steps between floating-point numbers; 0 is exact",
     offsetof(VerifyOptions, tolerance.max_ulp)},
};

typedef struct Checking {
  Cli *cli;
  const VerifyOptions *options;
  const char *path;
  const GraphFunc *script; // of a TVMScript file; NULL: the file is a model
  const GraphFunc *graph;
  Program *program;
  Executable *executable;
  ThreadPool *pool;
  CompileOptions asked;      // the layouts and the policy that the user asks for
  Tensor **inputs;           // row-major
  Tensor **given, **outputs; // in the caller's layouts
  TestData data;             // contents of the files; all zeros when there are none
  int sets;                  // number of sets of test data compared
  Reference reference;
  Progress progress;
  int compared; // number of tensors compared
  double largest;
  const char *largest_at, *differs_at; // names of values
  const Value *differs;                // a value that a kernel wrote
  const char *cause;                   // the part of the compiler at fault; NULL: unknown
  Difference difference;
} Checking;

static const VerifyOptions defaults = {.tolerance = {-1, -1, -1}};

// ---- Inputs -----------------------------------------------------------------------------------

static Tensor *make_input(Checking *s, int number) {
  const Value *value = s->graph->params[number];
  Tensor *tensor = test_data_tensor(s->cli, &s->data, value);
  if (tensor || s->cli->context->error_count) return tensor;
  if ((tensor = cli_given_array(s->cli, &s->options->model.inputs, value->name)))
    return model_unpack(s->cli, value, s->asked.constraints->inputs[number].layout, tensor);
  if (s->cli->context->error_count || !(tensor = model_tensor(s->cli, value))) return NULL;
  tensor_fill_random(tensor, (uint64_t)(s->options->seed + number));
  return tensor;
}

// Loads the graph and its tensors, with test data from `folder` unless it is NULL.
static bool load(Checking *s, const char *folder) {
  Arena *arena = &s->cli->context->arena;
  const ModelOptions *model = &s->options->model;
  if (folder && !test_data_load(s->cli, s->path, folder, model, &s->data)) return false;
  s->graph = folder ? s->data.graph : s->script ? s->script : model_load(s->cli, s->path, model);
  if (!s->graph || !model_check_inputs(s->cli, &s->options->model.inputs, s->graph)) return false;
  s->asked = (CompileOptions){0};
  if (!model_constraints(s->cli, s->graph, model, &s->asked)) return false;
  s->inputs = arena_array(arena, Tensor *, s->graph->param_count);
  s->given = arena_array(arena, Tensor *, s->graph->param_count);
  s->outputs = arena_array(arena, Tensor *, s->graph->output_count);
  for (int i = 0; i < s->graph->param_count; i++) {
    const PlanConstraint *constraint = &s->asked.constraints->inputs[i];
    if (!(s->inputs[i] = make_input(s, i))) return false;
    s->given[i] = model_pack(s->cli, s->graph->params[i], constraint->layout, s->inputs[i]);
    if (!s->given[i]) return false;
  }
  for (int i = 0; i < s->graph->output_count; i++) {
    const Layout *layout = s->asked.constraints->outputs[i].layout;
    s->outputs[i] = model_tensor_as(s->cli, s->graph->outputs[i], layout);
    if (!s->outputs[i]) return false;
  }
  return true;
}

// ---- Comparing --------------------------------------------------------------------------------

// The index of an element from its row-major number: "[2, 0, 5]".
static const char *index_of(Arena *arena, const int64_t *shape, int rank, int64_t flat) {
  int64_t index[TENSOR_MAX_RANK];
  for (int i = rank - 1; i >= 0; flat /= shape[i--]) index[i] = flat % shape[i];
  Text text = text_new(arena);
  for (int i = 0; i < rank; i++) text_printf(&text, "%s%lld", i ? ", " : "", (long long)index[i]);
  return arena_printf(arena, "[%s]", text_string(&text));
}

static const char *index_text(Checking *s, const Value *value, int64_t flat) {
  int64_t shape[TENSOR_MAX_RANK];
  value_static_shape(value, shape);
  return index_of(&s->cli->context->arena, shape, value->rank, flat);
}

static const char *kernel_text(Checking *s, int step) {
  Context *context = s->cli->context;
  const PlanKernel *kernel = s->program->steps.items[step].plan;
  Text text = text_new(&context->arena);
  text_printf(&text, "kernel %d '%s':", step + 1, kernel->name);
  for (int i = 0; i < kernel->params.count; i++) {
    const StageTensor *tensor = kernel->params.items[i];
    text_printf(&text, "%s %s %s",
                i == kernel->params.count - 1 ? " ->"
                : i                           ? ","
                                              : "",
                plan_tensor_name(tensor),
                plan_layout_name(context, tensor, kernel->choice.layouts[i]));
  }
  return text_string(&text);
}

static bool note_result(Checking *s, const Value *value, bool agrees,
                        const Difference *difference) {
  s->compared++;
  if (!s->largest_at || difference->largest > s->largest) {
    s->largest = difference->largest;
    s->largest_at = value->name;
  }
  if (agrees) return true;
  s->difference = *difference;
  s->differs_at = value->name;
  return false;
}

static const char *allowed(const Checking *s) {
  return tolerance_text(&s->cli->context->arena, &s->options->tolerance);
}

static bool report(Checking *s, const Value *value, int step, const char *reference) {
  const Difference *d = &s->difference;
  SourcePos pos = value->producer ? value->producer->pos : value->pos;
  diag_error(s->cli->context, pos,
             "'%s'%s is %.9g, but %.9g by %s (%lld of %lld elements differ, "
             "this one most)\n"
             "they should agree %s%s%s%s%s",
             value->name, index_text(s, value, d->index), d->actual, d->expected, reference,
             (long long)d->mismatches, (long long)d->count, allowed(s),
             step >= 0 ? "\nall before it agree; it is written by " : "",
             step >= 0 ? kernel_text(s, step) : "", s->cause ? "\nthe difference comes from " : "",
             s->cause ? s->cause : "");
  return false;
}

static const char *reference_name(const Checking *s) {
  return s->reference.code ? "the definitions" : "the interpreter";
}

// Compares the value that a step has written, if it is one of the graph's.
static bool check_step(void *env, int step) {
  Checking *s = env;
  Context *context = s->cli->context;
  const PlanKernel *kernel = s->program->steps.items[step].plan;
  int last = kernel->params.count - 1;
  const StageTensor *tensor = kernel->params.items[last];
  progress_step(&s->progress, step);
  if (!tensor->value) return true;
  const void *expected = reference_value(&s->reference, tensor->value);
  const void *actual = executable_argument(s->executable, step, last);
  if (!expected) return false;
  ArenaMark mark = arena_mark(&context->scratch);
  DType type = tensor->value->type;
  int64_t bytes = value_static_bytes(tensor->value);
  if (kernel->choice.layouts[last]) {
    void *logical = arena_alloc(&context->scratch, (size_t)bytes + 1);
    layout_unpack(context, kernel->choice.layouts[last], dtype_bytes(type), actual, logical);
    actual = logical;
  }
  Difference difference;
  bool agrees = values_agree(type, expected, actual, bytes / dtype_bytes(type),
                             &s->options->tolerance, &difference);
  arena_reset(&context->scratch, mark);
  if (note_result(s, tensor->value, agrees, &difference)) return true;
  s->differs = tensor->value;
  s->cause = miscompile_locate(s->program, s->executable, step, expected, &s->options->tolerance);
  return report(s, tensor->value, step, reference_name(s));
}

static bool check_files(Checking *s) {
  for (int i = 0; s->data.expected && i < s->graph->output_count; i++) {
    const Value *value = s->graph->outputs[i];
    const ConstData *expected = s->data.expected[i];
    if (!expected) continue;
    Difference difference;
    Tensor *actual =
        model_unpack(s->cli, value, s->asked.constraints->outputs[i].layout, s->outputs[i]);
    if (!actual) return false;
    if (!test_data_type_fits(value->type, expected->type) ||
        tensor_bytes(actual) != (int64_t)expected->bytes)
      return diag_error(s->cli->context, value->pos, "'%s' has another type or shape than its file",
                        value->name);
    bool agrees = values_agree(value->type, expected->data, actual->data, tensor_count(actual),
                               &s->options->tolerance, &difference);
    if (!note_result(s, value, agrees, &difference)) return report(s, value, -1, s->data.folder);
  }
  return true;
}

// ---- The whole check ---------------------------------------------------------------------------

// Warns when the interpreter will take long; it does some five million operations a second.
static void warn_of_time(Checking *s) {
  const StageGraph *stages = s->program->plan->stages;
  double seconds = 0;
  for (int i = 0; i < stages->stages.count; i++)
    seconds += stage_operations(stages->stages.items[i]) * 2e-7;
  if (seconds > 60)
    fprintf(stderr,
            "note: the interpreter takes about %.0f minutes for this; "
            "--against definitions takes seconds\n",
            seconds / 60);
}

// Releases what the check of one set of inputs allocated.
static void release(void *arg) {
  Checking *s = arg;
  reference_end(&s->reference);
  thread_pool_free(s->pool);
  executable_free(s->executable);
  s->reference = (Reference){0};
  s->pool = NULL;
  s->executable = NULL;
}

static bool compare(Checking *s) {
  bool compiled = s->options->against && !strcmp(s->options->against, "definitions");
  s->program = model_build(s->cli, s->graph, &s->options->model, &s->asked);
  s->executable = s->program ? executable_new(s->program, NULL) : NULL;
  if (!s->executable) return false;
  s->pool = thread_pool_new(s->program->options.machine.threads);
  if (!compiled) warn_of_time(s);
  s->progress = progress_begin("checking", s->program->steps.count);
  bool ok = reference_begin(s->cli->context, s->graph, s->inputs, compiled, &s->program->options,
                            &s->reference) &&
            executable_trace(s->executable, s->pool, s->given, s->outputs, check_step, s) &&
            check_files(s);
  progress_end(&s->progress);
  return ok;
}

// Compares all sets of test data, up to the first that differs.
static bool compare_all(Checking *s) {
  StringList folders = {0};
  const char *path = s->options->test_data;
  if (!path) return load(s, NULL) && compare(s);
  if (!test_data_folders(s->cli, path, &folders)) return false;
  for (int i = 0; i < folders.count; i++, s->sets++) {
    if (!load(s, folders.items[i]) || !compare(s)) return false;
    release(s);
  }
  return true;
}

static int show_json(Checking *s, bool agrees) {
  json_t *difference = json_null();
  const Difference *d = &s->difference;
  if (s->differs_at)
    difference =
        json_pack("{s:s, s:I, s:f, s:f, s:I, s:I, s:s?}", "tensor", s->differs_at, "index",
                  (json_int_t)d->index, "expected", d->expected, "actual", d->actual, "elements",
                  (json_int_t)d->count, "differ", (json_int_t)d->mismatches, "made_by", s->cause);
  json_print(s->cli, json_pack("{s:b, s:i, s:i, s:f, s:s, s:o}", "agrees", agrees, "compared",
                               s->compared, "sets", s->sets, "largest_relative_difference",
                               s->largest, "tolerance", allowed(s), "difference", difference));
  return agrees ? STATUS_DONE : STATUS_BAD;
}

static int show_text(Checking *s) {
  const Cli *cli = s->cli;
  printf("%s: %sagrees%s with %s", s->path, cli_paint(cli, COLOUR_GREEN),
         cli_paint(cli, COLOUR_NONE), reference_name(s));
  if (s->sets) printf(" and %d set%s of test data", s->sets, s->sets == 1 ? "" : "s");
  printf(", %s: %d tensors of %d kernels", allowed(s), s->compared, s->program->steps.count);
  int inside = s->program->steps.count - s->compared;
  if (!s->sets && inside > 0)
    printf(" (%d write%s what is inside an operator)", inside, inside == 1 ? "s" : "");
  if (s->largest_at)
    printf("; at most %.2g of the largest element apart, at '%s'", s->largest, s->largest_at);
  printf("\n");
  return STATUS_DONE;
}

// ---- Parts of the model ------------------------------------------------------------------------

typedef struct PartCheck {
  Checking *checking;
  bool differs;
} PartCheck;

static void check_part(void *env) {
  PartCheck *part = env;
  part->differs = !compare_all(part->checking) && part->checking->differs;
}

// Does a part of the model differ? The part's context is its own, because its diagnostics are not
// of interest to the user.
static bool part_differs(void *env, const char *model, const char *folder) {
  const Checking *whole = env;
  VerifyOptions options = *whole->options;
  options.test_data = folder;
  options.model.inputs = options.model.input_layouts = options.model.output_layouts =
      (StringList){0};
  options.model.input_shapes = options.model.dims = (StringList){0};
  Cli cli = *whole->cli;
  cli.context = context_new();
  cli.inputs = (StringList){&model, 1, 1};
  Checking checking = {.cli = &cli, .options = &options, .path = model};
  PartCheck part = {&checking};
  bool fine = context_protect(cli.context, check_part, &part);
  release(&checking);
  context_free(cli.context);
  return fine && part.differs;
}

static void reduce(Checking *s) {
  if (!s->differs || !s->options->reduce) return;
  reduce_model(&(Reduction){.cli = s->cli,
                            .path = s->path,
                            .folder = s->options->reduce,
                            .graph = s->graph,
                            .reference = &s->reference,
                            .value = s->differs,
                            .differs = part_differs,
                            .env = s});
}

// `script` is the graph function of a TVMScript file; NULL: the file is a model.
static int verify_model(Cli *cli, const VerifyOptions *o, const GraphFunc *script) {
  Checking *s = arena_new(&cli->context->arena, Checking);
  *s = (Checking){.cli = cli, .options = o, .path = cli->inputs.items[0], .script = script};
  context_at_free(cli->context, release, s);
  bool agrees = compare_all(s);
  if (!agrees) reduce(s);
  if (cli->json) return show_json(s, agrees);
  return agrees ? show_text(s) : STATUS_BAD;
}

// ---- Kernels ----------------------------------------------------------------------------------

typedef struct KernelCheck {
  Cli *cli;
  const VerifyOptions *options;
  const Module *module;
  HostMachine machine;
  ThreadPool *pool;
  KernelCode *code;
  Difference difference; // of the parameter that differs
  double largest;
} KernelCheck;

static void release_kernels(void *arg) {
  KernelCheck *k = arg;
  thread_pool_free(k->pool);
  kernel_code_free(k->code);
}

static InterpTensor *copy_arguments(Context *context, const InterpTensor *args, int count) {
  InterpTensor *copies = arena_copy(&context->arena, args, sizeof *args * (size_t)count);
  for (int i = 0; i < count; i++) {
    size_t bytes = (size_t)interp_tensor_bytes(&args[i]);
    copies[i].data = memcpy(arena_alloc(&context->arena, bytes + 64), args[i].data, bytes);
  }
  return copies;
}

static bool report_parameter(KernelCheck *k, const PrimFunc *func, int param) {
  const Difference *d = &k->difference;
  Context *context = k->cli->context;
  const Buffer *buffer = func->buffers[param];
  int64_t shape[TENSOR_MAX_RANK];
  bool plain = buffer && !buffer->strides && expr_is_int(buffer->offset, 0) &&
               buffer->rank <= TENSOR_MAX_RANK && buffer_static_shape(buffer, shape);
  const char *index = plain ? index_of(&context->arena, shape, buffer->rank, d->index)
                            : arena_printf(&context->arena, "[%lld]", (long long)d->index);
  return diag_error(context, func->pos,
                    "'%s': %s%s is %.9g, but %.9g by the interpreter (%lld of %lld elements "
                    "differ, this one most)\nthey should agree %s",
                    func->name, buffer ? buffer->name : func->params[param]->as.var->name, index,
                    d->actual, d->expected, (long long)d->mismatches, (long long)d->count,
                    tolerance_text(&context->arena, &k->options->tolerance));
}

// Compares all parameters, so that a write to a parameter that is only read is noticed.
static bool compare_parameters(KernelCheck *k, const PrimFunc *func, const InterpTensor *expected,
                               const InterpTensor *actual) {
  for (int i = 0; i < func->param_count; i++) {
    DType type = dtype_lanes(expected[i].type, 1);
    int64_t count = interp_tensor_bytes(&expected[i]) / dtype_bytes(type);
    bool agrees = values_agree(type, expected[i].data, actual[i].data, count,
                               &k->options->tolerance, &k->difference);
    k->largest = MAX_OF(k->largest, k->difference.largest);
    if (!agrees) return report_parameter(k, func, i);
  }
  return true;
}

static bool verify_kernel(KernelCheck *k, const Kernel *kernel, int number) {
  Cli *cli = k->cli;
  const PrimFunc *func = kernel->func;
  InputContents contents = {k->options->model.inputs, "random", k->options->seed};
  KernelArguments arguments;
  if (!kernel_arguments(cli, kernel, &contents, model_sizes(cli, &k->options->model), true,
                        &arguments))
    return false;
  InterpTensor *expected = copy_arguments(cli->context, arguments.args, func->param_count);
  k->largest = 0;
  return interp_run(cli->context, k->module, func, expected, func->param_count, NULL) &&
         kernel_code_run(k->code, number, k->pool, arguments.args) &&
         compare_parameters(k, func, expected, arguments.args);
}

static void show_kernel(const KernelCheck *k, const Kernel *kernel) {
  const Cli *cli = k->cli;
  printf("%s: '%s' %sagrees%s with the interpreter, %s; at most %.2g of the largest element apart "
         "(%s)\n",
         cli->inputs.items[0], kernel->func->name, cli_paint(cli, COLOUR_GREEN),
         cli_paint(cli, COLOUR_NONE), tolerance_text(&cli->context->arena, &k->options->tolerance),
         k->largest, kernel->why_written ? "as written" : "scheduled by the auto-scheduler");
}

static bool begin_kernels(KernelCheck *k, Kernels *kernels) {
  Context *context = k->cli->context;
  CompileOptions compile = {.lower = {.print_after = k->options->model.print_after,
                                      .verify_each = k->options->model.verify_each},
                            .cache = cli_cache(k->cli)};
  context_at_free(context, release_kernels, k);
  if (!cli_check_pass(k->cli, "--print-ir-after", k->options->model.print_after) ||
      !cli_machine(k->cli, &k->machine) ||
      !kernels_load(context, k->cli->inputs.items[0], k->module, k->options->model.func,
                    &k->machine, kernels) ||
      !kernels_check_given(k->cli, kernels, &k->options->model.inputs,
                           model_sizes(k->cli, &k->options->model)))
    return false;
  PrimFunc **funcs = arena_array(&context->arena, PrimFunc *, kernels->count);
  for (int i = 0; i < kernels->count; i++) funcs[i] = kernels->items[i].scheduled;
  compile.machine = k->machine;
  k->code = kernel_code_new(context, funcs, kernels->count, &compile, NULL);
  k->pool = thread_pool_new(k->machine.threads);
  return k->code != NULL;
}

// Runs each tensor program of a file on random inputs as compiled code, and compares the results
// with the interpreter's results for the program as written.
static int verify_kernels(Cli *cli, const VerifyOptions *o, const Module *module) {
  KernelCheck *k = arena_new(&cli->context->arena, KernelCheck);
  *k = (KernelCheck){.cli = cli, .options = o, .module = module};
  Kernels kernels = {0};
  if (!begin_kernels(k, &kernels)) return STATUS_BAD;
  bool agree = true;
  for (int i = 0; i < kernels.count; i++) {
    bool agrees = verify_kernel(k, &kernels.items[i], i);
    agree &= agrees;
    if (agrees && !cli->json) show_kernel(k, &kernels.items[i]);
  }
  if (cli->json)
    json_print(cli, json_pack("{s:b, s:i, s:s}", "agrees", agree, "compared", kernels.count,
                              "tolerance", tolerance_text(&cli->context->arena, &o->tolerance)));
  return agree ? STATUS_DONE : STATUS_BAD;
}

static int run(Cli *cli, void *given) {
  const char *path = cli->inputs.items[0];
  const VerifyOptions *o = given;
  const GivenOption of_models[] = {{"--reduce", o->reduce != NULL},
                                   {"--test-data", o->test_data != NULL}};
  if (model_is_script(path) &&
      !cli_refuse(cli, of_models, COUNT_OF(of_models), "takes ONNX models, not TVMScript"))
    return STATUS_BAD;
  ModelFile file = {0};
  if (model_is_script(path) && !model_open(cli, path, &o->model, &file)) return STATUS_BAD;
  const GivenOption against = {"--against", o->against != NULL};
  if (file.module && !file.graph)
    return cli_refuse(cli, &against, 1, "tensor programs are compared with the interpreter")
               ? verify_kernels(cli, given, file.module)
               : STATUS_BAD;
  return verify_model(cli, given, file.graph);
}

const Command command_verify = {
    .name = "verify",
    .arguments = "MODEL|KERNEL.py",
    .summary = "compare compiled code with the reference, kernel by kernel",
    .example = "  $ pleat verify examples/digits/digits.onnx --max-ulp 4 --atol 1e-5\n"
               "  examples/digits/digits.onnx: agrees with the interpreter, within 1e-05 absolute "
               "or 4 ulp: 13 tensors of 13 kernels; at most 8.6e-07 of the largest element apart, "
               "at 'block3_project_out'\n",
    .takes = TAKES_JSON | TAKES_THREADS | TAKES_CPU | TAKES_CACHE,
    .options = options,
    .option_count = COUNT_OF(options),
    .options_size = sizeof(VerifyOptions),
    .defaults = &defaults,
    .least_inputs = 1,
    .most_inputs = 1,
    .run = run,
};
