// SPDX-License-Identifier: Apache-2.0
// Relations between layouts: what a layout becomes through known reads, in both directions, and
// that the results store the elements that are read in the order in which they are written, which
// is checked at every index.
#include "plan/relations.h"

#include <stdlib.h>
#include <string.h>

#include "context_support.h"

// A stage o[i] = t[index(i)], where axis `axis` is at least `low` and less than `high` (axis -1: no
// condition, and 0 elsewhere). A layout of t, and the layout of o that is walked alike; NULL: none.
typedef struct Case {
  const char *read, *written, *index;
  int axis;
  int64_t low, high;
  const char *layout, *expected;
  bool bijective;
} Case;

static const Case cases[] = {
    // permutations
    {"2x3x5x7", "2x5x7x3", "n,h,w,c -> n,c,h,w", -1, 0, 0, "n,c,h,w -> n,h,w,c",
     "i0, i1, i2, i3 -> i0, i1, i2, i3", true},
    {"2x3x5x7", "2x5x7x3", "n,h,w,c -> n,c,h,w", -1, 0, 0, "n,c,h,w -> n,c,h,w",
     "i0, i1, i2, i3 -> i0, i3, i1, i2", true},
    {"2x20x5x7", "2x5x7x20", "n,h,w,c -> n,c,h,w", -1, 0, 0, "n,c,h,w -> n,c//8,h,w,c%8",
     "i0, i1, i2, i3 -> i0, i3//8, i1, i2, i3%8", true},
    // blocks that hold more than the axis, or the whole axis
    {"2x3x5x7", "2x5x7x3", "n,h,w,c -> n,c,h,w", -1, 0, 0, "n,c,h,w -> n,c//16,h,w,c%16",
     "i0, i1, i2, i3 -> i0, i1, i2, i3//16, i3%16", true},
    {"2x16x5x7", "2x16x5x7", "n,c,h,w -> n,c,h,w", -1, 0, 0, "n,c,h,w -> n,c//16,h,w,c%16",
     "i0, i1, i2, i3 -> i0, i2, i3, i1", true},
    // axes of one element, left out, added and in another place
    {"1x6x5x7", "6x5x7", "c,h,w -> 0,c,h,w", -1, 0, 0, "n,c,h,w -> n,h,w,c",
     "i0, i1, i2 -> i1, i2, i0", true},
    {"6x5x7", "6x1x5x7", "c,n,h,w -> c,h,w", -1, 0, 0, "c,h,w -> h,w,c",
     "i0, i1, i2, i3 -> i1, i2, i3, i0", true},
    {"1x1x1", "1x1x1", "a,b,c -> c,b,a", -1, 0, 0, "a,b,c -> c,a,b", "i0, i1, i2 -> i0, i1, i2",
     true},
    // reshapes: axes merged, split, and split elsewhere
    {"2x3x5x7", "2x3x35", "n,c,k -> n,c,k//7,k%7", -1, 0, 0, "n,c,h,w -> n,h,w,c",
     "i0, i1, i2 -> i0, i2, i1", true},
    {"2x3x35", "2x3x5x7", "n,c,h,w -> n,c,h*7+w", -1, 0, 0, "n,c,k -> n,k,c",
     "i0, i1, i2, i3 -> i0, i2, i3, i1", true},
    {"2x12x7", "2x4x21", "a,b,c -> a,b*3+c//7,c%7", -1, 0, 0, "a,b,c -> a,b,c",
     "i0, i1, i2 -> i0, i1, i2", true},
    {"2x12x7", "2x4x21", "a,b,c -> a,b*3+c//7,c%7", -1, 0, 0, "a,b,c -> c,a,b",
     "i0, i1, i2 -> i2%7, i0, i1, i2//7", true},
    // a shuffle of channels
    {"1x6x5", "1x6x5", "n,c,w -> n,c%2*3+c//2,w", -1, 0, 0, "n,c,w -> n,w,c",
     "i0, i1, i2 -> i0, i2, i1%2, i1//2", true},
    // slices and parts of a concatenation, at and within blocks
    {"2x40x5", "2x16x5", "n,c,w -> n,c+16,w", -1, 0, 0, "n,c,w -> n,c//8,w,c%8",
     "i0, i1, i2 -> i0, i1//8, i2, i1%8", false},
    {"2x40x5", "2x16x5", "n,c,w -> n,c+10,w", -1, 0, 0, "n,c,w -> n,c//8,w,c%8", NULL, false},
    {"2x40x5", "2x16x5", "n,c,w -> n,c+10,w", -1, 0, 0, "n,c,w -> n,w,c",
     "i0, i1, i2 -> i0, i2, i1", false},
    {"2x24x5", "2x40x5", "n,c,w -> n,c-16,w", 1, 16, 40, "n,c,w -> n,c//8,w,c%8",
     "i0, i1, i2 -> i0, i1//8, i2, i1%8", false},
    {"2x24x5", "2x34x5", "n,c,w -> n,c-10,w", 1, 10, 34, "n,c,w -> n,c//8,w,c%8", NULL, false},
    {"2x24x5", "2x34x5", "n,c,w -> n,c-10,w", 1, 10, 34, "n,c,w -> n,w,c",
     "i0, i1, i2 -> i0, i2, i1", false},
    // steps, and rounded indices, which no block may cut
    {"2x6x10", "2x6x5", "n,c,w -> n,c,2*w", -1, 0, 0, "n,c,w -> n,w,c", "i0, i1, i2 -> i0, i2, i1",
     false},
    {"2x6x5", "2x6x10", "n,c,w -> n,c,w//2", -1, 0, 0, "n,c,w -> n,w,c", "i0, i1, i2 -> i0, i2, i1",
     false},
    {"2x6x8", "2x6x16", "n,c,w -> n,c,w//2", -1, 0, 0, "n,c,w -> n,w//4,c,w%4", NULL, false},
    // broadcasts: the other axes are not known
    {"2x6", "2x6x5", "n,c,w -> n,c", -1, 0, 0, "n,c -> c,n", NULL, false},
    {"6", "6x6", "a,b -> b", -1, 0, 0, "b -> b", NULL, false},
    // a diagonal, and a skew
    {"6x6", "6", "a -> a,a", -1, 0, 0, "a,b -> a,b", NULL, false},
    {"11x6", "6x6", "a,b -> a+b,b", -1, 0, 0, "a,b -> a,b", NULL, false},
};

