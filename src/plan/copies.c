// SPDX-License-Identifier: Apache-2.0
// Decides which copies of a tensor exist when the choices of its readers are known. A rewrite makes
// a copy, which serves all readers of its layout and those that gather from it. The copies are
// those that cost least together with the gathering, found by branch and bound.
#include "plan/internal.h"

#include <math.h>

// The readers for which it matters which copies exist.
typedef struct Deliveries {
  const Planner *p;
  const StageTensor *tensor;
  int from;  // the candidate in which the tensor is written
  int count; // of candidates
  int readers;
  double **cycles; // by reader and candidate: of reading, where that exists
  LayoutSet required;
} Deliveries;

// The cycles by candidate of a reader, or NULL where every copy is without use for it.
static double *cycles_of_reader(const Deliveries *d, Arena *scratch, const Stage *user,
                                const StageChoice *choice, int read) {
  if (choice->reads[read] == READ_NOTHING) return NULL;
  if (choice->reads[read] == d->from && !choice->saved) return NULL;
  double *cycles = arena_array(scratch, double, d->count);
  for (int i = 0; i < d->count; i++) cycles[i] = planner_reading(d->p, user, choice, read, i);
  return cycles;
}

static Deliveries deliveries_of(const Planner *p, const int *choice, const bool *decided,
                                const StageTensor *tensor, int from) {
  Arena *scratch = &p->context->scratch;
  Deliveries d = {p, tensor, from, p->candidates[tensor->index].count, 0, NULL, 0};
  int given = p->given[tensor->index];
  if (tensor->is_output && given != from) d.required = LAYOUT_SET_OF(given);
  for (int i = 0; i < tensor->users.count; i++) {
    const Stage *user = tensor->users.items[i];
    if (decided && !decided[user->index]) continue;
    double *cycles = cycles_of_reader(&d, scratch, user, planner_chosen(p, choice, user),
                                      stage_read_of(user, tensor));
    if (!cycles) continue;
    if (!d.cycles) d.cycles = arena_array(scratch, double *, tensor->users.count - i);
    d.cycles[d.readers++] = cycles;
  }
  return d;
}

// Could a copy save more than it costs?
static bool is_useful(const Deliveries *d, int copy) {
  double saved = 0;
  for (int r = 0; r < d->readers; r++)
    saved += MAX_OF(d->cycles[r][d->from] - d->cycles[r][copy], 0);
  return saved >= planner_rewrite_cost(d->p, d->tensor, d->from, copy);
}

// ---- The search

typedef struct CopySearch {
  const Deliveries *d;
  int count, *copies; // those among which it chooses
  double **rest;      // by number of a copy and reader: the least cycles with it or a later one
  double best;
  LayoutSet best_set;
} CopySearch;

// `cycles` are those of each reader with the copies of the set, which cost `cost`.
static void search_copies(CopySearch *s, int next, LayoutSet set, double cost,
                          const double *cycles) {
  const Deliveries *d = s->d;
  double least = cost, now = cost;
  for (int r = 0; r < d->readers; r++) {
    now += cycles[r];
    least += MIN_OF(cycles[r], s->rest[next][r]);
  }
  if (now < s->best) {
    s->best = now;
    s->best_set = set;
  }
  if (next == s->count || least >= s->best) return;
  Arena *scratch = &d->p->context->scratch;
  ArenaMark mark = arena_mark(scratch);
  int copy = s->copies[next];
  double *with = arena_array(scratch, double, d->readers);
  for (int r = 0; r < d->readers; r++) with[r] = MIN_OF(cycles[r], d->cycles[r][copy]);
  search_copies(s, next + 1, set | LAYOUT_SET_OF(copy),
                cost + planner_rewrite_cost(d->p, d->tensor, d->from, copy), with);
  arena_reset(scratch, mark);
  search_copies(s, next + 1, set, cost, cycles);
}

