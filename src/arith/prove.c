// SPDX-License-Identifier: Apache-2.0
// Proves signs of linear forms, in this order: constant bounds; assumptions; symbolic ranges, where
// an end of a variable's range is put for the variable (the variable bound last comes first, since
// its range may depend on earlier ones); both sides of min, max and choices.
#include "arith/internal.h"

enum { MOST_SIGNS = 32 };

// Depth and steps of the search: when simplifying, and when a proof is asked for.
static const struct {
  int depth, steps;
} effort_of[] = {{4, 40}, {6, 400}};

static bool nonnegative(Analyzer *analyzer, const Form *f, int effort);

// ---- Assumptions

static bool share_atoms(const Form *a, const Form *b) {
  for (int i = 0; i < a->count; i++)
    if (form_coef(b, a->terms[i].atom)) return true;
  return false;
}

// For fact >= 0: tries each k > 0 for which f - k * fact cancels a common atom. If that is >= 0, so
// is f.
static bool by_one_sign(Analyzer *analyzer, const Form *f, const Form *fact, int effort) {
  int64_t tried[4];
  int count = 0;
  for (int i = 0; i < f->count && count < COUNT_OF(tried); i++) {
    int64_t a = f->terms[i].coef, b = form_coef(fact, f->terms[i].atom);
    if (b == 0 || a % b || a / b <= 0) continue;
    int64_t k = a / b;
    bool again = false;
    for (int j = 0; j < count; j++) again |= tried[j] == k;
    if (again) continue;
    tried[count++] = k;
    const Form *left = form_add_scaled(analyzer, f, fact, -k);
    if (left && nonnegative(analyzer, left, effort - 1)) return true;
  }
  return false;
}

// For fact >= 0: tries each m > 1 for which m * f - fact cancels a common atom. If that is above
// -m, so is m * f, and the integer f is above -1.
static bool by_one_sign_scaled(Analyzer *analyzer, const Form *f, const Form *fact, int effort) {
  int64_t last = 0;
  for (int i = 0; i < f->count; i++) {
    int64_t a = f->terms[i].coef, b = form_coef(fact, f->terms[i].atom);
    if (b == 0 || b % a || b / a <= 1 || b / a == last) continue;
    last = b / a;
    const Form *left = form_add_scaled(analyzer, form_scale(analyzer, f, last), fact, -1);
    if (left) left = form_add_const(analyzer, left, last - 1);
    if (left && nonnegative(analyzer, left, effort - 1)) return true;
  }
  return false;
}

static bool by_signs(Analyzer *analyzer, const Form *f, int effort) {
  int seen = 0;
  for (int i = analyzer->facts.count - 1; i >= 0 && seen < MOST_SIGNS; i--) {
    const Fact *fact = analyzer->facts.items[i];
    if (fact->kind != FACT_SIGN || !share_atoms(f, fact->form)) continue;
    seen++;
    if (by_one_sign(analyzer, f, fact->form, effort)) return true;
    if (analyzer->proving && by_one_sign_scaled(analyzer, f, fact->form, effort)) return true;
  }
  return false;
}

// ---- Symbolic ranges

enum { MOST_FACTORS = 8 };

// Writes f as slope * var + rest, where neither contains var. False when var is inside an atom.
static bool split_var(Analyzer *analyzer, const Form *f, Expr *var, const Form **slope,
                      const Form **rest) {
  *slope = form_const(analyzer, f->type, 0);
  *rest = form_const(analyzer, f->type, f->constant);
  for (int i = 0; i < f->count; i++) {
    Term t = f->terms[i];
    Expr *factors[MOST_FACTORS];
    int count = product_factors(t.atom, factors, MOST_FACTORS), at = -1;
    for (int j = 0; j < count; j++)
      if (factors[j] == var) at = j;
    if (at < 0) {
      if (expr_uses(t.atom, var)) return false;
      *rest = form_add(analyzer, *rest, form_term(analyzer, f->type, t.coef, t.atom));
      continue;
    }
    factors[at] = factors[count - 1];
    const Form *others =
        count == 1 ? form_const(analyzer, f->type, t.coef)
                   : form_term(analyzer, f->type, t.coef, product_of(analyzer, factors, count - 1));
    *slope = form_add(analyzer, *slope, others);
  }
  return *slope && *rest && !form_uses(*slope, var);
}

