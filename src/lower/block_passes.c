// SPDX-License-Identifier: Apache-2.0
// The steps of convert_blocks as passes of their own, which leave blocks as blocks. The names of
// TVM's passes: LowerInitBlock, LowerMatchBuffer, PlanAndUpdateBufferAllocationLocation and
// ConvertBlocksToOpaque.
//
//   init_blocks         with T.init(): B[vi] = 0          →  if vk == 0: B[vi] = 0
//   match_buffers       V = T.match_buffer(A[0:4, j], 4)
//                       V[i] = 1                          →  A[i, j] = 1
//   place_allocations   the root's B moves into the block that is the body of the innermost loop
//                       that may hold it, or into a new block around that body
//   make_blocks_opaque  vi = T.axis.spatial(30, i)
//                       B[vi] = 0                         →  B[i] = 0
//   reduce_over_threads   see schedule/thread_reductions.c
#include "ir/view.h"
#include "lower/pass.h"
#include "schedule/schedule.h"
#include "script/script.h"

static PrimFunc *with_blocks(LowerState *state, PrimFunc *func,
                             Stmt *(*stmt)(Rewriter *rewriter, Stmt *s)) {
  return lower_rewrite(state, func, &(Rewriter){.stmt = stmt, .buffer = lower_keep_buffer});
}

static Stmt *changed_block(Context *context, const Stmt *s, Block *block) {
  Stmt *next = stmt_copy(context, s);
  next->as.block = block;
  return next;
}

// ---- Inits and views

static bool states_read(const Block *block, const Buffer *buffer) {
  for (int i = 0; i < block->read_count; i++)
    if (block->reads[i].buffer == buffer) return true;
  return false;
}

// A block with an init does not state that it reads its result; without the init it must.
static void add_reads(Context *context, Block *block) {
  RegionArray reads = {0}, writes = {0}, all = {0};
  block_regions(analyzer_new(context), block, &reads, &writes);
  for (int i = 0; i < block->read_count; i++) array_push(&context->arena, &all, block->reads[i]);
  for (int i = 0; i < reads.count; i++)
    if (!states_read(block, reads.items[i].buffer))
      array_push(&context->arena, &all, reads.items[i]);
  block->reads = all.items;
  block->read_count = all.count;
}

static Stmt *init_block(Rewriter *rewriter, Stmt *s) {
  if (s->kind != STMT_BLOCK || !s->as.block->init) return s;
  Block *block = block_copy(rewriter->context, s->as.block);
  block->body = lower_body_with_init(rewriter->context, block);
  block->init = NULL;
  add_reads(rewriter->context, block);
  return changed_block(rewriter->context, s, block);
}

PrimFunc *lower_init_blocks(LowerState *state, PrimFunc *func) {
  Context *context = state->context;
  func = prim_func_with_body(context, func, stmt_state_empty_inits(context, func->body));
  return with_blocks(state, func, init_block);
}

static Stmt *resolve_views(Rewriter *rewriter, Stmt *s) {
  if (s->kind != STMT_BLOCK || !s->as.block->match_count) return s;
  Context *context = rewriter->context;
  Block *block = block_copy(context, s->as.block);
  for (int i = block->match_count - 1; i >= 0; i--) {
    if (block->init)
      block->init = stmt_resolve_view(context, &s->as.block->matches[i], block->init);
    block->body = stmt_resolve_view(context, &s->as.block->matches[i], block->body);
    const Buffer *view = s->as.block->matches[i].buffer;
    block->annotations = lower_attrs_without(context, block->annotations, view, NULL);
  }
  block->match_count = 0;
  return changed_block(context, s, block);
}

PrimFunc *lower_match_buffers(LowerState *state, PrimFunc *func) {
  if (!prim_func_check_views(state->context, func)) return NULL;
  return with_blocks(state, func, resolve_views);
}

// ---- Allocations

// A block without variables that allocates the buffers around a loop's body.
static Stmt *allocating_block(Context *context, const PtrArray *buffers, Stmt *body) {
  Block block = {.name = "",
                 .predicate = expr_bool(context, true),
                 .alloc_count = buffers->count,
                 .allocs = (Buffer **)buffers->items,
                 .body = body};
  return blocks_find_regions(context, stmt_block(context, block_copy(context, &block)));
}

static bool is_of(const PtrArray *buffers, const Expr *data) {
  for (int i = 0; i < buffers->count; i++)
    if (((const Buffer *)buffers->items[i])->data == data) return true;
  return false;
}

typedef struct BufferUse {
  const Buffer *buffer;
  bool found;
} BufferUse;

static bool find_use(Visitor *visitor, Expr *e) {
  BufferUse *use = visitor->env;
  const Expr *data = use->buffer->data;
  use->found |= e == data || (e->op == EXPR_LOAD && e->as.buffer->data == data);
  return !use->found;
}

static bool find_stmt_use(Visitor *visitor, Stmt *s) {
  BufferUse *use = visitor->env;
  if (s->kind == STMT_STORE) use->found |= s->as.store.buffer->data == use->buffer->data;
  if (s->kind == STMT_DECL_BUFFER) use->found |= s->as.declare.buffer->data == use->buffer->data;
  for (int i = 0; s->kind == STMT_BLOCK && i < s->as.block->match_count; i++)
    use->found |= s->as.block->matches[i].source.buffer->data == use->buffer->data;
  return !use->found;
}

