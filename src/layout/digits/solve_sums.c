// SPDX-License-Identifier: Apache-2.0
// Inverts one sum of weighted digits, Σ w·x = p with 0 <= x < radix, for the propagation of
// solve.c: each x as a form of p. The rules, in this order:
//
// by size     The parts below stay under the gcd g of the weights above: their sum is p mod g.
// by residue  v divides every weight but w, gcd(v, w) = 1, v >= radix: x = p·w⁻¹ mod v.
//             2·x + 3·y = p on 3 x 2  =>  x = 2·p mod 3, y = p mod 2
// by trial    x is the t at which p - w·t is a sum of the others, Σ t·[p - w·t is one].
//             4·i + 5·a + 11·b = p on 4 x 2 x 2  =>  a = [p - 5 is 4·i + 11·b for some i, b]
//
// Where the sum is injective, the last rule always finds x, for at most one t fits. Where the parts
// depend on each other several t may fit, so the solver checks the result, as it does every other.
#include "layout/digits/solve.h"

enum { MAX_TRIALS = 16, FEW_SUMS = 2048 };

typedef struct SumSearch {
  DigitSpace *d;
  const Digit *parts;
  int trials; // that may still be made
} SumSearch;

// The parts that are not known yet, by ascending weight.
typedef struct OpenDigits {
  int at[MAX_DIGITS], count;
} OpenDigits;

static void close_part(OpenDigits *open, int i) {
  open->count--;
  for (; i < open->count; i++) open->at[i] = open->at[i + 1];
}

static int64_t gcd_without(const SumSearch *s, const OpenDigits *open, int except) {
  int64_t gcd = 0;
  for (int i = 0; i < open->count; i++)
    if (i != except) gcd = gcd_of(gcd, s->parts[open->at[i]].weight);
  return gcd;
}

int64_t layout_inverse_modulo(int64_t a, int64_t m) {
  int64_t r = m, next = floor_mod(a, m), x = 0, y = 1;
  while (next) {
    int64_t q = r / next, t = r - q * next;
    r = next;
    next = t;
    t = x - q * y;
    x = y;
    y = t;
  }
  return floor_mod(x, m);
}

static const DigitForm *minus(SumSearch *s, const DigitForm *value, int part, const DigitForm *x) {
  return layout_form_linear(s->d, value, 1, x, -s->parts[part].weight);
}

static bool by_residue(SumSearch *s, OpenDigits *open, const DigitForm **value,
                       const DigitForm **out) {
  int64_t gcd = gcd_without(s, open, -1);
  for (int i = 0; i < open->count; i++) {
    int at = open->at[i];
    int64_t modulus = gcd_without(s, open, i) / gcd;
    if (modulus < s->parts[at].radix) continue;
    int64_t factor = layout_inverse_modulo(s->parts[at].weight / gcd, modulus);
    const DigitForm *scaled =
        layout_form_times(s->d, layout_form_divide(s->d, *value, gcd), factor);
    out[at] = layout_form_modulo(s->d, scaled, modulus);
    *value = minus(s, *value, at, out[at]);
    close_part(open, i);
    return true;
  }
  return false;
}

static bool solve(SumSearch *s, OpenDigits open, const DigitForm *value, const DigitForm **out);

static bool by_size(SumSearch *s, OpenDigits *open, const DigitForm **value,
                    const DigitForm **out) {
  int64_t reach = 0, part;
  OpenDigits low = {.count = 0}, high = *open;
  while (high.count > 1) {
    const Digit *least = &s->parts[high.at[0]];
    if (!mul_fits(least->weight, least->radix - 1, &part) || !add_fits(reach, part, &reach))
      return false;
    low.at[low.count++] = high.at[0];
    close_part(&high, 0);
    int64_t above = gcd_without(s, &high, -1);
    if (reach >= above) continue;
    const DigitForm *rest = layout_form_modulo(s->d, *value, above);
    *value = layout_form_linear(s->d, *value, 1, rest, -1);
    *open = high;
    return solve(s, low, rest, out);
  }
  return false;
}

static const DigitForm *operation(SumSearch *s, LayoutOp op, const DigitForm *a,
                                  const DigitForm *b) {
  return a && b ? layout_form_operation(s->d, op, a, b, NULL) : NULL;
}

