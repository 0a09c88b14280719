// SPDX-License-Identifier: Apache-2.0
// The interface between the files that decide whether iterations of a loop are independent: the
// accesses of its body, the proof that no two of them meet, and the search for a pair.
#ifndef PLEAT_LOWER_RACES_H
#define PLEAT_LOWER_RACES_H

#include "lower/pass.h"

typedef struct LoopAccess {
  Buffer *buffer;
  Expr **indices; // scalar; NULL: any element
  bool writes;
  Expr *value;    // that is written
  const Stmt *by; // the statement
  SourcePos pos;
  // The loops inside of the statement, from the outside in, and lanes. A range without an extent is
  // a variable whose value is data.
  VarRange *ranges;
  Expr **conditions; // that hold at the access
  int range_count, condition_count;
} LoopAccess;

typedef struct LoopAccesses {
  Array(LoopAccess) items;
  Map written;  // data variables of buffers that are written
  Expr *opaque; // a call or a pointer, which may access any memory; NULL: there is none
  SourcePos opaque_pos;
} LoopAccesses;
// The accesses of a statement to memory from outside of it, in order of the text.
LoopAccesses lower_accesses_of(Context *context, Stmt *body);
// The same for the body of a loop over these threads: memory that they share is from outside of it
// also where it is allocated in the body. `thread` is NULL for other loops.
LoopAccesses lower_accesses_of_thread(Context *context, Stmt *body, const char *thread);

// Two accesses of one element in different iterations, as far as is known.
typedef struct RaceDoubt {
  const LoopAccess *first, *second; // NULL: see LoopAccesses.opaque
  const char *why;
} RaceDoubt;
// Proves, under the analyzer's facts, that no two iterations of the loop access one element which
// one of them writes. Values that are the same whichever iteration writes them do no harm. False
// with the first pair of accesses that is not decided.
typedef struct RaceQuestion {
  Context *context;
  Analyzer *analyzer;
  Stmt *loop;
  const VarRange *outer; // the loops around it, from the outside in
  int outer_count;
  const LoopAccesses *accesses;
} RaceQuestion;
bool lower_prove_no_races(const RaceQuestion *question, RaceDoubt *doubt);
// The same for these two accesses alone, of which each may be in either iteration.
bool lower_prove_apart(const RaceQuestion *question, const LoopAccess *a, const LoopAccess *b);
// The same for two accesses of one shape, by the layout algebra. Needs extents that are numbers.
bool lower_layouts_keep_apart(const RaceQuestion *question, const LoopAccess *a,
                              const LoopAccess *b);

// Whether every element of the memory `from` is read for the last time in the statement before one
// of `to` is stored over it, if both are the same memory.
bool lower_may_overwrite(Context *context, Stmt *s, const Expr *from, const Expr *to);

enum { ASSUMED_SIZE = 8 }; // the value with which a size of the caller is tried
// The variables that are sizes of the function's parameters.
ExprArray lower_free_sizes(Context *context, const PrimFunc *func);

// Whether iterations of the vectorised loop may add up to the element that `by` stores.
bool lower_sums_lanes(const Stmt *loop, const Stmt *by);

#endif
