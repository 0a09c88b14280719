// SPDX-License-Identifier: Apache-2.0
// Declares the independent checker of certificates (docs/layouts.md). It shares no code with the
// solver.
#ifndef PLEAT_LAYOUT_CHECK_H
#define PLEAT_LAYOUT_CHECK_H
// NULL when the certificate is accepted, so that its claim is true. Otherwise the reason why it is
// rejected, at *line.
const char *layout_check(const char *text, int *line);
#endif
