// SPDX-License-Identifier: Apache-2.0
// Reads the types of values in graph functions: R.Tensor((1, 3, "h"), "float32"), R.Shape(["n"]),
// R.Tuple(…), R.Callable(…), R.Object, T.int64. Only those of tensors are understood here; the
// others are kept as terms.
#include "script/graph_parser.h"

#include <math.h>

// ---- Extents

static void bind_new_names(Parser *parser, const PyNode *node) {
  bool is_new = node->kind == PY_NAME && !parser_find(parser, node->text) &&
                !parser_is_alias(parser, node->text);
  if (is_new)
    parser_bind_expr(parser, node->text, expr_var(parser->context, node->text, DTYPE_INT64));
  for (int i = 0; i < node->count; i++)
    if (node->items[i]) bind_new_names(parser, node->items[i]);
}

// The size that an integer is, n: R.Prim("int64"), which then has the type R.Prim(value="n"). NULL:
// the value is no such number.
static Expr *size_of_number(Parser *parser, Value *value) {
  GraphTerm *info = value->info;
  bool is_integer = info && info->kind == TERM_NAME && !strcmp(info->text, "T.int64");
  bool is_prim = info && info->kind == TERM_CALL && !strcmp(info->text, "R.Prim");
  if (!is_integer && (!is_prim || info->count != 1)) return NULL;
  Expr *stated = is_prim && info->items[0]->kind == TERM_EXPR ? info->items[0]->e : NULL;
  bool is_value = is_prim && info->keys && info->keys[0] && !strcmp(info->keys[0], "value");
  if (is_value) return stated && stated->op == EXPR_VAR ? stated : NULL;
  bool names_type = stated && stated->op == EXPR_STRING && !strcmp(stated->as.s, "int64");
  if (!is_integer && !names_type) return NULL;
  Context *context = parser->context;
  Expr *size = expr_var(context, value->name, DTYPE_INT64);
  GraphTerm **items = arena_array(&context->arena, GraphTerm *, 1);
  Str *keys = arena_array(&context->arena, Str, 1);
  items[0] = term_of_expr(parser, size, true);
  keys[0] = str_intern(context, "value");
  value->info = term_of_items(context, TERM_CALL, "R.Prim", items, keys, 1);
  return size;
}

// The size of this name that a tensor of the same name hides, or that a number is; NULL: there is
// none.
static Expr *hidden_size(Parser *parser, const PyNode *node) {
  const Binding *binding = node->kind == PY_NAME ? parser_find(parser, node->text) : NULL;
  if (!binding || binding->kind != BOUND_VALUE) return NULL;
  Value *value = binding->value;
  while (binding && binding->kind != BOUND_EXPR)
    binding = binding->hidden ? &parser->bindings.items[binding->hidden - 1] : NULL;
  return binding ? binding->expr : size_of_number(parser, value);
}

static void bind_hidden_sizes(Parser *parser, const PyNode *node) {
  Expr *size = hidden_size(parser, node);
  if (size) parser_bind_expr(parser, node->text, size);
  for (int i = 0; i < node->count; i++)
    if (node->items[i]) bind_hidden_sizes(parser, node->items[i]);
}

// An extent in quotes, "h" or "2 * h". New variables are made; tensors hide no variables. A mistake
// inside is reported for the whole string.
static Expr *quoted_extent(Parser *parser, const PyNode *node) {
  Context *context = parser->context;
  int diags = context->diags.count, errors = context->error_count;
  SourceFile *file = source_file_new(context, "", node->text, strlen(node->text));
  PyNode *inner = py_parse_expression(context, parser->arena, file);
  if (inner) bind_new_names(parser, inner);
  int mark = parser_mark(parser);
  if (inner) bind_hidden_sizes(parser, inner);
  Expr *e = inner ? parse_value(parser, inner) : NULL;
  parser_reset(parser, mark);
  if (e) return e;
  diag_forget(context, diags, errors);
  REPORT(parser, node, "\"%s\" is not an extent", node->text);
  return NULL;
}

static Expr *bare_extent(Parser *parser, const PyNode *node) {
  int mark = parser_mark(parser);
  bind_hidden_sizes(parser, node);
  Expr *e = parse_value(parser, node);
  parser_reset(parser, mark);
  return e;
}

static Expr *extent(Parser *parser, const PyNode *item) {
  Expr *e = item->kind == PY_STRING ? quoted_extent(parser, item) : bare_extent(parser, item);
  int64_t number;
  if (!e) return NULL;
  if (!dtype_is_int(e->type)) {
    REPORT(parser, item, "an extent must be an integer");
  } else if (expr_as_int(e, &number) && number < 0) {
    REPORT(parser, item, "extent %lld is negative", (long long)number);
  } else {
    return e;
  }
  return NULL;
}

