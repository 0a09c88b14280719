// SPDX-License-Identifier: Apache-2.0
// Implements steps that change what a block or its buffers state, but no loop: the order of the
// block's variables, the element type of a buffer, alignment of its axes, and the regions that the
// block states.
#include "schedule/aliases.h"
#include "schedule/internal.h"

// ---- reorder_block_iter_var ------------------------------------------------------------------

bool step_reorder_block_iter_var(Schedule *schedule, StepCall *call) {
  Context *context = schedule->context;
  Path path;
  if (!schedule_find_block(schedule, call->args[0].as.block, &path)) return false;
  const Block *block = path_end(&path)->as.block;
  const StepValue *order = &call->args[1];
  int count = block->var_count;
  Block *copy = block_copy(context, block);
  copy->vars = arena_array(&context->arena, BlockVar, count);
  bool *taken = arena_array(&context->arena, bool, count);
  bool formed = order->as.list.count == count;
  for (int i = 0; i < count && formed; i++) {
    const StepValue *item = &order->as.list.items[i];
    formed = item->kind == VALUE_INT && item->as.i >= 0 && item->as.i < count && !taken[item->as.i];
    if (!formed) break;
    taken[item->as.i] = true;
    copy->vars[i] = block->vars[item->as.i];
  }
  if (!formed)
    return schedule_refuse(
        schedule, path_end(&path)->pos,
        "new_order has each of the numbers 0 to %d of the variables of block '%s' "
        "once",
        count - 1, block->name);
  path_replace_block(schedule, &path, copy);
  return true;
}

// ---- Allocated buffers -----------------------------------------------------------------------

// The buffer that the block writes, when the function allocates it. NULL after a refusal.
static Buffer *allocated_buffer(Schedule *schedule, const Stmt *at, int64_t index) {
  Buffer *buffer = schedule_buffer_of(schedule, at, true, index);
  if (!buffer || !buffer_is_parameter(schedule, buffer)) return buffer;
  schedule_refuse(schedule, at->pos,
                  "'%s' is a parameter, whose memory is the caller's; use cache_write",
                  buffer->name);
  return NULL;
}

// The same when no alias or other use of its memory depends on its description.
static Buffer *own_buffer(Schedule *schedule, const Stmt *at, int64_t index) {
  Buffer *buffer = allocated_buffer(schedule, at, index);
  const char *why;
  if (!buffer || !storage_is_opaque(schedule, buffer, &why)) return buffer;
  schedule_refuse(schedule, at->pos, "the memory of '%s' cannot change: %s", buffer->name, why);
  return NULL;
}

static StepValue align_item(Context *context, const int64_t *numbers) {
  StepValue item = value_list(context, 4);
  for (int i = 0; i < 4; i++) item.as.list.items[i] = value_int(numbers[i]);
  return item;
}

static bool same_axis(const Expr *item, const int64_t *numbers) {
  return item->op == EXPR_TUPLE && item->count == 4 && expr_is_int(item->args[0], numbers[0]) &&
         expr_is_int(item->args[1], numbers[1]);
}

// The value of the annotation "buffer_dim_align": the block's other items, and this one.
static Expr *align_items(Context *context, const Block *block, const int64_t *numbers) {
  const Expr *old = attrs_get(&block->annotations, "buffer_dim_align");
  int count = old && old->op == EXPR_TUPLE ? old->count : 0, at = 0;
  Expr **items = arena_array(&context->arena, Expr *, count + 1);
  for (; at < count && !same_axis(old->args[at], numbers); at++) items[at] = old->args[at];
  StepValue item = align_item(context, numbers);
  items[at] = step_value_expr(context, &item);
  for (int i = at + 1; i < count; i++) items[i] = old->args[i];
  return expr_tuple(context, items, MAX_OF(count, at + 1));
}

bool step_storage_align(Schedule *schedule, StepCall *call) {
  Context *context = schedule->context;
  Path path;
  int64_t numbers[4];
  if (!schedule_find_block(schedule, call->args[0].as.block, &path)) return false;
  const Stmt *at = path_end(&path);
  for (int i = 0; i < 4; i++) numbers[i] = call->args[i + 1].as.i;
  const Buffer *buffer = own_buffer(schedule, at, numbers[0]);
  if (!buffer) return false;
  if (numbers[1] < -buffer->rank || numbers[1] >= buffer->rank)
    return schedule_refuse(schedule, at->pos, "'%s' has the axes 0 to %d; there is no axis %lld",
                           buffer->name, buffer->rank - 1, (long long)numbers[1]);
  if (numbers[1] < 0) numbers[1] += buffer->rank;
  if (numbers[2] < 1)
    return schedule_refuse(schedule, at->pos, "the factor %lld is not positive",
                           (long long)numbers[2]);
  Block *copy = block_copy(context, at->as.block);
  copy->annotations =
      attrs_with(&context->arena, copy->annotations, str_intern(context, "buffer_dim_align"),
                 align_items(context, copy, numbers));
  path_replace_block(schedule, &path, copy);
  return true;
}

