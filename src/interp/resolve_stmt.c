// SPDX-License-Identifier: Apache-2.0
// Resolves statements. A variable gets its slot where it is bound, so a use outside of its scope is
// detected here (unless an earlier sibling bound the same variable).
#include "interp/resolve.h"

#include "interp/exec.h"
#include "ir/intrinsic.h"

static InterpStep *step_new(Resolver *resolver, const Stmt *s,
                            void (*run)(Machine *machine, const InterpStep *step)) {
  InterpStep *step = arena_new(resolver->arena, InterpStep);
  step->run = run;
  step->stmt = s;
  return step;
}

// Memory that threads have for themselves is allocated inside of the loop over them.
static void check_memories(const Resolver *resolver) {
  for (int i = 0; i < resolver->memories.count; i++) {
    const ThreadMemory *memory = &resolver->memories.items[i];
    if (memory->used > memory->made)
      machine_fail(resolver->machine,
                   "%s is allocated outside of a loop over threads that accesses it and in which "
                   "threads wait for one another, but its scope '%s' gives each thread memory of "
                   "its own\nallocate it inside of the loop, or give it the scope 'shared'",
                   memory->data->as.var->name, memory->data->as.var->scope);
  }
}

// The outermost loop over the threads that wait for one another runs all of them at once.
static void resolve_threads(Resolver *resolver, const Stmt *s, InterpStep *step) {
  bool is_block = thread_is_block(s->as.loop.thread);
  int blocks = resolver->blocks, threads = resolver->threads;
  if (resolver->exchanges.count)
    machine_fail(resolver->machine, "threads exchange values in the bounds of a loop over threads");
  for (int i = 0; !threads && i < resolver->memories.count; i++)
    resolver->memories.items[i].used = 0;
  resolver->blocks += is_block;
  resolver->threads += !is_block;
  step->as.loop.body = resolve_stmt(resolver, s->as.loop.body);
  Wait waits = step->as.loop.body->waits;
  bool first = waits == WAIT_GRID ? blocks + threads == 0 : !is_block && threads == 0;
  step->as.loop.program = resolver->program;
  if (waits && !(is_block && waits < WAIT_GRID && !threads)) check_memories(resolver);
  if (waits && first) {
    step->run = run_threads;
    resolver->waits = WAIT_NONE;
  }
  resolver->blocks = blocks;
  resolver->threads = threads;
}

static InterpStep *resolve_for(Resolver *resolver, const Stmt *s) {
  InterpStep *step = step_new(resolver, s, run_for);
  step->as.loop.min = resolve_expr(resolver, s->as.loop.min);
  step->as.loop.extent = resolve_expr(resolver, s->as.loop.extent);
  step->as.loop.var = slot_bind(resolver, s->as.loop.var);
  if (s->as.loop.kind == LOOP_THREAD)
    resolve_threads(resolver, s, step);
  else
    step->as.loop.body = resolve_stmt(resolver, s->as.loop.body);
  bool waits = step->as.loop.body->waits != WAIT_NONE;
  if (waits && (s->as.loop.kind == LOOP_VECTORIZED || s->as.loop.kind == LOOP_PARALLEL))
    machine_fail(resolver->machine, "threads wait for one another in a loop that is %s",
                 s->as.loop.kind == LOOP_PARALLEL ? "parallel" : "vectorized");
  return step;
}

static InterpStep *resolve_store(Resolver *resolver, const Stmt *s) {
  InterpStep *step = step_new(resolver, s, run_store);
  Buffer *buffer = s->as.store.buffer;
  step->as.store.value = resolve_expr(resolver, s->as.store.value);
  InterpAccess *access = resolve_access(resolver, buffer, s->as.store.indices, s->as.store.rank);
  step->as.store.access = access;
  int lanes = 1;
  for (int i = 0; i < access->rank; i++) lanes = MAX_OF(lanes, access->indices[i]->lanes);
  DType given = s->as.store.value->type, wanted = dtype_lanes(buffer->type, given.lanes);
  bool fits = given.lanes == lanes * buffer->type.lanes || given.lanes == 1;
  if (!dtype_equal(given, wanted) || !fits)
    machine_fail(resolver->machine, "a store of %s into %d elements of %s, which holds %s",
                 dtype_name(resolver->machine->context, given), lanes, buffer->name,
                 dtype_name(resolver->machine->context, buffer->type));
  return step;
}

