// SPDX-License-Identifier: Apache-2.0
// States the planning problem for the solver. There is one variable for each stage. Each input,
// each output and each tensor with several users has a variable too, which says in which layout the
// tensor is written and in which layouts it exists, so that one rewrite serves all users of a
// layout.
#include "config.h"
#include "plan/internal.h"
#include "solve/pbqp.h"

typedef struct TensorState { // a value of a tensor's variable
  int written;
  LayoutSet exists; // including `written`
} TensorState;

typedef struct TensorStates {
  TensorState *items;
  int count; // 0: the tensor has no variable
} TensorStates;

typedef struct Solving {
  const Planner *planner;
  PbqpProblem *problem;
  int *stage_variable;       // by stage->index
  int *tensor_variable;      // by tensor->index; -1: none, an edge connects producer and user
  TensorStates *states;      // by tensor->index, for those with a variable
  const StageTensor *forced; // NULL, or a tensor that is written in candidate `number`
  int number;
  Map known;   // by SolvingKey: variables, states and tables that equal stages and tensors share
  WordKey key; // of the one that is looked for
} Solving;

// ---- Equal parts of the problem

typedef enum SolvingKey {
  KEY_STAGE,
  KEY_TENSOR,
  KEY_STATES,
  KEY_WRITTEN,
  KEY_READ,
  KEY_DIRECT,
  KEY_OTHER,
  KEY_LOSSES,
} SolvingKey;

static void **known_under(Solving *s, SolvingKey kind, const uint64_t *words, int count) {
  s->key.count = 0;
  word_key_add(&s->key, kind);
  for (int i = 0; i < count; i++) word_key_add(&s->key, words[i]);
  return map_place(&s->known, &s->key);
}
#define KNOWN(s, kind, ...)                                                                        \
  known_under((s), (kind), (const uint64_t[]){__VA_ARGS__}, COUNT_OF(((uint64_t[]){__VA_ARGS__})))

// The variable of *known, which has a number in place of an address, or a new one.
static int variable_once(Solving *s, void **known, int choices, const int64_t *costs) {
  int variable = pbqp_variable(s->problem, choices, costs);
  *known = (void *)(uintptr_t)(variable + 1);
  return variable;
}

// ---- Variables

static void add_stage_variable(Solving *s, const Stage *stage) {
  const StageChoices *choices = &s->planner->choices[stage->index];
  bool forced = stage->output == s->forced;
  void **known = KNOWN(s, KEY_STAGE, map_key(choices->items), (uint64_t)choices->count, forced);
  int *variable = &s->stage_variable[stage->index];
  if (*known) {
    *variable = pbqp_variable_like(s->problem, (int)(uintptr_t)*known - 1);
    return;
  }
  ArenaMark mark = arena_mark(&s->planner->context->scratch);
  int64_t *costs = arena_array(&s->planner->context->scratch, int64_t, choices->count);
  for (int i = 0; i < choices->count; i++) {
    int output = choices->items[i].output; // -1: the stage is absent
    bool allowed = !forced || output < 0 || output == s->number;
    costs[i] = allowed ? planner_integer_cost(choices->items[i].cost) : PBQP_INFINITY;
  }
  *variable = variable_once(s, known, choices->count, costs);
  arena_reset(&s->planner->context->scratch, mark);
}

static int given_number(const Solving *s, const StageTensor *tensor) {
  return tensor == s->forced && tensor->input >= 0 ? s->number : s->planner->given[tensor->index];
}

// The candidates in which the tensor can be written.
static LayoutSet written_set(const Solving *s, const StageTensor *tensor) {
  if (tensor->input >= 0) return LAYOUT_SET_OF(given_number(s, tensor));
  const StageChoices *choices = &s->planner->choices[tensor->producer->index];
  LayoutSet set = 0;
  for (int i = 0; i < choices->count; i++)
    if (choices->items[i].output >= 0) set |= LAYOUT_SET_OF(choices->items[i].output);
  return set;
}

// Is there a plan without the stage that writes the tensor?
static bool may_be_unwritten(const StageTensor *tensor) {
  return tensor->producer && tensor->producer->serves && !tensor->is_output;
}

// The candidates from which a choice can read.
static LayoutSet readable_set(const StageChoice *choice, int read, LayoutSet all) {
  if (choice->reads[read] == READ_ANY || bit_set_has(&choice->gathers, read)) return all;
  return choice->reads[read] >= 0 ? LAYOUT_SET_OF(choice->reads[read]) : 0;
}

