// SPDX-License-Identifier: Apache-2.0
// The intermediate representation: types, scalar expressions, buffers, statements, blocks,
// functions and modules. Expressions are immutable and hash-consed in the context: two equal
// expressions are one pointer, where a variable or buffer is equal only to itself. Statements,
// blocks and functions are immutable by convention: a pass builds new ones and shares the parts
// that did not change.
#ifndef PLEAT_IR_H
#define PLEAT_IR_H

#include "base/base.h"

typedef struct Expr Expr;
typedef struct Stmt Stmt;
typedef struct Block Block;
typedef struct Buffer Buffer;
typedef struct PrimFunc PrimFunc;
typedef struct GraphFunc GraphFunc;
typedef struct GraphTerm GraphTerm;
typedef struct Layout Layout; // layout/layout.h

// ---- Types -----------------------------------------------------------------------------------

typedef enum TypeCode {
  TYPE_VOID,
  TYPE_BOOL,
  TYPE_INT,
  TYPE_UINT,
  TYPE_FLOAT,
  TYPE_BFLOAT,
  TYPE_FLOAT8_E4M3,
  TYPE_FLOAT8_E5M2,
  TYPE_FLOAT8_E4M3_FNUZ,
  TYPE_FLOAT8_E5M2_FNUZ,
  TYPE_FLOAT8_E3M4,
  TYPE_FLOAT8_E8M0,
  TYPE_FLOAT6_E2M3,
  TYPE_FLOAT6_E3M2,
  TYPE_FLOAT4_E2M1,
  TYPE_HANDLE,
} TypeCode;

typedef struct DType {
  uint8_t code, bits;
  uint16_t lanes; // with the bit DTYPE_SCALABLE: the other bits times the machine's vector scale
} DType;
enum { DTYPE_SCALABLE = 0x8000 };

#define DTYPE(code, bits) ((DType){(code), (bits), 1})
#define DTYPE_VOID DTYPE(TYPE_VOID, 0)
#define DTYPE_BOOL DTYPE(TYPE_BOOL, 8)
#define DTYPE_INT8 DTYPE(TYPE_INT, 8)
#define DTYPE_INT32 DTYPE(TYPE_INT, 32)
#define DTYPE_INT64 DTYPE(TYPE_INT, 64)
#define DTYPE_UINT8 DTYPE(TYPE_UINT, 8)
#define DTYPE_FLOAT16 DTYPE(TYPE_FLOAT, 16)
#define DTYPE_BFLOAT16 DTYPE(TYPE_BFLOAT, 16)
#define DTYPE_FLOAT32 DTYPE(TYPE_FLOAT, 32)
#define DTYPE_FLOAT64 DTYPE(TYPE_FLOAT, 64)
#define DTYPE_HANDLE DTYPE(TYPE_HANDLE, 64)
#define DTYPE_STRING DTYPE(TYPE_VOID, 8) // the type of EXPR_STRING only

static inline bool dtype_equal(DType a, DType b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}
static inline void word_key_add_type(WordKey *key, DType type) {
  word_key_add(key, (uint64_t)type.code << 32 | (uint64_t)type.bits << 16 | type.lanes);
}
static inline DType dtype_lanes(DType t, int lanes) {
  t.lanes = (uint16_t)lanes;
  return t;
}
static inline bool dtype_is_scalable(DType t) {
  return t.lanes & DTYPE_SCALABLE;
}
// The type of vectors of `lanes` such elements, which may be vectors.
static inline DType dtype_times(DType t, int lanes) {
  int scalable = (t.lanes | lanes) & DTYPE_SCALABLE;
  return dtype_lanes(t, ((t.lanes & ~DTYPE_SCALABLE) * (lanes & ~DTYPE_SCALABLE)) | scalable);
}
static inline bool dtype_is_float(DType t) {
  return t.code >= TYPE_FLOAT && t.code <= TYPE_FLOAT4_E2M1;
}
static inline bool dtype_is_int(DType t) { // signed or not, bool excluded
  return t.code == TYPE_INT || t.code == TYPE_UINT;
}
static inline bool dtype_is_bool(DType t) {
  return t.code == TYPE_BOOL;
}
const FloatFormat *dtype_small_float(DType t); // floats of up to 16 bits; NULL for any other type
bool dtype_holds(DType t, int64_t value);      // whether an integer or boolean type has this value
int dtype_bytes(DType t);                      // bytes of one lane in memory; at least 1
const char *dtype_name(Context *context, DType t);   // "float32", "float32x16", "bool", "handle"
bool dtype_parse(const char *s, size_t n, DType *t); // reads dtype_name's text, and "boolx8"

