// SPDX-License-Identifier: Apache-2.0
// Answers `plan --why TENSOR`: what the whole plan costs when the tensor is written in each of its
// candidate layouts, and which operators and rewrites make it cost more. The planning problem is
// solved once per candidate, with that layout fixed. Where no plan has a layout, the operator that
// computes the tensor cannot write it: everything that reads the tensor can read a rewrite.
#include "plan/internal.h"

#include <math.h>
#include <stdlib.h>

// The layout in which the plan writes the tensor, or in which the caller gives it.
static const Layout *layout_now(const Plan *plan, const StageTensor *tensor) {
  if (tensor->input >= 0) return plan_input_layout(plan, tensor->input);
  const Planner *p = plan->planner;
  return p->candidates[tensor->index].items[planner_written(p, plan->choice, tensor)].layout;
}

// ---- Layouts that cannot be written

// The part that the stage reads from one of its tensors and with which it would cut a block of the
// candidate; NULL: there is none.
static const char *cut_because(const Planner *p, const Stage *stage, int number) {
  for (int i = 0; i < stage->reads.count; i++) {
    int64_t at, block = planner_cut_block(p, stage, i, number, &at);
    if (block)
      return str_format(p->context,
                        "%s cannot write it: '%s' would cut a block of %lld at index %lld",
                        planner_stage_name(stage), plan_tensor_name(stage->reads.items[i]),
                        (long long)block, (long long)at);
  }
  return NULL;
}

static const char *asked_text(const Planner *p, const StageConstraint *constraint,
                              const char *does) {
  return str_format(p->context, "%s is asked to %s it as %s", planner_stage_name(constraint->stage),
                    does, plan_layout_name(p->context, constraint->tensor, constraint->layout));
}

// The reason of the stage that holds for all of its tensors; NULL: there is none.
static const char *stage_because(const Planner *p, const Stage *stage, const char *does) {
  const char *name = planner_stage_name(stage);
  if (p->tuned && p->is_frozen[stage->index])
    return str_format(p->context, "%s has a tuning record with another layout", name);
  if (stage_is_opaque(stage))
    return str_format(p->context, "the function '%s' does not %s it",
                      stage->te->call->function->name, does);
  if (stage_is_ordered(stage))
    return str_format(p->context, "%s writes its elements in an order", name);
  if (stage->member_count)
    return str_format(p->context, "%s works on whole rows, which it would cut", name);
  return NULL;
}

static const char *unwritten_because(const Planner *p, const StageTensor *tensor, int number) {
  const Stage *stage = tensor->producer;
  const StageConstraint *constraint = planner_constraint(p, stage, -1);
  if (constraint) return asked_text(p, constraint, "write");
  const char *reason = stage_because(p, stage, "give");
  if (!reason) reason = cut_because(p, stage, number);
  return reason ? reason
                : str_format(p->context, "%s cannot write it with the layouts of what it reads",
                             planner_stage_name(stage));
}

// ---- Layouts that cost more

// A part of the cost of a plan: of one operator's stages, or of the rewrites of one tensor.
typedef struct CostPart {
  const char *name;          // of the operator
  const StageTensor *tensor; // NULL: an operator
  double more;               // cycles than in the other plan
} CostPart;
typedef Array(CostPart) CostParts;

typedef struct PlanComparison {
  const Planner *p;
  const int *now, *other;    // a choice for each stage
  const StageTensor *forced; // in the other plan, to candidate `number`
  int number;
  CostParts parts;
} PlanComparison;

// A tensor inside of one operator counts as this operator.
static bool is_inside(const StageTensor *tensor) {
  const Node *node = tensor->producer ? tensor->producer->node : NULL;
  bool inside = node && !tensor->value && !tensor->is_output;
  for (int i = 0; i < tensor->users.count; i++)
    inside &= ((const Stage *)tensor->users.items[i])->node == node;
  return inside;
}

static void add_part(PlanComparison *c, const char *name, const StageTensor *tensor, double more) {
  for (int i = 0; i < c->parts.count; i++) {
    CostPart *part = &c->parts.items[i];
    if (tensor || part->tensor || strcmp(part->name, name) != 0) continue;
    part->more += more;
    return;
  }
  if (more != 0) array_push(&c->p->context->scratch, &c->parts, ((CostPart){name, tensor, more}));
}

static int written_in_other(const PlanComparison *c, const StageTensor *tensor) {
  return tensor == c->forced ? c->number : planner_written(c->p, c->other, tensor);
}

static void add_parts(PlanComparison *c) {
  const Planner *p = c->p;
  for (int i = 0; i < p->stages->stages.count; i++) {
    const Stage *stage = p->stages->stages.items[i];
    add_part(c, planner_stage_name(stage), NULL,
             planner_chosen(p, c->other, stage)->cost - planner_chosen(p, c->now, stage)->cost);
  }
  for (int i = 0; i < p->stages->tensors.count; i++) {
    const StageTensor *tensor = p->stages->tensors.items[i];
    if (tensor->data) continue;
    int from = planner_written(p, c->now, tensor), to = written_in_other(c, tensor);
    bool inside = is_inside(tensor);
    add_part(c, inside ? planner_stage_name(tensor->producer) : NULL, inside ? NULL : tensor,
             planner_delivery_cost(p, c->other, NULL, tensor, to) -
                 planner_delivery_cost(p, c->now, NULL, tensor, from));
  }
}

