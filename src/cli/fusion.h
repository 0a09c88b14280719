// SPDX-License-Identifier: Apache-2.0
// Where the operators of a graph are computed: which share a kernel, and which need none.
#ifndef PLEAT_CLI_FUSION_H
#define PLEAT_CLI_FUSION_H

#include "cli/plan_view.h"

typedef enum NodeFate {
  NODE_UNUSED,   // no output of the graph needs it
  NODE_FOLDED,   // computed while compiling
  NODE_IN_PLACE, // only moves elements: its readers read them in place
  NODE_COMPUTED,
} NodeFate;

typedef struct NodeKernels {
  NodeFate fate;
  IntArray kernels; // from 0, in order: that compute it, or read through it
} NodeKernels;

// Node to NodeKernels *, of all nodes.
Map node_kernels(Context *context, const GraphFunc *graph, const Plan *plan);
// Adds a node's kernels and fate to those of an operator that is several nodes; the fate of nodes
// that are computed prevails.
void node_kernels_add(Arena *arena, NodeKernels *all, const NodeKernels *one);
// "kernel:3", "read-by:4,7", "constant", "unused".
const char *node_kernels_text(Arena *arena, const NodeKernels *place);

// "matmul3 + add4", and why the tensor that a kernel writes is in memory; "" for rewrites.
const char *fusion_operators(const View *view, const PlanKernel *kernel);
const char *fusion_because(const View *view, const PlanKernel *kernel);

// Which operators are fused and which are not: a few lines, or a table of all kernels, or JSON.
void fusion_print_summary(const View *view);
void fusion_print(const View *view);
struct json_t *fusion_json(const View *view);

#endif
