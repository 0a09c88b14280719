// SPDX-License-Identifier: Apache-2.0
// Checks that the kernels of a plan read only what is in memory when they run: constants, inputs in
// the layouts in which the caller has them, and tensors that earlier kernels have written in the
// layout in which they are read. A tensor that is written in pieces is in memory when as many of
// its elements are written as it has; that no two pieces meet is checked where pieces are found
// (relations.c).
//   k1 writes a (a piece of o), k2 writes b (the other piece of o), k3 reads o
//     => k3 may not run before k1 or k2, and there must be both
#include "plan/internal.h"

// A tensor in one of the layouts in which it is in memory.
typedef struct VersionWritten {
  const Layout *layout;
  double missing; // elements that no kernel has written so far
  struct VersionWritten *next;
} VersionWritten;

typedef struct WriteCheck {
  const Plan *plan;
  const StageGraph *graph;  // with the stages that are not in the plan
  VersionWritten **written; // by tensor->index
} WriteCheck;

// Returns what is known of the tensor in this layout; at first nothing of it is written.
static VersionWritten *written_in(const WriteCheck *c, const StageTensor *tensor,
                                  const Layout *layout) {
  VersionWritten **at = &c->written[tensor->index];
  while (*at && !planner_same_layout((*at)->layout, layout)) at = &(*at)->next;
  if (*at) return *at;
  double elements = stage_tensor_elements(tensor); // negative: not known, and written at once
  *at = arena_new(&c->graph->context->scratch, VersionWritten);
  **at = (VersionWritten){.layout = layout, .missing = elements < 0 ? 1 : elements};
  return *at;
}

bool planner_is_of_graph(const StageGraph *graph, const StageTensor *tensor) {
  return graph->tensors.items[tensor->index] == tensor;
}

static const char *layout_name(const WriteCheck *c, const StageTensor *tensor,
                               const Layout *layout) {
  return plan_layout_name(c->graph->context, tensor, layout);
}

static void check_read(const WriteCheck *c, const PlanKernel *kernel, int param) {
  const StageTensor *tensor = kernel->params.items[param];
  const Layout *layout = kernel->layouts[param].layout;
  if (tensor->data) return;
  double missing = written_in(c, tensor, layout)->missing;
  if (missing > 0)
    bug(c->graph->context,
        "kernel '%s' reads '%s' in the layout %s, of which %.0f elements are not written before",
        kernel->name, plan_tensor_name(tensor), layout_name(c, tensor, layout), missing);
}

static void note_elements(const WriteCheck *c, const PlanKernel *kernel, const StageTensor *tensor,
                          const Layout *layout, double elements) {
  VersionWritten *written = written_in(c, tensor, layout);
  written->missing -= elements;
  if (written->missing < 0)
    bug(c->graph->context, "kernel '%s' writes elements of '%s' in the layout %s a second time",
        kernel->name, plan_tensor_name(tensor), layout_name(c, tensor, layout));
}

static void note_write(const WriteCheck *c, const PlanKernel *kernel, int param) {
  const StageTensor *tensor = kernel->params.items[param];
  const Layout *layout = kernel->layouts[param].layout;
  double elements = stage_tensor_elements(tensor);
  if (planner_is_of_graph(c->graph, tensor))
    note_elements(c, kernel, tensor, layout, elements < 0 ? 1 : elements);
  for (const PlanPlacement *at = kernel->placements[param]; at && at->whole;
       at = plan_placement(c->plan, at->whole, at->whole_layout))
    note_elements(c, kernel, at->whole, at->whole_layout, elements);
}

static void check_output(const WriteCheck *c, int number) {
  const StageTensor *tensor = c->graph->outputs.items[number];
  const Layout *layout = plan_output_layout(c->plan, number);
  if (!tensor->data && written_in(c, tensor, layout)->missing > 0)
    bug(c->graph->context, "no kernel writes all of the output '%s' in the layout %s",
        plan_tensor_name(tensor), layout_name(c, tensor, layout));
}

void planner_check_written(const Plan *plan) {
  const StageGraph *graph = plan->planner->stages;
  Arena *scratch = &graph->context->scratch;
  ArenaMark mark = arena_mark(scratch);
  WriteCheck c = {plan, graph, arena_array(scratch, VersionWritten *, graph->tensors.count)};
  for (int i = 0; i < graph->inputs.count; i++)
    written_in(&c, graph->inputs.items[i], plan_input_layout(plan, i))->missing = 0;
  for (int i = 0; i < plan->kernels.count; i++) {
    const PlanKernel *kernel = plan->kernels.items[i];
    for (int k = 0; k < kernel->params.count; k++)
      if (!plan_kernel_writes(kernel, k)) check_read(&c, kernel, k);
    for (int k = 0; k < kernel->params.count; k++)
      if (plan_kernel_writes(kernel, k)) note_write(&c, kernel, k);
  }
  for (int i = 0; i < graph->outputs.count; i++) check_output(&c, i);
  arena_reset(scratch, mark);
}
