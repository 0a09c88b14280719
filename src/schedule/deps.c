// SPDX-License-Identifier: Apache-2.0
// Analyses dependences between the iterations of loops, for the steps that change their order. The
// iterations of a chain of loops need not run in order because of storage that is written below the
// chain when the storage is
//   separate   Different iterations access different boxes: the map from the loops to the boxes is
//              injective. If it is injective in some of the loops, these need no order among the
//              iterations, and the other loops keep their order among themselves;
//   private    no statement outside accesses it, and an iteration reads only what it wrote itself;
//   the same   one block writes it, each element always with the same value, and no block reads it;
//   reduced    one block updates it by an operation whose order does not matter, after its init.
// The proofs use supersets of the accessed boxes (accesses.c), but a write that must cover a read
// has an exact box, in an iteration of the loops that are around both. Proofs that a map is
// injective are in injection.c.
#include "schedule/injection.h"
#include "schedule/reduced_results.h"

// ---- Which iterations access which elements ----------------------------------------------------

typedef struct Storage {
  Buffer *buffer; // one of the aliases
  AccessArray accesses;
  bool mixed; // several buffers share the data: indices are not comparable
} Storage;
typedef Array(Storage) StorageArray;

static void by_storage(Context *context, const AccessArray *accesses, StorageArray *out) {
  for (int i = 0; i < accesses->count; i++) {
    Access *access = &accesses->items[i];
    Storage *home = NULL;
    for (int k = 0; k < out->count && !home; k++)
      if (buffers_alias(out->items[k].buffer, access->buffer)) home = &out->items[k];
    if (!home) {
      array_push(&context->arena, out, (Storage){.buffer = access->buffer});
      home = &array_last(out);
    }
    home->mixed |= home->buffer != access->buffer;
    array_push(&context->arena, &home->accesses, *access);
  }
}

static bool is_written(const Storage *storage) {
  for (int i = 0; i < storage->accesses.count; i++)
    if (storage->accesses.items[i].write) return true;
  return false;
}

// The number of the box with constant extent `width` that contains all accesses along an axis. NULL
// when there is no such width, or the boxes of different iterations could overlap.
static Expr *box_id(Schedule *schedule, Analyzer *analyzer, const Storage *storage, int axis) {
  Context *context = schedule->context;
  const Access *first = &storage->accesses.items[0];
  int64_t low = 0, high = 0;
  for (int i = 0; i < storage->accesses.count; i++) {
    const Access *a = &storage->accesses.items[i];
    int64_t delta, extent;
    Expr *difference =
        analyzer_simplify(analyzer, expr_sub(context, a->min[axis], first->min[axis]));
    if (!expr_as_int(difference, &delta) || !expr_as_int(a->extent[axis], &extent)) return NULL;
    low = MIN_OF(low, delta);
    high = MAX_OF(high, delta + extent);
  }
  int64_t width = high - low, divisor, rest;
  Expr *start =
      analyzer_simplify(analyzer, expr_add(context, first->min[axis], expr_index(context, low)));
  if (width <= 1) return start;
  modular_form(analyzer, start, &divisor, &rest);
  if (divisor % width) return NULL;
  return analyzer_simplify(analyzer, expr_floor_div(context, start, expr_index(context, width)));
}

typedef struct Chain {
  Schedule *schedule;
  Analyzer *analyzer; // has the facts of the loops above the body
  Stmt *const *loops; // outermost first
  int count;
  Stmt *body;
  AccessArray accesses; // of the body
  const char *why;
  const Path *path; // to the first of the loops, with `above` statements before it
  int above;
} Chain;

// Sets used[i] for the loops of the chain that the storage's indices depend on.
static void mark_used(const Chain *chain, const Storage *storage, bool *used) {
  for (int i = 0; i < chain->count; i++) {
    const Expr *var = chain->loops[i]->as.loop.var;
    used[i] = false;
    for (int a = 0; a < storage->accesses.count; a++)
      for (int d = 0; d < storage->buffer->rank; d++) {
        const Access *access = &storage->accesses.items[a];
        used[i] |= expr_uses(access->min[d], var) || expr_uses(access->extent[d], var);
        used[i] |= access->points && expr_uses(access->points[d], var);
      }
  }
}

// The boxes that one iteration of the chain accesses, without those that depend on memory. The
// caller adds the loops.
static Injection box_ids(const Chain *chain, const Storage *storage) {
  Arena *arena = &chain->schedule->context->arena;
  int rank = storage->buffer->rank;
  Injection q = {chain->schedule, chain->analyzer, arena_array(arena, Expr *, rank)};
  for (int d = 0; d < rank; d++) {
    Expr *id = box_id(chain->schedule, chain->analyzer, storage, d);
    if (id && !expr_reads_memory(id)) q.ids[q.id_count++] = id;
  }
  q.loops = arena_array(arena, VarRange, chain->count);
  return q;
}

