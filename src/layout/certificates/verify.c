// SPDX-License-Identifier: Apache-2.0
// Builds that verify check the answers about small layouts: the question's certificate
// (certificate.c) must be one that the checker accepts. Where extents are symbolic, the question
// and what was found are taken at some values of the symbols.
#include "layout/certificates/certificate.h"
#include "layout/operations/operations.h"

enum { MAX_POINTS = 1 << 12, MAX_EXPR = 1 << 12, MAX_WORK = 1 << 20, WORK_EACH = 1 << 8 };

// ---- When --------------------------------------------------------------------------------------

// The checker's shifts are by constants, as those of the algebra are.
static bool shifts_by_variable(const LayoutExpr *e) {
  bool found = (e->op == LAYOUT_SHL || e->op == LAYOUT_SHR) && !is_const(e->args[1]);
  for (int i = 0; i < 3 && e->args[i]; i++) found = found || shifts_by_variable(e->args[i]);
  return found;
}

static bool is_plain(const IndexMap *map) {
  bool plain = true;
  for (int i = 0; i < map->output_count && plain; i++)
    plain = layout_expr_size(map->outputs[i]) <= MAX_EXPR && !shifts_by_variable(map->outputs[i]);
  return plain;
}

// Elements times copies, and physical indices; -1: too many.
static int64_t work_of(const Layout *layout) {
  int64_t points = 1, positions = 1;
  bool fits = layout->is_static;
  for (int i = 0; i < layout_box_rank(layout) && fits; i++)
    fits = mul_fits(points, MAX_OF(layout->shape[i]->value, (int64_t)0), &points) &&
           points <= MAX_POINTS;
  for (int i = 0; i < layout->physical_rank && fits; i++)
    fits =
        mul_fits(positions, layout->physical_extents[i], &positions) && positions <= 4 * MAX_POINTS;
  return fits && is_plain(layout->map) ? points + WORK_EACH : -1;
}

// Positions times pairs of lanes that are served together, of all accesses.
static int64_t work_of_accesses(const LayoutQuestion *q) {
  int64_t work = 0;
  for (int k = 0; k < q->access_count; k++) {
    const LayoutAccess *access = &q->accesses[k];
    int64_t pairs = layout_access_phase(access, q->banks) * layout_access_width(access, q->banks);
    for (int i = 0; i < access->lanes->input_count && pairs < 1 << 16; i++)
      pairs *= MAX_OF(access->extents[i], (int64_t)1);
    if (pairs >= 1 << 16 || !is_plain(access->lanes)) return -1;
    work += pairs / 64;
  }
  return work;
}

// Whether the check of a question is within what is spent on checks.
static bool is_small(Context *context, const LayoutQuestion *q) {
  int64_t a = work_of(q->a), b = q->b ? work_of(q->b) : 0, accesses = work_of_accesses(q);
  if (a < 0 || b < 0 || accesses < 0 || (q->ask == LAYOUT_ASK_SAME_MAP && !is_plain(q->map)))
    return false;
  layout_table(context)->verified += a + b + accesses;
  return true;
}

// ---- At values of the symbols ------------------------------------------------------------------

typedef struct At {
  Context *context;
  LayoutInstance a, b;
} At;

static const LayoutExpr *expr_at(const At *at, const LayoutExpr *e) {
  return e ? layout_instantiate(at->context, e, at->a.values, at->a.count) : NULL;
}

static const LayoutExpr *const *exprs_at(const At *at, const LayoutExpr *const *exprs, int count) {
  if (!exprs) return NULL;
  const LayoutExpr **out = arena_array(&at->context->lasting, const LayoutExpr *, count + 1);
  for (int i = 0; i < count; i++) out[i] = expr_at(at, exprs[i]);
  return out;
}

static const IndexMap *map_at(const At *at, const IndexMap *map) {
  if (!map) return NULL;
  return index_map_with_outputs(at->context, map, exprs_at(at, map->outputs, map->output_count));
}

static LayoutBlocking blocking_at(const At *at, LayoutBlocking found) {
  LayoutDigit *blocks = arena_array(&at->context->lasting, LayoutDigit, found.count + 1);
  for (int i = 0; i < found.count; i++) {
    blocks[i] = found.blocks[i];
    blocks[i].extent = expr_at(at, blocks[i].extent);
  }
  found.blocks = blocks;
  return found;
}

static LayoutRefinement refinement_at(const At *at, LayoutRefinement found) {
  LayoutFactor *factors = arena_array(&at->context->lasting, LayoutFactor, found.count + 1);
  for (int i = 0; i < found.count; i++) {
    factors[i] = found.factors[i];
    factors[i].digit.extent = expr_at(at, factors[i].digit.extent);
    factors[i].weights = exprs_at(at, factors[i].weights, 2);
  }
  found.factors = factors;
  return found;
}

