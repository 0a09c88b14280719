// SPDX-License-Identifier: Apache-2.0
// Constants that others are computed into with so much work that the interpreter would take long
// (weights that are standardised, for one) are computed by compiled code.
#include "driver/driver.h"

typedef struct Folding {
  Context *context;
  StageGraph *graph;
  const PtrArray *stages; // in order
  ConstData **results;    // of each
  CompileOptions options;
  PrimFunc **funcs; // one for equal stages
  int func_count;
  int *number;            // the function of each stage
  StageTensors *params;   // of each
  PrimFunc **unscheduled; // of each function
} Folding;

static int number_of(Folding *f, PrimFunc *func) {
  for (int i = 0; i < f->func_count; i++)
    if (prim_func_equal(f->context, f->unscheduled[i], func, NULL)) return i;
  KernelChoice choice;
  const char *why_not;
  bool chosen = kernel_schedule_plain(f->context, &f->options.machine, func, &choice, &why_not);
  f->unscheduled[f->func_count] = func;
  f->funcs[f->func_count] = chosen ? schedule_func(choice.schedule) : func;
  return f->func_count++;
}

static void make_functions(Folding *f) {
  Arena *arena = &f->context->arena;
  int count = f->stages->count;
  f->funcs = arena_array(arena, PrimFunc *, count);
  f->unscheduled = arena_array(arena, PrimFunc *, count);
  f->number = arena_array(arena, int, count);
  f->params = arena_array(arena, StageTensors, count);
  for (int i = 0; i < count; i++) {
    Stage *stage = f->stages->items[i];
    f->number[i] =
        number_of(f, stages_prim_func(f->graph, &stage, 1, stage->te->name, &f->params[i]));
  }
}

static const ConstData *data_of(const Folding *f, const StageTensor *tensor) {
  if (tensor->data) return tensor->data;
  for (int i = 0; i < f->stages->count; i++)
    if (((Stage *)f->stages->items[i])->output == tensor) return f->results[i];
  bug(f->context, "no constant '%s'", tensor->buffer->name);
}

static bool run_all(Folding *f, KernelCode *code) {
  for (int i = 0; i < f->stages->count; i++) {
    const StageTensors *params = &f->params[i];
    InterpTensor *args = arena_array(&f->context->arena, InterpTensor, params->count);
    for (int k = 0; k < params->count; k++)
      args[k] = interp_tensor_of(data_of(f, params->items[k]));
    if (!kernel_code_run(code, f->number[i], NULL, args)) return false;
  }
  return true;
}

bool program_fold(Context *context, StageGraph *graph, const CompileOptions *options) {
  PtrArray stages = stage_graph_constants(graph);
  Folding f = {.context = context, .graph = graph, .stages = &stages};
  if (!stages.count || !target_for_running()) return true;
  // For this machine and no user's hooks, whatever is compiled for.
  f.options = (CompileOptions){.machine = machine_probe(), .quick = true};
  if (options->progress) options->progress(options->progress_env, "constants", 0, stages.count);
  f.results = arena_array(&context->arena, ConstData *, stages.count);
  for (int i = 0; i < stages.count; i++)
    if (!(f.results[i] = stage_result_new(context, stages.items[i]))) return false;
  context_branch(context);
  make_functions(&f);
  KernelCode *code = kernel_code_new(context, f.funcs, f.func_count, &f.options, NULL);
  bool done = code && run_all(&f, code);
  kernel_code_free(code);
  context_rejoin(context);
  if (done) stage_graph_give(graph, &stages, f.results);
  return done;
}
