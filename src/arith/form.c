// SPDX-License-Identifier: Apache-2.0
// Implements the algebra of linear forms, and converts forms from and to expressions. No facts are
// used here, so a form is valid wherever its expression is.
#include "arith/internal.h"

#include <stdlib.h>

bool dtype_is_index(DType t) {
  return t.code == TYPE_INT && t.bits >= 32 && t.lanes == 1;
}

Expr *expr_strip_widening(Expr *e) {
  while (e->op == EXPR_CAST && dtype_is_index(e->type) && dtype_is_index(e->args[0]->type) &&
         e->type.bits >= e->args[0]->type.bits)
    e = e->args[0];
  return e;
}

bool form_split_division(Expr *atom, Expr **base, int64_t *cut) {
  if (atom->op != EXPR_FLOOR_DIV || !expr_as_int(atom->args[1], cut) || *cut <= 1) return false;
  *base = expr_strip_widening(atom->args[0]);
  return true;
}

static bool fits_type(DType type, int64_t value) {
  return type.bits >= 64 || (value >= INT32_MIN && value <= INT32_MAX);
}

// ---- Products of atoms

static int gather_factors(Expr *atom, Expr **factors, int count, int most) {
  atom = expr_strip_widening(atom);
  if (atom->op != EXPR_MUL) {
    if (count >= most) return most + 1;
    factors[count] = atom;
    return count + 1;
  }
  count = gather_factors(atom->args[0], factors, count, most);
  return count > most ? count : gather_factors(atom->args[1], factors, count, most);
}

int product_factors(Expr *atom, Expr **factors, int most) {
  int count = gather_factors(atom, factors, 0, most);
  return count > most ? 0 : count;
}

Expr *product_of(Analyzer *analyzer, Expr **factors, int count) {
  qsort(factors, (size_t)count, sizeof *factors, expr_compare);
  DType type = factors[0]->type;
  for (int i = 1; i < count; i++)
    if (factors[i]->type.bits > type.bits) type = factors[i]->type;
  Expr *product = count == 1 ? factors[0] : expr_cast(analyzer->context, type, factors[0]);
  for (int i = 1; i < count; i++)
    product = expr_mul(analyzer->context, product, expr_cast(analyzer->context, type, factors[i]));
  return product;
}

enum { MOST_FACTORS = 8 };

static Expr *product_of_atoms(Analyzer *analyzer, Expr *a, Expr *b) {
  Expr *factors[2 * MOST_FACTORS];
  int n = product_factors(a, factors, MOST_FACTORS);
  int m = product_factors(b, factors + n, MOST_FACTORS);
  return n && m ? product_of(analyzer, factors, n + m) : NULL;
}

// ---- Building

static Form *form_new(Analyzer *analyzer, DType type, int64_t constant, int most) {
  Form *f = passing_alloc(analyzer, sizeof(Form) + sizeof(Term) * (size_t)most);
  f->type = type;
  f->kept = false;
  f->constant = constant;
  f->count = 0;
  return f;
}

const Form *form_keep(Analyzer *analyzer, const Form *f) {
  if (!f || f->kept) return f;
  Form *copy = arena_copy(analyzer->arena, f, sizeof *f + sizeof(Term) * (size_t)f->count);
  copy->kept = true;
  return copy;
}

const Form *form_const(Analyzer *analyzer, DType type, int64_t value) {
  return form_new(analyzer, type, value, 0);
}

const Form *form_term(Analyzer *analyzer, DType type, int64_t coef, Expr *atom) {
  Form *f = form_new(analyzer, type, 0, 1);
  if (coef) f->terms[f->count++] = (Term){coef, atom};
  return f;
}

static DType wider(DType a, DType b) {
  return a.bits >= b.bits ? a : b;
}

const Form *form_typed(Analyzer *analyzer, const Form *a, DType type) {
  if (!a || dtype_equal(a->type, type)) return a;
  Form *f = form_new(analyzer, type, a->constant, a->count);
  memcpy(f->terms, a->terms, sizeof(Term) * (size_t)a->count);
  f->count = a->count;
  return f;
}

// *out = a + b * factor. False when it does not fit, or is INT64_MIN, which cannot be negated.
static bool scaled_sum(int64_t a, int64_t b, int64_t factor, int64_t *out) {
  int64_t scaled;
  return mul_fits(b, factor, &scaled) && add_fits(a, scaled, out) && *out != INT64_MIN;
}

