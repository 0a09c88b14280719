// SPDX-License-Identifier: Apache-2.0
// Writes expressions of the Python tree as text, for those who evaluate them elsewhere.
#include "script/python.h"

static bool print_items(const PyNode *node, int first, const char *between, Text *out) {
  for (int i = first; i < node->count; i++) {
    if (i > first) text_puts(out, between);
    if (node->items[i] && !py_print(node->items[i], out)) return false;
  }
  return true;
}

static void print_string(const char *s, Text *out) {
  text_puts(out, "'");
  for (; *s; s++) {
    unsigned char c = (unsigned char)*s;
    if (c == '\'' || c == '\\')
      text_printf(out, "\\%c", c);
    else if (c < ' ')
      text_printf(out, "\\x%02x", c);
    else
      text_append(out, s, 1);
  }
  text_puts(out, "'");
}

// Digits that read back as the same number; infinity as a number that is too large.
static void print_float(double value, Text *out) {
  char digits[40];
  snprintf(digits, sizeof digits, "%.17g", value);
  if (strstr(digits, "inf")) snprintf(digits, sizeof digits, "%s1e999", value < 0 ? "-" : "");
  text_printf(out, strpbrk(digits, ".en") ? "%s" : "%s.0", digits);
}

static bool print_dict(const PyNode *node, Text *out) {
  text_puts(out, "{");
  for (int i = 0; i < node->count; i++) {
    if (i) text_puts(out, i % 2 ? ": " : ", ");
    if (!py_print(node->items[i], out)) return false;
  }
  text_puts(out, "}");
  return true;
}

static bool print_lambda(const PyNode *node, Text *out) {
  text_puts(out, "(lambda ");
  for (int i = 0; i + 1 < node->count; i++) {
    if (i) text_puts(out, ", ");
    if (!py_print(node->items[i], out)) return false;
  }
  text_puts(out, ": ");
  if (!py_print(node->items[node->count - 1], out)) return false;
  text_puts(out, ")");
  return true;
}

static bool print_star(const PyNode *node, Text *out) {
  text_puts(out, "*");
  return !node->items[0] || py_print(node->items[0], out);
}

static bool print_bracketed(const PyNode *node, int first, const char *open, const char *close,
                            Text *out) {
  text_puts(out, open);
  if (!print_items(node, first, ", ", out)) return false;
  bool is_single = node->kind == PY_TUPLE && node->count == 1;
  text_printf(out, "%s%s", is_single ? "," : "", close);
  return true;
}

static bool print_after(const PyNode *node, const char *open, const char *close, Text *out) {
  if (!py_print(node->items[0], out)) return false;
  return print_bracketed(node, 1, open, close, out);
}

static bool print_operation(const PyNode *node, Text *out) {
  text_puts(out, "(");
  if (node->kind == PY_UNARY) text_printf(out, "%s ", node->text);
  if (!py_print(node->items[0], out)) return false;
  if (node->kind == PY_BINARY) text_printf(out, " %s ", node->text);
  if (node->kind == PY_BINARY && !py_print(node->items[1], out)) return false;
  text_puts(out, ")");
  return true;
}

static bool print_conditional(const PyNode *node, Text *out) {
  static const char *const words[] = {"(", " if ", " else "};
  for (int i = 0; i < 3; i++) {
    text_puts(out, words[i]);
    if (!py_print(node->items[i], out)) return false;
  }
  text_puts(out, ")");
  return true;
}

static bool print_int(const PyNode *node, Text *out) {
  if (node->text)
    text_puts(out, node->text);
  else
    text_printf(out, node->i < 0 ? "(%lld)" : "%lld", (long long)node->i);
  return true;
}

void py_move(PyNode *node, SourcePos pos) {
  if (!node) return;
  node->pos = pos;
  for (int i = 0; i < node->count; i++) py_move(node->items[i], pos);
}

bool py_print(const PyNode *node, Text *out) {
  switch (node->kind) {
  case PY_NAME: text_puts(out, node->text); return true;
  case PY_INT: return print_int(node, out);
  case PY_FLOAT: print_float(node->f, out); return true;
  case PY_STRING: print_string(node->text, out); return true;
  case PY_BOOL: text_puts(out, node->i ? "True" : "False"); return true;
  case PY_NONE: text_puts(out, "None"); return true;
  case PY_ELLIPSIS: text_puts(out, "..."); return true;
  case PY_ATTRIBUTE:
    if (!py_print(node->items[0], out)) return false;
    text_printf(out, ".%s", node->text);
    return true;
  case PY_KEYWORD: text_printf(out, "%s=", node->text); return py_print(node->items[0], out);
  case PY_CALL: return print_after(node, "(", ")", out);
  case PY_SUBSCRIPT:
    return print_after(node, node->count == 1 ? "[(" : "[", node->count == 1 ? ")]" : "]", out);
  case PY_SLICE: return print_items(node, 0, ":", out);
  case PY_LIST: return print_bracketed(node, 0, "[", "]", out);
  case PY_TUPLE: return print_bracketed(node, 0, "(", ")", out);
  case PY_DICT: return print_dict(node, out);
  case PY_LAMBDA: return print_lambda(node, out);
  case PY_STAR: return print_star(node, out);
  case PY_UNARY:
  case PY_BINARY: return print_operation(node, out);
  case PY_CONDITIONAL: return print_conditional(node, out);
  default: return false;
  }
}

// ---- Maps -------------------------------------------------------------------------------------

// The position of the contents of a string that stand in the file as they are; without a file for
// others.
static SourcePos contents_pos(const PyNode *node) {
  SourcePos pos = node->pos;
  size_t length = strlen(node->text), size = (size_t)(pos.end - pos.begin);
  const char *at = pos.file ? pos.file->text + pos.begin : "";
  size_t quotes = size >= 6 && at[0] == at[1] && at[1] == at[2] ? 3 : 1;
  bool is_same = size == length + 2 * quotes && (at[0] == '"' || at[0] == '\'') &&
                 memcmp(at + quotes, node->text, length) == 0;
  if (!is_same) return (SourcePos){0};
  pos.begin += (int32_t)quotes;
  pos.end -= (int32_t)quotes;
  return pos;
}

LayoutSource py_layout_source(const PyNode *node, int rank) {
  LayoutSource source = {.rank = rank, .pos = node->pos};
  if (node->kind == PY_STRING) {
    source = layout_source(node->text, rank);
    source.pos = contents_pos(node);
  } else if (node->kind == PY_LAMBDA) {
    source.text = node->pos.file->text + node->pos.begin;
    source.size = (size_t)(node->pos.end - node->pos.begin);
  }
  return source;
}
