// SPDX-License-Identifier: Apache-2.0
// What the user asks for, found in the stages: layouts become candidates of their tensors, and
// choices.c lets an operator take no other. Everything that cannot be had is refused here or there,
// at the text that asks for it.
#include "plan/internal.h"

static StageTensor *tensor_of_value(const Planner *p, const Value *value) {
  for (int i = 0; i < p->stages->tensors.count; i++)
    if (p->stages->tensors.items[i]->value == value) return p->stages->tensors.items[i];
  return NULL;
}

int planner_candidate_number(const Planner *p, const StageTensor *tensor, const Layout *layout) {
  if (!layout) return 0;
  const Candidates *c = &p->candidates[tensor->index];
  Candidate candidate = planner_candidate_of(p, tensor->buffer, layout);
  for (int i = 1; i < c->count; i++)
    if (candidate_like(&c->items[i], &candidate)) return i;
  return -1;
}

// The candidate, new if need be; -1 with a diagnostic.
static int let_in(Planner *p, const StageTensor *tensor, const PlanWish *wish) {
  int number = planner_candidate_number(p, tensor, wish->layout);
  if (number >= 0) {
    p->candidates[tensor->index].items[number].wished = true;
    return number;
  }
  Candidates *c = &p->candidates[tensor->index];
  bool frozen = c->frozen;
  number = candidates_add(c, planner_candidate_of(p, tensor->buffer, wish->layout));
  if (number < 0)
    diag_error(p->context, wish->pos,
               frozen ? "'%s' is to keep its layout (--keep-layout)"
                      : "'%s' is asked for in too many layouts",
               plan_tensor_name(tensor));
  return number;
}

// ---- Operators

static bool refuse(Planner *p, const PlanWish *wish, const char *why) {
  return diag_error(p->context, wish->pos, "'%s' cannot be given a layout: %s", wish->value->name,
                    why);
}

static bool add_wish(Planner *p, const PlanWish *wish, const Stage *stage, int read,
                     StageTensor *tensor) {
  StageWish found = {wish, stage, read, tensor, NULL};
  int number = tensor->data ? 0 : let_in(p, tensor, wish);
  if (number < 0) return false;
  if (wish->layout)
    found.layout = tensor->data ? planner_candidate_of(p, tensor->buffer, wish->layout).layout
                                : p->candidates[tensor->index].items[number].layout;
  array_push(&p->context->arena, &p->wishes, found);
  return true;
}

static bool take_output(Planner *p, const PlanWish *wish, StageTensor *tensor) {
  if (!tensor || tensor->data)
    return !wish->named || refuse(p, wish, "it is computed while compiling, or not needed at all");
  if (!tensor->producer)
    return !wish->named || refuse(p, wish, "it is an input of the model; use --input-layout");
  return add_wish(p, wish, tensor->producer, -1, tensor);
}

static bool take_input(Planner *p, const PlanWish *wish, StageTensor *tensor) {
  bool found = false;
  for (int i = 0; tensor && i < p->stages->stages.count; i++) {
    const Stage *stage = p->stages->stages.items[i];
    int read = stage_read_of(stage, tensor);
    if (stage->node != wish->node || read < 0) continue;
    found = true;
    if (!add_wish(p, wish, stage, read, tensor)) return false;
  }
  return found || !wish->named ||
         refuse(p, wish, "its operator is computed while compiling, or only moves elements");
}

// A constant that keeps its layout is read so by all; any other tensor has no other candidate.
static bool freeze(Planner *p, const PlanWish *wish, StageTensor *tensor) {
  if (!tensor) return refuse(p, wish, "it is computed while compiling, or not needed at all");
  if (!tensor->data) {
    p->candidates[tensor->index].frozen = true;
    return true;
  }
  for (int i = 0; i < tensor->users.count; i++) {
    const Stage *stage = tensor->users.items[i];
    if (!add_wish(p, wish, stage, stage_read_of(stage, tensor), tensor)) return false;
  }
  return true;
}

static bool take(Planner *p, const PlanWish *wish) {
  StageTensor *tensor = tensor_of_value(p, wish->value);
  if (!wish->node) return freeze(p, wish, tensor);
  return wish->output ? take_output(p, wish, tensor) : take_input(p, wish, tensor);
}

// ---- The graph's inputs and outputs

static bool take_given(Planner *p, const StageTensor *tensor, const PlanWish *wish) {
  if (!wish->layout) return true;
  int number = let_in(p, tensor, wish);
  if (number < 0) return false;
  p->given[tensor->index] = number;
  return true;
}

static bool take_all_given(Planner *p) {
  bool ok = true;
  const StageGraph *g = p->stages;
  for (int i = 0; i < g->tensors.count; i++) {
    const StageTensor *tensor = g->tensors.items[i];
    if (tensor->input >= 0) ok &= take_given(p, tensor, &p->wanted->inputs[tensor->input]);
  }
  for (int i = 0; i < g->outputs.count; i++)
    ok &= take_given(p, g->outputs.items[i], &p->wanted->outputs[i]);
  return ok;
}

// Freezing comes first: it closes tensors to what follows.
bool planner_take_wishes(Planner *p) {
  bool ok = true;
  if (!p->wanted) return true;
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < p->wanted->items.count; i++)
      if (!p->wanted->items.items[i].node == !pass) ok &= take(p, &p->wanted->items.items[i]);
  return take_all_given(p) && ok;
}

// ---- Asking

const StageWish *planner_wish(const Planner *p, const Stage *stage, int read) {
  for (int i = p->wishes.count - 1; i >= 0; i--) // the last one said
    if (p->wishes.items[i].stage == stage && p->wishes.items[i].read == read)
      return &p->wishes.items[i];
  return NULL;
}

bool planner_refuses(const Planner *p, const Stage *stage, const char *why) {
  const StageWish *wish = NULL;
  for (int i = p->wishes.count - 1; i >= 0 && !wish; i--)
    if (p->wishes.items[i].stage == stage) wish = &p->wishes.items[i];
  if (!wish) bug(p->context, "stage '%s' cannot be run: %s", stage->te->name, why);
  return diag_error(p->context, wish->from->pos, "'%s' cannot %s '%s' as %s: %s",
                    stage->node ? stage->node->name : stage->te->name,
                    wish->read < 0 ? "write" : "read", plan_tensor_name(wish->tensor),
                    plan_layout_name(p->context, wish->tensor, wish->layout), why);
}
