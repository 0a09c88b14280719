/* SPDX-License-Identifier: Apache-2.0
 *
 * Layouts: where each element of a tensor is stored, and exact answers about it. Link with
 * libpleat.
 *
 * A layout maps the logical index of each element of a tensor to its physical index. The offset of
 * an element is the row-major number of its physical index, in elements. A physical index that
 * holds no element is padding. A layout is written in one of several spellings: named axes and
 * blocks ("NCHW16c"), an index map ("n,c,h,w -> n,c//16,h,w,c%16"), or those of oneDNN, CuTe, XLA,
 * PyTorch, Triton and TVM; docs/layouts.md of the package describes them.
 *
 *   PleatLayout *layout;
 *   PleatMessages *messages;
 *   int verdict;
 *   if (pleat_layout_read("NCHW16c", "1x30x7x7", &layout, &messages) != PLEAT_OK ||
 *       pleat_layout_is_onto(layout, &verdict, NULL, &messages) != PLEAT_OK)
 *     fputs(pleat_messages_text(messages), stderr);
 *   else if (verdict == PLEAT_NO)
 *     puts("it has padding");
 *
 * Errors. Every function that returns an int, other than those under "Parts of a layout", returns a
 * status of pleat/pleat.h. Unless it is PLEAT_OK, results are NULL or unchanged, and *messages, if
 * `messages` is not NULL, says what is wrong; a message names the first layout "a", the second "b".
 * An argument that is not allowed to be NULL and is, is refused.
 *
 * Verdicts. An answer is exact, or it is undecided: PLEAT_UNDECIDED is given where neither yes nor
 * no is proved, which occurs with symbolic extents only, and for layouts of very many elements that
 * are not sums of digits of the indices. A function that makes a layout gives PLEAT_NO when there
 * is no such layout; its results are then NULL.
 *
 * Proofs. Where `proof` is not NULL, *proof becomes an owned PleatProof, with the witness of
 * PLEAT_NO, the reason, and, if one is found, a certificate: a text that the program `pleat-check`
 * verifies without the code that found the answer. Finding a certificate takes time, so pass NULL
 * when it is not needed.
 *
 * Symbols. Extents may be symbols ("NxCx7x7"); an answer then holds for all their values that
 * satisfy the layout's conditions. Numbers in answers are PleatValue where they may have symbols.
 *
 * Memory. A PleatLayout is freed with pleat_layout_free. Every other owned result is one block with
 * all that it points to, and is freed with pleat_free. Texts are UTF-8 and end with 0.
 *
 * Threads. A PleatLayout never changes, so any number of threads may use it at once.
 *
 * Time. A call reads the layouts from their spelling, which takes some microseconds. */
#ifndef PLEAT_LAYOUT_FUNCTIONS_H
#define PLEAT_LAYOUT_FUNCTIONS_H

#include "pleat/pleat.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct PleatLayout PleatLayout;

/* Verdicts. */
enum { PLEAT_NO = 0, PLEAT_YES = 1, PLEAT_UNDECIDED = 2 };

/* A number, or an expression of symbols. */
typedef struct PleatValue {
  int is_constant;  /* not 0: `number` is the value */
  int64_t number;   /* 0 unless is_constant */
  const char *text; /* the number or the expression, such as "16*K"; NULL: there is no such value */
} PleatValue;

/* How an answer was found. Later versions add fields at the end. */
typedef struct PleatProof {
  int verdict;
  /* Why there is no answer, or a remark; or NULL. */
  const char *reason;
  /* An index of `witness_rank` numbers that refutes the question; for two elements with the same
   * physical index, both indices. NULL: there is none. It is a logical index, but a physical index
   * for "onto", and for bank conflicts an index of the access. */
  const int64_t *witness, *second_witness;
  int witness_rank;
  /* The values of symbols for which the witness is one. */
  const char *const *symbols;
  const int64_t *symbol_values;
  int symbol_count;
  const char *level;       /* the method that decided: "digits", "isl" or "points" */
  const char *certificate; /* NULL: none was found, or the question has none */
  int64_t nanoseconds;     /* the time of the question alone */
} PleatProof;

/* ---- Making layouts ------------------------------------------------------------------------- */

/* The description of a layout. All pointers are borrowed during the call; a field that is 0 has no
 * effect. */
