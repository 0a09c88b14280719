// SPDX-License-Identifier: Apache-2.0
// Claims as src/layout/check/check.c reads them, and the search for proofs (goal.c, goal_text.c).
// Every certificate shows one of these.
#ifndef PLEAT_LAYOUT_GOAL_H
#define PLEAT_LAYOUT_GOAL_H

#include "layout/core/core.h"

typedef enum GoalKind { GOAL_EQUAL, GOAL_INJECTIVE, GOAL_ONTO, GOAL_INVERSE } GoalKind;

// A name of the claim. Axes: extent, and in `value` the way back from the places. Lets: value.
// Places: extent (not of GOAL_EQUAL), value, and for GOAL_EQUAL the other's. Shapes: both values.
typedef struct GoalName {
  Str name;
  const LayoutExpr *extent, *value, *other;
} GoalName;

enum { GOAL_NAMES = 3 * MAX_RANK + 8 };
typedef struct GoalNames {
  int count;
  GoalName items[GOAL_NAMES];
} GoalNames;

// In values over the box LAYOUT_AXIS i is axis i, then the lets; in those over places, place i.
typedef struct Goal {
  GoalKind kind;
  bool yes;
  LayoutFacts facts;
  const LayoutValue *instance;
  int instance_count;
  GoalNames axes, lets, positions, shapes;
  bool points_first; // the points of small boxes are tried before a proof is sought
  bool section;      // of "onto": `value` of an axis is some index of the place
  int copy_count;    // how many of the axes, the last ones, are copies
  const LayoutExpr *padding, *except; // over places; number of places without element
  const int64_t *at, *also;           // witnesses, of axes or (GOAL_ONTO) of places
  LayoutFact symbols[MAX_RANK];       // those that occur; goal_prepare
  int symbol_count;
} Goal;

// Adds a row; goal_prepare notices one too many.
void goal_add(GoalNames *names, GoalName row);
// Finds the symbols. False when the claim cannot be said: too many names, an expression too large.
bool goal_prepare(Goal *goal);
// Value number 0, 1, … of a symbol from its least one on is least + multiple·number.
int64_t goal_least(LayoutFact fact);
bool goal_instance(const Goal *goal, Str symbol, int64_t *value);
// The claim without the way in which it is shown. False where the checker's expressions cannot say
// it (shifts by axes).
bool goal_write(Text *text, const Goal *goal);

// The claim with a proof, a witness, or up to `points` points to be looked at: a text that the
// checker accepts, in the scratch arena; NULL: none was found.
const char *goal_certificate(Context *context, const Goal *goal, int64_t points);

#endif
