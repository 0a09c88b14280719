// SPDX-License-Identifier: Apache-2.0
// Every question on random small layouts against brute force.
#include "layout_support.h"

// ---- Brute force -------------------------------------------------------------------------------

typedef struct Truth {
  int64_t size, positions, image;
  int64_t *offsets;  // of the logical ordinals
  int64_t *ordinals; // at the offsets; -1: padding
  bool injective;
} Truth;

static Truth brute_force(const Layout *layout) {
  Truth t = {.injective = true};
  layout_logical_size(layout, &t.size);
  layout_physical_size(layout, &t.positions);
  if (t.positions > MAX_POSITIONS) return t;
  t.offsets = arena_array(&context->arena, int64_t, t.size);
  t.ordinals = arena_array(&context->arena, int64_t, t.positions);
  memset(t.ordinals, -1, sizeof *t.ordinals * (size_t)t.positions);
  for (int64_t i = 0; i < t.size; i++) {
    int64_t index[MAX_AXES], position[MAX_AXES], offset = 0;
    layout_index_at(layout->extents, layout->rank, i, index);
    assert_true(index_map_apply(layout->map, index, position));
    for (int j = 0; j < layout->physical_rank; j++) {
      assert_in_range(position[j], 0, layout->physical_extents[j] - 1);
      offset = offset * layout->physical_extents[j] + position[j];
    }
    t.offsets[i] = offset;
    t.image += t.ordinals[offset] < 0;
    t.injective &= t.ordinals[offset] < 0;
    t.ordinals[offset] = i;
  }
  return t;
}

// ---- Checks ------------------------------------------------------------------------------------

static int by_digits, by_points, inverses, equal_by_digits, equal_by_points;

static void count_level(const LayoutAnswer *answer) {
  by_digits += answer->level == LAYOUT_DIGITS;
  by_points += answer->level == LAYOUT_POINTS;
}

static void check_injective(const Layout *layout, const Truth *t) {
  LayoutAnswer a = layout_is_injective(context, layout);
  count_level(&a);
  assert_int_equal(a.verdict, t->injective ? VERDICT_YES : VERDICT_NO);
  if (a.verdict == VERDICT_YES) return;
  int64_t x, y;
  assert_true(layout_offset(layout, a.witness, &x) && layout_offset(layout, a.witness2, &y));
  assert_int_equal(x, y);
  assert_memory_not_equal(a.witness, a.witness2, sizeof(int64_t) * (size_t)layout->rank);
}

static void check_onto(const Layout *layout, const Truth *t) {
  LayoutAnswer a = layout_is_onto(context, layout);
  count_level(&a);
  assert_int_equal(a.verdict, t->image == t->positions ? VERDICT_YES : VERDICT_NO);
  if (a.verdict == VERDICT_NO) {
    int64_t offset = 0;
    for (int i = 0; i < layout->physical_rank; i++)
      offset = offset * layout->physical_extents[i] + a.witness[i];
    assert_int_equal(t->ordinals[offset], -1);
  }
  int64_t padding = -1;
  assert_int_equal(layout_padding_count(context, layout, &padding).verdict, VERDICT_YES);
  assert_int_equal(padding, t->positions - t->image);
}

static void check_inverse(const Layout *layout, const Truth *t) {
  LayoutInverse inverse;
  LayoutAnswer a = layout_inverse(context, layout, &inverse);
  if (!t->injective) assert_int_equal(a.verdict, VERDICT_NO);
  if (a.verdict != VERDICT_YES) return;
  inverses++;
  for (int64_t offset = 0; offset < t->positions; offset++) {
    int64_t position[MAX_AXES], index[MAX_AXES], want[MAX_AXES], padding = 0;
    layout_index_at(layout->physical_extents, layout->physical_rank, offset, position);
    if (inverse.padding)
      assert_true(layout_expr_value(inverse.padding, position, NULL, 0, &padding));
    assert_int_equal(padding, t->ordinals[offset] < 0);
    if (padding) continue;
    assert_true(index_map_apply(inverse.map, position, index));
    layout_index_at(layout->extents, layout->rank, t->ordinals[offset], want);
    assert_memory_equal(index, want, sizeof *index * (size_t)layout->rank);
  }
}

static void check_offsets(const Layout *layout, const Truth *t) {
  for (int tries = 0; tries < 5 && t->positions; tries++) {
    int64_t index[MAX_AXES], offset = random_below((int)t->positions), back;
    LayoutAnswer a = layout_at_offset(context, layout, offset, index);
    assert_int_equal(a.verdict, t->ordinals[offset] < 0 ? VERDICT_NO : VERDICT_YES);
    if (a.verdict == VERDICT_YES) {
      assert_true(layout_offset(layout, index, &back));
      assert_int_equal(back, offset);
    }
  }
}