// The candidates from which some reader can read, or which the caller wants.
static LayoutSet wanted_set(const Solving *s, const StageTensor *tensor) {
  LayoutSet set = tensor->is_output ? LAYOUT_SET_OF(given_number(s, tensor)) : 0,
            all = LAYOUT_SET_BELOW(s->planner->candidates[tensor->index].count);
  for (int i = 0; i < tensor->users.count; i++) {
    const Stage *user = tensor->users.items[i];
    const StageChoices *choices = &s->planner->choices[user->index];
    int read = stage_read_of(user, tensor);
    for (int k = 0; k < choices->count && set != all; k++)
      set |= readable_set(&choices->items[k], read, all);
  }
  return set;
}

// The copies that are wanted of a tensor, by the candidate in which it is written.
typedef struct WantedCopies {
  LayoutSet from[PLAN_MAX_LAYOUTS];
} WantedCopies;

static const CopyLosses *losses_of(Solving *s, const StageTensor *tensor, const Stage *user) {
  const StageChoices *choices = &s->planner->choices[user->index];
  int read = stage_read_of(user, tensor);
  void **known =
      KNOWN(s, KEY_LOSSES, map_key(choices->items), (uint64_t)choices->count, (uint64_t)read);
  if (!*known) *known = (void *)planner_copy_losses(s->planner, user, read);
  return *known;
}

// Is there a best plan without the copy? The costs of copies are rounded together.
static bool is_useless(Solving *s, const StageTensor *tensor, int from, int to) {
  int64_t room = (int64_t)planner_rewrite_cost(s->planner, tensor, from, to) - 1;
  if (tensor->is_output && given_number(s, tensor) == to) return false;
  for (int i = 0; i < tensor->users.count && room >= 0; i++) {
    const CopyLosses *losses = losses_of(s, tensor, tensor->users.items[i]);
    int64_t lost = losses->lost[from * losses->candidates + to];
    room = lost > room ? -1 : room - lost;
  }
  return room >= 0;
}

static WantedCopies wanted_copies(Solving *s, const StageTensor *tensor, LayoutSet written,
                                  LayoutSet wanted) {
  WantedCopies copies = {{0}};
  for (LayoutSet left = written; left; left &= left - 1) {
    int from = __builtin_ctzll(left);
    for (LayoutSet to = wanted & ~LAYOUT_SET_OF(from); to; to &= to - 1)
      if (!is_useless(s, tensor, from, __builtin_ctzll(to))) copies.from[from] |= to & -to;
  }
  return copies;
}

// Adds the states in which the tensor is written in one candidate and exists in `exists` and in at
// most `most` of the others. Without room for them, counts them.
static void add_states(TensorStates *states, TensorState state, LayoutSet others, int most) {
  if (!others || !most) {
    if (states->items) states->items[states->count] = state;
    states->count++;
    return;
  }
  LayoutSet last = LAYOUT_SET_OF(63 - __builtin_clzll(others));
  TensorState with = {state.written, state.exists | last};
  add_states(states, state, others & ~last, most);
  add_states(states, with, others & ~last, most - 1);
}

// The number of states with at most `most` copies.
static double count_states(LayoutSet written, const WantedCopies *wanted, int most) {
  double count = 0;
  for (LayoutSet left = written; left; left &= left - 1) {
    int others = __builtin_popcountll(wanted->from[__builtin_ctzll(left)]);
    double sets = 1;
    for (int k = 0; k <= MIN_OF(most, others); k++) {
      count += sets;
      sets = sets * (others - k) / (k + 1);
    }
  }
  return count;
}

// The most copies that are looked at: no more than there are readers, since each reads one, and so
// few that there are not too many states. The tables of a tensor with 16 candidates and six readers
// would have 365,104 rows.
static int most_copies(const Planner *p, LayoutSet written, const WantedCopies *wanted,
                       int readers) {
  enum { MOST_STATES = 10000, MOST_OF_SMALL = 150000 };
  int most = readers, limit = MOST_STATES;
  if (p->is_small) limit = MAX_OF(limit, MOST_OF_SMALL / MAX_OF(readers, 1)); // a table for each
  while (most > 1 && count_states(written, wanted, most) > limit) most--;
  return most;
}

