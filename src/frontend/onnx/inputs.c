// SPDX-License-Identifier: Apache-2.0
// Makes the graph's parameters and constants: inputs become parameters, and initializers become
// constants whose data stays in the mapped file.
#include "base/caller.h"
#include "frontend/onnx/import.h"
#include "te/te.h"

// ---- Inputs -----------------------------------------------------------------------------------

static bool resolve_type(Importer *importer, const OnnxValue *input, DType *type) {
  SourcePos pos = importer_pos(importer, NULL);
  if (!input->type || !input->type->tensor_type)
    return diag_error(importer->context, pos,
                      "input '%s' is not a tensor, nor a sequence of tensors or an optional one: "
                      "others are not supported; use its contents as tensors",
                      input->name);
  int32_t code = input->type->tensor_type->elem_type;
  return onnx_dtype(code, type) ||
         diag_error(importer->context, pos,
                    "input '%s' has elements of type %s (%d), which is not supported: %s",
                    input->name, onnx_type_name(code), code, onnx_type_advice(code));
}

// Adds a parameter for a tensor.
static Value *tensor_parameter(Importer *importer, const OnnxValue *input, PtrArray *params) {
  Context *context = importer->context;
  IntArray shape;
  DType type;
  if (!resolve_type(importer, input, &type) || !importer_shape(importer, input, &shape))
    return NULL;
  Expr **extents = arena_array(&context->arena, Expr *, shape.count);
  for (int i = 0; i < shape.count; i++) extents[i] = expr_index(context, shape.items[i]);
  Value *value = value_new(context, input->name, type, extents, shape.count);
  value->pos = importer_pos(importer, NULL);
  if (!importer_size_ok(importer, value)) return NULL;
  map_put(&importer->named, value, input->name);
  array_push(&context->arena, params, value);
  return value;
}

static const char *item_shape(Context *context, Str name, int number, const char *shape) {
  return caller_shape(context, arena_printf(&context->arena, "%s[%d]", name, number), shape);
}

static Value *import_parameter(Importer *importer, const OnnxValue *input, PtrArray *params);

// Adds the tensors of a sequence as parameters "name[0]", "name[1]" and so on, as many as were
// given.
static Value *sequence_parameter(Importer *importer, const OnnxValue *input, PtrArray *params) {
  Context *context = importer->context;
  const OnnxType *type = input->type->sequence_type->elem_type;
  PtrArray items = {0};
  int count = importer_held_count(importer, input->name);
  for (int i = 0; i < count; i++) {
    OnnxValue item = {.name = str_format(context, "%s[%d]", input->name, i),
                      .type = (OnnxType *)type};
    if (!importer_was_given(importer, item.name)) {
      diag_error(context, importer_pos(importer, NULL),
                 "a shape is given for %s[%d], but none for %s: give one for each tensor",
                 input->name, count - 1, item.name);
      return NULL;
    }
    Value *value = import_parameter(importer, &item, params);
    if (!value) return NULL;
    array_push(&context->arena, &items, value);
  }
  if (items.count || importer_was_said(importer, input->name, "empty"))
    return importer_list(importer, input->name, &items);
  diag_error(context, importer_pos(importer, NULL),
             "input '%s' is a sequence: say what it holds with the shape of each tensor, "
             "%s %s, or with %s",
             input->name, item_shape(context, input->name, 0, "2x3"),
             item_shape(context, input->name, 1, "4x3"),
             caller_shape(context, input->name, "empty"));
  return NULL;
}

static Value *optional_parameter(Importer *importer, const OnnxValue *input, PtrArray *params) {
  if (importer_was_said(importer, input->name, "none"))
    return importer_list(importer, input->name, NULL);
  OnnxValue held = {.name = input->name, .type = input->type->optional_type->elem_type};
  if (importer_was_given(importer, input->name)) return import_parameter(importer, &held, params);
  diag_error(importer->context, importer_pos(importer, NULL),
             "input '%s' is optional: say that it is there with its shape, %s "
             "(of a sequence %s[0] and so on), or that it is not with %s",
             input->name, caller_shape(importer->context, input->name, "2x3"), input->name,
             caller_shape(importer->context, input->name, "none"));
  return NULL;
}

