// SPDX-License-Identifier: Apache-2.0
// Proves that the stores below a statement write all elements of a region between them. A store
// writes a part: a box over the loops around it, in steps along its axes where an index is a
// multiple of a loop, cut by the conditions around it. The parts may be beside one another or
// between one another.
//
//   for j in range(n):                 part 1: B[0:2*n:2]
//     B[2 * j] = …                     part 2: B[1:2*n:2]
//   for j in range(n + 1):             together: B[0:2*n]
//     if j >= 1:
//       B[2 * j - 1] = …
//
// Where parts have steps, the elements of the region are sorted by what their indices leave over
// when they are divided by a common multiple of the steps. Those of one kind are a box of
// quotients, of which each part has a box.
#include "schedule/internal.h"

enum { MOST_KINDS = 64, MOST_CELLS = 256 };

// The elements min[d] + steps[d] * u of a buffer, for 0 <= u < extent[d].
typedef struct WrittenPart {
  Region box;
  int64_t *steps;
} WrittenPart;

typedef struct Filling {
  Context *context;
  Analyzer *analyzer;
  const Region *region;
  Array(VarRange) loops;
  ExprArray conditions; // those around the statement, in terms of the loops
  Array(WrittenPart) parts;
  Map values; // variables of inner blocks and lets, in terms of the loops
} Filling;

// A store over the loops around it. Conditions are used up by making the loops shorter.
typedef struct PartialStore {
  Expr **point;
  int rank;
  VarRange *loops;
  int count;
  ExprArray conditions;
} PartialStore;

static Expr *in_filling(const Filling *filling, Expr *e) {
  return analyzer_simplify(filling->analyzer, e);
}

// ---- Conditions ------------------------------------------------------------------------------

// True when the point is outside of the region along an axis, by what the analyzer knows.
static bool is_beside(const Filling *filling, Expr *const *point) {
  Context *context = filling->context;
  const Region *region = filling->region;
  for (int d = 0; d < region->buffer->rank; d++) {
    Expr *min = expr_cast(context, point[d]->type, region->min[d]);
    Expr *end = expr_add(context, min, expr_cast(context, min->type, region->extent[d]));
    if (analyzer_prove(filling->analyzer, expr_lt(context, point[d], min)) ||
        analyzer_prove(filling->analyzer, expr_binary(context, EXPR_GE, point[d], end)))
      return true;
  }
  return false;
}

// True when the condition holds wherever the point is in the region.
static bool holds_inside(const Filling *filling, Expr *condition, Expr *const *point) {
  if (expr_reads_memory(condition)) return false;
  int mark = analyzer_mark(filling->analyzer);
  for (int k = 0; k < filling->loops.count; k++) {
    const VarRange *loop = &filling->loops.items[k];
    analyzer_bind(filling->analyzer, loop->var, loop->min, loop->extent);
  }
  bool hold = analyzer_prove(filling->analyzer, condition);
  if (!hold) {
    analyzer_assume(filling->analyzer, expr_unary(filling->context, EXPR_NOT, condition));
    hold = is_beside(filling, point);
  }
  analyzer_reset(filling->analyzer, mark);
  return hold;
}

// Finds the only loop that an expression depends on: e == *factor * loop + *base. -1: none.
static int only_loop(Context *context, Expr *e, const VarRange *loops, int count, int64_t *factor,
                     Expr **base) {
  Expr **vars = arena_array(&context->arena, Expr *, count + 1);
  int64_t *factors = arena_array(&context->arena, int64_t, count + 1);
  int found = -1;
  for (int i = 0; i < count; i++) vars[i] = loops[i].var;
  if (expr_reads_memory(e) || !linear_form(context, e, vars, count, factors, base)) return -1;
  for (int i = 0; i < count; i++) {
    if (!factors[i]) continue;
    if (found >= 0) return -1;
    found = i;
  }
  if (found >= 0) *factor = factors[found];
  return found;
}

