// SPDX-License-Identifier: Apache-2.0
// Builds a program: stages, plan, schedules, lowered kernels, and the memory of every tensor.
#include "base/caller.h"
#include "driver/driver.h"
#include "offload/offload.h"

#include <pthread.h>

static void report_progress(const Program *p, const char *what, int done, int all) {
  if (p->options.progress) p->options.progress(p->options.progress_env, what, done, all);
}

// ---- Slots

static bool same_layout(const Layout *a, const Layout *b) {
  return a == b || (a && b && a->map == b->map);
}

static int output_number(const StageGraph *graph, const StageTensor *tensor) {
  for (int i = 0; i < graph->outputs.count; i++)
    if (graph->outputs.items[i] == tensor) return i;
  return -1;
}

static int slot_for(Program *p, StageTensor *tensor, const Layout *layout, int step);

// Puts the slot in the memory of the tensor that it is a piece of.
static void place_in_whole(Program *p, const PlanPlacement *placement, ProgramSlot *slot) {
  slot->whole = slot_for(p, placement->whole, placement->whole_layout, slot->first);
  slot->within = placement->offset * dtype_bytes(slot->tensor->buffer->type);
  const ProgramSlot *whole = &p->slots.items[slot->whole];
  slot->kind = whole->kind;
  slot->number = whole->number;
}

static int slot_for(Program *p, StageTensor *tensor, const Layout *layout, int step) {
  for (int i = 0; i < p->slots.count; i++)
    if (p->slots.items[i].tensor == tensor && same_layout(p->slots.items[i].layout, layout)) {
      for (int k = i; k >= 0; k = p->slots.items[k].whole) p->slots.items[k].last = step;
      return i;
    }
  ProgramSlot slot = {.kind = SLOT_ARENA,
                      .layout = layout,
                      .tensor = tensor,
                      .whole = -1,
                      .first = step,
                      .last = step};
  slot.bytes = plan_bytes(tensor, layout);
  int output = output_number(p->plan->stages, tensor);
  const PlanPlacement *placement = plan_placement(p->plan, tensor, layout);
  if (placement && !placement->whole) {
    slot.bytes = placement->bytes;
  } else if (placement) {
    place_in_whole(p, placement, &slot);
  } else if (tensor->data) {
    slot.kind = SLOT_CONSTANT;
  } else if (output >= 0 && same_layout(layout, plan_output_layout(p->plan, output))) {
    slot.kind = SLOT_OUTPUT;
    slot.number = output;
  } else if (tensor->input >= 0 && same_layout(layout, plan_input_layout(p->plan, tensor->input))) {
    slot.kind = SLOT_INPUT;
    slot.number = tensor->input;
  }
  array_push(&p->context->arena, &p->slots, slot);
  return p->slots.count - 1;
}

static void place_weights(Program *p) {
  Map seen = map_new(&p->context->arena); // tensors that exist in several layouts count once
  for (int i = 0; i < p->slots.count; i++) {
    ProgramSlot *slot = &p->slots.items[i];
    if (slot->kind != SLOT_CONSTANT) continue;
    slot->offset = p->weight_bytes;
    p->weight_bytes += tensor_aligned(slot->bytes);
    if (!map_contains(&seen, slot->tensor))
      p->original_weight_bytes += (int64_t)slot->tensor->data->bytes;
    map_put(&seen, slot->tensor, slot);
  }
}

// The tensors and workspaces that share the arena, and where the offset of each is stored.
typedef struct ArenaRequest {
  ArenaItem *items;
  int64_t **offsets;
  int count;
} ArenaRequest;

// Poisoned memory is not shared, so that all padding is still poisoned when it might be read.
static void request(ArenaRequest *r, int64_t bytes, int first, int last, int64_t *offset) {
  if (memory_poisons()) first = last = 0;
  r->offsets[r->count] = offset;
  r->items[r->count++] = (ArenaItem){tensor_aligned(bytes), TENSOR_ALIGNMENT, first, last, 0};
}

static void request_workspace(ArenaRequest *r, const Program *p, int step) {
  int64_t bytes = 0;
  const ProgramStep *of = &p->steps.items[step];
  const LowerKernel *kernel = of->kernel < 0 ? NULL : p->kernels.items[of->kernel];
  if (!kernel)
    bytes = call_workspace_bytes(p->context, of->plan);
  else
    expr_as_int(kernel->workspace_bytes, &bytes);
  bool all = kernel && kernel->guards; // their notes are read after the run
  if (bytes)
    request(r, bytes, all ? 0 : step, all ? p->steps.count - 1 : step,
            &p->steps.items[step].workspace);
}

