// SPDX-License-Identifier: Apache-2.0
// Finds the digits of an offset over a box, in the order in which memory has them. A bit of memory
// that is an XOR of bits can be one of them when all but one of these bits (the pivot) have higher
// weights in memory: then it is the pivot's digit, inverted by the parity of the others.
#include "layout/operations/memory_order.h"

#include <stdlib.h>

// ---- Digits of an offset -----------------------------------------------------------------------

typedef struct DigitRange { // the range of y, for each base
  int64_t low, high;
  bool used;
  int64_t offset, next; // next: the cut that the next digit of the axis must have, 0 for any
} DigitRange;

// Whether every digit above this one is the same at both ends of the range.
static bool is_top(const Digit *g, const DigitRange *r) {
  return g->open || r->low / g->cut / g->radix == r->high / g->cut / g->radix;
}

static bool add_digit(MemoryOrder *order, const Digit *g, DigitRange *r) {
  if (r->used && r->offset != g->offset) return false;
  if (!r->used) {
    if (!add_fits(r->low, g->offset, &r->low) || !add_fits(r->high, g->offset, &r->high))
      return false;
    *r = (DigitRange){r->low, r->high, true, g->offset, 0};
    order->shift[g->base] = g->offset;
  }
  MemoryDigit *out = &order->digits[order->count];
  int64_t fixed = r->low / g->cut, first = digit_value(g, r->low), last = digit_value(g, r->high);
  if (fixed == r->high / g->cut) // the digit does not vary
    return mul_fits(g->weight, first, &fixed) && add_fits(order->start, fixed, &order->start);
  if (r->next && r->next != g->cut) return false;
  bool top = is_top(g, r), down = g->weight < 0;
  *out = (MemoryDigit){.digit = *g, .first = first, .last = last, .parity = -1};
  out->low = top ? first : 0;
  out->high = top ? last : g->radix - 1;
  out->down = down;
  if (down) out->digit.weight = -g->weight;
  r->next = top ? INT64_MAX : g->cut * g->radix;
  order->count++;
  int64_t least;
  return mul_fits(g->weight, down ? out->high : out->low, &least) &&
         add_fits(order->start, least, &order->start);
}

// ---- XORs --------------------------------------------------------------------------------------

typedef struct Raw { // a digit of the form, or the bit of memory that is xors[parity]
  Digit g;
  int parity; // -1: none
  bool pivot; // g is its pivot
} Raw;

typedef struct Raws {
  const DigitSpace *d;
  const DigitForm *f;
  const DigitRange *ranges; // before any shift
  Raw items[MAX_DIGITS];
  int count;
} Raws;

static bool add_raw(Raws *r, Raw raw) {
  if (r->count == MAX_DIGITS) return false;
  r->items[r->count++] = raw;
  return true;
}

static bool base_has_xors(const Raws *r, int base) {
  for (int i = 0; i < r->f->xor_count; i++)
    for (int k = 0; k < r->d->bit_count; k++)
      if (mask_has(r->f->xors[i].mask, k) && r->d->bits[k].base == base) return true;
  return false;
}

// Adds a digit as it is, or bit by bit where its base takes part in XORs.
static bool add_split(Raws *r, const Digit *g) {
  Digit bit, rest = *g;
  if (!base_has_xors(r, g->base)) return add_raw(r, (Raw){*g, -1, false});
  while (rest.radix > 2)
    if (!digit_split(&rest, 2, &bit, &rest) || !add_raw(r, (Raw){bit, -1, false})) return false;
  return add_raw(r, (Raw){rest, -1, false});
}

static bool bit_is_fixed(const Raws *r, const Digit *bit) {
  const DigitRange *range = &r->ranges[bit->base];
  return (range->low + bit->offset) / bit->cut == (range->high + bit->offset) / bit->cut;
}

static int64_t magnitude(const Raw *raw) {
  return raw->g.weight < 0 ? -raw->g.weight : raw->g.weight;
}

