// SPDX-License-Identifier: Apache-2.0
// Writes lowered and legalized code down as LLVM's textual IR. Text is parsed in microseconds, can
// be read, and needs no part of the library until it is compiled.
#ifndef PLEAT_TARGET_LLVM_EMIT_H
#define PLEAT_TARGET_LLVM_EMIT_H

#include "target/llvm/program.h"

typedef enum LlvmOutput { LLVM_OUTPUT_TEXT, LLVM_OUTPUT_ASSEMBLY, LLVM_OUTPUT_OBJECT } LlvmOutput;

// A module that is being written.
typedef struct LlvmModule {
  Context *context;
  Arena *arena;
  Text globals; // constants
  Text functions;
  Text declarations, metadata;
  Map declared;     // names in `declarations`
  Map coefficients; // vectors in `globals`, by their text: their names
  int next;         // constants and metadata
  const HostMachine *machine;
  TargetFeatures features;
  TargetReport *report;
  bool annotate;  // stores name logical accesses
  bool positions; // by debug information, which assembly keeps
  struct {
    int unit, file, type, function; // numbers of metadata; `function` is the one being written
  } position;
  bool local; // the functions of regions are seen in this module only
} LlvmModule;

// A function that is being written. A value is its name as text, without the type: "%v12", "7".
typedef struct Emit {
  LlvmModule *module;
  Context *context;
  Arena *arena;
  Text entry, body;  // allocas; then code
  int next;          // names and labels
  const char *block; // label of the current one
  Map values;        // expressions computed in the current statement
  PtrArray computed; // the keys of `values`, for emit_forget
  Map vars;          // variables: their values
  Map wide, shifts;  // loop variables: an i64, and the constant that is added to it
  Map depths;        // variables: number of loops around
  Map data;          // data variables: pointers
  Map arrays;        // data variables of arrays in the function's frame
  int depth;
  bool coefficients_in_memory;
  struct {
    const char *name, *value, *block;
  } coefficient;      // the last one that was loaded
  const char *access; // metadata of the stores of the current statement, or ""
} Emit;

// text.c. Types, constants, instructions.
const char *llvm_type(Emit *emit, DType type);                    // of a value in a register
const char *llvm_memory_type(Emit *emit, DType type);             // where it differs: bool, int4
const char *llvm_constant(Emit *emit, DType type, const Expr *e); // of one lane: "7", "0x3FF…"
const char *llvm_splat(Emit *emit, const Expr *e); // the constant `e` in all lanes of a vector
const char *llvm_zero(DType type);
// Writes "  %vN = …" and returns the new name; `emit_line` writes a line without a result.
const char *emit_value(Emit *emit, const char *format, ...) PRINTF_LIKE(2, 3);
void emit_line(Emit *emit, const char *format, ...) PRINTF_LIKE(2, 3);
int emit_label_number(Emit *emit);
void emit_label(Emit *emit, const char *prefix, int number); // begins a block
const char *emit_alloca(Emit *emit, const char *type, int alignment);
// Declares a function of the module once.
void emit_declare(Emit *emit, const char *name, const char *format, ...) PRINTF_LIKE(3, 4);

// expr.c
const char *emit_expr(Emit *emit, Expr *e);
const char *emit_spread(Emit *emit, const char *value, DType type); // a scalar to type's lanes
void emit_bind(Emit *emit, Expr *let);                              // the variable of an EXPR_LET
int emit_mark(const Emit *emit);                                    // the number of computed values
void emit_forget(Emit *emit, int mark); // the values that were computed since
bool emit_is_cheap(const Expr *e);      // may be computed although it is not needed

// address.c
int emit_depth(Emit *emit, const Expr *e);   // loops around the innermost definition it depends on
const char *emit_index(Emit *emit, Expr *e); // an integer scalar as i64
const char *emit_pointer(Emit *emit, Buffer *buffer, Expr *const *indices, int rank);
const char *emit_load(Emit *emit, Expr *e);
void emit_store(Emit *emit, const Stmt *s);

// constants.c
void emit_place_coefficients(Emit *emit, Stmt *s); // before the body of a function is written
const char *emit_addend(Emit *emit, Expr *e);      // of a multiply-add
bool emit_is_coefficient(const Expr *e);           // an addend that may be read from memory
// Fewer coefficients than this fit the registers, and loads are what some short loops wait for.
enum { FEWEST_COEFFICIENTS = 4 };

// together.c. The body of a loop whose iterations are written together; and the stores of some of
// them, which are copies of one body with variables of their own.
enum { MOST_TOGETHER = 6 }; // with 16 registers, each has an argument and a sum in a register
typedef struct LongChains {
  int count;         // stores of the body, at most MOST_TOGETHER; 0: they are not written together
  bool reads_arrays; // in the function's frame
} LongChains;
LongChains emit_long_chains(Emit *emit, Stmt *s);
void emit_chains(Emit *emit, Stmt *const *copies, int count);

// vector.c
const char *emit_ramp(Emit *emit, Expr *e);
const char *emit_shuffle(Emit *emit, Expr *e);
const char *emit_reduction(Emit *emit, Expr *e);
// The sum of the products of four bytes of each lane, added to `sum` (a value; NULL: to 0).
const char *emit_dot_bytes(Emit *emit, Expr *e, const char *sum);
// The same of two numbers of 16 bits.
const char *emit_dot_words(Emit *emit, Expr *e, const char *sum);
const char *emit_lane(Emit *emit, const char *value, DType type, int lane);
const char *emit_with_lane(Emit *emit, const char *value, DType type, const char *lane_value,
                           int lane);

// stmt.c
void emit_stmt(Emit *emit, const Stmt *s);

// entry.c
void llvm_add_program(Emit *emit, const LlvmPrograms *whole, const TargetProgram *program);
void llvm_add_weights(LlvmModule *module, const LlvmPrograms *whole);
void llvm_add_bytes(Text *out, const char *name, const void *data, size_t size); // a constant
const char *llvm_offset_from(Emit *emit, const char *base, int64_t offset);      // in bytes
// Pointer `number` of an array of them.
const char *llvm_load_pointer(Emit *emit, const char *array, int number);
const char *llvm_load_size(Emit *emit, const char *array, int number); // an int64

// host.c. The host of a packed function; and what all hosts of a file use.
void llvm_add_host(Emit *emit, const LlvmPrograms *whole, const TargetProgram *program);
void llvm_add_host_support(LlvmModule *module, const LlvmPrograms *whole);
// call.c. NAME_call of the program, and the function that it calls when an argument is wrong.
void llvm_add_call(Emit *emit, const LlvmPrograms *whole, const TargetProgram *program);
void llvm_add_fault(LlvmModule *module);

// located.c. What names the accesses of a store in the text of LLVM, or their positions, for
// functions, calls of them, and stores; "" where the module has no positions.
const char *llvm_access_note(LlvmModule *module, const char *accesses);
const char *llvm_access_position(LlvmModule *module, const char *accesses);
const char *llvm_function_position(LlvmModule *module, const char *name);
const char *llvm_call_position(LlvmModule *module);
// Copies assembly, in which comments take the place of positions.
void llvm_comment_accesses(Arena *arena, const char *assembly, Text *out);

// module.c. The text of the unit in the scratch arena, with the functions of the programs unless
// `whole` is NULL; the unit then has all their kernels. What will be made of it is `output`.
Emit llvm_emit_new(LlvmModule *module);
const char *llvm_module_text(Context *context, const TargetUnit *unit, const TargetOptions *options,
                             const LlvmPrograms *whole, LlvmOutput output);

#endif
