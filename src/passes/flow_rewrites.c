// SPDX-License-Identifier: Apache-2.0
// Lets layout rewrites flow through operators and calls of tensor programs, one node at a time:
//   backward   w = L(f(a, b))        =>    w = f1(A(a), B(b))
//   forward    y = f(M(a), b)        =>    y = Y⁻¹(f1(a, B(b)))
// The layouts of the other operands follow from the access relations of the program (flow.c). A
// rewrite stays where one does not follow, or the rewrite is not one to one in that direction.
#include "passes/flow.h"

typedef struct FlowRewrites {
  PassRun *run;
  const char *value; // the result of the only rewrite that flows; NULL: all flow
  bool forward, moved;
} FlowRewrites;

static bool refuse(const FlowRewrites *f, const Node *node, const char *why) {
  if (!f->value) return false;
  return diag_error_as(f->run->context, DIAG_OPERATOR, node->pos,
                       "the rewrite '%s' does not flow %s: %s", f->value,
                       f->forward ? "forward" : "backward", why);
}

static bool is_chosen(const FlowRewrites *f, const Value *value) {
  return !f->value || strcmp(f->value, value->name) == 0;
}

static int number_of(const GraphFunc *graph, const Node *node) {
  int at = 0;
  while (graph->nodes.items[at] != node) at++;
  return at;
}

static const Layout **no_layouts(const NodeFlow *flow) {
  return arena_array(&flow->run->context->arena, const Layout *, flow->func->param_count);
}

// Changes the node when all its tensors follow. *at becomes the number of the node after it.
static bool change(FlowRewrites *f, NodeFlow *flow, const Layout *const *given,
                   LayoutPadding padding, int *at) {
  if (!node_flow_find(flow, given, padding)) return refuse(f, flow->node, flow->why);
  if (flow->layouts.why) return refuse(f, flow->node, flow->layouts.why);
  int next = node_flow_make(flow, number_of(f->run->graph, flow->node));
  f->moved |= next >= 0;
  if (next >= 0) *at = next;
  return next >= 0;
}

// ---- Backward ----------------------------------------------------------------------------------

static bool flow_backward(FlowRewrites *f, const Node *node, int *at) {
  Context *context = f->run->context;
  Rewrite rewrite, other;
  NodeFlow flow;
  if (!node_rewrite(context, node, &rewrite) || !is_chosen(f, node->outputs[0])) return false;
  const Value *value = node->inputs[0];
  if (!value->producer) return refuse(f, node, "no operator computes what it rewrites");
  if (node_rewrite(context, value->producer, &other))
    return refuse(f, node, "what it rewrites is a rewrite; OptimizeLayoutTransform merges them");
  if (graph_user_count(f->run->graph, value) > 1)
    return refuse(f, node, "others read what it rewrites");
  if (!node_flow_begin(f->run, value->producer, &flow)) return refuse(f, node, flow.why);
  const Layout **given = no_layouts(&flow);
  given[flow.input_count + value->output] = rewrite.layout;
  LayoutPadding padding = {LAYOUT_PADDING_CONSTANT, 0};
  if (rewrite.pads) padding.value = rewrite.pad_value;
  return change(f, &flow, given, padding, at);
}

// ---- Forward -----------------------------------------------------------------------------------

static bool flow_forward(FlowRewrites *f, Node *node, int *at) {
  Context *context = f->run->context;
  Rewrite rewrite, own;
  NodeFlow flow;
  for (int i = 0, param = 0; i < node->input_count; i++) {
    Value *value = node->inputs[i];
    if (!value) continue;
    int number = param++;
    if (!is_chosen(f, value) || !node_rewrite(context, value->producer, &rewrite)) continue;
    if (node_rewrite(context, node, &own)) return refuse(f, node, "its reader is a rewrite");
    const Layout *back = rewrite_inverse(context, value->producer);
    if (!back) return refuse(f, node, "it pads, and what padding becomes is not known");
    if (!node_flow_begin(f->run, node, &flow)) return refuse(f, node, flow.why);
    const Layout **given = no_layouts(&flow);
    given[number] = back;
    if (change(f, &flow, given, (LayoutPadding){LAYOUT_PADDING_CONSTANT, 0}, at)) return true;
    if (context->error_count) return false;
  }
  return false;
}

// ---- The pass ----------------------------------------------------------------------------------

static bool read_arguments(PassRun *run, FlowRewrites *f) {
  const PyNode *direction = run->args[0], *value = run->args[1];
  *f = (FlowRewrites){.run = run};
  bool is_text = !direction || direction->kind == PY_STRING;
  f->forward = direction && is_text && strcmp(direction->text, "forward") == 0;
  if (!is_text || (direction && !f->forward && strcmp(direction->text, "backward") != 0))
    return diag_error(run->context, direction->pos,
                      "the direction of a flow is \"backward\" or \"forward\"");
  if (value && value->kind != PY_STRING)
    return diag_error(run->context, value->pos, "expected the name of a rewrite's result");
  if (value) f->value = value->text;
  return true;
}

bool graph_flow_rewrites(PassRun *run) {
  FlowRewrites f;
  GraphFunc *graph = run->graph;
  if (!read_arguments(run, &f)) return false;
  for (int i = f.forward ? 0 : graph->nodes.count - 1; i >= 0 && i < graph->nodes.count;) {
    Node *node = graph->nodes.items[i];
    bool moved = f.forward ? flow_forward(&f, node, &i) : flow_backward(&f, node, &i);
    if (run->context->error_count || (f.value && f.moved)) break;
    if (f.forward && !moved) i++;
    if (!f.forward) i--;
  }
  graph_remove_unused(run->context, graph);
  if (f.value && !f.moved && !run->context->error_count)
    diag_error(run->context, run->args[1]->pos, "no rewrite in '%s' has the result '%s'%s",
               graph->name, f.value, f.forward ? " and a reader" : "");
  return run->context->error_count == 0;
}