// ---- unsafe_set_dtype ------------------------------------------------------------------------

typedef struct Retype {
  Context *context;
  DType type;
  Map buffers; // old to new: the buffer and its views
  Map added;   // the new ones
  Map data;    // data variables, old to new
} Retype;

static Buffer *retype_buffer(Rewriter *rewriter, Buffer *b) {
  const Retype *retype = rewriter->env;
  Buffer *to = map_find(&retype->buffers, b);
  return to ? to : rewrite_buffer(rewriter, b);
}

static Expr *retype_load(Rewriter *rewriter, Expr *e) {
  const Retype *retype = rewriter->env;
  const Buffer *old = e->op == EXPR_LOAD ? map_find(&retype->added, e->as.buffer) : NULL;
  return old ? expr_cast(rewriter->context, old->type, e) : e;
}

static Stmt *retype_store(Rewriter *rewriter, Stmt *s) {
  const Retype *retype = rewriter->env;
  if (s->kind != STMT_STORE || !map_find(&retype->added, s->as.store.buffer)) return s;
  return store_with_value(rewriter->context, s,
                          expr_cast(rewriter->context, retype->type, s->as.store.value));
}

static void add_retyped(Retype *retype, Buffer *old) {
  Buffer *copy = buffer_copy(retype->context, old);
  copy->type = retype->type;
  Expr *data = map_find(&retype->data, old->data); // that of a view may be the buffer's
  copy->data =
      data ? data
           : expr_data_var(retype->context, old->data->as.var->name, retype->type, old->scope);
  map_put(&retype->data, old->data, copy->data);
  map_put(&retype->buffers, old, copy);
  map_put(&retype->added, copy, old);
}

// Adds the views of the buffers, also those of views. Outer blocks come first.
static bool see_views(Visitor *visitor, Stmt *s) {
  Retype *retype = visitor->env;
  for (int i = 0; s->kind == STMT_BLOCK && i < s->as.block->match_count; i++)
    if (map_contains(&retype->buffers, s->as.block->matches[i].source.buffer))
      add_retyped(retype, s->as.block->matches[i].buffer);
  return true;
}

// True when the memory has no other use than accesses to the buffer and to views of its elements.
static bool only_accessed(Schedule *schedule, const Retype *retype, DType type, const char **why) {
  for (int i = 0; i < retype->buffers.count; i++) {
    const Buffer *old = (const Buffer *)(uintptr_t)retype->buffers.entries[i].key;
    Aliases aliases = aliases_find(schedule->context, schedule->func, old);
    bool known = dtype_equal(old->type, type) && !aliases.pointers && !aliases.addresses;
    for (int k = 0; k < aliases.found.count; k++)
      known &= map_contains(&retype->buffers, aliases.found.items[k]);
    if (known) continue;
    *why = aliases.opaque ? aliases.opaque : "other buffers share it";
    return false;
  }
  return true;
}

bool step_unsafe_set_dtype(Schedule *schedule, StepCall *call) {
  Context *context = schedule->context;
  Path path;
  DType type;
  const char *why;
  if (!schedule_find_block(schedule, call->args[0].as.block, &path)) return false;
  const Stmt *at = path_end(&path);
  Buffer *buffer = allocated_buffer(schedule, at, call->args[1].as.i);
  if (!buffer) return false;
  Str name = call->args[2].as.s;
  if (!dtype_parse(name, strlen(name), &type) || !dtype_bytes(type) ||
      type.lanes != buffer->type.lanes || type.code == TYPE_HANDLE || type.code == TYPE_VOID)
    return schedule_refuse(schedule, at->pos, "'%s' is not a type of the elements of '%s'", name,
                           buffer->name);
  if (dtype_equal(type, buffer->type)) return true;
  Retype retype = {context, type, map_new(&context->arena), map_new(&context->arena),
                   map_new(&context->arena)};
  add_retyped(&retype, buffer);
  visit_stmt(&(Visitor){.env = &retype, .enter_stmt = see_views}, schedule->func->body);
  if (!only_accessed(schedule, &retype, buffer->type, &why))
    return schedule_refuse(schedule, at->pos, "the memory of '%s' cannot change: %s", buffer->name,
                           why);
  Rewriter rewriter = {.context = context,
                       .env = &retype,
                       .buffer = retype_buffer,
                       .expr = retype_load,
                       .stmt = retype_store};
  schedule_set_body(schedule, rewrite_stmt(&rewriter, schedule->func->body));
  return true;
}

