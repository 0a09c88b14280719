// SPDX-License-Identifier: Apache-2.0
// Physical extents of symbolic layouts: interval arithmetic on the text, with the three fixed rules
// (`e % m` spans m, `e & m` spans m + 1, `^` and `|` reach the next power of two).
#include "layout/symbolic/sums.h"

typedef struct SymbolicRange {
  const Poly *low, *high;
} SymbolicRange;

static SymbolicRange interval_of(SymbolicBox *box, const LayoutExpr *e);

static SymbolicRange interval_product(Polys *s, SymbolicRange a, const Poly *c) {
  bool up = layout_poly_nonnegative(c);
  if (!up && !layout_poly_nonpositive(s, c)) return (SymbolicRange){NULL, NULL};
  const Poly *x = layout_poly_product(s, a.low, c), *y = layout_poly_product(s, a.high, c);
  return up ? (SymbolicRange){x, y} : (SymbolicRange){y, x};
}

static const Poly *extreme(Polys *s, LayoutOp op, const Poly *a, const Poly *b) {
  return a && b ? layout_poly_extreme(s, op, a, b) : NULL;
}

static SymbolicRange shifted(Polys *s, LayoutOp op, SymbolicRange a, SymbolicRange b) {
  int64_t bits;
  if (!layout_poly_same(b.low, b.high) || !layout_poly_is_const(b.low, &bits) || bits < 0 ||
      bits > 61)
    return (SymbolicRange){NULL, NULL};
  const Poly *factor = layout_poly_const(s, (int64_t)1 << bits);
  if (op == LAYOUT_SHL) return interval_product(s, a, factor);
  return (SymbolicRange){a.low ? layout_poly_floor(s, a.low, factor) : NULL,
                         a.high ? layout_poly_floor(s, a.high, factor) : NULL};
}

// Of what is not negative. `^` and `|` on symbolic extents reach no power of two that can be said.
static SymbolicRange bits_interval(Polys *s, LayoutOp op, SymbolicRange a, SymbolicRange b) {
  int64_t x, y, mask = 0;
  const Poly *zero = layout_poly_const(s, 0);
  if (!layout_poly_nonnegative(a.low) || !layout_poly_nonnegative(b.low))
    return (SymbolicRange){NULL, NULL};
  if (op == LAYOUT_AND) return (SymbolicRange){zero, extreme(s, LAYOUT_MIN, a.high, b.high)};
  if (!layout_poly_is_const(a.high, &x) || !layout_poly_is_const(b.high, &y))
    return (SymbolicRange){zero, NULL};
  while (mask < MAX_OF(x, y)) mask = mask * 2 + 1;
  return (SymbolicRange){zero, layout_poly_const(s, mask)};
}

