// SPDX-License-Identifier: Apache-2.0
// Counts the physical indices that hold an element, where one axis is symbolic and the map does not
// read the symbol, as a function of the extent N. Each output satisfies f(x + T) = f(x) + S from
// some x on, which its text tells; so whether x is the first to reach its physical index is
// periodic from some x on, too, and one period is counted.
//
//   max(x%5, 1), x//5    first to reach: 1 0 1 1 1, repeated
//                        N//5*4 + min(N%5, 1) + max(N%5 - 2, 0)
#include "layout/answers/answers.h"

#include <stdlib.h>

enum { MAX_PERIOD = 1 << 12, MAX_STEPS = 1 << 14, MAX_WORK = 1 << 18, MAX_SEGMENTS = 12 };

// f(x + period) = f(x) + step for x >= start.
typedef struct Tail {
  int64_t start, period, step;
} Tail;

typedef struct Image {
  Context *context;
  const Layout *layout;
  int axis;                // the symbolic axis
  int64_t fixed[MAX_RANK]; // the extents of the other axes, and 1 for `axis`
  int64_t fixed_size;
  Tail tail; // common to all outputs; `step` is that of output `moving`, 0 where none moves
  int moving;
} Image;

// ---- Tails -------------------------------------------------------------------------------------

static int64_t value_at(const Image *image, const LayoutExpr *e, int64_t *index, int64_t x) {
  int64_t value = 0;
  index[image->axis] = x;
  return layout_expr_value(e, index, NULL, 0, &value) ? value : INT64_MIN;
}

static bool set_period(Tail *t, int64_t period) {
  if (period > MAX_PERIOD || t->start > MAX_STEPS) return false;
  t->step *= period / t->period;
  t->period = period;
  return t->step > -MAX_WORK && t->step < MAX_WORK;
}

static bool common_period(Tail *a, Tail *b) {
  int64_t period = a->period / gcd_of(a->period, b->period) * b->period;
  return set_period(a, period) && set_period(b, period);
}

// Extends the period so that its step is a multiple of m.
static bool whole_steps(Tail *t, int64_t m) {
  return set_period(t, t->period * (m / gcd_of(t->step, m)));
}

static bool tail_of(const Image *image, const LayoutExpr *e, int64_t *index, Tail *out);

static bool tail_by_const(const LayoutExpr *e, int64_t c, Tail *out) {
  int64_t reach = 1;
  switch (layout_op_class(e->op)) {
  case LAYOUT_OP_PRODUCT:
    if (c > MAX_WORK || c < -MAX_WORK) return false;
    out->step *= c;
    return out->step > -MAX_WORK && out->step < MAX_WORK;
  case LAYOUT_OP_QUOTIENT:
    if (c <= 0 || !whole_steps(out, c)) return false;
    out->step = e->op == LAYOUT_DIV ? out->step / c : 0;
    return true;
  case LAYOUT_OP_BITS:
    while (reach <= c && reach < MAX_WORK) reach *= 2;
    if (c < 0 || reach <= c || !whole_steps(out, reach)) return false;
    if (e->op == LAYOUT_AND) out->step = 0;
    return true;
  case LAYOUT_OP_LEAF:
  case LAYOUT_OP_LINEAR:
  case LAYOUT_OP_SHIFT:
  case LAYOUT_OP_EXTREME:
  case LAYOUT_OP_COMPARISON:
  case LAYOUT_OP_LOGIC:
  case LAYOUT_OP_CHOICE: break;
  }
  return false;
}

// min and max are one of their arguments from some x on.
static bool tail_of_extreme(const Image *image, const LayoutExpr *e, int64_t *index, Tail a, Tail b,
                            Tail *out) {
  int64_t start = MAX_OF(a.start, b.start), apart = a.step - b.step, most = 0;
  *out = (Tail){start, a.period, a.step};
  if (!apart) return true;
  bool ahead = (apart > 0) == (e->op == LAYOUT_MAX); // the result is a from some x on
  for (int64_t x = start; x < start + a.period; x++) {
    int64_t p = value_at(image, e->args[0], index, x), q = value_at(image, e->args[1], index, x);
    if (p == INT64_MIN || q == INT64_MIN) return false;
    most = MAX_OF(most, apart > 0 ? q - p : p - q);
  }
  int64_t rounds = ceil_div(most, apart > 0 ? apart : -apart);
  if (rounds > MAX_STEPS) return false;
  *out = (Tail){start + rounds * a.period, a.period, ahead ? a.step : b.step};
  return out->start <= MAX_STEPS;
}

