// SPDX-License-Identifier: Apache-2.0
// Counts the lines that a box touches, in memory order. The lines of a sub-nest have a summary
// (first, last, count, runs) that depends on the start of the nest only modulo the line, and on how
// the digits visited so far compare with the ends of their axes' ranges. In memory order,
// neighbours share at most one line, so their summaries merge; repetitions are merged by doubling.
#include "layout/operations/memory_order.h"

enum { MAX_STEPS = 1 << 22, SETTLED = 100 };

// For each slot, how the digits visited so far compare with those of the ends of its range: 0 where
// they are equal, ±rank of the most significant digit that differs, SETTLED when no later digit can
// matter.
typedef struct SpanState {
  int8_t low[MAX_ORDERED_AXES], high[MAX_ORDERED_AXES];
  uint64_t parities; // the parities of the XORs that were not visited
} SpanState;

typedef struct SpanMemo {
  struct SpanMemo *next;
  int level;
  int64_t at;
  SpanState state;
  LineSpan span;
} SpanMemo;

typedef struct SpanCounter {
  const MemoryOrder *order;
  LineUnits lines;
  Arena *arena;
  Map memos;
  // The ranks up to which a slot's digits are the least (largest) possible ones at the end of its
  // range, so that these never decide; and, by level, the highest rank of the other digits that was
  // not visited.
  int8_t idle_low[MAX_ORDERED_AXES], idle_high[MAX_ORDERED_AXES];
  int8_t unvisited_low[MAX_DIGITS + 1][MAX_ORDERED_AXES];
  int8_t unvisited_high[MAX_DIGITS + 1][MAX_ORDERED_AXES];
  int steps;
  bool failed;
  LayoutRun *runs;
  int room, run_count;
} SpanCounter;

static LineSpan shifted(LineSpan s, int64_t lines) {
  return (LineSpan){s.first + lines, s.last + lines, s.count, s.runs};
}

static LineSpan merged(LineSpan a, LineSpan b) {
  if (!a.count) return b;
  if (!b.count) return a;
  return (LineSpan){a.first, b.last, a.count + b.count - (b.first <= a.last),
                    a.runs + b.runs - (b.first <= a.last + 1)};
}

// ---- Ends of ranges ----------------------------------------------------------------------------

static void note(int8_t *state, int64_t d, int64_t end, int rank) {
  if (*state == SETTLED || d == end) return;
  int8_t differs = (int8_t)(d > end ? rank : -rank);
  if (rank > (*state < 0 ? -*state : *state)) *state = differs;
}

// Whether an index can still be on the right side of an end: not below it with `sign` 1, not above
// it with -1.
static bool settle(int8_t *state, int sign, int unvisited) {
  if (*state == SETTLED) return true;
  int differs = *state < 0 ? -*state : *state;
  if (differs < unvisited || (differs == 0 && unvisited)) return true;
  if (*state * sign < 0) return false;
  *state = SETTLED;
  return true;
}

static bool enter(const SpanCounter *w, SpanState *s, int level, int64_t d) {
  const MemoryDigit *g = &w->order->digits[level];
  if (d & 1) s->parities ^= g->feeds;
  if (g->parity >= 0) s->parities &= ~((uint64_t)1 << g->parity);
  if (g->slot < 0) return true;
  if (g->rank > w->idle_low[g->slot]) note(&s->low[g->slot], d, g->first, g->rank);
  if (g->rank > w->idle_high[g->slot]) note(&s->high[g->slot], d, g->last, g->rank);
  return settle(&s->low[g->slot], 1, w->unvisited_low[level + 1][g->slot]) &&
         settle(&s->high[g->slot], -1, w->unvisited_high[level + 1][g->slot]);
}

// The range of values of a digit, from t up to *end in memory order, after which the state is the
// same.
static void next_class(const SpanState *s, const MemoryDigit *g, int64_t t, int64_t *end) {
  int64_t ends[2] = {g->first, g->last};
  *end = g->parity < 0 && !g->feeds ? g->high - g->low : t;
  if (g->parity >= 0) return;
  for (int i = 0; i < 2; i++) {
    if ((i ? s->high : s->low)[g->slot] == SETTLED) continue;
    int64_t e = g->down ? g->high - ends[i] : ends[i] - g->low;
    if (t < e)
      *end = MIN_OF(*end, e - 1);
    else if (t == e)
      *end = t;
  }
}

// The number of values that t of a digit can take.
static int64_t count_of(const MemoryDigit *g) {
  return g->parity < 0 ? g->high - g->low + 1 : 2;
}

// The value of the digit at t; -1 where there is none.
static int64_t value_at(const SpanState *s, const MemoryDigit *g, int64_t t) {
  if (g->parity < 0) return g->down ? g->high - t : g->low + t;
  int64_t d = t ^ (int64_t)(s->parities >> g->parity & 1);
  return d < g->low || d > g->high ? -1 : d;
}

