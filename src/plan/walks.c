// SPDX-License-Identifier: Apache-2.0
// Makes walks of layouts, which are the digits of the axes in the order of memory, and transfers
// them from one tensor to another through a relation. Composition is substitution, and each index
// of the composed map is read as a sum of digits by the layout library.
#include "plan/relations.h"

const LayoutWalk *walk_keep(Context *context, const LayoutWalk *walk) {
  size_t bytes = offsetof(LayoutWalk, digits) + sizeof *walk->digits * (size_t)walk->count;
  return arena_copy(&context->arena, walk, bytes);
}

const WalkDigit *walk_row(const LayoutWalk *walk) {
  for (int i = walk->count - 1; i >= 0; i--)
    if (walk->digits[i].extent > 1) return &walk->digits[i];
  return NULL;
}

bool walk_equal(const LayoutWalk *a, const LayoutWalk *b) {
  if (a->count != b->count) return false;
  for (int i = 0; i < a->count; i++)
    if (a->digits[i].axis != b->digits[i].axis || a->digits[i].cut != b->digits[i].cut ||
        a->digits[i].extent != b->digits[i].extent)
      return false;
  return true;
}

// ---- Digits of composed maps

typedef struct Walking {
  Context *context;
  const int64_t *box;
  int rank;
  uint32_t loose; // axes that no digit may cut
  LayoutWalk *walk;
} Walking;

// Appends a digit, or extends the last one when it goes on in memory as on its axis.
static bool add_digit(const Walking *w, WalkDigit digit) {
  LayoutWalk *walk = w->walk;
  WalkDigit *last = walk->count ? &walk->digits[walk->count - 1] : NULL;
  if (w->loose >> digit.axis & 1 && (digit.cut != 1 || digit.extent != w->box[digit.axis]))
    return false;
  bool goes_on = last && last->axis == digit.axis && last->cut == digit.cut * digit.extent;
  bool top = goes_on && last->cut * last->extent >= w->box[digit.axis];
  if (goes_on && (!top || last->cut * last->extent == w->box[digit.axis])) {
    last->cut = digit.cut;
    last->extent *= digit.extent;
    return true;
  }
  if (walk->count == WALK_MAX_DIGITS) return false;
  walk->digits[walk->count++] = digit;
  return true;
}

// Appends the digits of one physical index. The first of them has the padding of the physical axis.
static bool add_output(const Walking *w, const LayoutExpr *e, int64_t physical) {
  LayoutDigitSum sum;
  if (!layout_expr_digits(w->context, e, w->box, w->rank, &sum)) return false;
  for (int i = 0; i < sum.count; i++) {
    const LayoutWeightedDigit *g = &sum.digits[i];
    int64_t extent = g->extent;
    bool padded = i == 0 && g->cut == 1 && g->weight == 1 && extent == w->box[g->axis];
    if (padded && e->op == LAYOUT_MOD && physical > extent) extent = physical;
    if (!add_digit(w, (WalkDigit){g->axis, g->cut, extent})) return false;
  }
  return true;
}

bool layout_is_array(const Layout *layout) {
  const IndexMap *map = layout->map;
  for (int i = 0; i < map->output_count; i++)
    if (map->resources && map->resources[i]) return false;
  return layout->is_static && !map->separator_count && !map->replica_count;
}

// The walk of layout ∘ index over the box. `index` has an expression for each axis of the layout.
static bool walk_composed(const Walking *w, const Layout *layout, int layout_rank,
                          const LayoutExpr *const *index) {
  w->walk->count = 0;
  for (int i = 0; !layout && i < layout_rank; i++)
    if (!add_output(w, index[i], 0)) return false;
  if (!layout) return true;
  if (!layout_is_array(layout)) return false;
  for (int i = 0; i < layout->map->output_count; i++) {
    const LayoutExpr *e =
        layout_expr_substitute(w->context, layout->map->outputs[i], index, layout_rank);
    if (!add_output(w, e, layout->physical_extents[i])) return false;
  }
  return true;
}

bool layout_walk(Context *context, const Layout *layout, const int64_t *shape, int rank,
                 LayoutWalk *out) {
  const LayoutExpr *axes[TE_MAX_RANK];
  for (int a = 0; a < rank; a++) axes[a] = layout_axis(context, a);
  Walking w = {context, shape, rank, 0, out};
  return walk_composed(&w, layout, rank, axes);
}

bool relation_read_walk(Context *context, const ReadRelation *relation, const Layout *layout,
                        LayoutWalk *out) {
  Walking w = {context, relation->box, relation->rank, relation->loose, out};
  return walk_composed(&w, layout, relation->read_rank, relation->read->outputs);
}

static bool uses_axis(const LayoutExpr *e, int axis) {
  if (e->op == LAYOUT_AXIS) return e->value == axis;
  for (int i = 0; i < layout_op_arguments(e->op); i++)
    if (uses_axis(e->args[i], axis)) return true;
  return false;
}