// ---- annotate_buffer_access ------------------------------------------------------------------

// The region that the outputs of the map, begin and end of each axis in turn, state. False when the
// map does not fit the buffer. The analyzer has the facts of the block's domain.
static bool stated_region(Schedule *schedule, Analyzer *analyzer, const Block *block,
                          Buffer *buffer, const IndexMap *map, Region *out) {
  Context *context = schedule->context;
  if (map->input_count != block->var_count || map->output_count != 2 * buffer->rank) return false;
  Expr **vars = arena_array(&context->arena, Expr *, block->var_count + 1);
  Expr **ends = arena_array(&context->arena, Expr *, map->output_count + 1);
  for (int i = 0; i < block->var_count; i++) vars[i] = block->vars[i].var;
  Map symbols = schedule_size_symbols(schedule);
  if (!index_map_apply_exprs(context, map, vars, &symbols, ends)) return false;
  *out = (Region){buffer, arena_array(&context->arena, Expr *, buffer->rank),
                  arena_array(&context->arena, Expr *, buffer->rank)};
  for (int i = 0; i < buffer->rank; i++) {
    out->min[i] = analyzer_simplify(analyzer, ends[2 * i]);
    out->extent[i] = analyzer_simplify(analyzer, expr_sub(context, ends[2 * i + 1], ends[2 * i]));
  }
  return true;
}

typedef struct InRegion {
  Context *context;
  const Block *block;
  Analyzer *analyzer; // has the facts of the block's domain
  const Region *region;
  bool all;
} InRegion;

static void check_in_region(void *env, Buffer *buffer, Expr *const *indices) {
  InRegion *in = env;
  if (buffer != in->region->buffer) return;
  for (int d = 0; d < buffer->rank && in->all; d++) {
    Expr *begin = in->region->min[d];
    Expr *end = expr_add(in->context, begin, in->region->extent[d]);
    in->all = analyzer_prove_within(in->analyzer, indices[d], begin, end) ||
              block_index_within(in->block, indices[d], begin, end);
  }
}

// True when each access of the block to the buffer is in the region, where no other one is stated
// for inner blocks or views.
static bool accesses_stay_in(Context *context, Analyzer *analyzer, const Stmt *at,
                             const Region *region) {
  InRegion in = {context, at->as.block, analyzer, region, true};
  StmtArray inner = {0};
  blocks_below(&context->arena, (Stmt *)at, &inner);
  if (inner.count || at->as.block->match_count) return false;
  block_visit_accesses(at->as.block, check_in_region, &in);
  return in.all;
}

static Attrs with_explicit_region(Context *context, const Block *block, bool write, int64_t index) {
  const char *key = write ? "explicit_write_region" : "explicit_read_region";
  const Expr *old = attrs_get(&block->annotations, key);
  int count = old && old->op == EXPR_TUPLE ? old->count : 0;
  Expr **items = arena_array(&context->arena, Expr *, count + 1);
  for (int i = 0; i < count; i++) {
    if (expr_is_int(old->args[i], index)) return block->annotations;
    items[i] = old->args[i];
  }
  items[count] = expr_index(context, index);
  return attrs_with(&context->arena, block->annotations, str_intern(context, key),
                    expr_tuple(context, items, count + 1));
}

bool step_annotate_buffer_access(Schedule *schedule, StepCall *call) {
  Context *context = schedule->context;
  Path path;
  Region stated;
  if (!schedule_find_block(schedule, call->args[0].as.block, &path)) return false;
  const Stmt *at = path_end(&path);
  bool write = strcmp(call->args[2].as.s, "write") == 0;
  if (!write && strcmp(call->args[2].as.s, "read") != 0)
    return schedule_refuse(schedule, at->pos, "the buffer's type is \"read\" or \"write\"");
  int64_t index = call->args[1].as.i;
  Buffer *buffer = schedule_buffer_of(schedule, at, write, index);
  if (!buffer) return false;
  Block *copy = block_copy(context, at->as.block);
  Analyzer *analyzer = analyzer_new(context);
  block_bind_domain(analyzer, copy);
  if (!stated_region(schedule, analyzer, copy, buffer, call->args[3].as.map, &stated))
    return schedule_refuse(schedule, at->pos,
                           "the ranges of '%s' take the %d variables of block '%s', and give begin "
                           "and end of each of its %d axes",
                           buffer->name, copy->var_count, copy->name, buffer->rank);
  Region **regions = write ? &copy->writes : &copy->reads;
  int count = write ? copy->write_count : copy->read_count;
  const char *who;
  if (!region_covers(analyzer, &stated, &(*regions)[index]) &&
      (storage_is_opaque(schedule, buffer, &who) ||
       !accesses_stay_in(context, analyzer, at, &stated)))
    return schedule_refuse(schedule, at->pos,
                           "the ranges are not proved to cover what block '%s' %s of '%s'",
                           copy->name, write ? "writes" : "reads", buffer->name);
  *regions = arena_copy(&context->arena, *regions, sizeof **regions * (size_t)count);
  (*regions)[index] = stated;
  copy->annotations = with_explicit_region(context, copy, write, index);
  path_replace_block(schedule, &path, copy);
  return true;
}

