// SPDX-License-Identifier: Apache-2.0
// Decides whether a stage may be fused with the producer of a tensor that it reads
// (`planner_fusion_blocker`), and measures how much code the body of their loop would hold. A body
// that does not fit the instruction cache is fetched again for every iteration, which costs more
// than the memory traffic that fusion saves, and compilers take more than twice as long for twice
// the body. The size of a body is taken as the size of the longest chain of stages that may be
// fused, whether or not the plan fuses them; the limit therefore cuts chains at the same stages
// under all policies.
#include "plan/internal.h"

#include "ir/op_count.h"

// The instructions of one value, without those that compute addresses.
static double value_operations(const Planner *p, const Stage *stage) {
  OpCount count = expr_op_count(stage->te->value);
  return count.instructions + cost_model_of(p->machine)->function_operations * count.functions;
}

static double own_operations(const Planner *p, const Stage *stage) {
  double operations = 0;
  for (int i = 0; i < stage->member_count; i++)
    operations += value_operations(p, stage->members[i]);
  return stage->member_count ? operations : value_operations(p, stage);
}

// How many copies of the stage's code are emitted: one for each register of a tile, or one for
// whole vectors and one for the remaining elements.
static int own_copies(const Planner *p, const Stage *stage) {
  bool tile = !stage->member_count && stage_is_reduction(stage);
  return tile ? p->machine->vector_registers : cost_model_of(p->machine)->elementwise_copies;
}

double planner_fused_operations(const Planner *p, const Stage *stage, const Stage *writer,
                                double *most) {
  const LoopBody *body = &p->bodies[writer->index];
  *most =
      (double)(INSTRUCTION_CACHE_BYTES / cost_model_of(p->machine)->operation_bytes / body->copies);
  return body->operations + p->bodies[stage->index].own;
}

// The nodes of the stage's value when the writer of a tensor is fused into it. A value that its
// reader uses several times is repeated in the reader's expression, so the size grows with each
// such reader in a chain.
static int fused_nodes(const Planner *p, const Stage *stage, const Stage *writer) {
  int inside = MAX_OF(p->bodies[writer->index].nodes, 1);
  return expr_tree_size(stage->te->value, writer->output->buffer, inside,
                        cost_model_of(p->machine)->most_nodes);
}

// Can the reader's elements be stored from the vectors in which the writer's are computed? Sums of
// integers are converted as they leave the registers.
static bool stores_vectors_of(const Stage *reader, const Stage *writer) {
  DType from = writer->output->buffer->type, to = reader->output->buffer->type;
  bool sums = dtype_equal(from, DTYPE_INT32) && stage_is_reduction(writer);
  bool narrows = to.bits >= 8 && to.bits <= from.bits && !dtype_is_bool(to);
  return dtype_equal(from, to) || (sums && narrows);
}

FusionBlocker planner_writer_blocker(const Planner *p, const Stage *reader, const Stage *writer) {
  double most;
  const StageTensor *tensor = writer->output;
  if (tensor->is_output) return BLOCKER_OUTPUT;
  if (!planner_is_read_once(tensor)) return BLOCKER_USERS;
  if (stage_is_opaque(writer) || stage_is_opaque(reader)) return BLOCKER_OPAQUE;
  if (stage_is_ordered(writer) || stage_is_ordered(reader)) return BLOCKER_ORDERED;
  if (reader->member_count) return BLOCKER_ROWS;
  if (stage_is_reduction(reader)) return BLOCKER_REDUCTION;
  if (!planner_is_bijective(p, reader, stage_read_of(reader, tensor))) return BLOCKER_INDICES;
  if (!stores_vectors_of(reader, writer)) return BLOCKER_TYPE;
  if (planner_fused_operations(p, reader, writer, &most) > most) return BLOCKER_BODY;
  return fused_nodes(p, reader, writer) < cost_model_of(p->machine)->most_nodes ? BLOCKER_NONE
                                                                                : BLOCKER_SIZE;
}

// Returns what forbids fusion with any reader.
static FusionBlocker tensor_blocker(const StageTensor *tensor) {
  if (tensor->is_output) return BLOCKER_OUTPUT;
  if (!planner_is_read_once(tensor)) return BLOCKER_USERS;
  if (!tensor->producer) return BLOCKER_INPUT;
  return tensor->branch ? BLOCKER_BRANCH : BLOCKER_NONE;
}

FusionBlocker planner_fusion_blocker(const Planner *p, const Stage *reader,
                                     const StageTensor *tensor) {
  FusionBlocker blocker = tensor_blocker(tensor);
  if (blocker) return blocker;
  blocker = planner_writer_blocker(p, reader, tensor->producer);
  for (int i = 0; blocker && i < tensor->producer->others.count; i++)
    if (!planner_writer_blocker(p, reader, tensor->producer->others.items[i])) return BLOCKER_NONE;
  return blocker;
}

// Counts the stage's loop with that of a writer with which it may be fused.
static void measure_with(const Planner *p, const Stage *stage, const Stage *writer,
                         LoopBody *body) {
  if (planner_writer_blocker(p, stage, writer)) return;
  double most, operations = planner_fused_operations(p, stage, writer, &most);
  int copies = p->bodies[writer->index].copies;
  body->nodes = MAX_OF(body->nodes, fused_nodes(p, stage, writer));
  if (operations * copies <= body->operations * body->copies) return;
  body->operations = operations;
  body->copies = copies;
}

void planner_measure_body(Planner *p, const Stage *stage) {
  LoopBody *body = &p->bodies[stage->index];
  const Stage *first = p->kinds[stage->index];
  double own = first == stage ? own_operations(p, stage) : p->bodies[first->index].own;
  *body = (LoopBody){own, own, own_copies(p, stage)};
  if (stage->member_count || stage_is_reduction(stage)) return; // fused stages read their results
  body->nodes = expr_tree_size(stage->te->value, NULL, 0, cost_model_of(p->machine)->most_nodes);
  for (int i = 0; i < stage->reads.count; i++) {
    const StageTensor *tensor = stage->reads.items[i];
    if (tensor_blocker(tensor)) continue;
    measure_with(p, stage, tensor->producer, body);
    for (int k = 0; k < tensor->producer->others.count; k++)
      measure_with(p, stage, tensor->producer->others.items[k], body);
  }
}

bool planner_hosts(const Planner *p, const StageChoice *from, const Stage *stage,
                   const StageChoice *user, int read) {
  const StageTensor *tensor = stage->reads.items[read];
  const Stage *other = planner_taken_other(tensor->producer, from);
  if (from->output != user->reads[read] || from->in_place || (user->wants_tiles && !from->tiles) ||
      user->elementwise != from->elementwise || user->host != from->whole ||
      (!user->elementwise && user->row != from->row))
    return false;
  if (from->tuned || user->tuned) return planner_tuned_alike(from, user, read);
  return !tensor->producer->others.count ||
         !planner_writer_blocker(p, stage, other ? other : tensor->producer);
}
