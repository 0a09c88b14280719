// SPDX-License-Identifier: Apache-2.0
// Makes accesses of a view (T.match_buffer) accesses of its source.
//   S = T.match_buffer(B[v * 4:v * 4 + 4, 0:8], (4, 8)); S[i, j] = 0   =>   B[v * 4 + i, j] = 0
#include "ir/view.h"

// The axes of a view stand for those of the source, counted from the right. The region of the
// source has extent 1 along the other ones; false with a diagnostic when it has not.
static bool check_axes(Context *context, const MatchBuffer *match) {
  int extra = match->source.buffer->rank - match->buffer->rank;
  for (int i = 0; i < extra; i++)
    if (!expr_is_int(match->source.extent[i], 1))
      return diag_error(context, match->buffer->pos,
                        "view %s of %s: axis %d is dropped though its extent is not 1",
                        match->buffer->name, match->source.buffer->name, i);
  return extra >= 0 || diag_error(context, match->buffer->pos, "view %s has more axes than %s",
                                  match->buffer->name, match->source.buffer->name);
}

static void bind_if_var(Map *vars, Expr *var, Expr *value) {
  if (var && var->op == EXPR_VAR && !map_contains(vars, var)) map_put(vars, var, value);
}

// Gives values to the variables that the view's description introduces: extents, strides, offset
// and data.
static void bind_view_vars(Context *context, const MatchBuffer *match, Map *vars) {
  const Buffer *view = match->buffer, *source = match->source.buffer;
  int extra = source->rank - view->rank;
  Expr **strides = arena_array(&context->arena, Expr *, source->rank);
  buffer_stride_exprs(context, source, strides);
  Expr *offset = buffer_element_offset(context, source, match->source.min);
  for (int i = 0; i < view->rank; i++) {
    bind_if_var(vars, view->shape[i], match->source.extent[i + extra]);
    if (view->strides) bind_if_var(vars, view->strides[i], strides[i + extra]);
  }
  bind_if_var(vars, view->offset, offset);
  bind_if_var(vars, view->data, source->data);
}

static Expr *view_load(Rewriter *rewriter, Expr *e) {
  const MatchBuffer *match = rewriter->env;
  if (e->op != EXPR_LOAD || e->as.buffer != match->buffer) return e;
  Buffer *source = match->source.buffer;
  return expr_load(rewriter->context, source,
                   match_source_indices(rewriter->context, match, e->args), source->rank);
}

static Region region_of_source(Context *context, const void *env, const Region *region) {
  const MatchBuffer *match = env;
  if (region->buffer != match->buffer) return *region;
  const Region *source = &match->source;
  int rank = source->buffer->rank, extra = rank - match->buffer->rank;
  Region result = {source->buffer, match_source_indices(context, match, region->min),
                   arena_array(&context->arena, Expr *, rank)};
  for (int i = 0; i < rank; i++)
    result.extent[i] =
        i < extra ? expr_int(context, source->min[i]->type, 1) : region->extent[i - extra];
  return result;
}

static Region *changed_regions(Context *context, const Region *regions, int count,
                               RegionChange *change, const void *env) {
  Region *result = arena_array(&context->arena, Region, count);
  for (int i = 0; i < count; i++) result[i] = change(context, env, &regions[i]);
  return result;
}

Stmt *stmt_change_regions(Context *context, const Stmt *s, RegionChange *change, const void *env) {
  Block *block = block_copy(context, s->as.block);
  block->reads = changed_regions(context, block->reads, block->read_count, change, env);
  block->writes = changed_regions(context, block->writes, block->write_count, change, env);
  block->matches = arena_copy(&context->arena, block->matches,
                              sizeof *block->matches * (size_t)block->match_count);
  for (int i = 0; i < block->match_count; i++)
    block->matches[i].source = change(context, env, &block->matches[i].source);
  Stmt *next = stmt_copy(context, s);
  next->as.block = block;
  return next;
}

// A block in the body of the view's block states regions of the view, and has views of it.
static Stmt *view_store(Rewriter *rewriter, Stmt *s) {
  const MatchBuffer *match = rewriter->env;
  if (s->kind == STMT_BLOCK)
    return stmt_change_regions(rewriter->context, s, region_of_source, match);
  if (s->kind != STMT_STORE || s->as.store.buffer != match->buffer) return s;
  Stmt *next = stmt_copy(rewriter->context, s);
  next->as.store.buffer = match->source.buffer;
  next->as.store.rank = next->as.store.buffer->rank;
  next->as.store.indices = match_source_indices(rewriter->context, match, s->as.store.indices);
  return next;
}

static Buffer *keep_buffer(Rewriter *rewriter, Buffer *b) {
  return b;
}

Stmt *stmt_resolve_view(Context *context, const MatchBuffer *match, Stmt *body) {
  if (!check_axes(context, match)) return body;
  if (!dtype_equal(match->buffer->type, match->source.buffer->type)) {
    diag_error(context, match->buffer->pos, "view %s and its source %s differ in element type",
               match->buffer->name, match->source.buffer->name);
    return body;
  }
  Rewriter rewriter = {.context = context,
                       .env = (MatchBuffer *)match,
                       .expr = view_load,
                       .stmt = view_store,
                       .buffer = keep_buffer};
  body = rewrite_stmt(&rewriter, body);
  Map vars = map_new(&context->arena);
  bind_view_vars(context, match, &vars);
  return vars.count ? substitute_stmt(context, body, &vars, NULL) : body;
}
