// SPDX-License-Identifier: Apache-2.0
// Tests the letters that are derived for the axes of tensors: from convolutions, windows and
// products by constants, through stages that permute, broadcast and reduce, and none elsewhere.
#include "graph_support.h"

// The letters of all named values, in order: "x NCHW, w OIHW, y NCHW"; "-" where there are none.
static void expect(const char *params, const char *body, const char *letters) {
  Context *context = context_new();
  StageGraph *stages = stages_of(context, params, body);
  Text found = text_new(&context->arena);
  for (int i = 0; i < stages->tensors.count; i++) {
    const StageTensor *tensor = stages->tensors.items[i];
    if (!tensor->value) continue;
    text_printf(&found, "%s%s %s", found.size ? ", " : "", tensor->value->name,
                tensor->letters ? tensor->letters : "-");
  }
  assert_string_equal(text_string(&found), letters);
  context_free(context);
}

static void test_convolutions(void **state) {
  (void)state;
  expect(F32("x", "2, 3, 7, 9") ", " F32("w", "5, 3, 3, 2"),
         LINE "y = R.nn.conv2d(x, w)\n" END("y"), "x NCHW, w OIHW, y NCHW");
  expect(F32("x", "2, 3, 7") ", " F32("w", "5, 3, 3"), LINE "y = R.nn.conv1d(x, w)\n" END("y"),
         "x NCW, w OIW, y NCW");
  expect(F32("x", "2, 3, 7, 9, 5") ", " F32("w", "5, 3, 3, 2, 1"),
         LINE "y = R.nn.conv3d(x, w)\n" END("y"), "x NCDHW, w OIDHW, y NCDHW");
  // Strides and dilation.
  expect(F32("x", "2, 3, 17, 19") ", " F32("w", "5, 3, 3, 2"),
         LINE "y = R.nn.conv2d(x, w, strides=[2, 3], dilation=[2, 1])\n" END("y"),
         "x NCHW, w OIHW, y NCHW");
  // Axes of extent 1: the batch, the input channels, the output channels.
  expect(F32("x", "1, 1, 7, 9") ", " F32("w", "1, 1, 3, 2"),
         LINE "y = R.nn.conv2d(x, w)\n" END("y"), "x NCHW, w OIHW, y NCHW");
}

static void test_windows_of_one_element(void **state) {
  (void)state;
  expect(F32("x", "2, 3, 7, 9") ", " F32("w", "5, 3, 1, 3"),
         LINE "y = R.nn.conv2d(x, w)\n" END("y"), "x NCHW, w OIHW, y NCHW");
  expect(F32("x", "2, 3, 7, 9") ", " F32("w", "5, 3, 3, 1"),
         LINE "y = R.nn.conv2d(x, w)\n" END("y"), "x NCHW, w OIHW, y NCHW");
  expect(F32("x", "2, 3, 7, 9") ", " F32("w", "5, 3, 1, 1"),
         LINE "y = R.nn.conv2d(x, w, strides=[2, 2])\n" END("y"), "x NCHW, w OIHW, y NCHW");
  expect(F32("x", "1, 1, 7, 9") ", " F32("w", "5, 1, 3, 1"),
         LINE "y = R.nn.conv2d(x, w)\n" END("y"), "x NCHW, w OIHW, y NCHW");
  expect(F32("x", "2, 3, 7") ", " F32("w", "5, 3, 1"), LINE "y = R.nn.conv1d(x, w)\n" END("y"),
         "x NCW, w OIW, y NCW");
  // A product of matrices with axes of extent 1 before the others is no convolution.
  expect(F32("x", "2, 3, 7, 9") ", " F32("w", "1, 1, 9, 5"), LINE "y = R.matmul(x, w)\n" END("y"),
         "x -, w -, y -");
}

