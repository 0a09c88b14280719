// SPDX-License-Identifier: Apache-2.0
// Predicts what a plan can gain by storing the result of an elementwise stage instead of computing
// it in the stages that read it one after the other. Vectors run along rows that are contiguous in
// all that a kernel reads. An operand that is repeated along some axes ends the rows there, in both
// stages when one kernel computes them; apart, one of the two may have longer rows.
//   t[n, c] = x[n, c] * w[c];  y[n, c] = t[n, c] / 9     rows of c   =>   t in rows of c, y in one
#include "graph/stages.h"

#include "autosched/nest.h"
#include "base/cost_model.h"
#include "ir/op_count.h"

// The operands of some stages with the same axes, of which each breaks rows.
typedef struct RowOperands {
  int rank;
  int64_t extents[TE_MAX_RANK];
  uint64_t along[TE_MAX_RANK]; // by axis: the set of operands that move along it
  bool loose;                  // an operand is contiguous along no two axes
  int count;
} RowOperands;

// Is each index of the load an axis of the stage along the whole dimension, or the same everywhere?
static bool is_plain(const TeStage *te, const Expr *load) {
  for (int d = 0; d < load->count; d++) {
    bool plain = true;
    for (int a = 0; a < te->axis_count && plain; a++) {
      const BlockVar *axis = &te->axes[a];
      plain = !expr_uses(load->args[d], axis->var) ||
              (load->args[d] == axis->var && load->as.buffer->shape[d] == axis->extent);
    }
    if (!plain) return false;
  }
  return true;
}

typedef struct RowLoads {
  const Stage *stage;
  RowOperands *rows;
} RowLoads;

static bool note_load(Visitor *visitor, Expr *e) {
  RowLoads *loads = visitor->env;
  RowOperands *rows = loads->rows;
  const TeStage *te = loads->stage->te;
  if (e->op != EXPR_LOAD || rows->count == 64) return true;
  bool in_place = e->count == te->axis_count;
  for (int a = 0; a < te->axis_count && in_place; a++)
    in_place = e->args[a] == te->axes[a].var || rows->extents[a] == 1;
  if (in_place) return true;
  for (int a = 0; a < te->axis_count; a++)
    for (int d = 0; d < e->count; d++)
      if (expr_uses(e->args[d], te->axes[a].var)) rows->along[a] |= (uint64_t)1 << rows->count;
  rows->loose |= !is_plain(te, e);
  rows->count++;
  return true;
}

static void add_operands(const Stage *stage, RowOperands *rows) {
  RowLoads loads = {stage, rows};
  Visitor visitor = {.env = &loads, .enter_expr = note_load};
  visit_expr(&visitor, stage->te->value);
}

static bool start_rows(const Stage *stage, RowOperands *rows) {
  *rows = (RowOperands){.rank = stage->te->axis_count};
  for (int a = 0; a < rows->rank; a++)
    if (!expr_as_int(stage->te->axes[a].extent, &rows->extents[a])) return false;
  return true;
}

// The elements of a row where axis `inner` is innermost and the others are in order.
static int64_t row_extent(const RowOperands *rows, int inner) {
  int64_t extent = rows->extents[inner];
  for (int a = rows->rank - 1; a >= 0 && !rows->loose; a--) {
    if (a == inner || rows->extents[a] == 1) continue;
    if (rows->along[a] != rows->along[inner]) break;
    extent *= rows->extents[a];
  }
  return extent;
}

// The cycles for an element of a kernel whose stages have this work, in such rows.
static double element_cycles(const CostModel *costs, OpWork work, int loads, int64_t row,
                             int lanes) {
  double steps = nest_vector_steps(row, lanes) / (double)row;
  double operations = steps * (work.operations + work.guards) + work.lane_work;
  double arithmetic = MAX_OF(operations, steps * work.divisions) / costs->operations_a_cycle;
  double memory = MAX_OF(loads / costs->loads_a_cycle, 1 / costs->row_moves_a_cycle);
  return MAX_OF(arithmetic, steps * memory);
}

static OpWork work_of_both(OpWork a, OpWork b) {
  a.operations += b.operations;
  a.guards += b.guards;
  a.divisions += b.divisions;
  a.lane_work += b.lane_work;
  return a;
}

// Some stages in one kernel.
typedef struct RowKernel {
  RowOperands operands;
  OpWork work;
  int lanes, loads;
} RowKernel;

// Adds a stage to the kernel, in which it loads nothing of what the stage before it computes.
static void add_stage(Context *context, const HostMachine *machine, const Stage *stage,
                      RowKernel *kernel) {
  int lanes = machine_lanes(machine, stage->te->output->type);
  add_operands(stage, &kernel->operands);
  kernel->work = work_of_both(kernel->work, expr_op_work(context, stage->te->value));
  kernel->loads += kernel->loads ? stage->reads.count - 1 : stage->reads.count;
  kernel->lanes = kernel->lanes ? MIN_OF(kernel->lanes, lanes) : lanes;
}

static double kernel_cycles(const CostModel *costs, const RowKernel *kernel, int inner) {
  int64_t row = row_extent(&kernel->operands, inner);
  return element_cycles(costs, kernel->work, kernel->loads, row, kernel->lanes);
}

// Does an operand of the definition end rows? What was inlined into it before does not count, but a
// move with which it was composed does.
static bool ends_rows(const Stage *stage) {
  Stage own = *stage;
  RowOperands rows;
  bool inlines = stage->parts.count > 1 || stage->inlined.count;
  if (inlines) own.te = (TeStage *)array_last(&stage->parts).te;
  if (!start_rows(&own, &rows)) return true;
  add_operands(&own, &rows);
  return rows.count;
}

bool stage_storing_may_pay(Context *context, const HostMachine *machine, const Stage *stage,
                           Stage *const *readers, int count) {
  const CostModel *costs = cost_model_of(machine);
  RowKernel first = {{0}}, rest = {{0}};
  if (!ends_rows(stage) && !ends_rows(readers[0])) return false;
  if (!start_rows(stage, &first.operands) || !start_rows(readers[0], &rest.operands)) return true;
  RowKernel all = first;
  add_stage(context, machine, stage, &first);
  add_stage(context, machine, stage, &all);
  for (int i = 0; i < count; i++) {
    add_stage(context, machine, readers[i], &rest);
    add_stage(context, machine, readers[i], &all);
  }
  double points = 1, most = 0;
  for (int a = 0; a < all.operands.rank; a++) points *= (double)all.operands.extents[a];
  for (int a = 0; a < all.operands.rank && all.operands.count; a++)
    if (all.operands.extents[a] > 1)
      most = MAX_OF(most, kernel_cycles(costs, &all, a) - kernel_cycles(costs, &first, a) -
                              kernel_cycles(costs, &rest, a));
  return points * most > costs->call_cycles;
}
