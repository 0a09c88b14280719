// SPDX-License-Identifier: Apache-2.0
// Converts small floats from and to float32 by integer arithmetic, for all formats at once. With m
// bits of mantissa and the bias b, the code of a number, read as an integer and shifted left by
// 23 - m, is the code of a float32 that is 2^(b - 127) times the number. This holds for subnormal
// numbers too.
#include "target/legalize.h"

#include <math.h>

static const DType u32 = {TYPE_UINT, 32, 1};
static const DType f32 = {TYPE_FLOAT, 32, 1};

// Infinities and NaNs keep their mantissa under the largest exponent of a float32.
static Expr *widen_magnitude(Legalizer *l, FloatFormat format, Expr *magnitude) {
  Expr *shifted =
      legal_make(l, EXPR_SHIFT_LEFT, magnitude, legal_int(l, magnitude, 23 - format.mantissa_bits));
  shifted = legal_hold(l, shifted);
  if (float_bias(format) == 127) return shifted;
  Expr *scaled = legal_reinterpret(l, f32, shifted);
  scaled =
      legal_make(l, EXPR_MUL, scaled, legal_const(l, scaled, ldexp(1, 127 - float_bias(format))));
  Expr *finite = legal_reinterpret(l, u32, scaled);
  if (format.one_zero || format.finite) return finite;
  Expr *special = legal_make(l, EXPR_BIT_OR, shifted, legal_int(l, shifted, 0x7f800000));
  Expr *beyond = legal_make(l, EXPR_GE, magnitude, legal_int(l, magnitude, float_beyond(format)));
  return legal_select(l, beyond, special, finite);
}

// A power of two is the exponent of a float32; 2^-127 is a subnormal number, and the last code NaN.
static Expr *widen_power(Legalizer *l, FloatFormat format, Expr *code) {
  Expr *shifted = legal_make(l, EXPR_SHIFT_LEFT, code, legal_int(l, code, 23));
  Expr *least = legal_make(l, EXPR_EQ, code, legal_int(l, code, 0));
  Expr *bits = legal_select(l, least, legal_int(l, code, 1 << 22), shifted);
  Expr *none = legal_make(l, EXPR_EQ, code, legal_int(l, code, float_beyond(format)));
  return legal_reinterpret(l, f32, legal_select(l, none, legal_int(l, code, 0x7fc00000), bits));
}

Expr *expand_widen(Legalizer *l, Expr *value) {
  DType type = dtype_lanes(value->type, 1);
  FloatFormat format = *dtype_small_float(type);
  int sign = format.exponent_bits + format.mantissa_bits;
  Expr *code = legal_cast(l, u32, legal_reinterpret(l, DTYPE(TYPE_UINT, type.bits), value));
  code = legal_hold(l, code);
  if (format.is_power) return widen_power(l, format, code);
  Expr *magnitude =
      legal_hold(l, legal_make(l, EXPR_BIT_AND, code, legal_int(l, code, (1 << sign) - 1)));
  Expr *negative = legal_make(l, EXPR_SHIFT_RIGHT, code, legal_int(l, code, sign));
  negative = legal_make(l, EXPR_SHIFT_LEFT, negative, legal_int(l, code, 31));
  magnitude = legal_make(l, EXPR_BIT_OR, widen_magnitude(l, format, magnitude), negative);
  if (format.one_zero) {
    Expr *none = legal_make(l, EXPR_EQ, code, legal_int(l, code, float_beyond(format)));
    magnitude = legal_select(l, none, legal_int(l, code, 0x7fc00000), magnitude);
  }
  return legal_reinterpret(l, f32, magnitude);
}

// Rounds to the nearest code by adding half of the last place, or one less when the last place is
// even already.
static Expr *narrow_normal(Legalizer *l, FloatFormat format, Expr *bits) {
  int dropped = 23 - format.mantissa_bits;
  Expr *odd = legal_make(l, EXPR_SHIFT_RIGHT, bits, legal_int(l, bits, dropped));
  odd = legal_make(l, EXPR_BIT_AND, odd, legal_int(l, bits, 1));
  Expr *rounded = legal_make(l, EXPR_ADD, bits, legal_int(l, bits, (1 << (dropped - 1)) - 1));
  rounded = legal_make(l, EXPR_ADD, rounded, odd);
  rounded = legal_make(l, EXPR_SHIFT_RIGHT, rounded, legal_int(l, bits, dropped));
  int64_t shift = (int64_t)(127 - float_bias(format)) << format.mantissa_bits;
  return legal_make(l, EXPR_SUB, rounded, legal_int(l, bits, shift));
}

