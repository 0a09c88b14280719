// SPDX-License-Identifier: Apache-2.0
// Simplifies integer vectors with an even step: base + stride * lane. Sums, and products with
// broadcasts, keep this form; a quotient does when the divisor divides the step, or when all lanes
// have one quotient:
//   ramp(i*8, 1, 8) // 8  =>  broadcast(i, 8)        ramp(i*8, 1, 8) % 8  =>  ramp(0, 1, 8)
//   ramp(i*8, 1, 8) ^ broadcast(j*8, 8)  =>  ramp(i*8 ^ j*8, 1, 8)
#include "arith/internal.h"

typedef struct Even {
  Expr *base, *stride; // stride NULL: a broadcast
  int64_t step;        // when the stride is constant
  bool has_step;
  int lanes;
} Even;

static bool even_of(Expr *e, Even *out) {
  *out = (Even){.lanes = e->type.lanes};
  if (e->op == EXPR_BROADCAST) {
    out->base = e->args[0];
    out->has_step = true;
    return out->base->type.lanes == 1;
  }
  if (e->op != EXPR_RAMP || e->args[0]->type.lanes != 1) return false;
  out->base = e->args[0];
  out->stride = e->args[1];
  out->has_step = expr_as_int(out->stride, &out->step);
  return true;
}

static Expr *vector_of(Analyzer *analyzer, Expr *base, Expr *stride, int lanes) {
  base = analyzer_simplify(analyzer, base);
  if (!stride) return expr_broadcast(analyzer->context, base, lanes);
  return expr_ramp(analyzer->context, base, analyzer_simplify(analyzer, stride), lanes);
}

// The least and the largest lane.
static void lane_ends(Analyzer *analyzer, const Even *v, Expr **least, Expr **most) {
  Context *context = analyzer->context;
  Expr *far =
      expr_add(context, v->base, expr_int(context, v->base->type, v->step * (v->lanes - 1)));
  *least = v->step >= 0 ? v->base : far;
  *most = v->step >= 0 ? far : v->base;
}

static Expr *linear_vector(Analyzer *analyzer, Expr *e, const Even *a, const Even *b) {
  Context *context = analyzer->context;
  Expr *base = expr_binary(context, e->op, a->base, b->base);
  Expr *zero = expr_int(context, base->type, 0);
  Expr *stride =
      !a->stride && !b->stride
          ? NULL
          : expr_binary(context, e->op, a->stride ? a->stride : zero, b->stride ? b->stride : zero);
  return vector_of(analyzer, base, stride, a->lanes);
}

static Expr *scaled_vector(Analyzer *analyzer, Expr *e, const Even *a, const Even *b) {
  if (b->stride && a->stride) return e;
  const Even *ramp = a->stride ? a : b, *factor = a->stride ? b : a;
  Context *context = analyzer->context;
  Expr *stride = ramp->stride ? expr_mul(context, ramp->stride, factor->base) : NULL;
  return vector_of(analyzer, expr_mul(context, ramp->base, factor->base), stride, a->lanes);
}

// True when all lanes of a have the same quotient by c.
static bool in_one_cell(Analyzer *analyzer, const Even *a, Expr *c) {
  Expr *least, *most;
  if (!a->has_step) return false;
  lane_ends(analyzer, a, &least, &most);
  Context *context = analyzer->context;
  return analyzer_prove_equal(analyzer, expr_floor_div(context, least, c),
                              expr_floor_div(context, most, c));
}

static Expr *divided_vector(Analyzer *analyzer, Expr *e, const Even *a, const Even *b) {
  Context *context = analyzer->context;
  int64_t c;
  if (!a->stride && !b->stride)
    return vector_of(analyzer, expr_binary(context, e->op, a->base, b->base), NULL, a->lanes);
  if (b->stride || !expr_as_int(b->base, &c) || c <= 0 || !a->has_step) return e;
  bool quotient = e->op == EXPR_FLOOR_DIV;
  Expr *base = expr_binary(context, e->op, a->base, b->base);
  if (!a->stride) return vector_of(analyzer, base, NULL, a->lanes);
  if (a->step % c == 0) {
    Expr *stride = expr_int(context, base->type, a->step / c);
    return vector_of(analyzer, base, quotient ? stride : NULL, a->lanes);
  }
  if (!in_one_cell(analyzer, a, b->base)) return e;
  return vector_of(analyzer, base, quotient ? NULL : a->stride, a->lanes);
}

// A division that truncates is one with a floor where no lane is negative.
static Expr *truncated_vector(Analyzer *analyzer, Expr *e, const Even *a, const Even *b) {
  Context *context = analyzer->context;
  Expr *least, *most;
  if (!a->stride && !b->stride) return divided_vector(analyzer, e, a, b);
  if (!a->has_step || b->stride) return e;
  lane_ends(analyzer, a, &least, &most);
  Expr *zero = expr_int(context, a->base->type, 0);
  if (!analyzer_prove(analyzer, expr_binary(context, EXPR_LE, zero, least)) ||
      !analyzer_prove(analyzer, expr_binary(context, EXPR_LE, zero, b->base)))
    return e;
  ExprOp op = e->op == EXPR_TRUNC_DIV ? EXPR_FLOOR_DIV : EXPR_FLOOR_MOD;
  Expr *floored = expr_binary(context, op, e->args[0], e->args[1]);
  return floored->op == op ? divided_vector(analyzer, floored, a, b) : floored;
}