// The map in normal form is the same map; one point off by one is not.
static void check_equal(const Layout *layout, const Truth *t) {
  const LayoutExpr *outputs[MAX_AXES];
  for (int i = 0; i < layout->physical_rank; i++)
    outputs[i] =
        layout_expr_simplify(context, layout->map->outputs[i], layout->extents, layout->rank);
  const IndexMap *same =
      index_map_new(context, layout->rank, NULL, layout->physical_rank, outputs, NULL, NULL, 0);
  LayoutAnswer a = layout_maps_equal(context, layout, same);
  assert_int_equal(a.verdict, VERDICT_YES);
  equal_by_digits += a.level == LAYOUT_DIGITS;
  equal_by_points += a.level == LAYOUT_POINTS;
  int64_t axis = random_below(layout->rank);
  const LayoutExpr *edge =
      binary(LAYOUT_DIV, layout_axis(context, (int)axis), number(1 + random_below(9)));
  outputs[0] = binary(LAYOUT_ADD, outputs[0], edge);
  a = layout_maps_equal(
      context, layout,
      index_map_new(context, layout->rank, NULL, layout->physical_rank, outputs, NULL, NULL, 0));
  bool differ = false;
  for (int64_t i = 0; i < t->size; i++) {
    int64_t index[MAX_AXES], value;
    layout_index_at(layout->extents, layout->rank, i, index);
    assert_true(layout_expr_value(edge, index, NULL, 0, &value));
    differ |= value != 0;
  }
  assert_int_equal(a.verdict, differ ? VERDICT_NO : VERDICT_YES);
  count_level(&a);
}

static void check_strides(const Layout *layout, const Truth *t) {
  int64_t strides[MAX_AXES], inner = t->size;
  bool has[MAX_AXES];
  layout_strides(context, layout, strides, has);
  for (int i = 0; i < layout->rank; i++) {
    inner /= layout->extents[i];
    bool constant = true;
    int64_t step = 0, first = -1;
    for (int64_t j = 0; j < t->size; j++) {
      if (j / inner % layout->extents[i] == layout->extents[i] - 1) continue;
      step = t->offsets[j + inner] - t->offsets[j];
      if (first >= 0)
        constant &= step == t->offsets[first + inner] - t->offsets[first];
      else
        first = j;
    }
    if (layout->extents[i] == 1) continue;
    assert_int_equal(has[i], constant);
    if (constant) assert_int_equal(strides[i], step);
  }
}

static bool width_holds(const Layout *layout, const Truth *t, int64_t inner, int64_t extent,
                        int64_t w) {
  (void)layout;
  for (int64_t j = 0; j < t->size; j++) {
    int64_t x = j / inner % extent;
    if (x % w == 0 ? t->offsets[j] % w != 0 : t->offsets[j] != t->offsets[j - inner] + 1)
      return false;
  }
  return true;
}

static void check_vectors(const Layout *layout, const Truth *t) {
  int64_t inner = t->size;
  for (int i = 0; i < layout->rank; i++) {
    inner /= layout->extents[i];
    int64_t best = 1;
    for (int64_t w = 2; w <= layout->extents[i]; w++)
      if (width_holds(layout, t, inner, layout->extents[i], w)) best = w;
    assert_int_equal(layout_vector_width(context, layout, i), best);
  }
}

static void check_text(const Layout *layout) {
  LayoutSource source = layout_source(index_map_text(context, layout->map), layout->rank);
  assert_ptr_equal(index_map_parse(context, &source), layout->map);
  source = layout_source(index_map_lambda(context, layout->map), -1);
  assert_ptr_equal(index_map_parse(context, &source), layout->map);
}

static void test_random_layouts(void **state) {
  (void)state;
  int64_t points = 0;
  int made = 0, injective = 0;
  for (int i = 0; i < 12000; i++) {
    int64_t shape[3];
    int rank;
    if (i % 500 == 0) {
      renew_context();
    }
    const Layout *layout = random_layout(shape, &rank);
    if (!layout) continue;
    Truth t = brute_force(layout);
    if (t.positions > MAX_POSITIONS) continue;
    points += t.size;
    made++;
    injective += t.injective;
    check_injective(layout, &t);
    check_onto(layout, &t);
    check_inverse(layout, &t);
    check_offsets(layout, &t);
    check_equal(layout, &t);
    check_strides(layout, &t);
    check_vectors(layout, &t);
    check_text(layout);
  }
  print_message("%d layouts, %lld points; %d of %d inverses in closed form; answers by digits %d, "
                "by points %d; equal by digits %d, by points %d\n",
                made, (long long)points, inverses, injective, by_digits, by_points, equal_by_digits,
                equal_by_points);
}

int main(void) {
  context = context_new();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_layouts),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  context_free(context);
  return failed;
}
