// SPDX-License-Identifier: Apache-2.0
// Leaves gaps in the memory of intermediate tensors whose elements would share few sets of the
// first cache. A kernel that reads or writes such elements at the same time would lose each cache
// line before it has used all of it:
//
//   t[6, 6, 1, 32, 4, 4, 8] of float32: 36 elements t[a, b, …] are a multiple of 16 KiB apart,
//   and all of them are in one set of 8 lines. With rows of 16 KiB and a line they are in 36 sets.
//
// Which elements are used at the same time is read from the loops of the stages: those along a
// reduction, those of several reads of one tensor, and those along axes of an output on which none
// of the reads depends. A layout is an index map, and so is one with gaps: plan_memory_layout gives
// it. Tensors that programs outside of the graph use, or that other tensors are parts of, stay as
// they are, and so do those of kernels that move through all their elements in one loop.
#include "plan/internal.h"

typedef struct GapSearch {
  Plan *plan;
  bool *dense;   // by tensor: its memory must not have gaps
  bool *crowded; // by tensor: some kernel uses elements that share too few sets at the same time
} GapSearch;

// The physical axes of a tensor in memory, without gaps.
typedef struct MemoryAxes {
  int count;
  int64_t extents[PLAN_MAX_PHYSICAL], strides[PLAN_MAX_PHYSICAL]; // strides in elements
} MemoryAxes;

// Are elements so many bytes apart in at most four sets?
static bool reaches_few_sets(const GapSearch *s, int64_t stride) {
  int64_t period = cost_model_of(s->plan->machine)->set_bytes;
  return gcd_of(stride, period) >= period / 4;
}

// False when the layout is not an array in plain memory.
static bool memory_axes(const StageTensor *tensor, const Layout *layout, MemoryAxes *out) {
  if (layout && (!layout_is_array(layout) || layout->physical_rank > PLAN_MAX_PHYSICAL))
    return false;
  out->count = layout ? layout->physical_rank : tensor->buffer->rank;
  if (layout)
    memcpy(out->extents, layout->physical_extents, sizeof *out->extents * (size_t)out->count);
  else if (!buffer_static_shape(tensor->buffer, out->extents))
    return false;
  planner_dense_strides(out->extents, out->count, out->strides);
  return true;
}

// ---- Elements that are used at the same time

// How many values of each dimension of a tensor are used at the same time.
typedef struct UsedValues {
  double of[TE_MAX_RANK];
} UsedValues;

static void use_values(UsedValues *used, const Buffer *buffer, int d, double count) {
  int64_t extent = 1;
  expr_as_int(buffer->shape[d], &extent);
  used->of[d] = MAX_OF(used->of[d], MIN_OF(count, (double)extent));
}

typedef struct StageLoads {
  Arena *arena;
  Array(Expr *) items; // each once
} StageLoads;

static bool note_load(Visitor *visitor, Expr *e) {
  StageLoads *loads = visitor->env;
  if (e->op != EXPR_LOAD) return true;
  array_push(loads->arena, &loads->items, e);
  return false;
}

static StageLoads loads_of(Arena *arena, const TeStage *te) {
  StageLoads loads = {arena};
  visit_expr(&(Visitor){.env = &loads, .enter_expr = note_load}, te->value);
  return loads;
}

static bool load_depends(const Expr *load, const Expr *var) {
  for (int d = 0; d < load->count; d++)
    if (expr_uses(load->args[d], var)) return true;
  return false;
}

static double extent_of(const BlockVar *axis) {
  int64_t extent = 1;
  expr_as_int(axis->extent, &extent);
  return (double)MAX_OF(extent, 1);
}

static double reduced_values(const TeStage *te, const Expr *index) {
  double count = 1;
  for (int a = te->axis_count; a < te->axis_count + te->reduce_count; a++)
    if (expr_uses(index, te->axes[a].var)) count *= extent_of(&te->axes[a]);
  return count;
}

// Counts the different indices along the dimension in the loads of the tensor.
static double different_indices(const StageLoads *loads, const Buffer *buffer, int d) {
  double count = 0;
  for (int i = 0; i < loads->items.count; i++) {
    int earlier = 0;
    const Expr *load = loads->items.items[i];
    if (load->as.buffer != buffer) continue;
    while (earlier < i && (loads->items.items[earlier]->as.buffer != buffer ||
                           loads->items.items[earlier]->args[d] != load->args[d]))
      earlier++;
    count += earlier == i;
  }
  return count;
}

