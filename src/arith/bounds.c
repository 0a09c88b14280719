// SPDX-License-Identifier: Apache-2.0
// Finds constant bounds and residues of forms and atoms, for proofs and for simplification. The
// bounds of a mixed-radix number follow its digits: they are exact for sums over independent
// variables, and outer bounds otherwise.
#include "arith/internal.h"

#include <stdlib.h>

// ---- Arithmetic with infinite ends; a result that overflows is infinite

static int64_t add_end(int64_t a, int64_t b, int64_t infinity) {
  int64_t sum;
  if (a == infinity || b == infinity || !add_fits(a, b, &sum)) return infinity;
  return sum;
}

static Interval bounds_add(Interval a, Interval b) {
  return (Interval){add_end(a.low, b.low, NO_LOW), add_end(a.high, b.high, NO_HIGH)};
}

static bool infinite(int64_t x) {
  return x == NO_LOW || x == NO_HIGH;
}

static int64_t mul_end(int64_t a, int64_t b) {
  int64_t product;
  if (a == 0 || b == 0) return 0;
  bool negative = (a < 0) != (b < 0);
  if (infinite(a) || infinite(b) || !mul_fits(a, b, &product)) return negative ? NO_LOW : NO_HIGH;
  return product;
}

static Interval bounds_mul(Interval a, Interval b) {
  int64_t ends[] = {mul_end(a.low, b.low), mul_end(a.low, b.high), mul_end(a.high, b.low),
                    mul_end(a.high, b.high)};
  Interval r = {ends[0], ends[0]};
  for (int i = 1; i < 4; i++) {
    r.low = MIN_OF(r.low, ends[i]);
    r.high = MAX_OF(r.high, ends[i]);
  }
  return r;
}

static Interval bounds_scale(Interval a, int64_t factor) {
  return bounds_mul(a, (Interval){factor, factor});
}

static Interval bounds_divide(Interval a, int64_t cut) {
  return (Interval){a.low == NO_LOW ? NO_LOW : floor_div(a.low, cut),
                    a.high == NO_HIGH ? NO_HIGH : floor_div(a.high, cut)};
}

static const Interval unbounded = {NO_LOW, NO_HIGH};

// A 64-bit number without a sign may be negative after a cast.
static Interval type_bounds(DType t) {
  if (t.code == TYPE_BOOL) return (Interval){0, 1};
  if (t.code == TYPE_UINT && t.bits <= 32) return (Interval){0, ((int64_t)1 << t.bits) - 1};
  if (t.code == TYPE_INT && t.bits < 32)
    return (Interval){-((int64_t)1 << (t.bits - 1)), ((int64_t)1 << (t.bits - 1)) - 1};
  return unbounded;
}

enum { MOST_SHIFTED = 4 }; // groups that are looked at together

// ---- A mixed-radix number of one base

static Interval expr_bounds(Analyzer *analyzer, Expr *e) {
  return form_bounds(analyzer, form_of(analyzer, e));
}

// Σ weights[i] * d_i where d_i are the digits of x at cuts[i]; the last digit has no modulo.
typedef struct Radix {
  int count;
  int64_t cuts[MOST_CUTS], weights[MOST_CUTS];
} Radix;

static int64_t digit_count(const Radix *radix, int i) {
  return radix->cuts[i + 1] / radix->cuts[i];
}

// Turns floors into digits; false when a cut does not divide the next.
static bool radix_of(const Group *group, Radix *radix) {
  radix->count = group->count;
  for (int i = 0; i < group->count; i++) {
    radix->cuts[i] = group->cuts[i];
    radix->weights[i] = group->coefs[i];
    if (i == 0) continue;
    int64_t carried;
    if (group->cuts[i] % group->cuts[i - 1] ||
        !mul_fits(radix->weights[i - 1], digit_count(radix, i - 1), &carried) ||
        !add_fits(radix->weights[i], carried, &radix->weights[i]) || radix->weights[i] == INT64_MIN)
      return false;
  }
  return group->coefs[0] != INT64_MIN;
}

// The largest value of the digits 0 to i when each is free.
static int64_t free_max(const Radix *radix, int i) {
  int64_t sum = 0;
  for (; i >= 0; i--)
    if (radix->weights[i] > 0)
      sum = add_end(sum, mul_end(radix->weights[i], digit_count(radix, i) - 1), NO_HIGH);
  return sum;
}

