// SPDX-License-Identifier: Apache-2.0
// Proofs that different iterations of loops have different values of some indices.
#ifndef PLEAT_SCHEDULE_INJECTION_H
#define PLEAT_SCHEDULE_INJECTION_H

#include "schedule/internal.h"

// The map from loops to index values, for which injectivity is asked. Other variables in the
// indices have one value for all iterations.
typedef struct Injection {
  Schedule *schedule;
  Analyzer *analyzer; // has the ranges of all variables
  Expr **ids;         // one for each axis with a known box
  int id_count;
  VarRange *loops; // the map must be injective in these
  int loop_count;
} Injection;

// True when the map is proved to be injective in its loops.
bool injection_is_proved(const Injection *given);
// For each conjunct `number < size` of the predicate whose loops occur in no other index and
// are determined by the number: replaces the number by one variable below the size, and its
// loops by that variable. Iterations that the predicate excludes then need not be distinguished.
// The analyzer gets the ranges of the new variables.
void injection_cut_numbers(Injection *q, const Expr *predicate);
// Adds those of the first `count` statements of the path that are loops which the indices use: a
// map that is injective in more loops is so in each iteration of these. False when there are none,
// or the extent of one is neither a constant nor made of sizes.
bool injection_add_outer(Injection *q, const Path *path, int count);
// The variables that an expression uses, each once, in the order of their first use.
ExprArray expr_variables(Arena *arena, Expr *e);

#endif
