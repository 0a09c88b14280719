// SPDX-License-Identifier: Apache-2.0
// Implements transform_layout, which stores a buffer in the layout of an index map (TVM's RFC 39).
// Every access through every alias goes through the map; parameters and allocations get the
// physical shape; and the block that writes the buffer iterates over the physical axes if it
// iterated over the logical ones, and the step says so or fills padding.
//   for c, h: B[c, h] = A[c, h]    by  c, h -> c // 4, h, c % 4   =>
//   for c_0, h, c_1: B[c_0, h, c_1] = A[c_0*4 + c_1, h]   where c_0*4 + c_1 < C
#include "schedule/aliases.h"
#include "schedule/internal.h"

// ---- Buffers of blocks -----------------------------------------------------------------------

static Buffer *buffer_named(const Block *block, Str name) {
  for (int i = 0; i < block->write_count; i++)
    if (strcmp(block->writes[i].buffer->name, name) == 0) return block->writes[i].buffer;
  for (int i = 0; i < block->read_count; i++)
    if (strcmp(block->reads[i].buffer->name, name) == 0) return block->reads[i].buffer;
  return NULL;
}

Buffer *schedule_find_slot(Schedule *schedule, const Stmt *at, const StepValue *slot) {
  const Block *block = at->as.block;
  if (slot->kind == VALUE_STRING) {
    Buffer *buffer = buffer_named(block, slot->as.s);
    if (!buffer)
      schedule_refuse(schedule, at->pos, "block '%s' neither reads nor writes '%s'", block->name,
                      slot->as.s);
    return buffer;
  }
  const StepValue *items = slot->as.list.items;
  bool formed = slot->kind == VALUE_LIST && slot->as.list.count == 2 &&
                items[0].kind == VALUE_STRING && items[1].kind == VALUE_INT;
  bool write = formed && strcmp(items[0].as.s, "write") == 0;
  if (!formed || (!write && strcmp(items[0].as.s, "read") != 0)) {
    schedule_refuse(schedule, at->pos,
                    "the buffer is given as (\"read\", index), (\"write\", index) or by "
                    "its name");
    return NULL;
  }
  int count = write ? block->write_count : block->read_count;
  int64_t index = items[1].as.i;
  if (index >= 0 && index < count)
    return write ? block->writes[index].buffer : block->reads[index].buffer;
  schedule_refuse(schedule, at->pos, "block '%s' has %d %s buffers; there is no number %lld",
                  block->name, count, write ? "written" : "read", (long long)index);
  return NULL;
}

// ---- Aliases ---------------------------------------------------------------------------------

// Finds all aliases, which change together, after those with another shape have become accesses of
// the buffer. False after a refusal.
static bool find_aliases(Schedule *schedule, const Stmt *at, Buffer *buffer, Aliases *out) {
  const char *why = aliases_find_resolved(schedule->context, &schedule->func, buffer, out);
  return !why || schedule_refuse(schedule, at->pos, "the layout of '%s' cannot change: %s",
                                 buffer->name, why);
}

typedef struct ViewSearch {
  const Buffer *buffer;
  const MatchBuffer *found;
} ViewSearch;

static bool see_view(Visitor *visitor, Stmt *s) {
  ViewSearch *search = visitor->env;
  for (int i = 0; s->kind == STMT_BLOCK && i < s->as.block->match_count; i++)
    if (s->as.block->matches[i].buffer == search->buffer) search->found = &s->as.block->matches[i];
  return true;
}

// The statement that makes the buffer a view of another one; NULL where it is none.
static const MatchBuffer *view_of(const Schedule *schedule, const Buffer *buffer) {
  ViewSearch search = {buffer, NULL};
  visit_stmt(&(Visitor){.env = &search, .enter_stmt = see_view}, schedule->func->body);
  return search.found;
}

