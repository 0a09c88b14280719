// SPDX-License-Identifier: Apache-2.0
// Implements reindex, reindex_cache_read and reindex_cache_write: copies of a buffer whose indices
// are those of the iteration of the block that accesses it.
//   B[i, j] = A[j, i] * 2   =>   A_reindex[i, j] = A[j, i];   B[i, j] = A_reindex[i, j] * 2
// reindex has an axis for each variable of the access; the others take the axes from an index map.
#include "schedule/internal.h"

typedef struct Reindexing {
  Schedule *schedule;
  Path path;
  const Stmt *at;
  const Block *block;
  Buffer *buffer, *copy;
  bool write;
  int top;      // depth of the statement beside which the copy is made
  bool inside;  // that is below a loop, of which each iteration makes a part of the copy
  Expr **point; // the indices of the block's accesses to the buffer
  Expr **to;    // those to the copy
  int *chosen;  // the variables that the copy is made over
  int count;
} Reindexing;

#define REFUSE(r, ...) schedule_refuse((r)->schedule, (r)->at->pos, __VA_ARGS__)

// ---- The accesses of the block ---------------------------------------------------------------

typedef struct AccessPoint {
  const Buffer *buffer;
  Expr *const *point; // of the first access; NULL: none yet
  bool differs;
} AccessPoint;

static void note_point(void *env, Buffer *buffer, Expr *const *indices) {
  AccessPoint *search = env;
  if (buffer != search->buffer) return;
  if (!search->point) search->point = indices;
  for (int i = 0; i < buffer->rank; i++) search->differs |= indices[i] != search->point[i];
}

typedef struct InnerUse {
  const Expr *index;
  bool found;
} InnerUse;

static bool find_bound_stmt(Visitor *visitor, Stmt *s) {
  InnerUse *use = visitor->env;
  if (s->kind == STMT_FOR) use->found |= expr_uses(use->index, s->as.loop.var);
  if (s->kind == STMT_LET) use->found |= expr_uses(use->index, s->as.let.var);
  return true;
}

static bool find_bound_expr(Visitor *visitor, Expr *e) {
  InnerUse *use = visitor->env;
  if (e->op == EXPR_LET) use->found |= expr_uses(use->index, e->args[0]);
  return true;
}

// True when the index uses variables of loops that the copy leaves, or that the block binds inside.
static bool uses_inner_variables(const Reindexing *r, const Expr *e) {
  InnerUse use = {e, false};
  Visitor visitor = {.env = &use, .enter_stmt = find_bound_stmt, .enter_expr = find_bound_expr};
  visit_stmt(&visitor, r->block->body);
  if (use.found) return true;
  for (int i = r->top; i < r->path.count; i++)
    if (r->path.items[i]->kind == STMT_FOR && expr_uses(e, r->path.items[i]->as.loop.var))
      return true;
  return false;
}

// The region of the buffer that the block states to write, or else to read; NULL: none.
static const Region *region_of(const Block *block, const Buffer *buffer) {
  for (int i = 0; i < block->write_count; i++)
    if (block->writes[i].buffer == buffer) return &block->writes[i];
  for (int i = 0; i < block->read_count; i++)
    if (block->reads[i].buffer == buffer) return &block->reads[i];
  return NULL;
}

// Finds the one element that an execution of the block accesses. Its indices are simplified.
static bool find_point(Reindexing *r) {
  Context *context = r->schedule->context;
  AccessPoint search = {r->buffer, NULL, false};
  StmtArray inner = {0};
  blocks_below(&context->arena, (Stmt *)r->at, &inner);
  if (inner.count) return REFUSE(r, "block '%s' has blocks inside", r->block->name);
  block_visit_accesses(r->block, note_point, &search);
  if (!search.point || search.differs)
    return REFUSE(r, "block '%s' does not access '%s' at one index only", r->block->name,
                  r->buffer->name);
  Analyzer *analyzer = path_analyzer(r->schedule, &r->path, r->path.count - 1);
  block_bind_domain(analyzer, r->block);
  const Region *region = region_of(r->block, r->buffer);
  r->point = arena_array(&context->arena, Expr *, r->buffer->rank);
  for (int i = 0; i < r->buffer->rank; i++) {
    r->point[i] = analyzer_simplify(analyzer, search.point[i]);
    if (!region || !expr_is_int(region->extent[i], 1) || uses_inner_variables(r, r->point[i]))
      return REFUSE(r, "the index of '%s' is not one of the variables of block '%s'",
                    r->buffer->name, r->block->name);
  }
  return true;
}