static Expr *loop_end(Context *context, const VarRange *loop) {
  return expr_add(context, loop->min, expr_cast(context, loop->min->type, loop->extent));
}

static Expr *plus(Context *context, Expr *e, int64_t number) {
  return expr_add(context, e, expr_int(context, e->type, number));
}

static Expr *over(Context *context, Expr *e, int64_t divisor) {
  return expr_floor_div(context, e, expr_int(context, e->type, divisor));
}

// Leaves only the iterations of a loop in which a comparison holds.
static bool cut_by_order(const Filling *filling, PartialStore *store, Expr *condition) {
  Context *context = filling->context;
  bool greater = condition->op == EXPR_GT || condition->op == EXPR_GE;
  bool strict = condition->op == EXPR_GT || condition->op == EXPR_LT;
  Expr *a = condition->args[greater], *b = condition->args[!greater], *base;
  if (!greater && !strict && condition->op != EXPR_LE) return false;
  if (a->type.code != TYPE_INT || !dtype_equal(a->type, b->type)) return false;
  int64_t factor;
  Expr *rest = plus(context, expr_sub(context, b, a), strict ? -1 : 0); // >= 0
  int at = only_loop(context, rest, store->loops, store->count, &factor, &base);
  if (at < 0) return false;
  VarRange *loop = &store->loops[at];
  Expr *min = loop->min, *end = loop_end(context, loop);
  base = expr_cast(context, min->type, base);
  if (factor > 0) {
    Expr *from = expr_sub(context, expr_int(context, min->type, 0), over(context, base, factor));
    min = expr_min(context, expr_max(context, min, from), end);
  } else {
    Expr *to = plus(context, over(context, base, -factor), 1);
    end = expr_max(context, expr_min(context, end, to), min);
  }
  min = in_filling(filling, min);
  *loop = (VarRange){loop->var, min, in_filling(filling, expr_sub(context, end, min))};
  return true;
}

// The least whole number of steps from `e` on that is not before it.
static Expr *steps_up_to(Context *context, Expr *e, int64_t step) {
  return over(context, plus(context, e, step - 1), step);
}

// Leaves only the iterations in which the loop divided by a number leaves a rest: every second one,
// of which the loop then counts the pairs.
static bool cut_by_rest(const Filling *filling, PartialStore *store, Expr *condition) {
  Context *context = filling->context;
  Expr *e = condition->args[0], *base;
  int64_t by, rest, factor, divisor, offset;
  if ((condition->op != EXPR_EQ && condition->op != EXPR_NE) || e->op != EXPR_FLOOR_MOD ||
      !expr_as_int(e->args[1], &by) || !expr_as_int(condition->args[1], &rest) || by < 2 ||
      rest < 0 || rest >= by || (condition->op == EXPR_NE && by != 2))
    return false;
  if (condition->op == EXPR_NE) rest = 1 - rest;
  int at = only_loop(context, e->args[0], store->loops, store->count, &factor, &base);
  if (at < 0 || factor != 1) return false;
  modular_form(filling->analyzer, base, &divisor, &offset);
  if (divisor % by) return false;
  VarRange *loop = &store->loops[at];
  int64_t first = floor_mod(rest - offset, by);
  Expr *pair = expr_var(context, loop->var->as.var->name, loop->var->type);
  Expr *step = expr_int(context, pair->type, by);
  Map to = map_new(&context->arena);
  map_put(&to, loop->var, plus(context, expr_mul(context, pair, step), first));
  Expr *min = in_filling(filling, steps_up_to(context, plus(context, loop->min, -first), by));
  Expr *end = steps_up_to(context, plus(context, loop_end(context, loop), -first), by);
  *loop = (VarRange){pair, min, in_filling(filling, expr_sub(context, end, min))};
  for (int d = 0; d < store->rank; d++)
    store->point[d] = substitute_expr(context, store->point[d], &to);
  for (int i = 0; i < store->conditions.count; i++)
    store->conditions.items[i] = substitute_expr(context, store->conditions.items[i], &to);
  return true;
}

