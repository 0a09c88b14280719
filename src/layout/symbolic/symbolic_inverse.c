// SPDX-License-Identifier: Apache-2.0
// The inverse of a symbolic map by propagation, as solve.c does it for static ones.
#include "layout/digits/digits.h"
#include "layout/symbolic/sums.h"

enum { MAX_ROUNDS = 32 };

typedef struct SymbolicEquation {
  const SymbolicSum *form;  // over the logical box
  const SymbolicSum *value; // over the physical box
} SymbolicEquation;

typedef struct SymbolicInversion {
  Polys polys;
  SymbolicBox logical, physical;
  const SymbolicSum *axes[MAX_RANK], *positions[MAX_RANK], *outputs[MAX_RANK];
  const SymbolicSum *back[MAX_RANK];   // outputs ∘ inverse
  const SymbolicSum *known[MAX_ATOMS]; // values of the logical atoms
  SymbolicEquation equations[MAX_SYMBOLIC_TERMS];
  int equation_count;
  bool progress;
  bool assumed[MAX_ATOMS]; // the operands, in a section
} SymbolicInversion;

// Moves the constant and what is known to the other side.
static void take_out_known(SymbolicInversion *v, SymbolicEquation *e) {
  Polys *s = &v->polys;
  const Poly *minus = layout_poly_const(s, -1), *constant = e->form->constant;
  e->value =
      layout_sum_add(&v->physical, e->value, layout_sum_of_poly(&v->physical, constant), minus);
  e->form = layout_sum_add(&v->logical, e->form, layout_sum_of_poly(&v->logical, constant), minus);
  const SymbolicSum *form = e->form;
  if (!form) return;
  for (int i = 0; i < form->count && e->form && e->value; i++) {
    const SymbolicTerm *part = &form->parts[i];
    const Poly *negative = layout_poly_product(s, part->coefficient, minus);
    if (!v->known[part->atom]) continue;
    e->form =
        layout_sum_add(&v->logical, e->form, layout_sum_of_atom(&v->logical, part->atom), negative);
    e->value = layout_sum_add(&v->physical, e->value, v->known[part->atom], negative);
  }
}

static void learn(SymbolicInversion *v, int atom, const SymbolicSum *value) {
  if (!value || v->known[atom]) return;
  v->known[atom] = value;
  v->progress = true;
}

static void keep(SymbolicInversion *v, const SymbolicSum *form, const SymbolicSum *value) {
  if (form && value && v->equation_count < MAX_SYMBOLIC_TERMS)
    v->equations[v->equation_count++] = (SymbolicEquation){form, value};
}

static void learn_item(SymbolicInversion *v, const SumItem *item, const SymbolicSum *value) {
  if (item->atom >= 0) return learn(v, item->atom, value);
  keep(v, item->value, value);
}

// The items with weights above 0 and values from 0 on: what counts down is turned around, and
// *value with it. False where bounds are missing.
static bool turn_items(SymbolicInversion *v, SumItem *items, int count, const SymbolicSum **value) {
  Polys *s = &v->polys;
  for (int i = 0; i < count; i++) {
    SumItem *item = &items[i];
    if (!item->low || !layout_poly_is_zero(item->low)) return false;
    if (layout_poly_positive(s, item->weight)) continue;
    if (!item->high || !layout_poly_nonpositive(s, item->weight)) return false;
    const SymbolicSum *reach = layout_sum_of_poly(&v->physical, item->high);
    *value = layout_sum_add(&v->physical, *value, reach,
                            layout_poly_linear(s, item->weight, -1, item->weight, 0));
    item->weight = layout_poly_linear(s, item->weight, -1, item->weight, 0);
    item->value =
        layout_sum_plus(&v->logical, layout_sum_of_poly(&v->logical, item->high), item->value, -1);
    item->atom = -1;
    if (!item->weight || !item->value || !*value) return false;
  }
  return true;
}

