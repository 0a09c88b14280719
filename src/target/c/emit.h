// SPDX-License-Identifier: Apache-2.0
// Writes lowered and legalized code down as C11 with the vector extensions of GCC and Clang.
#ifndef PLEAT_TARGET_C_EMIT_H
#define PLEAT_TARGET_C_EMIT_H

#include "target/target.h"

typedef struct CSpelling CSpelling;

// A file that is being written.
typedef struct CModule {
  Context *context;
  Arena *arena;
  const CSpelling *spelling; // of a dialect of C; that of C itself has no hooks
  Text types, macros;        // for the vectors that are used, each once
  Text constants, declarations, functions;
  Map defined; // interned names in `types`, `macros`, `declarations`
  Map names;   // of the file's functions and constants
  int next_constant;
  bool with_entries; // also write functions that take `args`
  bool comments;     // write logical accesses above statements
  TargetFeatures features;
  TargetReport *report;
} CModule;

// The precedence of the text of a value in C's grammar.
typedef enum CPrecedence {
  C_CONDITIONAL,
  C_OR,
  C_AND,
  C_BIT_OR,
  C_BIT_XOR,
  C_BIT_AND,
  C_EQUAL,
  C_RELATION,
  C_SHIFT,
  C_SUM,
  C_PRODUCT,
  C_UNARY,
  C_POSTFIX,
  C_NAME,
} CPrecedence;

typedef struct CValue {
  const char *text;
  CPrecedence precedence; // C_NAME: a name or a constant, which may be written twice
} CValue;

// A function that is being written.
typedef struct CEmit {
  CModule *module;
  Context *context;
  Arena *arena;
  Text body;
  int depth;         // of indentation
  Map names;         // interned names that are taken → how many were made of each
  Map vars;          // variables and data variables: their names
  Map pointees;      // data variables: what the name points to, as text
  Map registers;     // data variables of registers: their names
  Map uses;          // expressions of the current statement: how often they occur
  Map values;        // expressions of the statement that have a name
  PtrArray computed; // the keys of `values`, for c_forget
  Map spaces;        // data variables: the address space of their memory, such as "__global "
  void *dialect;     // for the hooks of the dialect
  bool in_index;     // the arithmetic cannot overflow
} CEmit;

// Hooks for the parts of C that a dialect writes in another way. A hook that is NULL leaves the way
// of C.
struct CSpelling {
  void (*define_vector)(CModule *module, DType type, const char *name);
  // A vector of these lanes, "a, b, c".
  CValue (*list)(CEmit *emit, const char *type, const char *lanes);
  const char *(*lane)(CEmit *emit, const char *vector, int lane);
  // Converts vectors, and a float32 or float64 that becomes an int32 or int64.
  CValue (*convert)(CEmit *emit, DType from, DType to, CValue value);
  CValue (*reinterpret)(CEmit *emit, DType to, CValue value);
  // The lanes of `a` where `mask`, integers of the same bits, is -1, else those of `b`.
  CValue (*choose)(CEmit *emit, DType type, const char *mask, CValue a, CValue b);
  // The text of a macro's value: the lesser or greater lanes of a and b.
  const char *(*extreme)(CModule *module, DType type, bool least);
  // A call of a function of the C library, which is named as for float64.
  CValue (*call)(CEmit *emit, DType type, const char *function, const char *arguments);
  bool calls_vectors;  // `call` takes vectors
  bool needs_contents; // no function may get a vector of which lanes were never stored
  // A not finite number.
  CValue (*special)(CEmit *emit, DType type, double value);
  // Consecutive elements, of which `first` is the first one, at this index.
  CValue (*load_vector)(CEmit *emit, DType type, const char *first, Expr *index);
  void (*store_vector)(CEmit *emit, DType type, const char *first, Expr *index, const char *value);
  void (*constant)(CEmit *emit, const Stmt *s, const char *name, const char *element);
  // True when the hook has written the statement or the store, or the value of the load.
  bool (*stmt)(CEmit *emit, const Stmt *s);
  bool (*store)(CEmit *emit, const Stmt *s);
  bool (*load)(CEmit *emit, Expr *e, CValue *value);
};

// text.c
const char *c_type(CModule *module, DType type); // of a value; defines vector types
// The lanes of the C type of a vector, a power of two. The lanes after those of the program are
// copies of the first one, so that operations on all lanes do nothing else to them, such as divide
// by zero.
int c_lanes(DType type);
const char *c_memory_type(CModule *module, DType type);           // where it differs: bool
const char *c_unaligned_type(CModule *module, DType memory_type); // a vector at any address
DType c_bits_type(DType type);  // signed integers of the same bits and lanes
DType c_mask_type(DType type);  // of a vector of bools: 32 bits a lane, 0 or −1
DType c_value_type(DType type); // as C represents it: small floats by their bits, bools by masks
const char *c_name(CEmit *emit, const char *preferred); // a new name in the function
const char *c_global_name(CModule *module, const char *preferred);
const char *c_identifier(Arena *arena, const char *preferred);
void c_line(CEmit *emit, const char *format, ...) PRINTF_LIKE(2, 3);
// "a, b, c" with line breaks so that lines end before column 100, if the text begins at `column`.
const char *c_broken(Arena *arena, const char *list, int column, int indent);
bool c_define(CModule *module, const char *name); // true the first time

