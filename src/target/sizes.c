// SPDX-License-Identifier: Apache-2.0
// Widens the expressions of shapes to 64 bits. Sums and products of int32 values may wrap in the
// program and do no harm as long as the result fits; operands of divisions, extremes and casts, and
// the results, must fit int32 themselves.
#include "target/sizes.h"

#include <math.h>

enum { WIDEST_ADDRESS = 47 }; // bits; a tensor of more elements does not exist

static Expr *variable(const WideSizes *w, const Expr *e) {
  for (int i = 0; i < w->program->size_count; i++)
    if (w->program->sizes[i].var == e) return w->vars[i];
  return NULL;
}

// The number by which a division or remainder of any kind divides; 0 where it is not known to be
// positive.
static int64_t divisor(const Expr *e) {
  int64_t value = 0;
  switch (e->op) {
  case EXPR_FLOOR_DIV:
  case EXPR_FLOOR_MOD:
  case EXPR_TRUNC_DIV:
  case EXPR_TRUNC_MOD: return expr_as_int(e->args[1], &value) && value > 0 ? value : 0;
  case EXPR_SHIFT_RIGHT:
    return expr_as_int(e->args[1], &value) && value >= 0 && value < 31 ? (int64_t)1 << value : 0;
  case EXPR_BIT_AND:
    if (!expr_as_int(e->args[1], &value) || value < 0 || value > INT32_MAX) return 0;
    return (value & (value + 1)) == 0 ? value + 1 : 0;
  default: return 0;
  }
}

static bool is_remainder(const Expr *e) {
  return e->op == EXPR_FLOOR_MOD || e->op == EXPR_TRUNC_MOD || e->op == EXPR_BIT_AND;
}

static bool is_cast(const Expr *e) {
  return e->op == EXPR_CAST && e->type.code == TYPE_INT && e->args[0]->type.code == TYPE_INT &&
         e->type.bits >= e->args[0]->type.bits;
}

static bool is_sum_or_product(const Expr *e) {
  return e->op == EXPR_ADD || e->op == EXPR_SUB || e->op == EXPR_MUL;
}

static bool is_extreme(const Expr *e) {
  return e->op == EXPR_MIN || e->op == EXPR_MAX;
}

// ---- How large a value can be

static double magnitude(const WideSizes *w, const Expr *e, double most) {
  int64_t value;
  if (expr_as_int(e, &value)) return fabs((double)value);
  if (e->op == EXPR_VAR) return e->type.bits < 64 ? ldexp(1, 31) : most;
  if (is_cast(e)) return magnitude(w, e->args[0], most);
  if (divisor(e)) return is_remainder(e) ? (double)divisor(e) : magnitude(w, e->args[0], most);
  if (!is_sum_or_product(e) && !is_extreme(e)) return INFINITY;
  double a = magnitude(w, e->args[0], most), b = magnitude(w, e->args[1], most);
  if (is_extreme(e)) return fmax(a, b);
  return e->op == EXPR_MUL ? a * b : a + b;
}

static bool shapes_fit(const WideSizes *w, double most) {
  const TargetProgram *p = w->program;
  for (int i = 0; i < p->input_count + p->output_count; i++) {
    const TargetTensor *t = target_program_tensor(p, i);
    for (int k = 0; k < t->rank; k++)
      if (magnitude(w, t->shape[k], most) > ldexp(1, 62) ||
          (t->strides && magnitude(w, t->strides[k], most) > ldexp(1, 62)))
        return false;
    if (t->offset && magnitude(w, t->offset, most) > ldexp(1, 58)) return false;
  }
  return true;
}

static int64_t most_of_sizes(const WideSizes *w) {
  static const int bits[] = {WIDEST_ADDRESS, 31};
  for (int i = 0; i < COUNT_OF(bits); i++)
    if (shapes_fit(w, ldexp(1, bits[i]))) return ((int64_t)1 << bits[i]) - 1;
  return -1;
}

WideSizes wide_sizes_new(Context *context, const TargetProgram *program) {
  WideSizes w = {.context = context, .program = program};
  w.vars = arena_array(&context->arena, Expr *, program->size_count + 1);
  for (int i = 0; i < program->size_count; i++)
    w.vars[i] = expr_var(context, program->sizes[i].var->as.var->name, DTYPE_INT64);
  w.most = most_of_sizes(&w);
  return w;
}

// ---- Values

static Expr *widen(WideSizes *w, Expr *e);

Expr *wide_size(WideSizes *w, Expr *e) {
  Expr *wide = widen(w, e);
  if (wide && e->count && e->type.bits < 64) array_push(&w->context->arena, &w->parts, wide);
  return wide;
}

static Expr *divided(WideSizes *w, Expr *e) {
  Expr *dividend = wide_size(w, e->args[0]);
  Expr *by = expr_int(w->context, DTYPE_INT64, divisor(e));
  ExprOp op = is_remainder(e) ? EXPR_FLOOR_MOD : EXPR_FLOOR_DIV;
  if (e->op == EXPR_TRUNC_DIV || e->op == EXPR_TRUNC_MOD) op = e->op;
  return dividend ? expr_binary(w->context, op, dividend, by) : NULL;
}

static Expr *widen(WideSizes *w, Expr *e) {
  int64_t value;
  if (e->type.code != TYPE_INT || e->type.lanes != 1) return NULL;
  if (expr_as_int(e, &value)) return expr_int(w->context, DTYPE_INT64, value);
  if (e->op == EXPR_VAR) return variable(w, e);
  if (is_cast(e)) return wide_size(w, e->args[0]);
  if (divisor(e)) return divided(w, e);
  if (!is_sum_or_product(e) && !is_extreme(e)) return NULL;
  Expr *a = is_extreme(e) ? wide_size(w, e->args[0]) : widen(w, e->args[0]);
  Expr *b = is_extreme(e) ? wide_size(w, e->args[1]) : widen(w, e->args[1]);
  return a && b ? expr_binary(w->context, e->op, a, b) : NULL;
}

Expr *wide_size_float(WideSizes *w, Expr *e) {
  Context *context = w->context;
  int64_t value;
  if (expr_as_int(e, &value)) return expr_float(context, DTYPE_FLOAT64, (double)value);
  if (e->op == EXPR_VAR) return expr_cast(context, DTYPE_FLOAT64, variable(w, e));
  if (is_cast(e)) return wide_size_float(w, e->args[0]);
  if (divisor(e) && is_remainder(e)) return expr_float(context, DTYPE_FLOAT64, (double)divisor(e));
  Expr *a = wide_size_float(w, e->args[0]);
  if (divisor(e))
    return expr_binary(context, EXPR_DIV, a,
                       expr_float(context, DTYPE_FLOAT64, (double)divisor(e)));
  return expr_binary(context, e->op, a, wide_size_float(w, e->args[1]));
}

// ---- Programs

bool target_knows_sizes(Context *context, const TargetProgram *p) {
  WideSizes w = wide_sizes_new(context, p);
  bool known = w.most >= 0 && wide_size(&w, p->arena_bytes);
  for (int i = 0; known && i < p->size_count; i++)
    known = dtype_equal(p->sizes[i].var->type, DTYPE_INT32) ||
            dtype_equal(p->sizes[i].var->type, DTYPE_INT64);
  for (int i = 0; i < p->input_count + p->output_count; i++) {
    const TargetTensor *t = target_program_tensor(p, i);
    for (int k = 0; known && k < t->rank; k++)
      known = wide_size(&w, t->shape[k]) && (!t->strides || wide_size(&w, t->strides[k]));
    known = known && (!t->offset || wide_size(&w, t->offset));
  }
  return known;
}
