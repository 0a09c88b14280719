// SPDX-License-Identifier: Apache-2.0
// The interfaces between the files of src/schedule: the schedule itself, step calls, paths in the
// tree of statements, and the analyses that the steps' proofs use.
#ifndef PLEAT_SCHEDULE_INTERNAL_H
#define PLEAT_SCHEDULE_INTERNAL_H

#include "arith/arith.h"
#include "ir/index_map.h"
#include "schedule/schedule.h"

// ---- Steps as data ---------------------------------------------------------------------------

typedef enum ValueKind {
  VALUE_NONE,
  VALUE_BLOCK,
  VALUE_LOOP,
  VALUE_INT,
  VALUE_FLOAT,
  VALUE_BOOL,
  VALUE_STRING,
  VALUE_LIST,
  VALUE_DICT, // its keys, each followed by its value, are the items of as.list
  VALUE_MAP,
  VALUE_FUNCTION,
} ValueKind;

typedef struct StepValue StepValue;
struct StepValue {
  ValueKind kind;
  int sample; // of an INT that a sampling step chose: the number of the choice, from 1; 0: none
  union {
    BlockRef block;
    LoopRef loop;
    int64_t i; // also bool
    double f;
    Str s;
    const IndexMap *map;
    const Expr *function; // an EXPR_LAMBDA
    struct {
      StepValue *items;
      int count;
    } list;
  } as;
};

// The values that a parameter takes: TARGET is a block or a loop, NEST a loop or a list of blocks,
// PART one of the three, SLOT a buffer of a block as
// ("write", 0), NUMBER an INT or a FLOAT.
typedef enum ParamKind {
  PARAM_STRING,
  PARAM_BLOCK,
  PARAM_LOOP,
  PARAM_TARGET,
  PARAM_NEST,
  PARAM_PART,
  PARAM_LIST,
  PARAM_ANY,
  PARAM_BOOL,
  PARAM_INT,
  PARAM_READ,  // the number of a buffer that the block reads, or its name
  PARAM_WRITE, // that it writes
  PARAM_NUMBER,
  PARAM_SLOT,
  PARAM_MAP,
  PARAM_PADDING, // a number, a map or a function from physical indices to one, or "unknown"
} ParamKind;

enum { STEP_MAX_PARAMS = 7 };

typedef struct StepParam {
  const char *name; // "*…": takes all remaining positional arguments as a list
  ParamKind kind;
  bool keyword, optional;
} StepParam;

// The result of a step in Python; from BLOCKS on, it is a list, even of one item.
typedef enum StepResult {
  RESULT_NOTHING,
  RESULT_BLOCK,
  RESULT_LOOP,
  RESULT_INT,
  RESULT_BLOCKS,
  RESULT_LOOPS,
  RESULT_INTS,
} StepResult;

typedef struct StepCall StepCall;
typedef struct StepInfo {
  const char *name;
  StepResult result;
  bool (*run)(Schedule *schedule, StepCall *call);
  StepParam params[STEP_MAX_PARAMS];
} StepInfo;

typedef enum StepId {
#define STEP(NAME, ...) STEP_##NAME,
#include "schedule/steps.def"
#undef STEP
  STEP_COUNT
} StepId;
extern const StepInfo step_table[STEP_COUNT];
#define STEP(NAME, ...) bool step_##NAME(Schedule *schedule, StepCall *call);
#include "schedule/steps.def"
#undef STEP

// The change of a buffer's layout by a step.
typedef struct Relaid {
  const Buffer *buffer; // before the step
  const Layout *layout; // the step's map on the shape of the buffer
  bool named;           // the name of the buffer is enough to find it in the step's block
  PrimFunc *before, *after;
} Relaid;

struct StepCall {
  const StepInfo *info;
  StepValue args[STEP_MAX_PARAMS];
  const Relaid *relaid;     // NULL: the step changes no layout
  Array(StepValue) results; // blocks, loops and integers that were sampled
};