static void test_groups(void **state) {
  (void)state;
  expect(F32("x", "2, 6, 7, 9") ", " F32("w", "4, 3, 3, 3"),
         LINE "y = R.nn.conv2d(x, w, groups=2)\n" END("y"), "x NCHW, w OIHW, y NCHW");
  expect(F32("x", "2, 6, 7, 9") ", " F32("w", "6, 1, 3, 3"),
         LINE "y = R.nn.conv2d(x, w, groups=6)\n" END("y"), "x NCHW, w OIHW, y NCHW");
  expect(F32("x", "2, 6, 7, 9") ", " F32("w", "12, 1, 1, 3"),
         LINE "y = R.nn.conv2d(x, w, groups=6)\n" END("y"), "x NCHW, w OIHW, y NCHW");
}

static void test_transposed_convolutions(void **state) {
  (void)state;
  static const char *const strides[] = {"1, 1", "2, 2", "3, 2", "2, 1"};
  static const char *const kernels[] = {"3, 3", "2, 2", "4, 3", "1, 2"};
  for (int s = 0; s < COUNT_OF(strides); s++)
    for (int k = 0; k < COUNT_OF(kernels); k++)
      for (int groups = 1; groups <= 2; groups++) {
        Context *context = context_new();
        Arena *arena = &context->arena;
        expect(arena_printf(arena, F32("x", "2, 4, 7, 9") ", w: R.Tensor((4, 5, %s), \"float32\")",
                            kernels[k]),
               arena_printf(arena,
                            LINE "y = R.nn.conv2d_transpose(x, w, strides=[%s], groups=%d)\n" //
                            END("y"),
                            strides[s], groups),
               "x NCHW, w IOHW, y NCHW");
        context_free(context);
      }
}

// ---- All small convolutions ---------------------------------------------------------------------

typedef struct Shape {
  int space, kernel[3], stride, batch, in, out, groups;
} Shape;

static const char *extents(Arena *arena, int first, int second, const int *rest, int count) {
  Text text = text_new(arena);
  text_printf(&text, "%d, %d", first, second);
  for (int i = 0; i < count; i++) text_printf(&text, ", %d", rest ? rest[i] : 6 + i);
  return text_string(&text);
}

static const char *list(Arena *arena, int value, int count) {
  Text text = text_new(arena);
  for (int i = 0; i < count; i++) text_printf(&text, "%s%d", i ? ", " : "", value);
  return text_string(&text);
}

// The letters of x, w and y, in one text.
static const char *letters_of(Context *context, const Shape *c, bool transpose) {
  Arena *arena = &context->arena;
  int first = transpose ? c->in : c->out, second = (transpose ? c->out : c->in) / c->groups;
  const char *params =
      arena_printf(arena, "x: R.Tensor((%s), \"float32\"), w: R.Tensor((%s), \"float32\")",
                   extents(arena, c->batch, c->in, NULL, c->space),
                   extents(arena, first, second, c->kernel, c->space));
  const char *body = arena_printf(
      arena, LINE "y = R.nn.conv%dd%s(x, w, strides=[%s], groups=%d)\n" END("y"), c->space,
      transpose ? "_transpose" : "", list(arena, c->stride, c->space), c->groups);
  StageGraph *stages = stages_of(context, params, body);
  Text text = text_new(arena);
  for (int i = 0; i < stages->tensors.count; i++)
    if (stages->tensors.items[i]->value)
      text_printf(&text, "%s ",
                  stages->tensors.items[i]->letters ? stages->tensors.items[i]->letters : "-");
  return text_string(&text);
}

// Without a tap and with one input channel, a convolution has no reduction that tells its axes.
static bool has_sums(const Shape *c, bool transpose) {
  bool sums = c->in / c->groups > 1;
  for (int i = 0; i < c->space; i++) sums |= ceil_div(c->kernel[i], transpose ? c->stride : 1) > 1;
  return sums;
}

