// SPDX-License-Identifier: Apache-2.0
// Pictures and C code that explain a layout, for `pleat layout` and the library.
#ifndef PLEAT_EXPLAIN_H
#define PLEAT_EXPLAIN_H

#include "layout/layout.h"

typedef struct PictureOptions {
  int64_t element_bits; // bits of an element; 0: 32
  int64_t line_bytes;   // bytes of a cache line; 0: 64
  int64_t bank_count;   // 0: colours show the order in memory; otherwise they show the bank
  int64_t bank_bytes;   // 0: 4
  int axis;             // whose index colours the memory; -1: the axis fastest in memory
  bool logical, memory; // the panels to show; when neither is set, both are shown
  bool all;             // shows also what would be summarised
} PictureOptions;

// One square of a picture: an element of the tensor, or an offset in memory.
typedef struct PictureCell {
  const char *text; // a short text: the element at this offset, or the offset of this element
  const char *more; // a long text with all details
  double shade;     // 0 .. 1: a continuous colour; -1: `category` is the colour
  int category;
  bool padding;  // an offset that holds no element
  int64_t group; // equal for the squares of one cache line
} PictureCell;

typedef struct PicturePanel {
  const char *title; // NULL: none
  int rows, columns;
  const char *const *row_names, *const *column_names;
  const PictureCell *cells; // row by row
} PicturePanel;

typedef struct PictureSection { // panels of one kind, under one heading
  const char *heading, *legend;
  const PicturePanel *panels;
  int panel_count;
  const char *left_out; // a text about what is not shown; NULL: all is shown
} PictureSection;

typedef struct Picture {
  const char *title, *subtitle;
  PictureSection sections[2];
  int section_count;
} Picture;

// Two kinds of panels: the logical tensor, coloured by physical order (slices of the last two
// axes), and memory, coloured by a logical axis (in rows of one cache line or of the banks). A
// layout on other resources shows these resources instead of memory. False with a diagnostic for
// symbolic extents.
bool layout_picture(Context *context, const Layout *layout, const PictureOptions *options,
                    Picture *out);
// The picture as an SVG document.
const char *picture_svg(Context *context, const Picture *picture);
// The picture as lines of text, with colours by escape sequences on request.
const char *picture_text(Context *context, const Picture *picture, bool colour);

// Self-contained C code: the offset of an element, packing and unpacking loops, and the sizes. All
// names begin with `name`. Symbolic extents become arguments.
const char *layout_code(Context *context, const Layout *layout, const char *name,
                        const char *element_type);

#endif
