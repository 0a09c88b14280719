// SPDX-License-Identifier: Apache-2.0
// Evaluates operations: each operation is a table row with a function for signed integers, for
// unsigned integers, and for floats. Lanes are computed one after the other; every float result is
// rounded to its type, and every integer is wrapped.
#include "interp/program.h"

#include <math.h>

// ---- Arithmetic -------------------------------------------------------------------------------

#define EACH_LANE(...)                                                                             \
  InterpScalar *out = machine->frame + node->out;                                                  \
  DType type = node->type;                                                                         \
  for (int lane = 0; lane < node->lanes; lane++) __VA_ARGS__;                                      \
  (void)type;

// Defines a function of two operands' lanes. FIELD is the member of InterpScalar that is read;
// RESULT is the statement that stores the result.
#define BINARY(name, FIELD, RESULT)                                                                \
  static void name(Machine *machine, const InterpNode *node) {                                     \
    const InterpScalar *left = operand(machine, node, 0), *right = operand(machine, node, 1);      \
    EACH_LANE({                                                                                    \
      __typeof__(left->FIELD) a = left[lane].FIELD, b = right[lane].FIELD;                         \
      RESULT;                                                                                      \
    })                                                                                             \
  }
#define INT_BINARY(name, expression)                                                               \
  BINARY(name, i, out[lane].i = number_wrap(type, (int64_t)(expression)))
#define UINT_BINARY(name, expression)                                                              \
  BINARY(name, u, out[lane].i = number_wrap(type, (int64_t)(expression)))
#define FLOAT_BINARY(name, expression) BINARY(name, f, out[lane].f = number_round(type, expression))
#define TEST(name, FIELD, operator) BINARY(name, FIELD, out[lane].i = a operator b)

static int64_t power(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent & 1 ? -1 : 1) : 0;
  uint64_t result = 1, square = (uint64_t)base;
  for (; exponent; exponent >>= 1, square *= square)
    if (exponent & 1) result *= square;
  return (int64_t)result;
}

static int64_t divisor(Machine *machine, int lane, int64_t value) {
  if (value) return value;
  if (lane_counts(machine, lane)) machine_fail(machine, "division by zero");
  return 1;
}

static double keep_nan(double a, double b, double chosen) {
  return isnan(a) || isnan(b) ? NAN : chosen;
}

