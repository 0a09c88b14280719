// SPDX-License-Identifier: Apache-2.0
// Finds where convert_blocks allocates the buffers of blocks: in the innermost loop or block that
// holds all accesses to the buffer and over whose iterations no value stays in the memory.
//
//   B allocated by the root; written and read under `for i`, summed over `for k` inside of it
//   → inside `for i`, outside of `for k`
//
// A value stays in memory from one iteration to the next in these loops: those in the bindings of
// reduction and opaque variables of a block that writes the memory; vectorised loops, since all
// lanes share one memory; the loops of a block's own body; and any loop whose body reads an element
// that it did not write before.
#include "lower/pass.h"
#include "schedule/internal.h"

typedef struct Place {
  Stmt **path; // loops and blocks from the outside in
  int depth;
} Place;

typedef struct Placement {
  Context *context;
  Array(Stmt *) path;
  Map vars;        // variable of a block of the path → binding over loop variables
  Map owners;      // data variable → (depth of the block that allocates it) + 1
  Map places;      // data variable → Place*
  int block_depth; // of the path up to and including the innermost block
  bool keeps_blocks;
} Placement;

static bool binding_uses(const Placement *placement, const Block *block, Expr *loop_var) {
  for (int i = 0; i < block->var_count; i++) {
    const BlockVar *v = &block->vars[i];
    if (v->kind == ITER_SPATIAL) continue;
    if (expr_uses(map_find(&placement->vars, v->var), loop_var)) return true;
  }
  return false;
}

static bool is_carried(const Placement *placement, int loop_at, int depth, bool is_write) {
  Stmt *loop = placement->path.items[loop_at];
  if (loop->as.loop.kind == LOOP_VECTORIZED) return true;
  if (!is_write) return false;
  for (int i = loop_at + 1; i < depth; i++) {
    Stmt *s = placement->path.items[i];
    if (s->kind == STMT_BLOCK && binding_uses(placement, s->as.block, loop->as.loop.var))
      return true;
  }
  return false;
}

// The largest depth on the current path to which the allocation may move from depth `owner`.
static int deepest_place(const Placement *placement, int owner, bool is_write) {
  int depth = MAX_OF(placement->block_depth, owner);
  for (int i = owner; i < depth; i++)
    if (placement->path.items[i]->kind == STMT_FOR && is_carried(placement, i, depth, is_write))
      return i;
  return depth;
}

static void note_access(Placement *placement, Expr *data, bool is_write) {
  int owner = (int)(intptr_t)map_find(&placement->owners, data) - 1;
  if (owner < 0) return;
  Place *place = map_find(&placement->places, data);
  int depth = deepest_place(placement, owner, is_write);
  if (!place) {
    place = arena_new(&placement->context->arena, Place);
    *place = (Place){arena_copy(&placement->context->arena, placement->path.items,
                                sizeof(Stmt *) * (size_t)placement->path.count),
                     depth};
    map_put(&placement->places, data, place);
  }
  int common = 0;
  while (common < place->depth && common < depth &&
         place->path[common] == placement->path.items[common])
    common++;
  place->depth = common;
}

static bool access_in_expr(Visitor *visitor, Expr *e) {
  if (e->op == EXPR_LOAD) note_access(visitor->env, e->as.buffer->data, false);
  if (e->op == EXPR_VAR && e->as.var->scope) note_access(visitor->env, e, true);
  return true;
}

static void enter_block(Placement *placement, Block *block) {
  for (int i = 0; i < block->var_count; i++)
    map_put(&placement->vars, block->vars[i].var,
            substitute_expr(placement->context, block->vars[i].binding, &placement->vars));
  for (int i = 0; i < block->alloc_count; i++)
    map_put(&placement->owners, block->allocs[i]->data, (intptr_t)placement->path.count + 1);
  for (int i = 0; i < block->match_count; i++) // an access to the view is one to the source
    note_access(placement, block->matches[i].source.buffer->data, true);
}

