// SPDX-License-Identifier: Apache-2.0
// Layout planning over a whole graph: the planner decides in which layout each tensor is written,
// which rewrites remain, and which stages run together. It solves one problem, in which all users
// of a layout share one rewrite, with solve/pbqp.h. By its own costs, a plan is never worse than
// the unplanned program.
#ifndef PLEAT_PLAN_H
#define PLEAT_PLAN_H

#include "graph/opaque.h"
#include "graph/stages.h"
#include "autosched/autosched.h"

typedef enum PlanPolicy {
  PLAN_OPTIMAL,  // the cheapest plan
  PLAN_NONE,     // every tensor row-major, except where the user requires a layout
  PLAN_FORWARD,  // the cheapest choice for one operator after the other, in the order of the graph
  PLAN_BACKWARD, // likewise, against the order of the graph
} PlanPolicy;

// A layout that the user requires of one value. The layout has the value's shape; NULL is
// row-major.
typedef struct PlanConstraint {
  const Node *node; // as this operator reads the value, or (`output`) writes it; NULL: the value
                    // keeps its layout everywhere, which then is row-major
  const Value *value;
  bool output, named; // named: not being able to is an error; otherwise such operators are left out
  const Layout *layout;
  SourcePos pos; // the text that states the constraint
} PlanConstraint;

typedef struct PlanConstraints {
  Array(PlanConstraint) items;
  PlanConstraint *inputs, *outputs; // by number; the caller's layouts
  PlanConstraint asked; // a layout that a value need not have, but whose price is asked for; its
                        // `value` is NULL when none is
} PlanConstraints;

// How much may be lost by computing sums in another order or by other operations. By default a sum
// of products has at most 4 times the rounding errors of the direct sum.
typedef struct PlanAccuracy {
  bool exact;      // the order and the number of operations stay as they are
  double relative; // the most rounding error of a sum relative to all its results, both in the root
                   // mean square over random operands; 0: the default
} PlanAccuracy;

// A stage that is computed by a bilinear algorithm (graph/window_products.h, block_products.h).
typedef struct PlanBilinear {
  const Stage *stage; // the last of its stages
  int count;          // of transformed windows; 0: the stage is a product in blocks
  int64_t outputs[2], taps[2];
  double cycles, direct_cycles; // predicted: of all its stages, and of the direct sum
  double error, direct_error;   // of both, in the root mean square as above
  double bound;                 // bilinear_bound, for all windows, or block_bound
  double weight_bytes, direct_weight_bytes;
} PlanBilinear;
typedef Array(PlanBilinear) PlanBilinears;

// A schedule for one kernel, with the layouts that it gives the kernel's parameters, from a file of
// tuning records (driver/tuning.c).
typedef struct TuningRecord {
  Str first, last;     // for the kernel that begins with the operator `first`, and ends with `last`
                       // (NULL: with as many operators as can be fused)
  PrimFunc *program;   // `first` is NULL: for all kernels of this structure
  uint64_t hash;       // of `program`
  Schedule *schedule;  // of `program`
  const PyNode *steps; // that make the schedule
  double cycles;       // of the kernel, as measured; negative: not stated, so that the record is a
                       // requirement and not an offer
  SourcePos pos;
} TuningRecord;
typedef Array(TuningRecord) Tuning;
// The form of a program in which it is compared with kernels: its blocks state their regions.
PrimFunc *tuning_program(Context *context, PrimFunc *func);

// The bilinear algorithms that were looked for, and their measured errors, which all plans of a
// program share.
typedef struct BilinearFacts BilinearFacts;
BilinearFacts *bilinear_facts_new(Context *context);

#define PLAN_SECONDS 0.3 // that the solver has usually

typedef struct PlanOptions {
  const HostMachine *machine;
  PlanPolicy policy;
  double seconds;                     // for the solver; 0: PLAN_SECONDS
  const PlanConstraints *constraints; // NULL: no constraints
  PlanAccuracy accuracy;
  const Tuning *tuning;   // NULL: no records
  BilinearFacts *facts;   // NULL: found anew
  PlanBilinears bilinear; // the result of plan_add_bilinear for these stages
  int runner_up;          // how many places the schedules of kernels are behind the cheapest
                          // (strategies_behind); 0: they are the cheapest
  int most_choices, most_layouts; // looked at for an operator and for a tensor, at most
                                  // PLAN_MAX_LAYOUTS; 0: as many as the size of the graph allows
} PlanOptions;

// Counts what the limits of PlanOptions left out, and what was decided without the solver. A plan
// made from fewer choices than exist is not called optimal.
typedef struct PlanLimits {
  int64_t choices;          // ways to run an operator that were considered, over all operators
  int64_t choices_left_out; // ways that were not considered
  int64_t layouts_left_out; // layouts of tensors that were not considered
  int64_t fusions_decided;  // stages that were put into others before layouts were planned, which
                            // by themselves might cost less
} PlanLimits;

