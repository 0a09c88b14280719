// SPDX-License-Identifier: Apache-2.0
// Handles bits in the propagation of solve.c: equations between XORs of bits, kept as a system over
// GF(2) that Gaussian elimination reduces, and what this system exchanges with the known residues.
#include "layout/digits/solve.h"

static const DigitForm *xor_values(DigitSolver *s, const DigitForm *a, const DigitForm *b) {
  return layout_form_bitwise(s->physical, LAYOUT_XOR, a, b);
}

void solver_add_parity(DigitSolver *s, Parity p) {
  for (int i = 0; i < s->parity_count; i++) {
    const Parity *row = &s->parities[i];
    if (!mask_has(p.mask, mask_lowest(row->mask))) continue;
    p.mask = mask_xor(p.mask, row->mask);
    p.value = xor_values(s, p.value, row->value);
  }
  if (mask_empty(p.mask) || !p.value || s->parity_count == MAX_BITS) return;
  s->parities[s->parity_count++] = p;
  s->progress = true;
}

// Back substitution: from the last row up, each pivot is removed from the rows before it.
static void reduce_parities(DigitSolver *s) {
  for (int i = s->parity_count - 1; i > 0; i--) {
    int pivot = mask_lowest(s->parities[i].mask);
    for (int j = 0; j < i; j++) {
      Parity *row = &s->parities[j];
      if (!mask_has(row->mask, pivot)) continue;
      const DigitForm *value = xor_values(s, row->value, s->parities[i].value);
      if (value) *row = (Parity){mask_xor(row->mask, s->parities[i].mask), value};
    }
  }
}

void solver_exchange_bits(DigitSolver *s) {
  for (int i = 0; i < s->logical->bit_count && s->parity_count; i++) {
    const DigitForm *value = solver_digit(s, &s->logical->bits[i]);
    if (value) solver_add_parity(s, (Parity){mask_of_bit(i), value});
  }
  reduce_parities(s);
  for (int i = 0; i < s->parity_count; i++) {
    if (mask_count(s->parities[i].mask) != 1) continue;
    int bit = mask_lowest(s->parities[i].mask);
    solver_learn(s, s->logical->bits[bit], s->parities[i].value);
  }
}

static BitMask known_bits(const DigitSolver *s, BitMask mask) {
  BitMask known = {{0, 0}};
  for (int i = 0; i < s->logical->bit_count; i++)
    if (mask_has(mask, i) && solver_knows_bit(s, &s->logical->bits[i]))
      known = mask_xor(known, mask_of_bit(i));
  return known;
}

// The form without the known bits of its XORs, and *taken, the sum of weight · (known bit). An XOR
// with several known bits stays as it is.
static const DigitForm *without_known_bits(DigitSolver *s, const DigitForm *form,
                                           const DigitForm **taken) {
  DigitSpace *l = s->logical;
  const DigitForm *rest = form;
  *taken = layout_form_const(l, 0);
  for (int i = 0; i < form->xor_count; i++) {
    const FormXor *item = &form->xors[i];
    int64_t c = item->coefficient;
    BitMask known = known_bits(s, item->mask);
    if (mask_count(known) != 1) continue;
    const DigitForm *left = layout_form_parity(l, mask_xor(item->mask, known), c);
    *taken = layout_form_linear(l, *taken, 1, layout_form_parity(l, known, c < 0 ? -c : c), 1);
    rest = layout_form_linear(l, rest, 1, &(DigitForm){.xors = item, .xor_count = 1}, -1);
    rest = layout_form_linear(l, rest, 1, left, 1);
  }
  return rest;
}

// Where the parts of a form occupy separate bits, the known bits of its XORs can be XORed away from
// the whole: f ^ Y = f without the known bits, Y = Σ weight·(known bit).
void solver_take_out_bits(DigitSolver *s, DigitEquation *e) {
  Interval reach;
  const DigitForm *taken, *rest = without_known_bits(s, e->form, &taken);
  if (!rest || !taken || rest == e->form || !layout_form_is_placed(s->logical, e->form)) return;
  const DigitForm *known = solver_value(s, taken);
  if (!known || !layout_form_bounds(s->logical, e->form, &reach) || reach.high >= INT64_MAX / 4)
    return;
  int64_t modulus = 1;
  while (modulus <= reach.high) modulus *= 2;
  const DigitForm *value = xor_values(s, layout_form_modulo(s->physical, e->value, modulus), known);
  if (!value) return;
  *e = (DigitEquation){rest, value};
  s->progress = true;
}

bool solver_learn_bits(DigitSolver *s, const DigitEquation *e) {
  DigitSpace *p = s->physical;
  BitMask masks[WORD];
  uint64_t negated;
  if (!layout_form_bits(s->logical, e->form, masks, &negated)) return false;
  for (int i = 0; i < WORD; i++) {
    if (mask_empty(masks[i])) continue;
    const DigitForm *bit = layout_form_divide(p, e->value, (int64_t)1 << i);
    bit = layout_form_modulo(p, bit, 2);
    if (negated >> i & 1) bit = layout_form_add_const(p, layout_form_times(p, bit, -1), 1);
    solver_add_parity(s, (Parity){masks[i], bit});
  }
  return s->progress;
}
