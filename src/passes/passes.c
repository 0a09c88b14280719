// SPDX-License-Identifier: Apache-2.0
// The table of passes over graph functions, and what several of them share.
#include "passes/passes.h"

#include "arith/arith.h"

// Each pass gets a graph whose values are all inferred, in one flow of operators.
static bool normalize(PassRun *run) {
  (void)run;
  return true;
}

const GraphPass graph_passes[] = {
    {"Normalize", "", "bind each value to a variable, with its shape and type", normalize,
     .any_shapes = true},
    {"LegalizeOps", "skip_ops?", "make calls of tensor programs of all operators",
     graph_legalize_ops},
    {"RaiseLayoutRewrites", "", "make layout_transform, pad and crop of programs that only rewrite",
     graph_raise_rewrites},
    {"OptimizeLayoutTransform", "", "cancel and merge layout_transform, pad and crop",
     graph_optimize_rewrites, .any_shapes = true},
    {"FlowLayoutRewrites", "direction? value?",
     "move rewrites through the operators and programs before or after them", graph_flow_rewrites},
    {"HoistLayoutRewrites", "", "move blocks that only rewrite out of programs, to their callers",
     graph_hoist_rewrites},
    {"SplitLayoutRewritePreproc", "",
     "the same for blocks with the annotation meta_schedule.layout_rewrite_preproc",
     graph_split_preproc},
    {"AlterOpImpl",
     "op_impl_map op_buffer_transforms op_buffer_axis_separators? op_buffer_input_axis_separators?",
     "replace the programs of operators by others, in other layouts", graph_alter_op_impl},
    {"ConvertLayout", "desired_layouts layout_cb? calls?",
     "give operators desired layouts, and let the rewrites around them flow", graph_convert_layout,
     .any_shapes = true},
    {"FoldConstant", "", "compute operators and programs of constants", graph_fold_constants},
    {"DeadCodeElimination", "entry_functions?",
     "remove what no result needs, and functions that none of these calls", graph_remove_dead,
     .any_shapes = true},
    {"AnnotateTIROpPattern", "", "state how results depend on inputs, in the attribute op_pattern",
     graph_annotate_patterns, .on_module = true},
    {"FuseOps", "fuse_opt_level?",
     "make functions of calls of programs that one program can compute", graph_fuse_ops},
    {"SplitHostDevice", "", "make functions of loops over threads, which the host calls",
     graph_split_host_device, .on_module = true},
    {"FuseTIR", "", "make one program of each function that FuseOps made", graph_fuse_programs,
     .on_module = true},
    {0},
};

const GraphPass *graph_pass_find(const char *name) {
  for (const GraphPass *pass = graph_passes; pass->name; pass++)
    if (strcmp(pass->name, name) == 0) return pass;
  return NULL;
}

// The verifier runs after each pass in all builds.
static bool programs_are_well_formed(Context *context, const Module *module) {
  bool ok = true;
  for (int i = 0; i < module->funcs.count && ok; i++)
    if (module->funcs.items[i].prim)
      ok = verify_prim_func(context, module->funcs.items[i].prim, IR_LEVEL_TENSOR);
  return ok;
}

bool graph_pass_run(Context *context, const GraphPass *pass, const PassCall *call, Module *module,
                    const char *function) {
  PassRun run = {.context = context, .module = module};
  if (!pass_call_arguments(context, call, pass->signature, run.args)) return false;
  if (pass->on_module) return pass->run(&run) && programs_are_well_formed(context, module);
  for (int i = 0; i < module->funcs.count; i++) {
    const ModuleFunc *func = &module->funcs.items[i];
    if (!func->graph || (function && strcmp(function, func->name) != 0)) continue;
    run.graph = func->graph;
    if (!(pass->any_shapes ? graph_infer_known : graph_infer)(context, run.graph)) return false;
    if (!pass->run(&run)) return false;
  }
  return programs_are_well_formed(context, module);
}

void graph_replace_value(GraphFunc *graph, Value *from, Value *to) {
  for (int i = 0; i < graph->nodes.count; i++) {
    Node *node = graph->nodes.items[i];
    for (int k = 0; k < node->input_count; k++)
      if (node->inputs[k] == from) node->inputs[k] = to;
  }
  for (int i = 0; i < graph->output_count; i++)
    if (graph->outputs[i] == from) graph->outputs[i] = to;
}

