// SPDX-License-Identifier: Apache-2.0
// Finds the boxes of index values that regions of buffers are. The values that a form takes while
// some variables run are found for each group of its digits: a group without running variables
// moves the box, a group of running variables only has constant bounds, and a floor over both kinds
// covers as many cells as its residues allow.
//   oho*8 + ohi*2 + r - 1, ohi in [0, 4), r in [0, 3)   =>   min oho*8 - 1, extent 9
#include "arith/internal.h"

#include <stdlib.h>

// ---- Linear forms

static int index_of(Expr *const *vars, int count, const Expr *e) {
  for (int i = 0; i < count; i++)
    if (vars[i] == e) return i;
  return -1;
}

static bool uses_any(const Expr *e, Expr *const *vars, int count) {
  for (int i = 0; i < count; i++)
    if (expr_uses(e, vars[i])) return true;
  return false;
}

static bool find_linear(Analyzer *analyzer, Expr *e, Expr *const *vars, int count,
                        int64_t *coefficients, Expr **base) {
  const Form *f = form_of_simplified(analyzer, e);
  const Form *rest = form_const(analyzer, f->type, f->constant);
  for (int i = 0; i < count; i++) coefficients[i] = 0;
  for (int i = 0; i < f->count; i++) {
    Term t = f->terms[i];
    int at = index_of(vars, count, t.atom);
    if (at >= 0)
      coefficients[at] = t.coef;
    else if (uses_any(t.atom, vars, count))
      return false;
    else
      rest = form_add(analyzer, rest, form_term(analyzer, f->type, t.coef, t.atom));
  }
  *base = form_expr(analyzer, rest);
  return *base != NULL;
}

bool linear_form(Context *context, Expr *e, Expr *const *vars, int count, int64_t *coefficients,
                 Expr **base) {
  if (!dtype_is_index(e->type)) return false;
  ArenaMark mark = arena_mark(&context->scratch);
  Analyzer *analyzer = analyzer_new_in(context, &context->scratch);
  analyzer_enter(analyzer); // until the memory of both is reset
  bool linear = find_linear(analyzer, e, vars, count, coefficients, base);
  arena_reset(&context->scratch, mark);
  return linear;
}

bool quotient_form(Context *context, Expr *e, QuotientForm *out) {
  if (!dtype_is_index(e->type)) return false;
  ArenaMark mark = arena_mark(&context->scratch);
  Analyzer *analyzer = analyzer_new_in(context, &context->scratch);
  analyzer_enter(analyzer); // until the memory of both is reset
  const Form *f = form_of_simplified(analyzer, e);
  const Expr *atom = f->count == 1 ? f->terms[0].atom : NULL;
  bool found = atom && atom->op == EXPR_FLOOR_DIV && expr_as_int(atom->args[1], &out->divisor) &&
               out->divisor > 0;
  if (found) *out = (QuotientForm){atom->args[0], out->divisor, f->terms[0].coef, f->constant};
  arena_reset(&context->scratch, mark);
  return found;
}

// ---- Spans

// The values are in [low, high], which are free of running variables; NULL: unknown. `exact`: both
// ends are taken. `step`: values are low plus multiples of it; `dense`: every such value is taken.
typedef struct RegionSpan {
  const Form *low, *high;
  bool exact, dense;
  int64_t step;
} RegionSpan;

typedef struct Running {
  Analyzer *analyzer;
  const VarRange *vars;
  int count;
  int depth;
} Running;

static const RegionSpan no_span = {NULL, NULL, false, false, 1};
enum { MOST_DEPTH = 12 };

static bool runs_in(const Running *run, const Expr *e) {
  for (int i = 0; i < run->count; i++)
    if (expr_uses(e, run->vars[i].var)) return true;
  return false;
}

static bool runs_in_form(const Running *run, const Form *f) {
  for (int i = 0; i < f->count; i++)
    if (runs_in(run, f->terms[i].atom)) return true;
  return false;
}

static RegionSpan span_of(Running *run, const Form *f);

static RegionSpan span_point(const Form *f) {
  return (RegionSpan){f, f, true, true, 1};
}

static RegionSpan span_constant(Running *run, DType type, Interval b) {
  if (b.low == NO_LOW || b.high == NO_HIGH || b.low > b.high) return no_span;
  return (RegionSpan){form_const(run->analyzer, type, b.low),
                      form_const(run->analyzer, type, b.high), false, false, 1};
}

static bool span_width(Running *run, const RegionSpan *s, int64_t *width) {
  return s->low && s->high && form_is_const(form_sub(run->analyzer, s->high, s->low), width);
}

