// SPDX-License-Identifier: Apache-2.0
// Certificates of answers that are equations between maps: what was answered, on the box that it is
// about, is what the layout makes of it. Shown as those of certificate.c are.
#include "layout/proofs/equations.h"
#include "layout/points/points.h"


enum { POINTS = 1 << 22 };

// ---- Building ----------------------------------------------------------------------------------

EqualityGoal equality_begin(Context *context, LayoutFacts facts) {
  EqualityGoal e = {.context = context, .mark = arena_mark(&context->scratch)};
  e.goal = arena_new(&context->scratch, Goal);
  e.goal->kind = GOAL_EQUAL;
  e.goal->yes = true;
  e.goal->facts = facts;
  return e;
}

const char *equality_finish(EqualityGoal *e) {
  bool said = goal_prepare(e->goal) && e->goal->axes.count <= MAX_RANK;
  const char *text = said ? goal_certificate(e->context, e->goal, POINTS) : NULL;
  if (text) text = arena_copy(&e->context->lasting, text, strlen(text) + 1);
  arena_reset(&e->context->scratch, e->mark);
  return text;
}

const char *equality_drop(EqualityGoal *e) {
  arena_reset(&e->context->scratch, e->mark);
  return NULL;
}

const char *certificate_pair(Context *context, const char *a, const char *b) {
  return a && b ? str_format(context, "%s%s", a, b) : NULL;
}

const LayoutExpr *equality_number(const EqualityGoal *e, int64_t k) {
  return layout_const(e->context, k);
}

const LayoutExpr *equality_op(const EqualityGoal *e, LayoutOp op, const LayoutExpr *a,
                              const LayoutExpr *b) {
  return layout_expr(e->context, op, a, b, NULL);
}

const LayoutExpr *equality_at(const EqualityGoal *e, const LayoutExpr *value,
                              const LayoutExpr *const *axes, int count) {
  return layout_expr_substitute(e->context, value, axes, count);
}

const LayoutExpr *equality_axis(EqualityGoal *e, const char *prefix, const LayoutExpr *extent) {
  int i = e->goal->axes.count;
  goal_add(&e->goal->axes,
           (GoalName){.name = str_format(e->context, "%s%d", prefix, i), .extent = extent});
  return layout_axis(e->context, i);
}

void equality_box(EqualityGoal *e, const Layout *layout, const LayoutExpr **axes) {
  for (int i = 0; i < layout_box_rank(layout); i++)
    axes[i] = equality_axis(e, "x", layout->shape[i]);
  e->goal->copy_count = layout->map->replica_count;
}

const LayoutExpr *equality_let(EqualityGoal *e, const LayoutExpr *value) {
  int i = e->goal->lets.count;
  goal_add(&e->goal->lets, (GoalName){.name = str_format(e->context, "y%d", i), .value = value});
  return layout_axis(e->context, e->goal->axes.count + i);
}

void equality_pair(EqualityGoal *e, const char *name, int i, const LayoutExpr *a,
                   const LayoutExpr *b) {
  goal_add(&e->goal->positions, (GoalName){str_format(e->context, "%s%d", name, i), NULL, a, b});
}

static const LayoutExpr *sum_of(const EqualityGoal *e, const LayoutExpr *sum,
                                const LayoutExpr *const *factors, const LayoutExpr *const *axes,
                                int count) {
  for (int i = 0; i < count; i++)
    if (factors[i])
      sum = equality_op(e, LAYOUT_ADD, sum, equality_op(e, LAYOUT_MUL, factors[i], axes[i]));
  return sum;
}

static const LayoutExpr *memory_offset(const EqualityGoal *e, const Layout *layout) {
  return layout_offset_expr(e->context, layout_on_resource(e->context, layout, NULL));
}

// ---- Maps --------------------------------------------------------------------------------------

