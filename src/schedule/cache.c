// SPDX-License-Identifier: Apache-2.0
// Implements the steps that put a copy of a buffer between a block and memory, and set_scope.
//   cache_read    C[i] = A[i] + 1   =>   A_local[i] = A[i];  C[i] = A_local[i] + 1
//   cache_write   C[i] = A[i] + 1   =>   C_local[i] = A[i] + 1;  C[i] = C_local[i]
//   cache_inplace C[i] = C[i] + 1   =>   C_local[i] = C[i];  C_local[i] = C_local[i] + 1;
//                                        C[i] = C_local[i]
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

bool schedule_check_scope(Schedule *schedule, const Stmt *at, const char *scope) {
  static const char *const scopes[] = {"global",        "local",         "shared",
                                       "shared.dyn",    "warp",          "global.texture",
                                       "wmma.matrix_a", "wmma.matrix_b", "wmma.accumulator"};
  for (int i = 0; i < COUNT_OF(scopes); i++)
    if (strcmp(scope, scopes[i]) == 0) return true;
  const char *near = suggestion_of(&schedule->context->arena, scope, scopes, COUNT_OF(scopes));
  return schedule_refuse(schedule, at->pos, "'%s' is not a memory scope%s", scope, near);
}

Buffer *schedule_buffer_of(Schedule *schedule, const Stmt *at, bool write, int64_t index) {
  StepValue slot = value_slot(schedule->context, write, value_int(index));
  return schedule_find_slot(schedule, at, &slot);
}

bool step_set_scope(Schedule *schedule, StepCall *call) {
  Context *context = schedule->context;
  Path path;
  if (!schedule_find_block(schedule, call->args[0].as.block, &path)) return false;
  Stmt *at = path_end(&path);
  Str scope = call->args[2].as.s;
  Buffer *buffer = schedule_buffer_of(schedule, at, true, call->args[1].as.i);
  if (!buffer || !schedule_check_scope(schedule, at, scope)) return false;
  if (buffer_is_parameter(schedule, buffer))
    return schedule_refuse(schedule, at->pos,
                           "'%s' is a parameter, whose memory is the caller's; use cache_write",
                           buffer->name);
  ScopeChange to = {context, scope,
                    expr_data_var(context, buffer->data->as.var->name, buffer->type, scope)};
  Map vars = map_new(&context->arena);
  map_put(&vars, buffer->data, to.data);
  schedule_replace_storage(schedule, buffer, change_scope, &to, &vars);
  return true;
}

// ---- Copies ----------------------------------------------------------------------------------

// The condition under which the box's index is one of the buffer, as far as that is not proved.
static Expr *inside_condition(Schedule *schedule, Analyzer *analyzer, const Buffer *buffer,
                              Expr *const *bindings, Expr *const *loops, Expr *const *extent) {
  Context *context = schedule->context;
  Expr *inside = expr_bool(context, true);
  int mark = analyzer_mark(analyzer);
  for (int d = 0; d < buffer->rank; d++)
    analyzer_bind(analyzer, loops[d], expr_int(context, loops[d]->type, 0), extent[d]);
  for (int d = 0; d < buffer->rank; d++) {
    Expr *zero = expr_int(context, bindings[d]->type, 0);
    Expr *low = expr_binary(context, EXPR_GE, bindings[d], zero);
    Expr *high = expr_lt(context, bindings[d], buffer->shape[d]);
    if (!analyzer_prove(analyzer, low)) inside = condition_and(context, inside, low);
    if (!analyzer_prove(analyzer, high)) inside = condition_and(context, inside, high);
  }
  analyzer_reset(analyzer, mark);
  return inside;
}

Expr *copied_condition(Schedule *schedule, Analyzer *analyzer, const Buffer *to,
                       Expr *const *indices, Expr *const *loops, Expr *const *extent) {
  Context *context = schedule->context;
  Expr *condition = inside_condition(schedule, analyzer, to, indices, loops, extent);
  bool content = to->layout && to->layout->padding.kind == LAYOUT_PADDING_CONSTANT;
  Expr *padding = content ? NULL : padding_condition(schedule, to, indices);
  if (!padding) return condition;
  int mark = analyzer_mark(analyzer);
  for (int d = 0; d < to->rank; d++)
    analyzer_bind(analyzer, loops[d], expr_int(context, loops[d]->type, 0), extent[d]);
  Expr *element = analyzer_simplify(analyzer, expr_unary(context, EXPR_NOT, padding));
  analyzer_reset(analyzer, mark);
  return condition_and(context, condition, element);
}

// The extent of dimension `d` of a block that copies a box: where that begins at 0, the box's own,
// so that the block's loops run over its whole domain.
static Expr *copied_extent(Context *context, const Buffer *to, int d, const Expr *min,
                           Expr *extent) {
  int64_t own, whole;
  bool shorter = expr_is_int(min, 0) && expr_as_int(extent, &own) &&
                 expr_as_int(to->shape[d], &whole) && own < whole;
  return shorter ? expr_cast(context, to->shape[d]->type, extent) : to->shape[d];
}

// A copy of the part of a box that is in the buffer `whole`. `to` and `from` are the buffer and its
// copy, which begins at the box's min where it is `part`.
typedef struct CopiedBox {
  Str name;
  Buffer *to, *from;
  const Buffer *whole, *part;
  const Region *box;
} CopiedBox;

