// SPDX-License-Identifier: Apache-2.0
// Checks and applies swizzles of offsets for the spellings that have them, and finds the swizzle of
// a layout that is printed. CuTe writes a swizzle as `Swizzle<B,M,S>`, TVM as
// `ComposeLayout(M, B, S, ...)`.
#include "layout/spellings/spellings.h"
#include "layout/digits/digits.h"

bool layout_swizzle_check(LayoutReader *r, const char *from, const XorSwizzle *s) {
  int64_t reach = s->shift < 0 ? -s->shift : s->shift;
  if (s->bits < 0 || s->base < 0 || reach > 62 || s->bits > 62 || s->base > 62 ||
      s->bits + s->base + reach > 62)
    return layout_reader_refuse(r, from, r->at, "a swizzle of bits that no offset has");
  if (reach < s->bits)
    return layout_reader_error(r, from, r->at,
                               "a swizzle of %lld bits needs a shift of at least %lld",
                               (long long)s->bits, (long long)s->bits);
  return true;
}

const LayoutExpr *layout_swizzled(Context *context, const XorSwizzle *s, const LayoutExpr *e) {
  if (!s->bits) return e;
  int64_t up = s->shift < 0 ? -s->shift : s->shift, mask = ((int64_t)1 << s->bits) - 1;
  mask <<= s->base + MAX_OF(s->shift, (int64_t)0);
  const LayoutExpr *by = layout_const(context, (int64_t)1 << up);
  const LayoutExpr *bits = layout_by(context, LAYOUT_AND, e, mask);
  bits = layout_binary(context, s->shift < 0 ? LAYOUT_MUL : LAYOUT_DIV, bits, by);
  return layout_binary(context, LAYOUT_XOR, e, bits);
}

// The range of bits that exclusive ors change: *bits bits from *low on. False when it is empty.
static bool changed_bits(Context *context, const Layout *layout, int *low, int *bits) {
  DigitSpace d = layout_digits_new(context, layout->extents, layout_box_rank(layout));
  const DigitForm *f = layout_form_of(&d, layout->map->outputs[0]);
  int high = -1;
  *low = 63;
  for (int i = 0; f && i < f->xor_count; i++) {
    int64_t c = f->xors[i].coefficient;
    int at = __builtin_ctzll((uint64_t)c);
    *low = MIN_OF(*low, at);
    high = MAX_OF(high, at);
  }
  *bits = high - *low + 1;
  return high >= 0;
}

bool layout_swizzled_placement(Context *context, const Layout *layout, XorSwizzle *swizzle,
                               LayoutPlacement *p) {
  const char *why;
  int low, bits;
  if (!changed_bits(context, layout, &low, &bits)) return false;
  for (int shift = bits; shift + bits + low < 62; shift++)
    for (int down = 0; down < 2; down++) {
      if (down && low < shift) continue;
      *swizzle = (XorSwizzle){bits, down ? low - shift : low, down ? -shift : shift};
      const LayoutExpr *e = layout_swizzled(context, swizzle, layout->map->outputs[0]);
      if (layout_placement(context, layout->extents, layout_box_rank(layout), &e, 1, p, &why))
        return true;
    }
  return false;
}
