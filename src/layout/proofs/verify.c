// SPDX-License-Identifier: Apache-2.0
// Builds that verify check every answer about small layouts: by its certificate where it has one,
// by all points where it is a count, on instances where the extents are symbolic.
#include "config.h"
#include "layout/proofs/verify.h"
#include "layout/answers/answers.h"
#include "layout/operations/operations.h"

#include <stdlib.h>

enum { MAX_POINTS = 1 << 12, MAX_EXPR = 1 << 12, MAX_WORK = 1 << 20, WORK_EACH = 1 << 8 };

// ---- When --------------------------------------------------------------------------------------

// The checker's shifts are by constants, as those of the algebra are.
static bool shifts_by_variable(const LayoutExpr *e) {
  bool found = (e->op == LAYOUT_SHL || e->op == LAYOUT_SHR) && !is_const(e->args[1]);
  for (int i = 0; i < 3 && e->args[i]; i++) found = found || shifts_by_variable(e->args[i]);
  return found;
}

bool layout_map_is_plain(const IndexMap *map) {
  bool plain = true;
  for (int i = 0; i < map->output_count && plain; i++)
    plain = layout_expr_size(map->outputs[i]) <= MAX_EXPR && !shifts_by_variable(map->outputs[i]);
  return plain;
}

// Elements times copies, places; -1: too many.
static int64_t work_of(const Layout *layout) {
  int64_t points = 1, positions = 1;
  bool fits = layout->is_static;
  for (int i = 0; i < layout_box_rank(layout) && fits; i++)
    fits = mul_fits(points, MAX_OF(layout->shape[i]->value, (int64_t)0), &points) &&
           points <= MAX_POINTS;
  for (int i = 0; i < layout->physical_rank && fits; i++)
    fits =
        mul_fits(positions, layout->physical_extents[i], &positions) && positions <= 4 * MAX_POINTS;
  return fits && layout_map_is_plain(layout->map) ? points + WORK_EACH : -1;
}

bool layout_verify_open(Context *context) {
  LayoutTable *table = PLEAT_VERIFY_EACH ? layout_table(context) : NULL;
  return table && !table->verifying && table->verified <= MAX_WORK;
}

bool layout_verify_begin(Context *context, const Layout *a, const Layout *b) {
  if (!layout_verify_open(context)) return false;
  LayoutTable *table = layout_table(context);
  int64_t work = work_of(a), more = b ? work_of(b) : 0;
  if (work < 0 || more < 0) return false;
  table->verified += work + more;
  return table->verifying = true;
}

void layout_verify_end(Context *context, const char *what, const Layout *a, bool good) {
  layout_table(context)->verifying = false;
  if (!good) bug(context, "the %s of %s is not confirmed", what, layout_text(context, a));
}

// ---- Certificates ------------------------------------------------------------------------------

// A no without a witness is of shapes or ranks, or that elements lie in several places.
static bool has_certificate(const LayoutAnswer *answer) {
  return answer->verdict == VERDICT_YES || answer->witness;
}

static LayoutAnswer ask(Context *context, LayoutAsk question, const Layout *a, const Layout *b) {
  LayoutInverse inverse;
  int64_t count;
  switch (question) {
  case LAYOUT_ASK_EQUAL: return layout_equal(context, a, b);
  case LAYOUT_ASK_IDENTITY: return layout_is_identity(context, a);
  case LAYOUT_ASK_INJECTIVE: return layout_is_injective(context, a);
  case LAYOUT_ASK_ONTO: return layout_is_onto(context, a);
  case LAYOUT_ASK_BIJECTIVE: return layout_is_bijective(context, a);
  case LAYOUT_ASK_INVERSE: return layout_inverse(context, a, &inverse);
  case LAYOUT_ASK_PADDING: break;
  }
  return layout_padding_count(context, a, &count);
}

// A yes holds for all values, a no for those that it gives.
static void verify_instances(Context *context, LayoutAsk question, const Layout *a, const Layout *b,
                             const LayoutAnswer *answer) {
  bool yes = answer->verdict == VERDICT_YES;
  if (!yes && !answer->instance_count) return;
  for (int i = 0; i < (yes ? 3 : 1); i++) {
    LayoutInstance x, y = {0};
    bool found = yes ? layout_instance(context, a, i, &x)
                     : layout_instance_at(context, a, answer->instance, answer->instance_count, &x);
    if (!found || (b && !layout_instance_at(context, b, x.values, x.count, &y))) continue;
    if (work_of(x.layout) < 0) continue;
    LayoutAnswer one = ask(context, question, x.layout, y.layout);
    bool good = one.verdict == VERDICT_UNDECIDED || one.verdict == answer->verdict ||
                question == LAYOUT_ASK_INVERSE;
    LAYOUT_VERIFY(context, layout_answer_text(context, answer), x.layout, NULL, good);
  }
}

