// SPDX-License-Identifier: Apache-2.0
// Makes a private function with the attribute Primitive of calls of programs that one program can
// compute, by TVM's rules:
//   a = call_tir(add, (x, y)); b = call_tir(exp, (a,))    =>    b = fused_add_exp(x, y)
// A node is fused with the node that all paths from it meet in (its immediate post-dominator), and
// with the nodes between them, where the patterns of these allow it. Sums of products come first,
// then what moves elements.
#include "passes/arguments.h"

#include "graph/call_program.h"

enum { NO_NODE = -1, PHASES = 2, LONGEST_NAME = 60 };

typedef struct FusedNode {
  Node *node;
  OpPattern pattern;
  IntArray users; // numbers of nodes
  bool is_result;
  int parent; // the immediate post-dominator; NO_NODE: none
  int depth;
  OpPattern path; // the most general pattern on the paths to the parent
  int group;      // the last node of its group, or one nearer to it
  OpPattern group_pattern;
} FusedNode;

typedef struct OpFusion {
  Context *context;
  PassRun *run;
  FusedNode *nodes;
  int count;
} OpFusion;

// ---- The graph ---------------------------------------------------------------------------------

static OpPattern pattern_of(Context *context, const Node *node) {
  if (node->kind != NODE_CALL_TIR || node->output_count != 1) return OP_PATTERN_OPAQUE;
  OpPattern found = program_op_pattern(context, node->callee);
  int64_t stated = attrs_int(&node->callee->attrs, "op_pattern", found);
  bool known = stated >= OP_PATTERN_ELEMENTWISE && stated <= OP_PATTERN_FUSABLE;
  return found == OP_PATTERN_OPAQUE || !known ? OP_PATTERN_OPAQUE : (OpPattern)stated;
}

static void add_users(OpFusion *f) {
  Map numbers = map_new(&f->context->arena);
  const GraphFunc *graph = f->run->graph;
  for (int i = 0; i < f->count; i++) map_put(&numbers, f->nodes[i].node, &f->nodes[i]);
  for (int i = 0; i < f->count; i++)
    for (int k = 0; k < f->nodes[i].node->input_count; k++) {
      const Value *value = f->nodes[i].node->inputs[k];
      FusedNode *from = value && value->producer ? map_find(&numbers, value->producer) : NULL;
      if (from) array_push(&f->context->arena, &from->users, i);
    }
  for (int i = 0; i < graph->output_count; i++) {
    const Node *producer = graph->outputs[i]->producer;
    FusedNode *from = producer ? map_find(&numbers, producer) : NULL;
    if (from) from->is_result = true;
  }
}

// The node in which the paths from both meet.
static int meet(const OpFusion *f, int a, int b, OpPattern *path) {
  while (a != b) {
    if (a == NO_NODE || b == NO_NODE) return NO_NODE;
    int depth_a = f->nodes[a].depth, depth_b = f->nodes[b].depth;
    if (depth_a >= depth_b) *path = MAX_OF(*path, f->nodes[a].path), a = f->nodes[a].parent;
    if (depth_b >= depth_a) *path = MAX_OF(*path, f->nodes[b].path), b = f->nodes[b].parent;
  }
  return a;
}

static void find_parent(const OpFusion *f, FusedNode *node) {
  node->parent = NO_NODE;
  node->depth = 1;
  node->path = node->is_result || !node->users.count ? OP_PATTERN_OPAQUE : OP_PATTERN_ELEMENTWISE;
  if (node->path == OP_PATTERN_OPAQUE) return;
  node->parent = (int)node->users.items[0];
  for (int i = 0; i < node->users.count; i++) {
    int user = (int)node->users.items[i];
    node->path = MAX_OF(node->path, f->nodes[user].pattern);
    node->parent = meet(f, node->parent, user, &node->path);
  }
  if (node->parent != NO_NODE) node->depth = f->nodes[node->parent].depth + 1;
}

static OpFusion read_graph(PassRun *run) {
  OpFusion f = {run->context, run, NULL, run->graph->nodes.count};
  f.nodes = arena_array(&run->context->arena, FusedNode, f.count);
  for (int i = 0; i < f.count; i++) {
    f.nodes[i].node = run->graph->nodes.items[i];
    f.nodes[i].pattern = f.nodes[i].group_pattern = pattern_of(run->context, f.nodes[i].node);
    f.nodes[i].group = i;
  }
  add_users(&f);
  for (int i = f.count - 1; i >= 0; i--) find_parent(&f, &f.nodes[i]);
  return f;
}

