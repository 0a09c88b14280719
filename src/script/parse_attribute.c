// SPDX-License-Identifier: Apache-2.0
// Reads the values of attributes: numbers, strings, lists, dictionaries, None, and objects such as
// T.target("cuda"), whose rows are below.
#include "script/parser.h"

static Expr *tuple_of(Parser *parser, const PyNode *node) {
  Expr **items = arena_array(parser->arena, Expr *, node->count);
  for (int i = 0; i < node->count; i++)
    if (!(items[i] = parse_attribute_value(parser, node->items[i]))) return NULL;
  return expr_tuple(parser->context, items, node->count);
}

// A key: a string, or the name of a buffer, A.name or A.
static Str key_of(Parser *parser, const PyNode *node) {
  bool is_member = node->kind == PY_ATTRIBUTE && !strcmp(node->text, "name");
  const PyNode *name = is_member ? node->items[0] : node;
  Binding *buffer = name->kind == PY_NAME ? parser_find(parser, name->text) : NULL;
  if (buffer && buffer->kind == BOUND_BUFFER) return buffer->buffer->name;
  return parse_string(parser, node, "a key");
}

static Expr *dictionary_of(Parser *parser, const PyNode *node) {
  Expr **items = arena_array(parser->arena, Expr *, node->count);
  for (int i = 0; i < node->count; i += 2) {
    Str key = key_of(parser, node->items[i]);
    if (!key) return NULL;
    items[i] = expr_string(parser->context, key);
    if (!(items[i + 1] = parse_attribute_value(parser, node->items[i + 1]))) return NULL;
  }
  return expr_raw(parser->context, EXPR_DICT, DTYPE_VOID, NULL, items, node->count);
}

// ---- Functions as values

static Expr *lambda_body(Parser *parser, const PyNode *node) {
  if (!py_is_list(node)) return parse_value(parser, node);
  Expr **items = arena_array(parser->arena, Expr *, node->count);
  for (int i = 0; i < node->count; i++)
    if (!(items[i] = parse_value(parser, node->items[i]))) return NULL;
  return expr_tuple(parser->context, items, node->count);
}

// Parameter number i has the type of like[i % like_count], or int32 without `like`.
static Expr *lambda_of(Parser *parser, const PyNode *node, Expr *const *like, int like_count) {
  if (node->kind != PY_LAMBDA) {
    REPORT(parser, node, "expected a lambda, saw %s", py_kind_name(node->kind));
    return NULL;
  }
  int count = node->count - 1, mark = parser_mark(parser);
  Expr **parts = arena_array(parser->arena, Expr *, count + 1);
  for (int i = 0; i < count; i++) {
    if (node->items[i]->kind != PY_NAME) {
      REPORT(parser, node->items[i], "expected the name of a parameter");
      return NULL;
    }
    DType type = like_count ? like[i % like_count]->type : DTYPE_INT32;
    parts[i] = expr_var(parser->context, node->items[i]->text, type);
    parser_bind_expr(parser, node->items[i]->text, parts[i]);
  }
  parts[count] = lambda_body(parser, node->items[count]);
  parser_reset(parser, mark);
  if (!parts[count]) return NULL;
  return expr_raw(parser->context, EXPR_LAMBDA, DTYPE_VOID, NULL, parts, count + 1);
}

// ---- Objects

Expr *parsed_object(Parser *parser, const char *name, Expr *const *args, int count) {
  return expr_raw(parser->context, EXPR_OBJECT, DTYPE_HANDLE, str_intern(parser->context, name),
                  args, count);
}

// T.comm_reducer(lambda x, y: x + y, [T.float32(0)])
static Expr *comm_reducer(Parser *parser, const PyNode *call) {
  PyNode *args[2];
  if (!py_arguments(parser->context, call, "combiner identity", args, NULL)) return NULL;
  if (!py_is_list(args[1])) {
    REPORT(parser, args[1], "expected the list of the identity values");
    return NULL;
  }
  Expr *identity = parse_call_operand(parser, args[1]);
  if (!identity) return NULL;
  if (!identity->count || args[0]->count != 2 * identity->count + 1) {
    REPORT(parser, args[0], "a reducer of %d value%s has a function of %d parameters",
           identity->count, identity->count == 1 ? "" : "s", 2 * identity->count);
    return NULL;
  }
  Expr *combiner = lambda_of(parser, args[0], identity->args, identity->count);
  return combiner ? parsed_object(parser, "comm_reducer", (Expr *[]){combiner, identity}, 2) : NULL;
}