const char *layout_map_certificate(Context *context, const Layout *a, const IndexMap *b,
                                   const LayoutAnswer *answer) {
  const LayoutExpr *axes[2 * MAX_RANK];
  if (answer->verdict == VERDICT_UNDECIDED || b->output_count != a->physical_rank) return NULL;
  EqualityGoal e = equality_begin(context, a->facts);
  equality_box(&e, a, axes);
  e.goal->yes = answer->verdict == VERDICT_YES;
  e.goal->instance = answer->instance;
  e.goal->instance_count = answer->instance_count;
  if (!e.goal->yes) e.goal->at = answer->witness;
  for (int i = 0; i < b->output_count; i++)
    equality_pair(&e, "p", i, a->map->outputs[i], b->outputs[i]);
  return equality_finish(&e);
}

const char *layout_compose_certificate(Context *context, const Layout *outer, const Layout *inner,
                                       const Layout *made) {
  const LayoutExpr *axes[2 * MAX_RANK], *positions[2 * MAX_RANK];
  int replicas = inner->map->replica_count + outer->map->replica_count, own = inner->rank;
  if (made->map->replica_count != replicas || inner->physical_rank != outer->rank) return NULL;
  EqualityGoal e = equality_begin(context, made->facts);
  equality_box(&e, made, axes);
  for (int i = 0; i < inner->physical_rank; i++)
    positions[i] = equality_let(&e, inner->map->outputs[i]);
  for (int i = 0; i < outer->map->replica_count; i++)
    positions[outer->rank + i] = axes[own + inner->map->replica_count + i];
  for (int i = 0; i < outer->physical_rank; i++)
    equality_pair(&e, "p", i,
                  equality_at(&e, outer->map->outputs[i], positions, layout_box_rank(outer)),
                  made->map->outputs[i]);
  return equality_finish(&e);
}

const char *layout_divide_certificate(Context *context, const Layout *a, const Layout *b,
                                      const LayoutInverse *quotient) {
  const LayoutExpr *axes[2 * MAX_RANK], *positions[2 * MAX_RANK];
  LayoutInverse inverse;
  if (a->map->replica_count || b->map->replica_count) return NULL;
  LayoutAnswer answer = layout_inverse(context, b, &inverse);
  EqualityGoal e = equality_begin(context, b->facts);
  equality_box(&e, b, axes);
  for (int i = 0; i < b->physical_rank; i++) positions[i] = equality_let(&e, b->map->outputs[i]);
  for (int i = 0; i < a->physical_rank; i++)
    equality_pair(&e, "p", i,
                  equality_at(&e, quotient->map->outputs[i], positions, b->physical_rank),
                  a->map->outputs[i]);
  return certificate_pair(context, equality_finish(&e),
                          layout_certificate(context, LAYOUT_ASK_INVERSE, b, NULL, &answer));
}

// Where it is no padding, a has at the index that is found what b has; else a has nothing there.
const char *layout_divide_left_certificate(Context *context, const Layout *a, const Layout *b,
                                           const LayoutInverse *quotient) {
  const LayoutExpr *axes[2 * MAX_RANK], *index[2 * MAX_RANK];
  LayoutInverse inverse;
  if (a->map->replica_count || b->map->replica_count) return NULL;
  LayoutAnswer answer = layout_inverse(context, a, &inverse);
  if (answer.verdict != VERDICT_YES) return NULL;
  EqualityGoal e = equality_begin(context, b->facts);
  const LayoutExpr *padding = quotient->padding, *zero = equality_number(&e, 0);
  equality_box(&e, b, axes);
  for (int i = 0; i < a->rank; i++) index[i] = equality_let(&e, quotient->map->outputs[i]);
  for (int i = 0; i < a->physical_rank; i++) {
    const LayoutExpr *there = equality_at(&e, a->map->outputs[i], index, a->rank);
    const LayoutExpr *here = b->map->outputs[i];
    if (padding) there = layout_expr(context, LAYOUT_SELECT, padding, zero, there);
    if (padding) here = layout_expr(context, LAYOUT_SELECT, padding, zero, here);
    equality_pair(&e, "p", i, there, here);
  }
  if (padding && inverse.padding)
    equality_pair(&e, "padding", 0, equality_op(&e, LAYOUT_NE, padding, zero),
                  equality_op(&e, LAYOUT_NE,
                              equality_at(&e, inverse.padding, b->map->outputs, b->physical_rank),
                              zero));
  return certificate_pair(context, equality_finish(&e),
                          layout_certificate(context, LAYOUT_ASK_INVERSE, a, NULL, &answer));
}

