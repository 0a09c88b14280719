// SPDX-License-Identifier: Apache-2.0
// Support for the tests of src/arith: values of integer expressions, their text, and random
// expressions.
#ifndef PLEAT_TESTS_ARITH_SUPPORT_H
#define PLEAT_TESTS_ARITH_SUPPORT_H

#include "arith/arith.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MOST_VARS = 8 };

// Variables and their present values; `lane` selects the lane of vectors.
typedef struct World {
  Context *context;
  int count;
  Expr *vars[MOST_VARS];
  int64_t low[MOST_VARS], extent[MOST_VARS], value[MOST_VARS];
  bool undefined; // a division by zero occurred
  int lane;
} World;

static inline int64_t eval(World *w, const Expr *e);

static inline int64_t eval_binary(World *w, const Expr *e) {
  int64_t a = eval(w, e->args[0]), b = eval(w, e->args[1]);
  bool divides = e->op >= EXPR_FLOOR_DIV && e->op <= EXPR_TRUNC_MOD;
  if (divides && b == 0) {
    w->undefined = true;
    return 0;
  }
  switch (e->op) {
  case EXPR_ADD: return a + b;
  case EXPR_SUB: return a - b;
  case EXPR_MUL: return a * b;
  case EXPR_FLOOR_DIV: return floor_div(a, b);
  case EXPR_FLOOR_MOD: return floor_mod(a, b);
  case EXPR_TRUNC_DIV: return a / b;
  case EXPR_TRUNC_MOD: return a % b;
  case EXPR_MIN: return MIN_OF(a, b);
  case EXPR_MAX: return MAX_OF(a, b);
  case EXPR_EQ: return a == b;
  case EXPR_NE: return a != b;
  case EXPR_LT: return a < b;
  case EXPR_LE: return a <= b;
  case EXPR_GT: return a > b;
  case EXPR_GE: return a >= b;
  case EXPR_AND: return a && b;
  case EXPR_OR: return a || b;
  case EXPR_BIT_AND: return a & b;
  case EXPR_BIT_OR: return a | b;
  case EXPR_BIT_XOR: return a ^ b;
  case EXPR_SHIFT_LEFT: return (int64_t)((uint64_t)a << b);
  case EXPR_SHIFT_RIGHT: return a >> b;
  default: fail_msg("no value for %s", op_table[e->op].name); return 0;
  }
}

static inline int64_t eval_choice(World *w, const Expr *e) {
  bool before = w->undefined;
  int64_t c = eval(w, e->args[0]);
  bool after = w->undefined;
  int64_t a = eval(w, e->args[1]);
  if (!c) w->undefined = after;
  if (c) return a;
  (void)before;
  return eval(w, e->args[2]);
}

static inline int64_t eval(World *w, const Expr *e) {
  switch (e->op) {
  case EXPR_INT: return e->as.i;
  case EXPR_VAR:
    for (int i = 0; i < w->count; i++)
      if (w->vars[i] == e) return w->value[i];
    fail_msg("variable %s has no value", e->as.var->name);
    return 0;
  case EXPR_CAST:
  case EXPR_BROADCAST: return eval(w, e->args[0]);
  case EXPR_RAMP: return eval(w, e->args[0]) + w->lane * eval(w, e->args[1]);
  case EXPR_NOT: return !eval(w, e->args[0]);
  case EXPR_BIT_NOT: return ~eval(w, e->args[0]);
  case EXPR_ABS: return llabs(eval(w, e->args[0]));
  case EXPR_SELECT:
  case EXPR_IF_THEN_ELSE: return eval_choice(w, e);
  default: return eval_binary(w, e);
  }
}

static inline void write_expr(Text *out, const Expr *e) {
  const OpInfo *info = &op_table[e->op];
  if (e->op == EXPR_INT) {
    text_printf(out, "%lld", (long long)e->as.i);
  } else if (e->op == EXPR_VAR) {
    text_puts(out, e->as.var->name);
  } else if (info->flags & OP_INFIX) {
    text_puts(out, "(");
    write_expr(out, e->args[0]);
    text_printf(out, " %s ", info->spelling);
    write_expr(out, e->args[1]);
    text_puts(out, ")");
  } else {
    text_printf(out, "%s(", info->spelling);
    for (int i = 0; i < e->count; i++) {
      if (i) text_puts(out, ", ");
      write_expr(out, e->args[i]);
    }
    text_puts(out, ")");
  }
}