static Buffer *alias_named(Schedule *schedule, const Buffer *buffer, Str name) {
  Aliases aliases = aliases_find(schedule->context, schedule->func, buffer);
  for (int i = 0; i < aliases.found.count; i++)
    if (!strcmp(aliases.found.items[i]->name, name)) return aliases.found.items[i];
  return NULL;
}

// The buffer of that name over memory that the block accesses, perhaps by another name or through a
// view; NULL when there is none.
static Buffer *storage_named(Schedule *schedule, const Block *block, Str name) {
  Buffer *found = buffer_named(block, name);
  for (int i = 0; i < block->write_count && !found; i++)
    found = alias_named(schedule, block->writes[i].buffer, name);
  for (int i = 0; i < block->read_count && !found; i++)
    found = alias_named(schedule, block->reads[i].buffer, name);
  return found;
}

static bool views_all(const MatchBuffer *view) {
  const Buffer *buffer = view->buffer, *source = view->source.buffer;
  bool all = buffer->rank == source->rank && dtype_equal(buffer->type, source->type);
  for (int d = 0; all && d < buffer->rank; d++)
    all = expr_is_int(view->source.min[d], 0) && view->source.extent[d] == source->shape[d] &&
          buffer->shape[d] == source->shape[d];
  return all;
}

// Finds the buffer by which the layout changes, and its map: `buffer` itself; what it is a view of,
// if it is a view of all of that; or another buffer over the same elements, to whose axes the other
// buffers can be brought. NULL after a refusal.
static Buffer *layout_owner(Schedule *schedule, const Stmt *at, Buffer *buffer,
                            const IndexMap **map) {
  Context *context = schedule->context;
  const MatchBuffer *view;
  while ((view = view_of(schedule, buffer)) && views_all(view)) buffer = view->source.buffer;
  if (view) {
    const Buffer *source = view->source.buffer;
    for (const MatchBuffer *next; (next = view_of(schedule, source));) source = next->source.buffer;
    schedule_refuse(schedule, at->pos,
                    "the layout of '%s' cannot change: it is a view of a part of '%s'\n"
                    "name '%s' in this step; the map then takes its indices, of which there are %d",
                    buffer->name, source->name, source->name, source->rank);
    return NULL;
  }
  PrimFunc *func = schedule->func;
  Aliases aliases;
  if (!aliases_find_resolved(context, &func, buffer, &aliases)) return buffer;
  aliases = aliases_find(context, schedule->func, buffer);
  for (int i = 0; i < aliases.found.count; i++) {
    Buffer *other = aliases.found.items[i];
    Aliases resolved;
    const AliasPlace *place = other == buffer ? NULL : aliases_place(context, other, buffer);
    if (!place || !aliases_place(context, buffer, other)) continue;
    func = schedule->func;
    if (aliases_find_resolved(context, &func, other, &resolved)) continue;
    const IndexMap *in_buffer =
        index_map_from_exprs(context, place->vars, other->rank, place->index, buffer->rank, true);
    if (!in_buffer || (*map)->input_count != buffer->rank) continue;
    *map = index_map_compose(context, *map, in_buffer);
    return other;
  }
  return buffer;
}

// ---- Layouts ---------------------------------------------------------------------------------

const LayoutExpr **buffer_layout_shape(Schedule *schedule, SourcePos pos, const Buffer *buffer) {
  Context *context = schedule->context;
  const LayoutExpr **shape = arena_array(&context->arena, const LayoutExpr *, buffer->rank + 1);
  for (int i = 0; i < buffer->rank; i++) {
    shape[i] = layout_from_expr(context, buffer->shape[i], NULL, 0, true);
    if (shape[i]) continue;
    schedule_refuse(schedule, pos, "the extent of axis %d of '%s' is too complex", i, buffer->name);
    return NULL;
  }
  return shape;
}