// Why the stage cannot read the tensor in the candidate; NULL where it can.
static const char *unread_because(const Planner *p, const Stage *stage, const StageTensor *tensor,
                                  int number) {
  int read = stage_read_of(stage, tensor);
  const StageChoices *choices = &p->choices[stage->index];
  const StageConstraint *constraint = planner_constraint(p, stage, read);
  for (int i = 0; i < choices->count; i++)
    if (choices->items[i].reads[read] == number) return NULL;
  return constraint ? asked_text(p, constraint, "read") : stage_because(p, stage, "take");
}

// "t is rewritten for a, b", with why the first of these cannot read it as it is.
static const char *rewrites_text(const PlanComparison *c, const StageTensor *tensor) {
  const Planner *p = c->p;
  int written = written_in_other(c, tensor), count = 0;
  const char *because = NULL;
  Text text = text_new(&p->context->scratch);
  text_printf(&text, "%s is rewritten", plan_tensor_name(tensor));
  for (int i = 0; i < tensor->users.count; i++) {
    const Stage *user = tensor->users.items[i];
    int wanted = planner_chosen(p, c->other, user)->reads[stage_read_of(user, tensor)];
    if (wanted == written || wanted == READ_NOTHING) continue;
    if (!because) because = unread_because(p, user, tensor, written);
    text_printf(&text, "%s%s", count++ ? ", " : " for ", planner_stage_name(user));
  }
  if (!count) text_puts(&text, tensor->is_output ? " for the caller" : "");
  if (because) text_printf(&text, " (%s)", because);
  return text_string(&text);
}

static int by_difference(const void *a, const void *b) {
  double x = fabs(((const CostPart *)a)->more), y = fabs(((const CostPart *)b)->more);
  return (x < y) - (x > y);
}

// Sets the parts that differ most, the others of which would explain little.
static void find_changes(PlanComparison *c, PlanCandidate *candidate) {
  Context *context = c->p->context;
  ArenaMark mark = arena_mark(&context->scratch);
  add_parts(c);
  if (c->parts.count) // qsort takes no NULL
    qsort(c->parts.items, (size_t)c->parts.count, sizeof *c->parts.items, by_difference);
  for (int i = 0; i < MIN_OF(c->parts.count, PLAN_MAX_CHANGES); i++) {
    const CostPart *part = &c->parts.items[i];
    if (fabs(part->more) < MAX_OF(1, fabs(c->parts.items[0].more) / 10)) break;
    const char *what = part->tensor ? rewrites_text(c, part->tensor) : part->name;
    candidate->changes[i] = (PlanChange){str_intern(context, what), part->more};
    candidate->change_count++;
  }
  arena_reset(&context->scratch, mark);
}

// ---- All candidates

// The layout of the candidate; where the layout that is asked for is the same memory, that one.
static const Layout *layout_as_asked(const Plan *plan, const StageTensor *tensor, int number) {
  const PlanConstraint *asked = plan->constraints ? &plan->constraints->asked : NULL;
  const Candidate *own = &plan->planner->candidates[tensor->index].items[number];
  if (!asked || !asked->value || asked->value != tensor->value || !asked->layout)
    return own->layout;
  Candidate other = planner_candidate_of(plan->planner, tensor->buffer, asked->layout);
  bool same = own->dense && other.dense && walk_equal(own->walk, other.walk);
  return same ? other.layout : own->layout;
}

static PlanCandidate price(const Plan *plan, const StageTensor *tensor, int number) {
  enum { SECONDS = 1 };
  const Planner *p = plan->planner;
  const Layout *layout = p->candidates[tensor->index].items[number].layout;
  PlanCandidate found = {.layout = layout_as_asked(plan, tensor, number),
                         .chosen = layout == layout_now(plan, tensor)};
  Assignment other = planner_solve(p, SECONDS, tensor, number);
  found.cost = other.choice ? (double)other.cost : 0;
  PlanComparison c = {p, plan->choice, other.choice, tensor, number, {0}};
  if (!other.choice)
    found.forbidden = unwritten_because(p, tensor, number);
  else if (!found.chosen)
    find_changes(&c, &found);
  return found;
}

int plan_candidate_costs(const Plan *plan, const StageTensor *tensor, PlanCandidate *items) {
  int count = tensor->data ? 0 : plan->planner->candidates[tensor->index].count;
  planner_connect(plan->planner, NULL);
  for (int i = 0; i < count; i++) items[i] = price(plan, tensor, i);
  planner_connect(plan->planner, plan->choice);
  return count;
}

const char *plan_no_more_candidates(const Plan *plan, const StageTensor *tensor) {
  const Planner *p = plan->planner;
  const Candidates *c = &p->candidates[tensor->index];
  if (tensor->data) return "";
  if (c->frozen) return "it keeps its layout";
  if (p->row_major) return "row-major layouts throughout cost less than any others";
  if (!p->proposals) return "every tensor keeps its layout";
  if (c->left_out)
    return str_format(p->context, "%d were not looked at, beyond the limit of %d", c->left_out,
                      p->most_layouts);
  return "";
}
