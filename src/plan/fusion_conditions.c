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

double planner_fused_operations(const Planner *p, const Stage *stage, const StageTensor *tensor,
                                double *most) {
  const LoopBody *body = &p->bodies[tensor->producer->index];
  *most =
      (double)(INSTRUCTION_CACHE_BYTES / cost_model_of(p->machine)->operation_bytes / body->copies);
  return body->operations + own_operations(p, stage);
}

// The nodes of the stage's value when the tensor's producer is fused into it. A value that its
// reader uses several times is repeated in the reader's expression, so the size grows with each
// such reader in a chain.
static int fused_nodes(const Planner *p, const Stage *stage, const StageTensor *tensor) {
  int inside = MAX_OF(p->bodies[tensor->producer->index].nodes, 1);
  return expr_tree_size(stage->te->value, tensor->buffer, inside,
                        cost_model_of(p->machine)->most_nodes);
}

FusionBlocker planner_fusion_blocker(const Planner *p, const Stage *reader,
                                     const StageTensor *tensor) {
  double most;
  if (tensor->is_output) return BLOCKER_OUTPUT;
  if (tensor->users.count > 1) return BLOCKER_USERS;
  if (!tensor->producer) return BLOCKER_INPUT;
  if (stage_is_opaque(tensor->producer) || stage_is_opaque(reader)) return BLOCKER_OPAQUE;
  if (stage_is_ordered(tensor->producer) || stage_is_ordered(reader)) return BLOCKER_ORDERED;
  if (reader->member_count) return BLOCKER_ROWS;
  if (stage_is_reduction(reader)) return BLOCKER_REDUCTION;
  if (!planner_is_bijective(p, reader, stage_read_of(reader, tensor))) return BLOCKER_INDICES;
  if (!dtype_equal(tensor->buffer->type, reader->output->buffer->type)) return BLOCKER_TYPE;
  if (planner_fused_operations(p, reader, tensor, &most) > most) return BLOCKER_BODY;
  return fused_nodes(p, reader, tensor) < cost_model_of(p->machine)->most_nodes ? BLOCKER_NONE
                                                                                : BLOCKER_SIZE;
}

void planner_measure_body(Planner *p, const Stage *stage) {
  LoopBody *body = &p->bodies[stage->index];
  *body = (LoopBody){own_operations(p, stage), own_copies(p, stage)};
  if (stage->member_count || stage_is_reduction(stage)) return; // fused stages read their results
  body->nodes = expr_tree_size(stage->te->value, NULL, 0, cost_model_of(p->machine)->most_nodes);
  for (int i = 0; i < stage->reads.count; i++) {
    const StageTensor *tensor = stage->reads.items[i];
    if (planner_fusion_blocker(p, stage, tensor)) continue;
    double most, operations = planner_fused_operations(p, stage, tensor, &most);
    int copies = p->bodies[tensor->producer->index].copies;
    body->nodes = MAX_OF(body->nodes, fused_nodes(p, stage, tensor));
    if (operations * copies <= body->operations * body->copies) continue;
    body->operations = operations;
    body->copies = copies;
  }
}

bool planner_hosts(const StageChoice *from, const StageChoice *user, int read) {
  return from->output == user->reads[read] && !from->in_place &&
         (!user->wants_tiles || from->tiles);
}