// The index of an element of the box where the block's variables are `vars`.
static Expr **copied_indices(Context *context, const CopiedBox *copied, const Buffer *buffer,
                             Expr *const *vars) {
  Expr **out = arena_copy(&context->arena, vars, sizeof *vars * (size_t)buffer->rank);
  for (int d = 0; copied->part && buffer != copied->part && d < buffer->rank; d++)
    out[d] = expr_add(context, expr_cast(context, vars[d]->type, copied->box->min[d]), vars[d]);
  return out;
}

// The nest to[min + ax] = from[min + ax], under a condition (NULL: always). The analyzer has the
// facts of the surrounding loops.
static Stmt *copy_nest(Schedule *schedule, const CopiedBox *copied, Expr *condition,
                       Analyzer *analyzer) {
  Context *context = schedule->context;
  const Buffer *whole = copied->whole;
  Expr *const *min = copied->box->min, *const *extent = copied->box->extent;
  int rank = whole->rank;
  Block *block = arena_new(&context->arena, Block);
  Expr **vars = arena_array(&context->arena, Expr *, rank);
  Expr **loops = arena_array(&context->arena, Expr *, rank);
  Expr **bindings = arena_array(&context->arena, Expr *, rank);
  block->name = copied->name;
  block->var_count = rank;
  block->vars = arena_array(&context->arena, BlockVar, rank);
  for (int d = 0; d < rank; d++) {
    DType type = whole->shape[d]->type;
    vars[d] = expr_var(context, arena_printf(&context->arena, "v%d", d), type);
    loops[d] = expr_var(context, arena_printf(&context->arena, "ax%d", d), type);
    bindings[d] = expr_add(context, expr_cast(context, type, min[d]), loops[d]);
    Expr *domain = copied->part ? expr_cast(context, type, extent[d])
                                : copied_extent(context, whole, d, min[d], extent[d]);
    block->vars[d] = (BlockVar){vars[d], expr_int(context, type, 0), domain, ITER_SPATIAL,
                                copied->part ? loops[d] : bindings[d]};
  }
  Expr *value =
      expr_load(context, copied->from, copied_indices(context, copied, copied->from, vars), rank);
  block->body = stmt_store(context, copied->to, copied_indices(context, copied, copied->to, vars),
                           rank, value);
  block->predicate = condition_and(
      context, condition, copied_condition(schedule, analyzer, whole, bindings, loops, extent));
  Stmt *s = stmt_block(context, block_with_regions(context, block));
  for (int d = rank - 1; d >= 0; d--)
    s = stmt_for(context, loops[d], expr_int(context, loops[d]->type, 0),
                 expr_cast(context, loops[d]->type, extent[d]), LOOP_SERIAL, s);
  return s;
}

Str cached_name(Context *context, const Buffer *buffer, Str scope) {
  return str_format(context, "%s_%.*s", buffer->name, (int)strcspn(scope, "."), scope);
}

Buffer *cached_buffer(Schedule *schedule, const Buffer *buffer, Str scope) {
  Context *context = schedule->context;
  Buffer *copy = buffer_copy(context, buffer);
  copy->name = cached_name(context, buffer, scope);
  copy->data = expr_data_var(context, copy->name, buffer->type, scope);
  copy->scope = scope;
  copy->strides = NULL;
  copy->offset = expr_index(context, 0);
  copy->alignment = 0;
  copy->offset_factor = 0;
  copy->pos = (SourcePos){0};
  return copy;
}

static bool touched_outside(Schedule *schedule, const Path *path, int depth, const Buffer *buffer,
                            bool write, const char **who) {
  StmtArray blocks = {0};
  blocks_innermost(&schedule->context->arena, schedule->func->body, &blocks);
  for (int i = 0; i < blocks.count; i++) {
    Path other;
    const Block *block = blocks.items[i]->as.block;
    if (!block_touches(block, buffer, write)) continue;
    path_to_block(schedule, block->name, &other);
    if (depth < other.count && other.items[depth] == path->items[depth]) continue;
    *who = block->name;
    return true;
  }
  return false;
}

typedef Array(Path) PathArray;

// The common part of both caching steps: the block, its buffer and their nest.
typedef struct Caching {
  Path path;
  Stmt *at; // the block
  Buffer *buffer;
  Str scope;
  int top;           // depth of the nest's outermost statement in the path
  PathArray readers; // the blocks that read the copy: consumer_blocks
  PathArray late;    // of these, the ones after the nest, which need the whole copy
} Caching;

// Finds the blocks of a list of blocks or of their names. Each reads the buffer and is in the scope
// of the step's block. The trace's other forms may make a block with another name, so that the
// trace has the handle of a block rather than its name.
static bool find_readers(Schedule *schedule, StepValue *list, Caching *c) {
  Context *context = schedule->context;
  int scope = path_scope(&c->path, c->path.count - 1);
  for (int i = 0; list->kind == VALUE_LIST && i < list->as.list.count; i++) {
    StepValue *item = &list->as.list.items[i];
    Path path;
    if (item->kind != VALUE_BLOCK && item->kind != VALUE_STRING)
      return schedule_refuse(schedule, c->at->pos, "consumer_blocks are blocks or their names");
    Str name = item->kind == VALUE_BLOCK ? item->as.block : item->as.s;
    if (!schedule_find_block(schedule, name, &path)) return false;
    if (map_contains(&schedule->known, name)) *item = value_block(name);
    if (!block_touches(path_end(&path)->as.block, c->buffer, false))
      return schedule_refuse(schedule, path_end(&path)->pos, "block '%s' does not read '%s'", name,
                             c->buffer->name);
    if (path_scope(&path, path.count - 1) != scope || path.items[scope] != c->path.items[scope])
      return schedule_refuse(schedule, path_end(&path)->pos,
                             "blocks '%s' and '%s' are not in the same block", name,
                             c->at->as.block->name);
    array_push(&context->arena, &c->readers, path);
  }
  return true;
}

