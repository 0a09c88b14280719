// SPDX-License-Identifier: Apache-2.0
// The parts of layouts that fall apart.
#ifndef PLEAT_LAYOUT_COMPONENTS_H
#define PLEAT_LAYOUT_COMPONENTS_H

#include "layout/core/internal.h"

typedef struct LayoutComponent {
  const Layout *layout;
  int axes[MAX_RANK], positions[MAX_RANK]; // which of the whole its axes and its places are
} LayoutComponent;

typedef struct LayoutComponents {
  int count;
  const LayoutComponent *items;
} LayoutComponents;

// The parts of a layout without copies that share no axis; NULL where it is one.
const LayoutComponents *layout_components(Context *context, const Layout *layout);

typedef LayoutAnswer LayoutDecider(Context *context, const Layout *layout);
// What is true of a layout when it is of every part: YES, NO with the witness (an index, or a
// place) of the part that says so, or what is undecided.
LayoutAnswer layout_components_all(Context *context, const Layout *layout,
                                   const LayoutComponents *components, LayoutDecider *question,
                                   bool positions);
// The inverses side by side. YES or undecided.
LayoutAnswer layout_components_inverse(Context *context, const Layout *layout,
                                       const LayoutComponents *components, LayoutInverse *out);
// Some index for every place, of every part.
bool layout_components_section(Context *context, const LayoutComponents *components,
                               const LayoutExpr **section);
// Places of a static layout that hold an element. The number of places fits.
LayoutAnswer layout_components_image(Context *context, const LayoutComponents *components,
                                     int64_t *out);
// Places that hold an element, where one axis is symbolic; NULL: not counted (image_size.c).
const LayoutExpr *layout_image_of_axis(Context *context, const Layout *layout);
// layout_at_offset, of a place.
LayoutAnswer layout_components_index_at(Context *context, const LayoutComponents *components,
                                        const int64_t *position, int64_t *index);

#endif