static bool push_term(Form *f, Expr *atom, int64_t a, int64_t b, int64_t factor) {
  int64_t coef;
  if (!scaled_sum(a, b, factor, &coef)) return false;
  if (coef) f->terms[f->count++] = (Term){coef, atom};
  return true;
}

const Form *form_add_scaled(Analyzer *analyzer, const Form *a, const Form *b, int64_t factor) {
  if (!a || !b || a->count + b->count > 2 * LONGEST_FORM) return NULL;
  Form *f = form_new(analyzer, wider(a->type, b->type), 0, a->count + b->count);
  if (!scaled_sum(a->constant, b->constant, factor, &f->constant)) return NULL;
  int i = 0, j = 0;
  while (i < a->count || j < b->count) {
    uint32_t x = i < a->count ? a->terms[i].atom->id : UINT32_MAX;
    uint32_t y = j < b->count ? b->terms[j].atom->id : UINT32_MAX;
    Expr *atom = x <= y ? a->terms[i].atom : b->terms[j].atom;
    int64_t from_a = x <= y ? a->terms[i++].coef : 0;
    int64_t from_b = y <= x ? b->terms[j++].coef : 0;
    if (!push_term(f, atom, from_a, from_b, factor)) return NULL;
  }
  return f->count > LONGEST_FORM ? NULL : f;
}

const Form *form_add(Analyzer *analyzer, const Form *a, const Form *b) {
  return form_add_scaled(analyzer, a, b, 1);
}

const Form *form_sub(Analyzer *analyzer, const Form *a, const Form *b) {
  return form_add_scaled(analyzer, a, b, -1);
}

const Form *form_add_const(Analyzer *analyzer, const Form *a, int64_t value) {
  if (!a || value == 0) return a;
  Form *f = form_new(analyzer, a->type, 0, a->count);
  if (!scaled_sum(a->constant, value, 1, &f->constant)) return NULL;
  memcpy(f->terms, a->terms, sizeof(Term) * (size_t)a->count);
  f->count = a->count;
  return f;
}

const Form *form_scale(Analyzer *analyzer, const Form *a, int64_t factor) {
  if (!a || factor == 1) return a;
  Form *f = form_new(analyzer, a->type, 0, a->count);
  if (!scaled_sum(0, a->constant, factor, &f->constant)) return NULL;
  for (int i = 0; i < a->count; i++)
    if (!push_term(f, a->terms[i].atom, 0, a->terms[i].coef, factor)) return NULL;
  return f;
}

// a times one term. The caller multiplies by b's constant.
static const Form *form_mul_term(Analyzer *analyzer, const Form *a, DType type, Term term) {
  const Form *sum = form_const(analyzer, type, 0);
  for (int i = 0; i < a->count && sum; i++) {
    int64_t coef;
    Expr *atom = product_of_atoms(analyzer, a->terms[i].atom, term.atom);
    if (!atom || !scaled_sum(0, a->terms[i].coef, term.coef, &coef)) return NULL;
    sum = form_add(analyzer, sum, form_term(analyzer, type, coef, atom));
  }
  int64_t last;
  if (!scaled_sum(0, a->constant, term.coef, &last)) return NULL;
  return form_add(analyzer, sum, form_term(analyzer, type, last, term.atom));
}

enum { MOST_PRODUCTS = 16 };

const Form *form_mul(Analyzer *analyzer, const Form *a, const Form *b) {
  if (!a || !b || (a->count && b->count && a->count * b->count > MOST_PRODUCTS)) return NULL;
  DType type = wider(a->type, b->type);
  if (!b->count) return form_typed(analyzer, form_scale(analyzer, a, b->constant), type);
  if (!a->count) return form_typed(analyzer, form_scale(analyzer, b, a->constant), type);
  const Form *sum = form_typed(analyzer, form_scale(analyzer, a, b->constant), type);
  for (int i = 0; i < b->count && sum; i++)
    sum = form_add(analyzer, sum, form_mul_term(analyzer, a, type, b->terms[i]));
  return sum;
}

// ---- Questions

bool form_is_const(const Form *f, int64_t *value) {
  if (!f || f->count) return false;
  *value = f->constant;
  return true;
}

int64_t form_coef(const Form *f, const Expr *atom) {
  for (int i = 0; i < f->count; i++)
    if (f->terms[i].atom == atom) return f->terms[i].coef;
  return 0;
}

