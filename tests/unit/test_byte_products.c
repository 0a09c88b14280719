// SPDX-License-Identifier: Apache-2.0
// Sums of products of bytes: which stages have the form, and that the stages in their place compute
// the same, by the interpreter.
#include "graph/byte_products.h"
#include "graph_support.h"
#include "interp/interp.h"
#include "runtime/runtime.h"

typedef struct Case {
  const char *x, *w;           // shapes
  const char *x_type, *w_type; //
  const char *x_zero, *w_zero; // shapes of the zeros; NULL: none
  const char *op;              // of a and b, which are the numbers minus their zeros
  bool found;                  //
} Case;

static const Case cases[] = {
    // Sums of steps that four divides and does not divide, by all signs, with and without zeros.
    {"5, 12", "12, 7", "uint8", "int8", "", NULL, "matmul(a, b)", true},
    {"5, 13", "13, 7", "uint8", "int8", "", "", "matmul(a, b)", true},
    {"3, 3", "3, 2", "int8", "int8", "", "", "matmul(a, b)", true},
    {"1, 17", "17, 1", "uint8", "uint8", "", "", "matmul(a, b)", true},
    {"4, 6", "6, 5", "int8", "uint8", NULL, NULL, "matmul(a, b)", true},
    {"4, 8", "8, 5", "uint8", "int8", NULL, NULL, "matmul(a, b)", true},
    {"2, 5, 6", "2, 6, 3", "uint8", "int8", "", "", "matmul(a, b)", true},
    // A zero for each row and each column.
    {"4, 6", "6, 5", "int8", "uint8", "4, 1", "1, 5", "matmul(a, b)", true},
    // Padding, steps, dilation, groups; 3, 4, 5 and 8 channels.
    {"2, 5, 7, 6", "3, 5, 3, 3", "uint8", "int8", "", NULL, "nn.conv2d(a, b, padding=[1, 0, 2, 1])",
     true},
    {"1, 4, 9, 5", "3, 4, 3, 2", "int8", "int8", "", "",
     "nn.conv2d(a, b, padding=[1, 1, 1, 1], strides=[2, 1])", true},
    {"1, 3, 9, 8", "2, 3, 3, 3", "uint8", "uint8", "", "",
     "nn.conv2d(a, b, padding=[2, 2, 2, 2], dilation=[2, 1])", true},
    {"1, 8, 5, 4", "6, 4, 3, 3", "uint8", "int8", "", "",
     "nn.conv2d(a, b, padding=[1, 1, 1, 1], groups=2)", true},
    {"1, 4, 5, 4", "3, 4, 1, 1", "uint8", "int8", "", "", "nn.conv2d(a, b, padding=[1, 1, 0, 0])",
     true},
    // The zero has another sign than the numbers, so it may be no byte to pad with.
    {"1, 6, 5, 4", "6, 3, 3, 3", "uint8", "int8", "", "",
     "nn.conv2d(a, b, padding=[1, 1, 1, 1], groups=2)", false}, // groups of three channels
    {"1, 4, 5, 4", "4, 1, 3, 3", "uint8", "int8", "", "", "nn.conv2d(a, b, groups=4)", false},
    {"5, 2", "2, 7", "uint8", "int8", "", "", "matmul(a, b)", false}, // two steps
    {"5, 12", "12, 7", "int16", "int8", "", "", "matmul(a, b)", false},
};

static const char *operand(Context *context, const char *name, const char *from, const char *zero) {
  const char *minus =
      zero ? arena_printf(&context->arena,
                          LINE "%s = R.subtract(%sw, R.astype(z%s, dtype=\"int32\"))\n", name, name,
                          from)
           : arena_printf(&context->arena, LINE "%s = %sw\n", name, name);
  return arena_printf(&context->arena, LINE "%sw = R.astype(%s, dtype=\"int32\")\n%s", name, from,
                      minus);
}

static StageGraph *graph_for(Context *context, const Case *c) {
  const char *params = arena_printf(
      &context->arena,
      "x: R.Tensor((%s), \"%s\"), w: R.Tensor((%s), \"%s\"), zx: R.Tensor((%s), \"%s\"), "
      "zw: R.Tensor((%s), \"%s\")",
      c->x, c->x_type, c->w, c->w_type, c->x_zero ? c->x_zero : "", c->x_type,
      c->w_zero ? c->w_zero : "", c->w_type);
  const char *body = arena_printf(&context->arena, "%s%s" LINE "y = R.%s\n" END("y"),
                                  operand(context, "a", "x", c->x_zero),
                                  operand(context, "b", "w", c->w_zero), c->op);
  StageGraph *s = stages_of(context, params, body);
  stage_graph_prune(s);
  stage_graph_inline_views(s);
  HostMachine machine = machine_probe();
  stage_graph_inline_intermediates(s, &machine);
  stage_graph_inline_padding(s);
  return s;
}

static void check(const Case *c, int lanes) {
  Context *context = context_new();
  StageGraph *s = graph_for(context, c);
  PrimFunc *before = program_like(s, NULL);
  ByteProduct product;
  PackedTensors packed = {0};
  Stage *sum = array_last(&s->stages);
  if (byte_product_of(s, sum, lanes, false, &product) != c->found)
    fail_msg("%s of %s: the form is %s", c->op, c->x, c->found ? "not found" : "found");
  if (c->found) {
    stage_graph_use_bytes(s, &product, &packed);
    stage_graph_prune(s);
    InterpDifference difference;
    InterpCompare how = {.seed = 5};
    if (!interp_compare(context, before, program_like(s, before), &how, &difference)) {
      diag_print_all(context, stderr);
      fail_msg("%s of %s: %s", c->op, c->x,
               interp_difference_text(&context->arena, before, &difference));
    }
  }
  context_free(context);
}

static void test_packed_sums_are_equal(void **unused) {
  for (int i = 0; i < COUNT_OF(cases); i++) {
    check(&cases[i], BYTES);
    check(&cases[i], WORDS);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_packed_sums_are_equal)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