struct Schedule {
  Context *context;
  PrimFunc *func;
  Array(StepCall) trace;
  StepCall last;        // the last step that was made, recorded or not
  Map known;            // handles that have a name in the trace
  int sample_count;     // choices of sampling steps so far
  uint64_t random;      // the state from which they are drawn
  const Stmt *jump;     // a statement that leaves a loop early; NULL: the function has none
  Map intrinsics;       // of tensorize, by name
  Map shared_names;     // names of several blocks → the name of the first of them here
  Map rolled;           // data variables of buffers of which rolling_buffer keeps a window
  const Module *module; // in which others are found; may be NULL
  Map names;            // names that scripts gave: interned name to StepValue
  SourcePos pos;
  bool quiet;
  const StepInfo *step; // the running step
  const char *refusal;
};

static inline StepValue value_block(BlockRef block) {
  return (StepValue){VALUE_BLOCK, .as.block = block};
}
static inline StepValue value_loop(LoopRef loop) {
  return (StepValue){VALUE_LOOP, .as.loop = loop};
}
static inline StepValue value_int(int64_t i) {
  return (StepValue){VALUE_INT, .as.i = i};
}
static inline StepValue value_string(Str s) {
  return (StepValue){VALUE_STRING, .as.s = s};
}
// A list of `count` items that are NONE.
static inline StepValue value_list(Context *context, int count) {
  return (StepValue){VALUE_LIST,
                     .as.list = {arena_array(&context->arena, StepValue, count), count}};
}
// The value of a SLOT.
static inline StepValue value_slot(Context *context, bool write, StepValue index) {
  StepValue slot = value_list(context, 2);
  slot.as.list.items[0] = value_string(str_intern(context, write ? "write" : "read"));
  slot.as.list.items[1] = index;
  return slot;
}
// An argument that is True by default.
static inline bool value_is_true(const StepValue *value) {
  return value->kind != VALUE_BOOL || value->as.i;
}
// An optional INT, and the value of a NUMBER.
static inline int64_t value_int_or(const StepValue *value, int64_t otherwise) {
  return value->kind == VALUE_INT ? value->as.i : otherwise;
}
static inline double value_number(const StepValue *value) {
  return value->kind == VALUE_INT ? (double)value->as.i : value->as.f;
}
// The number of a parameter; -1: the step has none of this name.
int step_find_param(const StepInfo *info, const char *name);
// Whether loops that covered a buffer are to cover its new shape, where the step can be told.
bool step_rewrites_loops(const StepCall *call);
static inline bool result_is_list(const StepInfo *info) {
  return info->result >= RESULT_BLOCKS;
}

// Runs a step and records it, or restores the schedule when it is refused. The results are in
// `call`.
bool step_apply(Schedule *schedule, StepCall *call);
// Runs step `id` with these arguments; *call (may be NULL) gets the results.
bool step_run(Schedule *schedule, StepId id, const StepValue *args, int count, StepCall *call);
void step_result(Schedule *schedule, StepCall *call, StepValue value);
// Reports why the running step is refused; always false. The message begins with the step's name;
// its position is `pos` unless schedule_at set one.
bool schedule_refuse(Schedule *schedule, SourcePos pos, const char *format, ...) PRINTF_LIKE(3, 4);

// The constant, string or tuple of an annotation; NULL when the value is none of these.
Expr *step_value_expr(Context *context, const StepValue *value);

typedef Array(StepCall) StepCallArray;
// How another form of the trace runs once a form of a step gives an equal program in other words,
// so that later steps may differ, too: the schedule so far, and from the trace's blocks, loops and
// integers to those of this run (StepValue). The schedule is NULL as long as the functions are
// equal.
typedef struct FormRun {
  Schedule *schedule;
  Map again;
} FormRun;
// Makes a step that has no other form on `run`.
void form_run_step(FormRun *run, const StepCall *call);
// Steps on single axes that change the layout as this step does, give the same loops, and let the
// rest of the trace be made; `run` is then after them. False with *why.
bool layout_as_axis_steps(const Schedule *schedule, FormRun *run, const StepCall *call,
                          StepCallArray *out, const char **why);
// The longest run of steps on single axes, from the first of these on, that one transform_layout
// replaces: returns its length and stores the step; `run` is then after it. 0: there is none.
int axis_steps_as_layout(const Schedule *schedule, FormRun *run, const StepCall *calls, int count,
                         StepCall *out);

// ---- Paths -----------------------------------------------------------------------------------

