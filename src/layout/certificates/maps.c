// SPDX-License-Identifier: Apache-2.0
// Writes equations between maps as goals: what was found for a question, on the box of indices that
// it is about, is what the layouts of the question make of that box.
#include "layout/certificates/certificate.h"

#include "layout/points/points.h"

static const LayoutExpr *sum_of(const Certificate *c, const LayoutExpr *sum,
                                const LayoutExpr *const *factors, const LayoutExpr *const *axes,
                                int count) {
  for (int i = 0; i < count; i++)
    if (factors[i]) sum = goal_op(c, LAYOUT_ADD, sum, goal_op(c, LAYOUT_MUL, factors[i], axes[i]));
  return sum;
}

static const LayoutExpr *memory_offset(const Certificate *c, const Layout *layout) {
  return layout_offset_expr(c->context, layout_on_resource(c->context, layout, NULL));
}

// ---- Maps --------------------------------------------------------------------------------------

bool map_certificate(Certificate *c, const LayoutQuestion *q, const LayoutAnswer *answer) {
  const Layout *a = q->a;
  const IndexMap *b = q->map;
  const LayoutExpr *axes[2 * MAX_RANK];
  if (b->output_count != a->physical_rank) return false;
  goal_begin_box(c, a, axes);
  goal_answered(c, answer);
  for (int i = 0; i < b->output_count; i++) goal_pair(c, "p", i, a->map->outputs[i], b->outputs[i]);
  return goal_show(c);
}

bool compose_certificate(Certificate *c, const LayoutQuestion *q, const LayoutAnswer *answer) {
  const Layout *outer = q->a, *inner = q->b, *made = q->made;
  const LayoutExpr *axes[2 * MAX_RANK], *positions[2 * MAX_RANK];
  int replicas = inner->map->replica_count + outer->map->replica_count, own = inner->rank;
  if (made->map->replica_count != replicas || inner->physical_rank != outer->rank) return false;
  goal_begin_box(c, made, axes);
  for (int i = 0; i < inner->physical_rank; i++) positions[i] = goal_let(c, inner->map->outputs[i]);
  for (int i = 0; i < outer->map->replica_count; i++)
    positions[outer->rank + i] = axes[own + inner->map->replica_count + i];
  for (int i = 0; i < outer->physical_rank; i++)
    goal_pair(c, "p", i, goal_at(c, outer->map->outputs[i], positions, layout_box_rank(outer)),
              made->map->outputs[i]);
  return goal_show(c);
}

// Two elements of the layout that share a physical index, which makes an answer "no".
static bool show_collision(Certificate *c, const Layout *layout, const LayoutAnswer *answer) {
  LayoutQuestion injective = {LAYOUT_ASK_INJECTIVE, layout};
  return answer->witness2 && certificate_add(c, &injective, answer);
}

static bool show_inverse(Certificate *c, const Layout *layout) {
  LayoutQuestion inverse = {LAYOUT_ASK_INVERSE, layout};
  LayoutAnswer answer = layout_ask(c->context, &inverse);
  return certificate_add(c, &inverse, &answer);
}

bool divide_certificate(Certificate *c, const LayoutQuestion *q, const LayoutAnswer *answer) {
  const Layout *a = q->a, *b = q->b;
  const LayoutExpr *axes[2 * MAX_RANK], *positions[2 * MAX_RANK];
  if (answer->verdict == VERDICT_NO) return show_collision(c, b, answer);
  if (a->map->replica_count || b->map->replica_count) return false;
  goal_begin_box(c, b, axes);
  for (int i = 0; i < b->physical_rank; i++) positions[i] = goal_let(c, b->map->outputs[i]);
  for (int i = 0; i < a->physical_rank; i++)
    goal_pair(c, "p", i, goal_at(c, q->inverse.map->outputs[i], positions, b->physical_rank),
              a->map->outputs[i]);
  return goal_show(c) && (c->verifying || show_inverse(c, b));
}

// At the index that is found, a has the physical index of b, unless it is padding of a.
bool divide_left_certificate(Certificate *c, const LayoutQuestion *q, const LayoutAnswer *answer) {
  const Layout *a = q->a, *b = q->b;
  const LayoutExpr *axes[2 * MAX_RANK], *index[2 * MAX_RANK];
  LayoutInverse inverse;
  if (a->map->replica_count || b->map->replica_count) return false;
  if (layout_inverse(c->context, a, &inverse).verdict != VERDICT_YES) return false;
  const LayoutExpr *padding = q->inverse.padding, *zero = goal_number(c, 0);
  goal_begin_box(c, b, axes);
  for (int i = 0; i < a->rank; i++) index[i] = goal_let(c, q->inverse.map->outputs[i]);
  for (int i = 0; i < a->physical_rank; i++) {
    const LayoutExpr *there = goal_at(c, a->map->outputs[i], index, a->rank);
    const LayoutExpr *here = b->map->outputs[i];
    if (padding) there = layout_expr(c->context, LAYOUT_SELECT, padding, zero, there);
    if (padding) here = layout_expr(c->context, LAYOUT_SELECT, padding, zero, here);
    goal_pair(c, "p", i, there, here);
  }
  if (inverse.padding) {
    const LayoutExpr *at_b = goal_at(c, inverse.padding, b->map->outputs, b->physical_rank);
    goal_pair(c, "padding", 0, padding ? goal_op(c, LAYOUT_NE, padding, zero) : zero,
              goal_op(c, LAYOUT_NE, at_b, zero));
  }
  return goal_show(c) && (c->verifying || show_inverse(c, a));
}