// The state after a digit at t; false where no index of the box has it.
static bool enter_position(const SpanCounter *w, SpanState *s, int level, int64_t t) {
  int64_t d = value_at(s, &w->order->digits[level], t);
  return d >= 0 && enter(w, s, level, d);
}

// ---- Summaries ---------------------------------------------------------------------------------

static LineSpan span_of(SpanCounter *w, int level, const SpanState *s, int64_t at);

// The summary of n copies of the nest below `level`, `step` units apart, from unit `at` >= 0 on.
static LineSpan copies(SpanCounter *w, int level, const SpanState *s, int64_t at, int64_t step,
                       int64_t n) {
  int64_t line = w->lines.line, period = line / gcd_of(line, step % line);
  LineSpan sum = {0}, power = {0};
  int64_t whole = n / period, lines = 0;
  for (int64_t i = 0; i < MIN_OF(n, period) && !w->failed; i++)
    power = merged(power, span_of(w, level, s, at + i * step));
  if (whole == 0 || w->failed) return power;
  int64_t each = period * step / line;
  for (int64_t rest = whole;; rest /= 2, each *= 2) {
    if (rest % 2) {
      sum = merged(sum, shifted(power, lines));
      lines += each;
    }
    if (rest < 2) break;
    power = merged(power, shifted(power, each));
  }
  for (int64_t i = whole * period; i < n && !w->failed; i++)
    sum = merged(sum, span_of(w, level, s, at + i * step));
  return sum;
}

static LineSpan nest_span(SpanCounter *w, int level, const SpanState *s, int64_t at) {
  const MemoryDigit *g = &w->order->digits[level];
  int64_t step = g->digit.weight * w->lines.element, end;
  LineSpan sum = {0};
  for (int64_t t = 0; t < count_of(g); t = end + 1) {
    SpanState below = *s;
    next_class(s, g, t, &end);
    if (enter_position(w, &below, level, t))
      sum = merged(sum, copies(w, level + 1, &below, at + t * step, step, end - t + 1));
  }
  return sum;
}

// The state without the parities that do not matter: where the axis of a pivot can no longer leave
// its range, and the pivot changes no parity, its bit of memory takes both values with any parity.
static SpanState without_idle_parities(const SpanCounter *w, int level, const SpanState *s) {
  SpanState out = *s;
  for (int i = level; i < w->order->count && out.parities; i++) {
    const MemoryDigit *g = &w->order->digits[i];
    if (g->parity >= 0 && g->slot >= 0 && !g->feeds && s->low[g->slot] == SETTLED &&
        s->high[g->slot] == SETTLED)
      out.parities &= ~((uint64_t)1 << g->parity);
  }
  return out;
}

static uint64_t memo_hash(int level, const SpanState *s, int64_t at) {
  return hash_mix(hash_mix(hash_bytes(s, sizeof *s), (uint64_t)level), (uint64_t)at);
}

static LineSpan span_of(SpanCounter *w, int level, const SpanState *state, int64_t at) {
  const SpanState same = without_idle_parities(w, level, state), *s = &same;
  int64_t line = at / w->lines.line, rest = at % w->lines.line;
  if (level == w->order->count) {
    int64_t last = (rest + w->lines.element - 1) / w->lines.line;
    return (LineSpan){line, line + last, last + 1, 1};
  }
  uint64_t hash = memo_hash(level, s, rest);
  SpanMemo *first = map_get(&w->memos, hash);
  for (SpanMemo *m = first; m; m = m->next)
    if (m->level == level && m->at == rest && !memcmp(&m->state, s, sizeof *s))
      return shifted(m->span, line);
  if (w->failed || ++w->steps > MAX_STEPS) return w->failed = true, (LineSpan){0};
  SpanMemo *made = arena_new(w->arena, SpanMemo);
  *made = (SpanMemo){first, level, rest, *s, nest_span(w, level, s, rest)};
  made->next = map_get(&w->memos, hash);
  map_set(&w->memos, hash, made);
  return shifted(made->span, line);
}

// ---- Runs --------------------------------------------------------------------------------------

static void emit_run(SpanCounter *w, LineSpan s) {
  LayoutRun *last = w->run_count ? &w->runs[w->run_count - 1] : NULL;
  if (last && s.first <= last->first + last->count)
    last->count = s.last + 1 - last->first;
  else if (w->run_count < w->room)
    w->runs[w->run_count++] = (LayoutRun){s.first, s.last - s.first + 1};
  else
    w->room = 0; // the last run is complete
}

static void emit_nest(SpanCounter *w, int level, const SpanState *s, int64_t at);

