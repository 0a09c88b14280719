// SPDX-License-Identifier: Apache-2.0
// Lowering turns a tensor program (blocks, N-d buffers, annotated loops) into plain loops over flat
// memory, vectors and registers, which a code generator writes down without deciding anything.
//
// ---- Lowered code (IR_LEVEL_LOWERED): the contract for targets and for the interpreter
//
// The function. `params` and `buffers` are those of the source: buffers[i] stays the N-d
// description of a tensor argument, whose type, shape and strides the argument checker compares.
// The body accesses a flat buffer with the same data variable instead, which a DECL_BUFFER at the
// top declares. Symbolic sizes of the parameters (n of `A: T.Buffer((n, 4))`) are free in the body
// and bound by the caller (`lower_kernel_new` lists them). The elements of different parameters and
// allocations do not overlap (targets may say noalias/restrict); those of parameters with strides
// may alternate in memory.
//
// The body is, from the outside: DECL_BUFFER, ALLOCATE_CONST, LET of values that read no memory,
// and ALLOCATE of workspace, nested; then ATTR LOWER_REGIONS_ATTR around one region or a SEQ of
// regions. A *parallel region* is a LOOP_PARALLEL from 0, whose iterations are independent; a
// serial region is serial statements, which count as one iteration. An outermost loop over threads
// is a serial region of its own. No LOOP_PARALLEL stands anywhere else. The interpreter runs this
// body as it is. A code generator asks `lower_kernel_new` for the same thing cut up: for each
// region one function that runs a *chunk* of it, the iterations begin ≤ i < end that one thread
// takes,
//     void NAME(void *const *args, int64_t begin, int64_t end)
// whose body is ready to be written down, and the offsets of the workspace. args[i] belongs to
// LowerKernel.args[i] (the parameters, then the symbolic sizes). It is the address of the data of a
// tensor, and of the value of a scalar or symbolic size in its own type. args[arg_count] is the
// workspace, if there is one, aligned to 64 bytes.
//
// Statements inside a region:
//   FOR        LOOP_SERIAL, or LOOP_THREAD, which a CPU runs like a serial one; min and extent have
//              the variable's type; an extent below 0 runs no iteration. `annotations` may
//              hold "pleat.unroll" = n, a hint to unroll by n
//   STORE      one index per axis of a flat buffer: 1, or the number of axis separators + 1
//   LET, IF, WHILE, EVALUATE, SEQ; conditions are scalar
//   ASSERT     a condition that the caller must keep; a target may leave it out
//   ALLOCATE   constant extents, at most LOWER_STACK_BYTES a region: registers or the stack.
//              Directly below it stands the DECL_BUFFER of its buffer
//   DECL_BUFFER another name for memory (an alias)
//   ATTR       a hint; the body may be taken alone
// Buffers are flat: rank 1 (or one axis per separator group), strides NULL, offset 0. A buffer of
// scope "local" with one element is a *register*: always accessed at index 0 and as a whole, its
// type may be a vector (float32x16), its address is never taken.
//
// Expressions: all rows of ir/ops.def, where
//   - STRING is only the message of an ASSERT, TUPLE only within SHUFFLE, ADDRESS_OF only within
//     PREFETCH and CALL;
//   - indices are int32 or int64. On a buffer of scalars a vector access has the last index
//     RAMP(base, 1, lanes): `lanes` consecutive elements, aligned to one element only; any other
//     vector of integers gathers or scatters lane by lane (the lanes of a scatter differ);
//   - lanes are powers of two up to LOWER_MAX_LANES; IF_THEN_ELSE and AND/OR with more lanes do not
//     short-cut, and IF_THEN_ELSE has a scalar condition (with lanes it is SELECT);
//   - `x // c` and `x % c` are floored; where both operands are known to be at least 0 they have
//     become TRUNC_DIV and TRUNC_MOD, and by a power of two SHIFT_RIGHT and BIT_AND;
//   - bool in memory takes a byte, 0 or 1.
// A flat Buffer has the `logical` one that it came from, and a flat LOAD or STORE the access of it
// (expr_origin, as.store.origin).
#ifndef PLEAT_LOWER_H
#define PLEAT_LOWER_H

#include "base/machine.h"
#include "ir/ir.h"
#include "passes/passes.h"

#define LOWER_REGIONS_ATTR "pleat.parallel_regions" // its value: how many regions

enum {
  LOWER_STACK_BYTES = 64 * 1024, // larger local allocations become workspace
  LOWER_MAX_LANES = 64,
  LOWER_DEVICE_LANES = 16, // the widest vectors of a device, which are those of OpenCL
  LOWER_MAX_PASSES = 32,
};

// ---- Running ---------------------------------------------------------------------------------