static RegionSpan span_scale(Running *run, RegionSpan s, int64_t factor) {
  const Form *low = form_scale(run->analyzer, factor > 0 ? s.low : s.high, factor);
  const Form *high = form_scale(run->analyzer, factor > 0 ? s.high : s.low, factor);
  if (!mul_fits(s.step, factor > 0 ? factor : -factor, &s.step)) return no_span;
  return (RegionSpan){low, high, s.exact, s.dense, s.step};
}

static RegionSpan span_of_atom(Running *run, DType type, Expr *atom) {
  Analyzer *analyzer = run->analyzer;
  Fact *fact = analyzer_info(analyzer, atom)->fact;
  if (atom->op == EXPR_VAR && fact && fact->kind == FACT_RANGE) {
    const Form *first = fact->first ? fact->first : NULL, *last = fact->last ? fact->last : NULL;
    Interval b = fact->bounds;
    if (!first && b.low != NO_LOW) first = form_const(analyzer, type, b.low);
    if (!last && b.high != NO_HIGH) last = form_const(analyzer, type, b.high);
    if (!first || !last) return no_span;
    RegionSpan from = span_of(run, first), to = span_of(run, last);
    bool plain = !runs_in_form(run, first) && !runs_in_form(run, last) && fact->divisor <= 1;
    return (RegionSpan){from.low, to.high, plain, plain, 1};
  }
  return span_constant(run, type, atom_bounds(analyzer, atom));
}

// The number of multiples of cut that the values pass after `low`: the largest (rho + width) // cut
// over the residues rho that `low` can have.
static int64_t cells_spanned(Running *run, const Form *low, int64_t width, int64_t cut) {
  int64_t divisor, rest;
  form_modular(run->analyzer, low, &divisor, &rest);
  int64_t g = gcd_of(divisor, cut);
  int64_t residue = cut - g + floor_mod(rest, g ? g : 1);
  return floor_div(residue + width, cut);
}

static RegionSpan span_divide(Running *run, RegionSpan s, int64_t cut) {
  int64_t width;
  if (cut == 1) return s;
  const Form *low = form_divide(run->analyzer, s.low, cut);
  if (!low || !span_width(run, &s, &width) || width > INT64_MAX - cut) {
    const Form *high = form_divide(run->analyzer, s.high, cut);
    return (RegionSpan){low, high, s.exact, s.exact && s.dense && s.step == 1, 1};
  }
  const Form *high = form_sub(run->analyzer, form_divide(run->analyzer, s.high, cut), low);
  int64_t cells = cells_spanned(run, s.low, width, cut), found;
  bool exact = form_is_const(high, &found);
  if (exact) cells = found;
  return (RegionSpan){low, form_add_const(run->analyzer, low, cells), s.exact && exact,
                      s.exact && exact && s.dense && s.step <= cut, 1};
}

static RegionSpan span_modulo(Running *run, DType type, RegionSpan s, int64_t radix) {
  Analyzer *analyzer = run->analyzer;
  int64_t width;
  if (radix == 0) return s;
  if (span_width(run, &s, &width) && width < radix) {
    const Form *rest =
        form_add_scaled(analyzer, s.low, form_divide(analyzer, s.low, radix), -radix);
    Interval b = form_bounds(analyzer, rest);
    if (b.high != NO_HIGH && b.high + width < radix)
      return (RegionSpan){rest, form_add_const(analyzer, rest, width), s.exact, s.dense, s.step};
  }
  bool all = s.dense && s.step == 1 && span_width(run, &s, &width) && width >= radix - 1;
  return (RegionSpan){form_const(analyzer, type, 0), form_const(analyzer, type, radix - 1), all,
                      all, 1};
}

// Multiplies by a product of symbols that do not run and have a known sign.
static RegionSpan span_times(Running *run, RegionSpan s, Expr *cofactor) {
  Analyzer *analyzer = run->analyzer;
  const Form *factor = form_of(analyzer, cofactor);
  if (runs_in(run, cofactor) || !s.low || !s.high) return no_span;
  bool positive = form_nonnegative(analyzer, factor);
  if (!positive && !form_nonnegative(analyzer, form_scale(analyzer, factor, -1))) return no_span;
  const Form *low = form_mul(analyzer, positive ? s.low : s.high, factor);
  const Form *high = form_mul(analyzer, positive ? s.high : s.low, factor);
  return (RegionSpan){low, high, s.exact, false, 1};
}

