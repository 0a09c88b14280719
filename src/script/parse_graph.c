// SPDX-License-Identifier: Apache-2.0
// Reads graph functions, which stand under @R.function. The positional arguments of an operator are
// tensors (None for an absent one, a tuple for several), and its keyword arguments are attributes.
// Operators are not checked here, because their table is in a higher layer.
#include "script/const_data.h"
#include "script/parse_stmt.h"

enum { MOST_OUTPUTS = 1024 };

typedef struct GraphParser {
  Parser *parser;
  GraphFunc *func;
} GraphParser;

static Value *tensor(GraphParser *graph, const PyNode *node);

// ---- Types: R.Tensor((1, 3, "h"), "float32")

static void bind_new_names(Parser *parser, const PyNode *node) {
  bool is_new = node->kind == PY_NAME && !parser_find(parser, node->text) &&
                !map_contains(&parser->dialects, node->text);
  if (is_new)
    parser_bind_expr(parser, node->text, expr_var(parser->context, node->text, DTYPE_INT64));
  for (int i = 0; i < node->count; i++)
    if (node->items[i]) bind_new_names(parser, node->items[i]);
}

// An extent in quotes, "h" or "2 * h". New variables are made. A mistake inside is reported for the
// whole string.
static Expr *quoted_extent(Parser *parser, const PyNode *node) {
  Context *context = parser->context;
  int diags = context->diags.count, errors = context->error_count;
  SourceFile *file = source_file_new(context, "", node->text, strlen(node->text));
  PyNode *inner = py_parse_expression(context, parser->arena, file);
  if (inner) bind_new_names(parser, inner);
  Expr *e = inner ? parse_value(parser, inner) : NULL;
  if (e) return e;
  context->diags.count = diags;
  context->error_count = errors;
  REPORT(parser, node, "\"%s\" is not an extent", node->text);
  return NULL;
}

static bool tensor_shape(Parser *parser, const PyNode *node, Value *value) {
  bool is_list = node->kind == PY_TUPLE || node->kind == PY_LIST;
  if (parser_called(parser, node, DIALECT_GRAPH) && node->count == 2) // R.shape([…])
    return tensor_shape(parser, node->items[1], value);
  if (!is_list) return REPORT(parser, node, "expected a tuple of extents");
  value->rank = node->count;
  value->shape = arena_array(&parser->context->arena, Expr *, node->count);
  for (int i = 0; i < node->count; i++) {
    const PyNode *item = node->items[i];
    Expr *e = item->kind == PY_STRING ? quoted_extent(parser, item) : parse_value(parser, item);
    int64_t extent;
    if (!e) return false;
    if (!dtype_is_int(e->type)) return REPORT(parser, item, "an extent must be an integer");
    if (expr_as_int(e, &extent) && extent < 0)
      return REPORT(parser, item, "extent %lld is negative", (long long)extent);
    value->shape[i] = e;
  }
  return true;
}

static bool tensor_type(Parser *parser, const PyNode *node, Value *value) {
  PyNode *args[4];
  Str member = parser_called(parser, node, DIALECT_GRAPH);
  bool is_short = node->kind == PY_CALL && node->items[0]->kind == PY_NAME;
  if (is_short) member = node->items[0]->text; // Tensor(…), an older spelling
  if (!member || strcmp(member, "Tensor"))
    return REPORT(parser, node, "expected a type such as R.Tensor((1, 3), \"float32\")");
  if (!py_arguments(parser->context, node, "shape? dtype? vdevice? ndim?", args, NULL))
    return false;
  const PyNode *dtype = args[1];
  if (args[0] && args[0]->kind == PY_STRING && !dtype) {
    dtype = args[0];
    args[0] = NULL;
  }
  value->type = DTYPE_FLOAT32;
  value->rank = -1;
  if (dtype && !parse_dtype(parser, dtype, &value->type)) return false;
  return !args[0] || tensor_shape(parser, args[0], value);
}

