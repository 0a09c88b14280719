// SPDX-License-Identifier: Apache-2.0
// Replaces what a script captures from the program around it. A statement is rewritten just before
// it is read, when all names that it can use are bound:
//   A[i, N - 1] = scale(A[i, 0]) * x      with N = 64, scale = lambda v: v + 1, x = 0.5
//   A[i, 63] = (A[i, 0] + 1) * 0.5
// The largest expression without a name of the script is evaluated as a whole; so is a call of a
// captured function, with the script's names in its arguments.
#include "script/parser.h"

// The parameters of the lambdas around an expression.
typedef struct LambdaScope {
  const PyNode *lambda;
  const struct LambdaScope *outer;
} LambdaScope;

typedef struct Uses {
  bool captured;        // has names that the script does not define
  Array(Str) own_names; // names that it defines, dialects included
} Uses;

// ---- Names --------------------------------------------------------------------------------------

static bool is_parameter(const LambdaScope *scope, Str name) {
  for (; scope; scope = scope->outer)
    for (int i = 0; i + 1 < scope->lambda->count; i++) {
      const PyNode *item = scope->lambda->items[i];
      if (item->kind == PY_STAR) item = item->items[0];
      if (item && item->text == name) return true;
    }
  return false;
}

// Functions of Python that the parser reads by itself.
static bool is_known_function(Str name) {
  static const char *const names[] = {"range", "min", "max", "abs", "len"};
  for (int i = 0; i < COUNT_OF(names); i++)
    if (!strcmp(names[i], name)) return true;
  return false;
}

static bool is_own(Parser *parser, const LambdaScope *scope, Str name) {
  return parser_find(parser, name) || is_parameter(scope, name) || parser_is_alias(parser, name) ||
         name == parser->class_name ||
         (!parser->scope && (!strcmp(name, "cls") || module_find(parser->module, name)));
}

static void find_uses(Parser *parser, const PyNode *node, const LambdaScope *scope, Uses *uses) {
  if (!node) return;
  if (node->kind == PY_NAME) {
    if (is_own(parser, scope, node->text))
      array_push(parser->arena, &uses->own_names, node->text);
    else if (!is_known_function(node->text))
      uses->captured = true;
  }
  LambdaScope inner = {node, scope};
  bool is_lambda = node->kind == PY_LAMBDA;
  int first = is_lambda ? node->count - 1 : 0;
  for (int i = first; i < node->count; i++)
    find_uses(parser, node->items[i], is_lambda ? &inner : scope, uses);
}

// The name at the start of a.b(c)[d]; NULL for another expression.
static const PyNode *root_of(const PyNode *node) {
  while (node->kind == PY_ATTRIBUTE || node->kind == PY_CALL || node->kind == PY_SUBSCRIPT)
    node = node->items[0];
  return node->kind == PY_NAME ? node : NULL;
}

static bool has_captured_root(Parser *parser, const PyNode *node, const LambdaScope *scope) {
  const PyNode *root = root_of(node);
  return root && !is_own(parser, scope, root->text) && !is_known_function(root->text);
}

// ---- Values -------------------------------------------------------------------------------------

// The element type of a buffer or variable; NULL for other names and for numbers without a type.
static const char *type_of_name(Parser *parser, Str name) {
  const Binding *binding = parser_find(parser, name);
  if (!binding) return NULL;
  if (binding->kind == BOUND_BUFFER) return dtype_name(parser->context, binding->buffer->type);
  bool is_typed = binding->kind == BOUND_EXPR && !binding->is_literal;
  return is_typed ? dtype_name(parser->context, binding->expr->type) : NULL;
}

static Captured ask(Parser *parser, const PyNode *node, const Uses *uses) {
  Text text = text_new(parser->arena);
  if (!py_print(node, &text)) return (Captured){0};
  int count = uses->own_names.count;
  const char **types = arena_array(parser->arena, const char *, count);
  for (int i = 0; i < count; i++) types[i] = type_of_name(parser, uses->own_names.items[i]);
  return parser->capture->find(parser->capture->env, parser->context, parser->scope,
                               text_string(&text), uses->own_names.items, types, count);
}