// Leaves only the iteration in which two numbers are equal.
static bool cut_by_equality(const Filling *filling, PartialStore *store, Expr *condition) {
  Context *context = filling->context;
  Expr **args = condition->args;
  return condition->op == EXPR_EQ &&
         cut_by_order(filling, store, expr_binary(context, EXPR_LE, args[0], args[1])) &&
         cut_by_order(filling, store, expr_binary(context, EXPR_GE, args[0], args[1]));
}

// Cuts the loops of the store by all of its conditions. False where one has another form.
static bool cut_loops(const Filling *filling, PartialStore *store) {
  for (int i = 0; i < store->conditions.count; i++) {
    Expr *condition = in_filling(filling, store->conditions.items[i]);
    if (expr_is_true(condition)) continue;
    if (op_table[condition->op].class != OP_COMPARE || expr_reads_memory(condition)) return false;
    if (!cut_by_order(filling, store, condition) && !cut_by_rest(filling, store, condition) &&
        !cut_by_equality(filling, store, condition))
      return false;
  }
  return true;
}

// ---- Parts -----------------------------------------------------------------------------------

// Finds the box from the first element of the region on to which the loops take the point, as a
// layout without padding. False where there is none.
static bool box_of_loops(const Filling *filling, Expr *const *point, WrittenPart *part) {
  Context *context = filling->context;
  int count = filling->loops.count, rank = filling->region->buffer->rank;
  Expr **vars = arena_array(&context->arena, Expr *, count + 1);
  Expr **indices = arena_array(&context->arena, Expr *, rank + 1);
  int64_t *extents = arena_array(&context->arena, int64_t, count + 1);
  for (int i = 0; i < count; i++) {
    const VarRange *loop = &filling->loops.items[i];
    if (!expr_is_int(loop->min, 0) || !expr_as_int(loop->extent, &extents[i]) || extents[i] < 1)
      return false;
    vars[i] = loop->var;
  }
  for (int d = 0; d < rank; d++) {
    Expr *min = expr_cast(context, point[d]->type, filling->region->min[d]);
    indices[d] = in_filling(filling, expr_sub(context, point[d], min));
  }
  const IndexMap *map = index_map_from_exprs(context, vars, count, indices, rank, false);
  int diags = context->diags.count, errors = context->error_count;
  const Layout *layout = map ? layout_static(context, map, extents, (SourcePos){0}) : NULL;
  diag_forget(context, diags, errors); // a map that is no layout is not proved to be onto
  LayoutInverse inverse;
  if (!layout || layout_inverse(context, layout, &inverse).verdict != VERDICT_YES ||
      inverse.padding)
    return false;
  for (int d = 0; d < rank; d++) {
    part->steps[d] = 1;
    part->box.min[d] = filling->region->min[d];
    part->box.extent[d] = expr_int(context, point[d]->type, layout->physical_extents[d]);
  }
  return true;
}

static bool has_iterations(const Filling *filling, const VarRange *loop) {
  Expr *none = expr_int(filling->context, loop->extent->type, 0);
  return analyzer_prove(filling->analyzer, expr_lt(filling->context, none, loop->extent));
}

// True when the range of a loop depends on another one.
static bool ranges_depend(const PartialStore *store) {
  for (int i = 0; i < store->count; i++)
    if (expr_uses_ranges(store->loops[i].min, store->loops, store->count) ||
        expr_uses_ranges(store->loops[i].extent, store->loops, store->count))
      return true;
  return false;
}

// The number of axes whose index uses the variable.
static int uses_of(const PartialStore *store, const Expr *var) {
  int uses = 0;
  for (int d = 0; d < store->rank; d++) uses += expr_uses(store->point[d], var);
  return uses;
}

