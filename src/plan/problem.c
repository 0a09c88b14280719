// SPDX-License-Identifier: Apache-2.0
// States the planning problem for the solver. There is one variable for each stage. Each input,
// each output and each tensor with several users has a variable too, which says in which layout the
// tensor is written and in which layouts it exists, so that one rewrite serves all users of a
// layout.
#include "plan/internal.h"
#include "solve/pbqp.h"

typedef struct TensorState { // a value of a tensor's variable
  int written;
  unsigned exists; // set of candidates, including `written`
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
} Solving;

// ---- Variables

static void add_stage_variable(Solving *s, const Stage *stage) {
  const StageChoices *choices = &s->planner->choices[stage->index];
  int64_t *costs = arena_array(&s->planner->context->scratch, int64_t, choices->count);
  for (int i = 0; i < choices->count; i++) {
    int output = choices->items[i].output; // -1: the stage is absent
    bool allowed = stage->output != s->forced || output < 0 || output == s->number;
    costs[i] = allowed ? planner_integer_cost(choices->items[i].cost) : PBQP_INFINITY;
  }
  s->stage_variable[stage->index] = pbqp_variable(s->problem, choices->count, costs);
}

static int given_number(const Solving *s, const StageTensor *tensor) {
  return tensor == s->forced && tensor->input >= 0 ? s->number : s->planner->given[tensor->index];
}

// The candidates in which the tensor can be written.
static unsigned written_set(const Solving *s, const StageTensor *tensor) {
  if (tensor->input >= 0) return 1u << given_number(s, tensor);
  const StageChoices *choices = &s->planner->choices[tensor->producer->index];
  unsigned set = 0;
  for (int i = 0; i < choices->count; i++)
    if (choices->items[i].output >= 0) set |= 1u << choices->items[i].output;
  return set;
}

// Is there a plan without the stage that writes the tensor?
static bool may_be_unwritten(const StageTensor *tensor) {
  return tensor->producer && tensor->producer->serves && !tensor->is_output;
}

// The candidates that some reader wants, or the caller.
static unsigned wanted_set(const Solving *s, const StageTensor *tensor) {
  unsigned set = tensor->is_output ? 1u << given_number(s, tensor) : 0;
  for (int i = 0; i < tensor->users.count; i++) {
    const Stage *user = tensor->users.items[i];
    const StageChoices *choices = &s->planner->choices[user->index];
    int read = stage_read_of(user, tensor);
    for (int k = 0; k < choices->count; k++)
      if (choices->items[k].reads[read] >= 0) set |= 1u << choices->items[k].reads[read];
  }
  return set;
}

// Adds the states with each written candidate and the copies that are wanted: no more copies than
// there are readers, since each reads one. A tensor that is not in the plan has the state -1.
static TensorStates states_of(const Solving *s, const StageTensor *tensor) {
  unsigned written = written_set(s, tensor), wanted = wanted_set(s, tensor);
  int most = planner_most_readers(tensor);
  TensorStates states = {0};
  for (int pass = 0; pass < 2; pass++) {
    if (pass) states.items = arena_array(&s->planner->context->scratch, TensorState, states.count);
    states.count = may_be_unwritten(tensor);
    if (pass && states.count) states.items[0] = (TensorState){-1, 0};
    for (int w = 0; written >> w; w++) {
      unsigned others = wanted & ~(1u << w), set = 0;
      do {
        if (written >> w & 1 && __builtin_popcount(set) <= most) {
          if (pass) states.items[states.count] = (TensorState){w, set | 1u << w};
          states.count++;
        }
        set = (set - others) & others;
      } while (set);
    }
  }
  return states;
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
  s->tensor_variable[tensor->index] = -1;
  if (!needs_variable(tensor)) return;
  TensorStates states = states_of(s, tensor);
  int64_t *costs = arena_array(&s->planner->context->scratch, int64_t, states.count);
  for (int i = 0; i < states.count; i++) costs[i] = state_cost(s, tensor, states.items[i]);
  s->states[tensor->index] = states;
  s->tensor_variable[tensor->index] = pbqp_variable(s->problem, states.count, costs);
}

// ---- Edges

static int64_t *matrix_new(Solving *s, int rows, int columns) {
  return arena_array(&s->planner->context->scratch, int64_t, (size_t)rows *(size_t)columns);
}

static void edge_written(Solving *s, const StageTensor *tensor) {
  const TensorStates *states = &s->states[tensor->index];
  const StageChoices *from = &s->planner->choices[tensor->producer->index];
  int count = states->count;
  int64_t *matrix = matrix_new(s, from->count, count);
  for (int i = 0; i < from->count; i++)
    for (int j = 0; j < count; j++)
      matrix[i * count + j] = from->items[i].output == states->items[j].written ? 0 : PBQP_INFINITY;
  pbqp_edge(s->problem, s->stage_variable[tensor->producer->index],
            s->tensor_variable[tensor->index], matrix);
}

// The cycles of gathering a read from other layouts than the wanted one. Nothing can be gathered
// from a tensor that is not written.
static double gathering(const Solving *s, const Stage *user, const StageChoice *choice, int read,
                        int written) {
  if (written < 0) return choice->reads[read] == READ_NOTHING ? 0 : PLAN_NEVER;
  return planner_gathering(s->planner, user, choice, read, written);
}

