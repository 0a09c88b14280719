// SPDX-License-Identifier: Apache-2.0
// The layout library: index maps on shapes, and exact answers to questions about them. It needs
// only src/base and knows nothing of programs.
//
// An index map F sends the logical index of an element to its physical index. A layout is an index
// map on a logical shape, with the physical shape that contains all its physical indices. Physical
// indices that hold no element are padding. The offset of an element is the row-major number of its
// physical index. A physical axis is in memory, or on a named resource (a device, a lane, ...). A
// map with replica axes stores each element at several physical indices, its copies.
//
// Everything is owned by the context (its arena `lasting`), immutable and consed: equal expressions
// and equal maps are equal pointers. Extents and expressions may have symbols; an answer about them
// holds for all values of the symbols that satisfy the layout's facts.
//
// This file has, in this order: expressions, facts about symbols, index maps, layouts, spellings,
// extents and conditions as users write them, questions with their answers, sizes and offsets, the
// operations (slices, loops, sums, products, tilings, refinements, copies, lines, bank conflicts),
// and certificates. docs/layouts.md explains the notions and the methods.
#ifndef PLEAT_LAYOUT_H
#define PLEAT_LAYOUT_H

#include "base/base.h"

// ---- Expressions -------------------------------------------------------------------------------

typedef enum LayoutOp {
#define OP(name, ...) LAYOUT_##name,
#include "layout/core/ops.def"
#undef OP
  LAYOUT_OP_COUNT
} LayoutOp;

typedef struct LayoutExpr LayoutExpr;
struct LayoutExpr {
  LayoutOp op;
  uint32_t id;   // order of creation, for deterministic sorting
  int64_t value; // LAYOUT_CONST: the value; LAYOUT_AXIS: the number of the logical axis, from 0
  Str symbol;    // LAYOUT_SYMBOL
  const LayoutExpr *args[3];
};

const char *layout_op_text(LayoutOp op);
int layout_op_arguments(LayoutOp op);

const LayoutExpr *layout_const(Context *context, int64_t value);
const LayoutExpr *layout_axis(Context *context, int axis);
const LayoutExpr *layout_symbol(Context *context, Str name);
// Any other operation; unused arguments are NULL. Folds constants and neutral elements. A division
// by the constant 0, or a result that does not fit 64 bits, stays as it is and has no value.
const LayoutExpr *layout_expr(Context *context, LayoutOp op, const LayoutExpr *a,
                              const LayoutExpr *b, const LayoutExpr *c);
// `e` with axis i replaced by axes[i]. An axis stays when axes[i] is NULL or i >= count.
const LayoutExpr *layout_expr_substitute(Context *context, const LayoutExpr *e,
                                         const LayoutExpr *const *axes, int count);
// `e` on the box 0 .. extents[i] - 1 of its axes, in normal form: it has the same values, and is
// often simpler (`(16*a + b)//16` with b < 16 is a). Gives `e` itself where the digits cannot
// represent it.
const LayoutExpr *layout_expr_simplify(Context *context, const LayoutExpr *e,
                                       const int64_t *extents, int rank);
// Python text. Axes are called names[i], or i0, i1, … when `names` is NULL.
const char *layout_expr_text(Context *context, const LayoutExpr *e, const Str *names, int count);

// ---- Facts about symbols -----------------------------------------------------------------------

// min <= symbol <= max (max 0: no limit), and `multiple` divides the symbol. A symbol without a
// fact is at least 1.
typedef struct LayoutFact {
  Str symbol;
  int64_t min, max, multiple;
} LayoutFact;
typedef struct LayoutFacts {
  const LayoutFact *items;
  int count;
} LayoutFacts;

typedef struct LayoutValue { // the value of one symbol
  Str symbol;
  int64_t value;
} LayoutValue;

typedef struct LayoutDefinition { // a symbol that stands for an expression of other symbols
  Str symbol;
  const LayoutExpr *value;
  const char *obstacle; // why a map cannot use the symbol; NULL: it can
} LayoutDefinition;

// The value of `e` at an index. False when a division by zero, an overflow, or a symbol without a
// value occurs.
bool layout_expr_value(const LayoutExpr *e, const int64_t *index, const LayoutValue *values,
                       int value_count, int64_t *out);

// ---- Index maps --------------------------------------------------------------------------------

// Replica axes follow the logical axes: they are the LAYOUT_AXIS values from input_count on. The
// element of a logical index x is stored at all physical indices F(x, r), where r is in the box of
// the replica extents.
typedef struct IndexMap {
  int input_count, output_count, separator_count, replica_count;
  const Str *inputs;                // names of the logical axes, then of the replica axes
  const int64_t *replicas;          // extents of the replica axes, at least 1
  const LayoutExpr *const *outputs; // one for each physical axis
  const Str *resources;             // the resource of each physical axis; NULL is memory
  const int *separators;            // ascending; k is a mark before output k, 0 <= k <= count
  uint32_t id;
} IndexMap;

