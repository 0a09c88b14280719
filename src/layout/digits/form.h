// SPDX-License-Identifier: Apache-2.0
// The digits level: the normal form `k + Σ a·⌊(B + o)/c⌋ + Σ w·⊕bits` of expressions over a static
// box, as docs/layouts.md explains it. Everything lives in the scratch arena of one question.
//
// Bases take the values 0 .. extent - 1, so every floor with 0 <= o < c is 0 at its base's 0.
// Invariants of a form: terms sorted by base, offset, cut, no zero coefficients, no floor that is
// constant on its base, no cut 1 on a derived base (its form stands instead), XORs of at least two
// bits. A NULL form means: the digits do not carry this.
#ifndef PLEAT_LAYOUT_FORM_H
#define PLEAT_LAYOUT_FORM_H

#include "layout/core/internal.h"

enum { MAX_BITS = 128, MAX_DIGITS = 96, MAX_BASES = 256, WORD = 62 };

typedef struct Term { // coefficient · ⌊(base + offset) / cut⌋
  int64_t coefficient, offset, cut;
  int base;
} Term;

typedef struct BitMask {
  uint64_t words[2];
} BitMask;

typedef struct Xor { // coefficient · (⊕ of the bits in the mask)
  int64_t coefficient;
  BitMask mask;
} Xor;

typedef struct Form {
  int64_t constant;
  const Term *terms;
  const Xor *xors;
  int count, xor_count;
} Form;

typedef enum BaseKind {
  BASE_AXIS,   // an axis of the box
  BASE_FORM,   // a form that floors were taken of: its value is the form
  BASE_OPAQUE, // an operation the digits do not know, on forms: its value is op(forms) - low
} BaseKind;

typedef struct Base {
  BaseKind kind;
  int axis;
  int64_t extent, low;
  LayoutOp op;
  const Form *args[3];
} Base;

typedef struct Bit { // ⌊(base + offset) / cut⌋ mod 2
  int base;
  int64_t offset, cut;
} Bit;

typedef struct Digits {
  Context *context;
  Arena *arena; // scratch
  const int64_t *extents;
  int axis_count, base_count, bit_count;
  Base *bases; // the axes first
  Bit *bits;
} Digits;

typedef struct Bounds {
  int64_t low, high;
} Bounds;

// weight · (⌊(base + offset)/cut⌋ mod radix); open: the top of its base, where mod does nothing.
typedef struct Digit {
  int64_t weight, offset, cut, radix;
  int base;
  bool open;
} Digit;

// A workspace for questions over a box without empty axes.
Digits layout_digits_new(Context *context, const int64_t *extents, int axis_count);

const Form *layout_form_const(Digits *d, int64_t value);
const Form *layout_form_floor(Digits *d, int base, int64_t offset, int64_t cut);
// a·x + b·y; y may be absent when b is 0.
const Form *layout_form_linear(Digits *d, const Form *x, int64_t a, const Form *y, int64_t b);
const Form *layout_form_add_const(Digits *d, const Form *x, int64_t value);
bool layout_form_same(const Form *a, const Form *b);
// The same function; also where floors step at the same places though written differently.
bool layout_form_equal(Digits *d, const Form *a, const Form *b);
bool layout_form_is_const(const Form *f);
// Valid bounds; exact for one chain of cuts on each base and offset. False on overflow.
bool layout_form_bounds(Digits *d, const Form *f, Bounds *out);
// The form with derived bases in place of their parts where it has floors of them, and with one
// offset for each base where that is possible, so that floors read as digits of one number. Not
// canonical, offsets may reach their cut: for reading only.
const Form *layout_form_regroup(Digits *d, const Form *f);
// The terms as digits. False when the cuts of some base and offset are no chain, or overflow.
bool layout_form_digits(const Digits *d, const Form *f, Digit *digits, int *count);
const Form *layout_form_digit(Digits *d, const Digit *digit);
// The base whose value is `f` (bounds [0, extent)): an existing one when there is one. -1: full.
int layout_base_of_form(Digits *d, const Form *f, int64_t extent);

int layout_base_add(Digits *d, Base base); // -1: full

const Form *layout_form_divide(Digits *d, const Form *f, int64_t divisor); // floored, divisor != 0
const Form *layout_form_modulo(Digits *d, const Form *f, int64_t divisor);
const Form *layout_form_bitwise(Digits *d, LayoutOp op, const Form *a, const Form *b); // & | ^
// weight · (⊕ of the bits in the mask)
const Form *layout_form_parity(Digits *d, BitMask mask, int64_t weight);
// Whether the parts of the form occupy separate bits.
bool layout_form_is_placed(Digits *d, const Form *f);
// Bit i of the form, i < WORD, is the XOR of the bits in masks[i], negated where bit i of *negated
// is set. False where it is not placed.
bool layout_form_bits(Digits *d, const Form *f, BitMask *masks, uint64_t *negated);

// The normal form of an expression over the axes of the box.
const Form *layout_form_of(Digits *d, const LayoutExpr *e);
// One operation on forms; b and c as the operation has them.
const Form *layout_form_operation(Digits *d, LayoutOp op, const Form *a, const Form *b,
                                  const Form *c);
// A form of `from` with axis i replaced by axes[i], which are forms of `to`. An axis that is NULL
// is not carried.
const Form *layout_form_apply(Digits *to, const Digits *from, const Form *f,
                              const Form *const *axes);
// An expression with that value; axes[i] stands for axis i (NULL: itself).
const LayoutExpr *layout_form_expr(Digits *d, const Form *f, const LayoutExpr *const *axes);

// The inverse of the functions `outputs` (forms of `logical`) by propagation of what is known:
// inverse[i] is axis i as a form of `physical`, whose axis j is the value of outputs[j]. False when
// some axis does not get known. What it finds is checked, not trusted: see layout_solve_checks.
bool layout_solve_inverse(Digits *logical, Digits *physical, const Form *const *outputs, int count,
                          const Form **inverse);
// The same where only some index is wanted for every place: what propagation leaves open is assumed
// to be least.
bool layout_solve_section(Digits *logical, Digits *physical, const Form *const *outputs, int count,
                          const Form **section);
// Whether inverse ∘ outputs is the identity, by normal form.
bool layout_solve_checks(Digits *logical, const Digits *physical, const Form *const *outputs,
                         const Form *const *inverse);

// The number in [0, m) by which a, prime to m, is 1 modulo m.
int64_t layout_inverse_modulo(int64_t a, int64_t m);
// A part x of a sum, weight · x with 0 <= x < radix, the weight positive.
typedef struct SumPart {
  int64_t weight, radix;
} SumPart;
// The parts, by ascending weight, of the sum that has this value (sums.c). False where no rule
// finds them; otherwise they are right where the sum is injective.
bool layout_solve_sum(Digits *d, const SumPart *parts, int count, const Form *value,
                      const Form **out);

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
static inline bool mask_has(BitMask m, int bit) {
  return m.words[bit / 64] >> (bit % 64) & 1;
}

#endif
