// SPDX-License-Identifier: Apache-2.0
// The operations of layout expressions: the table's columns as data, and the values on numbers.
#include "layout/core/ops.h"

const LayoutOpRow layout_op_rows[LAYOUT_OP_COUNT] = {
#define OP(name, arguments, precedence, text, class, commutes, ...)                                \
  {text, arguments, precedence, LAYOUT_OP_##class, commutes},
#include "layout/core/ops.def"
#undef OP
};

const char *layout_op_text(LayoutOp op) {
  return layout_op_rows[op].text;
}

int layout_op_arguments(LayoutOp op) {
  return layout_op_rows[op].arguments;
}

bool layout_op_value(LayoutOp op, int64_t a, int64_t b, int64_t c, int64_t *out) {
  switch (op) {
#define OP(name, arguments, precedence, text, class, commutes, neutral, value, ...)                \
  case LAYOUT_##name:                                                                              \
    return value;
#include "layout/core/ops.def"
#undef OP
  case LAYOUT_OP_COUNT: break;
  }
  return false;
}

bool layout_op_is_neutral(LayoutOp op, int64_t b) {
  switch (op) {
#define OP(name, arguments, precedence, text, class, commutes, neutral, ...)                       \
  case LAYOUT_##name:                                                                              \
    return neutral;
#include "layout/core/ops.def"
#undef OP
  case LAYOUT_OP_COUNT: break;
  }
  return false;
}