static void sort_raws(Raws *r) {
  for (int i = 1; i < r->count; i++) {
    Raw raw = r->items[i];
    int at = i;
    for (; at > 0 && magnitude(&r->items[at - 1]) < magnitude(&raw); at--)
      r->items[at] = r->items[at - 1];
    r->items[at] = raw;
  }
}

// Finds the only bit of the XOR at `at` that varies and has no higher weight in memory. False when
// there are several.
static bool find_pivot(Raws *r, int at) {
  Raw *raw = &r->items[at];
  for (int k = 0; k < r->d->bit_count; k++) {
    const Digit *bit = &r->d->bits[k];
    bool higher = false;
    if (!mask_has(r->f->xors[raw->parity].mask, k) || bit_is_fixed(r, bit)) continue;
    for (int i = 0; i < at && !higher; i++)
      higher =
          (r->items[i].parity < 0 || r->items[i].pivot) && digit_starts_with(&r->items[i].g, bit);
    if (higher) continue;
    if (raw->pivot) return false;
    raw->pivot = true;
    raw->g.base = bit->base;
    raw->g.offset = bit->offset;
    raw->g.cut = bit->cut;
  }
  return true;
}

// Sorts by base and ascending cut, an XOR as its pivot; bits of memory without a pivot are last.
static int compare_raws(const void *a, const void *b) {
  const Raw *x = a, *y = b;
  bool x_free = x->parity >= 0 && !x->pivot, y_free = y->parity >= 0 && !y->pivot;
  if (x_free || y_free) return x_free - y_free;
  if (x->g.base != y->g.base) return x->g.base - y->g.base;
  if (x->g.offset != y->g.offset) return x->g.offset < y->g.offset ? -1 : 1;
  return (x->g.cut > y->g.cut) - (x->g.cut < y->g.cut);
}

static bool collect_raws(Raws *r) {
  Digit digits[MAX_DIGITS];
  int count;
  if (!layout_form_digits(r->d, r->f, digits, &count) || r->f->xor_count > 64) return false;
  for (int i = 0; i < count; i++)
    if (r->d->bases[digits[i].base].kind != BASE_AXIS || !add_split(r, &digits[i])) return false;
  for (int i = 0; i < r->f->xor_count; i++)
    if (!add_raw(r, (Raw){{.weight = r->f->xors[i].coefficient, .radix = 2}, i, false}))
      return false;
  sort_raws(r);
  for (int i = 0; i < r->count; i++)
    if (r->items[i].parity >= 0 && !find_pivot(r, i)) return false;
  qsort(r->items, (size_t)r->count, sizeof *r->items, compare_raws);
  return true;
}

// Sets the parities before any digit is visited, which come from the bits that do not vary and are
// inverted where the coefficient of the XOR is negative, and the digits that change each parity.
static bool connect(const Raws *r, MemoryOrder *order) {
  order->parity_count = r->f->xor_count;
  for (int i = 0; i < r->f->xor_count; i++) {
    uint64_t one = (uint64_t)1 << i;
    if (r->f->xors[i].coefficient < 0) {
      order->parities ^= one;
      if (!add_fits(order->start, r->f->xors[i].coefficient, &order->start)) return false;
    }
    for (int k = 0; k < r->d->bit_count; k++) {
      const Digit *bit = &r->d->bits[k];
      if (!mask_has(r->f->xors[i].mask, k)) continue;
      if (r->d->bases[bit->base].kind != BASE_AXIS) return false;
      if (bit_is_fixed(r, bit)) {
        if ((r->ranges[bit->base].low + bit->offset) / bit->cut % 2) order->parities ^= one;
        continue;
      }
      for (int at = 0; at < order->count; at++) {
        MemoryDigit *g = &order->digits[at];
        if (g->parity != i && g->slot >= 0 && digit_starts_with(&g->digit, bit)) g->feeds ^= one;
      }
    }
  }
  return true;
}

// ---- Memory order ------------------------------------------------------------------------------

