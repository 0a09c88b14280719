// SPDX-License-Identifier: Apache-2.0
// Keeps subspaces of GF(2)^64 in reduced row echelon form.
#include "layout/core/bit_space.h"

static BitVector sum_of(BitVector a, BitVector b) {
  return (BitVector){a.bits ^ b.bits, a.tag ^ b.tag};
}

BitVector bit_space_reduce(const BitSpace *space, BitVector v) {
  for (int i = 0; i < space->count; i++)
    if (v.bits & bit_top(space->rows[i].bits)) v = sum_of(v, space->rows[i]);
  return v;
}

bool bit_space_add(BitSpace *space, BitVector *v) {
  *v = bit_space_reduce(space, *v);
  if (!v->bits) return false;
  uint64_t top = bit_top(v->bits);
  for (int i = 0; i < space->count; i++)
    if (space->rows[i].bits & top) space->rows[i] = sum_of(space->rows[i], *v);
  space->rows[space->count++] = *v;
  return true;
}

BitSpace bit_space_sum(const BitSpace *a, const BitSpace *b) {
  BitSpace sum = *a;
  for (int i = 0; i < b->count; i++)
    bit_space_add(&sum, &(BitVector){b->rows[i].bits, b->rows[i].tag});
  return sum;
}

uint64_t bit_space_tops(const BitSpace *space) {
  uint64_t tops = 0;
  for (int i = 0; i < space->count; i++) tops |= bit_top(space->rows[i].bits);
  return tops;
}

// The functional of a bit is that bit and the highest bits of the rows that contain it.
BitSpace bit_space_annihilator(const BitSpace *space, int bits) {
  uint64_t tops = bit_space_tops(space);
  BitSpace out = {.count = 0};
  for (int bit = 0; bit < bits; bit++) {
    uint64_t one = (uint64_t)1 << bit, h = one;
    if (tops & one) continue;
    for (int i = 0; i < space->count; i++)
      if (space->rows[i].bits & one) h |= bit_top(space->rows[i].bits);
    out.rows[out.count++] = (BitVector){h, 0};
  }
  return out;
}