static bool uses_outside(const Block *block, const Buffer *buffer) {
  BufferUse use = {buffer, false};
  Visitor visitor = {.env = &use, .enter_expr = find_use};
  for (int i = 0; i < block->var_count; i++) visit_expr(&visitor, block->vars[i].binding);
  visit_expr(&visitor, block->predicate);
  return use.found;
}

static bool uses_inside(const Block *block, const Buffer *buffer) {
  BufferUse use = {buffer, false};
  Visitor visitor = {.env = &use, .enter_expr = find_use, .enter_stmt = find_stmt_use};
  for (int i = 0; i < block->match_count; i++)
    use.found |= block->matches[i].source.buffer->data == buffer->data;
  if (block->init) visit_stmt(&visitor, block->init);
  visit_stmt(&visitor, block->body);
  return use.found;
}

// Can the block allocate the buffers? Its bindings and predicate are evaluated outside of it.
static bool may_allocate(const PtrArray *buffers, const Stmt *s) {
  if (s->kind != STMT_BLOCK) return false;
  for (int i = 0; i < buffers->count; i++)
    if (uses_outside(s->as.block, buffers->items[i]) ||
        !uses_inside(s->as.block, buffers->items[i]))
      return false;
  return true;
}

static int without_buffers(const PtrArray *buffers, Region *regions, int count) {
  int kept = 0;
  for (int i = 0; i < count; i++)
    if (!is_of(buffers, regions[i].buffer->data)) regions[kept++] = regions[i];
  return kept;
}

// The block with these allocations, of whose memory it states no accesses any more.
static Stmt *allocating(Context *context, const PtrArray *buffers, const Stmt *s) {
  Arena *arena = &context->arena;
  Block *block = block_copy(context, s->as.block);
  Buffer **allocs = arena_array(arena, Buffer *, block->alloc_count + buffers->count);
  for (int i = 0; i < buffers->count; i++) allocs[i] = buffers->items[i];
  for (int i = 0; i < block->alloc_count; i++) allocs[buffers->count + i] = block->allocs[i];
  block->allocs = allocs;
  block->alloc_count += buffers->count;
  block->reads = arena_copy(arena, block->reads, sizeof(Region) * (size_t)block->read_count);
  block->writes = arena_copy(arena, block->writes, sizeof(Region) * (size_t)block->write_count);
  block->read_count = without_buffers(buffers, block->reads, block->read_count);
  block->write_count = without_buffers(buffers, block->writes, block->write_count);
  return changed_block(context, s, block);
}

static Stmt *move_allocations(Rewriter *rewriter, Stmt *s) {
  const Map *inside = rewriter->env; // loop or block before the move → PtrArray* of buffers
  if (s->kind != STMT_FOR && s->kind != STMT_BLOCK) return NULL;
  const PtrArray *buffers = map_find(inside, s);
  Stmt *next = rewrite_stmt_children(rewriter, s);
  if (s->kind == STMT_FOR && buffers) {
    Stmt *body = next->as.loop.body;
    body = may_allocate(buffers, body) ? allocating(rewriter->context, buffers, body)
                                       : allocating_block(rewriter->context, buffers, body);
    return lower_with_body(rewriter->context, next, body);
  }
  if (s->kind == STMT_FOR || (!buffers && !s->as.block->alloc_count)) return next;
  Block *block = block_copy(rewriter->context, next->as.block);
  block->alloc_count = buffers ? buffers->count : 0;
  block->allocs = buffers ? (Buffer **)buffers->items : NULL;
  return changed_block(rewriter->context, next, block);
}

PrimFunc *lower_place_allocations(LowerState *state, PrimFunc *func) {
  Map inside = lower_allocation_places(state->context, func->body, true);
  Rewriter rewriter = {.env = &inside, .enter_stmt = move_allocations, .buffer = lower_keep_buffer};
  return lower_rewrite(state, func, &rewriter);
}

// ---- Variables

static Stmt *make_opaque(Rewriter *rewriter, Stmt *s) {
  if (s->kind != STMT_BLOCK || !s->as.block->var_count) return s;
  Context *context = rewriter->context;
  Block *block = block_copy(context, s->as.block);
  block->var_count = 0;
  return lower_bind_block_vars(context, s->as.block, changed_block(context, s, block));
}

static bool find_init(Visitor *visitor, Stmt *s) {
  Stmt **found = visitor->env;
  if (s->kind == STMT_BLOCK && s->as.block->init && !*found) *found = s;
  return !*found;
}

PrimFunc *lower_make_blocks_opaque(LowerState *state, PrimFunc *func) {
  Stmt *with_init = NULL;
  visit_stmt(&(Visitor){.env = &with_init, .enter_stmt = find_init}, func->body);
  if (with_init) {
    diag_error(
        state->context, with_init->pos,
        "block '%s' has an init, which needs its variables; run init_blocks (LowerInitBlock) first",
        with_init->as.block->name);
    return NULL;
  }
  return with_blocks(state, func, make_opaque);
}

// ---- Reductions over threads

// Processors run the threads of a block one after the other, so that the blocks can stay.
PrimFunc *lower_reduce_over_threads(LowerState *state, PrimFunc *func) {
  bool stays = state->compiles && !state->options->device;
  return stays ? func : schedule_reduce_over_threads(state->context, func);
}
