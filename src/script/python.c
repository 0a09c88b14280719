// SPDX-License-Identifier: Apache-2.0
// Parses the expressions of the Python subset, by precedence climbing. Each function has its
// grammar rule above it. A mistake is reported once and gives NULL; the parser continues after the
// statement.
#include "script/python_parser.h"

enum { MOST_DEPTH = 1000, MOST_NESTING = 400 };

const char *py_kind_name(PyKind kind) {
  static const char *const names[PY_KIND_COUNT] = {
      [PY_NAME] = "a name",
      [PY_INT] = "an integer",
      [PY_FLOAT] = "a number",
      [PY_STRING] = "a string",
      [PY_BOOL] = "a truth value",
      [PY_NONE] = "None",
      [PY_ELLIPSIS] = "'...', which stands for what is left out",
      [PY_ATTRIBUTE] = "an attribute",
      [PY_CALL] = "a call",
      [PY_KEYWORD] = "a keyword argument",
      [PY_SUBSCRIPT] = "a subscript",
      [PY_SLICE] = "a slice",
      [PY_LIST] = "a list",
      [PY_TUPLE] = "a tuple",
      [PY_DICT] = "a dictionary",
      [PY_LAMBDA] = "a lambda",
      [PY_STAR] = "a starred expression",
      [PY_UNARY] = "an expression",
      [PY_BINARY] = "an expression",
      [PY_CONDITIONAL] = "a conditional expression",
  };
  return names[kind] ? names[kind] : "a statement";
}

bool py_is_list(const PyNode *node) {
  return node && (node->kind == PY_LIST || node->kind == PY_TUPLE);
}

bool py_mentions(const PyNode *node, Str name) {
  if (!node) return false;
  bool found = node->kind == PY_NAME && node->text == name;
  for (int i = 0; i < node->count && !found; i++) found = py_mentions(node->items[i], name);
  return found;
}

// Does the value read a name that the target sets, or of whose elements it sets one?
static bool reads_target(const PyNode *target, const PyNode *value) {
  bool found = false;
  while (target->kind == PY_SUBSCRIPT || target->kind == PY_ATTRIBUTE) target = target->items[0];
  for (int i = 0; py_is_list(target) && i < target->count && !found; i++)
    found = reads_target(target->items[i], value);
  return found || (target->kind == PY_NAME && py_mentions(value, target->text));
}

bool py_reads_earlier_target(const PyNode *target, const PyNode *value) {
  for (int i = 0; i < target->count; i++)
    for (int k = i + 1; k < value->count; k++)
      if (reads_target(target->items[i], value->items[k])) return true;
  return false;
}

bool py_is_memory_first(const PyNode *call) {
  return call->count >= 3 && call->items[1]->kind == PY_ATTRIBUTE &&
         !strcmp(call->items[1]->text, "data");
}

// ---- Tokens

const Token *py_token(const PyParser *parser) {
  return &parser->tokens.items[parser->at];
}

static const Token *token_after(const PyParser *parser) {
  return &parser->tokens.items[MIN_OF(parser->at + 1, parser->tokens.count - 1)];
}

bool py_at_kind(const PyParser *parser, TokenKind kind) {
  return py_token(parser)->kind == kind;
}

bool py_at(const PyParser *parser, const char *text) {
  const Token *token = py_token(parser);
  return (token->kind == TOKEN_NAME || token->kind == TOKEN_OPERATOR) && *token->text == *text &&
         !strcmp(token->text, text);
}

void py_advance(PyParser *parser) {
  if (parser->at + 1 < parser->tokens.count) parser->at++;
}

bool py_accept(PyParser *parser, const char *text) {
  if (!py_at(parser, text)) return false;
  py_advance(parser);
  return true;
}

static SourcePos token_pos(const PyParser *parser, const Token *token) {
  return (SourcePos){parser->file, token->begin, token->end, NULL};
}

