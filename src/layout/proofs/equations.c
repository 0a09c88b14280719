// SPDX-License-Identifier: Apache-2.0
// Certificates of answers that are equations between maps: what was answered, on the box that it is
// about, is what the layout makes of it. Shown as those of certificate.c are.
#include "layout/proofs/equations.h"

#include "layout/points/points.h"

enum { POINTS = 1 << 22 };

// ---- Building ----------------------------------------------------------------------------------

Equation equation_begin(Context *context, LayoutFacts facts) {
  Equation e = {.context = context, .mark = arena_mark(&context->scratch)};
  e.claim = arena_new(&context->scratch, Claim);
  e.claim->kind = CLAIM_EQUAL;
  e.claim->yes = true;
  e.claim->facts = facts;
  return e;
}

const char *equation_finish(Equation *e) {
  bool said = claim_prepare(e->claim) && e->claim->axes.count <= MAX_RANK;
  const char *text = said ? claim_certificate(e->context, e->claim, POINTS) : NULL;
  if (text) text = arena_copy(&e->context->lasting, text, strlen(text) + 1);
  arena_reset(&e->context->scratch, e->mark);
  return text;
}

const char *equation_drop(Equation *e) {
  arena_reset(&e->context->scratch, e->mark);
  return NULL;
}

const char *equation_joined(Context *context, const char *a, const char *b) {
  return a && b ? str_format(context, "%s%s", a, b) : NULL;
}

const LayoutExpr *equation_number(const Equation *e, int64_t k) {
  return layout_const(e->context, k);
}

const LayoutExpr *equation_op(const Equation *e, LayoutOp op, const LayoutExpr *a,
                              const LayoutExpr *b) {
  return layout_expr(e->context, op, a, b, NULL);
}

const LayoutExpr *equation_at(const Equation *e, const LayoutExpr *value,
                              const LayoutExpr *const *axes, int count) {
  return layout_expr_substitute(e->context, value, axes, count);
}

const LayoutExpr *equation_axis(Equation *e, const char *prefix, const LayoutExpr *extent) {
  int i = e->claim->axes.count;
  claim_add(&e->claim->axes,
            (ClaimName){.name = str_format(e->context, "%s%d", prefix, i), .extent = extent});
  return layout_axis(e->context, i);
}

void equation_box(Equation *e, const Layout *layout, const LayoutExpr **axes) {
  for (int i = 0; i < layout_box_rank(layout); i++)
    axes[i] = equation_axis(e, "x", layout->shape[i]);
  e->claim->copy_count = layout->map->replica_count;
}

const LayoutExpr *equation_let(Equation *e, const LayoutExpr *value) {
  int i = e->claim->lets.count;
  claim_add(&e->claim->lets, (ClaimName){.name = str_format(e->context, "y%d", i), .value = value});
  return layout_axis(e->context, e->claim->axes.count + i);
}

void equation_pair(Equation *e, const char *name, int i, const LayoutExpr *a, const LayoutExpr *b) {
  claim_add(&e->claim->places, (ClaimName){str_format(e->context, "%s%d", name, i), NULL, a, b});
}

static const LayoutExpr *sum_of(const Equation *e, const LayoutExpr *sum,
                                const LayoutExpr *const *factors, const LayoutExpr *const *axes,
                                int count) {
  for (int i = 0; i < count; i++)
    if (factors[i])
      sum = equation_op(e, LAYOUT_ADD, sum, equation_op(e, LAYOUT_MUL, factors[i], axes[i]));
  return sum;
}

static const LayoutExpr *memory_offset(const Equation *e, const Layout *layout) {
  return layout_offset_expr(e->context, layout_on_resource(e->context, layout, NULL));
}

// ---- Maps --------------------------------------------------------------------------------------

