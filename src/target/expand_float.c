// SPDX-License-Identifier: Apache-2.0
// Small floats from and to float32 by integer arithmetic, for all formats at once. With m bits of
// mantissa and the bias b, the code of a number, read as an integer and shifted left by 23 - m, is
// the code of a float32 that is 2^(b - 127) times the number, subnormals included.
#include "target/legalize.h"

#include <math.h>

static const DType u32 = {TYPE_UINT, 32, 1};
static const DType f32 = {TYPE_FLOAT, 32, 1};

// Infinities and NaNs keep their mantissa under the largest exponent of a float32.
static Expr *widen_magnitude(Legalizer *l, FloatFormat format, Expr *magnitude) {
  Expr *shifted =
      make(l, EXPR_SHIFT_LEFT, magnitude, like_int(l, magnitude, 23 - format.mantissa_bits));
  shifted = hold(l, shifted);
  if (float_bias(format) == 127) return shifted;
  Expr *scaled = make_reinterpret(l, f32, shifted);
  scaled = make(l, EXPR_MUL, scaled, like_const(l, scaled, ldexp(1, 127 - float_bias(format))));
  Expr *finite = make_reinterpret(l, u32, scaled);
  if (format.one_zero || format.finite) return finite;
  Expr *special = make(l, EXPR_BIT_OR, shifted, like_int(l, shifted, 0x7f800000));
  Expr *beyond = make(l, EXPR_GE, magnitude, like_int(l, magnitude, float_beyond(format)));
  return make_select(l, beyond, special, finite);
}

Expr *expand_widen(Legalizer *l, Expr *value) {
  DType type = dtype_lanes(value->type, 1);
  FloatFormat format = *dtype_small_float(type);
  int sign = format.exponent_bits + format.mantissa_bits;
  Expr *code = make_cast(l, u32, make_reinterpret(l, DTYPE(TYPE_UINT, type.bits), value));
  code = hold(l, code);
  Expr *magnitude = hold(l, make(l, EXPR_BIT_AND, code, like_int(l, code, (1 << sign) - 1)));
  Expr *negative = make(l, EXPR_SHIFT_RIGHT, code, like_int(l, code, sign));
  negative = make(l, EXPR_SHIFT_LEFT, negative, like_int(l, code, 31));
  magnitude = make(l, EXPR_BIT_OR, widen_magnitude(l, format, magnitude), negative);
  if (format.one_zero) {
    Expr *none = make(l, EXPR_EQ, code, like_int(l, code, float_beyond(format)));
    magnitude = make_select(l, none, like_int(l, code, 0x7fc00000), magnitude);
  }
  return make_reinterpret(l, f32, magnitude);
}

// Rounded to the nearest by adding half of the last place, one less where it is even already.
static Expr *narrow_normal(Legalizer *l, FloatFormat format, Expr *bits) {
  int dropped = 23 - format.mantissa_bits;
  Expr *odd = make(l, EXPR_SHIFT_RIGHT, bits, like_int(l, bits, dropped));
  odd = make(l, EXPR_BIT_AND, odd, like_int(l, bits, 1));
  Expr *rounded = make(l, EXPR_ADD, bits, like_int(l, bits, (1 << (dropped - 1)) - 1));
  rounded = make(l, EXPR_ADD, rounded, odd);
  rounded = make(l, EXPR_SHIFT_RIGHT, rounded, like_int(l, bits, dropped));
  int64_t shift = (int64_t)(127 - float_bias(format)) << format.mantissa_bits;
  return make(l, EXPR_SUB, rounded, like_int(l, bits, shift));
}

// Adding a power of two whose last place is that of the subnormals makes the hardware round.
static Expr *narrow_subnormal(Legalizer *l, FloatFormat format, Expr *absolute) {
  double magic = ldexp(1, 23 + 1 - float_bias(format) - format.mantissa_bits);
  Expr *sum = make(l, EXPR_ADD, absolute, like_const(l, absolute, magic));
  Expr *bits = make_reinterpret(l, u32, sum);
  float base = (float)magic;
  int32_t base_bits;
  memcpy(&base_bits, &base, 4);
  return make(l, EXPR_SUB, bits, like_int(l, bits, base_bits));
}

Expr *expand_narrow(Legalizer *l, DType scalar, Expr *value) {
  FloatFormat format = *dtype_small_float(scalar);
  Expr *all = hold(l, make_reinterpret(l, u32, value));
  Expr *bits = hold(l, make(l, EXPR_BIT_AND, all, like_int(l, all, 0x7fffffff)));
  Expr *code = narrow_normal(l, format, bits);
  if (float_bias(format) != 127) {
    int64_t smallest = (int64_t)(127 + 1 - float_bias(format)) << 23; // of the normal numbers
    Expr *small = make(l, EXPR_LT, bits, like_int(l, bits, smallest));
    Expr *absolute = make_reinterpret(l, f32, bits);
    code = make_select(l, small, narrow_subnormal(l, format, absolute), code);
  }
  int64_t beyond = (int64_t)float_beyond(format) - format.finite,
          quiet = format.has_infinity ? 1 << (format.mantissa_bits - 1) : 0;
  code = make(l, EXPR_MIN, code, like_int(l, code, beyond));
  Expr *nan = make(l, EXPR_GT, bits, like_int(l, bits, 0x7f800000));
  if (format.finite) nan = hold(l, nan);
  code = make_select(l, nan, like_int(l, code, format.finite ? 0 : beyond | quiet), code);
  if (format.one_zero || format.finite) code = hold(l, code);
  Expr *sign = make(l, EXPR_SHIFT_RIGHT, all, like_int(l, all, 31));
  sign =
      make(l, EXPR_SHIFT_LEFT, sign, like_int(l, all, format.exponent_bits + format.mantissa_bits));
  if (format.finite) sign = make_select(l, nan, like_int(l, code, 0), sign);
  if (format.one_zero)
    sign = make_select(l, make(l, EXPR_EQ, code, like_int(l, code, 0)), like_int(l, code, 0), sign);
  code = make(l, EXPR_BIT_OR, code, sign);
  return make_reinterpret(l, scalar, make_cast(l, DTYPE(TYPE_UINT, scalar.bits), code));
}
