// SPDX-License-Identifier: Apache-2.0
// Layouts: index maps on shapes, and exact answers to questions about them. Stands on src/base
// alone and knows nothing of programs. Everything is owned by the context (its `lasting`),
// immutable and consed: equal expressions and equal maps are equal pointers.
#ifndef PLEAT_LAYOUT_H
#define PLEAT_LAYOUT_H

#include "base/base.h"

// ---- Expressions: what physical indices are made of ------------------------------------------

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
  int64_t value; // LAYOUT_CONST: the value; LAYOUT_AXIS: which logical axis, from 0
  Str symbol;    // LAYOUT_SYMBOL
  const LayoutExpr *args[3];
};

const char *layout_op_text(LayoutOp op);
int layout_op_arguments(LayoutOp op);

const LayoutExpr *layout_const(Context *context, int64_t value);
const LayoutExpr *layout_axis(Context *context, int axis);
const LayoutExpr *layout_symbol(Context *context, Str name);
// Any other operation; unused arguments are NULL. Folds constants and neutral elements; division
// by the constant 0 and results that do not fit 64 bits stay as they are and evaluate to nothing.
const LayoutExpr *layout_expr(Context *context, LayoutOp op, const LayoutExpr *a,
                              const LayoutExpr *b, const LayoutExpr *c);
// `e` with axis i replaced by axes[i] (kept when NULL or i >= count).
const LayoutExpr *layout_expr_substitute(Context *context, const LayoutExpr *e,
                                         const LayoutExpr *const *axes, int count);
// Python text; axes are called names[i], or i0, i1, … without names.
const char *layout_expr_text(Context *context, const LayoutExpr *e, const Str *names, int count);

// ---- Facts about symbolic extents ------------------------------------------------------------

// min <= symbol <= max (max 0: no limit), and `multiple` divides it. A symbol without facts is at
// least 1.
typedef struct LayoutFact {
  Str symbol;
  int64_t min, max, multiple;
} LayoutFact;
typedef struct LayoutFacts {
  const LayoutFact *items;
  int count;
} LayoutFacts;

typedef struct LayoutValue { // one symbol of an instance
  Str symbol;
  int64_t value;
} LayoutValue;

typedef struct LayoutDefinition { // a symbol that stands for an expression of others
  Str symbol;
  const LayoutExpr *value;
} LayoutDefinition;

// The value at an index. False when a division by zero, an overflow, or a symbol without value
// stands in the way.
bool layout_expr_value(const LayoutExpr *e, const int64_t *index, const LayoutValue *values,
                       int value_count, int64_t *out);

// ---- Index maps ------------------------------------------------------------------------------

// Replica axes stand after the logical ones: LAYOUT_AXIS values from input_count on. The element of
// a logical index x lies at all places F(x, r), r in the box of the replica extents.
typedef struct IndexMap {
  int input_count, output_count, separator_count, replica_count;
  const Str *inputs;                // names of the logical axes, then of the replica axes
  const int64_t *replicas;          // extents of the replica axes, at least 1
  const LayoutExpr *const *outputs; // one for each physical axis
  const Str *resources;             // for each physical axis its resource; NULL is memory
  const int *separators;            // ascending; k: a mark before output k (0 <= k <= count)
  uint32_t id;
} IndexMap;

// Consed. `inputs` may be NULL (i0, i1, …), `resources` NULL (all memory). Axis separators must
// ascend and lie in range: our fault otherwise, since parsers check what users write.
const IndexMap *index_map_new(Context *context, int input_count, const Str *inputs,
                              int output_count, const LayoutExpr *const *outputs,
                              const Str *resources, const int *separators, int separator_count);
// The same with replica axes; `inputs` then holds input_count + replica_count names, or is NULL.
const IndexMap *index_map_replicated(Context *context, int input_count, int replica_count,
                                     const Str *inputs, const int64_t *replicas, int output_count,
                                     const LayoutExpr *const *outputs, const Str *resources,
                                     const int *separators, int separator_count);
const IndexMap *index_map_identity(Context *context, int rank);
// `map` with other outputs, as many as it has: its axes, resources and separators stay.
const IndexMap *index_map_with_outputs(Context *context, const IndexMap *map,
                                       const LayoutExpr *const *outputs);