typedef struct PleatLayoutSource {
  size_t size;          /* sizeof(PleatLayoutSource) in the caller's version of this header */
  const char *spelling; /* required */
  const char *shape;    /* the logical extents, numbers or symbols: "1x30x7x7", "N, C, (H+1)//2" */
  const int64_t *extents;   /* the same as numbers, where `shape` is NULL */
  int rank;                 /* the number of `extents` */
  const char *physical;     /* the physical extents, if not those that follow from the spelling */
  const char *const *where; /* conditions on the symbols: "C % 16 == 0", "C <= 512" */
  size_t where_count;
  const char *order;   /* the letters of the logical axes of a named spelling, in order: "NCHW" */
  const char *padding; /* the content of the padding: a number, "any" or "unknown" */
} PleatLayoutSource;

/* Makes a layout. Without `shape` and `extents`, the shape is that of the spelling, or each extent
 * is a symbol named after its axis. */
int pleat_layout_new(const PleatLayoutSource *source, PleatLayout **layout,
                     PleatMessages **messages);
/* The same from a spelling and a shape as text, which may be NULL. */
int pleat_layout_read(const char *spelling, const char *shape, PleatLayout **layout,
                      PleatMessages **messages);
/* The same from the JSON object that pleat_layout_query takes for a layout. */
int pleat_layout_from_json(const char *json, PleatLayout **layout, PleatMessages **messages);
/* Frees a layout. NULL is allowed. */
void pleat_layout_free(PleatLayout *layout);

/* ---- Parts of a layout ----------------------------------------------------------------------
 * The results are borrowed until the layout is freed. NULL has rank 0 and no texts. */

int pleat_layout_rank(const PleatLayout *layout);                /* the number of logical axes */
int pleat_layout_physical_rank(const PleatLayout *layout);       /* the number of physical axes */
const PleatValue *pleat_layout_shape(const PleatLayout *layout); /* the logical extents */
const PleatValue *pleat_layout_physical_shape(const PleatLayout *layout); /* the physical extents */
/* The name of logical axis `i`, from 0; NULL when `i` is out of range. */
const char *pleat_layout_axis(const PleatLayout *layout, int i);
const char *pleat_layout_spelling(const PleatLayout *layout);
/* The layout as the JSON object that pleat_layout_from_json reads. */
const char *pleat_layout_json(const PleatLayout *layout);

/* ---- Properties -----------------------------------------------------------------------------
 * Questions with a verdict. */

/* Is every physical index the logical index, and are the extents the same? */
int pleat_layout_is_identity(const PleatLayout *layout, int *verdict, PleatProof **proof,
                             PleatMessages **messages);
/* Do no two elements have the same physical index? */
int pleat_layout_is_injective(const PleatLayout *layout, int *verdict, PleatProof **proof,
                              PleatMessages **messages);
/* Does every physical index hold an element, so that there is no padding? */
int pleat_layout_is_onto(const PleatLayout *layout, int *verdict, PleatProof **proof,
                         PleatMessages **messages);
/* Both of them. */
int pleat_layout_is_bijective(const PleatLayout *layout, int *verdict, PleatProof **proof,
                              PleatMessages **messages);
/* Do a and b have the same map, extents and axis separators? The content of padding may differ. */
int pleat_layout_equal(const PleatLayout *a, const PleatLayout *b, int *verdict, PleatProof **proof,
                       PleatMessages **messages);
/* Do they have the same map? The physical extents may differ. */
int pleat_layout_same_map(const PleatLayout *a, const PleatLayout *b, int *verdict,
                          PleatProof **proof, PleatMessages **messages);
/* Is a the layout b under another logical shape, so that elements with the same row-major number
 * have the same offset? */
int pleat_layout_is_reshape(const PleatLayout *a, const PleatLayout *b, int *verdict,
                            PleatProof **proof, PleatMessages **messages);

/* ---- Layouts from layouts -------------------------------------------------------------------
 * *made is owned, and NULL unless the verdict is PLEAT_YES. */

/* The map from physical to logical indices, as a layout on the physical shape. *padding, unless
 * `padding` is NULL, becomes owned text: the condition over the axes of *made for which the
 * physical index holds no element; NULL when there is none. */
int pleat_layout_inverse(const PleatLayout *layout, int *verdict, PleatLayout **made,
                         char **padding, PleatProof **proof, PleatMessages **messages);
/* The map from the physical indices of b to those of a, of the same elements: to copy a tensor from
 * b to a, read at p and write at made(p), unless p is padding of b. */
int pleat_layout_divide(const PleatLayout *a, const PleatLayout *b, int *verdict,
                        PleatLayout **made, char **padding, PleatProof **proof,
                        PleatMessages **messages);
/* The map from the logical index of b to the logical index of a with the same physical index.
 * *padding is the condition for the indices whose physical index is padding of a. */
