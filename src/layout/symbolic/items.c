// SPDX-License-Identifier: Apache-2.0
// Writes sums over symbolic boxes as weighted digits, for division and inversion: floors of one
// number by cuts that divide one another are read as its digits.
//
//   i + 4 - 8·⌊i/4⌋ + 16·⌊i/8⌋   =>   4 + (i mod 4) - 4·(⌊i/4⌋ mod 2) + 8·⌊i/8⌋
#include "layout/symbolic/sums.h"

enum { MAX_CUTS = 16 };

typedef struct ChainLink { // coefficient · ⌊number/cut⌋, a term of the sum
  Poly coefficient, cut;
  const SymbolicSum *floor;
  int atom; // -1: the floor is no atom
} ChainLink;

// The floors of one number by ascending cuts, and the number itself, as cut 1, where the sum has
// it.
typedef struct ItemChain {
  int count;
  ChainLink links[MAX_CUTS];
} ItemChain;

typedef struct ItemReading {
  SymbolicBox *box;
  const SymbolicSum *rest; // the terms that are not read yet
  SumItem *items;
  int count;
} ItemReading;

// Keeps the cuts ascending, each a multiple of the one before. False where that cannot be.
static bool insert(ItemReading *r, ItemChain *c, ChainLink link) {
  Polys *s = r->box->polys;
  int at = c->count;
  if (c->count == MAX_CUTS) return false;
  while (at && !poly_fits(layout_poly_exact(s, link.cut, c->links[at - 1].cut))) at--;
  if (at < c->count && !poly_fits(layout_poly_exact(s, c->links[at].cut, link.cut))) return false;
  for (int i = c->count++; i > at; i--) c->links[i] = c->links[i - 1];
  c->links[at] = link;
  return true;
}

static Poly coefficient_of(const SymbolicSum *a, int atom) {
  for (int i = 0; i < a->count; i++)
    if (a->terms[i].atom == atom) return a->terms[i].coefficient;
  return POLY_NONE;
}

// Whether the sum has all atoms of the inner one; in how many of them it has x times its terms.
static bool has_terms(ItemReading *r, const SymbolicSum *inner, Poly x, int *alike) {
  Polys *s = r->box->polys;
  *alike = 0;
  for (int i = 0; i < inner->count; i++) {
    Poly c = coefficient_of(r->rest, inner->terms[i].atom);
    if (!poly_fits(c)) return false;
    *alike += poly_same(layout_poly_product(s, x, inner->terms[i].coefficient), c);
  }
  return *alike > 0;
}

// x where the sum contains x·inner: all of its terms are there, or the finest floor has the
// coefficient that goes with it.
static Poly multiple_of(ItemReading *r, const SymbolicSum *inner, const ChainLink *finest) {
  Polys *s = r->box->polys;
  int alike;
  Poly x = POLY_NONE;
  if (inner->count)
    x = layout_poly_exact(s, coefficient_of(r->rest, inner->terms[0].atom),
                          inner->terms[0].coefficient);
  if (poly_fits(x) && has_terms(r, inner, x, &alike) && alike == inner->count) return x;
  x = layout_poly_exact(s, layout_poly_times(s, finest->coefficient, -1), finest->cut);
  return poly_fits(x) && has_terms(r, inner, x, &alike) ? x : POLY_NONE;
}

static bool take_inner(ItemReading *r, ItemChain *c, const SymbolicSum *inner) {
  Poly x = multiple_of(r, inner, &c->links[0]);
  if (!poly_fits(x)) return true;
  r->rest = layout_sum_subtract(r->box, r->rest, inner, x);
  Poly one = poly_const(1);
  return insert(r, c, (ChainLink){x, one, inner, layout_sum_atom(inner, false)});
}

static bool add_item(ItemReading *r, SumItem item) {
  if (!poly_fits(item.weight) || !item.value || r->count == MAX_SYMBOLIC_TERMS) return false;
  if (poly_is_zero(item.weight)) return true;
  if (!poly_fits(item.low)) layout_sum_bounds(r->box, item.value, &item.low, &item.high);
  r->items[r->count++] = item;
  return true;
}