// The statements from the function's body (items[0]) down to one statement (the last item).
typedef struct Path {
  Stmt **items;
  int *child; // child[i]: which nested statement of items[i] is items[i + 1]
  int count;
} Path;

int stmt_child_count(const Stmt *s);
Stmt *stmt_child(const Stmt *s, int i);
Stmt *stmt_with_child(Context *context, const Stmt *s, int i, Stmt *child);

static inline Stmt *path_end(const Path *path) {
  return path->items[path->count - 1];
}
bool path_to_stmt(const Schedule *schedule, const Stmt *s, Path *out);
bool path_to_block(const Schedule *schedule, BlockRef block, Path *out);
bool path_to_loop(const Schedule *schedule, LoopRef loop, Path *out);
// The same; when it is not found, they refuse with a message that suggests a similar name.
bool schedule_find_block(Schedule *schedule, BlockRef block, Path *out);
bool schedule_find_loop(Schedule *schedule, LoopRef loop, Path *out);
// Finds a block and a loop, which must be around the block in the same scope; its depth in the
// block's path is *depth. False after a refusal.
bool schedule_find_block_in_loop(Schedule *schedule, BlockRef block, LoopRef loop, Path *path,
                                 int *depth);
// The function's body with items[depth] replaced. A replacement that is NULL or an empty sequence
// removes the statement, and also the loops and conditions that become empty.
Stmt *path_replace(Context *context, const Path *path, int depth, Stmt *replacement);
// items[depth] with the end of the path replaced.
Stmt *path_with_end(Context *context, const Path *path, int depth, Stmt *end);
// The depth of the nearest block above items[depth]; -1 when there is none.
int path_scope(const Path *path, int depth);
// The depth of the outermost loop around items[depth] within its scope, or `depth` itself.
int path_nest_top(const Path *path, int depth);
// The loops between items[depth] and its scope, outermost first: returns their number.
int path_loops(Schedule *schedule, const Path *path, int depth, Stmt ***loops);
int path_ranges(Schedule *schedule, const Path *path, int depth, VarRange **ranges); // their ranges
// True when, within one iteration of the common loops, the last statement of `a` runs before that
// of `b`.
bool path_precedes(const Path *a, const Path *b);
// The depth, in a's path, of the innermost loop around both ends; -1 when there is none.
int common_loop(const Path *a, const Path *b);
void schedule_set_body(Schedule *schedule, Stmt *body);

// Replaces items[depth]. When it is an item of a sequence, a replacement that is a sequence is
// flattened into it.
void path_replace_flat(Schedule *schedule, const Path *path, int depth, Stmt *replacement);
// Replaces the block at the path's end.
void path_replace_block(Schedule *schedule, const Path *path, Block *block);
void block_allocate(Schedule *schedule, BlockRef block, Buffer *buffer);
// Replaces items[depth] by `kept` with `nest` before or after it; their scope allocates `buffer`.
void path_place_beside(Schedule *schedule, const Path *path, int depth, Stmt *kept, Stmt *nest,
                       bool after, Buffer *buffer);

// The blocks directly below `s` (not those inside of other blocks), in order. If `s` is a block,
// the blocks directly inside of it.
typedef Array(Stmt *) StmtArray;
void blocks_below(Arena *arena, Stmt *s, StmtArray *out);
void blocks_at(Arena *arena, Stmt *s, StmtArray *out); // the same, or just `s` if it is a block
// The blocks at any depth, `s` included.
void blocks_all(Arena *arena, Stmt *s, StmtArray *out);
// The same, but only the blocks without inner blocks.
void blocks_innermost(Arena *arena, Stmt *s, StmtArray *out);
int block_number(const StmtArray *blocks, const Block *block); // its index; -1: it is none of them
bool stmt_has_loose_stores(Stmt *s); // stores, calls etc. below `s` that are in no block
// True when a statement in no innermost block, a condition or a bound of a loop accesses the
// buffer, or writes it. Prefetches do not count.
bool stmt_uses_loosely(Stmt *s, const Buffer *buffer, bool writes);
Str schedule_unique_name(const Schedule *schedule, const char *name);
Stmt *block_stmt(const Schedule *schedule, BlockRef block);