// The same function, names aside: separators, resources and replica axes included.
bool index_map_same(const IndexMap *a, const IndexMap *b);
// outer after inner: outer's inputs are inner's outputs. Separators and resources of outer; the
// replica axes of both, inner's first.
const IndexMap *index_map_compose(Context *context, const IndexMap *outer, const IndexMap *inner);
// Physical index of a logical one, of its first copy (all replica axes at 0); false as
// layout_expr_value.
bool index_map_apply(const IndexMap *map, const int64_t *index, int64_t *out);
// Of the copy at the index `replica`; NULL is the first.
bool index_map_apply_copy(const IndexMap *map, const int64_t *index, const int64_t *replica,
                          int64_t *out);

// What a spelling is read with.
typedef struct LayoutSource {
  const char *text;
  size_t size;
  SourcePos pos; // where `text` begins in its file; errors point into it. {0}: a file of its own
  int rank;      // of the logical shape, or -1 when not known (then `*indices` is refused)
  const char *order; // order of the logical axes for named axes, "NCHW"; NULL: the usual one
  bool symbols;      // unknown names are symbols, not errors
  const LayoutDefinition *definitions; // what symbols stand for
  int definition_count;
} LayoutSource;
// A source for a whole terminated string that stands alone.
LayoutSource layout_source(const char *text, int rank);

// Reads a map in any spelling (see below; docs/layouts.md has them all). NULL after located
// diagnostics. Without an order, named axes are NCHW, NCW, NCDHW, OIHW, OIW, OIDHW, GOIHW … where
// the letters are just those; else in their order of appearance.
const IndexMap *index_map_parse(Context *context, const LayoutSource *source);
// The arrow form; parses back to the same map.
const char *index_map_text(Context *context, const IndexMap *map);
// `lambda …: [...]`, likewise.
const char *index_map_lambda(Context *context, const IndexMap *map);
// The named form ("NCHW16c") over the given order, or NULL when the map is none. Order NULL: the
// upper-case names of the inputs, where they are single letters. Read it back with that order.
const char *index_map_name(Context *context, const IndexMap *map, const char *order);

// ---- Layouts ---------------------------------------------------------------------------------

typedef enum LayoutPaddingKind {
  LAYOUT_PADDING_UNKNOWN, // nothing is known of what the padding holds
  LAYOUT_PADDING_ANY,     // any value may be there and may be written there
  LAYOUT_PADDING_CONSTANT,
} LayoutPaddingKind;
typedef struct LayoutPadding {
  LayoutPaddingKind kind;
  double value;
} LayoutPadding;

typedef struct Layout {
  int rank, physical_rank;
  const IndexMap *map;
  // Logical extents, constants or expressions of symbols; then those of the map's replica axes.
  const LayoutExpr *const *shape;
  const LayoutExpr *const *physical; // physical extents
  bool is_static;                    // both are constants; then also:
  const int64_t *extents, *physical_extents;
  LayoutFacts facts;
  LayoutPadding padding;
  struct LayoutCache *cache; // answers already given
} Layout;

// A map on a shape. `physical` NULL: extents are derived, so that they can be foretold from the
// text: `e % m` spans m, `e & m` spans m + 1, `^` and `|` reach the next power of two, the rest is
// interval arithmetic. NULL with a diagnostic at `pos` for ranks that differ, negative extents,
// an index that leaves the physical shape (or cannot be proved to stay), a size beyond 64 bits.
const Layout *layout_new(Context *context, const IndexMap *map, const LayoutExpr *const *shape,
                         const LayoutExpr *const *physical, LayoutFacts facts,
                         LayoutPadding padding, SourcePos pos);
const Layout *layout_static(Context *context, const IndexMap *map, const int64_t *shape,
                            SourcePos pos); // derived physical extents, padding unknown
// The layout of the copies: replica axes become logical axes after the others, those that change no
// place are left out. The layout itself when it has none. What reads `outputs` over a box of
// `shape` asks this one.
const Layout *layout_of_copies(Context *context, const Layout *layout);
// The part of a layout on one resource (NULL: memory): only those physical axes, read as memory, so
// that offsets and strides are those within the resource. Without separators.
const Layout *layout_on_resource(Context *context, const Layout *layout, Str resource);
const Layout *layout_row_major(Context *context, int rank, const int64_t *shape);
const Layout *layout_with_padding(Context *context, const Layout *layout, LayoutPadding padding);
// Reads a spelling on a shape (`source.rank` is taken from it). After a map, ` in [4, 8, 16]`
// overrides the physical extents.
const Layout *layout_parse(Context *context, const LayoutSource *source,
                           const LayoutExpr *const *shape, int rank, LayoutFacts facts);
