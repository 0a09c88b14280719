// SPDX-License-Identifier: Apache-2.0
// Simplifies comparisons and the logic of conditions. A comparison of integers is the sign of one
// form,
//   io*16 + ii < 96  =>  95 - io*16 - ii >= 0  =>  5 - io >= 0  =>  io < 6   for 0 <= ii < 16
// which is decided, or reduced and written back as a comparison.
#include "arith/internal.h"

#include <stdlib.h>

// ---- Comparisons to forms

bool comparison_form(Analyzer *analyzer, Expr *e, const Form **out) {
  if (op_table[e->op].class != OP_COMPARE) return false;
  if (!dtype_is_index(e->args[0]->type) || !dtype_is_index(e->args[1]->type)) return false;
  const Form *a = form_of_simplified(analyzer, e->args[0]),
             *b = form_of_simplified(analyzer, e->args[1]);
  bool greater = e->op == EXPR_GT || e->op == EXPR_GE;
  bool strict = e->op == EXPR_GT || e->op == EXPR_LT;
  const Form *f = greater ? form_sub(analyzer, a, b) : form_sub(analyzer, b, a);
  *out = form_add_const(analyzer, f, strict ? -1 : 0);
  return *out != NULL;
}

// Divides f >= 0 by the greatest common divisor of f's coefficients.
static const Form *reduce_gcd(Analyzer *analyzer, const Form *f) {
  int64_t g = form_gcd(f);
  if (g <= 1) return f;
  const Form *r = form_const(analyzer, f->type, floor_div(f->constant, g));
  for (int i = 0; i < f->count; i++)
    r = form_add(analyzer, r, form_term(analyzer, f->type, f->terms[i].coef / g, f->terms[i].atom));
  return r ? r : f;
}

static int64_t largest_coef(const Digits *digits, int64_t below) {
  int64_t best = 1;
  for (int i = 0; i < digits->count; i++) {
    int64_t c = digits->items[i].coef;
    c = c < 0 ? -c : c;
    if (c > best && c < below) best = c;
  }
  return best;
}

// For f = g*H + L: f >= 0 is H + q >= 0 when L stays within [q*g, (q+1)*g).
static const Form *drop_low_digits(Analyzer *analyzer, const Form *f) {
  const Digits *digits = form_digits(analyzer, f);
  for (int64_t g = largest_coef(digits, INT64_MAX); g > 1; g = largest_coef(digits, g)) {
    const Form *high = form_const(analyzer, f->type, floor_div(digits->constant, g));
    const Form *low = form_const(analyzer, f->type, floor_mod(digits->constant, g));
    for (int i = 0; i < digits->count; i++) {
      const ArithDigit *d = &digits->items[i];
      bool whole = d->coef % g == 0;
      const Form *part = digit_form(analyzer, f->type, d, whole ? d->coef / g : d->coef);
      *(whole ? &high : &low) = form_add(analyzer, whole ? high : low, part);
    }
    Interval b = form_bounds(analyzer, low);
    if (!high || b.low == NO_LOW || b.high == NO_HIGH) continue;
    if (floor_div(b.low, g) == floor_div(b.high, g))
      return form_add_const(analyzer, high, floor_div(b.low, g));
  }
  return f;
}

static bool divides_truncating(const Expr *e, int64_t *c) {
  return e->op == EXPR_TRUNC_DIV && expr_as_int(e->args[1], c) && *c > 1;
}

const Form *form_drop_division(Analyzer *analyzer, const Form *f) {
  Expr *base;
  int64_t cut, k, coef = f->count == 1 ? f->terms[0].coef : 0;
  if (coef != 1 && coef != -1) return f;
  bool truncates = divides_truncating(f->terms[0].atom, &cut);
  if (truncates)
    base = f->terms[0].atom->args[0];
  else if (!form_split_division(f->terms[0].atom, &base, &cut))
    return f;
  // The largest number with this quotient counts, or the one behind that of the quotient before.
  bool adds = truncates ? f->constant >= 0 : coef < 0;
  if (!mul_fits(f->constant, cut, &k) || (adds && !add_fits(k, cut - 1, &k))) return f;
  const Form *b = form_typed(analyzer, form_of(analyzer, base), f->type);
  const Form *r = form_add_const(analyzer, form_scale(analyzer, b, coef), k);
  return r ? r : f;
}