const char *layout_map_certificate(Context *context, const Layout *a, const IndexMap *b,
                                   const LayoutAnswer *answer) {
  const LayoutExpr *axes[2 * MAX_RANK];
  if (answer->verdict == LAYOUT_UNDECIDED || b->output_count != a->physical_rank) return NULL;
  Equation e = equation_begin(context, a->facts);
  equation_box(&e, a, axes);
  e.claim->yes = answer->verdict == LAYOUT_YES;
  e.claim->instance = answer->instance;
  e.claim->instance_count = answer->instance_count;
  if (!e.claim->yes) e.claim->at = answer->witness;
  for (int i = 0; i < b->output_count; i++)
    equation_pair(&e, "p", i, a->map->outputs[i], b->outputs[i]);
  return equation_finish(&e);
}

const char *layout_compose_certificate(Context *context, const Layout *outer, const Layout *inner,
                                       const Layout *made) {
  const LayoutExpr *axes[2 * MAX_RANK], *places[2 * MAX_RANK];
  int replicas = inner->map->replica_count + outer->map->replica_count, own = inner->rank;
  if (made->map->replica_count != replicas || inner->physical_rank != outer->rank) return NULL;
  Equation e = equation_begin(context, made->facts);
  equation_box(&e, made, axes);
  for (int i = 0; i < inner->physical_rank; i++)
    places[i] = equation_let(&e, inner->map->outputs[i]);
  for (int i = 0; i < outer->map->replica_count; i++)
    places[outer->rank + i] = axes[own + inner->map->replica_count + i];
  for (int i = 0; i < outer->physical_rank; i++)
    equation_pair(&e, "p", i,
                  equation_at(&e, outer->map->outputs[i], places, layout_box_rank(outer)),
                  made->map->outputs[i]);
  return equation_finish(&e);
}

const char *layout_divide_certificate(Context *context, const Layout *a, const Layout *b,
                                      const LayoutInverse *quotient) {
  const LayoutExpr *axes[2 * MAX_RANK], *places[2 * MAX_RANK];
  LayoutInverse inverse;
  if (a->map->replica_count || b->map->replica_count) return NULL;
  LayoutAnswer answer = layout_inverse(context, b, &inverse);
  Equation e = equation_begin(context, b->facts);
  equation_box(&e, b, axes);
  for (int i = 0; i < b->physical_rank; i++) places[i] = equation_let(&e, b->map->outputs[i]);
  for (int i = 0; i < a->physical_rank; i++)
    equation_pair(&e, "p", i, equation_at(&e, quotient->map->outputs[i], places, b->physical_rank),
                  a->map->outputs[i]);
  return equation_joined(context, equation_finish(&e),
                         layout_certificate(context, LAYOUT_ASK_INVERSE, b, NULL, &answer));
}

// Where it is no padding, a has at the index that is found what b has; else a has nothing there.
const char *layout_divide_left_certificate(Context *context, const Layout *a, const Layout *b,
                                           const LayoutInverse *quotient) {
  const LayoutExpr *axes[2 * MAX_RANK], *index[2 * MAX_RANK];
  LayoutInverse inverse;
  if (a->map->replica_count || b->map->replica_count) return NULL;
  LayoutAnswer answer = layout_inverse(context, a, &inverse);
  if (answer.verdict != LAYOUT_YES) return NULL;
  Equation e = equation_begin(context, b->facts);
  const LayoutExpr *padding = quotient->padding, *zero = equation_number(&e, 0);
  equation_box(&e, b, axes);
  for (int i = 0; i < a->rank; i++) index[i] = equation_let(&e, quotient->map->outputs[i]);
  for (int i = 0; i < a->physical_rank; i++) {
    const LayoutExpr *there = equation_at(&e, a->map->outputs[i], index, a->rank);
    const LayoutExpr *here = b->map->outputs[i];
    if (padding) there = layout_expr(context, LAYOUT_SELECT, padding, zero, there);
    if (padding) here = layout_expr(context, LAYOUT_SELECT, padding, zero, here);
    equation_pair(&e, "p", i, there, here);
  }
  if (padding && inverse.padding)
    equation_pair(&e, "padding", 0, equation_op(&e, LAYOUT_NE, padding, zero),
                  equation_op(&e, LAYOUT_NE,
                              equation_at(&e, inverse.padding, b->map->outputs, b->physical_rank),
                              zero));
  return equation_joined(context, equation_finish(&e),
                         layout_certificate(context, LAYOUT_ASK_INVERSE, a, NULL, &answer));
}

