// SPDX-License-Identifier: Apache-2.0
// Analysis of the integer expressions inside a program, for all passes: simplification, bounds,
// proofs, linear forms, and the regions of buffers that statements access. The analysis is exact or
// says that it is not: "true" from `analyzer_prove` is a proof.
#ifndef PLEAT_ARITH_H
#define PLEAT_ARITH_H

#include "ir/index_map.h"
#include "ir/ir.h"

// Facts about variables, in scopes: bind a loop's variable when entering the loop, and drop its
// facts when leaving.
typedef struct Analyzer Analyzer;
Analyzer *analyzer_new(Context *context);
Analyzer *analyzer_new_in(Context *context, Arena *arena); // lives as long as the arena
int analyzer_mark(const Analyzer *analyzer); // the number of facts so far, for analyzer_reset
void analyzer_reset(Analyzer *analyzer, int mark);
// Assumes min <= var < min + extent (both may be symbolic). An extent of 1 makes var equal to min.
void analyzer_bind(Analyzer *analyzer, Expr *var, Expr *min, Expr *extent);
// As analyzer_bind, but a variable of extent 1 is kept in simplified expressions.
void analyzer_bind_kept(Analyzer *analyzer, Expr *var, Expr *min, Expr *extent);
void analyzer_bind_value(Analyzer *analyzer, Expr *var, Expr *value);
// A variable that a condition says to equal something stays in simplified expressions from now on.
void analyzer_keep_names(Analyzer *analyzer);
// Assumes a condition that holds in this scope. A conjunction is split into its parts.
void analyzer_assume(Analyzer *analyzer, Expr *condition);
// Assumes that the extents of the function's parameters are not negative.
void analyzer_assume_sizes(Analyzer *analyzer, const PrimFunc *func);
// Assumes that a loop of this extent, which may be free, has an iteration.
void analyzer_assume_runs(Analyzer *analyzer, Expr *extent);

Expr *analyzer_simplify(Analyzer *analyzer,
                        Expr *e); // equal in value, not larger; canonical for sums
// The condition as a conjunction of disjunctions; itself where a part may have no value.
Expr *analyzer_and_of_ors(Analyzer *analyzer, Expr *e);
Expr *analyzer_simplify_deep(Analyzer *analyzer,
                             Expr *e); // to a fixed point, proving guards
bool analyzer_prove(Analyzer *analyzer,
                    Expr *condition); // true only when it holds for all allowed values
// The part of begin <= value < end that is not proved; the constant true when all of it is.
Expr *analyzer_unproved_within(Analyzer *analyzer, Expr *value, Expr *begin, Expr *end);
bool analyzer_prove_within(Analyzer *analyzer, Expr *value, Expr *begin, Expr *end);
bool analyzer_prove_equal(Analyzer *analyzer, Expr *a, Expr *b);
// Inclusive constant bounds; false when there are none. They are exact for sums of digits of
// independent variables, and an outer bound otherwise.
bool analyzer_const_bounds(Analyzer *analyzer, Expr *e, int64_t *low, int64_t *high);
// Finds e ≡ *rest (mod *divisor) with the largest divisor known; divisor 0 says that e is the
// constant *rest.
void modular_form(Analyzer *analyzer, Expr *e, int64_t *divisor, int64_t *rest);
bool modular_is_multiple(Analyzer *analyzer, Expr *e, int64_t factor); // known to be one
// Simplifies a whole statement under the facts of its loops, blocks, lets and conditions.
// Conditions that are proved, loops of one iteration and dead branches are removed.
Stmt *arith_simplify_stmt(Context *context, Stmt *s);
// The body of a function likewise, where the sizes of the parameters are not negative either. With
// and_of_ors, conditions are written as conjunctions of disjunctions.
Stmt *arith_simplify_body(Context *context, const PrimFunc *func, bool and_of_ors);

// The value of an integer or boolean expression where each vars[i] is values[i]. False when the
// value is not known: the expression has another variable, memory, a call, a float, a vector, a
// division by zero or an overflow.
bool expr_value(const Expr *e, Expr *const *vars, const int64_t *values, int count, int64_t *out);
// The value of one lane of a vector in which no variable occurs; false likewise, and where a part
// has fewer than 32 bits or no sign, since it may wrap around.
bool expr_lane_value(const Expr *e, int lane, int64_t *out);

bool expr_reads_memory(Expr *e); // true for loads, addresses and calls

// e == factor * (dividend // divisor) + rest, with a positive divisor.
typedef struct QuotientForm {
  Expr *dividend;
  int64_t divisor, factor, rest;
} QuotientForm;
bool quotient_form(Context *context, Expr *e, QuotientForm *out);

