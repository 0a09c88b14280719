// SPDX-License-Identifier: Apache-2.0
// Polynomials with 64-bit coefficients in at most 16 variables of degree at most 15, for extents
// that are expressions of symbols. Floors, minima and maxima that no rule decides become variables.
#include "layout/symbolic/symbolic.h"

Polys layout_polys_new(Context *context, LayoutFacts facts) {
  return (Polys){.context = context, .arena = &context->scratch, .facts = facts};
}

static Poly *new_poly(Polys *s, int count) {
  Poly *p = arena_take(s->arena, sizeof *p + sizeof *p->terms * (size_t)count);
  *p = (Poly){0, (PolyTerm *)(p + 1)};
  return p;
}

static const Poly *monomial(Polys *s, uint64_t mono, int64_t coefficient) {
  Poly *p = new_poly(s, 1);
  p->terms[0] = (PolyTerm){mono, coefficient};
  p->count = coefficient != 0;
  return p;
}

const Poly *layout_poly_const(Polys *s, int64_t value) {
  bool kept = value >= -1 && value <= 1;
  const Poly *p = kept ? s->small[value + 1] : NULL;
  if (p) return p;
  p = monomial(s, 0, value);
  if (kept) s->small[value + 1] = p;
  return p;
}

static bool is_one(const Poly *x) {
  return x->count == 1 && !x->terms[0].monomial && x->terms[0].coefficient == 1;
}

bool layout_poly_same(const Poly *x, const Poly *y) {
  if (!x || !y || x->count != y->count) return false;
  for (int i = 0; i < x->count; i++)
    if (x->terms[i].monomial != y->terms[i].monomial ||
        x->terms[i].coefficient != y->terms[i].coefficient)
      return false;
  return true;
}

bool layout_poly_is_const(const Poly *x, int64_t *value) {
  if (!x || x->count > 1 || (x->count && x->terms[0].monomial)) return false;
  *value = x->count ? x->terms[0].coefficient : 0;
  return true;
}

bool layout_poly_nonnegative(const Poly *x) {
  for (int i = 0; x && i < x->count; i++)
    if (x->terms[i].coefficient < 0) return false;
  return x != NULL;
}

bool layout_poly_nonpositive(Polys *s, const Poly *x) {
  return layout_poly_nonnegative(layout_poly_times(s, x, -1));
}

bool layout_poly_is_zero(const Poly *x) {
  return x->count == 0;
}

// ---- Arithmetic --------------------------------------------------------------------------------

static bool combine(int64_t x, int64_t a, int64_t y, int64_t b, int64_t *out) {
  int64_t p, q;
  return mul_fits(x, a, &p) && mul_fits(y, b, &q) && add_fits(p, q, out);
}

const Poly *layout_poly_linear(Polys *s, const Poly *x, int64_t a, const Poly *y, int64_t b) {
  if (!x || !y) return NULL;
  if (a == 1 && !(b && y->count)) return x;
  if (b == 1 && !(a && x->count)) return y;
  int64_t p, q, sum;
  if (layout_poly_is_const(x, &p) && layout_poly_is_const(y, &q))
    return combine(p, a, q, b, &sum) ? layout_poly_const(s, sum) : NULL;
  Poly *out = new_poly(s, x->count + y->count);
  for (int i = 0, j = 0; i < x->count || j < y->count;) {
    uint64_t p = i < x->count ? x->terms[i].monomial : 0;
    uint64_t q = j < y->count ? y->terms[j].monomial : 0;
    bool left = i < x->count && (j == y->count || p >= q);
    bool right = j < y->count && (i == x->count || q >= p);
    PolyTerm *term = &out->terms[out->count];
    term->monomial = left ? p : q;
    if (!combine(left ? x->terms[i].coefficient : 0, a, right ? y->terms[j].coefficient : 0, b,
                 &term->coefficient))
      return NULL;
    i += left;
    j += right;
    out->count += term->coefficient != 0;
  }
  return out;
}

const Poly *layout_poly_times(Polys *s, const Poly *x, int64_t a) {
  return layout_poly_linear(s, x, a, x, 0);
}

const Poly *layout_poly_plus(Polys *s, const Poly *x, int64_t value) {
  return layout_poly_linear(s, x, 1, layout_poly_const(s, 1), value);
}

