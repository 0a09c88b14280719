// SPDX-License-Identifier: Apache-2.0
// Finds the common refinement: the coarsest digits of the axes of which several offsets are sums.
// Floors of one axis are linearly independent, so the cuts of an offset are determined by it. A
// common set of digits exists when, of all cuts of an axis, each divides the next one; their union
// is the coarsest. Offsets with XORs are refined to bits, where each offset is an XOR of the values
// that the bits contribute.
#include "layout/operations/operations.h"
#include "layout/answers/answers.h"
#include "layout/digits/digits.h"
#include "layout/symbolic/symbolic.h"

#include <stdlib.h>

enum { MAX_CUTS = 512 };

typedef struct Floor { // coefficient · ⌊axis / cut⌋ in the offset of one part
  int axis, part;
  int64_t cut;
  const LayoutExpr *coefficient;
} Floor;

typedef struct Floors {
  Context *context;
  LayoutFacts facts;
  Floor items[MAX_CUTS];
  int count;
} Floors;

static bool add_floor(Floors *f, Floor floor) {
  if (f->count == MAX_CUTS) return false;
  f->items[f->count++] = floor;
  return true;
}

// ---- Floors of one offset ----------------------------------------------------------------------

static bool static_floors(Floors *f, const Layout *part, int which) {
  Context *context = f->context;
  ArenaMark mark = arena_mark(&context->scratch);
  DigitSpace d = layout_digits_new(context, part->extents, part->rank);
  const DigitForm *form = layout_form_of(&d, layout_offset_expr(context, part));
  bool good = form && layout_form_is_plain(&d, form);
  for (int i = 0; good && i < form->count; i++) {
    const FormTerm *t = &form->terms[i];
    good = add_floor(f, (Floor){t->base, which, t->cut, layout_const(context, t->coefficient)});
  }
  arena_reset(&context->scratch, mark);
  return good;
}

// The floors of an offset, also where the text has XORs, or floors of sums of axes, that cancel.
// *none says that the offset is proved to be no sum of floors of single axes.
static bool any_floors(Floors *f, const Layout *part, int which, bool *none) {
  const Layout *sums;
  int before = f->count;
  if (static_floors(f, part, which)) return true;
  f->count = before;
  LayoutAnswer answer = layout_by_floors(f->context, part, &sums);
  *none = answer.verdict == VERDICT_NO;
  return sums && static_floors(f, sums, which);
}

// Reads the floors from the text: (axis // cut) % modulus with a weight is weight·⌊axis/cut⌋ -
// weight·modulus·⌊axis/(cut·modulus)⌋.
static bool text_floors(Floors *f, const Layout *part, int which) {
  Context *context = f->context;
  const LayoutExpr *weight = layout_const(context, 1);
  for (int i = part->physical_rank - 1; i >= 0; i--) {
    Digit g;
    int64_t end;
    if (!is_const(part->map->outputs[i]) && !layout_axis_digit(part->map->outputs[i], &g))
      return false;
    if (!is_const(part->map->outputs[i])) {
      const LayoutExpr *back = layout_times(context, weight, layout_const(context, -g.radix));
      if (!add_floor(f, (Floor){g.base, which, g.cut, weight})) return false;
      if (!g.open && !(digit_end(&g, &end) && add_floor(f, (Floor){g.base, which, end, back})))
        return false;
    }
    weight = layout_times(context, part->physical[i], weight);
  }
  return true;
}

// ---- Chains of cuts ----------------------------------------------------------------------------

static int compare_floors(const void *a, const void *b) {
  const Floor *x = a, *y = b;
  if (x->axis != y->axis) return x->axis - y->axis;
  return (x->cut > y->cut) - (x->cut < y->cut);
}

static const LayoutExpr *polynomial(const Floors *f, const LayoutExpr *e) {
  return layout_symbolic_difference(f->context, f->facts, e, layout_const(f->context, 0));
}

typedef struct FactorChain {
  LayoutFactor factors[MAX_CUTS];
  int count;
} FactorChain;

