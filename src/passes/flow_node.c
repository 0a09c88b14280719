// SPDX-License-Identifier: Apache-2.0
// Gives a node of a graph function other layouts of its tensors:
//   y = f(a, b)    =>    y1 = f1(A(a), B(b));  y = Y⁻¹(y1)
#include "passes/flow.h"

Value *node_flow_input(const NodeFlow *flow, int param) {
  for (int i = 0, seen = 0; i < flow->node->input_count; i++)
    if (flow->node->inputs[i] && seen++ == param) return flow->node->inputs[i];
  return NULL;
}

bool node_flow_begin(PassRun *run, Node *node, NodeFlow *flow) {
  *flow = (NodeFlow){.run = run, .node = node, .why = "it is no operator and no call of a program"};
  if (node->kind != NODE_OP && node->kind != NODE_CALL_TIR) return false;
  if (!node_is_known(node)) return flow->why = "the shapes of its tensors are not known", false;
  for (int i = 0; i < node->input_count; i++) flow->input_count += node->inputs[i] != NULL;
  flow->func = op_prim_func(run->context, node);
  return flow->func != NULL;
}

// ---- The results -------------------------------------------------------------------------------

// Is the node a rewrite that gives a result this layout? It is then the result as it is stored.
static bool is_stored(const NodeFlow *flow, const Node *node, const Value *result,
                      const Layout *layout) {
  Context *context = flow->run->context;
  Rewrite rewrite;
  Expr *shape[TE_MAX_RANK];
  if (node->input_count != 1 || node->inputs[0] != result ||
      !node_rewrite(context, node, &rewrite) || layout->physical_rank != node->outputs[0]->rank ||
      !layout_physical_shape(context, layout, result->shape, result->rank, shape))
    return false;
  for (int i = 0; i < layout->physical_rank; i++)
    if (shape[i] != node->outputs[0]->shape[i]) return false;
  bool same_value = !rewrite.pads || (flow->padding.kind == LAYOUT_PADDING_CONSTANT &&
                                      flow->padding.value == rewrite.pad_value);
  return same_value &&
         layout_maps_equal(context, rewrite.layout, layout->map).verdict == VERDICT_YES;
}

// Reads a node or the caller the result, other than as it is stored in the layout?
static bool is_read(const NodeFlow *flow, const Value *result, const Layout *layout) {
  const GraphFunc *graph = flow->run->graph;
  for (int i = 0; i < graph->nodes.count; i++) {
    const Node *node = graph->nodes.items[i];
    for (int k = 0; k < node->input_count; k++)
      if (node->inputs[k] == result && !(layout && is_stored(flow, node, result, layout)))
        return true;
  }
  for (int i = 0; i < graph->output_count; i++)
    if (graph->outputs[i] == result) return true;
  return false;
}

// Can the readers of all results have them as they were?
static bool gives_results_back(NodeFlow *flow) {
  Context *context = flow->run->context;
  for (int i = 0; i < flow->node->output_count; i++) {
    const Value *result = flow->node->outputs[i];
    const Layout *layout = flow->layouts.params[flow->input_count + i];
    if (!layout || !is_read(flow, result, layout) ||
        layout_gives_back(context, layout, result->shape, result->rank))
      continue;
    flow->why = str_format(context, "no operators give back '%s' from the layout %s", result->name,
                           layout_text(context, layout));
    return false;
  }
  return true;
}

// Can the operators be made that give back a result of symbolic size? Extents that only the program
// computes are not known to them.
static bool can_give_back(NodeFlow *flow, int number) {
  Context *context = flow->run->context;
  const Layout *layout = flow->layouts.params[flow->input_count + number];
  const Value *result = flow->node->outputs[number];
  if (!layout || layout->is_static || !is_read(flow, result, layout)) return true;
  const Buffer *buffer = flow->program->buffers[flow->input_count + number];
  GraphFunc nowhere = {0};
  Insertion insertion = {context, &nowhere, 0, flow->node};
  Value *stored = value_new(context, result->name, buffer->type, buffer->shape, buffer->rank);
  int diags = context->diags.count, errors = context->error_count;
  bool made = insert_inverse(&insertion, stored, layout, NULL) != NULL;
  diag_forget(context, diags, errors);
  if (!made) flow->why = "an extent of a result would not be known";
  return made;
}