const Layout *layout_of_extents(Schedule *schedule, const IndexMap *map, Expr *const *extents,
                                SourcePos pos) {
  Context *context = schedule->context;
  int rank = map->input_count;
  const LayoutExpr **shape = arena_array(&context->arena, const LayoutExpr *, rank + 1);
  for (int i = 0; i < rank; i++)
    if (!(shape[i] = layout_from_expr(context, extents[i], NULL, 0, true))) return NULL;
  LayoutPadding any = {LAYOUT_PADDING_ANY, 0};
  return layout_new(context, map, shape, NULL, schedule_size_facts(schedule), any, pos);
}

static const char *point_text(Context *context, const int64_t *point, int rank) {
  Text text = text_new(&context->arena);
  for (int i = 0; i < rank; i++) text_printf(&text, "%s%lld", i ? ", " : "", (long long)point[i]);
  return text_string(&text);
}

// ", where n = 5" for the values of the symbols for which the answer is so.
static const char *instance_text(Context *context, const LayoutAnswer *answer) {
  Text text = text_new(&context->arena);
  for (int i = 0; i < answer->instance_count; i++)
    text_printf(&text, "%s%s = %lld", i ? ", " : ", where ", answer->instance[i].symbol,
                (long long)answer->instance[i].value);
  return text_string(&text);
}

static bool refuse_collision(Schedule *schedule, const Stmt *at, const Buffer *buffer,
                             const Layout *layout, const LayoutAnswer *answer) {
  Context *context = schedule->context;
  if (answer->verdict != VERDICT_NO || !answer->witness || !answer->witness2)
    return schedule_refuse(schedule, at->pos,
                           "the index map is not proved injective on the shape of '%s': %s",
                           buffer->name, answer->reason ? answer->reason : "no proof was found");
  const char *first = point_text(context, answer->witness, answer->witness_rank);
  const char *second = point_text(context, answer->witness2, answer->witness_rank);
  int64_t *place = arena_array(&context->arena, int64_t, layout->physical_rank);
  bool known = true;
  for (int i = 0; i < layout->physical_rank; i++)
    known = known && layout_expr_value(layout->map->outputs[i], answer->witness, answer->instance,
                                       answer->instance_count, &place[i]);
  return schedule_refuse(
      schedule, at->pos,
      "index map is not injective on the shape of '%s'\n%s[%s] and %s[%s] would both be "
      "stored at [%s]%s",
      buffer->name, buffer->name, first, buffer->name, second,
      known ? point_text(context, place, layout->physical_rank) : "?",
      instance_text(context, answer));
}

static const Layout *layout_on_buffer(Schedule *schedule, const Stmt *at, const Buffer *buffer,
                                      const IndexMap *map) {
  Context *context = schedule->context;
  if (map->input_count != buffer->rank) {
    schedule_refuse(schedule, at->pos, "the map takes %d axes, '%s' has %d", map->input_count,
                    buffer->name, buffer->rank);
    return NULL;
  }
  if (!buffer_layout_shape(schedule, at->pos, buffer)) return NULL;
  const Layout *layout =
      layout_of_extents(schedule, map, buffer->shape, schedule->pos.file ? schedule->pos : at->pos);
  if (!layout) {
    schedule_refuse(schedule, at->pos, "the map does not fit the shape of '%s'", buffer->name);
    return NULL;
  }
  LayoutAnswer answer = layout_is_injective(context, layout);
  if (answer.verdict == VERDICT_YES) return layout;
  refuse_collision(schedule, at, buffer, layout, &answer);
  return NULL;
}

// The new layout of `buffer`: its present layout followed by `on_buffer`.
static const Layout *whole_layout(Context *context, const Buffer *buffer, const Layout *on_buffer,
                                  LayoutPadding padding) {
  const Layout *old = buffer->layout;
  if (!old) return layout_with_padding(context, on_buffer, padding);
  const IndexMap *map = index_map_compose(context, on_buffer->map, old->map);
  const Layout *whole = layout_new(context, map, old->shape, on_buffer->physical, old->facts,
                                   padding, (SourcePos){0});
  return whole ? whole : layout_with_padding(context, on_buffer, padding);
}

