// SPDX-License-Identifier: Apache-2.0
// Writes expressions as polynomials over atoms, line by line as the checker will read them. Where
// the digits carry an expression, its normal form says which quotient to show; other expressions
// are divided term by term. A comparison that facts do not decide is left in `wanted`.
#include "layout/proofs/proof_lower.h"

enum { MOST_FLOORS = 6 };

static const LoweredValue nothing = {0};

static LoweredValue value_of(Poly p, const DigitForm *f) {
  return poly_fits(p) ? (LoweredValue){p, f} : nothing;
}

// ---- Forms -------------------------------------------------------------------------------------

static Poly lower_form(ProofLowering *w, const DigitForm *f);

static Poly base_poly(ProofLowering *w, int base) {
  const FormBase *b = &w->d->bases[base];
  if (b->kind == BASE_AXIS) return w->axes[b->axis];
  return b->kind == BASE_FORM ? lower_form(w, b->args[0]) : POLY_NONE;
}

static Poly floor_poly(ProofLowering *w, int base, int64_t offset, int64_t cut) {
  Prover *s = w->s;
  Poly u = base_poly(w, base);
  if (poly_fits(u)) u = proof_linear(s, u, 1, poly_const(offset), 1);
  if (!poly_fits(u) || cut == 1) return u;
  int before = s->variables.count;
  Poly q = proof_atom(s, u, poly_const(cut));
  if (poly_fits(q) && s->variables.count > before) {
    int64_t last = w->d->bases[base].extent - 1;
    proof_show(s, q);
    proof_show(s, proof_linear(s, poly_const((last + offset) / cut), 1, q, -1));
  }
  return q;
}

static Poly parity_poly(ProofLowering *w, BitMask mask) {
  Prover *s = w->s;
  Poly sum = poly_const(0);
  for (int i = 0; i < w->d->bit_count; i++) {
    if (!mask_has(mask, i)) continue;
    Digit b = w->d->bits[i];
    bool top = w->d->bases[b.base].extent - 1 + b.offset < 2 * b.cut;
    sum = proof_linear(s, sum, 1, floor_poly(w, b.base, b.offset, b.cut), 1);
    if (!top) sum = proof_linear(s, sum, 1, floor_poly(w, b.base, b.offset, 2 * b.cut), -2);
  }
  return proof_linear(s, sum, 1, proof_atom(s, sum, poly_const(2)), -2);
}

static Poly lower_form(ProofLowering *w, const DigitForm *f) {
  Prover *s = w->s;
  if (!f || !w->d) return POLY_NONE;
  Poly sum = poly_const(f->constant);
  for (int i = 0; i < f->count; i++)
    sum = proof_linear(s, sum, 1,
                       floor_poly(w, f->terms[i].base, f->terms[i].offset, f->terms[i].cut),
                       f->terms[i].coefficient);
  for (int i = 0; i < f->xor_count; i++)
    sum = proof_linear(s, sum, 1, parity_poly(w, f->xors[i].mask), f->xors[i].coefficient);
  return sum;
}

// ---- Quotients ---------------------------------------------------------------------------------

// One of bound - 1 - atom, bound - atom is not negative.
static bool show_below(ProofLowering *w, Poly atom, Poly bound) {
  Prover *s = w->s;
  Poly room = proof_linear(s, bound, 1, atom, -1);
  return proof_show(s, proof_linear(s, room, 1, poly_const(1), -1)) != UNPROVED ||
         proof_show(s, room) != UNPROVED;
}

// Quotients of the extents by m.
static void show_below_extents(ProofLowering *w, Poly m, Poly atom) {
  Prover *s = w->s;
  for (int i = 0; i < s->quotients.count; i++) {
    const ProofQuotient *q = &s->quotients.items[i];
    if (poly_same(q->m, m) && proof_is_of_symbols(s, q->value) && !poly_same(q->value, atom) &&
        show_below(w, atom, q->value))
      return;
  }
}

