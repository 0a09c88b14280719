// SPDX-License-Identifier: Apache-2.0
// Reads the attributes of operators in graph functions.
#include "ir/index_map.h"
#include "script/graph_parser.h"

// lambda *i: …, lambda n, *others: …
static bool has_star(const PyNode *node) {
  for (int i = 0; node->kind == PY_LAMBDA && i + 1 < node->count; i++)
    if (node->items[i]->kind == PY_STAR) return true;
  return false;
}

// Does the text of the file hold this lambda? That of a captured function is a name.
static bool is_in_place(const PyNode *node) {
  const SourcePos *pos = &node->pos;
  return !strncmp(pos->file->text + pos->begin, "lambda", strlen("lambda"));
}

// The text of a lambda, without the parentheses that py_print puts around it.
static const char *lambda_text(Context *context, const PyNode *node) {
  Text text = text_new(&context->arena);
  if (node->kind != PY_LAMBDA || !py_print(node, &text)) return NULL;
  const char *lambda = text_string(&text) + 1;
  return str_intern_n(context, lambda, strlen(lambda) - 1);
}

// A lambda, or a string that holds one, becomes the string of its canonical form: "lambda n, c: [n,
// c // 4, c % 4]". One with `*` is kept until the rank of the tensor is known.
static Expr *index_map(Parser *parser, const PyNode *node) {
  Context *context = parser->context;
  const char *lambda = lambda_text(context, node);
  if (lambda && has_star(node)) return expr_string(context, lambda);
  LayoutSource source = py_layout_source(node, -1);
  if (lambda && !is_in_place(node)) {
    source = layout_source(lambda, -1);
    source.pos = node->pos;
  }
  const IndexMap *map = index_map_parse(context, &source);
  return map ? expr_string(context, index_map_lambda(context, map)) : NULL;
}

// The lambda of T.index_map(lambda …, …), or the node itself.
static const PyNode *map_inside(Parser *parser, const PyNode *node) {
  Str member = parser_called(parser, node, DIALECT_TIR);
  bool wraps = member && !strcmp(member, "index_map") && node->count > 1;
  return wraps ? node->items[1] : node;
}

static bool is_index_map(const PyNode *node) {
  return node->kind == PY_LAMBDA ||
         (node->kind == PY_STRING && !strncmp(node->text, "lambda ", strlen("lambda ")));
}

bool graph_is_attribute(Parser *parser, const PyNode *node) {
  PyKind kind = node->kind;
  if (kind == PY_CALL)
    return is_index_map(map_inside(parser, node)) || parser_called(parser, node, DIALECT_TIR);
  if (kind == PY_UNARY) return graph_is_attribute(parser, node->items[0]);
  bool has_parts = py_is_list(node) || kind == PY_BINARY;
  for (int i = 0; has_parts && i < node->count; i++)
    if (!graph_is_attribute(parser, node->items[i])) return false;
  return has_parts || kind == PY_INT || kind == PY_FLOAT || kind == PY_STRING || kind == PY_BOOL ||
         is_index_map(node);
}

Expr *graph_attribute(Parser *parser, const PyNode *node) {
  const PyNode *inner = map_inside(parser, node);
  return is_index_map(inner) ? index_map(parser, inner) : parse_attribute_value(parser, node);
}
