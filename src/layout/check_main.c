// SPDX-License-Identifier: Apache-2.0
// pleat-check < FILE: checks one certificate. 0 accepted, 1 not. Needs no other part of Pleat.
#include "layout/check.h"

#include <stdio.h>

int main(void) {
  static char text[1 << 24], message[200];
  bool whole = fread(text, 1, sizeof text - 1, stdin) < sizeof text - 1;
  bool accepted = whole && layout_check(text, message, sizeof message);
  puts(whole ? message : "too long");
  return !accepted;
}
