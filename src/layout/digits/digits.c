// SPDX-License-Identifier: Apache-2.0
// Answers the questions about static layouts that normal forms decide: equality, bounds,
// simplification, collisions, strides and vectors. A verdict of yes is proved by normal form, and a
// verdict of no is shown by an index that was evaluated; everything else is left to the enumeration
// of points.
#include "layout/digits/digits.h"

// ---- Equality ----------------------------------------------------------------------------------

typedef bool (*IndexTest)(const int64_t *index, void *data);

// Tries the origin, the last index, and on each axis the indices at which a floor of `f` steps.
static bool try_breakpoints(const DigitSpace *d, const DigitForm *f, int64_t *index, IndexTest test,
                            void *data) {
  size_t size = sizeof *index * (size_t)d->axis_count;
  memset(index, 0, size);
  if (test(index, data)) return true;
  for (int i = 0; i < f->count; i++) {
    const FormTerm *t = &f->terms[i];
    if (d->bases[t->base].kind != BASE_AXIS) continue;
    int axis = d->bases[t->base].axis;
    for (int64_t before = 0; before < 2; before++) {
      index[axis] = t->cut - t->offset - before;
      if (index[axis] < d->extents[axis] && test(index, data)) return true;
    }
    index[axis] = d->extents[axis] - 1;
    if (test(index, data)) return true;
    index[axis] = 0;
  }
  for (int i = 0; i < d->axis_count; i++) index[i] = d->extents[i] - 1;
  return test(index, data);
}

typedef struct FormPair {
  const LayoutExpr *a, *b;
} FormPair;

static bool values_differ(const int64_t *index, void *data) {
  const FormPair *pair = data;
  int64_t a, b;
  bool a_good = layout_expr_value(pair->a, index, NULL, 0, &a);
  bool b_good = layout_expr_value(pair->b, index, NULL, 0, &b);
  return a_good != b_good || (a_good && a != b);
}

static Verdict outputs_equal(DigitSpace *d, const LayoutExpr *a, const LayoutExpr *b,
                             int64_t *witness) {
  if (a == b) return VERDICT_YES;
  const DigitForm *f = layout_form_of(d, a), *g = layout_form_of(d, b);
  const DigitForm *difference = layout_form_linear(d, f, 1, g, -1);
  if (!difference) return VERDICT_UNDECIDED;
  if (layout_form_equal(d, f, g)) return VERDICT_YES;
  FormPair pair = {a, b};
  return try_breakpoints(d, difference, witness, values_differ, &pair) ? VERDICT_NO
                                                                       : VERDICT_UNDECIDED;
}

Verdict layout_digits_maps_equal(Context *context, const int64_t *extents, int rank,
                                 const LayoutExpr *const *a, const LayoutExpr *const *b, int count,
                                 int64_t *witness) {
  ArenaMark mark = arena_mark(&context->scratch);
  DigitSpace d = layout_digits_new(context, extents, rank);
  Verdict all = VERDICT_YES;
  for (int i = 0; i < count && all != VERDICT_NO; i++) {
    Verdict proof = outputs_equal(&d, a[i], b[i], witness);
    if (proof != VERDICT_YES) all = proof;
  }
  arena_reset(&context->scratch, mark);
  return all;
}

bool layout_digits_inside(Context *context, const Layout *layout) {
  ArenaMark mark = arena_mark(&context->scratch);
  DigitSpace d = layout_digits_new(context, layout->extents, layout_box_rank(layout));
  bool inside = true;
  for (int i = 0; i < layout->physical_rank && inside; i++) {
    Interval b;
    const DigitForm *f = layout_form_of(&d, layout->map->outputs[i]);
    inside =
        f && layout_form_bounds(&d, f, &b) && b.low >= 0 && b.high < layout->physical_extents[i];
  }
  arena_reset(&context->scratch, mark);
  return inside;
}

void layout_digits_simplify(Context *context, const LayoutExpr *const *exprs, int count,
                            const int64_t *extents, int rank, const LayoutExpr **out) {
  ArenaMark mark = arena_mark(&context->scratch);
  DigitSpace d = {0};
  bool empty = false;
  for (int i = 0; i < rank; i++) empty |= extents[i] < 1;
  if (!empty) d = layout_digits_new(context, extents, rank);
  for (int i = 0; i < count; i++) {
    bool small = !empty && layout_expr_size(exprs[i]) <= MAX_TREE;
    const DigitForm *f = small ? layout_form_of(&d, exprs[i]) : NULL;
    const LayoutExpr *simple = f ? layout_form_expr(&d, f, NULL) : NULL;
    out[i] = simple ? simple : exprs[i];
  }
  arena_reset(&context->scratch, mark);
}

