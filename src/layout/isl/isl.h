// SPDX-License-Identifier: Apache-2.0
// Declares the isl level, which decides questions by Presburger relations. Without the library
// (isl_none.c), every answer is undecided.
#ifndef PLEAT_LAYOUT_ISL_H
#define PLEAT_LAYOUT_ISL_H

#include "layout/core/core.h"

typedef struct IslAnswer {
  Verdict verdict;
  const LayoutValue *values; // VERDICT_NO: values of the symbols at which the answer is no
  int count;
  const char *why; // VERDICT_UNDECIDED: the reason
} IslAnswer;

IslAnswer layout_isl_injective(Context *context, const Layout *layout);
IslAnswer layout_isl_onto(Context *context, const Layout *layout);
IslAnswer layout_isl_maps_equal(Context *context, const Layout *layout,
                                const LayoutExpr *const *other);
// The inverse and its padding predicate. False where there is none, or it is not found.
bool layout_isl_inverse(Context *context, const Layout *layout, LayoutInverse *out);

#endif
