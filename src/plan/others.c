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
         c->elementwise == o->elementwise && c->whole == o->whole &&
         (c->elementwise || c->row == o->row);
}

// ---- Readers in one plan

// A stage is optional when it is in a plan only where a stage of another way reads its output.
static bool is_optional(const Stage *stage) {
  return stage->serves && stage->output->producer == stage;
}

enum { MOST_PRESENT = 32, MOST_SELECTIONS = 4096 };

// The stages that a plan has of one stage with several ways: for each of those that are needed, it
// has that stage or one of its others.
typedef struct Selection {
  const StageTensor *tensor;
  const Stage *needed[MOST_PRESENT];
  int needed_count;
  int readers, most, tried;
} Selection;

static bool reads_tensor(const StageTensor *tensor, const Stage *stage) {
  return stage_read_of(stage, tensor) >= 0;
}

// Adds the optional stages that compute what the stage reads. False when there are too many.
static bool need_producers(Selection *s, const Stage *stage) {
  for (int i = 0; i < stage->reads.count; i++) {
    const Stage *producer = ((const StageTensor *)stage->reads.items[i])->producer;
    bool known = !producer || !is_optional(producer);
    for (int k = 0; k < s->needed_count && !known; k++) known = s->needed[k] == producer;
    if (known) continue;
    if (s->needed_count == MOST_PRESENT) return false;
    s->needed[s->needed_count++] = producer;
  }
  return true;
}

// Tries all ways of the needed stages from number `at` on. False when there are too many.
static bool select_from(Selection *s, int at) {
  if (at == s->needed_count) {
    s->most = MAX_OF(s->most, s->readers);
    return ++s->tried < MOST_SELECTIONS;
  }
  const Stage *first = s->needed[at];
  for (int i = -1; i < first->others.count; i++) {
    const Stage *way = i < 0 ? first : first->others.items[i];
    int needed = s->needed_count, reads = reads_tensor(s->tensor, way);
    s->readers += reads;
    bool whole = need_producers(s, way) && select_from(s, at + 1);
    s->readers -= reads;
    s->needed_count = needed;
    if (!whole) return false;
  }
  return true;
}

// The most readers of the tensor among the ways of a stage.
static int most_of_ways(const StageTensor *tensor, const Stage *first) {
  Selection s = {.tensor = tensor, .needed = {first}, .needed_count = 1};
  return select_from(&s, 0) ? s.most : tensor->users.count;
}

// Adds the stages that are in every plan, of whose ways the stage is part.
static void find_first(const StageGraph *g, const Stage *stage, PtrArray *found) {
  const Stage *first = stage->output->producer;
  Arena *scratch = &g->context->scratch;
  for (int i = 0; i < found->count; i++)
    if (found->items[i] == first) return;
  array_push(scratch, found, (void *)first);
  for (int i = 0; is_optional(first) && i < first->output->users.count; i++)
    find_first(g, first->output->users.items[i], found);
}

static int count_readers(const StageGraph *g, const StageTensor *tensor) {
  int count = tensor->is_output;
  bool ways = false;
  for (int i = 0; i < tensor->users.count; i++) {
    const Stage *user = tensor->users.items[i];
    ways |= user->serves || user->others.count;
  }
  if (!ways) return tensor->users.count + tensor->is_output;
  ArenaMark mark = arena_mark(&g->context->scratch);
  PtrArray found = {0};
  for (int i = 0; i < tensor->users.count; i++) find_first(g, tensor->users.items[i], &found);
  for (int i = 0; i < found.count; i++)
    if (!is_optional(found.items[i])) count += most_of_ways(tensor, found.items[i]);
  arena_reset(&g->context->scratch, mark);
  return count;
}

void planner_count_readers(const StageGraph *g) {
  for (int i = 0; i < g->tensors.count; i++)
    g->tensors.items[i]->most_readers = count_readers(g, g->tensors.items[i]);
}

int planner_most_readers(const StageTensor *tensor) {
  return tensor->most_readers;
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
  if (!choice) planner_count_readers(g);
  for (int i = 0; choice && i < g->tensors.count; i++) {
    StageTensor *tensor = g->tensors.items[i];
    tensor->most_readers = tensor->users.count + tensor->is_output;
  }
}

static bool is_read(const Planner *p, const int *choice, const StageTensor *tensor) {
  bool read = tensor->is_output;
  for (int i = 0; i < tensor->users.count; i++)
    read |= !is_absent(p, choice, tensor->users.items[i]);
  return read;
}

static void leave_out(const Planner *p, const Stage *stage, int *choice) {
  const StageChoices *choices = &p->choices[stage->index];
  for (int i = 0; i < choices->count; i++)
    if (choices->items[i].absent && !choices->items[i].by) choice[stage->index] = i;
}

void planner_leave_out_unread(const Planner *p, int *choice) {
  for (int i = p->stages->stages.count; i-- > 0;) {
    const Stage *stage = p->stages->stages.items[i];
    if (!is_optional(stage) || is_read(p, choice, stage->output)) continue;
    leave_out(p, stage, choice);
    for (int k = 0; k < stage->others.count; k++) leave_out(p, stage->others.items[k], choice);
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
