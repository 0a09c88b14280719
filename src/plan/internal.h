// SPDX-License-Identifier: Apache-2.0
// Declarations shared by the files of the planner.
#ifndef PLEAT_PLAN_INTERNAL_H
#define PLEAT_PLAN_INTERNAL_H

#include "base/digest.h"
#include "plan/plan.h"
#include "plan/relations.h"

// The limits on the choices of a stage and on the layouts of a tensor (PLAN_MAX_LAYOUTS in small
// graphs). A tensor of n layouts with k users has up to n * C(n-1, k) states (problem.c), of which
// the copies that no plan needs are left out (useful_copies.c).
enum { PLAN_MAX_CHOICES = 1024, SMALL_MAX_CHOICES = 4096, USUAL_MAX_LAYOUTS = 20 };

static const double PLAN_NEVER = 1e18; // cycles of what cannot be done

// A layout that a tensor may have.
typedef struct Candidate {
  const Layout *layout;   // NULL: row-major
  const LayoutWalk *walk; // NULL: it has none, as with XORs of axes
  bool dense;             // memory is the row-major array of the digits of the walk
  bool panels;            // stored as panels that a reduction reads from end to end
  bool requested;         // the user named it
  bool copied;            // no tile of the producer writes it: only copies may have it
  double bytes;           // of the tensor in this layout; set for the candidates of a tensor
} Candidate;

// A set of candidates of one tensor, by their numbers.
typedef uint64_t LayoutSet;
#define LAYOUT_SET_OF(number) ((LayoutSet)1 << (number))
#define LAYOUT_SET_BELOW(count) (~(LayoutSet)0 >> (64 - (count))) // of the first candidates
_Static_assert(PLAN_MAX_LAYOUTS <= 64, "a set has one word");

typedef struct Candidates {
  Candidate *items; // the first is row-major; tensors with equal candidates share them
  int count, capacity;
  int left_out; // number of candidates that were not looked at
  int opened;   // how often one that was known as panels was found to be more than that
  bool frozen;  // no other candidate may be added
} Candidates;

// The cycles of the parts of a kernel's loops, which overlap.
typedef struct KernelWork {
  double operations, divisions, loads, stores;
} KernelWork;

// One feasible way to run a stage. Layouts are given by the numbers of their candidates.
typedef struct StageChoice {
  int output;          // candidate of the output tensor
  int *reads;          // candidate of each entry of stage->reads, or one of the constants below
  BitSet gathers;      // the reads whose elements may be gathered from another layout than
                       // `reads` says, at planner_gather_cost; with READ_ANY they always may
  const double *saved; // by read: the cycles that are saved where its elements are gathered from a
                       // layout without the padding of the one in `reads`; NULL: none
  int fused;           // entry of stage->reads whose producer the stage is fused with; -1: none
  bool tiles;         // its kernel's loops follow the layout of the output: it does not run by rows
  bool wants_tiles;   // it can only be fused with a producer whose choice has `tiles`
  bool in_place;      // the pieces of the output are written in place: the stage has no kernel
  int way;            // of a call, for an opaque operator
  bool absent;        // the stage is not in the plan: it has no kernel and reads nothing
  int by;             // number, from 1, of the one of the stage's others that writes `output` then;
                      // 0: no stage does, and `output` is -1
  double cost;        // cycles
  KernelWork work;    // of the kernel up to this stage, without a reduction
  double memory;      // cycles in which that moves what it reads and writes
  bool elementwise;   // its kernel is one of elementwise stages only; then:
  const Stage *whole; // the stages of the kernel up to this one as one stage (composed.c), or
                      // those of an equal stage
  const int *whole_reads;       // the candidate of each entry of whole->reads
  const Stage *host;            // `whole` of the producer's choice, with which the stage is fused
  int64_t row;                  // elements in a loop of an elementwise kernel or of a group; 0:
                                // not known
  const Strategies *strategies; // those that the cost of a reduction assumes; NULL: no reduction
  const TunedKernel *tuned;     // the kernel that the stage is part of; NULL: no record is used
  bool inner;                   // the output is in memory inside of this kernel only
} StageChoice;

