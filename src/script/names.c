// SPDX-License-Identifier: Apache-2.0
// Keeps the names that are visible while a script is read, and the aliases of the dialects.
#include "script/parser.h"

Dialect parser_dialect(const char *dotted) {
  static const struct {
    const char *name;
    Dialect dialect;
  } names[] = {{"tir", DIALECT_TIR},
               {"tirx", DIALECT_TIR},
               {"s_tir", DIALECT_TIR},
               {"relax", DIALECT_GRAPH},
               {"ir", DIALECT_MODULE}};
  const char *last = strrchr(dotted, '.');
  last = last ? last + 1 : dotted;
  for (int i = 0; i < COUNT_OF(names); i++)
    if (!strcmp(names[i].name, last)) return names[i].dialect;
  return DIALECT_NONE;
}

// S, or tvm.script and pleat.script whatever the package is called here.
static bool is_script_module(const Parser *parser, const PyNode *node) {
  if (node->kind == PY_NAME) return map_contains(&parser->script_names, node->text);
  return node->kind == PY_ATTRIBUTE && node->items[0]->kind == PY_NAME &&
         !strcmp(node->text, "script");
}

void parser_name_dialects(Parser *parser, PyNode *node) {
  if (!node) return;
  for (int i = 0; i < node->count; i++) parser_name_dialects(parser, node->items[i]);
  if (node->kind != PY_ATTRIBUTE || !is_script_module(parser, node->items[0])) return;
  Dialect dialect = parser_dialect(node->text);
  bool is_decorator = !strcmp(node->text, "ir_module");
  if (!dialect && !is_decorator) return;
  Str name = is_decorator ? node->text : py_dotted_name(parser->context, node);
  if (dialect) map_put(&parser->dialects, name, (uintptr_t)dialect);
  if (!strcmp(node->text, "tirx")) map_put(&parser->newer_aliases, name, name);
  *node = (PyNode){.kind = PY_NAME, .pos = node->pos, .text = name};
}

bool parser_is_alias(const Parser *parser, Str name) {
  return (uintptr_t)map_find(&parser->dialects, name) != DIALECT_NONE;
}

static Str dotted_rest(Parser *parser, const PyNode *node, Dialect dialect) {
  if (node->kind == PY_NAME)
    return (Dialect)(uintptr_t)map_find(&parser->dialects, node->text) == dialect ? "" : NULL;
  if (node->kind != PY_ATTRIBUTE) return NULL;
  Str object = dotted_rest(parser, node->items[0], dialect);
  if (!object) return NULL;
  return *object ? str_format(parser->context, "%s.%s", object, node->text) : node->text;
}

Str parser_member(Parser *parser, const PyNode *node, Dialect dialect) {
  Str member = dotted_rest(parser, node, dialect);
  return member && *member ? member : NULL;
}

Str parser_called(Parser *parser, const PyNode *node, Dialect dialect) {
  return node->kind == PY_CALL ? parser_member(parser, node->items[0], dialect) : NULL;
}

// ---- Bindings

static int index_of(const Parser *parser, Str name) {
  return (int)(intptr_t)map_find(&parser->names, name);
}

Binding *parser_bind(Parser *parser, Str name, BindingKind kind) {
  Binding binding = {.name = name, .kind = kind, .hidden = index_of(parser, name)};
  array_push(parser->arena, &parser->bindings, binding);
  map_put(&parser->names, name, (intptr_t)parser->bindings.count);
  return &array_last(&parser->bindings);
}

void parser_bind_expr(Parser *parser, Str name, Expr *e) {
  parser_bind(parser, name, BOUND_EXPR)->expr = e;
}

void parser_bind_buffer(Parser *parser, Str name, Buffer *buffer) {
  parser_bind(parser, name, BOUND_BUFFER)->buffer = buffer;
}

void parser_bind_nothing(Parser *parser, const PyNode *target) {
  if (!target) return;
  if (target->kind == PY_NAME) parser_bind(parser, target->text, BOUND_NOTHING);
  if (py_is_list(target))
    for (int i = 0; i < target->count; i++) parser_bind_nothing(parser, target->items[i]);
}

Binding *parser_find(Parser *parser, Str name) {
  int index = index_of(parser, name);
  return index ? &parser->bindings.items[index - 1] : NULL;
}

int parser_mark(const Parser *parser) {
  return parser->bindings.count;
}

void parser_reset(Parser *parser, int mark) {
  while (parser->bindings.count > mark) {
    Binding *last = &array_last(&parser->bindings);
    map_put(&parser->names, last->name, (intptr_t)last->hidden);
    if (last->kind == BOUND_EXPR) map_put(&parser->ended, last->name, (intptr_t)last->name);
    parser->bindings.count--;
  }
}

// ---- Suggestions

const char *parser_suggestion(Parser *parser, const char *word, const char *const *names,
                              int count) {
  return suggestion_of(&parser->context->arena, word, names, count);
}

static const char *parser_suggest_bound(Parser *parser, const char *word) {
  Array(const char *) names = {0};
  for (int i = 0; i < parser->bindings.count; i++)
    array_push(parser->arena, &names, parser->bindings.items[i].name);
  return parser_suggestion(parser, word, names.items, names.count);
}

Binding *parser_lookup(Parser *parser, const PyNode *name) {
  Binding *binding = parser_find(parser, name->text);
  if (binding) return binding;
  bool ended = map_find(&parser->ended, name->text) != 0;
  REPORT(parser, name, ended ? "'%s' is not defined here%s" : "'%s' is not defined%s", name->text,
         ended ? "\nit is defined in the loop or block above, and only inside of it"
               : parser_suggest_bound(parser, name->text));
  parser_bind(parser, name->text, BOUND_NOTHING);
  return NULL;
}

const char *parser_type_name(Parser *parser, DType type) {
  return dtype_equal(type, DTYPE_STRING) ? "string" : dtype_name(parser->context, type);
}
