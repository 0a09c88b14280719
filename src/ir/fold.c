// SPDX-License-Identifier: Apache-2.0
// Constructs expressions with folding: the functions compute constants, drop neutral elements and
// bring operands to one type. Simplification that needs facts about variables is in src/arith.
#include "ir/ir.h"

#include <math.h>

static int64_t scalar_int(const Expr *e) {
  return e->op == EXPR_BROADCAST ? e->args[0]->as.i : e->as.i;
}
static bool is_int_const(const Expr *e) {
  return e->op == EXPR_INT || (e->op == EXPR_BROADCAST && e->args[0]->op == EXPR_INT);
}
static bool is_const(const Expr *e) {
  if (e->op == EXPR_BROADCAST) e = e->args[0];
  return e->op == EXPR_INT || e->op == EXPR_FLOAT;
}
static double scalar_float(const Expr *e) {
  if (e->op == EXPR_BROADCAST) e = e->args[0];
  return e->op == EXPR_FLOAT ? e->as.f : (double)e->as.i;
}

// ---- Bringing operands together

static DType wider(DType a, DType b) {
  DType t = a.bits >= b.bits ? a : b;
  if (a.code != b.code)
    t.code = a.code == TYPE_BOOL ? b.code : b.code == TYPE_BOOL ? a.code : TYPE_INT;
  return t;
}

static bool adapts(const Expr *e, const Expr *other) {
  return is_int_const(e) && !is_int_const(other) &&
         (dtype_is_float(other->type) || dtype_holds(other->type, scalar_int(e)));
}

// A constant adapts to the type of the other operand if that has its value; two other integers get
// the wider of their types.
static void match_types(Context *context, Expr **a, Expr **b) {
  DType x = (*a)->type, y = (*b)->type;
  if (x.lanes == 1 && y.lanes > 1) *a = expr_broadcast(context, *a, y.lanes);
  if (y.lanes == 1 && x.lanes > 1) *b = expr_broadcast(context, *b, x.lanes);
  x = (*a)->type, y = (*b)->type;
  if (x.code == y.code && x.bits == y.bits) return;
  DType t = dtype_is_float(x) != dtype_is_float(y) ? (dtype_is_float(x) ? x : y)
            : adapts(*a, *b)                       ? y
            : adapts(*b, *a)                       ? x
                                                   : wider(x, y);
  *a = expr_cast(context, dtype_lanes(t, x.lanes), *a);
  *b = expr_cast(context, dtype_lanes(t, y.lanes), *b);
}

// ---- Constants

static bool fold_int(ExprOp op, DType type, int64_t a, int64_t b, int64_t *out) {
  bool is_unsigned = type.code == TYPE_UINT && type.bits == 64;
  switch (op) {
  case EXPR_ADD: return add_fits(a, b, out);
  case EXPR_SUB: return sub_fits(a, b, out);
  case EXPR_MUL: return mul_fits(a, b, out);
  case EXPR_MIN: *out = MIN_OF(a, b); return !is_unsigned;
  case EXPR_MAX: *out = MAX_OF(a, b); return !is_unsigned;
  case EXPR_EQ: *out = a == b; return true;
  case EXPR_NE: *out = a != b; return true;
  case EXPR_LT: *out = a < b; return !is_unsigned;
  case EXPR_LE: *out = a <= b; return !is_unsigned;
  case EXPR_GT: *out = a > b; return !is_unsigned;
  case EXPR_GE: *out = a >= b; return !is_unsigned;
  case EXPR_AND: *out = a && b; return true;
  case EXPR_OR: *out = a || b; return true;
  case EXPR_BIT_AND: *out = a & b; return true;
  case EXPR_BIT_OR: *out = a | b; return true;
  case EXPR_BIT_XOR: *out = a ^ b; return true;
  case EXPR_SHIFT_LEFT: *out = (int64_t)((uint64_t)a << (b & 63)); return b >= 0 && b < type.bits;
  case EXPR_SHIFT_RIGHT: *out = a >> (b & 63); return b >= 0 && b < type.bits && !is_unsigned;
  default: break;
  }
  if (b == 0 || is_unsigned || (a == INT64_MIN && b == -1)) return false;
  switch (op) {
  case EXPR_FLOOR_DIV: *out = floor_div(a, b); return true;
  case EXPR_FLOOR_MOD: *out = floor_mod(a, b); return true;
  case EXPR_TRUNC_DIV: *out = a / b; return true;
  case EXPR_TRUNC_MOD: *out = a % b; return true;
  default: return false;
  }
}

