// SPDX-License-Identifier: Apache-2.0
// Converts expressions to sums over a symbolic box, operation by operation, and sums to
// expressions. Bitwise operations with constants become digits (x & 12 = x mod 16 - x mod 4), the
// XOR of two sums becomes one of their low bits, and an operation that the bounds do not decide
// becomes an atom.
#include "layout/symbolic/sums.h"
#include "layout/digits/digits.h"

// ---- Bounds of operations ----------------------------------------------------------------------

// The smaller one, or the only one that is known.
static Poly smaller(Polys *s, Poly a, Poly b) {
  if (!poly_fits(a)) return b;
  return poly_fits(b) ? layout_poly_extreme(s, LAYOUT_MIN, a, b) : a;
}

static const SymbolicSum *operation_atom(SymbolicBox *box, LayoutOp op,
                                         const SymbolicSum *const *operands, int count, Poly low,
                                         Poly high) {
  SymbolicAtom atom = {
      .kind = ATOM_OPERATION, .op = op, .operand_count = count, .low = low, .high = high};
  for (int i = 0; i < count; i++)
    if (!(atom.operands[i] = operands[i])) return NULL;
  return layout_sum_of_atom(box, layout_box_atom(box, &atom));
}

// ---- Bits --------------------------------------------------------------------------------------

static Poly power(SymbolicBox *box, int bit) {
  return poly_const((int64_t)1 << bit);
}

// a & mask, as the sum of a mod 2^to - a mod 2^from over the runs [from, to) of ones in the mask.
static const SymbolicSum *and_mask(SymbolicBox *box, const SymbolicSum *a, int64_t mask) {
  const SymbolicSum *sum = layout_sum_const(box, 0);
  for (int bit = 0; bit < 62 && mask >> bit; bit++) {
    if (!(mask >> bit & 1)) continue;
    int end = bit;
    while (mask >> end & 1) end++;
    sum = layout_sum_plus(box, sum, layout_sum_modulo(box, a, power(box, end)), 1);
    if (bit) sum = layout_sum_plus(box, sum, layout_sum_modulo(box, a, power(box, bit)), -1);
    bit = end;
  }
  return sum;
}

// The least 2^k above a constant upper bound of a; 0 when none is known, or a may be negative.
static int64_t reach_of(SymbolicBox *box, const SymbolicSum *a) {
  Poly low, high;
  int64_t most;
  layout_sum_bounds(box, a, &low, &high);
  if (!poly_nonnegative(low) || !poly_is_const(high, &most)) return 0;
  return most < (int64_t)1 << 60 ? mask_over(most) + 1 : 0;
}

static int compare_sums(const SymbolicSum *a, const SymbolicSum *b) {
  if (a->count != b->count) return a->count - b->count;
  for (int i = 0; i < a->count; i++)
    if (a->terms[i].atom != b->terms[i].atom) return a->terms[i].atom - b->terms[i].atom;
  return 0;
}

static bool constant_of(const SymbolicSum *a, int64_t *value) {
  Poly p;
  return layout_sum_is_poly(a, &p) && poly_is_const(p, value);
}

// The operands of an XOR, all in [0, reach). Their constants are collected in one, and of x and
// reach - 1 - x the one with the smaller constant is an operand.
typedef struct Operands {
  SymbolicBox *box;
  SymbolicAtom *atom;
  int64_t reach, constant;
} Operands;

// Adds an operand over GF(2), where a second equal one cancels the first; operands are sorted.
// False when there is no room.
static bool toggle_sum(Operands *o, const SymbolicSum *operand) {
  SymbolicAtom *x = o->atom;
  for (int i = 0; i < x->operand_count; i++) {
    if (!layout_sum_same(x->operands[i], operand)) continue;
    x->operand_count--;
    for (; i < x->operand_count; i++) x->operands[i] = x->operands[i + 1];
    return true;
  }
  if (x->operand_count == MAX_OPERANDS) return false;
  int at = x->operand_count++;
  for (; at && compare_sums(operand, x->operands[at - 1]) < 0; at--)
    x->operands[at] = x->operands[at - 1];
  x->operands[at] = operand;
  return true;
}

static bool toggle(Operands *o, const SymbolicSum *operand) {
  int64_t value;
  if (!constant_of(operand, &value)) return toggle_sum(o, operand);
  o->constant ^= value;
  return true;
}

static bool is_over_half(const Operands *o, const SymbolicSum *a) {
  int64_t value;
  return a->count && poly_is_const(a->constant, &value) && value >= o->reach / 2;
}

