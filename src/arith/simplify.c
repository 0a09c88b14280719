// SPDX-License-Identifier: Apache-2.0
// Simplifies expressions of every kind. Integer expressions become forms bottom-up, with one
// handler for each operation, and are written back canonically. Other expressions are rebuilt from
// simplified operands. Results are memoised under the facts.
#include "arith/internal.h"

// ---- Shared by the handlers

static const Form *simple_arg(Analyzer *analyzer, Expr *e, int i) {
  return form_of_simplified(analyzer, e->args[i]);
}

enum { LOCAL_OPERANDS = 8 };

static Expr *rebuild(Analyzer *analyzer, Expr *e) {
  Expr *local[LOCAL_OPERANDS];
  Expr **args = e->count <= LOCAL_OPERANDS ? local : passing_array(analyzer, Expr *, e->count);
  bool changed = false;
  for (int i = 0; i < e->count; i++) {
    args[i] = analyzer_simplify(analyzer, e->args[i]);
    changed |= args[i] != e->args[i];
  }
  return changed ? expr_with_args(analyzer->context, e, args) : e;
}

// The form of the node as an atom, or of the expression that a rule rewrites it to.
static const Form *form_or_rule(Analyzer *analyzer, Expr *e) {
  if (e->count == 0 || e->op == EXPR_ADD || e->op == EXPR_SUB) return form_of(analyzer, e);
  Expr *other = rules_apply(analyzer, e);
  return other == e ? form_of(analyzer, e) : form_of_simplified(analyzer, other);
}

static int ones_of(uint64_t bits) {
  int count = 0;
  for (; bits; bits &= bits - 1) count++;
  return count;
}

// The number that the bits of a number give: T.clz(1) is 31, and T.popcount(7) is 3.
static Expr *count_bits(Analyzer *analyzer, Expr *e) {
  bool leading = e->op == EXPR_INTRINSIC_PURE && !strcmp(e->as.s, "clz");
  int64_t value;
  if ((!leading && e->op != EXPR_POPCOUNT) || !expr_as_int(e->args[0], &value)) return e;
  int bits = e->args[0]->type.bits;
  uint64_t number = (uint64_t)value & (bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1);
  for (int shift = 1; leading && shift < 64; shift *= 2) number |= number >> shift;
  int ones = ones_of(number);
  return expr_int(analyzer->context, e->type, leading ? bits - ones : ones);
}

static const Form *opaque(Analyzer *analyzer, Expr *e) {
  Expr *r = count_bits(analyzer, rebuild(analyzer, e));
  return dtype_is_index(r->type) ? form_or_rule(analyzer, r) : NULL;
}

// ---- Handlers: the simplified form of e, or NULL when e has to be opaque

typedef const Form *(*Handler)(Analyzer *, Expr *);

static const Form *simple_var(Analyzer *analyzer, Expr *e) {
  Info *info = analyzer_info(analyzer, e);
  Fact *fact = info->fact;
  if (!fact) info->seen_serial = analyzer->serial;
  if (fact && fact->kind == FACT_VALUE) return fact->form;
  if (fact && fact->kind == FACT_RANGE && !fact->kept && fact->bounds.low == fact->bounds.high)
    return form_const(analyzer, e->type, fact->bounds.low);
  return form_of(analyzer, e);
}

// v*(x % n) + v*n*(x // n) becomes v*x, for a symbolic n.
static const Form *undo_rest(Analyzer *analyzer, const Form *f, Term t) {
  Expr *quotient = expr_floor_div(analyzer->context, t.atom->args[0], t.atom->args[1]);
  if (quotient->op != EXPR_FLOOR_DIV) return f;
  const Form *whole =
      form_mul(analyzer, form_of(analyzer, t.atom->args[1]), form_of(analyzer, quotient));
  whole = form_add(analyzer, whole, form_term(analyzer, f->type, 1, t.atom));
  whole = form_sub(analyzer, form_of(analyzer, t.atom->args[0]), whole);
  const Form *r = form_add_scaled(analyzer, f, whole, t.coef);
  return r && r->count < f->count ? r : f;
}