// ---- Offsets -----------------------------------------------------------------------------------

const char *layout_offset_certificate(Context *context, const Layout *layout, const int64_t *index,
                                      const LayoutExpr *offset) {
  const LayoutExpr *lets[2 * MAX_RANK];
  Equation e = equation_begin(context, layout->facts);
  for (int i = 0; i < layout_box_rank(layout); i++)
    lets[i] = equation_let(&e, equation_number(&e, i < layout->rank ? index[i] : 0));
  equation_pair(&e, "offset", 0,
                equation_at(&e, layout_offset_expr(context, layout), lets, layout_box_rank(layout)),
                offset);
  return equation_finish(&e);
}

// strides[i] NULL: nothing is said of the axis.
const char *layout_strides_certificate(Context *context, const Layout *layout,
                                       const LayoutExpr *const *strides) {
  const LayoutExpr *axes[2 * MAX_RANK], *base[2 * MAX_RANK];
  bool any = false;
  for (int i = 0; i < layout->rank; i++) any |= strides[i] != NULL;
  if (!any) return NULL;
  Equation e = equation_begin(context, layout->facts);
  equation_box(&e, layout, axes);
  for (int i = 0; i < layout_box_rank(layout); i++)
    base[i] = i < layout->rank && strides[i] ? equation_number(&e, 0) : axes[i];
  const LayoutExpr *offset = memory_offset(&e, layout);
  const LayoutExpr *first = equation_at(&e, offset, base, layout_box_rank(layout));
  equation_pair(&e, "offset", 0, offset, sum_of(&e, first, strides, axes, layout->rank));
  return equation_finish(&e);
}

// In groups of `width` the offset counts up from a multiple of it, on one lane, register, ….
// In groups of `width` along the axis offsets count up from a multiple of it.
static Equation vector_equation(Context *context, const Layout *layout, int axis, int64_t width) {
  const LayoutExpr *axes[2 * MAX_RANK], *first[2 * MAX_RANK], *each[2 * MAX_RANK];
  const LayoutExpr *extent = layout->shape[axis];
  int count = layout_box_rank(layout);
  Equation e = equation_begin(context, layout->facts);
  const LayoutExpr *w = equation_number(&e, width),
                   *groups = equation_op(&e, LAYOUT_ADD, extent, equation_number(&e, width - 1));
  for (int i = 0; i < count; i++)
    axes[i] = equation_axis(&e, "x",
                            i == axis ? equation_op(&e, LAYOUT_DIV, groups, w) : layout->shape[i]);
  const LayoutExpr *lane = equation_axis(&e, "x", w);
  memcpy(first, axes, sizeof *axes * (size_t)count);
  memcpy(each, axes, sizeof *axes * (size_t)count);
  first[axis] = equation_op(&e, LAYOUT_MUL, axes[axis], w);
  each[axis] = equation_op(&e, LAYOUT_ADD, first[axis], lane);
  bool whole = is_const(extent) && extent->value % width == 0;
  const LayoutExpr *there =
      whole || !is_const(extent) ? NULL : equation_op(&e, LAYOUT_LT, each[axis], extent);
  for (int i = -1; i < layout->physical_rank; i++) {
    if (i >= 0 && !layout->map->resources[i]) continue;
    const LayoutExpr *value = i < 0 ? memory_offset(&e, layout) : layout->map->outputs[i];
    const LayoutExpr *have = equation_at(&e, value, each, count),
                     *want = equation_at(&e, value, first, count);
    if (i < 0)
      equation_pair(&e, "aligned", 0, equation_op(&e, LAYOUT_MOD, want, w), equation_number(&e, 0));
    if (i < 0) want = equation_op(&e, LAYOUT_ADD, want, lane);
    if (there) have = layout_expr(context, LAYOUT_SELECT, there, have, equation_number(&e, 0));
    if (there) want = layout_expr(context, LAYOUT_SELECT, there, want, equation_number(&e, 0));
    equation_pair(&e, i < 0 ? "offset" : "p", MAX_OF(i, 0), have, want);
  }
  return e;
}