static Value *value_of_type(Parser *parser, const PyNode *node, const PyNode *type, Str name) {
  Value *value = value_new(parser->context, name, DTYPE_VOID, NULL, -1);
  value->pos = node->pos;
  return !type || tensor_type(parser, type, value) ? value : NULL;
}

// ---- Constants: R.const([1.0, 2.0], "float32"), and R.const("name", R.Tensor(…)) for one whose
// contents are kept outside of the script

static Value *outside_constant(Parser *parser, const PyNode *name, const PyNode *type) {
  Value *like = type ? value_of_type(parser, name, type, name->text) : NULL;
  if (!type) REPORT(parser, name, "expected R.const(\"name\", R.Tensor(shape, type))");
  if (!like) return NULL;
  ConstData *data = arena_new(&parser->context->arena, ConstData);
  data->name = name->text;
  data->type = like->type;
  data->rank = MAX_OF(like->rank, 0);
  data->shape = arena_array(&parser->context->arena, int64_t, data->rank);
  if (like->rank >= 0 && value_static_shape(like, data->shape)) {
    Value *value = value_constant(parser->context, data);
    value->pos = name->pos;
    return value;
  }
  REPORT(parser, type, "a constant must have constant extents");
  return NULL;
}

static Value *constant(GraphParser *graph, const PyNode *node) {
  Parser *parser = graph->parser;
  PyNode *args[2];
  if (!py_arguments(parser->context, node, "value dtype?", args, NULL)) return NULL;
  if (args[0]->kind == PY_STRING) return outside_constant(parser, args[0], args[1]);
  bool has_shape = args[1] && args[1]->kind == PY_CALL;
  ConstData *data = NULL;
  if (has_shape) {
    const PyNode *shape = args[1]->count > 1 ? args[1]->items[1] : NULL;
    const PyNode *dtype = args[1]->count > 2 ? args[1]->items[2] : NULL;
    data = parse_const_data(parser, args[0],
                            dtype && dtype->kind == PY_KEYWORD ? dtype->items[0] : dtype, shape);
  } else {
    data = parse_const_data(parser, args[0], args[1], NULL);
  }
  if (!data) return NULL;
  Value *value = value_constant(parser->context, data);
  value->pos = node->pos;
  return value;
}

// ---- Calls

static bool add_input(GraphParser *graph, const PyNode *node, PtrArray *inputs) {
  Parser *parser = graph->parser;
  if (node->kind == PY_TUPLE || node->kind == PY_LIST) {
    for (int i = 0; i < node->count; i++)
      if (!add_input(graph, node->items[i], inputs)) return false;
    return true;
  }
  Value *value = node->kind == PY_NONE ? NULL : tensor(graph, node);
  if (!value && node->kind != PY_NONE) return false;
  array_push(parser->arena, inputs, value);
  return true;
}

static bool add_attribute(GraphParser *graph, const PyNode *keyword, Node *node) {
  if (keyword->items[0]->kind == PY_NONE) return true;
  Expr *value = parse_attribute_value(graph->parser, keyword->items[0]);
  if (!value) return false;
  node->attrs = attrs_with(&graph->parser->context->arena, node->attrs, keyword->text, value);
  return true;
}

static Node *add_node(GraphParser *graph, const PyNode *call, Node *node, int outputs) {
  Context *context = graph->parser->context;
  node->pos = call->pos;
  for (int i = 0; i < outputs; i++) {
    Value *value = value_new(context, "lv", DTYPE_VOID, NULL, -1);
    value->producer = node;
    value->output = i;
    value->pos = call->pos;
    node->outputs[i] = value;
  }
  array_push(&context->arena, &graph->func->nodes, node);
  return node;
}

