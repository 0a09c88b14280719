// SPDX-License-Identifier: Apache-2.0
// Shortens sums in which terms cancel with parts of other terms:
//   min(x, n - y) + y    =>  min(x + y, n)
//   min(x, y) + max(x, y)  =>  x + y
//   select(p, x, y) - x  =>  select(p, 0, y - x)
//   (x + 1)//2 - x//2    =>  x % 2
//   x - truncdiv(x, 3)*3 =>  truncmod(x, 3)
// Each rewrite is kept where it makes the sum shorter, so that their repetition ends. Only sums
// without numbers from memory are rewritten, since their parts may overflow where the sum does not.
#include "arith/internal.h"

static int length(Analyzer *analyzer, const Form *f) {
  return form_digits(analyzer, f)->count + (form_digits(analyzer, f)->constant != 0);
}

// The same, with factors that terms are multiplied by.
static int length_with_factors(Analyzer *analyzer, const Form *f) {
  int count = length(analyzer, f);
  for (int i = 0; i < f->count; i++) count += f->terms[i].coef != 1 && f->terms[i].coef != -1;
  return count;
}

static const Form *without(Analyzer *analyzer, const Form *f, Term t) {
  return form_sub(analyzer, f, form_term(analyzer, f->type, t.coef, t.atom));
}

// ---- Minima and maxima

// The part of `rest` that cancels, `coef` times, with a term of one of the operands.
static const Form *cancelling(Analyzer *analyzer, const Form *rest, int64_t coef, const Form *a,
                              const Form *b) {
  const Form *part = form_const(analyzer, rest->type, 0);
  for (int i = 0; i < rest->count && part; i++) {
    Term t = rest->terms[i];
    int64_t k = t.coef / coef;
    if (t.coef % coef || (form_coef(a, t.atom) != -k && form_coef(b, t.atom) != -k)) continue;
    part = form_add(analyzer, part, form_term(analyzer, rest->type, k, t.atom));
  }
  int64_t k = rest->constant / coef;
  bool cancels = k && rest->constant % coef == 0 && (a->constant == -k || b->constant == -k);
  return cancels ? form_add_const(analyzer, part, k) : part;
}

// A minimum or maximum of a and b, or a choice between them.
typedef struct SumChoice {
  ExprOp op;
  Expr *condition; // of a selection
  const Form *a, *b;
} SumChoice;

static bool is_selection(ExprOp op) {
  return op == EXPR_SELECT || op == EXPR_IF_THEN_ELSE;
}

static SumChoice choice_of(Analyzer *analyzer, const Form *f, const Expr *e) {
  bool selects = is_selection(e->op);
  return (SumChoice){e->op, selects ? e->args[0] : NULL,
                     form_typed(analyzer, form_of(analyzer, e->args[selects]), f->type),
                     form_typed(analyzer, form_of(analyzer, e->args[selects + 1]), f->type)};
}

static const Form *choice_form(Analyzer *analyzer, const SumChoice *choice) {
  Context *context = analyzer->context;
  Expr *x = form_expr(analyzer, choice->a), *y = form_expr(analyzer, choice->b);
  if (!x || !y) return NULL;
  Expr *e = choice->op == EXPR_SELECT         ? expr_select(context, choice->condition, x, y)
            : choice->op == EXPR_IF_THEN_ELSE ? expr_if_then_else(context, choice->condition, x, y)
                                              : expr_binary(context, choice->op, x, y);
  return form_of_simplified(analyzer, e);
}

// The choice times -1: -min(a, b) is max(-a, -b).
static SumChoice negated(Analyzer *analyzer, SumChoice choice) {
  if (choice.op == EXPR_MIN || choice.op == EXPR_MAX)
    choice.op = choice.op == EXPR_MIN ? EXPR_MAX : EXPR_MIN;
  choice.a = form_scale(analyzer, choice.a, -1);
  choice.b = form_scale(analyzer, choice.b, -1);
  return choice;
}