static void place_in(Placement *placement, Visitor *visitor, Stmt *s);

static bool place_children(Visitor *visitor, Stmt *s) {
  Placement *placement = visitor->env;
  if (s->kind == STMT_STORE) note_access(placement, s->as.store.buffer->data, true);
  if (s->kind == STMT_DECL_BUFFER) // the memory must exist where it gets another name
    note_access(placement, s->as.declare.buffer->data, true);
  if (lower_is_double_buffer(s)) { // names the memory, and does not access it
    visit_stmt(visitor, s->as.attr.body);
    return false;
  }
  if (s->kind != STMT_FOR && s->kind != STMT_BLOCK) return true;
  place_in(placement, visitor, s);
  return false;
}

// A block that stays names the buffers of its regions outside of itself.
static void note_regions(Placement *placement, const Block *block) {
  int outer = placement->block_depth;
  placement->block_depth = placement->path.count;
  for (int i = 0; i < block->read_count; i++)
    note_access(placement, block->reads[i].buffer->data, false);
  for (int i = 0; i < block->write_count; i++)
    note_access(placement, block->writes[i].buffer->data, false);
  placement->block_depth = outer;
}

// The bindings and the predicate of a block are evaluated outside of it.
static void note_heading(Placement *placement, Visitor *visitor, const Block *block) {
  int outer = placement->block_depth;
  placement->block_depth = placement->path.count;
  for (int i = 0; i < block->var_count; i++) visit_expr(visitor, block->vars[i].binding);
  if (block->predicate) visit_expr(visitor, block->predicate);
  placement->block_depth = outer;
}

static void place_in(Placement *placement, Visitor *visitor, Stmt *s) {
  int outer = placement->block_depth;
  Map outer_vars = placement->vars;
  if (s->kind == STMT_BLOCK) note_heading(placement, visitor, s->as.block);
  if (s->kind == STMT_BLOCK && placement->keeps_blocks) note_regions(placement, s->as.block);
  array_push(&placement->context->arena, &placement->path, s);
  if (s->kind == STMT_FOR) {
    visit_stmt_exprs(visitor, s);
    visit_stmt(visitor, s->as.loop.body);
  } else {
    placement->block_depth = placement->path.count;
    placement->vars = map_copy(&placement->context->arena, &outer_vars);
    enter_block(placement, s->as.block);
    if (s->as.block->init) visit_stmt(visitor, s->as.block->init);
    visit_stmt(visitor, s->as.block->body);
  }
  placement->path.count--;
  placement->block_depth = outer;
  placement->vars = outer_vars;
}

// ---- Values that come from an earlier iteration

// A box around what a statement writes.
typedef struct WrittenBox {
  Region region;
  Stmt *by;
} WrittenBox;

// The parts of one memory that an iteration has written so far, in the order of its statements.
typedef struct WrittenSoFar {
  Context *context;
  Analyzer *analyzer;
  Expr *data;
  Array(WrittenBox) boxes;
  PtrArray around; // loops and blocks of the iteration, around the statement
} WrittenSoFar;

static const Region *region_of(const RegionArray *regions, const Expr *data) {
  for (int i = 0; i < regions->count; i++)
    if (regions->items[i].buffer->data == data) return &regions->items[i];
  return NULL;
}

typedef struct HiddenSearch {
  const Expr *data;
  bool found;
} HiddenSearch;

static bool find_pointer(Visitor *visitor, Expr *e) {
  HiddenSearch *search = visitor->env;
  search->found |= e == search->data;
  return !search->found;
}

static bool find_other_name(Visitor *visitor, Stmt *s) {
  HiddenSearch *search = visitor->env;
  search->found |= s->kind == STMT_DECL_BUFFER && s->as.declare.buffer->data == search->data;
  for (int i = 0; s->kind == STMT_BLOCK && i < s->as.block->match_count; i++)
    search->found |= s->as.block->matches[i].source.buffer->data == search->data;
  return !search->found;
}