// Counts of the things that lowering did and did not do; every compile prints the second kind.
typedef enum LowerCount {
  LOWER_VECTORIZED,      // vector loops that became vectors
  LOWER_SCALARIZED,      // vector loops that became scalar loops, in whole or in part
  LOWER_GATHERS,         // vector accesses that are not contiguous
  LOWER_UNROLLED,        // unrolled loops
  LOWER_PARTITIONED,     // loops cut into ranges
  LOWER_NOT_PARTITIONED, // loops that keep conditions which cutting would remove
  LOWER_REGISTERS,       // registers made from local buffers
  LOWER_NOT_REGISTERS,   // local buffers that stay in memory
  LOWER_SERIALIZED,      // parallel loops that run in one thread because they are not outermost
  LOWER_COUNT_KINDS,
} LowerCount;
const char *lower_count_name(LowerCount kind); // "loops vectorised"
bool lower_count_is_loss(LowerCount kind);     // it counts what was not done

typedef struct LowerPassTime {
  int runs, changes; // how often it ran, and how often the function came out different
  double seconds;
} LowerPassTime;

typedef struct LowerReport {
  LowerPassTime passes[LOWER_MAX_PASSES]; // by row of lower_passes
  int counts[LOWER_COUNT_KINDS];
  PtrArray notes; // const char *: one sentence for each thing that was not done, and why
} LowerReport;

typedef struct LowerOptions {
  const char *print_after; // a pass, or "all": the function as TVMScript goes to `print_to`
  const char *stop_after;  // a pass
  FILE *print_to;          // NULL: standard error
  bool guards;             // check accesses that are not proved to be in bounds at run time
  bool device;             // the threads of a block run at the same time
  bool drop_result;        // the value that the function returns is of no interest
  bool drop_logical;       // nobody reads the function, so that flat accesses forget logical ones
  const Module *module;    // of the functions that the function calls; NULL: none
  bool verify;             // look for the facts that passes promise in all builds
  bool verify_each;        // run before and after each pass on random inputs and compare
  uint64_t seed;           // of those inputs
  int64_t most_steps;      // a function with more iterations is not compared; 0: any is
  int partition_budget;    // statements that partitioning may add to a function; 0: a cache of them
  LowerReport *report;     // may be NULL; is added to
  // Called after each pass; its result replaces the result of the pass. May be NULL.
  PrimFunc *(*after)(void *env, const char *pass, PrimFunc *func);
  void *after_env;
} LowerOptions;

// `func` ready for a code generator; `options` may be NULL. NULL with diagnostics in the context
// when the function cannot be lowered (a free variable, an access outside of what is declared, …).
PrimFunc *lower_prim_func(Context *context, PrimFunc *func, const LowerOptions *options);
// `func` with the bodies of the functions of the module that it calls in the place of the calls;
// itself when there are none. NULL with a diagnostic: recursion, a pointer to memory that is not
// known, or a size without a value.
PrimFunc *lower_with_callees(Context *context, const Module *module, PrimFunc *func);
// Whether each call of a program of the module has as many arguments as the program has parameters
// after passes. False with diagnostics: make_packed changes parameters, and no calls.
bool lower_check_calls(Context *context, const Module *module);
// The part of a packed function (make_packed) that runs before it computes.
typedef struct LowerHost {
  Str symbol; // by which other programs call it: "__tvm_ffi_f"
  Expr *params[4];
  PtrArray statements; // Stmt *: LET and ASSERT, in order; their bodies have no meaning here
  Expr **values; // for each parameter of the function that then runs, the pointer or the scalar
} LowerHost;
// A function of tensors and scalars that computes what the packed function does, and its host; any
// other function is returned as it is, with NULL in *host. NULL with a diagnostic.
PrimFunc *lower_unpack(Context *context, PrimFunc *func, LowerHost **host);
// A function that returns a value as one that stores it in its last parameter, a buffer of one
// element; any other function is returned as it is. NULL with a diagnostic: it may end without a
// value, or the value is no number.
PrimFunc *lower_store_result(Context *context, PrimFunc *func);
// Does the function run in the interpreter to its end within so many loop iterations, and read only
// what was written? Otherwise LowerOptions.verify_each means nothing.
bool lower_can_compare(Context *context, const PrimFunc *func, const LowerOptions *options,
                       int64_t max_steps);
// False with a diagnostic at the first place of a function that has no code on any target, such as
// an intrinsic of another machine.
bool lower_check_runnable(Context *context, const PrimFunc *func);
// False with a diagnostic where a loop over threads is inside of one over the same threads, and
// what it computes differs for the iterations of the outer one.
bool lower_check_nested_threads(Context *context, const PrimFunc *func);
// False with a diagnostic where a lowered function uses a variable or memory that nothing defines.
bool lower_check_defined(Context *context, const PrimFunc *func);
// Can each intrinsic of a program run? False with a diagnostic at each that cannot. The arguments
// of MakePackedAPI's functions can be read.
bool lower_check_intrinsics(Context *context, const PrimFunc *func);
// Refuses regions and layouts of tiles, which speak of the axes of their buffers.
bool lower_check_tiles(Context *context, const PrimFunc *func);

