// SPDX-License-Identifier: Apache-2.0
// Evaluates an integer expression at a point. Enumeration uses it where algebra does not decide.
#include "arith/internal.h"

typedef bool (*Operation)(int64_t a, int64_t b, int64_t *out);

static bool divides(int64_t a, int64_t b) {
  return b != 0 && !(a == INT64_MIN && b == -1);
}

#define OPERATION(name, defined, result)                                                           \
  static bool name(int64_t a, int64_t b, int64_t *out) {                                           \
    if (!(defined)) return false;                                                                  \
    *out = (result);                                                                               \
    return true;                                                                                   \
  }
OPERATION(floor_quotient, divides(a, b), floor_div(a, b))
OPERATION(floor_rest, divides(a, b), floor_mod(a, b))
OPERATION(trunc_quotient, divides(a, b), a / b)
OPERATION(trunc_rest, divides(a, b), a % b)
OPERATION(smaller, true, MIN_OF(a, b))
OPERATION(larger, true, MAX_OF(a, b))
OPERATION(equal, true, a == b)
OPERATION(unequal, true, a != b)
OPERATION(less, true, a < b)
OPERATION(less_equal, true, a <= b)
OPERATION(greater, true, a > b)
OPERATION(greater_equal, true, a >= b)
OPERATION(both, true, a &&b)
OPERATION(either, true, a || b)
OPERATION(bit_and, true, a &b)
OPERATION(bit_or, true, a | b)
OPERATION(bit_xor, true, a ^ b)
OPERATION(shift_left, b >= 0 && b < 62 && a >> (62 - b) == 0, a << b)
OPERATION(shift_right, b >= 0 && b < 64, a >> b)

static const Operation operations[EXPR_OP_COUNT] = {
    [EXPR_ADD] = add_fits,
    [EXPR_SUB] = sub_fits,
    [EXPR_MUL] = mul_fits,
    [EXPR_FLOOR_DIV] = floor_quotient,
    [EXPR_FLOOR_MOD] = floor_rest,
    [EXPR_TRUNC_DIV] = trunc_quotient,
    [EXPR_TRUNC_MOD] = trunc_rest,
    [EXPR_MIN] = smaller,
    [EXPR_MAX] = larger,
    [EXPR_EQ] = equal,
    [EXPR_NE] = unequal,
    [EXPR_LT] = less,
    [EXPR_LE] = less_equal,
    [EXPR_GT] = greater,
    [EXPR_GE] = greater_equal,
    [EXPR_AND] = both,
    [EXPR_OR] = either,
    [EXPR_BIT_AND] = bit_and,
    [EXPR_BIT_OR] = bit_or,
    [EXPR_BIT_XOR] = bit_xor,
    [EXPR_SHIFT_LEFT] = shift_left,
    [EXPR_SHIFT_RIGHT] = shift_right,
};

typedef struct Point {
  Expr *const *vars;
  const int64_t *values;
  int count;
  int lane; // of vectors; -1: they have no value
} Point;

static bool value_at(const Point *point, const Expr *e, int64_t *out);

// Other integers wrap around.
static bool is_exact(DType type) {
  type = dtype_lanes(type, 1);
  return dtype_is_index(type) || dtype_is_bool(type);
}

static bool var_value(const Point *point, const Expr *e, int64_t *out) {
  for (int i = 0; i < point->count; i++)
    if (point->vars[i] == e) {
      *out = point->values[i];
      return true;
    }
  return false;
}

static bool cast_value(const Point *point, const Expr *e, int64_t *out) {
  if (!is_exact(e->type) || !value_at(point, e->args[0], out)) return false;
  if (dtype_is_bool(dtype_lanes(e->type, 1))) *out = *out != 0;
  return e->type.bits == 64 || (*out >= INT32_MIN && *out <= INT32_MAX);
}

static bool choice_value(const Point *point, const Expr *e, int64_t *out) {
  int64_t condition;
  return value_at(point, e->args[0], &condition) &&
         value_at(point, e->args[condition ? 1 : 2], out);
}

static bool ramp_value(const Point *point, const Expr *e, int64_t *out) {
  int64_t first, step;
  return value_at(point, e->args[0], &first) && value_at(point, e->args[1], &step) &&
         mul_fits(step, point->lane, &step) && add_fits(first, step, out);
}

static bool value_at(const Point *point, const Expr *e, int64_t *out) {
  int64_t a, b;
  if (dtype_is_float(e->type) || (e->type.lanes != 1 && point->lane < 0)) return false;
  if (point->lane >= 0 && !is_exact(e->type)) return false;
  switch (e->op) {
  case EXPR_INT: *out = e->as.i; return true;
  case EXPR_VAR: return var_value(point, e, out);
  case EXPR_CAST: return cast_value(point, e, out);
  case EXPR_BROADCAST: return value_at(point, e->args[0], out);
  case EXPR_RAMP: return ramp_value(point, e, out);
  case EXPR_SELECT:
  case EXPR_IF_THEN_ELSE: return choice_value(point, e, out);
  case EXPR_NOT:
    if (!value_at(point, e->args[0], &a)) return false;
    *out = !a;
    return true;
  default: break;
  }
  Operation operation = operations[e->op];
  return operation && value_at(point, e->args[0], &a) && value_at(point, e->args[1], &b) &&
         operation(a, b, out);
}

bool expr_value(const Expr *e, Expr *const *vars, const int64_t *values, int count, int64_t *out) {
  return value_at(&(Point){vars, values, count, -1}, e, out);
}

bool expr_lane_value(const Expr *e, int lane, int64_t *out) {
  return value_at(&(Point){.lane = lane}, e, out);
}
