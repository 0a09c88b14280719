// SPDX-License-Identifier: Apache-2.0
// Shared by the files of the planner.
#ifndef PLEAT_PLAN_INTERNAL_H
#define PLEAT_PLAN_INTERNAL_H

#include "plan/plan.h"

// Networks have up to 6 layouts of a tensor and 36 choices of an operator. A tensor of n layouts
// with several users has n * 2^(n-1) states, so that few more can be taken.
enum { PLAN_MAX_LAYOUTS = PLAN_MAX_ALTERNATIVES, PLAN_MAX_CHOICES = 1024 };

// A layout that a tensor may have, and its form, by which layouts of different tensors are alike.
typedef struct Candidate {
  const Layout *layout; // NULL: row-major
  int axis;             // the logical axis that is innermost; CANDIDATE_ROWS, CANDIDATE_OTHER
  int64_t block;        // consecutive values of it; 0: all of them
  bool panels;          // in panels that a reduction reads from end to end
  bool requested;       // the user named it
} Candidate;
enum { CANDIDATE_ROWS = -1, CANDIDATE_OTHER = -2 };

typedef struct Candidates {
  int count;
  Candidate items[PLAN_MAX_LAYOUTS]; // the first is row-major
  bool frozen;                       // no others are let in
  int left_out;                      // those for which there was no room
} Candidates;

// One feasible way to run a stage: numbers of candidates.
typedef struct StageChoice {
  int output;  // of the output tensor
  int *reads;  // per entry of stage->reads; -1: a constant, laid out at will
  int fused;   // entry of stage->reads whose producer it is fused with; -1: none
  double cost; // cycles
  const Strategies *strategies; // by which a reduction was costed; NULL: it has none
} StageChoice;

typedef Array(StageChoice) StageChoices;

// A constraint applied to the stages: how `stage` reads entry `read` of its reads, or (-1) writes.
typedef struct StageConstraint {
  const PlanConstraint *from;
  const Stage *stage;
  int read;
  const StageTensor *tensor;
  const Layout *layout; // NULL: row-major
} StageConstraint;

// The body of the loops that a stage runs in when it is fused with every producer that it may be.
typedef struct LoopBody {
  double operations; // a point
  int copies;        // of it in the code
  int nodes;         // of the value that its last stage computes, as a tree
} LoopBody;

struct Planner {
  Context *context;
  StageGraph *stages;
  const HostMachine *machine;
  const PlanConstraints *constraints; // NULL: nothing
  Candidates *candidates;             // by tensor->index
  StageChoices *choices;              // by stage->index
  LoopBody *bodies;                   // by stage->index
  Map *nests;                         // by stage: those that planner_nest has read
  bool row_major;                     // stages take nothing else
  int most_choices, most_layouts;     // of a stage, and of a tensor
  int64_t choices_left_out;
  int *given;                         // by tensor->index: the candidate in which the caller has it
  Array(StageConstraint) stage_constraints;
};

// A choice for each stage, and its cost.
typedef struct Assignment {
  int *choice; // by stage->index; NULL: none was found
  int64_t cost, bound;
  bool optimal;
} Assignment;

// candidates.c
void planner_find_candidates(Planner *planner, bool proposals);
// Its number; -1 where no others are let in, or (counted) where there is no room.
int candidates_add(const Planner *planner, const StageTensor *tensor, Candidate candidate);
bool candidate_like(const Candidate *a, const Candidate *b);
Candidate planner_candidate_of(const Planner *planner, const Buffer *buffer, const Layout *layout);
// The stage's loops, read once; NULL where they are not one store with static extents.
const Nest *planner_nest(const Planner *planner, const Stage *stage);

// constraints.c: before candidates are proposed. False with diagnostics.
bool planner_apply_constraints(Planner *planner);
const StageConstraint *planner_constraint(const Planner *planner, const Stage *stage, int read);
bool planner_refuses(const Planner *planner, const Stage *stage, const char *why); // returns false
int planner_candidate_number(const Planner *planner, const StageTensor *tensor,
                             const Layout *layout);

// bodies.c: before the stage's choices, those before it being done.
void planner_measure_body(Planner *planner, const Stage *stage);
// The reason why a stage cannot be fused with the producer of a tensor that it reads: the first of
// these conditions that holds.
typedef enum FusionBlocker {
  BLOCKER_NONE, // the two may be fused
  BLOCKER_OUTPUT,
  BLOCKER_USERS, // several
  BLOCKER_INPUT,
  BLOCKER_ORDERED,
  BLOCKER_ROWS,      // the reader is a group
  BLOCKER_REDUCTION, // the reader is one
  BLOCKER_INDICES,   // elements are read at other indices than they are written at
  BLOCKER_TYPE,
  BLOCKER_BODY, // the loop would have too many operations,
  BLOCKER_SIZE, // and the reader's value too many nodes
} FusionBlocker;
FusionBlocker planner_fusion_blocker(const Planner *planner, const Stage *reader,
                                     const StageTensor *tensor);
// The operations a point that both would have; how many fit.
double planner_fused_operations(const Planner *planner, const Stage *stage,
                                const StageTensor *tensor, double *most);

// choices.c: false with diagnostics when constraints leave none.
bool planner_find_choices(Planner *planner, int stage);
double planner_rewrite_cost(const Planner *planner, const StageTensor *tensor, int from, int to);
double planner_move_cost(const Planner *planner, double bytes);
double planner_tensor_bytes(const StageTensor *tensor, const Layout *layout);
int64_t planner_integer_cost(double cycles);
int stage_read_of(const Stage *stage, const StageTensor *tensor); // entry of reads; -1

// problem.c: the best plan; `forced`, unless NULL, is written in candidate `number`.
Assignment planner_solve(const Planner *planner, double seconds, const StageTensor *forced,
                         int number);

// greedy.c
Assignment planner_forward(const Planner *planner);
Assignment planner_backward(const Planner *planner);
int64_t planner_cost_of(const Planner *planner, const int *choice);
// The candidate in which a tensor is written, and the set of those in which it must exist.
int planner_written(const Planner *planner, const int *choice, const StageTensor *tensor);
unsigned planner_exists(const Planner *planner, const int *choice, const StageTensor *tensor);

// fusion_blockers.c
const char *planner_stage_name(const Stage *stage);
// kernels.c
void planner_make_kernels(Planner *planner, const int *choice, Plan *plan);

#endif