// Finds the elements along an axis whose index is a multiple of a loop that no other index uses.
// Returns that loop, or -1.
static int steps_along(const Filling *filling, const PartialStore *store, int d,
                       WrittenPart *part) {
  Context *context = filling->context;
  int64_t factor;
  Expr *base;
  int at = only_loop(context, store->point[d], store->loops, store->count, &factor, &base);
  if (at < 0 || uses_of(store, store->loops[at].var) != 1) return -1;
  const VarRange *loop = &store->loops[at];
  DType type = store->point[d]->type;
  Expr *first = factor > 0 ? loop->min : plus(context, loop_end(context, loop), -1);
  first = expr_mul(context, expr_cast(context, type, first), expr_int(context, type, factor));
  part->box.min[d] = in_filling(filling, expr_add(context, expr_cast(context, type, base), first));
  part->box.extent[d] = expr_cast(context, type, loop->extent);
  part->steps[d] = factor > 0 ? factor : -factor;
  return at;
}

// Finds the part that the store writes; false where it has no such form.
static bool part_of(Filling *filling, PartialStore *store, WrittenPart *part) {
  Context *context = filling->context;
  Arena *arena = &context->arena;
  int rank = store->rank;
  bool alone = !ranges_depend(store), exact;
  bool *done = arena_array(arena, bool, rank + 1),
       *used = arena_array(arena, bool, store->count + 1);
  Expr **others = arena_copy(arena, store->point, sizeof(Expr *) * (size_t)rank);
  Region found = {filling->region->buffer, arena_array(arena, Expr *, rank),
                  arena_array(arena, Expr *, rank)};
  *part = (WrittenPart){found, arena_array(arena, int64_t, rank + 1)};
  for (int d = 0; d < rank; d++) part->steps[d] = 1;
  for (int d = 0; alone && d < rank; d++) {
    int at = steps_along(filling, store, d, part);
    if (at < 0) continue;
    done[d] = used[at] = true;
    others[d] = expr_int(context, others[d]->type, 0);
  }
  for (int i = 0; i < store->count; i++)
    if (!used[i] && !has_iterations(filling, &store->loops[i])) return false;
  Expr **min = arena_array(arena, Expr *, rank + 1),
       **extent = arena_array(arena, Expr *, rank + 1);
  index_region(filling->analyzer, others, rank, store->loops, store->count, min, extent, &exact);
  for (int d = 0; d < rank; d++) {
    if (done[d]) continue;
    part->box.min[d] = min[d], part->box.extent[d] = extent[d];
    exact = exact && min[d];
  }
  return exact;
}

// Adds the elements that a store writes over all iterations of the loops.
static void add_store(Filling *filling, const Stmt *s) {
  Context *context = filling->context;
  Arena *arena = &context->arena;
  int rank = s->as.store.rank, count = filling->loops.count;
  if (s->as.store.buffer != filling->region->buffer) return;
  WrittenPart part;
  PartialStore store = {.point = arena_array(arena, Expr *, rank + 1),
                        .rank = rank,
                        .loops = arena_array(arena, VarRange, count + 1),
                        .count = count};
  for (int i = 0; i < count; i++) store.loops[i] = filling->loops.items[i];
  for (int d = 0; d < rank; d++)
    store.point[d] = substitute_expr(context, s->as.store.indices[d], &filling->values);
  for (int i = 0; i < filling->conditions.count; i++)
    if (!holds_inside(filling, filling->conditions.items[i], store.point))
      array_push(arena, &store.conditions, filling->conditions.items[i]);
  Expr **point = store.point;
  bool all = !store.conditions.count;
  if (!cut_loops(filling, &store)) return;
  if (!part_of(filling, &store, &part) && !(all && box_of_loops(filling, point, &part))) return;
  array_push(arena, &filling->parts, part);
}

// ---- The union of parts ----------------------------------------------------------------------

