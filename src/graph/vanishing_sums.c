// SPDX-License-Identifier: Apache-2.0
// Finds sums whose readers make small errors large where the sum is 0. A bilinear algorithm has
// rounding errors that are small relative to all results (bilinear_errors.h), but a single result
// whose exact value is 0, such as that of a padded row, becomes a small number. Most readers let it
// stay one. A reader that divides by the norm of a row does not:
//
//   y[i, k] = x[i, k] / max(sqrt(Σ_k x[i, k]²), 1e-12)      0 where x[i, :] is 0, else of length 1
//
// The values that depend on the sum are computed for a sum that is 0 everywhere. They are known
// where no other operand that is not known takes part: x + residual is not known, x * scale is 0.
// A constant that has a zero may hold it where the sum is 0, such as a bias.
#include "graph/vanishing_sums.h"

#include <math.h>

// A value that divides others changes them by at most 1 / LEAST_DIVISOR times its own error. The
// square root of 1e-5, which normalisations add to a variance, is above it.
static const double LEAST_DIVISOR = 1e-3;
enum { MOST_DEPENDENT = 2000, MOST_CONSTANT_ELEMENTS = 1 << 20 };

typedef struct Vanished {
  bool known, depends; // on the sum
  double value;        // when known
} Vanished;

typedef struct Vanishing {
  const StageGraph *stages;
  Map values;      // StageTensor* -> Vanished*, of tensors that depend on the sum and are known
  const Stage *at; // the stage whose value is computed
  Vanished so_far; // what its reduction holds
  bool matters;
} Vanishing;

static const Vanished UNKNOWN = {.known = false};

static Vanished known_value(double value, bool depends) {
  return (Vanished){.known = true, .depends = depends, .value = value};
}

// ---- Constants

// The data of a file begins at any byte.
static double element_of(const ConstData *data, int64_t i) {
  const char *at = (const char *)data->data + i * dtype_bytes(data->type);
  double wide;
  float narrow;
  if (data->type.bits == 64) {
    memcpy(&wide, at, sizeof wide);
    return wide;
  }
  memcpy(&narrow, at, sizeof narrow);
  return narrow;
}

// The number that is in all elements, or 0 when an element is 0 or might be.
static Vanished constant_value(const StageTensor *tensor) {
  const ConstData *data = tensor->data;
  if (!dtype_is_float(tensor->buffer->type)) return UNKNOWN;
  if (!data || !data->data || data->type.code != TYPE_FLOAT || data->type.bits < 32)
    return known_value(0, false);
  int64_t count = (int64_t)(data->bytes / (size_t)dtype_bytes(data->type));
  if (count < 1 || count > MOST_CONSTANT_ELEMENTS) return known_value(0, false);
  bool equal = true;
  for (int64_t i = 0; i < count; i++) {
    if (element_of(data, i) == 0) return known_value(0, false);
    equal &= element_of(data, i) == element_of(data, 0);
  }
  return equal ? known_value(element_of(data, 0), false) : UNKNOWN;
}

// ---- Values

static Vanished value_of(Vanishing *v, const Expr *e);

static Vanished load_value(const Vanishing *v, const Expr *e) {
  if (e->as.buffer == v->at->te->output) return v->so_far;
  const StageTensor *tensor = stage_tensor_of(v->stages, e->as.buffer);
  if (!tensor) return UNKNOWN;
  const Vanished *found = map_find(&v->values, tensor);
  if (found) return *found;
  return tensor->data || tensor->constant ? constant_value(tensor) : UNKNOWN;
}

static bool is_small(Vanished x) {
  return x.known && x.depends && fabs(x.value) < LEAST_DIVISOR;
}

// Notes what a function does with errors of its operands.
static void note_errors(Vanishing *v, ExprOp op, Vanished a, Vanished b) {
  switch (op) {
  case EXPR_DIV: v->matters |= is_small(b); break;
  case EXPR_RSQRT:
    v->matters |= a.known && a.depends && a.value < LEAST_DIVISOR * LEAST_DIVISOR;
    break;
  case EXPR_LOG:
  case EXPR_LOG2:
  case EXPR_LOG10: v->matters |= is_small(a); break;
  case EXPR_POW: v->matters |= is_small(a) && !(b.known && b.value >= 0); break;
  case EXPR_EQ:
  case EXPR_NE:
    v->matters |= a.known && b.known && (a.depends || b.depends) && a.value == b.value;
    break;
  default: break;
  }
}

static bool unary_value(ExprOp op, double x, double *out) {
  switch (op) {
  case EXPR_CAST:
  case EXPR_LIKELY: *out = x; return true;
  case EXPR_ABS: *out = fabs(x); return true;
  case EXPR_EXP: *out = exp(x); return true;
  case EXPR_LOG: *out = log(x); return true;
  case EXPR_LOG1P: *out = log1p(x); return true;
  case EXPR_SQRT: *out = sqrt(x); return true;
  case EXPR_RSQRT: *out = 1 / sqrt(x); return true;
  case EXPR_TANH: *out = tanh(x); return true;
  case EXPR_SIGMOID: *out = 1 / (1 + exp(-x)); return true;
  case EXPR_ERF: *out = erf(x); return true;
  case EXPR_NOT: *out = x == 0; return true;
  default: return false;
  }
}

