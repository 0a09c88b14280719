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
// The proofs use supersets of the accessed boxes, but a write that must cover a read has an exact
// box.
#include "schedule/internal.h"

// ---- Collecting ------------------------------------------------------------------------------

typedef struct Gather {
  Schedule *schedule;
  Analyzer *analyzer;
  AccessArray *out;
  Array(VarRange) loops;
  int conditions; // statements around that may not run what is in them
} Gather;

static bool depends(const Expr *e, const Gather *gather) {
  for (int i = 0; i < gather->loops.count; i++)
    if (expr_uses(e, gather->loops.items[i].var)) return true;
  return false;
}

Expr *predicate_end(Analyzer *analyzer, Context *context, Expr *conjunct, Expr *point) {
  if (conjunct->op != EXPR_LT || expr_reads_memory(conjunct)) return NULL;
  DType type = conjunct->args[0]->type;
  if (type.code != TYPE_INT || !dtype_equal(type, point->type)) return NULL;
  Expr *rest = expr_sub(context, conjunct->args[1], conjunct->args[0]);
  return analyzer_simplify(analyzer, expr_add(context, point, rest));
}

// Shortens the box to the elements for which the block's predicate can hold.
static void cut_by_predicate(Gather *gather, const Block *block, Access *access) {
  Context *context = gather->schedule->context;
  ExprArray conjuncts = {0};
  if (expr_is_true(block->predicate)) return;
  expr_conjuncts(context, block->predicate, &conjuncts);
  for (int i = 0; i < conjuncts.count; i++)
    for (int d = 0; d < access->buffer->rank; d++) {
      int64_t extent, shorter;
      Expr *end = predicate_end(gather->analyzer, context, conjuncts.items[i], access->points[d]);
      if (!end || depends(end, gather) || !expr_as_int(access->extent[d], &extent)) continue;
      Expr *length = analyzer_simplify(gather->analyzer, expr_sub(context, end, access->min[d]));
      if (expr_as_int(length, &shorter) && shorter > 0 && shorter < extent)
        access->extent[d] = expr_int(context, access->extent[d]->type, shorter);
    }
}

// Finds the box of tiles that have several elements, such as 4*i to 4*i + 4, by a loop over the
// elements of a tile along each axis: consecutive tiles are an exact box too.
static void box_of_tiles(Gather *gather, const Region *region, Expr *const *points,
                         const Map *bindings, Access *access) {
  Context *context = gather->schedule->context;
  int rank = region->buffer->rank, count = gather->loops.count,
      mark = analyzer_mark(gather->analyzer);
  VarRange *loops = arena_array(&context->arena, VarRange, count + rank);
  Expr **indices = arena_array(&context->arena, Expr *, rank);
  Access found = *access;
  found.min = arena_array(&context->arena, Expr *, rank);
  found.extent = arena_array(&context->arena, Expr *, rank);
  for (int i = 0; i < count; i++) loops[i] = gather->loops.items[i];
  for (int d = 0; d < rank; d++) {
    Expr *extent = substitute_expr(context, region->extent[d], bindings);
    indices[d] = points[d];
    if (expr_is_int(extent, 1)) continue;
    Expr *var = expr_var(context, "tile", points[d]->type), *zero = expr_int(context, var->type, 0);
    analyzer_bind(gather->analyzer, var, zero, expr_cast(context, var->type, extent));
    loops[count++] = (VarRange){var, zero, expr_cast(context, var->type, extent)};
    indices[d] = expr_add(context, points[d], var);
  }
  index_region(gather->analyzer, indices, rank, loops, count, found.min, found.extent,
               &found.exact);
  analyzer_reset(gather->analyzer, mark);
  for (int d = 0; d < rank; d++) found.exact &= found.min[d] != NULL;
  if (found.exact) *access = found;
}