enum {
  READ_PACKED = -1, // a constant, packed at compile time
  READ_ANY = -2,    // no layout is walked as the output is: elements are gathered
  READ_NOTHING = -3 // no element is read: a further output of a call depends on its first output
};

typedef Array(StageChoice) StageChoices;

// The cycles of gathering the reads of equal stages, as far as they are known. NULL: none is.
typedef struct GatherCosts {
  double *direct;          // see planner_gather_cost
  struct ThroughCopy *via; // see planner_delivery_to
} GatherCosts;

// The choices of all stages that are equal in what choices depend on.
typedef struct SharedChoices {
  StageChoices choices; // no items: they are not known yet
  GatherCosts gather_costs;
  int64_t left_out, dominated; // what each of the stages adds to the planner's counts
} SharedChoices;

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
  double own;        // operations of the stage alone
  double operations; // per point of the iteration domain
  int copies;        // number of copies of the body in the emitted code
  int nodes;         // nodes of the value that its last stage computes, counted as a tree
} LoopBody;

// The relation of stages to a tensor that they read, shared by all whose relation is equal, and
// what was computed with it so far, by layout.
typedef struct PlanRelation {
  ReadRelation relation;
  Map read_walks, write_walks, forward, backward;
  struct PlanRelation *next; // with the same hash
} PlanRelation;

// The candidate that a walk makes.
typedef struct WalkCandidate {
  const LayoutWalk *walk;
  Candidate candidate;
  bool made;                  // false: there is none
  struct WalkCandidate *next; // with the same hash
} WalkCandidate;

// The results that were computed for all tensors of one shape.
typedef struct PlanShape {
  Digest of;
  Map own;   // by layout: its Candidate *
  Map walks; // by a hash of the walk: its WalkCandidate *
  Map inner; // by axis and block: the layout of planner_inner_axis
} PlanShape;

struct Planner {
  Context *context;
  StageGraph *stages;
  const HostMachine *machine;
  const PlanConstraints *constraints; // NULL: no constraints
  Candidates *candidates;             // by tensor->index
  StageChoices *choices;              // by stage->index
  StageChoices room;                  // in which the choices of one stage after another are found
  Arena growing;                      // holds candidates until tensors share them
  double **rewrite_costs;     // by tensor->index: of [from * count + to]; negative: not known yet
  GatherCosts **gather_costs; // by stage->index; equal stages share them
  Map shared_choices;         // by WordKey: SharedChoices *
  Map *composed;              // by WordKey of two stages: the one with the other inlined
  // The facts about stages and shapes, which all planners of a graph share.
  const Stage **kinds;       // by stage->index: the first stage whose loops are equal
  Map *nests;                // by stage: what planner_nest has read; NULL: no nest
  PlanRelation ***relations; // by stage->index and entry of stage->reads; NULL: none
  Map *shared_relations;     // by a hash
  Map *shapes;               // by the first word of the digest of a shape: its PlanShape *
  StagePieces **pieces;      // by stage->index; NULL: no piece of the stage can be written in place
  LoopBody *bodies;          // by stage->index
  bool row_major;            // only row-major layouts are considered
  bool proposals;            // reductions propose layouts; otherwise only constraints do
  bool is_small;             // so that all plain layouts of all tensors are looked at
  int most_choices, most_layouts; // limits per stage and per tensor
  bool keeps_dominated;           // choices are kept that another one makes unnecessary
  double constant_bytes;          // of all constants that stages read
  // The bytes that kernels move between the use of a tensor and that before it (passing.c):
  double **passed;       // by stage->index and entry of stage->reads: before the stage reads it
  double *passed_writer; // by tensor->index: by the end of the kernel that writes the tensor
  int64_t choices_left_out, choices_dominated;
  int64_t layouts_left_out; // beside those of candidates
  bool *copies_limited; // by tensor->index: the solver looks at fewer copies than it has readers
  const Tuning *tuning; // NULL: no records
  PtrArray *tuned;      // by stage->index: TunedKernel*, those that have the stage; NULL: none
  bool *is_frozen;      // by stage->index: a record must be used; NULL as `tuned` is
  int *given;           // by tensor->index: the candidate in which the caller has it
  Array(StageConstraint) stage_constraints;
};

