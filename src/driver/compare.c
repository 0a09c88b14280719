// SPDX-License-Identifier: Apache-2.0
// Compares values with expected ones within a tolerance.
#include "driver/reference.h"

#include <math.h>

// Maps a float to an integer such that neighbouring numbers of its type differ by one.
static int64_t float_order(DType type, double value) {
  int64_t bits = (int64_t)number_bits(type, value);
  int64_t sign = type.bits == 64 ? INT64_MIN : (int64_t)1 << (type.bits - 1);
  return bits & sign ? -(bits & ~sign) : bits;
}

static int64_t ulps_between(DType type, double a, double b) {
  if (!dtype_is_float(type) || !isfinite(a) || !isfinite(b)) return -1;
  int64_t from = float_order(type, a), to = float_order(type, b);
  uint64_t apart = from < to ? (uint64_t)to - (uint64_t)from : (uint64_t)from - (uint64_t)to;
  return apart > INT64_MAX ? INT64_MAX : (int64_t)apart;
}

// The distance of a number from the next larger one of its type.
static double ulp_of(DType type, double value) {
  if (!dtype_is_float(type) || !isfinite(value)) return 0;
  double from = fabs(value);
  uint64_t bits = number_bits(type, from) + 1;
  return number_load(type, &bits) - from;
}

typedef struct Judge {
  DType type;
  double rtol, atol; // absolute
  int64_t max_ulp;
} Judge;

static bool elements_agree(const Judge *judge, double expected, double actual) {
  if (isnan(expected) || isnan(actual)) return isnan(expected) && isnan(actual);
  if (expected == actual) return true;
  if (!dtype_is_float(judge->type) || isinf(expected) || isinf(actual)) return false;
  if (fabs(expected - actual) <= judge->atol + judge->rtol * fabs(expected)) return true;
  return judge->max_ulp > 0 && ulps_between(judge->type, expected, actual) <= judge->max_ulp;
}

static bool is_default(const Tolerance *t) {
  return t->rtol < 0 && t->atol < 0 && t->max_ulp < 0;
}

static Judge judge_new(DType type, const Tolerance *t, double largest) {
  bool small = dtype_is_float(type) && type.bits <= 16;
  if (is_default(t)) return (Judge){type, small ? 2e-2 : 1e-4, (small ? 2e-2 : 1e-5) * largest, 0};
  return (Judge){type, fmax(t->rtol, 0), fmax(t->atol, 0), t->max_ulp};
}

const char *tolerance_text(Arena *arena, const Tolerance *t) {
  if (is_default(t)) return "within 1e-4 relative and 1e-5 of the largest element";
  Text text = text_new(arena);
  if (t->rtol > 0) text_printf(&text, "%g relative", t->rtol);
  if (t->atol > 0) text_printf(&text, "%s%g absolute", text.size ? " and " : "", t->atol);
  if (t->max_ulp > 0)
    text_printf(&text, "%s%lld ulp", text.size ? " or " : "", (long long)t->max_ulp);
  return text.size ? arena_printf(arena, "within %s", text_string(&text)) : "exactly";
}

double tolerance_of(DType type, const Tolerance *tolerance, double largest, double value) {
  Judge judge = judge_new(type, tolerance, largest);
  double allowed = judge.atol + judge.rtol * fabs(value);
  if (judge.max_ulp > 0) allowed = fmax(allowed, ulp_of(type, value) * (double)judge.max_ulp);
  return allowed;
}

double values_largest(DType type, const void *data, int64_t count) {
  double largest = 0;
  int bytes = dtype_bytes(type);
  for (int64_t i = 0; i < count; i++) {
    double value = fabs(number_load(type, (const char *)data + i * bytes));
    if (isfinite(value) && value > largest) largest = value;
  }
  return largest;
}

// ---- Elements -----------------------------------------------------------------------------------

typedef struct Comparing {
  Judge judge;
  const Expected *expected;
  const char *actual;
  Difference *difference;
  double most; // the greatest difference of an element that does not agree
} Comparing;

static double element_of(const Comparing *c, const void *data, int64_t i) {
  return number_load(c->judge.type, (const char *)data + i * dtype_bytes(c->judge.type));
}

static bool within_bounds(const Comparing *c, int64_t i, double got) {
  if (!c->expected->low) return false;
  double low = element_of(c, c->expected->low, i), high = element_of(c, c->expected->high, i);
  return (low <= got && got <= high) || elements_agree(&c->judge, low, got) ||
         elements_agree(&c->judge, high, got);
}

static void note_mismatch(Comparing *c, int64_t i, double want, double got) {
  Difference *d = c->difference;
  double away = isfinite(want) && isfinite(got) ? fabs(want - got) : INFINITY;
  d->mismatches++;
  if (away <= c->most) return;
  c->most = away;
  d->index = i;
  d->expected = want;
  d->actual = got;
  d->ulp = ulps_between(c->judge.type, want, got);
}

bool values_agree(DType type, const Expected *expected, const void *actual, int64_t count,
                  const Tolerance *tolerance, Difference *difference) {
  double largest = values_largest(type, expected->value, count), apart = 0;
  Comparing c = {judge_new(type, tolerance, largest), expected, actual, difference, -1};
  *difference = (Difference){.count = count, .index = -1};
  for (int64_t i = 0; i < count; i++) {
    double want = element_of(&c, expected->value, i), got = element_of(&c, actual, i);
    if (elements_agree(&c.judge, want, got)) {
      if (isfinite(want)) apart = fmax(apart, fabs(want - got));
    } else if (within_bounds(&c, i, got)) {
      difference->at_boundaries++;
    } else {
      if (isfinite(want) && isfinite(got)) apart = fmax(apart, fabs(want - got));
      note_mismatch(&c, i, want, got);
    }
  }
  difference->largest = largest > 0 ? apart / largest : apart;
  return difference->mismatches == 0;
}
