// SPDX-License-Identifier: Apache-2.0
// Counts bank conflicts on symbolic extents, for all values of the symbols at once. Relative to the
// first lane an offset is a polynomial. Where its coefficients other than the constant are
// multiples of a row of banks, the constant alone determines the bank, and two words are distinct
// where their difference is proved to differ from 0.
#include "layout/operations/operations.h"
#include "layout/points/points.h"
#include "layout/symbolic/symbolic.h"

enum { MAX_WANTS = 4096 };

typedef struct SymbolicRequest { // the word row·(words of a row of banks) + word
  Poly row;
  int64_t word, lane;
} SymbolicRequest;

typedef struct Symbolic {
  Polys polys;
  LayoutBanks banks;
  int64_t width, phase, lanes;
  const LayoutExpr *offset; // in memory, over the logical axes
  const LayoutAccess *access;
  SymbolicRequest wants[MAX_WANTS];
  int count;
  LayoutConflicts *out;
  int64_t first, second;
  const char *problem;
} Symbolic;

// p = by·row + rest with a constant rest. False where a coefficient is no multiple of `by`.
static bool split_row(Symbolic *s, Poly p, int64_t by, Poly *row, int64_t *rest) {
  *rest = p.constant;
  *row = poly_exact(s->polys.arena, poly_plus(p, -p.constant), by);
  return poly_fits(*row);
}

// The first bit that a lane requests.
static Poly first_bit(Symbolic *s, int64_t ordinal) {
  const LayoutExpr *axes[MAX_RANK];
  int64_t index[MAX_RANK], at[MAX_RANK];
  const IndexMap *lanes = s->access->lanes;
  layout_index_at(s->access->extents, lanes->input_count, ordinal, index);
  if (!index_map_apply(lanes, index, at)) return POLY_NONE;
  for (int i = 0; i < lanes->output_count; i++) axes[i] = layout_const(s->polys.context, at[i]);
  const LayoutExpr *e =
      layout_expr_substitute(s->polys.context, s->offset, axes, lanes->output_count);
  Poly p = layout_poly_of(&s->polys, e), zero = poly_const(0);
  return layout_poly_linear(&s->polys, p, s->banks.element_bits, zero, 0);
}

static bool add_wants(Symbolic *s, Poly base, int64_t base_rest, int64_t ordinal) {
  int64_t word = s->banks.bank_bytes * 8, rest;
  Poly bit = first_bit(s, ordinal), row;
  if (!poly_fits(bit) || !split_row(s, layout_poly_linear(&s->polys, bit, 1, base, -1),
                                    word * s->banks.bank_count, &row, &rest))
    return false;
  rest += base_rest;
  for (int64_t w = floor_div(rest, word); w <= floor_div(rest + s->width - 1, word); w++) {
    if (s->count == MAX_WANTS) return false;
    s->wants[s->count++] = (SymbolicRequest){row, w, ordinal};
  }
  return true;
}

// Whether two requests are for the same word.
static Verdict same_word(Symbolic *s, const SymbolicRequest *a, const SymbolicRequest *b) {
  Poly rows =
      layout_poly_linear(&s->polys, a->row, s->banks.bank_count, b->row, -s->banks.bank_count);
  Poly word = poly_const(a->word - b->word);
  Poly one = poly_const(1);
  Poly difference = layout_poly_linear(&s->polys, rows, 1, word, 1);
  int64_t value;
  if (!poly_fits(difference)) return VERDICT_UNDECIDED;
  if (poly_is_const(difference, &value)) return value ? VERDICT_NO : VERDICT_YES;
  Poly above = layout_poly_linear(&s->polys, difference, 1, one, -1);
  Poly below = layout_poly_linear(&s->polys, difference, -1, one, -1);
  bool apart = (poly_fits(above) && poly_nonnegative(above)) ||
               (poly_fits(below) && poly_nonnegative(below));
  return apart ? VERDICT_NO : VERDICT_UNDECIDED;
}

// The number of distinct words among the requests for one bank, from number `at` on. Removes these
// requests.
static bool count_bank(Symbolic *s, int at, bool *done, int64_t *words) {
  int kept[MAX_WANTS], count = 0;
  int64_t bank = floor_mod(s->wants[at].word, s->banks.bank_count);
  for (int i = at; i < s->count; i++) {
    bool known = false;
    if (done[i] || floor_mod(s->wants[i].word, s->banks.bank_count) != bank) continue;
    done[i] = true;
    for (int j = 0; j < count && !known; j++) {
      Verdict same = same_word(s, &s->wants[i], &s->wants[kept[j]]);
      if (same == VERDICT_UNDECIDED) return false;
      known = same == VERDICT_YES;
    }
    if (!known) kept[count++] = i;
  }
  *words = count;
  if (count > 1 && count > s->out->degree) {
    s->out->bank = bank;
    s->first = s->wants[kept[0]].lane;
    s->second = s->wants[kept[1]].lane;
  }
  s->out->degree = MAX_OF(s->out->degree, count);
  s->out->words += count;
  return true;
}

static const char *serve(Symbolic *s, int64_t begin, int64_t end) {
  bool done[MAX_WANTS] = {false};
  Poly base = first_bit(s, begin), row;
  int64_t rest, degree = 0, words;
  if (!poly_fits(base) || !split_row(s, base, s->banks.bank_bytes * 8, &row, &rest))
    return "a phase of lanes does not begin at a known bit of a word";
  s->count = 0;
  for (int64_t lane = begin; lane < end; lane++)
    if (!add_wants(s, base, rest, lane)) return "the bank of a lane depends on the symbols";
  for (int i = 0; i < s->count; i++) {
    if (done[i]) continue;
    if (!count_bank(s, i, done, &words)) return "whether two words are one depends on the symbols";
    degree = MAX_OF(degree, words);
  }
  s->out->waves += degree;
  return NULL;
}

static const char *serve_all(Symbolic *s) {
  int64_t total;
  if (!layout_box_strides(s->access->extents, s->access->lanes->input_count, NULL, &total) ||
      total > MAX_WANTS)
    return "too many lanes and positions for symbolic extents";
  for (int64_t position = 0; position < total; position += s->lanes)
    for (int64_t lane = 0; lane < s->lanes; lane += s->phase) {
      int64_t begin = position + lane, end = position + MIN_OF(lane + s->phase, s->lanes);
      const char *problem = serve(s, begin, end);
      if (problem) return problem;
    }
  return NULL;
}

LayoutAnswer layout_symbolic_conflicts(Context *context, const Layout *memory,
                                       const LayoutAccess *access, LayoutBanks banks,
                                       LayoutConflicts *out) {
  LayoutAnswer answer = {.verdict = VERDICT_YES};
  ArenaMark mark = arena_mark(&context->scratch);
  Symbolic *s = arena_new(&context->scratch, Symbolic);
  s->polys = layout_polys_new(context, memory->facts);
  s->banks = banks;
  s->width = layout_access_width(access, banks);
  s->lanes = access->extents[access->lanes->input_count - 1];
  s->phase = out->phase = layout_access_phase(access, banks);
  s->offset = layout_offset_expr(context, memory);
  s->access = access;
  s->out = out;
  answer.reason = serve_all(s);
  if (answer.reason)
    answer.verdict = VERDICT_UNDECIDED;
  else if (out->degree > 1) {
    answer = layout_points_no(context, access->extents, access->lanes->input_count, s->first,
                              s->second, layout_bank_conflict);
    answer.level = LAYOUT_DIGITS;
  }
  arena_reset(&context->scratch, mark);
  return answer;
}