// A new atom ⌊u/m⌋ of symbolic extents: what is at most `last` has a quotient of at most ⌊last/m⌋.
static void show_last(ProofLowering *w, Poly u, Poly m, Poly atom) {
  Prover *s = w->s;
  Poly q, r;
  bool found = false;
  if (proof_is_of_symbols(s, u)) return;
  proof_show(s, atom);
  for (int i = s->facts.count - 1; i >= 0; i--) {
    const ProofFact *fact = &s->facts.items[i];
    Poly last = fact->dead ? POLY_NONE : proof_linear(s, fact->p, 1, u, 1);
    if (!poly_fits(last) || !proof_is_of_symbols(s, last) || !proof_split(s, last, m, true, &q, &r))
      continue;
    found |= show_below(w, atom, q);
  }
  if (!found) show_below_extents(w, m, atom);
}

static bool shares_variable(Poly a, Poly b) {
  for (int i = 0; i < a.terms->count; i++)
    for (int j = 0; j < b.terms->count; j++)
      if (a.terms->items[i].v[0] == b.terms->items[j].v[0]) return true;
  return false;
}

// ⌊u/m⌋ by a floor of another number by m: the same one, or what counts down, -a or -a - 1.
static Poly other_floor(ProofLowering *w, Poly u, Poly m) {
  Prover *s = w->s;
  for (int i = s->variables.count - 1, left = MOST_FLOORS; i >= 0 && left; i--) {
    const ProofVariable v = s->variables.items[i];
    if (v.dead || !poly_fits(v.u) || !poly_same(v.m, m) || !shares_variable(v.u, u)) continue;
    Poly same = proof_variable(s, i), down = proof_linear(s, same, -1, same, 0);
    Poly below = proof_linear(s, down, 1, poly_const(1), -1);
    if (proof_value(s, u, m, same)) return same;
    if (proof_value(s, u, m, down)) return down;
    if (proof_value(s, u, m, below)) return below;
    left--;
  }
  return POLY_NONE;
}

static Poly floor_atom(ProofLowering *w, Poly u, Poly m) {
  bool known = w->d || poly_fits(proof_quotient(w->s, u, m));
  Poly other = known ? POLY_NONE : other_floor(w, u, m);
  if (poly_fits(other)) return other;
  int before = w->s->variables.count;
  Poly atom = proof_atom(w->s, u, m);
  if (poly_fits(atom) && !w->d && w->s->variables.count > before) show_last(w, u, m, atom);
  return atom;
}

static LoweredValue divide(ProofLowering *w, LoweredValue a, LoweredValue b);

// ⌊u/m⌋ as q + shift, or by a floor of the rest of u.
static Poly divide_terms(ProofLowering *w, Poly u, Poly m, bool truncate) {
  Prover *s = w->s;
  Poly q, r;
  if (!proof_split(s, u, m, truncate, &q, &r)) return POLY_NONE;
  for (int64_t shift = 0; shift >= -1; shift--) {
    Poly shifted = proof_linear(s, q, 1, poly_const(shift), 1);
    if (proof_value(s, u, m, shifted)) return shifted;
  }
  if (!truncate) return POLY_NONE;
  Poly atom =
      poly_same(r, u) ? floor_atom(w, r, m) : divide(w, value_of(r, NULL), value_of(m, NULL)).p;
  if (poly_fits(atom)) proof_show(s, atom);
  q = proof_linear(s, q, 1, atom, 1);
  return proof_value(s, u, m, q) ? q : POLY_NONE;
}

// The quotient of an atom ⌊v/y⌋: ⌊⌊v/y⌋/m⌋ = ⌊v/(y·m)⌋.
static Poly divide_floor(ProofLowering *w, Poly u, Poly m) {
  Prover *s = w->s;
  PolyTerm only = poly_term(u, 0);
  if (poly_count(u) != 1 || only.coefficient != 1 || !only.v[0] || only.v[1]) return POLY_NONE;
  ProofVariable v = s->variables.items[only.v[0] - 1];
  Poly divisor = poly_fits(v.u) ? proof_product(s, v.m, m) : POLY_NONE;
  Poly q = poly_fits(divisor) ? floor_atom(w, v.u, divisor) : POLY_NONE;
  return poly_fits(q) && proof_value(s, u, m, q) ? q : POLY_NONE;
}

static const LoweredBits *known_bits(const ProofLowering *w, Poly p) {
  for (int i = 0; i < w->known.count; i++)
    if (poly_same(w->known.items[i].of, p)) return &w->known.items[i];
  return NULL;
}

