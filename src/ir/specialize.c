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

// Regions with an extent of 0 in place of a negative one: of 4 columns less 3 for (n + 3) // 4
// iterations, without any, nothing is left.
static Region *not_negative(Context *context, const Region *regions, int count, bool *changed) {
  Region *result = arena_copy(&context->arena, regions, sizeof *regions * (size_t)count);
  for (int i = 0; i < count; i++) {
    int rank = regions[i].buffer->rank;
    result[i].extent =
        arena_copy(&context->arena, regions[i].extent, sizeof *regions[i].extent * (size_t)rank);
    for (int d = 0; d < rank; d++) {
      int64_t extent;
      if (!expr_as_int(regions[i].extent[d], &extent) || extent >= 0) continue;
      result[i].extent[d] = expr_int(context, regions[i].extent[d]->type, 0);
      *changed = true;
    }
  }
  return result;
}

static Stmt *with_regions(Rewriter *rewriter, Stmt *s) {
  if (s->kind != STMT_BLOCK) return s;
  bool changed = false;
  Block *block = block_copy(rewriter->context, s->as.block);
  block->reads = not_negative(rewriter->context, block->reads, block->read_count, &changed);
  block->writes = not_negative(rewriter->context, block->writes, block->write_count, &changed);
  if (!changed) return s;
  Stmt *copy = stmt_copy(rewriter->context, s);
  copy->as.block = block;
  return copy;
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
  Rewriter rewriter = {.context = context, .enter_stmt = without_empty, .stmt = with_regions};
  result->body = rewrite_stmt(&rewriter, substitute_stmt(context, func->body, vars, &buffers));
  return result;
}