static const Layout *layout_on(const char *text, const int64_t *shape, int rank) {
  const Layout *layout = layout_parse_static(context, text, shape, rank);
  assert_non_null(layout);
  return layout;
}

static int shape_of(const char *text, int64_t *shape) {
  LayoutSource source = layout_source(text, -1);
  int rank;
  const LayoutExpr *const *extents = layout_shape_parse(context, &source, &rank);
  assert_non_null(extents);
  for (int i = 0; i < rank; i++) shape[i] = extents[i]->value;
  return rank;
}

typedef struct Read {
  int64_t from[TE_MAX_RANK], to[TE_MAX_RANK];
  int from_rank, to_rank;
  Stage stage;
  StageTensor tensor, output;
} Read;

static Expr *condition_of(const Case *c, Expr *const *axes) {
  Expr *axis = axes[c->axis];
  Expr *low = expr_binary(context, EXPR_GE, axis, expr_index(context, c->low));
  Expr *high = expr_lt(context, axis, expr_index(context, c->high));
  return expr_binary(context, EXPR_AND, low, high);
}

// The stage of a case.
static void make_stage(const Case *c, Read *r) {
  Te *te = te_new(context);
  Expr *shape[TE_MAX_RANK], *indices[TE_MAX_RANK];
  r->from_rank = shape_of(c->read, r->from);
  r->to_rank = shape_of(c->written, r->to);
  for (int i = 0; i < r->from_rank; i++) shape[i] = expr_index(context, r->from[i]);
  Buffer *from = te_input(te, "t", DTYPE_FLOAT32, shape, r->from_rank);
  for (int i = 0; i < r->to_rank; i++) shape[i] = expr_index(context, r->to[i]);
  TeAxes axes = te_axes(te, shape, r->to_rank);
  LayoutSource source = layout_source(c->index, r->to_rank);
  const IndexMap *map = index_map_parse(context, &source);
  assert_true(map && index_map_apply_exprs(context, map, axes.at, NULL, indices));
  Expr *value = te_at(te, from, indices);
  if (c->axis >= 0)
    value = expr_if_then_else(context, condition_of(c, axes.at), value,
                              expr_float(context, DTYPE_FLOAT32, 0));
  te_compute(te, "o", DTYPE_FLOAT32, shape, &axes, value);
  r->stage = (Stage){.te = array_last(&te->stages), .output = &r->output};
  r->tensor = (StageTensor){.buffer = from};
  r->output = (StageTensor){.buffer = r->stage.te->output};
}