static const char *token_description(PyParser *parser, const Token *token) {
  switch (token->kind) {
  case TOKEN_END: return "the end of the file";
  case TOKEN_NEWLINE: return "the end of the line";
  case TOKEN_INDENT: return "a deeper indentation";
  case TOKEN_DEDENT: return "the end of the indented lines";
  case TOKEN_STRING: return "a string";
  case TOKEN_INT:
  case TOKEN_FLOAT:
  case TOKEN_NAME:
  case TOKEN_OPERATOR:
  case TOKEN_ERROR: break;
  }
  return str_format(parser->context, "'%.*s'", MIN_OF(40, token->end - token->begin),
                    parser->file->text + token->begin);
}

// Keywords of Python that no statement and no expression here has.
static bool is_unsupported(const Token *token) {
  static const char *const words[] = {"async",  "await",    "del",   "except", "finally", "global",
                                      "is",     "nonlocal", "raise", "try",    "yield"};
  for (int i = 0; token->kind == TOKEN_NAME && i < COUNT_OF(words); i++)
    if (!strcmp(token->text, words[i])) return true;
  return false;
}

PyNode *py_expected(PyParser *parser, const char *what) {
  const Token *token = py_token(parser);
  if (parser->quiet) return NULL;
  if (token->kind == TOKEN_ERROR && !token->text) return NULL;
  if (token->kind == TOKEN_ERROR)
    diag_error(parser->context, token_pos(parser, token), "%s", token->text);
  else if (is_unsupported(token))
    diag_error(parser->context, token_pos(parser, token), "'%s' is not supported", token->text);
  else
    diag_error(parser->context, token_pos(parser, token), "expected %s, saw %s", what,
               token_description(parser, token));
  return NULL;
}

static PyNode *refuse(PyParser *parser, SourcePos pos, const char *message) {
  if (!parser->quiet) diag_error(parser->context, pos, "%s", message);
  return NULL;
}

bool py_expect(PyParser *parser, const char *text) {
  if (py_accept(parser, text)) return true;
  py_expected(parser, str_format(parser->context, "'%s'", text));
  return false;
}

// ---- Nodes

PyNode *py_node(PyParser *parser, PyKind kind, int32_t begin, PyNode *const *items, int count) {
  PyNode *node = arena_new(parser->arena, PyNode);
  int32_t end = parser->at ? parser->tokens.items[parser->at - 1].end : begin;
  node->kind = kind;
  node->pos = (SourcePos){parser->file, begin, MAX_OF(begin, end), NULL};
  node->count = count;
  node->items = arena_copy(parser->arena, items, sizeof *items * (size_t)count);
  for (int i = 0; i < count; i++)
    if (items[i]) node->depth = MAX_OF(node->depth, items[i]->depth + 1);
  if (node->depth <= MOST_DEPTH) return node;
  return refuse(parser, node->pos, "this nests too deep (the limit is 1000 levels)");
}

static PyNode *node_text(PyParser *parser, PyKind kind, int32_t begin, Str text,
                         PyNode *const *items, int count) {
  PyNode *node = py_node(parser, kind, begin, items, count);
  if (node) node->text = text;
  return node;
}

// ---- Expressions

static PyNode *expression(PyParser *parser);

