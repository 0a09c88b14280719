// SPDX-License-Identifier: Apache-2.0
// Answers questions about layouts with replica axes. The layout of the copies has them as logical
// axes. Questions about physical indices are asked of it, and the answers about elements follow:
//
//   onto, padding      the same
//   injective          when the copies are, or when no copies of two *different* elements share a
//                      physical index
//   inverse            its logical part
//   equal              copy by copy; or, where the physical indices are base(element) + a set of
//                      steps, base by base and set by set; or all sets of physical indices
#include "layout/answers/answers.h"
#include "layout/points/points.h"

#include <stdlib.h>

// ---- The layout of the copies ------------------------------------------------------------------

static const Layout *build(Context *context, const Layout *model, const IndexMap *map,
                           const LayoutExpr *const *shape) {
  const Layout *layout = layout_new(context, map, shape, model->physical, model->facts,
                                    model->padding, (SourcePos){0});
  if (!layout) bug(context, "the copies are no layout: %s", index_map_text(context, map));
  return layout;
}

// The layout without logical axis `axis`, whose index becomes 0.
static const Layout *without_axis(Context *context, const Layout *layout, int axis) {
  const LayoutExpr *axes[MAX_RANK], *outputs[MAX_RANK], *shape[MAX_RANK];
  Str names[MAX_RANK];
  const IndexMap *map = layout->map;
  for (int i = 0; i < layout->rank; i++) {
    int to = i - (i > axis);
    axes[i] = i == axis ? layout_const(context, 0) : layout_axis(context, to);
    if (i == axis) continue;
    shape[to] = layout->shape[i];
    names[to] = map->inputs[i];
  }
  for (int i = 0; i < map->output_count; i++)
    outputs[i] = layout_expr_substitute(context, map->outputs[i], axes, layout->rank);
  map = index_map_new(context, layout->rank - 1, names, map->output_count, outputs, map->resources,
                      map->separators, map->separator_count);
  return build(context, layout, map, shape);
}

// Whether the physical indices do not depend on an axis.
static bool is_idle(Context *context, const Layout *layout, int axis) {
  const LayoutExpr *outputs[MAX_RANK];
  for (int i = 0; i < layout->physical_rank; i++)
    outputs[i] = layout_at_zero(context, layout->map->outputs[i], axis, axis + 1);
  return layout_outputs_equal(context, layout, outputs).verdict == VERDICT_YES;
}

// ---- Copies as a set of steps from each element -------------------------------------------------

// The physical indices of an element as base(element) + steps. The steps are distinct and sorted in
// lexicographic order; the first one is 0.
typedef struct ReplicaSteps {
  const Layout *base;
  int64_t *steps; // [count][width]
  int width;
  int64_t count;
} ReplicaSteps;

enum { MAX_STEPS = 1 << 16 };

// Whether F(x, r) = F(x, 0) + F(0, r) - F(0, 0).
static bool is_separable(Context *context, const Layout *copies, int rank) {
  const LayoutExpr *sums[MAX_RANK];
  for (int i = 0; i < copies->physical_rank; i++) {
    const LayoutExpr *e = copies->map->outputs[i];
    sums[i] = layout_binary(context, LAYOUT_ADD, layout_at_zero(context, e, rank, copies->rank),
                            layout_at_zero(context, e, 0, rank));
    sums[i] =
        layout_binary(context, LAYOUT_SUB, sums[i], layout_at_zero(context, e, 0, copies->rank));
  }
  return layout_outputs_equal(context, copies, sums).verdict == VERDICT_YES;
}

typedef struct ReplicaRow {
  const int64_t *values;
  int width;
} ReplicaRow;

static int compare_rows(const void *a, const void *b) {
  const ReplicaRow *x = a, *y = b;
  for (int i = 0; i < x->width; i++)
    if (x->values[i] != y->values[i]) return x->values[i] < y->values[i] ? -1 : 1;
  return 0;
}

// The physical indices of element 0, one row for each copy. False where they depend on symbols.
static bool read_rows(Context *context, const Layout *copies, int rank, int64_t count,
                      ReplicaRow *rows) {
  int64_t index[MAX_RANK] = {0};
  int width = copies->physical_rank;
  for (int64_t i = 0; i < count; i++) {
    int64_t *values = arena_array(&context->scratch, int64_t, width);
    if (!index_map_apply(copies->map, index, values)) return false;
    rows[i] = (ReplicaRow){values, width};
    for (int axis = copies->rank - 1; axis >= rank; axis--) {
      if (++index[axis] < copies->shape[axis]->value) break;
      index[axis] = 0;
    }
  }
  return true;
}

