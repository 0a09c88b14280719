// SPDX-License-Identifier: Apache-2.0
// Finds an order in which the nodes of a graph can be computed. A file that is in such an order, as
// it should be, keeps its order; otherwise each node comes after its producers. A cycle is reported
// with its names.
#include "frontend/onnx/import.h"

enum { MOST_NAMED = 8 };

typedef struct NodeOrder {
  Importer *importer;
  const OnnxNodes *nodes;
  OnnxNames *needs; // for each node, with the names that its bodies read outside
  Map producers;    // name (Str) to OnnxNode *
  int *waiting;     // for each node the number of producers that are not placed yet
} NodeOrder;

Str onnx_node_name(const OnnxNode *node) {
  return *node->name ? node->name : node->output.count ? node->output.items[0] : node->op_type;
}

static int producer_of(const NodeOrder *order, Str name) {
  OnnxNode *producer = *name ? map_find(&order->producers, name) : NULL;
  return producer ? (int)(producer - order->nodes->items) : -1;
}

// ---- Names ------------------------------------------------------------------------------------

static void collect_graph(Arena *arena, const OnnxGraph *graph, OnnxNames *names);

void onnx_node_needs(Arena *arena, const OnnxNode *node, OnnxNames *names) {
  for (int i = 0; i < node->input.count; i++)
    if (*node->input.items[i]) array_push(arena, names, node->input.items[i]);
  for (int i = 0; i < node->attribute.count; i++) {
    const OnnxAttribute *attribute = &node->attribute.items[i];
    if (attribute->g) collect_graph(arena, attribute->g, names);
    for (int k = 0; k < attribute->graphs.count; k++)
      collect_graph(arena, &attribute->graphs.items[k], names);
  }
}

static void note_names(Map *own, const OnnxGraph *graph) {
  for (int i = 0; i < graph->input.count; i++) map_put(own, graph->input.items[i].name, graph);
  for (int i = 0; i < graph->initializer.count; i++)
    map_put(own, graph->initializer.items[i].name, graph);
  for (int i = 0; i < graph->node.count; i++)
    for (int k = 0; k < graph->node.items[i].output.count; k++)
      map_put(own, graph->node.items[i].output.items[k], graph);
}

// Collects the names that a body reads and does not define.
static void collect_graph(Arena *arena, const OnnxGraph *graph, OnnxNames *names) {
  Map own = map_new(arena);
  OnnxNames read = {0};
  note_names(&own, graph);
  for (int i = 0; i < graph->node.count; i++) onnx_node_needs(arena, &graph->node.items[i], &read);
  for (int i = 0; i < graph->output.count; i++)
    array_push(arena, &read, graph->output.items[i].name);
  for (int i = 0; i < read.count; i++)
    if (!map_contains(&own, read.items[i])) array_push(arena, names, read.items[i]);
}

static void collect_needs(NodeOrder *order) {
  Arena *arena = &order->importer->context->arena;
  order->needs = arena_array(arena, OnnxNames, order->nodes->count);
  for (int i = 0; i < order->nodes->count; i++)
    onnx_node_needs(arena, &order->nodes->items[i], &order->needs[i]);
}

static bool is_given(const Importer *importer, Str name) {
  return scope_has(importer->scope, name);
}

// True when the name is defined in the present scope; a body may hide names of the surrounding
// scopes.
static bool is_own(const Importer *importer, Str name) {
  const ImportScope *scope = importer->scope;
  return map_contains(&scope->values, name) || map_contains(&scope->poisoned, name) ||
         map_contains(&scope->absent, name);
}

static void check_output(NodeOrder *order, OnnxNode *node, Str name) {
  Importer *importer = order->importer;
  const OnnxNode *other = map_find(&order->producers, name);
  SourcePos pos = importer_pos(importer, importer_name(importer, node));
  if (other)
    diag_error(importer->context, pos, "its result '%s' has the name of a result of node '%s'",
               name, onnx_node_name(other));
  else if (is_own(importer, name))
    diag_error(importer->context, pos,
               "its result '%s' has the name of an input or initializer of the graph", name);
  else
    map_put(&order->producers, name, node);
}

// "; did you mean 'x'?" with a name similar to the missing one, or "". The search compares all
// names, so it stops after MOST_ERRORS errors.
static const char *suggestion(const NodeOrder *order, Str name) {
  enum { MOST_ERRORS = 10 };
  Arena *arena = &order->importer->context->arena;
  if (order->importer->context->error_count >= MOST_ERRORS) return "";
  const Map *known[] = {&order->producers, &order->importer->scope->values};
  Array(const char *) names = {0};
  for (int k = 0; k < COUNT_OF(known); k++)
    for (int i = 0; i < known[k]->count; i++)
      array_push(arena, &names, (const char *)(uintptr_t)known[k]->entries[i].key);
  return suggestion_of(arena, name, names.items, names.count);
}

