// SPDX-License-Identifier: Apache-2.0
// Verifies models through the public header: what is reported of each tensor, rounding to coarse
// steps, how calls are cancelled, and arguments that are wrong.
#include "base/base.h"
#include "onnx_writer.h"
#include "api_support.h"

#include <math.h>
#include <stdlib.h>

enum { ROWS = 5, COLUMNS = 7, ELEMENTS = ROWS * COLUMNS };

static const char model_text[] =
    "in a float 5x7; in c float 7x5; out product; out again;"
    "node MatMul one a,c product; node Softmax two product soft; node MatMul three soft,c2 again;"
    "node Transpose four c c2";

typedef struct Fixture {
  World world;
  PleatRequest request;
  float a[ELEMENTS], c[ELEMENTS];
  int64_t wide[2], tall[2];
  PleatTensor tensors[2];
  PleatNamedTensor inputs[2];
} Fixture;

static void set_model(Fixture *f, const char *text) {
  f->request =
      (PleatRequest){.size = sizeof f->request, .path = world_model(&f->world, text), .threads = 1};
}

static int set_up(void **state) {
  Fixture *f = *state = calloc(1, sizeof *f);
  f->world = world_new();
  set_model(f, model_text);
  memcpy(f->wide, (int64_t[]){ROWS, COLUMNS}, sizeof f->wide);
  memcpy(f->tall, (int64_t[]){COLUMNS, ROWS}, sizeof f->tall);
  for (int i = 0; i < ELEMENTS; i++) {
    f->a[i] = (float)(i % 11);
    f->c[i] = (float)(i % 4 - 1);
  }
  f->tensors[0] = float_tensor(f->a, f->wide, 2);
  f->tensors[1] = float_tensor(f->c, f->tall, 2);
  f->inputs[0] = (PleatNamedTensor){"a", &f->tensors[0]};
  f->inputs[1] = (PleatNamedTensor){"c", &f->tensors[1]};
  return 0;
}

static int tear_down(void **state) {
  Fixture *f = *state;
  world_free(&f->world);
  free(f);
  return 0;
}

static PleatVerification *verified(const PleatRequest *request, const PleatVerifyOptions *options) {
  PleatVerification *v;
  expect_ok(pleat_verify(request, options, &v, &messages));
  return v;
}

static const PleatVerifiedTensor *tensor_named(const PleatVerification *v, const char *name) {
  for (int i = 0; i < v->tensor_count; i++)
    if (!strcmp(v->tensors[i]->name, name)) return v->tensors[i];
  fail_msg("no tensor '%s'", name);
  return NULL;
}

// ---- Models that agree --------------------------------------------------------------------------

static void check_agrees(const PleatVerification *v) {
  if (!v->agrees) fail_msg("%s", v->text);
  assert_null(v->differs);
  assert_null(v->kernel);
  assert_null(v->part);
  assert_null(v->cause);
  assert_true(v->kernel_count >= v->tensor_count - v->output_count);
  assert_memory_equal(v->text, "agrees with the ", 16);
  for (int i = 0; i < v->tensor_count; i++) {
    const PleatVerifiedTensor *t = v->tensors[i];
    int64_t count = 1;
    for (int k = 0; k < t->rank; k++) count *= t->shape[k];
    assert_true(t->agrees && !t->differing && t->index == -1 && t->elements == count);
    assert_true(t->largest <= v->largest && !t->function);
  }
}

static void test_a_model_agrees(void **state) {
  Fixture *f = *state;
  PleatVerification *v = verified(&f->request, NULL);
  check_agrees(v);
  assert_string_equal(v->reference, "the interpreter");
  assert_string_equal(v->tolerance, "within 1e-4 relative and 1e-5 of the largest element");
  assert_int_equal(v->output_count, 2);
  assert_string_equal(v->outputs[0]->name, "product");
  assert_true(v->outputs[1]->is_output && v->outputs[1]->kernel >= 0);
  const PleatVerifiedTensor *product = tensor_named(v, "product");
  assert_true(product->rank == 2 && product->shape[0] == ROWS && product->shape[1] == ROWS);
  pleat_verification_free(v);
  pleat_verification_free(NULL);
}

