// SPDX-License-Identifier: Apache-2.0
// What the passes of this folder share with one another, not with neighbours.
#ifndef PLEAT_LOWER_PASS_H
#define PLEAT_LOWER_PASS_H

#include "arith/arith.h"
#include "lower/lower.h"

// One function per row of the table; each file's head says what it does.
PrimFunc *lower_convert_blocks(LowerState *state, PrimFunc *func);
PrimFunc *lower_compact_buffers(LowerState *state, PrimFunc *func);
PrimFunc *lower_guard_products(LowerState *state, PrimFunc *func);
PrimFunc *lower_hoist_conditions(LowerState *state, PrimFunc *func);
PrimFunc *lower_partition_loops(LowerState *state, PrimFunc *func);
PrimFunc *lower_flatten_buffers(LowerState *state, PrimFunc *func);
PrimFunc *lower_unroll_loops(LowerState *state, PrimFunc *func);
PrimFunc *lower_vectorize_loops(LowerState *state, PrimFunc *func);
PrimFunc *lower_promote_registers(LowerState *state, PrimFunc *func);
PrimFunc *lower_divisions(LowerState *state, PrimFunc *func);
PrimFunc *lower_hoist_addresses(LowerState *state, PrimFunc *func);
PrimFunc *lower_form_parallel_regions(LowerState *state, PrimFunc *func);
PrimFunc *lower_simplify(LowerState *state, PrimFunc *func);

// ---- The table -------------------------------------------------------------------------------

// "has blocks": what a function without the first of `facts` has; *first becomes that fact.
const char *lower_fact_absent(unsigned facts, unsigned *first);
const LowerPass *lower_pass_giving(unsigned fact); // the first one in the table

// Buffers to allocate directly inside of each loop and block of a body with blocks: Stmt* to
// PtrArray* of Buffer*.
Map lower_allocation_places(Context *context, Stmt *body);

// ---- Conditions ------------------------------------------------------------------------------

// An integer comparison as `form >= 0` (for EQ and NE: `form == 0`, `form != 0`). False for others.
typedef enum ConditionKind { CONDITION_LEAST, CONDITION_EQUAL, CONDITION_DIFFERENT } ConditionKind;
bool lower_condition_form(Context *context, Expr *condition, ConditionKind *kind, Expr **form);

// ---- Statements ------------------------------------------------------------------------------

Stmt *lower_with_body(Context *context, const Stmt *s,
                      Stmt *body);                         // FOR, LET, ALLOCATE, DECL, ATTR
Stmt *lower_body(const Stmt *s);                           // of the same kinds; NULL for others
bool lower_loads_stored(const Expr *e, const Stmt *store); // the very place that `store` writes
Buffer *lower_keep_buffer(Rewriter *rewriter, Buffer *b);  // for rewriters that leave buffers alone
// substitute_stmt of one variable.
Stmt *lower_substitute(Context *context, Stmt *s, Expr *var, Expr *value);
bool lower_is_regions(const Stmt *s); // the ATTR around the regions of a lowered body

#endif
