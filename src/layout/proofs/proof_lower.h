// SPDX-License-Identifier: Apache-2.0
// Declares how proofs write expressions as polynomials over atoms (proof_lower.c).
#ifndef PLEAT_LAYOUT_PROOF_LOWER_H
#define PLEAT_LAYOUT_PROOF_LOWER_H

#include "layout/proofs/proof.h"

typedef struct LoweredValue {
  Poly p;             // POLY_NONE: not carried
  const DigitForm *f; // its normal form, a hint; may be NULL
} LoweredValue;

typedef struct LoweredSymbol {
  Str symbol;
  Poly p;
} LoweredSymbol;

// The low bits of a value, lowest first, each a polynomial that is 0 or 1, and what is left over
// 2^n.
typedef struct LoweredBits {
  Poly of, rest;
  Poly bits[64];
  int n;
} LoweredBits;

typedef struct ProofLowering {
  Prover *s;
  DigitSpace *d;           // NULL: extents are symbolic
  Poly *axes;              // the axes of the box that d has
  const LoweredValue *now; // what the axes of expressions stand for
  const LoweredSymbol *symbols;
  int symbol_count;
  // Where no form says them: the bits of results of ^, & and |, and all bits there are.
  Array(LoweredBits) known;
  Array(Poly) bits;
} ProofLowering;

LoweredValue proof_lower_expr(ProofLowering *w, const LayoutExpr *e);

#endif