static void add_access(Gather *gather, Block *block, const Region *region, bool write,
                       const Map *bindings) {
  Context *context = gather->schedule->context;
  Buffer *buffer = region->buffer;
  int rank = buffer->rank;
  int inner = gather->loops.count;
  Expr **points = arena_array(&context->arena, Expr *, rank);
  Access access = {
      block,
      write,
      buffer,
      arena_array(&context->arena, Expr *, rank),
      arena_array(&context->arena, Expr *, rank),
      true,
      points,
      arena_copy(&context->arena, gather->loops.items, sizeof(VarRange) * (size_t)inner),
      inner};
  for (int d = 0; d < rank; d++)
    points[d] =
        analyzer_simplify(gather->analyzer, substitute_expr(context, region->min[d], bindings));
  index_region(gather->analyzer, points, rank, gather->loops.items, gather->loops.count, access.min,
               access.extent, &access.exact);
  bool inexact = !access.exact, constant = true;
  for (int d = 0; d < rank; d++) {
    Expr *extent = substitute_expr(context, region->extent[d], bindings);
    constant &= extent->op == EXPR_INT;
    if (!expr_is_int(extent, 1)) access.points = NULL;
    if (access.min[d] && expr_is_int(extent, 1)) continue;
    if (!access.min[d] || depends(extent, gather)) {
      access.exact = false;
      access.min[d] = expr_index(context, 0);
      access.extent[d] = buffer->shape[d];
      continue;
    }
    Expr *more = expr_sub(context, extent, expr_index(context, 1));
    access.extent[d] =
        analyzer_simplify(gather->analyzer, expr_add(context, access.extent[d], more));
  }
  if (inexact && constant && !access.points)
    box_of_tiles(gather, region, points, bindings, &access);
  if (access.points) cut_by_predicate(gather, block, &access);
  if (gather->conditions) access.exact = false;
  array_push(&context->arena, gather->out, access);
}

typedef struct Predicate {
  Gather *gather;
  Block *block;
} Predicate;

static bool add_predicate_load(Visitor *visitor, Expr *e) {
  const Predicate *predicate = visitor->env;
  Context *context = predicate->gather->schedule->context;
  if (e->op != EXPR_LOAD) return true;
  Region region = {e->as.buffer, e->args, arena_array(&context->arena, Expr *, e->count)};
  for (int d = 0; d < e->count; d++) region.extent[d] = expr_int(context, e->args[d]->type, 1);
  Map none = map_new(&context->arena);
  add_access(predicate->gather, predicate->block, &region, false, &none);
  return true;
}

static void add_block(Gather *gather, Block *block) {
  Map bindings = bindings_of(gather->schedule->context, block);
  for (int i = 0; i < block->read_count; i++)
    add_access(gather, block, &block->reads[i], false, &bindings);
  for (int i = 0; i < block->write_count; i++)
    add_access(gather, block, &block->writes[i], true, &bindings);
  Predicate predicate = {gather, block};
  Visitor visitor = {.env = &predicate, .enter_expr = add_predicate_load};
  visit_expr(&visitor, block->predicate);
}

static void gather_accesses(Gather *gather, Stmt *s) {
  if (!s) return;
  if (s->kind == STMT_BLOCK) {
    add_block(gather, s->as.block);
    return;
  }
  int mark = analyzer_mark(gather->analyzer), loops = gather->loops.count;
  if (s->kind == STMT_FOR) {
    array_push(&gather->schedule->context->arena, &gather->loops, loop_range(s));
    analyzer_bind(gather->analyzer, s->as.loop.var, s->as.loop.min, s->as.loop.extent);
  }
  bool conditional = s->kind == STMT_IF || s->kind == STMT_WHILE;
  gather->conditions += conditional;
  int count = stmt_child_count(s);
  for (int i = 0; i < count; i++) gather_accesses(gather, stmt_child(s, i));
  gather->conditions -= conditional;
  gather->loops.count = loops;
  analyzer_reset(gather->analyzer, mark);
}

void stmt_accesses_below(Schedule *schedule, Analyzer *analyzer, Stmt *s, AccessArray *out) {
  Gather gather = {.schedule = schedule, .analyzer = analyzer, .out = out};
  gather_accesses(&gather, s);
}

bool accesses_union(Analyzer *analyzer, const AccessArray *accesses, const Block *block,
                    Buffer *buffer, Region *out) {
  bool any = false;
  for (int i = 0; i < accesses->count; i++) {
    const Access *a = &accesses->items[i];
    if (a->block != block || a->write || !buffers_alias(a->buffer, buffer)) continue;
    Region region = {buffer, a->min, a->extent};
    *out = any ? region_union(analyzer, out, &region) : region;
    any = true;
  }
  return any;
}

