// SPDX-License-Identifier: Apache-2.0
// Sums over symbolic boxes as weighted digits: floors of one number by cuts that divide one another
// are read as its digits.
//
//   i + 4 - 8·⌊i/4⌋ + 16·⌊i/8⌋   =>   4 + (i mod 4) - 4·(⌊i/4⌋ mod 2) + 8·⌊i/8⌋
#include "layout/symbolic/sums.h"

enum { MAX_CUTS = 16 };

// The number itself (cut 1), where the sum has it, and its floors, by ascending cuts.
typedef struct ItemChain {
  int count;
  const Poly *coefficients[MAX_CUTS], *cuts[MAX_CUTS];
  const SymbolicSum *floors[MAX_CUTS];
  int atoms[MAX_CUTS]; // -1: the number, where that is no atom
} ItemChain;

typedef struct ItemReading {
  SymbolicBox *box;
  const SymbolicSum *rest; // what is not read yet
  SumItem *items;
  int count;
} ItemReading;

static const Poly *exact_quotient(Polys *s, const Poly *x, const Poly *y) {
  const Poly *q, *r;
  layout_poly_divide(s, x, y, &q, &r);
  return q && r && layout_poly_is_zero(r) ? q : NULL;
}

// Keeps the cuts a chain; false where they are none.
static bool insert(ItemReading *r, ItemChain *c, const Poly *coefficient, const Poly *cut,
                   const SymbolicSum *value, int atom) {
  int at = c->count;
  if (c->count == MAX_CUTS) return false;
  while (at && !exact_quotient(r->box->polys, cut, c->cuts[at - 1])) at--;
  if (at < c->count && !exact_quotient(r->box->polys, c->cuts[at], cut)) return false;
  for (int i = c->count++; i > at; i--) {
    c->coefficients[i] = c->coefficients[i - 1];
    c->cuts[i] = c->cuts[i - 1];
    c->floors[i] = c->floors[i - 1];
    c->atoms[i] = c->atoms[i - 1];
  }
  c->coefficients[at] = coefficient;
  c->cuts[at] = cut;
  c->floors[at] = value;
  c->atoms[at] = atom;
  return true;
}

static const Poly *coefficient_of(const SymbolicSum *a, int atom) {
  for (int i = 0; i < a->count; i++)
    if (a->parts[i].atom == atom) return a->parts[i].coefficient;
  return NULL;
}

// Whether the sum has all parts of the inner one; how many of them are x times those.
static bool has_parts(ItemReading *r, const SymbolicSum *inner, const Poly *x, int *alike) {
  Polys *s = r->box->polys;
  *alike = 0;
  for (int i = 0; i < inner->count; i++) {
    const Poly *c = coefficient_of(r->rest, inner->parts[i].atom);
    if (!c) return false;
    *alike += layout_poly_same(layout_poly_product(s, x, inner->parts[i].coefficient), c);
  }
  return *alike > 0;
}

// x where the sum has the parts of x·inner: it has no others, or the finest floor goes with them.
static const Poly *multiple_of(ItemReading *r, const SymbolicSum *inner, const ItemChain *c) {
  Polys *s = r->box->polys;
  int alike;
  const Poly *first = inner->count ? coefficient_of(r->rest, inner->parts[0].atom) : NULL;
  const Poly *x = first ? exact_quotient(s, first, inner->parts[0].coefficient) : NULL;
  if (x && has_parts(r, inner, x, &alike) && alike == inner->count) return x;
  x = exact_quotient(s, layout_poly_linear(s, c->coefficients[0], -1, c->cuts[0], 0), c->cuts[0]);
  return x && has_parts(r, inner, x, &alike) ? x : NULL;
}

static void take(ItemReading *r, const SymbolicSum *part, const Poly *times) {
  r->rest =
      layout_sum_add(r->box, r->rest, part, layout_poly_linear(r->box->polys, times, -1, times, 0));
}

static bool take_inner(ItemReading *r, ItemChain *c, const SymbolicSum *inner) {
  Polys *s = r->box->polys;
  const Poly *x = multiple_of(r, inner, c);
  int64_t one;
  if (!x) return true;
  take(r, inner, x);
  bool atom = inner->count == 1 && layout_poly_is_zero(inner->constant) &&
              layout_poly_is_const(inner->parts[0].coefficient, &one) && one == 1;
  return insert(r, c, x, layout_poly_const(s, 1), inner, atom ? inner->parts[0].atom : -1);
}

