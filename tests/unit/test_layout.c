// SPDX-License-Identifier: Apache-2.0
// Layouts: spellings, extents, and the questions on known cases.
#include "layout/layout.h"

#include <setjmp.h>
#include <cmocka.h>

static Context *context;

static int set_up(void **state) {
  (void)state;
  return (context = context_new()) ? 0 : -1;
}

static int tear_down(void **state) {
  (void)state;
  context_free(context);
  return 0;
}

static const IndexMap *map_of(const char *text, int rank) {
  LayoutSource source = layout_source(text, rank);
  return index_map_parse(context, &source);
}

static void test_spellings_agree(void **state) {
  (void)state;
  static const char *const pairs[][2] = {
      {"NCHW16c", "n, c, h, w -> n, c//16, h, w, c%16"},
      {"NHWC", "lambda n, c, h, w: [n, h, w, c]"},
      {"OIHW4i16o4i", "o,i,h,w -> o//16, i//16, h, w, i//4%4, o%16, i%4"},
      {"aBcd16b", "a,b,c,d -> a, b//16, c, d, b%16"},
      {"BA16a64b4a", "a,b -> b//64, a//64, a//4%16, b%64, a%4"},
      {"lambda *i, c: [*i, c // 4, te.AXIS_SEPARATOR, c % 4]", "a, b, d, c -> a, b, d, c//4 | c%4"},
      {"lambda n, *s: (s[-1], n, *s)", "a, b, c, d -> d, a, b, c, d"},
      {"lambda i: i // 4", "i -> i//4"},
      {"lambda i: (i // 4) + 1", "i -> i//4 + 1"},
      {"lambda i, j: T.if_then_else(i < 3, j, T.min(i, 2 * j))",
       "i, j -> select(i < 3, j, min(i, 2*j))"},
      {"(4, 8):(8, 1)", "a, b -> a*8 + b"},
      {"((2, 4), 8):((1, 16), 2)", "a, b -> a%2 + a//2*16 + b*2"},
  };
  for (int i = 0; i < COUNT_OF(pairs); i++) {
    const IndexMap *b = map_of(pairs[i][1], -1);
    diag_print_all(context, stderr);
    assert_non_null(b);
    const IndexMap *a = map_of(pairs[i][0], b->input_count);
    diag_print_all(context, stderr);
    assert_non_null(a);
    if (!index_map_same(a, b)) print_error("%s: %s\n", pairs[i][0], index_map_text(context, a));
    assert_true(index_map_same(a, b));
    const IndexMap *again = map_of(index_map_text(context, a), -1);
    assert_non_null(again);
    assert_ptr_equal(again, a);
    assert_ptr_equal(map_of(index_map_lambda(context, a), -1), a);
  }
  assert_string_equal(index_map_name(context, map_of("OIHW4i16o4i", -1), "OIHW"), "OIHW4i16o4i");
}

static void test_blocked_layout(void **state) {
  (void)state;
  const Layout *layout = layout_parse_static(context, "NCHW16c", (int64_t[]){1, 30, 7, 7}, 4);
  assert_non_null(layout);
  int64_t n, strides[4], index[4];
  bool has[4];
  assert_true(layout_physical_size(layout, &n) && n == 1568);
  assert_int_equal(layout_padding_count(context, layout, &n).verdict, LAYOUT_YES);
  assert_int_equal(n, 98);
  assert_int_equal(layout_is_injective(context, layout).verdict, LAYOUT_YES);
  assert_int_equal(layout_is_onto(context, layout).verdict, LAYOUT_NO);
  layout_strides(context, layout, strides, has);
  assert_true(has[0] && has[2] && has[3] && !has[1]);
  assert_true(strides[2] == 112 && strides[3] == 16);
  assert_int_equal(layout_vector_width(context, layout, 1), 16);
  assert_int_equal(layout_vector_width(context, layout, 3), 1);
  assert_true(layout_offset(layout, (int64_t[]){0, 17, 2, 3}, &n) && n == 784 + 2 * 112 + 49);
  assert_int_equal(layout_at_offset(context, layout, n, index).verdict, LAYOUT_YES);
  assert_true(index[1] == 17 && index[2] == 2 && index[3] == 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_spellings_agree, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_blocked_layout, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
