// SPDX-License-Identifier: Apache-2.0
// Writes goals about sets: the physical indices of the copies of an element, the words that lanes
// read. A statement about a set is written as a truth value of each of its members.
#include "layout/certificates/certificate.h"
#include "layout/operations/operations.h"

enum { MAX_COPIES = 64, MAX_COLLIDING_COPIES = 1024 };

// ---- Copies ------------------------------------------------------------------------------------

static bool copy_count(const IndexMap *map, int64_t most, int64_t *count) {
  *count = 1;
  for (int i = 0; i < map->replica_count; i++)
    if (!mul_fits(*count, map->replicas[i], count)) return false;
  return *count <= most;
}

static void copy_at(const IndexMap *map, int64_t ordinal, int64_t *out) {
  for (int i = map->replica_count - 1; i >= 0; i--) {
    out[i] = ordinal % map->replicas[i];
    ordinal /= map->replicas[i];
  }
}

// Whether one of b's copies of the element has the physical index of a.
static const LayoutExpr *is_among(const Certificate *c, const Layout *a, const IndexMap *b,
                                  int64_t copies) {
  const LayoutExpr *among = goal_number(c, 0), *axes[2 * MAX_RANK];
  int64_t copy[MAX_RANK];
  for (int64_t k = 0; k < copies; k++) {
    const LayoutExpr *here = goal_number(c, 1);
    copy_at(b, k, copy);
    for (int i = 0; i < a->rank + b->replica_count; i++)
      axes[i] = i < a->rank ? layout_axis(c->context, i) : goal_number(c, copy[i - a->rank]);
    for (int i = 0; i < a->physical_rank; i++) {
      const LayoutExpr *there = goal_at(c, b->outputs[i], axes, a->rank + b->replica_count);
      const LayoutExpr *same = goal_op(c, LAYOUT_EQ, a->map->outputs[i], there);
      here = i ? goal_op(c, LAYOUT_BOTH, here, same) : same;
    }
    among = k ? goal_op(c, LAYOUT_EITHER, among, here) : here;
  }
  return among;
}

// Every copy of an element of a is the copy of b that the inverse of b's copies says.
static bool among_by_inverse(Certificate *c, const Layout *a, const Layout *b) {
  const LayoutExpr *axes[2 * MAX_RANK], *index[2 * MAX_RANK];
  const Layout *copies = layout_of_copies(c->context, b);
  LayoutInverse inverse;
  if (copies->rank != layout_box_rank(b) ||
      layout_inverse(c->context, copies, &inverse).verdict != VERDICT_YES)
    return false;
  goal_begin_box(c, a, axes);
  for (int i = 0; i < copies->rank; i++)
    index[i] =
        i < b->rank
            ? axes[i]
            : goal_let(c, goal_at(c, inverse.map->outputs[i], a->map->outputs, a->physical_rank));
  for (int i = b->rank; i < copies->rank; i++) {
    const LayoutExpr *low = goal_op(c, LAYOUT_LE, goal_number(c, 0), index[i]);
    const LayoutExpr *high = goal_op(c, LAYOUT_LT, index[i], copies->shape[i]);
    goal_pair(c, "inside", i, goal_op(c, LAYOUT_BOTH, low, high), goal_number(c, 1));
  }
  for (int i = 0; i < a->physical_rank; i++)
    goal_pair(c, "p", i, a->map->outputs[i], goal_at(c, b->map->outputs[i], index, copies->rank));
  return goal_show(c);
}

// Every copy of an element of a is one of b's copies; with a witness, the one at that index is not.
static bool among_by_list(Certificate *c, const Layout *a, const Layout *b,
                          const int64_t *witness) {
  const LayoutExpr *axes[2 * MAX_RANK];
  int64_t copies;
  if (!copy_count(b->map, MAX_COPIES, &copies)) return false;
  goal_begin_box(c, a, axes);
  goal_pair(c, "among", 0, is_among(c, a, b->map, copies), goal_number(c, 1));
  c->goal->yes = !witness;
  c->goal->at = witness;
  return goal_show(c);
}

static bool among(Certificate *c, const Layout *a, const Layout *b) {
  bool before = c->refused;
  if (!among_by_inverse(c, a, b)) {
    c->refused = before;
    return among_by_list(c, a, b, NULL);
  }
  return true;
}

// Some copy of the element has a physical index that no copy of it has in b.
static bool not_among(Certificate *c, const Layout *a, const Layout *b, const int64_t *element) {
  int64_t index[2 * MAX_RANK], copies;
  bool shown = false;
  if (!copy_count(a->map, MAX_COPIES, &copies)) return false;
  memcpy(index, element, sizeof *index * (size_t)a->rank);
  for (int64_t k = 0; k < copies && !shown; k++) {
    copy_at(a->map, k, index + a->rank);
    shown = among_by_list(c, a, b, index);
  }
  return shown;
}

bool copies_certificate(Certificate *c, const LayoutQuestion *q, const LayoutAnswer *answer) {
  const Layout *a = q->a, *b = q->b;
  if (a->physical_rank != b->physical_rank || a->rank != b->rank) return false;
  if (answer->verdict == VERDICT_YES) return among(c, a, b) && among(c, b, a);
  if (!answer->witness || !a->is_static) return false;
  bool before = c->refused;
  bool shown = not_among(c, a, b, answer->witness) || not_among(c, b, a, answer->witness);
  if (shown) c->refused = before;
  return shown;
}

static bool same_position(const Layout *a, const int64_t *x, const int64_t *y) {
  int64_t p[MAX_RANK], q[MAX_RANK];
  return index_map_apply_copy(a->map, x, x + a->rank, p) &&
         index_map_apply_copy(a->map, y, y + a->rank, q) &&
         !memcmp(p, q, sizeof *p * (size_t)a->physical_rank);
}

