// SPDX-License-Identifier: Apache-2.0
// Makes one tensor program of each private function with the attribute Primitive, and calls of it:
//   b = cls.fused_add_exp(x, y)    =>    b = R.call_tir(cls.fused_add_exp, (x, y), …)
// The program has the blocks of all programs that the function calls, and allocates the tensors
// between them.
#include "passes/passes.h"

#include "arith/arith.h"
#include "graph/call_program.h"

typedef struct ProgramFusion {
  PassRun *run;
  Context *context;
  Map programs; // the name of a function -> its PrimFunc
} ProgramFusion;

// ---- The program -------------------------------------------------------------------------------

typedef struct FusedProgram {
  Context *context;
  Te *te;
  Map buffers; // Value* -> Buffer*
} FusedProgram;

static Buffer *buffer_of(FusedProgram *p, const Value *value) {
  return map_find(&p->buffers, value);
}

static bool refuse(const FusedProgram *p, const Node *node, const char *why) {
  const char *name = node->kind == NODE_CALL_TIR ? node->callee->name : node_op_name(node);
  return diag_error_as(p->context, DIAG_UNSUPPORTED, node->pos,
                       "'%s' cannot be part of another program: %s", name, why);
}

static bool define(FusedProgram *p, const Node *node, Buffer **inputs) {
  const char *why = NULL;
  for (int i = 0; i < node->input_count; i++) {
    inputs[i] = node->inputs[i] ? buffer_of(p, node->inputs[i]) : NULL;
    if (node->inputs[i] && !inputs[i]) return refuse(p, node, "it reads a constant");
  }
  if (node->kind == NODE_OP) return op_define(p->context, p->te, node, inputs);
  if (node->kind != NODE_CALL_TIR) return refuse(p, node, "it is no tensor program");
  const PrimFunc *func = call_prim_func(p->context, node);
  if (!func) return false;
  return program_read_stages(p->te, func, inputs, node->input_count, &why) || refuse(p, node, why);
}

static bool add_node(FusedProgram *p, const Node *node) {
  int before = p->te->outputs.count;
  Buffer **inputs = arena_array(&p->context->arena, Buffer *, node->input_count);
  if (!define(p, node, inputs)) return false;
  for (int i = 0; i < node->output_count; i++)
    map_put(&p->buffers, node->outputs[i], p->te->outputs.items[before + i]);
  p->te->outputs.count = before;
  return true;
}

// NULL with a diagnostic, or without one where the function returns a parameter.
static PrimFunc *program_of(Context *context, GraphFunc *graph) {
  FusedProgram p = {context, te_new(context), map_new(&context->arena)};
  if (!graph_infer(context, graph)) return NULL;
  for (int i = 0; i < graph->param_count; i++) {
    const Value *param = graph->params[i];
    map_put(&p.buffers, param, te_input(p.te, param->name, param->type, param->shape, param->rank));
  }
  for (int i = 0; i < graph->nodes.count; i++)
    if (!add_node(&p, graph->nodes.items[i])) return NULL;
  for (int i = 0; i < graph->output_count; i++) {
    if (!graph->outputs[i]->producer) return NULL;
    array_push(&context->arena, &p.te->outputs, buffer_of(&p, graph->outputs[i]));
  }
  PrimFunc *func = te_prim_func(p.te, graph->name);
  func->attrs = attrs_with(&context->arena, func->attrs, str_intern(context, "private"),
                           expr_bool(context, true));
  func->body = blocks_find_regions(context, func->body);
  return func;
}

// ---- Calls -------------------------------------------------------------------------------------

static void make_calls(ProgramFusion *f, GraphFunc *graph);

static void make_call(ProgramFusion *f, Node *node) {
  const GraphTerm *callee = node->kind == NODE_CALL ? node->inputs[0]->term : NULL;
  PrimFunc *func =
      callee && callee->kind == TERM_FUNC ? map_find(&f->programs, callee->text) : NULL;
  for (int i = 0; i < 2; i++)
    if (node->bodies[i]) make_calls(f, node->bodies[i]);
  if (!func) return;
  node->kind = NODE_CALL_TIR;
  node->callee = func;
  node->inputs++;
  node->input_count--;
  Value *result = node->outputs[0];
  const Buffer *buffer = func->buffers[node->input_count];
  if (result->rank >= 0) return;
  result->type = buffer->type;
  result->rank = buffer->rank;
  result->shape = buffer->shape;
}

static void make_calls(ProgramFusion *f, GraphFunc *graph) {
  for (int i = 0; i < graph->nodes.count; i++) make_call(f, graph->nodes.items[i]);
}

// Removes the programs that only the function called.
static void drop_programs(PassRun *run, const GraphFunc *graph) {
  for (int i = 0; i < graph->nodes.count; i++)
    if (graph->nodes.items[i]->callee) graph_drop_program(run, graph->nodes.items[i]->callee);
}

bool graph_fuse_programs(PassRun *run) {
  ProgramFusion f = {run, run->context, map_new(&run->context->arena)};
  Module *module = run->module;
  PtrArray fused = {0};
  for (int i = 0; i < module->funcs.count; i++) {
    ModuleFunc *func = &module->funcs.items[i];
    if (!func->graph || !attrs_int(&func->graph->attrs, "Primitive", 0)) continue;
    PrimFunc *program = program_of(run->context, func->graph);
    if (run->context->error_count) return false;
    if (!program || program->param_count != func->graph->param_count + 1) continue;
    map_put(&f.programs, func->name, program);
    array_push(&run->context->arena, &fused, func->graph);
    func->prim = program;
    func->graph = NULL;
  }
  for (int i = 0; i < module->funcs.count; i++)
    if (module->funcs.items[i].graph) make_calls(&f, module->funcs.items[i].graph);
  for (int i = 0; i < fused.count; i++) drop_programs(run, fused.items[i]);
  return true;
}