static bool boxes_tell(const Chain *chain, const Storage *storage, const bool *used) {
  Injection q = box_ids(chain, storage);
  for (int i = 0; i < chain->count; i++)
    if (used[i]) q.loops[q.loop_count++] = loop_range(chain->loops[i]);
  return injection_is_proved(&q);
}

// Sets apart[i] for the loops that occur in the boxes' numbers. True when iterations that differ in
// one of these loops access different elements, whatever the other loops do.
static bool boxes_part(const Chain *chain, const Storage *storage, bool *apart) {
  if (storage->mixed || !storage->accesses.count) return false;
  Injection q = box_ids(chain, storage);
  for (int i = 0; i < chain->count; i++) {
    apart[i] = false;
    for (int k = 0; k < q.id_count; k++)
      apart[i] |= expr_uses(q.ids[k], chain->loops[i]->as.loop.var);
    if (apart[i]) q.loops[q.loop_count++] = loop_range(chain->loops[i]);
  }
  return q.loop_count && injection_is_proved(&q);
}

static bool same_points(const Access *a, const Access *b) {
  for (int d = 0; d < a->buffer->rank; d++)
    if (!a->points || !b->points || a->points[d] != b->points[d]) return false;
  return true;
}

// The indices that all accesses of the storage have in common, in an array of their own. The
// accesses must be those of one block to one element each; otherwise there are none.
static ExprArray common_points(const Chain *chain, const Storage *storage) {
  const Access *first = &storage->accesses.items[0];
  ExprArray points = {0};
  for (int d = 0; d < storage->buffer->rank; d++) {
    bool common = true;
    for (int i = 0; i < storage->accesses.count && common; i++) {
      const Access *a = &storage->accesses.items[i];
      if (a->block != first->block || !a->points) return (ExprArray){0};
      common = a->buffer->rank == first->buffer->rank && a->points[d] == first->points[d];
    }
    if (common) array_push(&chain->schedule->context->arena, &points, first->points[d]);
  }
  return points;
}

// The indices as numbers of the used loops of the chain and of those below it. The analyzer gets
// the ranges of the latter.
static Injection point_ids(const Chain *chain, const Access *access, const ExprArray *points,
                           const bool *used) {
  Context *context = chain->schedule->context;
  Injection q = {chain->schedule, chain->analyzer, points->items, points->count};
  q.loops =
      arena_array(&context->arena, VarRange, chain->above + chain->count + access->inner_count);
  for (int i = 0; i < chain->count; i++)
    if (used[i]) q.loops[q.loop_count++] = loop_range(chain->loops[i]);
  for (int i = 0; i < access->inner_count; i++) {
    const VarRange *inner = &access->inner[i];
    analyzer_bind(chain->analyzer, inner->var, inner->min, inner->extent);
    for (int d = 0; d < points->count; d++)
      if (expr_uses(points->items[d], inner->var)) {
        q.loops[q.loop_count++] = *inner;
        break;
      }
  }
  return q;
}

// For one block that accesses elements with common indices, such as S[t, i] and S[t - 1, i]: true
// when these determine the iterations of the used loops, and of the inner loops that they depend
// on. This may only be proved together with the loops above: a * 4 + b < n * m bounds b in
// (a * 4 + b) // m for all a, not for one of them.
static bool points_tell(const Chain *chain, const Storage *storage, const ExprArray *points,
                        const bool *used) {
  const Access *access = &storage->accesses.items[0];
  if (!points->count) return false;
  int mark = analyzer_mark(chain->analyzer);
  Injection q = point_ids(chain, access, points, used),
            all = point_ids(chain, access, points, used);
  injection_cut_numbers(&q, access->block->predicate);
  bool tell = injection_is_proved(&q);
  if (!tell && injection_add_outer(&all, chain->path, chain->above)) {
    injection_cut_numbers(&all, access->block->predicate);
    tell = injection_is_proved(&all);
  }
  analyzer_reset(chain->analyzer, mark);
  return tell;
}

// Sets apart[i] for the loops that occur in common indices. True as for boxes_part.
static bool points_part(const Chain *chain, const Storage *storage, bool *apart) {
  if (storage->mixed || !storage->accesses.count) return false;
  const ExprArray points = common_points(chain, storage);
  bool any = false;
  for (int i = 0; i < chain->count; i++) {
    apart[i] = false;
    for (int d = 0; d < points.count; d++)
      apart[i] |= expr_uses(points.items[d], chain->loops[i]->as.loop.var);
    any |= apart[i];
  }
  return any && points_tell(chain, storage, &points, apart);
}

