// SPDX-License-Identifier: Apache-2.0
// Plans models through the public header: kernels, rewrites and tensors as structs, which agree
// with the JSON and the table; how calls are cancelled, and arguments that are wrong.
#include "base/base.h"
#include "onnx_writer.h"
#include "api_support.h"

#include <stdlib.h>

// The second convolution reads a channels-last tensor, which the user requires to be written.
static const char model_text[] =
    "in x float 1x5x9x9; zeros w float 17x5x3x3; zeros v float 19x17x1x1; out y; out z;"
    "node Conv first x,w a; node Relu second a b; node Conv third b,v y; node Softmax last y z "
    "axis=1";

typedef struct Fixture {
  World world;
  PleatRequest request;
} Fixture;

static int set_up(void **state) {
  Fixture *f = *state = calloc(1, sizeof *f);
  f->world = world_new();
  f->request = (PleatRequest){.size = sizeof f->request,
                              .path = world_model(&f->world, model_text),
                              .cpu = "baseline",
                              .threads = 1};
  return 0;
}

static int tear_down(void **state) {
  Fixture *f = *state;
  world_free(&f->world);
  free(f);
  return 0;
}

static PleatPlan *planned(const PleatRequest *request) {
  PleatPlan *plan;
  expect_ok(pleat_plan_new(request, &plan, &messages));
  return plan;
}

static const PleatPlanTensor *tensor_named(const PleatPlan *plan, const char *name) {
  for (int i = 0; i < plan->tensor_count; i++)
    if (!strcmp(plan->tensors[i]->name, name)) return plan->tensors[i];
  return NULL;
}

// Every operand's tensor is one of the plan's, which has the operand's layout.
static void check_operands(const PleatPlan *plan, const PleatPlanKernel *kernel) {
  assert_true(kernel->operand_count > 0);
  for (int i = 0; i < kernel->operand_count; i++) {
    const PleatPlanOperand *operand = kernel->operands[i];
    const PleatPlanTensor *tensor = tensor_named(plan, operand->tensor);
    bool found = false;
    assert_non_null(tensor);
    assert_ptr_equal(plan->tensors[operand->tensor_number], tensor);
    for (int k = 0; k < tensor->layout_count; k++)
      found |= !strcmp(tensor->layouts[k], operand->layout);
    assert_true(found && !tensor->is_fused);
    assert_int_equal(operand->is_written, i == kernel->operand_count - 1);
  }
}

static bool reads(const PleatPlanKernel *kernel, const char *tensor) {
  for (int i = 0; i + 1 < kernel->operand_count; i++)
    if (!strcmp(kernel->operands[i]->tensor, tensor)) return true;
  return false;
}

static void check_kernels(const PleatPlan *plan) {
  double cycles = 0;
  int rewrites = 0;
  for (int i = 0; i < plan->kernel_count; i++) {
    const PleatPlanKernel *kernel = plan->kernels[i];
    const char *written = kernel->operands[kernel->operand_count - 1]->tensor;
    check_operands(plan, kernel);
    cycles += kernel->cycles;
    rewrites += kernel->is_rewrite;
    assert_true(kernel->same_as < i);
    for (int k = 0; k < kernel->reader_count; k++)
      assert_true(reads(plan->kernels[kernel->readers[k]], written));
    assert_true(kernel->is_rewrite || kernel->operator_count > 0);
    assert_int_equal(*kernel->because == 0, *kernel->because_kind == 0);
  }
  assert_true(cycles > 0.99 * plan->cycles && cycles < 1.01 * plan->cycles);
  for (int i = 0; i < plan->rewrite_count; i++) {
    const PleatPlanRewrite *rewrite = plan->rewrites[i];
    assert_int_equal(rewrite->folded, rewrite->kernel < 0);
    if (!rewrite->folded) assert_true(plan->kernels[rewrite->kernel]->is_rewrite);
    rewrites -= !rewrite->folded;
    assert_true(rewrite->bytes > 0 && *rewrite->because);
  }
  assert_int_equal(rewrites, 0);
}

static void check_costs(const PleatPlan *plan) {
  assert_true(plan->lower_bound <= plan->cycles && plan->cycles <= plan->cycles_row_major);
  assert_true(plan->gap >= 0 && plan->gap < 1 && (!plan->optimal || plan->gap == 0));
  assert_true(plan->choices > 0);
}