typedef Array(Region) BoxArray;

// A search for the boxes that cover a box, of which pieces are looked at one by one.
typedef struct Covering {
  Context *context;
  Analyzer *analyzer;
  const BoxArray *boxes;
  int cells; // pieces that may still be looked at
} Covering;

static bool at_most(const Covering *covering, Expr *a, Expr *b) {
  Context *context = covering->context;
  return analyzer_prove(covering->analyzer,
                        expr_binary(context, EXPR_LE, a, expr_cast(context, a->type, b)));
}

static Expr *box_end(Context *context, const Region *box, int d) {
  return expr_add(context, box->min[d], expr_cast(context, box->min[d]->type, box->extent[d]));
}

// The elements of the box from the cut on along axis `d`, or those before it.
static Region box_beside(const Covering *covering, const Region *box, int d, Expr *cut,
                         bool before) {
  Context *context = covering->context;
  size_t size = sizeof(Expr *) * (size_t)box->buffer->rank;
  Region half = {box->buffer, arena_copy(&context->arena, box->min, size),
                 arena_copy(&context->arena, box->extent, size)};
  Expr *end = before ? cut : box_end(context, box, d);
  half.min[d] = before ? box->min[d] : cut;
  half.extent[d] = analyzer_simplify(covering->analyzer, expr_sub(context, end, half.min[d]));
  return half;
}

// The end of a box that divides the piece along axis `d`, as far as is known. NULL: none does.
static Expr *cut_of(const Covering *covering, const Region *piece, int d) {
  Context *context = covering->context;
  Expr *from = piece->min[d], *to = box_end(context, piece, d);
  for (int i = 0; i < 2 * covering->boxes->count; i++) {
    const Region *box = &covering->boxes->items[i / 2];
    Expr *cut = expr_cast(context, from->type, i % 2 ? box_end(context, box, d) : box->min[d]);
    cut = analyzer_simplify(covering->analyzer, cut);
    if ((at_most(covering, from, cut) || at_most(covering, cut, to)) &&
        !at_most(covering, cut, from) && !at_most(covering, to, cut))
      return cut;
  }
  return NULL;
}

// True when the boxes together have all elements of the piece.
static bool boxes_cover(Covering *covering, const Region *piece) {
  if (covering->cells-- <= 0) return false;
  for (int i = 0; i < covering->boxes->count; i++)
    if (region_covers(covering->analyzer, &covering->boxes->items[i], piece)) return true;
  for (int d = 0; d < piece->buffer->rank; d++) {
    Expr *none = expr_int(covering->context, piece->extent[d]->type, 0);
    if (at_most(covering, piece->extent[d], none)) return true;
  }
  for (int d = 0; d < piece->buffer->rank; d++) {
    Expr *cut = cut_of(covering, piece, d);
    if (!cut) continue;
    Region first = box_beside(covering, piece, d, cut, true);
    Region second = box_beside(covering, piece, d, cut, false);
    return boxes_cover(covering, &first) && boxes_cover(covering, &second);
  }
  return false;
}

// Finds the quotients along axis `d` of the part's elements that leave `rest` when their distance
// from the region is divided by `by`. False where this is not known, or there are none.
static bool quotients_of(const Filling *filling, const WrittenPart *part, int d, int64_t by,
                         int64_t rest, Region *out) {
  Context *context = filling->context;
  int64_t step = part->steps[d], divisor, offset;
  Expr *from = part->box.min[d], *count = expr_cast(context, from->type, part->box.extent[d]);
  if (by == 1) {
    out->min[d] = from, out->extent[d] = count;
    return true;
  }
  Expr *first = in_filling(
      filling, expr_sub(context, from, expr_cast(context, from->type, filling->region->min[d])));
  modular_form(filling->analyzer, first, &divisor, &offset);
  if (divisor % step || floor_mod(offset - rest, step)) return false;
  Expr *last = plus(context, count, -1);
  last = expr_add(context, first, expr_mul(context, last, expr_int(context, last->type, step)));
  Expr *end = plus(context, over(context, plus(context, last, -rest), by), 1);
  out->min[d] = in_filling(filling, steps_up_to(context, plus(context, first, -rest), by));
  out->extent[d] = in_filling(filling, expr_sub(context, end, out->min[d]));
  return true;
}