// A minimum or maximum in f >= 0 becomes one of its operands where the other one decides nothing:
// min(x, 11) < 10 is x < 10, since 11 < 10 never holds.
static const Form *drop_extreme(Analyzer *analyzer, const Form *f) {
  for (int i = 0; i < f->count; i++) {
    Term t = f->terms[i];
    if (t.atom->op != EXPR_MIN && t.atom->op != EXPR_MAX) continue;
    bool both = (t.atom->op == EXPR_MIN) == (t.coef > 0); // f >= 0 needs both operands, or one
    const Form *rest = form_sub(analyzer, f, form_term(analyzer, f->type, t.coef, t.atom));
    for (int k = 0; k < 2 && rest; k++) {
      const Form *with =
          form_add_scaled(analyzer, rest, form_of(analyzer, t.atom->args[k]), t.coef);
      if (with && form_sign(analyzer, with) == (both ? VERDICT_YES : VERDICT_NO))
        return form_add_scaled(analyzer, rest, form_of(analyzer, t.atom->args[1 - k]), t.coef);
    }
  }
  return f;
}

// The terms of f that have this sign, with the sign removed.
static const Form *side_of(Analyzer *analyzer, const Form *f, int sign) {
  const Digits *digits = form_digits(analyzer, f);
  const Form *side = form_const(analyzer, f->type, 0);
  for (int i = 0; i < digits->count; i++) {
    const ArithDigit *d = &digits->items[i];
    if ((d->coef > 0) == (sign > 0))
      side = form_add(analyzer, side, digit_form(analyzer, f->type, d, d->coef * sign));
  }
  return side;
}

// The constant of f besides its digits, since a digit's base may have a constant of its own.
static int64_t digits_constant(Analyzer *analyzer, const Form *f) {
  return form_digits(analyzer, f)->constant;
}

static Expr *write_compare(Analyzer *analyzer, ExprOp op, const Form *a, const Form *b) {
  Expr *x = form_expr(analyzer, a), *y = form_expr(analyzer, b);
  return x && y ? expr_binary(analyzer->context, op, x, y) : NULL;
}

// Writes f >= 0 with positive coefficients only: -k <= pos, neg < k + 1, or neg <= pos + k.
static Expr *write_sign(Analyzer *analyzer, const Form *f) {
  const Form *positive = side_of(analyzer, f, 1), *negative = side_of(analyzer, f, -1);
  int64_t k = digits_constant(analyzer, f), negated, next;
  if (!positive || !negative || !add_fits(k, 1, &next) || !mul_fits(k, -1, &negated)) return NULL;
  if (!negative->count)
    return write_compare(analyzer, EXPR_LE, form_const(analyzer, f->type, negated), positive);
  if (!positive->count)
    return write_compare(analyzer, EXPR_LT, negative, form_const(analyzer, f->type, next));
  if (k == 0) return write_compare(analyzer, EXPR_LE, negative, positive);
  if (k < 0)
    return write_compare(analyzer, EXPR_LT, form_add_const(analyzer, negative, -next), positive);
  return write_compare(analyzer, EXPR_LT, negative, form_add_const(analyzer, positive, next));
}

// Writes f == 0 (or f != 0) in the same way: neg == pos + k, or a constant alone on the right.
static Expr *write_zero(Analyzer *analyzer, ExprOp op, const Form *f) {
  int64_t g = form_gcd(f);
  if (g > 1 && f->constant % g == 0) f = reduce_gcd(analyzer, f);
  const Form *positive = side_of(analyzer, f, 1), *negative = side_of(analyzer, f, -1);
  int64_t k = digits_constant(analyzer, f), negated;
  if (!positive || !negative || !mul_fits(k, -1, &negated)) return NULL;
  if (!negative->count)
    return write_compare(analyzer, op, positive, form_const(analyzer, f->type, negated));
  if (!positive->count || k >= 0)
    return write_compare(analyzer, op, negative, form_add_const(analyzer, positive, k));
  return write_compare(analyzer, op, positive, form_add_const(analyzer, negative, negated));
}

static Expr *verdict_expr(Analyzer *analyzer, bool value) {
  return expr_bool(analyzer->context, value);
}

static Expr *simplify_equality(Analyzer *analyzer, Expr *e, const Form *f) {
  Verdict v = form_zero(analyzer, f);
  if (v != VERDICT_UNDECIDED)
    return verdict_expr(analyzer, (v == VERDICT_YES) == (e->op == EXPR_EQ));
  Expr *r = write_zero(analyzer, e->op, f);
  return r ? r : e;
}

