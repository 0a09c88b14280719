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