// ---- Injectivity -----------------------------------------------------------------------------

typedef struct Injection {
  Schedule *schedule;
  Analyzer *analyzer;
  Expr **ids; // one for each axis with a known box
  int id_count;
  VarRange *loops; // the map must be injective in these
  int loop_count;
} Injection;

static bool each_loop_alone(const Injection *q) {
  for (int i = 0; i < q->loop_count; i++) {
    bool alone = expr_is_int(q->loops[i].extent, 1);
    for (int k = 0; k < q->id_count && !alone; k++) alone = q->ids[k] == q->loops[i].var;
    if (!alone) return false;
  }
  return true;
}

typedef struct VarList {
  Arena *arena;
  ExprArray vars;
} VarList;

static bool list_var(Visitor *visitor, Expr *e) {
  VarList *list = visitor->env;
  if (e->op != EXPR_VAR) return true;
  for (int i = 0; i < list->vars.count; i++)
    if (list->vars.items[i] == e) return true;
  array_push(list->arena, &list->vars, e);
  return true;
}

// The extent of a variable's range, moved to start at 0 by subtracting *low: a constant, or a
// loop's symbolic extent. NULL when it is unknown.
static const LayoutExpr *axis_extent(const Injection *q, Expr *var, int64_t *low) {
  Context *context = q->schedule->context;
  int64_t high;
  *low = 0;
  if (analyzer_const_bounds(q->analyzer, var, low, &high))
    return layout_const(context, high - *low + 1);
  for (int i = 0; i < q->loop_count; i++)
    if (q->loops[i].var == var && expr_is_int(q->loops[i].min, 0))
      return layout_from_expr(context, q->loops[i].extent, NULL, 0, true);
  return NULL;
}

// An index as a layout expression over the axes, increased by a constant when it may be negative.
static const LayoutExpr *axis_output(const Injection *q, Expr *id, const Map *shift,
                                     const VarList *axes) {
  Context *context = q->schedule->context;
  int64_t low = 0, high;
  bool positive =
      analyzer_prove(q->analyzer, expr_binary(context, EXPR_GE, id, expr_index(context, 0)));
  if (!positive && !analyzer_const_bounds(q->analyzer, id, &low, &high)) return NULL;
  id = substitute_expr(context, id, shift);
  if (low < 0) id = expr_add(context, id, expr_index(context, -low));
  return layout_from_expr(context, id, axes->vars.items, axes->vars.count, false);
}

static LayoutFacts size_facts_of(const Schedule *schedule) {
  Map sizes = schedule_size_symbols(schedule);
  LayoutFact *facts = arena_array(&schedule->context->arena, LayoutFact, sizes.count);
  for (int i = 0; i < sizes.count; i++)
    facts[i] = (LayoutFact){(Str)(uintptr_t)sizes.entries[i].key, 1, INT32_MAX, 1};
  return (LayoutFacts){facts, sizes.count};
}

// The map (loops, other variables) -> (ids, other variables), on ranges that start at 0.
static const Layout *injection_layout(const Injection *q) {
  Context *context = q->schedule->context;
  VarList list = {&context->arena, {0}};
  for (int i = 0; i < q->loop_count; i++) array_push(list.arena, &list.vars, q->loops[i].var);
  Visitor visitor = {.env = &list, .enter_expr = list_var};
  for (int k = 0; k < q->id_count; k++) visit_expr(&visitor, q->ids[k]);
  int axes = list.vars.count, outputs = q->id_count + axes - q->loop_count;
  const LayoutExpr **shape = arena_array(&context->arena, const LayoutExpr *, axes);
  const LayoutExpr **maps = arena_array(&context->arena, const LayoutExpr *, outputs);
  Map shift = map_new(&context->arena);
  for (int i = 0; i < axes; i++) {
    int64_t low;
    Expr *var = list.vars.items[i];
    if (!(shape[i] = axis_extent(q, var, &low))) return NULL;
    if (low) map_put(&shift, var, expr_add(context, var, expr_index(context, low)));
  }
  for (int k = 0; k < q->id_count; k++)
    if (!(maps[k] = axis_output(q, q->ids[k], &shift, &list))) return NULL;
  for (int i = q->loop_count; i < axes; i++)
    maps[q->id_count + i - q->loop_count] = layout_axis(context, i);
  const IndexMap *map = index_map_new(context, axes, NULL, outputs, maps, NULL, NULL, 0);
  int diags = context->diags.count, errors = context->error_count;
  LayoutPadding any = {LAYOUT_PADDING_ANY, 0};
  const Layout *layout =
      layout_new(context, map, shape, NULL, size_facts_of(q->schedule), any, (SourcePos){0});
  context->diags.count = diags; // a map that does not fit is no mistake of the user
  context->error_count = errors;
  return layout;
}