const Layout *layout_parse_static(Context *context, const char *text, const int64_t *shape,
                                  int rank);
// The logical shape of a text for which none is given (`source.rank` is -1): the one that it says
// (CuTe, PyTorch, bases, shards, XLA after a type), *said; otherwise a symbol for each axis in
// capitals, `n` is `N`, or what the source defines it as. NULL after located diagnostics.
const LayoutExpr *const *layout_shape_of(Context *context, const LayoutSource *source, int *rank,
                                         bool *said);
// All groups between axis separators flattened to one physical axis each. The layout itself where
// it has resources or replicas; NULL where it is not proved that the sum stays in its extent (a map
// with symbols of its own).
const Layout *layout_flattened(Context *context, const Layout *layout);
// The map in arrow form, with ` in [...]` when the physical extents are not the derived ones.
const char *layout_text(Context *context, const Layout *layout);

// ---- Spellings -------------------------------------------------------------------------------

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

// "index-map", "cute", …; one text in the spelling; what it is, in a few words.
const char *layout_spelling_name(LayoutSpelling spelling);
const char *layout_spelling_example(LayoutSpelling spelling);
const char *layout_spelling_meaning(LayoutSpelling spelling);
// By its name, or that of the system that has it: "onednn", "pytorch", "triton", "tvm".
bool layout_spelling_find(const char *name, LayoutSpelling *out);
// In which spelling a text is (or is meant to be).
LayoutSpelling layout_spelling_of(Context *context, const LayoutSource *source);
// The layout in a spelling: reading it on the layout's shape gives an equal layout. NULL when the
// spelling cannot say it; *why says the reason, and the index map.
const char *layout_spell(Context *context, const Layout *layout, LayoutSpelling spelling,
                         const char **why);

// ---- Extents and conditions as users write them ------------------------------------------------

// One extent: a number, a symbol, an expression of symbols ("16*K", "(C + 15)//16"). NULL after
// located diagnostics.
const LayoutExpr *layout_extent_parse(Context *context, const LayoutSource *source);
// "1x30x7x7", "Nx30xHxW"; or with commas, where extents may be expressions and names may hold an
// x: "n, 30, (h + 1)//2"; brackets around it are allowed, and nothing is rank 0. NULL after located
// diagnostics.
const LayoutExpr *const *layout_shape_parse(Context *context, const LayoutSource *source,
                                            int *rank);

// What conditions say: facts, and symbols that stand for something.
typedef struct LayoutConditions {
  LayoutFacts facts;
  const LayoutDefinition *definitions;
  int definition_count;
} LayoutConditions;
// Reads "C % 16 == 0", "C >= 16", "3 <= C <= 64" as "3 <= C and C <= 64", "2*C < 100", "C == 64",
// "C == 16*K". What facts cannot say, and what no value satisfies, is refused. False after located
// diagnostics.
bool layout_conditions_parse(Context *context, const LayoutSource *sources, int count,
                             LayoutConditions *out);
// Makes the symbols of the facts, of the definitions and of these expressions known: each gets a
// definition, if only as itself. With these in a LayoutSource and `symbols` false, a name that
// nothing knows is an error.
void layout_conditions_know(Context *context, LayoutConditions *conditions,
                            const LayoutExpr *const *exprs, int count);

// The first of these extents that is found to be negative at values of the symbols for which the
// facts hold, and those values; -1: none was found. (Only some values are tried.)
int layout_negative_extent(Context *context, LayoutFacts facts, const LayoutExpr *const *extents,
                           int count, const LayoutValue **values, int *value_count);

// ---- Answers ---------------------------------------------------------------------------------

typedef enum LayoutLevel { LAYOUT_DIGITS, LAYOUT_ISL, LAYOUT_POINTS } LayoutLevel;
const char *layout_level_name(LayoutLevel level); // "digits", "isl", "points"
typedef struct LayoutAnswer {
  Verdict verdict;
  LayoutLevel level;  // which level answered
  const char *reason; // VERDICT_UNDECIDED, or a word on a "no"
  // VERDICT_NO: a logical index where the claim fails, and for a collision the other one (onto: a
  // physical index that nothing reaches). NULL when the reason says it all (ranks that differ).
  const int64_t *witness, *witness2;
  int witness_rank;
  const LayoutValue *instance; // values of the symbols at which the witness holds
  int instance_count;
} LayoutAnswer;

