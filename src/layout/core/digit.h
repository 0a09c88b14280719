// SPDX-License-Identifier: Apache-2.0
// The digit, of which the layout algebra is made, and what is computed with one: its value, its
// end, its parts, its text. Normal forms, their inversion, memory orders and spellings use it.
#ifndef PLEAT_LAYOUT_CORE_DIGIT_H
#define PLEAT_LAYOUT_CORE_DIGIT_H

#include "layout/layout.h"

// weight · (⌊(base + offset)/cut⌋ mod radix). The base is an axis, or in digits/ a number that has
// digits. An open digit has no remainder, since it is the top one of its base: its values stay
// below the radix, which is 0 where no bound of them is known.
typedef struct Digit {
  int64_t weight, offset, cut, radix;
  int base;
  bool open;
} Digit;

// The value of the digit, without its weight, where base + offset is `number`.
static inline int64_t digit_value(const Digit *g, int64_t number) {
  return g->open ? number / g->cut : number / g->cut % g->radix;
}

// Whether both digits are of one number, base + offset, and begin at the same cut.
static inline bool digit_starts_with(const Digit *a, const Digit *b) {
  return a->base == b->base && a->offset == b->offset && a->cut == b->cut;
}

// The cut at which the digit ends and the next one of its base begins. False where it does not fit.
static inline bool digit_end(const Digit *g, int64_t *cut) {
  return mul_fits(g->cut, g->radix, cut);
}

// g = low + high, where `low` has this radix. False where the radix does not divide that of a digit
// that is not open, or where the parts do not fit.
bool digit_split(const Digit *g, int64_t radix, Digit *low, Digit *high);

// Reads (axis // cut) % radix as a digit of weight 1, which is open, with radix 0, where there is
// no remainder. The expression must have this form, or nest such forms.
bool layout_axis_digit(const LayoutExpr *e, Digit *out);
// (e // cut) % radix, or e // cut for radix 0.
const LayoutExpr *layout_digit_expr(Context *context, const LayoutExpr *e, int64_t cut,
                                    int64_t radix);

#endif
