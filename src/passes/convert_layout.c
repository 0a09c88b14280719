// SPDX-License-Identifier: Apache-2.0
// Gives operators the layouts that the user desires, and lets the rewrites around them flow:
//   ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]})
//   ConvertLayout({}, calls={"main.y": ["NHWC", "OHWI"]})
// The second form names the function and the result of one call. The chosen operators are frozen,
// and the others follow where this rewrites the fewest bytes.
#include "passes/arguments.h"
#include "passes/flow.h"

// The padding of results holds zeros.
static const LayoutPadding zeros = {LAYOUT_PADDING_CONSTANT, 0};

typedef struct LayoutConversion {
  PassRun *run;
  Map frozen; // Node*
} LayoutConversion;

// ---- The chosen operators ----------------------------------------------------------------------

// The layouts of one operator as the user writes them.
typedef struct Desired {
  const OpLetters *letters;
  int space;
  const PyNode *data, *weights, *output; // NULL: not given
} Desired;

static const char *tag_of(const PyNode *node) {
  return node && strcmp(node->text, "default") != 0 ? node->text : NULL;
}

static bool read_desired(Context *context, const Node *node, const PyNode *list, Desired *out) {
  const OpRow *row = op_find(node->op);
  *out = (Desired){.letters = row->letters, .space = MAX_OF(row->space, 1) - 1};
  if (!row->letters)
    return diag_error(context, list->pos, "'%s' has no attributes that name layouts", node->op);
  bool is_list = (list->kind == PY_LIST || list->kind == PY_TUPLE) && list->count <= 3;
  for (int i = 0; is_list && i < list->count; i++) is_list = list->items[i]->kind == PY_STRING;
  if (!is_list || !list->count)
    return diag_error(context, list->pos,
                      "expected a list of layouts, such as [\"NHWC\", "
                      "\"OHWI\"]: of the data, the weights and the result");
  bool weighs = row->letters->weights[out->space] != NULL;
  out->data = list->items[0];
  if (weighs && list->count > 1) out->weights = list->items[1];
  if (list->count > 1 + weighs) out->output = list->items[list->count - 1];
  return true;
}

// The layout that a tensor in the order `present` has in the desired one (NULL: the same). False
// with a diagnostic.
static bool layout_for(Context *context, const PyNode *at, const char *desired, const char *present,
                       const Value *value, const Layout **out) {
  if (!desired || strcmp(desired, present) == 0) {
    *out = layout_on_shape(context, index_map_identity(context, value->rank), value->shape,
                           value->rank);
    return true;
  }
  bool is_text = at->kind == PY_STRING && strcmp(at->text, desired) == 0;
  LayoutSource source =
      is_text ? py_layout_source(at, value->rank) : layout_source(desired, value->rank);
  source.order = present;
  const IndexMap *map =
      strlen(present) == (size_t)value->rank ? index_map_parse(context, &source) : NULL;
  *out = layout_on_shape(context, map, value->shape, value->rank);
  if (*out) return true;
  return context->error_count == 0 &&
         diag_error(context, at->pos, "a tensor in the layout %s cannot be stored as %s", present,
                    desired);
}

static void set_tag(Context *context, Attrs *attrs, const char *key, const char *tag) {
  *attrs = attrs_with(&context->arena, *attrs, str_intern(context, key), expr_string(context, tag));
}

// Finds the layouts of the operator's tensors and its attributes in these.
static bool desired_layouts(NodeFlow *flow, const Desired *d, const Layout **given) {
  Context *context = flow->run->context;
  const Node *node = flow->node;
  const char *usual = d->letters->data[d->space], *usual_weights = d->letters->weights[d->space];
  const char *data = node_string(node, d->letters->data_key, usual);
  const char *weights = usual_weights ? node_string(node, "kernel_layout", usual_weights) : "";
  const char *output = node_string(node, "out_layout", data);
  if (!*output) output = data;
  const char *to = tag_of(d->data) ? tag_of(d->data) : data;
  const char *to_weights = tag_of(d->weights), *to_output = tag_of(d->output);
  if (!to_output) to_output = to;
  if (!layout_for(context, d->data, to, data, node->inputs[0], &given[0]) ||
      !layout_for(context, d->output ? d->output : d->data, to_output, output, node->outputs[0],
                  &given[flow->input_count]) ||
      (usual_weights && !layout_for(context, d->weights ? d->weights : d->data, to_weights, weights,
                                    node->inputs[1], &given[1])))
    return false;
  flow->attrs = node->attrs;
  flow->with_attrs = true;
  set_tag(context, &flow->attrs, d->letters->data_key, to);
  if (to_weights) set_tag(context, &flow->attrs, "kernel_layout", to_weights);
  set_tag(context, &flow->attrs, "out_layout", to_output);
  return true;
}

static bool changes(const NodeFlow *flow, const Layout *const *given) {
  for (int i = 0; i <= flow->input_count; i++)
    if (given[i] && !layout_changes_nothing(flow->run->context, given[i])) return true;
  return false;
}