// Where the equation fails; NULL: not found among the points of the box.
static const int64_t *counter_example(Equation *e) {
  const ClaimNames *axes = &e->claim->axes, *places = &e->claim->places;
  int64_t extents[CLAIM_NAMES];
  const LayoutExpr *claims[CLAIM_NAMES];
  bool plain = axes->count <= MAX_RANK && places->count <= CLAIM_NAMES;
  for (int i = 0; i < axes->count && plain; i++) {
    plain = is_const(axes->items[i].extent);
    extents[i] = axes->items[i].extent->value;
  }
  for (int i = 0; i < places->count && plain; i++)
    claims[i] = equation_op(e, LAYOUT_EQ, places->items[i].value, places->items[i].other);
  if (!plain) return NULL;
  LayoutAnswer answer = layout_points_hold(e->context, extents, axes->count, claims, places->count);
  return answer.verdict == LAYOUT_NO ? answer.witness : NULL;
}

// And where twice the width breaks, on static extents.
const char *layout_vector_certificate(Context *context, const Layout *layout, int axis,
                                      int64_t width) {
  Equation e = vector_equation(context, layout, axis, width);
  const char *text = equation_finish(&e), *wider;
  if (!text || !layout->is_static || layout->extents[axis] < 2 * width) return text;
  e = vector_equation(context, layout, axis, 2 * width);
  e.claim->yes = false;
  e.claim->at = counter_example(&e);
  wider = e.claim->at ? equation_finish(&e) : equation_drop(&e);
  return wider ? equation_joined(context, text, wider) : text;
}

const char *layout_slice_certificate(Context *context, const Layout *layout,
                                     const LayoutExpr *const *low, const int64_t *step,
                                     const LayoutSlice *slice) {
  const LayoutExpr *axes[2 * MAX_RANK], *index[2 * MAX_RANK];
  if (!slice->layout) return NULL;
  Equation e = equation_begin(context, slice->layout->facts);
  equation_box(&e, slice->layout, axes);
  for (int i = 0; i < layout->rank; i++) {
    const LayoutExpr *x =
        step ? equation_op(&e, LAYOUT_MUL, axes[i], equation_number(&e, step[i])) : axes[i];
    index[i] = equation_let(&e, low ? equation_op(&e, LAYOUT_ADD, x, low[i]) : x);
  }
  for (int i = layout->rank; i < layout_box_rank(layout); i++) index[i] = axes[i];
  for (int i = 0; i < layout->physical_rank; i++)
    equation_pair(&e, "p", i,
                  equation_at(&e, layout->map->outputs[i], index, layout_box_rank(layout)),
                  slice->layout->map->outputs[i]);
  if (slice->strides)
    equation_pair(&e, "offset", 0,
                  equation_at(&e, memory_offset(&e, layout), index, layout_box_rank(layout)),
                  sum_of(&e, slice->offset, slice->strides, axes, layout->rank));
  return equation_finish(&e);
}

// ---- Digits ------------------------------------------------------------------------------------

const char *layout_refine_certificate(Context *context, const Layout *a, const Layout *b,
                                      const LayoutRefinement *found) {
  const LayoutExpr *axes[2 * MAX_RANK], *zeros[2 * MAX_RANK];
  const Layout *both[] = {a, b};
  if (a->map->replica_count || b->map->replica_count) return NULL;
  Equation e = equation_begin(context, a->facts);
  equation_box(&e, a, axes);
  for (int i = 0; i < a->rank; i++) zeros[i] = equation_number(&e, 0);
  for (int k = 0; k < 2; k++) {
    const LayoutExpr *offset = layout_offset_expr(context, both[k]);
    const LayoutExpr *sum = equation_at(&e, offset, zeros, a->rank);
    for (int i = 0; i < found->count; i++) {
      const LayoutFactor *f = &found->factors[i];
      const LayoutExpr *digit =
          equation_op(&e, LAYOUT_DIV, axes[f->axis], equation_number(&e, f->cut));
      digit = equation_op(&e, LAYOUT_MOD, digit, f->extent);
      sum = equation_op(&e, found->bits ? LAYOUT_XOR : LAYOUT_ADD, sum,
                        equation_op(&e, LAYOUT_MUL, digit, f->weights[k]));
    }
    equation_pair(&e, "offset", k, offset, sum);
  }
  return equation_finish(&e);
}

