// SPDX-License-Identifier: Apache-2.0
// Keeps what the propagation of solve.c knows: values of floors ⌊(base + offset)/cut⌋, whole or
// modulo a radix, as forms of the physical axes. A known value gives those of coarser cuts, two
// residues of one number meet by the Chinese remainder theorem, and a residue with a coarser floor
// gives the number itself.
#include "layout/digits/solve.h"

// A known floor whose cut divides this one, so that it determines ⌊(base + offset)/cut⌋.
static const Known *find_floor(const DigitSolver *s, int base, int64_t offset, int64_t cut) {
  for (int i = 0; i < s->known_count; i++) {
    const Known *k = &s->known[i];
    if (k->base == base && !k->radix && cut % k->cut == 0 && (offset - k->offset) % k->cut == 0)
      return k;
  }
  return NULL;
}

// A known residue that has ⌊(base + offset)/cut⌋ mod radix as one of its digits.
static const Known *find_residue(const DigitSolver *s, int base, int64_t offset, int64_t cut,
                                 int64_t radix) {
  for (int i = 0; i < s->known_count; i++) {
    const Known *k = &s->known[i];
    if (k->base == base && k->radix && cut % k->cut == 0 && (offset - k->offset) % k->cut == 0 &&
        k->radix % (cut / k->cut) == 0 && k->radix / (cut / k->cut) % radix == 0)
      return k;
  }
  return NULL;
}

const DigitForm *solver_floor(DigitSolver *s, int base, int64_t offset, int64_t cut) {
  const Known *k = find_floor(s, base, offset, cut);
  if (!k) return NULL;
  const DigitForm *at = layout_form_add_const(s->physical, k->value, (offset - k->offset) / k->cut);
  return layout_form_divide(s->physical, at, cut / k->cut);
}

const DigitForm *solver_residue(DigitSolver *s, int base, int64_t offset, int64_t cut,
                                int64_t radix) {
  DigitSpace *p = s->physical;
  const Known *k = find_residue(s, base, offset, cut, radix);
  const DigitForm *floor = k ? NULL : solver_floor(s, base, offset, cut);
  if (!k) return floor ? layout_form_modulo(p, floor, radix) : NULL;
  int64_t steps = (offset - k->offset) / k->cut;
  const DigitForm *y = layout_form_add_const(p, k->value, steps);
  if (steps) y = layout_form_modulo(p, y, k->radix);
  return layout_form_modulo(p, layout_form_divide(p, y, cut / k->cut), radix);
}

bool solver_knows_bit(const DigitSolver *s, const Digit *bit) {
  return find_floor(s, bit->base, bit->offset, bit->cut) ||
         find_residue(s, bit->base, bit->offset, bit->cut, 2);
}

// A residue y mod r becomes y where y takes at most r values, from y₀ on: y = y₀ + (y - y₀) mod r.
static void widen_residue(DigitSolver *s, Known *k) {
  DigitSpace *p = s->physical;
  int64_t first = k->offset / k->cut;
  int64_t last = (s->logical->bases[k->base].extent - 1 + k->offset) / k->cut;
  if (!k->radix || last - first >= k->radix) return;
  if (last >= k->radix) {
    k->value = layout_form_modulo(p, layout_form_add_const(p, k->value, -first), k->radix);
    k->value = layout_form_add_const(p, k->value, first);
  }
  k->radix = 0;
}

void solver_learn(DigitSolver *s, Known k) {
  widen_residue(s, &k);
  if (!k.value || s->known_count == MAX_KNOWN) return;
  if (find_floor(s, k.base, k.offset, k.cut)) return;
  if (k.radix && find_residue(s, k.base, k.offset, k.cut, k.radix)) return;
  s->known[s->known_count++] = k;
  s->progress = true;
}