// The consed map. `inputs` may be NULL (then the names are i0, i1, …), and so may `resources` (all
// memory). Axis separators must ascend and be in range; otherwise this is a bug of the caller,
// since parsers check texts of users.
const IndexMap *index_map_new(Context *context, int input_count, const Str *inputs,
                              int output_count, const LayoutExpr *const *outputs,
                              const Str *resources, const int *separators, int separator_count);
// The same with replica axes; `inputs` has input_count + replica_count names, or is NULL.
const IndexMap *index_map_replicated(Context *context, int input_count, int replica_count,
                                     const Str *inputs, const int64_t *replicas, int output_count,
                                     const LayoutExpr *const *outputs, const Str *resources,
                                     const int *separators, int separator_count);
const IndexMap *index_map_identity(Context *context, int rank);
// `map` with other outputs, of the same number. Its axes, resources and separators stay.
const IndexMap *index_map_with_outputs(Context *context, const IndexMap *map,
                                       const LayoutExpr *const *outputs);
// Whether the maps are the same expressions, with the same separators, resources and replica axes.
// The names of axes may differ.
bool index_map_same(const IndexMap *a, const IndexMap *b);
// outer after inner, where outer's inputs are inner's outputs. The result has the separators and
// resources of outer, and the replica axes of both, inner's first.
const IndexMap *index_map_compose(Context *context, const IndexMap *outer, const IndexMap *inner);
// The physical index of the first copy (all replica axes at 0) of a logical index. False as for
// layout_expr_value.
bool index_map_apply(const IndexMap *map, const int64_t *index, int64_t *out);
// The same for the copy at the index `replica`; NULL is the first copy.
bool index_map_apply_copy(const IndexMap *map, const int64_t *index, const int64_t *replica,
                          int64_t *out);

// ---- Layouts -----------------------------------------------------------------------------------

typedef enum LayoutPaddingKind {
  LAYOUT_PADDING_UNKNOWN, // nothing is known about the content of padding
  LAYOUT_PADDING_ANY,     // padding may hold any value, and any value may be written there
  LAYOUT_PADDING_CONSTANT,
} LayoutPaddingKind;
typedef struct LayoutPadding {
  LayoutPaddingKind kind;
  double value;
} LayoutPadding;

typedef struct Layout {
  int rank, physical_rank;
  const IndexMap *map;
  // The logical extents, constants or expressions of symbols, then those of the replica axes.
  const LayoutExpr *const *shape;
  const LayoutExpr *const *physical; // physical extents
  bool is_static;                    // all extents are constants; then these are set too:
  const int64_t *extents, *physical_extents;
  LayoutFacts facts;
  LayoutPadding padding;
  struct LayoutCache *cache; // the answers that were found so far
} Layout;

// A map on a shape. If `physical` is NULL, the physical extents are derived by rules that let a
// reader predict them from the text: `e % m` spans m, `e & m` spans m + 1, `^` and `|` reach the
// next power of two, the rest is interval arithmetic. NULL with a diagnostic at `pos` when ranks
// differ, an extent is negative, an index leaves the physical shape (or is not proved to stay in
// it), or a size does not fit 64 bits.
const Layout *layout_new(Context *context, const IndexMap *map, const LayoutExpr *const *shape,
                         const LayoutExpr *const *physical, LayoutFacts facts,
                         LayoutPadding padding, SourcePos pos);
// The same for constant extents, with derived physical extents and unknown padding.
const Layout *layout_static(Context *context, const IndexMap *map, const int64_t *shape,
                            SourcePos pos);
// As layout_new with unknown padding, but NULL without a diagnostic where layout_new reports one.
const Layout *layout_try(Context *context, const IndexMap *map, const LayoutExpr *const *shape,
                         const LayoutExpr *const *physical, LayoutFacts facts);
const Layout *layout_row_major(Context *context, int rank, const int64_t *shape);
const Layout *layout_with_padding(Context *context, const Layout *layout, LayoutPadding padding);
// The same layout with other names of its axes (and replica axes); NULL: i0, i1, …
const Layout *layout_with_names(Context *context, const Layout *layout, const Str *names);
// The layout of the copies: replica axes become logical axes after the others, except those that do
// not change the physical index, which are left out. It is the layout itself when that has no
// replica axes. Code that evaluates `outputs` over a box of `shape` uses this layout.
const Layout *layout_of_copies(Context *context, const Layout *layout);
// The part of a layout on one resource (NULL: memory): only those physical axes, read as memory, so
// that offsets and strides are those within the resource. It has no separators.
const Layout *layout_on_resource(Context *context, const Layout *layout, Str resource);
// The layout with each group of axes between separators flattened to one physical axis. It is the
// layout itself where that has resources or replica axes, and NULL where the flattened index is not
// proved to stay in its extent (which can happen when the map has symbols).
const Layout *layout_flattened(Context *context, const Layout *layout);
// An equal layout with a shorter map, where one is found.
const Layout *layout_simplified(Context *context, const Layout *layout);