bool py_is_keyword(const char *name) {
  static const char *const words[] = {
      "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
      "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
      "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
      "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};
  for (int i = 0; i < COUNT_OF(words); i++)
    if (*name == *words[i] && !strcmp(name, words[i])) return true;
  return false;
}

bool py_at_name(const PyParser *parser) {
  return py_at_kind(parser, TOKEN_NAME) && !py_is_keyword(py_token(parser)->text);
}

// A keyword that is no value.
static bool is_word(const Token *token) {
  static const char *const values[] = {"False", "None", "True"};
  for (int i = 0; i < COUNT_OF(values); i++)
    if (!strcmp(token->text, values[i])) return false;
  return py_is_keyword(token->text);
}

// item ("," item)* ","?  up to and including `close`. `has_comma` is set when there is a comma.
static bool items_until(PyParser *parser, const char *close, PyNode *(*item)(PyParser *),
                        PtrArray *out, bool *has_comma) {
  while (!py_at(parser, close)) {
    PyNode *node = item(parser);
    if (!node) return false;
    array_push(parser->arena, out, node);
    if (py_at(parser, "for")) {
      refuse(parser, token_pos(parser, py_token(parser)), "comprehensions are not supported here");
      return false;
    }
    if (!py_at(parser, ",")) break;
    py_advance(parser);
    if (has_comma) *has_comma = true;
  }
  if (py_accept(parser, close)) return true;
  py_expected(parser, str_format(parser->context, "',' or '%s'", close));
  return false;
}

// starred: "*" expression | expression
static PyNode *starred(PyParser *parser) {
  int32_t begin = py_token(parser)->begin;
  if (!py_accept(parser, "*")) return expression(parser);
  PyNode *operand = expression(parser);
  return operand ? py_node(parser, PY_STAR, begin, &operand, 1) : NULL;
}

// argument: NAME "=" expression | starred
static PyNode *argument(PyParser *parser) {
  int32_t begin = py_token(parser)->begin;
  const Token *next = token_after(parser);
  if (!py_at_kind(parser, TOKEN_NAME) || next->kind != TOKEN_OPERATOR || strcmp(next->text, "="))
    return starred(parser);
  Str name = py_token(parser)->text;
  py_advance(parser);
  py_advance(parser);
  PyNode *value = expression(parser);
  return value ? node_text(parser, PY_KEYWORD, begin, name, &value, 1) : NULL;
}

// index: expression? (":" expression? (":" expression?)?)? | starred
static PyNode *index_item(PyParser *parser) {
  int32_t begin = py_token(parser)->begin;
  PyNode *parts[3] = {NULL};
  if (!py_at(parser, ":")) {
    parts[0] = starred(parser);
    if (!parts[0] || !py_at(parser, ":")) return parts[0];
  }
  for (int i = 1; i < 3 && py_accept(parser, ":"); i++) {
    if (py_at(parser, ":") || py_at(parser, ",") || py_at(parser, "]")) continue;
    parts[i] = expression(parser);
    if (!parts[i]) return NULL;
  }
  return py_node(parser, PY_SLICE, begin, parts, 3);
}

// group: "(" ")" | "(" expression ")" | "(" items ")"
static PyNode *group(PyParser *parser) {
  int32_t begin = py_token(parser)->begin;
  py_advance(parser);
  PtrArray items = {0};
  bool has_comma = false;
  if (!items_until(parser, ")", starred, &items, &has_comma)) return NULL;
  if (items.count == 1 && !has_comma) {
    PyNode *inner = items.items[0];
    inner->parenthesized = true;
    return inner;
  }
  return py_node(parser, PY_TUPLE, begin, (PyNode **)items.items, items.count);
}

static PyNode *list(PyParser *parser) {
  int32_t begin = py_token(parser)->begin;
  py_advance(parser);
  PtrArray items = {0};
  if (!items_until(parser, "]", starred, &items, NULL)) return NULL;
  return py_node(parser, PY_LIST, begin, (PyNode **)items.items, items.count);
}

// dict: "{" (expression ":" expression ("," …)*)? "}"
static PyNode *dictionary(PyParser *parser) {
  int32_t begin = py_token(parser)->begin;
  py_advance(parser);
  PtrArray items = {0};
  while (!py_at(parser, "}")) {
    PyNode *key = expression(parser);
    if (!key || !py_expect(parser, ":")) return NULL;
    PyNode *value = expression(parser);
    if (!value) return NULL;
    array_push(parser->arena, &items, key);
    array_push(parser->arena, &items, value);
    if (!py_accept(parser, ",")) break;
  }
  if (!py_accept(parser, "}")) return py_expected(parser, "',' or '}'");
  return py_node(parser, PY_DICT, begin, (PyNode **)items.items, items.count);
}

// lambda: "lambda" (parameter ("," parameter)*)? ":" expression;  parameter: "*"? NAME | "*"
static PyNode *lambda(PyParser *parser) {
  int32_t begin = py_token(parser)->begin;
  py_advance(parser);
  PtrArray items = {0};
  while (!py_at(parser, ":")) {
    int32_t start = py_token(parser)->begin;
    bool is_star = py_accept(parser, "*");
    PyNode *name = NULL;
    if (py_at_name(parser)) {
      Str text = py_token(parser)->text;
      int32_t at = py_token(parser)->begin;
      py_advance(parser);
      name = node_text(parser, PY_NAME, at, text, NULL, 0);
    } else if (!is_star) {
      return py_expected(parser, "the name of a parameter");
    }
    PyNode *parameter = is_star ? py_node(parser, PY_STAR, start, &name, 1) : name;
    array_push(parser->arena, &items, parameter);
    if (!py_accept(parser, ",")) break;
  }
  if (!py_expect(parser, ":")) return NULL;
  PyNode *body = expression(parser);
  if (!body) return NULL;
  array_push(parser->arena, &items, body);
  return py_node(parser, PY_LAMBDA, begin, (PyNode **)items.items, items.count);
}

static PyNode *strings(PyParser *parser) {
  int32_t begin = py_token(parser)->begin;
  Text text = text_new(parser->arena);
  for (; py_at_kind(parser, TOKEN_STRING); py_advance(parser))
    text_puts(&text, py_token(parser)->text);
  Str whole = str_intern(parser->context, text_string(&text));
  return node_text(parser, PY_STRING, begin, whole, NULL, 0);
}

static PyNode *number(PyParser *parser) {
  const Token *token = py_token(parser);
  py_advance(parser);
  PyKind kind = token->kind == TOKEN_INT ? PY_INT : PY_FLOAT;
  PyNode *node = node_text(parser, kind, token->begin, token->text, NULL, 0);
  if (kind == PY_INT)
    node->i = token->i;
  else
    node->f = token->f;
  return node;
}

static PyNode *name(PyParser *parser) {
  const Token *token = py_token(parser);
  if (is_word(token)) return py_expected(parser, "an expression");
  py_advance(parser);
  bool is_true = !strcmp(token->text, "True");
  if (is_true || !strcmp(token->text, "False")) {
    PyNode *node = py_node(parser, PY_BOOL, token->begin, NULL, 0);
    node->i = is_true;
    return node;
  }
  if (!strcmp(token->text, "None")) return py_node(parser, PY_NONE, token->begin, NULL, 0);
  return node_text(parser, PY_NAME, token->begin, token->text, NULL, 0);
}

// atom: NAME | NUMBER | STRING+ | group | list | dict
static PyNode *atom(PyParser *parser) {
  int32_t begin = py_token(parser)->begin;
  switch (py_token(parser)->kind) {
  case TOKEN_NAME: return name(parser);
  case TOKEN_INT:
  case TOKEN_FLOAT: return number(parser);
  case TOKEN_STRING: return strings(parser);
  case TOKEN_OPERATOR:
    if (py_at(parser, "(")) return group(parser);
    if (py_at(parser, "[")) return list(parser);
    if (py_at(parser, "{")) return dictionary(parser);
    if (py_at(parser, "...")) {
      py_advance(parser);
      return py_node(parser, PY_ELLIPSIS, begin, NULL, 0);
    }
    break;
  case TOKEN_END:
  case TOKEN_NEWLINE:
  case TOKEN_INDENT:
  case TOKEN_DEDENT:
  case TOKEN_ERROR: break;
  }
  return py_expected(parser, "an expression");
}

static PyNode *attribute(PyParser *parser, PyNode *object, int32_t begin) {
  py_advance(parser);
  if (!py_at_kind(parser, TOKEN_NAME)) return py_expected(parser, "a name after '.'");
  Str text = py_token(parser)->text;
  py_advance(parser);
  return node_text(parser, PY_ATTRIBUTE, begin, text, &object, 1);
}

// As in Python, no name is given twice, and arguments without names come first.
static bool check_arguments(PyParser *parser, PyNode *const *items, int count) {
  for (int i = 1; i < count; i++) {
    bool is_keyword = items[i]->kind == PY_KEYWORD;
    if (!is_keyword && items[i]->kind != PY_STAR && items[i - 1]->kind == PY_KEYWORD)
      return refuse(parser, items[i]->pos,
                    "an argument without a name must stand before those with names");
    for (int k = 1; is_keyword && k < i; k++)
      if (items[k]->kind == PY_KEYWORD && items[k]->text == items[i]->text)
        return refuse(parser, items[i]->pos,
                      str_format(parser->context, "argument '%s' is given twice", items[i]->text));
  }
  return true;
}

static PyNode *trailer(PyParser *parser, PyNode *object, int32_t begin, PyKind kind,
                       const char *close, PyNode *(*item)(PyParser *)) {
  py_advance(parser);
  PtrArray items = {0};
  array_push(parser->arena, &items, object);
  bool has_comma = false;
  if (kind == PY_SUBSCRIPT && py_at(parser, "]")) return py_expected(parser, "an index");
  if (!items_until(parser, close, item, &items, &has_comma)) return NULL;
  bool is_call = kind == PY_CALL;
  if (is_call && !check_arguments(parser, (PyNode **)items.items, items.count)) return NULL;
  // A[()] has no index, A[(i, j)] has two.
  PyNode *only = items.count == 2 && !has_comma ? items.items[1] : NULL;
  if (kind == PY_SUBSCRIPT && only && only->kind == PY_TUPLE) {
    items.count = 1;
    for (int i = 0; i < only->count; i++) array_push(parser->arena, &items, only->items[i]);
  }
  return py_node(parser, kind, begin, (PyNode **)items.items, items.count);
}

// primary: atom ("." NAME | "(" arguments ")" | "[" indices "]")*
static PyNode *primary(PyParser *parser) {
  int32_t begin = py_token(parser)->begin;
  PyNode *node = atom(parser);
  while (node) {
    if (py_at(parser, "."))
      node = attribute(parser, node, begin);
    else if (py_at(parser, "("))
      node = trailer(parser, node, begin, PY_CALL, ")", argument);
    else if (py_at(parser, "["))
      node = trailer(parser, node, begin, PY_SUBSCRIPT, "]", index_item);
    else
      break;
  }
  return node;
}

enum { PRECEDENCE_OR = 1, PRECEDENCE_NOT = 3, PRECEDENCE_COMPARE = 4, PRECEDENCE_UNARY = 11 };

static int binary_precedence(const PyParser *parser) {
  static const struct {
    const char *spelling;
    int precedence;
  } table[] = {{"or", 1}, {"and", 2}, {"==", 4}, {"!=", 4},  {"<", 4},  {"<=", 4}, {">", 4},
               {">=", 4}, {"|", 5},   {"^", 6},  {"&", 7},   {"<<", 8}, {">>", 8}, {"+", 9},
               {"-", 9},  {"*", 10},  {"/", 10}, {"//", 10}, {"%", 10}, {"@", 10}, {"**", 12}};
  for (int i = 0; i < COUNT_OF(table); i++)
    if (py_at(parser, table[i].spelling)) return table[i].precedence;
  return 0;
}

static PyNode *binary(PyParser *parser, int least);

// unary: ("-" | "+" | "~") unary | "not" comparison | primary
static PyNode *unary(PyParser *parser) {
  const Token *token = py_token(parser);
  int precedence = py_at(parser, "not") ? PRECEDENCE_NOT
                   : py_at(parser, "-") || py_at(parser, "+") || py_at(parser, "~")
                       ? PRECEDENCE_UNARY
                       : 0;
  if (!precedence) return primary(parser);
  py_advance(parser);
  PyNode *operand = binary(parser, precedence);
  return operand ? node_text(parser, PY_UNARY, token->begin, token->text, &operand, 1) : NULL;
}

static bool enter(PyParser *parser) {
  if (++parser->nesting <= MOST_NESTING) return true;
  parser->nesting--;
  refuse(parser, token_pos(parser, py_token(parser)), "brackets and operators nest too deep here");
  return false;
}

// The rest of a chain of comparisons: a < b < c means (a < b) and (b < c).
static PyNode *comparisons(PyParser *parser, PyNode *first, int32_t begin) {
  PyNode *chain = first, *last = first;
  while (chain && binary_precedence(parser) == PRECEDENCE_COMPARE) {
    const Token *token = py_token(parser);
    PyNode *middle = last->items[1];
    py_advance(parser);
    PyNode *pair[2] = {middle, binary(parser, PRECEDENCE_COMPARE + 1)};
    if (!pair[1]) return NULL;
    last = node_text(parser, PY_BINARY, middle->pos.begin, token->text, pair, 2);
    PyNode *both[2] = {chain, last};
    Str word = str_intern(parser->context, "and");
    chain = last ? node_text(parser, PY_BINARY, begin, word, both, 2) : NULL;
  }
  return chain;
}

static PyNode *binary(PyParser *parser, int least) {
  if (!enter(parser)) return NULL;
  int32_t begin = py_token(parser)->begin;
  PyNode *left = unary(parser);
  int precedence;
  while (left && (precedence = binary_precedence(parser)) >= least && precedence) {
    const Token *token = py_token(parser);
    py_advance(parser);
    PyNode *pair[2] = {left, binary(parser, precedence + 1)};
    left = pair[1] ? node_text(parser, PY_BINARY, begin, token->text, pair, 2) : NULL;
    if (left && precedence == PRECEDENCE_COMPARE) left = comparisons(parser, left, begin);
  }
  parser->nesting--;
  return left;
}

// choice: lambda | binary ("if" binary "else" expression)?
static PyNode *choice(PyParser *parser) {
  if (py_at(parser, "lambda")) return lambda(parser);
  int32_t begin = py_token(parser)->begin;
  PyNode *value = binary(parser, PRECEDENCE_OR);
  if (!value || !py_at(parser, "if")) return value;
  py_advance(parser);
  PyNode *condition = binary(parser, PRECEDENCE_OR);
  if (!condition || !py_expect(parser, "else")) return NULL;
  PyNode *parts[3] = {value, condition, expression(parser)};
  return parts[2] ? py_node(parser, PY_CONDITIONAL, begin, parts, 3) : NULL;
}

static PyNode *expression(PyParser *parser) {
  if (!enter(parser)) return NULL;
  PyNode *node = choice(parser);
  parser->nesting--;
  return node;
}

PyNode *py_expression(PyParser *parser) {
  return expression(parser);
}

// expressions: starred ("," starred)* ","?   (a tuple when there is a comma)
PyNode *py_expressions(PyParser *parser) {
  int32_t begin = py_token(parser)->begin;
  PyNode *first = starred(parser);
  if (!first || !py_at(parser, ",")) return first;
  PtrArray items = {0};
  array_push(parser->arena, &items, first);
  while (py_accept(parser, ",")) {
    if (py_at_kind(parser, TOKEN_NEWLINE) || py_at(parser, "=") || py_at(parser, "in")) break;
    PyNode *next = starred(parser);
    if (!next) return NULL;
    array_push(parser->arena, &items, next);
  }
  return py_node(parser, PY_TUPLE, begin, (PyNode **)items.items, items.count);
}

// ---- Entry points and helpers

static bool file_fits(Context *context, const SourceFile *file) {
  enum { LARGEST_FILE = 1 << 28 };
  if (file->size <= LARGEST_FILE) return true;
  return diag_error(context, (SourcePos){file, 0, 0, NULL},
                    "this file is larger than 256 MiB, the limit for scripts");
}

PyParser py_parser_new(Context *context, Arena *arena, const SourceFile *file, PyMode mode) {
  PyParser parser = {.context = context, .arena = arena, .file = file, .mode = mode};
  static const SourceFile nothing = {.name = "", .text = ""};
  parser.tokens = py_tokens(context, arena, file_fits(context, file) ? file : &nothing);
  return parser;
}

PyNode *py_parse_expression(Context *context, Arena *arena, const SourceFile *file) {
  PyParser parser = py_parser_new(context, arena, file, PY_STATEMENTS);
  int errors = context->error_count;
  PyNode *node = py_expressions(&parser);
  while (py_at_kind(&parser, TOKEN_NEWLINE)) py_advance(&parser);
  if (node && !py_at_kind(&parser, TOKEN_END)) return py_expected(&parser, "the end");
  return errors == context->error_count ? node : NULL;
}

bool py_is_oldest_decorator(Context *context, const PyNode *node) {
  Str dotted = py_dotted_name(context, node);
  return dotted && !strcmp(dotted, "tvm.script.tir");
}

Str py_dotted_name(Context *context, const PyNode *node) {
  if (node->kind == PY_NAME) return node->text;
  if (node->kind != PY_ATTRIBUTE) return NULL;
  Str object = py_dotted_name(context, node->items[0]);
  return object ? str_format(context, "%s.%s", object, node->text) : NULL;
}
