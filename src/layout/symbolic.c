// SPDX-License-Identifier: Apache-2.0
// Layouts of symbolic extents: forms `p + Σ pᵢ·atomᵢ` whose coefficients are polynomials over the
// symbols and whose atoms are axes and floors. Proves "yes" only; "no" needs an instance
// (instance.c).
//
//   (h·W + w) // W  =>  h       since w is in [0, W - 1]
//   c // 16, c % 16             with the atom ⌊c/16⌋ and c - 16·⌊c/16⌋
#include "layout/poly.h"

enum { MAX_ATOMS = 64, MAX_PARTS = 48, MAX_ROUNDS = 32 };

typedef struct Part {
  const Poly *coefficient;
  int atom;
} Part;

typedef struct Sum {
  const Poly *constant;
  int count;
  Part *parts; // by atom, coefficients not 0
} Sum;

typedef struct Atom {
  int axis; // -1: ⌊value/divisor⌋
  const Sum *value;
  const Poly *divisor;
  const Poly *low, *high; // NULL: not known
} Atom;

// A box with symbolic extents and the atoms over it.
typedef struct Box {
  Polys *polys;
  int axis_count, atom_count;
  Atom atoms[MAX_ATOMS];
} Box;

// ---- Sums --------------------------------------------------------------------------------------

static bool is_zero(const Poly *p) {
  return p->count == 0;
}

static Sum *new_sum(Box *box, const Poly *constant, int count) {
  Sum *sum = arena_new(box->polys->arena, Sum);
  *sum = (Sum){constant, 0, arena_array(box->polys->arena, Part, count)};
  return constant ? sum : NULL;
}

static const Sum *sum_of_poly(Box *box, const Poly *p) {
  return new_sum(box, p, 0);
}

static const Sum *sum_of_atom(Box *box, int atom) {
  Sum *sum = new_sum(box, layout_poly_const(box->polys, 0), 1);
  sum->parts[sum->count++] = (Part){layout_poly_const(box->polys, 1), atom};
  return sum;
}

// a + b·y with a polynomial y.
static const Sum *sum_add(Box *box, const Sum *a, const Sum *b, const Poly *y) {
  if (!a || !b || !y) return NULL;
  Polys *s = box->polys;
  const Poly *zero = layout_poly_const(s, 0);
  Sum *out =
      new_sum(box, layout_poly_linear(s, a->constant, 1, layout_poly_product(s, b->constant, y), 1),
              a->count + b->count);
  for (int i = 0, j = 0; out && (i < a->count || j < b->count);) {
    bool left = i < a->count && (j == b->count || a->parts[i].atom <= b->parts[j].atom);
    bool right = j < b->count && (i == a->count || b->parts[j].atom <= a->parts[i].atom);
    int atom = left ? a->parts[i].atom : b->parts[j].atom;
    const Poly *p = left ? a->parts[i++].coefficient : zero;
    const Poly *q = right ? layout_poly_product(s, b->parts[j++].coefficient, y) : zero;
    const Poly *coefficient = layout_poly_linear(s, p, 1, q, 1);
    if (!coefficient) return NULL;
    if (!is_zero(coefficient)) out->parts[out->count++] = (Part){coefficient, atom};
  }
  return out;
}

static bool sum_same(const Sum *a, const Sum *b) {
  if (!a || !b || a->count != b->count || !layout_poly_same(a->constant, b->constant)) return false;
  for (int i = 0; i < a->count; i++)
    if (a->parts[i].atom != b->parts[i].atom ||
        !layout_poly_same(a->parts[i].coefficient, b->parts[i].coefficient))
      return false;
  return true;
}

static bool nonpositive(Polys *s, const Poly *p) {
  return layout_poly_nonnegative(layout_poly_linear(s, p, -1, p, 0));
}

// q·(inner mod radix), as part of a sum.
typedef struct Residue {
  const Poly *q, *radix;
  const Sum *inner;
} Residue;