static Expr *simplify_order(Analyzer *analyzer, Expr *e, const Form *f) {
  Verdict v = form_sign(analyzer, f);
  if (v != VERDICT_UNDECIDED) return verdict_expr(analyzer, v == VERDICT_YES);
  const Form *smaller = reduce_gcd(analyzer, f);
  smaller = reduce_gcd(analyzer, drop_low_digits(analyzer, smaller));
  smaller = reduce_gcd(analyzer, form_drop_division(analyzer, smaller));
  const Form *chosen = drop_extreme(analyzer, smaller);
  if (chosen) smaller = chosen;
  v = smaller == f ? VERDICT_UNDECIDED : form_sign(analyzer, smaller);
  if (v != VERDICT_UNDECIDED) return verdict_expr(analyzer, v == VERDICT_YES);
  Expr *r = write_sign(analyzer, smaller);
  return r ? r : e;
}

static Expr *simplify_comparison(Analyzer *analyzer, Expr *e) {
  const Form *f;
  if (!comparison_form(analyzer, e, &f)) return rules_apply(analyzer, e);
  bool equality = e->op == EXPR_EQ || e->op == EXPR_NE;
  return equality ? simplify_equality(analyzer, e, f) : simplify_order(analyzer, e, f);
}

// ---- Conjunctions and disjunctions

typedef struct Part {
  Expr *e;
  const Form *sign; // e is sign >= 0; NULL: e is no such comparison
  const Form *zero; // e is zero == 0 or zero != 0; NULL: e is no such comparison
} Part;
enum { MOST_PARTS = 24 };

static int gather_parts(Expr *e, ExprOp op, Part *parts, int count) {
  if (e->op == op && count < MOST_PARTS) {
    count = gather_parts(e->args[0], op, parts, count);
    return count < 0 ? count : gather_parts(e->args[1], op, parts, count);
  }
  if (count >= MOST_PARTS) return -1;
  parts[count].e = e;
  return count + 1;
}

static void find_signs(Analyzer *analyzer, Part *parts, int count) {
  for (int i = 0; i < count; i++) {
    const Form *f;
    parts[i].sign = parts[i].zero = NULL;
    if (!comparison_form(analyzer, parts[i].e, &f)) continue;
    bool equality = parts[i].e->op == EXPR_EQ || parts[i].e->op == EXPR_NE;
    *(equality ? &parts[i].zero : &parts[i].sign) = f;
  }
}

// *out = a + factor * b when that is a constant.
static bool constant_apart(Analyzer *analyzer, const Form *a, const Form *b, int factor,
                           int64_t *out) {
  if (!a || !b || a->count != b->count) return false;
  return form_is_const(form_add_scaled(analyzer, a, b, factor), out);
}

// Are a and b equalities, or inequalities, of one sum with two numbers?
static bool different_numbers(Analyzer *analyzer, const Part *a, const Part *b) {
  int64_t number;
  return (constant_apart(analyzer, a->zero, b->zero, -1, &number) && number != 0) ||
         (constant_apart(analyzer, a->zero, b->zero, 1, &number) && number != 0);
}

// Is `b` true where the sum of `a`, an equality or inequality, is 0? UNDECIDED for other sums.
static Verdict truth_at_zero(Analyzer *analyzer, const Part *a, const Part *b, bool conjunction) {
  int64_t number;
  if (a->e->op != (conjunction ? EXPR_EQ : EXPR_NE)) return VERDICT_UNDECIDED;
  bool decided = constant_apart(analyzer, b->sign, a->zero, -1, &number) ||
                 constant_apart(analyzer, b->sign, a->zero, 1, &number);
  return !decided ? VERDICT_UNDECIDED : number >= 0 ? VERDICT_YES : VERDICT_NO;
}

static bool opposites(Analyzer *analyzer, const Part *a, const Part *b, bool conjunction) {
  int64_t sum;
  if (expr_unary(analyzer->context, EXPR_NOT, a->e) == b->e) return true;
  ExprOp op = conjunction ? EXPR_EQ : EXPR_NE; // never both, or always one
  if (a->e->op == op && b->e->op == op && different_numbers(analyzer, a, b)) return true;
  Verdict whole = conjunction ? VERDICT_NO : VERDICT_YES;
  if (truth_at_zero(analyzer, a, b, conjunction) == whole) return true;
  if (truth_at_zero(analyzer, b, a, conjunction) == whole) return true;
  if (!constant_apart(analyzer, a->sign, b->sign, 1, &sum)) return false;
  return conjunction ? sum < 0 : sum >= -1; // never both, or always at least one
}

