// SPDX-License-Identifier: Apache-2.0
// Explains for `plan --fusion` why a tensor is stored in memory: which condition keeps the stage
// that reads it from being fused with the kernel that writes it. The conditions are those of
// graph/inline_stages.c, graph/group_stages.c, fusion_conditions.c and choices.c, the general ones
// first.
#include "plan/internal.h"

const char *planner_stage_name(const Stage *stage) {
  return stage->node ? stage->node->name : stage->te->name;
}

static PlanBlocker by_reduction(const Plan *plan, const Stage *reader, const StageTensor *tensor) {
  double times = stage_iterations(reader) / stage_tensor_elements(tensor);
  if (times >= 2)
    return (PlanBlocker){"its reader needs each element many times",
                         str_format(plan->context, "%s needs each element %.0f times",
                                    planner_stage_name(reader), times)};
  return (PlanBlocker){"its reader is a reduction, which starts a kernel",
                       str_format(plan->context, "%s is a reduction, which starts a kernel",
                                  planner_stage_name(reader))};
}

// The stage that the writer's kernel is built around.
static const Stage *anchor_of(const Plan *plan, const Stage *stage) {
  const Planner *p = plan->planner;
  for (;;) {
    int fused = p->choices[stage->index].items[plan->choice[stage->index]].fused;
    if (fused < 0) return stage;
    stage = ((const StageTensor *)stage->reads.items[fused])->producer;
  }
}

static PlanBlocker by_rows(const Plan *plan, const Stage *reader, const Stage *writer) {
  const Stage *anchor = anchor_of(plan, writer);
  const char *how = anchor->member_count         ? "on rows of its own"
                    : stage_is_reduction(anchor) ? "on tiles"
                                                 : "on other axes";
  return (PlanBlocker){"its reader works on whole rows",
                       str_format(plan->context, "%s works on whole rows, %s %s",
                                  planner_stage_name(reader), planner_stage_name(anchor), how)};
}

static PlanBlocker by_indices(const Plan *plan, const Stage *reader, const StageTensor *tensor) {
  bool wider = stage_tensor_elements(tensor) < stage_tensor_elements(reader->output);
  return (PlanBlocker){wider ? "its reader repeats or concatenates elements"
                             : "its reader reads elements at other indices",
                       str_format(plan->context, "%s %s", planner_stage_name(reader),
                                  wider ? "repeats or concatenates its elements"
                                        : "reads its elements at other indices")};
}

// The reader could have been fused; the answer says what was chosen for it instead.
static PlanBlocker by_choice(const Plan *plan, const Stage *reader, const StageTensor *tensor) {
  const Planner *p = plan->planner;
  const StageChoice *choice = &p->choices[reader->index].items[plan->choice[reader->index]];
  if (choice->fused >= 0) {
    const StageTensor *other = reader->reads.items[choice->fused];
    return (PlanBlocker){
        "its reader is fused with another operand",
        str_format(plan->context, "%s is fused with %s, and only one kernel can have it",
                   planner_stage_name(reader), planner_stage_name(other->producer))};
  }
  const Layout *layout = p->candidates[reader->output->index].items[choice->output].layout;
  return (PlanBlocker){"another layout is cheaper for its reader",
                       str_format(plan->context, "%s writes %s, which is cheaper than fusion",
                                  planner_stage_name(reader),
                                  plan_layout_name(plan->context, reader->output, layout))};
}

static PlanBlocker by_body(const Plan *plan, const Stage *reader, const StageTensor *tensor) {
  double most,
      operations = planner_fused_operations(plan->planner, reader, tensor->producer, &most);
  return (PlanBlocker){"the loop would not fit the instruction cache",
                       str_format(plan->context,
                                  "a loop with %s would have %.0f operations, and %.0f fit",
                                  planner_stage_name(reader), operations, most)};
}

static PlanBlocker by_place(const Plan *plan, const PlanPlacement *placement) {
  return (PlanBlocker){
      "it is a part of a larger tensor",
      str_format(plan->context, "it is a part of %s", plan_tensor_name(placement->whole))};
}

PlanBlocker plan_fusion_blocker(const Plan *plan, const StageTensor *tensor) {
  const PlanPlacement *placement = map_find(&plan->placements, tensor);
  if (placement && placement->whole) return by_place(plan, placement);
  const Stage *writer = tensor->producer;
  const Stage *reader = tensor->users.count ? tensor->users.items[0] : NULL; // NULL: an output
  Context *context = plan->context;
  FusionBlocker blocker = planner_fusion_blocker(plan->planner, reader, tensor);
  if (tensor->kept && !tensor->branch && (blocker == BLOCKER_NONE || blocker > BLOCKER_INPUT)) {
    const char *why = tensor->cheaper_kept ? "the plan costs less where it is stored"
                                           : "its layout was asked for";
    return (PlanBlocker){why, why};
  }
  const char *name = reader ? planner_stage_name(reader) : "";
  switch (blocker) {
  case BLOCKER_OUTPUT: return (PlanBlocker){"an output of the model", "it is an output"};
  case BLOCKER_USERS:
    return (PlanBlocker){"several operators read it",
                         str_format(context, "%d operators read it", tensor->users.count)};
  case BLOCKER_INPUT: return (PlanBlocker){"an input of the model", "it is an input"};
  case BLOCKER_BRANCH:
    return (PlanBlocker){"it belongs to a branch, which runs may leave out",
                         "it belongs to a branch, which runs may leave out"};
  case BLOCKER_OPAQUE:
    return (PlanBlocker){"a function outside of the model computes it, or reads it",
                         str_format(context, "a function outside of the model %s",
                                    stage_is_opaque(writer) ? "computes it" : "reads it")};
  case BLOCKER_ORDERED:
    return (PlanBlocker){"elements are written in an order",
                         str_format(context, "%s writes its elements in an order",
                                    stage_is_ordered(writer) ? planner_stage_name(writer) : name)};
  case BLOCKER_ROWS: return by_rows(plan, reader, writer);
  case BLOCKER_REDUCTION: return by_reduction(plan, reader, tensor);
  case BLOCKER_INDICES: return by_indices(plan, reader, tensor);
  case BLOCKER_TYPE:
    return (PlanBlocker){"its reader has another element type",
                         str_format(context, "%s converts it to %s", name,
                                    dtype_name(context, reader->output->buffer->type))};
  case BLOCKER_BODY: return by_body(plan, reader, tensor);
  case BLOCKER_SIZE:
    return (PlanBlocker){"its reader would compute it again and again",
                         str_format(context, "%s uses each element many times", name)};
  case BLOCKER_NONE: break;
  }
  return by_choice(plan, reader, tensor);
}
