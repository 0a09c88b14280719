// SPDX-License-Identifier: Apache-2.0
// Declares what the readers and printers of the spellings share: a cursor over the text whose
// errors point into the file, placements, and swizzles. The functions for others are in layout.h.
#ifndef PLEAT_LAYOUT_SPELLINGS_H
#define PLEAT_LAYOUT_SPELLINGS_H

#include "layout/core/core.h"

enum { MAX_NESTING = 100, MAX_NODES = 4000 };

typedef struct LayoutReader {
  Context *context;
  const char *text, *at, *end;
  SourcePos base;
  int rank;                       // -1: not known
  const LayoutExpr *const *shape; // the tensor's; NULL: not known
  const char *order;
  bool symbols, failed;
  bool hopeless; // no small edit of the text corrects the error
  const LayoutDefinition *definitions;
  int definition_count;
  size_t error_from, error_to;
  bool no_bar; // `|` at this depth separates axes
  int depth, nodes;
  Str names[MAX_RANK];           // the logical axes, then the replica axes
  int axis_count, replica_count; // axis_count includes the replica axes
  int64_t replicas[MAX_RANK];
  Str star; // name of `*indices`, or NULL
  int star_begin, star_count;
} LayoutReader;

// The content of a text: the map, and, where it gives them, the logical shape and the physical
// extents.
typedef struct Spelled {
  const IndexMap *map;
  const LayoutExpr *const *shape;
  const LayoutExpr *const *physical;
  int physical_count; // -1: not given
} Spelled;

// A reader at the beginning of the text. `shape` is the tensor's, where the rank is known.
LayoutReader layout_reader_new(Context *context, const LayoutSource *source,
                               const LayoutExpr *const *shape);
bool layout_reader_error(LayoutReader *r, const char *from, const char *to, const char *format, ...)
    PRINTF_LIKE(4, 5);
// Reports an error without suggesting another text: the text is correct, but does not fit.
bool layout_reader_refuse(LayoutReader *r, const char *from, const char *to, const char *format,
                          ...) PRINTF_LIKE(4, 5);
// Warns that the text since `from` has no effect here; `means` says what it stands for.
void layout_reader_left_out(LayoutReader *r, const char *from, const char *means);
// Reports that `what` is missing here, where [r->at, to) is.
bool layout_reader_missing(LayoutReader *r, const char *to, const char *what);
void layout_reader_space(LayoutReader *r);
// Reads `token` after space if it is next; a word must be a whole word.
bool layout_reader_accept(LayoutReader *r, const char *token);
bool layout_reader_expect(LayoutReader *r, const char *token);
bool layout_reader_at_end(LayoutReader *r);
// "`x`" or "the end of the text", for messages.
const char *layout_reader_saw(LayoutReader *r);
Str layout_reader_word(LayoutReader *r); // NULL when no word is next
// The same, with the error that `what` was expected where no word is next.
Str layout_reader_name(LayoutReader *r, const char *what);
bool layout_reader_module(LayoutReader *r); // reads one `T.` before a name, if it is there
bool layout_reader_is_reserved(Str name);   // whether no axis and no symbol may have the name
bool layout_reader_number(LayoutReader *r, int64_t *out);
bool layout_reader_signed(LayoutReader *r, int64_t *out); // may have a minus before it
// Reads "(" or "[" and gives the character that closes it; 0 when neither is next. *more: whether
// an element follows.
char layout_reader_open(LayoutReader *r, bool *more);
// After an element of a list: true when another one follows, false at `close` or after an error.
bool layout_reader_more(LayoutReader *r, char close);
// NULL after an error. With `no_bar`, as in the arrow form, `|` outside parentheses is not an
// operation.
const LayoutExpr *layout_reader_expr(LayoutReader *r, bool no_bar);
// Reads a name after `@`. *out is NULL for memory, which `m` also names if `short_memory`.
bool layout_reader_resource(LayoutReader *r, bool short_memory, Str *out);
// Whether `rank` is that of the tensor; false after an error.
bool layout_reader_check_rank(LayoutReader *r, int rank);