bool graph_shape(Parser *parser, const PyNode *node, Value *value) {
  bool is_list = py_is_list(node);
  if (parser_called(parser, node, DIALECT_GRAPH) && node->count == 2) // R.shape([…])
    return graph_shape(parser, node->items[1], value);
  if (!is_list) return REPORT(parser, node, "expected a tuple of extents");
  value->rank = node->count;
  value->shape = arena_array(&parser->context->arena, Expr *, node->count);
  for (int i = 0; i < node->count; i++)
    if (!(value->shape[i] = extent(parser, node->items[i]))) return false;
  return true;
}

// ---- Tensors

static bool is_tensor_name(Parser *parser, const PyNode *node) {
  Str member = parser_member(parser, node, DIALECT_GRAPH);
  if (node->kind == PY_NAME) member = node->text; // Tensor(…), an older spelling
  return member && !strcmp(member, "Tensor");
}

// Sets the fields of `value` from R.Tensor(shape?, dtype?, vdevice?, ndim?); *whole says that they
// hold all that is stated.
static bool tensor_type(GraphParser *graph, const PyNode *node, Value *value, DType otherwise,
                        bool *whole) {
  Parser *parser = graph->parser;
  PyNode *args[4];
  if (!py_arguments(parser->context, node, "shape? dtype? vdevice? ndim?", args, NULL))
    return false;
  const PyNode *dtype = args[1], *shape = args[0];
  if (shape && shape->kind == PY_STRING && !dtype) {
    dtype = shape;
    shape = NULL;
  }
  bool names_shape = shape && shape->kind == PY_NAME && parser_find(parser, shape->text) &&
                     parser_find(parser, shape->text)->kind == BOUND_VALUE;
  if (names_shape) shape = NULL; // a value of type R.Shape
  value->type = otherwise;
  value->rank = -1;
  if (dtype && !parse_dtype(parser, dtype, &value->type)) return false;
  *whole = dtype && !args[2] && !args[3] && !names_shape;
  return !shape || graph_shape(parser, shape, value);
}

// ---- Types as terms

// The member of a dialect that a type has: "R.Object", "T.int64"; NULL otherwise.
static const char *type_name(Parser *parser, const PyNode *node) {
  Str member = parser_member(parser, node, DIALECT_GRAPH);
  if (member) return str_format(parser->context, "R.%s", member);
  member = parser_member(parser, node, DIALECT_TIR);
  return member ? str_format(parser->context, "T.%s", member) : NULL;
}

GraphTerm *term_of_expr(Parser *parser, Expr *e, bool plain) {
  GraphTerm *term = term_new(parser->context, TERM_EXPR, NULL);
  term->e = e;
  term->plain = plain && (e->op != EXPR_FLOAT || isfinite(e->as.f)); // others have no literal
  return term;
}

static GraphTerm *extent_list(Parser *parser, const PyNode *node) {
  Value shape = {.rank = -1};
  if (!graph_shape(parser, node, &shape)) return NULL;
  GraphTerm **items = arena_array(&parser->context->arena, GraphTerm *, shape.rank);
  for (int i = 0; i < shape.rank; i++) items[i] = term_of_expr(parser, shape.shape[i], true);
  return term_of_items(parser->context, node->kind == PY_LIST ? TERM_LIST : TERM_TUPLE, NULL, items,
                       NULL, shape.rank);
}

static bool has_extents(const char *name) {
  static const char *const names[] = {"R.Tensor", "R.Shape", "R.DTensor"};
  for (int i = 0; i < COUNT_OF(names); i++)
    if (!strcmp(names[i], name)) return true;
  return false;
}

static GraphTerm *type_argument(GraphParser *graph, const char *name, const PyNode *node) {
  bool is_list = py_is_list(node);
  if (is_list && has_extents(name)) return extent_list(graph->parser, node);
  int nodes = graph->func->nodes.count;
  GraphTerm *term = graph_term(graph, node);
  if (graph->func->nodes.count == nodes) return term;
  REPORT(graph->parser, node, "a type cannot hold the result of a call");
  return NULL;
}

// The size that R.Prim(value="n") names.
static GraphTerm *size_term(Parser *parser, const PyNode *node) {
  Expr *size = quoted_extent(parser, node);
  return size ? term_of_expr(parser, size, true) : NULL;
}

// ---- Types of other values: x.ty

const Value *graph_typed_value(Parser *parser, const PyNode *node) {
  bool is_type = node->kind == PY_ATTRIBUTE && node->items[0]->kind == PY_NAME &&
                 (!strcmp(node->text, "ty") || !strcmp(node->text, "struct_info"));
  const Binding *binding = is_type ? parser_find(parser, node->items[0]->text) : NULL;
  return binding && binding->kind == BOUND_VALUE ? binding->value : NULL;
}

