// SPDX-License-Identifier: Apache-2.0
// Checks that the bindings of a block enumerate its domain, each point once. A binding is read as a
// mixed-radix number whose digits are digits of loops, or of fused numbers that are mixed-radix
// themselves (arith/mixed_radix.h):
//   v = io*16 + ii where io*16 + ii < 100        weights 1 and 16, cut to 100 by the predicate
//   v = f // 7, u = f % 7 with f = io*16 + ii    both digits of the fused number f
//   v = f // n, u = f % n for f in 32*n          the loops of 32 and of n iterations that f fuses
//   v = o*n + i for o in 4, i in n               the loop of 4*n iterations that was split
// Each loop, and each fused number, must be used up by its digits, none of which is used twice. A
// map of another form is enumerated when it is small, and rejected otherwise.
#include "arith/mixed_radix.h"

// ---- Bindings

static bool check_var(RadixCheck *check, const BlockVar *v) {
  Analyzer *analyzer = check->analyzer;
  const char *name = v->var->as.var->name;
  const Form *wanted = form_of_simplified(analyzer, v->extent);
  const Form *f = form_sub(analyzer, form_of_simplified(analyzer, v->binding),
                           form_of_simplified(analyzer, v->min));
  const Form *extent = f ? radix_number_extent(check, f) : NULL;
  if (!extent) return radix_refuse(check, "the binding of %s is not a fused or split loop", name);
  extent = radix_cut_extent(check, f, extent);
  Verdict enough = form_sign(analyzer, form_sub(analyzer, extent, wanted));
  if (enough == VERDICT_NO)
    return radix_refuse(check, "the binding of %s does not reach its whole range", name);
  if (!radix_same(check, extent, wanted))
    return radix_refuse(check, "the binding of %s is not proved to end where its range does", name);
  return true;
}

static bool check_numbers(RadixCheck *check, const Block *block, const VarRange *loops, int count) {
  radix_add_loops(check, loops, count);
  if (check->reason) return false;
  if (!radix_gather_clauses(check, analyzer_simplify(check->analyzer, block->predicate)))
    return false;
  radix_cut_loops(check);
  for (int i = 0; i < block->var_count; i++)
    if (!check_var(check, &block->vars[i])) return false;
  return radix_sources_used_up(check);
}

// ---- Enumeration of small maps

enum { MOST_POINTS = 1 << 16, MOST_LOOPS = 32 };

typedef struct Box {
  int rank;
  int64_t min[MOST_LOOPS], extent[MOST_LOOPS], size;
} Box;

static bool box_axis(Box *box, Analyzer *analyzer, Expr *min, Expr *extent) {
  int64_t *low = &box->min[box->rank], *count = &box->extent[box->rank];
  if (!form_is_const(form_of_simplified(analyzer, min), low) ||
      !form_is_const(form_of_simplified(analyzer, extent), count) || *count < 0)
    return false;
  box->rank++;
  return mul_fits(box->size, *count, &box->size) && box->size <= MOST_POINTS;
}

static bool box_next(const Box *box, int64_t *values) {
  for (int i = box->rank - 1; i >= 0; i--) {
    if (++values[i] < box->min[i] + box->extent[i]) return true;
    values[i] = box->min[i];
  }
  return false;
}

// The row-major number of the block's point in its domain; -1 when the point is outside or has no
// value.
static int64_t domain_place(const Block *block, const Box *domain, Expr *const *vars,
                            const int64_t *values, int count) {
  int64_t place = 0;
  for (int i = 0; i < block->var_count; i++) {
    int64_t v;
    if (!expr_value(block->vars[i].binding, vars, values, count, &v)) return -1;
    v -= domain->min[i];
    if (v < 0 || v >= domain->extent[i]) return -1;
    place = place * domain->extent[i] + v;
  }
  return place;
}

static bool enumerate(Analyzer *analyzer, const Block *block, const Box *domain, const Box *space,
                      Expr *const *vars) {
  BitSet met = bit_set_new(analyzer->arena, (int)domain->size);
  int64_t values[MOST_LOOPS], runs, count = 0;
  memcpy(values, space->min, sizeof values);
  if (space->size == 0) return domain->size == 0;
  do {
    if (!expr_value(block->predicate, vars, values, space->rank, &runs)) return false;
    if (!runs) continue;
    int64_t place = domain_place(block, domain, vars, values, space->rank);
    if (place < 0 || bit_set_has(&met, (int)place)) return false;
    bit_set_add(&met, (int)place);
    count++;
  } while (box_next(space, values));
  return count == domain->size;
}

static bool check_points(Analyzer *analyzer, const Block *block, const VarRange *loops, int count) {
  Box domain = {.size = 1}, space = {.size = 1};
  Expr *vars[MOST_LOOPS];
  if (count > MOST_LOOPS || block->var_count > MOST_LOOPS) return false;
  for (int i = 0; i < count; i++) {
    vars[i] = loops[i].var;
    if (!box_axis(&space, analyzer, loops[i].min, loops[i].extent)) return false;
  }
  for (int i = 0; i < block->var_count; i++)
    if (!box_axis(&domain, analyzer, block->vars[i].min, block->vars[i].extent)) return false;
  return enumerate(analyzer, block, &domain, &space, vars);
}

