// SPDX-License-Identifier: Apache-2.0
// Numbers in mixed radix: an expression of loops is read as a sum of weighted digits, each of which
// is a digit of a loop, or of a fused number that is such a sum itself.
//   io*16 + ii                  the digits io, with the weight 16, and ii
//   f // 7, f % 7               both digits of the fused number f
#ifndef PLEAT_ARITH_MIXED_RADIX_H
#define PLEAT_ARITH_MIXED_RADIX_H

#include "arith/internal.h"

enum { MOST_SOURCES = 64, MOST_USES = 8, MOST_CLAUSES = 16 };

// A loop, or a fused number: an expression that takes the values 0 … extent - 1.
typedef struct Source {
  Expr *e;
  const Form *extent;
  int use_count;
  struct {
    int64_t cut, radix;
  } uses[MOST_USES];
} Source;

typedef struct Clause { // form >= 0
  const Form *form;
  bool used;
} Clause;

typedef struct RadixCheck {
  Analyzer *analyzer;
  int source_count, clause_count;
  Source sources[MOST_SOURCES];
  Clause clauses[MOST_CLAUSES];
  const char *reason;
} RadixCheck;

// weight * ((source // cut) % extent), where the last digit of a source has no modulo.
typedef struct WeightedDigit {
  const Form *weight, *extent;
  const Source *source;
  int64_t cut;
} WeightedDigit;

// Notes the first problem, with a name in it. Returns false.
bool radix_refuse(RadixCheck *check, const char *format, const char *name);
// Takes the conditions of a predicate as bounds. False for one that bounds no index.
bool radix_gather_clauses(RadixCheck *check, Expr *predicate);
// The extent of a number of `extent` values after the predicate's upper bounds on it.
const Form *radix_cut_extent(RadixCheck *check, const Form *f, const Form *extent);
// Binds the loops and makes them sources.
void radix_add_loops(RadixCheck *check, const VarRange *loops, int count);
void radix_cut_loops(RadixCheck *check); // by the bounds of the predicate on them
// The digits of f, whose use is noted, and the rest. False when f is not such a sum.
bool radix_digits(RadixCheck *check, const Form *f, WeightedDigit *digits, int *count,
                  const Form **rest);
// The number of values of f when f is a mixed-radix number that starts at 0; NULL otherwise.
const Form *radix_number_extent(RadixCheck *check, const Form *f);
bool radix_same(RadixCheck *check, const Form *a, const Form *b); // proved to be equal
// Are the digits of each source used once, and all of them? Otherwise the reason is noted.
bool radix_sources_used_up(RadixCheck *check);
bool radix_clauses_used(RadixCheck *check); // does each bound cut something, or hold anyway?
// The terms of f in which there is no loop.
const Form *radix_without_sources(RadixCheck *check, const Form *f);
// Is no digit of a source used twice, in part or whole?
bool radix_digits_apart(RadixCheck *check);

#endif
