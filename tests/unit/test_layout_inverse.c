// SPDX-License-Identifier: Apache-2.0
// Closed forms of inverses and indices for every place: the rules one by one, then random sums of
// weighted digits and random linear maps of bits, every place of them against every element.
#include "layout_support.h"

#ifdef __SANITIZE_ADDRESS__
enum { SUMS = 200, LINEAR_MAPS = 40 };
#else
enum { SUMS = 3000, LINEAR_MAPS = 400 };
#endif

// The inverse says of every place its element, or that it is padding.
static void check_positions(const Layout *layout, const LayoutInverse *inverse) {
  int64_t positions, elements;
  assert_true(layout_physical_size(layout, &positions) && layout_logical_size(layout, &elements));
  int64_t *owner = calloc((size_t)positions, sizeof *owner);
  for (int64_t i = 0; i < elements; i++) {
    int64_t index[MAX_AXES], offset;
    layout_index_at(layout->extents, layout->rank, i, index);
    assert_true(layout_offset(layout, index, &offset));
    owner[offset] = i + 1;
  }
  for (int64_t offset = 0; offset < positions; offset++) {
    int64_t position[MAX_AXES], index[MAX_AXES], want[MAX_AXES], padding = 0;
    layout_index_at(layout->physical_extents, layout->physical_rank, offset, position);
    if (inverse->padding)
      assert_true(layout_expr_value(inverse->padding, position, NULL, 0, &padding));
    assert_int_equal(padding, !owner[offset]);
    if (padding) continue;
    assert_true(index_map_apply(inverse->map, position, index));
    layout_index_at(layout->extents, layout->rank, owner[offset] - 1, want);
    assert_memory_equal(index, want, sizeof *index * (size_t)layout->rank);
  }
  free(owner);
}

// ---- Rules -------------------------------------------------------------------------------------

static const struct {
  const char *map;
  int64_t shape[3];
  int rank;
  LayoutLevel level; // that proves the inverse
} inverses[] = {
    // A weight of several bits is a bit in several places.
    {"i, j -> i//2, (i%2) ^ (j%2)*3 ^ (j//2)*4", {6, 4}, 2, LAYOUT_DIGITS},
    {"r, l, w -> (r//2%2) ^ (l//2)*2 ^ (w//2)*32, (r & 1) ^ (l & 1)*3 ^ (l & 6) ^ (w & 1)*4",
     {4, 32, 4},
     3,
     LAYOUT_DIGITS},
    // Bits of an index with an offset, and of one that counts down.
    {"i, j -> i ^ j, j + 3", {5, 5}, 2, LAYOUT_DIGITS},
    {"i, j -> i*16 + (j ^ i%4) + 1", {16, 9}, 2, LAYOUT_POINTS},
    {"i, j -> 7 - (i ^ j), j", {7, 6}, 2, LAYOUT_DIGITS},
    {"i, j -> i ^ (j + 1)%8, j + 1", {4, 13}, 2, LAYOUT_DIGITS},
    {"i -> (i + 1)//2 ^ (i + 1)%2, (i + 1)%2", {3}, 1, LAYOUT_DIGITS},
    {"i, j -> (i + 3 & i + 3), j", {16, 3}, 2, LAYOUT_DIGITS},
    // Two residues that together say more.
    {"i -> i%8, i%6", {24}, 1, LAYOUT_DIGITS},
    {"i -> i%21, i%15, i%35", {105}, 1, LAYOUT_DIGITS},
    // Overlapping weights: by residues.
    {"x, y -> 2*x + 3*y", {3, 2}, 2, LAYOUT_DIGITS},
    {"x, y -> 2*x + 3*y", {3, 400}, 2, LAYOUT_DIGITS},
    {"x, y -> 6*x + 35*y", {35, 6}, 2, LAYOUT_DIGITS},
    {"x, y, z -> 6*x + 10*y + 15*z", {5, 3, 2}, 3, LAYOUT_DIGITS},
    {"x, y -> 40 - 4*x + 5*y", {5, 4}, 2, LAYOUT_DIGITS},
    // By trial.
    {"i, j -> i*4 + j*5 + j//2", {4, 4}, 2, LAYOUT_POINTS},
    {"x, y, z -> 7*x + 11*y + 13*z", {3, 2, 5}, 3, LAYOUT_POINTS},
};

static void test_rules(void **state) {
  (void)state;
  for (int i = 0; i < COUNT_OF(inverses); i++) {
    const Layout *layout = layout_of(inverses[i].map, inverses[i].shape, inverses[i].rank);
    LayoutInverse inverse;
    LayoutAnswer answer = layout_inverse(context, layout, &inverse);
    if (answer.verdict != VERDICT_YES || answer.level != inverses[i].level)
      print_error("%s: %s, %s\n", inverses[i].map, layout_answer_text(context, &answer),
                  layout_level_name(answer.level));
    assert_int_equal(answer.verdict, VERDICT_YES);
    assert_int_equal(answer.level, inverses[i].level);
    check_positions(layout, &inverse);
  }
}

