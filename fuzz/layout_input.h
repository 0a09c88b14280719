// SPDX-License-Identifier: Apache-2.0
// Reads an input of the layout fuzzers: the tensor's shape on the first line, `8x64` or `Nx4`, and
// the layout after it. An input without a line break is only a map, of any rank.
#ifndef PLEAT_FUZZ_LAYOUT_INPUT_H
#define PLEAT_FUZZ_LAYOUT_INPUT_H

#include "layout/layout.h"

enum { MOST_AXES = 12, MOST_BYTES = 4096 };

typedef struct LayoutInput {
  Context *context;
  const char *text;
  size_t size;
  int rank; // -1: the input has no shape
  const LayoutExpr *shape[MOST_AXES];
} LayoutInput;

// Makes a private copy in the context, so that a sanitizer finds a read past its end. False when
// the text is not an input.
bool layout_input_read(Context *context, const uint8_t *data, size_t size, LayoutInput *out);
// Runs check(input) on a context of its own; aborts on an internal fault.
int layout_input_run(const uint8_t *data, size_t size, void (*check)(LayoutInput *input));
// Aborts with the input's text and the reason unless `good` is true.
void layout_input_require(const LayoutInput *input, bool good, const char *what);

#endif
