// SPDX-License-Identifier: Apache-2.0
// Makes a program runnable in this process for the command and the library: compiles its code,
// allocates weights and arena, and sets the pointers of every step.
#include "driver/regions.h"

#include <stdlib.h>

typedef struct StepRegion {
  CodeRegion code;
  int64_t extent;
} StepRegion;

typedef struct ExecutableStep {
  StepRegion *regions;
  int region_count;
  void **args; // one per parameter, then the workspace
  int arg_count;
} ExecutableStep;

struct Executable {
  Program *program;
  CompiledCode *code;
  char *weights, *arena;
  ExecutableStep *steps;
  ArgumentSpec *specs; // one per input, then one per output
};

// ---- Making

static bool find_regions(Executable *e, ExecutableStep *step, const LowerKernel *kernel) {
  Context *context = e->program->context;
  step->region_count = kernel->region_count;
  step->regions = arena_array(&context->arena, StepRegion, kernel->region_count);
  for (int i = 0; i < kernel->region_count; i++) {
    const LowerRegion *region = &kernel->regions[i];
    step->regions[i].code = code_region(e->code, region->name);
    if (!step->regions[i].code.handle) bug(context, "no code for '%s'", region->name);
    if (!expr_as_int(region->extent, &step->regions[i].extent))
      return diag_error(context, kernel->func->pos, "'%s' has a size that is not known",
                        region->name);
  }
  return true;
}

static void *slot_address(const Executable *e, const ProgramSlot *slot) {
  switch (slot->kind) {
  case SLOT_CONSTANT: return e->weights + slot->offset;
  case SLOT_ARENA: return e->arena + slot->offset;
  case SLOT_INPUT:
  case SLOT_OUTPUT: break; // set at each run
  }
  return NULL;
}

static bool make_steps(Executable *e) {
  Program *p = e->program;
  e->steps = arena_array(&p->context->arena, ExecutableStep, p->steps.count);
  for (int i = 0; i < p->steps.count; i++) {
    const ProgramStep *from = &p->steps.items[i];
    const LowerKernel *kernel = p->kernels.items[from->kernel];
    ExecutableStep *step = &e->steps[i];
    step->arg_count = kernel->arg_count;
    step->args = arena_array(&p->context->arena, void *, kernel->arg_count + 1);
    for (int j = 0; j < from->plan->params.count; j++)
      step->args[j] = slot_address(e, &p->slots.items[from->slots[j]]);
    step->args[kernel->arg_count] = e->arena + from->workspace;
    if (!find_regions(e, step, kernel)) return false;
  }
  return true;
}

static ArgumentSpec spec_of(Context *context, const Value *value, const Layout *layout) {
  int64_t *shape = arena_array(&context->arena, int64_t, PHYSICAL_MAX_RANK);
  ArgumentSpec spec = {.name = value->name, .shape = shape};
  spec.rank = program_shape(value, layout, shape);
  element_type_parse(dtype_name(context, value->type), &spec.type);
  return spec;
}

static void make_specs(Executable *e) {
  const GraphFunc *graph = e->program->graph;
  const Plan *plan = e->program->plan;
  Context *context = e->program->context;
  int inputs = graph->param_count;
  e->specs = arena_array(&context->arena, ArgumentSpec, inputs + graph->output_count);
  for (int i = 0; i < inputs; i++)
    e->specs[i] = spec_of(context, graph->params[i], plan_input_layout(plan, i));
  for (int i = 0; i < graph->output_count; i++)
    e->specs[inputs + i] = spec_of(context, graph->outputs[i], plan_output_layout(plan, i));
}

static void add_report(TargetReport *to, const TargetReport *from) {
  for (int i = 0; i < TARGET_COUNT_KINDS; i++) to->counts[i] += from->counts[i];
  to->seconds += from->seconds;
}

static bool generate(Executable *e, TargetReport *report) {
  Program *p = e->program;
  if (p->loading) {
    e->code = target_load_finish(p->loading);
    if (report) add_report(report, &p->target_report);
    return e->code != NULL;
  }
  TargetUnit unit = {p->name, p->kernels.items, p->kernels.count};
  TargetOptions options = {&p->options.machine, report, p->target_reports, p->options.quick};
  const TargetRow *target = p->options.target ? p->options.target : target_for_running();
  e->code = target_load(p->context, target, &unit, &options);
  return e->code != NULL;
}