// Rebuilds `s` with f applied to every block directly below (not to those inside of these).
typedef Stmt *(*BlockMap)(void *env, Stmt *block);
Stmt *stmt_map_blocks(Context *context, Stmt *s, BlockMap f, void *env);

// ---- Programs --------------------------------------------------------------------------------

// Both conditions, of which NULL counts as true; one that reads memory is evaluated last; if both
// do, `b` is.
Expr *condition_and(Context *context, Expr *a, Expr *b);

int64_t loop_const_extent(const Stmt *loop); // -1 when symbolic
bool loop_is_plain(const Stmt *loop);        // serial, without annotations
static inline const char *loop_name(const Stmt *loop) {
  return loop->as.loop.var->as.var->name;
}
bool loop_bounds_use(const Stmt *loop, const Expr *var);     // its min or extent
bool refuse_decorated(Schedule *schedule, const Stmt *loop); // that is not plain; false
// Replaces loops of one iteration in the bindings of blocks below the loop by their values, unless
// `keep`, the argument preserve_unit_iters, is true.
void loop_drop_unit_iters(Schedule *schedule, LoopRef loop, const StepValue *keep);
bool loop_cut(Schedule *schedule, StepCall *call); // loop_partition with factors
// True for a plain loop from 0 that the block's variable is bound to and whose extent it has.
bool loop_is_variable(const Stmt *s, const BlockVar *v);
// `body` for the iterations for which a condition holds: a predicate of its blocks, or an `if`.
Stmt *stmt_only_where(Context *context, Stmt *body, Expr *condition);
Stmt *loop_like(Context *context, const Stmt *loop, Expr *var, Expr *min, Expr *extent,
                Stmt *body); // with the kind and annotations of `loop`
// An analyzer with the facts that hold at items[depth]: of loops, block variables, lets and
// conditions above it.
Analyzer *path_analyzer(Schedule *schedule, const Path *path, int depth);
// Binds the variables of the block, except those without values: everything is true of them, and
// an index that is simplified by that would be used where a later step gives it a value.
void block_bind_domain(Analyzer *analyzer, const Block *block);

// Splits a block's predicate into the conditions that follow from the domains of its variables
// (they keep split loops in range) and the others, rewritten over the variables. False when one
// cannot be rewritten.
bool predicate_divide(Schedule *schedule, const Path *path, ExprArray *of_domain,
                      ExprArray *of_vars);
Map bindings_of(Context *context, const Block *block); // block variables to their bindings
// A copy of the block with the reads and writes that its body has. The reads of a reduction with an
// init omit the regions that it writes, unless the block states to read its result.
Block *block_with_regions(Context *context, Block *b);
Stmt *stmt_with_block(Context *context, const Stmt *s, Block *block);
// The store with another value.
Stmt *store_with_value(Context *context, const Stmt *store, Expr *value);
// The block statement `s` in serial loops from 0, one for each variable of the block.
Stmt *block_in_loops(Context *context, Expr *const *loops, Stmt *s);
// Calls `visit` for each store and load of the block's init and body, a store before its loads.
typedef void (*AccessVisit)(void *env, Buffer *buffer, Expr *const *indices);
void block_visit_accesses(const Block *block, AccessVisit visit, void *env);
// True when an index, a divisor or the predicate of the block reads the buffer, so that the block
// must not run before what it reads there is stored.
bool block_is_guided_by(const Block *block, const Buffer *buffer);
// True when the block may skip a read of the buffer, because the read is under a condition.
bool block_reads_conditionally(const Block *block, const Buffer *buffer);
// True when everything that the last block of `from` uses is defined at the end of `to`, too. False
// with *why.
bool path_is_defined_at(Schedule *schedule, const Path *from, const Path *to, const char **why);
// bindings_check of the block with the loops around the end of the path, whose facts the analyzer
// has.
const char *path_bindings_check(Schedule *schedule, const Path *path, Analyzer *analyzer,
                                const Block *block);
// Where the loops of a block run over a part of its domain, such as those of a copy of the elements
// that are read, the block is the same with that part as its domain. Finds it again.
bool path_narrow_domain(Schedule *schedule, BlockRef ref, Path *path);
// The consumers or producers of the path's block in its scope, in order.
void blocks_related(Schedule *schedule, const Path *path, bool consumers, StmtArray *out);