static bool elements_part(const Chain *chain, const Storage *storage, bool *apart) {
  return boxes_part(chain, storage, apart) || points_part(chain, storage, apart);
}

// Sets used[i] for the loops that the indices depend on. True when the accessed elements determine
// the iterations of these loops.
static bool tells_iterations(const Chain *chain, const Storage *storage, bool *used) {
  mark_used(chain, storage, used);
  if (storage->mixed || !storage->accesses.count) return false;
  if (boxes_tell(chain, storage, used)) return true;
  const ExprArray points = common_points(chain, storage);
  return points_tell(chain, storage, &points, used);
}

// ---- Private storage -------------------------------------------------------------------------

typedef struct CountUses {
  const Buffer *buffer;
  int uses;
} CountUses;

static bool count_expr(Visitor *visitor, Expr *e) {
  CountUses *count = visitor->env;
  if (e->op == EXPR_LOAD && buffers_alias(e->as.buffer, count->buffer)) count->uses++;
  if (e == count->buffer->data) count->uses++;
  return true;
}

static bool count_stmt(Visitor *visitor, Stmt *s) {
  CountUses *count = visitor->env;
  if (s->kind == STMT_STORE && buffers_alias(s->as.store.buffer, count->buffer)) count->uses++;
  return true;
}

// The number of accesses below `s` to a buffer's storage, and of other uses of its data pointer.
static int storage_uses(Stmt *s, const Buffer *buffer) {
  CountUses count = {buffer, 0};
  Visitor visitor = {.env = &count, .enter_expr = count_expr, .enter_stmt = count_stmt};
  visit_stmt(&visitor, s);
  return count.uses;
}

bool buffer_is_parameter(const Schedule *schedule, const Buffer *buffer) {
  PrimFunc *func = schedule->func;
  for (int i = 0; i < func->param_count; i++)
    if (func->buffers[i] && buffers_alias(func->buffers[i], buffer)) return true;
  return false;
}

// True when the loops of the block's reductions are between the chain and the block, so that one
// iteration of the chain computes its sums from the init on.
static bool reduces_below(const Chain *chain, const Access *access) {
  const Block *block = access->block;
  for (int i = 0; i < block->var_count; i++) {
    if (block->vars[i].kind != ITER_REDUCTION) continue;
    ExprArray vars = expr_variables(&chain->schedule->context->arena, block->vars[i].binding);
    for (int v = 0; v < vars.count; v++) {
      bool below = false;
      for (int k = 0; k < access->inner_count; k++) below |= access->inner[k].var == vars.items[v];
      if (!below) return false;
    }
  }
  return true;
}

// True when a loop below the statement of these accesses is around both.
static bool share_loop(const Access *a, const Access *b) {
  return a->inner_count && b->inner_count && a->inner[0].var == b->inner[0].var;
}

static bool is_whole_axis(const Chain *chain, const Access *a, int axis) {
  Context *context = chain->schedule->context;
  Expr *end = expr_add(context, a->min[axis], a->extent[axis]);
  Expr *zero = expr_index(context, 0), *all = a->buffer->shape[axis];
  return analyzer_prove(chain->analyzer, expr_binary(context, EXPR_LE, a->min[axis], zero)) &&
         analyzer_prove(chain->analyzer, expr_binary(context, EXPR_LE, all, end));
}

// True when the elements that are read are among those that are written. The box around a read may
// exceed the buffer where a condition keeps the read inside: rows a * 5 // 8 to (a * 5 + 4) // 8.
static bool covers_elements(const Chain *chain, const Access *w, const Access *r) {
  Context *context = chain->schedule->context;
  int rank = r->buffer->rank;
  Region outer = {w->buffer, w->min, w->extent}, inner = {r->buffer};
  if (w->buffer != r->buffer) rank = 0;
  inner.min = arena_copy(&context->arena, r->min, (size_t)r->buffer->rank * sizeof *r->min);
  inner.extent = arena_copy(&context->arena, r->extent, (size_t)r->buffer->rank * sizeof *r->min);
  for (int i = 0; i < rank; i++)
    if ((w->min[i] != r->min[i] || w->extent[i] != r->extent[i]) && is_whole_axis(chain, w, i)) {
      inner.min[i] = w->min[i];
      inner.extent[i] = w->extent[i];
    }
  return region_covers(chain->analyzer, &outer, &inner);
}