// Splits the equation where the weight of item `at` divides those above, and what is below stays
// under it.
static bool separate_at(SymbolicInversion *v, const SumItem *items, int count, int at,
                        const SymbolicSum *value) {
  Polys *s = &v->polys;
  const Poly *c = items[at].weight, *one = layout_poly_const(s, 1);
  const Poly *last = layout_poly_linear(s, c, 1, one, -1);
  const SymbolicSum *above, *below;
  int multiples = layout_items_split(&v->logical, items, count, c, &above, &below);
  if (layout_poly_same(c, one) || !above || !below || !last ||
      !layout_sum_within(&v->logical, below, layout_poly_const(s, 0), last))
    return false;
  const SymbolicSum *high = layout_sum_divide(&v->physical, value, c);
  if (!high) return false;
  if (multiples == 1)
    learn_item(v, &items[at], high);
  else
    keep(v, above, high);
  if (below->count) keep(v, below, layout_sum_modulo(&v->physical, value, c));
  return true;
}

// form = Σ weight·item by weights.
static bool separate(SymbolicInversion *v, const SymbolicEquation *e) {
  SumItem items[MAX_SYMBOLIC_TERMS];
  const SymbolicSum *constant, *value = e->value;
  const Poly *p;
  int64_t c;
  int count = layout_sum_items(&v->logical, e->form, items, &constant);
  if (count < 1 || !layout_sum_is_poly(constant, &p)) return false;
  value = layout_sum_plus(&v->physical, value, layout_sum_of_poly(&v->physical, p), -1);
  if (count == 1 && items[0].atom >= 0 && layout_poly_is_const(items[0].weight, &c) && c == 1)
    return learn(v, items[0].atom, value), true;
  if (!value || !turn_items(v, items, count, &value)) return false;
  for (int i = 0; i < count; i++)
    if (separate_at(v, items, count, i, value)) return true;
  return false;
}

// form = ±atom + y·(…) with the atom in [0, y): the atom is ±value mod y.
static bool learn_residue(SymbolicInversion *v, const SymbolicEquation *e, const Poly *y) {
  Polys *s = &v->polys;
  int64_t c;
  int odd = -1;
  for (int i = 0; i < e->form->count; i++) {
    const Poly *q, *r;
    layout_poly_divide(s, e->form->parts[i].coefficient, y, &q, &r);
    if (q && r && layout_poly_is_zero(r)) continue;
    if (odd >= 0) return false;
    odd = i;
  }
  if (odd < 0) return false;
  const SymbolicTerm *part = &e->form->parts[odd];
  const Poly *last = layout_poly_linear(s, y, 1, layout_poly_const(s, 1), -1);
  if (!layout_poly_is_const(part->coefficient, &c) || (c != 1 && c != -1) || !last) return false;
  const SymbolicSum *atom = layout_sum_of_atom(&v->logical, part->atom);
  if (!layout_sum_within(&v->logical, atom, layout_poly_const(s, 0), last)) return false;
  const SymbolicSum *value =
      layout_sum_plus(&v->physical, layout_sum_const(&v->physical, 0), e->value, c);
  learn(v, part->atom, layout_sum_modulo(&v->physical, value, y));
  return true;
}

static bool learn_residues(SymbolicInversion *v, const SymbolicEquation *e) {
  for (int i = 0; i < e->form->count; i++) {
    const SymbolicAtom *atom = &v->logical.atoms[e->form->parts[i].atom];
    if (atom->kind == ATOM_FLOOR && learn_residue(v, e, atom->divisor)) return true;
  }
  return false;
}