// ---- Expressions -----------------------------------------------------------------------------

typedef enum ExprOp {
#define OP(NAME, ...) EXPR_##NAME,
#include "ir/ops.def"
#undef OP
  EXPR_OP_COUNT
} ExprOp;

typedef enum OpClass {
  OP_LEAF,
  OP_ARITH,
  OP_COMPARE,
  OP_LOGIC,
  OP_BIT,
  OP_MATH,
  OP_CHOICE,
  OP_MEMORY,
  OP_VECTOR,
  OP_OTHER,
} OpClass;
typedef enum OpResult { OP_SAME, OP_BOOL, OP_GIVEN } OpResult;
enum OpFlag { OP_COMMUTES = 1, OP_INFIX = 2, OP_FLOATS = 4, OP_INTS = 8, OP_EFFECT = 16 };

typedef struct OpInfo {
  const char *name, *spelling; // "FLOOR_DIV", "//"
  int arity;
  OpClass class;
  OpResult result;
  int precedence, flags;
} OpInfo;
extern const OpInfo op_table[EXPR_OP_COUNT];
// The type of an operation's result where its operands have one type.
static inline DType expr_result_type(ExprOp op, DType operand) {
  return op_table[op].result == OP_BOOL ? dtype_lanes(DTYPE_BOOL, operand.lanes) : operand;
}

// The facts about a variable beside its type. For a data variable (a handle to a buffer's memory),
// `pointee` and `scope` describe the memory; otherwise they are void and NULL.
typedef struct Var {
  Str name;
  DType pointee;
  Str scope;
} Var;

struct Expr {
  uint16_t op;    // ExprOp
  uint16_t count; // operands
  DType type;
  uint32_t id; // order of creation in the context: a stable order for sorting
  uint64_t hash;
  uint64_t uses; // of each variable in it expr_use_bit, and EXPR_USES_BUFFER for a load
  union {
    int64_t i;
    double f;
    Str s;
    Var *var;
    Buffer *buffer;
  } as;
  Expr *args[];
};

// Constants. Vector types give a broadcast of the constant.
Expr *expr_int(Context *context, DType type, int64_t value); // also bool and unsigned
Expr *expr_float(Context *context, DType type, double value);
Expr *expr_const(Context *context, DType type, double value); // by the kind of `type`
Expr *expr_bool(Context *context, bool value);
Expr *expr_string(Context *context, const char *s);
// A string that the program's text only names: metadata["ir.StringImm"][0].
Expr *expr_named_string(Context *context, const char *name);
// The text of a string, or its name; NULL for another expression.
const char *expr_text(const Expr *e);
Expr *expr_tuple(Context *context, Expr *const *items, int count);
Expr *expr_index(Context *context, int64_t value); // int32 if it fits, else int64

Expr *expr_var(Context *context, const char *name, DType type); // a new variable
Expr *expr_data_var(Context *context, const char *name, DType pointee, const char *scope);