static RegionSpan span_of_digit(Running *run, DType type, const ArithDigit *d) {
  RegionSpan s = span_of(run, form_typed(run->analyzer, form_of(run->analyzer, d->base), type));
  if (s.low && s.high) s = span_modulo(run, type, span_divide(run, s, d->cut), d->radix);
  return s;
}

// For a product with one running factor, such as n*i, multiplies the factor's span by the others.
static RegionSpan span_of_product(Running *run, DType type, Expr *atom) {
  enum { MOST_FACTORS = 8 };
  Expr *factors[MOST_FACTORS];
  int count = product_factors(atom, factors, MOST_FACTORS), at = -1;
  for (int i = 0; i < count; i++)
    if (runs_in(run, factors[i])) at = at == -1 ? i : -2;
  if (at < 0) return span_constant(run, type, atom_bounds(run->analyzer, atom));
  Expr *mover = factors[at];
  factors[at] = factors[count - 1];
  RegionSpan s = span_of(run, form_typed(run->analyzer, form_of(run->analyzer, mover), type));
  return span_times(run, s, product_of(run->analyzer, factors, count - 1));
}

static RegionSpan span_of_extreme(Running *run, DType type, Expr *atom) {
  Analyzer *analyzer = run->analyzer;
  RegionSpan a = span_of(run, form_typed(analyzer, form_of(analyzer, atom->args[0]), type));
  RegionSpan b = span_of(run, form_typed(analyzer, form_of(analyzer, atom->args[1]), type));
  bool smallest = atom->op == EXPR_MIN;
  const Form *low[2] = {a.low, b.low}, *high[2] = {a.high, b.high};
  if (!a.low || !b.low || !a.high || !b.high) return no_span;
  Expr *x = form_expr(analyzer, low[0]), *y = form_expr(analyzer, low[1]);
  Expr *p = form_expr(analyzer, high[0]), *q = form_expr(analyzer, high[1]);
  if (!x || !y || !p || !q) return no_span;
  ExprOp op = smallest ? EXPR_MIN : EXPR_MAX;
  return (RegionSpan){form_of_simplified(analyzer, expr_binary(analyzer->context, op, x, y)),
                      form_of_simplified(analyzer, expr_binary(analyzer->context, op, p, q)), false,
                      false, 1};
}

static RegionSpan span_of_plain(Running *run, DType type, Expr *atom) {
  if (atom->op == EXPR_MUL) return span_of_product(run, type, atom);
  if (atom->op == EXPR_MIN || atom->op == EXPR_MAX) return span_of_extreme(run, type, atom);
  return span_of_atom(run, type, atom);
}

static RegionSpan span_add(Running *run, RegionSpan a, RegionSpan b) {
  Analyzer *analyzer = run->analyzer;
  if (!a.low || !a.high || !b.low || !b.high) return no_span;
  RegionSpan sum = {form_add(analyzer, a.low, b.low), form_add(analyzer, a.high, b.high),
                    a.exact && b.exact, false, 1};
  int64_t wa, wb;
  bool known_a = span_width(run, &a, &wa), known_b = span_width(run, &b, &wb);
  if (known_a && wa == 0)
    sum.dense = b.dense, sum.step = b.step;
  else if (known_b && wb == 0)
    sum.dense = a.dense, sum.step = a.step;
  else if (known_a || known_b) {
    bool a_fine = known_a && (!known_b || a.step <= b.step); // the width of the other may be free
    const RegionSpan *fine = a_fine ? &a : &b, *coarse = a_fine ? &b : &a;
    int64_t reach = (a_fine ? wa : wb) + fine->step;
    sum.step = fine->step;
    sum.dense = a.dense && b.dense && coarse->step % fine->step == 0 && coarse->step <= reach;
  }
  return sum;
}