// ---- The indices of the copy -----------------------------------------------------------------

static bool one_uses(Expr *const *exprs, int count, const Expr *var) {
  for (int i = 0; i < count; i++)
    if (expr_uses(exprs[i], var)) return true;
  return false;
}

static void choose_variables(Reindexing *r, int rank) {
  const Block *block = r->block;
  r->chosen = arena_array(&r->schedule->context->arena, int, block->var_count);
  for (int i = 0; i < block->var_count; i++)
    if (one_uses(r->point, r->buffer->rank, block->vars[i].var) ||
        one_uses(r->to, rank, block->vars[i].var))
      r->chosen[r->count++] = i;
}

// The variables of the access, in the block's order.
static bool indices_of_block(Reindexing *r, Str name) {
  Context *context = r->schedule->context;
  choose_variables(r, 0);
  Expr **shape = arena_array(&context->arena, Expr *, r->count);
  r->to = arena_array(&context->arena, Expr *, r->count);
  for (int k = 0; k < r->count; k++) {
    const BlockVar *v = &r->block->vars[r->chosen[k]];
    if (!expr_is_int(v->min, 0))
      return REFUSE(r, "variable '%s' does not begin at 0", v->var->as.var->name);
    shape[k] = v->extent;
    r->to[k] = v->var;
  }
  r->copy = buffer_new(context, name, r->buffer->type, shape, r->count, "global");
  return true;
}

static bool indices_of_map(Reindexing *r, const IndexMap *map, Str name, Str scope) {
  Context *context = r->schedule->context;
  const Block *block = r->block;
  if (map->input_count != block->var_count)
    return REFUSE(r, "the map takes %d axes, block '%s' has %d variables", map->input_count,
                  block->name, block->var_count);
  Expr **extents = arena_array(&context->arena, Expr *, block->var_count);
  Expr **vars = arena_array(&context->arena, Expr *, block->var_count);
  Analyzer *analyzer = analyzer_new(context);
  block_bind_domain(analyzer, block);
  for (int i = 0; i < block->var_count; i++) {
    vars[i] = block->vars[i].var;
    extents[i] = block->vars[i].extent;
    if (!expr_is_int(block->vars[i].min, 0))
      return REFUSE(r, "variable '%s' of block '%s' begins after 0", vars[i]->as.var->name,
                    block->name);
  }
  const Layout *layout = layout_of_extents(r->schedule, map, extents, r->at->pos);
  Map symbols = schedule_size_symbols(r->schedule);
  int rank = map->output_count;
  r->to = arena_array(&context->arena, Expr *, rank);
  if (!layout || !index_map_apply_exprs(context, map, vars, &symbols, r->to))
    return REFUSE(r, "the map does not fit block '%s'", block->name);
  Expr **shape = arena_array(&context->arena, Expr *, rank);
  for (int i = 0; i < rank; i++) {
    r->to[i] = analyzer_simplify(analyzer, r->to[i]);
    shape[i] = expr_cast(context, r->to[i]->type,
                         expr_from_layout(context, layout->physical[i], NULL, 0, &symbols));
  }
  choose_variables(r, rank);
  r->copy = buffer_new(context, name, r->buffer->type, shape, rank, scope);
  return true;
}

// ---- Legality --------------------------------------------------------------------------------

