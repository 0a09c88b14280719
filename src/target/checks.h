// SPDX-License-Identifier: Apache-2.0
// Makes the statements with which a program's function NAME_call reads and checks its arguments,
// which are DLPack's tensors. Targets write them down.
#ifndef PLEAT_TARGET_CHECKS_H
#define PLEAT_TARGET_CHECKS_H

#include "target/target.h"

typedef struct TargetCall {
  Expr *tensors, *count; // the parameters: an array of pointers (a handle), and its length (int32)
  Expr **sizes;          // for each size of the program, the int64 variable that gets its value
  // Stmt *, in order: LET, which defines a variable for all that follow, and ASSERT, whose message
  // is a tuple: the text of what is wrong, and the int64 values that were expected and found.
  // Neither has a body. Their expressions are legalized.
  PtrArray statements;
} TargetCall;

// In the context's arena.
TargetCall *target_call(Context *context, const TargetProgram *program);

// ---- Sizes in 64 bits --------------------------------------------------------------------------

// The bytes of the arena by the int64 variables `sizes` of the program's sizes: -1 where a value on
// the way to it does not fit its type.
Expr *target_arena_bytes(Context *context, const TargetProgram *program, Expr *const *sizes);

#endif