// The largest value of the digits 0 to i for low <= x <= high.
static int64_t radix_max(const Radix *radix, int i, int64_t low, int64_t high) {
  if (i < 0) return 0;
  int64_t c = radix->cuts[i], weight = radix->weights[i];
  int64_t a = floor_div(low, c), b = floor_div(high, c);
  int64_t at_a = mul_end(weight, a), at_b = mul_end(weight, b);
  if (i == 0) return MAX_OF(at_a, at_b);
  if (a == b) return add_end(at_a, radix_max(radix, i - 1, low - a * c, high - a * c), NO_HIGH);
  int64_t first = add_end(at_a, radix_max(radix, i - 1, low - a * c, c - 1), NO_HIGH);
  int64_t last = add_end(at_b, radix_max(radix, i - 1, 0, high - b * c), NO_HIGH);
  int64_t best = MAX_OF(first, last);
  if (b - a < 2) return best;
  int64_t between = mul_end(weight, weight > 0 ? b - 1 : a + 1);
  return MAX_OF(best, add_end(between, free_max(radix, i - 1), NO_HIGH));
}

enum { SOME_CELLS = 2 };

// As radix_max where an end of x may be infinite. The largest value is then met within SOME_CELLS
// multiples of the top cut from the finite end.
static int64_t open_max(const Radix *radix, Interval x) {
  int top = radix->count - 1;
  int64_t c = radix->cuts[top], weight = radix->weights[top];
  const int64_t far = (int64_t)1 << 61;
  if ((x.high == NO_HIGH && weight > 0) || (x.low == NO_LOW && weight < 0)) return NO_HIGH;
  if (c > far || (x.low != NO_LOW && llabs(x.low) > far) ||
      (x.high != NO_HIGH && llabs(x.high) > far))
    return NO_HIGH;
  if (x.low == NO_LOW && x.high == NO_HIGH) x = (Interval){0, c - 1};
  if (x.high == NO_HIGH) x.high = (floor_div(x.low, c) + SOME_CELLS) * c - 1;
  if (x.low == NO_LOW) x.low = (floor_div(x.high, c) - SOME_CELLS + 1) * c;
  return x.low > x.high ? NO_HIGH : radix_max(radix, top, x.low, x.high);
}

static Interval radix_bounds(Radix *radix, Interval x) {
  int64_t high = open_max(radix, x);
  for (int i = 0; i < radix->count; i++) radix->weights[i] = -radix->weights[i];
  int64_t low = open_max(radix, x);
  return (Interval){low == NO_HIGH ? NO_LOW : -low, high};
}

// Groups whose bases differ by constants: bases[i] is bases[0] + distances[i].
typedef struct Shifted {
  int count;
  const Group *groups[MOST_SHIFTED];
  int64_t distances[MOST_SHIFTED];
} Shifted;

static Interval shifted_value(const Shifted *shifted, int64_t x) {
  Interval sum = {0, 0};
  for (int g = 0; g < shifted->count; g++) {
    const Group *group = shifted->groups[g];
    for (int i = 0; i < group->count; i++) {
      int64_t floor = floor_div(x + shifted->distances[g], group->cuts[i]);
      sum = bounds_add(sum, bounds_scale((Interval){floor, floor}, group->coefs[i]));
    }
  }
  return sum;
}

// Tries all values of the first base when they are few.
static bool points_bounds(const Shifted *shifted, Interval x, Interval *out) {
  enum { FEW = 256 };
  int64_t size;
  if (infinite(x.low) || infinite(x.high) || x.low > x.high || !sub_fits(x.high, x.low, &size) ||
      size > FEW)
    return false;
  for (int g = 0; g < shifted->count; g++)
    if (!add_fits(x.low, shifted->distances[g], &size) ||
        !add_fits(x.high, shifted->distances[g], &size))
      return false;
  *out = (Interval){NO_HIGH, NO_LOW};
  for (int64_t v = x.low; v <= x.high; v++) *out = interval_hull(*out, shifted_value(shifted, v));
  return true;
}