// ---- unsafe_hide_buffer_access ---------------------------------------------------------------

typedef struct HiddenAccess {
  const Buffer *buffer;
  bool write, found;
} HiddenAccess;

static bool hidden_in_expr(Visitor *visitor, Expr *e) {
  HiddenAccess *hidden = visitor->env;
  hidden->found |= e == hidden->buffer->data; // a pointer, through which all is accessed
  if (e->op == EXPR_LOAD && !hidden->write)
    hidden->found |= buffers_alias(e->as.buffer, hidden->buffer);
  return !hidden->found;
}

static bool hidden_in_stmt(Visitor *visitor, Stmt *s) {
  HiddenAccess *hidden = visitor->env;
  if (s->kind == STMT_STORE && hidden->write)
    hidden->found |= buffers_alias(s->as.store.buffer, hidden->buffer);
  if (s->kind == STMT_DECL_BUFFER)
    hidden->found |= s->as.declare.buffer->data == hidden->buffer->data;
  for (int i = 0; s->kind == STMT_BLOCK && i < s->as.block->match_count; i++)
    hidden->found |= buffers_alias(s->as.block->matches[i].source.buffer, hidden->buffer);
  return !hidden->found;
}

static bool block_has_access(Stmt *at, const Buffer *buffer, bool write) {
  HiddenAccess hidden = {buffer, write, false};
  const Block *block = at->as.block;
  Visitor visitor = {.env = &hidden, .enter_expr = hidden_in_expr, .enter_stmt = hidden_in_stmt};
  for (int i = 0; i < block->match_count; i++)
    hidden.found |= buffers_alias(block->matches[i].source.buffer, buffer);
  visit_expr(&visitor, block->predicate);
  if (block->init) visit_stmt(&visitor, block->init);
  visit_stmt(&visitor, block->body);
  return hidden.found;
}

// Removes stated regions of buffers that the block does not access.
bool step_unsafe_hide_buffer_access(Schedule *schedule, StepCall *call) {
  Context *context = schedule->context;
  Path path;
  if (!schedule_find_block(schedule, call->args[0].as.block, &path)) return false;
  Stmt *at = path_end(&path);
  bool write = strcmp(call->args[1].as.s, "write") == 0;
  if (!write && strcmp(call->args[1].as.s, "read") != 0)
    return schedule_refuse(schedule, at->pos, "the buffer's type is \"read\" or \"write\"");
  const StepValue *list = &call->args[2];
  Block *copy = block_copy(context, at->as.block);
  Region **regions = write ? &copy->writes : &copy->reads;
  int *count = write ? &copy->write_count : &copy->read_count, kept = 0;
  Region *left = arena_array(&context->arena, Region, *count + 1);
  bool *gone = arena_array(&context->arena, bool, *count + 1);
  for (int i = 0; i < list->as.list.count; i++) {
    const StepValue *item = &list->as.list.items[i];
    if (item->kind != VALUE_INT)
      return schedule_refuse(schedule, at->pos, "the buffers are a list of their numbers");
    const Buffer *buffer = schedule_buffer_of(schedule, at, write, item->as.i);
    if (!buffer) return false;
    if (block_has_access(at, buffer, write))
      return schedule_refuse(schedule, at->pos, "block '%s' %s '%s', which later steps must know",
                             copy->name, write ? "writes" : "reads", buffer->name);
    gone[item->as.i] = true;
  }
  for (int i = 0; i < *count; i++)
    if (!gone[i]) left[kept++] = (*regions)[i];
  *regions = left;
  *count = kept;
  path_replace_block(schedule, &path, copy);
  return true;
}

// ---- enter_postproc --------------------------------------------------------------------------

// A mark in the trace: the steps after it are no choices of a search.
bool step_enter_postproc(Schedule *schedule, StepCall *call) {
  (void)schedule;
  (void)call;
  return true;
}