static void check_input(NodeOrder *order, OnnxNode *node, Str name) {
  Importer *importer = order->importer;
  if (producer_of(order, name) >= 0 || is_given(importer, name)) return;
  diag_error(importer->context, importer_pos(importer, importer_name(importer, node)),
             "its input '%s' is missing: no node, input or initializer of the graph has that "
             "name%s",
             name, suggestion(order, name));
  scope_poison(importer, name);
}

// Checks that every result has one producer and a name of its own, and that every input has a
// producer.
static void check_names(NodeOrder *order) {
  for (int i = 0; i < order->nodes->count; i++) {
    OnnxNode *node = &order->nodes->items[i];
    for (int k = 0; k < node->output.count; k++)
      if (*node->output.items[k]) check_output(order, node, node->output.items[k]);
  }
  for (int i = 0; i < order->nodes->count; i++) {
    OnnxNode *node = &order->nodes->items[i];
    for (int k = 0; k < node->input.count; k++)
      if (*node->input.items[k]) check_input(order, node, node->input.items[k]);
  }
}

static bool is_in_order(const NodeOrder *order) {
  for (int i = 0; i < order->nodes->count; i++)
    for (int k = 0; k < order->needs[i].count; k++)
      if (producer_of(order, order->needs[i].items[k]) >= i) return false;
  return true;
}

// The first node that `at` waits for and that waits itself.
static int waiting_for(const NodeOrder *order, int at) {
  for (int k = 0; k < order->needs[at].count; k++) {
    int producer = producer_of(order, order->needs[at].items[k]);
    if (producer >= 0 && order->waiting[producer]) return producer;
  }
  bug(order->importer->context, "node %d waits for nothing", at);
}

// Each waiting node waits for another waiting node, so following them must end on a cycle.
static void report_cycle(NodeOrder *order) {
  Context *context = order->importer->context;
  int at = 0, count = 0;
  while (!order->waiting[at]) at++;
  for (int i = 0; i < order->nodes->count; i++) at = waiting_for(order, at);
  Text text = text_new(&context->arena);
  int start = at;
  do {
    if (count++ < MOST_NAMED)
      text_printf(&text, "'%s' needs ", onnx_node_name(&order->nodes->items[at]));
    at = waiting_for(order, at);
  } while (at != start);
  diag_error(
      context,
      importer_pos(order->importer, importer_name(order->importer, &order->nodes->items[start])),
      "the graph has a cycle: %s%s'%s'", text_string(&text), count > MOST_NAMED ? "… needs " : "",
      onnx_node_name(&order->nodes->items[start]));
}

static void count_waiting(NodeOrder *order, IntArray *users) {
  for (int i = 0; i < order->nodes->count; i++) {
    for (int k = 0; k < order->needs[i].count; k++) {
      int producer = producer_of(order, order->needs[i].items[k]);
      if (producer < 0) continue;
      order->waiting[i]++;
      array_push(&order->importer->context->arena, &users[producer], i);
    }
  }
}

static IntArray sorted(NodeOrder *order) {
  Arena *arena = &order->importer->context->arena;
  IntArray result = {0};
  IntArray *users = arena_array(arena, IntArray, order->nodes->count);
  order->waiting = arena_array(arena, int, order->nodes->count);
  count_waiting(order, users);
  for (int i = 0; i < order->nodes->count; i++)
    if (!order->waiting[i]) array_push(arena, &result, i);
  for (int at = 0; at < result.count; at++) {
    IntArray *ready = &users[result.items[at]];
    for (int k = 0; k < ready->count; k++)
      if (--order->waiting[ready->items[k]] == 0) array_push(arena, &result, ready->items[k]);
  }
  if (result.count == order->nodes->count) return result;
  report_cycle(order);
  return (IntArray){0};
}

IntArray importer_order(Importer *importer, const OnnxNodes *nodes) {
  NodeOrder order = {
      .importer = importer,
      .nodes = nodes,
      .producers = map_for(&importer->context->arena, nodes->count)};
  IntArray result = {0};
  collect_needs(&order);
  check_names(&order);
  if (!is_in_order(&order)) return sorted(&order);
  for (int i = 0; i < order.nodes->count; i++) array_push(&importer->context->arena, &result, i);
  return result;
}