// The node with these operands. It folds constants, drops neutral elements (x + 0, x * 1, x // 1, x
// % 1, select on a constant …), brings integer operands to one type (a constant adapts; otherwise
// the wider type wins), broadcasts a scalar to the lanes of a vector operand, and puts the constant
// operand of a commutative operation on the right.
Expr *expr_binary(Context *context, ExprOp op, Expr *a, Expr *b);
Expr *expr_unary(Context *context, ExprOp op, Expr *a); // incl. NOT, BIT_NOT, MATH rows
Expr *expr_select(Context *context, Expr *condition, Expr *then_value, Expr *else_value);
Expr *expr_if_then_else(Context *context, Expr *condition, Expr *then_value, Expr *else_value);
Expr *expr_cast(Context *context, DType type, Expr *a);
Expr *expr_load(Context *context, Buffer *buffer, Expr *const *indices, int rank);
Expr *expr_ramp(Context *context, Expr *base, Expr *stride, int lanes);
Expr *expr_broadcast(Context *context, Expr *value, int lanes); // lanes 1: the value itself
// The lanes of `vector` as a value of the integer type `type`; T.vscale() * 4 for a scalable one.
Expr *expr_lanes(Context *context, DType type, DType vector);
// Is the expression T.vscale() or a multiple of it? Stores the lanes of a vector with as many.
bool expr_scalable_lanes(const Expr *e, int *lanes);
Expr *expr_let(Context *context, Expr *var, Expr *value, Expr *body);
Expr *expr_call(Context *context, DType type, const char *callee, Expr *const *args, int count);
// The access of a logical buffer from which flattening made the load, as it is written now: A[i, j]
// for A_1[i * 8 + j]; NULL where there is none. The driver of rewrites and expr_with_args hand it
// on. It is no part of the load: loads that are equal keep the origin of the first.
Expr *expr_origin(const Expr *load);
void expr_set_origin(Context *context, Expr *load, Expr *origin); // nothing when origin is NULL
Expr *expr_logical(Context *context, Expr *e); // with the origins of its loads in their place
// A load with the origin of `like`.
Expr *expr_load_like(Context *context, const Expr *like, Buffer *buffer, Expr *const *indices,
                     int rank);
// Any node: `like` gives the operation, type and payload, `args` the operands. Folds as expr_binary
// does.
Expr *expr_with_args(Context *context, const Expr *like, Expr *const *args);
// Any node as it is, without folding; a parser uses it to keep what the user wrote.
Expr *expr_raw(Context *context, ExprOp op, DType type, const void *payload, Expr *const *args,
               int count);

static inline Expr *expr_add(Context *c, Expr *a, Expr *b) {
  return expr_binary(c, EXPR_ADD, a, b);
}
static inline Expr *expr_sub(Context *c, Expr *a, Expr *b) {
  return expr_binary(c, EXPR_SUB, a, b);
}
static inline Expr *expr_mul(Context *c, Expr *a, Expr *b) {
  return expr_binary(c, EXPR_MUL, a, b);
}
static inline Expr *expr_floor_div(Context *c, Expr *a, Expr *b) {
  return expr_binary(c, EXPR_FLOOR_DIV, a, b);
}
static inline Expr *expr_floor_mod(Context *c, Expr *a, Expr *b) {
  return expr_binary(c, EXPR_FLOOR_MOD, a, b);
}
static inline Expr *expr_min(Context *c, Expr *a, Expr *b) {
  return expr_binary(c, EXPR_MIN, a, b);
}
static inline Expr *expr_max(Context *c, Expr *a, Expr *b) {
  return expr_binary(c, EXPR_MAX, a, b);
}
static inline Expr *expr_and(Context *c, Expr *a, Expr *b) {
  return expr_binary(c, EXPR_AND, a, b);
}
static inline Expr *expr_lt(Context *c, Expr *a, Expr *b) {
  return expr_binary(c, EXPR_LT, a, b);
}