static void emit_copies(SpanCounter *w, int level, const SpanState *s, int64_t at, int64_t step,
                        int64_t n) {
  if (!w->room || w->failed) return;
  LineSpan span = copies(w, level, s, at, step, n);
  if (span.runs == 1) return emit_run(w, span);
  if (n == 1) return emit_nest(w, level, s, at);
  emit_copies(w, level, s, at, step, n / 2);
  emit_copies(w, level, s, at + n / 2 * step, step, n - n / 2);
}

static void emit_nest(SpanCounter *w, int level, const SpanState *s, int64_t at) {
  LineSpan span = span_of(w, level, s, at);
  if (!span.count || !w->room) return;
  if (span.runs == 1) return emit_run(w, span);
  const MemoryDigit *g = &w->order->digits[level];
  int64_t step = g->digit.weight * w->lines.element, end;
  for (int64_t t = 0; t < count_of(g) && w->room; t = end + 1) {
    SpanState below = *s;
    next_class(s, g, t, &end);
    if (enter_position(w, &below, level, t))
      emit_copies(w, level + 1, &below, at + t * step, step, end - t + 1);
  }
}

// ---- The question ------------------------------------------------------------------------------

// The digits of an axis come by rank.
static void find_idle(SpanCounter *w) {
  for (int rank = 1; rank <= w->order->count; rank++)
    for (int i = 0; i < w->order->count; i++) {
      const MemoryDigit *g = &w->order->digits[i];
      if (g->slot < 0 || g->rank != rank) continue;
      int8_t *low = &w->idle_low[g->slot], *high = &w->idle_high[g->slot];
      if (*low == rank - 1 && g->first == g->low) *low = (int8_t)rank;
      if (*high == rank - 1 && g->last == g->high) *high = (int8_t)rank;
    }
}

static void find_unvisited(SpanCounter *w) {
  for (int i = w->order->count - 1; i >= 0; i--) {
    const MemoryDigit *g = &w->order->digits[i];
    int8_t *low = w->unvisited_low[i], *high = w->unvisited_high[i];
    memcpy(low, w->unvisited_low[i + 1], MAX_ORDERED_AXES);
    memcpy(high, w->unvisited_high[i + 1], MAX_ORDERED_AXES);
    if (g->slot < 0) continue;
    if (g->rank > w->idle_low[g->slot]) low[g->slot] = (int8_t)MAX_OF(low[g->slot], g->rank);
    if (g->rank > w->idle_high[g->slot]) high[g->slot] = (int8_t)MAX_OF(high[g->slot], g->rank);
  }
}

// The state with no digit visited.
static SpanState first_state(SpanCounter *w) {
  SpanState s = {.parities = w->order->parities};
  for (int i = 0; i < w->order->slot_count; i++) {
    settle(&s.low[i], 1, w->unvisited_low[0][i]);
    settle(&s.high[i], -1, w->unvisited_high[0][i]);
  }
  return s;
}

// Whether the number of every unit fits 64 bits.
static bool fits(const MemoryOrder *order, LineUnits lines) {
  int64_t reach, part;
  if (!mul_fits(order->start, lines.element, &reach) || !add_fits(reach, lines.base, &reach) ||
      reach < 0)
    return false;
  for (int i = 0; i < order->count; i++) {
    const MemoryDigit *g = &order->digits[i];
    if (!mul_fits(g->digit.weight, count_of(g), &part) || !mul_fits(part, lines.element, &part) ||
        !add_fits(reach, part, &reach))
      return false;
  }
  return add_fits(reach, lines.element, &reach) && reach <= INT64_MAX / 4 &&
         lines.line <= (int64_t)1 << 31;
}

bool memory_order_lines(Context *context, const MemoryOrder *order, LineUnits lines, LineSpan *span,
                        LayoutRun *runs, int *room) {
  int64_t unit = gcd_of(gcd_of(lines.element, lines.line), lines.base);
  lines = (LineUnits){lines.element / unit, lines.line / unit, lines.base / unit};
  if (!fits(order, lines)) return false;
  ArenaMark mark = arena_mark(&context->scratch);
  SpanCounter *w = arena_new(&context->scratch, SpanCounter);
  *w = (SpanCounter){.order = order, .lines = lines, .arena = &context->scratch, .runs = runs};
  w->memos = map_new(w->arena);
  w->room = room ? *room : 0;
  int64_t at = order->start * lines.element + lines.base;
  find_idle(w);
  find_unvisited(w);
  SpanState start = first_state(w);
  *span = span_of(w, 0, &start, at);
  emit_nest(w, 0, &start, at);
  if (room) *room = w->run_count;
  bool good = !w->failed;
  arena_reset(&context->scratch, mark);
  return good;
}
