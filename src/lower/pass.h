// SPDX-License-Identifier: Apache-2.0
// The interface between the files of this folder: the function of each pass, and what several
// passes share. Other folders use lower.h.
#ifndef PLEAT_LOWER_PASS_H
#define PLEAT_LOWER_PASS_H

#include "arith/arith.h"
#include "ir/call.h"
#include "lower/lower.h"

// One function per row of the table; each file's head says what it does.
PrimFunc *lower_convert_blocks(LowerState *state, PrimFunc *func);
PrimFunc *lower_split_at_barriers(LowerState *state, PrimFunc *func);
PrimFunc *lower_collapse_parallel_loops(LowerState *state, PrimFunc *func);
PrimFunc *lower_compact_buffers(LowerState *state, PrimFunc *func);
PrimFunc *lower_widen_indices(LowerState *state, PrimFunc *func);
PrimFunc *lower_guard_accesses(LowerState *state, PrimFunc *func);
PrimFunc *lower_guard_products(LowerState *state, PrimFunc *func);
PrimFunc *lower_hoist_conditions(LowerState *state, PrimFunc *func);
PrimFunc *lower_hoist_branches(LowerState *state, PrimFunc *func);
PrimFunc *lower_hoist_expressions(LowerState *state, PrimFunc *func);
PrimFunc *lower_hoist_values(LowerState *state, PrimFunc *func);
PrimFunc *lower_intrinsics(LowerState *state, PrimFunc *func);
bool lower_is_access_pointer(const Expr *e);
// T.tvm_access_ptr as the address of an element; NULL where no element is known to be meant.
Expr *lower_access_pointer(Context *context, const CallScope *scope, Expr *e);
PrimFunc *lower_stage_texels(LowerState *state, PrimFunc *func);
PrimFunc *lower_split_lanes(LowerState *state, PrimFunc *func);
// False with diagnostics when a statement has a condition of lanes that lower_split_lanes splits.
bool lower_lanes_are_split(Context *context, Stmt *body);
PrimFunc *lower_partition_loops(LowerState *state, PrimFunc *func);
PrimFunc *lower_flatten_buffers(LowerState *state, PrimFunc *func);
PrimFunc *lower_unroll_loops(LowerState *state, PrimFunc *func);
PrimFunc *lower_vectorize_loops(LowerState *state, PrimFunc *func);
PrimFunc *lower_promote_registers(LowerState *state, PrimFunc *func);
PrimFunc *lower_shuffle_loads(LowerState *state, PrimFunc *func);
PrimFunc *lower_divisions(LowerState *state, PrimFunc *func);
PrimFunc *lower_hoist_addresses(LowerState *state, PrimFunc *func);
PrimFunc *lower_form_parallel_regions(LowerState *state, PrimFunc *func);
PrimFunc *lower_simplify(LowerState *state, PrimFunc *func);
// The passes of lower_separate_passes.
PrimFunc *lower_inline_calls(LowerState *state, PrimFunc *func);
PrimFunc *lower_init_blocks(LowerState *state, PrimFunc *func);
PrimFunc *lower_apply_layouts(LowerState *state, PrimFunc *func);
PrimFunc *lower_match_buffers(LowerState *state, PrimFunc *func);
PrimFunc *lower_place_allocations(LowerState *state, PrimFunc *func);
PrimFunc *lower_make_blocks_opaque(LowerState *state, PrimFunc *func);
PrimFunc *lower_remove_no_ops(LowerState *state, PrimFunc *func);
PrimFunc *lower_remove_assumptions(LowerState *state, PrimFunc *func);
PrimFunc *lower_remove_undefined(LowerState *state, PrimFunc *func);
bool lower_is_undefined(Expr *e); // has T.undef as a part
PrimFunc *lower_rename_repeated(LowerState *state, PrimFunc *func);
PrimFunc *lower_guard_selects(LowerState *state, PrimFunc *func);
PrimFunc *lower_share_subexpressions(LowerState *state, PrimFunc *func);
PrimFunc *lower_reuse_allocations(LowerState *state, PrimFunc *func);
PrimFunc *lower_inject_virtual_threads(LowerState *state, PrimFunc *func);
PrimFunc *lower_inject_double_buffers(LowerState *state, PrimFunc *func);
PrimFunc *lower_inject_pipelines(LowerState *state, PrimFunc *func);
PrimFunc *lower_narrow_types(LowerState *state, PrimFunc *func);
PrimFunc *lower_force_int32(LowerState *state, PrimFunc *func);
PrimFunc *lower_vector_buffers(LowerState *state, PrimFunc *func);
PrimFunc *lower_reduce_over_threads(LowerState *state, PrimFunc *func);
PrimFunc *lower_sync_threads(LowerState *state, PrimFunc *func);
PrimFunc *lower_thread_allreduce(LowerState *state, PrimFunc *func);
PrimFunc *lower_make_packed(LowerState *state, PrimFunc *func);
PrimFunc *lower_unpack_api(LowerState *state, PrimFunc *func);
PrimFunc *lower_bind_pointers(LowerState *state, PrimFunc *func);

