// SPDX-License-Identifier: Apache-2.0
// Proof goals: the statements of which certificates consist, as src/layout/check/check.c reads
// them ("claim" is the word of the text form, docs/layouts.md). goal.c searches for a proof of a
// goal and goal_text.c writes it.
#ifndef PLEAT_LAYOUT_GOAL_H
#define PLEAT_LAYOUT_GOAL_H

#include "layout/core/core.h"

typedef enum GoalKind { GOAL_EQUAL, GOAL_INJECTIVE, GOAL_ONTO, GOAL_INVERSE } GoalKind;

// A name of the goal. An axis has its extent, and in `value` the way back from the physical
// indices; a let has its value; a position (a physical axis) has its value and its extent, or, for
// GOAL_EQUAL, the value of the other map; a shape has both values.
typedef struct GoalName {
  Str name;
  const LayoutExpr *extent, *value, *other;
} GoalName;

enum { GOAL_NAMES = 3 * MAX_RANK + 8 };
typedef struct GoalNames {
  int count;
  GoalName items[GOAL_NAMES];
} GoalNames;

// In a value over the box, LAYOUT_AXIS i is axis i, and after the axes a let; in a value over the
// physical shape it is position i.
typedef struct Goal {
  GoalKind kind;
  bool yes;
  LayoutFacts facts;
  const LayoutValue *instance;
  int instance_count;
  GoalNames axes, lets, positions, shapes;
  bool points_first; // the points of small boxes are tried before a proof is sought
  bool section;      // of GOAL_ONTO: `value` of an axis is some index of the position
  int copy_count;    // the number of axes that are copies; they are the last ones
  const LayoutExpr *padding, *except; // over positions; the number of positions without element
  const int64_t *at, *also;           // witnesses: indices, or for GOAL_ONTO a physical index
  Str symbols[MAX_RANK];              // the symbols that occur, set by goal_prepare
  int symbol_count;
} Goal;

// Adds a row. Where there are too many rows, goal_prepare fails.
void goal_add(GoalNames *names, GoalName row);
// Finds the symbols. False when the goal has too many names or too large an expression.
bool goal_prepare(Goal *goal);
// The least value of a symbol: its values are least + multiple·n for n = 0, 1, …
int64_t goal_least(LayoutFact fact);
bool goal_instance(const Goal *goal, Str symbol, int64_t *value);
// Writes the goal without the way in which it is shown. False where the checker has no expression
// for it (shifts by axes).
bool goal_write(Text *text, const Goal *goal);

// The goal with a proof, a witness, or the order to enumerate up to `points` points: a text that
// the checker accepts, in the scratch arena. NULL: none was found.
const char *goal_certificate(Context *context, const Goal *goal, int64_t points);

#endif