// The bits from 2^k on; `of` is POLY_NONE where more than the known ones are asked for.
static LoweredBits high_bits(ProofLowering *w, const LoweredBits *all, int64_t divisor) {
  Prover *s = w->s;
  int k = __builtin_ctzll((uint64_t)divisor);
  LoweredBits high = {.of = poly_const(0), .rest = all->rest};
  for (int i = k; i < all->n; i++) {
    high.of = proof_linear(s, high.of, 1, all->bits[i], (int64_t)1 << high.n);
    high.bits[high.n++] = all->bits[i];
  }
  if (k > all->n && !poly_is_zero(all->rest)) return (LoweredBits){0};
  high.of = proof_linear(s, high.of, 1, all->rest, (int64_t)1 << high.n);
  return high;
}

// The quotient by 2^k of a value whose bits are known beside a multiple of 2^k.
static Poly divide_bits(ProofLowering *w, Poly u, Poly m) {
  Prover *s = w->s;
  int64_t divisor;
  if (!poly_is_const(m, &divisor) || divisor & (divisor - 1)) return POLY_NONE;
  for (int i = w->known.count - 1; i >= 0; i--) {
    const LoweredBits *all = &w->known.items[i];
    Poly multiple = proof_exact(s, proof_linear(s, u, 1, all->of, -1), divisor);
    if (!poly_fits(multiple)) continue;
    LoweredBits high = high_bits(w, all, divisor);
    Poly q = proof_linear(s, multiple, 1, high.of, 1);
    if (!poly_fits(q) || !proof_value(s, u, m, q)) continue;
    array_push(s->arena, &w->known, high);
    return q;
  }
  return POLY_NONE;
}

// ⌊u/m⌋ = ⌊⌊u/y⌋/(m/y)⌋ where the inner quotient is known.
static Poly divide_again(ProofLowering *w, Poly u, Poly m) {
  Prover *s = w->s;
  int64_t x, y;
  for (int i = s->quotients.count - 1; i >= 0 && poly_is_const(m, &x); i--) {
    const ProofQuotient k = s->quotients.items[i];
    bool divides = poly_is_const(k.m, &y) && y > 1 && y < x && x % y == 0;
    if (!divides || !poly_same(k.u, u)) continue;
    Poly q = divide(w, value_of(k.value, NULL), value_of(poly_const(x / y), NULL)).p;
    if (poly_fits(q) && proof_value(s, u, m, q)) return q;
  }
  return POLY_NONE;
}

static LoweredValue divide(ProofLowering *w, LoweredValue a, LoweredValue b) {
  Prover *s = w->s;
  int64_t x, y;
  const DigitForm *f =
      w->d && a.f && b.f ? layout_form_operation(w->d, LAYOUT_DIV, a.f, b.f, NULL) : NULL;
  if (!poly_fits(a.p) || !poly_fits(b.p)) return nothing;
  bool by_const = poly_is_const(b.p, &y);
  if (by_const && y == 1) return a;
  if (by_const && y > 0 && poly_is_const(a.p, &x)) return value_of(poly_const(floor_div(x, y)), f);
  Poly q = proof_quotient(s, a.p, b.p), guess;
  if (poly_fits(q)) return value_of(q, f);
  guess = lower_form(w, f);
  if (proof_value(s, a.p, b.p, guess)) return value_of(guess, f);
  if (poly_fits(guess = divide_bits(w, a.p, b.p))) return value_of(guess, f);
  if (poly_fits(guess = divide_floor(w, a.p, b.p))) return value_of(guess, f);
  if (!w->d && poly_fits(guess = divide_again(w, a.p, b.p))) return value_of(guess, f);
  if (poly_fits(guess = divide_terms(w, a.p, b.p, false))) return value_of(guess, f);
  if (poly_fits(guess = divide_terms(w, a.p, b.p, true))) return value_of(guess, f);
  return value_of(floor_atom(w, a.p, b.p), f);
}

static LoweredValue modulo(ProofLowering *w, LoweredValue a, LoweredValue b) {
  LoweredValue q = divide(w, a, b);
  const DigitForm *f =
      w->d && a.f && b.f ? layout_form_operation(w->d, LAYOUT_MOD, a.f, b.f, NULL) : NULL;
  return value_of(proof_linear(w->s, a.p, 1, proof_product(w->s, b.p, q.p), -1), f);
}

// ---- Bits --------------------------------------------------------------------------------------