static void use_read_values(const TeStage *te, const StageLoads *loads, const Buffer *buffer,
                            UsedValues *used) {
  for (int d = 0; d < buffer->rank; d++) {
    use_values(used, buffer, d, different_indices(loads, buffer, d));
    for (int i = 0; i < loads->items.count; i++)
      if (loads->items.items[i]->as.buffer == buffer)
        use_values(used, buffer, d, reduced_values(te, loads->items.items[i]->args[d]));
  }
}

// Elements along an axis on which no load depends are computed from the same values.
static void use_written_values(const TeStage *te, const StageLoads *loads, UsedValues *used) {
  for (int d = 0; d < te->axis_count && d < te->output->rank; d++) {
    bool depends = te->reduce_count > 0 || !loads->items.count;
    for (int i = 0; i < loads->items.count; i++)
      depends |= load_depends(loads->items.items[i], te->axes[d].var);
    if (!depends) use_values(used, te->output, d, extent_of(&te->axes[d]));
  }
}

// The values of a physical axis that are used; those of the dimensions it depends on are then used
// along the axes further out as often as these move with them.
static double values_along(const LayoutExpr *e, double extent, UsedValues *used) {
  if (!e) return 1;
  double count = 1;
  if (e->op == LAYOUT_AXIS) {
    count = MIN_OF(used->of[e->value], extent);
    used->of[e->value] = MAX_OF(used->of[e->value] / extent, 1);
  }
  for (int i = 0; i < layout_op_arguments(e->op); i++)
    count *= values_along(e->args[i], extent, used);
  return MIN_OF(count, extent);
}

static double values_of_axis(const Layout *layout, int k, double extent, UsedValues *used) {
  return layout ? values_along(layout->map->outputs[k], extent, used) : used->of[k];
}

// Do elements with so many values of each axis outnumber the lines of the sets that they share?
static bool shares_sets(const GapSearch *s, const StageTensor *tensor, const MemoryAxes *axes,
                        const double *values) {
  const HostMachine *machine = s->plan->machine;
  int64_t period = cost_model_of(machine)->set_bytes, step = period;
  int64_t bytes = dtype_bytes(tensor->buffer->type);
  double count = 1;
  for (int k = axes->count - 1; k >= 0; k--) {
    if (values[k] <= 1 || axes->strides[k] * bytes < machine->line_bytes) continue;
    step = gcd_of(axes->strides[k] * bytes, step);
    count *= values[k];
  }
  int64_t sets = period / MAX_OF(step, machine->line_bytes);
  return count > (double)(sets * MAX_OF(machine->l1_ways, 1));
}

static bool stage_crowds(const GapSearch *s, const Stage *stage, const StageTensor *tensor,
                         const Layout *layout, const MemoryAxes *axes) {
  const TeStage *te = stage->te;
  UsedValues used;
  for (int d = 0; d < TE_MAX_RANK; d++) used.of[d] = 1;
  ArenaMark mark = arena_mark(&s->plan->context->scratch);
  StageLoads loads = loads_of(&s->plan->context->scratch, te);
  if (stage->output == tensor)
    use_written_values(te, &loads, &used);
  else
    use_read_values(te, &loads, tensor->buffer, &used);
  arena_reset(&s->plan->context->scratch, mark);
  double values[PLAN_MAX_PHYSICAL];
  for (int k = axes->count - 1; k >= 0; k--)
    values[k] = values_of_axis(layout, k, (double)MAX_OF(axes->extents[k], 1), &used);
  return shares_sets(s, tensor, axes, values);
}

// ---- Kernels

static bool has_reduction(const PlanKernel *kernel) {
  for (int i = 0; i < kernel->stage_count; i++)
    if (stage_is_reduction(kernel->stages[i])) return true;
  return false;
}

// Does the kernel's schedule work with any strides of its parameters?
static bool takes_gaps(const PlanKernel *kernel) {
  bool own = kernel->stage_count && !kernel->is_rewrite && !kernel->call && !kernel->tuned;
  for (int i = 0; i < kernel->stage_count; i++) own &= !kernel->stages[i]->te->program;
  return own && !kernel->bands;
}

// Could the memory of the tensor have gaps, because a stride reaches few sets?
static bool may_have_gaps(const GapSearch *s, const StageTensor *tensor, const MemoryAxes *axes) {
  int64_t bytes = dtype_bytes(tensor->buffer->type);
  if (!planner_is_of_graph(s->plan->planner->stages, tensor) || s->dense[tensor->index])
    return false;
  for (int k = 0; k < axes->count; k++)
    if (axes->extents[k] > 1 && reaches_few_sets(s, axes->strides[k] * bytes)) return true;
  return false;
}