enum { PLAN_MAX_PHYSICAL = 32 };
// Says that a tensor in this layout has no memory of its own, but is written in place in the memory
// of another: its element 0 is `offset` elements after that of `whole`. Or, where `whole` is NULL,
// that its own memory has gaps.
typedef struct PlanPlacement {
  StageTensor *tensor;
  const Layout *layout; // NULL: row-major
  StageTensor *whole;
  const Layout *whole_layout;
  int64_t offset;
  int64_t bytes;                      // of memory with gaps
  bool dense;                         // the strides are those that the layout has by itself
  int64_t row;                        // the elements of a row of the kernel that writes it
  int64_t strides[PLAN_MAX_PHYSICAL]; // of each physical axis, in elements
} PlanPlacement;

// A record, applied to the stages of a kernel.
typedef struct TunedKernel {
  const TuningRecord *record;
  Stage **stages;
  int stage_count;
  StageTensors params;
  Schedule *schedule;
  const Layout **layouts; // per parameter; NULL: row-major
} TunedKernel;

// The parts of a kernel that runs in bands (autosched_banded), each of which was a kernel.
enum { PLAN_MAX_PARTS = 4 };
typedef struct PlanBands {
  KernelPart parts[PLAN_MAX_PARTS];
  int count;
  KernelChoice choice; // the schedule
} PlanBands;

// One run of compiled code: a group of fused stages, or a rewrite of one tensor.
typedef struct PlanKernel {
  Str name;
  Stage **stages; // none for a rewrite
  int stage_count;
  PrimFunc *func;                   // NULL until plan_kernel_func makes it
  StageTensors params;              // inputs, then the output
  KernelParam *layouts;             // per parameter
  const PlanPlacement **placements; // per parameter; NULL: the tensor has memory of its own
  bool is_rewrite;
  const OpaqueCall *call;       // of an opaque operator, which runs in place of code; NULL: none
  int way;                      // of the call
  double cost;                  // cycles, estimated by the planner
  const Strategies *strategies; // by which its reduction was costed; NULL: it has none, or rows
  const TunedKernel *tuned;     // the record that it is scheduled by; NULL: none
  const PlanBands *bands;       // NULL: the kernel does not run in bands
  KernelChoice choice;          // set by plan_schedule
  int same_as; // set by plan_match_kernel: an earlier kernel of equal structure, whose code is
               // used; -1: none
  int number;  // set too, for a kernel with code of its own: its index in the plan
  struct PlanKernel *next_alike; // another kernel whose structure has the same hash
} PlanKernel;

// A tensor in one of the layouts in which it exists.
typedef struct PlanVersion {
  StageTensor *tensor;
  const Layout *layout; // NULL: row-major
} PlanVersion;

// A copy of a tensor in another layout, or a kernel that only moves elements of `tensor`, and
// perhaps of others, to `written`.
typedef struct PlanRewrite {
  StageTensor *tensor;
  const Layout *from, *to;
  bool folded;   // the rewrite of a constant, done at compile time
  int64_t bytes; // of the larger of the two layouts
  double cost;   // cycles per run
  const char *because;
  PlanKernel *kernel;   // NULL when folded
  StageTensor *written; // of which `to` is the layout; NULL: the tensor itself
} PlanRewrite;

typedef struct Planner Planner;
typedef struct Plan {
  Context *context;
  StageGraph *stages;
  const HostMachine *machine;
  int runner_up;               // of PlanOptions
  bool sums_in_order;          // by the accuracy of PlanOptions
  Array(PlanKernel *) kernels; // in the order in which they run
  Array(PlanRewrite) rewrites;
  // StageTensor* -> PlanPlacement*: the tensors that are written in place, or whose memory has gaps
  Map placements;
  double cost, cost_unplanned; // cycles
  double saved_by_bands;       // cycles, which are not in `cost`: bands are found afterwards
  double lower_bound;          // of the cost of any plan of the considered choices
  double cost_optimal, cost_forward, cost_backward; // under each policy; 0 with PLAN_NONE
  int64_t work;                                     // of the solver, see PbqpSolution
  bool optimal; // proved: the cost equals lower_bound, and nothing was left out
  PlanLimits limits;
  PlanBilinears bilinear;             // those of PlanOptions that the plan takes
  const PlanConstraints *constraints; // as the caller passed them
  Planner *planner;                   // the candidates and choices, for plan_candidate_costs
  const int *choice;
  Map by_structure; // by hash: the scheduled kernels with code of their own
  Map by_stages;    // by the stages and layouts of a scheduled kernel: the one whose code it uses
} Plan;