static void check_convolution(const Shape *c, bool transpose) {
  Context *context = context_new();
  const char *places = &"DHW"[3 - c->space],
             *form = transpose ? "NC%s IO%s NC%s " : "NC%s OI%s NC%s ";
  char expected[40];
  snprintf(expected, sizeof expected, form, places, places, places);
  const char *found = letters_of(context, c, transpose);
  bool none = strcmp(found, "- - - ") == 0 && !has_sums(c, transpose);
  if (!none && strcmp(found, expected) != 0)
    fail_msg("%dd%s kernel %d %d %d stride %d batch %d channels %d to %d groups %d: %s", c->space,
             transpose ? " transposed" : "", c->kernel[0], c->kernel[1], c->kernel[2], c->stride,
             c->batch, c->in, c->out, c->groups, found);
  context_free(context);
}

static void test_small_convolutions(void **state) {
  (void)state;
  static const int channels[][3] = {{1, 1, 1}, {1, 5, 1}, {4, 1, 1}, {4, 6, 1},
                                    {4, 6, 2}, {4, 4, 4}, {4, 8, 4}, {6, 4, 2}};
  for (int code = 0; code < 3 * 27 * 8 * 2 * 2; code++) {
    int rest = code;
    Shape c = {.space = 1 + rest % 3};
    rest /= 3;
    for (int i = 0; i < 3; i++, rest /= 3) c.kernel[i] = 1 + rest % 3;
    const int *of = channels[rest % 8];
    c.in = of[0], c.out = of[1], c.groups = of[2];
    c.stride = 1 + rest / 8 % 2;
    c.batch = 1 + rest / 16;
    check_convolution(&c, false);
    if (code % 3 == 1) check_convolution(&c, true);
  }
}

// Letters follow the axes through transposes, and the axis that an operation makes anew has none.
static void test_permuted_images(void **state) {
  (void)state;
  const char *params = F32("x", "2, 7, 9, 3") ", " F32("w", "5, 3, 3, 2");
  expect(params,
         LINE "t = R.permute_dims(x, axes=[0, 3, 1, 2])\n" LINE "c = R.nn.conv2d(t, w)\n" LINE
              "y = R.permute_dims(c, axes=[2, 3, 1, 0])\n" END("y"),
         "x NHWC, w OIHW, t NCHW, c NCHW, y HWCN");
  expect(F32("x", "2, 7, 9, 3") ", " F32("w", "3, 2, 3, 5"),
         LINE "t = R.permute_dims(x, axes=[0, 3, 1, 2])\n" LINE
              "u = R.permute_dims(w, axes=[3, 2, 0, 1])\n" LINE "c = R.nn.conv2d(t, u)\n" END("c"),
         "x NHWC, w HWIO, t NCHW, u OIHW, c NCHW");
}

static void test_elementwise(void **state) {
  (void)state;
  expect(F32("x", "2, 3, 7, 9") ", " F32("w", "5, 3, 3, 2") ", " F32("s", "5, 1, 1") ", " F32(
             "b", "1, 5, 1, 1") ", " F32("r", "8,"),
         LINE "c = R.nn.conv2d(x, w)\n" LINE "m = R.multiply(c, s)\n" LINE "a = R.add(m, b)\n" LINE
              "y = R.add(a, r)\n" END("y"),
         "x NCHW, w OIHW, s CHW, b NCHW, r W, c NCHW, m NCHW, a NCHW, y NCHW");
}

static void test_reductions(void **state) {
  (void)state;
  const char *params = F32("x", "2, 3, 7, 9") ", " F32("w", "5, 3, 3, 2");
  expect(params,
         LINE "c = R.nn.conv2d(x, w)\n" LINE "m = R.mean(c, axis=[2, 3], keepdims=True)\n" LINE
              "y = R.max(c, axis=[2, 3], keepdims=False)\n" LINE "R.output(m, y)\n"
              "    return (m, y)\n",
         "x NCHW, w OIHW, c NCHW, m NCHW, y NC");
}