int pleat_layout_left_divide(const PleatLayout *a, const PleatLayout *b, int *verdict,
                             PleatLayout **made, char **padding, PleatProof **proof,
                             PleatMessages **messages);
/* outer after inner: the physical indices of inner are the logical ones of outer. */
int pleat_layout_compose(const PleatLayout *outer, const PleatLayout *inner, int *verdict,
                         PleatLayout **made, PleatProof **proof, PleatMessages **messages);
/* (x, y) -> (a(x), b(y)). */
int pleat_layout_direct_sum(const PleatLayout *a, const PleatLayout *b, int *verdict,
                            PleatLayout **made, PleatProof **proof, PleatMessages **messages);
/* How the axes of a product number its elements. */
enum {
  PLEAT_PRODUCT_LOGICAL = 0, /* the axes of the tile, then those of the tiles */
  PLEAT_PRODUCT_BLOCKED = 1, /* axis i: element x % n of tile x // n, for n elements of a tile */
  PLEAT_PRODUCT_RAKED = 2,   /* axis i: element x // m of tile x % m, for m tiles (zipped) */
};
/* Copies of `tile`, arranged as `tiles` says. When `filled` is not 0, the copies fill the gaps that
 * a tile leaves in memory, as CuTe's products do; otherwise each takes a whole box. */
int pleat_layout_product(const PleatLayout *tile, const PleatLayout *tiles, int kind, int filled,
                         int *verdict, PleatLayout **made, PleatProof **proof,
                         PleatMessages **messages);
/* The layout of the offsets at which copies of `layout` fill its gaps, up to the offset `size`. */
int pleat_layout_complement(const PleatLayout *layout, int64_t size, int *verdict,
                            PleatLayout **made, PleatProof **proof, PleatMessages **messages);
/* Splits axes into tiles: axis i becomes the axes of tilers[i], a layout of indices along the axis,
 * followed by those of the rest. For example, "(16):(1)" splits an axis into blocks of 16. There
 * are as many tilers as logical axes; NULL leaves the axis as it is. */
int pleat_layout_tile(const PleatLayout *layout, const PleatLayout *const *tilers, int *verdict,
                      PleatLayout **made, PleatProof **proof, PleatMessages **messages);
/* The same offsets under another logical shape of `rank` axes with as many elements. */
int pleat_layout_reshape(const PleatLayout *layout, const int64_t *shape, int rank, int *verdict,
                         PleatLayout **made, PleatProof **proof, PleatMessages **messages);

/* The indices start, start + step, … of an axis, up to `stop`, which is excluded. */
typedef struct PleatRange {
  int64_t start, stop;
  int64_t step; /* 0 counts as 1; a negative step goes down to `stop` */
} PleatRange;
/* The layout of a box, given by one range for each logical axis. *offset, unless `offset` is NULL,
 * becomes an owned value, the offset of its first element; and *strides an owned array of one value
 * for each axis, or NULL when the box does not have constant strides in memory. PLEAT_NO: the box
 * leaves the shape. */
int pleat_layout_slice(const PleatLayout *layout, const PleatRange *box, int *verdict,
                       PleatLayout **made, PleatValue **offset, PleatValue **strides,
                       PleatProof **proof, PleatMessages **messages);

/* ---- Offsets and strides -------------------------------------------------------------------- */

/* The offset of the element at the logical index, which has one number for each axis, and its
 * physical index: `physical`, unless it is NULL, has room for the numbers of all physical axes. For
 * an element with several copies, those of the first. Refused where the result has symbols. */
int pleat_layout_offset(const PleatLayout *layout, const int64_t *index, int64_t *offset,
                        int64_t *physical, PleatProof **proof, PleatMessages **messages);
/* The offset as a map of the logical indices: owned text, such as "i, j -> i*64 + j". */
int pleat_layout_offset_map(const PleatLayout *layout, char **map, PleatMessages **messages);
/* The logical index of the element at an offset; `index` has room for all axes. PLEAT_NO: the
 * offset is padding. */
int pleat_layout_index_at(const PleatLayout *layout, int64_t offset, int *verdict, int64_t *index,
                          PleatProof **proof, PleatMessages **messages);
/* The offsets of all elements, in the row-major order of the logical index; in a layout with
 * replicas, the copies of an element are consecutive. `offsets` has room for `count` numbers.
 * *total becomes the number of offsets; they are written if there is room for all. Refused for
 * symbolic extents. */
int pleat_layout_offsets(const PleatLayout *layout, int64_t *offsets, int64_t count, int64_t *total,
                         PleatMessages **messages);
