// SPDX-License-Identifier: Apache-2.0
// Tests which stages are grouped to run row by row, and which must not be.
#include "graph_support.h"
#include "runtime/runtime.h"

static StageGraph *grouped(Context *context, const char *params, const char *body) {
  StageGraph *stages = stages_of(context, params, body);
  stage_graph_prune(stages);
  stage_graph_inline_views(stages);
  HostMachine machine = machine_probe();
  stage_graph_inline_intermediates(stages, &machine);
  stage_graph_group_rows(stages);
  return stages;
}

// "5" is a group of five members, "1" a stage by itself.
static void expect_sizes(const StageGraph *stages, const char *sizes) {
  Text found = text_new(&stages->context->arena);
  for (int i = 0; i < stages->stages.count; i++)
    text_printf(&found, "%s%d", i ? " " : "", MAX_OF(stages->stages.items[i]->member_count, 1));
  assert_string_equal(text_string(&found), sizes);
}

static void expect(const char *params, const char *body, const char *sizes) {
  Context *context = context_new();
  expect_sizes(grouped(context, params, body), sizes);
  context_free(context);
}

#define X "x: R.Tensor((3, 5, 19), \"float32\")"

static void test_softmax_is_one(void **state) {
  (void)state;
  expect(X, LINE "y = R.nn.softmax(x, axis=-1)\n" END("y"), "5");
  expect(X, LINE "a = R.nn.relu(x)\n" LINE "y = R.nn.softmax(a, axis=-1)\n" END("y"), "6");
}

static void test_norm_is_one(void **state) {
  (void)state;
  const char *params = X ", s: R.Tensor((19,), \"float32\"), b: R.Tensor((19,), \"float32\")";
  expect(params, LINE "y = R.nn.layer_norm(x, s, b, axis=-1)\n" END("y"), "5");
  expect(params, LINE "y = R.nn.rms_norm(x, s, axis=-1)\n" END("y"), "3");
  // Rows that are not contiguous.
  expect("x: R.Tensor((2, 19, 7), \"float32\"), s: R.Tensor((19,), \"float32\"), "
         "b: R.Tensor((19,), \"float32\")",
         LINE "t = R.permute_dims(x, axes=[0, 2, 1])\n" LINE
              "y = R.nn.layer_norm(t, s, b, axis=-1)\n" END("y"),
         "5");
}

// Where a result is kept in memory, the group that writes it ends with it.
static void test_a_kept_result_ends_a_group(void **state) {
  (void)state;
  static const char *const names[] = {"y", "a", "m"}, *const sizes[] = {"4", "3 1", "1 1 1 1"};
  const char *body =
      LINE "m = R.max(x, axis=[-1], keepdims=True)\n" LINE "s = R.subtract(x, m)\n" LINE
           "a = R.exp(s)\n" LINE "y = R.abs(a)\n" END("y");
  for (int i = 0; i < COUNT_OF(names); i++) {
    Context *context = context_new();
    StageGraph *stages = stages_of(context, X, body);
    for (int k = 0; k < stages->tensors.count; k++) {
      StageTensor *tensor = stages->tensors.items[k];
      tensor->kept = tensor->value && !strcmp(tensor->value->name, names[i]);
    }
    stage_graph_group_rows(stages);
    expect_sizes(stages, sizes[i]);
    context_free(context);
  }
}

// Rows of outer axes, of several axes, and of a part of an axis.
static void test_any_axes(void **state) {
  (void)state;
  expect(X, LINE "y = R.nn.softmax(x, axis=1)\n" END("y"), "5");
  expect(X, LINE "y = R.nn.softmax(x, axis=0)\n" END("y"), "5");
  const char *norm =
      LINE "m = R.mean(x, axis=[0, 2], keepdims=True)\n" LINE "d = R.subtract(x, m)\n" LINE
           "s = R.multiply(d, d)\n" LINE "v = R.mean(s, axis=[0, 2], keepdims=True)\n" LINE
           "y = R.divide(d, v)\n" END("y");
  expect(X, norm, "7");
  expect("x: R.Tensor((2, 6, 5, 7), \"float32\"), s: R.Tensor((3,), \"float32\"), "
         "b: R.Tensor((3,), \"float32\"), c: R.Tensor((6, 1, 1), \"float32\")",
         LINE "g = R.reshape(x, R.shape([2, 3, 70]))\n" LINE
              "i = R.nn.instance_norm(g, s, b)\n" LINE
              "t = R.reshape(i, R.shape([2, 6, 5, 7]))\n" LINE "y = R.multiply(t, c)\n" END("y"),
         "6");
  // A member of other rows: the columns of x are no rows of the maximum.
  expect("x: R.Tensor((5, 5), \"float32\")",
         LINE "m = R.max(x, axis=[0], keepdims=True)\n" LINE
              "t = R.permute_dims(m, axes=[1, 0])\n" LINE "y = R.subtract(x, t)\n" END("y"),
         "1 1");
}