// ---- Offsets -----------------------------------------------------------------------------------

bool offset_certificate(Certificate *c, const LayoutQuestion *q, const LayoutAnswer *answer) {
  const Layout *layout = q->a;
  if (!q->index && layout->rank) return false;
  const LayoutExpr *lets[2 * MAX_RANK];
  goal_begin(c, GOAL_EQUAL, layout->facts);
  for (int i = 0; i < layout_box_rank(layout); i++)
    lets[i] = goal_let(c, goal_number(c, i < layout->rank ? q->index[i] : 0));
  goal_pair(c, "offset", 0,
            goal_at(c, layout_offset_expr(c->context, layout), lets, layout_box_rank(layout)),
            q->value);
  return goal_show(c);
}

// The element has the offset, or its physical index has no element. With copies, the offset may be
// that of another copy than the first, which has no certificate.
bool at_offset_certificate(Certificate *c, const LayoutQuestion *q, const LayoutAnswer *answer) {
  const Layout *a = q->a;
  int64_t position[MAX_RANK];
  bool before = c->refused;
  if (answer->verdict == VERDICT_YES) {
    bool shown = offset_certificate(c, q, answer);
    if (a->map->replica_count) c->refused = before;
    return shown;
  }
  if (!a->is_static) return false;
  layout_index_at(a->physical_extents, a->physical_rank, q->value->value, position);
  LayoutQuestion onto = {LAYOUT_ASK_ONTO, a};
  LayoutAnswer no = {.verdict = VERDICT_NO, .witness = position, .witness_rank = a->physical_rank};
  return certificate_add(c, &onto, &no);
}

bool strides_certificate(Certificate *c, const LayoutQuestion *q, const LayoutAnswer *answer) {
  const Layout *layout = q->a;
  const LayoutExpr *axes[2 * MAX_RANK], *base[2 * MAX_RANK], *const *strides = q->strides;
  bool any = false;
  for (int i = 0; i < layout->rank; i++) any |= strides[i] != NULL;
  if (!any) return false;
  goal_begin_box(c, layout, axes);
  for (int i = 0; i < layout_box_rank(layout); i++)
    base[i] = i < layout->rank && strides[i] ? goal_number(c, 0) : axes[i];
  const LayoutExpr *offset = memory_offset(c, layout);
  const LayoutExpr *first = goal_at(c, offset, base, layout_box_rank(layout));
  goal_pair(c, "offset", 0, offset, sum_of(c, first, strides, axes, layout->rank));
  return goal_show(c);
}

// In groups of `width` elements along the axis, the offset counts up from a multiple of `width`,
// and the index of every other resource is one number.
static void vector_goal(Certificate *c, const Layout *layout, int axis, int64_t width) {
  const LayoutExpr *axes[2 * MAX_RANK], *first[2 * MAX_RANK], *each[2 * MAX_RANK];
  const LayoutExpr *extent = layout->shape[axis];
  int count = layout_box_rank(layout);
  goal_begin(c, GOAL_EQUAL, layout->facts);
  const LayoutExpr *w = goal_number(c, width),
                   *groups = goal_op(c, LAYOUT_ADD, extent, goal_number(c, width - 1));
  for (int i = 0; i < count; i++)
    axes[i] = goal_axis(c, i == axis ? goal_op(c, LAYOUT_DIV, groups, w) : layout->shape[i]);
  const LayoutExpr *lane = goal_axis(c, w);
  memcpy(first, axes, sizeof *axes * (size_t)count);
  memcpy(each, axes, sizeof *axes * (size_t)count);
  first[axis] = goal_op(c, LAYOUT_MUL, axes[axis], w);
  each[axis] = goal_op(c, LAYOUT_ADD, first[axis], lane);
  bool whole = is_const(extent) && extent->value % width == 0;
  const LayoutExpr *there =
      whole || !is_const(extent) ? NULL : goal_op(c, LAYOUT_LT, each[axis], extent);
  for (int i = -1; i < layout->physical_rank; i++) {
    if (i >= 0 && !layout->map->resources[i]) continue;
    const LayoutExpr *value = i < 0 ? memory_offset(c, layout) : layout->map->outputs[i];
    const LayoutExpr *have = goal_at(c, value, each, count),
                     *want = goal_at(c, value, first, count);
    if (i < 0) goal_pair(c, "aligned", 0, goal_op(c, LAYOUT_MOD, want, w), goal_number(c, 0));
    if (i < 0) want = goal_op(c, LAYOUT_ADD, want, lane);
    if (there) have = layout_expr(c->context, LAYOUT_SELECT, there, have, goal_number(c, 0));
    if (there) want = layout_expr(c->context, LAYOUT_SELECT, there, want, goal_number(c, 0));
    goal_pair(c, i < 0 ? "offset" : "p", MAX_OF(i, 0), have, want);
  }
}

