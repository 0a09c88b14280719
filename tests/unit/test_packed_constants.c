// SPDX-License-Identifier: Apache-2.0
// Weights that sums compute from packed constants: which ones, and that the sums stay the same, by
// the interpreter.
#include "graph_support.h"
#include "interp/interp.h"
#include "runtime/runtime.h"

typedef struct Case {
  const char *x, *packed, *scale; // shapes
  const char *weights;            // of `packed` and `scale`: the matrix on the right
  bool read;                      // are they read packed?
} Case;

#define DEQUANTIZED(OF, BLOCK)                                                                     \
  "R.permute_dims(R.dequantize(" OF ", scale, zero, axis=1, block_size=" BLOCK ", "                \
  "dtype=\"float32\"))"
#define UNPACKED(BITS) "R.unpack_bits(packed, bits=" BITS ")"

static const Case cases[] = {
    {"1, 320", "257, 160", "257, 10", DEQUANTIZED(UNPACKED("4"), "32"), true},
    {"4, 320", "257, 160", "257, 10", DEQUANTIZED(UNPACKED("4"), "32"), true},
    {"3, 272", "251, 68", "251, 17", DEQUANTIZED(UNPACKED("2"), "16"), true},
    {"1, 256", "263, 256", "263, 4", DEQUANTIZED("packed", "64"), true},
    {"5, 320", "257, 160", "257, 10", DEQUANTIZED(UNPACKED("4"), "32"), false}, // used often
    {"1, 64", "257, 32", "257, 2", DEQUANTIZED(UNPACKED("4"), "32"), false},    // few weights
    {"1, 256", "263, 256", "263, 3", DEQUANTIZED("packed", "100"), false}, // a shorter last block
};

static StageGraph *graph_for(Context *context, const Case *c) {
  const char *params = arena_printf(&context->arena,
                                    "x: R.Tensor((%s), \"float32\"), packed: R.Tensor((%s), "
                                    "\"uint8\"), scale: R.Tensor((%s), \"float32\"), "
                                    "zero: R.Tensor((%s), \"uint8\")",
                                    c->x, c->packed, c->scale, c->scale);
  const char *body = arena_printf(
      &context->arena, LINE "w = %s\n" LINE "y = R.matmul(x, w)\n" END("y"), c->weights);
  StageGraph *s = stages_of(context, params, body);
  stage_graph_prune(s);
  for (int i = 1; i < s->inputs.count; i++) { // all but x are constants
    StageTensor *tensor = s->inputs.items[i];
    double bytes = stage_tensor_elements(tensor) * dtype_bytes(tensor->buffer->type);
    tensor->data = arena_new(&context->arena, ConstData);
    tensor->data->bytes = (size_t)bytes;
  }
  return s;
}

static void check(const Case *c, int64_t caches) {
  Context *context = context_new();
  StageGraph *s = graph_for(context, c);
  PrimFunc *before = program_like(s, NULL);
  HostMachine machine = machine_probe();
  machine.l2_bytes = machine.l3_bytes = caches / 2;
  stage_graph_keep_packed(s, &machine);
  stage_graph_inline_views(s);
  stage_graph_inline_packed(s);
  bool read = s->stages.count == 1;
  if (read != (c->read && !caches))
    fail_msg("%s with %s: %d stages are left", c->weights, c->x, s->stages.count);
  InterpDifference difference;
  InterpCompare how = {.seed = 5};
  if (!interp_compare(context, before, program_like(s, before), &how, &difference)) {
    diag_print_all(context, stderr);
    fail_msg("%s: %s", c->weights, interp_difference_text(&context->arena, before, &difference));
  }
  context_free(context);
}

static void test_weights_are_read_packed(void **unused) {
  for (int i = 0; i < COUNT_OF(cases); i++) check(&cases[i], 0);
  check(&cases[0], 1 << 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_weights_are_read_packed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
