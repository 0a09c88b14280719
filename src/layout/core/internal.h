// SPDX-License-Identifier: Apache-2.0
// What the files of this folder share.
#ifndef PLEAT_LAYOUT_INTERNAL_H
#define PLEAT_LAYOUT_INTERNAL_H

#include "layout/layout.h"

enum { MAX_RANK = 64, MAX_TREE = 1 << 16 };

// The tables in which a context keeps consed expressions, maps and layouts.
typedef struct LayoutTable {
  const LayoutExpr **exprs; // open addressing
  int expr_count, expr_slots;
  Map maps, layouts; // from hashes to chains
  uint32_t next_id;
  bool verifying;   // an answer is being checked: those that this asks for are not
  int64_t verified; // points looked at, or as much work
} LayoutTable;
LayoutTable *layout_table_new(Context *context);
static inline LayoutTable *layout_table(Context *context) {
  return context->layouts ? context->layouts : layout_table_new(context);
}

// Questions about one layout whose answers are kept.
typedef enum CachedQuestion {
  CACHED_IDENTITY,
  CACHED_INJECTIVE,
  CACHED_ONTO,
  CACHED_PADDING,
  CACHED_INVERSE,
  CACHED_COUNT
} CachedQuestion;

typedef struct LayoutCache {
  const Layout *next; // in the chain of its hash
  bool extents_given; // the physical extents were not derived
  bool known[CACHED_COUNT];
  LayoutAnswer answers[CACHED_COUNT];
  LayoutInverse inverse;
  bool inverse_sought; // by isl, and in pieces
  int64_t padding_count;
  const LayoutExpr *offset;
  const Layout *copies;                      // layout_of_copies
  int64_t *vector_widths;                    // by axis; 0: not asked yet
  const struct LayoutComponents *components; // NULL: not looked for
} LayoutCache;

// Logical and replica axes: the box that the map's outputs are functions on.
static inline int layout_box_rank(const Layout *layout) {
  return layout->rank + layout->map->replica_count;
}

static inline bool is_const(const LayoutExpr *e) {
  return e->op == LAYOUT_CONST;
}

static inline const LayoutExpr *layout_binary(Context *context, LayoutOp op, const LayoutExpr *a,
                                              const LayoutExpr *b) {
  return layout_expr(context, op, a, b, NULL);
}
static inline const LayoutExpr *layout_by(Context *context, LayoutOp op, const LayoutExpr *a,
                                          int64_t b) {
  return layout_expr(context, op, a, layout_const(context, b), NULL);
}

// An answer without witness.
static inline LayoutAnswer layout_answer_of(Verdict verdict, LayoutLevel level,
                                            const char *reason) {
  return (LayoutAnswer){.verdict = verdict, .level = level, .reason = reason};
}
// Known to have no elements.
static inline bool layout_is_empty(const Layout *layout) {
  int64_t size;
  return layout_logical_size(layout, &size) && size == 0;
}

// Names of numbered axes: p0, p1, …
Str layout_numbered_name(Context *context, char letter, int number);
// A spelling of the layout with its physical extents said: " in [...]" after it.
const char *layout_text_in(Context *context, const Layout *layout, const char *spelling);
// Nodes of the expression as a tree; stays at its maximum.
uint32_t layout_expr_size(const LayoutExpr *e);
// Bit i: it reads axis i.
uint64_t layout_axes_read(const LayoutExpr *e);
// Whether every output is small enough to be walked as a tree.
bool layout_map_is_small(const IndexMap *map);

// The value of one operation on values; false on division by zero, bad shift or overflow.
bool layout_op_value(LayoutOp op, int64_t a, int64_t b, int64_t c, int64_t *out);

// Row-major strides (may be NULL), the size in *size; false when it does not fit.
bool layout_box_strides(const int64_t *extents, int rank, int64_t *strides, int64_t *size);

int64_t layout_largest_divisor(int64_t value, int64_t limit);

// The digits level (digits.c), for static layouts without empty axes. Each says what it proves and
// leaves the rest to the points.
// Whether the maps agree on the box; VERDICT_NO sets the witness index.
Verdict layout_digits_maps_equal(Context *context, const int64_t *extents, int rank,
                                 const LayoutExpr *const *a, const LayoutExpr *const *b, int count,
                                 int64_t *witness);
// layout_expr_simplify of several over one box.
void layout_exprs_simplify(Context *context, const LayoutExpr *const *exprs, int count,
                           const int64_t *extents, int rank, const LayoutExpr **out);
// Whether every output stays within [0, extent).
bool layout_digits_inside(Context *context, const Layout *layout);
// The inverse and its padding predicate, checked: by normal form, or, up to `most`, point by point
// (*level).
bool layout_digits_inverse(Context *context, const Layout *layout, LayoutLevel most,
                           LayoutInverse *out, LayoutLevel *level);
