// SPDX-License-Identifier: Apache-2.0
// The cost model: each field has a value, memory is slower the farther away it is, and bytes
// are in the smallest level that holds them.
#include "base/base.h"
#include "base/cost_model.h"
#include "runtime/runtime.h"

#include <setjmp.h>

#include <cmocka.h>

static void test_every_field_is_positive(void **state) {
  HostMachine machine = machine_probe();
  const CostModel *model = cost_model_of(&machine);
  const double numbers[] = {model->exposed_share,
                            model->panel_l1_share,
                            model->panel_l2_share,
                            model->panel_rows_share,
                            model->line_cycles,
                            model->far_caches,
                            model->far_cycles,
                            model->jump_cycles,
                            model->followed_streams,
                            model->jumps_l2_share,
                            model->fma_latency,
                            model->loads_a_cycle,
                            model->half_vector_share,
                            model->uops_a_cycle,
                            model->lane_loads,
                            model->shuffle_loads,
                            model->scalar_cycles,
                            model->function_operations,
                            model->operations_a_cycle,
                            model->call_cycles,
                            model->divided_cycles,
                            model->tile_start_cycles,
                            model->tile_store_cycles,
                            model->chain_cycles,
                            model->broadcast_factor,
                            model->condition_factor,
                            model->border_factor,
                            model->rest_factor,
                            model->bilinear_share,
                            model->least_bilinear_cycles,
                            model->block_share,
                            model->least_block_rows,
                            model->combine_cycles,
                            model->tile_shuffle_cycles,
                            model->least_byte_reuse,
                            model->dot_operations,
                            model->copy_shuffle_cycles,
                            model->apart_cycles[0],
                            model->apart_cycles[1],
                            model->apart_cycles[2],
                            model->apart_cycles[3],
                            model->far_start_cycles,
                            model->row_moves_a_cycle,
                            model->tie_tile,
                            model->tie_panels,
                            model->tie_axis,
                            model->least_saved_by_bands,
                            model->add_latency,
                            model->checked_latency,
                            model->shuffle_latency,
                            model->window_cycles,
                            model->copy_start_cycles,
                            model->streamed_bytes,
                            model->streamed_l2_share,
                            model->index_cycles,
                            model->masked_cycles,
                            model->mesh_uops_a_cycle,
                            model->least_saved_by_parts,
                            model->integer_add_operations};
  const int64_t limits[] = {model->near_bytes,
                            model->set_bytes,
                            model->small_operand_bytes,
                            model->most_tile_rows,
                            model->most_tile_vectors,
                            model->most_row_vectors,
                            model->most_streams,
                            model->rows_together,
                            model->many_tiles,
                            model->fewest_flat_tiles,
                            model->fewest_block_tiles,
                            model->largest_window,
                            model->largest_reduction_block,
                            model->long_sum,
                            model->most_unrolled,
                            model->most_unrolled_copies,
                            model->most_unrolled_second,
                            model->most_unrolled_taps,
                            model->loop_hiding_products,
                            model->vectors_at_once,
                            model->registers_a_panel_vector,
                            model->operation_bytes,
                            model->elementwise_copies,
                            model->most_nodes};
  for (int i = 0; i < COUNT_OF(numbers); i++)
    if (!(numbers[i] > 0)) fail_msg("number %d is %g", i, numbers[i]);
  for (int i = 0; i < COUNT_OF(limits); i++)
    if (limits[i] <= 0) fail_msg("limit %d is %lld", i, (long long)limits[i]);
  // A field that is added to the struct has to be added here.
  size_t fields = sizeof numbers + 2 * MEMORY_LEVELS * sizeof(double) + 3 * sizeof(int64_t) +
                  (COUNT_OF(limits) - 3) * sizeof(int);
  assert_true(sizeof(CostModel) - fields < sizeof(double));
}

