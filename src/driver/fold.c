// SPDX-License-Identifier: Apache-2.0
// Computes constant stages while a program is built: with the interpreter, or with compiled code
// when they need so much work that the interpreter would take long; standardised weights are an
// example.
#include "driver/driver.h"

#include "interp/interp.h"

struct StageCode {
  Context *context;
  StageGraph *graph;
  PtrArray stages; // the constant stages, in order
  KernelCode *code;
  CompileOptions options;
  PrimFunc **funcs; // the functions to run; equal stages share one
  int func_count;
  int *number;            // by stage: the number of its function
  StageTensors *params;   // by stage
  PrimFunc **unscheduled; // by function: before scheduling
  int *alike;             // by function: 1 + the number of another with the same hash; 0: none
  Map by_hash;            // 1 + the number of the last function with the hash
};

// The number of a function equal to this one, or -1. If there is none, the function gets the next
// number.
static int find_equal(StageCode *f, PrimFunc *func) {
  uint64_t hash = prim_func_hash(f->context, func);
  int first = (int)(intptr_t)map_get(&f->by_hash, hash);
  for (int i = first; i; i = f->alike[i - 1])
    if (prim_func_equal(f->context, f->unscheduled[i - 1], func, NULL)) return i - 1;
  f->alike[f->func_count] = first;
  map_set(&f->by_hash, hash, (void *)(intptr_t)(f->func_count + 1));
  return -1;
}

static int number_of(StageCode *f, PrimFunc *func) {
  int equal = find_equal(f, func);
  if (equal >= 0) return equal;
  KernelChoice choice;
  const char *why_not;
  bool chosen = autosched_unscheduled(f->context, &f->options.machine, func, &choice, &why_not);
  f->unscheduled[f->func_count] = func;
  f->funcs[f->func_count] = chosen ? schedule_func(choice.schedule) : func;
  return f->func_count++;
}

static void make_functions(StageCode *f) {
  Arena *arena = &f->context->arena;
  int count = f->stages.count;
  f->funcs = arena_array(arena, PrimFunc *, count);
  f->unscheduled = arena_array(arena, PrimFunc *, count);
  f->alike = arena_array(arena, int, count);
  f->by_hash = map_new(arena);
  f->number = arena_array(arena, int, count);
  f->params = arena_array(arena, StageTensors, count);
  for (int i = 0; i < count; i++) {
    Stage *stage = f->stages.items[i];
    f->params[i] = stages_params(f->graph, &stage, 1);
    f->number[i] = number_of(f, stages_prim_func(f->graph, &stage, 1, stage->te->name));
  }
}

StageCode *stage_code_new(Context *context, StageGraph *graph, PtrArray stages,
                          const CompileOptions *options) {
  StageCode *f = arena_new(&context->arena, StageCode);
  *f = (StageCode){.context = context, .graph = graph, .stages = stages};
  // The code runs on this machine, whatever the target, and without the user's hooks.
  f->options = (CompileOptions){.machine = machine_probe(), .quick = true, .cache = options->cache};
  make_functions(f);
  f->code = kernel_code_new(context, f->funcs, f->func_count, &f->options, NULL);
  return f->code ? f : NULL;
}

void stage_code_free(StageCode *f) {
  if (f) kernel_code_free(f->code);
}

bool stage_code_run(const StageCode *f, Context *context, int number, void *to) {
  const StageTensors *params = &f->params[number];
  InterpTensor *args = arena_array(&context->scratch, InterpTensor, params->count);
  for (int k = 0; k < params->count; k++) args[k] = interp_tensor_of(params->items[k]->data);
  args[params->count - 1].data = to; // the output comes last
  KernelCode *code = kernel_code_share(context, f->code);
  return kernel_code_run(code, f->number[number], NULL, args);
}

// ---- By the interpreter or compiled code --------------------------------------------------------

// The most iterations that the interpreter computes in less time than code for them is made.
static const double MOST_INTERPRETED = 1e5;

static bool is_interpreted(const Stage *stage) {
  double iterations = stage_iterations(stage);
  return !target_for_running() || (iterations >= 0 && iterations <= MOST_INTERPRETED);
}

static bool interpret(Context *context, StageGraph *graph, Stage *stage) {
  StageTensors params = stages_params(graph, &stage, 1);
  PrimFunc *func = stages_prim_func(graph, &stage, 1, stage->te->name);
  InterpTensor *args = arena_array(&context->arena, InterpTensor, params.count);
  for (int i = 0; i < params.count; i++) args[i] = interp_tensor_of(params.items[i]->data);
  return interp_run(context, NULL, func, args, params.count, NULL);
}

// Computes these stages into their tensors' data.
static bool compute(Context *context, StageGraph *graph, PtrArray stages,
                    const CompileOptions *options) {
  PtrArray compiled = {0};
  for (int i = 0; i < stages.count; i++)
    if (!is_interpreted(stages.items[i])) array_push(&context->arena, &compiled, stages.items[i]);
  if (compiled.count && options->progress)
    options->progress(options->progress_env, "constants", 0, compiled.count);
  StageCode *code = compiled.count ? stage_code_new(context, graph, compiled, options) : NULL;
  bool done = code || !compiled.count;
  int number = 0;
  for (int i = 0; i < stages.count && done; i++) {
    Stage *stage = stages.items[i];
    done = is_interpreted(stage)
               ? interpret(context, graph, stage)
               : stage_code_run(code, context, number++, (void *)stage->output->data->data);
  }
  stage_code_free(code);
  return done;
}

static bool fold(Context *context, StageGraph *graph, PtrArray stages,
                 const CompileOptions *options) {
  if (!stages.count) return true;
  context_scope_begin(context);
  bool done = compute(context, graph, stages, options);
  context_scope_discard(context);
  return done;
}

bool program_fold_small(Context *context, StageGraph *graph, const CompileOptions *options) {
  return fold(context, graph, stage_graph_take_small_constants(graph), options);
}

bool program_fold(Context *context, StageGraph *graph, const CompileOptions *options) {
  if (!target_for_running()) return true;
  return fold(context, graph, stage_graph_take_constants(graph), options);
}
