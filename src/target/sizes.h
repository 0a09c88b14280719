// SPDX-License-Identifier: Apache-2.0
// Computes shapes and the size of the arena of a program with free sizes in 64 bits, so that no
// value that does not fit goes unnoticed.
#ifndef PLEAT_TARGET_SIZES_H
#define PLEAT_TARGET_SIZES_H

#include "target/target.h"

typedef struct WideSizes {
  Context *context;
  const TargetProgram *program;
  Expr **vars;    // for each size, its value as int64
  int64_t most;   // no value of an int64 size may be larger; -1: shapes may leave 64 bits below it
  PtrArray parts; // Expr *, int64: values that the program has as int32, since the last clear
} WideSizes;

WideSizes wide_sizes_new(Context *context, const TargetProgram *program);
// The value of `e` as int64, of the program's sizes; NULL when it has other variables, or
// operations that may fail. Adds to `parts` what must fit int32.
Expr *wide_size(WideSizes *sizes, Expr *e);
// The same as a float64, for a value that may leave 64 bits.
Expr *wide_size_float(WideSizes *sizes, Expr *e);

#endif
