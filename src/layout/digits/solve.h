// SPDX-License-Identifier: Apache-2.0
// Declares how inverses of static maps are found by propagation: what inverse.c calls, and what the
// files solve*.c share.
#ifndef PLEAT_LAYOUT_SOLVE_H
#define PLEAT_LAYOUT_SOLVE_H

#include "layout/digits/form.h"

// The inverse of the functions `outputs` (forms of `logical`): inverse[i] is axis i as a form of
// `physical`, whose axis j is the value of outputs[j]. False when some axis stays unknown. The
// caller has to check the result, by layout_solve_checks or otherwise.
bool layout_solve_inverse(DigitSpace *logical, DigitSpace *physical,
                          const DigitForm *const *outputs, int count, const DigitForm **inverse);
// Some index for every physical index: digits that the propagation leaves open are assumed to be 0.
bool layout_solve_section(DigitSpace *logical, DigitSpace *physical,
                          const DigitForm *const *outputs, int count, const DigitForm **section);
// Whether inverse ∘ outputs is the identity, by normal form.
bool layout_solve_checks(DigitSpace *logical, const DigitSpace *physical,
                         const DigitForm *const *outputs, const DigitForm *const *inverse);

// The number in [0, m) whose product with a, which is prime to m, is 1 modulo m.
int64_t layout_inverse_modulo(int64_t a, int64_t m);
// The digits x of the sum Σ weight·x, 0 <= x < radix, that has this value; weights are positive and
// ascend (solve_sums.c). False where no rule finds them; what is found is right where the sum is
// injective.
bool layout_solve_sum(DigitSpace *d, const Digit *parts, int count, const DigitForm *value,
                      const DigitForm **out);

enum { MAX_KNOWN = 256, MAX_EQUATIONS = 96 };

typedef struct DigitEquation {
  const DigitForm *form;  // logical
  const DigitForm *value; // physical
} DigitEquation;

typedef struct Known { // the value of a digit of weight 1
  Digit digit;
  const DigitForm *value;
} Known;

typedef struct Parity { // the value of the XOR of the bits in the mask
  BitMask mask;
  const DigitForm *value;
} Parity;

typedef struct DigitSolver {
  DigitSpace *logical, *physical;
  DigitEquation equations[MAX_EQUATIONS];
  Known known[MAX_KNOWN];
  Parity parities[MAX_BITS];
  int equation_count, known_count, parity_count;
  bool progress; // something was learned in this round
} DigitSolver;

// solve_known.c. Values are NULL where they are not known. Weights of digits do not count, nor do
// radices of open ones.
void solver_add(DigitSolver *s, const DigitForm *form, const DigitForm *value); // a new equation
// Unless that is known; the value may be NULL.
void solver_learn(DigitSolver *s, Digit digit, const DigitForm *value);
const DigitForm *solver_floor(DigitSolver *s, int base, int64_t offset, int64_t cut);
const DigitForm *solver_digit(DigitSolver *s, const Digit *digit);
bool solver_knows_bit(const DigitSolver *s, const Digit *bit);
const DigitForm *solver_value(DigitSolver *s, const DigitForm *f); // of a logical form
void solver_merge(DigitSolver *s);        // residues with floors, and with other residues
void solver_relate_bases(DigitSolver *s); // derived bases with the forms that they stand for

// solve_bits.c
void solver_add_parity(DigitSolver *s, Parity p);
void solver_exchange_bits(DigitSolver *s); // known bits with the parities, both ways
void solver_take_out_bits(DigitSolver *s, DigitEquation *e);    // known bits of the equation's XORs
bool solver_learn_bits(DigitSolver *s, const DigitEquation *e); // every bit as a parity

// solve_items.c. False, with nothing learned, where the rule does not apply.
bool solver_separate(DigitSolver *s, const DigitEquation *e);  // by weights that do not overlap
bool solver_learn_sum(DigitSolver *s, const DigitEquation *e); // weights that overlap: solve_sums.c

#endif
