// SPDX-License-Identifier: Apache-2.0
// Describes element types: their names and sizes, and single elements from and to double. Every
// element survives the way through double unchanged, except 64-bit integers beyond 2^53.
#include "runtime/runtime.h"

#include <math.h>

// A type and the vectors of it.
#define TYPE(NAME, CODE, BITS)                                                                     \
  {NAME, {CODE, BITS, 1}}, {NAME "x2", {CODE, BITS, 2}}, {NAME "x4", {CODE, BITS, 4}},             \
      {NAME "x8", {CODE, BITS, 8}}, {NAME "x16", {CODE, BITS, 16}},                                \
      {NAME "x32", {CODE, BITS, 32}}, {                                                            \
    NAME "x64", {CODE, BITS, 64}                                                                   \
  }

static const struct {
  const char *name;
  ElementType type;
} names[] = {
    TYPE("bool", ELEMENT_BOOL, 8),
    TYPE("int2", ELEMENT_INT, 2),
    TYPE("int4", ELEMENT_INT, 4),
    TYPE("int8", ELEMENT_INT, 8),
    TYPE("int16", ELEMENT_INT, 16),
    TYPE("int32", ELEMENT_INT, 32),
    TYPE("int64", ELEMENT_INT, 64),
    TYPE("uint2", ELEMENT_UINT, 2),
    TYPE("uint4", ELEMENT_UINT, 4),
    TYPE("uint8", ELEMENT_UINT, 8),
    TYPE("uint16", ELEMENT_UINT, 16),
    TYPE("uint32", ELEMENT_UINT, 32),
    TYPE("uint64", ELEMENT_UINT, 64),
    TYPE("float16", ELEMENT_FLOAT, 16),
    TYPE("float32", ELEMENT_FLOAT, 32),
    TYPE("float64", ELEMENT_FLOAT, 64),
    TYPE("bfloat16", ELEMENT_BFLOAT, 16),
    TYPE("float8_e4m3fn", ELEMENT_FLOAT8_E4M3, 8),
    TYPE("float8_e4m3", ELEMENT_FLOAT8_E4M3, 8), // older
    TYPE("float8_e5m2", ELEMENT_FLOAT8_E5M2, 8),
    TYPE("float8_e4m3fnuz", ELEMENT_FLOAT8_E4M3_FNUZ, 8),
    TYPE("float8_e5m2fnuz", ELEMENT_FLOAT8_E5M2_FNUZ, 8),
    TYPE("float8_e3m4", ELEMENT_FLOAT8_E3M4, 8),
    TYPE("float8_e8m0fnu", ELEMENT_FLOAT8_E8M0, 8),
    TYPE("float6_e2m3fn", ELEMENT_FLOAT6_E2M3, 6),
    TYPE("float6_e3m2fn", ELEMENT_FLOAT6_E3M2, 6),
    TYPE("float4_e2m1fn", ELEMENT_FLOAT4_E2M1, 4),
    TYPE("float4_e2m1", ELEMENT_FLOAT4_E2M1, 4), // older
    TYPE("handle", ELEMENT_HANDLE, 64),
};
#undef TYPE

bool element_type_equal(ElementType a, ElementType b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

bool element_type_parse(const char *name, ElementType *type) {
  for (int i = 0; i < COUNT_OF(names); i++)
    if (strcmp(names[i].name, name) == 0) {
      *type = names[i].type;
      return true;
    }
  return false;
}

const char *element_type_name(ElementType type) {
  for (int i = 0; i < COUNT_OF(names); i++)
    if (element_type_equal(names[i].type, type)) return names[i].name;
  return "unknown";
}

int64_t element_bytes(ElementType type) {
  return (type.bits + 7) / 8 * (int64_t)type.lanes;
}

static const FloatFormat *small_format(ElementType type) {
  if (type.code == ELEMENT_FLOAT && type.bits == 16) return &FLOAT_FORMAT_16;
  if (type.code == ELEMENT_BFLOAT) return &FLOAT_FORMAT_BF16;
  if (type.code == ELEMENT_FLOAT8_E4M3) return &FLOAT_FORMAT_E4M3;
  if (type.code == ELEMENT_FLOAT8_E5M2) return &FLOAT_FORMAT_E5M2;
  if (type.code == ELEMENT_FLOAT8_E4M3_FNUZ) return &FLOAT_FORMAT_E4M3_FNUZ;
  if (type.code == ELEMENT_FLOAT8_E5M2_FNUZ) return &FLOAT_FORMAT_E5M2_FNUZ;
  if (type.code == ELEMENT_FLOAT8_E3M4) return &FLOAT_FORMAT_E3M4;
  if (type.code == ELEMENT_FLOAT8_E8M0) return &FLOAT_FORMAT_E8M0;
  if (type.code == ELEMENT_FLOAT6_E2M3) return &FLOAT_FORMAT_E2M3;
  if (type.code == ELEMENT_FLOAT6_E3M2) return &FLOAT_FORMAT_E3M2;
  if (type.code == ELEMENT_FLOAT4_E2M1) return &FLOAT_FORMAT_E2M1;
  return NULL;
}

static uint64_t load_bits(const void *place, int64_t bytes) {
  uint64_t bits = 0;
  memcpy(&bits, place, (size_t)bytes);
  return bits;
}

static double get_integer(ElementType type, uint64_t bits) {
  if (type.code != ELEMENT_INT) return (double)bits;
  int unused = 64 - 8 * (int)element_bytes(type);
  return (double)((int64_t)(bits << unused) >> unused);
}

double element_get(ElementType type, const void *place) {
  const FloatFormat *format = small_format(type);
  uint64_t bits = load_bits(place, element_bytes(type));
  if (format) return float_decode(*format, (uint32_t)bits);
  if (type.code != ELEMENT_FLOAT) return get_integer(type, bits);
  float single;
  double real;
  memcpy(&single, &bits, sizeof single);
  memcpy(&real, &bits, sizeof real);
  return type.bits == 32 ? (double)single : real;
}

// The integer of the type nearest to `value`; NaN is 0.
static uint64_t integer_bits(ElementType type, double value) {
  bool is_signed = type.code == ELEMENT_INT;
  int bits = type.code == ELEMENT_BOOL ? 1 : type.bits - is_signed;
  double limit = ldexp(1, bits);
  value = isnan(value) ? 0 : nearbyint(value);
  if (value >= limit) return bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
  if (value < 0) return is_signed ? (uint64_t)(int64_t)MAX_OF(value, -limit) : 0;
  return (uint64_t)value;
}

static uint64_t float_bits(ElementType type, double value) {
  float single = (float)value;
  return type.bits == 32 ? load_bits(&single, 4) : load_bits(&value, 8);
}

void element_set(ElementType type, void *place, double value) {
  const FloatFormat *format = small_format(type);
  uint64_t bits = format                       ? float_encode(*format, value)
                  : type.code == ELEMENT_FLOAT ? float_bits(type, value)
                                               : integer_bits(type, value);
  memcpy(place, &bits, (size_t)element_bytes(type));
}
