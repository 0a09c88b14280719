// SPDX-License-Identifier: Apache-2.0
// The functions that targets compute as polynomials, on a million arguments of all magnitudes,
// against the C library in double: the largest error in units of the last place.
#include "interp/interp.h"
#include "runtime/runtime.h"
#include "target/target.h"

#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

enum { MOST_LANES = 16, STEP = 4099 }; // a prime, so that every bit of the mantissa varies

static double sigmoid(double x) {
  return 1 / (1 + exp(-x));
}

static double one_plus_erf(double x) {
  return erfc(-x);
}

static double silu(double x) {
  return x / (1 + exp(-x));
}

static Expr *build_one_plus_erf(Context *context, Expr *x) {
  Expr *one = expr_broadcast(context, expr_float(context, DTYPE_FLOAT32, 1), x->type.lanes);
  return expr_add(context, expr_unary(context, EXPR_ERF, x), one);
}

static double one_plus_erf_half(double x) { // as in GELU
  return erfc(-x / (double)1.41421354f);
}

static Expr *build_one_plus_erf_half(Context *context, Expr *x) {
  Expr *root = expr_float(context, DTYPE_FLOAT32, 1.41421354f);
  root = expr_broadcast(context, root, x->type.lanes);
  return build_one_plus_erf(context, expr_binary(context, EXPR_DIV, x, root));
}

static Expr *build_silu(Context *context, Expr *x) {
  return expr_mul(context, x, expr_unary(context, EXPR_SIGMOID, x));
}

typedef struct Function {
  ExprOp op;
  double (*exact)(double);
  double most; // ulp
  // Two operations that are computed together; `name` is that of the kernel.
  Expr *(*build)(Context *context, Expr *x);
  const char *name;
  bool absolute;     // `most` is an absolute error
  double small; // numbers below it may be others that are; 0: subnormal numbers may be 0
} Function;

static const char *name_of(const Function *function) {
  return function->name ? function->name : op_table[function->op].name;
}

static const Function functions[] = {
    {EXPR_EXP, exp, 1.5},
    {EXPR_EXP2, exp2, 1.5},
    {EXPR_LOG, log, 1.5},
    {EXPR_LOG2, log2, 2},
    {EXPR_LOG10, log10, 2},
    {EXPR_LOG1P, log1p, 3},
    {EXPR_TANH, tanh, 2.5},
    {EXPR_SIGMOID, sigmoid, 3},
    {EXPR_ERF, erf, 2},
    {EXPR_SIN, sin, 1.5},
    {EXPR_COS, cos, 1.5},
    {EXPR_TAN, tan, 3.5},
    {EXPR_ASIN, asin, 3},
    {EXPR_ACOS, acos, 3},
    {EXPR_ATAN, atan, 3},
    {EXPR_SINH, sinh, 4},
    {EXPR_COSH, cosh, 4},
    {EXPR_ASINH, asinh, 4},
    {EXPR_ACOSH, acosh, 4},
    {EXPR_ATANH, atanh, 4},
    {EXPR_ADD, one_plus_erf, 2e-7, build_one_plus_erf, "one_plus_erf", true},
    {EXPR_ADD, one_plus_erf_half, 2e-7, build_one_plus_erf_half, "one_plus_erf_half", true},
    {EXPR_MUL, silu, 3, build_silu, "silu", .small = 0x1p-118},
};

// out[lanes*i + l] = f(in[lanes*i + l])
static PrimFunc *function_of(Context *context, const Function *function, int64_t count, int lanes) {
  Buffer *out = buffer_static(context, "out", DTYPE_FLOAT32, &count, 1, NULL);
  Buffer *in = buffer_static(context, "in", DTYPE_FLOAT32, &count, 1, NULL);
  Expr *i = expr_var(context, "i", DTYPE_INT32);
  Expr *base = expr_mul(context, i, expr_int(context, DTYPE_INT32, lanes));
  Expr *index = expr_ramp(context, base, expr_int(context, DTYPE_INT32, 1), lanes);
  Expr *x = expr_load(context, in, &index, 1);
  Expr *value =
      function->build ? function->build(context, x) : expr_unary(context, function->op, x);
  Stmt *body = stmt_for(context, i, expr_int(context, DTYPE_INT32, 0),
                        expr_int(context, DTYPE_INT32, count / lanes), LOOP_SERIAL,
                        stmt_store(context, out, &index, 1, value));
  return prim_func_new(context, name_of(function), (Expr *[]){out->data, in->data},
                       (Buffer *[]){out, in}, 2, body);
}