static bool add_digit(ItemReading *r, Poly weight, const ChainLink *low, const ChainLink *high,
                      Poly radix) {
  const SymbolicSum *digit = layout_sum_subtract(r->box, low->floor, high->floor, radix);
  return add_item(r, (SumItem){weight, poly_const(0), poly_plus(radix, -1), digit, -1});
}

// The digits' weights follow from the coefficients: wᵢ = aᵢ + rᵢ₋₁wᵢ₋₁.
static bool add_chain(ItemReading *r, const ItemChain *c) {
  Polys *s = r->box->polys;
  const ChainLink *link = c->links, *last = &c->links[c->count - 1];
  Poly weight = link->coefficient;
  for (; link < last; link++) {
    Poly radix = layout_poly_exact(s, link[1].cut, link->cut);
    if (!poly_fits(radix) || !add_digit(r, weight, link, link + 1, radix)) return false;
    weight =
        layout_poly_linear(s, layout_poly_product(s, radix, weight), 1, link[1].coefficient, 1);
    if (!poly_fits(weight)) return false;
  }
  return add_item(r, (SumItem){.weight = weight, .value = last->floor, .atom = last->atom});
}

static int find_floor(const ItemReading *r) {
  for (int i = 0; r->rest && i < r->rest->count; i++)
    if (r->box->atoms[r->rest->terms[i].atom].kind == ATOM_FLOOR) return i;
  return -1;
}

// Reads the digits of the number that term `at` is a floor of.
static bool read_floors(ItemReading *r, int at) {
  const SymbolicSum *inner = r->box->atoms[r->rest->terms[at].atom].operands[0], *all = r->rest;
  ItemChain c;
  c.count = 0;
  for (int i = at; i < all->count; i++) {
    const SymbolicTerm *term = &all->terms[i];
    const SymbolicAtom *atom = &r->box->atoms[term->atom];
    if (atom->kind != ATOM_FLOOR || !layout_sum_same(atom->operands[0], inner)) continue;
    const SymbolicSum *floor = layout_sum_of_atom(r->box, term->atom);
    if (!insert(r, &c, (ChainLink){term->coefficient, atom->divisor, floor, term->atom}))
      return false;
    r->rest = layout_sum_subtract(r->box, r->rest, floor, term->coefficient);
  }
  return r->rest && take_inner(r, &c, inner) && add_chain(r, &c);
}

int layout_sum_items(SymbolicBox *box, const SymbolicSum *a, SumItem *items,
                     const SymbolicSum **constant) {
  ItemReading r = {.box = box, .rest = a, .items = items};
  for (int at; (at = find_floor(&r)) >= 0;)
    if (!read_floors(&r, at)) return -1;
  for (int i = 0; r.rest && i < r.rest->count; i++) {
    int atom = r.rest->terms[i].atom;
    if (!add_item(&r, (SumItem){.weight = r.rest->terms[i].coefficient,
                                .value = layout_sum_of_atom(box, atom),
                                .atom = atom}))
      return -1;
  }
  *constant = r.rest ? layout_sum_of_poly(box, r.rest->constant) : NULL;
  return r.rest ? r.count : -1;
}

int layout_sum_split_items(SymbolicBox *box, const SumItem *items, int count, Poly c,
                           const SymbolicSum **above, const SymbolicSum **below) {
  int multiples = 0;
  *above = *below = layout_sum_const(box, 0);
  for (int i = 0; i < count; i++) {
    Poly q = layout_poly_exact(box->polys, items[i].weight, c);
    bool divides = poly_fits(q);
    const SymbolicSum **sum = divides ? above : below;
    *sum = layout_sum_add(box, *sum, items[i].value, divides ? q : items[i].weight);
    multiples += divides;
  }
  return multiples;
}
