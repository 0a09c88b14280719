// SPDX-License-Identifier: Apache-2.0
// Describes the inputs and outputs of a model whose sizes are not all known, for callers that give
// them with the arrays of each run.
#include "frontend/onnx/import.h"

static const OnnxTensorType *tensor_of(const OnnxValue *value) {
  return value->type ? value->type->tensor_type : NULL;
}

// The first input or output that is a sequence or an optional value; NULL: all are tensors.
static const OnnxValue *first_list(const OnnxGraph *graph) {
  for (int i = 0; i < graph->input.count; i++)
    if (!tensor_of(&graph->input.items[i])) return &graph->input.items[i];
  for (int i = 0; i < graph->output.count; i++)
    if (graph->output.items[i].type && !tensor_of(&graph->output.items[i]))
      return &graph->output.items[i];
  return NULL;
}

bool importer_may_be_open(const Importer *importer) {
  return importer->options->open_sizes && !first_list(importer->model->graph);
}

const char *importer_why_closed(const Importer *importer) {
  const OnnxOptions *options = importer->options;
  const OnnxValue *list = first_list(importer->model->graph);
  if (options->why_closed)
    return arena_printf(&importer->context->arena, "\n%s", options->why_closed);
  if (!options->open_sizes || !list) return "";
  return arena_printf(
      &importer->context->arena,
      "\nthe arrays of a run do not give the sizes: '%s' is a sequence or an optional "
      "value, whose tensors are separate inputs or outputs",
      list->name);
}

// An axis that is not known has a name, and for a size that a caller can give, the name of the
// size.
typedef struct Axis {
  int64_t extent; // ONNX_OPEN: not known
  const char *name;
  Str missing;
} Axis;

static Axis axis_of(const Importer *importer, const OnnxDim *dim) {
  Axis axis = {.extent = dim->dim_value};
  if (!onnx_dim_is_free(dim)) return axis;
  bool named = dim->dim_param && *dim->dim_param;
  bool known = named && dim_evaluate(importer, dim->dim_param, &axis.extent, &axis.missing, NULL) &&
               !axis.missing;
  if (known) return axis;
  axis.extent = ONNX_OPEN;
  axis.name = named ? dim->dim_param : NULL;
  return axis;
}

static void add_open_size(const Importer *importer, Str name) {
  OnnxImport *result = importer->result;
  for (int i = 0; i < result->open_sizes.count; i++)
    if (result->open_sizes.items[i] == name) return;
  array_push(&importer->context->arena, &result->open_sizes, name);
}

static OnnxArgument declared(const Importer *importer, const OnnxValue *value, bool is_input) {
  Arena *arena = &importer->context->arena;
  const OnnxTensorType *tensor = tensor_of(value);
  OnnxArgument argument = {.name = value->name, .rank = ONNX_OPEN};
  argument.has_type = tensor && onnx_dtype(tensor->elem_type, &argument.type);
  if (!tensor || !tensor->shape) return argument;
  const OnnxDims *dims = &tensor->shape->dim;
  int64_t *shape = arena_array(arena, int64_t, dims->count);
  const char **names = arena_array(arena, const char *, dims->count);
  for (int i = 0; i < dims->count; i++) {
    Axis axis = axis_of(importer, &dims->items[i]);
    shape[i] = axis.extent;
    names[i] = axis.name;
    if (axis.missing && is_input) add_open_size(importer, axis.missing);
  }
  argument.rank = dims->count;
  argument.shape = shape;
  argument.names = names;
  return argument;
}

// An argument is described by the value that was imported, if its sizes were known.
static OnnxArgument describe(const Importer *importer, const OnnxValue *value, bool is_input) {
  const Value *found = scope_value(importer->scope, value->name);
  if (!found) return declared(importer, value, is_input);
  OnnxArgument argument = {
      .name = value->name, .type = found->type, .has_type = true, .rank = found->rank};
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
      array_push(arena, &result->open_inputs, describe(importer, &graph->input.items[i], true));
  for (int i = 0; i < graph->output.count; i++)
    array_push(arena, &result->open_outputs, describe(importer, &graph->output.items[i], false));
}
