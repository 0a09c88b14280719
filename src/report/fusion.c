// SPDX-License-Identifier: Apache-2.0
// Finds which operators are fused into one kernel, and why others are not. Every kernel writes one
// tensor, so the reasons are given for the tensors between kernels.
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
  Map places = map_new(&context->arena);
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

// The kernel's operators, in order, each once.
static PtrArray nodes_of(const PlanReport *r, const PlanKernel *kernel) {
  PtrArray nodes = {0};
  for (int i = 0; i < kernel->stage_count; i++)
    for (int k = 0; k < kernel->stages[i]->parts.count; k++) {
      const Node *node = kernel->stages[i]->parts.items[k].node;
      bool seen = !node;
      for (int n = 0; n < nodes.count && !seen; n++) seen = nodes.items[n] == node;
      if (!seen) array_push(&r->context->arena, &nodes, (void *)node);
    }
  return nodes;
}

const char *fusion_operators(const PlanReport *r, const PlanKernel *kernel) {
  Text text = text_new(&r->context->arena);
  PtrArray nodes = nodes_of(r, kernel);
  for (int i = 0; i < nodes.count; i++)
    text_printf(&text, "%s%s", i ? " + " : "", ((const Node *)nodes.items[i])->name);
  if (kernel->is_rewrite) return "another layout";
  if (!nodes.count) return "a copy";
  if (kernel_has_rows(kernel)) text_puts(&text, ", row by row");
  return text_string(&text);
}

const char *fusion_because(const PlanReport *r, const PlanKernel *kernel) {
  return kernel->is_rewrite ? ""
                            : plan_fusion_blocker(r->plan, array_last(&kernel->params)).because;
}

IntArray fusion_readers(const PlanReport *r, const StageTensor *tensor) {
  IntArray readers = {0};
  for (int i = 0; i < r->plan->kernels.count; i++) {
    const PlanKernel *kernel = r->plan->kernels.items[i];
    bool reads = false;
    for (int k = 0; k + 1 < kernel->params.count; k++) reads |= kernel->params.items[k] == tensor;
    if (reads && !kernel->is_rewrite) array_push(&r->context->arena, &readers, i + 1);
  }
  return readers;
}

// ---- As JSON ------------------------------------------------------------------------------------

json_t *fusion_report_json(const PlanReport *r) {
  json_t *list = json_array();
  for (int i = 0; i < r->plan->kernels.count; i++) {
    const PlanKernel *kernel = r->plan->kernels.items[i];
    const StageTensor *tensor = array_last(&kernel->params);
    PtrArray nodes = nodes_of(r, kernel);
    IntArray readers = fusion_readers(r, tensor);
    json_t *names = json_array(), *numbers = json_array();
    for (int k = 0; k < nodes.count; k++)
      json_array_append_new(names, json_string(((const Node *)nodes.items[k])->name));
    for (int k = 0; k < readers.count; k++)
      json_array_append_new(numbers, json_integer(readers.items[k]));
    json_array_append_new(
        list, json_pack("{s:i, s:s, s:o, s:b, s:b, s:s, s:o, s:s}", "kernel", i + 1, "name",
                        kernel->name, "operators", names, "by_rows", kernel_has_rows(kernel),
                        "rewrite", kernel->is_rewrite, "writes", plan_tensor_name(tensor),
                        "read_by", numbers, "because", fusion_because(r, kernel)));
  }
  return list;
}
