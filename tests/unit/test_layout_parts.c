// SPDX-License-Identifier: Apache-2.0
// Layouts with independent components: large ones that their components decide, and random ones
// with small components, with all questions compared with an enumeration.
#include "layout_support.h"

// ---- Too many points for the whole -------------------------------------------------------------

static const struct {
  const char *map;
  int64_t shape[4];
  int rank;
  Verdict injective, onto;
  int64_t padding;
} cases[] = {
    {"a, b, c -> min(c, 7), b%3, a + 3, b//3", {1000, 768, 9}, 3, VERDICT_NO, VERDICT_NO, 18432},
    {"a, b, c, d -> max(d%4 ^ 0, 1), b//16, b%8, d//4, b//8%2, a*3, c + 8",
     {33, 256, 4, 4096},
     4,
     VERDICT_NO,
     VERDICT_NO,
     256LL * 4096 * 97 * 12 - 256LL * 3072 * 33 * 4},
    {"a, b, c -> max(a*5, 3), c, b//32, b%32",
     {5, 4096, 4096},
     3,
     VERDICT_YES,
     VERDICT_NO,
     16 << 24},
    {"a, b, c -> min(b, 3), c, a", {1000, 4096, 3000}, 3, VERDICT_NO, VERDICT_YES, 0},
    // Axes that nothing reads, and places that read nothing.
    {"a, b, c -> max(c, 3), 5, a", {1, 1, 4096}, 3, VERDICT_NO, VERDICT_NO, 24576 - 4093},
    {"a, b, c -> min(c, 3), 0, a", {9, 2, 4096}, 3, VERDICT_NO, VERDICT_YES, 0},
};

static void test_large(void **state) {
  (void)state;
  for (int i = 0; i < COUNT_OF(cases); i++) {
    const Layout *layout = layout_of(cases[i].map, cases[i].shape, cases[i].rank);
    int64_t position[MAX_AXES], other[MAX_AXES], padding;
    LayoutInverse inverse;
    LayoutAnswer injective = layout_is_injective(context, layout);
    LayoutAnswer onto = layout_is_onto(context, layout);
    assert_int_equal(injective.verdict, cases[i].injective);
    assert_int_equal(onto.verdict, cases[i].onto);
    assert_int_equal(layout_padding_count(context, layout, &padding).verdict, VERDICT_YES);
    assert_int_equal(padding, cases[i].padding);
    assert_int_equal(layout_inverse(context, layout, &inverse).verdict, cases[i].injective);
    LayoutBlocking blocking;
    assert_int_not_equal(layout_is_blocking(context, layout, &blocking).verdict, VERDICT_UNDECIDED);
    if (injective.verdict == VERDICT_YES) continue;
    assert_true(index_map_apply(layout->map, injective.witness, position));
    assert_true(index_map_apply(layout->map, injective.witness2, other));
    assert_memory_equal(position, other, sizeof *position * (size_t)layout->physical_rank);
    assert_memory_not_equal(injective.witness, injective.witness2,
                            sizeof *position * (size_t)layout->rank);
  }
}

// Equations are held on the axes that they read.
static void test_equations(void **state) {
  (void)state;
  const int64_t shape[] = {400, 3000, 500000};
  const Layout *layout = layout_of("a, b, c -> min(c, 6), (a & b & 3), b//3", shape, 3);
  LayoutSource same = layout_source("a, b, c -> select(c < 7, c, 6), (b & 3 & a), b//3", 3);
  LayoutSource other = layout_source("a, b, c -> min(c, 6), (a & 3), b//3", 3);
  LayoutAnswer yes = layout_maps_equal(context, layout, index_map_parse(context, &same));
  assert_int_equal(yes.verdict, VERDICT_YES);
  LayoutAnswer no = layout_maps_equal(context, layout, index_map_parse(context, &other));
  assert_int_equal(no.verdict, VERDICT_NO);
  assert_true((no.witness[0] & 3) != (no.witness[0] & no.witness[1] & 3));
}

// ---- Symbolic axes -----------------------------------------------------------------------------

