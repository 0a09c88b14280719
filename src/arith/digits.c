// SPDX-License-Identifier: Apache-2.0
// Finds the digits of mixed-radix numbers inside linear forms. A form has floors only; this file
// groups them by their base,
//   i*7 + j - 16*((i*7 + j)//16) + 3*(x//4) - 12*(x//8)   =>   base i*7 + j: 1 at 1, -16 at 16
//                                                              base x: 3 at 4, -12 at 8
// and reads them as digits: (i*7 + j) % 16 + (x//4)%2*3 - (x//8)*6. Bounds and divisibility that
// are derived from digits are exact for numbers of independent bases.
#include "arith/internal.h"

#include <stdlib.h>

// The key of a group: cofactor * (base // …).
typedef struct Key {
  Expr *cofactor, *base;
  int64_t cut;
} Key;

enum { MOST_FACTORS = 8 };

// Finds the division by a constant inside an atom; false when there is none.
static bool find_key(Analyzer *analyzer, Expr *atom, Key *key) {
  *key = (Key){0};
  if (form_split_division(atom, &key->base, &key->cut)) return true;
  if (atom->op != EXPR_MUL) return false;
  Expr *factors[MOST_FACTORS];
  int count = product_factors(atom, factors, MOST_FACTORS);
  for (int i = 0; i < count; i++) {
    if (!form_split_division(factors[i], &key->base, &key->cut)) continue;
    factors[i] = factors[count - 1];
    key->cofactor = product_of(analyzer, factors, count - 1);
    return true;
  }
  return false;
}

// The terms that are not in a group yet.
typedef struct Rest {
  Analyzer *analyzer;
  int64_t constant;
  int count;
  Term *terms;
  Key *keys; // base NULL: no division
} Rest;

static Rest rest_new(Analyzer *analyzer, const Form *f) {
  Rest rest = {analyzer, f->constant, f->count, passing_array(analyzer, Term, f->count),
               passing_array(analyzer, Key, f->count)};
  for (int i = 0; i < f->count; i++) {
    rest.terms[i] = f->terms[i];
    if (!find_key(analyzer, f->terms[i].atom, &rest.keys[i])) rest.keys[i].base = NULL;
  }
  return rest;
}

static Term *rest_term(Rest *rest, const Expr *atom) {
  for (int i = 0; i < rest->count; i++)
    if (rest->terms[i].atom == atom && rest->terms[i].coef) return &rest->terms[i];
  return NULL;
}

static void insert_cut(Group *group, int64_t cut, int64_t coef) {
  int i = group->count++;
  for (; i > 0 && group->cuts[i - 1] > cut; i--) {
    group->cuts[i] = group->cuts[i - 1];
    group->coefs[i] = group->coefs[i - 1];
  }
  group->cuts[i] = cut;
  group->coefs[i] = coef;
}

static void take_cuts(Rest *rest, Group *group) {
  for (int i = 0; i < rest->count; i++) {
    const Key *key = &rest->keys[i];
    if (!rest->terms[i].coef || key->base != group->base || key->cofactor != group->cofactor)
      continue;
    if (group->count >= MOST_CUTS - 1) continue;
    insert_cut(group, key->cut, rest->terms[i].coef);
    rest->terms[i].coef = 0;
  }
}

static int64_t magnitude(int64_t x) {
  return x < 0 ? -x : x;
}

// The largest k such that k * sign * f can be subtracted from the rest without a change of sign.
static int64_t times_within(Rest *rest, const Form *f, int sign) {
  int64_t times = INT64_MAX;
  for (int i = 0; i < f->count; i++) {
    Term *term = rest_term(rest, f->terms[i].atom);
    bool same_sign = term && (term->coef > 0) == (f->terms[i].coef * sign > 0);
    if (!same_sign) return 0;
    times = MIN_OF(times, magnitude(term->coef) / magnitude(f->terms[i].coef));
  }
  return times == INT64_MAX ? 0 : times;
}

static bool take_times(Rest *rest, const Form *f, int64_t times) {
  int64_t constant;
  if (!mul_fits(f->constant, -times, &constant) || !add_fits(rest->constant, constant, &constant))
    return false;
  for (int i = 0; i < f->count; i++)
    rest_term(rest, f->terms[i].atom)->coef -= f->terms[i].coef * times;
  rest->constant = constant;
  return true;
}

// Moves multiples of the base itself from the rest into the group, as its cut 1.
static void take_base(Rest *rest, Group *group) {
  const Form *base = form_of(rest->analyzer, group->base);
  if (group->cofactor)
    base = form_mul(rest->analyzer, base, form_of(rest->analyzer, group->cofactor));
  if (!base || group->count == 0) return;
  if (form_is_unit(base)) {
    Term *term = rest_term(rest, base->terms[0].atom);
    if (!term) return;
    insert_cut(group, 1, term->coef);
    term->coef = 0;
    return;
  }
  int64_t coef = group->coefs[0], cut = group->cuts[0];
  int sign = coef > 0 ? -1 : 1;
  int64_t wanted = magnitude(coef) / cut + (magnitude(coef) % cut != 0);
  int64_t times = sign * MIN_OF(wanted, times_within(rest, base, sign));
  if (times && take_times(rest, base, times)) insert_cut(group, 1, times);
}

