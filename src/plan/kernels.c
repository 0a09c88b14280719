// SPDX-License-Identifier: Apache-2.0
// Makes the plan's kernels from the choices: each group of fused stages becomes one kernel, and
// each rewrite stands directly after the kernel that writes its tensor. Rewrites of an input stand
// before the first stage that reads it, so that the caches still hold what they write.
#include "plan/internal.h"

typedef struct Grouping {
  Planner *planner;
  const int *choice; // by stage->index
  Plan *plan;
  int *group;       // by stage->index: index of the first stage of its group
  PtrArray *stages; // by index of a group's first stage
  bool *in_place;   // by stage->index: its pieces are written in place, and it has no kernel
  bool *rewritten;  // by index of an input: its rewrites have been added
} Grouping;

static const StageChoice *chosen(const Grouping *g, const Stage *stage) {
  return &g->planner->choices[stage->index].items[g->choice[stage->index]];
}

static const Layout *layout_number(const Grouping *g, const StageTensor *tensor, int i) {
  return i < 0 ? NULL : g->planner->candidates[tensor->index].items[i].layout;
}

static void add_rewrite(Grouping *g, StageTensor *tensor, int from, int to, const char *because) {
  Plan *plan = g->plan;
  Context *context = plan->context;
  Te *te = te_new(context);
  Buffer *like = tensor->buffer;
  Buffer *input = te_input(te, like->name, like->type, like->shape, like->rank);
  TeAxes axes = te_axes(te, like->shape, like->rank);
  Buffer *output =
      te_compute(te, "rewritten", like->type, like->shape, &axes, te_at(te, input, axes.at));
  array_push(&context->arena, &te->outputs, output);
  PlanKernel *kernel = arena_new(&context->arena, PlanKernel);
  kernel->is_rewrite = true;
  kernel->name = str_format(context, "rewrite_%s", plan_tensor_name(tensor));
  kernel->func = te_prim_func(te, kernel->name);
  for (int i = 0; i < 2; i++) array_push(&context->arena, &kernel->params, tensor);
  kernel->layouts = arena_array(&context->arena, KernelParam, 2);
  kernel->layouts[0].layout = layout_number(g, tensor, from);
  kernel->layouts[1].layout = layout_number(g, tensor, to);
  array_push(&context->arena, &plan->kernels, kernel);
  double bytes = MAX_OF(planner_tensor_bytes(tensor, kernel->layouts[0].layout),
                        planner_tensor_bytes(tensor, kernel->layouts[1].layout));
  kernel->cost = planner_rewrite_cost(g->planner, tensor, from, to);
  PlanRewrite rewrite = {tensor,
                         kernel->layouts[0].layout,
                         kernel->layouts[1].layout,
                         .bytes = (int64_t)bytes,
                         .cost = planner_rewrite_cost(g->planner, tensor, from, to),
                         .because = because,
                         .kernel = kernel};
  array_push(&context->arena, &plan->rewrites, rewrite);
}

// Why a rewrite exists, such as "conv1 reads NHWC (--desired-layout), the input is NCHW".
static const char *read_because(const Grouping *g, const Stage *user, const StageTensor *tensor,
                                int from, int to) {
  Context *context = g->plan->context;
  bool requested = planner_constraint(g->planner, user, stage_read_of(user, tensor)) != NULL;
  const char *from_name =
      tensor->producer ? str_format(context, "%s writes", planner_stage_name(tensor->producer))
                       : "the input is";
  return str_format(context, "%s reads %s%s, %s %s", planner_stage_name(user),
                    plan_layout_name(context, tensor, layout_number(g, tensor, to)),
                    requested ? " (asked for)" : "", from_name,
                    plan_layout_name(context, tensor, layout_number(g, tensor, from)));
}

// Adds the rewrites of a tensor directly after its kernel, one for each layout that is read outside
// its group.
static void add_rewrites_of(Grouping *g, StageTensor *tensor) {
  int from = planner_written(g->planner, g->choice, tensor), given;
  LayoutSet done = LAYOUT_SET_OF(from);
  for (int i = 0; i < tensor->users.count; i++) {
    const Stage *user = tensor->users.items[i];
    int to = planner_read_in(g->planner, g->choice, tensor, user);
    if (to < 0 || done >> to & 1) continue;
    done |= LAYOUT_SET_OF(to);
    add_rewrite(g, tensor, from, to, read_because(g, user, tensor, from, to));
  }
  given = g->planner->given[tensor->index];
  if (tensor->is_output && !(done >> given & 1))
    add_rewrite(g, tensor, from, given,
                given ? "the graph's output is asked for so" : "the graph's output is row-major");
}

static const Layout *param_layout(const Grouping *g, Stage *const *stages, int count,
                                  const StageTensor *tensor) {
  for (int i = 0; i < count; i++) {
    int read = stage_read_of(stages[i], tensor);
    if (read >= 0)
      return layout_number(g, tensor, planner_read_in(g->planner, g->choice, tensor, stages[i]));
    if (stages[i]->output == tensor) return layout_number(g, tensor, chosen(g, stages[i])->output);
  }
  return NULL;
}

