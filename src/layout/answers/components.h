// SPDX-License-Identifier: Apache-2.0
// The parts of layouts that fall apart.
#ifndef PLEAT_LAYOUT_PARTS_H
#define PLEAT_LAYOUT_PARTS_H

#include "layout/core/internal.h"

typedef struct LayoutPart {
  const Layout *layout;
  int axes[MAX_RANK], places[MAX_RANK]; // which of the whole its axes and its places are
} LayoutPart;

typedef struct LayoutParts {
  int count;
  const LayoutPart *items;
} LayoutParts;

// The parts of a layout without copies that share no axis; NULL where it is one.
const LayoutParts *layout_parts(Context *context, const Layout *layout);

typedef LayoutAnswer LayoutAskOne(Context *context, const Layout *layout);
// What is true of a layout when it is of every part: YES, NO with the witness (an index, or a
// place) of the part that says so, or what is undecided.
LayoutAnswer layout_parts_all(Context *context, const Layout *layout, const LayoutParts *parts,
                              LayoutAskOne *question, bool places);
// The inverses side by side. YES or undecided.
LayoutAnswer layout_parts_inverse(Context *context, const Layout *layout, const LayoutParts *parts,
                                  LayoutInverse *out);
// Some index for every place, of every part.
bool layout_parts_section(Context *context, const LayoutParts *parts, const LayoutExpr **section);
// Places of a static layout that hold an element. The number of places fits.
LayoutAnswer layout_parts_image(Context *context, const LayoutParts *parts, int64_t *out);
// Places that hold an element, where one axis is symbolic; NULL: not counted (image_size.c).
const LayoutExpr *layout_image_of_axis(Context *context, const Layout *layout);
// layout_at_offset, of a place.
LayoutAnswer layout_parts_index_at(Context *context, const LayoutParts *parts, const int64_t *place,
                                   int64_t *index);

#endif