int64_t form_gcd(const Form *f) {
  int64_t g = 0;
  for (int i = 0; i < f->count; i++) g = gcd_of(g, f->terms[i].coef);
  return g;
}

bool form_is_unit(const Form *f) {
  return f->count == 1 && f->constant == 0 && f->terms[0].coef == 1;
}

bool form_uses(const Form *f, const Expr *var) {
  for (int i = 0; i < f->count; i++)
    if (expr_uses(f->terms[i].atom, var)) return true;
  return false;
}

// ---- Reading

static const Form *read_atom(Analyzer *analyzer, Expr *e) {
  return form_term(analyzer, e->type, 1, expr_strip_widening(e));
}

Expr *form_floor_atom(Analyzer *analyzer, Expr *base, int64_t cut) {
  base = expr_strip_widening(base);
  if (!fits_type(base->type, cut)) base = expr_cast(analyzer->context, DTYPE_INT64, base);
  return expr_floor_div(analyzer->context, base, expr_int(analyzer->context, base->type, cut));
}

// a // c as an atom; (b // d) // c becomes b // (d * c).
static const Form *read_division(Analyzer *analyzer, DType type, Expr *a, int64_t c) {
  const Form *f = form_of(analyzer, a);
  Expr *base = a;
  int64_t cut, product = c;
  if (form_is_unit(f) && form_split_division(f->terms[0].atom, &base, &cut) &&
      !mul_fits(cut, c, &product))
    base = a, product = c;
  return form_term(analyzer, type, 1, form_floor_atom(analyzer, base, product));
}

static const Form *read_divided(Analyzer *analyzer, Expr *e) {
  int64_t c;
  if (!expr_as_int(e->args[1], &c) || c <= 1 || e->args[0]->op == EXPR_INT) return NULL;
  return read_division(analyzer, e->type, e->args[0], c);
}

static const Form *read_modulo(Analyzer *analyzer, Expr *e) {
  int64_t c;
  if (!expr_as_int(e->args[1], &c) || c <= 1 || e->args[0]->op == EXPR_INT) return NULL;
  const Form *quotient = read_division(analyzer, e->type, e->args[0], c);
  return form_add_scaled(analyzer, form_of(analyzer, e->args[0]), quotient, -c);
}

static bool is_sum(const Form *f) {
  return f->count + (f->constant != 0) > 1;
}

const Form *form_product(Analyzer *analyzer, Expr *e, const Form *a, const Form *b) {
  bool expands = a && b && a->count && b->count && (is_sum(a) || is_sum(b));
  bool reads = expands && analyzer_has_trait(analyzer, e, TRAIT_MEMORY);
  return reads ? NULL : form_mul(analyzer, a, b);
}

static const Form *read(Analyzer *analyzer, Expr *e) {
  Expr *inner = expr_strip_widening(e);
  if (inner != e) return form_typed(analyzer, form_of(analyzer, inner), e->type);
  if (!dtype_is_index(e->type)) return NULL;
  switch (e->op) {
  case EXPR_INT: return e->as.i == INT64_MIN ? NULL : form_const(analyzer, e->type, e->as.i);
  case EXPR_ADD:
    return form_add(analyzer, form_of(analyzer, e->args[0]), form_of(analyzer, e->args[1]));
  case EXPR_SUB:
    return form_sub(analyzer, form_of(analyzer, e->args[0]), form_of(analyzer, e->args[1]));
  case EXPR_MUL:
    return form_product(analyzer, e, form_of(analyzer, e->args[0]), form_of(analyzer, e->args[1]));
  case EXPR_FLOOR_DIV: return read_divided(analyzer, e);
  case EXPR_FLOOR_MOD: return read_modulo(analyzer, e);
  default: return NULL;
  }
}

const Form *form_of(Analyzer *analyzer, Expr *e) {
  Info *info = analyzer_info(analyzer, e);
  if (!info->form) {
    const Form *f = read(analyzer, e);
    info->form = form_keep(analyzer, f ? f : read_atom(analyzer, e));
  }
  return info->form;
}

// ---- Writing

typedef struct Item {
  int64_t coef;
  int degree;
  Expr *e;
} Item;

