// SPDX-License-Identifier: Apache-2.0
// Counts the operations of an expression in one walk.
#include "ir/op_count.h"

// How many operations a function takes, those of its polynomials included; 0: one. Measured on AMD
// Zen 5 as twice the cycles of a vector, or of an element where only a library computes it.
static const double function_work[EXPR_OP_COUNT] = {
    [EXPR_EXP] = 20,   [EXPR_EXP2] = 18,  [EXPR_EXP10] = 22,   [EXPR_LOG] = 30,
    [EXPR_LOG2] = 30,  [EXPR_LOG10] = 30, [EXPR_LOG1P] = 50,   [EXPR_SQRT] = 9,
    [EXPR_RSQRT] = 9,  [EXPR_POW] = 70,   [EXPR_FMOD] = 170,   [EXPR_ATAN2] = 80,
    [EXPR_HYPOT] = 40, [EXPR_TANH] = 38,  [EXPR_SIGMOID] = 28, [EXPR_ERF] = 54,
    [EXPR_SIN] = 44,   [EXPR_COS] = 44,   [EXPR_TAN] = 60,     [EXPR_ASIN] = 50,
    [EXPR_ACOS] = 50,  [EXPR_ATAN] = 50,  [EXPR_SINH] = 50,    [EXPR_COSH] = 50,
    [EXPR_ASINH] = 80, [EXPR_ACOSH] = 80, [EXPR_ATANH] = 70,   [EXPR_NEXTAFTER] = 40};

enum { LIBRARY_DOUBLE = 4 }; // how much longer a library takes for a double than a vector of floats

static bool only_library(ExprOp op) {
  return op == EXPR_POW || op == EXPR_FMOD || op == EXPR_ATAN2 || op == EXPR_HYPOT ||
         op == EXPR_NEXTAFTER;
}

static bool is_square(const Expr *e) {
  return e->op == EXPR_POW && e->args[1]->op == EXPR_FLOAT && e->args[1]->as.f == 2;
}

static void count_function(OpCount *count, const Expr *e) {
  double work = function_work[e->op];
  bool doubles = dtype_bytes(e->args[0]->type) == 8 && work > 10;
  if (is_square(e))
    count->vector_work++;
  else if (only_library(e->op))
    count->lane_work += work;
  else if (doubles)
    count->lane_work += work * LIBRARY_DOUBLE;
  else
    count->vector_work += work ? work : 1;
}

static bool count_node(Visitor *visitor, Expr *e) {
  OpCount *count = visitor->env;
  OpClass class = op_table[e->op].class;
  count->arithmetic += class == OP_ARITH;
  count->dots += e->op == EXPR_DOT_BYTES;
  count->pairs += e->op == EXPR_DOT_WORDS;
  count->functions += class == OP_MATH;
  if (class == OP_MATH) count_function(count, e);
  count->instructions += class != OP_MATH && (e->count || e->op == EXPR_LOAD);
  if (dtype_is_float(e->type) && (class == OP_ARITH || class == OP_MATH))
    count->floating += e->type.lanes;
  return e->op != EXPR_LOAD;
}

OpCount expr_op_count(Expr *e) {
  OpCount count = {0};
  Visitor visitor = {.env = &count, .enter_expr = count_node};
  visit_expr(&visitor, e);
  return count;
}
