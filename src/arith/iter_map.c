// SPDX-License-Identifier: Apache-2.0
// Describes index expressions as iteration maps: base + scale * number, where the number takes the
// values 0 … extent - 1, and is a mixed-radix number of the digits of loops.
//   io*32 + ii*2 + 5, io in [0, 4), ii in [0, 16)   =>   base 5, scale 2, extent 64, digits io, ii
#include "arith/mixed_radix.h"

enum { MOST_DIGITS = LONGEST_FORM };

// Orders the digits from the one at `first`, so that the weight of each is the product of the one
// before it and its extent; returns the product of all extents over the first weight. NULL when
// there is no such order.
static const Form *order_from(RadixCheck *check, WeightedDigit *digits, int count, int first) {
  Analyzer *analyzer = check->analyzer;
  WeightedDigit swapped = digits[0];
  digits[0] = digits[first];
  digits[first] = swapped;
  const Form *next = form_mul(analyzer, digits[0].weight, digits[0].extent);
  const Form *extent = digits[0].extent;
  for (int i = 1; i < count; i++) {
    int k = i;
    while (k < count && !radix_same(check, digits[k].weight, next)) k++;
    if (k == count || !next) return NULL;
    swapped = digits[i];
    digits[i] = digits[k];
    digits[k] = swapped;
    next = form_mul(analyzer, next, digits[i].extent);
    extent = form_mul(analyzer, extent, digits[i].extent);
  }
  return extent;
}

static const Form *ordered(RadixCheck *check, WeightedDigit *digits, int count) {
  for (int first = 0; first < count; first++) {
    const Form *extent = order_from(check, digits, count, first);
    if (extent) return extent;
  }
  return NULL;
}

static Expr *written(RadixCheck *check, const Form *f) {
  Expr *e = form_expr(check->analyzer, f);
  return e ? e : (radix_refuse(check, "an index has numbers that do not fit its type%s", ""), NULL);
}

// The digits from the one of the largest weight on. Their weights are over that of the last.
static void write_digits(RadixCheck *check, const WeightedDigit *digits, int count,
                         IterIndex *out) {
  Analyzer *analyzer = check->analyzer;
  const Form *weight = form_const(analyzer, digits[0].weight->type, 1);
  out->digits = arena_array(&analyzer->context->arena, IterDigit, count);
  out->digit_count = count;
  for (int i = 0; i < count; i++) {
    const WeightedDigit *digit = &digits[i];
    IterDigit *to = &out->digits[count - 1 - i];
    *to = (IterDigit){digit->source->e, written(check, digit->source->extent), digit->cut,
                      written(check, digit->extent), written(check, weight)};
    weight = form_mul(analyzer, weight, digit->extent);
  }
}

static bool find_index(RadixCheck *check, Expr *e, IterIndex *out) {
  Analyzer *analyzer = check->analyzer;
  WeightedDigit digits[MOST_DIGITS];
  const Form *f = form_of_simplified(analyzer, e), *rest, *fixed, *extent;
  int count;
  fixed = radix_without_sources(check, f);
  f = form_sub(analyzer, f, fixed);
  if (!f || f->count > MOST_DIGITS / 2 || !radix_digits(check, f, digits, &count, &rest))
    return radix_refuse(check, "an index is not a sum of digits of the loops%s", "");
  *out = (IterIndex){.base = written(check, form_add(analyzer, fixed, rest))};
  out->extent = out->scale = expr_int(analyzer->context, e->type, 1);
  if (!count) return true;
  extent = ordered(check, digits, count);
  if (!extent) return radix_refuse(check, "the digits of an index leave gaps, or overlap%s", "");
  out->scale = written(check, digits[0].weight);
  const Form *number = form_sub(analyzer, f, rest);
  int64_t scale;
  if (form_is_const(digits[0].weight, &scale) && scale > 1)
    number = form_divide_by(analyzer, number, digits[0].weight);
  if (number) extent = radix_cut_extent(check, number, extent);
  out->extent = written(check, extent);
  write_digits(check, digits, count, out);
  return !check->reason;
}

static bool find_all(RadixCheck *check, const IterMapQuestion *question, IterIndex *out) {
  radix_add_loops(check, question->loops, question->loop_count);
  if (check->reason) return false;
  Expr *predicate = analyzer_simplify(check->analyzer, question->predicate);
  if (!radix_gather_clauses(check, predicate)) return false;
  radix_cut_loops(check);
  for (int i = 0; i < question->count; i++)
    if (!find_index(check, question->indices[i], &out[i])) return false;
  if (question->level == ITER_MAP_BIJECTIVE) return radix_sources_used_up(check);
  return question->level == ITER_MAP_UNCHECKED ||
         (radix_digits_apart(check) && radix_clauses_used(check));
}

const char *iter_map_find(Analyzer *analyzer, const IterMapQuestion *question, IterIndex *out) {
  RadixCheck check = {.analyzer = analyzer};
  int mark = analyzer_mark(analyzer);
  analyzer_enter(analyzer);
  bool found = find_all(&check, question, out);
  analyzer_leave(analyzer);
  analyzer_reset(analyzer, mark);
  return found ? NULL : check.reason ? check.reason : "the indices are not an iteration map";
}