static bool is_each_variable(const Reindexing *r, Expr *const *exprs, int count) {
  for (int k = 0; k < r->count; k++) {
    const BlockVar *v = &r->block->vars[r->chosen[k]];
    bool found = expr_is_int(v->extent, 1);
    for (int i = 0; i < count; i++) found |= exprs[i] == v->var;
    if (!found) return false;
  }
  return true;
}

typedef struct SizeSearch {
  Map sizes; // by their names
  bool foreign;
} SizeSearch;

static bool note_variable(Visitor *visitor, Expr *e) {
  SizeSearch *search = visitor->env;
  if (e->op == EXPR_VAR) search->foreign |= map_find(&search->sizes, e->as.var->name) != e;
  return true;
}

// True when the expressions have no variables but those of the block and the function's sizes.
static bool uses_sizes_alone(const Reindexing *r, Expr *const *exprs, int count) {
  SizeSearch search = {schedule_size_symbols(r->schedule), false};
  Map none = map_new(&r->schedule->context->arena);
  for (int i = 0; i < r->block->var_count; i++)
    map_put(&none, r->block->vars[i].var, expr_index(r->schedule->context, 0));
  Visitor visitor = {.env = &search, .enter_expr = note_variable};
  for (int i = 0; i < count; i++)
    visit_expr(&visitor, substitute_expr(r->schedule->context, exprs[i], &none));
  return !search.foreign;
}

// True when two points of the chosen variables never have the same values of the expressions.
static bool tells_points(const Reindexing *r, Expr *const *exprs, int count) {
  Context *context = r->schedule->context;
  Expr **vars = arena_array(&context->arena, Expr *, r->count + 1);
  Expr **extents = arena_array(&context->arena, Expr *, r->count + 1);
  if (is_each_variable(r, exprs, count)) return true;
  for (int k = 0; k < r->count; k++) {
    const BlockVar *v = &r->block->vars[r->chosen[k]];
    vars[k] = v->var;
    extents[k] = v->extent;
    if (!expr_is_int(v->min, 0)) return false;
  }
  if (!uses_sizes_alone(r, exprs, count)) return false;
  const IndexMap *map = index_map_from_exprs(context, vars, r->count, exprs, count, true);
  int errors = context->error_count, diags = context->diags.count;
  const Layout *layout = map ? layout_of_extents(r->schedule, map, extents, r->at->pos) : NULL;
  diag_forget(context, diags, errors); // a map that does not fit is no proof, and no error
  return layout && layout_is_injective(context, layout).verdict == VERDICT_YES;
}

// Has a variable of the copy no values?
static bool copies_nothing(const Reindexing *r) {
  for (int k = 0; k < r->count; k++)
    if (expr_is_int(r->block->vars[r->chosen[k]].extent, 0)) return true;
  return false;
}

static bool is_chosen(const Reindexing *r, int var) {
  for (int k = 0; k < r->count; k++)
    if (r->chosen[k] == var) return true;
  return false;
}

// Does the block, or its init, run for each point of the copy? The variables that the copy lacks
// have values.
static bool runs_for_each_point(const Reindexing *r) {
  Context *context = r->schedule->context;
  Analyzer *analyzer = path_analyzer(r->schedule, &r->path, r->top);
  if (copies_nothing(r)) return true;
  for (int i = 0; i < r->block->var_count; i++) {
    const BlockVar *v = &r->block->vars[i];
    Expr *zero = expr_int(context, v->extent->type, 0);
    bool inits = v->kind == ITER_REDUCTION && r->block->init;
    if (!is_chosen(r, i) && !inits && !analyzer_prove(analyzer, expr_lt(context, zero, v->extent)))
      return false;
  }
  return true;
}