// e == base + Σ coefficients[i] * vars[i], with base free of vars. False when it is not linear.
bool linear_form(Context *context, Expr *e, Expr *const *vars, int count, int64_t *coefficients,
                 Expr **base);

// The box of values that the index expressions take while `vars` run over their ranges, as min and
// extent for each axis in terms of the other variables. The box never excludes a value that is
// taken; *exact (may be NULL) is set when every point of the box is taken. An axis without bounds
// (such as a loaded index) gets NULL in both.
typedef struct VarRange {
  Expr *var, *min, *extent;
} VarRange;
VarRange loop_range(const Stmt *loop);
void index_region(Analyzer *analyzer, Expr *const *indices, int rank, const VarRange *vars,
                  int var_count, Expr **min, Expr **extent, bool *exact);
// index_region for variables whose ranges are bound already.
void index_region_of_bound(Analyzer *analyzer, Expr *const *indices, int rank, const VarRange *vars,
                           int var_count, Expr **min, Expr **extent, bool *exact);
Region region_union(Analyzer *analyzer, const Region *a, const Region *b);
bool region_covers(Analyzer *analyzer, const Region *outer,
                   const Region *inner); // proved
// All buffer accesses below `s`, as one region for each buffer, in order of first access. The
// regions are in terms of the variables that are free at `s` and cover all iterations of its loops
// and blocks. Buffers that `s` allocates are left out.
typedef Array(Region) RegionArray;
void stmt_regions(Analyzer *analyzer, Stmt *s, RegionArray *reads, RegionArray *writes);
// The same for a block's init and body, in terms of the block's variables, without the buffers that
// the block allocates.
void block_regions(Analyzer *analyzer, const Block *block, RegionArray *reads, RegionArray *writes);
// Fills in the reads and writes of the blocks that do not state them.
Stmt *blocks_find_regions(Context *context, Stmt *s);

// Does a reduction variable of the block, or one that is none, have a binding that uses the loop's
// variable?
bool block_binds(const Block *block, const Expr *var, bool reduction);
// The inits of blocks that a loop of their reduction leaves out when it has no iterations, or when
// a condition leaves out all of them, under these conditions; NULL where there are none.
Stmt *loop_empty_inits(Context *context, Stmt *loop);
// A loop without iterations becomes such inits, or nothing.
Stmt *loop_left_out(Context *context, Stmt *loop);
// Loops of the block's reduction, and a condition on them and on no loop of its spatial variables:
// may it be false in their first iteration, and is it then false in all, or are there none?
bool condition_needs_first(Context *context, const Block *block, Expr *condition,
                           const VarRange *loops, int count);
// The statement with these inits before each such loop.
Stmt *stmt_state_empty_inits(Context *context, Stmt *s);

// Do the stated reads and writes of a block cover its accesses? NO where a buffer is not stated at
// all: *missing, *written or read. YES for blocks whose accesses are not seen, because they
// call functions.
Verdict block_states_accesses(Context *context, const Block *block, const Buffer **missing,
                              bool *written);

// Checks that the bindings, which must be affine (quasi-affine splits and fuses of loops, each
// loop's iterations used once), map the loops onto the block's domain and meet each point once
// where `predicate` holds. Under the analyzer's facts. NULL when they do, else the text of the
// problem.
const char *bindings_check(Analyzer *analyzer, const Block *block, const VarRange *loops,
                           int loop_count);

// An iteration map: each index is base + scale * number, where the number takes the values 0 …
// extent - 1, independently of the others. The number is the sum of its digits times their scales,
// the largest first; a digit is (source // cut) % extent, where the source, a loop or a fused
// number, takes the values 0 … source_extent - 1.
typedef struct IterDigit {
  Expr *source, *source_extent;
  int64_t cut;
  Expr *extent, *scale;
} IterDigit;
typedef struct IterIndex {
  Expr *base, *scale, *extent;
  IterDigit *digits;
  int digit_count;
} IterIndex;
// Bijective: each point is met once. Onto: points may be met several times. Unchecked: the indices
// may depend on one another.
typedef enum IterMapLevel {
  ITER_MAP_BIJECTIVE,
  ITER_MAP_ONTO,
  ITER_MAP_UNCHECKED = 3
} IterMapLevel;
typedef struct IterMapQuestion {
  Expr *const *indices;
  int count;
  const VarRange *loops;
  int loop_count;
  Expr *predicate;
  IterMapLevel level;
} IterMapQuestion;
// Stores the iteration map in out[question->count], and returns NULL; otherwise the reason why
// there is none.
const char *iter_map_find(Analyzer *analyzer, const IterMapQuestion *question, IterIndex *out);

#endif