// ---- Groups ------------------------------------------------------------------------------------

static int group_of(OpFusion *f, int node) {
  while (f->nodes[node].group != node) node = f->nodes[node].group;
  return node;
}

// May the group of a node on the path, or at its end, be part of the group of the first node?
static bool fits(OpPattern first, OpPattern other, bool is_end) {
  if (first == OP_PATTERN_FUSABLE) return other <= OP_PATTERN_BROADCAST;
  if (first <= OP_PATTERN_BROADCAST && is_end) return other <= OP_PATTERN_FUSABLE;
  return other <= OP_PATTERN_INJECTIVE;
}

static bool path_fits(OpFusion *f, int from, int end, OpPattern first, bool *seen) {
  if (seen[from]) return true;
  seen[from] = true;
  OpPattern pattern = f->nodes[group_of(f, from)].group_pattern;
  if (!fits(first, pattern, from == end)) return false;
  for (int i = 0; from != end && i < f->nodes[from].users.count; i++)
    if (!path_fits(f, (int)f->nodes[from].users.items[i], end, first, seen)) return false;
  return true;
}

static bool paths_fit(OpFusion *f, int from, int end, OpPattern first, bool *seen) {
  seen[from] = true;
  for (int i = 0; i < f->nodes[from].users.count; i++)
    if (!path_fits(f, (int)f->nodes[from].users.items[i], end, first, seen)) return false;
  return true;
}

static void join(OpFusion *f, int from, int end, const bool *members) {
  for (int i = from; i < end; i++) {
    int group = group_of(f, i), to = group_of(f, end);
    if (!members[i] || group == to) continue;
    FusedNode *a = &f->nodes[group], *b = &f->nodes[to];
    b->group_pattern = MAX_OF(a->group_pattern, b->group_pattern);
    a->group = to;
  }
}

static bool may_join(const FusedNode *node, OpPattern group, int phase) {
  if (group == OP_PATTERN_FUSABLE) return phase == 0 && node->path == OP_PATTERN_ELEMENTWISE;
  if (group <= OP_PATTERN_BROADCAST) return node->path <= OP_PATTERN_REDUCE;
  return group == OP_PATTERN_INJECTIVE && phase == 1;
}

static void form_groups(OpFusion *f, int phase) {
  for (int i = 0; i < f->count; i++) {
    const FusedNode *node = &f->nodes[i];
    OpPattern pattern = f->nodes[group_of(f, i)].group_pattern;
    if (node->parent == NO_NODE || group_of(f, i) == group_of(f, node->parent) ||
        !may_join(node, pattern, phase))
      continue;
    bool *seen = arena_array(&f->context->arena, bool, f->count);
    if (paths_fit(f, i, node->parent, pattern, seen)) join(f, i, node->parent, seen);
  }
}

// ---- Functions ---------------------------------------------------------------------------------

typedef struct FusedFunction {
  OpFusion *fusion;
  GraphFunc *func;
  Map params;      // Value* of the caller -> Value*
  PtrArray inputs; // of the caller
  Text name;
} FusedFunction;

static bool is_inside(const FusedFunction *g, const Value *value) {
  for (int i = 0; i < g->func->nodes.count; i++)
    if (value->producer == g->func->nodes.items[i]) return true;
  return false;
}

static Value *param_for(FusedFunction *g, Value *value) {
  Context *context = g->fusion->context;
  Value *param = map_find(&g->params, value);
  if (param) return param;
  const char *name = value->data ? "constant" : value->name;
  param = value_new(context, name, value->type, value->shape, value->rank);
  map_put(&g->params, value, param);
  array_push(&context->arena, &g->inputs, value);
  return param;
}

static void take_node(FusedFunction *g, Node *node) {
  for (int i = 0; i < node->input_count; i++)
    if (!is_inside(g, node->inputs[i])) node->inputs[i] = param_for(g, node->inputs[i]);
  node->block = 1;
  array_push(&g->fusion->context->arena, &g->func->nodes, node);
  if (!g->name.size) text_puts(&g->name, "fused");
  if (g->name.size < LONGEST_NAME) text_printf(&g->name, "_%s", node->callee->name);
}

