// SPDX-License-Identifier: Apache-2.0
// Bounds what a plan can gain by storing the result of an elementwise stage instead of computing it
// in the stage that reads it. Vectors run along rows that are contiguous in all that a kernel reads.
// An operand that is repeated along some axes ends the rows there, in both stages when one kernel
// computes them; apart, one of the two may have longer rows.
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

bool stage_storing_may_pay(Context *context, const HostMachine *machine, const Stage *stage,
                           const Stage *reader) {
  const CostModel *costs = cost_model_of(machine);
  RowOperands own, theirs, both;
  if (!start_rows(stage, &own) || !start_rows(reader, &theirs)) return true;
  both = own;
  add_operands(stage, &own);
  add_operands(reader, &theirs);
  if (!own.count && !theirs.count) return false;
  add_operands(stage, &both);
  add_operands(reader, &both);
  OpWork first = expr_op_work(context, stage->te->value),
         second = expr_op_work(context, reader->te->value), all = work_of_both(first, second);
  int lanes = MIN_OF(machine_lanes(machine, stage->te->output->type),
                     machine_lanes(machine, reader->te->output->type));
  double points = 1, most = 0;
  for (int a = 0; a < both.rank; a++) points *= (double)both.extents[a];
  for (int a = 0; a < both.rank; a++) {
    if (both.extents[a] == 1) continue;
    double apart = element_cycles(costs, first, 1, row_extent(&own, a), lanes) +
                   element_cycles(costs, second, 1, row_extent(&theirs, a), lanes);
    int loads = own.count + theirs.count + 1;
    most = MAX_OF(most, element_cycles(costs, all, loads, row_extent(&both, a), lanes) - apart);
  }
  return points * most > costs->call_cycles;
}
