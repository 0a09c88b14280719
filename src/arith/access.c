// SPDX-License-Identifier: Apache-2.0
// Finds the parts of buffers that a statement accesses, for schedules and lowering. One walk binds
// loops, lets, blocks and conditions, and turns each access into a box in terms of the variables
// that are free at the statement.
#include "arith/internal.h"

typedef struct Walk {
  Context *context;
  Analyzer *analyzer;
  RegionArray reads, writes; // one for each access: merged when the inner facts are gone
  Map inside;                // data variables of the allocations inside
  Map views;                 // views of regions, made by blocks inside: MatchBuffer
  Map declared;              // buffers that blocks declare over memory from outside: their Block
  const Block *block;        // the innermost one around what is walked; NULL: none inside
  Array(VarRange) vars;      // variables that vary inside: loops, loaded values
  int bound;                 // number of lets and block variables in scope that are inside
} Walk;

static void record_access(Walk *walk, Buffer *buffer, const Region *region, bool writes);
static void walk_stmt(Walk *walk, Stmt *s);
static void walk_expr(Walk *walk, Expr *e);

// ---- Recording

// Outside of loops, an index keeps its written form, except that variables bound by inner lets and
// blocks are replaced.
static Expr *const *free_outside(Walk *walk, Buffer *buffer, Expr *const *indices) {
  if (!walk->bound || walk->vars.count) return indices;
  Expr **result = arena_array(walk->analyzer->arena, Expr *, buffer->rank + 1);
  for (int i = 0; i < buffer->rank; i++) result[i] = analyzer_simplify(walk->analyzer, indices[i]);
  return result;
}

// The box over all iterations of the inner loops, in terms of the variables that are free outside.
static Region run_through(Walk *walk, Buffer *buffer, Expr *const *first, Expr *const *last) {
  Region r = region_whole(walk->context, buffer), end = r;
  Arena *arena = walk->analyzer->arena;
  Expr **min = arena_array(arena, Expr *, 2 * buffer->rank + 1), **extent = min + buffer->rank;
  first = free_outside(walk, buffer, first);
  index_region_of_bound(walk->analyzer, first, buffer->rank, walk->vars.items, walk->vars.count,
                        min, extent, NULL);
  for (int i = 0; i < buffer->rank; i++)
    if (min[i]) r.min[i] = min[i], r.extent[i] = extent[i];
  if (!last) return r;
  end = region_whole(walk->context, buffer);
  last = free_outside(walk, buffer, last);
  index_region_of_bound(walk->analyzer, last, buffer->rank, walk->vars.items, walk->vars.count, min,
                        extent, NULL);
  for (int i = 0; i < buffer->rank; i++)
    if (min[i]) end.min[i] = min[i], end.extent[i] = extent[i];
  return region_union(walk->analyzer, &r, &end);
}

static Region region_through(Walk *walk, const Region *region) {
  Expr **last = arena_array(walk->analyzer->arena, Expr *, region->buffer->rank + 1);
  for (int i = 0; i < region->buffer->rank; i++) {
    Expr *end = expr_add(walk->context, region->min[i], region->extent[i]);
    last[i] = expr_sub(walk->context, end, expr_int(walk->context, end->type, 1));
  }
  return run_through(walk, region->buffer, region->min, last);
}

// The bytes of a buffer without gaps; 0: not known.
static int64_t compact_bytes(const Buffer *buffer) {
  int64_t bytes = dtype_bytes(buffer->type) * (int64_t)buffer->type.lanes, extent;
  for (int i = 0; i < buffer->rank && bytes; i++)
    if (!expr_as_int(buffer->shape[i], &extent) || !mul_fits(bytes, extent, &bytes)) bytes = 0;
  return buffer->strides ? 0 : bytes;
}