static bool caching_begin(Schedule *schedule, StepCall *call, bool write, Caching *c) {
  const char *who;
  if (!schedule_find_block(schedule, call->args[0].as.block, &c->path)) return false;
  c->at = path_end(&c->path);
  c->scope = call->args[2].as.s;
  c->buffer = schedule_buffer_of(schedule, c->at, write, call->args[1].as.i);
  if (!c->buffer || !schedule_check_scope(schedule, c->at, c->scope)) return false;
  if (path_scope(&c->path, c->path.count - 1) < 0)
    return schedule_refuse(schedule, c->at->pos, "the root block itself %s no buffer",
                           write ? "writes" : "reads");
  if (!storage_stays_in_blocks(schedule, c->buffer, &who))
    return schedule_refuse(schedule, c->at->pos, "'%s' cannot be cached: %s", c->buffer->name, who);
  c->top = path_nest_top(&c->path, c->path.count - 1);
  return find_readers(schedule, &call->args[3], c);
}

// `s` with the buffer replaced by its copy.
static Stmt *with_copy(Schedule *schedule, Stmt *s, const Caching *c, Buffer *copy) {
  Map buffers = map_new(&schedule->context->arena), vars = map_new(&schedule->context->arena);
  map_put(&buffers, c->buffer, copy);
  map_put(&vars, c->buffer->data, copy->data);
  return substitute_stmt(schedule->context, s, &vars, &buffers);
}

// The copy with the extents of a box in place of the buffer's. NULL: it keeps those of the buffer,
// which it does below loops, so that it can move to another one; a pass makes it smaller later.
static Buffer *part_of_copy(Schedule *schedule, const Caching *c, const Buffer *copy,
                            const Region *box) {
  Context *context = schedule->context;
  const char *why;
  bool smaller = false;
  for (int i = path_scope(&c->path, c->top) + 1; i < c->top; i++)
    if (c->path.items[i]->kind != STMT_SEQ) return NULL;
  if (c->late.count || copy->layout || storage_is_opaque(schedule, c->buffer, &why)) return NULL;
  Buffer *part = buffer_copy(context, copy);
  part->shape = arena_copy(&context->arena, part->shape, sizeof *part->shape * (size_t)part->rank);
  for (int d = 0; d < part->rank; d++) {
    int64_t own, all;
    bool known = expr_as_int(box->extent[d], &own);
    if (expr_is_int(box->min[d], 0) &&
        expr_cast(context, part->shape[d]->type, box->extent[d]) == part->shape[d])
      continue;
    if (!known || (expr_as_int(part->shape[d], &all) && own > all)) return NULL;
    smaller |= !expr_as_int(part->shape[d], &all) || own < all;
    part->shape[d] = expr_int(context, part->shape[d]->type, own);
  }
  return smaller ? part : NULL;
}

// Lets the readers read the copy.
static void redirect_readers(Schedule *schedule, const Caching *c, const PathArray *readers,
                             Buffer *copy) {
  for (int i = 0; i < readers->count; i++) {
    Path path;
    path_to_block(schedule, path_end(&readers->items[i])->as.block->name, &path);
    Stmt *s = with_copy(schedule, path_end(&path), c, copy);
    schedule_set_body(schedule, path_replace(schedule->context, &path, path.count - 1, s));
  }
}

// True when the block writes all elements of the buffer, as one for each point of its domain or by
// regions that its inner blocks fill.
static bool writes_all(Schedule *schedule, const Path *path, int top, const Block *block,
                       Buffer *buffer) {
  Analyzer *analyzer = path_analyzer(schedule, path, path->count - 1);
  bool all_points = !path_bindings_check(schedule, path, analyzer, block);
  bool by_axis = block->write_count == 1;
  for (int d = 0; by_axis && d < buffer->rank; d++)
    by_axis = index_is_axis(block, block->writes[0].min[d], buffer->shape[d]);
  if (by_axis) return all_points && block_writes_whole_domain(schedule, block, analyzer);
  AccessArray accesses = {0};
  if (block_is_reduction(block) && !(all_points && expr_is_true(block->predicate))) return false;
  analyzer = path_analyzer(schedule, path, top);
  stmt_accesses_below(schedule, analyzer, path->items[top], &accesses);
  return block_fills_buffer(schedule, analyzer, &accesses, block, buffer);
}

// True when the nest's first access to the buffer is a block that writes all of its elements.
static bool is_complete_writer(Schedule *schedule, const Path *path, int top, Buffer *buffer) {
  StmtArray blocks = {0};
  blocks_at(&schedule->context->arena, path->items[top], &blocks);
  for (int i = 0; i < blocks.count; i++) {
    const Block *block = blocks.items[i]->as.block;
    bool reads = block_touches(block, buffer, false), writes = block_touches(block, buffer, true);
    if (!reads && !writes) continue;
    if (block_is_reduction(block) && (reads || !block->init)) return false;
    Path at;
    path_to_block(schedule, block->name, &at);
    StmtArray inner = {0};
    blocks_at(&schedule->context->arena, block->body, &inner);
    bool own = !reads && !inner.count;
    if (!own && !block_reads_own_writes(schedule, &at, buffer)) return false;
    return writes_all(schedule, &at, top, block, buffer);
  }
  return false;
}

