// SPDX-License-Identifier: Apache-2.0
// `pleat compile`: writes a model or kernels as a file: native code, C with a header, or the tensor
// programs as TVMScript.
#include "cli/kernel.h"
#include "cli/summary.h"

#include "script/script.h"

enum { WEIGHTS_INSIDE = 1 << 20 }; // weights up to this size are part of the code file by default

typedef struct CompileCommand {
  ModelOptions model; // must be first, see MODEL_OPTIONS
  const char *target, *weights, *func;
  bool openmp, lowered;
} CompileCommand;

static const Option options[] = {
    MODEL_OPTIONS,
    FUNC_OPTION(CompileCommand, func),
    {"target", 0, OPTION_TEXT, "llvm|c", "code generator (by the ending of the output)",
     offsetof(CompileCommand, target)},
    {"emit-weights", 0, OPTION_TEXT, "inside|beside",
     "where weights go (inside up to 1 MiB, otherwise NAME.weights)",
     offsetof(CompileCommand, weights)},
    {"openmp", 0, OPTION_FLAG, NULL, "C: parallel loops for -fopenmp",
     offsetof(CompileCommand, openmp)},
    {"lowered", 0, OPTION_FLAG, NULL, "TVMScript: as lowered, not as scheduled",
     offsetof(CompileCommand, lowered)},
};

static bool ends_with(const char *s, const char *ending) {
  size_t n = strlen(s), m = strlen(ending);
  return n >= m && strcmp(s + n - m, ending) == 0;
}

static const TargetRow *choose_target(Cli *cli, const CompileCommand *o) {
  const TargetRow *row = o->target ? target_find(o->target) : target_for_file(cli->output);
  if (row) return row;
  diag_error(cli->context, (SourcePos){0},
             "-o %s: its ending says what to write: .so, .o, .s, .ll, .c or .py", cli->output);
  return NULL;
}

// ---- TVMScript --------------------------------------------------------------------------------

static bool write_module(Cli *cli, const Module *module) {
  Text text = text_new(&cli->context->arena);
  script_print_module(cli->context, module, &text, NULL);
  return file_write(cli->context, cli->output, text_string(&text), text.size);
}

// Writes every kernel once, named k0, k1, … as in profiles.
static bool write_script(Cli *cli, const CompileCommand *o, const Program *program) {
  Module *module = module_new(cli->context, "");
  for (int i = 0; i < program->steps.count; i++) {
    const ProgramStep *step = &program->steps.items[i];
    if (step->plan->same_as >= 0) continue;
    PrimFunc *func = o->lowered ? program->kernels.items[step->kernel]->func
                                : schedule_func(step->plan->choice.schedule);
    func = prim_func_copy(cli->context, func);
    func->name = str_format(cli->context, "k%d", step->kernel);
    module_add_prim(module, func);
  }
  return write_module(cli, module);
}

// ---- Kernels ----------------------------------------------------------------------------------

// Writes the kernels as scheduled, or with --lowered as the code generators read them.
static bool write_kernel_script(Cli *cli, const Kernels *kernels) {
  Module *module = module_new(cli->context, "");
  for (int i = 0; i < kernels->count; i++) module_add_prim(module, kernels->items[i].scheduled);
  return write_module(cli, module);
}

static LowerKernel *lower_scheduled(Cli *cli, const CompileCommand *o, Kernel *kernel,
                                    LowerReport *report) {
  LowerOptions lower = {
      .print_after = o->model.print_after, .verify_each = o->model.verify_each, .report = report};
  PrimFunc *func = lower_prim_func(cli->context, kernel->scheduled, &lower);
  if (!func) return NULL;
  kernel->scheduled = func;
  return lower_kernel_new(cli->context, func);
}

static void show_kernels(Cli *cli, const Kernels *kernels, const LowerReport *lower,
                         const TargetReport *target, const HostMachine *machine) {
  SlowPaths paths = {.arena = &cli->context->arena};
  if (!strcmp(cli->output, "-")) return;
  for (int i = 0; i < kernels->count; i++) {
    const Kernel *kernel = &kernels->items[i];
    const char *name = kernel->func->name;
    printf("%-15s %s\n", name, kernel_signature(cli, kernel));
    if (kernel->choice.slow) slow_paths_add(&paths, kernel->choice.slow, name);
    slow_paths_add_reports(&paths, name, &lower[i], &target[i]);
  }
  printf("code            %s, in %s\n", machine->level_name, cli->output);
  slow_paths_print(&paths);
}

