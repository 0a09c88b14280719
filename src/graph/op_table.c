// SPDX-License-Identifier: Apache-2.0
// Makes one table of the families of operators (ops/), and defines functions that the definitions
// of operators share.
#include "graph/graph.h"
#include "graph/call_program.h"
#include "graph/opaque.h"
#include "graph/op_types.h"
#include "graph/ops/ops.h"
#include "interp/interp.h"

#include <math.h>

typedef struct Family {
  const OpRow *rows;
  const int *count;
} Family;

static const Family families[] = {
    {elementwise_ops, &elementwise_op_count},
    {conv_ops, &conv_op_count},
    {contraction_ops, &contraction_op_count},
    {pool_ops, &pool_op_count},
    {normalization_ops, &normalization_op_count},
    {reduction_ops, &reduction_op_count},
    {shape_ops, &shape_op_count},
    {select_ops, &select_op_count},
    {resample_ops, &resample_op_count},
    {sample_ops, &sample_op_count},
    {einsum_ops, &einsum_op_count},
    {standardize_ops, &standardize_op_count},
    {quantize_ops, &quantize_op_count},
    {ordered_ops, &ordered_op_count},
    {largest_ops, &largest_op_count},
    {attention_ops, &attention_op_count},
    {arrange_ops, &arrange_op_count},
    {transform_ops, &transform_op_count},
    {creation_ops, &creation_op_count},
    {composed_ops, &composed_op_count},
    {resize_ops, &resize_op_count},
};

int op_count(void) {
  int count = 0;
  for (int i = 0; i < COUNT_OF(families); i++) count += *families[i].count;
  return count;
}

const OpRow *op_at(int i) {
  int family = 0;
  while (i >= *families[family].count) i -= *families[family++].count;
  return &families[family].rows[i];
}

const OpRow *op_find(const char *name) {
  for (int f = 0; f < COUNT_OF(families); f++)
    for (int i = 0, count = *families[f].count; i < count; i++)
      if (text_equal(families[f].rows[i].name, name)) return &families[f].rows[i];
  return NULL;
}

const OpRow *op_find_onnx(const char *name) {
  for (int f = 0; f < COUNT_OF(families); f++)
    for (int i = 0, count = *families[f].count; i < count; i++) {
      const OpRow *row = &families[f].rows[i];
      if (row->onnx && text_equal(row->onnx, name)) return row;
    }
  return NULL;
}

// ---- Calls

static bool find_size(Visitor *visitor, Expr *e) {
  const Expr **size = visitor->env;
  if (e->op == EXPR_VAR && !*size) *size = e;
  return !*size;
}

// Names an attribute of the node that uses a free size, as a line of a message; "" when none does.
static const char *free_size_text(Context *context, const Node *node) {
  const Expr *size = NULL;
  Visitor visitor = {.env = &size, .enter_expr = find_size};
  for (int i = 0; i < node->attrs.count; i++) {
    visit_expr(&visitor, node->attrs.items[i].value);
    if (size)
      return arena_printf(&context->arena, "\n'%s' uses the free size '%s': give it a value",
                          node->attrs.items[i].key, size->as.var->name);
  }
  return "";
}

bool op_error(const OpCall *call, const char *format, ...) {
  va_list args;
  va_start(args, format);
  char *message = arena_vprintf(&call->context->arena, format, args);
  va_end(args);
  const Node *node = call->node;
  const char *inputs = values_text(call->context, node->inputs, node->input_count);
  return diag_error_as(call->context, DIAG_OPERATOR, node_pos(node), "%s: %s%s%s%s",
                       node_op_name(node), message, *inputs ? "\nit reads " : "", inputs,
                       free_size_text(call->context, node));
}

static bool knows_attr(const OpRow *row, const char *key) {
  size_t n = strlen(key);
  for (const char *p = row->attrs ? row->attrs : ""; *p;) {
    size_t length = strcspn(p, " ");
    if (length == n && !strncmp(p, key, n)) return true;
    p += length + (p[length] == ' ');
  }
  return false;
}

// Checks that the tensors of a call have one element type, unless the row allows several. The first
// input of `where` is the condition and has its own type.
static bool check_types(const OpCall *call) {
  if (call->row->mixed_types) return true;
  bool second = call->row->result.code == TYPE_VOID && call->row->result.bits;
  const Buffer *first = NULL;
  for (int i = second; i < call->input_count; i++) {
    const Buffer *x = call->inputs[i];
    if (!first) first = x;
    if (x && !dtype_equal(first->type, x->type))
      return op_error(call, "takes tensors of one element type, got %s and %s",
                      dtype_name(call->context, first->type), dtype_name(call->context, x->type));
  }
  return true;
}