// The update `target = target op term`, under `condition` (NULL: always). The term does not read
// the target.
typedef struct ReductionUpdate {
  ExprOp op; // ADD, SUB, MUL, MIN, MAX, AND, OR or a bit operation
  Expr *target, *term, *condition;
} ReductionUpdate;
// True for equal indices, where a variable of extent 1 is equal to its value.
bool block_same_element(const Block *block, Expr *const *a, Expr *const *b, int rank);
bool reduction_update(const Block *block, ReductionUpdate *out);
// The x for which y op x is y; NULL where the operation or the type has none.
Expr *reduction_neutral(Context *context, ExprOp op, DType type);
// Refuses a step on a block whose init uses a variable of its reduction; true when it is refused.
bool refuse_late_init(Schedule *schedule, SourcePos pos, const Block *block);
// Refuses a step on a block with block_init_is_partial.
bool refuse_partial_init(Schedule *schedule, SourcePos pos, const Block *block);

// ---- Dependences -----------------------------------------------------------------------------

// The elements that one execution of a statement accesses, as seen from below a chain of loops.
typedef struct Access {
  Block *block;
  bool write;
  Buffer *buffer;
  Expr **min, **extent;  // in terms of the loops at and above the chain
  bool exact;            // every element of the box is accessed (predicates aside)
  Expr **points;         // the element that one instance accesses; NULL when it accesses a box
  const VarRange *inner; // the loops between, which the box covers
  int inner_count;
} Access;
typedef Array(Access) AccessArray;
// Where a conjunct `e < c` of a block's predicate holds, an index `point` is less than the result,
// which is the same for all iterations of the loops: with 6*i + j < 392, the end of 6*i + j is 392,
// and that of k + (6*i + j) // 56 is k + 7. NULL when there is none.
Expr *predicate_end(Analyzer *analyzer, Context *context, Expr *conjunct, Expr *point,
                    const VarRange *loops, int count);
// All accesses of the blocks below `s`, over all iterations of the loops between. The analyzer has
// the facts of the loops above `s`.
void stmt_accesses_below(Schedule *schedule, Analyzer *analyzer, Stmt *s, AccessArray *out);
// The same, where what other statements in `whole` write may change between the accesses.
void stmt_accesses_within(Schedule *schedule, Analyzer *analyzer, Stmt *s, Stmt *whole,
                          AccessArray *out);
// The accesses of the blocks below a loop, over all iterations of the loops inside of it and of the
// loops around it over threads that share memory of this scope. For global memory these loops do
// not count, as in TVM. The analyzer has the facts of the loops down to `loop`.
void loop_accesses_of_threads(Schedule *schedule, Analyzer *analyzer, const Path *loop,
                              const char *scope, AccessArray *out);
// True when all loads in the expression are proved to be in bounds.
bool loads_stay_within(Analyzer *analyzer, Context *context, Expr *e);
// The union of the regions of the buffer that the block reads; false when there is none.
bool accesses_union(Context *context, Analyzer *analyzer, const AccessArray *accesses,
                    const Block *block, Buffer *buffer, Region *out);

// True when the index is a variable that takes exactly the values 0 … extent - 1, or 0 for an
// extent of 1.
bool index_is_axis(const Block *block, const Expr *index, const Expr *extent);
bool buffer_is_parameter(const Schedule *schedule, const Buffer *buffer);
// True when the block's init sets fewer elements than its updates change, because the indices of
// its writes use variables of the reduction.
bool block_init_is_partial(const Block *block);
// True when the block, run over its domain, writes every element that a program may read: its body
// writes all of its regions, and its predicate excludes only points outside of the domain and
// padding. The analyzer has the facts of
// the surrounding loops.
bool block_writes_whole_domain(Schedule *schedule, const Block *block, Analyzer *analyzer);
// The condition under which these physical indices are padding; NULL: never, or unknown.
Expr *padding_condition(Schedule *schedule, const Buffer *buffer, Expr *const *indices);
// The value that a T.assume of the function states for a load in a block, over the block's
// variables, where the facts of the analyzer prove that it states one; NULL otherwise.
Expr *assumed_element(Schedule *schedule, Analyzer *analyzer, const Map *bindings,
                      const Expr *load);

