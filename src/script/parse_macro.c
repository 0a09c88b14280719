// SPDX-License-Identifier: Apache-2.0
// Reads the statements of a captured macro where it is used. An argument that is an expression is
// computed there; buffers, tuples, strings and types stand for themselves.
#include "script/parse_stmt.h"

enum { MOST_NESTED = 64 };

static const PyNode *definition(Parser *parser, const Captured *macro) {
  PyNode *suite = py_parse_file(parser->context, parser->arena, macro->file, PY_STATEMENTS);
  for (int i = 0; suite && i < suite->count; i++)
    if (suite->items[i]->kind == PY_DEF) return suite->items[i];
  return NULL;
}

// The argument for number `i` of the parameters: by position, by name, or the default.
static PyNode *argument_for(Parser *parser, const PyNode *call, const PyNode *param, int i) {
  int positions = 0;
  for (int k = 1; k < call->count; k++) {
    PyNode *item = call->items[k];
    bool is_keyword = item->kind == PY_KEYWORD;
    if (is_keyword && !strcmp(item->text, param->text)) return item->items[0];
    if (!is_keyword && positions++ == i) return item;
  }
  if (!param->items[1]) REPORT(parser, call, "argument '%s' of the macro is missing", param->text);
  return param->items[1];
}

static bool stands_for_itself(Parser *parser, const PyNode *node) {
  switch (node->kind) {
  case PY_INT:
  case PY_FLOAT:
  case PY_STRING:
  case PY_BOOL:
  case PY_NONE:
  case PY_LIST:
  case PY_TUPLE:
  case PY_DICT:
  case PY_LAMBDA: return true;
  default: return parser_member(parser, node, DIALECT_TIR) != NULL;
  }
}

// The value of a parameter, computed from the argument among the names of the caller.
static Binding bound_argument(Parser *parser, PyNode *argument) {
  const Binding *known = argument->kind == PY_NAME ? parser_lookup(parser, argument) : NULL;
  if (known) return *known;
  if (stands_for_itself(parser, argument)) return (Binding){.kind = BOUND_NODE, .node = argument};
  Operand value = parse_operand(parser, argument);
  return (Binding){.kind = value.e ? BOUND_EXPR : BOUND_NOTHING,
                   .expr = value.e,
                   .is_literal = value.is_literal};
}

// The value of a parameter's default, which uses the names around the macro.
static PyNode *default_of(Parser *parser, const PyNode *param, const Captured *macro) {
  int scope = parser->scope;
  Map names = parser->names;
  parser->names = map_new(parser->arena);
  parser->scope = macro->scope;
  parser_capture(parser, &param->items[1]);
  parser->scope = scope;
  parser->names = names;
  return param->items[1];
}

static bool bind_arguments(Parser *parser, const PyNode *call, const PyNode *params,
                           const Captured *macro, Binding *bindings) {
  int errors = parser->context->error_count, given = 0;
  for (int i = 0; i < params->count; i++) {
    const PyNode *param = params->items[i];
    PyNode *argument = argument_for(parser, call, param, i);
    if (argument && argument == param->items[1]) argument = default_of(parser, param, macro);
    if (argument) bindings[i] = bound_argument(parser, argument);
  }
  for (int k = 1; k < call->count; k++) given += call->items[k]->kind != PY_KEYWORD;
  if (given > params->count)
    REPORT(parser, call, "the macro takes %d arguments, saw %d", params->count, given);
  return errors == parser->context->error_count;
}

static void read_body(Parser *parser, Sequence *sequence, const PyNode *def,
                      const Binding *bindings) {
  int mark = parser_mark(parser);
  for (int i = 0; i < def->items[1]->count; i++) {
    Binding *binding = parser_bind(parser, def->items[1]->items[i]->text, BOUND_NOTHING);
    Str name = binding->name;
    int hidden = binding->hidden;
    *binding = bindings[i];
    binding->name = name;
    binding->hidden = hidden;
  }
  const PyNode *suite = def->items[3];
  for (int i = 0; i < suite->count; i++) parse_statement(parser, sequence, suite->items[i]);
  parser_reset(parser, mark);
}

void parse_macro(Parser *parser, Sequence *sequence, const PyNode *call, const Captured *macro) {
  if (parser->macro_depth == MOST_NESTED) {
    REPORT(parser, call, "macros use each other more than %d levels deep", MOST_NESTED);
    return;
  }
  const PyNode *def = definition(parser, macro);
  if (!def) return;
  Binding *bindings = arena_array(parser->arena, Binding, def->items[1]->count);
  if (!bind_arguments(parser, call, def->items[1], macro, bindings)) return;
  Map names = parser->names;
  int scope = parser->scope;
  if (!macro->sees_names) parser->names = map_new(parser->arena);
  parser->scope = macro->scope;
  parser->macro_depth++;
  read_body(parser, sequence, def, bindings);
  parser->macro_depth--;
  parser->scope = scope;
  parser->names = names;
}
