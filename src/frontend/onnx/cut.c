// SPDX-License-Identifier: Apache-2.0
// Suggests tensors at which a model could end when its later nodes cannot be compiled. These are
// tensors that were imported and that nodes which failed read, such as the boxes and scores before
// a selection among them.
#include "frontend/onnx/import.h"

#include "graph/graph.h"

typedef struct SubgraphCut {
  Importer *importer;
  Map seen;
  PtrArray names; // Str: the tensors to end with
} SubgraphCut;

static bool is_behind(const Importer *importer, const OnnxNode *node) {
  for (int i = 0; i < node->output.count; i++)
    if (map_contains(&importer->scope->poisoned, node->output.items[i])) return true;
  return false;
}

// Adds a tensor that is computed at run time; inputs and known values are left out.
static void end_with(SubgraphCut *cut, Str name) {
  const Value *value = scope_value(cut->importer->scope, name);
  if (!value || !value->producer || value_is_list(value) || map_contains(&cut->seen, name)) return;
  map_put(&cut->seen, name, value);
  array_push(&cut->importer->context->arena, &cut->names, (void *)(uintptr_t)name);
}

static const char *tensors_text(const SubgraphCut *cut) {
  enum { SHOWN = 12 };
  Context *context = cut->importer->context;
  Text text = text_new(&context->arena);
  for (int i = 0; i < MIN_OF(cut->names.count, SHOWN); i++) {
    const Value *value = scope_value(cut->importer->scope, cut->names.items[i]);
    text_printf(&text, "\n'%s' %s %s", (Str)cut->names.items[i], dtype_name(context, value->type),
                extents_text(context, value->shape, value->rank));
  }
  if (cut->names.count > SHOWN) text_printf(&text, "\nand %d more", cut->names.count - SHOWN);
  return text_string(&text);
}

void importer_tell_cut(Importer *importer) {
  Arena *arena = &importer->context->arena;
  const OnnxGraph *graph = importer->model->graph;
  SubgraphCut cut = {.importer = importer, .seen = map_new(arena)};
  int before = graph->node.count;
  for (int i = 0; i < graph->node.count; i++) {
    OnnxNames needs = {0};
    if (!is_behind(importer, &graph->node.items[i])) continue;
    before--;
    onnx_node_needs(arena, &graph->node.items[i], &needs);
    for (int k = 0; k < needs.count; k++) end_with(&cut, needs.items[k]);
  }
  if (!cut.names.count) return;
  for (int i = 0; i < graph->output.count; i++) end_with(&cut, graph->output.items[i].name);
  diag_note(importer->context, importer_pos(importer, NULL),
            "%d of %d operators need none of that: the model can end with these tensors "
            "(onnx.utils.extract_model)%s",
            before, graph->node.count, tensors_text(&cut));
}