bool expr_is_int(const Expr *e, int64_t value);  // the constant `value`, broadcast or not
bool expr_as_int(const Expr *e, int64_t *value); // any integer or bool constant (not a broadcast)
bool expr_is_true(const Expr *e);
// The variable of T.iter_var(...), which is bound where the object is the node of an attribute;
// NULL for any other expression.
Expr *expr_iter_var(const Expr *e);
// A quotient or a remainder of any rounding whose operands are no floats: by 0, it ends a process.
bool expr_divides_integers(const Expr *e);
// A division of integers whose divisor is no constant other than 0. Only the operation itself is
// looked at, and no operation inside of it.
bool expr_may_divide_by_zero(const Expr *e);
bool expr_is_call(const Expr *e); // of a function outside of the program, or of another one in it
// The number of nodes of the expression as a tree, the form in which visitors walk it, up to
// `most`. A load of `buffer` (NULL: no buffer) counts as `inside` nodes, as if its value were put
// in its place.
int expr_tree_size(const Expr *e, const Buffer *buffer, int inside, int most);
bool expr_uses(const Expr *e, const Expr *var);
// One of 63 bits. An expression whose `uses` has neither it nor EXPR_USES_BUFFER does not use the
// variable; the shape of a buffer that is loaded from may.
uint64_t expr_use_bit(const Expr *var);
#define EXPR_USES_BUFFER ((uint64_t)1 << 63)
// Loads from the buffer or an alias, or has its data pointer.
bool expr_reads(Expr *e, const Buffer *buffer);
typedef Array(Expr *) ExprArray;
// Splits a condition into its conjuncts and pushes those that `out` does not have yet; the constant
// true has none.
void expr_conjuncts(Context *context, Expr *condition, ExprArray *out);
Expr *expr_conjunction(Context *context, const ExprArray *conjuncts); // true when empty
// Looks also in the buffers that `s` reads, writes, declares, matches or allocates.
bool stmt_uses(Stmt *s, const Expr *var);
bool expr_is_pure(const Expr *e);      // no CALL, no effect; loads are pure
bool expr_is_undefined(const Expr *e); // T.undef()
bool expr_may_be_nan(const Expr *e);   // a float; false where it is seen to be a number
// The x of an expression `x > -inf ? x : -inf` (op is EXPR_MAX), or `x < inf ? x : inf` (EXPR_MIN);
// NULL for others.
Expr *expr_only_numbers(ExprOp op, const Expr *e);
int expr_compare(const void *a, const void *b); // for qsort on Expr*: in order of creation
// For qsort on Expr*: by operations, then by the leaves, which are in order of creation. Unlike
// expr_compare, it does not depend on when an equal expression was made first.
int expr_structure_compare(const void *a, const void *b);

// ---- Attributes: few, in order of insertion ----------------------------------------------------

typedef struct Attr {
  Str key;
  Expr *value; // a constant, a string, or a tuple of them
} Attr;
typedef struct Attrs {
  Attr *items;
  int count;
} Attrs;
Expr *attrs_get(const Attrs *attrs, const char *key); // NULL when absent
// Does the attribute only name a dialect? It is printed, and not compared.
bool attribute_is_dialect(const char *key);
// The key without the prefix of either generation of TVM's names: that of `tir.noalias` and
// `tirx.noalias` is `noalias`. A key without one is returned itself.
const char *attribute_base(const char *key);
int64_t attrs_int(const Attrs *attrs, const char *key, int64_t otherwise);
Attrs attrs_with(Arena *arena, Attrs attrs, Str key, Expr *value); // replaces or adds
Attrs attrs_without(Arena *arena, Attrs attrs, const char *key);

// ---- Buffers ---------------------------------------------------------------------------------

// A compile-time description of memory over a data variable. Buffers with the same `data` are
// aliases. Buffers are compared by identity; a pass that changes a buffer makes a new one.
struct Buffer {
  Str name;
  DType type; // element type; lanes > 1 when the memory holds vectors
  Expr *data; // the data variable, with pointee and scope
  int rank;
  Expr **shape;
  Expr **strides; // NULL: contiguous in row-major order
  Expr *offset;   // in elements; the constant 0 when absent, or a variable bound at the call
  Str scope;      // "global", "local" (registers or stack), "shared", "global.texture", …
  int separator_count;
  int *separators;   // axis separators: ascending, each the number of the first axis of its group
  int alignment;     // of `data`, in bytes; 0: not stated
  bool broadcasts;   // an axis of extent 1 has a stride of 0 (buffer_type="auto")
  int offset_factor; // `offset` is a multiple of it; 0: not stated
  Expr *tile_layout; // layout= of the newer dialect, as an object or None; NULL: not stated
  bool is_variable;  // of one element: written as a variable in the newer dialect, x = x + 1
  bool reads_data;   // its script has `X.data` as an expression
  bool holds_offset; // its script states `elem_offset` or has it as an expression, even if it is 0
  SourcePos pos;
  uint32_t id;
  // How `shape` came from the shape of the logical tensor. NULL when they are the same.
  const Layout *layout;
  const Buffer *logical; // the one that flattening made this from; NULL: it is not flattened
};

