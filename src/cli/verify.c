// SPDX-License-Identifier: Apache-2.0
// `pleat verify`: compares compiled code with the reference (report/verify.h), with the inputs and
// the test data that the user gives, up to the first value that differs; reduces a model that
// differs.
#include "cli/kernel.h"
#include "cli/reduce.h"
#include "cli/test_data.h"
#include "report/verify.h"

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
    TARGET_OPTION,
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
  CompileOptions asked;    // the layouts and the policy that the user asks for
  TestData data;           // contents of the files; all zeros when there are none
  int sets;                // number of sets of test data compared
  VerifyTask *task;
  Progress progress;
} Checking;

static const VerifyOptions defaults = {.tolerance = {-1, -1, -1}};

// ---- Inputs -----------------------------------------------------------------------------------

// Test data are row-major, arrays of --input have the caller's layout.
static bool set_input(Checking *s, int number) {
  VerifyTask *v = s->task;
  const Value *value = v->graph->params[number];
  Tensor *tensor = test_data_tensor(s->cli, &s->data, value);
  if (tensor) return verify_set_input(v, number, tensor);
  if (!s->cli->context->error_count &&
      (tensor = cli_given_array(s->cli, &s->options->model.inputs, value->name,
                                dtype_name(s->cli->context, value->type))))
    return verify_give_input(v, number, tensor);
  return !s->cli->context->error_count && verify_fill_input(v, number, s->options->seed + number);
}

// Loads the graph and its tensors, with test data from `folder` unless it is NULL.
static bool load(Checking *s, const char *folder) {
  const ModelOptions *model = &s->options->model;
  VerifyTask *v = s->task;
  if (folder && !test_data_load(s->cli, s->path, folder, model, &s->data)) return false;
  v->graph = folder ? s->data.graph : s->script ? s->script : model_load(s->cli, s->path, model);
  if (!v->graph || !model_check_inputs(s->cli, &model->inputs, v->graph)) return false;
  s->asked = (CompileOptions){0};
  if (!model_constraints(s->cli, v->graph, model, &s->asked)) return false;
  v->constraints = s->asked.constraints;
  v->expected = s->data.expected;
  v->expected_from = s->data.folder;
  if (!verify_set_outputs(v)) return false;
  for (int i = 0; i < v->graph->param_count; i++)
    if (!set_input(s, i)) return false;
  return true;
}

// ---- The whole check ---------------------------------------------------------------------------

// Warns when the interpreter will take long; it does some five million operations a second.
static void warn_of_time(const Program *program) {
  const StageGraph *stages = program->plan->stages;
  double seconds = 0;
  for (int i = 0; i < stages->stages.count; i++)
    seconds += stage_operations(stages->stages.items[i]) * 2e-7;
  if (seconds > 60)
    fprintf(stderr,
            "note: the interpreter takes about %.0f minutes for this; "
            "--against definitions takes seconds\n",
            seconds / 60);
}

static void show_checking(void *env, int done, int all) {
  (void)all;
  progress_step(&((Checking *)env)->progress, done);
}

static bool compare(Checking *s) {
  VerifyTask *v = s->task;
  v->program = model_build(s->cli, v->graph, &s->options->model, &s->asked);
  if (!v->program) return false;
  v->pool = thread_pool_new(v->program->options.machine.threads);
  v->progress = show_checking;
  v->env = s;
  if (!v->definitions) warn_of_time(v->program);
  s->progress = progress_begin("checking", v->program->steps.count);
  bool agrees = verify_model(v);
  progress_end(&s->progress);
  if (!agrees && v->data.differs)
    diag_error(s->cli->context, verify_position(v), "%s", verify_difference(v, v->data.differs));
  return agrees;
}

// Compares all sets of test data, up to the first that differs.
static bool compare_all(Checking *s) {
  StringList folders = {0};
  const char *path = s->options->test_data;
  if (!path) return load(s, NULL) && compare(s);
  if (!test_data_folders(s->cli, path, &folders)) return false;
  for (int i = 0; i < folders.count; i++, s->sets++) {
    if (!load(s, folders.items[i]) || !compare(s)) return false;
    verify_task_release(s->task);
  }
  return true;
}

static int show(const Checking *s, bool agrees) {
  const Cli *cli = s->cli;
  verify_finish(s->task);
  if (cli->json) json_print(s->cli, verify_json(&s->task->data, s->sets));
  if (!cli->json && agrees)
    printf("%s: %sagrees%s %s\n", s->path, cli_paint(cli, COLOUR_GREEN),
           cli_paint(cli, COLOUR_NONE), verify_agreement(s->task, s->sets));
  return agrees ? STATUS_DONE : STATUS_BAD;
}