// Adds up the digits' spans. The sum is exact only for one digit, since all digits have one base.
static RegionSpan span_of_group(Running *run, DType type, const Group *group) {
  Analyzer *analyzer = run->analyzer;
  const Form *base = form_of(analyzer, group->base);
  bool plain = group->count == 1 && group->cuts[0] == 1;
  if (plain && !group->cofactor)
    return span_scale(run, span_of_plain(run, type, group->base), group->coefs[0]);
  Groups *one = passing_alloc(analyzer, sizeof(Groups) + sizeof(Group));
  one->constant = 0;
  one->count = 1;
  one->items[0] = *group;
  one->items[0].cofactor = NULL;
  RegionSpan span = no_span;
  bool alone = true; // the base consists of running variables
  for (int i = 0; i < base->count; i++) {
    Fact *fact = analyzer_info(analyzer, base->terms[i].atom)->fact;
    alone &= base->terms[i].atom->op == EXPR_VAR && runs_in(run, base->terms[i].atom) && fact &&
             fact->kind == FACT_RANGE && !fact->first && !fact->last;
  }
  if (alone && group->count > 1)
    span = span_constant(run, type, form_group_bounds(analyzer, &one->items[0]));
  if (!span.low) {
    span = span_point(form_const(analyzer, type, 0));
    const Digits *digits = groups_digits(analyzer, one);
    for (int i = 0; i < digits->count; i++) {
      const ArithDigit *d = &digits->items[i];
      RegionSpan part = span_scale(run, span_of_digit(run, type, d), d->coef);
      span = span_add(run, span, part);
      span.exact &= digits->count == 1;
      span.dense &= digits->count == 1;
    }
  }
  return group->cofactor ? span_times(run, span, group->cofactor) : span;
}

static const Form *group_form(Analyzer *analyzer, DType type, const Group *group) {
  const Form *sum = form_const(analyzer, type, 0);
  for (int i = 0; i < group->count; i++) {
    ArithDigit d = {group->coefs[i], group->cuts[i], 0, group->cofactor, group->base};
    sum = form_add(analyzer, sum, digit_form(analyzer, type, &d, d.coef));
  }
  return sum;
}

// True when no variable runs in two groups, so that the groups' ends are reached together.
static bool groups_independent(const Running *run, const Groups *groups) {
  for (int v = 0; v < run->count; v++) {
    int uses = 0;
    for (int i = 0; i < groups->count; i++) {
      const Group *g = &groups->items[i];
      uses += expr_uses(g->base, run->vars[v].var) ||
              (g->cofactor && expr_uses(g->cofactor, run->vars[v].var));
    }
    if (uses > 1) return false;
  }
  return true;
}

static RegionSpan sum_of_groups(Running *run, const Form *f, const Groups *groups) {
  RegionSpan moving[LONGEST_FORM * 2];
  int count = 0;
  const Form *still = form_const(run->analyzer, f->type, groups->constant);
  for (int i = 0; i < groups->count; i++) {
    const Group *g = &groups->items[i];
    if (runs_in(run, g->base) || (g->cofactor && runs_in(run, g->cofactor)))
      moving[count++] = span_of_group(run, f->type, g);
    else
      still = form_add(run->analyzer, still, group_form(run->analyzer, f->type, g));
  }
  RegionSpan sum = span_point(still);
  for (bool added = true; added;) { // finer steps first, so that dense sums are found
    int best = -1;
    for (int i = 0; i < count; i++)
      if (best < 0 || moving[i].step < moving[best].step) best = i;
    added = best >= 0;
    if (!added) break;
    sum = span_add(run, sum, moving[best]);
    moving[best] = moving[--count];
  }
  if (!groups_independent(run, groups)) sum.exact = sum.dense = false;
  return sum;
}

static RegionSpan span_of(Running *run, const Form *f) {
  if (!f || run->depth > MOST_DEPTH) return no_span;
  if (!runs_in_form(run, f)) return span_point(f);
  run->depth++;
  RegionSpan span = sum_of_groups(run, f, form_groups(run->analyzer, f));
  run->depth--;
  if (!span.low || !span.high || runs_in_form(run, span.low) || runs_in_form(run, span.high))
    return no_span;
  return span;
}

// ---- Regions of indices

// Narrows constant ends by assumptions on the whole index, such as 1 <= i*2 + j.
static void draw_in(Running *run, const Form *f, RegionSpan *span) {
  Analyzer *analyzer = run->analyzer;
  int64_t old_low, old_high;
  if (!form_is_const(span->low, &old_low) || !form_is_const(span->high, &old_high)) return;
  Interval assumed = form_assumed_bounds(analyzer, f);
  int64_t low = MAX_OF(old_low, assumed.low), high = MIN_OF(old_high, assumed.high);
  if (low > high || (low == old_low && high == old_high)) return;
  *span = (RegionSpan){form_const(analyzer, f->type, low), form_const(analyzer, f->type, high),
                       false, false, 1};
}

// Does a fact, other than the range of its own variable, tie the variable to something?
static bool fact_ties(const Fact *fact, const Expr *var) {
  switch (fact->kind) {
  case FACT_SIGN: return !fact->of_range && form_uses(fact->form, var);
  case FACT_TRUTH: return expr_uses(fact->atom, var);
  case FACT_NAMED: return expr_uses(fact->condition, var);
  case FACT_VALUE:
    return fact->form->count > 0 && (fact->atom == var || form_uses(fact->form, var));
  case FACT_RANGE:
  case FACT_FENCE: return false;
  }
  return false;
}

