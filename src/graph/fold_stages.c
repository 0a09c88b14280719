// SPDX-License-Identifier: Apache-2.0
// Folds constants: computes the stages whose inputs are all constants while compiling, with the
// interpreter.
#include "graph/stages.h"

#include "interp/interp.h"

// ---- By the interpreter ------------------------------------------------------------------------

// The most iterations that the interpreter computes for one stage, and for all; more are left to
// compiled code. A stage with at most FEW iterations is always interpreted, since code for it does
// not pay.
static const double MOST_OF_ONE = 4e6, MOST_OF_ALL = 12e6, FEW = 1e4;

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

static void make_room(Context *context, ConstData *data) {
  data->data = arena_take(&context->arena, data->bytes + 1); // every element is computed
}

static void give_result(StageGraph *s, Stage *stage, ConstData *result) {
  stage->output->data = result;
  stage->output->producer = NULL;
  stage->output->folded = stage;
  s->folded_stages++;
}

static bool fold_stage(StageGraph *s, Stage *stage) {
  Context *context = s->context;
  StageTensors params = stages_params(s, &stage, 1);
  PrimFunc *func = stages_prim_func(s, &stage, 1, stage->te->name);
  ConstData *result = result_new(context, stage);
  if (!result) return true;
  make_room(context, result);
  InterpTensor *args = arena_array(&context->arena, InterpTensor, params.count);
  for (int i = 0; i + 1 < params.count; i++) args[i] = interp_tensor_of(params.items[i]->data);
  args[params.count - 1] = interp_tensor_of(result);
  if (!interp_run(context, NULL, func, args, params.count, NULL)) return false;
  give_result(s, stage, result);
  return true;
}

static bool is_worth(StageGraph *s, const Stage *stage) {
  double iterations = stage_iterations(stage);
  if (stage->output->is_output || !all_constant(stage) || iterations < 0) return false;
  if (iterations <= FEW) return true;
  if (iterations > MOST_OF_ONE || s->folded_iterations + iterations > MOST_OF_ALL) return false;
  s->folded_iterations += iterations;
  return true;
}

bool stage_graph_fold(StageGraph *s) {
  int kept = 0;
  for (int i = 0; i < s->stages.count; i++) {
    Stage *stage = s->stages.items[i];
    bool fold = is_worth(s, stage);
    if (fold && !fold_stage(s, stage)) return false;
    if (!fold) s->stages.items[kept++] = stage;
  }
  s->stages.count = kept;
  stage_graph_prune(s);
  return true;
}

// ---- By compiled code --------------------------------------------------------------------------

// False for a stage that spreads few elements over many: its readers compute it.
static bool is_constant(const Stage *stage) {
  double read = 0, written = stage_tensor_elements(stage->output);
  if (stage_is_opaque(stage)) return false;
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
      make_room(s->context, stage->output->data);
      array_push(&s->context->arena, &taken, stage);
    } else {
      s->stages.items[kept++] = stage;
    }
  }
  s->stages.count = kept;
  stage_graph_prune(s);
  return taken;
}