bool buffer_is_local(const Buffer *buffer); // in registers or on the stack
// A buffer over a data variable of its own. scope NULL is "global".
Buffer *buffer_new(Context *context, const char *name, DType type, Expr *const *shape, int rank,
                   const char *scope);
// The same in memory of the caller.
Buffer *buffer_in(void *memory, Context *context, const char *name, DType type, Expr *const *shape,
                  int rank, const char *scope);
Buffer *buffer_static(Context *context, const char *name, DType type, const int64_t *shape,
                      int rank, const char *scope);
Buffer *buffer_copy(Context *context,
                    const Buffer *buffer); // a new buffer, same data variable
bool buffers_alias(const Buffer *a, const Buffer *b);
bool buffer_static_shape(const Buffer *buffer, int64_t *shape); // false with a symbolic extent
bool buffer_same_shape(const Buffer *a, const Buffer *b);
// The type of the offset of a bound buffer that states none.
DType buffer_open_offset_type(const Buffer *buffer);
int buffer_element_bytes(const Buffer *buffer); // with all lanes
// The distance in elements between neighbours along each axis: the strides, or row-major products.
void buffer_stride_exprs(Context *context, const Buffer *buffer, Expr **strides);
// The distance in elements of the element at these indices from the beginning of the memory.
Expr *buffer_element_offset(Context *context, const Buffer *buffer, Expr *const *indices);

// ---- Statements ------------------------------------------------------------------------------

typedef enum StmtKind {
  STMT_FOR,
  STMT_STORE,
  STMT_LET,
  STMT_IF,
  STMT_WHILE,
  STMT_ASSERT,
  STMT_EVALUATE,
  STMT_SEQ,
  STMT_BLOCK,
  STMT_ALLOCATE,
  STMT_ALLOCATE_CONST,
  STMT_DECL_BUFFER,
  STMT_ATTR,
} StmtKind;

typedef enum LoopKind {
  LOOP_SERIAL,
  LOOP_PARALLEL,
  LOOP_VECTORIZED,
  LOOP_UNROLLED,
  LOOP_THREAD,
} LoopKind;

// The contents of a constant, such as weights or tables. `data` may point into a mapped file, or to
// the bytes of `contents`, which then are not NULL and are kept by the context.
typedef struct ConstData {
  Str name;
  DType type;
  int rank;
  int64_t *shape;
  const void *data;
  size_t bytes;
  struct Contents *contents;
} ConstData;

struct Stmt {
  StmtKind kind;
  SourcePos pos;
  union {
    struct {
      Expr *var, *min, *extent;
      LoopKind kind;
      Str thread;     // "threadIdx.x" … for LOOP_THREAD
      bool is_launch; // of LOOP_THREAD: written as T.launch_thread, which has the same meaning
      Attrs annotations;
      Stmt *body;
    } loop;
    struct {
      Buffer *buffer;
      int rank;
      Expr **indices;
      Expr *value;
      Expr *origin; // as that of a load (expr_origin); may be NULL
    } store;
    struct {
      Expr *var, *value;
      Stmt *body;
    } let;
    struct {
      Expr *condition;
      Stmt *then_body, *else_body; // else_body may be NULL
    } branch;
    struct {
      Expr *condition;
      Stmt *body;
    } repeat; // while
    struct {
      Expr *condition, *message;
      Stmt *body; // may be NULL
    } check;      // assert
    Expr *evaluate;
    struct {
      Stmt **items;
      int count;
    } seq;
    Block *block;
    struct {
      Expr *var; // the data variable
      DType type;
      int rank;
      Expr **extents;
      Attrs annotations;
      Stmt *body;
    } allocate;
    struct {
      Expr *var;
      ConstData *data;
      Stmt *body;
    } allocate_const;
    struct {
      Buffer *buffer;
      Stmt *body;
    } declare;
    struct {
      Str key;
      Expr *node; // may be NULL
      Expr *value;
      Stmt *body;
    } attr;
  } as;
};

