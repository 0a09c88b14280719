// SPDX-License-Identifier: Apache-2.0
// Gives the table of operations (ops.def) to the solvers: the properties of operations that do not
// depend on how a solver represents values.
#ifndef PLEAT_LAYOUT_CORE_OPS_H
#define PLEAT_LAYOUT_CORE_OPS_H

#include "base/interval.h"
#include "layout/layout.h"

// The operations that a solver decides by one rule. A switch over classes names all of them, so
// that the compiler finds the solvers that miss a new one.
typedef enum LayoutOpClass {
  LAYOUT_OP_LEAF,
  LAYOUT_OP_LINEAR,     // a + b, a - b
  LAYOUT_OP_PRODUCT,    // a * b
  LAYOUT_OP_QUOTIENT,   // a // b, a % b
  LAYOUT_OP_SHIFT,      // by a number of bits
  LAYOUT_OP_BITS,       // bit by bit
  LAYOUT_OP_EXTREME,    // min, max
  LAYOUT_OP_COMPARISON, // 0 or 1
  LAYOUT_OP_LOGIC,      // not, and, or of truth values: 0 or 1
  LAYOUT_OP_CHOICE,     // the second or the third argument, by the first
} LayoutOpClass;

typedef struct LayoutOpRow {
  const char *text;
  int arguments, precedence;
  LayoutOpClass class;
  bool commutes;
} LayoutOpRow;
extern const LayoutOpRow layout_op_rows[LAYOUT_OP_COUNT];

static inline LayoutOpClass layout_op_class(LayoutOp op) {
  return layout_op_rows[op].class;
}

// Whether `a op b` is a.
bool layout_op_is_neutral(LayoutOp op, int64_t b);
// The value of one operation on values; false on division by zero, bad shift or overflow.
bool layout_op_value(LayoutOp op, int64_t a, int64_t b, int64_t c, int64_t *out);
// An interval of the values of one operation on values in these intervals. False where a value may
// not exist or an end does not fit 64 bits. `a % b` has all of [0, b) whatever `a` is.
bool layout_op_interval(LayoutOp op, Interval a, Interval b, Interval c, Interval *out);

// Whether one operation, a comparison or a logical one, has one truth value for all values in these
// intervals, which is *out. It only depends on their signs.
bool layout_op_truth(LayoutOp op, Interval a, Interval b, int64_t *out);

#endif