// Moves terms that are added to a minimum, maximum or selection into it, or are subtracted.
static const Form *move_into(Analyzer *analyzer, const Form *f, Term t) {
  const Form *rest = without(analyzer, f, t);
  SumChoice choice = choice_of(analyzer, f, t.atom);
  int64_t coef = t.coef < 0 ? -t.coef : t.coef;
  if (t.coef < 0) choice = negated(analyzer, choice);
  const Form *a = choice.a, *b = choice.b;
  if (!rest || !a || !b) return f;
  const Form *part = cancelling(analyzer, rest, coef, a, b);
  if (!part || (!part->count && !part->constant)) return f;
  int before = length(analyzer, a) + length(analyzer, b) + length(analyzer, rest);
  rest = form_add_scaled(analyzer, rest, part, -coef);
  choice.a = a = form_add(analyzer, a, part);
  choice.b = b = form_add(analyzer, b, part);
  if (!rest || !a || !b) return f;
  if (length(analyzer, a) + length(analyzer, b) + length(analyzer, rest) >= before) return f;
  const Form *r = form_add_scaled(analyzer, rest, choice_form(analyzer, &choice), coef);
  return r ? r : f;
}

// c*select(P, a, b) + d*select(P, x, y) is select(P, c*a + d*x, c*b + d*y).
static const Form *merge_selections(Analyzer *analyzer, const Form *f, Term t, Term other) {
  bool same = other.atom->op == t.atom->op && other.atom->args[0] == t.atom->args[0];
  if (!same) return f;
  SumChoice choice = choice_of(analyzer, f, t.atom), second = choice_of(analyzer, f, other.atom);
  choice.a = form_scale(analyzer, choice.a, t.coef);
  choice.b = form_scale(analyzer, choice.b, t.coef);
  choice.a = form_add_scaled(analyzer, choice.a, second.a, other.coef);
  choice.b = form_add_scaled(analyzer, choice.b, second.b, other.coef);
  const Form *rest = without(analyzer, without(analyzer, f, t), other);
  const Form *r = form_add(analyzer, rest, choice_form(analyzer, &choice));
  return r ? r : f;
}

// The difference of two minima, or two maxima, whose operands are equally far apart. The sum of a
// minimum and a maximum is such a difference: min(p, q) is -max(-p, -q).
static const Form *cancel_extremes(Analyzer *analyzer, const Form *f, Term t, Term other) {
  if (other.atom->op != EXPR_MIN && other.atom->op != EXPR_MAX) return f;
  bool same = other.atom->op == t.atom->op;
  int sign = same ? -1 : 1;
  if (other.coef != sign * t.coef) return f;
  const Form *a = form_of(analyzer, t.atom->args[0]), *b = form_of(analyzer, t.atom->args[1]);
  for (int i = 0; i < 2; i++) {
    const Form *p = form_of(analyzer, other.atom->args[i]);
    const Form *q = form_of(analyzer, other.atom->args[1 - i]);
    const Form *apart = form_add_scaled(analyzer, a, p, sign);
    int64_t zero;
    if (!form_is_const(form_sub(analyzer, apart, form_add_scaled(analyzer, b, q, sign)), &zero) ||
        zero != 0)
      continue;
    const Form *rest = without(analyzer, without(analyzer, f, t), other);
    const Form *r = form_add_scaled(analyzer, rest, form_typed(analyzer, apart, f->type), t.coef);
    return r ? r : f;
  }
  return f;
}

static const Form *shorten_choice(Analyzer *analyzer, const Form *f, Term t) {
  for (int i = 0; i < f->count; i++) {
    if (f->terms[i].atom == t.atom) continue;
    const Form *r = is_selection(t.atom->op) ? merge_selections(analyzer, f, t, f->terms[i])
                                             : cancel_extremes(analyzer, f, t, f->terms[i]);
    if (r != f) return r;
  }
  return move_into(analyzer, f, t);
}

// ---- Halves