// Makes the base, which maps each element to the physical index of its first copy.
static const Layout *base_layout(Context *context, const Layout *copies, int rank,
                                 const int64_t *first) {
  const LayoutExpr *outputs[MAX_RANK];
  int64_t origin[MAX_RANK], zeros[MAX_RANK] = {0};
  const IndexMap *map = copies->map;
  index_map_apply(map, zeros, origin);
  for (int i = 0; i < map->output_count; i++)
    outputs[i] =
        layout_by(context, LAYOUT_ADD, layout_at_zero(context, map->outputs[i], rank, copies->rank),
                  first[i] - origin[i]);
  map = index_map_new(context, rank, map->inputs, map->output_count, outputs, map->resources,
                      map->separators, map->separator_count);
  return build(context, copies, map, copies->shape);
}

static bool find_steps(Context *context, const Layout *copies, int rank, ReplicaSteps *out) {
  int64_t count = 1;
  for (int i = rank; i < copies->rank; i++)
    if (!mul_fits(count, copies->shape[i]->value, &count) || count > MAX_STEPS) return false;
  if (!is_separable(context, copies, rank)) return false;
  ReplicaRow *rows = arena_array(&context->scratch, ReplicaRow, count);
  if (!read_rows(context, copies, rank, count, rows)) return false;
  qsort(rows, (size_t)count, sizeof *rows, compare_rows);
  int width = copies->physical_rank;
  *out = (ReplicaSteps){base_layout(context, copies, rank, rows[0].values),
                        arena_array(&context->scratch, int64_t, count * width), width, 0};
  for (int64_t i = 0; i < count; i++) {
    if (i && !compare_rows(&rows[i], &rows[i - 1])) continue;
    for (int j = 0; j < width; j++)
      out->steps[out->count * width + j] = rows[i].values[j] - rows[0].values[j];
    out->count++;
  }
  return true;
}

// Whether the steps are 0, v, 2v, …
static bool is_progression(const ReplicaSteps *s) {
  for (int64_t i = 2; i < s->count; i++)
    for (int j = 0; j < s->width; j++)
      if (s->steps[i * s->width + j] != i * s->steps[s->width + j]) return false;
  return true;
}

// The layout of the copies of base(element) + v·r, with one replica axis r.
static const Layout *progression(Context *context, const Layout *copies, int rank,
                                 const ReplicaSteps *s) {
  const LayoutExpr *outputs[MAX_RANK], *shape[MAX_RANK];
  const IndexMap *map = s->base->map;
  for (int i = 0; i < rank; i++) shape[i] = copies->shape[i];
  shape[rank] = layout_const(context, s->count);
  for (int i = 0; i < s->width; i++) {
    const LayoutExpr *step = layout_const(context, s->count > 1 ? s->steps[s->width + i] : 0);
    outputs[i] = layout_add_product(context, map->outputs[i], layout_axis(context, rank), step);
  }
  map = index_map_new(context, rank + 1, copies->map->inputs, s->width, outputs, map->resources,
                      map->separators, map->separator_count);
  return build(context, copies, map, shape);
}

// Replaces replica axes under which copies of an element share a physical index, as in r + s, by
// one replica axis under which they do not.
static const Layout *without_overlap(Context *context, const Layout *copies, int rank) {
  int64_t size, count = 1;
  for (int i = rank; i < copies->rank; i++)
    if (!mul_fits(count, copies->shape[i]->value, &count) || count > 4096) return copies;
  if (count < 2 || (layout_logical_size(copies, &size) && !size)) return copies;
  ArenaMark mark = arena_mark(&context->scratch);
  ReplicaSteps s;
  if (find_steps(context, copies, rank, &s) && s.count < count && is_progression(&s))
    copies = progression(context, copies, rank, &s);
  arena_reset(&context->scratch, mark);
  return copies;
}