// ITER_SCAN promises an order of the iterations, ITER_OPAQUE nothing: neither may change places.
typedef enum IterKind { ITER_SPATIAL, ITER_REDUCTION, ITER_SCAN, ITER_OPAQUE } IterKind;

typedef struct BlockVar {
  Expr *var, *min, *extent;
  IterKind kind;
  Expr *binding; // in terms of the surrounding loops
  SourcePos pos; // of the binding in the user's text; its file is NULL for others
} BlockVar;

// A box of a buffer's elements. A point has extents of 1.
typedef struct Region {
  Buffer *buffer;
  Expr **min, **extent; // buffer->rank of each
} Region;
Region region_whole(Context *context, Buffer *buffer);

typedef struct MatchBuffer {
  Buffer *buffer; // a view of `source`
  Region source;
} MatchBuffer;
// The indices of the element of the source that the view has at `indices`: a view has the last axes
// of its source.
Expr **match_source_indices(Context *context, const MatchBuffer *match, Expr *const *indices);

// A block and its realisation: for each point of the surrounding loops where `predicate` holds, the
// block runs once with its variables bound.
struct Block {
  Str name;
  int var_count;
  BlockVar *vars;
  Expr *predicate; // over the surrounding loops; the constant true when absent
  int read_count, write_count;
  Region *reads, *writes;
  bool states_regions; // of a root block: its text states the regions, so they are printed
  int alloc_count;
  Buffer **allocs;
  int match_count;
  MatchBuffer *matches;
  Stmt *init; // NULL when the block has no init
  Stmt *body;
  Attrs annotations;
};

// NULL when LOOP_THREAD may have this `thread`, else why not.
const char *thread_axis_fault(Context *context, const char *thread);
Stmt *stmt_for(Context *context, Expr *var, Expr *min, Expr *extent, LoopKind kind, Stmt *body);
// The axis, 0 to 2, of a loop over the threads of a block, or over blocks (*is_block) unless
// is_block is NULL; -1 for other loops, virtual threads included.
int loop_thread_axis(const Stmt *loop, bool *is_block);
Expr **stmt_defined_var(Stmt *s);           // of a loop, let or allocation; NULL: it defines none
bool loop_is_virtual(const Stmt *loop);     // over virtual threads
bool loop_is_partitioned(const Stmt *loop); // is lowering to cut it where conditions change?
bool scope_is_texture(const char *scope);   // memory of two axes that is written in texels
// Whether the threads of a loop over `thread` share memory of this scope.
bool scope_is_shared_by(const char *scope, const char *thread);
bool loop_is_ordered(const Stmt *loop); // its iterations run one after the other; `while` too
Stmt *stmt_store(Context *context, Buffer *buffer, Expr *const *indices, int rank, Expr *value);
bool expr_loads_stored(const Expr *e, const Stmt *store); // loads the element that `store` writes
bool store_is_idle(const Stmt *store);                    // stores the value that is there
Stmt *stmt_let(Context *context, Expr *var, Expr *value, Stmt *body);
Stmt *stmt_if(Context *context, Expr *condition, Stmt *then_body, Stmt *else_body); // folds
Stmt *stmt_seq(Context *context, Stmt *const *items, int count); // flattens; one item: itself
Stmt *stmt_evaluate(Context *context, Expr *value);
Stmt *stmt_block(Context *context, Block *block);
Stmt *stmt_attr(Context *context, const char *key, Expr *node, Expr *value, Stmt *body);
Stmt *stmt_allocate(Context *context, Buffer *buffer, Stmt *body); // storage and declaration
Stmt *stmt_declare(Context *context, Buffer *buffer, Stmt *body);
Stmt *stmt_nothing(Context *context); // an empty sequence
bool stmt_is_nothing(const Stmt *s);
bool stmt_is_idle(const Stmt *s);       // nothing, or T.evaluate of an integer
bool stmt_is_assumption(const Stmt *s); // T.evaluate(T.assume(…))
Stmt *stmt_copy(Context *context, const Stmt *s);
Block *block_copy(Context *context, const Block *b);
static inline bool iter_is_ordered(IterKind kind) {
  return kind == ITER_SCAN || kind == ITER_OPAQUE;
}
bool block_is_reduction(const Block *b);
bool block_is_root(const Block *b); // the block around a whole function, which states no regions