// Takes the part of a box that is in the buffer, as far as each end is proved to be outside.
static void clip_to_buffer(Schedule *schedule, Analyzer *analyzer, const Buffer *buffer,
                           Region *box) {
  Context *context = schedule->context;
  for (int d = 0; d < buffer->rank; d++) {
    Expr *zero = expr_int(context, box->min[d]->type, 0);
    Expr *end = expr_add(context, box->min[d], expr_cast(context, zero->type, box->extent[d]));
    Expr *last = expr_cast(context, zero->type, buffer->shape[d]);
    bool before = analyzer_prove(analyzer, expr_lt(context, box->min[d], zero));
    bool beyond = analyzer_prove(analyzer, expr_binary(context, EXPR_LE, last, end));
    bool outside = analyzer_prove(analyzer, expr_binary(context, EXPR_LE, end, zero)) ||
                   analyzer_prove(analyzer, expr_binary(context, EXPR_LE, last, box->min[d]));
    if ((!before && !beyond) || outside) continue; // no point that runs is outside
    if (before) box->min[d] = zero;
    box->extent[d] =
        analyzer_simplify(analyzer, expr_sub(context, beyond ? last : end, box->min[d]));
  }
}

// True when the block at the end of the path always runs below items[top], and does not need what
// the buffer held before: where it is no reduction, or one that runs over its whole domain from its
// init on.
static bool starts_anew(Schedule *schedule, const Path *path, int top, const Buffer *buffer) {
  const Block *block = path_end(path)->as.block;
  for (int i = top; i < path->count - 1; i++)
    if (path->items[i]->kind != STMT_FOR && path->items[i]->kind != STMT_SEQ) return false;
  Analyzer *analyzer = path_analyzer(schedule, path, path->count - 1);
  if (block_touches(block, buffer, false))
    return !block_is_reduction(block) && block_reads_own_writes(schedule, path, buffer);
  return !block_is_reduction(block) || (block->init && expr_is_true(block->predicate) &&
                                        !path_bindings_check(schedule, path, analyzer, block));
}

static bool touches_any(const Block *block, const Buffer *buffer) {
  return block_touches(block, buffer, false) || block_touches(block, buffer, true);
}

static bool is_only_user(Schedule *schedule, const Caching *c) {
  StmtArray blocks = {0};
  blocks_at(&schedule->context->arena, c->path.items[c->top], &blocks);
  for (int i = 0; i < blocks.count; i++) {
    const Block *other = blocks.items[i]->as.block;
    if (other != c->at->as.block && touches_any(other, c->buffer)) return false;
  }
  return true;
}

// Finds the box of the buffer that the nest writes, where one block alone uses the buffer there and
// writes each element of the box.
static bool is_box_writer(Schedule *schedule, const Caching *c, Analyzer *analyzer, Region *box) {
  AccessArray accesses = {0};
  stmt_accesses_below(schedule, analyzer, c->path.items[c->top], &accesses);
  if (stmt_has_loose_stores(c->path.items[c->top]) ||
      !starts_anew(schedule, &c->path, c->top, c->buffer) ||
      accesses_written(schedule, analyzer, &accesses, c->buffer, box) != WRITTEN_BOX)
    return false;
  Expr *guard = accesses_guard(schedule->context, analyzer, &accesses, box);
  if (!guard || !expr_is_true(guard)) return false;
  clip_to_buffer(schedule, analyzer, c->buffer, box);
  return true;
}

// True when the blocks below items[c->top] that use the buffer only write it, and do not need what
// it held before.
static bool all_users_write(Schedule *schedule, const Caching *c) {
  StmtArray blocks = {0};
  blocks_at(&schedule->context->arena, c->path.items[c->top], &blocks);
  for (int i = 0; i < blocks.count; i++) {
    const Block *block = blocks.items[i]->as.block;
    Path path;
    if (!touches_any(block, c->buffer)) continue;
    path_to_block(schedule, block->name, &path);
    if (block_touches(block, c->buffer, false) ||
        !starts_anew(schedule, &path, c->top, c->buffer) || !writes_padding(block, c->buffer))
      return false;
  }
  return !stmt_has_loose_stores(c->path.items[c->top]);
}

// Finds the box of the buffer that several blocks write below items[c->top], each a part of it.
static bool is_box_of_writers(Schedule *schedule, const Caching *c, Region *box) {
  AccessArray accesses = {0};
  if (!all_users_write(schedule, c)) return false;
  Analyzer *analyzer = path_analyzer(schedule, &c->path, c->top);
  stmt_accesses_below(schedule, analyzer, c->path.items[c->top], &accesses);
  if (accesses_written(schedule, analyzer, &accesses, c->buffer, box) == WRITTEN_NOTHING)
    return false;
  clip_to_buffer(schedule, analyzer, c->buffer, box);
  return stmt_fills_region(schedule->context, analyzer, c->path.items[c->top], box);
}

// Refuses a reader that runs before the nest that writes the copy.
static bool readers_follow(Schedule *schedule, const Caching *c) {
  for (int i = 0; i < c->readers.count; i++) {
    const Path *reader = &c->readers.items[i];
    bool inside = reader->count > c->top && reader->items[c->top] == c->path.items[c->top];
    if (!inside && !path_precedes(&c->path, reader))
      return schedule_refuse(
          schedule, path_end(reader)->pos, "block '%s' reads '%s' before block '%s' writes it",
          path_end(reader)->as.block->name, c->buffer->name, c->at->as.block->name);
  }
  return true;
}

static bool is_reader(const Caching *c, const Stmt *block) {
  for (int i = 0; i < c->readers.count; i++)
    if (path_end(&c->readers.items[i]) == block) return true;
  return false;
}

