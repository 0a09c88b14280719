// SPDX-License-Identifier: Apache-2.0
// Declares what later folders use of the symbolic level: questions about layouts of symbolic
// extents, and polynomials over the symbols. True is proved; false leaves the question open.
#ifndef PLEAT_LAYOUT_SYMBOLIC_H
#define PLEAT_LAYOUT_SYMBOLIC_H

#include "layout/symbolic/poly.h"

// Whether the outputs of the layout equal `other` on its shape.
bool layout_symbolic_maps_equal(Context *context, const Layout *layout,
                                const LayoutExpr *const *other);
bool layout_symbolic_same_extent(Context *context, LayoutFacts facts, const LayoutExpr *a,
                                 const LayoutExpr *b);
// The same of each of several extents.
bool layout_symbolic_same_extents(Context *context, LayoutFacts facts, const LayoutExpr *const *a,
                                  const LayoutExpr *const *b, int count);
// Expressions over a box, simpler where that is found; `out` may be `exprs`.
void layout_symbolic_simplify(Context *context, LayoutFacts facts, const LayoutExpr *const *shape,
                              int rank, const LayoutExpr *const *exprs, int count,
                              const LayoutExpr **out);
bool layout_symbolic_inverse(Context *context, const Layout *layout, LayoutInverse *out);
// For each physical index a candidate for a logical index that is stored there; *proved says
// whether it always is.
bool layout_symbolic_section(Context *context, const Layout *layout, const LayoutExpr **section,
                             bool *proved);
// The physical extents: derived, or those of `given`. Gives -1, or the first output whose bounds
// are not proved.
int layout_symbolic_extents(Context *context, const Layout *layout, const LayoutExpr *const *given,
                            const LayoutExpr **physical);

// a - b of expressions of symbols, as a polynomial where it is one.
const LayoutExpr *layout_symbolic_difference(Context *context, LayoutFacts facts,
                                             const LayoutExpr *a, const LayoutExpr *b);

#endif
