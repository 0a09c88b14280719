// SPDX-License-Identifier: Apache-2.0
// Makes the accesses of all buffers over one memory accesses of one of them, so that its layout can
// change: those of views of its regions, and those of declared buffers with another shape, where
// the place of each element is found.
//   S = T.match_buffer(B[v * 4:v * 4 + 4, 0:8], (4, 8)); S[i, j] = 0   =>   B[v * 4 + i, j] = 0
//   F = T.decl_buffer((64,), data=B.data); … F[k] …                    =>   … B[k // 8, k % 8] …
#include "ir/view.h"
#include "schedule/aliases.h"
#include "schedule/internal.h"

// ---- Views of regions ---------------------------------------------------------------------------

static bool is_view_of(const MatchBuffer *match, const Buffer *buffer) {
  return buffers_alias(match->source.buffer, buffer) && match->buffer != buffer &&
         dtype_equal(match->buffer->type, match->source.buffer->type);
}

static Stmt *without_views(Rewriter *rewriter, Stmt *s) {
  const Buffer *buffer = rewriter->env;
  if (s->kind != STMT_BLOCK) return s;
  Context *context = rewriter->context;
  Block *block = block_copy(context, s->as.block);
  int kept = 0;
  block->matches = arena_array(&context->arena, MatchBuffer, block->match_count + 1);
  for (int i = s->as.block->match_count - 1; i >= 0; i--) {
    const MatchBuffer *match = &s->as.block->matches[i];
    if (!is_view_of(match, buffer)) continue;
    if (block->init) block->init = stmt_resolve_view(context, match, block->init);
    block->body = stmt_resolve_view(context, match, block->body);
  }
  for (int i = 0; i < s->as.block->match_count; i++)
    if (!is_view_of(&s->as.block->matches[i], buffer))
      block->matches[kept++] = s->as.block->matches[i];
  if (kept == block->match_count) return s;
  block->match_count = kept;
  return stmt_with_block(context, s, block);
}

// ---- Buffers of another shape -------------------------------------------------------------------

typedef struct Reshapes {
  const Buffer *buffer;
  Buffer *target;
  Map places; // from each other buffer to an AliasPlace, where its elements are in `target`
} Reshapes;

static Expr **indices_in_target(Context *context, const AliasPlace *place, Expr *const *indices,
                                int rank, int target_rank) {
  Map vars = map_new(&context->arena);
  for (int i = 0; i < rank; i++)
    map_put(&vars, place->vars[i], expr_cast(context, place->vars[i]->type, indices[i]));
  Expr **result = arena_array(&context->arena, Expr *, target_rank);
  for (int i = 0; i < target_rank; i++)
    result[i] = substitute_expr(context, place->index[i], &vars);
  return result;
}

static Expr *reshaped_load(Rewriter *rewriter, Expr *e) {
  const Reshapes *reshapes = rewriter->env;
  const AliasPlace *place = e->op == EXPR_LOAD ? map_find(&reshapes->places, e->as.buffer) : NULL;
  if (!place) return e;
  Buffer *to = reshapes->target;
  return expr_load(
      rewriter->context, to,
      indices_in_target(rewriter->context, place, e->args, e->as.buffer->rank, to->rank), to->rank);
}

static bool states_one_of(const Map *buffers, const Region *regions, int count) {
  for (int i = 0; i < count; i++)
    if (map_contains(buffers, regions[i].buffer)) return true;
  return false;
}

static Stmt *reshaped_stmt(Rewriter *rewriter, Stmt *s) {
  const Reshapes *reshapes = rewriter->env;
  Context *context = rewriter->context;
  if (s->kind == STMT_BLOCK) {
    Block *block = s->as.block;
    bool states = states_one_of(&reshapes->places, block->reads, block->read_count) ||
                  states_one_of(&reshapes->places, block->writes, block->write_count);
    return states ? stmt_with_block(context, s, block_with_regions(context, block)) : s;
  }
  if (s->kind == STMT_DECL_BUFFER && map_contains(&reshapes->places, s->as.declare.buffer))
    return s->as.declare.body;
  const AliasPlace *place =
      s->kind == STMT_STORE ? map_find(&reshapes->places, s->as.store.buffer) : NULL;
  if (!place) return s;
  Buffer *to = reshapes->target;
  Expr **indices =
      indices_in_target(context, place, s->as.store.indices, s->as.store.rank, to->rank);
  return stmt_store(context, to, indices, to->rank, s->as.store.value);
}

// Finds the declared buffers over the memory that have another shape.
static bool see_declaration(Visitor *visitor, Stmt *s) {
  Reshapes *reshapes = visitor->env;
  Buffer *declared = s->kind == STMT_DECL_BUFFER ? s->as.declare.buffer : NULL;
  if (declared && declared != reshapes->buffer && buffers_alias(declared, reshapes->buffer))
    map_put(&reshapes->places, declared, NULL);
  return true;
}

static Stmt *without_reshapes(Context *context, Stmt *body, Buffer *buffer) {
  Reshapes declared = {buffer, buffer, map_new(&context->arena)};
  visit_stmt(&(Visitor){.env = &declared, .enter_stmt = see_declaration}, body);
  Reshapes reshapes = {buffer, buffer, map_new(&context->arena)};
  for (int i = 0; i < declared.places.count; i++) {
    const Buffer *other = (const Buffer *)(uintptr_t)declared.places.entries[i].key;
    const AliasPlace *place = aliases_place(context, other, buffer);
    if (place) map_put(&reshapes.places, other, (void *)place);
  }
  if (!reshapes.places.count) return body;
  Rewriter rewriter = {
      .context = context, .env = &reshapes, .expr = reshaped_load, .stmt = reshaped_stmt};
  return rewrite_stmt(&rewriter, body);
}

PrimFunc *aliases_resolve(Context *context, const PrimFunc *func, Buffer *buffer) {
  Rewriter views = {.context = context, .env = buffer, .stmt = without_views};
  Stmt *body = rewrite_stmt(&views, func->body);
  return prim_func_with_body(context, func, without_reshapes(context, body, buffer));
}