// Removes the digits that a known residue of the base makes constant; returns their sum.
static int64_t known_places(Analyzer *analyzer, Expr *base, Radix *radix) {
  int64_t divisor, rest, sum = 0;
  form_modular(analyzer, form_of(analyzer, base), &divisor, &rest);
  if (divisor <= 1) return 0;
  for (int i = 0; i + 1 < radix->count; i++) {
    if (divisor % radix->cuts[i + 1]) break;
    int64_t digit = floor_mod(floor_div(rest, radix->cuts[i]), digit_count(radix, i)), part;
    if (!mul_fits(radix->weights[i], digit, &part) || !add_fits(sum, part, &part)) break;
    sum = part;
    radix->weights[i] = 0;
  }
  return sum;
}

Interval form_assumed_bounds(Analyzer *analyzer, const Form *f) {
  Interval bounds = unbounded;
  int64_t k;
  for (int i = 0; analyzer->sign_count && i < analyzer->facts.count; i++) {
    const Fact *fact = analyzer->facts.items[i];
    if (fact->kind != FACT_SIGN || fact->form->count != f->count) continue;
    if (form_is_const(form_sub(analyzer, fact->form, f), &k)) bounds.low = MAX_OF(bounds.low, -k);
    if (form_is_const(form_add(analyzer, fact->form, f), &k)) bounds.high = MIN_OF(bounds.high, k);
  }
  return bounds;
}

static Interval base_bounds(Analyzer *analyzer, const Group *group) {
  if (group->count == 1 && group->cuts[0] == 1) return atom_bounds(analyzer, group->base);
  Interval bounds = expr_bounds(analyzer, group->base);
  const Form *f = analyzer->sign_count ? form_of(analyzer, group->base) : NULL;
  if (!f || f->count < 2) return bounds;
  Interval both = interval_meet(bounds, form_assumed_bounds(analyzer, f));
  return both.low <= both.high ? both : bounds;
}

Interval form_group_bounds(Analyzer *analyzer, const Group *group) {
  Interval x = base_bounds(analyzer, group);
  Radix radix;
  Interval result;
  if (group->count == 1)
    result = bounds_scale(bounds_divide(x, group->cuts[0]), group->coefs[0]);
  else if (radix_of(group, &radix)) {
    int64_t known = known_places(analyzer, group->base, &radix);
    result = bounds_add(radix_bounds(&radix, x), (Interval){known, known});
  } else if (!points_bounds(&(Shifted){1, {group}, {0}}, x, &result)) { // uneven cuts
    result = (Interval){0, 0};
    for (int i = 0; i < group->count; i++)
      result = bounds_add(result, bounds_scale(bounds_divide(x, group->cuts[i]), group->coefs[i]));
  }
  return group->cofactor ? bounds_mul(result, atom_bounds(analyzer, group->cofactor)) : result;
}

static bool has_digits(const Form *f) {
  for (int i = 0; i < f->count; i++) {
    uint16_t op = f->terms[i].atom->op;
    if (op == EXPR_FLOOR_DIV || op == EXPR_MUL) return true;
  }
  return false;
}

// The constant by which the base of b is above that of a; false where there is none.
static bool base_distance(Analyzer *analyzer, const Group *a, const Group *b, int64_t *distance) {
  if (a->cofactor || b->cofactor) return false;
  const Form *f = form_of(analyzer, a->base), *g = form_of(analyzer, b->base);
  if (!f || !g || f->count != g->count || !sub_fits(g->constant, f->constant, distance))
    return false;
  for (int i = 0; i < f->count; i++)
    if (f->terms[i].atom != g->terms[i].atom || f->terms[i].coef != g->terms[i].coef) return false;
  return true;
}

// The group and those behind it whose bases differ from its own by constants, at most MOST_SHIFTED.
// False where an earlier group has it among its own.
static bool find_shifted(Analyzer *analyzer, const Groups *groups, int first, Shifted *out) {
  int64_t distance;
  int earlier = 0;
  for (int i = 0; i < first; i++)
    earlier += base_distance(analyzer, &groups->items[i], &groups->items[first], &distance);
  if (earlier % MOST_SHIFTED) return false;
  for (int i = first; i < groups->count && out->count < MOST_SHIFTED; i++)
    if (i == first ||
        base_distance(analyzer, &groups->items[first], &groups->items[i], &distance)) {
      out->groups[out->count] = &groups->items[i];
      out->distances[out->count++] = i == first ? 0 : distance;
    }
  return true;
}