// Row-major over (axis // block) % extent, outermost first; the last along an axis takes the rest.
const char *layout_blocking_certificate(Context *context, const Layout *layout,
                                        const LayoutBlocking *found) {
  const LayoutExpr *axes[2 * MAX_RANK];
  Equation e = equation_begin(context, layout->facts);
  const LayoutExpr *sum = equation_number(&e, 0);
  equation_box(&e, layout, axes);
  for (int i = 0; i < found->count; i++) {
    const LayoutBlock *block = &found->blocks[i];
    const LayoutExpr *digit =
        equation_op(&e, LAYOUT_DIV, axes[block->axis], equation_number(&e, block->block));
    bool last = true;
    for (int j = 0; j < found->count; j++)
      last &= found->blocks[j].axis != block->axis || found->blocks[j].block <= block->block;
    if (!last) digit = equation_op(&e, LAYOUT_MOD, digit, block->extent);
    sum = equation_op(&e, LAYOUT_ADD, equation_op(&e, LAYOUT_MUL, sum, block->extent), digit);
  }
  equation_pair(&e, "offset", 0, memory_offset(&e, layout), sum);
  return equation_finish(&e);
}

const char *layout_permutation_certificate(Context *context, const Layout *layout,
                                           const int *order) {
  const LayoutExpr *axes[2 * MAX_RANK];
  Equation e = equation_begin(context, layout->facts);
  const LayoutExpr *sum = equation_number(&e, 0);
  equation_box(&e, layout, axes);
  for (int i = 0; i < layout->rank; i++)
    sum = equation_op(&e, LAYOUT_ADD, equation_op(&e, LAYOUT_MUL, sum, layout->shape[order[i]]),
                      axes[order[i]]);
  equation_pair(&e, "offset", 0, memory_offset(&e, layout), sum);
  return equation_finish(&e);
}

// The element of b that has the row-major number of one of a.
const char *layout_reshape_certificate(Context *context, const Layout *a, const Layout *b,
                                       const LayoutAnswer *answer) {
  const LayoutExpr *axes[2 * MAX_RANK], *index[2 * MAX_RANK];
  if (answer->verdict == LAYOUT_UNDECIDED || a->map->replica_count || b->map->replica_count)
    return NULL;
  Equation e = equation_begin(context, a->facts);
  const LayoutExpr *ordinal = equation_number(&e, 0),
                   *sizes[] = {equation_number(&e, 1), equation_number(&e, 1)};
  equation_box(&e, a, axes);
  for (int i = 0; i < a->rank; i++) {
    ordinal =
        equation_op(&e, LAYOUT_ADD, equation_op(&e, LAYOUT_MUL, ordinal, a->shape[i]), axes[i]);
    sizes[0] = equation_op(&e, LAYOUT_MUL, sizes[0], a->shape[i]);
  }
  for (int i = b->rank - 1; i >= 0; i--) {
    index[i] = equation_op(&e, LAYOUT_DIV, ordinal, sizes[1]);
    if (i) index[i] = equation_op(&e, LAYOUT_MOD, index[i], b->shape[i]);
    sizes[1] = equation_op(&e, LAYOUT_MUL, sizes[1], b->shape[i]);
  }
  for (int i = 0; i < b->rank; i++) index[i] = equation_let(&e, index[i]);
  claim_add(&e.claim->shapes,
            (ClaimName){str_intern(context, "elements"), NULL, sizes[0], sizes[1]});
  equation_pair(&e, "offset", 0, memory_offset(&e, a),
                equation_at(&e, memory_offset(&e, b), index, b->rank));
  e.claim->yes = answer->verdict == LAYOUT_YES;
  e.claim->instance = answer->instance;
  e.claim->instance_count = answer->instance_count;
  if (!e.claim->yes) e.claim->at = answer->witness;
  return equation_finish(&e);
}
