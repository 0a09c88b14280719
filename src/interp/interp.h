// SPDX-License-Identifier: Apache-2.0
// The reference interpreter: it runs tensor programs at every stage of lowering, and tests compare
// every pass and target with it. Each operation is computed in the precision of its type; integers
// wrap. Located diagnostics report accesses outside of a buffer or its storage, division of
// integers by zero, failed assertions and, on request, reads of memory that was not written.
//
// The semantics for all targets: `min` and `max` return NaN when an operand is NaN; a float cast to
// an integer truncates, and is unspecified outside of the integer's range; shifts by at least the
// width are unspecified; `and` and `or` of scalars skip their second operand when the first
// decides; Select computes both of its values.
#ifndef PLEAT_INTERP_H
#define PLEAT_INTERP_H

#include "ir/ir.h"

#include <string.h>

// An argument: a tensor, or (rank 0) a scalar. The memory is borrowed from the caller.
typedef struct InterpTensor {
  DType type;
  int rank;
  const int64_t *shape;
  const int64_t *strides; // in elements; NULL: contiguous in row-major order
  void *data;
  int64_t offset; // of the first element, in elements from `data`; the memory spans them too
} InterpTensor;
InterpTensor interp_tensor_of(const ConstData *data); // for reading only

// A function that programs may call by name. Its arguments and result are scalars: floats are in
// `f`, other types in `i`.
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
  bool poison;        // new allocations hold NaN or an integer pattern, instead of zeros
  bool report_reads;  // reading an allocation's element before it is written is an error
  bool flat_args;     // a tensor may differ in rank from its buffer if the element counts agree
  int64_t max_steps;  // loop iterations before the run fails; 0: no limit
  bool *out_of_steps; // is set where it fails for that; may be NULL
  size_t max_bytes;   // the most bytes of allocations; 0: 4 GiB
  const InterpExtern *externs;
  int extern_count;
} InterpOptions;

// Runs `func` on `args`, one for each parameter, in order. Variables in the shapes, strides and
// offsets of its buffers are bound from the arguments. `module` (may be NULL) holds the functions
// that `func` calls; `options` may be NULL. False with a diagnostic on any error; then the
// arguments keep the values written so far.
bool interp_run(Context *context, const Module *module, const PrimFunc *func,
                const InterpTensor *args, int count, const InterpOptions *options);

// ---- Numbers of any type in memory ------------------------------------------------------------

double number_round_small(DType type, double value); // to a type of fewer than 32 bits
double number_load_small(DType type, const void *data);

// The nearest value of a floating type.
static inline double number_round(DType type, double value) {
  if (type.bits == 32) return (double)(float)value;
  return type.bits == 64 ? value : number_round_small(type, value);
}

// The value modulo 2^bits of an integer type; bool: 0 or 1.
static inline int64_t number_wrap(DType type, int64_t value) {
  if (type.code == TYPE_BOOL) return value != 0;
  if (type.bits >= 64 || !dtype_is_int(type)) return value;
  int unused = 64 - type.bits;
  uint64_t shifted = (uint64_t)value << unused;
  return type.code == TYPE_UINT ? (int64_t)(shifted >> unused) : (int64_t)shifted >> unused;
}

// An element of a floating type.
static inline double number_load_float(DType type, const void *data) {
  float single;
  double value;
  if (type.bits == 32) return memcpy(&single, data, sizeof single), (double)single;
  return type.bits == 64 ? (memcpy(&value, data, sizeof value), value)
                         : number_load_small(type, data);
}

// An element of an integer type or bool.
static inline int64_t number_load_int(DType type, const void *data) {
  uint64_t bits = 0;
  if (type.bits == 32)
    memcpy(&bits, data, 4);
  else if (type.bits == 64)
    memcpy(&bits, data, 8);
  else
    memcpy(&bits, data, (size_t)dtype_bytes(dtype_lanes(type, 1)));
  return number_wrap(type, (int64_t)bits);
}
// A float as an element of an integer type: its whole part modulo 2^bits. NaN and numbers beyond
// int32 (for types of more than 32 bits, beyond int64) give the least int32 (int64) modulo 2^bits;
// uint32 and uint64 have their own range, and 0 above it. This is what NumPy and ONNX Runtime
// compute on x86, where ONNX and C leave the result open.
int64_t number_of_float(DType type, double value);
double number_load(DType type, const void *data); // one element as a double (int64: rounded)
void number_store(DType type, void *data, double value);
void number_store_int(DType type, void *data, int64_t value);
uint64_t number_bits(DType type, double value); // the encoding of a floating type's value

// ---- Comparing two programs -------------------------------------------------------------------

typedef enum InterpFill {
  INTERP_FILL_UNIT,   // floats in [-1, 1], integers in [-8, 8]
  INTERP_FILL_EIGHTHS // floats are multiples of 1/8 in [-1, 1]: short sums are exact in any order
} InterpFill;

// Fills `count` elements. The same seed gives the same values for every type.
void interp_fill(DType type, void *data, int64_t count, uint64_t seed, InterpFill fill);

typedef struct InterpSize { // a variable of the first function's shapes, or a scalar parameter
  const Expr *var;
  int64_t value;
} InterpSize;

// The range of a parameter's values, which are spread over it; both 0: the range of the filling.
typedef struct InterpRange {
  double low, high;
} InterpRange;

// The result of a comparison. Errors are the largest over all elements of all parameters.
typedef struct InterpDifference {
  double max_abs, max_rel; // relative to max(|expected|, 1e-3 of the largest |expected|)
  int param;               // the parameter with the largest relative error
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
  const InterpRange *ranges; // one for each parameter; NULL: none
  double rtol, atol;         // |expected - actual| <= atol + rtol * |expected|
  InterpOptions options;
  // For parameters of `b` that have other layouts: `pack` makes b's argument (in `arena`) from a's,
  // and `unpack` copies b's result into an array of a's shape. NULL: both use one layout.
  void *env;
  InterpTensor (*pack)(void *env, Arena *arena, int param, const InterpTensor *logical);
  void (*unpack)(void *env, int param, const InterpTensor *physical, InterpTensor *logical);
  // Runs `b` instead of the interpreter (a target under test). NULL: the interpreter.
  bool (*run_b)(void *env, const InterpTensor *args, int count);
} InterpCompare;

// Runs both programs on the same random inputs, with every parameter filled, and compares every
// parameter afterwards. False when one run fails (with diagnostics), or the results differ
// (without; see *difference).
bool interp_compare(Context *context, const PrimFunc *a, const PrimFunc *b,
                    const InterpCompare *compare, InterpDifference *difference);
// "parameter 2 (C) at [3, 5]: expected 1.5, got 1.25 (12 of 64 elements differ)"
const char *interp_difference_text(Arena *arena, const PrimFunc *func,
                                   const InterpDifference *difference);

// The number of bytes that an argument's memory spans from `data`, its offset included; and the
// shape of parameter `param` under `sizes`, false with a diagnostic when an extent is unknown,
// negative or too large.
int64_t interp_tensor_bytes(const InterpTensor *tensor);
bool interp_param_shape(Context *context, const PrimFunc *func, int param, const InterpSize *sizes,
                        int size_count, int64_t *shape);

#endif