// a - q·(inner mod radix), with ⌊inner/radix⌋ the floor of part `at`; NULL where a does not contain
// that.
static const Sum *without(Box *box, const Sum *a, int at, const Sum *inner, const Poly *radix,
                          Residue *out) {
  Polys *s = box->polys;
  const Poly *r, *minus = layout_poly_const(s, -1);
  *out = (Residue){.radix = radix, .inner = inner};
  layout_poly_divide(s, layout_poly_product(s, a->parts[at].coefficient, minus), radix, &out->q,
                     &r);
  if (!out->q || !r || !is_zero(r)) return NULL;
  const Sum *rest = sum_add(box, a, inner, layout_poly_product(s, out->q, minus));
  rest = sum_add(box, rest, sum_of_atom(box, a->parts[at].atom),
                 layout_poly_product(s, out->q, radix));
  bool smaller = rest && inner->count && rest->count + inner->count + 1 == a->count;
  return smaller ? rest : NULL;
}

// The residue that the floor ⌊v/y⌋ of part `at` belongs to: of v, or of ⌊v/y'⌋ where y' divides y.
static const Sum *without_residue(Box *box, const Sum *a, int at, Residue *out) {
  const Atom *atom = &box->atoms[a->parts[at].atom];
  if (atom->axis >= 0) return NULL;
  const Sum *rest = without(box, a, at, atom->value, atom->divisor, out);
  for (int i = 0; i < a->count && !rest; i++) {
    const Atom *finer = &box->atoms[a->parts[i].atom];
    const Poly *radix, *r;
    if (i == at || finer->axis >= 0 || !sum_same(finer->value, atom->value)) continue;
    layout_poly_divide(box->polys, atom->divisor, finer->divisor, &radix, &r);
    if (radix && r && is_zero(r))
      rest = without(box, a, at, sum_of_atom(box, a->parts[i].atom), radix, out);
  }
  return rest;
}

static const Poly *add_product(Polys *s, const Poly *sum, const Poly *a, const Poly *b) {
  return sum && b ? layout_poly_linear(s, sum, 1, layout_poly_product(s, a, b), 1) : NULL;
}

// *low + c·[least, most]; NULL where not known.
static void widen(Polys *s, const Poly *c, const Poly *least, const Poly *most, const Poly **low,
                  const Poly **high) {
  bool up = layout_poly_nonnegative(c), down = !up && nonpositive(s, c);
  *low = add_product(s, *low, c, up ? least : down ? most : NULL);
  *high = add_product(s, *high, c, up ? most : down ? least : NULL);
}

// Bounds as polynomials; NULL where not known.
static void sum_bounds(Box *box, const Sum *a, const Poly **low, const Poly **high) {
  Polys *s = box->polys;
  const Poly *zero = layout_poly_const(s, 0), *one = layout_poly_const(s, 1);
  Residue residue;
  for (int i = 0; i < a->count; i++) {
    const Sum *rest = without_residue(box, a, i, &residue);
    if (!rest) continue;
    sum_bounds(box, rest, low, high);
    widen(s, residue.q, zero, layout_poly_linear(s, residue.radix, 1, one, -1), low, high);
    return;
  }
  *low = *high = a->constant;
  for (int i = 0; i < a->count; i++) {
    const Atom *atom = &box->atoms[a->parts[i].atom];
    widen(s, a->parts[i].coefficient, atom->low, atom->high, low, high);
  }
}

// low <= a <= high as polynomials, proved.
static bool proves_range(Box *box, const Sum *a, const Poly *least, const Poly *most) {
  const Poly *low, *high;
  sum_bounds(box, a, &low, &high);
  return low && high &&
         layout_poly_nonnegative(layout_poly_linear(box->polys, low, 1, least, -1)) &&
         layout_poly_nonnegative(layout_poly_linear(box->polys, most, 1, high, -1));
}

// ---- Division ----------------------------------------------------------------------------------

static int floor_atom(Box *box, const Sum *value, const Poly *divisor) {
  for (int i = 0; i < box->atom_count; i++)
    if (box->atoms[i].axis < 0 && sum_same(box->atoms[i].value, value) &&
        layout_poly_same(box->atoms[i].divisor, divisor))
      return i;
  if (box->atom_count == MAX_ATOMS) return -1;
  const Poly *low, *high;
  sum_bounds(box, value, &low, &high);
  box->atoms[box->atom_count] =
      (Atom){.axis = -1,
             .value = value,
             .divisor = divisor,
             .low = low ? layout_poly_floor(box->polys, low, divisor) : NULL,
             .high = high ? layout_poly_floor(box->polys, high, divisor) : NULL};
  return box->atom_count++;
}

