// SPDX-License-Identifier: Apache-2.0
// Separates a reduction's init from its updates.
//   decompose_reduction   for k: { if k == 0: C = 0;  C += … }   =>   C = 0;  for k: C += …
#include "schedule/internal.h"

// ---- decompose_reduction -----------------------------------------------------------------------

typedef struct Decompose {
  Schedule *schedule;
  Path path;
  const Block *block;
  int depth;       // of the loop that the init is put before
  Map fresh;       // new loops and block variables for the init
  Expr *condition; // of the init, in terms of the old loops
} Decompose;

// Refuses a statement between the loop and the block that the init cannot leave: it is no loop, and
// no condition on loops outside of the reduction.
static bool check_between(const Decompose *d, const Stmt *s) {
  if (s->kind == STMT_FOR || s->kind == STMT_SEQ || s->kind == STMT_ATTR) return true;
  bool free = s->kind == STMT_IF && !expr_reads_memory(s->as.branch.condition);
  for (int i = d->depth; free && i < d->path.count - 1; i++)
    free = d->path.items[i]->kind != STMT_FOR ||
           !block_binds(d->block, d->path.items[i]->as.loop.var, true) ||
           !expr_uses(s->as.branch.condition, d->path.items[i]->as.loop.var);
  return free || schedule_refuse(d->schedule, s->pos,
                                 "the init of block '%s' would leave a statement that is neither a "
                                 "loop nor a condition on loops outside of the reduction",
                                 d->block->name);
}

static bool check_decompose(Decompose *d) {
  Schedule *schedule = d->schedule;
  const Block *block = d->block;
  SourcePos pos = path_end(&d->path)->pos;
  if (!block->init) return schedule_refuse(schedule, pos, "block '%s' has no init", block->name);
  if (block_init_is_partial(block)) return refuse_partial_init(schedule, pos, block);
  for (int i = path_scope(&d->path, d->path.count - 1) + 1; i < d->path.count - 1; i++) {
    Stmt *s = d->path.items[i];
    if (i > d->depth && !check_between(d, s)) return false;
    if (s->kind != STMT_FOR) continue;
    const char *name = loop_name(s);
    bool reduces = block_binds(block, s->as.loop.var, true);
    if (i < d->depth && reduces && loop_const_extent(s) != 1)
      return schedule_refuse(
          schedule, s->pos,
          "loop '%s' outside of it belongs to the reduction; the init goes before the "
          "outermost loop of the reduction",
          name);
    bool spatial = block_binds(block, s->as.loop.var, false);
    if (i >= d->depth && !reduces && !spatial && loop_const_extent(s) != 1)
      return schedule_refuse(schedule, s->pos,
                             "loop '%s' repeats block '%s', whose init begins each repetition",
                             name, block->name);
    if (i >= d->depth && reduces && spatial)
      return schedule_refuse(schedule, s->pos,
                             "loop '%s' is used by spatial and reduction variables of block '%s'",
                             name, block->name);
  }
  return true;
}

// Refuses unless the loops below, of which the reduction uses none, give different elements: the
// init would start an element once that several of their iterations start and then add to.
static bool starts_elements_once(const Decompose *d) {
  Context *context = d->schedule->context;
  const Block *block = d->block;
  VarRange *loops = arena_array(&context->arena, VarRange, d->path.count);
  Expr **indices = arena_array(&context->arena, Expr *, block->var_count + 1);
  IterIndex *map = arena_array(&context->arena, IterIndex, block->var_count + 1);
  IterMapQuestion question = {indices, 0, loops, 0, expr_bool(context, true), ITER_MAP_BIJECTIVE};
  for (int i = d->depth; i < d->path.count - 1; i++) {
    const Stmt *s = d->path.items[i];
    if (s->kind == STMT_FOR && block_binds(block, s->as.loop.var, false))
      loops[question.loop_count++] = (VarRange){s->as.loop.var, s->as.loop.min, s->as.loop.extent};
  }
  Analyzer *analyzer = path_analyzer(d->schedule, &d->path, d->depth);
  Analyzer *inside = path_analyzer(d->schedule, &d->path, d->path.count - 1);
  bool *varying = arena_array(&context->arena, bool, block->var_count + 1);
  for (int i = 0; i < block->var_count; i++) {
    varying[i] = expr_uses_ranges(block->vars[i].binding, loops, question.loop_count);
    if (varying[i] && block->vars[i].kind != ITER_REDUCTION)
      indices[question.count++] = analyzer_simplify(inside, block->vars[i].binding);
  }
  const char *why = iter_map_find(analyzer, &question, map);
  if (!why && !block_writes_apart(d->schedule, block, varying))
    why = "different values of its variables may write the same element";
  return !why || schedule_refuse(d->schedule, path_end(&d->path)->pos,
                                 "the loops below are not proved to compute each element of block "
                                 "'%s' once: %s",
                                 block->name, why);
}