static const Form *simple_sum(Analyzer *analyzer, Expr *e) {
  const Form *f = form_add_scaled(analyzer, simple_arg(analyzer, e, 0), simple_arg(analyzer, e, 1),
                                  e->op == EXPR_SUB ? -1 : 1);
  for (int i = 0; f && i < f->count; i++)
    if (f->terms[i].atom->op == EXPR_FLOOR_MOD) {
      const Form *r = undo_rest(analyzer, f, f->terms[i]);
      if (r != f) f = r, i = -1;
    }
  bool is_sum = f && f->count + (f->constant != 0) > 1;
  return is_sum && sum_may_shorten(f) && !analyzer_has_trait(analyzer, e, TRAIT_MEMORY)
             ? sum_shorten(analyzer, f)
             : f;
}

static const Form *simple_product(Analyzer *analyzer, Expr *e) {
  return form_product(analyzer, e, simple_arg(analyzer, e, 0), simple_arg(analyzer, e, 1));
}

// For 0 <= low < g: (g*high + low) // (g*over) is high // over, and % gives g*(high % over) + low.
static const Form *divide_high(Analyzer *analyzer, Expr *e, const Form *divisor, const Form *high,
                               const Form *low, const Form *over) {
  Expr *x = form_expr(analyzer, high), *y = form_expr(analyzer, over);
  if (!x || !y) return NULL;
  const Form *inner = form_of_simplified(analyzer, expr_binary(analyzer->context, e->op, x, y));
  if (e->op == EXPR_FLOOR_DIV) return inner;
  const Form *g = form_divide_by(analyzer, divisor, over);
  return g ? form_add(analyzer, form_mul(analyzer, inner, g), low) : NULL;
}

static const Form *divide_symbolic(Analyzer *analyzer, Expr *e, const Form *a, const Form *b) {
  const Form *q = form_divide_by(analyzer, a, b), *rest = a;
  bool modulo = e->op == EXPR_FLOOR_MOD;
  if (q) return modulo ? form_sub(analyzer, a, form_mul(analyzer, q, b)) : q;
  const Form *shorter = divide_products(analyzer, e, a, b);
  if (shorter) return shorter;
  const Form *high, *low, *over;
  if (form_split_by_factor(analyzer, a, b, &high, &low, &over))
    return divide_high(analyzer, e, b, high, low, over);
  q = form_divide_out(analyzer, a, b, &rest);
  Expr *x = form_expr(analyzer, rest), *y = form_expr(analyzer, b);
  if (!x || !y) return NULL;
  const Form *left = expr_is_int(x, 0)
                         ? form_const(analyzer, e->type, 0)
                         : form_or_rule(analyzer, expr_binary(analyzer->context, e->op, x, y));
  return modulo ? left : form_add(analyzer, q, left);
}

// Numbers in memory have any value of their type, and indices and sizes do not overflow.
static bool may_overflow(Analyzer *analyzer, Expr *e) {
  bool computed = e->op == EXPR_ADD || e->op == EXPR_SUB || e->op == EXPR_MUL;
  return computed && analyzer_has_trait(analyzer, e, TRAIT_MEMORY) &&
         !form_fits_type(analyzer, form_of(analyzer, e));
}

// Would the quotient divide a value that `e` does not compute, and that may overflow where the
// values in `e` do not? (A[i] * 65537 % 101 + A[i]) % 101 is A[i] * 65538 % 101 only for integers
// without bounds.
static bool divides_unbounded(Analyzer *analyzer, Expr *e, const Form *q) {
  Expr *base;
  int64_t cut;
  for (int i = 0; q && i < q->count; i++) {
    if (!form_split_division(q->terms[i].atom, &base, &cut)) continue;
    if (may_overflow(analyzer, base) &&
        base != expr_strip_widening(analyzer_simplify(analyzer, e->args[0])))
      return true;
  }
  return false;
}