// ---- Spellings ---------------------------------------------------------------------------------

// A text and the options with which it is read.
typedef struct LayoutSource {
  const char *text;
  size_t size;
  SourcePos pos; // where `text` begins in its file, for errors; {0}: the text is a file of its own
  int rank;      // of the logical shape, or -1 when it is not known (then `*indices` is refused)
  const char *order; // the order of the logical axes of named axes, "NCHW"; NULL: the usual one
  bool symbols;      // unknown names are symbols, not errors
  const LayoutDefinition *definitions; // the values of defined symbols
  int definition_count;
} LayoutSource;
// The source for a null-terminated string that is not part of a file.
LayoutSource layout_source(const char *text, int rank);

typedef enum LayoutSpelling {
  LAYOUT_SPELLING_INDEX_MAP,
  LAYOUT_SPELLING_LAMBDA,
  LAYOUT_SPELLING_NAMED,
  LAYOUT_SPELLING_TAG,
  LAYOUT_SPELLING_CUTE,
  LAYOUT_SPELLING_XLA,
  LAYOUT_SPELLING_TORCH,
  LAYOUT_SPELLING_LINEAR_LAYOUT,
  LAYOUT_SPELLING_TILE_LAYOUT,
  LAYOUT_SPELLING_COUNT
} LayoutSpelling;

// "index-map", "cute", …; an example.
const char *layout_spelling_name(LayoutSpelling spelling);
const char *layout_spelling_example(LayoutSpelling spelling);
// Finds a spelling by its name, or by the name of its system: "onednn", "pytorch", "triton", "tvm".
bool layout_spelling_find(const char *name, LayoutSpelling *out);
// The spelling of a text, also of one with errors.
LayoutSpelling layout_spelling_of(Context *context, const LayoutSource *source);

// Reads a map in any spelling; docs/layouts.md describes them. NULL after located diagnostics.
// Without an order, named axes are NCHW, NCW, NCDHW, OIHW, OIW, OIDHW, GOIHW, … where the letters
// are exactly these; otherwise the order of their appearance is used.
const IndexMap *index_map_parse(Context *context, const LayoutSource *source);
// Reads a spelling on a shape; `rank` replaces that of the source. After a map, ` in [4, 8, 16]`
// gives the physical extents.
const Layout *layout_parse(Context *context, const LayoutSource *source,
                           const LayoutExpr *const *shape, int rank, LayoutFacts facts);
const Layout *layout_parse_static(Context *context, const char *text, const int64_t *shape,
                                  int rank);
// The logical shape of a text for which no shape is given (the source has rank -1). If the text has
// a shape (CuTe, PyTorch, linear layouts, tile layouts, XLA after a type), *said is true. Otherwise
// each extent is a symbol, the name of the axis in capitals (`N` for `n`), or the definition of
// this symbol. NULL after located diagnostics.
const LayoutExpr *const *layout_shape_of(Context *context, const LayoutSource *source, int *rank,
                                         bool *said);

// The map in arrow form, and as `lambda …: [...]`. Both parse back to the same map.
const char *index_map_text(Context *context, const IndexMap *map);
const char *index_map_lambda(Context *context, const IndexMap *map);
// The map as named axes ("NCHW16c") over the given order, or NULL when it has no such form. With
// order NULL, the logical axes are the upper-case names of the inputs, where these are single
// letters. The name is to be read with the same order.
const char *index_map_name(Context *context, const IndexMap *map, const char *order);
// The map in arrow form, with ` in [...]` when the physical extents are not the derived ones.
const char *layout_text(Context *context, const Layout *layout);
// The layout in a spelling; reading the text on the layout's shape gives an equal layout. NULL when
// the spelling cannot express the layout; then *why has the reason, and the index map.
const char *layout_spell(Context *context, const Layout *layout, LayoutSpelling spelling,
                         const char **why);

// ---- Extents and conditions as users write them ------------------------------------------------

// Reads one extent: a number, a symbol, or an expression of symbols ("16*K", "(C + 15)//16"). NULL
// after located diagnostics.
const LayoutExpr *layout_extent_parse(Context *context, const LayoutSource *source);
// Reads a shape: "1x30x7x7", "Nx30xHxW"; or with commas, where extents may be expressions and names
// may contain an x: "n, 30, (h + 1)//2". It may have brackets around it, and the empty text has
// rank 0. NULL after located diagnostics.
const LayoutExpr *const *layout_shape_parse(Context *context, const LayoutSource *source,
                                            int *rank);

// The content of conditions: facts, and definitions of symbols.
typedef struct LayoutConditions {
  LayoutFacts facts;
  const LayoutDefinition *definitions;
  int definition_count;
} LayoutConditions;
// Reads "C % 16 == 0", "C >= 16", "3 <= C <= 64" (as "3 <= C and C <= 64"), "2*C < 100", "C == 64",
// "C == 16*K". Refuses a condition that facts cannot express, or that no value satisfies. False
// after located diagnostics.
bool layout_conditions_parse(Context *context, const LayoutSource *sources, int count,
                             LayoutConditions *out);