// True when a reader of the copy is in the nest, so that the copy is made of it as a whole.
static bool is_read_in_nest(const Caching *c) {
  for (int i = 0; i < c->readers.count; i++) {
    const Path *reader = &c->readers.items[i];
    if (reader->count > c->top && reader->items[c->top] == c->path.items[c->top]) return true;
  }
  return false;
}

// Finds the elements that the copy is made of, and sets c->top to the statement after which it is
// made: the outermost one in the nest below which no other block uses the buffer, or else the nest.
static bool find_written(Schedule *schedule, Caching *c, Region *box) {
  Context *context = schedule->context;
  Buffer *buffer = c->buffer;
  const char *who;
  int nest = c->top;
  bool complete = is_complete_writer(schedule, &c->path, nest, buffer);
  bool whole = complete && (is_only_user(schedule, c) || is_read_in_nest(c));
  for (; !whole && (complete || !c->readers.count) && c->top < c->path.count; c->top++) {
    const Stmt *s = c->path.items[c->top];
    if (is_only_user(schedule, c)) {
      if (is_box_writer(schedule, c, path_analyzer(schedule, &c->path, c->top), box) &&
          !touched_outside(schedule, &c->path, c->top, buffer, true, &who))
        return true;
      break;
    }
    if (!complete && is_box_of_writers(schedule, c, box) &&
        !touched_outside(schedule, &c->path, c->top, buffer, true, &who))
      return true;
    if (s->kind != STMT_SEQ && (s->kind != STMT_FOR || s->as.loop.kind != LOOP_SERIAL)) break;
  }
  c->top = nest;
  Expr **zero = arena_array(&context->arena, Expr *, buffer->rank);
  for (int d = 0; d < buffer->rank; d++) zero[d] = expr_index(context, 0);
  *box = (Region){buffer, zero, buffer->shape};
  return complete;
}

// The last of the readers in nests after the step's, where only readers use the buffer up to it:
// the copy is made after it. NULL: there is none.
static const Path *last_reader(Schedule *schedule, const Caching *c) {
  const Stmt *parent = c->path.items[c->top - 1];
  const Path *last = NULL;
  for (int i = 0; i < c->readers.count && parent->kind == STMT_SEQ; i++) {
    const Path *reader = &c->readers.items[i];
    bool beside = reader->count > c->top && reader->items[c->top - 1] == parent;
    if (beside && reader->child[c->top - 1] > (last ? last : &c->path)->child[c->top - 1])
      last = reader;
  }
  for (int i = c->path.child[c->top - 1] + 1; last && i <= last->child[c->top - 1]; i++) {
    Stmt *s = parent->as.seq.items[i];
    StmtArray blocks = {0};
    blocks_at(&schedule->context->arena, s, &blocks);
    if (stmt_has_loose_stores(s)) return NULL;
    for (int k = 0; k < blocks.count; k++)
      if (touches_any(blocks.items[k]->as.block, c->buffer) && !is_reader(c, blocks.items[k]))
        return NULL;
  }
  return last;
}

// Does the loop choose which elements of the buffer the block writes?
static bool chooses_element(const Block *block, const Buffer *buffer, const Expr *loop) {
  for (int i = 0; i < block->var_count; i++)
    for (int k = 0; k < block->write_count; k++)
      for (int d = 0; d < buffer->rank && block->writes[k].buffer == buffer; d++)
        if (expr_uses(block->vars[i].binding, loop) &&
            expr_uses(block->writes[k].min[d], block->vars[i].var))
          return true;
  return false;
}

// True when the block may write nothing because this loop around it has no iterations. The init of
// a reduction is also stored where that has no elements. A loop of unknown length that chooses
// elements of the buffer has none only where there are none.
static bool may_leave_out(Analyzer *analyzer, Context *context, const Block *block,
                          const Buffer *buffer, const Stmt *loop) {
  const Expr *var = loop->as.loop.var;
  Expr *extent = loop->as.loop.extent;
  bool spatial = chooses_element(block, buffer, var);
  if (loop_const_extent(loop) > 0 || (spatial && loop_const_extent(loop) < 0)) return false;
  if (!spatial && block_binds(block, var, true) && block->init) return false;
  return !analyzer_prove(analyzer, expr_lt(context, expr_int(context, extent->type, 0), extent));
}

// The loop around the block because of which it may write nothing of a buffer that has elements;
// NULL where there is none.
static const Stmt *empty_loop(Schedule *schedule, const Path *path, const Buffer *buffer) {
  for (int d = 0; d < buffer->rank; d++)
    if (expr_is_int(buffer->shape[d], 0)) return NULL;
  for (int i = 0; i < path->count; i++)
    if (path->items[i]->kind == STMT_FOR &&
        may_leave_out(path_analyzer(schedule, path, i), schedule->context, path_end(path)->as.block,
                      buffer, path->items[i]))
      return path->items[i];
  return NULL;
}

static bool refuse_empty(Schedule *schedule, const Caching *c, const Stmt *loop) {
  const char *format =
      loop_const_extent(loop) < 0
          ? "block '%s' may write nothing of '%s', since loop '%s' is not proved to "
            "have iterations"
          : "block '%s' writes nothing of '%s', since loop '%s' has no iterations";
  return schedule_refuse(schedule, c->at->pos, format, c->at->as.block->name, c->buffer->name,
                         loop_name(loop));
}