// The plan, or NULL with diagnostics when the constraints cannot be met.
Plan *plan_graph(StageGraph *stages, const PlanOptions *options);
// A text such as "12 choices of 76 and 1 layout were not looked at, and 3 fusions were decided
// before planning", or NULL when the solver chose from everything.
const char *plan_left_out(Arena *arena, const Plan *plan);
// Writes the plan's problem in the LP format, with all choices, for other solvers: its optimum is
// the least cost of any plan. See integer_program.c for the names of its variables.
void plan_integer_program(const Plan *plan, Text *out);
// The program of the kernel, whose accesses have logical indices. It is made once, when it is first
// asked for: most kernels of a large network are equal to an earlier one.
PrimFunc *plan_kernel_func(const Plan *plan, int number);
// Does the kernel write this parameter? The last one, and further outputs of a call.
bool plan_kernel_writes(const PlanKernel *kernel, int param);
// The layout in which a parameter of a scheduled kernel is in memory, from its own element 0 on.
// NULL: row-major.
const Layout *plan_memory_layout(const Plan *plan, const PlanKernel *kernel, int param);
// Where the tensor, in this layout, is written in place; NULL: it has memory of its own.
const PlanPlacement *plan_placement(const Plan *plan, const StageTensor *tensor,
                                    const Layout *layout);
// The layout in which the caller has input or output `number` of the graph; NULL: row-major.
const Layout *plan_input_layout(const Plan *plan, int number);
const Layout *plan_output_layout(const Plan *plan, int number);

// An operator, or the rewrites of a tensor, and how many cycles more than in the plan it takes.
typedef struct PlanChange {
  const char *what;
  double cycles;
} PlanChange;
enum { PLAN_MAX_CHANGES = 3 };

// A layout that a tensor may have, and the cost of the best plan in which the tensor is written (an
// input: given) in this layout.
typedef struct PlanCandidate {
  const Layout *layout;
  double cost;           // cycles of the whole plan; 0 where no plan exists
  bool chosen;           // the plan writes the tensor in this layout
  const char *forbidden; // what forbids the layout, where no plan exists; otherwise NULL
  PlanChange changes[PLAN_MAX_CHANGES]; // the largest first
  int change_count;
} PlanCandidate;
enum { PLAN_MAX_LAYOUTS = 60 };
// Fills items[0..PLAN_MAX_LAYOUTS) with the tensor's candidates, among them the one that was asked
// for, and returns their number, which is
// 0 for constants.
int plan_candidate_costs(const Plan *plan, const StageTensor *tensor, PlanCandidate *items);
// Why the tensor has no further candidates, where a limit or an option keeps it from them;
// otherwise "".
const char *plan_no_more_candidates(const Plan *plan, const StageTensor *tensor);
// Finds the schedule of every kernel; kernels of one structure share it. Adds the folded rewrites
// of constants to plan->rewrites. False with diagnostics.
bool plan_schedule(Plan *plan);
// The three parts of plan_schedule: the first looks for an earlier kernel of equal structure, in
// the order of the kernels; the second, which may be called in an arena scope, finds the schedule
// or takes that of the equal kernel; the third records the folded rewrites of constants once all
// kernels are scheduled.
void plan_match_kernel(Plan *plan, int number);
bool plan_schedule_kernel(Plan *plan, int number);
void plan_note_folded(Plan *plan);

// Why the reader of a tensor is not fused with the kernel that writes it: the kind of reason, which
// several tensors can share, and the reason for this tensor with the names of its operators.
typedef struct PlanBlocker {
  const char *kind, *because;
} PlanBlocker;
PlanBlocker plan_fusion_blocker(const Plan *plan, const StageTensor *tensor);

// The letters of a tensor's axes: those derived from its graph, such as "NHWC", or else "ABC" by
// position.
Str plan_axis_letters(Context *context, const StageTensor *tensor);
// The name of a layout over these letters, "NCHW16c" or "ABC", or the map in arrow form. The text
// is read as a layout of the same tensor by driver/constraint_texts.c.
const char *plan_layout_name(Context *context, const StageTensor *tensor, const Layout *layout);
// The bytes that the tensor takes in memory, with its padding.
int64_t plan_bytes(const StageTensor *tensor, const Layout *layout);
// A readable name of the tensor.
const char *plan_tensor_name(const StageTensor *tensor);

// ---- Products of bytes (byte_choice.c)

// Computes sums of products of integers of 8 bits four at a time (graph/byte_products.h) where that
// saves cycles; with an accuracy that is not exact also sums of such integers in float32. To be
// called before constants are folded.
void plan_use_byte_products(StageGraph *stages, const PlanOptions *options);

// ---- Bilinear algorithms (bilinear_choice.c)

// Adds bilinear algorithms as other ways to compute the window products of the stages where that is
// predicted to save cycles and the rounding errors stay within the options' accuracy. To be called
// before constants are folded.
PlanBilinears plan_add_bilinear(StageGraph *stages, const PlanOptions *options);

#endif