static bool check_call(const OpCall *call) {
  const OpRow *row = call->row;
  int count = call->input_count;
  if (count < row->min_inputs || (row->max_inputs >= 0 && count > row->max_inputs))
    return row->min_inputs == row->max_inputs
               ? op_error(call, "takes %d inputs, got %d", row->min_inputs, count)
               : op_error(call, "takes %d to %d inputs, got %d", row->min_inputs, row->max_inputs,
                          count);
  for (int i = 0; i < row->min_inputs; i++)
    if (!call->inputs[i]) return op_error(call, "input %d is missing", i);
  for (int i = 0; i < count; i++)
    if (call->inputs[i] && call->inputs[i]->rank > TE_MAX_RANK)
      return op_error(call, "takes tensors of at most %d axes, got %d", TE_MAX_RANK,
                      call->inputs[i]->rank);
  for (int i = 0; i < call->node->attrs.count; i++)
    if (!knows_attr(row, call->node->attrs.items[i].key))
      return op_error(call, "has no attribute '%s'%s%s", call->node->attrs.items[i].key,
                      row->attrs ? "; it knows " : "", row->attrs ? row->attrs : "");
  return check_types(call);
}

static bool refuse_unknown(OpCall *call) {
  int count = op_count();
  const char **names = arena_array(&call->context->arena, const char *, count);
  for (int i = 0; i < count; i++) names[i] = op_at(i)->name;
  const char *nearest = suggestion_of(&call->context->arena, call->node->op, names, count);
  return op_error(call, "no such operator%s", nearest);
}

bool op_define(Context *context, Te *te, const Node *node, Buffer *const *inputs) {
  OpCall call = {context, te, node, op_find(node->op), node->input_count, (Buffer **)inputs};
  int first = te->stages.count;
  if (!call.row) return refuse_unknown(&call);
  if (!check_call(&call) || !call.row->define(&call)) return false;
  const char *problem = op_problem(context, te, first);
  return !problem || op_error(&call, "%s", problem);
}

static Buffer **input_tensors(Context *context, Te *te, const Node *node) {
  Buffer **tensors = arena_array(&context->arena, Buffer *, node->input_count);
  for (int i = 0; i < node->input_count; i++) {
    Value *value = node->inputs[i];
    if (value) tensors[i] = te_input(te, value->name, value->type, value->shape, value->rank);
  }
  return tensors;
}

bool op_infer(Context *context, Node *node) {
  Te *te = te_new(context);
  if (!op_define(context, te, node, input_tensors(context, te, node))) return false;
  for (int i = 0; i < node->output_count && i < te->outputs.count; i++) {
    Buffer *tensor = te->outputs.items[i];
    Value *value = node->outputs[i];
    if (!value)
      value = node->outputs[i] =
          value_new(context, node->name, tensor->type, tensor->shape, tensor->rank);
    value->type = tensor->type;
    value->rank = tensor->rank;
    value->shape = tensor->shape;
    value->producer = node;
    value->output = i;
  }
  OpCall call = {context, te, node, op_find(node->op), 0, NULL};
  if (node->output_count > te->outputs.count)
    return op_error(&call, "has %d outputs, but %d are requested", te->outputs.count,
                    node->output_count);
  return true;
}

PrimFunc *op_prim_func(Context *context, const Node *node) {
  if (node->kind == NODE_CALL_TIR) return call_prim_func(context, node);
  if (node->kind == NODE_OPAQUE) return opaque_prim_func(context, node);
  Te *te = te_new(context);
  if (!op_define(context, te, node, input_tensors(context, te, node))) return NULL;
  // The graph may use fewer of the last outputs than the operator has.
  if (node->output_count < te->outputs.count) te->outputs.count = node->output_count;
  return te_prim_func(te, node->name);
}

// ---- Attributes

int64_t node_int(const Node *node, const char *key, int64_t otherwise) {
  return attrs_int(&node->attrs, key, otherwise);
}

double node_float(const Node *node, const char *key, double otherwise) {
  Expr *value = attrs_get(&node->attrs, key);
  if (!value) return otherwise;
  return value->op == EXPR_FLOAT ? value->as.f
         : value->op == EXPR_INT ? (double)value->as.i
                                 : otherwise;
}

const char *node_string(const Node *node, const char *key, const char *otherwise) {
  Expr *value = attrs_get(&node->attrs, key);
  return value && value->op == EXPR_STRING ? value->as.s : otherwise;
}