// True when the buffer is filled and used within one iteration of the loop items[depth], and
// nowhere else.
bool buffer_is_private_below(Schedule *schedule, const Path *path, int depth, const Buffer *buffer);
// True when different iterations of the loop items[depth] write different elements of the buffer.
bool buffer_writes_apart(Schedule *schedule, const Path *path, int depth, const Buffer *buffer);
// True when the path's block alone updates its result below items[top], by an operation whose order
// does not matter, after its init, and the loops from there on run in order or as threads of a
// block.
bool path_reduces_in_order(Schedule *schedule, const Path *path, int top);
// True when the elements of the buffer that an iteration of the loop items[depth] reads have the
// same values at the end of the loop: later iterations write others, or the same values again.
bool buffer_stays_below(Schedule *schedule, const Path *path, int depth, const Buffer *buffer);

// True when each element that an iteration of the loop items[depth] reads of the buffer is one that
// it wrote before.
bool loop_reads_own_writes(Schedule *schedule, const Path *path, int depth, const Buffer *buffer);

// True when the path's block holds other blocks, and each element that an execution of it reads of
// the buffer is one that it wrote before.
bool block_reads_own_writes(Schedule *schedule, const Path *path, const Buffer *buffer);

// Finds the box of the buffer that these accesses write. WRITTEN_BOX says that every element of it
// is written (up to predicates that exclude points outside of the domain); WRITTEN_PARTS that this
// is not known.
typedef enum Written { WRITTEN_NOTHING, WRITTEN_BOX, WRITTEN_PARTS } Written;
Written accesses_written(Schedule *schedule, Analyzer *analyzer, const AccessArray *accesses,
                         const Buffer *buffer, Region *out);
// The condition on the loops outside of the accesses under which the blocks that write the buffer
// of the box write it at all, where an element of the box is in the buffer: the indices of the box
// may be right only there. NULL where the blocks have different ones, or where it is not known.
Expr *accesses_guard(Context *context, Analyzer *analyzer, const AccessArray *accesses,
                     const Region *box);
// Does the block write padding that has a content with the other elements? A predicate may keep it
// out of padding.
bool writes_padding(const Block *block, const Buffer *buffer);
// True when the stores below the statement are proved to write all elements of the region, by what
// the analyzer knows of the variables around the statement.
bool stmt_fills_region(Context *context, Analyzer *analyzer, Stmt *s, const Region *region);
// True when the region is outside of its buffer wherever the predicate is false, or padding where a
// schedule is given; `values` has what stands for variables.
bool predicate_excludes_outside(Context *context, Schedule *schedule, Analyzer *analyzer,
                                Expr *predicate, const Region *region, const Map *values);
// True when the accesses have a write of the block that is proved to write all of the buffer.
bool block_fills_buffer(Schedule *schedule, Analyzer *analyzer, const AccessArray *accesses,
                        const Block *block, Buffer *buffer);
// True when no two iterations of the loops down to the end of the path write the same element of
// the buffer, so that an element is complete after one of them.
bool path_completes_buffer(Schedule *schedule, const Path *loop, const Buffer *buffer);

// True when no two iterations of the loops from items[top] to the end of the path write the same
// element of the buffer below the last loop.
bool path_writes_tell_iterations(Schedule *schedule, const Path *path, int top,
                                 const Buffer *buffer);

// True when the loops' iterations may run in any order (loops_independent), or in the given new
// order of the loops (path_order_is_free). False with *why, the reason.
enum {
  ALLOW_PRIVATE = 1,   // an iteration may fill and use storage that others use after it
  ALLOW_COMBINING = 2, // sums, minima and maxima into one element may be reordered
  ALLOW_REDUCING = 4,  // iterations may be terms of one reduction, which is started by its init
};
bool loops_independent(Schedule *schedule, const Path *path, int depth, unsigned allow,
                       const char **why);
bool path_order_is_free(Schedule *schedule, const Path *path, int top, int bottom,
                        Stmt *const *new_order, const char **why);
