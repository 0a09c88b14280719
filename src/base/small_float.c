// SPDX-License-Identifier: Apache-2.0
// Converts between double and floats of up to 16 bits. The code of a non-negative number, read as
// an integer, is (exponent + bias - 1) * 2^mantissa_bits + significand, for subnormals too. A
// significand that rounds up to the next power of two therefore carries into the exponent without a
// special case.
#include "base/base.h"

#include <math.h>

const FloatFormat FLOAT_FORMAT_16 = {5, 10, .has_infinity = true};
const FloatFormat FLOAT_FORMAT_BF16 = {8, 7, .has_infinity = true};
const FloatFormat FLOAT_FORMAT_E4M3 = {4, 3};
const FloatFormat FLOAT_FORMAT_E5M2 = {5, 2, .has_infinity = true};
const FloatFormat FLOAT_FORMAT_E4M3_FNUZ = {4, 3, .one_zero = true};
const FloatFormat FLOAT_FORMAT_E5M2_FNUZ = {5, 2, .one_zero = true};
const FloatFormat FLOAT_FORMAT_E3M4 = {3, 4, .has_infinity = true};
const FloatFormat FLOAT_FORMAT_E2M3 = {2, 3, .finite = true};
const FloatFormat FLOAT_FORMAT_E3M2 = {3, 2, .finite = true};
const FloatFormat FLOAT_FORMAT_E2M1 = {2, 1, .finite = true};
const FloatFormat FLOAT_FORMAT_E8M0 = {8, 0, .is_power = true};

int float_bias(FloatFormat format) {
  return (1 << (format.exponent_bits - 1)) - 1 + format.one_zero;
}

static uint32_t sign_bit(FloatFormat format) {
  return UINT32_C(1) << (format.exponent_bits + format.mantissa_bits);
}

uint32_t float_beyond(FloatFormat format) {
  uint32_t top = (UINT32_C(1) << format.exponent_bits) - 1;
  if (format.one_zero || format.finite) return sign_bit(format);
  return format.has_infinity ? top << format.mantissa_bits : sign_bit(format) - 1;
}

// The power of two with this code, from 2^-127 on; the last code is NaN.
static double decode_power(FloatFormat format, uint32_t code) {
  return code == float_beyond(format) ? NAN : ldexp(1, (int)code - float_bias(format));
}

// Numbers half way between two powers become the larger one.
static uint32_t encode_power(FloatFormat format, double value) {
  uint32_t beyond = float_beyond(format);
  if (!(value > 0) || isinf(value)) return beyond;
  int exponent;
  bool rounds_up = frexp(value, &exponent) >= 0.75;
  int64_t code = (int64_t)exponent - 1 + rounds_up + float_bias(format);
  return (uint32_t)MIN_OF(MAX_OF(code, 0), (int64_t)beyond);
}

double float_decode(FloatFormat format, uint32_t code) {
  if (format.is_power) return decode_power(format, code);
  uint32_t magnitude = code & (sign_bit(format) - 1), beyond = float_beyond(format);
  double sign = code & sign_bit(format) ? -1 : 1;
  if (format.one_zero && code == beyond) return NAN;
  if (magnitude == beyond && format.has_infinity) return sign * INFINITY;
  if (magnitude >= beyond) return copysign(NAN, sign);
  int exponent = (int)(magnitude >> format.mantissa_bits);
  uint32_t mantissa = magnitude & ((UINT32_C(1) << format.mantissa_bits) - 1);
  if (exponent) mantissa |= UINT32_C(1) << format.mantissa_bits;
  return sign * ldexp(mantissa, MAX_OF(exponent, 1) - float_bias(format) - format.mantissa_bits);
}

uint32_t float_encode(FloatFormat format, double value) {
  if (format.is_power) return encode_power(format, value);
  uint32_t sign = signbit(value) ? sign_bit(format) : 0, beyond = float_beyond(format);
  if (format.finite) beyond--;
  uint32_t quiet = format.has_infinity ? UINT32_C(1) << (format.mantissa_bits - 1) : 0;
  if (isnan(value)) return format.finite ? 0 : format.one_zero ? beyond : sign | beyond | quiet;
  if (value == 0) return format.one_zero ? 0 : sign;
  int bias = float_bias(format);
  if (isinf(value) || ilogb(value) > bias + 1) return format.one_zero ? beyond : sign | beyond;
  int exponent = MAX_OF(ilogb(value), 1 - bias);
  double significand = nearbyint(ldexp(fabs(value), format.mantissa_bits - exponent));
  uint32_t code = ((uint32_t)(exponent + bias - 1) << format.mantissa_bits) + (uint32_t)significand;
  if (format.one_zero && (code == 0 || code >= beyond)) return code ? beyond : 0;
  return sign | MIN_OF(code, beyond);
}