bool node_is_known(const Node *node) {
  bool known = true;
  for (int i = 0; i < node->input_count; i++)
    known &= !node->inputs[i] || node->inputs[i]->rank >= 0;
  for (int i = 0; i < node->output_count; i++) known &= node->outputs[i]->rank >= 0;
  return known;
}

int graph_user_count(const GraphFunc *graph, const Value *value) {
  int count = 0;
  for (int i = 0; i < graph->output_count; i++) count += graph->outputs[i] == value;
  for (int i = 0; i < graph->nodes.count; i++) {
    const Node *node = graph->nodes.items[i];
    for (int k = 0; k < node->input_count; k++) count += node->inputs[k] == value;
  }
  return count;
}

static bool is_used(const GraphFunc *graph, const Node *node, const Map *used) {
  for (int i = 0; i < node->output_count; i++) {
    if (map_contains(used, node->outputs[i])) return true;
    for (int k = 0; k < graph->output_count; k++)
      if (graph->outputs[k] == node->outputs[i]) return true;
  }
  return node->alone;
}

void graph_remove_unused(Context *context, GraphFunc *graph) {
  Map used = map_new(&context->arena);
  int kept = graph->nodes.count;
  for (int i = graph->nodes.count - 1; i >= 0; i--) {
    Node *node = graph->nodes.items[i];
    if (!is_used(graph, node, &used)) continue;
    for (int k = 0; k < node->input_count; k++)
      if (node->inputs[k]) map_put(&used, node->inputs[k], node);
    graph->nodes.items[--kept] = node;
  }
  int count = graph->nodes.count - kept;
  memmove(graph->nodes.items, graph->nodes.items + kept, sizeof(Node *) * (size_t)count);
  graph->nodes.count = count;
}

Str graph_free_name(Context *context, const Module *module, const char *base) {
  Str name = str_intern(context, base);
  for (int i = 1; module_find(module, name); i++) name = str_format(context, "%s%d", base, i);
  return name;
}

PrimFunc *graph_add_program(PassRun *run, PrimFunc *func, const char *base) {
  Context *context = run->context;
  func = prim_func_with_body(context, func, blocks_find_regions(context, func->body));
  for (int i = 0; i < run->module->funcs.count; i++) {
    PrimFunc *other = run->module->funcs.items[i].prim;
    if (other && prim_func_equal(context, other, func, NULL)) return other;
  }
  func = prim_func_copy(context, func);
  func->name = graph_free_name(context, run->module, base);
  module_add_prim(run->module, func);
  return func;
}

static bool calls(const GraphFunc *graph, const PrimFunc *func) {
  for (int i = 0; graph && i < graph->nodes.count; i++) {
    const Node *node = graph->nodes.items[i];
    if (node->callee == func || calls(node->bodies[0], func) || calls(node->bodies[1], func))
      return true;
  }
  return false;
}

static bool is_called(const Module *module, const PrimFunc *func) {
  for (int i = 0; i < module->funcs.count; i++)
    if (calls(module->funcs.items[i].graph, func)) return true;
  return false;
}

void graph_drop_program(PassRun *run, const PrimFunc *func) {
  int kept = 0;
  if (is_called(run->module, func)) return;
  for (int i = 0; i < run->module->funcs.count; i++)
    if (run->module->funcs.items[i].prim != func)
      run->module->funcs.items[kept++] = run->module->funcs.items[i];
  run->module->funcs.count = kept;
}

Node *graph_call_of(Context *context, PrimFunc *func, Value *const *inputs, int input_count,
                    const char *name) {
  int outputs = func->param_count - input_count;
  Node *node = node_new(context, NODE_CALL_TIR, NULL, name, inputs, input_count, outputs);
  node->callee = func;
  for (int i = 0; i < outputs; i++) {
    const Buffer *buffer = func->buffers[input_count + i];
    Value *value = value_new(context, name, buffer->type, buffer->shape, buffer->rank);
    value->producer = node;
    value->output = i;
    node->outputs[i] = value;
  }
  return node;
}
