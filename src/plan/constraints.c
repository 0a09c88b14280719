// SPDX-License-Identifier: Apache-2.0
// Applies the user's layout constraints to the stages: the layouts become candidates of their
// tensors, and choices.c gives a constrained operator no choice with another layout. A constraint
// that cannot be met is refused here or in choices.c, with a diagnostic at the text that states the
// constraint.
#include "base/caller.h"
#include "plan/internal.h"

static StageTensor *tensor_of_value(const Planner *p, const Value *value) {
  for (int i = 0; i < p->stages->tensors.count; i++)
    if (p->stages->tensors.items[i]->value == value) return p->stages->tensors.items[i];
  return NULL;
}

// The number of the candidate, which is added if it is new; -1 with a diagnostic. A layout whose
// price is asked for is not required: one that is the same memory stands for it.
static int requested_candidate(Planner *p, const StageTensor *tensor,
                               const PlanConstraint *constraint) {
  if (!constraint->layout) return 0;
  bool frozen = p->candidates[tensor->index].frozen;
  Candidate candidate = planner_candidate_of(p, tensor->buffer, constraint->layout);
  Candidate usual;
  candidate.requested = constraint != &p->constraints->asked;
  bool same = !candidate.requested && candidate.dense &&
              planner_candidate_of_walk(p, tensor->buffer, candidate.walk, &usual) && usual.dense;
  int number = candidates_add(p, tensor, same ? usual : candidate);
  if (number < 0)
    diag_error_as(p->context, DIAG_OPTION, constraint->pos,
                  frozen ? "'%s' keeps its layout (%s)" : "too many layouts are asked for '%s'",
                  plan_tensor_name(tensor), caller_option(p->context, CALLER_KEEP_LAYOUT));
  return number;
}

// ---- Operators

static bool refuse(Planner *p, const PlanConstraint *constraint, const char *why) {
  return diag_error_as(p->context, DIAG_OPTION, constraint->pos,
                       "'%s' cannot be given a layout: %s", constraint->value->name, why);
}

static bool add_constraint(Planner *p, const PlanConstraint *constraint, const Stage *stage,
                           int read, StageTensor *tensor) {
  StageConstraint found = {constraint, stage, read, tensor, NULL};
  int number = tensor->data ? 0 : requested_candidate(p, tensor, constraint);
  if (number < 0) return false;
  if (constraint->layout)
    found.layout = tensor->data ? planner_candidate_of(p, tensor->buffer, constraint->layout).layout
                                : p->candidates[tensor->index].items[number].layout;
  array_push(&p->context->arena, &p->stage_constraints, found);
  return true;
}

static bool apply_to_output(Planner *p, const PlanConstraint *constraint, StageTensor *tensor) {
  if (!tensor || tensor->data)
    return !constraint->named ||
           refuse(p, constraint, "it is computed while compiling, or not needed at all");
  if (!tensor->producer)
    return !constraint->named ||
           refuse(p, constraint,
                  arena_printf(&p->context->arena, "it is an input of the model; use %s",
                               caller_option(p->context, CALLER_INPUT_LAYOUT)));
  return add_constraint(p, constraint, tensor->producer, -1, tensor);
}

static bool apply_to_input(Planner *p, const PlanConstraint *constraint, StageTensor *tensor) {
  bool found = false;
  for (int i = 0; tensor && i < p->stages->stages.count; i++) {
    const Stage *stage = p->stages->stages.items[i];
    int read = stage_read_of(stage, tensor);
    if (stage->node != constraint->node || read < 0) continue;
    found = true;
    if (!add_constraint(p, constraint, stage, read, tensor)) return false;
  }
  return found || !constraint->named ||
         refuse(p, constraint, "its operator is computed while compiling, or only moves elements");
}