// The choice of a stage among `choice`, which has the number of one for each stage.
static inline const StageChoice *planner_chosen(const Planner *p, const int *choice,
                                                const Stage *stage) {
  return &p->choices[stage->index].items[choice[stage->index]];
}

// A choice for each stage, and its cost.
typedef struct Assignment {
  int *choice; // by stage->index; NULL: none was found
  int64_t cost, bound;
  int64_t work; // of the solver
  bool optimal;
} Assignment;

// candidates.c
void planner_find_candidates(Planner *planner, bool proposals);
// The number of the candidate, which is added when it is new; -1 when the tensor is frozen, or when
// the limit is reached, which is counted in left_out.
int candidates_add(const Planner *planner, const StageTensor *tensor, Candidate candidate);
Candidate planner_row_major(const Planner *planner, const Buffer *buffer);
// The candidate of a layout that the user named, or that a stage proposes.
Candidate planner_candidate_of(const Planner *planner, const Buffer *buffer, const Layout *layout);
// The number of the tensor's candidate with this layout; -1: none.
int planner_candidate_number(const Planner *planner, const StageTensor *tensor,
                             const Layout *layout);
// The layout [.., axis // block, .., axis % block], or (block 0) the axis moved to the end.
const Layout *planner_inner_axis(const Planner *planner, const Buffer *buffer, int axis,
                                 int64_t block);
bool planner_same_layout(const Layout *a, const Layout *b); // of one tensor

// sharing.c. Sets `kinds`.
void planner_find_kinds(Planner *planner);
// Lets tensors with equal candidates share them and the costs of rewrites. To be called when all
// candidates are found.
void planner_share_candidates(Planner *planner);
// The choices that the stage shares with equal stages; NULL: it shares none.
SharedChoices *planner_shared_choices(Planner *planner, const Stage *stage);

// Sets `key`, in scratch memory, to words that only kernels of equal programs and layouts have.
// False when there are none.
bool planner_kernel_key(const Planner *planner, const PlanKernel *kernel, WordKey *key);

// matching.c. To be called before candidates are found.
void planner_find_relations(Planner *planner);
// The facts known for the buffer's shape; NULL when it is symbolic.
PlanShape *planner_shape(const Planner *planner, const Buffer *buffer);
// The layout of the buffer with these outputs.
const Layout *planner_layout_of_outputs(const Planner *planner, const Buffer *buffer, int count,
                                        const LayoutExpr *const *outputs);
// The candidate that a walk over the tensor makes. False when the digits of the walk do not tell
// all elements apart.
bool planner_candidate_of_walk(const Planner *planner, const Buffer *buffer, const LayoutWalk *walk,
                               Candidate *out);
// The layout of the other tensor that is walked as `from` is, where `from` belongs to the tensor
// that the stage reads (`forward`) or to its output. False when there is none.
bool planner_related(const Planner *planner, const Stage *stage, int read, bool forward,
                     const Candidate *from, Candidate *out);
// Is each element of the tensor read for one element of the stage's output, and each of these
// computed from one? In place: at the same index.
bool planner_is_bijective(const Planner *planner, const Stage *stage, int read);
bool planner_is_in_place(const Planner *planner, const Stage *stage, int read);
// Is the tensor, in candidate `number`, walked as the stage's output in candidate `output`?
bool planner_walks_alike(const Planner *planner, const Stage *stage, int read, int number,
                         int output);
// The cycles for loading a read's elements from the tensor in candidate `number`, in the order in
// which the stage writes candidate `output`, without the memory that is moved.
double planner_permute_cost(const Planner *planner, const Stage *stage, int read, int number,
                            int output);
// The block of candidate `output` within which a part of the output that is read from the tensor
// begins or ends, at the index *at along its axis; 0: no block is cut.
int64_t planner_cut_block(const Planner *planner, const Stage *stage, int read, int output,
                          int64_t *at);
// The stage's loops, read once; NULL where they are not one store with static extents.
const Nest *planner_nest(const Planner *planner, const Stage *stage);