static const Layout *layout_of_walk(const LayoutWalk *walk, const int64_t *shape, int rank) {
  const LayoutExpr *outputs[WALK_MAX_DIGITS + TE_MAX_RANK];
  int count = walk_outputs(context, walk, shape, rank, outputs);
  if (!count) return NULL;
  const IndexMap *map = index_map_new(context, rank, NULL, count, outputs, NULL, NULL, 0);
  return layout_static(context, map, shape, (SourcePos){0});
}

// ---- By the offsets of all elements

typedef struct Point {
  int64_t read, written;
} Point;

static int by_read(const void *a, const void *b) {
  const Point *x = a, *y = b;
  return x->read != y->read ? (x->read > y->read) - (x->read < y->read)
                            : (x->written > y->written) - (x->written < y->written);
}

// Fails unless the elements of the domain are in the same order in both layouts; elements that are
// read several times are next to one another.
static void check_order(const ReadRelation *relation, const Layout *read, const Layout *written) {
  int64_t count = 1, at[TE_MAX_RANK], index[TE_MAX_RANK];
  for (int i = 0; i < relation->rank; i++) count *= relation->box[i];
  Point *points = calloc((size_t)count, sizeof *points);
  for (int64_t i = 0; i < count; i++) {
    layout_index_at(relation->box, relation->rank, i, at);
    assert_true(index_map_apply(relation->read, at, index));
    assert_true(layout_offset(read, index, &points[i].read));
    assert_true(index_map_apply(relation->write, at, index));
    assert_true(layout_offset(written, index, &points[i].written));
  }
  qsort(points, (size_t)count, sizeof *points, by_read);
  for (int64_t i = 1; i < count; i++) assert_true(points[i - 1].written < points[i].written);
  free(points);
}

static void check_case(const Case *c) {
  Read r;
  LayoutWalk walk, read_walk, write_walk;
  make_stage(c, &r);
  const ReadRelation *relation = relation_of(context, &r.stage, &r.tensor);
  const Layout *layout = layout_on(c->layout, r.from, r.from_rank), *found = NULL;
  if (relation && relation_transfer(context, relation, true, layout, &walk))
    found = layout_of_walk(&walk, r.to, r.to_rank);
  const char *text = found ? layout_text(context, found) : NULL;
  if (!c->expected && !found) return;
  if (!c->expected || !found || strcmp(text, c->expected))
    fail_msg("%s as %s: %s", c->index, c->layout, text ? text : "none");
  assert_true(relation->bijective == c->bijective);
  if (!relation->loose) check_order(relation, layout, found);
  assert_true(relation_read_walk(context, relation, layout, &read_walk));
  assert_true(relation_write_walk(context, relation, found, &write_walk));
  assert_true(walk_equal(&read_walk, &write_walk));
  // Backward, the layout is one that is walked alike.
  assert_true(relation_transfer(context, relation, false, found, &walk));
  const Layout *back = layout_of_walk(&walk, r.from, r.from_rank);
  assert_non_null(back);
  if (!relation->loose) check_order(relation, back, found);
}

static void test_known_reads(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT_OF(cases); i++) check_case(&cases[i]);
}

// ---- Conditions, windows, several loads

static void test_the_domain_of_conditions(void **state) {
  (void)state;
  Case c = {"2x24x5", "2x34x5", "n,c,w -> n,c-10,w", 1, 10, 34, "n,c,w -> n,w,c", NULL, false};
  Read r;
  make_stage(&c, &r);
  const ReadRelation *relation = relation_of(context, &r.stage, &r.tensor);
  assert_non_null(relation);
  assert_int_equal(relation->box[0], 2);
  assert_int_equal(relation->box[1], 24);
  assert_false(relation->same);
  int64_t index[3];
  assert_true(index_map_apply(relation->write, (int64_t[]){1, 0, 4}, index));
  assert_int_equal(index[1], 10);
  assert_true(index_map_apply(relation->read, (int64_t[]){1, 0, 4}, index));
  assert_int_equal(index[1], 0);
}

