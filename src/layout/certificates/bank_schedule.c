// SPDX-License-Identifier: Apache-2.0
// Certificates of swizzles under which every access meets its bound: bank schedules.
//
// A bank schedule says in which wave of its phase each word that lanes read is served. Two goals
// show that the swizzle is the best one:
//   no group of banks serves two words in one wave, so that this number of waves is enough;
//   every group serves a word in every wave, so that no bijection of the units needs fewer waves.
// The number of a lane is a vector of bits, and words are linear in it: a basis of the words splits
// into bits that choose the group (with the bits that choose the index within a unit) and bits that
// choose the wave. A lane that reads the word of another lane is shown to do so, and is left out.
#include "layout/certificates/certificate.h"
#include "layout/operations/operations.h"
#include "layout/points/points.h"

typedef struct BankSchedule {
  Context *context;
  const Layout *at; // offsets under the swizzle on (positions …, lane)
  int64_t phase;
  int unit_bits, granule_bits, bank_bits; // log2 of the elements of a unit, a word; of the groups
  // A basis of the words, first the vectors that keep the index in a unit: lanes whose numbers
  // differ by the tag read words that differ by the bits.
  BitVector steps[64];
  int count, whole;
  uint64_t later;    // a bit for each step: it chooses the wave
  uint64_t same[64]; // lanes that differ by this read one word; the top bit is in no other one
  int same_count;
} BankSchedule;

static int log_of(int64_t v) {
  return v > 1 ? bit_highest((uint64_t)v) : 0;
}

// ---- Steps -------------------------------------------------------------------------------------

// Puts the index within the unit before the number of the unit, so that a step whose leading bit is
// below bit `units` keeps the index within the unit.
static uint64_t ordered(const BankSchedule *t, uint64_t words) {
  int within = t->unit_bits - t->granule_bits, units = 63 - within;
  return (words & (((uint64_t)1 << within) - 1)) << units | words >> within;
}

static void add_step(BankSchedule *t, BitVector step, bool whole) {
  int at = whole ? t->whole++ : t->count;
  memmove(&t->steps[at + 1], &t->steps[at], sizeof *t->steps * (size_t)(t->count++ - at));
  t->steps[at] = step;
}

static void split_lanes(BankSchedule *t, const int64_t *offsets) {
  BitSpace basis = {.count = 0};
  int units = 63 - (t->unit_bits - t->granule_bits);
  for (int i = 0; i < log_of(t->phase); i++) {
    uint64_t lane = (uint64_t)1 << i;
    BitVector own = {ordered(t, (uint64_t)(offsets[lane] ^ offsets[0]) >> t->granule_bits), lane};
    BitVector step = own;
    if (!bit_space_add(&basis, &step)) {
      t->same[t->same_count++] = step.tag;
      continue;
    }
    bool whole = !(step.bits >> units);
    add_step(t, whole && own.bits >> units ? step : own, whole);
  }
}

// Chooses for the waves the steps that keep the index in a unit and change the group only as other
// steps do.
static void choose_waves(BankSchedule *t) {
  BitSpace basis = {.count = 0};
  uint64_t groups = ((uint64_t)1 << t->bank_bits) - 1;
  for (int i = 0; i < t->whole; i++)
    if (!bit_space_add(&basis, &(BitVector){t->steps[i].bits & groups, 0}))
      t->later |= (uint64_t)1 << i;
}

static bool read_steps(BankSchedule *t) {
  int64_t box[MAX_RANK], lanes = t->at->extents[t->at->rank - 1];
  for (int i = 0; i < t->at->rank; i++) box[i] = i < t->at->rank - 1 ? 1 : lanes;
  const int64_t *offsets =
      layout_points_table(t->context, box, t->at->rank, t->at->map->outputs[0], NULL);
  if (!offsets) return false;
  split_lanes(t, offsets);
  choose_waves(t);
  return true;
}

// ---- Expressions -------------------------------------------------------------------------------

static const LayoutExpr *bit_of(Context *context, const LayoutExpr *e, int bit) {
  return layout_by(context, LAYOUT_AND,
                   layout_binary(context, LAYOUT_SHR, e, layout_const(context, bit)), 1);
}

// (e >> from) mod 2^bits
static const LayoutExpr *bits_of(Context *context, const LayoutExpr *e, int from, int bits) {
  e = layout_by(context, LAYOUT_DIV, e, (int64_t)1 << from);
  return layout_by(context, LAYOUT_MOD, e, (int64_t)1 << bits);
}

