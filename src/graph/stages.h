// SPDX-License-Identifier: Apache-2.0
// A graph function taken apart into the stages of its operators' definitions: what fusion and
// planning work on. A stage is one block to be; tensors connect stages.
#ifndef PLEAT_GRAPH_STAGES_H
#define PLEAT_GRAPH_STAGES_H

#include "graph/graph.h"

typedef struct Stage Stage;

typedef struct StageTensor {
  Buffer *buffer;  // logical
  Value *value;    // the graph's value; NULL inside an operator
  ConstData *data; // for constants
  Stage *producer; // NULL for inputs and constants
  PtrArray users;  // Stage*, in order, once each
  bool is_output;  // of the graph
  bool kept;       // what writes it is not put into its readers
  bool constant;   // see stage_graph_find_constants
  int input;       // number among the graph's inputs; -1
  int index;       // in StageGraph.tensors
} StageTensor;

// What one operator's definition contributes to a stage.
typedef struct StagePart {
  const Node *node;
  const TeStage *te; // as it was defined
} StagePart;
typedef Array(StagePart) StageParts;

struct Stage {
  TeStage *te;
  const Node *node;
  StageTensor *output;
  PtrArray reads;   // StageTensor*, once each, in order of occurrence
  StageParts parts; // itself last; before it, intermediates that were put into it
  Stage **members;  // of a group (`te` is that of the last): run together, in this order
  int member_count; // 0: no group
  int index;        // in StageGraph.stages
};

typedef struct StageGraph {
  Context *context;
  const GraphFunc *graph;
  Array(StageTensor *) tensors;
  Array(Stage *) stages; // in order of computation
  Array(StageTensor *) inputs, outputs;
  int folded_stages;        // computed while compiling
  double folded_iterations; // of the interpreter
  Map by_buffer;            // Buffer* -> StageTensor*
} StageGraph;

// Defines all nodes. NULL with diagnostics. Values that reach an output without being computed get
// a copying stage.
StageGraph *stage_graph_new(Context *context, const GraphFunc *graph);
// Computes stages whose inputs are constants, with the interpreter; what would take long stays.
bool stage_graph_fold(StageGraph *stages);
// Marks what constants alone decide, and what has not many more elements than they.
void stage_graph_find_constants(StageGraph *stages);
// Takes the stages of tensors that are marked then, in order, out of the graph: to be computed
// elsewhere, into the data that their tensors now have.
PtrArray stage_graph_take_constants(StageGraph *stages);
// Puts stages that only move elements (each value is one element of one tensor) into their readers.
// A reduction's axis is cut where that saves it from dividing. Those that write an output, or
// through which a reduction would still divide or look up indices, stay.
void stage_graph_inline_views(StageGraph *stages);
// Puts elementwise stages into their only reader, where that is elementwise too and reads them in
// place: what lies between two of them is never written. What constants decide stays apart from
// what inputs do.
void stage_graph_inline_intermediates(StageGraph *stages);
// Floats that are constant tensors of one element become literals.
void stage_graph_inline_scalars(StageGraph *stages);
// Makes one stage of a reduction and those behind it that need its results at one row only, where
// nothing but the last of them is read elsewhere: soft maxima, normalisations.
void stage_graph_group_rows(StageGraph *stages);
// Finds reads and users again after stages were changed, and numbers everything.
void stage_graph_connect(StageGraph *stages);
// The same for one stage whose value was changed (it comes last among the users of what it reads),
// and for one that nothing reads any more.
void stage_graph_reread(StageGraph *stages, Stage *stage);
void stage_graph_let_go(StageGraph *stages, Stage *stage);
// Removes what no output needs, and renumbers.
void stage_graph_prune(StageGraph *stages);

bool stage_is_reduction(const Stage *stage); // ordered ones too; no group
bool stage_is_ordered(const Stage *stage);
double stage_iterations(const Stage *stage); // of its block; -1 when extents are not known
double stage_tensor_elements(const StageTensor *tensor); // -1 where they are symbolic
// The stage reads `tensor` only at its own axes, and tensor and output have one shape.
bool stage_reads_in_place(const Stage *stage, const StageTensor *tensor);
StageTensor *stage_tensor_of(const StageGraph *stages, const Buffer *buffer);

// One tensor program of some stages, in order: its parameters are the tensors that come from
// outside, in order of occurrence, then the output of the last stage. *params (may be NULL) gets
// them.
typedef Array(StageTensor *) StageTensors;
PrimFunc *stages_prim_func(StageGraph *stages, Stage *const *items, int count, const char *name,
                           StageTensors *params);

#endif