// a = y·q + r, part by part.
static bool split_parts(Box *box, const Sum *a, const Poly *y, const Sum **q, const Sum **r) {
  Polys *s = box->polys;
  const Poly *whole, *rest;
  layout_poly_divide(s, a->constant, y, &whole, &rest);
  if (!whole || !rest) return false;
  *q = sum_of_poly(box, whole);
  *r = sum_of_poly(box, rest);
  for (int i = 0; i < a->count; i++) {
    layout_poly_divide(s, a->parts[i].coefficient, y, &whole, &rest);
    *q = sum_add(box, *q, sum_of_atom(box, a->parts[i].atom), whole);
    *r = sum_add(box, *r, sum_of_atom(box, a->parts[i].atom), rest);
  }
  return *q && *r;
}

static const Sum *sum_divide(Box *box, const Sum *a, const Poly *y) {
  Polys *s = box->polys;
  const Sum *q, *r;
  const Poly *one = layout_poly_const(s, 1), *last = layout_poly_linear(s, y, 1, one, -1);
  if (!a || !y || !split_parts(box, a, y, &q, &r)) return NULL;
  for (int shift = 0; shift >= -1; shift--) { // r in [0, y), or in [-y, 0)
    const Poly *from = layout_poly_linear(s, y, shift, one, 0);
    const Poly *to = layout_poly_linear(s, last, 1, y, shift);
    if (from && to && proves_range(box, r, from, to))
      return sum_add(box, q, sum_of_poly(box, one), layout_poly_const(s, shift));
  }
  int atom = floor_atom(box, r, y);
  return atom < 0 ? NULL : sum_add(box, q, sum_of_atom(box, atom), one);
}

static const Sum *sum_modulo(Box *box, const Sum *a, const Poly *y) {
  const Sum *q = sum_divide(box, a, y);
  return q ? sum_add(box, a, q, layout_poly_linear(box->polys, y, -1, y, 0)) : NULL;
}

// ---- Expressions -------------------------------------------------------------------------------

static bool constant_sum(const Sum *a, const Poly **value) {
  if (!a || a->count) return false;
  *value = a->constant;
  return true;
}

static bool is_positive(Polys *s, const Poly *p) {
  return layout_poly_nonnegative(layout_poly_linear(s, p, 1, layout_poly_const(s, 1), -1));
}

// `axes[i]` is the value of axis i.
static const Sum *sum_of(Box *box, const LayoutExpr *e, const Sum *const *axes) {
  Polys *s = box->polys;
  const Poly *p, *one = layout_poly_const(s, 1);
  if (e->op == LAYOUT_AXIS) return axes[e->value];
  if (!e->args[0] || e->op == LAYOUT_DIV || e->op == LAYOUT_MOD) {
    p = layout_poly_of(s, e); // of symbols alone
    if (p || !e->args[0]) return sum_of_poly(box, p);
  }
  if (layout_op_arguments(e->op) != 2) return NULL;
  const Sum *a = sum_of(box, e->args[0], axes), *b = sum_of(box, e->args[1], axes);
  if (!a || !b) return NULL;
  switch ((int)e->op) {
  case LAYOUT_ADD: return sum_add(box, a, b, one);
  case LAYOUT_SUB: return sum_add(box, a, b, layout_poly_const(s, -1));
  case LAYOUT_MUL:
    if (constant_sum(b, &p)) return sum_add(box, sum_of_poly(box, layout_poly_const(s, 0)), a, p);
    if (constant_sum(a, &p)) return sum_add(box, sum_of_poly(box, layout_poly_const(s, 0)), b, p);
    return NULL;
  case LAYOUT_DIV: return constant_sum(b, &p) && is_positive(s, p) ? sum_divide(box, a, p) : NULL;
  case LAYOUT_MOD: return constant_sum(b, &p) && is_positive(s, p) ? sum_modulo(box, a, p) : NULL;
  }
  return NULL;
}

static const LayoutExpr *sum_expr(Box *box, const Sum *a);

static const LayoutExpr *atom_expr(Box *box, int at) {
  const Atom *atom = &box->atoms[at];
  Context *context = box->polys->context;
  if (atom->axis >= 0) return layout_axis(context, atom->axis);
  const LayoutExpr *value = sum_expr(box, atom->value);
  const LayoutExpr *divisor = layout_poly_expr(box->polys, atom->divisor);
  return value && divisor ? layout_expr(context, LAYOUT_DIV, value, divisor, NULL) : NULL;
}