// True when all of the write precedes the read, with all elements that are read. A block reads an
// element that its own init set first.
static bool covers_read(const Chain *chain, const Access *w, const Access *r, bool precedes) {
  if (!w->write || !w->exact || !reduces_below(chain, w) ||
      !block_writes_whole_domain(chain->schedule, w->block, chain->analyzer))
    return false;
  if (w->block == r->block) return w->block->init && same_points(w, r);
  return precedes && !share_loop(w, r) && covers_elements(chain, w, r);
}

static bool covered_before(const Chain *chain, const Storage *storage, int read) {
  for (int i = 0; i < storage->accesses.count; i++)
    if (covers_read(chain, &storage->accesses.items[i], &storage->accesses.items[read], i < read))
      return true;
  return false;
}

static const Storage *storage_of(const StorageArray *all, const Buffer *buffer) {
  for (int i = 0; i < all->count; i++)
    if (buffers_alias(all->items[i].buffer, buffer)) return &all->items[i];
  return NULL;
}

typedef struct LoopByVariable {
  const Expr *var;
  Stmt *loop;
} LoopByVariable;

static bool find_loop_over(Visitor *visitor, Stmt *s) {
  LoopByVariable *search = visitor->env;
  if (s->kind == STMT_FOR && s->as.loop.var == search->var) search->loop = s;
  return !search->loop;
}

static bool reads_are_covered(const Chain *chain, Stmt *s, const Buffer *buffer,
                              const PtrArray *readers);

// The same in each iteration of the loop over this variable below `s`.
static bool covered_in_loop(const Chain *chain, Stmt *s, const Expr *var, const Buffer *buffer,
                            const PtrArray *readers) {
  LoopByVariable search = {.var = var};
  visit_stmt(&(Visitor){.env = &search, .enter_stmt = find_loop_over}, s);
  const Stmt *loop = search.loop;
  int mark = analyzer_mark(chain->analyzer);
  analyzer_bind(chain->analyzer, loop->as.loop.var, loop->as.loop.min, loop->as.loop.extent);
  bool covered = reads_are_covered(chain, loop->as.loop.body, buffer, readers);
  analyzer_reset(chain->analyzer, mark);
  return covered;
}

// True when each execution of the statement writes what these blocks (NULL: all) read in it, before
// they do. A read that shares a loop with its write is looked at in each iteration of that loop.
static bool reads_are_covered(const Chain *chain, Stmt *s, const Buffer *buffer,
                              const PtrArray *readers) {
  Context *context = chain->schedule->context;
  AccessArray accesses = {0};
  StorageArray all = {0};
  PtrArray loops = {0}, inside = {0};
  stmt_accesses_below(chain->schedule, chain->analyzer, s, &accesses);
  by_storage(context, &accesses, &all);
  const Storage *storage = storage_of(&all, buffer);
  for (int i = 0; storage && i < storage->accesses.count; i++) {
    const Access *a = &storage->accesses.items[i];
    bool wanted = !a->write && (!readers || ptr_array_contains(readers, a->block));
    if (!wanted || covered_before(chain, storage, i)) continue;
    if (!a->inner_count) return false;
    array_push(&context->arena, &inside, a->block);
    if (!ptr_array_contains(&loops, a->inner[0].var))
      array_push(&context->arena, &loops, a->inner[0].var);
  }
  for (int i = 0; i < loops.count; i++)
    if (!covered_in_loop(chain, s, loops.items[i], buffer, &inside)) return false;
  return true;
}

static bool is_private(const Chain *chain, const Storage *storage) {
  Schedule *schedule = chain->schedule;
  if (storage->mixed || buffer_is_parameter(schedule, storage->buffer)) return false;
  if (storage_uses(schedule->func->body, storage->buffer) !=
      storage_uses(chain->body, storage->buffer))
    return false;
  return reads_are_covered(chain, chain->body, storage->buffer, NULL);
}

// ---- Storage that always gets the same values --------------------------------------------------

static bool block_is_function(const Block *block) {
  if (block_is_reduction(block) || block->init || block->write_count != 1) return false;
  const Region *write = &block->writes[0];
  for (int i = 0; i < block->read_count; i++)
    if (buffers_alias(block->reads[i].buffer, write->buffer)) return false;
  for (int i = 0; i < block->var_count; i++) {
    bool alone = expr_is_int(block->vars[i].extent, 1);
    for (int d = 0; d < write->buffer->rank && !alone; d++)
      alone = write->min[d] == block->vars[i].var && expr_is_int(write->extent[d], 1);
    if (!alone) return false;
  }
  return true;
}