static void test_the_definitions_are_a_reference(void **state) {
  Fixture *f = *state;
  PleatVerifyOptions options = {.size = sizeof options, .definitions = 1, .seed = 3, .atol = 1e-4};
  PleatVerification *v = verified(&f->request, &options);
  check_agrees(v);
  assert_string_equal(v->reference, "the definitions");
  assert_string_equal(v->tolerance, "within 0.0001 absolute");
  pleat_verification_free(v);
}

static void test_layouts_of_inputs_and_outputs(void **state) {
  Fixture *f = *state;
  const char *inputs[] = {"a=i, j -> j, i"}, *outputs[] = {"again=i, j -> j, i//2, i%2"};
  f->request.input_layouts = inputs;
  f->request.output_layouts = outputs;
  f->request.input_layout_count = f->request.output_layout_count = 1;
  PleatVerifyOptions options = {.size = sizeof options, .inputs = f->inputs, .input_count = 2};
  PleatVerification *v; // the call leaves notes about the layouts
  assert_int_equal(pleat_verify(&f->request, NULL, &v, NULL), PLEAT_OK);
  check_agrees(v);
  pleat_verification_free(v);
  expect_refused(pleat_verify(&f->request, &options, &v, &messages),
                 "input 'a': axis 0 has extent 5, expected 7");
  f->tensors[0].shape = f->tall;
  assert_int_equal(pleat_verify(&f->request, &options, &v, NULL), PLEAT_OK);
  check_agrees(v);
  pleat_verification_free(v);
}

// Integers of small magnitude: every order of a sum gives the same.
static void test_given_inputs_are_used(void **state) {
  Fixture *f = *state;
  PleatVerifyOptions options = {
      .size = sizeof options, .inputs = f->inputs, .input_count = 2, .exact = 1};
  set_model(f, "in a float 5x7; in c float 7x5; out product; node MatMul one a,c product");
  PleatVerification *v = verified(&f->request, &options);
  check_agrees(v);
  assert_string_equal(v->tolerance, "exactly");
  pleat_verification_free(v);
  f->tensors[1].strides = (int64_t[]){1, COLUMNS};
  pleat_verification_free(verified(&f->request, &options));
  set_model(f, "in a float NxK; in c float Kx5; out product; node MatMul one a,c product");
  v = verified(&f->request, &options);
  check_agrees(v);
  assert_int_equal(v->outputs[0]->shape[0], ROWS);
  pleat_verification_free(v);
}

// ---- Differences --------------------------------------------------------------------------------

// A long sum of random numbers rounds otherwise in another order.
static void test_a_difference_is_described(void **state) {
  Fixture *f = *state;
  PleatVerifyOptions options = {.size = sizeof options, .exact = 1};
  set_model(f,
            "in x float 3x997; in y float 997x17; in z float 3x17; out product; out sum; out other;"
            "node MatMul one x,y product; node Add two product,z sum; node Neg three z other");
  PleatVerification *v = verified(&f->request, &options);
  assert_false(v->agrees);
  assert_string_equal(v->differs->name, "product");
  assert_true(v->differs->differing > 0 && v->differs->elements == 3 * 17);
  assert_true(v->differs->index >= 0 && v->differs->index < 3 * 17);
  assert_true(v->differs->expected != v->differs->actual && v->differs->ulp > 0);
  assert_true(v->rounding && v->part && v->cause);
  assert_non_null(strstr(v->cause, "rounding: "));
  assert_memory_equal(v->kernel, "kernel ", 7);
  assert_memory_equal(v->text, "node 'one': 'product'[", 22);
  assert_non_null(strstr(v->text, "they should agree exactly"));
  assert_int_equal(v->output_count, 3); // each output has a verdict
  assert_false(tensor_named(v, "sum")->agrees);
  assert_true(tensor_named(v, "other")->agrees);
  pleat_verification_free(v);
  options = (PleatVerifyOptions){.size = sizeof options, .rtol = 1e-30};
  v = verified(&f->request, &options);
  assert_false(v->agrees);
  pleat_verification_free(v);
}

// A sum along contiguous elements is taken apart by one step of the schedule.
static void test_a_step_is_named(void **state) {
  Fixture *f = *state;
  PleatVerifyOptions options = {.size = sizeof options, .exact = 1};
  set_model(f, "in x float 3x997; ints axes 1; out y; node ReduceSum total x,axes y keepdims=0");
  f->request.cpu = "baseline";
  PleatVerification *v = verified(&f->request, &options);
  assert_true(!v->agrees && v->rounding);
  assert_string_equal(v->part, "schedule");
  assert_non_null(strstr(v->part_name, "sch.rfactor("));
  assert_non_null(strstr(v->cause, " of its schedule: "));
  assert_non_null(strstr(v->text, v->part_name));
  pleat_verification_free(v);
}