Interval form_bounds(Analyzer *analyzer, const Form *f) {
  if (!f) return unbounded;
  Interval sum = {f->constant, f->constant};
  if (!has_digits(f)) {
    for (int i = 0; i < f->count; i++)
      sum =
          bounds_add(sum, bounds_scale(atom_bounds(analyzer, f->terms[i].atom), f->terms[i].coef));
    return sum;
  }
  PassingMark mark = passing_mark(analyzer);
  const Groups *groups = form_groups(analyzer, f);
  sum = (Interval){groups->constant, groups->constant};
  for (int i = 0; i < groups->count; i++) {
    Shifted shifted = {0};
    Interval together = unbounded, alone = {0, 0};
    if (!find_shifted(analyzer, groups, i, &shifted)) continue;
    for (int g = 0; g < shifted.count; g++)
      alone = bounds_add(alone, form_group_bounds(analyzer, shifted.groups[g]));
    if (shifted.count > 1)
      points_bounds(&shifted, base_bounds(analyzer, shifted.groups[0]), &together);
    sum = bounds_add(sum, interval_meet(alone, together));
  }
  passing_reset(analyzer, mark);
  return sum;
}

// ---- Atoms

static Interval operand_bounds(Analyzer *analyzer, Expr *e, int i) {
  return expr_bounds(analyzer, e->args[i]);
}

static Interval product_bounds(Analyzer *analyzer, Expr *e) {
  Interval a = operand_bounds(analyzer, e, 0), b = operand_bounds(analyzer, e, 1);
  Interval product = bounds_mul(a, b);
  if (e->args[0] == e->args[1]) product.low = MAX_OF(product.low, 0);
  return product;
}

static Interval min_bounds(Analyzer *analyzer, Expr *e) {
  return interval_min(operand_bounds(analyzer, e, 0), operand_bounds(analyzer, e, 1));
}

static Interval max_bounds(Analyzer *analyzer, Expr *e) {
  return interval_max(operand_bounds(analyzer, e, 0), operand_bounds(analyzer, e, 1));
}

static Interval choice_bounds(Analyzer *analyzer, Expr *e) {
  return interval_hull(operand_bounds(analyzer, e, 1), operand_bounds(analyzer, e, 2));
}

// The bounds of a quotient by a divisor that is not constant.
static Interval quotient_bounds(Analyzer *analyzer, Expr *e) {
  Interval a = operand_bounds(analyzer, e, 0), b = operand_bounds(analyzer, e, 1);
  if (b.low < 1) return unbounded;
  Interval by_least = bounds_divide(a, b.low);
  Interval by_most = b.high == NO_HIGH ? (Interval){a.low < 0 ? -1 : 0, a.high < 0 ? -1 : 0}
                                       : bounds_divide(a, b.high);
  return interval_hull(by_least, by_most);
}

static Interval rest_bounds(Analyzer *analyzer, Expr *e) {
  Interval a = operand_bounds(analyzer, e, 0), b = operand_bounds(analyzer, e, 1);
  if (b.low < 1) return unbounded;
  int64_t high = b.high == NO_HIGH ? NO_HIGH : b.high - 1;
  return (Interval){0, a.low >= 0 ? MIN_OF(high, a.high) : high};
}

// For truncated division too, where it equals floored division: for operands that are not negative.
static Interval truncated_bounds(Analyzer *analyzer, Expr *e) {
  return operand_bounds(analyzer, e, 0).low >= 0 ? quotient_bounds(analyzer, e) : unbounded;
}

// A rest of truncated division has the sign of what is divided.
static Interval truncated_rest_bounds(Analyzer *analyzer, Expr *e) {
  Interval a = operand_bounds(analyzer, e, 0);
  int64_t c;
  if (!expr_as_int(e->args[1], &c) || c < 1)
    return a.low >= 0 ? rest_bounds(analyzer, e) : unbounded;
  return (Interval){MIN_OF(MAX_OF(a.low, 1 - c), 0), MAX_OF(MIN_OF(a.high, c - 1), 0)};
}

