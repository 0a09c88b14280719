// SPDX-License-Identifier: Apache-2.0
// What the graph takes and holds: inputs become parameters, with the free dimensions that the user
// gave; initializers become constants whose data stay in the mapped file.
#include "frontend/onnx/import.h"

#include <stdlib.h>

// ---- Shapes that the user gave ----------------------------------------------------------------

// "name=value" in the options: the part behind "=", NULL when there is none for this name.
static const char *given_for(const Importer *importer, Str name) {
  size_t n = strlen(name);
  for (int i = 0; n && i < importer->options->shape_count; i++) {
    const char *given = importer->options->shapes[i];
    if (strncmp(given, name, n) == 0 && given[n] == '=' && !strchr(given + n + 1, '='))
      return given + n + 1;
  }
  return NULL;
}

// "1x3x224x224" or "1,3,224,224"; false when it is not that.
static bool parse_shape(Context *context, const char *s, IntArray *shape) {
  *shape = (IntArray){0};
  while (*s) {
    char *end;
    long long dim = strtoll(s, &end, 10);
    if (end == s || dim < 0 || (*end && (!strchr("x,", *end) || !end[1]))) return false;
    array_push(&context->arena, shape, dim);
    s = *end ? end + 1 : end;
  }
  return true;
}

static OnnxDims *declared_dims(const OnnxValue *value) {
  if (!value->type || !value->type->tensor_type || !value->type->tensor_type->shape) return NULL;
  return &value->type->tensor_type->shape->dim;
}

static OnnxNames names_that_can_be_given(Importer *importer) {
  OnnxNames names = {0};
  OnnxValues *inputs = &importer->model->graph->input;
  for (int i = 0; i < inputs->count; i++) {
    array_push(&importer->context->arena, &names, inputs->items[i].name);
    OnnxDims *dims = declared_dims(&inputs->items[i]);
    for (int k = 0; dims && k < dims->count; k++)
      if (*dims->items[k].dim_param)
        array_push(&importer->context->arena, &names, dims->items[k].dim_param);
  }
  return names;
}