static bool is_always_the_same(const Chain *chain, const Storage *storage,
                               const StorageArray *all) {
  const Block *block = storage->accesses.items[0].block;
  for (int i = 0; i < storage->accesses.count; i++)
    if (storage->accesses.items[i].block != block || !storage->accesses.items[i].write)
      return false;
  if (!block_is_function(block)) return false;
  for (int k = 0; k < all->count; k++)
    for (int i = 0; i < block->read_count; i++)
      if (buffers_alias(all->items[k].buffer, block->reads[i].buffer) && is_written(&all->items[k]))
        return false;
  return true;
}

// ---- Reductions ------------------------------------------------------------------------------

static bool reduction_starts_first(const Chain *chain, const Block *block, const bool *used) {
  Context *context = chain->schedule->context;
  Map low = map_new(&context->arena);
  for (int i = 0; i < chain->count; i++)
    map_put(&low, chain->loops[i]->as.loop.var, chain->loops[i]->as.loop.min);
  Injection q = {chain->schedule, chain->analyzer,
                 arena_array(&context->arena, Expr *, block->var_count)};
  for (int i = 0; i < block->var_count; i++) {
    if (block->vars[i].kind != ITER_REDUCTION) continue;
    q.ids[q.id_count++] = block->vars[i].binding;
    Expr *first = substitute_expr(context, block->vars[i].binding, &low);
    for (int k = 0; k < chain->count; k++)
      if (used[k] && expr_uses(block->vars[i].binding, chain->loops[k]->as.loop.var)) return false;
    // With the chain at its first iteration, the binding has its minimum.
    Expr *least = expr_binary(context, EXPR_LE, first, block->vars[i].binding);
    if (!analyzer_prove(chain->analyzer, least)) return false;
  }
  q.loops = arena_array(&context->arena, VarRange, chain->count);
  for (int k = 0; k < chain->count; k++)
    if (!used[k] && loop_const_extent(chain->loops[k]) != 1)
      q.loops[q.loop_count++] = loop_range(chain->loops[k]);
  return injection_is_proved(&q);
}

static bool is_reduced(const Chain *chain, const Storage *storage, const bool *used) {
  const Block *block = storage->accesses.items[0].block;
  ReductionUpdate update;
  for (int i = 0; i < storage->accesses.count; i++)
    if (storage->accesses.items[i].block != block) return false;
  if (!reduction_update(block, &update)) return false;
  return !block->init || reduction_starts_first(chain, block, used);
}

static Chain chain_make(Schedule *schedule, const Path *path, int top, int bottom) {
  Chain chain = {.schedule = schedule,
                 .analyzer = path_analyzer(schedule, path, bottom + 1),
                 .count = bottom - top + 1,
                 .loops = path->items + top,
                 .path = path,
                 .above = top,
                 .body = path->items[bottom]->as.loop.body};
  stmt_accesses_below(schedule, chain.analyzer, chain.body, &chain.accesses);
  return chain;
}

bool buffer_is_private_below(Schedule *schedule, const Path *path, int depth,
                             const Buffer *buffer) {
  Chain chain = chain_make(schedule, path, depth, depth);
  StorageArray all = {0};
  by_storage(schedule->context, &chain.accesses, &all);
  const Storage *storage = storage_of(&all, buffer);
  return storage && is_private(&chain, storage);
}

bool buffer_writes_apart(Schedule *schedule, const Path *path, int depth, const Buffer *buffer) {
  Chain chain = chain_make(schedule, path, depth, depth);
  AccessArray writes = {0};
  StorageArray all = {0};
  bool used;
  for (int i = 0; i < chain.accesses.count; i++)
    if (chain.accesses.items[i].write && buffers_alias(chain.accesses.items[i].buffer, buffer))
      array_push(&schedule->context->arena, &writes, chain.accesses.items[i]);
  by_storage(schedule->context, &writes, &all);
  if (!all.count) return true;
  mark_used(&chain, &all.items[0], &used);
  return used && !all.items[0].mixed && boxes_tell(&chain, &all.items[0], &used);
}

// ---- The checks ------------------------------------------------------------------------------

static const char *reason_of(const Chain *chain, const Storage *storage) {
  const Access *first = NULL;
  for (int i = 0; i < storage->accesses.count && !first; i++)
    if (storage->accesses.items[i].write) first = &storage->accesses.items[i];
  return arena_printf(&chain->schedule->context->arena,
                      "block '%s' writes '%s', and iterations may access the same element",
                      first->block->name, storage->buffer->name);
}

// True when all iterations only add to one element, or take the minimum or maximum into it, without
// an init.
static bool only_combines(const Chain *chain, const Storage *storage, const bool *used) {
  const Block *block = storage->accesses.count ? storage->accesses.items[0].block : NULL;
  ReductionUpdate update;
  if (!block || *used || block->init || !is_reduced(chain, storage, used)) return false;
  reduction_update(block, &update);
  return !update.condition &&
         (update.op == EXPR_ADD || update.op == EXPR_MIN || update.op == EXPR_MAX);
}

