// SPDX-License-Identifier: Apache-2.0
// The auto-scheduler turns a kernel's blocks and the layouts of its tensors into a trace of
// schedule steps, by a cost model of the machine. The steps are the user's own; the auto-scheduler
// chooses only their arguments. The planner uses it, and so does a user's kernel that has no
// schedule.
#ifndef PLEAT_AUTOSCHED_H
#define PLEAT_AUTOSCHED_H

#include "autosched/nest.h"
#include "schedule/schedule.h"

typedef struct KernelParam {
  const Layout *layout; // the tensor's layout; NULL is row-major
  bool constant;        // contents are known at compile time: the auto-scheduler picks the layout
  bool strided;         // a part of another tensor, with strides that the layout alone has not
} KernelParam;

typedef struct KernelChoice {
  Schedule *schedule;
  const Layout **layouts; // per parameter: given, or chosen for a constant; NULL: row-major
  bool tiled;             // a register tile was found
  Tile tile;
  const char *slow; // why the kernel is not vectorised; NULL when it is
} KernelChoice;

// ---- How a reduction is computed

typedef enum StrategyKind {
  STRATEGY_TILE, // in register tiles
  STRATEGY_ROWS, // row by row, in vectors along an axis of its own
} StrategyKind;

typedef struct Strategy {
  StrategyKind kind;
  double cost; // cycles, as predicted
  Tile tile;   // STRATEGY_TILE
} Strategy;

enum { STRATEGY_RUNNERS_UP = 3 };
typedef struct Strategies {
  int count;   // 0: scalar code
  bool scalar; // scalar code costs less than `items`
  Strategy items[2];
  Tile runners_up[STRATEGY_RUNNERS_UP]; // the tiles that cost least after that of `items`
  int runner_up_count;
  const Layout *output; // in which the reduction's result is written; NULL: row-major
  bool in_order;        // terms are added in their order, one after the other
} Strategies;

// The strategies that can compute a reduction whose tensors have these layouts, the cheapest first.
const Strategies *strategies_of(Context *context, const HostMachine *machine, const Nest *nest,
                                const NestLayouts *layouts);
// The predicted cycles of the cheapest way, scalar code included.
double strategies_cycles(const HostMachine *machine, const Nest *nest,
                         const Strategies *strategies);
// The same with the strategy first that is `places` behind the cheapest, or the last one where
// there are fewer. With it, the cost model is judged by the time that its choices take.
Strategies strategies_behind(Context *context, const HostMachine *machine,
                             const Strategies *strategies, int places);
// The register tile of STRATEGY_TILE; NULL when it is not among the strategies.
const Tile *strategies_tile(const Strategies *strategies);

// ---- Kernels

// The extents of a tile that an elementwise kernel transposes in registers, and the least pieces in
// which a longer loop is cut for it because the tensor has blocks of this size. Consecutive rows of
// TRANSPOSE_INTERLEAVED elements are read and written together, as whole vectors.
enum {
  TRANSPOSE_LEAST_ROWS = 2,
  TRANSPOSE_MOST_ROWS = 16,
  TRANSPOSE_LEAST_PIECE = 4,
  TRANSPOSE_INTERLEAVED = 3
};

// Schedules the blocks of `func`: at most one reduction (the anchor) with elementwise blocks around
// it, or several reductions with rows in common. `planned` has the strategies for which the planner
// computed the anchor's cost; NULL: the strategies are searched for. False with diagnostics when a
// step was refused that must be possible.
bool autosched_kernel(Context *context, const HostMachine *machine, PrimFunc *func,
                      const KernelParam *params, const Strategies *planned, KernelChoice *choice);

// A part of a function's blocks, which a kernel of its own could compute.
typedef struct KernelPart {
  int blocks;                // their number; the parts follow one another
  const Strategies *planned; // as for a kernel
  const Layout *output;      // of the tensor that the part writes; NULL: row-major
  double cost;               // cycles of the part as a kernel, as predicted
} KernelPart;

// A function of several parts can run in bands: the outermost loop runs over bands of rows, and all
// parts are computed for one band after the other, so that the second cache holds the tensors
// between them. Returns by how many cycles less the function is predicted to take so than a kernel
// for each part; 0 where this saves too little, or cannot be done.
double autosched_saved_by_bands(Context *context, const HostMachine *machine, PrimFunc *func,
                                const KernelParam *params, const KernelPart *parts, int count);
// Schedules the function so. False, without diagnostics, where a step is refused.
bool autosched_banded(Context *context, const HostMachine *machine, PrimFunc *func,
                      const KernelParam *params, const KernelPart *parts, int count,
                      KernelChoice *choice);

// Schedules likewise a function as a user wrote it, when it says only what to compute: its blocks
// are in their own serial loops. False, without diagnostics, when the function has a schedule of
// its own or no strategy applies; *why_not then tells which.
bool autosched_unscheduled(Context *context, const HostMachine *machine, PrimFunc *func,
                           KernelChoice *choice, const char **why_not);
// The same for a program that a graph calls: where the auto-scheduler does not apply, the choice is
// the function as its author wrote it. All its parameters are row-major.
void autosched_program(Context *context, const HostMachine *machine, PrimFunc *func,
                       KernelChoice *choice);

#endif