// 1 when part a alone says as much as both, -1 when part b does, 0 when neither does.
static int stronger(Analyzer *analyzer, const Part *a, const Part *b, bool conjunction) {
  int64_t apart;
  for (int i = 1; i >= -1; i -= 2) { // x == 1 implies x < 2, and x > 2 implies x != 1
    Verdict v = truth_at_zero(analyzer, i > 0 ? a : b, i > 0 ? b : a, conjunction);
    if (v == (conjunction ? VERDICT_YES : VERDICT_NO)) return i;
  }
  if (a->e == b->e) return 1;
  if (a->e->op != b->e->op && different_numbers(analyzer, a, b)) // x == 1 implies x != 2
    return (a->e->op == EXPR_EQ) == conjunction ? 1 : -1;
  if (!constant_apart(analyzer, a->sign, b->sign, -1, &apart)) return 0;
  bool a_implies = apart <= 0;
  return a_implies == conjunction ? 1 : -1;
}

// Drops the parts that another part implies. True when two parts decide the whole.
static bool merge_parts(Analyzer *analyzer, Part *parts, int *count, bool conjunction) {
  for (int i = 0; i < *count; i++)
    for (int j = i + 1; j < *count; j++) {
      if (opposites(analyzer, &parts[i], &parts[j], conjunction)) return true;
      int which = stronger(analyzer, &parts[i], &parts[j], conjunction);
      if (!which) continue;
      int weaker = which < 0 ? i : j;
      memmove(&parts[weaker], &parts[weaker + 1], sizeof *parts * (size_t)(*count - weaker - 1));
      (*count)--;
      j = which < 0 ? i : j - 1; // of the part that is at i now
    }
  return false;
}

// ---- Quotients

// Is the part x // c == k? *sum is x // c - k, whose term is the quotient.
static bool is_quotient(Analyzer *analyzer, const Part *part, const Form **sum) {
  Expr *base;
  int64_t cut;
  if (part->e->op != EXPR_EQ || !part->zero || part->zero->count != 1) return false;
  *sum = form_scale(analyzer, part->zero, part->zero->terms[0].coef < 0 ? -1 : 1);
  return *sum && (*sum)->terms[0].coef == 1 &&
         form_split_division((*sum)->terms[0].atom, &base, &cut);
}

// A part in which the quotient has its value: x % 8 == 4, which is x - x // 8 * 8 == 4, is x == 28
// for x // 8 == 3. NULL for a part without the quotient.
static Expr *with_quotient(Analyzer *analyzer, const Part *part, const Form *sum) {
  const Form *f = part->sign ? part->sign : part->zero;
  int64_t coef = f ? form_coef(f, sum->terms[0].atom) : 0;
  if (!coef || !(f = form_add_scaled(analyzer, f, sum, -coef))) return NULL;
  Expr *zero = expr_int(analyzer->context, f->type, 0), *left = form_expr(analyzer, f);
  ExprOp op = part->sign ? EXPR_GE : part->e->op;
  if (!left) return NULL;
  return analyzer_simplify(analyzer, expr_binary(analyzer->context, op, left, zero));
}

// Replaces x // 8 == 3 by 24 <= x and x < 32 where other parts of the conjunction have the
// quotient.
static bool use_quotient(Analyzer *analyzer, Part *parts, int *count) {
  const Form *sum = NULL;
  int at = 0, used = 0;
  while (at < *count && !is_quotient(analyzer, &parts[at], &sum)) at++;
  if (at == *count || *count >= MOST_PARTS) return false;
  for (int i = 0; i < *count; i++) {
    Expr *e = i == at ? NULL : with_quotient(analyzer, &parts[i], sum);
    if (e && e->op != EXPR_AND && e->op != EXPR_OR) parts[i].e = e, used++;
  }
  if (!used) return false;
  Context *context = analyzer->context;
  Expr *quotient = sum->terms[0].atom, *value = expr_int(context, quotient->type, -sum->constant);
  memmove(&parts[at + 1], &parts[at], sizeof *parts * (size_t)(*count - at));
  parts[at].e = analyzer_simplify(analyzer, expr_binary(context, EXPR_LE, value, quotient));
  parts[at + 1].e = analyzer_simplify(analyzer, expr_binary(context, EXPR_LE, quotient, value));
  (*count)++;
  find_signs(analyzer, parts, *count);
  return true;
}

