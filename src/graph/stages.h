// SPDX-License-Identifier: Apache-2.0
// The stages of a graph function, for fusion and planning. A stage is one computation of one
// tensor, read off the definitions of the operators. A stage becomes one block; tensors connect
// stages.
#ifndef PLEAT_GRAPH_STAGES_H
#define PLEAT_GRAPH_STAGES_H

#include "graph/graph.h"
#include "base/machine.h"

typedef struct Stage Stage;

typedef struct StageTensor {
  Buffer *buffer;      // logical
  Value *value;        // the graph's value; NULL inside an operator
  ConstData *data;     // for constants
  Stage *producer;     // NULL for inputs and constants
  const Stage *folded; // that computed the data while compiling; NULL: none did
  PtrArray users;      // Stage*, in order, once each
  bool is_output;      // of the graph
  bool kept;           // its writer is not inlined into its readers
  bool cheaper_kept;   // because a plan of the whole graph then costs less
  bool decided;        // in each plan of the graph it is not stored, or a group reads or writes
                       // it, although a plan that keeps it may cost less
  bool grouped;        // such a group
  bool branch;         // the condition or a result of a branch that runs may leave out; it is kept
  bool constant;       // see stage_graph_find_constants
  bool folds;       // computed while compiling although it is larger than what it is computed from
  bool packed;      // constant, but computed where it is read: see packed_constants.c
  int input;        // index among the graph's inputs; -1: no input
  Str letters;      // of its axes, such as "NCHW"; NULL: none are derived (axis_letters.c)
  int index;        // in StageGraph.tensors
  int most_readers; // in one plan; set by the planner
} StageTensor;

// The part of a stage that comes from the definition of one operator.
typedef struct StagePart {
  const Node *node;
  const TeStage *te; // before any inlining
} StagePart;
typedef Array(StagePart) StageParts;

// The definition of a stage before some others were inlined into it (stored_results.c).
typedef struct StageForm {
  TeStage *te;
  StageParts parts;
} StageForm;

struct Stage {
  TeStage *te;
  const Node *node;
  StageTensor *output;
  PtrArray reads;         // StageTensor*, each once, in order of occurrence
  const TeStage *read_by; // the definition that has these reads; NULL: they are to be found again
  StageParts parts;       // the stage itself last, after the stages inlined into it
  Stage **members;        // of a group, in the order in which they run; `te` is the last one's
  int member_count;       // 0: not a group
  PtrArray others; // Stage*: each computes the output too, in another way; a plan has one of them
                   // or the stage itself
  const Stage *serves; // the one of such others that needs the stage, or that it is; NULL: the
                       // stage is no part of another's other way
  const Stage *usual;  // the one of its others that is taken without planning; NULL: the stage
  int index;           // in StageGraph.stages
  // Set by stage_note_forms:
  Array(StageForm) forms;
  const TeStage *formed; // the definition to which the forms belong
  bool forms_left_out;   // there were too many
  PtrArray inlined;      // Stage*, directly or in one another: those that a plan may store
  bool asked;            // the user asked for layouts of the operator: the stage stays as it is
};

// Decisions for a whole graph that are made before layouts are planned, although a plan may cost
// less without them.
typedef enum StageDecision {
  DECISION_TURN = 1,        // outputs of windows are put in the order of the tensor behind a view
  DECISION_MOVE_ROWS = 2,   // groups take their rows in the order in which a view moves them
  DECISION_INLINE = 4,      // stages are put into their readers although storing them may pay
  DECISION_BYTES = 8,       // sums of products of bytes are computed several products at a time
  DECISION_ARITHMETIC = 16, // stages are put into their readers although storing them may let
                            // their arithmetic run beside a rewrite
  DECISION_WHOLE = 32,      // groups are not begun with a later reduction
} StageDecision;
enum { DECISION_KINDS = 6 };

typedef struct StageGraph {
  Context *context;
  const GraphFunc *graph;
  Array(StageTensor *) tensors;
  Array(Stage *) stages; // in order of computation
  Array(StageTensor *) inputs, outputs;
  int folded_stages;        // number of stages computed while compiling
  double folded_iterations; // of the larger stages in stage_graph_take_small_constants
  int fusions_decided;      // number of stages that were put into their readers, groups or packed
                            // bytes although a plan that stores their outputs may cost less
  int later_groups;         // number of groups that begin with a later member of another group
  unsigned avoided;         // set of StageDecision: not to be made
  unsigned decided;         // those that were made somewhere
  bool arithmetic;          // DECISION_ARITHMETIC makes a difference
  Map by_buffer;            // Buffer* -> StageTensor*
  Map searching_views;      // by WordKey, see inline_stages.c
  WordKey view_key;         // of the view that is looked for
  ObjectPool stage_pool, tensor_pool;
} StageGraph;