// Adds a definition for each symbol of the facts, of the definitions and of these expressions; a
// symbol without a value is defined as itself. In a LayoutSource with these definitions and without
// `symbols`, any other name is an error.
void layout_conditions_know(Context *context, LayoutConditions *conditions,
                            const LayoutExpr *const *exprs, int count);

// The first of these extents that is found to be negative at values of the symbols that satisfy the
// facts, and those values. -1 when none is found; only some values are tried.
int layout_negative_extent(Context *context, LayoutFacts facts, const LayoutExpr *const *extents,
                           int count, const LayoutValue **values, int *value_count);

// ---- Questions and answers ---------------------------------------------------------------------

typedef enum LayoutLevel { LAYOUT_DIGITS, LAYOUT_ISL, LAYOUT_POINTS } LayoutLevel;
const char *layout_level_name(LayoutLevel level); // "digits", "isl", "points"
typedef struct LayoutAnswer {
  Verdict verdict;
  LayoutLevel level;  // the level that found the answer
  const char *reason; // VERDICT_UNDECIDED: why; VERDICT_NO: may add a remark
  // VERDICT_NO: a logical index that refutes the question; for a collision, both indices. For
  // layout_is_onto a physical index that holds no element. NULL when the reason suffices (for
  // example, ranks that differ).
  const int64_t *witness, *witness2;
  int witness_rank;
  const LayoutValue *instance; // the values of the symbols for which the witness is one
  int instance_count;
} LayoutAnswer;

// "no: [0, 3] and [8, 3] have the same physical index", for messages.
const char *layout_answer_text(Context *context, const LayoutAnswer *answer);

// Whether the layouts have the same logical shape, map, physical extents and separators; the
// content of padding may differ. With replica axes: whether every element has the same set of
// physical indices.
LayoutAnswer layout_equal(Context *context, const Layout *a, const Layout *b);
// Whether the maps are equal on a's logical shape, whatever the physical extents.
LayoutAnswer layout_maps_equal(Context *context, const Layout *a, const IndexMap *b);
LayoutAnswer layout_is_identity(Context *context, const Layout *layout);
// Why no tensor of a graph can be stored in the layout, such as "index map is not injective: …";
// NULL: one can.
const char *layout_storage_flaw(Context *context, const Layout *layout);
// Whether no two elements share a physical index.
LayoutAnswer layout_is_injective(Context *context, const Layout *layout);
// Whether every physical index holds an element.
LayoutAnswer layout_is_onto(Context *context, const Layout *layout);
// Whether the layout is injective and onto, and every element has one physical index only.
LayoutAnswer layout_is_bijective(Context *context, const Layout *layout);

// The inverse of an injective layout: the map from physical to logical indices, and the condition
// over the physical axes under which a physical index is padding (NULL: none is). NO has a
// collision.
typedef struct LayoutInverse {
  const IndexMap *map;
  const LayoutExpr *padding;
} LayoutInverse;
LayoutAnswer layout_inverse(Context *context, const Layout *layout, LayoutInverse *out);

// a ∘ b⁻¹ for two layouts of one logical shape: the map from b's physical indices to a's, as a
// layout on b's physical shape. To copy a tensor from b to a, read at [p] and write at [out(p)]
// unless p is padding.
LayoutAnswer layout_divide(Context *context, const Layout *a, const Layout *b, LayoutInverse *out);
// a⁻¹ ∘ b for two layouts of one physical shape: the map from b's logical index to the logical
// index that a has at the same physical index. `padding` holds for the indices of b whose physical
// index is padding of a.
LayoutAnswer layout_divide_left(Context *context, const Layout *a, const Layout *b,
                                LayoutInverse *out);
// Makes the map of a quotient shorter where that is possible, for people to read.
void layout_divide_simplify(Context *context, const Layout *a, const Layout *b,
                            LayoutInverse *quotient);

// ---- Sizes, offsets and strides ----------------------------------------------------------------