// Some index for every place, as expressions of the places; `section` may be NULL.
bool layout_digits_section(Context *context, const Layout *layout, const LayoutExpr **section);
// Two indices with one place, found on the cuts of the forms.
bool layout_digits_collision(Context *context, const Layout *layout, int64_t *a, int64_t *b);
// Strides and the vector width from the form of the offset; false where it does not decide.
bool layout_digits_strides(Context *context, const Layout *layout, int64_t *strides,
                           bool *has_stride);
bool layout_digits_vector_width(Context *context, const Layout *layout, int axis, int64_t *width);
// The same for any form (strides.c), as equations between the offset and itself further on. The
// width is one that holds, also where a wider one was not decided.
Verdict layout_forms_stride(Context *context, const Layout *layout, const LayoutExpr *offset,
                            int axis, int64_t *stride);
bool layout_forms_vector_width(Context *context, const Layout *layout, const LayoutExpr *offset,
                               int axis, int64_t *width);
int64_t layout_symbolic_vector_width(Context *context, const Layout *layout, int axis);

// Symbolic extents (symbolic.c): "yes" proved, anything else left open.
bool layout_symbolic_equal(Context *context, const Layout *layout, const LayoutExpr *const *other);
bool layout_symbolic_same_extent(Context *context, LayoutFacts facts, const LayoutExpr *a,
                                 const LayoutExpr *b);
// Expressions over a box, simpler where that is found; `out` may be `exprs`.
void layout_box_simplify(Context *context, LayoutFacts facts, const LayoutExpr *const *shape,
                         int rank, const LayoutExpr *const *exprs, int count,
                         const LayoutExpr **out);
bool layout_symbolic_inverse(Context *context, const Layout *layout, LayoutInverse *out);
// Some index for every place; *proved: is one, else it may be.
bool layout_symbolic_section(Context *context, const Layout *layout, const LayoutExpr **section,
                             bool *proved);
// Whether a certificate shows that there is an index for every place (certificate.c).
bool layout_section_is_shown(Context *context, const Layout *layout);
// Some index for every place, by any of these, part by part.
bool layout_section(Context *context, const Layout *layout, const LayoutExpr **section);
// Physical extents derived, or those given; -1, or the output whose bounds are not proved.
int layout_symbolic_extents(Context *context, const Layout *layout, const LayoutExpr *const *given,
                            const LayoutExpr **physical);

// Layouts with replica axes (replication.c): the questions by way of the layout of the copies.
LayoutAnswer layout_copies_answer(Context *context, const Layout *layout, CachedQuestion question);
// Whether every element has the same set of places under both; one of them has replica axes.
LayoutAnswer layout_copies_equal(Context *context, const Layout *a, const IndexMap *b);

// Layouts on several resources (resources.c). Plain: all memory, one copy.
bool layout_is_plain(const Layout *layout);
void layout_memory_strides(Context *context, const Layout *layout, int64_t *strides,
                           bool *has_stride);
int64_t layout_memory_vector_width(Context *context, const Layout *layout, int axis);

// Instances (instance.c): values of the symbols that satisfy the facts.
enum { MAX_INSTANCES = 14 };
typedef struct LayoutInstance {
  const Layout *layout; // static
  LayoutValue *values;
  int count;
} LayoutInstance;
// Instance `which` of a symbolic layout. False when there is none, or it does not fit.
bool layout_instance(Context *context, const Layout *layout, int which, LayoutInstance *out);
// The instance at these values.
bool layout_instance_at(Context *context, const Layout *layout, const LayoutValue *values,
                        int count, LayoutInstance *out);
// The instance at these values; symbols that have none take their first.
bool layout_instance_around(Context *context, const Layout *layout, const LayoutValue *values,
                            int count, LayoutInstance *out);
const LayoutExpr *layout_instantiate(Context *context, const LayoutExpr *e,
                                     const LayoutValue *values, int count);

// (axis // cut) % modulus, modulus 0 for none; the text must be just that, or nested ones.
typedef struct LayoutAxisDigit {
  int axis;
  int64_t cut, modulus;
} LayoutAxisDigit;
bool layout_axis_digit(const LayoutExpr *e, LayoutAxisDigit *out);

// a - b of expressions of symbols, as a polynomial where it is one.
const LayoutExpr *layout_difference(Context *context, LayoutFacts facts, const LayoutExpr *a,
                                    const LayoutExpr *b);
// The static layout in flat memory with its offset as a sum of floors of single axes, read off its
// values along each axis. NO: it is none. *out NULL unless YES.
LayoutAnswer layout_by_floors(Context *context, const Layout *memory, const Layout **out);

// At how many points of the box pairs[2k] = pairs[2k + 1] for all k < count; false where digits do
// not tell (count_equal.c).
bool layout_count_agreements(Context *context, const int64_t *box, int rank,
                             const LayoutExpr *const *pairs, int count, int64_t *out);

// layout_new without diagnostics, padding unknown: NULL where it would report one.
const Layout *layout_try(Context *context, const IndexMap *map, const LayoutExpr *const *shape,
                         const LayoutExpr *const *physical, LayoutFacts facts);

// Proves that no index leaves the physical extents, or reports it at `pos`.
bool layout_prove_inside(Context *context, const Layout *layout, SourcePos pos);

#endif
