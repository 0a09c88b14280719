// SPDX-License-Identifier: Apache-2.0
// Parses the statements of the Python subset, and skips other Python.
#include "script/python_parser.h"

enum { MOST_SUITES = 100 };

static PyNode *statement(PyParser *parser);
// A function of a module without a decorator is not read: it was probably forgotten.
static void report_undecorated(PyParser *parser) {
  const Token *token = py_token(parser);
  SourcePos pos = {parser->file, token->begin, token->end, NULL};
  diag_error(
      parser->context, pos,
      "this function of a module has no decorator\nwrite @T.prim_func or @R.function above it");
}

static PyNode *items_of_level(PyParser *parser, TokenKind end);

// ---- Recovery

static void skip_suite(PyParser *parser) {
  int depth = 0;
  do {
    depth += py_at_kind(parser, TOKEN_INDENT) - py_at_kind(parser, TOKEN_DEDENT);
    py_advance(parser);
  } while (depth > 0 && !py_at_kind(parser, TOKEN_END));
}

// Skips the rest of the statement that began at token `start`, and the indented lines below it.
static void skip_statement(PyParser *parser, int start) {
  bool at_next = parser->at > start && parser->tokens.items[parser->at - 1].kind == TOKEN_NEWLINE;
  if (at_next && !py_at_kind(parser, TOKEN_INDENT)) return;
  if (py_at_kind(parser, TOKEN_INDENT)) {
    skip_suite(parser);
    return;
  }
  while (!py_at_kind(parser, TOKEN_NEWLINE) && !py_at_kind(parser, TOKEN_END)) py_advance(parser);
  if (py_at_kind(parser, TOKEN_NEWLINE)) py_advance(parser);
  if (py_at_kind(parser, TOKEN_INDENT)) skip_suite(parser);
}

static bool end_of_line(PyParser *parser) {
  if (py_accept(parser, ";")) {
    if (py_at_kind(parser, TOKEN_NEWLINE)) py_advance(parser);
    return true;
  }
  if (py_at_kind(parser, TOKEN_NEWLINE)) {
    py_advance(parser);
    return true;
  }
  if (py_at_kind(parser, TOKEN_END)) return true;
  py_expected(parser, "the end of the statement");
  return false;
}

// ---- Suites

static void statements_until(PyParser *parser, TokenKind end, PtrArray *items) {
  while (!py_at_kind(parser, end) && !py_at_kind(parser, TOKEN_END)) {
    int start = parser->at;
    PyNode *node = statement(parser);
    if (node)
      array_push(parser->arena, items, node);
    else
      skip_statement(parser, start);
  }
}

// suite: ":" (simple statements on the line | NEWLINE INDENT statement+ DEDENT)
static PyNode *suite(PyParser *parser, bool is_level) {
  int32_t begin = py_token(parser)->begin;
  if (!py_expect(parser, ":")) return NULL;
  PtrArray items = {0};
  if (!py_at_kind(parser, TOKEN_NEWLINE)) {
    do {
      PyNode *node = statement(parser);
      if (!node) return NULL;
      array_push(parser->arena, &items, node);
    } while (parser->tokens.items[parser->at - 1].kind == TOKEN_OPERATOR);
    return py_node(parser, PY_SUITE, begin, (PyNode **)items.items, items.count);
  }
  py_advance(parser);
  if (!py_at_kind(parser, TOKEN_INDENT)) return py_expected(parser, "indented lines");
  py_advance(parser);
  if (is_level) return items_of_level(parser, TOKEN_DEDENT);
  statements_until(parser, TOKEN_DEDENT, &items);
  if (py_at_kind(parser, TOKEN_DEDENT)) py_advance(parser);
  return py_node(parser, PY_SUITE, begin, (PyNode **)items.items, items.count);
}

// A statement with a heading and a suite. If the suite has no lines that can be read, its mistake
// is reported and the caller skips the lines below.
static PyNode *compound(PyParser *parser, PyKind kind, int32_t begin, PtrArray *items) {
  PyNode *body = suite(parser, false);
  if (!body) return NULL;
  array_push(parser->arena, items, body);
  return py_node(parser, kind, begin, (PyNode **)items->items, items->count);
}