// A reshape that merges the places of an image makes an axis that has no letter.
static void test_reshaped_images(void **state) {
  (void)state;
  const char *params = F32("x", "2, 3, 7, 9") ", " F32("w", "6, 3, 3, 2");
  expect(params,
         LINE "c = R.nn.conv2d(x, w)\n" LINE "f = R.reshape(c, shape=[2, 6, 40])\n" LINE
              "y = R.nn.relu(f)\n" END("y"),
         "x NCHW, w OIHW, c NCHW, f -, y -");
  expect(params,
         LINE "c = R.nn.conv2d(x, w)\n" //
         LINE "f = R.reshape(c, shape=[2, 2, 3, 5, 8])\n" END("f"),
         "x NCHW, w OIHW, c NCHW, f -");
}

// Parts of one axis that are merged with another one: between depth and space, windows of an image.
static void test_parts_of_axes(void **state) {
  (void)state;
  expect(F32("x", "2, 3, 7, 9") ", " F32("w", "12, 3, 3, 2"),
         LINE "c = R.nn.conv2d(x, w)\n" LINE "f = R.reshape(c, shape=[2, 3, 2, 2, 5, 8])\n" LINE
              "t = R.permute_dims(f, axes=[0, 1, 4, 2, 5, 3])\n" LINE
              "y = R.reshape(t, shape=[2, 3, 10, 16])\n" END("y"),
         "x NCHW, w OIHW, c NCHW, f -, t -, y NCHW");
  expect(F32("x", "2, 3, 6, 8") ", " F32("w", "3, 3, 1, 1"),
         LINE "c = R.nn.conv2d(x, w)\n" LINE "f = R.reshape(c, shape=[2, 3, 3, 2, 4, 2])\n" LINE
              "t = R.permute_dims(f, axes=[0, 3, 5, 1, 2, 4])\n" LINE
              "y = R.reshape(t, shape=[2, 12, 3, 4])\n" LINE
              "u = R.permute_dims(f, axes=[0, 2, 4, 3, 5, 1])\n" LINE
              "z = R.reshape(u, shape=[24, 4, 3])\n" LINE "R.output(y, z)\n    return (y, z)\n",
         "x NCHW, w OIHW, c NCHW, f -, t -, y NCHW, u -, z -");
}

// All orders of the axes of an image.
static void test_all_permutations(void **state) {
  (void)state;
  static const int extents[] = {2, 3, 7, 9}; // of N, C, H, W
  for (int code = 0; code < 256; code++) {
    int axes[4] = {code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6}, of[4] = {0}; // NCHW to x
    char letters[5] = {0};
    for (int i = 0; i < 4; i++) letters[axes[i]] = "NCHW"[i], of[axes[i]] = extents[i];
    if (strlen(letters) < 4) continue;
    Context *context = context_new();
    Arena *arena = &context->arena;
    expect(arena_printf(arena,
                        "x: R.Tensor((%d, %d, %d, %d), \"float32\"), " F32("w", "5, 3, 3, 2"),
                        of[0], of[1], of[2], of[3]),
           arena_printf(arena,
                        LINE "t = R.permute_dims(x, axes=[%d, %d, %d, %d])\n" //
                        LINE "c = R.nn.conv2d(t, w)\n" END("c"),
                        axes[0], axes[1], axes[2], axes[3]),
           arena_printf(arena, "x %s, w OIHW, t NCHW, c NCHW", letters));
    context_free(context);
  }
}

static void test_windows_without_weights(void **state) {
  (void)state;
  expect(F32("x", "2, 3, 7, 9"),
         LINE "y = R.nn.max_pool2d(x, pool_size=[3, 2], strides=[2, 2])\n" END("y"),
         "x NCHW, y NCHW");
  expect(F32("x", "2, 3, 7"), LINE "y = R.nn.avg_pool1d(x, pool_size=[3])\n" END("y"),
         "x NCW, y NCW");
  // A window along channels does not name the axes of an image.
  expect(F32("x", "2, 3, 7, 9") ", " F32("w", "5, 3, 3, 2"),
         LINE "p = R.nn.max_pool2d(x, pool_size=[1, 2])\n" LINE
              "t = R.permute_dims(x, axes=[0, 2, 1, 3])\n" LINE
              "q = R.nn.max_pool2d(t, pool_size=[2, 2])\n" LINE "c = R.nn.conv2d(x, w)\n" LINE
              "R.output(p, q, c)\n    return (p, q, c)\n",
         "x NCHW, w OIHW, p NCHW, t NHCW, q NHCW, c NCHW");
}