typedef struct FindRead {
  const Block *writer;
  const Buffer *found; // what is read and the block writes
} FindRead;

static bool find_read(Visitor *visitor, Expr *e) {
  FindRead *find = visitor->env;
  if (e->op == EXPR_LOAD && block_touches(find->writer, e->as.buffer, true))
    find->found = e->as.buffer;
  return true;
}

// Refuses when another block below the loop accesses the buffer that the init sets, or writes what
// the init reads.
static bool alone_below(Decompose *d) {
  StmtArray blocks = {0};
  Stmt *loop = d->path.items[d->depth];
  blocks_below(&d->schedule->context->arena, loop, &blocks);
  for (int k = 0; k < d->block->write_count; k++)
    if (stmt_uses_loosely(loop, d->block->writes[k].buffer, false))
      return schedule_refuse(d->schedule, loop->pos,
                             "a statement outside of blocks below that loop uses '%s' too",
                             d->block->writes[k].buffer->name);
  for (int i = 0; i < blocks.count; i++) {
    const Block *other = blocks.items[i]->as.block;
    if (other == d->block) continue;
    FindRead find = {other, NULL};
    visit_stmt(&(Visitor){.env = &find, .enter_expr = find_read}, d->block->init);
    if (find.found)
      return schedule_refuse(d->schedule, blocks.items[i]->pos,
                             "block '%s' below that loop writes '%s', which the init reads",
                             other->name, find.found->name);
    for (int k = 0; k < d->block->write_count; k++) {
      const Buffer *buffer = d->block->writes[k].buffer;
      if (block_touches(other, buffer, true) || block_touches(other, buffer, false))
        return schedule_refuse(d->schedule, blocks.items[i]->pos,
                               "block '%s' below that loop uses '%s' too", other->name,
                               buffer->name);
    }
  }
  return true;
}

static bool is_viewed(const Block *block, const Buffer *buffer) {
  for (int i = 0; i < block->match_count; i++)
    if (block->matches[i].source.buffer->data == buffer->data) return true;
  return false;
}

// Refuses when the init and the updates use memory that the block allocates.
static bool check_allocations(Decompose *d) {
  const Block *block = d->block;
  for (int i = 0; i < block->alloc_count; i++) {
    const Buffer *b = block->allocs[i];
    if (stmt_uses(block->init, b->data) && (stmt_uses(block->body, b->data) || is_viewed(block, b)))
      return schedule_refuse(d->schedule, path_end(&d->path)->pos,
                             "block '%s' allocates '%s', which its init and its updates use",
                             block->name, b->name);
  }
  return true;
}

// Gives the init, which is separate now, the allocations that it uses, or the update the others.
static void divide_allocations(Decompose *d, bool of_init, Block *out) {
  const Block *block = d->block;
  out->alloc_count = 0;
  out->allocs = arena_array(&d->schedule->context->arena, Buffer *, block->alloc_count);
  for (int i = 0; i < block->alloc_count; i++)
    if (stmt_uses(block->init, block->allocs[i]->data) == of_init)
      out->allocs[out->alloc_count++] = block->allocs[i];
}

// True when the init accesses views of the block.
static bool init_has_views(const Block *block) {
  for (int i = 0; i < block->match_count; i++)
    if (stmt_uses(block->init, block->matches[i].buffer->data)) return true;
  return false;
}