// The relation of the stage to its tensor; NULL: there is none. In the context's arena.
PlanRelation *planner_find_relation(Planner *planner, const Stage *stage,
                                    const StageTensor *tensor);

// composed.c. The relation of a stage to an entry of its reads, and the bytes that have passed
// before it is read.
PlanRelation *planner_relation(const Planner *planner, const Stage *stage, int read);
double planner_passed(const Planner *planner, const Stage *stage, int read);
// Sets `whole`, `whole_reads` and `host` of an elementwise choice whose reads are set. `host`: the
// choice of the producer with which it is fused; NULL: it is not.
void planner_compose(Planner *planner, const Stage *stage, StageChoice *choice,
                     const StageChoice *host);

// pieces.c. To be called before choices are found.
void planner_find_pieces(Planner *planner);
// Where piece `number` is in the memory of the stage's output when the stage has this choice and
// the output these strides (NULL: dense). False when the piece cannot be written there.
bool planner_place(const Planner *planner, const Stage *stage, int number,
                   const StageChoice *choice, const int64_t *strides, PlanPlacement *out);
// The strides of an array without gaps, in elements.
void planner_dense_strides(const int64_t *extents, int count, int64_t *strides);
// Does another kernel write the piece in place when the stage has this choice? If not, the piece
// has a kernel of its own, as does a tensor that is in memory of the caller.
bool planner_is_placed(const Planner *planner, const Stage *stage, const StagePiece *piece,
                       const StageChoice *choice);
// The cycles of the piece's own kernel.
double planner_copy_cost(const Planner *planner, const StagePiece *piece,
                         const PlanPlacement *placement);
// The cycles that an elementwise kernel takes longer when it writes a piece in place in rows that
// are shorter than a vector.
double planner_placed_cost(const Planner *planner, const StagePiece *piece,
                           const PlanPlacement *placement);
// Adds to the key all that the costs of pieces in place depend on beside the stage's loops and the
// candidates.
void planner_add_pieces(WordKey *key, const Planner *planner, const Stage *stage);

// constraints.c.
// Does the user require a layout of the stage's tensors? Its loops then stay as they are.
bool planner_constrains(const PlanConstraints *constraints, const Stage *stage);
// To be called before candidates are proposed; false with diagnostics.
bool planner_apply_constraints(Planner *planner);
const StageConstraint *planner_constraint(const Planner *planner, const Stage *stage, int read);
// Reports that the stage cannot be run as its constraints demand, and why; returns false.
bool planner_refuses(const Planner *planner, const Stage *stage, const char *why);

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
  BLOCKER_BRANCH, // it is stored so that runs leave out a branch
  BLOCKER_OPAQUE, // one of the two is computed by a function outside of the graph
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
// The same where `writer` computes the tensor, which several stages can compute.
FusionBlocker planner_writer_blocker(const Planner *planner, const Stage *reader,
                                     const Stage *writer);
// The operations per point of both stages fused; *most receives the number that fits.
double planner_fused_operations(const Planner *planner, const Stage *stage, const Stage *writer,
                                double *most);

// Can a stage with choice `user` be fused with the producer, with choice `from`, of entry `read` of
// its reads?
bool planner_hosts(const Planner *planner, const StageChoice *from, const Stage *stage,
                   const StageChoice *user, int read);

// tuning.c. Finds the kernels of tuning records among the stages, and adds the layouts that they
// have to the candidates. To be called like planner_propose_ways. False with diagnostics.
bool planner_find_tuned(Planner *planner);
// Adds the choices of the stage in these kernels; where a record must be used, the stage has no
// others. False with diagnostics when the constraints leave none.
bool planner_tuned_choices(Planner *planner, const Stage *stage);
// Do both choices, or none, take part in one kernel of a record, where `user` is that of the stage
// that reads in its entry `read` what `from` writes?
bool planner_tuned_alike(const StageChoice *from, const StageChoice *user, int read);

// passing.c. Sets `passed` and `passed_writer`. To be called after planner_measure_body.
void planner_find_passed(Planner *planner);
// The cycles to stream bytes that were used last when `passed` bytes ago, in a kernel that moves
// `moved` bytes in all.
double planner_read_cost(const Planner *planner, double bytes, double passed, double moved);
// The same to write them.
double planner_write_cost(const Planner *planner, double bytes, double moved);

