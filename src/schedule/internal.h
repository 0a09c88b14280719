// SPDX-License-Identifier: Apache-2.0
// Shared by the families of steps: the schedule itself, step calls, places in the tree, and what
// the proofs stand on.
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
  VALUE_MAP,
} ValueKind;

typedef struct StepValue StepValue;
struct StepValue {
  ValueKind kind;
  union {
    BlockRef block;
    LoopRef loop;
    int64_t i; // also bool
    double f;
    Str s;
    const IndexMap *map;
    struct {
      StepValue *items;
      int count;
    } list;
  } as;
};

// What a parameter takes: TARGET is a block or a loop, SLOT ("write", 0), NUMBER an INT or a FLOAT.
typedef enum ParamKind {
  PARAM_STRING,
  PARAM_BLOCK,
  PARAM_LOOP,
  PARAM_TARGET,
  PARAM_LIST,
  PARAM_ANY,
  PARAM_BOOL,
  PARAM_INT,
  PARAM_NUMBER,
  PARAM_SLOT,
  PARAM_MAP,
} ParamKind;

enum { STEP_MAX_PARAMS = 4 };

typedef struct StepParam {
  const char *name; // "*…": all remaining positional arguments, as one list
  ParamKind kind;
  bool keyword, optional;
} StepParam;

