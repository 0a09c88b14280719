// SPDX-License-Identifier: Apache-2.0
// Finds the physical extents of symbolic layouts: interval arithmetic on the text, with the three
// fixed rules (`e % m` spans m, `e & m` spans m + 1, `^` and `|` reach the next power of two).
#include "layout/symbolic/sums.h"

typedef struct SymbolicRange {
  Poly low, high;
} SymbolicRange;

static const SymbolicRange unknown = {0};

static SymbolicRange interval_of(SymbolicBox *box, const LayoutExpr *e);

static SymbolicRange interval_product(Polys *s, SymbolicRange a, Poly c) {
  bool up = poly_nonnegative(c);
  if (!up && !poly_nonpositive(c)) return unknown;
  Poly x = layout_poly_product(s, a.low, c), y = layout_poly_product(s, a.high, c);
  return up ? (SymbolicRange){x, y} : (SymbolicRange){y, x};
}

static SymbolicRange interval_floor(Polys *s, SymbolicRange a, Poly divisor) {
  return (SymbolicRange){layout_poly_floor(s, a.low, divisor),
                         layout_poly_floor(s, a.high, divisor)};
}

static SymbolicRange shifted(Polys *s, LayoutOp op, SymbolicRange a, SymbolicRange b) {
  int64_t bits;
  if (!poly_same(b.low, b.high) || !poly_is_const(b.low, &bits) || bits < 0 || bits > 61)
    return unknown;
  Poly factor = poly_const((int64_t)1 << bits);
  return op == LAYOUT_SHL ? interval_product(s, a, factor) : interval_floor(s, a, factor);
}

static SymbolicRange product(Polys *s, SymbolicRange a, SymbolicRange b) {
  if (poly_same(b.low, b.high)) return interval_product(s, a, b.low);
  return poly_same(a.low, a.high) ? interval_product(s, b, a.low) : unknown;
}

// `e % m` spans m whatever e is.
static SymbolicRange quotient(Polys *s, LayoutOp op, SymbolicRange a, SymbolicRange b) {
  if (!poly_same(b.low, b.high) || !poly_positive(b.low)) return unknown;
  if (op == LAYOUT_DIV) return interval_floor(s, a, b.low);
  return (SymbolicRange){poly_const(0), poly_plus(b.low, -1)};
}

// For intervals without negative numbers. `^` and `|` on symbolic extents have no known end.
static SymbolicRange bits_interval(Polys *s, LayoutOp op, SymbolicRange a, SymbolicRange b) {
  int64_t x, y;
  Poly zero = poly_const(0);
  if (!poly_nonnegative(a.low) || !poly_nonnegative(b.low)) return unknown;
  if (op == LAYOUT_AND)
    return (SymbolicRange){zero, layout_poly_extreme(s, LAYOUT_MIN, a.high, b.high)};
  if (!poly_is_const(a.high, &x) || !poly_is_const(b.high, &y))
    return (SymbolicRange){zero, POLY_NONE};
  return (SymbolicRange){zero, poly_const(mask_over(MAX_OF(x, y)))};
}

// The rules of layout_op_interval, as far as they can be told for polynomials.
static SymbolicRange operation_interval(SymbolicBox *box, const LayoutExpr *e) {
  Polys *s = box->polys;
  SymbolicRange v[3] = {unknown, unknown, unknown}, *a = &v[0], *b = &v[1], *c = &v[2];
  LayoutOpClass class = layout_op_class(e->op);
  if (class == LAYOUT_OP_COMPARISON || class == LAYOUT_OP_LOGIC)
    return (SymbolicRange){poly_const(0), poly_const(1)};
  for (int i = class == LAYOUT_OP_CHOICE; i < 3 && e->args[i]; i++)
    v[i] = interval_of(box, e->args[i]);
  if (e->op == LAYOUT_AND && is_const(e->args[1]) && e->args[1]->value >= 0)
    return (SymbolicRange){poly_const(0), b->high};
  switch (class) {
  case LAYOUT_OP_LINEAR: {
    bool add = e->op == LAYOUT_ADD;
    return (SymbolicRange){layout_poly_linear(s, a->low, 1, add ? b->low : b->high, add ? 1 : -1),
                           layout_poly_linear(s, a->high, 1, add ? b->high : b->low, add ? 1 : -1)};
  }
  case LAYOUT_OP_PRODUCT: return product(s, *a, *b);
  case LAYOUT_OP_QUOTIENT: return quotient(s, e->op, *a, *b);
  case LAYOUT_OP_SHIFT: return shifted(s, e->op, *a, *b);
  case LAYOUT_OP_BITS: return bits_interval(s, e->op, *a, *b);
  case LAYOUT_OP_EXTREME:
    return (SymbolicRange){layout_poly_extreme(s, e->op, a->low, b->low),
                           layout_poly_extreme(s, e->op, a->high, b->high)};
  case LAYOUT_OP_CHOICE:
    return (SymbolicRange){layout_poly_extreme(s, LAYOUT_MIN, b->low, c->low),
                           layout_poly_extreme(s, LAYOUT_MAX, b->high, c->high)};
  case LAYOUT_OP_LEAF:
  case LAYOUT_OP_COMPARISON:
  case LAYOUT_OP_LOGIC: break;
  }
  return unknown;
}

static SymbolicRange interval_of(SymbolicBox *box, const LayoutExpr *e) {
  if (e->op == LAYOUT_AXIS)
    return (SymbolicRange){box->atoms[e->value].low, box->atoms[e->value].high};
  if (e->args[0]) return operation_interval(box, e);
  Poly p = layout_poly_of(box->polys, e);
  return (SymbolicRange){p, p};
}

// Whether the exact bounds of output i stay within [0, extent).
static bool proves_inside(SymbolicBox *box, const LayoutExpr *e, const LayoutExpr *extent,
                          const SymbolicSum *const *axes) {
  Polys *s = box->polys;
  Poly size = layout_poly_of(s, extent), zero = poly_const(0);
  const SymbolicSum *sum = layout_sum_of(box, e, axes);
  if (!poly_fits(size) || !sum) return false;
  Poly last = poly_plus(size, -1);
  return poly_fits(last) && layout_sum_within(box, sum, zero, last);
}

static int derive(SymbolicBox *box, const Layout *layout, const LayoutExpr *const *given,
                  const LayoutExpr **physical, const SymbolicSum *const *axes) {
  Polys *s = box->polys;
  for (int i = 0; i < layout->physical_rank; i++) {
    const LayoutExpr *e = layout->map->outputs[i];
    SymbolicRange range = interval_of(box, e);
    Poly size = poly_plus(range.high, 1);
    physical[i] = given ? given[i] : layout_poly_expr(s, size);
    if (!physical[i]) return i;
    bool inside = poly_nonnegative(range.low) && poly_fits(size) &&
                  poly_same(layout_poly_of(s, physical[i]), size);
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