// Adds the operands of a where it is one XOR, otherwise a itself.
static bool toggle_all(Operands *o, const SymbolicSum *a) {
  if (is_over_half(o, a)) {
    o->constant ^= o->reach - 1;
    a = layout_sum_plus(o->box, layout_sum_const(o->box, o->reach - 1), a, -1);
  }
  int at = layout_sum_atom(a, false);
  const SymbolicAtom *atom = at < 0 ? NULL : &o->box->atoms[at];
  if (!atom || atom->kind != ATOM_XOR) return a && toggle(o, a);
  for (int i = 0; i < atom->operand_count; i++)
    if (!toggle(o, atom->operands[i])) return false;
  return true;
}

// a ^ b for a, b in [0, reach).
static const SymbolicSum *xor_within(SymbolicBox *box, const SymbolicSum *a, const SymbolicSum *b,
                                     int64_t reach) {
  SymbolicAtom x = {.kind = ATOM_XOR, .low = poly_const(0)};
  Operands o = {box, &x, reach, 0};
  x.high = poly_const(reach - 1);
  if (!toggle_all(&o, a) || !toggle_all(&o, b)) return NULL;
  const SymbolicSum *constant = layout_sum_const(box, o.constant);
  if (!x.operand_count) return constant;
  if (x.operand_count == 1 && !o.constant) return x.operands[0];
  if (x.operand_count == 1 && o.constant == reach - 1)
    return layout_sum_plus(box, constant, x.operands[0], -1);
  if (o.constant && !toggle_sum(&o, constant)) return NULL;
  return layout_sum_of_atom(box, layout_box_atom(box, &x));
}

static const SymbolicSum *bitwise_const(SymbolicBox *box, LayoutOp op, const SymbolicSum *a,
                                        int64_t mask) {
  const SymbolicSum *common = and_mask(box, a, mask);
  if (op == LAYOUT_AND) return common;
  const SymbolicSum *both = layout_sum_plus(box, a, layout_sum_const(box, mask), 1);
  return layout_sum_plus(box, both, common, -1);
}

// The largest power of two that divides the constant and all coefficients.
static int64_t power_in(SymbolicBox *box, const SymbolicSum *a) {
  Polys *s = box->polys;
  int64_t power = 1;
  if (!a->count && poly_is_zero(a->constant)) return 1;
  for (; power < (int64_t)1 << 40; power *= 2) {
    Poly next = poly_const(2 * power);
    bool divides = poly_fits(layout_poly_exact(s, a->constant, next));
    for (int i = 0; i < a->count && divides; i++)
      divides = poly_fits(layout_poly_exact(s, a->terms[i].coefficient, next));
    if (!divides) break;
  }
  return power;
}

// a ^ 2ᵏ·b = 2ᵏ·(⌊a/2ᵏ⌋ ^ b) + a mod 2ᵏ
static const SymbolicSum *xor_above(SymbolicBox *box, const SymbolicSum *a, const SymbolicSum *b,
                                    int64_t power) {
  Poly y = poly_const(power);
  const SymbolicSum *high = layout_sum_divide(box, a, y);
  const SymbolicSum *low = high ? layout_sum_plus(box, a, high, -power) : NULL;
  return layout_sum_plus(box, low, layout_sum_xor(box, high, layout_sum_divide(box, b, y)), power);
}

static const SymbolicSum *opaque_xor(SymbolicBox *box, const SymbolicSum *a, const SymbolicSum *b) {
  Poly low, other, high;
  layout_sum_bounds(box, a, &low, &high);
  layout_sum_bounds(box, b, &other, &high);
  bool positive = poly_nonnegative(low) && poly_nonnegative(other);
  const SymbolicSum *operands[] = {a, b};
  if (compare_sums(b, a) < 0) operands[0] = b, operands[1] = a;
  if (layout_sum_same(a, b)) return layout_sum_const(box, 0);
  return operation_atom(box, LAYOUT_XOR, operands, 2, positive ? poly_const(0) : POLY_NONE,
                        POLY_NONE);
}

const SymbolicSum *layout_sum_xor(SymbolicBox *box, const SymbolicSum *a, const SymbolicSum *b) {
  int64_t power, value;
  if (!a || !b) return NULL;
  if (constant_of(a, &value) && !value) return b;
  if (constant_of(b, &value) && !value) return a;
  if ((power = power_in(box, b)) > 1) return xor_above(box, a, b, power);
  if ((power = power_in(box, a)) > 1) return xor_above(box, b, a, power);
  int64_t p = reach_of(box, a), q = reach_of(box, b);
  if (!p && !q) return opaque_xor(box, a, b);
  if (!q || (p && p < q)) { // b is the one of fewer bits
    const SymbolicSum *t = a;
    a = b;
    b = t;
    q = p;
  }
  Poly reach = poly_const(q);
  const SymbolicSum *low = layout_sum_modulo(box, a, reach);
  if (!low) return NULL;
  const SymbolicSum *high = layout_sum_plus(box, a, low, -1);
  return layout_sum_plus(box, high, xor_within(box, low, b, q), 1);
}