// The states with each written candidate and the copies that are wanted. A tensor that may not be
// in the plan also has the state -1.
static TensorStates states_of(Arena *arena, LayoutSet written, const WantedCopies *wanted, int most,
                              bool unwritten) {
  TensorStates states = {0};
  for (int pass = 0; pass < 2; pass++) {
    if (pass) states.items = arena_array(arena, TensorState, states.count);
    states.count = unwritten;
    if (pass && states.count) states.items[0] = (TensorState){-1, 0};
    for (LayoutSet left = written; left; left &= left - 1) {
      int from = __builtin_ctzll(left);
      add_states(&states, (TensorState){from, LAYOUT_SET_OF(from)}, wanted->from[from], most);
    }
  }
  return states;
}

static int most_wanted(const WantedCopies *wanted) {
  int most = 0;
  for (int i = 0; i < PLAN_MAX_LAYOUTS; i++)
    most = MAX_OF(most, __builtin_popcountll(wanted->from[i]));
  return most;
}

static TensorStates states_once(Solving *s, const StageTensor *tensor) {
  Arena *arena = &s->planner->context->arena;
  LayoutSet written = written_set(s, tensor);
  WantedCopies wanted = wanted_copies(s, tensor, written, wanted_set(s, tensor));
  int readers = planner_most_readers(tensor),
      most = most_copies(s->planner, written, &wanted, readers);
  s->planner->copies_limited[tensor->index] = most < readers && most < most_wanted(&wanted);
  bool unwritten = may_be_unwritten(tensor);
  uint64_t words[PLAN_MAX_LAYOUTS + 3] = {written, (uint64_t)most, unwritten};
  int count = 3;
  for (LayoutSet left = written; left; left &= left - 1)
    words[count++] = wanted.from[__builtin_ctzll(left)];
  void **known = known_under(s, KEY_STATES, words, count);
  if (!*known) {
    TensorStates states = states_of(arena, written, &wanted, most, unwritten);
    *known = arena_copy(arena, &states, sizeof states);
  }
  return *(const TensorStates *)*known;
}

static int64_t state_cost(const Solving *s, const StageTensor *tensor, TensorState state) {
  const Candidates *c = &s->planner->candidates[tensor->index];
  double cost = 0;
  if (state.written < 0) return 0;
  if (tensor->is_output && !(state.exists >> given_number(s, tensor) & 1)) return PBQP_INFINITY;
  for (int i = 0; i < c->count; i++)
    if (state.exists >> i & 1) cost += planner_rewrite_cost(s->planner, tensor, state.written, i);
  return planner_integer_cost(cost);
}

static bool needs_variable(const StageTensor *tensor) {
  return !tensor->data && (!planner_is_read_once(tensor) || tensor->input >= 0);
}

static void add_tensor_variable(Solving *s, const StageTensor *tensor) {
  int *variable = &s->tensor_variable[tensor->index];
  *variable = -1;
  if (!needs_variable(tensor)) return;
  TensorStates states = states_once(s, tensor);
  s->states[tensor->index] = states;
  void **known =
      KNOWN(s, KEY_TENSOR, map_key(states.items), map_key(s->planner->rewrite_costs[tensor->index]),
            tensor->is_output ? (uint64_t)given_number(s, tensor) + 1 : 0);
  if (*known) {
    *variable = pbqp_variable_like(s->problem, (int)(uintptr_t)*known - 1);
    return;
  }
  ArenaMark mark = arena_mark(&s->planner->context->scratch);
  int64_t *costs = arena_array(&s->planner->context->scratch, int64_t, states.count);
  for (int i = 0; i < states.count; i++) costs[i] = state_cost(s, tensor, states.items[i]);
  *variable = variable_once(s, known, states.count, costs);
  arena_reset(&s->planner->context->scratch, mark);
}

// ---- Edges

static int64_t *matrix_new(Solving *s, int rows, int columns) {
  return arena_array(&s->planner->context->scratch, int64_t, (size_t)rows * (size_t)columns);
}

static const PbqpTable *table_written(Solving *s, const StageChoices *from,
                                      const TensorStates *states) {
  int count = states->count;
  int64_t *matrix = matrix_new(s, from->count, count);
  for (int i = 0; i < from->count; i++)
    for (int j = 0; j < count; j++)
      matrix[i * count + j] = from->items[i].output == states->items[j].written ? 0 : PBQP_INFINITY;
  return pbqp_table(s->problem, from->count, count, matrix);
}