// ---- Fused loops of symbolic extents

typedef struct FusedLoop {
  Analyzer *analyzer;
  const VarRange *loops;
  int count, at;    // the fused loop, -1: none was found
  Expr *outer, *by; // the iterations of the loops that it fuses
} FusedLoop;

static int loop_of(const FusedLoop *fused, const Expr *e) {
  int i = fused->count - 1;
  while (i >= 0 && fused->loops[i].var != e) i--;
  return i;
}

static bool is_at_least(Analyzer *analyzer, Expr *e, int64_t least) {
  Context *context = analyzer->context;
  return analyzer_prove(analyzer,
                        expr_binary(context, EXPR_GE, e, expr_int(context, e->type, least)));
}

// Finds f // by or f % by of a loop f whose extent is a multiple of `by`, which is no number.
static bool find_fused(Visitor *visitor, Expr *e) {
  FusedLoop *fused = visitor->env;
  Context *context = fused->analyzer->context;
  if ((e->op != EXPR_FLOOR_DIV && e->op != EXPR_FLOOR_MOD) || fused->at >= 0) return true;
  int at = loop_of(fused, e->args[0]);
  if (at < 0 || e->args[1]->op == EXPR_INT || !expr_is_int(fused->loops[at].min, 0)) return true;
  for (int i = 0; i < fused->count; i++)
    if (expr_uses(e->args[1], fused->loops[i].var)) return true;
  Expr *extent = expr_cast(context, e->type, fused->loops[at].extent), *by = e->args[1];
  Expr *outer = analyzer_simplify(fused->analyzer, expr_floor_div(context, extent, by));
  if (!analyzer_prove_equal(fused->analyzer, expr_mul(context, outer, by), extent)) return true;
  // Where a loop has no iterations, neither has the fused one.
  if (!is_at_least(fused->analyzer, outer, 1) && !is_at_least(fused->analyzer, by, 0)) return true;
  fused->at = at, fused->outer = outer, fused->by = by;
  return true;
}

// Replaces a fused loop by the two loops that it fuses. False when none is found.
static bool take_apart(Analyzer *analyzer, Block *block, VarRange *loops, int *count) {
  Context *context = analyzer->context;
  FusedLoop fused = {analyzer, loops, *count, -1, NULL, NULL};
  Visitor visitor = {.env = &fused, .enter_expr = find_fused};
  for (int i = 0; i < block->var_count; i++) visit_expr(&visitor, block->vars[i].binding);
  if (fused.at < 0) return false;
  Expr *var = loops[fused.at].var, *zero = expr_int(context, var->type, 0);
  VarRange outer = {expr_var(context, "outer", var->type), zero, fused.outer};
  VarRange inner = {expr_var(context, "inner", var->type), zero, fused.by};
  analyzer_bind(analyzer, outer.var, zero, outer.extent);
  analyzer_bind(analyzer, inner.var, zero, inner.extent);
  loops[fused.at] = outer;
  loops[(*count)++] = inner;
  Map parts = map_new(analyzer->arena);
  map_put(&parts, var, expr_add(context, expr_mul(context, outer.var, fused.by), inner.var));
  for (int i = 0; i < block->var_count; i++) {
    Expr **binding = &block->vars[i].binding;
    *binding = analyzer_simplify(analyzer, substitute_expr(context, *binding, &parts));
  }
  block->predicate =
      analyzer_simplify(analyzer, substitute_expr(context, block->predicate, &parts));
  return true;
}

// ---- Split loops with a symbolic inner extent

// Replaces `inner` by the number f that the two loops make together, as f - outer * E. False where
// the block uses `outer` still.
static bool use_number(Analyzer *analyzer, Block *block, const VarRange *outer,
                       const VarRange *inner, Expr *number) {
  Context *context = analyzer->context;
  Map to = map_new(analyzer->arena);
  Expr *by = expr_cast(context, number->type, inner->extent);
  Expr *before = expr_mul(context, expr_cast(context, number->type, outer->var), by);
  map_put(&to, inner->var, expr_cast(context, inner->var->type, expr_sub(context, number, before)));
  for (int i = 0; i < block->var_count; i++) {
    Expr **binding = &block->vars[i].binding;
    *binding = analyzer_simplify(analyzer, substitute_expr(context, *binding, &to));
    if (expr_uses(*binding, outer->var)) return false;
  }
  block->predicate = analyzer_simplify(analyzer, substitute_expr(context, block->predicate, &to));
  return !expr_uses(block->predicate, outer->var);
}

