// SPDX-License-Identifier: Apache-2.0
// Collects the accesses of the blocks below a statement: for each region that a block reads or
// writes, the box of elements that it covers over all iterations of the loops between, in terms of
// the loops above. For block C, seen from below the loop i:
//
//   for i in range(8):                 writes C[i, 0:16]
//     for j in range(16):        →     reads  A[i, 2:18]
//       C[i, j] = A[i, j + 2]
//
// A box is a superset of the accessed elements. It is exact when every element is accessed, apart
// from those that the block's predicate excludes; below a condition none is exact. An index without
// a box in terms of the loops above, such as one with a load, gives the whole axis.
#include "schedule/aliases.h"
#include "schedule/internal.h"

typedef struct Gather {
  Schedule *schedule;
  Analyzer *analyzer;
  AccessArray *out;
  Stmt *whole;      // the memory that is written in it may change between the accesses
  StmtArray blocks; // in `whole`, once one is asked for
  Array(VarRange) loops;
  int conditions; // statements around that may not run what is in them
} Gather;

typedef struct LoadCheck {
  Analyzer *analyzer;
  Context *context;
  bool outside; // a load may be out of bounds
} LoadCheck;

static bool note_load(Visitor *visitor, Expr *e) {
  LoadCheck *check = visitor->env;
  const Buffer *buffer = e->as.buffer;
  Expr *zero = expr_index(check->context, 0);
  for (int d = 0; e->op == EXPR_LOAD && d < buffer->rank; d++)
    check->outside |= !analyzer_prove_within(check->analyzer, e->args[d], zero, buffer->shape[d]);
  return true;
}

bool loads_stay_within(Analyzer *analyzer, Context *context, Expr *e) {
  LoadCheck check = {analyzer, context, false};
  visit_expr(&(Visitor){.env = &check, .enter_expr = note_load}, e);
  return !check.outside;
}

// True when an index reads memory that is not proved to be in bounds for all iterations of the
// loops, or that a block writes.
static bool is_unstable(Gather *gather, Expr *e) {
  if (!expr_reads_memory(e)) return false;
  if (!loads_stay_within(gather->analyzer, gather->schedule->context, e)) return true;
  if (!gather->blocks.count)
    blocks_all(&gather->schedule->context->arena, gather->whole, &gather->blocks);
  for (int i = 0; i < gather->blocks.count; i++) {
    const Block *block = gather->blocks.items[i]->as.block;
    for (int k = 0; k < block->write_count; k++)
      if (expr_reads(e, block->writes[k].buffer)) return true;
  }
  return false;
}

static bool depends(const Expr *e, const Gather *gather) {
  return expr_uses_ranges(e, gather->loops.items, gather->loops.count);
}

// The greatest value of `point` where the conjunct holds, the same for all iterations of the loops.
static Expr *predicate_last(Analyzer *analyzer, Context *context, Expr *conjunct, Expr *point,
                            const VarRange *loops, int count) {
  Expr *rest = expr_sub(context, conjunct->args[1], conjunct->args[0]);
  rest = expr_sub(context, expr_add(context, point, rest), expr_int(context, point->type, 1));
  Expr *last = analyzer_simplify(analyzer, rest);
  int64_t divisor;
  if (!expr_uses_ranges(last, loops, count)) return last;
  if (point->op == EXPR_FLOOR_DIV && expr_as_int(point->args[1], &divisor) && divisor > 0) {
    last = predicate_last(analyzer, context, conjunct, point->args[0], loops, count);
    return last ? expr_floor_div(context, last, point->args[1]) : NULL;
  }
  for (int i = 0; i < 2 && point->op == EXPR_ADD; i++) {
    if (expr_uses_ranges(point->args[i], loops, count)) continue;
    last = predicate_last(analyzer, context, conjunct, point->args[1 - i], loops, count);
    return last ? expr_add(context, point->args[i], last) : NULL;
  }
  return NULL;
}

