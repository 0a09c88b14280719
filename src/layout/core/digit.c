// SPDX-License-Identifier: Apache-2.0
// Splits digits, and converts them from and to expressions, for all folders of src/layout.
#include "layout/core/core.h"

bool digit_split(const Digit *g, int64_t radix, Digit *low, Digit *high) {
  Digit rest = *g;
  if (!g->open && g->radix % radix) return false;
  if (!mul_fits(g->cut, radix, &rest.cut) || !mul_fits(g->weight, radix, &rest.weight))
    return false;
  rest.radix = g->open ? ceil_div(g->radix, radix) : g->radix / radix;
  *low = *g;
  low->radix = radix;
  low->open = false;
  *high = rest;
  return true;
}

static bool positive_const(const LayoutExpr *e) {
  return is_const(e) && e->value > 0;
}

bool layout_axis_digit(const LayoutExpr *e, Digit *out) {
  if (e->op == LAYOUT_AXIS)
    return *out = (Digit){.weight = 1, .cut = 1, .base = (int)e->value, .open = true}, true;
  if ((e->op != LAYOUT_DIV && e->op != LAYOUT_MOD) || !positive_const(e->args[1]) ||
      !layout_axis_digit(e->args[0], out))
    return false;
  int64_t by = e->args[1]->value;
  if (out->radix % by) return false;
  if (e->op == LAYOUT_DIV) {
    out->radix /= by;
    return mul_fits(out->cut, by, &out->cut);
  }
  out->radix = by;
  out->open = false;
  return true;
}

const LayoutExpr *layout_digit_expr(Context *context, const LayoutExpr *e, int64_t cut,
                                    int64_t radix) {
  e = layout_by(context, LAYOUT_DIV, e, cut);
  return radix ? layout_by(context, LAYOUT_MOD, e, radix) : e;
}