static int key_compare(const void *a, const void *b) {
  const Key *x = a, *y = b;
  if (x->base != y->base) return -expr_compare(&x->base, &y->base);
  uint32_t p = x->cofactor ? x->cofactor->id : 0, q = y->cofactor ? y->cofactor->id : 0;
  return (p > q) - (p < q);
}

// Sorts later bases first: a base made of floors of another base is later than that base.
static int sorted_keys(Rest *rest, Key *keys) {
  int count = 0;
  for (int i = 0; i < rest->count; i++)
    if (rest->keys[i].base) keys[count++] = rest->keys[i];
  qsort(keys, (size_t)count, sizeof *keys, key_compare);
  int kept = 0;
  for (int i = 0; i < count; i++)
    if (!kept || key_compare(&keys[kept - 1], &keys[i])) keys[kept++] = keys[i];
  return kept;
}

const Groups *form_groups(Analyzer *analyzer, const Form *f) {
  Rest rest = rest_new(analyzer, f);
  Groups *groups = passing_alloc(analyzer, sizeof(Groups) + sizeof(Group) * 2 * (size_t)f->count);
  Key *keys = passing_array(analyzer, Key, f->count);
  groups->count = 0;
  int key_count = sorted_keys(&rest, keys);
  for (int i = 0; i < key_count; i++) {
    Group *group = &groups->items[groups->count];
    *group = (Group){.cofactor = keys[i].cofactor, .base = keys[i].base};
    take_cuts(&rest, group);
    take_base(&rest, group);
    groups->count += group->count > 0;
  }
  for (int i = 0; i < rest.count; i++)
    if (rest.terms[i].coef)
      groups->items[groups->count++] = (Group){
          .base = rest.terms[i].atom, .count = 1, .cuts = {1}, .coefs = {rest.terms[i].coef}};
  groups->constant = rest.constant;
  return groups;
}

// The next coarser floor that cancels the range of `coef * (base // cut)` and so ends the digit; -1
// when there is none.
static int digit_end(const Group *group, const int64_t *coefs, int i) {
  for (int j = i + 1; j < group->count; j++) {
    int64_t radix = group->cuts[j] / group->cuts[i], over;
    if (group->cuts[j] % group->cuts[i] || (coefs[j] > 0) == (coefs[i] > 0)) continue;
    if (!mul_fits(radix, coefs[i], &over) || over == INT64_MIN) continue;
    if (magnitude(coefs[j]) >= magnitude(over)) return j;
  }
  return -1;
}

static void group_digits(const Group *group, Digits *digits) {
  int64_t coefs[MOST_CUTS];
  memcpy(coefs, group->coefs, sizeof coefs);
  for (int i = 0; i < group->count; i++) {
    if (!coefs[i]) continue;
    int j = digit_end(group, coefs, i);
    int64_t radix = j < 0 ? 0 : group->cuts[j] / group->cuts[i];
    if (j >= 0) coefs[j] += radix * coefs[i];
    digits->items[digits->count++] =
        (ArithDigit){coefs[i], group->cuts[i], radix, group->cofactor, group->base};
  }
}

const Digits *form_digits(Analyzer *analyzer, const Form *f) {
  return groups_digits(analyzer, form_groups(analyzer, f));
}

const Digits *groups_digits(Analyzer *analyzer, const Groups *groups) {
  int most = 0;
  for (int i = 0; i < groups->count; i++) most += groups->items[i].count;
  Digits *digits = passing_alloc(analyzer, sizeof(Digits) + sizeof(ArithDigit) * (size_t)most);
  digits->count = 0;
  digits->constant = groups->constant;
  for (int i = 0; i < groups->count; i++) group_digits(&groups->items[i], digits);
  return digits;
}

static const Form *floor_form(Analyzer *analyzer, DType type, const ArithDigit *digit,
                              int64_t cut) {
  if (cut == 1) return form_typed(analyzer, form_of(analyzer, digit->base), type);
  return form_term(analyzer, type, 1, form_floor_atom(analyzer, digit->base, cut));
}

const Form *digit_form(Analyzer *analyzer, DType type, const ArithDigit *digit, int64_t coef) {
  const Form *f = floor_form(analyzer, type, digit, digit->cut);
  int64_t next;
  if (digit->radix) {
    if (!mul_fits(digit->cut, digit->radix, &next)) return NULL;
    f = form_add_scaled(analyzer, f, floor_form(analyzer, type, digit, next), -digit->radix);
  }
  if (digit->cofactor) f = form_mul(analyzer, f, form_of(analyzer, digit->cofactor));
  return form_scale(analyzer, f, coef);
}