static bool find_condition(Visitor *visitor, Stmt *s) {
  *(bool *)visitor->env |= s->kind == STMT_IF || s->kind == STMT_WHILE;
  return true;
}

// True when no data decide which elements the block accesses, or whether it does: a target whose
// threads run at once then finds that they share an element.
static bool runs_without_data(const Chain *chain, const Storage *storage, const Block *block) {
  bool conditional = expr_reads_memory(block->predicate);
  visit_stmt(&(Visitor){.env = &conditional, .enter_stmt = find_condition}, chain->body);
  for (int i = 0; i < storage->accesses.count; i++)
    for (int d = 0; d < storage->buffer->rank; d++)
      conditional |= expr_reads_memory(storage->accesses.items[i].min[d]) ||
                     !storage->accesses.items[i].points ||
                     expr_reads_memory(storage->accesses.items[i].points[d]);
  return !conditional;
}

static bool is_reduction_of_terms(const Chain *chain, const Storage *storage, const Block *block) {
  ReductionUpdate update;
  ReducedResults results;
  for (int i = 0; i < storage->accesses.count; i++)
    if (storage->accesses.items[i].block != block) return false;
  return (reduction_update(block, &update) && !update.condition) ||
         reduced_results_read(chain->schedule->context, block, &results);
}

// True when all iterations are terms of one reduction, of one result or several, which one block
// alone computes from its init.
static bool reduces_whole(const Chain *chain, const Storage *storage, const bool *used) {
  const Block *block = storage->accesses.count ? storage->accesses.items[0].block : NULL;
  return block && !*used && !storage->mixed && block->init &&
         runs_without_data(chain, storage, block) && is_reduction_of_terms(chain, storage, block) &&
         reduction_starts_first(chain, block, used);
}

// True when the predicates of all blocks below the loop hold in its first iteration alone.
static bool runs_in_one_iteration(Schedule *schedule, const Path *path, int depth) {
  const Stmt *loop = path->items[depth];
  StmtArray blocks = {0};
  blocks_innermost(&schedule->context->arena, loop->as.loop.body, &blocks);
  for (int i = 0; i < blocks.count; i++) {
    const Block *block = blocks.items[i]->as.block;
    Path below;
    if (block->init || expr_reads_memory(block->predicate) || expr_is_true(block->predicate) ||
        !path_to_stmt(schedule, blocks.items[i], &below))
      return false;
    Analyzer *analyzer = path_analyzer(schedule, &below, below.count - 1);
    analyzer_assume(analyzer, block->predicate);
    if (!analyzer_prove_equal(analyzer, loop->as.loop.var, loop->as.loop.min)) return false;
  }
  return blocks.count > 0;
}

bool loops_independent(Schedule *schedule, const Path *path, int depth, unsigned allow,
                       const char **why) {
  int64_t trips = loop_const_extent(path->items[depth]);
  if (trips == 0 || trips == 1) return true;
  if (stmt_has_loose_stores(path->items[depth]->as.loop.body)) {
    *why = "there are statements outside of blocks below it";
    return false;
  }
  if (runs_in_one_iteration(schedule, path, depth)) return true;
  Chain chain = chain_make(schedule, path, depth, depth);
  StorageArray all = {0};
  by_storage(schedule->context, &chain.accesses, &all);
  for (int i = 0; i < all.count; i++) {
    bool used;
    if (!is_written(&all.items[i])) continue;
    if (tells_iterations(&chain, &all.items[i], &used) && used) continue;
    if ((allow & ALLOW_PRIVATE) && is_private(&chain, &all.items[i])) continue;
    if ((allow & ALLOW_COMBINING) && only_combines(&chain, &all.items[i], &used)) continue;
    if ((allow & ALLOW_REDUCING) && reduces_whole(&chain, &all.items[i], &used)) continue;
    *why = reason_of(&chain, &all.items[i]);
    return false;
  }
  return true;
}

static int place_in(Stmt *const *loops, int count, const Stmt *loop) {
  for (int i = 0; i < count; i++)
    if (loops[i] == loop) return i;
  return -1;
}

// True when two loops that the storage's elements do not distinguish change their relative order.
static bool order_matters(const Chain *chain, Stmt *const *new_order, const bool *used) {
  for (int i = 0; i < chain->count; i++)
    for (int k = i + 1; k < chain->count; k++) {
      if (used[i] || used[k]) continue;
      if (loop_const_extent(chain->loops[i]) == 1 || loop_const_extent(chain->loops[k]) == 1)
        continue;
      if (place_in(new_order, chain->count, chain->loops[i]) >
          place_in(new_order, chain->count, chain->loops[k]))
        return true;
    }
  return false;
}

