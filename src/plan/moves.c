// SPDX-License-Identifier: Apache-2.0
// Counts the kernels that only move elements as rewrites: concatenations, padding and
// transpositions that no other kernel does in passing.
#include "plan/internal.h"

// Is the value an element of a tensor or a literal, at indices that do not depend on data?
static bool moves_value(const Stage *stage, Expr *e, bool *loads) {
  if (e->op == EXPR_IF_THEN_ELSE || e->op == EXPR_SELECT)
    return moves_value(stage, e->args[1], loads) && moves_value(stage, e->args[2], loads);
  if (e->op == EXPR_FLOAT || e->op == EXPR_INT) return true;
  if (e->op != EXPR_LOAD) return false;
  *loads = true;
  for (int i = 0; i < e->count; i++)
    for (int k = 0; k < stage->reads.count; k++)
      if (expr_reads(e->args[i], ((const StageTensor *)stage->reads.items[k])->buffer))
        return false;
  return true;
}

static bool moves_elements(const PlanKernel *kernel) {
  bool loads = false;
  for (int i = 0; i < kernel->stage_count; i++) {
    const Stage *stage = kernel->stages[i];
    if (stage_is_reduction(stage) || stage->member_count || stage->te->program ||
        !moves_value(stage, stage->te->value, &loads))
      return false;
  }
  return loads;
}

// The first parameter that is computed at run time, or else the first.
static int main_operand(const PlanKernel *kernel) {
  for (int i = 0; i + 1 < kernel->params.count; i++)
    if (!kernel->params.items[i]->data) return i;
  return 0;
}

static const char *cause(const Plan *plan, const PlanKernel *kernel) {
  const Stage *stage = kernel->stages[kernel->stage_count - 1];
  const StageTensor *output = array_last(&kernel->params);
  int reads = kernel->params.count - 1;
  bool pads = reads == 1 && stage->te->value->op != EXPR_LOAD;
  const char *what = reads > 1 ? str_format(plan->context, "puts %d tensors together", reads)
                     : pads    ? "pads"
                               : "moves elements";
  return str_format(plan->context, "%s %s: %s", planner_stage_name(stage), what,
                    plan_fusion_blocker(plan, output).because);
}

void planner_note_moves(Plan *plan) {
  for (int i = 0; i < plan->kernels.count; i++) {
    PlanKernel *kernel = plan->kernels.items[i];
    if (kernel->is_rewrite || !moves_elements(kernel)) continue;
    int from = main_operand(kernel), to = kernel->params.count - 1;
    PlanRewrite rewrite = {.tensor = kernel->params.items[from],
                           .from = kernel->layouts[from].layout,
                           .to = kernel->layouts[to].layout,
                           .cost = kernel->cost,
                           .because = cause(plan, kernel),
                           .kernel = kernel,
                           .written = kernel->params.items[to]};
    rewrite.bytes = plan_bytes(rewrite.written, rewrite.to);
    array_push(&plan->context->arena, &plan->rewrites, rewrite);
  }
}
