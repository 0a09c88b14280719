// SPDX-License-Identifier: Apache-2.0
// The results of a reduction, which steps compute in parts.
#ifndef PLEAT_SCHEDULE_REDUCED_RESULTS_H
#define PLEAT_SCHEDULE_REDUCED_RESULTS_H

#include "schedule/internal.h"

// One result of the reduction: target = combine(target, term).
typedef struct ReducedBuffer {
  Buffer *target, *partial; // `partial` is for the step that reads the results
  const Stmt *init;
  Expr *load;  // of the target
  Expr *value; // what is stored, without variables of lets
  Expr *term;
  ExprOp op;  // EXPR_SELECT: that of an argmax or argmin
  Expr *name; // the variable of the let that has the value; NULL: there is none
} ReducedBuffer;

enum { MOST_RESULTS = 8 };

// How an argmax or argmin chooses: the operation by which the first operand is better, and what it
// does where both are equal.
typedef struct Choice {
  int key, carried; // the results by which it chooses, and which it carries along
  ExprOp better;    // EXPR_GT or EXPR_LT
  // Orders the carried results of equal elements: EXPR_LT, …; EXPR_AND: the smaller index is first,
  // and negative ones are none; EXPR_SELECT: the first element stays.
  ExprOp among;
} Choice;

typedef struct ReducedResults {
  Context *context;
  const Block *block;
  ReducedBuffer results[MOST_RESULTS];
  int count;
  bool chooses; // an argmax or argmin, of two results
  Choice choice;
  Expr *const *indices; // of the targets
  int rank;
} ReducedResults;

// Reads the block's results. False where it is no reduction with an init whose results are combined
// by an operation with a neutral element, or by an argmax or argmin.
bool reduced_results_read(Context *context, const Block *block, ReducedResults *out);
// Value i of the results for two operands, each with a value for each result.
Expr *reduced_value(const ReducedResults *all, int i, Expr *const *a, Expr *const *b);
// The condition under which an argmax keeps its first operand.
Expr *choice_keeps_first(Context *context, const Choice *c, Expr *const *a, Expr *const *b);

#endif