static bool uses_loops_alone(const Injection *q, Expr *id) {
  VarList list = {&q->schedule->context->arena, {0}};
  Visitor visitor = {.env = &list, .enter_expr = list_var};
  visit_expr(&visitor, id);
  for (int i = 0; i < list.vars.count; i++) {
    bool found = false;
    for (int k = 0; k < q->loop_count && !found; k++) found = q->loops[k].var == list.vars.items[i];
    if (!found) return false;
  }
  return true;
}

// The same map without the terms of the other variables, which add the same to all elements of an
// index: i_0 * 4 + i_1 becomes i_1 where only i_1 counts. An index that is no such sum stays, and
// one with a load too, whose value may change between the iterations.
static Injection without_fixed_terms(const Injection *q) {
  Context *context = q->schedule->context;
  Injection result = *q;
  result.ids = arena_array(&context->arena, Expr *, q->id_count);
  Map first = map_new(&context->arena);
  for (int i = 0; i < q->loop_count; i++) map_put(&first, q->loops[i].var, q->loops[i].min);
  for (int k = 0; k < q->id_count; k++) {
    Expr *fixed = substitute_expr(context, q->ids[k], &first);
    Expr *rest = analyzer_simplify(q->analyzer, expr_sub(context, q->ids[k], fixed));
    bool keeps = expr_reads_memory(q->ids[k]) || !uses_loops_alone(q, rest);
    result.ids[k] = keeps ? q->ids[k] : rest;
  }
  return result;
}

static bool is_injective(const Injection *given) {
  if (each_loop_alone(given)) return true;
  if (!given->id_count) return false;
  const Injection reduced = without_fixed_terms(given), *q = &reduced;
  if (each_loop_alone(q)) return true;
  const Layout *layout = injection_layout(q);
  return layout && layout_is_injective(q->schedule->context, layout).verdict == VERDICT_YES;
}

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
  return is_injective(&q);
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
  return q.loop_count && is_injective(&q);
}

static bool same_points(const Access *a, const Access *b) {
  for (int d = 0; d < a->buffer->rank; d++)
    if (!a->points || !b->points || a->points[d] != b->points[d]) return false;
  return true;
}

// A sum of several loops with an upper bound from a predicate, such as t*6 + r < 448 after a split
// that does not divide the extent.
typedef struct CutNumber {
  Expr *number, *var; // the variable stands for all values of the number
} CutNumber;

static Expr *put_number(Rewriter *rewriter, Expr *e) {
  const CutNumber *cut = rewriter->env;
  return e == cut->number ? cut->var : e;
}

// Moves the number's loops to the front of q's loops; returns their count, or 0 when one is not in
// `q`.
static int loops_of_number(Injection *q, const CutNumber *cut) {
  VarList list = {&q->schedule->context->arena, {0}};
  Visitor visitor = {.env = &list, .enter_expr = list_var};
  visit_expr(&visitor, cut->number);
  int count = 0;
  for (int i = 0; i < q->loop_count; i++)
    for (int k = 0; k < list.vars.count; k++)
      if (q->loops[i].var == list.vars.items[k]) {
        VarRange front = q->loops[count];
        q->loops[count++] = q->loops[i];
        q->loops[i] = front;
        break;
      }
  return count == list.vars.count ? count : 0;
}