// Digits are read before what is known is taken out, which may tear them apart.
static void work(SymbolicInversion *v, SymbolicEquation e) {
  if (e.form->count > 1 && separate(v, &e)) return;
  take_out_known(v, &e);
  if (!e.form || !e.value || !e.form->count) return;
  if (separate(v, &e)) return;
  learn_residues(v, &e);
  int64_t c;
  if (e.form->count == 1 && layout_poly_is_const(e.form->parts[0].coefficient, &c) && c == -1) {
    const SymbolicSum *zero = layout_sum_of_poly(&v->physical, e.form->constant);
    return learn(v, e.form->parts[0].atom,
                 layout_sum_add(&v->physical, zero, e.value, e.form->parts[0].coefficient));
  }
  if (v->equation_count < MAX_SYMBOLIC_TERMS) v->equations[v->equation_count++] = e;
}

static bool axes_known(SymbolicInversion *v, int rank) {
  bool all = true;
  for (int i = 0; i < rank; i++) {
    if (!v->axes[i]->count)
      v->known[i] = layout_sum_of_poly(&v->physical, layout_poly_const(&v->polys, 0));
    all = all && v->known[i];
  }
  return all;
}

// The value of a logical sum all of whose atoms are known.
static const SymbolicSum *known_value(SymbolicInversion *v, const SymbolicSum *form) {
  const SymbolicSum *zero = layout_sum_const(&v->physical, 0);
  SymbolicEquation e = {form, zero};
  take_out_known(v, &e);
  if (!e.form || !e.value || e.form->count) return NULL;
  return layout_sum_plus(&v->physical, zero, e.value, -1);
}

// A known XOR all of whose operands but one are known gives that one.
static void relate_xor(SymbolicInversion *v, int at) {
  const SymbolicAtom atom = v->logical.atoms[at];
  const SymbolicSum *value = v->known[at], *open = NULL;
  for (int i = 0; i < atom.operand_count && value; i++) {
    const SymbolicSum *known = known_value(v, atom.operands[i]);
    if (!known && open) return;
    if (known)
      value = layout_sum_xor(&v->physical, value, known);
    else
      open = atom.operands[i];
  }
  if (!value || !open || v->equation_count == MAX_SYMBOLIC_TERMS) return;
  for (int i = 0; i < v->equation_count; i++)
    if (layout_sum_same(v->equations[i].form, open)) return;
  v->equations[v->equation_count++] = (SymbolicEquation){open, value};
  v->progress = true;
}

// ⌊v/(y·z)⌋ = ⌊⌊v/y⌋/z⌋ where the inner one is known.
static const SymbolicSum *by_finer_floor(SymbolicInversion *v, const SymbolicAtom *atom) {
  const Poly *z, *r;
  for (int i = v->logical.axis_count; i < v->logical.atom_count; i++) {
    const SymbolicAtom *finer = &v->logical.atoms[i];
    if (finer->kind != ATOM_FLOOR || !v->known[i] ||
        !layout_sum_same(finer->operands[0], atom->operands[0]))
      continue;
    layout_poly_divide(&v->polys, atom->divisor, finer->divisor, &z, &r);
    if (z && r && layout_poly_is_zero(r)) return layout_sum_divide(&v->physical, v->known[i], z);
  }
  return NULL;
}

// Floors of what is known are known; XORs and their operands.
static void relate_atoms(SymbolicInversion *v) {
  for (int i = v->logical.axis_count; i < v->logical.atom_count; i++) {
    const SymbolicAtom *atom = &v->logical.atoms[i];
    if (atom->kind == ATOM_XOR && v->known[i]) relate_xor(v, i);
    if (atom->kind != ATOM_FLOOR || v->known[i]) continue;
    const SymbolicSum *value = known_value(v, atom->operands[0]);
    value = value ? layout_sum_divide(&v->physical, value, atom->divisor) : by_finer_floor(v, atom);
    learn(v, i, value);
  }
}