static int64_t ceil_log2(int64_t n) {
  int64_t bits = 0;
  while (bits < 62 && ((int64_t)1 << bits) < n) bits++;
  return bits;
}

// int(ceil(log2(float64(n)))) for n in [1, 2**31], of which float64 has all logarithms apart.
static Interval bits_needed(Analyzer *analyzer, const Expr *e) {
  if (e->op != EXPR_CEIL || e->args[0]->op != EXPR_LOG2 || e->type.bits != 64) return unbounded;
  const Expr *x = e->args[0]->args[0];
  int64_t most = (int64_t)1 << 31;
  Interval n = unbounded;
  bool is_number = x->op == EXPR_FLOAT && x->as.f >= 1 && x->as.f <= (double)most;
  if (is_number && x->as.f == (double)(int64_t)x->as.f) n.low = n.high = (int64_t)x->as.f;
  if (x->op == EXPR_CAST && dtype_is_index(x->args[0]->type)) n = expr_bounds(analyzer, x->args[0]);
  if (n.low < 1 || n.high > most) return unbounded;
  return (Interval){ceil_log2(n.low), ceil_log2(n.high)};
}

static Interval cast_bounds(Analyzer *analyzer, Expr *e) {
  DType from = e->args[0]->type;
  if (dtype_is_float(from) && from.lanes == 1) return bits_needed(analyzer, e->args[0]);
  if (!dtype_is_index(e->type) || dtype_is_float(from) || from.lanes != 1) return unbounded;
  Interval inner = dtype_is_index(from) ? operand_bounds(analyzer, e, 0) : type_bounds(from);
  Interval fits = e->type.bits == 32 ? (Interval){INT32_MIN, INT32_MAX} : unbounded;
  bool kept = inner.low >= fits.low && inner.high <= fits.high;
  return kept && from.code != TYPE_HANDLE ? inner : unbounded;
}

static Interval mask_bounds(Analyzer *analyzer, Expr *e) {
  Interval a = operand_bounds(analyzer, e, 0), b = operand_bounds(analyzer, e, 1);
  if (a.low < 0 && b.low < 0) return unbounded;
  return (Interval){0, MIN_OF(a.low >= 0 ? a.high : NO_HIGH, b.low >= 0 ? b.high : NO_HIGH)};
}

static Interval bits_bounds(Analyzer *analyzer, Expr *e) { // or, xor
  Interval a = operand_bounds(analyzer, e, 0), b = operand_bounds(analyzer, e, 1);
  if (a.low < 0 || b.low < 0) return unbounded;
  return (Interval){0, mask_over(MAX_OF(a.high, b.high))};
}

// Bits that leave the type at its end are lost, so bounds beyond those of the type say nothing.
static Interval shift_left_bounds(Analyzer *analyzer, Expr *e) {
  Interval a = operand_bounds(analyzer, e, 0), b = operand_bounds(analyzer, e, 1);
  int64_t most = ((int64_t)1 << (e->type.bits - 2)) - 1 + ((int64_t)1 << (e->type.bits - 2));
  if (a.low < 0 || b.low < 0 || b.high > e->type.bits - 2) return unbounded;
  int64_t high = mul_end(a.high, (int64_t)1 << b.high);
  return high > most ? unbounded : (Interval){a.low << b.low, high};
}

static Interval shift_right_bounds(Analyzer *analyzer, Expr *e) {
  Interval a = operand_bounds(analyzer, e, 0);
  return (Interval){MIN_OF(a.low, 0), MAX_OF(a.high, -1)};
}

static Interval abs_bounds(Analyzer *analyzer, Expr *e) {
  Interval a = operand_bounds(analyzer, e, 0);
  int64_t most =
      MAX_OF(a.low == NO_LOW ? NO_HIGH : llabs(a.low), a.high == NO_HIGH ? NO_HIGH : llabs(a.high));
  return (Interval){a.low > 0 ? a.low : 0, most};
}

// The vectors of a target hold at least what a target of the smallest ones does.
static Interval intrinsic_bounds(Analyzer *analyzer, Expr *e) {
  (void)analyzer;
  return strcmp(e->as.s, "vscale") ? unbounded : (Interval){1, NO_HIGH};
}