// Residues are printed as such: *out receives q·(v % y) for the floor of part `at`.
static const Sum *take_residue(Box *box, const Sum *a, int at, const LayoutExpr **out) {
  Polys *s = box->polys;
  Residue residue;
  const Sum *rest = without_residue(box, a, at, &residue);
  if (!rest) return a;
  const LayoutExpr *value = sum_expr(box, residue.inner);
  const LayoutExpr *divisor = layout_poly_expr(s, residue.radix);
  const LayoutExpr *factor = layout_poly_expr(s, residue.q);
  if (!value || !divisor || !factor) return a;
  const LayoutExpr *e = layout_expr(s->context, LAYOUT_MOD, value, divisor, NULL);
  e = layout_expr(s->context, LAYOUT_MUL, e, factor, NULL);
  *out = *out ? layout_expr(s->context, LAYOUT_ADD, *out, e, NULL) : e;
  return rest;
}

static const LayoutExpr *sum_expr(Box *box, const Sum *a) {
  Context *context = box->polys->context;
  const LayoutExpr *sum = NULL;
  for (int i = a->count - 1; i >= 0; i = MIN_OF(i, a->count) - 1) a = take_residue(box, a, i, &sum);
  for (int i = 0; i < a->count; i++) {
    const LayoutExpr *factor = layout_poly_expr(box->polys, a->parts[i].coefficient);
    const LayoutExpr *e = atom_expr(box, a->parts[i].atom);
    if (!factor || !e) return NULL;
    e = layout_expr(context, LAYOUT_MUL, e, factor, NULL);
    sum = sum ? layout_expr(context, LAYOUT_ADD, sum, e, NULL) : e;
  }
  const LayoutExpr *constant = layout_poly_expr(box->polys, a->constant);
  if (!constant) return NULL;
  return sum ? layout_expr(context, LAYOUT_ADD, sum, constant, NULL) : constant;
}

// ---- Boxes -------------------------------------------------------------------------------------

// Axis i runs over 0 .. extents[i] - 1. *axes receives the axes as sums.
static bool box_init(Box *box, Polys *polys, const LayoutExpr *const *extents, int rank,
                     const Sum **axes) {
  box->polys = polys;
  box->axis_count = box->atom_count = rank;
  if (rank > MAX_ATOMS / 2) return false;
  for (int i = 0; i < rank; i++) {
    const Poly *extent = layout_poly_of(polys, extents[i]);
    const Poly *one = layout_poly_const(polys, 1), *zero = layout_poly_const(polys, 0);
    if (!extent) return false;
    const Poly *last = layout_poly_linear(polys, extent, 1, one, -1);
    box->atoms[i] = (Atom){.axis = i, .low = zero, .high = last};
    axes[i] = last && is_zero(last) ? sum_of_poly(box, zero) : sum_of_atom(box, i);
  }
  return true;
}

bool layout_symbolic_equal(Context *context, const Layout *layout, const LayoutExpr *const *other) {
  ArenaMark mark = arena_mark(&context->scratch);
  Polys polys = layout_polys_new(context, layout->facts);
  Box *box = arena_new(&context->scratch, Box);
  const Sum *axes[MAX_RANK];
  bool equal = box_init(box, &polys, layout->shape, layout_box_rank(layout), axes);
  for (int i = 0; i < layout->physical_rank && equal; i++)
    equal = layout->map->outputs[i] == other[i] ||
            sum_same(sum_of(box, layout->map->outputs[i], axes), sum_of(box, other[i], axes));
  arena_reset(&context->scratch, mark);
  return equal;
}

bool layout_symbolic_same_extent(Context *context, LayoutFacts facts, const LayoutExpr *a,
                                 const LayoutExpr *b) {
  if (a == b) return true;
  ArenaMark mark = arena_mark(&context->scratch);
  Polys polys = layout_polys_new(context, facts);
  bool same = layout_poly_same(layout_poly_of(&polys, a), layout_poly_of(&polys, b));
  arena_reset(&context->scratch, mark);
  return same;
}

// ---- Inverse -----------------------------------------------------------------------------------

typedef struct Equation {
  const Sum *form;  // over the logical box
  const Sum *value; // over the physical box
} Equation;

