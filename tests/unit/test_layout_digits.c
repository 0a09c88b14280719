// SPDX-License-Identifier: Apache-2.0
// The digits level against brute force: forms of random expressions have the expression's values
// and bounds that hold, and are printed as expressions of the same value.
#include "layout/digits/digits.h"
#include "layout_texts.h"
#include "random_support.h"

#include <stdlib.h>

static uint64_t seed = 12345;

static const LayoutExpr *random_expr(int axes, int depth) {
  static const int64_t cuts[] = {1, 2, 2, 3, 4, 4, 5, 6, 7, 8, 12, 16};
  if (depth == 0)
    return random_below(5) ? layout_axis(context, random_below(axes)) : number(random_below(9));
  const LayoutExpr *a = random_expr(axes, depth - 1);
  int64_t c = cuts[random_below(COUNT_OF(cuts))];
  switch (random_below(12)) {
  case 0:
  case 1: return binary(LAYOUT_ADD, a, random_expr(axes, depth - 1));
  case 2: return binary(LAYOUT_SUB, number(random_below(20)), a);
  case 3: return binary(LAYOUT_ADD, binary(LAYOUT_MUL, a, number(c)), random_expr(axes, depth - 1));
  case 4: return binary(LAYOUT_ADD, a, number(random_below(9) - 2));
  case 5:
  case 6: return binary(LAYOUT_DIV, a, number(c));
  case 7:
  case 8: return binary(LAYOUT_MOD, a, number(c));
  case 9: return binary(LAYOUT_XOR, a, random_expr(axes, depth - 1));
  case 10: return binary(LAYOUT_AND, a, number(random_below(16)));
  default:
    return binary(random_below(2) ? LAYOUT_MIN : LAYOUT_MAX, a, random_expr(axes, depth - 1));
  }
}

static bool next_index(int64_t *index, const int64_t *extents, int rank) {
  for (int i = rank - 1; i >= 0; i--) {
    if (++index[i] < extents[i]) return true;
    index[i] = 0;
  }
  return false;
}

static void check_form(const LayoutExpr *e, const int64_t *extents, int axes, int *points,
                       int *carried) {
  ArenaMark mark = arena_mark(&context->scratch);
  DigitSpace d = layout_digits_new(context, extents, axes);
  const DigitForm *f = layout_form_of(&d, e);
  Interval bounds;
  if (f && layout_form_bounds(&d, f, &bounds)) {
    const LayoutExpr *back = layout_form_expr(&d, f, NULL);
    int64_t index[MAX_RANK] = {0}, want, got;
    ++*carried;
    do {
      assert_true(layout_expr_value(e, index, NULL, 0, &want));
      bool good = layout_expr_value(back, index, NULL, 0, &got) && want == got &&
                  bounds.low <= want && want <= bounds.high;
      if (!good)
        print_error("%s\n  printed as %s\n  at %d %d of %d %d: %d, not %d; bounds %d %d\n",
                    layout_expr_text(context, e, NULL, 0), layout_expr_text(context, back, NULL, 0),
                    (int)index[0], (int)index[1], (int)extents[0], (int)extents[1], (int)got,
                    (int)want, (int)bounds.low, (int)bounds.high);
      assert_true(good);
      ++*points;
    } while (next_index(index, extents, axes));
  }
  arena_reset(&context->scratch, mark);
}

static void test_forms_of_random_expressions(void **state) {
  (void)state;
  static const int64_t sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16};
  int points = 0, carried = 0, tried = 40000;
  for (int i = 0; i < tried; i++) {
    int axes = 1 + random_below(3);
    int64_t extents[3] = {1, 1, 1};
    if (i % 2000 == 0) {
      renew_context();
    }
    for (int j = 0; j < axes; j++) extents[j] = sizes[random_below(COUNT_OF(sizes))];
    check_form(random_expr(axes, 1 + random_below(4)), extents, axes, &points, &carried);
  }
  print_message("%d of %d random expressions carried, %d points\n", carried, tried, points);
  assert_true(carried > tried * 9 / 10);
}

int main(void) {
  context = context_new();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_forms_of_random_expressions),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  context_free(context);
  return failed;
}