static Node *call_of(FusedFunction *g, const Node *last) {
  Context *context = g->fusion->context;
  GraphFunc *func = g->func;
  GraphTerm *callee = term_new(context, TERM_FUNC, func->name);
  Value **inputs = arena_array(&context->arena, Value *, g->inputs.count + 1);
  const Value *result = last->outputs[0];
  inputs[0] = value_of_term(context, callee);
  for (int i = 0; i < g->inputs.count; i++) inputs[i + 1] = g->inputs.items[i];
  Node *node = node_new(context, NODE_CALL, NULL, last->name, inputs, g->inputs.count + 1, 1);
  node->pos = last->pos;
  node->outputs[0] = value_new(context, result->name, result->type, result->shape, result->rank);
  node->outputs[0]->producer = node;
  return node;
}

static void finish_function(FusedFunction *g, Node *last) {
  Context *context = g->fusion->context;
  GraphFunc *func = g->func;
  Module *module = g->fusion->run->module;
  Expr *yes = expr_bool(context, true);
  func->name = graph_free_name(context, module, text_string(&g->name));
  func->attrs = attrs_with(&context->arena, func->attrs, str_intern(context, "Primitive"), yes);
  func->options = attrs_with(&context->arena, func->options, str_intern(context, "private"), yes);
  func->module = module;
  func->pos = last->pos;
  func->param_count = g->inputs.count;
  func->params = arena_array(&context->arena, Value *, func->param_count);
  for (int i = 0; i < func->param_count; i++)
    func->params[i] = map_find(&g->params, g->inputs.items[i]);
  func->output_count = 1;
  func->outputs = arena_copy(&context->arena, last->outputs, sizeof *func->outputs);
  module_add_graph(module, func);
}

// Makes a function of the group whose last node is number `end`; the call, or that node.
static Node *outline(OpFusion *f, int end) {
  FusedFunction g = {.fusion = f,
                     .func = graph_func_new(f->context, ""),
                     .params = map_new(&f->context->arena),
                     .name = text_new(&f->context->arena)};
  Node *last = f->nodes[end].node;
  int members = 0, block = last->block;
  for (int i = 0; i <= end; i++) members += group_of(f, i) == end;
  if (members == 1) return last;
  for (int i = 0; i <= end; i++)
    if (group_of(f, i) == end) take_node(&g, f->nodes[i].node);
  finish_function(&g, last);
  Node *call = call_of(&g, last);
  call->block = block;
  return call;
}

// Uses the result of a call in place of that of the last node of its group.
static void replace_later(OpFusion *f, int end, Value *result) {
  const Value *old = f->nodes[end].node->outputs[0];
  GraphFunc *graph = f->run->graph;
  for (int i = end + 1; i < f->count; i++) {
    const Node *node = f->nodes[i].node;
    for (int k = 0; k < node->input_count; k++)
      if (node->inputs[k] == old) node->inputs[k] = result;
  }
  for (int i = 0; i < graph->output_count; i++)
    if (graph->outputs[i] == old) graph->outputs[i] = result;
}

bool graph_fuse_ops(PassRun *run) {
  GraphFunc *graph = run->graph;
  const PyNode *level = run->args[0]; // as in TVM, 0 fuses nothing, and others are equal
  if (level && level->kind != PY_INT && level->kind != PY_UNARY)
    return diag_error(run->context, level->pos, "expected the level as a number");
  if (attrs_get(&graph->attrs, "Primitive") || (level && level->kind == PY_INT && !level->i))
    return true;
  OpFusion f = read_graph(run);
  for (int phase = 0; phase < PHASES; phase++) form_groups(&f, phase);
  graph->nodes.count = 0;
  for (int i = 0; i < f.count; i++) {
    if (group_of(&f, i) != i) continue;
    Node *node = outline(&f, i);
    array_push(&run->context->arena, &graph->nodes, node);
    if (node == f.nodes[i].node) continue;
    graph->is_written = true;
    replace_later(&f, i, node->outputs[0]);
  }
  return true;
}