// The read may be under a condition of the block, which the copy does not have.
static bool stays_inside(const Reindexing *r) {
  Context *context = r->schedule->context;
  Analyzer *analyzer = path_analyzer(r->schedule, &r->path, r->top);
  if (copies_nothing(r)) return true;
  for (int k = 0; k < r->count; k++) { // the other variables may have no values
    const BlockVar *v = &r->block->vars[r->chosen[k]];
    analyzer_bind_kept(analyzer, v->var, v->min, v->extent);
  }
  for (int i = 0; i < r->buffer->rank; i++)
    if (!analyzer_prove_within(analyzer, r->point[i], expr_index(context, 0),
                               r->buffer->shape[i]) ||
        !loads_stay_within(analyzer, context, r->point[i]))
      return REFUSE(r, "axis %d of '%s' is not proved to stay in its extent for all iterations", i,
                    r->buffer->name);
  return true;
}

// True when the block writes memory that the indices of the access read.
static bool changes_point(const Reindexing *r, const Block *block) {
  for (int i = 0; i < block->write_count; i++)
    for (int d = 0; d < r->buffer->rank; d++)
      if (expr_reads(r->point[d], block->writes[i].buffer)) return true;
  return false;
}

// The block below items[top] that stands in the way: another one that writes the buffer, one that
// reads it when the step's block writes it, or one that writes what the indices read. NULL: there
// is none.
static const Block *other_user(const Reindexing *r, int top) {
  StmtArray blocks = {0};
  blocks_innermost(&r->schedule->context->arena, r->path.items[top], &blocks);
  for (int i = 0; i < blocks.count; i++) {
    const Block *other = blocks.items[i]->as.block;
    bool writes = block_touches(other, r->buffer, true);
    bool reads = block_touches(other, r->buffer, false);
    if (other == r->block ? writes && !r->write : writes || (reads && r->write)) return other;
    if (changes_point(r, other)) return other;
  }
  return NULL;
}

// True when the copy may be made in each iteration of the loops down to items[top]: they run in
// order, and an iteration completes what the block writes there.
static bool is_place_inside(const Reindexing *r, int nest, int top) {
  for (int i = nest; i < r->path.count - 1; i++) {
    const Stmt *s = r->path.items[i];
    bool loop = s->kind == STMT_FOR && s->as.loop.kind == LOOP_SERIAL;
    if (!loop && (i >= top || s->kind != STMT_SEQ)) return false;
  }
  Path loop = r->path;
  loop.count = top;
  while (loop.count > nest && path_end(&loop)->kind != STMT_FOR) loop.count--;
  return expr_is_true(r->block->predicate) &&
         (!r->write ||
          (loop.count > nest && path_writes_tell_iterations(r->schedule, &loop, nest, r->buffer)));
}

// Moves r->top to the outermost place where no other block below it uses the buffer.
static bool find_place(Reindexing *r) {
  const Block *other = other_user(r, r->top);
  int top = r->top;
  if (r->write && expr_reads(r->block->predicate, r->buffer))
    return REFUSE(r, "the predicate of block '%s' reads '%s'", r->block->name, r->buffer->name);
  if (!other) return true;
  while (top < r->path.count - 1 && other_user(r, top)) top++;
  if (other_user(r, top) || !is_place_inside(r, r->top, top))
    return REFUSE(r, "block '%s' in the same nest %s '%s'", other->name,
                  changes_point(r, other)                 ? "writes what chooses the element of"
                  : block_touches(other, r->buffer, true) ? "writes"
                                                          : "reads",
                  r->buffer->name);
  r->top = top;
  r->inside = true;
  return true;
}

// True when the block runs over its whole domain and writes the element each time.
static bool writes_each_point(const Reindexing *r) {
  Schedule *schedule = r->schedule;
  Context *context = schedule->context;
  ExprArray of_domain = {0}, of_vars = {0};
  Analyzer *analyzer = path_analyzer(schedule, &r->path, r->path.count - 1);
  Block *always = block_copy(context, r->block);
  always->predicate = expr_bool(context, true);
  bool reads = block_touches(r->block, r->buffer, false);
  return (r->block->init || !reads) &&
         !path_bindings_check(schedule, &r->path, analyzer, r->block) &&
         predicate_divide(schedule, &r->path, &of_domain, &of_vars) && !of_vars.count &&
         block_writes_whole_domain(schedule, always, analyzer);
}

