// SPDX-License-Identifier: Apache-2.0
// Finds paths from the function's body down to a statement, and replaces one statement of the tree.
// The tree is immutable; a replacement shares all statements that are not on the path.
#include "schedule/internal.h"

// ---- Nested statements -----------------------------------------------------------------------

// The address of the i-th nested statement; NULL when there is none.
static Stmt **slot(Stmt *s, int i) {
  switch (s->kind) {
  case STMT_FOR: return &s->as.loop.body;
  case STMT_LET: return &s->as.let.body;
  case STMT_IF: return i == 0 ? &s->as.branch.then_body : &s->as.branch.else_body;
  case STMT_WHILE: return &s->as.repeat.body;
  case STMT_ASSERT: return &s->as.check.body;
  case STMT_SEQ: return &s->as.seq.items[i];
  case STMT_BLOCK: return i == 0 ? &s->as.block->init : &s->as.block->body;
  case STMT_ALLOCATE: return &s->as.allocate.body;
  case STMT_ALLOCATE_CONST: return &s->as.allocate_const.body;
  case STMT_DECL_BUFFER: return &s->as.declare.body;
  case STMT_ATTR: return &s->as.attr.body;
  case STMT_STORE:
  case STMT_EVALUATE: break;
  }
  return NULL;
}

int stmt_child_count(const Stmt *s) {
  switch (s->kind) {
  case STMT_STORE:
  case STMT_EVALUATE: return 0;
  case STMT_SEQ: return s->as.seq.count;
  case STMT_IF:
  case STMT_BLOCK: return 2;
  default: return 1;
  }
}

Stmt *stmt_child(const Stmt *s, int i) {
  return *slot((Stmt *)s, i);
}

Stmt *stmt_with_child(Context *context, const Stmt *s, int i, Stmt *child) {
  if (stmt_child(s, i) == child) return (Stmt *)s;
  Stmt *copy = stmt_copy(context, s);
  if (s->kind == STMT_BLOCK) copy->as.block = block_copy(context, s->as.block);
  if (s->kind == STMT_SEQ)
    copy->as.seq.items =
        arena_copy(&context->arena, s->as.seq.items, sizeof(Stmt *) * (size_t)s->as.seq.count);
  *slot(copy, i) = child;
  return copy;
}

// ---- Paths -----------------------------------------------------------------------------------

typedef bool (*StmtMatch)(const Stmt *s, const void *what);

static bool is_stmt(const Stmt *s, const void *what) {
  return s == what;
}
static bool is_block(const Stmt *s, const void *what) {
  return s->kind == STMT_BLOCK && s->as.block->name == what;
}
static bool is_loop(const Stmt *s, const void *what) {
  return s->kind == STMT_FOR && s->as.loop.var == what;
}

typedef struct BlockSearch {
  Arena *arena;
  StmtMatch match;
  const void *what;
  StmtArray items;
  Array(int) child;
} BlockSearch;

static bool search(BlockSearch *state, Stmt *s) {
  if (!s) return false;
  array_push(state->arena, &state->items, s);
  if (state->match(s, state->what)) return true;
  int count = stmt_child_count(s);
  for (int i = 0; i < count; i++) {
    array_push(state->arena, &state->child, i);
    if (search(state, stmt_child(s, i))) return true;
    state->child.count--;
  }
  state->items.count--;
  return false;
}

static bool path_find(const Schedule *schedule, StmtMatch match, const void *what, Path *out) {
  BlockSearch state = {.arena = &schedule->context->arena, .match = match, .what = what};
  if (!what || !search(&state, schedule->func->body)) return false;
  *out = (Path){state.items.items, state.child.items, state.items.count};
  return true;
}

bool path_to_stmt(const Schedule *schedule, const Stmt *s, Path *out) {
  return path_find(schedule, is_stmt, s, out);
}
bool path_to_block(const Schedule *schedule, BlockRef block, Path *out) {
  return path_find(schedule, is_block, block, out);
}
bool path_to_loop(const Schedule *schedule, LoopRef loop, Path *out) {
  return path_find(schedule, is_loop, loop, out);
}

