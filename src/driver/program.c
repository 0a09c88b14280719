// SPDX-License-Identifier: Apache-2.0
// Building a program: stages, plan, schedules, lowered kernels, and where every tensor lies.
#include "driver/driver.h"

enum { SLOT_ALIGNMENT = 64 };
static const double FOLD_LIMIT = 4e6; // iterations of a stage computed while compiling

static double seconds_since(int64_t start) {
  return (double)(clock_now_ns() - start) * 1e-9;
}

static int64_t aligned(int64_t bytes) {
  return (bytes + SLOT_ALIGNMENT - 1) / SLOT_ALIGNMENT * SLOT_ALIGNMENT;
}

static void report_progress(const Program *p, const char *what, int done, int all) {
  if (p->options.progress) p->options.progress(p->options.progress_env, what, done, all);
}

// ---- Slots

static bool same_layout(const Layout *a, const Layout *b) {
  return a == b || (a && b && a->map == b->map);
}

static int64_t slot_bytes(const StageTensor *tensor, const Layout *layout) {
  int64_t count = 1, extent;
  if (layout && layout_physical_size(layout, &count))
    return count * dtype_bytes(tensor->buffer->type);
  for (int d = 0; d < tensor->buffer->rank; d++)
    if (expr_as_int(tensor->buffer->shape[d], &extent)) count *= extent;
  return count * dtype_bytes(tensor->buffer->type);
}

static int output_number(const StageGraph *graph, const StageTensor *tensor) {
  for (int i = 0; i < graph->outputs.count; i++)
    if (graph->outputs.items[i] == tensor) return i;
  return -1;
}