// The number of physical indices (over all physical axes, whatever their resource), and of
// elements. False, with *out unchanged, when it does not fit 64 bits or is symbolic.
bool layout_physical_size(const Layout *layout, int64_t *out);
bool layout_logical_size(const Layout *layout, int64_t *out);
// The number of physical indices that hold no element.
LayoutAnswer layout_padding_count(Context *context, const Layout *layout, int64_t *out);
// The same as an expression of the symbols, also for symbolic layouts.
LayoutAnswer layout_padding_expr(Context *context, const Layout *layout, const LayoutExpr **out);
// The physical extents after flattening: one for each group of axes between separators.
int layout_group_count(const Layout *layout);
const LayoutExpr *const *layout_group_extents(Context *context, const Layout *layout);
// The index within each group, row-major over the group's axes, as expressions of the logical axes.
const LayoutExpr *const *layout_group_indices(Context *context, const Layout *layout);
// The index of a row-major ordinal in a box without empty axes, and the ordinal of an index.
void layout_index_at(const int64_t *extents, int rank, int64_t ordinal, int64_t *index);
int64_t layout_ordinal_of(const int64_t *extents, int rank, const int64_t *index);
// The row-major offset over all physical axes, whatever their resource, as an expression of the
// logical axes and the replica axes. For one resource, ask layout_on_resource.
const LayoutExpr *layout_offset_expr(Context *context, const Layout *layout);
// The offset of the first copy of one static logical index. False when the index is outside of the
// shape or the offset does not fit 64 bits.
bool layout_offset(const Layout *layout, const int64_t *index, int64_t *offset);
// The offsets of all elements of a static layout in row-major order of the logical index, the
// copies of an element one after the other. `out` has room for the logical size of
// layout_of_copies. False where an offset is undefined.
bool layout_offsets(Context *context, const Layout *layout, int64_t *out);
// The logical index at an offset: YES sets *index, NO means padding.
LayoutAnswer layout_at_offset(Context *context, const Layout *layout, int64_t offset,
                              int64_t *index);
// Where has_stride[i], strides[i] is the constant step of the offset per step of axis i, elsewhere
// the step from the origin, or 0 where it has none. With axes on other resources: the step of the
// memory offset, where the step stays on the same lane, register, …. On an axis of one element
// every step is right; the step of the expression at the origin is given, where it has a value
// (layout_stride gives 0).
void layout_strides(Context *context, const Layout *layout, int64_t *strides, bool *has_stride);
// The constant step of the memory offset along an axis, as an expression of the symbols; 0 where
// the axis has one element. NO has an index from which the step differs.
LayoutAnswer layout_stride(Context *context, const Layout *layout, int axis,
                           const LayoutExpr **stride);
// The largest w for which a vector works: for every x that is a multiple of w, the elements x ..
// x + w - 1 along `axis` have consecutive offsets, the first of which is a multiple of w. It is 1
// when no larger one is proved; with symbolic extents it holds for all values. With axes on other
// resources: consecutive in memory, and all w on the same lane, register, ….
int64_t layout_vector_width(Context *context, const Layout *layout, int axis);

// ---- Slices and reshapes -----------------------------------------------------------------------

typedef struct LayoutSlice {
  const Layout *layout;             // of the box, with the same physical axes, resources and copies
  const LayoutExpr *offset;         // the memory offset of its first element
  const LayoutExpr *const *strides; // the memory strides along its axes; NULL: there are none
} LayoutSlice;
// The slice low[i] + step[i]·x with x < extent[i] (low NULL: 0, step NULL: 1; a step may be
// negative). YES: the memory offset is offset + Σ strides·x everywhere, on one lane, device, …. NO:
// the slice leaves the shape (out->layout is NULL), or it has a layout but no such strides, with an
// index of the slice as witness.
LayoutAnswer layout_slice(Context *context, const Layout *layout, const LayoutExpr *const *low,
                          const LayoutExpr *const *extent, const int64_t *step, LayoutSlice *out);
// The tensor with another logical shape: its elements keep their row-major order and their physical
// indices. NULL when the numbers of elements are not proved equal, or bounds are not known.
const Layout *layout_reshape(Context *context, const Layout *layout, const LayoutExpr *const *shape,
                             int rank);
// Whether a is b reshaped: elements with the same row-major number have the same memory offset. NO
// has an index of a.
LayoutAnswer layout_is_reshape(Context *context, const Layout *a, const Layout *b);

// ---- Loops in memory order, blockings, permutations --------------------------------------------

typedef struct LayoutLoop {
  const LayoutExpr *extent, *stride; // the number of iterations; the step of the memory offset
  int axis;                          // the logical axis along which it runs; -1: not one alone
  int64_t step;                      // its step along the axis, negative: downwards; 0: not known
} LayoutLoop;
// for l0 … for lk: if guard(l): element index(l)
typedef struct LayoutLoops {
  int count;
  const LayoutLoop *loops; // outermost first
  const IndexMap *index;   // counters -> logical index
  const LayoutExpr *guard; // over the counters; NULL: each iteration has an element
} LayoutLoops;
// The loop nest that visits every element (every copy in memory) once, by ascending memory offset,
// and skips padding. Its loops are the digits of the axes where the offset is a sum of them, else
// the physical axes by way of the inverse. NO: two elements share a physical index.
LayoutAnswer layout_loop_order(Context *context, const Layout *layout, LayoutLoops *out);

