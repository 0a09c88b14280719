// SPDX-License-Identifier: Apache-2.0
// The policies that other tools follow, with the costs of this planner for comparison: layouts are
// passed on from operator to operator, in the order of the graph or against it, and each operator
// takes the choice that is cheapest given those already decided. The file also adds up what given
// choices cost together, independently of the solver.
#include "plan/internal.h"

#include <math.h>

int planner_written(const Planner *p, const int *choice, const StageTensor *tensor) {
  return tensor->producer ? planner_chosen(p, choice, tensor->producer)->output
                          : p->given[tensor->index];
}

int64_t planner_cost_of(const Planner *p, const int *choice) {
  int64_t cost = 0;
  for (int i = 0; i < p->stages->stages.count; i++)
    cost += planner_integer_cost(planner_chosen(p, choice, p->stages->stages.items[i])->cost);
  for (int i = 0; i < p->stages->tensors.count; i++) {
    const StageTensor *tensor = p->stages->tensors.items[i];
    if (tensor->data) continue;
    cost += planner_integer_cost(
        planner_delivery_cost(p, choice, NULL, tensor, planner_written(p, choice, tensor)));
  }
  return cost;
}

// ---- One stage after the other

typedef struct Greedy {
  const Planner *planner;
  int *choice;   // by stage->index
  bool *decided; // by stage->index
  // These are those of the stage that is decided:
  double deliveries[PLAN_MAX_LAYOUTS]; // by its output; NAN: unknown
  bool has_fused_user;                 // is a user fused with it that is already decided?
} Greedy;

// The cost of delivering what the producers that are already decided write to the stage, or
// PLAN_NEVER when the stage is fused with a producer that writes another layout. Negative where
// gathering saves more than it costs.
static double reading_cost(const Greedy *g, const Stage *stage, const StageChoice *c) {
  double cost = 0;
  for (int i = 0; i < stage->reads.count; i++) {
    const StageTensor *tensor = stage->reads.items[i];
    if (tensor->data || (tensor->producer && !g->decided[tensor->producer->index])) continue;
    int from = planner_written(g->planner, g->choice, tensor);
    if (c->fused == i &&
        !planner_hosts(g->planner, planner_chosen(g->planner, g->choice, tensor->producer), stage,
                       c, i))
      return PLAN_NEVER;
    double delivery = planner_delivery_to(g->planner, tensor, stage, c, i, from);
    if (delivery >= PLAN_NEVER) return PLAN_NEVER;
    cost += delivery;
  }
  return cost;
}

// The choice that differs from the current one of a fused user only in that the user runs by
// itself.
static int separated_choice(const Greedy *g, const Stage *user) {
  const StageChoices *choices = &g->planner->choices[user->index];
  const StageChoice *fused = planner_chosen(g->planner, g->choice, user);
  for (int i = 0; i < choices->count; i++)
    if (choices->items[i].fused < 0 && !choices->items[i].in_place && !choices->items[i].absent &&
        choices->items[i].output == fused->output)
      return i;
  bug(g->planner->context, "'%s' cannot run by itself", user->te->name);
}

// The user that is fused with the tensor's producer and cannot be when that takes the choice `c`,
// because it reads the tensor in another layout or wants tiles; NULL when there is none.
static const Stage *separated_user(const Greedy *g, const StageTensor *tensor,
                                   const StageChoice *c) {
  for (int i = 0; i < tensor->users.count; i++) {
    const Stage *user = tensor->users.items[i];
    if (!g->decided[user->index]) continue;
    const StageChoice *theirs = planner_chosen(g->planner, g->choice, user);
    int read = stage_read_of(user, tensor);
    if (theirs->fused == read && !planner_hosts(g->planner, c, user, theirs, read)) return user;
  }
  return NULL;
}

// The cost of delivering what the stage writes to the users that are already decided.
static double delivery_cost(Greedy *g, const Stage *stage, int output) {
  if (output < 0) return 0;
  double *known = &g->deliveries[output];
  if (isnan(*known))
    *known = planner_delivery_cost(g->planner, g->choice, g->decided, stage->output, output);
  return *known;
}

// The same, plus the cost of separating a fused user that reads another layout.
static double writing_cost(Greedy *g, const Stage *stage, const StageChoice *c) {
  const Planner *p = g->planner;
  const Stage *user = g->has_fused_user ? separated_user(g, stage->output, c) : NULL;
  double separation = user ? p->choices[user->index].items[separated_choice(g, user)].cost -
                                 planner_chosen(p, g->choice, user)->cost
                           : 0;
  return separation + delivery_cost(g, stage, c->output);
}

// Is the stage in the way to compute an output that is usual?
static bool is_usual(const Stage *stage) {
  return !stage->serves || stage->serves->output->producer->usual == stage->serves;
}

