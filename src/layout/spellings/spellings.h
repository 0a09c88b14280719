// SPDX-License-Identifier: Apache-2.0
// Shared by the readers of spellings: a cursor over the text whose errors point into the file.
#ifndef PLEAT_LAYOUT_SPELLINGS_H
#define PLEAT_LAYOUT_SPELLINGS_H

#include "layout/core/core.h"

enum { MAX_NESTING = 100, MAX_NODES = 4000 };

typedef struct LayoutReader {
  Context *context;
  const char *text, *at, *end;
  SourcePos base;
  int rank;                       // -1: not known
  const LayoutExpr *const *shape; // of the tensor, or NULL: not known
  const char *order;
  bool symbols, failed;
  bool hopeless; // no small edit of the text mends the error
  const LayoutDefinition *definitions;
  int definition_count;
  size_t error_from, error_to;
  bool no_bar; // `|` at this depth separates axes
  int depth, nodes;
  Str names[MAX_RANK];           // of the logical axes, then of the replica axes
  int axis_count, replica_count; // of all of them, of the replica axes
  int64_t replicas[MAX_RANK];
  Str star; // name of `*indices`, or NULL
  int star_begin, star_count;
} LayoutReader;

// What a text says: the map, and where it says them the logical shape and the physical extents.
typedef struct Spelled {
  const IndexMap *map;
  const LayoutExpr *const *shape;
  const LayoutExpr *const *physical;
  int physical_count; // -1: not said
} Spelled;

// `shape`: of the tensor, where its rank is known.
LayoutReader layout_reader_new(Context *context, const LayoutSource *source,
                               const LayoutExpr *const *shape);
bool layout_reader_error(LayoutReader *r, const char *from, const char *to, const char *format, ...)
    PRINTF_LIKE(4, 5);
// An error for which no other text is suggested: the text is fine, but does not fit.
bool layout_reader_refuse(LayoutReader *r, const char *from, const char *to, const char *format,
                          ...) PRINTF_LIKE(4, 5);
// A warning: what was read since `from` says nothing here; `means`: what it does say.
void layout_reader_left_out(LayoutReader *r, const char *from, const char *means);
void layout_reader_space(LayoutReader *r);
bool layout_reader_accept(LayoutReader *r,
                          const char *token); // after space; words only as whole words
bool layout_reader_expect(LayoutReader *r, const char *token);
bool layout_reader_at_end(LayoutReader *r);
// "`x`" or "the end of the text", for messages.
const char *layout_reader_saw(LayoutReader *r);
bool layout_reader_word(LayoutReader *r, const char **begin, int *size);
bool layout_reader_module(LayoutReader *r); // one `T.` before a name, if there
bool layout_reader_is_reserved(Str name);   // no axis and no symbol
bool layout_reader_number(LayoutReader *r, int64_t *out);
bool layout_reader_signed(LayoutReader *r, int64_t *out); // with a minus before it
// "(" or "[": what closes it, or 0 when neither is next.
char layout_reader_open(LayoutReader *r);
// After an element of a list: true when another one follows, false at `close` or after an error.
bool layout_reader_more(LayoutReader *r, char close);
// NULL after an error. `outputs` in arrow form: `|` outside parentheses is not an operation.
const LayoutExpr *layout_reader_expr(LayoutReader *r, bool no_bar);
// A name after `@`; memory, and `m` where `short_memory` says so, are NULL.
bool layout_reader_resource(LayoutReader *r, bool short_memory, Str *out);
// Whether the layout has the rank of the tensor.
bool layout_reader_check_rank(LayoutReader *r, int rank);

// Reads the whole text. False after diagnostics.
bool layout_spelling_read(Context *context, const LayoutSource *source,
                          const LayoutExpr *const *shape, bool allow_extents, Spelled *out);

// The same without a suggestion in the error, for suggestions themselves.
bool layout_spelling_read_plainly(Context *context, const LayoutSource *source,
                                  const LayoutExpr *const *shape, bool allow_extents, Spelled *out);
// The nearest text that is a layout where `source` has an error at [from, to); NULL without one.
const char *layout_suggestion(Context *context, const LayoutSource *source,
                              const LayoutExpr *const *shape, bool allow_extents, size_t from,
                              size_t to);
// The same of a text that stands alone, without diagnostics.
bool layout_spelling_try(Context *context, const char *text, int rank, Spelled *out);

// Readers and printers of the spellings, the rows of spelling.c. A printer gives NULL and a reason
// for what its spelling cannot say; what it gives is read back and compared there.
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

// Why a spelling of `who` for static layouts of memory cannot say the layout; NULL when it may.
// Likewise one with one memory axis.
const char *layout_memory_alone(Context *context, const Layout *layout, const char *who);
const char *layout_one_memory_axis(Context *context, const Layout *layout, const char *who);

// ---- Placements: what most spellings can say ---------------------------------------------------

// A digit ⌊axis/cut⌋ mod radix of a logical or replica axis; each digit adds to every output its
// weight times its value. Axis by axis, the most significant digit first.
typedef struct AxisDigit {
  int axis;
  int64_t cut, radix;
  int64_t *weights; // by output
} AxisDigit;

typedef struct LayoutPlacement {
  int output_count, digit_count;
  AxisDigit *digits;
  int64_t *constants; // by output
} LayoutPlacement;

// The outputs, functions on the box of the extents, as a placement whose digits fill their axes
// exactly. False with a reason when they are none. Everything in the scratch arena.
bool layout_placement(Context *context, const int64_t *extents, int rank,
                      const LayoutExpr *const *outputs, int count, LayoutPlacement *out,
                      const char **why);

// ---- Swizzles ----------------------------------------------------------------------------------

// x -> x ^ ((x & Y) >> shift), Y the `bits` bits from bit base + shift on; with shift < 0 those
// from bit `base` on, upwards. It undoes itself.
typedef struct XorSwizzle {
  int64_t bits, base, shift;
} XorSwizzle;
// Whether offsets have such bits; the text that says it began at `from`.
bool layout_swizzle_check(LayoutReader *r, const char *from, const XorSwizzle *s);
const LayoutExpr *layout_swizzled(Context *context, const XorSwizzle *s, const LayoutExpr *e);
// The swizzle that turns the one physical index into a placement, where there is one.
bool layout_swizzled_placement(Context *context, const Layout *layout, XorSwizzle *swizzle,
                               LayoutPlacement *p);

#endif
