// SPDX-License-Identifier: Apache-2.0
// Steps that put a copy of a buffer between a block and memory, and scopes.
//   cache_read    C[i] = A[i] + 1   =>   A_local[i] = A[i];  C[i] = A_local[i] + 1
//   cache_write   C[i] = A[i] + 1   =>   C_local[i] = A[i] + 1;  C[i] = C_local[i]
#include "schedule/internal.h"

typedef struct ScopeChange {
  Context *context;
  Str scope;
  Expr *data;
} ScopeChange;

static void change_scope(void *env, Buffer *b) {
  ScopeChange *to = env;
  b->scope = to->scope;
  b->data = to->data;
}

static bool known_scope(Schedule *schedule, const Stmt *at, const char *scope) {
  static const char *const scopes[] = {"global",        "local",         "shared",
                                       "shared.dyn",    "warp",          "global.texture",
                                       "wmma.matrix_a", "wmma.matrix_b", "wmma.accumulator"};
  for (int i = 0; i < COUNT_OF(scopes); i++)
    if (strcmp(scope, scopes[i]) == 0) return true;
  const char *near = nearest_name(scope, scopes, COUNT_OF(scopes));
  return refuse(schedule, at->pos, "'%s' is no memory scope%s%s%s", scope,
                near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static Buffer *buffer_of(Schedule *schedule, const Stmt *at, bool write, int64_t index) {
  Context *context = schedule->context;
  StepValue items[2] = {value_string(str_intern(context, write ? "write" : "read")),
                        value_int(index)};
  StepValue slot = {VALUE_LIST, {.list = {items, 2}}};
  return find_slot(schedule, at, &slot);
}

bool step_set_scope(Schedule *schedule, StepCall *call) {
  Context *context = schedule->context;
  Path path;
  if (!find_block(schedule, call->args[0].as.block, &path)) return false;
  Stmt *at = path_end(&path);
  Str scope = call->args[2].as.s;
  Buffer *buffer = buffer_of(schedule, at, true, call->args[1].as.i);
  if (!buffer || !known_scope(schedule, at, scope)) return false;
  if (is_parameter(schedule, buffer))
    return refuse(schedule, at->pos,
                  "'%s' is a parameter, whose memory is the caller's; use cache_write",
                  buffer->name);
  ScopeChange to = {context, scope,
                    expr_data_var(context, buffer->data->as.var->name, buffer->type, scope)};
  Map vars = map_new(&context->arena);
  map_put(&vars, buffer->data, to.data);
  replace_storage(schedule, buffer, change_scope, &to, &vars);
  return true;
}

// ---- Copies ----------------------------------------------------------------------------------

// to[min + ax] = from[min + ax] over a box; padding is copied only when it has stated content.
static Stmt *copy_nest(Schedule *schedule, Str name, Buffer *to, Buffer *from, Expr *const *min,
                       Expr *const *extent) {
  Context *context = schedule->context;
  int rank = to->rank;
  Block *block = arena_new(&context->arena, Block);
  Expr **vars = arena_array(&context->arena, Expr *, rank);
  Expr **loops = arena_array(&context->arena, Expr *, rank);
  Expr **bindings = arena_array(&context->arena, Expr *, rank);
  block->name = name;
  block->var_count = rank;
  block->vars = arena_array(&context->arena, BlockVar, rank);
  for (int d = 0; d < rank; d++) {
    vars[d] = expr_var(context, arena_printf(&context->arena, "v%d", d), DTYPE_INT32);
    loops[d] = expr_var(context, arena_printf(&context->arena, "ax%d", d), DTYPE_INT32);
    bindings[d] = expr_add(context, min[d], loops[d]);
    block->vars[d] =
        (BlockVar){vars[d], expr_index(context, 0), to->shape[d], ITER_SPATIAL, bindings[d]};
  }
  block->body = stmt_store(context, to, vars, rank, expr_load(context, from, vars, rank));
  bool content = to->layout && to->layout->padding.kind == LAYOUT_PADDING_CONSTANT;
  Expr *padding = content ? NULL : padding_condition(schedule, to, bindings);
  if (padding) {
    Analyzer *analyzer = analyzer_new(context);
    for (int d = 0; d < rank; d++)
      analyzer_bind(analyzer, loops[d], expr_index(context, 0), extent[d]);
    block->predicate = simplify(analyzer, expr_unary(context, EXPR_NOT, padding));
  }
  Stmt *s = stmt_block(context, block_with_regions(context, block));
  if (!s->as.block->predicate) s->as.block->predicate = expr_bool(context, true);
  for (int d = rank - 1; d >= 0; d--)
    s = stmt_for(context, loops[d], expr_index(context, 0), extent[d], LOOP_SERIAL, s);
  return s;
}

// The outermost statement of the nest that items[depth] stands in, within its scope.
static int nest_depth(const Path *path, int depth) {
  int scope = path_scope(path, depth), top = depth;
  for (int i = depth; i > scope; i--)
    if (path->items[i]->kind == STMT_FOR) top = i;
  return top;
}

static Buffer *cached_buffer(Schedule *schedule, const Buffer *buffer, Str scope) {
  Context *context = schedule->context;
  Buffer *copy = buffer_copy(context, buffer);
  copy->name = str_format(context, "%s_%.*s", buffer->name, (int)strcspn(scope, "."), scope);
  copy->data = expr_data_var(context, copy->name, buffer->type, scope);
  copy->scope = scope;
  copy->strides = NULL;
  copy->offset = expr_index(context, 0);
  copy->alignment = 0;
  copy->offset_factor = 0;
  copy->pos = (SourcePos){0};
  return copy;
}

static Str copy_name(Schedule *schedule, const Buffer *buffer) {
  return unique_block_name(schedule, buffer->name);
}

static bool touched_outside(Schedule *schedule, const Path *path, int depth, const Buffer *buffer,
                            bool write, const char **who) {
  StmtArray blocks = {0};
  blocks_all(&schedule->context->arena, schedule->func->body, &blocks);
  for (int i = 0; i < blocks.count; i++) {
    Path other;
    StmtArray inner = {0};
    blocks_below(&schedule->context->arena, blocks.items[i], &inner);
    path_to_block(schedule, blocks.items[i]->as.block->name, &other);
    bool inside = depth < other.count && other.items[depth] == path->items[depth];
    if (inner.count || inside || !block_touches(blocks.items[i]->as.block, buffer, write)) continue;
    *who = blocks.items[i]->as.block->name;
    return true;
  }
  return false;
}

// The block writes every place of the buffer, and is the first of its nest to touch it.
static bool is_complete_writer(Schedule *schedule, const Path *path, int top,
                               const Buffer *buffer) {
  Context *context = schedule->context;
  StmtArray blocks = {0};
  blocks_at(&context->arena, path->items[top], &blocks);
  for (int i = 0; i < blocks.count; i++) {
    const Block *block = blocks.items[i]->as.block;
    bool reads = block_touches(block, buffer, false), writes = block_touches(block, buffer, true);
    if (!reads && !writes) continue;
    if (reads || block->write_count != 1 || (block_is_reduction(block) && !block->init))
      return false;
    for (int d = 0; d < buffer->rank; d++)
      if (!index_is_axis(block, block->writes[0].min[d], buffer->shape[d])) return false;
    Path at;
    path_to_block(schedule, block->name, &at);
    Stmt **loops;
    int count = path_loops(schedule, &at, at.count - 1, &loops);
    VarRange *ranges = arena_array(&context->arena, VarRange, count);
    for (int k = 0; k < count; k++) ranges[k] = loop_range(loops[k]);
    Analyzer *analyzer = path_analyzer(schedule, &at, at.count - 1);
    return !bindings_check(analyzer, block, ranges, count) &&
           writes_whole_domain(schedule, block, analyzer);
  }
  return false;
}

bool step_cache_write(Schedule *schedule, StepCall *call) {
  Context *context = schedule->context;
  Path path;
  if (!find_block(schedule, call->args[0].as.block, &path)) return false;
  Stmt *at = path_end(&path);
  Str scope = call->args[2].as.s;
  const char *who;
  Buffer *buffer = buffer_of(schedule, at, true, call->args[1].as.i);
  if (!buffer || !known_scope(schedule, at, scope)) return false;
  if (path_scope(&path, path.count - 1) < 0)
    return refuse(schedule, at->pos, "the root block writes nothing of its own");
  if (storage_is_opaque(schedule, buffer, &who))
    return refuse(schedule, at->pos, "'%s' cannot be cached: %s", buffer->name, who);
  int top = nest_depth(&path, path.count - 1);
  if (touched_outside(schedule, &path, top, buffer, true, &who))
    return refuse(schedule, at->pos, "'%s' is also written by block '%s' in another nest",
                  buffer->name, who);
  if (!is_complete_writer(schedule, &path, top, buffer))
    return refuse(schedule, at->pos,
                  "the nest of block '%s' is not proved to write all of '%s'; what it leaves would "
                  "be overwritten by the copy",
                  at->as.block->name, buffer->name);
  Buffer *local = cached_buffer(schedule, buffer, scope);
  Map buffers = map_new(&context->arena);
  map_put(&buffers, buffer, local);
  Stmt *kept = substitute_stmt(context, path.items[top], NULL, &buffers);
  Expr **zero = arena_array(&context->arena, Expr *, buffer->rank);
  for (int d = 0; d < buffer->rank; d++) zero[d] = expr_index(context, 0);
  Str name = copy_name(schedule, buffer);
  Stmt *nest = copy_nest(schedule, name, buffer, local, zero, buffer->shape);
  place_beside(schedule, &path, top, kept, nest, true, local);
  step_result(schedule, call, value_block(name));
  return true;
}

bool step_cache_read(Schedule *schedule, StepCall *call) {
  Context *context = schedule->context;
  Path path;
  if (!find_block(schedule, call->args[0].as.block, &path)) return false;
  Stmt *at = path_end(&path);
  Str scope = call->args[2].as.s;
  const char *who;
  Buffer *buffer = buffer_of(schedule, at, false, call->args[1].as.i);
  if (!buffer || !known_scope(schedule, at, scope)) return false;
  if (path_scope(&path, path.count - 1) < 0)
    return refuse(schedule, at->pos, "the root block reads nothing of its own");
  if (storage_is_opaque(schedule, buffer, &who))
    return refuse(schedule, at->pos, "'%s' cannot be cached: %s", buffer->name, who);
  int top = nest_depth(&path, path.count - 1);
  AccessArray accesses = {0};
  Analyzer *analyzer = path_analyzer(schedule, &path, top);
  accesses_below(schedule, analyzer, path.items[top], &accesses);
  Region read;
  bool any = false;
  for (int i = 0; i < accesses.count; i++) {
    Access *a = &accesses.items[i];
    if (!buffers_alias(a->buffer, buffer)) continue;
    if (a->write)
      return refuse(schedule, at->pos, "block '%s' writes '%s' in the same nest", a->block->name,
                    buffer->name);
    if (a->block != at->as.block) continue;
    Region region = {buffer, a->min, a->extent};
    read = any ? region_union(analyzer, &read, &region) : region;
    any = true;
  }
  if (!any) return refuse(schedule, at->pos, "'%s' is not read", buffer->name);
  for (int d = 0; d < buffer->rank; d++) { // no further than the buffer goes
    Expr *end = expr_add(context, read.min[d], read.extent[d]);
    bool inside =
        prove(analyzer, expr_binary(context, EXPR_GE, read.min[d], expr_index(context, 0))) &&
        prove(analyzer, expr_binary(context, EXPR_LE, end, buffer->shape[d]));
    if (inside) continue;
    read.min[d] = expr_index(context, 0);
    read.extent[d] = buffer->shape[d];
  }
  Buffer *local = cached_buffer(schedule, buffer, scope);
  Map buffers = map_new(&context->arena);
  map_put(&buffers, buffer, local);
  Stmt *block = substitute_stmt(context, at, NULL, &buffers);
  Stmt *kept = block;
  for (int i = path.count - 2; i >= top; i--)
    kept = stmt_with_child(context, path.items[i], path.child[i], kept);
  Str name = unique_block_name(schedule, local->name);
  Stmt *nest = copy_nest(schedule, name, local, buffer, read.min, read.extent);
  place_beside(schedule, &path, top, kept, nest, false, local);
  step_result(schedule, call, value_block(name));
  return true;
}