// move_costs.c. The cycles to read and to write bytes in the nearest level of memory that holds all
// of them.
double planner_move_cost(const Planner *planner, double read, double written);
// The cycles for moving elements of `element` bytes that a kernel writes in the order of the walk
// `to` and reads in that of `from`: vectors where rows are contiguous in both, else each element by
// itself, or in tiles where the kernel may have these. NULL is a walk that is not known; at most
// `elements` are moved.
double planner_apart_cost(const Planner *planner, const LayoutWalk *from, const LayoutWalk *to,
                          double elements, int64_t element, bool tiles);

// choices.c. False with diagnostics when the constraints leave no choice.
bool planner_find_choices(Planner *planner, int stage);
// Could a reader be fused with the stage through another index than the stage's own?
bool planner_is_read_through(const Planner *planner, const Stage *stage);
double planner_tensor_bytes(const StageTensor *tensor, const Layout *layout);
int64_t planner_integer_cost(double cycles);
int stage_read_of(const Stage *stage, const StageTensor *tensor); // entry of reads; -1: none

// elementwise_costs.c
// The cycles of the arithmetic of a transform of tiles in vectors; 0 for other stages.
double planner_transform_cycles(const Planner *planner, const TeStage *te);
// Is the tile of a transform in more places of memory than are prefetched, so that it waits?
bool planner_transform_waits(const Planner *planner, const TeStage *te);
// The cycles of the operations, in vectors, of a stage and of those without a reduction behind it,
// with which it may share a kernel; 0 for a stage with a reduction.
double planner_chain_arithmetic(const Planner *planner, const Stage *stage);
// The cycles of the operations of a stage without a reduction that runs in rows of `row` elements.
double planner_operations_along(const Planner *planner, const Stage *stage, int64_t row);
// Sets the cost of a choice of a stage without a reduction, and the cycles of its kernel up to it.
// `host` is the choice of the producer with which it is fused; NULL: it is not fused.
void planner_set_elementwise_cost(Planner *planner, const Stage *stage, StageChoice *choice,
                                  const StageChoice *host);

// others.c. Adds the choices of a stage that is not in the plan, which can be because it serves
// another's other way, or because one of its others is taken. The choices of its others are known.
void planner_absent_choices(Planner *planner, const Stage *stage);
// The one of the stage's others that writes the output when the stage has this choice; NULL: none
// does.
const Stage *planner_taken_other(const Stage *stage, const StageChoice *choice);
// Can a stage have choice `c`, and number `other`, from 0, of its others choice `o`, in one plan?
bool planner_agree(const StageChoice *c, int other, const StageChoice *o);
// Leaves out optional stages whose output no stage in the plan reads, and what only they read. Each
// costs something, so that the solver keeps them in no plan that it proves, but in others it may.
// The kernel of such a stage could hold a sum that another reader expects in memory.
void planner_leave_out_unread(const Planner *planner, int *choice);
// The most stages that read the tensor in one plan; an output of the graph counts as one more.
int planner_most_readers(const StageTensor *tensor);
// Finds this number for all tensors; to be called first.
void planner_count_readers(const StageGraph *graph);
// Does one stage read the tensor, and nothing else, in every plan that has a reader of it?
bool planner_is_read_once(const StageTensor *tensor);
// Sets the producers and users of all tensors to the stages that are in the plan of these choices;
// NULL: to all stages.
void planner_connect(const Planner *planner, const int *choice);
// The stages and tensors that are in the plan of these choices.
StageGraph *planner_stages_of(const Planner *planner, const int *choice);

// opaque.c. Adds the layouts of all ways of opaque operators to the candidates. To be called after
// the constraints were applied, and before other candidates are found.
void planner_propose_ways(Planner *planner);
// Finds the choices of a stage that is opaque: one for each way that the constraints allow. False
// with diagnostics when there is none.
bool planner_way_choices(Planner *planner, const Stage *stage);
StageChoice *planner_add_choice(Planner *planner, const Stage *stage);
// The layout in which way `way` of a stage's call has a tensor, which it reads or writes.
const Layout *planner_way_layout(const Stage *stage, int way, const StageTensor *tensor);

