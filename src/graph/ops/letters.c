// SPDX-License-Identifier: Apache-2.0
// Lets the windowed operators take their tensors in other orders, as TVM's attributes of layouts
// say: data_layout="NHWC", kernel_layout="OIHW4o", out_layout="NCHW8c". A stage for each such
// tensor puts it in the usual order, which the planner reads through like any view.
#include "graph/ops/ops.h"

enum { MOST_LETTERS = TE_MAX_RANK };

// "NCHW4c": the axes N, C, H, W, and the inner part of C with the factor 4.
typedef struct LetterAxis {
  char letter;    // upper case
  int64_t factor; // of an inner part; 0: the axis itself, or its outer part
} LetterAxis;

typedef struct Letters {
  LetterAxis axes[MOST_LETTERS];
  int count;
} Letters;

static bool letters_read(OpCall *call, const char *key, const char *text, Letters *out) {
  *out = (Letters){.count = 0};
  int64_t factor = 0;
  for (const char *p = text; *p; p++) {
    bool digit = *p >= '0' && *p <= '9', lower = *p >= 'a' && *p <= 'z';
    bool upper = *p >= 'A' && *p <= 'Z';
    if (digit) factor = MIN_OF(factor * 10 + *p - '0', (int64_t)INT32_MAX);
    if (digit) continue;
    if (out->count == MOST_LETTERS || (!upper && !lower) || lower != (factor > 0))
      return op_error(call, "'%s' is \"%s\", which is no layout such as NHWC or NCHW4c", key, text);
    out->axes[out->count++] = (LetterAxis){(char)(lower ? *p - 'a' + 'A' : *p), factor};
    factor = 0;
  }
  return true;
}

static int letter_find(const Letters *letters, char letter, bool inner) {
  for (int i = 0; i < letters->count; i++)
    if (letters->axes[i].letter == letter && (letters->axes[i].factor > 0) == inner) return i;
  return -1;
}

// Has the layout each letter of the usual order once, and inner parts of these only?
static bool letters_fit(OpCall *call, const char *key, const Letters *letters, const char *usual) {
  int outer = 0;
  for (int i = 0; i < letters->count; i++) {
    const LetterAxis *axis = &letters->axes[i];
    bool known = strchr(usual, axis->letter) != NULL;
    outer += !axis->factor;
    if (!known || letter_find(letters, axis->letter, axis->factor > 0) != i)
      return op_error(call, "'%s' has the letter %c, expected the letters of %s once", key,
                      axis->letter, usual);
  }
  return outer == (int)strlen(usual) || op_error(call, "'%s' lacks a letter of %s", key, usual);
}

// The tensor in the usual order.
static Buffer *in_usual_order(OpCall *call, Buffer *x, const Letters *letters, const char *usual) {
  Context *context = call->context;
  Expr *shape[MOST_LETTERS], *indices[MOST_LETTERS];
  int rank = (int)strlen(usual);
  for (int d = 0; d < rank; d++) {
    int inner = letter_find(letters, usual[d], true);
    shape[d] = x->shape[letter_find(letters, usual[d], false)];
    if (inner >= 0) shape[d] = expr_mul(context, shape[d], x->shape[inner]);
  }
  TeAxes axes = te_axes(call->te, shape, rank);
  for (int d = 0; d < rank; d++) {
    int inner = letter_find(letters, usual[d], true), outer = letter_find(letters, usual[d], false);
    indices[outer] = axes.at[d];
    if (inner < 0) continue;
    indices[outer] = expr_floor_div(context, axes.at[d], x->shape[inner]);
    indices[inner] = expr_floor_mod(context, axes.at[d], x->shape[inner]);
  }
  return te_compute(call->te, str_format(context, "%s_%s", call->node->name, x->name), x->type,
                    shape, &axes, te_at(call->te, x, indices));
}