// Can there be so many elements that they share too few sets, whatever kernels use? There are no
// more than the tensor has, and no fewer sets than those that the elements of one axis reach.
static bool may_share_sets(const GapSearch *s, const StageTensor *tensor, const MemoryAxes *axes) {
  const HostMachine *machine = s->plan->machine;
  int64_t period = cost_model_of(machine)->set_bytes, step = machine->line_bytes;
  int64_t bytes = dtype_bytes(tensor->buffer->type);
  double count = 1;
  for (int k = 0; k < axes->count; k++) {
    if (axes->extents[k] <= 1 || axes->strides[k] * bytes < machine->line_bytes) continue;
    step = MAX_OF(step, gcd_of(axes->strides[k] * bytes, period));
    count *= (double)axes->extents[k];
  }
  return count > (double)(period / step * MAX_OF(machine->l1_ways, 1));
}

static void look_at_kernel(GapSearch *s, const PlanKernel *kernel) {
  bool takes = takes_gaps(kernel), reduces = has_reduction(kernel);
  for (int i = 0; i < kernel->params.count; i++) {
    const StageTensor *tensor = kernel->params.items[i];
    const Layout *layout = kernel->layouts[i].layout;
    MemoryAxes axes;
    if (!memory_axes(tensor, layout, &axes) || !may_have_gaps(s, tensor, &axes)) continue;
    bool crowded = false, may = takes && may_share_sets(s, tensor, &axes);
    for (int k = 0; k < kernel->stage_count && may; k++)
      crowded |= stage_crowds(s, kernel->stages[k], tensor, layout, &axes);
    if (!takes || (!reduces && !crowded)) s->dense[tensor->index] = true;
    s->crowded[tensor->index] |= crowded;
  }
}

// ---- Gaps

// Makes each stride that reaches few sets a line longer.
static PlanPlacement *with_gaps(const GapSearch *s, StageTensor *tensor, const Layout *layout) {
  int64_t bytes = dtype_bytes(tensor->buffer->type);
  int64_t line = s->plan->machine->line_bytes / bytes, stride = 1;
  PlanPlacement *placement = arena_new(&s->plan->context->arena, PlanPlacement);
  MemoryAxes axes;
  if (!memory_axes(tensor, layout, &axes)) return NULL;
  *placement = (PlanPlacement){.tensor = tensor, .layout = layout, .dense = true};
  for (int k = axes.count - 1; k >= 0; k--) {
    if (axes.extents[k] > 1 && reaches_few_sets(s, stride * bytes)) {
      stride += line;
      placement->dense = false;
    }
    placement->strides[k] = stride;
    stride *= MAX_OF(axes.extents[k], 1);
  }
  placement->bytes = stride * bytes;
  return placement->dense ? NULL : placement;
}

static void set_dense_tensors(GapSearch *s) {
  const StageGraph *graph = s->plan->planner->stages;
  const Map *placements = &s->plan->placements;
  for (int i = 0; i < graph->tensors.count; i++) {
    const StageTensor *tensor = graph->tensors.items[i];
    s->dense[i] = tensor->data || tensor->input >= 0 || tensor->is_output || tensor->branch ||
                  map_find(placements, tensor);
  }
  for (int i = 0; i < placements->count; i++)
    s->dense[((const PlanPlacement *)placements->entries[i].value)->whole->index] = true;
}

bool planner_add_gaps(Plan *plan) {
  Arena *arena = &plan->context->arena;
  int count = plan->planner->stages->tensors.count;
  GapSearch search = {plan, arena_array(arena, bool, count), arena_array(arena, bool, count)};
  bool any = false;
  set_dense_tensors(&search);
  for (int i = 0; i < plan->kernels.count; i++) look_at_kernel(&search, plan->kernels.items[i]);
  for (int i = 0; i < plan->kernels.count; i++) {
    const PlanKernel *kernel = plan->kernels.items[i];
    StageTensor *tensor = array_last(&kernel->params);
    if (!planner_is_of_graph(plan->planner->stages, tensor) || search.dense[tensor->index] ||
        !search.crowded[tensor->index])
      continue;
    const Layout *layout = kernel->layouts[kernel->params.count - 1].layout;
    PlanPlacement *placement = with_gaps(&search, tensor, layout);
    if (placement) map_put(&plan->placements, tensor, placement);
    any |= placement != NULL;
  }
  return any;
}