static Buffer *physical_buffer(Schedule *schedule, const Buffer *buffer, const Layout *on_buffer,
                               LayoutPadding padding) {
  Context *context = schedule->context;
  Buffer *copy = buffer_copy(context, buffer);
  Map symbols = schedule_size_symbols(schedule);
  copy->rank = on_buffer->physical_rank;
  copy->shape = arena_array(&context->arena, Expr *, copy->rank);
  for (int i = 0; i < copy->rank; i++)
    copy->shape[i] = expr_from_layout(context, on_buffer->physical[i], NULL, 0, &symbols);
  copy->separator_count = on_buffer->map->separator_count;
  copy->separators = (int *)on_buffer->map->separators;
  copy->layout = whole_layout(context, buffer, on_buffer, padding);
  return copy;
}

// ---- Rewriting accesses ----------------------------------------------------------------------

typedef struct Relayout {
  Schedule *schedule;
  const IndexMap *map; // NULL: the new buffer is the part of the old one from `origin` on
  Expr *const *origin;
  Map symbols;   // the sizes that the map may use
  Map buffers;   // old to new
  bool simplify; // the indices
} Relayout;

static Expr **shifted_indices(const Relayout *relayout, Expr *const *indices, int rank) {
  Context *context = relayout->schedule->context;
  Analyzer *analyzer = analyzer_new(context);
  Expr **out = arena_array(&context->arena, Expr *, rank);
  for (int i = 0; i < rank; i++) {
    Expr *origin = expr_cast(context, indices[i]->type, relayout->origin[i]);
    out[i] = analyzer_simplify(analyzer, expr_sub(context, indices[i], origin));
  }
  return out;
}

static Expr **physical_indices(Relayout *relayout, Expr *const *indices, int rank) {
  Context *context = relayout->schedule->context;
  if (!relayout->map) return shifted_indices(relayout, indices, rank);
  Expr **out = arena_array(&context->arena, Expr *, relayout->map->output_count);
  if (!index_map_apply_exprs(context, relayout->map, indices, &relayout->symbols, out))
    bug(context, "an index map that was applied before");
  return out;
}

static Expr *relayout_load(Rewriter *rewriter, Expr *e) {
  Relayout *relayout = rewriter->env;
  Buffer *to = e->op == EXPR_LOAD ? map_find(&relayout->buffers, e->as.buffer) : NULL;
  if (!to) return e;
  return expr_load(rewriter->context, to, physical_indices(relayout, e->args, to->rank), to->rank);
}

static Stmt *relayout_block(Relayout *relayout, Stmt *s) {
  Context *context = relayout->schedule->context;
  Block *copy = block_copy(context, s->as.block);
  copy->allocs =
      arena_copy(&context->arena, copy->allocs, sizeof *copy->allocs * (size_t)copy->alloc_count);
  for (int i = 0; i < copy->alloc_count; i++) {
    Buffer *to = map_find(&relayout->buffers, copy->allocs[i]);
    if (to) copy->allocs[i] = to;
  }
  bool touches = false;
  for (int i = 0; i < copy->read_count + copy->write_count; i++) {
    const Region *region =
        i < copy->read_count ? &copy->reads[i] : &copy->writes[i - copy->read_count];
    touches |= map_find(&relayout->buffers, region->buffer) != NULL;
  }
  if (!touches) return stmt_with_block(context, s, copy);
  if (!relayout->simplify) return stmt_with_block(context, s, block_with_regions(context, copy));
  Analyzer *analyzer = analyzer_new(context);
  block_bind_domain(analyzer, copy);
  copy->init = stmt_simplify_indices(context, analyzer, copy->init);
  copy->body = stmt_simplify_indices(context, analyzer, copy->body);
  return stmt_with_block(context, s, block_with_regions(context, copy));
}

