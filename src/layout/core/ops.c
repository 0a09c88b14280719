// SPDX-License-Identifier: Apache-2.0
// Evaluates the operations of layout expressions on numbers and on intervals, and holds the columns
// of their table as data.
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

// ---- Intervals ---------------------------------------------------------------------------------

// Extremes over the corners; ends stay in order by a positive constant, as empty intervals need.
static bool corners(LayoutOp op, Interval a, Interval b, Interval *out) {
  int64_t v[4];
  if (b.low == b.high && b.low > 0)
    return layout_op_value(op, a.low, b.low, 0, &out->low) &&
           layout_op_value(op, a.high, b.low, 0, &out->high);
  if (!layout_op_value(op, a.low, b.low, 0, &v[0]) || !layout_op_value(op, a.low, b.high, 0, &v[1]))
    return false;
  if (!layout_op_value(op, a.high, b.low, 0, &v[2]) ||
      !layout_op_value(op, a.high, b.high, 0, &v[3]))
    return false;
  *out = (Interval){MIN_OF(MIN_OF(v[0], v[1]), MIN_OF(v[2], v[3])),
                    MAX_OF(MAX_OF(v[0], v[1]), MAX_OF(v[2], v[3]))};
  return true;
}

static bool quotient_interval(LayoutOp op, Interval a, Interval b, Interval *out) {
  if (op == LAYOUT_MOD) return b.low > 0 && (*out = (Interval){0, b.high - 1}, true);
  return (b.low > 0 || b.high < 0) && corners(op, a, b, out);
}

static Interval bits_interval(LayoutOp op, Interval a, Interval b) {
  int64_t reach = mask_over(MAX_OF(MAX_OF(a.high, b.high), -1 - MIN_OF(a.low, b.low)));
  if (op == LAYOUT_AND && b.low >= 0)
    return (Interval){0, a.low < 0 ? b.high : MIN_OF(a.high, b.high)};
  if (op == LAYOUT_AND && a.low >= 0) return (Interval){0, a.high};
  return (Interval){a.low < 0 || b.low < 0 ? -1 - reach : 0, reach};
}

bool layout_op_interval(LayoutOp op, Interval a, Interval b, Interval c, Interval *out) {
  switch (layout_op_class(op)) {
  case LAYOUT_OP_LINEAR:
    return op == LAYOUT_ADD ? interval_add_fits(a, b, out) : interval_sub_fits(a, b, out);
  case LAYOUT_OP_QUOTIENT: return quotient_interval(op, a, b, out);
  case LAYOUT_OP_PRODUCT:
  case LAYOUT_OP_SHIFT: return corners(op, a, b, out);
  case LAYOUT_OP_BITS: return *out = bits_interval(op, a, b), true;
  case LAYOUT_OP_EXTREME:
    return *out = op == LAYOUT_MIN ? interval_min(a, b) : interval_max(a, b), true;
  case LAYOUT_OP_COMPARISON:
  case LAYOUT_OP_LOGIC: return *out = (Interval){0, 1}, true;
  case LAYOUT_OP_CHOICE: return *out = interval_hull(b, c), true;
  case LAYOUT_OP_LEAF: break;
  }
  return false;
}

static int64_t sign_of(int64_t value) {
  return (value > 0) - (value < 0);
}

bool layout_op_truth(LayoutOp op, Interval a, Interval b, int64_t *out) {
  int64_t value;
  layout_op_value(op, sign_of(a.low), sign_of(b.low), 0, out);
  for (int64_t x = sign_of(a.low); x <= sign_of(a.high); x++)
    for (int64_t y = sign_of(b.low); y <= sign_of(b.high); y++)
      if (!layout_op_value(op, x, y, 0, &value) || value != *out) return false;
  return true;
}