typedef struct StepCall StepCall;
typedef struct StepInfo {
  const char *name;
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

struct StepCall {
  const StepInfo *info;
  StepValue args[STEP_MAX_PARAMS];
  Array(StepValue) results; // blocks and loops
};

struct Schedule {
  Context *context;
  PrimFunc *func;
  Array(StepCall) trace;
  Map known; // handles that the trace has named
  SourcePos pos;
  bool quiet;
  const StepInfo *step; // running now
  const char *refusal;
};

static inline StepValue value_block(BlockRef block) {
  return (StepValue){VALUE_BLOCK, {.block = block}};
}
static inline StepValue value_loop(LoopRef loop) {
  return (StepValue){VALUE_LOOP, {.loop = loop}};
}
static inline StepValue value_int(int64_t i) {
  return (StepValue){VALUE_INT, {.i = i}};
}
static inline StepValue value_string(Str s) {
  return (StepValue){VALUE_STRING, {.s = s}};
}
StepValue value_loops(Schedule *schedule, const LoopRef *loops, int count);
StepValue value_target(BlockRef block, LoopRef loop);
StepValue value_slot(Schedule *schedule, BufferSlot slot);

// Runs a step and records it, or restores the schedule. The call's results stay with the caller.
bool step_apply(Schedule *schedule, StepCall *call);
// Runs step `id` with these arguments; *call (may be NULL) gets the results.
bool step_run(Schedule *schedule, StepId id, const StepValue *args, int count, StepCall *call);
void step_result(Schedule *schedule, StepCall *call, StepValue value);
// Why the step is refused, always false. The text begins with the step's name; `pos` is used when
// the schedule has no position of its own.
bool refuse(Schedule *schedule, SourcePos pos, const char *format, ...) PRINTF_LIKE(3, 4);

// ---- Places ----------------------------------------------------------------------------------

// From the function's body (items[0]) down to a statement, which is the last.
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
// The same, refusing with a message when there is none (names near it are named).
bool find_block(Schedule *schedule, BlockRef block, Path *out);
bool find_loop(Schedule *schedule, LoopRef loop, Path *out);
// The function's body with items[depth] replaced; NULL or nothing removes it, with the loops and
// conditions that are empty then.
Stmt *path_replace(Context *context, const Path *path, int depth, Stmt *replacement);
// The depth of the nearest block above items[depth]; -1 when there is none.
int path_scope(const Path *path, int depth);
// Loops between the scope of items[depth] and it, outermost first: their number, and statements.
int path_loops(Schedule *schedule, const Path *path, int depth, Stmt ***loops);
// Does what `a` ends in run before what `b` ends in, in each iteration of what they share?
bool precedes(const Path *a, const Path *b);
void schedule_set_body(Schedule *schedule, Stmt *body);

// Replaces items[depth]; a sequence that takes the place of an item of a sequence joins it.
void replace_joined(Schedule *schedule, const Path *path, int depth, Stmt *replacement);
// `kept` in place of items[depth], `nest` before or after it, `buffer` allocated by their scope.
void place_beside(Schedule *schedule, const Path *path, int depth, Stmt *kept, Stmt *nest,
                  bool after, Buffer *buffer);

// Blocks directly below `s` (not those within blocks), in order. `s` may be a block: those in it.
typedef Array(Stmt *) StmtArray;
void blocks_below(Arena *arena, Stmt *s, StmtArray *out);
void blocks_at(Arena *arena, Stmt *s, StmtArray *out); // the same, or `s` itself if it is one
// Every block at any depth below or at `s`.
void blocks_all(Arena *arena, Stmt *s, StmtArray *out);
void blocks_innermost(Arena *arena, Stmt *s, StmtArray *out); // of those, the ones that hold none
bool has_loose_stores(Stmt *s); // stores, calls or the like below `s` that are in no block
Str unique_block_name(const Schedule *schedule, const char *name);
Stmt *block_stmt(const Schedule *schedule, BlockRef block);

// Rebuilds `s` with f applied to every block directly below (not to those within).
typedef Stmt *(*BlockMap)(void *env, Stmt *block);
Stmt *map_blocks(Context *context, Stmt *s, BlockMap f, void *env);

// ---- Programs --------------------------------------------------------------------------------

typedef Array(Expr *) ExprArray;
Expr *conjunction(Context *context, Expr *a, Expr *b); // NULL counts as true
void conjuncts(Arena *arena, Expr *condition, ExprArray *out);
Expr *conjunction_of(Context *context, const ExprArray *list);

int64_t const_extent(const Stmt *loop); // -1 when symbolic
bool loop_is_plain(const Stmt *loop);   // serial, without annotations
VarRange loop_range(const Stmt *loop);
Stmt *loop_like(Context *context, const Stmt *loop, Expr *var, Expr *min, Expr *extent,
                Stmt *body); // kind and annotations of `loop`
// Facts of all that stands above items[depth]: loops, block variables, lets, conditions.
Analyzer *path_analyzer(Schedule *schedule, const Path *path, int depth);
void bind_domain(Analyzer *analyzer, const Block *block);

// A block's predicate in two: what follows from the domain of its variables (it keeps split loops
// in their range), and the rest, over the variables. False when some of it cannot be written so.
bool divide_predicate(Schedule *schedule, const Path *path, ExprArray *of_domain,
                      ExprArray *of_vars);
Map bindings_of(Context *context, const Block *block); // block variables to their bindings
// With reads and writes found in the body. A reduction with init does not list what it writes as
// read.
Block *block_with_regions(Context *context, Block *b);
Stmt *stmt_with_block(Context *context, const Stmt *s, Block *block);
bool expr_reads(Expr *e, const Buffer *buffer); // any alias of it, or its address
// Is there a point of the block that might not read the buffer?
bool reads_conditionally(const Block *block, const Buffer *buffer);
// Consumers or producers in the block's scope, in order.
void related_blocks(Schedule *schedule, const Path *path, bool consumers, StmtArray *out);

// target = target op term, where `condition` (NULL: always); term does not read the target.
typedef struct ReductionUpdate {
  ExprOp op; // ADD, SUB, MUL, MIN, MAX, AND, OR or a bit operation
  Expr *target, *term, *condition;
} ReductionUpdate;
// The same indices, a variable of extent 1 being as good as its value.
bool same_place(const Block *block, Expr *const *a, Expr *const *b, int rank);
bool reduction_update(const Block *block, ReductionUpdate *out);

// ---- Dependences -----------------------------------------------------------------------------

// What one execution of a statement touches, as seen from below a chain of loops.
typedef struct Access {
  Block *block;
  bool write;
  Buffer *buffer;
  Expr **min, **extent;  // over the loops at and above the chain
  bool exact;            // no place of the box is left out (predicates aside)
  Expr **points;         // where one instance of the block touches it; NULL when that is a box
  const VarRange *inner; // the loops run through
  int inner_count;
} Access;
typedef Array(Access) AccessArray;
// All accesses of blocks below `s`, with the loops between run through. `analyzer` knows the loops
// above `s`.
void accesses_below(Schedule *schedule, Analyzer *analyzer, Stmt *s, AccessArray *out);

// Places below `s` where a buffer's storage is named.
int storage_uses(Stmt *s, const Buffer *buffer);
// The index is a variable that runs over just this extent, or 0 where that is 1.
bool index_is_axis(const Block *block, const Expr *index, const Expr *extent);
bool is_parameter(const Schedule *schedule, const Buffer *buffer);
// Is everything that may be read of what the block writes written when it runs over its domain, up
// to its predicate? The analyzer knows the loops around.
bool writes_whole_domain(Schedule *schedule, const Block *block, Analyzer *analyzer);
// When is the place at these (physical) indices padding; NULL: never, or not known.
Expr *padding_condition(Schedule *schedule, const Buffer *buffer, Expr *const *indices);

// Filled and used within one iteration of the loop items[depth], and nowhere else.
bool is_private_below(Schedule *schedule, const Path *path, int depth, const Buffer *buffer);

// Is each place of the buffer that is written below the last loop of the path written in one
// iteration only of the loops from items[top] down to it?
bool writes_tell_iterations(Schedule *schedule, const Path *path, int top, const Buffer *buffer);

// May the loops be run in any order of their iterations (parallel), or in the given new order?
// False with *why (what stands in the way).
enum {
  ALLOW_PRIVATE = 1,   // storage that an iteration fills and uses by itself may be shared by name
  ALLOW_COMBINING = 2, // sums, minima and maxima into one place may be made in any order
};
bool loops_independent(Schedule *schedule, const Path *path, int depth, unsigned allow,
                       const char **why);
bool order_is_free(Schedule *schedule, const Path *path, int top, int bottom,
                   Stmt *const *new_order, const char **why);

// May the block's instances run in any order that keeps each place's updates from its init on?
// False with *why.
bool order_survives(const Path *path, const char **why);

// ---- Re-making iterations --------------------------------------------------------------------

// Some of a block's variables (`chosen`, each bound to a plain loop of its own) give way to
// new_count others; logical[k] is chosen variable k in terms of new_vars.
typedef struct Remake {
  Schedule *schedule;
  const Path *path;
  const Block *block;
  const int *chosen;
  int count;
  int depth; // of the outermost loop of the chain above the block
  Stmt **loops;
  int loop_count;
  int *loop_at; // which of `loops` binds chosen variable k; -1: none, its extent is 1
  int new_count;
  Expr **new_vars, **new_loops, **extents, **logical;
  IterKind *kinds; // NULL: all spatial
  Expr *valid;     // over new_vars: NULL when all points are
} Remake;
bool remake_begin(Schedule *schedule, const Path *path, const int *chosen, int count,
                  Remake *remake, const char **why);
void remake_names(Remake *remake, const IndexMap *map); // new_vars, new_loops
// Fills in all from the inverse of a static layout over the chosen variables' domains.
bool remake_by_map(Remake *remake, const Layout *layout, const char **why);
Stmt *remake_block(const Remake *remake); // in place of path->items[depth]
bool layout_expr_uses(const LayoutExpr *e, const LayoutExpr *part);
// Indices and conditions below `s` simplified under the analyzer's facts.
Stmt *simplify_indices(Context *context, Analyzer *analyzer, Stmt *s);

// ---- Buffers ---------------------------------------------------------------------------------

// Names (Str) of the sizes that the parameters' shapes mention, to their variables.
Map size_symbols(const Schedule *schedule);
// The buffer a SLOT names in a block; NULL after refusing.
Buffer *find_slot(Schedule *schedule, const Stmt *at, const StepValue *slot);
void replace_buffers(Schedule *schedule, const Map *buffers, const Map *vars);
// Every alias of a buffer's storage replaced by a changed copy, wherever it stands.
void replace_storage(Schedule *schedule, const Buffer *buffer, void (*change)(void *env, Buffer *b),
                     void *env, const Map *vars);
// Is the storage named other than by accesses? *why says how.
bool storage_is_opaque(Schedule *schedule, const Buffer *buffer, const char **why);
Stmt *without_allocation(Context *context, Stmt *body, const Buffer *buffer);
bool block_touches(const Block *block, const Buffer *buffer, bool write);
bool uses_block_vars(const Expr *e, const Block *block);
// Are all accesses of the block proved to be inside their buffers?
bool block_in_bounds(Schedule *schedule, const Path *path, const char **why);
// States what a buffer's padding holds, and makes its writer write that.
bool set_padding(Schedule *schedule, SourcePos pos, Buffer *buffer, LayoutPadding padding);

#endif