// The bytes of a constant in lines, "1,2,3,".
const char *c_byte_list(Arena *arena, const ConstData *data);

// expr.c
CValue c_expr(CEmit *emit, Expr *e);
const char *c_text(CEmit *emit, Expr *e); // without parentheses around it
CValue c_value(CPrecedence precedence, const char *text);
CValue c_format(CEmit *emit, CPrecedence precedence, const char *format, ...) PRINTF_LIKE(3, 4);
const char *c_operand(CEmit *emit, CValue value, CPrecedence at_least); // parenthesised if needed
const char *c_hold(CEmit *emit, CValue value, DType type);              // a name for it
CValue c_wrapped(CEmit *emit, DType type, CValue value); // narrow integers back to their range
void c_count_uses(CEmit *emit, Expr *e);
int c_mark(const CEmit *emit);
void c_forget(CEmit *emit, int mark);
CValue c_index(CEmit *emit, Expr *e);

// vector.c
CValue c_ramp(CEmit *emit, Expr *e);
CValue c_broadcast(CEmit *emit, Expr *e);
CValue c_spread(CEmit *emit, CValue scalar, DType vector); // a scalar of that lane type
const char *c_lane(CEmit *emit, const char *vector, int lane);
// A vector of a C type with the values of its `count` lanes.
CValue c_list_of_lanes(CEmit *emit, const char *type, const char *const *lanes, int count);
CValue c_shuffle(CEmit *emit, Expr *e);
CValue c_reduction(CEmit *emit, Expr *e);
CValue c_vector_select(CEmit *emit, DType type, const char *mask, CValue a, CValue b);
CValue c_vector_extreme(CEmit *emit, DType type, bool least, CValue a, CValue b);
CValue c_convert(CEmit *emit, DType from, DType to, CValue value); // vectors of equal lanes

// memory.c
CValue c_load(CEmit *emit, Expr *e);
CValue c_address(CEmit *emit, Expr *load);
void c_store(CEmit *emit, const Stmt *s);

// stmt.c
void c_stmt(CEmit *emit, const Stmt *s);

// module.c
typedef struct CFunction { // of a region: void name(its arguments, begin, end)
  const char *name;
  const LowerKernel *kernel;
  const LowerRegion *region;
  int *params, param_count; // arguments of the kernel by number, then pieces of the workspace
  Map written;              // data variables
  bool uses_range;          // begin and end
} CFunction;
CFunction c_function_of(CModule *module, const LowerKernel *kernel, const LowerRegion *region,
                        Stmt *body); // without a name
// Writes the type and shape of each tensor in memory as a comment.
void c_comment_buffers(CModule *module, const CFunction *function);
const char *c_quoted(Arena *arena, const char *text); // as a string of C
CModule c_module_new(Context *context, const TargetOptions *options);
CEmit c_emit_new(CModule *module);
// Keeps the names of functions outside that the kernels call from being defined by the module.
// `seen` has the names in earlier units.
void c_reserve_calls(CModule *module, const TargetUnit *unit, Map *seen);
// Adds the functions of a kernel, named as preferred (NULL: as its regions), and fills functions[i]
// for each region.
void c_module_add(CModule *module, const LowerKernel *kernel, const char *preferred,
                  CFunction *functions);
// The arguments of a call, each followed by ", ". from[i] is the address of argument i of the
// kernel as text; the last one is that of the workspace (a char *).
const char *c_arguments(CEmit *emit, const CFunction *function, const char *const *from);
bool c_uses(CModule *module, Stmt *body, Expr *var);
void c_module_text(CModule *module, Text *out); // all but the head comment
typedef struct ProgramHeader ProgramHeader;
// c/host.c. The host of a packed function; and what all hosts of a file use.
void c_write_host_support(CModule *module, const ProgramHeader *header, Text *out);
void c_write_host(Context *context, CModule *module, const TargetProgram *program,
                  const ProgramHeader *header, Text *out);
// Adds NAME_call of the program; `wrong` is the name of the function that c_write_fault adds.
const char *c_write_fault(CModule *module, const ProgramHeader *header, Text *out);
void c_write_call(Context *context, CModule *module, const TargetProgram *program,
                  const ProgramHeader *header, const char *wrong, Text *out);

#endif