static Stmt *relayout_stmt(Rewriter *rewriter, Stmt *s) {
  Relayout *relayout = rewriter->env;
  Context *context = rewriter->context;
  if (s->kind == STMT_BLOCK) return relayout_block(relayout, s);
  Buffer *old = s->kind == STMT_STORE         ? s->as.store.buffer
                : s->kind == STMT_DECL_BUFFER ? s->as.declare.buffer
                                              : NULL;
  Buffer *to = old ? map_find(&relayout->buffers, old) : NULL;
  if (!to) return s;
  Stmt *copy = stmt_copy(context, s);
  if (s->kind == STMT_DECL_BUFFER) {
    copy->as.declare.buffer = to;
    return copy;
  }
  copy->as.store.buffer = to;
  copy->as.store.rank = to->rank;
  copy->as.store.indices = physical_indices(relayout, s->as.store.indices, to->rank);
  return copy;
}

// Makes a new function that of the schedule, with the new buffers of its parameters and attributes.
static void set_params(Schedule *schedule, PrimFunc *func, const Map *vars, const Map *buffers) {
  for (int i = 0; i < func->param_count; i++) {
    Buffer *to = func->buffers[i] ? map_find(buffers, func->buffers[i]) : NULL;
    if (to) func->buffers[i] = to;
  }
  func->attrs = substitute_attrs(schedule->context, func->attrs, vars, buffers);
  schedule->func = func;
}

static void relayout_program(Relayout *relayout) {
  Schedule *schedule = relayout->schedule;
  Context *context = schedule->context;
  Rewriter rewriter = {
      .context = context, .env = relayout, .expr = relayout_load, .stmt = relayout_stmt};
  PrimFunc *func =
      prim_func_with_body(context, schedule->func, rewrite_stmt(&rewriter, schedule->func->body));
  set_params(schedule, func, NULL, &relayout->buffers);
}

void schedule_map_accesses(Schedule *schedule, const IndexMap *map, const Map *buffers,
                           bool simplify) {
  relayout_program(&(Relayout){.schedule = schedule,
                               .map = map,
                               .symbols = schedule_size_symbols(schedule),
                               .buffers = *buffers,
                               .simplify = simplify});
}

void schedule_shift_accesses(Schedule *schedule, Buffer *buffer, Buffer *part,
                             Expr *const *origin) {
  Map buffers = map_new(&schedule->context->arena);
  map_put(&buffers, buffer, part);
  relayout_program(&(Relayout){.schedule = schedule, .origin = origin, .buffers = buffers});
}

// ---- The block that writes the buffer ---------------------------------------------------------

typedef struct FirstStore {
  const Buffer *buffer;
  Stmt *store;
} FirstStore;

static bool see_store(Visitor *visitor, Stmt *s) {
  FirstStore *first = visitor->env;
  if (s->kind == STMT_STORE && s->as.store.buffer == first->buffer && !first->store)
    first->store = s;
  return true;
}

// The block's variables that are the buffer's axes; NULL unless the block writes the buffer at
// exactly these variables.
static int *axis_variables(Context *context, const Block *block, const Buffer *buffer) {
  FirstStore first = {buffer, NULL};
  Visitor visitor = {.env = &first, .enter_stmt = see_store};
  visit_stmt(&visitor, block->body);
  if (block->write_count != 1 || !first.store) return NULL;
  int *chosen = arena_array(&context->arena, int, buffer->rank);
  for (int d = 0; d < buffer->rank; d++) {
    chosen[d] = -1;
    for (int i = 0; i < block->var_count; i++) {
      const BlockVar *v = &block->vars[i];
      if (v->var == first.store->as.store.indices[d] && v->kind == ITER_SPATIAL &&
          v->extent == buffer->shape[d])
        chosen[d] = i;
    }
    for (int k = 0; k < d; k++)
      if (chosen[k] == chosen[d]) return NULL;
    if (chosen[d] < 0) return NULL;
  }
  return chosen;
}

typedef struct Pointwise {
  Schedule *schedule;
  Buffer *buffer; // physical
  Analyzer *analyzer;
  Expr **from;           // the map's outputs at the chosen variables
  Expr *const *new_vars; // the new indices of the accesses; NULL: only check
  bool elsewhere;        // there is an access at other indices
} Pointwise;

