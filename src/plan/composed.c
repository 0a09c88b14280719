// SPDX-License-Identifier: Apache-2.0
// Composes elementwise stages that are fused with one another. Their kernel is scheduled as one
// stage whose value has those of the others inlined, so that is what it costs: a view that was
// inlined before planning and one that is fused have one price.
//   t[i, j] = x[j, i];  y[i, j] = max(t[i, j], 0)    =>   y[i, j] = max(x[j, i], 0)
#include "plan/internal.h"

// A composed stage has no index, and so no entry in the planner's tables by stage.
typedef struct ComposedStage {
  Stage stage;
  const Stage *last;        // the stage of the graph that the others are inlined into
  PlanRelation **relations; // by entry of the stage's reads
  double *passed;
} ComposedStage;
enum { NO_INDEX = -1 };

PlanRelation *planner_relation(const Planner *p, const Stage *stage, int read) {
  bool composed = stage->index == NO_INDEX;
  return composed ? ((const ComposedStage *)stage)->relations[read]
                  : p->relations[stage->index][read];
}

double planner_passed(const Planner *p, const Stage *stage, int read) {
  bool composed = stage->index == NO_INDEX;
  return composed ? ((const ComposedStage *)stage)->passed[read] : p->passed[stage->index][read];
}

// The bytes that have passed when the first of both stages reads the tensor.
static double passed_before(const Planner *p, const Stage *stage, const Stage *host,
                            const StageTensor *tensor) {
  int own = stage_read_of(stage, tensor), theirs = stage_read_of(host, tensor);
  if (theirs < 0) return planner_passed(p, stage, own);
  double passed = planner_passed(p, host, theirs);
  return own < 0 ? passed : MIN_OF(passed, planner_passed(p, stage, own));
}

static const Stage *compose(Planner *p, const Stage *stage, const Stage *host) {
  Arena *arena = &p->context->arena;
  ComposedStage *composed = arena_new(arena, ComposedStage);
  composed->stage = *stage_with_producer(p->stages, stage, host);
  composed->stage.index = NO_INDEX;
  composed->last = stage;
  int count = composed->stage.reads.count;
  composed->relations = arena_array(arena, PlanRelation *, count);
  composed->passed = arena_array(arena, double, count);
  for (int i = 0; i < count; i++) {
    const StageTensor *tensor = composed->stage.reads.items[i];
    composed->relations[i] = planner_find_relation(p, &composed->stage, tensor);
    composed->passed[i] = passed_before(p, stage, host, tensor);
  }
  return &composed->stage;
}

static const Stage *compose_once(Planner *p, const Stage *stage, const Stage *host) {
  ArenaMark mark = arena_mark(&p->context->scratch);
  WordKey key = word_key_new(&p->context->scratch);
  word_key_add(&key, map_key(stage));
  word_key_add(&key, map_key(host));
  void **known = map_place(p->composed, &key);
  arena_reset(&p->context->scratch, mark);
  if (!*known) *known = (void *)compose(p, stage, host);
  return *known;
}

static const StageChoice *choice_with(const StageChoices *choices, const Stage *whole) {
  for (int i = 0; i < choices->count; i++)
    if (choices->items[i].whole == whole) return &choices->items[i];
  return NULL;
}

// Does the composed stage end with this stage, and not with an equal one?
static bool ends_with(const Stage *whole, const Stage *stage) {
  if (whole->index != NO_INDEX) return whole == stage;
  return ((const ComposedStage *)whole)->last == stage;
}

// The kernel of the stage under a choice, which may be shared with equal stages: those of the
// choice's own `whole` are then not the stage's.
static const Stage *own_whole(Planner *p, const Stage *stage, const StageChoice *choice) {
  if (ends_with(choice->whole, stage)) return choice->whole;
  const Stage *other = planner_taken_other(stage, choice);
  if (other) return own_whole(p, other, choice_with(&p->choices[other->index], choice->whole));
  if (choice->fused < 0) return stage;
  const Stage *producer = ((const StageTensor *)stage->reads.items[choice->fused])->producer;
  const StageChoice *host = choice_with(&p->choices[producer->index], choice->host);
  return compose_once(p, stage, own_whole(p, producer, host));
}

void planner_compose(Planner *p, const Stage *stage, StageChoice *choice, const StageChoice *host) {
  choice->whole = stage;
  choice->whole_reads = choice->reads;
  if (!host) return;
  const Stage *producer = ((const StageTensor *)stage->reads.items[choice->fused])->producer;
  const Stage *before = own_whole(p, producer, host), *whole = compose_once(p, stage, before);
  int *reads = arena_array(&p->context->arena, int, whole->reads.count);
  for (int i = 0; i < whole->reads.count; i++) {
    int own = stage_read_of(stage, whole->reads.items[i]);
    reads[i] = own >= 0 ? choice->reads[own]
                        : host->whole_reads[stage_read_of(before, whole->reads.items[i])];
  }
  choice->host = host->whole;
  choice->whole = whole;
  choice->whole_reads = reads;
}
