// SPDX-License-Identifier: Apache-2.0
// A block's loop nest for the cost model: the axes, the accesses as linear forms of the axes, and
// the register tiles and rows by which a reduction can be computed. The nest is read from the block
// and the layouts, and does not depend on the operator's name.
#ifndef PLEAT_NEST_H
#define PLEAT_NEST_H

#include "base/cost_model.h"
#include "base/digest.h"
#include "ir/op_count.h"
#include "layout/layout.h"
#include "te/te.h"

enum { NEST_MAX_AXES = 16, NEST_MAX_READS = 24 };

// The digest of the numbers of a nest, and of the machine for which it is scheduled.
typedef struct NestDigest {
  Digest of;
  bool known, complete; // complete: the numbers describe the nest
} NestDigest;

typedef struct NestAxis {
  Expr *var;
  int64_t extent;
  bool reduction;
} NestAxis;

typedef struct NestRead {
  Buffer *buffer;
  Expr *const *indices;
  // When linear[d] is true, index d is base[d] + Σ coefficient[d][a] * axis a.
  int64_t (*coefficient)[NEST_MAX_AXES]; // a row for each dimension of the buffer
  int64_t base[TE_MAX_RANK];             // 1 when unknown
  bool linear[TE_MAX_RANK];
  bool (*uses)[NEST_MAX_AXES]; // when linear[d] is false: whether index d uses the axis
  // When group_size[d] > 0, index d has the additional term group_step[d] * (axis group_axis[d] //
  // group_size[d]): the input channel of a grouped convolution moves with groups of outputs.
  int group_axis[TE_MAX_RANK];
  int64_t group_size[TE_MAX_RANK], group_step[TE_MAX_RANK];
} NestRead;

typedef struct Nest {
  int axis_count, spatial_count; // spatial axes first
  NestAxis axes[NEST_MAX_AXES];
  int read_count;
  NestRead *reads; // read_count of them
  Buffer *output;
  int output_axis[TE_MAX_RANK]; // the axis that is index d of the output
  bool conditional;             // some read is evaluated only under a condition
  uint32_t guard_axes;          // set of axes that such conditions use
  OpWork work;                  // at each point
  double points;                // product of all extents
  NestDigest *digest;           // of all these numbers, found when strategies_of first needs it
} Nest;

// Reads the nest of a block. False when an extent is symbolic, or the block is not one store at its
// own spatial variables.
bool nest_of_block(Context *context, const Block *block, Nest *nest);
bool nest_depends(const NestRead *read, int axis);
bool nest_moves(const NestRead *read, int d, int axis); // does index d depend on the axis?
// How many values of the axis in a row read the same elements: all of them when the read does not
// depend on the axis, one when it moves with it, and the size of the groups in which it does.
double nest_repeats(const Nest *nest, const NestRead *read, int axis);
// The only dimension of the read that uses `axis`, when its index is `axis` itself; -1 otherwise.
int nest_dimension_of(const Nest *nest, const NestRead *read, int axis);

// The dimension along which the read moves with a reduction axis and with an axis of the output,
// which is set: that of a window; -1 for none.
int nest_window(const Nest *nest, const NestRead *read, int axis, int *moved_by);

// How many consecutive values of logical axis `d` are contiguous in whole blocks, padding included:
// m for a layout whose innermost physical axis is d % m; 1 otherwise.
int64_t nest_block(const Layout *layout, int d);
// The elements of each block of the layout that values of the axis run through, beginning with a
// multiple of the block whatever the other axes are; 1: none.
int64_t nest_block_along(const Nest *nest, const NestRead *read, const Layout *layout, int axis);

// How an access behaves when `axis` takes `lanes` consecutive values.
typedef enum NestStep {
  NEST_SAME,
  NEST_CONTIGUOUS,
  NEST_REPEATED, // contiguous elements, each for as many lanes
  NEST_STRIDED
} NestStep;
// How the read behaves when its tensor is in `layout`, where NULL is row-major.
NestStep nest_step(Context *context, const Nest *nest, const NestRead *read, const Layout *layout,
                   int axis, int lanes);

// The stride in elements along the axis in a row-major operand, when it is above 1 and small enough
// for whole vectors to be loaded and shuffled; 0 otherwise.
int64_t nest_stride(const NestRead *read, const Layout *layout, int axis);

// The number of vector operations for a row of so many values: what is left of whole vectors takes
// as many as its number has powers of two.
double nest_vector_steps(int64_t extent, int64_t lanes);
// The operations that combine the value of a vector with the sum so far.
double nest_product_operations(const HostMachine *machine, const Nest *nest);
// Operations at each point in vectors; a mathematical function counts as several.
double nest_operations(const HostMachine *machine, const Nest *nest);
// Cycles from one combination of a reduction to the next, which needs its result.
double nest_chain_latency(const CostModel *costs, const Nest *nest);
// Bytes of all elements, row-major; unknown extents count as 1.
double nest_buffer_bytes(const Buffer *buffer);
// The stride of each dimension in elements, where a layout of NULL is row-major. Where the layout
// splits the dimension, it is that of the first step, as within a block, or that within one of few
// pieces whose elements take turns.
void nest_strides(Context *context, const Buffer *buffer, const Layout *layout, int64_t *strides);