static void edge_written(Solving *s, const StageTensor *tensor) {
  const TensorStates *states = &s->states[tensor->index];
  const StageChoices *from = &s->planner->choices[tensor->producer->index];
  void **known =
      KNOWN(s, KEY_WRITTEN, map_key(from->items), (uint64_t)from->count, map_key(states->items));
  if (!*known) *known = (void *)table_written(s, from, states);
  pbqp_edge_of(s->problem, s->stage_variable[tensor->producer->index],
               s->tensor_variable[tensor->index], *known);
}

static int64_t cost_or_never(double cycles) {
  return cycles >= PLAN_NEVER ? PBQP_INFINITY : planner_integer_cost(cycles);
}

// The cycles of a choice that reads the tensor in the candidate of least cycles that exists.
// `cycles`: by candidate.
static int64_t cost_of_reading(const Planner *p, const Stage *user, const StageChoice *choice,
                               int read, TensorState state, const double *cycles) {
  if (state.written < 0) return cost_or_never(planner_reading(p, user, choice, read, -1));
  double least = PLAN_NEVER;
  for (LayoutSet left = state.exists; left; left &= left - 1)
    least = MIN_OF(least, cycles[__builtin_ctzll(left)]);
  return cost_or_never(least);
}

static const PbqpTable *table_read(Solving *s, const StageTensor *tensor,
                                   const TensorStates *states, const Stage *user, int read) {
  const Planner *p = s->planner;
  const StageChoices *to = &p->choices[user->index];
  ChoiceClasses readers = planner_reader_classes(&p->context->scratch, to, read);
  int count = states->count, candidates = p->candidates[tensor->index].count;
  int64_t *matrix = matrix_new(s, count, readers.count);
  double *cycles = arena_array(&p->context->scratch, double, candidates);
  for (int j = 0; j < readers.count; j++) {
    const StageChoice *choice = readers.first[j];
    for (int i = 0; i < candidates; i++) cycles[i] = planner_reading(p, user, choice, read, i);
    for (int i = 0; i < count; i++)
      matrix[i * readers.count + j] =
          cost_of_reading(p, user, choice, read, states->items[i], cycles);
  }
  return pbqp_table_classes(s->problem, count, NULL, count, to->count, readers.of, readers.count,
                            matrix);
}

static void edge_read(Solving *s, const StageTensor *tensor, const Stage *user) {
  const TensorStates *states = &s->states[tensor->index];
  const StageChoices *to = &s->planner->choices[user->index];
  int read = stage_read_of(user, tensor);
  void **known = KNOWN(s, KEY_READ, map_key(states->items), map_key(to->items), (uint64_t)to->count,
                       (uint64_t)read);
  if (!*known) *known = (void *)table_read(s, tensor, states, user, read);
  pbqp_edge_of(s->problem, s->tensor_variable[tensor->index], s->stage_variable[user->index],
               *known);
}

// The cycles between the choices of a producer and a user that is fused with it.
static double hosting(const Solving *s, const StageChoice *from, const Stage *user,
                      const StageChoice *to, int read) {
  bool hosts = from->output == to->reads[read] && planner_hosts(s->planner, from, user, to, read);
  return hosts ? 0 : PLAN_NEVER;
}

// The edge between a producer and a user, which is the only one in a plan. Where their layouts
// differ, it costs a delivery; it forbids differing layouts when the two are fused.
static const PbqpTable *table_direct(Solving *s, const StageTensor *tensor, const Stage *user) {
  Arena *scratch = &s->planner->context->scratch;
  const StageChoices *from = &s->planner->choices[tensor->producer->index];
  const StageChoices *to = &s->planner->choices[user->index];
  int read = stage_read_of(user, tensor);
  ChoiceClasses writers = planner_writer_classes(scratch, from);
  ChoiceClasses readers = planner_reader_classes(scratch, to, read);
  int64_t *matrix = matrix_new(s, writers.count, readers.count);
  for (int i = 0; i < writers.count; i++)
    for (int j = 0; j < readers.count; j++) {
      const StageChoice *writer = writers.first[i], *reader = readers.first[j];
      double cost = reader->fused == read ? hosting(s, writer, user, reader, read)
                                          : planner_delivery_to(s->planner, tensor, user, reader,
                                                                read, writer->output);
      if (!planner_tuned_alike(writer, reader, read)) cost = PLAN_NEVER;
      matrix[i * readers.count + j] = cost_or_never(cost);
    }
  return pbqp_table_classes(s->problem, from->count, writers.of, writers.count, to->count,
                            readers.of, readers.count, matrix);
}