static void test_reading_in_place(void **state) {
  (void)state;
  Case same = {"2x1x5", "2x1x5", "n,c,w -> n,0,w", -1, 0, 0, "n,c,w -> w,n,c", NULL, true};
  Read r;
  make_stage(&same, &r);
  const ReadRelation *relation = relation_of(context, &r.stage, &r.tensor);
  assert_true(relation && relation->same && relation->bijective);
}

// A maximum over windows keeps the order of the axes.
static void test_windows(void **state) {
  (void)state;
  Te *te = te_new(context);
  Expr *from[3] = {expr_index(context, 2), expr_index(context, 6), expr_index(context, 9)},
       *to[3] = {from[0], from[1], expr_index(context, 4)};
  Buffer *t = te_input(te, "t", DTYPE_FLOAT32, from, 3);
  TeAxes axes = te_axes(te, to, 3);
  Expr *k = te_reduce_axis(te, "k", expr_index(context, 3));
  Expr *w = expr_add(context, expr_mul(context, axes.at[2], expr_index(context, 2)), k);
  TeReduction max = {.combine = EXPR_MAX,
                     .init = expr_float(context, DTYPE_FLOAT32, -1e30),
                     .count = 1,
                     .axes = {k},
                     .extents = {expr_index(context, 3)}};
  te_reduce(te, "o", DTYPE_FLOAT32, to, &axes, &max,
            te_at(te, t, (Expr *[]){axes.at[0], axes.at[1], w}));
  Stage stage = {.te = array_last(&te->stages)};
  StageTensor tensor = {.buffer = t};
  const ReadRelation *relation = relation_of(context, &stage, &tensor);
  LayoutWalk walk;
  assert_non_null(relation);
  int64_t shape[3] = {2, 6, 4}, read_shape[3] = {2, 6, 9};
  const Layout *layout = layout_on("n,c,w -> n,c//4,w,c%4", read_shape, 3);
  assert_true(relation_transfer(context, relation, true, layout, &walk));
  const Layout *found = layout_of_walk(&walk, shape, 3);
  assert_non_null(found);
  assert_string_equal(layout_text(context, found), "i0, i1, i2 -> i0, i1//4, i2, i1%4");
  assert_true(relation_transfer(context, relation, false, found, &walk));
  found = layout_of_walk(&walk, read_shape, 3);
  assert_non_null(found);
  assert_string_equal(layout_text(context, found), "i0, i1, i2 -> i0, i1//4, i2, i1%4");
}

// Tiles of an image for a product of each `a`: the axis comes before the image's in every layout.
static void test_windows_below_another_axis(void **state) {
  (void)state;
  Te *te = te_new(context);
  Expr *from[2] = {expr_index(context, 8), expr_index(context, 9)},
       *to[3] = {expr_index(context, 5), from[0], expr_index(context, 4)};
  Buffer *t = te_input(te, "t", DTYPE_FLOAT32, from, 2);
  TeAxes axes = te_axes(te, to, 3);
  Expr *first = expr_mul(context, axes.at[2], expr_index(context, 2)),
       *second = expr_add(context, first, expr_index(context, 1));
  te_compute(te, "o", DTYPE_FLOAT32, to, &axes,
             expr_add(context, te_at(te, t, (Expr *[]){axes.at[1], first}),
                      te_at(te, t, (Expr *[]){axes.at[1], second})));
  Stage stage = {.te = array_last(&te->stages)};
  StageTensor tensor = {.buffer = t};
  const ReadRelation *relation = relation_of(context, &stage, &tensor);
  LayoutWalk walk;
  int64_t shape[3] = {5, 8, 4}, read_shape[2] = {8, 9};
  const Layout *layout = layout_on("c,w -> c//4,w,c%4", read_shape, 2);
  assert_true(relation && relation_transfer(context, relation, true, layout, &walk));
  const Layout *found = layout_of_walk(&walk, shape, 3);
  assert_non_null(found);
  assert_string_equal(layout_text(context, found), "i0, i1, i2 -> i0, i1//4, i2, i1%4");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_known_reads), TEST(test_the_domain_of_conditions),   TEST(test_reading_in_place),
      TEST(test_windows),     TEST(test_windows_below_another_axis),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