static bool tail_of(const Image *image, const LayoutExpr *e, int64_t *index, Tail *out) {
  Tail b;
  *out = (Tail){0, 1, e->op == LAYOUT_AXIS && e->value == image->axis};
  if (e->op == LAYOUT_AXIS || e->op == LAYOUT_CONST) return true;
  if (e->op == LAYOUT_SYMBOL || e->op == LAYOUT_SELECT || !e->args[1]) return false;
  if (!tail_of(image, e->args[0], index, out) || !tail_of(image, e->args[1], index, &b))
    return false;
  bool still = !(layout_axes_read(e->args[1]) >> image->axis & 1);
  int64_t c = still ? value_at(image, e->args[1], index, 0) : INT64_MIN;
  if (still && tail_by_const(e, c, out)) return true;
  if (e->op == LAYOUT_MUL && !(layout_axes_read(e->args[0]) >> image->axis & 1)) {
    *out = b;
    return tail_by_const(e, value_at(image, e->args[0], index, 0), out);
  }
  if (!common_period(out, &b)) return false;
  Tail a = *out;
  if (e->op == LAYOUT_MIN || e->op == LAYOUT_MAX)
    return tail_of_extreme(image, e, index, a, b, out);
  if (!a.step && !b.step) return out->start = MAX_OF(a.start, b.start), true;
  if (e->op != LAYOUT_ADD && e->op != LAYOUT_SUB) return false;
  *out = (Tail){MAX_OF(a.start, b.start), a.period,
                e->op == LAYOUT_ADD ? a.step + b.step : a.step - b.step};
  return true;
}

// The tail of all outputs at all indices of the other axes, which must have the same step.
static bool find_tail(Image *image) {
  const Layout *layout = image->layout;
  Tail *each = arena_array(&image->context->scratch, Tail, layout->physical_rank);
  image->tail = (Tail){0, 1, 0};
  for (int64_t y = 0; y < image->fixed_size; y++) {
    int64_t index[MAX_RANK];
    layout_index_at(image->fixed, layout->rank, y, index);
    for (int i = 0; i < layout->physical_rank; i++) {
      Tail t, all = image->tail;
      if (!tail_of(image, layout->map->outputs[i], index, &t)) return false;
      all.step = 0;
      if (y && (!common_period(&each[i], &t) || each[i].step != t.step)) return false;
      if (!common_period(&all, &t)) return false;
      each[i] = t;
      image->tail.start = MAX_OF(image->tail.start, t.start);
      image->tail.period = t.period;
    }
  }
  for (int i = 0; i < layout->physical_rank; i++) {
    if (!set_period(&each[i], image->tail.period)) return false;
    if (!each[i].step) continue;
    image->tail.step = each[i].step;
    image->moving = i;
  }
  return true;
}

// ---- First to reach a physical index -----------------------------------------------------------

// The x from which on the elements that are the first to reach a physical index repeat. Without a
// step, no new index is reached after one period. Otherwise two elements that share a physical
// index are at most so many periods apart as the values of one period, and those before the start,
// differ.
static int64_t repeats_from(const Image *image) {
  const Tail *t = &image->tail;
  if (!t->step) return t->start + t->period;
  const LayoutExpr *e = image->layout->map->outputs[image->moving];
  int64_t low = INT64_MAX, high = INT64_MIN, index[MAX_RANK];
  for (int64_t y = 0; y < image->fixed_size; y++) {
    layout_index_at(image->fixed, image->layout->rank, y, index);
    for (int64_t x = 0; x < t->start + t->period; x++) {
      int64_t value = value_at(image, e, index, x);
      if (value == INT64_MIN) return INT64_MAX;
      low = MIN_OF(low, value);
      high = MAX_OF(high, value);
    }
  }
  int64_t rounds = (high - low) / (t->step < 0 ? -t->step : t->step) + 2;
  return rounds > MAX_STEPS ? INT64_MAX : t->start + rounds * t->period;
}

typedef struct Reached {
  int64_t *positions, x;
  int count;
} Reached;

static int compare_reached(const void *a, const void *b) {
  const Reached *p = a, *q = b;
  for (int i = 0; i < p->count; i++)
    if (p->positions[i] != q->positions[i]) return p->positions[i] < q->positions[i] ? -1 : 1;
  return (p->x > q->x) - (p->x < q->x);
}