static bool at_from(Pointwise *env, Expr *const *indices) {
  bool same = true;
  for (int i = 0; i < env->buffer->rank; i++)
    same &= analyzer_simplify(env->analyzer, indices[i]) == env->from[i];
  env->elsewhere |= !same;
  return same && env->new_vars;
}

static Expr *pointwise_load(Rewriter *rewriter, Expr *e) {
  Pointwise *env = rewriter->env;
  if (e->op != EXPR_LOAD || e->as.buffer != env->buffer || !at_from(env, e->args)) return e;
  return expr_load(rewriter->context, env->buffer, env->new_vars, env->buffer->rank);
}

static Stmt *pointwise_store(Rewriter *rewriter, Stmt *s) {
  Pointwise *env = rewriter->env;
  if (s->kind != STMT_STORE || s->as.store.buffer != env->buffer ||
      !at_from(env, s->as.store.indices))
    return s;
  return stmt_store(rewriter->context, env->buffer, env->new_vars, env->buffer->rank,
                    s->as.store.value);
}

static Stmt *pointwise(Pointwise *env, Stmt *s) {
  Rewriter rewriter = {.context = env->schedule->context,
                       .env = env,
                       .expr = pointwise_load,
                       .stmt = pointwise_store};
  return s ? rewrite_stmt(&rewriter, s) : NULL;
}

// Makes the block iterate over the physical axes if it iterated over the logical axes.
static void remake_writer(Schedule *schedule, BlockRef name, const Layout *on_buffer,
                          const int *chosen, Buffer *physical) {
  Context *context = schedule->context;
  Path path;
  Rebinding rebinding;
  const char *why;
  if (!path_to_block(schedule, name, &path)) return;
  int count = on_buffer->rank;
  if (!rebind_begin(schedule, &path, chosen, count, &rebinding, &why)) return;
  if (!rebind_by_map(&rebinding, on_buffer, &why)) return;
  Expr **logical = arena_array(&context->arena, Expr *, count);
  for (int k = 0; k < count; k++) logical[k] = rebinding.block->vars[chosen[k]].var;
  Pointwise env = {schedule, physical, analyzer_new(context),
                   arena_array(&context->arena, Expr *, physical->rank)};
  Map symbols = schedule_size_symbols(schedule);
  if (!index_map_apply_exprs(context, on_buffer->map, logical, &symbols, env.from)) return;
  // A variable of extent 1 is replaced by its value.
  for (int i = 0; i < rebinding.block->var_count; i++) {
    const BlockVar *v = &rebinding.block->vars[i];
    analyzer_bind(env.analyzer, v->var, v->min, v->extent);
  }
  for (int i = 0; i < physical->rank; i++)
    env.from[i] = analyzer_simplify(env.analyzer, env.from[i]);
  Block *copy = block_copy(context, rebinding.block);
  env.new_vars = rebinding.new_vars;
  copy->init = pointwise(&env, copy->init);
  copy->body = pointwise(&env, copy->body);
  if (env.elsewhere) return;
  rebinding.block = copy;
  Stmt *s = rebind_block(&rebinding);
  schedule_set_body(schedule, path_replace(context, &path, rebinding.depth, s));
}

typedef struct Writer {
  BlockRef name;
  int *chosen;
} Writer;
typedef Array(Writer) WriterArray;

static void find_writers(Schedule *schedule, const Buffer *buffer, WriterArray *out) {
  Arena *arena = &schedule->context->arena;
  StmtArray blocks = {0};
  blocks_innermost(arena, schedule->func->body, &blocks);
  for (int i = 0; i < blocks.count; i++) {
    const Block *block = blocks.items[i]->as.block;
    if (!block->write_count || block->writes[0].buffer != buffer) continue;
    int *chosen = axis_variables(schedule->context, block, buffer);
    if (chosen) array_push(arena, out, ((Writer){block->name, chosen}));
  }
}