static PyNode *loop(PyParser *parser, PyKind kind, int32_t begin, PtrArray *items) {
  PyNode *node = compound(parser, kind, begin, items);
  bool has_else = node && py_at(parser, "else");
  return has_else ? py_expected(parser, "a statement (a loop has no 'else')") : node;
}

// for: "for" targets "in" expressions suite
static PyNode *for_statement(PyParser *parser) {
  int32_t begin = py_token(parser)->begin;
  py_advance(parser);
  PtrArray items = {0};
  PyNode *target = py_expressions(parser);
  if (!target || !py_expect(parser, "in")) return NULL;
  PyNode *iterator = py_expressions(parser);
  if (!iterator) return NULL;
  array_push(parser->arena, &items, target);
  array_push(parser->arena, &items, iterator);
  return loop(parser, PY_FOR, begin, &items);
}

// while: "while" expression suite
static PyNode *while_statement(PyParser *parser) {
  int32_t begin = py_token(parser)->begin;
  py_advance(parser);
  PtrArray items = {0};
  PyNode *condition = py_expression(parser);
  if (!condition) return NULL;
  array_push(parser->arena, &items, condition);
  return loop(parser, PY_WHILE, begin, &items);
}

// if: ("if" | "elif") expression suite (if-with-elif | "else" suite)?
static PyNode *if_statement(PyParser *parser) {
  int32_t begin = py_token(parser)->begin;
  py_advance(parser);
  PyNode *parts[3] = {py_expression(parser)};
  if (!parts[0]) return NULL;
  parts[1] = suite(parser, false);
  if (!parts[1]) return NULL;
  if (py_at(parser, "elif")) {
    if (++parser->nesting > MOST_SUITES) return py_expected(parser, "fewer branches");
    PyNode *branch = if_statement(parser);
    parser->nesting--;
    if (!branch) return NULL;
    parts[2] = py_node(parser, PY_SUITE, branch->pos.begin, &branch, 1);
  } else if (py_accept(parser, "else")) {
    parts[2] = suite(parser, false);
    if (!parts[2]) return NULL;
  }
  return py_node(parser, PY_IF, begin, parts, 3);
}

// with: "with" expression ("as" primary)? ("," …)* suite
static PyNode *with_statement(PyParser *parser) {
  int32_t begin = py_token(parser)->begin;
  py_advance(parser);
  PtrArray items = {0};
  do {
    PyNode *context = py_expression(parser), *target = NULL;
    if (!context) return NULL;
    if (py_accept(parser, "as") && !(target = py_expression(parser))) return NULL;
    array_push(parser->arena, &items, context);
    array_push(parser->arena, &items, target);
  } while (py_accept(parser, ","));
  return compound(parser, PY_WITH, begin, &items);
}

// ---- Definitions

// The mark before or in place of a parameter's name. Only macros, in PY_STATEMENTS, have marks.
static PyMark parameter_mark(PyParser *parser) {
  if (parser->mode != PY_STATEMENTS) return PY_PLAIN;
  return py_accept(parser, "**")  ? PY_REST_BY_NAME
         : py_accept(parser, "*") ? PY_REST
         : py_accept(parser, "/") ? PY_POSITIONAL
                                  : PY_PLAIN;
}

// parameter: ("*" | "**")? NAME (":" expression)? ("=" expression)? | "*" | "/"
static PyNode *parameter(PyParser *parser) {
  int32_t begin = py_token(parser)->begin;
  PyMark mark = parameter_mark(parser);
  bool may_lack_name = mark == PY_REST || mark == PY_POSITIONAL;
  if (!py_at_name(parser) && !may_lack_name) return py_expected(parser, "the name of a parameter");
  Str name = py_at_name(parser) ? py_token(parser)->text : NULL;
  if (name) py_advance(parser);
  PyNode *parts[2] = {NULL};
  if (name && py_accept(parser, ":") && !(parts[0] = py_expression(parser))) return NULL;
  if (name && py_accept(parser, "=") && !(parts[1] = py_expression(parser))) return NULL;
  PyNode *node = py_node(parser, PY_PARAM, begin, parts, 2);
  if (node) node->text = name, node->i = mark;
  return node;
}

