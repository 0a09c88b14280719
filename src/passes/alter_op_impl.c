// SPDX-License-Identifier: Apache-2.0
// Replaces the programs of an operator by another one, whose tensors have other layouts:
//   y = call_tir(add, (a, b))   =>   y1 = call_tir(add_in_blocks, (A(a), B(b)));  y = Y⁻¹(y1)
// The programs to replace have the attribute "operator_name". That the new program computes the
// same is the user's statement.
#include "passes/arguments.h"
#include "passes/flow.h"

typedef struct Alteration {
  PassRun *run;
  Str operator_name;
  PrimFunc *program;
  const PyNode *maps; // of its parameters
} Alteration;

static bool is_altered(const Alteration *a, const Node *node) {
  if (node->kind != NODE_CALL_TIR || node->callee == a->program) return false;
  const Expr *name = attrs_get(&node->callee->attrs, "operator_name");
  return name && name->op == EXPR_STRING && strcmp(name->as.s, a->operator_name) == 0;
}

static const Value *value_of_param(const Node *node, int param) {
  return param < node->input_count ? node->inputs[param] : node->outputs[param - node->input_count];
}

// Tensors of a graph function have one memory axis.
static bool refuse_separator(Context *context, SourcePos pos) {
  return diag_error(context, pos,
                    "the tensors of a graph function have one memory axis, which no axis separator "
                    "divides; leave it out");
}

// Sizes of different integer types may be equal. A symbolic size of the program takes any value.
static bool fits_extent(const Expr *extent, const Expr *own) {
  int64_t a, b;
  return extent == own || own->op == EXPR_VAR ||
         (expr_as_int(extent, &a) && expr_as_int(own, &b) && a == b);
}

// The layout of a parameter, which the new program must have. It stays as it is where the list is
// empty or has None for it.
static bool read_layout(const Alteration *a, const Node *node, int param, const Layout **out) {
  Context *context = a->run->context;
  const Value *value = value_of_param(node, param);
  const PyNode *text = a->maps->count ? a->maps->items[param] : NULL;
  const Buffer *buffer = a->program->buffers[param];
  Expr *shape[TE_MAX_RANK];
  bool stays = !text || text->kind == PY_NONE;
  const IndexMap *map =
      stays ? index_map_identity(context, value->rank) : pass_index_map(context, text, value->rank);
  if (!map) return false;
  if (map->separator_count) return refuse_separator(context, text->pos);
  const Layout *layout = layout_on_shape(context, map, value->shape, value->rank);
  bool fits = layout && layout->physical_rank == buffer->rank &&
              layout_physical_shape(context, layout, value->shape, value->rank, shape);
  for (int i = 0; fits && i < buffer->rank; i++) fits = fits_extent(shape[i], buffer->shape[i]);
  if (!fits || layout_is_injective(context, layout).verdict != VERDICT_YES)
    return diag_error(context, text ? text->pos : a->maps->pos,
                      "%s in this layout is not the tensor %s of '%s'; the layout must be one to "
                      "one and have its shape",
                      value_type_text(context, value), script_buffer_text(context, buffer),
                      a->program->name);
  *out = layout_changes_nothing(context, layout) ? NULL : layout;
  return true;
}

static int alter(const Alteration *a, Node *node, int at) {
  Context *context = a->run->context;
  int count = a->program->param_count;
  NodeFlow flow = {.run = a->run, .node = node, .input_count = node->input_count};
  if (count != node->input_count + node->output_count ||
      (a->maps->count && a->maps->count != count))
    return diag_error(context, a->maps->pos,
                      "'%s' has %d tensors, '%s' has %d, and there are %d layouts; an empty list "
                      "leaves all layouts as they are",
                      node->callee->name, node->input_count + node->output_count, a->program->name,
                      count, a->maps->count),
           -1;
  flow.layouts = (FlowLayouts){.param_count = count};
  flow.layouts.params = arena_array(&context->arena, const Layout *, count);
  for (int i = 0; i < count; i++)
    if (!read_layout(a, node, i, &flow.layouts.params[i])) return -1;
  flow.func = node->callee;
  flow.program = a->program;
  return node_flow_make(&flow, at);
}

static bool alter_all(const Alteration *a) {
  GraphFunc *graph = a->run->graph;
  for (int i = 0; i < graph->nodes.count;) {
    Node *node = graph->nodes.items[i];
    i = is_altered(a, node) ? alter(a, node, i) : i + 1;
    if (i < 0) return false;
  }
  return true;
}

// The first separator in nested lists, or what is no list; NULL where all are empty or absent.
static const PyNode *first_separator(const PyNode *node) {
  if (!node || node->kind == PY_NONE) return NULL;
  if (node->kind != PY_LIST && node->kind != PY_TUPLE) return node;
  for (int i = 0; i < node->count; i++) {
    const PyNode *found = first_separator(node->items[i]);
    if (found) return found;
  }
  return NULL;
}

static bool check_separators(const PassRun *run, const PyNode *separators) {
  if (!separators || separators->kind == PY_NONE) return true;
  if (!pass_is_dict(run->context, separators)) return false;
  for (int i = 1; i < separators->count; i += 2) {
    const PyNode *found = first_separator(separators->items[i]);
    if (found) return refuse_separator(run->context, found->pos);
  }
  return true;
}

bool graph_alter_op_impl(PassRun *run) {
  const PyNode *programs = run->args[0], *maps = run->args[1];
  Alteration a = {.run = run};
  if (!check_separators(run, run->args[2]) || !check_separators(run, run->args[3])) return false;
  if (!pass_is_dict(run->context, programs) || !pass_is_dict(run->context, maps)) return false;
  for (int i = 0; i < programs->count; i += 2) {
    a.operator_name = programs->items[i]->text;
    a.maps = pass_dict_find(maps, a.operator_name);
    a.program = pass_program(run, programs->items[i + 1]);
    if (!a.program) return false;
    if (!a.maps || (a.maps->kind != PY_LIST && a.maps->kind != PY_TUPLE))
      return diag_error(run->context, maps->pos, "expected a list of layouts for '%s'",
                        a.operator_name);
    if (!alter_all(&a)) return false;
  }
  return true;
}