static Node *operator_node(GraphParser *graph, const PyNode *call, Str member, int outputs) {
  PtrArray inputs = {0};
  Parser *parser = graph->parser;
  for (int i = 1; i < call->count; i++)
    if (call->items[i]->kind != PY_KEYWORD && !add_input(graph, call->items[i], &inputs))
      return NULL;
  Node *node = node_new(parser->context, NODE_OP, member, member, (Value **)inputs.items,
                        inputs.count, outputs);
  for (int i = 1; i < call->count; i++)
    if (call->items[i]->kind == PY_KEYWORD && !add_attribute(graph, call->items[i], node))
      return NULL;
  return add_node(graph, call, node, outputs);
}

// cls.f, Module.f or f
static PrimFunc *callee(Parser *parser, const PyNode *node) {
  bool is_member = node->kind == PY_ATTRIBUTE && node->items[0]->kind == PY_NAME;
  if (node->kind != PY_NAME && !is_member) {
    REPORT(parser, node, "expected the name of a tensor program, such as cls.f");
    return NULL;
  }
  ModuleFunc *found = module_find(parser->module, node->text);
  if (found && found->prim) return found->prim;
  Array(const char *) names = {0};
  for (int i = 0; i < parser->module->funcs.count; i++)
    array_push(parser->arena, &names, parser->module->funcs.items[i].name);
  REPORT(parser, node, "there is no tensor program '%s'%s", node->text,
         parser_suggestion(parser, node->text, names.items, names.count));
  return NULL;
}

static bool output_types(Parser *parser, const PyNode *info, const PyNode *dtype, Node *node) {
  bool is_shape = info->kind == PY_TUPLE && dtype; // an older spelling
  if (is_shape) {
    Value *value = node->outputs[0];
    return parse_dtype(parser, dtype, &value->type) && tensor_shape(parser, info, value);
  }
  bool is_list = info->kind == PY_LIST || info->kind == PY_TUPLE;
  for (int i = 0; i < node->output_count; i++)
    if (!tensor_type(parser, is_list ? info->items[i] : info, node->outputs[i])) return false;
  return true;
}

// Checks that a tensor has the rank, type and extents of the program's parameter, where both are
// known.
static bool fits_param(Parser *parser, const PyNode *node, const Value *value, const Buffer *buffer,
                       int at) {
  if (!value || !buffer || value->rank < 0) return true;
  if (!dtype_equal(value->type, buffer->type))
    return REPORT(parser, node, "tensor %d is %s; parameter '%s' is %s", at + 1,
                  parser_type_name(parser, value->type), buffer->name,
                  parser_type_name(parser, buffer->type));
  if (value->rank != buffer->rank)
    return REPORT(parser, node, "tensor %d has %d axes; parameter '%s' has %d", at + 1, value->rank,
                  buffer->name, buffer->rank);
  for (int i = 0; i < value->rank; i++) {
    int64_t x, y;
    if (!expr_as_int(value->shape[i], &x) || !expr_as_int(buffer->shape[i], &y) || x == y) continue;
    return REPORT(parser, node, "axis %d of tensor %d is %lld; of parameter '%s' %lld", i, at + 1,
                  (long long)x, buffer->name, (long long)y);
  }
  return true;
}

static bool fits_program(Parser *parser, const PyNode *call, const Node *node) {
  const PrimFunc *func = node->callee;
  int count = node->input_count + node->output_count;
  if (func->param_count != count)
    return REPORT(parser, call, "'%s' takes %d tensors, saw %d to read and %d to write", func->name,
                  func->param_count, node->input_count, node->output_count);
  for (int i = 0; i < count; i++) {
    const Value *value =
        i < node->input_count ? node->inputs[i] : node->outputs[i - node->input_count];
    if (!fits_param(parser, call, value, func->buffers[i], i)) return false;
  }
  return true;
}

