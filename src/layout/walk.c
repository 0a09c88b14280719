// SPDX-License-Identifier: Apache-2.0
// The digits of an offset over a box, in the order in which memory has them.
#include "layout/walk.h"

// ---- Digits of an offset -----------------------------------------------------------------------

// The value of a digit at y.
static int64_t digit_at(const Digit *g, int64_t y) {
  return g->open ? y / g->cut : y / g->cut % g->radix;
}

typedef struct Range { // of y, by base
  int64_t low, high;
  bool used;
  int64_t offset, next; // `next`: the cut that the next digit of the axis must have; 0: any
} Range;

// Whether every digit above this one is the same at both ends.
static bool is_top(const Digit *g, const Range *r) {
  return g->open || r->low / g->cut / g->radix == r->high / g->cut / g->radix;
}

static bool add_digit(Walk *walk, const Digit *g, Range *r) {
  if (r->used && r->offset != g->offset) return false;
  if (!r->used) {
    if (!add_fits(r->low, g->offset, &r->low) || !add_fits(r->high, g->offset, &r->high))
      return false;
    *r = (Range){r->low, r->high, true, g->offset, 0};
    walk->shift[g->base] = g->offset;
  }
  WalkDigit *out = &walk->digits[walk->count];
  int64_t fixed = r->low / g->cut, first = digit_at(g, r->low), last = digit_at(g, r->high);
  if (fixed == r->high / g->cut) // the same for the whole range
    return mul_fits(g->weight, first, &fixed) && add_fits(walk->start, fixed, &walk->start);
  if (r->next && r->next != g->cut) return false;
  bool top = is_top(g, r), down = g->weight < 0;
  *out =
      (WalkDigit){.axis = g->base, .cut = g->cut, .radix = g->radix, .first = first, .last = last};
  out->low = top ? first : 0;
  out->high = top ? last : g->radix - 1;
  out->down = down;
  out->weight = down ? -g->weight : g->weight;
  r->next = top ? INT64_MAX : g->cut * g->radix;
  walk->count++;
  int64_t least;
  return mul_fits(g->weight, down ? out->high : out->low, &least) &&
         add_fits(walk->start, least, &walk->start);
}

static bool all_topped(const Walk *walk, const Range *ranges) {
  for (int i = 0; i < walk->count; i++)
    if (ranges[walk->digits[i].axis].next != INT64_MAX) return false;
  return true;
}

// By descending weight; digits come in by base and ascending cut.
static void sort_digits(Walk *walk) {
  int ranks[MAX_RANK] = {0};
  for (int i = 0; i < walk->count; i++) walk->digits[i].rank = ++ranks[walk->digits[i].axis];
  for (int i = 1; i < walk->count; i++) {
    WalkDigit g = walk->digits[i];
    int at = i;
    for (; at > 0 && walk->digits[at - 1].weight < g.weight; at--)
      walk->digits[at] = walk->digits[at - 1];
    walk->digits[at] = g;
  }
}

static bool is_separated(const Walk *walk) {
  int64_t reach = 0, span;
  for (int i = walk->count - 1; i >= 0; i--) {
    const WalkDigit *g = &walk->digits[i];
    if (g->weight <= reach) return false;
    if (!mul_fits(g->weight, g->high - g->low, &span) || !add_fits(reach, span, &reach))
      return false;
  }
  return true;
}

static bool number_axes(Walk *walk) {
  int slot[MAX_RANK];
  memset(slot, -1, sizeof slot);
  for (int i = 0; i < walk->count; i++) {
    WalkDigit *g = &walk->digits[i];
    if (slot[g->axis] < 0) slot[g->axis] = walk->slot_count++;
    g->slot = slot[g->axis];
  }
  return walk->slot_count <= MAX_WALK_AXES;
}

static bool is_plain(const Digits *d, const Form *f) {
  for (int i = 0; i < f->count; i++)
    if (d->bases[f->terms[i].base].kind != BASE_AXIS || f->terms[i].offset) return false;
  return !f->xor_count;
}

static bool collect(Digits *d, const LayoutExpr *offset, const int64_t *low, const int64_t *extent,
                    Walk *walk) {
  Digit digits[MAX_DIGITS];
  Range ranges[MAX_RANK] = {0};
  int count;
  const Form *f = layout_form_of(d, offset);
  walk->plain = f && is_plain(d, f);
  if (f) f = layout_form_regroup(d, f);
  if (!f || f->xor_count || !layout_form_digits(d, f, digits, &count)) return false;
  walk->start = f->constant;
  for (int i = 0; i < d->axis_count; i++)
    ranges[i] = (Range){.low = low[i], .high = low[i] + extent[i] - 1};
  for (int i = 0; i < count; i++)
    if (d->bases[digits[i].base].kind != BASE_AXIS ||
        !add_digit(walk, &digits[i], &ranges[digits[i].base]))
      return false;
  if (!all_topped(walk, ranges)) return false;
  sort_digits(walk);
  return is_separated(walk) && number_axes(walk);
}

bool layout_walk_new(Context *context, const LayoutExpr *offset, const int64_t *extents, int rank,
                     const int64_t *low, const int64_t *extent, Walk *out) {
  ArenaMark mark = arena_mark(&context->scratch);
  memset(out, 0, sizeof *out);
  Digits d = layout_digits_new(context, extents, rank);
  bool good = collect(&d, offset, low, extent, out);
  arena_reset(&context->scratch, mark);
  return good;
}
