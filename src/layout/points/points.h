// SPDX-License-Identifier: Apache-2.0
// Declares the points level, which enumerates static domains.
#ifndef PLEAT_LAYOUT_POINTS_H
#define PLEAT_LAYOUT_POINTS_H

#include "layout/core/core.h"

enum { LANES = 256 };
static const int64_t POINT_LIMIT = (int64_t)1 << 22;

typedef struct PointDomain {
  const int64_t *extents;
  int rank;
  int64_t size;
} PointDomain;

// False when the box has more points than the limit.
bool layout_points_domain(const int64_t *extents, int rank, PointDomain *out);
// The index with a row-major ordinal.
const int64_t *layout_points_index(Context *context, const int64_t *extents, int rank,
                                   int64_t ordinal);
LayoutAnswer layout_points_over_limit(Context *context, const int64_t *extents, int rank);

// Whether all conditions (truth values) hold at every point of the box. Each condition is evaluated
// on the box of the axes that it reads.
LayoutAnswer layout_points_hold(Context *context, const int64_t *extents, int rank,
                                const LayoutExpr *const *conditions, int count);
// The number of points of the largest of these boxes.
int64_t layout_points_needed(const int64_t *extents, int rank, const LayoutExpr *const *conditions,
                             int count);
// The values of `e` in row-major order of the domain, whatever its size. False when one of them is
// undefined.
bool layout_domain_values(Context *context, const PointDomain *domain, const LayoutExpr *e,
                          int64_t *out);
// The values of `e` in row-major order of the box, in the scratch arena. *size is their number
// (`size` may be NULL). NULL when over the limit or somewhere undefined.
int64_t *layout_points_table(Context *context, const int64_t *extents, int rank,
                             const LayoutExpr *e, int64_t *size);
// Offsets with the ordinals of their points, by offset and then by ordinal, in the scratch arena.
typedef struct PointOffset {
  int64_t offset, ordinal;
} PointOffset;
const PointOffset *layout_points_sorted(Context *context, const int64_t *offsets, int64_t count);
// A "no" with the indices of two points.
LayoutAnswer layout_points_no(Context *context, const int64_t *extents, int rank, int64_t first,
                              int64_t second, const char *reason);

// The number of distinct physical indices, the ordinals of two colliding elements (first < 0: there
// are none), and the first offset that no element has (the physical size when each has one).
typedef struct PointImage {
  int64_t count, first, second, missing;
} PointImage;
bool layout_points_image(Context *context, const Layout *layout, PointImage *image);
// The inverse of an injective layout, in up to `most` pieces (piecewise_inverse.c). False where the
// layout is not injective, or has too many points or pieces.
bool layout_points_inverse(Context *context, const Layout *layout, int most, LayoutInverse *out);

#endif
