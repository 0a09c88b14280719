// SPDX-License-Identifier: Apache-2.0
// Claims as src/layout/check/check.c reads them, and the search for proofs (goal.c, goal_text.c).
// Every certificate shows one of these.
#ifndef PLEAT_LAYOUT_CLAIM_H
#define PLEAT_LAYOUT_CLAIM_H

#include "layout/core/internal.h"

typedef enum ClaimKind { CLAIM_EQUAL, CLAIM_INJECTIVE, CLAIM_ONTO, CLAIM_INVERSE } ClaimKind;

// A name of the claim. Axes: extent, and in `value` the way back from the places. Lets: value.
// Places: extent (not of CLAIM_EQUAL), value, and for CLAIM_EQUAL the other's. Shapes: both values.
typedef struct ClaimName {
  Str name;
  const LayoutExpr *extent, *value, *other;
} ClaimName;

enum { CLAIM_NAMES = 3 * MAX_RANK + 8 };
typedef struct ClaimNames {
  int count;
  ClaimName items[CLAIM_NAMES];
} ClaimNames;

// In values over the box LAYOUT_AXIS i is axis i, then the lets; in those over places, place i.
typedef struct Claim {
  ClaimKind kind;
  bool yes;
  LayoutFacts facts;
  const LayoutValue *instance;
  int instance_count;
  ClaimNames axes, lets, places, shapes;
  bool section;                       // of "onto": `value` of an axis is some index of the place
  int copy_count;                     // how many of the axes, the last ones, are copies
  const LayoutExpr *padding, *except; // over places; number of places without element
  const int64_t *at, *also;           // witnesses, of axes or (CLAIM_ONTO) of places
  LayoutFact symbols[MAX_RANK];       // those that occur; claim_prepare
  int symbol_count;
} Claim;

// Adds a row; claim_prepare notices one too many.
void claim_add(ClaimNames *names, ClaimName row);
// Finds the symbols. False when the claim cannot be said: too many names, an expression too large.
bool claim_prepare(Claim *claim);
// Value number 0, 1, … of a symbol from its least one on is least + multiple·number.
int64_t claim_least(LayoutFact fact);
bool claim_instance(const Claim *claim, Str symbol, int64_t *value);
// The claim without the way in which it is shown. False where the checker's expressions cannot say
// it (shifts by axes).
bool claim_write(Text *text, const Claim *claim);

// The claim with a proof, a witness, or up to `points` points to be looked at: a text that the
// checker accepts, in the scratch arena; NULL: none was found.
const char *claim_certificate(Context *context, const Claim *claim, int64_t points);

#endif