bool step_cache_write(Schedule *schedule, StepCall *call) {
  Caching c = {0};
  const char *who;
  Region box;
  if (!caching_begin(schedule, call, true, &c) || !readers_follow(schedule, &c)) return false;
  Buffer *buffer = c.buffer;
  const Stmt *empty = empty_loop(schedule, &c.path, buffer);
  if (empty) return refuse_empty(schedule, &c, empty);
  if (touched_outside(schedule, &c.path, c.top, buffer, true, &who))
    return schedule_refuse(schedule, c.at->pos,
                           "'%s' is also written by block '%s' in another nest", buffer->name, who);
  if (!find_written(schedule, &c, &box))
    return schedule_refuse(
        schedule, c.at->pos,
        "the nest of block '%s' is not proved to write all of '%s', and the copy would "
        "overwrite the other elements",
        c.at->as.block->name, buffer->name);
  Analyzer *analyzer = path_analyzer(schedule, &c.path, c.top);
  Buffer *local = cached_buffer(schedule, buffer, c.scope);
  Buffer *part = part_of_copy(schedule, &c, local, &box);
  Stmt *kept = with_copy(schedule, c.path.items[c.top], &c, local);
  Str name = schedule_unique_name(schedule, local->name);
  CopiedBox copied = {name, buffer, part ? part : local, buffer, part, &box};
  Stmt *nest = copy_nest(schedule, &copied, NULL, analyzer);
  const Path *last = last_reader(schedule, &c);
  Path at = c.path;
  schedule_set_body(schedule, path_replace(schedule->context, &c.path, c.top, kept));
  redirect_readers(schedule, &c, &c.readers, local);
  path_to_block(schedule, path_end(last ? last : &c.path)->as.block->name, &at);
  path_place_beside(schedule, &at, c.top, at.items[c.top], nest, true, local);
  if (part) schedule_shift_accesses(schedule, local, part, box.min);
  step_result(schedule, call, value_block(name));
  return true;
}

// The statements from the first of the readers to the last at a depth of the path, which is that of
// the first reader: one statement that holds all of them, or items of one sequence. False when
// there are none.
static bool readers_at(const Caching *c, int depth, Stmt *const **first, int *count) {
  const Stmt *parent = c->path.items[depth - 1];
  bool together = true;
  int from = c->path.child[depth - 1], to = from;
  for (int i = 0; i < c->readers.count; i++) {
    const Path *reader = &c->readers.items[i];
    if (reader->count <= depth || reader->items[depth - 1] != parent) return false;
    together &= reader->items[depth] == c->path.items[depth];
    to = MAX_OF(to, reader->child[depth - 1]);
  }
  if (!together && parent->kind != STMT_SEQ) return false;
  *first = together ? &c->path.items[depth] : &parent->as.seq.items[from];
  *count = together ? 1 : to - from + 1;
  return true;
}

static const Block *writer_of(const AccessArray *accesses, const Buffer *buffer) {
  for (int i = 0; i < accesses->count; i++)
    if (accesses->items[i].write && buffers_alias(accesses->items[i].buffer, buffer))
      return accesses->items[i].block;
  return NULL;
}

// Why there is no place for the copy: the writer beside the readers, or a loop of other iterations.
typedef struct NoPlace {
  const Block *writer;
  const char *kind;
} NoPlace;

// Sets c->top to the outermost depth from which on no statement writes the buffer between the first
// of the readers and the last, and stores the accesses there.
static bool find_place(Schedule *schedule, Caching *c, AccessArray *accesses, NoPlace *why) {
  Stmt *const *first;
  *why = (NoPlace){NULL, ""};
  for (c->top = path_nest_top(&c->path, c->path.count - 1); c->top < c->path.count; c->top++) {
    int count;
    *accesses = (AccessArray){0};
    if (!readers_at(c, c->top, &first, &count)) return false;
    Analyzer *analyzer = path_analyzer(schedule, &c->path, c->top);
    Stmt *whole = stmt_seq(schedule->context, first, count);
    for (int i = 0; i < count; i++)
      stmt_accesses_within(schedule, analyzer, first[i], whole, accesses);
    why->writer = writer_of(accesses, c->buffer);
    if (!why->writer) return true;
    const Stmt *at = c->path.items[c->top];
    if (at->kind != STMT_FOR || at->as.loop.kind == LOOP_SERIAL) continue;
    why->kind = ", and loop iterations there do not run in order";
    return false;
  }
  return false;
}

// Sets the readers aside that are in other nests than the first one. False when there are none.
static bool put_off_readers(Schedule *schedule, Caching *c) {
  Caching near = *c;
  int top = path_nest_top(&c->path, c->path.count - 1);
  near.readers.items = NULL;
  near.readers.count = near.readers.capacity = 0;
  for (int i = 0; i < c->readers.count; i++) {
    const Path *reader = &c->readers.items[i];
    bool inside = reader->count > top && reader->items[top] == c->path.items[top];
    if (inside)
      array_push(&schedule->context->arena, &near.readers, *reader);
    else
      array_push(&schedule->context->arena, &near.late, *reader);
  }
  *c = near;
  return near.late.count > 0;
}

// Finds the place of the copy, and the accesses of the readers there. False after a refusal.
static bool choose_place(Schedule *schedule, Caching *c, AccessArray *accesses) {
  NoPlace why, inside;
  if (find_place(schedule, c, accesses, &why)) return true;
  if (put_off_readers(schedule, c) && find_place(schedule, c, accesses, &inside)) return true;
  if (!why.writer)
    return schedule_refuse(schedule, c->at->pos, "the consumers are not in one sequence of nests");
  return schedule_refuse(schedule, c->at->pos, "block '%s' writes '%s' in the same nest%s",
                         why.writer->name, c->buffer->name, why.kind);
}

