// SPDX-License-Identifier: Apache-2.0
// Folds constants: takes the stages whose inputs are all constants out of the graph, to be computed
// while compiling. driver/fold.c computes them.
#include "graph/stages.h"

static bool all_constant(const Stage *stage) {
  if (stage_is_opaque(stage)) return false;
  for (int i = 0; i < stage->reads.count; i++)
    if (!((StageTensor *)stage->reads.items[i])->data) return false;
  return true;
}

static ConstData *result_new(Context *context, const Stage *stage) {
  const Buffer *buffer = stage->te->output;
  ConstData *data = arena_new(&context->arena, ConstData);
  data->name = buffer->name;
  data->type = buffer->type;
  data->rank = buffer->rank;
  data->shape = arena_array(&context->arena, int64_t, buffer->rank);
  if (!buffer_static_shape(buffer, data->shape)) return NULL;
  data->bytes = (size_t)dtype_bytes(buffer->type);
  for (int i = 0; i < buffer->rank; i++) data->bytes *= (size_t)data->shape[i];
  return data;
}

static void give_result(StageGraph *s, Stage *stage, ConstData *result) {
  stage->output->data = result;
  stage->output->producer = NULL;
  stage->output->folded = stage;
  s->folded_stages++;
}

// The stages after the first ones have been taken out of the graph.
static void keep_first(StageGraph *s, int kept) {
  if (kept == s->stages.count) return;
  s->stages.count = kept;
  stage_graph_prune(s);
}

// ---- Before stages become parts of others ------------------------------------------------------

// The most iterations of one stage, and of all, that are computed before stages become parts of
// others, so that they know the values; more may be less work then. A stage with at most FEW
// iterations is always computed.
static const double MOST_OF_ONE = 4e6, MOST_OF_ALL = 12e6, FEW = 1e4;

static bool is_worth(StageGraph *s, const Stage *stage) {
  double iterations = stage_iterations(stage);
  if (stage->output->is_output || !all_constant(stage) || iterations < 0) return false;
  if (stage->output->packed) return false;
  if (iterations <= FEW) return true;
  if (iterations > MOST_OF_ONE || s->folded_iterations + iterations > MOST_OF_ALL) return false;
  s->folded_iterations += iterations;
  return true;
}

PtrArray stage_graph_take_small_constants(StageGraph *s) {
  PtrArray taken = {0};
  int kept = 0;
  for (int i = 0; i < s->stages.count; i++) {
    Stage *stage = s->stages.items[i];
    ConstData *result = is_worth(s, stage) ? result_new(s->context, stage) : NULL;
    if (!result) {
      s->stages.items[kept++] = stage;
      continue;
    }
    give_result(s, stage, result);
    array_push(&s->context->arena, &taken, stage);
  }
  keep_first(s, kept);
  return taken;
}

// ---- All ----------------------------------------------------------------------------------------

// False for a stage that spreads few elements over many: its readers compute it.
static bool is_constant(const Stage *stage) {
  double read = 0, written = stage_tensor_elements(stage->output);
  if (stage_is_opaque(stage) || stage->output->packed) return false;
  for (int i = 0; i < stage->reads.count; i++) {
    const StageTensor *tensor = stage->reads.items[i];
    if (!tensor->data && !tensor->constant) return false;
    read += stage_tensor_elements(tensor);
  }
  bool grows = written > 2 * read && !stage->output->folds;
  return !stage->output->is_output && !stage->output->kept && written >= 0 && !grows;
}

void stage_graph_find_constants(StageGraph *s) {
  for (int i = 0; i < s->stages.count; i++)
    s->stages.items[i]->output->constant = is_constant(s->stages.items[i]);
}

// Is the result so large that it is better computed into the weights of the program at once?
static bool is_late(const Stage *stage) {
  enum { LEAST_ELEMENTS = 1 << 16 };
  const StageTensor *output = stage->output;
  bool late = output->folds && stage_tensor_elements(output) >= LEAST_ELEMENTS;
  for (int i = 0; i < output->users.count; i++)
    late &= !((Stage *)output->users.items[i])->output->constant;
  return late;
}

PtrArray stage_graph_take_constants(StageGraph *s) {
  PtrArray taken = {0};
  int kept = 0;
  stage_graph_find_constants(s);
  for (int i = 0; i < s->stages.count; i++) {
    Stage *stage = s->stages.items[i];
    if (stage->output->constant) {
      bool late = is_late(stage);
      give_result(s, stage, result_new(s->context, stage));
      if (late) continue;
      array_push(&s->context->arena, &taken, stage);
    } else {
      s->stages.items[kept++] = stage;
    }
  }
  keep_first(s, kept);
  return taken;
}
