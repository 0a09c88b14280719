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

// A constant stage. Several plans of one program are made with the same ones.
typedef struct Folded {
  Stage *stage;
  const PrimFunc *func;
  StageTensors params; // the output comes last
} Folded;

// Larger inputs are equal only where they are the same memory. Those are the weights of the program
// and the results of stages that are known themselves.
enum { MOST_COMPARED = 1 << 16 };

static void add_input(WordKey *key, const ConstData *input) {
  bool compared = input->bytes <= MOST_COMPARED;
  word_key_add(key, input->bytes);
  word_key_add(key, compared ? hash_bytes(input->data, input->bytes) : map_key(input->data));
}

static bool same_input(const ConstData *a, const ConstData *b) {
  if (a->data == b->data || a->bytes != b->bytes) return a->bytes == b->bytes;
  return a->bytes <= MOST_COMPARED && !memcmp(a->data, b->data, a->bytes);
}

static bool same_result(Context *context, const Folded *a, const Folded *b) {
  bool same = a->params.count == b->params.count;
  same = same && prim_func_equal(context, a->func, b->func, NULL);
  for (int i = 0; i + 1 < b->params.count && same; i++)
    same = same_input(a->params.items[i]->data, b->params.items[i]->data);
  return same;
}

// The place of a stage whose inputs are computed; NULL where its key is too long.
static void **place_of(Program *p, const Folded *f) {
  WordKey *key = &p->folded_key;
  key->count = 0;
  key->whole = true;
  word_key_add(key, prim_func_hash(p->context, f->func));
  for (int i = 0; i + 1 < f->params.count; i++) add_input(key, f->params.items[i]->data);
  return key->whole ? map_place(&p->folded, key) : NULL;
}

// Takes the result from an earlier plan's stage that computes the same. False where there is none,
// or where inputs are not computed yet.
static bool take_known(Program *p, const Folded *f) {
  for (int i = 0; i + 1 < f->params.count; i++)
    if (!f->params.items[i]->data->data) return false;
  void **place = place_of(p, f);
  const Folded *known = place ? *place : NULL;
  if (!known || !same_result(p->context, known, f)) return false;
  f->stage->output->data->data = known->stage->output->data->data;
  return true;
}

static void note_known(Program *p, const PtrArray *folded) {
  for (int i = 0; i < folded->count; i++) {
    void **place = place_of(p, folded->items[i]);
    if (place) *place = folded->items[i];
  }
}

static bool interpret(Context *context, const Folded *f) {
  InterpTensor *args = arena_array(&context->arena, InterpTensor, f->params.count);
  for (int i = 0; i < f->params.count; i++) args[i] = interp_tensor_of(f->params.items[i]->data);
  return interp_run(context, NULL, f->func, args, f->params.count, NULL);
}

// Computes these stages (of Folded) into their tensors' data.
static bool compute(Program *p, StageGraph *graph, const PtrArray *folded) {
  Context *context = p->context;
  const CompileOptions *options = &p->options;
  PtrArray compiled = {0};
  for (int i = 0; i < folded->count; i++) {
    Stage *stage = ((Folded *)folded->items[i])->stage;
    if (!is_interpreted(stage)) array_push(&context->arena, &compiled, stage);
  }
  if (compiled.count && options->progress)
    options->progress(options->progress_env, "constants", 0, compiled.count);
  StageCode *code = compiled.count ? stage_code_new(context, graph, compiled, options) : NULL;
  bool done = code || !compiled.count;
  int number = 0;
  for (int i = 0; i < folded->count && done; i++) {
    const Folded *f = folded->items[i];
    done = is_interpreted(f->stage)
               ? interpret(context, f)
               : stage_code_run(code, context, number++, (void *)f->stage->output->data->data);
  }
  stage_code_free(code);
  return done;
}

static bool fold(Program *p, StageGraph *graph, PtrArray stages) {
  Context *context = p->context;
  PtrArray folded = {0};
  for (int i = 0; i < stages.count; i++) {
    Stage *stage = stages.items[i];
    Folded *f = arena_new(&context->arena, Folded);
    f->stage = stage;
    f->func = stages_prim_func(graph, &stage, 1, stage->te->name);
    f->params = stages_params(graph, &stage, 1);
    if (!take_known(p, f)) array_push(&context->arena, &folded, f);
  }
  if (!folded.count) return true;
  for (int i = 0; i < folded.count; i++) {
    ConstData *result = ((Folded *)folded.items[i])->stage->output->data;
    result->data = arena_take(&context->arena, result->bytes + 1); // every element is computed
  }
  context_scope_begin(context);
  bool done = compute(p, graph, &folded);
  context_scope_discard(context);
  if (done) note_known(p, &folded);
  return done;
}

bool program_fold_small(Program *p, StageGraph *graph) {
  return fold(p, graph, stage_graph_take_small_constants(graph));
}

bool program_fold(Program *p, StageGraph *graph) {
  return !target_for_running() || fold(p, graph, stage_graph_take_constants(graph));
}