// ---- The step --------------------------------------------------------------------------------

static bool padding_of(Schedule *schedule, const Stmt *at, const StepValue *value,
                       LayoutPadding *out) {
  *out = (LayoutPadding){LAYOUT_PADDING_ANY, 0};
  if (value->kind == VALUE_NONE) return true;
  if (value->kind == VALUE_STRING && strcmp(value->as.s, "unknown") == 0) {
    out->kind = LAYOUT_PADDING_UNKNOWN;
    return true;
  }
  // The layout cannot state a map or a function, only that the content may not be changed.
  if (value->kind == VALUE_MAP || value->kind == VALUE_FUNCTION) {
    out->kind = LAYOUT_PADDING_UNKNOWN;
    return true;
  }
  if (value->kind != VALUE_INT && value->kind != VALUE_FLOAT)
    return schedule_refuse(schedule, at->pos, "pad_value is a number, a map, a function or None");
  out->kind = LAYOUT_PADDING_CONSTANT;
  out->value = value_number(value);
  return true;
}

// Whether the padding of a buffer has a stated content, which blocks may read.
static bool has_content(const Buffer *buffer) {
  return buffer->layout && buffer->layout->padding.kind == LAYOUT_PADDING_CONSTANT;
}

static bool adds_padding(Context *context, const Layout *on_buffer) {
  int64_t count;
  return layout_padding_count(context, on_buffer, &count).verdict != VERDICT_YES || count > 0;
}

bool schedule_relayout(Schedule *schedule, StepCall *call, const Stmt *at, Buffer *buffer,
                       const IndexMap *map, const StepValue *content) {
  Context *context = schedule->context;
  LayoutPadding padding;
  int fill = step_find_param(call->info, "fill");
  const StepValue chosen = {VALUE_NONE}, *way = fill < 0 ? &chosen : &call->args[fill];
  if (!padding_of(schedule, at, content, &padding)) return false;
  if (way->kind != VALUE_NONE && content->kind == VALUE_NONE)
    return schedule_refuse(schedule, at->pos,
                           "fill='%s' says how pad_value is written, but there is no pad_value",
                           way->as.s);
  Aliases aliases;
  const Buffer *asked = buffer;
  if (!(buffer = layout_owner(schedule, at, buffer, &map))) return false;
  if (!find_aliases(schedule, at, buffer, &aliases)) return false;
  const Layout *on_buffer = layout_on_buffer(schedule, at, buffer, map);
  if (!on_buffer) return false;
  bool named = storage_named(schedule, at->as.block, buffer->name) == buffer;
  Relaid relaid = {buffer, on_buffer, named, schedule->func, NULL};
  WriterArray writers = {0};
  find_writers(schedule, buffer, &writers);
  Map buffers = map_new(&context->arena);
  for (int i = 0; i < aliases.found.count; i++) {
    Buffer *alias = aliases.found.items[i];
    LayoutPadding any = {LAYOUT_PADDING_ANY, 0};
    map_put(&buffers, alias, physical_buffer(schedule, alias, on_buffer, any));
  }
  schedule_map_accesses(schedule, on_buffer->map, &buffers, true);
  Buffer *physical = map_find(&buffers, buffer);
  if (!constant_relayout(schedule, at->pos, buffer, physical, on_buffer->map)) return false;
  bool same = padding.kind == LAYOUT_PADDING_ANY && has_content(buffer);
  bool fills = (padding.kind != LAYOUT_PADDING_ANY || same) &&
               ((buffer->layout && !same) || adds_padding(context, on_buffer));
  for (int i = 0; (fills || step_rewrites_loops(call)) && i < writers.count; i++)
    remake_writer(schedule, writers.items[i].name, on_buffer, writers.items[i].chosen, physical);
  if (same) padding = buffer->layout->padding;
  bool states = padding.kind != LAYOUT_PADDING_ANY;
  // T.undef(): no former content is kept, and blocks may write any.
  if (content->kind == VALUE_STRING) padding.kind = LAYOUT_PADDING_ANY;
  if (same && !adds_padding(context, on_buffer))
    buffer_state_padding(schedule, physical, padding);
  else if (states && !buffer_set_padding(schedule, at->pos, physical, padding, content, way,
                                         !step_rewrites_loops(call)))
    return false;
  relaid.after = schedule->func;
  // Other forms of a step have the axes of the buffer that it names.
  if (buffer == asked) call->relaid = arena_copy(&context->arena, &relaid, sizeof relaid);
  return true;
}

