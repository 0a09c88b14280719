// SPDX-License-Identifier: Apache-2.0
// `pleat run`: compile a model for this machine, run it, and say in a few lines what was made of
// it.
#include "cli/kernel.h"
#include "cli/trace.h"

#include <jansson.h>

typedef struct RunOptions {
  ModelOptions model; // first: MODEL_OPTIONS
  InputContents contents;
  const char *func, *trace;
  int64_t repeat;
  bool profile;
} RunOptions;

static const Option options[] = {
    MODEL_OPTIONS,
    {"input", 'i', OPTION_LIST, "NAME=FILE.npy", "contents of an input",
     offsetof(RunOptions, contents.given)},
    {"fill", 0, OPTION_TEXT, "random|zero", "contents of the inputs not given",
     offsetof(RunOptions, contents.fill)},
    {"seed", 0, OPTION_INT, "N", "of the random contents", offsetof(RunOptions, contents.seed)},
    FUNC_OPTION(RunOptions, func),
    {"repeat", 0, OPTION_INT, "N", "runs to measure", offsetof(RunOptions, repeat)},
    {"trace", 0, OPTION_TEXT, "T.json", "which thread ran what and when, for Perfetto",
     offsetof(RunOptions, trace)},
    {"profile", 0, OPTION_FLAG, NULL, "time of each kernel, beside what the machine could do",
     offsetof(RunOptions, profile)},
};

static bool save(const Session *s) {
  Arena *arena = &s->cli->context->arena;
  NamedTensor *named = arena_array(arena, NamedTensor, s->output_count);
  for (int i = 0; i < s->output_count; i++)
    named[i] = (NamedTensor){s->output_names[i], s->outputs[i]};
  return npz_write(s->cli->context, s->cli->output, named, s->output_count);
}

// ---- Summary ----------------------------------------------------------------------------------

// "53 conv2d · 16 add · 2 others": the most frequent first, ties in order of occurrence.
static const char *operators_text(const Session *s) {
  enum { SHOWN = 4 };
  Arena *arena = &s->cli->context->arena;
  Map counts = map_new(arena);
  for (int i = 0; i < s->graph->nodes.count; i++) {
    Str op = s->graph->nodes.items[i]->op;
    map_put(&counts, op, (uintptr_t)map_find(&counts, op) + 1);
  }
  Text text = text_new(arena);
  int left = s->graph->nodes.count;
  for (int shown = 0; shown < MIN_OF(SHOWN, counts.count); shown++) {
    MapEntry *most = &counts.entries[0];
    for (int i = 1; i < counts.count; i++)
      if ((uintptr_t)counts.entries[i].value > (uintptr_t)most->value) most = &counts.entries[i];
    const char *name = (const char *)(uintptr_t)most->key, *dot = strrchr(name, '.');
    left -= (int)(uintptr_t)most->value;
    text_printf(&text, "%s%d %s", shown ? " · " : "", (int)(uintptr_t)most->value,
                dot ? dot + 1 : name);
    most->value = NULL;
  }
  if (left) text_printf(&text, " · %d other%s", left, left == 1 ? "" : "s");
  return text_string(&text);
}

// Layouts in which tensors lie between kernels.
static int layout_count(const Session *s) {
  Map names = map_new(&s->cli->context->arena);
  const Plan *plan = s->program->plan;
  for (int i = 0; i < plan->kernels.count; i++)
    for (int j = 0; j < plan->kernels.items[i]->params.count; j++) {
      const StageTensor *tensor = plan->kernels.items[i]->params.items[j];
      if (tensor->data || tensor->buffer->rank < 2) continue;
      const char *name =
          plan_layout_name(s->cli->context, tensor, plan->kernels.items[i]->choice.layouts[j]);
      map_put(&names, str_intern(s->cli->context, name), name);
    }
  return names.count;
}

static const char *gap_text(const Session *s) {
  const Plan *plan = s->program->plan;
  if (plan->optimal) return "optimal";
  return arena_printf(&s->cli->context->arena, "lower bound %.1f %% away",
                      100 * (plan->cost - plan->lower_bound) / plan->cost);
}

static void show_plan(const Session *s) {
  Arena *arena = &s->cli->context->arena;
  const Plan *plan = s->program->plan;
  Text moved = text_new(arena);
  int folded = 0, at_run = 0, layouts = layout_count(s);
  for (int i = 0; i < plan->rewrites.count; i++) {
    const PlanRewrite *r = &plan->rewrites.items[i];
    folded += r->folded;
    if (r->folded || ++at_run > 3) continue;
    text_printf(&moved, "%s%s, %s", at_run > 1 ? "; " : " (", plan_tensor_name(r->tensor),
                show_bytes(arena, r->bytes));
  }
  if (at_run) text_puts(&moved, at_run > 3 ? "; …)" : ")");
  printf("plan            %d layout%s · %d rewrite%s at run time%s · %d folded · %s\n", layouts,
         layouts == 1 ? "" : "s", at_run, at_run == 1 ? "" : "s", text_string(&moved), folded,
         gap_text(s));
}

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