// The integers of a value, which may be nested tuples; -1 when one is no integer, or there are more
// than `most`.
static int flat_ints(const Expr *value, int64_t *out, int most) {
  if (value->op != EXPR_TUPLE) return most > 0 && expr_as_int(value, out) ? 1 : -1;
  int count = 0;
  for (int i = 0; i < value->count; i++) {
    int more = flat_ints(value->args[i], out + count, most - count);
    if (more < 0) return -1;
    count += more;
  }
  return count;
}

int op_known_ints(const OpCall *call, int input, int64_t *out, int most) {
  const Value *value = call->node->inputs[input];
  const ConstData *data = value ? value->data : NULL;
  const Node *made = value ? value->producer : NULL;
  bool is_shape = made && made->kind == NODE_OP && !strcmp(made->op, "shape_to_tensor");
  if (is_shape) return node_ints(made, "shape", out, most);
  if (!data || !data->data || !dtype_is_int(data->type)) return -1;
  int64_t count = (int64_t)data->bytes / dtype_bytes(data->type);
  for (int64_t i = 0; i < MIN_OF(count, most); i++)
    out[i] = number_load_int(data->type, (const char *)data->data + i * dtype_bytes(data->type));
  return count <= most ? (int)count : -1;
}

int node_ints(const Node *node, const char *key, int64_t *out, int most) {
  Expr *value = attrs_get(&node->attrs, key);
  return value ? flat_ints(value, out, most) : 0;
}

static void set(Context *context, Node *node, const char *key, Expr *value) {
  node->attrs = attrs_with(&context->arena, node->attrs, str_intern(context, key), value);
}
void node_set_int(Context *context, Node *node, const char *key, int64_t value) {
  set(context, node, key, expr_index(context, value));
}
void node_set_float(Context *context, Node *node, const char *key, double value) {
  set(context, node, key, expr_float(context, DTYPE_FLOAT64, value));
}
void node_set_string(Context *context, Node *node, const char *key, const char *value) {
  set(context, node, key, expr_string(context, value));
}
void node_set_ints(Context *context, Node *node, const char *key, const int64_t *values,
                   int count) {
  Expr **items = arena_array(&context->arena, Expr *, count);
  for (int i = 0; i < count; i++) items[i] = expr_index(context, values[i]);
  set(context, node, key, expr_tuple(context, items, count));
}

// ---- For definitions

void op_output(OpCall *call, Buffer *tensor) {
  array_push(&call->context->arena, &call->te->outputs, tensor);
}

static Value *value_of_buffer(const OpCall *call, Buffer *buffer) {
  for (int i = 0; i < call->input_count; i++)
    if (buffer && call->inputs[i] == buffer) return call->node->inputs[i];
  return buffer ? value_new(call->context, buffer->name, buffer->type, buffer->shape, buffer->rank)
                : NULL;
}

Buffer *op_apply(OpCall *call, const char *op, const char *part, Buffer *const *inputs, int count,
                 Attrs attrs) {
  Context *context = call->context;
  Value **values = arena_array(&context->arena, Value *, count);
  for (int i = 0; i < count; i++) values[i] = value_of_buffer(call, inputs[i]);
  const char *name = part ? str_format(context, "%s_%s", call->node->name, part) : call->node->name;
  Node *node = node_new(context, NODE_OP, op, name, values, count, 1);
  node->attrs = attrs;
  node->pos = call->node->pos;
  node->user_op = str_intern(context, node_op_name(call->node));
  int before = call->te->outputs.count;
  if (!op_define(context, call->te, node, inputs)) return NULL;
  Buffer *result = call->te->outputs.items[before];
  call->te->outputs.count = before;
  return result;
}

static Attrs with(const OpCall *call, Attrs attrs, const char *key, Expr *value) {
  return attrs_with(&call->context->arena, attrs, str_intern(call->context, key), value);
}

Attrs op_with_int(const OpCall *call, Attrs attrs, const char *key, int64_t value) {
  return with(call, attrs, key, expr_index(call->context, value));
}

Attrs op_with_text(const OpCall *call, Attrs attrs, const char *key, const char *value) {
  return with(call, attrs, key, expr_string(call->context, value));
}

Attrs op_with_ints(const OpCall *call, Attrs attrs, const char *key, const int64_t *values,
                   int count) {
  Expr **items = arena_array(&call->context->arena, Expr *, count);
  for (int i = 0; i < count; i++) items[i] = expr_index(call->context, values[i]);
  return with(call, attrs, key, expr_tuple(call->context, items, count));
}

