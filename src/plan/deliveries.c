// SPDX-License-Identifier: Apache-2.0
// Decides how a tensor that is written in one layout reaches the stages that read it in others. A
// rewrite makes a copy that serves all readers of its layout. A stage that runs by itself may
// instead gather the elements from the layout in which the tensor is written.
#include "plan/internal.h"

// The cycles that moving elements apart takes beside the memory that the kernel of the stage moves
// anyway. Arithmetic that takes longer than the memory leaves less time for it.
static double beside_kernel(const Planner *p, const Stage *stage, double apart, double bytes) {
  double memory = planner_move_cost(p, bytes, bytes),
         longer = MAX_OF(planner_chain_arithmetic(p, stage) - memory, 0);
  return overlapped_cycles(p->machine, longer + apart, memory) -
         overlapped_cycles(p->machine, longer, memory);
}

// How many members of a group read the tensor, each of which loads its elements; 1 for other
// stages.
static int times_read(const Stage *stage, const StageTensor *tensor) {
  int count = 0;
  for (int i = 0; i < stage->member_count; i++)
    count += stage_read_of(stage->members[i], tensor) >= 0;
  return MAX_OF(count, 1);
}

static double gather_cost(const Planner *p, const Stage *stage, int read, int from, int output) {
  const StageTensor *tensor = stage->reads.items[read];
  if (stage->te->transform)
    return (double)planner_integer_cost(planner_transform_cycles(p, stage->te) *
                                        machine_lanes(p->machine, stage->output->buffer->type));
  // The members after the first find the tensor in a cache, so that no memory hides their loads.
  double apart = planner_permute_cost(p, stage, read, from, output);

  return (double)planner_integer_cost(
      beside_kernel(p, stage, apart, p->candidates[tensor->index].items[0].bytes) +
      (times_read(stage, tensor) - 1) * apart);
}

static int candidate_count(const Planner *p, const StageTensor *tensor) {
  return p->candidates[tensor->index].count;
}

// Where the cost of a read is kept, by the candidates of the tensor that is read and of the output.
static double *known_gather_cost(const Planner *p, const Stage *stage, int read, int from,
                                 int output) {
  int before = 0, outputs = candidate_count(p, stage->output);
  for (int i = 0; i < read; i++) before += candidate_count(p, stage->reads.items[i]);
  double **costs = &p->gather_costs[stage->index];
  if (!*costs) {
    int all = before;
    for (int i = read; i < stage->reads.count; i++)
      all += candidate_count(p, stage->reads.items[i]);
    all *= outputs;
    *costs = arena_array(&p->context->arena, double, all);
    for (int i = 0; i < all; i++) (*costs)[i] = PLAN_NEVER;
  }
  return *costs + (before + from) * outputs + output;
}

double planner_gather_cost(const Planner *p, const Stage *stage, int read, int from, int output) {
  double *known = known_gather_cost(p, stage, read, from, output);
  if (*known == PLAN_NEVER) *known = gather_cost(p, stage, read, from, output);
  return *known;
}

static double rewrite_cost(const Planner *p, const StageTensor *tensor, int from, int to) {
  const CostModel *costs = cost_model_of(p->machine);
  const Candidate *items = p->candidates[tensor->index].items;
  int64_t element = dtype_bytes(tensor->buffer->type);
  double bytes = items[from].bytes + items[to].bytes;
  double apart = planner_apart_cost(p, items[from].walk, items[to].walk,
                                    items[to].bytes / (double)element, element, true);
  double memory = planner_read_cost(p, items[from].bytes, p->passed_writer[tensor->index], bytes) +
                  planner_write_cost(p, items[to].bytes, bytes);
  return (double)planner_integer_cost(overlapped_cycles(p->machine, apart, memory) +
                                      costs->call_cycles);
}

double planner_rewrite_cost(const Planner *p, const StageTensor *tensor, int from, int to) {
  if (from == to) return 0;
  int count = p->candidates[tensor->index].count;
  double *known = &p->rewrite_costs[tensor->index][from * count + to];
  if (*known < 0) *known = rewrite_cost(p, tensor, from, to);
  return *known;
}