// An expression as start + Σ weight · ((axis // cut) % extent), the highest weight first. Each
// weight exceeds what all lower digits add up to, so that the digits follow from the value. The
// topmost digit of an axis takes the rest of the axis.
typedef struct LayoutWeightedDigit {
  int axis;
  int64_t cut, extent, weight;
} LayoutWeightedDigit;
typedef struct LayoutDigitSum {
  int64_t start; // the least value
  int count;     // digits that are always 0 are left out
  const LayoutWeightedDigit *digits;
} LayoutDigitSum;
// Reads an expression on the box 0 .. extents[i] - 1 as such a sum. False when it is none, counts
// an axis downwards, has floors of a shifted axis or XORs, or when the box is empty.
bool layout_expr_digits(Context *context, const LayoutExpr *e, const int64_t *extents, int rank,
                        LayoutDigitSum *out);

// The digit (axis // cut) % extent.
typedef struct LayoutDigit {
  int axis;
  int64_t cut;
  const LayoutExpr *extent;
} LayoutDigit;
// The topmost block of an axis takes the rest of the axis, padded to `extent`.
typedef struct LayoutBlocking {
  int count;
  const LayoutDigit *blocks; // outermost in memory first, without digits that are always 0
} LayoutBlocking;
// Whether memory is the row-major array of digits of the axes, in some order; finds these digits.
// Physical axes count as flattened, so `(4, 8):(1, 4)` is a blocking too.
LayoutAnswer layout_is_blocking(Context *context, const Layout *layout, LayoutBlocking *out);
// Whether memory is the row-major array of the whole axes in some order, without padding. YES:
// order[0 .. rank) has the axes, outermost first; axes of one element precede all others.
LayoutAnswer layout_is_permutation(Context *context, const Layout *layout, int *order);

// ---- Sums, products, tilings, refinements ------------------------------------------------------
// The resulting layouts have no separators; where names of axes are equal, one gets a number. The
// result is NULL (*out is NULL) where it has more than 64 axes, or no bounds are known.

// (x, y) -> (a(x), b(y)): has the logical axes of a, then those of b, and likewise the physical and
// the replica axes.
const Layout *layout_direct_sum(Context *context, const Layout *a, const Layout *b);

typedef enum LayoutProduct {
  LAYOUT_PRODUCT_LOGICAL, // the axes of the tile, then those of the tiles
  LAYOUT_PRODUCT_BLOCKED, // axis i: x % tile_i within the tile x // tile_i
  LAYOUT_PRODUCT_RAKED,   // axis i: x // tiles_i within the tile x % tiles_i
} LayoutProduct;
// Copies of `tile`, arranged as `tiles` says: element x of tile y is stored at (tiles(y), tile(x)),
// so each copy takes the whole physical box of the tile. Ranks must agree unless LOGICAL.
const Layout *layout_product(Context *context, const Layout *tile, const Layout *tiles,
                             LayoutProduct kind);
// The same in flat memory, where the next tiles fill the gaps of a tile, as CuTe's logical_product,
// blocked_product and raked_product do: tile(x) + complement(tiles(y)).
LayoutAnswer layout_product_filled(Context *context, const Layout *tile, const Layout *tiles,
                                   LayoutProduct kind, const Layout **out);
// CuTe's complement(layout, size): the layout, by ascending stride, of the offsets with which
// copies of `layout` fill its gaps and continue up to `size`. NO: the weights of its digits do not
// divide one another, or overlap, or are XORed; or the size is negative.
LayoutAnswer layout_complement(Context *context, const Layout *layout, const LayoutExpr *size,
                               const Layout **out);
// CuTe's logical_divide by mode: axis i becomes the axes of tilers[i] (a layout of indices along
// it; NULL leaves the axis as it is) followed by those of the rest, the complement of tilers[i].
// For example, `(16):(1)` splits an axis into blocks of 16. NO: the tiles do not fill the axis
// exactly.
LayoutAnswer layout_tile(Context *context, const Layout *layout, const Layout *const *tilers,
                         const Layout **out);

// A digit, with its weight in the offset of each refined layout, a's first.
typedef struct LayoutFactor {
  LayoutDigit digit;
  const LayoutExpr *const *weights;
} LayoutFactor;
typedef struct LayoutRefinement {
  int count;
  const LayoutFactor *factors; // by axis, and along an axis the outermost first
  bool bits; // all are bits, whose weights are XORed with the offset of the origin instead of added
} LayoutRefinement;
// The coarsest set of digits of the axes of which both offsets are sums (or, with XORs, of bits of
// which both are XORs). NO: the cuts of an axis do not divide one another, as 4 and 6 do not.
LayoutAnswer layout_refine(Context *context, const Layout *a, const Layout *b,
                           LayoutRefinement *out);

// ---- Copies between layouts --------------------------------------------------------------------