bool layout_searches_copies(const Layout *a) {
  int64_t copies;
  return copy_count(a->map, MAX_COLLIDING_COPIES, &copies);
}

bool layout_colliding_copies(const Layout *a, const LayoutAnswer *answer, int64_t *x, int64_t *y) {
  int64_t copies;
  if (!answer->witness || !answer->witness2 || !copy_count(a->map, MAX_COLLIDING_COPIES, &copies))
    return false;
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

// The words that a lane reads: `first` to `last`.
typedef struct Words {
  const LayoutExpr *first, *last;
} Words;

static Words words_of(const Certificate *c, const LayoutExpr *offset, LayoutBanks banks,
                      int64_t width) {
  const LayoutExpr *word = goal_number(c, banks.bank_bytes * 8);
  const LayoutExpr *bit = goal_op(c, LAYOUT_MUL, offset, goal_number(c, banks.element_bits));
  const LayoutExpr *end = goal_op(c, LAYOUT_ADD, bit, goal_number(c, width - 1));
  return (Words){goal_op(c, LAYOUT_DIV, bit, word), goal_op(c, LAYOUT_DIV, end, word)};
}

static const LayoutExpr *both(const Certificate *c, const LayoutExpr *a, const LayoutExpr *b) {
  return goal_op(c, LAYOUT_BOTH, a, b);
}

// Whether two lanes read different words of one bank, over the axes (positions ..., row of lanes,
// lane, other lane, word, other word) of the goal that this begins.
static const LayoutExpr *conflict(Certificate *c, const Layout *offsets, const LayoutAccess *access,
                                  LayoutBanks banks) {
  const LayoutExpr *axes[2][2 * MAX_RANK], *row, *stays[2], *lane[2], *words[2];
  int positions = offsets->rank - 1;
  int64_t phase = layout_access_phase(access, banks), width = layout_access_width(access, banks);
  int64_t lanes = access->extents[positions], word = banks.bank_bytes * 8;
  int64_t most = word % width == 0 && access->vector < 2 ? 1 : (width + word - 2) / word + 1;
  goal_begin(c, GOAL_EQUAL, offsets->facts);
  for (int i = 0; i < positions; i++) axes[0][i] = axes[1][i] = goal_axis(c, offsets->shape[i]);
  row = goal_axis(c, goal_number(c, (lanes + phase - 1) / phase));
  row = goal_op(c, LAYOUT_MUL, row, goal_number(c, phase));
  for (int k = 0; k < 2; k++)
    axes[k][positions] = lane[k] = goal_op(c, LAYOUT_ADD, row, goal_axis(c, goal_number(c, phase)));
  for (int k = 0; k < 2; k++) words[k] = goal_axis(c, goal_number(c, most));
  for (int k = 0; k < 2; k++) {
    const LayoutExpr *offset = goal_at(c, offsets->map->outputs[0], axes[k], offsets->rank);
    Words read = words_of(c, offset, banks, width);
    words[k] = goal_op(c, LAYOUT_ADD, read.first, words[k]);
    stays[k] = goal_op(c, LAYOUT_LE, words[k], read.last);
    if (lanes % phase)
      stays[k] = both(c, goal_op(c, LAYOUT_LT, lane[k], goal_number(c, lanes)), stays[k]);
  }
  const LayoutExpr *count = goal_number(c, banks.bank_count);
  const LayoutExpr *one_bank = goal_op(c, LAYOUT_EQ, goal_op(c, LAYOUT_MOD, words[0], count),
                                       goal_op(c, LAYOUT_MOD, words[1], count));
  return both(c, both(c, stays[0], stays[1]),
              both(c, goal_op(c, LAYOUT_NE, words[0], words[1]), one_bank));
}

// The point of the box at which the two lanes of the answer read words that are in conflict.
static bool conflict_at(const Certificate *c, const LayoutExpr *truth, const LayoutAnswer *answer,
                        int64_t phase, int64_t *out) {
  int positions = answer->witness_rank - 1, n = positions;
  int64_t most = c->goal->axes.items[positions + 3].extent->value, holds = 0;
  memcpy(out, answer->witness, sizeof *out * (size_t)positions);
  out[n++] = answer->witness[positions] / phase;
  out[n++] = answer->witness[positions] % phase;
  out[n++] = answer->witness2[positions] % phase;
  for (int64_t k = 0; k < most * most && !holds; k++) {
    out[n] = k / most;
    out[n + 1] = k % most;
    if (!layout_expr_value(truth, out, NULL, 0, &holds)) return false;
  }
  return holds;
}

// No two lanes are in conflict, or two that are; the certificate does not show how many.
bool conflicts_certificate(Certificate *c, const LayoutQuestion *q, const LayoutAnswer *answer) {
  const char *problem;
  int64_t witness[2 * MAX_RANK];
  bool yes = answer->verdict == VERDICT_YES;
  if (!q->a->is_static || (!yes && !answer->witness2)) return false;
  const Layout *offsets = layout_access_offsets(c->context, q->a, q->accesses, q->banks, &problem);
  if (!offsets || offsets->rank + 5 > MAX_RANK) return false;
  const LayoutExpr *truth = conflict(c, offsets, q->accesses, q->banks);
  goal_pair(c, "conflict", 0, truth, goal_number(c, 0));
  c->goal->yes = yes;
  if (yes) return goal_show(c);
  c->goal->at = witness;
  bool seen = conflict_at(c, truth, answer, layout_access_phase(q->accesses, q->banks), witness);
  return seen ? goal_show(c) : goal_drop(c);
}
