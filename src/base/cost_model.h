// SPDX-License-Identifier: Apache-2.0
// The cost model: the numbers by which layouts, fusion and schedules are chosen, such as the bytes
// a cycle that each cache gives. machine.h describes the machine itself (sizes of caches,
// registers). A cost is a number of cycles of one core.
#ifndef PLEAT_COST_MODEL_H
#define PLEAT_COST_MODEL_H

#include "base/machine.h"

typedef enum MemoryLevel {
  MEMORY_L1,
  MEMORY_L2,
  MEMORY_L3,
  MEMORY_MAIN,
  MEMORY_LEVELS
} MemoryLevel;

// Why bytes move. The rates differ because a copy waits for its reads and its writes, while loads
// beside multiply-adds are mostly fetched before they are needed.
typedef enum MemoryUse {
  MEMORY_READ,  // read once, in order, with little arithmetic
  MEMORY_WRITE, // written once, in order
  MEMORY_FEED,  // loaded for multiply-adds that run at the same time
  MEMORY_USES
} MemoryUse;

// Sources: [performance] is the section "What was learned" of docs/performance.md, with the kernel
// that was measured; [uops] is uops.info, for Intel from Skylake and AMD from Zen 3 on; [estimate]
// is a value that is not measured on its own.
typedef struct CostModel {
  // ---- Memory
  // Vectors a cycle, reads and writes together [`make bench-model`, Zen 5: 91, 59, 29 and 10 bytes
  // of AVX-512's 64; Zen 3: L2 20 of AVX2's 32]. Processors with a mesh give no more than the bytes
  // in cost_model.c.
  double stream_vectors[MEMORY_LEVELS];
  // Vectors a cycle; L1 2 [uops], L2 0.625: 20 bytes of AVX2's 32 [performance, Zen 3], L3 0.3
  // [estimate]. Main memory has the rate of L3: systems often state a cache that a virtual machine
  // does not have.
  double feed_vectors[MEMORY_LEVELS];
  // Bytes that count for one of a constant that comes through L2 from main memory, while what is
  // prefetched is written into L2 [36 products of 16 x 256 x 256 in tiles of 4 x 6, 4 x 4, 8 x 2
  // vectors, Zen 5].
  double streamed_bytes;
  // Share of L2 above which prefetching a constant is worth its instructions [estimate].
  double streamed_l2_share;
  // Share of the shorter of arithmetic and memory that does not overlap with the longer
  // [estimate].
  double exposed_share;
  // Share of L1 that an operand may fill and still be there when it is read again [estimate].
  double panel_l1_share;
  // Share of L2 that rows and panels may fill and still be there when they are read again
  // [performance, blocks of rows for all panels].
  double panel_l2_share;
  // Share of L2 in which the rows of an output stay from one panel to the next [performance,
  // scores of 54 MB].
  double panel_rows_share;
  // Cycles for a line of an output that is written in short pieces of far rows [performance,
  // scores of 54 MB].
  double line_cycles;
  // An output of more than this multiple of L2 is in main memory [estimate].
  double far_caches;
  // Cycles for a load further than near_bytes from the one before [performance, panels of one
  // head's columns].
  double far_cycles;
  // Cycles for a jump to another block of a tensor in the third cache, where a sum runs through
  // more of them than the prefetcher follows [performance, sums over 1024 channels].
  double jump_cycles, followed_streams;
  // The share of L2 that such a tensor may take before some of its jumps leave L2 [performance,
  // sums over 768 channels].
  double jumps_l2_share;
  // Cycles until the first constants of a kernel come from beyond L2 [`make bench-model`, Zen 5].
  double far_start_cycles;
  // Bytes that the prefetcher follows [performance, panels of one head's columns].
  int64_t near_bytes;
  // Bytes from one address to the next in the same set of L1: 64 sets of 64 bytes, in Intel's
  // cores and AMD's [vendors' optimisation manuals].
  int64_t set_bytes;
  // Bytes; a smaller operand is not laid out in panels, because it stays near the core [estimate].
  int64_t small_operand_bytes;

  // ---- Instructions
  // Cycles from operands to result [uops].
  double fma_latency;
  // The same of an addition, and of an extreme that keeps NaN: two comparisons, and a move under
  // their mask [uops].
  double add_latency, checked_latency;
  // The same of a shuffle of a vector's lanes [uops].
  double shuffle_latency;
  // Cycles of work that may wait in a core for a result: its schedulers hold some 200 vector
  // operations, of which up to four begin in a cycle [uops, Zen 5].
  double window_cycles;
  // Vectors of any size [uops].
  double loads_a_cycle;
  // Micro-operations a cycle that a core decodes [uops, Skylake], and the same with vectors of 64
  // bytes on a processor with a mesh, where other programs often run on the second thread of the
  // core [products and networks, Granite Rapids: tiles of 8 x 3 vectors take 0.94 of the time of
  // those of 11 x 2].
  double uops_a_cycle, mesh_uops_a_cycle;
  // The share of the cycles of a whole vector that half a vector takes, on processors that compute
  // vectors in halves [1x1 convolutions in tiles of 8 lanes: 0.5 to 0.59, Zen 4].
  double half_vector_share;
  // Loads that take as long as gathering one lane of a vector [convolution with one filter in tiles
  // of 4x4, whose operand has a stride along the vectors: 0.8; gathers of elementwise kernels: 2].
  double lane_loads;
  // Loads that take as long as loading and shuffling a vector [estimate].
  double shuffle_loads;
  // Cycles for one step of scalar code, of which several overlap [`make bench-model`, Zen 5].
  double scalar_cycles;
  // Instructions that a mathematical function (exp, log, ...) counts as in the size of code; the
  // polynomials of target/expand_math.c have about ten.
  double function_operations;
  // Vector operations begun in a cycle by elementwise code [uops].
  double operations_a_cycle;

  // ---- Loops
  // Cycles for starting a kernel [160 random graphs in sessions, fitted by their kernels and the
  // cycles of these: 16 to 23; kernels of 16 elements in a compiled library: 13; Zen 4].
  double call_cycles;
  // Cycles for an element that is moved by itself, from L1, from L2, from beyond it, and from there
  // where the lines at its stride collide in one set of L2 [`make bench-model` and transpositions
  // of 0.4 to 32 MB, Zen 5].
  double apart_cycles[4];
  // Cycles for an element that is loaded by itself at an index of its own, which is divided,
  // limited or looked up [paddings by the edge, gathers and tiles of 200 to 4,000 elements: 0.8 to
  // 1.6, Zen 5].
  double divided_cycles;
  // Cycles for the index of a row where that is divided, limited or looked up [the same kernels, in
  // rows of 2 to 30 elements: 3.5 to 5, Zen 5].
  double index_cycles;
  // Cycles that a vector takes longer of which padding is masked [rewrites of 40x33 to blocks of 8,
  // Zen 5].
  double masked_cycles;
  // Cycles from one register tile to the next, without stores [estimate].
  double tile_start_cycles;
  // Cycles for each vector of a tile: cleared, then stored [estimate].
  double tile_store_cycles;
  // Cycles for each shuffle of a vector of a tile of sums that is transposed before it is stored:
  // they overlap with multiply-adds [performance, 128x768x768].
  double tile_shuffle_cycles;
  // The same for a tile that is copied, and the cycles from one such tile to the next [transposes
  // of 8192 elements in L1, Zen 5].
  double copy_shuffle_cycles, copy_start_cycles;
  // Cycles lost to latency in one step of a tile, divided by the square of the number of its
  // independent chains of multiply-adds: 8 chains reach 0.87 of the peak, 12 reach 0.95, 14 reach
  // 0.97. Fewer chains than hide the latency wait for it, and lose no more than those [measured:
  // 2, 4 and 6 chains take 4 to 4.5 cycles a step, Zen 4].
  double chain_cycles;
  // Slowdown of a tile of one vector, where each product needs a broadcast of its own: 0.90 of the
  // peak at best [measured].
  double broadcast_factor;
  // Slowdown where padding along a tile's outer rows is tested in its innermost loop [estimate].
  double condition_factor;
  // Slowdown where windows cross a border along a tile's vectors, which are then put together from
  // what is within it [performance, depthwise convolutions with columns in a vector].
  double border_factor;
  // Slowdown of a long row axis that ends in a partial tile, and so is not cut in blocks between
  // panels [performance, 12 rows of 1500].
  double rest_factor;
  // A stage is computed by a bilinear algorithm when it takes less than this share of the direct
  // sum's cycles [estimate].
  double bilinear_share;
  // The same for a product of matrices in blocks, which has seven eighths of the products.
  double block_share;
  // Rows from which on products are computed in blocks. Seven quarters of the weights come from
  // memory, each for half of the rows [Zen 4: GPT-2 with 64 rows takes the same time, BERT-base
  // with 128 rows 8 % less].
  double least_block_rows;
  // Cycles of the direct sum from which on it is looked at: a bilinear algorithm takes two more
  // kernels, and the time to compile them [estimate].
  double least_bilinear_cycles;
  // Products of bytes for each byte that is packed, from which on four are computed at a time
  // [estimate].
  double least_byte_reuse;
  // Vector operations that add the sum of the products of four bytes to 32 bits, on a machine
  // without an instruction for it; those that widen an operand are shared [uops].
  double dot_operations;
  // Operations that the addition of a product of integers counts as, which is not fused with the
  // product but runs beside it [products of 9 x 64 x 48: 1.47 times those of floats, Zen 4].
  double integer_add_operations;
  // Cycles for each operation of combining two parts of a row's partial results, the shuffle
  // included: rows overlap [rows of 4 to 64 elements, Zen 5].
  double combine_cycles;
  // Vectors a cycle that an elementwise member of a group moves [estimate].
  double row_moves_a_cycle;

  // ---- Ties: the later of two candidates is taken when it costs less than this share of the first
  // Register tiles, in the order in which they are tried.
  double tie_tile;
  // Positions of the loop over panels, from the innermost outwards.
  double tie_panels;
  // Axes that a reduction prefers for its output's vectors, from the first on.
  double tie_axis;
  // A kernel in bands is taken when it saves more than this share of the cycles of its parts.
  double least_saved_by_bands;
  // A reduction is computed in parts when that saves more than this share of its cycles.
  double least_saved_by_parts;

  // ---- Limits of the candidates that are tried, and of unrolling [estimate, except where stated]
  // Rows of a register tile; 28 accumulators of 32 registers [performance].
  int most_tile_rows;
  // Vectors of a register tile along its vector axis.
  int most_tile_vectors;
  // Vectors of partial results of a reduction along its own axis.
  int most_row_vectors;
  // Places in memory that are read or written in turn while the prefetcher follows all of them
  // [transforms of 36 and 16 products wait for memory, those of 8 and 7 do not, Zen 4].
  int most_streams;
  // Rows of such a reduction that share the loads of an operand.
  int rows_together;
  // Tiles from which on a row axis is cut in blocks between panels.
  int many_tiles;
  // Tiles that a block of rows has at least, when the rows run as one loop.
  int fewest_flat_tiles;
  // Tiles that a block of a single row axis has at least.
  int fewest_block_tiles;
  // Steps of a reduction up to which vectors of its operand are shuffled.
  int largest_window;
  // Steps of a reduction's first axis before its next kernel tap.
  int largest_reduction_block;
  // Extent from which on a second axis may be walked innermost.
  int long_sum;
  // Multiply-adds of an unrolled body.
  int most_unrolled;
  // The same of all its copies at the borders of a tensor [depthwise convolutions: 7x7 of 56x56 in
  // tiles of 7 x 4 with 1764 takes 434 us, and 338 with a loop; of 14x14 in tiles of 14 x 2 with
  // 588 it takes 70 us, and 80 with a loop; Zen 4].
  int most_unrolled_copies;
  // Multiply-adds of an unrolled second axis of a reduction.
  int most_unrolled_second;
  // Multiply-adds of all taps up to which the channels are unrolled too.
  int most_unrolled_taps;
  // Multiply-adds that hide the end of a loop [performance, 28 products].
  int loop_hiding_products;
  // Vectors that an ordered update writes before the next update, which reads them from L1.
  int vectors_at_once;
  // Registers of the machine for each vector of a panel's width.
  int registers_a_panel_vector;

  // ---- Size of code
  // Bytes of a vector instruction with the addresses of its operands [estimate].
  int operation_bytes;
  // Copies of an elementwise body: whole vectors, and the elements left.
  int elementwise_copies;
  // Nodes of a fused value as a tree; compilers take more than twice as long for twice as many
  // [estimate].
  int most_nodes;
} CostModel;

// The cost model of a machine. There is one for all levels of x86-64: properties that differ
// between the levels are counted in vectors or taken from the description.
const CostModel *cost_model_of(const HostMachine *machine);

// The level of memory that holds so many bytes.
MemoryLevel memory_level(const HostMachine *machine, double bytes);
// Is it worth prefetching so many bytes of constants? Those of a whole model come from beyond L2 in
// each run, because the data of all kernels pass through it in between.
bool constant_streams(const HostMachine *machine, double bytes);
// Cycles to move bytes from or to a level of memory.
double memory_cycles(const HostMachine *machine, double bytes, MemoryLevel level, MemoryUse use);
// Micro-operations a cycle that a core of the machine decodes.
double uops_a_cycle(const HostMachine *machine);
// The cycles of work on vectors of so many bytes, as a part of those on the machine's own vectors.
double vector_share(const HostMachine *machine, int64_t bytes);
// Cycles of work that needs `arithmetic` cycles and `memory` cycles, which mostly overlap.
double overlapped_cycles(const HostMachine *machine, double arithmetic, double memory);

#endif