// Whether `value` is the sum of these parts, 1 or 0.
static const DigitForm *is_sum(SumSearch *s, const OpenDigits *open, const DigitForm *value,
                               const DigitForm *const *found) {
  const DigitForm *zero = layout_form_const(s->d, 0), *good = layout_form_const(s->d, 1);
  for (int i = 0; i < open->count; i++) {
    const DigitForm *x = found[open->at[i]];
    const DigitForm *last = layout_form_const(s->d, s->parts[open->at[i]].radix - 1);
    good = operation(s, LAYOUT_BOTH, good, operation(s, LAYOUT_LE, zero, x));
    good = operation(s, LAYOUT_BOTH, good, operation(s, LAYOUT_LE, x, last));
    value = minus(s, value, open->at[i], x);
  }
  return operation(s, LAYOUT_BOTH, good, operation(s, LAYOUT_EQ, value, zero));
}

static bool by_trial(SumSearch *s, OpenDigits *open, const DigitForm **value,
                     const DigitForm **out) {
  int least = 0;
  for (int i = 1; i < open->count; i++)
    if (s->parts[open->at[i]].radix < s->parts[open->at[least]].radix) least = i;
  int at = open->at[least];
  const DigitForm *sum = layout_form_const(s->d, 0), *tried[MAX_DIGITS];
  OpenDigits others = *open;
  close_part(&others, least);
  for (int64_t t = 1; t < s->parts[at].radix; t++) {
    int64_t taken;
    if (!s->trials || !mul_fits(s->parts[at].weight, -t, &taken)) return false;
    s->trials--;
    const DigitForm *rest = layout_form_add_const(s->d, *value, taken);
    if (!rest || !solve(s, others, rest, tried)) return false;
    sum = layout_form_linear(s->d, sum, 1, is_sum(s, &others, rest, tried), t);
  }
  out[at] = sum;
  *value = minus(s, *value, at, sum);
  *open = others;
  return true;
}

static bool solve(SumSearch *s, OpenDigits open, const DigitForm *value, const DigitForm **out) {
  while (open.count > 1 && value)
    if (!by_size(s, &open, &value, out) && !by_residue(s, &open, &value, out) &&
        !by_trial(s, &open, &value, out))
      return false;
  if (!value) return false;
  if (!open.count) return true;
  int last = open.at[0];
  return (out[last] = layout_form_divide(s->d, value, s->parts[last].weight)) != NULL;
}

// ---- Sums that are not injective ---------------------------------------------------------------

// Whether two parts alone have two equal sums: v·(w/g) = w·(v/g), both within their radices.
static bool pair_collides(const Digit *a, const Digit *b) {
  int64_t gcd = gcd_of(a->weight, b->weight);
  return b->weight / gcd < a->radix && a->weight / gcd < b->radix;
}

// Marks the sums of all choices of the parts in `reached`; false when a sum comes twice.
static bool mark_sums(const Digit *parts, int count, int64_t sum, uint64_t *reached) {
  if (!count) {
    uint64_t bit = (uint64_t)1 << (sum % 64), *word = &reached[sum / 64];
    bool again = *word & bit;
    *word |= bit;
    return !again;
  }
  for (int64_t x = 0; x < parts->radix; x++)
    if (!mark_sums(parts + 1, count - 1, sum + x * parts->weight, reached)) return false;
  return true;
}

// Whether two choices of the parts are found to have the same sum. All choices are tried where the
// sums are small.
static bool collides(const Digit *parts, int count) {
  uint64_t reached[FEW_SUMS / 64] = {0};
  int64_t reach = 0, choices = 1, most;
  for (int i = 0; i < count; i++) {
    for (int j = 0; j < i; j++)
      if (pair_collides(&parts[i], &parts[j])) return true;
    if (!mul_fits(parts[i].weight, parts[i].radix - 1, &most) || !add_fits(reach, most, &reach) ||
        !mul_fits(choices, parts[i].radix, &choices))
      return false;
  }
  if (choices - 1 > reach) return true;
  return reach < FEW_SUMS && !mark_sums(parts, count, 0, reached);
}

bool layout_solve_sum(DigitSpace *d, const Digit *parts, int count, const DigitForm *value,
                      const DigitForm **out) {
  if (collides(parts, count)) return false;
  SumSearch s = {d, parts, MAX_TRIALS};
  OpenDigits open = {.count = count};
  for (int i = 0; i < count; i++) open.at[i] = i;
  return solve(&s, open, value, out);
}
