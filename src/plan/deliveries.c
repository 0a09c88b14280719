// SPDX-License-Identifier: Apache-2.0
// Predicts the cycles in which a tensor that is written in one layout reaches a stage that reads it
// in another. A rewrite makes a copy in the layout that the stage reads. A stage that runs by
// itself may instead gather the elements from the layout in which the tensor is written, or from
// any copy.
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

// The costs of a stage's reads are kept by the candidates of the tensor that is read and of the
// output: `before` is the number of candidates of the reads before this one.
static int candidates_before(const Planner *p, const Stage *stage, int read) {
  int before = 0;
  for (int i = 0; i < read; i++) before += candidate_count(p, stage->reads.items[i]);
  return before;
}

static int known_costs(const Planner *p, const Stage *stage) {
  return candidates_before(p, stage, stage->reads.count) * candidate_count(p, stage->output);
}

static double *known_gather_cost(const Planner *p, const Stage *stage, int read, int from,
                                 int output) {
  double **costs = &p->gather_costs[stage->index]->direct;
  if (!*costs) {
    int all = known_costs(p, stage);
    *costs = arena_array(&p->context->arena, double, all);
    for (int i = 0; i < all; i++) (*costs)[i] = PLAN_NEVER;
  }
  return *costs + (candidates_before(p, stage, read) + from) * candidate_count(p, stage->output) +
         output;
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

double planner_reading(const Planner *p, const Stage *stage, const StageChoice *choice, int read,
                       int from) {
  bool wanted = from >= 0 && choice->reads[read] == from;
  return wanted ? 0 : planner_gathering(p, stage, choice, read, from);
}

// ---- The way of one read

// The least cycles for gathering a read from the layout in which the tensor is written, or from one
// copy with the rewrite that makes it.
typedef struct ThroughCopy {
  bool is_known;
  double least;
  double unpadded; // from candidates without more padding than the row-major one
} ThroughCopy;

static ThroughCopy through_copy(const Planner *p, const StageTensor *tensor, const Stage *stage,
                                int read, int output, int written) {
  const Candidate *items = p->candidates[tensor->index].items;
  ThroughCopy via = {true, PLAN_NEVER, PLAN_NEVER};
  for (int from = 0; from < candidate_count(p, tensor); from++) {
    double cycles = planner_rewrite_cost(p, tensor, written, from);
    if (cycles >= via.unpadded) continue;
    cycles += planner_gather_cost(p, stage, read, from, output);
    via.least = MIN_OF(via.least, cycles);
    if (items[from].bytes <= items[0].bytes) via.unpadded = MIN_OF(via.unpadded, cycles);
  }
  return via;
}

static const ThroughCopy *known_way(const Planner *p, const StageTensor *tensor, const Stage *stage,
                                    int read, int output, int written) {
  ThroughCopy **ways = &p->gather_costs[stage->index]->via;
  if (!*ways) *ways = arena_array(&p->context->arena, ThroughCopy, known_costs(p, stage));
  int number = (candidates_before(p, stage, read) + written) * candidate_count(p, stage->output);
  ThroughCopy *way = *ways + number + output;
  if (!way->is_known) *way = through_copy(p, tensor, stage, read, output, written);
  return way;
}

double planner_delivery_to(const Planner *p, const StageTensor *tensor, const Stage *stage,
                           const StageChoice *choice, int read, int written) {
  int wanted = choice->reads[read];
  if (wanted == READ_NOTHING) return 0;
  if (written < 0) return PLAN_NEVER;
  double cost = wanted < 0 ? PLAN_NEVER : planner_rewrite_cost(p, tensor, written, wanted);
  bool gathers = wanted == READ_ANY || bit_set_has(&choice->gathers, read);
  if (!gathers || (cost == 0 && !choice->saved)) return cost;
  const ThroughCopy *way = known_way(p, tensor, stage, read, choice->output, written);
  double saved = choice->saved ? choice->saved[read] : 0;
  return MIN_OF(cost, MIN_OF(way->least, way->unpadded - saved));
}
