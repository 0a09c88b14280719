// SPDX-License-Identifier: Apache-2.0
// Computes bitwise operations on forms, for the normal form and the inverse. Each bit of a form is
// a row over GF(2): a set of bits of its bases that are XORed, perhaps negated. XOR adds rows; AND
// and OR take one operand's row where the other's is constant or equal.
#include "layout/digits/form.h"

typedef struct BitRow {
  BitMask mask;
  bool negated, used;
} BitRow;

static int bit_index(DigitSpace *d, Digit bit) {
  if (!d->bits) d->bits = arena_array(d->arena, Digit, MAX_BITS);
  for (int i = 0; i < d->bit_count; i++)
    if (digit_starts_with(&d->bits[i], &bit)) return i;
  if (d->bit_count == MAX_BITS) return -1;
  d->bits[d->bit_count] = bit;
  return d->bit_count++;
}

static bool set_row(BitRow *rows, int at, BitMask mask, bool negated) {
  if (at >= WORD || rows[at].used) return false;
  rows[at] = (BitRow){mask, negated, true};
  return true;
}

// Sets row `at` to one bit. The bit's offset matters modulo twice its cut only, and an offset past
// the cut negates it. A bit that cannot vary on its base is a constant.
static bool set_bit_row(DigitSpace *d, BitRow *rows, int at, Digit bit, bool negated) {
  BitMask mask = {{0, 0}};
  bit.offset %= 2 * bit.cut;
  if (bit.offset >= bit.cut) {
    bit.offset -= bit.cut;
    negated = !negated;
  }
  if (d->bases[bit.base].extent - 1 + bit.offset >= bit.cut) {
    int index = bit_index(d, bit);
    if (index < 0) return false;
    mask.words[index / 64] |= (uint64_t)1 << (index % 64);
  }
  return (mask_empty(mask) && !negated) || set_row(rows, at, mask, negated);
}

static int bit_length(int64_t value) {
  return value <= 0 ? 0 : 64 - __builtin_clzll((uint64_t)value);
}

// Makes the weight positive by -w·x = w·(r - x) - w·r with r all ones: *negated says so, and the
// constant takes up -w·r.
static bool positive_weight(int64_t *weight, int64_t ones, bool *negated, int64_t *constant) {
  int64_t moved;
  *negated = *weight < 0;
  if (!*negated) return true;
  if (!mul_fits(*weight, ones, &moved) || *weight == INT64_MIN) return false;
  *weight = -*weight;
  return add_fits(*constant, moved, constant);
}

// A digit times Σ 2ˢ occupies the rows from each s on. False where two parts share a row.
static bool digit_rows(DigitSpace *d, const Digit *digit, BitRow *rows, int64_t *constant) {
  int bits = bit_length(digit->radix - 1);
  int64_t weight = digit->weight;
  bool negated;
  if ((!digit->open && layout_log(digit->radix) < 0) || bits >= WORD ||
      !positive_weight(&weight, ((int64_t)1 << bits) - 1, &negated, constant))
    return false;
  Digit bit = {
      .weight = 1, .offset = digit->offset, .cut = digit->cut, .radix = 2, .base = digit->base};
  for (int i = 0; i < bits; i++, bit.cut *= 2) {
    if (bit.cut > INT64_MAX / 8) return false;
    for (int64_t rest = weight; rest; rest &= rest - 1)
      if (!set_bit_row(d, rows, __builtin_ctzll((uint64_t)rest) + i, bit, negated)) return false;
  }
  return true;
}

static bool xor_rows(const FormXor *item, BitRow *rows, int64_t *constant) {
  int64_t weight = item->coefficient;
  bool negated;
  if (!positive_weight(&weight, 1, &negated, constant)) return false;
  for (int64_t rest = weight; rest; rest &= rest - 1)
    if (!set_row(rows, __builtin_ctzll((uint64_t)rest), item->mask, negated)) return false;
  return true;
}

static bool constant_rows(int64_t constant, BitRow *rows) {
  if (constant < 0 || constant >> WORD) return false;
  for (int i = 0; i < WORD; i++)
    if (constant >> i & 1 && !set_row(rows, i, (BitMask){{0, 0}}, true)) return false;
  return true;
}

// The rows of a form. False where its parts do not occupy separate bits.
static bool placed_rows(DigitSpace *d, const DigitForm *f, BitRow *rows) {
  Digit digits[MAX_DIGITS];
  int count;
  f = layout_form_regroup(d, f);
  int64_t constant = f->constant;
  if (!layout_form_digits(d, f, digits, &count)) return false;
  for (int i = 0; i < count; i++)
    if (!digit_rows(d, &digits[i], rows, &constant)) return false;
  for (int i = 0; i < f->xor_count; i++)
    if (!xor_rows(&f->xors[i], rows, &constant)) return false;
  return constant_rows(constant, rows);
}