// Defines all nodes; NULL with diagnostics. An output that is an input or a constant gets a stage
// that copies it.
StageGraph *stage_graph_new(Context *context, const GraphFunc *graph);
// Sets StageTensor.letters; part of stage_graph_new.
void stage_graph_letter_axes(StageGraph *stages);
// Removes the stages with constant inputs from the graph, unless they have many iterations. Returns
// them in order; the caller allocates and computes the contents of their tensors' data.
PtrArray stage_graph_take_small_constants(StageGraph *stages);
// Marks the tensors that depend on constants only and do not have many more elements than these.
void stage_graph_find_constants(StageGraph *stages);
// Marks tensors in that way, and removes the stages of the marked ones from the graph. Returns the
// removed stages in order; the caller allocates and computes the contents of their tensors' data.
// Those that are large and that no other constant needs are not returned: who writes the weights of
// the program computes the stage `folded`.
PtrArray stage_graph_take_constants(StageGraph *stages);
// Marks weights that sums are to compute from packed constants, and then inlines them into these
// sums. A weight that cannot be inlined is computed while compiling, as others are.
void stage_graph_keep_packed(StageGraph *stages, const HostMachine *machine);
void stage_graph_inline_packed(StageGraph *stages);
// Lets stages that only move elements, or a constant in places, read through producers that do the
// same, so that rewrites, pads and crops that undo one another vanish. See compose_moves.c.
void stage_graph_compose_moves(StageGraph *stages);
// Inlines the copies of tensors that are left of what vanished, as stage_graph_inline_views does.
void stage_graph_inline_copies(StageGraph *stages);
// Computes indices that constant tables hold where these follow a rule. See index_tables.c.
void stage_graph_compute_tables(StageGraph *stages);
// Gives stages whose values are loads of one tensor, chosen by a condition, a single load whose
// index wraps, where that is proved to be the same. Views between the two are inlined for it.
void stage_graph_wrap_indices(StageGraph *stages);
// Computes elementwise stages and sums at the points of a view that alone reads them, where windows
// read the view. See compute_at_views.c.
void stage_graph_compute_at_views(StageGraph *stages);
// Inlines stages that only move elements (each value is one element of one tensor) into their
// readers. A reduction axis is split where this removes its divisions. A stage that writes an
// output stays, as does one through which a reduction would still divide or load indices.
void stage_graph_inline_views(StageGraph *stages);
// Inlines stages that pad a tensor with a literal into their readers, when all of these are
// reductions over windows, such as convolutions. A reader's own padding of the same value is merged
// with it. Products with literals other than 0 would take long, so these stages stay.
void stage_graph_inline_padding(StageGraph *stages);
// Inlines elementwise stages into their only reader, when it is elementwise too and reads them in
// place, so that the tensor between them is never stored. Stages that depend on constants only are
// not inlined into stages that depend on inputs.
void stage_graph_inline_intermediates(StageGraph *stages, const HostMachine *machine);
// May a plan gain something by storing what an elementwise stage computes, because the rows of it
// or of `readers`, which read one another in place and the first of them the stage, are then
// longer? See row_costs.c.
bool stage_storing_may_pay(Context *context, const HostMachine *machine, const Stage *stage,
                           Stage *const *readers, int count);
// May a plan be better that stores the stage's result, although the reader, `with` the stage
// inlined, computes it too?
bool stage_storing_gains(StageGraph *stages, const HostMachine *machine, const Stage *stage,
                         Stage *reader, const TeStage *with);