static PyNode *list_until(PyParser *parser, const char *close, PyNode *(*item)(PyParser *)) {
  int32_t begin = py_token(parser)->begin;
  PtrArray items = {0};
  while (!py_at(parser, close)) {
    PyNode *node = item(parser);
    if (!node) return NULL;
    array_push(parser->arena, &items, node);
    if (!py_accept(parser, ",")) break;
  }
  if (!py_accept(parser, close))
    return py_expected(parser, str_format(parser->context, "',' or '%s'", close));
  return py_node(parser, PY_LIST, begin, (PyNode **)items.items, items.count);
}

// def: "def" NAME "(" parameters ")" ("->" expression)? suite
static PyNode *def_statement(PyParser *parser, PyNode *decorators) {
  int32_t begin = py_token(parser)->begin;
  py_advance(parser);
  if (!py_at_name(parser)) return py_expected(parser, "the name of a function");
  Str name = py_token(parser)->text;
  py_advance(parser);
  if (!py_expect(parser, "(")) return NULL;
  PyNode *parts[4] = {decorators, list_until(parser, ")", parameter)};
  if (!parts[1]) return NULL;
  if (py_accept(parser, "->") && !(parts[2] = py_expression(parser))) return NULL;
  int32_t end = parser->tokens.items[parser->at - 1].end;
  parts[3] = suite(parser, false);
  if (!parts[3]) return NULL;
  PyNode *node = py_node(parser, PY_DEF, begin, parts, 4);
  if (!node) return NULL;
  node->text = name;
  node->pos.end = end; // messages underline the heading
  return node;
}

// class: "class" NAME ("(" bases ")")? suite
static PyNode *class_statement(PyParser *parser, PyNode *decorators) {
  int32_t begin = py_token(parser)->begin;
  py_advance(parser);
  if (!py_at_name(parser)) return py_expected(parser, "the name of a class");
  Str name = py_token(parser)->text;
  py_advance(parser);
  PyNode *parts[3] = {decorators};
  if (py_accept(parser, "(")) {
    parts[1] = list_until(parser, ")", py_expression);
    if (!parts[1]) return NULL;
  }
  int32_t end = parser->tokens.items[parser->at - 1].end;
  parts[2] = suite(parser, parser->mode == PY_DEFINITIONS);
  if (!parts[2]) return NULL;
  PyNode *node = py_node(parser, PY_CLASS, begin, parts, 3);
  if (!node) return NULL;
  node->text = name;
  node->pos.end = end;
  return node;
}

// decorators: ("@" expression NEWLINE)*
static PyNode *decorators(PyParser *parser) {
  int32_t begin = py_token(parser)->begin;
  PtrArray items = {0};
  while (py_accept(parser, "@")) {
    PyNode *node = py_expression(parser);
    if (!node || !end_of_line(parser)) return NULL;
    array_push(parser->arena, &items, node);
  }
  return py_node(parser, PY_LIST, begin, (PyNode **)items.items, items.count);
}

static PyNode *definition(PyParser *parser) {
  PyNode *list = decorators(parser);
  if (!list) return NULL;
  if (py_at(parser, "def")) return def_statement(parser, list);
  if (py_at(parser, "class")) return class_statement(parser, list);
  return py_expected(parser, "'def' or 'class' after a decorator");
}

// ---- Simple statements

static PyNode *dotted(PyParser *parser) {
  int32_t begin = py_token(parser)->begin;
  Text text = text_new(parser->arena);
  while (py_accept(parser, ".")) text_puts(&text, ".");
  while (py_at_kind(parser, TOKEN_NAME) && !py_at(parser, "import")) {
    text_puts(&text, py_token(parser)->text);
    py_advance(parser);
    if (!py_accept(parser, ".")) break;
    text_puts(&text, ".");
  }
  PyNode *node = py_node(parser, PY_NAME, begin, NULL, 0);
  node->text = str_intern(parser->context, text_string(&text));
  return node;
}

