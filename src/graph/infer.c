// SPDX-License-Identifier: Apache-2.0
// Infers the shapes and types of a whole graph function, of which a script states only some. A
// stated shape or type must agree with the definition.
#include "graph/opaque.h"

static bool agree(const Value *a, const Value *b) {
  if (!dtype_equal(a->type, b->type) || a->rank != b->rank) return false;
  for (int i = 0; i < a->rank; i++) {
    int64_t x, y;
    if (expr_as_int(a->shape[i], &x) && expr_as_int(b->shape[i], &y) && x != y) return false;
  }
  return true;
}

static bool is_known(Context *context, const Value *value) {
  if (!value) return true;
  if (value->data && !value->data->data)
    return diag_error(context, value->pos, "the contents of constant '%s' are not in this file",
                      value->data->name);
  return value->rank >= 0 ||
         diag_error(context, value->pos, "the shape of '%s' is not known", value->name);
}

static bool infer_node(Context *context, Node *node) {
  for (int i = 0; i < node->input_count; i++)
    if (!is_known(context, node->inputs[i])) return false;
  if (node->kind == NODE_CALL_TIR) return true;
  Value *stated = arena_array(&context->arena, Value, node->output_count);
  for (int i = 0; i < node->output_count; i++) stated[i] = *node->outputs[i];
  if (!(node->kind == NODE_OPAQUE ? opaque_infer : op_infer)(context, node)) return false;
  for (int i = 0; i < node->output_count; i++) {
    const Value *found = node->outputs[i];
    if (stated[i].rank >= 0 && !agree(&stated[i], found))
      return diag_error(context, node->pos, "'%s' is stated to be %s and is %s", found->name,
                        value_type_text(context, &stated[i]), value_type_text(context, found));
  }
  return true;
}

// Skips a node whose inputs have errors, since those are reported already.
static bool infer_after(Context *context, Map *wrong, Node *node) {
  bool reached = true;
  for (int i = 0; i < node->input_count; i++)
    reached &= !node->inputs[i] || !map_contains(wrong, node->inputs[i]);
  if (reached && infer_node(context, node)) return true;
  for (int i = 0; i < node->output_count; i++) map_put(wrong, node->outputs[i], node);
  return false;
}

bool graph_infer(Context *context, GraphFunc *graph) {
  bool ok = graph_flatten(context, graph);
  if (!ok) return false;
  DiagCode code = diag_code_set(context, DIAG_MODEL);
  Map wrong = map_new(&context->arena);
  for (int i = 0; i < graph->nodes.count; i++)
    ok &= infer_after(context, &wrong, graph->nodes.items[i]);
  for (int i = 0; i < graph->output_count; i++)
    ok &= map_contains(&wrong, graph->outputs[i]) || is_known(context, graph->outputs[i]);
  for (int i = 0; ok && i < graph->param_count; i++) ok = is_known(context, graph->params[i]);
  diag_code_set(context, code);
  return ok;
}