// The lane of a phase to which word number x is served.
static const LayoutExpr *lane_of(const BankSchedule *t, const LayoutExpr *x) {
  Context *context = t->context;
  const LayoutExpr *lane = layout_const(context, 0);
  bool even = true;
  for (int i = 1; i < t->count; i++) even = even && t->steps[i].tag == t->steps[0].tag << i;
  if (even && t->count) return layout_by(context, LAYOUT_MUL, x, (int64_t)t->steps[0].tag);
  for (int i = 0; i < t->count; i++)
    lane = layout_binary(
        context, LAYOUT_XOR, lane,
        layout_by(context, LAYOUT_MUL, bit_of(context, x, i), (int64_t)t->steps[i].tag));
  return lane;
}

static const LayoutExpr *wave_of(const BankSchedule *t, const LayoutExpr *x) {
  const LayoutExpr *wave = layout_const(t->context, 0);
  int from = 0, bits = __builtin_popcountll(t->later), at = 0;
  while (t->later && !(t->later >> from & 1)) from++;
  if (t->later == (((uint64_t)1 << bits) - 1) << from)
    return from + bits == t->count ? layout_by(t->context, LAYOUT_DIV, x, (int64_t)1 << from)
                                   : bits_of(t->context, x, from, bits);
  for (int i = 0; i < t->whole; i++)
    if (t->later >> i & 1)
      wave = layout_binary(
          t->context, LAYOUT_ADD, wave,
          layout_by(t->context, LAYOUT_MUL, bit_of(t->context, x, i), (int64_t)1 << at++));
  return wave;
}

// The offset that the lane reads; positions are the first axes.
static const LayoutExpr *wanted_by(const BankSchedule *t, const LayoutExpr *lane) {
  const LayoutExpr *axes[MAX_RANK] = {0};
  axes[t->at->rank - 1] = lane;
  return layout_expr_substitute(t->context, t->at->map->outputs[0], axes, t->at->rank);
}

// ---- Goals ------------------------------------------------------------------------------------

// (positions …, phase, word x < 2^words) -> (positions …, phase, index in the unit, group, wave)
static const Layout *table_layout(const BankSchedule *t, int words, bool within) {
  Context *context = t->context;
  const LayoutExpr *shape[MAX_RANK], *physical[MAX_RANK], *outputs[MAX_RANK];
  int positions = t->at->rank - 1, count = positions + 1, inside = t->unit_bits - t->granule_bits;
  const LayoutExpr *phase = layout_axis(context, positions);
  const LayoutExpr *x = layout_axis(context, positions + 1);
  for (int i = 0; i < positions; i++) shape[i] = t->at->shape[i];
  shape[positions] = layout_const(context, t->at->extents[positions] / t->phase);
  shape[positions + 1] = layout_const(context, (int64_t)1 << words);
  for (int i = 0; i <= positions; i++) {
    physical[i] = shape[i];
    outputs[i] = layout_axis(context, i);
  }
  const LayoutExpr *first = layout_by(context, LAYOUT_MUL, phase, t->phase);
  const LayoutExpr *offset = wanted_by(t, layout_binary(context, LAYOUT_ADD, first, lane_of(t, x)));
  if (within && inside) {
    physical[count] = layout_const(context, (int64_t)1 << inside);
    outputs[count++] = bits_of(context, offset, t->granule_bits, inside);
  }
  physical[count] = layout_const(context, (int64_t)1 << t->bank_bits);
  outputs[count++] = bits_of(context, offset, t->unit_bits, t->bank_bits);
  physical[count] = layout_const(context, (int64_t)1 << __builtin_popcountll(t->later));
  outputs[count++] = wave_of(t, x);
  const IndexMap *map = index_map_new(context, positions + 2, NULL, count, outputs, NULL, NULL, 0);
  return layout_try(context, map, shape, physical, (LayoutFacts){0});
}

// Injective, or bijective where the layout is as large as its physical shape.
static bool show_one_to_one(Certificate *c, const Layout *layout) {
  int64_t positions, elements;
  if (!layout || !layout_physical_size(layout, &positions) ||
      !layout_logical_size(layout, &elements))
    return false;
  LayoutQuestion q = {positions == elements ? LAYOUT_ASK_BIJECTIVE : LAYOUT_ASK_INJECTIVE, layout};
  LayoutAnswer answer = layout_ask(c->context, &q);
  return answer.verdict == VERDICT_YES && certificate_add(c, &q, &answer);
}