// Writes the half of x + 1 as x - x//2 where the sum has x//2, too.
static const Form *merge_halves(Analyzer *analyzer, const Form *f, Term t) {
  Expr *base, *other;
  int64_t cut, apart;
  if (!form_split_division(t.atom, &base, &cut) || cut != 2) return f;
  const Form *above = form_of(analyzer, base);
  for (int i = 0; i < f->count; i++) {
    bool is_half = f->terms[i].atom != t.atom &&
                   form_split_division(f->terms[i].atom, &other, &cut) && cut == 2;
    if (!is_half) continue;
    const Form *below = form_of(analyzer, other);
    if (!form_is_const(form_sub(analyzer, above, below), &apart) || apart != 1) continue;
    const Form *half = form_term(analyzer, f->type, 1, f->terms[i].atom);
    const Form *r = form_sub(analyzer, form_typed(analyzer, below, f->type), half);
    r = form_add_scaled(analyzer, without(analyzer, f, t), r, t.coef);
    if (r && length(analyzer, r) < length(analyzer, f)) return r;
  }
  return f;
}

// ---- Truncated division

// v*truncdiv(x, c)*c + v*truncmod(x, c) is v*x.
static const Form *undo_truncation(Analyzer *analyzer, const Form *f, Term t) {
  Expr *x = t.atom->args[0];
  int64_t c;
  if (!expr_as_int(t.atom->args[1], &c) || c < 2 || t.coef % c) return f;
  Expr *rest = expr_binary(analyzer->context, EXPR_TRUNC_MOD, x, t.atom->args[1]);
  const Form *whole = form_typed(analyzer, form_of(analyzer, x), f->type);
  whole = form_sub(analyzer, whole, form_term(analyzer, f->type, c, t.atom));
  whole = form_sub(analyzer, whole, form_term(analyzer, f->type, 1, rest)); // 0
  const Form *r = form_add_scaled(analyzer, f, whole, t.coef / c);
  return r && length_with_factors(analyzer, r) < length_with_factors(analyzer, f) ? r : f;
}

static bool is_choice(const Expr *e) {
  return e->op == EXPR_MIN || e->op == EXPR_MAX || is_selection(e->op);
}

static bool is_half(const Expr *e) {
  return e->op == EXPR_FLOOR_DIV && expr_is_int(e->args[1], 2);
}

bool sum_may_shorten(const Form *f) {
  int halves = 0;
  for (int i = 0; i < f->count; i++) {
    const Expr *e = f->terms[i].atom;
    if (is_choice(e) || e->op == EXPR_TRUNC_DIV) return true;
    halves += is_half(e);
  }
  return halves > 1;
}

const Form *sum_shorten(Analyzer *analyzer, const Form *f) {
  for (int i = 0; f && f->count > 0 && i < f->count; i++) {
    Term t = f->terms[i];
    const Form *r = f;
    if (is_choice(t.atom))
      r = shorten_choice(analyzer, f, t);
    else if (t.atom->op == EXPR_FLOOR_DIV)
      r = merge_halves(analyzer, f, t);
    else if (t.atom->op == EXPR_TRUNC_DIV)
      r = undo_truncation(analyzer, f, t);
    if (r != f) f = r, i = -1;
  }
  return f;
}

// ---- Quotients of products

enum { MOST_FACTORS = 8 };

typedef struct TermProduct {
  int64_t coef;
  int count;
  Expr *factors[MOST_FACTORS];
} TermProduct;

static bool is_product(const Form *f, TermProduct *out) {
  if (f->count != 1 || f->constant) return false;
  out->coef = f->terms[0].coef;
  out->count = product_factors(f->terms[0].atom, out->factors, MOST_FACTORS);
  return out->count > 0;
}

static const Form *product_form(Analyzer *analyzer, DType type, TermProduct *p) {
  if (!p->count) return form_const(analyzer, type, p->coef);
  return form_term(analyzer, type, p->coef, product_of(analyzer, p->factors, p->count));
}

