// SPDX-License-Identifier: Apache-2.0
// Finds which kernels compute an operator, or read the elements that it moves.
#include "report/report.h"

// ---- Operators ----------------------------------------------------------------------------------

static NodeKernels *place_of(Arena *arena, Map *places, const Node *node) {
  NodeKernels *place = map_find(places, node);
  if (!place) map_put(places, node, place = arena_new(arena, NodeKernels));
  return place;
}

static void add_kernel(Arena *arena, NodeKernels *place, int64_t kernel) {
  int at = 0;
  while (at < place->kernels.count && place->kernels.items[at] < kernel) at++;
  if (at < place->kernels.count && place->kernels.items[at] == kernel) return;
  array_push(arena, &place->kernels, kernel);
  for (int i = place->kernels.count - 1; i > at; i--)
    place->kernels.items[i] = place->kernels.items[i - 1];
  place->kernels.items[at] = kernel;
}

static void place_computed(Arena *arena, Map *places, const Plan *plan) {
  for (int i = 0; i < plan->kernels.count; i++)
    for (int k = 0; k < plan->kernels.items[i]->stage_count; k++) {
      const StageParts *parts = &plan->kernels.items[i]->stages[k]->parts;
      for (int p = 0; p < parts->count; p++) {
        if (!parts->items[p].node) continue;
        NodeKernels *place = place_of(arena, places, parts->items[p].node);
        place->fate = NODE_COMPUTED;
        add_kernel(arena, place, i);
      }
    }
}

// Is the value computed at compile time? It is a constant, or computed from constants alone.
static bool is_known(const Map *places, const Value *value) {
  const NodeKernels *place = value->producer ? map_find(places, value->producer) : NULL;
  return value->data || (place && place->fate == NODE_FOLDED);
}

static void place_folded(Arena *arena, Map *places, const GraphFunc *graph) {
  for (int i = 0; i < graph->nodes.count; i++) {
    const Node *node = graph->nodes.items[i];
    NodeKernels *place = place_of(arena, places, node);
    bool known = place->fate == NODE_UNUSED;
    for (int k = 0; k < node->input_count && known; k++)
      known = !node->inputs[k] || is_known(places, node->inputs[k]);
    if (known) place->fate = NODE_FOLDED;
  }
}

static bool is_output(const GraphFunc *graph, const Value *value) {
  for (int i = 0; i < graph->output_count; i++)
    if (graph->outputs[i] == value) return true;
  return false;
}

// Gives each node that no kernel computes the kernels of its readers, from the last node to the
// first.
static void place_in_place(Arena *arena, Map *places, const GraphFunc *graph) {
  Map users = graph_users(arena, graph);
  for (int i = graph->nodes.count - 1; i >= 0; i--) {
    const Node *node = graph->nodes.items[i];
    NodeKernels *place = place_of(arena, places, node);
    for (int o = 0; o < node->output_count && place->fate <= NODE_IN_PLACE; o++) {
      const PtrArray *readers = map_find(&users, node->outputs[o]);
      if (place->fate == NODE_UNUSED && is_output(graph, node->outputs[o]))
        place->fate = NODE_IN_PLACE;
      for (int r = 0; readers && r < readers->count && place->fate != NODE_FOLDED; r++) {
        const NodeKernels *reader = map_find(places, readers->items[r]);
        if (reader->fate >= NODE_IN_PLACE) place->fate = NODE_IN_PLACE;
        for (int k = 0; k < reader->kernels.count; k++)
          add_kernel(arena, place, reader->kernels.items[k]);
      }
    }
  }
}

Map node_kernels(Context *context, const GraphFunc *graph, const Plan *plan) {
  Map places = map_for(&context->arena, graph->nodes.count);
  place_computed(&context->arena, &places, plan);
  place_folded(&context->arena, &places, graph);
  place_in_place(&context->arena, &places, graph);
  return places;
}

void node_kernels_add(Arena *arena, NodeKernels *all, const NodeKernels *one) {
  if (one->fate < all->fate) return;
  if (one->fate > all->fate) *all = (NodeKernels){.fate = one->fate};
  for (int i = 0; i < one->kernels.count; i++) add_kernel(arena, all, one->kernels.items[i]);
}

const char *node_kernels_text(Arena *arena, const NodeKernels *place) {
  static const char *const words[] = {"unused", "constant", "read-by", "kernel"};
  Text text = text_new(arena);
  text_puts(&text, words[place->fate]);
  for (int i = 0; i < place->kernels.count; i++)
    text_printf(&text, "%s%lld", i ? "," : ":", (long long)place->kernels.items[i] + 1);
  return text_string(&text);
}

// ---- Kernels ------------------------------------------------------------------------------------

bool kernel_has_rows(const PlanKernel *kernel) {
  for (int i = 0; i < kernel->stage_count; i++)
    if (kernel->stages[i]->member_count) return true;
  return false;
}

PtrArray kernel_nodes(Arena *arena, const PlanKernel *kernel) {
  PtrArray nodes = {0};
  for (int i = 0; i < kernel->stage_count; i++)
    for (int k = 0; k < kernel->stages[i]->parts.count; k++) {
      const Node *node = kernel->stages[i]->parts.items[k].node;
      bool seen = !node;
      for (int n = 0; n < nodes.count && !seen; n++) seen = nodes.items[n] == node;
      if (!seen) array_push(arena, &nodes, (void *)node);
    }
  return nodes;
}
