// SPDX-License-Identifier: Apache-2.0
// The policies that other tools follow, with the costs of this planner for comparison: layouts are
// passed on from operator to operator, in the order of the graph or against it, and each operator
// takes the choice that is cheapest given those already decided. The file also adds up what given
// choices cost together, independently of the solver.
#include "plan/internal.h"

static const StageChoice *chosen(const Planner *p, const int *choice, const Stage *stage) {
  return &p->choices[stage->index].items[choice[stage->index]];
}

int planner_written(const Planner *p, const int *choice, const StageTensor *tensor) {
  return tensor->producer ? chosen(p, choice, tensor->producer)->output : p->given[tensor->index];
}

static int read_in(const Planner *p, const int *choice, const StageTensor *tensor, int user) {
  const Stage *stage = tensor->users.items[user];
  return chosen(p, choice, stage)->reads[stage_read_of(stage, tensor)];
}

static unsigned planner_exists(const Planner *p, const int *choice, const StageTensor *tensor) {
  unsigned exists = 1u << planner_written(p, choice, tensor);
  for (int i = 0; i < tensor->users.count; i++) exists |= 1u << read_in(p, choice, tensor, i);
  return tensor->is_output ? exists | 1u << p->given[tensor->index] : exists;
}

static double rewrites_cost(const Planner *p, const StageTensor *tensor, int from, unsigned to) {
  double cost = 0;
  for (int i = 0; i < p->candidates[tensor->index].count; i++)
    if (to >> i & 1) cost += planner_rewrite_cost(p, tensor, from, i);
  return cost;
}

int64_t planner_cost_of(const Planner *p, const int *choice) {
  int64_t cost = 0;
  for (int i = 0; i < p->stages->stages.count; i++)
    cost += planner_integer_cost(chosen(p, choice, p->stages->stages.items[i])->cost);
  for (int i = 0; i < p->stages->tensors.count; i++) {
    const StageTensor *tensor = p->stages->tensors.items[i];
    if (tensor->data) continue;
    cost += planner_integer_cost(rewrites_cost(p, tensor, planner_written(p, choice, tensor),
                                               planner_exists(p, choice, tensor)));
  }
  return cost;
}

// ---- One stage after the other

typedef struct Greedy {
  const Planner *planner;
  int *choice;   // by stage->index
  bool *decided; // by stage->index
} Greedy;

static const double never = -1;

// The cost of the rewrites from the producers that are already decided to what the stage reads, or
// `never` when the stage is fused with a producer that writes another layout.
static double reading_cost(const Greedy *g, const Stage *stage, const StageChoice *c) {
  double cost = 0;
  for (int i = 0; i < stage->reads.count; i++) {
    const StageTensor *tensor = stage->reads.items[i];
    if (tensor->data || (tensor->producer && !g->decided[tensor->producer->index])) continue;
    int from = planner_written(g->planner, g->choice, tensor);
    if (c->fused == i && from != c->reads[i]) return never;
    cost += planner_rewrite_cost(g->planner, tensor, from, c->reads[i]);
  }
  return cost;
}

// The choice that differs from the current one of a fused user only in that the user runs by
// itself.
static int separated_choice(const Greedy *g, const Stage *user) {
  const StageChoices *choices = &g->planner->choices[user->index];
  const StageChoice *fused = chosen(g->planner, g->choice, user);
  for (int i = 0; i < choices->count; i++)
    if (choices->items[i].fused < 0 && choices->items[i].output == fused->output) return i;
  bug(g->planner->context, "'%s' cannot run by itself", user->te->name);
}

// The user that is fused with the tensor's producer and reads the tensor in another layout than
// `output`, or NULL when there is none.
static const Stage *separated_user(const Greedy *g, const StageTensor *tensor, int output) {
  const Stage *user = tensor->users.count == 1 ? tensor->users.items[0] : NULL;
  if (!user || !g->decided[user->index]) return NULL;
  const StageChoice *theirs = chosen(g->planner, g->choice, user);
  int read = stage_read_of(user, tensor);
  return theirs->fused == read && theirs->reads[read] != output ? user : NULL;
}

// The cost of the rewrites from what the stage writes to the users that are already decided, plus
// the cost of separating a fused user that reads another layout.
static double writing_cost(const Greedy *g, const Stage *stage, const StageChoice *c) {
  const Planner *p = g->planner;
  const StageTensor *tensor = stage->output;
  unsigned to = tensor->is_output ? 1u << p->given[tensor->index] : 0;
  for (int i = 0; i < tensor->users.count; i++) {
    const Stage *user = tensor->users.items[i];
    if (g->decided[user->index]) to |= 1u << read_in(p, g->choice, tensor, i);
  }
  const Stage *user = separated_user(g, tensor, c->output);
  double separation = user ? p->choices[user->index].items[separated_choice(g, user)].cost -
                                 chosen(p, g->choice, user)->cost
                           : 0;
  return separation + rewrites_cost(p, tensor, c->output, to);
}

static void decide(Greedy *g, const Stage *stage) {
  const StageChoices *choices = &g->planner->choices[stage->index];
  double best = 0;
  bool found = false;
  for (int i = 0; i < choices->count; i++) {
    const StageChoice *c = &choices->items[i];
    double reading = reading_cost(g, stage, c);
    double cost = c->cost + reading + writing_cost(g, stage, c);
    if (reading < 0 || (found && cost >= best)) continue;
    best = cost;
    found = true;
    g->choice[stage->index] = i;
  }
  if (!found) bug(g->planner->context, "'%s' has no choice", stage->te->name);
  g->decided[stage->index] = true;
  int output = choices->items[g->choice[stage->index]].output;
  const Stage *user = separated_user(g, stage->output, output);
  if (user) g->choice[user->index] = separated_choice(g, user);
}

static Assignment propagate(const Planner *p, bool backward) {
  int count = p->stages->stages.count;
  Greedy g = {p, arena_array(&p->context->arena, int, count),
              arena_array(&p->context->arena, bool, count)};
  for (int i = 0; i < count; i++) {
    const Stage *stage = p->stages->stages.items[backward ? count - 1 - i : i];
    decide(&g, stage);
  }
  return (Assignment){g.choice, planner_cost_of(p, g.choice), 0, false};
}

Assignment planner_forward(const Planner *p) {
  return propagate(p, false);
}

Assignment planner_backward(const Planner *p) {
  return propagate(p, true);
}