// The rows of one floor and a constant, by ⌊(B + o)/c⌋ + k = ⌊(B + o + k·c)/c⌋.
static bool floor_rows(DigitSpace *d, const DigitForm *f, int64_t high, BitRow *rows) {
  if (f->count != 1 || f->xor_count || f->terms[0].coefficient != 1) return false;
  const FormTerm *t = &f->terms[0];
  int64_t offset;
  if (!mul_fits(f->constant, t->cut, &offset) || !add_fits(offset, t->offset, &offset) ||
      offset < 0 || offset > INT64_MAX / 8)
    return false;
  Digit whole = {1, offset, t->cut, high + 1, t->base, true};
  return digit_rows(d, &whole, rows, &(int64_t){0});
}

// The rows of any form that is not negative. Where its parts overlap they are the bits of a derived
// base.
static bool form_rows(DigitSpace *d, const DigitForm *f, BitRow *rows) {
  Interval b;
  if (!layout_form_bounds(d, f, &b) || b.low < 0 || bit_length(b.high) >= WORD) return false;
  if (placed_rows(d, f, rows)) return true;
  memset(rows, 0, sizeof *rows * WORD);
  if (floor_rows(d, f, b.high, rows)) return true;
  memset(rows, 0, sizeof *rows * WORD);
  int base = layout_base_of_form(d, f, b.high + 1);
  if (base < 0) return false;
  Digit whole = {.weight = 1, .cut = 1, .radix = b.high + 1, .base = base, .open = true};
  return digit_rows(d, &whole, rows, &(int64_t){0});
}

bool layout_form_is_placed(DigitSpace *d, const DigitForm *f) {
  BitRow rows[WORD] = {0};
  return placed_rows(d, f, rows);
}

bool layout_form_bits(DigitSpace *d, const DigitForm *f, BitMask *masks, uint64_t *negated) {
  BitRow rows[WORD] = {0};
  *negated = 0;
  if (!placed_rows(d, f, rows)) return false;
  for (int i = 0; i < WORD; i++) {
    masks[i] = rows[i].mask;
    *negated |= (uint64_t)rows[i].negated << i;
  }
  return true;
}

static const DigitForm *bit_form(DigitSpace *d, BitMask mask, int64_t weight) {
  Digit bit = d->bits[mask_lowest(mask)];
  bit.weight = weight;
  return layout_form_digit(d, &bit);
}

const DigitForm *layout_form_parity(DigitSpace *d, BitMask mask, int64_t weight) {
  int bits = mask_count(mask);
  if (bits == 0) return layout_form_const(d, 0);
  if (bits == 1) return bit_form(d, mask, weight);
  FormXor item = {weight, mask};
  DigitForm f = {.xors = arena_copy(d->arena, &item, sizeof item), .xor_count = 1};
  return arena_copy(d->arena, &f, sizeof f);
}

static const DigitForm *row_form(DigitSpace *d, const BitRow *row, int64_t weight) {
  const DigitForm *f = layout_form_parity(d, row->mask, weight);
  if (!row->negated) return f;
  return layout_form_add_const(d, layout_form_times(d, f, -1), weight);
}

static bool is_constant_row(const BitRow *row) {
  return mask_empty(row->mask);
}

// One bit of the result; false where AND or OR of two variable bits differ.
static bool combine_rows(LayoutOp op, const BitRow *a, const BitRow *b, BitRow *out) {
  if (op == LAYOUT_XOR) {
    *out = (BitRow){mask_xor(a->mask, b->mask), a->negated != b->negated, true};
    return true;
  }
  if (is_constant_row(b)) {
    const BitRow *t = a;
    a = b;
    b = t;
  }
  if (is_constant_row(a)) {
    *out = a->negated == (op == LAYOUT_AND) ? *b : *a;
    return true;
  }
  *out = *a;
  return mask_same(a->mask, b->mask) && a->negated == b->negated;
}

const DigitForm *layout_form_bitwise(DigitSpace *d, LayoutOp op, const DigitForm *a,
                                     const DigitForm *b) {
  BitRow x[WORD] = {0}, y[WORD] = {0}, z;
  if (!a || !b || !form_rows(d, a, x) || !form_rows(d, b, y)) return NULL;
  const DigitForm *sum = layout_form_const(d, 0);
  for (int i = 0; i < WORD && sum; i++) {
    if (!x[i].used && !y[i].used) continue;
    if (!combine_rows(op, &x[i], &y[i], &z)) return NULL;
    sum = layout_form_linear(d, sum, 1, row_form(d, &z, (int64_t)1 << i), 1);
  }
  return sum;
}
