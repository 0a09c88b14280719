// SPDX-License-Identifier: Apache-2.0
// Predicts the cycles of stages without a reduction as their kernels are scheduled: in vectors along
// the rows that the output shares with all that is read, beside the memory that is moved.
#include "plan/internal.h"

// ---- Memory

// How many elements of a tensor the stage may read at each point of its output; 0: not known.
static double loads_of(const Planner *p, const Stage *stage, const StageTensor *tensor) {
  const Nest *nest = planner_nest(p, stage);
  double loads = 0;
  for (int i = 0; nest && i < nest->read_count; i++)
    loads += nest->reads[i].buffer == tensor->buffer;
  return loads;
}

// The bytes that the stage reads of a tensor with `bytes`: no more than all its loads have.
static double read_bytes(const Planner *p, const Stage *stage, const StageTensor *tensor,
                         double bytes) {
  double loads = loads_of(p, stage, tensor), points = stage_iterations(stage);
  if (!loads || points < 0) return bytes;
  return MIN_OF(bytes, loads * points * dtype_bytes(tensor->buffer->type));
}

// The bytes that the stage reads of an entry of its reads.
static double bytes_read(const Planner *p, const Stage *stage, const StageChoice *choice,
                         int read) {
  const StageTensor *tensor = stage->reads.items[read];
  const Candidate *items = p->candidates[tensor->index].items;
  if (read == choice->fused) return 0;
  const Layout *layout = items[MAX_OF(choice->reads[read], 0)].layout;
  return read_bytes(p, stage, tensor, planner_tensor_bytes(tensor, layout));
}

// The cycles in which the kernel of the stage moves what the stage reads and writes.
static double memory_cost(const Planner *p, const Stage *stage, const StageChoice *choice) {
  const Candidate *output = &p->candidates[stage->output->index].items[choice->output];
  double written = choice->fused < 0 ? output->bytes : 0, moved = written;
  for (int i = 0; i < stage->reads.count; i++) moved += bytes_read(p, stage, choice, i);
  double cycles = planner_read_cost(p, written, 0, moved);
  for (int i = 0; i < stage->reads.count; i++)
    cycles +=
        planner_read_cost(p, bytes_read(p, stage, choice, i), p->passed[stage->index][i], moved);
  return cycles;
}

// ---- Transforms of tiles

double planner_transform_cycles(const Planner *p, const TeStage *te) {
  if (!te->transform) return 0;
  const Buffer *output = te->output;
  double elements = nest_buffer_bytes(output) / dtype_bytes(output->type);
  return elements / machine_lanes(p->machine, output->type) * te->transform->operations *
         cost_model_of(p->machine)->tile_operation_cycles;
}

// Does the output in this candidate have vectors along an axis that chooses no formula?
static bool has_vectors(const Planner *p, const Stage *stage, int output) {
  const LayoutWalk *walk = p->candidates[stage->output->index].items[output].walk;
  const WalkDigit *last = walk && walk->count ? &walk->digits[walk->count - 1] : NULL;
  return last && last->cut == 1 && !(stage->te->transform->axes >> last->axis & 1) &&
         last->extent >= machine_lanes(p->machine, stage->output->buffer->type);
}

// The arithmetic of a transform of tiles, which takes as many times longer as vectors have elements
// where there are none, or where its operands are gathered.
static double transform_cost(const Planner *p, const Stage *stage, const StageChoice *choice) {
  bool vectors = stage->te->transform && has_vectors(p, stage, choice->output);
  for (int i = 0; i < stage->reads.count; i++) vectors &= choice->reads[i] != READ_ANY;
  double cycles = planner_transform_cycles(p, stage->te);
  return vectors ? cycles : cycles * machine_lanes(p->machine, stage->output->buffer->type);
}

// ---- Arithmetic of stages without a reduction

// Is every tensor that the stage reads contiguous wherever its output is? Views are, where they are
// walked as the output is.
static bool runs_flat(const Planner *p, const Stage *stage, const StageChoice *choice) {
  for (int i = 0; i < stage->reads.count; i++) {
    bool walked = choice->reads[i] >= 0 && planner_is_bijective(p, stage, i) &&
                  planner_walks_alike(p, stage, i, choice->reads[i], choice->output);
    if (!walked && !planner_is_in_place(p, stage, i)) return false;
  }
  return true;
}

// The innermost digit of the output, which a row runs along; NULL: there is none.
static const WalkDigit *row_of(const Planner *p, const Stage *stage, const StageChoice *choice) {
  const LayoutWalk *walk = p->candidates[stage->output->index].items[choice->output].walk;
  return walk ? walk_row(walk) : NULL;
}

// The vector steps in which the output is computed in its candidate.
static double output_steps(const Planner *p, const Stage *stage, const StageChoice *choice) {
  const LayoutWalk *walk = p->candidates[stage->output->index].items[choice->output].walk;
  int64_t lanes = machine_lanes(p->machine, stage->output->buffer->type);
  const WalkDigit *row = row_of(p, stage, choice);
  double points = 1;
  if (!walk) return MAX_OF(stage_iterations(stage), 0) / (double)lanes;
  for (int i = 0; i < walk->count; i++) points *= (double)walk->digits[i].extent;
  if (!choice->by_rows || !row) return points / (double)lanes;
  return points / (double)row->extent * nest_vector_steps(row->extent, lanes);
}

// How many loads read the same element in a whole row, before which they are done.
static double loads_outside_rows(const Planner *p, const Stage *stage, const StageChoice *choice) {
  const Nest *nest = planner_nest(p, stage);
  const WalkDigit *row = row_of(p, stage, choice);
  double count = 0;
  if (!choice->by_rows || !row) return 0;
  for (int i = 0; i < nest->read_count; i++)
    count += !nest_depends(&nest->reads[i], nest->output_axis[row->axis]);
  return count;
}

// The cycles of the stage's arithmetic. By itself it loads and stores vectors; fused with the
// producer of a tensor, it has them in registers.
static double arithmetic_cost(const Planner *p, const Stage *stage, const StageChoice *choice) {
  const Nest *nest = planner_nest(p, stage);
  if (!nest || stage->te->transform) return 0;
  double each = nest->count.instructions - loads_outside_rows(p, stage, choice) +
                nest->count.vector_work + (choice->fused < 0 ? 1 : -1);
  double lanes = nest->points * nest->count.lane_work;
  return (output_steps(p, stage, choice) * each + lanes) /
         cost_model_of(p->machine)->operations_a_cycle;
}

static double overlapped_cost(const Planner *p, double arithmetic, double memory) {
  return (double)planner_integer_cost(overlapped_cycles(p->machine, arithmetic, memory));
}

// Arithmetic and memory overlap in the whole kernel,
// so a fused stage costs what the kernel takes longer with it, whether or not there is a view
// between the two.
void planner_set_elementwise_cost(const Planner *p, const Stage *stage, StageChoice *choice,
                                 const StageChoice *host) {
  choice->by_rows =
      choice->elementwise && ((host && host->by_rows) || !runs_flat(p, stage, choice));
  double arithmetic = host ? host->arithmetic : 0, memory = host ? host->memory : 0;
  choice->arithmetic = arithmetic + (stage->te->transform ? transform_cost(p, stage, choice)
                                                          : arithmetic_cost(p, stage, choice));
  choice->memory = memory + memory_cost(p, stage, choice);
  choice->cost = overlapped_cost(p, choice->arithmetic, choice->memory) -
                 overlapped_cost(p, arithmetic, memory);
  if (choice->fused < 0) choice->cost += cost_model_of(p->machine)->call_cycles;
}