static bool all_topped(const MemoryOrder *order, const DigitRange *ranges) {
  for (int i = 0; i < order->count; i++)
    if (order->digits[i].slot >= 0 && ranges[order->digits[i].digit.base].next != INT64_MAX)
      return false;
  return true;
}

// Inserts a digit by descending weight; the digits come by base and ascending cut.
static void sort_digits(MemoryOrder *order) {
  int ranks[MAX_RANK] = {0};
  for (int i = 0; i < order->count; i++)
    if (order->digits[i].slot >= 0) order->digits[i].rank = ++ranks[order->digits[i].digit.base];
  for (int i = 1; i < order->count; i++) {
    MemoryDigit g = order->digits[i];
    int at = i;
    for (; at > 0 && order->digits[at - 1].digit.weight < g.digit.weight; at--)
      order->digits[at] = order->digits[at - 1];
    order->digits[at] = g;
  }
}

static bool is_separated(const MemoryOrder *order) {
  int64_t reach = 0, span;
  for (int i = order->count - 1; i >= 0; i--) {
    const MemoryDigit *g = &order->digits[i];
    if (g->digit.weight <= reach) return false;
    if (!mul_fits(g->digit.weight, g->parity < 0 ? g->high - g->low : 1, &span) ||
        !add_fits(reach, span, &reach))
      return false;
  }
  return true;
}

static bool number_axes(MemoryOrder *order) {
  int slot[MAX_RANK];
  memset(slot, -1, sizeof slot);
  for (int i = 0; i < order->count; i++) {
    MemoryDigit *g = &order->digits[i];
    if (g->slot < 0) continue;
    int *number = &slot[g->digit.base];
    if (*number < 0) *number = order->slot_count++;
    g->slot = *number;
  }
  return order->slot_count <= MAX_ORDERED_AXES;
}

static bool add_raws(const Raws *r, DigitRange *ranges, MemoryOrder *order) {
  for (int i = 0; i < r->count; i++) {
    const Raw *raw = &r->items[i];
    int64_t start = order->start;
    if (raw->parity >= 0 && !raw->pivot) {
      order->digits[order->count++] =
          (MemoryDigit){.slot = -1, .digit.weight = magnitude(raw), .parity = raw->parity};
      continue;
    }
    int before = order->count;
    if (!add_digit(order, &raw->g, &ranges[raw->g.base])) return false;
    if (raw->parity < 0) continue;
    if (order->count == before) return false;
    MemoryDigit *g = &order->digits[before];
    g->parity = raw->parity;
    g->digit.weight = magnitude(raw);
    g->down = false;
    order->start = start;
  }
  return true;
}

static bool collect(DigitSpace *d, const LayoutExpr *offset, const int64_t *low,
                    const int64_t *extent, MemoryOrder *order) {
  DigitRange ranges[MAX_RANK] = {0}, unshifted[MAX_RANK];
  const DigitForm *f = layout_form_of(d, offset);
  order->plain = f && layout_form_is_plain(d, f);
  if (f) f = layout_form_regroup(d, f);
  if (!f) return false;
  for (int i = 0; i < d->axis_count; i++)
    ranges[i] = (DigitRange){.low = low[i], .high = low[i] + extent[i] - 1};
  memcpy(unshifted, ranges, sizeof ranges);
  Raws *r = arena_new(d->arena, Raws);
  *r = (Raws){.d = d, .f = f, .ranges = unshifted};
  order->start = f->constant;
  if (!collect_raws(r) || !add_raws(r, ranges, order) || !all_topped(order, ranges)) return false;
  sort_digits(order);
  return is_separated(order) && connect(r, order) && number_axes(order);
}

bool memory_order_new(Context *context, const LayoutExpr *offset, const int64_t *extents, int rank,
                      const int64_t *low, const int64_t *extent, MemoryOrder *out) {
  ArenaMark mark = arena_mark(&context->scratch);
  memset(out, 0, sizeof *out);
  DigitSpace d = layout_digits_new(context, extents, rank);
  bool good = collect(&d, offset, low, extent, out);
  arena_reset(&context->scratch, mark);
  return good;
}
