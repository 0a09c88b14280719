// SPDX-License-Identifier: Apache-2.0
// Constructs graph functions and answers questions about them.
#include "ir/graph.h"

GraphFunc *graph_func_new(Context *context, const char *name) {
  GraphFunc *graph = arena_new(&context->arena, GraphFunc);
  graph->name = str_intern(context, name);
  return graph;
}

Value *value_new(Context *context, const char *name, DType type, Expr *const *shape, int rank) {
  Value *value = arena_new(&context->arena, Value);
  *value = (Value){
      .name = str_intern(context, name),
      .type = type,
      .rank = rank,
      .shape = rank > 0 ? arena_copy(&context->arena, shape, sizeof *shape * (size_t)rank) : NULL,
      .id = context_next_id(context),
  };
  return value;
}

GraphTerm *term_new(Context *context, GraphTermKind kind, const char *text) {
  GraphTerm *term = arena_new(&context->arena, GraphTerm);
  *term = (GraphTerm){.kind = kind, .text = text ? str_intern(context, text) : NULL};
  return term;
}

bool term_is(const GraphTerm *term, const char *name) {
  return term->kind == TERM_CALL && !strcmp(term->text, name);
}

// The type of the number that R.Prim(value=3) states: int64 where it is written without one.
static bool type_of_number(const GraphTerm *term, DType *type) {
  bool is_number =
      term->kind == TERM_EXPR && (term->e->op == EXPR_INT || term->e->op == EXPR_FLOAT);
  if (is_number) *type = term->plain && term->e->op == EXPR_INT ? DTYPE_INT64 : term->e->type;
  return is_number;
}

bool term_number_type(const GraphTerm *info, DType *type) {
  const char *name = info->kind == TERM_NAME && !strncmp(info->text, "T.", 2) ? info->text + 2 : "";
  bool prim = term_is(info, "R.Prim") && info->count >= 1;
  const Expr *stated = prim && info->items[0]->kind == TERM_EXPR ? info->items[0]->e : NULL;
  if (stated && stated->op == EXPR_STRING) name = stated->as.s;
  DType named;
  bool is_named = *name && dtype_parse(name, strlen(name), &named);
  if (is_named) *type = named;
  return is_named || (prim && type_of_number(info->items[0], type));
}

GraphTerm *term_of_items(Context *context, GraphTermKind kind, const char *text,
                         GraphTerm *const *items, const Str *keys, int count) {
  GraphTerm *term = term_new(context, kind, text);
  term->count = count;
  term->items = arena_copy(&context->arena, items, sizeof *items * (size_t)count);
  if (keys) term->keys = arena_copy(&context->arena, keys, sizeof *keys * (size_t)count);
  return term;
}

GraphTerm *term_of_value(Context *context, Value *value) {
  if (!value) return term_new(context, TERM_NONE, NULL);
  if (value->term) return value->term;
  GraphTerm *term = term_new(context, TERM_VALUE, NULL);
  term->value = value;
  return term;
}

Expr *value_size(const Value *value) {
  const GraphTerm *info = value->info;
  if (!info || !term_is(info, "R.Prim") || info->count != 1) return NULL;
  const GraphTerm *item = info->items[0];
  return item->kind == TERM_EXPR && item->e->op == EXPR_VAR ? item->e : NULL;
}

Value *value_of_term(Context *context, GraphTerm *term) {
  if (term->kind == TERM_VALUE) return term->value;
  if (term->kind == TERM_NONE) return NULL;
  Value *value = value_new(context, "", DTYPE_VOID, NULL, -1);
  value->term = term;
  return value;
}

Value *value_constant(Context *context, ConstData *data) {
  Expr **shape = arena_array(&context->arena, Expr *, data->rank);
  for (int i = 0; i < data->rank; i++) shape[i] = expr_index(context, data->shape[i]);
  Value *value = value_new(context, data->name, data->type, shape, data->rank);
  value->data = data;
  return value;
}

bool value_static_shape(const Value *value, int64_t *shape) {
  for (int i = 0; i < value->rank; i++)
    if (!expr_as_int(value->shape[i], &shape[i])) return false;
  return value->rank >= 0;
}