static inline const char *spelled(World *w, const Expr *e) {
  Text text = text_new(&w->context->arena);
  write_expr(&text, e);
  return text_string(&text);
}

static inline uint32_t pick(uint64_t *seed, uint32_t n) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*seed >> 33) % n;
}

static inline World world_new(void) {
  return (World){.context = context_new()};
}

static inline Expr *world_var(World *w, const char *name, int64_t low, int64_t extent) {
  Expr *v = expr_var(w->context, name, DTYPE_INT32);
  w->vars[w->count] = v;
  w->low[w->count] = low;
  w->extent[w->count] = extent;
  w->count++;
  return v;
}

static inline void world_bind(World *w, Analyzer *a) {
  for (int i = 0; i < w->count; i++)
    analyzer_bind(a, w->vars[i], expr_index(w->context, w->low[i]),
                  expr_index(w->context, w->extent[i]));
}

static inline void world_first(World *w) {
  for (int i = 0; i < w->count; i++) w->value[i] = w->low[i];
}

static inline bool world_next(World *w) {
  for (int i = w->count - 1; i >= 0; i--) {
    if (++w->value[i] < w->low[i] + w->extent[i]) return true;
    w->value[i] = w->low[i];
  }
  return false;
}

static inline Expr *random_expr(World *w, uint64_t *seed, int depth);

static inline Expr *random_condition(World *w, uint64_t *seed, int depth) {
  static const ExprOp ops[] = {EXPR_EQ, EXPR_NE, EXPR_LT, EXPR_LE, EXPR_GT, EXPR_GE};
  Context *c = w->context;
  uint32_t kind = pick(seed, depth > 1 ? 5 : 2);
  if (kind == 2)
    return expr_and(c, random_condition(w, seed, depth - 1), random_condition(w, seed, depth - 1));
  if (kind == 3)
    return expr_binary(c, EXPR_OR, random_condition(w, seed, depth - 1),
                       random_condition(w, seed, depth - 1));
  if (kind == 4) return expr_unary(c, EXPR_NOT, random_condition(w, seed, depth - 1));
  return expr_binary(c, ops[pick(seed, 6)], random_expr(w, seed, depth - 1),
                     random_expr(w, seed, depth - 1));
}

static inline Expr *random_leaf(World *w, uint64_t *seed) {
  if (pick(seed, 3)) return w->vars[pick(seed, (uint32_t)w->count)];
  return expr_index(w->context, (int64_t)pick(seed, 21) - 8);
}

static inline Expr *random_expr(World *w, uint64_t *seed, int depth) {
  static const int64_t divisors[] = {2, 3, 4, 5, 6, 7, 8, 12, 16, -3};
  static const int64_t factors[] = {2, 3, 4, 7, 8, -1, -4, 16};
  Context *c = w->context;
  if (depth <= 0) return random_leaf(w, seed);
  Expr *a = random_expr(w, seed, depth - 1);
  Expr *d = expr_index(c, divisors[pick(seed, COUNT_OF(divisors))]);
  switch (pick(seed, 14)) {
  case 0:
  case 1:
  case 2: return expr_add(c, a, random_expr(w, seed, depth - 1));
  case 3: return expr_sub(c, a, random_expr(w, seed, depth - 1));
  case 4:
  case 5: return expr_mul(c, a, expr_index(c, factors[pick(seed, COUNT_OF(factors))]));
  case 6:
  case 7: return expr_floor_div(c, a, d);
  case 8:
  case 9: return expr_floor_mod(c, a, d);
  case 10: return expr_min(c, a, random_expr(w, seed, depth - 1));
  case 11: return expr_max(c, a, random_expr(w, seed, depth - 1));
  case 12: return expr_mul(c, a, random_expr(w, seed, depth - 2));
  default:
    return expr_select(c, random_condition(w, seed, depth - 1), a, random_expr(w, seed, depth - 1));
  }
}

#endif
