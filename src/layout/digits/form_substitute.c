// SPDX-License-Identifier: Apache-2.0
// Substitutes forms for the axes of a form, to compose maps and to check inverses. Floors are
// divided anew, so the result is a normal form over the other box.
#include "layout/digits/form.h"

typedef struct Application {
  DigitSpace *to;
  const DigitSpace *from;
  const DigitForm *const *axes;
  const DigitForm **bases; // values of the bases of `from`, found on demand
} Application;

static const DigitForm *apply_form(Application *a, const DigitForm *f);

static const DigitForm *apply_opaque(Application *a, const FormBase *base) {
  const DigitForm *args[3] = {0};
  for (int i = 0; i < 3 && base->args[i]; i++)
    if (!(args[i] = apply_form(a, base->args[i]))) return NULL;
  if (base->op >= LAYOUT_LT && base->op <= LAYOUT_NE) args[1] = layout_form_const(a->to, 0);
  return layout_form_add_const(
      a->to, layout_form_operation(a->to, base->op, args[0], args[1], args[2]), -base->low);
}

static const DigitForm *apply_base(Application *a, int at) {
  const FormBase *base = &a->from->bases[at];
  if (a->bases[at]) return a->bases[at];
  const DigitForm *value = base->kind == BASE_AXIS   ? a->axes[base->axis]
                           : base->kind == BASE_FORM ? apply_form(a, base->args[0])
                                                     : apply_opaque(a, base);
  return a->bases[at] = value;
}

static const DigitForm *apply_floor(Application *a, int base, int64_t offset, int64_t cut) {
  return layout_form_divide(a->to, layout_form_add_const(a->to, apply_base(a, base), offset), cut);
}

static const DigitForm *apply_xor(Application *a, const FormXor *item) {
  const DigitForm *value = layout_form_const(a->to, 0);
  for (int i = 0; i < a->from->bit_count && value; i++) {
    if (!mask_has(item->mask, i)) continue;
    const Digit *bit = &a->from->bits[i];
    const DigitForm *digit =
        layout_form_modulo(a->to, apply_floor(a, bit->base, bit->offset, bit->cut), 2);
    value = layout_form_bitwise(a->to, LAYOUT_XOR, value, digit);
  }
  return value;
}

static const DigitForm *apply_form(Application *a, const DigitForm *f) {
  const DigitForm *sum = layout_form_const(a->to, f->constant);
  for (int i = 0; i < f->count && sum; i++)
    sum = layout_form_linear(a->to, sum, 1,
                             apply_floor(a, f->terms[i].base, f->terms[i].offset, f->terms[i].cut),
                             f->terms[i].coefficient);
  for (int i = 0; i < f->xor_count && sum; i++)
    sum = layout_form_linear(a->to, sum, 1, apply_xor(a, &f->xors[i]), f->xors[i].coefficient);
  return sum;
}

const DigitForm *layout_form_apply(DigitSpace *to, const DigitSpace *from, const DigitForm *f,
                                   const DigitForm *const *axes) {
  Application a = {to, from, axes, arena_array(to->arena, const DigitForm *, from->base_count + 1)};
  return apply_form(&a, f);
}
