// SPDX-License-Identifier: Apache-2.0
// Reference results for checks of compiled code: the values of a graph, computed node by node from
// its operators' definitions, their comparison with other values, and the search for the part of
// the compiler that made one differ.
#ifndef PLEAT_DRIVER_REFERENCE_H
#define PLEAT_DRIVER_REFERENCE_H

#include "driver/driver.h"

typedef struct Reference {
  Context *context;
  const GraphFunc *graph;
  KernelCode *code; // the definitions as unscheduled code; NULL: the interpreter
  PrimFunc **funcs; // one per node
  Map data;         // from Value to its elements, row-major
  Map replaced;     // likewise, for those that reference_replace set
  Map given;        // likewise, for the outputs of opaque operators
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
// Runs the definition of node `number` on contents of its inputs and outputs; NULL for inputs that
// the node does not have. False with diagnostics.
bool reference_run(Reference *reference, int number, const void *const *inputs,
                   void *const *outputs);
// Uses a copy of these elements from now on for everything that is computed from the value. False
// with diagnostics.
bool reference_replace(Reference *reference, const Value *value, const void *contents);
// States the result of an opaque operator, which has no definition: a copy of these elements. To be
// called before the value, or one that follows from it, is asked for.
void reference_give(Reference *reference, const Value *value, const void *contents);
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

// How far from `value` another number of the type may be. `largest` is the tensor's largest
// element.
double tolerance_of(DType type, const Tolerance *tolerance, double largest, double value);
double values_largest(DType type, const void *data, int64_t count); // of the finite magnitudes

// The contents that a kernel should write, row-major. An element may also be between `low` and
// `high`; NULL: there are no such bounds.
typedef struct Expected {
  const void *value, *low, *high;
} Expected;

typedef struct Difference {
  int64_t count, mismatches; // elements compared, and those that differ
  int64_t at_boundaries;     // elements that agree only because they are within the bounds
  int64_t index;             // of the element that differs most
  double expected, actual;
  int64_t ulp;    // numbers of the type between them; -1: not finite, or no floats
  double largest; // difference relative to the tensor's largest element
} Difference;
// Do `count` elements agree? NaN agrees with NaN.
bool values_agree(DType type, const Expected *expected, const void *actual, int64_t count,
                  const Tolerance *tolerance, Difference *difference);

// Finds the bounds of a value that a kernel wrote, where the kernel rounds to coarse steps
// (driver/rounding.c). `read` has the row-major contents of the values that the kernel read, by
// Value, and `settled` the values that earlier kernels wrote. The result is in the context's
// scratch arena. False when the kernel does not round, or with diagnostics.
bool reference_bounds(Reference *reference, const Value *value, const Map *read, const Map *settled,
                      const Tolerance *tolerance, Expected *out);

// The part of the compiler that made a result differ.
typedef struct Cause {
  const char *part; // "stages", "schedule", "pass" or "code"
  const char *name; // of the pass or of the code generator, or the step; NULL: not known
  bool rounding;    // the difference is usual for another order of sums; the part rounds first
  const char *text; // "the pass vectorize_loops"
} Cause;
// Finds the part that made the result of a step differ by more than `tolerance`. A difference
// within the usual tolerance is called rounding, and the part is the first one that rounds
// differently. Must be called during executable_trace of `program`, after the step. The interpreter
// runs the kernel up to six times.
Cause miscompile_locate(const Program *program, Executable *executable, int step,
                        const Expected *expected, const Tolerance *tolerance);

#endif