// Are all accesses of a tensor program inside of their buffers? NO with a diagnostic at each
// statement that has one outside, which shows an iteration; UNDECIDED where some are neither proved
// nor refuted, so that they need LowerOptions.guards.
Verdict lower_accesses_are_inside(Context *context, PrimFunc *func);
// Do the regions that blocks state cover their accesses? False with a diagnostic at each block that
// accesses a buffer it does not state, or an element outside of the stated region; then with the
// values of the variables at which it does. Not all such elements are found.
bool lower_states_accesses(Context *context, const PrimFunc *func);

// Do two iterations of a parallel or vectorised loop access one element, which at least one of them
// writes?
typedef struct LoopRaces {
  const Stmt *loop;
  Verdict verdict;    // YES: proved that none do. NO: a diagnostic has two that do
  const char *access; // UNDECIDED: the access that was not decided, such as "C[idx[i]]",
  const char *other;  // the access with which it may meet, NULL: itself,
  bool writes;        // whether the first one writes,
  SourcePos pos;      // its position,
  const char *why;    // and the reason
} LoopRaces;
typedef Array(LoopRaces) LoopRacesList;
// The answer for each such loop of a tensor program, in order of the text; `out` may be NULL. True
// with a diagnostic at each when there are two such iterations.
bool lower_find_races(Context *context, PrimFunc *func, LoopRacesList *out);
// The same, with a warning at each loop that is not decided.
bool lower_report_races(Context *context, PrimFunc *func, LoopRacesList *loops);
// The same for loops over threads, which only a device runs at once. Those that call functions,
// where threads may wait for one another, are not followed.
bool lower_find_thread_races(Context *context, PrimFunc *func, LoopRacesList *out);
const char *loop_races_kind(const Stmt *loop); // "parallel", "vectorized", "thread"

// All three of the function with its callees in `module` (which may be NULL): NO with a diagnostic
// at each fault, UNDECIDED where accesses need guards. With `loops`
// also a warning at each loop that is not decided. Loops are not looked at when an access is out of
// bounds.
Verdict lower_check_accesses(Context *context, const Module *module, PrimFunc *func,
                             LoopRacesList *loops);

// ---- The passes ------------------------------------------------------------------------------

typedef struct LowerState {
  Context *context;
  const LowerOptions *options;  // never NULL
  LowerReport *report;          // never NULL
  bool compiles;                // the function is lowered for a target, which gives no value back
  const struct LowerPass *pass; // the one that runs,
  PyNode *args[PY_MOST_ARGUMENTS]; // its arguments, in the order of its signature; NULL: absent
} LowerState;
void lower_note(LowerState *state, LowerCount kind, const char *format, ...) PRINTF_LIKE(3, 4);

// Facts that may hold of a function between passes. All of them can be seen in the function.
enum LowerFact {
  LOWER_FACT_NO_BLOCKS = 1,     // loops, ifs and allocations in place of blocks and of jumps
  LOWER_FACT_FLAT = 2,          // accessed buffers have one axis per separator group and no strides
  LOWER_FACT_NO_UNROLLED = 4,   // no LOOP_UNROLLED
  LOWER_FACT_NO_VECTORIZED = 8, // no LOOP_VECTORIZED
  LOWER_FACT_REGIONS = 16,      // declarations, workspace and regions as in the contract above
  LOWER_FACTS_ALL = 31,
  LOWER_FACT_COUNT = 5,
};
unsigned lower_facts_of(const PrimFunc *func);
const char *lower_facts_text(Arena *arena, unsigned facts); // "no blocks, flat accesses"

typedef struct LowerPass {
  const char *name;
  PrimFunc *(*run)(LowerState *state, PrimFunc *func); // NULL after a diagnostic
  unsigned needs, gives, breaks; // LowerFact; `breaks` also what may no longer hold afterwards
  bool changes_params;           // may give a parameter another shape
  bool takes_packed;             // functions with packed arguments too, on which no other pass runs
  const char *summary;
  const char *signature;   // its arguments, for pass_call_arguments; NULL: it takes none
  const char *other_names; // TVM's names of it, separated by spaces; NULL: none
} LowerPass;
extern const LowerPass lower_passes[]; // in the order of lower_prim_func; ends with a NULL name
// Passes that lower_prim_func does not run: parts of its passes, and cleaning up.
extern const LowerPass lower_separate_passes[]; // ends with a NULL name
int lower_pass_index(const char *name);         // in lower_passes; -1 when there is none
const LowerPass *lower_pass_at(int i); // of both tables, one after the other; NULL past the end
const LowerPass *lower_pass_find(const char *name); // by its name or by one of its other names
// The end of a message that there is no such pass: "; did you mean 'x'?", or "" when none is near.
const char *lower_pass_suggestion(Context *context, const char *name);