// The result, which is in the usual order, in the order of the letters. NULL with a diagnostic.
static Buffer *in_order_of(OpCall *call, Buffer *y, const Letters *letters, const char *usual) {
  Context *context = call->context;
  Expr *shape[MOST_LETTERS], *indices[MOST_LETTERS];
  for (int i = 0; i < letters->count; i++) {
    const LetterAxis *axis = &letters->axes[i];
    Expr *extent = y->shape[strchr(usual, axis->letter) - usual];
    int inner = letter_find(letters, axis->letter, true);
    int64_t count, factor = inner >= 0 ? letters->axes[inner].factor : 1;
    if (factor > 1 && (!expr_as_int(extent, &count) || count % factor))
      return op_error(call, "axis %c of the result is not a multiple of %lld", axis->letter,
                      (long long)factor),
             NULL;
    shape[i] = axis->factor ? expr_index(context, factor)
                            : expr_floor_div(context, extent, expr_index(context, factor));
  }
  TeAxes axes = te_axes(call->te, shape, letters->count);
  for (int d = 0; usual[d]; d++) {
    int inner = letter_find(letters, usual[d], true), outer = letter_find(letters, usual[d], false);
    indices[d] = axes.at[outer];
    if (inner >= 0)
      indices[d] =
          expr_add(context, expr_mul(context, axes.at[outer], shape[inner]), axes.at[inner]);
  }
  return te_compute(call->te, str_format(context, "%s_out", call->node->name), y->type, shape,
                    &axes, te_at(call->te, y, indices));
}

static Buffer *in_type(OpCall *call, Buffer *x, DType type) {
  TeAxes axes = te_axes(call->te, x->shape, x->rank);
  return te_compute(call->te, str_format(call->context, "%s_%s", call->node->name, x->name), type,
                    x->shape, &axes, expr_cast(call->context, type, te_at(call->te, x, axes.at)));
}

// Input `i` as the definition takes it: in the usual order and, for sums, in the result's type.
static bool take_input(OpCall *call, int i, const char *key, const char *usual, DType type) {
  Letters letters;
  const char *text = key ? node_string(call->node, key, usual) : usual;
  Buffer *x = call->inputs[i];
  if (!*text) text = usual;
  if (!letters_read(call, key, text, &letters) || !letters_fit(call, key, &letters, usual))
    return false;
  if (x->rank != letters.count)
    return op_error(call, "'%s' is \"%s\" for a tensor of rank %d", key, text, x->rank);
  if (strcmp(text, usual) != 0) x = in_usual_order(call, x, &letters, usual);
  if (!dtype_equal(type, DTYPE_VOID) && !dtype_equal(type, x->type)) x = in_type(call, x, type);
  call->inputs[i] = x;
  return true;
}

static bool result_type(OpCall *call, DType *type) {
  const char *name = node_string(call->node, "out_dtype", "");
  *type = DTYPE_VOID;
  return !*name || dtype_parse(name, strlen(name), type) ||
         op_error(call, "'out_dtype' is \"%s\", which is no element type", name);
}

// Has the call none of the attributes that name an order or the result's type?
static bool is_usual(const OpCall *call, const OpLetters *letters) {
  const char *const keys[] = {letters->data_key, "kernel_layout", "out_layout", "out_dtype"};
  for (int i = 0; i < COUNT_OF(keys); i++)
    if (attrs_get(&call->node->attrs, keys[i])) return false;
  return true;
}

bool op_in_letters(OpCall *call, OpDefine define) {
  const OpLetters *letters = call->row->letters;
  if (is_usual(call, letters)) return define(call);
  OpCall inner = *call;
  int first = call->te->outputs.count;
  Letters out;
  DType type;
  int space = MAX_OF(call->row->space, 1) - 1;
  const char *data = letters->data[space], *weights = letters->weights[space];
  const char *given = node_string(call->node, letters->data_key, data);
  const char *result = node_string(call->node, "out_layout", given);
  inner.inputs = arena_copy(&call->context->arena, call->inputs,
                            sizeof *call->inputs * (size_t)call->input_count);
  if (!*result) result = *given ? given : data;
  if (!result_type(call, &type) || !take_input(&inner, 0, letters->data_key, data, type))
    return false;
  if (weights && !take_input(&inner, 1, "kernel_layout", weights, type)) return false;
  if (weights && inner.input_count > 2 && inner.inputs[2] && !dtype_equal(type, DTYPE_VOID))
    inner.inputs[2] = in_type(&inner, inner.inputs[2], type);
  if (!letters_read(call, "out_layout", result, &out) ||
      !letters_fit(call, "out_layout", &out, data) || !define(&inner))
    return false;
  if (!strcmp(result, data)) return true;
  Buffer *y = in_order_of(call, call->te->outputs.items[first], &out, data);
  if (y) call->te->outputs.items[first] = y;
  return y != NULL;
}
