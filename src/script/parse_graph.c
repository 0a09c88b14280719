// SPDX-License-Identifier: Apache-2.0
// Reads graph functions, which stand under @R.function: their parameters and statements. The values
// in them are read by graph_values.c, and their types by graph_types.c.
#include "script/graph_parser.h"
#include "script/parse_macro.h"

static void graph_suite(GraphParser *graph, const PyNode *suite);
static void assign_each(GraphParser *graph, const PyNode *targets, const PyNode *values);

// ---- Assignments

static bool bind_value(Parser *parser, const PyNode *target, Value *value) {
  if (target->kind != PY_NAME) return REPORT(parser, target, "expected a name");
  if (value->producer) value->name = target->text;
  if (value->producer && value->producer->output_count == 1) value->producer->name = target->text;
  parser_bind(parser, target->text, BOUND_VALUE)->value = value;
  return true;
}

// The items of the result of a call, for the names that it is assigned to.
static void add_items(GraphParser *graph, const PyNode *target, Node *node) {
  Parser *parser = graph->parser;
  for (int i = 0; i < target->count; i++) {
    Node *item = node_new(parser->context, NODE_ITEM, NULL, "lv", node->outputs, 1, 1);
    item->item = i;
    bind_value(parser, target->items[i], graph_add_node(graph, target, item)->outputs[0]);
  }
}

static void assign_several(GraphParser *graph, const PyNode *target, const PyNode *value) {
  Parser *parser = graph->parser;
  Node *node = value->kind == PY_CALL ? graph_call(graph, value, 1) : NULL;
  if (value->kind != PY_CALL)
    REPORT(parser, value, "expected a call with %d results", target->count);
  if (node && node->kind == NODE_CALL_TIR && node->output_count != target->count) {
    REPORT(parser, target, "%d names for %d tensors", target->count, node->output_count);
    node = NULL;
  }
  if (!node)
    parser_bind_nothing(parser, target);
  else if (node->kind != NODE_CALL_TIR)
    add_items(graph, target, node);
  for (int i = 0; node && node->kind == NODE_CALL_TIR && i < target->count; i++)
    bind_value(parser, target->items[i], node->outputs[i]);
}

// n = T.int64(). The name of a parameter that is this size is that of the size from here on.
static void declare_size(Parser *parser, const PyNode *target, const PyNode *expression) {
  const Binding *known = parser_find(parser, target->text);
  Expr *size = known && known->kind == BOUND_VALUE ? value_size(known->value) : NULL;
  if (size && !strcmp(size->as.var->name, target->text))
    parser_bind_expr(parser, target->text, size);
  if (known) return;
  Expr *var = parse_value(parser, expression);
  if (var) var->as.var->name = target->text;
  if (var) parser_bind_expr(parser, target->text, var);
}

static void state_type(GraphParser *graph, const PyNode *annotation, Value *value) {
  if (!annotation || !value->producer) return;
  if (value->producer->kind == NODE_CALL_TIR) return; // its out_sinfo says the type
  Value like = {.rank = -1};
  if (!graph_type(graph, annotation, &like, DTYPE_VOID)) return;
  value->info = like.info;
  bool is_tensor = !dtype_equal(like.type, DTYPE_VOID);
  value->type = like.type;
  value->rank = is_tensor ? like.rank : -1;
  value->shape = is_tensor ? like.shape : NULL;
}

static bool names_module(Parser *parser, const PyNode *expression) {
  return expression->kind == PY_NAME && parser->class_name &&
         !strcmp(expression->text, parser->class_name); // cls = Module
}

// Did the reading of an expression make the value? There were `nodes` nodes before.
static bool is_new(const GraphParser *graph, const Value *value, int nodes) {
  return graph->func->nodes.count > nodes && value->producer &&
         value->producer == array_last(&graph->func->nodes);
}

// Binds the name to a value, which takes the name if it is new.
static void assign_value(GraphParser *graph, const PyNode *target, const PyNode *annotation,
                         Value *value, bool is_new) {
  Parser *parser = graph->parser;
  if (!value || (is_new ? !bind_value(parser, target, value) : target->kind != PY_NAME)) {
    parser_bind_nothing(parser, target);
    return;
  }
  if (is_new)
    state_type(graph, annotation, value);
  else
    parser_bind(parser, target->text, BOUND_VALUE)->value = value; // another name
}