// ---- Offsets -----------------------------------------------------------------------------------

const char *layout_offset_certificate(Context *context, const Layout *layout, const int64_t *index,
                                      const LayoutExpr *offset) {
  const LayoutExpr *lets[2 * MAX_RANK];
  EqualityGoal e = equality_begin(context, layout->facts);
  for (int i = 0; i < layout_box_rank(layout); i++)
    lets[i] = equality_let(&e, equality_number(&e, i < layout->rank ? index[i] : 0));
  equality_pair(&e, "offset", 0,
                equality_at(&e, layout_offset_expr(context, layout), lets, layout_box_rank(layout)),
                offset);
  return equality_finish(&e);
}

// strides[i] NULL: nothing is said of the axis.
const char *layout_strides_certificate(Context *context, const Layout *layout,
                                       const LayoutExpr *const *strides) {
  const LayoutExpr *axes[2 * MAX_RANK], *base[2 * MAX_RANK];
  bool any = false;
  for (int i = 0; i < layout->rank; i++) any |= strides[i] != NULL;
  if (!any) return NULL;
  EqualityGoal e = equality_begin(context, layout->facts);
  equality_box(&e, layout, axes);
  for (int i = 0; i < layout_box_rank(layout); i++)
    base[i] = i < layout->rank && strides[i] ? equality_number(&e, 0) : axes[i];
  const LayoutExpr *offset = memory_offset(&e, layout);
  const LayoutExpr *first = equality_at(&e, offset, base, layout_box_rank(layout));
  equality_pair(&e, "offset", 0, offset, sum_of(&e, first, strides, axes, layout->rank));
  return equality_finish(&e);
}

// In groups of `width` the offset counts up from a multiple of it, on one lane, register, ….
// In groups of `width` along the axis offsets count up from a multiple of it.
static EqualityGoal vector_equation(Context *context, const Layout *layout, int axis,
                                    int64_t width) {
  const LayoutExpr *axes[2 * MAX_RANK], *first[2 * MAX_RANK], *each[2 * MAX_RANK];
  const LayoutExpr *extent = layout->shape[axis];
  int count = layout_box_rank(layout);
  EqualityGoal e = equality_begin(context, layout->facts);
  const LayoutExpr *w = equality_number(&e, width),
                   *groups = equality_op(&e, LAYOUT_ADD, extent, equality_number(&e, width - 1));
  for (int i = 0; i < count; i++)
    axes[i] = equality_axis(&e, "x",
                            i == axis ? equality_op(&e, LAYOUT_DIV, groups, w) : layout->shape[i]);
  const LayoutExpr *lane = equality_axis(&e, "x", w);
  memcpy(first, axes, sizeof *axes * (size_t)count);
  memcpy(each, axes, sizeof *axes * (size_t)count);
  first[axis] = equality_op(&e, LAYOUT_MUL, axes[axis], w);
  each[axis] = equality_op(&e, LAYOUT_ADD, first[axis], lane);
  bool whole = is_const(extent) && extent->value % width == 0;
  const LayoutExpr *there =
      whole || !is_const(extent) ? NULL : equality_op(&e, LAYOUT_LT, each[axis], extent);
  for (int i = -1; i < layout->physical_rank; i++) {
    if (i >= 0 && !layout->map->resources[i]) continue;
    const LayoutExpr *value = i < 0 ? memory_offset(&e, layout) : layout->map->outputs[i];
    const LayoutExpr *have = equality_at(&e, value, each, count),
                     *want = equality_at(&e, value, first, count);
    if (i < 0)
      equality_pair(&e, "aligned", 0, equality_op(&e, LAYOUT_MOD, want, w), equality_number(&e, 0));
    if (i < 0) want = equality_op(&e, LAYOUT_ADD, want, lane);
    if (there) have = layout_expr(context, LAYOUT_SELECT, there, have, equality_number(&e, 0));
    if (there) want = layout_expr(context, LAYOUT_SELECT, there, want, equality_number(&e, 0));
    equality_pair(&e, i < 0 ? "offset" : "p", MAX_OF(i, 0), have, want);
  }
  return e;
}