static bool check_write(const Reindexing *r) {
  const Block *block = r->block;
  for (int k = 0; k < r->count; k++)
    if (block->vars[r->chosen[k]].kind != ITER_SPATIAL)
      return REFUSE(r, "variable '%s' of block '%s', which the copy would have, is not spatial",
                    block->vars[r->chosen[k]].var->as.var->name, block->name);
  if (block->write_count != 1)
    return REFUSE(r, "block '%s' does not write exactly one buffer", block->name);
  if (!writes_each_point(r) || !runs_for_each_point(r))
    return REFUSE(r,
                  "block '%s' is not proved to write '%s' in all iterations without reading what "
                  "was there",
                  block->name, r->buffer->name);
  return tells_points(r, r->point, r->buffer->rank) ||
         REFUSE(r, "iterations of block '%s' are not proved to write different elements of '%s'",
                block->name, r->buffer->name);
}

static bool check_copy(Reindexing *r) {
  if (!tells_points(r, r->to, r->copy->rank))
    return REFUSE(r,
                  "the map is not proved to give each iteration of block '%s' an index of its "
                  "own",
                  r->block->name);
  if (!find_place(r)) return false;
  return r->write ? check_write(r) : stays_inside(r);
}

// ---- The copy --------------------------------------------------------------------------------

// The block that copies in new loops, one for each of its variables.
static Stmt *copy_whole(const Reindexing *r, Block *block) {
  Context *context = r->schedule->context;
  Expr **loops = arena_array(&context->arena, Expr *, r->count);
  for (int k = 0; k < r->count; k++) {
    BlockVar *v = &block->vars[k];
    loops[k] = expr_var(context, arena_printf(&context->arena, "ax%d", k), v->var->type);
    v->binding = expr_add(context, v->min, loops[k]);
  }
  return block_in_loops(context, loops, stmt_block(context, block_with_regions(context, block)));
}

// The same in copies of those loops from items[top] on that its variables are bound to.
static Stmt *copy_part(const Reindexing *r, Block *block) {
  Context *context = r->schedule->context;
  Map loops = map_new(&context->arena);
  Stmt *s = stmt_block(context, block_with_regions(context, block));
  for (int i = r->path.count - 2; i >= r->top; i--) {
    const Stmt *loop = r->path.items[i];
    const Expr *var = loop->as.loop.var;
    bool used = false;
    for (int k = i + 1; k < r->path.count - 1; k++) used |= loop_bounds_use(r->path.items[k], var);
    for (int k = 0; k < r->count; k++) used |= expr_uses(block->vars[k].binding, var);
    if (!used) continue;
    map_put(&loops, var, expr_var(context, var->as.var->name, var->type));
    s = stmt_with_child(context, loop, 0, s);
  }
  return substitute_stmt(context, s, &loops, NULL);
}

// The nest that copies between the buffer and the copy, over the chosen variables.
static Stmt *reindex_nest(const Reindexing *r, Str name) {
  Context *context = r->schedule->context;
  Block *block = arena_new(&context->arena, Block);
  Map vars = map_new(&context->arena);
  block->name = name;
  block->predicate = expr_bool(context, true);
  block->var_count = r->count;
  block->vars = arena_array(&context->arena, BlockVar, r->count);
  for (int k = 0; k < r->count; k++) {
    BlockVar v = r->block->vars[r->chosen[k]];
    v.kind = ITER_SPATIAL;
    v.pos = (SourcePos){0};
    Expr *fresh = expr_var(context, v.var->as.var->name, v.var->type);
    map_put(&vars, v.var, fresh);
    v.var = fresh;
    block->vars[k] = v;
  }
  Buffer *from = r->write ? r->copy : r->buffer;
  Expr *value = expr_load(context, from, r->write ? r->to : r->point, from->rank);
  Buffer *into = r->write ? r->buffer : r->copy;
  Stmt *store = stmt_store(context, into, r->write ? r->point : r->to, into->rank, value);
  block->body = substitute_stmt(context, store, &vars, NULL);
  return r->inside ? copy_part(r, block) : copy_whole(r, block);
}