static void assign(GraphParser *graph, const PyNode *target, const PyNode *annotation,
                   const PyNode *expression) {
  Parser *parser = graph->parser;
  if (target->kind == PY_NAME && parse_is_variable(parser, expression)) {
    declare_size(parser, target, expression);
    return;
  }
  if (names_module(parser, expression)) return;
  bool several = py_is_list(target);
  bool values = py_is_list(expression);
  if (several && values && target->count == expression->count) {
    assign_each(graph, target, expression);
    return;
  }
  if (several) {
    assign_several(graph, target, expression);
    return;
  }
  int nodes = graph->func->nodes.count;
  Value *value = graph_value(graph, expression);
  assign_value(graph, target, annotation, value, value && is_new(graph, value, nodes));
}

static bool mentions(const PyNode *node, Str name) {
  if (!node) return false;
  if (node->kind == PY_NAME && !strcmp(node->text, name)) return true;
  for (int i = 0; i < node->count; i++)
    if (mentions(node->items[i], name)) return true;
  return false;
}

// n, m = T.int64(), T.int64() is read as two assignments. A value that reads an earlier name would
// then see the new one, so that is refused.
static void assign_each(GraphParser *graph, const PyNode *targets, const PyNode *values) {
  for (int i = 0; i < targets->count; i++) {
    const PyNode *target = targets->items[i];
    for (int k = 0; k < i; k++)
      if (targets->items[k]->kind == PY_NAME && mentions(values->items[i], targets->items[k]->text))
        REPORT(graph->parser, values->items[i], "'%s' is assigned by this statement too; write two",
               targets->items[k]->text);
    assign(graph, target, NULL, values->items[i]);
  }
}

// x: R.Tensor(…) states the type of a value that is defined already.
static void declare_type(GraphParser *graph, const PyNode *node) {
  Value *value = node->items[0]->kind == PY_NAME ? graph_value(graph, node->items[0]) : NULL;
  if (value) state_type(graph, node->items[1], value);
}

// ---- Other statements

static bool name_outputs(GraphParser *graph, const PyNode *call) {
  for (int i = 1; i < call->count; i++) {
    Value *value = graph_value(graph, call->items[i]);
    if (!value) return false;
    value->is_named = true;
  }
  return true;
}

static void call_statement(GraphParser *graph, const PyNode *node) {
  Parser *parser = graph->parser;
  const PyNode *call = node->items[0];
  if (call->kind == PY_STRING) return;
  Str member = parser_called(parser, call, DIALECT_GRAPH);
  PyNode *args[1];
  if (member && !strcmp(member, "output")) {
    name_outputs(graph, call);
  } else if (member && !strcmp(member, "func_attr")) {
    if (py_arguments(parser->context, call, "attrs", args, NULL))
      parse_attributes(parser, args[0], &graph->func->attrs);
  } else if (call->kind == PY_CALL) {
    Node *made = graph_call(graph, call, 1);
    if (made) made->alone = true;
  } else {
    REPORT(parser, node, "expected an assignment, a call, R.output(…) or R.func_attr(…)");
  }
}

static void flatten_outputs(Parser *parser, GraphTerm *term, PtrArray *outputs) {
  bool is_list = term->kind == TERM_TUPLE || term->kind == TERM_LIST;
  for (int i = 0; is_list && i < term->count; i++) flatten_outputs(parser, term->items[i], outputs);
  if (is_list) return;
  Value *value = value_of_term(parser->context, term);
  array_push(parser->arena, outputs, value);
}

static void set_result(GraphParser *graph, GraphFunc *func, Value *result) {
  Context *context = graph->parser->context;
  PtrArray outputs = {0};
  GraphTerm *term = term_of_value(context, result);
  flatten_outputs(graph->parser, term, &outputs);
  bool is_plain = term->kind == TERM_VALUE;
  if (term->kind == TERM_TUPLE) {
    is_plain = term->count > 1;
    for (int i = 0; i < term->count; i++) is_plain &= term->items[i]->kind == TERM_VALUE;
  }
  func->result = is_plain ? NULL : result;
  func->outputs =
      arena_copy(&context->arena, outputs.items, sizeof *outputs.items * (size_t)outputs.count);
  func->output_count = outputs.count;
}

static void return_value(GraphParser *graph, MacroResult result) {
  if (!result.value) return;
  if (graph->returned)
    *graph->returned = result;
  else
    set_result(graph, graph->func, result.value);
}

