// SPDX-License-Identifier: Apache-2.0
// Reads an expression as a sum of digits of the axes, the highest weight first.
#include "layout/digits/digits.h"
#include "layout/operations/operations.h"

// The number of values that the digit takes on an axis of this extent.
static int64_t values_of(const Digit *g, int64_t extent) {
  int64_t values = ceil_div(extent, g->cut);
  return g->open ? values : MIN_OF(values, g->radix);
}

// Inserts a digit by descending weight.
static void insert(LayoutWeightedDigit *digits, int count, LayoutWeightedDigit digit) {
  int at = count;
  for (; at > 0 && digits[at - 1].weight < digit.weight; at--) digits[at] = digits[at - 1];
  digits[at] = digit;
}

static bool is_separated(const LayoutDigitSum *sum) {
  int64_t reach = 0, span;
  for (int i = sum->count - 1; i >= 0; i--) {
    const LayoutWeightedDigit *g = &sum->digits[i];
    if (g->weight <= reach || !mul_fits(g->weight, g->extent - 1, &span) ||
        !add_fits(reach, span, &reach))
      return false;
  }
  return true;
}

static bool collect(DigitSpace *d, const LayoutExpr *e, LayoutDigitSum *out) {
  Digit found[MAX_DIGITS];
  int count;
  const DigitForm *f = layout_form_of(d, e);
  if (f) f = layout_form_regroup(d, f);
  if (!f || f->xor_count || !layout_form_digits(d, f, found, &count)) return false;
  LayoutWeightedDigit *digits = arena_array(&d->context->lasting, LayoutWeightedDigit, count);
  *out = (LayoutDigitSum){f->constant, 0, digits};
  for (int i = 0; i < count; i++) {
    const Digit *g = &found[i];
    const FormBase *base = &d->bases[g->base];
    if (base->kind != BASE_AXIS || g->offset || g->weight < 1) return false;
    int64_t values = values_of(g, d->extents[base->axis]);
    if (values > 1)
      insert(digits, out->count++, (LayoutWeightedDigit){base->axis, g->cut, values, g->weight});
  }
  return is_separated(out);
}

bool layout_expr_digits(Context *context, const LayoutExpr *e, const int64_t *extents, int rank,
                        LayoutDigitSum *out) {
  for (int i = 0; i < rank; i++)
    if (extents[i] < 1) return false;
  if (rank > MAX_RANK) return false;
  ArenaMark mark = arena_mark(&context->scratch);
  DigitSpace d = layout_digits_new(context, extents, rank);
  bool found = collect(&d, e, out);
  arena_reset(&context->scratch, mark);
  return found;
}
