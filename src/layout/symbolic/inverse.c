// SPDX-License-Identifier: Apache-2.0
// Finds inverses and sections of layouts of symbolic extents, by propagation of what is known, as
// digits/solve.c finds them for static ones. Equations `sum over logical axes = sum over physical
// axes` start as `output j = p_j`; each round takes the known atoms out of them and separates the
// rest by weights, until every axis is known. What is found is proved by normal form.
//
//   p0 = c//16, p1 = c - 16·(c//16)       =>   c = 16·p0 + p1
//   p0 = h·W + w with w < W               =>   h = p0//W, w = p0 - W·(p0//W)
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
  bool assumed[MAX_ATOMS]; // assumptions about their operands were made, in a section
} SymbolicInversion;

// ---- Equations ----------------------------------------------------------------------------------

// a - b·y over the physical box.
static const SymbolicSum *minus(SymbolicInversion *v, const SymbolicSum *a, const SymbolicSum *b,
                                Poly y) {
  return layout_sum_subtract(&v->physical, a, b, y);
}

static const SymbolicSum *minus_poly(SymbolicInversion *v, const SymbolicSum *a, Poly p) {
  return layout_sum_offset(&v->physical, a, layout_poly_times(&v->polys, p, -1));
}

// Moves the constant and the known atoms to the other side.
static void take_out_known(SymbolicInversion *v, SymbolicEquation *e) {
  SymbolicBox *l = &v->logical;
  e->value = minus_poly(v, e->value, e->form->constant);
  e->form = layout_sum_offset(l, e->form, layout_poly_times(&v->polys, e->form->constant, -1));
  const SymbolicSum *form = e->form;
  if (!form) return;
  for (int i = 0; i < form->count && e->form && e->value; i++) {
    const SymbolicTerm *t = &form->terms[i];
    if (!v->known[t->atom]) continue;
    e->form = layout_sum_subtract(l, e->form, layout_sum_of_atom(l, t->atom), t->coefficient);
    e->value = minus(v, e->value, v->known[t->atom], t->coefficient);
  }
}

static void learn(SymbolicInversion *v, int atom, const SymbolicSum *value) {
  if (!value || v->known[atom]) return;
  v->known[atom] = value;
  v->progress = true;
}

static bool keep(SymbolicInversion *v, const SymbolicSum *form, const SymbolicSum *value) {
  if (!form || !value || v->equation_count == MAX_SYMBOLIC_TERMS) return false;
  v->equations[v->equation_count++] = (SymbolicEquation){form, value};
  return true;
}

static void learn_item(SymbolicInversion *v, const SumItem *item, const SymbolicSum *value) {
  if (item->atom >= 0) return learn(v, item->atom, value);
  keep(v, item->value, value);
}

// ---- Separating by weights ----------------------------------------------------------------------

// Turns the item around where its weight is negative, so that weights are positive and values
// begin at 0; *value moves with it. False where bounds are missing.
static bool turn_item(SymbolicInversion *v, SumItem *item, const SymbolicSum **value) {
  Polys *s = &v->polys;
  if (!poly_is_zero(item->low)) return false;
  if (poly_positive(item->weight)) return true;
  if (!poly_fits(item->high) || !poly_nonpositive(item->weight)) return false;
  *value = minus(v, *value, layout_sum_of_poly(&v->physical, item->high), item->weight);
  item->weight = layout_poly_times(s, item->weight, -1);
  item->value =
      layout_sum_plus(&v->logical, layout_sum_of_poly(&v->logical, item->high), item->value, -1);
  item->atom = -1;
  return poly_fits(item->weight) && item->value && *value;
}

// The items of an equation, and the value of their sum.
static int read_items(SymbolicInversion *v, const SymbolicEquation *e, SumItem *items,
                      const SymbolicSum **value) {
  const SymbolicSum *constant;
  int count = layout_sum_items(&v->logical, e->form, items, &constant);
  *value = count < 0 ? NULL : minus_poly(v, e->value, constant->constant);
  return *value ? count : -1;
}

static bool turn_items(SymbolicInversion *v, SumItem *items, int count, const SymbolicSum **value) {
  for (int i = 0; i < count; i++)
    if (!turn_item(v, &items[i], value)) return false;
  return true;
}