// The name of a mistake that is reported.
static PyNode *mistake_new(Parser *parser) {
  PyNode *name = arena_new(parser->arena, PyNode);
  *name = (PyNode){.kind = PY_NAME, .text = str_intern(parser->context, " ")};
  parser_bind(parser, name->text, BOUND_NOTHING);
  return name;
}

static void put_value(Parser *parser, PyNode **slot, const Captured *captured) {
  const PyNode *node = *slot;
  switch (captured->kind) {
  case CAPTURED_UNKNOWN: return;
  case CAPTURED_REFUSED: REPORT(parser, node, "%s", captured->text); break;
  case CAPTURED_MACRO:
    REPORT(parser, node,
           "a macro is used as a statement of its own, in a graph function also as "
           "the whole value of one");
    break;
  case CAPTURED_VALUE: break;
  }
  SourceFile *file =
      source_file_copy(parser->context, "a captured value", captured->text, strlen(captured->text));
  bool has_value = captured->kind == CAPTURED_VALUE;
  PyNode *value = has_value ? py_parse_expression(parser->context, parser->arena, file) : NULL;
  if (has_value && !value) REPORT(parser, node, "this has the value %s", captured->text);
  if (!value) value = mistake_new(parser);
  py_move(value, node->pos);
  *slot = value;
}

// ---- Expressions that stand for several ---------------------------------------------------------

static PyNode *tuple_new(Parser *parser, const PyNode *at, PyNode **items, int count) {
  PyNode *tuple = arena_new(parser->arena, PyNode);
  *tuple = (PyNode){.kind = PY_TUPLE, .pos = at->pos, .items = items, .count = count};
  return tuple;
}

// A.shape as (A.shape[0], A.shape[1], …)
static PyNode *extents_of(Parser *parser, PyNode *node, int rank) {
  PyNode **items = arena_array(parser->arena, PyNode *, rank);
  for (int i = 0; i < rank; i++) {
    PyNode *number = arena_new(parser->arena, PyNode), *item = arena_new(parser->arena, PyNode);
    *number = (PyNode){.kind = PY_INT, .pos = node->pos, .i = i};
    *item = (PyNode){.kind = PY_SUBSCRIPT, .pos = node->pos, .count = 2};
    item->items = arena_copy(parser->arena, (PyNode *[]){node, number}, 2 * sizeof number);
    items[i] = item;
  }
  return tuple_new(parser, node, items, rank);
}

static bool names_extents(const PyNode *node) {
  return node->kind == PY_ATTRIBUTE && node->items[0]->kind == PY_NAME &&
         (!strcmp(node->text, "shape") || !strcmp(node->text, "strides"));
}

// The node that a name stands for. Variables that share the name are at the position of its use.
static PyNode *meant_by(Parser *parser, const PyNode *name, PyNode *node) {
  if (node->kind != PY_TUPLE || !node->text) return node;
  PyNode *here = arena_new(parser->arena, PyNode);
  *here = *node;
  here->pos = name->pos;
  return here;
}

static PyNode *expanded(Parser *parser, PyNode *node) {
  const PyNode *name = node->kind == PY_NAME ? node : names_extents(node) ? node->items[0] : NULL;
  const Binding *binding = name ? parser_find(parser, name->text) : NULL;
  if (binding && binding->kind == BOUND_NODE && name == node)
    return meant_by(parser, name, binding->node);
  if (binding && binding->kind == BOUND_BUFFER && name != node)
    return extents_of(parser, node, binding->buffer->rank);
  return node;
}

static bool is_tuple_index(const PyNode *node, int i) {
  return node->kind == PY_SUBSCRIPT && node->count == 2 && i == 1 &&
         node->items[1]->kind == PY_TUPLE;
}

// Puts the items of `*(a, b)` in its place, and those of a tuple that is the only index.
static void splice(Parser *parser, PyNode *node) {
  PtrArray items = {0};
  for (int i = 0; i < node->count; i++) {
    PyNode *item = node->items[i];
    const PyNode *list = is_tuple_index(node, i)         ? item
                         : item && item->kind == PY_STAR ? item->items[0]
                                                         : NULL;
    if (!py_is_list(list)) {
      array_push(parser->arena, &items, item);
      continue;
    }
    for (int k = 0; k < list->count; k++) array_push(parser->arena, &items, list->items[k]);
  }
  node->items = (PyNode **)items.items;
  node->count = items.count;
}