// Everything that is slower than it should be.
static void show_slow_paths(const Session *s) {
  const Program *p = s->program;
  int found = 0;
  printf("slow paths      ");
  for (int i = 0; p && i < p->steps.count; i++) {
    const PlanKernel *kernel = p->steps.items[i].plan;
    if (!kernel->choice.slow) continue;
    printf("%s%s: %s\n", found++ ? "                " : "", kernel->name, kernel->choice.slow);
  }
  if (s->kernel && s->kernel->choice.slow && ++found)
    printf("%s: %s\n", s->kernel->func->name, s->kernel->choice.slow);
  for (int i = 0; i < LOWER_COUNT_KINDS; i++)
    if (lower_count_is_loss(i) && s->lower_report.counts[i])
      printf("%s%d %s\n", found++ ? "                " : "", s->lower_report.counts[i],
             lower_count_name(i));
  for (int i = 0; i < TARGET_COUNT_KINDS; i++)
    if (s->target.counts[i])
      printf("%s%d %s\n", found++ ? "                " : "", s->target.counts[i],
             target_count_name(i));
  if (!found) printf("none\n");
}

static void show_kernel(const Session *s, const char *name) {
  Arena *arena = &s->cli->context->arena;
  const Kernel *kernel = s->kernel;
  printf("%s%-14s%s  %s: %s\n", paint(s->cli, COLOUR_BOLD), name, paint(s->cli, COLOUR_NONE),
         kernel->func->name, kernel_signature(s->cli, kernel));
  if (kernel->why_written)
    printf("schedule        as written: %s\n", kernel->why_written);
  else
    printf("schedule        %d steps by the model\n", schedule_step_count(kernel->choice.schedule));
  printf("code            %s, %s\n", s->machine.level_name, show_seconds(arena, s->code_seconds));
}

static void show_model(const Session *s, const char *name) {
  Arena *arena = &s->cli->context->arena;
  const Program *p = s->program;
  printf("%s%-14s%s  %s      %s of weights\n", paint(s->cli, COLOUR_BOLD), name,
         paint(s->cli, COLOUR_NONE), operators_text(s),
         show_bytes(arena, p->original_weight_bytes));
  show_plan(s);
  printf("code            %d kernels, %s, %s             arena %s\n", p->kernels.count,
         p->options.machine.level_name, show_seconds(arena, s->code_seconds),
         show_bytes(arena, p->arena_bytes));
}

static void show_summary(const Session *s, const char *path) {
  const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
  if (s->kernel)
    show_kernel(s, name);
  else
    show_model(s, name);
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

static int show_json(const Session *s) {
  json_t *kernels = s->step_ns ? profile_json(s) : json_array();
  json_t *object = json_pack("{s:{s:f, s:f, s:f}, s:f, s:I, s:i, s:o}", "latency_ms", "median",
                             s->latency.median * 1e3, "p10", s->latency.p10 * 1e3, "p90",
                             s->latency.p90 * 1e3, "first_result_s", s->first_seconds,
                             "peak_memory_bytes", (json_int_t)process_peak_bytes(), "threads",
                             session_threads(s), "kernels", kernels);
  return json_print(s->cli, object);
}

static int run_file(Session *s, const RunOptions *o) {
  const char *path = s->cli->inputs.items[0];
  if (o->trace && !file_can_write(s->cli->context, o->trace)) return STATUS_BAD;
  if (!session_begin_file(s, path, o->func, &o->contents)) return STATUS_BAD;
  if (o->trace) s->trace = trace_new(s);
  if (!session_measure(s, o->repeat, o->profile)) return STATUS_BAD;
  if (o->trace && !trace_write(s->trace, o->trace)) return STATUS_BAD;
  if (s->cli->output && !save(s)) return STATUS_BAD;
  if (s->cli->output && strcmp(s->cli->output, "-") == 0) return STATUS_DONE; // that was all
  if (s->cli->json) return show_json(s);
  show_summary(s, path);
  if (s->step_ns) profile_show(s);
  if (!s->cli->output) show_values(s);
  return STATUS_DONE;
}

static int run(Cli *cli, void *given) {
  const RunOptions *o = given;
  return run_file(session_new(cli, &o->model), o);
}

const Command command_run = {
    .name = "run",
    .arguments = "MODEL|KERNEL.py",
    .summary = "compile a model or a kernel for this machine and run it",
    .example = "  $ pleat run examples/digits/digits.onnx --fill random --repeat 200\n"
               "  digits.onnx     9 conv2d · 9 batch_norm · 7 relu · 3 add · 5 others      36.9 "
               "KiB of weights\n"
               "  plan            4 layouts · 0 rewrites at run time · 29 folded · optimal\n"
               "  code            13 kernels, avx512, 991 ms             arena 10.2 KiB\n"
               "  latency         4.96 us median   4.92 us p10   5.07 us p90   (1 thread, 200 "
               "runs)   42 % of the FMA peak\n"
               "  slow paths      none\n"
               "  probabilities   [0.0142556 0.0121603 0.0172471 0.599698 0.00290577 0.0162721 … "
               "10 values]\n"
               "  $ pleat run examples/kernels/matmul.py --fill random -o product.npz --trace "
               "trace.json\n",
    .takes = TAKES_JSON | TAKES_OUTPUT | TAKES_THREADS | TAKES_CPU,
    .options = options,
    .option_count = COUNT_OF(options),
    .options_size = sizeof(RunOptions),
    .least_inputs = 1,
    .most_inputs = 1,
    .run = run,
};