// Where the equation fails; NULL: not found among the points of the box.
static const int64_t *counter_example(Certificate *c) {
  const GoalNames *axes = &c->goal->axes, *positions = &c->goal->positions;
  int64_t extents[GOAL_NAMES];
  const LayoutExpr *goals[GOAL_NAMES];
  bool plain = axes->count <= MAX_RANK && positions->count <= GOAL_NAMES;
  for (int i = 0; i < axes->count && plain; i++) {
    plain = is_const(axes->items[i].extent);
    extents[i] = axes->items[i].extent->value;
  }
  for (int i = 0; i < positions->count && plain; i++)
    goals[i] = goal_op(c, LAYOUT_EQ, positions->items[i].value, positions->items[i].other);
  if (!plain) return NULL;
  LayoutAnswer answer =
      layout_points_hold(c->context, extents, axes->count, goals, positions->count);
  return answer.verdict == VERDICT_NO ? answer.witness : NULL;
}

// A vector of this width is there, and, on static extents, an index where one of twice the width is
// not; the latter may be missing.
static bool show_vector(Certificate *c, const Layout *layout, int axis, int64_t width) {
  vector_goal(c, layout, axis, width);
  if (!goal_show(c)) return false;
  if (!layout->is_static || layout->extents[axis] < 2 * width) return true;
  bool before = c->refused;
  vector_goal(c, layout, axis, 2 * width);
  c->goal->yes = false;
  c->goal->at = counter_example(c);
  if (!c->goal->at || !goal_show(c)) goal_drop(c);
  c->refused = before;
  return true;
}

// The vectors along all axes that the question is about. An axis whose width of 1 says nothing is
// left out.
bool vector_certificate(Certificate *c, const LayoutQuestion *q, const LayoutAnswer *answer) {
  const Layout *a = q->a;
  bool any = false;
  for (int i = 0; i < a->rank; i++) {
    bool wider = a->is_static && a->extents[i] > 1;
    if (!q->widths[i] || (q->widths[i] == 1 && !wider)) continue;
    if (!show_vector(c, a, i, q->widths[i])) return false;
    any = true;
  }
  return any;
}

bool slice_certificate(Certificate *c, const LayoutQuestion *q, const LayoutAnswer *answer) {
  const Layout *layout = q->a;
  const LayoutExpr *axes[2 * MAX_RANK], *index[2 * MAX_RANK];
  const LayoutSlice *slice = &q->slice;
  if (!slice->layout) return false;
  goal_begin_box(c, slice->layout, axes);
  for (int i = 0; i < layout->rank; i++) {
    const LayoutExpr *x =
        q->step ? goal_op(c, LAYOUT_MUL, axes[i], goal_number(c, q->step[i])) : axes[i];
    index[i] = goal_let(c, q->low ? goal_op(c, LAYOUT_ADD, x, q->low[i]) : x);
  }
  for (int i = layout->rank; i < layout_box_rank(layout); i++) index[i] = axes[i];
  for (int i = 0; i < layout->physical_rank; i++)
    goal_pair(c, "p", i, goal_at(c, layout->map->outputs[i], index, layout_box_rank(layout)),
              slice->layout->map->outputs[i]);
  if (slice->strides)
    goal_pair(c, "offset", 0, goal_at(c, memory_offset(c, layout), index, layout_box_rank(layout)),
              sum_of(c, slice->offset, slice->strides, axes, layout->rank));
  return goal_show(c);
}

// ---- Digits ------------------------------------------------------------------------------------