const Layout *layout_of_copies(Context *context, const Layout *layout) {
  if (!layout->map->replica_count) return layout;
  if (layout->cache->copies) return layout->cache->copies;
  const IndexMap *map = layout->map;
  map = index_map_new(context, layout_box_rank(layout), map->inputs, map->output_count,
                      map->outputs, map->resources, map->separators, map->separator_count);
  const Layout *copies = build(context, layout, map, layout->shape);
  for (int axis = copies->rank - 1; axis >= layout->rank; axis--)
    if (is_idle(context, copies, axis)) copies = without_axis(context, copies, axis);
  layout->cache->copies = without_overlap(context, copies, layout->rank);
  return layout->cache->copies;
}

// ---- Questions ---------------------------------------------------------------------------------

static bool same_element(const Layout *layout, const LayoutAnswer *collision) {
  return !collision->witness || !collision->witness2 ||
         !memcmp(collision->witness, collision->witness2,
                 sizeof *collision->witness * (size_t)layout->rank);
}

// The offsets of all copies, `each` of every element. NULL where there are too many.
static const int64_t *all_offsets(Context *context, const Layout *copies, int64_t elements,
                                  int64_t *each) {
  int64_t size;
  const LayoutExpr *offset = layout_offset_expr(context, copies);
  const int64_t *offsets =
      layout_points_table(context, copies->extents, copies->rank, offset, &size);
  if (offsets) *each = size / elements;
  return offsets;
}

// Searches for copies of different elements at one physical index, point by point.
static LayoutAnswer injective_by_points(Context *context, const Layout *layout,
                                        const Layout *copies) {
  int64_t elements, each;
  layout_logical_size(layout, &elements);
  ArenaMark mark = arena_mark(&context->scratch);
  const int64_t *offsets = all_offsets(context, copies, elements, &each);
  if (!offsets) {
    arena_reset(&context->scratch, mark);
    return layout_points_over_limit(context, copies->extents, copies->rank);
  }
  int64_t count = elements * each;
  const PointOffset *positions = layout_points_sorted(context, offsets, count);
  LayoutAnswer answer = layout_yes(LAYOUT_POINTS);
  for (int64_t i = 1; i < count && answer.verdict == VERDICT_YES; i++) {
    int64_t a = positions[i - 1].ordinal / each, b = positions[i].ordinal / each;
    if (positions[i - 1].offset == positions[i].offset && a != b)
      answer = layout_points_no(context, layout->extents, layout->rank, a, b, NULL);
  }
  arena_reset(&context->scratch, mark);
  return answer;
}

static LayoutAnswer injective(Context *context, const Layout *layout, const Layout *copies) {
  LayoutAnswer answer = layout_is_injective(context, copies);
  answer.witness_rank = MIN_OF(answer.witness_rank, layout->rank);
  if (answer.verdict != VERDICT_NO || !same_element(layout, &answer)) return answer;
  if (layout->is_static) return injective_by_points(context, layout, copies);
  return layout_undecided("copies of one element have the same physical index");
}

// The inverse of the copies gives the element and the index of its copy; only the element is kept.
static LayoutAnswer inverse(Context *context, const Layout *layout, const Layout *copies) {
  LayoutInverse both;
  LayoutAnswer answer = layout_inverse(context, copies, &both);
  if (answer.verdict == VERDICT_NO)
    return layout_answer_of(VERDICT_UNDECIDED, answer.level,
                            "no closed form of the inverse was found");
  if (answer.verdict != VERDICT_YES) return answer;
  layout->cache->inverse =
      (LayoutInverse){index_map_new(context, both.map->input_count, both.map->inputs, layout->rank,
                                    both.map->outputs, NULL, NULL, 0),
                      both.padding};
  return answer;
}

static LayoutAnswer identity(Context *context, const Layout *layout, const Layout *copies) {
  if (copies->rank == layout->rank) return layout_is_identity(context, copies);
  return layout_no("elements are stored more than once");
}

LayoutAnswer layout_copies_answer(Context *context, const Layout *layout, CachedQuestion question) {
  const Layout *copies = layout_of_copies(context, layout);
  switch (question) {
  case CACHED_IDENTITY: return identity(context, layout, copies);
  case CACHED_INJECTIVE: return injective(context, layout, copies);
  case CACHED_ONTO: return layout_is_onto(context, copies);
  case CACHED_INVERSE: return inverse(context, layout, copies);
  case CACHED_PADDING: return layout_padding_count(context, copies, &layout->cache->padding_count);
  case CACHED_COUNT: break;
  }
  return layout_undecided(NULL);
}