typedef struct Inversion {
  Polys polys;
  Box logical, physical;
  const Sum *axes[MAX_RANK], *places[MAX_RANK], *outputs[MAX_RANK];
  const Sum *known[MAX_ATOMS]; // values of the logical atoms
  Equation equations[MAX_PARTS];
  int equation_count;
  bool progress;
} Inversion;

// Moves the constant and what is known to the other side.
static void take_out_known(Inversion *v, Equation *e) {
  Polys *s = &v->polys;
  const Poly *minus = layout_poly_const(s, -1), *constant = e->form->constant;
  e->value = sum_add(&v->physical, e->value, sum_of_poly(&v->physical, constant), minus);
  e->form = sum_add(&v->logical, e->form, sum_of_poly(&v->logical, constant), minus);
  const Sum *form = e->form;
  if (!form) return;
  for (int i = 0; i < form->count && e->form && e->value; i++) {
    const Part *part = &form->parts[i];
    const Poly *negative = layout_poly_product(s, part->coefficient, minus);
    if (!v->known[part->atom]) continue;
    e->form = sum_add(&v->logical, e->form, sum_of_atom(&v->logical, part->atom), negative);
    e->value = sum_add(&v->physical, e->value, v->known[part->atom], negative);
  }
}

static void learn(Inversion *v, int atom, const Sum *value) {
  if (!value || v->known[atom]) return;
  v->known[atom] = value;
  v->progress = true;
}

// form = c·atom + rest with rest in [0, c) by its bounds, c proved positive: both are known.
static bool separate(Inversion *v, const Equation *e, int at) {
  Polys *s = &v->polys;
  const Poly *c = e->form->parts[at].coefficient, *one = layout_poly_const(s, 1);
  const Sum *atom = sum_of_atom(&v->logical, e->form->parts[at].atom);
  if (!is_positive(s, c)) return false;
  const Sum *rest = sum_add(&v->logical, e->form, atom, layout_poly_linear(s, c, -1, c, 0));
  const Poly *last = layout_poly_linear(s, c, 1, one, -1);
  if (!rest || !last || !proves_range(&v->logical, rest, layout_poly_const(s, 0), last))
    return false;
  const Sum *above = sum_divide(&v->physical, e->value, c);
  learn(v, e->form->parts[at].atom, above);
  const Sum *below = sum_modulo(&v->physical, e->value, c);
  if (rest->count && below && v->equation_count < MAX_PARTS)
    v->equations[v->equation_count++] = (Equation){rest, below};
  return above && below;
}

static void work(Inversion *v, Equation e) {
  take_out_known(v, &e);
  if (!e.form || !e.value || !e.form->count) return;
  for (int i = 0; i < e.form->count; i++)
    if (separate(v, &e, i)) return;
  int64_t c;
  if (e.form->count == 1 && layout_poly_is_const(e.form->parts[0].coefficient, &c) && c == -1) {
    const Sum *zero = sum_of_poly(&v->physical, e.form->constant);
    return learn(v, e.form->parts[0].atom,
                 sum_add(&v->physical, zero, e.value, e.form->parts[0].coefficient));
  }
  if (v->equation_count < MAX_PARTS) v->equations[v->equation_count++] = e;
}

static bool axes_known(Inversion *v, int rank) {
  bool all = true;
  for (int i = 0; i < rank; i++) {
    if (!v->axes[i]->count)
      v->known[i] = sum_of_poly(&v->physical, layout_poly_const(&v->polys, 0));
    all = all && v->known[i];
  }
  return all;
}

// Floors of what is known are known.
static void relate_floors(Inversion *v) {
  for (int i = v->logical.axis_count; i < v->logical.atom_count; i++) {
    const Atom *atom = &v->logical.atoms[i];
    if (v->known[i]) continue;
    Equation e = {atom->value, sum_of_poly(&v->physical, layout_poly_const(&v->polys, 0))};
    take_out_known(v, &e);
    if (!e.form || !e.value || e.form->count) continue;
    const Sum *zero = sum_of_poly(&v->physical, layout_poly_const(&v->polys, 0));
    const Sum *value = sum_add(&v->physical, zero, e.value, layout_poly_const(&v->polys, -1));
    learn(v, i, sum_divide(&v->physical, value, atom->divisor));
  }
}