// A sum with the same remainder by c > 0, in which no coefficient is negative that can be positive
// without becoming larger: -x % 2 is x % 2.
static const Form *of_same_rest(Analyzer *analyzer, const Form *f, int64_t c) {
  const Form *r = f;
  for (int i = 0; i < f->count && r; i++) {
    int64_t coef = f->terms[i].coef, rest = floor_mod(coef, c);
    if (coef < 0 && rest <= -coef)
      r = form_add(analyzer, r, form_term(analyzer, f->type, rest - coef, f->terms[i].atom));
  }
  return r;
}

static const Form *simple_division(Analyzer *analyzer, Expr *e) {
  const Form *a = simple_arg(analyzer, e, 0), *b = simple_arg(analyzer, e, 1);
  if (b->count) return divide_symbolic(analyzer, e, a, b);
  if (b->constant == 0) return NULL;
  if (e->op == EXPR_FLOOR_MOD && b->constant > 0) a = of_same_rest(analyzer, a, b->constant);
  const Form *q = form_divide_by(analyzer, a, b);
  if (divides_unbounded(analyzer, e, q)) return NULL;
  return e->op == EXPR_FLOOR_MOD ? form_add_scaled(analyzer, a, q, -b->constant) : q;
}

static bool is_number(const Expr *e) {
  if (e->op == EXPR_BROADCAST) e = e->args[0];
  return e->op == EXPR_INT || e->op == EXPR_FLOAT;
}

// A number of another type, where every target gives the same one: itself otherwise.
static Expr *cast_number(Analyzer *analyzer, Expr *e) {
  Context *context = analyzer->context;
  Expr *r = expr_cast(context, e->type, e->args[0]), *from = e->args[0];
  if (r->op != EXPR_CAST || (from->op != EXPR_INT && from->op != EXPR_FLOAT)) return r;
  if (from->type.code == TYPE_UINT && from->as.i < 0) return e; // more than an int64 holds
  double value = from->op == EXPR_INT ? (double)from->as.i : from->as.f;
  bool is_small = value >= -2048 && value <= 2048 && value == (double)(int64_t)value;
  bool is_exact = from->op == EXPR_INT || (from->type.code == TYPE_FLOAT && from->type.bits >= 32);
  if (e->type.code == TYPE_FLOAT) return is_small ? expr_float(context, e->type, value) : e;
  if (!(value > INT32_MIN && value < INT32_MAX) || (!is_small && !is_exact)) return e;
  if (dtype_is_bool(e->type)) return expr_bool(context, value != 0);
  bool holds = dtype_is_int(e->type) && dtype_holds(e->type, (int64_t)value);
  return holds ? expr_int(context, e->type, (int64_t)value) : e;
}

static const Form *simple_cast(Analyzer *analyzer, Expr *e) {
  DType from = e->args[0]->type;
  Expr *x = dtype_is_index(from) ? e->args[0] : analyzer_simplify(analyzer, e->args[0]);
  Expr *r = is_number(x) ? expr_with_args(analyzer->context, e, &x) : e;
  if (is_number(x) && r->op == EXPR_CAST) r = cast_number(analyzer, r);
  if (r->op == EXPR_INT) return form_const(analyzer, e->type, r->as.i);
  if (dtype_is_float(from)) {
    Interval bounds = form_bounds(analyzer, form_of(analyzer, e));
    return bounds.low == bounds.high ? form_const(analyzer, e->type, bounds.low) : NULL;
  }
  if (!dtype_is_index(from)) return NULL;
  const Form *a = simple_arg(analyzer, e, 0);
  if (from.bits <= e->type.bits) return form_typed(analyzer, a, e->type);
  bool fits = a->count == 0 && a->constant >= INT32_MIN && a->constant <= INT32_MAX;
  return fits ? form_const(analyzer, e->type, a->constant) : NULL;
}