static bool fill_memory(Executable *e) {
  const Program *p = e->program;
  e->weights = memory_alloc((size_t)p->weight_bytes + 64);
  e->arena = memory_alloc((size_t)p->arena_bytes + 64);
  if (!e->weights || !e->arena)
    return diag_error(p->context, p->graph->pos, "not enough memory for the weights");
  program_fill_weights(p, e->weights);
  return true;
}

// Makes the code first, because the memory that code generation takes is released before the
// weights are allocated.
Executable *executable_new(Program *program, TargetReport *report) {
  Executable *e = calloc(1, sizeof *e);
  if (!e) return NULL;
  e->program = program;
  if (generate(e, report) && fill_memory(e) && make_steps(e)) {
    make_specs(e);
    return e;
  }
  executable_free(e);
  return NULL;
}

void executable_free(Executable *e) {
  if (!e) return;
  if (e->code) code_free(e->code);
  memory_free(e->weights);
  memory_free(e->arena);
  free(e);
}

const Program *executable_program(const Executable *e) {
  return e->program;
}

// ---- Running

static bool check_arguments(Executable *e, Tensor *const *inputs, Tensor *const *outputs) {
  const GraphFunc *graph = e->program->graph;
  Context *context = e->program->context;
  char message[512];
  if (!arguments_check(graph->name, e->specs, graph->param_count, inputs, graph->param_count,
                       message, sizeof message))
    return diag_error(context, graph->pos, "%s", message);
  if (!arguments_check(graph->name, e->specs + graph->param_count, graph->output_count, outputs,
                       graph->output_count, message, sizeof message))
    return diag_error(context, graph->pos, "%s", message);
  return true;
}

static void bind_arguments(Executable *e, Tensor *const *inputs, Tensor *const *outputs) {
  Program *p = e->program;
  for (int i = 0; i < p->steps.count; i++)
    for (int j = 0; j < p->steps.items[i].plan->params.count; j++) {
      const ProgramSlot *slot = &p->slots.items[p->steps.items[i].slots[j]];
      if (slot->kind == SLOT_INPUT) e->steps[i].args[j] = tensor_data(inputs[slot->number]);
      if (slot->kind == SLOT_OUTPUT) e->steps[i].args[j] = tensor_data(outputs[slot->number]);
    }
}

static void run_step(const Executable *e, int number, ThreadPool *pool, OnSpan on_span, void *env) {
  const ExecutableStep *step = &e->steps[number];
  for (int i = 0; i < step->region_count; i++) {
    RegionRun run = {step->regions[i].code, step->args, number, i, on_span, env};
    region_run(&run, pool, step->regions[i].extent);
  }
}

bool executable_spans(Executable *e, ThreadPool *pool, Tensor *const *inputs,
                      Tensor *const *outputs, OnSpan on_span, void *env) {
  if (!check_arguments(e, inputs, outputs)) return false;
  bind_arguments(e, inputs, outputs);
  for (int i = 0; i < e->program->steps.count; i++) run_step(e, i, pool, on_span, env);
  return true;
}

bool executable_run(Executable *e, ThreadPool *pool, Tensor *const *inputs,
                    Tensor *const *outputs) {
  return executable_spans(e, pool, inputs, outputs, NULL, NULL);
}

bool executable_profile(Executable *e, ThreadPool *pool, Tensor *const *inputs,
                        Tensor *const *outputs, int64_t *ns) {
  if (!check_arguments(e, inputs, outputs)) return false;
  bind_arguments(e, inputs, outputs);
  int64_t before = clock_now_ns();
  for (int i = 0; i < e->program->steps.count; i++) {
    run_step(e, i, pool, NULL, NULL);
    int64_t now = clock_now_ns();
    ns[i] += now - before;
    before = now;
  }
  return true;
}

bool executable_trace(Executable *e, ThreadPool *pool, Tensor *const *inputs,
                      Tensor *const *outputs, AfterStep after, void *env) {
  if (!check_arguments(e, inputs, outputs)) return false;
  bind_arguments(e, inputs, outputs);
  for (int i = 0; i < e->program->steps.count; i++) {
    run_step(e, i, pool, NULL, NULL);
    if (!after(env, i)) return false;
  }
  return true;
}

const void *executable_argument(const Executable *e, int step, int param) {
  return e->steps[step].args[param];
}