static bool slice_at(const At *at, const Layout *a, LayoutSlice *slice) {
  LayoutInstance box;
  if (!slice->layout ||
      !layout_instance_at(at->context, slice->layout, at->a.values, at->a.count, &box))
    return false;
  *slice =
      (LayoutSlice){box.layout, expr_at(at, slice->offset), exprs_at(at, slice->strides, a->rank)};
  return true;
}

// Replaces what was found by its values for the instance. False where the question is not checked
// on instances.
static bool found_at(const At *at, LayoutQuestion *q) {
  switch (q->ask) {
  case LAYOUT_ASK_INVERSE:
  case LAYOUT_ASK_DIVIDE:
  case LAYOUT_ASK_DIVIDE_LEFT:
    q->inverse.map = map_at(at, q->inverse.map);
    q->inverse.padding = expr_at(at, q->inverse.padding);
    break;
  case LAYOUT_ASK_PADDING: q->value = expr_at(at, q->value); break;
  case LAYOUT_ASK_STRIDES: q->strides = exprs_at(at, q->strides, q->a->rank); break;
  case LAYOUT_ASK_SLICE: return slice_at(at, q->a, &q->slice);
  case LAYOUT_ASK_BLOCKING: q->blocking = blocking_at(at, q->blocking); break;
  case LAYOUT_ASK_REFINE: q->refinement = refinement_at(at, q->refinement); break;
  case LAYOUT_ASK_COMPOSE:
  case LAYOUT_ASK_OFFSET:
  case LAYOUT_ASK_AT_OFFSET:
  case LAYOUT_ASK_LINES:
  case LAYOUT_ASK_PADDING_RUNS:
  case LAYOUT_ASK_SWIZZLE: return false;
  case LAYOUT_ASK_EQUAL:
  case LAYOUT_ASK_SAME_MAP:
  case LAYOUT_ASK_IDENTITY:
  case LAYOUT_ASK_INJECTIVE:
  case LAYOUT_ASK_ONTO:
  case LAYOUT_ASK_BIJECTIVE:
  case LAYOUT_ASK_VECTOR:
  case LAYOUT_ASK_RESHAPE:
  case LAYOUT_ASK_LOOP_ORDER:
  case LAYOUT_ASK_PERMUTATION:
  case LAYOUT_ASK_CONFLICTS:
  case LAYOUT_ASK_COUNT: break;
  }
  return true;
}

// The question at the values that the answer has, or at some values that the facts allow.
static bool question_at(Context *context, const LayoutQuestion *q, const LayoutAnswer *answer,
                        int which, LayoutQuestion *out) {
  At at = {.context = context};
  bool found = answer->instance_count ? layout_instance_at(context, q->a, answer->instance,
                                                           answer->instance_count, &at.a)
                                      : layout_instance(context, q->a, which, &at.a);
  if (!found || (q->b && !layout_instance_at(context, q->b, at.a.values, at.a.count, &at.b)))
    return false;
  *out = *q;
  out->a = at.a.layout;
  out->b = at.b.layout;
  out->map = map_at(&at, q->map);
  out->low = exprs_at(&at, q->low, q->a->rank);
  out->extent = exprs_at(&at, q->extent, q->a->rank);
  return found_at(&at, out);
}

// ---- Checks ------------------------------------------------------------------------------------

static void verify_fixed(Context *context, const LayoutQuestion *q, const LayoutAnswer *answer) {
  if (!is_small(context, q)) return;
  layout_table(context)->verifying = true;
  Certificate c = certificate_new(context);
  c.verifying = true;
  certificate_add(&c, q, answer);
  layout_table(context)->verifying = false;
  if (c.refused)
    bug(context, "the answer `%s` to question %d about %s is not confirmed",
        layout_answer_text(context, answer), q->ask, layout_text(context, q->a));
}

// A "yes" holds for all values of the symbols, a "no" for those that it has.
static void verify_instances(Context *context, const LayoutQuestion *q,
                             const LayoutAnswer *answer) {
  bool yes = answer->verdict == VERDICT_YES;
  if (!yes && !answer->instance_count) return;
  LayoutAnswer one = *answer;
  one.instance_count = 0;
  for (int i = 0; i < (yes ? 3 : 1); i++) {
    LayoutQuestion at;
    if (question_at(context, q, answer, i, &at)) verify_fixed(context, &at, &one);
  }
}

void layout_verify(Context *context, const LayoutQuestion *q, const LayoutAnswer *answer) {
  LayoutTable *table = layout_table(context);
  if (table->verifying || table->verified > MAX_WORK) return;
  // A "no" without a witness is about shapes or ranks, or about elements with several copies.
  if (answer->verdict == VERDICT_UNDECIDED || (answer->verdict == VERDICT_NO && !answer->witness))
    return;
  if (q->a->is_static && (!q->b || q->b->is_static))
    verify_fixed(context, q, answer);
  else
    verify_instances(context, q, answer);
}