static bool is_stated(Parser *parser, const PyNode *node, const Value *value) {
  return value->info || value->rank >= 0 ||
         REPORT(parser, node, "the type of '%s' is not stated; write it here", value->name);
}

// R.Tensor(shape, dtype), as the type of a tensor is written.
static GraphTerm *tensor_term(Parser *parser, const Value *value) {
  Context *context = parser->context;
  GraphTerm **items = arena_array(&context->arena, GraphTerm *, 2);
  GraphTerm **extents = arena_array(&context->arena, GraphTerm *, value->rank);
  Str *keys = arena_array(&context->arena, Str, 2);
  for (int i = 0; i < value->rank; i++) extents[i] = term_of_expr(parser, value->shape[i], true);
  items[0] = term_of_items(context, TERM_TUPLE, NULL, extents, NULL, value->rank);
  items[1] = term_of_expr(parser, expr_string(context, dtype_name(context, value->type)), false);
  keys[1] = str_intern(context, "dtype");
  return term_of_items(context, TERM_CALL, "R.Tensor", items, keys, 2);
}

static GraphTerm *typed_value_term(Parser *parser, const PyNode *node, const Value *value) {
  if (!is_stated(parser, node, value)) return NULL;
  return value->info ? value->info : tensor_term(parser, value);
}

GraphTerm *graph_type_term(GraphParser *graph, const PyNode *node) {
  Parser *parser = graph->parser;
  const Value *typed = graph_typed_value(parser, node);
  if (typed) return typed_value_term(parser, node, typed);
  bool is_call = node->kind == PY_CALL;
  const char *name = type_name(parser, is_call ? node->items[0] : node);
  if (is_call && name && name[0] == 'T') name = NULL; // T.Buffer(…) is no type of a value
  if (!name && is_call && is_tensor_name(parser, node->items[0])) name = "R.Tensor";
  if (!name) {
    REPORT(parser, node, "expected a type such as R.Tensor((1, 3), \"float32\")");
    return NULL;
  }
  if (!is_call) return term_new(parser->context, TERM_NAME, name);
  GraphTerm **items = arena_array(&parser->context->arena, GraphTerm *, node->count);
  Str *keys = arena_array(&parser->context->arena, Str, node->count);
  for (int i = 1; i < node->count; i++) {
    const PyNode *item = node->items[i];
    bool keyword = item->kind == PY_KEYWORD;
    keys[i - 1] = keyword ? item->text : NULL;
    const PyNode *argument = keyword ? item->items[0] : item;
    bool is_size = keyword && !strcmp(item->text, "value") && argument->kind == PY_STRING;
    items[i - 1] = is_size ? size_term(parser, argument) : type_argument(graph, name, argument);
    if (!items[i - 1]) return NULL;
  }
  return term_of_items(parser->context, TERM_CALL, name, items, keys, node->count - 1);
}

static bool check_type_name(Parser *parser, const PyNode *node) {
  static const char *const names[] = {"Tensor", "Shape", "Tuple",  "Callable",
                                      "Prim",   "Any",   "Object", "DTensor"};
  const PyNode *callee = node->kind == PY_CALL ? node->items[0] : node;
  Str member = parser_member(parser, callee, DIALECT_GRAPH);
  for (int i = 0; i < COUNT_OF(names); i++)
    if (!member || !strcmp(member, names[i])) return true;
  REPORT(parser, node,
         "R.%s is no type of a value\nthe types are R.Tensor, R.Shape, R.Tuple, R.Callable, "
         "R.Prim, R.Any, R.Object, R.DTensor, and those of numbers, such as T.int64",
         member);
  return false;
}

bool graph_type(GraphParser *graph, const PyNode *node, Value *value, DType otherwise) {
  Parser *parser = graph->parser;
  bool whole = false;
  bool is_tensor = node->kind == PY_CALL && is_tensor_name(parser, node->items[0]);
  const Value *typed = graph_typed_value(parser, node);
  if (typed) {
    value->type = typed->type;
    value->rank = typed->rank;
    value->shape = typed->shape;
    value->info = typed->info;
    return is_stated(parser, node, typed);
  }
  value->info = NULL;
  if (!check_type_name(parser, node)) return false;
  if (is_tensor && !tensor_type(graph, node, value, otherwise, &whole)) return false;
  if (whole && value->rank >= 0) return true;
  value->info = graph_type_term(graph, node);
  if (!is_tensor) value->rank = -1;
  if (!is_tensor) value->type = is_tensor_name(parser, node) ? otherwise : DTYPE_VOID;
  return value->info != NULL;
}