double planner_gathering(const Planner *p, const Stage *stage, const StageChoice *choice, int read,
                         int from) {
  if (choice->reads[read] == READ_NOTHING) return 0;
  if (from < 0) return PLAN_NEVER;
  const Candidate *items = p->candidates[((StageTensor *)stage->reads.items[read])->index].items;
  bool may = choice->reads[read] == READ_ANY || bit_set_has(&choice->gathers, read);
  if (!may) return PLAN_NEVER;
  bool saves = choice->saved && items[from].bytes <= items[0].bytes;
  return planner_gather_cost(p, stage, read, from, choice->output) -
         (saves ? choice->saved[read] : 0);
}

double planner_delivery_to(const Planner *p, const StageTensor *tensor, const Stage *stage,
                           const StageChoice *choice, int read, int written) {
  int wanted = choice->reads[read];
  if (written == wanted) return 0;
  double cost = planner_gathering(p, stage, choice, read, written);
  if (wanted < 0 || written < 0) return cost;
  return MIN_OF(cost, planner_rewrite_cost(p, tensor, written, wanted));
}

// The choice of reader number `i` of the tensor, and which of its reads that is; NULL: the reader
// is not decided.
static const StageChoice *reader_choice(const Planner *p, const int *choice, const bool *decided,
                                        const StageTensor *tensor, int i, int *read) {
  const Stage *user = tensor->users.items[i];
  if (decided && !decided[user->index]) return NULL;
  *read = stage_read_of(user, tensor);
  return planner_chosen(p, choice, user);
}

// The cycles with which all decided readers that want candidate `to` gather it from candidate
// `from`. The cost of readers that want any layout is that for `to` READ_ANY. Readers that gain by
// gathering want no copy.
static double gathers_cost(const Planner *p, const int *choice, const bool *decided,
                           const StageTensor *tensor, int from, int to, bool *wanted) {
  double cycles = 0;
  *wanted = false;
  for (int i = 0; i < tensor->users.count; i++) {
    int read;
    const StageChoice *c = reader_choice(p, choice, decided, tensor, i, &read);
    if (!c || c->reads[read] != to) continue;
    double own = planner_gathering(p, tensor->users.items[i], c, read, from);
    *wanted |= own >= 0;
    cycles += MAX_OF(own, 0);
  }
  return cycles;
}

// The cycles, at most 0, of the decided readers that gain by gathering from candidate `from`.
static double gained_by_gathering(const Planner *p, const int *choice, const bool *decided,
                                  const StageTensor *tensor, int from) {
  double cycles = 0;
  for (int i = 0; i < tensor->users.count; i++) {
    int read;
    const StageChoice *c = reader_choice(p, choice, decided, tensor, i, &read);
    if (c && c->saved && c->reads[read] != from)
      cycles += MIN_OF(planner_gathering(p, tensor->users.items[i], c, read, from), 0);
  }
  return cycles;
}

// Does a rewrite from one candidate to another exist?
static bool is_rewritten(const Planner *p, const int *choice, const bool *decided,
                         const StageTensor *tensor, int from, int to) {
  bool wanted;
  if (from == to || to == READ_ANY) return false;
  if (tensor->is_output && p->given[tensor->index] == to) return true;
  double gathers = gathers_cost(p, choice, decided, tensor, from, to, &wanted);
  return wanted && planner_rewrite_cost(p, tensor, from, to) <= gathers;
}

double planner_delivery_cost(const Planner *p, const int *choice, const bool *decided,
                             const StageTensor *tensor, int from) {
  bool wanted;
  if (from < 0) return 0; // the tensor is not in the plan
  double cycles = gathers_cost(p, choice, decided, tensor, from, READ_ANY, &wanted) +
                  gained_by_gathering(p, choice, decided, tensor, from);
  for (int to = 0; to < p->candidates[tensor->index].count; to++) {
    if (to == from) continue;
    if (is_rewritten(p, choice, decided, tensor, from, to))
      cycles += planner_rewrite_cost(p, tensor, from, to);
    else
      cycles += gathers_cost(p, choice, decided, tensor, from, to, &wanted);
  }
  return cycles;
}

int planner_read_in(const Planner *p, const int *choice, const StageTensor *tensor,
                    const Stage *user) {
  const StageChoice *c = planner_chosen(p, choice, user);
  int read = stage_read_of(user, tensor), wanted = c->reads[read],
      written = planner_written(p, choice, tensor);
  if (wanted == READ_PACKED || wanted == READ_NOTHING || wanted == written) return wanted;
  if (planner_gathering(p, user, c, read, written) < 0) return written;
  return is_rewritten(p, choice, NULL, tensor, written, wanted) ? wanted : written;
}