static const Form *simple_shift(Analyzer *analyzer, Expr *e) {
  const Form *a = simple_arg(analyzer, e, 0), *b = simple_arg(analyzer, e, 1);
  if (b->count || b->constant < 0 || b->constant >= e->type.bits - 1) return NULL;
  int64_t power = (int64_t)1 << b->constant;
  return e->op == EXPR_SHIFT_LEFT ? form_scale(analyzer, a, power)
                                  : form_divide(analyzer, a, power);
}

// x & (2**k - 1) is x % 2**k.
static const Form *simple_mask(Analyzer *analyzer, Expr *e) {
  const Form *a = simple_arg(analyzer, e, 0), *b = simple_arg(analyzer, e, 1);
  int64_t power;
  if (b->count || b->constant < 0 || !add_fits(b->constant, 1, &power) || (power & b->constant))
    return NULL;
  return form_add_scaled(analyzer, a, form_divide(analyzer, a, power), -power);
}

static bool has_multiple(const Form *f, int64_t of) {
  for (int i = 0; i < f->count; i++)
    if (f->terms[i].coef % of == 0) return true;
  return false;
}

// For `or` and `xor`, where 2**k divides `high`, and 0 <= low, b < 2**k: (high + low) ^ b is
// high + (low ^ b).
static const Form *split_bits(Analyzer *analyzer, Expr *e, const Form *a, const Form *b) {
  Interval bounds = form_bounds(analyzer, b);
  int64_t power = 1;
  if (bounds.low < 0 || bounds.high > INT32_MAX) return NULL;
  while (power <= bounds.high) power *= 2;
  for (; has_multiple(a, power); power *= 2) {
    const Form *q = form_divide(analyzer, a, power);
    const Form *low = form_add_scaled(analyzer, a, q, -power);
    if (!q->count && !q->constant) return NULL;
    if (q->count + low->count > a->count) continue;
    Expr *x = form_expr(analyzer, low), *y = form_expr(analyzer, b);
    if (!x || !y) return NULL;
    Expr *bits = expr_binary(analyzer->context, e->op, x, expr_cast(analyzer->context, x->type, y));
    return form_add_scaled(analyzer, form_of_simplified(analyzer, bits), q, power);
  }
  return NULL;
}

static const Form *simple_bits(Analyzer *analyzer, Expr *e) {
  const Form *a = simple_arg(analyzer, e, 0), *b = simple_arg(analyzer, e, 1);
  const Form *split = split_bits(analyzer, e, a, b);
  return split ? split : split_bits(analyzer, e, b, a);
}

static bool same_digit(const ArithDigit *a, const ArithDigit *b) {
  return a->coef == b->coef && a->cut == b->cut && a->radix == b->radix && a->base == b->base &&
         a->cofactor == b->cofactor;
}

// The sum of the digits that both have, plus the constant when both have the same one.
static const Form *common_part(Analyzer *analyzer, const Form *a, const Form *b) {
  const Digits *x = form_digits(analyzer, a), *y = form_digits(analyzer, b);
  const Form *common = form_const(analyzer, a->type, x->constant == y->constant ? x->constant : 0);
  for (int i = 0; i < x->count; i++)
    for (int j = 0; j < y->count; j++)
      if (same_digit(&x->items[i], &y->items[j]))
        common = form_add(analyzer, common,
                          digit_form(analyzer, a->type, &x->items[i], x->items[i].coef));
  return common;
}

static int64_t common_gcd(const Form *a, const Form *b) {
  int64_t g = gcd_of(form_gcd(a), form_gcd(b));
  return gcd_of(gcd_of(g, a->constant), b->constant);
}

static const Form *divided_form(Analyzer *analyzer, const Form *f, int64_t g) {
  const Form *r = form_const(analyzer, f->type, f->constant / g);
  for (int i = 0; i < f->count; i++)
    r = form_add(analyzer, r, form_term(analyzer, f->type, f->terms[i].coef / g, f->terms[i].atom));
  return r;
}

