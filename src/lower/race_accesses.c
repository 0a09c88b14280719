// SPDX-License-Identifier: Apache-2.0
// Collects the accesses of a statement to memory from outside of it, each with the loops and
// conditions around it. Values of lets, and bindings of block variables, are put in place of the
// variables; an access of a view is one of its source.
#include "ir/view.h"
#include "lower/races.h"

typedef struct Collecting {
  Context *context;
  LoopAccesses *out;
  Array(VarRange) ranges;
  ExprArray conditions;
  Map lets;           // variables of lets to their values
  Map inside;         // data variables of allocations inside of the statement
  const char *thread; // whose iterations share some of these; NULL: none
  const Stmt *by;
  SourcePos pos;
} Collecting;

static void collect(Collecting *c, Stmt *s);
static void collect_expr(Collecting *c, Expr *e);

static Expr *resolved(Collecting *c, Expr *e) {
  return c->lets.count ? substitute_expr(c->context, e, &c->lets) : e;
}

// ---- Accesses

// An index of several lanes is one of its base and a further variable, the lane. NULL for a vector
// of any other form.
static Expr *lane_index(Collecting *c, Expr *index, Expr **lane) {
  if (index->op == EXPR_BROADCAST) return index->args[0];
  if (index->op != EXPR_RAMP) return index->type.lanes > 1 ? NULL : index;
  DType type = index->args[1]->type;
  if (!*lane) {
    *lane = expr_var(c->context, "lane", type);
    VarRange range = {*lane, expr_int(c->context, type, 0),
                      expr_lanes(c->context, type, index->type)};
    array_push(&c->context->arena, &c->ranges, range);
  }
  Expr *step = expr_mul(c->context, index->args[1], expr_cast(c->context, type, *lane));
  return expr_add(c->context, index->args[0], step);
}

// `value` is what is written; NULL: the access reads.
static void add_access(Collecting *c, Buffer *buffer, Expr *const *indices, Expr *value) {
  if (map_contains(&c->inside, buffer->data)) return;
  Arena *arena = &c->context->arena;
  int outer = c->ranges.count;
  LoopAccess access = {.buffer = buffer, .writes = value != NULL, .by = c->by, .pos = c->pos};
  Expr *lane = NULL;
  access.indices = indices ? arena_array(arena, Expr *, buffer->rank + 1) : NULL;
  for (int d = 0; indices && d < buffer->rank; d++) {
    Expr *index = lane_index(c, resolved(c, indices[d]), &lane);
    if (!index)
      indices = access.indices = NULL;
    else
      access.indices[d] = index;
  }
  access.range_count = c->ranges.count;
  access.condition_count = c->conditions.count;
  access.ranges = arena_copy(arena, c->ranges.items, sizeof(VarRange) * (size_t)c->ranges.count);
  access.conditions =
      arena_copy(arena, c->conditions.items, sizeof(Expr *) * (size_t)c->conditions.count);
  c->ranges.count = outer;
  if (value) access.value = resolved(c, value);
  if (value) map_put(&c->out->written, buffer->data, buffer);
  array_push(arena, &c->out->items, access);
}

static void collect_under(Collecting *c, Expr *e, Expr *condition) {
  array_push(&c->context->arena, &c->conditions, resolved(c, condition));
  collect_expr(c, e);
  c->conditions.count--;
}

// A variable of a let is its value, or any value where that reads memory.
static void bind(Collecting *c, Expr *var, Expr *value) {
  value = resolved(c, value);
  if (!expr_reads_memory(value))
    map_put(&c->lets, var, value);
  else
    array_push(&c->context->arena, &c->ranges, (VarRange){.var = var});
}

static void collect_children(Collecting *c, Expr *e) {
  Expr *otherwise = NULL;
  collect_expr(c, e->args[0]);
  if (e->op == EXPR_IF_THEN_ELSE || e->op == EXPR_OR)
    otherwise = expr_unary(c->context, EXPR_NOT, e->args[0]);
  for (int i = 1; i < e->count; i++) {
    if (e->op == EXPR_AND || (e->op == EXPR_IF_THEN_ELSE && i == 1))
      collect_under(c, e->args[i], e->args[0]);
    else if (otherwise)
      collect_under(c, e->args[i], otherwise);
    else
      collect_expr(c, e->args[i]);
  }
}

// A function may read and write the memory that it gets.
static void collect_address(Collecting *c, Expr *e) {
  Expr *load = e->args[0];
  if (load->op != EXPR_LOAD) return;
  add_access(c, load->as.buffer, NULL, e);
  for (int i = 0; i < load->count; i++) collect_expr(c, load->args[i]);
}

static void collect_expr(Collecting *c, Expr *e) {
  bool opaque = expr_is_call(e) || (e->op == EXPR_VAR && e->as.var->scope);
  if (opaque && !c->out->opaque) {
    c->out->opaque = e;
    c->out->opaque_pos = c->pos;
  }
  if (!e->count) return;
  if (e->op == EXPR_ADDRESS_OF) {
    collect_address(c, e);
  } else if (e->op == EXPR_LET) {
    int ranges = c->ranges.count;
    collect_expr(c, e->args[1]);
    bind(c, e->args[0], e->args[1]);
    collect_expr(c, e->args[2]);
    c->ranges.count = ranges;
  } else {
    collect_children(c, e);
    if (e->op == EXPR_LOAD) add_access(c, e->as.buffer, e->args, NULL);
  }
}

// ---- Statements