static const SymbolicSum *sum_and(SymbolicBox *box, const SymbolicSum *a, const SymbolicSum *b) {
  Poly low, high, other_low, other_high;
  if (layout_sum_same(a, b)) return a;
  layout_sum_bounds(box, a, &low, &high);
  layout_sum_bounds(box, b, &other_low, &other_high);
  if (!poly_nonnegative(low) || !poly_nonnegative(other_low)) return NULL;
  const SymbolicSum *operands[] = {a, b};
  if (compare_sums(b, a) < 0) operands[0] = b, operands[1] = a;
  return operation_atom(box, LAYOUT_AND, operands, 2, poly_const(0),
                        smaller(box->polys, high, other_high));
}

static const SymbolicSum *bitwise(SymbolicBox *box, LayoutOp op, const SymbolicSum *a,
                                  const SymbolicSum *b) {
  int64_t value;
  if (op == LAYOUT_XOR) return layout_sum_xor(box, a, b);
  if (constant_of(a, &value) && value >= 0) return bitwise_const(box, op, b, value);
  if (constant_of(b, &value) && value >= 0) return bitwise_const(box, op, a, value);
  const SymbolicSum *common = sum_and(box, a, b);
  if (op == LAYOUT_AND) return common;
  return layout_sum_plus(box, layout_sum_plus(box, a, b, 1), common, -1);
}

// ---- Minimum, maximum, conditions --------------------------------------------------------------

// The signs that the bounds of a sum leave possible, within [-1, 1].
static Interval signs_of(SymbolicBox *box, const SymbolicSum *a) {
  Poly low, high;
  layout_sum_bounds(box, a, &low, &high);
  bool up = poly_positive(low);
  bool down = poly_nonpositive(poly_plus(high, 1));
  return (Interval){up                      ? 1
                    : poly_nonnegative(low) ? 0
                                            : -1,
                    down                     ? -1
                    : poly_nonpositive(high) ? 0
                                             : 1};
}

const SymbolicSum *layout_sum_extreme(SymbolicBox *box, LayoutOp op, const SymbolicSum *a,
                                      const SymbolicSum *b) {
  Poly a_low, a_high, b_low, b_high;
  Polys *s = box->polys;
  const SymbolicSum *less = b ? layout_sum_plus(box, a, b, -1) : NULL;
  if (!less) return NULL;
  Interval signs = signs_of(box, less);
  if (signs.high <= 0) return op == LAYOUT_MIN ? a : b;
  if (signs.low >= 0) return op == LAYOUT_MIN ? b : a;
  layout_sum_bounds(box, a, &a_low, &a_high);
  layout_sum_bounds(box, b, &b_low, &b_high);
  const SymbolicSum *operands[] = {a, b};
  return operation_atom(box, op, operands, 2, layout_poly_extreme(s, op, a_low, b_low),
                        layout_poly_extreme(s, op, a_high, b_high));
}

// The truth value of an operation that has one whatever the signs are, otherwise an atom.
static const SymbolicSum *decide(SymbolicBox *box, LayoutOp op, const SymbolicSum *a,
                                 const SymbolicSum *b) {
  int64_t truth;
  Interval zero = {0, 0};
  if (layout_op_truth(op, signs_of(box, a), b ? signs_of(box, b) : zero, &truth))
    return layout_sum_const(box, truth);
  const SymbolicSum *operands[] = {a, b};
  return operation_atom(box, op, operands, b ? 2 : 1, poly_const(0), poly_const(1));
}

// The comparison of a - b with 0.
static const SymbolicSum *comparison(SymbolicBox *box, LayoutOp op, const SymbolicSum *a,
                                     const SymbolicSum *b) {
  const SymbolicSum *difference = layout_sum_plus(box, a, b, -1);
  return difference ? decide(box, op, difference, layout_sum_const(box, 0)) : NULL;
}

