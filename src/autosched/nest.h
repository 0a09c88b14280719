// SPDX-License-Identifier: Apache-2.0
// A block's loops as the cost model sees them: the axes, the accesses as linear forms of the axes,
// and the register tiles and rows by which a reduction can be computed. All of it is read from the
// block and the layouts, and does not depend on the operator's name.
#ifndef PLEAT_NEST_H
#define PLEAT_NEST_H

#include "base/cost_model.h"
#include "ir/op_count.h"
#include "layout/layout.h"
#include "te/te.h"

enum { NEST_MAX_AXES = 16, NEST_MAX_READS = 24 };

typedef struct NestAxis {
  Expr *var;
  int64_t extent;
  bool reduction;
} NestAxis;

typedef struct NestRead {
  Buffer *buffer;
  Expr *const *indices;
  // Where linear[d], index d is base[d] + Σ coefficient[d][a] * axis a.
  int64_t coefficient[TE_MAX_RANK][NEST_MAX_AXES];
  int64_t base[TE_MAX_RANK]; // 1 where it is not known
  bool linear[TE_MAX_RANK];
  bool uses[TE_MAX_RANK][NEST_MAX_AXES]; // where not linear: index d uses the axis
  // A grouped index has group_step[d] * (axis group_axis[d] // group_size[d]) more, where
  // group_size[d] > 0: the input channel of a grouped convolution moves with groups of outputs.
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
  bool conditional;             // a read stands under a condition
  OpCount count;                // operations at each point
  double points;                // product of all extents
} Nest;

// False when an extent is symbolic, or the block is not one store at its own spatial variables.
bool nest_of_block(Context *context, const Block *block, Nest *nest);
bool nest_depends(const NestRead *read, int axis);
bool nest_moves(const NestRead *read, int d, int axis); // does index d depend on the axis?
// The only dimension of the read that uses `axis`, where its index is `axis` itself; -1 otherwise.
int nest_dimension_of(const Nest *nest, const NestRead *read, int axis);

// How many consecutive values of logical axis `d` are contiguous in whole blocks, padding included:
// m for a layout whose innermost physical axis is d % m; 1 otherwise.
int64_t nest_block(const Layout *layout, int d);

// How an access behaves when `axis` takes `lanes` neighbouring values.
typedef enum NestStep { NEST_SAME, NEST_CONTIGUOUS, NEST_STRIDED } NestStep;
// `layout` NULL is row-major.
NestStep nest_step(Context *context, const Nest *nest, const NestRead *read, const Layout *layout,
                   int axis, int lanes);

// The stride in elements along the axis in a row-major operand, where it is above 1 and so small
// that whole vectors are loaded and shuffled; 0 otherwise.
int64_t nest_stride(const NestRead *read, const Layout *layout, int axis);

// Arithmetic operations at each point; a mathematical function counts as several.
double nest_operations(const HostMachine *machine, const Nest *nest);
// Bytes of all elements, row-major; extents that are not known count as 1.
double nest_buffer_bytes(const Buffer *buffer);

// ---- Register tiles --------------------------------------------------------------------------

// Iterations that are computed together in registers: `vectors` vectors of `lanes` values along
// vector_axis, times rows[0] × rows[1] along row_axis[0] (outer) and row_axis[1] (inner).
typedef struct Tile {
  int vector_axis, lanes, vectors;
  int row_axis[2]; // -1: none
  int64_t rows[2];
  bool padded;   // the vector axis may run on into padding: whole blocks of lanes
  bool flat;     // row_axis[0] and row_axis[1] run as one loop, split by rows[1]
  double cycles; // predicted, arithmetic only
  double bytes;  // predicted traffic beyond the first-level cache
} Tile;

// The layouts a choice is made for. Entries of `reads` belong to nest->reads; NULL is row-major;
// `packed[i]` says that read i is a constant whose layout follows the tile.
typedef struct NestLayouts {
  const Layout *output;
  const Layout *reads[NEST_MAX_READS];
  bool packed[NEST_MAX_READS];
} NestLayouts;

// Elements in a vector of the machine, at least 1.
int machine_lanes(const HostMachine *machine, DType type);
// The cheapest tile by the cost model; false when no axis can be a vector axis.
bool tile_choose(Context *context, const HostMachine *machine, const Nest *nest,
                 const NestLayouts *layouts, Tile *tile);
// Predicts tile->cycles and tile->bytes of a tile that was chosen; false where it does not fit the
// nest.
bool tile_predict(Context *context, const HostMachine *machine, const Nest *nest,
                  const NestLayouts *layouts, Tile *tile);
// Cycles and traffic together, as one number of cycles.
double tile_cost(const HostMachine *machine, const Tile *tile);
// The axis whose tiles cut a packed constant into panels, and their width: the vector axis, or else
// a row axis that moves through it. -1: the constant keeps its layout.
int tile_panel_axis(const Nest *nest, const NestRead *read, const Tile *tile, int64_t *width);
// The axis of the reduction that is walked innermost, in blocks of the next: the first, or the
// second of two, where the operands that are computed at run time are contiguous along the second
// alone, or have a smaller stride along the second of two long axes.
int tile_innermost_axis(Context *context, const HostMachine *machine, const Nest *nest,
                        const NestLayouts *layouts);
// The largest block of the reduction axis that one tile walks before the next kernel tap.
int64_t tile_reduction_block(const HostMachine *machine, const Nest *nest, int axis,
                             const Tile *tile);

// ---- Rows: a reduction in vectors along an axis of its own -----------------------------------

// The longest axis of the reduction along which every operand that moves is contiguous, and how
// many values are taken at a time, which is up to four vectors. -1: none.
int rows_vector_axis(Context *context, const HostMachine *machine, const Nest *nest,
                     const NestLayouts *layouts, int *width);
// How many rows are computed at a time: several where an operand does not move with the last of
// their axes.
int64_t rows_together(const HostMachine *machine, const Nest *nest);
// The cycles of arithmetic and loads; below 0 when no axis can be a vector.
double rows_cycles(Context *context, const HostMachine *machine, const Nest *nest,
                   const NestLayouts *layouts);
// The cycles and the traffic as one number of cycles; below 0 likewise.
double rows_cost(Context *context, const HostMachine *machine, const Nest *nest,
                 const NestLayouts *layouts);

#endif
