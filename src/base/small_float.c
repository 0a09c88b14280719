// SPDX-License-Identifier: Apache-2.0
// Floats of 8 and 16 bits, to and from double. The code of a non-negative number, read as an
// integer, is (exponent + bias - 1) * 2^mantissa_bits + significand, subnormals included, so a
// significand that rounds up to the next power of two carries into the exponent by itself.
#include "base/base.h"

#include <math.h>

const FloatFormat FLOAT_FORMAT_16 = {5, 10, true};
const FloatFormat FLOAT_FORMAT_BF16 = {8, 7, true};
const FloatFormat FLOAT_FORMAT_E4M3 = {4, 3, false};
const FloatFormat FLOAT_FORMAT_E5M2 = {5, 2, true};

int float_bias(FloatFormat format) {
  return (1 << (format.exponent_bits - 1)) - 1;
}

static uint32_t sign_bit(FloatFormat format) {
  return UINT32_C(1) << (format.exponent_bits + format.mantissa_bits);
}

uint32_t float_beyond(FloatFormat format) {
  uint32_t top = (UINT32_C(1) << format.exponent_bits) - 1;
  return format.has_infinity ? top << format.mantissa_bits : sign_bit(format) - 1;
}

double float_decode(FloatFormat format, uint32_t code) {
  uint32_t magnitude = code & (sign_bit(format) - 1), beyond = float_beyond(format);
  double sign = code & sign_bit(format) ? -1 : 1;
  if (magnitude == beyond && format.has_infinity) return sign * INFINITY;
  if (magnitude >= beyond) return copysign(NAN, sign);
  int exponent = (int)(magnitude >> format.mantissa_bits);
  uint32_t mantissa = magnitude & ((UINT32_C(1) << format.mantissa_bits) - 1);
  if (exponent) mantissa |= UINT32_C(1) << format.mantissa_bits;
  return sign * ldexp(mantissa, MAX_OF(exponent, 1) - float_bias(format) - format.mantissa_bits);
}

uint32_t float_encode(FloatFormat format, double value) {
  uint32_t sign = signbit(value) ? sign_bit(format) : 0, beyond = float_beyond(format);
  uint32_t quiet = format.has_infinity ? UINT32_C(1) << (format.mantissa_bits - 1) : 0;
  if (isnan(value)) return sign | beyond | quiet;
  if (value == 0) return sign;
  int bias = float_bias(format);
  if (isinf(value) || ilogb(value) > bias + 1) return sign | beyond;
  int exponent = MAX_OF(ilogb(value), 1 - bias);
  double significand = nearbyint(ldexp(fabs(value), format.mantissa_bits - exponent));
  uint32_t code = ((uint32_t)(exponent + bias - 1) << format.mantissa_bits) + (uint32_t)significand;
  return sign | MIN_OF(code, beyond);
}