// The function with one more parameter, `param` with the buffer `result` of one element, which gets
// the value that the function returned. NULL: no parameter. Returns that skip statements stay, with
// the value 0.
PrimFunc *lower_with_result(Context *context, const PrimFunc *func, Buffer *result, Expr *param);

// ---- Arguments -------------------------------------------------------------------------------

// Store the value of an argument of the pass that runs, if it is given. False with a diagnostic for
// a value of another kind.
bool lower_take_flag(LowerState *state, const char *name, bool *value);
bool lower_take_number(LowerState *state, const char *name, int64_t *value); // at least 0
// *given: the argument is this word, the only one that it can be.
bool lower_take_word(LowerState *state, const char *name, const char *word, bool *given);
// *number: which of these words, apart by spaces, the argument is.
bool lower_take_choice(LowerState *state, const char *name, const char *words, int *number);
// Refuses another value than the one that says what the pass does.
bool lower_expect_flag(LowerState *state, const char *name, bool expected);

// ---- The table -------------------------------------------------------------------------------

// Describes a function without one of `facts`, such as "has blocks"; *first becomes that fact, the
// first in the order of the passes.
const char *lower_fact_absent(unsigned facts, unsigned *first);
const LowerPass *lower_pass_giving(unsigned fact); // the first one in the table

// The buffers that convert_blocks allocates directly inside of each loop and block, as a map from
// Stmt* to PtrArray* of Buffer*. With keeps_blocks a buffer that the regions of a block state is
// allocated around that block.
Map lower_allocation_places(Context *context, Stmt *body, bool keeps_blocks);
// Is the statement the attribute double_buffer_scope around the statements that fill a buffer?
bool lower_is_double_buffer(const Stmt *s);

// ---- Blocks ----------------------------------------------------------------------------------

// The block's body, with its init as an if on the first iteration before it.
Stmt *lower_body_with_init(Context *context, const Block *block);
// The statement with the block's variables replaced by their bindings.
Stmt *lower_bind_block_vars(Context *context, const Block *block, Stmt *body);

// ---- Aligned axes ----------------------------------------------------------------------------

// The axes that the blocks below ask to be aligned (aligned_axes.c): from data variables to tuples,
// which convert_blocks makes the annotation "buffer_dim_align" of the allocation.
Map lower_find_aligned_axes(Context *context, Stmt *body);
// The strides that such a tuple asks for; NULL where they are those of dense rows, or the shape is
// symbolic.
Expr **lower_aligned_strides(Context *context, const Buffer *buffer, const Expr *items);

// ---- Statements that leave loops -------------------------------------------------------------

// The body without jumps of these kinds (ir/intrinsic.h); a value that is returned is left out.
// NULL after a diagnostic: a loop whose iterations do not run in order is left.
Stmt *lower_structure_jumps(Context *context, Stmt *body, int kinds);

// ---- Buffers with one more axis --------------------------------------------------------------

// The buffer, with the same data variable, and an axis of `extent` before its others.
Buffer *lower_with_first_axis(Context *context, const Buffer *buffer, Expr *extent);
// The statement with accesses and declarations of `from` as those of `to`, which has one more axis
// in front; `first` is the index along it.
Stmt *lower_index_first(Context *context, Stmt *s, const Buffer *from, Buffer *to, Expr *first);
// The buffer declared directly below an ALLOCATE, where it fills the allocation and all accesses to
// the memory go through it; otherwise NULL.
Buffer *lower_sole_buffer(const Stmt *allocate);
// The allocation with the shape of the buffer.
Stmt *lower_allocate_with(Context *context, const Stmt *allocate, Buffer *buffer, Stmt *body);

// ---- Bounds of accesses ----------------------------------------------------------------------

typedef struct AccessLet {
  Expr *var, *value;
} AccessLet;

// An access has these around it: loops from the outside in, conditions that hold, lets, and the
// conditions under which the expression around the access is evaluated.
typedef struct AccessScope {
  Array(VarRange) loops;
  ExprArray conditions, inner;
  Array(AccessLet) lets;
} AccessScope;

// An iteration in which an index is not in [0, extent).
typedef struct AccessWitness {
  Expr **vars;
  int64_t *values;
  int count;
  int64_t index, extent;
} AccessWitness;
// False when no such iteration was found.
bool access_find_witness(Context *context, const AccessScope *scope, Expr *index, Expr *extent,
                         AccessWitness *out);
