// SPDX-License-Identifier: Apache-2.0
// Holds the values of the cost model, and computes the cycles of moving bytes with them. The header
// has the meaning, the unit and the source of each value.
#include "base/cost_model.h"

#include "base/base.h"

static const CostModel x86_64 = {
    .stream_vectors = {1.5, 0.75, 0.4, 0.125},
    .feed_vectors = {2, 0.625, 0.3, 0.3},
    .streamed_bytes = 1.4,
    .streamed_l2_share = 0.125,
    .exposed_share = 0.1,
    .panel_l1_share = 0.5,
    .panel_l2_share = 0.75,
    .panel_rows_share = 0.5,
    .line_cycles = 32,
    .far_caches = 16,
    .far_cycles = 8,
    .jump_cycles = 33,
    .followed_streams = 64,
    .jumps_l2_share = 0.35,
    .far_start_cycles = 500,
    .near_bytes = 256,
    .set_bytes = 4096,
    .small_operand_bytes = 1 << 16,

    .fma_latency = 4,
    .add_latency = 3,
    .checked_latency = 10,
    .shuffle_latency = 1,
    .window_cycles = 60,
    .loads_a_cycle = 2,
    .uops_a_cycle = 4,
    .mesh_uops_a_cycle = 3,
    .half_vector_share = 0.58,
    .lane_loads = 2,
    .shuffle_loads = 2,
    .scalar_cycles = 1.5,
    .function_operations = 10,
    .operations_a_cycle = 2,

    .call_cycles = 20,
    .apart_cycles = {0.6, 2.4, 6, 25},
    .divided_cycles = 1.2,
    .index_cycles = 4,
    .masked_cycles = 2.8,
    .tile_start_cycles = 12,
    .tile_store_cycles = 2,
    .tile_shuffle_cycles = 0.25,
    .copy_shuffle_cycles = 0.5,
    .copy_start_cycles = 3,
    .chain_cycles = 38,
    .broadcast_factor = 1.1,
    .condition_factor = 1.3,
    .border_factor = 1.9,
    .rest_factor = 1.02,
    .bilinear_share = 0.9,
    .block_share = 0.94,
    .least_block_rows = 96,
    .least_bilinear_cycles = 1e5,
    .least_byte_reuse = 8,
    .dot_operations = 4,
    .integer_add_operations = 0.5,
    .combine_cycles = 0.45,
    .row_moves_a_cycle = 1,

    .tie_tile = 0.999,
    .tie_panels = 0.98,
    .least_saved_by_bands = 0.03,
    .least_saved_by_parts = 0.05,
    .tie_axis = 0.99,

    .most_tile_rows = 28,
    .most_tile_vectors = 8,
    .most_row_vectors = 4,
    .most_streams = 8,
    .rows_together = 4,
    .many_tiles = 16,
    .fewest_flat_tiles = 16,
    .fewest_block_tiles = 5,
    .largest_window = 64,
    .largest_reduction_block = 32,
    .long_sum = 8,
    .most_unrolled = 320,
    .most_unrolled_copies = 1000,
    .most_unrolled_second = 80,
    .most_unrolled_taps = 100,
    .loop_hiding_products = 20,
    .vectors_at_once = 16,
    .registers_a_panel_vector = 8,

    .operation_bytes = 16,
    .elementwise_copies = 2,
    .most_nodes = 1000,
};

// Bytes a cycle that the caches of processors with a mesh give and take, whatever the size of the
// vectors: a line is read into a cache before it is written, and is written back later [measured:
// loops over 8 KB to 200 MB, Sapphire Rapids].
static const double mesh_bytes[MEMORY_USES][MEMORY_LEVELS] = {
    [MEMORY_READ] = {96, 48, 7.3, 4},
    [MEMORY_WRITE] = {60, 17, 7.2, 3},
    [MEMORY_FEED] = {128, 48, 7.3, 4},
};

const CostModel *cost_model_of(const HostMachine *machine) {
  (void)machine;
  return &x86_64;
}

MemoryLevel memory_level(const HostMachine *machine, double bytes) {
  const int64_t sizes[MEMORY_MAIN] = {machine->l1_bytes, machine->l2_bytes, machine->l3_bytes};
  for (int level = MEMORY_L1; level < MEMORY_MAIN; level++)
    if (bytes <= (double)sizes[level]) return (MemoryLevel)level;
  return MEMORY_MAIN;
}

bool constant_streams(const HostMachine *machine, double bytes) {
  return bytes >= (double)machine->l2_bytes * cost_model_of(machine)->streamed_l2_share;
}

double memory_cycles(const HostMachine *machine, double bytes, MemoryLevel level, MemoryUse use) {
  const CostModel *model = cost_model_of(machine);
  const double *vectors = use == MEMORY_FEED ? model->feed_vectors : model->stream_vectors;
  double rate = machine->vector_bytes * vectors[level];
  return bytes / (machine->mesh ? MIN_OF(rate, mesh_bytes[use][level]) : rate);
}

double uops_a_cycle(const HostMachine *machine) {
  const CostModel *model = cost_model_of(machine);
  bool wide = machine->mesh && machine->vector_bytes >= WIDE_VECTOR_BYTES;
  return wide ? model->mesh_uops_a_cycle : model->uops_a_cycle;
}

double vector_share(const HostMachine *machine, int64_t bytes) {
  bool half = machine->vector_bytes >= WIDE_VECTOR_BYTES && bytes < WIDE_VECTOR_BYTES;
  return machine->halves && half ? cost_model_of(machine)->half_vector_share : 1;
}

double overlapped_cycles(const HostMachine *machine, double arithmetic, double memory) {
  return MAX_OF(arithmetic, memory) +
         cost_model_of(machine)->exposed_share * MIN_OF(arithmetic, memory);
}