int64_t value_static_bytes(const Value *value) {
  int64_t bytes = dtype_bytes(value->type), extent;
  for (int i = 0; i < value->rank; i++)
    if (!expr_as_int(value->shape[i], &extent) || !mul_fits(bytes, extent, &bytes)) return -1;
  return value->rank < 0 ? -1 : bytes;
}

// Writes an extent as a script does, but without the types of its numbers: "n * 2". The operation
// around it needs the precedence `least`.
static void put_extent(Text *text, const Expr *e, int least) {
  const OpInfo *op = &op_table[e->op];
  bool infix = (op->flags & OP_INFIX) && e->count == 2;
  bool call = !infix && op->class == OP_ARITH;
  int64_t number;
  if (expr_as_int(e, &number)) {
    text_printf(text, "%lld", (long long)number);
    return;
  }
  if (e->op == EXPR_VAR) text_puts(text, e->as.var->name);
  if (e->op == EXPR_CAST) put_extent(text, e->args[0], least);
  if (!infix && !call) {
    if (e->op != EXPR_VAR && e->op != EXPR_CAST) text_puts(text, "?");
    return;
  }
  bool brackets = infix && op->precedence < least;
  if (call || brackets) text_printf(text, "%s(", call ? op->spelling : "");
  for (int i = 0; i < e->count; i++) {
    if (i && infix) text_printf(text, " %s ", op->spelling);
    if (i && call) text_puts(text, ", ");
    put_extent(text, e->args[i], infix ? op->precedence + (i > 0) : 0);
  }
  if (call || brackets) text_puts(text, ")");
}

const char *extents_text(Context *context, Expr *const *extents, int count) {
  Text text = text_new(&context->arena);
  text_puts(&text, "[");
  for (int i = 0; i < count; i++) {
    if (i) text_puts(&text, ", ");
    put_extent(&text, extents[i], 0);
  }
  text_puts(&text, "]");
  return text_string(&text);
}

const char *value_type_text(Context *context, const Value *value) {
  return arena_printf(&context->arena, "%s %s", dtype_name(context, value->type),
                      extents_text(context, value->shape, value->rank));
}

const char *values_text(Context *context, Value *const *values, int count) {
  enum { SHOWN = 8 };
  Text text = text_new(&context->arena);
  for (int i = 0; i < MIN_OF(count, SHOWN); i++) {
    if (!values[i]) continue;
    text_printf(&text, "%s'%s' %s", text.size ? ", " : "", values[i]->name,
                value_type_text(context, values[i]));
  }
  if (count > SHOWN) text_printf(&text, " and %d more", count - SHOWN);
  return text_string(&text);
}

SourcePos node_pos(const Node *node) {
  SourcePos pos = node->pos;
  if (!pos.node) pos.node = node->name;
  return pos;
}

const char *node_op_name(const Node *node) {
  if (node->user_op) return node->user_op;
  static const char *const names[] = {
      [NODE_CALL] = "call", [NODE_ITEM] = "item", [NODE_IF] = "if", [NODE_FUNC] = "function"};
  if (node->kind == NODE_OP || node->kind == NODE_OPAQUE) return node->op;
  return node->kind == NODE_CALL_TIR ? node->callee->name : names[node->kind];
}

Node *node_new(Context *context, NodeKind kind, const char *op, const char *name,
               Value *const *inputs, int input_count, int output_count) {
  Node *node = arena_new(&context->arena, Node);
  *node = (Node){
      .kind = kind,
      .op = op ? str_intern(context, op) : NULL,
      .name = str_intern(context, name),
      .input_count = input_count,
      .inputs = arena_copy(&context->arena, inputs, sizeof *inputs * (size_t)input_count),
      .output_count = output_count,
      .outputs = arena_array(&context->arena, Value *, output_count),
      .block = 1,
      .id = context_next_id(context),
  };
  return node;
}

Map graph_users(Arena *arena, const GraphFunc *graph) {
  Map users = map_for(arena, graph->nodes.count);
  for (int i = 0; i < graph->nodes.count; i++) {
    Node *node = graph->nodes.items[i];
    for (int j = 0; j < node->input_count; j++) {
      if (!node->inputs[j]) continue;
      PtrArray *list = map_find(&users, node->inputs[j]);
      if (!list) map_put(&users, node->inputs[j], list = arena_new(arena, PtrArray));
      array_push(arena, list, node);
    }
  }
  return users;
}