Expr *predicate_end(Analyzer *analyzer, Context *context, Expr *conjunct, Expr *point,
                    const VarRange *loops, int count) {
  if (conjunct->op != EXPR_LT || expr_reads_memory(conjunct)) return NULL;
  DType type = conjunct->args[0]->type;
  if (type.code != TYPE_INT || !dtype_equal(type, point->type)) return NULL;
  Expr *last = predicate_last(analyzer, context, conjunct, point, loops, count);
  if (!last) return NULL;
  return analyzer_simplify(analyzer, expr_add(context, last, expr_int(context, last->type, 1)));
}

// The indices where the conjuncts of a predicate hold: with 4*i + j < 10, (10*k + 4*i + j) // 10
// is k.
static Expr **points_within(Gather *gather, const ExprArray *conjuncts, Expr **points, int rank) {
  bool same = true;
  if (!conjuncts->count) return points;
  Expr **within = arena_array(&gather->schedule->context->arena, Expr *, rank);
  int mark = analyzer_mark(gather->analyzer);
  for (int i = 0; i < conjuncts->count; i++)
    if (!expr_reads_memory(conjuncts->items[i]))
      analyzer_assume(gather->analyzer, conjuncts->items[i]);
  for (int d = 0; d < rank; d++) {
    within[d] = analyzer_simplify(gather->analyzer, points[d]);
    same &= within[d] == points[d];
  }
  analyzer_reset(gather->analyzer, mark);
  return same ? points : within;
}

// True when the point is not in the access's box where the conjunct does not hold.
static bool is_excluded(Gather *gather, Expr *conjunct, const Region *point, const Access *access) {
  Context *context = gather->schedule->context;
  Map none = map_new(&context->arena);
  if (predicate_excludes_outside(context, gather->schedule, gather->analyzer, conjunct, point,
                                 &none))
    return true;
  int mark = analyzer_mark(gather->analyzer);
  bool outside = false;
  analyzer_assume(gather->analyzer, expr_unary(context, EXPR_NOT, conjunct));
  for (int d = 0; d < point->buffer->rank && !outside; d++) {
    Expr *end = expr_add(context, access->min[d], access->extent[d]);
    outside = analyzer_prove(gather->analyzer, expr_binary(context, EXPR_LE, end, point->min[d]));
  }
  analyzer_reset(gather->analyzer, mark);
  return outside;
}

// True when all elements in the box of the points within are accessed. These points are right only
// where the conjuncts hold: they are not in the box elsewhere, or do not depend on the loops that
// decide the conjunct.
static bool box_is_within(Gather *gather, const ExprArray *conjuncts, const Region *within,
                          const Access *access) {
  for (int i = 0; i < conjuncts->count; i++) {
    Expr *conjunct = conjuncts->items[i];
    bool used = false;
    for (int k = 0; k < gather->loops.count; k++) {
      const Expr *var = gather->loops.items[k].var;
      for (int d = 0; expr_uses(conjunct, var) && d < within->buffer->rank; d++)
        used |= expr_uses(within->min[d], var);
    }
    if (used && !is_excluded(gather, conjunct, within, access)) return false;
  }
  return true;
}