// e - k·unit, where both have the floor of part `at` of `unit` and that has coefficient ±1 there:
// 10·n + F = p0 and t·n + c - 2·F = p1 give (t + 20)·n + c. Kept when fewer atoms are left.
static bool eliminate(SymbolicInversion *v, const SymbolicEquation *unit, int at,
                      const SymbolicEquation *e) {
  Polys *s = &v->polys;
  int64_t c;
  const SymbolicTerm *part = &unit->form->parts[at];
  if (v->logical.atoms[part->atom].kind != ATOM_FLOOR ||
      !layout_poly_is_const(part->coefficient, &c) || (c != 1 && c != -1))
    return false;
  for (int i = 0; i < e->form->count; i++) {
    if (e->form->parts[i].atom != part->atom) continue;
    const Poly *factor =
        layout_poly_linear(s, e->form->parts[i].coefficient, -c, layout_poly_const(s, 0), 1);
    const SymbolicSum *form = layout_sum_add(&v->logical, e->form, unit->form, factor);
    const SymbolicSum *value = layout_sum_add(&v->physical, e->value, unit->value, factor);
    if (!form || !value || form->count >= e->form->count || v->equation_count == MAX_SYMBOLIC_TERMS)
      return false;
    v->equations[v->equation_count++] = (SymbolicEquation){form, value};
    return v->progress = true;
  }
  return false;
}

static void eliminate_floors(SymbolicInversion *v) {
  int count = v->equation_count;
  for (int i = 0; i < count; i++)
    for (int j = 0; j < count; j++)
      for (int at = 0; at < v->equations[i].form->count && i != j; at++)
        if (eliminate(v, &v->equations[i], at, &v->equations[j])) return;
}

static bool propagate(SymbolicInversion *v, int rank) {
  for (int round = 0; round < MAX_ROUNDS; round++) {
    SymbolicEquation todo[MAX_SYMBOLIC_TERMS];
    int count = v->equation_count;
    memcpy(todo, v->equations, sizeof *todo * (size_t)count);
    v->equation_count = 0;
    v->progress = false;
    for (int i = 0; i < count; i++) work(v, todo[i]);
    relate_atoms(v);
    if (axes_known(v, rank)) return true;
    if (!v->progress) eliminate_floors(v);
    if (!v->progress && v->equation_count == count) return false;
  }
  return false;
}

static bool start(SymbolicInversion *v, const Layout *layout) {
  const IndexMap *map = layout->map;
  if (!layout_box_init(&v->logical, &v->polys, layout->shape, layout->rank, v->axes) ||
      !layout_box_init(&v->physical, &v->polys, layout->physical, layout->physical_rank,
                       v->positions))
    return false;
  if (map->output_count > MAX_SYMBOLIC_TERMS) return false;
  for (int i = 0; i < map->output_count; i++) {
    v->outputs[i] = layout_sum_of(&v->logical, map->outputs[i], v->axes);
    if (!v->outputs[i]) return false;
    v->equations[v->equation_count++] = (SymbolicEquation){v->outputs[i], v->positions[i]};
  }
  return true;
}

// What normal forms prove of the values found for the axes.
static void judge(SymbolicInversion *v, const Layout *layout, InverseCandidate *c) {
  Polys *s = &v->polys;
  for (int i = 0; i < layout->rank; i++) {
    const Poly *last =
        layout_poly_linear(s, layout_poly_of(s, layout->shape[i]), 1, layout_poly_const(s, 1), -1);
    c->below[i] = !layout_sum_within(&v->physical, v->known[i], layout_poly_const(s, 0), NULL);
    c->above[i] = !last || !layout_sum_within(&v->physical, v->known[i], NULL, last);
  }
  for (int i = 0; i < layout->physical_rank; i++) {
    v->back[i] = layout_sum_of(&v->physical, layout->map->outputs[i], v->known);
    c->misses[i] = !layout_sum_same(v->back[i], v->positions[i]);
  }
}

// The values found for the axes, as expressions.
static bool write_indices(SymbolicInversion *v, const Layout *layout, const LayoutExpr **indices) {
  for (int i = 0; i < layout->rank; i++)
    if (!(indices[i] = layout_sum_expr(&v->physical, v->known[i]))) return false;
  return true;
}