// Replaces the number by one variable, when its loops occur in no other index and determine it.
// Iterations that the predicate excludes then need not be distinguished.
static void cut_number(Injection *q, Expr *number, Expr *end) {
  Context *context = q->schedule->context;
  Expr *zero = expr_index(context, 0), **ids = arena_array(&context->arena, Expr *, q->id_count);
  CutNumber cut = {number, expr_var(context, "number", number->type)};
  int count = number->op == EXPR_VAR ? 0 : loops_of_number(q, &cut);
  if (!count || !analyzer_prove(q->analyzer, expr_binary(context, EXPR_GE, number, zero))) return;
  for (int k = 0; k < q->id_count; k++) {
    Rewriter rewriter = {.context = context, .env = &cut, .expr = put_number};
    ids[k] = rewrite_expr(&rewriter, q->ids[k]);
    for (int i = 0; i < count; i++)
      if (expr_uses(ids[k], q->loops[i].var)) return;
  }
  Injection alone = {q->schedule, q->analyzer, &cut.number, 1, q->loops, count};
  if (!is_injective(&alone)) return;
  analyzer_bind(q->analyzer, cut.var, zero, end);
  q->ids = ids;
  q->loops[count - 1] = (VarRange){cut.var, zero, end};
  q->loops += count - 1;
  q->loop_count -= count - 1;
}

static void cut_numbers(Injection *q, const Expr *predicate) {
  int64_t end;
  if (predicate->op == EXPR_AND) {
    cut_numbers(q, predicate->args[0]);
    cut_numbers(q, predicate->args[1]);
  } else if (predicate->op == EXPR_LT && expr_as_int(predicate->args[1], &end)) {
    cut_number(q, predicate->args[0], predicate->args[1]);
  }
}

// For one block that accesses one element per instance: true when the element determines the
// iterations of the used loops, and of the inner loops too.
static bool points_tell(const Chain *chain, const Storage *storage, const bool *used) {
  Context *context = chain->schedule->context;
  const Access *access = &storage->accesses.items[0];
  for (int i = 0; i < storage->accesses.count; i++)
    if (storage->accesses.items[i].block != access->block ||
        !same_points(access, &storage->accesses.items[i]))
      return false;
  Injection q = {chain->schedule, chain->analyzer, access->points, access->buffer->rank};
  q.loops = arena_array(&context->arena, VarRange, chain->count + access->inner_count);
  for (int i = 0; i < chain->count; i++)
    if (used[i]) q.loops[q.loop_count++] = loop_range(chain->loops[i]);
  int mark = analyzer_mark(chain->analyzer);
  for (int i = 0; i < access->inner_count; i++) {
    const VarRange *inner = &access->inner[i];
    analyzer_bind(chain->analyzer, inner->var, inner->min, inner->extent);
    for (int d = 0; d < access->buffer->rank; d++)
      if (expr_uses(access->points[d], inner->var)) {
        q.loops[q.loop_count++] = *inner;
        break;
      }
  }
  cut_numbers(&q, access->block->predicate);
  bool tell = is_injective(&q);
  analyzer_reset(chain->analyzer, mark);
  return tell;
}

// Sets used[i] for the loops that the indices depend on. True when the accessed elements determine
// the iterations of these loops.
static bool tells_iterations(const Chain *chain, const Storage *storage, bool *used) {
  mark_used(chain, storage, used);
  return !storage->mixed && storage->accesses.count &&
         (boxes_tell(chain, storage, used) || points_tell(chain, storage, used));
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
    VarList list = {&chain->schedule->context->arena, {0}};
    Visitor visitor = {.env = &list, .enter_expr = list_var};
    if (block->vars[i].kind != ITER_REDUCTION) continue;
    visit_expr(&visitor, block->vars[i].binding);
    for (int v = 0; v < list.vars.count; v++) {
      bool below = false;
      for (int k = 0; k < access->inner_count; k++)
        below |= access->inner[k].var == list.vars.items[v];
      if (!below) return false;
    }
  }
  return true;
}