static bool place_arena(Program *p) {
  Context *context = p->context;
  int most = p->slots.count + p->steps.count;
  ArenaRequest r = {arena_array(&context->arena, ArenaItem, most),
                    arena_array(&context->arena, int64_t *, most), 0};
  for (int i = 0; i < p->slots.count; i++) {
    ProgramSlot *slot = &p->slots.items[i];
    if (slot->kind == SLOT_ARENA && slot->whole < 0)
      request(&r, slot->bytes, slot->first, slot->last, &slot->offset);
  }
  for (int i = 0; i < p->steps.count; i++) request_workspace(&r, p, i);
  p->arena_bytes = arena_plan(context, r.items, r.count, &p->live_bytes);
  if (p->arena_bytes < 0)
    return diag_error(context, p->graph->pos, "the intermediate tensors do not fit in memory");
  for (int i = 0; i < r.count; i++) *r.offsets[i] = r.items[i].offset;
  for (int i = 0; i < p->slots.count; i++) {
    ProgramSlot *slot = &p->slots.items[i];
    if (slot->whole >= 0) slot->offset = p->slots.items[slot->whole].offset + slot->within;
  }
  return true;
}

int program_shape(const Value *value, const Layout *layout, int64_t *shape) {
  if (!layout) {
    value_static_shape(value, shape);
    return value->rank;
  }
  memcpy(shape, layout->physical_extents, sizeof *shape * (size_t)layout->physical_rank);
  return layout->physical_rank;
}

// ---- Kernels

// The function with the strides of the parameters that are pieces of other tensors, or whose memory
// has gaps. Until then all
// its steps are those of tensors with memory of their own.
static PrimFunc *with_strides(Context *context, const PlanKernel *kernel, PrimFunc *func) {
  Map strided = map_new(&context->scratch);
  PrimFunc *result = prim_func_copy(context, func);
  result->buffers =
      arena_copy(&context->arena, func->buffers, sizeof *func->buffers * (size_t)func->param_count);
  for (int i = 0; i < func->param_count; i++) {
    const PlanPlacement *placement = kernel->placements[i];
    if (!placement || placement->dense) continue;
    Buffer *buffer = result->buffers[i] = buffer_copy(context, func->buffers[i]);
    buffer->strides = arena_array(&context->arena, Expr *, buffer->rank);
    for (int d = 0; d < buffer->rank; d++)
      buffer->strides[d] =
          expr_int(context, buffer->shape[d]->type, MAX_OF(placement->strides[d], 1));
    map_put(&strided, func->buffers[i], buffer);
  }
  result->body = substitute_stmt(context, func->body, NULL, &strided);
  return strided.count ? result : func;
}

// The call of a tensor program of the user, whose accesses may be anywhere, of which the kernel
// computes a part; NULL: there is none.
static const Node *user_call(const PlanKernel *kernel) {
  for (int i = 0; i < kernel->stage_count; i++)
    for (int k = 0; k < kernel->stages[i]->parts.count; k++) {
      const Node *node = kernel->stages[i]->parts.items[k].node;
      if (node && node->kind == NODE_CALL_TIR) return node;
    }
  return NULL;
}

// `shown`: passes are printed and verified, where the options ask for it.
static LowerKernel *lower_planned(Program *p, const PlanKernel *kernel, bool shown) {
  LowerOptions options = p->options.lower;
  if (!shown) {
    options.print_after = NULL;
    options.verify_each = false;
  }
  const Node *call = user_call(kernel);
  options.guards = call != NULL;
  options.drop_logical = p->options.run_only && !options.print_after;
  options.report = &p->lower_reports[p->kernels.count];
  PrimFunc *func = with_strides(p->context, kernel, schedule_func(kernel->choice.schedule));
  if (call) {
    func = prim_func_copy(p->context, func);
    func->pos = node_pos(call);
  }
  PrimFunc *lowered = lower_prim_func(p->context, func, &options);
  if (!lowered) return NULL;
  lowered = prim_func_copy(p->context, lowered);
  lowered->name = str_format(p->context, "k%d", p->kernels.count);
  LowerKernel *result = lower_kernel_new(p->context, lowered, &p->options.machine);
  int64_t workspace;
  if (!expr_as_int(result->workspace_bytes, &workspace)) {
    diag_error(p->context, func->pos, "kernel '%s' needs workspace of unknown size", kernel->name);
    return NULL;
  }
  return result;
}

