// SPDX-License-Identifier: Apache-2.0
// Counts the operations of an expression, for costs, for the size of code and for reports.
#ifndef PLEAT_OP_COUNT_H
#define PLEAT_OP_COUNT_H

#include "ir/ir.h"

typedef struct OpCount {
  double arithmetic;   // of class OP_ARITH, of any type
  double functions;    // mathematical functions, class OP_MATH
  double instructions; // every node that has operands, and every load, but no function
  double floating;     // arithmetic and functions on floats, by lanes
} OpCount;

// The operations in `e`. The indices of a load are not counted.
OpCount expr_op_count(Expr *e);

// The work of a processor for an expression, in operations of a vector.
typedef struct OpWork {
  double operations; // with those of the functions that are computed in vectors
  double divisions;  // and square roots, beside which other operations run
  double guards;     // operations of the conditions under which memory is read
  double lane_work;  // operations for each lane: library calls, divisions of integers
  double dots;       // sums of products of four bytes
  double pairs;      // sums of products of two numbers of 16 bits
  double combine;    // the outermost operation alone, by which a reduction combines
} OpWork;

// The work of `e`, in which equal parts are computed once. Loads and their indices are not counted.
OpWork expr_op_work(Context *context, Expr *e);

#endif
