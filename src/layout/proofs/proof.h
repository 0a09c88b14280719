// SPDX-License-Identifier: Apache-2.0
// Declares how proofs are found that src/layout/check/check.c accepts (docs/layouts.md,
// "Certificates"): polynomials over atoms and parameters, facts `p >= 0`, and a search for the
// multipliers that show a new one. Everything lives in the scratch arena of one certificate.
#ifndef PLEAT_LAYOUT_PROOF_H
#define PLEAT_LAYOUT_PROOF_H

#include "layout/digits/digits.h"

enum { PROOF_DEGREE = 6, TRIVIAL = -1, UNPROVED = -2 };

typedef struct ProofMultiplier {
  Poly factor;
  int fact;
} ProofMultiplier;

typedef struct ProofFact {
  Poly p;              // >= 0
  ProofMultiplier *by; // NULL: given by an atom, a box or an assumption
  int by_count, number;
  int64_t over;
  Poly over_also;    // a factor of the divisor; POLY_NONE: 1
  bool needed, dead; // dead: its case is closed
  bool of_case;      // a case begins with it
} ProofFact;

typedef struct ProofVariable {
  const char *name;
  bool parameter, dead;
  Poly u, m; // of the atom ⌊u/m⌋; POLY_NONE: an axis or a parameter
  int facts; // the first of its two
} ProofVariable;

typedef struct ProofQuotient { // ⌊u/m⌋ = value
  Poly u, m, value;
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
  Poly wanted; // a comparison `wanted >= 0` that a case distinction should decide
  int work;    // left before the search is given up
} Prover;

// ---- Polynomials (proof_poly.c)
static inline Poly proof_variable(Prover *s, int variable) {
  return poly_variable(s->arena, variable);
}
static inline Poly proof_linear(Prover *s, Poly a, int64_t x, Poly b,
                                int64_t y) { // x·a + y·b
  return poly_linear(s->arena, a, x, b, y);
}
static inline Poly proof_product(Prover *s, Poly a, Poly b) {
  return poly_product(s->arena, a, b, PROOF_DEGREE);
}
bool proof_is_of_parameters(const Prover *s, Poly p);
bool proof_is_of_symbols(const Prover *s, Poly p); // of parameters and their floors
// A sum of products of parameters with coefficients above 0.
bool proof_is_positive(const Prover *s, Poly p);
// a = q·m + r by the leading term of m, coefficients rounded down or (`truncate`) towards 0.
bool proof_split(Prover *s, Poly a, Poly m, bool truncate, Poly *q, Poly *r);
static inline Poly proof_exact(Prover *s, Poly p, int64_t divisor) {
  return poly_exact(s->arena, p, divisor); // POLY_NONE: does not divide
}
const char *proof_text(Prover *s, Poly p);

// ---- Facts and atoms (proof.c)
int proof_add_variable(Prover *s, const char *name, bool parameter);
int proof_assume(Prover *s, Poly p);                  // a fact without a line of its own
void proof_add_range(Prover *s, Poly p, Poly extent); // 0 <= p < extent
// A line as it stands, which gives the last `gives` facts and `skips` without use. NULL: no line
// (the goal gave them).
void proof_line(Prover *s, const char *text, int gives, int skips, ProofNesting nesting);
// Ends the use of all facts and quotients that were found since the mark.
ProofMark proof_mark(const Prover *s);
void proof_close(Prover *s, ProofMark mark);
// The atom ⌊u/m⌋, an existing one when there is one. POLY_NONE: m may be below 1.
Poly proof_atom(Prover *s, Poly u, Poly m);
// A fact p >= 0: TRIVIAL, its number, or UNPROVED.
int proof_show(Prover *s, Poly p);
bool proof_need(Prover *s, Poly p); // shown, and part of the certificate
Poly proof_quotient(const Prover *s, Poly u, Poly m);
// Says that ⌊u/m⌋ is q, when it can be shown.
bool proof_value(Prover *s, Poly u, Poly m, Poly q);
const char *proof_print(Prover *s); // all lines that are needed

// ---- Search (proof_search.c): multipliers of facts with Σ λ·fact <= g·goal + g - 1.
bool proof_search(Prover *s, Poly goal, ProofFact *out);

#endif
