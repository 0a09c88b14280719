// SPDX-License-Identifier: Apache-2.0
// Shared by the readers of spellings: a cursor over the text whose errors point into the file.
#ifndef PLEAT_LAYOUT_PARSE_H
#define PLEAT_LAYOUT_PARSE_H

#include "layout/internal.h"

enum { MAX_NESTING = 100, MAX_NODES = 4000 };

typedef struct LayoutReader {
  Context *context;
  const char *text, *at, *end;
  SourcePos base;
  int rank; // -1: not known
  const char *order;
  bool symbols, failed;
  int depth, nodes;
  Str names[MAX_RANK];           // of the logical axes, then of the replica axes
  int axis_count, replica_count; // of all of them, of the replica axes
  int64_t replicas[MAX_RANK];
  Str star; // name of `*indices`, or NULL
  int star_begin, star_count;
} LayoutReader;

// What a spelling says: the map, and where the text says them the logical shape and the physical
// extents.
typedef struct LayoutSpelling {
  const IndexMap *map;
  const LayoutExpr *const *shape;
  const LayoutExpr *const *physical;
  int physical_count; // -1: not said
} LayoutSpelling;

bool layout_reader_error(LayoutReader *r, const char *from, const char *to, const char *format, ...)
    PRINTF_LIKE(4, 5);
void layout_reader_space(LayoutReader *r);
bool layout_reader_accept(LayoutReader *r,
                          const char *token); // after space; words only as whole words
bool layout_reader_expect(LayoutReader *r, const char *token);
bool layout_reader_at_end(LayoutReader *r);
// "`x`" or "the end of the text", for messages.
const char *layout_reader_saw(LayoutReader *r);
bool layout_reader_word(LayoutReader *r, const char **begin, int *size);
bool layout_reader_number(LayoutReader *r, int64_t *out);
// NULL after an error. `outputs` in arrow form: `|` outside parentheses is not an operation.
const LayoutExpr *layout_reader_expr(LayoutReader *r, bool no_bar);

// Reads the whole text. False after diagnostics.
bool layout_spelling_read(Context *context, const LayoutSource *source, bool allow_extents,
                          LayoutSpelling *out);
// Named axes and oneDNN tags; shape:strides.
bool layout_spelling_named(LayoutReader *r, LayoutSpelling *out);
bool layout_spelling_strides(LayoutReader *r, LayoutSpelling *out);

#endif