static bool propagate(Inversion *v, int rank) {
  for (int round = 0; round < MAX_ROUNDS; round++) {
    Equation todo[MAX_PARTS];
    int count = v->equation_count;
    memcpy(todo, v->equations, sizeof *todo * (size_t)count);
    v->equation_count = 0;
    v->progress = false;
    for (int i = 0; i < count; i++) work(v, todo[i]);
    relate_floors(v);
    if (axes_known(v, rank)) return true;
    if (!v->progress && v->equation_count == count) return false;
  }
  return false;
}

static bool start(Inversion *v, const Layout *layout) {
  const IndexMap *map = layout->map;
  if (!box_init(&v->logical, &v->polys, layout->shape, layout->rank, v->axes) ||
      !box_init(&v->physical, &v->polys, layout->physical, layout->physical_rank, v->places))
    return false;
  if (map->output_count > MAX_PARTS) return false;
  for (int i = 0; i < map->output_count; i++) {
    v->outputs[i] = sum_of(&v->logical, map->outputs[i], v->axes);
    if (!v->outputs[i]) return false;
    v->equations[v->equation_count++] = (Equation){v->outputs[i], v->places[i]};
  }
  return true;
}

static const LayoutExpr *either(Context *context, const LayoutExpr *a, const LayoutExpr *b) {
  return a ? layout_expr(context, LAYOUT_EITHER, a, b, NULL) : b;
}

// The claims that make a place padding, as in digits.c.
static bool padding_claims(Inversion *v, const Layout *layout, const LayoutExpr *const *inverse,
                           const LayoutExpr **padding) {
  Context *context = v->polys.context;
  Polys *s = &v->polys;
  for (int i = 0; i < layout->rank; i++) {
    const Poly *low, *high, *extent = layout_poly_of(s, layout->shape[i]);
    sum_bounds(&v->physical, v->known[i], &low, &high);
    if (!low || !layout_poly_nonnegative(low))
      *padding =
          either(context, *padding,
                 layout_expr(context, LAYOUT_LT, inverse[i], layout_const(context, 0), NULL));
    if (!high || !is_positive(s, layout_poly_linear(s, extent, 1, high, -1)))
      *padding = either(context, *padding,
                        layout_expr(context, LAYOUT_LE, layout->shape[i], inverse[i], NULL));
  }
  for (int i = 0; i < layout->physical_rank; i++) {
    const Sum *back = sum_of(&v->physical, layout->map->outputs[i], v->known);
    const LayoutExpr *e = back ? sum_expr(&v->physical, back) : NULL;
    if (!e) return false;
    if (sum_same(back, v->places[i])) continue;
    *padding = either(context, *padding,
                      layout_expr(context, LAYOUT_NE, e, layout_axis(context, i), NULL));
  }
  return true;
}

static bool invert(Inversion *v, const Layout *layout, LayoutInverse *out) {
  Context *context = v->polys.context;
  const LayoutExpr *outputs[MAX_RANK], *padding = NULL;
  Str names[MAX_RANK];
  if (!start(v, layout) || !propagate(v, layout->rank)) return false;
  for (int i = 0; i < layout->rank; i++) {
    if (!(outputs[i] = sum_expr(&v->physical, v->known[i]))) return false;
    if (!sum_same(sum_of(&v->logical, outputs[i], v->outputs), v->axes[i])) return false;
  }
  if (!padding_claims(v, layout, outputs, &padding)) return false;
  for (int i = 0; i < layout->physical_rank; i++) names[i] = str_format(context, "p%d", i);
  out->map =
      index_map_new(context, layout->physical_rank, names, layout->rank, outputs, NULL, NULL, 0);
  out->padding = padding;
  return true;
}

bool layout_symbolic_inverse(Context *context, const Layout *layout, LayoutInverse *out) {
  ArenaMark mark = arena_mark(&context->scratch);
  Inversion *v = arena_new(&context->scratch, Inversion);
  v->polys = layout_polys_new(context, layout->facts);
  bool found = invert(v, layout, out);
  arena_reset(&context->scratch, mark);
  return found;
}

// ---- Physical extents --------------------------------------------------------------------------

typedef struct Interval {
  const Poly *low, *high;
} Interval;

static Interval interval_of(Box *box, const LayoutExpr *e);