// Makes the chain of some loops, and finds the storage that the blocks below them access. False
// when there are stores outside of blocks.
static bool chain_storage(Schedule *schedule, const Path *path, int top, int bottom, Chain *out,
                          StorageArray *all) {
  *out = chain_make(schedule, path, top, bottom);
  if (stmt_has_loose_stores(out->body)) return false;
  by_storage(schedule->context, &out->accesses, all);
  return true;
}

bool path_order_is_free(Schedule *schedule, const Path *path, int top, int bottom,
                        Stmt *const *new_order, const char **why) {
  Chain chain;
  StorageArray all = {0};
  *why = "there are statements outside of blocks below them";
  if (!chain_storage(schedule, path, top, bottom, &chain, &all)) return false;
  bool *used = arena_array(&schedule->context->arena, bool, chain.count);
  for (int i = 0; i < all.count; i++) {
    Storage *storage = &all.items[i];
    if (!is_written(storage)) continue;
    bool tells = tells_iterations(&chain, storage, used);
    if (tells && (!order_matters(&chain, new_order, used) || is_reduced(&chain, storage, used)))
      continue;
    if (is_private(&chain, storage) || is_always_the_same(&chain, storage, &all)) continue;
    if (elements_part(&chain, storage, used) && !order_matters(&chain, new_order, used)) continue;
    *why = reason_of(&chain, storage);
    return false;
  }
  return true;
}

// True when the boxes that these indices begin do not overlap where they begin at different ones.
static bool boxes_stand_apart(Context *context, Analyzer *analyzer, const Region *write) {
  for (int d = 0; d < write->buffer->rank; d++) {
    Expr *extent = write->extent[d];
    if (expr_is_int(extent, 1)) continue;
    Expr *rest = expr_binary(context, EXPR_FLOOR_MOD, write->min[d], extent);
    if (extent->op != EXPR_INT ||
        !analyzer_prove_equal(analyzer, rest, expr_int(context, rest->type, 0)))
      return false;
  }
  return true;
}

bool block_writes_apart(Schedule *schedule, const Block *block, const bool *varying) {
  Context *context = schedule->context;
  for (int k = 0; k < block->write_count; k++) {
    const Region *write = &block->writes[k];
    Injection q = {schedule, analyzer_new(context), write->min, write->buffer->rank};
    block_bind_domain(q.analyzer, block);
    q.loops = arena_array(&context->arena, VarRange, block->var_count + 1);
    for (int i = 0; i < block->var_count; i++) {
      const BlockVar *v = &block->vars[i];
      if (v->kind != ITER_REDUCTION && !expr_is_int(v->extent, 1) && (!varying || varying[i]))
        q.loops[q.loop_count++] = (VarRange){v->var, v->min, v->extent};
    }
    if (q.loop_count &&
        (!boxes_stand_apart(context, q.analyzer, write) || !injection_is_proved(&q)))
      return false;
  }
  return true;
}

bool path_order_survives(Schedule *schedule, const Path *path, const char **why) {
  const Block *block = path_end(path)->as.block;
  ReductionUpdate update;
  if (block_is_function(block)) return true;
  *why = "its instances are not proved to be independent";
  return reduction_update(block, &update) && block->write_count == 1 &&
         block_writes_apart(schedule, block, NULL);
}

// True when the loops that are not used have one iteration.
static bool are_all_told(const Chain *chain, const bool *used) {
  for (int i = 0; i < chain->count; i++)
    if (!used[i] && loop_const_extent(chain->loops[i]) != 1) return false;
  return true;
}

bool path_iterations_are_independent(Schedule *schedule, const Path *path, int top, int bottom) {
  Chain chain;
  StorageArray all = {0};
  if (!chain_storage(schedule, path, top, bottom, &chain, &all)) return false;
  bool *used = arena_array(&schedule->context->arena, bool, chain.count);
  for (int i = 0; i < all.count; i++) {
    Storage *storage = &all.items[i];
    if (!is_written(storage)) continue;
    if (!tells_iterations(&chain, storage, used) && !elements_part(&chain, storage, used))
      return false;
    if (!are_all_told(&chain, used)) return false;
  }
  return true;
}