// The digits of one axis, whose floors are items[begin .. end).
static const char *axis_factors(const Floors *f, const Layout *box, int axis, int begin, int end,
                                int parts, FactorChain *out) {
  Context *context = f->context;
  const LayoutExpr **weights = arena_array(&context->lasting, const LayoutExpr *, parts);
  int64_t cut = 1;
  int first = out->count;
  for (int k = 0; k < parts; k++) weights[k] = layout_const(context, 0);
  for (int at = begin;;) {
    for (; at < end && f->items[at].cut == cut; at++) {
      int k = f->items[at].part;
      weights[k] =
          polynomial(f, layout_binary(context, LAYOUT_ADD, weights[k], f->items[at].coefficient));
    }
    int64_t next = at < end ? f->items[at].cut : 0;
    if (next % cut) return "the cuts of an axis are no chain";
    if (out->count == MAX_CUTS) return "too many digits";
    out->factors[out->count++] =
        (LayoutFactor){{axis, cut, next ? layout_const(context, next / cut) : NULL}, weights};
    if (!next) break;
    const LayoutExpr **above = arena_array(&context->lasting, const LayoutExpr *, parts);
    for (int k = 0; k < parts; k++)
      above[k] =
          polynomial(f, layout_times(context, weights[k], layout_const(context, next / cut)));
    weights = above;
    cut = next;
  }
  LayoutDigit *top = &out->factors[out->count - 1].digit;
  const LayoutExpr *past = layout_by(context, LAYOUT_ADD, box->shape[axis], top->cut - 1);
  top->extent = layout_by(context, LAYOUT_DIV, past, top->cut);
  if (top->extent == layout_const(context, 1)) out->count--;
  for (int i = first, j = out->count - 1; i < j; i++, j--) { // outermost first
    LayoutFactor t = out->factors[i];
    out->factors[i] = out->factors[j];
    out->factors[j] = t;
  }
  return NULL;
}

static const char *all_factors(Floors *f, const Layout *box, int parts, FactorChain *out) {
  qsort(f->items, (size_t)f->count, sizeof *f->items, compare_floors);
  int begin = 0;
  for (int axis = 0; axis < box->rank; axis++) {
    int end = begin;
    while (end < f->count && f->items[end].axis == axis) end++;
    const char *problem = axis_factors(f, box, axis, begin, end, parts, out);
    if (problem) return problem;
    begin = end;
  }
  return NULL;
}

// ---- Bits --------------------------------------------------------------------------------------

// Whether an offset is its value at the origin XORed with the weight of each bit that is set.
static bool is_bitwise(Context *context, const Layout *part, const FactorChain *bits, int k) {
  int64_t origin, zeros[MAX_RANK] = {0};
  const LayoutExpr *offset = layout_offset_expr(context, part), *sum;
  if (!layout_expr_value(offset, zeros, NULL, 0, &origin)) return false;
  sum = layout_const(context, origin);
  for (int i = 0; i < bits->count; i++) {
    const LayoutFactor *f = &bits->factors[i];
    const LayoutExpr *axis = layout_axis(context, f->digit.axis),
                     *bit = layout_digit_expr(context, axis, f->digit.cut, 2);
    sum = layout_binary(context, LAYOUT_XOR, sum, layout_times(context, bit, f->weights[k]));
  }
  const Layout *at = layout_flat(context, part, part->shape, offset);
  return at && layout_outputs_equal(context, at, &sum).verdict == VERDICT_YES;
}

static bool read_bit(Context *context, const Layout *const *parts, int count, int axis, int64_t cut,
                     FactorChain *out) {
  const LayoutExpr **weights = arena_array(&context->lasting, const LayoutExpr *, count);
  for (int k = 0; k < count; k++) {
    int64_t index[MAX_RANK] = {0}, origin, value;
    const LayoutExpr *offset = layout_offset_expr(context, parts[k]);
    if (!layout_expr_value(offset, index, NULL, 0, &origin)) return false;
    index[axis] = cut;
    if (!layout_expr_value(offset, index, NULL, 0, &value)) return false;
    weights[k] = layout_const(context, origin ^ value);
  }
  if (out->count == MAX_CUTS) return false;
  out->factors[out->count++] = (LayoutFactor){{axis, cut, layout_const(context, 2)}, weights};
  return true;
}

