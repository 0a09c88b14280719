// SPDX-License-Identifier: Apache-2.0
// Certificates about sets of places: the copies of elements, the words that lanes want. What is
// said of a set is written as a truth value of each of its members.
#include "layout/proofs/equations.h"
#include "layout/operations/operations.h"

enum { MAX_COPIES = 64 };

// ---- Copies ------------------------------------------------------------------------------------

static bool copy_count(const IndexMap *map, int64_t *count) {
  *count = 1;
  for (int i = 0; i < map->replica_count; i++)
    if (!mul_fits(*count, map->replicas[i], count)) return false;
  return *count <= MAX_COPIES;
}

static void copy_at(const IndexMap *map, int64_t ordinal, int64_t *out) {
  for (int i = map->replica_count - 1; i >= 0; i--) {
    out[i] = ordinal % map->replicas[i];
    ordinal /= map->replicas[i];
  }
}

// Whether one of b's copies of the element lies at a's place.
static const LayoutExpr *is_among(const EqualityGoal *e, const Layout *a, const IndexMap *b,
                                  int64_t copies) {
  const LayoutExpr *among = equality_number(e, 0), *axes[2 * MAX_RANK];
  int64_t copy[MAX_RANK];
  for (int64_t k = 0; k < copies; k++) {
    const LayoutExpr *here = equality_number(e, 1);
    copy_at(b, k, copy);
    for (int i = 0; i < a->rank + b->replica_count; i++)
      axes[i] = i < a->rank ? layout_axis(e->context, i) : equality_number(e, copy[i - a->rank]);
    for (int i = 0; i < a->physical_rank; i++) {
      const LayoutExpr *there = equality_at(e, b->outputs[i], axes, a->rank + b->replica_count);
      const LayoutExpr *same = equality_op(e, LAYOUT_EQ, a->map->outputs[i], there);
      here = i ? equality_op(e, LAYOUT_BOTH, here, same) : same;
    }
    among = k ? equality_op(e, LAYOUT_EITHER, among, here) : here;
  }
  return among;
}

// a's copies are among b's, by saying which one it is: that of the inverse of b's copies.
static const char *among_by_inverse(Context *context, const Layout *a, const Layout *b) {
  const LayoutExpr *axes[2 * MAX_RANK], *index[2 * MAX_RANK];
  const Layout *copies = layout_of_copies(context, b);
  LayoutInverse inverse;
  if (copies->rank != layout_box_rank(b) ||
      layout_inverse(context, copies, &inverse).verdict != VERDICT_YES)
    return NULL;
  EqualityGoal e = equality_begin(context, a->facts);
  equality_box(&e, a, axes);
  for (int i = 0; i < copies->rank; i++)
    index[i] = i < b->rank ? axes[i]
                           : equality_let(&e, equality_at(&e, inverse.map->outputs[i],
                                                          a->map->outputs, a->physical_rank));
  for (int i = b->rank; i < copies->rank; i++) {
    const LayoutExpr *low = equality_op(&e, LAYOUT_LE, equality_number(&e, 0), index[i]);
    const LayoutExpr *high = equality_op(&e, LAYOUT_LT, index[i], copies->shape[i]);
    equality_pair(&e, "inside", i, equality_op(&e, LAYOUT_BOTH, low, high), equality_number(&e, 1));
  }
  for (int i = 0; i < a->physical_rank; i++)
    equality_pair(&e, "p", i, a->map->outputs[i],
                  equality_at(&e, b->map->outputs[i], index, copies->rank));
  return equality_finish(&e);
}

static const char *among_by_list(Context *context, const Layout *a, const Layout *b,
                                 const int64_t *witness) {
  const LayoutExpr *axes[2 * MAX_RANK];
  int64_t copies;
  if (!copy_count(b->map, &copies)) return NULL;
  EqualityGoal e = equality_begin(context, a->facts);
  equality_box(&e, a, axes);
  equality_pair(&e, "among", 0, is_among(&e, a, b->map, copies), equality_number(&e, 1));
  e.goal->yes = !witness;
  e.goal->at = witness;
  return equality_finish(&e);
}

