// SPDX-License-Identifier: Apache-2.0
// Counts the operations of an expression, for costs, for the size of code and for reports.
#ifndef PLEAT_OP_COUNT_H
#define PLEAT_OP_COUNT_H

#include "ir/ir.h"

typedef struct OpCount {
  double arithmetic;   // of class OP_ARITH, of any type
  double functions;    // mathematical functions, class OP_MATH
  double instructions; // every node that has operands, and every load, but no function
  double dots;         // sums of products of four bytes
  double pairs;        // sums of products of two numbers of 16 bits
  double floating;     // arithmetic and functions on floats, by lanes
  double vector_work;  // vector operations of the functions that are computed in vectors
  double lane_work;    // operations, for each lane, of the other functions: library calls
} OpCount;

// The operations in `e`. The indices of a load are not counted.
OpCount expr_op_count(Expr *e);

#endif
