// SPDX-License-Identifier: Apache-2.0
// `pleat run`: compiles a model or a kernel for this machine, runs it, and prints a short summary.
#include "cli/kernel.h"
#include "cli/saved.h"
#include "cli/summary.h"
#include "cli/trace.h"

#include <jansson.h>

typedef struct RunOptions {
  ModelOptions model; // must be first, see MODEL_OPTIONS
  const char *fill, *trace;
  int64_t seed, repeat;
  bool profile;
} RunOptions;

static const Option options[] = {
    MODEL_OPTIONS,
    LOWER_OPTIONS,
    TARGET_OPTION,
    INPUT_OPTION,
    {"fill", 0, OPTION_TEXT, "random|zero", "contents of the inputs not given",
     offsetof(RunOptions, fill)},
    {"seed", 0, OPTION_INT, "N", "the seed of the random contents", offsetof(RunOptions, seed)},
    {"repeat", 0, OPTION_INT, "N", "runs to measure; 0: one, as without it",
     offsetof(RunOptions, repeat)},
    {"runner-up", 0, OPTION_INT, "N",
     "take the N-th schedule of each reduction behind the one that is predicted to be the fastest",
     offsetof(RunOptions, model.runner_up)},
    {"trace", 0, OPTION_TEXT, "T.json", "write which thread ran what and when, for Perfetto",
     offsetof(RunOptions, trace)},
    {"profile", 0, OPTION_FLAG, NULL, "time of each kernel, beside what the machine could do",
     offsetof(RunOptions, profile)},
};

static bool save(const Session *s, FileSet *files) {
  Arena *arena = &s->cli->context->arena;
  NamedTensor *named = arena_array(arena, NamedTensor, s->output_count);
  for (int i = 0; i < s->output_count; i++)
    named[i] = (NamedTensor){s->output_names[i], s->outputs[i]};
  return npz_write(s->cli->context, files, s->cli->output, named, s->output_count);
}

// ---- Summary ----------------------------------------------------------------------------------

static void show_latency(const Session *s) {
  Arena *arena = &s->cli->context->arena;
  int threads = session_threads(s);
  printf("latency         %s median   %s p10   %s p90   (%d thread%s, %d run%s)",
         show_seconds(arena, s->latency.median), show_seconds(arena, s->latency.p10),
         show_seconds(arena, s->latency.p90), threads, threads == 1 ? "" : "s", s->runs,
         s->runs == 1 ? "" : "s");
  double peak = s->runs > 1 ? session_peak(s) : 0, work = session_operations(s);
  if (peak > 0) printf("   %.0f %% of the FMA peak", work / s->latency.median / peak * 1e-7);
  printf("\n");
}

static void show_slow_paths(const Session *s) {
  SlowPaths paths = {.arena = &s->cli->context->arena};
  if (s->summary) {
    paths = s->summary->slow;
  } else if (s->compiled) {
    for (int i = 0; i < s->compiled->step_count; i++)
      if (s->compiled->steps[i].slow)
        slow_paths_add(&paths, s->compiled->steps[i].slow, s->compiled->steps[i].name);
  } else {
    const char *name = s->kernel->func->name;
    if (s->kernel->choice.slow) slow_paths_add(&paths, s->kernel->choice.slow, name);
    slow_paths_add_reports(&paths, name, &s->lower_report, &s->target);
    slow_paths_add_notes(&paths, name, &s->lower_report);
  }
  slow_paths_print(&paths);
}

static void show_kernel(const Session *s, const char *name) {
  Arena *arena = &s->cli->context->arena;
  const Kernel *kernel = s->kernel;
  printf("%s%-14s%s  %s: %s\n", cli_paint(s->cli, COLOUR_BOLD), name,
         cli_paint(s->cli, COLOUR_NONE), kernel->func->name, kernel_signature(s->cli, kernel));
  if (kernel->why_written)
    printf("schedule        as written: %s\n", kernel->why_written);
  else
    printf("schedule        %d steps by the auto-scheduler\n",
           schedule_step_count(kernel->choice.schedule));
  printf("code            %s, %s\n", session_runs_on(s), show_seconds(arena, s->code_seconds));
}

static void show_summary(const Session *s, const char *path) {
  if (s->kernel)
    show_kernel(s, path_file_name(path));
  else if (!s->summary)
    saved_show(s->cli, path, s->compiled, s->code_seconds);
  else
    summary_print_model(s->cli, path, s->summary, s->code_seconds,
                        s->program ? NULL : "from the cache");
  show_latency(s);
  show_slow_paths(s);
}

// ---- Details ----------------------------------------------------------------------------------

static void show_values(const Session *s) {
  enum { SHOWN = 8 };
  for (int i = 0; i < s->output_count; i++) {
    const Tensor *t = s->outputs[i];
    int64_t count = tensor_count(t);
    printf("%-15s [", s->output_names[i]);
    for (int64_t j = 0; j < MIN_OF(count, SHOWN); j++)
      printf("%s%.6g", j ? " " : "", element_get(t->type, tensor_element(t, j)));
    if (count > SHOWN) printf(" … %lld values", (long long)count);
    printf("]\n");
  }
}