static const char *among(Context *context, const Layout *a, const Layout *b) {
  const char *text = among_by_inverse(context, a, b);
  return text ? text : among_by_list(context, a, b, NULL);
}

// Some copy of the element at which the answer is no lies where the other has none.
static const char *not_among(Context *context, const Layout *a, const Layout *b,
                             const int64_t *element) {
  int64_t index[2 * MAX_RANK], copies;
  const char *text = NULL;
  if (!copy_count(a->map, &copies)) return NULL;
  memcpy(index, element, sizeof *index * (size_t)a->rank);
  for (int64_t k = 0; k < copies && !text; k++) {
    copy_at(a->map, k, index + a->rank);
    text = among_by_list(context, a, b, index);
  }
  return text;
}

const char *layout_copies_certificate(Context *context, const Layout *a, const Layout *b,
                                      const LayoutAnswer *answer) {
  if (a->physical_rank != b->physical_rank || a->rank != b->rank) return NULL;
  if (answer->verdict == VERDICT_YES) {
    const char *there = among(context, a, b);
    return there ? certificate_pair(context, there, among(context, b, a)) : NULL;
  }
  if (answer->verdict == VERDICT_UNDECIDED || !answer->witness || !a->is_static) return NULL;
  const char *text = not_among(context, a, b, answer->witness);
  return text ? text : not_among(context, b, a, answer->witness);
}

static bool same_position(const Layout *a, const int64_t *x, const int64_t *y) {
  int64_t p[MAX_RANK], q[MAX_RANK];
  return index_map_apply_copy(a->map, x, x + a->rank, p) &&
         index_map_apply_copy(a->map, y, y + a->rank, q) &&
         !memcmp(p, q, sizeof *p * (size_t)a->physical_rank);
}

bool layout_colliding_copies(const Layout *a, const LayoutAnswer *answer, int64_t *x, int64_t *y) {
  int64_t copies;
  if (!answer->witness || !answer->witness2 || !copy_count(a->map, &copies)) return false;
  memcpy(x, answer->witness, sizeof *x * (size_t)a->rank);
  memcpy(y, answer->witness2, sizeof *y * (size_t)a->rank);
  for (int64_t k = 0; k < copies * copies; k++) {
    copy_at(a->map, k / copies, x + a->rank);
    copy_at(a->map, k % copies, y + a->rank);
    if (same_position(a, x, y)) return true;
  }
  return false;
}

// ---- Banks -------------------------------------------------------------------------------------

// The words that a lane wants: `first` to `last`.
typedef struct Words {
  const LayoutExpr *first, *last;
} Words;

static Words words_of(const EqualityGoal *e, const LayoutExpr *offset, LayoutBanks banks,
                      int64_t width) {
  const LayoutExpr *word = equality_number(e, banks.bank_bytes * 8);
  const LayoutExpr *bit =
      equality_op(e, LAYOUT_MUL, offset, equality_number(e, banks.element_bits));
  const LayoutExpr *end = equality_op(e, LAYOUT_ADD, bit, equality_number(e, width - 1));
  return (Words){equality_op(e, LAYOUT_DIV, bit, word), equality_op(e, LAYOUT_DIV, end, word)};
}

// Over the axes (positions …, row of lanes, lane, other lane, word, other word) of the box.
typedef struct Conflict {
  EqualityGoal e;
  const LayoutExpr *truth, *lane[2], *word[2];
} Conflict;

static const LayoutExpr *both(const EqualityGoal *e, const LayoutExpr *a, const LayoutExpr *b) {
  return equality_op(e, LAYOUT_BOTH, a, b);
}