static const StageConstraint *constant_constraint(const Grouping *g, const PlanKernel *kernel,
                                                  const StageTensor *tensor) {
  const StageConstraint *constraint = NULL;
  for (int i = 0; i < kernel->stage_count && !constraint; i++) {
    int read = stage_read_of(kernel->stages[i], tensor);
    if (read >= 0) constraint = planner_constraint(g->planner, kernel->stages[i], read);
  }
  return constraint;
}

static Stage *anchor_of(Stage *const *stages, int count) {
  for (int i = 0; i < count; i++)
    if (stage_is_reduction(stages[i])) return stages[i];
  return stages[0];
}

// The cycles that the stage takes longer because it gathers elements of what it reads.
static double gathering_of(const Grouping *g, const Stage *stage, const StageChoice *choice) {
  double cycles = 0;
  for (int i = 0; i < stage->reads.count; i++) {
    const StageTensor *tensor = stage->reads.items[i];
    int read = tensor->data ? READ_PACKED : planner_read_in(g->planner, g->choice, tensor, stage);
    if (read != choice->reads[i]) cycles += planner_gathering(g->planner, stage, choice, i, read);
  }
  return cycles;
}

// Makes the kernel the call of its only stage. The layouts of constants and of further outputs are
// those of the way.
static void set_call(Grouping *g, PlanKernel *kernel) {
  const Stage *stage = kernel->stages[0];
  kernel->call = stage->te->call;
  kernel->way = chosen(g, stage)->way;
  for (int i = 0; i + 1 < kernel->params.count; i++) {
    const StageTensor *tensor = kernel->params.items[i];
    bool written = plan_kernel_writes(kernel, i);
    kernel->layouts[i].constant = false;
    if (tensor->data) kernel->layouts[i].layout = planner_way_layout(stage, kernel->way, tensor);
    if (written)
      kernel->layouts[i].layout = layout_number(g, tensor, chosen(g, tensor->producer)->output);
  }
}

// The layouts of constants are those of the record; the choices have all others.
static void set_tuned(PlanKernel *kernel) {
  for (int i = 0; i < kernel->params.count; i++) {
    if (!kernel->params.items[i]->data) continue;
    kernel->layouts[i] = (KernelParam){.layout = kernel->tuned->layouts[i]};
  }
}

static PlanKernel *kernel_of_stages(Grouping *g, Stage **stages, int count) {
  Context *context = g->plan->context;
  PlanKernel *kernel = arena_new(&context->arena, PlanKernel);
  kernel->stages = stages;
  kernel->stage_count = count;
  kernel->name = planner_stage_name(anchor_of(stages, count));
  kernel->params = stages_params(g->planner->stages, stages, count);
  kernel->layouts = arena_array(&context->arena, KernelParam, kernel->params.count);
  return kernel;
}

static void add_kernel(Grouping *g, const PtrArray *stages) {
  Context *context = g->plan->context;
  PlanKernel *kernel = kernel_of_stages(g, (Stage **)stages->items, stages->count);
  for (int i = 0; i < kernel->params.count; i++) {
    StageTensor *tensor = kernel->params.items[i];
    const StageConstraint *constraint =
        tensor->data ? constant_constraint(g, kernel, tensor) : NULL;
    kernel->layouts[i].constant = tensor->data && !constraint;
    kernel->layouts[i].layout = tensor->data
                                    ? (constraint ? constraint->layout : NULL)
                                    : param_layout(g, kernel->stages, kernel->stage_count, tensor);
  }
  if (stage_is_opaque(kernel->stages[0])) set_call(g, kernel);
  for (int i = 0; i < kernel->stage_count; i++) {
    const StageChoice *choice = chosen(g, kernel->stages[i]);
    kernel->cost += choice->cost + gathering_of(g, kernel->stages[i], choice);
    if (choice->strategies) kernel->strategies = choice->strategies;
    if (choice->tuned) kernel->tuned = choice->tuned;
  }
  if (kernel->tuned) set_tuned(kernel);
  array_push(&context->arena, &g->plan->kernels, kernel);
  add_rewrites_of(g, array_last(&kernel->params));
}

// ---- Pieces that are written in place

// Adds the kernel that computes a piece which no other stage writes.
static void add_copy(Grouping *g, const Stage *stage, const StagePiece *piece) {
  Arena *arena = &g->plan->context->arena;
  Stage **copy = arena_copy(arena, &piece->copy, sizeof piece->copy);
  PlanKernel *kernel = kernel_of_stages(g, copy, 1);
  const PlanPlacement *placement = map_find(&g->plan->placements, piece->copy->output);
  for (int i = 0; i < kernel->params.count; i++) {
    StageTensor *tensor = kernel->params.items[i];
    bool is_output = tensor == piece->copy->output;
    kernel->layouts[i].constant = tensor->data != NULL;
    if (is_output)
      kernel->layouts[i].layout = placement->layout;
    else if (!tensor->data)
      kernel->layouts[i].layout =
          layout_number(g, tensor, planner_read_in(g->planner, g->choice, tensor, stage));
  }
  kernel->cost = planner_copy_cost(g->planner, piece, placement);
  array_push(arena, &g->plan->kernels, kernel);
}