static int slot_for(Program *p, StageTensor *tensor, const Layout *layout, int step) {
  for (int i = 0; i < p->slots.count; i++)
    if (p->slots.items[i].tensor == tensor && same_layout(p->slots.items[i].layout, layout)) {
      p->slots.items[i].last = step;
      return i;
    }
  ProgramSlot slot = {
      .kind = SLOT_ARENA, .layout = layout, .tensor = tensor, .first = step, .last = step};
  slot.bytes = slot_bytes(tensor, layout);
  int output = output_number(p->plan->stages, tensor);
  if (tensor->data) {
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
  for (int i = 0; i < p->slots.count; i++) {
    ProgramSlot *slot = &p->slots.items[i];
    if (slot->kind != SLOT_CONSTANT) continue;
    slot->offset = p->weight_bytes;
    p->weight_bytes += aligned(slot->bytes);
    p->original_weight_bytes += (int64_t)slot->tensor->data->bytes;
  }
}

static bool place_arena(Program *p) {
  Context *context = p->context;
  ArenaItem *items = arena_array(&context->arena, ArenaItem, p->slots.count);
  int *owner = arena_array(&context->arena, int, p->slots.count), count = 0;
  for (int i = 0; i < p->slots.count; i++) {
    const ProgramSlot *slot = &p->slots.items[i];
    if (slot->kind != SLOT_ARENA) continue;
    owner[count] = i;
    items[count++] = (ArenaItem){aligned(slot->bytes), SLOT_ALIGNMENT, slot->first, slot->last, 0};
  }
  int64_t bytes = arena_plan(context, items, count, &p->arena_bound);
  if (bytes < 0)
    return diag_error(context, p->graph->pos, "the intermediate tensors do not fit in memory");
  for (int i = 0; i < count; i++) p->slots.items[owner[i]].offset = items[i].offset;
  p->workspace_offset = aligned(bytes);
  p->arena_bytes = p->workspace_offset + p->workspace_bytes;
  return true;
}

void program_fill_weights(const Program *p, void *weights) {
  for (int i = 0; i < p->slots.count; i++) {
    const ProgramSlot *slot = &p->slots.items[i];
    if (slot->kind != SLOT_CONSTANT) continue;
    const ConstData *data = slot->tensor->data;
    char *to = (char *)weights + slot->offset;
    if (slot->layout)
      layout_pack(p->context, slot->layout, dtype_bytes(data->type), data->data, to);
    else
      memcpy(to, data->data, data->bytes);
    file_forget(p->context, data->data, data->bytes);
  }
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

static bool lower_kernel(Program *p, const PlanKernel *kernel) {
  LowerOptions options = p->options.lower;
  options.report = &p->lower_report;
  PrimFunc *func = schedule_func(kernel->choice.schedule);
  PrimFunc *lowered = lower_prim_func(p->context, func, &options);
  if (!lowered) return false;
  lowered = prim_func_copy(p->context, lowered);
  lowered->name = str_format(p->context, "k%d", p->kernels.count);
  LowerKernel *result = lowered_kernel(p->context, lowered);
  int64_t workspace;
  if (!expr_as_int(result->workspace_bytes, &workspace))
    return diag_error(p->context, func->pos, "kernel '%s' needs workspace of unknown size",
                      kernel->name);
  p->workspace_bytes = MAX_OF(p->workspace_bytes, workspace);
  array_push(&p->context->arena, &p->kernels, result);
  return true;
}

static void add_step(Program *p, PlanKernel *kernel, int number) {
  ProgramStep step = {.plan = kernel, .kernel = number};
  int count = kernel->params.count;
  step.slots = arena_array(&p->context->arena, int, count);
  for (int i = 0; i < count; i++)
    step.slots[i] = slot_for(p, kernel->params.items[i], kernel->choice.layouts[i], p->steps.count);
  array_push(&p->context->arena, &p->steps, step);
}

static bool lower_all(Program *p) {
  Plan *plan = p->plan;
  int *number = arena_array(&p->context->arena, int, plan->kernels.count);
  for (int i = 0; i < plan->kernels.count; i++) {
    PlanKernel *kernel = plan->kernels.items[i];
    report_progress(p, "lowering", i, plan->kernels.count);
    number[i] = kernel->same_as >= 0 ? number[kernel->same_as] : p->kernels.count;
    if (kernel->same_as < 0 && !lower_kernel(p, kernel)) return false;
    add_step(p, kernel, number[i]);
  }
  return true;
}

// ---- All of it

static bool check_static(Context *context, const StageGraph *stages) {
  for (int i = 0; i < stages->tensors.count; i++) {
    const StageTensor *tensor = stages->tensors.items[i];
    int64_t shape[TE_MAX_RANK];
    if (!buffer_static_shape(tensor->buffer, shape))
      return diag_error(context, tensor->buffer->pos,
                        "'%s' has a symbolic extent; give sizes with --dim name=1",
                        plan_tensor_name(tensor));
  }
  return true;
}

// Tensors whose layout was asked for stay tensors.
static void keep_wished(StageGraph *stages, const PlanWishes *wishes) {
  for (int i = 0; i < stages->tensors.count; i++) {
    StageTensor *tensor = stages->tensors.items[i];
    for (int k = 0; wishes && k < wishes->items.count; k++)
      tensor->kept |= tensor->value && wishes->items.items[k].value == tensor->value;
  }
}

static StageGraph *make_stages(Program *p) {
  StageGraph *stages = stage_graph_new(p->context, p->graph);
  if (!stages || !check_static(p->context, stages)) return NULL;
  stage_graph_prune(stages);
  if (!stage_graph_fold(stages, FOLD_LIMIT)) return NULL;
  keep_wished(stages, p->options.wishes);
  stage_graph_inline_views(stages);
  stage_graph_inline_intermediates(stages);
  if (!stage_graph_fold(stages, FOLD_LIMIT)) return NULL;
  stage_graph_inline_scalars(stages);
  stage_graph_group_rows(stages);
  p->nodes_folded = stages->folded_stages;
  return stages;
}

Program *program_plan(Context *context, const GraphFunc *graph, const CompileOptions *options) {
  Program *p = arena_new(&context->arena, Program);
  *p = (Program){.context = context, .name = graph->name, .graph = graph, .options = *options};
  int64_t start = clock_now_ns();
  StageGraph *stages = make_stages(p);
  if (!stages) return NULL;
  PlanOptions plan_options = {
      .machine = &p->options.machine, .policy = options->policy, .wishes = options->wishes};
  p->plan = plan_graph(stages, &plan_options);
  if (!p->plan) return NULL;
  p->plan_seconds = seconds_since(start);
  start = clock_now_ns();
  if (!plan_schedule(p->plan)) return NULL;
  p->schedule_seconds = seconds_since(start);
  return p;
}

Program *program_build(Context *context, const GraphFunc *graph, const CompileOptions *options) {
  Program *p = program_plan(context, graph, options);
  int64_t start = clock_now_ns();
  if (!p || !lower_all(p)) return NULL;
  p->lower_seconds = seconds_since(start);
  place_weights(p);
  return place_arena(p) ? p : NULL;
}