bool node_flow_find(NodeFlow *flow, const Layout *const *given, LayoutPadding padding) {
  Context *context = flow->run->context;
  flow->padding = padding;
  if (!flow_find(context, flow->func, flow->input_count, given, &flow->layouts, &flow->why))
    return false;
  if (!gives_results_back(flow)) return false;
  flow->program =
      flow_apply(context, flow->func, flow->input_count, &flow->layouts, &padding, &flow->why);
  for (int i = 0; flow->program && i < flow->node->output_count; i++)
    if (!can_give_back(flow, i)) return false;
  return flow->program != NULL;
}

Value *node_flow_undone(Context *context, const Value *value, const Layout *layout) {
  Rewrite rewrite;
  if (!node_rewrite(context, value->producer, &rewrite) || rewrite.pads) return NULL;
  Value *source = value->producer->inputs[0];
  const IndexMap *both = index_map_compose(context, layout->map, rewrite.layout->map);
  const Layout *whole = layout_on_shape(context, both, source->shape, source->rank);
  return whole && layout_changes_nothing(context, whole) ? source : NULL;
}

static const AxisSeparators *separators_of(const NodeFlow *flow, int param) {
  return flow->separators ? flow->separators[param] : NULL;
}

static Value *laid_out(const NodeFlow *flow, Insertion *insertion, int param) {
  Context *context = insertion->context;
  Value *value = node_flow_input(flow, param);
  const Layout *layout = flow->layouts.params[param];
  Value *source = layout ? node_flow_undone(context, value, layout) : value;
  if (source) return source;
  return insert_rewrite(insertion, value,
                        &(Rewrite){.layout = layout,
                                   .pads = layout_pads(context, layout),
                                   .separators = separators_of(flow, param)});
}

static void remove_node(GraphFunc *graph, int at) {
  graph->nodes.count--;
  for (int i = at; i < graph->nodes.count; i++) graph->nodes.items[i] = graph->nodes.items[i + 1];
}

// Puts the result as it is now stored in place of the rewrites that give it this layout.
static void take_rewrites(const NodeFlow *flow, const Value *result, Value *stored,
                          const Layout *layout) {
  GraphFunc *graph = flow->run->graph;
  for (int i = 0; i < graph->nodes.count; i++) {
    const Node *node = graph->nodes.items[i];
    if (!is_stored(flow, node, result, layout)) continue;
    graph_replace_value(graph, node->outputs[0], stored);
    remove_node(graph, i--);
  }
}

static bool replace_result(NodeFlow *flow, Insertion *insertion, int number, Value *stored) {
  Value *result = flow->node->outputs[number], *restored = stored;
  int param = flow->input_count + number;
  const Layout *layout = flow->layouts.params[param];
  GraphFunc *graph = flow->run->graph;
  stored->name = result->name;
  if (layout) take_rewrites(flow, result, stored, layout);
  if (!is_read(flow, result, NULL)) return true;
  if (layout) restored = insert_inverse(insertion, stored, layout, separators_of(flow, param));
  if (!restored)
    return diag_error_as(insertion->context, DIAG_OPERATOR, flow->node->pos,
                         "no operators give back '%s' from the layout %s", result->name,
                         layout_text(insertion->context, layout));
  graph_replace_value(graph, result, restored);
  if (restored != stored) stored->name = str_format(insertion->context, "%s_stored", result->name);
  restored->name = result->name;
  return true;
}

static const char *base_name(const Node *node) {
  const char *name = node->kind == NODE_CALL_TIR ? node->callee->name : node->op;
  const char *dot = strrchr(name, '.');
  return dot ? dot + 1 : name;
}

int node_flow_make(NodeFlow *flow, int at) {
  PassRun *run = flow->run;
  Context *context = run->context;
  GraphFunc *graph = run->graph;
  Insertion insertion = {context, graph, at, flow->node};
  Value **inputs = arena_array(&context->arena, Value *, flow->input_count);
  for (int i = 0; i < flow->input_count; i++) {
    inputs[i] = laid_out(flow, &insertion, i);
    if (!inputs[i]) return -1;
  }
  Node *node = node_flow_operator(flow, inputs);
  if (!node) {
    PrimFunc *program = graph_add_program(run, flow->program, base_name(flow->node));
    node = graph_call_of(context, program, inputs, flow->input_count, flow->node->name);
  }
  flow->made = node;
  if (!insert_node(&insertion, node)) return -1;
  for (int i = 0; i < node->output_count; i++)
    if (!replace_result(flow, &insertion, i, node->outputs[i])) return -1;
  remove_node(graph, insertion.at); // new nodes stand before the old one
  if (flow->node->callee) graph_drop_program(run, flow->node->callee);
  return insertion.at;
}