static const PleatVerifiedTensor *given_named(const PleatVerification *v, const char *name) {
  for (int i = 0; i < v->tensor_count; i++)
    if (v->tensors[i]->is_given && !strcmp(v->tensors[i]->name, name)) return v->tensors[i];
  return NULL;
}

// The product of the fixture's inputs is exact.
static void test_expected_outputs_are_compared(void **state) {
  Fixture *f = *state;
  float product[ROWS * ROWS] = {0};
  for (int i = 0; i < ROWS * ROWS; i++)
    for (int k = 0; k < COLUMNS; k++)
      product[i] += f->a[i / ROWS * COLUMNS + k] * f->c[k * ROWS + i % ROWS];
  PleatTensor tensor = float_tensor(product, (int64_t[]){ROWS, ROWS}, 2);
  PleatNamedTensor expected = {"product", &tensor};
  PleatVerifyOptions options = {.size = sizeof options,
                                .inputs = f->inputs,
                                .input_count = 2,
                                .expected = &expected,
                                .expected_count = 1};
  PleatVerification *v = verified(&f->request, &options);
  assert_true(v->agrees && given_named(v, "product")->agrees);
  assert_int_equal(v->output_count, 2); // each once
  assert_string_equal(v->outputs[0]->name, "product");
  pleat_verification_free(v);
  product[7] += 1;
  v = verified(&f->request, &options);
  assert_false(v->agrees);
  assert_ptr_equal(v->differs, given_named(v, "product"));
  assert_int_equal(v->differs->index, 7);
  assert_true(v->outputs[0]->agrees && !v->kernel);
  assert_non_null(strstr(v->text, "by the expected outputs"));
  pleat_verification_free(v);
  tensor.shape = (int64_t[]){ROWS, 4};
  expect_refused(pleat_verify(&f->request, &options, &v, &messages),
                 "the expected output 'product': axis 1 has extent 4, expected 5");
  expected.name = "products";
  expect_refused(pleat_verify(&f->request, &options, &v, &messages), "did you mean 'product'?");
  options.expected = NULL;
  expect_refused(pleat_verify(&f->request, &options, &v, &messages), "expected: error: is NULL");
}

// ---- Rounding -----------------------------------------------------------------------------------

enum { SIDE = 12, DEPTH = 4, PIXELS = SIDE * SIDE };

static const char quantized_text[] =
    "in x float 1x4x12x12; in w float 4x4x3x3; out y; out last;"
    "node Constant c - s value_float=0.06; node Constant c2 - s2 value_float=0.9;"
    "node Conv conv x,w sum pads=[1,1,1,1]; node QuantizeLinear q sum,s steps;"
    "node DequantizeLinear d steps,s numbers; node Conv conv2 numbers,w sum2 pads=[1,1,1,1];"
    "node QuantizeLinear q2 sum2,s2 y; node DequantizeLinear d2 y,s2 last";

// All sums are multiples of 0.01 but for rounding errors, so that many are at the
// boundary between two steps of 0.06.
static PleatVerification *verify_steps(Fixture *f, const char *text, PleatVerifyOptions *options) {
  float x[DEPTH * PIXELS], w[DEPTH * DEPTH * 9];
  for (int i = 0; i < COUNT_OF(x); i++) x[i] = 0.1f * (float)(i * i % 251 - 125);
  for (int i = 0; i < COUNT_OF(w); i++) w[i] = 0.1f * (float)(i * i % 31 - 15);
  PleatTensor tensors[] = {float_tensor(x, (int64_t[]){1, DEPTH, SIDE, SIDE}, 4),
                           float_tensor(w, (int64_t[]){DEPTH, DEPTH, 3, 3}, 4)};
  PleatNamedTensor inputs[] = {{"x", &tensors[0]}, {"w", &tensors[1]}};
  options->inputs = inputs;
  options->input_count = 2;
  set_model(f, text);
  return verified(&f->request, options);
}