// R.call_tir(cls.f, (x, y), out_sinfo=R.Tensor(…)); other keywords are attributes.
static Node *call_tir(GraphParser *graph, const PyNode *call) {
  Parser *parser = graph->parser;
  PyNode *parts[4] = {NULL};
  static const char *const names[] = {"func", "args", "out_sinfo", "dtype"};
  static const char newer_name[] = "out_ty"; // the newer name of out_sinfo
  Node *node = node_new(parser->context, NODE_CALL_TIR, NULL, "call_tir", NULL, 0, 0);
  for (int i = 1; i < call->count; i++) {
    PyNode *item = call->items[i];
    int at = item->kind == PY_KEYWORD ? 0 : i - 1;
    if (item->kind == PY_KEYWORD)
      while (at < 4 && strcmp(names[at], item->text)) at++;
    if (item->kind == PY_KEYWORD && !strcmp(newer_name, item->text)) at = 2;
    if (at < 4)
      parts[at] = item->kind == PY_KEYWORD ? item->items[0] : item;
    else if (item->kind != PY_KEYWORD || !add_attribute(graph, item, node))
      return NULL;
  }
  PtrArray inputs = {0};
  if (!parts[0] || !parts[1] || !parts[2]) {
    REPORT(parser, call, "expected R.call_tir(function, (tensors…), out_sinfo=R.Tensor(…))");
    return NULL;
  }
  PrimFunc *func = callee(parser, parts[0]);
  if (!func || !add_input(graph, parts[1], &inputs)) return NULL;
  bool is_list = parts[2]->kind == PY_LIST || (parts[2]->kind == PY_TUPLE && !parts[3]);
  int outputs = is_list ? parts[2]->count : 1;
  Node *made = node_new(parser->context, NODE_CALL_TIR, NULL, func->name, (Value **)inputs.items,
                        inputs.count, outputs);
  made->callee = func;
  made->attrs = node->attrs;
  add_node(graph, call, made, outputs);
  bool fits = output_types(parser, parts[2], parts[3], made) && fits_program(parser, call, made);
  return fits ? made : NULL;
}

static Node *call_node(GraphParser *graph, const PyNode *call, int outputs) {
  Parser *parser = graph->parser;
  Str member = parser_called(parser, call, DIALECT_GRAPH);
  if (member && !strcmp(member, "call_tir")) return call_tir(graph, call);
  if (member) return operator_node(graph, call, member, outputs);
  REPORT(parser, call, "expected a call of an operator (R.…), saw %s", py_kind_name(call->kind));
  return NULL;
}

static Value *named_tensor(Parser *parser, const PyNode *node) {
  Binding *binding = parser_lookup(parser, node);
  if (!binding || binding->kind == BOUND_NOTHING) return NULL;
  if (binding->kind == BOUND_VALUE) return binding->value;
  REPORT(parser, node, "'%s' is not a tensor", node->text);
  return NULL;
}

static void grow_outputs(Context *context, Node *node, int count) {
  Value **outputs = arena_array(&context->arena, Value *, count);
  for (int i = 0; i < count; i++) {
    outputs[i] =
        i < node->output_count ? node->outputs[i] : value_new(context, "lv", DTYPE_VOID, NULL, -1);
    outputs[i]->producer = node;
    outputs[i]->output = i;
    if (i >= node->output_count) outputs[i]->pos = node->pos;
  }
  node->outputs = outputs;
  node->output_count = MAX_OF(node->output_count, count);
}

// lv[1], one result of an operator with several outputs.
static Value *item_of_tuple(GraphParser *graph, const PyNode *node) {
  Parser *parser = graph->parser;
  int64_t at;
  Value *first = node->items[0]->kind == PY_NAME ? named_tensor(parser, node->items[0]) : NULL;
  if (node->items[0]->kind != PY_NAME)
    REPORT(parser, node, "expected the name of a tuple of tensors");
  if (!first || !parse_int(parser, node->items[1], "the number of an output", &at)) return NULL;
  if (!first->producer || node->count != 2 || at < 0 || at >= MOST_OUTPUTS) {
    REPORT(parser, node, "'%s' is not a tuple with this item", first->name);
    return NULL;
  }
  if (at >= first->producer->output_count)
    grow_outputs(parser->context, first->producer, (int)at + 1);
  return first->producer->outputs[at];
}