static Conflict conflict(Context *context, const Layout *offsets, const LayoutAccess *access,
                         LayoutBanks banks) {
  Conflict c = {.e = equality_begin(context, offsets->facts)};
  EqualityGoal *e = &c.e;
  const LayoutExpr *axes[2][2 * MAX_RANK], *row, *stays[2];
  int positions = offsets->rank - 1;
  int64_t phase = layout_access_phase(access, banks), width = layout_access_width(access, banks);
  int64_t lanes = access->extents[positions], word = banks.bank_bytes * 8;
  int64_t most = word % width == 0 && access->vector < 2 ? 1 : (width + word - 2) / word + 1;
  for (int i = 0; i < positions; i++)
    axes[0][i] = axes[1][i] = equality_axis(e, "x", offsets->shape[i]);
  row = equality_axis(e, "x", equality_number(e, (lanes + phase - 1) / phase));
  row = equality_op(e, LAYOUT_MUL, row, equality_number(e, phase));
  for (int k = 0; k < 2; k++)
    axes[k][positions] =
        equality_op(e, LAYOUT_ADD, row, equality_axis(e, "x", equality_number(e, phase)));
  for (int k = 0; k < 2; k++) c.word[k] = equality_axis(e, "x", equality_number(e, most));
  for (int k = 0; k < 2; k++) {
    c.lane[k] = axes[k][positions];
    Words words =
        words_of(e, equality_at(e, offsets->map->outputs[0], axes[k], offsets->rank), banks, width);
    c.word[k] = equality_op(e, LAYOUT_ADD, words.first, c.word[k]);
    stays[k] = equality_op(e, LAYOUT_LE, c.word[k], words.last);
    if (lanes % phase)
      stays[k] = both(e, equality_op(e, LAYOUT_LT, c.lane[k], equality_number(e, lanes)), stays[k]);
  }
  const LayoutExpr *count = equality_number(e, banks.bank_count);
  const LayoutExpr *one_bank =
      equality_op(e, LAYOUT_EQ, equality_op(e, LAYOUT_MOD, c.word[0], count),
                  equality_op(e, LAYOUT_MOD, c.word[1], count));
  c.truth = both(e, both(e, stays[0], stays[1]),
                 both(e, equality_op(e, LAYOUT_NE, c.word[0], c.word[1]), one_bank));
  return c;
}

// Which words of the two lanes of the answer are in conflict, as a point of the box.
static bool conflict_at(const Conflict *c, const LayoutAnswer *answer, int64_t phase,
                        int64_t *out) {
  int positions = answer->witness_rank - 1, n = positions;
  int64_t most = c->e.goal->axes.items[positions + 3].extent->value, truth = 0;
  memcpy(out, answer->witness, sizeof *out * (size_t)positions);
  out[n++] = answer->witness[positions] / phase;
  out[n++] = answer->witness[positions] % phase;
  out[n++] = answer->witness2[positions] % phase;
  for (int64_t k = 0; k < most * most && !truth; k++) {
    out[n] = k / most;
    out[n + 1] = k % most;
    if (!layout_expr_value(c->truth, out, NULL, 0, &truth)) return false;
  }
  return truth;
}

const char *layout_conflicts_certificate(Context *context, const Layout *layout,
                                         const LayoutAccess *access, LayoutBanks banks,
                                         const LayoutAnswer *answer) {
  const char *problem;
  int64_t witness[2 * MAX_RANK];
  if (answer->verdict == VERDICT_UNDECIDED || !layout->is_static) return NULL;
  const Layout *offsets = layout_access_offsets(context, layout, access, banks, &problem);
  if (!offsets || offsets->rank + 5 > MAX_RANK) return NULL;
  Conflict c = conflict(context, offsets, access, banks);
  equality_pair(&c.e, "conflict", 0, c.truth, equality_number(&c.e, 0));
  c.e.goal->yes = answer->verdict == VERDICT_YES;
  bool seen = c.e.goal->yes || conflict_at(&c, answer, layout_access_phase(access, banks), witness);
  if (!c.e.goal->yes) c.e.goal->at = witness;
  return seen ? equality_finish(&c.e) : equality_drop(&c.e);
}