static void test_steps_at_boundaries_agree(void **state) {
  Fixture *f = *state;
  PleatVerifyOptions options = {.size = sizeof options};
  PleatVerification *v = verify_steps(f, quantized_text, &options);
  if (!v->agrees) fail_msg("%s", v->text);
  assert_true(v->at_boundaries > 0);
  assert_non_null(strstr(v->text, "a step apart at rounding boundaries"));
  int64_t sum = 0;
  for (int i = 0; i < v->tensor_count; i++) sum += v->tensors[i]->at_boundaries;
  assert_int_equal(sum, v->at_boundaries);
  pleat_verification_free(v);
  options = (PleatVerifyOptions){.size = sizeof options, .exact = 1}; // allows no step
  v = verify_steps(f, quantized_text, &options);
  assert_false(v->agrees);
  pleat_verification_free(v);
}

// Conversions to integers and comparisons are boundaries, too.
static void test_conversions_and_comparisons(void **state) {
  Fixture *f = *state;
  static const char *const rests[] = {
      "node Div h sum,s scaled; node Floor q scaled y; node Mul m y,s last",
      "node Div h sum,s scaled; node Cast q scaled y to=6; node Cast m y last to=1",
      "node Greater q sum,s y; node Where m y,sum,s last",
      "node DynamicQuantizeLinear q sum y,last,point",
  };
  for (int i = 0; i < COUNT_OF(rests); i++) {
    PleatVerifyOptions options = {.size = sizeof options};
    char text[1024];
    snprintf(text, sizeof text,
             "in x float 1x4x12x12; in w float 4x4x3x3; out y; out last; "
             "node Constant c - s value_float=0.06; node Conv conv x,w sum pads=[1,1,1,1]; %s",
             rests[i]);
    PleatVerification *v = verify_steps(f, text, &options);
    if (!v->agrees) fail_msg("%s: %s", rests[i], v->text);
    if (i < 2) assert_true(v->at_boundaries > 0);
    pleat_verification_free(v);
  }
}

// ---- Tensor programs ----------------------------------------------------------------------------

static const char programs[] = "from tvm.script import tir as T\n"
                               "@T.prim_func\n"
                               "def scale(a: T.handle, b: T.handle, by: T.float32):\n"
                               "    n = T.int32()\n"
                               "    A = T.match_buffer(a, (n, 7), \"float32\")\n"
                               "    B = T.match_buffer(b, (n, 7), \"float32\")\n"
                               "    for i, j in T.grid(n, 7):\n"
                               "        with T.block(\"B\"):\n"
                               "            vi, vj = T.axis.remap(\"SS\", [i, j])\n"
                               "            B[vi, vj] = A[vi, vj] * by\n"
                               "@T.prim_func\n"
                               "def sums(A: T.Buffer((5, 3), \"float32\"),\n"
                               "         S: T.Buffer((5,), \"float32\")):\n"
                               "    for i, j in T.grid(5, 3):\n"
                               "        with T.block(\"S\"):\n"
                               "            vi, vj = T.axis.remap(\"SR\", [i, j])\n"
                               "            with T.init():\n"
                               "                S[vi] = 0.0\n"
                               "            S[vi] = S[vi] + A[vi, vj]\n";

static void set_programs(Fixture *f, const char *func) {
  f->request = (PleatRequest){.size = sizeof f->request,
                              .path = "programs.py",
                              .bytes = programs,
                              .byte_count = sizeof programs - 1,
                              .func = func,
                              .threads = 1};
}

static void test_tensor_programs_are_verified(void **state) {
  Fixture *f = *state;
  const char *sizes[] = {"n=5"};
  set_programs(f, NULL);
  f->request.shapes = sizes;
  f->request.shape_count = 1;
  PleatVerification *v = verified(&f->request, NULL);
  if (!v->agrees) fail_msg("%s", v->text);
  assert_int_equal(v->kernel_count, 2);
  assert_int_equal(v->tensor_count, 5); // each parameter
  assert_int_equal(v->output_count, 2);
  assert_string_equal(v->outputs[0]->function, "scale");
  assert_string_equal(v->outputs[0]->name, "B");
  assert_true(v->outputs[0]->rank == 2 && v->outputs[0]->shape[0] == 5);
  assert_true(v->outputs[1]->kernel == 1 && v->outputs[1]->elements == 5);
  assert_non_null(strstr(v->text, "'scale' agrees with the interpreter, within"));
  assert_non_null(strstr(v->text, "\n'sums' agrees"));
  pleat_verification_free(v);
}