// Folds floats of 32 and 64 bits only, because every target computes the same bits for these.
static bool fold_float(ExprOp op, double a, double b, double *out) {
  switch (op) {
  case EXPR_ADD: *out = a + b; return true;
  case EXPR_SUB: *out = a - b; return true;
  case EXPR_MUL: *out = a * b; return true;
  case EXPR_DIV: *out = a / b; return b != 0;
  default: return false;
  }
}

static Expr *fold_constants(Context *context, ExprOp op, Expr *a, Expr *b) {
  int64_t i;
  double f;
  DType type = expr_result_type(op, a->type);
  if (is_int_const(a) && is_int_const(b) && fold_int(op, a->type, scalar_int(a), scalar_int(b), &i))
    return expr_int(context, type, i);
  bool floats = a->type.code == TYPE_FLOAT && a->type.bits >= 32 && is_const(a) && is_const(b);
  if (!floats) return NULL;
  double x = scalar_float(a), y = scalar_float(b);
  if (a->type.bits == 32 && op == EXPR_DIV) return NULL;
  if (!isfinite(x) || !isfinite(y) || !fold_float(op, x, y, &f)) return NULL;
  return expr_float(context, type, f);
}

// ---- Neutral and absorbing elements of integers and bools (a float may be a NaN or a signed zero)

static Expr *fold_integer_identity(Context *context, ExprOp op, Expr *a, Expr *b) {
  bool same = a == b && expr_is_pure(a);
  switch (op) {
  case EXPR_ADD: return expr_is_int(b, 0) ? a : NULL;
  case EXPR_SUB: return expr_is_int(b, 0) ? a : same ? expr_int(context, a->type, 0) : NULL;
  case EXPR_MUL: return expr_is_int(b, 1) ? a : expr_is_int(b, 0) && expr_is_pure(a) ? b : NULL;
  case EXPR_FLOOR_DIV:
  case EXPR_TRUNC_DIV:
    return expr_is_int(b, 1) || (expr_is_int(a, 0) && !expr_is_int(b, 0) && is_int_const(b)) ? a
                                                                                             : NULL;
  case EXPR_FLOOR_MOD:
  case EXPR_TRUNC_MOD:
    return expr_is_int(b, 1) ? expr_int(context, a->type, 0)
           : expr_is_int(a, 0) && is_int_const(b) && !expr_is_int(b, 0) ? a
                                                                        : NULL;
  case EXPR_MIN:
  case EXPR_MAX: return same ? a : NULL;
  case EXPR_EQ:
  case EXPR_LE:
  case EXPR_GE: return same ? expr_int(context, dtype_lanes(DTYPE_BOOL, a->type.lanes), 1) : NULL;
  case EXPR_NE:
  case EXPR_LT:
  case EXPR_GT: return same ? expr_int(context, dtype_lanes(DTYPE_BOOL, a->type.lanes), 0) : NULL;
  case EXPR_AND: return same || expr_is_int(b, 1) ? a : expr_is_int(b, 0) ? b : NULL;
  case EXPR_OR: return same || expr_is_int(b, 0) ? a : expr_is_int(b, 1) ? b : NULL;
  case EXPR_BIT_OR:
  case EXPR_BIT_XOR:
  case EXPR_SHIFT_LEFT:
  case EXPR_SHIFT_RIGHT: return expr_is_int(b, 0) ? a : NULL;
  default: return NULL;
  }
}

