// SPDX-License-Identifier: Apache-2.0
// Imports Einsum of more than two operands as a chain of products of two. After each product, an
// axis that neither a later operand nor the result has is summed.
#include "frontend/onnx/import.h"

#include "graph/graph.h"

typedef struct EinsumTerms {
  Str operands[64], result;
  int count;
} EinsumTerms;

// The text without spaces.
static Str squeezed(Context *context, const char *from, size_t size) {
  Text text = text_new(&context->arena);
  for (size_t i = 0; i < size; i++)
    if (from[i] != ' ') text_append(&text, from + i, 1);
  return str_intern(context, text_string(&text));
}

static int times(const EinsumTerms *terms, char letter) {
  int count = 0;
  for (int i = 0; i < terms->count; i++)
    for (const char *p = terms->operands[i]; *p; p++) count += *p == letter;
  return count;
}

static Str implicit_result(Context *context, const EinsumTerms *terms) {
  Text text = text_new(&context->arena);
  for (int i = 0; i < terms->count; i++)
    if (strstr(terms->operands[i], "...") && !text.size) text_puts(&text, "...");
  for (char c = 'A'; c <= 'z'; c++)
    if (char_is_letter(c) && times(terms, c) == 1) text_append(&text, &c, 1);
  return str_intern(context, text_string(&text));
}

static bool split_equation(Import *import, EinsumTerms *terms) {
  const char *equation = import_text(import, "equation", ""), *arrow = strstr(equation, "->");
  size_t size = arrow ? (size_t)(arrow - equation) : strlen(equation);
  for (size_t from = 0, to; from <= size; from = to + 1) {
    for (to = from; to < size && equation[to] != ',';) to++;
    if (terms->count == COUNT_OF(terms->operands))
      return import_refuse(import, "has more than %d operands", terms->count);
    terms->operands[terms->count++] = squeezed(import->context, equation + from, to - from);
  }
  terms->result = arrow ? squeezed(import->context, arrow + 2, strlen(arrow + 2))
                        : implicit_result(import->context, terms);
  return terms->count == import->input_count ||
         import_refuse(import, "its equation has %d operands, the node %d", terms->count,
                       import->input_count);
}

static bool needed_later(const EinsumTerms *terms, int next, char letter) {
  bool needed = strchr(terms->result, letter) != NULL;
  for (int i = next; i < terms->count; i++) needed |= strchr(terms->operands[i], letter) != NULL;
  return needed;
}

// The axes of the product of `a` and `b` that the operands from `next` on or the result have.
static Str kept(Context *context, const EinsumTerms *terms, Str a, Str b, int next) {
  Text text = text_new(&context->arena);
  if (strstr(a, "...") || strstr(b, "...")) text_puts(&text, "...");
  for (int i = 0; i < 2; i++)
    for (const char *p = i ? b : a; *p; p++)
      if (char_is_letter(*p) && needed_later(terms, next, *p) && !strchr(text_string(&text), *p))
        text_append(&text, p, 1);
  return str_intern(context, text_string(&text));
}

// Adds an einsum of one or two operands.
static Value *einsum(Import *import, Value *const *operands, int count, Str equation) {
  for (int i = 0; i < count; i++)
    if (!operands[i]) return NULL;
  Node *node = import_begin(import, "einsum", operands, count);
  node_set_string(import->context, node, "equation", equation);
  return import_add(import, node);
}

static void import_einsum(Import *import) {
  Context *context = import->context;
  EinsumTerms *terms = arena_new(&context->arena, EinsumTerms);
  if (!split_equation(import, terms)) return;
  Value *value = import->inputs[0];
  Str term = terms->operands[0];
  if (terms->count == 1)
    value = einsum(import, &value, 1, str_format(context, "%s->%s", term, terms->result));
  for (int i = 1; i < terms->count; i++) {
    Str next = terms->operands[i];
    Str to = i + 1 == terms->count ? terms->result : kept(context, terms, term, next, i + 1);
    value = einsum(import, (Value *[]){value, import->inputs[i]}, 2,
                   str_format(context, "%s,%s->%s", term, next, to));
    term = to;
  }
  import_result(import, 0, value);
}

const OnnxRow onnx_einsum_rows[] = {
    {"Einsum", 1, -1, "equation:string", import_einsum},
    {0},
};