static InterpStep *resolve_let(Resolver *resolver, const Stmt *s) {
  InterpStep *step = step_new(resolver, s, run_let);
  step->as.let.value = resolve_expr(resolver, s->as.let.value);
  step->as.let.var = slot_bind(resolver, s->as.let.var);
  step->as.let.body = resolve_stmt(resolver, s->as.let.body);
  return step;
}

static InterpStep *resolve_if(Resolver *resolver, const Stmt *s) {
  InterpStep *step = step_new(resolver, s, run_if);
  step->as.branch.condition = resolve_expr(resolver, s->as.branch.condition);
  step->as.branch.then_body = resolve_stmt(resolver, s->as.branch.then_body);
  if (s->as.branch.else_body)
    step->as.branch.else_body = resolve_stmt(resolver, s->as.branch.else_body);
  return step;
}

static InterpStep *resolve_while(Resolver *resolver, const Stmt *s) {
  InterpStep *step = step_new(resolver, s, run_while);
  resolver->lazy++; // it is evaluated again in each iteration
  step->as.branch.condition = resolve_expr(resolver, s->as.repeat.condition);
  resolver->lazy--;
  step->as.branch.then_body = resolve_stmt(resolver, s->as.repeat.body);
  return step;
}

static InterpStep *resolve_assert(Resolver *resolver, const Stmt *s) {
  InterpStep *step = step_new(resolver, s, run_assert);
  const Expr *parts = assert_parts(s);
  step->as.check.condition = resolve_expr(resolver, s->as.check.condition);
  if (parts) step->as.check.parts = arena_array(resolver->arena, InterpNode *, parts->count);
  for (int i = 0; parts && i < parts->count; i++)
    if (!expr_text(parts->args[i]))
      step->as.check.parts[i] = resolve_expr(resolver, parts->args[i]);
  if (s->as.check.body) step->as.check.body = resolve_stmt(resolver, s->as.check.body);
  return step;
}

static Flow flow_of(const Expr *e) {
  static const Flow flows[] = {[JUMP_NONE] = FLOW_NEXT,
                               [JUMP_BREAK] = FLOW_BREAK,
                               [JUMP_CONTINUE] = FLOW_CONTINUE,
                               [JUMP_RETURN] = FLOW_RETURN};
  return flows[expr_jump(e)];
}

static InterpStep *resolve_leave(Resolver *resolver, const Stmt *s, Flow flow) {
  InterpStep *step = step_new(resolver, s, run_leave);
  step->as.leave.flow = flow;
  if (s->as.evaluate->count) step->as.leave.value = resolve_expr(resolver, s->as.evaluate->args[0]);
  return step;
}

static InterpStep *resolve_evaluate(Resolver *resolver, const Stmt *s) {
  Flow flow = flow_of(s->as.evaluate);
  if (flow != FLOW_NEXT) return resolve_leave(resolver, s, flow);
  InterpStep *step = step_new(resolver, s, run_evaluate);
  step->as.evaluate = resolve_expr(resolver, s->as.evaluate);
  return step;
}

static InterpStep *resolve_seq(Resolver *resolver, const Stmt *s) {
  InterpStep *step = step_new(resolver, s, run_seq);
  step->as.seq.count = s->as.seq.count;
  step->as.seq.items = arena_array(resolver->arena, InterpStep *, s->as.seq.count);
  for (int i = 0; i < s->as.seq.count; i++)
    step->as.seq.items[i] = resolve_stmt(resolver, s->as.seq.items[i]);
  return step;
}