static Expr *ordered_binary(Analyzer *analyzer, ExprOp op, Expr *a, Expr *b) {
  bool swap = a->op != EXPR_INT && b->op != EXPR_INT && expr_structure_compare(&a, &b) > 0;
  return expr_binary(analyzer->context, op, swap ? b : a, swap ? a : b);
}

static bool has_positive(const Form *f) {
  for (int i = 0; i < f->count; i++)
    if (f->terms[i].coef > 0) return true;
  return false;
}

static const Form *negated(Analyzer *analyzer, const Form *f) {
  return form_scale(analyzer, f, -1);
}

// The minimum of negated sums is a negated maximum: min(-x, -y) is -max(x, y).
static bool is_negated(const Form *a, const Form *b) {
  int terms = a->count + b->count, numbers = (a->constant > 0) + (b->constant > 0);
  return terms && numbers <= terms && !has_positive(a) && !has_positive(b);
}

static const Form *write_extreme(Analyzer *analyzer, Expr *e, const Form *a, const Form *b) {
  const Form *common = common_part(analyzer, a, b);
  a = form_sub(analyzer, a, common);
  b = form_sub(analyzer, b, common);
  if (!a || !b) return NULL;
  int64_t g = common_gcd(a, b);
  bool flips = is_negated(a, b);
  ExprOp op = (e->op == EXPR_MIN) == flips ? EXPR_MAX : EXPR_MIN;
  if (flips) a = negated(analyzer, a), b = negated(analyzer, b);
  Expr *x = form_expr(analyzer, g > 1 ? divided_form(analyzer, a, g) : a);
  Expr *y = form_expr(analyzer, g > 1 ? divided_form(analyzer, b, g) : b);
  if (!x || !y) return NULL;
  const Form *extreme = form_or_rule(analyzer, ordered_binary(analyzer, op, x, y));
  g = g > 1 ? g : 1;
  return form_add_scaled(analyzer, common, extreme, flips ? -g : g);
}

static const Form *simple_extreme(Analyzer *analyzer, Expr *e) {
  const Form *a = simple_arg(analyzer, e, 0), *b = simple_arg(analyzer, e, 1);
  const Form *apart = form_sub(analyzer, a, b);
  bool smallest = e->op == EXPR_MIN;
  if (form_nonnegative(analyzer, apart)) return smallest ? b : a;
  if (form_nonnegative(analyzer, form_scale(analyzer, apart, -1))) return smallest ? a : b;
  return write_extreme(analyzer, e, a, b);
}

// ---- Choices and lets, of any type

static Expr *simplify_given(Analyzer *analyzer, Expr *e, Expr *condition, bool truth) {
  if (e->count == 0 || condition->type.lanes > 1 || analyzer->assumed >= MOST_ASSUMED)
    return analyzer_simplify(analyzer, e);
  int mark = analyzer_mark(analyzer);
  analyzer->assumed++;
  analyzer_assume(analyzer, truth ? condition : expr_unary(analyzer->context, EXPR_NOT, condition));
  Expr *r = analyzer_simplify(analyzer, e);
  analyzer->assumed--;
  analyzer_reset(analyzer, mark);
  return r;
}

// A Select also computes the value that it does not choose. That value must be defined (an index
// stays inside its buffer) where the condition is false, so it is simplified without the condition.
static Expr *simplify_value(Analyzer *analyzer, Expr *choice, int number, Expr *condition) {
  Expr *e = choice->args[number];
  if (choice->op == EXPR_SELECT && analyzer_has_trait(analyzer, e, TRAIT_PARTIAL))
    return analyzer_simplify(analyzer, e);
  return simplify_given(analyzer, e, condition, number == 1);
}

static Expr *simplify_choice(Analyzer *analyzer, Expr *e) {
  Expr *condition = analyzer_simplify(analyzer, e->args[0]);
  int64_t value;
  if (expr_as_int(condition, &value)) return analyzer_simplify(analyzer, e->args[value ? 1 : 2]);
  Expr *args[] = {condition, simplify_value(analyzer, e, 1, condition),
                  simplify_value(analyzer, e, 2, condition)};
  Expr *r = expr_with_args(analyzer->context, e, args);
  return r->op == e->op ? rules_apply(analyzer, r) : r;
}