// The box of the buffer that the readers read; one of its ends may exceed the buffer where a block
// has a condition. False after a refusal.
static bool region_read(Schedule *schedule, Caching *c, Region *read) {
  AccessArray accesses = {0};
  if (!choose_place(schedule, c, &accesses)) return false;
  Analyzer *analyzer = path_analyzer(schedule, &c->path, c->top);
  for (int i = 0; i < c->readers.count; i++) {
    Region more;
    if (!accesses_union(schedule->context, analyzer, &accesses,
                        path_end(&c->readers.items[i])->as.block, c->buffer, &more))
      return schedule_refuse(schedule, c->at->pos, "'%s' is not read", c->buffer->name);
    *read = i ? region_union(analyzer, read, &more) : more;
  }
  clip_to_buffer(schedule, analyzer, c->buffer, read);
  return true;
}

// True when an iteration of the loops around the copy writes what it copies, before it does, and no
// other iteration writes it: then the copy is still right after these loops. items[nest] of the
// copy's path is the outermost of them.
static bool copies_final_values(Schedule *schedule, const Caching *c, const Path *copy, int nest) {
  Path loop = *copy;
  Region written, copied;
  AccessArray accesses = {0};
  while (loop.count > nest && path_end(&loop)->kind != STMT_SEQ) loop.count--;
  int top = loop.count; // of the statements that write, copy and read
  while (loop.count > nest && path_end(&loop)->kind != STMT_FOR) loop.count--;
  if (loop.count <= nest) return false;
  for (int i = nest; i < top; i++)
    if (copy->items[i]->kind != STMT_SEQ && !loop_is_plain(copy->items[i])) return false;
  Analyzer *analyzer = path_analyzer(schedule, &loop, loop.count);
  stmt_accesses_below(schedule, analyzer, path_end(&loop)->as.loop.body, &accesses);
  for (int i = 0; i < accesses.count; i++) {
    const Access *a = &accesses.items[i];
    Path writer;
    if (!a->write || !buffers_alias(a->buffer, c->buffer)) continue;
    path_to_block(schedule, a->block->name, &writer);
    if (!path_precedes(&writer, copy)) return false;
  }
  return accesses_union(schedule->context, analyzer, &accesses, path_end(copy)->as.block, c->buffer,
                        &copied) &&
         accesses_written(schedule, analyzer, &accesses, c->buffer, &written) == WRITTEN_BOX &&
         region_covers(analyzer, &written, &copied) &&
         path_writes_tell_iterations(schedule, &loop, nest, c->buffer);
}

// True when the reader, which runs after the nest that makes the copy, finds all that it reads.
static bool finds_copy(Schedule *schedule, const Caching *c, const Path *copy, const Path *reader,
                       Buffer *local) {
  int nest = 0;
  while (nest < copy->count && nest < reader->count && copy->items[nest] == reader->items[nest])
    nest++;
  if (nest >= copy->count || nest >= reader->count || !path_precedes(copy, reader)) return false;
  StmtArray blocks = {0};
  blocks_innermost(&schedule->context->arena, schedule->func->body, &blocks);
  for (int i = 0; i < blocks.count; i++) {
    const Block *block = blocks.items[i]->as.block;
    Path other;
    if (!block_touches(block, c->buffer, true)) continue;
    path_to_block(schedule, block->name, &other);
    if (other.count <= nest || other.items[nest] != copy->items[nest]) return false;
  }
  AccessArray made = {0}, used = {0};
  Region box, read;
  Analyzer *analyzer = path_analyzer(schedule, copy, nest);
  Stmt *body = schedule->func->body;
  stmt_accesses_within(schedule, analyzer, copy->items[nest], body, &made);
  stmt_accesses_within(schedule, analyzer, reader->items[nest], body, &used);
  return accesses_written(schedule, analyzer, &made, local, &box) == WRITTEN_BOX &&
         accesses_union(schedule->context, analyzer, &used, path_end(reader)->as.block, local,
                        &read) &&
         region_covers(analyzer, &box, &read) && copies_final_values(schedule, c, copy, nest);
}

// Lets the blocks after the nest read the copy too, or refuses.
static bool redirect_late(Schedule *schedule, Caching *c, Buffer *local, Str copy) {
  Path path;
  redirect_readers(schedule, c, &c->late, local);
  path_to_block(schedule, copy, &path);
  for (int i = 0; i < c->late.count; i++) {
    Path reader;
    Str name = path_end(&c->late.items[i])->as.block->name;
    path_to_block(schedule, name, &reader);
    if (!finds_copy(schedule, c, &path, &reader, local))
      return schedule_refuse(schedule, c->at->pos,
                             "block '%s' is not proved to find all that it reads of '%s' in the "
                             "copy, which iterations of another nest make",
                             name, c->buffer->name);
  }
  return true;
}

// The blocks beside the step's block that read the buffer and leave it as it is, but those that
// state its padding.
static void find_all_readers(Schedule *schedule, Caching *c) {
  Arena *arena = &schedule->context->arena;
  StmtArray blocks = {0};
  blocks_below(arena, c->path.items[path_scope(&c->path, c->path.count - 1)], &blocks);
  for (int i = 0; i < blocks.count; i++) {
    const Block *block = blocks.items[i]->as.block;
    bool reads = block_touches(block, c->buffer, false) && !block_touches(block, c->buffer, true) &&
                 !stmt_is_assumption(block->body);
    Path path;
    if (block == c->at->as.block)
      array_push(arena, &c->readers, c->path);
    else if (reads && path_to_block(schedule, block->name, &path))
      array_push(arena, &c->readers, path);
  }
}