static bool compile_kernels(Cli *cli, const CompileCommand *o, const Module *module) {
  Context *context = cli->context;
  bool script = ends_with(cli->output, ".py");
  HostMachine machine;
  Kernels kernels = {0};
  const TargetRow *row = script ? NULL : choose_target(cli, o);
  if ((!script && !row) || !cli_check_pass(cli, "--print-ir-after", o->model.print_after) ||
      !cli_machine(cli, &machine) || !kernels_load(cli, module, o->func, &machine, &kernels))
    return false;
  LowerKernel **lowered = arena_array(&context->arena, LowerKernel *, kernels.count);
  LowerReport *reports = arena_array(&context->arena, LowerReport, kernels.count);
  const uint8_t **access = arena_array(&context->arena, const uint8_t *, kernels.count);
  for (int i = 0; i < kernels.count && (!script || o->lowered); i++) {
    access[i] = kernels.items[i].access;
    if (!(lowered[i] = lower_scheduled(cli, o, &kernels.items[i], &reports[i]))) return false;
  }
  if (script) return write_kernel_script(cli, &kernels);
  TargetProgramOptions options = {.target = {.machine = &machine}, .openmp = o->openmp};
  options.target.kernels = arena_array(&context->arena, TargetReport, kernels.count);
  if (!kernels_write(context, lowered, access, kernels.count, row, &options, cli->output))
    return false;
  show_kernels(cli, &kernels, reports, options.target.kernels, &machine);
  return true;
}

// ---- Models -----------------------------------------------------------------------------------

static bool compile_model(Cli *cli, const CompileCommand *o, const GraphFunc *graph) {
  int64_t start = clock_now_ns();
  bool script = ends_with(cli->output, ".py");
  const TargetRow *row = script ? NULL : choose_target(cli, o);
  Program *program = script || row ? model_build(cli, graph, &o->model) : NULL;
  if (!program) return false;
  if (script) return write_script(cli, o, program);
  bool beside = o->weights ? !strcmp(o->weights, "beside") : program->weight_bytes > WEIGHTS_INSIDE;
  TargetProgramOptions write = {.target = {.machine = &program->options.machine},
                                .weights_beside = beside,
                                .openmp = o->openmp};
  write.target.kernels = program->target_reports;
  if (!program_write(program, row, &write, cli->output)) return false;
  if (!strcmp(cli->output, "-")) return true;
  summary_print_model(cli, cli->inputs.items[0], program, (double)(clock_now_ns() - start) * 1e-9,
                      cli->output);
  SlowPaths paths = slow_paths_of(program);
  slow_paths_print(&paths);
  return true;
}

static int run(Cli *cli, void *given) {
  const CompileCommand *o = given;
  const char *path = cli->inputs.items[0];
  if (!cli->output) {
    diag_error(cli->context, (SourcePos){0},
               "compile needs -o FILE; its ending says what to write");
    return STATUS_MISUSE;
  }
  Module *module = model_is_script(path) ? script_load(cli, path) : NULL;
  GraphFunc *graph = module ? module_graph(module) : NULL;
  if (graph && !graph_infer(cli->context, graph)) return STATUS_BAD;
  if (!model_is_script(path)) graph = model_load(cli, path, &o->model);
  bool done = graph ? compile_model(cli, o, graph) : module && compile_kernels(cli, o, module);
  return done ? STATUS_DONE : STATUS_BAD;
}

const Command command_compile = {
    .name = "compile",
    .arguments = "MODEL|KERNEL.py -o FILE",
    .summary = "write native code, C or TVMScript, by the ending of the output",
    .example = "  $ pleat compile examples/digits/digits.onnx -o digits.c\n"
               "  $ cc -O2 -march=native -c digits.c      # digits.h says how to call it\n"
               "  $ pleat compile examples/kernels/matmul.py -o matmul.so\n",
    .takes = TAKES_OUTPUT | TAKES_THREADS | TAKES_CPU | TAKES_CACHE,
    .runs_nothing = true,
    .options = options,
    .option_count = COUNT_OF(options),
    .options_size = sizeof(CompileCommand),
    .least_inputs = 1,
    .most_inputs = 1,
    .run = run,
};