enum { MOST_BITS = 40, MOST_BITS_BY_HALVES = 16 };

// The quotient by the form, or where that is not known, by a floor of its own.
static Poly half(ProofLowering *w, Poly p, const DigitForm *whole, int64_t divisor) {
  Prover *s = w->s;
  Poly two = poly_const(2), known = proof_quotient(s, p, two);
  int64_t k;
  if (poly_is_const(p, &k)) return poly_const(k >> 1);
  if (poly_fits(known)) return known;
  if (!w->d) {
    Poly none = poly_const(0);
    return proof_value(s, p, two, none) ? none
                                        : divide(w, value_of(p, NULL), value_of(two, NULL)).p;
  }
  Poly guess = whole ? lower_form(w, layout_form_divide(w->d, whole, divisor)) : POLY_NONE;
  if (poly_fits(guess) && proof_value(s, p, two, guess)) return guess;
  return divide(w, value_of(p, NULL), value_of(two, NULL)).p;
}

static bool is_short(ProofLowering *w, Poly p) {
  Prover *s = w->s;
  Poly most = poly_const(((int64_t)1 << MOST_BITS_BY_HALVES) - 1);
  return proof_show(s, p) != UNPROVED && proof_show(s, proof_linear(s, most, 1, p, -1)) != UNPROVED;
}

// Up to `most` bits, by halves: those that are known, else those that its form says.
static bool bits_of(ProofLowering *w, LoweredValue a, int most, LoweredBits *out) {
  Poly halves[64];
  *out = (LoweredBits){.of = a.p, .rest = a.p};
  while (out->n < most && !poly_is_zero(out->rest)) {
    Poly next = half(w, out->rest, a.f, (int64_t)2 << out->n);
    if (!poly_fits(next)) return false;
    halves[out->n] = out->rest;
    out->bits[out->n] = proof_linear(w->s, out->rest, 1, next, -2);
    if (!w->d) array_push(w->s->arena, &w->bits, out->bits[out->n]);
    out->rest = next;
    out->n++;
  }
  for (int i = out->n - 1; i >= 0 && !w->d && poly_is_zero(out->rest); i--) // n bits are below 2^n
    proof_show(w->s,
               proof_linear(w->s, poly_const(((int64_t)1 << (out->n - i)) - 1), 1, halves[i], -1));
  return true;
}

// All bits of a value, which has few.
static bool all_bits_of(ProofLowering *w, LoweredValue a, LoweredBits *out) {
  int64_t k;
  const LoweredBits *known = known_bits(w, a.p);
  bool few = poly_is_const(a.p, &k) ? k >= 0 : w->d || known || is_short(w, a.p);
  return few && bits_of(w, a, MOST_BITS, out) && poly_is_zero(out->rest);
}

// All bits of both, or of one, and as many of the other.
static bool bits_of_both(ProofLowering *w, LoweredValue a, LoweredValue b, LoweredBits *x,
                         LoweredBits *y) {
  bool all_x = all_bits_of(w, a, x), all_y = all_bits_of(w, b, y);
  if (all_x && all_y) return true;
  return all_x ? bits_of(w, b, x->n, y) : all_y && bits_of(w, a, y->n, x);
}

// The value of bit k by the form.
static Poly bit_of(ProofLowering *w, const DigitForm *f, int k) {
  const DigitForm *low = k ? layout_form_divide(w->d, f, (int64_t)1 << k) : f;
  const DigitForm *high = layout_form_divide(w->d, f, (int64_t)2 << k);
  return proof_linear(w->s, lower_form(w, low), 1, lower_form(w, high), -2);
}

// ⌊sum/2⌋ of two bits: what is left may be another one, as in a ^ b ^ b.
static Poly both_by_bits(ProofLowering *w, Poly sum) {
  Prover *s = w->s;
  Poly two = poly_const(2);
  for (int i = w->bits.count - 1; i >= 0; i--) {
    Poly rest = proof_linear(s, sum, 1, w->bits.items[i], -1);
    Poly guess = proof_exact(s, rest, 2);
    if (poly_fits(guess) && proof_value(s, sum, two, guess)) return guess;
  }
  return divide(w, value_of(sum, NULL), value_of(two, NULL)).p;
}

