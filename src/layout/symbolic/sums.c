// SPDX-License-Identifier: Apache-2.0
// Computes with sums over symbolic boxes: their arithmetic, their bounds, and floored division by
// polynomials, for all questions about layouts of symbolic extents. Division follows
// digits/divide.c: a = y·q + r, and q is the quotient where the bounds of r are within one multiple
// of y.
#include "layout/symbolic/sums.h"

// ---- Sums --------------------------------------------------------------------------------------

static SymbolicSum *new_sum(SymbolicBox *box, Poly constant, int count) {
  if (!poly_fits(constant)) return NULL;
  SymbolicSum *sum =
      arena_take(box->polys->arena, sizeof *sum + sizeof *sum->terms * (size_t)count);
  *sum = (SymbolicSum){constant, 0, (SymbolicTerm *)(sum + 1)};
  return sum;
}

const SymbolicSum *layout_sum_of_poly(SymbolicBox *box, Poly p) {
  return new_sum(box, p, 0);
}

const SymbolicSum *layout_sum_const(SymbolicBox *box, int64_t value) {
  return new_sum(box, poly_const(value), 0);
}

const SymbolicSum *layout_sum_of_atom(SymbolicBox *box, int atom) {
  if (atom < 0) return NULL;
  SymbolicSum *sum = new_sum(box, poly_const(0), 1);
  sum->terms[sum->count++] = (SymbolicTerm){poly_const(1), atom};
  return sum;
}

const SymbolicSum *layout_sum_add(SymbolicBox *box, const SymbolicSum *a, const SymbolicSum *b,
                                  Poly y) {
  if (!a || !b || !poly_fits(y)) return NULL;
  if (poly_is_zero(y) || (!b->count && poly_is_zero(b->constant))) return a;
  Polys *s = box->polys;
  Poly zero = poly_const(0);
  SymbolicSum *out =
      new_sum(box, layout_poly_linear(s, a->constant, 1, layout_poly_product(s, b->constant, y), 1),
              a->count + b->count);
  for (int i = 0, j = 0; out && (i < a->count || j < b->count);) {
    bool left = i < a->count && (j == b->count || a->terms[i].atom <= b->terms[j].atom);
    bool right = j < b->count && (i == a->count || b->terms[j].atom <= a->terms[i].atom);
    int atom = left ? a->terms[i].atom : b->terms[j].atom;
    Poly p = left ? a->terms[i++].coefficient : zero;
    Poly q = right ? layout_poly_product(s, b->terms[j++].coefficient, y) : zero;
    Poly coefficient = layout_poly_linear(s, p, 1, q, 1);
    if (!poly_fits(coefficient)) return NULL;
    if (!poly_is_zero(coefficient)) out->terms[out->count++] = (SymbolicTerm){coefficient, atom};
  }
  return out;
}

const SymbolicSum *layout_sum_plus(SymbolicBox *box, const SymbolicSum *a, const SymbolicSum *b,
                                   int64_t y) {
  return layout_sum_add(box, a, b, poly_const(y));
}

const SymbolicSum *layout_sum_subtract(SymbolicBox *box, const SymbolicSum *a, const SymbolicSum *b,
                                       Poly y) {
  return layout_sum_add(box, a, b, layout_poly_times(box->polys, y, -1));
}

const SymbolicSum *layout_sum_offset(SymbolicBox *box, const SymbolicSum *a, Poly p) {
  return layout_sum_plus(box, a, layout_sum_of_poly(box, p), 1);
}

bool layout_sum_same(const SymbolicSum *a, const SymbolicSum *b) {
  if (!a || !b || a->count != b->count || !poly_same(a->constant, b->constant)) return false;
  for (int i = 0; i < a->count; i++)
    if (a->terms[i].atom != b->terms[i].atom ||
        !poly_same(a->terms[i].coefficient, b->terms[i].coefficient))
      return false;
  return true;
}

bool layout_sum_is_poly(const SymbolicSum *a, Poly *value) {
  if (!a || a->count) return false;
  *value = a->constant;
  return true;
}

int layout_sum_atom(const SymbolicSum *a, bool with_constant) {
  int64_t c;
  bool one = a && a->count == 1 && poly_is_const(a->terms[0].coefficient, &c) && c == 1;
  return one && (with_constant || poly_is_zero(a->constant)) ? a->terms[0].atom : -1;
}

