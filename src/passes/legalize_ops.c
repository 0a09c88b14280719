// SPDX-License-Identifier: Apache-2.0
// Makes calls of tensor programs of all operators, whose loops are then in the module:
//   a = R.nn.relu(x)    =>    a = R.call_tir(cls.relu, (x,), out_sinfo=R.Tensor(…))
// Equal programs are one. An operator stays whose numbers have sizes that no tensor of it has, such
// as R.shape_to_tensor(R.shape([n])): a program would have nothing that gives it n.
#include "passes/arguments.h"

static void state_separators(Context *context, const Node *node, const char *key, Buffer *buffer) {
  int64_t separators[TE_MAX_RANK];
  int count = node_ints(node, key, separators, TE_MAX_RANK);
  buffer->separators = arena_array(&context->arena, int, count);
  buffer->separator_count = count;
  for (int i = 0; i < count; i++) buffer->separators[i] = (int)separators[i];
}

static PrimFunc *program_of(PassRun *run, const Node *node) {
  PrimFunc *func = op_prim_func(run->context, node);
  if (func && strcmp(node->op, "layout_transform") == 0) {
    state_separators(run->context, node, "input_axis_separators", func->buffers[0]);
    state_separators(run->context, node, "axis_separators", func->buffers[1]);
  }
  const char *dot = strrchr(node->op, '.');
  return func ? graph_add_program(run, func, dot ? dot + 1 : node->op) : NULL;
}

static bool legalize(PassRun *run, Node *node) {
  PrimFunc *func = program_of(run, node);
  int count = 0;
  if (!func) return false;
  for (int i = 0; i < node->input_count; i++)
    if (node->inputs[i]) node->inputs[count++] = node->inputs[i];
  node->input_count = count;
  node->kind = NODE_CALL_TIR;
  node->callee = func;
  node->op = NULL;
  node->attrs = (Attrs){0};
  return true;
}

static bool is_skipped(const PassRun *run, const Node *node) {
  const PyNode *skipped = run->args[0];
  for (int i = 0; skipped && i < skipped->count; i++)
    if (pass_names_op(skipped->items[i]->text, node->op)) return true;
  return false;
}

// A list of names of operators, or nothing.
static bool check_skipped(const PassRun *run) {
  const PyNode *skipped = run->args[0];
  bool is_list = !skipped || skipped->kind == PY_LIST || skipped->kind == PY_TUPLE;
  for (int i = 0; skipped && is_list && i < skipped->count; i++)
    is_list = skipped->items[i]->kind == PY_STRING;
  return is_list || diag_error(run->context, skipped->pos, "expected a list of names of operators");
}

typedef struct ExtentSearch {
  const Node *node;
  bool missing; // a size was seen that is no extent of a tensor of the node
} ExtentSearch;

static bool has_extent(const Value *value, const Expr *size) {
  for (int d = 0; value && d < value->rank; d++)
    if (value->shape[d] == size) return true;
  return false;
}

static bool see_size(Visitor *visitor, Expr *e) {
  ExtentSearch *search = visitor->env;
  const Node *node = search->node;
  bool found = e->op != EXPR_VAR;
  for (int i = 0; !found && i < node->input_count; i++) found = has_extent(node->inputs[i], e);
  for (int i = 0; !found && i < node->output_count; i++) found = has_extent(node->outputs[i], e);
  search->missing |= !found;
  return true;
}

// Do the tensors of the node have all sizes that its attributes read?
static bool has_sizes(const Node *node) {
  ExtentSearch search = {node, false};
  Visitor visitor = {.env = &search, .enter_expr = see_size};
  for (int i = 0; i < node->attrs.count; i++) visit_expr(&visitor, node->attrs.items[i].value);
  return !search.missing;
}

bool graph_legalize_ops(PassRun *run) {
  if (!check_skipped(run)) return false;
  for (int i = 0; i < run->graph->nodes.count; i++) {
    Node *node = run->graph->nodes.items[i];
    bool stays = node->kind != NODE_OP || is_skipped(run, node) || !has_sizes(node);
    if (!stays && !legalize(run, node)) return false;
  }
  return true;
}