// An order of two passes on which the quality of the result depends.
typedef struct LowerOrder {
  const char *before, *after, *because;
} LowerOrder;
extern const LowerOrder lower_orders[]; // ends with a NULL name
// An order that lower_passes does not keep, or NULL. Checked before lowering where the promised
// facts are looked for.
const LowerOrder *lower_order_broken(void);

// Runs the named passes in the given order, each with the checks and hooks of `options`. Reports an
// unknown name, or a pass that needs a fact which `func` does not have and no pass before it gave.
PrimFunc *lower_run_passes(Context *context, PrimFunc *func, const char *const *names, int count,
                           const LowerOptions *options);
// Appends the pass of the call; the name "lower" stands for all passes of lower_passes. False with
// a diagnostic.
bool lower_add_calls(Context *context, const PassCall *call, PassCalls *calls);
// The same for passes with arguments.
PrimFunc *lower_run_calls(Context *context, PrimFunc *func, const PassCall *calls, int count,
                          const LowerOptions *options);

// The number of statements that `s` becomes when its unrolled loops are written out, up to `limit`.
// Lets of values that are not integers count too.
int64_t lower_size(Stmt *s, int64_t limit);

// A serial loop whose body is all under a condition that reads memory and does not depend on the
// iteration: where it is false, no later iteration does anything, so the loop may end.
bool lower_loop_ends(const Stmt *loop);

// ---- A lowered function, cut up for a code generator ------------------------------------------

typedef enum LowerArgKind { LOWER_ARG_TENSOR, LOWER_ARG_SCALAR, LOWER_ARG_SYMBOL } LowerArgKind;

typedef struct LowerArg {
  LowerArgKind kind;
  Str name;
  Expr *var;      // the data variable (a handle), or the scalar variable
  Buffer *buffer; // the N-d description of a tensor
  // The value of a symbol is that of tensor argument `tensor`: extent `axis` of its shape, stride
  // `axis`, or its element offset.
  enum { LOWER_FROM_SHAPE, LOWER_FROM_STRIDE, LOWER_FROM_OFFSET } from;
  int tensor, axis;
} LowerArg;

typedef struct LowerSlot { // a piece of the workspace
  Expr *data;              // the data variable, which is args[arg_count] + offset bytes
  Expr *offset, *bytes;    // int64, over scalar parameters; offset is a multiple of 64
} LowerSlot;

typedef struct LowerRegion { // becomes one function, which runs a chunk
  Str name;                  // NAME of the function, or NAME_2, NAME_3, … for later regions
  Expr *begin, *end;         // of the chunk: int64 variables, free in the body
  Expr *extent; // int64: iterations of the region, over scalar parameters; the constant 1 if serial
  Expr *chunks; // int64, over scalar parameters: into at most so many chunks the iterations are
                // worth cutting, 1 to extent; with 1 the region runs in one thread
  Stmt *body;   // declarations and the loop over the chunk; no LOOP_PARALLEL
} LowerRegion;

typedef struct LowerKernel {
  PrimFunc *func;
  int arg_count, slot_count, region_count;
  LowerArg *args;
  LowerSlot *slots;
  LowerRegion *regions;  // to be run one after the other
  Expr *workspace_bytes; // int64; 0 without slots
  // The guards of `func`; NULL: none. They note accesses out of bounds at this offset of the
  // workspace, 16 bytes for each, which the caller sets to zero before the first region of a run
  // and reads after the last.
  const AccessGuards *guards;
  int64_t guards_offset;
} LowerKernel;
// `lowered`, which lower_prim_func made, cut up. The chunks of its regions are those of the
// machine; with NULL, each iteration may be one.
LowerKernel *lower_kernel_new(Context *context, PrimFunc *lowered, const HostMachine *machine);

// ---- Planning of one arena -------------------------------------------------------------------

// A tensor that is alive from step `first` to step `last`, both included.
typedef struct ArenaItem {
  int64_t bytes, alignment;
  int first, last;
  int64_t offset; // the result
} ArenaItem;
// Gives each item an offset so that items alive at the same step do not overlap; returns the size
// of the arena (-1 when it does not fit int64). *bound (may be NULL): the largest sum of live
// items.
int64_t arena_plan(Context *context, ArenaItem *items, int count, int64_t *bound);

// The body of the function, in which each definition of a variable that was defined before is one
// of a new variable.
Stmt *lower_with_own_variables(Context *context, const PrimFunc *func);

#endif
