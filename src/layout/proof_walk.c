// SPDX-License-Identifier: Apache-2.0
// Expressions as polynomials over atoms, line by line as the checker will read them. Where the
// digits carry an expression, its normal form says which quotient to show; what they do not carry
// is divided term by term. A comparison that facts do not decide is left in `wanted`.
#include "layout/proof_walk.h"

static const WalkValue nothing = {0};

static WalkValue value_of(const ProofPoly *p, const Form *f) {
  return p ? (WalkValue){p, f} : nothing;
}

// ---- Forms -------------------------------------------------------------------------------------

static const ProofPoly *base_poly(Walk *w, int base) {
  const Base *b = &w->d->bases[base];
  if (b->kind == BASE_AXIS) return w->axes[b->axis];
  return b->kind == BASE_FORM ? walk_form(w, b->args[0]) : NULL;
}

static const ProofPoly *floor_poly(Walk *w, int base, int64_t offset, int64_t cut) {
  Prover *s = w->s;
  const ProofPoly *u = base_poly(w, base);
  if (u) u = proof_linear(s, u, 1, proof_const(s, offset), 1);
  if (!u || cut == 1) return u;
  int before = s->variables.count;
  const ProofPoly *q = proof_atom(s, u, proof_const(s, cut));
  if (q && s->variables.count > before) {
    int64_t last = w->d->bases[base].extent - 1;
    proof_show(s, q);
    proof_show(s, proof_linear(s, proof_const(s, (last + offset) / cut), 1, q, -1));
  }
  return q;
}

static const ProofPoly *parity_poly(Walk *w, BitMask mask) {
  Prover *s = w->s;
  const ProofPoly *sum = proof_const(s, 0);
  for (int i = 0; i < w->d->bit_count; i++) {
    if (!mask_has(mask, i)) continue;
    Bit b = w->d->bits[i];
    bool top = w->d->bases[b.base].extent - 1 + b.offset < 2 * b.cut;
    sum = proof_linear(s, sum, 1, floor_poly(w, b.base, b.offset, b.cut), 1);
    if (!top) sum = proof_linear(s, sum, 1, floor_poly(w, b.base, b.offset, 2 * b.cut), -2);
  }
  return proof_linear(s, sum, 1, proof_atom(s, sum, proof_const(s, 2)), -2);
}

const ProofPoly *walk_form(Walk *w, const Form *f) {
  Prover *s = w->s;
  if (!f || !w->d) return NULL;
  const ProofPoly *sum = proof_const(s, f->constant);
  for (int i = 0; i < f->count; i++)
    sum = proof_linear(s, sum, 1,
                       floor_poly(w, f->terms[i].base, f->terms[i].offset, f->terms[i].cut),
                       f->terms[i].coefficient);
  for (int i = 0; i < f->xor_count; i++)
    sum = proof_linear(s, sum, 1, parity_poly(w, f->xors[i].mask), f->xors[i].coefficient);
  return sum;
}

// ---- Quotients ---------------------------------------------------------------------------------

// ⌊u/m⌋ as q + shift, or by a floor of the rest of u.
static const ProofPoly *divide_terms(Walk *w, const ProofPoly *u, const ProofPoly *m,
                                     bool truncate) {
  Prover *s = w->s;
  const ProofPoly *q, *r;
  if (!proof_split(s, u, m, truncate, &q, &r)) return NULL;
  for (int64_t shift = 0; shift >= -1; shift--) {
    const ProofPoly *shifted = proof_linear(s, q, 1, proof_const(s, shift), 1);
    if (proof_value(s, u, m, shifted)) return shifted;
  }
  if (!truncate) return NULL;
  const ProofPoly *atom = proof_atom(s, r, m);
  if (atom) proof_show(s, atom);
  q = proof_linear(s, q, 1, atom, 1);
  return proof_value(s, u, m, q) ? q : NULL;
}

// Of an atom ⌊v/y⌋: ⌊⌊v/y⌋/m⌋ = ⌊v/(y·m)⌋.
static const ProofPoly *divide_floor(Walk *w, const ProofPoly *u, const ProofPoly *m) {
  Prover *s = w->s;
  if (u->n != 1 || u->t[0].k != 1 || !u->t[0].v[0] || u->t[0].v[1]) return NULL;
  Variable v = s->variables.items[u->t[0].v[0] - 1];
  const ProofPoly *divisor = v.u ? proof_product(s, v.m, m) : NULL;
  const ProofPoly *q = divisor ? proof_atom(s, v.u, divisor) : NULL;
  return q && proof_value(s, u, m, q) ? q : NULL;
}

