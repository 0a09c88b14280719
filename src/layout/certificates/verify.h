// SPDX-License-Identifier: Apache-2.0
// Builds that verify (PLEAT_VERIFY_EACH) check what is made of small layouts. Other builds do
// nothing here.
#ifndef PLEAT_LAYOUT_VERIFY_H
#define PLEAT_LAYOUT_VERIFY_H

#include "layout/core/core.h"
#include "layout/answers/answers.h"

// Whether anything is checked now at all.
bool layout_verify_open(Context *context);

// ---- What is made of layouts (verify_made.c) ---------------------------------------------------

// Where an element, its copy `copy` lies by the definition of what was made.
typedef struct LayoutMade LayoutMade;
typedef bool LayoutLocate(const LayoutMade *made, const int64_t *index, const int64_t *copy,
                          int64_t *position);
struct LayoutMade {
  const char *what;
  LayoutLocate *locate;
  const Layout *layout; // that was made; NULL: none was
  const Layout *parts[2 * MAX_RANK + 1];
  int part_count;
  LayoutProduct kind;
  const LayoutExpr *const *low; // of slices; NULL: all 0
  const int64_t *step;          // NULL: all 1
  Str resource;                 // of a part
};
LayoutLocate layout_locate_sum, layout_locate_product, layout_locate_filled, layout_locate_tiled,
    layout_locate_reshaped, layout_locate_same, layout_locate_slice, layout_locate_flat,
    layout_locate_part;
// At all points, of symbolic extents on instances.
void layout_verify_made(Context *context, const LayoutMade *made);
void layout_verify_copies(Context *context, const Layout *layout, const Layout *copies);
void layout_verify_complement(Context *context, const Layout *layout, const LayoutExpr *size,
                              const Layout *made);
// That no index leaves the physical shape.
void layout_verify_inside(Context *context, const Layout *layout);
// At some points: maps have no box.
void layout_verify_composed(Context *context, const IndexMap *outer, const IndexMap *inner,
                            const IndexMap *made);
void layout_verify_simplified(Context *context, const LayoutExpr *e, const LayoutExpr *simple,
                              const int64_t *extents, int rank);

// Whether a certificate shows that there is an index for every place (certificate.c).
bool layout_section_is_shown(Context *context, const Layout *layout);
#endif
