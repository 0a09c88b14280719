// SPDX-License-Identifier: Apache-2.0
// Answers `plan --why TENSOR`: what the whole plan costs when the tensor is written in each of its
// candidate layouts. The planning problem is solved once per candidate, with that layout fixed.
#include "plan/internal.h"

// The layout in which the plan writes the tensor, or in which the caller gives it.
static const Layout *layout_now(const Plan *plan, const StageTensor *tensor) {
  if (tensor->input >= 0) return plan_input_layout(plan, tensor->input);
  const Planner *p = plan->planner;
  return p->candidates[tensor->index].items[planner_written(p, plan->choice, tensor)].layout;
}

int plan_candidate_costs(const Plan *plan, const StageTensor *tensor, PlanCandidate *items) {
  enum { SECONDS = 1 };
  const Candidates *c = &plan->planner->candidates[tensor->index];
  if (tensor->data) return 0;
  for (int i = 0; i < c->count; i++) {
    Assignment found = planner_solve(plan->planner, SECONDS, tensor, i);
    items[i] = (PlanCandidate){.layout = c->items[i].layout,
                               .feasible = found.choice != NULL,
                               .cost = found.choice ? (double)found.cost : 0,
                               .chosen = c->items[i].layout == layout_now(plan, tensor)};
  }
  return c->count;
}

// The part that the stage reads from one of its tensors and with which it would cut a block of the
// candidate; NULL: there is none.
static const char *cut_because(const Planner *p, const Stage *stage, int number) {
  for (int i = 0; i < stage->reads.count; i++) {
    int64_t at, block = planner_cut_block(p, stage, i, number, &at);
    if (block)
      return str_format(p->context, "'%s' would cut a block of %lld at index %lld",
                        plan_tensor_name(stage->reads.items[i]), (long long)block, (long long)at);
  }
  return NULL;
}

const char *plan_unwritten_because(const Plan *plan, const StageTensor *tensor,
                                   const Layout *layout) {
  const Planner *p = plan->planner;
  const Stage *stage = tensor->producer;
  int number = planner_candidate_number(p, tensor, layout);
  if (!stage || number < 0) return NULL;
  const StageChoices *choices = &p->choices[stage->index];
  for (int i = 0; i < choices->count; i++)
    if (choices->items[i].output == number) return NULL;
  const char *name = planner_stage_name(stage);
  if (stage->member_count)
    return str_format(p->context, "%s works on whole rows, which it would cut", name);
  if (stage_is_opaque(stage))
    return str_format(p->context, "the function '%s' does not give it",
                      stage->te->call->function->name);
  if (stage_is_ordered(stage))
    return str_format(p->context, "%s writes its elements in an order", name);
  const char *cut = cut_because(p, stage, number);
  if (cut) return cut;
  return planner_constraint(p, stage, -1) ? "another layout is asked for"
                                          : str_format(p->context, "%s cannot write it", name);
}