// Decides a OP b when it holds for all lanes or for none.
static Expr *compared_vector(Analyzer *analyzer, Expr *e, const Even *a, const Even *b) {
  Context *context = analyzer->context;
  if (!a->stride && !b->stride)
    return expr_broadcast(
        context, analyzer_simplify(analyzer, expr_binary(context, e->op, a->base, b->base)),
        a->lanes);
  if (!a->has_step || !b->has_step) return e;
  Expr *first = expr_binary(context, e->op, a->base, b->base);
  int last = a->lanes - 1;
  Expr *x = expr_add(context, a->base, expr_int(context, a->base->type, a->step * last));
  Expr *y = expr_add(context, b->base, expr_int(context, b->base->type, b->step * last));
  Expr *final = expr_binary(context, e->op, x, y);
  if (e->op == EXPR_EQ || e->op == EXPR_NE) return e;
  // The difference of two even vectors is even, so a comparison that holds in both end lanes holds
  // in all.
  if (analyzer_prove(analyzer, first) && analyzer_prove(analyzer, final))
    return expr_int(context, e->type, 1);
  if (analyzer_prove(analyzer, expr_unary(context, EXPR_NOT, first)) &&
      analyzer_prove(analyzer, expr_unary(context, EXPR_NOT, final)))
    return expr_int(context, e->type, 0);
  return e;
}

static Expr *extreme_vector(Analyzer *analyzer, Expr *e, const Even *a, const Even *b) {
  Context *context = analyzer->context;
  if (!a->stride && !b->stride)
    return vector_of(analyzer, expr_binary(context, e->op, a->base, b->base), NULL, a->lanes);
  Expr *le = expr_raw(context, EXPR_LE, dtype_lanes(DTYPE_BOOL, a->lanes), NULL, e->args, 2);
  Expr *verdict = compared_vector(analyzer, le, a, b);
  bool a_first = expr_is_int(verdict, 1), b_first = expr_is_int(verdict, 0);
  if (!a_first && !b_first) return e;
  return a_first == (e->op == EXPR_MIN) ? e->args[0] : e->args[1];
}

// A ramp from a multiple of a power of two that its steps do not reach leaves the bits of another
// multiple alone.
static Expr *bits_vector(Analyzer *analyzer, Expr *e, const Even *a, const Even *b) {
  if (a->stride && b->stride) return e;
  const Even *ramp = a->stride ? a : b, *other = a->stride ? b : a;
  int64_t reach, unit = 1;
  if (ramp->stride) {
    if (!ramp->has_step || ramp->step <= 0 || !mul_fits(ramp->step, ramp->lanes - 1, &reach) ||
        reach > INT32_MAX)
      return e;
    while (unit <= reach) unit *= 2;
    if (!modular_is_multiple(analyzer, ramp->base, unit) ||
        !modular_is_multiple(analyzer, other->base, unit))
      return e;
  }
  Expr *base = expr_binary(analyzer->context, e->op, a->base, b->base);
  return vector_of(analyzer, base, ramp->stride, a->lanes);
}

static Expr *cast_vector(Analyzer *analyzer, Expr *e) {
  Even a;
  bool widens = e->type.code == TYPE_INT && e->args[0]->type.code == TYPE_INT &&
                e->args[0]->type.bits >= 32 && e->type.bits >= e->args[0]->type.bits;
  if (!widens || !even_of(e->args[0], &a)) return e;
  Context *context = analyzer->context;
  DType type = dtype_lanes(e->type, 1);
  return vector_of(analyzer, expr_cast(context, type, a.base),
                   a.stride ? expr_cast(context, type, a.stride) : NULL, a.lanes);
}

typedef Expr *(*VectorRule)(Analyzer *, Expr *, const Even *, const Even *);
static const VectorRule vector_table[EXPR_OP_COUNT] = {
    [EXPR_ADD] = linear_vector,          [EXPR_SUB] = linear_vector,
    [EXPR_MUL] = scaled_vector,          [EXPR_FLOOR_DIV] = divided_vector,
    [EXPR_FLOOR_MOD] = divided_vector,   [EXPR_MIN] = extreme_vector,
    [EXPR_MAX] = extreme_vector,         [EXPR_LT] = compared_vector,
    [EXPR_LE] = compared_vector,         [EXPR_GT] = compared_vector,
    [EXPR_GE] = compared_vector,         [EXPR_EQ] = compared_vector,
    [EXPR_NE] = compared_vector,         [EXPR_BIT_XOR] = bits_vector,
    [EXPR_BIT_OR] = bits_vector,         [EXPR_TRUNC_DIV] = truncated_vector,
    [EXPR_TRUNC_MOD] = truncated_vector,
};

Expr *analyzer_simplify_vector(Analyzer *analyzer, Expr *e) {
  if (e->op == EXPR_CAST) return cast_vector(analyzer, e);
  if (!vector_table[e->op] || e->count != 2) return e;
  DType type = e->args[0]->type;
  Even a, b;
  if (type.code != TYPE_INT || type.bits < 32 || !even_of(e->args[0], &a) ||
      !even_of(e->args[1], &b))
    return e;
  return vector_table[e->op](analyzer, e, &a, &b);
}
