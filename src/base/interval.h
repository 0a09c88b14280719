// SPDX-License-Identifier: Apache-2.0
// Closed intervals of 64-bit integers, which bound values. The layout algebra uses the ends as they
// are; src/arith treats the limits of int64_t as infinities. In an empty interval, high < low.
#ifndef PLEAT_INTERVAL_H
#define PLEAT_INTERVAL_H

#include "base/base.h"

typedef struct Interval {
  int64_t low, high;
} Interval;

static inline Interval interval_hull(Interval a, Interval b) {
  return (Interval){MIN_OF(a.low, b.low), MAX_OF(a.high, b.high)};
}
static inline Interval interval_meet(Interval a, Interval b) {
  return (Interval){MAX_OF(a.low, b.low), MIN_OF(a.high, b.high)};
}
// The intervals of the smaller and of the larger of two values.
static inline Interval interval_min(Interval a, Interval b) {
  return (Interval){MIN_OF(a.low, b.low), MIN_OF(a.high, b.high)};
}
static inline Interval interval_max(Interval a, Interval b) {
  return (Interval){MAX_OF(a.low, b.low), MAX_OF(a.high, b.high)};
}
// True when both ends fit; then *out is the result.
static inline bool interval_add_fits(Interval a, Interval b, Interval *out) {
  return add_fits(a.low, b.low, &out->low) && add_fits(a.high, b.high, &out->high);
}
static inline bool interval_sub_fits(Interval a, Interval b, Interval *out) {
  Interval r;
  if (!sub_fits(a.low, b.high, &r.low) || !sub_fits(a.high, b.low, &r.high)) return false;
  *out = r;
  return true;
}

// The least 2^k - 1 that is at least `value`: the upper bound of `or` and `xor` of numbers up to
// `value`.
static inline int64_t mask_over(int64_t value) {
  return value <= 0 ? 0 : (int64_t)(UINT64_MAX >> __builtin_clzll((uint64_t)value));
}

#endif