static void test_shares_and_ties_are_below_one(void **state) {
  HostMachine machine = machine_probe();
  const CostModel *model = cost_model_of(&machine);
  const double shares[] = {model->exposed_share,     model->panel_l1_share,
                           model->panel_l2_share,    model->panel_rows_share,
                           model->tie_tile,          model->tie_panels,
                           model->tie_axis,          model->least_saved_by_bands,
                           model->bilinear_share,    model->block_share,
                           model->half_vector_share, model->jumps_l2_share};
  for (int i = 0; i < COUNT_OF(shares); i++) assert_true(shares[i] < 1);
  assert_true(model->broadcast_factor >= 1 && model->condition_factor >= 1 &&
              model->border_factor >= 1 && model->rest_factor >= 1);
}

static void test_farther_memory_is_slower(void **state) {
  static const char *const levels[] = {"scalar", "baseline", "avx2", "avx512"};
  for (int i = 0; i < COUNT_OF(levels); i++) {
    HostMachine machine = machine_probe();
    assert_true(machine_use(&machine, levels[i]));
    for (int use = 0; use < MEMORY_USES; use++)
      for (int level = MEMORY_L1; level < MEMORY_MAIN; level++) {
        double near = memory_cycles(&machine, 1000, (MemoryLevel)level, (MemoryUse)use);
        double far = memory_cycles(&machine, 1000, (MemoryLevel)(level + 1), (MemoryUse)use);
        assert_true(near > 0 && near <= far);
      }
  }
}

// The width of vectors does not change how fast lines come over a mesh, and writing takes longer.
static void test_mesh_gives_bytes(void **state) {
  HostMachine wide = {.vector_bytes = 64, .mesh = true},
              narrow = {.vector_bytes = 32, .mesh = true}, ring = {.vector_bytes = 64};
  double far = memory_cycles(&wide, 1000, MEMORY_L3, MEMORY_READ);
  assert_true(far == memory_cycles(&narrow, 1000, MEMORY_L3, MEMORY_READ));
  assert_true(far > memory_cycles(&ring, 1000, MEMORY_L3, MEMORY_READ));
  assert_true(memory_cycles(&wide, 1000, MEMORY_L2, MEMORY_WRITE) >
              memory_cycles(&wide, 1000, MEMORY_L2, MEMORY_READ));
}

static void test_wide_vectors_on_a_mesh_share_their_core(void **state) {
  HostMachine wide = {.vector_bytes = 64, .mesh = true},
              narrow = {.vector_bytes = 32, .mesh = true}, ring = {.vector_bytes = 64};
  assert_true(uops_a_cycle(&wide) < uops_a_cycle(&narrow));
  assert_true(uops_a_cycle(&narrow) == uops_a_cycle(&ring));
}

// Half a vector costs less where wide vectors are computed in halves.
static void test_half_vectors_cost_less_where_units_are_narrow(void **state) {
  HostMachine zen4 = {.vector_bytes = 64, .halves = true}, zen5 = {.vector_bytes = 64},
              avx2 = {.vector_bytes = 32, .halves = true};
  assert_true(vector_share(&zen4, 64) == 1);
  assert_true(vector_share(&zen4, 32) < 0.75 && vector_share(&zen4, 32) >= 0.5);
  assert_true(vector_share(&zen5, 32) == 1);
  assert_true(vector_share(&avx2, 16) == 1);
}

static void test_level_holds_the_bytes(void **state) {
  HostMachine machine = {.l1_bytes = 100, .l2_bytes = 1000, .l3_bytes = 0};
  assert_int_equal(memory_level(&machine, 100), MEMORY_L1);
  assert_int_equal(memory_level(&machine, 101), MEMORY_L2);
  assert_int_equal(memory_level(&machine, 1001), MEMORY_MAIN);
  machine.l3_bytes = 5000;
  assert_int_equal(memory_level(&machine, 1001), MEMORY_L3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_field_is_positive),
      cmocka_unit_test(test_shares_and_ties_are_below_one),
      cmocka_unit_test(test_farther_memory_is_slower),
      cmocka_unit_test(test_mesh_gives_bytes),
      cmocka_unit_test(test_wide_vectors_on_a_mesh_share_their_core),
      cmocka_unit_test(test_half_vectors_cost_less_where_units_are_narrow),
      cmocka_unit_test(test_level_holds_the_bytes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
