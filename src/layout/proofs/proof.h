// SPDX-License-Identifier: Apache-2.0
// Declares how proofs are found that src/layout/check/check.c accepts (docs/layouts.md,
// "Certificates"): polynomials over atoms and parameters, facts `p >= 0`, and a search for the
// multipliers that show a new one. Everything lives in the scratch arena of one certificate; NULL
// stands for "does not fit".
#ifndef PLEAT_LAYOUT_PROOF_H
#define PLEAT_LAYOUT_PROOF_H

#include "layout/digits/digits.h"

enum { PROOF_DEGREE = 6, TRIVIAL = -1, UNPROVED = -2 };

typedef struct ProofMultiplier {
  const Poly *factor;
  int fact;
} ProofMultiplier;

typedef struct ProofFact {
  const Poly *p;       // >= 0
  ProofMultiplier *by; // NULL: given by an atom, a box or an assumption
  int by_count, number;
  int64_t over;
  const Poly *over_also; // a factor of the divisor; NULL: 1
  bool needed, dead;     // dead: its case is closed
  bool of_case;          // a case begins with it
} ProofFact;

typedef struct ProofVariable {
  const char *name;
  bool parameter, dead;
  const Poly *u, *m; // of the atom ⌊u/m⌋; NULL: an axis or a parameter
  int facts;         // the first of its two
} ProofVariable;

typedef struct ProofQuotient { // ⌊u/m⌋ = value
  const Poly *u, *m, *value;
} ProofQuotient;

// One line of the certificate.
typedef enum ProofStepKind { STEP_TEXT, STEP_ATOM, STEP_FACT } ProofStepKind;
// How a line changes the numbers of facts: the numbers of a closed case are used again.
typedef enum ProofNesting { NEST_NONE, NEST_OPEN, NEST_AGAIN, NEST_CLOSE } ProofNesting;
typedef struct ProofStep {
  ProofStepKind kind;
  const char *text;
  int at, gives; // variable or fact; how many facts follow from it, the first of them `at`
  int skips;     // how many more follow that are not used
  ProofNesting nesting;
} ProofStep;
typedef struct ProofMark {
  int facts, quotients;
} ProofMark;

typedef struct Prover {
  Context *context;
  Arena *arena;
  Array(ProofVariable) variables;
  Array(ProofFact) facts;
  Array(ProofQuotient) quotients;
  Array(ProofStep) steps;
  const Poly *wanted; // a comparison `wanted >= 0` that a case distinction should decide
  int work;           // left before the search is given up
} Prover;

// ---- Polynomials (proof_poly.c)
static inline const Poly *proof_const(Prover *s, int64_t k) {
  return poly_const(s->arena, k);
}
static inline const Poly *proof_variable(Prover *s, int variable) {
  return poly_variable(s->arena, variable);
}
static inline const Poly *proof_linear(Prover *s, const Poly *a, int64_t x, const Poly *b,
                                       int64_t y) { // x·a + y·b
  return poly_linear(s->arena, a, x, b, y);
}
static inline const Poly *proof_product(Prover *s, const Poly *a, const Poly *b) {
  return poly_product(s->arena, a, b, PROOF_DEGREE);
}
bool proof_is_of_parameters(const Prover *s, const Poly *p);
bool proof_is_of_symbols(const Prover *s, const Poly *p); // of parameters and their floors
// A sum of products of parameters with coefficients above 0.
bool proof_is_positive(const Prover *s, const Poly *p);
// a = q·m + r by the leading term of m, coefficients rounded down or (`truncate`) towards 0.
bool proof_split(Prover *s, const Poly *a, const Poly *m, bool truncate, const Poly **q,
                 const Poly **r);
static inline const Poly *proof_exact(Prover *s, const Poly *p, int64_t divisor) {
  return poly_exact(s->arena, p, divisor); // NULL: does not divide
}
const char *proof_text(Prover *s, const Poly *p);

// ---- Facts and atoms (proof.c)
int proof_add_variable(Prover *s, const char *name, bool parameter);
int proof_assume(Prover *s, const Poly *p); // a fact without a line of its own
void proof_add_range(Prover *s, const Poly *p, const Poly *extent); // 0 <= p < extent
// A line as it stands, which gives the last `gives` facts and `skips` without use. NULL: no line
// (the goal gave them).
void proof_line(Prover *s, const char *text, int gives, int skips, ProofNesting nesting);
// Ends the use of all facts and quotients that were found since the mark.
ProofMark proof_mark(const Prover *s);
void proof_close(Prover *s, ProofMark mark);
// The atom ⌊u/m⌋, an existing one when there is one. NULL: m may be below 1.
const Poly *proof_atom(Prover *s, const Poly *u, const Poly *m);
// A fact p >= 0: TRIVIAL, its number, or UNPROVED.
int proof_show(Prover *s, const Poly *p);
bool proof_need(Prover *s, const Poly *p); // shown, and part of the certificate
const Poly *proof_quotient(const Prover *s, const Poly *u, const Poly *m);
// Says that ⌊u/m⌋ is q, when it can be shown.
bool proof_value(Prover *s, const Poly *u, const Poly *m, const Poly *q);
const char *proof_print(Prover *s); // all lines that are needed

// ---- Search (proof_search.c): multipliers of facts with Σ λ·fact <= g·goal + g - 1.
bool proof_search(Prover *s, const Poly *goal, ProofFact *out);

#endif