static LowerKernel *kernel_of(Context *context, PrimFunc *func) {
  LowerKernel *kernel = arena_new(&context->arena, LowerKernel);
  kernel->func = func;
  kernel->arg_count = 2;
  kernel->args = arena_array(&context->arena, LowerArg, 2);
  for (int i = 0; i < 2; i++)
    kernel->args[i] = (LowerArg){.kind = LOWER_ARG_TENSOR,
                                 .name = func->name,
                                 .var = func->params[i],
                                 .buffer = func->buffers[i]};
  kernel->region_count = 1;
  kernel->regions = arena_new(&context->arena, LowerRegion);
  kernel->regions[0] = (LowerRegion){.name = func->name,
                                     .begin = expr_var(context, "begin", DTYPE_INT64),
                                     .end = expr_var(context, "end", DTYPE_INT64),
                                     .extent = expr_int(context, DTYPE_INT64, 1),
                                     .body = func->body};
  return kernel;
}

// The distance in units of float32's last place at the exact value; infinite for a wrong special
// value. Numbers below `small` are accepted for one another, and zero for subnormal ones.
static double ulps(double exact, float actual, double small) {
  float rounded = (float)exact;
  if (fabs(exact) < small && fabsf(actual) < small) return 0;
  if (actual == 0 && fabs(exact) < 0x1p-126) return 0;
  if (isnan(rounded) || isinf(rounded)) {
    bool same = isnan(rounded) ? isnan(actual) : rounded == actual;
    return same ? 0 : INFINITY;
  }
  double unit = ldexp(1, MAX_OF(ilogb(fmax(fabs(exact), 0x1p-126)), -126) - 23);
  return fabs((double)actual - exact) / unit;
}

static void check_function(const Function *function, const float *in, const float *out,
                           int64_t count, const char *level) {
  double worst = 0;
  float at = 0;
  for (int64_t i = 0; i < count; i++) {
    double exact = function->exact(in[i]), error = ulps(exact, out[i], function->small);
    if (function->absolute && error > 0 && isfinite(error)) error = fabs(out[i] - exact);
    if (!(error > worst) && !isnan(error)) continue;
    worst = error;
    at = in[i];
  }
  if (!(worst <= function->most))
    fail_msg("%s on %s: %g %s at %a", name_of(function), level, worst,
             function->absolute ? "off" : "ulp", at);
}

static void check_level(Context *context, const char *level, const float *in, float *out,
                        int64_t count) {
  HostMachine machine = machine_probe();
  if (!machine_limit(&machine, level)) return;
  LowerKernel *kernels[COUNT_OF(functions)];
  int lanes = machine.vector_bytes / 4; // of one register, where iterations may alternate
  for (int i = 0; i < COUNT_OF(functions); i++)
    kernels[i] = kernel_of(context, function_of(context, &functions[i], count, lanes));
  TargetUnit unit = {"math", kernels, COUNT_OF(functions)};
  TargetReport report = {0};
  TargetOptions options = {&machine, &report};
  CompiledCode *code = target_load(context, target_find("llvm"), &unit, &options);
  assert_non_null(code);
  assert_int_equal(report.counts[TARGET_CALLS], 0);
  for (int i = 0; i < COUNT_OF(functions); i++) {
    CodeRegion region = code_region(code, name_of(&functions[i]));
    code_region_run(&region, (void *[]){out, (void *)in}, 0, 1);
    check_function(&functions[i], in, out, count, level);
  }
  code_free(code);
}

static void test_errors_of_functions(void **state) {
  (void)state;
  Context *context = context_new();
  int64_t count = (INT64_C(1) << 32) / STEP / MOST_LANES * MOST_LANES;
  float *in = malloc(sizeof *in * (size_t)count), *out = malloc(sizeof *out * (size_t)count);
  for (int64_t i = 0; i < count; i++) {
    uint32_t bits = (uint32_t)(i * STEP);
    memcpy(&in[i], &bits, 4);
  }
  static const char *const levels[] = {"baseline", "avx2", "avx512"};
  for (int i = 0; i < COUNT_OF(levels); i++) check_level(context, levels[i], in, out, count);
  free(in);
  free(out);
  context_free(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_errors_of_functions)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
