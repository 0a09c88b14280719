// SPDX-License-Identifier: Apache-2.0
// Reads the statements of a captured macro where it is used. An argument that is an expression, or
// a value of a graph function, is computed there; buffers, tuples, strings and types stand for
// themselves.
#include "script/parse_macro.h"

enum { MOST_NESTED = 64 };

// A use of a macro.
typedef struct MacroReader {
  Parser *parser;
  const PyNode *call;
  const Captured *macro;
  MacroArgument *argument;
  void *env;
} MacroReader;

static const PyNode *definition(Parser *parser, const Captured *macro) {
  PyNode *suite = py_parse_file(parser->context, parser->arena, macro->file, PY_STATEMENTS);
  parser_name_dialects(parser, suite);
  for (int i = 0; suite && i < suite->count; i++)
    if (suite->items[i]->kind == PY_DEF) return suite->items[i];
  return NULL;
}

// An argument for number `i` of the parameters, by position or by name, or the default. `i` is -1
// for a parameter behind `*`, which has a name only.
static PyNode *argument_for(Parser *parser, const PyNode *call, const PyNode *param, int i) {
  int positions = 0;
  PyNode *found = NULL;
  for (int k = 1; k < call->count; k++) {
    PyNode *item = call->items[k];
    bool is_keyword = item->kind == PY_KEYWORD;
    if (is_keyword ? strcmp(item->text, param->text) != 0 : positions++ != i) continue;
    if (found) REPORT(parser, item, "argument '%s' is given twice", param->text);
    found = is_keyword ? item->items[0] : item;
  }
  if (!found && !param->items[1])
    REPORT(parser, call, "argument '%s' of the macro is missing", param->text);
  return found ? found : param->items[1];
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
static Binding bound_argument(const MacroReader *m, PyNode *argument) {
  const Binding *known = argument->kind == PY_NAME ? parser_lookup(m->parser, argument) : NULL;
  if (known) return *known;
  if (stands_for_itself(m->parser, argument))
    return (Binding){.kind = BOUND_NODE, .node = argument};
  return m->argument(m->env, m->parser, argument);
}

// The value of a parameter's default, which uses the names around the macro.
static PyNode *default_of(const MacroReader *m, const PyNode *param) {
  Parser *parser = m->parser;
  int scope = parser->scope;
  Map names = parser->names;
  parser->names = map_new(parser->arena);
  parser->scope = m->macro->scope;
  parser_capture(parser, &param->items[1]);
  parser->scope = scope;
  parser->names = names;
  return param->items[1];
}

typedef Array(Binding) Bindings;

static void add_binding(Parser *parser, Bindings *bindings, Str name, Binding binding) {
  binding.name = name;
  array_push(parser->arena, bindings, binding);
}

static PyNode *new_node(Parser *parser, PyKind kind, const PyNode *at, Str text) {
  PyNode *node = arena_new(parser->arena, PyNode);
  *node = (PyNode){.kind = kind, .pos = at->pos, .text = text};
  return node;
}

// Gives one of several arguments a name of its own, which no script can write.
static PyNode *named_argument(const MacroReader *m, Bindings *bindings, PyNode *argument,
                              Str name) {
  add_binding(m->parser, bindings, name, bound_argument(m, argument));
  return new_node(m->parser, PY_NAME, argument, name);
}

static bool has_parameter(const PyNode *params, Str name) {
  for (int i = 0; i < params->count; i++)
    if (params->items[i]->i == PY_PLAIN && params->items[i]->text == name) return true;
  return false;
}

// Binds `*name` to the tuple of the arguments by position from number `first` on, or `**name` to
// the dictionary of those that are given by other names than the parameters'.
static void bind_rest(const MacroReader *m, const PyNode *params, const PyNode *param, int first,
                      Bindings *bindings) {
  Parser *parser = m->parser;
  const PyNode *call = m->call;
  PtrArray items = {0};
  int position = 0;
  for (int k = 1; k < call->count; k++) {
    PyNode *item = call->items[k];
    if (item->kind != PY_KEYWORD && param->i == PY_REST && position++ >= first) {
      Str name = str_format(parser->context, "%s[%d]", param->text, position - 1 - first);
      array_push(parser->arena, &items, named_argument(m, bindings, item, name));
    } else if (item->kind == PY_KEYWORD && param->i == PY_REST_BY_NAME &&
               !has_parameter(params, item->text)) {
      Str name = str_format(parser->context, "%s[%s]", param->text, item->text);
      array_push(parser->arena, &items, new_node(parser, PY_STRING, item, item->text));
      array_push(parser->arena, &items, named_argument(m, bindings, item->items[0], name));
    }
  }
  PyNode *all = new_node(parser, param->i == PY_REST ? PY_TUPLE : PY_DICT, call, NULL);
  all->items = (PyNode **)items.items;
  all->count = items.count;
  add_binding(parser, bindings, param->text, (Binding){.kind = BOUND_NODE, .node = all});
}

// Reports arguments that no parameter takes. `positions`: of those without a name; -1: any number.
static void check_arguments(Parser *parser, const PyNode *call, const PyNode *params, int positions,
                            bool any_name) {
  int given = 0;
  for (int k = 1; k < call->count; k++) {
    const PyNode *item = call->items[k];
    given += item->kind != PY_KEYWORD;
    if (item->kind == PY_KEYWORD && !any_name && !has_parameter(params, item->text))
      REPORT(parser, item, "the macro has no parameter '%s'", item->text);
  }
  if (positions >= 0 && given > positions)
    REPORT(parser, call, "the macro takes %d arguments, saw %d", positions, given);
}

static bool bind_arguments(const MacroReader *m, const PyNode *params, Bindings *bindings) {
  Parser *parser = m->parser;
  const PyNode *call = m->call;
  int errors = parser->context->error_count, positions = 0;
  bool any_position = false, any_name = false, by_name = false;
  for (int i = 0; i < params->count; i++) {
    const PyNode *param = params->items[i];
    any_position |= param->i == PY_REST && param->text;
    any_name |= param->i == PY_REST_BY_NAME;
    by_name |= param->i == PY_REST;
    if (param->i == PY_PLAIN) {
      PyNode *argument = argument_for(parser, call, param, by_name ? -1 : positions++);
      if (argument && argument == param->items[1]) argument = default_of(m, param);
      if (argument) add_binding(parser, bindings, param->text, bound_argument(m, argument));
    } else if (param->text) {
      bind_rest(m, params, param, positions, bindings);
    }
  }
  check_arguments(parser, call, params, any_position ? -1 : positions, any_name);
  return errors == parser->context->error_count;
}

static void put_bindings(Parser *parser, const Bindings *bindings) {
  for (int i = 0; i < bindings->count; i++) {
    Binding *binding = parser_bind(parser, bindings->items[i].name, BOUND_NOTHING);
    int hidden = binding->hidden;
    *binding = bindings->items[i];
    binding->hidden = hidden;
  }
}

const PyNode *macro_begin(Parser *parser, const PyNode *call, const Captured *macro,
                          MacroArgument *argument, void *env, MacroScope *outer) {
  MacroReader m = {parser, call, macro, argument, env};
  if (parser->macro_depth == MOST_NESTED) {
    REPORT(parser, call, "macros use each other more than %d levels deep", MOST_NESTED);
    return NULL;
  }
  const PyNode *def = definition(parser, macro);
  Bindings bindings = {0};
  if (!def || !bind_arguments(&m, def->items[1], &bindings)) return NULL;
  *outer = (MacroScope){parser->names, parser->scope, parser_mark(parser)};
  if (!macro->sees_names) parser->names = map_new(parser->arena);
  parser->scope = macro->scope;
  parser->macro_depth++;
  put_bindings(parser, &bindings);
  return def->items[3];
}

void macro_end(Parser *parser, const MacroScope *outer) {
  parser_reset(parser, outer->mark);
  parser->macro_depth--;
  parser->scope = outer->scope;
  parser->names = outer->names;
}

// ---- Tensor programs

static Binding operand(void *env, Parser *parser, const PyNode *argument) {
  (void)env;
  Operand value = parse_operand(parser, argument);
  return (Binding){.kind = value.e ? BOUND_EXPR : BOUND_NOTHING,
                   .expr = value.e,
                   .is_literal = value.is_literal};
}

void parse_macro(Parser *parser, Sequence *sequence, const PyNode *call, const Captured *macro) {
  MacroScope outer;
  const PyNode *suite = macro_begin(parser, call, macro, operand, NULL, &outer);
  if (!suite) return;
  for (int i = 0; i < suite->count; i++) parse_statement(parser, sequence, suite->items[i]);
  macro_end(parser, &outer);
}