// Where two convolutions disagree, the first one decides the letters of the tensor that both read;
// the second gives letters only to its own tensors.
static void test_conflicts(void **state) {
  (void)state;
  expect(F32("x", "2, 3, 7, 9") ", " F32("w", "5, 3, 3, 2") ", " F32("v", "4, 7, 2, 3"),
         LINE "c = R.nn.conv2d(x, w)\n" LINE "t = R.permute_dims(x, axes=[0, 2, 1, 3])\n" LINE
              "d = R.nn.conv2d(t, v)\n" LINE "R.output(c, d)\n    return (c, d)\n",
         "x NCHW, w OIHW, v OIHW, c NCHW, t NHCW, d NCHW");
  // The sum of an image and its transpose.
  expect(F32("x", "2, 3, 6, 6") ", " F32("w", "3, 3, 3, 3"),
         LINE "c = R.nn.conv2d(x, w)\n" LINE "t = R.permute_dims(c, axes=[0, 1, 3, 2])\n" LINE
              "y = R.add(c, t)\n" END("y"),
         "x NCHW, w OIHW, c NCHW, t NCWH, y -");
}

static void test_products(void **state) {
  (void)state;
  // Only a constant is called weights.
  expect(F32("x", "7, 5") ", " F32("w", "5, 3"), LINE "y = R.matmul(x, w)\n" END("y"),
         "x -, w -, y -");
  expect(F32("q", "2, 3, 7, 5") ", " F32("k", "2, 3, 5, 7"),
         LINE "s = R.matmul(q, k)\n" LINE "y = R.nn.softmax(s, axis=-1)\n" END("y"),
         "q -, k -, s -, y -");
  expect(F32("x", "2, 3, 5"),
         LINE "y = R.matmul(x, R.const([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [1.0, 2.0], "
              "[5.0, 6.0]], \"float32\"))\n" END("y"),
         "x -, constant IO, y -");
}

static void test_other_ranks(void **state) {
  (void)state;
  expect(F32("x", ""), LINE "y = R.exp(x)\n" END("y"), "x -, y -");
  expect(F32("x", "5,"), LINE "y = R.exp(x)\n" END("y"), "x -, y -");
  expect(F32("x", "1, 2, 1, 3, 1, 2, 1, 3"), LINE "y = R.exp(x)\n" END("y"), "x -, y -");
  expect(F32("x", "2, 0, 7, 9") ", " F32("w", "5, 0, 3, 2"),
         LINE "y = R.nn.conv2d(x, w)\n" END("y"), "x -, w -, y -");
}

static void test_symbolic_sizes(void **state) {
  (void)state;
  expect("x: R.Tensor((\"n\", 3, \"h\", \"w\"), \"float32\"), " F32("w", "5, 3, 3, 2"),
         LINE "c = R.nn.conv2d(x, w)\n" LINE "y = R.permute_dims(c, axes=[0, 2, 3, 1])\n" END("y"),
         "x NCHW, w OIHW, c NCHW, y NHWC");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_convolutions),
      cmocka_unit_test(test_windows_of_one_element),
      cmocka_unit_test(test_groups),
      cmocka_unit_test(test_transposed_convolutions),
      cmocka_unit_test(test_small_convolutions),
      cmocka_unit_test(test_permuted_images),
      cmocka_unit_test(test_elementwise),
      cmocka_unit_test(test_reductions),
      cmocka_unit_test(test_reshaped_images),
      cmocka_unit_test(test_parts_of_axes),
      cmocka_unit_test(test_all_permutations),
      cmocka_unit_test(test_windows_without_weights),
      cmocka_unit_test(test_conflicts),
      cmocka_unit_test(test_products),
      cmocka_unit_test(test_other_ranks),
      cmocka_unit_test(test_symbolic_sizes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
