// SPDX-License-Identifier: Apache-2.0
// Counts the points of a box at which several pairs of functions agree, for plans of copies. Where
// both functions of a pair are sums of digits of the axes with weights that do not overlap, they
// agree exactly when the digits of equal weight are equal. So the digits fall into classes of equal
// ones, which a union-find collects, and the count is the product of the least radix in each class.
// The extent of an axis must be the product of the radices of its digits.
#include "layout/digits/digits.h"

enum { MAX_PIECES = 256 };

typedef struct Agreement {
  Digit pieces[MAX_PIECES]; // of axes, with offset 0
  int which[MAX_PIECES];    // the function that has the piece
  int count;
} Agreement;

static bool add_pieces(Agreement *a, DigitSpace *d, const LayoutExpr *e, int which,
                       int64_t *constant) {
  Digit digits[MAX_DIGITS];
  int count;
  const DigitForm *f = layout_form_of(d, e);
  if (!f || f->xor_count || !layout_form_digits(d, f, digits, &count)) return false;
  *constant = f->constant;
  for (int i = 0; i < count; i++) {
    const Digit *g = &digits[i];
    int64_t extent = d->bases[g->base].extent, radix = g->radix;
    if (d->bases[g->base].kind != BASE_AXIS || g->offset || g->weight < 1) return false;
    if (a->count == MAX_PIECES || extent % g->cut) return false;
    if (g->open ? extent / g->cut != radix : extent / g->cut % radix != 0) return false;
    a->which[a->count] = which;
    a->pieces[a->count++] = *g;
  }
  return true;
}

// Splits piece `at` into a digit of radix `low` and the rest; false where `low` does not divide it.
static bool split(Agreement *a, int at, int64_t low) {
  Digit *p = &a->pieces[at];
  if (p->radix % low || a->count == MAX_PIECES) return false;
  if (!digit_split(p, low, p, &a->pieces[a->count])) return false;
  a->which[a->count++] = a->which[at];
  return true;
}

// Whether the piece ends past a boundary b of its own number line, which begins at `from`.
static bool crosses(int64_t from, int64_t radix, int64_t b) {
  return from < b && b < from * radix;
}

// Cuts pieces where other pieces of the axis are cut, and at the weights of the other function of
// the pair, until no piece changes. False where a cut does not divide a piece.
static bool refine(Agreement *a) {
  for (int at = 0; at < a->count; at++)
    for (int other = 0; other < a->count; other++) {
      const Digit *p = &a->pieces[at], *q = &a->pieces[other];
      int64_t bounds[2] = {q->cut, q->cut * q->radix};
      for (int k = 0; k < 2 && p->base == q->base; k++)
        if (crosses(p->cut, p->radix, bounds[k])) {
          if (bounds[k] % p->cut || !split(a, at, bounds[k] / p->cut)) return false;
          at = other = -1;
          break;
        }
      if (at < 0) break;
      if (a->which[at] / 2 == a->which[other] / 2 && crosses(p->weight, p->radix, q->weight)) {
        if (q->weight % p->weight || !split(a, at, q->weight / p->weight)) return false;
        at = -1;
        break;
      }
    }
  return true;
}

// Whether each weight of a function exceeds the largest sum of all lower pieces, in both functions
// of the pair, so that the two agree only where the pieces of each weight do.
static bool positions_separate(const Agreement *a) {
  for (int at = 0; at < a->count; at++) {
    int64_t reach[2] = {0, 0}, part;
    const Digit *p = &a->pieces[at];
    for (int i = 0; i < a->count; i++) {
      const Digit *q = &a->pieces[i];
      if (a->which[i] / 2 != a->which[at] / 2) continue;
      if (i != at && a->which[i] == a->which[at] && q->weight == p->weight) return false;
      if (q->weight >= p->weight) continue;
      int64_t *sum = &reach[a->which[i] % 2];
      if (!mul_fits(q->weight, q->radix - 1, &part) || !add_fits(*sum, part, sum)) return false;
    }
    if (reach[0] >= p->weight || reach[1] >= p->weight) return false;
  }
  return true;
}

