// SPDX-License-Identifier: Apache-2.0
// Reads the values of graph functions: names, constants, tuples, calls, and the arguments that are
// written in place. Operators are not checked here, because their table is in a higher layer.
#include "script/graph_parser.h"

// ---- Constants: R.const([1.0, 2.0], "float32"), and R.const("name", R.Tensor(…)) for one whose
// contents are kept outside of the script

static Value *outside_constant(GraphParser *graph, const PyNode *name, const PyNode *type) {
  Context *context = graph->parser->context;
  Value like = {.rank = -1};
  if (!type) REPORT(graph->parser, name, "expected R.const(\"name\", R.Tensor(shape, type))");
  if (!type || !graph_type(graph, type, &like, DTYPE_FLOAT32)) return NULL;
  ConstData *data = arena_new(&context->arena, ConstData);
  data->name = name->text;
  data->type = like.type;
  data->rank = MAX_OF(like.rank, 0);
  data->shape = arena_array(&context->arena, int64_t, data->rank);
  if (like.rank >= 0 && value_static_shape(&like, data->shape)) {
    if (!parse_contents(graph->parser, name, data)) return NULL;
    Value *value = value_constant(context, data);
    value->pos = name->pos;
    return value;
  }
  REPORT(graph->parser, type, "a constant must have constant extents");
  return NULL;
}

