// SPDX-License-Identifier: Apache-2.0
// Implements polynomials in at most 16 variables, for extents that are expressions of symbols.
// Floors, minima and maxima that no rule decides become variables.
#include "layout/symbolic/symbolic.h"

Polys layout_polys_new(Context *context, LayoutFacts facts) {
  return (Polys){.context = context, .arena = &context->scratch, .facts = facts};
}

Poly layout_poly_exact(Polys *s, Poly x, Poly y) {
  Poly q, r;
  layout_poly_divide(s, x, y, &q, &r);
  return poly_is_zero(r) ? q : POLY_NONE;
}

// ---- Variables ---------------------------------------------------------------------------------

// The polynomial of a variable for `e`, which is multiple · (t + start).
static Poly variable(Polys *s, const LayoutExpr *e, int64_t multiple, int64_t start) {
  int at = 0;
  while (at < s->variable_count && s->variables[at].e != e) at++;
  if (at == MAX_VARIABLES) return POLY_NONE;
  if (at == s->variable_count) {
    s->variables[at].e = e;
    s->variables[at].multiple = multiple;
    s->variables[at].start = start;
    s->variable_count++;
  }
  int64_t least;
  if (!mul_fits(multiple, start, &least)) return POLY_NONE;
  return layout_poly_linear(s, poly_variable(s->arena, at), multiple, poly_const(least), 1);
}

static Poly symbol_poly(Polys *s, const LayoutExpr *e) {
  LayoutFact fact = layout_fact_of(s->facts, e->symbol);
  return variable(s, e, fact.multiple, ceil_div(fact.min, fact.multiple));
}

// 0 <= x < y, proved.
static bool within(Polys *s, Poly x, Poly y) {
  return poly_nonnegative(x) && poly_nonnegative(poly_plus(layout_poly_linear(s, y, 1, x, -1), -1));
}

static Poly unshift(Polys *s, Poly x);

// ⌊r/y⌋ = v + whole - 1 with a variable v = ⌊(r + y)/y⌋ - whole, which is at least 1 - whole where
// r >= 0. The constant in its text is in [0, y): (H + 3)//4, not (H - 9)//4.
static Poly floor_variable(Polys *s, Poly r, Poly y) {
  Poly above = layout_poly_linear(s, r, 1, y, 1);
  Poly plain = unshift(s, above);
  int64_t number, whole = 0;
  if (poly_fits(plain) && poly_is_const(y, &number)) whole = floor_div(plain.constant, number);
  above = layout_poly_linear(s, above, 1, y, -whole);
  const LayoutExpr *e = layout_poly_expr(s, above), *divisor = layout_poly_expr(s, y);
  if (!e || !divisor) return POLY_NONE;
  const LayoutExpr *floor = layout_expr(s->context, LAYOUT_DIV, e, divisor, NULL);
  return poly_plus(variable(s, floor, 1, 1 - whole), whole - 1);
}

Poly layout_poly_floor(Polys *s, Poly x, Poly y) {
  Poly q, r;
  layout_poly_divide(s, x, y, &q, &r);
  if (!poly_fits(q) || !poly_fits(r)) return POLY_NONE;
  if (within(s, r, y)) return q;
  if (within(s, layout_poly_linear(s, r, 1, y, 1), y)) return poly_plus(q, -1);
  if (!poly_nonnegative(r)) return POLY_NONE;
  return layout_poly_linear(s, q, 1, floor_variable(s, r, y), 1);
}

// The minimum or maximum of two polynomials that are not negative, as a variable of its own, whose
// least value is that where all t are 0.
static Poly extreme_variable(Polys *s, LayoutOp op, Poly a, Poly b) {
  if (!poly_nonnegative(a) || !poly_nonnegative(b)) return POLY_NONE;
  const LayoutExpr *x = layout_poly_expr(s, a), *y = layout_poly_expr(s, b);
  if (!x || !y) return POLY_NONE;
  int64_t p = a.constant, q = b.constant;
  return variable(s, layout_expr(s->context, op, x, y, NULL), 1,
                  op == LAYOUT_MIN ? MIN_OF(p, q) : MAX_OF(p, q));
}

Poly layout_poly_extreme(Polys *s, LayoutOp op, Poly a, Poly b) {
  if (poly_nonnegative(layout_poly_linear(s, b, 1, a, -1))) return op == LAYOUT_MIN ? a : b;
  if (poly_nonnegative(layout_poly_linear(s, a, 1, b, -1))) return op == LAYOUT_MIN ? b : a;
  return extreme_variable(s, op, a, b);
}

