// SPDX-License-Identifier: Apache-2.0
// Keeps what the propagation of solve.c knows: values of digits, which are whole floors where they
// are open and residues otherwise, as forms of the physical axes. A known value gives those of
// coarser cuts, two residues of one number meet by the Chinese remainder theorem, and a residue
// with a coarser floor gives the number itself.
#include "layout/digits/solve.h"

// Whether ⌊(base + offset)/cut⌋ is a quotient of the floor of this digit, moved by a constant.
static bool starts_in(const Digit *known, int base, int64_t offset, int64_t cut) {
  return known->base == base && cut % known->cut == 0 && (offset - known->offset) % known->cut == 0;
}

// A known floor that determines ⌊(base + offset)/cut⌋.
static const Known *find_floor(const DigitSolver *s, int base, int64_t offset, int64_t cut) {
  for (int i = 0; i < s->known_count; i++) {
    const Known *k = &s->known[i];
    if (k->digit.open && starts_in(&k->digit, base, offset, cut)) return k;
  }
  return NULL;
}

// A known residue that has this one, a digit that is not open, as one of its digits.
static const Known *find_residue(const DigitSolver *s, const Digit *g) {
  for (int i = 0; i < s->known_count; i++) {
    const Digit *k = &s->known[i].digit;
    if (k->open || !starts_in(k, g->base, g->offset, g->cut)) continue;
    int64_t below = g->cut / k->cut;
    if (k->radix % below == 0 && k->radix / below % g->radix == 0) return &s->known[i];
  }
  return NULL;
}

const DigitForm *solver_floor(DigitSolver *s, int base, int64_t offset, int64_t cut) {
  const Known *k = find_floor(s, base, offset, cut);
  if (!k) return NULL;
  const Digit *g = &k->digit;
  const DigitForm *at = layout_form_add_const(s->physical, k->value, (offset - g->offset) / g->cut);
  return layout_form_divide(s->physical, at, cut / g->cut);
}

const DigitForm *solver_digit(DigitSolver *s, const Digit *g) {
  DigitSpace *p = s->physical;
  const Known *k = g->open ? NULL : find_residue(s, g);
  const DigitForm *floor = k ? NULL : solver_floor(s, g->base, g->offset, g->cut);
  if (!k) return floor && !g->open ? layout_form_modulo(p, floor, g->radix) : floor;
  int64_t steps = (g->offset - k->digit.offset) / k->digit.cut;
  const DigitForm *y = layout_form_add_const(p, k->value, steps);
  if (steps) y = layout_form_modulo(p, y, k->digit.radix);
  return layout_form_modulo(p, layout_form_divide(p, y, g->cut / k->digit.cut), g->radix);
}

bool solver_knows_bit(const DigitSolver *s, const Digit *bit) {
  return find_floor(s, bit->base, bit->offset, bit->cut) || find_residue(s, bit);
}

// A residue y mod r becomes y where y takes at most r values, from y₀ on: y = y₀ + (y - y₀) mod r.
static void widen_residue(DigitSolver *s, Known *k) {
  DigitSpace *p = s->physical;
  Digit *g = &k->digit;
  int64_t first = g->offset / g->cut;
  int64_t last = (s->logical->bases[g->base].extent - 1 + g->offset) / g->cut;
  if (g->open || last - first >= g->radix) return;
  if (last >= g->radix) {
    k->value = layout_form_modulo(p, layout_form_add_const(p, k->value, -first), g->radix);
    k->value = layout_form_add_const(p, k->value, first);
  }
  g->open = true;
}

void solver_learn(DigitSolver *s, Digit digit, const DigitForm *value) {
  Known k = {digit, value};
  widen_residue(s, &k);
  if (!k.value || s->known_count == MAX_KNOWN) return;
  if (find_floor(s, k.digit.base, k.digit.offset, k.digit.cut)) return;
  if (!k.digit.open && find_residue(s, &k.digit)) return;
  s->known[s->known_count++] = k;
  s->progress = true;
}

// y = ⌊(B + o)/c⌋ from y mod r and z = ⌊(B + o')/c'⌋ with c | c', c | o - o', c'/c <= r:
// y = y₀ + ((y mod r) - y₀) mod r with y₀ = (c'z - o' + o)/c.
static void merge_with_floor(DigitSolver *s, const Known *residue, const Known *floor) {
  DigitSpace *p = s->physical;
  const Digit *g = &residue->digit, *coarse = &floor->digit;
  int64_t c = g->cut;
  if (coarse->base != g->base || !coarse->open || coarse->cut % c ||
      (g->offset - coarse->offset) % c || coarse->cut / c > g->radix ||
      find_floor(s, g->base, g->offset, c))
    return;
  const DigitForm *start = layout_form_times(p, floor->value, coarse->cut / c);
  start = layout_form_add_const(p, start, (g->offset - coarse->offset) / c);
  const DigitForm *rest = layout_form_linear(p, residue->value, 1, start, -1);
  rest = layout_form_modulo(p, rest, g->radix);
  Digit whole = {.offset = g->offset, .cut = c, .base = g->base, .open = true};
  solver_learn(s, whole, layout_form_linear(p, start, 1, rest, 1));
}

// a = y mod r and b = y mod s give y modulo their least common multiple, by the Chinese remainder
// theorem: a + r·t with t = (b - a)/g · (r/g)⁻¹ mod s/g, g = gcd(r, s).
static void merge_residues(DigitSolver *s, const Known *x, const Known *y) {
  DigitSpace *p = s->physical;
  Digit both = x->digit;
  if (!digit_starts_with(&x->digit, &y->digit)) return;
  int64_t r = x->digit.radix, gcd = gcd_of(r, y->digit.radix), step = y->digit.radix / gcd;
  if (gcd == r || step == 1 || !mul_fits(r, step, &both.radix) || find_residue(s, &both)) return;
  const DigitForm *apart = layout_form_linear(p, y->value, 1, x->value, -1);
  const DigitForm *steps =
      layout_form_times(p, layout_form_divide(p, apart, gcd), layout_inverse_modulo(r / gcd, step));
  steps = layout_form_modulo(p, steps, step);
  solver_learn(s, both, layout_form_linear(p, x->value, 1, steps, r));
}

void solver_merge(DigitSolver *s) {
  for (int i = 0; i < s->known_count; i++)
    for (int j = 0; j < s->known_count && !s->known[i].digit.open; j++)
      merge_with_floor(s, &s->known[i], &s->known[j]);
  for (int i = 1; i < s->known_count; i++)
    for (int j = 0; j < i && !s->known[i].digit.open; j++)
      if (!s->known[j].digit.open) merge_residues(s, &s->known[i], &s->known[j]);
}

const DigitForm *solver_value(DigitSolver *s, const DigitForm *f) {
  Digit digits[MAX_DIGITS];
  int count;
  if (f->xor_count) return NULL;
  f = layout_form_regroup(s->logical, f);
  if (!layout_form_digits(s->logical, f, digits, &count)) return NULL;
  const DigitForm *sum = layout_form_const(s->physical, f->constant);
  for (int i = 0; i < count && sum; i++)
    sum = layout_form_linear(s->physical, sum, 1, solver_digit(s, &digits[i]), digits[i].weight);
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
    if (value && !known) solver_learn(s, (Digit){.cut = 1, .base = i, .open = true}, value);
    if (known && !value && !has_equation(s, base->args[0], known))
      solver_add(s, base->args[0], known);
  }
}