static WalkValue divide(Walk *w, WalkValue a, WalkValue b) {
  Prover *s = w->s;
  int64_t x, y;
  const Form *f =
      w->d && a.f && b.f ? layout_form_operation(w->d, LAYOUT_DIV, a.f, b.f, NULL) : NULL;
  if (!a.p || !b.p) return nothing;
  bool by_const = proof_is_const(b.p, &y);
  if (by_const && y == 1) return a;
  if (by_const && y > 0 && proof_is_const(a.p, &x))
    return value_of(proof_const(s, floor_div(x, y)), f);
  const ProofPoly *q = proof_quotient(s, a.p, b.p), *guess;
  if (q) return value_of(q, f);
  if ((guess = walk_form(w, f)) && proof_value(s, a.p, b.p, guess)) return value_of(guess, f);
  if ((guess = divide_floor(w, a.p, b.p))) return value_of(guess, f);
  if ((guess = divide_terms(w, a.p, b.p, false))) return value_of(guess, f);
  if ((guess = divide_terms(w, a.p, b.p, true))) return value_of(guess, f);
  return value_of(proof_atom(s, a.p, b.p), f);
}

static WalkValue modulo(Walk *w, WalkValue a, WalkValue b) {
  WalkValue q = divide(w, a, b);
  const Form *f =
      w->d && a.f && b.f ? layout_form_operation(w->d, LAYOUT_MOD, a.f, b.f, NULL) : NULL;
  return value_of(proof_linear(w->s, a.p, 1, proof_product(w->s, b.p, q.p), -1), f);
}

// ---- Bits --------------------------------------------------------------------------------------

// The bits of a value, by its halves: those that are known, else those that its form says.
typedef struct ValueBits {
  const ProofPoly *bits[64];
  int n;
} ValueBits;

static const ProofPoly *half(Walk *w, const ProofPoly *p, const Form *whole, int64_t divisor) {
  Prover *s = w->s;
  const ProofPoly *two = proof_const(s, 2), *known = proof_quotient(s, p, two);
  int64_t k;
  if (proof_is_const(p, &k)) return proof_const(s, k >> 1);
  if (known || !w->d || !whole) return known;
  const ProofPoly *guess = walk_form(w, layout_form_divide(w->d, whole, divisor));
  return guess && proof_value(s, p, two, guess) ? guess : NULL;
}

static bool bits_of(Walk *w, WalkValue a, ValueBits *out) {
  const ProofPoly *rest = a.p;
  int64_t k;
  for (out->n = 0; !proof_is_const(rest, &k) || k; out->n++) {
    bool negative = proof_is_const(rest, &k) && k < 0;
    const ProofPoly *next =
        out->n < 40 && !negative ? half(w, rest, a.f, (int64_t)2 << out->n) : NULL;
    if (!next) return false;
    out->bits[out->n] = proof_linear(w->s, rest, 1, next, -2);
    rest = next;
  }
  return true;
}

// What the form says of bit k.
static const ProofPoly *bit_of(Walk *w, const Form *f, int k) {
  const Form *low = k ? layout_form_divide(w->d, f, (int64_t)1 << k) : f;
  const Form *high = layout_form_divide(w->d, f, (int64_t)2 << k);
  return proof_linear(w->s, walk_form(w, low), 1, walk_form(w, high), -2);
}

// ⌊(x + y)/2⌋ of two bits, where `bit` may be the result's.
static const ProofPoly *both_bits(Walk *w, LayoutOp op, const ProofPoly *x, const ProofPoly *y,
                                  const ProofPoly *bit) {
  Prover *s = w->s;
  int64_t k;
  if (proof_is_const(x, &k)) return k ? y : x;
  if (proof_is_const(y, &k)) return k ? x : y;
  const ProofPoly *sum = proof_linear(s, x, 1, y, 1), *two = proof_const(s, 2);
  const ProofPoly *known = proof_quotient(s, sum, two);
  if (known) return known;
  if (proof_same(x, y) && proof_value(s, sum, two, x)) return x;
  const ProofPoly *guess = op == LAYOUT_AND ? bit : proof_linear(s, sum, 1, bit, -1);
  if (op == LAYOUT_XOR) guess = proof_exact(s, guess, 2);
  if (proof_value(s, sum, two, guess)) return guess;
  return proof_atom(s, sum, two);
}

static WalkValue bitwise(Walk *w, LayoutOp op, WalkValue a, WalkValue b) {
  Prover *s = w->s;
  ValueBits x, y;
  if (!a.p || !b.p || !bits_of(w, a, &x) || !bits_of(w, b, &y)) return nothing;
  const Form *f = w->d && a.f && b.f ? layout_form_operation(w->d, op, a.f, b.f, NULL) : NULL;
  const ProofPoly *common = proof_const(s, 0);
  for (int i = 0; i < x.n && i < y.n; i++) {
    const ProofPoly *bit = f ? bit_of(w, f, i) : NULL;
    common =
        proof_linear(s, common, 1, both_bits(w, op, x.bits[i], y.bits[i], bit), (int64_t)1 << i);
  }
  if (op == LAYOUT_AND) return value_of(common, f);
  const ProofPoly *sum = proof_linear(s, a.p, 1, b.p, 1);
  return value_of(proof_linear(s, sum, 1, common, op == LAYOUT_XOR ? -2 : -1), f);
}

// ---- Comparisons -------------------------------------------------------------------------------