// The hardware rounds a subnormal number when a power of two with the same last place is added.
static Expr *narrow_subnormal(Legalizer *l, FloatFormat format, Expr *absolute) {
  double magic = ldexp(1, 23 + 1 - float_bias(format) - format.mantissa_bits);
  Expr *sum = legal_make(l, EXPR_ADD, absolute, legal_const(l, absolute, magic));
  Expr *bits = legal_reinterpret(l, u32, sum);
  float base = (float)magic;
  int32_t base_bits;
  memcpy(&base_bits, &base, 4);
  return legal_make(l, EXPR_SUB, bits, legal_int(l, bits, base_bits));
}

// Half of the mantissa rounds up to the next power; a subnormal number has its leading bit one
// place lower. Zero, infinity, NaN and negative numbers have the codes before 1 and from infinity
// on.
static Expr *narrow_power(Legalizer *l, FloatFormat format, Expr *all) {
  Expr *subnormal = legal_make(l, EXPR_LT, all, legal_int(l, all, 1 << 23));
  Expr *half = legal_select(l, subnormal, legal_int(l, all, 1 << 21), legal_int(l, all, 1 << 22));
  Expr *code = legal_make(l, EXPR_ADD, all, half);
  code = legal_make(l, EXPR_SHIFT_RIGHT, code, legal_int(l, all, 23));
  Expr *before = legal_make(l, EXPR_SUB, all, legal_int(l, all, 1)); // zero becomes the greatest
  Expr *none = legal_make(l, EXPR_GE, before, legal_int(l, all, 0x7f800000 - 1));
  return legal_select(l, none, legal_int(l, all, float_beyond(format)), code);
}

Expr *expand_narrow(Legalizer *l, DType scalar, Expr *value) {
  FloatFormat format = *dtype_small_float(scalar);
  Expr *all = legal_hold(l, legal_reinterpret(l, u32, value));
  if (format.is_power)
    return legal_reinterpret(
        l, scalar, legal_cast(l, DTYPE(TYPE_UINT, scalar.bits), narrow_power(l, format, all)));
  Expr *bits = legal_hold(l, legal_make(l, EXPR_BIT_AND, all, legal_int(l, all, 0x7fffffff)));
  Expr *code = narrow_normal(l, format, bits);
  if (float_bias(format) != 127) {
    int64_t smallest = (int64_t)(127 + 1 - float_bias(format)) << 23; // the smallest normal number
    Expr *small = legal_make(l, EXPR_LT, bits, legal_int(l, bits, smallest));
    Expr *absolute = legal_reinterpret(l, f32, bits);
    code = legal_select(l, small, narrow_subnormal(l, format, absolute), code);
  }
  int64_t beyond = (int64_t)float_beyond(format) - format.finite,
          quiet = format.has_infinity ? 1 << (format.mantissa_bits - 1) : 0;
  code = legal_make(l, EXPR_MIN, code, legal_int(l, code, beyond));
  Expr *nan = legal_make(l, EXPR_GT, bits, legal_int(l, bits, 0x7f800000));
  if (format.finite) nan = legal_hold(l, nan);
  code = legal_select(l, nan, legal_int(l, code, format.finite ? 0 : beyond | quiet), code);
  if (format.one_zero || format.finite) code = legal_hold(l, code);
  Expr *sign = legal_make(l, EXPR_SHIFT_RIGHT, all, legal_int(l, all, 31));
  sign = legal_make(l, EXPR_SHIFT_LEFT, sign,
                    legal_int(l, all, format.exponent_bits + format.mantissa_bits));
  if (format.finite) sign = legal_select(l, nan, legal_int(l, code, 0), sign);
  if (format.one_zero)
    sign = legal_select(l, legal_make(l, EXPR_EQ, code, legal_int(l, code, 0)),
                        legal_int(l, code, 0), sign);
  code = legal_make(l, EXPR_BIT_OR, code, sign);
  return legal_reinterpret(l, scalar, legal_cast(l, DTYPE(TYPE_UINT, scalar.bits), code));
}