// Does the statement write the memory by its pointer or by another name, so that what it states to
// write has to be believed?
static bool hides_writes(const WrittenSoFar *written, Stmt *s) {
  HiddenSearch search = {written->data, false};
  visit_stmt(&(Visitor){.env = &search, .enter_expr = find_pointer, .enter_stmt = find_other_name},
             s);
  return search.found;
}

static Region inside_buffer(const WrittenSoFar *written, const Region *region) {
  Context *context = written->context;
  Region r = region_whole(context, region->buffer);
  for (int d = 0; d < region->buffer->rank; d++) {
    Expr *min = region->min[d], *zero = expr_int(context, min->type, 0);
    Expr *end = expr_add(context, min, expr_cast(context, min->type, region->extent[d]));
    Expr *size = expr_cast(context, min->type, region->buffer->shape[d]);
    r.min[d] = analyzer_simplify(written->analyzer, expr_max(context, min, zero));
    Expr *extent = expr_sub(context, expr_min(context, end, size), r.min[d]);
    r.extent[d] = analyzer_simplify(written->analyzer, extent);
  }
  return r;
}

// Does the statement write all that is read, which the box around what it writes covers?
static bool fills(const WrittenSoFar *written, Stmt *by, const Region *box, const Region *read) {
  return region_covers(written->analyzer, box, read) &&
         (stmt_fills_region(written->context, written->analyzer, by, box) ||
          stmt_fills_region(written->context, written->analyzer, by, read));
}

// ---- Accesses through one index map

// A block that writes [v // 8, u, v % 8] and a statement that reads [w // 8, r, w % 8] access the
// elements (u, v) and (r, w) of a tensor that has this layout. Statements are rewritten to access
// that tensor, whose axes are the variables of the block.
typedef struct ThroughMap {
  Context *context;
  const Buffer *buffer;
  const Block *block, *innermost; // that writes the buffer
  Expr **map;                     // the indices of its store
  Buffer *tensor;
  bool fails;
} ThroughMap;

static bool find_map(Visitor *visitor, Stmt *s) {
  ThroughMap *through = visitor->env;
  if (s->kind == STMT_STORE && s->as.store.buffer == through->buffer) {
    through->fails |= through->map || !through->innermost;
    through->map = s->as.store.indices;
    through->block = through->innermost;
  }
  if (s->kind != STMT_BLOCK) return true;
  const Block *outer = through->innermost;
  through->innermost = s->as.block;
  if (s->as.block->init) visit_stmt(visitor, s->as.block->init);
  visit_stmt(visitor, s->as.block->body);
  through->innermost = outer;
  return false;
}

// Finds the values of the block's variables with which the map gives the expression.
static bool match_index(const ThroughMap *through, const Expr *map, Expr *e, Expr **values) {
  for (int i = 0; i < through->block->var_count; i++) {
    if (map != through->block->vars[i].var) continue;
    bool fits = dtype_equal(map->type, e->type) && (!values[i] || values[i] == e);
    values[i] = e;
    return fits;
  }
  OpClass class = op_table[map->op].class;
  if (class != OP_ARITH && class != OP_BIT) return map == e;
  bool alike = map->op == e->op && map->count == e->count && dtype_equal(map->type, e->type);
  for (int i = 0; alike && i < map->count; i++)
    alike = match_index(through, map->args[i], e->args[i], values);
  return alike;
}

// The values of all variables of the block; NULL where the map does not give the indices.
static Expr **tensor_indices(const ThroughMap *through, Expr *const *indices) {
  int count = through->block->var_count;
  Expr **values = arena_array(&through->context->arena, Expr *, count + 1);
  for (int d = 0; d < through->buffer->rank; d++)
    if (!match_index(through, through->map[d], indices[d], values)) return NULL;
  for (int i = 0; i < count; i++)
    if (!values[i]) return NULL;
  return values;
}