// Reads the whole text. False after diagnostics.
bool layout_spelling_read(Context *context, const LayoutSource *source,
                          const LayoutExpr *const *shape, bool allow_extents, Spelled *out);

// The same without a suggestion in the error; the search for suggestions calls it.
bool layout_spelling_read_plainly(Context *context, const LayoutSource *source,
                                  const LayoutExpr *const *shape, bool allow_extents, Spelled *out);
// The nearest text that is a layout where `source` has an error at [from, to); NULL without one.
const char *layout_suggestion(Context *context, const LayoutSource *source,
                              const LayoutExpr *const *shape, bool allow_extents, size_t from,
                              size_t to);
// The same for a text that is in no file, without diagnostics.
bool layout_spelling_try(Context *context, const char *text, int rank, Spelled *out);

// Readers and printers of the spellings, for the rows of spelling.c. A printer gives NULL and a
// reason when its spelling cannot express the layout. Its text is read back and compared there.
typedef const char *LayoutPrinter(Context *context, const Layout *layout, const char **why);
bool layout_read_lambda(LayoutReader *r, Spelled *out);
bool layout_read_arrow(LayoutReader *r, Spelled *out);
bool layout_read_named(LayoutReader *r, Spelled *out);
bool layout_read_cute(LayoutReader *r, Spelled *out);
bool layout_read_xla(LayoutReader *r, Spelled *out);
bool layout_read_torch(LayoutReader *r, Spelled *out);
bool layout_read_linear_layout(LayoutReader *r, Spelled *out);
bool layout_read_tile_layout(LayoutReader *r, Spelled *out);
LayoutPrinter layout_print_lambda, layout_print_arrow, layout_print_named, layout_print_tag,
    layout_print_cute, layout_print_xla, layout_print_torch, layout_print_linear_layout,
    layout_print_tile_layout;

// The reason why the spelling of `who`, which is for static layouts of memory, cannot express the
// layout; NULL when it may. The second is for a spelling with one memory axis.
const char *layout_memory_alone(Context *context, const Layout *layout, const char *who);
const char *layout_one_memory_axis(Context *context, const Layout *layout, const char *who);

// ---- Placements: what most spellings can say ---------------------------------------------------

// A digit ⌊axis/cut⌋ mod radix of a logical or replica axis. It adds its weight times its value to
// every output. The digits are sorted by axis, the most significant digit first.
typedef struct PlacedDigit {
  Digit digit;      // of an axis, without offset and weight
  int64_t *weights; // by output
} PlacedDigit;

typedef struct LayoutPlacement {
  int output_count, digit_count;
  PlacedDigit *digits;
  int64_t *constants; // by output
} LayoutPlacement;

// The outputs, functions on the box of the extents, as a placement whose digits fill their axes
// exactly; a box without elements has one digit for each axis, of weight 0. False with a reason
// when they have no such form. Uses the scratch arena.
bool layout_placement(Context *context, const int64_t *extents, int rank,
                      const LayoutExpr *const *outputs, int count, LayoutPlacement *out,
                      const char **why);
// The one output to which a digit adds: 0 when it adds to none, -1 when it adds to several.
int layout_placed_output(const LayoutPlacement *p, const PlacedDigit *g);
// Whether no digit adds to several outputs; otherwise *why says so.
bool layout_placed_apart(const LayoutPlacement *p, const char **why);

// ---- Swizzles ----------------------------------------------------------------------------------

// x -> x ^ ((x & Y) >> shift), where Y has the `bits` bits from bit base + shift on. With shift <
// 0, Y has those from bit `base` on and the shift is to the left. The map is its own inverse.
typedef struct XorSwizzle {
  int64_t bits, base, shift;
} XorSwizzle;
// Whether offsets have such bits; false after an error about the text from `from` on.
bool layout_swizzle_check(LayoutReader *r, const char *from, const XorSwizzle *s);
const LayoutExpr *layout_swizzled(Context *context, const XorSwizzle *s, const LayoutExpr *e);
// The swizzle that turns the one physical index into a placement, where there is one.
bool layout_swizzled_placement(Context *context, const Layout *layout, XorSwizzle *swizzle,
                               LayoutPlacement *p);

#endif