static Interval let_bounds(Analyzer *analyzer, Expr *e) {
  int mark = analyzer_mark(analyzer);
  analyzer_bind_value(analyzer, e->args[0], e->args[1]);
  Interval bounds = operand_bounds(analyzer, e, 2);
  analyzer_reset(analyzer, mark);
  return bounds;
}

static Interval (*const bounds_table[EXPR_OP_COUNT])(Analyzer *, Expr *) = {
    [EXPR_MUL] = product_bounds,
    [EXPR_MIN] = min_bounds,
    [EXPR_MAX] = max_bounds,
    [EXPR_SELECT] = choice_bounds,
    [EXPR_IF_THEN_ELSE] = choice_bounds,
    [EXPR_FLOOR_DIV] = quotient_bounds,
    [EXPR_FLOOR_MOD] = rest_bounds,
    [EXPR_TRUNC_DIV] = truncated_bounds,
    [EXPR_TRUNC_MOD] = truncated_rest_bounds,
    [EXPR_CAST] = cast_bounds,
    [EXPR_INTRINSIC_PURE] = intrinsic_bounds,
    [EXPR_BIT_AND] = mask_bounds,
    [EXPR_BIT_OR] = bits_bounds,
    [EXPR_BIT_XOR] = bits_bounds,
    [EXPR_SHIFT_LEFT] = shift_left_bounds,
    [EXPR_SHIFT_RIGHT] = shift_right_bounds,
    [EXPR_ABS] = abs_bounds,
    [EXPR_LET] = let_bounds,
};

static Interval shape_bounds(Analyzer *analyzer, Expr *atom) {
  if (!dtype_is_index(atom->type) || !bounds_table[atom->op]) return unbounded;
  return bounds_table[atom->op](analyzer, atom);
}

Interval atom_bounds(Analyzer *analyzer, Expr *atom) {
  Info *info = analyzer_info(analyzer, atom);
  if (stamp_holds(analyzer, info->bounds_at)) return info->bounds;
  Fact *fact = info->fact;
  if (!fact) info->seen_serial = analyzer->serial;
  info->bounds = unbounded; // the answer for an atom that occurs in its own facts
  info->bounds_at = stamp_now(analyzer);
  Interval bounds = shape_bounds(analyzer, atom);
  if (fact && fact->kind == FACT_RANGE) bounds = interval_meet(bounds, fact->bounds);
  if (fact && fact->kind == FACT_VALUE) bounds = form_bounds(analyzer, fact->form);
  info->bounds = bounds;
  info->bounds_at = stamp_now(analyzer);
  return bounds;
}

bool analyzer_const_bounds(Analyzer *analyzer, Expr *e, int64_t *low, int64_t *high) {
  if (!dtype_is_index(e->type)) return false;
  analyzer_enter(analyzer);
  Interval bounds = form_bounds(analyzer, form_of_simplified(analyzer, e));
  analyzer_leave(analyzer);
  *low = bounds.low;
  *high = bounds.high;
  return bounds.low != NO_LOW && bounds.high != NO_HIGH;
}

// ---- Residues

static void atom_modular(Analyzer *analyzer, Expr *atom, int64_t *divisor, int64_t *rest);

// Combines the residues of two values: finds one that both meet.
static void modular_join(int64_t *divisor, int64_t *rest, int64_t d, int64_t r) {
  int64_t apart;
  if (!sub_fits(*rest, r, &apart) || apart == INT64_MIN) apart = 1;
  *divisor = gcd_of(gcd_of(*divisor, d), apart);
  if (*divisor) *rest = floor_mod(*rest, *divisor);
}

// The residue that both sides have, for min, max and choices.
static void sides_modular(Analyzer *analyzer, Expr *a, Expr *b, int64_t *divisor, int64_t *rest) {
  int64_t d, r;
  form_modular(analyzer, form_of(analyzer, a), divisor, rest);
  form_modular(analyzer, form_of(analyzer, b), &d, &r);
  modular_join(divisor, rest, d, r);
}

