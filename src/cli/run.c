// SPDX-License-Identifier: Apache-2.0
// `pleat run`: compile a model for this machine and run it.
#include "cli/model.h"

#include <jansson.h>

typedef struct RunOptions {
  ModelOptions model; // first: MODEL_OPTIONS
  StringList inputs;
  const char *fill;
  int64_t seed, repeat;
  bool profile;
} RunOptions;

static const Option options[] = {
    MODEL_OPTIONS,
    {"input", 'i', OPTION_LIST, "NAME=FILE.npy", "contents of an input",
     offsetof(RunOptions, inputs)},
    {"fill", 0, OPTION_TEXT, "random|zero", "contents of the inputs not given",
     offsetof(RunOptions, fill)},
    {"seed", 0, OPTION_INT, "N", "of the random contents", offsetof(RunOptions, seed)},
    {"repeat", 0, OPTION_INT, "N", "runs to measure", offsetof(RunOptions, repeat)},
    {"profile", 0, OPTION_FLAG, NULL, "time of each kernel", offsetof(RunOptions, profile)},
};

typedef struct Session {
  Cli *cli;
  const RunOptions *options;
  const GraphFunc *graph;
  Program *program;
  Executable *executable;
  ThreadPool *pool;
  Tensor **inputs, **outputs;
  TargetReport target;
  double build_seconds, code_seconds;
  Spread latency;
  int64_t *step_ns;
  int runs;
} Session;

// ---- Inputs

static bool make_inputs(Session *s) {
  Arena *arena = &s->cli->context->arena;
  s->inputs = arena_array(arena, Tensor *, s->graph->param_count);
  s->outputs = arena_array(arena, Tensor *, s->graph->output_count);
  if (!model_check_inputs(s->cli, &s->options->inputs, s->graph)) return false;
  bool random = s->options->fill && !strcmp(s->options->fill, "random");
  for (int i = 0; i < s->graph->param_count; i++) {
    const Value *value = s->graph->params[i];
    s->inputs[i] = model_given_input(s->cli, &s->options->inputs, value);
    if (s->cli->context->error_count) return false;
    if (s->inputs[i]) continue;
    if (!s->options->fill)
      return diag_error(s->cli->context, (SourcePos){0},
                        "input '%s' has no contents\ngive --input %s=file.npy, or --fill random",
                        value->name, value->name);
    s->inputs[i] = model_tensor(s->cli, value);
    if (!s->inputs[i]) return false;
    if (random)
      tensor_fill_random(s->inputs[i], (uint64_t)s->options->seed + (uint64_t)i);
    else
      memset(s->inputs[i]->data, 0, (size_t)tensor_bytes(s->inputs[i]));
  }
  for (int i = 0; i < s->graph->output_count; i++)
    if (!(s->outputs[i] = model_tensor(s->cli, s->graph->outputs[i]))) return false;
  return true;
}

// ---- Running

static bool compile(Session *s, const char *path) {
  int64_t start = clock_now_ns();
  s->graph = model_load(s->cli, path, &s->options->model);
  if (!s->graph || !make_inputs(s)) return false;
  s->program = model_build(s->cli, s->graph, &s->options->model);
  if (!s->program) return false;
  s->build_seconds = (double)(clock_now_ns() - start) * 1e-9;
  start = clock_now_ns();
  s->executable = executable_new(s->program, &s->target);
  s->code_seconds = (double)(clock_now_ns() - start) * 1e-9;
  return s->executable != NULL;
}

static bool measure(Session *s) {
  int runs = (int)MAX_OF(s->options->repeat, 1);
  Arena *arena = &s->cli->context->arena;
  double *samples = arena_array(arena, double, runs);
  s->step_ns = arena_array(arena, int64_t, s->program->steps.count);
  s->pool = thread_pool_new((int)s->program->options.machine.cores);
  for (int i = 0; i < runs; i++) {
    int64_t start = clock_now_ns();
    bool ok = s->options->profile
                  ? executable_profile(s->executable, s->pool, s->inputs, s->outputs, s->step_ns)
                  : executable_run(s->executable, s->pool, s->inputs, s->outputs);
    if (!ok) return false;
    samples[i] = (double)(clock_now_ns() - start) * 1e-9;
  }
  s->runs = runs;
  s->latency = spread_of(samples, runs);
  return true;
}

static bool save(Session *s) {
  NamedTensor *named =
      arena_array(&s->cli->context->arena, NamedTensor, s->graph->output_count);
  for (int i = 0; i < s->graph->output_count; i++)
    named[i] = (NamedTensor){s->graph->outputs[i]->name, s->outputs[i]};
  return npz_write(s->cli->context, s->cli->output, named, s->graph->output_count);
}