static Expr *load_through(Rewriter *rewriter, Expr *e) {
  ThroughMap *through = rewriter->env;
  if (e->op != EXPR_LOAD || e->as.buffer != through->buffer) return e;
  Expr **indices = tensor_indices(through, e->args);
  through->fails |= !indices;
  return indices ? expr_load(through->context, through->tensor, indices, through->tensor->rank) : e;
}

static Stmt *store_through(Rewriter *rewriter, Stmt *s) {
  ThroughMap *through = rewriter->env;
  if (s->kind != STMT_STORE || s->as.store.buffer != through->buffer) return s;
  Expr **indices = tensor_indices(through, s->as.store.indices);
  through->fails |= !indices;
  if (!indices) return s;
  Stmt *next = stmt_copy(through->context, s);
  next->as.store.buffer = through->tensor;
  next->as.store.rank = through->tensor->rank;
  next->as.store.indices = indices;
  return next;
}

// False where the block has axes that do not begin at 0.
static bool make_tensor(ThroughMap *through) {
  int rank = through->block->var_count;
  Expr **shape = arena_array(&through->context->arena, Expr *, rank + 1);
  if (!rank || rank > TE_MAX_RANK) return false;
  for (int i = 0; i < rank; i++) {
    shape[i] = through->block->vars[i].extent;
    if (!expr_is_int(through->block->vars[i].min, 0)) return false;
  }
  through->tensor =
      buffer_new(through->context, "tensor", through->buffer->type, shape, rank, "global");
  return true;
}

// Does `by` write all that `reader` reads of the buffer, both through one index map?
static bool fills_through_map(const WrittenSoFar *written, const Buffer *buffer, Stmt *by,
                              Stmt *reader) {
  ThroughMap through = {.context = written->context, .buffer = buffer};
  visit_stmt(&(Visitor){.env = &through, .enter_stmt = find_map}, by);
  if (through.fails || !through.map || !make_tensor(&through)) return false;
  Rewriter rewriter = {
      .context = written->context, .env = &through, .expr = load_through, .stmt = store_through};
  Stmt *writes = rewrite_stmt(&rewriter, by), *reads = rewrite_stmt(&rewriter, reader);
  if (through.fails) return false;
  RegionArray read = {0}, write = {0}, other = {0};
  stmt_regions(written->analyzer, writes, &other, &write);
  stmt_regions(written->analyzer, reads, &read, &other);
  const Region *around = region_of(&write, through.tensor->data),
               *region = region_of(&read, through.tensor->data);
  if (!around || !region) return false;
  Region box = inside_buffer(written, around);
  return fills(written, stmt_renew(written->context, writes), &box, region);
}

static bool is_written(const WrittenSoFar *written, const Region *read, Stmt *reader) {
  Context *context = written->context;
  for (int i = 0; i < written->boxes.count; i++) {
    const WrittenBox *box = &written->boxes.items[i];
    if (box->region.buffer != read->buffer) continue;
    Stmt *by = stmt_renew(context, box->by); // the reader may have the same variables
    bool believed = hides_writes(written, box->by);
    if ((believed && region_covers(written->analyzer, &box->region, read)) ||
        fills(written, by, &box->region, read) ||
        fills_through_map(written, read->buffer, box->by, reader))
      return true;
  }
  return false;
}

// The writes of the statement count from here on.
static void add_written(WrittenSoFar *written, Stmt *by) {
  RegionArray reads = {0}, writes = {0};
  stmt_regions(written->analyzer, by, &reads, &writes);
  const Region *write = region_of(&writes, written->data);
  if (!write) return;
  WrittenBox box = {inside_buffer(written, write), by};
  array_push(&written->context->arena, &written->boxes, box);
}

static bool reads_written(WrittenSoFar *written, Stmt *s) {
  RegionArray reads = {0}, writes = {0};
  stmt_regions(written->analyzer, s, &reads, &writes);
  const Region *read = region_of(&reads, written->data);
  return !read || is_written(written, read, s);
}

