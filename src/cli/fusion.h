// SPDX-License-Identifier: Apache-2.0
// Which kernels compute the operators of a graph, and which operators need no kernel, for `plan`
// and `inspect`.
#ifndef PLEAT_CLI_FUSION_H
#define PLEAT_CLI_FUSION_H

#include "cli/plan_view.h"

typedef enum NodeFate {
  NODE_UNUSED,   // no output of the graph depends on it
  NODE_FOLDED,   // computed at compile time
  NODE_IN_PLACE, // only moves elements, which its readers read in place
  NODE_COMPUTED,
} NodeFate;

typedef struct NodeKernels {
  NodeFate fate;
  IntArray kernels; // ascending, from 0: the kernels that compute the node, or read through it
} NodeKernels;

// A map of all nodes: from a Node to its NodeKernels *.
Map node_kernels(Context *context, const GraphFunc *graph, const Plan *plan);
// Adds a node's kernels and fate to those of an operator that consists of several nodes. The fate
// with the largest number prevails.
void node_kernels_add(Arena *arena, NodeKernels *all, const NodeKernels *one);
// A text such as "kernel:3", "read-by:4,7", "constant" or "unused".
const char *node_kernels_text(Arena *arena, const NodeKernels *place);

// The kernel's operators, such as "matmul3 + add4", and the reason why the tensor that the kernel
// writes is in memory; both are "" for rewrites.
const char *fusion_operators(const View *view, const PlanKernel *kernel);
const char *fusion_because(const View *view, const PlanKernel *kernel);

// Show which operators are fused and which are not: as a few lines, as a table of all kernels, as
// JSON.
void fusion_print_summary(const View *view);
void fusion_print(const View *view);
struct json_t *fusion_json(const View *view);

#endif
