// SPDX-License-Identifier: Apache-2.0
// Computes the greatest common divisor.
#include "base/base.h"

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
