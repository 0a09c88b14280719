// SPDX-License-Identifier: Apache-2.0
// Expressions as polynomials over atoms (proof_walk.c).
#ifndef PLEAT_LAYOUT_PROOF_WALK_H
#define PLEAT_LAYOUT_PROOF_WALK_H

#include "layout/proof.h"

typedef struct WalkValue {
  const ProofPoly *p; // NULL: not carried
  const Form *f;      // its normal form, a hint; may be NULL
} WalkValue;

typedef struct WalkSymbol {
  Str symbol;
  const ProofPoly *p;
} WalkSymbol;

typedef struct Walk {
  Prover *s;
  Digits *d;              // NULL: extents are symbolic
  const ProofPoly **axes; // the axes of the box that d has
  const WalkValue *now;   // what the axes of expressions stand for
  const WalkSymbol *symbols;
  int symbol_count;
} Walk;

WalkValue walk_expr(Walk *w, const LayoutExpr *e);
const ProofPoly *walk_form(Walk *w, const Form *f);

#endif