const LayoutExpr *layout_expr_simplify(Context *context, const LayoutExpr *e,
                                       const int64_t *extents, int rank) {
  const LayoutExpr *out;
  layout_digits_simplify(context, &e, 1, extents, rank, &out);
  return out;
}

// ---- Collisions --------------------------------------------------------------------------------

typedef struct Collision {
  const Layout *layout;
  int64_t origin[MAX_RANK];
} Collision;

static bool collides(const int64_t *index, void *data) {
  const Collision *c = data;
  int64_t position[MAX_RANK];
  bool same = index_map_apply(c->layout->map, index, position), at_origin = true;
  for (int i = 0; i < c->layout->physical_rank && same; i++) same = position[i] == c->origin[i];
  for (int i = 0; i < c->layout->rank; i++) at_origin = at_origin && index[i] == 0;
  return same && !at_origin;
}

static bool collide_on_axes(const Layout *layout, int64_t *index, Collision *c) {
  enum { NEAR = 64 };
  memset(index, 0, sizeof *index * (size_t)layout->rank);
  for (int i = 0; i < layout->rank; i++) {
    for (int64_t v = 1; v < MIN_OF(layout->extents[i], (int64_t)NEAR); v++) {
      index[i] = v;
      if (collides(index, c)) return true;
    }
    index[i] = 0;
  }
  return false;
}

bool layout_digits_collision(Context *context, const Layout *layout, int64_t *a, int64_t *b) {
  Collision c = {.layout = layout};
  memset(a, 0, sizeof *a * (size_t)layout->rank);
  if (!index_map_apply(layout->map, a, c.origin)) return false;
  if (collide_on_axes(layout, b, &c)) return true;
  ArenaMark mark = arena_mark(&context->scratch);
  DigitSpace d = layout_digits_new(context, layout->extents, layout->rank);
  bool found = false;
  for (int i = 0; i < layout->physical_rank && !found; i++) {
    const DigitForm *f = layout_form_of(&d, layout->map->outputs[i]);
    found = f && try_breakpoints(&d, f, b, collides, &c);
  }
  arena_reset(&context->scratch, mark);
  return found;
}

// ---- Strides and vectors -----------------------------------------------------------------------

// With plain floors an axis has a stride exactly when only its cut 1 occurs: floors of different
// cuts are linearly independent.
static void plain_strides(const DigitForm *f, int64_t *strides, bool *has_stride) {
  for (int i = 0; i < f->count; i++) {
    const FormTerm *t = &f->terms[i];
    if (t->cut == 1)
      strides[t->base] = t->coefficient;
    else
      has_stride[t->base] = false;
  }
}

bool layout_digits_strides(Context *context, const Layout *layout, int64_t *strides,
                           bool *has_stride) {
  ArenaMark mark = arena_mark(&context->scratch);
  DigitSpace d = layout_digits_new(context, layout->extents, layout->rank);
  const DigitForm *f = layout_form_of(&d, layout_offset_expr(context, layout));
  bool plain = f && layout_form_is_plain(&d, f);
  for (int i = 0; i < layout->rank && plain; i++) {
    strides[i] = 0;
    has_stride[i] = true;
  }
  if (plain) plain_strides(f, strides, has_stride);
  arena_reset(&context->scratch, mark);
  return plain;
}

// The number that every vector width divides, by the form of the offset. Consecutive elements along
// the axis have consecutive offsets except at multiples of its other cuts; these cuts and every
// other coefficient must be multiples of the width.
static int64_t plain_run(const DigitForm *f, int axis) {
  int64_t gcd = f->constant;
  bool unit = false;
  for (int i = 0; i < f->count; i++) {
    const FormTerm *t = &f->terms[i];
    if (t->base != axis)
      gcd = gcd_of(gcd, t->coefficient);
    else if (t->cut == 1)
      unit = t->coefficient == 1;
    else
      gcd = gcd_of(gcd_of(gcd, t->cut), t->coefficient);
  }
  return unit ? gcd : 1;
}

bool layout_digits_vector_width(Context *context, const Layout *layout, int axis, int64_t *width) {
  ArenaMark mark = arena_mark(&context->scratch);
  DigitSpace d = layout_digits_new(context, layout->extents, layout->rank);
  const DigitForm *f = layout_form_of(&d, layout_offset_expr(context, layout));
  bool plain = f && layout_form_is_plain(&d, f);
  if (plain) *width = layout_largest_divisor(plain_run(f, axis), layout->extents[axis]);
  arena_reset(&context->scratch, mark);
  return plain;
}