/* The stride of the offset along each logical axis: an owned array, with the text NULL for an axis
 * along which the stride varies. */
int pleat_layout_strides(const PleatLayout *layout, PleatValue **strides, PleatProof **proof,
                         PleatMessages **messages);
/* For each logical axis, the number of elements of the widest vector that is contiguous and aligned
 * wherever its first index is a multiple of its width. `widths` has room for all axes. */
int pleat_layout_vector_widths(const PleatLayout *layout, int64_t *widths, PleatProof **proof,
                               PleatMessages **messages);

/* ---- Order of memory ------------------------------------------------------------------------ */

/* The digit (axis // cut) % extent of an index. */
typedef struct PleatDigit {
  int axis; /* of the (first) layout, from 0; -1: not along one axis */
  int64_t cut;
  PleatValue extent;
} PleatDigit;

/* Is memory row-major over the whole axes in some order? `order` has room for all axes, and
 * receives them, the outermost first. */
int pleat_layout_permutation(const PleatLayout *layout, int *verdict, int *order,
                             PleatProof **proof, PleatMessages **messages);

/* The blocks of axes over which memory is row-major, the outermost first. */
typedef struct PleatBlocking {
  int count;
  const PleatDigit *blocks;
} PleatBlocking;
int pleat_layout_blocking(const PleatLayout *layout, int *verdict, PleatBlocking **blocking,
                          PleatProof **proof, PleatMessages **messages);

/* A loop of `extent` iterations, each `stride` further in memory and `step` further on `axis`. */
typedef struct PleatLoop {
  int axis; /* -1: it runs over several axes */
  int64_t step;
  PleatValue extent, stride;
} PleatLoop;
/* The loops that visit the elements in the order of memory. */
typedef struct PleatLoops {
  int count;
  const PleatLoop *loops; /* the outermost first */
  const char *index;      /* the map from the loop counters to the logical index */
  const char *guard;      /* the condition under which there is an element; NULL: always */
} PleatLoops;
int pleat_layout_loop_order(const PleatLayout *layout, int *verdict, PleatLoops **loops,
                            PleatProof **proof, PleatMessages **messages);

/* A digit with its stride in each of two layouts. */
typedef struct PleatFactor {
  PleatDigit digit;
  PleatValue strides[2];
} PleatFactor;
/* The coarsest digits of the axes of which the offsets of both layouts are sums. */
typedef struct PleatRefinement {
  int count;
  const PleatFactor *factors; /* along each axis, the most significant first */
  int is_xor;                 /* not 0: the digits are bits, whose strides are combined by XOR */
} PleatRefinement;
int pleat_layout_refine(const PleatLayout *a, const PleatLayout *b, int *verdict,
                        PleatRefinement **refinement, PleatProof **proof, PleatMessages **messages);

/* ---- Copies ---------------------------------------------------------------------------------- */

/* The physical axis that a digit changes. */
typedef struct PleatPosition {
  const char *resource; /* "memory", or the name of the resource; NULL: it changes none */
  PleatValue stride;
} PleatPosition;
/* Where a digit is before and after a copy. */
typedef struct PleatMove {
  PleatDigit digit;
  PleatPosition from, to;
} PleatMove;
/* The elements for which `resource` is the outermost one on which the physical index changes. */
typedef struct PleatCopyLevel {
  const char *resource;
  int in_from, in_to; /* which of the layouts have the resource */
  int64_t elements, bytes;
} PleatCopyLevel;
typedef struct PleatCopy {
  int move_count;
  const PleatMove *moves;
  int is_counted;        /* the extents are numbers, and so are: */
  int64_t copies, still; /* the elements written, and those that keep their physical index */
  int level_count;
  const PleatCopyLevel *levels; /* the outermost resource first */
} PleatCopy;
/* The copy of a tensor from one layout to another, with elements of `element_bits`. */
int pleat_layout_copy_plan(const PleatLayout *from, const PleatLayout *to, int64_t element_bits,
                           int *verdict, PleatCopy **copy, PleatProof **proof,
                           PleatMessages **messages);

/* ---- Padding, cache lines, banks ------------------------------------------------------------- */

/* The number of physical indices that hold no element: an owned value. *condition, unless
 * `condition` is NULL, becomes owned text: the condition over the physical axes p0, p1, … for
 * padding; NULL when there is no padding or the layout is not injective. */
int pleat_layout_padding_count(const PleatLayout *layout, int *verdict, PleatValue **count,
                               char **condition, PleatProof **proof, PleatMessages **messages);