static bool atom_same(const SymbolicAtom *a, const SymbolicAtom *b) {
  if (a->kind != b->kind || a->op != b->op || a->operand_count != b->operand_count) return false;
  if (poly_fits(a->divisor) && !poly_same(a->divisor, b->divisor)) return false;
  for (int i = 0; i < a->operand_count; i++)
    if (!layout_sum_same(a->operands[i], b->operands[i])) return false;
  return true;
}

int layout_box_atom(SymbolicBox *box, const SymbolicAtom *atom) {
  for (int i = box->axis_count; i < box->atom_count; i++)
    if (atom_same(&box->atoms[i], atom)) return i;
  if (box->atom_count == MAX_ATOMS) return -1;
  box->atoms[box->atom_count] = *atom;
  return box->atom_count++;
}

// ---- Bounds ------------------------------------------------------------------------------------

// a - q·(inner mod radix), where ⌊inner/radix⌋ is the floor of term `at`. NULL where a does not
// contain this residue.
static const SymbolicSum *without(SymbolicBox *box, const SymbolicSum *a, int at,
                                  const SymbolicSum *inner, Poly radix, Residue *out) {
  Polys *s = box->polys;
  Poly q = layout_poly_exact(s, layout_poly_times(s, a->terms[at].coefficient, -1), radix);
  *out = (Residue){q, radix, inner};
  if (!poly_fits(q)) return NULL;
  const SymbolicSum *rest = layout_sum_subtract(box, a, inner, q);
  rest = layout_sum_add(box, rest, layout_sum_of_atom(box, a->terms[at].atom),
                        layout_poly_product(s, q, radix));
  bool smaller = rest && inner->count && rest->count + inner->count + 1 == a->count;
  return smaller ? rest : NULL;
}

// Tries the residues of which ⌊v/y⌋ is the floor: those of v, and of ⌊v/y'⌋ where y' divides y.
const SymbolicSum *layout_sum_without_residue(SymbolicBox *box, const SymbolicSum *a, int at,
                                              Residue *out) {
  const SymbolicAtom *atom = &box->atoms[a->terms[at].atom];
  if (atom->kind != ATOM_FLOOR) return NULL;
  const SymbolicSum *rest = without(box, a, at, atom->operands[0], atom->divisor, out);
  for (int i = 0; i < a->count && !rest; i++) {
    const SymbolicAtom *finer = &box->atoms[a->terms[i].atom];
    if (i == at || finer->kind != ATOM_FLOOR ||
        !layout_sum_same(finer->operands[0], atom->operands[0]))
      continue;
    Poly radix = layout_poly_exact(box->polys, atom->divisor, finer->divisor);
    if (poly_fits(radix))
      rest = without(box, a, at, layout_sum_of_atom(box, a->terms[i].atom), radix, out);
  }
  return rest;
}

static Poly add_product(Polys *s, Poly sum, Poly a, Poly b) {
  return layout_poly_linear(s, sum, 1, layout_poly_product(s, a, b), 1);
}

// Adds c·[least, most] to [*low, *high]; bounds that are not known are POLY_NONE.
static void widen(Polys *s, Poly c, Poly least, Poly most, Poly *low, Poly *high) {
  bool up = poly_nonnegative(c), down = !up && poly_nonpositive(c);
  *low = add_product(s, *low, c, up ? least : down ? most : POLY_NONE);
  *high = add_product(s, *high, c, up ? most : down ? least : POLY_NONE);
}

typedef enum FloorBounds {
  BY_FLOOR,   // ⌊low/y⌋ <= ⌊v/y⌋ <= ⌊high/y⌋
  BY_PRODUCT, // q·y·⌊v/y⌋ is in q·[low - y + 1, high], where y divides the coefficient
} FloorBounds;

static void bounds(SymbolicBox *box, const SymbolicSum *a, FloorBounds how, Poly *low, Poly *high);

// Adds the bounds of the term to *low and *high.
static void add_term(SymbolicBox *box, const SymbolicTerm *term, FloorBounds how, Poly *low,
                     Poly *high) {
  Polys *s = box->polys;
  const SymbolicAtom *atom = &box->atoms[term->atom];
  Poly least, most;
  Poly q = how == BY_PRODUCT && atom->kind == ATOM_FLOOR
               ? layout_poly_exact(s, term->coefficient, atom->divisor)
               : POLY_NONE;
  if (!poly_fits(q)) return widen(s, term->coefficient, atom->low, atom->high, low, high);
  bounds(box, atom->operands[0], how, &least, &most);
  least = poly_plus(layout_poly_linear(s, least, 1, atom->divisor, -1), 1);
  widen(s, q, least, most, low, high);
}

