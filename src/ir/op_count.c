// SPDX-License-Identifier: Apache-2.0
// Counts the operations of an expression, and those that a processor takes for it.
#include "ir/op_count.h"

#include <math.h>

static bool count_node(Visitor *visitor, Expr *e) {
  OpCount *count = visitor->env;
  OpClass class = e->op == EXPR_ABS ? OP_ARITH : op_table[e->op].class; // a mask of the sign
  count->arithmetic += class == OP_ARITH;
  count->functions += class == OP_MATH;
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

// ---- Work

// How many operations of a vector a function takes, those of its polynomials included; 0: one.
// Measured on AMD Zen 5 as twice the cycles of a vector, or of an element where only a library
// computes it; functions by e^x as a share of what they took before, on AMD Zen 4. That of erf is
// for 1 + erf x, in which it mostly stands (target/expand_math.c).
static const double function_work[EXPR_OP_COUNT] = {
    [EXPR_EXP] = 17,   [EXPR_EXP2] = 18,  [EXPR_EXP10] = 22,    [EXPR_LOG] = 30,
    [EXPR_LOG2] = 30,  [EXPR_LOG10] = 30, [EXPR_LOG1P] = 50,    [EXPR_POW] = 70,
    [EXPR_FMOD] = 170, [EXPR_ATAN2] = 80, [EXPR_HYPOT] = 40,    [EXPR_TANH] = 19,
    [EXPR_ERF] = 27,   [EXPR_SIN] = 44,   [EXPR_SIGMOID] = 21,  [EXPR_COS] = 44,
    [EXPR_TAN] = 46,   [EXPR_ASIN] = 17,  [EXPR_ACOS] = 21,     [EXPR_ATAN] = 21,
    [EXPR_SINH] = 35,  [EXPR_COSH] = 28,  [EXPR_ASINH] = 80,    [EXPR_ACOSH] = 80,
    [EXPR_ATANH] = 70, [EXPR_RSQRT] = 0,  [EXPR_NEXTAFTER] = 40};

enum {
  LIBRARY_DOUBLE = 3,    // how much longer a library takes for a double than a vector of floats
  CHECKED_EXTREME = 4,   // operations for the least or greatest where either may be NaN
  INTEGER_DIVISION = 13, // operations of a lane
  FLOAT_REMAINDER = 130, // operations of a lane: a function of the library
  FLOAT_DIVISION = 5,    // twice the cycles of a vector, as for the square root
  SQUARE_ROOT = 9
};

typedef struct WorkCount {
  Map seen;
  OpWork work;
  bool guarding;
} WorkCount;

static bool only_library(ExprOp op) {
  return op == EXPR_POW || op == EXPR_FMOD || op == EXPR_ATAN2 || op == EXPR_HYPOT ||
         op == EXPR_NEXTAFTER;
}

static bool is_square(const Expr *e) {
  return e->op == EXPR_POW && e->args[1]->op == EXPR_FLOAT && e->args[1]->as.f == 2;
}

static OpWork function_of(const Expr *e) {
  double work = function_work[e->op];
  bool doubles = dtype_bytes(e->args[0]->type) == 8 && work > 10;
  if (is_square(e)) return (OpWork){.operations = 1};
  if (e->op == EXPR_SQRT) return (OpWork){.divisions = SQUARE_ROOT};
  if (e->op == EXPR_RSQRT) return (OpWork){.divisions = SQUARE_ROOT + FLOAT_DIVISION};
  if (only_library((ExprOp)e->op)) return (OpWork){.lane_work = work};
  if (doubles) return (OpWork){.lane_work = work * LIBRARY_DOUBLE};
  return (OpWork){.operations = work ? work : 1};
}

static bool is_checked_extreme(const Expr *e) {
  return (e->op == EXPR_MAX || e->op == EXPR_MIN) && dtype_is_float(e->type) &&
         !expr_only_numbers((ExprOp)e->op, e->args[1]) && expr_may_be_nan(e->args[0]) &&
         expr_may_be_nan(e->args[1]);
}

// Is it a constant by which a quotient is a product? Integers have shifts and products for all.
static bool has_inverse(const Expr *e) {
  int exponent;
  return e->op == EXPR_INT || (e->op == EXPR_FLOAT && fabs(frexp(e->as.f, &exponent)) == 0.5);
}

static bool divides(const Expr *e) {
  bool division = e->op == EXPR_DIV || e->op == EXPR_FLOOR_DIV || e->op == EXPR_FLOOR_MOD ||
                  e->op == EXPR_TRUNC_DIV || e->op == EXPR_TRUNC_MOD;
  return division && !has_inverse(e->args[1]);
}

static OpWork work_of(const Expr *e) {
  bool remainder = e->op == EXPR_FLOOR_MOD || e->op == EXPR_TRUNC_MOD;
  if (op_table[e->op].class == OP_MATH) return function_of(e);
  if (is_checked_extreme(e)) return (OpWork){.operations = CHECKED_EXTREME};
  if (e->op == EXPR_IF_THEN_ELSE) return (OpWork){.guards = 1};
  if (e->op == EXPR_CAST && e->args[0]->op == EXPR_LOAD) return (OpWork){0}; // loads convert
  if (!divides(e)) return (OpWork){.operations = 1};
  if (!dtype_is_float(e->type)) return (OpWork){.lane_work = INTEGER_DIVISION};
  return remainder ? (OpWork){.lane_work = FLOAT_REMAINDER} : (OpWork){.divisions = FLOAT_DIVISION};
}

static bool add_work(Visitor *visitor, Expr *e) {
  WorkCount *sum = visitor->env;
  if (!e->count || e->op == EXPR_LOAD || map_contains(&sum->seen, e)) return false;
  map_put(&sum->seen, e, e);
  OpWork own = work_of(e);
  if (sum->guarding) {
    sum->work.guards += own.operations;
    return true;
  }
  sum->work.operations += own.operations;
  sum->work.divisions += own.divisions;
  sum->work.lane_work += own.lane_work;
  sum->work.guards += own.guards;
  sum->work.dots += e->op == EXPR_DOT_BYTES;
  sum->work.pairs += e->op == EXPR_DOT_WORDS;
  if (e->op == EXPR_IF_THEN_ELSE) {
    sum->guarding = true;
    visit_expr(visitor, e->args[0]);
    sum->guarding = false;
  }
  bool extreme = e->op == EXPR_MAX || e->op == EXPR_MIN;
  Expr *numbers = extreme ? expr_only_numbers((ExprOp)e->op, e->args[1]) : NULL;
  if (numbers) map_put(&sum->seen, e->args[1], e->args[1]); // the processor's own operation
  if (numbers) visit_expr(visitor, numbers);
  return true;
}

OpWork expr_op_work(Context *context, Expr *e) {
  ArenaMark mark = arena_mark(&context->scratch);
  WorkCount sum = {.seen = map_new(&context->scratch)};
  Visitor visitor = {.env = &sum, .enter_expr = add_work};
  visit_expr(&visitor, e);
  if (e->count && e->op != EXPR_LOAD) sum.work.combine = work_of(e).operations;
  arena_reset(&context->scratch, mark);
  return sum.work;
}