void layout_verify_answer(Context *context, LayoutAsk question, const Layout *a, const Layout *b,
                          const LayoutAnswer *answer) {
  bool fixed = a->is_static && (!b || b->is_static);
  if (!PLEAT_VERIFY_EACH || answer->verdict == VERDICT_UNDECIDED) return;
  if (!fixed && !layout_table(context)->verifying)
    return verify_instances(context, question, a, b, answer);
  if (!has_certificate(answer)) return;
  LAYOUT_VERIFY(context, layout_answer_text(context, answer), a, b,
                layout_certificate(context, question, a, b, answer) != NULL);
}

void layout_verify_result(Context *context, const char *what, const Layout *a, const Layout *b,
                          LayoutHolds *holds, const void *answer) {
  bool fixed = a->is_static && (!b || b->is_static);
  if (!layout_verify_open(context)) return;
  for (int i = 0; i < (fixed ? 1 : 3); i++) {
    LayoutInstance x = {.layout = a}, y = {.layout = b};
    if (!fixed && (!layout_instance(context, a, i, &x) ||
                   (b && !layout_instance_at(context, b, x.values, x.count, &y))))
      continue;
    LAYOUT_VERIFY(context, what, x.layout, y.layout,
                  holds(context, x.layout, y.layout, &x, answer));
  }
}

// ---- Points ------------------------------------------------------------------------------------

