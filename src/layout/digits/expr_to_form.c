// SPDX-License-Identifier: Apache-2.0
// Converts expressions to forms, operation by operation, and forms to expressions. Forms are
// written as digits, the largest weight first, and runs of neighbouring XORs as one XOR of digits.
#include "layout/digits/form.h"

// ---- Expression to form ------------------------------------------------------------------------

// An operation that forms cannot express: a base of its own, which equals another one when the
// operation and the arguments are the same.
static const DigitForm *opaque(DigitSpace *d, LayoutOp op, const DigitForm *const *args,
                               Interval range) {
  int64_t extent;
  if (!sub_fits(range.high, range.low, &extent) || extent > INT64_MAX / 4) return NULL;
  int base = -1;
  for (int i = d->axis_count; i < d->base_count && base < 0; i++) {
    bool same = d->bases[i].kind == BASE_OPAQUE && d->bases[i].op == op;
    for (int j = 0; j < 3 && same; j++)
      same = !args[j] || layout_form_same(args[j], d->bases[i].args[j]);
    if (same) base = i;
  }
  if (base < 0)
    base = layout_base_add(d, (FormBase){.kind = BASE_OPAQUE,
                                         .extent = extent + 1,
                                         .low = range.low,
                                         .op = op,
                                         .args = {args[0], args[1], args[2]}});
  return base < 0 ? NULL : layout_form_add_const(d, layout_form_floor(d, base, 0, 1), range.low);
}

static const DigitForm *extreme(DigitSpace *d, LayoutOp op, const DigitForm *a,
                                const DigitForm *b) {
  Interval x, y, difference;
  const DigitForm *less = layout_form_linear(d, a, 1, b, -1);
  if (!less || !layout_form_bounds(d, less, &difference)) return NULL;
  if (difference.high <= 0) return op == LAYOUT_MIN ? a : b;
  if (difference.low >= 0) return op == LAYOUT_MIN ? b : a;
  if (!layout_form_bounds(d, a, &x) || !layout_form_bounds(d, b, &y)) return NULL;
  return opaque(d, op, (const DigitForm *[3]){a, b},
                op == LAYOUT_MIN ? interval_min(x, y) : interval_max(x, y));
}

// The comparison of a - b with 0.
static const DigitForm *comparison(DigitSpace *d, LayoutOp op, const DigitForm *a,
                                   const DigitForm *b) {
  const DigitForm *difference = layout_form_linear(d, a, 1, b, -1);
  Interval r;
  int64_t truth;
  if (!difference || !layout_form_bounds(d, difference, &r)) return NULL;
  if (layout_op_truth(op, r, (Interval){0, 0}, &truth)) return layout_form_const(d, truth);
  return opaque(d, op, (const DigitForm *[3]){difference}, (Interval){0, 1});
}

static const DigitForm *choice(DigitSpace *d, const DigitForm *condition, const DigitForm *a,
                               const DigitForm *b) {
  Interval c, x, y;
  int64_t truth;
  if (layout_form_same(a, b)) return a;
  if (!layout_form_bounds(d, condition, &c)) return NULL;
  if (layout_op_truth(LAYOUT_NE, c, (Interval){0, 0}, &truth)) return truth ? a : b;
  if (!layout_form_bounds(d, a, &x) || !layout_form_bounds(d, b, &y)) return NULL;
  return opaque(d, LAYOUT_SELECT, (const DigitForm *[3]){condition, a, b}, interval_hull(x, y));
}

static const DigitForm *product(DigitSpace *d, const DigitForm *a, const DigitForm *b) {
  if (layout_form_is_const(b)) return layout_form_times(d, a, b->constant);
  return layout_form_is_const(a) ? layout_form_times(d, b, a->constant) : NULL;
}

static bool shift_factor(const DigitForm *b, int64_t *factor) {
  if (!layout_form_is_const(b) || b->constant < 0 || b->constant > 61) return false;
  *factor = (int64_t)1 << b->constant;
  return true;
}

static const DigitForm *bitwise(DigitSpace *d, LayoutOp op, const DigitForm *a,
                                const DigitForm *b) {
  Interval x, y;
  if (layout_form_same(a, b)) return op == LAYOUT_XOR ? layout_form_const(d, 0) : a;
  const DigitForm *f = layout_form_bitwise(d, op, a, b);
  if (f || !layout_form_bounds(d, a, &x) || !layout_form_bounds(d, b, &y) || x.low < 0 || y.low < 0)
    return f;
  return opaque(d, op, (const DigitForm *[3]){a, b},
                (Interval){0, mask_over(MAX_OF(x.high, y.high))});
}

static const DigitForm *logic(DigitSpace *d, LayoutOp op, const DigitForm *a, const DigitForm *b) {
  Interval x, y = {0, 0};
  int64_t truth;
  if (!layout_form_bounds(d, a, &x) || (b && !layout_form_bounds(d, b, &y))) return NULL;
  if (layout_op_truth(op, x, y, &truth)) return layout_form_const(d, truth);
  return opaque(d, op, (const DigitForm *[3]){a, b}, (Interval){0, 1});
}