static void test_a_plan_is_data(void **state) {
  Fixture *f = *state;
  PleatPlan *plan = planned(&f->request);
  check_kernels(plan);
  check_costs(plan);
  assert_string_equal(plan->machine, "baseline");
  assert_string_equal(plan->policy, "optimal");
  const PleatPlanTensor *x = tensor_named(plan, "x"), *w = tensor_named(plan, "w");
  assert_string_equal(x->kind, "input");
  assert_string_equal(x->type, "float32");
  assert_true(x->rank == 4 && x->shape[1] == 5 && x->shape[3] == 9);
  assert_string_equal(w->kind, "constant");
  assert_true(tensor_named(plan, "a")->is_fused && !tensor_named(plan, "a")->layout_count);
  assert_string_equal(tensor_named(plan, "z")->kind, "output");
  assert_int_equal(plan->nodes_in_kernels, 4);
  assert_int_equal(plan->nodes_folded + plan->nodes_in_place + plan->nodes_unused, 0);
  assert_non_null(strstr(plan->text, "#  tensor"));
  assert_non_null(strstr(plan->text, "fused: 4 operators in"));
  pleat_plan_free(plan);
  pleat_plan_free(NULL);
}

// A required layout makes a rewrite at run time, with its reason.
static void test_a_rewrite_has_its_reason(void **state) {
  Fixture *f = *state;
  const char *layouts[] = {"third:data=NHWC", "second:output=NCHW"}, *keep[] = {""};
  f->request.desired_layouts = layouts;
  f->request.desired_layout_count = 2;
  PleatPlan *plan = planned(&f->request);
  check_kernels(plan);
  const PleatPlanRewrite *rewrite = NULL; // the plan may rewrite other tensors too
  for (int i = 0; i < plan->rewrite_count; i++)
    if (!strcmp(plan->rewrites[i]->tensor, "b")) rewrite = plan->rewrites[i];
  assert_non_null(rewrite);
  assert_string_equal(rewrite->to, "NHWC");
  assert_true(!rewrite->folded && rewrite->cycles > 0);
  assert_int_equal(rewrite->bytes, 4 * 17 * 7 * 7);
  assert_int_equal(tensor_named(plan, "b")->layout_count, 2);
  pleat_plan_free(plan);
  f->request.desired_layout_count = 0;
  f->request.keep_layouts = keep;
  f->request.keep_layout_count = 1;
  plan = planned(&f->request);
  assert_string_equal(plan->policy, "none");
  assert_true(plan->cycles_optimal == 0 && plan->cycles == plan->cycles_row_major);
  pleat_plan_free(plan);
}

static void test_both_doors_agree(void **state) {
  Fixture *f = *state;
  char *json;
  PleatPlan *plan = planned(&f->request);
  expect_ok(pleat_plan(&f->request, &json, &messages));
  assert_string_equal(plan->json, json);
  pleat_free(json);
  for (int i = 0; i < plan->rewrite_count; i++)
    assert_non_null(strstr(plan->json, plan->rewrites[i]->because));
  pleat_plan_free(plan);
}

// ---- One tensor ---------------------------------------------------------------------------------

static void test_a_tensor_has_prices(void **state) {
  Fixture *f = *state;
  PleatTensorPlan *tensor;
  PleatPlan *plan = planned(&f->request);
  char *json;
  expect_ok(pleat_tensor_plan_new(&f->request, "b", &tensor, &messages));
  expect_ok(pleat_plan_tensor(&f->request, "b", &json, &messages));
  assert_string_equal(tensor->json, json);
  pleat_free(json);
  assert_string_equal(tensor->tensor->name, "b");
  assert_string_equal(tensor->tensor->kind, "intermediate");
  bool chosen = false;
  for (int i = 0; i < tensor->price_count; i++) {
    const PleatLayoutPrice *price = tensor->prices[i];
    assert_true(!price->possible || price->cycles > 0.999 * plan->cycles);
    if (price->chosen) assert_true(price->cycles < 1.001 * plan->cycles && !*price->because);
    assert_true(price->possible || *price->because);
    assert_true(price->bytes >= 4 * 17 * 7 * 7);
    chosen |= price->chosen;
  }
  assert_true(chosen && tensor->price_count > 1);
  assert_string_equal(tensor->no_more_because, "");
  for (int i = 0; i < tensor->use_count; i++) {
    const PleatTensorUse *use = tensor->uses[i];
    assert_string_equal(plan->kernels[use->kernel]->name, use->name);
  }
  assert_int_equal(*tensor->because != 0, tensor->use_count > 0);
  pleat_tensor_plan_free(tensor);
  pleat_tensor_plan_free(NULL);
  pleat_plan_free(plan);
  expect_ok(pleat_tensor_plan_new(&f->request, "w", &tensor, &messages));
  assert_int_equal(tensor->price_count, 0); // a constant
  pleat_tensor_plan_free(tensor);
  expect_ok(pleat_tensor_plan_new(&f->request, "a", &tensor, &messages));
  assert_true(tensor->tensor->is_fused && !tensor->use_count && !*tensor->because);
  pleat_tensor_plan_free(tensor);
  expect_refused(pleat_tensor_plan_new(&f->request, "no", &tensor, &messages),
                 "the plan has no tensor 'no'");
  assert_null(tensor);
  expect_refused(pleat_tensor_plan_new(&f->request, NULL, &tensor, &messages), "tensor: error");
  expect_refused(pleat_tensor_plan_new(&f->request, "a", NULL, &messages), "plan: error");
  expect_refused(pleat_tensor_plan_new(NULL, "a", &tensor, &messages), "PleatRequest: error");
}