static Expr *simplify_let(Analyzer *analyzer, Expr *e) {
  int mark = analyzer_mark(analyzer);
  Expr *value = analyzer_simplify(analyzer, e->args[1]);
  analyzer_bind_value(analyzer, e->args[0], value);
  Expr *body = analyzer_simplify(analyzer, e->args[2]);
  analyzer_reset(analyzer, mark);
  if (!expr_uses(body, e->args[0]) && expr_is_pure(value)) return body;
  return expr_let(analyzer->context, e->args[0], value, body);
}

static const Form *simple_choice(Analyzer *analyzer, Expr *e) {
  Expr *r = simplify_choice(analyzer, e);
  return r->op == e->op ? form_of(analyzer, r) : form_of_simplified(analyzer, r);
}

static const Form *simple_let(Analyzer *analyzer, Expr *e) {
  Expr *r = simplify_let(analyzer, e);
  return r->op == EXPR_LET ? form_of(analyzer, r) : form_of_simplified(analyzer, r);
}

// ---- The driver of integer expressions

// Writes 16 * (n // 16) as n when 16 is known to divide n.
static const Form *undo_divisions(Analyzer *analyzer, const Form *f) {
  for (int i = 0; f && i < f->count; i++) {
    Term t = f->terms[i];
    Expr *base;
    int64_t cut, divisor, rest;
    if (!form_split_division(t.atom, &base, &cut) || t.coef % cut) continue;
    const Form *b = form_of(analyzer, base);
    form_modular(analyzer, b, &divisor, &rest);
    if (divisor % cut) continue;
    const Form *others = form_sub(analyzer, f, form_term(analyzer, f->type, t.coef, t.atom));
    const Form *whole = form_add_const(analyzer, b, -floor_mod(rest, cut));
    const Form *r = form_add_scaled(analyzer, others, whole, t.coef / cut);
    return r ? undo_divisions(analyzer, r) : f;
  }
  return f;
}

static const Handler handlers[EXPR_OP_COUNT] = {
    [EXPR_INT] = form_of,
    [EXPR_VAR] = simple_var,
    [EXPR_ADD] = simple_sum,
    [EXPR_SUB] = simple_sum,
    [EXPR_MUL] = simple_product,
    [EXPR_FLOOR_DIV] = simple_division,
    [EXPR_FLOOR_MOD] = simple_division,
    [EXPR_TRUNC_DIV] = simple_truncation,
    [EXPR_TRUNC_MOD] = simple_truncation,
    [EXPR_MIN] = simple_extreme,
    [EXPR_MAX] = simple_extreme,
    [EXPR_CAST] = simple_cast,
    [EXPR_SHIFT_LEFT] = simple_shift,
    [EXPR_SHIFT_RIGHT] = simple_shift,
    [EXPR_BIT_AND] = simple_mask,
    [EXPR_BIT_OR] = simple_bits,
    [EXPR_BIT_XOR] = simple_bits,
    [EXPR_SELECT] = simple_choice,
    [EXPR_IF_THEN_ELSE] = simple_choice,
    [EXPR_LET] = simple_let,
};

const Form *form_of_simplified(Analyzer *analyzer, Expr *e) {
  Info *info = analyzer_info(analyzer, e);
  if (stamp_holds(analyzer, info->simple_at)) return info->simple;
  const Form *f = NULL;
  if (dtype_is_index(e->type) && handlers[e->op]) f = handlers[e->op](analyzer, e);
  if (!f && dtype_is_index(e->type)) f = opaque(analyzer, e);
  if (!f) f = form_of(analyzer, e);
  if (analyzer->divisor_count) f = undo_divisions(analyzer, f);
  info->simple = form_keep(analyzer, f);
  info->simple_expr = NULL;
  info->simple_at = stamp_now(analyzer);
  return info->simple;
}