static void collect_names(Arena *arena, Stmt *s, PtrArray *names) {
  StmtArray blocks = {0};
  blocks_all(arena, s, &blocks);
  for (int i = 0; i < blocks.count; i++)
    array_push(arena, names, (void *)blocks.items[i]->as.block->name);
}

static const char *block_suggestion(Schedule *schedule, const char *name) {
  PtrArray names = {0};
  collect_names(&schedule->context->scratch, schedule->func->body, &names);
  return suggestion_of(&schedule->context->arena, name, (const char *const *)names.items,
                       names.count);
}

bool schedule_find_block(Schedule *schedule, BlockRef block, Path *out) {
  if (path_to_block(schedule, block, out)) return true;
  SourcePos pos = schedule->func->pos;
  if (!block) return schedule_refuse(schedule, pos, "no block was given");
  const char *first = map_find(&schedule->shared_names, block);
  if (first)
    return schedule_refuse(schedule, pos,
                           "several blocks of the function are named '%s'\n"
                           "the schedule numbers them: the first one is '%s'",
                           block, first);
  return schedule_refuse(schedule, pos, "the function has no block '%s'%s", block,
                         block_suggestion(schedule, block));
}

bool schedule_find_loop(Schedule *schedule, LoopRef loop, Path *out) {
  if (path_to_loop(schedule, loop, out)) return true;
  if (!loop) return schedule_refuse(schedule, schedule->func->pos, "no loop was given");
  if (loop_is_place(loop))
    return schedule_refuse(schedule, schedule->func->pos,
                           "no loop was sampled, but a place for compute_at");
  return schedule_refuse(
      schedule, schedule->func->pos,
      "loop '%s' is no longer in the function: an earlier step replaced it; take the "
      "loops again with get_loops",
      loop->as.var->name);
}

bool schedule_find_block_in_loop(Schedule *schedule, BlockRef block, LoopRef around, Path *path,
                                 int *depth) {
  Path loop;
  if (!schedule_find_block(schedule, block, path) || !schedule_find_loop(schedule, around, &loop))
    return false;
  *depth = loop.count - 1;
  return (*depth < path->count - 1 && path->items[*depth] == path_end(&loop) &&
          path_scope(path, path->count - 1) <= *depth) ||
         schedule_refuse(schedule, path_end(&loop)->pos, "loop '%s' is not around block '%s'",
                         loop_name(path_end(&loop)), path_end(path)->as.block->name);
}

// ---- Replacing -------------------------------------------------------------------------------

static bool vanishes_when_empty(const Stmt *s) {
  switch (s->kind) {
  case STMT_FOR:
  case STMT_ATTR:
  case STMT_LET: return true;
  case STMT_IF: return !s->as.branch.else_body;
  case STMT_BLOCK: return !block_is_root(s->as.block);
  default: return false;
  }
}

// A block inside of which a statement was replaced accesses other regions.
static Stmt *with_new_regions(Context *context, Stmt *s) {
  if (s->kind != STMT_BLOCK || block_is_root(s->as.block)) return s;
  return stmt_with_block(context, s, block_with_regions(context, s->as.block));
}

static Stmt *seq_with(Context *context, const Stmt *seq, int i, Stmt *child) {
  int count = seq->as.seq.count;
  Stmt **items = arena_array(&context->arena, Stmt *, count);
  int n = 0;
  for (int k = 0; k < count; k++) {
    Stmt *item = k == i ? child : seq->as.seq.items[k];
    if (item && !stmt_is_nothing(item)) items[n++] = item;
  }
  return n ? stmt_seq(context, items, n) : stmt_nothing(context);
}

Stmt *path_replace(Context *context, const Path *path, int depth, Stmt *replacement) {
  Stmt *s = replacement ? replacement : stmt_nothing(context);
  for (int i = depth - 1; i >= 0; i--) {
    Stmt *parent = path->items[i];
    if (parent->kind == STMT_SEQ)
      s = seq_with(context, parent, path->child[i], s);
    else if (!stmt_is_nothing(s) || !vanishes_when_empty(parent))
      s = with_new_regions(context, stmt_with_child(context, parent, path->child[i], s));
  }
  return s;
}