// With which of the stages that can compute the tensor the user can be fused; 0 where only one can.
static uint64_t fusing_writers(const Solving *s, const StageTensor *tensor, const Stage *user) {
  const PtrArray *others = &tensor->producer->others;
  uint64_t set = 0;
  for (int i = 0; i < others->count; i++)
    if (!planner_writer_blocker(s->planner, user, others->items[i])) set |= (uint64_t)1 << i;
  bool first = others->count && !planner_writer_blocker(s->planner, user, tensor->producer);
  return set << 1 | first;
}

static void edge_direct(Solving *s, const StageTensor *tensor, const Stage *user) {
  const StageChoices *from = &s->planner->choices[tensor->producer->index];
  const StageChoices *to = &s->planner->choices[user->index];
  void **known =
      KNOWN(s, KEY_DIRECT, map_key(from->items), (uint64_t)from->count, map_key(to->items),
            (uint64_t)to->count, (uint64_t)stage_read_of(user, tensor),
            map_key(s->planner->rewrite_costs[tensor->index]), fusing_writers(s, tensor, user));
  if (!*known) *known = (void *)table_direct(s, tensor, user);
  pbqp_edge_of(s->problem, s->stage_variable[tensor->producer->index],
               s->stage_variable[user->index], *known);
}

static void add_edges(Solving *s, const StageTensor *tensor) {
  if (tensor->data) return;
  ArenaMark mark = arena_mark(&s->planner->context->scratch); // the problem copies what it gets
  bool shared = s->tensor_variable[tensor->index] >= 0;
  if (shared && tensor->producer) edge_written(s, tensor);
  for (int i = 0; i < tensor->users.count; i++) {
    if (shared)
      edge_read(s, tensor, tensor->users.items[i]);
    else
      edge_direct(s, tensor, tensor->users.items[i]);
  }
  arena_reset(&s->planner->context->scratch, mark);
}

static const PbqpTable *table_other(Solving *s, const StageChoices *own, const StageChoices *theirs,
                                    int number) {
  ArenaMark mark = arena_mark(&s->planner->context->scratch);
  int64_t *matrix = matrix_new(s, own->count, theirs->count);
  for (int i = 0; i < own->count; i++)
    for (int j = 0; j < theirs->count; j++) {
      bool agree = planner_agree(&own->items[i], number, &theirs->items[j]);
      matrix[i * theirs->count + j] = agree ? 0 : PBQP_INFINITY;
    }
  const PbqpTable *table = pbqp_table(s->problem, own->count, theirs->count, matrix);
  arena_reset(&s->planner->context->scratch, mark);
  return table;
}

// Adds the edge between a stage and one of its others, of which one writes the output.
static void edge_other(Solving *s, const Stage *stage, int number) {
  const Stage *other = stage->others.items[number];
  const StageChoices *own = &s->planner->choices[stage->index];
  const StageChoices *theirs = &s->planner->choices[other->index];
  void **known = KNOWN(s, KEY_OTHER, map_key(own->items), (uint64_t)own->count,
                       map_key(theirs->items), (uint64_t)theirs->count, (uint64_t)number);
  if (!*known) *known = (void *)table_other(s, own, theirs, number);
  pbqp_edge_of(s->problem, s->stage_variable[stage->index], s->stage_variable[other->index],
               *known);
}

static void add_others(Solving *s, const Stage *stage) {
  for (int i = 0; i < stage->others.count; i++) edge_other(s, stage, i);
}

static void pose(Solving *s) {
  const StageGraph *g = s->planner->stages;
  for (int i = 0; i < g->stages.count; i++) add_stage_variable(s, g->stages.items[i]);
  for (int i = 0; i < g->tensors.count; i++) add_tensor_variable(s, g->tensors.items[i]);
  for (int i = 0; i < g->tensors.count; i++) add_edges(s, g->tensors.items[i]);
  for (int i = 0; i < g->stages.count; i++) add_others(s, g->stages.items[i]);
}

// The cheapest of the assignments that are known without a proof: what the search found, which may
// be nothing, and the policies'.
static Assignment best_known(const Planner *planner, const Assignment *found) {
  Assignment best = *found;
  Assignment policies[] = {planner_forward(planner), planner_backward(planner)};
  for (int i = 0; i < COUNT_OF(policies); i++)
    if (policies[i].choice && (!best.choice || policies[i].cost < best.cost)) {
      best.choice = policies[i].choice;
      best.cost = policies[i].cost;
    }
  return best;
}

