// SPDX-License-Identifier: Apache-2.0
// Proves bounds of an index that the analyzer does not know, such as one that is computed with
// floating-point numbers, by its value at each point of a block's domain. Such a value is an
// interval, since compilers may round it in other places:
//   int(floor((v + 0.5) * 2 - 0.5 + 1e-5))   is   [2v, 2v]
#include "schedule/internal.h"

#include <math.h>

enum { MOST_POINTS = 1 << 14, MOST_POINT_VARS = 4 };

typedef struct DomainPoint {
  const Block *block;
  int vars[MOST_POINT_VARS]; // numbers of those of the block's variables that the index uses
  int64_t values[MOST_POINT_VARS];
  int count;
} DomainPoint;

typedef struct Rounded {
  double low, high;
} Rounded;

// The interval with the errors of rounding of a few operations of the type.
static Rounded rounded(DType type, Rounded x) {
  if (!dtype_is_float(type)) return x;
  double unit = type.bits >= 64 ? 0x1p-48 : type.bits == 32 ? 0x1p-20 : 0x1p-6;
  return (Rounded){x.low - fabs(x.low) * unit, x.high + fabs(x.high) * unit};
}

static bool value_at(const DomainPoint *p, const Expr *e, Rounded *out);

static bool operands_at(const DomainPoint *p, const Expr *e, Rounded *a, Rounded *b) {
  return value_at(p, e->args[0], a) && value_at(p, e->args[1], b);
}

static Rounded product(Rounded a, Rounded b) {
  double x = a.low * b.low, y = a.low * b.high, z = a.high * b.low, w = a.high * b.high;
  return (Rounded){fmin(fmin(x, y), fmin(z, w)), fmax(fmax(x, y), fmax(z, w))};
}

static bool variable_at(const DomainPoint *p, const Expr *e, Rounded *out) {
  for (int i = 0; i < p->count; i++)
    if (p->block->vars[p->vars[i]].var == e) {
      *out = (Rounded){(double)p->values[i], (double)p->values[i]};
      return true;
    }
  return false;
}

// Casts to integers cut the fraction off, and need a value that fits.
static bool cast_at(const DomainPoint *p, const Expr *e, Rounded *out) {
  Rounded x;
  if (e->type.lanes != 1 || !value_at(p, e->args[0], &x)) return false;
  bool integer = dtype_is_int(e->type);
  if (integer && (e->type.bits < 32 || fabs(x.low) > INT32_MAX || fabs(x.high) > INT32_MAX))
    return false;
  *out = integer ? (Rounded){trunc(x.low), trunc(x.high)} : rounded(e->type, x);
  return integer || dtype_is_float(e->type);
}

static bool value_at(const DomainPoint *p, const Expr *e, Rounded *out) {
  Rounded a, b;
  switch (e->op) {
  case EXPR_INT: *out = (Rounded){(double)e->as.i, (double)e->as.i}; return true;
  case EXPR_FLOAT: *out = (Rounded){e->as.f, e->as.f}; return true;
  case EXPR_VAR: return variable_at(p, e, out);
  case EXPR_CAST: return cast_at(p, e, out);
  case EXPR_FLOOR:
    if (!value_at(p, e->args[0], &a)) return false;
    *out = (Rounded){floor(a.low), floor(a.high)};
    return true;
  case EXPR_ADD:
    if (!operands_at(p, e, &a, &b)) return false;
    *out = rounded(e->type, (Rounded){a.low + b.low, a.high + b.high});
    return true;
  case EXPR_SUB:
    if (!operands_at(p, e, &a, &b)) return false;
    *out = rounded(e->type, (Rounded){a.low - b.high, a.high - b.low});
    return true;
  case EXPR_MUL:
    if (!operands_at(p, e, &a, &b)) return false;
    *out = rounded(e->type, product(a, b));
    return true;
  case EXPR_MIN:
    if (!operands_at(p, e, &a, &b)) return false;
    *out = (Rounded){fmin(a.low, b.low), fmin(a.high, b.high)};
    return true;
  case EXPR_MAX:
    if (!operands_at(p, e, &a, &b)) return false;
    *out = (Rounded){fmax(a.low, b.low), fmax(a.high, b.high)};
    return true;
  default: return false;
  }
}

// Finds the variables that one of the expressions uses. False when there are too many points.
static bool point_begin(DomainPoint *p, Expr *const *exprs, int count) {
  int64_t points = 1, extent;
  for (int i = 0; i < p->block->var_count; i++) {
    const BlockVar *v = &p->block->vars[i];
    bool used = false;
    for (int k = 0; k < count; k++) used |= expr_uses(exprs[k], v->var);
    if (!used) continue;
    if (p->count == MOST_POINT_VARS || !expr_as_int(v->min, &p->values[p->count]) ||
        !expr_as_int(v->extent, &extent) || extent < 1 || extent > MOST_POINTS ||
        (points *= extent) > MOST_POINTS)
      return false;
    p->vars[p->count++] = i;
  }
  return true;
}

static bool point_next(DomainPoint *p) {
  for (int i = p->count - 1; i >= 0; i--) {
    const BlockVar *v = &p->block->vars[p->vars[i]];
    if (++p->values[i] < v->min->as.i + v->extent->as.i) return true;
    p->values[i] = v->min->as.i;
  }
  return false;
}

bool block_index_within(const Block *block, Expr *index, Expr *begin, Expr *end) {
  DomainPoint p = {.block = block};
  Expr *exprs[] = {index, begin, end};
  if (!point_begin(&p, exprs, COUNT_OF(exprs))) return false;
  do {
    Rounded at, low, high;
    if (!value_at(&p, index, &at) || !value_at(&p, begin, &low) || !value_at(&p, end, &high))
      return false;
    if (!(low.high <= at.low && at.high + 1 <= high.low)) return false;
  } while (point_next(&p));
  return true;
}