static bool moves_read(const ReadRelation *relation, int axis) {
  for (int d = 0; d < relation->read_rank; d++)
    if (uses_axis(relation->read->outputs[d], axis)) return true;
  return false;
}

// Removes the digits of the axes that do not move the tensor that is read.
static bool keep_moved(const ReadRelation *relation, const Walking *w) {
  LayoutWalk all = *w->walk;
  w->walk->count = 0;
  for (int i = 0; i < all.count; i++)
    if (moves_read(relation, all.digits[i].axis) && !add_digit(w, all.digits[i])) return false;
  return true;
}

bool relation_write_walk(Context *context, const ReadRelation *relation, const Layout *layout,
                         LayoutWalk *out) {
  Walking w = {context, relation->box, relation->rank, relation->loose, out};
  return walk_composed(&w, layout, relation->rank, relation->write->outputs) &&
         keep_moved(relation, &w);
}

// ---- Transfer

// The axes of the domain as expressions of the index of the tensor that is written.
static void domain_of_write(Context *context, const ReadRelation *relation,
                            const LayoutExpr **axes) {
  for (int a = 0; a < relation->rank; a++) {
    const LayoutExpr *e = relation->write->outputs[a], *axis = layout_axis(context, a);
    int64_t low = 0;
    layout_expr_value(e, (int64_t[TE_MAX_RANK]){0}, NULL, 0, &low);
    axes[a] = layout_expr(context, LAYOUT_SUB, axis, layout_const(context, low), NULL);
  }
}

// One digit of an axis from the index along the dimension that holds it. The dimension's only digit
// is the whole index, whatever its weight; the topmost of several has no upper end.
static const LayoutExpr *digit_of_index(Context *context, const LayoutDigitSum *sum, int i,
                                        const LayoutExpr *index) {
  const LayoutWeightedDigit *g = &sum->digits[i];
  if (sum->count == 1 && g->cut == 1 && g->weight > 1) return index;
  index = layout_expr(context, LAYOUT_SUB, index, layout_const(context, sum->start), NULL);
  index = layout_expr(context, LAYOUT_DIV, index, layout_const(context, g->weight), NULL);
  if (i > 0)
    index = layout_expr(context, LAYOUT_MOD, index, layout_const(context, g->extent), NULL);
  return layout_expr(context, LAYOUT_MUL, index, layout_const(context, g->cut), NULL);
}

// Do the digits fill the dimension without gaps, so that the index tells them?
static bool is_dense(const LayoutDigitSum *sum) {
  for (int i = 0; i + 1 < sum->count; i++)
    if (sum->digits[i].weight != sum->digits[i + 1].weight * sum->digits[i + 1].extent)
      return false;
  return sum->count < 2 || sum->digits[sum->count - 1].weight == 1;
}

// The axes of the domain as expressions of the index of the tensor that is read; 0 for axes that do
// not move it.
static bool domain_of_read(Context *context, const ReadRelation *relation,
                           const LayoutExpr **axes) {
  LayoutDigitSum sum;
  for (int a = 0; a < relation->rank; a++) axes[a] = layout_const(context, 0);
  for (int d = 0; d < relation->read_rank; d++) {
    if (!layout_expr_digits(context, relation->read->outputs[d], relation->box, relation->rank,
                            &sum) ||
        !is_dense(&sum))
      return false;
    for (int i = 0; i < sum.count; i++) {
      int a = sum.digits[i].axis;
      axes[a] = layout_expr(context, LAYOUT_ADD, axes[a],
                            digit_of_index(context, &sum, i, layout_axis(context, d)), NULL);
    }
  }
  return true;
}

// Puts the leading axes that have no digit before all digits, where windows are read: the axes of
// the products of a bilinear algorithm, which do not move the tensor on the other side.
static bool add_leading_axes(const Walking *w) {
  LayoutWalk with = {0}, all = *w->walk;
  for (int a = 0; a < w->rank; a++) {
    for (int i = 0; i < all.count; i++)
      if (all.digits[i].axis == a) a = w->rank;
    if (a < w->rank && w->box[a] > 1) with.digits[with.count++] = (WalkDigit){a, 1, w->box[a]};
  }
  if (!with.count || with.count == w->rank) return true;
  if (with.count + all.count > WALK_MAX_DIGITS) return false;
  memcpy(with.digits + with.count, all.digits, sizeof *all.digits * (size_t)all.count);
  with.count += all.count;
  *w->walk = with;
  return true;
}

