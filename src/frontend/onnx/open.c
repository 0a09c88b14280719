// SPDX-License-Identifier: Apache-2.0
// Describes the inputs and outputs of a model whose sizes are not all known, for callers that give
// them with the arrays of each run.
#include "frontend/onnx/import.h"

static const OnnxTensorType *tensor_of(const OnnxValue *value) {
  return value->type ? value->type->tensor_type : NULL;
}

bool importer_may_be_open(const Importer *importer) {
  const OnnxGraph *graph = importer->model->graph;
  if (!importer->options->open_sizes) return false;
  for (int i = 0; i < graph->input.count; i++)
    if (!tensor_of(&graph->input.items[i])) return false;
  for (int i = 0; i < graph->output.count; i++)
    if (graph->output.items[i].type && !tensor_of(&graph->output.items[i])) return false;
  return true;
}

static int64_t extent_of(const Importer *importer, const OnnxDim *dim) {
  int64_t value;
  Str missing;
  if (!onnx_dim_is_free(dim)) return dim->dim_value;
  bool known = dim->dim_param && *dim->dim_param &&
               dim_evaluate(importer, dim->dim_param, &value, &missing, NULL) && !missing;
  return known ? value : ONNX_OPEN;
}

static OnnxArgument declared(const Importer *importer, const OnnxValue *value) {
  Arena *arena = &importer->context->arena;
  const OnnxTensorType *tensor = tensor_of(value);
  OnnxArgument argument = {.name = value->name, .rank = ONNX_OPEN};
  argument.has_type = tensor && onnx_dtype(tensor->elem_type, &argument.type);
  if (!tensor || !tensor->shape) return argument;
  const OnnxDims *dims = &tensor->shape->dim;
  int64_t *shape = arena_array(arena, int64_t, dims->count);
  for (int i = 0; i < dims->count; i++) shape[i] = extent_of(importer, &dims->items[i]);
  argument.rank = dims->count;
  argument.shape = shape;
  return argument;
}

// An argument is described by the value that was imported, if its sizes were known.
static OnnxArgument describe(const Importer *importer, const OnnxValue *value) {
  const Value *found = scope_value(importer->scope, value->name);
  if (!found) return declared(importer, value);
  OnnxArgument argument = {value->name, found->type, true, found->rank, NULL};
  int64_t *shape = arena_array(&importer->context->arena, int64_t, found->rank);
  for (int i = 0; i < found->rank; i++) shape[i] = import_dim(found, i);
  argument.shape = shape;
  return argument;
}

// An input with an initial value is no parameter.
static bool is_constant(const Importer *importer, Str name) {
  const Value *found = scope_value(importer->scope, name);
  const GraphFunc *graph = importer->graph;
  for (int i = 0; i < graph->param_count; i++)
    if (graph->params[i] == found) return false;
  return found != NULL;
}

void importer_describe_open(Importer *importer) {
  Arena *arena = &importer->context->arena;
  const OnnxGraph *graph = importer->model->graph;
  OnnxImport *result = importer->result;
  for (int i = 0; i < graph->input.count; i++)
    if (!is_constant(importer, graph->input.items[i].name))
      array_push(arena, &result->open_inputs, describe(importer, &graph->input.items[i]));
  for (int i = 0; i < graph->output.count; i++)
    array_push(arena, &result->open_outputs, describe(importer, &graph->output.items[i]));
}
