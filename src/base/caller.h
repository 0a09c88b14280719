// SPDX-License-Identifier: Apache-2.0
// Declares how messages name what a caller can give: as options of the command, fields of a request
// in C, or arguments in Python.
#ifndef PLEAT_BASE_CALLER_H
#define PLEAT_BASE_CALLER_H

#include "base/base.h"

typedef enum CallerOption {
  CALLER_KEEP_LAYOUT,
  CALLER_INPUT_LAYOUT,
  CALLER_KNOWN,  // the values of inputs that the compiler must know
  CALLER_TARGET, // these five are of files that are written
  CALLER_WEIGHTS,
  CALLER_OPENMP,
  CALLER_LOWERED,
  CALLER_ANNOTATE,
  CALLER_OPERATORS,
  CALLER_OFFLOAD,
} CallerOption;
// The name of an option, such as "--keep-layout", "keep_layouts" or "keep_layouts=".
const char *caller_option(const Context *context, CallerOption option);
// How the caller states that `name` has a shape: "--input-shape x=1x3", "x=1x3" in shapes, or
// shapes={"x": (1, 3)}. `shape` is a text such as "1x3", or the word "empty" or "none".
const char *caller_shape(Context *context, const char *name, const char *shape);
// The same for the size of a free dimension: "--dim n=4".
const char *caller_size(Context *context, const char *name, int64_t size);

#endif
