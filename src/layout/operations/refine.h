// SPDX-License-Identifier: Apache-2.0
// Common refinements of any number of functions of one box.
#ifndef PLEAT_LAYOUT_REFINE_H
#define PLEAT_LAYOUT_REFINE_H

#include "layout/core/internal.h"

// parts[k] are layouts of memory alone on one logical shape (as layout_on_resource gives them): the
// coarsest digits of the axes of which all their offsets are sums. weights[k] is for parts[k].
LayoutAnswer layout_refine_all(Context *context, const Layout *const *parts, int count,
                               LayoutRefinement *out);

#endif