// ---- Functions and modules -------------------------------------------------------------------

// While the function has blocks, `body` is a root block: it has the name "root" and no variables,
// and holds the function's allocations.
// An access that is checked at run time, because it is not proved to be in bounds.
typedef struct AccessGuard {
  Str access; // "A[idx[i], j]"
  int axis;   // or a GuardKind (runtime/guards.h)
  SourcePos pos;
} AccessGuard;

// The guards of a function, and the memory in which they note what they found: for guard k the
// index at 2*k, and extent + 1 at 2*k + 1, as int64; the latter stays 0 where nothing was found.
typedef struct AccessGuards {
  Expr *data;
  int count;
  AccessGuard *items;
} AccessGuards;

struct PrimFunc {
  Str name;
  int param_count;
  Expr **params;
  Buffer **buffers; // for each parameter its buffer, or NULL for a scalar
  Stmt *body;
  DType result;
  bool implies_result; // the text states no result, and returns a value
  bool is_newer;       // in the dialect since 2026, in which declarations have no bodies
  Attrs attrs;
  SourcePos pos;
  const AccessGuards *guards; // NULL: none
};

PrimFunc *prim_func_new(Context *context, const char *name, Expr *const *params,
                        Buffer *const *buffers, int param_count, Stmt *body);
PrimFunc *prim_func_copy(Context *context, const PrimFunc *func);
PrimFunc *prim_func_with_body(Context *context, const PrimFunc *func, Stmt *body);
// The function with variables of its parameters and their shapes replaced: a map from Expr* to
// Expr*. Scalar parameters that are replaced are left out.
PrimFunc *prim_func_specialize(Context *context, const PrimFunc *func, const Map *vars);

typedef struct ModuleFunc {
  Str name;
  PrimFunc *prim;   // either prim or graph is set
  GraphFunc *graph; // see ir/graph.h
} ModuleFunc;

typedef struct Module {
  Context *context;
  Str name;
  Array(ModuleFunc) funcs;
  Attrs attrs;
  GraphTerm *infos; // a TERM_DICT: the devices and meshes that types name; NULL: none
} Module;

Module *module_new(Context *context, const char *name);
void module_add_prim(Module *module, PrimFunc *func); // replaces one of the same name
void module_add_graph(Module *module, GraphFunc *func);
ModuleFunc *module_find(const Module *module, const char *name);
// The program of a module that has no name and holds nothing else; NULL for other modules.
const PrimFunc *module_only_program(const Module *module);

// ---- The drivers that walk and rewrite: no others exist --------------------------------------

// Hooks that are called on every expression and statement: `enter_*` before the children, the
// others after them. Any hook may be NULL. When `enter_*` returns false, the children are skipped.
typedef struct Visitor Visitor;
struct Visitor {
  void *env;
  bool (*enter_expr)(Visitor *visitor, Expr *e);
  void (*leave_expr)(Visitor *visitor, Expr *e);
  bool (*enter_stmt)(Visitor *visitor, Stmt *s);
  void (*leave_stmt)(Visitor *visitor, Stmt *s);
  Map *once; // the expressions visited so far, of which none is visited again; NULL: an expression
             // is visited wherever it occurs, which takes exponential time where it is shared often
};
void visit_expr(Visitor *visitor, Expr *e);
void visit_stmt(Visitor *visitor, Stmt *s);
// Visits the expressions directly in a statement, those of its regions included, but not those of
// its nested statements.
void visit_stmt_exprs(Visitor *visitor, Stmt *s);