/* Consecutive numbers: first, first + 1, …, first + count - 1. */
typedef struct PleatRun {
  int64_t first, count;
} PleatRun;
typedef struct PleatRuns {
  int64_t total;        /* how many numbers there are */
  int64_t run_count;    /* in how many runs */
  int shown;            /* the number of `runs`, which are the first ones */
  const PleatRun *runs; /* ascending */
} PleatRuns;
/* The offsets that hold no element. */
int pleat_layout_padding_runs(const PleatLayout *layout, int *verdict, PleatRuns **runs,
                              PleatProof **proof, PleatMessages **messages);
/* Elements of `element_bits` (0: 32) are stored densely from the address `base` on, and lines have
 * `line_bytes` (0: 64). */
typedef struct PleatLines {
  int64_t line_bytes, element_bits, base;
} PleatLines;
/* The cache lines or pages that the elements of a box touch. `box` is as for pleat_layout_slice;
 * NULL: all elements. `lines` NULL: all defaults. */
int pleat_layout_lines(const PleatLayout *layout, const PleatRange *box, const PleatLines *lines,
                       int *verdict, PleatRuns **runs, PleatProof **proof,
                       PleatMessages **messages);

/* `count` (0: 32) banks, of which each serves one word of `bytes` (0: 4) at a time; elements of
 * `element_bits` (0: 32). */
typedef struct PleatBanks {
  int64_t count, bytes, element_bits;
} PleatBanks;
/* The elements that lanes read at once. Either `ranges` has a range for each logical axis, and the
 * lanes are its elements in row-major order; or `ranges` is NULL, and `map` is the text of a map
 * from (positions …, lane) to the logical index, "t, lane -> t, lane*4", with the extents of its
 * axes. */
typedef struct PleatAccess {
  const PleatRange *ranges;
  const char *map;
  const int64_t *extents;
  int extent_count;
  int64_t vector; /* elements that each lane reads; 0: 1 */
  int64_t weight; /* the weight of the access in pleat_layout_best_swizzle; 0: 1 */
} PleatAccess;
typedef struct PleatConflicts {
  int64_t degree; /* the words that the busiest bank serves in one phase; 1: no conflict */
  int64_t bank;   /* that bank */
  int64_t waves;  /* the sum of the degrees of all phases */
  int64_t words;  /* the number of distinct words */
  int64_t phase;  /* the number of lanes that are served together */
} PleatConflicts;
/* The bank conflicts of an access. PLEAT_YES: there are none; PLEAT_NO: there are some. Unless it
 * is undecided, *conflicts has the numbers. `banks` NULL: all defaults. */
int pleat_layout_bank_conflicts(const PleatLayout *layout, const PleatAccess *access,
                                const PleatBanks *banks, int *verdict, PleatConflicts *conflicts,
                                PleatProof **proof, PleatMessages **messages);

typedef struct PleatSwizzle {
  int is_optimal;         /* not 0: no linear swizzle has fewer waves, which is proved */
  const char *offset_map; /* the swizzle as a map of offsets, "o -> o ^ ..." */
  const char *name;       /* "Swizzle<B,M,S>" when it has that form, or NULL */
  int count;              /* the number of accesses */
  const int64_t *waves;   /* of each access */
  const int64_t *bound;   /* the fewest waves of each access under any linear swizzle */
} PleatSwizzle;
/* The layout under the linear swizzle of its offsets with the fewest waves over all `count`
 * accesses (at most 8). *swizzle, unless `swizzle` is NULL, describes it. */
int pleat_layout_best_swizzle(const PleatLayout *layout, const PleatAccess *accesses, int count,
                              const PleatBanks *banks, int *verdict, PleatLayout **made,
                              PleatSwizzle **swizzle, PleatProof **proof, PleatMessages **messages);

/* ---- Texts and pictures ---------------------------------------------------------------------- */

/* The layout in another spelling: "index-map", "lambda", "named", "tag" (oneDNN), "cute", "xla",
 * "torch", "bases" (Triton), "shards" (TVM). *text is owned. PLEAT_NO: the spelling cannot express
 * the layout; the proof has the reason. */
int pleat_layout_spell(const PleatLayout *layout, const char *spelling, int *verdict, char **text,
                       PleatProof **proof, PleatMessages **messages);
/* A picture as SVG, owned text: the tensor coloured by its order in memory, and memory by a logical
 * axis. */
int pleat_layout_svg(const PleatLayout *layout, char **svg, PleatMessages **messages);

#ifdef __cplusplus
}
#endif
#endif