static const DigitForm *shifted(DigitSpace *d, LayoutOp op, const DigitForm *a,
                                const DigitForm *b) {
  int64_t factor;
  if (!shift_factor(b, &factor)) return NULL;
  return op == LAYOUT_SHL ? layout_form_times(d, a, factor) : layout_form_divide(d, a, factor);
}

static const DigitForm *quotient(DigitSpace *d, LayoutOp op, const DigitForm *a,
                                 const DigitForm *b) {
  if (!layout_form_is_const(b) || !b->constant) return NULL;
  return op == LAYOUT_DIV ? layout_form_divide(d, a, b->constant)
                          : layout_form_modulo(d, a, b->constant);
}

const DigitForm *layout_form_operation(DigitSpace *d, LayoutOp op, const DigitForm *a,
                                       const DigitForm *b, const DigitForm *c) {
  switch (layout_op_class(op)) {
  case LAYOUT_OP_LINEAR: return layout_form_linear(d, a, 1, b, op == LAYOUT_ADD ? 1 : -1);
  case LAYOUT_OP_PRODUCT: return product(d, a, b);
  case LAYOUT_OP_QUOTIENT: return quotient(d, op, a, b);
  case LAYOUT_OP_SHIFT: return shifted(d, op, a, b);
  case LAYOUT_OP_BITS: return bitwise(d, op, a, b);
  case LAYOUT_OP_EXTREME: return extreme(d, op, a, b);
  case LAYOUT_OP_COMPARISON: return comparison(d, op, a, b);
  case LAYOUT_OP_LOGIC: return logic(d, op, a, b);
  case LAYOUT_OP_CHOICE: return choice(d, a, b, c);
  case LAYOUT_OP_LEAF: break;
  }
  return NULL;
}

const DigitForm *layout_form_of(DigitSpace *d, const LayoutExpr *e) {
  if (e->op == LAYOUT_CONST) return layout_form_const(d, e->value);
  if (e->op == LAYOUT_AXIS) return layout_form_floor(d, (int)e->value, 0, 1);
  const DigitForm *args[3] = {0};
  for (int i = 0; i < 3 && e->args[i]; i++)
    if (!(args[i] = layout_form_of(d, e->args[i]))) return NULL;
  return e->args[0] ? layout_form_operation(d, e->op, args[0], args[1], args[2]) : NULL;
}

// ---- Form to expression ------------------------------------------------------------------------

typedef struct FormWriter {
  DigitSpace *d;
  const LayoutExpr *const *axes;
  int64_t constant; // of the form that is written; 0 once the text contains it
} FormWriter;

static const LayoutExpr *write_form(FormWriter *w, const DigitForm *f);

static const LayoutExpr *binary(FormWriter *w, LayoutOp op, const LayoutExpr *a,
                                const LayoutExpr *b) {
  return layout_binary(w->d->context, op, a, b);
}

static const LayoutExpr *number(FormWriter *w, int64_t value) {
  return layout_const(w->d->context, value);
}

static const LayoutExpr *write_base(FormWriter *w, int at) {
  FormBase base = w->d->bases[at];
  if (base.kind == BASE_AXIS)
    return w->axes && w->axes[base.axis] ? w->axes[base.axis]
                                         : layout_axis(w->d->context, base.axis);
  if (base.kind == BASE_FORM) return write_form(w, base.args[0]);
  const LayoutExpr *args[3] = {0};
  for (int i = 0; i < 3 && base.args[i]; i++) args[i] = write_form(w, base.args[i]);
  if (base.op >= LAYOUT_LT && base.op <= LAYOUT_NE) args[1] = number(w, 0);
  const LayoutExpr *e = layout_expr(w->d->context, base.op, args[0], args[1], args[2]);
  return binary(w, LAYOUT_SUB, e, number(w, base.low));
}

static const LayoutExpr *write_floor(FormWriter *w, int base, int64_t offset, int64_t cut) {
  const LayoutExpr *e = binary(w, LAYOUT_ADD, write_base(w, base), number(w, offset));
  return binary(w, LAYOUT_DIV, e, number(w, cut));
}

static const LayoutExpr *add(FormWriter *w, const LayoutExpr *sum, const LayoutExpr *e,
                             int64_t weight) {
  bool negative = weight < 0 && weight > INT64_MIN;
  const LayoutExpr *part = binary(w, LAYOUT_MUL, e, number(w, negative ? -weight : weight));
  if (!sum && !negative) return part;
  if (!sum) { // 7 - x, not 0 - x + 7
    sum = number(w, MAX_OF(w->constant, (int64_t)0));
    w->constant -= sum->value;
  }
  return binary(w, negative ? LAYOUT_SUB : LAYOUT_ADD, sum, part);
}