bool schedule_find_buffer(Schedule *schedule, const StepCall *call, Path *path, Buffer **out) {
  if (!schedule_find_block(schedule, call->args[0].as.block, path)) return false;
  const StepValue *slot = &call->args[1];
  const Block *block = path_end(path)->as.block;
  *out = slot->kind == VALUE_STRING ? storage_named(schedule, block, slot->as.s) : NULL;
  if (!*out) *out = schedule_find_slot(schedule, path_end(path), slot);
  return *out != NULL;
}

bool step_transform_layout(Schedule *schedule, StepCall *call) {
  Path path;
  Buffer *buffer;
  if (!schedule_find_buffer(schedule, call, &path, &buffer)) return false;
  return schedule_relayout(schedule, call, path_end(&path), buffer, call->args[2].as.map,
                           &call->args[3]);
}

// ---- Axis separators -------------------------------------------------------------------------

// Replaces buffers by others of the same rank in the whole function.
static void replace_buffers(Schedule *schedule, const Map *buffers, const Map *vars) {
  Context *context = schedule->context;
  PrimFunc *func = prim_func_with_body(
      context, schedule->func, substitute_stmt(context, schedule->func->body, vars, buffers));
  set_params(schedule, func, vars, buffers);
}

void schedule_replace_storage(Schedule *schedule, const Buffer *buffer,
                              void (*change)(void *env, Buffer *b), void *env, const Map *vars) {
  Aliases aliases = aliases_find(schedule->context, schedule->func, buffer);
  Map buffers = map_new(&schedule->context->arena);
  for (int i = 0; i < aliases.found.count; i++) {
    Buffer *copy = buffer_copy(schedule->context, aliases.found.items[i]);
    change(env, copy);
    map_put(&buffers, aliases.found.items[i], copy);
  }
  replace_buffers(schedule, &buffers, vars);
}

typedef struct Separators {
  int *items;
  int count;
} Separators;

static void change_separators(void *env, Buffer *b) {
  Separators *separators = env;
  b->separators = separators->items;
  b->separator_count = separators->count;
}

bool step_set_axis_separator(Schedule *schedule, StepCall *call) {
  Context *context = schedule->context;
  Path path;
  Buffer *buffer;
  if (!schedule_find_buffer(schedule, call, &path, &buffer)) return false;
  Stmt *at = path_end(&path);
  Aliases aliases;
  if (!find_aliases(schedule, at, buffer, &aliases)) return false;
  int count = call->args[2].as.list.count;
  Separators separators = {arena_array(&context->arena, int, count), count};
  for (int i = 0; i < count; i++) {
    const StepValue *v = &call->args[2].as.list.items[i];
    int64_t low = i ? separators.items[i - 1] + 1 : 1;
    if (buffer->rank < 2)
      return schedule_refuse(schedule, at->pos, "'%s' has too few axes for an axis separator",
                             buffer->name);
    if (v->kind != VALUE_INT || v->as.i < low || v->as.i >= buffer->rank)
      return schedule_refuse(schedule, at->pos,
                             "axis separators of '%s' must ascend and be between 1 and %d",
                             buffer->name, buffer->rank - 1);
    separators.items[i] = (int)v->as.i;
  }
  schedule_replace_storage(schedule, buffer, change_separators, &separators, NULL);
  return true;
}
