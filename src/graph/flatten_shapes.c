// SPDX-License-Identifier: Apache-2.0
// Shapes and numbers as values of a graph function: R.shape_of(x) is the shape that x has,
// R.prim_value(n) a number, and each is a tensor where a tensor is expected.
#include "graph/flatten.h"

// ---- Numbers -----------------------------------------------------------------------------------

Expr *flatten_number_of(GraphFlattening *f, const GraphTerm *term) {
  bool wrapped = term_is(term, "R.prim_value") && term->count == 1;
  const GraphTerm *inner = wrapped ? term->items[0] : term;
  Expr *number = inner->kind == TERM_EXPR ? flatten_attribute(f, inner) : NULL;
  bool is_number =
      number && number->op != EXPR_TUPLE && number->type.lanes == 1 &&
      (dtype_is_int(number->type) || dtype_is_float(number->type) || dtype_is_bool(number->type));
  if (!is_number) return NULL;
  bool is_literal = number->op == EXPR_INT && inner->plain && !dtype_is_bool(number->type);
  return is_literal ? expr_cast(f->context, DTYPE_INT64, number) : number;
}

static void set_attribute(GraphFlattening *f, Node *node, const char *key, Expr *value) {
  node->attrs = attrs_with(&f->context->arena, node->attrs, str_intern(f->context, key), value);
}

Value *flatten_number(GraphFlattening *f, const Node *like, Expr *number) {
  Node *made = flatten_add_new_node(f, like, "full", NULL, 0);
  set_attribute(f, made, "shape", expr_tuple(f->context, NULL, 0));
  set_attribute(f, made, "dtype", expr_string(f->context, dtype_name(f->context, number->type)));
  set_attribute(f, made, "fill_value", number);
  return made->outputs[0];
}

// ---- Shapes ------------------------------------------------------------------------------------

static GraphTerm *shape_term(GraphFlattening *f, Expr *const *extents, int count) {
  Arena *arena = &f->context->arena;
  GraphTerm **items = arena_array(arena, GraphTerm *, count), *list;
  for (int i = 0; i < count; i++) {
    items[i] = term_new(f->context, TERM_EXPR, NULL);
    items[i]->e = extents[i];
    items[i]->plain = true;
  }
  list = term_of_items(f->context, TERM_LIST, NULL, items, NULL, count);
  return term_of_items(f->context, TERM_CALL, "R.shape", &list, NULL, 1);
}

// The extents of a shape; NULL when the term is none.
static const GraphTerm *extents_of(const GraphTerm *term) {
  if (term_is(term, "R.shape") && term->count == 1) term = term->items[0];
  return term_is_list(term) ? term : NULL;
}

GraphTerm *flatten_size_param(GraphFlattening *f, Value *param, const GraphTerm *info) {
  Context *context = f->context;
  int count;
  GraphTerm *const *items = graph_size_items(info, &count);
  if (!items) return NULL;
  bool is_shape = term_is(info, "R.Shape");
  param->type = DTYPE_INT64;
  param->rank = is_shape;
  param->shape = arena_array(&context->arena, Expr *, param->rank);
  if (is_shape) param->shape[0] = expr_index(context, count);
  param->info = (GraphTerm *)info;
  for (int i = 0; i < count; i++)
    if (items[i]->e) array_push(&context->arena, &f->graph->sizes, items[i]->e);
  GraphTerm *extents = info->items[0];
  return is_shape ? term_of_items(context, TERM_CALL, "R.shape", &extents, NULL, 1) : extents;
}

void flatten_name_extents(GraphFlattening *f, Value *param, const GraphTerm *info) {
  int64_t rank = -1;
  for (int i = 0; term_is(info, "R.Tensor") && info->keys && i < info->count; i++)
    if (info->keys[i] && !strcmp(info->keys[i], "ndim") && info->items[i]->e)
      expr_as_int(info->items[i]->e, &rank);
  if (rank < 0 || rank > TE_MAX_RANK) return;
  param->rank = (int)rank;
  param->shape = arena_array(&f->context->arena, Expr *, param->rank);
  for (int d = 0; d < param->rank; d++)
    param->shape[d] =
        expr_var(f->context, str_format(f->context, "%s.%d", param->name, d), DTYPE_INT64);
  param->info = NULL;
}

void flatten_name_sizes(GraphFlattening *f, const GraphTerm *shape, const GraphTerm *type) {
  const GraphTerm *given = extents_of(shape),
                  *named = type->count ? extents_of(type->items[0]) : NULL;
  for (int i = 0; given && named && i < named->count && given->count == named->count; i++) {
    Expr *size = named->items[i]->e, *extent = flatten_attribute(f, given->items[i]);
    if (size && extent && size->op == EXPR_VAR && size != extent)
      map_put(&f->sizes, size, expr_cast(f->context, size->type, extent));
  }
}