// `n` has N elements, `m` a few.
static const char *const images[] = {
    "n, m -> n, m",
    "n, m -> max(n, 1), m",
    "n, m -> max(n%5, 1), n//5, 0",
    "n, m -> (n//4) & 7, m, n%4",
    "n, m -> min(n//5, 3), n%5, 2*m",
    "n, m -> (n//3)*8 + m%8, n%3",
    "n, m -> (n*6)*13 + (m*5)%13",
    "n, m -> min(n, 7), m//2",
    "n, m -> n//8%4, max(n%8, 3), n//32",
    "n, m -> (n//2%4) ^ (n%2), n//8, m",
    "n, m -> max(n*5, 30 + n), m",
    "n, m -> n//2 + n//3, m & 1",
    "n, m -> n ^ 5, m*n*0",
    "n, m -> n//4 + n%4, m",
    "n, m -> (n*3)%7 + n//5*2, m",
    "n, m -> min(max(n - 9, 0), 20) + m",
    "n, m -> (n*7)%30 + m",
    "n, m -> n + m*3, n//9",
    "n, m -> n|6, m",
};

static void test_images(void **state) {
  (void)state;
  int counted = 0;
  for (int i = 0; i < COUNT_OF(images); i++)
    for (int64_t few = 1; few < 9; few += 3) {
      Str name = str_intern(context, "N");
      const LayoutExpr *shape[] = {layout_symbol(context, name), layout_const(context, few)},
                       *count;
      LayoutSource source = layout_source(images[i], 2);
      const Layout *layout = layout_parse(context, &source, shape, 2, (LayoutFacts){0});
      if (!layout) continue; // no bounds are proved
      LayoutAnswer answer = layout_padding_expr(context, layout, &count);
      if (answer.verdict != VERDICT_YES) print_error("%s: %s\n", images[i], answer.reason);
      assert_int_equal(answer.verdict, VERDICT_YES);
      counted++;
      for (int64_t n = 1; n < 120; n++) {
        int64_t extents[] = {n, few}, want, is;
        const Layout *at = layout_parse_static(context, images[i], extents, 2);
        LayoutValue value = {name, n};
        assert_int_equal(layout_padding_count(context, at, &want).verdict, VERDICT_YES);
        assert_true(layout_expr_value(count, NULL, &value, 1, &is));
        if (is != want)
          print_error("%s, %lld: %s is %lld, not %lld\n", images[i], (long long)n,
                      layout_expr_text(context, count, NULL, 0), (long long)is, (long long)want);
        assert_int_equal(is, want);
      }
    }
  print_message("%d of %d counted\n", counted, 3 * (int)COUNT_OF(images));
}

// ---- Random parts ------------------------------------------------------------------------------

// Functions of one or two axes, `x` and `y`.
static const struct {
  const char *outputs[2];
  int64_t shape[2];
  int rank;
} pieces[] = {
    {{"x", NULL}, {3}, 1},
    {{"min(x, 2)", NULL}, {5}, 1},
    {{"max(x*5, 3)", NULL}, {4}, 1},
    {{"x//2", "x%2"}, {5}, 1},
    {{"x + 2", NULL}, {4}, 1},
    {{"x*x", NULL}, {4}, 1},
    {{"x%3", NULL}, {7}, 1},
    {{"x*3 & 7", NULL}, {6}, 1},
    {{"x*2 + y*3", NULL}, {3, 4}, 2},
    {{"x*4 + y", "y//3"}, {3, 6}, 2},
    {{"x ^ y", "y"}, {4, 3}, 2},
    {{"x + y", "x"}, {3, 3}, 2},
    {{"max(x, y)", NULL}, {3, 4}, 2},
    {{"select(x < 2, x, 7 - x)", NULL}, {5}, 1},
};

static const LayoutExpr *piece_output(const char *text, int first) {
  LayoutSource source = layout_source(arena_printf(&context->arena, "x, y -> %s", text), 2);
  const IndexMap *map = index_map_parse(context, &source);
  const LayoutExpr *axes[] = {layout_axis(context, first), layout_axis(context, first + 1)};
  return layout_expr_substitute(context, map->outputs[0], axes, 2);
}

