// SPDX-License-Identifier: Apache-2.0
// Layout planning over a whole graph: which layout each tensor is written in, which rewrites are
// left, and which stages run together. One problem with exact sharing of rewrites, solved by
// plan/solve.h; never worse than no plan, by the same costs.
#ifndef PLEAT_PLAN_H
#define PLEAT_PLAN_H

#include "graph/stages.h"
#include "schedule/model.h"

typedef enum PlanPolicy {
  PLAN_OPTIMAL, // the cheapest plan
  PLAN_NONE,    // every tensor row-major
} PlanPolicy;

typedef struct PlanOptions {
  const HostMachine *machine;
  PlanPolicy policy;
  double seconds; // for the solver; 0: 2
} PlanOptions;

// One run of compiled code: a group of fused stages, or a rewrite of one tensor.
typedef struct PlanKernel {
  Str name;
  Stage **stages; // none for a rewrite
  int stage_count;
  PrimFunc *func;       // in logical indices
  StageTensors params;  // inputs, then the output
  KernelParam *layouts; // per parameter
  bool is_rewrite;
  int same_as;         // an earlier kernel of the same structure whose code serves; -1: none
  KernelChoice choice; // set by plan_schedule
} PlanKernel;

// A tensor as it lies in memory: one of the layouts it exists in.
typedef struct PlanVersion {
  StageTensor *tensor;
  const Layout *layout; // NULL: row-major
} PlanVersion;

typedef struct PlanRewrite {
  StageTensor *tensor;
  const Layout *from, *to;
  bool folded;         // of a constant: done while compiling
  int64_t bytes;       // of the larger side
  double cost;         // cycles at each run
  const char *because;
  PlanKernel *kernel;  // NULL when folded
} PlanRewrite;

typedef struct Plan {
  Context *context;
  StageGraph *stages;
  const HostMachine *machine;
  Array(PlanKernel *) kernels; // in the order in which they run
  Array(PlanRewrite) rewrites;
  double cost, cost_unplanned, lower_bound; // cycles
  bool optimal;
} Plan;

Plan *plan_graph(StageGraph *stages, const PlanOptions *options);
// Finds the schedule of every kernel; kernels of one structure share it. Adds the folded rewrites
// of constants to plan->rewrites. False with diagnostics.
bool plan_schedule(Plan *plan);

// "NCHW16c", "NCHW", or the arrow form.
const char *plan_layout_name(Context *context, const StageTensor *tensor, const Layout *layout);
// A readable name of a tensor.
const char *plan_tensor_name(const StageTensor *tensor);

#endif
