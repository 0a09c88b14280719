// SPDX-License-Identifier: Apache-2.0
// Finds the copies of a tensor that some best plan may need. A reader that takes a copy can take
// another choice instead that is the same for all its other neighbours, and read the tensor as it
// is written. Where all readers together lose no more by that than the copy costs, no plan needs
// the copy, and the tensor needs no states with it:
//
//   drop the copy i of a tensor written in w when
//     Σ_readers max_y (min_y' (cost(y') + gather(y', w)) − cost(y)) ≤ rewrite(w, i)
//
// over the choices y that read i and the choices y' that are equal to y elsewhere.
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

// The cycles that a choice pays for a tensor that is written in candidate `from` and has no copies.
static int64_t own_reading(const Planner *p, const Stage *user, const StageChoice *choice, int read,
                           int from) {
  if (choice->reads[read] == from) return 0;
  double cycles = planner_gathering(p, user, choice, read, from);
  return cycles >= PLAN_NEVER ? PBQP_INFINITY : planner_integer_cost(cycles);
}

// Sets lost[to] to the most cycles that a choice loses which has no copy in candidate `to`.
static void find_lost(const Planner *p, const Stage *user, int read, const ReaderGroups *groups,
                      CopyLosses *losses, int from) {
  const StageChoices *choices = &p->choices[user->index];
  int64_t *lost = losses->lost + (int64_t)from * losses->candidates;
  int *instead = losses->instead + (int64_t)from * choices->count;
  Arena *scratch = &p->context->scratch;
  ArenaMark mark = arena_mark(scratch);
  int64_t *own = arena_array(scratch, int64_t, choices->count);
  int *best = arena_array(scratch, int, groups->count);
  for (int g = 0; g < groups->count; g++) best[g] = -1;
  for (int i = 0; i < choices->count; i++) {
    int *least = &best[groups->of[i]];
    own[i] = own_reading(p, user, &choices->items[i], read, from);
    int64_t cost = own[i] + planner_integer_cost(choices->items[i].cost);
    if (*least < 0 || cost < own[*least] + planner_integer_cost(choices->items[*least].cost))
      *least = i;
  }
  for (int i = 0; i < choices->count; i++) {
    const StageChoice *choice = &choices->items[i], *other;
    int to = choice->reads[read];
    instead[i] = best[groups->of[i]];
    other = &choices->items[instead[i]];
    if (to < 0 || to == from) continue;
    int64_t loss = own[instead[i]] + planner_integer_cost(other->cost) -
                   planner_integer_cost(choice->cost) - MIN_OF(own[i], 0);
    lost[to] = MAX_OF(lost[to], loss);
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
  ReaderGroups groups = reader_groups(scratch, choices, user, read);
  for (int from = 0; from < count; from++) find_lost(p, user, read, &groups, losses, from);
  arena_reset(scratch, mark);
  return losses;
}