static void collect_loop(Collecting *c, Stmt *s) {
  collect_expr(c, s->as.loop.min);
  collect_expr(c, s->as.loop.extent);
  VarRange range = {s->as.loop.var, resolved(c, s->as.loop.min), resolved(c, s->as.loop.extent)};
  array_push(&c->context->arena, &c->ranges, range);
  collect(c, s->as.loop.body);
  c->ranges.count--;
}

static void collect_store(Collecting *c, Stmt *s) {
  for (int i = 0; i < s->as.store.rank; i++) collect_expr(c, s->as.store.indices[i]);
  collect_expr(c, s->as.store.value);
  add_access(c, s->as.store.buffer, s->as.store.indices, s->as.store.value);
}

static void collect_branch(Collecting *c, Stmt *s, Expr *condition) {
  if (!s) return;
  array_push(&c->context->arena, &c->conditions, resolved(c, condition));
  collect(c, s);
  c->conditions.count--;
}

static void collect_if(Collecting *c, Stmt *s) {
  Expr *condition = s->as.branch.condition;
  collect_expr(c, condition);
  collect_branch(c, s->as.branch.then_body, condition);
  collect_branch(c, s->as.branch.else_body, expr_unary(c->context, EXPR_NOT, condition));
}

static void collect_let(Collecting *c, Stmt *s) {
  int ranges = c->ranges.count;
  collect_expr(c, s->as.let.value);
  bind(c, s->as.let.var, s->as.let.value);
  collect(c, s->as.let.body);
  c->ranges.count = ranges;
}

static void collect_while(Collecting *c, Stmt *s) {
  collect_expr(c, s->as.repeat.condition);
  collect(c, s->as.repeat.body);
}

static void collect_assert(Collecting *c, Stmt *s) {
  collect_expr(c, s->as.check.condition);
  if (s->as.check.body) collect(c, s->as.check.body);
}

static void collect_evaluate(Collecting *c, Stmt *s) {
  collect_expr(c, s->as.evaluate);
}

static void collect_seq(Collecting *c, Stmt *s) {
  for (int i = 0; i < s->as.seq.count; i++) collect(c, s->as.seq.items[i]);
}

// Memory that the threads around share is outside of what one of them does.
static void add_inside(Collecting *c, const Expr *data) {
  if (!c->thread || !scope_is_shared_by(data->as.var->scope, c->thread))
    map_put(&c->inside, data, data);
}

static void collect_allocate(Collecting *c, Stmt *s) {
  add_inside(c, s->as.allocate.var);
  collect(c, s->as.allocate.body);
}

static void collect_body(Collecting *c, Stmt *s) {
  collect(c, lower_body(s));
}

static Stmt *without_views(Collecting *c, const Block *block, Stmt *s) {
  for (int i = 0; i < block->match_count; i++)
    s = stmt_resolve_view(c->context, &block->matches[i], s);
  return s;
}

static void collect_block(Collecting *c, Stmt *s) {
  const Block *block = s->as.block;
  int ranges = c->ranges.count;
  collect_expr(c, block->predicate);
  for (int i = 0; i < block->var_count; i++) {
    collect_expr(c, block->vars[i].binding);
    bind(c, block->vars[i].var, block->vars[i].binding);
  }
  for (int i = 0; i < block->alloc_count; i++) add_inside(c, block->allocs[i]->data);
  array_push(&c->context->arena, &c->conditions, resolved(c, block->predicate));
  if (block->init) collect(c, without_views(c, block, block->init));
  collect(c, without_views(c, block, block->body));
  c->conditions.count--;
  c->ranges.count = ranges;
}

static void (*const collect_kinds[])(Collecting *, Stmt *) = {
    [STMT_FOR] = collect_loop,
    [STMT_STORE] = collect_store,
    [STMT_LET] = collect_let,
    [STMT_IF] = collect_if,
    [STMT_WHILE] = collect_while,
    [STMT_ASSERT] = collect_assert,
    [STMT_EVALUATE] = collect_evaluate,
    [STMT_SEQ] = collect_seq,
    [STMT_BLOCK] = collect_block,
    [STMT_ALLOCATE] = collect_allocate,
    [STMT_ALLOCATE_CONST] = collect_body,
    [STMT_DECL_BUFFER] = collect_body,
    [STMT_ATTR] = collect_body,
};

static void collect(Collecting *c, Stmt *s) {
  SourcePos outer = c->pos;
  const Stmt *by = c->by;
  if (s->pos.file) c->pos = s->pos;
  c->by = s;
  collect_kinds[s->kind](c, s);
  c->by = by;
  c->pos = outer;
}

LoopAccesses lower_accesses_of(Context *context, Stmt *body) {
  return lower_accesses_of_thread(context, body, NULL);
}

LoopAccesses lower_accesses_of_thread(Context *context, Stmt *body, const char *thread) {
  LoopAccesses all = {.written = map_new(&context->arena)};
  Collecting c = {.context = context,
                  .out = &all,
                  .lets = map_new(&context->arena),
                  .inside = map_new(&context->arena),
                  .thread = thread,
                  .pos = body->pos};
  collect(&c, body);
  return all;
}

static void add_size(Context *context, ExprArray *sizes, Expr *extent) {
  for (int i = 0; i < sizes->count; i++)
    if (sizes->items[i] == extent) return;
  if (extent->op == EXPR_VAR) array_push(&context->arena, sizes, extent);
}

ExprArray lower_free_sizes(Context *context, const PrimFunc *func) {
  ExprArray sizes = {0};
  for (int i = 0; i < func->param_count; i++) {
    const Buffer *buffer = func->buffers[i];
    for (int d = 0; buffer && d < buffer->rank; d++) add_size(context, &sizes, buffer->shape[d]);
  }
  return sizes;
}