static const SymbolicSum *choice(SymbolicBox *box, const SymbolicSum *condition,
                                 const SymbolicSum *a, const SymbolicSum *b) {
  Poly a_low, a_high, b_low, b_high;
  int64_t truth;
  if (layout_sum_same(a, b)) return a;
  if (layout_op_truth(LAYOUT_NE, signs_of(box, condition), (Interval){0, 0}, &truth))
    return truth ? a : b;
  layout_sum_bounds(box, a, &a_low, &a_high);
  layout_sum_bounds(box, b, &b_low, &b_high);
  Poly low = layout_poly_extreme(box->polys, LAYOUT_MIN, a_low, b_low);
  const SymbolicSum *operands[] = {condition, a, b};
  return operation_atom(box, LAYOUT_SELECT, operands, 3, low,
                        layout_poly_extreme(box->polys, LAYOUT_MAX, a_high, b_high));
}

// ---- Expressions -------------------------------------------------------------------------------

static const SymbolicSum *product(SymbolicBox *box, const SymbolicSum *a, const SymbolicSum *b) {
  Poly p;
  const SymbolicSum *zero = layout_sum_const(box, 0);
  if (layout_sum_is_poly(b, &p)) return layout_sum_add(box, zero, a, p);
  return layout_sum_is_poly(a, &p) ? layout_sum_add(box, zero, b, p) : NULL;
}

static const SymbolicSum *shifted(SymbolicBox *box, LayoutOp op, const SymbolicSum *a,
                                  const SymbolicSum *b) {
  int64_t bits;
  if (!constant_of(b, &bits) || bits < 0 || bits > 61) return NULL;
  if (op == LAYOUT_SHR) return layout_sum_divide(box, a, power(box, (int)bits));
  return layout_sum_add(box, layout_sum_const(box, 0), a, power(box, (int)bits));
}

static const SymbolicSum *divided(SymbolicBox *box, LayoutOp op, const SymbolicSum *a,
                                  const SymbolicSum *b) {
  Poly y;
  if (!layout_sum_is_poly(b, &y) || !poly_positive(y)) return NULL;
  return op == LAYOUT_DIV ? layout_sum_divide(box, a, y) : layout_sum_modulo(box, a, y);
}

static const SymbolicSum *operation(SymbolicBox *box, LayoutOp op, const SymbolicSum *const *v) {
  switch (layout_op_class(op)) {
  case LAYOUT_OP_LINEAR: return layout_sum_plus(box, v[0], v[1], op == LAYOUT_ADD ? 1 : -1);
  case LAYOUT_OP_PRODUCT: return product(box, v[0], v[1]);
  case LAYOUT_OP_QUOTIENT: return divided(box, op, v[0], v[1]);
  case LAYOUT_OP_SHIFT: return shifted(box, op, v[0], v[1]);
  case LAYOUT_OP_BITS: return bitwise(box, op, v[0], v[1]);
  case LAYOUT_OP_EXTREME: return layout_sum_extreme(box, op, v[0], v[1]);
  case LAYOUT_OP_COMPARISON: return comparison(box, op, v[0], v[1]);
  case LAYOUT_OP_LOGIC: return decide(box, op, v[0], v[1]);
  case LAYOUT_OP_CHOICE: return choice(box, v[0], v[1], v[2]);
  case LAYOUT_OP_LEAF: break;
  }
  return NULL;
}

const SymbolicSum *layout_sum_of(SymbolicBox *box, const LayoutExpr *e,
                                 const SymbolicSum *const *axes) {
  const SymbolicSum *v[3] = {0};
  if (e->op == LAYOUT_AXIS) return axes[e->value];
  if (!e->args[0] || e->op == LAYOUT_DIV || e->op == LAYOUT_MOD) {
    Poly p = layout_poly_of(box->polys, e); // of symbols alone
    if (poly_fits(p) || !e->args[0]) return layout_sum_of_poly(box, p);
  }
  for (int i = 0; i < 3 && e->args[i]; i++)
    if (!(v[i] = layout_sum_of(box, e->args[i], axes))) return NULL;
  return operation(box, e->op, v);
}

// ---- Back to expressions -----------------------------------------------------------------------

static const LayoutExpr *xor_expr(SymbolicBox *box, const SymbolicAtom *atom) {
  const LayoutExpr *e = NULL;
  for (int i = 0; i < atom->operand_count; i++) {
    const LayoutExpr *operand = layout_sum_expr(box, atom->operands[i]);
    if (!operand) return NULL;
    e = e ? layout_expr(box->polys->context, LAYOUT_XOR, e, operand, NULL) : operand;
  }
  return e;
}

