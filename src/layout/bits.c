// SPDX-License-Identifier: Apache-2.0
// Bitwise operations on forms, over GF(2): each bit of a form is a set of bits of its bases to be
// XORed, perhaps negated.
#include "layout/form.h"

enum { WORD = 62 };

typedef struct BitRow {
  BitMask mask;
  bool negated, used;
} BitRow;

static int bit_index(Digits *d, Bit bit) {
  if (!d->bits) d->bits = arena_array(d->arena, Bit, MAX_BITS);
  for (int i = 0; i < d->bit_count; i++)
    if (d->bits[i].base == bit.base && d->bits[i].offset == bit.offset && d->bits[i].cut == bit.cut)
      return i;
  if (d->bit_count == MAX_BITS) return -1;
  d->bits[d->bit_count] = bit;
  return d->bit_count++;
}

static bool set_row(BitRow *rows, int at, BitMask mask, bool negated) {
  if (at >= WORD || rows[at].used) return false;
  rows[at] = (BitRow){mask, negated, true};
  return true;
}

// Row `at` becomes one bit, whose offset matters modulo twice its cut: past the cut it negates. A
// bit that cannot vary on its base is a constant.
static bool set_bit_row(Digits *d, BitRow *rows, int at, Bit bit) {
  BitMask mask = {{0, 0}};
  bit.offset %= 2 * bit.cut;
  bool negated = bit.offset >= bit.cut;
  bit.offset -= negated ? bit.cut : 0;
  if (d->bases[bit.base].extent - 1 + bit.offset >= bit.cut) {
    int index = bit_index(d, bit);
    if (index < 0) return false;
    mask.words[index / 64] |= (uint64_t)1 << (index % 64);
  }
  return (mask_empty(mask) && !negated) || set_row(rows, at, mask, negated);
}

static int log_of(int64_t value) {
  return value > 0 && !(value & (value - 1)) ? __builtin_ctzll((uint64_t)value) : -1;
}

static int bit_length(int64_t value) {
  return value <= 0 ? 0 : 64 - __builtin_clzll((uint64_t)value);
}

static bool digit_rows(Digits *d, const Digit *digit, BitRow *rows) {
  int shift = log_of(digit->weight), bits = bit_length(digit->radix - 1);
  if (shift < 0 || (!digit->open && log_of(digit->radix) < 0)) return false;
  Bit bit = {digit->base, digit->offset, digit->cut};
  for (int i = 0; i < bits; i++, bit.cut *= 2) {
    if (bit.cut > INT64_MAX / 8) return false;
    if (!set_bit_row(d, rows, shift + i, bit)) return false;
  }
  return true;
}

// Rows of a form whose parts occupy separate bits.
static bool placed_rows(Digits *d, const Form *f, BitRow *rows) {
  Digit digits[MAX_DIGITS];
  int count;
  f = layout_form_regroup(d, f);
  if (f->constant < 0 || !layout_form_digits(d, f, digits, &count)) return false;
  for (int i = 0; i < WORD; i++)
    if (f->constant >> i & 1 && !set_row(rows, i, (BitMask){{0, 0}}, true)) return false;
  if (f->constant >> WORD) return false;
  for (int i = 0; i < count; i++)
    if (!digit_rows(d, &digits[i], rows)) return false;
  for (int i = 0; i < f->xor_count; i++) {
    int at = log_of(f->xors[i].coefficient);
    if (at < 0 || !set_row(rows, at, f->xors[i].mask, false)) return false;
  }
  return true;
}

// Rows of 2ᵏ - 1 - G, where G has rows: its bits negated.
static bool negated_rows(Digits *d, const Form *f, int64_t high, BitRow *rows) {
  int64_t mask = ((int64_t)1 << bit_length(high)) - 1;
  const Form *g = layout_form_add_const(d, layout_form_linear(d, f, -1, NULL, 0), mask);
  if (!g || bit_length(high) >= WORD || !placed_rows(d, g, rows)) return false;
  for (int i = 0; i < bit_length(high); i++) {
    rows[i].negated ^= true;
    rows[i].used = true;
  }
  return true;
}

// ⌊(B + o)/c⌋ + k = ⌊(B + o + k·c)/c⌋.
static bool floor_rows(Digits *d, const Form *f, int64_t high, BitRow *rows) {
  if (f->count != 1 || f->xor_count || f->terms[0].coefficient != 1) return false;
  const Term *t = &f->terms[0];
  int64_t offset;
  if (!mul_fits(f->constant, t->cut, &offset) || !add_fits(offset, t->offset, &offset) ||
      offset < 0 || offset > INT64_MAX / 8)
    return false;
  Digit whole = {1, offset, t->cut, high + 1, t->base, true};
  return digit_rows(d, &whole, rows);
}

// Rows of any form that is not negative; of a derived base where its parts overlap.
static bool form_rows(Digits *d, const Form *f, BitRow *rows) {
  Bounds b;
  if (!layout_form_bounds(d, f, &b) || b.low < 0 || bit_length(b.high) >= WORD) return false;
  if (placed_rows(d, f, rows)) return true;
  memset(rows, 0, sizeof *rows * WORD);
  if (negated_rows(d, f, b.high, rows)) return true;
  memset(rows, 0, sizeof *rows * WORD);
  if (floor_rows(d, f, b.high, rows)) return true;
  memset(rows, 0, sizeof *rows * WORD);
  int base = layout_base_of_form(d, f, b.high + 1);
  if (base < 0) return false;
  Digit whole = {.weight = 1, .cut = 1, .radix = b.high + 1, .base = base, .open = true};
  return digit_rows(d, &whole, rows);
}

bool layout_form_is_placed(Digits *d, const Form *f) {
  BitRow rows[WORD] = {0};
  return placed_rows(d, f, rows);
}

static const Form *bit_form(Digits *d, BitMask mask, int64_t weight) {
  int index = mask.words[0] ? __builtin_ctzll(mask.words[0]) : 64 + __builtin_ctzll(mask.words[1]);
  Bit bit = d->bits[index];
  return layout_form_linear(d, layout_form_floor(d, bit.base, bit.offset, bit.cut), weight,
                            layout_form_floor(d, bit.base, bit.offset, bit.cut * 2), -2 * weight);
}

const Form *layout_form_parity(Digits *d, BitMask mask, int64_t weight) {
  int bits = mask_count(mask);
  if (bits == 0) return layout_form_const(d, 0);
  if (bits == 1) return bit_form(d, mask, weight);
  Xor item = {weight, mask};
  Form f = {.xors = arena_copy(d->arena, &item, sizeof item), .xor_count = 1};
  return arena_copy(d->arena, &f, sizeof f);
}

static const Form *row_form(Digits *d, const BitRow *row, int64_t weight) {
  const Form *f = layout_form_parity(d, row->mask, weight);
  if (!row->negated) return f;
  return layout_form_add_const(d, layout_form_linear(d, f, -1, NULL, 0), weight);
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

const Form *layout_form_bitwise(Digits *d, LayoutOp op, const Form *a, const Form *b) {
  BitRow x[WORD] = {0}, y[WORD] = {0}, z;
  if (!a || !b || !form_rows(d, a, x) || !form_rows(d, b, y)) return NULL;
  const Form *sum = layout_form_const(d, 0);
  for (int i = 0; i < WORD && sum; i++) {
    if (!x[i].used && !y[i].used) continue;
    if (!combine_rows(op, &x[i], &y[i], &z)) return NULL;
    sum = layout_form_linear(d, sum, 1, row_form(d, &z, (int64_t)1 << i), 1);
  }
  return sum;
}
