// SPDX-License-Identifier: Apache-2.0
// Predicts the cost of a reduction that runs row by row, in vectors along an axis of its own, and
// of several blocks that share their rows.
#include "autosched/row_axes.h"

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

static bool reduces_elsewhere(const Nest *nest, int axis) {
  for (int a = nest->spatial_count; a < nest->axis_count; a++)
    if (a != axis && nest->axes[a].extent > 1) return true;
  return false;
}

// The number of values of the axis that are taken at a time, or 0. Where another axis is reduced
// too, a step does not take more values than the axis has, so that no step is partial.
static int lanes_along(Context *context, const Nest *nest, const NestLayouts *layouts, int axis,
                       int lanes, int most) {
  bool several = reduces_elsewhere(nest, axis);
  int least = MAX_OF(several ? lanes / 4 : lanes, 2);
  for (; most >= least; most /= 2) {
    if (several && most > nest->axes[axis].extent) continue;
    if (contiguous_along(context, nest, layouts, axis, most)) return most;
  }
  return 0;
}

int rows_vector_axis(Context *context, const HostMachine *machine, const Nest *nest,
                     const NestLayouts *layouts, int *width) {
  int best = -1, lanes = machine_lanes(machine, nest->output->type);
  for (int a = nest->spatial_count; a < nest->axis_count && lanes > 1; a++) {
    if (best >= 0 && nest->axes[a].extent <= nest->axes[best].extent) continue;
    int most = lanes_along(context, nest, layouts, a, lanes,
                           lanes * cost_model_of(machine)->most_row_vectors);
    if (!most) continue;
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
  double vectors = nest->points / extent * ceil(extent / MIN_OF(lanes, width));
  bool packed = nest->count.dots || nest->count.pairs;
  double operations = packed ? nest_product_operations(machine, nest)
                             : MAX_OF(nest_operations(machine, nest) - machine->fma, 1);
  double work = operations / (double)machine->fma_units;
  double each = MAX_OF(loads / costs->loads_a_cycle, work);
  double halvings = ceil(log2(MIN_OF(extent, MIN_OF(lanes, width))));
  return vectors * each + outputs * halvings * costs->combine_cycles;
}

double rows_cost(Context *context, const HostMachine *machine, const Nest *nest,
                 const NestLayouts *layouts) {
  double cycles = rows_cycles(context, machine, nest, layouts);
  double bytes = rows_traffic(machine, nest);
  double memory = memory_cycles(machine, bytes, memory_level(machine, bytes), MEMORY_FEED);
  return cycles < 0 ? cycles : overlapped_cycles(machine, cycles, memory);
}

// ---- Blocks that share their rows

// The axis of the nest that moves with the dimension along which the kernel's output is contiguous.
static int inner_axis(const Nest *nest, const RowAxes *axes, bool last) {
  int d = last ? axes->inner : (int)(intptr_t)map_find(&axes->inner_of, nest->output->data) - 1;
  return d < 0 ? -1 : nest->output_axis[d];
}

// The cycles of a block in vectors of `lanes` along the axis; of scalar code without an axis.
static double cycles_along(Context *context, const HostMachine *machine, const Nest *nest,
                           const NestLayouts *layouts, int axis, double lanes) {
  const CostModel *costs = cost_model_of(machine);
  if (axis < 0) lanes = 1;
  double extent = axis < 0 ? 1 : (double)nest->axes[axis].extent, strided = 0;
  for (int i = 0; i < nest->read_count && lanes > 1; i++)
    strided += nest_step(context, nest, &nest->reads[i], layouts->reads[i], axis, (int)lanes) ==
               NEST_STRIDED;
  double vectors = nest->points / extent * nest_vector_steps((int64_t)extent, (int64_t)lanes);
  return vectors * (1 / costs->row_moves_a_cycle +
                    nest_operations(machine, nest) / costs->operations_a_cycle +
                    strided * lanes * costs->lane_loads / costs->loads_a_cycle);
}

static double block_cycles(Context *context, const HostMachine *machine, const Nest *nest,
                           const NestLayouts *layouts, const RowAxes *axes, bool across,
                           bool last) {
  if (!nest->output) return 0;
  bool reduces = nest->axis_count > nest->spatial_count;
  if (reduces && !across) {
    double cycles = rows_cycles(context, machine, nest, layouts);
    return cycles < 0 ? nest->points * cost_model_of(machine)->scalar_cycles : cycles;
  }
  int axis = inner_axis(nest, axes, last), lanes = machine_lanes(machine, nest->output->type);
  bool row = axes->inner >= 0 && axes->cuts[axes->inner] == 1;
  if (row != across) axis = -1;
  return cycles_along(context, machine, nest, layouts, axis,
                      (double)MIN_OF(lanes, axes->inner_extent));
}

RowCost row_axes_cost(Context *context, const HostMachine *machine, const Nest *nests,
                      const NestLayouts *layouts, int count, const RowAxes *axes) {
  double cycles[2] = {0, 0};
  for (int i = 0; i < count; i++)
    for (int across = 0; across < 2; across++)
      cycles[across] +=
          block_cycles(context, machine, &nests[i], &layouts[i], axes, across != 0, i == count - 1);
  bool may = axes->inner >= 0 && axes->cuts[axes->inner] == 1,
       across = may && cycles[1] < cycles[0];
  return (RowCost){cycles[across], across};
}