// ---- Call-backs and arguments -------------------------------------------------------------------

typedef struct Hooks {
  int polls, stop; // the call that cancels, from 1; 0: none
} Hooks;

static int poll_cancel(void *env) {
  Hooks *hooks = env;
  return ++hooks->polls == hooks->stop;
}

static void test_call_backs_cancel(void **state) {
  enum { SAMPLES = 12 };
  Fixture *f = *state;
  Hooks hooks = {0};
  PleatPlan *plan;
  f->request.cancel = poll_cancel;
  f->request.hook_env = &hooks;
  pleat_plan_free(planned(&f->request));
  int polls = hooks.polls;
  for (int i = 0; i < SAMPLES; i++) {
    hooks = (Hooks){.stop = 1 + i * (polls - 1) / SAMPLES};
    expect_status(pleat_plan_new(&f->request, &plan, &messages), PLEAT_CANCELLED, "cancelled");
    assert_null(plan);
  }
}

static void test_wrong_requests_are_refused(void **state) {
  Fixture *f = *state;
  PleatPlan *plan = (PleatPlan *)1;
  expect_refused(pleat_plan_new(NULL, &plan, &messages), "PleatRequest: error: is NULL");
  assert_null(plan);
  expect_refused(pleat_plan_new(&f->request, NULL, &messages), "plan: error");
  f->request.policy = "fastest";
  expect_refused(pleat_plan_new(&f->request, &plan, &messages), "no policy 'fastest'");
  f->request.policy = NULL;
  f->request.size = 5;
  expect_refused(pleat_plan_new(&f->request, &plan, &messages), "size: error");
  static const char kernel[] = "from tvm.script import tir as T\n"
                               "@T.prim_func\n"
                               "def f(A: T.Buffer((3,), \"float32\")):\n"
                               "    for i in range(3):\n"
                               "        A[i] = 1.0\n";
  f->request = (PleatRequest){.size = sizeof f->request,
                              .path = "kernel.py",
                              .bytes = kernel,
                              .byte_count = sizeof kernel - 1};
  expect_refused(pleat_plan_new(&f->request, &plan, &messages), "which has no plan");
  assert_null(plan);
}

static void *plan_often(void *arg) {
  long wrong = 0;
  for (int i = 0; i < 4; i++) {
    PleatPlan *plan;
    wrong += pleat_plan_new(arg, &plan, NULL) != PLEAT_OK || plan->cycles != plan->lower_bound;
    pleat_plan_free(plan);
  }
  return (void *)wrong;
}

static void test_plans_in_two_threads(void **state) {
  Fixture *f = *state;
  run_in_two_threads(plan_often, &f->request, &f->request);
}

#define PLAN_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  setenv("PLEAT_CACHE", "off", 1);
  static const struct CMUnitTest tests[] = {
      PLAN_TEST(test_a_plan_is_data),       PLAN_TEST(test_a_rewrite_has_its_reason),
      PLAN_TEST(test_both_doors_agree),     PLAN_TEST(test_a_tensor_has_prices),
      PLAN_TEST(test_call_backs_cancel),    PLAN_TEST(test_wrong_requests_are_refused),
      PLAN_TEST(test_plans_in_two_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
