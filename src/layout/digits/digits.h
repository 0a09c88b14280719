// SPDX-License-Identifier: Apache-2.0
// Declares what later folders use of the digits level: questions about static layouts without empty
// axes. Each function says what it proves, and leaves the rest to the enumeration of points.
#ifndef PLEAT_LAYOUT_DIGITS_H
#define PLEAT_LAYOUT_DIGITS_H

#include "layout/digits/form.h"

// Whether the maps agree on the box; NO sets the witness index.
Verdict layout_digits_maps_equal(Context *context, const int64_t *extents, int rank,
                                 const LayoutExpr *const *a, const LayoutExpr *const *b, int count,
                                 int64_t *witness);
// layout_expr_simplify of several expressions over one box.
void layout_digits_simplify(Context *context, const LayoutExpr *const *exprs, int count,
                            const int64_t *extents, int rank, const LayoutExpr **out);
// Whether every output stays within [0, extent).
bool layout_digits_inside(Context *context, const Layout *layout);
// The inverse and its padding predicate. They are checked by normal form, or, when `most` allows
// it, at all points; *level says which.
bool layout_digits_inverse(Context *context, const Layout *layout, LayoutLevel most,
                           LayoutInverse *out, LayoutLevel *level);
// For each physical index some logical index that is stored there, as expressions of the physical
// axes; `section` may be NULL.
bool layout_digits_section(Context *context, const Layout *layout, const LayoutExpr **section);
// A candidate for a map's inverse, and the properties that are proved of it (inverse.c).
typedef struct InverseCandidate {
  const LayoutExpr *indices[MAX_RANK];   // axis i as an expression of the physical indices
  const LayoutExpr *back[MAX_RANK];      // output i of the map at these, where misses[i]
  bool below[MAX_RANK], above[MAX_RANK]; // indices[i] may be negative, or not less than the extent
  bool misses[MAX_RANK];                 // output i at these may not be physical index i
} InverseCandidate;
// The inverse with its padding: the physical indices at which one of the flags comes true.
LayoutInverse layout_candidate_inverse(Context *context, const Layout *layout,
                                       const InverseCandidate *candidate);
// Whether no flag is set, so that the map sends some index to every physical index.
bool layout_candidate_is_section(const Layout *layout, const InverseCandidate *candidate);
// Two logical indices with one physical index, sought where the floors of the forms step.
bool layout_digits_collision(Context *context, const Layout *layout, int64_t *a, int64_t *b);
// The strides and the vector width from the form of the offset; false where it does not decide.
bool layout_digits_strides(Context *context, const Layout *layout, int64_t *strides,
                           bool *has_stride);
bool layout_digits_vector_width(Context *context, const Layout *layout, int axis, int64_t *width);
// The number of points of the box at which pairs[2k] = pairs[2k + 1] for all k < count
// (count_equal.c). False where the digits do not tell.
bool layout_digits_agreements(Context *context, const int64_t *box, int rank,
                              const LayoutExpr *const *pairs, int count, int64_t *out);

#endif