static Value *tensor(GraphParser *graph, const PyNode *node) {
  Parser *parser = graph->parser;
  if (node->kind == PY_NAME) return named_tensor(parser, node);
  if (node->kind == PY_SUBSCRIPT) return item_of_tuple(graph, node);
  if (node->kind != PY_CALL) {
    REPORT(parser, node, "expected a tensor, saw %s; attributes are passed by their names",
           py_kind_name(node->kind));
    return NULL;
  }
  Str member = parser_called(parser, node, DIALECT_GRAPH);
  if (member && !strcmp(member, "const")) return constant(graph, node);
  Node *made = call_node(graph, node, 1);
  return made && made->output_count ? made->outputs[0] : NULL;
}

// ---- Statements

static bool bind_value(Parser *parser, const PyNode *target, Value *value) {
  if (target->kind != PY_NAME) return REPORT(parser, target, "expected a name");
  if (value->producer) value->name = target->text;
  if (value->producer && value->producer->output_count == 1) value->producer->name = target->text;
  parser_bind(parser, target->text, BOUND_VALUE)->value = value;
  return true;
}

static void assign_several(GraphParser *graph, const PyNode *target, const PyNode *value) {
  Parser *parser = graph->parser;
  Node *node = call_node(graph, value, target->count);
  if (node && node->output_count != target->count) {
    REPORT(parser, target, "%d names for %d tensors", target->count, node->output_count);
    node = NULL;
  }
  if (!node) parser_bind_nothing(parser, target);
  for (int i = 0; node && i < target->count; i++)
    bind_value(parser, target->items[i], node->outputs[i]);
}

static bool annotated_tensor(Parser *parser, const PyNode *annotation, Value *value);

// R.Tuple(R.Tensor(…), …): the operator has as many outputs.
static bool annotated_tuple(Parser *parser, const PyNode *annotation, Value *value) {
  if (annotation->count - 1 > MOST_OUTPUTS || annotation->count < 2)
    return REPORT(parser, annotation, "expected 1 to %d tensors", MOST_OUTPUTS);
  grow_outputs(parser->context, value->producer, annotation->count - 1);
  for (int i = 1; i < annotation->count; i++)
    if (!annotated_tensor(parser, annotation->items[i], value->producer->outputs[i - 1]))
      return false;
  return true;
}

static bool annotated_tensor(Parser *parser, const PyNode *annotation, Value *value) {
  Value like = {.rank = -1};
  Str member = parser_called(parser, annotation, DIALECT_GRAPH);
  if (member && !strcmp(member, "Tuple")) return annotated_tuple(parser, annotation, value);
  if (!tensor_type(parser, annotation, &like)) return false;
  value->type = like.type;
  value->rank = like.rank;
  value->shape = like.shape;
  return true;
}

static void assign_tensor(GraphParser *graph, const PyNode *target, const PyNode *annotation,
                          const PyNode *expression) {
  Parser *parser = graph->parser;
  if (target->kind == PY_NAME && parse_is_variable(parser, expression)) { // n = T.int64()
    if (parser_find(parser, target->text)) return;
    Expr *var = parse_value(parser, expression);
    if (var) var->as.var->name = target->text;
    if (var) parser_bind_expr(parser, target->text, var);
    return;
  }
  bool names_module = expression->kind == PY_NAME && parser->class_name &&
                      !strcmp(expression->text, parser->class_name);
  if (names_module) return; // cls = Module
  if (target->kind == PY_TUPLE || target->kind == PY_LIST) {
    assign_several(graph, target, expression);
    return;
  }
  Value *value = tensor(graph, expression);
  if (!value || !bind_value(parser, target, value)) {
    parser_bind_nothing(parser, target);
    return;
  }
  if (annotation && value->producer) annotated_tensor(parser, annotation, value);
}

// x: R.Tensor(…) states the type of a tensor that is defined already.
static void declare_tensor(GraphParser *graph, const PyNode *node) {
  Value *value =
      node->items[0]->kind == PY_NAME ? named_tensor(graph->parser, node->items[0]) : NULL;
  if (value) annotated_tensor(graph->parser, node->items[1], value);
}