static void add_copies(Grouping *g, const Stage *stage) {
  const StagePieces *pieces = g->planner->pieces[stage->index];
  for (int i = 0; i < pieces->count; i++)
    if (!planner_is_placed(g->planner, stage, &pieces->items[i], chosen(g, stage)))
      add_copy(g, stage, &pieces->items[i]);
  add_rewrites_of(g, stage->output);
}

// Places all pieces of the stage, whose output may have a place itself. When one does not fit, the
// stage gets a kernel instead: its choice reads the same layouts.
static bool place_pieces(Grouping *g, const Stage *stage) {
  Plan *plan = g->plan;
  const StageChoice *choice = chosen(g, stage);
  const StagePieces *pieces = g->planner->pieces[stage->index];
  const PlanPlacement *own =
      plan_placement(plan, stage->output, layout_number(g, stage->output, choice->output));
  int count = pieces->count;
  PlanPlacement *placements = arena_array(&plan->context->arena, PlanPlacement, count);
  for (int i = 0; i < count; i++)
    if (!planner_place(g->planner, stage, i, choice, own ? own->strides : NULL, &placements[i]))
      return false;
  for (int i = 0; i < count; i++) map_put(&plan->placements, placements[i].tensor, &placements[i]);
  return true;
}

// The larger tensors are computed later, so that their places are known first.
static void find_placements(Grouping *g) {
  const StageGraph *graph = g->planner->stages;
  g->in_place = arena_array(&g->plan->context->arena, bool, graph->stages.count);
  for (int i = graph->stages.count - 1; i >= 0; i--) {
    const Stage *stage = graph->stages.items[i];
    const StageChoice *choice = chosen(g, stage);
    g->in_place[i] = choice->in_place && !choice->absent && place_pieces(g, stage);
  }
}

static void set_placements(Plan *plan) {
  for (int i = 0; i < plan->kernels.count; i++) {
    PlanKernel *kernel = plan->kernels.items[i];
    int count = kernel->params.count;
    kernel->placements = arena_array(&plan->context->arena, const PlanPlacement *, count);
    for (int k = 0; k < count; k++) {
      const PlanPlacement *placement =
          plan_placement(plan, kernel->params.items[k], kernel->layouts[k].layout);
      kernel->placements[k] = placement;
      kernel->layouts[k].strided = placement && !placement->dense;
    }
  }
}

static void find_groups(Grouping *g) {
  const StageGraph *graph = g->planner->stages;
  Arena *arena = &g->plan->context->arena;
  g->group = arena_array(arena, int, graph->stages.count);
  g->stages = arena_array(arena, PtrArray, graph->stages.count);
  for (int i = 0; i < graph->stages.count; i++) {
    Stage *stage = graph->stages.items[i];
    if (chosen(g, stage)->absent) continue;
    int fused = chosen(g, stage)->fused;
    g->group[i] =
        fused < 0 ? i : g->group[((StageTensor *)stage->reads.items[fused])->producer->index];
    array_push(arena, &g->stages[g->group[i]], stage);
  }
}

static void add_rewrites_of_input(Grouping *g, StageTensor *tensor) {
  if (tensor->input < 0 || g->rewritten[tensor->input]) return;
  g->rewritten[tensor->input] = true;
  add_rewrites_of(g, tensor);
}

static void add_rewrites_before(Grouping *g, const PtrArray *stages) {
  for (int i = 0; i < stages->count; i++) {
    const Stage *stage = stages->items[i];
    for (int k = 0; k < stage->reads.count; k++) add_rewrites_of_input(g, stage->reads.items[k]);
  }
}

void planner_make_kernels(Planner *planner, const int *choice, Plan *plan) {
  Grouping grouping = {.planner = planner, .choice = choice, .plan = plan}, *g = &grouping;
  const StageGraph *graph = planner->stages;
  find_groups(g);
  find_placements(g);
  g->rewritten = arena_array(&plan->context->arena, bool, graph->inputs.count);
  for (int i = 0; i < graph->stages.count; i++) {
    const PtrArray *stages = &g->stages[g->group[i]];
    const Stage *stage = graph->stages.items[i];
    if (chosen(g, stage)->absent) continue;
    if (g->in_place[i] || array_last(stages) == stage) add_rewrites_before(g, stages);
    if (stage->te->call_output)
      add_rewrites_of(g, stage->output);
    else if (g->in_place[i])
      add_copies(g, stage);
    else if (array_last(stages) == stage)
      add_kernel(g, stages);
  }
  for (int i = 0; i < graph->inputs.count; i++) add_rewrites_of_input(g, graph->inputs.items[i]);
  set_placements(plan);
  planner_make_bands(plan);
  if (planner_add_gaps(plan)) set_placements(plan);
  planner_check_written(plan);
  planner_note_moves(plan);
}