// "no: [0, 3] and [8, 3] share a place", for messages.
const char *layout_answer_text(Context *context, const LayoutAnswer *answer);

// Same logical shape, same map, same physical extents and separators (padding content aside).
// With replicas: the same set of places for every element.
LayoutAnswer layout_equal(Context *context, const Layout *a, const Layout *b);
// Same map on a's logical shape, whatever the physical extents.
LayoutAnswer layout_maps_equal(Context *context, const Layout *a, const IndexMap *b);
LayoutAnswer layout_is_identity(Context *context, const Layout *layout);
// Two different elements share no place.
LayoutAnswer layout_is_injective(Context *context, const Layout *layout);
// Every place holds an element.
LayoutAnswer layout_is_onto(Context *context, const Layout *layout);
// Injective and onto, and every element lies in one place only.
LayoutAnswer layout_is_bijective(Context *context, const Layout *layout);

// physical -> logical for an injective layout: the map, and the condition over physical axes that
// says which places are padding (NULL: none are). "no" carries a collision.
typedef struct LayoutInverse {
  const IndexMap *map;
  const LayoutExpr *padding;
} LayoutInverse;
LayoutAnswer layout_inverse(Context *context, const Layout *layout, LayoutInverse *out);

// b's places to a's, for two layouts of one logical shape: a ∘ b⁻¹, as a layout on b's physical
// shape. The copy of a tensor from b to a reads [p] and writes [out(p)] where not padding.
LayoutAnswer layout_divide(Context *context, const Layout *a, const Layout *b, LayoutInverse *out);
// The same quotient, its map shorter where that is found: for people.
void layout_divide_simplify(Context *context, const Layout *a, const Layout *b,
                            LayoutInverse *quotient);

// `e` on the box 0 .. extents[i] - 1 of its axes, in normal form: equal values, and often simpler
// (`(16*a + b)//16` with b < 16 is a). `e` itself where the digits do not carry it.
const LayoutExpr *layout_expr_simplify(Context *context, const LayoutExpr *e,
                                       const int64_t *extents, int rank);

// ---- Numbers ---------------------------------------------------------------------------------

// Places (over all physical axes, whatever their resource) and elements. False with *out untouched
// when they do not fit 64 bits or are symbolic.
bool layout_physical_size(const Layout *layout, int64_t *out);
bool layout_logical_size(const Layout *layout, int64_t *out);
// Places that hold no element. Undecided as the questions.
LayoutAnswer layout_padding_count(Context *context, const Layout *layout, int64_t *out);
// The same as an expression of the symbols, of symbolic layouts too.
LayoutAnswer layout_padding_expr(Context *context, const Layout *layout, const LayoutExpr **out);
// Flattened physical extents: one for each group of axes between separators.
int layout_group_count(const Layout *layout);
const LayoutExpr *const *layout_group_extents(Context *context, const Layout *layout);
// Index within each group, as expressions of the logical axes (row-major over the group's axes).
const LayoutExpr *const *layout_group_indices(Context *context, const Layout *layout);
// The index of an ordinal, row-major in a box without empty axes, and back.
void layout_index_at(const int64_t *extents, int rank, int64_t ordinal, int64_t *index);
int64_t layout_ordinal_of(const int64_t *extents, int rank, const int64_t *index);
// Row-major offset over all physical axes, whatever their resource: the number of the place. An
// expression of the logical axes and the replica axes. (Of one resource: ask layout_on_resource.)
const LayoutExpr *layout_offset_expr(Context *context, const Layout *layout);
// Of one static logical index (its first copy); false when it is out of the shape or does not fit.
bool layout_offset(const Layout *layout, const int64_t *index, int64_t *offset);
// Of every element of a static layout in row-major order of the logical index, its copies side by
// side: `out` has room for the logical size of layout_of_copies. False where one is undefined.
bool layout_offsets(Context *context, const Layout *layout, int64_t *out);
// The logical index at an offset: VERDICT_YES and *index set, VERDICT_NO on padding.
LayoutAnswer layout_at_offset(Context *context, const Layout *layout, int64_t offset,
                              int64_t *index);
