// SPDX-License-Identifier: Apache-2.0
// Miscompiles are located: a fault is put behind one pass after another, and the cause
// must name that pass; without one, results are right.
#include "frontend/onnx/onnx.h"
#include "onnx_writer.h"
#include "report/verify.h"

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

static void set_tensors(VerifyTask *v) {
  assert_true(verify_set_outputs(v));
  for (int i = 0; i < v->graph->param_count; i++) assert_true(verify_fill_input(v, i, 11 + i));
}

// Verifies the model in `path`. Returns the cause of the first difference, owned, or NULL.
static char *located_in(const char *path, const char *pass, const Tolerance *tolerance,
                        int *compared) {
  Context *context = context_new();
  Fault fault = {context, pass};
  CompileOptions options = {.machine = machine_probe(),
                            .lower = {.after = put_fault, .after_env = &fault}};
  VerifyTask *v = verify_task_new(context);
  ConstraintTexts none = {0};
  v->tolerance = *tolerance;
  v->graph = onnx_import(context, path, NULL)->graph;
  assert_true(constraint_texts_read(context, v->graph, &none, &options));
  v->constraints = options.constraints;
  set_tensors(v);
  v->program = program_build(context, v->graph, &options);
  assert_non_null(v->program);
  bool agrees = verify_model(v);
  assert_int_equal(agrees, v->data.differs == NULL);
  if (v->data.differs) {
    assert_true(v->data.differs->index >= 0 && v->data.differs->differing > 0);
    assert_string_equal(v->data.differs->name, v->differs->name);
  }
  verify_finish(v);
  char *cause = v->data.cause ? strdup(v->data.cause) : NULL;
  *compared = v->data.tensor_count;
  context_free(context);
  return cause;
}

static char *located(const char *pass, const Tolerance *tolerance, int *compared) {
  return located_in(SOURCE_ROOT "/examples/digits/digits.onnx", pass, tolerance, compared);
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

// Results that are steps apart at boundaries do not hide a fault.
static void test_faults_before_rounding(void **state) {
  static const char text[] =
      "in x float 1x4x12x12; in w float 4x4x3x3; out y; node Constant c - s value_float=0.01;"
      "node Conv conv x,w sum pads=[1,1,1,1]; node QuantizeLinear q sum,s y";
  World world = world_new();
  const char *path = world_model(&world, text);
  int compared;
  assert_null(located_in(path, NULL, &TOLERANCE_DEFAULT, &compared));
  for (int i = 0; lower_passes[i].name; i++) {
    if (i % 4) continue;
    char wanted[80], *cause = located_in(path, lower_passes[i].name, &TOLERANCE_DEFAULT, &compared);
    snprintf(wanted, sizeof wanted, "the pass %s", lower_passes[i].name);
    assert_non_null(cause);
    assert_string_equal(cause, wanted);
    free(cause);
  }
  world_free(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_no_fault),
      cmocka_unit_test(test_rounding),
      cmocka_unit_test(test_passes),
      cmocka_unit_test(test_faults_before_rounding),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