static void product_modular(Analyzer *analyzer, Expr *atom, int64_t *divisor, int64_t *rest) {
  int64_t d, r, e, s, m;
  form_modular(analyzer, form_of(analyzer, atom->args[0]), &d, &r);
  form_modular(analyzer, form_of(analyzer, atom->args[1]), &e, &s);
  // (d i + r)(e j + s) = de ij + ds i + re j + rs
  int64_t de, ds, re;
  *divisor = 1, *rest = 0;
  if (!mul_fits(d, e, &de) || !mul_fits(d, s, &ds) || !mul_fits(r, e, &re) || !mul_fits(r, s, &m))
    return;
  if (de == INT64_MIN || ds == INT64_MIN || re == INT64_MIN) return;
  *divisor = gcd_of(gcd_of(de, ds), re);
  *rest = *divisor ? floor_mod(m, *divisor) : m;
}

// Operations on bits are those on residues by a power of two.
static void bits_modular(Analyzer *analyzer, Expr *atom, int64_t *divisor, int64_t *rest) {
  int64_t d, r, e, s;
  form_modular(analyzer, form_of(analyzer, atom->args[0]), &d, &r);
  form_modular(analyzer, form_of(analyzer, atom->args[1]), &e, &s);
  int64_t unit = gcd_of(d, e);
  unit &= -unit;
  *divisor = 1, *rest = 0;
  if (unit <= 0) return;
  *divisor = unit;
  r = floor_mod(r, unit), s = floor_mod(s, unit);
  *rest = atom->op == EXPR_BIT_XOR ? r ^ s : atom->op == EXPR_BIT_OR ? r | s : r & s;
}

static void find_modular(Analyzer *analyzer, Expr *atom, int64_t *divisor, int64_t *rest) {
  Fact *fact = analyzer_info(analyzer, atom)->fact;
  *divisor = 1, *rest = 0;
  if (fact && fact->kind == FACT_VALUE)
    form_modular(analyzer, fact->form, divisor, rest);
  else if (fact && fact->kind == FACT_RANGE && fact->divisor > 1)
    *divisor = fact->divisor, *rest = fact->rest;
  else if (atom->op == EXPR_MUL)
    product_modular(analyzer, atom, divisor, rest);
  else if (atom->op == EXPR_BIT_XOR || atom->op == EXPR_BIT_OR || atom->op == EXPR_BIT_AND)
    bits_modular(analyzer, atom, divisor, rest);
  else if (atom->op == EXPR_MIN || atom->op == EXPR_MAX)
    sides_modular(analyzer, atom->args[0], atom->args[1], divisor, rest);
  else if (atom->op == EXPR_SELECT || atom->op == EXPR_IF_THEN_ELSE)
    sides_modular(analyzer, atom->args[1], atom->args[2], divisor, rest);
}

static void atom_modular(Analyzer *analyzer, Expr *atom, int64_t *divisor, int64_t *rest) {
  Info *info = analyzer_info(analyzer, atom);
  if (!stamp_holds(analyzer, info->modular_at)) {
    if (!info->fact) info->seen_serial = analyzer->serial;
    int64_t d, r;
    find_modular(analyzer, atom, &d, &r);
    info->divisor = d;
    info->rest = r;
    info->modular_at = stamp_now(analyzer);
  }
  *divisor = info->divisor;
  *rest = info->rest;
}

void form_modular(Analyzer *analyzer, const Form *f, int64_t *divisor, int64_t *rest) {
  *divisor = 0;
  *rest = f->constant;
  for (int i = 0; i < f->count && *divisor != 1; i++) {
    int64_t d, r, step, coef = f->terms[i].coef;
    atom_modular(analyzer, f->terms[i].atom, &d, &r);
    bool fits = mul_fits(coef, d, &step) && step != INT64_MIN && mul_fits(coef, r, &r) &&
                add_fits(*rest, r, rest);
    *divisor = fits ? gcd_of(*divisor, step) : 1;
  }
  if (*divisor) *rest = floor_mod(*rest, *divisor);
}

void modular_form(Analyzer *analyzer, Expr *e, int64_t *divisor, int64_t *rest) {
  *divisor = 1, *rest = 0;
  if (!dtype_is_index(e->type)) return;
  analyzer_enter(analyzer);
  form_modular(analyzer, form_of_simplified(analyzer, e), divisor, rest);
  analyzer_leave(analyzer);
}

bool modular_is_multiple(Analyzer *analyzer, Expr *e, int64_t factor) {
  int64_t divisor, rest;
  modular_form(analyzer, e, &divisor, &rest);
  return divisor % factor == 0 && rest % factor == 0;
}