// One imported name: a PY_KEYWORD with the local name, and the whole dotted name below it.
static PyNode *import_alias(PyParser *parser, Str module) {
  int32_t begin = py_token(parser)->begin;
  if (py_accept(parser, "*")) return py_node(parser, PY_PASS, begin, NULL, 0);
  if (!py_at_name(parser)) return py_expected(parser, "a name to import");
  PyNode *source = dotted(parser);
  Str local = source->text;
  if (module) source->text = str_format(parser->context, "%s.%s", module, source->text);
  if (py_accept(parser, "as")) {
    if (!py_at_name(parser)) return py_expected(parser, "a name after 'as'");
    local = py_token(parser)->text;
    py_advance(parser);
  }
  PyNode *node = py_node(parser, PY_KEYWORD, begin, &source, 1);
  node->text = local;
  return node;
}

// import: "import" alias ("," alias)* | "from" dotted "import" ("(" aliases ")" | aliases)
static PyNode *import_statement(PyParser *parser) {
  int32_t begin = py_token(parser)->begin;
  bool is_from = py_at(parser, "from");
  py_advance(parser);
  Str module = NULL;
  if (is_from) {
    module = dotted(parser)->text;
    if (!py_expect(parser, "import")) return NULL;
  }
  PtrArray items = {0};
  bool has_bracket = is_from && py_accept(parser, "(");
  do {
    if (has_bracket && py_at(parser, ")")) break;
    PyNode *alias = import_alias(parser, module);
    if (!alias) return NULL;
    array_push(parser->arena, &items, alias);
  } while (py_accept(parser, ","));
  if (has_bracket && !py_expect(parser, ")")) return NULL;
  return py_node(parser, PY_IMPORT, begin, (PyNode **)items.items, items.count);
}

static PyNode *assert_statement(PyParser *parser) {
  int32_t begin = py_token(parser)->begin;
  py_advance(parser);
  PyNode *parts[2] = {py_expression(parser)};
  if (!parts[0]) return NULL;
  if (py_accept(parser, ",") && !(parts[1] = py_expression(parser))) return NULL;
  return py_node(parser, PY_ASSERT, begin, parts, 2);
}

static PyNode *return_statement(PyParser *parser) {
  int32_t begin = py_token(parser)->begin;
  py_advance(parser);
  PyNode *value = NULL;
  if (!py_at_kind(parser, TOKEN_NEWLINE) && !py_at(parser, ";") &&
      !(value = py_expressions(parser)))
    return NULL;
  return py_node(parser, PY_RETURN, begin, &value, 1);
}

static PyNode *pass_statement(PyParser *parser) {
  int32_t begin = py_token(parser)->begin;
  py_advance(parser);
  return py_node(parser, PY_PASS, begin, NULL, 0);
}

static PyNode *leave_statement(PyParser *parser) {
  int32_t begin = py_token(parser)->begin;
  Str text = py_token(parser)->text;
  py_advance(parser);
  PyNode *node = py_node(parser, PY_LEAVE, begin, NULL, 0);
  if (node) node->text = text;
  return node;
}

static bool at_assignment(const PyParser *parser) {
  const Token *token = py_token(parser);
  if (token->kind != TOKEN_OPERATOR) return false;
  size_t n = strlen(token->text);
  return token->text[n - 1] == '=' && strcmp(token->text, "==") && strcmp(token->text, "!=") &&
         strcmp(token->text, "<=") && strcmp(token->text, ">=") && strcmp(token->text, ":=");
}

// expressions ((":" expression)? ("=" | "+=" …) expressions)?
static PyNode *expression_statement(PyParser *parser) {
  PyNode *parts[3] = {py_expressions(parser)};
  if (!parts[0]) return NULL;
  int32_t begin = parts[0]->pos.begin;
  if (py_accept(parser, ":")) {
    parts[1] = py_expression(parser);
    if (!parts[1]) return NULL;
    if (py_accept(parser, "=") && !(parts[2] = py_expressions(parser))) return NULL;
    return py_node(parser, PY_ANNOTATED, begin, parts, 3);
  }
  if (!at_assignment(parser)) return py_node(parser, PY_EXPRESSION, begin, parts, 1);
  Str operator= py_token(parser)->text;
  py_advance(parser);
  parts[1] = py_expressions(parser);
  if (!parts[1]) return NULL;
  PyNode *node = py_node(parser, PY_ASSIGN, begin, parts, 2);
  if (node) node->text = operator;
  return node;
}

