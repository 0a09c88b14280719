// SPDX-License-Identifier: Apache-2.0
// Reports about programs as data: what the command prints, and what its `--json` and the library
// give. JSON objects are made with Jansson and belong to the caller.
#ifndef PLEAT_REPORT_REPORT_H
#define PLEAT_REPORT_REPORT_H

#include <jansson.h>

#include "driver/driver.h"

// Releases the object, and returns its text with a newline at its end, which the caller frees; NULL
// when memory is exhausted.
char *report_text(json_t *object);

// ---- Plans -------------------------------------------------------------------------------------

// A rewrite at run time, or constants that are rewritten alike at compile time.
typedef struct PlanRow {
  const PlanRewrite *first;
  const char *from, *to;
  PtrArray members; // const PlanRewrite *
  int64_t bytes;
} PlanRow;

typedef struct PlanReport {
  Context *context;
  const Program *program;
  const Plan *plan;
  Array(PlanRow) rows;
} PlanReport;

// The report of a program whose kernels were not discarded.
PlanReport plan_report_new(const Program *program);
// The name of a layout of a tensor for users.
const char *report_layout_name(const PlanReport *report, const StageTensor *tensor,
                               const Layout *layout);
// The common beginning and end of the names of the row's tensors, with a star between them:
// "conv*.weight".
const char *plan_row_name(const PlanReport *report, const PlanRow *row);
const char *plan_row_member(const PlanRow *row, int i); // the name of tensor `i` of the row
const char *plan_row_because(const PlanReport *report, const PlanRow *row);
// The tensor with this name; NULL when the plan has none.
const StageTensor *plan_report_tensor(const PlanReport *report, const char *name);
// Is the tensor computed only inside a kernel?
bool plan_tensor_is_fused(const PlanReport *report, const StageTensor *tensor);

// The rewrites, costs and kernels of a plan.
json_t *plan_report_json(const PlanReport *report);
// A tensor: who writes and reads it in which layout, why it is in memory, and what the plan would
// cost with each other layout. The plan is solved again for each of them.
json_t *plan_tensor_json(const PlanReport *report, const StageTensor *tensor);

// ---- Fusion ------------------------------------------------------------------------------------

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

// Does the kernel compute several reductions row by row?
bool kernel_has_rows(const PlanKernel *kernel);
// The kernel's operators, such as "matmul3 + add4", and the reason why the tensor that the kernel
// writes is in memory; both are "" for rewrites.
const char *fusion_operators(const PlanReport *report, const PlanKernel *kernel);
const char *fusion_because(const PlanReport *report, const PlanKernel *kernel);
// The numbers, from 1, of the kernels that read a tensor, without rewrites.
IntArray fusion_readers(const PlanReport *report, const StageTensor *tensor);
// A list of all kernels with their operators, their readers, and why they are not fused with them.
json_t *fusion_report_json(const PlanReport *report);

#endif
