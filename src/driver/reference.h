// SPDX-License-Identifier: Apache-2.0
// Reference results for `pleat verify`: the values of a graph, computed node by node from its
// operators' definitions, and their comparison with other values.
#ifndef PLEAT_DRIVER_REFERENCE_H
#define PLEAT_DRIVER_REFERENCE_H

#include "driver/driver.h"

typedef struct Reference {
  Context *context;
  const GraphFunc *graph;
  KernelCode *code; // the definitions as unscheduled code; NULL: the interpreter
  PrimFunc **funcs; // one per node
  Map data;         // from Value to its elements, row-major
  int next;         // the first node that has not been computed
} Reference;

// Prepares to compute the values; with `compiled`, by unscheduled code instead of the interpreter.
// False with diagnostics.
bool reference_begin(Context *context, const GraphFunc *graph, Tensor *const *inputs, bool compiled,
                     const CompileOptions *options, Reference *reference);
// Discards the values computed so far and continues with other inputs.
void reference_restart(Reference *reference, Tensor *const *inputs);
// The elements of `value`, after computing all nodes up to it. NULL with diagnostics.
const void *reference_value(Reference *reference, const Value *value);
void reference_end(Reference *reference);

// How close results must be: |expected - actual| <= atol + rtol * |expected|, or at most max_ulp
// numbers of their type apart; either is enough. A negative member is not given. When some members
// are given, the others count as 0. When none is given, 1e-4 relative and 1e-5 of the tensor's
// largest element are allowed, or 2e-2 of both for floats of 16 bits or fewer.
typedef struct Tolerance {
  double rtol, atol;
  int64_t max_ulp;
} Tolerance;
#define TOLERANCE_DEFAULT ((Tolerance){-1, -1, -1})
// The tolerance as a text, such as "within 0.001 relative or 4 ulp" or "exactly".
const char *tolerance_text(Arena *arena, const Tolerance *tolerance);

typedef struct Difference {
  int64_t count, mismatches; // elements compared, and those that differ
  int64_t index;             // of the element that differs most
  double expected, actual;
  int64_t ulp;    // numbers of the type between them; -1: not finite, or no floats
  double largest; // difference relative to the tensor's largest element
} Difference;
// Do `count` elements agree? NaN agrees with NaN.
bool values_agree(DType type, const void *expected, const void *actual, int64_t count,
                  const Tolerance *tolerance, Difference *difference);

// Names the part of the compiler that made the result of a step differ from `expected` (row-major)
// by more than `tolerance`, such as "the pass vectorize_loops". A difference within the usual
// tolerance is called rounding, and the part is the first one that rounds differently. Must be
// called during executable_trace of `program`, after the step. The interpreter runs the kernel up
// to six times.
const char *miscompile_locate(const Program *program, Executable *executable, int step,
                              const void *expected, const Tolerance *tolerance);

#endif