// strides[i]: the constant step of the offset per step of axis i, where has_stride[i]. With axes on
// other resources: of the memory offset, where the step stays on the same lane, register, ….
// On an axis of one element every step is right: the text's own from the origin is given, where it
// has one (layout_stride gives 0).
void layout_strides(Context *context, const Layout *layout, int64_t *strides, bool *has_stride);
// The largest w such that for every index, elements x .. x + w - 1 along `axis` (x a multiple of
// w) lie at consecutive offsets, the first a multiple of w. 1 when nothing better is proved; with
// symbolic extents for all values. With axes on other resources: in memory, all w on the same lane,
// register, ….
int64_t layout_vector_width(Context *context, const Layout *layout, int axis);

// ---- Slices and reshapes ---------------------------------------------------------------------

typedef struct LayoutSlice {
  const Layout *layout;             // of the box: the same physical axes, resources and copies
  const LayoutExpr *offset;         // memory offset of its first element
  const LayoutExpr *const *strides; // memory strides along its axes; NULL: there are none
} LayoutSlice;
// The slice low[i] + step[i]·x, x < extent[i] (low NULL: 0, step NULL: 1; a step may be negative).
// YES: offset + Σ strides·x is the memory offset everywhere, on one lane, device, …. NO: out of the
// shape (out->layout NULL), or no such strides, with an index of the slice as witness; its layout
// is there all the same.
LayoutAnswer layout_slice(Context *context, const Layout *layout, const LayoutExpr *const *low,
                          const LayoutExpr *const *extent, const int64_t *step, LayoutSlice *out);
// The tensor with another logical shape, elements in row-major order, in the same places. NULL when
// the numbers of elements are not proved equal, or bounds are not known.
const Layout *layout_reshape(Context *context, const Layout *layout, const LayoutExpr *const *shape,
                             int rank);
// The same layout, its map shorter where that is found.
const Layout *layout_simplified(Context *context, const Layout *layout);
// Whether a is b reshaped: elements of the same row-major number at the same memory offset. "no"
// carries an index of a.
LayoutAnswer layout_is_reshape(Context *context, const Layout *a, const Layout *b);

// ---- Memory in sequence ----------------------------------------------------------------------

typedef struct LayoutLoop {
  const LayoutExpr *extent, *stride; // iterations; memory offset from one to the next
  int axis;                          // the logical axis that it runs along; -1: not one alone
  int64_t step;                      // by so much of it (negative: downwards); 0: not known
} LayoutLoop;
// for l0 … for lk: if guard(l): element index(l)
typedef struct LayoutLoops {
  int count;
  const LayoutLoop *loops; // outermost first
  const IndexMap *index;   // counters -> logical index
  const LayoutExpr *guard; // over the counters; NULL: each iteration has its element
} LayoutLoops;
// The nest that visits every element (every copy in memory) once, by ascending memory offset,
// padding skipped: over the digits of the axes where the offset is a sum of them, else over the
// physical axes by way of the inverse. NO: two elements share a place.
LayoutAnswer layout_loop_order(Context *context, const Layout *layout, LayoutLoops *out);

// (axis // block) % extent; the last along an axis takes the rest of it, padded up to `extent`.
typedef struct LayoutBlock {
  int axis;
  int64_t block;
  const LayoutExpr *extent;
} LayoutBlock;
typedef struct LayoutBlocking {
  int count;
  const LayoutBlock *blocks; // outermost in memory first; digits that are always 0 left out
} LayoutBlocking;
// Whether memory is the row-major array of the digits of the axes, in some order: which axes, which
// blocks. Physical axes count as flattened, so `(4, 8):(1, 4)` is one too.
LayoutAnswer layout_is_blocking(Context *context, const Layout *layout, LayoutBlocking *out);
// Whether memory is the row-major array of the whole axes in some order, without padding. YES:
// order[0 .. rank) has the axes, outermost first, those of one element before all others.
LayoutAnswer layout_is_permutation(Context *context, const Layout *layout, int *order);
// The constant step of the memory offset along an axis, as an expression of the symbols; 0 where
// the axis has one element. "no" carries an index from which the step is another.
LayoutAnswer layout_stride(Context *context, const Layout *layout, int axis,
                           const LayoutExpr **stride);

// ---- Sums, products, tilings, divisions ------------------------------------------------------
// Made layouts have no separators; names of axes that meet get a number. NULL (*out NULL): more
// than 64 axes, or no bounds are known.

// (x, y) -> (a(x), b(y)): the logical axes of a, then of b; so the physical and the replica axes.
const Layout *layout_direct_sum(Context *context, const Layout *a, const Layout *b);

