// SPDX-License-Identifier: Apache-2.0
// Compiles a graph or a kernel for this process, runs it and measures it.
#include "cli/kernel.h"

#include <math.h>

static double seconds_since(int64_t start) {
  return (double)(clock_now_ns() - start) * 1e-9;
}

// ---- Tensors ----------------------------------------------------------------------------------

static Tensor *make_input(Session *s, const InputContents *contents, int number) {
  const Value *value = s->graph->params[number];
  Tensor *tensor = cli_given_array(s->cli, &contents->given, value->name);
  if (tensor || s->cli->context->error_count) return tensor;
  if (!contents->fill) {
    diag_error(s->cli->context, (SourcePos){0},
               "input '%s' has no contents\ngive --input %s=file.npy, or --fill random",
               value->name, value->name);
    return NULL;
  }
  tensor = model_tensor_as(s->cli, value, s->constraints->inputs[number].layout);
  if (!tensor) return NULL;
  if (strcmp(contents->fill, "random") == 0)
    tensor_fill_random(tensor, (uint64_t)(contents->seed + number));
  else
    memset(tensor->data, 0, (size_t)tensor_bytes(tensor));
  return tensor;
}

static bool make_tensors(Session *s, const InputContents *contents) {
  Arena *arena = &s->cli->context->arena;
  s->input_count = s->graph->param_count;
  s->output_count = s->graph->output_count;
  s->inputs = arena_array(arena, Tensor *, s->input_count);
  s->outputs = arena_array(arena, Tensor *, s->output_count);
  s->output_names = arena_array(arena, const char *, s->output_count);
  if (!model_check_inputs(s->cli, &contents->given, s->graph)) return false;
  for (int i = 0; i < s->input_count; i++)
    if (!(s->inputs[i] = make_input(s, contents, i))) return false;
  for (int i = 0; i < s->output_count; i++) {
    s->output_names[i] = s->graph->outputs[i]->name;
    const Layout *layout = s->constraints->outputs[i].layout;
    s->outputs[i] = model_tensor_as(s->cli, s->graph->outputs[i], layout);
    if (!s->outputs[i]) return false;
  }
  return true;
}

// ---- Running ----------------------------------------------------------------------------------

static void release(void *arg) {
  Session *s = arg;
  thread_pool_free(s->pool);
  executable_free(s->executable);
  compiled_program_release(s->compiled);
  kernel_code_free(s->kernel_code);
}

Session *session_new(Cli *cli, const ModelOptions *model) {
  Session *s = arena_new(&cli->context->arena, Session);
  *s = (Session){.cli = cli, .model = model, .start_ns = clock_now_ns()};
  context_at_free(cli->context, release, s);
  return s;
}

bool session_ready(Session *s) {
  s->code_seconds = seconds_since(s->start_ns);
  s->pool = thread_pool_new(s->machine.threads);
  return s->pool || diag_error(s->cli->context, (SourcePos){0}, "the threads could not be started");
}

bool session_begin(Session *s, const GraphFunc *graph, const InputContents *contents) {
  CompileOptions asked = {0};
  s->graph = graph;
  if (!graph || !model_constraints(s->cli, graph, s->model, &asked)) return false;
  s->constraints = asked.constraints;
  if (!make_tensors(s, contents)) return false;
  s->program =
      (s->keep_kernels ? model_build : model_build_to_run)(s->cli, graph, s->model, &asked);
  s->compiled = s->program ? program_compile(s->program, &s->target) : NULL;
  if (!s->compiled) return false;
  s->machine = s->program->options.machine;
  s->summary = model_summary_of(s->program);
  s->executable = executable_of(s->cli->context, s->compiled);
  return s->executable && session_ready(s);
}

enum { MOST_RUNS = 1000000, MOST_PROFILED = 1000 };

static bool run_once(Session *s, int64_t *step_ns) {
  if (s->kernel_code) return kernel_code_run(s->kernel_code, 0, s->pool, s->kernel_args);
  if (step_ns) return executable_profile(s->executable, s->pool, s->inputs, s->outputs, step_ns);
  return executable_run(s->executable, s->pool, s->inputs, s->outputs);
}

// The profiled run whose time is nearest to the median.
static int typical_run(const Session *s, const double *samples, int count) {
  int best = 0;
  for (int i = 1; i < count; i++)
    if (fabs(samples[i] - s->latency.median) < fabs(samples[best] - s->latency.median)) best = i;
  return best;
}

bool session_measure(Session *s, int64_t repeat, bool profile) {
  Arena *arena = &s->cli->context->arena;
  s->runs = (int)MIN_OF(MAX_OF(repeat, 1), MOST_RUNS);
  double *samples = arena_array(arena, double, s->runs);
  int profiled = profile && s->compiled ? MIN_OF(s->runs, MOST_PROFILED) : 0; // kernels: 1 step
  int steps = s->compiled ? s->compiled->step_count : 0;
  int64_t *step_ns = arena_array(arena, int64_t, (int64_t)profiled *steps + 1);
  int64_t start = clock_now_ns();
  if (!run_once(s, profiled ? step_ns : NULL)) return false;
  samples[0] = seconds_since(start);
  s->first_seconds = seconds_since(s->start_ns);
  if (s->runs > 1) memset(step_ns, 0, sizeof *step_ns * (size_t)(profiled ? steps : 0));
  Progress progress = progress_begin("measuring", s->runs);
  for (int i = 0; s->runs > 1 && i < s->runs; i++) {
    start = clock_now_ns();
    if (!run_once(s, i < profiled ? step_ns + (int64_t)i * steps : NULL)) return false;
    samples[i] = seconds_since(start);
    progress_step(&progress, i + 1);
  }
  progress_end(&progress);
  double *sorted = arena_copy(arena, samples, sizeof *samples * (size_t)s->runs);
  s->latency = spread_of(sorted, s->runs);
  if (profiled) {
    int typical = typical_run(s, samples, profiled);
    s->step_ns = step_ns + (int64_t)typical * steps;
    s->profiled_seconds = samples[typical];
  }
  return true;
}

// ---- Figures ----------------------------------------------------------------------------------

int session_threads(const Session *s) {
  return s->machine.threads;
}

double session_operations(const Session *s) {
  double count = 0;
  if (s->kernel) return prim_func_operations(s->kernel->func);
  for (int i = 0; i < s->compiled->step_count; i++) count += s->compiled->steps[i].operations;
  return count;
}

int64_t session_bytes(const Session *s) {
  int64_t bytes = s->compiled ? s->compiled->weight_bytes : 0;
  for (int i = 0; i < s->input_count; i++) bytes += tensor_bytes(s->inputs[i]);
  for (int i = 0; i < s->output_count && !s->kernel; i++) bytes += tensor_bytes(s->outputs[i]);
  return bytes;
}

double session_peak(const Session *s) {
  return machine_fma_peak(&s->machine, 0.05) * session_threads(s);
}