void flatten_bind_size_param(GraphFlattening *f, const Value *param, const GraphTerm *given) {
  int count;
  GraphTerm *const *items = graph_size_items(param->info, &count);
  if (!items) return;
  if (term_is(param->info, "R.Shape")) {
    flatten_name_sizes(f, given, param->info);
    return;
  }
  Expr *size = items[0]->e, *number = flatten_number_of(f, given);
  if (number && dtype_is_int(number->type) && size != number)
    map_put(&f->sizes, size, expr_cast(f->context, size->type, number));
}

// Infers the shape of a value, and of all that it is computed from.
static bool infer_shape(GraphFlattening *f, Value *value) {
  Node *node = value->producer;
  if (value->rank >= 0) return true;
  for (int i = 0; node && i < node->input_count; i++)
    if (node->inputs[i] && !infer_shape(f, node->inputs[i])) return false;
  return node && node->kind == NODE_OP && op_infer(f->context, node) && value->rank >= 0;
}

static bool shape_of(GraphFlattening *f, const Node *node, const GraphTerm *given,
                     GraphTerm **shape) {
  Value *value = term_tensor(given);
  if (!value) return flatten_refuse(f, node, "%s takes a tensor", node->op);
  if (!infer_shape(f, value))
    return flatten_refuse(f, node, "the shape of '%s' is not known", value->name);
  *shape = shape_term(f, value->shape, value->rank);
  return true;
}

// The extents that a tensor of constants holds, or one that was made of a shape.
static bool tensor_to_shape(GraphFlattening *f, const Node *node, const GraphTerm *given,
                            GraphTerm **shape) {
  const Value *value = term_tensor(given);
  const ConstData *data = value ? value->data : NULL;
  const Node *made = value ? value->producer : NULL;
  const Expr *extents = made && made->kind == NODE_OP && !strcmp(made->op, "shape_to_tensor")
                            ? attrs_get(&made->attrs, "shape")
                            : NULL;
  if (extents) return *shape = shape_term(f, extents->args, extents->count), true;
  if (!data || !data->data || data->rank != 1 || !dtype_equal(data->type, DTYPE_INT64))
    return flatten_refuse(f, node, "a shape that only a run knows is not supported");
  Expr **items = arena_array(&f->context->arena, Expr *, (int)data->shape[0]);
  for (int i = 0; i < data->shape[0]; i++)
    items[i] = expr_index(f->context, ((const int64_t *)data->data)[i]);
  *shape = shape_term(f, items, (int)data->shape[0]);
  return true;
}

static Value *shape_tensor(GraphFlattening *f, const Node *like, const GraphTerm *extents) {
  Expr *list = flatten_attribute(f, extents);
  if (!list) return NULL;
  Node *made = flatten_add_new_node(f, like, "shape_to_tensor", NULL, 0);
  set_attribute(f, made, "shape", list);
  return made->outputs[0];
}

// R.size(x): the number of its elements.
static GraphTerm *size_of(GraphFlattening *f, const Node *node, const GraphTerm *shape) {
  const GraphTerm *extents = extents_of(shape);
  Expr *size = expr_int(f->context, DTYPE_INT64, 1);
  for (int i = 0; i < extents->count; i++)
    size = expr_mul(f->context, size, expr_cast(f->context, DTYPE_INT64, extents->items[i]->e));
  return term_of_value(f->context, flatten_number(f, node, size));
}

bool flatten_shape(GraphFlattening *f, const Node *node, GraphTerm **shape) {
  if (node->input_count != 1 || !node->inputs[0]) return true;
  const GraphTerm *given = flatten_resolved(f, node->inputs[0]);
  if (!strcmp(node->op, "tensor_to_shape")) return tensor_to_shape(f, node, given, shape);
  if (!strcmp(node->op, "shape_of")) return shape_of(f, node, given, shape);
  if (!strcmp(node->op, "size")) {
    if (shape_of(f, node, given, shape)) *shape = size_of(f, node, *shape);
    return *shape != NULL;
  }
  if (strcmp(node->op, "shape_to_tensor") || !extents_of(given)) return true;
  Value *made = shape_tensor(f, node, extents_of(given));
  if (made) *shape = term_of_value(f->context, made);
  return made || flatten_refuse(f, node, "shape_to_tensor takes a shape");
}

Value *flatten_as_tensor(GraphFlattening *f, const GraphTerm *term) {
  const Node like = {.name = "result", .pos = f->graph->pos};
  Expr *number = flatten_number_of(f, term);
  if (number) return flatten_number(f, &like, number);
  const GraphTerm *extents = term_is(term, "R.shape") ? extents_of(term) : NULL;
  return extents ? shape_tensor(f, &like, extents) : NULL;
}