// Orders products of more symbols first, then larger coefficients, as row-major addresses are
// usually written.
static int item_compare(const void *a, const void *b) {
  const Item *x = a, *y = b;
  uint64_t p = x->coef < 0 ? 0 - (uint64_t)x->coef : (uint64_t)x->coef;
  uint64_t q = y->coef < 0 ? 0 - (uint64_t)y->coef : (uint64_t)y->coef;
  if (x->degree != y->degree) return y->degree - x->degree;
  if (p != q) return p > q ? -1 : 1;
  return expr_structure_compare(&x->e, &y->e);
}

static Expr *int_of(Context *context, DType type, int64_t value) {
  return expr_int(context, type, value);
}

// The value in a wider type, of which a product is computed in that type: it may fit no other.
static Expr *widened(Context *context, DType type, Expr *e) {
  if (e->op != EXPR_MUL || type.bits <= e->type.bits) return expr_cast(context, type, e);
  return expr_mul(context, widened(context, type, e->args[0]), widened(context, type, e->args[1]));
}

static Item write_digit(Analyzer *analyzer, DType type, const ArithDigit *digit) {
  Context *context = analyzer->context;
  Expr *e = digit->base;
  if (digit->cut > 1) e = form_floor_atom(analyzer, e, digit->cut);
  if (digit->radix && !fits_type(e->type, digit->radix)) e = expr_cast(context, DTYPE_INT64, e);
  if (digit->radix) e = expr_floor_mod(context, e, int_of(context, e->type, digit->radix));
  int degree = 1;
  if (digit->cofactor) {
    Expr *factors[MOST_FACTORS];
    degree = 1 + product_factors(digit->cofactor, factors, MOST_FACTORS);
    e = expr_mul(context, expr_cast(context, type, digit->cofactor), expr_cast(context, type, e));
  } else if (e->op == EXPR_MUL) {
    Expr *factors[MOST_FACTORS];
    degree = product_factors(e, factors, MOST_FACTORS);
  }
  return (Item){digit->coef, degree, widened(context, type, e)};
}

static Expr *write_product(Context *context, Expr *e, int64_t coef) {
  return coef == 1 ? e : expr_mul(context, e, int_of(context, e->type, coef));
}

static Expr *write_sum(Analyzer *analyzer, DType type, Item *items, int count, int64_t constant) {
  Context *context = analyzer->context;
  int lead = 0;
  while (lead < count && items[lead].coef < 0) lead++;
  Expr *sum = NULL;
  if (lead < count)
    sum = write_product(context, items[lead].e, items[lead].coef);
  else if (constant > 0 && count) {
    sum = int_of(context, type, constant);
    constant = 0;
  }
  for (int i = 0; i < count; i++) {
    if (i == lead) continue;
    int64_t coef = items[i].coef;
    bool minus = sum && coef < 0 && fits_type(type, -coef);
    Expr *e = write_product(context, items[i].e, minus ? -coef : coef);
    sum = !sum ? e : minus ? expr_sub(context, sum, e) : expr_add(context, sum, e);
  }
  if (!sum) return int_of(context, type, constant);
  if (constant < 0 && fits_type(type, -constant))
    return expr_sub(context, sum, int_of(context, type, -constant));
  return expr_add(context, sum, int_of(context, type, constant));
}

static bool constants_fit(DType type, const Digits *digits) {
  bool fit = fits_type(type, digits->constant) && digits->constant != INT64_MIN;
  for (int i = 0; i < digits->count; i++) {
    const ArithDigit *d = &digits->items[i];
    fit &= fits_type(type, d->coef) && fits_type(type, d->cut) && fits_type(type, d->radix);
  }
  return fit;
}

Expr *form_expr(Analyzer *analyzer, const Form *f) {
  if (!f) return NULL;
  if (form_is_unit(f)) return widened(analyzer->context, f->type, f->terms[0].atom);
  const Digits *digits = form_digits(analyzer, f);
  if (!digits || !constants_fit(f->type, digits)) return NULL;
  Item *items = passing_array(analyzer, Item, digits->count);
  for (int i = 0; i < digits->count; i++)
    items[i] = write_digit(analyzer, f->type, &digits->items[i]);
  qsort(items, (size_t)digits->count, sizeof *items, item_compare);
  Expr *e = write_sum(analyzer, f->type, items, digits->count, digits->constant);
  Info *info = analyzer_info(analyzer, e);
  if (!info->form) info->form = form_keep(analyzer, f);
  return e;
}
