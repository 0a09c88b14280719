// SPDX-License-Identifier: Apache-2.0
// Turns blocks into loops: variables are replaced by their bindings, predicates and inits become
// ifs, accesses of views (match_buffer) become accesses of their source, and each allocation of a
// block goes to the innermost loop or block that may hold it.
//
//   with T.block("root"):                         for i in range(30):
//     B = T.alloc_buffer((30,))                     B = allocate(30)
//     for i in range(30):                           for k in range(7):
//       for k in range(7):                            if k == 0:
//         with T.block("sum"):              →           B[i] = 0
//           vi, vk = T.axis.remap("SR", [i, k])       B[i] = B[i] + A[i, k]
//           with T.init(): B[vi] = 0                C[i] = B[i] * 2
//           B[vi] = B[vi] + A[vi, vk]
//       C[i] = B[i] * 2
//
// Statements that leave loops become conditions too (structure_jumps.c). allocation_places.c finds
// the places of the allocations.
#include "ir/intrinsic.h"
#include "lower/pass.h"
#include "script/script.h"

// ---- Views

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

Stmt *lower_change_regions(Context *context, const Stmt *s, RegionChange *change, const void *env) {
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
    return lower_change_regions(rewriter->context, s, region_of_source, match);
  if (s->kind != STMT_STORE || s->as.store.buffer != match->buffer) return s;
  Stmt *next = stmt_copy(rewriter->context, s);
  next->as.store.buffer = match->source.buffer;
  next->as.store.rank = next->as.store.buffer->rank;
  next->as.store.indices = match_source_indices(rewriter->context, match, s->as.store.indices);
  return next;
}

Stmt *lower_resolve_view(Context *context, const MatchBuffer *match, Stmt *body) {
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
                       .buffer = lower_keep_buffer};
  body = rewrite_stmt(&rewriter, body);
  Map vars = map_new(&context->arena);
  bind_view_vars(context, match, &vars);
  return vars.count ? substitute_stmt(context, body, &vars, NULL) : body;
}

// ---- Blocks

typedef struct Conversion {
  Context *context;
  Map inside;  // loop or block before the conversion → PtrArray* of buffers to allocate in it
  Map aligned; // data variable → the axes to align (aligned_axes.c)
} Conversion;

static Expr *init_condition(Context *context, const Block *block) {
  Expr *condition = expr_bool(context, true);
  for (int i = 0; i < block->var_count; i++) {
    const BlockVar *v = &block->vars[i];
    if (v->kind != ITER_REDUCTION || expr_is_int(v->extent, 1)) continue;
    condition = expr_and(context, condition, expr_binary(context, EXPR_EQ, v->var, v->min));
  }
  return condition;
}

Stmt *lower_bind_block_vars(Context *context, const Block *block, Stmt *body) {
  if (!block->var_count) return body;
  Map vars = map_new(&context->arena);
  for (int i = 0; i < block->var_count; i++)
    map_put(&vars, block->vars[i].var,
            expr_cast(context, block->vars[i].var->type, block->vars[i].binding));
  return substitute_stmt(context, body, &vars, NULL);
}

Stmt *lower_body_with_init(Context *context, const Block *block) {
  if (!block->init) return block->body;
  Stmt *init = stmt_if(context, init_condition(context, block), block->init, NULL);
  return stmt_seq(context, (Stmt *[]){init, block->body}, 2);
}

// The statement for a block whose children hold no blocks any more.
static Stmt *convert_block(Context *context, const Block *block) {
  Stmt *body = lower_body_with_init(context, block);
  for (int i = block->match_count - 1; i >= 0; i--)
    body = lower_resolve_view(context, &block->matches[i], body);
  return lower_bind_block_vars(context, block, body);
}

static Stmt *allocate_inside(Conversion *conversion, const Stmt *original, Stmt *body) {
  PtrArray *buffers = map_find(&conversion->inside, original);
  Context *context = conversion->context;
  for (int i = buffers ? buffers->count - 1 : -1; i >= 0; i--) {
    Buffer *buffer = buffers->items[i];
    body = stmt_allocate(context, buffer, body);
    Expr *axes = map_find(&conversion->aligned, buffer->data);
    Attrs *attrs = &body->as.allocate.annotations;
    if (axes)
      *attrs = attrs_with(&context->arena, *attrs, str_intern(context, "buffer_dim_align"), axes);
  }
  return body;
}

static Stmt *convert(Rewriter *rewriter, Stmt *s) {
  bool is_realize = s->kind == STMT_ATTR && !strcmp(s->as.attr.key, "realize_scope");
  if (is_realize) return rewrite_stmt(rewriter, s->as.attr.body); // states what is accessed
  Conversion *conversion = rewriter->env;
  Context *context = rewriter->context;
  if (s->kind == STMT_FOR) {
    Stmt *next = rewrite_stmt_children(rewriter, s);
    Stmt *body = allocate_inside(conversion, s, next->as.loop.body);
    return body == next->as.loop.body ? next : lower_with_body(context, next, body);
  }
  if (s->kind != STMT_BLOCK) return NULL;
  Stmt *next = rewrite_stmt_children(rewriter, s);
  Stmt *body = convert_block(context, next->as.block);
  body = allocate_inside(conversion, s, body);
  Stmt *branch = stmt_if(context, next->as.block->predicate, body, NULL);
  if (branch != body) branch->pos = s->pos;
  return branch;
}

PrimFunc *lower_convert_blocks(LowerState *state, PrimFunc *func) {
  Context *context = state->context;
  int errors = context->error_count;
  if (!prim_func_check_views(context, func)) return NULL;
  Conversion conversion = {context, lower_allocation_places(context, func->body, false),
                           lower_find_aligned_axes(context, func->body)};
  Rewriter rewriter = {
      .context = context, .env = &conversion, .enter_stmt = convert, .buffer = lower_keep_buffer};
  Stmt *body = rewrite_stmt(&rewriter, func->body);
  bool returns = state->compiles || state->options->drop_result;
  int jumps = JUMP_BREAK | JUMP_CONTINUE | (returns ? JUMP_RETURN : 0);
  if (context->error_count == errors) body = lower_structure_jumps(context, body, jumps);
  return context->error_count > errors ? NULL : prim_func_with_body(context, func, body);
}
