// SPDX-License-Identifier: Apache-2.0
// Tests which concatenations of parts of one tensor become views whose indices wrap.
#include "graph_support.h"

static bool note_choice(Visitor *visitor, Expr *e) {
  *(bool *)visitor->env |= e->op == EXPR_IF_THEN_ELSE;
  return true;
}

// Is the concatenation of these two parts of x[7, 3, 5] along an axis read by one load, by a stage
// that computes the Relu?
static bool is_wrapped(const char *axis, const char *first, const char *second) {
  Context *context = context_new();
  const char *body =
      arena_printf(&context->arena,
                   LINE "a = R.strided_slice(x, axes=[%s], %s)\n" LINE
                        "b = R.strided_slice(x, axes=[%s], %s)\n" LINE
                        "c = R.concat((a, b), axis=%s)\n" LINE "y = R.nn.relu(c)\n" END("y"),
                   axis, first, axis, second, axis);
  StageGraph *stages = stages_of(context, F32("x", "7, 3, 5"), body);
  stage_graph_prune(stages);
  stage_graph_wrap_indices(stages);
  stage_graph_inline_views(stages);
  bool chooses = false;
  Visitor visitor = {.env = &chooses, .enter_expr = note_choice};
  for (int i = 0; i < stages->stages.count; i++)
    visit_expr(&visitor, stages->stages.items[i]->te->value);
  assert_int_equal(stages->stages.count, chooses ? 2 : 1);
  context_free(context);
  return !chooses;
}

static void test_rotations_are_views(void **state) {
  (void)state;
  assert_true(is_wrapped("0", "begin=[2], end=[7]", "begin=[0], end=[2]"));
  assert_true(is_wrapped("0", "begin=[6], end=[7]", "begin=[0], end=[6]"));
  assert_true(is_wrapped("1", "begin=[1], end=[3]", "begin=[0], end=[1]"));
}

static void test_others_stay(void **state) {
  (void)state;
  assert_false(is_wrapped("2", "begin=[1], end=[5]", "begin=[0], end=[1]")); // innermost
  assert_false(is_wrapped("0", "begin=[2], end=[7]", "begin=[1], end=[3]"));
  assert_false(is_wrapped("0", "begin=[2], end=[7]", "begin=[0], end=[7]"));
  assert_false(is_wrapped("0", "begin=[0], end=[7]", "begin=[0], end=[7]"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rotations_are_views),
      cmocka_unit_test(test_others_stay),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
