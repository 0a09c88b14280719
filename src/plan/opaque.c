// SPDX-License-Identifier: Apache-2.0
// Opaque operators in the planning problem: the ways in which a function outside of the graph can
// be called are the choices of its stage, with the layouts and costs that the function states.
#include "plan/internal.h"

static int tensor_number(const OpaqueCall *call, const Buffer *buffer) {
  for (int i = 0; i < call->count; i++)
    if (call->tensors[i] == buffer) return i;
  return -1;
}

const Layout *planner_way_layout(const Stage *stage, int way, const StageTensor *tensor) {
  const OpaqueCall *call = stage->te->call;
  return call->ways.items[way].layouts[tensor_number(call, tensor->buffer)];
}

// Does the way have a tensor that the call reads more than once in one layout only?
static bool reads_agree(const OpaqueCall *call, const OpaqueWay *way) {
  for (int i = 0; i < call->input_count; i++)
    for (int k = 0; k < i; k++)
      if (call->tensors[i] && call->tensors[i] == call->tensors[k] &&
          !planner_same_layout(way->layouts[i], way->layouts[k]))
        return false;
  return true;
}

// ---- Candidates

static int candidate_of(const Planner *p, const StageTensor *tensor, const Layout *layout) {
  if (!layout) return 0;
  return candidates_add(p, tensor, planner_candidate_of(p, tensor->buffer, layout));
}

static void propose_ways_of(Planner *p, const Stage *stage) {
  const OpaqueCall *call = stage->te->call;
  for (int w = 0; w < call->ways.count; w++)
    for (int i = 0; i < call->count; i++) {
      const StageTensor *tensor =
          call->tensors[i] ? stage_tensor_of(p->stages, call->tensors[i]) : NULL;
      if (tensor && !tensor->data) candidate_of(p, tensor, call->ways.items[w].layouts[i]);
    }
}

void planner_propose_ways(Planner *p) {
  for (int i = 0; i < p->stages->stages.count; i++) {
    const Stage *stage = p->stages->stages.items[i];
    if (stage_is_opaque(stage) && !stage->te->call_output) propose_ways_of(p, stage);
  }
}

// ---- Choices

// The number of the candidate in which a way has a tensor, unless a constraint asks for another
// one; -1 when the tensor cannot have it.
static int allowed_candidate(const Planner *p, const Stage *stage, int way, int read) {
  const StageTensor *tensor = read < 0 ? stage->output : stage->reads.items[read];
  const StageConstraint *constraint = planner_constraint(p, stage, read);
  const Layout *layout = planner_way_layout(stage, way, tensor);
  if (tensor->data) return constraint && !planner_same_layout(constraint->layout, layout) ? -1 : 0;
  int number = candidate_of(p, tensor, layout);
  int asked = constraint ? planner_candidate_number(p, tensor, constraint->layout) : number;
  return asked == number ? number : -1;
}

// The cycles of a way for which the function states none: those to move its tensors.
static double usual_cycles(const Planner *p, const Stage *stage, const OpaqueWay *way) {
  const OpaqueCall *call = stage->te->call;
  double bytes = 0;
  for (int i = 0; i < call->count; i++) {
    const StageTensor *tensor =
        call->tensors[i] ? stage_tensor_of(p->stages, call->tensors[i]) : NULL;
    if (tensor) bytes += planner_tensor_bytes(tensor, way->layouts[i]);
  }
  return planner_move_cost(p, bytes, 0) + cost_model_of(p->machine)->call_cycles;
}

// Can the outputs after the first one have the layouts of the way?
static bool outputs_allowed(const Planner *p, const OpaqueCall *call, const OpaqueWay *way) {
  for (int i = call->input_count + 1; i < call->count; i++) {
    const StageTensor *tensor = stage_tensor_of(p->stages, call->tensors[i]);
    if (tensor && candidate_of(p, tensor, way->layouts[i]) < 0) return false;
  }
  return true;
}

static void add_way(Planner *p, const Stage *stage, int way) {
  const OpaqueWay *from = &stage->te->call->ways.items[way];
  int *reads = arena_array(&p->context->scratch, int, stage->reads.count);
  int output = allowed_candidate(p, stage, way, -1);
  bool possible = output >= 0 && reads_agree(stage->te->call, from) &&
                  outputs_allowed(p, stage->te->call, from);
  for (int i = 0; i < stage->reads.count && possible; i++) {
    reads[i] = allowed_candidate(p, stage, way, i);
    possible = reads[i] >= 0;
    if (((const StageTensor *)stage->reads.items[i])->data) reads[i] = READ_PACKED;
  }
  if (!possible) return;
  StageChoice *choice = planner_add_choice(p, stage);
  memcpy(choice->reads, reads, sizeof *reads * (size_t)stage->reads.count);
  choice->output = output;
  choice->way = way;
  choice->cost = from->cycles < 0 ? usual_cycles(p, stage, from) : from->cycles;
}

static bool refuse(const Planner *p, const Stage *stage) {
  const OpaqueCall *call = stage->te->call;
  const char *why = str_format(p->context, "the function '%s' takes and gives other layouts",
                               call->function->name);
  for (int i = -1; i < stage->reads.count; i++)
    if (planner_constraint(p, stage, i)) return planner_refuses(p, stage, why);
  SourcePos pos = call->node ? call->node->pos : (SourcePos){0};
  return diag_error_as(p->context, DIAG_OPTION, pos,
                       "'%s' cannot be called: its tensors keep other layouts than those that the "
                       "function '%s' takes and gives, or a tensor that it reads twice would need "
                       "two layouts",
                       call->name, call->function->name);
}

// An output after the first one has one layout. It depends on output 0, which does not have to be
// in any layout for it.
static bool follow_call(Planner *p, const Stage *stage) {
  int output = allowed_candidate(p, stage, 0, -1);
  if (output < 0) return refuse(p, stage);
  StageChoice *choice = planner_add_choice(p, stage);
  choice->output = output;
  choice->reads[0] = READ_NOTHING;
  return true;
}

bool planner_way_choices(Planner *p, const Stage *stage) {
  if (stage->te->call_output) return follow_call(p, stage);
  for (int i = 0; i < stage->te->call->ways.count; i++) add_way(p, stage, i);
  return p->choices[stage->index].count || refuse(p, stage);
}