static Value *constant(GraphParser *graph, const PyNode *node) {
  Parser *parser = graph->parser;
  PyNode *args[2];
  if (!py_arguments(parser->context, node, "value dtype?", args, NULL)) return NULL;
  if (args[0]->kind == PY_STRING) return outside_constant(graph, args[0], args[1]);
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

// ---- Nodes

Node *graph_add_node(GraphParser *graph, const PyNode *pos, Node *node) {
  Context *context = graph->parser->context;
  node->pos = pos->pos;
  node->block = graph->block;
  for (int i = 0; i < node->output_count; i++) {
    Value *value = value_new(context, "lv", DTYPE_VOID, NULL, -1);
    value->producer = node;
    value->output = i;
    value->pos = pos->pos;
    node->outputs[i] = value;
  }
  array_push(&context->arena, &graph->func->nodes, node);
  return node;
}

// The positional arguments of a call, from item `first` on.
static bool positional(GraphParser *graph, const PyNode *call, int first, PtrArray *inputs) {
  Parser *parser = graph->parser;
  for (int i = first; i < call->count; i++) {
    if (call->items[i]->kind == PY_KEYWORD) continue;
    GraphTerm *term = graph_term(graph, call->items[i]);
    if (!term) return false;
    array_push(parser->arena, inputs, value_of_term(parser->context, term));
  }
  return true;
}

static void add_keyword(Context *context, Node *node, Str key, GraphTerm *term) {
  GraphTerm *old = node->keywords ? node->keywords : term_new(context, TERM_DICT, NULL);
  GraphTerm **items = arena_array(&context->arena, GraphTerm *, old->count + 1);
  Str *keys = arena_array(&context->arena, Str, old->count + 1);
  for (int i = 0; i < old->count; i++) {
    items[i] = old->items[i];
    keys[i] = old->keys[i];
  }
  items[old->count] = term;
  keys[old->count] = key;
  node->keywords = term_of_items(context, TERM_DICT, NULL, items, keys, old->count + 1);
}

static bool add_argument(GraphParser *graph, const PyNode *keyword, Node *node) {
  Context *context = graph->parser->context;
  const PyNode *given = keyword->items[0];
  if (given->kind == PY_NONE) return true;
  if (graph_is_attribute(graph->parser, given)) {
    Expr *value = graph_attribute(graph->parser, given);
    if (value) node->attrs = attrs_with(&context->arena, node->attrs, keyword->text, value);
    return value != NULL;
  }
  GraphTerm *term = graph_term(graph, given);
  if (term) add_keyword(context, node, keyword->text, term);
  return term != NULL;
}

static bool add_arguments(GraphParser *graph, const PyNode *call, Node *node) {
  for (int i = 1; i < call->count; i++)
    if (call->items[i]->kind == PY_KEYWORD && !add_argument(graph, call->items[i], node))
      return false;
  return true;
}

static Node *operator_node(GraphParser *graph, const PyNode *call, Str member, int outputs) {
  PtrArray inputs = {0};
  if (!positional(graph, call, 1, &inputs)) return NULL;
  if (!strncmp(member, "op.", strlen("op."))) member += strlen("op."); // relax.op.add
  Node *node = node_new(graph->parser->context, NODE_OP, member, member, (Value **)inputs.items,
                        inputs.count, outputs);
  return add_arguments(graph, call, node) ? graph_add_node(graph, call, node) : NULL;
}

// A call of a function of the module, or of a local one.
static Node *function_call(GraphParser *graph, const PyNode *call, int outputs) {
  PtrArray inputs = {0};
  Context *context = graph->parser->context;
  GraphTerm *callee = graph_term(graph, call->items[0]);
  if (!callee) return NULL;
  array_push(graph->parser->arena, &inputs, value_of_term(context, callee));
  if (!positional(graph, call, 1, &inputs)) return NULL;
  Node *node =
      node_new(context, NODE_CALL, NULL, "lv", (Value **)inputs.items, inputs.count, outputs);
  return add_arguments(graph, call, node) ? graph_add_node(graph, call, node) : NULL;
}

// ---- R.call_tir

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

static bool output_types(GraphParser *graph, const PyNode *info, const PyNode *dtype, Node *node) {
  bool is_shape = info->kind == PY_TUPLE && dtype; // an older spelling
  if (is_shape) {
    Value *value = node->outputs[0];
    return parse_dtype(graph->parser, dtype, &value->type) &&
           graph_shape(graph->parser, info, value);
  }
  bool is_list = py_is_list(info);
  for (int i = 0; i < node->output_count; i++)
    if (!graph_type(graph, is_list ? info->items[i] : info, node->outputs[i], DTYPE_FLOAT32))
      return false;
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

// The arguments of R.call_tir; other keywords are attributes.
enum { TIR_FUNC, TIR_ARGS, TIR_INFO, TIR_DTYPE, TIR_PARTS };

static bool tir_parts(GraphParser *graph, const PyNode *call, PyNode **parts, Node *node) {
  static const char *const names[] = {"func", "args", "out_sinfo", "dtype"};
  static const char newer_name[] = "out_ty"; // the newer name of out_sinfo
  for (int i = 1; i < call->count; i++) {
    PyNode *item = call->items[i];
    int at = item->kind == PY_KEYWORD ? 0 : i - 1;
    if (item->kind == PY_KEYWORD)
      while (at < TIR_PARTS && strcmp(names[at], item->text)) at++;
    if (item->kind == PY_KEYWORD && !strcmp(newer_name, item->text)) at = TIR_INFO;
    if (at < TIR_PARTS)
      parts[at] = item->kind == PY_KEYWORD ? item->items[0] : item;
    else if (item->kind != PY_KEYWORD || !add_argument(graph, item, node))
      return false;
  }
  return (parts[TIR_FUNC] && parts[TIR_ARGS] && parts[TIR_INFO]) ||
         REPORT(graph->parser, call,
                "expected R.call_tir(function, (tensors…), out_sinfo=R.Tensor(…))");
}

// Is this a call with sizes for scalar parameters, or with a tuple by its name? Such calls are kept
// as they are written.
static bool is_other_form(GraphParser *graph, const PyNode *call) {
  int count = 0;
  const PyNode *args = NULL;
  bool has_types = false;
  for (int i = 1; i < call->count; i++) {
    const PyNode *item = call->items[i];
    bool keyword = item->kind == PY_KEYWORD;
    count += !keyword;
    has_types |= keyword && (!strcmp(item->text, "out_sinfo") || !strcmp(item->text, "out_ty"));
    if (keyword && !strcmp(item->text, "tir_vars")) return true;
    if (i == 2 && !keyword) args = item;
  }
  const Binding *tuple =
      args && args->kind == PY_NAME ? parser_find(graph->parser, args->text) : NULL;
  bool is_tuple = tuple && tuple->kind == BOUND_VALUE && tuple->value->term == NULL &&
                  tuple->value->info != NULL;
  return is_tuple || (has_types && count > 2);
}

static bool add_tensors(GraphParser *graph, const PyNode *node, PtrArray *inputs) {
  Parser *parser = graph->parser;
  GraphTerm *term = graph_term(graph, node);
  if (!term) return false;
  bool is_list = term->kind == TERM_TUPLE || term->kind == TERM_LIST;
  for (int i = 0; i < (is_list ? term->count : 1); i++)
    array_push(parser->arena, inputs,
               value_of_term(parser->context, is_list ? term->items[i] : term));
  return true;
}

// R.call_tir(cls.f, (x, y), out_sinfo=R.Tensor(…))
static Node *call_tir(GraphParser *graph, const PyNode *call) {
  Parser *parser = graph->parser;
  PyNode *parts[TIR_PARTS] = {NULL};
  PtrArray inputs = {0};
  Node held = {0};
  if (!tir_parts(graph, call, parts, &held)) return NULL;
  PrimFunc *func = callee(parser, parts[TIR_FUNC]);
  if (!func || !add_tensors(graph, parts[TIR_ARGS], &inputs)) return NULL;
  const PyNode *info = parts[TIR_INFO];
  bool is_list = info->kind == PY_LIST || (info->kind == PY_TUPLE && !parts[TIR_DTYPE]);
  Node *made = node_new(parser->context, NODE_CALL_TIR, NULL, func->name, (Value **)inputs.items,
                        inputs.count, is_list ? info->count : 1);
  made->callee = func;
  made->attrs = held.attrs;
  made->keywords = held.keywords;
  graph_add_node(graph, call, made);
  bool fits = output_types(graph, info, parts[TIR_DTYPE], made) && fits_program(parser, call, made);
  return fits ? made : NULL;
}

Node *graph_call(GraphParser *graph, const PyNode *call, int outputs) {
  Parser *parser = graph->parser;
  Str member = parser_called(parser, call, DIALECT_GRAPH);
  if (member && !strcmp(member, "call_tir") && !is_other_form(graph, call))
    return call_tir(graph, call);
  if (member) return operator_node(graph, call, member, outputs);
  if (call->kind == PY_CALL) return function_call(graph, call, outputs);
  REPORT(parser, call, "expected a call of an operator (R.…), saw %s", py_kind_name(call->kind));
  return NULL;
}

// ---- Names and items

static bool is_function(const Parser *parser, Str name) {
  for (int i = 0; parser->functions && i < parser->functions->count; i++) {
    const PyNode *item = parser->functions->items[i];
    if (item->kind == PY_DEF && !strcmp(item->text, name)) return true;
  }
  return false;
}

static GraphTerm *named_term(GraphParser *graph, const PyNode *node) {
  Parser *parser = graph->parser;
  if (!parser_find(parser, node->text) && is_function(parser, node->text))
    return term_new(parser->context, TERM_FUNC, node->text);
  Binding *binding = parser_lookup(parser, node);
  if (!binding || binding->kind == BOUND_NOTHING) return NULL;
  if (binding->kind == BOUND_VALUE) return term_of_value(parser->context, binding->value);
  if (binding->kind == BOUND_EXPR) return term_of_expr(parser, binding->expr, false);
  REPORT(parser, node, "'%s' is not a tensor", node->text);
  return NULL;
}

// cls.f and Module.f
static GraphTerm *member_term(GraphParser *graph, const PyNode *node) {
  Parser *parser = graph->parser;
  const PyNode *object = node->items[0];
  bool is_module = object->kind == PY_NAME && !parser_find(parser, object->text);
  Str member = parser_member(parser, node, DIALECT_GRAPH);
  if (member)
    return term_new(parser->context, TERM_NAME, str_format(parser->context, "R.%s", member));
  member = parser_member(parser, node, DIALECT_TIR);
  if (member)
    return term_new(parser->context, TERM_NAME, str_format(parser->context, "T.%s", member));
  if (is_module && is_function(parser, node->text))
    return term_new(parser->context, TERM_FUNC, node->text);
  Array(const char *) names = {0};
  for (int i = 0; parser->functions && i < parser->functions->count; i++)
    if (parser->functions->items[i]->kind == PY_DEF)
      array_push(parser->arena, &names, parser->functions->items[i]->text);
  REPORT(parser, node, "there is no function '%s'%s", node->text,
         parser_suggestion(parser, node->text, names.items, names.count));
  return NULL;
}

static GraphTerm *item_of_value(GraphParser *graph, const PyNode *node, Value *value, int64_t at) {
  Context *context = graph->parser->context;
  if (value->data || (value->rank >= 0 && !value->info)) {
    REPORT(graph->parser, node, "'%s' is not a tuple with this item", value->name);
    return NULL;
  }
  Node *item = node_new(context, NODE_ITEM, NULL, "lv", &value, 1, 1);
  item->item = (int)at;
  return term_of_value(context, graph_add_node(graph, node, item)->outputs[0]);
}

// lv[1], one item of a tuple.
static GraphTerm *item_term(GraphParser *graph, const PyNode *node, const PyNode *tuple,
                            const PyNode *number) {
  int64_t at;
  Parser *parser = graph->parser;
  GraphTerm *term = graph_term(graph, tuple);
  if (!term || !parse_int(parser, number, "the number of an output", &at)) return NULL;
  bool is_list = term->kind == TERM_TUPLE || term->kind == TERM_LIST;
  if (is_list && at >= 0 && at < term->count) return term->items[at];
  if (term->kind == TERM_VALUE && at >= 0 && at < MOST_OUTPUTS)
    return item_of_value(graph, node, term->value, at);
  REPORT(parser, node, "'%s' is not a tuple with this item",
         tuple->kind == PY_NAME ? tuple->text : "this value");
  return NULL;
}

// ---- Arguments written in place

static GraphTerm *text_term(GraphParser *graph, const PyNode *node) {
  const SourceFile *file = node->pos.file;
  return term_new(graph->parser->context, TERM_NAME,
                  str_intern_n(graph->parser->context, file->text + node->pos.begin,
                               (size_t)(node->pos.end - node->pos.begin)));
}

static GraphTerm *list_term(GraphParser *graph, const PyNode *node, GraphTermKind kind, int first) {
  Parser *parser = graph->parser;
  GraphTerm **items = arena_array(parser->arena, GraphTerm *, node->count + 1);
  int count = 0;
  for (int i = first; i < node->count; i++)
    if (!(items[count++] = graph_term(graph, node->items[i]))) return NULL;
  return term_of_items(parser->context, kind, NULL, items, NULL, count);
}

static GraphTerm *dict_term(GraphParser *graph, const PyNode *node) {
  Parser *parser = graph->parser;
  GraphTerm **items = arena_array(parser->arena, GraphTerm *, node->count / 2 + 1);
  Str *keys = arena_array(parser->arena, Str, node->count / 2 + 1);
  for (int i = 0; i + 1 < node->count; i += 2) {
    if (!(keys[i / 2] = parse_string(parser, node->items[i], "a key"))) return NULL;
    if (!(items[i / 2] = graph_term(graph, node->items[i + 1]))) return NULL;
  }
  return term_of_items(parser->context, TERM_DICT, NULL, items, keys, node->count / 2);
}

// An index map that is given by position.
static GraphTerm *lambda_term(GraphParser *graph, const PyNode *node) {
  Expr *map = graph_attribute(graph->parser, node);
  return map ? term_of_expr(graph->parser, map, true) : NULL;
}

static GraphTerm *expr_term(GraphParser *graph, const PyNode *node) {
  Operand operand = parse_operand(graph->parser, node);
  return operand.e ? term_of_expr(graph->parser, operand.e, operand.is_literal) : NULL;
}

// A call that is an argument and no operation: R.shape([n, 4]), R.dtype("float32").
static GraphTerm *call_term(GraphParser *graph, const PyNode *node, const char *name) {
  Parser *parser = graph->parser;
  GraphTerm **items = arena_array(parser->arena, GraphTerm *, node->count);
  Str *keys = arena_array(parser->arena, Str, node->count);
  for (int i = 1; i < node->count; i++) {
    const PyNode *item = node->items[i];
    bool keyword = item->kind == PY_KEYWORD;
    keys[i - 1] = keyword ? item->text : NULL;
    items[i - 1] = graph_term(graph, keyword ? item->items[0] : item);
    if (!items[i - 1]) return NULL;
  }
  return term_of_items(parser->context, TERM_CALL, name, items, keys, node->count - 1);
}

// The result of a node, or all of them as a tuple.
static GraphTerm *results_term(GraphParser *graph, const Node *node) {
  Context *context = graph->parser->context;
  if (!node) return NULL;
  if (node->output_count == 1) return term_of_value(context, node->outputs[0]);
  GraphTerm **items = arena_array(&context->arena, GraphTerm *, node->output_count);
  for (int i = 0; i < node->output_count; i++) items[i] = term_of_value(context, node->outputs[i]);
  return term_of_items(context, TERM_TUPLE, NULL, items, NULL, node->output_count);
}

static bool is_argument(Str member) {
  static const char *const names[] = {"shape",      "dtype",       "str",
                                      "prim_value", "device_mesh", "device"};
  for (int i = 0; i < COUNT_OF(names); i++)
    if (!strcmp(names[i], member)) return true;
  return false;
}

static GraphTerm *graph_call_term(GraphParser *graph, const PyNode *node, Str member) {
  Parser *parser = graph->parser;
  Context *context = parser->context;
  const char *last = strrchr(member, '.');
  char initial = last ? last[1] : member[0];
  if (!strcmp(member, "const")) {
    Value *value = constant(graph, node);
    return value ? term_of_value(context, value) : NULL;
  }
  if (!strcmp(member, "tuple")) return list_term(graph, node, TERM_TUPLE, 1);
  if (!strcmp(member, "TupleGetItem") && node->count == 3)
    return item_term(graph, node, node->items[1], node->items[2]);
  if (is_argument(member)) return call_term(graph, node, str_format(context, "R.%s", member));
  if (!strcmp(member, "ExternFunc")) return call_term(graph, node, "R.ExternFunc");
  if (initial >= 'A' && initial <= 'Z') return graph_type_term(graph, node);
  return results_term(graph, graph_call(graph, node, 1));
}

// tvm.cpu(), tvm.device("cuda", 0), tvm.ir.VDevice("llvm"): kept as they are written, because no
// operator that takes them changes its tensor.
static bool is_device(Parser *parser, const PyNode *call) {
  static const char *const names[] = {"tvm.cpu", "tvm.cuda", "tvm.gpu", "tvm.device",
                                      "tvm.ir.VDevice"};
  Str name = py_dotted_name(parser->context, call->items[0]);
  for (int i = 0; name && i < COUNT_OF(names); i++)
    if (!strcmp(names[i], name)) return true;
  return false;
}

static GraphTerm *any_call_term(GraphParser *graph, const PyNode *node) {
  Parser *parser = graph->parser;
  if (is_device(parser, node)) return text_term(graph, node);
  Str member = parser_called(parser, node, DIALECT_GRAPH);
  if (member) return graph_call_term(graph, node, member);
  member = parser_called(parser, node, DIALECT_MODULE);
  if (member && !strcmp(member, "meta_var") && node->count == 2)
    return graph_term(graph, node->items[1]); // a value of Python's
  if (member) return call_term(graph, node, str_format(parser->context, "I.%s", member));
  if (parser_called(parser, node, DIALECT_TIR)) return expr_term(graph, node);
  return results_term(graph, graph_call(graph, node, 1));
}

// ---- x + y and -x, as TVMScript has them for tensors

static bool is_tensor(Parser *parser, const PyNode *node);

// x.astype("float16"), not R.astype(x, "float16")
static bool is_astype(Parser *parser, const PyNode *node) {
  const PyNode *callee = node->kind == PY_CALL ? node->items[0] : NULL;
  return callee && callee->kind == PY_ATTRIBUTE && !strcmp(callee->text, "astype") &&
         is_tensor(parser, callee->items[0]);
}

static bool is_tensor(Parser *parser, const PyNode *node) {
  if (node->kind == PY_UNARY || node->kind == PY_SUBSCRIPT)
    return is_tensor(parser, node->items[0]);
  if (is_astype(parser, node)) return true;
  if (node->kind == PY_BINARY)
    return is_tensor(parser, node->items[0]) || is_tensor(parser, node->items[1]);
  const Binding *binding = node->kind == PY_NAME ? parser_find(parser, node->text) : NULL;
  return (binding && binding->kind == BOUND_VALUE) ||
         parser_called(parser, node, DIALECT_GRAPH) != NULL;
}

static GraphTerm *binary_term(GraphParser *graph, const PyNode *node) {
  static const struct {
    const char *sign, *op;
  } rows[] = {{"+", "add"},     {"-", "subtract"},      {"*", "multiply"}, {"/", "divide"},
              {"**", "power"},  {"//", "floor_divide"}, {"<", "less"},     {"<=", "less_equal"},
              {">", "greater"}, {">=", "greater_equal"}};
  Context *context = graph->parser->context;
  for (int i = 0; i < COUNT_OF(rows); i++) {
    if (strcmp(rows[i].sign, node->text) != 0) continue;
    Value *inputs[] = {graph_value(graph, node->items[0]), graph_value(graph, node->items[1])};
    if (!inputs[0] || !inputs[1]) return NULL;
    Node *made = node_new(context, NODE_OP, rows[i].op, rows[i].op, inputs, 2, 1);
    return term_of_value(context, graph_add_node(graph, node, made)->outputs[0]);
  }
  REPORT(graph->parser, node, "'%s' is not an operation on tensors", node->text);
  return NULL;
}

static GraphTerm *unary_term(GraphParser *graph, const PyNode *node) {
  Context *context = graph->parser->context;
  if (strcmp(node->text, "-") != 0) {
    REPORT(graph->parser, node, "'%s' is not an operation on tensors", node->text);
    return NULL;
  }
  Value *input = graph_value(graph, node->items[0]);
  if (!input) return NULL;
  Node *made = node_new(context, NODE_OP, "negative", "negative", &input, 1, 1);
  return term_of_value(context, graph_add_node(graph, node, made)->outputs[0]);
}

static GraphTerm *astype_term(GraphParser *graph, const PyNode *node) {
  Context *context = graph->parser->context;
  PyNode *args[1];
  DType type;
  if (!py_arguments(context, node, "dtype", args, NULL)) return NULL;
  Value *input = graph_value(graph, node->items[0]->items[0]);
  if (!input || !parse_dtype(graph->parser, args[0], &type)) return NULL;
  Node *made = node_new(context, NODE_OP, "astype", "astype", &input, 1, 1);
  made->attrs = attrs_with(&context->arena, made->attrs, str_intern(context, "dtype"),
                           expr_string(context, dtype_name(context, type)));
  return term_of_value(context, graph_add_node(graph, node, made)->outputs[0]);
}

static GraphTerm *subscript_term(GraphParser *graph, const PyNode *node) {
  const PyNode *object = node->items[0];
  // metadata["…"][0], a constant that TVM keeps beside the script
  for (const PyNode *n = object; n->kind == PY_SUBSCRIPT || n->kind == PY_NAME; n = n->items[0]) {
    if (n->kind != PY_NAME) continue;
    if (!strcmp(n->text, "metadata")) return text_term(graph, node);
    break;
  }
  if (node->count == 2) return item_term(graph, node, object, node->items[1]);
  REPORT(graph->parser, node, "expected the number of an item");
  return NULL;
}

static GraphTerm *none_term(GraphParser *graph, const PyNode *node) {
  return term_new(graph->parser->context, TERM_NONE, NULL);
}

static GraphTerm *tuple_term(GraphParser *graph, const PyNode *node) {
  return list_term(graph, node, node->kind == PY_LIST ? TERM_LIST : TERM_TUPLE, 0);
}

GraphTerm *graph_term(GraphParser *graph, const PyNode *node) {
  static GraphTerm *(*const readers[PY_KIND_COUNT])(GraphParser *, const PyNode *) = {
      [PY_NAME] = named_term,          [PY_ATTRIBUTE] = member_term, [PY_CALL] = any_call_term,
      [PY_SUBSCRIPT] = subscript_term, [PY_TUPLE] = tuple_term,      [PY_LIST] = tuple_term,
      [PY_DICT] = dict_term,           [PY_NONE] = none_term,        [PY_LAMBDA] = lambda_term};
  if (node->kind == PY_BINARY && is_tensor(graph->parser, node)) return binary_term(graph, node);
  if (node->kind == PY_UNARY && is_tensor(graph->parser, node)) return unary_term(graph, node);
  if (is_astype(graph->parser, node)) return astype_term(graph, node);
  if (graph_typed_value(graph->parser, node)) return graph_type_term(graph, node);
  return (readers[node->kind] ? readers[node->kind] : expr_term)(graph, node);
}

Value *graph_value(GraphParser *graph, const PyNode *node) {
  GraphTerm *term = graph_term(graph, node);
  if (!term) return NULL;
  if (term->kind != TERM_NONE) return value_of_term(graph->parser->context, term);
  REPORT(graph->parser, node, "expected a value, saw None");
  return NULL;
}