static bool add_item(ItemReading *r, const Poly *weight, const SymbolicSum *value, int atom) {
  if (!weight || !value || r->count == MAX_SYMBOLIC_TERMS) return false;
  if (layout_poly_is_zero(weight)) return true;
  SumItem *item = &r->items[r->count++];
  *item = (SumItem){.weight = weight, .value = value, .atom = atom};
  layout_sum_bounds(r->box, value, &item->low, &item->high);
  return true;
}

static bool add_chain(ItemReading *r, const ItemChain *c) {
  Polys *s = r->box->polys;
  const Poly *weight = c->coefficients[0], *zero = layout_poly_const(s, 0);
  for (int i = 0; i + 1 < c->count; i++) {
    const Poly *radix = exact_quotient(s, c->cuts[i + 1], c->cuts[i]);
    if (!radix) return false;
    const SymbolicSum *digit = layout_sum_add(r->box, c->floors[i], c->floors[i + 1],
                                              layout_poly_linear(s, radix, -1, zero, 0));
    int before = r->count;
    if (!add_item(r, weight, digit, -1)) return false;
    if (r->count > before) {
      r->items[before].low = zero;
      r->items[before].high = layout_poly_linear(s, radix, 1, layout_poly_const(s, 1), -1);
    }
    weight =
        layout_poly_linear(s, layout_poly_product(s, radix, weight), 1, c->coefficients[i + 1], 1);
    if (!weight) return false;
  }
  return add_item(r, weight, c->floors[c->count - 1], c->atoms[c->count - 1]);
}

static int find_floor(const ItemReading *r) {
  for (int i = 0; r->rest && i < r->rest->count; i++)
    if (r->box->atoms[r->rest->parts[i].atom].kind == ATOM_FLOOR) return i;
  return -1;
}

// The digits of the number that part `at` is a floor of.
static bool read_floors(ItemReading *r, int at) {
  const SymbolicSum *inner = r->box->atoms[r->rest->parts[at].atom].operands[0], *all = r->rest;
  ItemChain c = {0};
  for (int i = at; i < all->count; i++) {
    const SymbolicTerm *part = &all->parts[i];
    const SymbolicAtom *atom = &r->box->atoms[part->atom];
    if (atom->kind != ATOM_FLOOR || !layout_sum_same(atom->operands[0], inner)) continue;
    const SymbolicSum *floor = layout_sum_of_atom(r->box, part->atom);
    if (!insert(r, &c, part->coefficient, atom->divisor, floor, part->atom)) return false;
    take(r, floor, part->coefficient);
  }
  return r->rest && take_inner(r, &c, inner) && add_chain(r, &c);
}

int layout_sum_items(SymbolicBox *box, const SymbolicSum *a, SumItem *items,
                     const SymbolicSum **constant) {
  ItemReading r = {.box = box, .rest = a, .items = items};
  for (int at; (at = find_floor(&r)) >= 0;)
    if (!read_floors(&r, at)) return -1;
  for (int i = 0; r.rest && i < r.rest->count; i++) {
    const SymbolicTerm *part = &r.rest->parts[i];
    if (!add_item(&r, part->coefficient, layout_sum_of_atom(box, part->atom), part->atom))
      return -1;
  }
  *constant = r.rest ? layout_sum_of_poly(box, r.rest->constant) : NULL;
  return r.rest ? r.count : -1;
}

int layout_items_split(SymbolicBox *box, const SumItem *items, int count, const Poly *c,
                       const SymbolicSum **above, const SymbolicSum **below) {
  int multiples = 0;
  *above = *below = layout_sum_const(box, 0);
  for (int i = 0; i < count; i++) {
    const Poly *q = exact_quotient(box->polys, items[i].weight, c);
    const SymbolicSum **sum = q ? above : below;
    *sum = layout_sum_add(box, *sum, items[i].value, q ? q : items[i].weight);
    multiples += q != NULL;
  }
  return multiples;
}