// Rebuilds bottom-up and shares what does not change. `expr` and `stmt` get a node whose children
// are already rewritten, and return that node or another. `enter_stmt` (may be NULL) gets a
// statement before its children; a non-NULL result replaces the statement and is not rewritten
// further. `buffer` maps buffers wherever they occur; its default, `rewrite_buffer`, rewrites a
// buffer's shape, strides and offset. Results for expressions are memoised.
typedef struct Rewriter Rewriter;
struct Rewriter {
  Context *context;
  void *env;
  Expr *(*expr)(Rewriter *rewriter, Expr *e);
  Stmt *(*enter_stmt)(Rewriter *rewriter, Stmt *s);
  Stmt *(*stmt)(Rewriter *rewriter, Stmt *s);
  Buffer *(*buffer)(Rewriter *rewriter, Buffer *b);
  Map memo, buffers; // initialised by the driver
  bool no_memo;      // when the result of `expr` depends on the expression's position
  uint64_t uses;     // expressions with none of these bits (Expr) stay as they are; 0: rewrite all
};
Expr *rewrite_expr(Rewriter *rewriter, Expr *e);
Stmt *rewrite_stmt(Rewriter *rewriter, Stmt *s);
// Rewrites one level: `s` with the rewriter applied to its own expressions, buffers and nested
// statements.
Stmt *rewrite_stmt_children(Rewriter *rewriter, Stmt *s);
Buffer *rewrite_buffer(Rewriter *rewriter, Buffer *b);

// Replaces variables (Expr*) by expressions and buffers by buffers. Either map may be NULL. A let
// whose own variable is replaced becomes its body.
Expr *substitute_expr(Context *context, Expr *e, const Map *vars);
Stmt *substitute_stmt(Context *context, Stmt *s, const Map *vars, const Map *buffers);
Attrs substitute_attrs(Context *context, Attrs attrs, const Map *vars, const Map *buffers);
// A copy of `s` in which every bound variable (of loops, blocks and lets) and every allocated
// buffer is new, so that the copy may be put into the same function as the original.
Stmt *stmt_renew(Context *context, Stmt *s);

// ---- Equality and verification ---------------------------------------------------------------

typedef struct IrDifference {
  SourcePos a, b;
  const char *what; // "extent of the loop: 30 and 31"
} IrDifference;
// Structural equality up to the names of variables, of buffers and of the axes of index maps, to
// statements without effect (stmt_is_idle), and to attributes of operators that are left out or
// have their usual value. The first difference is stored in *difference (may be NULL).
bool prim_func_equal(Context *context, const PrimFunc *a, const PrimFunc *b,
                     IrDifference *difference);
bool module_equal(Context *context, const Module *a, const Module *b, IrDifference *difference);
// The same whatever the names of blocks, and of the programs where each module has only one.
bool module_equal_but_names(Context *context, const Module *a, const Module *b,
                            IrDifference *difference);
// Programs that are equal have the same hash, in every process.
uint64_t prim_func_hash(Context *context, const PrimFunc *func);
uint64_t module_hash(Context *context, const Module *module);

// The levels of lowering. Each row of the verifier names the levels at which a node is allowed.
typedef enum IrLevel {
  IR_LEVEL_TENSOR = 1,   // blocks, N-d buffers
  IR_LEVEL_LOOPS = 2,    // no blocks
  IR_LEVEL_FLAT = 4,     // buffers of one physical axis per separator group
  IR_LEVEL_VECTOR = 8,   // no vectorised or unrolled loops
  IR_LEVEL_LOWERED = 16, // ready for a code generator
} IrLevel;
// Reports each violation as a diagnostic (or as a bug, when a pass made it). True when there is
// none.
bool verify_prim_func(Context *context, const PrimFunc *func, IrLevel level);

#endif