static bool is_split(Analyzer *analyzer, const VarRange *loops, int count, int i, int j) {
  const Expr *extent = loops[j].extent;
  if (i == j || extent->op == EXPR_INT || !dtype_equal(loops[i].var->type, loops[j].var->type) ||
      !expr_is_int(loops[i].min, 0) || !expr_is_int(loops[j].min, 0))
    return false;
  for (int k = 0; k < count; k++)
    if (expr_uses(extent, loops[k].var) || expr_uses(loops[i].extent, loops[k].var)) return false;
  // Where a loop has no iterations, neither has that of the number.
  return is_at_least(analyzer, loops[i].extent, 0) || is_at_least(analyzer, loops[j].extent, 0);
}

// Replaces an outer loop and an inner one of E iterations, E no number, by one loop f where the
// block uses outer * E + inner alone. False when there are no such loops.
static bool put_together(Analyzer *analyzer, Block **block, VarRange *loops, int *count) {
  Context *context = analyzer->context;
  for (int i = 0; i < *count; i++)
    for (int j = 0; j < *count; j++) {
      if (!is_split(analyzer, loops, *count, i, j)) continue;
      Expr *extent = expr_mul(context, loops[i].extent, loops[j].extent);
      Expr *number = expr_var(context, "number", loops[i].var->type);
      Expr *zero = expr_int(context, number->type, 0);
      Block *copy = block_copy(context, *block);
      copy->vars =
          arena_copy(&context->arena, copy->vars, sizeof *copy->vars * (size_t)copy->var_count);
      analyzer_bind(analyzer, number, zero, extent);
      if (!use_number(analyzer, copy, &loops[i], &loops[j], number)) continue;
      *block = copy;
      loops[i] = (VarRange){number, zero, extent};
      loops[j] = loops[--*count];
      return true;
    }
  return false;
}

// ---- Loops that begin elsewhere

// Replaces each loop of more than one iteration that does not begin at 0 by one that does.
static const Block *block_from_zero(Analyzer *analyzer, const Block *block, const VarRange **loops,
                                    int count) {
  Context *context = analyzer->context;
  Map shifted = map_new(analyzer->arena);
  VarRange *copy = arena_array(analyzer->arena, VarRange, count + 1);
  for (int i = 0; i < count; i++) {
    copy[i] = (*loops)[i];
    const VarRange *r = &(*loops)[i];
    if (expr_is_int(r->min, 0) || expr_is_int(r->extent, 1)) continue;
    Expr *var = expr_var(context, r->var->as.var->name, r->var->type);
    Expr *min = expr_cast(context, var->type, substitute_expr(context, r->min, &shifted));
    map_put(&shifted, r->var, expr_add(context, var, min));
    copy[i] = (VarRange){var, expr_int(context, var->type, 0), r->extent};
    analyzer_bind(analyzer, var, copy[i].min, r->extent);
  }
  if (!shifted.count) return block;
  Block *result = block_copy(context, block);
  result->vars =
      arena_copy(&context->arena, result->vars, sizeof *result->vars * (size_t)result->var_count);
  for (int i = 0; i < result->var_count; i++) {
    Expr *binding = substitute_expr(context, result->vars[i].binding, &shifted);
    result->vars[i].binding = analyzer_simplify(analyzer, binding);
  }
  Expr *predicate = substitute_expr(context, result->predicate, &shifted);
  result->predicate = analyzer_simplify(analyzer, predicate);
  *loops = copy;
  return result;
}

// The same block in loops of which none is fused from loops of symbolic extents, or split in some.
static const Block *block_in_parts(Analyzer *analyzer, const Block *block, const VarRange **loops,
                                   int *count) {
  enum { MOST_PARTS = 8 };
  Context *context = analyzer->context;
  bool symbolic = false;
  for (int i = 0; i < *count; i++) symbolic |= (*loops)[i].extent->op != EXPR_INT;
  if (!symbolic) return block;
  VarRange *parts = arena_array(&context->arena, VarRange, *count + MOST_PARTS);
  if (*count) memcpy(parts, *loops, sizeof *parts * (size_t)*count);
  Block *copy = block_copy(context, block);
  copy->vars =
      arena_copy(&context->arena, copy->vars, sizeof *copy->vars * (size_t)copy->var_count);
  *loops = parts;
  for (int i = 0; i < MOST_PARTS && take_apart(analyzer, copy, parts, count); i++) {
  }
  while (put_together(analyzer, &copy, parts, count)) {
  }
  return copy;
}

const char *bindings_check(Analyzer *analyzer, const Block *block, const VarRange *loops,
                           int loop_count) {
  RadixCheck check = {.analyzer = analyzer};
  int mark = analyzer_mark(analyzer);
  block = block_from_zero(analyzer, block, &loops, loop_count);
  block = block_in_parts(analyzer, block, &loops, &loop_count);
  analyzer_enter(analyzer);
  bool good = check_numbers(&check, block, loops, loop_count);
  analyzer_leave(analyzer);
  analyzer_reset(analyzer, mark);
  if (good) return NULL;
  analyzer_enter(analyzer);
  good = check_points(analyzer, block, loops, loop_count);
  analyzer_leave(analyzer);
  if (good) return NULL;
  return check.reason;
}