// True when different values of those of the block's spatial variables that vary (NULL: all) write
// different elements.
bool block_writes_apart(Schedule *schedule, const Block *block, const bool *varying);

// True when the block's instances may run in any order in which each element's init stays before
// its updates. False with *why.
bool path_order_survives(Schedule *schedule, const Path *path, const char **why);
// True when no iteration of the loops items[top] to items[bottom], which are directly nested,
// accesses an element that another one writes.
bool path_iterations_are_independent(Schedule *schedule, const Path *path, int top, int bottom);

// A loop that sample_compute_location returns in place of one: the integer -1 leaves a block where
// it is, and -2 inlines it.
static inline bool loop_is_place(LoopRef loop) {
  return loop && loop->op == EXPR_INT;
}

// ---- Rebinding a block to new loops ----------------------------------------------------------

// Replaces some of a block's variables (`chosen`, each bound to a plain loop of its own) by
// new_count others; logical[k] is chosen variable k in terms of new_vars.
typedef struct Rebinding {
  Schedule *schedule;
  const Path *path;
  const Block *block;
  const int *chosen;
  int count;
  int depth; // of the outermost loop directly around the block
  Stmt **loops;
  int loop_count;
  int *loop_at; // the index in `loops` of chosen variable k's loop; -1: no loop, its extent is 1
  int new_count;
  Expr **new_vars, **new_loops, **extents, **logical;
  IterKind *kinds; // NULL: all spatial
  Expr *valid;     // a condition on new_vars; NULL: always true
} Rebinding;
bool rebind_begin(Schedule *schedule, const Path *path, const int *chosen, int count,
                  Rebinding *rebinding, const char **why);
// Sets all fields from the inverse of a static layout over the chosen variables' domains.
bool rebind_by_map(Rebinding *rebinding, const Layout *layout, const char **why);
Stmt *rebind_block(const Rebinding *rebinding); // to replace path->items[depth]
// Replaces variables in everything that stands inside of the block: its views, init and body.
void block_substitute(Context *context, Block *block, const Map *vars);
// Simplifies the indices and conditions below `s` under the analyzer's facts.
Stmt *stmt_simplify_indices(Context *context, Analyzer *analyzer, Stmt *s);

// ---- Blocks around blocks --------------------------------------------------------------------

// Makes a loop and what is inside of it, or a list of blocks with the loops that each has for
// itself, the body of a new block, named *out. keep_units: variables are bound to loops of one
// iteration rather than to 0. False after a refusal.
bool schedule_blockize_target(Schedule *schedule, const StepValue *target, bool keep_units,
                              BlockRef *out);

// ---- Buffers ---------------------------------------------------------------------------------

// The sizes in the parameters' shapes and the parameters that are integers: from their names (Str)
// to their variables.
Map schedule_size_symbols(const Schedule *schedule);
// The facts about each of them. A size of a shape is at least 1; `min` of a parameter is below 1
// where the function does not begin with another assertion or assumption.
LayoutFacts schedule_size_facts(const Schedule *schedule);
// The buffer of a block that a SLOT names; NULL after a refusal.
Buffer *schedule_find_slot(Schedule *schedule, const Stmt *at, const StepValue *slot);
// The buffer of the write or read number `index`; NULL after a refusal.
Buffer *schedule_buffer_of(Schedule *schedule, const Stmt *block, bool write, int64_t index);
// The block and the buffer that are the first arguments of a step; false after a refusal.
bool schedule_find_buffer(Schedule *schedule, const StepCall *call, Path *path, Buffer **out);
// The extents of the buffer for an index map; NULL after a refusal, where one is too complex.
const LayoutExpr **buffer_layout_shape(Schedule *schedule, SourcePos pos, const Buffer *buffer);
// The layout of the map on a shape, whose extents are numbers or sizes. NULL: there is none.
const Layout *layout_of_extents(Schedule *schedule, const IndexMap *map, Expr *const *extents,
                                SourcePos pos);
// Stores the buffer of the running step in the layout `map`; `content` is the value of the padding,
// or NONE.
bool schedule_relayout(Schedule *schedule, StepCall *call, const Stmt *at, Buffer *buffer,
                       const IndexMap *map, const StepValue *content);