// Where the equation fails; NULL: not found among the points of the box.
static const int64_t *counter_example(EqualityGoal *e) {
  const GoalNames *axes = &e->goal->axes, *positions = &e->goal->positions;
  int64_t extents[GOAL_NAMES];
  const LayoutExpr *goals[GOAL_NAMES];
  bool plain = axes->count <= MAX_RANK && positions->count <= GOAL_NAMES;
  for (int i = 0; i < axes->count && plain; i++) {
    plain = is_const(axes->items[i].extent);
    extents[i] = axes->items[i].extent->value;
  }
  for (int i = 0; i < positions->count && plain; i++)
    goals[i] = equality_op(e, LAYOUT_EQ, positions->items[i].value, positions->items[i].other);
  if (!plain) return NULL;
  LayoutAnswer answer =
      layout_points_hold(e->context, extents, axes->count, goals, positions->count);
  return answer.verdict == VERDICT_NO ? answer.witness : NULL;
}

// And where twice the width breaks, on static extents.
const char *layout_vector_certificate(Context *context, const Layout *layout, int axis,
                                      int64_t width) {
  EqualityGoal e = vector_equation(context, layout, axis, width);
  const char *text = equality_finish(&e), *wider;
  if (!text || !layout->is_static || layout->extents[axis] < 2 * width) return text;
  e = vector_equation(context, layout, axis, 2 * width);
  e.goal->yes = false;
  e.goal->at = counter_example(&e);
  wider = e.goal->at ? equality_finish(&e) : equality_drop(&e);
  return wider ? certificate_pair(context, text, wider) : text;
}

const char *layout_slice_certificate(Context *context, const Layout *layout,
                                     const LayoutExpr *const *low, const int64_t *step,
                                     const LayoutSlice *slice) {
  const LayoutExpr *axes[2 * MAX_RANK], *index[2 * MAX_RANK];
  if (!slice->layout) return NULL;
  EqualityGoal e = equality_begin(context, slice->layout->facts);
  equality_box(&e, slice->layout, axes);
  for (int i = 0; i < layout->rank; i++) {
    const LayoutExpr *x =
        step ? equality_op(&e, LAYOUT_MUL, axes[i], equality_number(&e, step[i])) : axes[i];
    index[i] = equality_let(&e, low ? equality_op(&e, LAYOUT_ADD, x, low[i]) : x);
  }
  for (int i = layout->rank; i < layout_box_rank(layout); i++) index[i] = axes[i];
  for (int i = 0; i < layout->physical_rank; i++)
    equality_pair(&e, "p", i,
                  equality_at(&e, layout->map->outputs[i], index, layout_box_rank(layout)),
                  slice->layout->map->outputs[i]);
  if (slice->strides)
    equality_pair(&e, "offset", 0,
                  equality_at(&e, memory_offset(&e, layout), index, layout_box_rank(layout)),
                  sum_of(&e, slice->offset, slice->strides, axes, layout->rank));
  return equality_finish(&e);
}

// ---- Digits ------------------------------------------------------------------------------------

const char *layout_refine_certificate(Context *context, const Layout *a, const Layout *b,
                                      const LayoutRefinement *found) {
  const LayoutExpr *axes[2 * MAX_RANK], *zeros[2 * MAX_RANK];
  const Layout *both[] = {a, b};
  if (a->map->replica_count || b->map->replica_count) return NULL;
  EqualityGoal e = equality_begin(context, a->facts);
  equality_box(&e, a, axes);
  for (int i = 0; i < a->rank; i++) zeros[i] = equality_number(&e, 0);
  for (int k = 0; k < 2; k++) {
    const LayoutExpr *offset = layout_offset_expr(context, both[k]);
    const LayoutExpr *sum = equality_at(&e, offset, zeros, a->rank);
    for (int i = 0; i < found->count; i++) {
      const LayoutFactor *f = &found->factors[i];
      const LayoutExpr *digit =
          equality_op(&e, LAYOUT_DIV, axes[f->axis], equality_number(&e, f->cut));
      digit = equality_op(&e, LAYOUT_MOD, digit, f->extent);
      sum = equality_op(&e, found->bits ? LAYOUT_XOR : LAYOUT_ADD, sum,
                        equality_op(&e, LAYOUT_MUL, digit, f->weights[k]));
    }
    equality_pair(&e, "offset", k, offset, sum);
  }
  return equality_finish(&e);
}

