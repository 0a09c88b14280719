// SPDX-License-Identifier: Apache-2.0
// Removes what no result needs: nodes of the functions, then private functions that no function
// calls which can be called from outside. With `entry_functions`, only those can.
#include "passes/passes.h"

typedef struct Reach {
  Context *context;
  Module *module;
  Map found; // the functions that are reached, by name
} Reach;

static void reach(Reach *r, const ModuleFunc *func);

static void reach_name(Reach *r, Str name) {
  const ModuleFunc *func = module_find(r->module, name);
  if (func) reach(r, func);
}

static bool see_call(Visitor *visitor, Expr *e) {
  if (e->op == EXPR_CALL_MODULE) reach_name(visitor->env, e->as.s);
  return true;
}

static void reach(Reach *r, const ModuleFunc *func) {
  if (map_contains(&r->found, func->name)) return;
  map_put(&r->found, func->name, func);
  Visitor visitor = {.env = r, .enter_expr = see_call};
  if (func->prim) visit_stmt(&visitor, func->prim->body);
  for (int i = 0; func->graph && i < func->graph->nodes.count; i++)
    if (func->graph->nodes.items[i]->kind == NODE_CALL_TIR)
      reach_name(r, func->graph->nodes.items[i]->callee->name);
}

static bool is_private(const ModuleFunc *func) {
  return attrs_int(func->prim ? &func->prim->attrs : &func->graph->options, "private", 0) != 0;
}

static bool is_entry(const PassRun *run, const ModuleFunc *func) {
  const PyNode *entries = run->args[0];
  for (int i = 0; entries && i < entries->count; i++)
    if (!strcmp(entries->items[i]->text, func->name)) return true;
  return !entries && !is_private(func);
}

// A list of names of functions of the module, or nothing.
static bool check_entries(const PassRun *run) {
  const PyNode *entries = run->args[0];
  bool is_list = !entries || py_is_list(entries);
  for (int i = 0; entries && is_list && i < entries->count; i++)
    is_list = entries->items[i]->kind == PY_STRING;
  if (!is_list) return diag_error(run->context, entries->pos, "expected a list of names");
  for (int i = 0; entries && i < entries->count; i++)
    if (!module_find(run->module, entries->items[i]->text))
      return diag_error(run->context, entries->items[i]->pos, "the module has no function '%s'",
                        entries->items[i]->text);
  return true;
}

static bool is_last(const PassRun *run) {
  const ModuleFunc *last = NULL;
  for (int i = 0; i < run->module->funcs.count; i++)
    if (run->module->funcs.items[i].graph) last = &run->module->funcs.items[i];
  return last && last->graph == run->graph;
}

bool graph_remove_dead(PassRun *run) {
  Module *module = run->module;
  Reach reached = {run->context, module, map_new(&run->context->arena)};
  if (!check_entries(run)) return false;
  graph_remove_unused(run->context, run->graph);
  if (!is_last(run)) return true; // the calls of later functions are not known yet
  for (int i = 0; i < module->funcs.count; i++)
    if (is_entry(run, &module->funcs.items[i])) reach(&reached, &module->funcs.items[i]);
  int kept = 0;
  for (int i = 0; i < module->funcs.count; i++)
    if (map_contains(&reached.found, module->funcs.items[i].name))
      module->funcs.items[kept++] = module->funcs.items[i];
  module->funcs.count = kept;
  return true;
}