// ---- Equality: copy by copy --------------------------------------------------------------------

static bool copy_by_copy(Context *context, const Layout *a, const Layout *b) {
  if (a->rank != b->rank) return false;
  for (int i = 0; i < a->rank; i++)
    if (a->shape[i] != b->shape[i]) return false;
  return layout_maps_equal(context, a, b->map).verdict == VERDICT_YES;
}

// ---- Equality: a set of steps from each base ---------------------------------------------------

static LayoutAnswer differ_everywhere(Context *context, const Layout *layout) {
  LayoutAnswer no = layout_no("its copies are stored elsewhere");
  no.witness = arena_array(&context->lasting, int64_t, layout->rank);
  no.witness_rank = layout->rank;
  return no;
}

static LayoutAnswer steps_equal(Context *context, const Layout *layout, const ReplicaSteps *a,
                                const ReplicaSteps *b) {
  size_t size = sizeof *a->steps * (size_t)(a->count * a->width);
  if (a->count != b->count || memcmp(a->steps, b->steps, size))
    return differ_everywhere(context, layout);
  return layout_maps_equal(context, a->base, b->base->map);
}

// ---- Equality: all sets of physical indices ----------------------------------------------------

// The distinct offsets of element number `element`, sorted.
static int64_t positions_of(const int64_t *offsets, int64_t element, int64_t copies, int64_t *out) {
  int64_t count = 0;
  memcpy(out, offsets + element * copies, sizeof *out * (size_t)copies);
  qsort(out, (size_t)copies, sizeof *out, layout_compare_numbers);
  for (int64_t i = 0; i < copies; i++)
    if (!i || out[i] != out[count - 1]) out[count++] = out[i];
  return count;
}

static LayoutAnswer sets_equal(Context *context, const Layout *layout, const Layout *a,
                               const Layout *b) {
  int64_t elements, a_copies = 0, b_copies = 0;
  layout_logical_size(layout, &elements);
  const int64_t *x = all_offsets(context, a, elements, &a_copies);
  const int64_t *y = all_offsets(context, b, elements, &b_copies);
  if (!x || !y) return layout_points_over_limit(context, (x ? b : a)->extents, (x ? b : a)->rank);
  int64_t *p = arena_array(&context->scratch, int64_t, a_copies);
  int64_t *q = arena_array(&context->scratch, int64_t, b_copies);
  LayoutAnswer answer = layout_yes(LAYOUT_POINTS);
  for (int64_t i = 0; i < elements && answer.verdict == VERDICT_YES; i++) {
    int64_t count = positions_of(x, i, a_copies, p);
    if (count == positions_of(y, i, b_copies, q) && !memcmp(p, q, sizeof *p * (size_t)count))
      continue;
    answer = differ_everywhere(context, layout);
    answer.level = LAYOUT_POINTS;
    answer.witness = layout_points_index(context, layout->extents, layout->rank, i);
  }
  return answer;
}

static LayoutAnswer copies_equal(Context *context, const Layout *a, const Layout *other) {
  int64_t elements;
  if (layout_logical_size(a, &elements) && !elements) return layout_yes(LAYOUT_DIGITS);
  const Layout *x = layout_of_copies(context, a), *y = layout_of_copies(context, other);
  if (copy_by_copy(context, x, y)) return layout_yes(LAYOUT_DIGITS);
  ArenaMark mark = arena_mark(&context->scratch);
  ReplicaSteps p, q;
  LayoutAnswer answer = layout_undecided("the copies do not separate");
  if (find_steps(context, x, a->rank, &p) && find_steps(context, y, a->rank, &q))
    answer = steps_equal(context, a, &p, &q);
  else if (a->is_static)
    answer = sets_equal(context, a, x, y);
  arena_reset(&context->scratch, mark);
  return answer;
}

LayoutAnswer layout_copies_equal(Context *context, const Layout *a, const IndexMap *b) {
  const Layout *other = layout_try(context, b, a->shape, a->physical, a->facts);
  if (!other)
    return layout_answer_of(a->is_static ? VERDICT_NO : VERDICT_UNDECIDED, LAYOUT_DIGITS,
                            "one map leaves the physical shape of the other");
  return copies_equal(context, a, other);
}
