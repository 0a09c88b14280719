// SPDX-License-Identifier: Apache-2.0
// Reports about programs as data: what the command prints, and what its `--json` and the library
// give. JSON objects are made with Jansson and belong to the caller.
#ifndef PLEAT_REPORT_REPORT_H
#define PLEAT_REPORT_REPORT_H

#include <jansson.h>

#include "driver/driver.h"
#include "pleat/pleat.h"

// Releases the object, and returns its text with a newline at its end, which the caller frees; NULL
// when memory is exhausted.
char *report_text(json_t *object);
// The diagnostics of a context and how it failed, each with its notes, as a list.
json_t *report_messages(const Context *context);

// The alias analysis of a tensor program (schedule/aliases.h): as text for users, and as a list of
// the memory of each parameter and allocation, with its "buffers", the "pairs" of them, and
// "layout_obstacle", why the layout cannot change, or null.
void report_aliases_text(Context *context, const PrimFunc *func, Text *out);
json_t *report_aliases(Context *context, PrimFunc *func);

// The parallel, vectorised and thread loops of tensor programs (lower_find_races), each with
// "loop", "kind", "line" and "races": "none" (proved), "found", or "undecided" with "access",
// "other" and "why".
json_t *report_loops(const LoopRacesList *loops);
// Adds the accesses of shared memory by threads to the list (shared_accesses), each with "access",
// "write", "line" and "conflicts" between lanes: "none" (proved), "found", or "undecided" with
// "why"; and the "degree", "waves" and "words" of LayoutConflicts, null where it is undecided.
json_t *report_banks(Context *context, const PrimFunc *func, json_t *list);
// Checks the accesses of a tensor program (lower_check_accesses). NULL after an error; else
// "bounds", which is "proved" or "guarded", "loops" and "banks".
json_t *report_accesses(Context *context, const Module *module, PrimFunc *func);

// ---- Plans -------------------------------------------------------------------------------------

// A rewrite at run time, or constants that are rewritten alike at compile time: `count` rewrites of
// the plan's data, from number `first`.
typedef struct PlanRow {
  int first, count;
  int64_t bytes;
} PlanRow;

// A plan as data, with what it was made of.
typedef struct PlanReport {
  Context *context;
  const Program *program;
  const Plan *plan;
  PleatPlan data; // without text and JSON
  Array(PlanRow) rows;
  Array(const PlanRewrite *) rewrites; // in the order of data.rewrites
} PlanReport;

// The report of a program whose kernels were not discarded. The data is in `results`.
PlanReport plan_report_new(const Program *program, Arena *results);
// The name of a layout of a tensor for users.
const char *report_layout_name(const PlanReport *report, const StageTensor *tensor,
                               const Layout *layout);
const PleatPlanRewrite *plan_row_member(const PlanReport *report, const PlanRow *row, int i);
// The common beginning and end of the names of the row's tensors, with a star between them:
// "conv*.weight".
const char *plan_row_name(const PlanReport *report, const PlanRow *row);
const char *plan_row_because(const PlanReport *report, const PlanRow *row);
// The tensor with this name, or the one whose layout is asked for; NULL when the plan has none.
const StageTensor *plan_report_tensor(const PlanReport *report, const char *name);

// The rewrites, costs and kernels of a plan.
json_t *plan_report_json(const PleatPlan *plan);
// A tensor: who writes and reads it in which layout, why it is in memory, and what the plan would
// cost with each other layout. The plan is solved again for each of them.
typedef struct TensorReport {
  const StageTensor *tensor;
  PleatTensorPlan data;                    // without JSON
  const Layout *layouts[PLAN_MAX_LAYOUTS]; // of data.prices
} TensorReport;
// A tensor's description, as of one that is fused.
PleatPlanTensor *plan_tensor_describe(const PlanReport *report, const StageTensor *tensor,
                                      Arena *results);
// Where the kernel writes its result in place as a part of the tensor; NULL: it does not.
const PlanPlacement *report_part_written(const PlanKernel *kernel, const StageTensor *tensor);
TensorReport tensor_report_new(const PlanReport *report, const StageTensor *tensor, Arena *results);
json_t *tensor_report_json(const PleatTensorPlan *plan);

// ---- Plans as text: plan_text.c ----------------------------------------------------------------

// The rewrites as a table, the totals, and how many operators are fused.
const char *plan_text(const PlanReport *report, Arena *arena);
// All kernels as a table, with their operators, their readers, and why these are not fused with
// them.
const char *plan_fusion_text(const PleatPlan *plan, Arena *arena);
// How far the plan is from the optimum: "optimal (gap 0)".
const char *plan_gap_text(const PlanReport *report, Arena *arena);
// The kernel's operators, such as "matmul3 + add4".
const char *plan_operators_text(const PleatPlanKernel *kernel, Arena *arena);

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
// The kernel's operators (const Node *), in order, each once.
PtrArray kernel_nodes(Arena *arena, const PlanKernel *kernel);

#endif
