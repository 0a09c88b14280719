// SPDX-License-Identifier: Apache-2.0
// Window products: which sums have the form; that the stages of bilinear algorithms compute the
// same as the direct sum, by the interpreter; and what is measured of their rounding.
#include "graph/bilinear_errors.h"
#include "graph/window_products.h"
#include "interp/interp.h"
#include "plan/internal.h"

#include "graph_support.h"

typedef struct Case {
  const char *x, *w; // shapes
  const char *op;    // "nn.conv2d" with its attributes
  int windows;       // found
} Case;

static StageGraph *stages_of_case(Context *context, const char *type, const Case *c) {
  const char *params =
      arena_printf(&context->arena, "x: R.Tensor((%s), \"%s\"), w: R.Tensor((%s), \"%s\")", c->x,
                   type, c->w, type);
  const char *body = arena_printf(&context->arena, LINE "y = R.%s)\n" END("y"), c->op);
  StageGraph *stages = stages_of(context, params, body);
  stage_graph_prune(stages);
  return stages;
}

static PrimFunc *program_of(StageGraph *s) {
  return stages_prim_func(s, s->stages.items, s->stages.count, "main");
}

static void set_constant(StageGraph *s, int input) {
  ((StageTensor *)s->inputs.items[input])->constant = true;
}

static const Case cases[] = {
    // Odd extents that tiles do not divide, several images, padding on some sides.
    {"2, 3, 9, 11", "5, 3, 3, 3", "nn.conv2d(x, w, padding=[1, 0, 2, 1]", 2},
    {"1, 2, 3, 4", "3, 2, 3, 3", "nn.conv2d(x, w", 2}, // one window along one axis
    {"1, 2, 13, 6", "3, 2, 3, 5", "nn.conv2d(x, w, padding=[0, 2, 1, 0]", 2},
    {"1, 2, 5, 12", "3, 2, 1, 7", "nn.conv2d(x, w, padding=[0, 3, 0, 3]", 1},
    {"3, 4, 17", "2, 4, 3", "nn.conv1d(x, w, padding=[1, 1]", 1},
    {"1, 2, 5, 7, 6", "3, 2, 3, 3, 3", "nn.conv3d(x, w, padding=[1, 1, 1, 1, 0, 1]", 3},
    {"1, 2, 11, 9", "3, 2, 3, 3", "nn.conv2d(x, w, padding=[1, 1, 1, 1], strides=[2, 1]", 1},
    {"1, 2, 11, 9", "3, 2, 3, 3", "nn.conv2d(x, w, padding=[2, 1, 2, 1], dilation=[2, 1]", 1},
    // Sums without windows, and those in which the filters move the image.
    {"1, 2, 11, 9", "3, 2, 3, 3", "nn.conv2d(x, w, strides=[2, 2]", 0},
    {"1, 2, 11, 9", "3, 2, 1, 1", "nn.conv2d(x, w", 0},
    {"1, 2, 11, 9", "3, 2, 2, 8", "nn.conv2d(x, w", 0},
    {"1, 4, 6, 9", "6, 2, 3, 3", "nn.conv2d(x, w, groups=2", 0},
    {"1, 4, 6, 9", "4, 1, 3, 3", "nn.conv2d(x, w, groups=4", 0},
    {"4, 6", "6, 3", "matmul(x, w", 0},
};

static void compare(Context *context, const Case *c, const PrimFunc *before,
                    const PrimFunc *after) {
  InterpCompare how = {.seed = 3, .rtol = 1e-3, .atol = 1e-4};
  InterpDifference difference;
  if (interp_compare(context, before, after, &how, &difference)) return;
  diag_print_all(context, stderr);
  fail_msg("%s of %s: %s", c->op, c->x,
           interp_difference_text(&context->arena, before, &difference));
}