// How many memories were in scope before.
static int add_memory(Resolver *resolver, const Expr *data) {
  const char *scope = data->as.var->scope;
  ThreadMemory memory = {.data = data, .made = resolver->threads};
  bool is_own = scope && strncmp(scope, "global", 6) != 0 && strncmp(scope, "shared", 6) != 0;
  if (is_own) array_push(resolver->arena, &resolver->memories, memory);
  return resolver->memories.count - is_own;
}

static InterpStep *resolve_allocate(Resolver *resolver, const Stmt *s) {
  InterpStep *step = step_new(resolver, s, run_allocate);
  BoundBuffer *buffer = &step->as.allocate.buffer;
  buffer->extents = resolve_list(resolver, s->as.allocate.extents, s->as.allocate.rank);
  buffer->name = s->as.allocate.var->as.var->name;
  buffer->type = s->as.allocate.type;
  buffer->rank = s->as.allocate.rank;
  buffer->data = slot_bind(resolver, s->as.allocate.var);
  int memories = add_memory(resolver, s->as.allocate.var);
  step->as.allocate.body = resolve_stmt(resolver, s->as.allocate.body);
  resolver->memories.count = memories;
  return step;
}

static InterpStep *resolve_constant(Resolver *resolver, const Stmt *s) {
  InterpStep *step = step_new(resolver, s, run_constant);
  const ConstData *data = s->as.allocate_const.data;
  InterpStorage *storage = arena_new(resolver->arena, InterpStorage);
  storage->name = data->name ? data->name : "constant";
  storage->bytes = (int64_t)data->bytes;
  storage->data = (uint8_t *)data->data;
  storage->constant = true;
  step->as.constant.storage = storage;
  step->as.constant.data = slot_bind(resolver, s->as.allocate_const.var);
  step->as.constant.body = resolve_stmt(resolver, s->as.allocate_const.body);
  return step;
}

static InterpStep *resolve_body(Resolver *resolver, const Stmt *s, const Stmt *body) {
  InterpStep *step = step_new(resolver, s, run_body);
  step->as.body = resolve_stmt(resolver, body);
  return step;
}

static InterpStep *resolve_declare(Resolver *resolver, const Stmt *s) {
  slot_of(resolver, s->as.declare.buffer->data);
  return resolve_body(resolver, s, s->as.declare.body);
}

static InterpStep *resolve_attr(Resolver *resolver, const Stmt *s) {
  return resolve_body(resolver, s, s->as.attr.body);
}

// ---- Blocks -----------------------------------------------------------------------------------

static void resolve_block_vars(Resolver *resolver, const Block *block, BlockStep *step) {
  step->var_count = block->var_count;
  step->vars = arena_array(resolver->arena, BoundVar, block->var_count);
  for (int i = 0; i < block->var_count; i++)
    step->vars[i].value = resolve_expr(resolver, block->vars[i].binding);
  for (int i = 0; i < block->var_count; i++) {
    slot_share(resolver, block->vars[i].var, step->vars[i].value->out);
    if (block->vars[i].kind == ITER_REDUCTION)
      step->vars[i].min = resolve_expr(resolver, block->vars[i].min);
  }
}

static void resolve_alloc(Resolver *resolver, const Buffer *buffer, BoundBuffer *bound) {
  bound->buffer = buffer;
  bound->name = buffer->name;
  bound->type = buffer->type;
  bound->rank = buffer->rank;
  bound->extents = resolve_list(resolver, buffer->shape, buffer->rank);
  if (buffer->strides) bound->strides = resolve_list(resolver, buffer->strides, buffer->rank);
  if (buffer->offset) bound->offset = resolve_expr(resolver, buffer->offset);
  bound->data = slot_bind(resolver, buffer->data);
}

static int free_slot(Resolver *resolver, const Expr *e) {
  if (!e || e->op != EXPR_VAR || slot_is_bound(resolver, e)) return -1;
  return slot_bind(resolver, e);
}