typedef struct LayoutCopyLevel {
  Str resource;        // NULL: memory
  bool in_from, in_to; // which of the layouts have the resource
  // The number of element copies whose outermost change is on this resource. Where only one layout
  // has the resource, the copy loads or stores, and this counts the element copies that change on
  // no common resource further out.
  int64_t elements;
  int64_t bytes;
} LayoutCopyLevel;
typedef struct LayoutDigitPosition {
  Str resource;
  const LayoutExpr *stride; // NULL: the digit does not change the index (broadcast, replicated)
} LayoutDigitPosition;
typedef struct LayoutMove { // the move of a digit
  LayoutDigit digit;
  LayoutDigitPosition from, to;
} LayoutMove;
typedef struct LayoutCopyPlan {
  bool counted;   // the extents are numbers, and so are:
  int64_t copies; // the element copies that `to` has: elements times replicas
  // The element copies that have the same index on every resource already. It is 0 where one of the
  // layouts has a resource with several indices that the other does not have.
  int64_t still;
  int level_count;
  const LayoutCopyLevel *levels; // outermost first
  int move_count;                // 0 where the layouts have no common refinement
  const LayoutMove *moves;
} LayoutCopyPlan;
// Plans the copy of a tensor between two layouts of it, by resource. `order` names resources,
// outermost first (device, warp, lane, register); the others follow as they appear, and memory
// (NULL) is last unless it is named. A copy takes its element from the nearest replica of `from`.
// Undecided where the elements of some inner levels can be counted neither by digits nor one by one
// (then *out has the counts that are known), or where the extents are symbolic and the layouts have
// no common refinement.
LayoutAnswer layout_copy_plan(Context *context, const Layout *from, const Layout *to,
                              const Str *order, int order_count, int64_t element_bits,
                              LayoutCopyPlan *out);

// ---- Lines, pages, padding ---------------------------------------------------------------------
// These are about the part of the layout in memory, with all copies.

// Consecutive lines (or offsets): the numbers first .. first + count - 1.
typedef struct LayoutRun {
  int64_t first, count;
} LayoutRun;
typedef struct LayoutRuns {
  int64_t total;         // the number of lines (offsets)
  int64_t run_count;     // the number of maximal runs
  const LayoutRun *runs; // the first `shown` runs, ascending
  int shown;
} LayoutRuns;
// Elements of `element_bits` are packed densely from byte `base_bytes` on; line n is the bytes
// n·line_bytes .. n·line_bytes + line_bytes - 1.
typedef struct LayoutLineSize {
  int64_t element_bits, line_bytes, base_bytes;
} LayoutLineSize;
// The cache lines or pages that the elements low[i] .. low[i] + extent[i] - 1 touch (NULL: all
// elements), with the first `wanted` runs of them. YES: *out is exact. NO: the box leaves the
// shape. Undecided with symbolic extents, and where the digits have no memory order and there are
// more points than the limit.
LayoutAnswer layout_lines(Context *context, const Layout *layout, const int64_t *low,
                          const int64_t *extent, LayoutLineSize size, int wanted, LayoutRuns *out);
// The memory offsets that hold no element, likewise.
LayoutAnswer layout_padding_runs(Context *context, const Layout *layout, int wanted,
                                 LayoutRuns *out);

// ---- Bank conflicts ----------------------------------------------------------------------------

// Elements of `element_bits` are packed densely from an address that is a multiple of a whole row
// of banks. Bank k has the words n of bank_bytes with n mod bank_count = k.
typedef struct LayoutBanks {
  int64_t element_bits, bank_bytes, bank_count;
} LayoutBanks;

// An access of lanes at once. `lanes` maps (positions …, lane) to the logical index at which the
// lane's `vector` consecutive elements of memory begin (0: one element); the positions are the
// times at which the access happens. `extents` are those of the axes of `lanes`. `weight` (0: 1) is
// the weight of the access in the search for a swizzle.
typedef struct LayoutAccess {
  const IndexMap *lanes;
  const int64_t *extents;
  int64_t vector, weight;
} LayoutAccess;

// lane -> start + step·lane along one axis of a tensor of this rank (start NULL: the origin).
const IndexMap *layout_run_lanes(Context *context, int rank, const int64_t *start, int axis,
                                 int64_t step);

typedef struct LayoutConflicts {
  int64_t degree; // the largest number of distinct words that one bank serves in one phase
  int64_t bank;   // that bank
  int64_t waves;  // the sum of the degrees of all phases and positions
  int64_t words;  // the sum of the numbers of distinct words
  int64_t phase;  // the number of lanes that are served together: a full row of banks, at least one
} LayoutConflicts;
// Whether no two lanes of a phase request different words of one bank (one word is broadcast). NO:
// the witnesses are two such lanes, as indices of `lanes`. *out is exact for both verdicts, and
// with symbolic extents both hold for all values, for up to 4,096 lanes and positions.
LayoutAnswer layout_bank_conflicts(Context *context, const Layout *layout,
                                   const LayoutAccess *access, LayoutBanks banks,
                                   LayoutConflicts *out);

