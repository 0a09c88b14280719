// SPDX-License-Identifier: Apache-2.0
// The reference interpreter: runs tensor programs at every stage of lowering, plainly, and is the
// judge of every pass and target. Each operation is computed in its type's own precision; integers
// wrap. Accesses outside a buffer or its storage, division of integers by zero, failed assertions
// and (where asked) reads of memory nobody wrote are located diagnostics.
//
// Meaning fixed here for all targets: `min` and `max` keep a NaN of either operand; a float cast to
// an integer truncates and is unspecified outside the integer's range; shifts by at least the width
// are unspecified; `and` and `or` of scalars do not compute their second operand when the first
// decides; Select computes both its values.
#ifndef PLEAT_INTERP_H
#define PLEAT_INTERP_H

#include "ir/ir.h"

// An argument: a tensor, or (rank 0) a scalar. Borrowed.
typedef struct InterpTensor {
  DType type;
  int rank;
  const int64_t *shape;
  const int64_t *strides; // in elements; NULL: compact, row-major
  void *data;
} InterpTensor;
InterpTensor interp_tensor_of(const ConstData *data); // only to be read

// A function that programs may call by name. Scalars only; floats in `f`, all else in `i`.
typedef union InterpValue {
  int64_t i;
  double f;
} InterpValue;
typedef struct InterpExtern {
  const char *name;
  InterpValue (*call)(void *env, const InterpValue *args, int count);
  void *env;
} InterpExtern;

typedef struct InterpOptions {
  bool poison;       // fresh allocations hold NaN, or a pattern for integers, instead of zeros
  bool report_reads; // reading an allocation's element before it is written is an error
  bool flat_args;    // a tensor may differ in rank from its buffer if the element counts agree
  int64_t max_steps; // loop iterations before giving up; 0: no limit
  size_t max_bytes;  // of allocations; 0: 4 GiB
  const InterpExtern *externs;
  int extern_count;
} InterpOptions;

// Runs `func` on `args`, one a parameter, in their order. Variables in the shapes, strides and
// offsets of its buffers are bound from the arguments. `module` (may be NULL) holds the functions
// it calls; `options` may be NULL. False with a diagnostic on any error; what was written by then
// stays written.
bool interp_run(Context *context, const Module *module, const PrimFunc *func,
                const InterpTensor *args, int count, const InterpOptions *options);

// ---- Numbers of any type in memory ------------------------------------------------------------

double number_round(DType type, double value);    // to the nearest value of a floating type
int64_t number_wrap(DType type, int64_t value);   // to the range of an integer type; bool: 0 or 1
double number_load(DType type, const void *data); // one element as a double (int64: rounded)
void number_store(DType type, void *data, double value);
int64_t number_load_int(DType type, const void *data); // integers and bool
void number_store_int(DType type, void *data, int64_t value);
uint64_t number_bits(DType type, double value); // the encoding of a floating type's value

// ---- Comparing two programs -------------------------------------------------------------------

typedef enum InterpFill {
  INTERP_FILL_UNIT,   // floats in [-1, 1], integers in [-8, 8]
  INTERP_FILL_EIGHTHS // floats are multiples of 1/8 in [-1, 1]: short sums are exact in any order
} InterpFill;

// `count` elements; the same seed gives the same values for any type.
void interp_fill(DType type, void *data, int64_t count, uint64_t seed, InterpFill fill);

typedef struct InterpSize { // a variable of the first function's shapes, or a scalar parameter
  const Expr *var;
  int64_t value;
} InterpSize;

// Values of a parameter, spread over it; both 0: as the filling says.
typedef struct InterpRange {
  double low, high;
} InterpRange;

// The difference found by a comparison. Errors are over all elements of all parameters.
typedef struct InterpDifference {
  double max_abs, max_rel; // relative to max(|expected|, 1e-3 of the largest |expected|)
  int param;               // where the relative error is largest
  int64_t index;           // flat, in the logical tensor
  double expected, actual;
  int64_t mismatches; // elements outside the tolerance, or NaN on one side only
} InterpDifference;

typedef struct InterpCompare {
  const Module *module_a, *module_b;
  const InterpSize *sizes;
  int size_count;
  uint64_t seed;
  InterpFill fill;
  const InterpRange *ranges; // one a parameter; NULL: none
  double rtol, atol;         // |expected - actual| <= atol + rtol * |expected|
  InterpOptions options;
  // When the parameters of `b` have other layouts: `pack` makes b's argument from a's (in `arena`),
  // `unpack` brings b's result back into an array of a's shape. NULL: the same memory.
  void *env;
  InterpTensor (*pack)(void *env, Arena *arena, int param, const InterpTensor *logical);
  void (*unpack)(void *env, int param, const InterpTensor *physical, InterpTensor *logical);
  // Runs `b` instead of the interpreter (a target under test). NULL: the interpreter.
  bool (*run_b)(void *env, const InterpTensor *args, int count);
} InterpCompare;

// Runs both on the same random inputs, every parameter filled, and compares every parameter
// afterwards. False when either fails (diagnostics) or they differ (only *difference tells).
bool interp_compare(Context *context, const PrimFunc *a, const PrimFunc *b,
                    const InterpCompare *compare, InterpDifference *difference);
// "parameter 2 (C) at [3, 5]: expected 1.5, got 1.25 (12 of 64 elements differ)"
const char *interp_difference_text(Arena *arena, const PrimFunc *func,
                                   const InterpDifference *difference);

// The bytes an argument's memory spans, and the shape of parameter `param` under `sizes`. False
// with a diagnostic when an extent is unknown, negative or too large.
int64_t interp_tensor_bytes(const InterpTensor *tensor);
bool interp_param_shape(Context *context, const PrimFunc *func, int param, const InterpSize *sizes,
                        int size_count, int64_t *shape);

#endif
