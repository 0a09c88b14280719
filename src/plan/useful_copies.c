// SPDX-License-Identifier: Apache-2.0
// Finds the copies of a tensor that some best plan may need. A reader that takes a copy can take
// another choice instead that is the same for all its other neighbours, and read the tensor as it
// is written. Where all readers together lose no more by that than the copy costs, no plan needs
// the copy, and the tensor needs no states with it:
//
//   drop the copy i of a tensor written in w when
//     Σ_readers max_y (min_y' (cost(y') + read(y', w)) − cost(y) − read(y, i)) ≤ rewrite(w, i)
//
// over the choices y that can read i, which may be by gathering, and the choices y' that are equal
// to y elsewhere.
#include "plan/internal.h"
#include "solve/pbqp.h"

// The choices of a reader in groups that differ in how they read one tensor only.
typedef struct ReaderGroups {
  int count, *of; // the group of each choice
} ReaderGroups;

static ReaderGroups reader_groups(Arena *arena, const StageChoices *choices, const Stage *user,
                                  int read) {
  ReaderGroups groups = {0, arena_array(arena, int, choices->count)};
  ChoiceClasses writers = planner_writer_classes(arena, choices);
  ChoiceClasses *readers = arena_array(arena, ChoiceClasses, user->reads.count);
  for (int r = 0; r < user->reads.count; r++)
    if (r != read) readers[r] = planner_reader_classes(arena, choices, r);
  Map known = map_new(arena);
  WordKey key = word_key_new(arena);
  for (int i = 0; i < choices->count; i++) {
    key.count = 0;
    word_key_add(&key, (uint64_t)writers.of[i]);
    word_key_add(&key, choices->items[i].absent);
    for (int r = 0; r < user->reads.count; r++)
      if (r != read) word_key_add(&key, (uint64_t)readers[r].of[i]);
    void **place = map_place(&known, &key);
    if (!*place) *place = (void *)(uintptr_t)++groups.count;
    groups.of[i] = (int)(uintptr_t)*place - 1;
  }
  return groups;
}

// A reader, its choices by how they read the tensor, and the cycles of reading.
typedef struct CopyReader {
  const Planner *p;
  const Stage *user;
  int read, candidates;
  ReaderGroups groups;
  ChoiceClasses classes; // by what the cycles of reading depend on
  int64_t *reading;      // by class and candidate
} CopyReader;

static void find_reading(CopyReader *r, Arena *scratch) {
  r->reading = arena_array(scratch, int64_t, (size_t)r->classes.count * (size_t)r->candidates);
  for (int k = 0; k < r->classes.count; k++)
    for (int i = 0; i < r->candidates; i++) {
      double cycles = planner_reading(r->p, r->user, r->classes.first[k], r->read, i);
      r->reading[k * r->candidates + i] =
          cycles >= PLAN_NEVER ? PBQP_INFINITY : planner_integer_cost(cycles);
    }
}

// The cycles of a choice when the tensor is in memory in candidate `from` only.
static int64_t cost_without(const CopyReader *r, int choice, int from) {
  return r->reading[r->classes.of[choice] * r->candidates + from] +
         planner_integer_cost(r->p->choices[r->user->index].items[choice].cost);
}

// Sets instead[] to the cheapest choice of each one's group.
static void find_instead(const CopyReader *r, Arena *scratch, int from, int *instead) {
  int count = r->p->choices[r->user->index].count;
  int *best = arena_array(scratch, int, r->groups.count);
  for (int g = 0; g < r->groups.count; g++) best[g] = -1;
  for (int i = 0; i < count; i++) {
    int *least = &best[r->groups.of[i]];
    if (*least < 0 || cost_without(r, i, from) < cost_without(r, *least, from)) *least = i;
  }
  for (int i = 0; i < count; i++) instead[i] = best[r->groups.of[i]];
}

// Sets lost[to] to the most cycles that a choice loses which has no copy in candidate `to`.
static void find_lost(const CopyReader *r, CopyLosses *losses, int from) {
  const StageChoices *choices = &r->p->choices[r->user->index];
  int64_t *lost = losses->lost + (int64_t)from * r->candidates;
  int *instead = losses->instead + (int64_t)from * choices->count;
  Arena *scratch = &r->p->context->scratch;
  ArenaMark mark = arena_mark(scratch);
  find_instead(r, scratch, from, instead);
  int64_t *most = arena_array(scratch, int64_t, r->classes.count); // beside reading
  for (int k = 0; k < r->classes.count; k++) most[k] = -PBQP_INFINITY;
  for (int i = 0; i < choices->count; i++) {
    int64_t *of_class = &most[r->classes.of[i]];
    *of_class = MAX_OF(*of_class, cost_without(r, instead[i], from) -
                                      planner_integer_cost(choices->items[i].cost));
  }
  for (int k = 0; k < r->classes.count; k++)
    for (int to = 0; to < r->candidates; to++) {
      int64_t reading = r->reading[k * r->candidates + to];
      if (to != from && reading < PBQP_INFINITY) lost[to] = MAX_OF(lost[to], most[k] - reading);
    }
  arena_reset(scratch, mark);
}

const CopyLosses *planner_copy_losses(const Planner *p, const Stage *user, int read) {
  Arena *arena = &p->context->arena, *scratch = &p->context->scratch;
  const StageChoices *choices = &p->choices[user->index];
  CopyLosses *losses = arena_new(arena, CopyLosses);
  const StageTensor *tensor = user->reads.items[read];
  int count = losses->candidates = p->candidates[tensor->index].count;
  losses->lost = arena_array(arena, int64_t, (size_t)count * (size_t)count);
  losses->instead = arena_array(arena, int, (size_t)count * (size_t)choices->count);
  ArenaMark mark = arena_mark(scratch);
  CopyReader r = {p,
                  user,
                  read,
                  count,
                  reader_groups(scratch, choices, user, read),
                  planner_reader_classes(scratch, choices, read),
                  NULL};
  find_reading(&r, scratch);
  for (int from = 0; from < count; from++) find_lost(&r, losses, from);
  arena_reset(scratch, mark);
  return losses;
}