// Whether inverse ∘ map is the identity, by normal form.
static bool is_inverse(SymbolicInversion *v, const Layout *layout,
                       const LayoutExpr *const *inverse) {
  for (int i = 0; i < layout->rank; i++)
    if (!layout_sum_same(layout_sum_of(&v->logical, inverse[i], v->outputs), v->axes[i]))
      return false;
  return true;
}

static bool invert(SymbolicInversion *v, const Layout *layout, LayoutInverse *out) {
  InverseCandidate c;
  if (!start(v, layout) || !propagate(v, layout->rank)) return false;
  if (!write_indices(v, layout, c.indices) || !is_inverse(v, layout, c.indices)) return false;
  judge(v, layout, &c);
  for (int i = 0; i < layout->physical_rank; i++)
    if (!v->back[i] || !(c.back[i] = layout_sum_expr(&v->physical, v->back[i]))) return false;
  *out = layout_inverse_of(v->polys.context, layout, &c);
  return true;
}

// y·⌊axis/y⌋ where that floor is known, else 0.
static const SymbolicSum *least_over_floor(SymbolicInversion *v, int axis) {
  const SymbolicSum *zero = layout_sum_const(&v->physical, 0);
  for (int i = v->logical.axis_count; i < v->logical.atom_count; i++) {
    const SymbolicAtom *atom = &v->logical.atoms[i];
    if (atom->kind == ATOM_FLOOR && v->known[i] &&
        layout_sum_same(atom->operands[0], v->axes[axis]))
      return layout_sum_add(&v->physical, zero, v->known[i], atom->divisor);
  }
  return zero;
}

// The operands of a minimum, maximum, & or choice that has to be `value` may all be that, as far as
// they reach.
static bool assume_operands(SymbolicInversion *v, int at) {
  const SymbolicAtom copy = v->logical.atoms[at], *atom = &copy;
  const SymbolicSum *value = v->known[at];
  int first = atom->op == LAYOUT_SELECT, kept = v->equation_count;
  if (atom->kind != ATOM_OPERATION || !value || v->assumed[at]) return false;
  v->assumed[at] = true;
  if (atom->op != LAYOUT_MIN && atom->op != LAYOUT_MAX && atom->op != LAYOUT_AND && !first)
    return false;
  for (int i = first; i < atom->operand_count; i++) {
    const SymbolicSum *operand = atom->operands[i];
    const Poly *low, *high;
    if (!operand->count || known_value(v, operand)) continue;
    layout_sum_bounds(&v->logical, operand, &low, &high);
    const SymbolicSum *most = high ? layout_sum_of_poly(&v->physical, high) : NULL;
    const SymbolicSum *within = layout_sum_extreme(&v->physical, LAYOUT_MIN, value, most);
    keep(v, operand, within ? within : value);
    if (first) break;
  }
  return v->equation_count > kept;
}

// Σ weight·item = value where the weights overlap: the item of the most weight takes what it can.
static bool assume_most(SymbolicInversion *v, const SumItem *items, int count,
                        const SymbolicSum *value) {
  Polys *s = &v->polys;
  int at = 0;
  for (int i = 1; i < count; i++)
    if (layout_poly_positive(s, layout_poly_linear(s, items[i].weight, 1, items[at].weight, -1)))
      at = i;
  const Poly *c = items[at].weight, *minus = layout_poly_linear(s, c, -1, c, 0);
  const SymbolicSum *most =
      items[at].high ? layout_sum_of_poly(&v->physical, items[at].high) : NULL;
  const SymbolicSum *part = layout_sum_divide(&v->physical, value, c);
  part = part ? layout_sum_extreme(&v->physical, LAYOUT_MIN, part, most) : NULL;
  const SymbolicSum *rest = layout_sum_const(&v->logical, 0);
  for (int i = 0; i < count; i++)
    if (i != at) rest = layout_sum_add(&v->logical, rest, items[i].value, items[i].weight);
  if (!part || !rest) return false;
  learn_item(v, &items[at], part);
  keep(v, rest, layout_sum_add(&v->physical, value, part, minus));
  return true;
}

