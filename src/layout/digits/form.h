// SPDX-License-Identifier: Apache-2.0
// The digits level: the normal form `k + Σ a·⌊(B + o)/c⌋ + Σ w·⊕bits` of expressions over a static
// box, as docs/layouts.md explains it. Everything lives in the scratch arena of one question.
//
// Bases take the values 0 .. extent - 1, so every floor with 0 <= o < c is 0 at its base's 0.
// Invariants of a form: terms sorted by base, offset, cut, no zero coefficients, no floor that is
// constant on its base, no cut 1 on a derived base (its form stands instead), XORs of at least two
// bits. NULL stands for a form that the level cannot express; functions pass it on.
#ifndef PLEAT_LAYOUT_FORM_H
#define PLEAT_LAYOUT_FORM_H

#include "layout/core/core.h"

enum { MAX_BITS = 128, MAX_DIGITS = 96, MAX_BASES = 256, WORD = 62 };

typedef struct FormTerm { // coefficient · ⌊(base + offset) / cut⌋
  int64_t coefficient, offset, cut;
  int base;
} FormTerm;

typedef struct BitMask {
  uint64_t words[2];
} BitMask;

typedef struct FormXor { // coefficient · (⊕ of the bits in the mask)
  int64_t coefficient;
  BitMask mask;
} FormXor;

typedef struct DigitForm {
  int64_t constant;
  const FormTerm *terms;
  const FormXor *xors;
  int count, xor_count;
} DigitForm;

typedef enum BaseKind {
  BASE_AXIS,   // an axis of the box
  BASE_FORM,   // a form that floors were taken of: its value is the form
  BASE_OPAQUE, // an operation that forms cannot express: its value is op(forms) - low
} BaseKind;

typedef struct FormBase {
  BaseKind kind;
  int axis;
  int64_t extent, low;
  LayoutOp op;
  const DigitForm *args[3];
} FormBase;

typedef struct DigitSpace {
  Context *context;
  Arena *arena; // scratch
  const int64_t *extents;
  int axis_count, base_count, bit_count;
  FormBase *bases; // the axes first
  Digit *bits;     // of radix 2
} DigitSpace;

// A workspace for questions over a box without empty axes.
DigitSpace layout_digits_new(Context *context, const int64_t *extents, int axis_count);

const DigitForm *layout_form_const(DigitSpace *d, int64_t value);
const DigitForm *layout_form_floor(DigitSpace *d, int base, int64_t offset, int64_t cut);
// a·x + b·y; y may be absent when b is 0.
const DigitForm *layout_form_linear(DigitSpace *d, const DigitForm *x, int64_t a,
                                    const DigitForm *y, int64_t b);
const DigitForm *layout_form_times(DigitSpace *d, const DigitForm *x, int64_t a); // a·x
const DigitForm *layout_form_add_const(DigitSpace *d, const DigitForm *x, int64_t value);
bool layout_form_same(const DigitForm *a, const DigitForm *b);
// Whether they are the same function, also where equal floors are written differently.
bool layout_form_equal(DigitSpace *d, const DigitForm *a, const DigitForm *b);
bool layout_form_is_const(const DigitForm *f);
// Valid bounds; exact for one chain of cuts on each base and offset. False on overflow.
bool layout_form_bounds(DigitSpace *d, const DigitForm *f, Interval *out);
// The form with derived bases in place of their terms where it has floors of them, and with one
// offset for each base where that is possible, so that floors read as digits of one number. The
// result is for reading only: it is not canonical, and offsets may reach their cut.
const DigitForm *layout_form_regroup(DigitSpace *d, const DigitForm *f);
// The terms as digits. False when the cuts of some base and offset are no chain, or overflow.
bool layout_form_digits(const DigitSpace *d, const DigitForm *f, Digit *digits, int *count);
const DigitForm *layout_form_digit(DigitSpace *d, const Digit *digit);
// The base whose value is `f`, which has the bounds [0, extent): an existing one, or a new one. -1
// when there is no room.
int layout_base_of_form(DigitSpace *d, const DigitForm *f, int64_t extent);

int layout_base_add(DigitSpace *d, FormBase base); // -1: full

const DigitForm *layout_form_divide(DigitSpace *d, const DigitForm *f,
                                    int64_t divisor); // floored, divisor != 0
const DigitForm *layout_form_modulo(DigitSpace *d, const DigitForm *f, int64_t divisor);
const DigitForm *layout_form_bitwise(DigitSpace *d, LayoutOp op, const DigitForm *a,
                                     const DigitForm *b); // & | ^
// weight · (⊕ of the bits in the mask)
const DigitForm *layout_form_parity(DigitSpace *d, BitMask mask, int64_t weight);
// Whether the form has floors of axes only, with offset 0. Then no other such form is equal to it.
bool layout_form_is_plain(const DigitSpace *d, const DigitForm *f);
// Whether the terms and XORs of the form occupy separate bits: then the form is placed.
bool layout_form_is_placed(DigitSpace *d, const DigitForm *f);
// Bit i of the form, i < WORD, is the XOR of the bits in masks[i], negated where bit i of *negated
// is set. False where it is not placed.
bool layout_form_bits(DigitSpace *d, const DigitForm *f, BitMask *masks, uint64_t *negated);

// The normal form of an expression over the axes of the box.
const DigitForm *layout_form_of(DigitSpace *d, const LayoutExpr *e);
// One operation on forms; b and c as the operation has them.
const DigitForm *layout_form_operation(DigitSpace *d, LayoutOp op, const DigitForm *a,
                                       const DigitForm *b, const DigitForm *c);
// A form of `from` with axis i replaced by axes[i], which are forms of `to`. NULL where the form
// reads an axis that is NULL.
const DigitForm *layout_form_apply(DigitSpace *to, const DigitSpace *from, const DigitForm *f,
                                   const DigitForm *const *axes);
// An expression with that value; axes[i] stands for axis i (NULL: itself).
const LayoutExpr *layout_form_expr(DigitSpace *d, const DigitForm *f,
                                   const LayoutExpr *const *axes);

static inline bool mask_empty(BitMask m) {
  return !(m.words[0] | m.words[1]);
}
static inline int mask_count(BitMask m) {
  return __builtin_popcountll(m.words[0]) + __builtin_popcountll(m.words[1]);
}
static inline BitMask mask_xor(BitMask a, BitMask b) {
  return (BitMask){{a.words[0] ^ b.words[0], a.words[1] ^ b.words[1]}};
}
static inline bool mask_same(BitMask a, BitMask b) {
  return a.words[0] == b.words[0] && a.words[1] == b.words[1];
}
static inline int mask_lowest(BitMask m) {
  return m.words[0] ? __builtin_ctzll(m.words[0]) : 64 + __builtin_ctzll(m.words[1]);
}
static inline BitMask mask_of_bit(int bit) {
  return bit < 64 ? (BitMask){{(uint64_t)1 << bit, 0}} : (BitMask){{0, (uint64_t)1 << (bit - 64)}};
}
static inline bool mask_has(BitMask m, int bit) {
  return m.words[bit / 64] >> (bit % 64) & 1;
}

#endif
