// SPDX-License-Identifier: Apache-2.0
// The planner's entry point: finds candidates and choices, takes the best choices or those of a
// policy, makes the kernels, and finds their schedules.
#include "plan/internal.h"

// ---- Names

const char *plan_layout_name(Context *context, const StageTensor *tensor, const Layout *layout) {
  static const char *const data[] = {"scalar", "C", "NC", "NCW", "NCHW", "NCDHW"};
  static const char *const weights[] = {"scalar", "C", "OI", "OIW", "OIHW", "OIDHW"};
  int rank = tensor->buffer->rank;
  const char *usual = rank >= COUNT_OF(data) ? NULL : tensor->data ? weights[rank] : data[rank];
  if (!layout) return usual ? usual : "row-major";
  const char *name = index_map_name(context, layout->map, usual);
  return name ? name : index_map_text(context, layout->map);
}

const char *plan_tensor_name(const StageTensor *tensor) {
  return tensor->value ? tensor->value->name : tensor->buffer->name;
}

int64_t plan_bytes(const StageTensor *tensor, const Layout *layout) {
  return (int64_t)planner_tensor_bytes(tensor, layout);
}

// ---- The plan

// The constraints that hold without planning: the layouts in which the caller has the inputs and
// outputs. All other tensors are row-major.
static const PlanConstraints *boundary_only(Context *context, const PlanConstraints *constraints) {
  if (!constraints) return NULL;
  PlanConstraints *boundary = arena_copy(&context->arena, constraints, sizeof *constraints);
  boundary->items.count = 0;
  return boundary;
}

// A planner with candidates and choices, or NULL with diagnostics when the constraints cannot be
// met.
static Planner *prepare(StageGraph *stages, const PlanOptions *options,
                        const PlanConstraints *constraints, bool proposals, bool row_major) {
  Context *context = stages->context;
  Planner *p = arena_new(&context->arena, Planner);
  *p = (Planner){.context = context, .stages = stages, .machine = options->machine};
  p->constraints = constraints;
  p->most_choices = options->most_choices > 0 ? options->most_choices : PLAN_MAX_CHOICES;
  p->most_layouts = options->most_layouts > 0 ? MIN_OF(options->most_layouts, PLAN_MAX_LAYOUTS)
                                              : PLAN_MAX_LAYOUTS;
  p->candidates = arena_array(&context->arena, Candidates, stages->tensors.count);
  p->nests = arena_new(&context->arena, Map);
  *p->nests = map_new(&context->arena);
  p->given = arena_array(&context->arena, int, stages->tensors.count);
  for (int i = 0; i < stages->tensors.count; i++)
    p->candidates[i] = (Candidates){.count = 1, .items = {{.axis = CANDIDATE_ROWS}}};
  if (!planner_apply_constraints(p)) return NULL;
  if (!row_major) planner_find_candidates(p, proposals);
  p->row_major = row_major;
  p->choices = arena_array(&context->arena, StageChoices, stages->stages.count);
  p->bodies = arena_array(&context->arena, LoopBody, stages->stages.count);
  bool ok = true;
  for (int i = 0; i < stages->stages.count; i++) ok &= planner_find_choices(p, i);
  return ok ? p : NULL;
}

static Assignment assign(const Planner *planner, const PlanOptions *options, double seconds) {
  switch (options->policy) {
  case PLAN_FORWARD: return planner_forward(planner);
  case PLAN_BACKWARD: return planner_backward(planner);
  case PLAN_OPTIMAL:
  case PLAN_NONE: break;
  }
  return planner_solve(planner, seconds, NULL, 0);
}

static PlanLimits limits_of(const Planner *p) {
  PlanLimits limits = {.choices_left_out = p->choices_left_out};
  for (int i = 0; i < p->stages->stages.count; i++) limits.choices += p->choices[i].count;
  for (int i = 0; i < p->stages->tensors.count; i++)
    limits.layouts_left_out += p->candidates[i].left_out;
  return limits;
}

static void note_costs(Plan *plan, const PlanOptions *options, double seconds,
                       const Assignment *taken, const Assignment *unplanned) {
  plan->cost_unplanned = (double)unplanned->cost;
  plan->cost = (double)taken->cost;
  plan->lower_bound = (double)taken->bound;
  plan->limits = limits_of(plan->planner);
  plan->optimal =
      taken->optimal && !plan->limits.choices_left_out && !plan->limits.layouts_left_out;
  if (options->policy == PLAN_NONE) return;
  plan->cost_optimal = plan->cost;
  if (options->policy != PLAN_OPTIMAL) {
    Assignment best = planner_solve(plan->planner, seconds, NULL, 0);
    plan->cost_optimal = (double)best.cost;
    plan->lower_bound = (double)best.bound;
  }
  plan->cost_forward = (double)planner_forward(plan->planner).cost;
  plan->cost_backward = (double)planner_backward(plan->planner).cost;
}

