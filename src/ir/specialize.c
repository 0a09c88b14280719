// SPDX-License-Identifier: Apache-2.0
// Makes a function for given values of its scalar parameters and of the sizes of its buffers.
#include "ir/ir.h"

static Expr **substituted(Context *context, Expr *const *items, int count, const Map *vars) {
  if (!items) return NULL;
  Expr **result = arena_array(&context->arena, Expr *, count);
  for (int i = 0; i < count; i++) result[i] = substitute_expr(context, items[i], vars);
  return result;
}

static Buffer *specialized(Context *context, const Buffer *buffer, const Map *vars) {
  Buffer *result = buffer_copy(context, buffer);
  result->shape = substituted(context, buffer->shape, buffer->rank, vars);
  result->strides = substituted(context, buffer->strides, buffer->rank, vars);
  result->offset = substitute_expr(context, buffer->offset, vars);
  return result;
}

static bool find_init(Visitor *visitor, Stmt *s) {
  bool *found = visitor->env;
  *found |= s->kind == STMT_BLOCK && s->as.block->init;
  return !*found;
}

// Loops of an empty tensor have no iteration, and their bodies may divide by its extent. A
// reduction stays, since that of no elements is its first value.
static Stmt *without_empty(Rewriter *rewriter, Stmt *s) {
  int64_t extent;
  bool starts = false;
  if (s->kind != STMT_FOR || !expr_as_int(s->as.loop.extent, &extent) || extent > 0) return NULL;
  Visitor visitor = {.env = &starts, .enter_stmt = find_init};
  visit_stmt(&visitor, s);
  return starts ? NULL : stmt_nothing(rewriter->context);
}

PrimFunc *prim_func_specialize(Context *context, const PrimFunc *func, const Map *vars) {
  Map buffers = map_new(&context->arena);
  PrimFunc *result = prim_func_copy(context, func);
  result->params = arena_array(&context->arena, Expr *, func->param_count);
  result->buffers = arena_array(&context->arena, Buffer *, func->param_count);
  result->param_count = 0;
  for (int i = 0; i < func->param_count; i++) {
    Buffer *buffer = func->buffers[i];
    if (!buffer && map_contains(vars, func->params[i])) continue;
    int at = result->param_count++;
    result->params[at] = func->params[i];
    if (!buffer) continue;
    result->buffers[at] = specialized(context, buffer, vars);
    map_put(&buffers, buffer, result->buffers[at]);
  }
  result->attrs = substitute_attrs(context, func->attrs, vars, &buffers);
  Rewriter rewriter = {.context = context, .enter_stmt = without_empty};
  result->body = rewrite_stmt(&rewriter, substitute_stmt(context, func->body, vars, &buffers));
  return result;
}
