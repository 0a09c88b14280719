// SPDX-License-Identifier: Apache-2.0
// `pleat compile`: writes a model or kernels as a file: a saved model, native code, C with a
// header, or the tensor programs as TVMScript.
#include "cli/kernel.h"
#include "cli/saved.h"
#include "cli/summary.h"

typedef struct CompileCommand {
  ModelOptions model; // must be first, see MODEL_OPTIONS
  EmitOptions emit;
} CompileCommand;

static const Option options[] = {
    MODEL_OPTIONS,
    LOWER_OPTIONS,
    KNOWN_INPUT_OPTION,
    {"target", 0, OPTION_TEXT, "llvm|c|opencl|cuda", "code generator (by the ending of the output)",
     offsetof(CompileCommand, emit.target)},
    {"emit-weights", 0, OPTION_TEXT, "inside|beside",
     "where weights go (inside up to 1 MiB, otherwise beside, as FILE.weights)",
     offsetof(CompileCommand, emit.weights)},
    {"openmp", 0, OPTION_FLAG, NULL, "C: parallel loops for -fopenmp",
     offsetof(CompileCommand, emit.openmp)},
    {"annotate", 0, OPTION_FLAG, NULL, "TVMScript, .ll, .s: logical accesses of flat ones, as in C",
     offsetof(CompileCommand, emit.annotate)},
    {"lowered", 0, OPTION_FLAG, NULL, "TVMScript: as lowered, not as scheduled",
     offsetof(CompileCommand, emit.lowered)},
};

// ---- Kernels ----------------------------------------------------------------------------------

static void show_kernels(Cli *cli, const Kernels *kernels, const LowerReport *lower,
                         const TargetReport *target, const CompileOptions *compile) {
  SlowPaths paths = {.arena = &cli->context->arena};
  if (!strcmp(cli->output, "-")) return;
  for (int i = 0; i < kernels->count; i++) {
    const Kernel *kernel = &kernels->items[i];
    const char *name = kernel->func->name;
    printf("%-15s %s\n", name, kernel_signature(cli, kernel));
    if (kernel->choice.slow) slow_paths_add(&paths, kernel->choice.slow, name);
    slow_paths_add_reports(&paths, name, &lower[i], &target[i]);
    slow_paths_add_notes(&paths, name, &lower[i]);
  }
  printf("code            %s, in %s\n", target_runs_on(compile->target, &compile->machine),
         cli->output);
  slow_paths_print(&paths);
}

// Refuses options about the sizes and contents of a kernel's parameters, which stay free.
static bool kernels_are_open(Cli *cli, const CompileCommand *o) {
  const GivenOption rows[] = {{"--input-shape", o->model.input_shapes.count > 0},
                              {"--dim", o->model.dims.count > 0},
                              {"--input", o->model.inputs.count > 0}};
  return cli_refuse(cli, rows, COUNT_OF(rows),
                    "kernels are written for all sizes and contents of their parameters");
}

// Refuses options about passes where kernels are written as TVMScript before they are lowered.
static bool lowers_kernels(Cli *cli, const CompileCommand *o) {
  const GivenOption rows[] = {{"--print-ir-after", o->model.print_after != NULL},
                              {"--verify-each", o->model.verify_each}};
  if (o->emit.lowered || !text_ends_with(cli->output, ".py")) return true;
  return cli_refuse(cli, rows, COUNT_OF(rows),
                    "kernels are written as they are scheduled, and no pass runs; give --lowered");
}

static bool compile_kernels(Cli *cli, const CompileCommand *o, const Module *module) {
  Context *context = cli->context;
  CompileOptions compile = {.lower = {.print_after = o->model.print_after,
                                      .verify_each = o->model.verify_each,
                                      .guards = !o->model.unchecked}};
  Kernels kernels = {0};
  if (!emit_check(context, EMIT_KERNELS, &o->emit, cli->output) || !lowers_kernels(cli, o) ||
      !kernels_are_open(cli, o) || !cli_check_pass(cli, "--print-ir-after", o->model.print_after) ||
      !model_target(cli, &o->model, &compile) ||
      !kernels_load(context, cli->inputs.items[0], module, o->model.func, &compile.machine,
                    &kernels) ||
      !kernels_prove_bounds(context, &kernels, &compile.lower))
    return false;
  LowerReport *lower = arena_array(&context->arena, LowerReport, kernels.count);
  TargetReport *target = arena_array(&context->arena, TargetReport, kernels.count);
  compile.lower.report = lower;
  if (!emit_kernels(context, &kernels, &o->emit, &compile, target, cli->output)) return false;
  if (!text_ends_with(cli->output, ".py")) show_kernels(cli, &kernels, lower, target, &compile);
  return true;
}

// ---- Models -----------------------------------------------------------------------------------

static bool compile_model(Cli *cli, const CompileCommand *o, const GraphFunc *graph) {
  int64_t start = clock_now_ns();
  if (!emit_check(cli->context, EMIT_PROGRAM, &o->emit, cli->output)) return false;
  Program *program = model_build(cli, graph, &o->model, NULL);
  if (!program || !emit_program(program, &o->emit, cli->output)) return false;
  if (text_ends_with(cli->output, ".py") || !strcmp(cli->output, "-")) return true;
  double seconds = (double)(clock_now_ns() - start) * 1e-9;
  summary_print_program(cli, program, seconds);
  return true;
}

static bool compile_file(Cli *cli, const CompileCommand *o, const ModelFile *file) {
  const GraphFunc *graph = file->graph;
  bool saved = text_ends_with(cli->output, ".pleat");
  if (graph && saved)
    return emit_check(cli->context, EMIT_SAVED, &o->emit, cli->output) &&
           saved_compile(cli, graph, &o->model);
  if (graph) return compile_model(cli, o, graph);
  if (saved)
    return diag_error_as(cli->context, DIAG_UNSUPPORTED, (SourcePos){0},
                         "-o %s: %s holds kernels, and only models can be saved; write a .so",
                         cli->output, cli->inputs.items[0]);
  return compile_kernels(cli, o, file->module);
}

// The target that is given, or the device whose files end so.
static const char *target_of_output(const char *given, const char *path) {
  const TargetRow *row = target_for_file(path);
  return !given && row && target_is_device(row) ? row->name : given;
}

static int run(Cli *cli, void *given) {
  CompileCommand *o = given;
  const char *path = cli->inputs.items[0];
  if (!cli->output) {
    diag_error_as(cli->context, DIAG_OPTION, (SourcePos){0},
                  "compile needs -o FILE; its ending says what to write");
    return STATUS_MISUSE;
  }
  ModelFile file;
  o->model.target = target_of_output(o->emit.target, cli->output);
  bool done = model_open(cli, path, &o->model, &file) && compile_file(cli, o, &file);
  return done ? STATUS_DONE : STATUS_BAD;
}

const Command command_compile = {
    .name = "compile",
    .arguments = "MODEL|KERNEL.py -o FILE",
    .summary = "write a saved model, native code, C or TVMScript, by the ending of the output",
    .example = "  $ pleat compile examples/digits/digits.onnx -o digits.pleat   # for `pleat run`\n"
               "  $ pleat compile examples/digits/digits.onnx -o digits.c\n"
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