static void bounds(SymbolicBox *box, const SymbolicSum *a, FloorBounds how, Poly *low, Poly *high) {
  Polys *s = box->polys;
  Residue residue;
  for (int i = 0; i < a->count && a->count > 1; i++) {
    const SymbolicSum *rest = layout_sum_without_residue(box, a, i, &residue);
    if (!rest) continue;
    bounds(box, rest, how, low, high);
    widen(s, residue.q, poly_const(0), poly_plus(residue.radix, -1), low, high);
    return;
  }
  *low = *high = a->constant;
  for (int i = 0; i < a->count; i++) add_term(box, &a->terms[i], how, low, high);
}

void layout_sum_bounds(SymbolicBox *box, const SymbolicSum *a, Poly *low, Poly *high) {
  bounds(box, a, BY_FLOOR, low, high);
}

static bool has_floor(const SymbolicBox *box, const SymbolicSum *a) {
  for (int i = 0; i < a->count; i++)
    if (box->atoms[a->terms[i].atom].kind == ATOM_FLOOR) return true;
  return false;
}

static bool at_least(Polys *s, Poly x, Poly least) {
  return poly_fits(x) && poly_nonnegative(layout_poly_linear(s, x, 1, least, -1));
}

// The sum of the bounds of the digits.
static void digit_bounds(SymbolicBox *box, const SymbolicSum *a, Poly *low, Poly *high) {
  SumItem items[MAX_SYMBOLIC_TERMS];
  const SymbolicSum *constant;
  int count = layout_sum_items(box, a, items, &constant);
  *low = *high = count < 0 ? POLY_NONE : constant->constant;
  for (int i = 0; i < count; i++)
    widen(box->polys, items[i].weight, items[i].low, items[i].high, low, high);
}

static void product_bounds(SymbolicBox *box, const SymbolicSum *a, Poly *low, Poly *high) {
  bounds(box, a, BY_PRODUCT, low, high);
}

bool layout_sum_within(SymbolicBox *box, const SymbolicSum *a, Poly least, Poly most) {
  static void (*const ways[])(SymbolicBox *, const SymbolicSum *, Poly *,
                              Poly *) = {layout_sum_bounds, product_bounds, digit_bounds};
  Poly low, high;
  Polys *s = box->polys;
  bool above = !poly_fits(least), below = !poly_fits(most);
  for (int i = 0; i < COUNT_OF(ways) && !(above && below); i++) {
    if (i && !has_floor(box, a)) return false;
    ways[i](box, a, &low, &high);
    above = above || (poly_fits(low) && at_least(s, low, least));
    below = below || (poly_fits(high) && at_least(s, most, high));
  }
  return above && below;
}

// ---- Division ----------------------------------------------------------------------------------

// ⌊(⌊v/y'⌋ + k)/y⌋ = ⌊(v + k·y')/(y'·y)⌋
static void merge_floors(SymbolicBox *box, const SymbolicSum **value, Poly *divisor) {
  Polys *s = box->polys;
  for (int at; (at = layout_sum_atom(*value, true)) >= 0;) {
    const SymbolicAtom *atom = &box->atoms[at];
    if (atom->kind != ATOM_FLOOR) return;
    Poly product = layout_poly_product(s, *divisor, atom->divisor);
    const SymbolicSum *moved = layout_sum_add(
        box, atom->operands[0], layout_sum_of_poly(box, (*value)->constant), atom->divisor);
    if (!moved || !poly_fits(product)) return;
    *value = moved;
    *divisor = product;
  }
}

static const SymbolicSum *floor_sum(SymbolicBox *box, const SymbolicSum *value, Poly divisor) {
  merge_floors(box, &value, &divisor);
  Poly low, high;
  SymbolicAtom atom = {
      .kind = ATOM_FLOOR, .operand_count = 1, .operands = {value}, .divisor = divisor};
  layout_sum_bounds(box, value, &low, &high);
  atom.low = layout_poly_floor(box->polys, low, divisor);
  atom.high = layout_poly_floor(box->polys, high, divisor);
  return layout_sum_of_atom(box, layout_box_atom(box, &atom));
}