static void return_statement(GraphParser *graph, const PyNode *node) {
  if (!node->items[0]) {
    REPORT(graph->parser, node, "expected the tensors that the function returns");
    return;
  }
  int nodes = graph->func->nodes.count;
  Value *value = graph_value(graph, node->items[0]);
  return_value(graph, (MacroResult){value, value && is_new(graph, value, nodes)});
}

// ---- If: the last binding of both branches is the result

static const char no_result[] = "_"; // the name of the result of a call like R.print(x)

static Str result_name(Parser *parser, const PyNode *suite);

// The name that a statement assigns at its end: an assignment, R.output(name), a dataflow block
// that ends with one of these, a call, or an `if` whose branches both do. NULL for others.
static Str assigned_name(Parser *parser, const PyNode *node) {
  const PyNode *name = NULL;
  if (node->kind == PY_WITH) return result_name(parser, node->items[node->count - 1]);
  if (node->kind == PY_IF && node->items[2]) {
    Str a = result_name(parser, node->items[1]), b = result_name(parser, node->items[2]);
    return a && b && !strcmp(a, b) ? a : NULL;
  }
  if (node->kind == PY_ASSIGN || (node->kind == PY_ANNOTATED && node->items[2]))
    name = node->items[0];
  if (node->kind == PY_EXPRESSION) {
    const PyNode *call = node->items[0];
    Str member = parser_called(parser, call, DIALECT_GRAPH);
    if (member && !strcmp(member, "output") && call->count == 2)
      name = call->items[1];
    else if (call->kind == PY_CALL)
      return str_intern(parser->context, no_result);
  }
  return name && name->kind == PY_NAME ? name->text : NULL;
}

static Str result_name(Parser *parser, const PyNode *suite) {
  return suite->count ? assigned_name(parser, suite->items[suite->count - 1]) : NULL;
}

static GraphFunc *branch(GraphParser *graph, const PyNode *suite, Str *name) {
  Parser *parser = graph->parser;
  *name = result_name(parser, suite);
  if (!*name) {
    REPORT(parser, suite->count ? suite->items[suite->count - 1] : suite,
           "a branch must end with the assignment of its result");
    return NULL;
  }
  int mark = parser_mark(parser);
  GraphParser inner = *graph;
  inner.func = graph_func_new(parser->context, "branch");
  inner.returned = NULL;
  inner.block = 0;
  graph_suite(&inner, suite);
  const Binding *binding = parser_find(parser, *name);
  bool is_bound = binding && binding->kind == BOUND_VALUE;
  bool is_empty = !is_bound && !strcmp(*name, no_result);
  if (is_bound) set_result(graph, inner.func, binding->value);
  if (is_empty)
    set_result(graph, inner.func,
               value_of_term(parser->context, term_new(parser->context, TERM_TUPLE, NULL)));
  parser_reset(parser, mark);
  return is_bound || is_empty ? inner.func : NULL;
}

static void if_statement(GraphParser *graph, const PyNode *node) {
  Parser *parser = graph->parser;
  Str names[2] = {NULL, NULL};
  Value *condition = graph_value(graph, node->items[0]);
  if (!node->items[2]) {
    REPORT(parser, node, "expected an else branch with the same result");
    return;
  }
  Node *made = node_new(parser->context, NODE_IF, NULL, "lv", &condition, 1, 1);
  for (int i = 0; i < 2; i++) made->bodies[i] = branch(graph, node->items[1 + i], &names[i]);
  if (!condition || !made->bodies[0] || !made->bodies[1]) {
    if (names[0]) parser_bind(parser, names[0], BOUND_NOTHING);
    return;
  }
  if (strcmp(names[0], names[1]) != 0) {
    REPORT(parser, node, "the branches assign '%s' and '%s'", names[0], names[1]);
    return;
  }
  Value *result = graph_add_node(graph, node, made)->outputs[0];
  made->name = result->name = names[0];
  parser_bind(parser, names[0], BOUND_VALUE)->value = result;
}

// ---- Local functions

static void local_function(GraphParser *graph, const PyNode *def) {
  Parser *parser = graph->parser;
  Node *node = node_new(parser->context, NODE_FUNC, NULL, def->text, NULL, 0, 1);
  Value *value = value_new(parser->context, def->text, DTYPE_VOID, NULL, -1);
  parser_bind(parser, def->text, BOUND_VALUE)->value = value; // it may call itself
  node->bodies[0] = parse_graph_func(parser, def);
  if (!node->bodies[0]) return;
  graph_add_node(graph, def, node);
  *value = *node->outputs[0];
  value->name = def->text;
  node->outputs[0] = value;
}

