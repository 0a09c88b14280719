// SPDX-License-Identifier: Apache-2.0
// Functions of a C program that compute operators: their layouts, costs and attributes, failures,
// cancelled runs, and requests that are wrong.
#include "base/base.h"

#include <setjmp.h>
#include <cmocka.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "api_support.h"

enum { ROWS = 5, COLUMNS = 7, ELEMENTS = ROWS * COLUMNS };

static const char script[] =
    "from pleat.script import ir as I, relax as R\n"
    "@I.ir_module\n"
    "class Module:\n"
    "    @R.function\n"
    "    def main(x: R.Tensor((5, 7), \"float32\")):\n"
    "        a = R.nn.relu(x)\n"
    "        b = R.call_dps_packed(\"own\", (a, R.prim_value(3)),\n"
    "                              out_sinfo=R.Tensor((5, 7), \"float32\"))\n"
    "        return R.negative(b)\n";

typedef struct Own {
  int status;         // that the function returns
  const char *text;   // its message
  const char *layout; // of its cheaper way
  _Atomic int runs;
  int way, rank;
  int64_t shape[2]; // of the input in memory
} Own;

static int own_way(void *env, const PleatCall *call, int number, PleatWay *way, char *message) {
  static _Thread_local const char *layouts[1];
  const Own *own = env;
  layouts[0] = number ? NULL : own->layout;
  way->inputs = way->outputs = layouts;
  way->cycles = number ? 1e9 : 5;
  return number < 2;
}

static int own_run(void *env, const PleatCall *call, int way, const PleatTensor *inputs,
                   PleatTensor *outputs, char *message) {
  Own *own = env;
  own->runs++;
  own->way = way;
  memcpy(own->shape, inputs[0].shape, sizeof own->shape);
  own->rank = inputs[0].rank;
  assert_int_equal((uintptr_t)inputs[0].data % 64, 0);
  assert_int_equal(call->attribute_count, 1);
  assert_string_equal(call->attributes[0]->name, "arg1");
  assert_int_equal(call->inputs[0]->shape[1], COLUMNS); // logical
  float *to = outputs[0].data;
  const float *from = inputs[0].data;
  int64_t count = 1;
  for (int d = 0; d < inputs[0].rank; d++) count *= inputs[0].shape[d];
  for (int64_t i = 0; i < count; i++) to[i] = from[i] * (float)call->attributes[0]->integers[0];
  if (own->text) strcpy(message, own->text);
  return own->status;
}

typedef struct Fixture {
  Own own;
  PleatOperator op;
  const PleatOperator *list[1];
  PleatRequest request;
  float x[ELEMENTS], y[ELEMENTS];
  int64_t shape[2];
  PleatTensor input, output;
} Fixture;

static int set_up(void **state) {
  Fixture *f = *state = calloc(1, sizeof *f);
  f->own.layout = "i, j -> j, i";
  f->op = (PleatOperator){sizeof f->op, "own", NULL, own_way, own_run, &f->own};
  f->list[0] = &f->op;
  f->request = (PleatRequest){.size = sizeof f->request,
                              .path = "own.py",
                              .bytes = script,
                              .byte_count = sizeof script - 1,
                              .threads = 1,
                              .no_cache = 1,
                              .operators = f->list,
                              .operator_count = 1};
  for (int i = 0; i < ELEMENTS; i++) f->x[i] = (float)(i % 11 - 5);
  f->shape[0] = ROWS;
  f->shape[1] = COLUMNS;
  f->input = float_tensor(f->x, f->shape, 2);
  f->output = float_tensor(f->y, f->shape, 2);
  return 0;
}

static int tear_down(void **state) {
  free(*state);
  return 0;
}

static PleatModel *compile(const Fixture *f) {
  PleatModel *model = NULL;
  expect_ok(pleat_model_compile(&f->request, &model, &messages));
  return model;
}

static void check_output(const Fixture *f) {
  for (int i = 0; i < ELEMENTS; i++) assert_true(f->y[i] == (f->x[i] > 0 ? -3 * f->x[i] : 0));
}

static void run(Fixture *f, PleatModel *model) {
  expect_ok(pleat_model_run(model, &f->input, 1, &f->output, 1, &messages));
  check_output(f);
}

// ---- Tests --------------------------------------------------------------------------------------

static void test_takes_the_cheaper_way(void **state) {
  Fixture *f = *state;
  PleatModel *model = compile(f);
  run(f, model);
  assert_int_equal(f->own.way, 0);
  assert_int_equal(f->own.shape[0], COLUMNS);
  pleat_model_free(model);
}

// 5 rows in blocks of 4 have 8 rows in memory.
static void test_takes_blocks_with_padding(void **state) {
  Fixture *f = *state;
  f->own.layout = "i, j -> j, i // 4, i % 4";
  PleatModel *model = compile(f);
  run(f, model);
  assert_int_equal(f->own.rank, 3);
  assert_int_equal(f->own.shape[0], COLUMNS);
  assert_int_equal(f->own.shape[1], 2);
  pleat_model_free(model);
}