// True when the write precedes the read in each iteration, with all elements that are read. A block
// reads an element that its own init set first.
static bool covers_read(const Chain *chain, const Access *w, const Access *r, bool precedes) {
  Region inner = {r->buffer, r->min, r->extent};
  Region outer = {w->buffer, w->min, w->extent};
  if (!w->write || !w->exact || !reduces_below(chain, w) ||
      !block_writes_whole_domain(chain->schedule, w->block, chain->analyzer))
    return false;
  if (w->block == r->block) return w->block->init && same_points(w, r);
  return precedes && region_covers(chain->analyzer, &outer, &inner);
}

static bool covered_before(const Chain *chain, const Storage *storage, int read) {
  for (int i = 0; i < storage->accesses.count; i++)
    if (covers_read(chain, &storage->accesses.items[i], &storage->accesses.items[read], i < read))
      return true;
  return false;
}

static bool all_covered_before(const Chain *chain, const Storage *storage) {
  for (int i = 0; i < storage->accesses.count; i++)
    if (!storage->accesses.items[i].write && !covered_before(chain, storage, i)) return false;
  return true;
}

static bool is_private(const Chain *chain, const Storage *storage) {
  Schedule *schedule = chain->schedule;
  if (storage->mixed || buffer_is_parameter(schedule, storage->buffer)) return false;
  if (storage_uses(schedule->func->body, storage->buffer) !=
      storage_uses(chain->body, storage->buffer))
    return false;
  return all_covered_before(chain, storage);
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
  return is_injective(&q);
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
                 .body = path->items[bottom]->as.loop.body};
  stmt_accesses_below(schedule, chain.analyzer, chain.body, &chain.accesses);
  return chain;
}

bool buffer_is_private_below(Schedule *schedule, const Path *path, int depth,
                             const Buffer *buffer) {
  Chain chain = chain_make(schedule, path, depth, depth);
  StorageArray all = {0};
  by_storage(schedule->context, &chain.accesses, &all);
  for (int i = 0; i < all.count; i++)
    if (buffers_alias(all.items[i].buffer, buffer)) return is_private(&chain, &all.items[i]);
  return false;
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

// True when no data decide which elements the block updates, or whether it does: a target whose
// threads run at once then finds that they share an element.
static bool updates_without_data(const Chain *chain, const Storage *storage, const Block *block) {
  bool conditional = expr_reads_memory(block->predicate);
  ReductionUpdate update;
  visit_stmt(&(Visitor){.env = &conditional, .enter_stmt = find_condition}, chain->body);
  for (int i = 0; i < storage->accesses.count; i++)
    for (int d = 0; d < storage->buffer->rank; d++)
      conditional |= expr_reads_memory(storage->accesses.items[i].min[d]) ||
                     !storage->accesses.items[i].points ||
                     expr_reads_memory(storage->accesses.items[i].points[d]);
  return reduction_update(block, &update) && !update.condition && !conditional;
}

// True when all iterations are terms of one reduction, which one block alone computes from its
// init.
static bool reduces_whole(const Chain *chain, const Storage *storage, const bool *used) {
  const Block *block = storage->accesses.count ? storage->accesses.items[0].block : NULL;
  return block && !*used && !storage->mixed && block->init &&
         updates_without_data(chain, storage, block) && is_reduced(chain, storage, used);
}

bool loops_independent(Schedule *schedule, const Path *path, int depth, unsigned allow,
                       const char **why) {
  int64_t trips = loop_const_extent(path->items[depth]);
  if (trips == 0 || trips == 1) return true;
  if (stmt_has_loose_stores(path->items[depth]->as.loop.body)) {
    *why = "there are statements outside of blocks below it";
    return false;
  }
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
    if (boxes_part(&chain, storage, used) && !order_matters(&chain, new_order, used)) continue;
    *why = reason_of(&chain, storage);
    return false;
  }
  return true;
}

