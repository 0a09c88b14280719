// SPDX-License-Identifier: Apache-2.0
// Imports a model as a graph function: its inputs and constants (inputs.c), its nodes (node.c) in
// an order of computation (order.c), and its outputs. The import continues after a problem: a
// result that failed is "poisoned", and nodes that read it are checked only as far as possible
// without it.
#include "frontend/onnx/import.h"

#include "graph/graph.h"

// ---- Versions ---------------------------------------------------------------------------------

static bool find_opset(Importer *importer) {
  OnnxModel *model = importer->model;
  int64_t opset = model->ir_version < 3 ? 1 : 0; // before there were versions
  bool others = false;                           // the model has only operators of other domains
  for (int i = 0; i < model->opset_import.count; i++) {
    const OnnxOpset *import = &model->opset_import.items[i];
    bool standard = !*import->domain || strcmp(import->domain, "ai.onnx") == 0;
    if (standard) opset = import->version;
    others |= !standard;
  }
  importer->result->opset = opset;
  importer->result->ir_version = model->ir_version;
  SourcePos pos = importer_pos(importer, NULL);
  if (opset > ONNX_NEWEST_OPSET)
    diag_warning(importer->context, pos,
                 "opset %lld is newer than %d, the newest known here: operators may have changed",
                 (long long)opset, ONNX_NEWEST_OPSET);
  return opset > 0 || others ||
         diag_error(importer->context, pos, "the model does not say which opset it uses");
}

// ---- Results ----------------------------------------------------------------------------------

static bool shape_agrees(const OnnxDims *dims, const Value *value) {
  bool agrees = dims->count == value->rank;
  for (int i = 0; agrees && i < dims->count; i++)
    agrees = onnx_dim_is_free(&dims->items[i]) || dims->items[i].dim_value == import_dim(value, i);
  return agrees;
}

// Checks a value against the type and shape that the model declares; a free dimension fits any
// extent. A shape that does not hold is only a warning: exporters write such shapes, and the shape
// that follows from the inputs is used.
static void check_declared(Importer *importer, const OnnxValue *declared) {
  Context *context = importer->context;
  const Value *value = scope_value(importer->scope, declared->name);
  const OnnxTensorType *tensor = declared->type ? declared->type->tensor_type : NULL;
  DType type;
  if (!value || !tensor) return;
  if (value_is_list(value)) {
    diag_error(context, value->pos,
               "'%s' is declared as a tensor but is a sequence or an absent value", declared->name);
    return;
  }
  if (tensor->elem_type && onnx_dtype(tensor->elem_type, &type) && !dtype_equal(type, value->type))
    diag_error(context, value->pos, "'%s' is declared as %s but is %s", declared->name,
               onnx_type_name(tensor->elem_type), dtype_name(context, value->type));
  if (tensor->shape && !shape_agrees(&tensor->shape->dim, value))
    diag_warning(context, value->pos,
                 "'%s' is declared with shape %s but has %s, which follows from the inputs and is "
                 "used",
                 declared->name, onnx_dims_text(context, &tensor->shape->dim),
                 extents_text(context, value->shape, value->rank));
}

static bool is_among(const PtrArray *outputs, const Value *value) {
  for (int i = 0; i < outputs->count; i++)
    if (outputs->items[i] == value) return true;
  return false;
}

// A value that is an output of its own, with its own name: a copy of the value when necessary.
static Value *own_value(Importer *importer, Value *value, Str name, const PtrArray *outputs) {
  if (value->producer && !is_among(outputs, value)) {
    value->name = name;
    return value;
  }
  Node *node = node_new(importer->context, NODE_OP, "identity", name, &value, 1, 1);
  if (!op_infer(importer->context, node)) return NULL;
  array_push(&importer->context->arena, &importer->graph->nodes, node);
  node->outputs[0]->name = name;
  return node->outputs[0];
}