static Interval interval_product(Polys *s, Interval a, const Poly *c) {
  bool up = layout_poly_nonnegative(c);
  if (!up && !nonpositive(s, c)) return (Interval){NULL, NULL};
  const Poly *x = layout_poly_product(s, a.low, c), *y = layout_poly_product(s, a.high, c);
  return up ? (Interval){x, y} : (Interval){y, x};
}

// Interval arithmetic on the text: `e % m` spans m whatever e is.
static Interval operation_interval(Box *box, const LayoutExpr *e) {
  Polys *s = box->polys;
  Interval none = {NULL, NULL}, a = interval_of(box, e->args[0]);
  const Poly *zero = layout_poly_const(s, 0), *one = layout_poly_const(s, 1);
  if (!e->args[1]) return none;
  Interval b = interval_of(box, e->args[1]);
  bool fixed = layout_poly_same(b.low, b.high), positive = fixed && is_positive(s, b.low);
  switch ((int)e->op) {
  case LAYOUT_ADD:
    return (Interval){layout_poly_linear(s, a.low, 1, b.low, 1),
                      layout_poly_linear(s, a.high, 1, b.high, 1)};
  case LAYOUT_SUB:
    return (Interval){layout_poly_linear(s, a.low, 1, b.high, -1),
                      layout_poly_linear(s, a.high, 1, b.low, -1)};
  case LAYOUT_MUL:
    if (fixed) return interval_product(s, a, b.low);
    return layout_poly_same(a.low, a.high) ? interval_product(s, b, a.low) : none;
  case LAYOUT_DIV:
    if (!positive) return none;
    return (Interval){a.low ? layout_poly_floor(s, a.low, b.low) : NULL,
                      a.high ? layout_poly_floor(s, a.high, b.low) : NULL};
  case LAYOUT_MOD:
    return positive ? (Interval){zero, layout_poly_linear(s, b.low, 1, one, -1)} : none;
  }
  return none;
}

static Interval interval_of(Box *box, const LayoutExpr *e) {
  if (e->op == LAYOUT_AXIS) return (Interval){box->atoms[e->value].low, box->atoms[e->value].high};
  if (e->args[0]) return operation_interval(box, e);
  const Poly *p = layout_poly_of(box->polys, e);
  return (Interval){p, p};
}

// Whether the exact bounds of output i stay within [0, extent).
static bool proves_inside(Box *box, const LayoutExpr *e, const LayoutExpr *extent,
                          const Sum *const *axes) {
  Polys *s = box->polys;
  const Poly *size = layout_poly_of(s, extent), *zero = layout_poly_const(s, 0);
  const Sum *sum = sum_of(box, e, axes);
  if (!size || !sum) return false;
  const Poly *last = layout_poly_linear(s, size, 1, layout_poly_const(s, 1), -1);
  return last && proves_range(box, sum, zero, last);
}

static int derive(Box *box, const Layout *layout, const LayoutExpr *const *given,
                  const LayoutExpr **physical, const Sum *const *axes) {
  Polys *s = box->polys;
  const Poly *one = layout_poly_const(s, 1);
  for (int i = 0; i < layout->physical_rank; i++) {
    const LayoutExpr *e = layout->map->outputs[i];
    Interval range = interval_of(box, e);
    const Poly *size = range.high ? layout_poly_linear(s, range.high, 1, one, 1) : NULL;
    physical[i] = given ? given[i] : size ? layout_poly_expr(s, size) : NULL;
    if (!physical[i]) return i;
    bool inside = range.low && layout_poly_nonnegative(range.low) && size &&
                  layout_poly_same(layout_poly_of(s, physical[i]), size);
    if (!inside && !proves_inside(box, e, physical[i], axes)) return i;
  }
  return -1;
}

int layout_symbolic_extents(Context *context, const Layout *layout, const LayoutExpr *const *given,
                            const LayoutExpr **physical) {
  ArenaMark mark = arena_mark(&context->scratch);
  Polys polys = layout_polys_new(context, layout->facts);
  Box *box = arena_new(&context->scratch, Box);
  const Sum *axes[MAX_RANK];
  int bad = box_init(box, &polys, layout->shape, layout_box_rank(layout), axes)
                ? derive(box, layout, given, physical, axes)
                : 0;
  arena_reset(&context->scratch, mark);
  return bad;
}
