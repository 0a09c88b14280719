// SPDX-License-Identifier: Apache-2.0
// Nodes that only rewrite a tensor, as layouts, and how a pass makes them. A layout is on the shape
// of the tensor that is rewritten, and its physical shape is that of the result.
#ifndef PLEAT_PASSES_REWRITES_H
#define PLEAT_PASSES_REWRITES_H

#include "graph/call_program.h"
#include "passes/passes.h"

#include "ir/index_map.h"

// The map on a shape, which may have symbols. NULL, without a diagnostic, where it does not fit.
const Layout *layout_on_shape(Context *context, const IndexMap *map, Expr *const *shape, int rank);
// The physical shape as expressions of the symbols in `shape`; false where one is not known.
bool layout_physical_shape(Context *context, const Layout *layout, Expr *const *shape, int rank,
                           Expr **physical);
// A short map that has the same physical shape.
const IndexMap *layout_short_map(Context *context, const Layout *layout);
bool layout_pads(Context *context, const Layout *layout); // true where it is not proved to be onto
bool layout_changes_nothing(Context *context, const Layout *layout); // the identity, proved

// The stage that computes the only result of a definition from its input, where each stage moves
// elements of the one before it, or chooses between such an element and another value. NULL where a
// stage does something else.
const TeStage *move_of_stages(Context *context, const Te *te);
// Does each stage do no more than that? There may be several results.
bool stages_only_move(const Te *te);

// The memory of its tensors that a layout_transform states: each number is that of the first axis
// of a group, which is flattened to one axis of memory. Tensors between nodes are flat whatever it
// says, so it only reaches the programs that LegalizeOps makes.
typedef struct AxisSeparators {
  int count, input_count;
  int64_t result[TE_MAX_RANK], input[TE_MAX_RANK];
} AxisSeparators;

typedef struct Rewrite {
  const Layout *layout;
  bool pads;
  double pad_value;
  const AxisSeparators *separators; // NULL: none
} Rewrite;
// Reads the rewrite that a node makes of its only input, off the node's definition or program: each
// element of the input is an element of the result, at an index that is a layout of the input's
// index. False for other nodes.
bool node_rewrite(Context *context, const Node *node, Rewrite *rewrite);

const AxisSeparators *separators_new(Context *context, AxisSeparators separators); // NULL: none

// The layout that undoes the rewrite of a node, on the shape of its result. NULL: the node is no
// rewrite, or it pads.
const Layout *rewrite_inverse(Context *context, const Node *node);
// Are the outputs of the map its axes, in any order? Sets axes[0 .. rank) then.
bool map_is_permutation(const IndexMap *map, int64_t *axes);

// The operator that stores a value in a layout: permute_dims or layout_transform.
Node *rewrite_node_new(Context *context, Value *value, const Rewrite *rewrite);

// Where a pass inserts nodes.
typedef struct Insertion {
  Context *context;
  GraphFunc *graph;
  int at;           // the number of the next node
  const Node *like; // whose position and dataflow block new nodes have
} Insertion;
// Inserts a node and infers its results. NULL with a diagnostic; else the first result.
Value *insert_node(Insertion *insertion, Node *node);
// Inserts that operator. Gives the value itself for the identity.
Value *insert_rewrite(Insertion *insertion, Value *value, const Rewrite *rewrite);
// Does insert_inverse insert operators for a tensor of this shape?
bool layout_gives_back(Context *context, const Layout *layout, Expr *const *shape, int rank);
// Inserts the operators that give back a value, of the shape of the layout, which `stored` has in
// that layout; the transform among them has the separators (NULL: none). NULL, without a diagnostic
// and with nothing inserted, where there are no such operators.
Value *insert_inverse(Insertion *insertion, Value *stored, const Layout *layout,
                      const AxisSeparators *separators);

#endif