// Adds the exponents; false where one of them passes 15.
static bool monomial_product(uint64_t a, uint64_t b, uint64_t *out) {
  for (int i = 0; a && b && i < MAX_VARIABLES; i++)
    if ((a >> 4 * i & 15) + (b >> 4 * i & 15) > 15) return false;
  *out = a + b;
  return true;
}

static bool monomial_divides(uint64_t a, uint64_t b) {
  for (int i = 0; a && i < MAX_VARIABLES; i++)
    if ((a >> 4 * i & 15) > (b >> 4 * i & 15)) return false;
  return true;
}

static const Poly *times_term(Polys *s, const Poly *x, PolyTerm t) {
  Poly *out = new_poly(s, x->count);
  for (int i = 0; i < x->count; i++) {
    PolyTerm *term = &out->terms[i];
    if (!monomial_product(x->terms[i].monomial, t.monomial, &term->monomial) ||
        !mul_fits(x->terms[i].coefficient, t.coefficient, &term->coefficient))
      return NULL;
  }
  out->count = t.coefficient ? x->count : 0;
  return out;
}

const Poly *layout_poly_product(Polys *s, const Poly *x, const Poly *y) {
  if (!x || !y) return NULL;
  if (!x->count || is_one(y)) return x;
  if (!y->count || is_one(x)) return y;
  const Poly *sum = layout_poly_const(s, 0);
  for (int i = 0; i < y->count && sum; i++)
    sum = layout_poly_linear(s, sum, 1, times_term(s, x, y->terms[i]), 1);
  return sum;
}

static void append_term(Poly *p, uint64_t mono, int64_t coefficient) {
  if (coefficient) p->terms[p->count++] = (PolyTerm){mono, coefficient};
}

// x = q·y + r for a y of one term.
static void divide_by_term(Polys *s, const Poly *x, PolyTerm y, const Poly **q, const Poly **r) {
  Poly *wholes = new_poly(s, x->count), *rests = new_poly(s, x->count);
  for (int i = 0; i < x->count; i++) {
    PolyTerm t = x->terms[i];
    bool divides = monomial_divides(y.monomial, t.monomial);
    int64_t whole = divides ? floor_div(t.coefficient, y.coefficient) : 0, taken, rest;
    if (!mul_fits(whole, y.coefficient, &taken) || !sub_fits(t.coefficient, taken, &rest)) {
      *q = *r = NULL;
      return;
    }
    append_term(wholes, t.monomial - y.monomial, whole);
    append_term(rests, t.monomial, rest);
  }
  *q = wholes;
  *r = rests;
}

void layout_poly_divide(Polys *s, const Poly *x, const Poly *y, const Poly **q, const Poly **r) {
  *q = layout_poly_const(s, 0);
  *r = x;
  if (!x || !y || !y->count) {
    *q = *r = NULL;
    return;
  }
  if (y->count == 1) return divide_by_term(s, x, y->terms[0], q, r);
  PolyTerm lead = y->terms[0];
  for (int i = 0; *r && *q && i < (*r)->count;) {
    PolyTerm term = (*r)->terms[i];
    int64_t factor = floor_div(term.coefficient, lead.coefficient);
    if (!factor || !monomial_divides(lead.monomial, term.monomial)) {
      i++;
      continue;
    }
    PolyTerm part = {term.monomial - lead.monomial, factor};
    *q = layout_poly_linear(s, *q, 1, monomial(s, part.monomial, part.coefficient), 1);
    *r = layout_poly_linear(s, *r, 1, times_term(s, y, part), -1);
    i += *r && i < (*r)->count && (*r)->terms[i].monomial == term.monomial;
  }
}

const Poly *layout_poly_exact(Polys *s, const Poly *x, const Poly *y) {
  const Poly *q, *r;
  layout_poly_divide(s, x, y, &q, &r);
  return q && r && layout_poly_is_zero(r) ? q : NULL;
}

// ---- Variables ---------------------------------------------------------------------------------

// The polynomial of a variable for `e`, which is multiple · (t + start).
static const Poly *variable(Polys *s, const LayoutExpr *e, int64_t multiple, int64_t start) {
  int at = 0;
  while (at < s->variable_count && s->variables[at].e != e) at++;
  if (at == MAX_VARIABLES) return NULL;
  if (at == s->variable_count) {
    s->variables[at].e = e;
    s->variables[at].multiple = multiple;
    s->variables[at].start = start;
    s->variable_count++;
  }
  int64_t least;
  if (!mul_fits(multiple, start, &least)) return NULL;
  return layout_poly_linear(s, monomial(s, (uint64_t)1 << (4 * at), multiple), 1,
                            layout_poly_const(s, least), 1);
}