// Is the memory of the buffer a part of that of a view, from its beginning on?
static bool is_in_view(const Buffer *buffer, const Buffer *view) {
  int64_t bytes = compact_bytes(buffer);
  bool same_unit = dtype_bytes(buffer->type) * buffer->type.lanes ==
                   dtype_bytes(view->type) * view->type.lanes; // of both offsets
  return view->data == buffer->data && view->offset == buffer->offset && same_unit && bytes &&
         bytes <= compact_bytes(view);
}

// Records an access of a buffer that a block declares over memory from outside: one of the region
// of a view that holds all of it, or else of whole buffers that the block states. False: of none.
static bool record_declared(Walk *walk, const Buffer *buffer, bool writes) {
  const Block *block = map_find(&walk->declared, buffer);
  for (int i = 0; block && i < block->match_count; i++) {
    if (!is_in_view(buffer, block->matches[i].buffer)) continue;
    Region source = region_through(walk, &block->matches[i].source);
    record_access(walk, source.buffer, &source, writes);
    return true;
  }
  int count = !block ? 0 : writes ? block->write_count : block->read_count;
  bool found = false;
  for (int i = 0; i < count; i++) {
    Buffer *stated = writes ? block->writes[i].buffer : block->reads[i].buffer;
    if (stated == buffer || stated->data != buffer->data) continue;
    Region whole = region_whole(walk->context, stated);
    record_access(walk, stated, &whole, writes);
    found = true;
  }
  return found;
}

static void record_access(Walk *walk, Buffer *buffer, const Region *region, bool writes) {
  const MatchBuffer *view = map_find(&walk->views, buffer);
  if (view) {
    Region source = region_through(walk, &view->source);
    record_access(walk, source.buffer, &source, writes);
  } else if (!map_contains(&walk->inside, buffer->data) &&
             !record_declared(walk, buffer, writes)) {
    array_push(walk->analyzer->arena, writes ? &walk->writes : &walk->reads, *region);
  }
}

// A vector index covers the elements from its base to its last lane.
static void record_indices(Walk *walk, Buffer *buffer, Expr *const *indices, bool writes) {
  Expr **first = arena_array(walk->analyzer->arena, Expr *, 2 * buffer->rank + 1);
  Expr **last = first + buffer->rank;
  bool vector = false;
  for (int i = 0; i < buffer->rank; i++) {
    Expr *e = indices[i];
    first[i] = last[i] = e;
    if (e->op == EXPR_BROADCAST) first[i] = last[i] = e->args[0];
    if (e->op != EXPR_RAMP) continue;
    DType type = e->args[1]->type;
    Expr *lanes = expr_lanes(walk->context, type, e->type);
    Expr *steps = expr_sub(walk->context, lanes, expr_int(walk->context, type, 1));
    first[i] = e->args[0];
    last[i] = expr_add(walk->context, e->args[0], expr_mul(walk->context, e->args[1], steps));
    vector = true;
  }
  Region r = run_through(walk, buffer, first, vector ? last : NULL);
  record_access(walk, buffer, &r, writes);
}

static void record_whole(Walk *walk, Buffer *buffer) {
  Region r = region_whole(walk->context, buffer);
  record_access(walk, buffer, &r, false);
  record_access(walk, buffer, &r, true);
}

// A variable that is bound to a loaded value takes any value of its range; another one is replaced
// by its value.
static void bind_inside(Walk *walk, Expr *var, Expr *value) {
  analyzer_bind_value(walk->analyzer, var, value);
  if (expr_reads_memory(value))
    array_push(walk->analyzer->arena, &walk->vars, (VarRange){.var = var});
  walk->bound++;
}

// ---- Expressions

static void walk_exprs(Walk *walk, Expr *const *items, int count) {
  for (int i = 0; i < count; i++) walk_expr(walk, items[i]);
}

