// SPDX-License-Identifier: Apache-2.0
// Computes the greatest common divisor, and reads sizes of memory.
#include "base/base.h"

#include <stdlib.h>

int64_t gcd_of(int64_t a, int64_t b) {
  a = a < 0 ? -a : a;
  b = b < 0 ? -b : b;
  while (b) {
    int64_t r = a % b;
    a = b;
    b = r;
  }
  return a;
}

const char *bytes_scan(const char *text, int64_t *bytes) {
  static const char units[] = "KMG";
  size_t digits = strspn(text, "0123456789");
  const char *unit = text[digits] ? strchr(units, text[digits]) : NULL;
  if (digits == 0 || digits > 18) return NULL;
  int64_t scale = unit ? (int64_t)1024 << 10 * (unit - units) : 1;
  int64_t product;
  if (!mul_fits((int64_t)strtoull(text, NULL, 10), scale, &product)) return NULL;
  *bytes = product;
  return text + digits + (unit != NULL);
}

bool bytes_parse(const char *text, int64_t *bytes) {
  int64_t value;
  const char *end = bytes_scan(text, &value);
  if (!end || *end) return false;
  *bytes = value;
  return true;
}