// The conditions around the block below the loop.
static Expr *conditions_between(const Decompose *d) {
  Context *context = d->schedule->context;
  Expr *all = NULL;
  for (int i = d->depth; i < d->path.count - 1; i++) {
    const Stmt *s = d->path.items[i];
    if (s->kind != STMT_IF) continue;
    Expr *one = s->as.branch.condition;
    all = condition_and(context, all, d->path.child[i] ? expr_unary(context, EXPR_NOT, one) : one);
  }
  return all;
}

// Does a condition choose among the iterations of a loop outside of the init that no variable of
// the block uses? The init would begin an element again in each of them.
static bool chooses_repetition(const Decompose *d, const Expr *condition) {
  for (int i = path_scope(&d->path, d->path.count - 1) + 1; i < d->depth; i++) {
    const Stmt *s = d->path.items[i];
    if (s->kind == STMT_FOR && !block_binds(d->block, s->as.loop.var, false) &&
        expr_uses(condition, s->as.loop.var))
      return true;
  }
  return false;
}

// Does the condition use a loop or a variable of the reduction?
static bool uses_reduction(const Decompose *d, const Expr *condition) {
  for (int i = d->depth; i < d->path.count - 1; i++) {
    const Stmt *s = d->path.items[i];
    if (s->kind == STMT_FOR && block_binds(d->block, s->as.loop.var, true) &&
        expr_uses(condition, s->as.loop.var))
      return true;
  }
  for (int i = 0; i < d->block->var_count; i++)
    if (d->block->vars[i].kind == ITER_REDUCTION && expr_uses(condition, d->block->vars[i].var))
      return true;
  return false;
}

// Puts the loops that no spatial variable of the block uses at their starts.
static void put_starts(const Decompose *d, Map *starts) {
  for (int i = path_scope(&d->path, d->path.count - 1) + 1; i < d->path.count - 1; i++) {
    const Stmt *s = d->path.items[i];
    if (s->kind == STMT_FOR && !block_binds(d->block, s->as.loop.var, false))
      map_put(starts, s->as.loop.var, s->as.loop.min);
  }
}

// Refuses a reduction that does not begin at the start of its domain, where its init would run.
static bool begins_at_start(const Decompose *d) {
  Context *context = d->schedule->context;
  Analyzer *analyzer = path_analyzer(d->schedule, &d->path, d->path.count - 1);
  Map starts = map_new(&context->arena);
  put_starts(d, &starts);
  for (int i = 0; i < d->block->var_count; i++) {
    const BlockVar *v = &d->block->vars[i];
    Expr *first = substitute_expr(context, v->binding, &starts);
    if (v->kind == ITER_REDUCTION && !analyzer_prove_equal(analyzer, first, v->min))
      return schedule_refuse(d->schedule, path_end(&d->path)->pos,
                             "'%s' of block '%s' is not proved to begin at the start of its "
                             "domain, where the init runs",
                             v->var->as.var->name, d->block->name);
  }
  return true;
}

// Finds the condition at the start of the reduction. Parts that are false there only where no
// iteration is left are dropped, since the init is the result then, but for those that choose one
// of several repetitions of the block. Refuses where none may be left by these.
static bool find_condition(Decompose *d) {
  Context *context = d->schedule->context;
  Expr *condition = condition_and(context, conditions_between(d), d->block->predicate);
  Analyzer *analyzer = path_analyzer(d->schedule, &d->path, d->path.count - 1);
  ExprArray all = {0}, kept = {0};
  Array(VarRange) loops = {0};
  Map starts = map_new(&context->arena);
  put_starts(d, &starts);
  for (int i = d->depth; i < d->path.count - 1; i++) {
    const Stmt *s = d->path.items[i];
    if (s->kind == STMT_FOR && !block_binds(d->block, s->as.loop.var, false))
      array_push(&context->arena, &loops, loop_range(s));
  }
  if (condition) expr_conjuncts(context, condition, &all);
  for (int i = 0; i < all.count; i++) {
    Expr *one = all.items[i];
    bool late = condition_needs_first(context, d->block, one, loops.items, loops.count);
    bool chooses = chooses_repetition(d, one);
    if (late && !chooses && uses_reduction(d, one)) continue;
    if (late && chooses && !analyzer_prove(analyzer, substitute_expr(context, one, &starts)))
      return schedule_refuse(d->schedule, path_end(&d->path)->pos,
                             "a condition of block '%s' chooses among its repetitions, and is not "
                             "proved to hold in the first",
                             d->block->name);
    array_push(&context->arena, &kept, one);
  }
  d->condition = expr_conjunction(context, &kept);
  return true;
}