static LayoutAnswer refine_bits(Context *context, const Layout *const *parts, int count, bool none,
                                FactorChain *out) {
  const Layout *box = parts[0];
  out->count = 0;
  for (int axis = 0; axis < box->rank; axis++) {
    if (layout_log(box->extents[axis]) < 0)
      return layout_answer_of(
          none ? VERDICT_NO : VERDICT_UNDECIDED, LAYOUT_DIGITS,
          "an offset is not a sum of digits, and an extent is not a power of 2");
    for (int64_t cut = box->extents[axis] / 2; cut; cut /= 2)
      if (!read_bit(context, parts, count, axis, cut, out))
        return layout_undecided("too many bits");
  }
  for (int k = 0; k < count; k++)
    if (!is_bitwise(context, parts[k], out, k))
      return layout_no("an offset is neither a sum of digits nor an XOR of bits");
  return layout_yes(LAYOUT_DIGITS);
}

// ---- The question ------------------------------------------------------------------------------

LayoutAnswer layout_refine_all(Context *context, const Layout *const *parts, int count,
                               LayoutRefinement *out) {
  ArenaMark mark = arena_mark(&context->scratch);
  Floors *f = arena_new(&context->scratch, Floors);
  FactorChain *chain = arena_new(&context->scratch, FactorChain);
  bool fixed = true, sums = true, none = false;
  int64_t size = 1;
  *f = (Floors){.context = context, .facts = parts[0]->facts};
  *out = (LayoutRefinement){0};
  for (int k = 0; k < count; k++) fixed = fixed && parts[k]->is_static;
  if (fixed) layout_logical_size(parts[0], &size);
  for (int k = 0; k < count && sums && size; k++)
    sums = fixed ? any_floors(f, parts[k], k, &none) : text_floors(f, parts[k], k);
  LayoutAnswer answer = layout_yes(LAYOUT_DIGITS);
  if (!size)
    answer = layout_no("there are no elements");
  else if (sums)
    answer.reason = all_factors(f, parts[0], count, chain);
  else if (fixed)
    answer = refine_bits(context, parts, count, none, chain);
  else
    answer = layout_undecided("an index is no digit of an axis");
  if (answer.reason && sums && size) answer.verdict = fixed ? VERDICT_NO : VERDICT_UNDECIDED;
  if (answer.verdict == VERDICT_YES)
    *out = (LayoutRefinement){chain->count,
                              arena_copy(&context->lasting, chain->factors,
                                         sizeof *chain->factors * (size_t)chain->count),
                              !sums};
  arena_reset(&context->scratch, mark);
  return answer;
}

static LayoutAnswer refine(Context *context, const Layout *a, const Layout *b,
                           LayoutRefinement *out) {
  *out = (LayoutRefinement){0};
  if (!layout_is_plain(a) || !layout_is_plain(b))
    return layout_undecided(
        "a layout uses other resources than memory, or stores elements more than once");
  if (a->rank != b->rank ||
      !layout_symbolic_same_extents(context, a->facts, a->shape, b->shape, a->rank))
    return layout_answer_of(a->is_static && b->is_static ? VERDICT_NO : VERDICT_UNDECIDED,
                            LAYOUT_DIGITS, "the logical shapes differ");
  const Layout *parts[2] = {a, b};
  return layout_refine_all(context, parts, 2, out);
}

LayoutAnswer layout_refine(Context *context, const Layout *a, const Layout *b,
                           LayoutRefinement *out) {
  LAYOUT_RETURN(context, refine(context, a, b, out), LAYOUT_ASK_REFINE, a, b, .refinement = *out);
}
