// SPDX-License-Identifier: Apache-2.0
// Memory order: the offsets of a box of a static layout as digits in the order of their weights.
// Where the digits are separated (each weight exceeds the sum that all lower ones can reach), the
// loop nest over them visits the elements by ascending offset, and the lines that it touches are
// counted without visiting the elements.
#ifndef PLEAT_LAYOUT_MEMORY_ORDER_H
#define PLEAT_LAYOUT_MEMORY_ORDER_H

#include "layout/digits/digits.h"

enum { MAX_ORDERED_AXES = 16 };

// A digit of an axis, of positive weight, with the value d. It adds weight · t to the offset, where
// t = d - low, or t = high - d where it counts down, or t = d ^ parity. Where the slot is -1 there
// is no digit but a weight: its t is the parity, which higher digits determine.
typedef struct MemoryDigit {
  Digit digit;
  int slot;            // the number of the axis among those that have digits
  int rank;            // its significance among the digits of its axis, from 1
  int64_t low, high;   // the least and the largest d
  int64_t first, last; // d at the ends of the axis' range
  bool down;
  int parity;     // -1, or the number of the state's parity with which memory has this bit XORed
  uint64_t feeds; // the parities that change where this bit is 1
} MemoryDigit;

typedef struct MemoryOrder {
  int count, slot_count;
  MemoryDigit digits[MAX_DIGITS]; // outermost first
  int64_t start;                  // the offset where every t is 0
  int parity_count;
  uint64_t parities; // the parities before any digit is visited
  bool plain;        // the offset is a sum of floors of axes without shifts, so its form is unique
  int64_t shift[MAX_RANK];
} MemoryOrder;

// The memory order of the box low[i] .. low[i] + extent[i] - 1 under `offset`, an expression over
// the box `extents`; every extent is at least 1. False when the offset is not a separated sum of
// digits of the axes that determine it.
bool memory_order_new(Context *context, const LayoutExpr *offset, const int64_t *extents, int rank,
                      const int64_t *low, const int64_t *extent, MemoryOrder *out);

// The lines of `line` units that elements of `element` units touch, where the element at `offset`
// begins at unit offset · element + base.
typedef struct LineSpan {
  int64_t first, last, count, runs; // with count 0 there are none
} LineSpan;
typedef struct LineUnits {
  int64_t element, line, base;
} LineUnits;
// Counts the lines exactly, in time that grows with the number of digits and with their radices up
// to line / gcd, but not with the extents. False when that takes too long or a number does not fit
// 64 bits. `runs` receives up to *room runs of consecutive lines.
bool memory_order_lines(Context *context, const MemoryOrder *order, LineUnits lines, LineSpan *span,
                        LayoutRun *runs, int *room);

#endif