// ---- Parts of the model ------------------------------------------------------------------------

typedef struct PartCheck {
  Checking *checking;
  bool differs;
} PartCheck;

// A task with the options of the command.
static VerifyTask *new_task(Cli *cli, const VerifyOptions *o) {
  VerifyTask *v = verify_task_new(cli->context);
  v->tolerance = o->tolerance;
  v->definitions = o->against && !strcmp(o->against, "definitions");
  return v;
}

static void check_part(void *env) {
  PartCheck *part = env;
  Checking *s = part->checking;
  s->task = new_task(s->cli, s->options);
  part->differs = !compare_all(s) && s->task->data.kernel;
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
  context_free(cli.context);
  return fine && part.differs;
}

static void reduce(Checking *s) {
  if (!s->task->data.kernel || !s->options->reduce) return;
  reduce_model(&(Reduction){.cli = s->cli,
                            .path = s->path,
                            .folder = s->options->reduce,
                            .graph = s->task->graph,
                            .reference = &s->task->reference,
                            .value = s->task->differs,
                            .differs = part_differs,
                            .env = s});
}

// `script` is the graph function of a TVMScript file; NULL: the file is a model.
static int verify_file(Cli *cli, const VerifyOptions *o, const GraphFunc *script) {
  Checking *s = arena_new(&cli->context->arena, Checking);
  *s = (Checking){.cli = cli, .options = o, .path = cli->inputs.items[0], .script = script};
  s->task = new_task(cli, o);
  bool agrees = compare_all(s);
  if (!agrees) reduce(s);
  return show(s, agrees);
}

// ---- Kernels ----------------------------------------------------------------------------------

typedef struct KernelCheck {
  Cli *cli;
  const VerifyOptions *options;
  const Module *module;
  HostMachine machine;
  ThreadPool *pool;
  KernelCode *code;
} KernelCheck;

static void release_kernels(void *arg) {
  KernelCheck *k = arg;
  thread_pool_free(k->pool);
  kernel_code_free(k->code);
}

static void show_kernel(const KernelCheck *k, const Kernel *kernel, const VerifyTask *v) {
  const Cli *cli = k->cli;
  printf("%s: '%s' %sagrees%s %s\n", cli->inputs.items[0], kernel->func->name,
         cli_paint(cli, COLOUR_GREEN), cli_paint(cli, COLOUR_NONE),
         verify_kernel_agreement(v, kernel, 0));
}

// Each kernel has a task of its own, which borrows the pool.
static bool check_kernel(KernelCheck *k, const Kernel *kernel, int number) {
  Cli *cli = k->cli;
  InputContents contents = {k->options->model.inputs, "random", k->options->seed};
  KernelArguments arguments;
  if (!kernel_make_arguments(cli, kernel, &contents, model_sizes(cli, &k->options->model), true,
                             &arguments))
    return false;
  VerifyTask *v = new_task(cli, k->options);
  v->pool = k->pool;
  bool agrees = verify_kernel(v, k->module, kernel, k->code, number, arguments.args);
  v->pool = NULL;
  if (v->data.differs)
    diag_error(cli->context, kernel->func->pos, "%s", verify_difference(v, v->data.differs));
  if (agrees && !cli->json) show_kernel(k, kernel, v);
  return agrees;
}

static bool begin_kernels(KernelCheck *k, Kernels *kernels) {
  Context *context = k->cli->context;
  CompileOptions compile = {.lower = {.print_after = k->options->model.print_after,
                                      .verify_each = k->options->model.verify_each,
                                      .guards = !k->options->model.unchecked},
                            .cache = cli_cache(k->cli)};
  context_at_free(context, release_kernels, k);
  if (!cli_check_pass(k->cli, "--print-ir-after", k->options->model.print_after) ||
      !model_target(k->cli, &k->options->model, &compile))
    return false;
  k->machine = compile.machine;
  if (!kernels_load(context, k->cli->inputs.items[0], k->module, k->options->model.func,
                    &k->machine, kernels) ||
      !kernels_prove_bounds(context, kernels, &compile.lower) ||
      !kernels_check_given(k->cli, kernels, &k->options->model.inputs,
                           model_sizes(k->cli, &k->options->model)))
    return false;
  PrimFunc **funcs = arena_array(&context->arena, PrimFunc *, kernels->count);
  for (int i = 0; i < kernels->count; i++) funcs[i] = kernels->items[i].scheduled;
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
  for (int i = 0; i < kernels.count; i++) agree &= check_kernel(k, &kernels.items[i], i);
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
  return verify_file(cli, given, file.graph);
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