// The range of the variable that was bound last, among those with a symbolic range.
static Fact *latest_range(Analyzer *analyzer, const Form *f) {
  for (int i = analyzer->facts.count - 1; i >= 0; i--) {
    Fact *fact = analyzer->facts.items[i];
    bool symbolic = fact->kind == FACT_RANGE && (fact->first || fact->last);
    if (!symbolic || analyzer_info(analyzer, fact->atom)->fact != fact) continue;
    if (form_uses(f, fact->atom)) return fact;
  }
  return NULL;
}

const Form *fact_range_end(Analyzer *analyzer, const Fact *fact, bool last) {
  const Form *symbolic = last ? fact->last : fact->first;
  int64_t constant = last ? fact->bounds.high : fact->bounds.low;
  if (symbolic) return symbolic;
  if (constant == NO_LOW || constant == NO_HIGH) return NULL;
  return form_const(analyzer, fact->atom->type, constant);
}

static bool by_ranges(Analyzer *analyzer, const Form *f, int effort) {
  Fact *fact = latest_range(analyzer, f);
  const Form *slope, *rest;
  if (!fact || !split_var(analyzer, f, fact->atom, &slope, &rest)) return false;
  bool rising = nonnegative(analyzer, slope, effort - 2);
  if (!rising && !nonnegative(analyzer, form_scale(analyzer, slope, -1), effort - 2)) return false;
  const Form *end = fact_range_end(analyzer, fact, !rising);
  const Form *least = form_add(analyzer, rest, form_mul(analyzer, slope, end));
  return least && nonnegative(analyzer, least, effort - 1);
}

// ---- Both sides of min, max and choices

static const Form *replace_atom(Analyzer *analyzer, const Form *f, Term t, Expr *by) {
  const Form *others = form_sub(analyzer, f, form_term(analyzer, f->type, t.coef, t.atom));
  return form_add_scaled(analyzer, others, form_of(analyzer, by), t.coef);
}

static bool by_sides(Analyzer *analyzer, const Form *f, Term t, Expr *a, Expr *b, bool both,
                     int effort) {
  const Form *with_a = replace_atom(analyzer, f, t, a), *with_b = replace_atom(analyzer, f, t, b);
  bool one = with_a && nonnegative(analyzer, with_a, effort - 1);
  if (one != both) return one;
  return with_b && nonnegative(analyzer, with_b, effort - 1);
}

static bool by_choices(Analyzer *analyzer, const Form *f, int effort) {
  for (int i = 0; i < f->count; i++) {
    Term t = f->terms[i];
    Expr *const *args = t.atom->args;
    bool lower = t.coef > 0; // f >= 0 needs the atom to be large
    if (t.atom->op == EXPR_MIN || t.atom->op == EXPR_MAX)
      return by_sides(analyzer, f, t, args[0], args[1], (t.atom->op == EXPR_MIN) == lower, effort);
    if (t.atom->op == EXPR_SELECT || t.atom->op == EXPR_IF_THEN_ELSE)
      return by_sides(analyzer, f, t, args[1], args[2], true, effort);
  }
  return false;
}

// ---- Floors and rests: c * (B // c) is at most B and at least B - (c - 1)

// Removes one floor from cut * f, which is at least `least`. Where that is above -cut, f is above
// -1.
static bool by_floors(Analyzer *analyzer, const Form *f, int effort) {
  for (int i = 0; i < f->count; i++) {
    Term t = f->terms[i];
    Expr *base;
    int64_t cut;
    if (!form_split_division(t.atom, &base, &cut)) continue;
    const Form *others = form_sub(analyzer, f, form_term(analyzer, f->type, t.coef, t.atom));
    const Form *least = form_of(analyzer, base);
    if (t.coef > 0) least = form_add_const(analyzer, least, 1 - cut);
    least =
        form_add(analyzer, form_scale(analyzer, others, cut), form_scale(analyzer, least, t.coef));
    least = form_add_const(analyzer, least, cut - 1);
    if (least && nonnegative(analyzer, least, effort - 2)) return true;
  }
  return false;
}

