// SPDX-License-Identifier: Apache-2.0
// Handles stages whose output can be computed in several ways, of which a plan has one: the sum of
// products of a convolution, or the stages of a bilinear algorithm. The stages of all ways are in
// the graph, and each has a choice that leaves it out of the plan.
//   y = conv(x, w)   or   t = tiles(x);  p = products(t, v);  y = outputs(p)
//   conv is left out  => outputs writes y in the layout that conv's choice says
//   tiles is left out => no stage that is in the plan reads t
#include "plan/internal.h"

static StageChoice *add_absent(Planner *p, const Stage *stage, int output) {
  StageChoice *choice = planner_add_choice(p, stage);
  choice->absent = true;
  choice->output = output;
  for (int i = 0; i < stage->reads.count; i++) choice->reads[i] = READ_NOTHING;
  return choice;
}

// Adds one choice for each layout in which an other writes the output.
static void add_other(Planner *p, const Stage *stage, int other) {
  const StageChoices *theirs = &p->choices[((Stage *)stage->others.items[other])->index];
  int first = p->choices[stage->index].count;
  for (int i = 0; i < theirs->count; i++) {
    const StageChoice *o = &theirs->items[i];
    const StageChoices *own = &p->choices[stage->index];
    bool known = o->absent;
    for (int k = first; k < own->count; k++) known |= planner_agree(&own->items[k], other, o);
    if (known) continue;
    StageChoice *choice = add_absent(p, stage, o->output);
    choice->by = other + 1;
    choice->tiles = o->tiles;
    choice->in_place = o->in_place;
    choice->tuned = o->tuned;
    choice->inner = o->inner;
    choice->elementwise = o->elementwise; // what follows counts where a reader is fused
    choice->whole = o->whole;
    choice->whole_reads = o->whole_reads;
    choice->row = o->row;
    choice->work = o->work;
    choice->memory = o->memory;
  }
}

void planner_absent_choices(Planner *p, const Stage *stage) {
  if (stage->serves) add_absent(p, stage, -1);
  for (int i = 0; i < stage->others.count; i++) add_other(p, stage, i);
}

const Stage *planner_taken_other(const Stage *stage, const StageChoice *choice) {
  return choice->by ? stage->others.items[choice->by - 1] : NULL;
}

bool planner_agree(const StageChoice *c, int other, const StageChoice *o) {
  if (c->by != other + 1) return o->absent;
  return !o->absent && c->output == o->output && c->tiles == o->tiles &&
         c->in_place == o->in_place && c->tuned == o->tuned && c->inner == o->inner &&
         c->elementwise == o->elementwise && c->whole == o->whole;
}

// The stage whose output the stage computes in another way, or helps to compute so; else itself.
static const Stage *first_way(const Stage *stage) {
  return stage->serves ? stage->serves->output->producer : stage;
}

// How many of the tensor's users belong to the same way as the stage.
static int users_of_way(const StageTensor *tensor, const Stage *stage) {
  int count = 0;
  for (int i = 0; stage->serves && i < tensor->users.count; i++)
    count += ((const Stage *)tensor->users.items[i])->serves == stage->serves;
  return MAX_OF(count, 1);
}

int planner_most_readers(const StageTensor *tensor) {
  int count = tensor->is_output;
  bool ways = false;
  for (int i = 0; i < tensor->users.count; i++)
    ways |= ((const Stage *)tensor->users.items[i])->serves != NULL;
  if (!ways) return tensor->users.count + tensor->is_output;
  for (int i = 0; i < tensor->users.count; i++) {
    const Stage *user = tensor->users.items[i];
    int most = users_of_way(tensor, user);
    bool counted = false;
    for (int k = 0; k < tensor->users.count; k++) {
      const Stage *other = tensor->users.items[k];
      int theirs = users_of_way(tensor, other);
      if (first_way(other) == first_way(user))
        counted |= theirs > most || (theirs == most && k < i);
    }
    if (!counted) count += most;
  }
  return count;
}

bool planner_is_read_once(const StageTensor *tensor) {
  return tensor->users.count && !tensor->is_output && planner_most_readers(tensor) == 1;
}

// ---- The stages that are in a plan

static bool is_absent(const Planner *p, const int *choice, const Stage *stage) {
  return choice && planner_chosen(p, choice, stage)->absent;
}

void planner_connect(const Planner *p, const int *choice) {
  const StageGraph *g = p->stages;
  for (int i = 0; i < g->tensors.count; i++) g->tensors.items[i]->users = (PtrArray){0};
  for (int i = 0; i < g->stages.count; i++) {
    Stage *stage = g->stages.items[i];
    if (is_absent(p, choice, stage)) continue;
    stage->output->producer = stage; // a stage comes after its others
    for (int k = 0; k < stage->reads.count; k++)
      array_push(&p->context->arena, &((StageTensor *)stage->reads.items[k])->users, stage);
  }
}

StageGraph *planner_stages_of(const Planner *p, const int *choice) {
  Arena *arena = &p->context->arena;
  StageGraph *own = arena_copy(arena, p->stages, sizeof *own);
  memset(&own->stages, 0, sizeof own->stages);
  memset(&own->tensors, 0, sizeof own->tensors);
  for (int i = 0; i < p->stages->stages.count; i++)
    if (!is_absent(p, choice, p->stages->stages.items[i]))
      array_push(arena, &own->stages, p->stages->stages.items[i]);
  for (int i = 0; i < p->stages->tensors.count; i++) {
    StageTensor *tensor = p->stages->tensors.items[i];
    bool made = tensor->producer && !is_absent(p, choice, tensor->producer);
    if (made || tensor->input >= 0 || tensor->users.count) array_push(arena, &own->tensors, tensor);
  }
  return own;
}