static Region new_box(const Filling *filling) {
  Buffer *buffer = filling->region->buffer;
  Arena *arena = &filling->context->arena;
  return (Region){buffer, arena_array(arena, Expr *, buffer->rank + 1),
                  arena_array(arena, Expr *, buffer->rank + 1)};
}

// True when the parts from `from` on have all elements of the region that leave these rests.
static bool kind_is_covered(Filling *filling, int from, const int64_t *by, int64_t kind) {
  Context *context = filling->context;
  int rank = filling->region->buffer->rank;
  int64_t *rests = arena_array(&context->arena, int64_t, rank + 1);
  Region piece = new_box(filling);
  BoxArray boxes = {0};
  for (int d = 0; d < rank; d++) {
    Expr *min = filling->region->min[d], *extent = filling->region->extent[d];
    rests[d] = kind % by[d];
    kind /= by[d];
    piece.min[d] = by[d] == 1 ? min : expr_int(context, min->type, 0);
    piece.extent[d] =
        by[d] == 1
            ? extent
            : in_filling(filling, steps_up_to(context, plus(context, extent, -rests[d]), by[d]));
  }
  for (int i = from; i < filling->parts.count; i++) {
    Region box = new_box(filling);
    bool has = true;
    for (int d = 0; has && d < rank; d++)
      has = quotients_of(filling, &filling->parts.items[i], d, by[d], rests[d], &box);
    if (has) array_push(&context->arena, &boxes, box);
  }
  Covering covering = {context, filling->analyzer, &boxes, MOST_CELLS};
  return boxes_cover(&covering, &piece);
}

static int64_t common_multiple(int64_t a, int64_t b) {
  int64_t x = a, y = b;
  while (y) {
    int64_t rest = x % y;
    x = y, y = rest;
  }
  return a > MOST_KINDS || b > MOST_KINDS ? MOST_KINDS + 1 : a / x * b;
}

// True when the parts from `from` on together have all elements of the region.
static bool parts_cover(Filling *filling, int from) {
  int rank = filling->region->buffer->rank;
  int64_t kinds = 1, *by = arena_array(&filling->context->arena, int64_t, rank + 1);
  for (int d = 0; d < rank; d++) {
    by[d] = 1;
    for (int i = from; i < filling->parts.count; i++)
      by[d] = common_multiple(by[d], filling->parts.items[i].steps[d]);
    if (by[d] > MOST_KINDS || (kinds *= by[d]) > MOST_KINDS) return false;
  }
  for (int64_t kind = 0; kind < kinds; kind++)
    if (!kind_is_covered(filling, from, by, kind)) return false;
  return true;
}

// ---- Statements ------------------------------------------------------------------------------

static void fill(Filling *filling, Stmt *s);

// A loop of one iteration is no loop: its variable has a value.
static void fill_by_loop(Filling *filling, Stmt *s) {
  Context *context = filling->context;
  VarRange loop = loop_range(s);
  loop.min = substitute_expr(context, loop.min, &filling->values);
  loop.extent = substitute_expr(context, loop.extent, &filling->values);
  bool once = expr_is_int(loop.extent, 1);
  if (once)
    map_put(&filling->values, loop.var, loop.min);
  else
    array_push(&context->arena, &filling->loops, loop);
  fill(filling, s->as.loop.body);
  if (!once) filling->loops.count--;
}

