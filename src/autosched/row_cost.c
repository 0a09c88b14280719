// SPDX-License-Identifier: Apache-2.0
// Predicts the cost of a reduction that runs row by row, in vectors along an axis of its own.
#include "autosched/nest.h"

#include <math.h>

static bool contiguous_along(Context *context, const Nest *nest, const NestLayouts *layouts,
                             int axis, int width) {
  bool contiguous = false;
  for (int i = 0; i < nest->read_count; i++) {
    NestStep step = nest_step(context, nest, &nest->reads[i], layouts->reads[i], axis, width);
    if (step == NEST_STRIDED) return false;
    contiguous |= step == NEST_CONTIGUOUS;
  }
  return contiguous;
}

int rows_vector_axis(Context *context, const HostMachine *machine, const Nest *nest,
                     const NestLayouts *layouts, int *width) {
  int best = -1, lanes = machine_lanes(machine, nest->output->type);
  for (int a = nest->spatial_count; a < nest->axis_count && lanes > 1; a++) {
    if (best >= 0 && nest->axes[a].extent <= nest->axes[best].extent) continue;
    int most = lanes * cost_model_of(machine)->most_row_vectors;
    while (most >= lanes && !contiguous_along(context, nest, layouts, a, most)) most /= 2;
    if (most < lanes) continue;
    best = a;
    *width = most;
  }
  return best;
}

static int last_row_axis(const Nest *nest) {
  int rank = nest->output->rank;
  return rank ? nest->output_axis[rank - 1] : -1;
}

int64_t rows_together(const HostMachine *machine, const Nest *nest) {
  int axis = last_row_axis(nest);
  bool shared = false;
  for (int i = 0; i < nest->read_count && axis >= 0; i++)
    shared |= !nest_depends(&nest->reads[i], axis);
  return shared ? MIN_OF(nest->axes[axis].extent, cost_model_of(machine)->rows_together) : 1;
}

// Bytes from beyond the first cache: an operand that does not fit the first cache is read again in
// each iteration of the axes outside the outermost axis that moves it.
static double rows_traffic(const HostMachine *machine, const Nest *nest) {
  double bytes = 0;
  for (int i = 0; i < nest->read_count; i++) {
    double size = nest_buffer_bytes(nest->reads[i].buffer), again = 1;
    for (int a = 0; a < nest->spatial_count && !nest_depends(&nest->reads[i], a); a++)
      again *= (double)nest->axes[a].extent;
    bytes += size * (size > (double)machine->l1_bytes ? again : 1);
  }
  return bytes;
}

double rows_cycles(Context *context, const HostMachine *machine, const Nest *nest,
                   const NestLayouts *layouts) {
  const CostModel *costs = cost_model_of(machine);
  int width, axis = rows_vector_axis(context, machine, nest, layouts, &width);
  int last = last_row_axis(nest);
  if (axis < 0) return -1;
  double lanes = machine_lanes(machine, nest->output->type), loads = 0, outputs = 1;
  for (int i = 0; i < nest->read_count; i++)
    loads += last < 0 || nest_depends(&nest->reads[i], last)
                 ? 1
                 : 1.0 / (double)rows_together(machine, nest);
  for (int a = 0; a < nest->spatial_count; a++) outputs *= (double)nest->axes[a].extent;
  double extent = (double)nest->axes[axis].extent;
  double vectors = nest->points / extent * ceil(extent / lanes);
  double work =
      MAX_OF(nest_operations(machine, nest) - machine->fma, 1) / (double)machine->fma_units;
  double each = MAX_OF(loads / costs->loads_a_cycle, work);
  return vectors * each + outputs * costs->combine_cycles;
}

double rows_cost(Context *context, const HostMachine *machine, const Nest *nest,
                 const NestLayouts *layouts) {
  double cycles = rows_cycles(context, machine, nest, layouts);
  double memory = memory_cycles(machine, rows_traffic(machine, nest), MEMORY_L2, MEMORY_STREAM);
  return cycles < 0 ? cycles : overlapped_cycles(machine, cycles, memory);
}
