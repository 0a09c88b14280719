// SPDX-License-Identifier: Apache-2.0
// Writing lowered and legalized code down as C. Vectors are those of GCC and Clang
// (`vector_size`); code without vectors is plain C. A vector of bools is a vector of integers, 0 or
// -1, as wide as what was compared.
#ifndef PLEAT_TARGET_C_EMIT_H
#define PLEAT_TARGET_C_EMIT_H

#include "target/target.h"

typedef struct CUnit {
  Context *context;
  Arena *arena;
  Text types, helpers, functions;
  Map declared; // names of types, helpers, and functions of the C library
  TargetFeatures features;
  TargetReport *report;
  int next; // constants
} CUnit;

typedef struct CEmit {
  CUnit *unit;
  Context *context;
  Arena *arena;
  Text body;
  int indent;
  int next;          // temporaries
  Map texts;         // expressions written in the current statement
  PtrArray computed; // the keys of `texts`
  Map names;         // variables and data variables
  Map taken;         // names in use
  Map mask_bits;     // variables that hold masks: the width of a lane
  Map registers;     // data variables of one element, which are plain C variables
} CEmit;

// types.c
const char *c_type(CUnit *unit, DType type);          // of a value; declares vector types
const char *c_memory_type(CUnit *unit, DType type);   // of one element of a buffer
const char *c_unaligned_type(CUnit *unit, DType type); // of a vector in a buffer of scalars
const char *c_mask_type(CUnit *unit, int bits, int lanes);
// A helper's name, "max_float32x16"; its text is written once, from `format`.
bool c_helper_is_new(CUnit *unit, const char *name);
const char *c_select(CUnit *unit, DType type);         // name(mask, a, b)
const char *c_extreme(CUnit *unit, ExprOp op, DType type);
const char *c_unary(CUnit *unit, DType type, const char *function); // lane by lane
const char *c_spread(CUnit *unit, DType type);         // all lanes from a scalar
const char *c_reduction(CUnit *unit, ExprOp op, DType type);
const char *c_reinterpret(CUnit *unit, const char *from, const char *to);

// expr.c
const char *c_expr(CEmit *emit, Expr *e);
const char *c_index(CEmit *emit, Expr *e); // integer arithmetic that does not wrap
int c_mask_bits(CEmit *emit, const Expr *e);
const char *c_name(CEmit *emit, const Expr *var); // makes one the first time
int c_mark(const CEmit *emit);
void c_forget(CEmit *emit, int mark);
void c_line(CEmit *emit, const char *format, ...) PRINTF_LIKE(2, 3);
const char *c_text(CEmit *emit, const char *format, ...) PRINTF_LIKE(2, 3);

// memory.c
const char *c_load(CEmit *emit, Expr *e);
const char *c_address(CEmit *emit, Expr *e);
void c_store(CEmit *emit, const Stmt *s);

// stmt.c
void c_stmt(CEmit *emit, const Stmt *s);

#endif