// A maximum that is an output too, rows that are not the last axes, a product of matrices.
static void test_others_stay(void **state) {
  (void)state;
  expect(X,
         LINE "m = R.max(x, axis=[-1], keepdims=True)\n" LINE "y = R.subtract(x, m)\n" LINE
              "R.output(m, y)\n    return (m, y)\n",
         "1 1");
  expect(X, LINE "y = R.max(x, axis=[-1], keepdims=True)\n" END("y"), "1");
  expect(X ", w: R.Tensor((19, 4), \"float32\")",
         LINE "p = R.matmul(x, w)\n" LINE "y = R.nn.relu(p)\n" END("y"), "1 1");
  // The next stage reads the results of all rows, not only of its own.
  expect("x: R.Tensor((5, 5), \"float32\")",
         LINE "m = R.max(x, axis=[-1], keepdims=True)\n" LINE
              "t = R.permute_dims(m, axes=[1, 0])\n" LINE "y = R.subtract(x, t)\n" END("y"),
         "1 1");
  // A convolution to one channel is a product, and so is one whose windows overlap.
  expect("x: R.Tensor((1, 6, 5, 7), \"float32\"), w: R.Tensor((1, 6, 1, 1), \"float32\")",
         LINE "s = R.nn.conv2d(x, w)\n" LINE "y = R.concat((s, s), axis=1)\n" END("y"), "1 1");
  expect("x: R.Tensor((1, 6, 5, 7), \"float32\"), w: R.Tensor((1, 6, 3, 3), \"float32\")",
         LINE "s = R.nn.conv2d(x, w, padding=[1, 1, 1, 1])\n" LINE
              "y = R.multiply(x, s)\n" END("y"),
         "1 1");
  // The product does not reduce over the rows that it scales.
  expect("x: R.Tensor((1, 6, 5, 7), \"float32\"), a: R.Tensor((1, 4, 1, 1), \"float32\"), "
         "w: R.Tensor((6, 4, 1, 1), \"float32\")",
         LINE "s = R.nn.conv2d(a, w)\n" LINE "y = R.multiply(x, s)\n" END("y"), "1 1");
}

// The stages that are left when a softmax over x[12, 5] is read through views by a product.
static void expect_moved(const char *views, const char *outputs, const char *sizes) {
  Context *context = context_new();
  const char *body = arena_printf(&context->arena,
                                  LINE "a = R.nn.softmax(x, axis=-1)\n%s" LINE
                                       "y = R.matmul(c, w)\n" LINE "R.output(%s)\n    return %s\n",
                                  views, outputs, outputs);
  StageGraph *stages = grouped(context, F32("x", "12, 5") ", " F32("w", "5, 7"), body);
  stage_graph_move_rows(stages);
  expect_sizes(stages, sizes);
  context_free(context);
}

#define WINDOWS                                                                                    \
  LINE "b = R.reshape(a, R.shape([2, 2, 3, 5]))\n" LINE                                            \
       "t = R.permute_dims(b, axes=[1, 0, 2, 3])\n" LINE "c = R.reshape(t, R.shape([2, 6, 5]))\n"

static void test_rows_are_written_in_the_order_of_a_view(void **state) {
  (void)state;
  expect_moved(WINDOWS, "y", "5 1");
  expect_moved(WINDOWS, "(y, a)", "5 1 1"); // the softmax is an output
  expect_moved(WINDOWS LINE "z = R.nn.relu(a)\n", "(y, z)", "5 1 1 1");
  // Rows would be cut: three elements of one row and two of the next.
  expect_moved(LINE "b = R.permute_dims(a, axes=[1, 0])\n" LINE
                    "c = R.reshape(b, R.shape([12, 5]))\n",
               "y", "5 1 1");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_softmax_is_one),
      cmocka_unit_test(test_norm_is_one),
      cmocka_unit_test(test_a_kept_result_ends_a_group),
      cmocka_unit_test(test_any_axes),
      cmocka_unit_test(test_others_stay),
      cmocka_unit_test(test_rows_are_written_in_the_order_of_a_view),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