// ⌊(x + y)/2⌋ of two bits, where `bit` may be the result's.
static Poly both_bits(ProofLowering *w, LayoutOp op, Poly x, Poly y, Poly bit) {
  Prover *s = w->s;
  int64_t k;
  if (poly_is_const(x, &k)) return k ? y : x;
  if (poly_is_const(y, &k)) return k ? x : y;
  Poly sum = proof_linear(s, x, 1, y, 1), two = poly_const(2);
  Poly known = proof_quotient(s, sum, two);
  if (poly_fits(known)) return known;
  if (poly_same(x, y) && proof_value(s, sum, two, x)) return x;
  if (!w->d) return both_by_bits(w, sum);
  Poly guess = op == LAYOUT_AND ? bit : proof_linear(s, sum, 1, bit, -1);
  if (op == LAYOUT_XOR) guess = proof_exact(s, guess, 2);
  if (proof_value(s, sum, two, guess)) return guess;
  return proof_atom(s, sum, two);
}

// The bit of x op y by what both have in common.
static Poly result_bit(ProofLowering *w, LayoutOp op, Poly x, Poly y, Poly common) {
  if (op == LAYOUT_AND) return common;
  Poly sum = proof_linear(w->s, x, 1, y, 1);
  return proof_linear(w->s, sum, 1, common, op == LAYOUT_XOR ? -2 : -1);
}

static LoweredValue bitwise(ProofLowering *w, LayoutOp op, LoweredValue a, LoweredValue b) {
  Prover *s = w->s;
  LoweredBits x, y, result = {.of = poly_const(0), .rest = poly_const(0)};
  if (!poly_fits(a.p) || !poly_fits(b.p)) return nothing;
  const DigitForm *f = w->d && a.f && b.f ? layout_form_operation(w->d, op, a.f, b.f, NULL) : NULL;
  Poly none = poly_const(0);
  if (poly_same(a.p, b.p)) return value_of(op == LAYOUT_XOR ? none : a.p, f);
  if (!bits_of_both(w, a, b, &x, &y)) return nothing;
  for (int i = 0; i < x.n || i < y.n; i++) {
    Poly left = i < x.n ? x.bits[i] : none, right = i < y.n ? y.bits[i] : none;
    bool both = i < x.n && i < y.n;
    Poly common = both ? both_bits(w, op, left, right, f ? bit_of(w, f, i) : POLY_NONE) : none;
    result.bits[result.n++] = result_bit(w, op, left, right, common);
    result.of = proof_linear(s, result.of, 1, result.bits[i], (int64_t)1 << i);
  }
  if (op != LAYOUT_AND) result.rest = poly_is_zero(x.rest) ? y.rest : x.rest;
  result.of = proof_linear(s, result.of, 1, result.rest, (int64_t)1 << result.n);
  if (!w->d && poly_fits(result.of)) array_push(s->arena, &w->known, result);
  return value_of(result.of, f);
}

// ---- Comparisons -------------------------------------------------------------------------------

// Whether a <= b: 1, 0, or -1 where it is wanted first.
static int is_less(ProofLowering *w, LoweredValue a, LoweredValue b) {
  Prover *s = w->s;
  Poly room = proof_linear(s, b.p, 1, a.p, -1);
  if (!poly_fits(room)) return -1;
  if (proof_need(s, room)) return 1;
  Poly excess = proof_linear(s, poly_const(-1), 1, room, -1);
  if (poly_fits(excess) && proof_need(s, excess)) return 0;
  if (!poly_fits(s->wanted)) s->wanted = room;
  return -1;
}

static LoweredValue truth_value(ProofLowering *w, int truth) {
  Poly p = truth < 0 ? POLY_NONE : poly_const(truth);
  return value_of(p, poly_fits(p) && w->d ? layout_form_const(w->d, truth) : NULL);
}

static LoweredValue compare(ProofLowering *w, LayoutOp op, LoweredValue a, LoweredValue b) {
  int truth = op == LAYOUT_LT ? is_less(w, b, a) : is_less(w, a, b);
  if (truth == 1 && (op == LAYOUT_EQ || op == LAYOUT_NE)) truth = is_less(w, b, a);
  if (truth >= 0 && (op == LAYOUT_LT || op == LAYOUT_NE)) truth = !truth;
  return truth_value(w, truth);
}

