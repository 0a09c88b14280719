// SPDX-License-Identifier: Apache-2.0
// Compiles a graph or a kernel for this process, runs it and measures it.
#include "cli/kernel.h"

// ---- Tensors ----------------------------------------------------------------------------------

static Tensor *make_input(Session *s, const InputContents *contents, int number) {
  const Value *value = s->graph->params[number];
  Tensor *tensor = cli_given_array(s->cli, &contents->given, value->name,
                                   dtype_name(s->cli->context, value->type));
  if (tensor || s->cli->context->error_count) return tensor;
  if (!contents->fill) {
    diag_error_as(s->cli->context, DIAG_OPTION, (SourcePos){0},
                  "input '%s' has no contents\ngive --input %s=file.npy, or --fill random",
                  value->name, value->name);
    return NULL;
  }
  tensor = value_tensor(s->cli->context, value, s->constraints->inputs[number].layout);
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
    s->outputs[i] = value_tensor(s->cli->context, s->graph->outputs[i], layout);
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

const char *session_runs_on(const Session *s) {
  return target_runs_on(s->model->target ? target_find(s->model->target) : NULL, &s->machine);
}

Session *session_new(Cli *cli, const ModelOptions *model) {
  Session *s = arena_new(&cli->context->arena, Session);
  *s = (Session){.cli = cli, .model = model, .start_ns = clock_now_ns()};
  context_at_free(cli->context, release, s);
  return s;
}

bool session_ready(Session *s) {
  s->code_seconds = clock_seconds_since(s->start_ns);
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

enum { MOST_RUNS = 1000000 };

static bool run_once(Session *s, int64_t *step_ns) {
  if (s->kernel_code) return kernel_code_run(s->kernel_code, 0, s->pool, s->kernel_args);
  if (step_ns) return executable_profile(s->executable, s->pool, s->inputs, s->outputs, step_ns);
  return executable_run(s->executable, s->pool, s->inputs, s->outputs);
}

typedef struct Measuring {
  Session *session;
  Progress progress;
} Measuring;

static bool run_measured(void *env, int64_t *step_ns) {
  return run_once(((Measuring *)env)->session, step_ns);
}

static void show_measuring(void *env, int done, int all) {
  progress_step(&((Measuring *)env)->progress, done);
}

bool session_measure(Session *s, int64_t repeat, bool profile) {
  int count = (int)MIN_OF(MAX_OF(repeat, 1), MOST_RUNS);
  Measuring measuring = {s, progress_begin("measuring", count)};
  const MeasuredRuns runs = {.count = count,
                             .steps = profile && s->compiled ? s->compiled->step_count : 0,
                             .run = run_measured,
                             .progress = show_measuring,
                             .env = &measuring};
  if (!measure_runs(s->cli->context, &runs, &s->measurement)) return false;
  progress_end(&measuring.progress);
  s->runs = count;
  s->latency = s->measurement.latency;
  s->first_seconds = (double)(s->measurement.first_end_ns - s->start_ns) * 1e-9;
  return true;
}

// A kernel is a program with one step.
static Profile *kernel_profile(const Session *s) {
  const CompiledStep step = {.name = s->kernel->func->name,
                             .slow = s->kernel->choice.slow,
                             .operations = session_operations(s),
                             .bytes = session_bytes(s)};
  int64_t ns = (int64_t)(s->latency.median * 1e9 + 0.5);
  Measurement measurement = s->measurement;
  measurement.step_ns = &ns;
  measurement.step_seconds = (double)ns * 1e-9;
  return profile_new(&s->cli->context->arena, &step, 1, &measurement, &s->machine);
}

Profile *session_profile(const Session *s) {
  if (s->kernel) return kernel_profile(s);
  return profile_new(&s->cli->context->arena, s->compiled->steps, s->compiled->step_count,
                     &s->measurement, &s->machine);
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