// Each shape that was given must be for something in the model.
static void check_given(Importer *importer) {
  Context *context = importer->context;
  OnnxNames names = names_that_can_be_given(importer);
  for (int i = 0; i < importer->options->shape_count; i++) {
    const char *given = importer->options->shapes[i], *equals = strrchr(given, '=');
    Str name = str_intern_n(context, given, equals ? (size_t)(equals - given) : strlen(given));
    IntArray ignored;
    int k = 0;
    while (k < names.count && names.items[k] != name) k++;
    if (!equals || !parse_shape(context, equals + 1, &ignored)) {
      diag_error(context, importer_pos(importer, NULL),
                 "'%s' is not a shape: write NAME=1x3x224x224, or NAME=4 for a free dimension",
                 given);
    } else if (k == names.count) {
      const char *near = nearest_name(name, names.items, names.count);
      diag_error(context, importer_pos(importer, NULL),
                 "a shape is given for '%s', but there is no such input or free dimension%s%s%s",
                 name, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    }
  }
}

// ---- Inputs -----------------------------------------------------------------------------------

static const char *declared_text(Context *context, const OnnxDims *dims) {
  Text text = text_new(&context->arena);
  text_puts(&text, "[");
  for (int i = 0; i < dims->count; i++) {
    const OnnxDim *dim = &dims->items[i];
    text_puts(&text, i ? ", " : "");
    if (dim->has_dim_value)
      text_printf(&text, "%lld", (long long)dim->dim_value);
    else
      text_puts(&text, *dim->dim_param ? dim->dim_param : "?");
  }
  text_puts(&text, "]");
  return text_string(&text);
}

// "x=1x3x224x224": what to type for an input, free dimensions as 1.
static const char *example_shape(Context *context, const OnnxValue *input, const OnnxDims *dims) {
  Text text = text_new(&context->arena);
  text_printf(&text, "%s=", input->name);
  for (int i = 0; i < dims->count; i++)
    text_printf(&text, "%s%lld", i ? "x" : "",
                dims->items[i].has_dim_value ? (long long)dims->items[i].dim_value : 1);
  return text_string(&text);
}

static bool resolve_dim(Importer *importer, const OnnxValue *input, const OnnxDims *dims, int axis,
                        int64_t *value) {
  Context *context = importer->context;
  const OnnxDim *dim = &dims->items[axis];
  const char *given = given_for(importer, dim->dim_param);
  IntArray size;
  SourcePos pos = importer_pos(importer, NULL);
  *value = dim->dim_value;
  if (dim->has_dim_value && *value < 0)
    return diag_error(context, pos, "input '%s' %s: dimension %d is negative", input->name,
                      declared_text(context, dims), axis);
  if (dim->has_dim_value) return true;
  if (given && parse_shape(context, given, &size) && size.count == 1) {
    *value = size.items[0];
    return true;
  }
  return diag_error(
      context, pos, "input '%s' %s: dimension %d is free; give it with --input-shape %s%s%s",
      input->name, declared_text(context, dims), axis,
      *dim->dim_param ? arena_printf(&context->arena, "%s=1", dim->dim_param) : "",
      *dim->dim_param ? " or --input-shape " : "", example_shape(context, input, dims));
}

static bool given_agrees(Importer *importer, const OnnxValue *input, const OnnxDims *dims,
                         const IntArray *given) {
  bool agrees = !dims || dims->count == given->count;
  for (int i = 0; agrees && dims && i < dims->count; i++)
    agrees = !dims->items[i].has_dim_value || dims->items[i].dim_value == given->items[i];
  return agrees || diag_error(importer->context, importer_pos(importer, NULL),
                              "input '%s' %s: the shape given for it does not agree with the model",
                              input->name, declared_text(importer->context, dims));
}

static bool resolve_shape(Importer *importer, const OnnxValue *input, IntArray *shape) {
  Context *context = importer->context;
  OnnxDims *dims = declared_dims(input);
  const char *given = given_for(importer, input->name);
  *shape = (IntArray){0};
  if (given && parse_shape(context, given, shape))
    return given_agrees(importer, input, dims, shape);
  if (!dims)
    return diag_error(context, importer_pos(importer, NULL),
                      "input '%s' has no shape; give it with --input-shape %s=1x3x224x224",
                      input->name, input->name);
  for (int i = 0; i < dims->count; i++) {
    int64_t value;
    if (!resolve_dim(importer, input, dims, i, &value)) return false;
    array_push(&context->arena, shape, value);
  }
  return true;
}

static bool resolve_type(Importer *importer, const OnnxValue *input, DType *type) {
  SourcePos pos = importer_pos(importer, NULL);
  if (!input->type || !input->type->tensor_type)
    return diag_error(importer->context, pos,
                      "input '%s' is not a tensor; sequences, maps and optional values are not "
                      "supported",
                      input->name);
  int32_t code = input->type->tensor_type->elem_type;
  return onnx_dtype(code, type) ||
         diag_error(importer->context, pos,
                    "input '%s' has elements of type %s (%d), which is not "
                    "supported",
                    input->name, onnx_type_name(code), code);
}

static Value *import_parameter(Importer *importer, const OnnxValue *input) {
  Context *context = importer->context;
  IntArray shape;
  DType type;
  if (!resolve_type(importer, input, &type) || !resolve_shape(importer, input, &shape)) return NULL;
  Expr **extents = arena_array(&context->arena, Expr *, shape.count);
  for (int i = 0; i < shape.count; i++) extents[i] = expr_index(context, shape.items[i]);
  Value *value = value_new(context, input->name, type, extents, shape.count);
  value->pos = importer_pos(importer, NULL);
  if (importer_size_ok(importer, value)) return value;
  return NULL;
}

bool importer_size_ok(Importer *importer, const Value *value) {
  int64_t bytes = value_static_bytes(value);
  if (bytes >= 0 && bytes < INT64_C(1) << 47) return true;
  Text text = text_new(&importer->context->arena);
  for (int i = 0; i < value->rank; i++)
    text_printf(&text, "%s%lld", i ? ", " : "", (long long)import_dim(value, i));
  return diag_error(importer->context, value->pos, "'%s' [%s] is larger than any memory",
                    value->name, text_string(&text));
}

static bool name_is_new(Importer *importer, Str name) {
  const Scope *scope = importer->scope;
  if (!map_contains(&scope->values, name) && !map_contains(&scope->poisoned, name)) return true;
  return diag_error(importer->context, importer_pos(importer, NULL),
                    "the name '%s' is given to two values", name);
}

static void import_initializer(Importer *importer, const OnnxTensor *tensor) {
  if (!name_is_new(importer, tensor->name)) return;
  ConstData *data = onnx_tensor_data(importer->file, tensor, importer_pos(importer, NULL));
  if (data)
    scope_give(importer, tensor->name, value_constant(importer->context, data));
  else
    scope_poison(importer, tensor->name);
}

// An input of the same name as an initializer has it as its default: it is a constant.
static void import_input_value(Importer *importer, const OnnxValue *input, const Map *constants) {
  if (map_contains(constants, input->name) || !name_is_new(importer, input->name)) return;
  Value *value = import_parameter(importer, input);
  if (!value) {
    scope_poison(importer, input->name);
    return;
  }
  GraphFunc *graph = importer->graph;
  graph->params[graph->param_count++] = value;
  scope_give(importer, input->name, value);
}

void importer_initializers(Importer *importer, const OnnxGraph *graph) {
  for (int i = 0; i < graph->initializer.count; i++)
    import_initializer(importer, &graph->initializer.items[i]);
  for (int i = 0; i < graph->sparse_initializer.count; i++) {
    OnnxTensor *values = graph->sparse_initializer.items[i].values;
    diag_error(importer->context, importer_pos(importer, NULL),
               "initializer '%s' is a sparse tensor, which is not supported: store it dense",
               values ? values->name : "");
    if (values) scope_poison(importer, values->name);
  }
}

void importer_inputs(Importer *importer) {
  OnnxGraph *graph = importer->model->graph;
  check_given(importer);
  importer_initializers(importer, graph);
  Map constants = map_new(&importer->context->arena);
  for (int i = 0; i < graph->initializer.count; i++)
    map_put(&constants, graph->initializer.items[i].name, graph);
  importer->graph->params = arena_array(&importer->context->arena, Value *, graph->input.count);
  for (int i = 0; i < graph->input.count; i++)
    import_input_value(importer, &graph->input.items[i], &constants);
}