static void walk_given(Walk *walk, Expr *e, Expr *condition, bool truth) {
  int mark = analyzer_mark(walk->analyzer);
  analyzer_assume(walk->analyzer,
                  truth ? condition : expr_unary(walk->context, EXPR_NOT, condition));
  walk_expr(walk, e);
  analyzer_reset(walk->analyzer, mark);
}

static void walk_expr(Walk *walk, Expr *e) {
  if (!e) return;
  if (e->op == EXPR_ADDRESS_OF && e->args[0]->op == EXPR_LOAD) {
    record_whole(walk, e->args[0]->as.buffer);
    walk_exprs(walk, e->args[0]->args, e->args[0]->count);
    return;
  }
  if (e->op == EXPR_IF_THEN_ELSE) {
    walk_expr(walk, e->args[0]);
    walk_given(walk, e->args[1], e->args[0], true);
    walk_given(walk, e->args[2], e->args[0], false);
    return;
  }
  if (e->op == EXPR_LOAD) record_indices(walk, e->as.buffer, e->args, false);
  int mark = analyzer_mark(walk->analyzer);
  if (e->op == EXPR_LET) {
    walk_expr(walk, e->args[1]);
    int vars = walk->vars.count;
    bind_inside(walk, e->args[0], e->args[1]);
    walk_expr(walk, e->args[2]);
    walk->bound--;
    walk->vars.count = vars;
  } else {
    walk_exprs(walk, e->args, e->count);
  }
  analyzer_reset(walk->analyzer, mark);
}

// ---- Statements

static void walk_loop(Walk *walk, Stmt *s) {
  VarRange range = loop_range(s);
  walk_expr(walk, range.min);
  walk_expr(walk, range.extent);
  analyzer_bind(walk->analyzer, range.var, range.min, range.extent);
  array_push(walk->analyzer->arena, &walk->vars, range);
  walk_stmt(walk, s->as.loop.body);
  walk->vars.count--;
}

static void walk_store(Walk *walk, Stmt *s) {
  walk_exprs(walk, s->as.store.indices, s->as.store.rank);
  walk_expr(walk, s->as.store.value);
  record_indices(walk, s->as.store.buffer, s->as.store.indices, true);
}

static void walk_let(Walk *walk, Stmt *s) {
  walk_expr(walk, s->as.let.value);
  int vars = walk->vars.count;
  bind_inside(walk, s->as.let.var, s->as.let.value);
  walk_stmt(walk, s->as.let.body);
  walk->bound--;
  walk->vars.count = vars;
}

static void assume_if_stable(Walk *walk, Expr *condition) {
  if (condition->op == EXPR_AND) {
    assume_if_stable(walk, condition->args[0]);
    assume_if_stable(walk, condition->args[1]);
  } else if (!expr_reads_memory(condition)) {
    analyzer_assume(walk->analyzer, condition);
  }
}

static void walk_branch(Walk *walk, Stmt *s) {
  Expr *condition = s->as.branch.condition;
  int mark = analyzer_mark(walk->analyzer);
  walk_expr(walk, condition);
  assume_if_stable(walk, condition);
  walk_stmt(walk, s->as.branch.then_body);
  analyzer_reset(walk->analyzer, mark);
  if (!s->as.branch.else_body) return;
  assume_if_stable(walk, expr_unary(walk->context, EXPR_NOT, condition));
  walk_stmt(walk, s->as.branch.else_body);
}

static void walk_seq(Walk *walk, Stmt *s) {
  for (int i = 0; i < s->as.seq.count; i++) walk_stmt(walk, s->as.seq.items[i]);
}

// The accesses of a block that its loads and stores do not show.
typedef struct Hidden {
  Arena *arena;
  bool addresses; // it takes addresses of elements
  Map passed;     // data variables that it passes on, each to itself
  PtrArray views; // MatchBuffer
} Hidden;

static bool find_hidden(Visitor *visitor, Expr *e) {
  Hidden *hidden = visitor->env;
  hidden->addresses |= e->op == EXPR_ADDRESS_OF;
  if (e->op == EXPR_VAR && dtype_equal(e->type, DTYPE_HANDLE)) map_put(&hidden->passed, e, e);
  return true;
}

