// SPDX-License-Identifier: Apache-2.0
// Expressions as polynomials over atoms (proof_lower.c).
#ifndef PLEAT_LAYOUT_PROOF_WALK_H
#define PLEAT_LAYOUT_PROOF_WALK_H

#include "layout/proofs/proof.h"

typedef struct WalkValue {
  const ProofPoly *p; // NULL: not carried
  const Form *f;      // its normal form, a hint; may be NULL
} WalkValue;

typedef struct WalkSymbol {
  Str symbol;
  const ProofPoly *p;
} WalkSymbol;

// The low bits of a value, lowest first, each a polynomial that is 0 or 1, and what is left over
// 2^n.
typedef struct WalkBits {
  const ProofPoly *of, *rest;
  const ProofPoly *bits[64];
  int n;
} WalkBits;

typedef struct Walk {
  Prover *s;
  Digits *d;              // NULL: extents are symbolic
  const ProofPoly **axes; // the axes of the box that d has
  const WalkValue *now;   // what the axes of expressions stand for
  const WalkSymbol *symbols;
  int symbol_count;
  // Where no form says them: the bits of results of ^, & and |, and all bits there are.
  Array(WalkBits) known;
  Array(const ProofPoly *) bits;
} Walk;

WalkValue walk_expr(Walk *w, const LayoutExpr *e);
const ProofPoly *walk_form(Walk *w, const Form *f);

#endif