// Inlines stages that widen the elements of a tensor of bytes, in place, into their elementwise
// readers, so that these read the bytes.
void stage_graph_inline_widened(StageGraph *stages);
// Replaces constant float tensors of one element by literals.
void stage_graph_inline_scalars(StageGraph *stages);
// Groups a reduction and the later stages that need its results at one row only, when only the last
// of them is read elsewhere: softmax, normalisations. See group_stages.c.
void stage_graph_group_rows(StageGraph *stages);
// Lets a group whose only reader is a view write its rows in the order of the view, which is
// removed. See move_rows.c.
void stage_graph_move_rows(StageGraph *stages);
// Lets the planner store the results of a group's members too: as stages of their own, they are
// another way to compute the group's output. To be called after the last change of groups.
void stage_graph_offer_members(StageGraph *stages);
// Has the graph, without its later groups, at most so many stages? Then more plans are looked at.
enum { STAGES_OF_SMALL = 48 };
bool stage_graph_is_small(const StageGraph *stages);
// The reader with the stage inlined; NULL when it cannot be.
typedef TeStage *InlineInReader(StageGraph *stages, const Stage *stage, const Stage *reader);
typedef struct StageInlining {
  InlineInReader *inlined;
  bool decided;               // a plan that stores the result of the stage may be better
  bool parts;                 // the reader gets the parts of the stage too
  const HostMachine *machine; // to leave out definitions that no plan needs; NULL: none is left out
} StageInlining;
// Is told that `stage` is about to be inlined into `reader`.
void stage_note_forms(StageGraph *stages, const Stage *stage, Stage *reader, StageInlining how);
// The parts of both, first those of the stage.
StageParts stage_parts_together(StageGraph *stages, const Stage *stage, StageParts of_reader);
// Lets the planner store what was inlined: a stage that reads the results is another way to compute
// the reader's output. To be called last.
void stage_graph_offer_stored(StageGraph *stages);
// The value with constants of one element as literals.
Expr *stage_with_literals(const StageGraph *stages, Expr *value);
// Gives the stage, its forms and what was inlined into it such literals.
void stage_put_literals(const StageGraph *stages, Stage *stage);
// The stage that computes the elements of a group's output from the results of its reductions and
// from the tensors that the group reads: the members between are inlined. It is not in the graph.
Stage *stage_of_group_value(StageGraph *stages, const Stage *group);
// The stage with the stage that computes a tensor of its reads inlined. It is not in the graph.
Stage *stage_with_producer(StageGraph *stages, const Stage *stage, const Stage *producer);
// Finds reads and users again after stages have changed, and sets all indices.
void stage_graph_connect(StageGraph *stages);
// The same for one stage whose value has changed (it becomes the last user of the tensors that it
// reads), and for one that no stage reads any more.
void stage_graph_reread(StageGraph *stages, Stage *stage);
void stage_graph_detach(StageGraph *stages, Stage *stage);
// Adds stages before one whose output the last of them computes too: one of its others. Sets the
// reads, users and indices of all stages again.
void stage_graph_add_other(StageGraph *stages, Stage *stage, TeStage *const *by, int count);
// Puts stages in the place of one. Sets the reads, users and indices of all stages again.
void stage_graph_replace(StageGraph *stages, const Stage *stage, TeStage *const *by, int count);
// Removes the stages that no output needs, and sets the indices. The reads and users of the other
// stages must be known.
void stage_graph_prune(StageGraph *stages);

// Knows the axes of the stage. Axes of extent 1 stay variables, because a reduction identifies its
// output element by them.
Analyzer *stage_analyzer(Context *context, const TeStage *te);
// The value, simplified over the axes.
Expr *stage_simplify(Context *context, const TeStage *te, Expr *value);
bool stage_is_reduction(const Stage *stage); // ordered stages too; false for a group
bool stage_is_ordered(const Stage *stage);
bool stage_is_view(const Stage *stage); // each value is one element of one tensor
bool stage_is_copy(const Stage *stage); // a view that is its tensor
// Is the stage a view that reads each element of its tensor once, in an order by digits of indices?
bool stage_is_reordering(Context *context, const Stage *stage);
bool stage_indices_search(Expr *value); // does an index of its loads divide, or load?
bool stage_is_opaque(const Stage *stage); // computed by a function outside; then it is ordered too
double stage_iterations(const Stage *stage); // of its block; -1 when an extent is unknown
double stage_tensor_elements(const StageTensor *tensor); // -1 when an extent is symbolic
// True when the stage reads `tensor` only at its own axes, and its output has the same shape.
bool stage_reads_in_place(const Stage *stage, const StageTensor *tensor);
// Does the stage, which is no reduction, read less than all elements of the tensor, and each at one
// of its own elements only?
bool stage_reads_part(Context *context, const Stage *stage, const StageTensor *tensor);
StageTensor *stage_tensor_new(StageGraph *stages, Buffer *buffer);
StageTensor *stage_tensor_of(const StageGraph *stages, const Buffer *buffer);

// The parameters of a tensor program of several stages, in order: the tensors from outside, in
// order of occurrence, and then the output of the last stage.
typedef Array(StageTensor *) StageTensors;
StageTensors stages_params(StageGraph *stages, Stage *const *items, int count);
// Blocks are named by their operators instead of the user's nodes, so that kernels which would
// differ in names only are equal.
Str stage_block_name(Context *context, const Stage *stage);
// The tensor program of the stages.
PrimFunc *stages_prim_func(StageGraph *stages, Stage *const *items, int count, const char *name);

#endif