static bool find_views(Visitor *visitor, Stmt *s) {
  Hidden *hidden = visitor->env;
  for (int i = 0; s->kind == STMT_BLOCK && i < s->as.block->match_count; i++)
    array_push(hidden->arena, &hidden->views, &s->as.block->matches[i]);
  return true;
}

// Whether the data variable of a buffer, or of a view of it, is passed on.
static bool is_passed(const Hidden *hidden, const Buffer *buffer) {
  bool passed = map_contains(&hidden->passed, buffer->data);
  for (int i = 0; i < hidden->views.count && !passed; i++) {
    const MatchBuffer *view = hidden->views.items[i];
    bool is_own = view->buffer->data != buffer->data; // not the variable of its source
    passed = is_own && view->source.buffer->data == buffer->data && is_passed(hidden, view->buffer);
  }
  return passed;
}

// Records the stated regions, of all buffers or of those whose data variables are passed on.
static void record_stated(Walk *walk, const Block *block, const Hidden *passed) {
  for (int i = 0; i < block->read_count + block->write_count; i++) {
    bool writes = i >= block->read_count;
    const Region *stated = writes ? &block->writes[i - block->read_count] : &block->reads[i];
    if (passed && !is_passed(passed, stated->buffer)) continue;
    Region r = region_through(walk, stated);
    record_access(walk, r.buffer, &r, writes);
  }
}

static Hidden hidden_in(Arena *arena, const Block *block) {
  Hidden hidden = {.arena = arena, .passed = map_new(arena)};
  if (block->read_count + block->write_count == 0) return hidden;
  Visitor visitor = {.env = &hidden, .enter_expr = find_hidden, .enter_stmt = find_views};
  visit_stmt(&visitor, block->body);
  for (int i = 0; i < block->match_count; i++) array_push(arena, &hidden.views, &block->matches[i]);
  return hidden;
}

// Records what the block states of buffers whose data variables it passes on, and what is seen.
static void walk_seen(Walk *walk, const Block *block, const Hidden *hidden) {
  if (hidden->passed.count) record_stated(walk, block, hidden);
  if (block->init) walk_stmt(walk, block->init);
  walk_stmt(walk, block->body);
}

// A block that takes addresses accesses the regions that it states, because its accesses are not
// seen.
static void walk_body(Walk *walk, const Block *block) {
  Hidden hidden = hidden_in(walk->analyzer->arena, block);
  if (hidden.addresses)
    record_stated(walk, block, NULL);
  else
    walk_seen(walk, block, &hidden);
}

// Allocations of the block are invisible outside of it, and an access through a view is one of the
// view's source.
static void enter_memory(Walk *walk, const Block *block) {
  for (int i = 0; i < block->alloc_count; i++)
    map_put(&walk->inside, block->allocs[i]->data, block);
  for (int i = 0; i < block->match_count; i++)
    map_put(&walk->views, block->matches[i].buffer, &block->matches[i]);
}

static void walk_block(Walk *walk, Stmt *s) {
  Block *block = s->as.block;
  int vars = walk->vars.count;
  walk_expr(walk, block->predicate);
  for (int i = 0; i < block->var_count; i++) walk_expr(walk, block->vars[i].binding);
  assume_if_stable(walk, block->predicate);
  for (int i = 0; i < block->var_count; i++)
    bind_inside(walk, block->vars[i].var, block->vars[i].binding);
  const Block *around = walk->block;
  enter_memory(walk, block);
  walk->block = block;
  walk_body(walk, block);
  walk->block = around;
  walk->bound -= block->var_count;
  walk->vars.count = vars;
}