bool path_writes_tell_iterations(Schedule *schedule, const Path *path, int top,
                                 const Buffer *buffer) {
  Context *context = schedule->context;
  Chain chain = {.schedule = schedule,
                 .analyzer = path_analyzer(schedule, path, path->count),
                 .body = path_end(path)->as.loop.body};
  Stmt **loops = arena_array(&context->arena, Stmt *, path->count);
  for (int i = top; i < path->count; i++)
    if (path->items[i]->kind == STMT_FOR) loops[chain.count++] = path->items[i];
  chain.loops = loops;
  stmt_accesses_below(schedule, chain.analyzer, chain.body, &chain.accesses);
  Storage storage = {.buffer = (Buffer *)buffer};
  for (int i = 0; i < chain.accesses.count; i++) {
    const Access *a = &chain.accesses.items[i];
    if (!a->write || !buffers_alias(a->buffer, buffer)) continue;
    storage.mixed |= a->buffer != buffer;
    array_push(&context->arena, &storage.accesses, *a);
  }
  bool *used = arena_array(&context->arena, bool, chain.count);
  return tells_iterations(&chain, &storage, used) && are_all_told(&chain, used);
}

bool path_completes_buffer(Schedule *schedule, const Path *loop, const Buffer *buffer) {
  int scope = path_scope(loop, loop->count - 1), top = scope + 1;
  while (top < loop->count && loop->items[top]->kind != STMT_FOR) top++;
  for (int i = top; i < loop->count; i++)
    if (loop->items[i]->kind != STMT_FOR && loop->items[i]->kind != STMT_SEQ) return false;
  return path_writes_tell_iterations(schedule, loop, top, buffer);
}

// ---- What an iteration writes and reads --------------------------------------------------------

// True when the blocks that write the storage set each element before they add to it: their
// reductions run over their domains, so that one of their points is the first, where the init runs.
static bool sums_begin(Schedule *schedule, const Storage *storage) {
  for (int i = 0; i < storage->accesses.count; i++) {
    const Access *a = &storage->accesses.items[i];
    if (!a->write || !a->block->init || !block_is_reduction(a->block)) continue;
    Path path;
    path_to_block(schedule, a->block->name, &path);
    Analyzer *analyzer = path_analyzer(schedule, &path, path.count - 1);
    if (path_bindings_check(schedule, &path, analyzer, a->block)) return false;
  }
  return true;
}

bool loop_reads_own_writes(Schedule *schedule, const Path *path, int depth, const Buffer *buffer) {
  Chain chain = chain_make(schedule, path, depth, depth);
  StorageArray all = {0};
  by_storage(schedule->context, &chain.accesses, &all);
  const Storage *storage = storage_of(&all, buffer);
  return !storage || (!storage->mixed && sums_begin(schedule, storage) &&
                      reads_are_covered(&chain, chain.body, storage->buffer, NULL));
}

bool block_reads_own_writes(Schedule *schedule, const Path *path, const Buffer *buffer) {
  Chain chain = {.schedule = schedule,
                 .analyzer = path_analyzer(schedule, path, path->count),
                 .body = path_end(path)->as.block->body};
  stmt_accesses_below(schedule, chain.analyzer, chain.body, &chain.accesses);
  StorageArray all = {0};
  by_storage(schedule->context, &chain.accesses, &all);
  const Storage *storage = storage_of(&all, buffer);
  return storage && !storage->mixed && sums_begin(schedule, storage) &&
         reads_are_covered(&chain, chain.body, storage->buffer, NULL);
}

bool path_reduces_in_order(Schedule *schedule, const Path *path, int top) {
  Context *context = schedule->context;
  Stmt **loops = arena_array(&context->arena, Stmt *, path->count);
  Chain chain = {.schedule = schedule,
                 .analyzer = path_analyzer(schedule, path, path->count - 1),
                 .loops = loops,
                 .body = path_end(path)};
  for (int i = top; i < path->count - 1; i++)
    if (path->items[i]->kind == STMT_FOR) loops[chain.count++] = path->items[i];
  bool *used = arena_array(&context->arena, bool, chain.count + 1);
  StorageArray all = {0};
  stmt_accesses_below(schedule, chain.analyzer, chain.body, &chain.accesses);
  by_storage(context, &chain.accesses, &all);
  for (int i = 0; i < all.count; i++) {
    if (!is_written(&all.items[i])) continue;
    mark_used(&chain, &all.items[i], used);
    if (all.items[i].mixed || !is_reduced(&chain, &all.items[i], used)) return false;
    for (int k = 0; k < chain.count; k++) {
      LoopKind kind = chain.loops[k]->as.loop.kind;
      bool threads =
          kind == LOOP_THREAD && strncmp(chain.loops[k]->as.loop.thread, "threadIdx.", 10) == 0;
      if (!used[k] && kind != LOOP_SERIAL && kind != LOOP_UNROLLED && !threads) return false;
    }
  }
  return true;
}