// ---- Register tiles --------------------------------------------------------------------------

// The order in which the products of a tile are computed. With the vectors inside, a vector that
// moves with them alone stays in a register while the rows run. With rows inside, the values that
// move with those rows alone stay, and each vector is loaded once for all of them.
typedef enum TileOrder {
  TILE_VECTORS_INSIDE, // rows[0], rows[1], vectors
  TILE_OUTER_INSIDE,   // rows[1], vectors, rows[0]
  TILE_INNER_INSIDE,   // rows[0], vectors, rows[1]
} TileOrder;

// Iterations that are computed together in registers: `vectors` vectors of `lanes` values along
// vector_axis, times rows[0] × rows[1] along row_axis[0] (outer) and row_axis[1] (inner).
typedef struct Tile {
  int vector_axis, lanes, vectors;
  int row_axis[2]; // -1: none
  int64_t rows[2];
  bool padded;   // the vector axis may extend into padding, in whole blocks of lanes
  bool flat;     // row_axis[0] and row_axis[1] run as one loop, split by rows[1]
  bool turned;   // stored in vectors along row_axis[1]: the tile is transposed in registers
  bool collides; // a read's steps along the first axis of the reduction share cache sets
  TileOrder order;
  double cycles; // predicted, arithmetic only
  double bytes;  // predicted traffic beyond the first-level cache
  double again;  // predicted bytes of constants that come from main memory more than once
} Tile;

// The layouts for which a strategy is chosen. Entries of `reads` belong to nest->reads; NULL is
// row-major; `packed[i]` says that read i is a constant whose layout follows the tile.
typedef struct NestLayouts {
  const Layout *output;
  const Layout *reads[NEST_MAX_READS];
  bool packed[NEST_MAX_READS];
} NestLayouts;
// The bytes of the cache lines that a nest reads of a tensor. A convolution of 1x1 with a stride
// leaves rows and columns out.
double nest_read_bytes(Context *context, const HostMachine *machine, const Nest *nest,
                       const NestLayouts *layouts, int i);

// The number of elements in a vector of the machine, at least 1.
int machine_lanes(const HostMachine *machine, DType type);
// Finds the cheapest tile by the cost model; false when no axis can be a vector axis. Sets the
// first of `runners_up` to those that cost least after it, and reduces *count to their number.
bool tile_choose(Context *context, const HostMachine *machine, const Nest *nest,
                 const NestLayouts *layouts, Tile *tile, Tile *runners_up, int *count);
// Predicts tile->cycles and tile->bytes of a given tile; false when the tile does not fit the nest.
bool tile_predict(Context *context, const HostMachine *machine, const Nest *nest,
                  const NestLayouts *layouts, Tile *tile);
// The tile's cycles and traffic as one number of cycles.
double tile_cost(const HostMachine *machine, const Tile *tile);
// The axis whose tiles cut a packed constant into panels, and their width: the vector axis, or else
// a row axis that moves through it. -1: the constant keeps its layout.
int tile_panel_axis(const Nest *nest, const NestRead *read, const Tile *tile, int64_t *width);
// The reduction axis that runs innermost, in blocks inside the next: the first axis, or the second
// of two. It is the second when the operands that are computed at run time are contiguous along the
// second alone, or when both axes are long and these operands have a smaller stride along the
// second.
int tile_innermost_axis(Context *context, const HostMachine *machine, const Nest *nest,
                        const NestLayouts *layouts);
// The largest block of the reduction axis that one tile accumulates before the next kernel tap.
int64_t tile_reduction_block(const HostMachine *machine, const Nest *nest, int axis,
                             const Tile *tile);

// ---- Rows: a reduction in vectors along an axis of its own -----------------------------------

// The longest axis of the reduction along which every operand that moves is contiguous, or -1 when
// there is none, and the number of values taken at a time: up to four vectors, as many as registers
// hold the partial results of when so many rows are computed together.
int rows_vector_axis(Context *context, const HostMachine *machine, const Nest *nest,
                     const NestLayouts *layouts, int64_t together, int *width);
// The number of rows computed at a time: several when an operand does not move with the last of the
// rows' axes, and the output is row-major (NULL).
int64_t rows_together(const HostMachine *machine, const Nest *nest, const Layout *output);
// The cycles of arithmetic and loads; negative when no axis can be a vector axis.
double rows_cycles(Context *context, const HostMachine *machine, const Nest *nest,
                   const NestLayouts *layouts);
// The cycles and the traffic as one number of cycles; likewise negative when no axis can be a
// vector axis.
double rows_cost(Context *context, const HostMachine *machine, const Nest *nest,
                 const NestLayouts *layouts);

#endif
