// SPDX-License-Identifier: Apache-2.0
// Memory in sequence: a box of a static layout as digits in the order of their weights. Where the
// digits are separated (each weight exceeds the reach of all below it) the nest over them visits
// the elements by ascending offset, and what it touches is counted without visiting it.
#ifndef PLEAT_LAYOUT_MEMORY_ORDER_H
#define PLEAT_LAYOUT_MEMORY_ORDER_H

#include "layout/digits/digits.h"

enum { MAX_ORDERED_AXES = 16 };

// d = ⌊y / cut⌋ mod radix of y = index + shift of its axis. It lies at weight · t for
// t = d - low, or t = high - d where it counts down, or t = d ^ parity. A digit of slot -1 is no
// digit of an axis: its t is the parity, which higher digits determine.
typedef struct MemoryDigit {
  int axis, slot; // slot: the axis among those that have digits
  int rank;       // significance among the digits of its axis, from 1
  int64_t cut, radix, weight, low, high;
  int64_t first, last; // its values at the ends of the axis' range
  bool down;
  int parity;     // -1, or: memory has this bit XORed with the state's parity of that number
  uint64_t feeds; // parities that change where this bit is 1
} MemoryDigit;

typedef struct MemoryOrder {
  int count, slot_count;
  MemoryDigit digits[MAX_DIGITS]; // outermost first
  int64_t start;                  // the offset where every t is 0
  int parity_count;
  uint64_t parities; // with no digit visited
  bool plain; // the offset is a sum of floors of axes, without shifts: its form is the only one
  int64_t shift[MAX_RANK];
} MemoryOrder;

// The walk over index low[i] .. low[i] + extent[i] - 1 of `offset`, an expression over the box
// `extents`; every extent is at least 1. False when it is no separated sum of digits of the axes
// that determine it.
bool memory_order_new(Context *context, const LayoutExpr *offset, const int64_t *extents, int rank,
                      const int64_t *low, const int64_t *extent, MemoryOrder *out);

// Lines of `line` units touched by elements of `element` units at unit (offset · element + base).
typedef struct LineSpan {
  int64_t first, last, count, runs; // count 0: none
} LineSpan;
typedef struct LineUnits {
  int64_t element, line, base;
} LineUnits;
// Exact, in time that grows with digits, their radices up to line / gcd, not with extents. False
// when that is too long or does not fit. Up to *room runs of neighbouring lines go to `runs`.
bool memory_order_lines(Context *context, const MemoryOrder *walk, LineUnits lines, LineSpan *span,
                        LayoutRun *runs, int *room);

#endif
