// SPDX-License-Identifier: Apache-2.0
// Finds inverses and sections of static layouts. Propagation (solve.c) finds a candidate; normal
// forms, or points, then prove that it undoes the map, and say which physical indices are padding.
#include "layout/digits/digits.h"
#include "layout/digits/solve.h"
#include "layout/points/points.h"

// ---- Candidates --------------------------------------------------------------------------------

static void add_condition(Context *context, const LayoutExpr **any, LayoutOp op,
                          const LayoutExpr *a, const LayoutExpr *b) {
  const LayoutExpr *condition = layout_binary(context, op, a, b);
  *any = *any ? layout_binary(context, LAYOUT_EITHER, *any, condition) : condition;
}

LayoutInverse layout_candidate_inverse(Context *context, const Layout *layout,
                                       const InverseCandidate *c) {
  Str names[MAX_RANK];
  int rank = layout->rank, count = layout->physical_rank;
  const LayoutExpr *padding = NULL, *zero = layout_const(context, 0);
  for (int i = 0; i < rank; i++) {
    if (c->below[i]) add_condition(context, &padding, LAYOUT_LT, c->indices[i], zero);
    if (c->above[i]) add_condition(context, &padding, LAYOUT_LE, layout->shape[i], c->indices[i]);
  }
  for (int i = 0; i < count; i++) {
    names[i] = layout_numbered_name(context, 'p', i);
    if (c->misses[i])
      add_condition(context, &padding, LAYOUT_NE, c->back[i], layout_axis(context, i));
  }
  return (LayoutInverse){index_map_new(context, count, names, rank, c->indices, NULL, NULL, 0),
                         padding};
}

bool layout_candidate_is_section(const Layout *layout, const InverseCandidate *c) {
  bool holds = true;
  for (int i = 0; i < layout->rank; i++) holds = holds && !c->below[i] && !c->above[i];
  for (int i = 0; i < layout->physical_rank; i++) holds = holds && !c->misses[i];
  return holds;
}

// ---- Static layouts ----------------------------------------------------------------------------

typedef struct DigitInversion {
  Context *context;
  const Layout *layout;
  DigitSpace logical, physical;
  const DigitForm *outputs[MAX_RANK], *inverse[MAX_RANK], *back[MAX_RANK]; // outputs ∘ inverse
  InverseCandidate candidate;
} DigitInversion;

typedef bool (*Solve)(DigitSpace *logical, DigitSpace *physical, const DigitForm *const *outputs,
                      int count, const DigitForm **inverse);

static DigitInversion *solve(Context *context, const Layout *layout, Solve solve) {
  DigitInversion *v = arena_new(&context->scratch, DigitInversion);
  int count = layout->physical_rank;
  v->context = context;
  v->layout = layout;
  v->logical = layout_digits_new(context, layout->extents, layout->rank);
  v->physical = layout_digits_new(context, layout->physical_extents, count);
  for (int i = 0; i < count; i++)
    if (!(v->outputs[i] = layout_form_of(&v->logical, layout->map->outputs[i]))) return NULL;
  if (!solve(&v->logical, &v->physical, v->outputs, count, v->inverse)) return NULL;
  return v;
}

// Proves properties of the candidate by normal forms. False where a bound does not fit 64 bits.
static bool judge(DigitInversion *v) {
  DigitSpace *p = &v->physical;
  InverseCandidate *c = &v->candidate;
  for (int i = 0; i < v->layout->rank; i++) {
    Interval b;
    if (!layout_form_bounds(p, v->inverse[i], &b)) return false;
    c->below[i] = b.low < 0;
    c->above[i] = b.high >= v->layout->extents[i];
  }
  for (int i = 0; i < v->layout->physical_rank; i++) {
    const DigitForm *position = layout_form_floor(p, i, 0, 1);
    v->back[i] = layout_form_apply(p, &v->logical, v->outputs[i], v->inverse);
    c->misses[i] = !v->back[i] || !position || !layout_form_equal(p, v->back[i], position);
  }
  return true;
}

static void write_indices(DigitInversion *v) {
  for (int i = 0; i < v->layout->rank; i++)
    v->candidate.indices[i] = layout_form_expr(&v->physical, v->inverse[i], NULL);
}

static void write_misses(DigitInversion *v) {
  const Layout *layout = v->layout;
  InverseCandidate *c = &v->candidate;
  for (int i = 0; i < layout->physical_rank; i++)
    if (c->misses[i])
      c->back[i] = v->back[i] ? layout_form_expr(&v->physical, v->back[i], NULL)
                              : layout_expr_substitute(v->context, layout->map->outputs[i],
                                                       c->indices, layout->rank);
}

// Inverses that no normal form proves are of use, and fit for a certificate, up to so many
// operations.
enum { MAX_UNPROVED = 1000 };

// Whether inverse ∘ map is the identity at every point.
static bool holds_on_points(DigitInversion *v) {
  const Layout *layout = v->layout;
  const LayoutExpr *conditions[MAX_RANK], *const *indices = v->candidate.indices;
  uint64_t size = 0;
  for (int i = 0; i < layout->rank; i++) size += layout_expr_size(indices[i]);
  if (size > MAX_UNPROVED) return false;
  for (int i = 0; i < layout->rank; i++)
    conditions[i] =
        layout_binary(v->context, LAYOUT_EQ, layout_axis(v->context, i),
                      layout_expr_substitute(v->context, indices[i], layout->map->outputs,
                                             layout->physical_rank));
  return layout_points_hold(v->context, layout->extents, layout->rank, conditions, layout->rank)
             .verdict == VERDICT_YES;
}

static bool invert(DigitInversion *v, LayoutLevel most, LayoutInverse *out, LayoutLevel *level) {
  write_indices(v);
  bool proved = layout_solve_checks(&v->logical, &v->physical, v->outputs, v->inverse);
  *level = proved ? LAYOUT_DIGITS : LAYOUT_POINTS;
  if (!proved && (most != LAYOUT_POINTS || !holds_on_points(v))) return false;
  if (!judge(v)) return false;
  write_misses(v);
  *out = layout_candidate_inverse(v->context, v->layout, &v->candidate);
  return true;
}

bool layout_digits_inverse(Context *context, const Layout *layout, LayoutLevel most,
                           LayoutInverse *out, LayoutLevel *level) {
  ArenaMark mark = arena_mark(&context->scratch);
  DigitInversion *v = solve(context, layout, layout_solve_inverse);
  bool found = v && invert(v, most, out, level);
  arena_reset(&context->scratch, mark);
  return found;
}

bool layout_digits_section(Context *context, const Layout *layout, const LayoutExpr **section) {
  ArenaMark mark = arena_mark(&context->scratch);
  DigitInversion *v = solve(context, layout, layout_solve_section);
  bool found = v && judge(v) && layout_candidate_is_section(layout, &v->candidate);
  if (found && section) {
    write_indices(v);
    memcpy(section, v->candidate.indices, sizeof *section * (size_t)layout->rank);
  }
  arena_reset(&context->scratch, mark);
  return found;
}
