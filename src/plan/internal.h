// SPDX-License-Identifier: Apache-2.0
// Shared by the files of the planner.
#ifndef PLEAT_PLAN_INTERNAL_H
#define PLEAT_PLAN_INTERNAL_H

#include "plan/plan.h"

enum { PLAN_MAX_LAYOUTS = 8, PLAN_MAX_CHOICES = 64 };

// The layouts a tensor may have; entry 0 is row-major (NULL).
typedef struct Candidates {
  int count;
  const Layout *items[PLAN_MAX_LAYOUTS];
  int axis[PLAN_MAX_LAYOUTS];     // the logical axis that is innermost; -1 for row-major
  bool blocked[PLAN_MAX_LAYOUTS]; // in blocks of the machine's vectors
  bool panels[PLAN_MAX_LAYOUTS];  // in panels that a reduction reads from end to end
} Candidates;

// One feasible way to run a stage: numbers of candidates.
typedef struct StageChoice {
  int output;                   // of the output tensor
  int reads[NEST_MAX_READS];    // per entry of stage->reads; -1: a constant, laid out at will
  int fused;                    // entry of stage->reads whose producer it joins; -1: none
  double cost;                  // cycles
} StageChoice;

typedef struct StageChoices {
  int count;
  StageChoice items[PLAN_MAX_CHOICES];
} StageChoices;

typedef struct Planner {
  Context *context;
  StageGraph *stages;
  const HostMachine *machine;
  Candidates *candidates; // by tensor->index
  StageChoices *choices;  // by stage->index
} Planner;

void planner_find_candidates(Planner *planner);
void planner_find_choices(Planner *planner, int stage);
double planner_rewrite_cost(const Planner *planner, const StageTensor *tensor, int from, int to);
double planner_move_cost(const Planner *planner, double bytes);
double tensor_bytes_as(const StageTensor *tensor, const Layout *layout);

#endif