static Expr *index_map(Parser *parser, const PyNode *call) {
  PyNode *args[2];
  if (!py_arguments(parser->context, call, "mapping inverse_index_map?", args, NULL)) return NULL;
  Expr *parts[2] = {lambda_of(parser, args[0], NULL, 0), NULL};
  if (args[1]) parts[1] = lambda_of(parser, args[1], NULL, 0);
  if (!parts[0] || (args[1] && !parts[1])) return NULL;
  return parsed_object(parser, "index_map", parts, args[1] ? 2 : 1);
}

static Expr *plain_object(Parser *parser, const PyNode *call, Str name, const char *signature) {
  PyNode *args[PY_MOST_ARGUMENTS] = {NULL};
  if (!py_arguments(parser->context, call, signature, args, NULL)) return NULL;
  Expr *parts[PY_MOST_ARGUMENTS];
  int count = 0;
  for (; count < PY_MOST_ARGUMENTS && args[count]; count++)
    if (!(parts[count] = parse_attribute_value(parser, args[count]))) return NULL;
  return parsed_object(parser, name, parts, count);
}

static const struct {
  const char *name, *signature;                       // of an object with plain operands
  Expr *(*parse)(Parser *parser, const PyNode *call); // of another one
} objects[] = {
    {"target", "config host?", NULL}, {"iter_var", "var dom iter_type thread_tag", NULL},
    {"Range", "begin end", NULL},     {"comm_reducer", NULL, comm_reducer},
    {"index_map", NULL, index_map},
};

static Expr *value_of_call(Parser *parser, const PyNode *call) {
  Str member = parser_called(parser, call, DIALECT_TIR);
  for (int i = 0; member && i < COUNT_OF(objects); i++) {
    if (strcmp(objects[i].name, member)) continue;
    if (objects[i].parse) return objects[i].parse(parser, call);
    return plain_object(parser, call, member, objects[i].signature);
  }
  return parse_operand(parser, call).e;
}

// ---- Values

static Expr *none_of(Parser *parser) {
  return expr_raw(parser->context, EXPR_NONE, DTYPE_HANDLE, NULL, NULL, 0);
}

// A name is a buffer also where it has one element, which the newer dialect writes without [0].
static Expr *value_of_name(Parser *parser, const PyNode *node) {
  const Buffer *buffer = parser_buffer(parser, node);
  return buffer && !buffer->is_variable ? parse_region_operand(parser, node)
                                        : parse_tile_operand(parser, node);
}

Expr *parse_attribute_value(Parser *parser, const PyNode *node) {
  switch (node->kind) {
  case PY_LIST:
  case PY_TUPLE: return tuple_of(parser, node);
  case PY_DICT: return dictionary_of(parser, node);
  case PY_NONE: return none_of(parser);
  case PY_LAMBDA: return lambda_of(parser, node, NULL, 0);
  case PY_CALL: return value_of_call(parser, node);
  case PY_NAME: return value_of_name(parser, node);
  default: return parse_operand(parser, node).e;
  }
}

// T.handle().ty, a type as an operand, is its name.
static Expr *type_name(Parser *parser, const PyNode *node) {
  DType type;
  if (!parse_dtype(parser, node, &type)) return NULL;
  return expr_string(parser->context, dtype_name(parser->context, type));
}

Expr *parse_call_operand(Parser *parser, const PyNode *node) {
  bool is_type = node->kind == PY_ATTRIBUTE && !strcmp(node->text, "ty");
  if (is_type && node->items[0]->kind == PY_CALL) return type_name(parser, node);
  if (py_is_list(node)) {
    Expr **items = arena_array(parser->arena, Expr *, node->count);
    for (int i = 0; i < node->count; i++)
      if (!(items[i] = parse_call_operand(parser, node->items[i]))) return NULL;
    return expr_tuple(parser->context, items, node->count);
  }
  bool is_value = node->kind == PY_DICT || node->kind == PY_NONE || node->kind == PY_LAMBDA;
  return is_value ? parse_attribute_value(parser, node) : parse_value(parser, node);
}

bool parse_attributes(Parser *parser, const PyNode *node, Attrs *attrs) {
  if (node->kind != PY_DICT)
    return REPORT(parser, node, "expected a dictionary, saw %s", py_kind_name(node->kind));
  for (int i = 0; i < node->count; i += 2) {
    Str key = parse_string(parser, node->items[i], "a key");
    Expr *value = key ? parse_attribute_value(parser, node->items[i + 1]) : NULL;
    if (!value) return false;
    *attrs = attrs_with(&parser->context->arena, *attrs, key, value);
  }
  return true;
}