// As by_floors, for divisors n > 0 that are no constant: where n * f >= 1 - n, f is at least 0.
static bool by_symbolic_floors(Analyzer *analyzer, const Form *f, int effort) {
  for (int i = 0; i < f->count; i++) {
    Term t = f->terms[i];
    if (t.atom->op != EXPR_FLOOR_DIV || expr_as_int(t.atom->args[1], &(int64_t){0})) continue;
    const Form *n = form_of(analyzer, t.atom->args[1]), *rest = form_add_const(analyzer, n, -1);
    if (!nonnegative(analyzer, rest, effort - 2)) continue;
    const Form *others = form_sub(analyzer, f, form_term(analyzer, f->type, t.coef, t.atom));
    const Form *least = form_of(analyzer, t.atom->args[0]);
    if (t.coef > 0) least = form_sub(analyzer, least, rest);
    least = form_add(analyzer, form_mul(analyzer, others, n),
                     form_add_scaled(analyzer, rest, least, t.coef));
    if (nonnegative(analyzer, least, effort - 1)) return true;
  }
  return false;
}

// Uses that x % n is in [0, n) for n > 0.
static bool by_rests(Analyzer *analyzer, const Form *f, int effort) {
  for (int i = 0; i < f->count; i++) {
    Term t = f->terms[i];
    if (t.atom->op != EXPR_FLOOR_MOD) continue;
    const Form *n = form_of(analyzer, t.atom->args[1]);
    if (!nonnegative(analyzer, form_add_const(analyzer, n, -1), effort - 2)) continue;
    const Form *others = form_sub(analyzer, f, form_term(analyzer, f->type, t.coef, t.atom));
    if (t.coef < 0)
      others = form_add_scaled(analyzer, others, form_add_const(analyzer, n, -1), t.coef);
    return others && nonnegative(analyzer, others, effort - 1);
  }
  return false;
}

static bool nonnegative(Analyzer *analyzer, const Form *f, int effort) {
  if (!f || analyzer->steps-- <= 0) return false;
  Interval b = form_bounds(analyzer, f);
  if (b.low >= 0) return true;
  if (b.high < 0 || effort <= 0 || f->count == 0) return false;
  if (analyzer->sign_count && by_signs(analyzer, f, effort)) return true;
  if (analyzer->range_count && by_ranges(analyzer, f, effort)) return true;
  return by_choices(analyzer, f, effort) || by_floors(analyzer, f, effort) ||
         by_symbolic_floors(analyzer, f, effort) || by_rests(analyzer, f, effort);
}

bool form_nonnegative(Analyzer *analyzer, const Form *f) {
  PassingMark mark = passing_mark(analyzer);
  analyzer->steps = effort_of[analyzer->proving].steps;
  bool proved = nonnegative(analyzer, f, effort_of[analyzer->proving].depth);
  passing_reset(analyzer, mark);
  return proved;
}

Verdict form_sign(Analyzer *analyzer, const Form *f) {
  if (!f) return VERDICT_UNDECIDED;
  if (form_nonnegative(analyzer, f)) return VERDICT_YES;
  const Form *opposite = form_add_const(analyzer, form_scale(analyzer, f, -1), -1);
  return form_nonnegative(analyzer, opposite) ? VERDICT_NO : VERDICT_UNDECIDED;
}

static bool excluded_by_residue(Analyzer *analyzer, const Form *f) {
  int64_t divisor, rest;
  form_modular(analyzer, f, &divisor, &rest);
  return rest != 0;
}

// Is f without the terms that `divisor` divides never a multiple of it? Then f is not 0.
static bool excluded_by_multiples(Analyzer *analyzer, const Form *f, int64_t divisor) {
  const Form *rest = form_const(analyzer, f->type, f->constant);
  for (int i = 0; i < f->count; i++) {
    const Term *t = &f->terms[i];
    if (t->coef % divisor)
      rest = form_add(analyzer, rest, form_term(analyzer, f->type, t->coef, t->atom));
  }
  if (!rest) return false;
  Interval bounds = form_bounds(analyzer, rest);
  if (bounds.low < INT64_MIN / 2 || bounds.high == INT64_MAX) return false;
  return floor_div(bounds.high, divisor) * divisor < bounds.low;
}

static bool excluded_by_rests(Analyzer *analyzer, const Form *f) {
  for (int i = 0; i < f->count; i++) {
    int64_t coef = f->terms[i].coef, divisor = coef < 0 ? -coef : coef;
    if (divisor > 1 && excluded_by_multiples(analyzer, f, divisor)) return true;
  }
  return false;
}