// Makes a value keep its layout. A constant is read in this layout by all its users; any other
// tensor accepts no candidate besides the row-major one.
static bool freeze(Planner *p, const PlanConstraint *constraint, StageTensor *tensor) {
  if (!tensor) return refuse(p, constraint, "it is computed while compiling, or not needed at all");
  if (!tensor->data) {
    p->candidates[tensor->index].frozen = true;
    return true;
  }
  for (int i = 0; i < tensor->users.count; i++) {
    const Stage *stage = tensor->users.items[i];
    if (!add_constraint(p, constraint, stage, stage_read_of(stage, tensor), tensor)) return false;
  }
  return true;
}

static bool apply(Planner *p, const PlanConstraint *constraint) {
  StageTensor *tensor = tensor_of_value(p, constraint->value);
  if (!constraint->node) return freeze(p, constraint, tensor);
  return constraint->output ? apply_to_output(p, constraint, tensor)
                            : apply_to_input(p, constraint, tensor);
}

// ---- The graph's inputs and outputs

static bool apply_to_boundary_tensor(Planner *p, const StageTensor *tensor,
                                     const PlanConstraint *constraint) {
  if (!constraint->layout) return true;
  int number = requested_candidate(p, tensor, constraint);
  if (number < 0) return false;
  p->given[tensor->index] = number;
  return true;
}

static bool apply_to_boundary(Planner *p) {
  bool ok = true;
  const StageGraph *g = p->stages;
  for (int i = 0; i < g->tensors.count; i++) {
    const StageTensor *tensor = g->tensors.items[i];
    if (tensor->input >= 0)
      ok &= apply_to_boundary_tensor(p, tensor, &p->constraints->inputs[tensor->input]);
  }
  for (int i = 0; i < g->outputs.count; i++)
    ok &= apply_to_boundary_tensor(p, g->outputs.items[i], &p->constraints->outputs[i]);
  return ok;
}

// Adds the layout whose price is asked for to the candidates, or the one that is the same memory.
static bool add_asked(Planner *p) {
  const PlanConstraint *asked = &p->constraints->asked;
  StageTensor *tensor = asked->value ? tensor_of_value(p, asked->value) : NULL;
  return !tensor || tensor->data || requested_candidate(p, tensor, asked) >= 0;
}

// Handles the tensors that keep their layouts first, because these accept no candidates afterwards.
bool planner_apply_constraints(Planner *p) {
  bool ok = true;
  if (!p->constraints) return true;
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < p->constraints->items.count; i++)
      if (!p->constraints->items.items[i].node == !pass)
        ok &= apply(p, &p->constraints->items.items[i]);
  return apply_to_boundary(p) && ok && add_asked(p);
}

// Questions about the applied constraints

const StageConstraint *planner_constraint(const Planner *p, const Stage *stage, int read) {
  for (int i = p->stage_constraints.count - 1; i >= 0; i--) // the last constraint wins
    if (p->stage_constraints.items[i].stage == stage && p->stage_constraints.items[i].read == read)
      return &p->stage_constraints.items[i];
  return NULL;
}

bool planner_refuses(const Planner *p, const Stage *stage, const char *why) {
  const StageConstraint *constraint = NULL;
  for (int i = p->stage_constraints.count - 1; i >= 0 && !constraint; i--)
    if (p->stage_constraints.items[i].stage == stage) constraint = &p->stage_constraints.items[i];
  if (!constraint) bug(p->context, "stage '%s' cannot be run: %s", stage->te->name, why);
  return diag_error_as(
      p->context, DIAG_OPTION, constraint->from->pos, "'%s' cannot %s '%s' as %s: %s",
      stage->node ? stage->node->name : stage->te->name, constraint->read < 0 ? "write" : "read",
      plan_tensor_name(constraint->tensor),
      plan_layout_name(p->context, constraint->tensor, constraint->layout), why);
}

bool planner_constrains(const PlanConstraints *constraints, const Stage *stage) {
  for (int i = 0; constraints && i < constraints->items.count; i++) {
    const PlanConstraint *constraint = &constraints->items.items[i];
    if (constraint->node && constraint->node == stage->node) return true;
  }
  return false;
}
