// SPDX-License-Identifier: Apache-2.0
// The independent checker of certificates (docs/layouts.md). It shares no code with the solver and
// needs the C library only, so that it can be read, built and trusted alone.
#ifndef PLEAT_LAYOUT_CHECK_H
#define PLEAT_LAYOUT_CHECK_H

#include <stddef.h>

typedef enum CheckVerdict {
  CHECK_ACCEPTED, // what the certificate claims is true
  CHECK_TRUSTED,  // the certificate only names a library that said so
  CHECK_REJECTED, // it proves nothing
} CheckVerdict;

// Checks one certificate, a terminated text. `message` (size > 0) receives one line: what was
// accepted, or the line and the reason of the rejection.
CheckVerdict layout_check(const char *text, char *message, size_t size);

#endif