// The size of the given array is that of the symbol; a scalar is a tensor of rank 0.
static void test_given_arguments_of_a_program(void **state) {
  Fixture *f = *state;
  float by = 2;
  PleatTensor scalar = float_tensor(&by, NULL, 0);
  PleatNamedTensor inputs[] = {{"A", &f->tensors[0]}, {"by", &scalar}};
  PleatVerifyOptions options = {
      .size = sizeof options, .inputs = inputs, .input_count = 2, .exact = 1};
  PleatVerification *v;
  set_programs(f, "scale");
  v = verified(&f->request, &options);
  assert_true(v->agrees && v->outputs[0]->shape[0] == ROWS);
  pleat_verification_free(v);
  expect_refused(pleat_verify(&f->request, NULL, &v, &messages),
                 "the extent of axis 0 of A is not given");
  inputs[1].tensor = &f->tensors[1];
  expect_refused(pleat_verify(&f->request, &options, &v, &messages), "expected a tensor of rank 0");
  inputs[1] = (PleatNamedTensor){"bi", &scalar};
  expect_refused(pleat_verify(&f->request, &options, &v, &messages), "did you mean 'by'?");
  options.input_count = 1;
  f->tensors[0].type.bits = 16;
  expect_refused(pleat_verify(&f->request, &options, &v, &messages),
                 "holds float32, the array given has float16");
  f->tensors[0].type.bits = 32;
  f->tensors[0].shape = f->tall;
  expect_refused(pleat_verify(&f->request, &options, &v, &messages), "A");
  options = (PleatVerifyOptions){.size = sizeof options, .definitions = 1};
  expect_refused(pleat_verify(&f->request, &options, &v, &messages), "definitions: error");
  f->request.shapes = (const char *[]){"m=3"};
  f->request.shape_count = 1;
  expect_refused(pleat_verify(&f->request, NULL, &v, &messages), "which is not a free size");
}

// ---- Call-backs ---------------------------------------------------------------------------------

typedef struct Hooks {
  int parts, stop_part, polls, stop_poll, verifying; // the calls that cancel, from 1; 0: none
} Hooks;

static int report_part(void *env, const char *what, int done, int all) {
  Hooks *hooks = env;
  (void)done, (void)all;
  hooks->verifying += !strcmp(what, "verifying");
  return ++hooks->parts == hooks->stop_part;
}

static int poll_cancel(void *env) {
  Hooks *hooks = env;
  return ++hooks->polls == hooks->stop_poll;
}

static void test_call_backs_cancel(void **state) {
  enum { SAMPLES = 12 };
  Fixture *f = *state;
  Hooks hooks = {0};
  f->request.progress = report_part;
  f->request.cancel = poll_cancel;
  f->request.hook_env = &hooks;
  PleatVerification *v = verified(&f->request, NULL);
  assert_int_equal(hooks.verifying, v->kernel_count);
  pleat_verification_free(v);
  Hooks all = hooks;
  for (int i = 1; i <= all.parts; i++) {
    hooks = (Hooks){.stop_part = i};
    expect_status(pleat_verify(&f->request, NULL, &v, &messages), PLEAT_CANCELLED, "cancelled");
    assert_null(v);
  }
  for (int i = 0; i < SAMPLES; i++) {
    hooks = (Hooks){.stop_poll = 1 + i * (all.polls - 1) / SAMPLES};
    expect_status(pleat_verify(&f->request, NULL, &v, &messages), PLEAT_CANCELLED, "cancelled");
  }
}

// ---- Wrong arguments ----------------------------------------------------------------------------

typedef struct LaterOptions {
  PleatVerifyOptions known;
  int64_t later;
} LaterOptions;

static void refused(const Fixture *f, const PleatVerifyOptions *options, const char *why) {
  PleatVerification *v = (PleatVerification *)1;
  expect_refused(pleat_verify(&f->request, options, &v, &messages), why);
  assert_null(v);
}