static const Layout *random_parts(void) {
  const LayoutExpr *outputs[MAX_AXES];
  int64_t shape[MAX_AXES];
  int rank = 0, count = 0, parts = 1 + random_below(3);
  for (int i = 0; i < parts; i++) {
    int k = random_below(COUNT_OF(pieces));
    for (int j = 0; j < 2 && pieces[k].outputs[j]; j++)
      outputs[count++] = piece_output(pieces[k].outputs[j], rank);
    for (int j = 0; j < pieces[k].rank; j++) shape[rank++] = pieces[k].shape[j];
  }
  for (int i = count - 1; i > 0; i--) {
    int at = random_below(i + 1);
    const LayoutExpr *t = outputs[i];
    outputs[i] = outputs[at];
    outputs[at] = t;
  }
  const IndexMap *map = index_map_new(context, rank, NULL, count, outputs, NULL, NULL, 0);
  const Layout *layout = layout_static(context, map, shape, (SourcePos){0});
  assert_non_null(layout);
  return layout;
}

static int inverses;

static void check_parts(const Layout *layout) {
  int64_t positions, elements, count = 0, found[MAX_AXES], padding;
  bool collides = false;
  assert_true(layout_physical_size(layout, &positions) && layout_logical_size(layout, &elements));
  int64_t *owner = calloc((size_t)positions, sizeof *owner);
  for (int64_t i = 0; i < elements; i++) {
    int64_t index[MAX_AXES], offset;
    layout_index_at(layout->extents, layout->rank, i, index);
    assert_true(layout_offset(layout, index, &offset));
    collides = collides || owner[offset];
    count += !owner[offset];
    owner[offset] = i + 1;
  }
  LayoutInverse inverse;
  LayoutAnswer onto = layout_is_onto(context, layout);
  assert_int_equal(layout_is_injective(context, layout).verdict,
                   collides ? VERDICT_NO : VERDICT_YES);
  assert_int_equal(onto.verdict, count == positions ? VERDICT_YES : VERDICT_NO);
  if (count < positions)
    assert_int_equal(
        owner[layout_ordinal_of(layout->physical_extents, layout->physical_rank, onto.witness)], 0);
  assert_int_equal(layout_padding_count(context, layout, &padding).verdict, VERDICT_YES);
  assert_int_equal(padding, positions - count);
  LayoutAnswer answer = layout_inverse(context, layout, &inverse);
  assert_int_equal(answer.verdict, collides ? VERDICT_NO : VERDICT_YES);
  for (int64_t offset = 0; offset < positions; offset++) {
    int64_t position[MAX_AXES], index[MAX_AXES], none = 0, at;
    LayoutAnswer there = layout_at_offset(context, layout, offset, found);
    assert_int_equal(there.verdict, owner[offset] ? VERDICT_YES : VERDICT_NO);
    if (owner[offset]) assert_true(layout_offset(layout, found, &at) && at == offset);
    if (answer.verdict != VERDICT_YES) continue;
    layout_index_at(layout->physical_extents, layout->physical_rank, offset, position);
    if (inverse.padding) assert_true(layout_expr_value(inverse.padding, position, NULL, 0, &none));
    assert_int_equal(none, !owner[offset]);
    if (none) continue;
    assert_true(index_map_apply(inverse.map, position, index));
    assert_int_equal(layout_ordinal_of(layout->extents, layout->rank, index), owner[offset] - 1);
  }
  inverses += answer.verdict == VERDICT_YES;
  free(owner);
}

static void test_random(void **state) {
  (void)state;
  for (int i = 0; i < 600; i++) {
    if (i % 100 == 0) renew_context();
    check_parts(random_parts());
  }
  print_message("%d of 600 have an inverse\n", inverses);
}

int main(void) {
  context = context_new();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_large),
      cmocka_unit_test(test_equations),
      cmocka_unit_test(test_images),
      cmocka_unit_test(test_random),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  context_free(context);
  return failed;
}
