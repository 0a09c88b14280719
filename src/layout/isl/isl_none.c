// SPDX-License-Identifier: Apache-2.0
// Replaces isl.c in builds without the library: every answer is undecided.
#include "layout/isl/isl.h"

static const IslAnswer none = {.verdict = VERDICT_UNDECIDED, .why = "Pleat is built without isl"};

IslAnswer layout_isl_injective(Context *context, const Layout *layout) {
  (void)context;
  (void)layout;
  return none;
}

IslAnswer layout_isl_onto(Context *context, const Layout *layout) {
  (void)context;
  (void)layout;
  return none;
}

IslAnswer layout_isl_maps_equal(Context *context, const Layout *layout,
                                const LayoutExpr *const *other) {
  (void)context;
  (void)layout;
  (void)other;
  return none;
}

bool layout_isl_inverse(Context *context, const Layout *layout, LayoutInverse *out) {
  (void)context;
  (void)layout;
  (void)out;
  return false;
}