static void test_wrong_options_are_refused(void **state) {
  Fixture *f = *state;
  PleatVerification *v;
  refused(f, &(PleatVerifyOptions){.size = 3}, "size: error");
  PleatVerifyOptions options = {.size = sizeof options, .rtol = -1};
  refused(f, &options, "rtol: error: is -1");
  options = (PleatVerifyOptions){.size = sizeof options, .atol = NAN};
  refused(f, &options, "atol: error");
  options = (PleatVerifyOptions){.size = sizeof options, .max_ulp = -2};
  refused(f, &options, "max_ulp: error: is -2");
  options = (PleatVerifyOptions){.size = sizeof options, .exact = 1, .rtol = 0.5};
  refused(f, &options, "exact: error");
  LaterOptions later = {.known = {.size = sizeof later}};
  expect_ok(pleat_verify(&f->request, &later.known, &v, &messages));
  pleat_verification_free(v);
  later.later = 1;
  refused(f, &later.known, "knows only the first");
  expect_refused(pleat_verify(NULL, NULL, &v, &messages), "PleatRequest: error: is NULL");
  assert_null(v);
  expect_refused(pleat_verify(&f->request, NULL, NULL, &messages), "verification: error");
  f->request.path = "absent.onnx";
  refused(f, NULL, "cannot open");
}

static void test_wrong_inputs_in_each_position(void **state) {
  Fixture *f = *state;
  PleatVerifyOptions options = {.size = sizeof options, .inputs = f->inputs, .input_count = 2};
  static const char *const names[] = {"'a'", "'c'"};
  for (int i = 0; i < 2; i++) {
    const PleatTensor right = f->tensors[i];
    f->tensors[i].shape = (int64_t[]){right.shape[0], 3};
    refused(f, &options, names[i]);
    f->tensors[i] = right;
    f->tensors[i].type.bits = 64;
    refused(f, &options, "has element type float64, expected float32");
    f->tensors[i] = right;
    f->tensors[i].data = NULL;
    refused(f, &options, "has no data");
    f->tensors[i] = right;
    f->tensors[i].device_type = 2;
    refused(f, &options, "processor's memory");
    f->tensors[i] = right;
    f->inputs[i].name = "b";
    refused(f, &options, "there is no such input; there are 'a', 'c'");
    f->inputs[i].name = NULL;
    refused(f, &options, "has no name");
    f->inputs[i].name = i ? "c" : "a";
    f->inputs[i].tensor = NULL;
    refused(f, &options, "is NULL");
    f->inputs[i].tensor = &f->tensors[i];
  }
  options.inputs = NULL;
  refused(f, &options, "inputs: error: is NULL");
  options.inputs = f->inputs;
  f->request.known = f->inputs;
  f->request.known_count = 1;
  PleatVerification *v = verified(&f->request, &options);
  pleat_verification_free(v);
  PleatTensor other = f->tensors[0];
  float changed[ELEMENTS] = {9};
  other.data = changed;
  options.inputs = (PleatNamedTensor[]){{"a", &other}};
  options.input_count = 1;
  refused(f, &options, "holds other values than those that are known");
}

// ---- Threads ------------------------------------------------------------------------------------

static void *verify_often(void *arg) {
  const PleatRequest *request = arg;
  long wrong = 0;
  for (int i = 0; i < 4; i++) {
    PleatVerification *v;
    wrong += pleat_verify(request, NULL, &v, NULL) != PLEAT_OK || !v->agrees;
    pleat_verification_free(v);
  }
  return (void *)wrong;
}

static void test_verifications_in_two_threads(void **state) {
  Fixture *f = *state;
  run_in_two_threads(verify_often, &f->request, &f->request);
}

#define VERIFY_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  setenv("PLEAT_CACHE", "off", 1);
  static const struct CMUnitTest tests[] = {
      VERIFY_TEST(test_a_model_agrees),
      VERIFY_TEST(test_the_definitions_are_a_reference),
      VERIFY_TEST(test_layouts_of_inputs_and_outputs),
      VERIFY_TEST(test_given_inputs_are_used),
      VERIFY_TEST(test_a_difference_is_described),
      VERIFY_TEST(test_a_step_is_named),
      VERIFY_TEST(test_expected_outputs_are_compared),
      VERIFY_TEST(test_steps_at_boundaries_agree),
      VERIFY_TEST(test_conversions_and_comparisons),
      VERIFY_TEST(test_tensor_programs_are_verified),
      VERIFY_TEST(test_given_arguments_of_a_program),
      VERIFY_TEST(test_call_backs_cancel),
      VERIFY_TEST(test_wrong_options_are_refused),
      VERIFY_TEST(test_wrong_inputs_in_each_position),
      VERIFY_TEST(test_verifications_in_two_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