static int show_json(const Session *s, bool profile) {
  json_t *object = json_pack("{s:{s:f, s:f, s:f}, s:f, s:I, s:i, s:b}", "latency_ms", "median",
                             s->latency.median * 1e3, "p10", s->latency.p10 * 1e3, "p90",
                             s->latency.p90 * 1e3, "first_result_s", s->first_seconds,
                             "peak_memory_bytes", (json_int_t)process_peak_bytes(), "threads",
                             session_threads(s), "cached", s->summary && !s->program);
  profile_add_json(profile ? &session_profile(s)->data : NULL, object);
  return json_print(s->cli, object);
}

// Traces runs after the measured ones, so that tracing does not disturb the measurement and the
// code is warm.
static bool trace(Session *s, FileSet *files, const char *path) {
  Trace *trace = trace_new(s);
  for (int i = 0; i < s->runs; i++)
    if (!trace_call(trace)) return false;
  return trace_write(trace, files, path);
}

// Writes what --trace and --output ask for: both files or none.
static bool write_results(Session *s, const RunOptions *o) {
  FileSet *files = file_set_new(s->cli->context);
  return file_set_end(files, (!o->trace || trace(s, files, o->trace)) &&
                                 (!s->cli->output || save(s, files)));
}

static const RunOptions defaults = {.seed = -1};

// Refuses options that have no effect beside others.
static bool check_options(Cli *cli, const RunOptions *o) {
  const GivenOption seed = {"--seed", o->seed >= 0};
  const GivenOption reports[] = {{"--json", cli->json}, {"--profile", o->profile}};
  bool random = o->fill && strcmp(o->fill, "random") == 0;
  bool only_arrays = cli->output && strcmp(cli->output, "-") == 0;
  if (cli->output && text_ends_with(cli->output, ".npy"))
    return diag_error_as(cli->context, DIAG_OPTION, (SourcePos){0},
                         "--output %s: the outputs are written as an archive of arrays, NAME.npz",
                         cli->output);
  return (random || cli_refuse(cli, &seed, 1, "is for the contents of --fill random")) &&
         (!only_arrays || cli_refuse(cli, reports, COUNT_OF(reports),
                                     "standard output has the arrays of -o - alone"));
}

static int run_file(Session *s, const RunOptions *o) {
  const char *path = s->cli->inputs.items[0];
  if (o->trace && !file_can_write(s->cli->context, o->trace)) return STATUS_BAD;
  InputContents contents = {o->model.inputs, o->fill, MAX_OF(o->seed, 0)};
  if (!session_begin_file(s, path, &contents)) return STATUS_BAD;
  if (!session_measure(s, o->repeat, o->profile)) return STATUS_BAD;
  session_keep(s);
  if (!write_results(s, o)) return STATUS_BAD;
  if (s->cli->output && strcmp(s->cli->output, "-") == 0) return STATUS_DONE; // no other result
  if (s->cli->json) return show_json(s, o->profile);
  show_summary(s, path);
  if (o->profile) printf("\n%s", profile_text(&s->cli->context->arena, session_profile(s)));
  if (!s->cli->output) show_values(s);
  return STATUS_DONE;
}

static int run(Cli *cli, void *given) {
  const RunOptions *o = given;
  if (!check_options(cli, o)) return STATUS_BAD;
  return run_file(session_new(cli, &o->model), o);
}

const Command command_run = {
    .name = "run",
    .arguments = "MODEL|KERNEL.py|SAVED.pleat",
    .summary = "compile a model or a kernel for this machine and run it",
    .example =
        "  $ pleat run examples/digits/digits.onnx --fill random --repeat 200\n"
        "  digits.onnx     9 Conv · 9 BatchNormalization · 7 Relu · 3 Add · 5 others      36.9 "
        "KiB of weights\n"
        "  plan            4 layouts · 0 rewrites at run time · 29 folded · best of those looked "
        "at, 11 fusions were decided before planning\n"
        "  code            13 kernels, avx512, 991 ms             arena 10.2 KiB\n"
        "  latency         4.96 us median   4.92 us p10   5.07 us p90   (1 thread, 200 "
        "runs)   42 % of the FMA peak\n"
        "  slow paths      none\n"
        "  probabilities   [0.0142556 0.0121603 0.0172471 0.599698 0.00290577 0.0162721 … "
        "10 values]\n"
        "  $ pleat run examples/kernels/matmul.py --fill random -o product.npz --trace "
        "trace.json\n",
    .takes = TAKES_JSON | TAKES_OUTPUT | TAKES_THREADS | TAKES_CPU | TAKES_CACHE,
    .options = options,
    .option_count = COUNT_OF(options),
    .options_size = sizeof(RunOptions),
    .defaults = &defaults,
    .least_inputs = 1,
    .most_inputs = 1,
    .run = run,
};