// Whether the greatest monomial has a negative coefficient.
static bool leads_down(Poly x) {
  return poly_fits(x) && poly_term(x, 0).coefficient < 0;
}

// x = y·q + r. The rest is not negative, or with `toward_zero` has the sign of x.
static void split_poly(Polys *s, Poly x, Poly y, bool toward_zero, Poly *q, Poly *r) {
  bool negative = toward_zero && leads_down(x);
  if (negative) x = layout_poly_times(s, x, -1);
  layout_poly_divide(s, x, y, q, r);
  if (!negative || !poly_fits(*q) || !poly_fits(*r)) return;
  *q = layout_poly_times(s, *q, -1);
  *r = layout_poly_times(s, *r, -1);
}

static void append_term(SymbolicSum *sum, Poly coefficient, int atom) {
  if (!poly_is_zero(coefficient)) sum->terms[sum->count++] = (SymbolicTerm){coefficient, atom};
}

// a = y·q + r, term by term.
static bool split_terms(SymbolicBox *box, const SymbolicSum *a, Poly y, bool toward_zero,
                        const SymbolicSum **q, const SymbolicSum **r) {
  Polys *s = box->polys;
  Poly whole, rest;
  layout_poly_divide(s, a->constant, y, &whole, &rest);
  SymbolicSum *wholes = new_sum(box, whole, a->count), *rests = new_sum(box, rest, a->count);
  if (!wholes || !rests) return false;
  for (int i = 0; i < a->count; i++) {
    split_poly(s, a->terms[i].coefficient, y, toward_zero, &whole, &rest);
    if (!poly_fits(whole) || !poly_fits(rest)) return false;
    append_term(wholes, whole, a->terms[i].atom);
    append_term(rests, rest, a->terms[i].atom);
  }
  *q = wholes;
  *r = rests;
  return true;
}

// q - 1, q or q + 1 where r is proved to be in [-y, 0), [0, y) or [y, 2y).
static const SymbolicSum *quotient(SymbolicBox *box, const SymbolicSum *q, const SymbolicSum *r,
                                   Poly y) {
  static const int shifts[] = {0, -1, 1};
  Polys *s = box->polys;
  if (!r->count && poly_is_zero(r->constant)) return q;
  Poly one = poly_const(1), last = poly_plus(y, -1);
  for (size_t i = 0; i < COUNT_OF(shifts) && poly_fits(last); i++) {
    Poly from = layout_poly_linear(s, y, shifts[i], one, 0);
    Poly to = layout_poly_linear(s, last, 1, y, shifts[i]);
    if (poly_fits(from) && poly_fits(to) && layout_sum_within(box, r, from, to))
      return layout_sum_plus(box, q, layout_sum_const(box, shifts[i]), 1);
  }
  return NULL;
}

// ⌊⊕ operands / 2ʲ⌋ = ⊕ ⌊operand / 2ʲ⌋
static const SymbolicSum *divide_xor(SymbolicBox *box, const SymbolicSum *a, Poly y) {
  int64_t value;
  int at = layout_sum_atom(a, false);
  if (at < 0 || box->atoms[at].kind != ATOM_XOR || !poly_is_const(y, &value) || value & (value - 1))
    return NULL;
  const SymbolicAtom atom = box->atoms[at];
  const SymbolicSum *out = layout_sum_const(box, 0);
  for (int i = 0; i < atom.operand_count; i++)
    out = layout_sum_xor(box, out, layout_sum_divide(box, atom.operands[i], y));
  return out;
}

// ⌊(g·v + r)/(g·m)⌋ = ⌊v/m⌋ where 0 <= r < g; g is a coefficient.
static const SymbolicSum *divide_by_factor(SymbolicBox *box, const SymbolicSum *a, Poly y) {
  Polys *s = box->polys;
  for (int i = 0; i < a->count; i++) {
    Poly g = a->terms[i].coefficient, m;
    const SymbolicSum *q, *r;
    int64_t c;
    if ((poly_is_const(g, &c) && c == 1) || !poly_positive(g)) continue;
    if (!poly_fits((m = layout_poly_exact(s, y, g))) || !split_terms(box, a, g, false, &q, &r))
      continue;
    const SymbolicSum *v = quotient(box, q, r, g);
    if (v) return layout_sum_divide(box, v, m);
  }
  return NULL;
}