// ---- Showing

static void show_values(Session *s) {
  for (int i = 0; i < s->graph->output_count; i++) {
    const Tensor *t = s->outputs[i];
    printf("%-15s ", s->graph->outputs[i]->name);
    int64_t count = tensor_count(t);
    for (int64_t j = 0; j < MIN_OF(count, 8); j++)
      printf("%s%.6g", j ? " " : "[", element_get(t->type, tensor_element(t, j)));
    printf(count > 8 ? " … %lld values]\n" : "]\n", (long long)count);
  }
}

static void show_profile(Session *s) {
  Table table = table_new(&s->cli->context->arena, "lrrl");
  int64_t total = 0;
  for (int i = 0; i < s->program->steps.count; i++) total += s->step_ns[i];
  for (int i = 0; i < s->program->steps.count; i++) {
    const PlanKernel *kernel = s->program->steps.items[i].plan;
    table_cell(&table, "%s", kernel->name);
    table_cell(&table, "%.1f us", (double)s->step_ns[i] * 1e-3 / s->runs);
    table_cell(&table, "%.1f %%", 100.0 * (double)s->step_ns[i] / (double)MAX_OF(total, 1));
    table_cell(&table, "k%d%s%s", s->program->steps.items[i].kernel,
               kernel->choice.slow ? " slow: " : "", kernel->choice.slow ? kernel->choice.slow : "");
  }
  table_print(&table, stdout);
}

static void show_summary(Session *s, const char *path) {
  Arena *arena = &s->cli->context->arena;
  const Program *p = s->program;
  const HostMachine *machine = &p->options.machine;
  int folded = 0, run_time = 0, slow = 0;
  for (int i = 0; i < p->plan->rewrites.count; i++) {
    folded += p->plan->rewrites.items[i].folded;
    run_time += !p->plan->rewrites.items[i].folded;
  }
  for (int i = 0; i < p->steps.count; i++) slow += p->steps.items[i].plan->choice.slow != NULL;
  printf("%s   %d operators   %s of weights\n", path, s->graph->nodes.count,
         show_bytes(arena, p->original_weight_bytes));
  printf("plan            %d rewrites at run time · %d folded · %s\n", run_time, folded,
         p->plan->optimal ? "optimal" : "within its bound");
  printf("code            %d kernels for %d steps, %s, %s          arena %s\n", p->kernels.count,
         p->steps.count, machine->level_name, show_seconds(arena, s->build_seconds + s->code_seconds),
         show_bytes(arena, p->arena_bytes));
  printf("latency         %s median   %s p10   %s p90   (%d threads, %d runs)\n",
         show_seconds(arena, s->latency.median), show_seconds(arena, s->latency.p10),
         show_seconds(arena, s->latency.p90), machine->cores, s->runs);
  printf("slow paths      ");
  printf(slow ? "%d kernels\n" : "none\n", slow);
}

static int show_json(Session *s) {
  json_t *object = json_pack(
      "{s:{s:f,s:f,s:f},s:f,s:I,s:i}", "latency_ms", "median", s->latency.median * 1e3, "p10",
      s->latency.p10 * 1e3, "p90", s->latency.p90 * 1e3, "first_result_s",
      s->build_seconds + s->code_seconds, "peak_memory_bytes", (json_int_t)process_peak_bytes(),
      "threads", s->program->options.machine.cores);
  return json_print(s->cli, object);
}

static int run(Cli *cli, void *given) {
  Session s = {.cli = cli, .options = given};
  const char *path = cli->inputs.items[0];
  if (!compile(&s, path) || !measure(&s)) return STATUS_BAD;
  if (cli->output && !save(&s)) return STATUS_BAD;
  if (cli->json) return show_json(&s);
  show_summary(&s, path);
  if (s.options->profile) show_profile(&s);
  if (!cli->output) show_values(&s);
  thread_pool_free(s.pool);
  executable_free(s.executable);
  return STATUS_DONE;
}

const Command command_run = {
    .name = "run",
    .arguments = "MODEL",
    .summary = "compile a model and run it",
    .example = "pleat run resnet50.onnx --fill random --repeat 50",
    .takes = TAKES_JSON | TAKES_OUTPUT | TAKES_THREADS | TAKES_CPU,
    .options = options,
    .option_count = COUNT_OF(options),
    .options_size = sizeof(RunOptions),
    .least_inputs = 1,
    .most_inputs = 1,
    .run = run,
};