static int64_t cost_or_never(double cycles) {
  return cycles >= PLAN_NEVER ? PBQP_INFINITY : planner_integer_cost(cycles);
}

static void edge_read(Solving *s, const StageTensor *tensor, const Stage *user) {
  const TensorStates *states = &s->states[tensor->index];
  const StageChoices *to = &s->planner->choices[user->index];
  int count = states->count, read = stage_read_of(user, tensor);
  int64_t *matrix = matrix_new(s, count, to->count);
  for (int i = 0; i < count; i++)
    for (int j = 0; j < to->count; j++) {
      int wanted = to->items[j].reads[read];
      bool exists = wanted >= 0 && states->items[i].exists >> wanted & 1;
      matrix[i * to->count + j] =
          exists ? 0
                 : cost_or_never(gathering(s, user, &to->items[j], read, states->items[i].written));
    }
  pbqp_edge(s->problem, s->tensor_variable[tensor->index], s->stage_variable[user->index], matrix);
}

// Adds the edge between a producer and a user, which is the only one in a plan. Where their layouts
// differ, it costs a rewrite, or the gathering of elements if that is cheaper; it forbids differing
// layouts when the two are fused.
static void edge_direct(Solving *s, const StageTensor *tensor, const Stage *user) {
  const StageChoices *from = &s->planner->choices[tensor->producer->index];
  const StageChoices *to = &s->planner->choices[user->index];
  int read = stage_read_of(user, tensor);
  int64_t *matrix = matrix_new(s, from->count, to->count);
  for (int i = 0; i < from->count; i++)
    for (int j = 0; j < to->count; j++) {
      int written = from->items[i].output, wanted = to->items[j].reads[read];
      bool fused = to->items[j].fused == read;
      double cost = written == wanted ? 0
                    : fused           ? PLAN_NEVER
                                      : gathering(s, user, &to->items[j], read, written);
      if (fused && cost < PLAN_NEVER &&
          !planner_hosts(s->planner, &from->items[i], user, &to->items[j], read))
        cost = PLAN_NEVER;
      if (written != wanted && wanted >= 0 && written >= 0 && !fused)
        cost = MIN_OF(cost, planner_rewrite_cost(s->planner, tensor, written, wanted));
      if (!planner_tuned_alike(&from->items[i], &to->items[j], read)) cost = PLAN_NEVER;
      matrix[i * to->count + j] = cost_or_never(cost);
    }
  pbqp_edge(s->problem, s->stage_variable[tensor->producer->index], s->stage_variable[user->index],
            matrix);
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

// Adds the edge between a stage and one of its others, of which one writes the output.
static void edge_other(Solving *s, const Stage *stage, const Stage *other) {
  const StageChoices *own = &s->planner->choices[stage->index];
  const StageChoices *theirs = &s->planner->choices[other->index];
  ArenaMark mark = arena_mark(&s->planner->context->scratch);
  int64_t *matrix = matrix_new(s, own->count, theirs->count);
  for (int i = 0; i < own->count; i++)
    for (int j = 0; j < theirs->count; j++) {
      bool agree = planner_agree(&own->items[i], other, &theirs->items[j]);
      matrix[i * theirs->count + j] = agree ? 0 : PBQP_INFINITY;
    }
  pbqp_edge(s->problem, s->stage_variable[stage->index], s->stage_variable[other->index], matrix);
  arena_reset(&s->planner->context->scratch, mark);
}

static void add_others(Solving *s, const Stage *stage) {
  for (int i = 0; i < stage->others.count; i++) edge_other(s, stage, stage->others.items[i]);
}

static void pose(Solving *s) {
  const StageGraph *g = s->planner->stages;
  for (int i = 0; i < g->stages.count; i++) add_stage_variable(s, g->stages.items[i]);
  for (int i = 0; i < g->tensors.count; i++) add_tensor_variable(s, g->tensors.items[i]);
  for (int i = 0; i < g->tensors.count; i++) add_edges(s, g->tensors.items[i]);
  for (int i = 0; i < g->stages.count; i++) add_others(s, g->stages.items[i]);
}

Assignment planner_solve(const Planner *planner, double seconds, const StageTensor *forced,
                         int number) {
  const StageGraph *g = planner->stages;
  Context *context = planner->context;
  Solving s = {planner, pbqp_new(context), .forced = forced, .number = number};
  s.stage_variable = arena_array(&context->arena, int, g->stages.count);
  s.tensor_variable = arena_array(&context->arena, int, g->tensors.count);
  s.states = arena_array(&context->arena, TensorStates, g->tensors.count);
  pose(&s);
  PbqpSolution solution = pbqp_solve(s.problem, seconds);
  Assignment found = {NULL, solution.cost, solution.bound, solution.optimal};
  pbqp_free(s.problem);
  if (!solution.choices) return found;
  found.choice = arena_array(&context->arena, int, g->stages.count);
  for (int i = 0; i < g->stages.count; i++) found.choice[i] = solution.choices[s.stage_variable[i]];
  if (!forced && planner_cost_of(planner, found.choice) != found.cost)
    bug(context, "a plan of %lld cycles costs %lld", (long long)found.cost,
        (long long)planner_cost_of(planner, found.choice));
  return found;
}