// ---- Macros: their statements stand before the statement that uses one

static Binding macro_argument(void *env, Parser *parser, const PyNode *argument) {
  Value *value = graph_value(env, argument);
  (void)parser;
  return (Binding){.kind = value ? BOUND_VALUE : BOUND_NOTHING, .value = value};
}

// The result of the macro; it has no value where a mistake was reported, or where none is `needed`.
static MacroResult macro_result(GraphParser *graph, const PyNode *call, const Captured *macro,
                                bool needed) {
  Parser *parser = graph->parser;
  int errors = parser->context->error_count;
  MacroScope outer;
  MacroResult result = {NULL, false};
  GraphParser inner = *graph;
  inner.returned = &result;
  const PyNode *suite = macro_begin(parser, call, macro, macro_argument, graph, &outer);
  if (!suite) return result;
  graph_suite(&inner, suite);
  macro_end(parser, &outer);
  if (!result.value && needed && errors == parser->context->error_count)
    REPORT(parser, call, "this macro returns no value");
  return result;
}

// Assigns the items of a tuple to several names, or the result to one.
static void assign_result(GraphParser *graph, const PyNode *target, const PyNode *annotation,
                          MacroResult result) {
  Context *context = graph->parser->context;
  const GraphTerm *term = result.value ? term_of_value(context, result.value) : NULL;
  if (!term || !py_is_list(target) || term->kind != TERM_TUPLE || term->count != target->count) {
    assign_value(graph, target, annotation, result.value, result.is_new);
    if (term && py_is_list(target) && !result.is_new)
      REPORT(graph->parser, target, "expected one name for what the macro returns");
    return;
  }
  for (int i = 0; i < target->count; i++)
    assign_value(graph, target->items[i], NULL, value_of_term(context, term->items[i]), false);
}

// The expression of a statement that is a call: the value of an assignment or of `return`, or a
// call alone; NULL for other statements.
static PyNode **called_in(const PyNode *node) {
  bool assigns = node->kind == PY_ASSIGN && !strcmp(node->text, "=");
  int at = assigns ? 1 : node->kind == PY_ANNOTATED ? 2 : 0;
  bool may = assigns || node->kind == PY_ANNOTATED || node->kind == PY_RETURN ||
             node->kind == PY_EXPRESSION;
  return may && node->items[at] && node->items[at]->kind == PY_CALL ? &node->items[at] : NULL;
}

// Replaces what the statement captures, and returns the macro that it uses, if any.
static Captured capture_statement(Parser *parser, const PyNode *node, PyNode **call) {
  if (!call) {
    parser_capture_statement(parser, node);
    if (node->kind == PY_EXPRESSION) parser_capture(parser, &node->items[0]);
    return (Captured){0};
  }
  if (node->kind == PY_ANNOTATED) parser_capture(parser, &node->items[1]);
  return parser_capture_call(parser, call);
}

// Reads a statement whose value is the use of a macro.
static void macro_statement(GraphParser *graph, const PyNode *node, const PyNode *call,
                            const Captured *macro) {
  MacroResult result = macro_result(graph, call, macro, node->kind != PY_EXPRESSION);
  if (node->kind == PY_ASSIGN)
    assign_result(graph, node->items[0], NULL, result);
  else if (node->kind == PY_ANNOTATED)
    assign_result(graph, node->items[0], node->items[1], result);
  else if (node->kind == PY_RETURN)
    return_value(graph, result);
}

static void graph_statement(GraphParser *graph, const PyNode *node) {
  Parser *parser = graph->parser;
  PyNode **call = called_in(node);
  Captured captured = capture_statement(parser, node, call);
  if (captured.kind == CAPTURED_MACRO) {
    macro_statement(graph, node, *call, &captured);
  } else if (node->kind == PY_ASSIGN && !strcmp(node->text, "=")) {
    assign(graph, node->items[0], NULL, node->items[1]);
  } else if (node->kind == PY_ANNOTATED && node->items[2]) {
    assign(graph, node->items[0], node->items[1], node->items[2]);
  } else if (node->kind == PY_ANNOTATED) {
    declare_type(graph, node);
  } else if (node->kind == PY_EXPRESSION) {
    call_statement(graph, node);
  } else if (node->kind == PY_RETURN) {
    return_statement(graph, node);
  } else if (node->kind == PY_WITH && parser_called(parser, node->items[0], DIALECT_GRAPH)) {
    int outer = graph->block;
    graph->block = ++*graph->blocks;
    graph_suite(graph, node->items[node->count - 1]);
    graph->block = outer;
  } else if (node->kind == PY_IF) {
    if_statement(graph, node);
  } else if (node->kind == PY_DEF) {
    local_function(graph, node);
  } else if (node->kind != PY_PASS) {
    REPORT(parser, node, "this statement is not supported in a graph function");
  }
}