// Whether the cuts of each axis divide one another and its extent: then its digits are independent.
static bool axes_divide(const Agreement *a, const int64_t *box) {
  for (int i = 0; i < a->count; i++) {
    const Digit *p = &a->pieces[i];
    int64_t end = p->cut * p->radix;
    if (box[p->base] % end) return false;
    for (int j = 0; j < a->count; j++) {
      const Digit *q = &a->pieces[j];
      if (q->base == p->base && q->cut >= end && q->cut % end) return false;
    }
  }
  return true;
}

static int class_of(const int *parents, int i) {
  while (parents[i] != i) i = parents[i];
  return i;
}

static void unite(int *parents, int i, int j) {
  i = class_of(parents, i);
  j = class_of(parents, j);
  parents[MAX_OF(i, j)] = MIN_OF(i, j);
}

// Finds the classes of equal digits. Two pieces are equal when they are the same digit of an axis,
// or have the same weight in a pair. A digit whose weight the other function lacks is 0.
static void classify(const Agreement *a, int *parents, bool *zero) {
  for (int i = 0; i < a->count; i++) parents[i] = i;
  for (int i = 0; i < a->count; i++) {
    const Digit *p = &a->pieces[i];
    bool met = false;
    for (int j = 0; j < a->count; j++) {
      const Digit *q = &a->pieces[j];
      bool same_digit = p->base == q->base && p->cut == q->cut;
      bool same_position = (a->which[i] ^ 1) == a->which[j] && p->weight == q->weight;
      if (same_digit || same_position) unite(parents, i, j);
      met = met || same_position;
    }
    if (!met) zero[i] = true;
  }
}

// The product of the least radix of each class, which is 1 where the digit is 0, and of the parts
// of the extents that no piece covers.
static bool count_points(const Agreement *a, const int64_t *box, int rank, int64_t *out) {
  int parents[MAX_PIECES];
  bool zero[MAX_PIECES] = {false};
  int64_t least[MAX_PIECES], free = 1;
  classify(a, parents, zero);
  for (int i = 0; i < a->count; i++) least[i] = INT64_MAX;
  for (int i = 0; i < a->count; i++) {
    int64_t *radix = &least[class_of(parents, i)];
    *radix = MIN_OF(*radix, zero[i] ? 1 : a->pieces[i].radix);
  }
  *out = 1;
  for (int axis = 0; axis < rank; axis++) {
    int64_t rest = box[axis];
    for (int i = 0; i < a->count; i++) {
      bool first = a->pieces[i].base == axis;
      for (int j = 0; j < i && first; j++)
        first = a->pieces[j].base != axis || a->pieces[j].cut != a->pieces[i].cut;
      if (first) rest /= a->pieces[i].radix;
    }
    if (!mul_fits(free, rest, &free)) return false;
  }
  for (int i = 0; i < a->count; i++)
    if (class_of(parents, i) == i && !mul_fits(*out, least[i], out)) return false;
  return mul_fits(*out, free, out);
}

bool layout_digits_agreements(Context *context, const int64_t *box, int rank,
                              const LayoutExpr *const *pairs, int count, int64_t *out) {
  ArenaMark mark = arena_mark(&context->scratch);
  Agreement *a = arena_new(&context->scratch, Agreement);
  DigitSpace d = layout_digits_new(context, box, rank);
  bool good = true;
  for (int i = 0; i < count && good; i++) {
    int64_t constants[2];
    good = add_pieces(a, &d, pairs[2 * i], 2 * i, &constants[0]) &&
           add_pieces(a, &d, pairs[2 * i + 1], 2 * i + 1, &constants[1]) &&
           constants[0] == constants[1];
  }
  good = good && refine(a) && positions_separate(a) && axes_divide(a, box) &&
         count_points(a, box, rank, out);
  arena_reset(&context->scratch, mark);
  return good;
}
