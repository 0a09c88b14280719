// SPDX-License-Identifier: Apache-2.0
// Infers the shapes and types of a whole graph function, of which a script states only some. A
// stated shape or type must agree with the definition.
#include "graph/opaque.h"

// Could the value be of the type that is stated? An element type of void leaves it open.
static bool agree(const Value *a, const Value *b) {
  bool same_type = dtype_equal(a->type, DTYPE_VOID) || dtype_equal(a->type, b->type);
  if (!same_type || a->rank != b->rank) return false;
  for (int i = 0; i < a->rank; i++) {
    int64_t x, y;
    if (expr_as_int(a->shape[i], &x) && expr_as_int(b->shape[i], &y) && x != y) return false;
  }
  return true;
}

static bool is_known(Context *context, const Value *value) {
  if (!value) return true;
  if (value->data && !value->data->data)
    return diag_error(context, value->pos, "the contents of constant '%s' are not in this file",
                      value->data->name);
  return value->rank >= 0 ||
         diag_error(context, value->pos, "the shape of '%s' is not known", value->name);
}

// An `if` whose condition is not known until run time computes both branches and selects the
// elements of one, so both need the shape of the result.
static bool check_branches(Context *context, const Node *node) {
  const Value *condition = node->inputs[0], *a = node->inputs[1], *b = node->inputs[2];
  if (condition->rank)
    return diag_error(context, node->pos, "the condition is %s, expected one bool",
                      value_type_text(context, condition));
  return agree(a, b) ||
         diag_error(context, node->pos,
                    "the branches give %s and %s; a condition that is not known until run time "
                    "needs results of one type",
                    value_type_text(context, a), value_type_text(context, b));
}

// ---- Sizes that R.match_cast names -------------------------------------------------------------

typedef struct NamedSizes {
  Context *context;
  bool open;     // tensors whose shape is not known, and what is computed from them, stay so
  Map of_params; // the sizes of parameters
  Map values;    // from any other size that a cast names to its value
} NamedSizes;

static bool note_size(Visitor *visitor, Expr *e) {
  if (e->op == EXPR_VAR) map_put(visitor->env, e, e);
  return true;
}

static NamedSizes named_sizes_new(Context *context, const GraphFunc *graph, bool open) {
  NamedSizes sizes = {context, open, map_new(&context->arena), map_new(&context->arena)};
  Visitor visitor = {.env = &sizes.of_params, .enter_expr = note_size};
  for (int i = 0; i < graph->param_count; i++)
    for (int d = 0; d < graph->params[i]->rank; d++)
      visit_expr(&visitor, graph->params[i]->shape[d]);
  return sizes;
}

static void replace_named(const NamedSizes *sizes, Node *node) {
  Context *context = sizes->context;
  for (int i = 0; i < node->attrs.count; i++) {
    Expr **value = &node->attrs.items[i].value;
    *value = substitute_expr(context, *value, &sizes->values);
  }
  for (int i = 0; i < node->output_count; i++)
    for (int d = 0; d < node->outputs[i]->rank; d++) {
      Expr **extent = &node->outputs[i]->shape[d];
      *extent = substitute_expr(context, *extent, &sizes->values);
    }
}

// Gives the sizes that are stated for the first time their values. False where one of them would
// have two.
static bool name_sizes(NamedSizes *sizes, const Value *stated, const Value *found) {
  Context *context = sizes->context;
  for (int d = 0; d < stated->rank; d++) {
    Expr *extent = substitute_expr(context, stated->shape[d], &sizes->values);
    int64_t x, y;
    if (extent->op == EXPR_VAR && !map_contains(&sizes->of_params, extent))
      map_put(&sizes->values, extent, expr_cast(context, extent->type, found->shape[d]));
    else if (expr_as_int(extent, &x) && expr_as_int(found->shape[d], &y) && x != y)
      return false;
  }
  return true;
}

// Gives the result of a cast the extents that it states. They are compared again once all sizes
// have values.
static void keep_stated(const NamedSizes *sizes, const Value *stated, Value *result) {
  Context *context = sizes->context;
  size_t bytes = sizeof *result->shape * (size_t)MAX_OF(stated->rank, 0);
  if (stated->rank < 1) return;
  result->shape = arena_copy(&context->arena, result->shape, bytes);
  for (int d = 0; d < stated->rank; d++)
    result->shape[d] = substitute_expr(context, stated->shape[d], &sizes->values);
}