static void test_plans_say_so(void **state) {
  Fixture *f = *state;
  PleatPlan *plan = NULL;
  expect_ok(pleat_plan_new(&f->request, &plan, &messages));
  int calls = 0;
  for (int i = 0; i < plan->kernel_count; i++) calls += plan->kernels[i]->cycles == 5;
  assert_int_equal(calls, 1);
  assert_int_equal(f->own.runs, 0);
  pleat_plan_free(plan);
}

static void test_failures_end_the_run(void **state) {
  Fixture *f = *state;
  PleatModel *model = compile(f);
  f->own.status = PLEAT_REFUSED;
  f->own.text = "the device is gone";
  expect_refused(pleat_model_run(model, &f->input, 1, &f->output, 1, &messages),
                 "the function 'own' failed: the device is gone");
  f->own.status = PLEAT_CANCELLED;
  expect_status(pleat_model_run(model, &f->input, 1, &f->output, 1, &messages), PLEAT_CANCELLED,
                "cancelled");
  f->own = (Own){.layout = f->own.layout};
  run(f, model);
  pleat_model_free(model);
}

static void test_sessions_outlive_the_model_and_the_request(void **state) {
  Fixture *f = *state;
  PleatModel *model = compile(f);
  PleatSession *session = NULL;
  f->op.name = NULL; // the struct was copied
  expect_ok(pleat_session_new(model, NULL, &session, &messages));
  pleat_model_free(model);
  expect_ok(pleat_session_run(session, &f->input, 1, &f->output, 1, &messages));
  check_output(f);
  pleat_session_free(session);
}

static void test_verifies(void **state) {
  Fixture *f = *state;
  PleatVerification *verification = NULL;
  expect_ok(pleat_verify(&f->request, NULL, &verification, &messages));
  assert_true(verification->agrees);
  assert_int_equal(f->own.runs, 1);
  pleat_verification_free(verification);
}

static void test_refuses_wrong_requests(void **state) {
  Fixture *f = *state;
  PleatModel *model = NULL;
  const PleatOperator *twice[] = {&f->op, &f->op};
  PleatRequest request = f->request;
  request.operators = NULL;
  expect_refused(pleat_model_compile(&request, &model, &messages), "operators");
  request.operators = twice;
  request.operator_count = 2;
  expect_refused(pleat_model_compile(&request, &model, &messages), "two functions 'own'");
  request.operator_count = 0;
  expect_refused(pleat_model_compile(&request, &model, &messages),
                 "calls 'own', a function outside of the file, which is not given");
  f->op.run = NULL;
  expect_refused(pleat_model_compile(&f->request, &model, &messages), "'own' has no function run");
  f->op.run = own_run;
  f->op.size = 4;
  expect_refused(pleat_model_compile(&f->request, &model, &messages), "sizeof(PleatOperator)");
  f->op.size = sizeof f->op;
  f->own.layout = "i, j -> k";
  expect_refused(pleat_model_compile(&f->request, &model, &messages), "layout of input 0");
}

static void test_is_found_again_by_a_saved_model(void **state) {
  Fixture *f = *state;
  char folder[] = "/tmp/pleat-test-XXXXXX", path[64];
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/own.pleat", folder);
  PleatModel *model = compile(f);
  expect_ok(pleat_model_save(model, path, &messages));
  pleat_model_free(model);
  PleatSessionOptions options = {.size = sizeof options};
  expect_refused(pleat_model_load(path, &options, &model, &messages), "'own', which is not given");
  options.operator_count = 1;
  expect_refused(pleat_model_load(path, &options, &model, &messages), "operators");
  options.operators = f->list;
  f->own.layout = NULL;
  expect_refused(pleat_model_load(path, &options, &model, &messages), "in another layout in way 0");
  f->own.layout = "a, b -> b, a";
  expect_ok(pleat_model_load(path, &options, &model, &messages));
  run(f, model);
  assert_int_equal(f->own.way, 0);
  assert_int_equal(f->own.shape[0], COLUMNS);
  pleat_model_free(model);
  remove(path);
  rmdir(folder);
}

static void test_is_not_in_files_of_code(void **state) {
  Fixture *f = *state;
  PleatModel *model = compile(f);
  expect_refused(pleat_write(&f->request, NULL, "own.so", &messages), "a file cannot hold");
  pleat_model_free(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_takes_the_cheaper_way, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_takes_blocks_with_padding, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_plans_say_so, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_failures_end_the_run, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_sessions_outlive_the_model_and_the_request, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(test_verifies, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_refuses_wrong_requests, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_is_found_again_by_a_saved_model, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_is_not_in_files_of_code, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