static void graph_suite(GraphParser *graph, const PyNode *suite);

static void graph_call(GraphParser *graph, const PyNode *node) {
  Parser *parser = graph->parser;
  const PyNode *call = node->items[0];
  if (call->kind == PY_STRING) return;
  Str member = parser_called(parser, call, DIALECT_GRAPH);
  if (member && !strcmp(member, "output")) return;
  PyNode *args[1];
  if (!member || strcmp(member, "func_attr")) {
    REPORT(parser, node, "expected an assignment, R.output(…) or R.func_attr(…)");
  } else if (py_arguments(parser->context, call, "attrs", args, NULL)) {
    parse_attributes(parser, args[0], &graph->func->attrs);
  }
}

static void graph_return(GraphParser *graph, const PyNode *node) {
  Parser *parser = graph->parser;
  PtrArray outputs = {0};
  if (!node->items[0]) {
    REPORT(parser, node, "expected the tensors that the function returns");
    return;
  }
  if (!add_input(graph, node->items[0], &outputs)) return;
  graph->func->outputs = arena_copy(&parser->context->arena, outputs.items,
                                    sizeof *outputs.items * (size_t)outputs.count);
  graph->func->output_count = outputs.count;
}

static void graph_statement(GraphParser *graph, const PyNode *node) {
  Parser *parser = graph->parser;
  if (node->kind == PY_ASSIGN && !strcmp(node->text, "=")) {
    assign_tensor(graph, node->items[0], NULL, node->items[1]);
  } else if (node->kind == PY_ANNOTATED && node->items[2]) {
    assign_tensor(graph, node->items[0], node->items[1], node->items[2]);
  } else if (node->kind == PY_ANNOTATED) {
    declare_tensor(graph, node);
  } else if (node->kind == PY_EXPRESSION) {
    graph_call(graph, node);
  } else if (node->kind == PY_RETURN) {
    graph_return(graph, node);
  } else if (node->kind == PY_WITH && parser_called(parser, node->items[0], DIALECT_GRAPH)) {
    graph_suite(graph, node->items[node->count - 1]);
  } else if (node->kind != PY_PASS) {
    REPORT(parser, node, "this statement is not supported in a graph function");
  }
}

static void graph_suite(GraphParser *graph, const PyNode *suite) {
  for (int i = 0; i < suite->count; i++) graph_statement(graph, suite->items[i]);
}

static void graph_param(GraphParser *graph, const PyNode *node, PtrArray *params) {
  Parser *parser = graph->parser;
  if (!node->items[0]) {
    REPORT(parser, node, "parameter '%s' needs a type: R.Tensor(shape, type)", node->text);
    parser_bind(parser, node->text, BOUND_NOTHING);
    return;
  }
  Value *value = value_of_type(parser, node, node->items[0], node->text);
  if (!value) {
    parser_bind(parser, node->text, BOUND_NOTHING);
    return;
  }
  array_push(parser->arena, params, value);
  parser_bind(parser, node->text, BOUND_VALUE)->value = value;
}

GraphFunc *parse_graph_func(Parser *parser, const PyNode *def) {
  int errors = parser->context->error_count, mark = parser_mark(parser);
  GraphParser graph = {parser, graph_func_new(parser->context, def->text)};
  PtrArray params = {0};
  graph.func->pos = def->pos;
  for (int i = 0; i < def->items[1]->count; i++)
    graph_param(&graph, def->items[1]->items[i], &params);
  graph.func->param_count = params.count;
  graph.func->params = arena_copy(&parser->context->arena, params.items,
                                  sizeof *params.items * (size_t)params.count);
  graph_suite(&graph, def->items[3]);
  if (!graph.func->output_count && errors == parser->context->error_count)
    REPORT(parser, def, "this function returns no tensor");
  parser_reset(parser, mark);
  return errors == parser->context->error_count ? graph.func : NULL;
}