static void graph_suite(GraphParser *graph, const PyNode *suite) {
  for (int i = 0; i < suite->count; i++) graph_statement(graph, suite->items[i]);
}

// ---- Functions

static void graph_param(GraphParser *graph, const PyNode *node, PtrArray *params) {
  Parser *parser = graph->parser;
  parser_capture(parser, &node->items[0]);
  Value *value = value_new(parser->context, node->text, DTYPE_VOID, NULL, -1);
  value->pos = node->pos;
  if (!node->items[0])
    REPORT(parser, node, "parameter '%s' needs a type: R.Tensor(shape, type)", node->text);
  if (!node->items[0] || !graph_type(graph, node->items[0], value, DTYPE_FLOAT32)) {
    parser_bind(parser, node->text, BOUND_NOTHING);
    return;
  }
  array_push(parser->arena, params, value);
  parser_bind(parser, node->text, BOUND_VALUE)->value = value;
}

// private=True, pure=False
static bool decorator_options(GraphParser *graph, const PyNode *def) {
  Context *context = graph->parser->context;
  static const char *const names[] = {"private", "pure"};
  const PyNode *list = def->items[0];
  for (int i = 0; i < list->count; i++) {
    PyNode *args[3];
    if (list->items[i]->kind != PY_CALL) continue;
    if (!py_arguments(context, list->items[i], "private? pure? check_well_formed?", args, NULL))
      return false;
    for (int k = 0; k < COUNT_OF(names); k++)
      if (args[k] && args[k]->kind == PY_BOOL)
        graph->func->options =
            attrs_with(&context->arena, graph->func->options, str_intern(context, names[k]),
                       expr_bool(context, args[k]->i));
  }
  return true;
}

// The type of the result may use sizes that the body declares.
static void result_type(GraphParser *graph, const PyNode *def) {
  Value like = {.rank = -1};
  parser_capture(graph->parser, &def->items[2]);
  if (!def->items[2] || def->items[2]->kind == PY_NONE) return;
  int nodes = graph->func->nodes.count;
  if (graph_type(graph, def->items[2], &like, DTYPE_VOID))
    graph->func->info = graph_type_term(graph, def->items[2]);
  graph->func->nodes.count = nodes;
}

GraphTerm *parse_global_infos(Parser *parser, const PyNode *node) {
  int blocks = 0;
  GraphParser graph = {parser, graph_func_new(parser->context, ""), &blocks, 0};
  if (node->kind != PY_DICT) {
    REPORT(parser, node, "expected a dictionary, saw %s", py_kind_name(node->kind));
    return NULL;
  }
  GraphTerm *infos = graph_term(&graph, node);
  if (!graph.func->nodes.count) return infos;
  REPORT(parser, node, "expected devices and meshes, such as I.vdevice(\"llvm\")");
  return NULL;
}

GraphFunc *parse_graph_func(Parser *parser, const PyNode *def) {
  int errors = parser->context->error_count, mark = parser_mark(parser), blocks = 0;
  GraphParser graph = {parser, graph_func_new(parser->context, def->text), &blocks, 0};
  PtrArray params = {0};
  graph.func->pos = def->pos;
  graph.func->module = parser->module;
  graph.func->is_written = true;
  decorator_options(&graph, def);
  parser_bind_sizes(parser);
  for (int i = 0; i < def->items[1]->count; i++)
    graph_param(&graph, def->items[1]->items[i], &params);
  graph.func->param_count = params.count;
  graph.func->params = arena_copy(&parser->context->arena, params.items,
                                  sizeof *params.items * (size_t)params.count);
  graph_suite(&graph, def->items[3]);
  result_type(&graph, def);
  bool returns = graph.func->output_count || graph.func->result;
  if (!returns && errors == parser->context->error_count)
    REPORT(parser, def, "this function returns no tensor");
  parser_reset(parser, mark);
  return errors == parser->context->error_count ? graph.func : NULL;
}
