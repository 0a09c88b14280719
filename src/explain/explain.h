// SPDX-License-Identifier: Apache-2.0
// Pictures and code that explain a layout. Stands on src/layout.
#ifndef PLEAT_EXPLAIN_H
#define PLEAT_EXPLAIN_H

#include "layout/layout.h"

typedef struct PictureOptions {
  int64_t element_bits; // 0: 32
  int64_t line_bytes;   // of a cache line: 0: 64
  int64_t bank_count;   // 0: colours show the order in memory; else the bank
  int64_t bank_bytes;   // 0: 4
  int axis;             // whose index colours the memory; -1: the one that runs fastest there
  bool logical, memory; // which panels; neither: both
  bool all;             // also what would be summarised
} PictureOptions;

// One square: an element, or a place.
typedef struct PictureCell {
  const char *text; // short: what the other side is
  const char *more; // everything about it
  double shade;     // 0 .. 1: a continuous colour; -1: `category` instead
  int category;
  bool padding;  // a place that no element owns
  int64_t group; // squares of one cache line
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
  const char *left_out; // what is not shown; NULL: nothing
} PictureSection;

typedef struct Picture {
  const char *title, *subtitle;
  PictureSection sections[2];
  int section_count;
} Picture;

// The logical tensor coloured by physical order (slices of the last two axes), and memory coloured
// by a logical axis (rows of one cache line, or of banks); layouts on other resources show those in
// place of memory. False with a diagnostic for symbolic extents.
bool layout_picture(Context *context, const Layout *layout, const PictureOptions *options,
                    Picture *out);
// A whole SVG document.
const char *picture_svg(Context *context, const Picture *picture);
// Lines of text; colours by escape sequences where asked for.
const char *picture_text(Context *context, const Picture *picture, bool colour);

// Self-contained C: the offset of an element, packing and unpacking loops, the sizes, all led by
// `name`. Symbolic extents become arguments.
const char *layout_code(Context *context, const Layout *layout, const char *name,
                        const char *element_type);

#endif