// Every lane reads the word of the lane that the table serves instead of it.
static bool show_same_words(Certificate *c, const BankSchedule *t) {
  const LayoutExpr *axes[2 * MAX_RANK];
  goal_begin_box(c, t->at, axes);
  const LayoutExpr *lane = axes[t->at->rank - 1], *served = lane;
  for (int i = 0; i < t->same_count; i++) {
    const LayoutExpr *bit = bit_of(t->context, lane, log_of((int64_t)t->same[i]));
    served =
        goal_op(c, LAYOUT_XOR, served, layout_by(t->context, LAYOUT_MUL, bit, (int64_t)t->same[i]));
  }
  const LayoutExpr *word = goal_number(c, (int64_t)1 << t->granule_bits);
  goal_pair(c, "word", 0, goal_op(c, LAYOUT_DIV, wanted_by(t, lane), word),
            goal_op(c, LAYOUT_DIV, wanted_by(t, served), word));
  return goal_show(c);
}

// The words of a table without indices in the unit all have one index in the unit.
static bool show_same_index(Certificate *c, const BankSchedule *t) {
  const LayoutExpr *axes[2 * MAX_RANK];
  const Layout *table = table_layout(t, t->whole, false);
  if (!table) return false;
  goal_begin_box(c, table, axes);
  const LayoutExpr *first = layout_by(t->context, LAYOUT_MUL, axes[table->rank - 2], t->phase);
  const LayoutExpr *lane = goal_op(c, LAYOUT_ADD, first, lane_of(t, axes[table->rank - 1]));
  int inside = t->unit_bits - t->granule_bits;
  goal_pair(c, "place", 0, bits_of(t->context, wanted_by(t, lane), t->granule_bits, inside),
            bits_of(t->context, wanted_by(t, first), t->granule_bits, inside));
  return goal_show(c);
}

static bool show_access(Certificate *c, BankSchedule *t) {
  if (!t->at || !read_steps(t) || t->at->rank + 3 > MAX_RANK) return false;
  if (t->same_count && !show_same_words(c, t)) return false;
  if (!show_one_to_one(c, table_layout(t, t->count, true))) return false;
  return !t->later || t->unit_bits == t->granule_bits ||
         (show_same_index(c, t) && show_one_to_one(c, table_layout(t, t->whole, false)));
}

// The swizzle is a bijection of its 2^bits offsets, which keeps units whole and in order.
static bool show_map(Certificate *c, const LayoutSwizzle *swizzle, int unit_bits) {
  const LayoutExpr *size = goal_number(c, (int64_t)1 << swizzle->bits), *axes[1];
  const LayoutExpr *map = swizzle->map->outputs[0];
  const Layout *block = layout_try(c->context, swizzle->map, &size, &size, (LayoutFacts){0});
  if (!show_one_to_one(c, block)) return false;
  if (!unit_bits) return true;
  goal_begin_box(c, block, axes);
  const LayoutExpr *inside = bits_of(c->context, axes[0], 0, unit_bits);
  const LayoutExpr *first = goal_op(c, LAYOUT_SUB, axes[0], inside);
  goal_pair(c, "p", 0, map, goal_op(c, LAYOUT_ADD, goal_at(c, map, &first, 1), inside));
  return goal_show(c);
}

// The swizzle is a bijection, and every access has a bank schedule that meets its bound. There is
// no certificate where an access does not meet it: the swizzle is the best of all that were tried.
bool swizzle_certificate(Certificate *c, const LayoutQuestion *q, const LayoutAnswer *answer) {
  const LayoutSwizzle *swizzle = &q->swizzle;
  const char *problem;
  int unit_bits = 0, granules[64];
  LayoutBanks banks = q->banks;
  if (!swizzle->layout || q->access_count > 64) return false;
  for (int k = 0; k < q->access_count; k++) {
    int64_t granule = MAX_OF(layout_access_width(&q->accesses[k], banks), banks.bank_bytes * 8);
    granules[k] = log_of(granule / banks.element_bits);
    unit_bits = MAX_OF(unit_bits, granules[k]);
    if (swizzle->waves[k] != swizzle->bound[k]) return false;
  }
  int64_t row = banks.bank_count * banks.bank_bytes * 8 / banks.element_bits;
  bool shown = show_map(c, swizzle, unit_bits);
  for (int k = 0; k < q->access_count && shown; k++) {
    const LayoutAccess *access = &q->accesses[k];
    BankSchedule t = {
        .context = c->context,
        .at = layout_access_offsets(c->context, swizzle->layout, access, banks, &problem),
        .phase = layout_access_phase(access, banks),
        .unit_bits = unit_bits,
        .granule_bits = granules[k],
        .bank_bits = MAX_OF(log_of(row) - unit_bits, 0)};
    shown = show_access(c, &t);
  }
  return shown;
}