// Splits the equation where the weight of item `at` divides those above, and the sum of the others
// stays under it.
static bool separate_at(SymbolicInversion *v, const SumItem *items, int count, int at,
                        const SymbolicSum *value) {
  Poly c = items[at].weight, last = poly_plus(c, -1);
  const SymbolicSum *above, *below;
  int multiples = layout_sum_split_items(&v->logical, items, count, c, &above, &below);
  if (!poly_fits(last) || poly_is_zero(last) || !above || !below ||
      !layout_sum_within(&v->logical, below, poly_const(0), last))
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

// Reads the equation as Σ weight·item = value, and splits it by the weights.
static bool separate(SymbolicInversion *v, const SymbolicEquation *e) {
  SumItem items[MAX_SYMBOLIC_TERMS];
  const SymbolicSum *value;
  int64_t c;
  int count = read_items(v, e, items, &value);
  if (count < 1) return false;
  if (count == 1 && items[0].atom >= 0 && poly_is_const(items[0].weight, &c) && c == 1)
    return learn(v, items[0].atom, value), true;
  if (!turn_items(v, items, count, &value)) return false;
  for (int i = 0; i < count; i++)
    if (separate_at(v, items, count, i, value)) return true;
  return false;
}

// The only term of the sum whose coefficient y does not divide; NULL where there are others.
static const SymbolicTerm *odd_term(SymbolicInversion *v, const SymbolicSum *a, Poly y) {
  const SymbolicTerm *odd = NULL;
  for (int i = 0; i < a->count; i++) {
    if (poly_fits(layout_poly_exact(&v->polys, a->terms[i].coefficient, y))) continue;
    if (odd) return NULL;
    odd = &a->terms[i];
  }
  return odd;
}

// form = ±atom + y·(…) with the atom in [0, y): the atom is ±value mod y.
static bool learn_residue(SymbolicInversion *v, const SymbolicEquation *e, Poly y) {
  int64_t c;
  const SymbolicTerm *odd = odd_term(v, e->form, y);
  Poly last = poly_plus(y, -1);
  if (!odd || !poly_is_const(odd->coefficient, &c) || (c != 1 && c != -1) || !poly_fits(last) ||
      !layout_sum_within(&v->logical, layout_sum_of_atom(&v->logical, odd->atom), poly_const(0),
                         last))
    return false;
  const SymbolicSum *value =
      layout_sum_plus(&v->physical, layout_sum_const(&v->physical, 0), e->value, c);
  learn(v, odd->atom, layout_sum_modulo(&v->physical, value, y));
  return true;
}

static bool learn_residues(SymbolicInversion *v, const SymbolicEquation *e) {
  for (int i = 0; i < e->form->count; i++) {
    const SymbolicAtom *atom = &v->logical.atoms[e->form->terms[i].atom];
    if (atom->kind == ATOM_FLOOR && learn_residue(v, e, atom->divisor)) return true;
  }
  return false;
}

// Digits are read before known atoms are taken out, which may leave a part of a digit.
static void work(SymbolicInversion *v, SymbolicEquation e) {
  if (e.form->count > 1 && separate(v, &e)) return;
  take_out_known(v, &e);
  if (!e.form || !e.value || !e.form->count) return;
  if (separate(v, &e)) return;
  learn_residues(v, &e);
  int64_t c;
  if (e.form->count == 1 && poly_is_const(e.form->terms[0].coefficient, &c) && c == -1) {
    const SymbolicSum *constant = layout_sum_of_poly(&v->physical, e.form->constant);
    return learn(v, e.form->terms[0].atom, layout_sum_plus(&v->physical, constant, e.value, -1));
  }
  keep(v, e.form, e.value);
}

static bool axes_known(SymbolicInversion *v, int rank) {
  bool all = true;
  for (int i = 0; i < rank; i++) {
    if (!v->axes[i]->count) v->known[i] = layout_sum_of_poly(&v->physical, poly_const(0));
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

static bool has_equation(const SymbolicInversion *v, const SymbolicSum *form) {
  for (int i = 0; i < v->equation_count; i++)
    if (layout_sum_same(v->equations[i].form, form)) return true;
  return false;
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
  if (open && !has_equation(v, open) && keep(v, open, value)) v->progress = true;
}

// ⌊v/(y·z)⌋ = ⌊⌊v/y⌋/z⌋ where the inner one is known.
static const SymbolicSum *by_finer_floor(SymbolicInversion *v, const SymbolicAtom *atom) {
  for (int i = v->logical.axis_count; i < v->logical.atom_count; i++) {
    const SymbolicAtom *finer = &v->logical.atoms[i];
    if (finer->kind != ATOM_FLOOR || !v->known[i] ||
        !layout_sum_same(finer->operands[0], atom->operands[0]))
      continue;
    Poly z = layout_poly_exact(&v->polys, atom->divisor, finer->divisor);
    if (poly_fits(z)) return layout_sum_divide(&v->physical, v->known[i], z);
  }
  return NULL;
}

// Learns floors of known sums, and gets equations for the operands of known XORs.
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

// e - k·unit, where both have the floor of term `at` of `unit`, which has the coefficient ±1 there:
// 10·n + F = p0 and t·n + c - 2·F = p1 give (t + 20)·n + c. Kept when fewer atoms are left.
static bool eliminate(SymbolicInversion *v, const SymbolicEquation *unit, int at,
                      const SymbolicEquation *e) {
  int64_t c;
  const SymbolicTerm *t = &unit->form->terms[at];
  if (v->logical.atoms[t->atom].kind != ATOM_FLOOR || !poly_is_const(t->coefficient, &c) ||
      (c != 1 && c != -1))
    return false;
  for (int i = 0; i < e->form->count; i++) {
    if (e->form->terms[i].atom != t->atom) continue;
    Poly k = layout_poly_times(&v->polys, e->form->terms[i].coefficient, c);
    const SymbolicSum *form = layout_sum_subtract(&v->logical, e->form, unit->form, k);
    if (!form || form->count >= e->form->count) return false;
    v->progress = keep(v, form, minus(v, e->value, unit->value, k));
    return v->progress;
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
  v->equation_count = 0;
  memset(v->known, 0, sizeof v->known);
  if (!layout_box_init(&v->logical, &v->polys, layout->shape, layout->rank, v->axes) ||
      !layout_box_init(&v->physical, &v->polys, layout->physical, layout->physical_rank,
                       v->positions))
    return false;
  if (map->output_count > MAX_SYMBOLIC_TERMS) return false;
  for (int i = 0; i < map->output_count; i++) {
    v->outputs[i] = layout_sum_of(&v->logical, map->outputs[i], v->axes);
    if (!v->outputs[i]) return false;
    keep(v, v->outputs[i], v->positions[i]);
  }
  return true;
}

// ---- Proving ------------------------------------------------------------------------------------

// Judges by normal forms the values that were found for the axes.
static void judge(SymbolicInversion *v, const Layout *layout, InverseCandidate *c) {
  Polys *s = &v->polys;
  for (int i = 0; i < layout->rank; i++) {
    Poly last = layout_poly_linear(s, layout_poly_of(s, layout->shape[i]), 1, poly_const(1), -1);
    c->below[i] = !layout_sum_within(&v->physical, v->known[i], poly_const(0), POLY_NONE);
    c->above[i] =
        !poly_fits(last) || !layout_sum_within(&v->physical, v->known[i], POLY_NONE, last);
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
  *out = layout_candidate_inverse(v->polys.context, layout, &c);
  return true;
}

// ---- Assumptions of sections --------------------------------------------------------------------

// y·⌊axis/y⌋ where that floor is known, otherwise 0.
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

static bool may_share_value(LayoutOp op) {
  return op == LAYOUT_MIN || op == LAYOUT_MAX || op == LAYOUT_AND || op == LAYOUT_SELECT;
}

// Assumes that the operands of a minimum, maximum or &, or one choice of a select, have the value
// of the whole, as far as they reach.
static bool assume_operands(SymbolicInversion *v, int at) {
  const SymbolicAtom atom = v->logical.atoms[at];
  const SymbolicSum *value = v->known[at];
  bool select = atom.op == LAYOUT_SELECT;
  int kept = v->equation_count;
  if (atom.kind != ATOM_OPERATION || !value || v->assumed[at]) return false;
  v->assumed[at] = true;
  for (int i = select; i < atom.operand_count && may_share_value(atom.op); i++) {
    const SymbolicSum *operand = atom.operands[i];
    Poly low, high;
    if (!operand->count || known_value(v, operand)) continue;
    layout_sum_bounds(&v->logical, operand, &low, &high);
    const SymbolicSum *most = layout_sum_of_poly(&v->physical, high);
    const SymbolicSum *within = layout_sum_extreme(&v->physical, LAYOUT_MIN, value, most);
    keep(v, operand, within ? within : value);
    if (select) break;
  }
  return v->equation_count > kept;
}

// For Σ weight·item = value with overlapping weights: assumes that the item of the most weight is
// as large as it can be.
static bool assume_most(SymbolicInversion *v, const SumItem *items, int count,
                        const SymbolicSum *value) {
  Polys *s = &v->polys;
  int at = 0;
  for (int i = 1; i < count; i++)
    if (poly_positive(layout_poly_linear(s, items[i].weight, 1, items[at].weight, -1))) at = i;
  Poly c = items[at].weight;
  const SymbolicSum *most = layout_sum_of_poly(&v->physical, items[at].high);
  const SymbolicSum *part = layout_sum_divide(&v->physical, value, c);
  part = part ? layout_sum_extreme(&v->physical, LAYOUT_MIN, part, most) : NULL;
  const SymbolicSum *rest = layout_sum_const(&v->logical, 0);
  for (int i = 0; i < count; i++)
    if (i != at) rest = layout_sum_add(&v->logical, rest, items[i].value, items[i].weight);
  if (!part || !rest) return false;
  learn_item(v, &items[at], part);
  keep(v, rest, minus(v, value, part, c));
  return true;
}

// Replaces an equation of a sum whose weights overlap.
static bool assume_equation(SymbolicInversion *v, int at) {
  SumItem items[MAX_SYMBOLIC_TERMS];
  SymbolicEquation e = v->equations[at];
  const SymbolicSum *value;
  take_out_known(v, &e);
  int count = e.form && e.value ? read_items(v, &e, items, &value) : -1;
  if (count < 2 || !turn_items(v, items, count, &value) || !assume_most(v, items, count, value))
    return false;
  v->equations[at] = v->equations[--v->equation_count];
  return true;
}

// Whether 0 is a bound of the atom.
static bool may_be_zero(const SymbolicAtom *atom) {
  return poly_is_zero(atom->low) || poly_is_zero(atom->high);
}

// Assumes a value of something that is not known yet: that the item of the most weight in an
// equation is as large as it can be, that a floor is 0, or that an axis is least over its floor.
static bool assume(SymbolicInversion *v, int rank) {
  for (int i = 0; i < v->equation_count; i++)
    if (assume_equation(v, i)) return true;
  for (int i = v->logical.axis_count; i < v->logical.atom_count; i++)
    if (assume_operands(v, i)) return true;
  for (int i = v->logical.axis_count; i < v->logical.atom_count; i++) {
    const SymbolicAtom *atom = &v->logical.atoms[i];
    if (atom->kind != ATOM_FLOOR || v->known[i] || !may_be_zero(atom)) continue;
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

// ---- Questions ---------------------------------------------------------------------------------

static bool find_section(SymbolicInversion *v, const Layout *layout, const LayoutExpr **section,
                         bool *proved) {
  InverseCandidate c;
  memset(v->assumed, 0, sizeof v->assumed);
  if (!start(v, layout)) return false;
  for (int guesses = 0; !propagate(v, layout->rank); guesses++)
    if (guesses == MAX_ROUNDS || !assume(v, layout->rank)) return false;
  if (!write_indices(v, layout, section)) return false;
  judge(v, layout, &c);
  *proved = layout_candidate_is_section(layout, &c);
  return true;
}

bool layout_symbolic_section(Context *context, const Layout *layout, const LayoutExpr **section,
                             bool *proved) {
  ArenaMark mark = arena_mark(&context->scratch);
  SymbolicInversion v; // of its arrays only the counted elements are read
  v.polys = layout_polys_new(context, layout->facts);
  bool found = find_section(&v, layout, section, proved);
  arena_reset(&context->scratch, mark);
  return found;
}

bool layout_symbolic_inverse(Context *context, const Layout *layout, LayoutInverse *out) {
  ArenaMark mark = arena_mark(&context->scratch);
  SymbolicInversion v;
  v.polys = layout_polys_new(context, layout->facts);
  bool found = invert(&v, layout, out);
  arena_reset(&context->scratch, mark);
  return found;
}