const char *plan_left_out(Arena *arena, const Plan *plan) {
  const PlanLimits *limits = &plan->limits;
  long long choices = limits->choices_left_out, all = limits->choices + choices;
  long long layouts = limits->layouts_left_out;
  if (!choices && !layouts) return NULL;
  const char *of_choices = arena_printf(arena, "%lld choices of %lld", choices, all);
  const char *of_layouts = arena_printf(arena, "%lld layout%s", layouts, layouts == 1 ? "" : "s");
  if (choices && layouts)
    return arena_printf(arena, "%s and %s were not looked at", of_choices, of_layouts);
  return arena_printf(arena, "%s were not looked at", choices ? of_choices : of_layouts);
}

Plan *plan_graph(StageGraph *stages, const PlanOptions *options) {
  Context *context = stages->context;
  const PlanConstraints *constraints = options->constraints,
                        *boundary = boundary_only(context, constraints);
  double seconds = options->seconds > 0 ? options->seconds : 2;
  Plan *plan = arena_new(&context->arena, Plan);
  *plan = (Plan){.context = context, .stages = stages, .machine = options->machine};
  plan->constraints = constraints;
  Planner *none = prepare(stages, options, boundary, false, true);
  Planner *planner =
      none ? prepare(stages, options, constraints, options->policy != PLAN_NONE, false) : NULL;
  if (!planner) return NULL;
  Assignment unplanned = planner_solve(none, seconds, NULL, 0);
  if (!unplanned.choice) bug(context, "the unplanned graph has no plan");
  Assignment taken = assign(planner, options, seconds);
  bool free = options->policy == PLAN_OPTIMAL && (!constraints || !constraints->items.count);
  if (!taken.choice && !free) bug(context, "no plan meets the constraints");
  if (free && (!taken.choice || taken.cost > unplanned.cost)) {
    unplanned.bound = MIN_OF(taken.bound, unplanned.cost);
    unplanned.optimal = taken.bound == unplanned.cost;
    taken = unplanned;
    planner = none;
  }
  plan->planner = planner;
  plan->choice = taken.choice;
  note_costs(plan, options, seconds, &taken, &unplanned);
  planner_make_kernels(planner, taken.choice, plan);
  return plan;
}

const Layout *plan_input_layout(const Plan *plan, int number) {
  const StageTensor *tensor = plan->stages->inputs.items[number];
  const Planner *p = plan->planner;
  return p->candidates[tensor->index].items[p->given[tensor->index]].layout;
}

const Layout *plan_output_layout(const Plan *plan, int number) {
  const StageTensor *tensor = plan->stages->outputs.items[number];
  const Planner *p = plan->planner;
  return p->candidates[tensor->index].items[p->given[tensor->index]].layout;
}

// ---- Schedules

// Has the folded rewrite of a constant already been recorded? Kernels of one structure share
// constants.
static bool is_noted(const Plan *plan, const StageTensor *tensor, const Layout *layout) {
  for (int i = 0; i < plan->rewrites.count; i++) {
    const PlanRewrite *rewrite = &plan->rewrites.items[i];
    if (rewrite->folded && rewrite->tensor == tensor && rewrite->to->map == layout->map)
      return true;
  }
  return false;
}

static void note_folded(Plan *plan, PlanKernel *kernel) {
  for (int i = 0; i < kernel->params.count; i++) {
    const Layout *layout = kernel->choice.layouts[i];
    StageTensor *tensor = kernel->params.items[i];
    if (!tensor->data || !layout || is_noted(plan, tensor, layout)) continue;
    PlanRewrite rewrite = {tensor,
                           NULL,
                           layout,
                           .folded = true,
                           .bytes = (int64_t)planner_tensor_bytes(tensor, layout),
                           .because =
                               str_format(plan->context, "read in the order of %s", kernel->name)};
    array_push(&plan->context->arena, &plan->rewrites, rewrite);
  }
}

static bool same_layouts(const PlanKernel *a, const PlanKernel *b) {
  for (int i = 0; i < a->params.count; i++) {
    const Layout *x = a->layouts[i].layout, *y = b->layouts[i].layout;
    if (a->layouts[i].constant != b->layouts[i].constant || !x != !y) return false;
    if (x && x->map != y->map) return false; // the caller compares shapes with the functions
  }
  return true;
}

static int find_same(const Plan *plan, int index) {
  const PlanKernel *kernel = plan->kernels.items[index];
  for (int i = 0; i < index; i++) {
    const PlanKernel *other = plan->kernels.items[i];
    if (other->same_as < 0 && other->params.count == kernel->params.count &&
        same_layouts(other, kernel) &&
        prim_func_equal(plan->context, other->func, kernel->func, NULL))
      return i;
  }
  return -1;
}

bool plan_schedule_kernel(Plan *plan, int number) {
  PlanKernel *kernel = plan->kernels.items[number];
  kernel->same_as = find_same(plan, number);
  if (kernel->same_as < 0)
    return autosched_kernel(plan->context, plan->machine, kernel->func, kernel->layouts,
                            kernel->strategies, &kernel->choice);
  kernel->choice = plan->kernels.items[kernel->same_as]->choice;
  return true;
}

void plan_note_folded(Plan *plan) {
  for (int i = 0; i < plan->kernels.count; i++) note_folded(plan, plan->kernels.items[i]);
}

bool plan_schedule(Plan *plan) {
  for (int i = 0; i < plan->kernels.count; i++)
    if (!plan_schedule_kernel(plan, i)) return false;
  plan_note_folded(plan);
  return true;
}