// Whether a <= b: 1, 0, or -1 where it is wanted first.
static int is_less(Walk *w, WalkValue a, WalkValue b) {
  Prover *s = w->s;
  const ProofPoly *room = proof_linear(s, b.p, 1, a.p, -1);
  if (!room) return -1;
  if (proof_need(s, room)) return 1;
  const ProofPoly *excess = proof_linear(s, proof_const(s, -1), 1, room, -1);
  if (excess && proof_need(s, excess)) return 0;
  if (!s->wanted) s->wanted = room;
  return -1;
}

static WalkValue truth_value(Walk *w, int truth) {
  const ProofPoly *p = truth < 0 ? NULL : proof_const(w->s, truth);
  return value_of(p, p && w->d ? layout_form_const(w->d, truth) : NULL);
}

static WalkValue compare(Walk *w, LayoutOp op, WalkValue a, WalkValue b) {
  int truth = op == LAYOUT_LT ? is_less(w, b, a) : is_less(w, a, b);
  if (truth == 1 && (op == LAYOUT_EQ || op == LAYOUT_NE)) truth = is_less(w, b, a);
  if (truth >= 0 && (op == LAYOUT_LT || op == LAYOUT_NE)) truth = !truth;
  return truth_value(w, truth);
}

// What the first argument decides; the others are looked at only where they count.
static WalkValue choose(Walk *w, const LayoutExpr *e) {
  WalkValue a = walk_expr(w, e->args[0]);
  int64_t truth;
  if (!a.p || !proof_is_const(a.p, &truth)) return nothing;
  if (e->op == LAYOUT_SELECT) return walk_expr(w, e->args[truth ? 1 : 2]);
  if (e->op == LAYOUT_NOT || !truth == (e->op == LAYOUT_BOTH))
    return truth_value(w, truth ? e->op != LAYOUT_NOT : e->op == LAYOUT_NOT);
  WalkValue b = walk_expr(w, e->args[1]);
  if (!b.p || !proof_is_const(b.p, &truth)) return nothing;
  return truth_value(w, truth != 0);
}

static WalkValue least_or_most(Walk *w, LayoutOp op, WalkValue a, WalkValue b) {
  int less = is_less(w, a, b);
  return less < 0 ? nothing : less == (op == LAYOUT_MIN) ? a : b;
}

// ---- Expressions -------------------------------------------------------------------------------

static WalkValue linear(Walk *w, LayoutOp op, WalkValue a, WalkValue b) {
  const Form *f = w->d && a.f && b.f ? layout_form_operation(w->d, op, a.f, b.f, NULL) : NULL;
  if (op == LAYOUT_MUL) return value_of(proof_product(w->s, a.p, b.p), f);
  return value_of(proof_linear(w->s, a.p, 1, b.p, op == LAYOUT_ADD ? 1 : -1), f);
}

static WalkValue power_of_two(Walk *w, WalkValue shift) {
  int64_t k;
  if (!proof_is_const(shift.p, &k) || k < 0 || k > 61) return nothing;
  return value_of(proof_const(w->s, (int64_t)1 << k),
                  w->d ? layout_form_const(w->d, (int64_t)1 << k) : NULL);
}

static WalkValue leaf(Walk *w, const LayoutExpr *e) {
  if (e->op == LAYOUT_CONST)
    return value_of(proof_const(w->s, e->value), w->d ? layout_form_const(w->d, e->value) : NULL);
  if (e->op == LAYOUT_AXIS) return w->now[e->value];
  for (int i = 0; i < w->symbol_count; i++)
    if (w->symbols[i].symbol == e->symbol) return value_of(w->symbols[i].p, NULL);
  return nothing;
}

WalkValue walk_expr(Walk *w, const LayoutExpr *e) {
  WalkValue v[3] = {{0}};
  bool lazy = e->op == LAYOUT_SELECT || e->op == LAYOUT_NOT || e->op == LAYOUT_BOTH ||
              e->op == LAYOUT_EITHER;
  if (!e->args[0]) return leaf(w, e);
  if (lazy) return choose(w, e);
  for (int i = 0; i < 3 && e->args[i]; i++)
    if (!(v[i] = walk_expr(w, e->args[i])).p) return nothing;
  switch (e->op) {
  case LAYOUT_ADD:
  case LAYOUT_SUB:
  case LAYOUT_MUL: return linear(w, e->op, v[0], v[1]);
  case LAYOUT_DIV: return divide(w, v[0], v[1]);
  case LAYOUT_MOD: return modulo(w, v[0], v[1]);
  case LAYOUT_SHL: return linear(w, LAYOUT_MUL, v[0], power_of_two(w, v[1]));
  case LAYOUT_SHR: return divide(w, v[0], power_of_two(w, v[1]));
  case LAYOUT_AND:
  case LAYOUT_XOR:
  case LAYOUT_OR: return bitwise(w, e->op, v[0], v[1]);
  case LAYOUT_LT:
  case LAYOUT_LE:
  case LAYOUT_EQ:
  case LAYOUT_NE: return compare(w, e->op, v[0], v[1]);
  default: return least_or_most(w, e->op, v[0], v[1]);
  }
}