static double float_mod(double a, double b) {
  double rest = fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static int64_t trunc_div(int64_t a, int64_t b) {
  return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

INT_BINARY(int_add, (uint64_t)a + (uint64_t)b)
INT_BINARY(int_sub, (uint64_t)a - (uint64_t)b)
INT_BINARY(int_mul, (uint64_t)a *(uint64_t)b)
INT_BINARY(int_floor_div, b == -1 ? trunc_div(a, b) : floor_div(a, divisor(machine, lane, b)))
INT_BINARY(int_floor_mod, b == -1 ? 0 : floor_mod(a, divisor(machine, lane, b)))
INT_BINARY(int_trunc_div, trunc_div(a, divisor(machine, lane, b)))
INT_BINARY(int_trunc_mod, b == -1 ? 0 : a % divisor(machine, lane, b))
INT_BINARY(int_min, a < b ? a : b)
INT_BINARY(int_max, a > b ? a : b)
INT_BINARY(int_and, a &b)
INT_BINARY(int_or, a | b)
INT_BINARY(int_xor, a ^ b)

static int64_t dot_bytes(int64_t a, int64_t b) {
  int64_t sum = 0;
  for (int shift = 0; shift < 32; shift += 8)
    sum += (int64_t)(uint8_t)(a >> shift) * (int8_t)(uint8_t)(b >> shift);
  return sum;
}
INT_BINARY(int_dot_bytes, dot_bytes(a, b))
INT_BINARY(int_dot_words,
           (int64_t)(int16_t)a *(int16_t)b + (int64_t)(int16_t)(a >> 16) * (int16_t)(b >> 16))

INT_BINARY(int_shift_left, (uint64_t)a << (b & 63))
INT_BINARY(int_shift_right, a >> (b & 63))
INT_BINARY(int_pow, power(a, b))
UINT_BINARY(uint_div, a / (uint64_t)divisor(machine, lane, (int64_t)b))
UINT_BINARY(uint_mod, a % (uint64_t)divisor(machine, lane, (int64_t)b))
UINT_BINARY(uint_min, a < b ? a : b)
UINT_BINARY(uint_max, a > b ? a : b)
UINT_BINARY(uint_shift_right, a >> (b & 63))
FLOAT_BINARY(float_add, a + b)
FLOAT_BINARY(float_sub, a - b)
FLOAT_BINARY(float_mul, a *b)
FLOAT_BINARY(float_div, a / b)
FLOAT_BINARY(float_floor_div, floor(number_round(type, a / b)))
FLOAT_BINARY(float_floor_mod, float_mod(a, b))
FLOAT_BINARY(float_trunc_mod, fmod(a, b))
FLOAT_BINARY(float_min, keep_nan(a, b, b < a ? b : a))
FLOAT_BINARY(float_max, keep_nan(a, b, b > a ? b : a))
FLOAT_BINARY(float_pow, pow(a, b))
FLOAT_BINARY(float_atan2, atan2(a, b))
FLOAT_BINARY(float_hypot, hypot(a, b))
FLOAT_BINARY(float_copysign, copysign(a, b))
BINARY(float_nextafter, f, {
  bool single = type.code == TYPE_FLOAT && type.bits == 32;
  out[lane].f = single ? nextafterf((float)a, (float)b) : nextafter(a, b);
})
TEST(int_eq, i, ==)
TEST(int_ne, i, !=)
TEST(int_lt, i, <)
TEST(int_le, i, <=)
TEST(int_gt, i, >)
TEST(int_ge, i, >=)
TEST(uint_lt, u, <)
TEST(uint_le, u, <=)
TEST(uint_gt, u, >)
TEST(uint_ge, u, >=)
TEST(float_eq, f, ==)
TEST(float_ne, f, !=)
TEST(float_lt, f, <)
TEST(float_le, f, <=)
TEST(float_gt, f, >)
TEST(float_ge, f, >=)

void eval_sum(Machine *machine, const InterpNode *node) {
  uint64_t sum = (uint64_t)node->as.sum.constant;
  for (int i = 0; i < node->count; i++)
    sum += operand(machine, node, i)->u * (uint64_t)node->as.sum.factors[i];
  machine->frame[node->out].i = number_wrap(node->type, (int64_t)sum);
}

// ---- Logic and choice -------------------------------------------------------------------------

static void short_cut(Machine *machine, const InterpNode *node, int64_t decides) {
  InterpScalar *out = machine->frame + node->out;
  if (node->lanes == 1) {
    out->i = operand(machine, node, 0)->i;
    if (out->i != decides) out->i = operand(machine, node, 1)->i;
    return;
  }
  const InterpScalar *a = operand(machine, node, 0), *b = operand(machine, node, 1);
  for (int lane = 0; lane < node->lanes; lane++)
    out[lane].i = a[lane].i == decides ? decides : b[lane].i;
}

static void logic_and(Machine *machine, const InterpNode *node) {
  short_cut(machine, node, 0);
}

static void logic_or(Machine *machine, const InterpNode *node) {
  short_cut(machine, node, 1);
}

static void logic_not(Machine *machine, const InterpNode *node) {
  const InterpScalar *a = operand(machine, node, 0);
  EACH_LANE(out[lane].i = !a[lane].i)
}

static void int_not(Machine *machine, const InterpNode *node) {
  const InterpScalar *a = operand(machine, node, 0);
  EACH_LANE(out[lane].i = number_wrap(type, ~a[lane].i))
}

static void select_lanes(Machine *machine, const InterpNode *node) {
  const InterpScalar *c = operand(machine, node, 0);
  const InterpScalar *a = operand(machine, node, 1), *b = operand(machine, node, 2);
  int step = node->args[0]->lanes == 1 ? 0 : 1;
  EACH_LANE(out[lane] = c[lane * step].i ? a[lane] : b[lane])
}

// Evaluates one branch of a vector choice under a mask of the lanes that take it.
static const InterpScalar *branch_lanes(Machine *machine, const InterpNode *node,
                                        const InterpScalar *condition, bool taken,
                                        InterpScalar *mask) {
  const InterpScalar *outer = machine->mask;
  bool any = false;
  for (int lane = 0; lane < node->lanes; lane++) {
    mask[lane].i = (condition[lane].i != 0) == taken && (!outer || outer[lane].i);
    any |= mask[lane].i;
  }
  const InterpNode *branch = node->args[taken ? 1 : 2];
  if (!any) return machine->frame + branch->out;
  machine->mask = mask;
  const InterpScalar *value = node_value(machine, branch);
  machine->mask = outer;
  return value;
}

static void choose_lanes(Machine *machine, const InterpNode *node) {
  ArenaMark mark = arena_mark(machine->arena);
  InterpScalar *mask = arena_array(machine->arena, InterpScalar, node->lanes);
  const InterpScalar *c = operand(machine, node, 0);
  const InterpScalar *a = branch_lanes(machine, node, c, true, mask);
  const InterpScalar *b = branch_lanes(machine, node, c, false, mask);
  EACH_LANE(out[lane] = c[lane].i ? a[lane] : b[lane])
  arena_reset(machine->arena, mark);
}

static void if_then_else(Machine *machine, const InterpNode *node) {
  if (node->args[0]->lanes > 1) {
    choose_lanes(machine, node);
    return;
  }
  const InterpScalar *value = operand(machine, node, operand(machine, node, 0)->i ? 1 : 2);
  EACH_LANE(out[lane] = value[lane])
}

// ---- Casts ------------------------------------------------------------------------------------

static void cast_int_int(Machine *machine, const InterpNode *node) {
  const InterpScalar *a = operand(machine, node, 0);
  EACH_LANE(out[lane].i = number_wrap(type, a[lane].i))
}

// Rounds to odd: clears the low eleven bits, and sets bit 11 when any of them was set. The result
// fits a double exactly, and rounding that double to a narrower type rounds the integer correctly.
static uint64_t without_low_bits(uint64_t value) {
  return (value | ((value & 0x7ff) + 0x7ff)) & ~UINT64_C(0x7ff);
}

static double int_to_float(DType type, int64_t value) {
  if (type.bits == 32) return (double)(float)value;
  bool fits = value < INT64_C(1) << 53 && value > -(INT64_C(1) << 53);
  if (type.bits < 32 && !fits) value = (int64_t)without_low_bits((uint64_t)value);
  return number_round(type, (double)value);
}

static double uint_to_float(DType type, uint64_t value) {
  if (type.bits == 32) return (double)(float)value;
  if (type.bits < 32 && value >= UINT64_C(1) << 53) value = without_low_bits(value);
  return number_round(type, (double)value);
}

static void cast_int_float(Machine *machine, const InterpNode *node) {
  const InterpScalar *a = operand(machine, node, 0);
  EACH_LANE(out[lane].f = int_to_float(type, a[lane].i))
}

static void cast_uint_float(Machine *machine, const InterpNode *node) {
  const InterpScalar *a = operand(machine, node, 0);
  EACH_LANE(out[lane].f = uint_to_float(type, a[lane].u))
}

static void cast_float_float(Machine *machine, const InterpNode *node) {
  const InterpScalar *a = operand(machine, node, 0);
  EACH_LANE(out[lane].f = number_round(type, a[lane].f))
}

static void cast_float_int(Machine *machine, const InterpNode *node) {
  const InterpScalar *a = operand(machine, node, 0);
  EACH_LANE(out[lane].i = number_of_float(type, a[lane].f))
}

static void cast_float_bool(Machine *machine, const InterpNode *node) {
  const InterpScalar *a = operand(machine, node, 0);
  EACH_LANE(out[lane].i = a[lane].f != 0)
}

static EvalFn cast_function(DType from, DType to) {
  bool floats = dtype_is_float(from);
  if (dtype_is_float(to))
    return floats ? cast_float_float : from.code == TYPE_UINT ? cast_uint_float : cast_int_float;
  if (floats) return dtype_is_bool(to) ? cast_float_bool : cast_float_int;
  return cast_int_int;
}

static void reinterpret(Machine *machine, const InterpNode *node) {
  const InterpScalar *a = operand(machine, node, 0);
  const InterpNode *from = node->args[0];
  ArenaMark mark = arena_mark(machine->arena);
  int from_bytes = dtype_bytes(from->type), to_bytes = dtype_bytes(node->type);
  int bytes = MAX_OF(from_bytes * from->lanes, to_bytes * node->lanes);
  uint8_t *bits = arena_alloc(machine->arena, (size_t)bytes);
  for (int i = 0; i < from->lanes; i++)
    if (dtype_is_float(from->type))
      number_store(from->type, bits + i * from_bytes, a[i].f);
    else
      number_store_int(from->type, bits + i * from_bytes, a[i].i);
  EACH_LANE({
    const void *place = bits + lane * to_bytes;
    if (dtype_is_float(type))
      out[lane].f = number_load(type, place);
    else
      out[lane].i = number_load_int(type, place);
  })
  if (node->type.code == TYPE_HANDLE && out[0].i)
    machine_fail(machine, "a number is used as a pointer");
  arena_reset(machine->arena, mark);
}

// ---- Vectors ----------------------------------------------------------------------------------

// Evaluates without the mask an operand whose lanes do not correspond to the result's lanes.
static const InterpScalar *operand_unmasked(Machine *machine, const InterpNode *node, int i) {
  const InterpScalar *mask = machine->mask;
  machine->mask = NULL;
  const InterpScalar *value = operand(machine, node, i);
  machine->mask = mask;
  return value;
}

static void ramp(Machine *machine, const InterpNode *node) {
  const InterpScalar *base = operand_unmasked(machine, node, 0);
  const InterpScalar *stride = operand_unmasked(machine, node, 1);
  int inner = node->args[0]->lanes; // in a ramp of vectors, the base's lanes vary fastest
  EACH_LANE({
    uint64_t steps = (uint64_t)(lane / inner);
    out[lane].i = number_wrap(type, (int64_t)(base[lane % inner].u + steps * stride->u));
  })
}

static void broadcast(Machine *machine, const InterpNode *node) {
  const InterpScalar *value = operand_unmasked(machine, node, 0);
  int inner = node->args[0]->lanes;
  EACH_LANE(out[lane] = value[lane % inner])
}

static InterpScalar lane_of(const Machine *machine, const InterpNode *node, int number) {
  int i = 0;
  for (; number >= node->args[i]->lanes; i++) number -= node->args[i]->lanes;
  return machine->frame[node->args[i]->out + number];
}

static void shuffle(Machine *machine, const InterpNode *node) {
  for (int i = 0; i < node->count; i++) operand_unmasked(machine, node, i);
  EACH_LANE(out[lane] = lane_of(machine, node, node->as.lane_numbers[lane]))
}

#define REDUCE(name, FIELD, STEP, FINISH)                                                          \
  static void name(Machine *machine, const InterpNode *node) {                                     \
    const InterpScalar *x = operand_unmasked(machine, node, 0);                                    \
    DType type = node->type;                                                                       \
    (void)type;                                                                                    \
    InterpScalar sum = x[0];                                                                       \
    for (int lane = 1; lane < node->args[0]->lanes; lane++) {                                      \
      __typeof__(x->FIELD) a = sum.FIELD, b = x[lane].FIELD;                                       \
      sum.FIELD = STEP;                                                                            \
    }                                                                                              \
    machine->frame[node->out].FIELD = FINISH(type, sum.FIELD);                                     \
  }
#define WRAP(type, value) ((uint64_t)number_wrap(type, (int64_t)(value)))
#define KEEP(type, value) (value)

REDUCE(int_sum, u, a + b, WRAP)
REDUCE(int_least, i, MIN_OF(a, b), KEEP)
REDUCE(int_greatest, i, MAX_OF(a, b), KEEP)
REDUCE(uint_least, u, MIN_OF(a, b), KEEP)
REDUCE(uint_greatest, u, MAX_OF(a, b), KEEP)
REDUCE(float_sum, f, number_round(type, a + b), KEEP)
REDUCE(float_least, f, keep_nan(a, b, MIN_OF(a, b)), KEEP)
REDUCE(float_greatest, f, keep_nan(a, b, MAX_OF(a, b)), KEEP)

// ---- Functions of one float -------------------------------------------------------------------

static double rsqrt(double x) {
  return 1 / sqrt(x);
}

static double sigmoid(double x) {
  return 1 / (1 + exp(-x));
}

static void math_function(Machine *machine, const InterpNode *node) {
  const InterpScalar *a = operand(machine, node, 0);
  EACH_LANE(out[lane].f = number_round(type, node->as.math(a[lane].f)))
}

static void float_fma(Machine *machine, const InterpNode *node) {
  const InterpScalar *a = operand(machine, node, 0), *b = operand(machine, node, 1);
  const InterpScalar *c = operand(machine, node, 2);
  bool single = node->type.code == TYPE_FLOAT && node->type.bits == 32;
  EACH_LANE({
    double x = a[lane].f, y = b[lane].f, z = c[lane].f;
    if (single)
      out[lane].f = fmaf((float)x, (float)y, (float)z);
    else
      out[lane].f = number_round(type, fma(x, y, z));
  })
}

static void same_value(Machine *machine, const InterpNode *node) {
  const InterpScalar *a = operand(machine, node, 0);
  EACH_LANE(out[lane] = a[lane])
}

static void int_abs(Machine *machine, const InterpNode *node) {
  const InterpScalar *a = operand(machine, node, 0);
  EACH_LANE(out[lane].i = number_wrap(type, a[lane].i < 0 ? (int64_t)(0 - a[lane].u) : a[lane].i))
}

static void float_is_nan(Machine *machine, const InterpNode *node) {
  const InterpScalar *a = operand(machine, node, 0);
  EACH_LANE(out[lane].i = isnan(a[lane].f) != 0)
}

static void float_is_inf(Machine *machine, const InterpNode *node) {
  const InterpScalar *a = operand(machine, node, 0);
  EACH_LANE(out[lane].i = isinf(a[lane].f) != 0)
}

static void int_popcount(Machine *machine, const InterpNode *node) {
  const InterpScalar *a = operand(machine, node, 0);
  EACH_LANE(out[lane].i = __builtin_popcountll(a[lane].u & (~UINT64_C(0) >> (64 - type.bits))))
}

static double exp10_of(double x) {
  return pow(10, x);
}

static void nothing(Machine *machine, const InterpNode *node) {
  machine->frame[node->out].i = 0;
}

// ---- The table --------------------------------------------------------------------------------

typedef struct EvalRow {
  EvalFn ints, uints, floats; // by the first operand's type; uints NULL: same as ints
  double (*math)(double);     // called by math_function
} EvalRow;

#define MATH(f) {NULL, NULL, math_function, f}
#define ANY(f) {f, f, f, NULL}

static const EvalRow rows[EXPR_OP_COUNT] = {
    [EXPR_ADD] = {int_add, NULL, float_add},
    [EXPR_SUB] = {int_sub, NULL, float_sub},
    [EXPR_MUL] = {int_mul, NULL, float_mul},
    [EXPR_DIV] = {int_trunc_div, uint_div, float_div},
    [EXPR_FLOOR_DIV] = {int_floor_div, uint_div, float_floor_div},
    [EXPR_FLOOR_MOD] = {int_floor_mod, uint_mod, float_floor_mod},
    [EXPR_TRUNC_DIV] = {int_trunc_div, uint_div, NULL},
    [EXPR_TRUNC_MOD] = {int_trunc_mod, uint_mod, float_trunc_mod},
    [EXPR_MIN] = {int_min, uint_min, float_min},
    [EXPR_MAX] = {int_max, uint_max, float_max},
    [EXPR_EQ] = {int_eq, NULL, float_eq},
    [EXPR_NE] = {int_ne, NULL, float_ne},
    [EXPR_LT] = {int_lt, uint_lt, float_lt},
    [EXPR_LE] = {int_le, uint_le, float_le},
    [EXPR_GT] = {int_gt, uint_gt, float_gt},
    [EXPR_GE] = {int_ge, uint_ge, float_ge},
    [EXPR_AND] = {logic_and},
    [EXPR_OR] = {logic_or},
    [EXPR_NOT] = {logic_not},
    [EXPR_BIT_AND] = {int_and},
    [EXPR_BIT_OR] = {int_or},
    [EXPR_BIT_XOR] = {int_xor},
    [EXPR_BIT_NOT] = {int_not},
    [EXPR_POPCOUNT] = {int_popcount},
    [EXPR_LIKELY] = ANY(same_value),
    [EXPR_DOT_BYTES] = {int_dot_bytes},
    [EXPR_DOT_WORDS] = {int_dot_words},
    [EXPR_SHIFT_LEFT] = {int_shift_left},
    [EXPR_SHIFT_RIGHT] = {int_shift_right, uint_shift_right},
    [EXPR_SELECT] = ANY(select_lanes),
    [EXPR_IF_THEN_ELSE] = ANY(if_then_else),
    [EXPR_REINTERPRET] = ANY(reinterpret),
    [EXPR_RAMP] = {ramp},
    [EXPR_BROADCAST] = ANY(broadcast),
    [EXPR_VECTOR_SUM] = {int_sum, NULL, float_sum},
    [EXPR_VECTOR_MIN] = {int_least, uint_least, float_least},
    [EXPR_VECTOR_MAX] = {int_greatest, uint_greatest, float_greatest},
    [EXPR_FMA] = {NULL, NULL, float_fma},
    [EXPR_ABS] = {int_abs, same_value, math_function, fabs},
    [EXPR_EXP] = MATH(exp),
    [EXPR_EXP10] = MATH(exp10_of),
    [EXPR_FMOD] = {NULL, NULL, float_trunc_mod},
    [EXPR_ATAN2] = {NULL, NULL, float_atan2},
    [EXPR_HYPOT] = {NULL, NULL, float_hypot},
    [EXPR_COPYSIGN] = {NULL, NULL, float_copysign},
    [EXPR_NEXTAFTER] = {NULL, NULL, float_nextafter},
    [EXPR_ROUND_AWAY] = MATH(round),
    [EXPR_EXP2] = MATH(exp2),
    [EXPR_LOG] = MATH(log),
    [EXPR_LOG2] = MATH(log2),
    [EXPR_LOG10] = MATH(log10),
    [EXPR_LOG1P] = MATH(log1p),
    [EXPR_SQRT] = MATH(sqrt),
    [EXPR_RSQRT] = MATH(rsqrt),
    [EXPR_POW] = {int_pow, NULL, float_pow},
    [EXPR_FLOOR] = MATH(floor),
    [EXPR_CEIL] = MATH(ceil),
    [EXPR_TRUNC] = MATH(trunc),
    [EXPR_ROUND] = MATH(nearbyint),
    [EXPR_TANH] = MATH(tanh),
    [EXPR_SIGMOID] = MATH(sigmoid),
    [EXPR_ERF] = MATH(erf),
    [EXPR_SIN] = MATH(sin),
    [EXPR_COS] = MATH(cos),
    [EXPR_TAN] = MATH(tan),
    [EXPR_ASIN] = MATH(asin),
    [EXPR_ACOS] = MATH(acos),
    [EXPR_ATAN] = MATH(atan),
    [EXPR_SINH] = MATH(sinh),
    [EXPR_COSH] = MATH(cosh),
    [EXPR_ASINH] = MATH(asinh),
    [EXPR_ACOSH] = MATH(acosh),
    [EXPR_ATANH] = MATH(atanh),
    [EXPR_ISNAN] = {NULL, NULL, float_is_nan},
    [EXPR_ISINF] = {NULL, NULL, float_is_inf},
    [EXPR_PREFETCH] = ANY(nothing),
};

// Selects the function by the first operand's type. For a choice that operand is the condition, and
// its row has one function for all types.
EvalFn eval_function(const Expr *e, InterpNode *node) {
  if (e->op == EXPR_CAST) return cast_function(e->args[0]->type, e->type);
  if (e->op == EXPR_SHUFFLE) return shuffle;
  if (!e->count) return NULL;
  const EvalRow *row = &rows[e->op];
  DType from = e->args[0]->type;
  node->as.math = row->math;
  if (dtype_is_float(from)) return row->floats;
  return from.code == TYPE_UINT && row->uints ? row->uints : row->ints;
}