static const Poly *symbol_poly(Polys *s, const LayoutExpr *e) {
  for (int i = 0; i < s->facts.count; i++) {
    const LayoutFact *fact = &s->facts.items[i];
    int64_t multiple = MAX_OF(fact->multiple, (int64_t)1);
    if (fact->symbol == e->symbol) return variable(s, e, multiple, ceil_div(fact->min, multiple));
  }
  return variable(s, e, 1, 1);
}

// 0 <= x < y, proved.
static bool within(Polys *s, const Poly *x, const Poly *y) {
  return layout_poly_nonnegative(x) &&
         layout_poly_nonnegative(layout_poly_plus(s, layout_poly_linear(s, y, 1, x, -1), -1));
}

static int64_t least_value(const Poly *x) {
  return x->count && !x->terms[x->count - 1].monomial ? x->terms[x->count - 1].coefficient : 0;
}

static const Poly *unshift(Polys *s, const Poly *x);

// ⌊r/y⌋ = v + whole - 1 with a variable v = ⌊(r + y)/y⌋ - whole, which is at least 1 - whole where
// r >= 0. The constant in its text is in [0, y): (H + 3)//4, not (H - 9)//4.
static const Poly *floor_variable(Polys *s, const Poly *r, const Poly *y) {
  const Poly *above = layout_poly_linear(s, r, 1, y, 1);
  const Poly *plain = above ? unshift(s, above) : NULL;
  int64_t number, whole = 0;
  if (plain && layout_poly_is_const(y, &number)) whole = floor_div(least_value(plain), number);
  above = layout_poly_linear(s, above, 1, y, -whole);
  const LayoutExpr *e = layout_poly_expr(s, above), *divisor = layout_poly_expr(s, y);
  if (!e || !divisor) return NULL;
  const LayoutExpr *floor = layout_expr(s->context, LAYOUT_DIV, e, divisor, NULL);
  return layout_poly_plus(s, variable(s, floor, 1, 1 - whole), whole - 1);
}

const Poly *layout_poly_floor(Polys *s, const Poly *x, const Poly *y) {
  const Poly *q, *r;
  layout_poly_divide(s, x, y, &q, &r);
  if (!q || !r) return NULL;
  if (within(s, r, y)) return q;
  if (within(s, layout_poly_linear(s, r, 1, y, 1), y)) return layout_poly_plus(s, q, -1);
  if (!layout_poly_nonnegative(r)) return NULL;
  return layout_poly_linear(s, q, 1, floor_variable(s, r, y), 1);
}

// The minimum or maximum of two polynomials that are not negative, as a variable of its own, whose
// least value is that where all t are 0.
static const Poly *extreme_variable(Polys *s, LayoutOp op, const Poly *a, const Poly *b) {
  if (!layout_poly_nonnegative(a) || !layout_poly_nonnegative(b)) return NULL;
  const LayoutExpr *x = layout_poly_expr(s, a), *y = layout_poly_expr(s, b);
  if (!x || !y) return NULL;
  int64_t p = least_value(a), q = least_value(b);
  return variable(s, layout_expr(s->context, op, x, y, NULL), 1,
                  op == LAYOUT_MIN ? MIN_OF(p, q) : MAX_OF(p, q));
}

const Poly *layout_poly_extreme(Polys *s, LayoutOp op, const Poly *a, const Poly *b) {
  if (layout_poly_nonnegative(layout_poly_linear(s, b, 1, a, -1))) return op == LAYOUT_MIN ? a : b;
  if (layout_poly_nonnegative(layout_poly_linear(s, a, 1, b, -1))) return op == LAYOUT_MIN ? b : a;
  return a && b ? extreme_variable(s, op, a, b) : NULL;
}

bool layout_poly_positive(Polys *s, const Poly *x) {
  return layout_poly_nonnegative(layout_poly_plus(s, x, -1));
}