// Operations that the first argument may decide; the others are lowered only where they count.
static LoweredValue choose(ProofLowering *w, const LayoutExpr *e) {
  LoweredValue a = proof_lower_expr(w, e->args[0]);
  int64_t truth;
  if (!poly_fits(a.p) || !poly_is_const(a.p, &truth)) return nothing;
  if (e->op == LAYOUT_SELECT) return proof_lower_expr(w, e->args[truth ? 1 : 2]);
  if (e->op == LAYOUT_NOT || !truth == (e->op == LAYOUT_BOTH))
    return truth_value(w, truth ? e->op != LAYOUT_NOT : e->op == LAYOUT_NOT);
  LoweredValue b = proof_lower_expr(w, e->args[1]);
  if (!poly_fits(b.p) || !poly_is_const(b.p, &truth)) return nothing;
  return truth_value(w, truth != 0);
}

static LoweredValue least_or_most(ProofLowering *w, LayoutOp op, LoweredValue a, LoweredValue b) {
  int less = is_less(w, a, b);
  return less < 0 ? nothing : less == (op == LAYOUT_MIN) ? a : b;
}

// ---- Expressions -------------------------------------------------------------------------------

static LoweredValue linear(ProofLowering *w, LayoutOp op, LoweredValue a, LoweredValue b) {
  const DigitForm *f = w->d && a.f && b.f ? layout_form_operation(w->d, op, a.f, b.f, NULL) : NULL;
  if (op == LAYOUT_MUL) return value_of(proof_product(w->s, a.p, b.p), f);
  return value_of(proof_linear(w->s, a.p, 1, b.p, op == LAYOUT_ADD ? 1 : -1), f);
}

static LoweredValue power_of_two(ProofLowering *w, LoweredValue shift) {
  int64_t k;
  if (!poly_is_const(shift.p, &k) || k < 0 || k > 61) return nothing;
  return value_of(poly_const((int64_t)1 << k),
                  w->d ? layout_form_const(w->d, (int64_t)1 << k) : NULL);
}

static LoweredValue leaf(ProofLowering *w, const LayoutExpr *e) {
  if (e->op == LAYOUT_CONST)
    return value_of(poly_const(e->value), w->d ? layout_form_const(w->d, e->value) : NULL);
  if (e->op == LAYOUT_AXIS) return w->now[e->value];
  for (int i = 0; i < w->symbol_count; i++)
    if (w->symbols[i].symbol == e->symbol) return value_of(w->symbols[i].p, NULL);
  return nothing;
}

static LoweredValue shifted(ProofLowering *w, LayoutOp op, LoweredValue a, LoweredValue b) {
  LoweredValue power = power_of_two(w, b);
  return op == LAYOUT_SHL ? linear(w, LAYOUT_MUL, a, power) : divide(w, a, power);
}

static LoweredValue operation(ProofLowering *w, LayoutOp op, LoweredValue a, LoweredValue b) {
  switch (layout_op_class(op)) {
  case LAYOUT_OP_LINEAR:
  case LAYOUT_OP_PRODUCT: return linear(w, op, a, b);
  case LAYOUT_OP_QUOTIENT: return op == LAYOUT_DIV ? divide(w, a, b) : modulo(w, a, b);
  case LAYOUT_OP_SHIFT: return shifted(w, op, a, b);
  case LAYOUT_OP_BITS: return bitwise(w, op, a, b);
  case LAYOUT_OP_COMPARISON: return compare(w, op, a, b);
  case LAYOUT_OP_EXTREME: return least_or_most(w, op, a, b);
  case LAYOUT_OP_LEAF:
  case LAYOUT_OP_LOGIC:
  case LAYOUT_OP_CHOICE: break;
  }
  return nothing;
}

LoweredValue proof_lower_expr(ProofLowering *w, const LayoutExpr *e) {
  LoweredValue v[3] = {nothing, nothing, nothing};
  LayoutOpClass class = layout_op_class(e->op);
  if (class == LAYOUT_OP_LEAF) return leaf(w, e);
  if (class == LAYOUT_OP_LOGIC || class == LAYOUT_OP_CHOICE) return choose(w, e);
  for (int i = 0; i < 3 && e->args[i]; i++)
    if (!poly_fits((v[i] = proof_lower_expr(w, e->args[i])).p)) return nothing;
  return operation(w, e->op, v[0], v[1]);
}