static void set_rest(CopySearch *s, Arena *scratch) {
  int readers = s->d->readers;
  s->rest = arena_array(scratch, double *, s->count + 1);
  for (int i = s->count; i >= 0; i--) {
    s->rest[i] = arena_array(scratch, double, readers);
    for (int r = 0; r < readers; r++)
      s->rest[i][r] =
          i == s->count ? PLAN_NEVER : MIN_OF(s->rest[i + 1][r], s->d->cycles[r][s->copies[i]]);
  }
}

// Sets *cost to the cycles of the copies and of the readers.
static LayoutSet best_copies(const Deliveries *d, double *cost) {
  Arena *scratch = &d->p->context->scratch;
  CopySearch s = {.d = d, .copies = arena_array(scratch, int, d->count), .best = INFINITY};
  double *cycles = arena_array(scratch, double, d->readers), required = 0;
  for (int r = 0; r < d->readers; r++) cycles[r] = d->cycles[r][d->from];
  for (int i = 0; i < d->count; i++) {
    if (i == d->from) continue;
    bool is_required = d->required & LAYOUT_SET_OF(i);
    if (!is_required && is_useful(d, i)) s.copies[s.count++] = i;
    if (!is_required) continue;
    required += planner_rewrite_cost(d->p, d->tensor, d->from, i);
    for (int r = 0; r < d->readers; r++) cycles[r] = MIN_OF(cycles[r], d->cycles[r][i]);
  }
  set_rest(&s, scratch);
  search_copies(&s, 0, d->required, required, cycles);
  *cost = s.best;
  return s.best_set;
}

// The same for one reader and a tensor that is no output: at most one copy is made.
static LayoutSet best_copy(const Deliveries *d, double *cost) {
  const double *cycles = d->cycles[0];
  LayoutSet best = 0;
  *cost = cycles[d->from];
  for (int i = 0; i < d->count; i++) {
    if (i == d->from || cycles[i] >= *cost) continue;
    double with = planner_rewrite_cost(d->p, d->tensor, d->from, i) + cycles[i];
    if (with >= *cost) continue;
    *cost = with;
    best = LAYOUT_SET_OF(i);
  }
  return best;
}

// ---- What the planner asks

// The copies of a tensor, written in candidate `from`, that cost least together with what its
// readers then gather. Sets *cost to the cycles of both.
static LayoutSet copies_and_cost(const Planner *p, const int *choice, const bool *decided,
                                 const StageTensor *tensor, int from, double *cost) {
  *cost = 0;
  if (from < 0) return 0; // the tensor is not in the plan
  Arena *scratch = &p->context->scratch;
  ArenaMark mark = arena_mark(scratch);
  Deliveries d = deliveries_of(p, choice, decided, tensor, from);
  LayoutSet copies = d.readers == 1 && !d.required ? best_copy(&d, cost)
                     : d.readers || d.required     ? best_copies(&d, cost)
                                                   : 0;
  arena_reset(scratch, mark);
  return copies;
}

double planner_delivery_cost(const Planner *p, const int *choice, const bool *decided,
                             const StageTensor *tensor, int from) {
  double cost;
  copies_and_cost(p, choice, decided, tensor, from, &cost);
  return cost;
}

int planner_read_in(const Planner *p, const int *choice, const StageTensor *tensor,
                    const Stage *user) {
  const StageChoice *c = planner_chosen(p, choice, user);
  int read = stage_read_of(user, tensor), wanted = c->reads[read],
      written = planner_written(p, choice, tensor);
  if (wanted == READ_PACKED || wanted == READ_NOTHING) return wanted;
  if (written < 0 || (wanted == written && !c->saved)) return wanted;
  double cost;
  LayoutSet copies = copies_and_cost(p, choice, NULL, tensor, written, &cost);
  int best = written;
  double least = planner_reading(p, user, c, read, written);
  for (int i = 0; i < p->candidates[tensor->index].count; i++) {
    if (!(copies & LAYOUT_SET_OF(i))) continue;
    double cycles = planner_reading(p, user, c, read, i);
    if (cycles > least || (cycles == least && i != wanted)) continue;
    best = i;
    least = cycles;
  }
  return best;
}