static Expr *fold_float_identity(ExprOp op, Expr *a, Expr *b) {
  bool one = is_const(b) && scalar_float(b) == 1.0;
  if ((op == EXPR_MUL || op == EXPR_DIV) && one) return a;
  bool zero = is_const(b) && scalar_float(b) == 0.0 && !signbit(scalar_float(b));
  if (op == EXPR_SUB && zero) return a; // a sum with 0.0 is not -0.0
  return NULL;
}

// Merges constants: (x + 1) + 2 and (x * 2) * 3.
static Expr *fold_chain(Context *context, ExprOp op, Expr *a, Expr *b) {
  if ((op != EXPR_ADD && op != EXPR_MUL) || a->op != op || !is_int_const(b) ||
      !is_int_const(a->args[1]))
    return NULL;
  Expr *constant = fold_constants(context, op, a->args[1], b);
  return constant ? expr_binary(context, op, a->args[0], constant) : NULL;
}

// Moves broadcasts outward and merges scalars into ramps, as the addresses of vector accesses need.
static Expr *fold_vectors(Context *context, ExprOp op, Expr *a, Expr *b) {
  int lanes = a->type.lanes;
  if (lanes == 1) return NULL;
  if (a->op == EXPR_BROADCAST && b->op == EXPR_BROADCAST)
    return expr_broadcast(context, expr_binary(context, op, a->args[0], b->args[0]), lanes);
  if (!dtype_is_int(a->type)) return NULL;
  if (op == EXPR_ADD && b->op == EXPR_RAMP && a->op == EXPR_BROADCAST)
    return fold_vectors(context, op, b, a);
  if (op == EXPR_MUL && b->op == EXPR_RAMP && a->op == EXPR_BROADCAST)
    return fold_vectors(context, op, b, a);
  if (a->op != EXPR_RAMP || b->op != EXPR_BROADCAST) return NULL;
  Expr *base = a->args[0], *stride = a->args[1], *other = b->args[0];
  if (op == EXPR_ADD || op == EXPR_SUB)
    return expr_ramp(context, expr_binary(context, op, base, other), stride, lanes);
  if (op == EXPR_MUL)
    return expr_ramp(context, expr_mul(context, base, other), expr_mul(context, stride, other),
                     lanes);
  return NULL;
}

Expr *expr_binary(Context *context, ExprOp op, Expr *a, Expr *b) {
  match_types(context, &a, &b);
  if ((op_table[op].flags & OP_COMMUTES) && is_const(a) && !is_const(b)) {
    Expr *t = a;
    a = b;
    b = t;
  }
  Expr *folded = fold_constants(context, op, a, b);
  if (!folded)
    folded = dtype_is_float(a->type) ? fold_float_identity(op, a, b)
                                     : fold_integer_identity(context, op, a, b);
  if (!folded && !dtype_is_float(a->type)) folded = fold_chain(context, op, a, b);
  if (!folded) folded = fold_vectors(context, op, a, b);
  if (folded) return folded;
  return expr_raw(context, op, expr_result_type(op, a->type), NULL, (Expr *[]){a, b}, 2);
}

static ExprOp opposite(ExprOp op) {
  switch (op) {
  case EXPR_EQ: return EXPR_NE;
  case EXPR_NE: return EXPR_EQ;
  case EXPR_LT: return EXPR_GE;
  case EXPR_GE: return EXPR_LT;
  case EXPR_GT: return EXPR_LE;
  case EXPR_LE: return EXPR_GT;
  default: return EXPR_OP_COUNT;
  }
}

