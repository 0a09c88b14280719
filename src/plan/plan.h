// SPDX-License-Identifier: Apache-2.0
// Layout planning over a whole graph: which layout each tensor is written in, which rewrites are
// left, and which stages run together. One problem with exact sharing of rewrites, solved by
// solve/pbqp.h; never worse than no plan, by the same costs.
#ifndef PLEAT_PLAN_H
#define PLEAT_PLAN_H

#include "graph/stages.h"
#include "autosched/autosched.h"

typedef enum PlanPolicy {
  PLAN_OPTIMAL,  // the cheapest plan
  PLAN_NONE,     // every tensor row-major, but for the layouts that were asked for
  PLAN_FORWARD,  // what is cheapest for one operator after the other, in the order of the graph
  PLAN_BACKWARD, // the same, against the order
} PlanPolicy;

// A layout that the user requires of one value. The layout is on the value's shape; NULL is
// row-major.
typedef struct PlanConstraint {
  const Node *node; // as this operator reads the value, or (`output`) writes it; NULL: the value
                    // keeps its layout everywhere, which then is row-major
  const Value *value;
  bool output, named; // named: not being able to is an error; otherwise such operators are left out
  const Layout *layout;
  SourcePos pos; // what asks for it
} PlanConstraint;

typedef struct PlanConstraints {
  Array(PlanConstraint) items;
  PlanConstraint *inputs, *outputs; // of the graph, by number: how the caller has them
} PlanConstraints;

typedef struct PlanOptions {
  const HostMachine *machine;
  PlanPolicy policy;
  double seconds;                     // for the solver; 0: 2
  const PlanConstraints *constraints; // NULL: none
  int most_choices, most_layouts;     // looked at for an operator and for a tensor; 0: 1024 and 10,
                                      // which is the most for layouts
} PlanOptions;

// Counts what the limits of PlanOptions left out. A plan made of fewer choices than exist is not
// called optimal.
typedef struct PlanLimits {
  int64_t choices;          // ways to run an operator that were looked at, over all operators
  int64_t choices_left_out; // those that were not
  int64_t layouts_left_out; // candidates of tensors that were not taken up
} PlanLimits;

// One run of compiled code: a group of fused stages, or a rewrite of one tensor.
typedef struct PlanKernel {
  Str name;
  Stage **stages; // none for a rewrite
  int stage_count;
  PrimFunc *func;       // in logical indices
  StageTensors params;  // inputs, then the output
  KernelParam *layouts; // per parameter
  bool is_rewrite;
  double cost;         // cycles, as planned
  const Strategies *strategies; // by which its reduction was costed; NULL: it has none, or rows
  int same_as;         // an earlier kernel of the same structure whose code serves; -1: none
  KernelChoice choice; // set by plan_schedule
} PlanKernel;

// A tensor in one of the layouts in which it exists.
typedef struct PlanVersion {
  StageTensor *tensor;
  const Layout *layout; // NULL: row-major
} PlanVersion;

typedef struct PlanRewrite {
  StageTensor *tensor;
  const Layout *from, *to;
  bool folded;   // of a constant: done while compiling
  int64_t bytes; // of the larger side
  double cost;   // cycles at each run
  const char *because;
  PlanKernel *kernel; // NULL when folded
} PlanRewrite;

typedef struct Planner Planner;
typedef struct Plan {
  Context *context;
  StageGraph *stages;
  const HostMachine *machine;
  Array(PlanKernel *) kernels; // in the order in which they run
  Array(PlanRewrite) rewrites;
  double cost, cost_unplanned; // cycles
  double lower_bound;          // of all plans of the choices that were looked at
  double cost_optimal, cost_forward, cost_backward; // of the policies; 0 where layouts are not free
  bool optimal; // proved: lower_bound is reached, and nothing was left out
  PlanLimits limits;
  const PlanConstraints *constraints; // as given
  Planner *planner;                   // what was chosen from, and what was: for plan_alternatives
  const int *choice;
} Plan;

// NULL with diagnostics when what was asked for cannot be had.
Plan *plan_graph(StageGraph *stages, const PlanOptions *options);
// "12 choices of 76 and 1 layout were not looked at"; NULL where nothing was left out.
const char *plan_left_out(Arena *arena, const Plan *plan);
// How the caller has input or output `number` of the graph; NULL: row-major.
const Layout *plan_input_layout(const Plan *plan, int number);
const Layout *plan_output_layout(const Plan *plan, int number);

// The best plan in which a tensor is written (an input: given) in `layout`.
typedef struct PlanAlternative {
  const Layout *layout;
  bool feasible;
  double cost; // cycles of the whole plan
  bool chosen; // it is written so in the plan
} PlanAlternative;
enum { PLAN_MAX_ALTERNATIVES = 10 };
// Each layout that the tensor may have; how many. None for constants.
int plan_alternatives(const Plan *plan, const StageTensor *tensor, PlanAlternative *items);
// Finds the schedule of every kernel; kernels of one structure share it. Adds the folded rewrites
// of constants to plan->rewrites. False with diagnostics.
bool plan_schedule(Plan *plan);
// The same in two parts: of one kernel, those before it being done, and of constants in the end.
bool plan_schedule_kernel(Plan *plan, int number);
void plan_note_folded(Plan *plan);

// Why the reader of a tensor is not fused with the kernel that writes it: the kind of reason, which
// tensors have in common, and the reason of this tensor with its names.
typedef struct PlanBlocker {
  const char *kind, *because;
} PlanBlocker;
PlanBlocker plan_fusion_blocker(const Plan *plan, const StageTensor *tensor);

// "NCHW16c", "NCHW", or the arrow form.
const char *plan_layout_name(Context *context, const StageTensor *tensor, const Layout *layout);
// The bytes that the tensor takes in memory, with its padding.
int64_t plan_bytes(const StageTensor *tensor, const Layout *layout);
// A readable name of a tensor.
const char *plan_tensor_name(const StageTensor *tensor);

#endif