// Does the choice take the usual way, in the layout of the stages that are already decided?
static bool may_decide(const Greedy *g, const Stage *stage, const StageChoice *c) {
  const StageTensor *tensor = stage->output;
  const Stage *first = tensor->producer; // of which the stage may be one of the others
  if (stage->others.count ? planner_taken_other(stage, c) != stage->usual
                          : c->absent == is_usual(stage))
    return false;
  if (stage->serves && stage->others.count && c->absent == is_usual(stage)) return false;
  for (int i = 0; i < first->others.count; i++) {
    const Stage *other = first->others.items[i];
    bool other_known = stage == other || g->decided[other->index],
         first_known = stage == first || g->decided[first->index];
    if (!other_known || !first_known) continue;
    const StageChoice *o = stage == other ? c : planner_chosen(g->planner, g->choice, other);
    const StageChoice *f = stage == first ? c : planner_chosen(g->planner, g->choice, first);
    if (!planner_agree(f, i, o)) return false;
  }
  return true;
}

// Do the stages that are already decided take part in the kernels of records that the choice
// requires?
static bool fits_records(const Greedy *g, const Stage *stage, const StageChoice *c) {
  const Planner *p = g->planner;
  const PtrArray *users = &stage->output->users;
  bool fits = true;
  for (int i = 0; i < stage->reads.count; i++) {
    const Stage *producer = ((const StageTensor *)stage->reads.items[i])->producer;
    if (producer && g->decided[producer->index])
      fits &= planner_tuned_alike(planner_chosen(p, g->choice, producer), c, i);
  }
  for (int i = 0; i < users->count; i++) {
    const Stage *user = users->items[i];
    if (g->decided[user->index])
      fits &= planner_tuned_alike(c, planner_chosen(p, g->choice, user),
                                  stage_read_of(user, stage->output));
  }
  return fits;
}

// The least that one of the stage's others costs when it writes the output as the choice says.
static double other_cost(const Greedy *g, const Stage *stage, const StageChoice *c) {
  const Stage *by = planner_taken_other(stage, c);
  const StageChoices *choices = by ? &g->planner->choices[by->index] : NULL;
  double least = 0;
  bool found = false;
  for (int i = 0; choices && i < choices->count; i++) {
    const StageChoice *o = &choices->items[i];
    if (!planner_agree(c, c->by - 1, o) || (found && o->cost >= least)) continue;
    least = o->cost;
    found = true;
  }
  return least;
}

// Is a user that is already decided fused with the tensor's producer?
static bool has_fused_user(const Greedy *g, const StageTensor *tensor) {
  for (int i = 0; i < tensor->users.count; i++) {
    const Stage *user = tensor->users.items[i];
    int fused = g->decided[user->index] ? planner_chosen(g->planner, g->choice, user)->fused : -1;
    if (fused >= 0 && user->reads.items[fused] == tensor) return true;
  }
  return false;
}

// Separates the user that the stage can no longer be fused with, the user of that one, and so on.
static void separate_users(Greedy *g, const Stage *stage) {
  for (const Stage *user; stage; stage = user) {
    user = separated_user(g, stage->output, planner_chosen(g->planner, g->choice, stage));
    if (user) g->choice[user->index] = separated_choice(g, user);
  }
}

// False where choices that were taken before leave no kernel of a record that must be used.
static bool decide(Greedy *g, const Stage *stage) {
  const StageChoices *choices = &g->planner->choices[stage->index];
  double best = 0;
  bool found = false;
  int layouts = g->planner->candidates[stage->output->index].count;
  for (int i = 0; i < layouts; i++) g->deliveries[i] = NAN;
  g->has_fused_user = has_fused_user(g, stage->output);
  for (int i = 0; i < choices->count; i++) {
    const StageChoice *c = &choices->items[i];
    if (!may_decide(g, stage, c) || (g->planner->tuned && !fits_records(g, stage, c))) continue;
    double reading = reading_cost(g, stage, c);
    double cost = c->cost + other_cost(g, stage, c) + reading + writing_cost(g, stage, c);
    if (reading >= PLAN_NEVER || (found && cost >= best)) continue;
    best = cost;
    found = true;
    g->choice[stage->index] = i;
  }
  if (!found && g->planner->tuned) return false;
  if (!found) bug(g->planner->context, "'%s' has no choice", stage->te->name);
  g->decided[stage->index] = true;
  if (g->has_fused_user) separate_users(g, stage);
  return true;
}

static Assignment propagate(const Planner *p, bool backward) {
  int count = p->stages->stages.count;
  Greedy g = {.planner = p,
              .choice = arena_array(&p->context->arena, int, count),
              .decided = arena_array(&p->context->arena, bool, count)};
  for (int i = 0; i < count; i++) {
    const Stage *stage = p->stages->stages.items[backward ? count - 1 - i : i];
    if (!decide(&g, stage)) return (Assignment){0};
  }
  return (Assignment){g.choice, planner_cost_of(p, g.choice), 0, false};
}

Assignment planner_forward(const Planner *p) {
  return propagate(p, false);
}

Assignment planner_backward(const Planner *p) {
  return propagate(p, true);
}