static bool expr_reads_written(WrittenSoFar *written, Expr *e) {
  return reads_written(written, stmt_evaluate(written->context, e));
}

static bool store_written(WrittenSoFar *written, Stmt *s) {
  if (!reads_written(written, s)) return false;
  add_written(written, s);
  return true;
}

static bool is_first_value(const WrittenSoFar *written, const Expr *e) {
  for (int i = 0; i < written->around.count; i++) {
    const Stmt *s = written->around.items[i];
    if (s->kind == STMT_FOR && s->as.loop.var == e->args[0] && s->as.loop.min == e->args[1])
      return true;
    for (int k = 0; s->kind == STMT_BLOCK && k < s->as.block->var_count; k++) {
      const BlockVar *v = &s->as.block->vars[k];
      if (v->kind == ITER_REDUCTION && v->var == e->args[0] && v->min == e->args[1]) return true;
    }
  }
  return false;
}

static bool uses_from(const WrittenSoFar *written, int first, Expr *var) {
  for (int i = first; i < written->boxes.count; i++) {
    const Region *region = &written->boxes.items[i].region;
    for (int d = 0; d < region->buffer->rank; d++)
      if (expr_uses(region->min[d], var) || expr_uses(region->extent[d], var)) return true;
  }
  return false;
}

// Does the condition hold in the first iteration of loops inside, as that of an init does, and do
// the regions from `first` on not depend on their variables?
static bool is_first_iteration(const WrittenSoFar *written, const Expr *condition, int first) {
  if (condition->op == EXPR_AND)
    return is_first_iteration(written, condition->args[0], first) &&
           is_first_iteration(written, condition->args[1], first);
  return condition->op == EXPR_EQ && is_first_value(written, condition) &&
         !uses_from(written, first, condition->args[0]);
}

static void assume(WrittenSoFar *written, Expr *condition) {
  if (!expr_reads_memory(condition)) analyzer_assume(written->analyzer, condition);
}

static bool all_written(WrittenSoFar *written, Stmt *s);

static bool branch_written(WrittenSoFar *written, Stmt *s) {
  Stmt *otherwise = s->as.branch.else_body;
  if (!expr_reads_written(written, s->as.branch.condition)) return false;
  int before = written->boxes.count, mark = analyzer_mark(written->analyzer);
  assume(written, s->as.branch.condition);
  bool ok = all_written(written, s->as.branch.then_body);
  analyzer_reset(written->analyzer, mark);
  if (!ok) return false;
  if (!otherwise && is_first_iteration(written, s->as.branch.condition, before)) return true;
  written->boxes.count = before;
  if (otherwise && !all_written(written, otherwise)) return false;
  written->boxes.count = before;
  add_written(written, s);
  return true;
}

static bool loop_written(WrittenSoFar *written, Stmt *s) {
  VarRange range = loop_range(s);
  analyzer_bind(written->analyzer, range.var, range.min, range.extent);
  return expr_reads_written(written, range.min) && expr_reads_written(written, range.extent) &&
         all_written(written, s->as.loop.body);
}

static bool block_written(WrittenSoFar *written, Stmt *s) {
  Block *block = s->as.block;
  for (int i = 0; i < block->var_count; i++) {
    if (!expr_reads_written(written, block->vars[i].binding)) return false;
    analyzer_bind_value(written->analyzer, block->vars[i].var, block->vars[i].binding);
  }
  if (!expr_reads_written(written, block->predicate)) return false;
  assume(written, block->predicate);
  return (!block->init || all_written(written, block->init)) && all_written(written, block->body);
}

// A loop or a block: what it writes in all its iterations is seen from outside.
static bool part_written(WrittenSoFar *written, Stmt *s) {
  int before = written->boxes.count, mark = analyzer_mark(written->analyzer);
  array_push(&written->context->arena, &written->around, s);
  bool ok = s->kind == STMT_FOR ? loop_written(written, s) : block_written(written, s);
  written->around.count--;
  written->boxes.count = before;
  analyzer_reset(written->analyzer, mark);
  if (ok) add_written(written, s);
  return ok;
}