// True when only one index uses the variable, and no condition does.
static bool used_once(Analyzer *analyzer, const VarRange *var, Expr *const *indices, int rank) {
  int uses = 0;
  for (int i = 0; i < rank; i++) uses += expr_uses(indices[i], var->var);
  for (int i = 0; i < analyzer->facts.count; i++)
    if (fact_ties(analyzer->facts.items[i], var->var)) return false;
  return uses <= 1;
}

void index_region_of_bound(Analyzer *analyzer, Expr *const *indices, int rank, const VarRange *vars,
                           int var_count, Expr **min, Expr **extent, bool *exact) {
  Running run = {analyzer, vars, var_count, 0};
  bool all_exact = true;
  analyzer_enter(analyzer);
  for (int i = 0; i < var_count; i++) all_exact &= used_once(analyzer, &vars[i], indices, rank);
  for (int i = 0; i < rank; i++) {
    min[i] = extent[i] = NULL;
    if (var_count == 0 && indices[i]->type.lanes == 1) { // a point keeps its written form
      min[i] = indices[i];
      extent[i] = expr_int(analyzer->context, indices[i]->type, 1);
      continue;
    }
    const Form *f = form_of_simplified(analyzer, indices[i]);
    RegionSpan span = dtype_is_index(indices[i]->type) ? span_of(&run, f) : no_span;
    if (span.low) draw_in(&run, f, &span);
    const Form *size = form_add_const(analyzer, form_sub(analyzer, span.high, span.low), 1);
    Expr *from = form_expr(analyzer, span.low), *count = form_expr(analyzer, size);
    int64_t known; // less than 0 where a loop without iterations counts several elements
    if (count && expr_as_int(count, &known) && known < 0)
      count = expr_int(analyzer->context, count->type, 0);
    all_exact &= from && count && span.exact && span.dense && span.step == 1;
    if (from && count) min[i] = from, extent[i] = count;
  }
  if (exact) *exact = all_exact;
  analyzer_leave(analyzer);
}

VarRange loop_range(const Stmt *loop) {
  return (VarRange){loop->as.loop.var, loop->as.loop.min, loop->as.loop.extent};
}

void index_region(Analyzer *analyzer, Expr *const *indices, int rank, const VarRange *vars,
                  int var_count, Expr **min, Expr **extent, bool *exact) {
  int mark = analyzer_mark(analyzer);
  for (int i = 0; i < var_count; i++)
    analyzer_bind(analyzer, vars[i].var, vars[i].min, vars[i].extent);
  index_region_of_bound(analyzer, indices, rank, vars, var_count, min, extent, exact);
  analyzer_reset(analyzer, mark);
}

// ---- Boxes

static Expr *region_end(Context *context, const Region *r, int axis) {
  return expr_add(context, r->min[axis], r->extent[axis]);
}

Region region_union(Analyzer *analyzer, const Region *a, const Region *b) {
  Context *context = analyzer->context;
  int rank = a->buffer->rank;
  Region r = {a->buffer, arena_array(&context->arena, Expr *, rank),
              arena_array(&context->arena, Expr *, rank)};
  for (int i = 0; i < rank; i++) {
    bool same = a->min[i] == b->min[i] && a->extent[i] == b->extent[i];
    Expr *end =
        same ? NULL : expr_max(context, region_end(context, a, i), region_end(context, b, i));
    r.min[i] =
        same ? a->min[i] : analyzer_simplify(analyzer, expr_min(context, a->min[i], b->min[i]));
    r.extent[i] =
        same ? a->extent[i] : analyzer_simplify(analyzer, expr_sub(context, end, r.min[i]));
  }
  return r;
}

bool region_covers(Analyzer *analyzer, const Region *outer, const Region *inner) {
  Context *context = analyzer->context;
  for (int i = 0; i < outer->buffer->rank; i++) {
    if (outer->min[i] == inner->min[i] && outer->extent[i] == inner->extent[i]) continue;
    Expr *below = expr_binary(context, EXPR_LE, outer->min[i], inner->min[i]);
    Expr *above =
        expr_binary(context, EXPR_LE, region_end(context, inner, i), region_end(context, outer, i));
    if (!analyzer_prove(analyzer, below) || !analyzer_prove(analyzer, above)) return false;
  }
  return true;
}