// The name of a buffer's copy in the scope, and of the block that copies.
Str cached_name(Context *context, const Buffer *buffer, Str scope);
Buffer *cached_buffer(Schedule *schedule, const Buffer *buffer, Str scope); // the copy
// The condition under which a copy copies the element `indices` of a box, which has the loops'
// variables in these extents: the element is in the buffer, and it is padding only where the
// content of padding is stated. The analyzer has the facts of the surrounding loops.
Expr *copied_condition(Schedule *schedule, Analyzer *analyzer, const Buffer *to,
                       Expr *const *indices, Expr *const *loops, Expr *const *extent);
// Refuses a scope of memory that does not exist.
bool schedule_check_scope(Schedule *schedule, const Stmt *at, const char *scope);
// Replaces every alias of a buffer's storage by a changed copy, in the whole function.
void schedule_replace_storage(Schedule *schedule, const Buffer *buffer,
                              void (*change)(void *env, Buffer *b), void *env, const Map *vars);
// Replaces buffers (old to new) by others that have the element at indices i at map(i), simplified
// in the blocks' domains or as it stands.
void schedule_map_accesses(Schedule *schedule, const IndexMap *map, const Map *buffers,
                           bool simplify);
// Replaces an allocated buffer by its part that begins at `origin`.
void schedule_shift_accesses(Schedule *schedule, Buffer *buffer, Buffer *part, Expr *const *origin);
// True when the storage has aliases or uses other than accesses; *why says which.
bool storage_is_opaque(Schedule *schedule, const Buffer *buffer, const char **why);
// True when all other uses are views, and calls that get the data pointer in blocks which state
// what they access of the buffer. False with *why. A dense buffer of the same shape can then take
// its place in such a block.
bool storage_stays_in_blocks(Schedule *schedule, const Buffer *buffer, const char **why);
// True when the block states to read or write the storage, or its predicate reads it.
bool block_touches(const Block *block, const Buffer *buffer, bool write);
// The buffers that the block states to read, and those that its predicate reads.
void block_inputs(Context *context, const Block *block, PtrArray *out);
bool expr_uses_block_vars(const Expr *e, const Block *block);
bool expr_uses_ranges(const Expr *e, const VarRange *ranges, int count); // one of their variables
// Does the binding of a variable of this kind use the loop?
bool block_uses_loop(const Block *block, IterKind kind, const Stmt *loop);
// True when the index is at least `begin` and less than `end` at each point of the block's domain,
// by trying all of them: for indices that the analyzer does not know, such as those from floats.
bool block_index_within(const Block *block, Expr *index, Expr *begin, Expr *end);
// True when all accesses of the block are proved to be inside of their buffers.
bool block_in_bounds(Schedule *schedule, const Path *path, const char **why);
// States the content of a buffer's padding, and makes the block that writes the buffer write that
// content, or else a block of its own, unless `fill` names another way. `values` is a map or a
// function from a physical index to the content there, or else this is padding.value. The program
// states the content of an input by T.assume where `stated`, or where `fill` asks for it.
bool buffer_set_padding(Schedule *schedule, SourcePos pos, Buffer *buffer, LayoutPadding padding,
                        const StepValue *values, const StepValue *fill, bool stated);
// The function that a lambda writes, which may use the sizes of the schedule's function; NULL with
// a diagnostic.
const Expr *index_function_parse(Schedule *schedule, const char *lambda);
Expr *index_function_at(Context *context, const Expr *function, Expr *const *indices); // its value
// True when the memory of the buffer is a constant (T.allocate_const).
bool buffer_is_constant(const Schedule *schedule, const Buffer *buffer);
// Stores the elements of a constant, the memory of `before`, as `after` has them; does nothing for
// other memory. False after a refusal.
bool constant_relayout(Schedule *schedule, SourcePos pos, const Buffer *before, const Buffer *after,
                       const IndexMap *map);
// Stores the content of padding, at its physical indices, in a constant. False after a refusal.
bool constant_fill(Schedule *schedule, SourcePos pos, const Buffer *buffer,
                   Expr *(*content)(void *env, Expr *const *indices), void *env);
// States the content that it has.
void buffer_state_padding(Schedule *schedule, const Buffer *buffer, LayoutPadding padding);

#endif
