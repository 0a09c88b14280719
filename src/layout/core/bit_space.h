// SPDX-License-Identifier: Apache-2.0
// Gaussian elimination over GF(2) on vectors of up to 64 bits, for swizzles, bank schedules and
// linear layouts.
#ifndef PLEAT_LAYOUT_CORE_BIT_SPACE_H
#define PLEAT_LAYOUT_CORE_BIT_SPACE_H

#include "base/base.h"

// A vector with a tag that is added along with it: the vectors of which it is the sum, or the right
// side of an equation.
typedef struct BitVector {
  uint64_t bits, tag;
} BitVector;

// Rows that span a subspace. bit_space_add keeps them in reduced echelon form: no row is 0, and the
// highest bit of a row is in no other row.
typedef struct BitSpace {
  BitVector rows[64];
  int count;
} BitSpace;

// The highest bit of a number other than 0: its position, and the number with this bit alone.
static inline int bit_highest(uint64_t bits) {
  return 63 - __builtin_clzll(bits);
}
static inline uint64_t bit_top(uint64_t bits) {
  return (uint64_t)1 << bit_highest(bits);
}

// `v` plus the rows that remove the highest bits of all rows from it.
BitVector bit_space_reduce(const BitSpace *space, BitVector v);
// Adds *v, which becomes its reduced form. False when the subspace has it already.
bool bit_space_add(BitSpace *space, BitVector *v);
// The subspace that the rows of both span.
BitSpace bit_space_sum(const BitSpace *a, const BitSpace *b);
// The highest bits of the rows.
uint64_t bit_space_tops(const BitSpace *space);
// A basis of the functionals on GF(2)^bits (as masks) that vanish on the subspace: one for each bit
// that is not the highest of a row, in ascending order.
BitSpace bit_space_annihilator(const BitSpace *space, int bits);

#endif