Stmt *path_with_end(Context *context, const Path *path, int depth, Stmt *end) {
  for (int i = path->count - 2; i >= depth; i--)
    end = stmt_with_child(context, path->items[i], path->child[i], end);
  return end;
}

void schedule_set_body(Schedule *schedule, Stmt *body) {
  schedule->func = prim_func_with_body(schedule->context, schedule->func, body);
}

int path_scope(const Path *path, int depth) {
  for (int i = depth - 1; i >= 0; i--)
    if (path->items[i]->kind == STMT_BLOCK) return i;
  return -1;
}

int path_nest_top(const Path *path, int depth) {
  int scope = path_scope(path, depth), top = depth;
  for (int i = depth; i > scope; i--)
    if (path->items[i]->kind == STMT_FOR) top = i;
  return top;
}

bool path_precedes(const Path *a, const Path *b) {
  for (int i = 0; i + 1 < a->count && i + 1 < b->count && a->items[i] == b->items[i]; i++)
    if (a->child[i] != b->child[i]) return a->child[i] < b->child[i];
  return false;
}

int path_loops(Schedule *schedule, const Path *path, int depth, Stmt ***loops) {
  int scope = path_scope(path, depth), count = 0;
  *loops = arena_array(&schedule->context->arena, Stmt *, depth - scope);
  for (int i = scope + 1; i < depth; i++)
    if (path->items[i]->kind == STMT_FOR) (*loops)[count++] = path->items[i];
  return count;
}

int path_ranges(Schedule *schedule, const Path *path, int depth, VarRange **ranges) {
  Stmt **loops;
  int count = path_loops(schedule, path, depth, &loops);
  *ranges = arena_array(&schedule->context->arena, VarRange, count);
  for (int i = 0; i < count; i++) (*ranges)[i] = loop_range(loops[i]);
  return count;
}

// ---- Blocks ----------------------------------------------------------------------------------

static void gather_blocks(Arena *arena, Stmt *s, bool within, StmtArray *out) {
  if (!s) return;
  if (s->kind == STMT_BLOCK) array_push(arena, out, s);
  if (s->kind == STMT_BLOCK && !within) return;
  int count = stmt_child_count(s);
  for (int i = 0; i < count; i++) gather_blocks(arena, stmt_child(s, i), within, out);
}

void blocks_below(Arena *arena, Stmt *s, StmtArray *out) {
  if (s->kind == STMT_BLOCK) {
    gather_blocks(arena, s->as.block->init, false, out);
    gather_blocks(arena, s->as.block->body, false, out);
  } else {
    gather_blocks(arena, s, false, out);
  }
}

void blocks_at(Arena *arena, Stmt *s, StmtArray *out) {
  gather_blocks(arena, s, false, out);
}

void blocks_all(Arena *arena, Stmt *s, StmtArray *out) {
  gather_blocks(arena, s, true, out);
}

void blocks_innermost(Arena *arena, Stmt *s, StmtArray *out) {
  StmtArray all = {0};
  blocks_all(arena, s, &all);
  for (int i = 0; i < all.count; i++) {
    StmtArray inner = {0};
    blocks_below(arena, all.items[i], &inner);
    if (!inner.count) array_push(arena, out, all.items[i]);
  }
}

int block_number(const StmtArray *blocks, const Block *block) {
  for (int i = 0; i < blocks->count; i++)
    if (blocks->items[i]->as.block == block) return i;
  return -1;
}

bool stmt_has_loose_stores(Stmt *s) {
  if (!s || s->kind == STMT_BLOCK) return false;
  if (s->kind == STMT_EVALUATE) return s->as.evaluate->op != EXPR_PREFETCH;
  if (s->kind == STMT_STORE) return true;
  int count = stmt_child_count(s);
  for (int i = 0; i < count; i++)
    if (stmt_has_loose_stores(stmt_child(s, i))) return true;
  return false;
}

