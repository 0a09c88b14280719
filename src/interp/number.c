// SPDX-License-Identifier: Apache-2.0
// Rounds, wraps and encodes numbers of every element type, for the values that the interpreter
// stores.
#include "interp/interp.h"

#include <math.h>

double number_round_small(DType type, double value) {
  FloatFormat format = *dtype_small_float(type);
  return float_decode(format, float_encode(format, value));
}

// The whole part; NaN and numbers beyond the integers of `bits` bits give the least of these.
static int64_t whole_part(double value, int bits) {
  double limit = ldexp(1, bits - 1);
  return value > -limit - 1 && value < limit ? (int64_t)value : (int64_t)-limit;
}

int64_t number_of_float(DType type, double value) {
  int bits = type.bits > 32 ? 64 : 32;
  double half = ldexp(1, bits - 1);
  if (type.code == TYPE_UINT && type.bits >= 32 && value >= half)
    return number_wrap(type, whole_part(value - half, bits) ^ (int64_t)-half);
  return number_wrap(type, whole_part(value, bits));
}

uint64_t number_bits(DType type, double value) {
  uint64_t bits = 0;
  float single = (float)value;
  if (type.bits == 32) return memcpy(&bits, &single, 4), bits;
  if (type.bits == 64) return memcpy(&bits, &value, 8), bits;
  return float_encode(*dtype_small_float(type), value);
}

void number_store_int(DType type, void *data, int64_t value) {
  int64_t wrapped = number_wrap(type, value);
  memcpy(data, &wrapped, (size_t)dtype_bytes(dtype_lanes(type, 1)));
}

double number_load_small(DType type, const void *data) {
  uint64_t bits = 0;
  memcpy(&bits, data, (size_t)dtype_bytes(dtype_lanes(type, 1)));
  return float_decode(*dtype_small_float(type), (uint32_t)bits);
}

double number_load(DType type, const void *data) {
  if (dtype_is_float(type)) return number_load_float(type, data);
  int64_t value = number_load_int(type, data);
  return type.code == TYPE_UINT ? (double)(uint64_t)value : (double)value;
}

void number_store(DType type, void *data, double value) {
  if (dtype_is_float(type)) {
    uint64_t bits = number_bits(type, value);
    memcpy(data, &bits, (size_t)dtype_bytes(dtype_lanes(type, 1)));
  } else if (type.code == TYPE_UINT && value >= 0x1p63) {
    number_store_int(type, data, (int64_t)(uint64_t)value);
  } else {
    number_store_int(type, data, (int64_t)value);
  }
}