static Expr *simplify_index(Analyzer *analyzer, Expr *e) {
  const Form *f = form_of_simplified(analyzer, e);
  Info *info = analyzer_info(analyzer, e);
  if (info->simple_expr) return info->simple_expr;
  Expr *r = form_expr(analyzer, form_typed(analyzer, f, e->type));
  if (!r) r = rebuild(analyzer, e);
  info->simple_expr = r;
  return r;
}

// ---- Everything else

// The number that numbers make, or the operand that a neutral one leaves: x * 1.0 is x. For floats,
// which have the same value on every target.
static Expr *fold_numbers(Analyzer *analyzer, Expr *e) {
  Context *context = analyzer->context;
  bool computes = e->op == EXPR_ADD || e->op == EXPR_SUB || e->op == EXPR_MUL || e->op == EXPR_DIV;
  if (e->op == EXPR_CAST && is_number(e->args[0])) return cast_number(analyzer, e);
  if (!dtype_is_float(e->type) || !computes) return e;
  if (!is_number(e->args[0]) && !is_number(e->args[1])) return e;
  Expr *r = expr_binary(context, (ExprOp)e->op, e->args[0], e->args[1]);
  bool folded = is_number(r) || r == e->args[0] || r == e->args[1];
  return folded ? r : e;
}

static Expr *simplify_other(Analyzer *analyzer, Expr *e) {
  OpClass class = op_table[e->op].class;
  if (class == OP_CHOICE) return simplify_choice(analyzer, e);
  if (e->op == EXPR_LET) return simplify_let(analyzer, e);
  Expr *r = fold_numbers(analyzer, rebuild(analyzer, e));
  if (r->type.lanes > 1) {
    Expr *vector = analyzer_simplify_vector(analyzer, r);
    if (vector != r) return vector;
  }
  class = op_table[r->op].class;
  if (class == OP_COMPARE || (class == OP_LOGIC && r->op != EXPR_NOT))
    return analyzer_simplify_condition(analyzer, r);
  Expr *other = dtype_is_float(r->type) ? r : rules_apply(analyzer, r);
  if (other != r) return analyzer_simplify(analyzer, other);
  return dtype_is_bool(r->type) ? analyzer_simplify_condition(analyzer, r) : r;
}

static Expr *simplify_any(Analyzer *analyzer, Expr *e) {
  // Calls with an effect take place as often as they are written, in their order among loads and
  // other calls: A[0] + f(A) + A[0 + 0]  =>  A[0] + f(A) + A[0]
  if (analyzer_has_trait(analyzer, e, TRAIT_EFFECT)) return rebuild(analyzer, e);
  if (dtype_is_index(e->type)) return simplify_index(analyzer, e);
  if (e->count == 0 && !dtype_is_bool(e->type)) return e;
  Info *info = analyzer_info(analyzer, e);
  bool is_known = info->simple_expr && stamp_holds(analyzer, info->known_at);
  if (is_known) return info->simple_expr;
  Expr *r = simplify_other(analyzer, e);
  info->simple_expr = r;
  info->known_at = stamp_now(analyzer);
  return r;
}

Expr *analyzer_simplify(Analyzer *analyzer, Expr *e) {
  analyzer_enter(analyzer);
  Expr *r = simplify_any(analyzer, e);
  analyzer_leave(analyzer);
  return r;
}

Expr *analyzer_simplify_deep(Analyzer *analyzer, Expr *e) {
  enum { MOST_ROUNDS = 8 };
  bool outer = analyzer->deep;
  int mark = analyzer_mark(analyzer);
  analyzer->deep = true;
  analyzer_fence(analyzer);
  for (int i = 0; i < MOST_ROUNDS; i++) {
    Expr *r = analyzer_simplify(analyzer, e);
    if (r == e) break;
    e = r;
  }
  analyzer_reset(analyzer, mark);
  analyzer->deep = outer;
  return e;
}