static bool binary_value(ExprOp op, double x, double y, double *out) {
  switch (op) {
  case EXPR_ADD: *out = x + y; return true;
  case EXPR_SUB: *out = x - y; return true;
  case EXPR_MUL: *out = x * y; return true;
  case EXPR_DIV: *out = x / y; return true;
  case EXPR_MIN: *out = x < y ? x : y; return true;
  case EXPR_MAX: *out = x > y ? x : y; return true;
  case EXPR_POW: *out = pow(x, y); return true;
  case EXPR_EQ: *out = x == y; return true;
  case EXPR_NE: *out = x != y; return true;
  case EXPR_LT: *out = x < y; return true;
  case EXPR_LE: *out = x <= y; return true;
  case EXPR_GT: *out = x > y; return true;
  case EXPR_GE: *out = x >= y; return true;
  default: return false;
  }
}

static Vanished unary(Vanishing *v, const Expr *e) {
  Vanished a = value_of(v, e->args[0]);
  note_errors(v, e->op, a, UNKNOWN);
  a.known = a.known && unary_value(e->op, a.value, &a.value);
  return a;
}

// A product with 0 is 0, and so is 0 divided by what is not known.
static Vanished binary(Vanishing *v, const Expr *e) {
  Vanished a = value_of(v, e->args[0]), b = value_of(v, e->args[1]);
  bool depends = a.depends || b.depends;
  note_errors(v, e->op, a, b);
  if (!a.known || !b.known) {
    bool zero = (a.known && a.value == 0 && (e->op == EXPR_MUL || e->op == EXPR_DIV)) ||
                (b.known && b.value == 0 && e->op == EXPR_MUL);
    return zero ? known_value(0, depends) : UNKNOWN;
  }
  double value;
  return binary_value(e->op, a.value, b.value, &value) ? known_value(value, depends) : UNKNOWN;
}

// A condition on indices may hold in some places only.
static Vanished choice(Vanishing *v, const Expr *e) {
  Vanished condition = value_of(v, e->args[0]);
  Vanished a = value_of(v, e->args[1]), b = value_of(v, e->args[2]);
  if (condition.known) return condition.value != 0 ? a : b;
  return a.known && a.depends ? a : b.known && b.depends ? b : UNKNOWN;
}

static Vanished value_of(Vanishing *v, const Expr *e) {
  switch (e->op) {
  case EXPR_INT: return known_value((double)e->as.i, false);
  case EXPR_FLOAT: return known_value(e->as.f, false);
  case EXPR_LOAD: return load_value(v, e);
  case EXPR_SELECT:
  case EXPR_IF_THEN_ELSE: return choice(v, e);
  default: break;
  }
  OpClass class = op_table[e->op].class;
  bool computes = class == OP_ARITH || class == OP_COMPARE || class == OP_LOGIC || class == OP_MATH;
  if (op_table[e->op].arity == 2 && computes) return binary(v, e);
  if (op_table[e->op].arity == 1 && (computes || e->op == EXPR_CAST || e->op == EXPR_LIKELY))
    return unary(v, e);
  return UNKNOWN;
}

// ---- Stages

static double iterations_of(const TeStage *te) {
  double count = 1;
  int64_t extent;
  for (int a = te->axis_count; a < te->axis_count + te->reduce_count; a++)
    if (expr_as_int(te->axes[a].extent, &extent)) count *= (double)extent;
  return count;
}

static Vanished stage_value(Vanishing *v, const Stage *stage) {
  const TeStage *te = stage->te;
  v->at = stage;
  if (stage_is_ordered(stage) || te->program || te->call) return UNKNOWN;
  if (!te->init) return value_of(v, te->value);
  Vanished start = v->so_far = value_of(v, te->init);
  Vanished once = value_of(v, te->value);
  if (!start.known || !once.known) return UNKNOWN;
  if (te->value->op == EXPR_ADD)
    once.value = start.value + (once.value - start.value) * iterations_of(te);
  return once;
}

static void note_value(Vanishing *v, const StageTensor *tensor, Vanished value) {
  Arena *scratch = &v->stages->context->scratch;
  if (value.known && value.depends)
    map_put(&v->values, tensor, arena_copy(scratch, &value, sizeof value));
}

static bool reads_known(const Vanishing *v, const Stage *stage) {
  for (int i = 0; i < stage->reads.count; i++)
    if (map_find(&v->values, stage->reads.items[i])) return true;
  return false;
}

static int last_reader(const StageTensor *tensor) {
  int last = -1;
  for (int i = 0; i < tensor->users.count; i++)
    last = MAX_OF(last, ((const Stage *)tensor->users.items[i])->index);
  return last;
}

bool vanishing_sum_matters(StageGraph *s, const Stage *sum) {
  Vanishing v = {.stages = s, .values = map_new(&s->context->scratch)};
  note_value(&v, sum->output, known_value(0, true));
  int last = last_reader(sum->output), dependent = 0;
  for (int i = sum->index + 1; i <= last && !v.matters; i++) {
    const Stage *stage = s->stages.items[i];
    if (stage->serves || !reads_known(&v, stage)) continue;
    if (++dependent > MOST_DEPENDENT) return true;
    Vanished value = stage_value(&v, stage);
    note_value(&v, stage->output, value);
    if (value.known && value.depends) last = MAX_OF(last, last_reader(stage->output));
  }
  return v.matters;
}