typedef struct LooseUse {
  const Buffer *buffer;
  bool writes, found; // writes: only those count
} LooseUse;

static bool loose_expr(Visitor *visitor, Expr *e) {
  LooseUse *use = visitor->env;
  if (e->op == EXPR_PREFETCH) return false;
  for (int i = 0; i < e->count; i++) // a call gets a pointer, by which it may do both
    use->found |= e->op == EXPR_CALL && e->args[i] == use->buffer->data;
  if (e->op == EXPR_LOAD && !use->writes) use->found |= buffers_alias(e->as.buffer, use->buffer);
  return !use->found;
}

static bool holds_block(const Stmt *s) {
  if (!s || s->kind == STMT_BLOCK) return s != NULL;
  int count = stmt_child_count(s);
  for (int i = 0; i < count; i++)
    if (holds_block(stmt_child(s, i))) return true;
  return false;
}

static bool loose_stmt(Visitor *visitor, Stmt *s) {
  LooseUse *use = visitor->env;
  if (s->kind == STMT_STORE) use->found |= buffers_alias(s->as.store.buffer, use->buffer);
  if (s->kind != STMT_BLOCK) return !use->found;
  return holds_block(s->as.block->body) || holds_block(s->as.block->init);
}

bool stmt_uses_loosely(Stmt *s, const Buffer *buffer, bool writes) {
  LooseUse use = {buffer, writes, false};
  visit_stmt(&(Visitor){.env = &use, .enter_expr = loose_expr, .enter_stmt = loose_stmt}, s);
  return use.found;
}

Str schedule_unique_name(const Schedule *schedule, const char *name) {
  Context *context = schedule->context;
  Path path;
  Str candidate = str_intern(context, name);
  for (int i = 1; path_to_block(schedule, candidate, &path); i++)
    candidate = str_format(context, "%s_%d", name, i);
  return candidate;
}

Stmt *block_stmt(const Schedule *schedule, BlockRef block) {
  Path path;
  return path_to_block(schedule, block, &path) ? path_end(&path) : NULL;
}

typedef struct BlockMapping {
  BlockMap map;
  void *env;
} BlockMapping;

static Stmt *map_one(Rewriter *rewriter, Stmt *s) {
  BlockMapping *mapping = rewriter->env;
  return s->kind == STMT_BLOCK ? mapping->map(mapping->env, s) : NULL;
}

Stmt *stmt_map_blocks(Context *context, Stmt *s, BlockMap f, void *env) {
  BlockMapping mapping = {f, env};
  Rewriter rewriter = {.context = context, .env = &mapping, .enter_stmt = map_one};
  return rewrite_stmt(&rewriter, s);
}

// ---- New nests beside old ones ---------------------------------------------------------------

void path_replace_flat(Schedule *schedule, const Path *path, int depth, Stmt *replacement) {
  Context *context = schedule->context;
  if (depth && path->items[depth - 1]->kind == STMT_SEQ) {
    Stmt *seq = path->items[depth - 1];
    Stmt **items = arena_array(&context->arena, Stmt *, seq->as.seq.count);
    for (int i = 0; i < seq->as.seq.count; i++)
      items[i] = i == path->child[depth - 1] ? replacement : seq->as.seq.items[i];
    replacement = stmt_seq(context, items, seq->as.seq.count);
    depth--;
  }
  schedule_set_body(schedule, path_replace(context, path, depth, replacement));
}

void path_replace_block(Schedule *schedule, const Path *path, Block *block) {
  Context *context = schedule->context;
  Stmt *s = stmt_with_block(context, path_end(path), block);
  schedule_set_body(schedule, path_replace(context, path, path->count - 1, s));
}

static Stmt *add_alloc(Context *context, const Stmt *s, Buffer *buffer) {
  Block *copy = block_copy(context, s->as.block);
  copy->allocs = arena_array(&context->arena, Buffer *, copy->alloc_count + 1);
  for (int i = 0; i < copy->alloc_count; i++) copy->allocs[i] = s->as.block->allocs[i];
  copy->allocs[copy->alloc_count++] = buffer;
  return stmt_with_block(context, s, copy);
}