static Value *import_parameter(Importer *importer, const OnnxValue *input, PtrArray *params) {
  if (input->type && input->type->sequence_type) return sequence_parameter(importer, input, params);
  if (input->type && input->type->optional_type) return optional_parameter(importer, input, params);
  return tensor_parameter(importer, input, params);
}

bool importer_size_ok(Importer *importer, const Value *value) {
  int64_t bytes = value_static_bytes(value);
  if (value->rank > TE_MAX_RANK)
    return diag_error(importer->context, value->pos,
                      "'%s' has %d axes, more than the %d that are "
                      "supported",
                      value->name, value->rank, TE_MAX_RANK);
  if (bytes >= 0 && bytes < INT64_C(1) << 47) return true;
  Text text = text_new(&importer->context->arena);
  for (int i = 0; i < value->rank; i++)
    text_printf(&text, "%s%lld", i ? ", " : "", (long long)import_dim(value, i));
  return diag_error(importer->context, value->pos, "'%s' [%s] is larger than any memory",
                    value->name, text_string(&text));
}

static bool name_is_new(Importer *importer, Str name, const char *what) {
  const ImportScope *scope = importer->scope;
  if (!map_contains(&scope->values, name) && !map_contains(&scope->poisoned, name)) return true;
  return diag_error(importer->context, importer_pos(importer, NULL),
                    "the name '%s' of an %s is that of another input or initializer", name, what);
}

static void give_constant(Importer *importer, Str name, ConstData *data) {
  Value *value = data ? value_constant(importer->context, data) : NULL;
  if (value && importer_size_ok(importer, value))
    scope_give(importer, name, value);
  else
    scope_poison(importer, name);
}

static void import_initializer(Importer *importer, const OnnxTensor *tensor) {
  if (!name_is_new(importer, tensor->name, "initializer")) return;
  give_constant(importer, tensor->name,
                onnx_tensor_data(importer->file, tensor, importer_pos(importer, NULL)));
}

static void import_sparse(Importer *importer, const OnnxSparseTensor *tensor) {
  Str name = tensor->values ? tensor->values->name : str_intern(importer->context, "");
  if (!name_is_new(importer, name, "initializer")) return;
  give_constant(importer, name,
                onnx_sparse_data(importer->file, tensor, importer_pos(importer, NULL)));
}

// Adds an input. When an initializer has the same name, it is the input's default, and the input
// becomes a constant.
static void import_input_value(Importer *importer, const OnnxValue *input, const Map *constants,
                               PtrArray *params) {
  if (map_contains(constants, input->name) || !name_is_new(importer, input->name, "input")) return;
  Value *value = import_parameter(importer, input, params);
  if (value)
    scope_give(importer, input->name, value);
  else
    scope_poison(importer, input->name);
}

void importer_initializers(Importer *importer, const OnnxGraph *graph) {
  for (int i = 0; i < graph->initializer.count; i++)
    import_initializer(importer, &graph->initializer.items[i]);
  for (int i = 0; i < graph->sparse_initializer.count; i++)
    import_sparse(importer, &graph->sparse_initializer.items[i]);
}

void importer_inputs(Importer *importer) {
  OnnxGraph *graph = importer->model->graph;
  importer_dims(importer);
  importer_initializers(importer, graph);
  Map constants = map_new(&importer->context->arena);
  for (int i = 0; i < graph->initializer.count; i++)
    map_put(&constants, graph->initializer.items[i].name, graph);
  for (int i = 0; i < graph->sparse_initializer.count; i++)
    if (graph->sparse_initializer.items[i].values)
      map_put(&constants, graph->sparse_initializer.items[i].values->name, graph);
  PtrArray params = {0};
  for (int i = 0; i < graph->input.count; i++)
    import_input_value(importer, &graph->input.items[i], &constants, &params);
  importer->graph->params = (Value **)params.items;
  importer->graph->param_count = params.count;
}