// Takes the factors that both have out of them.
static TermProduct take_common(TermProduct *a, TermProduct *b) {
  TermProduct common = {.coef = gcd_of(a->coef, b->coef)};
  a->coef /= common.coef;
  b->coef /= common.coef;
  for (int i = 0; i < a->count; i++)
    for (int k = 0; k < b->count; k++) {
      if (a->factors[i] != b->factors[k]) continue;
      common.factors[common.count++] = a->factors[i];
      a->factors[i--] = a->factors[--a->count];
      b->factors[k] = b->factors[--b->count];
      break;
    }
  return common;
}

const Form *divide_products(Analyzer *analyzer, Expr *e, const Form *a, const Form *b) {
  TermProduct x, y;
  if (analyzer_has_trait(analyzer, e, TRAIT_MEMORY) || !is_product(a, &x) || !is_product(b, &y))
    return NULL;
  TermProduct common = take_common(&x, &y);
  if (!common.count && common.coef == 1) return NULL;
  Expr *above = form_expr(analyzer, product_form(analyzer, e->type, &x));
  Expr *below = form_expr(analyzer, product_form(analyzer, e->type, &y));
  if (!above || !below) return NULL;
  const Form *r = form_of_simplified(analyzer, expr_binary(analyzer->context, e->op, above, below));
  bool divides = e->op == EXPR_FLOOR_DIV || e->op == EXPR_TRUNC_DIV;
  return divides ? r : form_mul(analyzer, r, product_form(analyzer, e->type, &common));
}

// ---- Division that truncates

static const Form *divided_by_gcd(Analyzer *analyzer, const Form *f, DType type, int64_t g) {
  const Form *r = form_const(analyzer, type, f->constant / g);
  for (int i = 0; i < f->count; i++)
    r = form_add(analyzer, r, form_term(analyzer, type, f->terms[i].coef / g, f->terms[i].atom));
  return r;
}

// truncdiv(truncdiv(x, a), b) is truncdiv(x, a*b).
static Expr *truncated(Analyzer *analyzer, ExprOp op, Expr *x, int64_t c) {
  int64_t inner, product;
  bool nested = op == EXPR_TRUNC_DIV && x->op == op && expr_as_int(x->args[1], &inner);
  if (nested && inner > 0 && mul_fits(inner, c, &product) &&
      (x->type.bits == 64 || product <= INT32_MAX)) {
    x = x->args[0];
    c = product;
  }
  return expr_binary(analyzer->context, op, x, expr_int(analyzer->context, x->type, c));
}

// Division by a constant that truncates: both operands are divided by a common divisor, the divisor
// becomes positive, and what is not negative is divided with a floor.
const Form *simple_truncation(Analyzer *analyzer, Expr *e) {
  const Form *a = form_of_simplified(analyzer, e->args[0]);
  bool divides = e->op == EXPR_TRUNC_DIV;
  const Form *b = form_of_simplified(analyzer, e->args[1]);
  int64_t c;
  if (b->count) return divide_products(analyzer, e, a, b);
  if (!form_is_const(b, &c) || c == 0) return NULL;
  if (analyzer_has_trait(analyzer, e, TRAIT_MEMORY)) return NULL;
  int64_t sign = c < 0 ? -1 : 1, g = gcd_of(gcd_of(form_gcd(a), a->constant), c);
  c = c * sign / g;
  const Form *part = divided_by_gcd(analyzer, a, e->type, g);
  if (c == 1) return divides ? form_scale(analyzer, part, sign) : form_const(analyzer, e->type, 0);
  Interval bounds = form_bounds(analyzer, part);
  if (bounds.low > -c && bounds.high < c) return divides ? form_const(analyzer, e->type, 0) : a;
  Expr *x = form_expr(analyzer, part);
  if (!x) return NULL;
  ExprOp floored = divides ? EXPR_FLOOR_DIV : EXPR_FLOOR_MOD;
  const Form *r =
      form_nonnegative(analyzer, part)
          ? form_of_simplified(analyzer, expr_binary(analyzer->context, floored, x,
                                                     expr_int(analyzer->context, x->type, c)))
          : form_of(analyzer, truncated(analyzer, e->op, x, c));
  return form_scale(analyzer, r, divides ? sign : g);
}