static bool is_from(const Node *node, const char *construct) {
  return node->kind == NODE_OP && node->user_op && !strcmp(node->user_op, construct);
}

// ---- Nodes -------------------------------------------------------------------------------------

static bool infer_node(NamedSizes *sizes, Node *node) {
  Context *context = sizes->context;
  if (sizes->values.count) replace_named(sizes, node);
  for (int i = 0; i < node->input_count; i++) {
    if (sizes->open && node->inputs[i] && node->inputs[i]->rank < 0) return true;
    if (!is_known(context, node->inputs[i])) return false;
  }
  if (node->kind == NODE_CALL_TIR) return true;
  if (is_from(node, "if") && !check_branches(context, node)) return false;
  Value *stated = arena_array(&context->arena, Value, node->output_count);
  for (int i = 0; i < node->output_count; i++) stated[i] = *node->outputs[i];
  if (!(node->kind == NODE_OPAQUE ? opaque_infer : op_infer)(context, node)) return false;
  for (int i = 0; i < node->output_count; i++) {
    bool casts = is_from(node, "match_cast");
    const Value *found = casts ? node->inputs[0] : node->outputs[i];
    bool agrees = stated[i].rank < 0 || agree(&stated[i], found);
    if (agrees && casts) agrees = name_sizes(sizes, &stated[i], found);
    if (!agrees)
      return diag_error(context, node->pos, "'%s' is stated to be %s and is %s",
                        node->outputs[i]->name, value_type_text(context, &stated[i]),
                        value_type_text(context, found));
    if (casts) keep_stated(sizes, &stated[i], node->outputs[i]);
  }
  return true;
}

// Skips a node whose inputs have errors, since those are reported already.
static bool infer_after(NamedSizes *sizes, Map *wrong, Node *node) {
  bool reached = true;
  for (int i = 0; i < node->input_count; i++)
    reached &= !node->inputs[i] || !map_contains(wrong, node->inputs[i]);
  if (reached && infer_node(sizes, node)) return true;
  for (int i = 0; i < node->output_count; i++) map_put(wrong, node->outputs[i], node);
  for (int i = 0; i < node->input_count; i++) // one that is not known is reported once
    if (node->inputs[i] && node->inputs[i]->rank < 0) map_put(wrong, node->inputs[i], node);
  return false;
}

static bool infer(Context *context, GraphFunc *graph, bool open) {
  bool ok = graph_flatten(context, graph);
  if (!ok) return false;
  DiagCode code = diag_code_set(context, DIAG_MODEL);
  Map wrong = map_new(&context->arena);
  NamedSizes sizes = named_sizes_new(context, graph, open);
  for (int i = 0; i < graph->nodes.count; i++)
    ok &= infer_after(&sizes, &wrong, graph->nodes.items[i]);
  for (int i = 0; !open && i < graph->output_count; i++)
    ok &= map_contains(&wrong, graph->outputs[i]) || is_known(context, graph->outputs[i]);
  for (int i = 0; !open && ok && i < graph->param_count; i++)
    ok = is_known(context, graph->params[i]);
  diag_code_set(context, code);
  return ok;
}

bool graph_infer(Context *context, GraphFunc *graph) {
  return infer(context, graph, false);
}

bool graph_infer_known(Context *context, GraphFunc *graph) {
  return infer(context, graph, true);
}

static void infer_within(Context *context, Value *value, int depth) {
  enum { MOST_DEPTH = 1000 };
  Node *node = value->producer;
  bool known =
      node && node->kind == NODE_OP && !node->keywords && op_find(node->op) && depth < MOST_DEPTH;
  for (int i = 0; known && i < node->input_count; i++) {
    Value *input = node->inputs[i];
    known = input && !input->term && !input->info;
    if (known && input->rank < 0) infer_within(context, input, depth + 1);
    known = known && input->rank >= 0;
  }
  if (known) op_infer(context, node);
}

void graph_infer_value(Context *context, Value *value) {
  infer_within(context, value, 0);
}