// The nest of the init: new loops for those below that its variables use, and each reduction loop
// at its start.
static Stmt *init_nest(Decompose *d, Str name) {
  Context *context = d->schedule->context;
  const Block *block = d->block;
  d->fresh = map_new(&context->arena);
  Block *init = arena_new(&context->arena, Block);
  init->name = name;
  init->annotations = block->annotations;
  init->vars = arena_array(&context->arena, BlockVar, block->var_count);
  for (int i = d->depth; i < d->path.count - 1; i++) {
    Stmt *s = d->path.items[i];
    if (s->kind != STMT_FOR) continue;
    Expr *var = s->as.loop.var;
    bool spatial = block_binds(block, var, false);
    map_put(&d->fresh, var,
            spatial ? expr_var(context, var->as.var->name, var->type) : s->as.loop.min);
  }
  Map vars = map_new(&context->arena);
  for (int i = 0; i < block->var_count; i++) {
    BlockVar v = block->vars[i];
    if (v.kind == ITER_REDUCTION) continue;
    Expr *var = expr_var(context, v.var->as.var->name, v.var->type);
    map_put(&vars, v.var, var);
    v.var = var;
    v.binding = substitute_expr(context, v.binding, &d->fresh);
    init->vars[init->var_count++] = v;
  }
  init->predicate = substitute_expr(context, d->condition, &d->fresh);
  init->body = block->init;
  divide_allocations(d, true, init);
  if (init_has_views(block)) {
    init->match_count = block->match_count;
    init->matches = block->matches;
  }
  block_substitute(context, init, &vars);
  Stmt *s = stmt_renew(context, stmt_block(context, block_with_regions(context, init)));
  s->pos = path_end(&d->path)->pos;
  for (int i = d->path.count - 2; i >= d->depth; i--) {
    Stmt *loop = d->path.items[i];
    if (loop->kind != STMT_FOR || !block_binds(block, loop->as.loop.var, false)) continue;
    Expr *var = map_find(&d->fresh, loop->as.loop.var);
    s = loop_like(context, loop, var, substitute_expr(context, loop->as.loop.min, &d->fresh),
                  substitute_expr(context, loop->as.loop.extent, &d->fresh), s);
  }
  return s;
}

bool step_decompose_reduction(Schedule *schedule, StepCall *call) {
  Context *context = schedule->context;
  Decompose d = {schedule};
  if (!schedule_find_block_in_loop(schedule, call->args[0].as.block, call->args[1].as.loop, &d.path,
                                   &d.depth))
    return false;
  d.block = path_end(&d.path)->as.block;
  if (!check_decompose(&d) || !starts_elements_once(&d) || !check_allocations(&d) ||
      !alone_below(&d) || !begins_at_start(&d) || !find_condition(&d))
    return false;
  Str name =
      schedule_unique_name(schedule, arena_printf(&context->arena, "%s_init", d.block->name));
  Stmt *init = init_nest(&d, name);
  Block *update = block_copy(context, d.block);
  update->init = NULL;
  divide_allocations(&d, false, update);
  Stmt *s = stmt_with_block(context, path_end(&d.path), block_with_regions(context, update));
  s = path_with_end(context, &d.path, d.depth, s);
  path_replace_flat(schedule, &d.path, d.depth, stmt_seq(context, (Stmt *[]){init, s}, 2));
  step_result(schedule, call, value_block(name));
  return true;
}
