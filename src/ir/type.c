// SPDX-License-Identifier: Apache-2.0
// Describes the element types: their sizes, names and encodings.
#include "ir/ir.h"

#include <ctype.h>
#include <stdlib.h>

// The names "int", "uint" and "float" are followed by a width; the other names include it. The
// first name of a type is printed.
static const struct {
  const char *name;
  uint8_t code, bits; // bits 0: written after the name
} type_names[] = {
    {"bool", TYPE_BOOL, 8},
    {"int", TYPE_INT, 0},
    {"uint", TYPE_UINT, 0},
    {"bfloat16", TYPE_BFLOAT, 16},
    {"float8_e4m3fn", TYPE_FLOAT8_E4M3, 8},
    {"float8_e4m3", TYPE_FLOAT8_E4M3, 8}, // older
    {"e4m3_float8", TYPE_FLOAT8_E4M3, 8}, // oldest
    {"float8_e5m2", TYPE_FLOAT8_E5M2, 8},
    {"e5m2_float8", TYPE_FLOAT8_E5M2, 8}, // oldest
    {"float8_e4m3fnuz", TYPE_FLOAT8_E4M3_FNUZ, 8},
    {"float8_e5m2fnuz", TYPE_FLOAT8_E5M2_FNUZ, 8},
    {"float8_e3m4", TYPE_FLOAT8_E3M4, 8},
    {"float8_e8m0fnu", TYPE_FLOAT8_E8M0, 8},
    {"float6_e2m3fn", TYPE_FLOAT6_E2M3, 6},
    {"float6_e3m2fn", TYPE_FLOAT6_E3M2, 6},
    {"float4_e2m1fn", TYPE_FLOAT4_E2M1, 4},
    {"float4_e2m1", TYPE_FLOAT4_E2M1, 4}, // older
    {"float", TYPE_FLOAT, 0},
    {"handle", TYPE_HANDLE, 64},
    {"void", TYPE_VOID, 0},
};

const FloatFormat *dtype_small_float(DType t) {
  if (t.code == TYPE_BFLOAT) return &FLOAT_FORMAT_BF16;
  if (t.code == TYPE_FLOAT8_E4M3) return &FLOAT_FORMAT_E4M3;
  if (t.code == TYPE_FLOAT8_E5M2) return &FLOAT_FORMAT_E5M2;
  if (t.code == TYPE_FLOAT8_E4M3_FNUZ) return &FLOAT_FORMAT_E4M3_FNUZ;
  if (t.code == TYPE_FLOAT8_E5M2_FNUZ) return &FLOAT_FORMAT_E5M2_FNUZ;
  if (t.code == TYPE_FLOAT8_E3M4) return &FLOAT_FORMAT_E3M4;
  if (t.code == TYPE_FLOAT8_E8M0) return &FLOAT_FORMAT_E8M0;
  if (t.code == TYPE_FLOAT6_E2M3) return &FLOAT_FORMAT_E2M3;
  if (t.code == TYPE_FLOAT6_E3M2) return &FLOAT_FORMAT_E3M2;
  if (t.code == TYPE_FLOAT4_E2M1) return &FLOAT_FORMAT_E2M1;
  return t.code == TYPE_FLOAT && t.bits == 16 ? &FLOAT_FORMAT_16 : NULL;
}

bool dtype_holds(DType t, int64_t value) {
  if (t.code == TYPE_BOOL) return value == 0 || value == 1;
  if (t.bits >= 64) return t.code == TYPE_INT || value >= 0;
  int64_t span = (int64_t)1 << (t.bits - (t.code == TYPE_INT));
  return value < span && value >= (t.code == TYPE_INT ? -span : 0);
}

int dtype_bytes(DType t) {
  return (t.bits + 7) / 8;
}

const char *dtype_name(Context *context, DType t) {
  for (int i = 0; i < COUNT_OF(type_names); i++) {
    if (type_names[i].code != t.code) continue;
    bool sized = !type_names[i].bits && t.code != TYPE_VOID;
    const char *base =
        sized ? str_format(context, "%s%d", type_names[i].name, t.bits) : type_names[i].name;
    if (dtype_is_scalable(t))
      return str_format(context, "%sxvscalex%d", base, t.lanes & ~DTYPE_SCALABLE);
    return t.lanes > 1 ? str_format(context, "%sx%d", base, t.lanes) : str_intern(context, base);
  }
  return "unknown";
}

static bool width_allowed(uint8_t code, long bits) {
  if (code == TYPE_FLOAT) return bits == 16 || bits == 32 || bits == 64;
  return bits == 1 || bits == 2 || bits == 4 || bits == 8 || bits == 16 || bits == 32 || bits == 64;
}

bool dtype_parse(const char *s, size_t n, DType *t) {
  char text[32];
  if (n >= sizeof text) return false;
  memcpy(text, s, n);
  text[n] = 0;
  for (int i = 0; i < COUNT_OF(type_names); i++) {
    size_t length = strlen(type_names[i].name);
    if (strncmp(text, type_names[i].name, length)) continue;
    char *rest = text + length;
    *t = DTYPE(type_names[i].code, type_names[i].bits);
    if (!t->bits && t->code != TYPE_VOID) {
      long bits = isdigit((unsigned char)*rest) ? strtol(rest, &rest, 10) : 0;
      if (!width_allowed(t->code, bits)) continue;
      t->bits = (uint8_t)bits;
    }
    bool is_scalable = !strncmp(rest, "xvscale", strlen("xvscale"));
    if (is_scalable) rest += strlen("xvscale");
    if (*rest == 'x' && isdigit((unsigned char)rest[1])) {
      long lanes = strtol(rest + 1, &rest, 10);
      if (lanes < 1 || lanes >= DTYPE_SCALABLE) return false;
      t->lanes = (uint16_t)(lanes | (is_scalable ? DTYPE_SCALABLE : 0));
    }
    if (!*rest) return true;
  }
  return false;
}