// ---- The walk -----------------------------------------------------------------------------------

// range stays a loop, also of captured numbers.
static bool may_be_evaluated(Parser *parser, const PyNode *node) {
  PyKind kind = node->kind;
  const PyNode *callee = kind == PY_CALL ? node->items[0] : NULL;
  if (callee && callee->kind == PY_NAME && !strcmp(callee->text, "range") &&
      !parser_find(parser, callee->text))
    return false;
  return kind == PY_NAME || kind == PY_ATTRIBUTE || kind == PY_CALL || kind == PY_SUBSCRIPT ||
         kind == PY_UNARY || kind == PY_BINARY || kind == PY_CONDITIONAL;
}

// The first argument of T.let and the keys of {x: value} are names that they define.
static bool is_defined_here(Parser *parser, const PyNode *node, int i) {
  if (node->items[i]->kind != PY_NAME) return false;
  if (node->kind == PY_DICT) return i % 2 == 0;
  Str member = i == 1 ? parser_called(parser, node, DIALECT_TIR) : NULL;
  return member && !strcmp(member, "let");
}

// `asks` is false where nothing below captures.
static void capture(Parser *parser, PyNode **slot, const LambdaScope *scope, bool asks);

static void capture_items(Parser *parser, PyNode *node, const LambdaScope *scope, bool asks) {
  LambdaScope inner = {node, scope};
  bool is_lambda = node->kind == PY_LAMBDA, has_star = false;
  for (int i = is_lambda ? node->count - 1 : 0; i < node->count; i++) {
    if (!node->items[i] || is_defined_here(parser, node, i)) continue;
    bool is_object = i == 0 && (node->kind == PY_SUBSCRIPT || node->kind == PY_ATTRIBUTE);
    if (is_object && names_extents(node->items[0])) continue;
    capture(parser, &node->items[i], is_lambda ? &inner : scope, asks);
    has_star |= node->items[i]->kind == PY_STAR || is_tuple_index(node, i);
  }
  if (has_star && !is_lambda) splice(parser, node);
}

// The element of a tuple at a written index, such as x[0] or x[-1] where x stands for loops; NULL
// for another subscript.
static PyNode *tuple_element(const PyNode *node) {
  const PyNode *index = node->kind == PY_SUBSCRIPT && node->count == 2 ? node->items[1] : NULL;
  const PyNode *tuple = index ? node->items[0] : NULL;
  if (!py_is_list(tuple)) return NULL;
  bool is_negative = index->kind == PY_UNARY && !strcmp(index->text, "-");
  if (is_negative) index = index->items[0];
  if (index->kind != PY_INT) return NULL;
  int64_t at = is_negative ? tuple->count - index->i : index->i;
  return at >= 0 && at < tuple->count ? tuple->items[at] : NULL;
}

// The value of a dictionary for a written key, such as others["x"] in a macro with `**others`.
static PyNode *dictionary_element(const PyNode *node) {
  bool is_element = node->kind == PY_SUBSCRIPT && node->count == 2 &&
                    node->items[0]->kind == PY_DICT && node->items[1]->kind == PY_STRING;
  for (int i = 0; is_element && i < node->items[0]->count; i += 2) {
    const PyNode *key = node->items[0]->items[i];
    if (key->kind == PY_STRING && !strcmp(key->text, node->items[1]->text))
      return node->items[0]->items[i + 1];
  }
  return NULL;
}

// len(A.shape), and that of other tuples.
static PyNode *tuple_length(Parser *parser, const PyNode *node) {
  bool is_len = node->kind == PY_CALL && node->count == 2 && node->items[0]->kind == PY_NAME &&
                !strcmp(node->items[0]->text, "len");
  if (!is_len || !py_is_list(node->items[1])) return NULL;
  PyNode *length = arena_new(parser->arena, PyNode);
  *length = (PyNode){.kind = PY_INT, .pos = node->pos, .i = node->items[1]->count};
  return length;
}

static bool captures(const Parser *parser) {
  return parser->capture && parser->capture->find;
}

