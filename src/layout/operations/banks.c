// SPDX-License-Identifier: Apache-2.0
// Counts bank conflicts. A bank serves one word at a time to all lanes that request it; lanes that
// request different words of one bank wait for each other. Lanes are served in phases, each of as
// many lanes as a full row of banks can serve (as in NVIDIA's shared memory: 32 lanes of 4 bytes,
// 16 of 8, 8 of 16).
#include "layout/operations/operations.h"
#include "layout/answers/answers.h"
#include "layout/points/points.h"

#include <stdlib.h>

const IndexMap *layout_run_lanes(Context *context, int rank, const int64_t *start, int axis,
                                 int64_t step) {
  const LayoutExpr *outputs[MAX_RANK];
  Str name = str_intern(context, "lane");
  for (int i = 0; i < rank; i++) outputs[i] = layout_const(context, start ? start[i] : 0);
  const LayoutExpr *along = layout_by(context, LAYOUT_MUL, layout_axis(context, 0), step);
  outputs[axis] = layout_binary(context, LAYOUT_ADD, along, outputs[axis]);
  return index_map_new(context, 1, &name, rank, outputs, NULL, NULL, 0);
}

const char layout_bank_conflict[] = "two lanes want different words of one bank";

// ---- One access --------------------------------------------------------------------------------

typedef struct WordRequest { // a word that a lane requests
  int64_t bank, word, lane;
} WordRequest;

static int compare_wants(const void *a, const void *b) {
  const WordRequest *x = a, *y = b;
  if (x->bank != y->bank) return x->bank < y->bank ? -1 : 1;
  if (x->word != y->word) return x->word < y->word ? -1 : 1;
  return (x->lane > y->lane) - (x->lane < y->lane);
}

typedef struct BankAccess {
  LayoutBanks banks;
  int64_t width, phase; // the bits that a lane requests; the lanes of a phase
  int64_t lanes;
  WordRequest *wants;
  LayoutConflicts *out;
  int64_t first, second; // ordinals of two lanes in conflict; -1 where there are none
} BankAccess;

static int64_t collect_wants(BankAccess *a, const int64_t *offsets, int64_t begin, int64_t end) {
  int64_t count = 0, word = a->banks.bank_bytes * 8;
  for (int64_t lane = begin; lane < end; lane++) {
    int64_t bit = offsets[lane] * a->banks.element_bits;
    for (int64_t w = bit / word; w <= (bit + a->width - 1) / word; w++)
      a->wants[count++] = (WordRequest){w % a->banks.bank_count, w, lane};
  }
  qsort(a->wants, (size_t)count, sizeof *a->wants, compare_wants);
  return count;
}

// Serves the lanes begin .. end - 1 at once.
static void serve(BankAccess *a, const int64_t *offsets, int64_t begin, int64_t end,
                  int64_t ordinal) {
  int64_t count = collect_wants(a, offsets, begin, end), in_bank = 0, degree = 0;
  for (int64_t i = 0; i < count; i++) {
    const WordRequest *want = &a->wants[i], *before = i ? want - 1 : NULL;
    bool same_bank = before && before->bank == want->bank;
    if (same_bank && before->word == want->word) continue;
    in_bank = same_bank ? in_bank + 1 : 1;
    a->out->words++;
    degree = MAX_OF(degree, in_bank);
    if (in_bank <= a->out->degree) continue;
    a->out->degree = in_bank;
    a->out->bank = want->bank;
    if (in_bank != 2) continue;
    a->first = ordinal + before->lane;
    a->second = ordinal + want->lane;
  }
  a->out->waves += degree;
}

static void serve_all(BankAccess *a, const int64_t *offsets, int64_t positions) {
  for (int64_t p = 0; p < positions; p++)
    for (int64_t lane = 0; lane < a->lanes; lane += a->phase)
      serve(a, offsets + p * a->lanes, lane, MIN_OF(lane + a->phase, a->lanes), p * a->lanes);
}

// ---- Positions ---------------------------------------------------------------------------------