// Schedules and lowers one kernel. *lowered is NULL when the kernel uses the code of an earlier
// one.
static bool make_kernel(Program *p, int number, LowerKernel **lowered) {
  PlanKernel *kernel = p->plan->kernels.items[number];
  int64_t start = clock_now_ns();
  *lowered = NULL;
  bool done = plan_schedule_kernel(p->plan, number);
  p->schedule_seconds += clock_seconds_since(start);
  if (!done || kernel->call) return done;
  int64_t only = p->options.only_kernel;
  if (kernel->same_as >= 0)
    return only != number + 1 ||
           lower_planned(p, p->plan->kernels.items[kernel->same_as], true) != NULL;
  start = clock_now_ns();
  *lowered = lower_planned(p, kernel, !only || only == number + 1);
  p->lower_seconds += clock_seconds_since(start);
  return *lowered != NULL;
}

// ---- Kernels that are only run
//
// With CompileOptions.run_only, a kernel is made in an arena scope and discarded as soon as the
// target has compiled it. make_all and make_and_summarize follow
// this order:
//
//   plan_match_kernel        the program of the kernel is made here, since later ones are compared
//                            with it
//   context_scope_begin      the schedule and the lowered function go to the scope
//   make_kernel              schedules and lowers the kernel
//   choice_to_lasting        copies the parts of kernel->choice that are read later to `lasting`
//   summarize_kernel         copies names and sizes, which running the kernel needs, to `lasting`
//   target_load_add          the target reads the lowered function and keeps no pointer into it
//   context_scope_discard    frees the scope
//   summary_set_sizes        makes the expressions of the sizes anew, outside the scope
//
// Afterwards kernel->choice has no schedule, and Program.kernels holds the summary, whose `func` is
// NULL.

// The kernel summary of a lowered kernel, without its expressions: *sizes get the extent and the
// chunks of each region, then the bytes of its workspace. NULL with a diagnostic when a size is not
// static.
static LowerKernel *summarize_kernel(Program *p, const LowerKernel *kernel, int64_t **sizes) {
  Arena *arena = &p->context->lasting;
  LowerKernel *summary = arena_new(arena, LowerKernel);
  summary->arg_count = kernel->arg_count;
  summary->region_count = kernel->region_count;
  summary->regions = arena_array(arena, LowerRegion, kernel->region_count);
  int64_t *size = *sizes = arena_array(arena, int64_t, 2 * kernel->region_count + 1);
  expr_as_int(kernel->workspace_bytes, &size[2 * kernel->region_count]);
  summary->guards_offset = kernel->guards_offset;
  if (kernel->guards) {
    AccessGuards *guards = arena_copy(arena, kernel->guards, sizeof *guards);
    guards->items = arena_copy(arena, guards->items, sizeof *guards->items * (size_t)guards->count);
    guards->data = NULL; // of the function
    summary->guards = guards;
  }
  for (int i = 0; i < kernel->region_count; i++) {
    summary->regions[i].name = kernel->regions[i].name;
    if (!expr_as_int(kernel->regions[i].extent, &size[2 * i]) ||
        !expr_as_int(kernel->regions[i].chunks, &size[2 * i + 1])) {
      diag_error(p->context, kernel->func->pos, "'%s' has a size that is not known",
                 kernel->regions[i].name);
      return NULL;
    }
  }
  return summary;
}

// Copies the parts of the choice that are read later out of the scope.
static void choice_to_lasting(Context *context, PlanKernel *kernel) {
  KernelChoice *choice = &kernel->choice;
  size_t bytes = sizeof(Layout *) * (size_t)kernel->params.count;
  choice->schedule = NULL;
  choice->layouts = arena_copy(&context->lasting, choice->layouts, bytes);
  if (choice->slow) choice->slow = str_intern(context, choice->slow);
}

static void add_step(Program *p, PlanKernel *kernel, int number) {
  ProgramStep step = {.plan = kernel, .kernel = number};
  int count = kernel->params.count;
  step.slots = arena_array(&p->context->arena, int, count);
  for (int i = 0; i < count; i++)
    step.slots[i] = slot_for(p, kernel->params.items[i], kernel->choice.layouts[i], p->steps.count);
  array_push(&p->context->arena, &p->steps, step);
}

static void summary_set_sizes(Context *context, LowerKernel *summary, const int64_t *sizes) {
  for (int i = 0; i < summary->region_count; i++) {
    summary->regions[i].extent = expr_int(context, DTYPE_INT64, *sizes++);
    summary->regions[i].chunks = expr_int(context, DTYPE_INT64, *sizes++);
  }
  summary->workspace_bytes = expr_int(context, DTYPE_INT64, *sizes);
}