// deliveries.c. All costs are whole numbers of cycles.
double planner_rewrite_cost(const Planner *planner, const StageTensor *tensor, int from, int to);
// The cycles that a stage, whose output has candidate `output`, takes longer when it gathers the
// elements of a read from candidate `from` of the tensor.
double planner_gather_cost(const Planner *planner, const Stage *stage, int read, int from,
                           int output);
// The same under a choice, less what it saves of memory, so that it may be negative; PLAN_NEVER
// when the choice does not allow it, or the tensor is not written (`from` is negative).
double planner_gathering(const Planner *planner, const Stage *stage, const StageChoice *choice,
                         int read, int from);
// The cycles of reading, under a choice, what is in memory in candidate `from`: 0 in the layout
// that the choice wants, else those of gathering.
double planner_reading(const Planner *planner, const Stage *stage, const StageChoice *choice,
                       int read, int from);
// The cycles in which a read by itself finds what is written: of a rewrite, or of gathering from
// what is written or from a copy of it, where that is cheaper.
double planner_delivery_to(const Planner *planner, const StageTensor *tensor, const Stage *stage,
                           const StageChoice *choice, int read, int written);

// copies.c. The cycles of the rewrites of a tensor that is written in candidate `from`, and of
// gathering by its readers, at least; readers that are not `decided` (NULL: all are) do not count.
double planner_delivery_cost(const Planner *planner, const int *choice, const bool *decided,
                             const StageTensor *tensor, int from);
// The candidate in which the user's kernel finds the tensor; READ_PACKED for a constant.
int planner_read_in(const Planner *planner, const int *choice, const StageTensor *tensor,
                    const Stage *user);

// choice_classes.c. The classes of a producer's choices, and of a user's by what it reads. All
// choices of a class have the same costs in the edge between the two stages.
typedef struct ChoiceClasses {
  int count;
  int *of;                   // by choice
  const StageChoice **first; // by class: the first of its choices
} ChoiceClasses;
ChoiceClasses planner_writer_classes(Arena *arena, const StageChoices *choices);
ChoiceClasses planner_reader_classes(Arena *arena, const StageChoices *choices, int read);

// useful_copies.c. What the choices of a reader lose where a tensor, written in one candidate, has
// no copy in another.
typedef struct CopyLosses {
  int candidates; // of the tensor
  int64_t *lost;  // [from * candidates + to]: at most, for a choice that reads `to`
  int *instead;   // [from * choices + choice]: the choice that loses so little, which is equal to
                  // the other in all but how it reads the tensor
} CopyLosses;
const CopyLosses *planner_copy_losses(const Planner *planner, const Stage *user, int read);

// problem.c. The best plan. Unless `forced` is NULL, that tensor is written (an input: given) in
// its candidate `number`.
Assignment planner_solve(const Planner *planner, double seconds, const StageTensor *forced,
                         int number);

// greedy.c
Assignment planner_forward(const Planner *planner);
Assignment planner_backward(const Planner *planner);
int64_t planner_cost_of(const Planner *planner, const int *choice);
// The candidate in which a tensor is written.
int planner_written(const Planner *planner, const int *choice, const StageTensor *tensor);

// fusion_blockers.c
const char *planner_stage_name(const Stage *stage);
// kernels.c
void planner_make_kernels(Planner *planner, const int *choice, Plan *plan);
// bands.c. Fuses kernels that follow one another and can run in bands.
void planner_make_bands(Plan *plan);
// gaps.c. Gives tensors memory with gaps; false where none needs it.
bool planner_add_gaps(Plan *plan);
// written.c. Checks that each kernel reads only what is in memory before it, and that the outputs
// are in memory in the end; otherwise a fault of ours.
void planner_check_written(const Plan *plan);
// False for the tensor that a kernel writes which computes a piece by itself: no stage has it.
bool planner_is_of_graph(const StageGraph *graph, const StageTensor *tensor);
// moves.c. Adds the kernels that only move elements to the plan's rewrites.
void planner_note_moves(Plan *plan);

#endif
