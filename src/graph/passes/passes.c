// SPDX-License-Identifier: Apache-2.0
// The table of passes over graph functions, and what several of them share.
#include "graph/passes/passes.h"

const GraphPass graph_passes[] = {
    {"LegalizeOps", "make calls of tensor programs of all operators", graph_legalize_ops},
    {"RaiseLayoutRewrites", "make layout_transform, pad and crop of programs that only rewrite",
     graph_raise_rewrites},
    {"OptimizeLayoutTransform", "cancel and merge layout_transform, pad and crop",
     graph_optimize_rewrites},
    {0},
};

const GraphPass *graph_pass_find(const char *name) {
  for (const GraphPass *pass = graph_passes; pass->name; pass++)
    if (strcmp(pass->name, name) == 0) return pass;
  return NULL;
}

bool graph_pass_run(Context *context, const GraphPass *pass, Module *module, GraphFunc *graph) {
  return graph_infer(context, graph) && pass->run(context, module, graph);
}

void graph_replace_value(GraphFunc *graph, Value *from, Value *to) {
  for (int i = 0; i < graph->nodes.count; i++) {
    Node *node = graph->nodes.items[i];
    for (int k = 0; k < node->input_count; k++)
      if (node->inputs[k] == from) node->inputs[k] = to;
  }
  for (int i = 0; i < graph->output_count; i++)
    if (graph->outputs[i] == from) graph->outputs[i] = to;
}

static bool is_used(const GraphFunc *graph, const Node *node, const Map *used) {
  for (int i = 0; i < node->output_count; i++) {
    if (map_contains(used, node->outputs[i])) return true;
    for (int k = 0; k < graph->output_count; k++)
      if (graph->outputs[k] == node->outputs[i]) return true;
  }
  return node->alone;
}

void graph_remove_unused(Context *context, GraphFunc *graph) {
  Map used = map_new(&context->arena);
  int kept = graph->nodes.count;
  for (int i = graph->nodes.count - 1; i >= 0; i--) {
    Node *node = graph->nodes.items[i];
    if (!is_used(graph, node, &used)) continue;
    for (int k = 0; k < node->input_count; k++)
      if (node->inputs[k]) map_put(&used, node->inputs[k], node);
    graph->nodes.items[--kept] = node;
  }
  int count = graph->nodes.count - kept;
  memmove(graph->nodes.items, graph->nodes.items + kept, sizeof(Node *) * (size_t)count);
  graph->nodes.count = count;
}