Poly layout_poly_of(Polys *s, const LayoutExpr *e) {
  if (e->op == LAYOUT_CONST) return poly_const(e->value);
  if (e->op == LAYOUT_SYMBOL) return symbol_poly(s, e);
  if (e->op == LAYOUT_AXIS || !e->args[1]) return POLY_NONE;
  Poly a = layout_poly_of(s, e->args[0]), b = layout_poly_of(s, e->args[1]);
  if (!poly_fits(a) || !poly_fits(b)) return POLY_NONE;
  switch (layout_op_class(e->op)) {
  case LAYOUT_OP_LINEAR: return layout_poly_linear(s, a, 1, b, e->op == LAYOUT_ADD ? 1 : -1);
  case LAYOUT_OP_PRODUCT: return layout_poly_product(s, a, b);
  case LAYOUT_OP_QUOTIENT:
    if (!poly_positive(b)) return POLY_NONE;
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
  return POLY_NONE;
}

// ---- Back to expressions -----------------------------------------------------------------------

// x with every t replaced by u - start, where u = e/multiple.
static Poly unshift(Polys *s, Poly x) {
  Poly sum = poly_fits(x) ? poly_const(x.constant) : POLY_NONE;
  for (int i = 0; poly_fits(sum) && i < x.terms->count; i++) {
    const uint16_t *v = x.terms->items[i].v;
    Poly part = poly_const(x.terms->items[i].coefficient);
    for (int d = 0; d < POLY_DEGREE && v[d]; d++) {
      Poly u = poly_variable(s->arena, v[d] - 1);
      part = layout_poly_product(s, part, poly_plus(u, -s->variables[v[d] - 1].start));
    }
    sum = layout_poly_linear(s, sum, 1, part, 1);
  }
  return sum;
}

// coefficient · Π e/multiple, multiples taken out of the coefficient where they divide it.
static const LayoutExpr *term_expr(Polys *s, const PolyTerm *t) {
  Context *context = s->context;
  int64_t coefficient = t->coefficient < 0 ? -t->coefficient : t->coefficient;
  const LayoutExpr *product = NULL;
  for (int d = POLY_DEGREE - 1; d >= 0; d--) {
    if (!t->v[d]) continue;
    int64_t m = s->variables[t->v[d] - 1].multiple;
    const LayoutExpr *e = s->variables[t->v[d] - 1].e;
    if (coefficient % m == 0)
      coefficient /= m;
    else
      e = layout_by(context, LAYOUT_DIV, e, m);
    product = product ? layout_expr(context, LAYOUT_MUL, product, e, NULL) : e;
  }
  const LayoutExpr *number = layout_const(context, coefficient);
  return product ? layout_expr(context, LAYOUT_MUL, product, number, NULL) : number;
}

const LayoutExpr *layout_poly_expr(Polys *s, Poly x) {
  const LayoutExpr *sum = NULL;
  int64_t value;
  if (poly_is_const(x, &value)) return layout_const(s->context, value);
  Poly p = unshift(s, x);
  if (!poly_fits(p)) return NULL;
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < poly_count(p); i++) {
      PolyTerm t = poly_term(p, i);
      bool negative = t.coefficient < 0;
      if (negative != (pass == 1)) continue;
      const LayoutExpr *term = term_expr(s, &t);
      if (!sum && negative) sum = layout_const(s->context, 0);
      sum =
          sum ? layout_expr(s->context, negative ? LAYOUT_SUB : LAYOUT_ADD, sum, term, NULL) : term;
    }
  return sum ? sum : layout_const(s->context, 0);
}

// a - b of expressions of symbols, as a polynomial where it is one.
const LayoutExpr *layout_symbolic_difference(Context *context, LayoutFacts facts,
                                             const LayoutExpr *a, const LayoutExpr *b) {
  const LayoutExpr *e = layout_binary(context, LAYOUT_SUB, a, b);
  ArenaMark mark = arena_mark(&context->scratch);
  Polys polys = layout_polys_new(context, facts);
  Poly p = layout_poly_of(&polys, e);
  const LayoutExpr *simple = poly_fits(p) ? layout_poly_expr(&polys, p) : NULL;
  arena_reset(&context->scratch, mark);
  return simple ? simple : e;
}