static bool cache_for_readers(Schedule *schedule, StepCall *call, Caching c) {
  Region read;
  for (int i = 0; i < c.readers.count; i++)
    if (!i || path_precedes(&c.readers.items[i], &c.path)) c.path = c.readers.items[i];
  if (!region_read(schedule, &c, &read)) return false;
  Analyzer *analyzer = path_analyzer(schedule, &c.path, c.top);
  Buffer *local = cached_buffer(schedule, c.buffer, c.scope);
  Buffer *part = part_of_copy(schedule, &c, local, &read);
  Str name = schedule_unique_name(schedule, local->name), first = path_end(&c.path)->as.block->name;
  CopiedBox copied = {name, part ? part : local, c.buffer, c.buffer, part, &read};
  Stmt *nest = copy_nest(schedule, &copied, NULL, analyzer);
  redirect_readers(schedule, &c, &c.readers, local);
  path_to_block(schedule, first, &c.path);
  path_place_beside(schedule, &c.path, c.top, c.path.items[c.top], nest, false, local);
  if (part) schedule_shift_accesses(schedule, local, part, read.min);
  if (!redirect_late(schedule, &c, local, name)) return false;
  step_result(schedule, call, value_block(name));
  return true;
}

bool step_cache_read(Schedule *schedule, StepCall *call) {
  Caching c = {0};
  if (!caching_begin(schedule, call, false, &c)) return false;
  if (c.readers.count) return cache_for_readers(schedule, call, c);
  Caching all = c;
  PrimFunc *before = schedule->func;
  bool quiet = schedule->quiet;
  find_all_readers(schedule, &all);
  schedule->quiet |= all.readers.count > 1;
  bool made = cache_for_readers(schedule, call, all);
  schedule->quiet = quiet;
  if (made || all.readers.count <= 1) return made;
  schedule->func = before;
  array_push(&schedule->context->arena, &c.readers, c.path);
  return cache_for_readers(schedule, call, c);
}

// ---- cache_inplace ---------------------------------------------------------------------------

// Refuses a block whose iterations may run at once, or are not known to use a part of the buffer.
static bool check_inplace(Schedule *schedule, const Caching *c) {
  const Stmt *at = c->at;
  const Block *block = at->as.block;
  if (!block_touches(block, c->buffer, true))
    return schedule_refuse(schedule, at->pos, "block '%s' does not write '%s'; use cache_read",
                           block->name, c->buffer->name);
  if (expr_reads(block->predicate, c->buffer))
    return schedule_refuse(schedule, at->pos, "the T.where of block '%s' reads '%s'", block->name,
                           c->buffer->name);
  for (int i = 0; i < c->path.count; i++) {
    const Stmt *s = c->path.items[i];
    if (s->kind != STMT_FOR || s->as.loop.kind == LOOP_SERIAL || s->as.loop.kind == LOOP_UNROLLED)
      continue;
    return schedule_refuse(schedule, at->pos,
                           "iterations of loop '%s' would share the copy of '%s'; do this step "
                           "before the loop is made parallel, vectorized or bound",
                           loop_name(s), c->buffer->name);
  }
  return true;
}

// The boxes that the block reads and writes, over the loops around it. All elements of the second
// are written, or are in the first.
static bool boxes_inplace(Schedule *schedule, Caching *c, Analyzer *analyzer, Region *read,
                          Region *written) {
  AccessArray accesses = {0};
  stmt_accesses_below(schedule, analyzer, c->at, &accesses);
  Written kind = accesses_written(schedule, analyzer, &accesses, c->buffer, written);
  bool any = false;
  for (int i = 0; i < accesses.count; i++) {
    const Access *a = &accesses.items[i];
    if (a->write || a->buffer != c->buffer) continue;
    Region more = {a->buffer, a->min, a->extent};
    *read = any ? region_union(analyzer, read, &more) : more;
    any = true;
  }
  if (!any || kind == WRITTEN_NOTHING)
    return schedule_refuse(schedule, c->at->pos, "what block '%s' accesses of '%s' is not known",
                           c->at->as.block->name, c->buffer->name);
  if (kind != WRITTEN_BOX) *read = region_union(analyzer, read, written);
  clip_to_buffer(schedule, analyzer, c->buffer, read);
  clip_to_buffer(schedule, analyzer, c->buffer, written);
  return true;
}

bool step_cache_inplace(Schedule *schedule, StepCall *call) {
  Context *context = schedule->context;
  Caching c = {0};
  Region read, written;
  if (!caching_begin(schedule, call, false, &c) || !check_inplace(schedule, &c)) return false;
  int depth = c.path.count - 1;
  Analyzer *analyzer = path_analyzer(schedule, &c.path, depth);
  if (!boxes_inplace(schedule, &c, analyzer, &read, &written)) return false;
  const Block *block = c.at->as.block;
  Buffer *local = cached_buffer(schedule, c.buffer, c.scope);
  Str in = schedule_unique_name(schedule, local->name);
  CopiedBox to_local = {in, local, c.buffer, c.buffer, NULL, &read};
  Stmt *first = copy_nest(schedule, &to_local, block->predicate, analyzer);
  path_place_beside(schedule, &c.path, depth, with_copy(schedule, c.at, &c, local), first, false,
                    local);
  Str out = schedule_unique_name(schedule, local->name);
  CopiedBox from_local = {out, c.buffer, local, c.buffer, NULL, &written};
  Stmt *last = copy_nest(schedule, &from_local, block->predicate, analyzer);
  path_to_block(schedule, block->name, &c.path);
  path_replace_flat(schedule, &c.path, c.path.count - 1,
                    stmt_seq(context, (Stmt *[]){path_end(&c.path), last}, 2));
  step_result(schedule, call, value_block(in));
  step_result(schedule, call, value_block(out));
  return true;
}
