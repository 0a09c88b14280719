// SPDX-License-Identifier: Apache-2.0
// Declares what the files of this folder share (decide.c), and the functions by which they call
// each other.
#ifndef PLEAT_LAYOUT_DECIDE_H
#define PLEAT_LAYOUT_DECIDE_H

#include "layout/answers/answers.h"
#include "layout/digits/digits.h"
#include "layout/isl/isl.h"
#include "layout/points/points.h"
#include "layout/symbolic/symbolic.h"

// Up to FEW_POINTS points are enumerated before isl is asked.
enum { FEW_POINTS = 1 << 12 };

// A "no" with one index, or with two (`other` may be NULL).
LayoutAnswer layout_no_at(Context *context, const int64_t *index, const int64_t *other, int rank);
// Undecided: not proved for all values of the symbols, nor refuted at those that were tried.
LayoutAnswer layout_not_for_all(void);
// The same, with the reason of isl.
LayoutAnswer layout_not_by_isl(Context *context, const IslAnswer *said);
// Undecided: the physical indices of the layout cannot be counted.
LayoutAnswer layout_uncounted(const Layout *layout);
bool layout_has_few_points(const Layout *layout);
// The answer of isl. A "no" is asked again at the values that isl found, which gives the witness.
LayoutAnswer layout_from_isl(Context *context, const Layout *layout, IslAnswer said,
                             LayoutDecider *question);

// The answer to a question about one layout, from its cache or by its decider (answer.c).
LayoutAnswer layout_cached_answer(Context *context, const Layout *layout, CachedQuestion question);
// Passes a new answer of the cache to the check of builds that verify.
void layout_cache_answered(Context *context, const Layout *layout, CachedQuestion question);

// The deciders of CACHED_PADDING (padding.c) and of CACHED_INVERSE (inverse.c). The latter says yes
// or undecided: the decider of CACHED_INJECTIVE finds why there is no inverse.
LayoutDecider layout_decide_padding, layout_decide_inverse;
// Whether the extents are proved to be equal for all values of the layout's symbols (equality.c).
bool layout_same_extents(Context *context, const Layout *layout, const LayoutExpr *const *a,
                         const LayoutExpr *const *b, int count);
// Whether the condition of the inverse in the cache says that the physical index is padding.
bool layout_is_padding_at(const Layout *layout, const int64_t *position);

#endif