static Expr *reindex_load(Rewriter *rewriter, Expr *e) {
  const Reindexing *r = rewriter->env;
  if (e->op != EXPR_LOAD || e->as.buffer != r->buffer) return e;
  return expr_load(rewriter->context, r->copy, r->to, r->copy->rank);
}

static Stmt *reindex_store(Rewriter *rewriter, Stmt *s) {
  const Reindexing *r = rewriter->env;
  if (s->kind != STMT_STORE || s->as.store.buffer != r->buffer) return s;
  return stmt_store(rewriter->context, r->copy, r->to, r->copy->rank, s->as.store.value);
}

static bool reindex_begin(Schedule *schedule, StepCall *call, const StepValue *slot,
                          Reindexing *r) {
  const char *who;
  *r = (Reindexing){.schedule = schedule};
  if (!schedule_find_block(schedule, call->args[0].as.block, &r->path)) return false;
  r->at = path_end(&r->path);
  r->block = r->at->as.block;
  r->buffer = schedule_find_slot(schedule, r->at, slot);
  if (!r->buffer) return false;
  r->write = block_touches(r->block, r->buffer, true);
  if (path_scope(&r->path, r->path.count - 1) < 0)
    return REFUSE(r, "the root block itself has no buffer");
  if (storage_is_opaque(schedule, r->buffer, &who))
    return REFUSE(r, "'%s' cannot be copied: %s", r->buffer->name, who);
  r->top = path_nest_top(&r->path, r->path.count - 1);
  return find_point(r);
}

// `name` is that of the block that copies.
static bool reindex_finish(Reindexing *r, StepCall *call, Str name) {
  Schedule *schedule = r->schedule;
  Context *context = schedule->context;
  if (!check_copy(r)) return false;
  Rewriter rewriter = {.context = context, .env = r, .expr = reindex_load, .stmt = reindex_store};
  Block *block = block_copy(context, r->block);
  if (block->init) block->init = rewrite_stmt(&rewriter, block->init);
  block->body = rewrite_stmt(&rewriter, block->body);
  if (refuse_late_init(schedule, r->at->pos, block)) return false;
  Stmt *kept = stmt_with_block(context, r->at, block_with_regions(context, block));
  kept = path_with_end(context, &r->path, r->top, kept);
  name = schedule_unique_name(schedule, name);
  path_place_beside(schedule, &r->path, r->top, kept, reindex_nest(r, name), r->write, r->copy);
  step_result(schedule, call, value_block(name));
  return true;
}

bool step_reindex(Schedule *schedule, StepCall *call) {
  Reindexing r;
  if (!reindex_begin(schedule, call, &call->args[1], &r)) return false;
  Str name = str_format(schedule->context, "%s_reindex", r.buffer->name);
  Str block = r.write ? name : str_format(schedule->context, "%s_reindex", name); // as in TVM
  return indices_of_block(&r, name) && reindex_finish(&r, call, block);
}

static bool reindex_cache(Schedule *schedule, StepCall *call, bool write) {
  Reindexing r;
  StepValue slot = value_slot(schedule->context, write, call->args[1]);
  if (!reindex_begin(schedule, call, &slot, &r)) return false;
  Str scope = call->args[2].as.s;
  if (!schedule_check_scope(schedule, r.at, scope)) return false;
  Str name = cached_name(schedule->context, r.buffer, scope);
  return indices_of_map(&r, call->args[3].as.map, name, scope) && reindex_finish(&r, call, name);
}

bool step_reindex_cache_read(Schedule *schedule, StepCall *call) {
  return reindex_cache(schedule, call, false);
}
bool step_reindex_cache_write(Schedule *schedule, StepCall *call) {
  return reindex_cache(schedule, call, true);
}