// Maps that are onto without being injective, of boxes that cannot be enumerated.
static void test_sections(void **state) {
  (void)state;
  static const struct {
    const char *map;
    int64_t shape[2];
    int rank;
  } maps[] = {
      {"x -> x%1000", {1000000000}, 1},
      {"x -> x//1000", {1000000000}, 1},
      {"x, y -> x%8, y//8, x//16%4", {1000000000, 1000000000}, 2},
      {"x, y -> x%3 + y//4*3", {1000000, 1000000}, 2},
      {"x, y -> (x ^ y)%64", {1 << 20, 1 << 20}, 2},
      {"x -> (x + 5)%7", {1 << 30}, 1},
  };
  for (int i = 0; i < COUNT_OF(maps); i++) {
    LayoutAnswer answer =
        layout_is_onto(context, layout_of(maps[i].map, maps[i].shape, maps[i].rank));
    if (answer.verdict != VERDICT_YES)
      print_error("%s: %s\n", maps[i].map, layout_answer_text(context, &answer));
    assert_int_equal(answer.verdict, VERDICT_YES);
    assert_int_equal(answer.level, LAYOUT_DIGITS);
  }
  const Layout *short_of = layout_of("x -> x%1000 in [1001]", (int64_t[]){1000000000}, 1);
  assert_int_not_equal(layout_is_onto(context, short_of).verdict, VERDICT_YES);
}

// ---- Random sums and linear maps ---------------------------------------------------------------

static bool is_injective(const Layout *layout) {
  int64_t positions, elements;
  bool injective = true;
  assert_true(layout_physical_size(layout, &positions) && layout_logical_size(layout, &elements));
  bool *seen = calloc((size_t)positions, sizeof *seen);
  for (int64_t i = 0; i < elements && injective; i++) {
    int64_t index[MAX_AXES], offset;
    layout_index_at(layout->extents, layout->rank, i, index);
    assert_true(layout_offset(layout, index, &offset));
    injective = !seen[offset];
    seen[offset] = true;
  }
  free(seen);
  return injective;
}

// Whether the inverse of an injective layout was found; that of others is none.
static bool inverted(const Layout *layout, bool injective) {
  LayoutInverse inverse;
  LayoutAnswer answer = layout_inverse(context, layout, &inverse);
  assert_int_equal(layout_is_injective(context, layout).verdict,
                   injective ? VERDICT_YES : VERDICT_NO);
  if (!injective) assert_int_equal(answer.verdict, VERDICT_NO);
  if (answer.verdict != VERDICT_YES) return false;
  check_positions(layout, &inverse);
  return true;
}

static void renew(void) {
  context_free(context);
  context = context_new();
}

static void test_random_sums(void **state) {
  (void)state;
  int injective = 0, found = 0;
  for (int made = 0; made < SUMS; made++) {
    if (made % 64 == 0) renew();
    int rank = 2 + random_below(3);
    int64_t shape[4], constant = random_below(3);
    const LayoutExpr *sum = number(0);
    for (int i = 0; i < rank; i++) {
      int64_t weight = 1 + random_below(40);
      shape[i] = 2 + random_below(5);
      const LayoutExpr *x = layout_axis(context, i);
      if (random_below(4) == 0) x = binary(LAYOUT_SUB, number(shape[i] - 1), x);
      sum = binary(LAYOUT_ADD, sum, binary(LAYOUT_MUL, x, number(weight)));
    }
    sum = binary(LAYOUT_ADD, sum, number(constant));
    const IndexMap *map = index_map_new(context, rank, NULL, 1, &sum, NULL, NULL, 0);
    const Layout *layout = layout_static(context, map, shape, (SourcePos){0});
    assert_non_null(layout);
    bool one_to_one = is_injective(layout);
    injective += one_to_one;
    found += inverted(layout, one_to_one);
  }
  print_message("%d sums are injective, %d inverses in closed form\n", injective, found);
  assert_true(injective > SUMS / 10 && found > injective * 9 / 10);
}

// Bit i of the map is the XOR of the bits of a random mask.
static void test_random_linear_maps(void **state) {
  (void)state;
  int injective = 0;
  for (int made = 0; made < LINEAR_MAPS; made++) {
    enum { AXES = 2, BITS = 4 };
    const LayoutExpr *outputs[AXES];
    const int64_t shape[AXES] = {1 << BITS, 1 << BITS};
    if (made % 64 == 0) renew();
    for (int i = 0; i < AXES; i++) {
      outputs[i] = number(0);
      for (int bit = 0; bit < AXES * BITS; bit++) {
        const LayoutExpr *axis = layout_axis(context, bit / BITS);
        const LayoutExpr *value = binary(LAYOUT_DIV, axis, number(1 << bit % BITS));
        value = binary(LAYOUT_MUL, binary(LAYOUT_MOD, value, number(2)),
                       number(random_below(1 << BITS)));
        outputs[i] = binary(LAYOUT_XOR, outputs[i], value);
      }
    }
    const IndexMap *map = index_map_new(context, AXES, NULL, AXES, outputs, NULL, NULL, 0);
    const Layout *layout = layout_static(context, map, shape, (SourcePos){0});
    assert_non_null(layout);
    bool one_to_one = is_injective(layout);
    injective += one_to_one;
    assert_int_equal(inverted(layout, one_to_one), one_to_one);
  }
  print_message("%d linear maps are injective, each has its inverse\n", injective);
  assert_true(injective > LINEAR_MAPS / 8);
}

int main(void) {
  context = context_new();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rules),
      cmocka_unit_test(test_sections),
      cmocka_unit_test(test_random_sums),
      cmocka_unit_test(test_random_linear_maps),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  context_free(context);
  return failed;
}