Verdict form_zero(Analyzer *analyzer, const Form *f) {
  int64_t value;
  if (!f) return VERDICT_UNDECIDED;
  if (form_is_const(f, &value)) return value ? VERDICT_NO : VERDICT_YES;
  if (excluded_by_residue(analyzer, f)) return VERDICT_NO;
  Verdict at_least = form_sign(analyzer, f);
  if (at_least == VERDICT_NO) return VERDICT_NO;
  Verdict at_most = form_sign(analyzer, form_scale(analyzer, f, -1));
  if (at_most == VERDICT_NO) return VERDICT_NO;
  if (analyzer->proving && excluded_by_rests(analyzer, f)) return VERDICT_NO;
  return at_least == VERDICT_YES && at_most == VERDICT_YES ? VERDICT_YES : VERDICT_UNDECIDED;
}

// ---- Conditions

static bool prove_side(Analyzer *analyzer, Expr *given, bool truth, Expr *wanted) {
  int mark = analyzer_mark(analyzer);
  analyzer_assume(analyzer, truth ? given : expr_unary(analyzer->context, EXPR_NOT, given));
  bool proved = analyzer_prove(analyzer, wanted);
  analyzer_reset(analyzer, mark);
  return proved;
}

// Proves with the larger effort what simplification did not decide.
static bool prove_comparison(Analyzer *analyzer, Expr *condition) {
  const Form *f;
  bool outer = analyzer->proving;
  if (!comparison_form(analyzer, condition, &f)) return false;
  analyzer->proving = true;
  bool equality = condition->op == EXPR_EQ || condition->op == EXPR_NE;
  Verdict verdict = equality                        ? form_zero(analyzer, f)
                    : form_nonnegative(analyzer, f) ? VERDICT_YES
                                                    : VERDICT_UNDECIDED;
  analyzer->proving = outer;
  return verdict == (condition->op == EXPR_NE ? VERDICT_NO : VERDICT_YES);
}

static bool prove_condition(Analyzer *analyzer, Expr *condition) {
  condition = analyzer_simplify(analyzer, condition);
  if (expr_is_true(condition)) return true;
  if (!dtype_is_bool(condition->type) || condition->type.lanes != 1) return false;
  Expr *const *args = condition->args;
  switch (condition->op) {
  case EXPR_AND: return analyzer_prove(analyzer, args[0]) && analyzer_prove(analyzer, args[1]);
  case EXPR_OR:
    return prove_side(analyzer, args[0], false, args[1]) ||
           prove_side(analyzer, args[1], false, args[0]);
  case EXPR_SELECT:
  case EXPR_IF_THEN_ELSE:
    return prove_side(analyzer, args[0], true, args[1]) &&
           prove_side(analyzer, args[0], false, args[2]);
  default: return prove_comparison(analyzer, condition);
  }
}

bool analyzer_prove(Analyzer *analyzer, Expr *condition) {
  analyzer_enter(analyzer);
  bool proved = prove_condition(analyzer, condition);
  analyzer_leave(analyzer);
  return proved;
}

Expr *analyzer_unproved_within(Analyzer *analyzer, Expr *value, Expr *begin, Expr *end) {
  Context *context = analyzer->context;
  Expr *low = expr_binary(context, EXPR_LE, begin, value), *high = expr_lt(context, value, end);
  bool above = analyzer_prove(analyzer, low), below = analyzer_prove(analyzer, high);
  if (above && below) return expr_bool(context, true);
  return above ? high : below ? low : expr_and(context, low, high);
}

bool analyzer_prove_within(Analyzer *analyzer, Expr *value, Expr *begin, Expr *end) {
  Context *context = analyzer->context;
  return analyzer_prove(analyzer, expr_binary(context, EXPR_LE, begin, value)) &&
         analyzer_prove(analyzer, expr_lt(context, value, end));
}

bool analyzer_prove_equal(Analyzer *analyzer, Expr *a, Expr *b) {
  if (a == b) return true;
  if (!dtype_is_index(a->type) || !dtype_is_index(b->type))
    return dtype_equal(a->type, b->type) &&
           analyzer_simplify(analyzer, a) == analyzer_simplify(analyzer, b);
  analyzer_enter(analyzer);
  const Form *x = form_of_simplified(analyzer, a), *y = form_of_simplified(analyzer, b);
  bool outer = analyzer->proving;
  analyzer->proving = true;
  bool equal = form_zero(analyzer, form_sub(analyzer, x, y)) == VERDICT_YES;
  analyzer->proving = outer;
  analyzer_leave(analyzer);
  return equal;
}
