// SPDX-License-Identifier: Apache-2.0
// Makes calls of tensor programs of all operators, whose loops are then in the module:
//   a = R.nn.relu(x)    =>    a = R.call_tir(cls.relu, (x,), out_sinfo=R.Tensor(…))
// Equal programs are one.
#include "graph/passes/passes.h"

// The name of the program of an operator: "conv2d", "conv2d1", …
static Str program_name(Context *context, const Module *module, const Node *node) {
  const char *dot = strrchr(node->op, '.'), *base = dot ? dot + 1 : node->op;
  Str name = str_intern(context, base);
  for (int i = 1; module_find(module, name); i++) name = str_format(context, "%s%d", base, i);
  return name;
}

static PrimFunc *program_of(Context *context, Module *module, const Node *node) {
  PrimFunc *func = op_prim_func(context, node);
  if (!func) return NULL;
  func = prim_func_with_body(context, func, blocks_find_regions(context, func->body));
  for (int i = 0; i < module->funcs.count; i++) {
    PrimFunc *other = module->funcs.items[i].prim;
    if (other && prim_func_equal(context, other, func, NULL)) return other;
  }
  func = prim_func_copy(context, func);
  func->name = program_name(context, module, node);
  module_add_prim(module, func);
  return func;
}

static bool legalize(Context *context, Module *module, Node *node) {
  PrimFunc *func = program_of(context, module, node);
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

bool graph_legalize_ops(Context *context, Module *module, GraphFunc *graph) {
  for (int i = 0; i < graph->nodes.count; i++) {
    Node *node = graph->nodes.items[i];
    if (node->kind == NODE_OP && !legalize(context, module, node)) return false;
  }
  return true;
}
