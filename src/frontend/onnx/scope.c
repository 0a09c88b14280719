// SPDX-License-Identifier: Apache-2.0
// Keeps the names that nodes see: those of the graph, of bodies (with the surrounding names), and
// of functions. Expansion is limited in depth and in the number of nodes for every model.
#include "frontend/onnx/import.h"

enum { MOST_DEPTH = 100, MOST_EXPANDED = 40000 };

ImportScope *scope_new(Importer *importer, Str path) {
  Arena *arena = &importer->context->arena;
  const ImportScope *around = importer->scope;
  ImportScope *scope = arena_new(arena, ImportScope);
  *scope = (ImportScope){.caller = around,
                         .path = path,
                         .values = map_new(arena),
                         .poisoned = map_new(arena),
                         .absent = map_new(arena),
                         .needed = map_new(arena)};
  if (!around) return scope;
  scope->function = around->function;
  scope->attributes = around->attributes;
  scope->depth = around->depth + 1;
  scope->opset = around->opset;
  return scope;
}

// The innermost scope that has the name; NULL: none has.
static const ImportScope *scope_of(const ImportScope *scope, Str name) {
  while (scope && !map_contains(&scope->values, name) && !map_contains(&scope->poisoned, name) &&
         !map_contains(&scope->absent, name))
    scope = scope->outer;
  return scope;
}

Value *scope_value(const ImportScope *scope, Str name) {
  scope = scope_of(scope, name);
  return scope ? map_find(&scope->values, name) : NULL;
}

bool scope_has(const ImportScope *scope, Str name) {
  return scope_of(scope, name) != NULL;
}

bool scope_is_absent(const ImportScope *scope, Str name) {
  scope = scope_of(scope, name);
  return scope && map_contains(&scope->absent, name);
}

// A value with a name of the graph keeps that name; further names refer to the same value.
void scope_give(Importer *importer, Str name, Value *value) {
  ImportScope *scope = importer->scope;
  if (!map_contains(&importer->named, value))
    value->name = *scope->path ? str_format(importer->context, "%s%s", scope->path, name) : name;
  if (!scope->caller) map_put(&importer->named, value, name);
  map_put(&scope->values, name, value);
}

void scope_poison(Importer *importer, Str name) {
  map_put(&importer->scope->poisoned, name, importer);
}

bool scope_expand(Import *import, int count) {
  Importer *importer = import->importer;
  if (importer->scope->depth >= MOST_DEPTH)
    return import_refuse(import, "bodies and functions nest deeper than %d", MOST_DEPTH);
  if (count > MOST_EXPANDED - importer->expanded)
    return import_refuse(import,
                         "bodies and functions expand to more than %d nodes when every step is "
                         "written out, which is not supported: take fewer steps",
                         MOST_EXPANDED);
  importer->expanded += count;
  return true;
}

// ---- Lists of nodes -----------------------------------------------------------------------------

static bool is_needed(const ImportScope *scope, const OnnxNode *node) {
  for (int i = 0; i < node->output.count; i++)
    if (map_contains(&scope->needed, node->output.items[i])) return true;
  return false;
}

bool import_result_is_needed(const Import *import, int i) {
  return import_wants_output(import, i) &&
         map_contains(&import->importer->scope->needed, import->node->output.items[i]);
}

static void need(ImportScope *scope, const OnnxNames *names) {
  for (int i = 0; i < names->count; i++) map_put(&scope->needed, names->items[i], scope);
}

static void find_needed(Importer *importer, ImportScope *scope, const OnnxNodes *nodes,
                        const IntArray *order, const OnnxNames *results) {
  need(scope, results);
  for (int i = order->count - 1; i >= 0; i--) {
    const OnnxNode *node = &nodes->items[order->items[i]];
    OnnxNames read = {0};
    if (!is_needed(scope, node)) continue;
    onnx_node_needs(&importer->context->arena, node, &read);
    need(scope, &read);
  }
}

static void import_unneeded(Importer *importer, const OnnxNode *node) {
  Context *context = importer->context;
  int diags = context->diags.count, errors = context->error_count;
  bool known_late = importer->known_late;
  importer_node(importer, node);
  diag_forget(context, diags, errors);
  importer->known_late = known_late;
}

bool scope_nodes(Importer *importer, ImportScope *scope, const OnnxNodes *nodes,
                 const OnnxNames *results) {
  ImportScope *around = importer->scope;
  importer->scope = scope;
  IntArray order = importer_order(importer, nodes);
  find_needed(importer, scope, nodes, &order, results);
  for (int i = 0; i < order.count; i++) {
    const OnnxNode *node = &nodes->items[order.items[i]];
    (is_needed(scope, node) ? importer_node : import_unneeded)(importer, node);
  }
  importer->scope = around;
  return order.count == nodes->count;
}
