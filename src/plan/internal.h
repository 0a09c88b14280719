// SPDX-License-Identifier: Apache-2.0
// Declarations shared by the files of the planner.
#ifndef PLEAT_PLAN_INTERNAL_H
#define PLEAT_PLAN_INTERNAL_H

#include "plan/plan.h"

// PLAN_MAX_LAYOUTS limits the layouts of a tensor, PLAN_MAX_CHOICES the choices of a stage.
// Networks have up to 6 layouts of a tensor and 36 choices of a stage. A tensor of n layouts with
// several users has n * 2^(n-1) states, so the limit on layouts cannot be much larger.
enum { PLAN_MAX_CHOICES = 1024 };

// A layout that a tensor may have, and its form: layouts of different tensors match when their
// forms are equal.
typedef struct Candidate {
  const Layout *layout; // NULL: row-major
  int axis;             // the logical axis that is innermost, or one of the constants below
  int64_t block;        // consecutive values of the axis in one block; 0: all of them
  bool panels;          // stored as panels that a reduction reads from end to end
  bool requested;       // the user named it
} Candidate;
enum { CANDIDATE_ROWS = -1, CANDIDATE_OTHER = -2 };

typedef struct Candidates {
  int count;
  Candidate items[PLAN_MAX_LAYOUTS]; // the first is row-major
  bool frozen;                       // no other candidate may be added
  int left_out;                      // number of candidates that exceeded the limit
} Candidates;

// One feasible way to run a stage. Layouts are given by the numbers of their candidates.
typedef struct StageChoice {
  int output;  // candidate of the output tensor
  int *reads;  // candidate of each entry of stage->reads; -1: a constant, packed at compile time
  int fused;   // entry of stage->reads whose producer the stage is fused with; -1: none
  double cost; // cycles
  const Strategies *strategies; // those that the cost of a reduction assumes; NULL: no reduction
} StageChoice;

typedef Array(StageChoice) StageChoices;

// A constraint applied to a stage: the layout in which `stage` reads entry `read` of its reads, or
// in which it writes its output (`read` is -1).
typedef struct StageConstraint {
  const PlanConstraint *from;
  const Stage *stage;
  int read;
  const StageTensor *tensor;
  const Layout *layout; // NULL: row-major
} StageConstraint;

// The body of the loops of a stage that is fused with every producer with which it may be.
typedef struct LoopBody {
  double operations; // per point of the iteration domain
  int copies;        // number of copies of the body in the emitted code
  int nodes;         // nodes of the value that its last stage computes, counted as a tree
} LoopBody;

struct Planner {
  Context *context;
  StageGraph *stages;
  const HostMachine *machine;
  const PlanConstraints *constraints; // NULL: no constraints
  Candidates *candidates;             // by tensor->index
  StageChoices *choices;              // by stage->index
  LoopBody *bodies;                   // by stage->index
  Map *nests;                         // by stage: the nests that planner_nest has read
  bool row_major;                     // only row-major layouts are considered
  int most_choices, most_layouts;     // limits per stage and per tensor
  int64_t choices_left_out;
  int *given; // by tensor->index: the candidate in which the caller has it
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
// The number of the candidate, which is added when it is new; -1 when the tensor is frozen, or when
// the limit is reached, which is counted in left_out.
int candidates_add(const Planner *planner, const StageTensor *tensor, Candidate candidate);
bool candidate_like(const Candidate *a, const Candidate *b);
Candidate planner_candidate_of(const Planner *planner, const Buffer *buffer, const Layout *layout);
// The stage's loops, read once; NULL where they are not one store with static extents.
const Nest *planner_nest(const Planner *planner, const Stage *stage);

// constraints.c. To be called before candidates are proposed; false with diagnostics.
bool planner_apply_constraints(Planner *planner);
const StageConstraint *planner_constraint(const Planner *planner, const Stage *stage, int read);
// Reports that the stage cannot be run as its constraints demand, and why; returns false.
bool planner_refuses(const Planner *planner, const Stage *stage, const char *why);
int planner_candidate_number(const Planner *planner, const StageTensor *tensor,
                             const Layout *layout);

// fusion_conditions.c. To be called before the stage's choices are found, and after all earlier
// stages.
void planner_measure_body(Planner *planner, const Stage *stage);
// The reason why a stage cannot be fused with the producer of a tensor that it reads: the first of
// these conditions that holds.
typedef enum FusionBlocker {
  BLOCKER_NONE, // the two may be fused
  BLOCKER_OUTPUT,
  BLOCKER_USERS, // several stages read the tensor
  BLOCKER_INPUT,
  BLOCKER_ORDERED,
  BLOCKER_ROWS,      // the reader is a group of stages that runs row by row
  BLOCKER_REDUCTION, // the reader is a reduction
  BLOCKER_INDICES,   // elements are read at other indices than those at which they are written
  BLOCKER_TYPE,
  BLOCKER_BODY, // the loop would have too many operations
  BLOCKER_SIZE, // the reader's value would have too many nodes
} FusionBlocker;
FusionBlocker planner_fusion_blocker(const Planner *planner, const Stage *reader,
                                     const StageTensor *tensor);
// The operations per point of both stages fused; *most receives the number that fits.
double planner_fused_operations(const Planner *planner, const Stage *stage,
                                const StageTensor *tensor, double *most);

// choices.c. False with diagnostics when the constraints leave no choice.
bool planner_find_choices(Planner *planner, int stage);
double planner_rewrite_cost(const Planner *planner, const StageTensor *tensor, int from, int to);
double planner_tensor_bytes(const StageTensor *tensor, const Layout *layout);
int64_t planner_integer_cost(double cycles);
int stage_read_of(const Stage *stage, const StageTensor *tensor); // entry of reads; -1: none

// problem.c. The best plan. Unless `forced` is NULL, that tensor is written (an input: given) in
// its candidate `number`.
Assignment planner_solve(const Planner *planner, double seconds, const StageTensor *forced,
                         int number);

// greedy.c
Assignment planner_forward(const Planner *planner);
Assignment planner_backward(const Planner *planner);
int64_t planner_cost_of(const Planner *planner, const int *choice);
// The candidate in which a tensor is written, and the set of candidates in which it has to exist.
int planner_written(const Planner *planner, const int *choice, const StageTensor *tensor);

// fusion_blockers.c
const char *planner_stage_name(const Stage *stage);
// kernels.c
void planner_make_kernels(Planner *planner, const int *choice, Plan *plan);

#endif