// Makes a kernel in an arena scope and passes it to the target. *summary is the kernel's summary,
// or NULL when the kernel uses the code of an earlier one.
static bool make_and_summarize(Program *p, int number, LowerKernel **summary) {
  PlanKernel *kernel = p->plan->kernels.items[number];
  LowerKernel *lowered;
  int64_t *sizes = NULL;
  *summary = NULL;
  context_scope_begin(p->context);
  bool done = make_kernel(p, number, &lowered);
  if (done && kernel->same_as < 0 && !kernel->call) {
    choice_to_lasting(p->context, kernel);
    *summary = summarize_kernel(p, lowered, &sizes);
    done = *summary && target_load_add(p->loading, lowered);
  }
  context_scope_discard(p->context);
  if (done && *summary) summary_set_sizes(p->context, *summary, sizes);
  return done;
}

static void match_kernel(Program *p, int number) {
  int64_t start = clock_now_ns();
  plan_match_kernel(p->plan, number);
  p->schedule_seconds += clock_seconds_since(start);
}

static bool make_all(Program *p) {
  Context *context = p->context;
  Plan *plan = p->plan;
  int *number = arena_array(&context->arena, int, plan->kernels.count);
  for (int i = 0; i < plan->kernels.count; i++) {
    PlanKernel *kernel = plan->kernels.items[i];
    LowerKernel *made;
    report_progress(p, "lowering", i, plan->kernels.count);
    match_kernel(p, i);
    if (!(p->loading ? make_and_summarize : make_kernel)(p, i, &made)) return false;
    number[i] = made ? p->kernels.count : kernel->call ? -1 : number[kernel->same_as];
    if (made) array_push(&context->arena, &p->kernels, made);
    add_step(p, kernel, number[i]);
  }
  plan_note_folded(plan);
  return true;
}

// ---- The whole program

static Program *plan_only(Context *context, const GraphFunc *graph, const CompileOptions *options) {
  Program *p = arena_new(&context->arena, Program);
  *p = (Program){.context = context, .name = graph->name, .graph = graph, .options = *options};
  p->folded = map_new(&context->arena);
  p->folded_key = word_key_new(&context->arena);
  p->bilinear_facts = bilinear_facts_new(context);
  int64_t start = clock_now_ns();
  report_progress(p, "planning", 0, 1);
  p->plan = program_plan_stages(p);
  p->plan_seconds = clock_seconds_since(start);
  return p->plan ? p : NULL;
}

// The price of a plan without the library, for comparison; 0: there is none.
static double cycles_without_library(Context *context, const GraphFunc *graph,
                                     const CompileOptions *options) {
  CompileOptions own = *options;
  own.offload = NULL;
  int diags = context->diags.count, errors = context->error_count;
  Program *p = plan_only(context, graph, &own);
  diag_forget(context, diags, errors);
  return p ? p->plan->cost : 0;
}

Program *program_plan(Context *context, const GraphFunc *graph, const CompileOptions *options) {
  Program *p = plan_only(context, graph, options);
  if (p && options->offload)
    p->cycles_own_kernels = cycles_without_library(context, graph, options);
  int64_t start = clock_now_ns();
  if (!p || !plan_schedule(p->plan)) return NULL;
  p->schedule_seconds = clock_seconds_since(start);
  return p;
}

static void *load_ahead(void *target) {
  ((const TargetRow *)target)->load_ahead();
  return NULL;
}

// Plans in this thread; where another may run, it begins to load code at the same time.
static Program *plan_and_load_ahead(Context *context, const GraphFunc *graph,
                                    const CompileOptions *options) {
  const TargetRow *target = compile_target(options);
  pthread_t thread;
  bool started = options->run_only && options->machine.cores > 1 && target->load_ahead &&
                 !pthread_create(&thread, NULL, load_ahead, (void *)target);
  Program *p = plan_only(context, graph, options);
  if (started) pthread_join(thread, NULL);
  return p;
}

// With run_only, begins to load code kernel by kernel if the target keeps no pointers into lowered
// kernels.
static bool begin_loading(Program *p) {
  const TargetRow *target = compile_target(&p->options);
  TargetOptions options = {&p->options.machine, &p->target_report, p->target_reports,
                           p->options.quick, p->options.cache};
  if (!p->options.run_only || target->keeps_kernels) return true;
  p->loading = target_load_begin(p->context, target, p->name, &options);
  return p->loading != NULL;
}

Program *program_build(Context *context, const GraphFunc *graph, const CompileOptions *options) {
  Program *p = plan_and_load_ahead(context, graph, options);
  if (!p) return NULL;
  p->lower_reports = arena_array(&context->arena, LowerReport, p->plan->kernels.count);
  p->target_reports = arena_array(&context->arena, TargetReport, p->plan->kernels.count);
  if (!begin_loading(p) || !make_all(p)) return NULL;
  program_find_branches(p);
  place_weights(p);
  return place_arena(p) ? p : NULL;
}