static bool same_store(const Stmt *a, const Stmt *b) {
  if (a->kind != STMT_STORE || b->kind != STMT_STORE || a->as.store.buffer != b->as.store.buffer)
    return false;
  for (int d = 0; d < a->as.store.rank; d++)
    if (a->as.store.indices[d] != b->as.store.indices[d]) return false;
  return true;
}

static void fill_where(Filling *filling, Expr *condition, Stmt *s) {
  int mark = filling->conditions.count;
  expr_conjuncts(filling->context, condition, &filling->conditions);
  fill(filling, s);
  filling->conditions.count = mark;
}

// Either branch writes the parts for which its condition holds. Where all iterations of the loops
// take the same branch, both may also write the whole region.
static void fill_by_branches(Filling *filling, Stmt *s) {
  Context *context = filling->context;
  Stmt *first = s->as.branch.then_body, *second = s->as.branch.else_body;
  Expr *condition = substitute_expr(context, s->as.branch.condition, &filling->values);
  if (second && same_store(first, second)) {
    add_store(filling, first);
    return;
  }
  int mark = filling->parts.count;
  if (second && (!filling->loops.count ||
                 (!expr_reads_memory(condition) &&
                  !expr_uses_ranges(condition, filling->loops.items, filling->loops.count)))) {
    fill(filling, first);
    bool whole = parts_cover(filling, mark);
    filling->parts.count = mark;
    fill(filling, second);
    whole = whole && parts_cover(filling, mark);
    filling->parts.count = mark;
    if (whole) {
      WrittenPart part = {*filling->region,
                          arena_array(&context->arena, int64_t, filling->region->buffer->rank + 1)};
      for (int d = 0; d < filling->region->buffer->rank; d++) part.steps[d] = 1;
      array_push(&context->arena, &filling->parts, part);
      return;
    }
  }
  fill_where(filling, condition, first);
  if (second)
    fill_where(filling, in_filling(filling, expr_unary(context, EXPR_NOT, condition)), second);
}

static void fill_by_block(Filling *filling, const Block *block) {
  Context *context = filling->context;
  int mark = filling->conditions.count;
  if (!predicate_excludes_outside(context, NULL, filling->analyzer, block->predicate,
                                  filling->region, &filling->values))
    expr_conjuncts(context, substitute_expr(context, block->predicate, &filling->values),
                   &filling->conditions);
  for (int i = 0; i < block->var_count; i++)
    map_put(&filling->values, block->vars[i].var,
            substitute_expr(context, block->vars[i].binding, &filling->values));
  fill(filling, block->body);
  filling->conditions.count = mark;
}

// Adds the parts of the buffer that each execution of the statement writes, over the loops.
static void fill(Filling *filling, Stmt *s) {
  switch (s->kind) {
  case STMT_STORE: add_store(filling, s); break;
  case STMT_FOR: fill_by_loop(filling, s); break;
  case STMT_BLOCK: fill_by_block(filling, s->as.block); break;
  case STMT_IF: fill_by_branches(filling, s); break;
  case STMT_LET:
    map_put(&filling->values, s->as.let.var,
            substitute_expr(filling->context, s->as.let.value, &filling->values));
    fill(filling, s->as.let.body);
    break;
  case STMT_SEQ:
    for (int i = 0; i < s->as.seq.count; i++) fill(filling, s->as.seq.items[i]);
    break;
  case STMT_ALLOCATE:
  case STMT_ALLOCATE_CONST:
  case STMT_DECL_BUFFER:
  case STMT_ATTR: fill(filling, stmt_child(s, 0)); break;
  case STMT_WHILE:
  case STMT_ASSERT:
  case STMT_EVALUATE: break;
  }
}

bool stmt_fills_region(Context *context, Analyzer *analyzer, Stmt *s, const Region *region) {
  Filling filling = {.context = context,
                     .analyzer = analyzer,
                     .region = region,
                     .values = map_new(&context->arena)};
  fill(&filling, s);
  return parts_cover(&filling, 0);
}
