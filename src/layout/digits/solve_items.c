// SPDX-License-Identifier: Apache-2.0
// Writes equations of the propagation of solve.c as sums of weighted items, Σ weight·item = value
// with 0 <= item < radix. An item is a digit or an XOR of bits; one that counts down is reversed.
// Where the items below stay under the gcd g of the weights above, value mod g is the sum of the
// lower ones and ⌊value/g⌋ · g that of the others.
#include "layout/digits/solve.h"

typedef struct SolveItem {
  Digit digit;    // of positive weight
  bool reversed;  // the item is radix - 1 - x of the digit or parity x
  bool is_parity; // of the digit only weight and radix count
  BitMask mask;
} SolveItem;

typedef struct SolveItems {
  SolveItem items[MAX_DIGITS];
  int count;
  const DigitForm *value; // of their sum
} SolveItems;

// ---- Reading -----------------------------------------------------------------------------------

// The digits of the form, or its floors as they are where their cuts are no chain.
static int form_digits(const DigitSpace *l, const DigitForm *f, Digit *digits) {
  int count;
  if (layout_form_digits(l, f, digits, &count)) return count;
  for (int i = 0; i < f->count; i++) {
    const FormTerm *t = &f->terms[i];
    int64_t radix = (l->bases[t->base].extent - 1 + t->offset) / t->cut + 1;
    digits[i] = (Digit){t->coefficient, t->offset, t->cut, radix, t->base, true};
  }
  return f->count;
}

// Adds the digit, or moves it to the other side where its value is known.
static void add_digit(DigitSolver *s, SolveItems *m, const Digit *g) {
  const DigitForm *known = g->open ? NULL : solver_digit(s, g);
  if (known)
    m->value = layout_form_linear(s->physical, m->value, 1, known, -g->weight);
  else
    m->items[m->count++] = (SolveItem){.digit = *g};
}

// Reverses the item where its weight is negative: -w·x = w·(radix - 1 - x) - w·(radix - 1).
static bool reverse_item(DigitSolver *s, SolveItem *item, const DigitForm **value) {
  int64_t reach;
  if (item->digit.weight > 0) return true;
  if (!mul_fits(item->digit.weight, item->digit.radix - 1, &reach) || reach == INT64_MIN)
    return false;
  *value = layout_form_add_const(s->physical, *value, -reach);
  item->digit.weight = -item->digit.weight;
  item->reversed = true;
  return true;
}

static void sort_items(SolveItem *items, int count) {
  for (int i = 1; i < count; i++)
    for (int j = i; j && items[j].digit.weight < items[j - 1].digit.weight; j--) {
      SolveItem t = items[j];
      items[j] = items[j - 1];
      items[j - 1] = t;
    }
}

// The unknown items of an equation, by ascending weight. False where they do not fit.
static bool read_items(DigitSolver *s, const DigitEquation *e, SolveItems *m) {
  Digit digits[MAX_DIGITS];
  const DigitForm *f = e->form;
  if (f->count + f->xor_count > MAX_DIGITS) return false;
  m->count = 0;
  m->value = layout_form_add_const(s->physical, e->value, -f->constant);
  int count = form_digits(s->logical, f, digits);
  for (int i = 0; i < count; i++) add_digit(s, m, &digits[i]);
  for (int i = 0; i < f->xor_count; i++)
    m->items[m->count++] = (SolveItem){.digit = {.weight = f->xors[i].coefficient, .radix = 2},
                                       .is_parity = true,
                                       .mask = f->xors[i].mask};
  for (int i = 0; i < m->count; i++)
    if (!reverse_item(s, &m->items[i], &m->value)) return false;
  sort_items(m->items, m->count);
  return m->value != NULL;
}

// ---- Learning ----------------------------------------------------------------------------------

static void learn_item(DigitSolver *s, const SolveItem *item, const DigitForm *value) {
  const Digit *g = &item->digit;
  if (value && item->reversed)
    value =
        layout_form_add_const(s->physical, layout_form_times(s->physical, value, -1), g->radix - 1);
  if (!value) return;
  if (item->is_parity)
    solver_add_parity(s, (Parity){item->mask, layout_form_modulo(s->physical, value, 2)});
  else
    solver_learn(s, *g, value);
}

// weight · item, as a form.
static const DigitForm *item_form(DigitSpace *l, const SolveItem *item, int64_t weight) {
  Digit digit = item->digit;
  digit.weight = item->reversed ? -weight : weight;
  const DigitForm *f = item->is_parity ? layout_form_parity(l, item->mask, digit.weight)
                                       : layout_form_digit(l, &digit);
  return item->reversed ? layout_form_add_const(l, f, weight * (digit.radix - 1)) : f;
}

static const DigitForm *items_form(DigitSpace *l, const SolveItem *items, int count,
                                   int64_t divisor) {
  const DigitForm *sum = layout_form_const(l, 0);
  for (int i = 0; i < count; i++)
    sum =
        layout_form_linear(l, sum, 1, item_form(l, &items[i], items[i].digit.weight / divisor), 1);
  return sum;
}

// Learns the sum of the items [begin, end), (value mod above)/gcd, where `above` is 0 when no items
// are above them.
static void take_cluster(DigitSolver *s, const SolveItems *m, int begin, int end, int64_t gcd,
                         int64_t above) {
  const SolveItem *first = &m->items[begin];
  const DigitForm *value = m->value;
  if (above) value = layout_form_modulo(s->physical, value, above);
  value = layout_form_divide(s->physical, value, gcd);
  if (end - begin > 1) return solver_add(s, items_form(s->logical, first, end - begin, gcd), value);
  learn_item(s, first, layout_form_divide(s->physical, value, first->digit.weight / gcd));
}

bool solver_separate(DigitSolver *s, const DigitEquation *e) {
  SolveItems m;
  int64_t gcds[MAX_DIGITS + 1], reach = 0, part;
  int ends[MAX_DIGITS], clusters = 0;
  if (!read_items(s, e, &m)) return false;
  gcds[m.count] = 0;
  for (int i = m.count - 1; i >= 0; i--) gcds[i] = gcd_of(gcds[i + 1], m.items[i].digit.weight);
  for (int i = 0; i < m.count; i++) {
    const Digit *g = &m.items[i].digit;
    if (!mul_fits(g->weight, g->radix - 1, &part) || !add_fits(reach, part, &reach)) return false;
    if (i + 1 == m.count || reach < gcds[i + 1]) ends[clusters++] = i + 1;
  }
  if (clusters == 1 && m.count > 1) return false;
  for (int i = 0, begin = 0; i < clusters; begin = ends[i++])
    take_cluster(s, &m, begin, ends[i], gcds[begin], gcds[ends[i]]);
  return true;
}

bool solver_learn_sum(DigitSolver *s, const DigitEquation *e) {
  SolveItems m;
  Digit parts[MAX_DIGITS];
  const DigitForm *found[MAX_DIGITS];
  if (!read_items(s, e, &m)) return false;
  for (int i = 0; i < m.count; i++) parts[i] = m.items[i].digit;
  if (!layout_solve_sum(s->physical, parts, m.count, m.value, found)) return false;
  for (int i = 0; i < m.count; i++) learn_item(s, &m.items[i], found[i]);
  return s->progress;
}