static const LayoutExpr *atom_expr(SymbolicBox *box, int at) {
  const SymbolicAtom atom = box->atoms[at];
  Context *context = box->polys->context;
  const LayoutExpr *args[MAX_OPERANDS] = {0};
  if (atom.kind == ATOM_AXIS) return layout_axis(context, at);
  if (atom.kind == ATOM_XOR) return xor_expr(box, &atom);
  for (int i = 0; i < atom.operand_count; i++)
    if (!(args[i] = layout_sum_expr(box, atom.operands[i]))) return NULL;
  if (atom.kind == ATOM_OPERATION) return layout_expr(context, atom.op, args[0], args[1], args[2]);
  const LayoutExpr *divisor = layout_poly_expr(box->polys, atom.divisor);
  return divisor ? layout_expr(context, LAYOUT_DIV, args[0], divisor, NULL) : NULL;
}

// Takes the residue that contains the floor of term `at` out of the sum, and adds its text,
// q·(v % y), to *out.
static const SymbolicSum *take_residue(SymbolicBox *box, const SymbolicSum *a, int at,
                                       const LayoutExpr **out) {
  Polys *s = box->polys;
  Residue residue;
  const SymbolicSum *rest = layout_sum_without_residue(box, a, at, &residue);
  if (!rest) return a;
  const LayoutExpr *value = layout_sum_expr(box, residue.inner);
  const LayoutExpr *divisor = layout_poly_expr(s, residue.radix);
  const LayoutExpr *factor = layout_poly_expr(s, residue.q);
  if (!value || !divisor || !factor) return a;
  const LayoutExpr *e = layout_expr(s->context, LAYOUT_MOD, value, divisor, NULL);
  e = layout_expr(s->context, LAYOUT_MUL, e, factor, NULL);
  *out = *out ? layout_expr(s->context, LAYOUT_ADD, *out, e, NULL) : e;
  return rest;
}

// sum ± term, where a sum that is NULL is empty and LAYOUT_SUB takes the negative of the term.
static const LayoutExpr *add_term_expr(SymbolicBox *box, const LayoutExpr *sum, SymbolicTerm term,
                                       LayoutOp op) {
  Polys *s = box->polys;
  Poly coefficient = term.coefficient;
  if (op == LAYOUT_SUB) coefficient = layout_poly_times(s, coefficient, -1);
  const LayoutExpr *factor = layout_poly_expr(s, coefficient), *e = atom_expr(box, term.atom);
  if (!factor || !e) return NULL;
  e = layout_expr(s->context, LAYOUT_MUL, e, factor, NULL);
  return sum ? layout_expr(s->context, op, sum, e, NULL) : e;
}

// Negative terms are written last: 7 - x, not x*(-1) + 7.
const LayoutExpr *layout_sum_expr(SymbolicBox *box, const SymbolicSum *a) {
  Context *context = box->polys->context;
  const LayoutExpr *sum = NULL;
  for (int i = a->count - 1; i >= 0; i = MIN_OF(i, a->count) - 1) a = take_residue(box, a, i, &sum);
  for (int i = 0; i < a->count; i++)
    if (!poly_nonpositive(a->terms[i].coefficient) &&
        !(sum = add_term_expr(box, sum, a->terms[i], LAYOUT_ADD)))
      return NULL;
  const LayoutExpr *constant = layout_poly_expr(box->polys, a->constant);
  if (!constant) return NULL;
  sum = sum ? layout_expr(context, LAYOUT_ADD, sum, constant, NULL) : constant;
  for (int i = 0; i < a->count; i++)
    if (poly_nonpositive(a->terms[i].coefficient) &&
        !(sum = add_term_expr(box, sum, a->terms[i], LAYOUT_SUB)))
      return NULL;
  return sum;
}

void layout_symbolic_simplify(Context *context, LayoutFacts facts, const LayoutExpr *const *shape,
                              int rank, const LayoutExpr *const *exprs, int count,
                              const LayoutExpr **out) {
  int64_t extents[MAX_RANK];
  bool is_static = rank <= MAX_RANK;
  for (int i = 0; i < rank && is_static; i++) {
    is_static = is_const(shape[i]);
    extents[i] = shape[i]->value;
  }
  if (is_static) return layout_digits_simplify(context, exprs, count, extents, rank, out);
  ArenaMark mark = arena_mark(&context->scratch);
  Polys polys = layout_polys_new(context, facts);
  SymbolicBox box;
  const SymbolicSum *axes[MAX_RANK];
  bool boxed = rank <= MAX_RANK && layout_box_init(&box, &polys, shape, rank, axes);
  for (int i = 0; i < count; i++) {
    const SymbolicSum *value = boxed ? layout_sum_of(&box, exprs[i], axes) : NULL;
    const LayoutExpr *e = value ? layout_sum_expr(&box, value) : NULL;
    out[i] = e && layout_expr_size(e) <= layout_expr_size(exprs[i]) ? e : exprs[i];
  }
  arena_reset(&context->scratch, mark);
}
