// SPDX-License-Identifier: Apache-2.0
// Expands calls of functions that the model defines. Every call is expanded in a scope of its own,
// which sees only the function's inputs. The name of a node inside begins with the names of the
// surrounding calls: "outer_call/inner_call/node".
#include "frontend/onnx/import.h"

static Str domain_of(Str domain) {
  return strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

const OnnxFunction *importer_function(const Importer *importer, const OnnxNode *node) {
  const OnnxFunctions *functions = &importer->model->functions;
  for (int i = 0; i < functions->count; i++) {
    const OnnxFunction *function = &functions->items[i];
    if (function->name == node->op_type && function->overload == node->overload &&
        strcmp(domain_of(function->domain), domain_of(node->domain)) == 0)
      return function;
  }
  return NULL;
}

// ---- Attributes that refer to the call --------------------------------------------------------

static bool depends_on_call(const ImportScope *scope, const OnnxNode *node) {
  if (!scope->function) return false;
  bool depends = false;
  for (int i = 0; i < node->attribute.count; i++)
    depends |= *node->attribute.items[i].ref_attr_name != 0;
  for (int i = 0; i < node->input.count; i++)
    depends |= scope_is_absent(scope, node->input.items[i]);
  return depends;
}

// Adds an attribute. One that refers to an attribute which neither call nor function gives is
// absent.
static void add_attribute(Importer *importer, OnnxNode *node, const OnnxAttribute *attribute) {
  Arena *arena = &importer->context->arena;
  if (!*attribute->ref_attr_name) {
    array_push(arena, &node->attribute, *attribute);
    return;
  }
  const OnnxAttribute *given = map_find(importer->scope->attributes, attribute->ref_attr_name);
  if (!given) return;
  array_push(arena, &node->attribute, *given);
  array_last(&node->attribute).name = attribute->name;
}

const OnnxNode *function_node(Importer *importer, const OnnxNode *node) {
  Arena *arena = &importer->context->arena;
  if (!depends_on_call(importer->scope, node)) return node;
  OnnxNode *result = arena_copy(arena, node, sizeof *node);
  result->attribute = (OnnxAttributes){0};
  result->input = (OnnxNames){0};
  for (int i = 0; i < node->attribute.count; i++)
    add_attribute(importer, result, &node->attribute.items[i]);
  for (int i = 0; i < node->input.count; i++) {
    Str name = node->input.items[i];
    bool absent = scope_is_absent(importer->scope, name);
    array_push(arena, &result->input, absent ? str_intern(importer->context, "") : name);
  }
  return result;
}

// ---- A call -----------------------------------------------------------------------------------

static bool is_called_already(const ImportScope *scope, const OnnxFunction *function) {
  for (; scope; scope = scope->caller)
    if (scope->function == function) return true;
  return false;
}

static bool knows_attribute(const OnnxFunction *function, Str name) {
  for (int i = 0; i < function->attribute.count; i++)
    if (function->attribute.items[i] == name) return true;
  for (int i = 0; i < function->attribute_proto.count; i++)
    if (function->attribute_proto.items[i].name == name) return true;
  return false;
}

static bool check_call(Import *import, const OnnxFunction *function) {
  const OnnxNode *node = import->node;
  bool ok = true;
  if (is_called_already(import->importer->scope, function))
    return import_refuse(import, "the function calls itself without end");
  if (node->input.count > function->input.count || node->output.count > function->output.count)
    return import_refuse(import, "has %d inputs and %d results, the function has %d and %d",
                         node->input.count, node->output.count, function->input.count,
                         function->output.count);
  for (int i = 0; i < node->attribute.count; i++)
    if (!knows_attribute(function, node->attribute.items[i].name))
      ok = import_refuse(import, "the function has no attribute '%s'",
                         node->attribute.items[i].name);
  return ok;
}

static const Map *attributes_of(Import *import, const OnnxFunction *function) {
  Map *attributes = arena_new(&import->context->arena, Map);
  *attributes = map_new(&import->context->arena);
  for (int i = 0; i < function->attribute_proto.count; i++)
    map_put(attributes, function->attribute_proto.items[i].name,
            &function->attribute_proto.items[i]);
  for (int i = 0; i < import->node->attribute.count; i++)
    map_put(attributes, import->node->attribute.items[i].name, &import->node->attribute.items[i]);
  return attributes;
}

static int64_t opset_of(const OnnxFunction *function, int64_t otherwise) {
  for (int i = 0; i < function->opset_import.count; i++)
    if (!*domain_of(function->opset_import.items[i].domain))
      return function->opset_import.items[i].version;
  return otherwise;
}

// Gives an input of the call its name in the function.
static void pass_input(Import *import, ImportScope *scope, Str name, Str given) {
  const ImportScope *around = import->importer->scope;
  Value *value = *given ? scope_value(around, given) : NULL;
  if (value)
    map_put(&scope->values, name, value);
  else
    map_put(*given ? &scope->poisoned : &scope->absent, name, import);
}

static ImportScope *scope_of_call(Import *import, const OnnxFunction *function) {
  const OnnxNames *given = &import->node->input;
  ImportScope *scope =
      scope_new(import->importer, str_format(import->context, "%s/", import->name));
  scope->function = function;
  scope->attributes = attributes_of(import, function);
  scope->opset = opset_of(function, scope->opset);
  for (int i = 0; i < function->input.count; i++)
    pass_input(import, scope, function->input.items[i], i < given->count ? given->items[i] : "");
  return scope;
}

void import_call(Import *import, const OnnxFunction *function) {
  if (!check_call(import, function) || !scope_expand(import, function->node.count + 1)) return;
  ImportScope *scope = scope_of_call(import, function);
  OnnxNames results = {0};
  for (int i = 0; i < import->node->output.count; i++)
    if (import_result_is_needed(import, i))
      array_push(&import->context->arena, &results, function->output.items[i]);
  if (!scope_nodes(import->importer, scope, &function->node, &results)) return;
  for (int i = 0; i < import->node->output.count; i++) {
    Str name = function->output.items[i];
    if (import_wants_output(import, i) && !scope_has(scope, name))
      import_refuse(import, "the function does not make its result '%s'", name);
    import_result(import, i, scope_value(scope, name));
  }
}