// y = ⌊(B + o)/c⌋ from y mod r and z = ⌊(B + o')/c'⌋ with c | c', c | o - o', c'/c <= r:
// y = y₀ + ((y mod r) - y₀) mod r with y₀ = (c'z - o' + o)/c.
static void merge_with_floor(DigitSolver *s, const Known *residue, const Known *floor) {
  DigitSpace *p = s->physical;
  int64_t c = residue->cut;
  if (floor->base != residue->base || floor->radix || floor->cut % c ||
      (residue->offset - floor->offset) % c || floor->cut / c > residue->radix ||
      find_floor(s, residue->base, residue->offset, c))
    return;
  const DigitForm *start = layout_form_times(p, floor->value, floor->cut / c);
  start = layout_form_add_const(p, start, (residue->offset - floor->offset) / c);
  const DigitForm *rest = layout_form_linear(p, residue->value, 1, start, -1);
  rest = layout_form_modulo(p, rest, residue->radix);
  const DigitForm *y = layout_form_linear(p, start, 1, rest, 1);
  solver_learn(s, (Known){residue->base, residue->offset, c, 0, y});
}

// a = y mod r and b = y mod s give y modulo their least common multiple, by the Chinese remainder
// theorem: a + r·t with t = (b - a)/g · (r/g)⁻¹ mod s/g, g = gcd(r, s).
static void merge_residues(DigitSolver *s, const Known *x, const Known *y) {
  DigitSpace *p = s->physical;
  if (x->base != y->base || x->offset != y->offset || x->cut != y->cut) return;
  int64_t gcd = gcd_of(x->radix, y->radix), step = y->radix / gcd, radix;
  if (gcd == x->radix || step == 1 || !mul_fits(x->radix, step, &radix) ||
      find_residue(s, x->base, x->offset, x->cut, radix))
    return;
  const DigitForm *apart = layout_form_linear(p, y->value, 1, x->value, -1);
  const DigitForm *steps = layout_form_times(p, layout_form_divide(p, apart, gcd),
                                             layout_inverse_modulo(x->radix / gcd, step));
  steps = layout_form_modulo(p, steps, step);
  const DigitForm *value = layout_form_linear(p, x->value, 1, steps, x->radix);
  solver_learn(s, (Known){x->base, x->offset, x->cut, radix, value});
}

void solver_merge(DigitSolver *s) {
  for (int i = 0; i < s->known_count; i++)
    for (int j = 0; j < s->known_count && s->known[i].radix; j++)
      merge_with_floor(s, &s->known[i], &s->known[j]);
  for (int i = 1; i < s->known_count; i++)
    for (int j = 0; j < i && s->known[i].radix; j++)
      if (s->known[j].radix) merge_residues(s, &s->known[i], &s->known[j]);
}

static const DigitForm *known_digit(DigitSolver *s, const Digit *g) {
  if (g->open) return solver_floor(s, g->base, g->offset, g->cut);
  return solver_residue(s, g->base, g->offset, g->cut, g->radix);
}

const DigitForm *solver_value(DigitSolver *s, const DigitForm *f) {
  Digit digits[MAX_DIGITS];
  int count;
  if (f->xor_count) return NULL;
  f = layout_form_regroup(s->logical, f);
  if (!layout_form_digits(s->logical, f, digits, &count)) return NULL;
  const DigitForm *sum = layout_form_const(s->physical, f->constant);
  for (int i = 0; i < count && sum; i++)
    sum = layout_form_linear(s->physical, sum, 1, known_digit(s, &digits[i]), digits[i].weight);
  return sum;
}

void solver_add(DigitSolver *s, const DigitForm *form, const DigitForm *value) {
  if (!form || !value || s->equation_count == MAX_EQUATIONS) return;
  s->equations[s->equation_count++] = (DigitEquation){form, value};
  s->progress = true;
}

static bool has_equation(const DigitSolver *s, const DigitForm *form, const DigitForm *value) {
  for (int i = 0; i < s->equation_count; i++)
    if (s->equations[i].value == value || layout_form_same(s->equations[i].form, form)) return true;
  return false;
}

void solver_relate_bases(DigitSolver *s) {
  for (int i = s->logical->axis_count; i < s->logical->base_count; i++) {
    const FormBase *base = &s->logical->bases[i];
    if (base->kind != BASE_FORM) continue;
    const DigitForm *value = solver_value(s, base->args[0]), *known = solver_floor(s, i, 0, 1);
    if (value && !known) solver_learn(s, (Known){i, 0, 1, 0, value});
    if (known && !value && !has_equation(s, base->args[0], known))
      solver_add(s, base->args[0], known);
  }
}
