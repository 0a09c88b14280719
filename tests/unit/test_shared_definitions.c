// SPDX-License-Identifier: Apache-2.0
// Tests which operators share a definition, and that programs of their stages have axes of their
// own.
#include "graph_support.h"

static const Expr *axis_of(const StageGraph *s, int stage, int axis) {
  return s->stages.items[stage]->te->axes[axis].var;
}

// Do the last stages of two statements have one variable for their first axis?
static bool share(const char *a, const char *b) {
  Context *context = context_new();
  const char *params = F32("x", "7, 5") ", " F32("y", "7, 5") ", " F32("z", "1, 5");
  const char *body = arena_printf(&context->arena,
                                  LINE "a = %s\n" LINE "b = %s\n" LINE "R.output(a, b)\n"
                                       "    return (a, b)\n",
                                  a, b);
  StageGraph *s = stages_of(context, params, body);
  bool same = axis_of(s, s->stages.count / 2 - 1, 0) == axis_of(s, s->stages.count - 1, 0);
  context_free(context);
  return same;
}

static void test_equal_operators_share(void **state) {
  (void)state;
  assert_true(share("R.exp(x)", "R.exp(y)"));
  assert_true(share("R.add(x, z)", "R.add(y, z)"));
  assert_true(share("R.sum(x, axis=[1])", "R.sum(y, axis=[1])"));
  assert_true(share("R.nn.softmax(x)", "R.nn.softmax(y)"));
}

static void test_different_operators_do_not_share(void **state) {
  (void)state;
  assert_false(share("R.exp(x)", "R.abs(y)"));
  assert_false(share("R.exp(x)", "R.exp(z)"));                       // shapes
  assert_false(share("R.sum(x, axis=[1])", "R.sum(y, axis=[0])"));   // attributes
  assert_false(share("R.add(x, y)", "R.add(x, x)"));                 // one tensor twice
  assert_false(share("R.cumsum(x, axis=1)", "R.cumsum(y, axis=1)")); // ordered
  assert_false(share("R.reshape(x, (5, 7))", "R.reshape(y, (35, 1))"));
}

static void test_programs_have_axes_of_their_own(void **state) {
  (void)state;
  Context *context = context_new();
  StageGraph *s = stages_of(
      context, F32("x", "7, 5"),
      LINE "a = R.sum(x, axis=[1], keepdims=True)\n" LINE "b = R.subtract(x, a)\n" LINE
           "c = R.sum(b, axis=[1], keepdims=True)\n" LINE "y = R.subtract(b, c)\n" END("y"));
  assert_int_equal(s->stages.count, 4);
  for (int i = 0; i < 2; i++) assert_ptr_equal(axis_of(s, i, 1), axis_of(s, i + 2, 1));
  assert_string_equal(s->stages.items[3]->output->buffer->name, "y");
  PrimFunc *func = program_like(s, NULL);
  Map vars = map_new(&context->arena);
  const Stmt *blocks = func->body->as.block->body;
  assert_int_equal(blocks->as.seq.count, 4);
  for (int i = 0; i < 4; i++) {
    const Stmt *block = blocks->as.seq.items[i];
    while (block->kind == STMT_FOR) block = block->as.loop.body;
    for (int v = 0; v < block->as.block->var_count; v++) {
      assert_false(map_contains(&vars, block->as.block->vars[v].var));
      map_put(&vars, block->as.block->vars[v].var, block);
    }
  }
  assert_true(verify_prim_func(context, func, IR_LEVEL_TENSOR));
  context_free(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_equal_operators_share),
      cmocka_unit_test(test_different_operators_do_not_share),
      cmocka_unit_test(test_programs_have_axes_of_their_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
