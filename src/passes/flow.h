// SPDX-License-Identifier: Apache-2.0
// Lets layouts flow through a tensor program: from the layouts of some of its parameters, finds
// those of the others and of the tensors between its blocks, and changes the program to them.
#ifndef PLEAT_PASSES_FLOW_H
#define PLEAT_PASSES_FLOW_H

#include "passes/rewrites.h"

// The layouts of the tensors of a program, each on the tensor's shape; NULL: it stays as it is.
typedef struct FlowLayouts {
  int param_count, stage_count;
  const Layout **params;
  const Layout **stages; // of the tensor that each block writes, in the order of the blocks
  const char *why;       // a tensor that reads or writes elements in another order than the layouts
                         // that were found, because its layout does not follow; NULL: all follow
} FlowLayouts;

// Finds layouts by the access relations of the blocks (plan/relations.h). `params` has a layout for
// each parameter that is given one. False where the blocks of the program cannot be read as stages;
// *why then says which part. The program's shapes are constants.
bool flow_find(Context *context, const PrimFunc *func, int input_count, const Layout *const *params,
               FlowLayouts *out, const char **why);
// The blocks of a program in order, without the root: PtrArray of Block*.
PtrArray flow_blocks(Context *context, const PrimFunc *func);
// The program on tensors in these layouts, by transform_layout; `padding` (NULL: any content) says
// what the padding of the results holds. NULL where a step is refused; *why then says which.
PrimFunc *flow_apply(Context *context, const PrimFunc *func, int input_count,
                     const FlowLayouts *layouts, const LayoutPadding *padding, const char **why);

// ---- Nodes of a graph function -----------------------------------------------------------------

// A node whose tensors get other layouts. Its parameters are its inputs that are given, and then
// its results.
typedef struct NodeFlow {
  PassRun *run;
  Node *node;
  PrimFunc *func; // its program
  int input_count;
  FlowLayouts layouts;
  PrimFunc *program; // on tensors in these layouts
  LayoutPadding padding;
  const AxisSeparators *const *separators; // of the rewrite of each parameter; NULL: none has any
  Attrs attrs;     // of the operator in these layouts, where they are known
  bool with_attrs; // they are
  Node *made;      // by node_flow_make
  const char *why; // the node has no program in other layouts; NULL: it has one
} NodeFlow;
// Begins with a node. False, and flow->why says why, where its program cannot be read.
bool node_flow_begin(PassRun *run, Node *node, NodeFlow *flow);
// Finds the layouts of all its tensors from those that are `given` (NULL: none is, for a tensor),
// and the program. False, and flow->why says why, where there is none.
bool node_flow_find(NodeFlow *flow, const Layout *const *given, LayoutPadding padding);
// Input number `param` of the node, of those that are given.
Value *node_flow_input(const NodeFlow *flow, int param);
// The source of the rewrite that computes a value, when the layout undoes it; else NULL.
Value *node_flow_undone(Context *context, const Value *value, const Layout *layout);
// The operator that computes the program from these inputs; NULL where none is proved to.
Node *node_flow_operator(const NodeFlow *flow, Value **inputs);
// Puts the node with these layouts in place of number `at` of the graph's nodes, with rewrites of
// its inputs before it and of its results after it. Rewrites that undo one another are left out.
// Returns the number of the next node; -1 after a diagnostic.
int node_flow_make(NodeFlow *flow, int at);
// Lets the nodes behind rewrites take the tensors as they are before these, where all rewrites of
// the graph together then write the fewest bytes. The nodes in `frozen` stay.
bool graph_follow_layouts(PassRun *run, const Map *frozen);

#endif
