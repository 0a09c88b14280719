// SPDX-License-Identifier: Apache-2.0
// The independent checker of certificates (docs/layouts.md): it shares no code with the solver.
#ifndef PLEAT_LAYOUT_CHECK_H
#define PLEAT_LAYOUT_CHECK_H
#include <stdbool.h>
#include <stddef.h>
// Whether what the certificate claims is true. `message` (size > 0) receives one line: "accepted",
// or the line and the reason of the rejection.
bool layout_check(const char *text, char *message, size_t size);
#endif