static void take_choices(const Solving *s, const int *choices, Assignment *out) {
  const StageGraph *g = s->planner->stages;
  out->choice = arena_array(&s->planner->context->arena, int, g->stages.count);
  for (int i = 0; i < g->stages.count; i++) out->choice[i] = choices[s->stage_variable[i]];
}

static bool limits_copies(const Planner *p) {
  for (int i = 0; i < p->stages->tensors.count; i++)
    if (p->copies_limited[i]) return true;
  return false;
}

// Lets the readers of a tensor take the choices that do without a copy that the problem leaves out.
static void do_without_copies(Solving *s, const StageTensor *tensor, int *choice) {
  const Planner *p = s->planner;
  int from = planner_written(p, choice, tensor), count = tensor->users.count;
  int *read_in = arena_array(&p->context->arena, int, count);
  for (int i = 0; i < count; i++)
    read_in[i] = planner_read_in(p, choice, tensor, tensor->users.items[i]);
  for (int i = 0; i < count && from >= 0; i++) {
    const Stage *user = tensor->users.items[i];
    int to = read_in[i];
    if (to < 0 || to == from || !is_useless(s, tensor, from, to)) continue;
    const int *instead = &losses_of(s, tensor, user)->instead[from * p->choices[user->index].count];
    choice[user->index] = instead[choice[user->index]];
  }
}

// Improves the best assignment that is known where the search found no optimum. Tensors have
// variables of their own, which follow from those of the stages.
static void improve(Solving *s, double seconds, Assignment *found) {
  const StageGraph *g = s->planner->stages;
  Assignment best = best_known(s->planner, found);
  if (!best.choice) return;
  int count = g->stages.count + g->tensors.count;
  int *start = arena_array(&s->planner->context->arena, int, count + 1);
  for (int i = 0; i < count; i++) start[i] = -1;
  int *choice = arena_copy(&s->planner->context->arena, best.choice,
                           sizeof *choice * (size_t)g->stages.count);
  for (int i = 0; i < g->tensors.count; i++)
    if (s->tensor_variable[i] >= 0) do_without_copies(s, g->tensors.items[i], choice);
  for (int i = 0; i < g->stages.count; i++) start[s->stage_variable[i]] = choice[i];
  PbqpSolution better = pbqp_improve(s->problem, start, seconds);
  found->work += better.work;
  if (!better.choices && PLEAT_VERIFY_EACH && !limits_copies(s->planner))
    bug(s->planner->context, "a policy takes choices that exclude one another");
  if (!better.choices) return;
  take_choices(s, better.choices, found);
  found->cost = better.cost;
  found->optimal = found->cost == found->bound;
}

// The problem leaves out copies that no best plan needs, but a plan that is not proved may be
// cheaper with one.
static void check_cost(const Planner *planner, Assignment *found) {
  int64_t cost = planner_cost_of(planner, found->choice);
  bool same = !found->optimal || limits_copies(planner) || cost == found->cost;
  if (cost > found->cost || !same)
    bug(planner->context, "a plan of %lld cycles costs %lld", (long long)found->cost,
        (long long)cost);
  found->cost = cost;
  found->optimal = cost == found->bound;
}

Assignment planner_solve(const Planner *planner, double seconds, const StageTensor *forced,
                         int number) {
  const StageGraph *g = planner->stages;
  Context *context = planner->context;
  Solving s = {planner, pbqp_new(context), .forced = forced, .number = number};
  s.stage_variable = arena_array(&context->arena, int, g->stages.count);
  s.tensor_variable = arena_array(&context->arena, int, g->tensors.count);
  s.states = arena_array(&context->arena, TensorStates, g->tensors.count);
  s.known = map_new(&context->arena);
  s.key = word_key_new(&context->arena);
  pose(&s);
  PbqpSolution solution = pbqp_solve(s.problem, seconds);
  Assignment found = {NULL, solution.cost, solution.bound, solution.work, solution.optimal};
  if (solution.choices) take_choices(&s, solution.choices, &found);
  if (!found.optimal && !forced) improve(&s, seconds / 2, &found);
  pbqp_free(s.problem);
  if (found.choice && !forced) {
    planner_leave_out_unread(planner, found.choice);
    check_cost(planner, &found);
  }
  return found;
}
