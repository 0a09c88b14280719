// SPDX-License-Identifier: Apache-2.0
// What is true of integer expressions inside a program: simplification, bounds, proofs, linear
// forms, and the regions of buffers that statements touch. Exact: "true" from a `prove` is a proof.
#ifndef PLEAT_ARITH_H
#define PLEAT_ARITH_H

#include "ir/index_map.h"
#include "ir/ir.h"

// Facts about variables, scoped: enter a loop, bind its variable; leave, and the facts go.
typedef struct Analyzer Analyzer;
Analyzer *analyzer_new(Context *context);
int analyzer_mark(const Analyzer *analyzer); // of the facts so far
void analyzer_reset(Analyzer *analyzer, int mark);
// min <= var < min + extent (symbolic allowed); binding to extent 1 makes var equal min.
void analyzer_bind(Analyzer *analyzer, Expr *var, Expr *min, Expr *extent);
// analyzer_bind, but a variable of extent 1 stays.
void analyzer_bind_kept(Analyzer *analyzer, Expr *var, Expr *min, Expr *extent);
void analyzer_bind_value(Analyzer *analyzer, Expr *var, Expr *value);
// A condition known to hold here; conjunctions are taken apart.
void analyzer_assume(Analyzer *analyzer, Expr *condition);

Expr *simplify(Analyzer *analyzer, Expr *e);      // equal in value, not larger; canonical for sums
Expr *simplify_deep(Analyzer *analyzer, Expr *e); // until nothing changes, with proofs of guards
bool prove(Analyzer *analyzer, Expr *condition);  // true only when it holds for all allowed values
bool prove_equal(Analyzer *analyzer, Expr *a, Expr *b);
// Inclusive constant bounds; false when there are none. Exact for sums of digits of independent
// variables, an outer bound otherwise.
bool const_bounds(Analyzer *analyzer, Expr *e, int64_t *low, int64_t *high);
// e ≡ *rest (mod *divisor), the largest divisor known (0: a constant).
void modular_form(Analyzer *analyzer, Expr *e, int64_t *divisor, int64_t *rest);
// Simplifies a whole statement with the facts of its loops, blocks, lets and conditions; conditions
// that are proved go, loops of one iteration and dead branches too.
Stmt *simplify_stmt(Context *context, Stmt *s);
Stmt *simplify_stmt_under(Analyzer *analyzer, Stmt *s); // with facts of what stands around

// The value of an integer or boolean expression where each vars[i] is values[i]. False when it has
// none: another variable, memory, a call, a division by zero, an overflow, floats, vectors.
bool expr_value(const Expr *e, Expr *const *vars, const int64_t *values, int count, int64_t *out);

bool expr_reads_memory(Expr *e); // loads, or calls anything

// e == base + Σ coefficients[i] * vars[i], with base free of vars. False when it is not linear.
bool linear_form(Context *context, Expr *e, Expr *const *vars, int count, int64_t *coefficients,
                 Expr **base);

// The box of values that the index expressions take while `vars` run over their ranges: min and
// extent per axis in terms of the other variables. Exact when *exact (may be NULL) is set; never
// smaller than the truth. An axis without bounds (an index that is loaded) gets NULL in both.
// Exact: every point of the box is taken.
typedef struct VarRange {
  Expr *var, *min, *extent;
} VarRange;
void index_region(Analyzer *analyzer, Expr *const *indices, int rank, const VarRange *vars,
                  int var_count, Expr **min, Expr **extent, bool *exact);
Region region_union(Analyzer *analyzer, const Region *a, const Region *b);
bool region_covers(Analyzer *analyzer, const Region *outer, const Region *inner); // proved
// All buffer accesses below `s`, as regions over what is free at `s` (loops and blocks inside are
// run through), merged per buffer, in order of first occurrence. Allocations inside are left out.
typedef Array(Region) RegionArray;
void stmt_regions(Analyzer *analyzer, Stmt *s, RegionArray *reads, RegionArray *writes);
// The same of a block's init and body, in terms of its variables and of memory outside of it.
void block_regions(Analyzer *analyzer, const Block *block, RegionArray *reads, RegionArray *writes);
// Fills in reads and writes of blocks that do not state them.
Stmt *blocks_find_regions(Context *context, Stmt *s);

// The facts under which bindings enumerate their block's domain: for affine bindings (quasi-affine
// splits and fuses of loops, each loop's iterations used once), whether they map the loops onto the
// block's domain exactly, where `predicate` holds. NULL when they do, else what is wrong.
const char *bindings_check(Analyzer *analyzer, const Block *block, const VarRange *loops,
                           int loop_count);

#endif