// A linear bijection of offsets over GF(2): bit i of the new offset is the parity of the bits of
// the old offset in rows[i], for i < bits; higher bits stay.
typedef struct LayoutSwizzle {
  const IndexMap *map;  // o -> the new offset
  const Layout *layout; // the layout followed by the swizzle, in whole blocks of 2^bits offsets
  int bits;
  const uint64_t *rows;
  bool is_named; // it is CuTe's Swizzle<b, m, s>; b = 0 is the identity
  int b, m, s;
  const int64_t *waves; // the waves of each access under it
  const int64_t *bound; // the fewest waves of each access under any linear bijection
} LayoutSwizzle;
// The swizzle with the least Σ weight · waves over the accesses, among the linear bijections that
// keep aligned units (the wider of a bank's word and the widest vector) whole and in order. YES: it
// is proved to be the best, because every access meets its bound (always so for one or two
// accesses), or because all were tried. Undecided with out->map set: it is the best that was found.
// Undecided without it: the accesses are not linear over bits. The method is described in
// docs/layouts.md, "The best swizzle".
LayoutAnswer layout_best_swizzle(Context *context, const Layout *layout, LayoutBanks banks,
                                 const LayoutAccess *accesses, int count, LayoutSwizzle *out);

// ---- Questions as values, and certificates -----------------------------------------------------

typedef enum LayoutAsk {
  LAYOUT_ASK_EQUAL,        // layout_equal(a, b)
  LAYOUT_ASK_SAME_MAP,     // layout_maps_equal(a, map)
  LAYOUT_ASK_IDENTITY,     // layout_is_identity(a)
  LAYOUT_ASK_INJECTIVE,    // layout_is_injective(a)
  LAYOUT_ASK_ONTO,         // layout_is_onto(a)
  LAYOUT_ASK_BIJECTIVE,    // layout_is_bijective(a)
  LAYOUT_ASK_INVERSE,      // layout_inverse(a): inverse
  LAYOUT_ASK_PADDING,      // layout_padding_expr(a): value
  LAYOUT_ASK_COMPOSE,      // a after b: made
  LAYOUT_ASK_DIVIDE,       // layout_divide(a, b): inverse
  LAYOUT_ASK_DIVIDE_LEFT,  // layout_divide_left(a, b): inverse
  LAYOUT_ASK_OFFSET,       // the offset of a's element (its first copy) at `index`: value
  LAYOUT_ASK_AT_OFFSET,    // layout_at_offset(a, value): index
  LAYOUT_ASK_STRIDES,      // layout_stride(a) along the axes whose strides[i] is not NULL
  LAYOUT_ASK_VECTOR,       // layout_vector_width(a) along the axes whose widths[i] is not 0
  LAYOUT_ASK_SLICE,        // layout_slice(a, low, extent, step): slice
  LAYOUT_ASK_RESHAPE,      // layout_is_reshape(a, b)
  LAYOUT_ASK_LOOP_ORDER,   // layout_loop_order(a): loops
  LAYOUT_ASK_BLOCKING,     // layout_is_blocking(a): blocking
  LAYOUT_ASK_PERMUTATION,  // layout_is_permutation(a): order
  LAYOUT_ASK_REFINE,       // layout_refine(a, b): refinement
  LAYOUT_ASK_LINES,        // layout_lines(a, first, counts, size): runs
  LAYOUT_ASK_PADDING_RUNS, // layout_padding_runs(a): runs
  LAYOUT_ASK_CONFLICTS,    // layout_bank_conflicts(a, accesses, banks): conflicts
  LAYOUT_ASK_SWIZZLE,      // layout_best_swizzle(a, banks, accesses, access_count): swizzle
  LAYOUT_ASK_COUNT
} LayoutAsk;

// A question with its operands and, once it is answered, with what was found. Members that the
// question does not have are 0.
typedef struct LayoutQuestion {
  LayoutAsk ask;
  const Layout *a, *b;
  const IndexMap *map;
  const int64_t *index;
  const LayoutExpr *const *low, *const *extent;
  const int64_t *step;
  const int64_t *first, *counts; // of a box
  LayoutLineSize size;
  LayoutBanks banks;
  const LayoutAccess *accesses;
  int access_count;
  union {
    LayoutInverse inverse;
    const Layout *made;
    const LayoutExpr *value;
    const LayoutExpr *const *strides;
    const int64_t *widths;
    LayoutSlice slice;
    LayoutLoops loops;
    LayoutBlocking blocking;
    const int *order;
    LayoutRefinement refinement;
    LayoutRuns runs;
    LayoutConflicts conflicts;
    LayoutSwizzle swizzle;
  };
} LayoutQuestion;

// Asks one of the questions EQUAL to PADDING, and keeps what is found in it.
LayoutAnswer layout_ask(Context *context, LayoutQuestion *question);

// A text from which the answer can be checked without Pleat, by the few rules in docs/layouts.md
// (layout/check/check.h is one program that does so). It is found when it is asked for, so that
// the question itself does not pay for it. What was found may be left out of the questions INVERSE
// and PADDING. NULL: the answer is undecided, the question has no certificates for such layouts
// (docs/layouts.md lists what they show), or no text was found that the checker accepts.
const char *layout_certificate(Context *context, const LayoutQuestion *question,
                               const LayoutAnswer *answer);

#endif
