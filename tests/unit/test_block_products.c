// SPDX-License-Identifier: Apache-2.0
// Products of matrices in blocks: the algorithm is proved, and a wrong one is not; which sums have
// the form; that the stages compute the same as the direct sum, by the interpreter; and what is
// measured of their rounding.
#include "graph/bilinear_errors.h"
#include "graph/block_products.h"
#include "interp/interp.h"
#include "plan/internal.h"

#include "graph_support.h"

typedef struct Case {
  const char *x, *w; // shapes
  const char *op;    // "matmul" with its attributes
  bool found;
} Case;

static StageGraph *stages_of_case(Context *context, const char *type, const Case *c) {
  const char *params =
      arena_printf(&context->arena, "x: R.Tensor((%s), \"%s\"), w: R.Tensor((%s), \"%s\")", c->x,
                   type, c->w, type);
  const char *body = arena_printf(&context->arena, LINE "y = R.%s)\n" END("y"), c->op);
  StageGraph *stages = stages_of(context, params, body);
  stage_graph_prune(stages);
  ((StageTensor *)stages->inputs.items[1])->constant = true;
  return stages;
}

static PrimFunc *program_of(StageGraph *s) {
  return stages_prim_func(s, s->stages.items, s->stages.count, "main");
}

static const Case cases[] = {
    {"6, 10", "10, 14", "matmul(x, w", true},
    {"7, 10", "10, 14", "matmul(x, w", true}, // an odd number of rows
    {"2, 2", "2, 2", "matmul(x, w", true},
    {"3, 5, 6", "6, 4", "matmul(x, w", true},
    {"4, 5, 6", "6, 4", "matmul(x, w", true}, // the matrices are in pairs
    {"1, 6, 5, 7", "10, 6, 1, 1", "nn.conv2d(x, w", true},
    {"2, 6, 5, 7", "10, 6, 1, 1", "nn.conv2d(x, w, padding=[1, 0, 2, 1], strides=[2, 2]", true},
    {"1, 6, 11, 8", "10, 6, 1, 1", "nn.conv2d(x, w, strides=[2, 3]", true},
    // Windows that do not overlap, with rows and columns that no window has.
    {"1, 3, 9, 7", "4, 3, 2, 2", "nn.conv2d(x, w, strides=[2, 2]", true},
    {"2, 2, 7, 12", "6, 2, 2, 4", "nn.conv2d(x, w, strides=[3, 4]", true},
    // One row; an odd number of columns or of terms; windows; the filters move the image.
    {"1, 10", "10, 14", "matmul(x, w", false},
    {"6, 10", "10, 7", "matmul(x, w", false},
    {"6, 5", "5, 14", "matmul(x, w", false},
    {"1, 6, 5, 7", "10, 6, 3, 3", "nn.conv2d(x, w", false},
    {"1, 6, 5, 7", "10, 6, 2, 2", "nn.conv2d(x, w, strides=[1, 2]", false},
    {"1, 4, 6, 9", "6, 2, 1, 1", "nn.conv2d(x, w, groups=2", false},
    {"3, 4, 6", "3, 6, 8", "matmul(x, w", false},
};

static void test_the_algorithm_is_proved(void **unused) {
  BlockAlgorithm wrong = *block_algorithm();
  assert_true(block_proves(&wrong));
  wrong.image.at[4][1] = -1;
  assert_false(block_proves(&wrong));
  assert_true(block_bound(block_algorithm()) == 6);
}

static void test_the_form(void **unused) {
  for (int i = 0; i < COUNT_OF(cases); i++) {
    Context *context = context_new();
    StageGraph *s = stages_of_case(context, "float32", &cases[i]);
    BlockProduct product;
    bool found = block_product_of(s, s->stages.items[s->stages.count - 1], &product);
    if (found != cases[i].found) fail_msg("%s of %s", cases[i].op, cases[i].x);
    context_free(context);
  }
}

static void test_other_types_have_no_form(void **unused) {
  static const char *const types[] = {"float64", "float16", "int32"};
  for (int i = 0; i < COUNT_OF(types); i++) {
    Context *context = context_new();
    StageGraph *s = stages_of_case(context, types[i], &cases[0]);
    BlockProduct product;
    assert_false(block_product_of(s, s->stages.items[0], &product));
    context_free(context);
  }
}

static void check_equal(const Case *c) {
  Context *context = context_new();
  StageGraph *s = stages_of_case(context, "float32", c);
  int count = s->stages.count;
  BlockProduct product;
  PrimFunc *before = program_of(s);
  assert_true(block_product_of(s, s->stages.items[count - 1], &product));
  BilinearStages stages = block_product_stages(context, &product);
  stage_graph_add_bilinear(s, product.sum.stage, &stages);
  assert_int_equal(s->stages.count, count + 4);
  s->stages.count--; // the stages of the other way alone
  InterpCompare how = {.seed = 3, .rtol = 1e-3, .atol = 1e-4};
  InterpDifference difference;
  if (!interp_compare(context, before, program_of(s), &how, &difference)) {
    diag_print_all(context, stderr);
    fail_msg("%s of %s: %s", c->op, c->x,
             interp_difference_text(&context->arena, before, &difference));
  }
  context_free(context);
}

static void test_products_are_equal(void **unused) {
  for (int i = 0; i < COUNT_OF(cases); i++)
    if (cases[i].found) check_equal(&cases[i]);
}

static void test_measured_errors(void **unused) {
  Context *context = context_new();
  BilinearErrors few = block_errors(&context->scratch, 64, block_algorithm()),
                 many = block_errors(&context->scratch, 1024, block_algorithm());
  assert_true(few.direct > 1e-8 && many.direct > few.direct && many.direct < 1e-5);
  assert_true(few.bilinear > few.direct && few.bilinear < 6 * few.direct);
  assert_true(many.bilinear > few.bilinear && many.bilinear < 6 * many.direct);
  context_free(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_algorithm_is_proved),  cmocka_unit_test(test_the_form),
      cmocka_unit_test(test_other_types_have_no_form), cmocka_unit_test(test_products_are_equal),
      cmocka_unit_test(test_measured_errors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
