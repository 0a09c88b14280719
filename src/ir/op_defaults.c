// SPDX-License-Identifier: Apache-2.0
// Decides whether an attribute of an operator has the value that leaving it out gives.
#include "ir/graph.h"

#include <stdlib.h>

static const struct {
  const char *op, *attributes;
} rows[] = {
#define DEFAULTS(op, attributes) {op, attributes},
#include "ir/op_defaults.def"
#undef DEFAULTS
};

// The text after `key=` in a row; NULL when it has none.
static const char *find_default(const char *op, const char *key, size_t length, size_t *size) {
  for (int i = 0; i < COUNT_OF(rows); i++) {
    if (strcmp(rows[i].op, op) != 0) continue;
    for (const char *at = rows[i].attributes; *at; at += strspn(at, " ")) {
      *size = strcspn(at, " ");
      if (strncmp(at, key, length) == 0 && at[length] == '=') {
        *size -= length + 1;
        return at + length + 1;
      }
      at += *size;
    }
  }
  return NULL;
}

// Is the value this number, or a list of it?
static bool is_number(const Expr *value, int64_t number) {
  if (value->op == EXPR_INT) return value->as.i == number;
  if (value->op == EXPR_FLOAT) return value->as.f == (double)number;
  for (int i = 0; i < value->count; i++)
    if (!is_number(value->args[i], number)) return false;
  return value->op == EXPR_TUPLE && value->count > 0;
}

static bool is_text(const char *text, size_t size, const char *other) {
  return strlen(other) == size && memcmp(text, other, size) == 0;
}

static const Expr *find_attribute(const Attrs *attrs, const char *key, size_t size) {
  for (int i = 0; i < attrs->count; i++)
    if (is_text(key, size, attrs->items[i].key)) return attrs->items[i].value;
  return NULL;
}

bool op_attribute_is_default(const Node *node, const char *key, const Expr *value) {
  size_t size = 0;
  char *end;
  const char *text = node->kind == NODE_OP ? find_default(node->op, key, strlen(key), &size) : NULL;
  if (!text) return false;
  if (is_text(text, size, "None"))
    return value->op == EXPR_NONE || (value->op == EXPR_TUPLE && value->count == 0);
  if (*text == '@') {
    const Expr *given = find_attribute(&node->attrs, text + 1, size - 1);
    if (given)
      return value->op == EXPR_STRING && given->op == EXPR_STRING &&
             strcmp(value->as.s, given->as.s) == 0;
    text = find_default(node->op, text + 1, size - 1, &size);
  }
  int64_t number = strtoll(text, &end, 10);
  if (value->op == EXPR_NONE) return true; // None leaves an attribute out
  return end == text + size ? is_number(value, number)
                            : value->op == EXPR_STRING && is_text(text, size, value->as.s);
}
