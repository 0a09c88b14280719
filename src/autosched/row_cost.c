// SPDX-License-Identifier: Apache-2.0
// Predicts the cost of a reduction that runs row by row, in vectors along an axis of its own, and
// of several blocks that share their rows.
#include "autosched/row_axes.h"

enum {
  ROW_VECTORS = 4, // rows_across: the most vectors of rows that are computed together
  OPERAND_REGISTERS = 2,
  MOST_PLACES = 64 // of a window, at which its steps are counted
};

static bool contiguous_along(Context *context, const Nest *nest, const NestLayouts *layouts,
                             int axis, int width) {
  bool contiguous = false;
  for (int i = 0; i < nest->read_count; i++) {
    NestStep step = nest_step(context, nest, &nest->reads[i], layouts->reads[i], axis, width);
    if (step == NEST_STRIDED || step == NEST_REPEATED) return false;
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

// The most vectors of partial results that each of the rows has. Without enough registers for all
// of them and for the operands, they would be stored and loaded again at each step.
static int most_vectors(const HostMachine *machine, int64_t together) {
  int most = cost_model_of(machine)->most_row_vectors,
      registers = machine->vector_registers - OPERAND_REGISTERS;
  while (most > 1 && most * together > registers) most /= 2;
  return most;
}

int rows_vector_axis(Context *context, const HostMachine *machine, const Nest *nest,
                     const NestLayouts *layouts, int64_t together, int *width) {
  int best = -1, lanes = machine_lanes(machine, nest->output->type);
  for (int a = nest->spatial_count; a < nest->axis_count && lanes > 1; a++) {
    if (best >= 0 && nest->axes[a].extent <= nest->axes[best].extent) continue;
    int most =
        lanes_along(context, nest, layouts, a, lanes, lanes * most_vectors(machine, together));
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

int64_t rows_together(const HostMachine *machine, const Nest *nest, const Layout *output) {
  int axis = output ? -1 : last_row_axis(nest);
  bool shared = false;
  for (int i = 0; i < nest->read_count && axis >= 0; i++)
    shared |= !nest_depends(&nest->reads[i], axis);
  return shared ? MIN_OF(nest->axes[axis].extent, cost_model_of(machine)->rows_together) : 1;
}

// The cycles that wait for memory beyond the first cache. The part of an operand that the axes
// inside of one that does not move it read, where the first cache does not hold that part, is read
// again in each iteration of that axis.
static double rows_memory(const HostMachine *machine, const Nest *nest) {
  double cycles = 0;
  for (int i = 0; i < nest->read_count; i++) {
    const NestRead *read = &nest->reads[i];
    double all = nest_buffer_bytes(read->buffer), part = dtype_bytes(read->buffer->type);
    for (int a = nest->spatial_count; a < nest->axis_count; a++)
      if (nest_depends(read, a)) part *= (double)nest->axes[a].extent;
    part = MIN_OF(part, all);
    double moved = part, again = 0; // bytes of the inner axes; the largest part that is read again
    for (int a = nest->spatial_count - 1; a >= 0 && part > 0; a--) {
      double repeats = nest_repeats(nest, read, a);
      double grown = MIN_OF(part * MAX_OF((double)nest->axes[a].extent / repeats, 1), all);
      bool reread = repeats > 1 && part > (double)machine->l1_bytes;
      if (reread) again = part;
      moved *= (reread ? repeats : 1) * grown / part;
      part = grown;
    }
    cycles += memory_cycles(machine, part, memory_level(machine, part), MEMORY_FEED);
    if (again > 0)
      cycles += memory_cycles(machine, moved - part, memory_level(machine, again), MEMORY_FEED);
  }
  return cycles;
}

// How many combinations one after another reduce a vector of `count` values: halves, and then the
// odd number of values that is left.
static double combinations(int64_t count) {
  double steps = 0;
  for (; count > 1 && count % 2 == 0; count /= 2) steps++;
  return steps + (double)(count - 1);
}

// The numbers of steps of `width` values along a reduction axis that read within the tensor alone,
// and that cross its border, at a point of the axis that moves the window.
typedef struct WindowSteps {
  double whole, crossing;
} WindowSteps;

static WindowSteps window_steps(int64_t first, int64_t step, int64_t size, int64_t extent,
                                int64_t width) {
  WindowSteps steps = {0};
  for (int64_t t = 0; t < extent; t += width) {
    int64_t last = MIN_OF(t + width, extent) - 1, inside = 0;
    int64_t low = first + step * (step < 0 ? last : t), high = first + step * (step < 0 ? t : last);
    inside = (low >= 0 && low < size) + (high >= 0 && high < size);
    steps.whole += inside == 2;
    steps.crossing += inside == 1 || (!inside && low < 0 && high >= size);
  }
  return steps;
}

// Does another axis than these two move the index?
static bool moves_further(const Nest *nest, const NestRead *read, int d, int axis, int by) {
  for (int a = 0; a < nest->axis_count; a++)
    if (a != axis && a != by && nest_moves(read, d, a)) return true;
  return false;
}

// The share of the steps along a reduction axis in which vectors cross the border of what is read:
// their values are added one by one, because a condition guards each of them. Sets *outside to the
// share of the steps that read nothing. Where further axes move the window, as in an image whose
// rows and columns are one dimension, its borders are not those of the tensor, and all steps count.
static double crossing_share(const Nest *nest, int axis, int width, double *outside) {
  int64_t extent = nest->axes[axis].extent, size;
  *outside = 0;
  for (int i = 0; nest->conditional && i < nest->read_count; i++) {
    const NestRead *read = &nest->reads[i];
    int by = 0, d = nest_window(nest, read, axis, &by);
    if (d < 0 || !expr_as_int(read->buffer->shape[d], &size)) continue;
    if (moves_further(nest, read, d, axis, by)) {
      if (nest->guard_axes >> axis & 1) return 1;
      continue;
    }
    WindowSteps all = {0};
    int64_t places = nest->axes[by].extent, apart = MAX_OF(places / MOST_PLACES, 1), seen = 0;
    for (int64_t p = 0; p < places; p += apart, seen++) {
      WindowSteps at = window_steps(read->base[d] + p * read->coefficient[d][by],
                                    read->coefficient[d][axis], size, extent, width);
      all.whole += at.whole;
      all.crossing += at.crossing;
    }
    double steps = MAX_OF((double)(seen * ceil_div(extent, width)), 1);
    *outside = MAX_OF(1 - (all.whole + all.crossing) / steps, 0);
    return all.crossing / steps;
  }
  return 0;
}

// The cycles of one row of a reduction along an axis of its own, in vectors of partial results that
// are combined at the end of the row. Sets *tail to the latency of that end.
static double row_cycles(const HostMachine *machine, const Nest *nest, const NestLayouts *layouts,
                         int axis, int width, double rows, double *tail) {
  const CostModel *costs = cost_model_of(machine);
  int last = last_row_axis(nest);
  int64_t extent = nest->axes[axis].extent, lanes = machine_lanes(machine, nest->output->type),
          together = rows_together(machine, nest, layouts->output), used = MIN_OF(lanes, width);
  double loads = 0, combined = combinations(MIN_OF(extent, used)),
         partials = (double)ceil_div(MIN_OF(extent, width), used) - 1;
  for (int i = 0; i < nest->read_count; i++)
    loads += last < 0 || nest_depends(&nest->reads[i], last) ? 1 : 1.0 / (double)together;
  double vectors = nest->points / rows / (double)extent * nest_vector_steps(extent, used);
  double work = nest_product_operations(machine, nest) / (double)machine->fma_units;
  double each = MAX_OF(loads / costs->loads_a_cycle, work),
         chains = MAX_OF((double)width / (double)lanes, 1) * (double)together;
  if (vectors > chains) each = MAX_OF(each, nest_chain_latency(costs, nest) / chains);
  double outside, crossing = crossing_share(nest, axis, width, &outside);
  each = each * (1 - crossing - outside) + crossing * (double)used * costs->scalar_cycles;
  *tail = combined * (nest_chain_latency(costs, nest) + costs->shuffle_latency);
  return vectors * each +
         costs->combine_cycles * ((combined + partials) * nest->work.combine + combined);
}

static double rows_of(const Nest *nest) {
  double rows = 1;
  for (int a = 0; a < nest->spatial_count; a++) rows *= (double)nest->axes[a].extent;
  return rows;
}

double rows_cycles(Context *context, const HostMachine *machine, const Nest *nest,
                   const NestLayouts *layouts) {
  double tail, rows = rows_of(nest);
  int width, axis = rows_vector_axis(context, machine, nest, layouts,
                                     rows_together(machine, nest, layouts->output), &width);
  return axis < 0 ? -1 : rows * row_cycles(machine, nest, layouts, axis, width, rows, &tail);
}

double rows_cost(Context *context, const HostMachine *machine, const Nest *nest,
                 const NestLayouts *layouts) {
  double cycles = rows_cycles(context, machine, nest, layouts);
  return cycles < 0 ? cycles : overlapped_cycles(machine, cycles, rows_memory(machine, nest));
}

// ---- Blocks that share their rows

// The axis of the nest that moves with the dimension along which the kernel's output is contiguous.
static int inner_axis(const Nest *nest, const RowAxes *axes, bool last) {
  int d = last ? axes->inner : (int)(intptr_t)map_find(&axes->inner_of, nest->output->data) - 1;
  return d < 0 ? -1 : nest->output_axis[d];
}

// The cycles of a block, and what it adds to the cycles of the whole.
typedef struct BlockCost {
  double cycles;
  double divisions; // beside which the other operations of all blocks run
  double tail;      // in each row: the latency at the end of a reduction
} BlockCost;

typedef struct RowCosting {
  Context *context;
  const HostMachine *machine;
  const CostModel *costs;
  const RowAxes *axes;
} RowCosting;

// The vectors in which the block's elements are computed along the axis; its elements without one.
static double vectors_along(const RowCosting *r, const Nest *nest, int axis, int64_t lanes) {
  if (axis < 0) return nest->points;
  int64_t extent = nest->axes[axis].extent, piece = r->axes->inner_extent;
  return nest->points / (double)extent * (double)ceil_div(extent, piece) *
         nest_vector_steps(piece, lanes);
}

// How many vectors of rows are reduced at the same time: those that follow one another in memory.
static double chains_along(const RowCosting *r, const Nest *nest, int axis, int64_t lanes) {
  int64_t together = MIN_OF(nest->axes[axis].extent, r->axes->inner_extent);
  return (double)MIN_OF(ceil_div(together, lanes), ROW_VECTORS);
}

// How many of the block's loads gather the elements of a vector along the axis.
static double strided_loads(const RowCosting *r, const Nest *nest, const NestLayouts *layouts,
                            int axis, int width) {
  double strided = 0;
  for (int i = 0; i < nest->read_count && axis >= 0 && width > 1; i++)
    strided += nest_step(r->context, nest, &nest->reads[i], layouts->reads[i], axis, width) ==
               NEST_STRIDED;
  return strided;
}

// Are the block's values computed where they are used, because that takes no longer than to load
// them (inline_chains in autosched.c)?
static bool is_inlined(const Nest *nest, bool last) {
  const OpWork *work = &nest->work;
  return !last && nest->axis_count == nest->spatial_count && work->operations <= 1 &&
         !work->divisions && !work->lane_work && !work->guards;
}

// The cost of a block in vectors along the axis; in scalar code without one.
static BlockCost cost_along(const RowCosting *r, const Nest *nest, const NestLayouts *layouts,
                            int axis, bool last) {
  const CostModel *costs = r->costs;
  int lanes = machine_lanes(r->machine, nest->output->type),
      width = (int)MIN_OF(lanes, r->axes->inner_extent);
  double vectors = vectors_along(r, nest, axis, lanes), loads = nest->read_count,
         strided = strided_loads(r, nest, layouts, axis, width);
  double each = nest_operations(r->machine, nest) / costs->operations_a_cycle,
         moves = loads / costs->loads_a_cycle;
  if (is_inlined(nest, last))
    moves = 0; // its readers' loads are those of what it reads
  else if (nest->axis_count == nest->spatial_count)
    moves = MAX_OF(moves, 1 / costs->row_moves_a_cycle);
  else if (axis >= 0) // vectors of several rows have a chain each
    each = MAX_OF(each, nest_chain_latency(costs, nest) / chains_along(r, nest, axis, lanes));
  each = MAX_OF(each, moves) + strided * width * costs->lane_loads / costs->loads_a_cycle;
  return (BlockCost){.cycles = vectors * each,
                     .divisions = vectors * nest->work.divisions / costs->operations_a_cycle};
}

static BlockCost block_cost(const RowCosting *r, const Nest *nest, const NestLayouts *layouts,
                            bool across, bool last) {
  if (!nest->output) return (BlockCost){0};
  bool reduces = nest->axis_count > nest->spatial_count;
  if (reduces && !across) {
    BlockCost scalar = {.cycles = nest->points * r->costs->scalar_cycles}, cost = scalar;
    int width, axis = rows_vector_axis(r->context, r->machine, nest, layouts,
                                       rows_together(r->machine, nest, layouts->output), &width);
    double rows = rows_of(nest);
    if (axis >= 0)
      cost.cycles = rows * row_cycles(r->machine, nest, layouts, axis, width, rows, &cost.tail);
    return cost.cycles > scalar.cycles ? scalar : cost; // rows of few elements overlap
  }
  bool row = r->axes->inner >= 0 && r->axes->cuts[r->axes->inner] == 1;
  return cost_along(r, nest, layouts, row == across ? inner_axis(nest, r->axes, last) : -1, last);
}

// The cycles of all blocks. A processor looks ahead by `window_cycles`: behind a reduction it waits
// for the end of the reduction's row where the rest of the row fills this window.
static double all_cycles(const RowCosting *r, const Nest *nests, const NestLayouts *layouts,
                         int count, bool across) {
  double cycles = 0, divisions = 0, waits = 0;
  for (int i = count - 1; i >= 0; i--) { // from the last on: `cycles` are those behind the block
    BlockCost cost = block_cost(r, &nests[i], &layouts[i], across, i == count - 1);
    double rows = nests[i].output ? rows_of(&nests[i]) : 1;
    waits += rows * cost.tail * MIN_OF(cycles / rows / r->costs->window_cycles, 1);
    cycles += cost.cycles;
    divisions += cost.divisions;
  }
  return MAX_OF(cycles, divisions) + waits;
}

RowCost row_axes_cost(Context *context, const HostMachine *machine, const Nest *nests,
                      const NestLayouts *layouts, int count, const RowAxes *axes) {
  RowCosting r = {context, machine, cost_model_of(machine), axes};
  double within = all_cycles(&r, nests, layouts, count, false);
  if (axes->inner < 0 || axes->cuts[axes->inner] != 1) return (RowCost){within, false};
  double across = all_cycles(&r, nests, layouts, count, true);
  return across < within ? (RowCost){across, true} : (RowCost){within, false};
}