typedef struct StatementRule {
  const char *keyword;
  PyNode *(*parse)(PyParser *parser);
  bool is_simple;
} StatementRule;

static const StatementRule statement_rules[] = {
    {"for", for_statement, false},      {"while", while_statement, false},
    {"if", if_statement, false},        {"with", with_statement, false},
    {"@", definition, false},           {"def", definition, false},
    {"class", definition, false},       {"import", import_statement, true},
    {"from", import_statement, true},   {"assert", assert_statement, true},
    {"return", return_statement, true}, {"pass", pass_statement, true},
    {"break", leave_statement, true},   {"continue", leave_statement, true},
};

static PyNode *simple(PyParser *parser, PyNode *(*parse)(PyParser *parser)) {
  PyNode *node = parse(parser);
  return node && end_of_line(parser) ? node : NULL;
}

static PyNode *nested(PyParser *parser, PyNode *(*parse)(PyParser *parser)) {
  if (parser->nesting >= MOST_SUITES) return py_expected(parser, "fewer levels of nesting");
  parser->nesting++;
  PyNode *node = parse(parser);
  parser->nesting--;
  return node;
}

static PyNode *statement(PyParser *parser) {
  if (py_at_kind(parser, TOKEN_INDENT)) return py_expected(parser, "a statement at this level");
  for (int i = 0; i < COUNT_OF(statement_rules); i++) {
    const StatementRule *rule = &statement_rules[i];
    if (!py_at(parser, rule->keyword)) continue;
    return rule->is_simple ? simple(parser, rule->parse) : nested(parser, rule->parse);
  }
  return simple(parser, expression_statement);
}

// ---- A level that may hold other Python

static bool is_wanted(const PyParser *parser, const PyNode *list) {
  static const char *const names[] = {"prim_func", "function", "ir_module"};
  for (int i = 0; i < list->count; i++) {
    const PyNode *node = list->items[i];
    if (node->kind == PY_CALL) node = node->items[0];
    if (node->kind != PY_NAME && node->kind != PY_ATTRIBUTE) continue;
    if (py_is_oldest_decorator(parser->context, node)) return true;
    for (int k = 0; k < COUNT_OF(names); k++)
      if (!strcmp(node->text, names[k])) return true;
  }
  return false;
}

static PyNode *wanted_definition(PyParser *parser) {
  int start = parser->at;
  parser->quiet = true;
  PyNode *list = decorators(parser);
  parser->quiet = false;
  bool wanted = list && is_wanted(parser, list);
  if (wanted) parser->at = start;
  PyNode *node = wanted ? nested(parser, definition) : NULL;
  if (!node) skip_statement(parser, start);
  return node;
}

// A simple statement, or NULL when it is other Python, which is skipped.
static PyNode *possible_statement(PyParser *parser) {
  int start = parser->at;
  parser->quiet = true;
  bool is_import = py_at(parser, "import") || py_at(parser, "from");
  PyNode *node = simple(parser, is_import ? import_statement : expression_statement);
  parser->quiet = false;
  if (!node) skip_statement(parser, start);
  return node;
}

static PyNode *items_of_level(PyParser *parser, TokenKind end) {
  int32_t begin = py_token(parser)->begin;
  PtrArray items = {0};
  while (!py_at_kind(parser, end) && !py_at_kind(parser, TOKEN_END)) {
    if (end != TOKEN_END && py_at(parser, "def")) report_undecorated(parser);
    PyNode *node = py_at(parser, "@") ? wanted_definition(parser) : possible_statement(parser);
    if (node) array_push(parser->arena, &items, node);
  }
  if (py_at_kind(parser, end)) py_advance(parser);
  return py_node(parser, PY_SUITE, begin, (PyNode **)items.items, items.count);
}

PyNode *py_parse_file(Context *context, Arena *arena, const SourceFile *file, PyMode mode) {
  PyParser parser = py_parser_new(context, arena, file, mode);
  if (mode == PY_DEFINITIONS) return items_of_level(&parser, TOKEN_END);
  PtrArray items = {0};
  statements_until(&parser, TOKEN_END, &items);
  return py_node(&parser, PY_SUITE, 0, (PyNode **)items.items, items.count);
}
