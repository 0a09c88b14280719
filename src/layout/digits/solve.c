// SPDX-License-Identifier: Apache-2.0
// Finds the inverse of a static map by propagation of what is known. Equations `form over logical
// axes = form over physical axes` start as `output j = p_j`. Each round takes the known values out
// of the equations, separates the rest by the weights of its digits (solve_items.c), and learns
// floors, residues (solve_known.c) and XORs of bits (solve_bits.c), until every axis is known.
//
//   p0 = ⌊c/16⌋, p1 = c mod 16            =>   c = 16·p0 + p1
//   p0 = i, p1 = 8·⌊j/8⌋ + (j%8 ^ i%8)    =>   j = 8·⌊p1/8⌋ + (p1%8 ^ p0%8)
#include "layout/digits/solve.h"

enum { MAX_ROUNDS = 64 };

// Regroups the form, and moves its constant to the other side: all of it, or, where the form has
// XORs, its least value, for its parts to read as bits. False when it does not fit.
static bool prepare(DigitSolver *s, DigitEquation *e) {
  const DigitForm *form = layout_form_regroup(s->logical, e->form);
  Interval b = {form->constant, 0};
  if (form->xor_count && !layout_form_bounds(s->logical, form, &b)) return false;
  e->value = layout_form_add_const(s->physical, e->value, -b.low);
  e->form = layout_form_add_const(s->logical, form, -b.low);
  return e->form && e->value;
}

// Moves known floors to the other side. False when the equation cannot be carried on.
static bool take_out_known(DigitSolver *s, DigitEquation *e) {
  const DigitForm *form = e->form, *value = e->value;
  for (int i = 0; i < e->form->count; i++) {
    const FormTerm *t = &e->form->terms[i];
    const DigitForm *floor = solver_floor(s, t->base, t->offset, t->cut);
    if (!floor) continue;
    form = layout_form_linear(s->logical, form, 1, &(DigitForm){.terms = t, .count = 1}, -1);
    value = layout_form_linear(s->physical, value, 1, floor, -t->coefficient);
  }
  *e = (DigitEquation){form, value};
  return form && value;
}

static void keep(DigitSolver *s, DigitEquation e) {
  if (s->equation_count < MAX_EQUATIONS) s->equations[s->equation_count++] = e;
}

// An equation with XORs waits a round, since their bits may become known. Digits are read before
// known floors are taken out, which may leave a part of a digit.
static void work(DigitSolver *s, DigitEquation e, bool first_round) {
  if (!prepare(s, &e) || layout_form_is_const(e.form)) return;
  if (e.form->xor_count) solver_take_out_bits(s, &e);
  if (!prepare(s, &e) || layout_form_is_const(e.form)) return;
  if (e.form->xor_count && first_round) {
    s->progress = true;
    return keep(s, e);
  }
  if (solver_separate(s, &e)) return;
  DigitEquation rest = e;
  if (!take_out_known(s, &rest) || layout_form_is_const(rest.form)) return;
  if (!solver_separate(s, &rest)) keep(s, e);
}

// Rules that cost more and give longer forms, for a round without progress.
static void work_stuck(DigitSolver *s) {
  for (int i = 0; i < s->equation_count; i++)
    if (solver_learn_bits(s, &s->equations[i])) return solver_exchange_bits(s);
  for (int i = 0; i < s->equation_count; i++)
    if (solver_learn_sum(s, &s->equations[i])) return solver_merge(s);
}

static void work_round(DigitSolver *s, bool first) {
  DigitEquation todo[MAX_EQUATIONS];
  int count = s->equation_count;
  memcpy(todo, s->equations, sizeof *todo * (size_t)count);
  s->equation_count = 0;
  for (int i = 0; i < count; i++) work(s, todo[i], first);
  solver_exchange_bits(s);
  solver_merge(s);
  solver_relate_bases(s);
}

static bool axes_known(DigitSolver *s, const DigitForm **inverse) {
  bool all = true;
  for (int i = 0; i < s->logical->axis_count; i++) {
    inverse[i] =
        s->logical->extents[i] == 1 ? layout_form_const(s->physical, 0) : solver_floor(s, i, 0, 1);
    all = all && inverse[i];
  }
  return all;
}

static void start(DigitSolver *s, DigitSpace *logical, DigitSpace *physical,
                  const DigitForm *const *outputs, int count) {
  s->logical = logical;
  s->physical = physical;
  s->equation_count = s->known_count = s->parity_count = 0;
  for (int i = 0; i < count; i++)
    s->equations[s->equation_count++] =
        (DigitEquation){outputs[i], layout_form_floor(physical, i, 0, 1)};
}

static bool propagate(DigitSolver *s, const DigitForm **inverse) {
  for (int round = 0; round < MAX_ROUNDS; round++) {
    s->progress = false;
    work_round(s, round == 0);
    if (!s->progress) work_stuck(s);
    if (axes_known(s, inverse)) return true;
    if (!s->progress) return false;
  }
  return false;
}

bool layout_solve_inverse(DigitSpace *logical, DigitSpace *physical,
                          const DigitForm *const *outputs, int count, const DigitForm **inverse) {
  DigitSolver s; // of its arrays only the counted elements are read
  start(&s, logical, physical, outputs, count);
  return propagate(&s, inverse);
}

// The known digit of the axis with the least cut that is a multiple of `from`.
static const Known *next_known(const DigitSolver *s, int axis, int64_t from) {
  const Known *next = NULL;
  for (int i = 0; i < s->known_count; i++) {
    const Digit *k = &s->known[i].digit;
    bool digit = k->base == axis && k->cut % from == 0 && (!k->offset || (k->cut == 1 && !k->open));
    if (digit && (!next || k->cut < next->digit.cut)) next = &s->known[i];
  }
  return next;
}

// The axis as the sum of its known digits, from the lowest up; the others are assumed to be 0.
static const DigitForm *assumed_axis(DigitSolver *s, int axis) {
  const DigitForm *sum = layout_form_const(s->physical, 0);
  int64_t from = 1;
  for (const Known *k; sum && (k = next_known(s, axis, from));) {
    const Digit *g = &k->digit;
    const DigitForm *value = layout_form_add_const(s->physical, k->value, -g->offset);
    if (!g->open) value = layout_form_modulo(s->physical, value, g->radix);
    sum = layout_form_linear(s->physical, sum, 1, value, g->cut);
    if (g->open || !digit_end(g, &from)) break;
  }
  return sum;
}

bool layout_solve_section(DigitSpace *logical, DigitSpace *physical,
                          const DigitForm *const *outputs, int count, const DigitForm **section) {
  DigitSolver s;
  start(&s, logical, physical, outputs, count);
  while (!propagate(&s, section)) {
    int axis = 0;
    while (section[axis]) axis++;
    int known = s.known_count;
    Digit whole = {.cut = 1, .base = axis, .open = true};
    solver_learn(&s, whole, assumed_axis(&s, axis));
    if (s.known_count == known) return false;
  }
  return true;
}

bool layout_solve_checks(DigitSpace *logical, const DigitSpace *physical,
                         const DigitForm *const *outputs, const DigitForm *const *inverse) {
  for (int i = 0; i < logical->axis_count; i++) {
    const DigitForm *back = layout_form_apply(logical, physical, inverse[i], outputs);
    if (!back || !layout_form_equal(logical, back, layout_form_floor(logical, i, 0, 1)))
      return false;
  }
  return true;
}
