// SPDX-License-Identifier: Apache-2.0
// pleat-check < FILE checks one certificate. Its exit status is 0 when it accepts the certificate,
// else 1. It needs no other part of Pleat.
#include "layout/check/check.h"

#include <stdio.h>

int main(void) {
  static char text[1 << 24];
  int line = 1;
  size_t size = fread(text, 1, sizeof text, stdin);
  const char *wrong = size < sizeof text ? layout_check(text, &line) : "too long";
  if (!wrong) return puts("accepted") < 0;
  printf("rejected at line %d: %s\n", line, wrong);
  return 1;
}