const Poly *layout_poly_of(Polys *s, const LayoutExpr *e) {
  if (e->op == LAYOUT_CONST) return layout_poly_const(s, e->value);
  if (e->op == LAYOUT_SYMBOL) return symbol_poly(s, e);
  if (e->op == LAYOUT_AXIS || !e->args[1]) return NULL;
  const Poly *a = layout_poly_of(s, e->args[0]), *b = layout_poly_of(s, e->args[1]);
  if (!a || !b) return NULL;
  switch (layout_op_class(e->op)) {
  case LAYOUT_OP_LINEAR: return layout_poly_linear(s, a, 1, b, e->op == LAYOUT_ADD ? 1 : -1);
  case LAYOUT_OP_PRODUCT: return layout_poly_product(s, a, b);
  case LAYOUT_OP_QUOTIENT:
    if (!layout_poly_positive(s, b)) return NULL;
    if (e->op == LAYOUT_DIV) return layout_poly_floor(s, a, b);
    return layout_poly_linear(s, a, 1, layout_poly_product(s, layout_poly_floor(s, a, b), b), -1);
  case LAYOUT_OP_EXTREME: return layout_poly_extreme(s, e->op, a, b);
  case LAYOUT_OP_LEAF:
  case LAYOUT_OP_SHIFT:
  case LAYOUT_OP_BITS:
  case LAYOUT_OP_COMPARISON:
  case LAYOUT_OP_LOGIC:
  case LAYOUT_OP_CHOICE: break;
  }
  return NULL;
}

// ---- Back to expressions -----------------------------------------------------------------------

// x with every t replaced by u - start, where u = e/multiple.
static const Poly *unshift(Polys *s, const Poly *x) {
  const Poly *sum = layout_poly_const(s, 0);
  for (int i = 0; i < x->count && sum; i++) {
    const Poly *part = layout_poly_const(s, x->terms[i].coefficient);
    for (int v = 0; v < s->variable_count; v++)
      for (int k = 0; k < (int)(x->terms[i].monomial >> 4 * v & 15); k++)
        part = layout_poly_product(s, part,
                                   layout_poly_linear(s, monomial(s, (uint64_t)1 << (4 * v), 1), 1,
                                                      layout_poly_const(s, 1),
                                                      -s->variables[v].start));
    sum = layout_poly_linear(s, sum, 1, part, 1);
  }
  return sum;
}

// coefficient · Π (e/multiple)^k, multiples taken out of the coefficient where they divide it.
static const LayoutExpr *term_expr(Polys *s, PolyTerm t) {
  Context *context = s->context;
  int64_t coefficient = t.coefficient < 0 ? -t.coefficient : t.coefficient;
  const LayoutExpr *product = NULL;
  for (int v = 0; v < s->variable_count; v++)
    for (int k = 0; k < (int)(t.monomial >> 4 * v & 15); k++) {
      int64_t m = s->variables[v].multiple;
      const LayoutExpr *e = s->variables[v].e;
      if (coefficient % m == 0)
        coefficient /= m;
      else
        e = layout_expr(context, LAYOUT_DIV, e, layout_const(context, m), NULL);
      product = product ? layout_expr(context, LAYOUT_MUL, product, e, NULL) : e;
    }
  const LayoutExpr *number = layout_const(context, coefficient);
  return product ? layout_expr(context, LAYOUT_MUL, product, number, NULL) : number;
}

const LayoutExpr *layout_poly_expr(Polys *s, const Poly *x) {
  const LayoutExpr *sum = NULL;
  int64_t value;
  if (layout_poly_is_const(x, &value)) return layout_const(s->context, value);
  const Poly *p = x ? unshift(s, x) : NULL;
  if (!p) return NULL;
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < p->count; i++) {
      bool negative = p->terms[i].coefficient < 0;
      if (negative != (pass == 1)) continue;
      const LayoutExpr *term = term_expr(s, p->terms[i]);
      if (!sum && negative) sum = layout_const(s->context, 0);
      sum =
          sum ? layout_expr(s->context, negative ? LAYOUT_SUB : LAYOUT_ADD, sum, term, NULL) : term;
    }
  return sum ? sum : layout_const(s->context, 0);
}

// a - b of expressions of symbols, as a polynomial where it is one.
const LayoutExpr *layout_difference(Context *context, LayoutFacts facts, const LayoutExpr *a,
                                    const LayoutExpr *b) {
  const LayoutExpr *e = layout_binary(context, LAYOUT_SUB, a, b);
  ArenaMark mark = arena_mark(&context->scratch);
  Polys polys = layout_polys_new(context, facts);
  const Poly *p = layout_poly_of(&polys, e);
  const LayoutExpr *simple = p ? layout_poly_expr(&polys, p) : NULL;
  arena_reset(&context->scratch, mark);
  return simple ? simple : e;
}