static Expr *fold_not(Context *context, Expr *a) {
  if (is_int_const(a)) return expr_int(context, a->type, !scalar_int(a));
  if (a->op == EXPR_NOT) return a->args[0];
  ExprOp op = opposite(a->op);
  if (op != EXPR_OP_COUNT && !dtype_is_float(a->args[0]->type))
    return expr_binary(context, op, a->args[0], a->args[1]);
  return NULL;
}

Expr *expr_unary(Context *context, ExprOp op, Expr *a) {
  Expr *folded = NULL;
  if (op == EXPR_NOT) folded = fold_not(context, a);
  if (op == EXPR_BIT_NOT && is_int_const(a)) folded = expr_int(context, a->type, ~scalar_int(a));
  if (op == EXPR_ABS && a->type.code == TYPE_UINT) folded = a;
  if (op == EXPR_ABS && !folded && is_int_const(a) && scalar_int(a) != INT64_MIN)
    folded = expr_int(context, a->type, scalar_int(a) < 0 ? -scalar_int(a) : scalar_int(a));
  if (op == EXPR_LIKELY && is_int_const(a)) folded = a;
  if (folded) return folded;
  DType type =
      op_table[op].result == OP_GIVEN ? dtype_lanes(a->type, 1) : expr_result_type(op, a->type);
  return expr_raw(context, op, type, NULL, &a, 1);
}

static Expr *choose(Context *context, ExprOp op, Expr *condition, Expr *a, Expr *b) {
  match_types(context, &a, &b);
  if (is_int_const(condition)) return scalar_int(condition) ? a : b;
  if (a == b && expr_is_pure(condition)) return a;
  if (condition->type.lanes > 1 && a->type.lanes == 1) {
    a = expr_broadcast(context, a, condition->type.lanes);
    b = expr_broadcast(context, b, condition->type.lanes);
  }
  return expr_raw(context, op, a->type, NULL, (Expr *[]){condition, a, b}, 3);
}

Expr *expr_select(Context *context, Expr *condition, Expr *then_value, Expr *else_value) {
  return choose(context, EXPR_SELECT, condition, then_value, else_value);
}

Expr *expr_if_then_else(Context *context, Expr *condition, Expr *then_value, Expr *else_value) {
  return choose(context, EXPR_IF_THEN_ELSE, condition, then_value, else_value);
}

Expr *expr_cast(Context *context, DType type, Expr *a) {
  if (dtype_equal(type, a->type)) return a;
  if (a->op == EXPR_BROADCAST)
    return expr_broadcast(context, expr_cast(context, dtype_lanes(type, 1), a->args[0]),
                          type.lanes);
  if (a->op == EXPR_INT && !dtype_is_float(type) && type.code != TYPE_HANDLE)
    return expr_int(context, type, a->as.i);
  bool exact = type.code == TYPE_FLOAT && type.bits >= 32;
  int64_t least = a->type.code == TYPE_UINT ? 0 : -(1 << 24); // a large uint64 is below 0 here
  if (a->op == EXPR_INT && exact && a->as.i >= least && a->as.i <= 1 << 24)
    return expr_float(context, type, (double)a->as.i);
  if (a->op == EXPR_FLOAT && exact && a->type.code == TYPE_FLOAT && a->type.bits >= 32)
    return expr_float(context, type, a->as.f);
  return expr_raw(context, EXPR_CAST, type, NULL, &a, 1);
}

Expr *expr_ramp(Context *context, Expr *base, Expr *stride, int lanes) {
  match_types(context, &base, &stride);
  if (lanes == 1) return base;
  if (expr_is_int(stride, 0)) return expr_broadcast(context, base, lanes);
  DType type = dtype_lanes(base->type, lanes);
  return expr_raw(context, EXPR_RAMP, type, NULL, (Expr *[]){base, stride}, 2);
}

Expr *expr_broadcast(Context *context, Expr *value, int lanes) {
  if (lanes == 1) return value;
  DType type = dtype_lanes(value->type, lanes);
  return expr_raw(context, EXPR_BROADCAST, type, NULL, &value, 1);
}