// Writes the digits, the largest weight first, or the terms as they are where their cuts are no
// chain.
static const LayoutExpr *write_terms(FormWriter *w, const DigitForm *f) {
  Digit digits[MAX_DIGITS];
  int count;
  const LayoutExpr *sum = NULL;
  if (!layout_form_digits(w->d, f, digits, &count)) {
    for (int i = 0; i < f->count; i++)
      sum = add(w, sum, write_floor(w, f->terms[i].base, f->terms[i].offset, f->terms[i].cut),
                f->terms[i].coefficient);
    return sum;
  }
  for (int i = 1; i < count; i++)
    for (int j = i; j && digits[j].weight > digits[j - 1].weight; j--) {
      Digit t = digits[j];
      digits[j] = digits[j - 1];
      digits[j - 1] = t;
    }
  for (int i = 0; i < count; i++) {
    const LayoutExpr *e = write_floor(w, digits[i].base, digits[i].offset, digits[i].cut);
    if (!digits[i].open) e = binary(w, LAYOUT_MOD, e, number(w, digits[i].radix));
    sum = add(w, sum, e, digits[i].weight);
  }
  return sum;
}

// ---- XORs, in runs of neighbouring bits --------------------------------------------------------

static void remove_bit(BitMask *m, int bit) {
  m->words[bit / 64] &= ~((uint64_t)1 << (bit % 64));
}

// Whether `high` is `low` with every bit moved up by one.
static bool continues(const DigitSpace *d, BitMask low, BitMask high) {
  if (mask_count(low) != mask_count(high)) return false;
  while (!mask_empty(low)) {
    int at = mask_lowest(low);
    Digit up = d->bits[at];
    bool found = false;
    up.cut *= 2;
    for (int i = 0; i < d->bit_count && !found; i++) {
      found = mask_has(high, i) && digit_starts_with(&d->bits[i], &up);
      if (found) remove_bit(&high, i);
    }
    if (!found) return false;
    remove_bit(&low, at);
  }
  return mask_empty(high);
}

// The XOR, over the bits in the mask, of the `bits` neighbouring bits that begin with each.
static const LayoutExpr *write_run(FormWriter *w, BitMask mask, int bits) {
  const LayoutExpr *e = NULL;
  for (; !mask_empty(mask); remove_bit(&mask, mask_lowest(mask))) {
    Digit bit = w->d->bits[mask_lowest(mask)];
    const LayoutExpr *part = write_floor(w, bit.base, bit.offset, bit.cut);
    if ((w->d->bases[bit.base].extent - 1 + bit.offset) / bit.cut >> bits)
      part = binary(w, LAYOUT_MOD, part, number(w, (int64_t)1 << bits));
    e = e ? binary(w, LAYOUT_XOR, e, part) : part;
  }
  return e;
}

static int find_continuation(const FormWriter *w, const DigitForm *f, const bool *done,
                             BitMask mask, int64_t coefficient) {
  for (int i = 0; i < f->xor_count; i++)
    if (!done[i] && f->xors[i].coefficient == coefficient && continues(w->d, mask, f->xors[i].mask))
      return i;
  return -1;
}

// Whether some other XOR is continued by number `at`.
static bool is_continued(const FormWriter *w, const DigitForm *f, const bool *done, int at) {
  int64_t c = f->xors[at].coefficient;
  for (int i = 0; i < f->xor_count && c % 2 == 0; i++)
    if (!done[i] && f->xors[i].coefficient == c / 2 &&
        continues(w->d, f->xors[i].mask, f->xors[at].mask))
      return true;
  return false;
}

// Adds the run of neighbouring bits that begins with XOR number `at`.
static const LayoutExpr *add_run(FormWriter *w, const DigitForm *f, bool *done, int at,
                                 const LayoutExpr *sum) {
  int bits = 1, next = at;
  int64_t c = f->xors[at].coefficient;
  done[at] = true;
  while (bits < 60 && c < INT64_MAX / 4 && c > INT64_MIN / 4 &&
         (next = find_continuation(w, f, done, f->xors[next].mask, c * 2)) >= 0) {
    done[next] = true;
    c *= 2;
    bits++;
  }
  return add(w, sum, write_run(w, f->xors[at].mask, bits), f->xors[at].coefficient);
}

static const LayoutExpr *write_xors(FormWriter *w, const DigitForm *f, const LayoutExpr *sum) {
  bool *done = arena_array(w->d->arena, bool, f->xor_count);
  for (int i = 0; i < f->xor_count; i++)
    if (!done[i] && !is_continued(w, f, done, i)) sum = add_run(w, f, done, i, sum);
  for (int i = 0; i < f->xor_count; i++)
    if (!done[i]) sum = add_run(w, f, done, i, sum);
  return sum;
}

static const LayoutExpr *write_form(FormWriter *w, const DigitForm *f) {
  int64_t outer = w->constant, constant;
  f = layout_form_regroup(w->d, f);
  w->constant = f->constant;
  const LayoutExpr *sum = write_xors(w, f, write_terms(w, f));
  constant = w->constant;
  w->constant = outer;
  if (!sum) return number(w, constant);
  if (constant >= 0) return binary(w, LAYOUT_ADD, sum, number(w, constant));
  return constant > INT64_MIN ? binary(w, LAYOUT_SUB, sum, number(w, -constant)) : NULL;
}

const LayoutExpr *layout_form_expr(DigitSpace *d, const DigitForm *f,
                                   const LayoutExpr *const *axes) {
  return write_form(&(FormWriter){d, axes, 0}, f);
}