// first[x] receives the number of physical indices that x is the first to reach, for x < count.
static bool find_first(const Image *image, int64_t count, int64_t *first) {
  const Layout *layout = image->layout;
  Arena *scratch = &image->context->scratch;
  int64_t size = count * image->fixed_size;
  Reached *all = arena_array(scratch, Reached, size);
  for (int64_t i = 0; i < size; i++) {
    int64_t index[MAX_RANK];
    all[i] = (Reached){arena_array(scratch, int64_t, layout->physical_rank), i / image->fixed_size,
                       layout->physical_rank};
    layout_index_at(image->fixed, layout->rank, i % image->fixed_size, index);
    index[image->axis] = all[i].x;
    if (!index_map_apply(layout->map, index, all[i].positions)) return false;
  }
  qsort(all, (size_t)size, sizeof *all, compare_reached);
  for (int64_t i = 0; i < size; i++)
    first[all[i].x] += !i || memcmp(all[i].positions, all[i - 1].positions,
                                    sizeof(int64_t) * (size_t)layout->physical_rank) != 0;
  return true;
}

// ---- As an expression --------------------------------------------------------------------------

// The sum of first[x] for from <= x < from + n, where n is `e`, at most `count`: a function of n
// that is linear between changes of the numbers. With `over`, e may be more than count. NULL where
// there are too many changes.
static const LayoutExpr *sum_of_first(Context *context, const int64_t *first, int64_t count,
                                      const LayoutExpr *e, bool over) {
  const LayoutExpr *sum = layout_const(context, 0);
  int segments = 0;
  for (int64_t at = 0, end; at < count; at = end) {
    for (end = at; end < count && first[end] == first[at]; end++) continue;
    if (!first[at]) continue;
    if (++segments > MAX_SEGMENTS) return NULL;
    const LayoutExpr *part = layout_by(context, LAYOUT_SUB, e, at);
    if (at) part = layout_by(context, LAYOUT_MAX, part, 0);
    if (end < count || over) part = layout_by(context, LAYOUT_MIN, part, end - at);
    sum = layout_binary(context, LAYOUT_ADD, sum, layout_by(context, LAYOUT_MUL, part, first[at]));
  }
  return sum;
}

static const LayoutExpr *count_expr(Context *context, const int64_t *first, int64_t from,
                                    int64_t period, const LayoutExpr *extent) {
  while (from && first[from - 1] == first[from - 1 + period]) from--;
  for (int64_t p = 1; p < period; p++) {
    bool good = period % p == 0;
    for (int64_t x = from; x < from + period - p && good; x++) good = first[x] == first[x + p];
    if (good) period = p;
  }
  int64_t each = 0;
  for (int64_t i = 0; i < period; i++) each += first[from + i];
  const LayoutExpr *begin = sum_of_first(context, first, from, extent, true);
  if (!begin || !each) return begin;
  const LayoutExpr *rest = layout_by(context, LAYOUT_SUB, extent, from);
  if (from) rest = layout_by(context, LAYOUT_MAX, rest, 0);
  const LayoutExpr *whole = layout_by(context, LAYOUT_DIV, rest, period);
  whole = layout_by(context, LAYOUT_MUL, whole, each);
  const LayoutExpr *end = sum_of_first(context, first + from, period,
                                       layout_by(context, LAYOUT_MOD, rest, period), false);
  if (!end) return NULL;
  return layout_binary(context, LAYOUT_ADD, begin, layout_binary(context, LAYOUT_ADD, whole, end));
}

static const LayoutExpr *count_image(Image *image, const LayoutExpr *extent) {
  if (!find_tail(image)) return NULL;
  int64_t from = repeats_from(image);
  if (from > MAX_WORK) return NULL;
  int64_t count = from + image->tail.period;
  if (count * image->fixed_size > MAX_WORK) return NULL;
  int64_t *first = arena_array(&image->context->scratch, int64_t, count);
  return find_first(image, count, first)
             ? count_expr(image->context, first, from, image->tail.period, extent)
             : NULL;
}

const LayoutExpr *layout_image_of_axis(Context *context, const Layout *layout) {
  Image image = {.context = context, .layout = layout, .axis = -1, .fixed_size = 1};
  for (int i = 0; i < layout->rank; i++) {
    bool fixed = is_const(layout->shape[i]);
    if (!fixed && image.axis >= 0) return NULL;
    image.fixed[i] = fixed ? layout->shape[i]->value : 1;
    if (!fixed) image.axis = i;
    if (!mul_fits(image.fixed_size, image.fixed[i], &image.fixed_size) ||
        image.fixed_size > MAX_PERIOD)
      return NULL;
  }
  if (image.axis < 0 || !image.fixed_size || !layout_map_is_small(layout->map)) return NULL;
  ArenaMark mark = arena_mark(&context->scratch);
  const LayoutExpr *count = count_image(&image, layout->shape[image.axis]);
  arena_reset(&context->scratch, mark);
  return count;
}
