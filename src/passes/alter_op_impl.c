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
  // Lists of axis separators of the results of the rewrites, and of their inputs; NULL: none.
  const PyNode *separators, *input_separators;
} Alteration;

static bool is_altered(const Alteration *a, const Node *node) {
  if (node->kind != NODE_CALL_TIR || node->callee == a->program) return false;
  const Expr *name = attrs_get(&node->callee->attrs, "operator_name");
  return name && name->op == EXPR_STRING && strcmp(name->as.s, a->operator_name) == 0;
}

static const Value *value_of_param(const Node *node, int param) {
  return param < node->input_count ? node->inputs[param] : node->outputs[param - node->input_count];
}

static const IndexMap *without_separators(Context *context, const IndexMap *map) {
  if (!map->separator_count) return map;
  return index_map_new(context, map->input_count, map->inputs, map->output_count, map->outputs,
                       map->resources, NULL, 0);
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
  map = without_separators(context, map);
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

// ---- Axis separators ---------------------------------------------------------------------------

// Appends the separators of a parameter that a list of the user states.
static bool read_separators(const Alteration *a, const PyNode *lists, int param, int *count,
                            int64_t *out) {
  Context *context = a->run->context;
  if (!lists || lists->kind == PY_NONE) return true;
  const PyNode *list = lists->items[param];
  if (list->kind == PY_NONE) return true;
  bool fits = (list->kind == PY_LIST || list->kind == PY_TUPLE) && list->count <= TE_MAX_RANK;
  for (int i = 0; fits && i < list->count; i++) {
    fits = list->items[i]->kind == PY_INT;
    if (fits) out[(*count)++] = list->items[i]->i;
  }
  return fits || diag_error(context, list->pos, "expected a list of axis separators");
}

// The separators in the index map of a parameter are those of the tensor of the new program.
static void add_stated(const Alteration *a, const Node *node, int param, AxisSeparators *out) {
  const PyNode *text = a->maps->count ? a->maps->items[param] : NULL;
  if (!text || text->kind == PY_NONE) return;
  const IndexMap *map = pass_index_map(a->run->context, text, value_of_param(node, param)->rank);
  bool is_input = param < node->input_count;
  if (is_input ? out->count : out->input_count) return; // the list says which
  for (int i = 0; i < map->separator_count; i++)
    (is_input ? out->result : out->input)[i] = map->separators[i];
  *(is_input ? &out->count : &out->input_count) = map->separator_count;
}

static const AxisSeparators *const *separators_of(const Alteration *a, const Node *node) {
  Context *context = a->run->context;
  int count = a->program->param_count;
  const AxisSeparators **found = arena_array(&context->arena, const AxisSeparators *, count);
  for (int i = 0; i < count; i++) {
    AxisSeparators separators = {0};
    if (!read_separators(a, a->separators, i, &separators.count, separators.result) ||
        !read_separators(a, a->input_separators, i, &separators.input_count, separators.input))
      return NULL;
    add_stated(a, node, i, &separators);
    found[i] = separators_new(context, separators);
  }
  return found;
}

static bool fits_params(const Alteration *a, const PyNode *lists) {
  if (!lists || lists->kind == PY_NONE) return true;
  bool is_list = lists->kind == PY_LIST || lists->kind == PY_TUPLE;
  return (is_list && lists->count == a->program->param_count) ||
         diag_error(a->run->context, lists->pos,
                    "expected a list of the axis separators of each of the %d tensors of '%s'",
                    a->program->param_count, a->program->name);
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
  flow.separators = separators_of(a, node);
  if (!flow.separators) return -1;
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

static const PyNode *find_separators(const PyNode *dict, const char *operator_name) {
  return dict && dict->kind != PY_NONE ? pass_dict_find(dict, operator_name) : NULL;
}

bool graph_alter_op_impl(PassRun *run) {
  const PyNode *programs = run->args[0], *maps = run->args[1];
  Alteration a = {.run = run};
  if (!pass_is_dict(run->context, programs) || !pass_is_dict(run->context, maps)) return false;
  for (int i = 2; i < 4; i++)
    if (run->args[i] && run->args[i]->kind != PY_NONE && !pass_is_dict(run->context, run->args[i]))
      return false;
  for (int i = 0; i < programs->count; i += 2) {
    a.operator_name = programs->items[i]->text;
    a.maps = pass_dict_find(maps, a.operator_name);
    a.program = pass_program(run, programs->items[i + 1]);
    if (!a.program) return false;
    if (!a.maps || (a.maps->kind != PY_LIST && a.maps->kind != PY_TUPLE))
      return diag_error(run->context, maps->pos, "expected a list of layouts for '%s'",
                        a.operator_name);
    a.separators = find_separators(run->args[2], a.operator_name);
    a.input_separators = find_separators(run->args[3], a.operator_name);
    if (!fits_params(&a, a.separators) || !fits_params(&a, a.input_separators) || !alter_all(&a))
      return false;
  }
  return true;
}