static void walk_check(Walk *walk, Stmt *s) {
  walk_expr(walk, s->as.check.condition);
  if (!s->as.check.body) return;
  assume_if_stable(walk, s->as.check.condition);
  walk_stmt(walk, s->as.check.body);
}

static void walk_allocate(Walk *walk, Stmt *s) {
  map_put(&walk->inside, s->as.allocate.var, s);
  walk_stmt(walk, s->as.allocate.body);
}

static void walk_allocate_const(Walk *walk, Stmt *s) {
  map_put(&walk->inside, s->as.allocate_const.var, s);
  walk_stmt(walk, s->as.allocate_const.body);
}

static void walk_repeat(Walk *walk, Stmt *s) {
  walk_expr(walk, s->as.repeat.condition);
  walk_stmt(walk, s->as.repeat.body);
}

static void walk_evaluate(Walk *walk, Stmt *s) {
  walk_expr(walk, s->as.evaluate);
}

static void walk_declare(Walk *walk, Stmt *s) {
  if (walk->block) map_put(&walk->declared, s->as.declare.buffer, walk->block);
  walk_stmt(walk, s->as.declare.body);
}

static void walk_attr(Walk *walk, Stmt *s) {
  walk_stmt(walk, s->as.attr.body);
}

static void (*const walkers[])(Walk *, Stmt *) = {
    [STMT_FOR] = walk_loop,
    [STMT_STORE] = walk_store,
    [STMT_LET] = walk_let,
    [STMT_IF] = walk_branch,
    [STMT_WHILE] = walk_repeat,
    [STMT_ASSERT] = walk_check,
    [STMT_EVALUATE] = walk_evaluate,
    [STMT_SEQ] = walk_seq,
    [STMT_BLOCK] = walk_block,
    [STMT_ALLOCATE] = walk_allocate,
    [STMT_ALLOCATE_CONST] = walk_allocate_const,
    [STMT_DECL_BUFFER] = walk_declare,
    [STMT_ATTR] = walk_attr,
};

static void walk_stmt(Walk *walk, Stmt *s) {
  int mark = analyzer_mark(walk->analyzer);
  walkers[s->kind](walk, s);
  analyzer_reset(walk->analyzer, mark);
}

// Merges the regions into `all`, which holds one region for each buffer.
static void merge(Analyzer *analyzer, const RegionArray *found, RegionArray *all) {
  Map places = map_new(analyzer->arena); // buffer to its index in `all` + 1
  for (int i = 0; i < all->count; i++) map_put(&places, all->items[i].buffer, (intptr_t)i + 1);
  for (int i = 0; i < found->count; i++) {
    const Region *region = &found->items[i];
    intptr_t at = (intptr_t)map_find(&places, region->buffer);
    if (at) {
      all->items[at - 1] = region_union(analyzer, &all->items[at - 1], region);
    } else {
      array_push(&analyzer->context->arena, all, *region);
      map_put(&places, region->buffer, (intptr_t)all->count);
    }
  }
}

// ---- Bounds that change inside

typedef struct BoundSearch {
  const Walk *walk;
  bool found;
} BoundSearch;

static bool find_changed(Visitor *visitor, Expr *e) {
  BoundSearch *search = visitor->env;
  const Walk *walk = search->walk;
  if (e->op != EXPR_LOAD) return true;
  const Buffer *b = e->as.buffer;
  search->found |= map_contains(&walk->inside, b->data) || map_contains(&walk->views, b);
  for (int i = 0; i < walk->writes.count; i++)
    search->found |= buffers_alias(walk->writes.items[i].buffer, b);
  return !search->found;
}

static bool changes_inside(const Walk *walk, Expr *e) {
  BoundSearch search = {walk, false};
  if (expr_reads_memory(e)) visit_expr(&(Visitor){.env = &search, .enter_expr = find_changed}, e);
  return search.found;
}