typedef enum LayoutProduct {
  LAYOUT_PRODUCT_LOGICAL, // the axes of the tile, then those of the tiles
  LAYOUT_PRODUCT_BLOCKED, // axis i: x % tile_i within the tile x // tile_i
  LAYOUT_PRODUCT_RAKED,   // axis i: x // tiles_i within the tile x % tiles_i
} LayoutProduct;
// Copies of `tile` arranged as `tiles` says: element x of tile y lies at (tiles(y), tile(x)), so
// each copy takes the whole physical box of the tile. Ranks must agree unless LOGICAL.
const Layout *layout_product(Context *context, const Layout *tile, const Layout *tiles,
                             LayoutProduct kind);
// The same in flat memory with the gaps of the tile filled by the next tiles, as CuTe's
// logical_product, blocked_product, raked_product: tile(x) + complement(tiles(y)).
LayoutAnswer layout_product_filled(Context *context, const Layout *tile, const Layout *tiles,
                                   LayoutProduct kind, const Layout **out);
// CuTe's complement(layout, size): the ordered layout, least stride first, of the offsets with
// which copies of `layout` fill its gaps and go on up to `size`. NO: its digits do not divide each
// other, overlap, or are XORed; or the size is negative.
LayoutAnswer layout_complement(Context *context, const Layout *layout, const LayoutExpr *size,
                               const Layout **out);
// CuTe's logical_divide by mode: axis i as the axes of tilers[i] (a layout of places along it, NULL
// for an axis left alone) followed by those of the rest, tilers[i]'s complement. `(16):(1)` splits
// an axis into blocks of 16. NO: the tiles do not fill the axis exactly.
LayoutAnswer layout_tile(Context *context, const Layout *layout, const Layout *const *tilers,
                         const Layout **out);
// The other side of layout_divide: a⁻¹ ∘ b, from b's logical index to the index that a has at that
// place; for layouts of one physical shape. `padding`: b's indices whose place is padding of a.
LayoutAnswer layout_divide_left(Context *context, const Layout *a, const Layout *b,
                                LayoutInverse *out);

// (axis // cut) % extent, which the layouts that are refined place at the weights, a first.
typedef struct LayoutFactor {
  int axis;
  int64_t cut;
  const LayoutExpr *extent;
  const LayoutExpr *const *weights;
} LayoutFactor;
typedef struct LayoutRefinement {
  int count;
  const LayoutFactor *factors; // by axis; along an axis the outermost first
  bool bits; // all are bits, and their weights are XORed with the offset of the origin, not added
} LayoutRefinement;
// The coarsest set of digits of the axes of which both offsets are sums (with XORs: bits of which
// both are XORs). NO: their cuts are no chain, as 4 and 6 are none.
LayoutAnswer layout_refine(Context *context, const Layout *a, const Layout *b,
                           LayoutRefinement *out);

// ---- Copies between layouts ------------------------------------------------------------------

typedef struct LayoutCopyLevel {
  Str resource;        // NULL: memory
  bool in_from, in_to; // which of the layouts have it
  // Copies of elements whose outermost change is on this resource. Where only one layout has it,
  // the copy loads or stores: those that change on no resource of both further out.
  int64_t elements;
  int64_t bytes;
} LayoutCopyLevel;
typedef struct LayoutDigitPosition {
  Str resource;
  const LayoutExpr *stride; // NULL: the digit does not move the place (broadcast, replicated)
} LayoutDigitPosition;
typedef struct LayoutMove { // what becomes of the digit (axis // cut) % extent
  int axis;
  int64_t cut;
  const LayoutExpr *extent;
  LayoutDigitPosition from, to;
} LayoutMove;
typedef struct LayoutCopyPlan {
  bool counted;   // extents are numbers, and so are:
  int64_t copies; // element copies that `to` has: elements times replicas
  // Of them, those that have the same place on every resource already; none where one of the
  // layouts has a resource with several places that the other has not.
  int64_t still;
  int level_count;
  const LayoutCopyLevel *levels; // outermost first
  int move_count;                // 0 where the layouts have no common refinement
  const LayoutMove *moves;
} LayoutCopyPlan;
// The copy of a tensor between two layouts of it, by resource. `order` names resources outermost
// first (device, warp, lane, register); others follow as they appear, memory (NULL) is last unless
// named. A copy takes its element from the replica of `from` that is nearest. Undecided where the
// elements of some inner levels can neither be counted by digits nor one by one (what is known is
// in *out), or the extents are symbolic and the layouts have no common refinement.
LayoutAnswer layout_copy_plan(Context *context, const Layout *from, const Layout *to,
                              const Str *order, int order_count, int64_t element_bits,
                              LayoutCopyPlan *out);

