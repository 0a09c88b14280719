// SPDX-License-Identifier: Apache-2.0
// The functions of TVM that are read and printed as typed calls (EXPR_INTRINSIC,
// EXPR_INTRINSIC_PURE), described by the rows of ir/intrinsics.def.
#ifndef PLEAT_INTRINSIC_H
#define PLEAT_INTRINSIC_H

#include "ir/ir.h"

typedef enum IntrinsicType {
  INTRINSIC_VOID,
  INTRINSIC_HANDLE,
  INTRINSIC_BOOL,
  INTRINSIC_INT32,
  INTRINSIC_UINT32,
  INTRINSIC_UINT64,
  INTRINSIC_INT64,
  INTRINSIC_FLOAT32,
  INTRINSIC_OPERAND_0,
  INTRINSIC_OPERAND_1,
  INTRINSIC_GIVEN,
  INTRINSIC_GIVEN_LAST,
  INTRINSIC_STATED,
  INTRINSIC_LAST_NAMES,
} IntrinsicType;

enum { INTRINSIC_PURE = 1, INTRINSIC_NAMES = 2, INTRINSIC_KEYWORDS = 4 }; // flags

typedef struct Intrinsic {
  const char *name, *newer; // newer "": the same name in both dialects
  int least, most;          // operands; most -1: any number
  IntrinsicType type;
  unsigned flags;
} Intrinsic;

const Intrinsic *intrinsic_find(const char *name);         // by its name in either dialect; or NULL
bool intrinsic_is_namespace(const Intrinsic *intrinsic);   // stands for all of a namespace
bool intrinsic_takes_keywords(const Intrinsic *intrinsic); // as a dictionary, the last operand
// The name of an operation that the user registers, of which Pleat knows the name alone.
Str intrinsic_registered(Context *context, const char *name);
const char *intrinsic_registered_name(const char *called); // NULL: it is another one
// The name of the calls of `called`, whose row is `intrinsic`: the classic one.
const char *intrinsic_name(const Intrinsic *intrinsic, const char *called);
const Intrinsic *intrinsic_at(int i); // the row with number `i`; NULL past the end
// The type of the result by the row's rule; void where the call states it.
DType intrinsic_type(const Intrinsic *intrinsic, Expr *const *args, int count);

// The value of an intrinsic that is a function of its operands, as other operations; NULL for other
// expressions, and where the operands have types that the function does not take.
Expr *intrinsic_value(Context *context, Expr *e);

// ---- Threads that wait for one another ----------------------------------------------------------

// The threads that must all arrive: those of a warp, of a block, or of all blocks.
typedef enum Wait { WAIT_NONE, WAIT_WARP, WAIT_BLOCK, WAIT_GRID } Wait;
Wait expr_wait(const Expr *e);    // of this call alone: a barrier, or an exchange
Wait stmt_wait(Stmt *s);          // the widest one in the statement
const char *wait_text(Wait wait); // "the threads of a block"
Stmt *stmt_barrier(Context *context, const char *scope); // T.tvm_storage_sync(scope)
// Is `thread` an axis of blocks, and not one of the threads in a block?
bool thread_is_block(const char *thread);

// Calls that give a thread a value of its warp: shuffles, and the mask of the threads.
typedef enum Exchange {
  EXCHANGE_NONE,
  EXCHANGE_INDEX,
  EXCHANGE_UP,
  EXCHANGE_DOWN,
  EXCHANGE_XOR,
  EXCHANGE_MASK
} Exchange;
Exchange expr_exchange(const Expr *e);
bool expr_is_barrier(const Expr *e); // T.tvm_storage_sync
// The operands of a shuffle.
enum { SHUFFLE_MASK, SHUFFLE_VALUE, SHUFFLE_LANE, SHUFFLE_WIDTH, SHUFFLE_WARP };

// ---- Fields of arguments in TVM's calling convention -------------------------------------------

// The third operand of T.tvm_struct_get(base, index, field): fields of the DLTensor with this
// index, then those of a tagged value, and an element of an array of int64 or of pointers.
typedef enum StructField {
  FIELD_DATA = 1,
  FIELD_SHAPE,
  FIELD_STRIDES,
  FIELD_RANK,
  FIELD_CODE,
  FIELD_BITS,
  FIELD_LANES,
  FIELD_BYTE_OFFSET,
  FIELD_DEVICE_ID,
  FIELD_DEVICE_TYPE,
  FIELD_KIND = 13,
  FIELD_PADDING = 14,
  FIELD_VALUE = 15,
  FIELD_ELEMENT = 17,
} StructField;
// The kinds of tagged values.
enum {
  KIND_NONE,
  KIND_INT,
  KIND_BOOL,
  KIND_FLOAT,
  KIND_POINTER,
  KIND_TENSOR_POINTER = 7,
  KIND_OBJECT = 64,
  KIND_TENSOR = 70,
  TENSOR_HEADER = 24, // bytes before the DLTensor of a tensor object
};
Expr *expr_field(Context *context, Expr *base, int index, StructField field, DType type);
Expr *expr_is_null(Context *context, Expr *pointer); // T.isnullptr
bool expr_is_null_test(const Expr *e);
// Is `e` a T.tvm_struct_get or T.tvm_struct_set with a constant index? *offset is then the number
// of bytes from the base to the field.
bool expr_field_offset(const Expr *e, int64_t *offset);
// Is `e` T.handle_add_byte_offset(pointer, offset)?
bool expr_is_moved_pointer(const Expr *e);

// ---- Statements that leave a loop, its iteration, or the function ------------------------------

typedef enum Jump { JUMP_NONE, JUMP_BREAK = 1, JUMP_CONTINUE = 2, JUMP_RETURN = 4 } Jump;
Jump expr_jump(const Expr *e); // of what such a statement evaluates
Jump stmt_jump(const Stmt *s);
const char *jump_text(Jump jump); // "break", "continue", "return"
enum { JUMP_ANY = JUMP_BREAK | JUMP_CONTINUE | JUMP_RETURN };
Stmt *stmt_find_jump(Stmt *s, int kinds); // the first one of these in the statement, or NULL
// Has the body of a loop a break or continue of that loop?
bool stmt_leaves_iteration(const Stmt *body);

#endif