// Whether the offset at (position, lane) is the position's own combined by `op` with the lane's
// own, less the offset of the origin.
bool layout_access_separates(Context *context, const Layout *at, LayoutOp op) {
  const LayoutExpr *e = at->map->outputs[0];
  int lane = at->rank - 1;
  const LayoutExpr *position = layout_at_zero(context, e, lane, at->rank);
  const LayoutExpr *alone = layout_at_zero(context, e, 0, lane);
  const LayoutExpr *origin = layout_at_zero(context, position, 0, lane);
  LayoutOp less = op == LAYOUT_XOR ? LAYOUT_XOR : LAYOUT_SUB;
  e = layout_binary(context, op, position, layout_binary(context, less, alone, origin));
  return layout_outputs_equal(context, at, &e).verdict == VERDICT_YES;
}

// Whether the offset of every position differs from the origin's by a multiple of `unit`.
static bool positions_aligned(Context *context, const Layout *at, int64_t unit) {
  const LayoutExpr *zero = layout_const(context, 0), *by = layout_const(context, unit);
  const LayoutExpr *e = layout_at_zero(context, at->map->outputs[0], at->rank - 1, at->rank);
  const LayoutExpr *origin = layout_at_zero(context, e, 0, at->rank);
  const LayoutExpr *rest =
      layout_binary(context, LAYOUT_MOD, layout_binary(context, LAYOUT_SUB, e, origin), by);
  const Layout *rests = layout_try(context, index_map_with_outputs(context, at->map, &rest),
                                   at->shape, &by, at->facts);
  return rests && layout_outputs_equal(context, rests, &zero).verdict == VERDICT_YES;
}

// Whether every position has the conflicts of the first one: the words of a position are those of
// the first moved by a constant number of words, or their numbers are XORed with a constant.
static bool positions_alike(Context *context, const Layout *at, const BankAccess *a) {
  int64_t word = a->banks.bank_bytes * 8, unit = word / gcd_of(word, a->banks.element_bits);
  if (layout_access_separates(context, at, LAYOUT_ADD) && positions_aligned(context, at, unit))
    return true;
  return layout_log(word) >= 0 && layout_log(a->width) >= 0 &&
         layout_log(a->banks.bank_count) >= 0 && a->width == a->banks.element_bits &&
         layout_access_separates(context, at, LAYOUT_XOR);
}

// ---- The question ------------------------------------------------------------------------------

static const char *access_problem(const Layout *layout, const LayoutAccess *access,
                                  LayoutBanks banks) {
  if (access->lanes->output_count != layout->rank) return "the lanes' map is of another rank";
  if (access->lanes->input_count < 1 || access->lanes->replica_count)
    return "the lanes' map has the lane as its last axis and no replicas";
  if (banks.element_bits < 1 || banks.bank_bytes < 1 || banks.bank_count < 1 ||
      banks.bank_bytes > 1 << 20 || banks.element_bits > 1 << 20 || banks.bank_count > 1 << 20)
    return "elements, banks and their words have at least one bit";
  if (access->vector < 0 || access->vector > 1 << 10) return "a lane wants at least one element";
  return NULL;
}

// The composition offset ∘ lanes on the box of positions and lanes; NULL with a reason.
const Layout *layout_access_offsets(Context *context, const Layout *layout,
                                    const LayoutAccess *access, LayoutBanks banks,
                                    const char **reason) {
  const IndexMap *lanes = access->lanes;
  const LayoutExpr *shape[MAX_RANK], *physical;
  int64_t physical_size;
  *reason = layout->is_static ? access_problem(layout, access, banks) : "the extents are symbolic";
  if (*reason) return NULL;
  const Layout *memory = layout_on_resource(context, layout, NULL);
  *reason = "elements are stored in memory more than once";
  if (memory->map->replica_count) return NULL;
  for (int i = 0; i < lanes->input_count; i++) shape[i] = layout_const(context, access->extents[i]);
  *reason = "a lane leaves the logical shape";
  if (!layout_try(context, lanes, shape, memory->shape, (LayoutFacts){0})) return NULL;
  int64_t last = 0;
  *reason = "the bits of the memory do not fit";
  if (!layout_physical_size(memory, &physical_size) || !add_fits(physical_size, 1 << 10, &last) ||
      !mul_fits(last, banks.element_bits, &last))
    return NULL;
  *reason = "no bounds of the offsets are known";
  physical = layout_const(context, physical_size);
  const LayoutExpr *e = layout_expr_substitute(context, layout_offset_expr(context, memory),
                                               lanes->outputs, lanes->output_count);
  const IndexMap *map =
      index_map_new(context, lanes->input_count, lanes->inputs, 1, &e, NULL, NULL, 0);
  return layout_try(context, map, shape, &physical, (LayoutFacts){0});
}

