// SPDX-License-Identifier: Apache-2.0
// Imports nodes whose operator a function of the caller computes. The function is found by the
// node's domain and operator, "com.example::Scale", or for domains other than the standard's by the
// operator alone.
#include "frontend/onnx/import.h"
#include "graph/opaque.h"

const OpaqueFunction *importer_outside(const Importer *importer, const OnnxNode *node) {
  const OpaqueFunctions *functions = importer->options->functions;
  bool standard = !*node->domain || strcmp(node->domain, "ai.onnx") == 0;
  if (!functions) return NULL;
  const char *full = arena_printf(&importer->context->arena, "%s::%s",
                                  standard ? "ai.onnx" : node->domain, node->op_type);
  const OpaqueFunction *found = opaque_find(functions, full);
  return found || standard ? found : opaque_find(functions, node->op_type);
}

// ---- Types that the model declares -------------------------------------------------------------

static const OnnxValue *declared_in(const OnnxValues *values, Str name) {
  for (int i = 0; i < values->count; i++)
    if (values->items[i].name == name) return &values->items[i];
  return NULL;
}

// Gives the output the type that the model declares; it stays without one where a size is free.
static void take_declared(Import *import, Value *value, Str name) {
  const OnnxGraph *graph = import->importer->model->graph;
  const OnnxValue *declared = declared_in(&graph->value_info, name);
  if (!declared) declared = declared_in(&graph->output, name);
  DType type;
  const OnnxTensorType *tensor = declared && declared->type ? declared->type->tensor_type : NULL;
  if (!tensor || !tensor->shape || !onnx_dtype(tensor->elem_type, &type)) return;
  const OnnxDims *dims = &tensor->shape->dim;
  Expr **shape = arena_array(&import->context->arena, Expr *, dims->count);
  for (int d = 0; d < dims->count; d++) {
    if (onnx_dim_is_free(&dims->items[d])) return;
    shape[d] = expr_index(import->context, dims->items[d].dim_value);
  }
  value->type = type;
  value->rank = dims->count;
  value->shape = shape;
}

// ---- Inputs and attributes ---------------------------------------------------------------------

static bool add_inputs(Import *import, PtrArray *inputs) {
  bool known = true;
  for (int i = 0; i < import->node->input.count; i++) {
    Str name = import->node->input.items[i];
    Value *value = *name ? scope_value(import->importer->scope, name) : NULL;
    if (value && value_is_list(value))
      return import_refuse(import,
                           "its input '%s' is a sequence or an optional value, expected a "
                           "tensor",
                           name);
    known &= value || !*name;
    array_push(&import->context->arena, inputs, value);
  }
  return known;
}

static Expr *attribute_value(Import *import, const OnnxAttribute *attribute) {
  Context *context = import->context;
  Array(Expr *) items = {0};
  switch (attribute->type) {
  case onnx_AttributeProto_AttributeType_INT: return expr_index(context, attribute->i);
  case onnx_AttributeProto_AttributeType_FLOAT:
    return expr_float(context, DTYPE_FLOAT64, (double)attribute->f);
  case onnx_AttributeProto_AttributeType_STRING:
    return expr_string(context, import_text(import, attribute->name, ""));
  case onnx_AttributeProto_AttributeType_INTS:
    for (int i = 0; i < attribute->ints.count; i++)
      array_push(&context->arena, &items, expr_index(context, attribute->ints.items[i]));
    return expr_tuple(context, items.items, items.count);
  case onnx_AttributeProto_AttributeType_FLOATS:
    for (int i = 0; i < attribute->floats.count; i++)
      array_push(&context->arena, &items,
                 expr_float(context, DTYPE_FLOAT64, (double)attribute->floats.items[i]));
    return expr_tuple(context, items.items, items.count);
  default: break;
  }
  import_refuse(import,
                "its attribute '%s' is no number, list of numbers or text, and functions "
                "receive no others",
                attribute->name);
  return NULL;
}

static bool add_attributes(Import *import, Node *node) {
  for (int i = 0; i < import->node->attribute.count; i++) {
    const OnnxAttribute *attribute = &import->node->attribute.items[i];
    Expr *value = attribute_value(import, attribute);
    if (!value) return false;
    node->attrs = attrs_with(&import->context->arena, node->attrs, attribute->name, value);
  }
  return true;
}

static void add_output(Import *import, Node *node, int i) {
  Str name = import->node->output.items[i];
  Value *value = node->outputs[i] =
      value_new(import->context, *name ? name : import->name, DTYPE_VOID, NULL, -1);
  value->producer = node;
  value->output = i;
  take_declared(import, value, name);
}

// ---- The node ----------------------------------------------------------------------------------

void import_outside(Import *import, const OpaqueFunction *function) {
  PtrArray inputs = {0};
  const OnnxNames *outputs = &import->node->output;
  if (!add_inputs(import, &inputs)) return;
  Node *node = node_new(import->context, NODE_OPAQUE, import->node->op_type, import->name,
                        (Value **)inputs.items, inputs.count, outputs->count);
  node->function = function;
  node->user_op = import->node->op_type;
  node->pos = import->pos;
  if (!add_attributes(import, node)) return;
  for (int i = 0; i < outputs->count; i++) add_output(import, node, i);
  if (!opaque_infer(import->context, node)) return;
  for (int i = 0; i < outputs->count; i++) {
    node->outputs[i]->pos = import->pos;
    if (!importer_size_ok(import->importer, node->outputs[i])) return;
  }
  array_push(&import->context->arena, &import->importer->graph->nodes, node);
  for (int i = 0; i < outputs->count; i++) import_result(import, i, node->outputs[i]);
}