// Is all that the statement reads of the memory written before, in this iteration?
static bool all_written(WrittenSoFar *written, Stmt *s) {
  switch (s->kind) {
  case STMT_SEQ:
    for (int i = 0; i < s->as.seq.count; i++)
      if (!all_written(written, s->as.seq.items[i])) return false;
    return true;
  case STMT_FOR:
  case STMT_BLOCK: return part_written(written, s);
  case STMT_IF: return branch_written(written, s);
  case STMT_DECL_BUFFER: return all_written(written, s->as.declare.body);
  case STMT_ATTR: return all_written(written, s->as.attr.body);
  case STMT_ALLOCATE: return all_written(written, s->as.allocate.body);
  case STMT_LET:
    analyzer_bind_value(written->analyzer, s->as.let.var, s->as.let.value);
    return expr_reads_written(written, s->as.let.value) && all_written(written, s->as.let.body);
  case STMT_STORE: return store_written(written, s);
  case STMT_EVALUATE:
  case STMT_WHILE:
  case STMT_ASSERT:
  case STMT_ALLOCATE_CONST: return reads_written(written, s);
  }
  return false;
}

// Is what the innermost loop of the place reads in one iteration written there before?
static bool is_written_before_read(Context *context, const Place *place, Expr *data) {
  WrittenSoFar written = {.context = context, .analyzer = analyzer_new(context), .data = data};
  for (int i = 0; i < place->depth; i++)
    if (place->path[i]->kind == STMT_FOR)
      analyzer_bind(written.analyzer, place->path[i]->as.loop.var, place->path[i]->as.loop.min,
                    place->path[i]->as.loop.extent);
  return all_written(&written, place->path[place->depth - 1]->as.loop.body);
}

static Stmt *settle(Context *context, const Placement *placement, Expr *data, Place *place) {
  int owner = (int)(intptr_t)map_find(&placement->owners, data) - 1;
  while (place->depth > owner) {
    Stmt *at = place->path[place->depth - 1];
    if (at->kind == STMT_FOR && is_written_before_read(context, place, data)) break;
    place->depth--;
  }
  return place->path[place->depth - 1];
}

// ---- The answer

typedef struct Collection {
  Context *context;
  const Placement *placement;
  Map inside;
} Collection;

// A buffer that is not accessed has no Place, and its allocation is dropped.
static bool collect_allocations(Visitor *visitor, Stmt *s) {
  Collection *env = visitor->env;
  if (s->kind != STMT_BLOCK) return true;
  for (int i = 0; i < s->as.block->alloc_count; i++) {
    Buffer *buffer = s->as.block->allocs[i];
    Place *place = map_find(&env->placement->places, buffer->data);
    if (!place) continue;
    Stmt *at = settle(env->context, env->placement, buffer->data, place);
    PtrArray *list = map_find(&env->inside, at);
    if (!list) map_put(&env->inside, at, list = arena_new(&env->context->arena, PtrArray));
    array_push(&env->context->arena, list, buffer);
  }
  return true;
}

Map lower_allocation_places(Context *context, Stmt *body, bool keeps_blocks) {
  Placement placement = {.context = context,
                         .keeps_blocks = keeps_blocks,
                         .vars = map_new(&context->arena),
                         .owners = map_new(&context->arena),
                         .places = map_new(&context->arena)};
  Visitor visitor = {.env = &placement, .enter_expr = access_in_expr, .enter_stmt = place_children};
  visit_stmt(&visitor, body);
  Collection collection = {context, &placement, map_new(&context->arena)};
  Visitor collector = {.env = &collection, .enter_stmt = collect_allocations};
  visit_stmt(&collector, body);
  return collection.inside;
}