static LayoutAnswer conflicts_of(Context *context, const Layout *at, BankAccess *a) {
  int64_t positions, lanes = a->lanes, word = a->banks.bank_bytes * 8, total;
  if (!layout_logical_size(at, &total)) return layout_undecided("the lanes do not fit 64 bits");
  positions = lanes ? total / lanes : 0;
  bool alike = positions > 1 && positions_alike(context, at, a);
  int64_t box[MAX_RANK];
  for (int i = 0; i < at->rank; i++) box[i] = alike && i < at->rank - 1 ? 1 : at->extents[i];
  PointDomain domain;
  if (!layout_points_domain(box, at->rank, &domain))
    return layout_points_over_limit(context, box, at->rank);
  const int64_t *offsets = layout_points_table(context, box, at->rank, at->map->outputs[0], NULL);
  if (!offsets) return layout_undecided("the map has no value somewhere");
  a->wants = arena_array(&context->scratch, WordRequest, a->phase * (a->width / word + 2));
  serve_all(a, offsets, alike ? 1 : positions);
  if (alike && (!mul_fits(a->out->waves, positions, &a->out->waves) ||
                !mul_fits(a->out->words, positions, &a->out->words)))
    return layout_undecided("the waves do not fit 64 bits");
  LayoutAnswer result = layout_yes(LAYOUT_POINTS);
  if (a->first >= 0)
    result = layout_points_no(context, box, at->rank, a->first, a->second, layout_bank_conflict);
  if (alike) result.level = LAYOUT_DIGITS;
  return result;
}

int64_t layout_access_width(const LayoutAccess *access, LayoutBanks banks) {
  return banks.element_bits * MAX_OF(access->vector, (int64_t)1);
}

int64_t layout_access_phase(const LayoutAccess *access, LayoutBanks banks) {
  int64_t lanes = access->extents[access->lanes->input_count - 1];
  int64_t row = banks.bank_bytes * 8 * banks.bank_count;
  int64_t fed = MAX_OF(row / layout_access_width(access, banks), (int64_t)1);
  return MIN_OF(fed, MAX_OF(lanes, (int64_t)1));
}

static LayoutAnswer symbolic_conflicts(Context *context, const Layout *layout,
                                       const LayoutAccess *access, LayoutBanks banks,
                                       LayoutConflicts *out) {
  const LayoutExpr *shape[MAX_RANK];
  const Layout *memory = layout_on_resource(context, layout, NULL);
  const char *problem = access_problem(layout, access, banks);
  if (problem) return layout_undecided(problem);
  if (memory->map->replica_count)
    return layout_undecided("elements are stored in memory more than once");
  for (int i = 0; i < access->lanes->input_count; i++)
    shape[i] = layout_const(context, access->extents[i]);
  if (!layout_try(context, access->lanes, shape, memory->shape, memory->facts))
    return layout_undecided("not proved that the lanes stay in the logical shape");
  return layout_symbolic_conflicts(context, memory, access, banks, out);
}

static LayoutAnswer bank_conflicts(Context *context, const Layout *layout,
                                   const LayoutAccess *access, LayoutBanks banks,
                                   LayoutConflicts *out) {
  *out = (LayoutConflicts){0};
  if (!layout->is_static) return symbolic_conflicts(context, layout, access, banks, out);
  const char *problem;
  const Layout *at = layout_access_offsets(context, layout, access, banks, &problem);
  if (!at) return layout_undecided(problem);
  BankAccess a = {.banks = banks, .out = out, .first = -1};
  a.width = layout_access_width(access, banks);
  a.lanes = access->extents[access->lanes->input_count - 1];
  a.phase = layout_access_phase(access, banks);
  out->phase = a.phase;
  ArenaMark mark = arena_mark(&context->scratch);
  LayoutAnswer result = conflicts_of(context, at, &a);
  arena_reset(&context->scratch, mark);
  return result;
}

LayoutAnswer layout_bank_conflicts(Context *context, const Layout *layout,
                                   const LayoutAccess *access, LayoutBanks banks,
                                   LayoutConflicts *out) {
  LAYOUT_RETURN(context, bank_conflicts(context, layout, access, banks, out), LAYOUT_ASK_CONFLICTS,
                layout, .accesses = access, .access_count = 1, .banks = banks, .conflicts = *out);
}