bool op_number(const OpCall *call, const char *key, DType type, Expr **out) {
  Expr *value = attrs_get(&call->node->attrs, key);
  double real = node_float(call->node, key, 0);
  if (value && expr_is_undefined(value)) value = NULL;
  bool is_number = !value || value->op == EXPR_INT || value->op == EXPR_FLOAT;
  if (!is_number) return op_error(call, "'%s' is not a number", key);
  *out = expr_const(call->context, type, real);
  if (!value || dtype_is_float(type)) return true;
  bool is_whole = value->op == EXPR_INT || (fabs(real) < 0x1p63 && floor(real) == real);
  int64_t whole = value->op == EXPR_INT ? value->as.i : is_whole ? (int64_t)real : 0;
  if (!is_whole || !dtype_holds(type, whole))
    return op_error(call, "'%s' is %.17g, which is no %s", key, real,
                    dtype_name(call->context, type));
  *out = expr_int(call->context, type, whole);
  return true;
}

bool op_axis(const OpCall *call, int64_t axis, int rank, int *out) {
  if (axis < -rank || axis >= rank)
    return op_error(call, "axis %lld is not within a tensor of rank %d", (long long)axis, rank);
  *out = (int)(axis < 0 ? axis + rank : axis);
  return true;
}

Expr *op_reduce_axis(OpCall *call, TeReduction *reduction, const char *name, Expr *extent) {
  if (expr_is_int(extent, 1)) return expr_int(call->context, DTYPE_INT32, 0);
  Expr *axis = te_reduce_axis(call->te, name, extent);
  reduction->axes[reduction->count] = axis;
  reduction->extents[reduction->count++] = extent;
  return axis;
}

bool op_same_extent(const Expr *a, const Expr *b) {
  return a == b || (a->op == EXPR_INT && b->op == EXPR_INT && a->as.i == b->as.i);
}

static bool are_proved_equal(Context *context, Expr *a, Expr *b) {
  if (a->op == EXPR_INT && b->op == EXPR_INT) return false;
  Expr *same = expr_binary(context, EXPR_EQ, a, expr_cast(context, a->type, b));
  return analyzer_prove(analyzer_new(context), same);
}

static bool extents_meet(Context *context, Expr *a, Expr *b, Expr **out) {
  *out = expr_is_int(a, 1) ? b : a;
  return expr_is_int(a, 1) || expr_is_int(b, 1) || op_same_extent(a, b) ||
         are_proved_equal(context, a, b);
}

bool op_broadcast_shape(const OpCall *call, Buffer *const *inputs, int count, Expr **shape,
                        int *rank) {
  *rank = 0;
  for (int i = 0; i < count; i++)
    if (inputs[i]) *rank = MAX_OF(*rank, inputs[i]->rank);
  for (int d = 0; d < *rank; d++) shape[d] = expr_index(call->context, 1);
  for (int i = 0; i < count; i++)
    for (int d = 0; inputs[i] && d < inputs[i]->rank; d++) {
      int at = *rank - inputs[i]->rank + d;
      if (!extents_meet(call->context, shape[at], inputs[i]->shape[d], &shape[at]))
        return op_error(call, "shapes %s and %s do not broadcast",
                        extents_text(call->context, inputs[0]->shape, inputs[0]->rank),
                        extents_text(call->context, inputs[i]->shape, inputs[i]->rank));
    }
  return true;
}

Expr *op_broadcast_at(OpCall *call, Buffer *tensor, const TeAxes *axes) {
  Expr *indices[TE_MAX_RANK];
  for (int d = 0; d < tensor->rank; d++) {
    Expr *axis = axes->at[axes->rank - tensor->rank + d];
    indices[d] = expr_is_int(tensor->shape[d], 1) ? expr_int(call->context, axis->type, 0) : axis;
  }
  return te_at(call->te, tensor, indices);
}

Expr *op_lowest(Context *context, DType type) {
  if (dtype_is_float(type)) return expr_float(context, type, -INFINITY);
  bool is_signed = type.code == TYPE_INT;
  return expr_int(context, type, is_signed ? (int64_t)(~(uint64_t)0 << (type.bits - 1)) : 0);
}

Expr *op_number_or_lowest(OpCall *call, Expr *x) {
  if (!dtype_is_float(x->type)) return x;
  Expr *lowest = op_lowest(call->context, x->type);
  return expr_select(call->context, expr_binary(call->context, EXPR_GT, x, lowest), x, lowest);
}

Expr *op_highest(Context *context, DType type) {
  if (dtype_is_float(type)) return expr_float(context, type, INFINITY);
  if (dtype_is_bool(type)) return expr_bool(context, true);
  int bits = type.code == TYPE_INT ? type.bits - 1 : type.bits;
  return expr_int(context, type, bits >= 64 ? -1 : (int64_t)(((uint64_t)1 << bits) - 1));
}
