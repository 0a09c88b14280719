// SPDX-License-Identifier: Apache-2.0
// Miscompiles are located: a fault is put behind one pass after another, and the cause
// must name that pass; without one, results are right.
#include "driver/reference.h"
#include "frontend/onnx/onnx.h"

#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

typedef struct Fault {
  Context *context;
  const char *pass; // NULL: none
} Fault;

static Expr *more_than_stored(Rewriter *rewriter, Expr *e) {
  return e->op == EXPR_MUL && dtype_is_float(e->type)
             ? expr_add(rewriter->context, e, expr_const(rewriter->context, e->type, 3))
             : e;
}

// Every product is 3 more than it should be.
static PrimFunc *put_fault(void *env, const char *pass, PrimFunc *func) {
  Fault *fault = env;
  if (!fault->pass || strcmp(pass, fault->pass)) return func;
  Rewriter rewriter = {.context = fault->context, .expr = more_than_stored};
  return prim_func_with_body(fault->context, func, rewrite_stmt(&rewriter, func->body));
}

typedef struct Watch {
  const Program *program;
  Executable *executable;
  Reference *reference;
  const Tolerance *tolerance;
  const char *cause; // of the first step that is wrong
  int steps;
} Watch;

static bool after_step(void *env, int step) {
  Watch *watch = env;
  const Program *program = watch->program;
  const PlanKernel *kernel = program->steps.items[step].plan;
  int last = kernel->params.count - 1;
  const StageTensor *tensor = kernel->params.items[last];
  watch->steps++;
  if (!tensor->value) return true;
  const void *expected = reference_value(watch->reference, tensor->value);
  const void *actual = executable_argument(watch->executable, step, last);
  int64_t bytes = value_static_bytes(tensor->value);
  char *logical = malloc((size_t)bytes + 1);
  if (kernel->choice.layouts[last])
    layout_unpack(program->context, kernel->choice.layouts[last], 4, actual, logical);
  else
    memcpy(logical, actual, (size_t)bytes);
  Difference difference;
  bool agrees =
      values_agree(DTYPE_FLOAT32, expected, logical, bytes / 4, watch->tolerance, &difference);
  free(logical);
  if (agrees) return true;
  assert_true(difference.index >= 0 && difference.mismatches > 0);
  watch->cause = miscompile_locate(program, watch->executable, step, expected, watch->tolerance);
  return false;
}

static Tensor *tensor_for(const Value *value) {
  int64_t shape[TENSOR_MAX_RANK];
  assert_true(value_static_shape(value, shape));
  return tensor_new((ElementType){ELEMENT_FLOAT, 32, 1}, shape, value->rank);
}

static char *located(const char *pass, const Tolerance *tolerance, int *steps) {
  Context *context = context_new();
  const char *path = SOURCE_ROOT "/examples/digits/digits.onnx";
  const GraphFunc *graph = onnx_import(context, path, NULL)->graph;
  Fault fault = {context, pass};
  CompileOptions options = {.machine = machine_probe(),
                            .lower = {.after = put_fault, .after_env = &fault}};
  Program *program = program_build(context, graph, &options);
  assert_non_null(program);
  Executable *executable = executable_new(program, NULL);
  assert_non_null(executable);
  Tensor *input = tensor_for(graph->params[0]), *output = tensor_for(graph->outputs[0]);
  tensor_fill_random(input, 11);
  Reference reference;
  assert_true(reference_begin(context, graph, &input, false, &options, &reference));
  Watch watch = {program, executable, &reference, tolerance};
  executable_trace(executable, NULL, &input, &output, after_step, &watch);
  char *cause = watch.cause ? strdup(watch.cause) : NULL;
  *steps = watch.steps;
  tensor_free(input);
  tensor_free(output);
  reference_end(&reference);
  executable_free(executable);
  context_free(context);
  return cause;
}

static void test_no_fault(void **state) {
  int steps;
  assert_null(located(NULL, &TOLERANCE_DEFAULT, &steps));
  assert_true(steps > 10);
}

static const Tolerance exact = {0, 0, 0};

// That is not the fault of the pass that first rounds otherwise.
static void test_rounding(void **state) {
  int steps;
  char *cause = located(NULL, &exact, &steps);
  assert_non_null(cause);
  assert_memory_equal(cause, "rounding: ", 10);
  free(cause);
}

// Also where sums that are rounded otherwise count as differences.
static void test_passes(void **state) {
  for (int i = 0; lower_passes[i].name; i++) {
    bool last = !lower_passes[i + 1].name;
    if (i % 5 && !last) continue;
    int steps;
    const Tolerance *tolerance = i % 2 ? &exact : &TOLERANCE_DEFAULT;
    char *cause = located(lower_passes[i].name, tolerance, &steps), wanted[80];
    snprintf(wanted, sizeof wanted, "the pass %s", lower_passes[i].name);
    assert_non_null(cause);
    assert_string_equal(cause, wanted);
    assert_int_equal(steps, 1);
    free(cause);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_no_fault),
      cmocka_unit_test(test_rounding),
      cmocka_unit_test(test_passes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