// Replaces an equation of a sum whose weights overlap.
static bool assume_equation(SymbolicInversion *v, int at) {
  SumItem items[MAX_SYMBOLIC_TERMS];
  SymbolicEquation e = v->equations[at];
  const SymbolicSum *constant;
  take_out_known(v, &e);
  int count = e.form && e.value ? layout_sum_items(&v->logical, e.form, items, &constant) : -1;
  if (count < 2 || !turn_items(v, items, count, &e.value)) return false;
  e.value = layout_sum_plus(&v->physical, e.value,
                            layout_sum_of_poly(&v->physical, constant->constant), -1);
  if (!e.value || !assume_most(v, items, count, e.value)) return false;
  v->equations[at] = v->equations[--v->equation_count];
  return true;
}

static bool is_least(const SymbolicAtom *atom) {
  return atom->low && layout_poly_is_zero(atom->low);
}

static bool is_at_most_zero(const SymbolicAtom *atom) {
  return atom->high && layout_poly_is_zero(atom->high);
}

// The next that nothing is known of: a part of an equation is assumed to be as large as it can be,
// a floor to be 0, an axis to be least over its floor.
static bool assume(SymbolicInversion *v, int rank) {
  for (int i = 0; i < v->equation_count; i++)
    if (assume_equation(v, i)) return true;
  for (int i = v->logical.axis_count; i < v->logical.atom_count; i++)
    if (assume_operands(v, i)) return true;
  for (int i = v->logical.axis_count; i < v->logical.atom_count; i++) {
    const SymbolicAtom *atom = &v->logical.atoms[i];
    if (atom->kind != ATOM_FLOOR || v->known[i] || !(is_least(atom) || is_at_most_zero(atom)))
      continue;
    learn(v, i, layout_sum_const(&v->physical, 0));
    return true;
  }
  for (int i = 0; i < rank; i++) {
    if (v->known[i]) continue;
    const SymbolicSum *least = least_over_floor(v, i);
    learn(v, i, least);
    return least != NULL;
  }
  return false;
}

static bool find_section(SymbolicInversion *v, const Layout *layout, const LayoutExpr **section,
                         bool *proved) {
  InverseCandidate c;
  if (!start(v, layout)) return false;
  for (int guesses = 0; !propagate(v, layout->rank); guesses++)
    if (guesses == MAX_ROUNDS || !assume(v, layout->rank)) return false;
  if (!write_indices(v, layout, section)) return false;
  judge(v, layout, &c);
  *proved = layout_is_section(layout, &c);
  return true;
}

bool layout_symbolic_section(Context *context, const Layout *layout, const LayoutExpr **section,
                             bool *proved) {
  ArenaMark mark = arena_mark(&context->scratch);
  SymbolicInversion inversion, *v = &inversion;
  memset(v->known, 0, sizeof v->known);
  memset(v->assumed, 0, sizeof v->assumed);
  v->equation_count = 0;
  v->polys = layout_polys_new(context, layout->facts);
  bool found = find_section(v, layout, section, proved);
  arena_reset(&context->scratch, mark);
  return found;
}

bool layout_symbolic_inverse(Context *context, const Layout *layout, LayoutInverse *out) {
  ArenaMark mark = arena_mark(&context->scratch);
  SymbolicInversion inversion, *v = &inversion; // of its arrays only what is counted is read
  memset(v->known, 0, sizeof v->known);
  v->equation_count = 0;
  v->polys = layout_polys_new(context, layout->facts);
  bool found = invert(v, layout, out);
  arena_reset(&context->scratch, mark);
  return found;
}
