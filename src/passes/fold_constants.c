// SPDX-License-Identifier: Apache-2.0
// Computes operators and calls of programs whose operands are all constants, with the interpreter:
//   w1 = R.layout_transform(const, …)    =>    another constant
// Operators of very many elements stay.
#include "passes/passes.h"

#include "interp/interp.h"

enum { MOST_ELEMENTS = 1 << 22 };

static bool is_constant(const Node *node) {
  bool computes = node->kind == NODE_OP || node->kind == NODE_CALL_TIR;
  for (int i = 0; computes && i < node->input_count; i++)
    computes = !node->inputs[i] || node->inputs[i]->data;
  return computes && !node->alone;
}

// An array for the value. NULL when its shape is not constant, or too large.
static ConstData *array_for(Context *context, const Value *value) {
  ConstData *data = arena_new(&context->arena, ConstData);
  data->name = value->name;
  data->type = value->type;
  data->rank = value->rank;
  data->shape = arena_array(&context->arena, int64_t, MAX_OF(value->rank, 1));
  if (value->rank < 0 || !value_static_shape(value, data->shape)) return NULL;
  int64_t bytes = value_static_bytes(value);
  if (bytes < 0 || bytes > (int64_t)MOST_ELEMENTS * dtype_bytes(value->type)) return NULL;
  data->bytes = (size_t)bytes;
  data->data = arena_alloc(&context->arena, data->bytes + 1);
  return data;
}

static bool fold(PassRun *run, const Node *node) {
  Context *context = run->context;
  PrimFunc *func = op_prim_func(context, node);
  if (!func) return false;
  int count = 0;
  InterpTensor *args = arena_array(&context->arena, InterpTensor, func->param_count);
  ConstData **results = arena_array(&context->arena, ConstData *, node->output_count);
  for (int i = 0; i < node->input_count; i++)
    if (node->inputs[i]) args[count++] = interp_tensor_of(node->inputs[i]->data);
  for (int i = 0; i < node->output_count; i++) {
    if (!(results[i] = array_for(context, node->outputs[i]))) return true;
    args[count++] = interp_tensor_of(results[i]);
  }
  if (count != func->param_count) return true;
  if (!interp_run(context, run->module, func, args, count, NULL)) return false;
  for (int i = 0; i < node->output_count; i++)
    graph_replace_value(run->graph, node->outputs[i], value_constant(context, results[i]));
  return true;
}

bool graph_fold_constants(PassRun *run) {
  for (int i = 0; i < run->graph->nodes.count; i++) {
    const Node *node = run->graph->nodes.items[i];
    if (is_constant(node) && !fold(run, node)) return false;
  }
  graph_remove_unused(run->context, run->graph);
  return true;
}
