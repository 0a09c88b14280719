// SPDX-License-Identifier: Apache-2.0
// Says how a target writes the host of a packed function (lower/lower.h): the function that other
// programs call with an array of tagged arguments. It checks them, and runs the program.
//
// Where an assert fails, the message goes to TVM's runtime if that is in the process, and to memory
// of the thread, which NAME_error returns; the function then returns -1.
#ifndef PLEAT_TARGET_HOST_H
#define PLEAT_TARGET_HOST_H

#include "target/target.h"

// The message of an assert as the arguments of printf.
typedef struct TargetMessage {
  const char *kind; // of the exception: "TypeError"
  const char *format;
  PtrArray values; // Expr *: int64, or float64
} TargetMessage;
TargetMessage target_message(Context *context, const Stmt *check);

enum { TARGET_ERROR_BYTES = 1024 };

typedef struct TargetHost {
  Str symbol;
  PtrArray statements; // LET and ASSERT with legalized expressions, as in TargetCall
  Expr **sizes;        // int64 variables, which are defined by the last statements
  Expr *arena_bytes;   // int64, at least 0
} TargetHost;
// The host of a program that has one.
TargetHost *target_host(Context *context, const TargetProgram *program);

#endif