bool path_order_survives(const Path *path, const char **why) {
  const Block *block = path_end(path)->as.block;
  ReductionUpdate update;
  if (block_is_function(block)) return true;
  *why = "its instances are not proved to be independent";
  if (!reduction_update(block, &update) || block->write_count != 1) return false;
  for (int i = 0; i < block->var_count; i++) {
    const BlockVar *v = &block->vars[i];
    bool alone = v->kind == ITER_REDUCTION || expr_is_int(v->extent, 1);
    for (int d = 0; d < block->writes[0].buffer->rank && !alone; d++)
      alone = block->writes[0].min[d] == v->var;
    if (!alone) return false;
  }
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
    if (!tells_iterations(&chain, storage, used) && !boxes_part(&chain, storage, used))
      return false;
    for (int k = 0; k < chain.count; k++)
      if (!used[k] && loop_const_extent(chain.loops[k]) != 1) return false;
  }
  return true;
}

bool path_writes_tell_iterations(Schedule *schedule, const Path *path, int top,
                                 const Buffer *buffer) {
  Context *context = schedule->context;
  Chain chain = {.schedule = schedule,
                 .analyzer = path_analyzer(schedule, path, path->count),
                 .loops = arena_array(&context->arena, Stmt *, path->count),
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
  if (!tells_iterations(&chain, &storage, used)) return false;
  for (int i = 0; i < chain.count; i++)
    if (!used[i] && loop_const_extent(chain.loops[i]) != 1) return false;
  return true;
}

bool path_completes_buffer(Schedule *schedule, const Path *loop, const Buffer *buffer) {
  int scope = path_scope(loop, loop->count - 1), top = scope + 1;
  while (top < loop->count && loop->items[top]->kind != STMT_FOR) top++;
  for (int i = top; i < loop->count; i++)
    if (loop->items[i]->kind != STMT_FOR && loop->items[i]->kind != STMT_SEQ) return false;
  return path_writes_tell_iterations(schedule, loop, top, buffer);
}

// ---- What an iteration writes and reads --------------------------------------------------------

// Does the block write padding that has a content with the other elements? A predicate may keep it
// out of padding.
static bool writes_padding(const Block *block, const Buffer *buffer) {
  const Layout *layout = buffer->layout;
  bool content = layout && layout->padding.kind == LAYOUT_PADDING_CONSTANT;
  return !content || expr_is_true(block->predicate);
}

Written accesses_written(Schedule *schedule, Analyzer *analyzer, const AccessArray *accesses,
                         const Buffer *buffer, Region *out) {
  bool any = false, full = false;
  for (int i = 0; i < accesses->count; i++) {
    const Access *a = &accesses->items[i];
    if (!a->write || a->buffer != buffer) continue;
    Region region = {a->buffer, a->min, a->extent};
    *out = any ? region_union(analyzer, out, &region) : region;
    any = true;
  }
  for (int i = 0; i < accesses->count && !full; i++) {
    const Access *a = &accesses->items[i];
    Region region = {a->buffer, a->min, a->extent};
    full = a->write && a->buffer == buffer && a->exact && region_covers(analyzer, &region, out) &&
           block_writes_whole_domain(schedule, a->block, analyzer) &&
           writes_padding(a->block, buffer);
  }
  return !any ? WRITTEN_NOTHING : full ? WRITTEN_BOX : WRITTEN_PARTS;
}

bool loop_reads_own_writes(Schedule *schedule, const Path *path, int depth, const Buffer *buffer) {
  Chain chain = chain_make(schedule, path, depth, depth);
  StorageArray all = {0};
  by_storage(schedule->context, &chain.accesses, &all);
  for (int i = 0; i < all.count; i++)
    if (buffers_alias(all.items[i].buffer, buffer))
      return !all.items[i].mixed && all_covered_before(&chain, &all.items[i]);
  return true;
}

bool block_reads_own_writes(Schedule *schedule, const Path *path, const Buffer *buffer) {
  Chain chain = {.schedule = schedule,
                 .analyzer = path_analyzer(schedule, path, path->count),
                 .body = path_end(path)->as.block->body};
  stmt_accesses_below(schedule, chain.analyzer, chain.body, &chain.accesses);
  StorageArray all = {0};
  by_storage(schedule->context, &chain.accesses, &all);
  for (int i = 0; i < all.count; i++)
    if (buffers_alias(all.items[i].buffer, buffer))
      return !all.items[i].mixed && all_covered_before(&chain, &all.items[i]);
  return false;
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