// Interval arithmetic on the text: `e % m` spans m whatever e is.
static SymbolicRange operation_interval(SymbolicBox *box, const LayoutExpr *e) {
  Polys *s = box->polys;
  SymbolicRange none = {NULL, NULL}, a = interval_of(box, e->args[0]);
  const Poly *zero = layout_poly_const(s, 0), *one = layout_poly_const(s, 1);
  if (e->op == LAYOUT_NOT) return (SymbolicRange){zero, one};
  if (e->op == LAYOUT_SELECT) {
    SymbolicRange x = interval_of(box, e->args[1]), y = interval_of(box, e->args[2]);
    return (SymbolicRange){extreme(s, LAYOUT_MIN, x.low, y.low),
                           extreme(s, LAYOUT_MAX, x.high, y.high)};
  }
  SymbolicRange b = interval_of(box, e->args[1]);
  bool fixed = layout_poly_same(b.low, b.high), positive = fixed && layout_poly_positive(s, b.low);
  switch ((int)e->op) {
  case LAYOUT_ADD:
    return (SymbolicRange){layout_poly_linear(s, a.low, 1, b.low, 1),
                           layout_poly_linear(s, a.high, 1, b.high, 1)};
  case LAYOUT_SUB:
    return (SymbolicRange){layout_poly_linear(s, a.low, 1, b.high, -1),
                           layout_poly_linear(s, a.high, 1, b.low, -1)};
  case LAYOUT_MUL:
    if (fixed) return interval_product(s, a, b.low);
    return layout_poly_same(a.low, a.high) ? interval_product(s, b, a.low) : none;
  case LAYOUT_DIV:
    if (!positive) return none;
    return (SymbolicRange){a.low ? layout_poly_floor(s, a.low, b.low) : NULL,
                           a.high ? layout_poly_floor(s, a.high, b.low) : NULL};
  case LAYOUT_MOD: return positive ? (SymbolicRange){zero, layout_poly_plus(s, b.low, -1)} : none;
  case LAYOUT_MIN:
  case LAYOUT_MAX:
    return (SymbolicRange){extreme(s, e->op, a.low, b.low), extreme(s, e->op, a.high, b.high)};
  case LAYOUT_SHL:
  case LAYOUT_SHR: return shifted(s, e->op, a, b);
  case LAYOUT_AND:
    if (is_const(e->args[1]) && e->args[1]->value >= 0) return (SymbolicRange){zero, b.high};
    return bits_interval(s, e->op, a, b);
  case LAYOUT_XOR:
  case LAYOUT_OR: return bits_interval(s, e->op, a, b);
  case LAYOUT_LT:
  case LAYOUT_LE:
  case LAYOUT_EQ:
  case LAYOUT_NE:
  case LAYOUT_BOTH:
  case LAYOUT_EITHER: return (SymbolicRange){zero, one};
  }
  return none;
}

static SymbolicRange interval_of(SymbolicBox *box, const LayoutExpr *e) {
  if (e->op == LAYOUT_AXIS)
    return (SymbolicRange){box->atoms[e->value].low, box->atoms[e->value].high};
  if (e->args[0]) return operation_interval(box, e);
  const Poly *p = layout_poly_of(box->polys, e);
  return (SymbolicRange){p, p};
}

// Whether the exact bounds of output i stay within [0, extent).
static bool proves_inside(SymbolicBox *box, const LayoutExpr *e, const LayoutExpr *extent,
                          const SymbolicSum *const *axes) {
  Polys *s = box->polys;
  const Poly *size = layout_poly_of(s, extent), *zero = layout_poly_const(s, 0);
  const SymbolicSum *sum = layout_sum_of(box, e, axes);
  if (!size || !sum) return false;
  const Poly *last = layout_poly_plus(s, size, -1);
  return last && layout_sum_within(box, sum, zero, last);
}

static int derive(SymbolicBox *box, const Layout *layout, const LayoutExpr *const *given,
                  const LayoutExpr **physical, const SymbolicSum *const *axes) {
  Polys *s = box->polys;
  for (int i = 0; i < layout->physical_rank; i++) {
    const LayoutExpr *e = layout->map->outputs[i];
    SymbolicRange range = interval_of(box, e);
    const Poly *size = layout_poly_plus(s, range.high, 1);
    physical[i] = given ? given[i] : size ? layout_poly_expr(s, size) : NULL;
    if (!physical[i]) return i;
    bool inside = range.low && layout_poly_nonnegative(range.low) && size &&
                  layout_poly_same(layout_poly_of(s, physical[i]), size);
    if (!inside && !proves_inside(box, e, physical[i], axes)) return i;
  }
  return -1;
}

int layout_symbolic_extents(Context *context, const Layout *layout, const LayoutExpr *const *given,
                            const LayoutExpr **physical) {
  ArenaMark mark = arena_mark(&context->scratch);
  Polys polys = layout_polys_new(context, layout->facts);
  SymbolicBox one, *box = &one;
  const SymbolicSum *axes[MAX_RANK];
  int bad = layout_box_init(box, &polys, layout->shape, layout_box_rank(layout), axes)
                ? derive(box, layout, given, physical, axes)
                : 0;
  arena_reset(&context->scratch, mark);
  return bad;
}