// " with i = 3, j = 0", or "" without loops.
const char *access_witness_text(Context *context, const AccessWitness *witness);

// ---- Parallel regions ------------------------------------------------------------------------

// How many chunks of enough work for another thread the parallel loop has: from 1 to `extent`, its
// iterations, over the kernel's scalar arguments. `extent` when the machine is NULL or the work is
// not known.
Expr *lower_region_chunks(Context *context, const HostMachine *machine, const LowerKernel *kernel,
                          Stmt *loop, Expr *extent);

// ---- Conditions ------------------------------------------------------------------------------

// May the condition be computed elsewhere? It reads no memory, has no effect, and
// divides by constants only.
bool lower_may_move(Expr *condition);

// Writes an integer comparison as `form >= 0` (LEAST), `form == 0` or `form != 0`; LEAST without a
// division, i // 8 < 3 as 23 - i >= 0. False for any other condition.
typedef enum ConditionKind { CONDITION_LEAST, CONDITION_EQUAL, CONDITION_DIFFERENT } ConditionKind;
bool lower_condition_form(Context *context, Expr *condition, ConditionKind *kind, Expr **form);

// ---- Threads that wait for one another --------------------------------------------------------

// The variables of a loop over threads, and the data variables, whose values may differ between
// threads.
typedef struct ThreadValues {
  Map differing;
} ThreadValues;
ThreadValues lower_thread_values(Context *context, Stmt *loop);
bool lower_value_differs(const ThreadValues *values, Expr *e);
bool lower_is_private(const char *scope); // gives each thread memory of its own

// The function in which threads exchange values through shared memory, with a barrier before the
// reads; or, when the values need not be `known`, in which a thread gets some value. NULL after a
// diagnostic.
PrimFunc *lower_shuffles(LowerState *state, PrimFunc *func, bool known);
// The function with one loop over threads for each part of a program between two barriers, as far
// as races are concerned: the parts of an iteration before the first barrier and after the last one
// stand with those before and after it. A loop whose phases are not known keeps its barriers. NULL
// after a diagnostic.
PrimFunc *lower_phases(LowerState *state, PrimFunc *func);

// ---- Statements ------------------------------------------------------------------------------

// The body of a FOR, LET, ALLOCATE, ALLOCATE_CONST, DECL_BUFFER or ATTR; NULL for another
// statement.
Stmt *lower_body(const Stmt *s);
bool lower_is_plain_if(const Stmt *s);                              // without an else
Stmt *lower_with_body(Context *context, const Stmt *s, Stmt *body); // for the same statements
void lower_visit_sizes(Visitor *visitor, const Buffer *buffer);     // shape, strides and offset
Buffer *lower_keep_buffer(Rewriter *rewriter, Buffer *b); // for rewriters that change no buffers
// The function with a rewritten body; itself when nothing changed. NULL after a diagnostic of the
// rewriter's hooks.
PrimFunc *lower_rewrite(LowerState *state, PrimFunc *func, Rewriter *rewriter);
// The rewritten body of a branch, in which the condition is known unless the body may change what
// it reads; NULL where there is no branch.
Stmt *lower_rewrite_under(Rewriter *rewriter, Analyzer *analyzer, Expr *condition, Stmt *body);
// Has make_packed made the function? Its arguments are not those that the body accesses.
bool lower_is_packed(const PrimFunc *func);
// The attributes whose values name neither the buffer nor the variable; either may be NULL.
Attrs lower_attrs_without(Context *context, Attrs attrs, const Buffer *buffer, const Expr *var);
// A vector of the `n` lanes `lanes` of the vectors, whose lanes are counted one after the other.
Expr *lower_shuffle(Context *context, Expr *const *vectors, int count, const int *lanes, int n);
// The function with its body changed; that of a lowered function region by region, below the loop
// of a parallel region, so that its form stays.
typedef Stmt *LowerPartChange(LowerState *state, const PrimFunc *func, Stmt *part);
PrimFunc *lower_in_regions(LowerState *state, PrimFunc *func, LowerPartChange *change);
// substitute_stmt of one variable.
Stmt *lower_substitute(Context *context, Stmt *s, Expr *var, Expr *value);
bool lower_is_region_loop(const Stmt *s); // a parallel loop, or one over threads
bool lower_is_regions(const Stmt *s);     // the ATTR around the regions of a lowered body
// That ATTR with each of its regions replaced.
Stmt *lower_map_regions(Rewriter *rewriter, Stmt *s,
                        Stmt *(*map)(Rewriter *rewriter, Stmt *region));

#endif