// Transforms the windows of the set `which` in tiles of so many outputs.
static void check_transformed(const Case *c, int outputs, unsigned which) {
  Context *context = context_new();
  StageGraph *s = stages_of_case(context, "float32", c);
  WindowProduct product;
  set_constant(s, 1);
  PrimFunc *before = program_of(s);
  assert_true(window_product_of(s, s->stages.items[0], &product));
  bool any = false;
  for (int i = 0; i < product.count; i++) {
    TapWindow *w = &product.windows[i];
    w->transformed = which >> i & 1 && bilinear_best(outputs, (int)w->taps, &w->algorithm);
    any |= w->transformed;
  }
  if (any) {
    BilinearStages stages = bilinear_stages(context, &product);
    stage_graph_add_bilinear(s, product.sum.stage, &stages);
    assert_int_equal(s->stages.count, 5);
    assert_ptr_equal(product.sum.stage->output->producer, product.sum.stage);
    assert_int_equal(s->inputs.items[0]->users.count, 2);
    planner_count_readers(s);
    assert_int_equal(planner_most_readers(s->inputs.items[0]), 1);
    s->stages.count--; // the stages of the other way alone
    compare(context, c, before, program_of(s));
  }
  context_free(context);
}

static void test_the_form(void **unused) {
  for (int i = 0; i < COUNT_OF(cases); i++) {
    Context *context = context_new();
    StageGraph *s = stages_of_case(context, "float32", &cases[i]);
    WindowProduct product;
    set_constant(s, 1);
    bool found = window_product_of(s, s->stages.items[0], &product);
    if (found != (cases[i].windows > 0) || product.count != cases[i].windows)
      fail_msg("%s of %s: %d windows", cases[i].op, cases[i].x, product.count);
    context_free(context);
  }
}

static void test_weights_must_be_constant(void **unused) {
  for (int input = -1; input < 2; input++) {
    Context *context = context_new();
    StageGraph *s = stages_of_case(context, "float32", &cases[0]);
    WindowProduct product;
    if (input >= 0) set_constant(s, input);
    assert_true(window_product_of(s, s->stages.items[0], &product) == (input == 1));
    context_free(context);
  }
}

static void test_other_types_have_no_form(void **unused) {
  static const char *const types[] = {"float64", "float16", "int32"};
  for (int i = 0; i < COUNT_OF(types); i++) {
    Context *context = context_new();
    StageGraph *s = stages_of_case(context, types[i], &cases[0]);
    WindowProduct product;
    set_constant(s, 1);
    assert_false(window_product_of(s, s->stages.items[0], &product));
    context_free(context);
  }
}

static void test_transformed_sums_are_equal(void **unused) {
  for (int i = 0; i < COUNT_OF(cases); i++)
    for (unsigned which = 1; which < 1u << cases[i].windows; which++)
      for (int outputs = 2; outputs <= (which == 7 ? 2 : 5); outputs++)
        check_transformed(&cases[i], outputs, which);
}

static void test_measured_errors(void **unused) {
  Context *context = context_new();
  BilinearAlgorithm small, large;
  assert_true(bilinear_best(2, 3, &small) && bilinear_best(6, 3, &large));
  BilinearErrors two = bilinear_errors(&context->scratch, 64, &small, &small),
                 six = bilinear_errors(&context->scratch, 64, &large, &large),
                 row = bilinear_errors(&context->scratch, 64, &small, NULL);
  assert_true(two.direct > 1e-8 && two.direct < 1e-5);
  assert_true(two.bilinear < 2 * two.direct);
  assert_true(six.bilinear > 2 * two.bilinear);
  assert_true(row.bilinear > 1e-8 && row.bilinear < two.bilinear * 2);
  context_free(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_form),
      cmocka_unit_test(test_weights_must_be_constant),
      cmocka_unit_test(test_other_types_have_no_form),
      cmocka_unit_test(test_transformed_sums_are_equal),
      cmocka_unit_test(test_measured_errors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
