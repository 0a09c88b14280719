// SPDX-License-Identifier: Apache-2.0
// Declares what the other folders of src/layout use of core: expressions, maps, and what a layout
// remembers.
#ifndef PLEAT_LAYOUT_CORE_H
#define PLEAT_LAYOUT_CORE_H

#include "config.h"
#include "layout/core/bit_space.h"
#include "layout/core/digit.h"
#include "layout/core/ops.h"
#include "layout/core/poly.h"

enum { MAX_RANK = 64, MAX_TREE = 1 << 16 };

// The tables in which a context keeps consed expressions, maps and layouts.
typedef struct LayoutTable {
  const LayoutExpr **exprs; // open addressing
  int expr_count, expr_slots;
  Map maps, layouts; // from hashes to chains
  uint32_t next_id;
  bool verifying;   // an answer is being checked: the answers that the check needs are not
  int64_t verified; // points looked at, or as much work
} LayoutTable;
LayoutTable *layout_table_new(Context *context);
static inline LayoutTable *layout_table(Context *context) {
  return context->layouts ? context->layouts : layout_table_new(context);
}

// Questions about one layout whose answers its cache keeps.
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
  bool inverse_sought; // isl and the piecewise search were tried
  int64_t padding_count;
  const LayoutExpr *offset;
  const Layout *copies;                      // layout_of_copies
  int64_t *vector_widths;                    // by axis; 0: not asked so far
  int64_t *strides;                          // by axis; NULL: not asked so far
  bool *has_stride;                          // by axis
  const struct LayoutComponents *components; // NULL: not sought so far
} LayoutCache;

// The number of logical and replica axes: the box of the map's outputs has them all.
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
static inline LayoutAnswer layout_yes(LayoutLevel level) {
  return layout_answer_of(VERDICT_YES, level, NULL);
}
// The answers of the first level.
static inline LayoutAnswer layout_no(const char *reason) {
  return layout_answer_of(VERDICT_NO, LAYOUT_DIGITS, reason);
}
static inline LayoutAnswer layout_undecided(const char *reason) {
  return layout_answer_of(VERDICT_UNDECIDED, LAYOUT_DIGITS, reason);
}
// In builds that verify: our fault when the checker of certificates does not accept the answer to a
// question about small layouts, or about small instances of symbolic ones (certificates/verify.c).
void layout_verify(Context *context, const LayoutQuestion *question, const LayoutAnswer *answer);
// Every answer of a question that has certificates passes here, with the question's members. The
// second form returns the answer, from which the members may follow.
#define LAYOUT_ANSWERED(context, answer, ...)                                                      \
  do {                                                                                             \
    if (PLEAT_VERIFY_EACH) layout_verify(context, &(LayoutQuestion){__VA_ARGS__}, answer);         \
  } while (0)
#define LAYOUT_RETURN(context, answered, ...)                                                      \
  do {                                                                                             \
    LayoutAnswer answer = (answered);                                                              \
    LAYOUT_ANSWERED(context, &answer, __VA_ARGS__);                                                \
    return answer;                                                                                 \
  } while (0)

// Whether the layout is known to have no elements.
static inline bool layout_is_empty(const Layout *layout) {
  int64_t size;
  return layout_logical_size(layout, &size) && size == 0;
}

// The part of the layout in memory, with replica axes as logical axes.
static inline const Layout *layout_memory_part(Context *context, const Layout *layout) {
  return layout_on_resource(context, layout_of_copies(context, layout), NULL);
}
// a·b
static inline const LayoutExpr *layout_times(Context *context, const LayoutExpr *a,
                                             const LayoutExpr *b) {
  return layout_binary(context, LAYOUT_MUL, a, b);
}
// sum + a·b
const LayoutExpr *layout_add_product(Context *context, const LayoutExpr *sum, const LayoutExpr *a,
                                     const LayoutExpr *b);
// The product of the factors; 1 when there are none.
const LayoutExpr *layout_product_expr(Context *context, const LayoutExpr *const *factors,
                                      int count);
// The row-major number of the index in the box of the extents.
const LayoutExpr *layout_number_expr(Context *context, const LayoutExpr *const *index,
                                     const LayoutExpr *const *extents, int count);
// `e` with one axis replaced by `value`, and with the axes from .. to - 1 at 0.
const LayoutExpr *layout_with_axis(Context *context, const LayoutExpr *e, int axis,
                                   const LayoutExpr *value);
const LayoutExpr *layout_at_zero(Context *context, const LayoutExpr *e, int from, int to);

// The exponent of a power of two; -1 of any other number.
static inline int layout_log(int64_t value) {
  return value > 0 && !(value & (value - 1)) ? __builtin_ctzll((uint64_t)value) : -1;
}

// The order of two int64_t, for qsort.
int layout_compare_numbers(const void *a, const void *b);

// The name of a numbered axis: p0, p1, …
Str layout_numbered_name(Context *context, char letter, int number);
// `spelling` with " in [...]" after it, which says the physical extents.
const char *layout_text_in(Context *context, const Layout *layout, const char *spelling);
// The number of nodes of the expression as a tree, at most UINT32_MAX.
uint32_t layout_expr_size(const LayoutExpr *e);
// The axes that the expression reads, as a bit set.
uint64_t layout_axes_read(const LayoutExpr *e);
// Adds the symbols of the expression that are not in the list. False when the list would have more
// than `most`.
bool layout_add_symbols(const LayoutExpr *e, Str *symbols, int *count, int most);
// The fact about a symbol; where none is given, that it is at least 1.
LayoutFact layout_fact_of(LayoutFacts facts, Str symbol);
// Whether every output has at most MAX_TREE nodes.
bool layout_map_is_small(const IndexMap *map);

// The row-major strides of the box (`strides` may be NULL) and its size. False when the size does
// not fit 64 bits.
bool layout_box_strides(const int64_t *extents, int rank, int64_t *strides, int64_t *size);

// The largest divisor of `value` (of 0: every number is one) up to `limit`, found by small ones:
// pairs with a factor up to 2^16 are tried.
int64_t layout_largest_divisor(int64_t value, int64_t limit);

// `e` with these values for symbols.
const LayoutExpr *layout_instantiate(Context *context, const LayoutExpr *e,
                                     const LayoutValue *values, int count);

// Whether all physical axes are in memory and there are no replica axes.
bool layout_is_plain(const Layout *layout);

#endif