bool relation_indices(Context *context, const ReadRelation *relation, bool forward,
                      const Layout *layout, const LayoutExpr **index) {
  const LayoutExpr *axes[TE_MAX_RANK];
  const IndexMap *from = forward ? relation->read : relation->write;
  LayoutWalk walk;
  if (!(forward ? relation_read_walk : relation_write_walk)(context, relation, layout, &walk))
    return false;
  if (forward)
    domain_of_write(context, relation, axes);
  else if (!domain_of_read(context, relation, axes))
    return false;
  for (int i = 0; i < from->output_count; i++)
    index[i] = layout_expr_substitute(context, from->outputs[i], axes, relation->rank);
  return true;
}

bool relation_transfer(Context *context, const ReadRelation *relation, bool forward,
                       const Layout *layout, LayoutWalk *out) {
  const LayoutExpr *index[TE_MAX_RANK];
  int count = forward ? relation->read_rank : relation->rank;
  if (!relation_indices(context, relation, forward, layout, index)) return false;
  Walking w = {context, forward ? relation->write_shape : relation->read_shape,
               forward ? relation->rank : relation->read_rank, 0, out};
  return walk_composed(&w, layout, count, index) && (!relation->loose || add_leading_axes(&w));
}

// ---- Layouts of walks

// Do the digits of the axis tell all its values apart, each once?
static bool is_complete(const LayoutWalk *walk, int axis, int64_t extent) {
  int64_t known = 1;
  int used = 0, own = 0;
  for (int i = 0; i < walk->count; i++) own += walk->digits[i].axis == axis;
  for (int i = 0; i < walk->count; i++) {
    const WalkDigit *g = &walk->digits[i];
    if (g->axis != axis || g->cut != known) continue;
    known *= g->extent;
    used++;
    i = -1;
  }
  return known >= extent && used == own;
}

typedef struct WalkOutputs {
  const LayoutExpr *items[WALK_MAX_DIGITS + TE_MAX_RANK];
  int top_of[WALK_MAX_DIGITS + TE_MAX_RANK]; // the axis whose topmost digit it is; -1: none
  bool is_zero[WALK_MAX_DIGITS + TE_MAX_RANK];
  int count;
} WalkOutputs;

static int place_of_top(const WalkOutputs *out, int axis) {
  for (int i = 0; i < out->count; i++)
    if (out->top_of[i] == axis) return i;
  return -1;
}

// The place of the topmost part of an axis, which is always 0: before the first later axis, or else
// after the nearest earlier axis, but not within the innermost digit.
static int place_of_zero(const WalkOutputs *out, int axis) {
  for (int i = 0; i < out->count; i++)
    if (out->top_of[i] > axis) return i;
  for (int earlier = axis - 1; earlier >= 0; earlier--) {
    int at = place_of_top(out, earlier);
    if (at >= 0 && (at + 1 < out->count || out->is_zero[at])) return at + 1;
  }
  return out->count;
}

static void insert_top(WalkOutputs *out, int axis, const LayoutExpr *e) {
  int at = place_of_zero(out, axis);
  for (int i = out->count++; i > at; i--) {
    out->items[i] = out->items[i - 1];
    out->top_of[i] = out->top_of[i - 1];
    out->is_zero[i] = out->is_zero[i - 1];
  }
  out->items[at] = e;
  out->top_of[at] = axis;
  out->is_zero[at] = true;
}

// The expression of a digit. Sets *top when the axis needs no part above.
static const LayoutExpr *digit_expr(Context *context, const WalkDigit *g, int64_t extent,
                                    bool *top) {
  const LayoutExpr *e = layout_axis(context, g->axis);
  *top = g->cut * g->extent >= extent && (g->cut > 1 || g->extent == extent);
  if (g->cut > 1) e = layout_expr(context, LAYOUT_DIV, e, layout_const(context, g->cut), NULL);
  return *top ? e : layout_expr(context, LAYOUT_MOD, e, layout_const(context, g->extent), NULL);
}

int walk_outputs(Context *context, const LayoutWalk *walk, const int64_t *shape, int rank,
                 const LayoutExpr **outputs) {
  WalkOutputs out = {0};
  bool topped[TE_MAX_RANK] = {false};
  for (int a = 0; a < rank; a++)
    if (!is_complete(walk, a, shape[a])) return 0;
  for (int i = 0; i < walk->count; i++) {
    const WalkDigit *g = &walk->digits[i];
    bool top;
    out.items[out.count] = digit_expr(context, g, shape[g->axis], &top);
    out.top_of[out.count++] = top ? g->axis : -1;
    topped[g->axis] |= top;
  }
  for (int a = 0; a < rank; a++) {
    if (topped[a]) continue;
    const LayoutExpr *e = layout_axis(context, a);
    for (int i = 0; i < walk->count; i++)
      if (walk->digits[i].axis == a)
        e = layout_expr(context, LAYOUT_DIV, layout_axis(context, a),
                        layout_const(context, walk->digits[i].extent), NULL);
    insert_top(&out, a, e);
  }
  memcpy(outputs, out.items, sizeof *outputs * (size_t)out.count);
  return out.count;
}