// ---- Lines, pages, padding -------------------------------------------------------------------
// Of the part in memory, all copies.

// Neighbouring lines (or places): numbers first .. first + count - 1.
typedef struct LayoutRun {
  int64_t first, count;
} LayoutRun;
typedef struct LayoutRuns {
  int64_t total;         // lines (places) in all
  int64_t run_count;     // maximal runs of neighbours
  const LayoutRun *runs; // the first of them, ascending
  int shown;
} LayoutRuns;
// Elements of `element_bits` lie densely from byte `base_bytes` on; line n is the bytes
// n·line_bytes .. n·line_bytes + line_bytes - 1.
typedef struct LayoutLineSize {
  int64_t element_bits, line_bytes, base_bytes;
} LayoutLineSize;
// The cache lines or pages that the elements low[i] .. low[i] + extent[i] - 1 touch (NULL: all),
// with the first `wanted` runs of them. YES: *out is exact. NO: the box leaves the shape. Undecided
// with symbolic extents, and for digits that are not in order on more points than the limit.
LayoutAnswer layout_lines(Context *context, const Layout *layout, const int64_t *low,
                          const int64_t *extent, LayoutLineSize size, int wanted, LayoutRuns *out);
// The places (memory offsets) that hold no element, likewise.
LayoutAnswer layout_padding_runs(Context *context, const Layout *layout, int wanted,
                                 LayoutRuns *out);

// ---- Bank conflicts --------------------------------------------------------------------------

// Elements of `element_bits` lie densely from an address that is a multiple of a whole row of banks
// on; bank k holds the words n of bank_bytes with n mod bank_count = k.
typedef struct LayoutBanks {
  int64_t element_bits, bank_bytes, bank_count;
} LayoutBanks;

// What lanes want at once. `lanes` maps (positions …, lane) to the logical index where the lane's
// `vector` consecutive elements of memory begin (0: one); the other axes are the times that this
// happens. `extents` are those of its axes. `weight` (0: 1) counts in the search for a swizzle.
typedef struct LayoutAccess {
  const IndexMap *lanes;
  const int64_t *extents;
  int64_t vector, weight;
} LayoutAccess;

// lane -> start + step·lane along one axis of a tensor of that rank (start NULL: the origin).
const IndexMap *layout_run_lanes(Context *context, int rank, const int64_t *start, int axis,
                                 int64_t step);

typedef struct LayoutConflicts {
  int64_t degree; // the largest number of distinct words that one bank has to give in one phase
  int64_t bank;   // where
  int64_t waves;  // the sum over phases and positions of their degrees
  int64_t words;  // distinct words, summed likewise
  int64_t phase;  // lanes that are served together: a full row of banks, at least one
} LayoutConflicts;
// YES: no two lanes of a phase want different words of one bank (the same word is broadcast). NO:
// the witnesses are the two lanes, as indices of `lanes`. *out is exact in both cases. With
// symbolic extents both hold for all values; up to 4,096 lanes and positions.
LayoutAnswer layout_bank_conflicts(Context *context, const Layout *layout,
                                   const LayoutAccess *access, LayoutBanks banks,
                                   LayoutConflicts *out);

// A linear bijection of offsets over GF(2): bit i of the new offset is the parity of the old one's
// bits in rows[i], for i < bits; higher bits stay.
typedef struct LayoutSwizzle {
  const IndexMap *map;  // o -> the new offset
  const Layout *layout; // the layout with the swizzle after its offset, in whole blocks of 2^bits
  int bits;
  const uint64_t *rows;
  bool is_named; // it is CuTe's Swizzle<b, m, s>; b = 0 is the identity
  int b, m, s;
  const int64_t *waves; // of each access under it
  const int64_t *bound; // the fewest that any linear bijection gives that access
} LayoutSwizzle;
// The swizzle with the least Σ weight · waves over the accesses, among the linear bijections that
// keep aligned units (the wider of a bank's word and the widest vector) whole and in order. YES:
// proved, by the bounds being met (always so for one or two accesses) or by trying all. Undecided
// with out->map set: the best that was found; without: the accesses are not linear over bits.
// Method: docs/layouts.md, "The best swizzle".
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