static Expr *simplify_parts(Analyzer *analyzer, Expr *e) {
  Part parts[MOST_PARTS];
  bool conjunction = e->op == EXPR_AND;
  if (e->type.lanes > 1) return rules_apply(analyzer, e);
  int count = gather_parts(e, e->op, parts, 0), before = count;
  if (count < 0) return e;
  find_signs(analyzer, parts, count);
  bool changed = conjunction && use_quotient(analyzer, parts, &count);
  changed |= e->args[1]->op == e->op; // p and (q and r) is p and q and r
  if (merge_parts(analyzer, parts, &count, conjunction))
    return verdict_expr(analyzer, !conjunction);
  if (count == before && !changed) return e;
  Expr *r = parts[0].e;
  for (int i = 1; i < count; i++) r = expr_binary(analyzer->context, e->op, r, parts[i].e);
  return r;
}

// Simplifies `e` under the truth of `given`, another part of the same conjunction or disjunction.
static Expr *simplify_under(Analyzer *analyzer, Expr *e, Expr *given, bool truth) {
  if (analyzer->assumed >= MOST_ASSUMED) return e;
  int mark = analyzer_mark(analyzer);
  analyzer->assumed++;
  analyzer_assume(analyzer, truth ? given : expr_unary(analyzer->context, EXPR_NOT, given));
  Expr *r = analyzer_simplify(analyzer, e);
  analyzer->assumed--;
  analyzer_reset(analyzer, mark);
  return r;
}

static Expr *simplify_mutually(Analyzer *analyzer, Expr *e) {
  bool conjunction = e->op == EXPR_AND;
  Expr *b = simplify_under(analyzer, e->args[1], e->args[0], conjunction);
  Expr *a = b->op == EXPR_INT ? e->args[0] : simplify_under(analyzer, e->args[0], b, conjunction);
  return expr_binary(analyzer->context, e->op, a, b);
}

// A condition with the values of the names in it.
static Expr *without_names(Analyzer *analyzer, Expr *e) {
  const Fact *fact = e->op == EXPR_VAR ? analyzer_info(analyzer, e)->fact : NULL;
  if (fact && fact->kind == FACT_NAMED) return fact->condition;
  if (e->op == EXPR_NOT)
    return expr_unary(analyzer->context, EXPR_NOT, without_names(analyzer, e->args[0]));
  if (e->op != EXPR_AND && e->op != EXPR_OR) return e;
  Expr *a = without_names(analyzer, e->args[0]), *b = without_names(analyzer, e->args[1]);
  return expr_binary(analyzer->context, e->op, a, b);
}

// Names stay, unless their values decide the condition.
static Expr *decided_by_names(Analyzer *analyzer, Expr *e) {
  Expr *open = analyzer->named_count ? without_names(analyzer, e) : e;
  if (open == e || analyzer->assumed >= MOST_ASSUMED) return e;
  analyzer->assumed++;
  Expr *value = analyzer_simplify(analyzer, open);
  analyzer->assumed--;
  return value->op == EXPR_INT ? value : e;
}

static Expr *known_truth(Analyzer *analyzer, Expr *e) {
  Fact *fact = analyzer->truth_count ? analyzer_info(analyzer, e)->fact : NULL;
  if (fact && fact->kind == FACT_TRUTH) return verdict_expr(analyzer, fact->truth);
  Expr *opposite = analyzer->truth_count ? expr_unary(analyzer->context, EXPR_NOT, e) : e;
  fact = opposite != e ? analyzer_info(analyzer, opposite)->fact : NULL;
  if (fact && fact->kind == FACT_TRUTH) return verdict_expr(analyzer, !fact->truth);
  return e;
}

Expr *analyzer_simplify_condition(Analyzer *analyzer, Expr *e) {
  if (op_table[e->op].class == OP_COMPARE) e = simplify_comparison(analyzer, e);
  if (e->op == EXPR_AND || e->op == EXPR_OR) e = simplify_parts(analyzer, e);
  if (analyzer->deep && e->type.lanes == 1 && (e->op == EXPR_AND || e->op == EXPR_OR))
    e = simplify_mutually(analyzer, e);
  if (e->type.lanes == 1 && e->op != EXPR_INT) e = decided_by_names(analyzer, e);
  return e->type.lanes == 1 && e->op != EXPR_INT ? known_truth(analyzer, e) : e;
}