// Adds a value to the outputs. A list gives its tensors as "name[0]", "name[1]" and so on.
static void give_back(Importer *importer, Value *value, Str name, PtrArray *outputs) {
  Context *context = importer->context;
  if (!value_is_list(value)) {
    value = own_value(importer, value, name, outputs);
    if (value) array_push(&context->arena, outputs, value);
    return;
  }
  const PtrArray *items = importer_items(importer, value);
  for (int i = 0; items && i < items->count; i++)
    give_back(importer, items->items[i], str_format(context, "%s[%d]", name, i), outputs);
}

static void import_outputs(Importer *importer) {
  OnnxValues *outputs = &importer->model->graph->output;
  GraphFunc *graph = importer->graph;
  PtrArray given = {0};
  if (!outputs->count)
    diag_error(importer->context, importer_pos(importer, NULL), "the graph has no output");
  for (int i = 0; i < outputs->count; i++) {
    Str name = outputs->items[i].name;
    Value *value = scope_value(importer->scope, name);
    if (value)
      give_back(importer, value, name, &given);
    else if (!scope_has(importer->scope, name))
      diag_error(importer->context, importer_pos(importer, NULL),
                 "output '%s' is missing: no node of the graph makes it", name);
  }
  graph->outputs = (Value **)given.items;
  graph->output_count = given.count;
}

// ---- The whole --------------------------------------------------------------------------------

static void import_graph(Importer *importer) {
  OnnxGraph *graph = importer->model->graph;
  importer->scope = scope_new(importer, "");
  importer->scope->opset = importer->result->opset;
  importer_inputs(importer);
  OnnxNames results = {0};
  for (int i = 0; i < graph->output.count; i++)
    array_push(&importer->context->arena, &results, graph->output.items[i].name);
  if (!scope_nodes(importer, importer->scope, &graph->node, &results)) return;
  if (importer->known_late) importer_tell_cut(importer);
  import_outputs(importer);
  for (int i = 0; i < graph->value_info.count; i++)
    check_declared(importer, &graph->value_info.items[i]);
  for (int i = 0; i < graph->output.count; i++) check_declared(importer, &graph->output.items[i]);
}

static void import_file(Importer *importer) {
  OnnxImport *result = importer->result;
  importer->model = importer->file->model;
  importer->graph = graph_func_new(importer->context, "main");
  importer->graph->pos = importer_pos(importer, NULL);
  result->node_count = importer->model->graph->node.count;
  if (find_opset(importer)) import_graph(importer);
}

static OnnxFile *open_model(Context *context, const char *path, const OnnxOptions *options) {
  OnnxBytes bytes = {options->bytes, options->byte_count};
  return bytes.data ? onnx_model_decode(context, path, bytes) : onnx_model_open(context, path);
}

static OnnxImport *import_model(Context *context, const char *path, const OnnxOptions *options) {
  Arena *arena = &context->arena;
  int errors = context->error_count;
  OnnxImport *result = arena_new(arena, OnnxImport);
  result->operators = map_new(arena);
  Importer importer = {.context = context,
                       .file = open_model(context, path, options),
                       .options = options,
                       .result = result,
                       .lists = map_new(arena),
                       .named = map_new(arena),
                       .followed = map_new(arena),
                       .dims = map_new(arena),
                       .axis_names = map_new(arena),
                       .asked = map_new(arena),
                       .inferred = map_new(arena),
                       .assumed = text_new(arena)};
  if (importer.file) import_file(&importer);
  result->assumed = text_string(&importer.assumed);
  if (context->error_count > errors) return result;
  if (result->lacks_sizes) {
    importer_describe_open(&importer);
    return result;
  }
  result->graph = importer.graph;
  result->module = module_new(context, "module");
  module_add_graph(result->module, result->graph);
  return result;
}

OnnxImport *onnx_import(Context *context, const char *path, const OnnxOptions *options) {
  static const OnnxOptions none = {0};
  DiagCode code = diag_code_set(context, DIAG_MODEL);
  OnnxImport *result = import_model(context, path, options ? options : &none);
  diag_code_set(context, code);
  return result;
}