bool refine_certificate(Certificate *c, const LayoutQuestion *q, const LayoutAnswer *answer) {
  const Layout *a = q->a, *b = q->b;
  const LayoutExpr *axes[2 * MAX_RANK], *zeros[2 * MAX_RANK];
  const Layout *both[] = {a, b};
  const LayoutRefinement *found = &q->refinement;
  if (a->map->replica_count || b->map->replica_count) return false;
  goal_begin_box(c, a, axes);
  for (int i = 0; i < a->rank; i++) zeros[i] = goal_number(c, 0);
  for (int k = 0; k < 2; k++) {
    const LayoutExpr *offset = layout_offset_expr(c->context, both[k]);
    const LayoutExpr *sum = goal_at(c, offset, zeros, a->rank);
    for (int i = 0; i < found->count; i++) {
      const LayoutFactor *f = &found->factors[i];
      const LayoutExpr *digit =
          goal_op(c, LAYOUT_DIV, axes[f->digit.axis], goal_number(c, f->digit.cut));
      digit = goal_op(c, LAYOUT_MOD, digit, f->digit.extent);
      sum = goal_op(c, found->bits ? LAYOUT_XOR : LAYOUT_ADD, sum,
                    goal_op(c, LAYOUT_MUL, digit, f->weights[k]));
    }
    goal_pair(c, "offset", k, offset, sum);
  }
  return goal_show(c);
}

// Row-major over (axis // cut) % extent, outermost first; the last along an axis takes the rest.
bool blocking_certificate(Certificate *c, const LayoutQuestion *q, const LayoutAnswer *answer) {
  const Layout *layout = q->a;
  const LayoutBlocking *found = &q->blocking;
  const LayoutExpr *axes[2 * MAX_RANK];
  const LayoutExpr *sum = goal_number(c, 0);
  goal_begin_box(c, layout, axes);
  for (int i = 0; i < found->count; i++) {
    const LayoutDigit *block = &found->blocks[i];
    const LayoutExpr *digit = goal_op(c, LAYOUT_DIV, axes[block->axis], goal_number(c, block->cut));
    bool last = true;
    for (int j = 0; j < found->count; j++)
      last &= found->blocks[j].axis != block->axis || found->blocks[j].cut <= block->cut;
    if (!last) digit = goal_op(c, LAYOUT_MOD, digit, block->extent);
    sum = goal_op(c, LAYOUT_ADD, goal_op(c, LAYOUT_MUL, sum, block->extent), digit);
  }
  goal_pair(c, "offset", 0, memory_offset(c, layout), sum);
  return goal_show(c);
}

bool permutation_certificate(Certificate *c, const LayoutQuestion *q, const LayoutAnswer *answer) {
  const Layout *layout = q->a;
  const LayoutExpr *axes[2 * MAX_RANK];
  const LayoutExpr *sum = goal_number(c, 0);
  goal_begin_box(c, layout, axes);
  for (int i = 0; i < layout->rank; i++)
    sum = goal_op(c, LAYOUT_ADD, goal_op(c, LAYOUT_MUL, sum, layout->shape[q->order[i]]),
                  axes[q->order[i]]);
  goal_pair(c, "offset", 0, memory_offset(c, layout), sum);
  return goal_show(c);
}

// Elements of a and of b with one row-major number have one offset.
bool reshape_certificate(Certificate *c, const LayoutQuestion *q, const LayoutAnswer *answer) {
  const Layout *a = q->a, *b = q->b;
  const LayoutExpr *axes[2 * MAX_RANK], *index[2 * MAX_RANK];
  if (a->map->replica_count || b->map->replica_count) return false;
  const LayoutExpr *ordinal = goal_number(c, 0), *sizes[] = {goal_number(c, 1), goal_number(c, 1)};
  goal_begin_box(c, a, axes);
  for (int i = 0; i < a->rank; i++) {
    ordinal = goal_op(c, LAYOUT_ADD, goal_op(c, LAYOUT_MUL, ordinal, a->shape[i]), axes[i]);
    sizes[0] = goal_op(c, LAYOUT_MUL, sizes[0], a->shape[i]);
  }
  for (int i = b->rank - 1; i >= 0; i--) {
    index[i] = goal_op(c, LAYOUT_DIV, ordinal, sizes[1]);
    if (i) index[i] = goal_op(c, LAYOUT_MOD, index[i], b->shape[i]);
    sizes[1] = goal_op(c, LAYOUT_MUL, sizes[1], b->shape[i]);
  }
  for (int i = 0; i < b->rank; i++) index[i] = goal_let(c, index[i]);
  goal_add(&c->goal->shapes,
           (GoalName){str_intern(c->context, "elements"), NULL, sizes[0], sizes[1]});
  goal_pair(c, "offset", 0, memory_offset(c, a), goal_at(c, memory_offset(c, b), index, b->rank));
  goal_answered(c, answer);
  return goal_show(c);
}

// That a loop nest visits every element has no certificate.
bool loop_order_certificate(Certificate *c, const LayoutQuestion *q, const LayoutAnswer *answer) {
  return answer->verdict == VERDICT_NO && show_collision(c, q->a, answer);
}