static void resolve_match(Resolver *resolver, const MatchBuffer *match, BoundMatch *bound) {
  const Buffer *view = match->buffer;
  const Region *source = &match->source;
  InterpAccess *access =
      resolve_access(resolver, source->buffer, source->min, source->buffer->rank);
  bound->buffer = view;
  bound->source = *access;
  bound->rank = view->rank;
  bound->extents = resolve_list(resolver, source->extent, source->buffer->rank);
  if (view->data == source->buffer->data) {
    bound->data = slot_new(resolver, 2);
    map_put(&resolver->views, view, (intptr_t)bound->data + 1);
  } else {
    bound->data = slot_bind(resolver, view->data);
  }
  if (!view->strides && view->rank <= source->buffer->rank)
    map_put(&resolver->strides, view,
            resolve_strides(resolver, source->buffer) + (source->buffer->rank - view->rank));
  bound->shape_slots = arena_array(resolver->arena, int, view->rank);
  bound->stride_slots = arena_array(resolver->arena, int, view->rank);
  for (int i = 0; i < view->rank; i++) {
    bound->shape_slots[i] = free_slot(resolver, view->shape[i]);
    bound->stride_slots[i] = view->strides ? free_slot(resolver, view->strides[i]) : -1;
  }
  bound->offset_slot = free_slot(resolver, view->offset);
}

static InterpStep *resolve_block(Resolver *resolver, const Stmt *s) {
  InterpStep *step = step_new(resolver, s, run_block);
  const Block *block = s->as.block;
  BlockStep *bound = step->as.block = arena_new(resolver->arena, BlockStep);
  if (block->predicate && !expr_is_true(block->predicate))
    bound->predicate = resolve_expr(resolver, block->predicate);
  resolve_block_vars(resolver, block, bound);
  bound->alloc_count = block->alloc_count;
  bound->allocs = arena_array(resolver->arena, BoundBuffer, block->alloc_count);
  for (int i = 0; i < block->alloc_count; i++)
    resolve_alloc(resolver, block->allocs[i], &bound->allocs[i]);
  bound->match_count = block->match_count;
  bound->matches = arena_array(resolver->arena, BoundMatch, block->match_count);
  for (int i = 0; i < block->match_count; i++)
    resolve_match(resolver, &block->matches[i], &bound->matches[i]);
  int memories = resolver->memories.count;
  for (int i = 0; i < block->alloc_count; i++) add_memory(resolver, block->allocs[i]->data);
  if (block->init) bound->init = resolve_stmt(resolver, block->init);
  bound->body = resolve_stmt(resolver, block->body);
  resolver->memories.count = memories;
  return step;
}

static InterpStep *(*const resolvers[])(Resolver *, const Stmt *) = {
    [STMT_FOR] = resolve_for,
    [STMT_STORE] = resolve_store,
    [STMT_LET] = resolve_let,
    [STMT_IF] = resolve_if,
    [STMT_WHILE] = resolve_while,
    [STMT_ASSERT] = resolve_assert,
    [STMT_EVALUATE] = resolve_evaluate,
    [STMT_SEQ] = resolve_seq,
    [STMT_BLOCK] = resolve_block,
    [STMT_ALLOCATE] = resolve_allocate,
    [STMT_ALLOCATE_CONST] = resolve_constant,
    [STMT_DECL_BUFFER] = resolve_declare,
    [STMT_ATTR] = resolve_attr,
};

InterpStep *resolve_stmt(Resolver *resolver, const Stmt *s) {
  Resolver outer = *resolver;
  resolver->machine->stmt = s;
  resolver->waits = WAIT_NONE;
  resolver->exchanges.items = NULL;
  resolver->exchanges.count = resolver->exchanges.capacity = 0;
  InterpStep *step = resolvers[s->kind](resolver, s);
  step->waits = resolver->waits;
  step->exchanges = resolver->exchanges.items;
  step->exchange_count = resolver->exchanges.count;
  resolver->exchanges.items = outer.exchanges.items;
  resolver->exchanges.count = outer.exchanges.count;
  resolver->exchanges.capacity = outer.exchanges.capacity;
  resolver->waits = MAX_OF(outer.waits, step->waits);
  return step;
}