static int compare_numbers(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

// The memory offsets of a box, ascending; low NULL: of all elements.
static int64_t *offsets_of(Context *context, const Layout *layout, const int64_t *low,
                           const int64_t *extent, int64_t *count) {
  const Layout *copies = layout_of_copies(context, layout_on_resource(context, layout, NULL));
  const LayoutExpr *offset = layout_offset_expr(context, copies);
  int64_t index[MAX_RANK], size = 1;
  for (int i = 0; i < copies->rank; i++)
    size *= extent && i < layout->rank ? extent[i] : copies->extents[i];
  int64_t *out = arena_array(&context->lasting, int64_t, size + 1);
  for (int64_t n = *count = 0; n < size; n++) {
    int64_t rest = n;
    for (int i = copies->rank - 1; i >= 0; i--) {
      int64_t here = extent && i < layout->rank ? extent[i] : copies->extents[i];
      index[i] = rest % here + (low && i < layout->rank ? low[i] : 0);
      rest /= here;
    }
    *count += layout_expr_value(offset, index, NULL, 0, &out[*count]);
  }
  qsort(out, (size_t)*count, sizeof *out, compare_numbers);
  return out;
}

// Whether the runs that are shown begin with this one, number `count`.
static bool shows(const LayoutRuns *runs, int64_t count, int64_t first, int64_t end) {
  return count >= runs->shown ||
         (runs->runs[count].first == first && runs->runs[count].count == end - first);
}

bool layout_verify_lines(Context *context, const Layout *layout, const int64_t *low,
                         const int64_t *extent, LayoutLineSize size, const LayoutRuns *runs) {
  int64_t count, total = 0, run_count = 0, begin = 0, end = 0, line = size.line_bytes * 8;
  const int64_t *offsets = offsets_of(context, layout, low, extent, &count);
  for (int64_t i = 0; i < count; i++) {
    int64_t bit = offsets[i] * size.element_bits + size.base_bytes * 8;
    int64_t first = bit / line, next = (bit + size.element_bits - 1) / line + 1;
    if (i && first > end && !shows(runs, run_count++, begin, end)) return false;
    if (!i || first > end) begin = end = first;
    total += next - end;
    end = next;
  }
  if (count && !shows(runs, run_count++, begin, end)) return false;
  return total == runs->total && run_count == runs->run_count;
}

bool layout_verify_padding(Context *context, const Layout *layout, const LayoutRuns *runs) {
  int64_t count, positions, total = 0, run_count = 0, next = 0;
  const int64_t *offsets = offsets_of(context, layout, NULL, NULL, &count);
  if (!layout_physical_size(layout_on_resource(context, layout, NULL), &positions)) return false;
  for (int64_t i = 0; i <= count; i++) {
    int64_t at = i < count ? offsets[i] : positions;
    if (at > next && !shows(runs, run_count++, next, at)) return false;
    total += MAX_OF(at - next, (int64_t)0);
    next = at + 1;
  }
  return total == runs->total && run_count == runs->run_count;
}

// Every offset once, ascending.
bool layout_verify_loops(Context *context, const Layout *layout, const LayoutLoops *loops) {
  const Layout *copies = layout_of_copies(context, layout_on_resource(context, layout, NULL));
  int64_t counters[MAX_RANK], index[MAX_RANK], size = 1, count, at = 0, guard;
  const int64_t *offsets = offsets_of(context, layout, NULL, NULL, &count);
  for (int i = 0; i < loops->count; i++)
    if (!mul_fits(size, loops->loops[i].extent->value, &size) || size > 64 * MAX_POINTS)
      return true;
  for (int64_t n = 0; n < size; n++) {
    int64_t rest = n, offset;
    for (int i = loops->count - 1; i >= 0; rest /= loops->loops[i--].extent->value)
      counters[i] = rest % loops->loops[i].extent->value;
    guard = 1;
    if (loops->guard && !layout_expr_value(loops->guard, counters, NULL, 0, &guard)) return false;
    if (!guard) continue;
    if (!index_map_apply(loops->index, counters, index)) return false;
    if (loops->index->output_count == copies->rank &&
        (!layout_offset(copies, index, &offset) || at >= count || offset != offsets[at]))
      return false;
    at++;
  }
  return at == count;
}

// Elements that have the same place on every resource of both layouts, which have no copies.
bool layout_verify_still(Context *context, const Layout *from, const Layout *to,
                         const LayoutCopyPlan *plan) {
  int64_t size, still = 0, index[MAX_RANK], here, there;
  if (!layout_logical_size(from, &size)) return false;
  for (int64_t n = 0; n < size; n++) {
    bool same = true;
    layout_index_at(from->extents, from->rank, n, index);
    for (int i = 0; i < plan->level_count && same; i++) {
      const LayoutCopyLevel *level = &plan->levels[i];
      if (!level->in_from || !level->in_to) {
        const Layout *part =
            layout_on_resource(context, level->in_from ? from : to, level->resource);
        same = layout_physical_size(part, &here) && here == 1;
        continue;
      }
      same = layout_offset(layout_on_resource(context, from, level->resource), index, &here) &&
             layout_offset(layout_on_resource(context, to, level->resource), index, &there) &&
             here == there;
    }
    still += same;
  }
  return plan->copies == size && plan->still == still;
}

// ---- Banks -------------------------------------------------------------------------------------

// The words that the lanes of one phase want: of one bank the most, and all.
typedef struct BankPhase {
  int64_t most, words;
} BankPhase;

static BankPhase count_words(int64_t *words, int64_t count, int64_t bank_count) {
  BankPhase phase = {0};
  qsort(words, (size_t)count, sizeof *words, compare_numbers);
  for (int64_t i = 0; i < count; i++)
    if (!i || words[i] != words[i - 1]) words[phase.words++] = words[i];
  for (int64_t i = 0; i < phase.words; i++) {
    int64_t same = 0;
    for (int64_t j = 0; j < phase.words; j++) same += (words[i] - words[j]) % bank_count == 0;
    phase.most = MAX_OF(phase.most, same);
  }
  return phase;
}

bool layout_verify_conflicts(Context *context, const Layout *layout, const LayoutAccess *access,
                             LayoutBanks banks, const LayoutConflicts *found) {
  const Layout *memory = layout_on_resource(context, layout, NULL);
  int64_t phase = layout_access_phase(access, banks), width = layout_access_width(access, banks);
  int64_t lane_index[MAX_RANK], index[MAX_RANK], offset, size = 1, word = banks.bank_bytes * 8;
  int64_t degree = 0, waves = 0, total = 0, rank = access->lanes->input_count, count = 0;
  for (int i = 0; i < rank; i++) size *= access->extents[i];
  int64_t lanes = access->extents[rank - 1];
  int64_t *words = arena_array(&context->lasting, int64_t, phase * (width / word + 2));
  for (int64_t n = 0; n < size; n++) {
    layout_index_at(access->extents, (int)rank, n, lane_index);
    if (!index_map_apply(access->lanes, lane_index, index) ||
        !layout_offset(memory, index, &offset))
      return false;
    int64_t first = offset * banks.element_bits / word;
    int64_t last = (offset * banks.element_bits + width - 1) / word;
    for (int64_t w = first; w <= last; w++) words[count++] = w;
    int64_t lane = n % lanes;
    if ((lane + 1) % phase && lane + 1 < lanes) continue;
    BankPhase seen = count_words(words, count, banks.bank_count);
    degree = MAX_OF(degree, seen.most);
    waves += seen.most;
    total += seen.words;
    count = 0;
  }
  return found->degree == degree && found->waves == waves && found->words == total;
}