// Row-major over (axis // block) % extent, outermost first; the last along an axis takes the rest.
const char *layout_blocking_certificate(Context *context, const Layout *layout,
                                        const LayoutBlocking *found) {
  const LayoutExpr *axes[2 * MAX_RANK];
  EqualityGoal e = equality_begin(context, layout->facts);
  const LayoutExpr *sum = equality_number(&e, 0);
  equality_box(&e, layout, axes);
  for (int i = 0; i < found->count; i++) {
    const LayoutBlock *block = &found->blocks[i];
    const LayoutExpr *digit =
        equality_op(&e, LAYOUT_DIV, axes[block->axis], equality_number(&e, block->block));
    bool last = true;
    for (int j = 0; j < found->count; j++)
      last &= found->blocks[j].axis != block->axis || found->blocks[j].block <= block->block;
    if (!last) digit = equality_op(&e, LAYOUT_MOD, digit, block->extent);
    sum = equality_op(&e, LAYOUT_ADD, equality_op(&e, LAYOUT_MUL, sum, block->extent), digit);
  }
  equality_pair(&e, "offset", 0, memory_offset(&e, layout), sum);
  return equality_finish(&e);
}

const char *layout_permutation_certificate(Context *context, const Layout *layout,
                                           const int *order) {
  const LayoutExpr *axes[2 * MAX_RANK];
  EqualityGoal e = equality_begin(context, layout->facts);
  const LayoutExpr *sum = equality_number(&e, 0);
  equality_box(&e, layout, axes);
  for (int i = 0; i < layout->rank; i++)
    sum = equality_op(&e, LAYOUT_ADD, equality_op(&e, LAYOUT_MUL, sum, layout->shape[order[i]]),
                      axes[order[i]]);
  equality_pair(&e, "offset", 0, memory_offset(&e, layout), sum);
  return equality_finish(&e);
}

// The element of b that has the row-major number of one of a.
const char *layout_reshape_certificate(Context *context, const Layout *a, const Layout *b,
                                       const LayoutAnswer *answer) {
  const LayoutExpr *axes[2 * MAX_RANK], *index[2 * MAX_RANK];
  if (answer->verdict == VERDICT_UNDECIDED || a->map->replica_count || b->map->replica_count)
    return NULL;
  EqualityGoal e = equality_begin(context, a->facts);
  const LayoutExpr *ordinal = equality_number(&e, 0),
                   *sizes[] = {equality_number(&e, 1), equality_number(&e, 1)};
  equality_box(&e, a, axes);
  for (int i = 0; i < a->rank; i++) {
    ordinal =
        equality_op(&e, LAYOUT_ADD, equality_op(&e, LAYOUT_MUL, ordinal, a->shape[i]), axes[i]);
    sizes[0] = equality_op(&e, LAYOUT_MUL, sizes[0], a->shape[i]);
  }
  for (int i = b->rank - 1; i >= 0; i--) {
    index[i] = equality_op(&e, LAYOUT_DIV, ordinal, sizes[1]);
    if (i) index[i] = equality_op(&e, LAYOUT_MOD, index[i], b->shape[i]);
    sizes[1] = equality_op(&e, LAYOUT_MUL, sizes[1], b->shape[i]);
  }
  for (int i = 0; i < b->rank; i++) index[i] = equality_let(&e, index[i]);
  goal_add(&e.goal->shapes, (GoalName){str_intern(context, "elements"), NULL, sizes[0], sizes[1]});
  equality_pair(&e, "offset", 0, memory_offset(&e, a),
                equality_at(&e, memory_offset(&e, b), index, b->rank));
  e.goal->yes = answer->verdict == VERDICT_YES;
  e.goal->instance = answer->instance;
  e.goal->instance_count = answer->instance_count;
  if (!e.goal->yes) e.goal->at = answer->witness;
  return equality_finish(&e);
}