// Does Python know all of an expression: are its names, if any, captured ones?
static bool is_pythons(Parser *parser, const PyNode *node, const LambdaScope *scope) {
  Uses uses = {0};
  find_uses(parser, node, scope, &uses);
  return !uses.own_names.count;
}

// `a if flag else b` is one of the two where Python knows the condition: T.int32 if wide else
// T.int8, which Python cannot compute. Parameters of a macro have become their values then.
static void choose(Parser *parser, PyNode **slot, const LambdaScope *scope) {
  if ((*slot)->kind != PY_CONDITIONAL || !captures(parser)) return;
  PyNode **condition = &(*slot)->items[1];
  if (!is_pythons(parser, *condition, scope)) capture(parser, condition, scope, true);
  Text text = text_new(parser->arena);
  text_puts(&text, "bool(");
  if (!is_pythons(parser, *condition, scope) || !py_print(*condition, &text)) return;
  text_puts(&text, ")");
  Captured captured = parser->capture->find(parser->capture->env, parser->context, parser->scope,
                                            text_string(&text), NULL, NULL, 0);
  if (captured.kind != CAPTURED_VALUE) return;
  *slot = (*slot)->items[strcmp(captured.text, "True") ? 2 : 0];
  choose(parser, slot, scope);
}

static void capture(Parser *parser, PyNode **slot, const LambdaScope *scope, bool asks) {
  choose(parser, slot, scope);
  PyNode *node = *slot;
  Uses uses = {0};
  if (asks && parser_is_emit_te(parser, node)) {
    *slot = parser_emit_te(parser, node);
    if (!*slot) *slot = mistake_new(parser);
    py_move(*slot, node->pos);
    return;
  }
  if (asks && may_be_evaluated(parser, node)) {
    find_uses(parser, node, scope, &uses);
    asks = uses.captured;
  }
  if (uses.captured && (!uses.own_names.count || has_captured_root(parser, node, scope))) {
    Captured captured = ask(parser, node, &uses);
    put_value(parser, slot, &captured);
    return;
  }
  capture_items(parser, node, scope, asks);
  if (node->kind == PY_NAME || node->kind == PY_ATTRIBUTE) *slot = expanded(parser, node);
  PyNode *element = tuple_element(node);
  if (!element) element = dictionary_element(node);
  if (!element) element = tuple_length(parser, node);
  if (element) *slot = element;
}

void parser_capture(Parser *parser, PyNode **expression) {
  if (*expression) capture(parser, expression, NULL, captures(parser));
}

static void capture_arguments(Parser *parser, PyNode *call) {
  for (int i = 1; i < call->count; i++) parser_capture(parser, &call->items[i]);
  splice(parser, call);
}

Captured parser_capture_call(Parser *parser, PyNode **call) {
  Uses uses = {0};
  bool is_captured =
      captures(parser) && (*call)->kind == PY_CALL && has_captured_root(parser, *call, NULL);
  if (is_captured) find_uses(parser, *call, NULL, &uses);
  Captured captured = is_captured ? ask(parser, *call, &uses) : (Captured){0};
  if (captured.kind == CAPTURED_MACRO)
    capture_arguments(parser, *call);
  else if (is_captured)
    put_value(parser, call, &captured);
  else
    parser_capture(parser, call);
  return captured;
}

void parser_capture_statement(Parser *parser, const PyNode *node) {
  // For each kind, a bit for each item that is an expression.
  static const uint8_t expressions[PY_KIND_COUNT] = {
      [PY_ASSIGN] = 2, [PY_ANNOTATED] = 6, [PY_FOR] = 2,    [PY_WHILE] = 1,
      [PY_IF] = 1,     [PY_ASSERT] = 3,    [PY_RETURN] = 1,
  };
  for (int i = 0; i < node->count; i++) {
    bool is_context = node->kind == PY_WITH && i % 2 == 0 && i + 1 < node->count;
    bool is_element = node->kind == PY_ASSIGN && i == 0 && node->items[0]->kind == PY_SUBSCRIPT;
    if (is_context || is_element || (i < 8 && expressions[node->kind] >> i & 1))
      parser_capture(parser, &node->items[i]);
  }
}