// Makes the node with its layouts. The nodes after it that give back its results stay as they are.
static int make(LayoutConversion *c, NodeFlow *flow, int at) {
  int next = node_flow_make(flow, at);
  const GraphFunc *graph = c->run->graph;
  for (int i = next - 1; i > 0 && graph->nodes.items[i] != flow->made; i--)
    map_put(&c->frozen, graph->nodes.items[i], graph->nodes.items[i]);
  return next;
}

// Returns the number of the node after it; -1 with a diagnostic.
static int freeze(LayoutConversion *c, Node *node, const PyNode *list, int at) {
  Context *context = c->run->context;
  Desired desired;
  NodeFlow flow;
  if (!read_desired(context, node, list, &desired)) return -1;
  if (!node_flow_begin(c->run, node, &flow)) return node_is_known(node) ? -1 : at + 1;
  const Layout **given = arena_array(&context->arena, const Layout *, flow.func->param_count);
  if (!desired_layouts(&flow, &desired, given)) return -1;
  map_put(&c->frozen, node, node);
  if (!changes(&flow, given)) return at + 1;
  if (!node_flow_find(&flow, given, zeros))
    return diag_error(context, node->pos, "'%s' cannot have these layouts: %s", node->op, flow.why),
           -1;
  at = make(c, &flow, at);
  map_put(&c->frozen, flow.made, flow.made);
  return at;
}

// The name of the result in the function `graph` if `key` is "FUNCTION.RESULT"; else NULL.
static const char *result_in(const GraphFunc *graph, const char *key) {
  size_t length = strlen(graph->name);
  return strncmp(key, graph->name, length) == 0 && key[length] == '.' ? key + length + 1 : NULL;
}

// The layouts of the call that the node is, or else of the operator.
static const PyNode *desired_for(const LayoutConversion *c, const PyNode *dict, const Node *node) {
  const PyNode *calls = c->run->args[2];
  if (node->kind != NODE_OP) return NULL;
  for (int i = 0; calls && i < calls->count; i += 2) {
    const char *result = result_in(c->run->graph, calls->items[i]->text);
    if (result && strcmp(result, node->outputs[0]->name) == 0) return calls->items[i + 1];
  }
  for (int i = 0; i < dict->count; i += 2)
    if (pass_names_op(dict->items[i]->text, node->op)) return dict->items[i + 1];
  return NULL;
}

static bool freeze_all(LayoutConversion *c, const PyNode *dict) {
  GraphFunc *graph = c->run->graph;
  for (int i = 0; i < graph->nodes.count;) {
    Node *node = graph->nodes.items[i];
    const PyNode *list = map_contains(&c->frozen, node) ? NULL : desired_for(c, dict, node);
    i = list ? freeze(c, node, list, i) : i + 1;
    if (i < 0) return false;
  }
  return true;
}

// ---- The pass ----------------------------------------------------------------------------------

static bool check_operators(Context *context, const PyNode *dict) {
  int count = op_count();
  const char **names = arena_array(&context->arena, const char *, count);
  for (int i = 0; i < count; i++) names[i] = op_at(i)->name;
  for (int i = 0; i < dict->count; i += 2) {
    const char *text = dict->items[i]->text;
    bool known = false;
    for (int k = 0; !known && k < count; k++) known = pass_names_op(text, names[k]);
    if (known) continue;
    const char *dot = strncmp(text, "relax.", 6) == 0 ? text + 6 : text;
    const char *nearest = suggestion_of(&context->arena, dot, names, count);
    return diag_error(context, dict->items[i]->pos, "there is no operator '%s'%s", text, nearest);
  }
  return true;
}

static bool is_result(const GraphFunc *graph, const char *name) {
  for (int i = 0; i < graph->nodes.count; i++) {
    const Node *node = graph->nodes.items[i];
    if (node->kind == NODE_OP && strcmp(node->outputs[0]->name, name) == 0) return true;
  }
  return false;
}

// Is each call that the user names one of an operator in the function?
static bool check_calls(PassRun *run) {
  const PyNode *calls = run->args[2];
  if (!calls) return true;
  if (!pass_is_dict(run->context, calls)) return false;
  for (int i = 0; i < calls->count; i += 2) {
    const char *result = result_in(run->graph, calls->items[i]->text);
    if (result && !is_result(run->graph, result))
      return diag_error(run->context, calls->items[i]->pos,
                        "'%s' has no call of an operator whose result is '%s'", run->graph->name,
                        result);
  }
  return true;
}

bool graph_convert_layout(PassRun *run) {
  LayoutConversion c = {run, map_new(&run->context->arena)};
  if (!pass_is_dict(run->context, run->args[0]) || !check_operators(run->context, run->args[0]) ||
      !check_calls(run))
    return false;
  if (run->args[1] && run->args[1]->kind != PY_NONE)
    return diag_error(run->context, run->args[1]->pos,
                      "a call-back is called from Python only; name the calls: "
                      "calls={\"main.y\": [\"NHWC\", \"OHWI\"]}");
  if (!freeze_all(&c, run->args[0])) return false;
  if (!graph_follow_layouts(run, &c.frozen)) return false;
  graph_remove_unused(run->context, run->graph);
  return run->context->error_count == 0 && graph_optimize_rewrites(run);
}