// The quotient of the digits whose weights y divides, where the sum of the others stays below y.
static const SymbolicSum *divide_digits(SymbolicBox *box, const SymbolicSum *a, Poly y) {
  SumItem items[MAX_SYMBOLIC_TERMS];
  const SymbolicSum *constant, *above, *below;
  int count = has_floor(box, a) ? layout_sum_items(box, a, items, &constant) : -1;
  if (count < 1) return NULL;
  Poly q, r;
  layout_poly_divide(box->polys, constant->constant, y, &q, &r);
  layout_sum_split_items(box, items, count, y, &above, &below);
  if (!poly_fits(q) || !poly_fits(r) || !above || !below) return NULL;
  above = layout_sum_offset(box, above, q);
  below = layout_sum_offset(box, below, r);
  return above && below ? quotient(box, above, below, y) : NULL;
}

static bool has_negative(const SymbolicSum *a) {
  for (int i = 0; i < a->count; i++)
    if (leads_down(a->terms[i].coefficient)) return true;
  return false;
}

const SymbolicSum *layout_sum_divide(SymbolicBox *box, const SymbolicSum *a, Poly y) {
  const SymbolicSum *q, *r, *exact;
  if (!a || !poly_fits(y) || !split_terms(box, a, y, true, &q, &r)) return NULL;
  const SymbolicSum *whole = q, *rest = r;
  if ((exact = quotient(box, q, r, y))) return exact;
  if (has_negative(a) && split_terms(box, a, y, false, &q, &r) && (exact = quotient(box, q, r, y)))
    return exact;
  if ((exact = divide_digits(box, a, y))) return exact;
  const SymbolicSum *top = divide_xor(box, rest, y);
  if (!top) top = divide_by_factor(box, rest, y);
  return layout_sum_plus(box, whole, top ? top : floor_sum(box, rest, y), 1);
}

const SymbolicSum *layout_sum_modulo(SymbolicBox *box, const SymbolicSum *a, Poly y) {
  const SymbolicSum *q = layout_sum_divide(box, a, y);
  return layout_sum_subtract(box, a, q, y);
}

// ---- Boxes -------------------------------------------------------------------------------------

bool layout_box_init(SymbolicBox *box, Polys *polys, const LayoutExpr *const *extents, int rank,
                     const SymbolicSum **axes) {
  box->polys = polys;
  box->axis_count = box->atom_count = rank;
  if (rank > MAX_ATOMS / 2) return false;
  for (int i = 0; i < rank; i++) {
    Poly extent = layout_poly_of(polys, extents[i]);
    if (!poly_fits(extent)) return false;
    Poly last = poly_plus(extent, -1);
    box->atoms[i] = (SymbolicAtom){.kind = ATOM_AXIS, .low = poly_const(0), .high = last};
    axes[i] = poly_fits(last) && poly_is_zero(last) ? layout_sum_const(box, 0)
                                                    : layout_sum_of_atom(box, i);
  }
  return true;
}

bool layout_symbolic_maps_equal(Context *context, const Layout *layout,
                                const LayoutExpr *const *other) {
  ArenaMark mark = arena_mark(&context->scratch);
  Polys polys = layout_polys_new(context, layout->facts);
  SymbolicBox one, *box = &one;
  const SymbolicSum *axes[MAX_RANK];
  bool equal = layout_box_init(box, &polys, layout->shape, layout_box_rank(layout), axes);
  for (int i = 0; i < layout->physical_rank && equal; i++)
    equal = layout->map->outputs[i] == other[i] ||
            layout_sum_same(layout_sum_of(box, layout->map->outputs[i], axes),
                            layout_sum_of(box, other[i], axes));
  arena_reset(&context->scratch, mark);
  return equal;
}

bool layout_symbolic_same_extent(Context *context, LayoutFacts facts, const LayoutExpr *a,
                                 const LayoutExpr *b) {
  if (a == b) return true;
  ArenaMark mark = arena_mark(&context->scratch);
  Polys polys = layout_polys_new(context, facts);
  bool same = poly_same(layout_poly_of(&polys, a), layout_poly_of(&polys, b));
  arena_reset(&context->scratch, mark);
  return same;
}

bool layout_symbolic_same_extents(Context *context, LayoutFacts facts, const LayoutExpr *const *a,
                                  const LayoutExpr *const *b, int count) {
  for (int i = 0; i < count; i++)
    if (!layout_symbolic_same_extent(context, facts, a[i], b[i])) return false;
  return true;
}