// A bound is a value at the start of the statement. One that reads memory which is allocated, made
// a view or written inside gives way to the whole axis.
static void widen_changed(const Walk *walk, RegionArray *regions) {
  for (int i = 0; i < regions->count; i++) {
    Region *r = &regions->items[i];
    Region whole = region_whole(walk->context, r->buffer);
    bool any = false;
    for (int d = 0; d < r->buffer->rank; d++) {
      bool changes = changes_inside(walk, r->min[d]) || changes_inside(walk, r->extent[d]);
      if (!changes) whole.min[d] = r->min[d], whole.extent[d] = r->extent[d];
      any |= changes;
    }
    if (any) *r = whole;
  }
}

static void merge_all(Walk *walk, RegionArray *reads, RegionArray *writes) {
  widen_changed(walk, &walk->reads);
  widen_changed(walk, &walk->writes);
  merge(walk->analyzer, &walk->reads, reads);
  merge(walk->analyzer, &walk->writes, writes);
}

static Walk walk_new(Analyzer *analyzer) {
  return (Walk){.context = analyzer->context,
                .analyzer = analyzer,
                .inside = map_new(analyzer->arena),
                .declared = map_new(analyzer->arena),
                .views = map_new(analyzer->arena)};
}

void stmt_regions(Analyzer *analyzer, Stmt *s, RegionArray *reads, RegionArray *writes) {
  Walk walk = walk_new(analyzer);
  walk_stmt(&walk, s);
  merge_all(&walk, reads, writes);
}

void block_regions(Analyzer *analyzer, const Block *block, RegionArray *reads,
                   RegionArray *writes) {
  Walk walk = walk_new(analyzer);
  Hidden hidden = hidden_in(analyzer->arena, block);
  enter_memory(&walk, block);
  walk.block = block;
  walk_seen(&walk, block, &hidden);
  merge_all(&walk, reads, writes);
}

// ---- Blocks that do not state their regions

static bool same_region(const Region *a, const Region *b) {
  if (a->buffer != b->buffer) return false;
  for (int i = 0; i < a->buffer->rank; i++)
    if (a->min[i] != b->min[i] || a->extent[i] != b->extent[i]) return false;
  return true;
}

// Drops the reads of regions that the block also writes: TVMScript does not state the read of an
// update in a block with an init.
static void drop_updates(RegionArray *reads, const RegionArray *writes) {
  int kept = 0;
  for (int i = 0; i < reads->count; i++) {
    bool update = false;
    for (int j = 0; j < writes->count; j++)
      update |= same_region(&reads->items[i], &writes->items[j]);
    if (!update) reads->items[kept++] = reads->items[i];
  }
  reads->count = kept;
}

static void find_block_regions(Context *context, Block *block) {
  ArenaMark mark = arena_mark(&context->scratch);
  Analyzer *analyzer = analyzer_new_in(context, &context->scratch);
  RegionArray reads = {0}, writes = {0};
  for (int i = 0; i < block->var_count; i++)
    analyzer_bind_kept(analyzer, block->vars[i].var, block->vars[i].min, block->vars[i].extent);
  block_regions(analyzer, block, &reads, &writes);
  if (block->init) drop_updates(&reads, &writes);
  block->reads = reads.items;
  block->read_count = reads.count;
  block->writes = writes.items;
  block->write_count = writes.count;
  arena_reset(&context->scratch, mark);
}

static Stmt *find_regions(Rewriter *rewriter, Stmt *s) {
  if (s->kind != STMT_BLOCK) return s;
  const Block *block = s->as.block;
  if (block->read_count || block->write_count || block_is_root(block)) return s;
  Stmt *next = stmt_copy(rewriter->context, s);
  next->as.block = block_copy(rewriter->context, block);
  find_block_regions(rewriter->context, next->as.block);
  return next;
}

Stmt *blocks_find_regions(Context *context, Stmt *s) {
  Rewriter rewriter = {.context = context, .stmt = find_regions};
  return rewrite_stmt(&rewriter, s);
}