// Shortens the box to the elements for which the conjuncts of a predicate can hold.
static void cut_by_predicate(Gather *gather, const ExprArray *conjuncts, Expr *const *points,
                             Access *access) {
  Context *context = gather->schedule->context;
  for (int i = 0; i < conjuncts->count; i++)
    for (int d = 0; d < access->buffer->rank; d++) {
      int64_t extent, shorter;
      Expr *end = predicate_end(gather->analyzer, context, conjuncts->items[i], points[d],
                                gather->loops.items, gather->loops.count);
      if (!end || !expr_as_int(access->extent[d], &extent)) continue;
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

// Leaves out elements that the buffer does not have, which only a condition in the block excludes.
static void cut_to_buffer(Context *context, Access *access) {
  for (int d = 0; d < access->buffer->rank; d++) {
    int64_t min, extent, all;
    if (!expr_as_int(access->min[d], &min) || !expr_as_int(access->extent[d], &extent) ||
        !expr_as_int(access->buffer->shape[d], &all))
      continue;
    int64_t begin = MAX_OF(min, 0), end = MIN_OF(min + extent, all);
    if (begin >= end || (begin == min && end == min + extent)) continue;
    access->min[d] = expr_int(context, access->min[d]->type, begin);
    access->extent[d] = expr_int(context, access->extent[d]->type, end - begin);
  }
}

// Makes the box of first elements that of the regions. An index that has no bounds in terms of the
// loops above gives the whole axis. False where an extent is no constant.
static bool widen_box(Gather *gather, const Region *region, Expr *const *points,
                      const Map *bindings, Access *access) {
  Context *context = gather->schedule->context;
  bool constant = true;
  for (int d = 0; d < region->buffer->rank; d++) {
    Expr *extent = substitute_expr(context, region->extent[d], bindings);
    bool unstable = is_unstable(gather, points[d]) || is_unstable(gather, extent);
    constant &= extent->op == EXPR_INT && !unstable;
    if (unstable || !expr_is_int(extent, 1)) access->points = NULL;
    if (access->min[d] && expr_is_int(extent, 1) && !unstable) continue;
    if (!access->min[d] || depends(extent, gather) || unstable) {
      access->exact = false;
      access->min[d] = expr_index(context, 0);
      access->extent[d] = region->buffer->shape[d];
      continue;
    }
    Expr *more = expr_sub(context, extent, expr_index(context, 1));
    access->extent[d] =
        analyzer_simplify(gather->analyzer, expr_add(context, access->extent[d], more));
  }
  return constant;
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
  ExprArray conjuncts = {0}; // of the predicate
  expr_conjuncts(context, block->predicate, &conjuncts);
  Expr **within = points_within(gather, &conjuncts, points, rank);
  index_region(gather->analyzer, within, rank, gather->loops.items, gather->loops.count, access.min,
               access.extent, &access.exact);
  bool inexact = !access.exact, constant = widen_box(gather, region, points, bindings, &access);
  if (inexact && constant && !access.points)
    box_of_tiles(gather, region, points, bindings, &access);
  if (access.points) cut_by_predicate(gather, &conjuncts, within, &access);
  if (within != points && access.exact)
    access.exact =
        box_is_within(gather, &conjuncts, &(Region){buffer, within, region->extent}, &access);
  cut_to_buffer(context, &access);
  if (gather->conditions) access.exact = false;
  array_push(&context->arena, gather->out, access);
}

typedef struct OuterLoads { // of a block, in its predicate and bindings
  Gather *gather;
  Block *block;
} OuterLoads;

static bool add_load(Visitor *visitor, Expr *e) {
  const OuterLoads *loads = visitor->env;
  Context *context = loads->gather->schedule->context;
  if (e->op != EXPR_LOAD) return true;
  Region region = {e->as.buffer, e->args, arena_array(&context->arena, Expr *, e->count)};
  for (int d = 0; d < e->count; d++) region.extent[d] = expr_int(context, e->args[d]->type, 1);
  Map none = map_new(&context->arena);
  add_access(loads->gather, loads->block, &region, false, &none);
  return true;
}

static void add_block(Gather *gather, Block *block) {
  Map bindings = bindings_of(gather->schedule->context, block);
  for (int i = 0; i < block->read_count; i++)
    add_access(gather, block, &block->reads[i], false, &bindings);
  for (int i = 0; i < block->write_count; i++)
    add_access(gather, block, &block->writes[i], true, &bindings);
  OuterLoads loads = {gather, block};
  Visitor visitor = {.env = &loads, .enter_expr = add_load};
  visit_expr(&visitor, block->predicate);
  for (int i = 0; i < block->var_count; i++) visit_expr(&visitor, block->vars[i].binding);
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

void stmt_accesses_within(Schedule *schedule, Analyzer *analyzer, Stmt *s, Stmt *whole,
                          AccessArray *out) {
  Gather gather = {.schedule = schedule, .analyzer = analyzer, .out = out, .whole = whole};
  gather_accesses(&gather, s);
}

void stmt_accesses_below(Schedule *schedule, Analyzer *analyzer, Stmt *s, AccessArray *out) {
  stmt_accesses_within(schedule, analyzer, s, s, out);
}

void loop_accesses_of_threads(Schedule *schedule, Analyzer *analyzer, const Path *loop,
                              const char *scope, AccessArray *out) {
  Stmt *body = path_end(loop)->as.loop.body;
  Gather gather = {.schedule = schedule, .analyzer = analyzer, .out = out, .whole = body};
  for (int i = path_scope(loop, loop->count - 1) + 1; i < loop->count; i++) {
    const Stmt *s = loop->items[i];
    if (s->kind == STMT_FOR && s->as.loop.kind == LOOP_THREAD && strcmp(scope, "global") != 0 &&
        scope_is_shared_by(scope, s->as.loop.thread))
      array_push(&schedule->context->arena, &gather.loops, loop_range(s));
  }
  gather_accesses(&gather, body);
}

bool accesses_union(Context *context, Analyzer *analyzer, const AccessArray *accesses,
                    const Block *block, Buffer *buffer, Region *out) {
  bool any = false;
  for (int i = 0; i < accesses->count; i++) {
    const Access *a = &accesses->items[i];
    if (a->block != block || a->write || !buffers_alias(a->buffer, buffer)) continue;
    Region region = {buffer, a->min, a->extent};
    if (!buffers_same_description(a->buffer, buffer))
      region = region_whole(context, buffer); // its indices are others
    *out = any ? region_union(analyzer, out, &region) : region;
    any = true;
  }
  return any;
}

bool writes_padding(const Block *block, const Buffer *buffer) {
  const Layout *layout = buffer->layout;
  bool content = layout && layout->padding.kind == LAYOUT_PADDING_CONSTANT;
  return !content || expr_is_true(block->predicate);
}

// True when the access writes each element of the region, one of the buffer.
static bool access_fills(Schedule *schedule, Analyzer *analyzer, const Access *a,
                         const Region *region) {
  Region own = {a->buffer, a->min, a->extent};
  if (!a->write || a->buffer != region->buffer || !a->exact ||
      !region_covers(analyzer, &own, region) || !writes_padding(a->block, region->buffer))
    return false;
  int mark = analyzer_mark(analyzer);
  for (int k = 0; k < a->inner_count; k++)
    analyzer_bind(analyzer, a->inner[k].var, a->inner[k].min, a->inner[k].extent);
  bool whole = block_writes_whole_domain(schedule, a->block, analyzer);
  analyzer_reset(analyzer, mark);
  return whole;
}

bool block_fills_buffer(Schedule *schedule, Analyzer *analyzer, const AccessArray *accesses,
                        const Block *block, Buffer *buffer) {
  Region whole = region_whole(schedule->context, buffer);
  for (int i = 0; i < accesses->count; i++)
    if (accesses->items[i].block == block &&
        access_fills(schedule, analyzer, &accesses->items[i], &whole))
      return true;
  return false;
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
  for (int i = 0; any && i < accesses->count && !full; i++)
    full = access_fills(schedule, analyzer, &accesses->items[i], out);
  return !any ? WRITTEN_NOTHING : full ? WRITTEN_BOX : WRITTEN_PARTS;
}

// ---- When the box is written -------------------------------------------------------------------

// The condition under which the conjunct holds in an iteration of the inner loops. NULL: unknown.
// The conjunct is linear in these loops, which are independent of one another.
static Expr *condition_somewhere(Analyzer *analyzer, Context *context, const Access *a,
                                 Expr *conjunct) {
  int count = a->inner_count;
  if (conjunct->op != EXPR_LT || expr_reads_memory(conjunct)) return NULL;
  Expr **vars = arena_array(&context->arena, Expr *, count + 1);
  int64_t *coefficients = arena_array(&context->arena, int64_t, count + 1);
  for (int k = 0; k < count; k++) vars[k] = a->inner[k].var;
  Expr *base, *most = expr_sub(context, conjunct->args[1], conjunct->args[0]);
  if (!linear_form(context, most, vars, count, coefficients, &base)) return NULL;
  for (int k = 0; k < count; k++) {
    const VarRange *loop = &a->inner[k];
    DType type = base->type;
    if (!coefficients[k]) continue;
    if (expr_uses_ranges(loop->min, a->inner, count) ||
        expr_uses_ranges(loop->extent, a->inner, count))
      return NULL;
    Expr *at = expr_cast(context, type, loop->min);
    if (coefficients[k] > 0)
      at = expr_sub(context, expr_add(context, at, expr_cast(context, type, loop->extent)),
                    expr_int(context, type, 1));
    base = expr_add(context, base, expr_mul(context, expr_int(context, type, coefficients[k]), at));
  }
  return analyzer_simplify(analyzer, expr_lt(context, expr_int(context, base->type, 0), base));
}

// Marks the inner loops that the conjunct uses. False where another conjunct uses one of them too:
// both may hold in some iteration, but not in one and the same.
static bool mark_loops(const Access *a, const Expr *conjunct, bool *used) {
  bool apart = true;
  for (int k = 0; k < a->inner_count; k++) {
    if (!expr_uses(conjunct, a->inner[k].var)) continue;
    apart &= !used[k];
    used[k] = true;
  }
  return apart;
}

static bool uses_reduction(const Access *a, const Expr *conjunct) {
  for (int k = 0; k < a->inner_count; k++)
    if (expr_uses(conjunct, a->inner[k].var) && block_binds(a->block, a->inner[k].var, true))
      return true;
  return false;
}

// The conditions under which the inner loops have iterations, whose ranges the analyzer gets. NULL:
// some loop of several depends on another one. A reduction stores its init without iterations too.
static Expr *loops_guard(Analyzer *analyzer, Context *context, const Access *a) {
  Expr *guard = expr_bool(context, true);
  for (int k = 0; k < a->inner_count; k++) {
    const VarRange *loop = &a->inner[k];
    Expr *some = expr_lt(context, expr_int(context, loop->extent->type, 0), loop->extent);
    bool reduces =
        block_binds(a->block, loop->var, true) && !block_binds(a->block, loop->var, false);
    bool runs = (reduces && a->block->init) || analyzer_prove(analyzer, some);
    if (!runs && expr_uses_ranges(some, a->inner, a->inner_count)) return NULL;
    if (!runs) guard = condition_and(context, guard, some);
    analyzer_bind(analyzer, loop->var, loop->min, loop->extent);
  }
  return guard;
}

static Expr *access_guard(Analyzer *analyzer, Context *context, const Access *a) {
  ExprArray conjuncts = {0};
  Expr *guard = loops_guard(analyzer, context, a);
  bool *used = arena_array(&context->arena, bool, a->inner_count + 1);
  expr_conjuncts(context, a->block->predicate, &conjuncts);
  for (int i = 0; guard && i < conjuncts.count; i++) {
    Expr *conjunct = conjuncts.items[i];
    if (expr_reads_memory(conjunct)) return NULL;
    bool inner = expr_uses_ranges(conjunct, a->inner, a->inner_count);
    Expr *holds = inner ? condition_somewhere(analyzer, context, a, conjunct) : conjunct;
    if (!holds || !mark_loops(a, conjunct, used)) return NULL;
    if (analyzer_prove(analyzer, holds)) continue;
    if (uses_reduction(a, conjunct)) return NULL;
    guard = condition_and(context, guard, holds);
  }
  return guard;
}

Expr *accesses_guard(Context *context, Analyzer *analyzer, const AccessArray *accesses,
                     const Region *box) {
  Expr *guard = NULL;
  int mark = analyzer_mark(analyzer);
  for (int d = 0; d < box->buffer->rank; d++) {
    Expr *min = box->min[d], *end = expr_add(context, min, box->extent[d]);
    analyzer_assume(analyzer, expr_lt(context, min, box->buffer->shape[d]));
    analyzer_assume(analyzer, expr_lt(context, expr_int(context, end->type, 0), end));
  }
  for (int i = 0; i < accesses->count; i++) {
    const Access *a = &accesses->items[i];
    if (!a->write || a->buffer != box->buffer) continue;
    int loops = analyzer_mark(analyzer);
    Expr *own = access_guard(analyzer, context, a);
    analyzer_reset(analyzer, loops);
    if (!own || (guard && guard != own)) {
      guard = NULL;
      break;
    }
    guard = own;
  }
  analyzer_reset(analyzer, mark);
  return guard;
}