void block_allocate(Schedule *schedule, BlockRef block, Buffer *buffer) {
  Context *context = schedule->context;
  Path path;
  path_to_block(schedule, block, &path);
  Stmt *with = with_new_regions(context, add_alloc(context, path_end(&path), buffer));
  schedule_set_body(schedule, path_replace(context, &path, path.count - 1, with));
}

void path_place_beside(Schedule *schedule, const Path *path, int depth, Stmt *kept, Stmt *nest,
                       bool after, Buffer *buffer) {
  Context *context = schedule->context;
  Stmt *pair[2] = {after ? kept : nest, after ? nest : kept};
  BlockRef scope = path->items[path_scope(path, depth)]->as.block->name;
  path_replace_flat(schedule, path, depth, stmt_seq(context, pair, 2));
  block_allocate(schedule, scope, buffer);
}

// The values of a block's variable whose binding is the sum of a loop's variable and a constant,
// where the loop is as long in all iterations around it.
static bool values_of_loop(Schedule *schedule, const Path *path, const BlockVar *v, Expr **min,
                           Expr **extent) {
  Context *context = schedule->context;
  const Stmt *loop = NULL;
  Expr *index = v->binding, *shift = expr_int(context, v->var->type, 0);
  if (index->op == EXPR_ADD && index->args[1]->op == EXPR_INT)
    shift = index->args[1], index = index->args[0];
  for (int i = 0; i < path->count; i++)
    if (path->items[i]->kind == STMT_FOR && path->items[i]->as.loop.var == index)
      loop = path->items[i];
  if (!loop) return false;
  *min = expr_add(context, loop->as.loop.min, shift);
  *extent = loop->as.loop.extent;
  for (int i = 0; i < path->count; i++) {
    const Stmt *around = path->items[i];
    if (around->kind == STMT_FOR &&
        (expr_uses(*min, around->as.loop.var) || expr_uses(*extent, around->as.loop.var)))
      return false;
  }
  return true;
}

// Gives the values that a variable takes, where they are not its whole domain.
static bool narrow_values(Schedule *schedule, const Path *path, Analyzer *analyzer,
                          const BlockVar *v, Expr **min, Expr **extent) {
  Context *context = schedule->context;
  int64_t first, count, low, high;
  if (v->kind != ITER_SPATIAL) return false;
  if (!expr_as_int(v->min, &first) || !expr_as_int(v->extent, &count))
    return values_of_loop(schedule, path, v, min, extent) &&
           (!analyzer_prove_equal(analyzer, *min, v->min) ||
            !analyzer_prove_equal(analyzer, *extent, v->extent));
  if (!analyzer_const_bounds(analyzer, analyzer_simplify(analyzer, v->binding), &low, &high))
    return false;
  low = MAX_OF(low, first), high = MIN_OF(high, first + count - 1);
  *min = expr_int(context, v->var->type, low);
  *extent = expr_int(context, v->var->type, high - low + 1);
  return low <= high && high - low + 1 < count;
}

bool path_narrow_domain(Schedule *schedule, BlockRef ref, Path *path) {
  Context *context = schedule->context;
  Stmt *s = path_end(path);
  Block *block = s->as.block, *narrow = NULL;
  Analyzer *analyzer = path_analyzer(schedule, path, path->count - 1);
  for (int i = 0; i < block->var_count; i++) {
    Expr *min, *extent;
    if (!narrow_values(schedule, path, analyzer, &block->vars[i], &min, &extent)) continue;
    if (!narrow) {
      narrow = block_copy(context, block);
      narrow->vars =
          arena_copy(&context->arena, block->vars, sizeof *block->vars * (size_t)block->var_count);
    }
    narrow->vars[i].min = min;
    narrow->vars[i].extent = extent;
  }
  if (!narrow) return true;
  Stmt *with = stmt_with_block(context, s, narrow);
  schedule_set_body(schedule, path_replace(context, path, path->count - 1, with));
  return schedule_find_block(schedule, ref, path);
}
